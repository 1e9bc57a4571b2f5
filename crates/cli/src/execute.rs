//! Makes the runs of a scenario, several at a time, and sums them up.

use crate::batch;
use crate::bound::{self, Known, Repeat};
use crate::by_name::{Names, by_name, kinds};
use crate::drives;
use crate::fault::Fault;
use crate::files::Output;
use crate::plot::{Mark, PARTS, RUNS_MAX};
use crate::prepare::{DriveSet, Prepared, synthetic};
use crate::progress::{Goal, Progress};
use crate::report::{
    self, Confidence, EngineCounts, HeadTime, OriginRun, ProcessRun, ProgramRun, Run, Spread,
    WaitCounts, round,
};
use crate::scenario::{
    Cell, Firmware, Pace, Program, Programs, Scenario, Workload, cells, of_programs,
};
use crate::stock::Stock;
use headtime_bound::{Bound, Machine};
use headtime_disk::profile::{FirmwarePolicy, Profile, Reference};
use headtime_disk::{Drive, Part};
use headtime_engine::log::{self, Decision, LogSettings, Record};
use headtime_engine::{Config, Event};
use headtime_host::workload::BenchmarkError;
use headtime_host::{DiskSize, Host, HostBuilder, HostError, ProcessOutcome, ProgramOutcome};
use headtime_sched::{Knowledge, Origin, Scheduler};
use headtime_sim::{Distribution, Got, RunError, Setup};
use headtime_units::{Nanos, Sectors, Time};
use headtime_workload::{
    ClosedPerProcess, ClosedReplay, OpenReplay, ReplayError, Source, Start, Synthetic,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How the runs are made.
#[derive(Debug, Default)]
pub struct How {
    /// Runs made at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
    /// What to keep of the head's movements for a plot.
    pub marks: Option<Keep>,
    /// Where the log of the one run goes.
    pub log: Option<Output>,
    /// Whether to keep when each request came, was issued and was done.
    pub record: bool,
}

/// What runs are made with, on any thread.
#[derive(Clone, Copy)]
pub struct With<'a> {
    /// What they share.
    pub stock: &'a Stock,
    /// How far they are.
    pub progress: &'a Progress,
    /// Asked now and then during a run: whether to give up.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// When something happened to a request, in seconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// It came.
    pub arrived: f64,
    /// It went to the drive, alone or as part of a merged one.
    pub issued: f64,
    /// It was done.
    pub done: f64,
}

/// Which of the head's movements are kept for a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// So many transfers after the warm-up.
    Transfers(usize),
    /// A part of the time, in seconds.
    Window(f64, f64),
}

/// What came of the runs.
#[derive(Debug)]
pub struct Outcome {
    /// The runs, in the order of the matrix.
    pub runs: Vec<Run>,
    /// What the head did in each, if it was to be kept.
    pub marks: Vec<Vec<Mark>>,
    /// The requests of each, in the order in which they were done, if they were to be kept.
    pub samples: Vec<Vec<Sample>>,
    /// Requests simulated, repeats and warm-up included.
    pub simulated: u64,
    /// The time simulated, warm-up included, of the longest run.
    pub longest: Nanos,
}

/// One run of the matrix, one repeat of it.
#[derive(Debug)]
pub struct Made {
    report: headtime_sim::Report,
    marks: Vec<Mark>,
    samples: Vec<Sample>,
    programs: Vec<(Called, ProgramOutcome)>,
    bound: Option<Known>,
}

/// A program's names.
#[derive(Clone, Debug)]
struct Called {
    /// In results.
    name: String,
    /// What it runs.
    benchmark: &'static str,
    /// Which of the scenario's programs it is made by.
    entry: usize,
}

/// The policy that is told of requests before they come.
const FORETOLD: &str = "clairvoyant";

/// Who asks for what in a run.
enum Load {
    /// Whoever nothing more is to be known of.
    Plain(Box<dyn Source + Send>),
    /// Programs, and what each is called.
    Programs(Box<Host>, Vec<Called>),
}

impl Load {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Load::Plain(source) => source.as_mut(),
            Load::Programs(host, _) => host.as_mut(),
        }
    }

    /// What programs achieved, each with its names. The host, which may be large, is
    /// gone then.
    fn programs(self) -> Vec<(Called, ProgramOutcome)> {
        match self {
            Load::Plain(_) => Vec::new(),
            Load::Programs(host, names) => names.into_iter().zip(host.outcome()).collect(),
        }
    }
}

