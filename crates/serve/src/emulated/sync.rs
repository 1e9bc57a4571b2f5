//! Syncs a store on a thread of its own, while the disk's thread goes on in model time.

use super::store::Store;
use headtime_linux::clock::{Clock, timespec};
use headtime_units::{Nanos, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Longest wait for the last sync when a [`Syncer`] is dropped.
const LAST_LOOK: Nanos = Nanos::from_secs(1);

/// Number of a requested sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// Thread that syncs a store. One sync serves all requests that came during the previous sync.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<SyncShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SyncShared {
    orders: Mutex<Orders>,
    ordered: Condvar,
    /// Last ticket whose sync is over.
    done: AtomicU64,
    /// Event counter that becomes readable when a sync is over.
    ready: OwnedFd,
    /// True if `ready` was made readable and has not been read since.
    rung: AtomicBool,
}

#[derive(Debug, Default)]
struct Orders {
    /// Last ticket that was handed out.
    wanted: u64,
    ends: bool,
    /// Failed syncs, each with its first ticket, its last ticket and its error.
    failed: VecDeque<(u64, u64, Errno)>,
}

impl Syncer {
    /// Starts the thread.
    pub fn start(store: Arc<Store>) -> io::Result<Syncer> {
        let shared = Arc::new(SyncShared {
            orders: Mutex::default(),
            ordered: Condvar::new(),
            done: AtomicU64::new(0),
            ready: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            rung: AtomicBool::new(false),
        });
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || its.run(&store))?;
        Ok(Syncer {
            shared,
            thread: Some(thread),
        })
    }

    /// Requests a sync of everything written so far.
    pub fn ask(&self) -> Ticket {
        let mut orders = self.shared.orders();
        orders.wanted += 1;
        let ticket = Ticket(orders.wanted);
        drop(orders);
        self.shared.ordered.notify_one();
        ticket
    }

    /// Returns true if a sync is over.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.shared.done.load(Ordering::Acquire) >= ticket.0
    }

    /// Returns the result of a finished sync. Callers ask in the order of the tickets.
    pub fn result(&self, Ticket(ticket): Ticket) -> Result<(), Errno> {
        let failed = &mut self.shared.orders().failed;
        while failed.front().is_some_and(|(_, last, _)| *last < ticket) {
            failed.pop_front();
        }
        match failed.front() {
            Some((first, _, errno)) if *first <= ticket => Err(*errno),
            _ => Ok(()),
        }
    }

    /// Syncs the store and waits for the end, at most for `most`.
    ///
    /// # Errors
    ///
    /// If the sync fails, or with `ETIMEDOUT` if it does not end in time.
    pub fn sync(&self, most: Nanos) -> Result<(), Errno> {
        let ticket = self.ask();
        match self.wait(ticket, most) {
            true => self.result(ticket),
            false => Err(Errno::TIMEDOUT),
        }
    }

    /// Waits for a sync for at most `most`. Returns true if the sync is over.
    fn wait(&self, ticket: Ticket, most: Nanos) -> bool {
        let clock = Clock::start();
        let end = Time::ZERO + most;
        loop {
            self.hush();
            if self.is_done(ticket) {
                return true;
            }
            let now = clock.now();
            if now >= end {
                return false;
            }
            let ready = PollFd::from_borrowed_fd(self.ready_fd(), PollFlags::IN);
            // The loop checks the ticket again even after an interrupted poll, so the error is ignored.
            let _ = poll(&mut [ready], Some(&timespec(end - now)));
        }
    }

    /// File descriptor that becomes readable when a sync is over.
    pub fn ready_fd(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }

    /// Makes [`Syncer::ready_fd`] unreadable. The caller then looks for finished syncs.
    pub fn hush(&self) {
        if self.shared.rung.swap(false, Ordering::AcqRel) {
            let mut rung = [0; 8];
            let _ = rustix::io::read(&self.shared.ready, &mut rung);
        }
    }
}

