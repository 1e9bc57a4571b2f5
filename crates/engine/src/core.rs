//! The loop around engines, the same in simulation and in a live server.
//!
//! A [`Core`] is the common part of simulation and live server: the volume's engines, the timeouts, the log, and the
//! audit. A [`World`] is the part that differs: the clock, the devices, and the clients.
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
//! Events that are due at the same time, or were due before `at`, are handled in this order: orders, devices, timeouts,
//! arrivals, ends of waiting. Events of one kind are ordered by member. A client that a completion wakes sends its next
//! request after the next dispatch. In Linux, too, the queue runs before the reader.

mod depths;
mod observers;

use crate::conduct::{Conducted, Conductor};
use crate::few::Few;
use crate::log::{Sink, Writer};
use crate::timeouts::Timeouts;
use crate::volume::Volume;
use crate::world::{Asked, Background, Broken, Done, GaveUp, Late, Order, World};
use crate::{Command, Engine, Event, Map, Member, Outcome, Seen};
use headtime_sched::{Request, WaitStats};
use headtime_units::{Nanos, Time};
use observers::Observers;

/// Next due time of each kind of event; [`Time::NEVER`] if none is due.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    order: Time,
    device: Time,
    timeout: Time,
    /// `None` if all clients have ended. `Some(Time::NEVER)` if a client's think time exceeds 64 bits.
    arrival: Option<Time>,
    wake: Time,
    /// Time at which a job in the background or the conductor wants to be asked.
    job: Time,
}

impl Due {
    /// Returns the earliest of the times, if there is any. A time in the past means at once.
    #[inline]
    pub fn at(&self) -> Option<Time> {
        let next = self.order.min(self.device).min(self.timeout).min(self.wake);
        let next = next.min(self.job);
        match self.arrival {
            Some(at) => Some(next.min(at)),
            None => Some(next).filter(|next| *next < Time::NEVER),
        }
    }
}

/// Returns the earliest time of all members, [`Time::NEVER`] if there is none. Called before each event.
#[inline(always)]
pub fn earliest<'a, T: 'a>(
    members: impl IntoIterator<Item = &'a T>,
    time: impl Fn(&T) -> Option<Time>,
) -> Time {
    let times = members.into_iter().filter_map(time);
    times.fold(Time::NEVER, Time::min)
}

/// The engines of a volume, and the loop around them; see the module's page.
pub struct Core<L> {
    volume: Volume,
    /// By member.
    timeouts: Few<Timeouts>,
    timeout: Option<Nanos>,
    /// Log, conductor, audits and jobs in the background. `None` if there are none.
    observers: Option<Box<Observers<L>>>,
    /// Waits of schedulers that were swapped out.
    waits: WaitStats,
    now: Time,
}

impl<L: Sink> Core<L> {
    /// Creates a loop around a new engine.
    pub fn new(engine: Engine, log: Option<Writer<L>>) -> Core<L> {
        Core::around(Volume::one(engine), log)
    }

    /// Creates a loop around the members' new engines. `map` is the layout of the sectors.
    ///
    /// # Panics
    ///
    /// If the map has another number of members.
    pub fn of_volume(engines: Vec<Engine>, map: Box<dyn Map>, log: Option<Writer<L>>) -> Core<L> {
        Core::around(Volume::new(engines, map), log)
    }

    fn around(volume: Volume, log: Option<Writer<L>>) -> Core<L> {
        let timeouts = volume.engines().iter().map(|_| Timeouts::default());
        let mut core = Core {
            timeouts: Few::from(timeouts.collect::<Vec<_>>()),
            volume,
            timeout: None,
            observers: None,
            waits: WaitStats::default(),
            now: Time::ZERO,
        };
        if log.is_some() {
            core.observed().0.log = log;
        }
        core
    }

    /// Returns the observers and the volume. The first call creates the observers.
    fn observed(&mut self) -> (&mut Observers<L>, &mut Volume) {
        let members = self.timeouts.count();
        let observers = &mut self.observers;
        let observers = observers.get_or_insert_with(|| Box::new(Observers::of(members)));
        (observers, &mut self.volume)
    }

    /// Checks the promises of the engines from now on. Slow.
    pub fn audit(&mut self) {
        let (observers, volume) = self.observed();
        observers.audit(volume);
    }