/// Makes all runs.
///
/// # Errors
///
/// The first in the order of the matrix, whichever failed first in time.
pub fn execute(prepared: &Prepared, mut how: How, with: With<'_>) -> Result<Outcome, Fault> {
    let progress = with.progress;
    let cells = cells(&prepared.scenario);
    let repeats = prepared.scenario.repeats as usize;
    let tasks: Vec<(usize, u32)> = (0..cells.len())
        .flat_map(|cell| (0..repeats as u32).map(move |repeat| (cell, repeat)))
        .collect();
    let mut log = how.log.take();
    if log.is_some() && tasks.len() > 1 {
        return Err(Fault::Usage(format!(
            "--log is for one run, and these are {}; choose one scheduler, one drive, one depth, run.repeats = 1",
            tasks.len()
        )));
    }
    progress.begin(tasks.len() as u64);
    let make = |(cell, repeat): (usize, u32), log: Option<&mut Output>| {
        let what = What {
            // Only the first repeat of what is drawn: spans of a long run take much memory.
            marks: how.marks.filter(|_| cell < RUNS_MAX && repeat == 0),
            record: how.record && repeat == 0,
            log,
        };
        make(prepared, &cells[cell], repeat, what, with)
    };
    let made: Vec<Result<Made, Fault>> = match &mut log {
        Some(log) => vec![make((0, 0), Some(log))],
        None => batch::all(how.jobs, tasks, |task| make(task, None))?,
    };
    progress.end();
    let mut made = made.into_iter().collect::<Result<Vec<Made>, Fault>>()?;
    if let Some(log) = log {
        log.finish()?;
    }
    let simulated = made.iter().map(|made| made.report.engine.finished).sum();
    let longest = made.iter().map(|made| made.report.simulated).max();
    let mut marks = Vec::new();
    if how.marks.is_some() {
        // The first repeat stands for all.
        marks.extend(
            made.iter_mut()
                .step_by(repeats)
                .map(|made| std::mem::take(&mut made.marks)),
        );
    }
    let samples = made.iter_mut().step_by(repeats);
    let samples = samples.map(|made| std::mem::take(&mut made.samples));
    let samples = samples.collect();
    let runs = cells
        .iter()
        .zip(made.chunks(repeats))
        .map(|(cell, made)| sum_up(prepared, cell, made));
    let mut runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
    label(&mut runs);
    Ok(Outcome {
        runs,
        marks,
        samples,
        simulated,
        longest: longest.unwrap_or_default(),
    })
}

/// The seed of a repeat; the first has the scenario's own. (SplitMix64, Steele, Lea and Flood,
/// OOPSLA 2014.)
fn seed(scenario: u64, repeat: u32) -> u64 {
    if repeat == 0 {
        scenario
    } else {
        mix(scenario ^ mix(u64::from(repeat)))
    }
}

fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// What to keep of a run beside its figures.
#[derive(Debug, Default)]
pub struct What<'a> {
    /// The head's movements.
    pub marks: Option<Keep>,
    /// When each request came, was issued and was done.
    pub record: bool,
    /// The log.
    pub log: Option<&'a mut Output>,
}

