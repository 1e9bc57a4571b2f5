//! Tables for people.
//!
//! Set by hand rather than by a library: headings that stand over several columns, and nothing else,
//! is what the reports need.

use super::equal::{Served, reasons};
use crate::report::{KindRun, NamedRun, OriginRun, Report, Run};
use headtime_disk::Part;

/// What the terminal is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Whether to use colours and bold letters.
    pub colour: bool,
}

/// On which side a column is flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    /// Left: words.
    Left,
    /// Right: numbers.
    Right,
}

/// A column under way.
#[derive(Clone, Debug)]
pub struct Column {
    group: &'static str,
    heading: String,
    align: Align,
    cells: Vec<String>,
}

impl Column {
    /// Words.
    pub fn words(heading: &str, cells: impl Iterator<Item = String>) -> Column {
        Column {
            group: "",
            heading: heading.to_owned(),
            align: Align::Left,
            cells: cells.collect(),
        }
    }

    /// Numbers.
    pub fn numbers(heading: &str, cells: impl Iterator<Item = String>) -> Column {
        Column {
            align: Align::Right,
            ..Column::words(heading, cells)
        }
    }

    /// Under a heading that it shares with its neighbours of the same group.
    pub fn under(self, group: &'static str) -> Column {
        Column { group, ..self }
    }

    /// Whether all cells are the same.
    fn is_constant(&self) -> bool {
        self.cells.windows(2).all(|pair| pair[0] == pair[1])
    }

    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.heading]);
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn cell(&self, text: &str, width: usize) -> String {
        match self.align {
            Align::Left => format!("{text:<width$}"),
            Align::Right => format!("{text:>width$}"),
        }
    }
}

/// Blanks between columns; groups stand further apart.
const GAP: usize = 2;
const GROUP_GAP: usize = 4;

/// Sets columns side by side, without trailing blanks.
pub fn table(columns: &[Column], terminal: Terminal) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut groups = String::new();
    let mut headings = String::new();
    let mut lines = vec![String::new(); rows];
    let mut group = "";
    for (number, column) in columns.iter().enumerate() {
        let new_group = column.group != group;
        group = column.group;
        let gap = match number {
            0 => 0,
            _ if new_group => GROUP_GAP,
            _ => GAP,
        };
        let mut width = column.width();
        if new_group {
            // A group of one column must not be wider than it.
            let alone = columns
                .get(number + 1)
                .is_none_or(|next| next.group != group);
            if alone {
                width = width.max(group.chars().count());
            }
            let at = headings.chars().count() + gap;
            groups = format!("{groups:<at$}{group}");
        }
        for (line, cell) in lines.iter_mut().zip(&column.cells) {
            line.push_str(&" ".repeat(gap));
            line.push_str(&column.cell(cell, width));
        }
        headings.push_str(&" ".repeat(gap));
        headings.push_str(&column.cell(&column.heading, width));
    }
    let mut text = String::new();
    for heading in [groups, headings] {
        let heading = heading.trim_end();
        if heading.is_empty() {
            continue;
        }
        if terminal.colour {
            text.push_str(&format!("\u{1b}[1m{heading}\u{1b}[0m\n"));
        } else {
            text.push_str(&format!("{heading}\n"));
        }
    }
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// So many digits behind the point that the smallest of some numbers still shows three.
fn places(values: impl Iterator<Item = f64>) -> usize {
    let smallest = values
        .filter(|value| *value != 0.0)
        .fold(f64::INFINITY, |least, value| least.min(value.abs()));
    match smallest {
        size if size < 0.995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    }
}

/// The whole text of a report.
pub(super) fn report(report: &Report, terminal: Terminal) -> String {
    let runs = &report.runs;
    let mut text = String::new();
    if let Some(title) = &report.title {
        text.push_str(title);
        text.push('\n');
    }
    let (shared, options) = options(runs);
    let mut shared: Vec<String> = shared.into_iter().collect();
    shared.push(format!("seed {}", report.seed));
    if let Some(run) = runs.first() {
        if run.warm_up_s > 0.0 {
            shared.push(format!("warm-up {} s", run.warm_up_s));
        }
        if run.repeats > 1 {
            shared.push(format!(
                "{} repeats, ± is the 95 % confidence interval",
                run.repeats
            ));
        }
    }
    text.push_str(&shared.join(", "));
    text.push_str("\n\n");
    let columns: Vec<Column> = options
        .into_iter()
        .chain(figures(runs))
        .chain(parts(runs))
        .collect();
    text.push_str(&table(&columns, terminal));
    let reasons = reasons(&served(runs, &columns));
    if !reasons.is_empty() {
        text.push_str(&format!("\n{}\n", reasons.join("\n")));
    }
    let names = by_name(runs);
    if let Some(programs) = programs(runs).filter(|_| names.is_none()) {
        text.push('\n');
        text.push_str(&table(&programs, terminal));
    }
    if let Some((names, left_out)) = names {
        text.push('\n');
        text.push_str(&table(&names, terminal));
        if left_out > 0 {
            let more = "more names have rows in CSV and JSON";
            text.push_str(&format!("\n{left_out} {more}\n"));
        }
    }
    let failed: u64 = runs.iter().map(|run| run.failed).sum();
    if failed > 0 {
        text.push_str(&format!("\n{failed} requests failed\n"));
    }
    let starved: Vec<String> = runs.iter().filter_map(starved).collect();
    if !starved.is_empty() {
        text.push_str(&format!("\n{}\n", starved.join("\n")));
    }
    text
}

