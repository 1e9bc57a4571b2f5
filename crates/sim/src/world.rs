//! The loop of the simulated world.

use crate::Measured;
use headtime_disk::drive::{self, Drive, Fault};
use headtime_disk::ledger::{HeadTime, Span};
use headtime_engine::audit::{Audit, Violation};
use headtime_engine::{Arrival, Command, Config, ConfigError, Engine, Event, Outcome, Stats, log};
use headtime_sched::{Flags, Op, Request, Scheduler, Tag, WaitStats};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// A run to be.
pub struct Setup<'a> {
    /// The drive, new.
    pub drive: Drive,
    /// Depth and merging.
    pub engine: Config,
    /// The scheduler, empty.
    pub scheduler: Box<dyn Scheduler>,
    /// Who asks.
    pub source: &'a mut dyn Source,
    /// Requests that finish earlier are not measured.
    pub warm_up: Nanos,
    /// When to stop if the source does not end before; what is unfinished then is not measured.
    pub limit: Option<Nanos>,
    /// The most requests that may be unfinished; more, and the run ends with
    /// [`RunError::Overload`]. At first 16,777,216, which take some gigabytes of memory.
    pub unfinished_max: u64,
    /// What goes wrong with the drive, and when; in order of time.
    pub faults: Vec<(Time, Fault)>,
    /// When to give up on a command that the drive does not answer; never if `None`.
    pub timeout: Option<Nanos>,
    /// Schedulers to swap in, and when; in order of time.
    pub swaps: Vec<Swap>,
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
    /// Receives each command of the engine when it is given.
    pub observer: Option<Observer<'a>>,
    /// Called now and then with the time simulated and the requests finished, for progress. Says
    /// whether to go on.
    pub progress: Option<Watch<'a>>,
}

/// Receives the time and the command. It sees what the run does and cannot change it.
pub type Observer<'a> = &'a mut dyn FnMut(Time, &Command);

/// Who watches a run.
pub type Watch<'a> = &'a mut dyn FnMut(Time, u64) -> ControlFlow<()>;

/// A scheduler that takes over in flight.
pub struct Swap {
    /// When.
    pub at: Time,
    /// Its text, for the log.
    pub text: String,
    /// The scheduler, empty.
    pub scheduler: Box<dyn Scheduler>,
}

impl<'a> Setup<'a> {
    /// A run to the end of the source, without warm-up, faults, log or anything else special.
    pub fn new(
        drive: Drive,
        engine: Config,
        scheduler: Box<dyn Scheduler>,
        source: &'a mut dyn Source,
    ) -> Setup<'a> {
        Setup {
            drive,
            engine,
            scheduler,
            source,
            warm_up: Nanos::ZERO,
            limit: None,
            unfinished_max: 1 << 24,
            faults: Vec::new(),
            timeout: None,
            swaps: Vec::new(),
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
    /// Where the head time went, from the end of the warm-up to the end of the run: that of the last
    /// request, or the limit if something was unfinished then.
    pub head_time: HeadTime,
    /// What the engine did, warm-up included.
    pub engine: Stats,
    /// How often the schedulers of the run waited, and what came of it, warm-up included.
    pub waits: WaitStats,
    /// The time simulated, warm-up included.
    pub simulated: Nanos,
    /// Sectors that the drive has taken and not yet written at the end.
    pub dirty: Sectors,
    /// What the head did, in order of time; empty unless asked for.
    pub spans: Vec<Span>,
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
    /// The run goes on beyond [`Time::LATEST`].
    #[error(
        "at {at}: what comes next is more than 292 years from the start, and so far no run goes"
    )]
    TooLate {
        /// When the last thing happened.
        at: Time,
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
/// Of things that happen at the same time, faults come first, then completions, arrivals, and the
/// end of waiting. Whoever is woken by a completion asks again after the next dispatch, as in Linux,
/// where the queue runs before the reader does.
///
/// # Errors
///
/// If the configuration is out of range, at the first request that leaves the disk or is too long, if
/// the run has no end that can be come to, and if a bug shows.
pub fn run(setup: Setup<'_>) -> Result<Report, RunError> {
    World::new(setup)?.run()
}

struct World<'a> {
    drive: Drive,
    engine: Engine,
    source: &'a mut dyn Source,
    warm: Time,
    stop: Time,
    unfinished_max: u64,
    faults: VecDeque<(Time, Fault)>,
    swaps: VecDeque<Swap>,
    timeout: Option<Nanos>,
    tell_ahead: bool,
    /// Commands in the drive by the time at which to give up on them, if there is a timeout.
    deadlines: VecDeque<(Time, Tag)>,
    audit: Option<Audit>,
    log: Option<Log<'a>>,
    observer: Option<Observer<'a>>,
    progress: Option<Watch<'a>>,
    capacity: Sectors,
    measured: Measured,
    /// The account of the arm at the end of the warm-up.
    warm_head_time: Option<HeadTime>,
    now: Time,
    events: u64,
    /// Reads and writes that have finished at this time.
    finished_now: u64,
    /// Of schedulers that were swapped out.
    waits: WaitStats,
}

