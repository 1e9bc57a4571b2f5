//! Events that an engine takes and commands that it gives.

use crate::gate::{GateOrder, Lane};
use crate::names::{DriveTag, RequestId};
use headtime_sched::{Class, Directive, Flags, Foretold, Op, Origin, Request, Surprise};
use headtime_units::{Extent, Time};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As asked.
    Done,
    /// The medium could not be read or written.
    MediumError,
    /// The drive did not answer in time.
    TimedOut,
    /// The drive, or the path to it, failed.
    DeviceError,
}

/// A request as it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who asked, and their name for it, returned in [`Finished`]. Unique among the unfinished.
    pub id: RequestId,
    /// What to do.
    pub op: Op,
    /// Sectors of the request. Only a flush has none, and begins where its sender's part of the volume begins.
    pub extent: Extent,
    /// Further properties.
    pub flags: Flags,
    /// Who asks.
    pub origin: Origin,
    /// Its rank.
    pub class: Class,
}

/// What happens to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody asks for something.
    Arrived(Arrival),
    /// The drive is done with a command.
    Completed {
        /// Which, as named in [`Command::Issue`].
        tag: DriveTag,
        /// How it ended.
        outcome: Outcome,
    },
    /// The time that [`Engine::next_wakeup`](crate::Engine::next_wakeup) named has come. Does nothing at any other time.
    Woke,
    /// Whoever asked for what is plugged goes to sleep on it. Does nothing when nothing is.
    Unplugged,
    /// A request is certain to come. Only a simulation knows.
    Foretold(Foretold),
    /// A job in the background asks for something that is to go with the first request staged in a lane, or while nothing
    /// else waits. Possible if [`Engine::may_join`](crate::Engine::may_join) says so.
    Joined {
        /// The request that comes.
        arrival: Arrival,
        /// Where the other one is staged, or where it goes alone.
        lane: Lane,
        /// How it goes with it.
        join: Join,
    },
    /// From now on each request that is chosen waits for [`Event::Offered`] before it goes, so that others can join it
    /// also where the drive has room; or no longer.
    Offering(bool),
    /// Whoever may join the first request that is staged in a lane has been asked, and nothing more joins it. Does nothing
    /// if none is.
    Offered(Lane),
    /// Somebody gives the gate an order.
    Ordered(GateOrder),
    /// A conductor gives the schedulers a directive. A mark reaches the scheduler that has the request, or has the request
    /// that this one was merged into. A mark of a request that no scheduler has does nothing.
    Directed(Directive<RequestId>),
    /// A request waits outside the engine for the flush that waits here, as in a volume of several members, where what
    /// comes after a flush waits until that has ended on all. What the flush waits for inherits the rank. To be told again
    /// after a swap of gates. Does nothing if no flush waits.
    Behind {
        /// Who asks for it.
        origin: Origin,
        /// Its class.
        class: Class,
    },
    /// What is queued and staged in a lane moves to another one, but for that for which somebody of a higher rank waits.
    Drained {
        /// The lane that is emptied.
        from: Lane,
        /// The lane that takes it; nothing happens if it is the same.
        to: Lane,
    },
}

/// How a request goes with one that is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// In a command of its own directly before that of the other: its *prefix*. The two are a unit, and the other ends no later for its prefix.
    Before,
    /// The same at the cost of the other, which ends later than without it.
    Outright,
    /// In the same command, at the end of the other's sectors that it touches.
    With,
    /// In a command of its own, while nobody else waits for anything that is not in the drive.
    Alone,
    /// Not with another one: in its queue, as a client's request of its class.
    Queued,
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of its [`RequestId`].
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The request as it arrived; it has no tag any more.
    pub request: Request<()>,
    /// When the command that carried it went to the drive, the last time if it was retried.
    pub issued: Time,
    /// How that ended, against what was predicted of it; `None` if nothing was.
    pub surprise: Option<Surprise>,
}

/// What the engine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hand this to the drive; answer with [`Event::Completed`].
    Issue(Request<DriveTag>),
    /// Tell the client who asked.
    Finish(Finished),
    /// Tell the job in the background that asked.
    Background(Finished),
}

/// Event, command or swap of an engine, as the log and other observers see it.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An event, before the engine takes it.
    Event(&'a Event),
    /// A command, before anybody acts on it.
    Command(&'a Command),
    /// The scheduler of a lane was swapped for the one of this text.
    Swapped(Lane, &'a str),
    /// The gate was swapped for the one of this text, with schedulers of these texts.
    GateSwapped(&'a str, &'a [String]),
}

/// What the engine did so far, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that came.
    pub arrived: u64,
    /// Requests that finished.
    pub finished: u64,
    /// Commands given to the drive.
    pub issued: u64,
    /// Requests appended to a queued one.
    pub merged_back: u64,
    /// Requests put in front of a queued one.
    pub merged_front: u64,
    /// Queued requests that grew together.
    pub fused: u64,
    /// Requests that waited for one they overlap.
    pub held_overlap: u64,
    /// Requests that waited for a flush.
    pub held_flush: u64,
    /// Times that the scheduler chose to wait.
    pub idled: u64,
    /// Times that the scheduler gave a request while it had several.
    pub chosen: u64,
    /// Times that it gave one that had come before another that it gave earlier.
    pub overtaken: u64,
    /// Requests that joined a staged one.
    pub joined: u64,
    /// Requests that got a higher rank, since one of that rank waited for them.
    pub raised: u64,
    /// Merged requests that failed and were tried again part by part.
    pub split: u64,
    /// The most requests with the schedulers at once.
    pub queued_max: u64,
}

impl core::ops::AddAssign for Stats {
    /// Adds what another engine did.
    fn add_assign(&mut self, other: Stats) {
        self.arrived += other.arrived;
        self.finished += other.finished;
        self.issued += other.issued;
        self.merged_back += other.merged_back;
        self.merged_front += other.merged_front;
        self.fused += other.fused;
        self.held_overlap += other.held_overlap;
        self.held_flush += other.held_flush;
        self.idled += other.idled;
        self.chosen += other.chosen;
        self.overtaken += other.overtaken;
        self.joined += other.joined;
        self.raised += other.raised;
        self.split += other.split;
        self.queued_max = self.queued_max.max(other.queued_max);
    }
}
