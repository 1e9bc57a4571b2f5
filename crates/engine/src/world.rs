//! What surrounds the loop: the devices, the clients and the time of a [`World`], orders, jobs in the background, observers.

use crate::audit::Violation;
use crate::volume::Part;
use crate::{
    Arrival, DriveTag, Engine, Finished, Gate, GateOrder, Join, Lane, Member, Outcome, Seen,
};
use headtime_sched::{Backlog, Foretold, HeadState, Request, Scheduler, Track};
use headtime_units::{Lba, Nanos, Time};
use std::cell::RefCell;
use std::rc::Rc;

mod layer;

pub use layer::BackgroundLayer;

/// A command that a device is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whose device.
    pub member: Member,
    /// The command's tag.
    pub tag: DriveTag,
    /// When it completed.
    pub at: Time,
    /// How it ended.
    pub outcome: Outcome,
}

/// A client's request, or its end of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A request arrives.
    Request(Arrival),
    /// A client goes to sleep on requests that are held back. The client's part of the volume begins at this sector.
    Unplugged(Lba),
}

/// A change of a running volume: of schedulers, gates, lanes, timeouts.
pub enum Order {
    /// Another scheduler takes over from the old one, with everything that is queued in its lane.
    Swap {
        /// Whose.
        member: Member,
        /// Which lane's.
        lane: Lane,
        /// Its text, for the log; one word.
        text: String,
        /// The scheduler, empty.
        scheduler: Box<dyn Scheduler>,
    },
    /// Queued and staged requests of a lane move to another lane ([`Event::Drained`](crate::Event::Drained)).
    Drain {
        /// Whose.
        member: Member,
        /// The lane that is emptied.
        from: Lane,
        /// The lane that takes it.
        to: Lane,
    },
    /// Commands are given up on after another time. Those in the device keep their deadline unless the new one is
    /// earlier, or they had none.
    Timeout(Option<Nanos>),
    /// The gate of an engine is told something.
    Gate(Member, GateOrder),
    /// Another gate takes over from the old one, with everything that waits.
    SwapGate {
        /// Whose.
        member: Member,
        /// Its text, for the log; one word.
        text: String,
        /// The gate.
        gate: Box<dyn Gate>,
        /// The schedulers of its lanes, empty, each with its text.
        schedulers: Vec<(String, Box<dyn Scheduler>)>,
    },
}

/// What a device says when it is told to give up on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The device has the command no longer; the request ends as [`Outcome::TimedOut`] or is tried again in parts.
    Yes,
    /// The device completes the command now; do not ask again.
    Completes,
    /// The device completes the command soon; ask again after another timeout.
    AskAgain,
}

/// A command that was not answered in time.
#[derive(Clone, Copy)]
pub struct Late<'a> {
    /// Whose device has the command.
    pub member: Member,
    /// The command's tag.
    pub tag: DriveTag,
    /// How often the device has answered [`GaveUp::AskAgain`].
    pub promises: u32,
    /// The timeout as it is now.
    pub timeout: Option<Nanos>,
    /// The engine, which knows the command's parts.
    pub engine: &'a Engine,
}

/// What leads to the first request that is staged in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// That lane.
    pub lane: Lane,
    /// The head behind all that goes before it.
    pub head: HeadState,
    /// When the drive should have room for the next command, as far as anybody predicts that; in the past if it has.
    pub room: Option<Time>,
    /// Whether the drive gets one command at a time, or one of this lane: what comes behind another is sent when that is done.
    pub serial: bool,
}

/// A job in the background of an engine. It asks for what goes with staged requests, and is told what became of it;
/// no client is.
pub trait Background {
    /// A request that is to go with one that is staged, or alone; [`Engine::may_join`] says of it that it may. Asked when
    /// there are no more commands, until there is none.
    ///
    /// `approach` is what leads to that request; `None` if nothing is staged, or nobody follows the head. A job that is
    /// offered each request hears of it once ([`Background::is_offered`]).
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)>;

    /// Returns true if each request that is chosen is to be offered to the job before it goes, also where the drive has room
    /// for it. Otherwise only those are that wait for the drive.
    fn is_offered(&self) -> bool {
        false
    }

    /// The most commands that the drive is to have for the sake of this job, asked before [`Background::joins`]; `None` if it makes no difference to the job.
    fn depth(&self) -> Option<u32> {
        None
    }

    /// When the job is to be asked though nothing happens; in the past means at once. A job that is asked then has to do
    /// something, or to name a later time.
    fn next_wakeup(&self, _engine: &Engine) -> Option<Time> {
        None
    }

    /// Returns true if the job has nothing more to do, for whoever waits for that.
    fn is_over(&self) -> bool {
        false
    }

    /// What is to follow the head for this job, if no scheduler has it followed.
    fn tracker(&self) -> Option<Box<dyn Track>> {
        None
    }

    /// A client's request arrives; the drive has nothing of it yet.
    fn arrives(&mut self, _now: Time, _arrival: &Arrival) {}

    /// A client's request is over.
    fn seen(&mut self, _now: Time, _done: &Finished) {}

    /// Writes into `data`, which holds anything before, what one of its requests is to write. Asked in a live server,
    /// when a write has joined; in simulation there are no data.
    ///
    /// # Panics
    ///
    /// If it is a job that does not write.
    fn fill(&mut self, id: u64, data: &mut [u8]) {
        panic!("b{id} writes {} bytes, and nobody says what", data.len());
    }

    /// One of its requests is over. `data` is what was read by one that succeeded in a live server.
    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>);
}

