//! `headtime qos`

use super::context::Context;
use super::coordinate::coordinate;
use super::sim::{open, set_all};
use crate::args::{QosExplain, QosPlan, QosProfile, QosTrain, QosVerb};
use headtime_lab::execute::{self, Demanded};
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use headtime_lab::output::{TableColumn, table};
use headtime_lab::prepare::{Prepared, prepare};
use headtime_lab::scenario::Scenario;
use headtime_lab::stock::Stock;
use headtime_linux::shown::PathShown as _;
use headtime_qos::{
    CartOptions, Errors, Feature, Model, Node, Profile, Stop, TextError, TrainError, TrainOptions,
    Tree, Vector,
};
use headtime_units::{Bytes, nearest};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(super) fn qos(verb: &QosVerb, context: &mut Context<'_>) -> Result<(), Fault> {
    match verb {
        QosVerb::Train(args) => train(args, context),
        QosVerb::Explain(args) => explain(args, context),
        QosVerb::Profile(args) => profile(args, context),
        QosVerb::Plan(args) => plan(args, context),
        QosVerb::Coordinate(args) => coordinate(args),
    }
}

/// Reads a scenario, and the files that the scenario names.
fn prepared(path: &Path, set: &[String], stock: &Stock) -> Result<Prepared, Fault> {
    let (mut table, place) = open(path)?;
    set_all(&mut table, set)?;
    let scenario = Scenario::from_table(&table, place).map_err(Fault::from)?;
    prepare(scenario, stock)
}

fn profile(args: &QosProfile, context: &mut Context<'_>) -> Result<(), Fault> {
    let stock = Stock::default();
    let prepared = prepared(&args.scenario, &args.set, &stock)?;
    let profile = execute::profile(&prepared, &args.program, &stock)?;
    Output::write_all_of(&args.out, &profile.to_text())?;
    let (run, io) = (profile.run.as_secs_f64(), profile.io.as_secs_f64());
    context.print(&format!(
        "{}: {run:.1} s alone, of which {io:.1} s with I/O; {} epochs of servers\n",
        args.program,
        profile.rows.len()
    ))
}

fn plan(args: &QosPlan, context: &mut Context<'_>) -> Result<(), Fault> {
    let stock = Stock::default();
    let prepared = prepared(&args.scenario, &args.set, &stock)?;
    let (demands, promised) = execute::demands(&prepared, &stock)?;
    let numbers = |heading: &str, value: &dyn Fn(&Demanded) -> f64| {
        let cells = demands.iter().map(|one| format!("{:.1}", value(one)));
        TableColumn::numbers(heading, cells)
    };
    let columns = [
        TableColumn::words("program", demands.iter().map(|one| one.name.clone())),
        numbers("goal s", &|one| one.run_time.as_secs_f64()),
        numbers("alone s", &|one| one.profile.run.as_secs_f64()),
        numbers("I/O alone s", &|one| one.profile.io.as_secs_f64()),
        numbers("least s", &|one| one.profile.least().as_secs_f64()),
        numbers("demands %", &|one| one.share * 100.0),
    ];
    context.print(&table(&columns, context.terminal))?;
    let sum = demands.iter().map(|one| one.share).sum::<f64>() * 100.0;
    let promised = promised * 100.0;
    let further = match promised > 0.0 {
        true => format!(", and promises of p99 take {promised:.1} %"),
        false => String::new(),
    };
    let verdict = match sum + promised {
        sum if sum > 100.0 && promised > 0.0 => "the goals give way",
        sum if sum > 100.0 => "not all goals can be kept",
        sum if sum > 90.0 => "too little may be left for switches between programs",
        _ => "the goals can be kept",
    };
    context.print(&format!(
        "\nWhile all run, the goals demand {sum:.1} % of the servers' time{further}: {verdict}.\n"
    ))
}

/// Reads a profile or a tree.
fn read<T>(path: &Path, from_text: fn(&str) -> Result<T, TextError>) -> Result<T, Fault> {
    let content = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
    from_text(&String::from_utf8_lossy(&content))
        .map_err(|error| Fault::Input(format!("{}: {error}", path.shown())))
}

fn train(args: &QosTrain, context: &mut Context<'_>) -> Result<(), Fault> {
    let profiles = args
        .profiles
        .iter()
        .map(|path| read(path, Profile::from_text));
    let profiles = profiles.collect::<Result<Vec<Profile>, Fault>>()?;
    let synthetic = args.synthetic.as_deref();
    let synthetic = synthetic
        .map(|path| read(path, Profile::from_text))
        .transpose()?;
    let default = CartOptions::default();
    let options = TrainOptions {
        cart: CartOptions {
            features: args.features,
            stop: args.until_error.map_or(default.stop, Stop::Error),
            ..default
        },
        segment: args.segment,
        enough: args.enough,
    };
    let trained = Model::train(&profiles, synthetic.as_ref(), &options).map_err(|error| {
        let path = match &error {
            TrainError::Differs { nth, .. } => &args.profiles[nth - 1],
            TrainError::Synthetic(_) => args.synthetic.as_ref().unwrap_or(&args.profiles[0]),
            _ => &args.profiles[0],
        };
        Fault::Input(format!("{}: {error}", path.shown()))
    })?;
    if trained.untimed > 0 {
        let count = trained.untimed;
        context.note(&format!(
            "{count} epochs of servers have no service time, and are left out"
        ));
    }
    if !trained.is_met {
        context.warn("no tree has a mean error below --until-error; the tree with the least error is written");
    }
    Output::write_all_of(&args.out, &trained.model.to_text())?;
    let mut rows = vec![
        ("servers", &trained.servers),
        ("sum of the servers", &trained.sums),
    ];
    if synthetic.is_some() {
        rows.push(("training workload", &trained.synthetic));
    }
    let leaves = trained.model.tree().leaves();
    context.print(&format!("{leaves} leaves; errors in cross-validation:\n"))?;
    context.print(&table(&quantiles(&rows), context.terminal))
}

