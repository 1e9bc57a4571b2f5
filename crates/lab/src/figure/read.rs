//! Reads a figure from its text.

use super::shipped::BASES;
use super::{Figure, Judge, PlotKind, PlotSpec, Point, RunOf, Scale, Transform, Variant, X};
use crate::fault::did_you_mean;
use crate::report::catalogue::{Measure, judged_by_name};
use crate::scenario::Scenario;
use headtime_config::{
    Error, Many, Node, OneOrList, Place, Placed, Table, Value, parse, read, split_list, whole,
};
use headtime_sched::Spec;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A file of a figure.
///
/// Invariants of a file that is accepted:
///
/// - `id`, `source` and `title` are not empty.
/// - `seed < 2^63`; `1 ≤ seeds ≤ 100`.
/// - Names of `scenario` differ, and each scenario is of some `point`. Names of points differ.
/// - `quick_without` names scenarios of `scenario`; `base` names shared keys.
#[derive(Deserialize)]
struct Text {
    #[serde(deserialize_with = "said")]
    id: String,
    #[serde(deserialize_with = "said")]
    source: String,
    #[serde(deserialize_with = "said")]
    title: String,
    #[serde(
        default = "one",
        deserialize_with = "whole::<_, _, 0, { i64::MAX as u64 }>"
    )]
    seed: u64,
    #[serde(default = "one", deserialize_with = "whole::<_, _, 1, 100>")]
    seeds: u32,
    /// Schedulers by the names that this figure gives them.
    #[serde(default)]
    schedulers: BTreeMap<String, Spec>,
    #[serde(default)]
    notes: OneOrList<String>,
    /// True if fairness and each origin's share are reported beside the measured values.
    #[serde(default)]
    shares: bool,
    /// Name of the shared keys that `[common]` is laid over.
    base: Option<Placed<String>>,
    #[serde(default)]
    common: Table,
    #[serde(default)]
    quick: OneOrList<String>,
    /// Scenarios whose points are left out at the quick scale.
    quick_without: Option<ScenarioNames>,
    scenario: Many<Placed<ScenarioText>>,
    point: Many<Placed<PointText>>,
    plot: Option<Many<Placed<PlotText>>>,
}

/// `[[scenario]]`.
#[derive(Deserialize)]
struct ScenarioText {
    #[serde(deserialize_with = "said")]
    name: String,
    x: Option<XText>,
    #[serde(default)]
    set: OneOrList<String>,
    #[serde(default)]
    quick: OneOrList<String>,
    /// Keys that differ from `[common]`.
    #[serde(rename = "+own")]
    own: Table,
}

/// `[[point]]`.
///
/// Invariants of an entry that is accepted:
///
/// - `accept.is_some()` ⇔ `why.is_some()`; `calibrated` ⇒ `accept.is_none()`.
/// - `judge = Among` ⇒ `paper.is_some()`, `accept.is_none()` and `!calibrated`.
/// - `transform = Value` ⇒ `of.is_none()`; otherwise `of` or `of_scenario` is given.
/// - `x = Some(list)` ⇒ the list is not empty.
/// - `paper.is_some()` ⇒ the entry makes one point.
#[derive(Deserialize)]
struct PointText {
    scheduler: Many<Placed<String>>,
    scenario: Option<ScenarioNames>,
    series: Option<String>,
    #[serde(deserialize_with = "metric")]
    metric: &'static Measure,
    #[serde(default)]
    transform: Transform,
    of: Option<Many<Placed<String>>>,
    of_scenario: Option<ScenarioNames>,
    x: Option<OneOrList<XText>>,
    paper: Option<f64>,
    accept: Option<Placed<Accept>>,
    why: Option<String>,
    #[serde(default)]
    judge: Judge,
    #[serde(default)]
    calibrated: bool,
    note: Option<String>,
    unit: Option<String>,
}

#[derive(Deserialize)]
struct PlotText {
    kind: PlotKind,
    #[serde(deserialize_with = "said")]
    title: String,
    #[serde(default)]
    x: String,
    y: Option<String>,
    scheduler: Option<Many<Placed<String>>>,
    scenario: Option<ScenarioNames>,
    unit: Option<String>,
    #[serde(default, deserialize_with = "some_metric")]
    metric: Option<&'static Measure>,
}

