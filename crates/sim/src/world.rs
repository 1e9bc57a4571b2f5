//! A run of the simulated world: [`Core`]'s loop with a virtual clock, which jumps to the next event.

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

/// Inputs of a run.
///
/// Invariants that [`run`] checks:
///
/// - `map.is_none()` ⇒ `stations.len() = 1`; otherwise `map` has `stations.len()` members.
/// - `engine.depth ≤ drive.depth()` for each station.
///
/// Times of `orders` never descend.
pub struct Setup<'a> {
    /// The members of the volume: one, or as many as `map` has.
    pub stations: Vec<Station>,
    /// Layout of the volume's sectors. `None` is for one member that has all sectors.
    pub map: Option<Box<dyn Map>>,
    /// Coordinator of the members; `None` for none.
    pub conductor: Option<Box<dyn Conductor>>,
    /// Rate in bytes per second of a link that all drives share; `None` without a link.
    pub bus: Option<NonZero<u64>>,
    /// Source of requests.
    pub source: &'a mut dyn Source,
    /// Requests that finish earlier are not measured.
    pub warm_up: Nanos,
    /// End of the run if the source does not end before. Requests that are unfinished then are only counted.
    pub limit: Option<Nanos>,
    /// True to stop when all jobs in the background are over, although the source has not ended.
    pub until_jobs: bool,
    /// Most unfinished requests. With more, the run ends with [`RunError::Overload`]. The default of 16,777,216 requests takes some
    /// gigabytes of memory.
    pub unfinished_max: u64,
    /// Time after which a command that the drive does not answer is given up; `None` for never.
    pub timeout: Option<Nanos>,
    /// Orders to the engines with their times, in order of time.
    pub orders: Vec<(Time, Order)>,
    /// True to audit the engine's promises during the run, which is slow.
    pub audit: bool,
    /// True to record the movements of the heads for plots, which takes memory.
    pub record_spans: bool,
    /// Settings that the log states before the run: key (one word) and value (one line). They hold all that is needed to build the engine
    /// again.
    pub log_settings: Vec<(String, String)>,
    /// True to notify the scheduler of requests before they arrive, as far as the source knows them.
    pub tell_ahead: bool,
    /// Receives the log of events and decisions, piece by piece.
    pub log: Option<&'a mut dyn FnMut(&str)>,
    /// Receives every event, command and swap, in the order of the log.
    pub observer: Option<Observer<'a>>,
    /// Called now and then with the simulated time and the number of finished requests, to show progress. Returns whether the run goes on.
    pub progress: Option<Watch<'a>>,
}

/// A member of a volume: a drive with its engine.
pub struct Station {
    /// The drive, new.
    pub drive: Drive,
    /// Depth and merging.
    pub engine: Config,
    /// The scheduler, empty.
    pub scheduler: Box<dyn Scheduler>,
    /// The gate, and the schedulers of its lanes after the first. If `None` there is one lane, and a gate of fixed depth.
    pub gate: Option<Gated>,
    /// Job in the background; `None` for none.
    pub background: Option<Box<dyn Background>>,
    /// Rule for completion notifications to the engine. Without a rule the engine is notified of each completion at once.
    pub coalesce: Option<Coalesce>,
    /// Faults of the drive with their times, in order of time.
    pub faults: Vec<(Time, Fault)>,
}

