//! The callers outside: they start instances, publish messages, do external jobs and user tasks. They outlive crashes, and
//! ask again under the same key until they are told.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate::api::{ActivateJobs, MessageRequest, StartRequest};
use tidegate::model::Variables;
use tidegate::store::Page;
use tidegate::{Error, Runtime};
use tokio::time::timeout;

use crate::fact::Acknowledged;
use crate::model::{EXTERNAL, Model, startable};
use crate::world::World;

/// What the callers want, and how far they are.
pub struct Clients {
    world: Arc<World>,
    orders: Mutex<Vec<State>>,
}

/// An instance that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// Its number.
    pub number: usize,
    model: &'static Model,
}

struct State {
    order: Order,
    is_started: bool,
    /// How many of its messages were published and told.
    published: usize,
    is_taken: bool,
}

/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

impl Order {
    /// Idempotency key, business key and correlation key.
    pub fn key(&self) -> String {
        format!("k{}", self.number)
    }

    /// The request.
    pub fn request(&self) -> StartRequest {
        let key = self.key();
        let variables = Variables::parse(&format!(r#"{{"key": "{key}"}}"#));
        StartRequest {
            business_key: Some(key.clone()),
            idempotency_key: Some(key),
            ..StartRequest::latest(self.model.id).variables(variables.unwrap_or_default())
        }
    }
}

impl Clients {
    /// What is wanted in a world.
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        let models: Vec<&'static Model> = startable().collect();
        let orders = (0..world.temper.orders).map(|number| State {
            order: Order {
                number,
                model: world.draw("orders", |random| random.pick(&models)),
            },
            is_started: false,
            published: 0,
            is_taken: false,
        });
        Arc::new(Self {
            world: world.clone(),
            orders: Mutex::new(orders.collect()),
        })
    }

    /// A process has died: nobody is served any more.
    pub fn forget_taken(&self) {
        self.orders
            .lock()
            .iter_mut()
            .for_each(|state| state.is_taken = false);
    }

    /// Everything that is not told yet.
    pub fn open(&self) -> Vec<String> {
        let orders = self.orders.lock();
        let open = orders.iter().filter(|state| !state.is_over());
        open.map(|state| {
            format!(
                "{} of {}: started {}, {} messages taken",
                state.order.key(),
                state.order.model.id,
                state.is_started,
                state.published
            )
        })
        .collect()
    }

    /// An order whose start nobody has told yet.
    pub fn start_order(&self) -> Option<Order> {
        self.take(|state| !state.is_started)
    }

    /// Its start was told.
    pub fn started(&self, number: usize) {
        self.orders.lock()[number].is_started = true;
    }

    /// Somebody else may go on with it.
    pub fn put_back(&self, number: usize) {
        self.orders.lock()[number].is_taken = false;
    }

    fn take(&self, wanted: impl Fn(&State) -> bool) -> Option<Order> {
        let mut orders = self.orders.lock();
        let open: Vec<usize> = (0..orders.len())
            .filter(|at| !orders[*at].is_taken && wanted(&orders[*at]))
            .collect();
        if open.is_empty() {
            return None;
        }
        let at = self.world.draw("clients", |random| random.pick(&open));
        orders[at].is_taken = true;
        Some(orders[at].order)
    }

    /// One caller, for as long as the process lives.
    pub async fn call(self: Arc<Self>, runtime: Runtime) {
        loop {
            let ms = self.world.draw("clients", |random| random.between(10, 900));
            tokio::time::sleep(Duration::from_millis(ms)).await;
            // Now and then one asks again for what it was told.
            let asks_again = self.world.draw("clients", |random| random.chance(50));
            let Some(order) = self.take(|state| asks_again || !state.is_over()) else {
                continue;
            };
            let (is_started, published) = {
                let state = &self.orders.lock()[order.number];
                (state.is_started, state.published)
            };
            let has_messages = published < order.model.messages.len();
            // A message may come before its taker.
            let publishes =
                has_messages && (is_started || self.world.draw("clients", |random| random.chance(300)));
            match publishes && !asks_again {
                true => self.publish(&runtime, order, published).await,
                false => self.start(&runtime, order).await,
            }
            self.put_back(order.number);
        }
    }

    async fn start(&self, runtime: &Runtime, order: Order) {
        let key = order.key();
        match timeout(PATIENCE, runtime.start(order.request())).await {
            Ok(Ok(started)) => {
                self.started(order.number);
                self.world.acknowledge(Acknowledged::Started {
                    key,
                    instance: started.instance,
                });
            }
            Ok(Err(error)) => self.refused("start", &key, &error),
            Err(_) => self.world.trace(|| format!("start {key}: no answer")),
        }
    }

    async fn publish(&self, runtime: &Runtime, order: Order, number: usize) {
        let mark = format!("{}/{number}", order.key());
        let request = MessageRequest {
            name: order.model.messages[number].to_owned(),
            correlation_key: order.key(),
            variables: Variables::parse(&format!(r#"{{"mark": "{mark}"}}"#)).unwrap_or_default(),
            ttl: None,
            message_id: Some(mark.clone()),
            tenant: None,
            actor: "client".to_owned(),
            source: None,
        };
        match timeout(PATIENCE, runtime.publish(request)).await {
            Ok(Ok(published)) => {
                self.orders.lock()[order.number].published = number + 1;
                self.world.acknowledge(Acknowledged::Published {
                    mark,
                    message: published.message,
                    accepted: published.accepted,
                });
            }
            Ok(Err(error)) => self.refused("publish", &mark, &error),
            Err(_) => self.world.trace(|| format!("publish {mark}: no answer")),
        }
    }

    fn refused(&self, what: &str, key: &str, error: &Error) {
        self.world.trace(|| format!("{what} {key}: {}", error.code()));
    }

    /// One external worker, for as long as the process lives.
    pub async fn work(self: Arc<Self>, runtime: Runtime) {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let request = ActivateJobs {
                job_type: EXTERNAL.to_owned(),
                worker: "worker".to_owned(),
                max_jobs: self.world.draw("workers", |random| random.between(1, 3)) as usize,
                lease: Duration::from_secs(4),
                wait: Duration::from_secs(2),
                tenant: None,
            };
            let leased = match timeout(PATIENCE, runtime.activate_jobs(request)).await {
                Ok(Ok(leased)) => leased,
                Ok(Err(error)) => {
                    self.refused("lease", EXTERNAL, &error);
                    continue;
                }
                Err(_) => continue,
            };
            for job in &leased {
                self.world.acknowledge(Acknowledged::Leased(job.job));
            }
            for job in leased {
                // Sometimes longer than the lease.
                let ms = self
                    .world
                    .draw("workers", |random| random.pick(&[0, 10, 300, 1_500, 5_000]));
                tokio::time::sleep(Duration::from_millis(ms)).await;
                if self.world.fault("workers", self.world.temper.bad_handlers / 2) {
                    let failing =
                        runtime.fail_job(job.job, &job.lease_token, "sim: no".to_owned(), None, None);
                    let answer = timeout(PATIENCE, failing).await;
                    self.world
                        .trace(|| format!("job j{} failed: {}", job.job, word(&answer)));
                    continue;
                }
                let completing = runtime.complete_job(job.job, &job.lease_token, Variables::new());
                match timeout(PATIENCE, completing).await {
                    Ok(Ok(acceptance)) => self.world.acknowledge(Acknowledged::JobDone {
                        job: job.job,
                        instance: job.instance,
                        accepted: match acceptance {
                            tidegate::api::Acceptance::Done => None,
                            tidegate::api::Acceptance::Queued(key) => Some(key),
                        },
                    }),
                    answer => self
                        .world
                        .trace(|| format!("job j{}: {}", job.job, word(&answer))),
                }
            }
        }
    }

    /// One person who does user tasks, for as long as the process lives.
    pub async fn do_tasks(self: Arc<Self>, runtime: Runtime) {
        loop {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let Ok(tasks) = runtime.user_tasks(Default::default(), Page::first(5)).await else {
                continue;
            };
            for row in tasks {
                let completing = runtime.complete_user_task(row.key, Variables::new(), "person");
                match timeout(PATIENCE, completing).await {
                    Ok(Ok(_)) => self.world.acknowledge(Acknowledged::TaskDone {
                        task: row.key,
                        instance: row.instance,
                    }),
                    answer => self
                        .world
                        .trace(|| format!("task j{}: {}", row.key, word(&answer))),
                }
            }
        }
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.is_started && self.published == self.order.model.messages.len()
    }
}

/// What an answer says, for the trace.
pub fn word<T, L>(answer: &Result<Result<T, Error>, L>) -> String {
    match answer {
        Ok(Ok(_)) => "ok".to_owned(),
        Ok(Err(error)) => error.code().to_owned(),
        Err(_) => "no answer".to_owned(),
    }
}
