//! "Why does it not move?": an answer in words and data for any instance.

use std::fmt;

use serde::Serialize;
use tidegate_engine::{Instance, TokenState, WaitKind};
use tidegate_model::{
    Cancellation, ElementInstanceKey, Hold, IncidentKey, InstanceKey, SubStatus, Timestamp,
};
use tidegate_store::{InstanceRow, JobState};
use tokio::sync::oneshot;

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{Look, Message};
use crate::parts::{Part, PauseScope};
use crate::query::read_instance;
use crate::runtime::Runtime;

/// So many calls down is looked: what waits for a child waits for what the child waits for.
const DEEPEST: usize = 8;
/// So many reasons are given; an instance with ten thousand tokens has as many.
const MOST_REASONS: usize = 100;
/// Of so many called instances it is said what they wait for.
const MOST_CHILDREN: usize = 10;

/// Why an instance does not move.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The instance.
    pub instance_key: InstanceKey,
    /// What it is doing.
    pub sub_status: SubStatus,
    /// The answer in one sentence or a few.
    pub answer: String,
    /// The reasons, what stops everything first.
    pub reasons: Vec<Reason>,
    /// How many reasons there are beyond those given.
    pub more: usize,
}

/// One reason, in data and in words.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// In words.
    pub text: String,
    /// The element that waits, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_id: Option<String>,
    /// The element instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_instance_key: Option<ElementInstanceKey>,
    /// Since when, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The rest.
    #[serde(flatten)]
    pub what: What,
}

/// What keeps an instance where it is.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum What {
    /// It has ended.
    Ended {
        /// How.
        sub_status: SubStatus,
    },
    /// An operator holds it, or one that called it.
    Held {
        /// The hold.
        #[serde(flatten)]
        hold: Hold,
    },
    /// It is being cancelled.
    Cancelling {
        /// Who asked.
        #[serde(flatten)]
        cancellation: Cancellation,
    },
    /// The runtime, its definition or its tenant takes no new work, or its shell drains.
    GateClosed {
        /// `runtime`, `definition`, `tenant` or `shell`.
        scope: &'static str,
        /// Who closed it.
        closed_by: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// The store does not take commits.
    StoreUnavailable {
        /// What it says.
        message: String,
    },
    /// The runtime cut its last cycle; it resumes by itself.
    Interrupted,
    /// Stimuli wait for their turn.
    Queued {
        /// How many.
        stimuli: u32,
    },
    /// A handler of this process works.
    ActivityRuns {
        /// For how long its cycle has run, in milliseconds.
        running_ms: u64,
    },
    /// Nothing is known to hinder it, and a handler of this process should begin.
    ActivityBegins {
        /// The job type.
        job_type: String,
    },
    /// A job failed and is tried again later.
    RetryBackoff {
        /// The job type.
        job_type: String,
        /// When.
        until: Timestamp,
    },
    /// A worker has the job.
    JobLeased {
        /// The job type.
        job_type: String,
        /// Who.
        worker: String,
        /// Until when.
        until: Option<Timestamp>,
        /// True if the lease has ended: the next worker that asks gets the job.
        has_ended: bool,
    },
    /// A job waits for a worker.
    JobOffered {
        /// The job type.
        job_type: String,
        /// True if a worker asks for this type at this moment.
        is_polled: bool,
        /// When one asked last; none since this generation began.
        last_polled_at: Option<Timestamp>,
        /// Which worker that was.
        last_worker: Option<String>,
    },
    /// A worker has reported the outcome, which waits in the queue.
    JobReported {
        /// The job type.
        job_type: String,
    },
    /// A person has to act.
    UserTask {
        /// Who has it.
        assignee: Option<String>,
    },
    /// A timer is armed.
    Timer {
        /// When it is due; while its clock stands still, as if the instance were let go now.
        due_at: Timestamp,
        /// True if its time has passed.
        is_overdue: bool,
    },
    /// A message is waited for.
    Message {
        /// Its name.
        name: String,
        /// Its correlation key.
        correlation_key: String,
    },
    /// A signal is waited for.
    Signal {
        /// Its name.
        name: String,
    },
    /// A condition is waited for.
    Condition {
        /// Its text.
        condition: String,
    },
    /// A called instance has not ended.
    Child {
        /// Its key.
        child_key: InstanceKey,
        /// Its process.
        process_id: String,
        /// Why it does not move itself.
        why: Option<Box<Why>>,
    },
    /// A token waits before a gateway for others.
    Join,
    /// A problem stopped it.
    Incident {
        /// Its key.
        incident_key: IncidentKey,
        /// Its code.
        code: String,
        /// What happened, with what to do.
        message: String,
    },
    /// Nothing is known to hinder it.
    Moves,
    /// It has neither a token nor anything to wait for: that should not be.
    NoToken,
}