/// The least and the largest value of a point.
#[derive(Clone, Copy, Deserialize)]
#[serde(
    rename = "[]",
    expecting = "two numbers, the least and the largest value, as in [2.7, 4.2] or [1, inf]"
)]
pub struct Accept {
    least: f64,
    largest: f64,
}

impl Accept {
    /// Both ends of the range.
    ///
    /// # Errors
    ///
    /// If nothing lies between them.
    pub fn range(self) -> Result<(f64, f64), &'static str> {
        let Accept { least, largest } = self;
        // This also refuses a range with an end that is not a number.
        match (least..=largest).is_empty() {
            true => Err("allowed are two numbers, the least and the largest value"),
            false => Ok((least, largest)),
        }
    }
}

/// Names of scenarios: a text by comma, or a list, whose names may hold commas.
struct ScenarioNames(Vec<Placed<String>>);

impl<'de> Deserialize<'de> for ScenarioNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ScenarioNames, D::Error> {
        let given = Placed::<OneOrList<Placed<String>>>::deserialize(from)?;
        let key = given.key().to_owned();
        let split = |name: Placed<String>| -> Vec<Placed<String>> {
            match name.key() == key {
                true => split_list(&name.value)
                    .map(|item| name.clone().map(|_| item.to_owned()))
                    .collect(),
                false => vec![name],
            }
        };
        Ok(ScenarioNames(
            given.value.0.into_iter().flat_map(split).collect(),
        ))
    }
}

struct XText(X);

impl<'de> Deserialize<'de> for XText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<XText, D::Error> {
        match Value::deserialize(from)? {
            Value::Text(text) => Ok(XText(X::Text(text))),
            Value::Integer(number) => Ok(XText(X::Number(number as f64))),
            Value::Float(number) if number.is_finite() => Ok(XText(X::Number(number))),
            _ => Err(D::Error::custom("allowed are numbers and strings")),
        }
    }
}

/// Reads a text that is not empty.
pub fn said<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match text.is_empty() {
        true => Err(D::Error::custom("is empty")),
        false => Ok(text),
    }
}

/// A metric, by its name.
pub fn metric<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Measure, D::Error> {
    let expected = "the name of a metric, such as \"iops\"";
    parse(from, expected, judged_by_name)
}

fn some_metric<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static Measure>, D::Error> {
    metric(from).map(Some)
}

fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// A scheduler and the text that names it.
type Named = (String, Spec);

/// A scenario whose schedulers are not known yet.
struct Draft {
    section: Placed<()>,
    name: String,
    x: X,
    table: Table,
    schedulers: Vec<Spec>,
}

impl Figure {
    /// Reads a figure from its text. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// The first key that is unknown, missing, of the wrong kind or out of range, and what does not
    /// fit together; with its place.
    pub fn parse(file: &str, text: &str, scale: Scale) -> Result<Figure, Error> {
        figure(&Table::parse(file, text)?, &Place::line(file, 1), scale)
    }
}

