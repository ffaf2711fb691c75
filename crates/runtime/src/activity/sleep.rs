//! `demo.sleep` and `demo.stubborn`: take as long as their header `duration` says (ISO 8601, one second by
//! default). The first stops when told to, the second does not.

use std::time::Duration;

use tidegate_model::Variables;

use super::{Activity, ActivityContext, ActivityError, ActivityFuture};

/// Longer sleeps are held to this, about a month.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) struct Sleep {
    pub(super) heeds_stop: bool,
}

impl Activity for Sleep {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let heeds_stop = self.heeds_stop;
        Box::pin(async move {
            let duration = match context.header("duration") {
                None => Duration::from_secs(1),
                Some(text) => parse(text).ok_or_else(|| {
                    ActivityError::failed(format!(
                        "header `duration` is `{text}`: expected ISO 8601, for example PT5S"
                    ))
                })?,
            };
            let sleep = tokio::time::sleep(duration.min(LONGEST));
            if heeds_stop {
                tokio::select! {
                    biased;
                    () = sleep => Ok(Variables::new()),
                    () = context.stop.stopped() => Err(ActivityError::Stopped),
                }
            } else {
                sleep.await;
                Ok(Variables::new())
            }
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.trim().parse().ok()?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}
