//! The commits of a round: built from residents, handed over as one batch, and what happens when they are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_engine::encode_events;
use tidegate_model::effect::{Job, SubscriptionKind};
use tidegate_model::stimulus::ChildNews;
use tidegate_model::{Cause, Effect, ElementIndex, InstanceKey, MessageKey, SubStatus, Timestamp};
use tidegate_store::{
    Awaited, Commit, CommitError, CommitResult, Error as StoreError, ErrorKind, IncidentRow, InstanceRow,
    InstanceUpdate, JobRow, JobState, JournalRow, Outcome, Refusal, StimulusRow, SubscriptionRow, TimerRow,
    UserTaskRow, Write,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{Acceptance, Started};
use crate::error::Error;
use crate::observe::Told;
use crate::options::CommitPolicy;
use crate::shared::{Counters, Shared};

use super::emitted::Emitted;
use super::pending::{Domain, Item};
use super::resident::Resident;
use super::trim;
use super::work::Ready;
use super::work::is_under_way;
use super::{Keys, LONGEST_UNCOMMITTED, Message, Owner, Reply, STALL};

/// What an owner does when the outcome of a commit is told.
pub(super) type WhenTold = Box<dyn FnOnce(&mut Owner, CommitResult) + Send>;

/// A commit that belongs to no resident, with what to do when its outcome is told.
pub(super) struct Prepared {
    pub(super) commit: Commit,
    pub(super) then: WhenTold,
}

/// What to do with one commit's outcome.
pub(super) enum Then {
    Resident(Box<After>),
    Loose(WhenTold),
}

/// What leaves once a resident's commit is told.
pub(super) struct After {
    pub(super) instance: InstanceKey,
    pub(super) incarnation: u64,
    /// The commit itself, while the gate drains: it is tried again if it fails.
    pub(super) kept: Option<Commit>,
    /// It writes nothing: it is true only if the commits before it were made.
    stands_on_earlier: bool,
    row: InstanceRow,
    jobs: Vec<Job>,
    gone: Vec<tidegate_model::ElementInstanceKey>,
    opened: Vec<Arc<str>>,
    timers: Vec<TimerRow>,
    disarmed: Vec<(u64, ElementIndex)>,
    pub(super) answers: Vec<Answer>,
    pub(super) consumed: Vec<Item>,
    /// Stimuli for others, which the commit put into the queue.
    emitted: Vec<StimulusRow>,
    /// What observers are told.
    observed: Vec<Told>,
}

/// Who is answered at a commit, and how.
pub(super) enum Answer {
    /// A start; its idempotency key is no longer in flight.
    Started(Reply<Started>, Option<String>),
    /// A start that waits for the end: it is answered only when the commit fails or the instance has ended.
    StartedAwaiting(Reply<Started>, Option<String>),
    Moved(Reply<Acceptance>),
    Row(Reply<InstanceRow>),
    Recovered(oneshot::Sender<bool>),
    /// The mark of a spilled interruption.
    Spilled(oneshot::Sender<bool>),
}

impl Owner {
    /// Hands over everything that is due to be committed, as one batch.
    pub(super) fn flush(&mut self) {
        let mut commits = Vec::new();
        let mut thens = Vec::new();
        for Prepared { commit, then } in self.loose.drain(..) {
            commits.push(commit);
            thens.push(Then::Loose(then));
        }
        let now = self.shared.now();
        let is_draining = self.shared.gate.read().is_draining();
        let mut later = Vec::new();
        for key in std::mem::take(&mut self.dirty) {
            let Some(resident) = self.residents.get_mut(&key) else {
                continue;
            };
            if !resident.is_dirty {
                continue;
            }
            if is_early(&self.shared, resident) {
                later.push(key);
                continue;
            }
            let (commit, mut after) = build(&self.shared, &mut self.keys, resident, now);
            resident.at_commit_point = false;
            if commit.writes.is_empty() && commit.expect.is_empty() {
                if resident.in_flight == 1 && resident.retry.is_empty() {
                    thens_now(self, *after);
                    continue;
                }
                // What it tells stands on commits that are not told yet.
                after.stands_on_earlier = true;
            }
            if !resident.retry.is_empty() {
                self.queue_behind(key, commit, after);
                continue;
            }
            if is_draining {
                after.kept = Some(commit.clone());
            }
            commits.push(commit);
            thens.push(Then::Resident(after));
        }
        self.dirty.append(&mut later);
        if commits.is_empty() {
            return;
        }
        self.submit(commits, thens);
    }

    /// The outcome of a batch is known.
    pub(super) fn committed(&mut self, ticket: u64, results: Vec<CommitResult>) {
        let Some((since, thens)) = self.in_flight.remove(&ticket) else {
            return;
        };
        self.shared.pace.note(results.len(), since.elapsed());
        self.shared
            .note_health(results.iter().find_map(|result| match result {
                Err(error @ CommitError::Failed { .. }) => Some(error),
                _ => None,
            }));
        for (then, result) in thens.into_iter().zip(results) {
            match then {
                Then::Loose(then) => then(self, result),
                Then::Resident(after) => match result {
                    Ok(outcome) => self.told(*after, outcome),
                    Err(error) => self.failed(after, error),
                },
            }
        }
    }

    fn told(&mut self, mut after: After, mut outcome: Outcome) {
        let is_there = self
            .residents
            .get(&after.instance)
            .is_some_and(|resident| resident.incarnation == after.incarnation);
        if after.stands_on_earlier && !is_there {
            let problem = Error::Store(StoreError::new(
                tidegate_store::ErrorKind::Internal,
                "the commit before this one was not made; the instance was reloaded, try again",
            ));
            return self.answer_all_failed(after.answers, after.consumed, &problem, None);
        }
        self.shared.observers.tell(&after.observed);
        self.send_emitted(std::mem::take(&mut after.emitted), &mut outcome);
        self.arrange(outcome);
        self.release_consumed(&after.consumed);
        for (owner, element) in &after.disarmed {
            self.shared.timers.disarmed(*owner, *element);
        }
        for timer in &after.timers {
            self.shared.timers.armed(timer);
        }
        for job_type in &after.opened {
            self.shared.job_opened(job_type);
        }
        let key = after.instance;
        self.recovering.remove(&key);
        self.dropped.remove(&key);
        if let Some(resident) = self.residents.get_mut(&key)
            && resident.incarnation == after.incarnation
        {
            resident.in_flight -= 1;
            // A job that is open again since was begun anew by what came after this commit: that run is wanted.
            let (running, instance) = (&mut resident.running, &resident.instance);
            let is_gone = |job| after.gone.contains(&job) && !instance.has_job(job);
            let gone: Vec<_> = running.extract_if(.., |running| is_gone(running.job)).collect();
            let incarnation = resident.incarnation;
            self.ready.extend(after.jobs.into_iter().map(|job| Ready {
                instance: key,
                incarnation,
                job,
            }));
            for running in gone {
                self.let_go(key, running);
            }
        }
        let has_ended = after.row.sub_status.is_finished();
        let mut ends = Vec::new();
        for answer in after.answers {
            self.answer(answer, &after.row, &mut ends);
        }
        if has_ended {
            self.free_place(&after.row);
            ends.extend(self.awaiting_end.remove(&key).unwrap_or_default());
            if !ends.is_empty() {
                let variables = self
                    .residents
                    .get(&key)
                    .map(|resident| resident.instance.variables().clone());
                for reply in ends {
                    // Whoever waited may have gone.
                    let _ = reply.send(Ok(started(&after.row, variables.clone())));
                }
            }
        } else if !ends.is_empty() {
            self.awaiting_end.entry(key).or_default().append(&mut ends);
        }
        if let Some(resident) = self.residents.get(&key)
            && resident.has_more_to_end
            && resident.in_flight == 0
        {
            self.end_more(key);
        }
        self.cut_told(key, &after.row);
        self.rest_if_settled(key);
    }

    fn answer(&mut self, answer: Answer, row: &InstanceRow, ends: &mut Vec<Reply<Started>>) {
        // A dropped receiver is somebody who hung up: the work stands.
        match answer {
            Answer::Started(reply, idempotency) => {
                if let Some(key) = idempotency {
                    self.starting.remove(&key);
                }
                let _ = reply.send(Ok(started(row, None)));
            }
            Answer::StartedAwaiting(reply, idempotency) => {
                if let Some(key) = idempotency {
                    self.starting.remove(&key);
                }
                ends.push(reply);
            }
            Answer::Moved(reply) => {
                let _ = reply.send(Ok(Acceptance::Done));
            }
            Answer::Row(reply) => {
                let _ = reply.send(Ok(row.clone()));
            }
            Answer::Recovered(done) => {
                let _ = done.send(true);
            }
            Answer::Spilled(done) => {
                let _ = done.send(true);
                // What is in memory is put away: it is brought back like any other interrupted instance.
                self.residents.remove(&row.key);
            }
        }
    }

    /// Stimuli for others stand in the queue now: each goes to the owner of its domain.
    fn send_emitted(&mut self, rows: Vec<StimulusRow>, outcome: &mut Outcome) {
        if rows.is_empty() {
            return;
        }
        self.shared
            .queue_depth
            .fetch_add(rows.len() as u64, Ordering::Relaxed);
        let keys = std::mem::take(&mut outcome.stimuli);
        for (mut row, key) in rows.into_iter().zip(keys) {
            row.key = key;
            let owner = self.owners.of_domain(&row.domain);
            if owner == self.index {
                self.queued(vec![row]);
            } else {
                self.owners.send_to(owner, Message::Queued(vec![row]));
            }
        }
    }

    /// What the store did in a commit beside what it was told: matches and expiries.
    pub(super) fn arrange(&mut self, outcome: Outcome) {
        if !outcome.expired.is_empty() {
            Counters::add(
                &self.shared.counters.messages_expired,
                outcome.expired.len() as u64,
            );
            for message in &outcome.expired {
                tracing::info!(%message, event = "MessageExpired", "a message found no taker in its time");
            }
        }
        if outcome.deliveries.is_empty() {
            return;
        }
        let now = self.shared.now();
        self.shared
            .queue_depth
            .fetch_add(outcome.deliveries.len() as u64, Ordering::Relaxed);
        let rows: Vec<StimulusRow> = outcome
            .deliveries
            .into_iter()
            .map(|delivery| StimulusRow {
                key: delivery.stimulus,
                domain: Domain::Instance(delivery.instance).text(),
                source: "http.api".to_owned(),
                payload: delivery.payload,
                accepted_at: now,
                attempts: 0,
            })
            .collect();
        self.hand_over(rows);
    }

    /// Gives queued stimuli of instances to their owners; the own ones are taken in at once.
    pub(super) fn hand_over(&mut self, rows: Vec<StimulusRow>) {
        let owners = self.owners.clone();
        let by_owner = owners.split(rows, |row| match Domain::parse(&row.domain) {
            Domain::Instance(key) => key.get(),
            Domain::Message(_) => 0,
        });
        for (owner, rows) in by_owner {
            if owner == self.index {
                self.queued(rows);
            } else {
                owners.send_to(owner, Message::Queued(rows));
            }
        }
    }

    fn release_consumed(&mut self, consumed: &[Item]) {
        let stimuli = consumed
            .iter()
            .filter(|item| matches!(item, Item::Stimulus(_)))
            .count() as u64;
        if stimuli > 0 {
            self.shared.queue_depth.fetch_sub(stimuli, Ordering::Relaxed);
        }
    }

    /// A resident's commit did not happen: what is in memory has run ahead of the truth and is dropped.
    fn failed(&mut self, after: Box<After>, error: CommitError) {
        let Some(after) = self.retry_later(after, &error) else {
            return;
        };
        let key = after.instance;
        let problem = problem_of(&error);
        tracing::warn!(instance = %key, "a commit did not happen: {problem}");
        let After {
            incarnation,
            mut answers,
            mut consumed,
            row: after_row,
            ..
        } = *after;
        let mut cut = None;
        let mut had_cycle = false;
        let mut is_cancelling = false;
        if self
            .residents
            .get(&key)
            .is_some_and(|resident| resident.incarnation == incarnation)
            && let Some(mut resident) = self.residents.remove(&key)
        {
            take_left(&mut resident, &mut answers, &mut consumed);
            had_cycle = resident.cycle.is_some();
            // Also where the lost commit was the last of it.
            is_cancelling =
                resident.instance.is_cancelling() || resident.instance.ended() == Some(SubStatus::Cancelled);
            if resident.instance.is_held() {
                // Its timers may be armed in the store and in nobody's memory any more.
                self.shared.timers.reload();
            }
            if self.shared.gate.read().is_draining() && had_cycle {
                cut = Some(resident);
            } else {
                self.let_go_all(&mut resident);
            }
            // Dropping it gives the permit back.
        }
        self.check_place(&after_row);
        let duplicate = match &error {
            CommitError::Refused(Refusal::ValuePresent(value)) => instance_of(value),
            _ => None,
        };
        if let CommitError::Refused(Refusal::TimerGone { owner, element }) = &error {
            // The timer was another's meanwhile: nothing was to be started, and nothing is tried again.
            consumed.retain(|item| !is_timer(item, *owner, *element));
            self.turns.remove(&(*owner, *element));
            self.shared.timers.reload();
            cut = None;
            had_cycle = false;
        }
        // It may be held no longer, or still be: who takes up what was put by will see.
        self.shared.held.lock().remove(&key);
        self.pending.unpark_domain(&Domain::Instance(key));
        // After that: what is put by now rests for its time.
        self.answer_all_failed(answers, consumed, &problem, duplicate);
        if let Some(resident) = cut {
            return self.save_unsaved(resident, is_ours(&error));
        }
        if (had_cycle || is_cancelling) && duplicate.is_none() {
            if !self.recovering.contains(&key) {
                self.dropped.insert(key);
            }
            self.stall(key);
        }
    }

    /// Tells everybody that a commit did not happen, and puts back into the line what it would have taken out.
    pub(super) fn answer_all_failed(
        &mut self,
        answers: Vec<Answer>,
        consumed: Vec<Item>,
        problem: &Error,
        duplicate: Option<InstanceKey>,
    ) {
        for answer in answers {
            self.answer_failed(answer, problem, duplicate);
        }
        for item in consumed {
            match &item {
                Item::Stimulus(_)
                | Item::Timer(TimerRow {
                    instance: Some(_), ..
                }) => self.pending.expect(item.domain()),
                Item::Timer(TimerRow { owner, element, .. }) => {
                    self.turns.remove(&(*owner, *element));
                }
            }
            self.put_back_later(item, problem);
        }
    }

    fn answer_failed(&mut self, answer: Answer, problem: &Error, duplicate: Option<InstanceKey>) {
        match answer {
            Answer::Started(reply, idempotency) | Answer::StartedAwaiting(reply, idempotency) => {
                if let Some(key) = idempotency {
                    self.starting.remove(&key);
                }
                match duplicate {
                    Some(instance) => self.answer_duplicate(instance, reply),
                    None => {
                        let _ = reply.send(Err(problem.clone()));
                    }
                }
            }
            Answer::Moved(reply) => {
                let _ = reply.send(Err(problem.clone()));
            }
            Answer::Row(reply) => {
                let _ = reply.send(Err(problem.clone()));
            }
            Answer::Recovered(done) => {
                let _ = done.send(true);
            }
            Answer::Spilled(done) => {
                let _ = done.send(false);
            }
        }
    }

    /// Instances whose commit failed go on from what is stored.
    pub(super) fn retry_stalled(&mut self) {
        let now = Instant::now();
        if self.pending_rests_until.is_some_and(|until| until <= now) {
            self.pending_rests_until = None;
        }
        while let Some(entry) = self.stalled.first_entry() {
            if *entry.key() > now {
                return;
            }
            for key in entry.remove() {
                self.go_on(key);
            }
        }
    }

    /// Goes on with an instance that stands still: its commit failed, or its recovery met a closed gate.
    pub(super) fn go_on(&mut self, key: InstanceKey) {
        let (done, _) = oneshot::channel();
        let found = match self.residents.get(&key) {
            // In memory it may be ahead of what is stored: let go, and that is not told yet.
            Some(resident) if resident.left.is_some() => Ok(Some(resident.sub_status(false))),
            Some(_) | None => {
                let row = self.shared.store.instance(key);
                row.map(|row| row.map(|row| row.sub_status))
            }
        };
        match found {
            // That starts nothing.
            Ok(Some(SubStatus::Cancelling)) => {
                self.dropped.remove(&key);
                self.recovering.remove(&key);
                self.resume_cancel(key);
            }
            Ok(Some(found)) if !self.shared.gate.read().is_accepting() && is_under_way(found) => {
                self.held_recoveries.push(key);
            }
            Ok(Some(found)) if is_under_way(found) => self.enter(key, done),
            Ok(_) => {
                self.dropped.remove(&key);
                self.recovering.remove(&key);
            }
            Err(error) => {
                tracing::warn!(instance = %key, "an instance has to wait until it can be read: {error}");
                self.stall(key);
            }
        }
    }

    /// An instance is tried again in a while.
    pub(super) fn stall(&mut self, key: InstanceKey) {
        self.stalled.entry(Instant::now() + STALL).or_default().push(key);
    }
}

/// What of a resident's answers and consumed items no commit has taken along, and what its waiting commits hold.
pub(super) fn take_left(resident: &mut Resident, answers: &mut Vec<Answer>, consumed: &mut Vec<Item>) {
    for retry in resident.retry.drain(..) {
        let After {
            answers: mut more,
            consumed: mut also,
            ..
        } = *retry.after;
        answers.append(&mut more);
        consumed.append(&mut also);
    }
    answers.append(&mut resident.answers);
    consumed.append(&mut resident.consumed);
}

fn is_timer(item: &Item, owner: u64, element: ElementIndex) -> bool {
    matches!(item, Item::Timer(row) if row.owner == owner && row.element == element)
}

/// False if the store belongs to a later generation, or was closed by us: then there is nothing of ours to save.
fn is_ours(error: &CommitError) -> bool {
    match error {
        CommitError::Failed { error, .. } => !matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Closed),
        CommitError::Refused(_) => true,
    }
}