impl Station {
    /// Returns a drive without faults, behind a gate of fixed depth, without a job in the background.
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

/// Callback that receives the time, the member of the engine, and the event, command or swap. The callback changes nothing in the run.
pub type Observer<'a> = &'a mut dyn FnMut(Time, Member, Seen<'_>);

/// Callback that watches a run.
pub type Watch<'a> = &'a mut dyn FnMut(Time, u64) -> ControlFlow<()>;

impl<'a> Setup<'a> {
    /// Returns a run to the end of the source, with one drive, and with defaults otherwise.
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

/// Results of a run.
#[derive(Debug)]
pub struct Report {
    /// The requests that finished after the warm-up.
    pub measured: Measured,
    /// The commands that the drives completed after the warm-up.
    pub commands: Commands,
    /// Head time of all members by use, from the end of the warm-up to the end of the run. The run ends with the last request, or at the
    /// limit if a request is unfinished then.
    pub head_time: HeadTime,
    /// Counts of the engines, warm-up included.
    pub engine: Stats,
    /// Number and results of the schedulers' waits, warm-up included.
    pub waits: WaitStats,
    /// Results of the predictions of commands, warm-up included; `None` if no scheduler tracks the head.
    pub predictions: Option<Predictions>,
    /// Counts of the conductor, warm-up included; `None` without a conductor.
    pub conducted: Option<Conducted>,
    /// The time simulated, warm-up included.
    pub simulated: Nanos,
    /// Sectors that the drives hold in their buffers and have not written at the end.
    pub dirty: Sectors,
    /// Results of each member.
    pub members: Vec<MemberReport>,
    /// Movements of each member's head, in order of time; empty unless recorded.
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

/// Reason for which a run fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The engine refuses its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The engine would send more commands than the drive takes.
    #[error("depth {depth} is more than the {drive} commands that the drive takes at a time")]
    Depth {
        /// Commands that the engine sends at a time.
        depth: u32,
        /// Commands that the drive takes at a time.
        drive: u32,
    },
    /// A request leaves the disk.
    #[error("request {cookie} asks for sectors {extent}; the drive has {capacity}")]
    PastEnd {
        /// The source's cookie for the request.
        cookie: u64,
        /// Sectors of the request.
        extent: Extent,
        /// Sectors of the drive.
        capacity: Sectors,
    },
    /// A read or write is longer than drives take.
    #[error("request {cookie} asks for {} sectors at once; allowed are {}", extent.len, Sectors::REQUEST_MAX)]
    TooLong {
        /// The source's cookie for the request.
        cookie: u64,
        /// Sectors of the request.
        extent: Extent,
    },
    /// The run would go beyond [`Time::LATEST`], divided by the number of drives, whose times are added.
    #[error(
        "at {at}: what comes next is more than {} years from the start, and so far no run of {drives} drive{} goes",
        292 / drives,
        if *drives == 1 { "" } else { "s" }
    )]
    TooLate {
        /// Time of the last event.
        at: Time,
        /// Number of drives in the run.
        drives: u64,
    },
    /// Reads and writes arrive and finish, but no time passes.
    #[error(
        "at {at}: {finished} reads and writes have finished, and no time has passed: neither the drive nor whoever \
         asks takes any"
    )]
    Standstill {
        /// Time at which the run stands still.
        at: Time,
        /// Number of reads and writes that have finished at that time.
        finished: u64,
    },
    /// Requests arrive faster than the drive serves them, for too long.
    #[error(
        "at {at}: {unfinished} requests are unfinished, and that is the most: they come faster than they are served"
    )]
    Overload {
        /// Time of the last arrival.
        at: Time,
        /// Number of unfinished requests.
        unfinished: u64,
    },
    /// The audit found that the engine broke a promise: a bug.
    #[error("at {at}: {violation}")]
    Violation {
        /// Time of the violation.
        at: Time,
        /// The broken promise.
        violation: Violation,
    },
    /// Nothing happens any more, but requests are unfinished. The cause is a bug, or a drive that does not answer and no timeout.
    #[error("at {at}: nothing happens any more, and {unfinished} requests are unfinished")]
    Stuck {
        /// Time of the last event.
        at: Time,
        /// Number of unfinished requests.
        unfinished: u64,
    },
    /// The watcher stopped the run.
    #[error("broken off at {at}")]
    BrokenOff {
        /// Time at which the run was stopped.
        at: Time,
    },
}

