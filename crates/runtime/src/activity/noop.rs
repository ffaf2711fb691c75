//! `demo.noop`: succeeds at once.

use tidegate_model::Variables;

use super::{Activity, ActivityContext, ActivityFuture};

pub(super) struct Noop;

impl Activity for Noop {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        Box::pin(std::future::ready(Ok(Variables::new())))
    }

    fn is_quick(&self) -> bool {
        true
    }
}
