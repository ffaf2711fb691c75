//! One commit: its expectations, then its writes, inside the transaction of its batch.
//!
//! There is no savepoint. Whatever can refuse a commit is read before its first write, except the revision of a
//! lone instance write, whose own statement checks it and writes nothing when it does not fit.

use tidegate_model::InstanceKey;

use super::error::{Stop, Trouble};
use super::names::Tables;
use super::totals::Totals;
use super::{
    audit, dead_letter, definition, forget, instance, job, journal, message, operation, queue, signal, task,
    timer, value,
};
use crate::commit::{Commit, Expect, Outcome, Refusal, Write};
use crate::error::{Error, ErrorKind};
use crate::matching::{Needed, needed_revisions};

/// Runs one commit. After [`Stop::Refused`] nothing of it is there; after [`Stop::Trouble`] the caller rolls back.
pub(super) fn run(conn: &Tables<'_>, totals: &mut Totals, commit: &Commit) -> Result<Outcome, Stop> {
    for expect in &commit.expect {
        check(conn, expect)?;
    }
    check_fences(conn, totals, commit)?;
    let mut instance_writes = commit
        .writes
        .iter()
        .enumerate()
        .filter(|(_, write)| is_instance_write(write));
    let lone = match (instance_writes.next(), instance_writes.next()) {
        (Some((position, write)), None) => {
            if !write_instance(conn, totals, write)? {
                return Err(wrong_revision(conn, write));
            }
            Some(position)
        }
        (None, _) => None,
        (Some(_), Some(_)) => {
            check_revisions(conn, commit)?;
            None
        }
    };
    let mut outcome = Outcome::default();
    for (position, write) in commit.writes.iter().enumerate() {
        if Some(position) != lone {
            apply(conn, totals, write, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn check(conn: &Tables<'_>, expect: &Expect) -> Result<(), Stop> {
    let refusal = match expect {
        Expect::Stimulus(key) if !queue::contains(conn, *key)? => Refusal::StimulusGone(*key),
        Expect::DeadLetter(key) if !dead_letter::contains(conn, *key)? => Refusal::DeadLetterGone(*key),
        Expect::Lease { job, token } if !job::is_leased(conn, *job, token)? => Refusal::LeaseStale(*job),
        Expect::ValueAbsent { key, now } => match value::get(conn, key, *now)? {
            Some(value) => Refusal::ValuePresent(value),
            None => return Ok(()),
        },
        Expect::VersionFree {
            process_id,
            tenant,
            version,
        } if definition::highest_version(conn, process_id, tenant)? >= *version => Refusal::VersionTaken,
        Expect::InstanceLive(key) if !instance::is_live(conn, *key)? => Refusal::InstanceEnded(*key),
        Expect::Timer {
            owner,
            element,
            due_at,
        } if timer::due_at(conn, *owner, *element)? != Some(*due_at) => Refusal::TimerGone {
            owner: *owner,
            element: *element,
        },
        Expect::Forgettable(instances) => return forget::check(conn, instances),
        Expect::Stimulus(_)
        | Expect::DeadLetter(_)
        | Expect::Lease { .. }
        | Expect::VersionFree { .. }
        | Expect::InstanceLive(_)
        | Expect::Timer { .. } => {
            return Ok(());
        }
    };
    Err(Stop::Refused(refusal))
}

/// A key that was forgotten is not created again while its fence stands.
fn check_fences(conn: &Tables<'_>, totals: &Totals, commit: &Commit) -> Result<(), Stop> {
    for write in &commit.writes {
        if let Write::CreateInstance { row, .. } = write
            && forget::is_fenced(conn, totals, row.key)?
        {
            return Err(Stop::Refused(Refusal::InstanceForgotten(row.key)));
        }
    }
    Ok(())
}

fn check_revisions(conn: &Tables<'_>, commit: &Commit) -> Result<(), Stop> {
    for (instance, needed) in needed_revisions(commit) {
        let found = instance::revision(conn, instance)?;
        let is_met = match needed {
            Needed::Absent => found.is_none(),
            Needed::Revision(revision) => found == Some(revision),
            Needed::Never => false,
        };
        if !is_met {
            return Err(Stop::Refused(Refusal::Revision { instance, found }));
        }
    }
    Ok(())
}

fn is_instance_write(write: &Write) -> bool {
    matches!(write, Write::CreateInstance { .. } | Write::UpdateInstance(_))
}

fn write_instance(conn: &Tables<'_>, totals: &mut Totals, write: &Write) -> Result<bool, Trouble> {
    match write {
        Write::CreateInstance { row, state } => instance::create(conn, totals, row, state.as_deref()),
        Write::UpdateInstance(update) => instance::update(conn, totals, update),
        _ => Ok(true),
    }
}

fn wrong_revision(conn: &Tables<'_>, write: &Write) -> Stop {
    let key = match write {
        Write::CreateInstance { row, .. } => row.key,
        Write::UpdateInstance(update) => update.key,
        _ => InstanceKey(0),
    };
    match instance::revision(conn, key) {
        Ok(found) => Stop::Refused(Refusal::Revision { instance: key, found }),
        Err(trouble) => Stop::Trouble(trouble),
    }
}

fn apply(
    conn: &Tables<'_>,
    totals: &mut Totals,
    write: &Write,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    match write {
        Write::CreateInstance { .. } | Write::UpdateInstance(_) => {
            if !write_instance(conn, totals, write)? {
                let message = "an instance changed between its check and its write";
                return Err(Error::new(ErrorKind::Internal, message).into());
            }
        }
        Write::ChangeDefinition {
            instance,
            definition,
            version,
        } => instance::change_definition(conn, *instance, *definition, *version)?,
        Write::Journal(row) => journal::append(conn, row)?,
        Write::ArmTimer(row) => timer::arm(conn, row)?,
        Write::DisarmTimer { owner, element } => timer::disarm(conn, *owner, *element)?,
        Write::Subscribe { row, now } => message::subscribe(conn, totals, row, *now, outcome)?,
        Write::Unsubscribe { owner, element } => message::unsubscribe(conn, *owner, *element)?,
        Write::Publish { row, has_taker, now } => {
            message::publish(conn, totals, row, *has_taker, *now, outcome)?;
        }
        Write::Broadcast {
            tenant,
            name,
            variables,
            except,
            from,
            now,
        } => {
            let who = (*except, from.as_ref());
            signal::broadcast(conn, totals, (tenant, name, variables), who, *now, outcome)?;
        }
        Write::ExpireMessages { now, limit } => {
            message::expire(conn, *now, *limit, outcome)?;
            value::purge(conn, *now, *limit)?;
        }
        Write::OpenJob(row) => job::open(conn, row)?,
        Write::ReportJob(key) => job::report(conn, *key)?,
        Write::WithholdJob(key) => job::withhold(conn, *key)?,
        Write::OfferJob(key) => job::offer(conn, *key)?,
        Write::CloseJob(key) => job::close(conn, *key)?,
        Write::LeaseJobs(request) => job::lease(conn, request, outcome)?,
        Write::OpenUserTask(row) => task::open(conn, row)?,
        Write::CloseUserTask(key) => task::close(conn, *key)?,
        Write::OpenIncident(row) => task::open_incident(conn, row)?,
        Write::CloseIncident(key) => task::close_incident(conn, *key)?,
        Write::AddStimulus(row) => outcome.stimuli.push(queue::add(conn, totals, row)?),
        Write::RemoveStimulus(key) => queue::remove(conn, totals, *key)?,
        Write::StimulusFailed(key) => queue::failed(conn, *key)?,
        Write::AddDeadLetter(row) => dead_letter::add(conn, row)?,
        Write::RemoveDeadLetter(key) => dead_letter::remove(conn, *key)?,
        Write::ExtendMessages { by_ms } => message::extend(conn, *by_ms)?,
        Write::AddResource { key, bytes } => definition::add_resource(conn, *key, bytes)?,
        Write::AddDefinition(row) => definition::add(conn, row)?,
        Write::DeleteDefinition(key) => definition::delete(conn, *key)?,
        Write::SetValue {
            key,
            value,
            expires_at,
        } => value::set(conn, key, value, *expires_at)?,
        Write::RemoveValue(key) => value::remove(conn, key)?,
        Write::Audit(row) => audit::append(conn, row)?,
        Write::ForgetInstances(request) => forget::forget(conn, totals, request, outcome)?,
        Write::SweepForgotten { now, limit } => forget::sweep(conn, *now, *limit, outcome)?,
        Write::TrimJournal {
            instance,
            up_to,
            limit,
        } => forget::trim(conn, *instance, *up_to, *limit, outcome)?,
        Write::PutOperation(row) => operation::put(conn, row)?,
        Write::PutOperationItem(row) => operation::put_item(conn, row)?,
        Write::RemoveOperation { key, limit } => operation::remove(conn, *key, *limit, outcome)?,
    }
    Ok(())
}
