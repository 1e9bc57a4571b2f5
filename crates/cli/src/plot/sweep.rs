//! Arranges the results of a sweep as a picture. Values lie along axes, or have lines and charts of their own.

use super::multiples::{self, ACROSS_MAX, Block, Chart, ChartPoint, ChartRow, Multiples, numbers};
use crate::args::PictureArgs;
use headtime_lab::fault::{Fault, did_you_mean};
use headtime_lab::report::Run;
use headtime_lab::report::catalogue::{Measure, ci95, columns};
use headtime_lab::report::field::Field;
use headtime_lab::report::row::Row;
use headtime_lab::sweep::output::{chosen, of_cell};
use headtime_lab::sweep::plan::Plan;
use headtime_lab::sweep::results::{Outcome, Results};
use headtime_lab::sweep::{Mode, column_of, lists};
use std::collections::BTreeSet;

/// Largest number of charts of a picture, and of series of a chart.
const CHARTS_MAX: usize = 96;
const SERIES_MAX: usize = 24;

/// A key or option in which combinations differ.
#[derive(Clone, Debug)]
struct Dimension {
    /// Name in the scenario or in the results.
    name: String,
    /// Other names.
    aliases: Vec<String>,
    /// Values, in the order of the sweep.
    values: Vec<String>,
    /// Index of each combination's value.
    of: Vec<usize>,
    /// Index of the value that is used while other dimensions vary. `None` if the dimension is not swept.
    base: Option<usize>,
}

impl Dimension {
    fn is_numeric(&self) -> bool {
        numbers(self.values.iter().map(String::as_str)).is_some()
    }

    /// True if a text is one of the dimension's names.
    fn is_called(&self, text: &str) -> bool {
        let names = || std::iter::once(&self.name).chain(&self.aliases);
        names().any(|name| name == text)
    }

    fn ends_in(&self, text: &str) -> bool {
        let names = || std::iter::once(&self.name).chain(&self.aliases);
        names().any(|name| name.ends_with(&format!(".{text}")))
    }

    fn title(&self, value: usize) -> String {
        let name = self.name.rsplit('.').next().unwrap_or(&self.name);
        format!("{name} {}", self.values[value])
    }
}

/// Plan of a picture, without measured values.
#[derive(Clone, Debug)]
pub struct Drawing {
    metrics: Vec<&'static Measure>,
    /// Charts without values of points.
    parts: Vec<Block>,
    /// Restrictions on the combinations, in words.
    only: Vec<String>,
}

impl Drawing {
    /// Plans a picture before any run. Returns `None` if no picture is `wanted`.
    ///
    /// # Errors
    ///
    /// If an option names something that does not exist, or if there would be too many charts.
    pub fn new(plan: &Plan, wishes: &PictureArgs, wanted: bool) -> Result<Option<Drawing>, Fault> {
        let metrics = wishes.metric.iter().map(|name| metric(name));
        let metrics = metrics.collect::<Result<Vec<_>, _>>()?;
        let mut all = dimensions(plan);
        let mut shown: Vec<usize> = (0..plan.combinations.len()).collect();
        for text in &wishes.only {
            only(&mut all, &mut shown, text)?;
        }
        let mut roles = [None; 4];
        let wished = [
            ("--x", &wishes.x),
            ("--series", &wishes.series),
            ("--panel", &wishes.panel),
            ("--rows", &wishes.rows),
        ];
        for (at, (option, name)) in wished.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let found = find(&all, option, name)?;
            if roles.contains(&Some(found)) {
                return Err(Fault::Usage(format!(
                    "{option} {name}: has another place in the picture already"
                )));
            }
            roles[at] = Some(found);
        }
        if !wanted {
            return Ok(None);
        }
        let each = plan.sweep.mode == Mode::Each;
        let parts = match each && roles.iter().all(Option::is_none) {
            true => alone(plan, &all, &shown),
            false => {
                if each {
                    at_base(&mut all, &mut shown, &roles);
                }
                crossed(&all, &shown, roles)
            }
        };
        let series = parts.iter().map(|part| part.series.len()).max();
        let charts = parts.iter().flat_map(|part| &part.rows);
        let charts: usize = charts.map(|row| row.charts.len()).sum();
        let charts = charts * metrics.len();
        if charts > CHARTS_MAX || series.is_some_and(|series| series > SERIES_MAX) {
            return Err(Fault::Usage(format!(
                "a picture would have {charts} charts of {} lines; at most {CHARTS_MAX} of {SERIES_MAX} \
                 can be read. --only KEY=VALUE shows less, --x, --series, --panel and --rows arrange it",
                series.unwrap_or(0)
            )));
        }
        Ok(Some(Drawing {
            metrics,
            parts,
            only: wishes.only.clone(),
        }))
    }

    /// Returns the picture as SVG text.
    pub fn draw(&self, plan: &Plan, results: &Results) -> String {
        let (shared, _) = chosen(plan, &results.0);
        let mut said = shared.join(" · ");
        if !self.only.is_empty() {
            said.push_str(&format!(" · shown: {}", self.only.join(", ")));
        }
        said.push_str(&format!(
            " · scenario {} · headtime {}",
            plan.hash,
            env!("CARGO_PKG_VERSION")
        ));
        let blocks = self.metrics.iter().flat_map(|metric| {
            let parts = self.parts.iter();
            parts.map(move |part| measured(part, metric, &results.0))
        });
        multiples::draw(&Multiples {
            title: plan.title.clone().unwrap_or_else(|| "Sweep".to_owned()),
            subtitle: said,
            blocks: blocks.collect(),
        })
    }
}

