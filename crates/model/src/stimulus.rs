//! Stimuli as they wait in the durable queue.

use minicbor::{Decode, Encode};

use crate::{
    Beginning, Cause, DefinitionKey, ElementIndex, ElementInstanceKey, Hold, IncidentKey, InstanceKey,
    MessageKey, Migration, Modification, Timestamp, Variables,
};

/// Something that may start or move an instance, accepted but not executed yet.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum Stimulus {
    /// Start an instance whose key is already given (its row is there, `pending`).
    #[n(0)]
    Start {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// Its definition.
        #[n(1)]
        definition: DefinitionKey,
        /// The start event; none for the none start.
        #[n(2)]
        element: Option<ElementIndex>,
        /// Start variables.
        #[n(3)]
        variables: Variables,
        /// Who asked.
        #[n(4)]
        cause: Cause,
        /// Where it begins, if that is not at a start event.
        #[n(5)]
        begin: Option<Vec<Beginning>>,
    },
    /// Publish a message: match it with a subscription or a start event, or buffer it.
    #[n(1)]
    Publish {
        /// Its key.
        #[n(0)]
        message: MessageKey,
        /// Its name.
        #[n(1)]
        name: String,
        /// Its correlation key.
        #[n(2)]
        correlation_key: String,
        /// Its payload.
        #[n(3)]
        variables: Variables,
        /// How long it may wait for a taker, in milliseconds.
        #[n(4)]
        ttl_ms: i64,
        /// The sender's own id for it.
        #[n(5)]
        message_id: Option<String>,
        /// The tenant.
        #[n(6)]
        tenant: String,
        /// Who sent it.
        #[n(7)]
        from: Option<Cause>,
    },
    /// Deliver a matched message to the instance that waits.
    #[n(2)]
    Deliver {
        /// The message.
        #[n(0)]
        message: MessageKey,
        /// The instance.
        #[n(1)]
        instance: InstanceKey,
        /// The waiting element instance.
        #[n(2)]
        owner: ElementInstanceKey,
        /// The waiting event.
        #[n(3)]
        element: ElementIndex,
        /// The message's name.
        #[n(4)]
        name: String,
        /// Its correlation key.
        #[n(5)]
        correlation_key: String,
        /// Its payload.
        #[n(6)]
        variables: Variables,
        /// When the message stops waiting for a taker, should this one refuse it.
        #[n(7)]
        expires_at: Timestamp,
        /// Who sent the message.
        #[n(8)]
        from: Option<Cause>,
    },
    /// A job outcome, from a worker that holds the lease.
    #[n(3)]
    JobOutcome {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// The job.
        #[n(1)]
        job: ElementInstanceKey,
        /// What became of it.
        #[n(2)]
        outcome: JobOutcome,
        /// The worker.
        #[n(3)]
        worker: String,
    },
    /// A user task was completed.
    #[n(4)]
    CompleteUserTask {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// The task.
        #[n(1)]
        task: ElementInstanceKey,
        /// The results.
        #[n(2)]
        variables: Variables,
        /// Who completed it.
        #[n(3)]
        actor: String,
    },
    /// Variables were changed from outside.
    #[n(5)]
    SetVariables {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// New values.
        #[n(1)]
        variables: Variables,
        /// Who changed them.
        #[n(2)]
        actor: String,
        /// The scope; none for the instance itself.
        #[n(3)]
        scope: Option<ElementInstanceKey>,
        /// The operator's own words.
        #[n(4)]
        reason: Option<String>,
    },
    /// An incident is to be tried again (`retry`) or was resolved by a person (`resolve`).
    #[n(6)]
    RetryIncident {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// The incident.
        #[n(1)]
        incident: IncidentKey,
        /// Tries to give the job.
        #[n(2)]
        retries: Option<u32>,
        /// Who asked.
        #[n(3)]
        actor: String,
    },
    /// Broadcast a signal: to every instance that waits for it, and to every start event.
    #[n(7)]
    Broadcast {
        /// The signal's name.
        #[n(0)]
        name: String,
        /// Its payload.
        #[n(1)]
        variables: Variables,
        /// The tenant.
        #[n(2)]
        tenant: String,
        /// The instance that threw it, which has taken it already.
        #[n(3)]
        thrown_by: Option<InstanceKey>,
        /// Who threw it.
        #[n(4)]
        from: Option<Cause>,
    },
    /// Deliver a broadcast signal to an instance that waits.
    #[n(8)]
    Signal {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// The waiting element instance.
        #[n(1)]
        owner: ElementInstanceKey,
        /// The waiting event.
        #[n(2)]
        element: ElementIndex,
        /// The signal's name.
        #[n(3)]
        name: String,
        /// Its payload.
        #[n(4)]
        variables: Variables,
        /// Who threw it.
        #[n(5)]
        from: Option<Cause>,
    },
    /// A called instance has something to tell its caller.
    #[n(9)]
    Child {
        /// The caller.
        #[n(0)]
        instance: InstanceKey,
        /// The call activity's element instance.
        #[n(1)]
        owner: ElementInstanceKey,
        /// The called instance.
        #[n(2)]
        child: InstanceKey,
        /// What it has to tell.
        #[n(3)]
        news: ChildNews,
    },
    /// Cancel a called instance, whose call was left.
    #[n(10)]
    CancelChild {
        /// The called instance.
        #[n(0)]
        instance: InstanceKey,
        /// The caller.
        #[n(1)]
        parent: InstanceKey,
        /// True if the caller waits for its end.
        #[n(2)]
        #[cbor(default)]
        is_awaited: bool,
        /// How long its handlers may take to stop, in milliseconds; none for the runtime's own measure.
        #[n(3)]
        patience_ms: Option<u64>,
    },
    /// Hold a called instance with its caller.
    #[n(11)]
    HoldChild {
        /// The called instance.
        #[n(0)]
        instance: InstanceKey,
        /// The hold.
        #[n(1)]
        hold: Hold,
    },
    /// Let a called instance go with its caller.
    #[n(12)]
    ReleaseChild {
        /// The called instance.
        #[n(0)]
        instance: InstanceKey,
        /// Whose holds end.
        #[n(1)]
        origins: Vec<InstanceKey>,
        /// Who let the caller go.
        #[n(2)]
        cause: Cause,
    },
    /// Correct variables, and try once more what an incident stopped.
    #[n(90)]
    ResolveIncident {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// The incident.
        #[n(1)]
        incident: IncidentKey,
        /// Tries to give the job.
        #[n(2)]
        retries: Option<u32>,
        /// The scope of the variables; none for the instance itself.
        #[n(3)]
        scope: Option<ElementInstanceKey>,
        /// Their new values.
        #[n(4)]
        variables: Variables,
        /// Who asked.
        #[n(5)]
        cause: Cause,
    },
    /// Move tokens of an instance.
    #[n(91)]
    Modify {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// How.
        #[n(1)]
        modification: Modification,
        /// Who asked.
        #[n(2)]
        cause: Cause,
    },
    /// Change an instance to another version of its process.
    #[n(92)]
    Migrate {
        /// The instance.
        #[n(0)]
        instance: InstanceKey,
        /// Where to.
        #[n(1)]
        migration: Migration,
        /// Who asked.
        #[n(2)]
        cause: Cause,
    },
}

