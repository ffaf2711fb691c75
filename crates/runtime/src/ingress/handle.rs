//! What an external source holds of its runtime: the two verbs.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use tidegate_model::{InstanceKey, MessageKey, StimulusKey};

use crate::api::{MessageRequest, StartRequest};
use crate::error::Error;
use crate::runtime::{Inner, Runtime};
use crate::shared::Counters;

/// Something from outside that may start or move an instance.
#[derive(Debug, Clone)]
pub enum Offer {
    /// Start an instance.
    Start(StartRequest),
    /// Publish a message.
    Message(MessageRequest),
}

/// What became of an offer. Whatever the fate, it is durable: the sender may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Why it was not executed at once, or that it was.
    pub fate: OfferFate,
    /// Instances that it started or moved, as far as that is known.
    pub instances: Vec<InstanceKey>,
    /// The message's key.
    pub message: Option<MessageKey>,
    /// Its place in the queue, when it waits there.
    pub stimulus: Option<StimulusKey>,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferFate {
    /// It passed the gate and was executed.
    Admitted,
    /// It is in the queue and is executed later: the gate is closed, or older ones of its order domain wait.
    Accepted,
    /// It was refused at the gate, because its source had said that it was paused; it is kept in the queue all the same.
    RefusedAndKept,
}

/// A source's way into its runtime. Clones are the same way.
#[derive(Clone)]
pub struct Ingress {
    name: &'static str,
    starts_paused: bool,
    runtime: Weak<Inner>,
}

impl std::fmt::Debug for Ingress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ingress")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Ingress {
    pub(crate) fn new(name: &str, starts_paused: bool, runtime: &Arc<Inner>) -> Self {
        Self {
            name: known(name),
            starts_paused,
            runtime: Arc::downgrade(runtime),
        }
    }

    /// The name under which the source is known.
    pub fn name(&self) -> &str {
        self.name
    }

    /// True if this generation began paused: the source delivers nothing before it is resumed.
    pub fn starts_paused(&self) -> bool {
        self.starts_paused
    }

    /// Makes an offer durable and no more. Always lawful, also while the source is paused. It is executed from the queue,
    /// in its order, when the gate is open.
    ///
    /// # Durability
    /// It is on disk when this returns: acknowledge it to the sender then, and not before.
    ///
    /// # Errors
    /// The queue is full under policy Reject, the definition is unknown, the store fails, the runtime has ended: nothing
    /// was taken; do not acknowledge.
    ///
    /// # Cancel safety
    /// Dropped, it may have been taken or not: offer it again under the same idempotency key or message id.
    pub async fn accept(&self, offer: Offer) -> Result<Receipt, Error> {
        self.enter(offer, true).await
    }

    /// Asks the gate for a cycle that executes the offer. With the gate closed it is accepted instead. From a source that
    /// has said it is paused it is refused, kept in the queue, and the source is shown as `PauseFailed`,
    /// `delivered-while-paused`, from this moment.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Ingress::accept`].
    pub async fn offer(&self, offer: Offer) -> Result<Receipt, Error> {
        let runtime = self.runtime()?;
        let is_honest = runtime.inner().sources.may_offer(self.name);
        if !is_honest {
            Counters::add(&runtime.shared().counters.offers_refused, 1);
            runtime.shared().tick();
        }
        drop(runtime);
        let mut receipt = self.enter(offer, !is_honest).await?;
        if !is_honest {
            receipt.fate = OfferFate::RefusedAndKept;
        }
        Ok(receipt)
    }

    fn runtime(&self) -> Result<Runtime, Error> {
        self.runtime.upgrade().map(Runtime::of).ok_or(Error::Stopped)
    }

    async fn enter(&self, offer: Offer, accept_only: bool) -> Result<Receipt, Error> {
        let runtime = self.runtime()?;
        match offer {
            Offer::Start(mut request) => {
                request.source = Some(self.name);
                let started = runtime.start_or_accept(request, accept_only).await?;
                Ok(Receipt {
                    fate: fate(started.accepted),
                    instances: vec![started.instance],
                    message: None,
                    stimulus: started.accepted,
                })
            }
            Offer::Message(mut request) => {
                request.source = Some(self.name);
                let published = runtime.publish_or_accept(request, accept_only).await?;
                Ok(Receipt {
                    fate: fate(published.accepted),
                    instances: published.delivered_to,
                    message: Some(published.message),
                    stimulus: published.accepted,
                })
            }
        }
    }
}

fn fate(accepted: Option<StimulusKey>) -> OfferFate {
    if accepted.is_some() {
        OfferFate::Accepted
    } else {
        OfferFate::Admitted
    }
}

/// The name for the life of the process: a cycle carries it as it is. Each different name is kept once.
fn known(name: &str) -> &'static str {
    static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock();
    if let Some(name) = known.get(name) {
        return name;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    known.insert(name);
    name
}