/// Returns the charts of a block with the values of a column.
fn measured(part: &Block, metric: &Measure, outcomes: &[Outcome]) -> Block {
    let value = |number: usize, column: &Measure| outcomes[number].whole(column.name)?.number();
    let mut block = part.clone();
    block.heading = match part.heading.as_str() {
        "" => label(metric),
        heading => format!("{}, {heading}", label(metric)),
    };
    let charts = block.rows.iter_mut().flat_map(|row| &mut row.charts);
    for point in charts.flat_map(|chart| &mut chart.points) {
        point.measured = value(point.of, metric);
        point.half = ci95(metric).and_then(|half| value(point.of, half));
    }
    block
}

/// Finds a column that a picture can show.
fn metric(name: &str) -> Result<&'static Measure, Fault> {
    let nothing = Run::default();
    let is_number = |column: &&Measure| {
        let field = column.of(&Row::Whole(&nothing));
        !matches!(field, Field::Text(_) | Field::Flag(_))
    };
    let found = columns()
        .iter()
        .filter(is_number)
        .find(|column| column.name == name);
    found.ok_or_else(|| {
        let names = columns().iter().filter(is_number).map(|column| column.name);
        let names: Vec<&str> = names.collect();
        let guess = did_you_mean(name, names.iter().copied(), ".");
        Fault::Usage(format!(
            "--metric {name}: no column of numbers is called that{guess} There are {}",
            names.join(", ")
        ))
    })
}

/// Names a column in words: its name without the unit, and then the unit.
fn label(column: &Measure) -> String {
    let name = ["_mb_s", "_ms", "_s", "_pct", "_mb"]
        .iter()
        .find_map(|ending| column.name.strip_suffix(ending))
        .unwrap_or(column.name);
    let name = name.replace('_', " ");
    match column.unit {
        "" => name,
        unit => format!("{name} ({unit})"),
    }
}

/// Returns the dimensions in which combinations differ: swept keys, and the scenario's own lists.
fn dimensions(plan: &Plan) -> Vec<Dimension> {
    let all = &plan.combinations;
    let mut found = Vec::new();
    for (place, axis) in plan.sweep.axes.iter().enumerate() {
        let steps: Vec<usize> = all.iter().map(|one| one.choice[place]).collect();
        let first = |step: usize| axis.step(step)[0].value.text();
        let firsts: Vec<String> = (0..axis.len()).map(first).collect();
        // Keys that vary together are shown as the first key, unless the first key has equal values at several steps.
        let distinct = firsts.iter().collect::<BTreeSet<_>>().len() == firsts.len();
        let values = match distinct {
            true => firsts,
            false => (0..axis.len()).map(|step| axis.text(step)).collect(),
        };
        let mut aliases: Vec<String> = axis.keys[1..].to_vec();
        let columns = axis.keys.iter().filter_map(|key| column_of(key));
        aliases.extend(columns.map(str::to_owned));
        found.push(Dimension {
            name: axis.name().to_owned(),
            aliases,
            values,
            of: steps,
            base: Some(axis.base),
        });
    }
    for (key, column) in lists() {
        let cells: Vec<String> = all
            .iter()
            .map(|one| of_cell(one, column).to_string())
            .collect();
        let mut pairs = all.windows(2).zip(cells.windows(2));
        if !pairs.any(|(two, of)| two[0].choice == two[1].choice && of[0] != of[1]) {
            continue;
        }
        let mut values: Vec<String> = Vec::new();
        let of = cells.iter().map(|cell| {
            let known = values.iter().position(|value| value == cell);
            known.unwrap_or_else(|| {
                values.push(cell.clone());
                values.len() - 1
            })
        });
        let of = of.collect();
        found.push(Dimension {
            name: column.to_owned(),
            aliases: vec![key],
            values,
            of,
            base: None,
        });
    }
    found.retain(|dimension| dimension.values.len() > 1);
    found
}

