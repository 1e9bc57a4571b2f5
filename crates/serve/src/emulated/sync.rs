//! Syncs a store on a thread of its own, so that the disk's thread is not kept from what happens in
//! model time meanwhile.

use super::store::Store;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Names a sync that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A thread that syncs. What is asked for while it does so is done by the next sync in one go.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    ordered: Condvar,
    /// The last ticket that is done.
    done: AtomicU64,
    /// Readable after something was done.
    ready: OwnedFd,
    /// It has been made so, and was not read since.
    rung: AtomicBool,
}

#[derive(Debug, Default)]
struct Orders {
    /// The last ticket.
    wanted: u64,
    ends: bool,
    /// Syncs that failed: the first and the last ticket that each was for.
    failed: VecDeque<(u64, u64, Errno)>,
}

impl Syncer {
    /// Starts the thread.
    pub fn start(store: Arc<Store>) -> io::Result<Syncer> {
        let shared = Arc::new(Shared {
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

    /// Asks for everything that has been written to be synced.
    pub fn ask(&self) -> Ticket {
        let mut orders = self.shared.orders();
        orders.wanted += 1;
        let ticket = Ticket(orders.wanted);
        drop(orders);
        self.shared.ordered.notify_one();
        ticket
    }

    /// Whether a sync is over.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.shared.done.load(Ordering::Acquire) >= ticket.0
    }

    /// How a sync that is over ended. To be asked in order of the tickets.
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

    /// Readable when something is done.
    pub fn ready_fd(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }

    /// Makes [`Syncer::ready_fd`] unreadable; whoever calls looks for what is done after it.
    pub fn hush(&self) {
        if self.shared.rung.swap(false, Ordering::AcqRel) {
            let mut rung = [0; 8];
            let _ = rustix::io::read(&self.shared.ready, &mut rung);
        }
    }
}

impl Shared {
    /// Nothing that holds it can panic half-way.
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
            // It can only fail by being full, and then it is readable.
            let _ = rustix::io::write(&self.ready, &1u64.to_ne_bytes());
            self.rung.store(true, Ordering::Release);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.orders().ends = true;
        self.shared.ordered.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}
