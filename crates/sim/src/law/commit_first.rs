//! No effect before its commit: what a handler, a worker, a caller or a called instance is given is on disk before.

use std::collections::BTreeSet;

use tidegate::engine::Event;
use tidegate::store::Write;

use crate::fact::{Acknowledged, Fact, Record, events};

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let mut disk = Disk::default();
    for noted in &record.facts {
        match &noted.fact {
            Fact::Applied {
                commit,
                result: Ok(outcome),
                is_repeated: false,
                ..
            } => {
                for write in &commit.writes {
                    if let Write::CreateInstance { row, .. } = write
                        && let Some(parent) = row.parent
                        && !disk.instances.contains(&parent.get())
                    {
                        broken.push(format!(
                            "instance {} was called by {parent}, which is not on disk",
                            row.key
                        ));
                    }
                    disk.write(write);
                }
                disk.stimuli.extend(outcome.stimuli.iter().map(|key| key.get()));
                disk.leased.extend(outcome.leased.iter().map(|row| row.key.get()));
            }
            Fact::HandlerBegan {
                job,
                run,
                must_be_committed: true,
                ..
            } if !disk.jobs.contains(&job.get()) => {
                broken.push(format!("handler {run} began before its job {job} was on disk"));
            }
            Fact::Acknowledged(told) if !disk.has(told) => {
                broken.push(format!("told before it was on disk: {told:?}"));
            }
            _ => {}
        }
    }
    broken
}

#[derive(Default)]
struct Disk {
    instances: BTreeSet<u64>,
    jobs: BTreeSet<u64>,
    done: BTreeSet<u64>,
    leased: BTreeSet<u64>,
    messages: BTreeSet<u64>,
    stimuli: BTreeSet<u64>,
}

impl Disk {
    fn write(&mut self, write: &Write) {
        match write {
            Write::CreateInstance { row, .. } => drop(self.instances.insert(row.key.get())),
            Write::Publish { row, .. } => drop(self.messages.insert(row.key.get())),
            // The entry of a message id names the message, also one that still stands in the queue.
            Write::SetValue { value, .. } => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.messages.extend::<Option<u64>>(number);
            }
            Write::Journal(row) => {
                for event in events(row) {
                    match event {
                        Event::JobCreated { key, .. } => drop(self.jobs.insert(key.get())),
                        Event::JobCompleted { key, .. } => drop(self.done.insert(key.get())),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn has(&self, told: &Acknowledged) -> bool {
        match told {
            Acknowledged::Started { instance, .. } | Acknowledged::Cancelled { instance, .. } => {
                self.instances.contains(&instance.get())
            }
            Acknowledged::Published {
                message, accepted, ..
            } => match accepted {
                Some(key) => self.stimuli.contains(&key.get()),
                // One that a start event takes begins an instance, and is never a row.
                None => self.messages.contains(&message.get()),
            },
            Acknowledged::Leased(job) => self.leased.contains(&job.get()),
            Acknowledged::JobDone { job, accepted, .. } => match accepted {
                Some(key) => self.stimuli.contains(&key.get()),
                None => self.done.contains(&job.get()),
            },
            Acknowledged::TaskDone { .. } => true,
        }
    }
}
