//! `demo.fail`: fails as often as its header `times` says (once by default), then succeeds.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_model::{ElementInstanceKey, Variables};

use super::{Activity, ActivityContext, ActivityError, ActivityFuture};

#[derive(Default)]
pub(super) struct Fail {
    failed: Arc<Mutex<HashMap<ElementInstanceKey, u32>>>,
}

impl Activity for Fail {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let times = context
            .header("times")
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(1);
        let mut failed = self.failed.lock();
        let count = failed.entry(context.job).or_default();
        let result = if *count < times {
            *count += 1;
            Err(ActivityError::failed(format!(
                "failure {count} of {times}, as asked for"
            )))
        } else {
            failed.remove(&context.job);
            Ok(Variables::new())
        };
        Box::pin(std::future::ready(result))
    }

    fn is_quick(&self) -> bool {
        true
    }
}