/// Finds the dimension that a text names.
fn find(all: &[Dimension], option: &str, text: &str) -> Result<usize, Fault> {
    if let Some(found) = all.iter().position(|one| one.is_called(text)) {
        return Ok(found);
    }
    let names = |of: &dyn Fn(&&Dimension) -> bool| -> Vec<&str> {
        all.iter().filter(of).map(|one| one.name.as_str()).collect()
    };
    let ending = names(&|one| one.ends_in(text));
    match ending[..] {
        [_] => Ok(all.iter().position(|one| one.ends_in(text)).unwrap_or(0)),
        [] => {
            let guess = did_you_mean(text, all.iter().map(|one| one.name.as_str()), ".");
            let all = names(&|_| true);
            let there = match all[..] {
                [] => "Nothing varies".to_owned(),
                _ => format!("What varies is {}", all.join(", ")),
            };
            Err(Fault::Usage(format!(
                "{option} {text}: does not vary{guess} {there}"
            )))
        }
        _ => Err(Fault::Usage(format!(
            "{option} {text}: may mean {}; write more of it",
            ending.join(" or ")
        ))),
    }
}

/// Keeps only combinations with one value of a dimension.
fn only(all: &mut Vec<Dimension>, shown: &mut Vec<usize>, text: &str) -> Result<(), Fault> {
    let option = "--only";
    let (key, value) = text.split_once('=').ok_or_else(|| {
        Fault::Usage(format!(
            "{option} {text}: write KEY=VALUE, as in engine.depth=4"
        ))
    })?;
    let (key, value) = (key.trim(), value.trim());
    let found = find(all, option, key)?;
    let dimension = all.remove(found);
    let wanted = dimension.values.iter().position(|own| own == value);
    let wanted = wanted.ok_or_else(|| {
        let values = dimension.values.join(", ");
        Fault::Usage(format!("{option} {text}: {} has {values}", dimension.name))
    })?;
    shown.retain(|number| dimension.of[*number] == wanted);
    Ok(())
}

/// Keeps only combinations in which each dimension without a place in the picture has the scenario's value.
fn at_base(all: &mut [Dimension], shown: &mut Vec<usize>, roles: &[Option<usize>; 4]) {
    for (at, dimension) in all.iter().enumerate() {
        if let (Some(base), false) = (dimension.base, roles.contains(&Some(at))) {
            shown.retain(|number| dimension.of[*number] == base);
        }
    }
}

/// True if a dimension still has several values.
fn varies(dimension: &Dimension, shown: &[usize]) -> bool {
    let mut values = shown.iter().map(|number| dimension.of[*number]);
    let first = values.next();
    values.any(|value| Some(value) != first)
}

/// Returns the joint values of some dimensions that occur, in their order, and the index of each combination's joint value.
fn together(all: &[Dimension], of: &[usize], shown: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let value = |number: &usize| -> Vec<usize> {
        of.iter()
            .map(|&dimension| all[dimension].of[*number])
            .collect()
    };
    let mut values: Vec<Vec<usize>> = shown.iter().map(value).collect();
    values.sort();
    values.dedup();
    let place = |number: &usize| {
        let found = values.binary_search(&value(number));
        found.expect("the values are those of the combinations")
    };
    let places = shown.iter().map(place).collect();
    (values, places)
}

fn titles(all: &[Dimension], of: &[usize], values: &[usize]) -> String {
    let pairs = of.iter().zip(values);
    let titles = pairs.map(|(&dimension, &value)| all[dimension].title(value));
    titles.collect::<Vec<_>>().join(", ")
}

/// Returns names of series: values of a single dimension, or names and values of several.
fn series_names(all: &[Dimension], of: &[usize], values: &[Vec<usize>]) -> Vec<String> {
    let name = |value: &Vec<usize>| match of {
        [one] => all[*one].values[value[0]].clone(),
        several => {
            let pairs = several.iter().zip(value);
            let texts = pairs.map(|(&dimension, &value)| {
                // Values that are words need no name.
                match all[dimension].is_numeric()
                    || all[dimension].values[value].parse::<bool>().is_ok()
                {
                    true => all[dimension].title(value),
                    false => all[dimension].values[value].clone(),
                }
            });
            texts.collect::<Vec<_>>().join(", ")
        }
    };
    values.iter().map(name).collect()
}

