//! From a tree to a figure.

use super::{Figure, PlotKind, PlotSpec, Point, RunOf, Scale, Transform, Variant, X};
use crate::report::metric::Metric;
use crate::scenario::Scenario;
use crate::scenario::tree::{Node, Place, Section, Table, TreeError, Value, split_list};
use headtime_sched::Spec;
use headtime_units::nearest;

/// A scheduler and the text that names it.
type Named = (String, Spec);

/// A scenario whose schedulers are not known yet.
struct Draft<'a> {
    name: String,
    x: X,
    table: Table,
    place: Place,
    section: Section<'a>,
    schedulers: Vec<Spec>,
}

impl Figure {
    /// Reads a figure from its text. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// The first key that is unknown, missing, of the wrong kind or out of range, and what does not
    /// fit together; with its place.
    pub fn parse(file: &str, text: &str, scale: Scale) -> Result<Figure, TreeError> {
        let table = Table::parse(file, text)?;
        figure(&table, Place::Line(file.into(), 1), scale)
    }
}

fn figure(table: &Table, place: Place, scale: Scale) -> Result<Figure, TreeError> {
    let mut top = Section::new(table, place);
    let id = needed(&mut top, "id")?;
    let source = needed(&mut top, "source")?;
    let title = needed(&mut top, "title")?;
    let seed = top.integer("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
    let seeds = top.integer("seeds", 1..=100)?.unwrap_or(1) as u32;
    let names = names(&mut top)?;
    let notes = top.texts("notes")?.into_iter().map(str::to_owned).collect();
    let common = top.any_table("common")?.cloned().unwrap_or_default();
    let quick = top.texts("quick")?;
    let sections = top.sections("scenario")?.ok_or_else(|| {
        top.error(
            "scenario",
            "missing; give [[scenario]] with a name and what differs from [common]",
        )
    })?;
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    for section in sections {
        let draft = draft(section, &common, &quick, scale)?;
        if drafts.iter().any(|other| other.name == draft.name) {
            let problem = format!("another one is called `{}` too", draft.name);
            return Err(draft.section.error("name", problem));
        }
        drafts.push(draft);
    }
    let sections = top
        .sections("point")?
        .ok_or_else(|| top.error("point", "missing; give [[point]] with what is measured"))?;
    let mut points: Vec<Point> = Vec::new();
    for mut section in sections {
        for point in self::points(&mut section, &mut drafts, &names)? {
            let same = |other: &Point| other.name() == point.name();
            if points.iter().any(same) {
                let problem = format!("another point is {} too", point.name());
                return Err(section.error("series", problem));
            }
            points.push(point);
        }
        section.finish()?;
    }
    let plots = match top.sections("plot")? {
        Some(sections) => sections
            .into_iter()
            .map(|section| plot(section, &mut drafts, &points, &names))
            .collect::<Result<_, _>>()?,
        None => default_plots(&points),
    };
    top.finish()?;
    let variants = drafts
        .into_iter()
        .map(|draft| variant(draft, &title, seed))
        .collect::<Result<_, _>>()?;
    Ok(Figure {
        id,
        source,
        title,
        seed,
        seeds,
        notes,
        variants,
        points,
        plots,
    })
}

fn needed(section: &mut Section<'_>, key: &'static str) -> Result<String, TreeError> {
    let text = section.text(key)?.filter(|text| !text.is_empty());
    text.map(str::to_owned)
        .ok_or_else(|| section.error(key, "missing"))
}

fn draft<'a>(
    mut section: Section<'a>,
    common: &Table,
    quick: &[&str],
    scale: Scale,
) -> Result<Draft<'a>, TreeError> {
    let name = needed(&mut section, "name")?;
    let x = match section.node("x") {
        Some(node) => x(&section, node)?,
        None => X::Text(name.clone()),
    };
    let settings = section.texts("set")?;
    let own_quick = section.texts("quick")?;
    let mut own = section.table().clone();
    for key in ["name", "x", "set", "quick"] {
        own.remove(key);
    }
    let mut table = common.clone();
    table.overlay(&own);
    let quick = match scale {
        Scale::Full => Vec::new(),
        Scale::Quick => quick.iter().copied().chain(own_quick).collect(),
    };
    for setting in settings.into_iter().chain(quick) {
        let place = section.place();
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            let problem = format!("\"{setting}\": write KEY=VALUE, as in engine.depth=4");
            section.error("set", problem)
        })?;
        let option = format!("{place}: set {setting}");
        table.set(&option, key.trim(), value.trim())?;
    }
    if let Some(node) = table.get("schedulers") {
        return Err(TreeError {
            place: node.place.clone(),
            key: "schedulers".to_owned(),
            problem: "the points of a figure say which schedulers are run".to_owned(),
        });
    }
    Ok(Draft {
        name,
        x,
        table,
        place: section.place().clone(),
        section,
        schedulers: Vec::new(),
    })
}

