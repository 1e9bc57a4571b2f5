//! `headtime sweep`

use super::columnar;
use super::compare::{as_page, is_picture_or_page};
use super::context::Context;
use super::signals::signals;
use super::sim::{open, set, set_all};
use crate::args;
use crate::args::Format;
use crate::plot::sweep::Drawing;
use crate::progress::progress;
use headtime_config::{Error as TreeError, Place, Table, Value};
use headtime_lab::execute::With;
use headtime_lab::fault::Fault;
use headtime_lab::figure::{self, Scale};
use headtime_lab::files::{Output, is_special};
use headtime_lab::output::{Terminal, json_text};
use headtime_lab::scenario::Scenario;
use headtime_lab::stock::Stock;
use headtime_lab::sweep::journal::{Journal, Kept};
use headtime_lab::sweep::plan::Making;
use headtime_lab::sweep::run::{RunOptions, run};
use headtime_lab::sweep::{Plan, Results, Sweep, doubtful, judge, output};
use headtime_linux::shown::PathShown as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// Python of the environment that is active.
const PYTHON: &str = "python3";

/// Largest number of notes to show.
const NOTES: usize = 8;

pub(super) fn sweep(args: args::SweepArgs, context: &mut Context<'_>) -> Result<(), Fault> {
    if let Some(engine) = args.on {
        return Err(elsewhere(engine, &args));
    }
    let targets = Targets::new(&args)?;
    columnar::check(targets.standard)?;
    let (sweep, table, place) = read(&args)?;
    let baseline = args.judging.known()?;
    let stock = Stock::default();
    let making = Making {
        most: args.max_runs,
        jobs: args.jobs,
        stock: &stock,
        progress: &progress(context.progress),
    };
    if sweep.invariants.is_empty() && (args.judging.check || args.judging.bless) {
        let problem =
            "--check judges invariants, and the sweep has none; write [[sweep.invariant]]";
        return Err(Fault::Usage(problem.to_owned()));
    }
    let plan = Plan::new(sweep, None, &table, &place, making)?;
    for note in plan.notes.iter().take(NOTES) {
        context.note(note);
    }
    if let Some(rest) = plan.notes.len().checked_sub(NOTES).filter(|rest| *rest > 0) {
        context.note(&format!("and {rest} more of these"));
    }
    if args.list {
        return context.print(&output::text(&plan, None, context.terminal));
    }
    if let Some(number) = args.print_scenario {
        return context.print(&one_scenario(&plan, number)?.to_portable_toml());
    }
    let drawing = match Drawing::new(&plan, &args.picture, targets.picture.is_some()) {
        // The command line does not require a picture.
        Err(fault) if args.picture.plot.is_none() && args.picture.is_plain() => {
            context.note(&format!("no picture: {fault}"));
            None
        }
        drawing => drawing?,
    };
    targets.open()?;
    let stop = signals()?;
    let stop = || stop.load(Ordering::Relaxed) > 0;
    let journal_of = targets.journal.as_deref();
    let (results, journal) = carry_out(&plan, journal_of, &args, &stock, &stop, context)?;
    // Repeated runs have a journal of their own.
    let doubtful = doubtful(&plan, &results);
    let (again, second) = match doubtful.is_empty() {
        true => (None, None),
        false => {
            let plan = Plan::new(plan.sweep.clone(), Some(doubtful), &table, &place, making)?;
            let journal = journal_of.map(|path| path.with_extension("again.partial"));
            let journal = journal.as_deref();
            let (results, journal) = carry_out(&plan, journal, &args, &stock, &stop, context)?;
            (Some((plan, results)), journal)
        }
    };
    let judged = (!plan.sweep.invariants.is_empty())
        .then(|| judge(targets.name.clone(), &plan, &results, again.as_ref()));
    let render = |format, terminal| match (format, &judged) {
        (Format::Table, None) => Ok(output::text(&plan, Some(&results), terminal).into_bytes()),
        (Format::Json, None) => Ok(output::json(&plan, &results).into_bytes()),
        (Format::Csv, None) => Ok(output::csv(&plan, &results).into_bytes()),
        (Format::Table, Some(judged)) => Ok(figure::output::text(judged, terminal).into_bytes()),
        (Format::Json, Some(judged)) => Ok(json_text(judged).into_bytes()),
        (Format::Csv, Some(judged)) => Ok(figure::output::csv(judged).into_bytes()),
        (Format::Parquet, _) => parquet(&plan, &results),
    };
    for (format, path) in &targets.files {
        Output::write_all_of(path, &render(*format, context.terminal)?)?;
    }
    if let (Some(path), Some(drawing), None) = (&targets.picture, &drawing, &judged) {
        let svg = drawing.draw(&plan, &results);
        let table = || output::text(&plan, Some(&results), Terminal::default());
        Output::write_all_of(path, &as_page(path, &targets.name, svg, table))?;
    }
    // The journals are removed last. Until the results are written, the journals hold the only copy.
    for journal in journal.into_iter().chain(second) {
        journal.remove()?;
    }
    let terminal = context.terminal.as_wide(args.wide);
    let standard = render(targets.standard, terminal)?;
    let printed = context.out.write_all(&standard);
    let printed = printed.map_err(|error| Fault::output(&error));
    let of_again = again.as_ref().map_or(0, |(_, results)| results.failed());
    match results.failed() + of_again {
        0 => printed?,
        failed => {
            return Err(Fault::Check(format!(
                "{failed} of {} combinations failed; the column `error` says why",
                plan.combinations.len()
            )));
        }
    }
    if let Some(judged) = judged.as_ref().filter(|_| args.judging.check) {
        let has = |name: &str| judged.points.iter().any(|point| point.series == name);
        if let Some(invariant) = plan.sweep.invariants.iter().find(|own| !has(&own.name)) {
            return Err(Fault::Check(format!(
                "{}: no point is judged, since no run has a value of {}",
                invariant.name, invariant.metric.name
            )));
        }
    }
    args.judging
        .conclude(baseline, judged.as_slice(), Scale::Full, context)
}

