//! Shared part of `sim run` and `trace replay`: runs a scenario and shows the results.

use super::columnar;
use super::context::Context;
use crate::advice;
use crate::args::{Format, Level, OutputOptions};
use crate::plot;
use crate::plot::comparison::{self, Comparison, Drawn};
use crate::progress::progress;
use headtime_config::Table;
use headtime_lab::execute::{Executed, Execution, Keep, Mark, With, execute, fits};
use headtime_lab::fault::Fault;
use headtime_lab::files::{Output, is_special};
use headtime_lab::output::{Terminal, json_text};
use headtime_lab::prepare::{Prepared, prepare};
use headtime_lab::report::field::Field;
use headtime_lab::report::{Host, Report, round, text};
use headtime_lab::scenario::Scenario;
use headtime_lab::stock::Stock;
use headtime_linux::clock::Clock;
use headtime_linux::shown::PathShown as _;
use headtime_units::Nanos;
use std::io::Write;
use std::path::Path;

/// Number of transfers that the first panels of a plot show by default.
const TRANSFERS: usize = 150;

/// Files that are written of a single run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Files<'a> {
    pub log: Option<&'a Path>,
    pub requests: Option<&'a Path>,
}

/// Runs a scenario and writes its results. Errors take their places in the text from `table`.
pub(super) fn compare(
    scenario: Scenario,
    table: &Table,
    options: &OutputOptions,
    files: Files<'_>,
    context: &mut Context<'_>,
) -> Result<(), Fault> {
    if let Some(duration) = scenario.run.duration {
        check_window(options, duration)?;
    }
    // Files are opened first, since a long run whose results cannot be written is wasted.
    let plot = options.plot.as_deref();
    plot.map_or(Ok(()), is_picture_or_page)?;
    let mut picture = plot.map(Output::create).transpose()?;
    let log = files.log.map(Output::create).transpose()?;
    let requests = files.requests.map(Output::create).transpose()?;
    let stock = Stock::default();
    let prepared = prepare(scenario, &stock)?;
    for note in &prepared.notes {
        context.note(note);
    }
    fits(&prepared, table)?;
    let marks = picture.as_ref().map(|_| match options.plot_window {
        Some(window) => Keep::Window(window.from, window.to),
        None => Keep::Transfers(TRANSFERS),
    });
    let how = Execution {
        jobs: options.jobs,
        marks: marks.map(|keep| (keep, plot::DRAWN_MAX)),
        log,
        requests,
        record: false,
    };
    if options.level.is_some() && !matches!(options.format, Format::Csv | Format::Parquet) {
        let problem = "--level is for --format csv or parquet; JSON has all levels, and a table shows runs and groups";
        return Err(Fault::Usage(problem.to_owned()));
    }
    columnar::check(options.format)?;
    let progress = progress(context.progress);
    let clock = Clock::start();
    let with = With {
        stock: &stock,
        progress: &progress,
        stop: None,
    };
    let outcome = execute(&prepared, how, with)?;
    check_window(options, outcome.longest)?;
    let host = (!options.reproducible).then(|| {
        let wall = clock.now().as_secs_f64();
        Host {
            wall_s: round(wall, 6),
            requests_per_wall_s: (outcome.simulated as f64 / wall).round(),
        }
    });
    let Executed { runs, marks, .. } = outcome;
    if let Some(note) = prepared.overload(&runs) {
        context.note(&note);
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        seed: prepared.scenario.seed,
        scenario_hash: prepared.hash.clone(),
        title: prepared.scenario.title.clone(),
        host,
        runs,
    };
    if let Some(output) = &mut picture {
        let svg = comparison::draw(&draw(&prepared, &report, marks, options));
        let table = || text::text(&report, Terminal::default());
        let title = report.title.as_deref().unwrap_or("Headtime");
        let text = as_page(output.path(), title, svg, table);
        if let Some(left_out) = left_out(&report.runs) {
            context.note(&format!("{}: {left_out}", output.path().shown()));
        }
        output
            .write_all(text.as_bytes())
            .map_err(|error| Fault::writing(output.path(), &error))?;
    }
    let bytes = match options.format {
        Format::Json => json_text(&report).into_bytes(),
        Format::Table => text::text(&report, context.terminal.as_wide(options.wide)).into_bytes(),
        Format::Csv => text::csv(&report, options.level.map(Level::of)).into_bytes(),
        Format::Parquet => {
            let level = options.level.unwrap_or(Level::Run).of();
            let rows: Vec<Vec<Field>> = text::rows(&report, Some(level)).collect();
            let seed = Some(report.seed);
            columnar::file(&text::headings(), &rows, seed, &report.scenario_hash)?
        }
    };
    let written = context.out.write_all(&bytes);
    written.map_err(|error| Fault::output(&error))?;
    picture.map_or(Ok(()), Output::finish)
}