fn figure(table: &Table, place: &Place, scale: Scale) -> Result<Figure, Error> {
    let text: Text = read(table, place)?;
    let names: Vec<Named> = text.schedulers.into_iter().collect();
    let mut common = text.base.as_ref().map(base).transpose()?;
    let common = common.get_or_insert_default();
    common.overlay(&text.common);
    let mut drafts: Vec<Draft> = Vec::new();
    for section in text.scenario.0 {
        let draft = draft(section, common, &text.quick.0, scale)?;
        if drafts.iter().any(|other| other.name == draft.name) {
            let problem = format!("another one is called `{}` too", draft.name);
            return Err(draft.section.error_at("name", problem));
        }
        drafts.push(draft);
    }
    let mut points: Vec<Point> = Vec::new();
    for section in &text.point.0 {
        for point in self::points(section, &mut drafts, &names)? {
            let same = |other: &Point| other.name() == point.name();
            if points.iter().any(same) {
                let problem = format!("another point is {} too", point.name());
                return Err(section.error_at("series", problem));
            }
            points.push(point);
        }
    }
    let mut plots = match &text.plot {
        Some(Many(sections)) => sections
            .iter()
            .map(|section| plot(section, &mut drafts, &points, &names))
            .collect::<Result<_, _>>()?,
        None => default_plots(&points),
    };
    let left_out = named_scenarios(&text.quick_without, &drafts)?;
    if scale == Scale::Quick {
        points.retain(|point| {
            let runs = point.runs.iter();
            let mut runs = runs.flat_map(|(own, others)| std::iter::once(own).chain(others));
            !runs.any(|run| left_out.contains(&run.variant))
        });
        // Pictures of left-out points are left out too.
        plots.retain(|plot: &PlotSpec| {
            plot.kind.shows_runs() || points.iter().any(|point| plot.shows(point))
        });
    }
    let variants = drafts
        .into_iter()
        .map(|draft| variant(draft, &text.title, text.seed))
        .collect::<Result<_, _>>()?;
    Ok(Figure {
        id: text.id,
        source: text.source,
        title: text.title,
        seed: text.seed,
        seeds: text.seeds,
        notes: text.notes.0,
        shares: text.shares,
        variants,
        points,
        plots,
    })
}

/// The keys that figures share under this name.
fn base(name: &Placed<String>) -> Result<Table, Error> {
    let ids = || BASES.iter().map(|base| base.id);
    let Some(found) = BASES.iter().find(|base| base.id == name.value) else {
        let (called, all) = (&name.value, ids().collect::<Vec<_>>().join(", "));
        let guess = did_you_mean(name, ids(), "");
        return Err(name.error(format!(
            "no base is called `{called}`{guess} There are {all}"
        )));
    };
    Table::parse(&format!("experiments/{}.toml", found.id), found.text)
}

fn draft(
    section: Placed<ScenarioText>,
    common: &Table,
    quick: &[String],
    scale: Scale,
) -> Result<Draft, Error> {
    let text = &section.value;
    let mut table = common.clone();
    table.overlay(&text.own);
    let quick = match scale {
        Scale::Full => [].iter().chain(&[]),
        Scale::Quick => quick.iter().chain(&text.quick.0),
    };
    for setting in text.set.0.iter().chain(quick) {
        let option = format!("{}: set {setting}", section.place());
        Scenario::set(&mut table, &option, setting)?;
    }
    if let Some(node) = table.get("schedulers") {
        let problem = "the points of a figure say which schedulers are run";
        return Err(Error::new(node.place.clone(), "schedulers", problem));
    }
    let name = text.name.clone();
    let x = match &text.x {
        Some(XText(x)) => x.clone(),
        None => X::Text(name.clone()),
    };
    Ok(Draft {
        section: section.map(|_| ()),
        name,
        x,
        table,
        schedulers: Vec::new(),
    })
}

fn variant(draft: Draft, title: &str, seed: u64) -> Result<Variant, Error> {
    let Draft {
        section,
        name,
        x,
        mut table,
        schedulers,
    } = draft;
    if schedulers.is_empty() {
        return Err(section.error_at("name", format!("no point is about `{name}`")));
    }
    let texts: Vec<String> = schedulers.iter().map(ToString::to_string).collect();
    let schedulers = Value::Text(texts.join(","));
    table.set_value("schedulers", Node::built_in(schedulers))?;
    if table.get("seed").is_none() {
        table.set_value("seed", Node::built_in(Value::Integer(seed as i64)))?;
    }
    if table.get("title").is_none() {
        let title = Value::Text(format!("{title}: {name}"));
        table.set_value("title", Node::built_in(title))?;
    }
    let scenario = Scenario::from_table(&table, section.place().clone())?;
    let drive = scenario.drives.compared().map(|key| format!("drive.{key}"));
    let engine = scenario
        .engines
        .compared()
        .map(|key| format!("engine.{key}"));
    if let Some(key) = drive.chain(engine).next() {
        let problem =
            format!("{key}: a scenario of a figure has one value of each key; give two scenarios");
        return Err(section.error_at("name", problem));
    }
    Ok(Variant { name, x, scenario })
}

