//! The store of a simulated process: the disk of its world, behind a line that is slow, fails, repeats itself and breaks off.
//!
//! A batch waits in the line until a task of the simulation takes it. Between the disk and the answer there is time, so
//! that the process can die there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate::model::{DefinitionKey, ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey, Timestamp};
use tidegate::store::memory::MemoryStore;
use tidegate::store::*;
use tokio::sync::Notify;

use crate::fact::Fact;
use crate::forge;
use crate::temper::Moment;
use crate::world::World;

/// The store of one life.
pub struct SimStore {
    world: Arc<World>,
    disk: MemoryStore,
    line: Mutex<Line>,
    arrived: Notify,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Batch>,
    /// Commits of which nobody knows whether they are on disk. A later commit takes their place.
    unsure: Vec<(u64, u64, Commit)>,
    is_closed: bool,
    is_in_hand: bool,
    /// A sabotaged store: the message that it puts behind the next one of its key.
    held: Option<(u64, Commit)>,
}

impl SimStore {
    /// The disk of a world, opened again.
    pub fn open(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            world: world.clone(),
            disk: world.disk.reopen(),
            line: Mutex::default(),
            arrived: Notify::new(),
        })
    }

    /// Works off the line for as long as the process lives.
    pub async fn work(self: Arc<Self>) {
        loop {
            let batch = self.line.lock().waiting.pop_front();
            match batch {
                Some(batch) => {
                    self.line.lock().is_in_hand = true;
                    self.commit(batch).await;
                    self.line.lock().is_in_hand = false;
                }
                None => self.arrived.notified().await,
            }
        }
    }

    async fn commit(&self, batch: Batch) {
        let Batch {
            epoch,
            commits,
            done,
            key_high,
        } = batch;
        let number = self.world.next_commit();
        self.world
            .trace(|| format!("batch {number}: {}", describe(&commits)));
        self.dawdle().await;
        if self.world.dies_at(number, Moment::Before) {
            return std::future::pending().await;
        }
        if forge::answers_first(&self.world) {
            let told = commits.iter().map(|_| Ok(Outcome::default())).collect();
            done(told);
            tokio::time::sleep(Duration::from_millis(40)).await;
            self.apply(epoch, key_high, commits, false);
            return;
        }
        let results: Vec<CommitResult> = commits
            .into_iter()
            .map(|commit| self.one(epoch, key_high, commit))
            .collect();
        if self.world.dies_at(number, Moment::Applied) {
            return std::future::pending().await;
        }
        self.dawdle().await;
        self.world
            .trace(|| format!("answer {number}: {}", outcomes(&results)));
        done(results);
        if self.world.dies_at(number, Moment::Told) {
            std::future::pending().await
        }
    }

    /// One commit meets its fate.
    fn one(&self, epoch: u64, key_high: u64, commit: Commit) -> CommitResult {
        let temper = &self.world.temper;
        let fails = self.world.fault("store", temper.fails);
        let is_unsure = !fails && self.world.fault("store", temper.unsure);
        if (fails || is_unsure) && commit.writes.iter().any(|write| matches!(write, Write::Audit(_))) {
            self.world.note(Fact::AuditFailed);
        }
        if fails {
            return failed(false);
        }
        if is_unsure {
            self.line.lock().unsure.push((epoch, key_high, commit));
            return failed(true);
        }
        if let Some(told) = forge::instead(&self.world, &commit) {
            return told;
        }
        if forge::swaps(
            &self.world,
            &commit,
            self.line.lock().held.as_ref().map(|(_, held)| held),
        ) {
            self.line.lock().held = Some((epoch, commit));
            return Ok(Outcome::default());
        }
        let result = self.apply(epoch, key_high, vec![commit.clone()], false).remove(0);
        let held = self
            .line
            .lock()
            .held
            .take_if(|(_, held)| forge::is_next(held, &commit));
        if let Some((epoch, held)) = held {
            self.apply(epoch, key_high, vec![held], false);
        }
        if result.is_ok() {
            self.line.lock().unsure.clear();
            for forged in forge::after(&self.world, &commit) {
                self.apply(epoch, key_high, vec![forged], false);
            }
            if is_fenced(&commit) && self.world.fault("store", temper.repeats) {
                self.apply(epoch, key_high, vec![commit], true);
            }
        }
        result
    }

    fn apply(&self, epoch: u64, key_high: u64, commits: Vec<Commit>, is_repeated: bool) -> Vec<CommitResult> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let slot = told.clone();
        self.disk.submit(Batch {
            epoch,
            key_high,
            commits: commits.clone(),
            done: Box::new(move |results| *slot.lock() = results),
        });
        let results = std::mem::take(&mut *told.lock());
        for (commit, result) in commits.into_iter().zip(&results) {
            self.world.note_of_disk(Fact::Applied {
                epoch,
                commit: Arc::new(commit),
                result: result.clone(),
                is_repeated,
            });
        }
        results
    }

    /// True while a batch waits for its answer.
    pub fn is_busy(&self) -> bool {
        let line = self.line.lock();
        line.is_in_hand || !line.waiting.is_empty()
    }

    /// The process is gone: what nobody knew is on disk or not.
    pub fn power_off(&self) {
        let unsure = std::mem::take(&mut self.line.lock().unsure);
        for (epoch, key_high, commit) in unsure {
            if self.world.draw("store", |random| random.chance(500)) {
                self.apply(epoch, key_high, vec![commit], false);
            }
        }
    }

    async fn dawdle(&self) {
        let temper = &self.world.temper;
        if self.world.fault("store", temper.slow) {
            let ms = self.world.draw("store", |random| random.between(500, 8_000));
            self.world.trace(|| format!("the store hangs for {ms} ms"));
            return tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        match self.world.draw("store", |random| random.below(8)) {
            0..5 => {}
            5 | 6 => tokio::task::yield_now().await,
            _ => tokio::time::sleep(Duration::from_millis(3)).await,
        }
    }

    fn read<T>(&self, read: impl FnOnce(&MemoryStore) -> Result<T, Error>) -> Result<T, Error> {
        if self.world.fault("reads", self.world.temper.read_fails) {
            self.world.trace(|| "a read fails".to_owned());
            return Err(unavailable());
        }
        if self.line.lock().is_closed {
            return Err(Error::new(ErrorKind::Closed, "the simulated store is closed"));
        }
        read(&self.disk)
    }
}

