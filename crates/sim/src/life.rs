//! One life of the process: from the activation of a generation to its end, by a drain or by a crash.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate::status::DrainTrigger;
use tidegate::store::{Queries as _, Store as _};
use tidegate::{Options, PausePersistence, Runtime, stepped};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::client::Clients;
use crate::fact::Fact;
use crate::scheduler::Scheduler;
use crate::source::SimSource;
use crate::store::SimStore;
use crate::temper::End;
use crate::world::{WallClock, World};
use crate::{handler, model, operator};

/// How long the calm may take to bring everything to its end.
const CALM: Duration = Duration::from_secs(900);
/// How long anything that an operator waits for may take: beyond it, it hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// Lives one life. True if the world is settled and no other follows.
pub fn live(world: &Arc<World>, clients: &Arc<Clients>, number: usize, unsettled: &mut Vec<String>) -> bool {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        // The crash is looked for after every task.
        .event_interval(1)
        .build()
        .expect("an async runtime");
    clients.forget_taken();
    let scheduler = Scheduler::new(world);
    let stepping = stepped::on_this_thread(scheduler.clone());
    let life = Life {
        world: world.clone(),
        clients: clients.clone(),
        scheduler,
        is_last: number >= world.temper.lives.len(),
        end: world.temper.lives.get(number).copied(),
        turns_calm: number + 1 == world.temper.lives.len() && !world.temper.is_calm_restarted,
    };
    let is_over = tokio.block_on(async {
        world.begin_life(number);
        let store = SimStore::open(world);
        let is_over = tokio::select! {
            biased;
            () = world.crashed() => false,
            still = life.run(store.clone()) => {
                unsettled.extend(still.iter().flatten().cloned());
                still.is_some()
            }
        };
        if world.has_crashed() {
            store.power_off();
        }
        world.end_life();
        is_over
    });
    life.scheduler.watch(None);
    drop(tokio);
    drop(stepping);
    is_over
}

struct Life {
    world: Arc<World>,
    clients: Arc<Clients>,
    scheduler: Arc<Scheduler>,
    is_last: bool,
    end: Option<End>,
    turns_calm: bool,
}

impl Life {
    /// None if another life follows, else what has not come to its end.
    async fn run(&self, store: Arc<SimStore>) -> Option<Vec<String>> {
        let world = &self.world;
        let mut pump = JoinSet::new();
        pump.spawn(store.clone().work());
        if self.is_last {
            world.calm_down();
        }
        let sources = SimSource::all(world);
        let runtime = self.start(&store, &sources).await;
        self.scheduler.watch(Some(&runtime));
        let mut outside = self.outside(&runtime, sources);
        let mut unsettled = None;
        match self.end {
            Some(end) if !self.turns_calm => self.await_end(end, &runtime).await,
            Some(_) => {
                sleep(Duration::from_millis(world.temper.life_ms)).await;
                world.calm_down();
                unsettled = Some(self.settle().await);
            }
            None => unsettled = Some(self.settle().await),
        }
        self.drain(&runtime).await;
        // Nobody outside asks any more: what is left is the runtime's.
        outside.abort_all();
        while outside.join_next().await.is_some() {}
        let is_joined = runtime.release().await;
        let is_store_busy = store.is_busy();
        self.scheduler.watch(None);
        drop(runtime);
        self.released(is_joined, is_store_busy).await;
        unsettled
    }

    /// Starts a generation; where that fails, again.
    async fn start(&self, store: &Arc<SimStore>, sources: &[Arc<SimSource>]) -> Runtime {
        let world = &self.world;
        loop {
            let builder = sources.iter().fold(Runtime::builder(), |builder, source| {
                builder.source(source.clone())
            });
            let executing = executing(world);
            let started = handler::register(builder, world)
                .store(store.clone())
                .clock(Arc::new(WallClock(world.clone())))
                .options(self.options())
                .start()
                .await;
            let error = match started {
                Ok(runtime) => {
                    world.trace(|| format!("activated, {} executing", executing.len()));
                    world.note(Fact::Activated {
                        generation: runtime.generation().to_owned(),
                        executing,
                    });
                    while let Err(error) = self.deploy(&runtime).await {
                        world.trace(|| format!("not deployed: {error}"));
                        sleep(Duration::from_millis(500)).await;
                    }
                    return runtime;
                }
                Err(error) => error,
            };
            world.trace(|| format!("not activated: {error}"));
            self.released(true, false).await;
            sleep(Duration::from_secs(1)).await;
        }
    }

    fn options(&self) -> Options {
        let mut options = self.world.temper.options.clone();
        options.spill = Some(self.world.spill.path().join("spill"));
        if self.world.is_calm() {
            options.pause_persistence = PausePersistence::SessionScoped;
        }
        options
    }

    async fn deploy(&self, runtime: &Runtime) -> Result<(), tidegate::Error> {
        let files = model::ALL.iter().map(model::Model::resource).collect();
        runtime.deploy(files, None, "deployer").await.map(drop)
    }

    /// Everybody outside the runtime.
    fn outside(&self, runtime: &Runtime, sources: Vec<Arc<SimSource>>) -> JoinSet<()> {
        let mut outside = JoinSet::new();
        for _ in 0..2 {
            outside.spawn(self.clients.clone().call(runtime.clone()));
            outside.spawn(self.clients.clone().work(runtime.clone()));
        }
        outside.spawn(self.clients.clone().do_tasks(runtime.clone()));
        for source in sources {
            outside.spawn(source.deliver(self.clients.clone()));
        }
        for name in ["ann", "bob"] {
            outside.spawn(operator::operate(self.world.clone(), runtime.clone(), name));
        }
        outside.spawn(operator::look_after(self.world.clone(), runtime.clone()));
        outside.spawn(step_the_clock(self.world.clone()));
        outside
    }

