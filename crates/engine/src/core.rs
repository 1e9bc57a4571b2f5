//! The loop around engines, the same in simulation and in a live server.
//!
//! A [`Core`] has what the two have in common: the volume's engines, the timeouts, the log, and the audit. A [`World`] is what
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
//! timeouts, arrivals, ends of waiting; those of one kind by member. Whoever is woken by a completion asks again after the next dispatch, as
//! in Linux, where the queue runs before the reader does.

mod depths;

use crate::audit::Audit;
use crate::few::Few;
use crate::log::{Sink, Writer};
use crate::timeouts::Timeouts;
use crate::volume::{Map, Volume};
use crate::world::{Asked, Background, Broken, Done, GaveUp, Late, Order, Seen, World};
use crate::{Command, Engine, Event, Lane, Member, Outcome, RequestId};
use depths::Depths;
use headtime_sched::{Foretold, Request, WaitStats};
use headtime_units::{Nanos, Time};

/// When each kind of thing is next due; [`Time::NEVER`] if it is not.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    order: Time,
    device: Time,
    timeout: Time,
    /// A client that thinks for longer than 64 bits hold has not ended: that is `Some(Time::NEVER)`.
    arrival: Option<Time>,
    wake: Time,
    /// When a job in the background wants to be asked.
    job: Time,
}

impl Due {
    /// Returns the earliest of the times, if there is any. One in the past means at once.
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

/// The earliest time of all members, [`Time::NEVER`] if there is none. Asked before each event.
#[inline(always)]
pub fn earliest<'a, T: 'a>(
    members: impl IntoIterator<Item = &'a T>,
    time: impl Fn(&T) -> Option<Time>,
) -> Time {
    let times = members.into_iter().filter_map(time);
    times.fold(Time::NEVER, Time::min)
}

/// The engines of a volume and what every world needs around them; see the module's page.
pub struct Core<L> {
    volume: Volume,
    /// By member.
    timeouts: Few<Timeouts>,
    timeout: Option<Nanos>,
    log: Option<Writer<L>>,
    /// By member; empty unless asked for.
    audits: Vec<Audit>,
    /// By member; empty unless there are any.
    jobs: Vec<Option<Box<dyn Background>>>,
    /// By member; empty unless there are jobs.
    depths: Vec<Depths>,
    /// Whether they are asked for what they want.
    asks_jobs: bool,
    /// Nobody but the world takes part in what the engine of the only member does: no log, no audit, no job. One test in
    /// front of all of them, which are rare.
    plain: bool,
    /// Those of schedulers that were swapped out.
    waits: WaitStats,
    now: Time,
}

impl<L: Sink> Core<L> {
    /// A loop around an engine that is new.
    pub fn new(engine: Engine, log: Option<Writer<L>>) -> Core<L> {
        Core::around(Volume::one(engine), log)
    }

    /// A loop around the members' engines, which are new; `map` says where sectors lie.
    ///
    /// # Panics
    ///
    /// If the map is of another number of members.
    pub fn of_volume(engines: Vec<Engine>, map: Box<dyn Map>, log: Option<Writer<L>>) -> Core<L> {
        Core::around(Volume::new(engines, map), log)
    }

    fn around(volume: Volume, log: Option<Writer<L>>) -> Core<L> {
        let timeouts = volume.engines().iter().map(|_| Timeouts::default());
        let mut core = Core {
            timeouts: Few::from(timeouts.collect::<Vec<_>>()),
            volume,
            timeout: None,
            log,
            audits: Vec::new(),
            jobs: Vec::new(),
            depths: Vec::new(),
            asks_jobs: true,
            plain: false,
            waits: WaitStats::default(),
            now: Time::ZERO,
        };
        core.look_who_takes_part();
        core
    }

    fn look_who_takes_part(&mut self) {
        let nobody = self.log.is_none() && self.audits.is_empty() && self.jobs.is_empty();
        self.plain = nobody && self.volume.is_one();
    }

    /// Checks the promises of the engines all along; slow.
    pub fn audit(&mut self) {
        self.audits.resize_with(self.timeouts.count(), Audit::new);
        for (member, audit) in (0..).map(Member).zip(&mut self.audits) {
            audit.watch(self.volume.engine(member));
        }
        self.look_who_takes_part();
    }