fn schedulers(texts: &Many<Placed<String>>, names: &[Named]) -> Result<Vec<Named>, Error> {
    let scheduler = |text: &Placed<String>| {
        if let Some(named) = names.iter().find(|(name, _)| *name == text.value) {
            return Ok(named.clone());
        }
        let spec = text.parse::<Spec>();
        let spec = spec.map_err(|problem| text.error(problem.to_string()))?;
        Ok((text.value.clone(), spec))
    };
    texts.0.iter().map(scheduler).collect()
}

/// Scenarios that a section names, or the only scenario if the section names none.
fn scenarios<T>(
    section: &Placed<T>,
    names: &Option<ScenarioNames>,
    drafts: &[Draft],
) -> Result<Vec<usize>, Error> {
    let named = named_scenarios(names, drafts)?;
    match named.is_empty() {
        false => Ok(named),
        true if drafts.len() == 1 => Ok(vec![0]),
        true => Err(section.error_at("scenario", "missing; say which")),
    }
}

/// The scenarios of these names, in their order.
fn named_scenarios(names: &Option<ScenarioNames>, drafts: &[Draft]) -> Result<Vec<usize>, Error> {
    let names = names.iter().flat_map(|names| &names.0);
    names.map(|name| scenario(name, drafts)).collect()
}

fn scenario(name: &Placed<String>, drafts: &[Draft]) -> Result<usize, Error> {
    let found = drafts.iter().position(|draft| draft.name == name.value);
    found.ok_or_else(|| {
        let names = drafts.iter().map(|draft| draft.name.as_str());
        let guess = did_you_mean(name, names.clone(), "");
        let all: Vec<&str> = names.collect();
        let called = &name.value;
        name.error(format!(
            "no scenario is called `{called}`{guess} There are {}",
            all.join(", ")
        ))
    })
}

/// Makes a run known to its scenario.
fn run_of(drafts: &mut [Draft], variant: usize, scheduler: &Spec) -> RunOf {
    let known = &mut drafts[variant].schedulers;
    if !known.contains(scheduler) {
        known.push(scheduler.clone());
    }
    RunOf {
        variant,
        scheduler: scheduler.clone(),
    }
}