impl Reason {
    fn new(text: impl fmt::Display, what: What) -> Self {
        Self {
            text: text.to_string(),
            element_id: None,
            element_instance_key: None,
            since: None,
            what,
        }
    }

    fn at(mut self, element_id: impl Into<String>, key: Option<ElementInstanceKey>) -> Self {
        self.element_id = Some(element_id.into());
        self.element_instance_key = key;
        self.since = self
            .since
            .or(key.filter(|key| *key != ElementInstanceKey::ROOT).map(born));
        self
    }

    fn since(mut self, at: Timestamp) -> Self {
        self.since = Some(at);
        self
    }
}

/// When an element instance was made: its key says so.
fn born(key: ElementInstanceKey) -> Timestamp {
    tidegate_model::id::made_at(key.get())
}

impl Runtime {
    /// Why an instance does not move: what holds it, what it waits for and since when, who could move it.
    ///
    /// # Errors
    /// Unknown instance; the store cannot be read.
    pub async fn why(&self, instance: InstanceKey) -> Result<Why, Error> {
        self.why_at(instance, 0).await
    }

    async fn why_at(&self, key: InstanceKey, depth: usize) -> Result<Why, Error> {
        let shared = self.shared().clone();
        let seen = blocking(move || {
            let Some(read) = read_instance(&shared, key)? else {
                return Ok(None);
            };
            let definition = &read.loaded.definition;
            let waits = read.instance.waiting_for(definition);
            let tokens = read.instance.tokens(definition);
            let incidents: Vec<_> = read
                .instance
                .incidents()
                .map(|(key, state)| {
                    let element = state.element_instance;
                    let id = tokens
                        .iter()
                        .find(|token| element.is_some() && token.element_instance == element);
                    let at = id.map(|token| token.element_id.to_string());
                    (key, state.code.clone(), state.message.clone(), at, element)
                })
                .collect();
            let mut jobs = std::collections::HashMap::new();
            for wait in &waits {
                if let WaitKind::Job(job_type) = &wait.kind
                    && shared.activities.get(job_type).is_none()
                    && jobs.len() < MOST_REASONS
                    && let Some(row) = shared.store.job(wait.element_instance)?
                {
                    jobs.insert(wait.element_instance, row);
                }
            }
            Ok(Some(Seen {
                row: read.row,
                instance: read.instance,
                waits,
                tokens,
                incidents,
                jobs,
            }))
        });
        let seen = seen.await?.ok_or(Error::NoSuchInstance(key))?;
        let (sender, receiver) = oneshot::channel();
        self.inner().owners.send(key, Message::Look(key, sender));
        // An owner that has ended has nothing in memory.
        let look = receiver.await.unwrap_or_default();
        let mut reasons = Vec::new();
        self.stopped_by(&seen, &look, &mut reasons);
        let (mut more, mut children) = (0, 0);
        if !seen.row.sub_status.is_finished() {
            self.incidents_of(&seen, &mut reasons);
            for wait in &seen.waits {
                if reasons.len() >= MOST_REASONS {
                    more += 1;
                    continue;
                }
                let reason = match &wait.kind {
                    WaitKind::Child { instance, process_id } => {
                        children += 1;
                        let is_looked_at = depth < DEEPEST && children <= MOST_CHILDREN;
                        self.child_of(*instance, process_id, is_looked_at.then_some(depth + 1))
                            .await
                    }
                    kind => self.waiting(&seen, &look, wait.element_instance, kind),
                };
                reasons.push(reason.at(&*wait.element_id, Some(wait.element_instance)));
            }
            for token in &seen.tokens {
                if token.element_instance.is_none() && token.state == TokenState::Waiting {
                    if reasons.len() >= MOST_REASONS {
                        more += 1;
                        continue;
                    }
                    let text = format!("a token waits before `{}` for others", token.element_id);
                    reasons.push(Reason::new(text, What::Join).at(&*token.element_id, None));
                }
            }
        }
        if reasons.is_empty() {
            reasons.push(match look.cycle {
                Some(_) => Reason::new("it moves at this moment", What::Moves),
                None if seen.tokens.is_empty() => {
                    let text = "it has neither a token nor anything to wait for; that should not be: cancel it, and report \
                                it with its history";
                    Reason::new(text, What::NoToken)
                }
                None => Reason::new("nothing is known to hinder it", What::Moves),
            });
        }
        Ok(Why {
            instance_key: key,
            sub_status: seen.row.sub_status,
            answer: answer(&reasons, more),
            reasons,
            more,
        })
    }