/// Becomes the Python package's `sweep`, whose exit codes are those of this program. Returns only if that fails.
fn elsewhere(engine: args::Engine, args: &args::SweepArgs) -> Fault {
    let engine = match engine {
        args::Engine::Ray => "ray",
        args::Engine::Slurm => "slurm",
    };
    let mut has_package = Command::new(PYTHON);
    has_package
        .args(["-c", "import headtime"])
        .stderr(Stdio::null());
    if !has_package.status().is_ok_and(|status| status.success()) {
        return Fault::Usage(format!(
            "--on {engine}: `{PYTHON}` in PATH has no package `headtime`; `pip install ./python` makes it, or activate its environment"
        ));
    }
    let mut command = Command::new(PYTHON);
    command.args(["-m", "headtime", "sweep", "--on", engine]);
    let max_runs = Some(args.max_runs.to_string());
    let numbers = [
        ("--seed", args.seed.map(|seed| seed.to_string())),
        ("--workers", args.workers.map(|workers| workers.to_string())),
        ("--max-runs", max_runs),
    ];
    for (option, value) in numbers {
        command.args(value.map(|value| format!("{option}={value}")));
    }
    command.args(args.vary.iter().map(|vary| format!("--vary={vary}")));
    command.args(args.set.iter().map(|set| format!("--set={set}")));
    command.args(args.restart.then_some("--restart"));
    for (option, path) in [("--out", &args.out), ("--", &args.scenario)] {
        command.arg(option).args(path);
    }
    Fault::Usage(format!("{PYTHON}: {}", command.exec()))
}

/// Results as a Parquet file.
fn parquet(plan: &Plan, results: &Results) -> Result<Vec<u8>, Fault> {
    columnar::file_of(output::rows(plan, results), None, &plan.hash)
}

