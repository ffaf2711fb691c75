//! An owner's inbox: everyone pushes, the owner takes all at once.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::Message;

#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
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
            self.arrived.notify_one();
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
                    if until <= Instant::now() || self.arrived.wait_until(&mut queue, until).timed_out() {
                        break;
                    }
                }
            }
        }
        std::mem::swap(&mut queue.messages, into);
    }
}
