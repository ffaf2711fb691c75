//! What every store does alike: the encoded delivery of a matched message, and the revisions a commit needs.

use std::collections::HashSet;

use tidegate_model::{Cause, ElementInstanceKey, InstanceKey, Stimulus, Timestamp, Variables};

use crate::commit::{Commit, Write};
use crate::error::{Error, ErrorKind};
use crate::row::{InstanceRow, MessageRow, StimulusRow, SubscriptionRow};

/// The ingress source that deliveries are queued under.
const DELIVERY_SOURCE: &str = "http.api";

/// Reads the payload of a signal, so that a bad one is refused before anybody takes it.
pub(crate) fn signal_variables(name: &str, variables: &str) -> Result<Variables, Error> {
    Variables::parse(variables).map_err(|cause| {
        let message = format!("the payload of signal `{name}` is not a JSON object: {cause}");
        Error::new(ErrorKind::Internal, message)
    })
}

/// Reads the payload of a message, so that a bad one is refused at its publication and not at its match.
pub(crate) fn variables_of(message: &MessageRow) -> Result<Variables, Error> {
    Variables::parse(&message.variables).map_err(|cause| {
        Error::new(
            ErrorKind::Internal,
            format!(
                "the payload of message {} is not a JSON object: {cause}",
                message.key
            ),
        )
    })
}

/// The stimulus that delivers `message` to `subscription`. Its key is still to be given.
pub(crate) fn delivery(
    message: &MessageRow,
    variables: Variables,
    subscription: &SubscriptionRow,
    now: Timestamp,
) -> Result<StimulusRow, Error> {
    let stimulus = Stimulus::Deliver {
        message: message.key,
        instance: subscription.instance,
        owner: subscription.owner,
        element: subscription.element,
        name: message.name.clone(),
        correlation_key: message.correlation_key.clone(),
        variables,
        expires_at: message.expires_at,
        from: message.from.clone(),
    };
    queued(&stimulus, subscription, now)
}

/// The stimulus that delivers the signal `name` to `subscription`. Its key is still to be given.
pub(crate) fn signal_delivery(
    name: &str,
    variables: Variables,
    from: Option<&Cause>,
    subscription: &SubscriptionRow,
    now: Timestamp,
) -> Result<StimulusRow, Error> {
    let stimulus = Stimulus::Signal {
        instance: subscription.instance,
        owner: subscription.owner,
        element: subscription.element,
        name: name.to_owned(),
        variables,
        from: from.cloned(),
    };
    queued(&stimulus, subscription, now)
}

fn queued(stimulus: &Stimulus, subscription: &SubscriptionRow, now: Timestamp) -> Result<StimulusRow, Error> {
    let payload = minicbor::to_vec(stimulus).map_err(|cause| {
        let message = format!("`{}` cannot be encoded: {cause}", subscription.message_name);
        Error::new(ErrorKind::Internal, message)
    })?;
    Ok(StimulusRow {
        key: tidegate_model::StimulusKey(0),
        domain: format!("instance/{}", subscription.instance),
        source: DELIVERY_SOURCE.to_owned(),
        payload,
        accepted_at: now,
        attempts: 0,
    })
}

/// From where an instance was called.
pub(crate) struct Call {
    caller: InstanceKey,
    call: Option<ElementInstanceKey>,
    enclosing: Vec<ElementInstanceKey>,
}

impl Call {
    pub(crate) fn of(row: InstanceRow) -> Option<Self> {
        Some(Self {
            caller: row.parent?,
            call: row.parent_element,
            enclosing: row.enclosing,
        })
    }
}

/// What ends because a message or signal is taken: the activity it is attached to, or the scope that listens for it.
/// Whatever was called from in there ends too, and takes nothing.
#[derive(Default)]
pub(crate) struct Ending(HashSet<ElementInstanceKey>);