/// The rows of the table, as far as it matters for why some are equal.
fn served(runs: &[Run], columns: &[Column]) -> Vec<Served> {
    let figures = |row: usize| {
        let columns = columns
            .iter()
            .filter(|column| column.heading != "scheduler");
        columns.map(|column| column.cells[row].clone()).collect()
    };
    let rows = runs.iter().enumerate();
    rows.map(|(row, run)| Served {
        name: run.label.clone(),
        of: format!(
            "{} {} {} {} {}",
            run.drive, run.depth, run.firmware, run.merge, run.commit_ahead
        ),
        depth: u64::from(run.depth),
        idled: run.engine.idled,
        chosen: run.engine.chosen,
        overtaken: run.engine.overtaken,
        figures: figures(row),
    })
    .collect()
}

/// What to say of a run that leaves requests behind which are older than any that it served: its
/// figures do not show them. Some older than most are left behind by every run that is stopped.
fn starved(run: &Run) -> Option<String> {
    if run.unfinished == 0 || run.oldest_unfinished_ms <= run.response_ms.max {
        return None;
    }
    let whose: Vec<&OriginRun> = run
        .per_origin
        .iter()
        .filter(|origin| origin.oldest_unfinished_ms > run.response_ms.max)
        .collect();
    let count = match whose.iter().map(|origin| origin.unfinished).sum() {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    };
    let of = match whose[..] {
        [one] if run.per_origin.len() > 1 => format!(" of {}", one.name()),
        _ if whose.len() > 1 => format!(" of {} processes", whose.len()),
        _ => String::new(),
    };
    let oldest = run.oldest_unfinished_ms / 1e3;
    let oldest = match oldest {
        oldest if oldest < 9.995 => format!("{oldest:.2} s"),
        oldest => format!("{oldest:.1} s"),
    };
    Some(format!(
        "{}: {count}{of} unfinished, the oldest for {oldest}",
        run.label
    ))
}

/// What the runs have in common, as words, and what they differ in, as columns.
fn options(runs: &[Run]) -> (Vec<String>, Vec<Column>) {
    let each = |show: fn(&Run) -> String| runs.iter().map(show);
    let on_off = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    let all = [
        Column::words("drive", each(|run| run.drive.clone())),
        Column::words("firmware", each(|run| run.firmware.clone())),
        Column::numbers("depth", each(|run| run.depth.to_string())),
        Column::words("merge", runs.iter().map(|run| on_off(run.merge))),
        Column::words("ahead", runs.iter().map(|run| on_off(run.commit_ahead))),
        Column::numbers("requests", each(|run| run.requests.to_string())),
    ];
    let (mut shared, mut columns) = (Vec::new(), Vec::new());
    let (mut requests, mut differ) = (None, Vec::new());
    for column in all {
        let value = column.cells.first().cloned().unwrap_or_default();
        match (column.heading.as_str(), column.is_constant()) {
            ("requests", true) => shared.push(format!("{value} requests")),
            ("requests", false) => requests = Some(column),
            // The usual goes without saying.
            ("merge", true) if value == "on" => {}
            ("ahead", true) if value == "off" => {}
            ("ahead", true) if runs.iter().all(|run| !run.programs.is_empty()) => {}
            (name, true) => shared.push(format!("{name} {value}")),
            (_, false) => differ.push(column),
        }
    }
    if runs.iter().any(|run| run.hide_processes) {
        shared.push("processes hidden".to_owned());
    }
    columns.extend(differ);
    columns.push(Column::words(
        "scheduler",
        each(|run| run.scheduler.clone()),
    ));
    columns.extend(requests);
    (shared, columns)
}

/// Measured values, each with half the width of its confidence interval if it has one; blank where
/// there is none.
pub fn measured(name: &str, values: &[Option<(f64, Option<f64>)>]) -> Column {
    let places = places(values.iter().flatten().map(|(value, _)| *value));
    let cells = values.iter().map(|value| match value {
        Some((value, Some(half))) => format!("{value:.places$} ±{half:.0$}", places + 1),
        Some((value, None)) => format!("{value:.places$}"),
        None => String::new(),
    });
    Column::numbers(name, cells)
}

