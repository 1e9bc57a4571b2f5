//! A disk: the handle that front ends use. The thread behind it is in `thread.rs`.

mod log;
mod thread;

use crate::backing::{Lost, Made};
use crate::buffer::Pool;
use crate::device::{Allocation, Control, ControlError, Device, Geometry};
use crate::metrics::Snapshot;
use crate::request::{Completion, Failure, Kind, Submission};
use crossbeam_queue::ArrayQueue;
use headtime_disk::profile::Profile;
use headtime_engine::{Config, ConfigError, Map, Member};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Op, Scheduler};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use rustix::event::EventfdFlags;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Makes a scheduler, on the thread that it will live on.
pub type BuildScheduler = Box<dyn FnOnce() -> Box<dyn Scheduler> + Send>;

/// How a disk is to be run.
pub struct Options {
    /// Its name, for messages.
    pub name: String,
    /// The time, the same for all disks of a server.
    pub clock: Clock,
    /// Depth and merging.
    pub engine: Config,
    /// The most bytes of a merged request, in place of the engine's number of sectors: whoever does
    /// not open the device does not know how large those are.
    pub merge_bytes_max: Option<u64>,
    /// The text of the scheduler, and how it is made.
    pub scheduler: (String, BuildScheduler),
    /// When to give up on a command; never if `None`.
    pub timeout: Option<Nanos>,
    /// How many exports there are, 1 or more: origins of requests are numbered below this, which
    /// [`Disk::submit`] asserts.
    pub exports: u16,
    /// Receives the log of events and decisions.
    pub log: Option<Box<dyn io::Write + Send>>,
    /// What the log says of the run before it begins.
    pub log_settings: Vec<(String, String)>,
    /// Requests that front ends may hand over before the disk's thread has taken them.
    pub queue: usize,
    /// Requests that may be unfinished before no more are taken from the queue, 1 or more.
    pub unfinished: usize,
    /// Whether the thread asks to be put ahead of ordinary ones, if its device lives in model time.
    pub real_time: bool,
    /// The drive that the device is taken to be, to estimate where its arm's time goes; no estimate
    /// if `None`, or if the device itself knows.
    pub estimate: Option<Profile>,
    /// Whether to check the promises of the engines all along; slow, and a broken one ends the thread.
    pub audit: bool,
}

impl Options {
    /// A queue of 1024 before 4096 unfinished requests, one export, no timeout, no log, no
    /// estimate.
    pub fn new(name: &str, clock: Clock, scheduler: (String, BuildScheduler)) -> Options {
        Options {
            name: name.to_owned(),
            clock,
            engine: Config::default(),
            merge_bytes_max: None,
            scheduler,
            timeout: None,
            exports: 1,
            log: None,
            log_settings: Vec::new(),
            queue: 1024,
            unfinished: 4096,
            real_time: true,
            estimate: None,
            audit: false,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options({}, {:?})", self.name, self.engine)
    }
}

/// Why a disk cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The engine refuses its configuration.
    #[error("disk {name}: {error}")]
    Config {
        /// The disk.
        name: String,
        /// Why.
        error: ConfigError,
    },
    /// The engine would send more commands than the device takes.
    #[error(
        "disk {name}: depth {depth} is more than the {device} commands that the device takes at a time"
    )]
    Depth {
        /// The disk.
        name: String,
        /// The engine's.
        depth: u32,
        /// The device's.
        device: u32,
    },
    /// The device cannot be opened.
    #[error("disk {name}: {error}")]
    Device {
        /// The disk.
        name: String,
        /// Why.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The devices of a volume differ in what all of them must have alike.
    #[error(
        "disk {name}: a volume of {members} members needs as many devices and schedulers, and devices whose sectors are of one size"
    )]
    Volume {
        /// The disk.
        name: String,
        /// Members of the map.
        members: u16,
    },
    /// The machine refuses a thread or a file descriptor.
    #[error("disk {name}: {error}")]
    Machine {
        /// The disk.
        name: String,
        /// Why.
        error: io::Error,
    },
}

/// A request was not taken.
#[derive(Debug)]
pub enum Refused {
    /// The queue is full; there will be room.
    Full(Submission),
    /// The disk has stopped.
    Stopped(Submission),
}

/// What can be told a disk beside requests.
enum Order {
    Swap {
        member: Member,
        text: String,
        build: BuildScheduler,
    },
    SetTimeout(Option<Nanos>),
    Device(
        Member,
        Control,
        oneshot::Sender<Result<Sectors, ControlError>>,
    ),
    ClearFailure(oneshot::Sender<Result<(), NotCleared>>),
    Snapshot(oneshot::Sender<Box<Snapshot>>),
    Stop,
}