    /// What stops all of an instance.
    fn stopped_by(&self, seen: &Seen, look: &Look, reasons: &mut Vec<Reason>) {
        let (row, instance) = (&seen.row, &seen.instance);
        if row.sub_status.is_finished() {
            let sub_status = row.sub_status;
            let mut reason = Reason::new(
                format!("it has ended: {}", sub_status.word()),
                What::Ended { sub_status },
            );
            reason.since = row.ended_at;
            reasons.push(reason);
            return;
        }
        for hold in instance.holds() {
            let through = match hold.origin == row.key {
                true => String::new(),
                false => format!(" through instance {}", hold.origin),
            };
            let text = format!(
                "`{}` holds it{through} since {}{}; let it go with resume",
                hold.actor,
                hold.since,
                because(hold.reason.as_deref())
            );
            reasons.push(Reason::new(text, What::Held { hold: hold.clone() }).since(hold.since));
        }
        if let Some(cancellation) = instance.cancellation() {
            let text = format!(
                "`{}` cancelled it at {}{}; it ends when what it waits for has stopped",
                cancellation.actor,
                cancellation.since,
                because(cancellation.reason.as_deref())
            );
            let what = What::Cancelling {
                cancellation: cancellation.clone(),
            };
            reasons.push(Reason::new(text, what).since(cancellation.since));
        }
        self.gates_of(row, reasons);
        if let Some(error) = self.shared().store_health.lock().clone() {
            let message = error.to_string();
            let text = format!("the store does not take commits: {message}");
            reasons.push(Reason::new(text, What::StoreUnavailable { message }));
        } else if look.is_stalled {
            let message = "its last commit failed and is tried again".to_owned();
            reasons.push(Reason::new(message.clone(), What::StoreUnavailable { message }));
        }
        if row.sub_status == SubStatus::Interrupted {
            let text =
                "the runtime cut its last cycle; it resumes by itself as soon as the runtime takes work";
            reasons.push(Reason::new(text, What::Interrupted));
        }
        if look.queued > 0 {
            let stimuli = look.queued;
            let text = match stimuli {
                1 => "one stimulus that was accepted for it waits for its turn".to_owned(),
                n => format!("{n} stimuli that were accepted for it wait for their turn"),
            };
            reasons.push(Reason::new(text, What::Queued { stimuli }));
        }
    }

    fn gates_of(&self, row: &InstanceRow, reasons: &mut Vec<Reason>) {
        let quiescence = self.quiescence();
        if quiescence.is_draining() {
            let what = What::GateClosed {
                scope: "shell",
                closed_by: None,
                reason: None,
            };
            let text = format!(
                "the runtime of shell `{}` drains; the next one goes on with it",
                self.shared().shell
            );
            reasons.push(Reason::new(text, what));
        }
        if let Some(record) = self.inner().pause.record().filter(|_| quiescence.is_paused()) {
            let text = format!(
                "`{}` paused the runtime at {}{}",
                record.by,
                record.at,
                because(record.reason.as_deref())
            );
            let what = What::GateClosed {
                scope: "runtime",
                closed_by: Some(record.by),
                reason: record.reason,
            };
            reasons.push(Reason::new(text, what).since(record.at));
        }
        for pause in self.partial_pauses() {
            let scope = match &pause.part {
                Part::Definition { tenant, process_id }
                    if **tenant == *row.tenant && **process_id == *row.process_id =>
                {
                    "definition"
                }
                Part::Tenant { tenant } if **tenant == *row.tenant => "tenant",
                Part::Definition { .. } | Part::Tenant { .. } => continue,
            };
            if pause.scope == PauseScope::NewStarts && row.sub_status != SubStatus::Pending {
                continue;
            }
            let text = format!(
                "`{}` paused its {scope} at {}{}",
                pause.requested_by,
                pause.paused_at,
                because(pause.reason.as_deref())
            );
            let what = What::GateClosed {
                scope,
                closed_by: Some(pause.requested_by),
                reason: pause.reason,
            };
            reasons.push(Reason::new(text, what).since(pause.paused_at));
        }
    }

