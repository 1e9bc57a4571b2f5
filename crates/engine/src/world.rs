//! Surroundings of the loop: devices, clients and time of a [`World`], orders, and jobs in the background.

use crate::audit::Violation;
use crate::shared::SharedCell;
use crate::volume::Part;
use crate::{
    Arrival, DriveTag, Engine, Finished, Gate, GateOrder, Join, Lane, Member, Outcome, Seen,
};
use headtime_sched::{Backlog, Foretold, HeadState, Request, Scheduler, Track};
use headtime_units::{Lba, Nanos, Time};

mod layer;

pub use layer::BackgroundLayer;

/// A command that a device has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The device's member.
    pub member: Member,
    /// The command's tag.
    pub tag: DriveTag,
    /// Time of the completion.
    pub at: Time,
    /// Outcome of the command.
    pub outcome: Outcome,
}

/// A client's request, or its end of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A request arrives.
    Request(Arrival),
    /// A client goes to sleep on requests that are held back, which ends its burst. The client's part of the volume
    /// begins at this sector.
    Unplugged(Lba),
}

/// A change of a running volume: of schedulers, gates, lanes, timeouts.
pub enum Order {
    /// A new scheduler replaces the old one and takes over the queued requests of its lane.
    Swap {
        /// The engine's member.
        member: Member,
        /// The scheduler's lane.
        lane: Lane,
        /// The text for the log; one word.
        text: String,
        /// The scheduler, empty.
        scheduler: Box<dyn Scheduler>,
    },
    /// Queued and staged requests of a lane move to another lane ([`Event::Drained`](crate::Event::Drained)).
    Drain {
        /// The engine's member.
        member: Member,
        /// The lane that is emptied.
        from: Lane,
        /// The lane that takes the requests.
        to: Lane,
    },
    /// The timeout of commands changes. A command in the device gets the new deadline if the new one is earlier, or if
    /// the command had none.
    Timeout(Option<Nanos>),
    /// The gate of an engine gets an order.
    Gate(Member, GateOrder),
    /// A new gate replaces the old one and takes over all waiting requests.
    SwapGate {
        /// The engine's member.
        member: Member,
        /// The text for the log; one word.
        text: String,
        /// The gate.
        gate: Box<dyn Gate>,
        /// The schedulers of its lanes, empty, each with its text.
        schedulers: Vec<(String, Box<dyn Scheduler>)>,
    },
}

/// Answer of a device to the order to give up on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The device has the command no longer; the request ends as [`Outcome::TimedOut`] or is tried again in parts.
    Yes,
    /// The device completes the command now; do not ask again.
    Completes,
    /// The device completes the command soon; ask again after another timeout.
    AskAgain,
}

/// A command that was not completed in time.
#[derive(Clone, Copy)]
pub struct Late<'a> {
    /// The member whose device has the command.
    pub member: Member,
    /// The command's tag.
    pub tag: DriveTag,
    /// Number of times that the device has answered [`GaveUp::AskAgain`].
    pub promises: u32,
    /// The present timeout.
    pub timeout: Option<Nanos>,
    /// The engine, which knows the command's parts.
    pub engine: &'a Engine,
}

/// State of head and drive before the first request that is staged in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// The lane.
    pub lane: Lane,
    /// The head after all commands that precede the request.
    pub head: HeadState,
    /// Predicted time at which the drive has room for the next command, if there is a prediction. A time in the past
    /// means that the drive has room.
    pub room: Option<Time>,
    /// True if the drive gets one command at a time, in general or by the gate's rule for this lane. The request is
    /// then sent when the preceding command is done.
    pub serial: bool,
}

/// A job in the background of an engine. The job asks for requests that go with staged requests, and is notified of
/// their end. No client is notified.
pub trait Background: Send {
    /// Returns a request that is to go with a staged request, alone or through the queue. [`Engine::may_join`] must
    /// allow it. Called when there are no more commands, until `None`.
    ///
    /// `approach` is the state before the first staged request. It is `None` if no request is staged, or if no tracker
    /// follows the head. A job with [`Background::is_offered`] is called for each chosen request until the job returns
    /// `None`.
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)>;

    /// Returns true if each chosen request is to be offered to the job before the request goes, even if the drive has
    /// room. Otherwise only requests that wait for the drive are offered.
    fn is_offered(&self) -> bool {
        false
    }

    /// Returns the job's limit on the number of commands in the drive, `None` without a limit. Called before
    /// [`Background::joins`].
    fn depth(&self) -> Option<u32> {
        None
    }

    /// Returns the time at which the job is to be asked without an event. A time in the past means at once. A job that
    /// is asked then has to do something, or to name a later time.
    fn next_wakeup(&self, _engine: &Engine) -> Option<Time> {
        None
    }

    /// Returns true if the job has nothing more to do.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns the tracker that is to follow the head for this job. The engine uses it if no scheduler has a tracker.
    fn tracker(&self) -> Option<Box<dyn Track>> {
        None
    }

    /// Notifies the job of a client's request that arrives and has not gone to the drive.
    fn arrives(&mut self, _now: Time, _arrival: &Arrival) {}

    /// Notifies the job that a client's request is over.
    fn seen(&mut self, _now: Time, _done: &Finished) {}

    /// Fills `data` with the data of the job's write `id`. `data` has arbitrary contents before. A live server calls
    /// this when a write has joined. In simulation there are no data.
    ///
    /// # Panics
    ///
    /// If the job does not write.
    fn fill(&mut self, id: u64, data: &mut [u8]) {
        panic!("b{id} writes {} bytes, and nobody says what", data.len());
    }

    /// Notifies the job that its request is over. `data` is the data of a successful read in a live server.
    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>);
}