/// Why a disk takes no writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A write failed, of which the client was told.
    #[error("a write of sectors {extent} failed: {failure}")]
    Write {
        /// Its sectors.
        extent: Extent,
        /// How.
        failure: Failure,
        /// Whether it was to be on stable storage when it completed.
        durable: bool,
    },
    /// A flush failed.
    #[error("a flush failed: {failure}")]
    Flush {
        /// How.
        failure: Failure,
    },
    /// A discard was given up on and may still happen, also to data that are written later.
    #[error("a discard of sectors {extent} was given up on and may still happen")]
    Discard {
        /// Its sectors.
        extent: Extent,
    },
    /// The power was cut before acknowledged writes had reached the medium.
    #[error(
        "the power was cut, and {sectors} sectors that were acknowledged and not flushed are lost"
    )]
    PowerCut {
        /// How many sectors.
        sectors: Sectors,
    },
    /// The power was cut, and the store holds neither what the medium would nor what was written.
    #[error("the power was cut, and {error}")]
    NotTakenBack {
        /// What went wrong.
        error: ControlError,
    },
    /// The file or device under the disk is not what it was.
    #[error("{0}")]
    Backing(Lost),
}

impl Cause {
    /// Whether writes that had been acknowledged are lost.
    pub fn is_loss(&self) -> bool {
        match self {
            Cause::Write { .. } | Cause::Flush { .. } | Cause::Discard { .. } => false,
            Cause::PowerCut { .. } | Cause::NotTakenBack { .. } | Cause::Backing(_) => true,
        }
    }
}

/// Why a disk does not take writes again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCleared {
    /// It takes them.
    #[error("nothing has failed")]
    NotFailed,
    /// Writes that were given up on may still happen.
    #[error(
        "{0} commands that were given up on are still with the device and may overtake new ones"
    )]
    Abandoned(usize),
    /// The file or device under it is still not what it was.
    #[error("{0}")]
    Backing(Lost),
}

/// The disk has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has stopped")]
pub struct Stopped;

/// A disk that runs. A clone is the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Shared>);

struct Shared {
    name: String,
    clock: Clock,
    pool: Pool,
    geometry: Geometry,
    allocation: Option<Arc<dyn Allocation>>,
    discards_to_zeroes: bool,
    /// Files that were made for it.
    made: Vec<Made>,
    exports: u16,
    members: usize,
    queue: ArrayQueue<Submission>,
    /// Room in the queue, after it was full.
    room: Notify,
    was_full: AtomicBool,
    orders: Mutex<Vec<Order>>,
    ordered: AtomicBool,
    /// The thread sleeps, or is about to: it has to be rung for.
    asleep: AtomicBool,
    doorbell: OwnedFd,
    /// No more requests are taken.
    stopped: AtomicBool,
    /// The thread has ended: whatever still comes has to be answered by who brings it.
    closed: AtomicBool,
    /// Writes are refused because something failed.
    failed: AtomicBool,
    /// Files that were made for it have been removed again.
    given_up: AtomicBool,
    /// The thread has ended by a bug.
    broken: AtomicBool,
    thread: Mutex<Option<std::thread::JoinHandle<io::Result<()>>>>,
}

impl Shared {
    /// The thread ends: nobody is to wait for it any more.
    fn close(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let mut orders = lock(&self.orders);
        self.closed.store(true, Ordering::SeqCst);
        orders.clear();
        drop(orders);
        self.turn_away();
        self.room.notify_waiters();
    }

    /// Answers the requests that the thread has not taken before it ended.
    fn turn_away(&self) {
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

impl Disk {
    /// Starts a disk. `open` makes its device, on the disk's thread. If that made files
    /// ([`Device::made`]) and the disk does not start, they are removed.
    ///
    /// # Errors
    ///
    /// If the device cannot be opened, or the configuration does not fit it.
    pub fn start<E>(
        options: Options,
        open: impl FnOnce() -> Result<Box<dyn Device>, E> + Send + 'static,
    ) -> Result<Disk, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Disk::spawn(options, None, move || open().map(|device| vec![device]))
    }

    /// Starts a disk of several devices, one for each member of the map, on one thread. `schedulers` are those of the
    /// members after the first, which has the one of `options`.
    ///
    /// # Errors
    ///
    /// As [`Disk::start`], and if the devices do not fit each other or the map.
    pub fn start_volume<E>(
        options: Options,
        map: Box<dyn Map>,
        schedulers: Vec<BuildScheduler>,
        open: impl FnOnce() -> Result<Vec<Box<dyn Device>>, E> + Send + 'static,
    ) -> Result<Disk, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Disk::spawn(options, Some((map, schedulers)), open)
    }