impl SyncShared {
    /// Locks the orders. No holder of the lock can panic half-way, so a poisoned lock is whole.
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, store: &Store) {
        let mut done = 0;
        loop {
            let mut orders = self.orders();
            while orders.wanted == done {
                if orders.ends {
                    return;
                }
                let woken = self.ordered.wait(orders);
                orders = woken.unwrap_or_else(PoisonError::into_inner);
            }
            let wanted = orders.wanted;
            drop(orders);
            if let Err(errno) = store.sync() {
                let failed = &mut self.orders().failed;
                failed.push_back((done + 1, wanted, errno));
            }
            done = wanted;
            self.done.store(done, Ordering::Release);
            // The write can fail only if the counter is full. The counter is readable already then.
            let _ = rustix::io::write(&self.ready, &1u64.to_ne_bytes());
            self.rung.store(true, Ordering::Release);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let mut orders = self.shared.orders();
        orders.ends = true;
        let last = Ticket(orders.wanted);
        drop(orders);
        self.shared.ordered.notify_one();
        if !self.wait(last, LAST_LOOK) {
            // The thread, and with it the store's files, stay until the kernel is done.
            tracing::error!("a sync of the store does not end; its files stay open until it does");
            return;
        }
        if let Some(thread) = self.thread.take() {
            // The thread returns no result.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::Timespec;

    fn rings(syncer: &Syncer) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::from_borrowed_fd(syncer.ready_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&now)).expect("polls") == 1
    }

    fn wait(syncer: &Syncer, ticket: Ticket) {
        while !syncer.is_done(ticket) {
            let mut fds = [PollFd::from_borrowed_fd(syncer.ready_fd(), PollFlags::IN)];
            poll(&mut fds, None).expect("polls");
            syncer.hush();
        }
    }

    #[test]
    fn what_is_done_rings_until_it_is_hushed() {
        let store = Store::memory(4096, 4096).expect("opens");
        let syncer = Syncer::start(Arc::new(store)).expect("starts");
        assert!(!rings(&syncer));
        for _ in 0..1000 {
            let ticket = syncer.ask();
            wait(&syncer, ticket);
            assert_eq!(syncer.result(ticket), Ok(()));
        }
        // The last ring may come after the test has seen that the sync is done.
        let last = syncer.ask();
        wait(&syncer, last);
        while rings(&syncer) {
            syncer.hush();
        }
        assert!(!rings(&syncer));
    }

    #[test]
    fn a_failure_is_that_of_every_ticket_that_it_was_for() {
        let syncer = Syncer::start(Arc::new(Store::broken())).expect("starts");
        for burst in 1..50 {
            let tickets: Vec<_> = (0..burst).map(|_| syncer.ask()).collect();
            for ticket in tickets {
                wait(&syncer, ticket);
                assert_eq!(syncer.result(ticket), Err(Errno::INVAL));
            }
        }
    }

    #[test]
    fn what_was_asked_for_is_done_before_the_end() {
        let store = Arc::new(Store::memory(4096, 4096).expect("opens"));
        let syncer = Syncer::start(store).expect("starts");
        let shared = Arc::clone(&syncer.shared);
        for _ in 0..10 {
            syncer.ask();
        }
        drop(syncer);
        assert_eq!(shared.done.load(Ordering::Acquire), 10);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let store = Arc::new(Store::memory(4096, 4096).expect("opens"));
        let syncer = Syncer::start(Arc::clone(&store)).expect("starts");
        let shared = Arc::clone(&syncer.shared);
        let held = store.held.lock().expect("whole");
        let most = Nanos::from_millis(20);
        assert_eq!(syncer.sync(most), Err(Errno::TIMEDOUT));
        let clock = Clock::start();
        drop(syncer);
        assert!(clock.now() >= Time::ZERO + LAST_LOOK);
        assert_eq!(shared.done.load(Ordering::Acquire), 0);
        drop(held);
        // The thread ends on its own.
        while Arc::strong_count(&store) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(shared.done.load(Ordering::Acquire), 1);
    }
}
