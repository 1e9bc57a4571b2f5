//! Bytes of data that all connections of a server may have in flight.
//!
//! A connection takes the bytes of a request before the data are read, and gives them back with the reply. If there is no
//! room, then the request stays in the socket and the connection waits for its turn. Turns come in order of waiting, one
//! request each: small requests never keep a large request out. A connection takes all bytes of a request at once, so
//! that each turn comes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection that waits for bytes.
pub(super) trait Waiter: fmt::Debug + Send + Sync {
    /// Makes the connection check if there is room for its next request.
    fn call(&self);
}

/// The bytes in flight, and the connections that wait for room.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    held: AtomicUsize,
    /// Connections that wait.
    waiters: AtomicUsize,
    waiting: Mutex<VecDeque<Arc<dyn Waiter>>>,
}

impl Budget {
    pub(super) fn new(max: usize) -> Budget {
        Budget {
            max,
            held: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Takes bytes. Returns false if there is no room, and calls the waiter when its turn comes. A request with more than the maximum of
    /// bytes is served while no other has any.
    pub(super) fn take(&self, bytes: usize, waiter: &Arc<impl Waiter + 'static>) -> bool {
        if bytes == 0 {
            return true;
        }
        match self.waiters.load(Ordering::SeqCst) == 0 && self.add(bytes) {
            true => true,
            false => self.take_in_turn(bytes, waiter),
        }
    }

    /// Gives bytes back.
    pub(super) fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        // A connection that began to wait before this line is seen here. A later one sees the room.
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.call(&self.waiting());
        }
    }

    /// Removes a connection that ends and may be waiting.
    pub(super) fn leave(&self, waiter: &Arc<impl Waiter + 'static>) {
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waiting();
        waiting.retain(|other| !std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(waiter)));
        self.waiters.store(waiting.len(), Ordering::SeqCst);
        self.call(&waiting);
    }

    fn add(&self, bytes: usize) -> bool {
        let fits = |held| (held == 0 || held + bytes <= self.max).then_some(held + bytes);
        let order = Ordering::SeqCst;
        self.held.fetch_update(order, order, fits).is_ok()
    }

    #[cold]
    fn take_in_turn(&self, bytes: usize, waiter: &Arc<impl Waiter + 'static>) -> bool {
        let mut waiting = self.waiting();
        if !waiting
            .iter()
            .any(|other| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(waiter)))
        {
            waiting.push_back(Arc::clone(waiter) as Arc<dyn Waiter>);
            self.waiters.store(waiting.len(), Ordering::SeqCst);
        }
        let is_first = waiting
            .front()
            .is_some_and(|first| std::ptr::addr_eq(Arc::as_ptr(first), Arc::as_ptr(waiter)));
        if !is_first || !self.add(bytes) {
            return false;
        }
        waiting.pop_front();
        self.waiters.store(waiting.len(), Ordering::SeqCst);
        // There may be room for the next one, too.
        self.call(&waiting);
        true
    }

    fn call(&self, waiting: &VecDeque<Arc<dyn Waiter>>) {
        if let Some(first) = waiting.front() {
            first.call();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<dyn Waiter>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbox::Inbox;
    use super::*;
    use std::task::Waker;

    /// Returns true if an inbox was called since the last question.
    fn was_called(inbox: &Inbox) -> bool {
        !inbox.sleep(Waker::noop(), true)
    }

    #[test]
    fn turns_come_in_order_and_a_large_request_is_not_passed() {
        let budget = Budget::new(100);
        let [one, two, three] = [(); 3].map(|()| Arc::new(Inbox::new(1)));
        assert!(budget.take(60, &one));
        assert!(!budget.take(80, &two));
        // The request would fit, but another connection waits already.
        assert!(!budget.take(10, &three));
        assert!(!budget.take(10, &one));
        assert!(!was_called(&two) && !was_called(&three));
        budget.give_back(60);
        assert!(was_called(&two) && !was_called(&three));
        assert!(!budget.take(10, &three));
        assert!(budget.take(80, &two));
        assert!(was_called(&three));
        assert!(budget.take(10, &three));
        assert!(budget.take(10, &one));
        // No connection waits any more.
        assert!(!budget.take(1, &two));
        budget.leave(&two);
        budget.give_back(100);
        assert!(!was_called(&two));
        assert!(budget.take(1, &one));
    }

    #[test]
    fn a_request_of_more_than_all_goes_alone() {
        let budget = Budget::new(100);
        let [one, two] = [(); 2].map(|()| Arc::new(Inbox::new(1)));
        assert!(budget.take(1, &one));
        assert!(!budget.take(1000, &two));
        budget.give_back(1);
        assert!(was_called(&two));
        assert!(budget.take(1000, &two));
        assert!(!budget.take(1, &one));
        budget.give_back(1000);
        assert!(budget.take(100, &one));
    }

    #[test]
    fn who_leaves_lets_the_next_one_have_its_turn() {
        let budget = Budget::new(100);
        let [one, two, three] = [(); 3].map(|()| Arc::new(Inbox::new(1)));
        assert!(budget.take(90, &one));
        assert!(!budget.take(50, &two));
        assert!(!budget.take(10, &three));
        budget.leave(&two);
        assert!(was_called(&three));
        assert!(budget.take(10, &three));
    }
}
