//! Whether a commit may happen: everything that can refuse or fail it, before anything is written.

use std::collections::BTreeSet;

use super::failed;
use super::tables::Tables;
use crate::commit::{Commit, CommitError, Expect, Refusal, Write};
use crate::error::{Error, ErrorKind};
use crate::matching::{Needed, needed_revisions, signal_variables, variables_of};
use crate::row::{DefinitionRow, JobState};

impl Tables {
    pub fn check(&self, commit: &Commit) -> Result<(), CommitError> {
        for expect in &commit.expect {
            self.check_expectation(expect).map_err(CommitError::Refused)?;
        }
        self.check_revisions(commit).map_err(CommitError::Refused)?;
        self.check_rows(commit).map_err(failed)
    }

    fn check_expectation(&self, expect: &Expect) -> Result<(), Refusal> {
        match expect {
            Expect::Stimulus(key) if !self.stimuli.contains_key(key) => Err(Refusal::StimulusGone(*key)),
            Expect::DeadLetter(key) if !self.dead_letters.contains_key(key) => {
                Err(Refusal::DeadLetterGone(*key))
            }
            Expect::Lease { job, token } => {
                let is_held = self.jobs.get(job).is_some_and(|row| {
                    matches!(row.state, JobState::Leased | JobState::LeasedWithheld)
                        && row.lease_token.as_deref() == Some(token.as_str())
                });
                if is_held {
                    Ok(())
                } else {
                    Err(Refusal::LeaseStale(*job))
                }
            }
            Expect::ValueAbsent { key, now } => match self.value(key, *now) {
                Some(value) => Err(Refusal::ValuePresent(value.to_vec())),
                None => Ok(()),
            },
            Expect::VersionFree {
                process_id,
                tenant,
                version,
            } if self.highest_version(process_id, tenant) >= *version => Err(Refusal::VersionTaken),
            Expect::InstanceLive(key) => {
                let is_live = self
                    .instances
                    .get(key)
                    .is_some_and(|i| !i.row.sub_status.is_finished());
                if is_live {
                    Ok(())
                } else {
                    Err(Refusal::InstanceEnded(*key))
                }
            }
            Expect::Forgettable(instances) => self.check_forgettable(instances),
            Expect::Timer {
                owner,
                element,
                due_at,
            } if self.timer_due.get(&(*owner, *element)) != Some(due_at) => Err(Refusal::TimerGone {
                owner: *owner,
                element: *element,
            }),
            Expect::Stimulus(_)
            | Expect::DeadLetter(_)
            | Expect::VersionFree { .. }
            | Expect::Timer { .. } => Ok(()),
        }
    }

    fn check_revisions(&self, commit: &Commit) -> Result<(), Refusal> {
        for (instance, needed) in needed_revisions(commit) {
            if needed == Needed::Absent && self.forgotten.contains_key(&instance) {
                return Err(Refusal::InstanceForgotten(instance));
            }
            let found = self.instances.get(&instance).map(|i| i.row.revision);
            let is_met = match needed {
                Needed::Absent => found.is_none(),
                Needed::Revision(revision) => found == Some(revision),
                Needed::Never => false,
            };
            if !is_met {
                return Err(Refusal::Revision { instance, found });
            }
        }
        Ok(())
    }

    fn check_rows(&self, commit: &Commit) -> Result<(), Error> {
        let mut journal = BTreeSet::new();
        let mut definitions: Vec<&DefinitionRow> = Vec::new();
        for write in &commit.writes {
            match write {
                Write::Journal(row) => {
                    let at = (row.instance, row.revision);
                    if self.journal.contains_key(&at) || !journal.insert(at) {
                        return Err(twice(format!(
                            "journal row {} of instance {}",
                            row.revision, row.instance
                        )));
                    }
                }
                Write::AddDefinition(row) => {
                    let same = |other: &DefinitionRow| {
                        other.key == row.key
                            || (other.process_id == row.process_id
                                && other.tenant == row.tenant
                                && other.version == row.version)
                    };
                    if self.definitions.values().any(same) || definitions.iter().any(|other| same(other)) {
                        return Err(twice(format!(
                            "definition {} version {}",
                            row.process_id, row.version
                        )));
                    }
                    definitions.push(row);
                }
                Write::AddResource { key, .. } if self.resources.contains_key(key) => {
                    return Err(twice(format!("resource {key}")));
                }
                Write::Publish { row, .. } => {
                    variables_of(row)?;
                }
                Write::Broadcast { name, variables, .. } => {
                    signal_variables(name, variables)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn twice(what: String) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("{what} is there already; a commit wrote it a second time"),
    )
}