/// True if a commit may still wait for more of the cycle.
fn is_early(shared: &Shared, resident: &Resident) -> bool {
    shared.options.commit_policy == CommitPolicy::Cycle
        && !resident.is_at_rest()
        && resident.answers.is_empty()
        && resident.consumed.is_empty()
        && !resident.is_marked
        && !resident.at_commit_point
        && resident
            .uncommitted_since
            .is_some_and(|since| since.elapsed() < LONGEST_UNCOMMITTED)
}

/// Nothing had to be written after all.
fn thens_now(owner: &mut Owner, after: After) {
    owner.told(after, Outcome::default());
}

/// The next commit of a resident.
fn build(shared: &Shared, keys: &mut Keys, resident: &mut Resident, now: Timestamp) -> (Commit, Box<After>) {
    let key = resident.key();
    let mut after = Box::new(After {
        instance: key,
        incarnation: resident.incarnation,
        kept: None,
        stands_on_earlier: false,
        row: resident.row.clone(),
        jobs: Vec::new(),
        gone: Vec::new(),
        opened: Vec::new(),
        timers: Vec::new(),
        disarmed: Vec::new(),
        answers: std::mem::take(&mut resident.answers),
        consumed: std::mem::take(&mut resident.consumed),
        emitted: Vec::new(),
        observed: Vec::new(),
    });
    let effects = std::mem::take(&mut resident.effects);
    let mut writes = Vec::new();
    translate(shared, keys, resident, effects, now, &mut writes, &mut after);
    after.opened.append(&mut resident.offered);
    for row in resident.kept.drain(..) {
        writes.push(Write::AddStimulus(row.clone()));
        after.emitted.push(row);
    }
    resident.done_in_process.clear();
    resident.waiting_jobs += after.jobs.len() as u32;
    let sub_status = resident.sub_status(!after.jobs.is_empty());
    let has_news =
        !resident.events.is_empty() || sub_status != resident.row.sub_status || !resident.is_created;
    let riders = std::mem::take(&mut resident.riders);
    // The next turn of a timer start event.
    after.timers.extend(riders.iter().filter_map(|write| match write {
        Write::ArmTimer(row) => Some(row.clone()),
        _ => None,
    }));
    let expect = std::mem::take(&mut resident.expect);
    let mut commit = Commit {
        expect,
        writes: Vec::with_capacity(2 + writes.len() + riders.len()),
    };
    if shared.observers.is_any() {
        let definition = &resident.loaded.definition;
        after.observed = shared.observers.read(
            definition,
            &resident.row,
            &resident.events,
            resident.first_sequence,
        );
    }
    if has_news || !writes.is_empty() {
        write_row(shared, resident, sub_status, now, &mut commit.writes);
        after.row = resident.row.clone();
    }
    commit.writes.append(&mut writes);
    commit.writes.extend(riders);
    resident.is_dirty = false;
    resident.uncommitted_since = None;
    resident.in_flight += 1;
    (commit, after)
}