/// True if the store must refuse the commit when it comes again.
fn is_fenced(commit: &Commit) -> bool {
    commit
        .writes
        .iter()
        .any(|write| matches!(write, Write::CreateInstance { .. } | Write::UpdateInstance(_)))
}

fn failed(may_have_happened: bool) -> CommitResult {
    Err(CommitError::Failed {
        error: unavailable(),
        may_have_happened,
    })
}

fn unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "the simulated store cannot be reached")
}

fn describe(commits: &[Commit]) -> String {
    let writes = commits.iter().map(|commit| {
        let words: Vec<String> = commit.writes.iter().filter_map(word).collect();
        words.join(" ")
    });
    writes.collect::<Vec<_>>().join(" | ")
}

fn word(write: &Write) -> Option<String> {
    Some(match write {
        Write::CreateInstance { row, .. } => format!("create i{} {}", row.key, row.process_id),
        Write::UpdateInstance(update) => {
            format!("i{}.{} {}", update.key, update.revision, update.sub_status.word())
        }
        Write::Publish { row, .. } => format!("publish {} {}", row.name, row.correlation_key),
        Write::AddStimulus(row) => format!("queue {}", row.domain),
        Write::RemoveStimulus(key) => format!("unqueue {key}"),
        Write::AddDeadLetter(letter) => format!("bury {}", letter.stimulus.key),
        Write::OpenJob(row) => format!("open j{}", row.key),
        Write::CloseJob(key) => format!("close j{key}"),
        Write::LeaseJobs(_) => "lease".to_owned(),
        Write::Audit(row) => row.action.clone(),
        Write::Broadcast { name, .. } => format!("broadcast {name}"),
        _ => return None,
    })
}

fn outcomes(results: &[CommitResult]) -> String {
    let words = results.iter().map(|result| match result {
        Ok(_) => "ok".to_owned(),
        Err(CommitError::Refused(refusal)) => format!("{refusal:?}"),
        Err(CommitError::Failed {
            may_have_happened: true,
            ..
        }) => "unsure".to_owned(),
        Err(CommitError::Failed { .. }) => "failed".to_owned(),
    });
    words.collect::<Vec<_>>().join(" | ")
}

