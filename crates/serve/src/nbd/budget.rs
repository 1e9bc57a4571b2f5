//! Requests and bytes of data that connections may have in flight.
//!
//! An export has a budget of requests and one of bytes, and all exports have one of bytes. A connection takes from all
//! three before the data of a request are read, and gives back with the reply. If there is no
//! room, then the request stays in the socket and the connection waits for its turn. Turns come in order of waiting, one
//! request each: small requests never keep a large request out. A connection takes all bytes of a request at once, so
//! that each turn comes.

use crate::disk::ExportLimits;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection that waits for bytes.
pub(super) trait Waiter: fmt::Debug + Send + Sync {
    /// Makes the connection check if there is room for its next request.
    fn call(&self);
}

/// Largest request that an export without bytes in flight is served beyond the bytes of all exports. So the requests of
/// one export do not keep small requests of another export out.
const BEYOND_MAX: usize = 1 << 20;

/// The budgets of an export's requests, in the order in which a connection takes from them: requests of the export, bytes
/// of the export, bytes of all exports. All connections take in this order. So a connection that waits for a budget may
/// hold amounts of the earlier budgets.
#[derive(Clone, Debug)]
pub(super) struct Budgets([Arc<Budget>; 3]);

/// Amounts of a request, and the number of budgets that they were taken from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taking {
    bytes: usize,
    from: usize,
}

impl Budgets {
    pub(super) fn new(limits: ExportLimits, all: &Arc<Budget>) -> Budgets {
        let of_export = |max| Arc::new(Budget::new(max));
        let ExportLimits { requests, bytes } = limits;
        Budgets([of_export(requests), of_export(bytes), Arc::clone(all)])
    }

    /// Takes a request with its bytes. Returns false if there is no room, and calls the waiter when its turn comes. The
    /// waiter then continues with the same `taking`.
    pub(super) fn take(
        &self,
        taking: &mut Taking,
        bytes: usize,
        waiter: &Arc<impl Waiter + 'static>,
    ) -> bool {
        taking.bytes = bytes;
        let [_, of_export, all] = &self.0;
        while let Some(budget) = self.0.get(taking.from) {
            let amount = if taking.from == 0 { 1 } else { bytes };
            let is_last = taking.from == 2;
            if is_last && bytes <= BEYOND_MAX && of_export.held.load(Ordering::SeqCst) == bytes {
                all.leave(waiter);
                all.held.fetch_add(bytes, Ordering::SeqCst);
            } else if !budget.take(amount, waiter) {
                return false;
            }
            taking.from += 1;
        }
        *taking = Taking::default();
        true
    }

    /// Gives requests and bytes back.
    pub(super) fn give_back(&self, requests: usize, bytes: usize) {
        for (budget, amount) in self.0.iter().zip([requests, bytes, bytes]) {
            budget.give_back(amount);
        }
    }

    /// Removes a connection that ends, and gives back the amounts that it has taken for its next request.
    pub(super) fn leave(&self, taking: Taking, waiter: &Arc<impl Waiter + 'static>) {
        for (place, budget) in self.0.iter().enumerate() {
            budget.leave(waiter);
            if place < taking.from {
                budget.give_back(if place == 0 { 1 } else { taking.bytes });
            }
        }
    }
}

/// The amount in flight, and the connections that wait for room.
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
        let fits = |held: usize| (held == 0 || held + bytes <= self.max).then_some(held + bytes);
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