/// Note of a picture about the runs that the picture does not show.
fn left_out(runs: &[headtime_lab::report::Run]) -> Option<String> {
    let (shown, all) = (plot::DRAWN_MAX, runs.len());
    (all > shown).then(|| format!("shows the first {shown} of {all} runs"))
}

/// Refuses a time window that starts after the end of all runs.
fn check_window(options: &OutputOptions, longest: Nanos) -> Result<(), Fault> {
    match options.plot_window {
        Some(window) if window.from >= longest.as_secs_f64() => Err(Fault::Usage(format!(
            "--plot-window {window}: nothing is simulated then; allowed is what begins within 0s..{longest}"
        ))),
        _ => Ok(()),
    }
}

/// Starts the file of a picture.
pub(super) fn picture_file(path: &Path) -> Result<Output, Fault> {
    is_picture(path)?;
    Output::create(path)
}

/// True if a file is a page, by its name.
fn is_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("html"))
}

/// The picture, or a page with the picture and a table if the file is named so.
pub(super) fn as_page(
    path: &Path,
    title: &str,
    svg: String,
    table: impl FnOnce() -> String,
) -> String {
    match is_page(path) {
        true => advice::results(title, &svg, &table()),
        false => svg,
    }
}

/// Refuses a name that fits neither a picture nor a page.
pub(super) fn is_picture_or_page(path: &Path) -> Result<(), Fault> {
    match is_page(path) {
        true => Ok(()),
        false => is_picture(path).map_err(|fault| {
            Fault::Usage(format!("{fault}, or in .html for a page with the table"))
        }),
    }
}

/// Refuses a name that does not fit a picture.
pub(super) fn is_picture(path: &Path) -> Result<(), Fault> {
    let is_svg = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("svg"));
    // A device such as /dev/stdout takes any format.
    if !is_svg && !is_special(path) {
        return Err(Fault::Usage(format!(
            "--plot {}: pictures are SVG; allowed is a name that ends in .svg",
            path.shown()
        )));
    }
    Ok(())
}

fn draw<'a>(
    prepared: &Prepared,
    report: &'a Report,
    marks: Vec<Vec<Mark>>,
    options: &OutputOptions,
) -> Comparison<'a> {
    let runs = report.runs.iter().take(plot::DRAWN_MAX).zip(marks);
    let runs: Vec<Drawn<'_>> = runs.map(|(run, marks)| Drawn { run, marks }).collect();
    let warm_up = prepared.scenario.run.warm_up.as_secs_f64();
    let window = match options.plot_window {
        Some(window) => (window.from, window.to),
        None => (warm_up, comparison::window_end(warm_up, TRANSFERS, &runs)),
    };
    let bytes = prepared.drives.iter().map(|set| {
        let geometry = &set.profile.geometry;
        geometry.capacity.get() as f64 * f64::from(geometry.sector_bytes)
    });
    Comparison {
        title: report
            .title
            .clone()
            .unwrap_or_else(|| "Headtime".to_owned()),
        subtitle: match left_out(&report.runs) {
            Some(left_out) => format!("{}\n{left_out}", subtitle(report)),
            None => subtitle(report),
        },
        window,
        capacity: bytes.fold(0.0, f64::max),
        runs,
    }
}

/// Properties that all runs share.
fn subtitle(report: &Report) -> String {
    let Some(first) = report.runs.first() else {
        return String::new();
    };
    let same = |value: &dyn Fn(&headtime_lab::report::Run) -> String| {
        let value_of_first = value(first);
        report
            .runs
            .iter()
            .all(|run| value(run) == value_of_first)
            .then_some(value_of_first)
    };
    let texts = [
        (!first.members.is_empty()).then(|| {
            let disks = first.members.len();
            format!("{disks} disks in an array; the head is that of the first")
        }),
        same(&|run| format!("drive {}", run.drive)),
        same(&|run| format!("firmware {}", run.header.text("firmware"))),
        same(&|run| format!("depth {}", run.header.text("depth"))),
        Some(format!("seed {}", report.seed)),
        Some(format!("scenario {}", report.scenario_hash)),
        Some(format!("headtime {}", report.version)),
    ];
    texts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
