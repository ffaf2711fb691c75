//! The built-in sources: a switch that the owners look at, and a barrier behind which nothing of it is in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{IngressSource, Transition};
use crate::owner::Owners;

/// On while its source may deliver.
#[derive(Debug, Clone)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Default for Switch {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Switch {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }
}

pub(super) struct SwitchSource {
    name: &'static str,
    switch: Switch,
    owners: Owners,
}

impl SwitchSource {
    pub(super) fn new(name: &'static str, switch: Switch, owners: Owners) -> Self {
        Self { name, switch, owners }
    }
}

impl IngressSource for SwitchSource {
    fn name(&self) -> &str {
        self.name
    }

    fn pause(&self) -> Transition {
        self.switch.set(false);
        let owners = self.owners.clone();
        Box::pin(async move {
            owners.barrier().await;
            Ok(())
        })
    }

    fn resume(&self) -> Transition {
        self.switch.set(true);
        Box::pin(std::future::ready(Ok(())))
    }
}