/// The points of an entry, which is short for one per scheduler and scenario.
fn points(
    section: &Placed<PointText>,
    drafts: &mut [Draft],
    names: &[Named],
) -> Result<Vec<Point>, Error> {
    let PointText {
        metric,
        transform,
        judge,
        calibrated,
        paper,
        ..
    } = section.value;
    let named = schedulers(&section.scheduler, names)?;
    let variants = scenarios(section, &section.scenario, drafts)?;
    let of = section.of.as_ref();
    let of = of.map(|of| schedulers(of, names)).transpose()?;
    let of_scenarios = named_scenarios(&section.of_scenario, drafts)?;
    let adds = transform == Transform::Added;
    if !adds && ![0, 1, variants.len()].contains(&of_scenarios.len()) {
        let problem = "allowed is one, or one for each of scenario";
        return Err(section.error_at("of_scenario", problem));
    }
    let compares = !of_scenarios.is_empty();
    let of = match (transform, of) {
        (Transform::Value, Some(_)) => {
            let problem = "is for transforms that compare; give transform = \"ratio\"";
            return Err(section.error_at("of", problem));
        }
        (Transform::Value, None) => Vec::new(),
        (_, Some(of)) => of,
        // Compares with the same scheduler in another scenario.
        (_, None) if compares => Vec::new(),
        (_, None) => {
            let problem = "missing; say with which scheduler to compare";
            return Err(section.error_at("of", problem));
        }
    };
    let accept = section.accept.as_ref();
    let accept = accept.map(|accept| {
        accept
            .value
            .range()
            .map_err(|problem| accept.error(problem))
    });
    let accept = accept.transpose()?;
    if accept.is_some() != section.why.is_some() {
        let problem = "a range and why it is what it is belong together";
        return Err(section.error_at("why", problem));
    }
    if accept.is_some() && calibrated {
        let problem = "what was used to calibrate is not judged";
        return Err(section.error_at("accept", problem));
    }
    if judge == Judge::Among && (accept.is_some() || paper.is_none() || calibrated) {
        let problem = "among is for a number of the paper, without a range";
        return Err(section.error_at("judge", problem));
    }
    let series = &section.series;
    if section.x.as_ref().is_some_and(|xs| xs.0.is_empty()) {
        return Err(section.error_at("x", "is an empty list"));
    }
    let xs = section.x.as_ref();
    let xs = xs.map(|xs| xs.0.iter().map(|XText(x)| x.clone()).collect::<Vec<X>>());
    let compared = |drafts: &mut [Draft], number: usize, own: &Spec| {
        let variant = variants[number];
        let other = match of_scenarios[..] {
            [] => variant,
            [one] => one,
            ref each => each[number],
        };
        let specs: Vec<&Spec> = match of.is_empty() && compares {
            true => vec![own],
            false => of.iter().map(|(_, spec)| spec).collect(),
        };
        let others = specs.into_iter().map(|spec| run_of(drafts, other, spec));
        let others: Vec<RunOf> = others.collect();
        (run_of(drafts, variant, own), others)
    };
    let of_names: Vec<&str> = of_scenarios.iter().map(|of| &*drafts[*of].name).collect();
    let unit = match &section.unit {
        Some(unit) => unit.clone(),
        None => self::unit(metric, transform, &of, &of_names),
    };
    let point = |series: String, x: X, runs| Point {
        series,
        x,
        metric,
        transform,
        unit: unit.clone(),
        runs,
        paper,
        accept,
        why: section.why.clone(),
        judge,
        calibrated,
        note: section.note.clone(),
    };
    let mut points = Vec::new();
    if adds || transform == Transform::Rise {
        let (text, x, runs) = match (&named[..], &variants[..], &of_scenarios[..]) {
            ([(text, spec)], [variant], [_, _, ..]) if adds => {
                let others = of_scenarios.iter().map(|of| run_of(drafts, *of, spec));
                let others: Vec<RunOf> = others.collect();
                let runs = vec![(run_of(drafts, *variant, spec), others)];
                (text, drafts[*variant].x.clone(), runs)
            }
            ([(text, spec)], [_, _, ..], _) if !adds => {
                let runs = (0..variants.len()).map(|number| compared(drafts, number, spec));
                (text, X::Text("all".to_owned()), runs.collect())
            }
            _ => {
                let problem = match adds {
                    true => {
                        "is about one scheduler in one scenario; of_scenario names the one without, and then those to compare with"
                    }
                    false => "is about one scheduler in several scenarios",
                };
                return Err(section.error_at("transform", problem));
            }
        };
        let x = xs.and_then(|xs| xs.into_iter().next()).unwrap_or(x);
        points.push(point(series.as_ref().unwrap_or(text).clone(), x, runs));
        return Ok(points);
    }
    for (text, spec) in &named {
        for (number, variant) in variants.iter().enumerate() {
            let x = drafts[*variant].x.clone();
            let runs = vec![compared(drafts, number, spec)];
            let series = match &series {
                Some(series) => series.replace("{scheduler}", text),
                None => text.clone(),
            };
            points.push(point(series, x, runs));
        }
    }
    if let Some(xs) = xs {
        if xs.len() != points.len() && xs.len() != 1 {
            let problem = format!("{} for {} points", xs.len(), points.len());
            return Err(section.error_at("x", problem));
        }
        let last = xs[xs.len() - 1].clone();
        let xs = xs.into_iter().chain(std::iter::repeat(last));
        for (point, x) in points.iter_mut().zip(xs) {
            point.x = x;
        }
    }
    if points.len() > 1 && paper.is_some() {
        let problem = "is for one point; give each that has a number an entry of its own";
        return Err(section.error_at("paper", problem));
    }
    Ok(points)
}