fn variant(draft: Draft<'_>, title: &str, seed: u64) -> Result<Variant, TreeError> {
    let Draft {
        name,
        x,
        mut table,
        place,
        section,
        schedulers,
    } = draft;
    if schedulers.is_empty() {
        return Err(section.error("name", format!("no point is about `{name}`")));
    }
    let texts: Vec<String> = schedulers.iter().map(ToString::to_string).collect();
    let built_in = |value| Node {
        value,
        place: Place::BuiltIn,
    };
    table.set_value("schedulers", built_in(Value::Text(texts.join(","))))?;
    if table.get("seed").is_none() {
        table.set_value("seed", built_in(Value::Integer(seed as i64)))?;
    }
    if table.get("title").is_none() {
        let title = format!("{title}: {name}");
        table.set_value("title", built_in(Value::Text(title)))?;
    }
    let scenario = Scenario::from_table(&table, place)?;
    let single = [
        ("drive.profile", scenario.drives.len()),
        ("drive.firmware", scenario.firmware.len()),
        ("engine.depth", scenario.depths.len()),
        ("engine.merge", scenario.merge.len()),
        ("engine.commit_ahead", scenario.commit_ahead.len()),
    ];
    if let Some((key, _)) = single.into_iter().find(|(_, values)| *values > 1) {
        let problem =
            format!("{key}: a scenario of a figure has one value of each key; give two scenarios");
        return Err(section.error("name", problem));
    }
    Ok(Variant { name, x, scenario })
}

fn x(section: &Section<'_>, node: &Node) -> Result<X, TreeError> {
    match &node.value {
        Value::Text(text) => Ok(X::Text(text.clone())),
        Value::Integer(number) => Ok(X::Number(*number as f64)),
        Value::Float(number) if number.is_finite() => Ok(X::Number(*number)),
        _ => Err(section.error("x", "allowed are numbers and strings")),
    }
}

/// What the names of schedulers stand for in this figure, where that is not what they say.
fn names(top: &mut Section<'_>) -> Result<Vec<Named>, TreeError> {
    let Some(table) = top.any_table("schedulers")? else {
        return Ok(Vec::new());
    };
    let error = |name: &str, problem: String| {
        let place = table.get(name).map(|node| node.place.clone());
        TreeError {
            place: place.unwrap_or_else(|| top.place().clone()),
            key: format!("schedulers.{name}"),
            problem,
        }
    };
    let named = table.iter().map(|(name, node)| {
        let Value::Text(text) = &node.value else {
            let problem = "allowed is the text of a scheduler, such as \"stream:hz=250\"";
            return Err(error(name, problem.to_owned()));
        };
        let spec = text.parse::<Spec>();
        let spec = spec.map_err(|problem| error(name, problem.to_string()))?;
        Ok((name.to_owned(), spec))
    });
    named.collect()
}

fn schedulers(
    section: &mut Section<'_>,
    key: &'static str,
    names: &[Named],
) -> Result<Option<Vec<Named>>, TreeError> {
    let expected = "the text of a scheduler, such as \"deadline\"";
    section.parse_list(key, expected, |text| {
        if let Some(named) = names.iter().find(|(name, _)| name == text) {
            return Ok(named.clone());
        }
        let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
        Ok((text.to_owned(), spec))
    })
}

/// The scenarios that a point is about; the only one if it does not say.
fn scenarios(section: &mut Section<'_>, drafts: &[Draft<'_>]) -> Result<Vec<usize>, TreeError> {
    let named = named_scenarios(section, "scenario", drafts)?;
    match named.is_empty() {
        false => Ok(named),
        true if drafts.len() == 1 => Ok(vec![0]),
        true => Err(section.error("scenario", "missing; say which")),
    }
}

