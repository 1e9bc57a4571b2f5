//! A run of the simulated world: [`Core`]'s loop with a virtual clock, which jumps to whatever comes next.

use crate::Measured;
use crate::bus::Bus;
use crate::coalesce::{Coalesce, Kept};
use crate::commands::{self, Commands};
use headtime_disk::drive::{self, Drive, Fault};
use headtime_disk::ledger::{HeadTime, Span};
use headtime_engine::audit::Violation;
use headtime_engine::conduct::{Conducted, Conductor};
use headtime_engine::log::Writer;
use headtime_engine::{
    Arrival, Asked, Background, Broken, Config, ConfigError, Core, Done, DriveTag, Engine, Few,
    Finished, Gated, GaveUp, Late, Map, Member, Order, Outcome, Predictions, RequestId, Seen,
    Stats, World,
};
use headtime_sched::{Backlog, Class, Flags, Foretold, Op, Request, Scheduler, WaitStats};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use std::collections::VecDeque;
use std::num::NonZero;
use std::ops::ControlFlow;

/// A run to be.
pub struct Setup<'a> {
    /// The members of the volume: one, or as many as `map` has.
    pub stations: Vec<Station>,
    /// Where the volume's sectors lie; on the only member if `None`.
    pub map: Option<Box<dyn Map>>,
    /// Who coordinates the members; nobody if `None`.
    pub conductor: Option<Box<dyn Conductor>>,
    /// Bytes a second of a link that all drives share; none if `None`.
    pub bus: Option<NonZero<u64>>,
    /// Who asks.
    pub source: &'a mut dyn Source,
    /// Requests that finish earlier are not measured.
    pub warm_up: Nanos,
    /// When to stop if the source does not end before; what is unfinished then is not measured.
    pub limit: Option<Nanos>,
    /// Whether to stop when all jobs in the background are over, though the source has not ended.
    pub until_jobs: bool,
    /// The most requests that may be unfinished; more, and the run ends with
    /// [`RunError::Overload`]. At first 16,777,216, which take some gigabytes of memory.
    pub unfinished_max: u64,
    /// When to give up on a command that the drive does not answer; never if `None`.
    pub timeout: Option<Nanos>,
    /// What the engines are told, and when; in order of time.
    pub orders: Vec<(Time, Order)>,
    /// Whether to check the promises of the engine all along; slow.
    pub audit: bool,
    /// Whether to record what the head does, for plots; costs memory.
    pub record_spans: bool,
    /// What the log says of the run before it begins: key (one word) and value (one line), whatever
    /// is needed to build the engine again.
    pub log_settings: Vec<(String, String)>,
    /// Whether the scheduler is told of requests before they come, as far as the source knows.
    pub tell_ahead: bool,
    /// Receives the log of events and decisions, piece by piece.
    pub log: Option<&'a mut dyn FnMut(&str)>,
    /// Receives every event, command and swap, in the order of the log.
    pub observer: Option<Observer<'a>>,
    /// Called now and then with the time simulated and the requests finished, for progress. Says
    /// whether to go on.
    pub progress: Option<Watch<'a>>,
}

/// A member of a volume: a drive with the engine before it.
pub struct Station {
    /// The drive, new.
    pub drive: Drive,
    /// Depth and merging.
    pub engine: Config,
    /// The scheduler, empty.
    pub scheduler: Box<dyn Scheduler>,
    /// The gate, and the schedulers of its lanes after the first. If `None` there is one lane, and a gate of fixed depth.
    pub gate: Option<Gated>,
    /// Who asks for what goes with staged requests.
    pub background: Option<Box<dyn Background>>,
    /// When the engine is told of completions; of each at once if `None`.
    pub coalesce: Option<Coalesce>,
    /// What goes wrong with the drive, and when; in order of time.
    pub faults: Vec<(Time, Fault)>,
}

impl Station {
    /// A drive of which nothing fails, behind a gate of fixed depth, with no job in the background.
    pub fn new(drive: Drive, engine: Config, scheduler: Box<dyn Scheduler>) -> Station {
        Station {
            drive,
            engine,
            scheduler,
            gate: None,
            background: None,
            coalesce: None,
            faults: Vec::new(),
        }
    }
}

