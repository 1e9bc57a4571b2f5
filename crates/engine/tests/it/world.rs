//! A world for the engine: callers, a toy drive, and either a virtual or a real clock.

use headtime_engine::audit::Audit;
use headtime_engine::{Arrival, Command, Config, DriveTag, Engine, Event, Outcome, RequestId, log};
use headtime_sched::{Flags, Op, Request, Scheduler};
use headtime_units::{Extent, Lba, Nanos, Time};

/// A request and when it is made.
pub(crate) type Timed = (Time, Arrival);

/// Results of a run.
pub(crate) struct Run {
    /// The log, as text.
    pub log: String,
    /// When the last request finished.
    pub end: Time,
}

/// A drive whose service time depends on the distance from the last command and on the number of earlier commands.
/// Completions therefore come out of order. Sectors in `bad` cannot be accessed.
pub(crate) struct ToyDrive {
    pub bad: Vec<u64>,
    in_service: Vec<(Time, Request<DriveTag>)>,
    last: u64,
    commands: u64,
}

impl ToyDrive {
    pub fn new(bad: Vec<u64>) -> ToyDrive {
        ToyDrive {
            bad,
            in_service: Vec::new(),
            last: 0,
            commands: 0,
        }
    }

    fn submit(&mut self, now: Time, request: Request<DriveTag>) {
        let start = request.extent.start.get();
        let distance = start.abs_diff(self.last);
        self.last = start + request.extent.len.get();
        let micros = 20 + distance % 97 + 13 * (self.commands % 3);
        self.commands += 1;
        self.in_service
            .push((now + Nanos::from_micros(micros), request));
    }

    fn next(&self) -> Option<Time> {
        self.in_service.iter().map(|(at, _)| *at).min()
    }

    fn complete(&mut self, now: Time) -> Option<(Request<DriveTag>, Outcome)> {
        let at = self.in_service.iter().position(|(at, _)| *at <= now)?;
        let (_, request) = self.in_service.swap_remove(at);
        let bad = touches(request.extent, &self.bad);
        Some((
            request,
            if bad {
                Outcome::MediumError
            } else {
                Outcome::Done
            },
        ))
    }
}

/// Where the time comes from.
pub(crate) trait Clock {
    /// Waits until `until` or a little later, and returns the time it then is.
    fn wait(&mut self, until: Time) -> Time;
}

/// Time that jumps.
pub(crate) struct Virtual;

impl Clock for Virtual {
    fn wait(&mut self, until: Time) -> Time {
        until
    }
}

/// Runs `arrivals`, sorted by time, to the end. A client that was late makes its later requests later too. So where a
/// busy machine wakes nobody for a while, requests do not pile up and merge, and completions still come between them.
pub(crate) fn run<S: Scheduler>(
    config: Config,
    scheduler: S,
    arrivals: &[Timed],
    mut drive: ToyDrive,
    clock: &mut impl Clock,
) -> Run {
    let mut engine = Engine::new(config, scheduler).expect("a valid configuration");
    let mut audit = Audit::new();
    let mut run = Run {
        log: String::new(),
        end: Time::ZERO,
    };
    log::write_header(&mut run.log);
    let mut arrivals = arrivals.iter().peekable();
    let mut late = Nanos::ZERO;
    loop {
        let next = [
            arrivals.peek().map(|(at, _)| *at + late),
            drive.next(),
            engine.next_wakeup(),
        ];
        let Some(next) = next.into_iter().flatten().min() else {
            break;
        };
        let now = clock.wait(next.max(run.end));
        run.end = now;
        let event = if let Some((request, outcome)) = drive.complete(now) {
            Event::Completed {
                tag: request.tag,
                outcome,
            }
        } else if let Some((at, arrival)) = arrivals.next_if(|(at, _)| *at + late <= now) {
            late = now - *at;
            Event::Arrived(*arrival)
        } else {
            Event::Woke
        };
        log::write_event(&mut run.log, now, &event);
        audit.event(&event).expect("an event that can be");
        engine.handle(now, event);
        while let Some(command) = engine.poll(now) {
            audit
                .command(&engine, &command)
                .expect("the engine's promises");
            log::write_decision(&mut run.log, now, &(&command).into());
            match command {
                Command::Issue(request) => drive.submit(now, request),
                Command::Finish(done) | Command::Background(done) => {
                    let failed = touches(done.request.extent, &drive.bad);
                    assert_eq!(done.outcome != Outcome::Done, failed, "{done:?}");
                }
            }
        }
    }
    assert!(engine.is_idle(), "the queue drains: {:?}", engine.stats());
    assert_eq!(engine.stats().arrived, engine.stats().finished);
    assert_eq!(audit.unfinished(), 0, "everything finishes");
    assert_eq!(engine.waiting(), 0);
    run
}

/// A best-effort request.
pub(crate) fn arrival(id: u64, op: Op, start: u64, len: u64, process: u32) -> Arrival {
    Arrival {
        id: RequestId::Client(id),
        op,
        extent: Extent::at(start, len),
        flags: Flags::NONE,
        origin: headtime_sched::Origin {
            process,
            ..Default::default()
        },
        class: Default::default(),
        since: None,
    }
}

/// Where the commands begin that go to the drive.
pub(crate) fn poll<S: Scheduler>(engine: &mut Engine<S>, now: Time) -> Vec<u64> {
    let commands = std::iter::from_fn(|| engine.poll(now));
    let starts = commands.filter_map(|command| match command {
        Command::Issue(request) => Some(request.extent.start.get()),
        _ => None,
    });
    starts.collect()
}

/// Sends a read of 8 sectors to the engine. Returns the first sectors of the commands that go to the drive.
pub(crate) fn read<S: Scheduler>(
    engine: &mut Engine<S>,
    now: Time,
    id: u64,
    start: u64,
) -> Vec<u64> {
    engine.handle(now, Event::Arrived(arrival(id, Op::Read, start, 8, 0)));
    poll(engine, now)
}

/// Returns true if a request touches a sector of `bad`.
pub(crate) fn touches(extent: Extent, bad: &[u64]) -> bool {
    bad.iter().any(|bad| extent.contains(Lba::new(*bad)))
}