/// The scenarios that a key names, in their order. A name may hold commas if it stands in a list.
fn named_scenarios(
    section: &mut Section<'_>,
    key: &'static str,
    drafts: &[Draft<'_>],
) -> Result<Vec<usize>, TreeError> {
    let is_list = matches!(
        section.table().get(key).map(|node| &node.value),
        Some(Value::List(_))
    );
    let texts = section.texts(key)?;
    let names: Vec<&str> = match is_list {
        true => texts,
        false => texts.into_iter().flat_map(split_list).collect(),
    };
    names
        .into_iter()
        .map(|name| scenario(section, key, name, drafts))
        .collect()
}

fn scenario(
    section: &Section<'_>,
    key: &str,
    name: &str,
    drafts: &[Draft<'_>],
) -> Result<usize, TreeError> {
    let found = drafts.iter().position(|draft| draft.name == name);
    found.ok_or_else(|| {
        let names = drafts.iter().map(|draft| draft.name.as_str());
        let guess = nearest(name, names.clone())
            .map(|guess| format!("; did you mean `{guess}`?"))
            .unwrap_or_default();
        let all: Vec<&str> = names.collect();
        let problem = format!(
            "no scenario is called `{name}`{guess} There are {}",
            all.join(", ")
        );
        section.error(key, problem)
    })
}

/// Makes a run known to its scenario.
fn run_of(drafts: &mut [Draft<'_>], variant: usize, scheduler: &Spec) -> RunOf {
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
    section: &mut Section<'_>,
    drafts: &mut [Draft<'_>],
    names: &[Named],
) -> Result<Vec<Point>, TreeError> {
    let named = schedulers(section, "scheduler", names)?
        .ok_or_else(|| section.error("scheduler", "missing; give for example \"noop\""))?;
    let variants = scenarios(section, drafts)?;
    let series = section.text("series")?.map(str::to_owned);
    let metric = section
        .parse("metric", "the name of a metric", Metric::by_name)?
        .ok_or_else(|| section.error("metric", "missing; give for example \"iops\""))?;
    let transform = section
        .parse("transform", "the name of a transform", |text| {
            let found = Transform::ALL.iter().find(|(name, _)| *name == text);
            let all = Transform::ALL.map(|(name, _)| name).join(", ");
            let error = || format!("allowed are {all}");
            found.map(|(_, transform)| *transform).ok_or_else(error)
        })?
        .unwrap_or(Transform::Value);
    let of = schedulers(section, "of", names)?;
    let of_scenarios = named_scenarios(section, "of_scenario", drafts)?;
    if ![0, 1, variants.len()].contains(&of_scenarios.len()) {
        let problem = "allowed is one, or one for each of scenario";
        return Err(section.error("of_scenario", problem));
    }
    let compares = !of_scenarios.is_empty();
    let of = match (transform, of) {
        (Transform::Value, Some(_)) => {
            return Err(section.error(
                "of",
                "is for transforms that compare; give transform = \"ratio\"",
            ));
        }
        (Transform::Value, None) => Vec::new(),
        (_, Some(of)) => of,
        // The same scheduler in another scenario.
        (_, None) if compares => Vec::new(),
        (_, None) => {
            return Err(section.error("of", "missing; say with which scheduler to compare"));
        }
    };
    let xs = xs(section)?;
    let paper = section.float("paper", f64::MIN..=f64::MAX)?;
    let accept = accept(section)?;
    let why = section.text("why")?.map(str::to_owned);
    let calibrated = section.flag("calibrated")?.unwrap_or(false);
    let by_construction = section.text("by_construction")?.map(str::to_owned);
    let note = section.text("note")?.map(str::to_owned);
    let unit = section.text("unit")?.map(str::to_owned);
    if accept.is_some() != why.is_some() {
        return Err(section.error("why", "a range and why it is what it is belong together"));
    }
    if accept.is_some() && calibrated {
        return Err(section.error("accept", "what was used to calibrate is not judged"));
    }
    let compares_with_one = transform.of_equals().is_some();
    if by_construction.is_some() && (accept.is_some() || paper.is_some() || !compares_with_one) {
        let problem = "is for a ratio, a speedup or an improvement that is not judged: \
                       it cannot be anything else";
        return Err(section.error("by_construction", problem));
    }
    let compared = |drafts: &mut [Draft<'_>], number: usize, own: &Spec| {
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
    let unit = match unit {
        Some(unit) => unit,
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
        why: why.clone(),
        calibrated,
        by_construction: by_construction.clone(),
        note: note.clone(),
    };
    let mut points = Vec::new();
    if transform == Transform::Rise {
        let ([(text, spec)], true) = (&named[..], variants.len() > 1) else {
            let problem = "is about one scheduler in several scenarios";
            return Err(section.error("transform", problem));
        };
        let runs = (0..variants.len())
            .map(|number| compared(drafts, number, spec))
            .collect();
        let x = match xs {
            Some(xs) => xs.into_iter().next().expect("a list that is not empty"),
            None => X::Text("all".to_owned()),
        };
        points.push(point(series.unwrap_or_else(|| text.clone()), x, runs));
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
            return Err(section.error("x", problem));
        }
        let last = xs[xs.len() - 1].clone();
        let xs = xs.into_iter().chain(std::iter::repeat(last));
        for (point, x) in points.iter_mut().zip(xs) {
            point.x = x;
        }
    }
    if points.len() > 1 && paper.is_some() {
        let problem = "is for one point; give each that has a number an entry of its own";
        return Err(section.error("paper", problem));
    }
    Ok(points)
}

fn xs(section: &mut Section<'_>) -> Result<Option<Vec<X>>, TreeError> {
    let Some(node) = section.node("x") else {
        return Ok(None);
    };
    match &node.value {
        Value::List(list) if list.is_empty() => Err(section.error("x", "is an empty list")),
        Value::List(list) => list
            .iter()
            .map(|node| x(section, node))
            .collect::<Result<_, _>>()
            .map(Some),
        _ => Ok(Some(vec![x(section, node)?])),
    }
}

fn accept(section: &mut Section<'_>) -> Result<Option<(f64, f64)>, TreeError> {
    let Some(node) = section.node("accept") else {
        return Ok(None);
    };
    let number = |node: &Node| match &node.value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    let ends = match &node.value {
        Value::List(list) => list.iter().map(number).collect::<Option<Vec<f64>>>(),
        _ => None,
    };
    match ends.as_deref() {
        // Not for a number that is none, either.
        Some(&[low, high]) if low <= high => Ok(Some((low, high))),
        _ => Err(section.error(
            "accept",
            "allowed are two numbers, the least and the largest value, as in [2.7, 4.2] or [1, inf]",
        )),
    }
}

/// The unit of a point, in words.
fn unit(metric: &Metric, transform: Transform, of: &[Named], of_scenarios: &[&str]) -> String {
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
        Transform::Rise => format!("largest rise of times {others}"),
    }
}

fn plot(
    mut section: Section<'_>,
    drafts: &mut [Draft<'_>],
    points: &[Point],
    names: &[Named],
) -> Result<PlotSpec, TreeError> {
    let kind = section
        .parse("kind", "the kind of a plot", |text| {
            let found = PlotKind::ALL.iter().find(|(name, _)| *name == text);
            let all = PlotKind::ALL.map(|(name, _)| name).join(", ");
            let error = || format!("allowed are {all}");
            found.map(|(_, kind)| *kind).ok_or_else(error)
        })?
        .ok_or_else(|| section.error("kind", "missing; give for example \"bars\""))?;
    let title = needed(&mut section, "title")?;
    let mut spec = PlotSpec {
        kind,
        title,
        x: section.text("x")?.unwrap_or("").to_owned(),
        y: String::new(),
        unit: String::new(),
        metric: None,
        runs: Vec::new(),
    };
    let y = section.text("y")?;
    if kind.is_scatter() {
        let named = schedulers(&mut section, "scheduler", names)?
            .ok_or_else(|| section.error("scheduler", "missing; say whose requests are shown"))?;
        for variant in scenarios(&mut section, drafts)? {
            for (_, scheduler) in &named {
                spec.runs.push(run_of(drafts, variant, scheduler));
            }
        }
        spec.y = y.unwrap_or("ms").to_owned();
    } else {
        spec.unit = section
            .text("unit")?
            .ok_or_else(|| section.error("unit", "missing; say whose points are shown"))?
            .to_owned();
        spec.metric = section.parse("metric", "the name of a metric", Metric::by_name)?;
        let mut shown = points.iter().filter(|point| spec.shows(point)).peekable();
        if shown.peek().is_none() {
            return Err(section.error("unit", "no point has that"));
        }
        if kind == PlotKind::Lines && shown.any(|point| matches!(point.x, X::Text(_))) {
            return Err(section.error("kind", "lines are over numbers; some x are words"));
        }
        spec.y = y.unwrap_or(&spec.unit).to_owned();
    }
    section.finish()?;
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
    /// Whether it shows a point.
    pub fn shows(&self, point: &Point) -> bool {
        !self.kind.is_scatter()
            && self.unit == point.unit
            && self.metric.is_none_or(|metric| metric == point.metric)
    }
}
