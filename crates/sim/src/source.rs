//! Ingress sources that hang, throw or lie.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate::ingress::{Ingress, IngressSource, Offer, Transition};
use tokio::sync::watch;

use crate::client::Clients;
use crate::fact::Acknowledged;
use crate::temper::Manner;
use crate::world::World;

/// A source that delivers starts.
pub struct SimSource {
    name: String,
    manner: Manner,
    world: Arc<World>,
    ingress: Mutex<Option<Ingress>>,
    is_on: watch::Sender<bool>,
}

impl SimSource {
    /// The sources of a world.
    pub fn all(world: &Arc<World>) -> Vec<Arc<Self>> {
        let manners = world.temper.sources.iter().enumerate();
        let source = |(number, manner): (usize, &Manner)| {
            Arc::new(Self {
                name: format!("sim.{number}"),
                manner: *manner,
                world: world.clone(),
                ingress: Mutex::default(),
                is_on: watch::Sender::new(false),
            })
        };
        manners.map(source).collect()
    }

    /// Delivers what clients want, for as long as the process lives.
    pub async fn deliver(self: Arc<Self>, clients: Arc<Clients>) {
        let mut is_on = self.is_on.subscribe();
        loop {
            tokio::time::sleep(Duration::from_millis(150)).await;
            // The sender lives as long as `self`.
            let _ = is_on.wait_for(|is_on| *is_on).await;
            let Some(ingress) = self.ingress.lock().clone() else {
                continue;
            };
            let Some(order) = clients.start_order() else {
                continue;
            };
            let key = order.key();
            match ingress.offer(Offer::Start(order.request())).await {
                Ok(receipt) => {
                    for instance in receipt.instances {
                        let key = key.clone();
                        self.world.acknowledge(Acknowledged::Started { key, instance });
                        clients.started(order.number);
                    }
                }
                Err(error) => self
                    .world
                    .trace(|| format!("{} {key}: {}", self.name, error.code())),
            }
            clients.put_back(order.number);
        }
    }

    fn switch(&self, on: bool) -> Transition {
        let (manner, is_calm) = (self.manner, self.world.is_calm());
        self.world
            .trace(|| format!("source {} is asked for {on}: {manner:?}", self.name));
        if is_calm || manner == Manner::Well {
            self.is_on.send_replace(on);
            return Box::pin(async { Ok(()) });
        }
        match manner {
            Manner::Lies => {
                self.is_on.send_replace(true);
                Box::pin(async { Ok(()) })
            }
            Manner::Throws => panic!("sim: the source threw"),
            Manner::Fails => Box::pin(async { Err("sim: the source said no".to_owned()) }),
            Manner::Hangs | Manner::Well => Box::pin(std::future::pending()),
        }
    }
}

impl IngressSource for SimSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn attach(&self, ingress: Ingress) {
        self.is_on.send_replace(!ingress.starts_paused());
        *self.ingress.lock() = Some(ingress);
    }

    fn pause(&self) -> Transition {
        self.switch(false)
    }

    fn resume(&self) -> Transition {
        self.switch(true)
    }

    fn supports_force_stop(&self) -> bool {
        self.manner == Manner::Hangs
    }

    fn force_stop(&self, _time_left: Duration) -> Transition {
        self.is_on.send_replace(false);
        Box::pin(async { Ok(()) })
    }
}
