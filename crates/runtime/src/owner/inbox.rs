//! An owner's inbox: everyone pushes, the owner takes all at once.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::Message;

#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<VecDeque<Message>>,
    arrived: Condvar,
}

impl Inbox {
    pub(crate) fn push(&self, message: Message) {
        let mut queue = self.queue.lock();
        queue.push_back(message);
        if queue.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// Takes everything; waits for something until `until` if there is nothing (for good if none).
    pub(super) fn take(&self, into: &mut VecDeque<Message>, until: Option<Instant>) {
        let mut queue = self.queue.lock();
        while queue.is_empty() {
            match until {
                None => self.arrived.wait(&mut queue),
                Some(until) => {
                    if until <= Instant::now() || self.arrived.wait_until(&mut queue, until).timed_out() {
                        break;
                    }
                }
            }
        }
        std::mem::swap(&mut *queue, into);
    }
}