/// Receives the time, whose engine it was, and what passed through it. Changes nothing in the run.
pub type Observer<'a> = &'a mut dyn FnMut(Time, Member, Seen<'_>);

/// Who watches a run.
pub type Watch<'a> = &'a mut dyn FnMut(Time, u64) -> ControlFlow<()>;

impl<'a> Setup<'a> {
    /// A run to the end of the source, without warm-up, faults, log or anything else special.
    pub fn new(
        drive: Drive,
        engine: Config,
        scheduler: Box<dyn Scheduler>,
        source: &'a mut dyn Source,
    ) -> Setup<'a> {
        Setup {
            stations: vec![Station::new(drive, engine, scheduler)],
            map: None,
            conductor: None,
            bus: None,
            source,
            warm_up: Nanos::ZERO,
            limit: None,
            until_jobs: false,
            unfinished_max: 1 << 24,
            timeout: None,
            orders: Vec::new(),
            audit: false,
            record_spans: false,
            log_settings: Vec::new(),
            tell_ahead: false,
            log: None,
            observer: None,
            progress: None,
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// The requests that finished after the warm-up.
    pub measured: Measured,
    /// The commands that the drives completed after the warm-up.
    pub commands: Commands,
    /// Where the head time of all members went, from the end of the warm-up to the end of the run: that of the last
    /// request, or the limit if something was unfinished then.
    pub head_time: HeadTime,
    /// What the engines did, warm-up included.
    pub engine: Stats,
    /// How often the schedulers of the run waited, and what came of it, warm-up included.
    pub waits: WaitStats,
    /// What was predicted of the commands, warm-up included; `None` if no scheduler asks where the head is.
    pub predictions: Option<Predictions>,
    /// Counts of the conductor, warm-up included; `None` without a conductor.
    pub conducted: Option<Conducted>,
    /// The time simulated, warm-up included.
    pub simulated: Nanos,
    /// Sectors that the drives have taken and not yet written at the end.
    pub dirty: Sectors,
    /// By member: where its head time went, as for all.
    pub members: Vec<MemberReport>,
    /// By member: what the head did, in order of time; empty unless asked for.
    pub spans: Vec<Vec<Span>>,
}

/// Results of a member of a volume.
#[derive(Clone, Copy, Debug)]
pub struct MemberReport {
    /// Head time, as [`Report::head_time`].
    pub head_time: HeadTime,
    /// Commands sent to the drive, warm-up included.
    pub issued: u64,
}

/// Why a run cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The engine refuses its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The engine would send more commands than the drive takes.
    #[error("depth {depth} is more than the {drive} commands that the drive takes at a time")]
    Depth {
        /// The engine's.
        depth: u32,
        /// The drive's.
        drive: u32,
    },
    /// A request leaves the disk.
    #[error("request {cookie} asks for sectors {extent}; the drive has {capacity}")]
    PastEnd {
        /// The source's name for it.
        cookie: u64,
        /// Its sectors.
        extent: Extent,
        /// Sectors of the drive.
        capacity: Sectors,
    },
    /// A read or write is longer than drives take.
    #[error("request {cookie} asks for {} sectors at once; allowed are {}", extent.len, Sectors::REQUEST_MAX)]
    TooLong {
        /// The source's name for it.
        cookie: u64,
        /// Its sectors.
        extent: Extent,
    },
    /// The run goes on beyond [`Time::LATEST`], divided by its drives: their times are added.
    #[error(
        "at {at}: what comes next is more than {} years from the start, and so far no run of {drives} drive{} goes",
        292 / drives,
        if *drives == 1 { "" } else { "s" }
    )]
    TooLate {
        /// When the last thing happened.
        at: Time,
        /// The drives of the run.
        drives: u64,
    },
    /// Reads and writes come and finish, and time stands still.
    #[error(
        "at {at}: {finished} reads and writes have finished, and no time has passed: neither the drive nor whoever \
         asks takes any"
    )]
    Standstill {
        /// When.
        at: Time,
        /// How many.
        finished: u64,
    },
    /// Requests come faster than the drive serves them, and for long.
    #[error(
        "at {at}: {unfinished} requests are unfinished, and that is the most: they come faster than they are served"
    )]
    Overload {
        /// When.
        at: Time,
        /// How many.
        unfinished: u64,
    },
    /// The audit found that the engine broke a promise: a bug.
    #[error("at {at}: {violation}")]
    Violation {
        /// When.
        at: Time,
        /// What.
        violation: Violation,
    },
    /// Nothing happens any more and requests are unfinished: a bug, or a drive that does not answer
    /// and no timeout.
    #[error("at {at}: nothing happens any more, and {unfinished} requests are unfinished")]
    Stuck {
        /// When.
        at: Time,
        /// How many.
        unfinished: u64,
    },
    /// Who watched the run broke it off.
    #[error("broken off at {at}")]
    BrokenOff {
        /// When.
        at: Time,
    },
}