/// What a called instance tells its caller.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum ChildNews {
    /// It reached its end.
    #[n(0)]
    Completed {
        /// Its variables.
        #[n(0)]
        variables: Variables,
    },
    /// It ended by an error that nothing in it caught.
    #[n(1)]
    Faulted {
        /// The error code.
        #[n(0)]
        code: String,
        /// What went wrong.
        #[n(1)]
        message: String,
        /// Its variables.
        #[n(2)]
        variables: Variables,
    },
    /// It was cancelled by somebody else than its caller.
    #[n(2)]
    Cancelled,
    /// It could not be started.
    #[n(3)]
    NotStarted {
        /// Why, and what to do.
        #[n(0)]
        message: String,
    },
    /// An escalation that nothing in it caught; it goes on.
    #[n(4)]
    Escalated {
        /// The escalation code.
        #[n(0)]
        code: String,
        /// Variables for the catching scope.
        #[n(1)]
        variables: Variables,
    },
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum JobOutcome {
    /// It succeeded.
    #[n(0)]
    Complete {
        /// Its results.
        #[n(0)]
        variables: Variables,
    },
    /// It failed technically.
    #[n(1)]
    Fail {
        /// What went wrong.
        #[n(0)]
        message: String,
        /// Tries left; none takes one off.
        #[n(1)]
        retries: Option<u32>,
        /// When it may be tried again.
        #[n(2)]
        retry_at: Option<Timestamp>,
    },
    /// It ended in a BPMN error.
    #[n(2)]
    Error {
        /// The error code.
        #[n(0)]
        code: String,
        /// What went wrong.
        #[n(1)]
        message: String,
        /// Variables for the catching scope.
        #[n(2)]
        variables: Variables,
    },
    /// Whoever did it is gone, and nobody knows how far it came.
    #[n(3)]
    Lost,
}