/// When the two who ask most often are to be asked next.
#[derive(Clone, Copy)]
struct Due {
    drive: Option<Time>,
    source: Option<Time>,
}

impl<'a> World<'a> {
    fn new(setup: Setup<'a>) -> Result<World<'a>, RunError> {
        let mut drive = setup.drive;
        let (depth, takes) = (setup.engine.depth, drive.depth());
        let engine = Engine::new(setup.engine, setup.scheduler)?;
        if depth > takes {
            return Err(RunError::Depth {
                depth,
                drive: takes,
            });
        }
        drive.record_spans(Time::ZERO, setup.record_spans);
        setup.source.tell_ahead(setup.tell_ahead);
        let warm = Time::ZERO + setup.warm_up;
        Ok(World {
            capacity: drive.capacity(),
            measured: Measured::new(warm, drive.profile().geometry.sector_bytes),
            drive,
            engine,
            source: setup.source,
            warm,
            stop: setup.limit.map_or(Time::NEVER, |limit| Time::ZERO + limit),
            unfinished_max: setup.unfinished_max,
            faults: setup.faults.into(),
            swaps: setup.swaps.into(),
            timeout: setup.timeout,
            tell_ahead: setup.tell_ahead,
            deadlines: VecDeque::new(),
            audit: setup.audit.then(Audit::new),
            log: setup.log.map(|sink| Log::new(sink, &setup.log_settings)),
            observer: setup.observer,
            progress: setup.progress,
            warm_head_time: None,
            now: Time::ZERO,
            events: 0,
            finished_now: 0,
            waits: WaitStats::default(),
        })
    }

    fn run(mut self) -> Result<Report, RunError> {
        loop {
            let mut due = self.due();
            let Some(next) = self.next(due).filter(|next| *next <= self.stop) else {
                break;
            };
            if next > Time::LATEST {
                return Err(RunError::TooLate { at: self.now });
            }
            // A source may name a time that has passed: it then asks at once.
            if next > self.now {
                self.now = next;
                self.finished_now = 0;
            }
            if self.warm_head_time.is_none() && self.now >= self.warm {
                self.warm_head_time = Some(self.drive.head_time(self.warm));
                due = self.due();
            }
            self.step(due)?;
        }
        let stats = *self.engine.stats();
        let mut waits = self.waits;
        waits += self.engine.scheduler().waits();
        let unfinished = stats.arrived - stats.finished;
        let over = self.engine.is_idle() && self.source.done();
        if !over && self.stop == Time::NEVER {
            return Err(RunError::Stuck {
                at: self.now,
                unfinished,
            });
        }
        if let Some(log) = &mut self.log {
            log::write_end(&mut log.text);
            log.flush();
        }
        // A limit cuts off what is not over before.
        let (end, until) = match over {
            true => (self.now, self.measured.until),
            false => (self.stop, self.stop),
        };
        let until = until.max(self.warm.min(end));
        // The last request may finish within the warm-up, or nothing happen after it.
        let before = self
            .warm_head_time
            .unwrap_or_else(|| self.drive.head_time(self.warm.min(end)));
        let head_time = self.drive.head_time(end).since(&before);
        self.measured
            .close(until, self.engine.unfinished().map(|(_, request)| request));
        Ok(Report {
            head_time,
            engine: stats,
            waits,
            simulated: end - Time::ZERO,
            dirty: self.drive.dirty_sectors(end),
            spans: self.drive.take_spans(end),
            measured: self.measured,
        })
    }

    fn due(&self) -> Due {
        Due {
            drive: self.drive.next_event(),
            source: self.source.next_arrival(),
        }
    }

    /// When the next thing happens, if anything does.
    fn next(&self, due: Due) -> Option<Time> {
        let mut next = due.drive.unwrap_or(Time::NEVER);
        for at in [
            self.engine.next_wakeup(),
            self.faults.front().map(|(at, _)| *at),
            self.swaps.front().map(|swap| swap.at),
            self.deadlines.front().map(|(at, _)| *at),
        ] {
            next = next.min(at.unwrap_or(Time::NEVER));
        }
        match due.source {
            // Whoever thinks for so long that it leaves 64 bits has not ended.
            Some(at) => Some(next.min(at)),
            None => Some(next).filter(|next| *next < Time::NEVER),
        }
    }

    fn step(&mut self, due: Due) -> Result<(), RunError> {
        let now = self.now;
        self.events += 1;
        if self.events.is_multiple_of(PROGRESS_EVENTS)
            && let Some(progress) = &mut self.progress
            && progress(now, self.engine.stats().finished).is_break()
        {
            return Err(RunError::BrokenOff { at: now });
        }
        if self.faults.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, fault)) = self.faults.pop_front() {
                self.drive.inject(now, fault);
            }
            return Ok(());
        }
        if self.swaps.front().is_some_and(|swap| swap.at <= now) {
            if let Some(swap) = self.swaps.pop_front() {
                if let Some(log) = &mut self.log {
                    log::write_swap(&mut log.text, now, &swap.text);
                }
                self.waits += self.engine.replace_scheduler(now, swap.scheduler).waits();
            }
            return self.commands();
        }
        let event = if due.drive.is_some_and(|at| at <= now) {
            match self.drive.poll(now) {
                Some(done) => {
                    let outcome = match done.result {
                        Ok(()) => Outcome::Done,
                        Err(_) => Outcome::MediumError,
                    };
                    Event::Completed {
                        tag: Tag(done.tag),
                        outcome,
                    }
                }
                None => return Ok(()),
            }
        } else if let Some((at, tag)) = self.deadlines.front().copied()
            && at <= now
        {
            self.deadlines.pop_front();
            if !self.drive.abort(now, tag.0) {
                // Just begun: it will complete.
                return Ok(());
            }
            Event::Completed {
                tag,
                outcome: Outcome::TimedOut,
            }
        } else if due.source.is_some_and(|at| at <= now) {
            match self.source.poll(now) {
                Some(new) => Event::Arrived(self.arrival(&new)?),
                None if self.source.unplug() => Event::Unplugged,
                None => return Ok(()),
            }
        } else {
            Event::Woke
        };
        if let Event::Completed { tag, .. } = event {
            self.deadlines.retain(|(_, other)| *other != tag);
        }
        self.handle(event)?;
        self.commands()
    }

    fn handle(&mut self, event: Event) -> Result<(), RunError> {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log::write_event(&mut log.text, now, &event);
        }
        if let Some(audit) = &mut self.audit {
            audit
                .event(&event)
                .map_err(|violation| RunError::Violation { at: now, violation })?;
        }
        self.engine.handle(now, event);
        Ok(())
    }

    /// Passes on what has become certain, to a scheduler that is told of it.
    #[inline]
    fn foretell(&mut self) -> Result<(), RunError> {
        match self.tell_ahead {
            true => self.foretell_all(),
            false => Ok(()),
        }
    }

    fn foretell_all(&mut self) -> Result<(), RunError> {
        while let Some(request) = self.source.foretell() {
            // No run goes so far, and no log could be read that had it.
            if request.at <= Time::LATEST {
                self.handle(Event::Foretold(request))?;
            }
        }
        Ok(())
    }

    fn commands(&mut self) -> Result<(), RunError> {
        let now = self.now;
        self.foretell()?;
        while let Some(command) = self.engine.poll(now) {
            if let Some(log) = &mut self.log {
                log::write_decision(&mut log.text, now, &(&command).into());
            }
            if let Some(observer) = &mut self.observer {
                observer(now, &command);
            }
            if let Some(audit) = &mut self.audit {
                audit
                    .command(&self.engine, &command)
                    .map_err(|violation| RunError::Violation { at: now, violation })?;
            }
            match command {
                Command::Issue(request) => {
                    self.drive.submit(now, drive_command(&request));
                    if let Some(timeout) = self.timeout {
                        let deadline = now.saturating_add(timeout);
                        self.deadlines.push_back((deadline, request.tag));
                    }
                }
                Command::Finish(done) => {
                    let moves = matches!(done.request.op, Op::Read | Op::Write);
                    self.finished_now += u64::from(moves);
                    if self.finished_now > FINISHED_AT_ONCE_MAX {
                        let finished = self.finished_now;
                        return Err(RunError::Standstill { at: now, finished });
                    }
                    self.measured.finished(now, &done);
                    self.source.completed(now, done.id);
                    self.foretell()?;
                }
            }
        }
        self.drive.note_pending(now, self.engine.backlog());
        if let Some(log) = &mut self.log {
            log.flush_if_full();
        }
        Ok(())
    }

    fn arrival(&self, new: &NewRequest) -> Result<Arrival, RunError> {
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
        let stats = self.engine.stats();
        let unfinished = stats.arrived - stats.finished;
        if unfinished >= self.unfinished_max {
            let at = self.now;
            return Err(RunError::Overload { at, unfinished });
        }
        Ok(Arrival {
            id: cookie,
            op,
            extent,
            flags,
            origin,
            class,
        })
    }
}

fn drive_command(request: &Request) -> drive::Command {
    drive::Command {
        tag: request.tag.0,
        op: request.op,
        extent: request.extent,
        fua: request.flags.has(Flags::FUA),
    }
}

/// The log on its way out.
struct Log<'a> {
    text: String,
    sink: &'a mut dyn FnMut(&str),
}

impl<'a> Log<'a> {
    /// Handed on in pieces of about this size.
    const PIECE: usize = 1 << 16;

    fn new(sink: &'a mut dyn FnMut(&str), settings: &[(String, String)]) -> Log<'a> {
        let mut text = String::with_capacity(Log::PIECE + 4096);
        log::write_header(&mut text);
        for (key, value) in settings {
            log::write_setting(&mut text, key, value);
        }
        Log { text, sink }
    }

    fn flush_if_full(&mut self) {
        if self.text.len() >= Log::PIECE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        (self.sink)(&self.text);
        self.text.clear();
    }
}
