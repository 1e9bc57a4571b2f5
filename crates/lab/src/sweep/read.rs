//! Reads the keys that a sweep varies: `[sweep]` of a scenario, and `--vary`.

use super::{FIRST_COLUMNS, Invariant, LAST_COLUMNS, Mode, Sweep, SweptAxis, line_of};
use crate::fault::did_you_mean;
use crate::figure::read::{Accept, metric, said};
use crate::report::catalogue::Measure;
use crate::report::catalogue::columns;
use crate::scenario::Scenario;
use headtime_config::{Error, Many, Node, OneOrList, Place, Placed, Table, Value, read, whole};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Words in `[sweep]` that are not keys of a scenario.
const WORDS: [&str; 6] = ["mode", "pairs", "points", "again", "together", "invariant"];

impl Sweep {
    /// Takes the sweep out of the table of a scenario: its `[sweep]`, and a key for each `KEY=LIST` of `vary`. A key of `vary` replaces the
    /// same key of `[sweep]`, or joins the others. `None` if there is neither.
    ///
    /// # Errors
    ///
    /// An error in the sweep, with its place. [`Plan::new`](super::plan::Plan::new) checks the values.
    pub fn take(table: &mut Table, vary: &[String]) -> Result<Option<Sweep>, Error> {
        take(table, vary)
    }

    /// The swept key that overlaps another key, in any notation, and its place.
    pub fn key_at(&self, table: &Table, key: &str) -> Option<(&str, &Place)> {
        let full = table.full_key(key);
        let keys = self.axes.iter();
        let mut keys = keys.flat_map(|axis| axis.keys.iter().zip(&axis.places));
        let found = keys.find(|(own, _)| overlap(&table.full_key(own), &full));
        found.map(|(key, place)| (key.as_str(), place))
    }
}

/// `[sweep]`, beside the keys of a scenario.
#[derive(Deserialize)]
struct Words {
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    pairs: Vec<Placed<Pair>>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 1_000_000>")]
    points: usize,
    #[serde(default)]
    again: OneOrList<String>,
    together: Option<Many<Placed<Table>>>,
    invariant: Option<Many<Placed<InvariantText>>>,
    /// Keys that vary alone.
    #[serde(rename = "+alone")]
    alone: Table,
}

/// `[[sweep.invariant]]`.
#[derive(Deserialize)]
struct InvariantText {
    #[serde(deserialize_with = "said")]
    name: String,
    #[serde(default)]
    set: OneOrList<String>,
    #[serde(deserialize_with = "metric")]
    metric: &'static Measure,
    along: Option<String>,
    #[serde(default)]
    over: OneOrList<String>,
    accept: Placed<Accept>,
    sure: Option<Placed<Accept>>,
}

/// Two keys that are crossed.
#[derive(Deserialize)]
#[serde(
    rename = "[]",
    expecting = "a pair of keys; write a list of them, such as [[\"engine.depth\", \"run.seed\"]]"
)]
struct Pair {
    one: String,
    other: String,
}

/// Takes the sweep out of the table of a scenario, see [`Sweep::take`].
fn take(table: &mut Table, vary: &[String]) -> Result<Option<Sweep>, Error> {
    let node = table.take("sweep");
    let mut mode = Mode::Cross;
    let mut pairs: Vec<Placed<Pair>> = Vec::new();
    let mut axes: Vec<SweptAxis> = Vec::new();
    let (mut points, mut again) = (0, Vec::new());
    let mut invariants: Vec<Placed<InvariantText>> = Vec::new();
    if let Some(node) = &node {
        let Value::Table(own) = &node.value else {
            return Err(error(&node.place, "sweep", "is not a table; write [sweep]"));
        };
        let words: Words = read(own, &node.place).map_err(|error| error.below("sweep"))?;
        (mode, pairs) = (words.mode, words.pairs);
        (points, again) = (words.points, words.again.0);
        invariants = words.invariant.map_or(Vec::new(), |Many(list)| list);
        if (points > 0) != (mode == Mode::Draw) {
            let problem = "goes with mode = \"draw\", and that with points, such as points = 60";
            let place = own.place("points").unwrap_or(&node.place);
            return Err(error(place, "sweep.points", problem));
        }
        if let Some(pair) = pairs.first().filter(|_| mode != Mode::Each) {
            let problem = "is for mode = \"each\"; without it every combination is run";
            return Err(error(pair.place(), "sweep.pairs", problem));
        }
        for (key, node) in leaves(&words.alone) {
            axes.push(axis(vec![(key, node)])?);
        }
        for section in words.together.iter().flat_map(|Many(list)| list) {
            let mut keys = leaves(section);
            if keys.is_empty() {
                return Err(error(section.place(), "sweep.together", "names no key"));
            }
            // The first key in the file names them all.
            keys.sort_by_key(|(_, node)| line_of(&node.place));
            axes.push(axis(keys)?);
        }
        // In the order of the file, which a table does not keep.
        axes.sort_by_key(|axis| axis.line());
    }
    for option in vary {
        self::vary(table, &mut axes, option)?;
    }
    if axes.is_empty() && node.is_none() {
        return Ok(None);
    }
    let place = node.map_or_else(|| axes[0].place().clone(), |node| node.place);
    if axes.is_empty() {
        let problem =
            "varies nothing; give a key and its values, such as \"engine.depth\" = [1, 4]";
        return Err(error(&place, "sweep", problem));
    }
    check(table, &axes)?;
    let pairs = pairs
        .into_iter()
        .map(|names| pair(table, &axes, &names))
        .collect::<Result<_, _>>()?;
    let invariants = invariants
        .into_iter()
        .map(|section| invariant(table, &axes, section))
        .collect::<Result<_, _>>()?;
    Ok(Some(Sweep {
        mode,
        axes,
        pairs,
        points,
        invariants,
        again,
        place,
    }))
}