    /// Starts a job in the background of a member, in place of the present job.
    ///
    /// # Panics
    ///
    /// If there is no such member, or the former job still waits for a request.
    pub fn run_in_background(&mut self, member: Member, job: Box<dyn Background>) {
        let (observers, volume) = self.observed();
        if let Some(tracker) = job.tracker() {
            volume.engine(member).follow_with(tracker);
        }
        *observers.job(member) = Some(job);
    }

    /// Starts a conductor, which coordinates the members. A conductor has to see all requests, so call this before the
    /// first request.
    pub fn conduct(&mut self, conductor: Box<dyn Conductor>) {
        self.observed().0.conductor = Some(conductor);
    }

    /// Returns the counts of a conductor that coordinates streams, if there is such a conductor.
    pub fn conducted(&self) -> Option<Conducted> {
        let conductor = self.observers.as_ref()?.conductor.as_ref()?;
        conductor.conducted()
    }

    /// Ends the job in the background of a member, if there is one. The engine no longer follows the head for the job.
    ///
    /// # Panics
    ///
    /// Later, if the job still waits for a request.
    pub fn end_background(&mut self, member: Member) {
        let observers = self.observers.as_mut();
        if observers.is_some_and(|observers| observers.job(member).take().is_some()) {
            self.volume.engine(member).follow_no_longer();
        }
    }

    /// Stops asking jobs in the background. Outstanding requests of the jobs end, and the jobs are notified.
    pub fn ask_no_more(&mut self) {
        self.observed().0.asks_jobs = false;
    }

