//! Queue of completions of a connection.

use super::budget::{Budgets, Waiter};
use crate::request::{Completer, Completion};
use crossbeam_queue::ArrayQueue;
use headtime_units::Time;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Completions of one connection, and the means to wake the connection's task.
///
/// A completion wakes the task only while the task waits. A disk that completes requests faster than replies are written therefore wakes no
/// task.
pub(super) struct Inbox {
    queue: ArrayQueue<Completion>,
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// True if the connection must read no more requests.
    drain: AtomicBool,
    /// True if it may be the connection's turn to take bytes.
    turn: AtomicBool,
    /// True if a completion found no room.
    overflown: AtomicBool,
    /// True if the connection has ended.
    gone: AtomicBool,
    /// Time since which the connection waits and has no unanswered request, in nanoseconds; 0 if it does not.
    idle_since: AtomicU64,
    /// Requests and bytes to give back when the inbox is dropped. The disk retains the inbox as long as it has requests of the connection.
    left: Mutex<Option<Left>>,
}

/// Unfinished requests of an ended connection, and their bytes.
#[derive(Debug)]
struct Left {
    requests: usize,
    bytes: usize,
    budgets: Budgets,
}

impl Drop for Left {
    fn drop(&mut self) {
        self.budgets.give_back(self.requests, self.bytes);
    }
}

impl Inbox {
    /// Makes an inbox with room for this number of completions.
    pub(super) fn new(requests: usize) -> Inbox {
        Inbox {
            queue: ArrayQueue::new(requests),
            asleep: AtomicBool::new(false),
            waker: Mutex::new(None),
            drain: AtomicBool::new(false),
            turn: AtomicBool::new(false),
            overflown: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            left: Mutex::new(None),
        }
    }

    /// Notes that the connection has ended. The connection's requests and bytes stay taken until the disk is done with the last request. A client that
    /// connects again and again thus gets no more memory.
    pub(super) fn leave(&self, requests: usize, bytes: usize, budgets: &Budgets) {
        self.gone.store(true, Ordering::Relaxed);
        let left = Left {
            requests,
            bytes,
            budgets: budgets.clone(),
        };
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Notes that the connection waits from now on and has no unanswered request.
    pub(super) fn idles(&self, now: Time) {
        self.idle_since.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Time since which the connection is idle.
    pub(super) fn idle_since(&self) -> Option<Time> {
        let since = self.idle_since.load(Ordering::Relaxed);
        (since > 0 && !self.is_draining()).then(|| Time::from_nanos(since))
    }

    pub(super) fn pop(&self) -> Option<Completion> {
        self.queue.pop()
    }

    /// Asks the connection to end after it has answered all requests that it has read.
    pub(super) fn drain(&self) {
        self.drain.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.drain.load(Ordering::Relaxed)
    }

    /// Returns true if there were more completions than requests, so that some have no answer: a bug.
    pub(super) fn is_overflown(&self) -> bool {
        self.overflown.load(Ordering::Relaxed)
    }

    /// Prepares the connection's task for waiting. Returns false if there is work. `heard` is true if the task knows already that it has to
    /// end.
    pub(super) fn sleep(&self, waker: &Waker, heard: bool) -> bool {
        let mut kept = self.waker();
        match &mut *kept {
            Some(kept) => kept.clone_from(waker),
            None => *kept = Some(waker.clone()),
        }
        drop(kept);
        self.asleep.store(true, Ordering::SeqCst);
        // A completion from before the fence is seen below. A later one finds `asleep` set.
        fence(Ordering::SeqCst);
        let called = self.turn.swap(false, Ordering::SeqCst);
        self.queue.is_empty() && (heard || !self.is_draining()) && !self.is_overflown() && !called
    }

    /// Notes that the connection's task is awake and checks the queue itself.
    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        self.idle_since.store(0, Ordering::Relaxed);
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter for Inbox {
    fn call(&self) {
        self.turn.store(true, Ordering::SeqCst);
        self.wake();
    }
}

impl Completer for Inbox {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn complete(&self, completion: Completion) {
        // The request was completed twice, or never submitted. This must end the connection, and not the disk's thread, which calls this.
        if self.queue.push(completion).is_err() {
            self.overflown.store(true, Ordering::SeqCst);
        }
    }

    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed)
            && self.asleep.swap(false, Ordering::SeqCst)
            && let Some(waker) = &*self.waker()
        {
            waker.wake_by_ref();
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({} completions)", self.queue.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::{Budget, Taking};
    use super::*;
    use crate::disk::ExportLimits;
    use std::sync::Arc;

    #[test]
    fn a_completion_too_many_is_noted_and_does_not_panic() {
        let inbox = Inbox::new(1);
        let completion = |cookie| Completion {
            cookie,
            result: Ok(()),
            data: crate::request::Data::None,
        };
        inbox.complete(completion(0));
        assert!(!inbox.is_overflown());
        inbox.complete(completion(1));
        assert!(inbox.is_overflown());
        assert_eq!(inbox.pop().map(|done| done.cookie), Some(0));
        assert!(!inbox.sleep(Waker::noop(), true), "the connection looks");
    }

    #[test]
    fn what_a_connection_leaves_is_let_go_with_its_last_request() {
        let all = Arc::new(Budget::new(10));
        let limits = ExportLimits {
            requests: 1,
            ..ExportLimits::default()
        };
        let [budgets, others] = [limits; 2].map(|limits| Budgets::new(limits, &all));
        let (inbox, other) = (Arc::new(Inbox::new(1)), Arc::new(Inbox::new(1)));
        let take =
            |budgets: &Budgets, inbox: &Arc<Inbox>| budgets.take(&mut Taking::default(), 10, inbox);
        assert!(take(&budgets, &inbox));
        let request: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
        inbox.leave(1, 10, &budgets);
        drop(inbox);
        assert!(!all.take(1, &other));
        assert!(!take(&budgets, &other));
        drop(request);
        assert!(all.take(1, &other));
        all.give_back(1);
        assert!(take(&budgets, &other));
        // Another export has a small request beyond the bytes of all.
        assert!(take(&others, &other));
        assert!(!take(&others, &other));
    }
}