/// Progress is reported each time so many events have passed.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// So many reads and writes may finish at one time. The buffer of a drive without overheads takes none
/// to answer, and whoever asks again at once would do so for ever.
const FINISHED_AT_ONCE_MAX: u64 = 1 << 20;

/// Runs a workload on a drive under a scheduler until the source has ended and everything is
/// finished, or until the limit.
///
/// Of things that happen at the same time, faults come first; the rest in the order of [`Core`].
///
/// # Panics
///
/// If there are several stations and no map, or a map of another number of members.
///
/// # Errors
///
/// If the configuration is out of range, at the first request that leaves the disk or is too long, if
/// the run has no end that can be come to, and if a bug shows.
pub fn run(setup: Setup<'_>) -> Result<Report, RunError> {
    let mut engines = Vec::with_capacity(setup.stations.len());
    let mut members = Vec::with_capacity(setup.stations.len());
    let mut jobs = Vec::with_capacity(setup.stations.len());
    for station in setup.stations {
        let Station {
            mut drive,
            engine: config,
            scheduler,
            gate,
            background,
            coalesce,
            faults,
        } = station;
        engines.push(Engine::behind(config, scheduler, gate)?);
        jobs.push(background);
        if config.depth > drive.depth() {
            return Err(RunError::Depth {
                depth: config.depth,
                drive: drive.depth(),
            });
        }
        drive.record_spans(Time::ZERO, setup.record_spans);
        let sector_bytes = drive.profile().geometry.sector_bytes;
        members.push(Stage {
            commands: commands::CommandWatch::new(config.depth, sector_bytes),
            drive,
            crossing: VecDeque::new(),
            kept: coalesce.map(|rule| Box::new(Kept::new(rule))),
            faults: faults.into(),
            warm_head_time: None,
        });
    }
    let sector_bytes = members[0].drive.profile().geometry.sector_bytes;
    let capacity = match &setup.map {
        Some(map) => map.capacity(),
        None => members[0].drive.capacity(),
    };
    let log = setup.log.map(|sink| Writer::new(&setup.log_settings, sink));
    let core = match setup.map {
        Some(map) => Core::of_volume(engines, map, log),
        None => {
            assert_eq!(engines.len(), 1, "several stations need a map");
            Core::new(engines.remove(0), log)
        }
    };
    let mut core = core.with_timeout(setup.timeout);
    if setup.audit {
        core.audit();
    }
    if let Some(conductor) = setup.conductor {
        core.conduct(conductor);
    }
    for (member, job) in (0..).map(Member).zip(jobs) {
        if let Some(job) = job {
            core.run_in_background(member, job);
        }
    }
    setup.source.tell_ahead(setup.tell_ahead);
    let warm = Time::ZERO + setup.warm_up;
    let mut world = Simulated {
        next: match members.len() {
            1 => Vec::new(),
            several => vec![Time::NEVER; several],
        },
        members: Few::from(members),
        bus: setup.bus.map(Bus::new),
        capacity,
        measured: Measured::new(warm, sector_bytes),
        commands: Commands::new(),
        source: setup.source,
        unfinished: 0,
        finished: 0,
        unfinished_max: setup.unfinished_max,
        orders: setup.orders.into(),
        next_order: Time::NEVER,
        tell_ahead: setup.tell_ahead,
        finished_now: (Time::ZERO, 0),
        observer: setup.observer,
    };
    world.next_order = world.first_order();
    world.all_changed();
    let stop = setup.limit.map_or(Time::NEVER, |limit| Time::ZERO + limit);
    world.run(core, warm, (stop, setup.until_jobs), setup.progress)
}

/// What a member has beside its engine.
struct Stage {
    drive: Drive,
    /// Completions whose data are still on the shared link, with the times at which they are across, in order.
    crossing: VecDeque<(Time, drive::Completion)>,
    /// Completions that the engine does not know of.
    kept: Option<Box<Kept<drive::Completion>>>,
    commands: commands::CommandWatch,
    faults: VecDeque<(Time, Fault)>,
    /// The account of the arm at the end of the warm-up.
    warm_head_time: Option<HeadTime>,
}