    /// Asks the jobs in the background, as after an event. Callers use this after a change that the engines do not see.
    ///
    /// # Errors
    ///
    /// If the world ends.
    pub fn ask_jobs<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        let at = self.pass(at);
        self.commands(world, at)
    }

    /// Returns true if there are jobs in the background.
    pub fn has_jobs(&self) -> bool {
        let observers = self.observers.iter();
        observers
            .flat_map(|observers| observers.jobs())
            .next()
            .is_some()
    }

    /// Returns true if there are jobs in the background, and all jobs are over.
    pub fn jobs_are_over(&self) -> bool {
        let observers = self.observers.iter();
        let mut jobs = observers.flat_map(|observers| observers.jobs()).peekable();
        jobs.peek().is_some() && jobs.all(|job| job.is_over())
    }

    /// Sets the time after which commands are given up on. `None`, the default, means never.
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

    /// The engines, by member.
    #[inline]
    pub fn engines(&self) -> &Few<Engine> {
        self.volume.engines()
    }

    /// The clients' requests that are not finished, as they arrived, in no particular order.
    pub fn unfinished(&self) -> impl Iterator<Item = Request<()>> {
        self.volume.unfinished()
    }

    /// Returns true if nothing is queued, held or in flight.
    pub fn is_idle(&self) -> bool {
        self.volume.is_idle()
    }

    /// Returns the counts of waits of all schedulers that were swapped out.
    pub fn waits_before(&self) -> WaitStats {
        self.waits
    }

    /// The log, to flush it.
    pub fn log(&mut self) -> Option<&mut Writer<L>> {
        self.observers.as_mut()?.log.as_mut()
    }

    /// Takes the log out, to finish it. Nothing is logged afterwards.
    pub fn take_log(&mut self) -> Option<Writer<L>> {
        self.observers.as_mut()?.log.take()
    }

    /// Returns the next time of each kind of event.
    #[inline(always)]
    pub fn due<W: World>(&self, world: &W) -> Due {
        Due {
            order: world.next_order(),
            device: world.next_device(),
            timeout: self.timeouts.earliest(Timeouts::next),
            arrival: world.next_arrival(),
            wake: self.volume.next_wakeup(),
            job: match &self.observers {
                None => Time::NEVER,
                Some(observers) => observers.next_wakeup(&self.volume),
            },
        }
    }

    /// Handles the first event that is `due` by `at`, and all commands that follow. If nothing is due, the engine
    /// wakes.
    ///
    /// # Errors
    ///
    /// If the world ends.
    #[inline(always)]
    pub fn step<W: World>(&mut self, world: &mut W, due: &Due, at: Time) -> Result<(), W::Error> {
        let at = self.pass(at);
        if due.order <= at {
            return match world.order(at) {
                Some(order) => self.obey(world, at, order),
                None => Ok(()),
            };
        } else if due.device <= at {
            return match world.completed(at) {
                Some(done) => self.completed(world, done),
                None => Ok(()),
            };
        } else if due.timeout <= at {
            return self.give_up(world, at);
        } else if due.arrival.is_some_and(|due| due <= at) {
            match world.arrived(at)? {
                Some(Asked::Request(arrival)) => self.ask(world, at, Event::Arrived(arrival))?,
                Some(Asked::Unplugged(_)) if self.volume.is_one() => {
                    self.handle(world, at, Member(0), &Event::Unplugged)?;
                }
                Some(Asked::Unplugged(place)) => self.volume.unplug(place),
                None => return Ok(()),
            }
        } else if due.job >= due.wake {
            self.handle(world, at, self.volume.wakes(), &Event::Woke)?;
        }
        self.commands(world, at)?;
        let is_stuck = |next: &Due| next.job <= at && next.at() == Some(due.job);
        debug_assert!(
            !is_stuck(&self.due(world)),
            "an observer asks for {at} again, and the clock does not move"
        );
        Ok(())
    }

    /// Obeys an order.
    ///
    /// # Errors
    ///
    /// If the world ends.
    ///
    /// # Panics
    ///
    /// If the order names a member or a lane that does not exist.
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
                for timeouts in &mut self.timeouts {
                    timeouts.shorten(latest);
                }
                return Ok(());
            }
            Order::Gate(member, order) => {
                let observers = self.observers.as_mut();
                let order = observers.map_or(order, |all| all.limit(member, order));
                self.handle(world, at, member, &Event::Ordered(order))?;
            }
            Order::Drain { member, from, to } => {
                self.handle(world, at, member, &Event::Drained { from, to })?;
            }
            Order::Swap {
                member,
                lane,
                text,
                scheduler,
            } => {
                self.show(world, at, member, Seen::Swapped(lane, &text))?;
                let engine = self.volume.engine(member);
                let old = engine.replace_scheduler(at, lane, scheduler);
                self.waits += old.waits();
                self.volume.swapped(member);
            }
            Order::SwapGate {
                member,
                text,
                gate,
                schedulers,
            } => {
                let (texts, schedulers): (Vec<String>, Vec<_>) = schedulers.into_iter().unzip();
                self.show(world, at, member, Seen::GateSwapped(&text, &texts))?;
                let engine = self.volume.engine(member);
                for old in engine.replace_gate(at, gate, schedulers) {
                    self.waits += old.waits();
                }
                if let Some(observers) = &mut self.observers {
                    observers.regated(member, engine);
                }
                self.volume.swapped(member);
            }
        }
        self.commands(world, at)
    }

    /// Takes a completed command from a device, and carries out all commands that follow.
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
        self.timeouts[done.member.index()].done(done.tag);
        let event = Event::Completed {
            tag: done.tag,
            outcome: done.outcome,
        };
        self.handle(world, at, done.member, &event)?;
        self.commands(world, at)
    }

    /// Gives up on the command with the first deadline. The lowest member is first if deadlines are equal.
    #[cold]
    fn give_up<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        let next = |timeouts: &Timeouts| timeouts.next().unwrap_or(Time::NEVER);
        let members = self.timeouts.iter_mut().enumerate();
        let first = members.min_by_key(|(_, timeouts)| next(timeouts));
        let Some((index, timeouts)) = first else {
            return Ok(());
        };
        let Some(mut deadline) = timeouts.take(at) else {
            return Ok(());
        };
        let (member, tag) = (Member(index as u16), deadline.tag);
        let late = Late {
            member,
            tag,
            promises: deadline.promises,
            timeout: self.timeout,
            engine: &self.volume.engines()[index],
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
                    timeouts.again(deadline, at.saturating_add(timeout));
                }
                Ok(())
            }
        }
    }

    /// Advances the time to `at`, unless it is later already. Returns the time.
    #[inline]
    pub fn pass(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        self.now
    }

    /// Shows an event, command or swap of a member's engine to the world and the observers.
    #[inline(always)]
    fn show<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        seen: Seen<'_>,
    ) -> Result<(), Broken> {
        world.seen(at, member, seen);
        match &mut self.observers {
            Some(observers) => {
                observers.see(at, member, seen, &self.volume.engines()[member.index()])
            }
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn handle<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        event: &Event,
    ) -> Result<(), W::Error> {
        self.show(world, at, member, Seen::Event(event))?;
        self.volume.handle(at, member, event);
        Ok(())
    }

    /// Takes an event of clients. A volume of several members passes the event on to each concerned member.
    #[inline(always)]
    fn ask<W: World>(&mut self, world: &mut W, at: Time, event: Event) -> Result<(), W::Error> {
        if self.volume.is_one() {
            return self.handle(world, at, Member(0), &event);
        }
        self.volume.ask(at, event);
        Ok(())
    }

    #[inline(always)]
    fn foretell<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        while let Some(request) = world.foretell() {
            self.ask(world, at, Event::Foretold(request))?;
        }
        Ok(())
    }

    /// Carries out all commands at `at`, and all events that observers ask for.
    fn commands<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        self.foretell(world, at)?;
        loop {
            match self.volume.is_one() {
                true => self.poll(world, at, Member(0))?,
                false => self.poll_several(world, at)?,
            }
            let Some((member, event)) = self.observers_ask(world, at) else {
                break;
            };
            self.handle(world, at, member, &event)?;
        }
        for index in 0..self.volume.engines().count() {
            // The engine of another member has not changed.
            if self.volume.take_polled(index) {
                let backlog = self.volume.engines()[index].backlog();
                world.backlog(at, Member(index as u16), backlog);
            }
        }
        match &mut self.observers {
            Some(observers) => Ok(observers.at_rest(at, &self.volume)?),
            None => Ok(()),
        }
    }

    /// The next event that observers ask for.
    #[inline(always)]
    fn observers_ask<W: World>(&mut self, world: &mut W, at: Time) -> Option<(Member, Event)> {
        let observers = self.observers.as_mut()?;
        let (member, event) = observers.ask(at, &mut self.volume)?;
        if let (Event::Joined { arrival, .. }, Some(job)) = (&event, observers.job(member)) {
            world.joined(member, arrival, job.as_mut());
        }
        Some((member, event))
    }

    /// Carries out the commands of a member until there are none.
    #[inline(always)]
    fn poll<W: World>(&mut self, world: &mut W, at: Time, member: Member) -> Result<(), W::Error> {
        while let Some(command) = self.volume.engine(member).poll(at) {
            self.show(world, at, member, Seen::Command(&command))?;
            self.carry_out(world, at, member, &command)?;
        }
        Ok(())
    }

    /// Carries out the commands of several members and passes on their events, until there are none.
    #[inline(never)]
    fn poll_several<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        loop {
            while let Some(member) = self.volume.next_to_poll() {
                self.poll(world, at, member)?;
                self.volume.polled(member);
            }
            let Some((member, event, part)) = self.volume.next_event() else {
                return Ok(());
            };
            if let Some(part) = part {
                world.part(member, &part);
                if let Some(observers) = &mut self.observers {
                    observers.asked(at, member, &part, &self.volume);
                }
            }
            self.handle(world, at, member, &event)?;
        }
    }

    #[inline(always)]
    fn carry_out<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        command: &Command,
    ) -> Result<(), W::Error> {
        match command {
            Command::Issue(request) => {
                let engine = &self.volume.engines()[member.index()];
                if world.submit(at, member, request, engine) {
                    let deadline = self.timeout.map(|timeout| at.saturating_add(timeout));
                    self.timeouts[member.index()].issued(request.tag, deadline);
                }
            }
            Command::Finish(done) if self.volume.is_one() => {
                world.finished(at, done)?;
                self.foretell(world, at)?;
            }
            Command::Finish(done) => {
                world.part_finished(at, done);
                if let Some(done) = self.volume.finished(member, done) {
                    world.finished(at, &done)?;
                    self.foretell(world, at)?;
                }
            }
            Command::Background(done) => {
                let observers = self.observers.as_mut();
                let job = observers.and_then(|observers| observers.job(member).as_mut());
                let job = job.unwrap_or_else(|| panic!("no job asked for {done:?}"));
                world.background(at, member, done, job.as_mut());
            }
        }
        Ok(())
    }
}
