//! `demo.log`: writes its header `message` to the log.

use tidegate_model::Variables;

use super::{Activity, ActivityContext, ActivityFuture};

pub(super) struct Log;

impl Activity for Log {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let message = context
            .header("message")
            .unwrap_or("(the task has no header `message`)");
        tracing::info!(instance = %context.instance, element = %context.element_id, "{message}");
        Box::pin(std::future::ready(Ok(Variables::new())))
    }

    fn is_quick(&self) -> bool {
        true
    }
}