impl Ending {
    pub(crate) fn of<'a>(takers: impl IntoIterator<Item = &'a SubscriptionRow>) -> Self {
        let ending = takers.into_iter().filter(|open| open.ends);
        Self(ending.map(|open| open.owner).collect())
    }

    /// True if `instance` was called, by however many calls, from inside what ends.
    pub(crate) fn ends<E>(
        &self,
        instance: InstanceKey,
        mut call_of: impl FnMut(InstanceKey) -> Result<Option<Call>, E>,
    ) -> Result<bool, E> {
        /// Far above the deepest chain of calls: a damaged row does not make this run for ever.
        const DEEPEST: usize = 100_000;
        if self.0.is_empty() {
            return Ok(false);
        }
        let mut next = instance;
        for _ in 0..DEEPEST {
            let Some(called) = call_of(next)? else { break };
            // What listens at the top of an instance waits under the instance's own key.
            let top = ElementInstanceKey(called.caller.get());
            let mut around = called.enclosing.iter().chain(&called.call).chain([&top]);
            if around.any(|key| self.0.contains(key)) {
                return Ok(true);
            }
            next = called.caller;
        }
        Ok(false)
    }
}

/// Who takes a message, given the oldest of each process id that wait for it: in the place of one that ends because another
/// takes it comes the next of its process id, if there is one.
pub(crate) fn chosen<N: Copy, E>(
    mut takers: Vec<(N, SubscriptionRow)>,
    mut call_of: impl FnMut(InstanceKey) -> Result<Option<Call>, E>,
    mut next: impl FnMut(&str, N) -> Result<Option<(N, SubscriptionRow)>, E>,
) -> Result<Vec<(N, SubscriptionRow)>, E> {
    if takers.len() < 2 {
        return Ok(takers);
    }
    let mut ending = Ending::of(takers.iter().map(|(_, open)| open));
    let mut at = 0;
    while let Some((number, open)) = takers.get(at) {
        if !ending.ends(open.instance, &mut call_of)? {
            at += 1;
            continue;
        }
        match next(&open.process_id, *number)? {
            Some(other) => {
                // It may end some that were looked at before.
                if other.1.ends && ending.0.insert(other.1.owner) {
                    at = 0;
                }
                let replaced = takers
                    .iter_mut()
                    .find(|(_, open)| open.process_id == other.1.process_id);
                if let Some(place) = replaced {
                    *place = other;
                }
            }
            None => {
                takers.remove(at);
            }
        }
    }
    Ok(takers)
}

/// What a commit needs to find in the instance table before its first write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// No instance of this key.
    Absent,
    /// Exactly this revision.
    Revision(u64),
    /// Nothing can satisfy it: its own writes contradict each other, and this one would come first.
    Never,
}

/// The revisions that `commit` needs, one entry for each instance it writes. A commit may create an instance
/// and update it, or update it several times, as long as the revisions follow one another.
pub(crate) fn needed_revisions(commit: &Commit) -> Vec<(InstanceKey, Needed)> {
    let mut seen: Vec<(InstanceKey, u64)> = Vec::new();
    let mut needed: Vec<(InstanceKey, Needed)> = Vec::new();
    for write in &commit.writes {
        let (key, revision, before) = match write {
            Write::CreateInstance { row, .. } => (row.key, row.revision, None),
            Write::UpdateInstance(update) => (update.key, update.revision, update.revision.checked_sub(1)),
            _ => continue,
        };
        match seen.iter_mut().find(|(seen_key, _)| *seen_key == key) {
            None => {
                let need = match (write, before) {
                    (Write::CreateInstance { .. }, _) => Needed::Absent,
                    (_, Some(before)) => Needed::Revision(before),
                    (_, None) => Needed::Never,
                };
                seen.push((key, revision));
                needed.push((key, need));
            }
            Some((_, at)) if before == Some(*at) => *at = revision,
            Some(_) => needed.push((key, Needed::Never)),
        }
    }
    needed
}