impl Stage {
    /// When something next happens in the drive, or the engine is told of what has.
    #[inline]
    fn next_event(&self) -> Option<Time> {
        let drive = self.drive.next_event();
        let kept = self.kept.as_ref().and_then(|kept| kept.due());
        let across = self.crossing.front().map(|(at, _)| *at);
        match (kept, across) {
            (None, None) => drive,
            _ => drive.into_iter().chain(kept).chain(across).min(),
        }
    }

    /// The next completion of the drive whose data are across by `now`.
    #[inline]
    fn across(&mut self, now: Time, bus: &mut Option<Bus>) -> Option<drive::Completion> {
        let Some(bus) = bus else {
            return self.drive.poll(now);
        };
        while (self.crossing.front()).is_none_or(|(at, _)| *at > now) {
            let done = self.drive.poll(now)?;
            let bytes = match done.result {
                Ok(()) => self.commands.bytes(DriveTag(done.tag)),
                Err(_) => 0,
            };
            let (from, until) = done.data;
            let at = done.at + bus.carry(from, bytes).saturating_since(until);
            let place = self.crossing.partition_point(|(other, _)| *other <= at);
            self.crossing.insert(place, (at, done));
        }
        self.crossing.pop_front().map(|(_, done)| done)
    }

    /// The next completion that the engine is told of by `now`, and whether it comes with an interrupt of its own.
    #[inline]
    fn completed(&mut self, now: Time, bus: &mut Option<Bus>) -> Option<(drive::Completion, bool)> {
        if self.kept.is_none() {
            return Some((self.across(now, bus)?, true));
        }
        // An interrupt that is due comes before what the drive does next.
        let told = self.kept.as_mut().and_then(|kept| kept.tell(now));
        if told.is_some() {
            return told;
        }
        let done = self.across(now, bus);
        let kept = self.kept.as_mut()?;
        if let Some(done) = done {
            kept.push(now, done);
        }
        kept.tell(now)
    }
}

struct Simulated<'a> {
    members: Few<Stage>,
    /// By member of several: when something next happens there. Asked before each event, so what has not changed is not
    /// asked again.
    next: Vec<Time>,
    bus: Option<Bus>,
    capacity: Sectors,
    source: &'a mut dyn Source,
    tell_ahead: bool,
    orders: VecDeque<(Time, Order)>,
    /// When the first of the faults and orders is due; kept since it is asked before each event.
    next_order: Time,
    unfinished: u64,
    finished: u64,
    unfinished_max: u64,
    measured: Measured,
    commands: Commands,
    /// Reads and writes that have finished at this time.
    finished_now: (Time, u64),
    observer: Option<Observer<'a>>,
}

