//! The primitives underneath: the machine's own, or loom's when every interleaving is being walked.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// A mutex without poison: nothing that could panic runs under it.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    #[cfg(loom)]
    inner: loom::sync::Mutex<T>,
    #[cfg(not(loom))]
    inner: parking_lot::Mutex<T>,
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        #[cfg(loom)]
        return Self {
            inner: loom::sync::Mutex::new(T::default()),
        };
        #[cfg(not(loom))]
        return Self {
            inner: parking_lot::Mutex::new(T::default()),
        };
    }
}

impl<T> Mutex<T> {
    /// Runs `work` under the lock.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(loom)]
        return work(&mut self.inner.lock().expect("no holder panics"));
        #[cfg(not(loom))]
        return work(&mut self.inner.lock());
    }
}
