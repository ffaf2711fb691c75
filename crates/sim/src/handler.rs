//! The in-process handlers of the simulation: they take their time, fail, hang, panic, and ignore that they should stop.

use std::sync::Arc;
use std::time::Duration;

use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture, ActivityResult};
use tidegate::model::Variables;
use tidegate::{Builder, CommitPolicy};

use crate::fact::Fact;
use crate::model::{QUICK, WORK};
use crate::sabotage::Sabotage;
use crate::world::World;

/// Gives a runtime its handlers.
pub fn register(builder: Builder, world: &Arc<World>) -> Builder {
    let handler = |is_quick| {
        Arc::new(Handler {
            world: world.clone(),
            is_quick,
        })
    };
    builder
        .activity(WORK, handler(false))
        .activity(QUICK, handler(true))
}

struct Handler {
    world: Arc<World>,
    is_quick: bool,
}

/// What a handler does this time.
#[derive(Debug, Clone, Copy)]
enum Does {
    Well,
    Fails,
    Panics,
    Hangs,
    /// It hangs and does not hear that it should stop.
    Ignores,
}

/// No handler hangs for ever: the calm would not come to an end.
const HANGS: Duration = Duration::from_secs(90);

impl Activity for Handler {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let world = self.world.clone();
        let (run, rival) = world.handler_begins(&context);
        let does = match world.fault("handlers", world.temper.bad_handlers) {
            true => world.draw("handlers", |random| {
                random.pick(&[Does::Fails, Does::Panics, Does::Hangs, Does::Ignores])
            }),
            false => Does::Well,
        };
        world.trace(|| {
            format!(
                "handler {run} of j{} i{} begins: {does:?}",
                context.job, context.instance
            )
        });
        world.note(Fact::HandlerBegan {
            instance: context.instance,
            job: context.job,
            run,
            rival,
            must_be_committed: world.temper.options.commit_policy == CommitPolicy::Activity,
        });
        world.effect();
        let running = Running { world, run };
        let takes = match self.is_quick {
            true => 0,
            false => running
                .world
                .draw("handlers", |random| random.pick(&[0, 5, 60, 400, 3_000])),
        };
        if running.world.sabotage == Some(Sabotage::Orphan) {
            tokio::spawn(std::future::pending::<()>());
        }
        Box::pin(async move {
            let result = work(does, takes, &context).await;
            let word = result
                .as_ref()
                .map_or_else(|error| format!("{error:?}"), |_| "done".to_owned());
            running
                .world
                .trace(|| format!("handler {} ends: {word}", running.run));
            running.world.effect();
            result
        })
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }
}

async fn work(does: Does, takes: u64, context: &ActivityContext) -> ActivityResult {
    let nap = |for_long| tokio::time::sleep(for_long);
    let takes = Duration::from_millis(takes);
    match does {
        Does::Ignores => nap(HANGS).await,
        Does::Well | Does::Fails | Does::Panics | Does::Hangs => {
            let for_long = if matches!(does, Does::Hangs) { HANGS } else { takes };
            tokio::select! {
                biased;
                () = context.stop.stopped(), if !for_long.is_zero() => return Err(ActivityError::Stopped),
                () = nap(for_long), if !for_long.is_zero() => {}
                () = std::future::ready(()), if for_long.is_zero() => {}
            }
        }
    }
    match does {
        Does::Fails => Err(ActivityError::failed("sim: it failed")),
        Does::Panics => panic!("sim: it panicked"),
        Does::Well | Does::Hangs | Does::Ignores => Ok(Variables::new()),
    }
}

/// A handler that runs: its end is seen also when it is dropped.
struct Running {
    world: Arc<World>,
    run: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.handler_ends(self.run);
    }
}
