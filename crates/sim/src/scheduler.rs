//! The seeded scheduler: before each step of the runtime others may go first. Here the gates are looked at, too: at the
//! last moment before a round, and at the first after it.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate::Runtime;
use tidegate::parts::PauseScope;
use tidegate::stepped::{Step, Steps};

use crate::fact::Fact;
use crate::world::World;

/// The scheduler of one life.
pub struct Scheduler {
    world: Arc<World>,
    watched: Mutex<Watched>,
    me: Weak<Self>,
}

#[derive(Default)]
struct Watched {
    runtime: Option<Runtime>,
    /// The closed gates as they were when the present round began.
    closed: Vec<(String, u64)>,
}

impl Scheduler {
    /// Of a world.
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            world: world.clone(),
            watched: Mutex::default(),
            me: me.clone(),
        })
    }

    /// Whose gates are looked at.
    pub fn watch(&self, runtime: Option<&Runtime>) {
        self.look();
        self.watched.lock().runtime = runtime.cloned();
    }

    /// A round may have ended: what was closed before it has no more live cycles than before.
    fn look(&self) {
        let mut watched = self.watched.lock();
        let closed = std::mem::take(&mut watched.closed);
        let Some(runtime) = &watched.runtime else { return };
        for (gate, before) in closed {
            let after = live(runtime, &gate);
            self.world.note(Fact::ClosedRound { gate, before, after });
        }
    }

    fn begin_round(&self) {
        let mut watched = self.watched.lock();
        let Some(runtime) = &watched.runtime else { return };
        let mut closed = Vec::new();
        if !runtime.quiescence().is_accepting() {
            closed.push((RUNTIME.to_owned(), runtime.quiescence().live()));
        }
        for pause in runtime.partial_pauses() {
            if pause.scope == PauseScope::Everything {
                closed.push((format!("{:?}", pause.part), pause.active_execution_cycle_count));
            }
        }
        watched.closed = closed;
    }
}

const RUNTIME: &str = "runtime";

fn live(runtime: &Runtime, gate: &str) -> u64 {
    if gate == RUNTIME {
        return runtime.quiescence().live();
    }
    let part = runtime.partial_pauses().into_iter();
    part.filter(|pause| format!("{:?}", pause.part) == gate)
        .map(|pause| pause.active_execution_cycle_count)
        .next()
        .unwrap_or(0)
}

impl Steps for Scheduler {
    fn before(&self, step: Step) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.look();
        let world = self.world.clone();
        world.count_step();
        let temper = &world.temper;
        let (yields, ms) = world.draw("scheduler", |random| {
            let yields = if random.chance(temper.yields) {
                random.between(1, 6)
            } else {
                0
            };
            let ms = if random.chance(temper.dawdles) {
                random.between(1, 40)
            } else {
                0
            };
            (yields, ms)
        });
        // The gates are read when the wait is over: `after` runs in the same poll as the round.
        let after = match step {
            Step::Round(_) => self.me.upgrade(),
            Step::Read => None,
        };
        Box::pin(async move {
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if let Some(scheduler) = after {
                scheduler.look();
                scheduler.begin_round();
            }
        })
    }
}
