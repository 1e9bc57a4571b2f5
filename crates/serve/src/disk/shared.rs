//! What the handle of a disk and its thread share.

use super::cause::NotCleared;
use super::options::{BuildScheduler, MakeJob};
use crate::backing::Made;
use crate::buffer::Pool;
use crate::device::{Allocation, Control, ControlError, Geometry};
use crate::metrics::Snapshot;
use crate::request::{Completion, Failure, Kind, Submission};
use crossbeam_queue::ArrayQueue;
use headtime_engine::{self as engine, Config, Gate, GateSpec, Lane, Member};
use headtime_linux::clock::Clock;
use headtime_units::Sectors;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// What can be told a disk beside requests.
pub(super) enum Order {
    /// One of the loop around the engines, which is made on the thread.
    Core(Box<dyn FnOnce() -> engine::Order + Send>),
    /// Another scheduler for all lanes.
    Scheduler(Member, String, BuildScheduler),
    /// Another gate, by its text.
    Gate(Member, String, Box<dyn FnOnce() -> Box<dyn Gate> + Send>),
    /// Another gate, by its name, which fits the engine.
    NamedGate(Member, GateSpec),
    /// What is in a lane into another one, if there are these lanes.
    Drain(Member, Lane, Lane),
    /// For the devices of these members, at the same time.
    Device(
        Range<u16>,
        Control,
        oneshot::Sender<Result<Sectors, ControlError>>,
    ),
    /// Another job in the background, in place of the one that did.
    Job(Member, MakeJob),
    /// The job of a member ends.
    EndJob(Member),
    /// Jobs are to be asked again.
    AskJobs,
    ClearFailure(oneshot::Sender<Result<(), NotCleared>>),
    Snapshot(oneshot::Sender<Box<Snapshot>>),
    Stop,
}

pub(super) struct Shared {
    pub name: String,
    pub clock: Clock,
    pub pool: Pool,
    pub geometry: Geometry,
    /// Bytes of the disk.
    pub bytes: u64,
    pub allocation: Option<Arc<dyn Allocation>>,
    pub discards_to_zeroes: bool,
    /// Files that were made for it.
    pub made: Vec<Made>,
    pub exports: u16,
    /// What each engine may do.
    pub config: Config,
    /// Sectors of the device of each member.
    pub members: Vec<Sectors>,
    pub queue: ArrayQueue<Submission>,
    /// Room in the queue, after it was full.
    pub room: Notify,
    pub was_full: AtomicBool,
    pub orders: Mutex<Vec<Order>>,
    pub ordered: AtomicBool,
    /// The thread sleeps, or is about to: it has to be rung for.
    pub asleep: AtomicBool,
    pub doorbell: OwnedFd,
    /// No more requests are taken.
    pub stopped: AtomicBool,
    /// The thread has ended: whatever still comes has to be answered by who brings it.
    pub closed: AtomicBool,
    /// Writes are refused because something failed.
    pub failed: AtomicBool,
    /// Files that were made for it have been removed again.
    pub given_up: AtomicBool,
    /// The thread has ended by a bug.
    pub broken: AtomicBool,
    pub thread: Mutex<Option<std::thread::JoinHandle<io::Result<()>>>>,
}

impl Shared {
    /// The thread ends: nobody is to wait for it any more.
    pub fn close(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let mut orders = lock(&self.orders);
        self.closed.store(true, Ordering::SeqCst);
        orders.clear();
        drop(orders);
        self.turn_away();
        self.room.notify_waiters();
    }

    /// Answers the requests that the thread has not taken before it ended.
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

/// A lock that a panic elsewhere does not spoil: what it guards is whole between statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
