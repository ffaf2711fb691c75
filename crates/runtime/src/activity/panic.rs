//! `demo.panic`: panics, to show that only its own instance is hurt.

use super::{Activity, ActivityContext, ActivityFuture};

pub(super) struct Panic;

impl Activity for Panic {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        Box::pin(async { panic!("demo.panic was asked to panic") })
    }
}