fn write_row(
    shared: &Shared,
    resident: &mut Resident,
    sub_status: SubStatus,
    now: Timestamp,
    writes: &mut Vec<Write>,
) {
    /// Below this much journal, bringing a state up to date costs less than writing it.
    const LEAST_JOURNAL: usize = 1_024;
    let key = resident.key();
    let events = std::mem::take(&mut resident.events);
    let mut payload = (!events.is_empty()).then(|| encode_events(&events));
    let new_bytes = payload.as_ref().map_or(0, Vec::len);
    // A state is rewritten only when the journal since the last one outweighs it.
    resident.journal_bytes += new_bytes;
    let is_due =
        resident.journal_bytes > LEAST_JOURNAL.max(resident.state_bytes) && !sub_status.is_finished();
    let trim = match is_due {
        true => trim::due(shared, resident, events, now),
        false => None,
    };
    if let Some(trim) = &trim {
        payload = Some(trim.payload.clone());
    }
    let must_be_whole = std::mem::take(&mut resident.writes_state);
    let state = (is_due || must_be_whole).then(|| resident.instance.encode());
    if let Some(state) = &state {
        resident.state_bytes = state.len();
        resident.journal_bytes = 0;
    }
    let row = &mut resident.row;
    if sub_status != SubStatus::Executing {
        row.attempts = 0;
    }
    row.revision += 1;
    row.sub_status = sub_status;
    row.incident_count = u32::try_from(resident.instance.incident_count()).unwrap_or(u32::MAX);
    row.ended_at = sub_status.is_finished().then_some(now);
    if resident.is_created {
        writes.push(Write::UpdateInstance(InstanceUpdate {
            key,
            revision: row.revision,
            sub_status,
            incident_count: row.incident_count,
            attempts: row.attempts,
            ended_at: row.ended_at,
            state,
        }));
    } else {
        resident.is_created = true;
        writes.push(Write::CreateInstance {
            row: Box::new(row.clone()),
            state,
        });
    }
    if let Some(payload) = payload {
        writes.push(Write::Journal(JournalRow {
            instance: key,
            revision: row.revision,
            first_sequence: resident.first_sequence,
            payload,
        }));
    }
    writes.extend(trim.map(|trim| trim.write));
}