impl Stimulus {
    /// Which stimulus stands in encoded bytes, without reading the rest: true for one that ends or holds an instance, or
    /// lets it go, on behalf of its caller. It needs no permit.
    pub fn is_control(payload: &[u8]) -> bool {
        matches!(variant(payload), Some(10..=12))
    }

    /// True if encoded bytes hold the outcome of a job.
    pub fn is_job_outcome(payload: &[u8]) -> bool {
        variant(payload) == Some(3)
    }

    /// True if encoded bytes hold the news of a called instance.
    pub fn is_of_child(payload: &[u8]) -> bool {
        variant(payload) == Some(9)
    }

    /// The instance it moves, where it names one.
    pub fn instance(&self) -> Option<InstanceKey> {
        match self {
            Self::Publish { .. } | Self::Broadcast { .. } => None,
            Self::Start { instance, .. }
            | Self::Deliver { instance, .. }
            | Self::JobOutcome { instance, .. }
            | Self::CompleteUserTask { instance, .. }
            | Self::SetVariables { instance, .. }
            | Self::RetryIncident { instance, .. }
            | Self::Signal { instance, .. }
            | Self::Child { instance, .. }
            | Self::CancelChild { instance, .. }
            | Self::HoldChild { instance, .. }
            | Self::ReleaseChild { instance, .. }
            | Self::ResolveIncident { instance, .. }
            | Self::Modify { instance, .. }
            | Self::Migrate { instance, .. } => Some(*instance),
        }
    }
}

/// The number of the variant that stands in encoded bytes.
fn variant(payload: &[u8]) -> Option<u32> {
    let mut decoder = minicbor::Decoder::new(payload);
    decoder.array().ok()?;
    decoder.u32().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_is_told_by_its_first_bytes() {
        let instance = InstanceKey(7);
        let bytes = |stimulus: &Stimulus| minicbor::to_vec(stimulus).unwrap();
        let cancel = Stimulus::CancelChild {
            instance,
            parent: InstanceKey(1),
            is_awaited: true,
            patience_ms: None,
        };
        let release = Stimulus::ReleaseChild {
            instance,
            origins: vec![InstanceKey(1)],
            cause: Cause::Engine,
        };
        let news = Stimulus::Child {
            instance,
            owner: ElementInstanceKey(2),
            child: InstanceKey(3),
            news: ChildNews::Cancelled,
        };
        assert!(Stimulus::is_control(&bytes(&cancel)) && Stimulus::is_control(&bytes(&release)));
        assert!(!Stimulus::is_control(&bytes(&news)) && Stimulus::is_of_child(&bytes(&news)));
        assert!(!Stimulus::is_control(&[]) && !Stimulus::is_control(b"no stimulus"));
        // As it was written before it said whether it is awaited.
        let old = [0x82, 0x0a, 0x82, 0x07, 0x01];
        let read: Stimulus = minicbor::decode(&old).unwrap();
        assert!(matches!(
            read,
            Stimulus::CancelChild {
                is_awaited: false,
                ..
            }
        ));
    }
}