    /// Has a job run in the background of a member, in place of the one that did.
    ///
    /// # Panics
    ///
    /// If there is no such member, or the former job still waits for a request.
    pub fn run_in_background(&mut self, member: Member, job: Box<dyn Background>) {
        self.jobs.resize_with(self.timeouts.count(), || None);
        self.depths.resize_with(self.jobs.len(), Depths::default);
        if let Some(tracker) = job.tracker() {
            self.volume.engine(member).follow_with(tracker);
        }
        self.jobs[member.index()] = Some(job);
        self.look_who_takes_part();
    }

    /// Ends the job in the background of a member, if there is one. Nothing is followed for it any longer.
    ///
    /// # Panics
    ///
    /// Later, if it still waits for a request.
    pub fn end_background(&mut self, member: Member) {
        let job = self.jobs.get_mut(member.index()).and_then(Option::take);
        if job.is_some() {
            self.volume.engine(member).follow_no_longer();
        }
    }

    /// Asks no job in the background any more. What they have asked for ends, and they are told so.
    pub fn ask_no_more(&mut self) {
        self.asks_jobs = false;
    }

    /// Asks the jobs in the background, as after an event: something has changed of which the engines know nothing.
    ///
    /// # Errors
    ///
    /// If the world ends.
    pub fn ask_jobs<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        let at = self.pass(at);
        self.rare_commands(world, at)
    }

    /// Returns true if there are jobs in the background, and none has anything more to do.
    pub fn jobs_are_over(&self) -> bool {
        let mut jobs = self.jobs.iter().flatten().peekable();
        jobs.peek().is_some() && jobs.all(|job| job.is_over())
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

    /// Returns how often schedulers waited that were swapped out, and what came of it.
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

    /// Returns the next time of each kind of event.
    #[inline(always)]
    pub fn due<W: World>(&self, world: &W) -> Due {
        Due {
            order: world.next_order(),
            device: world.next_device(),
            timeout: self.timeouts.earliest(Timeouts::next),
            arrival: world.next_arrival(),
            wake: self.volume.engines().earliest(Engine::next_wakeup),
            job: match self.plain {
                true => Time::NEVER,
                false => self.next_job(),
            },
        }
    }

    #[inline(never)]
    fn next_job(&self) -> Time {
        if !self.asks_jobs {
            return Time::NEVER;
        }
        let jobs = self.volume.engines().iter().zip(&self.jobs);
        let wakes = jobs.filter_map(|(engine, job)| job.as_ref()?.next_wakeup(engine));
        wakes.min().unwrap_or(Time::NEVER)
    }

    /// Handles the first of the things that are `due` by `at`, and all commands that follow from it. If nothing is
    /// due, the engine wakes.
    ///
    /// # Errors
    ///
    /// If the world ends.
    #[inline(always)]
    pub fn step<W: World>(&mut self, world: &mut W, due: &Due, at: Time) -> Result<(), W::Error> {
        let mut at = self.pass(at);
        if due.order <= at {
            return match world.order(at) {
                Some(order) => self.obey(world, at, order),
                None => Ok(()),
            };
        }
        let (member, event) = if due.device <= at {
            let Some(done) = world.completed(at) else {
                return Ok(());
            };
            at = self.pass(done.at);
            (done.member, self.given_back(&done))
        } else if due.timeout <= at {
            return self.give_up(world, at);
        } else if due.arrival.is_some_and(|due| due <= at) {
            let event = match world.arrived(at)? {
                Some(Asked::Request(arrival)) => Event::Arrived(arrival),
                Some(Asked::Unplugged) => Event::Unplugged,
                None => return Ok(()),
            };
            if !self.volume.is_one() {
                self.volume.ask(at, event);
                return self.rare_commands(world, at);
            }
            (Member(0), event)
        } else if due.job < due.wake {
            return self.rare_commands(world, at);
        } else {
            (self.volume.wakes(), Event::Woke)
        };
        self.handle(world, at, member, event)?;
        self.commands(world, at)
    }

    /// Obeys an order.
    ///
    /// # Errors
    ///
    /// If the world ends.
    ///
    /// # Panics
    ///
    /// If the order names a member or a lane that there is not.
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
                Ok(())
            }
            Order::Gate(member, order) => {
                let depths = self.depths.get_mut(member.index());
                let order = depths.map_or(order, |depths| depths.order(order));
                self.handle(world, at, member, Event::Ordered(order))?;
                self.rare_commands(world, at)
            }
            Order::Drain { member, from, to } => {
                self.handle(world, at, member, Event::Drained { from, to })?;
                self.rare_commands(world, at)
            }
            Order::Swap {
                member,
                lane,
                text,
                scheduler,
            } => {
                if let Some(log) = &mut self.log {
                    log.swap(at, member, lane, &text);
                }
                world.seen(at, member, Seen::Swapped(lane, &text));
                let engine = self.volume.engine(member);
                let old = engine.replace_scheduler(at, lane, scheduler);
                self.waits += old.waits();
                self.volume.swapped(member);
                self.rare_commands(world, at)
            }
            Order::SwapGate {
                member,
                text,
                gate,
                schedulers,
            } => {
                let (texts, schedulers): (Vec<String>, Vec<_>) = schedulers.into_iter().unzip();
                if let Some(log) = &mut self.log {
                    log.swap_gate(at, member, &text, &texts);
                }
                world.seen(at, member, Seen::GateSwapped(&text, &texts));
                let engine = self.volume.engine(member);
                for old in engine.replace_gate(at, gate, schedulers) {
                    self.waits += old.waits();
                }
                if let Some(audit) = self.audits.get_mut(member.index()) {
                    audit.watch(engine);
                }
                self.volume.swapped(member);
                self.rare_commands(world, at)
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
        let event = self.given_back(&done);
        self.handle(world, at, done.member, event)?;
        self.commands(world, at)
    }