fn figures(runs: &[Run]) -> Vec<Column> {
    const RESPONSE: &str = "response ms";
    let number = |name: &str, show: &dyn Fn(&Run) -> (f64, Option<f64>)| {
        let values: Vec<_> = runs.iter().map(|run| Some(show(run))).collect();
        measured(name, &values)
    };
    let fair = !runs.iter().any(|run| run.recorded);
    let fair = fair.then(|| {
        let cells = runs.iter().map(|run| format!("{:.2}", run.fairness));
        Column::numbers("fair", cells)
    });
    let rates = [
        number("IOPS", &|run| (run.iops, run.ci95.map(|ci| ci.iops))),
        number("MB/s", &|run| {
            (run.throughput_mb_s, run.ci95.map(|ci| ci.throughput_mb_s))
        }),
    ];
    let responses = [
        number("mean", &|run| {
            (run.response_ms.mean, run.ci95.map(|ci| ci.response_mean_ms))
        })
        .under(RESPONSE),
        number("p50", &|run| (run.response_ms.p50, None)).under(RESPONSE),
        number("p99", &|run| {
            (run.response_ms.p99, run.ci95.map(|ci| ci.response_p99_ms))
        })
        .under(RESPONSE),
        number("max", &|run| (run.response_ms.max, None)).under(RESPONSE),
    ];
    let bounds = || runs.iter().filter_map(|run| run.bound);
    let longest = bounds().map(|bound| bound.by.len()).max();
    let least = longest.map(|longest| {
        let cells = runs.iter().map(|run| match run.bound {
            Some(bound) => format!("{:.1} {:<longest$}", bound.share, bound.by),
            None => String::new(),
        });
        Column::numbers("% of bound", cells)
    });
    let rates = rates.into_iter().chain(least);
    rates.chain(fair).chain(responses).collect()
}

/// What the programs of each run achieved; nothing if there are none.
fn programs(runs: &[Run]) -> Option<Vec<Column>> {
    /// More programs than that are summed up.
    const EACH: usize = 8;
    const ENDED: &str = "ended s";
    const RATES: &str = "MB/s";
    let first = &runs.first()?.programs;
    if first.is_empty() {
        return None;
    }
    let numbers = |runs: &[Run], value: &dyn Fn(&Run) -> Option<f64>| -> Vec<String> {
        let values: Vec<Option<f64>> = runs.iter().map(value).collect();
        let places = places(values.iter().flatten().copied());
        let show = |value: &Option<f64>| match value {
            Some(value) => format!("{value:.places$}"),
            None => "running".to_owned(),
        };
        values.iter().map(show).collect()
    };
    let column = |name: &str, group, value: &dyn Fn(&Run) -> Option<f64>| {
        Column::numbers(name, numbers(runs, value).into_iter()).under(group)
    };
    let mut columns = vec![Column::words("", runs.iter().map(|run| run.label.clone()))];
    if first.len() <= EACH {
        for (index, program) in first.iter().enumerate() {
            let name = &program.name;
            let ended = |run: &Run| run.programs[index].ended_s;
            columns.push(column(name, ENDED, &ended));
        }
        for (index, program) in first.iter().enumerate() {
            let rate = |run: &Run| Some(run.programs[index].throughput_mb_s);
            columns.push(column(&program.name, RATES, &rate));
        }
    } else {
        let ends = |run: &Run| {
            let ends = run.programs.iter().map(|program| program.ended_s);
            ends.collect::<Option<Vec<f64>>>()
        };
        let rates = |run: &Run, pick: fn(f64, f64) -> f64| {
            let rates = run.programs.iter().map(|program| program.throughput_mb_s);
            rates.reduce(pick)
        };
        let least = |run: &Run| ends(run)?.into_iter().reduce(f64::min);
        let most = |run: &Run| ends(run)?.into_iter().reduce(f64::max);
        columns.push(column("first", ENDED, &least));
        columns.push(column("last", ENDED, &most));
        columns.push(column("least", RATES, &|run| rates(run, f64::min)));
        columns.push(column("most", RATES, &|run| rates(run, f64::max)));
    }
    Some(columns)
}

