//! The queue of each observer, and the list of them.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::ThreadId;

use parking_lot::{Condvar, Mutex, RwLock};
use tidegate_model::InstanceKey;
use tokio::sync::Notify;

use super::read::Told;
use super::{DEFAULT_QUEUE, LONGEST_QUEUE, MOST_OBSERVERS, Notice, ObserveOptions, ObserverCounts};
use crate::error::Error;

/// What waits for one observer.
#[derive(Debug)]
pub(super) struct Queue {
    number: u64,
    options: ObserveOptions,
    length: usize,
    state: Mutex<State>,
    /// For an observer with a thread.
    came: Condvar,
    /// For one that reads.
    told: Notify,
    /// No delivery is under way.
    rests: Notify,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Notice>,
    dropped_since: u64,
    dropped: u64,
    panics: u64,
    /// The thread that is in a delivery.
    delivers: Option<ThreadId>,
    /// Nothing is delivered any more.
    is_cancelled: bool,
    /// Nothing comes any more.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Counts {
    dropped: AtomicU64,
    panics: AtomicU64,
}

impl Queue {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }

    pub(super) fn panics(&self) -> u64 {
        self.state.lock().panics
    }

    fn wants_instance(&self, instance: InstanceKey, tenant: &str) -> bool {
        self.options.instance.is_none_or(|wanted| wanted == instance)
            && self
                .options
                .tenant
                .as_deref()
                .is_none_or(|wanted| wanted == tenant)
    }

    fn wants(&self, told: &Told) -> bool {
        let event = told.plain();
        let is_of_kind = self.options.kinds.is_empty() || self.options.kinds.contains(&event.kind);
        let is_of_instance = match event.instance_key {
            Some(instance) => self.wants_instance(instance, event.tenant_id.as_deref().unwrap_or_default()),
            None => self.options.instance.is_none() && self.options.tenant.is_none(),
        };
        is_of_kind && is_of_instance
    }

    fn push(&self, told: &Told) {
        let mut state = self.state.lock();
        if state.is_cancelled || state.is_closed {
            return;
        }
        if state.waiting.len() >= self.length {
            state.dropped += 1;
            state.dropped_since += 1;
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let event = match self.options.with_values {
            true => told.with_values(),
            false => told.plain(),
        };
        let dropped_before = std::mem::take(&mut state.dropped_since);
        state.waiting.push_back(Notice {
            event: event.clone(),
            dropped_before,
        });
        drop(state);
        self.came.notify_one();
        self.told.notify_one();
    }

    pub(super) async fn next(&self) -> Option<Notice> {
        loop {
            let told = self.told.notified();
            {
                let mut state = self.state.lock();
                if let Some(notice) = state.waiting.pop_front() {
                    return Some(notice);
                }
                if state.is_cancelled || state.is_closed {
                    return None;
                }
            }
            told.await;
        }
    }

    /// Works as the observer's thread.
    pub(super) fn deliver(&self, observer: &dyn Fn(&Notice)) {
        while let Some(notice) = self.begin_delivery() {
            let delivered = std::panic::catch_unwind(AssertUnwindSafe(|| observer(&notice)));
            let mut state = self.state.lock();
            state.delivers = None;
            if delivered.is_err() {
                state.panics += 1;
                self.counts.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    observer = self.number,
                    event = "ObserverPanicked",
                    "an observer panicked; it goes on with the next event"
                );
            }
            drop(state);
            self.rests.notify_waiters();
        }
    }

    fn begin_delivery(&self) -> Option<Notice> {
        let mut state = self.state.lock();
        loop {
            if state.is_cancelled {
                return None;
            }
            if let Some(notice) = state.waiting.pop_front() {
                state.delivers = Some(std::thread::current().id());
                return Some(notice);
            }
            if state.is_closed {
                return None;
            }
            self.came.wait(&mut state);
        }
    }

    /// Ends when no delivery is under way, or at once inside of one.
    pub(super) async fn delivered(&self) {
        loop {
            let rests = self.rests.notified();
            tokio::pin!(rests);
            rests.as_mut().enable();
            match self.state.lock().delivers {
                None => return,
                Some(thread) if thread == std::thread::current().id() => return,
                Some(_) => {}
            }
            rests.await;
        }
    }

    fn cancel(&self) {
        let mut state = self.state.lock();
        state.is_cancelled = true;
        state.waiting.clear();
        drop(state);
        self.came.notify_all();
        self.told.notify_one();
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.came.notify_all();
        self.told.notify_one();
    }
}

/// The observers of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    queues: RwLock<Vec<Arc<Queue>>>,
    /// How many, for those who would tell them: nobody costs one look.
    count: AtomicUsize,
    next: AtomicU64,
    is_closed: AtomicBool,
    counts: Arc<Counts>,
}

impl Observers {
    pub(super) fn join(&self, options: ObserveOptions) -> Result<Arc<Queue>, Error> {
        let mut queues = self.queues.write();
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        if queues.len() >= MOST_OBSERVERS {
            return Err(Error::Invalid {
                code: "too-many-observers",
                message: format!("there are {MOST_OBSERVERS} observers already; end one first"),
            });
        }
        let queue = Arc::new(Queue {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            length: options.queue.unwrap_or(DEFAULT_QUEUE).clamp(1, LONGEST_QUEUE),
            options,
            state: Mutex::default(),
            came: Condvar::new(),
            told: Notify::new(),
            rests: Notify::new(),
            counts: self.counts.clone(),
        });
        queues.push(queue.clone());
        self.count.store(queues.len(), Ordering::Release);
        Ok(queue)
    }

    pub(super) fn leave(&self, queue: &Arc<Queue>) {
        {
            let mut queues = self.queues.write();
            queues.retain(|other| other.number != queue.number);
            self.count.store(queues.len(), Ordering::Release);
        }
        queue.cancel();
    }

    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether somebody follows this instance, and whether with its values.
    pub(super) fn interest(&self, instance: InstanceKey, tenant: &str) -> Option<bool> {
        let queues = self.queues.read();
        let mut interested = queues
            .iter()
            .filter(|queue| queue.wants_instance(instance, tenant))
            .peekable();
        interested.peek()?;
        Some(interested.any(|queue| queue.options.with_values))
    }

    pub(crate) fn tell(&self, told: &[Told]) {
        if told.is_empty() {
            return;
        }
        let queues = self.queues.read();
        for one in told {
            for queue in queues.iter().filter(|queue| queue.wants(one)) {
                queue.push(one);
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The runtime has ended: what waits is still delivered, and nothing more comes.
    pub(crate) fn close(&self) {
        let queues = self.queues.write();
        self.is_closed.store(true, Ordering::Release);
        for queue in queues.iter() {
            queue.close();
        }
    }

    pub(super) fn counts(&self) -> ObserverCounts {
        ObserverCounts {
            observers: self.count.load(Ordering::Acquire) as u64,
            dropped: self.counts.dropped.load(Ordering::Relaxed),
            panics: self.counts.panics.load(Ordering::Relaxed),
        }
    }
}