    fn incidents_of(&self, seen: &Seen, reasons: &mut Vec<Reason>) {
        for (incident_key, code, message, element_id, element) in seen.incidents.iter().take(MOST_REASONS) {
            let text = format!("incident {incident_key} ({code}): {message}");
            let what = What::Incident {
                incident_key: *incident_key,
                code: code.clone(),
                message: message.clone(),
            };
            let since = tidegate_model::id::made_at(incident_key.get());
            let mut reason = Reason::new(text, what).since(since);
            reason.element_id.clone_from(element_id);
            reason.element_instance_key = *element;
            reasons.push(reason);
        }
    }

    fn waiting(&self, seen: &Seen, look: &Look, key: ElementInstanceKey, kind: &WaitKind) -> Reason {
        let now = self.shared().now();
        match kind {
            WaitKind::Job(job_type) => self.job(seen, look, key, job_type),
            WaitKind::UserTask(assignee) => {
                let text = match assignee {
                    Some(assignee) => format!("`{assignee}` has the user task and has not completed it"),
                    None => "the user task waits for somebody who takes it".to_owned(),
                };
                let assignee = assignee.clone();
                Reason::new(text, What::UserTask { assignee })
            }
            WaitKind::Timer(due_at) => {
                let still = seen.instance.stands_still_since();
                let due_at = due_at.plus_ms(still.map_or(0, |since| now.since(since).max(0)));
                let is_overdue = due_at <= now;
                let text = match (still, is_overdue) {
                    (Some(since), _) => format!(
                        "its timer stands still since {since}; it would be due at {due_at} if the instance were let go now"
                    ),
                    (None, true) => format!("its timer was due at {due_at} and has not fired"),
                    (None, false) => format!("its timer is due at {due_at}"),
                };
                Reason::new(text, What::Timer { due_at, is_overdue })
            }
            WaitKind::Message {
                name,
                correlation_key,
            } => {
                let since = born(key);
                let with = match correlation_key.is_empty() {
                    true => String::new(),
                    false => format!(" with the key `{correlation_key}`"),
                };
                let text = format!("it waits for the message `{name}`{with} since {since}");
                let (name, correlation_key) = (name.to_string(), correlation_key.clone());
                Reason::new(
                    text,
                    What::Message {
                        name,
                        correlation_key,
                    },
                )
            }
            WaitKind::Signal(name) => {
                let text = format!("it waits for the signal `{name}`");
                Reason::new(
                    text,
                    What::Signal {
                        name: name.to_string(),
                    },
                )
            }
            WaitKind::Condition(condition) => {
                let text = format!("it waits until `{condition}` holds");
                let condition = condition.to_string();
                Reason::new(text, What::Condition { condition })
            }
            WaitKind::Child { .. } => Reason::new("a called instance has not ended", What::Join),
        }
    }

