//! A disk's handle, which front ends use. The disk's thread is in `thread.rs`.

mod addresses;
mod batch;
mod cause;
mod log;
mod options;
mod shared;
mod thread;

use crate::backing::Made;
use crate::buffer::Pool;
use crate::device::{Allocation, Control, ControlError, Device, Geometry};
use crate::metrics::Snapshot;
use crate::request::{Cut, Data, Submission};
pub(crate) use batch::Batch;
use headtime_engine::{self as engine, Config, Gate, GateError, GateOrder, GateSpec, Lane, Member};
use headtime_sched::{Class, Op};
use headtime_units::{Extent, Nanos, Rate, Sectors, Time};
use rustix::event::EventfdFlags;
use shared::{Order, Shared, lock};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use thread::{Thread, run_for_guest};
use tokio::sync::oneshot;

pub use addresses::{Addresses, PartError};
pub use cause::{Cause, NotCleared};
use options::Devices;
pub use options::{
    BuildGate, BuildJob, BuildScheduler, ExportShare, MakeJob, MemberOptions, Options, ShareBy,
    StartError, Volume,
};

/// Request that was not taken.
#[derive(Debug)]
pub enum Refused {
    /// The queue is full. The queue will have room later.
    Full(Submission),
    /// The disk has stopped.
    Stopped(Submission),
}

/// The disk has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has stopped")]
pub struct Stopped;

/// A running disk. A clone is a handle to the same disk.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Shared>,
    /// State of the disk's thread, which the thread and front ends take turns to use. `None` once the thread has ended.
    state: Arc<Mutex<Option<Thread>>>,
}