fn names(all: &[Dimension], of: &[usize]) -> String {
    let names: Vec<&str> = of.iter().map(|&at| all[at].name.as_str()).collect();
    names.join(", ")
}

/// Returns charts of all combinations. Each dimension without a place gets one. If drives have rows, each drive has its own scale:
/// drives differ by more than schedulers on one drive.
fn crossed(all: &[Dimension], shown: &[usize], roles: [Option<usize>; 4]) -> Vec<Block> {
    let [mut x, mut series, mut panel, mut rows] = roles;
    let taken = roles.into_iter().flatten();
    let taken: Vec<usize> = taken.collect();
    let free = (0..all.len()).filter(|at| !taken.contains(at) && varies(&all[*at], shown));
    let mut free: Vec<usize> = free.collect();
    let is_scheduler = |at: &usize| all[*at].is_called("scheduler");
    let count = |at: &usize| all[*at].values.len();
    let take = |free: &mut Vec<usize>, best: Option<usize>| {
        free.retain(|at| Some(*at) != best);
        best
    };
    // Of dimensions with equally many values, the first is taken.
    let most = |free: &[usize], fits: &dyn Fn(&usize) -> bool| {
        free.iter()
            .rev()
            .filter(|at| fits(at))
            .max_by_key(|at| count(at))
            .copied()
    };
    if x.is_none() {
        let best = most(&free, &|at| all[*at].is_numeric())
            .or_else(|| most(&free, &|at| !is_scheduler(at)))
            .or_else(|| free.first().copied());
        x = take(&mut free, best);
    }
    if series.is_none() {
        let best = free.iter().copied().find(is_scheduler);
        let best = best.or_else(|| most(&free, &|at| count(at) <= ACROSS_MAX));
        series = take(&mut free, best);
    }
    if panel.is_none() {
        let best = most(&free, &|at| count(at) <= ACROSS_MAX).or_else(|| most(&free, &|_| true));
        panel = take(&mut free, best);
    }
    if rows.is_none() {
        let best = most(&free, &|_| true);
        rows = take(&mut free, best);
    }
    // The remaining dimensions are drawn as rows too.
    let of_rows = rows.into_iter().chain(free);
    let (drives, rows) = of_rows.partition(|at| all[*at].is_called("drive"));
    let roles = Roles {
        x,
        series: series.into_iter().collect(),
        panels: panel.into_iter().collect(),
        rows,
    };
    let apart = apart(all, &drives, shown).into_iter();
    let parts = apart.map(|(name, own)| roles.part(name, all, &own));
    parts.collect()
}

/// Groups combinations by the joint value of some dimensions, with the name of the value. Without dimensions there is one group without
/// a name.
fn apart(all: &[Dimension], of: &[usize], shown: &[usize]) -> Vec<(String, Vec<usize>)> {
    let (groups, in_group) = together(all, of, shown);
    let groups = groups.iter().enumerate().map(|(group, values)| {
        let own = shown.iter().zip(&in_group);
        let own = own.filter(|(_, place)| **place == group);
        let own = own.map(|(number, _)| *number).collect();
        (titles(all, of, values), own)
    });
    groups.collect()
}

/// Roles of dimensions: the axis, the lines, the charts and the rows.
struct Roles {
    x: Option<usize>,
    series: Vec<usize>,
    panels: Vec<usize>,
    rows: Vec<usize>,
}

impl Roles {
    fn part(&self, heading: String, all: &[Dimension], shown: &[usize]) -> Block {
        let (series, in_series) = together(all, &self.series, shown);
        let (rows, in_row) = together(all, &self.rows, shown);
        let (panels, in_panel) = together(all, &self.panels, shown);
        let axis = self.x.map(|x| &all[x]);
        let spot = |row: usize, panel: usize| {
            let of = shown.iter().enumerate();
            let of = of.filter(|(place, _)| in_row[*place] == row && in_panel[*place] == panel);
            let points = of.map(|(place, &number)| {
                let at = axis.map_or(0, |axis| axis.of[number]);
                ChartPoint::new(in_series[place], at, number)
            });
            Chart {
                title: titles(all, &self.panels, &panels[panel]),
                x: axis.map_or(String::new(), |axis| axis.name.clone()),
                values: axis.map_or_else(|| vec![String::new()], |axis| axis.values.clone()),
                points: points.collect(),
            }
        };
        let lines = rows.iter().enumerate().flat_map(|(row, values)| {
            let spots = (0..panels.len()).map(|panel| spot(row, panel));
            wrapped(titles(all, &self.rows, values), spots.collect())
        });
        Block {
            heading,
            of_series: names(all, &self.series),
            series: series_names(all, &self.series, &series),
            rows: lines.collect(),
        }
    }
}

