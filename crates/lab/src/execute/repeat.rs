//! Simulates one repeat of one run.

use super::bound::{self, KnownBound};
use super::goals::Goals;
use super::kept::{self, Keep, Mark, Sample};
use super::load::{Called, builders, least, load};
use super::lone::GoalOf;
use super::queue::{queue, setup};
use super::requests::Requests;
use super::seed;
use crate::fault::Fault;
use crate::files::Output;
use crate::prepare::{DriveSet, Prepared, scratch_fault};
use crate::progress::Progress;
use crate::scenario::{Cell, Workload, array};
use crate::stock::Stock;
use headtime_bound::{Array, Machine};
use headtime_disk::Model;
use headtime_disk::profile::Reference;
use headtime_engine::{Command, Map as _, Member, Seen, SharedCell};
use headtime_gaps::{ClientWaits, Freeblock, FreeblockStats, Steps, Verdict};
use headtime_host::ProgramOutcome;
use headtime_sim::RunError;
use headtime_stack::{Firmware, LogSettings};
use headtime_units::Time;
use std::io::{self, Write};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Data and controls that all runs share, on any thread.
#[derive(Clone, Copy)]
pub struct With<'a> {
    /// SharedCell stock.
    pub stock: &'a Stock,
    /// Progress of the runs.
    pub progress: &'a Progress,
    /// Asked now and then during a run. True ends the run with [`Fault::Interrupted`].
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// Recordings to make of a run, beside its figures.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    /// The head's movements.
    pub marks: Option<Keep>,
    /// True to record when each request came, was issued and was done.
    pub record: bool,
    /// The log.
    pub log: Option<&'a mut Output>,
    /// A row for each request.
    pub requests: Option<&'a mut Output>,
}

/// The result of one repeat of one run.
#[derive(Debug)]
pub struct MadeRepeat {
    pub(super) report: headtime_sim::Report,
    pub(super) marks: Vec<Mark>,
    pub(super) samples: Vec<Sample>,
    pub(super) programs: Vec<(Called, ProgramOutcome)>,
    /// Programs with goals.
    pub(super) goals: Vec<GoalOf>,
    pub(super) bound: Option<KnownBound>,
    pub(super) freeblock: Option<Scanned>,
    pub(super) promise: Option<KeptPromise>,
}

/// Outcome of a scan's promises: client waits, and changes of the verdict.
#[derive(Debug)]
pub(super) struct KeptPromise {
    pub waits: ClientWaits,
    pub changes: Vec<(Time, Verdict)>,
}

impl KeptPromise {
    fn of(scan: &Freeblock<Arc<Model>>) -> Option<KeptPromise> {
        let (waits, changes) = scan.promise()?;
        let changes = changes.to_vec();
        Some(KeptPromise { waits, changes })
    }
}

/// Results of the scans in the background, over all disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanned {
    pub stats: FreeblockStats,
    pub steps: Steps,
    /// Time at which each tenth was first read, on the slowest disk.
    pub tenths: [Time; 10],
    /// Blocks that were not read; `unreadable` counts blocks that cannot be read.
    pub left: u64,
    pub unreadable: u64,
    /// Blocks in all.
    pub blocks: u64,
    pub block_bytes: u64,
}

impl Scanned {
    fn of(scan: &Freeblock<Arc<Model>>, sector_bytes: u32) -> Scanned {
        Scanned {
            stats: scan.stats(),
            steps: *scan.steps(),
            tenths: scan.tenths(),
            left: scan.wanted().left(),
            unreadable: scan.unreadable().count() as u64,
            blocks: scan.wanted_at_first(),
            block_bytes: scan.wanted().block() * u64::from(sector_bytes),
        }
    }

    /// Results of this scan and of another disk's scan together.
    fn with(mut self, other: Scanned) -> Scanned {
        self.stats += other.stats;
        self.steps += other.steps;
        for (tenth, other) in self.tenths.iter_mut().zip(other.tenths) {
            *tenth = other.max(*tenth);
        }
        self.left += other.left;
        self.unreadable += other.unreadable;
        self.blocks += other.blocks;
        self
    }
}