/// The unit of a point, in words.
fn unit(metric: &Measure, transform: Transform, of: &[Named], of_scenarios: &[&str]) -> String {
    let names: Vec<&str> = of.iter().map(|(text, _)| text.as_str()).collect();
    let mut others = match names[..] {
        [] => String::new(),
        [one] => one.to_owned(),
        _ => format!("the best of {}", names.join(", ")),
    };
    if !of_scenarios.is_empty() {
        let space = if others.is_empty() { "" } else { " " };
        others.push_str(&format!("{space}in {}", of_scenarios.join(", ")));
    }
    match transform {
        Transform::Value => metric.unit.to_owned(),
        Transform::Ratio => format!("of {others}"),
        Transform::Speedup => format!("times {others}"),
        Transform::Improvement => format!("% over {others}"),
        Transform::Sooner => "% sooner".to_owned(),
        Transform::Added => format!("of what is added {}", others.trim()),
        Transform::Rise => format!("largest rise of times {others}"),
    }
}

fn plot(
    section: &Placed<PlotText>,
    drafts: &mut [Draft],
    points: &[Point],
    names: &[Named],
) -> Result<PlotSpec, Error> {
    let kind = section.kind;
    let mut spec = PlotSpec {
        kind,
        title: section.title.clone(),
        x: section.x.clone(),
        y: String::new(),
        unit: String::new(),
        metric: section.metric,
        runs: Vec::new(),
    };
    let needless = |keys: &[&str], problem: &str| match keys.iter().find(|key| section.has(key)) {
        Some(key) => Err(section.error_at(key, problem)),
        None => Ok(()),
    };
    if kind.shows_runs() {
        needless(&["unit", "metric"], "is for bars and lines")?;
        let Some(texts) = &section.scheduler else {
            let problem = "missing; say whose runs are shown";
            return Err(section.error_at("scheduler", problem));
        };
        let named = schedulers(texts, names)?;
        for variant in scenarios(section, &section.scenario, drafts)? {
            for (_, scheduler) in &named {
                spec.runs.push(run_of(drafts, variant, scheduler));
            }
        }
        let unit = match kind {
            PlotKind::Errors => "% of commands",
            _ => "ms",
        };
        spec.y = section.y.clone().unwrap_or_else(|| unit.to_owned());
    } else {
        needless(
            &["scheduler", "scenario"],
            "is for waits, services and errors",
        )?;
        let Some(unit) = &section.unit else {
            return Err(section.error_at("unit", "missing; say whose points are shown"));
        };
        spec.unit = unit.clone();
        let mut shown = points.iter().filter(|point| spec.shows(point)).peekable();
        if shown.peek().is_none() {
            return Err(section.error_at("unit", "no point has that"));
        }
        if kind == PlotKind::Lines && shown.any(|point| matches!(point.x, X::Text(_))) {
            let problem = "lines are over numbers; some x are words";
            return Err(section.error_at("kind", problem));
        }
        spec.y = section.y.as_ref().unwrap_or(unit).clone();
    }
    Ok(spec)
}

/// A panel for each unit of the points.
fn default_plots(points: &[Point]) -> Vec<PlotSpec> {
    let mut plots: Vec<PlotSpec> = Vec::new();
    for point in points {
        if plots.iter().any(|plot| plot.shows(point)) {
            continue;
        }
        let same = || points.iter().filter(|other| other.unit == point.unit);
        let numbers = same().all(|other| matches!(other.x, X::Number(_)));
        let several = same().any(|other| other.x != point.x);
        plots.push(PlotSpec {
            kind: match numbers && several {
                true => PlotKind::Lines,
                false => PlotKind::Bars,
            },
            title: point.metric.help.to_owned(),
            x: String::new(),
            y: point.unit.clone(),
            unit: point.unit.clone(),
            metric: None,
            runs: Vec::new(),
        });
    }
    plots
}

impl PlotSpec {
    /// True if the panel shows a point.
    pub fn shows(&self, point: &Point) -> bool {
        !self.kind.shows_runs()
            && self.unit == point.unit
            && self.metric.is_none_or(|metric| metric == point.metric)
    }
}
