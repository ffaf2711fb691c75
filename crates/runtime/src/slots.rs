//! Which instances of a process are live, where their number is limited, and who waits for a place.
//!
//! A place is held by an instance and not counted: it is free as soon as its holder has ended or is not there, whatever
//! happened to it. After a restart the holders are read from the instances; a reconciler compares now and then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tidegate_engine::ProcessSettings;
use tidegate_model::{InstanceKey, SubStatus, Timestamp};
use tidegate_store::{Error as StoreError, InstanceFilter, Page, Store};

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{Message, Owners};
use crate::runtime::Runtime;
use crate::settings::{
    DefinitionSettings, EffectiveSettings, Retention, SettingsView, WhenFull, decode, entry,
};
use crate::shared::Shared;

/// A holder that the store does not know is on its way into it, for so long at most.
const ON_ITS_WAY: Duration = Duration::from_secs(60);
/// Instances that are read at a time.
const PAGE: usize = 1_000;

/// A tenant and a process id.
type Name = (Arc<str>, Arc<str>);

/// Whether an instance may begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may.
    Taken,
    /// It waits; these are to be cancelled for it.
    Wait(Vec<InstanceKey>),
    /// It may not, and does not wait.
    Refused(u32),
}

/// One process id in a tenant: its settings, and who is live where that is limited.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) tenant: Arc<str>,
    pub(crate) process_id: Arc<str>,
    defaults: Retention,
    known: RwLock<(DefinitionSettings, ProcessSettings)>,
    /// 0 for no limit.
    journal_limit: AtomicU64,
    limited: Arc<AtomicUsize>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    limit: Option<u32>,
    when_full: WhenFull,
    /// True once those that were live before are among the holders.
    is_derived: bool,
    holders: BTreeMap<InstanceKey, Instant>,
    /// Holders and waiting ones that are being cancelled for a newer start.
    leaving: BTreeSet<InstanceKey>,
    /// By the order of acceptance.
    waiting: BTreeMap<(Timestamp, u64), InstanceKey>,
}

impl Process {
    fn new(key: Name, defaults: Retention, limited: Arc<AtomicUsize>) -> Self {
        let process = Self {
            tenant: key.0,
            process_id: key.1,
            defaults,
            known: RwLock::default(),
            journal_limit: AtomicU64::new(0),
            limited,
            places: Mutex::default(),
        };
        process.apply();
        process
    }

    /// What an operator set.
    pub(crate) fn set(&self, settings: DefinitionSettings) {
        self.known.write().0 = settings;
        self.apply();
    }

    /// What the newest model says.
    pub(crate) fn set_model(&self, settings: ProcessSettings) {
        self.known.write().1 = settings;
        self.apply();
    }

    pub(crate) fn effective(&self) -> EffectiveSettings {
        let known = self.known.read();
        EffectiveSettings::of(&known.0, &known.1, &self.defaults)
    }