/// Makes one repeat of one run of a scenario.
///
/// # Errors
///
/// If the run cannot be, or measures nothing; and [`Fault::Interrupted`] if it was given up.
pub fn make(
    prepared: &Prepared,
    cell: &Cell,
    repeat: u32,
    what: What<'_>,
    with: With<'_>,
) -> Result<Made, Fault> {
    let With {
        stock,
        progress,
        stop,
    } = with;
    let What {
        marks: keep,
        record,
        mut log,
    } = what;
    let scenario = &prepared.scenario;
    let set = &prepared.drives[cell.drive];
    let profile = set.with_firmware(cell.firmware)?;
    let seed = seed(scenario.seed, repeat);
    let sector_bytes = profile.geometry.sector_bytes;
    // What the drive draws has nothing to do with what the programs draw.
    let drive = Drive::with_layout(&profile, Arc::clone(&set.layout), mix(!seed));
    let config = engine(scenario, cell, sector_bytes);
    let scheduler = scheduler(set, cell, config)?;
    let (mut load, goal) = load(prepared, cell, seed, stock)?;
    let mut task = progress.task(goal);
    let mut note = |now, finished| {
        task.note(now, finished);
        match stop {
            Some(stop) if stop() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let mut log_error = None;
    let logs = log.is_some();
    let mut tape = String::new();
    let mut write = |piece: &str| {
        if record {
            tape.push_str(piece);
        }
        if let Some(output) = log.as_deref_mut()
            && log_error.is_none()
            && let Err(error) = output.write_all(piece.as_bytes())
        {
            log_error = Some(Fault::writing(output.path(), &error));
        }
    };
    let mut setup = Setup::new(drive, config, scheduler, load.source());
    setup.tell_ahead = cell.scheduler.info().name == FORETOLD;
    setup.warm_up = scenario.warm_up;
    setup.limit = scenario.duration;
    setup.record_spans = keep.is_some();
    if logs {
        setup.log_settings = log_settings(prepared, cell, &profile, config, seed)?;
    }
    setup.log = (logs || record).then_some(&mut write);
    setup.progress = (progress.is_shown() || stop.is_some()).then_some(&mut note);
    let mut report = headtime_sim::run(setup).map_err(|error| match error {
        RunError::BrokenOff { .. } => Fault::Interrupted,
        error => Fault::Input(format!("{} on {}: {error}", cell.scheduler, profile.name)),
    })?;
    if let Some(fault) = log_error {
        return Err(fault);
    }
    if report.measured.requests == 0 {
        return Err(Fault::Input(format!(
            "{} on {}: no request finished after the warm-up of {}; simulated were {}",
            cell.scheduler, profile.name, scenario.warm_up, report.simulated
        )));
    }
    let marks = keep.map_or_else(Vec::new, |keep| {
        kept(
            &report.spans,
            keep,
            scenario.warm_up.as_secs_f64(),
            sector_bytes,
        )
    });
    report.spans = Vec::new();
    let programs = load.programs();
    let ends = programs.iter().map(|(_, program)| program.ended);
    let took = match ends.max().flatten() {
        Some(end) => end - Time::ZERO,
        None => report.simulated,
    };
    let mut bound = None;
    if bound::is_there(scenario) {
        let machine = Machine {
            profile: &profile,
            layout: &set.layout,
            depth: cell.depth,
            merge: cell.merge.then_some(config.merge_sectors_max),
        };
        let key = bound::key(scenario, set, cell, seed);
        bound = stock.bound(key, || least(prepared, cell, seed, stock, &machine))?;
    }
    let bound = bound.map(|bound| Known { bound, took });
    debug_assert!(
        bound
            .as_ref()
            .is_none_or(|known| known.bound.time() <= took),
        "{bound:?}"
    );
    task.done();
    Ok(Made {
        report,
        marks,
        samples: samples(&tape),
        programs,
        bound,
    })
}

/// The requests of a log that are done, in the order in which they were.
fn samples(tape: &str) -> Vec<Sample> {
    let mut arrived: BTreeMap<u64, Time> = BTreeMap::new();
    let mut issued: BTreeMap<u32, Time> = BTreeMap::new();
    let mut latest = None;
    let mut samples = Vec::new();
    for record in log::read(tape) {
        let (_, record) = record.expect("what the engine writes it reads");
        match record {
            Record::Event(now, Event::Arrived(new)) => {
                arrived.insert(new.id, now);
            }
            Record::Decision(now, Decision::Issue { tag, .. }) => {
                issued.insert(tag.0, now);
            }
            // All requests that this one was made of are done next.
            Record::Event(_, Event::Completed { tag, .. }) => latest = issued.remove(&tag.0),
            Record::Decision(now, Decision::Finish { id, .. }) => {
                if let (Some(arrived), Some(issued)) = (arrived.remove(&id), latest) {
                    samples.push(Sample {
                        arrived: arrived.as_secs_f64(),
                        issued: issued.as_secs_f64(),
                        done: now.as_secs_f64(),
                    });
                }
            }
            _ => {}
        }
    }
    samples
}

/// What a log says of its run: whatever is needed to make the engine again, and to find the run.
fn log_settings(
    prepared: &Prepared,
    cell: &Cell,
    profile: &Profile,
    config: Config,
    seed: u64,
) -> Result<Vec<(String, String)>, Fault> {
    let mut settings = LogSettings::new(config, &cell.scheduler.to_string());
    let set = &prepared.drives[cell.drive];
    settings.curve = set.curve.as_deref().cloned();
    if set.belief.is_some() {
        let believed = match &prepared.scenario.belief {
            Some(name) => drives::open(name)?,
            None => set.profile.clone(),
        };
        settings.belief = Some(Reference::of(&believed).to_string());
    }
    let others: [(&str, &dyn ToString); 6] = [
        ("version", &env!("CARGO_PKG_VERSION")),
        ("scenario_hash", &prepared.hash),
        ("seed", &seed),
        ("drive", &profile.name),
        ("firmware", &firmware(profile).name()),
        ("noise", &prepared.scenario.noise),
    ];
    settings.others = others
        .map(|(key, value)| (key.to_owned(), value.to_string()))
        .to_vec();
    Ok(settings.to_settings())
}

fn load(prepared: &Prepared, cell: &Cell, seed: u64, stock: &Stock) -> Result<(Load, Goal), Fault> {
    let scenario = &prepared.scenario;
    let set = &prepared.drives[cell.drive];
    let DiskSize {
        capacity,
        sector_bytes,
    } = disk(set);
    let goal = |requests: Option<u64>| match (scenario.duration, requests) {
        (Some(duration), _) => Goal::Time(duration),
        (None, Some(requests)) => Goal::Requests(requests),
        (None, None) => Goal::Unknown,
    };
    match &scenario.workload {
        Workload::Synthetic(groups) => {
            let spec = synthetic(groups, scenario.requests, seed);
            let source = Synthetic::new(&spec, capacity, sector_bytes)
                .map_err(|error| Fault::Input(format!("workload: {error}")))?;
            Ok((Load::Plain(Box::new(source)), goal(scenario.requests)))
        }
        Workload::Programs(programs) => {
            let (builder, names) = builder(programs, disk(set), seed, stock)?;
            let host = builder
                .build(seed)
                .map_err(|error| Fault::Input(format!("host: {error}")))?;
            Ok((Load::Programs(Box::new(host), names), goal(None)))
        }
        Workload::Replay(replay) => {
            let script = set.script.as_ref().expect("a replay has a script");
            let goal = goal(Some(script.requests().len() as u64));
            let script = Arc::clone(script);
            let fault = |error: ReplayError| Fault::Input(format!("{}: {error}", replay.file));
            let source: Box<dyn Source + Send> = match replay.pace {
                Pace::Open(speed) => {
                    Box::new(OpenReplay::new(script, speed, Start::AtOnce).map_err(fault)?)
                }
                Pace::Closed(outstanding) => Box::new(ClosedReplay::new(script, outstanding)),
                Pace::ClosedPerProcess => Box::new(ClosedPerProcess::new(script).map_err(fault)?),
            };
            Ok((Load::Plain(source), goal))
        }
    }
}

/// The bound of all that a run does, for which what it does is made once more.
fn least(
    prepared: &Prepared,
    cell: &Cell,
    seed: u64,
    stock: &Stock,
    machine: &Machine<'_>,
) -> Result<Option<Bound>, Fault> {
    match &prepared.scenario.workload {
        Workload::Programs(programs) => {
            let set = &prepared.drives[cell.drive];
            let (builder, _) = builder(programs, disk(set), seed, stock)?;
            Ok(machine.programs(builder))
        }
        Workload::Synthetic(_) | Workload::Replay(_) => {
            let (mut load, _) = load(prepared, cell, seed, stock)?;
            Ok(machine.source(load.source()))
        }
    }
}

/// Finds out whether a run can begin, without beginning it.
///
/// # Errors
///
/// If the drive cannot have the firmware, the scheduler cannot be built, or the load does not fit on
/// the drive.
pub fn check(prepared: &Prepared, cell: &Cell, stock: &Stock) -> Result<(), Fault> {
    let set = &prepared.drives[cell.drive];
    set.with_firmware(cell.firmware)?;
    let sector_bytes = set.profile.geometry.sector_bytes;
    scheduler(set, cell, engine(&prepared.scenario, cell, sector_bytes))?;
    match &prepared.scenario.workload {
        Workload::Programs(programs) => {
            builder(programs, disk(set), prepared.scenario.seed, stock).map(|_| ())
        }
        Workload::Synthetic(_) | Workload::Replay(_) => {
            load(prepared, cell, prepared.scenario.seed, stock).map(|_| ())
        }
    }
}

fn engine(scenario: &Scenario, cell: &Cell, sector_bytes: u32) -> Config {
    Config {
        depth: cell.depth,
        merge: cell.merge,
        merge_sectors_max: Sectors::new((scenario.merge_max.0 / u64::from(sector_bytes)).max(1)),
        commit_ahead: cell.commit_ahead,
        plug: scenario.plug,
        hide_origins: scenario.hide_processes,
    }
}

fn scheduler(set: &DriveSet, cell: &Cell, config: Config) -> Result<Box<dyn Scheduler>, Fault> {
    let knowledge = Knowledge {
        positioning: set.belief.clone(),
        curve: set.curve.clone(),
        handed_out_max: Some(config.handed_out_max()),
    };
    cell.scheduler.build(knowledge).map_err(Fault::input)
}

fn disk(set: &DriveSet) -> DiskSize {
    let geometry = &set.profile.geometry;
    DiskSize {
        capacity: geometry.capacity,
        sector_bytes: geometry.sector_bytes,
    }
}

/// A host with the files and processes of some programs, and what each program is called.
fn builder(
    programs: &Programs,
    disk: DiskSize,
    seed: u64,
    stock: &Stock,
) -> Result<(HostBuilder, Vec<Called>), Fault> {
    let fault = |error: HostError| Fault::Input(format!("host: {error}"));
    let mut builder = HostBuilder::new(programs.host.clone(), disk).map_err(fault)?;
    let (mut first, mut entries) = (1, Vec::new());
    for Program { name, benchmark } in &programs.entries {
        let fault = |error: BenchmarkError| Fault::Input(format!("program: {error}"));
        let laid = stock
            .laid(benchmark, disk, mix(seed ^ u64::from(first)))
            .map_err(fault)?;
        let next = benchmark
            .add_laid(&laid, &mut builder, first)
            .map_err(fault)?;
        entries.push((name.as_deref(), benchmark.name(), (next - first) as usize));
        first = next;
    }
    let made = entries.iter().enumerate();
    let made = made.flat_map(|(entry, (_, benchmark, count))| {
        std::iter::repeat_n((entry, *benchmark), *count)
    });
    let called = of_programs(&entries).into_iter().zip(made);
    let called = called.map(|(name, (entry, benchmark))| Called {
        name,
        benchmark,
        entry,
    });
    Ok((builder, called.collect()))
}

/// The spans that a plot may need, in its units.
fn kept(spans: &[headtime_disk::Span], keep: Keep, warm_up: f64, sector_bytes: u32) -> Vec<Mark> {
    let (from, to) = match keep {
        Keep::Window(from, to) => (from, to),
        Keep::Transfers(_) => (warm_up, f64::INFINITY),
    };
    let mut left = match keep {
        Keep::Window(..) => usize::MAX,
        // The run with most transfers sets the end; the others show no more than it does.
        Keep::Transfers(transfers) => transfers + 2,
    };
    let mut marks: Vec<Mark> = Vec::new();
    for span in spans {
        let mark = Mark {
            from: span.from.as_secs_f64(),
            to: span.to.as_secs_f64(),
            address: span.lba.get() as f64 * f64::from(sector_bytes),
            part: span.part as usize,
        };
        if mark.from >= to || left == 0 {
            break;
        }
        if mark.to <= from {
            // The last one before shows where the head comes from.
            marks.clear();
        } else if span.part == Part::Transfer {
            left -= 1;
        }
        marks.push(mark);
    }
    marks
}

/// Means over the repeats of distributions, and the longest of all.
pub fn spread(of: &[&Distribution]) -> Spread {
    let count = of.len() as f64;
    let mean = |value: &dyn Fn(&Distribution) -> f64| {
        round(of.iter().map(|one| value(one)).sum::<f64>() / count, 6)
    };
    Spread {
        mean: mean(&Distribution::mean_ms),
        p50: mean(&|one| one.percentile_ms(50.0)),
        p90: mean(&|one| one.percentile_ms(90.0)),
        p95: mean(&|one| one.percentile_ms(95.0)),
        p99: mean(&|one| one.percentile_ms(99.0)),
        p999: mean(&|one| one.percentile_ms(99.9)),
        max: round(
            of.iter()
                .map(|one| one.max().as_millis_f64())
                .fold(0.0, f64::max),
            6,
        ),
    }
}

/// In what order a drive serves the commands it holds.
fn firmware(profile: &Profile) -> Firmware {
    match profile.queue.policy {
        FirmwarePolicy::Fifo => Firmware::Fifo,
        FirmwarePolicy::Sptf { .. } => Firmware::Sptf,
    }
}

/// Sums up the repeats of one run.
///
/// # Errors
///
/// If the drive cannot have the firmware that it had.
pub fn sum_up(prepared: &Prepared, cell: &Cell, made: &[Made]) -> Result<Run, Fault> {
    let set = &prepared.drives[cell.drive];
    let measured: Vec<_> = made.iter().map(|made| &made.report.measured).collect();
    let each = |value: &dyn Fn(&headtime_sim::Measured) -> f64| -> Vec<f64> {
        measured.iter().map(|measured| value(measured)).collect()
    };
    let interval = |value: &dyn Fn(&headtime_sim::Measured) -> f64| {
        let (mean, half) = report::mean_and_ci95(&each(value));
        (round(mean, 6), round(half, 6))
    };
    let sum = |value: &dyn Fn(&headtime_sim::Report) -> u64| -> u64 {
        made.iter().map(|made| value(&made.report)).sum()
    };
    // Of hundreds of repeats, each of years, it does not fit into 64 bits of nanoseconds.
    let seconds = |span: &dyn Fn(&headtime_sim::Report) -> Nanos| {
        let spans = made.iter().map(|made| span(&made.report).as_nanos());
        round(spans.map(u128::from).sum::<u128>() as f64 / 1e9, 9)
    };
    let (throughput, throughput_half) = interval(&headtime_sim::Measured::throughput_mb_s);
    let (iops, iops_half) = interval(&headtime_sim::Measured::iops);
    let (_, mean_half) = interval(&|measured| measured.response.mean_ms());
    let (_, p99_half) = interval(&|measured| measured.response.percentile_ms(99.0));
    let (fairness, _) = interval(&headtime_sim::Measured::fairness);
    let parts = |part| seconds(&|report| report.head_time.get(part));
    let firmware = firmware(&set.with_firmware(cell.firmware)?);
    let distributions = |of: fn(&headtime_sim::Measured) -> &Distribution| -> Vec<&Distribution> {
        measured.iter().map(|measured| of(measured)).collect()
    };
    let response = distributions(|measured| &measured.response);
    let [of_reads, of_writes] = kinds(&measured);
    let programs_of_first = made.first().map_or(&[][..], |made| &made.programs);
    let names = programs_of_first
        .iter()
        .map(|(called, _)| called.name.as_str());
    let names = Names::of(prepared, &names.collect::<Vec<&str>>());
    Ok(Run {
        scheduler: cell.scheduler.to_string(),
        drive: set.profile.name.clone(),
        depth: cell.depth,
        firmware: firmware.name().to_owned(),
        merge: cell.merge,
        commit_ahead: cell.commit_ahead,
        plug: prepared.scenario.plug.is_some(),
        hide_processes: prepared.scenario.hide_processes,
        repeats: made.len() as u32,
        warm_up_s: prepared.scenario.warm_up.as_secs_f64(),
        requests: sum(&|report| report.measured.requests),
        reads: sum(&|report| report.measured.reads),
        failed: sum(&|report| report.measured.failed),
        unfinished: sum(&|report| report.measured.unfinished),
        oldest_unfinished_ms: oldest(measured.iter().map(|one| one.oldest_unfinished)),
        simulated_s: seconds(&|report| report.measured.span()),
        throughput_mb_s: throughput,
        iops,
        fairness,
        response_ms: spread(&response),
        queue_ms: spread(&distributions(|measured| &measured.queue)),
        device_ms: spread(&distributions(|measured| &measured.device)),
        quiet_ms: spread(&distributions(|measured| &measured.quiet)),
        head_time: HeadTime {
            seek: parts(Part::Seek),
            switch: parts(Part::Switch),
            rotation: parts(Part::Rotation),
            transfer: parts(Part::Transfer),
            overhead: parts(Part::Overhead),
            read_ahead: parts(Part::ReadAhead),
            destage: parts(Part::Destage),
            read_modify_write: parts(Part::ReadModifyWrite),
            waiting: parts(Part::Waiting),
            held: parts(Part::Held),
            idle: parts(Part::Idle),
        },
        ci95: (made.len() > 1).then_some(Confidence {
            throughput_mb_s: throughput_half,
            iops: iops_half,
            response_mean_ms: mean_half,
            response_p99_ms: p99_half,
        }),
        engine: EngineCounts {
            issued: sum(&|report| report.engine.issued),
            merged: sum(&|report| {
                let stats = &report.engine;
                stats.merged_back + stats.merged_front + stats.fused
            }),
            held: sum(&|report| report.engine.held_overlap + report.engine.held_flush),
            idled: sum(&|report| report.engine.idled),
            chosen: sum(&|report| report.engine.chosen),
            overtaken: sum(&|report| report.engine.overtaken),
            queued_max: made
                .iter()
                .map(|made| made.report.engine.queued_max)
                .max()
                .unwrap_or(0),
        },
        waits: WaitCounts {
            streams_established: sum(&|report| report.waits.streams_established),
            streams: sum(&|report| report.waits.streams),
            waits: sum(&|report| report.waits.waits),
            waits_won: sum(&|report| report.waits.waits_won),
            waits_lost: sum(&|report| report.waits.waits_lost),
        },
        of_reads,
        of_writes,
        by_name: by_name(&names, &measured),
        per_origin: origins(prepared, &names, &measured),
        bound: bound_of(prepared, cell, made),
        curve: response[0].cumulative(),
        recorded: match &prepared.scenario.workload {
            Workload::Replay(replay) => replay.pace != Pace::ClosedPerProcess,
            Workload::Synthetic(_) | Workload::Programs(_) => false,
        },
        programs: programs(made),
        label: String::new(),
    })
}

/// The bound of all repeats, if there is one of each.
fn bound_of(prepared: &Prepared, cell: &Cell, made: &[Made]) -> Option<report::Bound> {
    let moved = |made: &Made, number: u32| {
        let outcome = made.programs.iter().map(|(_, outcome)| outcome);
        let mut of = outcome.filter(|outcome| outcome.program == number);
        of.next()
            .map_or(0, |one| one.bytes_read + one.bytes_written)
    };
    let of_program: Vec<_> = made
        .iter()
        .map(|made| move |number: u32| moved(made, number))
        .collect();
    let repeats = made.iter().zip(&of_program).map(|(made, of_program)| {
        Some(Repeat {
            known: made.bound.as_ref()?,
            of_program,
        })
    });
    let repeats: Vec<Repeat<'_>> = repeats.collect::<Option<_>>()?;
    bound::sum_up(&prepared.scenario, &cell.scheduler, &repeats)
}

/// The age of the oldest request left unfinished, in ms.
pub fn oldest(ages: impl Iterator<Item = Nanos>) -> f64 {
    round(ages.max().unwrap_or_default().as_millis_f64(), 6)
}

fn origins(
    prepared: &Prepared,
    names: &Names,
    measured: &[&headtime_sim::Measured],
) -> Vec<OriginRun> {
    let mut by_origin: BTreeMap<Origin, Vec<&headtime_sim::PerOrigin>> = BTreeMap::new();
    for origin in measured.iter().flat_map(|measured| &measured.origins) {
        by_origin.entry(origin.origin).or_default().push(origin);
    }
    let mut of_name = vec![0_u32; names.texts().len()];
    for place in by_origin.keys().filter_map(|origin| names.place(origin)) {
        of_name[place] += 1;
    }
    by_origin
        .into_iter()
        .map(|(origin, got)| {
            let rates: f64 = got.iter().map(|got| got.throughput_mb_s()).sum();
            let all: Vec<Got> = got.iter().map(|got| got.all()).collect();
            let responses: Vec<&Distribution> = all.iter().map(|got| &got.response).collect();
            OriginRun {
                process: origin.process,
                program: origin.program,
                alone: of_name.len() > 1
                    && names
                        .place(&origin)
                        .is_some_and(|place| of_name[place] == 1),
                device: usize::from(origin.export)
                    .checked_sub(1)
                    .and_then(|export| prepared.devices.get(export).cloned()),
                requests: all.iter().map(|got| got.requests).sum(),
                unfinished: got.iter().map(|got| got.unfinished).sum(),
                oldest_unfinished_ms: oldest(got.iter().map(|got| got.oldest_unfinished)),
                throughput_mb_s: round(rates / measured.len() as f64, 6),
                response_ms: spread(&responses),
            }
        })
        .collect()
}

/// What the programs achieved, averaged over the repeats.
fn programs(made: &[Made]) -> Vec<ProgramRun> {
    let count = made.len() as f64;
    let seconds = |time: Time| (time - Time::ZERO).as_secs_f64();
    let mean = |values: Vec<f64>| round(values.into_iter().sum::<f64>() / count, 9);
    // Nothing if one repeat has nothing.
    let all = |values: Vec<Option<f64>>| values.into_iter().collect::<Option<Vec<f64>>>().map(mean);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let rate = |of: &ProgramOutcome, simulated: Nanos| {
        let end = of.ended.unwrap_or(Time::ZERO + simulated);
        let span = end.saturating_since(of.started).as_secs_f64();
        let bytes = megabytes(of.bytes_read + of.bytes_written);
        if span > 0.0 { bytes / span } else { 0.0 }
    };
    let first = made.first().map_or(&[][..], |made| &made.programs);
    (0..first.len())
        .map(|index| {
            let of: Vec<&ProgramOutcome> =
                made.iter().map(|made| &made.programs[index].1).collect();
            let with = |value: &dyn Fn(&ProgramOutcome) -> f64| {
                mean(of.iter().map(|one| value(one)).collect())
            };
            let ends = of.iter().map(|one| one.ended.map(seconds));
            let ends_of_runs = made.iter().map(|made| made.report.simulated);
            let rates = of.iter().zip(ends_of_runs).map(|(one, end)| rate(one, end));
            let processes = (0..of[0].processes.len()).map(|process| {
                let with = |value: &dyn Fn(&ProcessOutcome) -> f64| {
                    mean(
                        of.iter()
                            .map(|one| value(&one.processes[process]))
                            .collect(),
                    )
                };
                let ends = of
                    .iter()
                    .map(|one| one.processes[process].ended.map(seconds));
                ProcessRun {
                    process: of[0].processes[process].process,
                    started_s: with(&|one| seconds(one.started)),
                    ended_s: all(ends.collect()),
                    read_mb: with(&|one| megabytes(one.bytes_read)),
                    written_mb: with(&|one| megabytes(one.bytes_written)),
                }
            });
            ProgramRun {
                name: first[index].0.name.clone(),
                benchmark: first[index].0.benchmark,
                entry: first[index].0.entry,
                program: of[0].program,
                started_s: with(&|one| seconds(one.started)),
                ended_s: all(ends.collect()),
                read_mb: with(&|one| megabytes(one.bytes_read)),
                written_mb: with(&|one| megabytes(one.bytes_written)),
                throughput_mb_s: round(mean(rates.collect()), 6),
                processes: processes.collect(),
            }
        })
        .collect()
}

/// Names the runs by the scheduler and whatever else differs.
fn label(runs: &mut [Run]) {
    let differ = |value: &dyn Fn(&Run) -> String| {
        runs.windows(2)
            .any(|pair| value(&pair[0]) != value(&pair[1]))
    };
    let drive = differ(&|run| run.drive.clone());
    let depth = differ(&|run| run.depth.to_string());
    let firmware = differ(&|run| run.firmware.clone());
    let merge = differ(&|run| run.merge.to_string());
    let commit = differ(&|run| run.commit_ahead.to_string());
    for run in runs {
        let mut label = run.scheduler.clone();
        if depth {
            label.push_str(&format!(" @{}", run.depth));
        }
        if firmware {
            label.push_str(&format!(" {} drive", run.firmware));
        }
        if merge && !run.merge {
            label.push_str(" unmerged");
        }
        if commit && run.commit_ahead {
            label.push_str(" ahead");
        }
        if drive {
            label = format!("{} {label}", run.drive);
        }
        run.label = label;
    }
}

/// The head time of a run per request in milliseconds, for a plot.
pub fn parts_per_request(run: &Run) -> [f64; PARTS.len()] {
    run.head_time
        .parts()
        .map(|part| part * 1e3 / run.requests.max(1) as f64)
}