    /// Until the life is to end. Crashes at a commit or an effect come by themselves, or not at all.
    async fn await_end(&self, end: End, runtime: &Runtime) {
        let life = Duration::from_millis(self.world.temper.life_ms);
        match end {
            End::CrashAt { ms } => {
                sleep(Duration::from_millis(ms)).await;
                self.world.kill();
                std::future::pending().await
            }
            End::CrashAtCommit { .. } | End::CrashAtEffect { .. } => sleep(life).await,
            End::Drain {
                force_after_ms,
                crash_after_ms,
            } => {
                sleep(life).await;
                self.later(force_after_ms, {
                    let (world, runtime) = (self.world.clone(), runtime.clone());
                    async move {
                        let forced = runtime.force_drain(Some("sim".to_owned()), "ann").await;
                        world.trace(|| {
                            format!(
                                "ann forces the drain: {}",
                                forced.map_or_else(|error| error.code(), |_| "ok")
                            )
                        });
                    }
                });
                self.later(crash_after_ms, {
                    let world = self.world.clone();
                    async move { world.kill() }
                });
            }
            End::Force => {
                sleep(life).await;
                let forced = timeout(LONGEST, runtime.force_drain(None, "bob")).await;
                self.world
                    .trace(|| format!("bob forces: {}", crate::client::word(&forced)));
            }
        }
    }

    fn later(&self, after_ms: Option<u64>, what: impl Future<Output = ()> + Send + 'static) {
        if let Some(ms) = after_ms {
            tokio::spawn(async move {
                sleep(Duration::from_millis(ms)).await;
                what.await;
            });
        }
    }

    async fn drain(&self, runtime: &Runtime) {
        let generation = runtime.generation().to_owned();
        self.world.trace(|| "drain".to_owned());
        match timeout(LONGEST, runtime.drain(DrainTrigger::HostStopSignal)).await {
            Ok(outcome) => {
                self.world.trace(|| {
                    let fates: Vec<String> = outcome
                        .cycles
                        .iter()
                        .map(|cycle| format!("i{} {:?}", cycle.instance_id, cycle.fate))
                        .collect();
                    format!("drained: {:?} {}", outcome.overall_result, fates.join(", "))
                });
                let outcome = Box::new(outcome);
                self.world.note(Fact::Drained { generation, outcome });
            }
            Err(_) => {
                self.world.trace(|| "the drain hangs".to_owned());
                self.world.note(Fact::Released {
                    is_joined: false,
                    is_store_busy: false,
                    tasks_left: 0,
                });
            }
        }
    }

    /// What is alive after a release, and is neither the store's task nor ours.
    async fn released(&self, is_joined: bool, is_store_busy: bool) {
        // What was told to end gets the chance to; the longest is a force that was asked for later than the drain took.
        sleep(Duration::from_secs(10)).await;
        let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let tasks_left = alive.saturating_sub(STORE_TASKS);
        self.world
            .trace(|| format!("released: joined {is_joined}, {tasks_left} tasks left"));
        self.world.note(Fact::Released {
            is_joined,
            is_store_busy,
            tasks_left,
        });
    }

    /// Waits until everything has come to its end, and tells what has not.
    async fn settle(&self) -> Vec<String> {
        let mut open = Vec::new();
        for _ in 0..CALM.as_secs() {
            sleep(Duration::from_secs(1)).await;
            open = self.clients.open();
            open.extend(unfinished(&self.world));
            if open.is_empty() {
                self.world.trace(|| "settled".to_owned());
                return open;
            }
        }
        self.world.trace(|| format!("not settled: {open:?}"));
        open
    }
}

/// The task of [`SimStore::work`].
const STORE_TASKS: usize = 1;

fn executing(world: &World) -> Vec<tidegate::model::InstanceKey> {
    let filter = tidegate::store::InstanceFilter {
        sub_statuses: vec![tidegate::model::SubStatus::Executing],
        ..Default::default()
    };
    let rows = world
        .disk
        .instances(&filter, tidegate::store::Page::first(100_000));
    rows.unwrap_or_default().into_iter().map(|row| row.key).collect()
}

fn unfinished(world: &World) -> Vec<String> {
    let rows = world
        .disk
        .instances(&Default::default(), tidegate::store::Page::first(100_000));
    let rows = rows
        .unwrap_or_default()
        .into_iter()
        .filter(|row| !row.sub_status.is_finished());
    let mut open: Vec<String> = rows
        .map(|row| format!("i{} of {} is {}", row.key, row.process_id, row.sub_status.word()))
        .collect();
    let queue = world.disk.stimuli(None, 100_000).unwrap_or_default();
    // A signal is put into the queue behind a closed gate again and again: it is nobody's loss.
    let queue = queue.iter().filter(|row| !row.domain.starts_with("signal/"));
    open.extend(queue.map(|row| format!("stimulus {} of {} waits", row.key, row.domain)));
    open
}

/// The wall clock steps back and forth, for as long as the process lives.
async fn step_the_clock(world: Arc<World>) {
    loop {
        sleep(Duration::from_millis(900)).await;
        if world.fault("clock", world.temper.clock_steps) {
            let by_ms = world.draw("clock", |random| {
                random.pick(&[-20_000, -1_500, -1, 1, 1_500, 20_000, 100_000])
            });
            world.step_clock(by_ms);
        }
    }
}