impl Simulated<'_> {
    fn run(
        mut self,
        mut core: Core<&mut dyn FnMut(&str)>,
        warm: Time,
        (mut stop, until_jobs): (Time, bool),
        mut progress: Option<Watch<'_>>,
    ) -> Result<Report, RunError> {
        let mut events = 0_u64;
        let mut is_warm = false;
        let drives = self.members.count() as u64;
        let latest = Time::ZERO + (Time::LATEST - Time::ZERO) / drives;
        loop {
            let mut due = core.due(&self);
            let now = core.now();
            let Some(next) = due.at().filter(|next| *next <= stop) else {
                break;
            };
            if next > latest {
                return Err(RunError::TooLate { at: now, drives });
            }
            // A source may name a time that has passed: it then asks at once.
            let now = next.max(now);
            if !is_warm && now >= warm {
                is_warm = true;
                for member in &mut self.members {
                    member.warm_head_time = Some(member.drive.head_time(warm));
                }
                self.all_changed();
                due = core.due(&self);
            }
            events += 1;
            if events.is_multiple_of(PROGRESS_EVENTS)
                && let Some(progress) = &mut progress
                && progress(now, self.finished).is_break()
            {
                return Err(RunError::BrokenOff { at: now });
            }
            core.step(&mut self, &due, now)?;
            if until_jobs && core.jobs_are_over() {
                stop = now;
                break;
            }
        }
        let (mut stats, mut waits) = (Stats::default(), core.waits_before());
        let mut predictions: Option<Predictions> = None;
        for engine in core.engines() {
            stats += *engine.stats();
            if let Some(more) = engine.predictions() {
                *predictions.get_or_insert_default() += more;
            }
            for scheduler in engine.schedulers() {
                waits += scheduler.waits();
            }
        }
        let over = core.is_idle() && self.source.done();
        if !over && stop == Time::NEVER {
            return Err(RunError::Stuck {
                at: core.now(),
                unfinished: self.unfinished,
            });
        }
        // A limit cuts off what is not over before.
        let (end, until) = match over {
            true => (core.now(), self.measured.until),
            false => (stop, stop),
        };
        let until = until.max(warm.min(end));
        self.measured.close(until, core.unfinished());
        if let Some(log) = core.take_log() {
            log.finish();
        }
        let mut head_time = HeadTime::default();
        let mut dirty = Sectors::ZERO;
        let mut spans = Vec::with_capacity(self.members.count());
        let mut members = Vec::with_capacity(self.members.count());
        let mut issued = core.engines().iter().map(|engine| engine.stats().issued);
        for Stage {
            mut drive,
            mut commands,
            warm_head_time,
            ..
        } in self.members
        {
            commands.close(warm, until, &mut self.commands);
            // The last request may finish within the warm-up, or nothing happen after it.
            let before = warm_head_time.unwrap_or_else(|| drive.head_time(warm.min(end)));
            let own = drive.head_time(end).since(&before);
            head_time.add(&own);
            members.push(MemberReport {
                head_time: own,
                issued: issued.next().unwrap_or_default(),
            });
            dirty += drive.dirty_sectors(end);
            spans.push(drive.take_spans(end));
        }
        Ok(Report {
            head_time,
            engine: stats,
            waits,
            predictions,
            conducted: core.conducted(),
            simulated: end - Time::ZERO,
            dirty,
            members,
            spans,
            measured: self.measured,
            commands: self.commands,
        })
    }

    /// Notes when something next happens at a member, of which something has changed.
    #[inline(always)]
    fn changed(&mut self, index: usize) {
        if let Some(next) = self.next.get_mut(index) {
            *next = self.members[index].next_event().unwrap_or(Time::NEVER);
        }
    }

    fn all_changed(&mut self) {
        (0..self.next.len()).for_each(|index| self.changed(index));
    }

    /// When the next fault or order is due.
    fn first_order(&self) -> Time {
        let fault = |member: &Stage| member.faults.front().map(|(at, _)| *at);
        let fault = self.members.earliest(fault);
        self.orders.front().map_or(fault, |(at, _)| fault.min(*at))
    }

    /// Takes an order that is due, unless a fault is: that happens to its drive.
    fn take_order(&mut self, now: Time) -> Option<Order> {
        for member in &mut self.members {
            if member.faults.front().is_some_and(|(at, _)| *at <= now) {
                let (_, fault) = member.faults.pop_front()?;
                member.drive.inject(now, fault);
                return None;
            }
        }
        self.orders.pop_front().map(|(_, order)| order)
    }

    /// The member of which something next happens, the first of several.
    #[cold]
    #[inline(never)]
    fn first_of_several(&self) -> usize {
        let all = 0..self.next.len();
        all.min_by_key(|index| self.next[*index])
            .unwrap_or_default()
    }

    fn arrival(&mut self, now: Time, new: &NewRequest) -> Result<Arrival, RunError> {
        let NewRequest {
            cookie,
            op,
            extent,
            flags,
            origin,
            class,
            arrival: _,
        } = *new;
        let inside = extent
            .start
            .get()
            .checked_add(extent.len.get())
            .is_some_and(|end| end <= self.capacity.get());
        if !inside {
            return Err(RunError::PastEnd {
                cookie,
                extent,
                capacity: self.capacity,
            });
        }
        let moves = matches!(op, Op::Read | Op::Write);
        if moves && extent.len > Sectors::REQUEST_MAX {
            return Err(RunError::TooLong { cookie, extent });
        }
        if self.unfinished >= self.unfinished_max {
            return Err(RunError::Overload {
                at: now,
                unfinished: self.unfinished,
            });
        }
        self.unfinished += 1;
        Ok(Arrival {
            id: RequestId::Client(cookie),
            op,
            extent,
            flags,
            origin,
            class,
        })
    }
}