/// Effects as rows of the same commit, and as what leaves after it.
fn translate(
    shared: &Shared,
    keys: &mut Keys,
    resident: &Resident,
    effects: Vec<Effect>,
    now: Timestamp,
    writes: &mut Vec<Write>,
    after: &mut After,
) {
    let instance = resident.key();
    let row = &resident.row;
    for effect in effects {
        match effect {
            Effect::RunJob(job) => place(shared, resident, job, now, writes, after),
            Effect::JobGone(job) => {
                let waiting = after.jobs.len();
                after.jobs.retain(|waiting| waiting.key != job);
                let was_in_process = after.jobs.len() < waiting
                    || resident.done_in_process.contains(&job)
                    || resident.running.iter().any(|running| running.job == job);
                after.gone.push(job);
                if !was_in_process {
                    writes.push(Write::CloseJob(job));
                }
            }
            Effect::OpenUserTask(task) => writes.push(Write::OpenUserTask(Box::new(UserTaskRow {
                key: task.key,
                instance,
                process_id: row.process_id.clone(),
                tenant: row.tenant.clone(),
                element_id: task.element_id,
                name: task.name.map(|name| name.to_string()),
                assignee: task.assignee,
                candidate_groups: task.candidate_groups,
                details: task.details,
                created_at: now,
            }))),
            Effect::CloseUserTask(task) => writes.push(Write::CloseUserTask(task)),
            // The state has it; it is armed when the instance is let go.
            Effect::ArmTimer(_) if resident.instance.is_held() => {}
            Effect::ArmTimer(timer) => {
                let row = TimerRow {
                    due_at: timer.due_at,
                    owner: timer.owner.get(),
                    element: timer.element,
                    instance: Some(instance),
                    fired: 0,
                };
                after.timers.push(row.clone());
                writes.push(Write::ArmTimer(row));
            }
            Effect::DisarmTimer { owner, element } => {
                after
                    .timers
                    .retain(|row| row.owner != owner.get() || row.element != element);
                after.disarmed.push((owner.get(), element));
                writes.push(Write::DisarmTimer {
                    owner: owner.get(),
                    element,
                });
            }
            Effect::Subscribe(subscription) => writes.push(Write::Subscribe {
                row: SubscriptionRow {
                    awaited: match subscription.kind {
                        SubscriptionKind::Message => Awaited::Message,
                        SubscriptionKind::Signal => Awaited::Signal,
                    },
                    owner: subscription.owner,
                    element: subscription.element,
                    instance,
                    process_id: row.process_id.clone(),
                    tenant: row.tenant.clone(),
                    message_name: subscription.message_name,
                    correlation_key: subscription.correlation_key,
                    once: subscription.once,
                    ends: subscription.ends,
                },
                now,
            }),
            Effect::Unsubscribe { owner, element } => writes.push(Write::Unsubscribe { owner, element }),
            Effect::RaiseIncident(incident) => writes.push(Write::OpenIncident(Box::new(IncidentRow {
                key: incident.key,
                instance,
                process_id: row.process_id.clone(),
                tenant: row.tenant.clone(),
                element_id: incident.element_id.map(|id| id.to_string()),
                element_instance: incident.element_instance,
                code: incident.code,
                message: incident.message,
                raised_at: now,
            }))),
            Effect::CloseIncident(incident) => writes.push(Write::CloseIncident(incident)),
            Effect::Ended(ended) => emitted(shared, now, writes, after).tell_end(resident, ended),
            Effect::PublishMessage {
                name,
                correlation_key,
                variables,
                ttl_ms,
                message_id,
            } => {
                let message = MessageKey(keys.fresh(now));
                let to = (name, correlation_key);
                emitted(shared, now, writes, after).publish(
                    row,
                    (message, message_id),
                    to,
                    variables,
                    ttl_ms,
                );
            }
            Effect::BroadcastSignal { name, variables } => {
                emitted(shared, now, writes, after).broadcast(row, name, variables);
            }
            Effect::StartChild(child) => emitted(shared, now, writes, after).start_child(resident, child),
            Effect::CancelChild {
                instance,
                is_awaited,
                patience_ms,
                ..
            } => emitted(shared, now, writes, after).cancel_child(row, instance, is_awaited, patience_ms),
            Effect::HoldChild { instance, hold } => {
                emitted(shared, now, writes, after).hold_child(instance, hold);
            }
            Effect::ReleaseChild { instance, origins } => {
                emitted(shared, now, writes, after).release_child(row, instance, origins);
            }
            Effect::EscalateToParent { code, variables } => {
                emitted(shared, now, writes, after)
                    .tell_caller(row, ChildNews::Escalated { code, variables });
            }
        }
    }
}