/// A job that is shared, so that another owner can inspect it while it runs.
impl<B: Background> Background for SharedCell<B> {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.lock().joins(now, engine, approach)
    }

    fn is_offered(&self) -> bool {
        self.lock().is_offered()
    }

    fn depth(&self) -> Option<u32> {
        self.lock().depth()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        self.lock().next_wakeup(engine)
    }

    fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        self.lock().tracker()
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        self.lock().arrives(now, arrival);
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.lock().seen(now, done);
    }

    fn fill(&mut self, id: u64, data: &mut [u8]) {
        self.lock().fill(id, data);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.lock().finished(now, done, data);
    }
}

/// The surroundings of the engines: devices, clients and time.
pub trait World {
    /// Reason for an early end of the world. A broken promise of an engine is such a reason.
    type Error: From<Broken>;

    /// Returns the time of the next order if it is known in advance, else [`Time::NEVER`].
    #[inline]
    fn next_order(&self) -> Time {
        Time::NEVER
    }

    /// Returns the order that is due. If the order was for a device, the world obeys it and returns `None`.
    fn order(&mut self, _now: Time) -> Option<Order> {
        None
    }

    /// Returns the time of the next event in a device, [`Time::NEVER`] if there is none.
    fn next_device(&self) -> Time;

    /// Returns a command that a device has completed by `now`, if there is one. The earliest comes first, then the
    /// lowest member.
    fn completed(&mut self, now: Time) -> Option<Done>;

    /// Returns the time of a client's next request. A time that has passed means at once.
    fn next_arrival(&self) -> Option<Time>;

    /// Returns a client's request or end of a burst at `now`; `None` if there is none after all.
    ///
    /// # Errors
    ///
    /// If the request is invalid.
    fn arrived(&mut self, now: Time) -> Result<Option<Asked>, Self::Error>;

    /// Returns the next request that has become certain to come. Each such request is returned once. Called after every
    /// event and completion.
    #[inline]
    fn foretell(&mut self) -> Option<Foretold> {
        None
    }

    /// Sends a command to a device; `engine` knows the command's parts. Returns false if the command never reaches the
    /// device. The command then has no deadline, and [`World::completed`] returns it.
    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        engine: &Engine,
    ) -> bool;

    /// Tells a device to give up on a command that it has had for the whole of the timeout.
    fn give_up(&mut self, now: Time, late: &Late<'_>) -> GaveUp;

    /// Notifies the client that its request is over.
    ///
    /// # Errors
    ///
    /// If the world must end.
    fn finished(&mut self, now: Time, done: &Finished) -> Result<(), Self::Error>;

    /// Prepares the resources of a background job's request that joins, such as its buffer. `job` supplies the data of
    /// a write.
    fn joined(&mut self, _member: Member, _arrival: &Arrival, _job: &mut dyn Background) {}

    /// Notifies a job in the background that its request is over.
    fn background(
        &mut self,
        now: Time,
        _member: Member,
        done: &Finished,
        job: &mut dyn Background,
    ) {
        job.finished(now, done, None);
    }

    /// Notes in the account of a device the reason why requests wait. Called when there are no more commands.
    fn backlog(&mut self, now: Time, member: Member, backlog: Backlog);

    /// Notifies the world of a part of a client's request on a member of a volume, before the part arrives there.
    /// Volumes of one member have no parts.
    #[inline]
    fn part(&mut self, _member: Member, _part: &Part) {}

    /// Notifies the world that a part has ended. If the client's request ends with it, [`World::finished`] follows.
    #[inline]
    fn part_finished(&mut self, _now: Time, _done: &Finished) {}

    /// Shows observers an event, command or swap of an engine.
    #[inline]
    fn seen(&mut self, _now: Time, _member: Member, _seen: Seen<'_>) {}
}

/// An engine broke a promise: a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {violation}")]
pub struct Broken {
    /// Time of the violation.
    pub at: Time,
    /// The broken promise.
    pub violation: Violation,
}