fn invariant(
    table: &Table,
    axes: &[SweptAxis],
    section: Placed<InvariantText>,
) -> Result<Invariant, Error> {
    let metric = section.metric;
    if metric.learning.is_some() {
        let problem =
            "needs a learned drive, which sweeps do not have; docs/values.md lists others";
        return Err(section.error_at("metric", problem));
    }
    let along = section.along.as_ref();
    let along = along.map(|key| axis_of(table, axes, key));
    let along = along
        .transpose()
        .map_err(|problem| section.error_at("along", problem))?;
    if along.is_some_and(|axis| axes[axis].len() < 2) {
        return Err(section.error_at("along", "has one value; give two or more"));
    }
    let over = section.over.0.clone();
    if along.is_some() && !over.is_empty() {
        return Err(section.error_at("over", "does not go with along; give one of the two"));
    }
    let along = along.or((!over.is_empty()).then_some(axes.len()));
    let range = |range: &Placed<Accept>| range.value.range().map_err(|text| range.error(text));
    let accept = range(&section.accept)?;
    Ok(Invariant {
        sure: section
            .sure
            .as_ref()
            .map_or(Ok(Invariant::sure(accept)), range)?,
        place: section.place().clone(),
        name: section.value.name,
        set: section.value.set.0,
        metric,
        along,
        over,
        accept,
    })
}

/// Returns the axis of a key, or the error that no axis has this key.
fn axis_of(table: &Table, axes: &[SweptAxis], name: &str) -> Result<usize, String> {
    let full = table.full_key(name);
    let has = |axis: &SweptAxis| axis.keys.iter().any(|key| table.full_key(key) == full);
    axes.iter().position(has).ok_or_else(|| {
        let keys = axes
            .iter()
            .flat_map(|axis| axis.keys.iter().map(String::as_str));
        let guess = did_you_mean(name, keys.clone(), "");
        let keys: Vec<&str> = keys.collect();
        format!("`{name}` is not swept{guess} Swept are {}", keys.join(", "))
    })
}

fn error(place: &Place, key: &str, problem: impl Into<String>) -> Error {
    Error::new(place.clone(), key, problem)
}

/// All keys with a value that is no table, as dotted texts. `engine.depth = ..` and
/// `"engine.depth" = ..` are the same.
fn leaves(table: &Table) -> Vec<(String, Node)> {
    let mut found = Vec::new();
    for (key, node) in table.iter() {
        match &node.value {
            Value::Table(inner) => {
                let inner = leaves(inner).into_iter();
                found.extend(inner.map(|(rest, node)| (format!("{key}.{rest}"), node)));
            }
            _ => found.push((key.to_owned(), node.clone())),
        }
    }
    found
}

