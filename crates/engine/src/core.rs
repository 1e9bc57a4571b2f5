//! The loop around engines, the same in simulation and in a live server.
//!
//! A [`Core`] has what the two have in common: the engine, the timeouts, the log, and the audit. A [`World`] is what
//! differs: where time comes from, where commands go, and who is told.
//!
//! ```text
//! loop {
//!     let due = core.due(&world);             // the earliest of all that is known
//!     // sleep until due.at(), or jump there
//!     core.step(&mut world, &due, at)?;       // one event, and all commands that follow from it
//! }
//! ```
//!
//! # Ties
//!
//! Things that are due at the same time, or were due before `at`, are handled in this order: orders, devices,
//! timeouts, arrivals, ends of waiting. Whoever is woken by a completion asks again after the next dispatch, as
//! in Linux, where the queue runs before the reader does.

use crate::audit::{Audit, Violation};
use crate::log::{Sink, Writer};
use crate::timeouts::{Deadline, Timeouts};
use crate::{
    Arrival, Command, DriveTag, Engine, Event, Finished, GateOrder, Join, Lane, Member, Outcome,
};
use headtime_sched::{Backlog, Foretold, Request, Scheduler, WaitStats};
use headtime_units::{Nanos, Time};

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

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Somebody asks for something.
    Request(Arrival),
    /// Whoever asked for what is held back goes to sleep on it.
    Unplugged,
}