/// A job that somebody else looks at while it runs.
impl<B: Background> Background for Rc<RefCell<B>> {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.borrow_mut().joins(now, engine, approach)
    }

    fn is_offered(&self) -> bool {
        self.borrow().is_offered()
    }

    fn depth(&self) -> Option<u32> {
        self.borrow().depth()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        self.borrow().next_wakeup(engine)
    }

    fn is_over(&self) -> bool {
        self.borrow().is_over()
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        self.borrow().tracker()
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        self.borrow_mut().arrives(now, arrival);
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.borrow_mut().seen(now, done);
    }

    fn fill(&mut self, id: u64, data: &mut [u8]) {
        self.borrow_mut().fill(id, data);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.borrow_mut().finished(now, done, data);
    }
}

/// What surrounds the engines: devices, clients and time.
pub trait World {
    /// Why the world ends early. An engine that breaks a promise is such a reason.
    type Error: From<Broken>;

    /// Returns the time of the next order, if that is known before; else [`Time::NEVER`].
    #[inline]
    fn next_order(&self) -> Time {
        Time::NEVER
    }

    /// The order that is due, unless it was one for a device, which has been obeyed then.
    fn order(&mut self, _now: Time) -> Option<Order> {
        None
    }

    /// Returns the time at which something next happens in a device; [`Time::NEVER`] if nothing does.
    fn next_device(&self) -> Time;

    /// A command that a device is done with by `now`, if there is one: the earliest first, then by member.
    fn completed(&mut self, now: Time) -> Option<Done>;

    /// Returns the time of a client's next request. A time that has passed means at once.
    fn next_arrival(&self) -> Option<Time>;

    /// Returns what a client asks at `now`; `None` if none does after all.
    ///
    /// # Errors
    ///
    /// If the request cannot be.
    fn arrived(&mut self, now: Time) -> Result<Option<Asked>, Self::Error>;

    /// The next request that has become certain to come, each told once. Asked after every event and completion.
    #[inline]
    fn foretell(&mut self) -> Option<Foretold> {
        None
    }

    /// Sends a command to a device; `engine` knows its parts. Returns false if the command never reaches the device,
    /// and has no deadline for that reason; [`World::completed`] returns it.
    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        engine: &Engine,
    ) -> bool;

    /// Tells a device to give up on a command that it has had for the whole of the timeout.
    fn give_up(&mut self, now: Time, late: &Late<'_>) -> GaveUp;

    /// Tells whoever asked that a request is over.
    ///
    /// # Errors
    ///
    /// If the world must end.
    fn finished(&mut self, now: Time, done: &Finished) -> Result<(), Self::Error>;

    /// A request of a job in the background joins: what it needs beside the engine is to be found. `job` says what it
    /// writes.
    fn joined(&mut self, _member: Member, _arrival: &Arrival, _job: &mut dyn Background) {}

    /// Tells a job in the background that one of its requests is over.
    fn background(
        &mut self,
        now: Time,
        _member: Member,
        done: &Finished,
        job: &mut dyn Background,
    ) {
        job.finished(now, done, None);
    }

    /// Tells the account of a device why requests wait. Called when there are no more commands.
    fn backlog(&mut self, now: Time, member: Member, backlog: Backlog);

    /// Tells of a part that a client's request has on a member of a volume of several; before the part arrives there.
    #[inline]
    fn part(&mut self, _member: Member, _part: &Part) {}

    /// Tells that a part has ended; before [`World::finished`] tells that of its client's request.
    #[inline]
    fn part_finished(&mut self, _now: Time, _done: &Finished) {}

    /// Tells observers what passes through an engine.
    #[inline]
    fn seen(&mut self, _now: Time, _member: Member, _seen: Seen<'_>) {}
}

/// An engine broke a promise: a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {violation}")]
pub struct Broken {
    /// When.
    pub at: Time,
    /// Which promise.
    pub violation: Violation,
}
