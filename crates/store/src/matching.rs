//! What every store does alike: the encoded delivery of a matched message, and the revisions a commit needs.

use tidegate_model::{Cause, InstanceKey, Stimulus, Timestamp, Variables};

use crate::commit::{Commit, Write};
use crate::error::{Error, ErrorKind};
use crate::row::{MessageRow, StimulusRow, SubscriptionRow};

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
