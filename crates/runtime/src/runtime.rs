//! The runtime of one shell, as a program sees it.

mod cancel_all;
mod control;
mod ending;
mod messages;
mod operate;
mod repair;
mod start;
mod work;

pub(crate) use ending::close_store;
pub(crate) use repair::try_migration;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::builder::Builder;
use crate::drain::Drain;
use crate::error::Error;
use crate::ingress::{Ingress, IngressSource, Sources};
use crate::owner::{Message, Owners};
use crate::pause::Pause;
use crate::shared::Shared;
use crate::shutdown::Ending;
use crate::tasks::Tasks;

/// The runtime of one shell. Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owners: Owners,
    pub(crate) sources: Arc<Sources>,
    pub(crate) pause: Arc<Pause>,
    pub(crate) drain: Arc<Drain>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) stop: CancellationToken,
    pub(crate) ending: Ending,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A runtime that is let go of without `close` does not leave its threads behind.
        self.stop.cancel();
        self.owners.tell_all(|| Message::Stop);
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("shell", &self.inner.shared.shell)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Begins to build one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Gives every source its way in.
    pub(crate) fn attach_sources(&self, starts_paused: bool) {
        self.inner
            .sources
            .attach(|name| Ingress::new(name, starts_paused, &self.inner));
    }

    /// Sources are fixed for a generation: give them to the builder of the next one.
    ///
    /// # Errors
    /// Always [`Error::SourcesAreFixed`], which says so.
    pub fn register_source(&self, source: &dyn IngressSource) -> Result<(), Error> {
        Err(Error::SourcesAreFixed(source.name().to_owned()))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Sends an order to an owner and waits for its answer. The order stands even if the wait is given up.
    pub(crate) async fn ask<T>(
        &self,
        owner: usize,
        message: impl FnOnce(crate::owner::Reply<T>) -> Message,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.inner.owners.send_to(owner, message(sender));
        receiver.await.map_err(|_| Error::Stopped)?
    }

    /// This activation's id: 32 lower-case hexadecimal digits.
    pub fn generation(&self) -> &str {
        &self.shared().generation
    }

    /// Ends once what an earlier generation left behind has been taken up, or found to be none. While the gate is
    /// closed that waits for its opening. Cancel safe.
    pub async fn recovered(&self) {
        let mut recovered = self.shared().recovered.subscribe();
        // The sender lives as long as `self`.
        let _ = recovered.wait_for(|is_over| *is_over).await;
    }

    /// Ends once every owner has come round: the engine makes progress. Cancel safe.
    pub async fn progress(&self) {
        self.inner.owners.barrier().await;
    }
}