/// Makes one repeat of one run of a scenario.
///
/// # Errors
///
/// If the run is impossible or measures nothing; [`Fault::Interrupted`] if it was given up.
pub fn make(
    prepared: &Prepared,
    cell: &Cell,
    repeat: u32,
    what: Wanted<'_>,
    with: With<'_>,
) -> Result<MadeRepeat, Fault> {
    let With {
        stock,
        progress,
        stop,
    } = with;
    let Wanted {
        marks: keep,
        record,
        mut log,
        requests,
    } = what;
    let scenario = &prepared.scenario;
    let set = &prepared.drives[cell.drive];
    let profile = &set.profile;
    let seed = seed::of_repeat(scenario.seed, repeat);
    let sector_bytes = profile.geometry.sector_bytes;
    let config = cell.engine.config(sector_bytes);
    let scans = scans(prepared, set)?;
    if set.map().is_some() && (record || requests.is_some()) {
        let key = match scenario.array {
            Some(_) => "array",
            None => "cluster",
        };
        let problem =
            format!("single requests of several disks are not recorded; leave out [{key}]");
        return Err(Fault::Input(problem));
    }
    let (mut load, goal) = load(prepared, cell, seed, stock)?;
    let goals = Goals::of(prepared, cell, load.names(), stock)?;
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
    let mut write = |piece: &str| {
        if let Some(output) = log.as_deref_mut()
            && log_error.is_none()
            && let Err(error) = output.write_all(piece.as_bytes())
        {
            log_error = Some(Fault::writing(output.path(), &error));
        }
    };
    let mut samples = Vec::new();
    let wanted = requests.is_some();
    let rows_path = requests.as_ref().map(|output| output.path().to_owned());
    let failed =
        |error: &io::Error| Fault::writing(rows_path.as_deref().unwrap_or(Path::new("-")), error);
    let mut rows = requests
        .map(Requests::new)
        .transpose()
        .map_err(|error| failed(&error))?;
    let mut rows_error = None;
    let mut sample = |now, _: Member, seen: Seen<'_>| {
        if let Some(rows) = &mut rows
            && rows_error.is_none()
            && let Err(error) = rows.seen(now, seen)
        {
            rows_error = Some(failed(&error));
        }
        if let Seen::Command(Command::Finish(done)) = seen
            && record
        {
            samples.push(Sample::of(now, done));
        }
    };
    let mut setup = setup(prepared, cell, seed, load.source())?;
    if let Some(goals) = &goals {
        let streams = setup.conductor.take();
        setup.conductor = goals.conductor(prepared, cell, streams)?;
        setup.orders = goals.orders(cell)?;
    }
    for (station, scan) in setup.stations.iter_mut().zip(&scans) {
        station.background = Some(Box::new(scan.clone()));
    }
    let spec = scenario.freeblock.as_ref();
    setup.until_jobs = spec.is_some_and(|spec| spec.to_end);
    setup.tell_ahead = cell.scheduler.needs().foresight;
    setup.warm_up = scenario.run.warm_up;
    setup.limit = scenario.run.duration;
    setup.record_spans = keep.is_some();
    if logs {
        setup.log_settings = log_settings(prepared, cell, seed);
    }
    setup.log = logs.then_some(&mut write);
    setup.observer = (record || wanted).then_some(&mut sample);
    setup.progress = (progress.is_shown() || stop.is_some()).then_some(&mut note);
    let mut report = headtime_sim::run(setup).map_err(|error| match error {
        RunError::BrokenOff { .. } => Fault::Interrupted,
        error => Fault::Input(format!("{} on {}: {error}", cell.scheduler, profile.name)),
    })?;
    if let Some(fault) = log_error.or(rows_error) {
        return Err(fault);
    }
    scratch_fault(set.script.as_ref().and_then(|script| script.failure()))?;
    if report.measured.requests == 0 {
        let (warm_up, simulated) = (scenario.run.warm_up, report.simulated);
        let problem = match warm_up.is_zero() {
            true => "no request finished within the time; give a longer one (run.duration, or until of the processes; \
                     runtime in a job file of fio)"
                .to_owned(),
            false => format!(
                "no request finished after the warm-up of {warm_up}; simulated were {simulated}"
            ),
        };
        return Err(Fault::Input(format!(
            "{} on {}: {problem}",
            cell.scheduler, profile.name
        )));
    }
    let marks = keep.map_or_else(Vec::new, |keep| {
        kept::marks(
            &report.spans[0],
            keep,
            scenario.run.warm_up.as_secs_f64(),
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
        let bus = scenario.array.as_ref().and_then(|array| array.bus);
        let bus = bus.and_then(|bus| NonZero::new(bus.0));
        let array = set.striped.as_ref().map(|striped| {
            let (members, map) = (striped.members(), striped.clone());
            Array::new(members, bus, move |extent| {
                let (member, part) = map.first(extent);
                (member.0, part)
            })
        });
        let machine = Machine {
            profile,
            array: array.as_ref(),
            layout: &set.layout,
            depth: cell.engine.depth,
            merge: cell.engine.merge.then_some(config.merge_sectors_max),
        };
        let key = bound::key(scenario, set, cell, seed);
        bound = stock.bound(key, || least(prepared, cell, seed, stock, &machine))?;
    }
    let bound = bound.map(|bound| KnownBound { bound, took });
    debug_assert!(
        bound
            .as_ref()
            .is_none_or(|known| known.bound.time() <= took),
        "{bound:?}"
    );
    task.done();
    Ok(MadeRepeat {
        report,
        marks,
        samples,
        programs,
        goals: goals.map_or_else(Vec::new, |goals| goals.goals),
        bound,
        promise: (scans.first()).and_then(|scan| KeptPromise::of(&scan.lock())),
        freeblock: (scans.iter())
            .map(|scan| Scanned::of(&scan.lock(), sector_bytes))
            .reduce(Scanned::with),
    })
}

/// A scan that can be inspected after the run.
type SharedScan = SharedCell<Freeblock<Arc<Model>>>;

/// The scan of each disk, if the scenario has scans.
fn scans(prepared: &Prepared, set: &DriveSet) -> Result<Vec<SharedScan>, Fault> {
    let Some(spec) = &prepared.scenario.freeblock else {
        return Ok(Vec::new());
    };
    let geometry = &set.profile.geometry;
    let fault = |error| Fault::Input(format!("freeblock.{error}"));
    let scan = |_| {
        let scan = spec.build(&set.known, geometry.capacity, geometry.sector_bytes);
        Ok(SharedCell::new(scan.map_err(fault)?))
    };
    let disks = set.map().map_or(1, |map| map.members());
    (0..disks).map(scan).collect()
}

/// Settings of a log, for rebuilding the engine in a replay and for finding the run.
fn log_settings(prepared: &Prepared, cell: &Cell, seed: u64) -> Vec<(String, String)> {
    let set = &prepared.drives[cell.drive];
    let sector_bytes = set.profile.geometry.sector_bytes;
    let scheduler = cell.scheduler.to_string();
    let mut settings = LogSettings::new(&scheduler, cell.engine.clone(), sector_bytes);
    // The needs of all schedulers of the scenario count, so that the log does not depend on the scheduler of this run.
    let needs = prepared.scenario.needs();
    if needs.curve {
        settings.curve = set.known.curve().as_deref().cloned();
    }
    if needs.positioning {
        let belief = set.known.belief().map(Reference::of);
        settings.belief = belief.map(|belief| belief.to_string());
    }
    let others: [(&str, &dyn ToString); 6] = [
        ("version", &env!("CARGO_PKG_VERSION")),
        ("scenario_hash", &prepared.hash),
        ("seed", &seed),
        ("drive", &set.profile.name),
        ("firmware", &Firmware::of(&set.profile).name()),
        (
            "noise",
            &prepared.scenario.drives[cell.drive].simulated.noise,
        ),
    ];
    settings.others = others
        .map(|(key, value)| (key.to_owned(), value.to_string()))
        .to_vec();
    if let Some(array) = array(&prepared.scenario, cell) {
        settings.others.extend(array.log_settings());
    }
    settings.to_settings()
}

/// Checks that a run can start, without starting it.
///
/// # Errors
///
/// If the drive cannot have the firmware, the scheduler cannot be built, or the load does not fit on
/// the drive.
pub fn check(prepared: &Prepared, cell: &Cell, stock: &Stock) -> Result<(), Fault> {
    let set = &prepared.drives[cell.drive];
    queue(set, cell)?;
    if let Some(spec) = &prepared.scenario.freeblock {
        let geometry = &set.profile.geometry;
        let checked = spec.check(&set.known, geometry.capacity, geometry.sector_bytes);
        checked.map_err(|error| Fault::Input(format!("freeblock.{error}")))?;
    }
    match &prepared.scenario.workload {
        Workload::Programs(programs) => {
            builders(programs, set.disk(), prepared.scenario.seed, stock).map(|_| ())
        }
        Workload::Synthetic(_) | Workload::Replay(_) => {
            load(prepared, cell, prepared.scenario.seed, stock).map(|_| ())
        }
    }
}
