//! A disk: the handle that front ends use. The thread behind it is in `thread.rs`.

mod addresses;
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
use headtime_engine::{self as engine, Config, Gate, GateError, GateOrder, GateSpec, Lane, Member};
use headtime_sched::{Class, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};
use rustix::event::EventfdFlags;
use shared::{Order, Shared, lock};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

pub use addresses::{Addresses, PartError};
pub use cause::{Cause, NotCleared};
use options::Devices;
pub use options::{
    BuildGate, BuildJob, BuildScheduler, MakeJob, MemberOptions, Options, StartError, Volume,
};

/// A request was not taken.
#[derive(Debug)]
pub enum Refused {
    /// The queue is full; there will be room.
    Full(Submission),
    /// The disk has stopped.
    Stopped(Submission),
}

/// The disk has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has stopped")]
pub struct Stopped;

/// A disk that runs. A clone is the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Shared>);

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
        Disk::spawn(options, Vec::new(), move || {
            open().map(|device| (vec![device], None))
        })
    }

    /// Starts a disk of several devices, one for each member of the map, on one thread. `open` makes both there.
    /// `others` are the members after the first, which has the scheduler of `options`.
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

    /// How many devices are behind it.
    pub fn members(&self) -> usize {
        self.0.members.len()
    }

    /// Sectors of the device of a member.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn sectors_of(&self, member: Member) -> Sectors {
        self.check_member(member);
        self.0.members[member.index()]
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.0.geometry.sector_bytes
    }

    /// Bytes of the disk. The last sector may have fewer than the others.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// All bytes of the disk.
    pub fn addresses(&self) -> Addresses {
        Addresses::whole(self.bytes(), self.sector_bytes())
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

    /// Whether no more requests are taken; those that were may still be done.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
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

    /// Swaps the scheduler of a member in flight, in all lanes.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn swap_scheduler_of(&self, member: Member, text: &str, build: BuildScheduler) {
        self.check_member(member);
        self.order(Order::Scheduler(member, text.to_owned(), build));
    }

    /// Gives the gate of a member an order, which the log has.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn order_gate(&self, member: Member, order: GateOrder) {
        self.order_of(member, move || engine::Order::Gate(member, order));
    }

    /// Moves what is queued and staged in a lane of a member to another one. Does nothing if the gate that is then in
    /// force has no such lanes.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn drain_lane(&self, member: Member, from: Lane, to: Lane) {
        self.check_member(member);
        self.order(Order::Drain(member, from, to));
    }

    /// Swaps the gate of a member in flight. Each of its lanes gets a new scheduler of the kind that is in force.
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

    /// Gives all members the gate of this name. Where it differs from the one in force in nothing but its threshold of
    /// age, the gate stays and keeps its ages; else as [`Disk::swap_gate`]. Does nothing if it is in force.
    ///
    /// # Errors
    ///
    /// If an option of the gate does not fit the engine; nothing is changed then.
    pub fn set_gate(&self, gate: &GateSpec) -> Result<(), GateError> {
        (0..self.members() as u16).try_for_each(|member| self.set_gate_of(Member(member), gate))
    }

    /// As [`Disk::set_gate`], for one member.
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
        gate.build(&self.0.config)?;
        self.order(Order::NamedGate(member, gate.clone()));
        Ok(())
    }

    /// Has a job run in the background of a member, in place of the one that did. Requests of that one must be over, or the
    /// disk's thread ends. As of [`Options::background`], a request of a job is at most as large as a buffer.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn run_in_background(&self, member: Member, job: MakeJob) {
        self.check_member(member);
        self.order(Order::Job(member, job));
    }

    /// Ends the job in the background of a member, whose requests must be over; does nothing if there is none.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn end_background(&self, member: Member) {
        self.check_member(member);
        self.order(Order::EndJob(member));
    }

    /// Asks jobs in the background again, as after an event: something has changed for them.
    pub fn ask_jobs(&self) {
        self.order(Order::AskJobs);
    }

    /// What its engines may do.
    pub fn engine_config(&self) -> &Config {
        &self.0.config
    }

    fn order_of(&self, member: Member, make: impl FnOnce() -> engine::Order + Send + 'static) {
        self.check_member(member);
        self.order(Order::Core(Box::new(make)));
    }

    fn check_member(&self, member: Member) {
        let members = self.members();
        assert!(member.index() < members, "member {} of {members}", member.0);
    }

    /// Gives up on commands after another time from now on.
    pub fn set_timeout(&self, timeout: Option<Nanos>) {
        let order = move || engine::Order::Timeout(timeout);
        self.order(Order::Core(Box::new(order)));
    }

    /// Makes something happen to an emulated drive, or to the drives of all members at the same time. Returns how many sectors of
    /// acknowledged writes that has cost; if there are any, the disk takes no writes and no flushes from then on.
    ///
    /// # Errors
    ///
    /// If the disk has stopped, or (inside) a device cannot do that; the others have done it.
    pub async fn control(&self, what: Control) -> Result<Result<Sectors, ControlError>, Stopped> {
        self.control_members(0..self.members() as u16, what).await
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

    /// [Stops](Disk::stop) disks, all at the same time. Returns the names of those whose last flush or log failed, with the cause.
    pub fn stop_all<'a>(disks: impl Iterator<Item = &'a Disk>) -> Vec<(&'a str, io::Error)> {
        std::thread::scope(|scope| {
            let stops: Vec<_> = disks
                .map(|disk| scope.spawn(|| Some((disk.name(), disk.stop().err()?))))
                .collect();
            let ended = stops.into_iter();
            ended
                .filter_map(|stop| stop.join().expect("stopping a disk does not panic"))
                .collect()
        })
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

/// A disk or a part of a disk under a name and with a rank, as clients see it. Several may be of one disk.
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
    /// Bytes of the disk that clients see.
    pub addresses: Addresses,
    /// Number of the program whose requests come through it; 0 if none is known.
    pub program: u16,
    /// The disk.
    pub disk: Disk,
}