/// Executes the runs of a plan that are not in its journal.
fn carry_out(
    plan: &Plan,
    path: Option<&Path>,
    args: &args::SweepArgs,
    stock: &Stock,
    stop: &(dyn Fn() -> bool + Sync),
    context: &mut Context<'_>,
) -> Result<(Results, Option<Journal>), Fault> {
    let (mut journal, kept) = open_journal(path, plan, args.restart, context)?;
    let has = kept.outcomes.len();
    let running = RunOptions {
        jobs: args.jobs,
        with: With {
            stock,
            progress: &progress(context.progress),
            stop: Some(stop),
        },
        kept: kept.outcomes,
        journal: journal.as_mut(),
    };
    match run(plan, running) {
        Ok(results) => Ok((results, journal)),
        Err(Fault::Interrupted) => Err(stopped(plan, journal.as_ref(), has)),
        Err(fault) => Err(fault),
    }
}

/// Reads the sweep, the scenario without the sweep, and the place of the scenario's text.
fn read(args: &args::SweepArgs) -> Result<(Sweep, Table, Place), Fault> {
    let (mut table, place) = match &args.scenario {
        None => (Scenario::default_table(), Place::BuiltIn),
        Some(path) => open(path)?,
    };
    set_all(&mut table, &args.set)?;
    if let Some(seed) = args.seed {
        set(&mut table, "--seed", "seed", Value::Integer(seed as i64));
    }
    let sweep = Sweep::take(&mut table, &args.vary)?.ok_or_else(|| TreeError {
        place: place.clone(),
        key: "sweep".to_owned(),
        problem: "missing; give [sweep] in the scenario, or --vary KEY=LIST".to_owned(),
    })?;
    let settings = args.set.iter().filter_map(|setting| {
        let (key, _) = setting.split_once('=')?;
        Some((key.trim(), format!("--set {setting}")))
    });
    let seed = args.seed.map(|seed| ("seed", format!("--seed {seed}")));
    for (key, option) in settings.chain(seed) {
        if let Some((swept, at)) = sweep.key_at(&table, key) {
            return Err(Fault::Usage(format!(
                "{option}: {swept} is swept ({at}); --vary {swept}=.. gives it other values"
            )));
        }
    }
    Ok((sweep, table, place))
}

fn one_scenario(plan: &Plan, number: u64) -> Result<&Scenario, Fault> {
    let count = plan.combinations.len();
    let at = usize::try_from(number - 1).ok().filter(|at| *at < count);
    let at = at.ok_or_else(|| {
        Fault::Usage(format!(
            "--print-scenario {number}: there are 1 to {count}; --list shows them"
        ))
    })?;
    let combination = &plan.combinations[at];
    let scenario = combination.scenario.as_ref();
    scenario.ok_or_else(|| {
        let error = combination.error.as_deref().unwrap_or_default();
        Fault::Input(format!("{}: {error}", plan.name(at)))
    })
}

/// Fault of a sweep that was stopped early.
fn stopped(plan: &Plan, journal: Option<&Journal>, had: usize) -> Fault {
    let all = plan.combinations.len();
    Fault::Stopped(match journal {
        Some(journal) => format!(
            "ended early; {} of {all} combinations are kept in {}, and the same command goes on there",
            had + journal.added(),
            journal.path().shown()
        ),
        None => "ended early; nothing is kept, as there is no --out".to_owned(),
    })
}

/// Files and formats of the output.
struct Targets {
    /// Name of the scenario's file, without the extension.
    name: String,
    /// Format on standard output.
    standard: Format,
    /// Files of results, by format.
    files: Vec<(Format, PathBuf)>,
    picture: Option<PathBuf>,
    journal: Option<PathBuf>,
    /// Directory to create.
    directory: Option<PathBuf>,
}