/// Axis of one key, or of several keys that vary together.
fn axis(keys: Vec<(String, Node)>) -> Result<SweptAxis, Error> {
    let mut names = Vec::new();
    let mut places = Vec::new();
    let mut values: Vec<Vec<Node>> = Vec::new();
    let mut first: Option<String> = None;
    for (key, node) in keys {
        let given = node.items();
        let named = format!("sweep.{key}");
        if given.is_empty() {
            let problem = "is an empty list; give at least one value";
            return Err(error(&node.place, &named, problem));
        }
        match &first {
            None => values = vec![Vec::new(); given.len()],
            Some(first) if given.len() != values.len() => {
                let problem = format!(
                    "has {}, {first} has {}; keys that vary together have as many",
                    counted(given.len(), "value"),
                    values.len()
                );
                return Err(error(&node.place, &named, problem));
            }
            Some(_) => {}
        }
        first.get_or_insert(key.clone());
        for (values, value) in values.iter_mut().zip(given) {
            values.push(value);
        }
        names.push(key);
        places.push(node.place);
    }
    let axis = SweptAxis {
        keys: names,
        places,
        values,
        base: 0,
    };
    let mut seen = BTreeSet::new();
    for (number, values) in axis.values.iter().enumerate() {
        let texts: Vec<String> = values.iter().map(|node| node.value.text()).collect();
        if !seen.insert(texts) {
            let problem = format!("{} stands there twice", axis.text(number));
            return Err(error(
                &values[0].place,
                &format!("sweep.{}", axis.name()),
                problem,
            ));
        }
    }
    Ok(axis)
}

/// `1 value`, `2 values`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// A key and its values from the command line.
fn vary(table: &Table, axes: &mut Vec<SweptAxis>, text: &str) -> Result<(), Error> {
    let option = format!("--vary {text}");
    let place = Place::Option(option.as_str().into());
    let Some((key, values)) = text.split_once('=') else {
        let problem = "write KEY=LIST, as in engine.depth=1,4,16";
        return Err(error(&place, "", problem));
    };
    let key = key.trim();
    let new = axis(vec![(key.to_owned(), Node::option(&option, values.trim()))])?;
    let full = table.full_key(key);
    let has = |axis: &SweptAxis| axis.keys.iter().any(|own| table.full_key(own) == full);
    match axes.iter_mut().find(|axis| has(axis)) {
        Some(axis) if axis.keys.len() > 1 => {
            let others: Vec<&str> = axis.keys.iter().map(String::as_str).collect();
            let problem = format!(
                "varies together with others in {}: {}",
                axis.place(),
                others.join(", ")
            );
            Err(error(&place, key, problem))
        }
        Some(axis) if matches!(axis.place(), Place::Option(_)) => {
            Err(error(&place, key, "is varied twice; give one list"))
        }
        Some(axis) => {
            *axis = new;
            Ok(())
        }
        None => {
            axes.push(new);
            Ok(())
        }
    }
}

/// Refuses invalid keys of a scenario, and keys that conflict.
fn check(table: &Table, axes: &[SweptAxis]) -> Result<(), Error> {
    let mut before: Vec<(String, &str, &Place)> = Vec::new();
    let taken = FIRST_COLUMNS
        .iter()
        .chain(&LAST_COLUMNS)
        .copied()
        .chain(columns().iter().map(|column| column.name));
    let taken: Vec<&str> = taken.collect();
    for (key, place) in axes
        .iter()
        .flat_map(|axis| axis.keys.iter().zip(&axis.places))
    {
        let first = key.split('.').next().unwrap_or_default().trim();
        if !Scenario::KEYS.contains(&first) {
            let known = Scenario::KEYS.into_iter().chain(WORDS);
            let guess = did_you_mean(first, known, ".");
            let problem = format!(
                "unknown key{guess} Allowed are the keys of a scenario, such as engine.depth, and {}",
                WORDS.join(", ")
            );
            return Err(error(place, &format!("sweep.{key}"), problem));
        }
        if taken.contains(&key.as_str()) {
            let own = if key == "program" {
                "benchmark"
            } else {
                "profile"
            };
            let problem = format!("is a table; vary its keys, such as {key}.{own}");
            return Err(error(place, &format!("sweep.{key}"), problem));
        }
        let full = table.full_key(key);
        let clash = before.iter().find(|(other, ..)| overlap(other, &full));
        if let Some((_, other, at)) = clash {
            let problem = match *other == key.as_str() {
                true => format!("is swept twice; the other is at {at}"),
                false => format!("{other} at {at} is about the same"),
            };
            return Err(error(place, &format!("sweep.{key}"), problem));
        }
        before.push((full, key, place));
    }
    Ok(())
}

/// True if two full keys are equal, or one is within the other.
fn overlap(one: &str, other: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    within(one, other) || within(other, one)
}

/// The axes that two keys belong to.
fn pair(table: &Table, axes: &[SweptAxis], pair: &Placed<Pair>) -> Result<[usize; 2], Error> {
    let find = |name| {
        axis_of(table, axes, name).map_err(|problem| error(pair.place(), "sweep.pairs", problem))
    };
    let Pair { one, other } = &pair.value;
    let found = [find(one)?, find(other)?];
    if found[0] == found[1] {
        let problem = format!("`{one}` and `{other}` vary together anyhow");
        return Err(error(pair.place(), "sweep.pairs", problem));
    }
    Ok(found)
}
