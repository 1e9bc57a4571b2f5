//! State that the handle of a disk shares with the disk's thread.

use super::cause::NotCleared;
use super::options::{BuildScheduler, ExportShare, MakeJob};
use crate::backing::Made;
use crate::buffer::Pool;
use crate::device::{Allocation, Control, ControlError, Geometry};
use crate::metrics::Snapshot;
use crate::request::{Completion, Failure, Kind, Submission};
use crossbeam_queue::ArrayQueue;
use headtime_engine::{self as engine, Config, Gate, GateSpec, Lane, Member};
use headtime_linux::clock::Clock;
use headtime_units::{Lba, Nanos, Rate, Sectors};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Order to a disk's thread, in contrast to a request.
pub(super) enum Order {
    /// Gives an order to the loop around the engines. The order is made on the disk's thread.
    Core(Box<dyn FnOnce() -> engine::Order + Send>),
    /// Swaps the scheduler of a member, in all lanes.
    Scheduler(Member, String, BuildScheduler),
    /// Swaps the gate of a member. The text names the gate in reports.
    Gate(Member, String, Box<dyn FnOnce() -> Box<dyn Gate> + Send>),
    /// Puts the named gate in force, which is known to fit the engine.
    NamedGate(Member, GateSpec),
    /// Moves the requests of the first lane to the second, if the member has both lanes.
    Drain(Member, Lane, Lane),
    /// Controls the devices of these members at the same time.
    Device(
        Range<u16>,
        Control,
        oneshot::Sender<Result<Sectors, ControlError>>,
    ),
    /// Replaces the background job of a member.
    Job(Member, MakeJob),
    /// Ends the background job of a member.
    EndJob(Member),
    /// Asks the background jobs again whether they have requests.
    AskJobs,
    /// Age at which a request that the device has not been given fails.
    QueueTimeout(Option<Nanos>),
    ClearFailure(oneshot::Sender<Result<(), NotCleared>>),
    Snapshot(oneshot::Sender<Box<Snapshot>>),
    Stop,
}

/// State that front ends and the disk's thread share.
///
/// Invariants: a `closed` disk is `stopped`; a `broken` disk is `failed` and `stopped`.
pub(super) struct Shared {
    pub name: String,
    pub clock: Clock,
    pub pool: Pool,
    pub geometry: Geometry,
    /// Bytes of the disk.
    pub bytes: u64,
    pub allocation: Option<Arc<dyn Allocation>>,
    pub discards_to_zeroes: bool,
    /// Files that were made for the disk.
    pub made: Vec<Made>,
    pub exports: u16,
    /// Share of each export. Empty if requests go to the engine as they come.
    pub shares: Vec<ExportShare>,
    /// Limit on the data of each export in a second. Empty if no export has one.
    pub rates: Vec<Option<Rate>>,
    /// Configuration of each engine.
    pub config: Config,
    /// Capacity of each member's device.
    pub members: Vec<Sectors>,
    pub queue: ArrayQueue<Submission>,
    /// Notifies front ends that a full queue has room again.
    pub room: Notify,
    pub was_full: AtomicBool,
    pub orders: Mutex<Vec<Order>>,
    pub ordered: AtomicBool,
    /// True if the thread sleeps or is about to sleep. A front end then has to ring the doorbell.
    pub asleep: AtomicBool,
    pub doorbell: OwnedFd,
    /// True once no more requests are taken.
    pub stopped: AtomicBool,
    /// True once the thread has ended. A front end that submits a request then has to answer the request itself.
    pub closed: AtomicBool,
    /// True if writes are refused because of a failure.
    pub failed: AtomicBool,
    /// True if the server has removed the files that were made for the disk.
    pub given_up: AtomicBool,
    /// True if a bug has ended the thread.
    pub broken: AtomicBool,
    pub thread: Mutex<Option<std::thread::JoinHandle<io::Result<()>>>>,
}

impl Shared {
    /// Place of a flush of all members: in a volume of several, behind the last sector.
    pub fn flush_at(&self) -> Lba {
        match self.members.len() {
            1 => Lba::ZERO,
            _ => Lba::ZERO + self.geometry.capacity,
        }
    }

    /// Notes that the disk's thread is awake. `rings` is true if the doorbell rang.
    pub fn stay_awake(&self, rings: bool) {
        // A front end clears `asleep` and rings afterwards, so the ring may come after the thread has woken. A doorbell
        // that has not been read would end every later sleep at once.
        if rings | !self.asleep.swap(false, Ordering::SeqCst) {
            let mut rung = [0; 8];
            let _ = rustix::io::read(&self.doorbell, &mut rung);
        }
    }

    /// Marks the disk as stopped, drops the orders and answers the requests in the queue. Called when the thread ends.
    pub fn close(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let mut orders = lock(&self.orders);
        self.closed.store(true, Ordering::SeqCst);
        orders.clear();
        drop(orders);
        self.turn_away();
        self.room.notify_waiters();
    }

    /// Takes a request from the queue, for the disk's thread.
    pub fn take(&self) -> Option<Submission> {
        let submission = self.queue.pop()?;
        if self.was_full.swap(false, Ordering::SeqCst) {
            self.room.notify_waiters();
        }
        Some(submission)
    }

    /// Answers the requests that the ended thread has left in the queue.
    pub fn turn_away(&self) {
        let kind = match self.broken.load(Ordering::SeqCst) {
            true => Kind::Device,
            false => Kind::ShuttingDown,
        };
        while let Some(submission) = self.queue.pop() {
            submission.to.complete(Completion {
                cookie: submission.cookie,
                result: Err(Failure::new(kind)),
                data: submission.data,
            });
            submission.to.wake();
        }
    }
}

/// Locks a mutex even if another thread panicked while holding it. The guarded data are consistent after every
/// statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
