//! Events that an engine takes and commands that it gives.

use crate::gate::{GateOrder, Lane};
use crate::names::{DriveTag, RequestId};
use headtime_sched::{Class, Directive, Flags, Foretold, Op, Origin, Request, Surprise};
use headtime_units::{Extent, Time};

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Success.
    Done,
    /// The medium could not be read or written.
    MediumError,
    /// The drive did not answer in time.
    TimedOut,
    /// The drive, or the path to it, failed.
    DeviceError,
}

/// A request on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The asking side and its name for the request, returned in [`Finished`]. Unique among unfinished requests.
    pub id: RequestId,
    /// The operation.
    pub op: Op,
    /// Sectors of the request. Only a flush has none, and begins where its sender's part of the volume begins.
    pub extent: Extent,
    /// Further properties.
    pub flags: Flags,
    /// Process, program and export of the request.
    pub origin: Origin,
    /// The request's rank.
    pub class: Class,
    /// Beginning of the request's age. `None`: the arrival.
    pub since: Option<Time>,
}

/// Input of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client's request arrives.
    Arrived(Arrival),
    /// The drive has completed a command.
    Completed {
        /// The command's tag, as in [`Command::Issue`].
        tag: DriveTag,
        /// The outcome.
        outcome: Outcome,
    },
    /// The time of [`Engine::next_wakeup`](crate::Engine::next_wakeup) has come. At any other time the event has no
    /// effect.
    Woke,
    /// A client goes to sleep on requests that a plug holds back, so the plug opens. Without a plug the event has no
    /// effect.
    Unplugged,
    /// A request is certain to come. Only a simulation can foretell.
    Foretold(Foretold),
    /// A background job's request joins the first request staged in a lane, goes alone while nothing else waits, or is
    /// queued. [`Engine::may_join`](crate::Engine::may_join) must allow it.
    Joined {
        /// The request.
        arrival: Arrival,
        /// Lane of the staged request, or lane in which the request goes alone or is queued.
        lane: Lane,
        /// Relation of the request to the staged one.
        join: Join,
    },
    /// If true, each chosen request waits for [`Event::Offered`] from now on, even if the drive has room. Meanwhile a
    /// job's requests can join the chosen request. If false, the waiting ends.
    Offering(bool),
    /// The job in the background has no more requests to join the first request staged in a lane. Without a staged
    /// request the event has no effect.
    Offered(Lane),
    /// The gate gets an order.
    Ordered(GateOrder),
    /// A conductor gives the schedulers a directive. A mark reaches the scheduler of the request, or of the merged
    /// request that contains it. A mark of a request that is not queued does nothing.
    Directed(Directive<RequestId>),
    /// A request waits outside the engine for a flush that waits in the engine. In a volume, requests after a flush
    /// wait until the flush has ended on all members. The requests that the flush waits for inherit the rank. The event
    /// has to be repeated after a swap of gates. Without a waiting flush the event has no effect.
    Behind {
        /// Origin of the waiting request.
        origin: Origin,
        /// Class of the waiting request.
        class: Class,
    },
    /// Queued and staged requests of a lane move to another lane. Afterwards, requests inherit rank again from waiting
    /// requests of a higher rank.
    Drained {
        /// The lane that is emptied.
        from: Lane,
        /// The lane that takes the requests. Nothing happens if it is the same lane.
        to: Lane,
    },
}

/// Relation of a joining request to a staged request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// A command of its own, directly before the staged request: its *prefix*. The two are a unit, and the staged
    /// request ends no later than without the prefix.
    Before,
    /// A command of its own, directly before the staged request and at foreground priority. The staged request ends
    /// later than without it.
    Outright,
    /// Part of the staged request's command, at the end of the extent that it touches.
    With,
    /// A command of its own, while no other request waits for the drive.
    Alone,
    /// No relation: the request is queued like a client's request of its class.
    Queued,
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of the [`RequestId`].
    pub id: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The request as it arrived, without a tag.
    pub request: Request<()>,
    /// Time when the request's command went to the drive; the last time if the command was retried.
    pub issued: Time,
    /// End of the command compared with its prediction; `None` without a prediction.
    pub surprise: Option<Surprise>,
}

/// Output of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hand this command to the drive; answer with [`Event::Completed`]. The `arrival` of the command is the time at which
    /// the engine got the request.
    Issue(Request<DriveTag>),
    /// Notify the client of the end of its request.
    Finish(Finished),
    /// Notify the job in the background of the end of its request.
    Background(Finished),
}

/// Event, command or swap of an engine, as the log and other observers see it.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An event, before the engine takes it.
    Event(&'a Event),
    /// A command that is about to be carried out.
    Command(&'a Command),
    /// The scheduler of a lane was swapped for the scheduler of this text.
    Swapped(Lane, &'a str),
    /// The gate was swapped for the gate of this text, with schedulers of these texts.
    GateSwapped(&'a str, &'a [String]),
}

/// Counts of the engine's work so far.
///
/// Invariant: an engine's `finished` is at most `arrived`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that finished.
    pub finished: u64,
    /// Commands given to the drive.
    pub issued: u64,
    /// Requests appended to a queued request.
    pub merged_back: u64,
    /// Requests put in front of a queued request.
    pub merged_front: u64,
    /// Queued requests that grew together.
    pub fused: u64,
    /// Requests that waited for an overlapping request.
    pub held_overlap: u64,
    /// Requests that waited for a flush.
    pub held_flush: u64,
    /// Times that the scheduler chose to wait.
    pub idled: u64,
    /// Times that the scheduler gave a request while it had several.
    pub chosen: u64,
    /// Times that the scheduler gave a request that had arrived before an already given one.
    pub overtaken: u64,
    /// Requests of a background job that joined.
    pub joined: u64,
    /// Requests that inherited a higher rank from a waiting request.
    pub raised: u64,
    /// Merged requests that failed and were tried again part by part.
    pub split: u64,
    /// Largest number of requests that the schedulers had at once.
    pub queued_max: u64,
}

impl core::ops::AddAssign for Stats {
    /// Adds the counts of another engine.
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
