//! An owner's inbox: everyone pushes, the owner takes all at once.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

use super::Message;

#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    /// The owner's, where it is a task and waits.
    waker: Option<Waker>,
    is_closed: bool,
}

impl Inbox {
    /// Puts a message in. Once the owner has ended it is dropped, and whoever waits for its answer is told so.
    pub(crate) fn push(&self, message: Message) {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return;
        }
        queue.messages.push_back(message);
        if queue.messages.len() == 1 {
            match queue.waker.take() {
                None => drop(self.arrived.notify_one()),
                Some(waker) => waker.wake(),
            }
        }
    }

    /// The owner has ended: what is left, and what comes, is dropped.
    pub(super) fn close(&self) {
        let left = {
            let mut queue = self.queue.lock();
            queue.is_closed = true;
            std::mem::take(&mut queue.messages)
        };
        drop(left);
    }

    /// Takes everything; waits for something until `until` if there is nothing (for good if none).
    pub(super) fn take(&self, into: &mut VecDeque<Message>, until: Option<Instant>) {
        let mut queue = self.queue.lock();
        while queue.messages.is_empty() {
            match until {
                None => self.arrived.wait(&mut queue),
                Some(until) => {
                    let is_late = || until <= Instant::now();
                    if is_late() || self.arrived.wait_until(&mut queue, until.into_std()).timed_out() {
                        break;
                    }
                }
            }
        }
        std::mem::swap(&mut queue.messages, into);
    }

    /// Ends when there is something, or at `until`.
    pub(super) async fn wait(&self, until: Option<Instant>) {
        let arrived = std::future::poll_fn(|context| {
            let mut queue = self.queue.lock();
            if queue.messages.is_empty() {
                queue.waker = Some(context.waker().clone());
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        });
        match until {
            None => arrived.await,
            // Nothing by then: the round is due all the same.
            Some(until) => drop(tokio::time::timeout_at(until, arrived).await),
        }
    }
}