impl Targets {
    fn new(args: &args::SweepArgs) -> Result<Targets, Fault> {
        if let Some(path) = &args.picture.plot {
            is_picture_or_page(path)?;
        }
        let stem = args.scenario.as_ref().and_then(|path| path.file_stem());
        let name = stem
            .map_or("sweep".into(), |stem| stem.to_string_lossy())
            .into_owned();
        let mut targets = Targets {
            name,
            standard: args.format.unwrap_or_default(),
            files: Vec::new(),
            picture: args.picture.plot.clone(),
            journal: None,
            directory: None,
        };
        let Some(out) = args.out.as_ref().filter(|out| out.as_os_str() != "-") else {
            return Ok(targets);
        };
        if args.format == Some(Format::Table) {
            let problem =
                "--format table is for the standard output; with --out it is csv, json or parquet";
            return Err(Fault::Usage(problem.to_owned()));
        }
        targets.standard = Format::Table;
        if out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let within = |ending: &str| out.join(format!("{}.{ending}", targets.name));
            let wanted = |format| args.format.is_none_or(|given| given == format);
            let all = [(Format::Csv, "csv"), (Format::Json, "json")];
            let asked = [(Format::Parquet, "parquet")];
            let asked = asked
                .into_iter()
                .filter(|_| args.format == Some(Format::Parquet));
            let all = all.into_iter().filter(|(format, _)| wanted(*format));
            targets.files = all
                .chain(asked)
                .map(|(format, ending)| (format, within(ending)))
                .collect();
            targets.picture = targets.picture.or_else(|| Some(within("svg")));
            targets.journal = Some(within("partial"));
            targets.directory = Some(out.clone());
        } else {
            let ending = out.extension().and_then(|ending| ending.to_str());
            let by_name = match ending.map(str::to_ascii_lowercase).as_deref() {
                Some("csv") => Some(Format::Csv),
                Some("json") => Some(Format::Json),
                Some("parquet") => Some(Format::Parquet),
                _ => None,
            };
            let format = args.format.or(by_name).ok_or_else(|| {
                Fault::Usage(format!(
                    "--out {}: in which format? Name it .csv, .json or .parquet, or give --format; \
                     a directory that is to be made ends in a slash",
                    out.shown()
                ))
            })?;
            targets.files.push((format, out.clone()));
            // A pipe or a device cannot have a journal. So a sweep to a pipe or a device cannot be resumed.
            targets.journal = (!is_special(out)).then(|| Journal::beside(out));
        }
        if targets
            .files
            .iter()
            .any(|(format, _)| *format == Format::Parquet)
        {
            columnar::can_write()?;
        }
        Ok(targets)
    }

    /// Checks before a long run that the results can be written.
    fn open(&self) -> Result<(), Fault> {
        if let Some(directory) = &self.directory {
            fs::create_dir_all(directory).map_err(|error| Fault::writing(directory, &error))?;
        }
        let files = self.files.iter().map(|(_, path)| path);
        let mut paths = files.chain(&self.picture);
        // An output that is created and dropped leaves no file.
        paths.try_for_each(|path| Output::create(path).map(drop))
    }
}

/// Opens the journal of a plan, and reads its results.
fn open_journal(
    path: Option<&Path>,
    plan: &Plan,
    restart: bool,
    context: &mut Context<'_>,
) -> Result<(Option<Journal>, Kept), Fault> {
    let Some(path) = path else {
        return Ok((None, Kept::default()));
    };
    let (journal, kept) = Journal::open(path, plan, restart)?;
    let name = path.shown();
    if kept.damaged > 0 {
        let what = match kept.damaged {
            1 => "1 line of it is damaged, and is made again".to_owned(),
            count => format!("{count} lines of it are damaged, and are made again"),
        };
        context.note(&format!("{name}: {what}"));
    }
    if !kept.outcomes.is_empty() {
        context.note(&format!(
            "{name}: goes on there, with {} of {} combinations done",
            kept.outcomes.len(),
            plan.combinations.len()
        ));
    }
    Ok((Some(journal), kept))
}