    /// Ends the deadline of a command. Returns what the engine is told.
    #[inline]
    fn given_back(&mut self, done: &Done) -> Event {
        self.timeouts[done.member.index()].done(done.tag);
        Event::Completed {
            tag: done.tag,
            outcome: done.outcome,
        }
    }

    /// Gives up on the command whose deadline comes first, by member if there are several.
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

    /// Notes that time has come at least so far. Returns the time of the next event, if it comes at once.
    #[inline]
    pub fn pass(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        self.now
    }

    #[inline(always)]
    fn handle<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        event: Event,
    ) -> Result<(), W::Error> {
        if !self.plain {
            return self.handle_before_others(world, at, member, &event);
        }
        world.seen(at, member, Seen::Event(&event));
        self.volume.handle_alone(at, &event);
        Ok(())
    }

    /// As [`Core::handle`] where others than the world take part.
    #[inline(never)]
    fn handle_before_others<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        event: &Event,
    ) -> Result<(), W::Error> {
        if let Some(log) = &mut self.log {
            log.event(at, member, event);
        }
        if let Some(audit) = self.audits.get_mut(member.index()) {
            let seen = audit.event(event);
            seen.map_err(|violation| Broken { at, violation })?;
        }
        world.seen(at, member, Seen::Event(event));
        if !self.jobs.is_empty() {
            self.arrives(at, member, event);
        }
        self.volume.handle(at, member, event);
        Ok(())
    }

    /// Tells a member's job of a client's request that arrives.
    #[inline(never)]
    fn arrives(&mut self, at: Time, member: Member, event: &Event) {
        if let (Event::Arrived(arrival), Some(job)) = (event, &mut self.jobs[member.index()]) {
            job.arrives(at, arrival);
        }
    }

    #[inline]
    fn foretell<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        while let Some(request) = world.foretell() {
            self.foretold(world, at, request)?;
        }
        Ok(())
    }

    /// Apart, so that worlds that foretell nothing do not carry it along.
    #[inline(never)]
    fn foretold<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        request: Foretold,
    ) -> Result<(), W::Error> {
        let event = Event::Foretold(request);
        if self.volume.is_one() {
            return self.handle(world, at, Member(0), event);
        }
        self.volume.ask(at, event);
        Ok(())
    }

    /// As [`Core::commands`], which is a part of [`Core::step`]: for all that happens more seldom.
    #[inline(never)]
    fn rare_commands<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        self.commands(world, at)
    }

    /// Sees to all commands that there are at `at`, and to what joins those that are staged.
    #[inline(always)]
    fn commands<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        self.foretell(world, at)?;
        if !self.plain {
            return self.commands_before_others(world, at);
        }
        while let Some(command) = self.volume.alone().poll(at) {
            world.seen(at, Member(0), Seen::Command(&command));
            self.carry_out(world, at, Member(0), &command)?;
        }
        world.backlog(at, Member(0), self.volume.alone().backlog());
        Ok(())
    }

    /// As [`Core::commands`] where others than the world take part.
    #[inline(never)]
    fn commands_before_others<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
    ) -> Result<(), W::Error> {
        self.drain(world, at)?;
        if !self.jobs.is_empty() {
            self.all_joined(world, at)?;
        }
        for index in 0..self.volume.engines().count() {
            let member = Member(index as u16);
            let backlog = self.volume.engines()[index].backlog();
            world.backlog(at, member, backlog);
        }
        if let Some(log) = &mut self.log {
            log.flush_if_full();
        }
        match self.audits.is_empty() {
            true => Ok(()),
            false => Ok(self.at_rest(at)?),
        }
    }

    #[inline(never)]
    fn at_rest(&self, at: Time) -> Result<(), Broken> {
        for (audit, engine) in self.audits.iter().zip(self.volume.engines()) {
            let seen = audit.at_rest(engine, self.volume.behind());
            seen.map_err(|violation| Broken { at, violation })?;
        }
        Ok(())
    }

    /// Tells the members of what their jobs ask for, until that is all. What the drain of one does may concern another one.
    #[inline(never)]
    fn all_joined<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        loop {
            let mut any = false;
            for index in 0..self.volume.engines().count() {
                any |= self.joined(world, at, Member(index as u16))?;
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// Tells a member of what its job asks for, until that is all. Returns true if it was anything.
    fn joined<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
    ) -> Result<bool, W::Error> {
        let mut any = false;
        while let Some(event) = self.joins(world, at, member) {
            self.handle(world, at, member, event)?;
            self.drain(world, at)?;
            any = true;
        }
        Ok(any)
    }

    /// What a member is told next: what its job asks for, or that it asks for nothing more.
    fn joins<W: World>(&mut self, world: &mut W, at: Time, member: Member) -> Option<Event> {
        let engine = self.volume.engine(member);
        let asked = self.jobs[member.index()].as_mut();
        let job = asked.filter(|_| self.asks_jobs);
        let depth = job.as_ref().and_then(|job| job.depth());
        let most = engine.config().depth;
        if let Some(order) = self.depths[member.index()].job(depth, most) {
            return Some(Event::Ordered(order));
        }
        let Some(job) = job else {
            return engine.is_offering().then_some(Event::Offering(false));
        };
        let offers = job.is_offered();
        if offers != engine.is_offering() {
            return Some(Event::Offering(offers));
        }
        let unoffered = engine.unoffered();
        let lane = match offers {
            true => unoffered,
            false => Some(Lane(0)),
        };
        let approach = lane.and_then(|lane| engine.approach(at, lane));
        let engine = &self.volume.engines()[member.index()];
        let Some((arrival, lane, join)) = job.joins(at, engine, approach.as_ref()) else {
            return unoffered.map(Event::Offered);
        };
        let is_own = matches!(arrival.id, RequestId::Background(_));
        assert!(is_own, "a job asks as client {}", arrival.id);
        world.joined(member, &arrival, job.as_mut());
        Some(Event::Joined {
            arrival,
            lane,
            join,
        })
    }

    /// Sees to commands, and to events of several members, until there are none.
    fn drain<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        if !self.volume.is_one() {
            return self.drain_several(world, at);
        }
        while let Some(command) = self.volume.engine(Member(0)).poll(at) {
            self.command(world, at, Member(0), &command)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn drain_several<W: World>(&mut self, world: &mut W, at: Time) -> Result<(), W::Error> {
        loop {
            while let Some((member, command)) = self.volume.poll(at) {
                self.command(world, at, member, &command)?;
            }
            let Some((member, event, part)) = self.volume.next_event() else {
                return Ok(());
            };
            if let Some(part) = part {
                world.part(member, &part);
            }
            self.handle(world, at, member, event)?;
        }
    }

    /// Shows a command to all who take part, and carries it out.
    fn command<W: World>(
        &mut self,
        world: &mut W,
        at: Time,
        member: Member,
        command: &Command,
    ) -> Result<(), W::Error> {
        if let Some(log) = &mut self.log {
            log.command(at, member, command);
        }
        let engine = &self.volume.engines()[member.index()];
        if let Some(audit) = self.audits.get_mut(member.index()) {
            let seen = audit.command(engine, command);
            seen.map_err(|violation| Broken { at, violation })?;
        }
        world.seen(at, member, Seen::Command(command));
        if let (Command::Finish(done), Some(Some(job))) =
            (command, self.jobs.get_mut(member.index()))
        {
            job.seen(at, done);
        }
        self.carry_out(world, at, member, command)
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
                if let Some(done) = self.volume.finished(done) {
                    world.finished(at, &done)?;
                    self.foretell(world, at)?;
                }
            }
            Command::Background(done) => {
                let job = self.jobs.get_mut(member.index()).and_then(Option::as_mut);
                let job = job.unwrap_or_else(|| panic!("no job asked for {done:?}"));
                world.background(at, member, done, job.as_mut());
            }
        }
        Ok(())
    }
}