    fn apply(&self) {
        let effective = self.effective();
        self.journal_limit
            .store(effective.journal_limit.unwrap_or(0), Ordering::Relaxed);
        let mut places = self.places.lock();
        match (places.limit.is_some(), effective.max_instances.is_some()) {
            (false, true) => {
                places.is_derived = false;
                self.limited.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                self.limited.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        places.limit = effective.max_instances;
        places.when_full = effective.when_full;
    }

    pub(crate) fn view(&self) -> SettingsView {
        // Before the places are locked, and with no lock held on: whoever sets something waits for both.
        let set = self.known.read().0;
        let effective = self.effective();
        let places = self.places.lock();
        SettingsView {
            tenant: self.tenant.to_string(),
            process_id: self.process_id.to_string(),
            set,
            effective,
            live: places.holders.keys().copied().collect(),
            waiting: places.waiting.len(),
        }
    }

    /// How many journal entries of a live instance are kept at least; none for all.
    pub(crate) fn journal_limit(&self) -> Option<u64> {
        Some(self.journal_limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }

    /// Whether `instance` may begin now. `place` is its place in the order of acceptance, if it has one yet: then it waits
    /// for its turn there.
    pub(crate) fn turn(&self, instance: InstanceKey, place: Option<(Timestamp, u64)>) -> Turn {
        if self.limited.load(Ordering::Relaxed) == 0 {
            return Turn::Taken;
        }
        let mut places = self.places.lock();
        let Some(limit) = places.limit else {
            return Turn::Taken;
        };
        if places.holders.contains_key(&instance) {
            return Turn::Taken;
        }
        let is_first = places
            .waiting
            .values()
            .next()
            .is_none_or(|first| *first == instance);
        let has_room = places.holders.len() < limit as usize;
        if places.is_derived && has_room && is_first {
            places.holders.insert(instance, Instant::now());
            places.waiting.retain(|_, waiting| *waiting != instance);
            return Turn::Taken;
        }
        if places.is_derived && places.when_full == WhenFull::Skip {
            return Turn::Refused(limit);
        }
        let mut victims = Vec::new();
        if places.is_derived && places.when_full == WhenFull::Replace {
            victims = places.victims(place, limit);
        }
        if let Some(place) = place {
            places.waiting.insert(place, instance);
        }
        Turn::Wait(victims)
    }

    /// An instance has ended, or never came to be. Gives those whose turn has come.
    pub(crate) fn release(&self, instance: InstanceKey) -> Vec<InstanceKey> {
        let mut places = self.places.lock();
        places.holders.remove(&instance);
        places.leaving.remove(&instance);
        places.waiting.retain(|_, waiting| *waiting != instance);
        places.grant()
    }

    /// Those whose turn has come by a change of the settings.
    fn granted(&self) -> Vec<InstanceKey> {
        self.places.lock().grant()
    }

    fn is_open(&self) -> bool {
        let places = self.places.lock();
        places.limit.is_some() && !places.is_derived
    }

    fn derived(&self, live: Vec<InstanceKey>) {
        let now = Instant::now();
        let mut places = self.places.lock();
        for key in live {
            places.holders.entry(key).or_insert(now);
        }
        places.is_derived = true;
    }

    /// Holders, and since when.
    fn holders(&self) -> Vec<(InstanceKey, Instant)> {
        let places = self.places.lock();
        places.holders.iter().map(|(key, since)| (*key, *since)).collect()
    }

    /// Reads which instances are live.
    fn derive(&self, store: &dyn Store) -> Result<(), StoreError> {
        let filter = InstanceFilter {
            sub_statuses: SubStatus::ALL
                .into_iter()
                .filter(|status| !status.is_finished() && *status != SubStatus::Pending)
                .collect(),
            process_id: Some(self.process_id.to_string()),
            tenant: Some(self.tenant.to_string()),
            ..InstanceFilter::default()
        };
        let mut live = Vec::new();
        let mut page = Page::first(PAGE);
        loop {
            let rows = store.instances(&filter, page)?;
            page.after = rows.last().map(|row| row.key.get());
            let is_last = rows.len() < PAGE;
            live.extend(rows.into_iter().map(|row| row.key));
            if is_last {
                break;
            }
        }
        self.derived(live);
        Ok(())
    }
}

impl Places {
    /// Gives free places to those who wait, the first first.
    fn grant(&mut self) -> Vec<InstanceKey> {
        let mut granted = Vec::new();
        let Some(limit) = self.limit else {
            self.holders.clear();
            self.leaving.clear();
            granted.extend(std::mem::take(&mut self.waiting).into_values());
            return granted;
        };
        while self.is_derived && self.holders.len() < limit as usize {
            let Some((_, first)) = self.waiting.pop_first() else {
                break;
            };
            self.holders.insert(first, Instant::now());
            granted.push(first);
        }
        granted
    }

    /// Who has to go for a newer start: the oldest holders, and whoever waits.
    fn victims(&mut self, place: Option<(Timestamp, u64)>, limit: u32) -> Vec<InstanceKey> {
        let leaving_holders = self
            .holders
            .keys()
            .filter(|key| self.leaving.contains(key))
            .count();
        let too_many = (self.holders.len() + 1).saturating_sub(limit as usize + leaving_holders);
        let staying = self.holders.keys().filter(|key| !self.leaving.contains(key));
        let oldest = staying.copied().take(too_many);
        let is_older = |at: &(Timestamp, u64)| place.is_none_or(|place| *at < place);
        let waiting = self
            .waiting
            .iter()
            .filter(|(at, _)| is_older(at))
            .map(|(_, key)| *key);
        let older = waiting.filter(|key| !self.leaving.contains(key));
        let victims: Vec<InstanceKey> = oldest.chain(older).collect();
        self.leaving.extend(victims.iter().copied());
        victims
    }
}

/// The processes of a shell, made when they are first asked for.
#[derive(Debug)]
pub(crate) struct Processes {
    by_name: RwLock<HashMap<Name, Arc<Process>>>,
    defaults: Retention,
    /// How many of them have a limit.
    limited: Arc<AtomicUsize>,
}

impl Processes {
    pub(crate) fn new(defaults: Retention) -> Self {
        Self {
            by_name: RwLock::default(),
            defaults,
            limited: Arc::default(),
        }
    }

    /// True if any process is limited.
    pub(crate) fn has_limits(&self) -> bool {
        self.limited.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn of(&self, tenant: &str, process_id: &str) -> Arc<Process> {
        let key: Name = (Arc::from(tenant), Arc::from(process_id));
        if let Some(found) = self.by_name.read().get(&key) {
            return found.clone();
        }
        let mut by_name = self.by_name.write();
        by_name
            .entry(key.clone())
            .or_insert_with(|| Arc::new(Process::new(key, self.defaults, self.limited.clone())))
            .clone()
    }

    fn all(&self) -> Vec<Arc<Process>> {
        self.by_name.read().values().cloned().collect()
    }
}

/// Reads what was set for the known processes, and who is live where that is limited. Before any owner runs.
pub(crate) fn activate(shared: &Shared) -> Result<(), StoreError> {
    for process in shared.definitions.processes.all() {
        let kept = entry(&process.tenant, &process.process_id);
        let bytes = shared.store.value(&kept, shared.now())?;
        process.set(decode(bytes.as_deref()));
        if process.is_open() {
            process.derive(&*shared.store)?;
        }
    }
    Ok(())
}

/// Compares the holders with the instances: a place whose holder has ended, or is not there, is given on.
pub(crate) async fn reconcile(shared: &Arc<Shared>, owners: &Owners) {
    for process in shared.definitions.processes.all() {
        let (of_store, of_process) = (shared.store.clone(), process.clone());
        let looked = blocking(move || {
            let mut gone = Vec::new();
            for (key, since) in of_process.holders() {
                let is_gone = match of_store.instance(key)? {
                    Some(row) => row.sub_status.is_finished(),
                    None => since.elapsed() > ON_ITS_WAY,
                };
                if is_gone {
                    gone.push(key);
                }
            }
            Ok(gone)
        });
        let Ok(gone) = looked.await else { return };
        for key in gone {
            tracing::warn!(instance = %key, process_id = &*process.process_id, event = "PlaceReconciled", "an instance that is over still had a place; it is given on");
            tell(owners, process.release(key));
        }
    }
}

fn tell(owners: &Owners, granted: Vec<InstanceKey>) {
    for key in granted {
        owners.send(key, Message::TurnCame(key));
    }
}

impl Runtime {
    /// After a change of the settings or the model: where the number of instances has become limited, those that are live
    /// are read once everything on its way has come to be; then whoever's turn it is goes on.
    pub(crate) async fn settle_limits(&self, process: &Arc<Process>) -> Result<(), Error> {
        if process.is_open() {
            self.inner().owners.barrier().await;
            // Outcomes are told in order: what was submitted before is there after this.
            if let Err(tidegate_store::CommitError::Failed { error, .. }) =
                self.shared().commit(tidegate_store::Commit::default()).await
            {
                return Err(error.into());
            }
            let (store, of_process) = (self.shared().store.clone(), process.clone());
            blocking(move || of_process.derive(&*store)).await?;
        }
        tell(&self.inner().owners, process.granted());
        Ok(())
    }

    /// After a deployment: what was set for its processes is read, and their limits are settled.
    pub(crate) async fn settle_processes(&self, tenant: &str, process_ids: Vec<String>) -> Result<(), Error> {
        for process_id in process_ids {
            let shared = self.shared().clone();
            let process = shared.definitions.processes.of(tenant, &process_id);
            let kept = entry(tenant, &process_id);
            let bytes = blocking(move || shared.store.value(&kept, shared.now())).await?;
            process.set(decode(bytes.as_deref()));
            self.settle_limits(&process).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(limit: u32, when_full: WhenFull) -> Process {
        let name = (Arc::from("t"), Arc::from("p"));
        let process = Process::new(name, Retention::default(), Arc::default());
        process.set(DefinitionSettings {
            max_instances: Some(limit),
            when_full: Some(when_full),
            ..DefinitionSettings::default()
        });
        process.derived(Vec::new());
        process
    }

    fn turn(process: &Process, key: u64) -> Turn {
        process.turn(InstanceKey(key), Some((Timestamp::from_ms(key as i64), key)))
    }

    #[test]
    fn whoever_waits_goes_in_the_order_of_acceptance() {
        let process = process(1, WhenFull::Queue);
        assert_eq!(turn(&process, 1), Turn::Taken);
        assert_eq!(turn(&process, 1), Turn::Taken);
        assert_eq!(turn(&process, 3), Turn::Wait(vec![]));
        assert_eq!(turn(&process, 2), Turn::Wait(vec![]));
        assert_eq!(process.release(InstanceKey(9)), []);
        assert_eq!(process.release(InstanceKey(1)), [InstanceKey(2)]);
        assert_eq!(process.release(InstanceKey(1)), []);
        assert_eq!(turn(&process, 4), Turn::Wait(vec![]));
        assert_eq!(process.release(InstanceKey(3)), []);
        assert_eq!(process.release(InstanceKey(2)), [InstanceKey(4)]);
    }

    #[test]
    fn a_newer_start_replaces_the_oldest_and_whoever_waits() {
        let process = process(2, WhenFull::Replace);
        assert_eq!(turn(&process, 1), Turn::Taken);
        assert_eq!(turn(&process, 2), Turn::Taken);
        assert_eq!(turn(&process, 3), Turn::Wait(vec![InstanceKey(1)]));
        assert_eq!(turn(&process, 3), Turn::Wait(vec![]));
        assert_eq!(turn(&process, 4), Turn::Wait(vec![InstanceKey(3)]));
        assert_eq!(process.release(InstanceKey(3)), []);
        assert_eq!(process.release(InstanceKey(1)), [InstanceKey(4)]);
    }

    #[test]
    fn a_limit_that_is_lifted_lets_everybody_go() {
        let process = process(1, WhenFull::Queue);
        assert_eq!(turn(&process, 1), Turn::Taken);
        assert_eq!(turn(&process, 2), Turn::Wait(vec![]));
        process.set(DefinitionSettings::default());
        assert_eq!(process.granted(), [InstanceKey(2)]);
        assert_eq!(turn(&process, 3), Turn::Taken);
    }
}