/// Number of events between two calls for progress.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Most reads and writes that may finish at one time. A drive without overheads answers from its buffer in no time. A client that asks
/// again at once would then do so for ever.
const FINISHED_AT_ONCE_MAX: u64 = 1 << 20;

/// Runs a workload on a drive under a scheduler until the source has ended and everything is
/// finished, or until the limit.
///
/// Of events at the same time, faults come first. The others come in the order of [`Core`].
///
/// # Panics
///
/// If there are several stations and no map, or a map of another number of members.
///
/// # Errors
///
/// If the configuration is out of range, if a request leaves the disk or is too long, if the run does not end, or if
/// a bug shows.
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

/// State of a member beside its engine.
struct Stage {
    drive: Drive,
    /// Completions whose data are still on the shared link, with the times at which they are across, in order.
    crossing: VecDeque<(Time, drive::Completion)>,
    /// Completions that the adapter holds back from the engine.
    kept: Option<Box<Kept<drive::Completion>>>,
    commands: commands::CommandWatch,
    faults: VecDeque<(Time, Fault)>,
    /// The account of the arm at the end of the warm-up.
    warm_head_time: Option<HeadTime>,
}

impl Stage {
    /// Returns the earliest time at which the drive has an event, or at which a completion is due at the engine.
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

    /// Returns the drive's next completion whose data have crossed the shared link by `now`.
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

    /// Returns the next completion that is due at the engine by `now`, and true if the completion comes with an
    /// interrupt of its own.
    #[inline]
    fn completed(&mut self, now: Time, bus: &mut Option<Bus>) -> Option<(drive::Completion, bool)> {
        if self.kept.is_none() {
            return Some((self.across(now, bus)?, true));
        }
        // A due interrupt comes before the drive's next event.
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

/// Devices and clients of a run, as the world of the loop.
///
/// Invariants, for `n = members.count()`:
///
/// - `n = 1` ⇒ `next` is empty; otherwise `next.len() = n`, and `next[i]` is the time of the next event of `members[i]`.
/// - `next_order` is the earliest time in `orders` and in the `faults` of members.
/// - `unfinished ≤ unfinished_max`.
/// - `measured.requests ≤ finished`.
struct Simulated<'a> {
    members: Few<Stage>,
    /// With several members: the time of each member's next event. The times are needed before each event, so they are stored and only
    /// updated for members that change.
    next: Vec<Time>,
    bus: Option<Bus>,
    capacity: Sectors,
    source: &'a mut dyn Source,
    tell_ahead: bool,
    orders: VecDeque<(Time, Order)>,
    /// Time of the first due fault or order, stored since it is needed before each event.
    next_order: Time,
    unfinished: u64,
    finished: u64,
    unfinished_max: u64,
    measured: Measured,
    commands: Commands,
    /// A time, and the number of reads and writes that have finished at this time.
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
            // A source that names a past time asks at once.
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
        // A limit cuts off unfinished requests.
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
            // The last request may finish within the warm-up, or no event may follow the warm-up.
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

    /// Updates the time of a member's next event after a change.
    #[inline(always)]
    fn changed(&mut self, index: usize) {
        if let Some(next) = self.next.get_mut(index) {
            *next = self.members[index].next_event().unwrap_or(Time::NEVER);
        }
    }

    fn all_changed(&mut self) {
        (0..self.next.len()).for_each(|index| self.changed(index));
    }

    /// Returns the time of the next fault or order.
    fn first_order(&self) -> Time {
        let fault = |member: &Stage| member.faults.front().map(|(at, _)| *at);
        let fault = self.members.earliest(fault);
        self.orders.front().map_or(fault, |(at, _)| fault.min(*at))
    }

    /// Takes an order that is due. If a fault is due, the fault is injected into its drive instead.
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

    /// Returns the member with the next event; the first one if several have the same time.
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
            since: None,
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
        // No run goes beyond this time, and no log with a later time can be read.
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