impl Store for SimStore {
    fn activate(&self) -> Result<Activation, Error> {
        self.read(|disk| disk.activate())
    }

    fn submit(&self, batch: Batch) {
        let refused = {
            let mut line = self.line.lock();
            match line.is_closed {
                true => Some(batch),
                false => {
                    line.waiting.push_back(batch);
                    None
                }
            }
        };
        match refused {
            Some(batch) => {
                let told = batch.commits.iter().map(|_| failed(false)).collect();
                (batch.done)(told);
            }
            None => self.arrived.notify_one(),
        }
    }

    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error> {
        self.read(|disk| disk.load(instance))
    }

    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error> {
        self.read(|disk| disk.recoverable(after, limit))
    }

    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error> {
        self.read(|disk| disk.timers(until, after, limit))
    }

    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error> {
        self.read(|disk| disk.stimuli(after, limit))
    }

    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error> {
        self.read(|disk| disk.definition(key))
    }

    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error> {
        self.read(|disk| disk.resource(key))
    }

    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.read(|disk| disk.value(key, now))
    }

    fn job(&self, key: ElementInstanceKey) -> Result<Option<JobRow>, Error> {
        self.read(|disk| disk.job(key))
    }

    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error> {
        self.read(|disk| disk.ended(process, until, after, limit))
    }

    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error> {
        self.read(|disk| disk.ended_beyond(process, keep))
    }

    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error> {
        self.read(|disk| disk.next_ended_process(after))
    }

    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error> {
        self.read(|disk| disk.forgotten(instance))
    }

    fn open_operations(&self) -> Result<Vec<OperationRow>, Error> {
        self.read(|disk| disk.open_operations())
    }

    fn close(&self) {
        self.line.lock().is_closed = true;
    }
}

impl Queries for SimStore {
    fn instances(&self, filter: &InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error> {
        self.read(|disk| disk.instances(filter, page))
    }

    fn instance(&self, key: InstanceKey) -> Result<Option<InstanceRow>, Error> {
        self.read(|disk| disk.instance(key))
    }

    fn counts(&self) -> Result<[u64; 9], Error> {
        self.read(|disk| disk.counts())
    }

    fn journal(&self, instance: InstanceKey, after: u64, limit: usize) -> Result<Vec<JournalRow>, Error> {
        self.read(|disk| disk.journal(instance, after, limit))
    }

    fn definitions(&self, filter: &DefinitionFilter, page: Page) -> Result<Vec<DefinitionRow>, Error> {
        self.read(|disk| disk.definitions(filter, page))
    }

    fn highest_version(&self, process_id: &str, tenant: &str) -> Result<u32, Error> {
        self.read(|disk| disk.highest_version(process_id, tenant))
    }

    fn incidents(&self, filter: &IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error> {
        self.read(|disk| disk.incidents(filter, page))
    }

    fn incident(&self, key: IncidentKey) -> Result<Option<IncidentRow>, Error> {
        self.read(|disk| disk.incident(key))
    }

    fn user_tasks(&self, filter: &UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error> {
        self.read(|disk| disk.user_tasks(filter, page))
    }

    fn user_task(&self, key: ElementInstanceKey) -> Result<Option<UserTaskRow>, Error> {
        self.read(|disk| disk.user_task(key))
    }

    fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error> {
        self.read(|disk| disk.audit(page))
    }

    fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error> {
        self.read(|disk| disk.dead_letters(page))
    }

    fn dead_letter(&self, key: StimulusKey) -> Result<Option<DeadLetterRow>, Error> {
        self.read(|disk| disk.dead_letter(key))
    }

    fn operations(&self, page: Page) -> Result<Vec<OperationRow>, Error> {
        self.read(|disk| disk.operations(page))
    }

    fn operation(&self, key: u64) -> Result<Option<OperationRow>, Error> {
        self.read(|disk| disk.operation(key))
    }

    fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error> {
        self.read(|disk| disk.operation_items(operation, outcome, after, limit))
    }

    fn queue(&self) -> Result<QueueDepth, Error> {
        self.read(|disk| disk.queue())
    }
}