/// Columns of a table with quantiles of errors, a row for each kind of error.
fn quantiles(rows: &[(&str, &Errors)]) -> Vec<TableColumn> {
    let words = rows.iter().map(|(name, _)| (*name).to_owned());
    let counts = rows.iter().map(|(_, errors)| errors.count().to_string());
    let mut columns = vec![
        TableColumn::words("throughput of", words),
        TableColumn::numbers("epochs", counts),
    ];
    for percent in [50, 80, 90] {
        let cells = rows.iter().map(|(_, errors)| {
            let error = errors.quantile(f64::from(percent) / 100.0);
            error.map_or(String::new(), |error| format!("{:.1}", 100.0 * error))
        });
        let heading = format!("{percent} % within, %");
        columns.push(TableColumn::numbers(&heading, cells));
    }
    columns
}

fn explain(args: &QosExplain, context: &mut Context<'_>) -> Result<(), Fault> {
    let model = read(&args.tree, Model::from_text)?;
    let tree = model.tree();
    if let Some(features) = &args.features {
        let vector = vector(features, tree)
            .map_err(|problem| Fault::Usage(format!("--features {features}: {problem}")))?;
        return context.print(&path(tree, &vector));
    }
    let Some(file) = &args.profile else {
        return Ok(());
    };
    let profile = read(file, Profile::from_text)?;
    let errors = model.errors(&profile);
    let [servers, sums] = errors
        .map_err(|differs| Fault::Input(format!("{}: {differs} by the tree", file.shown())))?;
    let mut leaves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in &profile.rows {
        let Some(actual) = row.rate() else { continue };
        let vector = row.sums.vector();
        let pairs = leaves.entry(path(tree, &vector)).or_default();
        pairs.push((tree.predict(&vector), actual));
    }
    for (path, pairs) in &leaves {
        let errors = Errors::of(pairs.iter().copied());
        let error = 100.0 * errors.quantile(0.9).unwrap_or_default();
        let count = errors.count();
        context.print(&format!(
            "{path}  {count} epochs of servers, 90 % within {error:.1} %\n"
        ))?;
    }
    let rows = [("servers", &servers), ("sum of the servers", &sums)];
    context.print(&table(&quantiles(&rows), context.terminal))
}

/// Describes the splits on the way to a prediction, a line each, and the prediction.
fn path(tree: &Tree, vector: &Vector) -> String {
    let line = |node: &Node| match node {
        Node::Split {
            feature,
            threshold,
            samples,
        } => {
            let is_left = vector[feature.index()] <= *threshold;
            let sign = if is_left { "<=" } else { "> " };
            let threshold = match threshold.abs() < 100.0 {
                true => format!("{threshold:.3}"),
                false => format!("{threshold:.0}"),
            };
            format!(
                "{} {sign} {threshold}  (asked of {samples} epochs)\n",
                feature.name()
            )
        }
        Node::Leaf { rate, samples } => {
            format!("  {:.1} MB/s by {samples} epochs\n", rate / 1e6)
        }
    };
    tree.path(vector).map(line).collect()
}

/// Reads features by name. All features that the tree uses are required.
fn vector(text: &str, tree: &Tree) -> Result<Vector, String> {
    let mut vector = Vector::default();
    let mut given = Vec::new();
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let feature = Feature::ALL
            .into_iter()
            .find(|feature| feature.name() == name.trim());
        let feature = feature.ok_or_else(|| {
            let names = Feature::ALL.map(Feature::name);
            let near = nearest(name.trim(), names);
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!(
                "`{name}` is no feature{near}; allowed are {}",
                names.join(", ")
            )
        })?;
        let number = value
            .trim()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        let bytes = value.parse().ok().map(|Bytes(bytes)| bytes as f64);
        vector[feature.index()] = number.or(bytes).ok_or_else(|| {
            format!("{name} is `{value}`; allowed are numbers, and sizes such as 32KiB")
        })?;
        given.push(feature);
    }
    let asked = tree.nodes().iter().filter_map(|node| match node {
        Node::Split { feature, .. } => Some(feature),
        Node::Leaf { .. } => None,
    });
    match asked.into_iter().find(|feature| !given.contains(feature)) {
        Some(missing) => Err(format!(
            "the tree asks for {}, which is missing",
            missing.name()
        )),
        None => Ok(vector),
    }
}