/// What each name got in each run, a row for each, its reads and writes apart, and how many names
/// are left out. Nothing if there is one alone, or all are programs of one kind, which have columns.
fn by_name(runs: &[Run]) -> Option<(Vec<Column>, usize)> {
    /// More names than that are left out.
    const EACH: usize = 12;
    let first = runs.first()?;
    let one_kind = first
        .programs
        .windows(2)
        .all(|pair| pair[0].entry == pair[1].entry);
    if first.by_name.len() < 2 || (!first.programs.is_empty() && one_kind) {
        return None;
    }
    let rows: Vec<(&Run, &NamedRun)> = runs
        .iter()
        .flat_map(|run| run.by_name.iter().take(EACH).map(move |named| (run, named)))
        .collect();
    let mut before = "";
    let labels: Vec<String> = rows
        .iter()
        .map(
            |(run, _)| match std::mem::replace(&mut before, &run.label) {
                // Said once, in front of the first of its names.
                same if same == run.label => String::new(),
                _ => run.label.clone(),
            },
        )
        .collect();
    let mut columns = vec![
        Column::words("scheduler", labels.into_iter()),
        Column::words("who", rows.iter().map(|(_, named)| named.name.clone())),
    ];
    if !first.programs.is_empty() {
        let program = |run: &Run, named: &NamedRun| -> Option<(Option<f64>, f64)> {
            let index = (named.program as usize).checked_sub(1)?;
            let program = run.programs.get(index)?;
            Some((program.ended_s, program.throughput_mb_s))
        };
        let of: Vec<_> = rows
            .iter()
            .map(|(run, named)| program(run, named))
            .collect();
        let ends: Vec<f64> = of.iter().flatten().filter_map(|(end, _)| *end).collect();
        let places = places(ends.into_iter());
        let ends = of.iter().map(|program| match program {
            Some((Some(end), _)) => format!("{end:.places$}"),
            Some((None, _)) => "running".to_owned(),
            None => String::new(),
        });
        columns.push(Column::numbers("ended s", ends).under("program"));
        let rates: Vec<_> = of
            .iter()
            .map(|one| one.map(|(_, rate)| (rate, None)))
            .collect();
        columns.push(measured("MB/s", &rates).under("program"));
    }
    type Kind = fn(&NamedRun) -> Option<&KindRun>;
    type Value = fn(&KindRun) -> f64;
    let kinds: [(&str, Kind); 2] = [
        ("reads", |named| named.of_reads.as_ref()),
        ("writes", |named| named.of_writes.as_ref()),
    ];
    for (group, kind) in kinds {
        if rows.iter().all(|(_, named)| kind(named).is_none()) {
            continue;
        }
        let values: [(&str, Value); 5] = [
            ("IOPS", |of| of.iops),
            ("MB/s", |of| of.throughput_mb_s),
            ("mean ms", |of| of.response_ms.mean),
            ("p99 ms", |of| of.response_ms.p99),
            ("max ms", |of| of.response_ms.max),
        ];
        for (name, value) in values {
            let values: Vec<_> = rows
                .iter()
                .map(|(_, named)| kind(named).map(|of| (value(of), None)))
                .collect();
            columns.push(measured(name, &values).under(group));
        }
    }
    if rows
        .iter()
        .any(|(_, named)| named.unfinished > 0 && named.requests == 0)
    {
        let unfinished = rows.iter().map(|(_, named)| named.unfinished.to_string());
        columns.push(Column::numbers("unfinished", unfinished));
    }
    Some((columns, first.by_name.len().saturating_sub(EACH)))
}

/// Shares of the head time that round to more than nothing in some run.
fn parts(runs: &[Run]) -> Vec<Column> {
    let shares = |part: Part| runs.iter().map(move |run| run.head_time.share(part));
    Part::ALL
        .into_iter()
        .filter(|part| shares(*part).any(|share| share >= 0.05))
        .map(|part| {
            let cells = shares(part).map(|share| format!("{share:.1}"));
            Column::numbers(part.name(), cells).under("head time %")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_flush_and_headings_bold_on_a_terminal() {
        let cells = |a: &str, b: &str| [a.to_owned(), b.to_owned()].into_iter();
        let columns = [
            Column::words("name", cells("a", "longer")),
            Column::numbers("x", cells("1", "200")).under("both"),
            Column::numbers("y", cells("1.5", "2.25")).under("both"),
            Column::numbers("z", cells("7", "8")).under("wider than it"),
        ];
        let plain = table(&columns, Terminal::default());
        let expected = "          both         wider than it
name        x     y                z
a           1   1.5                7
longer    200  2.25                8
";
        assert_eq!(plain, expected);
        let colour = table(&columns[..1], Terminal { colour: true });
        assert_eq!(colour, "\u{1b}[1mname\u{1b}[0m\na\nlonger\n");
    }

    #[test]
    fn the_smallest_number_shows_three_digits() {
        for (values, expected) in [
            (vec![0.0], 0),
            (vec![0.1234, 50.0], 3),
            (vec![1.0, 1000.0], 2),
            (vec![99.94], 1),
            (vec![99.96, 12_345.0], 0),
        ] {
            assert_eq!(places(values.iter().copied()), expected, "{values:?}");
        }
    }
}
