//! `headtime reproduce`

use super::context::Context;
use crate::advice;
use crate::args::{Reproduce, TextFormat};
use crate::plot::figure as picture;
use crate::progress::progress;
use headtime_lab::execute::With;
use headtime_lab::fault::Fault;
use headtime_lab::figure::judge::{self, MeasuredFigure};
use headtime_lab::figure::run::{FigureRuns, count};
use headtime_lab::figure::{Figure, RunOf, SHIPPED, Scale, output};
use headtime_lab::files::Output;
use headtime_lab::output::{TableColumn, Terminal, json, json_text, table};
use headtime_lab::report::field::{Field, Fields};
use headtime_lab::stock::Stock;
use std::fs;
use std::path::Path;

pub(super) fn reproduce(args: &Reproduce, context: &mut Context<'_>) -> Result<(), Fault> {
    let scale = match args.quick {
        true => Scale::Quick,
        false => Scale::Full,
    };
    if args.list {
        return list(scale, context);
    }
    let figures = chosen(&args.figures, scale)?;
    if let Some(name) = &args.print_scenario {
        return print_scenario(&figures, name, context);
    }
    let baseline = args.judging.known()?;
    if let Some(directory) = &args.out {
        fs::create_dir_all(directory).map_err(|error| Fault::writing(directory, &error))?;
    }
    let with = With {
        stock: &Stock::default(),
        progress: &progress(context.progress),
        stop: None,
    };
    let runs = FigureRuns::make(&figures, args.jobs, with)?;
    let mut all: Vec<MeasuredFigure> = Vec::new();
    for figure in &figures {
        let known = baseline.of(&figure.id, scale);
        let run = |of: &headtime_lab::figure::RunOf, seed| runs.get(figure, of, seed);
        let measured = judge::measure(figure, scale, run, known).map_err(Fault::Input)?;
        if let Some(directory) = &args.out {
            write_files(directory, figure, &measured, &runs)?;
        }
        all.push(measured);
    }
    show(args, &all, context)?;
    args.judging.conclude(baseline, &all, scale, context)
}

/// Requested figures, each once, in their order.
fn chosen(names: &[String], scale: Scale) -> Result<Vec<Figure>, Fault> {
    let mut figures: Vec<Figure> = Vec::new();
    for name in names {
        let found = match name.as_str() {
            "all" => SHIPPED
                .iter()
                .map(|figure| figure.figure(scale))
                .collect::<Result<Vec<Figure>, Fault>>()?,
            name => vec![Figure::open(name, scale)?],
        };
        for figure in found {
            if !figures.iter().any(|other| other.id == figure.id) {
                figures.push(figure);
            }
        }
    }
    Ok(figures)
}

fn list(scale: Scale, context: &mut Context<'_>) -> Result<(), Fault> {
    let figures = SHIPPED
        .iter()
        .map(|figure| figure.figure(scale))
        .collect::<Result<Vec<Figure>, Fault>>()?;
    let each = |show: fn(&Figure) -> String| figures.iter().map(show);
    let judged = |figure: &Figure| {
        let judged = figure.points.iter().filter(|point| point.accept.is_some());
        judged.count().to_string()
    };
    let columns = [
        TableColumn::words("figure", each(|figure| figure.id.clone())),
        TableColumn::numbers(
            "runs",
            figures
                .iter()
                .map(|figure| count(std::slice::from_ref(figure)).to_string()),
        ),
        TableColumn::numbers("points", each(|figure| figure.points.len().to_string())),
        TableColumn::numbers("judged", each(judged)),
        TableColumn::words("what it shows", each(|figure| figure.title.clone())),
    ];
    context.print(&table(&columns, context.terminal))
}

fn print_scenario(figures: &[Figure], name: &str, context: &mut Context<'_>) -> Result<(), Fault> {
    let [figure] = figures else {
        let problem = "--print-scenario: name one figure";
        return Err(Fault::Usage(problem.to_owned()));
    };
    let found = figure.variants.iter().find(|variant| variant.name == name);
    let found = found.ok_or_else(|| {
        let names: Vec<&str> = figure
            .variants
            .iter()
            .map(|other| other.name.as_str())
            .collect();
        Fault::Usage(format!(
            "--print-scenario {name}: {} has no such scenario; there are {}",
            figure.id,
            names.join(", ")
        ))
    })?;
    context.print(&found.scenario.to_portable_toml())
}

fn show(args: &Reproduce, all: &[MeasuredFigure], context: &mut Context<'_>) -> Result<(), Fault> {
    match (args.format, all) {
        (TextFormat::Table, _) => {
            let texts = all
                .iter()
                .map(|measured| output::text(measured, context.terminal));
            let mut text = texts.collect::<Vec<_>>().join("\n");
            if all.len() > 1 {
                text.push_str(&format!("\nof all figures: {}\n", judge::Tally::of(all)));
            }
            context.print(&text)
        }
        (TextFormat::Json, [one]) if args.figures != ["all"] => json(context.out, one),
        (TextFormat::Json, all) => json(context.out, &all),
    }
}

fn write_files(
    directory: &Path,
    figure: &Figure,
    measured: &MeasuredFigure,
    runs: &FigureRuns,
) -> Result<(), Fault> {
    let path = |ending: &str| directory.join(format!("{}{ending}", figure.id));
    Output::write_all_of(&path(".json"), &json_text(measured))?;
    Output::write_all_of(&path(".csv"), &output::csv(measured))?;
    let drawn = picture::draw(
        figure,
        measured,
        |run| runs.samples(figure, run),
        |run| runs.errors(figure, run),
    );
    Output::write_all_of(&path(".svg"), &drawn)?;
    let text = output::text(measured, Terminal::default());
    Output::write_all_of(
        &path(".html"),
        &advice::results(&figure.title, &drawn, &text),
    )?;
    let samples = |of, run: &RunOf| output::samples(of, runs.samples(figure, run));
    let errors = |of, run: &RunOf| output::errors(of, &runs.errors(figure, run));
    for (ending, rows) in [
        ("-requests.csv", each(figure, figure.recorded(), samples)),
        ("-errors.csv", each(figure, figure.predicted(), errors)),
    ] {
        if !rows.is_empty() {
            Output::write_all_of(&path(ending), &Fields::csv(&rows))?;
        }
    }
    Ok(())
}

/// Returns the rows of some runs. Each run has its rows once, even if several pictures show the run.
fn each<'a>(
    figure: &Figure,
    runs: impl Iterator<Item = &'a RunOf>,
    rows: impl Fn([(&'static str, Field); 2], &RunOf) -> Vec<Fields<'static>>,
) -> Vec<Fields<'static>> {
    let mut seen: Vec<&RunOf> = Vec::new();
    let mut all = Vec::new();
    for run in runs {
        if seen.contains(&run) {
            continue;
        }
        seen.push(run);
        let scenario = Field::from(&figure.variants[run.variant].name);
        let scheduler = Field::Text(run.scheduler.to_string());
        all.extend(rows(
            [("scenario", scenario), ("scheduler", scheduler)],
            run,
        ));
    }
    all
}