/// Places charts side by side, in several rows if there are many.
fn wrapped(name: String, spots: Vec<Chart>) -> Vec<ChartRow> {
    let across = match spots.len() {
        0..=4 => 4,
        5..=6 => 3,
        7..=8 => 4,
        9..=10 => 5,
        _ => 6,
    };
    let rows = spots.chunks(across).enumerate();
    rows.map(|(number, spots)| ChartRow {
        name: if number == 0 {
            name.clone()
        } else {
            String::new()
        },
        charts: spots.to_vec(),
    })
    .collect()
}

/// Returns the charts of mode `each`: a chart for each key, and one for each pair. Lists of the scenario other than schedulers have
/// charts with their own scale, since drives differ by more than schedulers do.
fn alone(plan: &Plan, all: &[Dimension], shown: &[usize]) -> Vec<Block> {
    let of_lists = |at: &usize| all[*at].base.is_none();
    let of_lists: Vec<usize> = (0..all.len()).filter(of_lists).collect();
    let is_scheduler = |at: &usize| all[*at].is_called("scheduler");
    let (series, apart): (Vec<usize>, Vec<usize>) = match of_lists.iter().any(is_scheduler) {
        true => of_lists.iter().partition(|at| is_scheduler(at)),
        false => (of_lists, Vec::new()),
    };
    let groups = self::apart(all, &apart, shown).into_iter();
    let parts = groups.flat_map(|(name, own)| alone_of(plan, all, &own, &series, &name));
    parts.collect()
}

/// Returns the charts of some combinations, with a line for each value of `series`. `name` distinguishes these combinations from the
/// others.
fn alone_of(
    plan: &Plan,
    all: &[Dimension],
    shown: &[usize],
    series: &[usize],
    name: &str,
) -> Vec<Block> {
    let swept: Vec<usize> = (0..all.len())
        .filter(|at| all[*at].base.is_some())
        .collect();
    let headed = |heading: String| match name {
        "" => heading,
        name => format!("{name}, {heading}"),
    };
    // Combinations in which all other dimensions are as in the scenario.
    let around = |own: &[usize]| -> Vec<usize> {
        let at_base = |number: &&usize| {
            let mut others = swept.iter().filter(|at| !own.contains(at));
            others.all(|at| Some(all[*at].of[**number]) == all[*at].base)
        };
        shown.iter().filter(at_base).copied().collect()
    };
    let chart = |title: String, x: usize, shown: &[usize], in_series: &[usize]| Chart {
        title,
        x: all[x].name.clone(),
        values: all[x].values.clone(),
        points: shown
            .iter()
            .zip(in_series)
            .map(|(&number, &series)| ChartPoint::new(series, all[x].of[number], number))
            .collect(),
    };
    let mut parts = Vec::new();
    let (values, _) = together(all, series, shown);
    let spots = swept.iter().map(|&x| {
        let own = around(&[x]);
        let in_series: Vec<usize> = own
            .iter()
            .map(|number| {
                let value: Vec<usize> = series.iter().map(|&at| all[at].of[*number]).collect();
                values.iter().position(|other| *other == value).unwrap_or(0)
            })
            .collect();
        chart(String::new(), x, &own, &in_series)
    });
    parts.push(Block {
        heading: headed("each key alone".to_owned()),
        of_series: names(all, series),
        series: series_names(all, series, &values),
        rows: wrapped(String::new(), spots.collect()),
    });
    for [one, other] in &plan.sweep.pairs {
        let find = |axis: usize| {
            let name = plan.sweep.axes[axis].name();
            all.iter().position(|dimension| dimension.name == name)
        };
        // A key with a single value belongs to no pair.
        let (Some(one), Some(other)) = (find(*one), find(*other)) else {
            continue;
        };
        let (x, beside) = match (all[one].is_numeric(), all[other].is_numeric()) {
            (false, true) => (other, one),
            _ => (one, other),
        };
        let own = around(&[x, beside]);
        let heading = headed(format!("{} with {}", all[x].name, all[beside].name));
        // Lines stand for the values that the scenario compares. Without such values, or with too many charts, lines stand for the
        // other key too.
        let side_by_side = !series.is_empty() && all[beside].values.len() <= ACROSS_MAX;
        let (panel_of, series_of) = match side_by_side {
            true => (vec![beside], series.to_vec()),
            false => (Vec::new(), [&[beside][..], series].concat()),
        };
        let roles = Roles {
            x: Some(x),
            series: series_of,
            panels: panel_of,
            rows: Vec::new(),
        };
        parts.push(roles.part(heading, all, &own));
    }
    parts
}