impl Disk {
    /// Starts a disk. `open` makes the disk's device on the disk's thread. If the disk does not start, the files that
    /// opening the device made ([`Device::made`]) are removed.
    ///
    /// # Errors
    ///
    /// If the device cannot be opened, or the configuration does not fit the device.
    pub fn start<E>(
        options: Options,
        open: impl FnOnce() -> Result<Box<dyn Device>, E> + Send + 'static,
    ) -> Result<Disk, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Disk::spawn(options, Vec::new(), move || {
            open().map(|device| (vec![device], None))
        })
    }

    /// Starts a disk of several devices, one for each member of the map, on one thread. `open` makes the devices and
    /// the map on that thread. The first member has the scheduler of `options`, and `others` are the members after the
    /// first.
    ///
    /// # Errors
    ///
    /// As [`Disk::start`], and if the devices do not fit each other or the map.
    pub fn start_volume<E>(
        options: Options,
        others: Vec<MemberOptions>,
        open: impl FnOnce() -> Result<Volume, E> + Send + 'static,
    ) -> Result<Disk, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Disk::spawn(options, others, move || {
            open().map(|(devices, map)| (devices, Some(map)))
        })
    }

    fn spawn<E>(
        options: Options,
        others: Vec<MemberOptions>,
        open: impl FnOnce() -> Result<Devices, E> + Send + 'static,
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
            .spawn(move || thread::main(options, others, open, doorbell, &started))
            .map_err(machine)?;
        let (shared, state) = starts.recv().expect("the thread reports before it ends")?;
        *lock(&shared.thread) = Some(thread);
        Ok(Disk { shared, state })
    }

    /// Name of the disk.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Geometry of the disk.
    pub fn geometry(&self) -> &Geometry {
        &self.shared.geometry
    }

    /// Number of devices of the disk.
    pub fn members(&self) -> usize {
        self.shared.members.len()
    }

    /// Capacity of a member's device.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn sectors_of(&self, member: Member) -> Sectors {
        self.check_member(member);
        self.shared.members[member.index()]
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.shared.geometry.sector_bytes
    }

    /// Bytes of the disk. The last sector may have fewer than the others.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes
    }

    /// All bytes of the disk.
    pub fn addresses(&self) -> Addresses {
        Addresses::whole(self.bytes(), self.sector_bytes())
    }

    /// Number of the client that a connection's requests are counted for, as process of the requests' origin; 0 if the
    /// requests go to the engine as they come. `peer` tells the peers of an export apart.
    pub(crate) fn client_of(&self, export: u16, peer: u32) -> u32 {
        match self
            .shared
            .shares
            .get(usize::from(export))
            .map(|share| share.by)
        {
            None | Some(ShareBy::None) => 0,
            Some(ShareBy::Export) => 1 + u32::from(export),
            // Numbers of exports are below. Schedulers that know processes take equal peers of two exports for one.
            Some(ShareBy::Peer) => peer | 1 << 31,
        }
    }

    /// Limit on the data that an export reads and writes in a second.
    pub fn rate_of(&self, export: u16) -> Option<Rate> {
        self.shared
            .rates
            .get(usize::from(export))
            .copied()
            .flatten()
    }

    /// Pool of buffers for requests to this disk.
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// The time, for [`Submission::arrived`].
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Returns true if writes are refused because of a failure, see [`Cause`].
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Returns true if no more requests are taken. Requests that were taken may still be unfinished.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Returns the source of allocation status, if the device has one.
    pub fn allocation(&self) -> Option<&Arc<dyn Allocation>> {
        self.shared.allocation.as_ref()
    }

    /// Returns true if discarded sectors read as zeroes.
    pub fn discards_to_zeroes(&self) -> bool {
        self.shared.discards_to_zeroes
    }

    /// Submits a request. If the request is taken, [`Submission::to`] gets the completion, even if the disk fails.
    ///
    /// # Errors
    ///
    /// If the queue is full or the disk has stopped. The error returns the request.
    ///
    /// # Panics
    ///
    /// If the request is invalid. Front ends check the requests of clients, so that the following does not occur:
    ///
    /// - The request extends beyond the disk.
    /// - The request is empty but no flush, or a flush but not empty.
    /// - The buffer differs in length from the request, or the cut does not fit the request.
    /// - The number of the export is too high.
    pub fn submit(&self, submission: Submission) -> Result<(), Refused> {
        let mut batch = Batch::default();
        let result = self.submit_in(&mut batch, submission);
        self.wake(batch);
        result
    }

    /// Submits a request of a batch. The disk may sleep until [`Disk::run`] follows.
    pub(crate) fn submit_in(
        &self,
        batch: &mut Batch,
        submission: Submission,
    ) -> Result<(), Refused> {
        self.check(&submission);
        let shared = &*self.shared;
        if shared.stopped.load(Ordering::Acquire) {
            return Err(Refused::Stopped(submission));
        }
        let with = batch.with(&submission, shared);
        shared.queue.push(submission).map_err(|submission| {
            shared.was_full.store(true, Ordering::SeqCst);
            self.ring();
            Refused::Full(submission)
        })?;
        *batch = with;
        Ok(())
    }

    /// Runs a batch of requests. If the disk is idle and the requests are short, they run on the caller's thread, and
    /// some completions may be there when the call returns. Otherwise wakes the disk's thread.
    ///
    /// Only for threads that live as long as the disk, because the kernel cancels commands of a thread that ends.
    pub(crate) fn run(&self, batch: Batch) {
        if !(batch.is_short()
            && self.shared.asleep.load(Ordering::Relaxed)
            && run_for_guest(&self.state, batch.requests))
        {
            self.wake(batch);
        }
    }

    /// Wakes the disk's thread for the requests of a batch.
    pub(crate) fn wake(&self, batch: Batch) {
        if batch.requests == 0 {
            return;
        }
        self.ring();
        // The thread may have ended meanwhile without having seen these requests.
        if self.shared.closed.load(Ordering::SeqCst) {
            self.shared.turn_away();
        }
    }

    /// Submits a request as soon as the queue has room.
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
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            // The queue may have got room between the refusal and now.
            if self.shared.queue.is_full() {
                self.shared.was_full.store(true, Ordering::SeqCst);
                // A full queue is emptied by a thread that is awake.
                if self.shared.queue.is_full() {
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
        } = self.shared.geometry;
        let (export, exports) = (submission.origin.export, self.shared.exports);
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
        let Cut { head, tail } = submission.cut;
        let bytes = len.bytes(sector_bytes);
        assert!(
            submission.cut == Cut::NONE
                || head.max(tail) < sector_bytes
                    && u64::from(head) + u64::from(tail) < bytes
                    && submission.op.changes(),
            "{:?} of {bytes} bytes without {head} and {tail}",
            submission.op
        );
        if let Data::Buffer(buffer) = &submission.data {
            assert_eq!(
                buffer.len() as u64,
                bytes,
                "the buffer is of the request's size"
            );
        }
    }

    /// Removes the files that starting this disk has made, if they hold no data. A server that cannot start another of
    /// its parts calls this before [`Disk::stop`].
    pub fn remove_made(&self) {
        self.shared.given_up.store(true, Ordering::SeqCst);
        self.shared.made.iter().for_each(Made::remove);
    }

    /// Swaps the scheduler while the disk runs. In a volume, swaps the first member's scheduler.
    pub fn swap_scheduler(&self, text: &str, build: BuildScheduler) {
        self.swap_scheduler_of(Member::default(), text, build);
    }

    /// Swaps the scheduler of a member, in all lanes, while the disk runs.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn swap_scheduler_of(&self, member: Member, text: &str, build: BuildScheduler) {
        self.check_member(member);
        self.order(Order::Scheduler(member, text.to_owned(), build));
    }

    /// Gives an order to the gate of a member. The log records the order.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn order_gate(&self, member: Member, order: GateOrder) {
        self.order_of(member, move || engine::Order::Gate(member, order));
    }

    /// Moves the queued and staged requests of one lane of a member to another lane. Does nothing if the gate in force
    /// at that time lacks one of the lanes.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn drain_lane(&self, member: Member, from: Lane, to: Lane) {
        self.check_member(member);
        self.order(Order::Drain(member, from, to));
    }

    /// Swaps the gate of a member while the disk runs. Each lane of the gate gets a new scheduler of the kind in force.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn swap_gate(
        &self,
        member: Member,
        text: &str,
        gate: impl FnOnce() -> Box<dyn Gate> + Send + 'static,
    ) {
        self.check_member(member);
        self.order(Order::Gate(member, text.to_owned(), Box::new(gate)));
    }

    /// Puts the named gate in force at all members. Does nothing at a member where this gate is in force already. If
    /// only the age threshold differs from the gate in force, that gate stays and keeps its ages. Otherwise the gate is
    /// replaced as by [`Disk::swap_gate`].
    ///
    /// # Errors
    ///
    /// If an option of the gate does not fit the engine. The gate in force stays.
    pub fn set_gate(&self, gate: &GateSpec) -> Result<(), GateError> {
        (0..self.members() as u16).try_for_each(|member| self.set_gate_of(Member(member), gate))
    }

    /// Puts the named gate in force at one member, as [`Disk::set_gate`] does for all.
    ///
    /// # Errors
    ///
    /// As [`Disk::set_gate`].
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn set_gate_of(&self, member: Member, gate: &GateSpec) -> Result<(), GateError> {
        self.check_member(member);
        gate.build(&self.shared.config)?;
        self.order(Order::NamedGate(member, gate.clone()));
        Ok(())
    }

    /// Starts a background job of a member, in place of the present job. The present job's requests must be over,
    /// otherwise the disk's thread ends. As with [`Options::background`], a request of a job is at most as large as a
    /// buffer.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn run_in_background(&self, member: Member, job: MakeJob) {
        self.check_member(member);
        self.order(Order::Job(member, job));
    }

    /// Ends the background job of a member. The job's requests must be over. Does nothing if there is no job.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn end_background(&self, member: Member) {
        self.check_member(member);
        self.order(Order::EndJob(member));
    }

    /// Asks the background jobs again for requests, as after an event. Called when something has changed for the jobs.
    pub fn ask_jobs(&self) {
        self.order(Order::AskJobs);
    }

    /// Configuration of the disk's engines.
    pub fn engine_config(&self) -> &Config {
        &self.shared.config
    }

    fn order_of(&self, member: Member, make: impl FnOnce() -> engine::Order + Send + 'static) {
        self.check_member(member);
        self.order(Order::Core(Box::new(make)));
    }

    fn check_member(&self, member: Member) {
        let members = self.members();
        assert!(member.index() < members, "member {} of {members}", member.0);
    }

    /// Changes the time after which commands are given up on.
    pub fn set_timeout(&self, timeout: Option<Nanos>) {
        let order = move || engine::Order::Timeout(timeout);
        self.order(Order::Core(Box::new(order)));
    }

    /// Changes the age at which a request fails that the device has not been given ([`Options::queue_timeout`]).
    pub fn set_queue_timeout(&self, timeout: Option<Nanos>) {
        self.order(Order::QueueTimeout(timeout));
    }

    /// Controls an emulated drive, or the drives of all members at the same time. Returns the number of sectors of
    /// acknowledged writes that are lost by this. If any are lost, the disk takes no more writes and flushes.
    ///
    /// # Errors
    ///
    /// If the disk has stopped. The inner result is an error if a device cannot carry out the order. The other devices
    /// have carried it out.
    pub async fn control(&self, what: Control) -> Result<Result<Sectors, ControlError>, Stopped> {
        self.control_members(0..self.members() as u16, what).await
    }

    /// Controls the drive of a member, as [`Disk::control`] does all drives.
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
        self.control_members(member.0..member.0 + 1, what).await
    }

    async fn control_members(
        &self,
        members: Range<u16>,
        what: Control,
    ) -> Result<Result<Sectors, ControlError>, Stopped> {
        let (sender, receiver) = oneshot::channel();
        self.order(Order::Device(members, what, sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// Clears a failure, so that the disk takes writes again.
    ///
    /// # Errors
    ///
    /// If the disk has stopped. The inner result is an error if nothing has failed, or if the failure persists.
    pub async fn clear_failure(&self) -> Result<Result<(), NotCleared>, Stopped> {
        let (sender, receiver) = oneshot::channel();
        self.order(Order::ClearFailure(sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// Returns the disk's state.
    ///
    /// # Errors
    ///
    /// If the disk has stopped.
    pub async fn snapshot(&self) -> Result<Box<Snapshot>, Stopped> {
        let (sender, receiver) = oneshot::channel();
        // Callers that asked a stuck disk may have given up since. Their orders are removed here so that they do not
        // pile up.
        let asked = |order: &Order| !matches!(order, Order::Snapshot(to) if to.is_closed());
        lock(&self.shared.orders).retain(asked);
        self.order(Order::Snapshot(sender));
        receiver.await.map_err(|_| Stopped)
    }

    /// Ends the disk. The disk finishes the requests that it has taken, flushes its devices and ends its thread. Later
    /// requests are refused. Returns when all of this is over. The wait for a device has no bound other than the
    /// timeout of commands, if there is one.
    ///
    /// # Errors
    ///
    /// If the last flush or the log failed, or the thread had ended by a bug.
    pub fn stop(&self) -> io::Result<()> {
        self.order(Order::Stop);
        match lock(&self.shared.thread).take() {
            Some(thread) => match thread.join() {
                Ok(result) => result,
                // The thread has logged the reason.
                Err(_) => Err(io::Error::other("its thread ended by a bug")),
            },
            None => Ok(()),
        }
    }

    /// [Stops](Disk::stop) all `disks` at the same time. Returns the names of the disks whose last flush or log failed,
    /// each with the error.
    pub fn stop_all<'a>(disks: impl Iterator<Item = &'a Disk>) -> Vec<(&'a str, io::Error)> {
        let disks: Vec<&Disk> = disks.inspect(|disk| disk.order(Order::Stop)).collect();
        let ended = disks.into_iter();
        ended
            .filter_map(|disk| Some((disk.name(), disk.stop().err()?)))
            .collect()
    }

    fn order(&self, order: Order) {
        let mut orders = lock(&self.shared.orders);
        if self.shared.closed.load(Ordering::SeqCst) {
            // Dropping the order drops its sender, so a waiting caller sees that there will be no answer.
            return;
        }
        orders.push(order);
        drop(orders);
        self.shared.ordered.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Wakes the disk's thread if the thread sleeps.
    fn ring(&self) {
        // A thread that goes to sleep after this fence sees the request or order that was stored before the fence.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed)
            && self.shared.asleep.swap(false, Ordering::SeqCst)
        {
            // The write can fail only if the doorbell's counter is full. The doorbell rings already then.
            let _ = rustix::io::write(&self.shared.doorbell, &1u64.to_ne_bytes());
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({}, {:?})", self.shared.name, self.shared.geometry)
    }
}

/// A disk or a part of a disk as clients see it, with a name and a rank. A disk may have several exports.
#[derive(Clone, Debug)]
pub struct Export {
    /// Name that clients ask for.
    pub name: String,
    /// Number of the export among the disk's exports, which is the origin of its requests.
    pub number: u16,
    /// Rank of the export's requests.
    pub class: Class,
    /// True if the export takes no writes.
    pub read_only: bool,
    /// Bytes of the disk that clients see.
    pub addresses: Addresses,
    /// Number of the program whose requests come through the export; 0 if no program is known.
    pub program: u16,
    /// Limits of all NBD clients of the export together.
    pub limits: ExportLimits,
    /// The disk.
    pub disk: Disk,
}

/// Limits of all NBD clients of an export together. Beyond them, the server does not read the clients' sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportLimits {
    /// Most unanswered requests, 1 or more.
    pub requests: usize,
    /// Most bytes of unanswered requests. A single request may have more if there is no other.
    pub bytes: usize,
}

impl Default for ExportLimits {
    fn default() -> ExportLimits {
        ExportLimits {
            requests: usize::MAX,
            bytes: usize::MAX,
        }
    }
}