impl World for Simulated<'_> {
    type Error = RunError;

    #[inline]
    fn next_order(&self) -> Time {
        self.next_order
    }

    fn order(&mut self, now: Time) -> Option<Order> {
        let order = self.take_order(now);
        self.all_changed();
        self.next_order = self.first_order();
        order
    }

    #[inline]
    fn next_device(&self) -> Time {
        match self.members.only() {
            Some(only) => only.next_event().unwrap_or(Time::NEVER),
            None => self.next.iter().copied().fold(Time::NEVER, Time::min),
        }
    }

    #[inline]
    fn completed(&mut self, now: Time) -> Option<Done> {
        let index = match self.members.only() {
            Some(_) => 0,
            None => self.first_of_several(),
        };
        let told = self.members[index].completed(now, &mut self.bus);
        self.changed(index);
        let (done, interrupt) = told?;
        let member = &mut self.members[index];
        let from = self.measured.from;
        self.commands.interrupts += u64::from(interrupt && now >= from);
        let commands = &mut member.commands;
        commands.completed(now, DriveTag(done.tag), from, &mut self.commands);
        Some(Done {
            member: Member(index as u16),
            tag: DriveTag(done.tag),
            at: now,
            outcome: match done.result {
                Ok(()) => Outcome::Done,
                Err(_) => Outcome::MediumError,
            },
        })
    }

    #[inline]
    fn next_arrival(&self) -> Option<Time> {
        self.source.next_arrival()
    }

    #[inline]
    fn arrived(&mut self, now: Time) -> Result<Option<Asked>, RunError> {
        let next = self.source.poll(now);
        while let Some(returned) = self.source.returned() {
            self.measured.returned(&returned);
        }
        Ok(match next {
            Some(new) => Some(Asked::Request(self.arrival(now, &new)?)),
            None => self.source.unplug().map(Asked::Unplugged),
        })
    }

    #[inline]
    fn foretell(&mut self) -> Option<Foretold> {
        if !self.tell_ahead {
            return None;
        }
        // No run goes further, and no log could be read that had more.
        std::iter::from_fn(|| self.source.foretell()).find(|request| request.at <= Time::LATEST)
    }

    #[inline]
    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        _engine: &Engine,
    ) -> bool {
        let command = drive::Command {
            tag: request.tag.0,
            op: request.op,
            extent: request.extent,
            fua: request.flags.has(Flags::FUA),
            high: request.class == Class::REAL_TIME,
        };
        let Stage {
            drive, commands, ..
        } = &mut self.members[member.index()];
        drive.submit(now, command);
        let from = self.measured.from;
        commands.issued(now, request, from, &mut self.commands);
        self.changed(member.index());
        true
    }

    fn give_up(&mut self, now: Time, late: &Late<'_>) -> GaveUp {
        let Stage {
            drive, commands, ..
        } = &mut self.members[late.member.index()];
        let gave_up = match drive.abort(now, late.tag.0) {
            true => {
                commands.completed(now, late.tag, self.measured.from, &mut self.commands);
                GaveUp::Yes
            }
            false => GaveUp::Completes,
        };
        self.changed(late.member.index());
        gave_up
    }

    #[inline]
    fn finished(&mut self, now: Time, done: &Finished) -> Result<(), RunError> {
        self.unfinished -= 1;
        self.finished += 1;
        let (at, finished) = &mut self.finished_now;
        if *at < now {
            (*at, *finished) = (now, 0);
        }
        *finished += u64::from(matches!(done.request.op, Op::Read | Op::Write));
        if *finished > FINISHED_AT_ONCE_MAX {
            return Err(RunError::Standstill {
                at: now,
                finished: *finished,
            });
        }
        self.measured.finished(now, done);
        self.source.completed(now, done.id);
        Ok(())
    }

    #[inline]
    fn backlog(&mut self, now: Time, member: Member, backlog: Backlog) {
        self.members[member.index()]
            .drive
            .note_pending(now, backlog);
        self.changed(member.index());
    }

    #[inline]
    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>) {
        if let Some(observer) = &mut self.observer {
            observer(now, member, seen);
        }
    }
}

impl From<Broken> for RunError {
    fn from(broken: Broken) -> RunError {
        let Broken { at, violation } = broken;
        RunError::Violation { at, violation }
    }
}