fn emitted<'a>(
    shared: &'a Shared,
    now: Timestamp,
    writes: &'a mut Vec<Write>,
    after: &'a mut After,
) -> Emitted<'a> {
    Emitted {
        shared,
        now,
        writes,
        queued: &mut after.emitted,
    }
}

/// Who does a job: a handler of this process, or an external worker. Back-off of the former is a timer row.
fn place(
    shared: &Shared,
    resident: &Resident,
    job: Job,
    now: Timestamp,
    writes: &mut Vec<Write>,
    after: &mut After,
) {
    let is_held = resident.instance.is_held();
    if shared.activities.get(&job.job_type).is_some() {
        match job.not_before {
            // The state has it; it begins when the instance is let go.
            _ if is_held => {}
            Some(at) if at > now => {
                let row = TimerRow {
                    due_at: at,
                    owner: job.key.get(),
                    element: job.element,
                    instance: Some(resident.key()),
                    fired: 0,
                };
                after.timers.push(row.clone());
                writes.push(Write::ArmTimer(row));
            }
            _ => after.jobs.push(job),
        }
        return;
    }
    after.opened.push(job.job_type.clone());
    let headers: BTreeMap<&str, &str> = job.headers.iter().map(|(k, v)| (&**k, &**v)).collect();
    let row = &resident.row;
    writes.push(Write::OpenJob(Box::new(JobRow {
        key: job.key,
        instance: row.key,
        definition: row.definition,
        process_id: row.process_id.clone(),
        tenant: row.tenant.clone(),
        element_id: job.element_id,
        job_type: job.job_type,
        headers: serde_json::to_string(&headers).unwrap_or_else(|_| "{}".to_owned()),
        variables: job.variables.to_json(),
        retries: job.retries,
        state: if is_held {
            JobState::Withheld
        } else {
            JobState::Available
        },
        not_before: job.not_before.unwrap_or(now),
        worker: None,
        lease_token: None,
        lease_until: None,
    })));
}

pub(super) fn started(row: &InstanceRow, variables: Option<tidegate_model::Variables>) -> Started {
    Started {
        instance: row.key,
        definition: row.definition,
        process_id: row.process_id.to_string(),
        version: row.version,
        sub_status: row.sub_status,
        accepted: None,
        variables,
    }
}

/// What a caller is told about a commit that did not happen.
pub(crate) fn problem_of(error: &CommitError) -> Error {
    match error {
        CommitError::Failed { error, .. } => Error::Store(error.clone()),
        CommitError::Refused(Refusal::LeaseStale(job)) => Error::StaleLease(job.get()),
        CommitError::Refused(Refusal::InstanceEnded(instance)) => Error::NoSuchInstance(*instance),
        CommitError::Refused(refusal) => Error::Store(StoreError::new(
            tidegate_store::ErrorKind::Internal,
            format!("the commit was refused ({refusal:?}); the instance was reloaded, try again"),
        )),
    }
}

/// An instance's key as it is kept under an idempotency key.
pub(super) fn instance_of(value: &[u8]) -> Option<InstanceKey> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The cause of what a client asked for.
pub(super) fn client(actor: &str) -> Cause {
    Cause::Client {
        actor: actor.to_owned(),
    }
}