/// What a volume is told beside requests.
pub enum Order {
    /// Another scheduler takes over from the old one, with everything that is queued.
    Swap {
        /// Whose.
        member: Member,
        /// Its text, for the log; one word.
        text: String,
        /// The scheduler, empty.
        scheduler: Box<dyn Scheduler>,
    },
    /// Commands are given up on after another time. Those in the device keep their deadline unless the new one is
    /// earlier, or they had none.
    Timeout(Option<Nanos>),
    /// The gate of an engine is told something.
    Gate(Member, GateOrder),
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

/// What passes through an engine, as observers see it: typed values in the order of the log.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An event, before the engine takes it.
    Event(&'a Event),
    /// A command, before anybody acts on it.
    Command(&'a Command),
    /// The scheduler was swapped for the one of this text.
    Swapped(&'a str),
}

/// What surrounds the engines: devices, clients and time.
pub trait World {
    /// Why the world ends early. An engine that breaks a promise is such a reason.
    type Error: From<Broken>;

    /// When the next order is due, if that is known before.
    fn next_order(&self) -> Option<Time> {
        None
    }

    /// The order that is due, unless it was one for a device, which has been obeyed then.
    fn order(&mut self, _now: Time) -> Option<Order> {
        None
    }

    /// When something next happens in a device.
    fn next_device(&self) -> Option<Time>;

    /// A command that a device is done with by `now`, if there is one: the earliest first, then by member.
    fn completed(&mut self, now: Time) -> Option<Done>;

    /// When a client next asks. A time that has passed means at once.
    fn next_arrival(&self) -> Option<Time>;

    /// What a client asks at `now`; `None` if nobody does after all.
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

    /// A request that is to go with one that is staged; [`Engine::may_join`] says of it that it may. Asked when
    /// there are no more commands, until there is none.
    #[inline]
    fn joins(
        &mut self,
        _now: Time,
        _member: Member,
        _engine: &Engine,
    ) -> Option<(Arrival, Lane, Join)> {
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

    /// Tells a job in the background that a request of its own is over.
    ///
    /// # Errors
    ///
    /// If the world must end.
    fn finished_background(&mut self, _now: Time, done: &Finished) -> Result<(), Self::Error> {
        unreachable!("nobody asked for {done:?} in the background")
    }

    /// Tells the account of a device why requests wait. Called when there are no more commands.
    fn backlog(&mut self, now: Time, member: Member, backlog: Backlog);

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

/// When each kind of thing is next due; [`Time::NEVER`] if it is not.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    order: Time,
    device: Time,
    timeout: Time,
    /// A client that thinks for longer than 64 bits hold has not ended: that is `Some(Time::NEVER)`.
    arrival: Option<Time>,
    wake: Time,
}

impl Due {
    /// When the next thing is due, if anything is. May lie in the past, which means at once.
    #[inline]
    pub fn at(&self) -> Option<Time> {
        let next = self.order.min(self.device).min(self.timeout).min(self.wake);
        match self.arrival {
            Some(at) => Some(next.min(at)),
            None => Some(next).filter(|next| *next < Time::NEVER),
        }
    }
}

/// The engine of a volume and what every world needs around it; see the module's page.
pub struct Core<L> {
    engine: Engine,
    timeouts: Timeouts,
    timeout: Option<Nanos>,
    log: Option<Writer<L>>,
    audit: Option<Audit>,
    /// Those of schedulers that were swapped out.
    waits: WaitStats,
    now: Time,
}

impl<L: Sink> Core<L> {
    /// A loop around an engine that is new.
    pub fn new(engine: Engine, log: Option<Writer<L>>) -> Core<L> {
        Core {
            engine,
            timeouts: Timeouts::default(),
            timeout: None,
            log,
            audit: None,
            waits: WaitStats::default(),
            now: Time::ZERO,
        }
    }

    /// Checks the promises of the engine all along; slow.
    pub fn audit(&mut self) {
        self.audit = Some(Audit::new());
    }

    /// Gives up on commands after this time; never if `None`, as it is at first.
    pub fn with_timeout(mut self, timeout: Option<Nanos>) -> Core<L> {
        self.timeout = timeout;
        self
    }

    /// The time after which commands are given up on.
    pub fn timeout(&self) -> Option<Nanos> {
        self.timeout
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How often schedulers waited that were swapped out, and what came of it.
    pub fn waits_before(&self) -> WaitStats {
        self.waits
    }

    /// The log, to flush it.
    pub fn log(&mut self) -> Option<&mut Writer<L>> {
        self.log.as_mut()
    }

    /// Takes the log out, to finish it. Nothing is logged afterwards.
    pub fn take_log(&mut self) -> Option<Writer<L>> {
        self.log.take()
    }

    /// When things are next due.
    #[inline]
    pub fn due<W: World>(&self, world: &W) -> Due {
        let never = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        Due {
            order: never(world.next_order()),
            device: never(world.next_device()),
            timeout: never(self.timeouts.next()),
            arrival: world.next_arrival(),
            wake: never(self.engine.next_wakeup()),
        }
    }

    /// Handles the first of the things that are `due` by `at`, and all commands that follow from it. If nothing is
    /// due, the engine wakes.
    ///
    /// # Errors
    ///
    /// If the world ends.
    #[inline]
    pub fn step<W: World>(&mut self, world: &mut W, due: &Due, at: Time) -> Result<(), W::Error> {
        self.pass(at);
        if due.order <= at {
            return match world.order(at) {
                Some(order) => self.obey(world, at, order),
                None => Ok(()),
            };
        }
        let member = Member::default();
        let event = if due.device <= at {
            return match world.completed(at) {
                Some(done) => self.completed(world, done),
                None => Ok(()),
            };
        } else if due.timeout <= at
            && let Some(deadline) = self.timeouts.take(at)
        {
            return self.give_up(world, at, deadline);
        } else if due.arrival.is_some_and(|due| due <= at) {
            match world.arrived(at)? {
                Some(Asked::Request(arrival)) => Event::Arrived(arrival),
                Some(Asked::Unplugged) => Event::Unplugged,
                None => return Ok(()),
            }
        } else {
            Event::Woke
        };
        self.handle(world, at, member, event)?;
        self.commands(world, at)
    }

    /// Obeys an order.
    ///
    /// # Errors
    ///
    /// If the world ends.
    pub fn obey<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        order: Order,
    ) -> Result<(), W::Error> {
        self.pass(at);
        match order {
            Order::Timeout(timeout) => {
                self.timeout = timeout;
                let latest = timeout.map(|timeout| at.saturating_add(timeout));
                self.timeouts.shorten(latest);
                Ok(())
            }
            Order::Gate(member, order) => {
                self.handle(world, at, member, Event::Ordered(order))?;
                self.commands(world, at)
            }
            Order::Swap {
                member,
                text,
                scheduler,
            } => {
                if let Some(log) = &mut self.log {
                    log.swap(at, &text);
                }
                world.seen(at, member, Seen::Swapped(&text));
                self.waits += self
                    .engine
                    .replace_scheduler(at, Lane(0), scheduler)
                    .waits();
                self.commands(world, at)
            }
        }
    }

    /// Takes a command back from a device, and does what follows from it.
    ///
    /// # Errors
    ///
    /// If the world ends.
    ///
    /// # Panics
    ///
    /// If the command is not in the device.
    #[inline]
    pub fn completed<W: World>(&mut self, world: &mut W, done: Done) -> Result<(), W::Error> {
        let at = self.pass(done.at);
        self.timeouts.done(done.tag);
        let event = Event::Completed {
            tag: done.tag,
            outcome: done.outcome,
        };
        self.handle(world, at, done.member, event)?;
        self.commands(world, at)
    }

    fn give_up<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        mut deadline: Deadline,
    ) -> Result<(), W::Error> {
        let (member, tag) = (Member::default(), deadline.tag);
        let late = Late {
            member,
            tag,
            promises: deadline.promises,
            timeout: self.timeout,
            engine: &self.engine,
        };
        match world.give_up(at, &late) {
            GaveUp::Yes => self.completed(
                world,
                Done {
                    member,
                    tag,
                    at,
                    outcome: Outcome::TimedOut,
                },
            ),
            GaveUp::Completes => Ok(()),
            GaveUp::AskAgain => {
                if let Some(timeout) = self.timeout {
                    deadline.promises = deadline.promises.saturating_add(1);
                    self.timeouts.again(deadline, at.saturating_add(timeout));
                }
                Ok(())
            }
        }
    }

    /// Notes that time has come at least so far. Returns the time of the next event, if it comes at once.
    #[inline]
    pub fn pass(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        self.now
    }

    #[inline]
    fn handle<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        event: Event,
    ) -> Result<(), W::Error> {
        if let Some(log) = &mut self.log {
            log.event(at, &event);
        }
        if let Some(audit) = &mut self.audit {
            let seen = audit.event(&event);
            seen.map_err(|violation| Broken { at, violation })?;
        }
        world.seen(at, member, Seen::Event(&event));
        self.engine.handle(at, event);
        Ok(())
    }

    #[inline]
    fn foretell<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        while let Some(request) = world.foretell() {
            self.handle(world, at, Member::default(), Event::Foretold(request))?;
        }
        Ok(())
    }

    /// Sees to all commands that there are at `at`, and to what joins those that are staged.
    fn commands<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        let member = Member::default();
        self.foretell(world, at)?;
        self.drain(world, at, member)?;
        while let Some((arrival, lane, join)) = world.joins(at, member, &self.engine) {
            let event = Event::Joined {
                arrival,
                lane,
                join,
            };
            self.handle(world, at, member, event)?;
            self.drain(world, at, member)?;
        }
        world.backlog(at, member, self.engine.backlog());
        if let Some(log) = &mut self.log {
            log.flush_if_full();
        }
        Ok(())
    }

    fn drain<W: World>(&mut self, world: &mut W, at: Time, member: Member) -> Result<(), W::Error> {
        while let Some(command) = self.engine.poll(at) {
            if let Some(log) = &mut self.log {
                log.command(at, &command);
            }
            if let Some(audit) = &mut self.audit {
                let seen = audit.command(&self.engine, &command);
                seen.map_err(|violation| Broken { at, violation })?;
            }
            world.seen(at, member, Seen::Command(&command));
            match command {
                Command::Issue(request) => {
                    if world.submit(at, member, &request, &self.engine) {
                        let deadline = self.timeout.map(|timeout| at.saturating_add(timeout));
                        self.timeouts.issued(request.tag, deadline);
                    }
                }
                Command::Finish(done) => {
                    world.finished(at, &done)?;
                    self.foretell(world, at)?;
                }
                Command::Background(done) => world.finished_background(at, &done)?,
            }
        }
        Ok(())
    }
}