    fn job(&self, seen: &Seen, look: &Look, key: ElementInstanceKey, job_type: &str) -> Reason {
        let now = self.shared().now();
        let name = job_type.to_owned();
        if self.shared().activities.get(job_type).is_some() {
            if let Some((_, element)) = look.running.iter().find(|(job, _)| *job == key) {
                let ms = look
                    .cycle
                    .map_or(0, |cycle| u64::try_from(cycle.as_millis()).unwrap_or(u64::MAX));
                let text = format!("the handler of `{element}` works; its cycle has run for {ms} ms");
                return Reason::new(text, What::ActivityRuns { running_ms: ms });
            }
            if let Some(until) = seen.instance.job_not_before(key).filter(|until| *until > now) {
                let text = format!("its last try failed; the next one is at {until}");
                return Reason::new(
                    text,
                    What::RetryBackoff {
                        job_type: name,
                        until,
                    },
                );
            }
            let text = format!("the handler `{job_type}` has not begun");
            return Reason::new(text, What::ActivityBegins { job_type: name });
        }
        let offered = || {
            let poll = self.shared().polls.last(job_type);
            let is_polled = poll.as_ref().is_some_and(|poll| poll.present > 0);
            let text = match &poll {
                Some(poll) if is_polled => {
                    format!(
                        "the job is offered; worker `{}` asks for `{job_type}` at this moment",
                        poll.worker
                    )
                }
                Some(poll) => format!(
                    "no worker asks for `{job_type}`; the last one was `{}` at {}",
                    poll.worker, poll.at
                ),
                None => format!("no worker has asked for `{job_type}` since this runtime started"),
            };
            let what = What::JobOffered {
                job_type: job_type.to_owned(),
                is_polled,
                last_polled_at: poll.as_ref().map(|poll| poll.at),
                last_worker: poll.map(|poll| poll.worker),
            };
            Reason::new(text, what)
        };
        let Some(row) = seen.jobs.get(&key) else {
            return offered();
        };
        match row.state {
            JobState::Available | JobState::Withheld if row.not_before > now => {
                let until = row.not_before;
                let text = format!("its last try failed; the next one is offered at {until}");
                Reason::new(
                    text,
                    What::RetryBackoff {
                        job_type: name,
                        until,
                    },
                )
            }
            JobState::Available | JobState::Withheld => offered(),
            JobState::Leased | JobState::LeasedWithheld => {
                let worker = row.worker.clone().unwrap_or_default();
                let until = row.lease_until;
                let has_ended = until.is_none_or(|until| until <= now);
                let till = until.map(|until| until.to_string()).unwrap_or_default();
                let text = match has_ended {
                    true => format!(
                        "worker `{worker}` had the job until {till} and has not answered; the next worker that asks gets it"
                    ),
                    false => format!("worker `{worker}` has the job until {till}"),
                };
                let what = What::JobLeased {
                    job_type: name,
                    worker,
                    until,
                    has_ended,
                };
                Reason::new(text, what)
            }
            JobState::Reported => {
                let text = "a worker has reported the outcome of the job; it waits in the queue for its turn";
                Reason::new(text, What::JobReported { job_type: name })
            }
        }
    }

    async fn child_of(&self, child: InstanceKey, process_id: &str, depth: Option<usize>) -> Reason {
        let why = match depth {
            // Boxed: a call tree is as deep as it is.
            Some(depth) => Box::pin(self.why_at(child, depth)).await.ok().map(Box::new),
            None => None,
        };
        let because = why
            .as_ref()
            .map(|why| format!(": {}", why.answer))
            .unwrap_or_default();
        let text = format!("it waits for instance {child} of `{process_id}`, which it called{because}");
        let what = What::Child {
            child_key: child,
            process_id: process_id.to_owned(),
            why,
        };
        Reason::new(text, what)
    }
}

/// An open incident: its key, code and message, and where it is.
type Open = (
    IncidentKey,
    String,
    String,
    Option<String>,
    Option<ElementInstanceKey>,
);

struct Seen {
    row: InstanceRow,
    instance: Instance,
    waits: Vec<tidegate_engine::WaitView>,
    tokens: Vec<tidegate_engine::TokenView>,
    incidents: Vec<Open>,
    jobs: std::collections::HashMap<ElementInstanceKey, tidegate_store::JobRow>,
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

/// The first reasons as sentences.
fn answer(reasons: &[Reason], more: usize) -> String {
    const SAID: usize = 3;
    let said: Vec<&str> = reasons
        .iter()
        .take(SAID)
        .map(|reason| reason.text.as_str())
        .collect();
    let left = reasons.len().saturating_sub(SAID) + more;
    let rest = match left {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!("{}{rest}", said.join("; "))
}