    fn spawn<E>(
        options: Options,
        volume: Option<(Box<dyn Map>, Vec<BuildScheduler>)>,
        open: impl FnOnce() -> Result<Vec<Box<dyn Device>>, E> + Send + 'static,
    ) -> Result<Disk, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let name = options.name.clone();
        let machine = |error: io::Error| StartError::Machine {
            name: name.clone(),
            error,
        };
        let doorbell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| machine(error.into()))?;
        let (started, starts) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("disk-{}", options.name))
            .spawn(move || thread::main(options, volume, open, doorbell, &started))
            .map_err(machine)?;
        let shared = starts.recv().expect("the thread reports before it ends")?;
        *lock(&shared.thread) = Some(thread);
        Ok(Disk(shared))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is.
    pub fn geometry(&self) -> &Geometry {
        &self.0.geometry
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.0.geometry.sector_bytes
    }

    /// Bytes of the disk.
    pub fn bytes(&self) -> u64 {
        self.0.geometry.capacity.get() * u64::from(self.0.geometry.sector_bytes)
    }

    /// Buffers for requests to this disk.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// The time, for [`Submission::arrived`].
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// Whether writes are refused because something failed, see [`Cause`].
    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed)
    }

    /// What is allocated, if the device can tell.
    pub fn allocation(&self) -> Option<&Arc<dyn Allocation>> {
        self.0.allocation.as_ref()
    }

    /// Whether sectors that were discarded read as zeroes.
    pub fn discards_to_zeroes(&self) -> bool {
        self.0.discards_to_zeroes
    }

    /// Hands a request over. Whom it names is told of its end, whatever happens.
    ///
    /// # Errors
    ///
    /// If the queue is full or the disk has stopped; the request comes back.
    ///
    /// # Panics
    ///
    /// If the request leaves the disk, is empty and no flush, has no buffer of its length, or is of
    /// an export that does not exist: front ends check what clients ask for.
    pub fn submit(&self, submission: Submission) -> Result<(), Refused> {
        self.check(&submission);
        let shared = &*self.0;
        if shared.stopped.load(Ordering::Acquire) {
            return Err(Refused::Stopped(submission));
        }
        if let Err(submission) = shared.queue.push(submission) {
            shared.was_full.store(true, Ordering::SeqCst);
            self.ring();
            return Err(Refused::Full(submission));
        }
        self.ring();
        // The thread may have ended since, without having seen this.
        if shared.closed.load(Ordering::SeqCst) {
            shared.turn_away();
        }
        Ok(())
    }

    /// Hands a request over, when there is room.
    ///
    /// # Errors
    ///
    /// If the disk has stopped.
    ///
    /// # Panics
    ///
    /// As [`Disk::submit`].
    pub async fn submit_when_room(&self, mut submission: Submission) -> Result<(), Submission> {
        loop {
            match self.submit(submission) {
                Ok(()) => return Ok(()),
                Err(Refused::Stopped(back)) => return Err(back),
                Err(Refused::Full(back)) => submission = back,
            }
            let room = self.0.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            // Between the refusal and now there may have come room.
            if self.0.queue.is_full() {
                self.0.was_full.store(true, Ordering::SeqCst);
                // A full queue is emptied by a thread that is awake.
                if self.0.queue.is_full() {
                    room.await;
                }
            }
        }
    }

    fn check(&self, submission: &Submission) {
        let Geometry {
            capacity,
            sector_bytes,
            ..
        } = self.0.geometry;
        let (export, exports) = (submission.origin.export, self.0.exports);
        assert!(export < exports, "export {export} of a disk of {exports}");
        let Extent { start, len } = submission.extent;
        assert!(
            (submission.op == Op::Flush) == (len == Sectors::ZERO),
            "{:?} of {len} sectors",
            submission.op
        );
        let end = start.get().checked_add(len.get());
        assert!(
            end.is_some_and(|end| end <= capacity.get()),
            "sectors {} of {capacity}",
            submission.extent
        );
        if let crate::request::Data::Buffer(buffer) = &submission.data {
            assert_eq!(
                buffer.len() as u64,
                len.get() * u64::from(sector_bytes),
                "the buffer is of the request's size"
            );
        }
    }

    /// Removes the files that did not exist before this disk was started and have no data. For a
    /// server of which another part cannot be started, before [`Disk::stop`].
    pub fn remove_made(&self) {
        self.0.given_up.store(true, Ordering::SeqCst);
        self.0.made.iter().for_each(Made::remove);
    }

    /// Swaps the scheduler in flight; the first member's in a volume of several.
    pub fn swap_scheduler(&self, text: &str, build: BuildScheduler) {
        self.swap_scheduler_of(Member::default(), text, build);
    }

    /// Swaps the scheduler of a member in flight.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn swap_scheduler_of(&self, member: Member, text: &str, build: BuildScheduler) {
        self.check_member(member);
        self.order(Order::Swap {
            member,
            text: text.to_owned(),
            build,
        });
    }

    fn check_member(&self, member: Member) {
        let members = self.0.members;
        assert!(member.index() < members, "member {} of {members}", member.0);
    }

    /// Gives up on commands after another time from now on.
    pub fn set_timeout(&self, timeout: Option<Nanos>) {
        self.order(Order::SetTimeout(timeout));
    }

    /// Makes something happen to an emulated drive, the first member's in a volume of several. Returns how many sectors of acknowledged writes
    /// that has cost; if there are any, the disk takes no writes and no flushes from then on.
    ///
    /// # Errors
    ///
    /// If the disk has stopped, or (inside) the device cannot do that.
    pub async fn control(&self, what: Control) -> Result<Result<Sectors, ControlError>, Stopped> {
        self.control_of(Member::default(), what).await
    }

    /// As [`Disk::control`], for the drive of a member.
    ///
    /// # Errors
    ///
    /// As [`Disk::control`].
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub async fn control_of(
        &self,
        member: Member,
        what: Control,
    ) -> Result<Result<Sectors, ControlError>, Stopped> {
        self.check_member(member);
        let (sender, receiver) = oneshot::channel();
        self.order(Order::Device(member, what, sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// Takes writes again after something has failed.
    ///
    /// # Errors
    ///
    /// If the disk has stopped, or (inside) nothing has failed, or what failed is still so.
    pub async fn clear_failure(&self) -> Result<Result<(), NotCleared>, Stopped> {
        let (sender, receiver) = oneshot::channel();
        self.order(Order::ClearFailure(sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// The disk's state.
    ///
    /// # Errors
    ///
    /// If the disk has stopped.
    pub async fn snapshot(&self) -> Result<Box<Snapshot>, Stopped> {
        let (sender, receiver) = oneshot::channel();
        // Those who asked a disk that is stuck, and have given up on it, leave nothing behind.
        let asked = |order: &Order| !matches!(order, Order::Snapshot(to) if to.is_closed());
        lock(&self.0.orders).retain(asked);
        self.order(Order::Snapshot(sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// Ends the disk: what was taken is done, everything is flushed, and the thread ends. Requests
    /// that come later are refused. Returns when that is over; how long a device may take for a
    /// command is bounded by the timeout, if there is one, and by nothing else.
    ///
    /// # Errors
    ///
    /// If the last flush or the log failed, or the thread had ended by a bug.
    pub fn stop(&self) -> io::Result<()> {
        self.order(Order::Stop);
        match lock(&self.0.thread).take() {
            Some(thread) => match thread.join() {
                Ok(result) => result,
                // It has said so.
                Err(_) => Err(io::Error::other("its thread ended by a bug")),
            },
            None => Ok(()),
        }
    }

    fn order(&self, order: Order) {
        let mut orders = lock(&self.0.orders);
        if self.0.closed.load(Ordering::SeqCst) {
            // Whoever waits for an answer sees that there will be none.
            return;
        }
        orders.push(order);
        drop(orders);
        self.0.ordered.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Wakes the thread if it sleeps.
    fn ring(&self) {
        // Whatever was made visible before this is seen by a thread that goes to sleep after it.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.0.asleep.load(Ordering::Relaxed) && self.0.asleep.swap(false, Ordering::SeqCst) {
            // It can only fail by being full, and then it rings already.
            let _ = rustix::io::write(&self.0.doorbell, &1u64.to_ne_bytes());
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({}, {:?})", self.0.name, self.0.geometry)
    }
}

/// A lock that a panic elsewhere does not spoil: what it guards is whole between statements.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk under a name and with a rank, as clients see it. Several may be of one disk.
#[derive(Clone, Debug)]
pub struct Export {
    /// What clients ask for.
    pub name: String,
    /// Its number among the disk's exports: the origin of its requests.
    pub number: u16,
    /// The rank of its requests.
    pub class: Class,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// The disk.
    pub disk: Disk,
}

impl Export {
    /// The sectors that bytes `offset` to `offset + len` lie on, if they are whole ones within the
    /// disk and not none.
    pub fn extent(&self, offset: u64, len: u64) -> Option<Extent> {
        let bytes = u64::from(self.disk.sector_bytes());
        let end = offset.checked_add(len)?;
        let whole = offset.is_multiple_of(bytes) && len.is_multiple_of(bytes);
        (whole && len > 0 && end <= self.disk.bytes())
            .then(|| Extent::new(Lba::new(offset / bytes), Sectors::new(len / bytes)))
    }
}
