//! A report in its three forms: tables for people, JSON, CSV.

use super::catalogue::{Measure, ci95, column, columns};
use super::field::Field;
use super::row::{Level, Row};
use super::{
    FreeblockRun, KindRun, KindValue, NamedRun, OriginRun, ProgramRun, Report, Run, Spread,
};
use crate::output::{
    self, Contrasted, Served, TableColumn, Terminal, contrasts, line, measured, places, reasons,
    table_that_fits,
};
use crate::scenario::{Header, short};
use headtime_config::Value;
use headtime_disk::Part;
use headtime_engine::EngineSpec;

/// CSV: a heading, and a line for each row of a level. Without a level each run has a line, and below come lines for its names, if there are
/// several, and for the disks of an array.
pub fn csv(report: &Report, level: Option<Level>) -> String {
    let mut text = line(headings().into_iter().map(str::to_owned));
    for row in rows(report, level) {
        text.push_str(&line(row.iter().map(Field::to_string)));
    }
    text
}

/// Headings of [`csv`].
pub fn headings() -> Vec<&'static str> {
    let names = columns().iter().map(|column| column.name);
    ["origin"].into_iter().chain(names).collect()
}

/// Rows of [`csv`].
pub fn rows(report: &Report, level: Option<Level>) -> impl Iterator<Item = Vec<Field>> {
    let rows = report.runs.iter().flat_map(move |run| match level {
        Some(level) => Row::of_level(run, level),
        None => Row::all(run),
    });
    let rows = rows.filter(move |row| level.is_some() || !matches!(row, Row::Origin(..)));
    rows.map(|row| {
        let fields = columns().iter().map(|column| column.of(&row));
        [Field::Text(row.name())]
            .into_iter()
            .chain(fields)
            .collect()
    })
}

/// The whole text of a report.
pub fn text(report: &Report, terminal: Terminal) -> String {
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
        if !run.members.is_empty() {
            shared.insert(0, format!("{} disks in an array", run.members.len()));
        }
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
    let columns: Vec<TableColumn> = options.into_iter().chain(measured_columns(runs)).collect();
    text.push_str(&table_that_fits(&columns, terminal));
    let shown = columns
        .iter()
        .filter(|column| column.heading != "scheduler");
    let rows = runs.iter().enumerate().filter_map(|(row, run)| {
        let field = |name: &str| Some(column(name)?.of(&Row::Whole(run)));
        let figures = shown.clone().map(|column| column.cells[row].clone());
        served(run.label.clone(), Vec::new(), field, figures.collect())
    });
    let reasons = reasons(&rows.collect::<Vec<_>>());
    if !reasons.is_empty() {
        text.push_str(&format!("\n{}\n", reasons.join("\n")));
    }
    if let Some(members) = members(runs) {
        text.push('\n');
        text.push_str(&table_that_fits(&members, terminal));
    }
    let names = by_name(runs);
    if let Some(programs) = programs(runs).filter(|_| names.is_none()) {
        text.push('\n');
        text.push_str(&table_that_fits(&programs, terminal));
    }
    if let Some((names, left_out)) = names {
        text.push('\n');
        text.push_str(&table_that_fits(&names, terminal));
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
    // A scheduler that knows the future is no choice for a user.
    let real = runs
        .iter()
        .filter(|run| !run.scheduler.starts_with("clairvoyant"));
    let by_name = by_name(runs).is_some();
    let rows: Vec<_> = real.map(|run| contrasted(run, by_name)).collect();
    let contrasts = contrasts(&rows);
    if !contrasts.is_empty() {
        text.push_str(&format!("\n{}\n", contrasts.join("\n")));
    }
    text
}

/// A run by its parts: workloads or programs with names of their own, or all requests.
fn contrasted(run: &Run, by_name: bool) -> Contrasted {
    let part = |name: &str, rate: f64, response_ms: &Spread| output::Part {
        name: name.to_owned(),
        rate,
        p99_ms: response_ms.p99,
    };
    let named = run.by_name.iter();
    let named = named.map(|named| part(&named.name, named.throughput_mb_s, &named.response_ms));
    let of = run.header.columns().filter(|(key, _)| *key != "gate");
    Contrasted {
        name: run.label.clone(),
        of: format!("{} {:?}", run.drive, of.collect::<Vec<_>>()),
        parts: match by_name {
            true => named.collect(),
            false => vec![part("", run.throughput_mb_s, &run.response_ms)],
        },
    }
}

/// A row of a table with the values that explain why some are equal. `field` gives the value of a column, `of` is run beside the options.
pub fn served(
    name: String,
    of: Vec<String>,
    field: impl Fn(&str) -> Option<Field>,
    figures: Vec<String>,
) -> Option<Served> {
    let count = |name| match field(name) {
        Some(Field::Count(count)) => Some(count),
        _ => None,
    };
    let options = std::iter::once("drive").chain(Header::names());
    let options = options.filter_map(|name| Some(field(name)?.to_string()));
    Some(Served {
        name,
        of: of.into_iter().chain(options).collect::<Vec<_>>().join(" "),
        depth: count("depth")?,
        idled: count("idled")?,
        chosen: count("chosen")?,
        overtaken: count("overtaken")?,
        figures,
    })
}

/// Warning for a run whose unfinished requests include one older than every served request, since its figures do not show that. Every run
/// that is stopped leaves some requests that are older than most.
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

/// Words that all runs share, and columns in which runs differ.
fn options(runs: &[Run]) -> (Vec<String>, Vec<TableColumn>) {
    let each = |show: fn(&Run) -> String| runs.iter().map(show);
    let on_off = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    let requests = TableColumn::numbers("requests", each(|run| run.requests.to_string()));
    let mut all = vec![
        TableColumn::words("drive", each(|run| run.drive.clone())),
        TableColumn::words("firmware", each(|run| run.header.text("firmware"))),
        TableColumn::numbers("depth", each(|run| run.header.text("depth"))),
    ];
    // Usual values are left out. So is the depth of the engine, which is a gate too.
    for (key, usual) in Header::default().words() {
        let column = TableColumn::words(key, runs.iter().map(|run| run.header.text(key)));
        if !column.is_constant() || column.cells.iter().any(|value| value != usual) {
            all.push(column);
        }
    }
    let is_host = runs.iter().all(|run| !run.programs.is_empty());
    let (plain, host) = (EngineSpec::default(), EngineSpec::linux_2_6());
    let usual = Header::new(if is_host { &host } else { &plain }, "");
    let switches = runs
        .first()
        .into_iter()
        .flat_map(|run| run.header.switches());
    let (mut shared, mut differ) = (Vec::new(), Vec::new());
    for (key, _) in switches {
        let on = |run: &Run| run.header.get(key) == Some(&Value::Flag(true));
        let column = TableColumn::words(short(key), runs.iter().map(|run| on_off(on(run))));
        // Usual values are left out.
        let is_usual = || runs.iter().all(|run| run.header.get(key) == usual.get(key));
        if !column.is_constant() || !is_usual() {
            all.push(column);
        }
    }
    for column in all {
        let value = column.cells.first().cloned().unwrap_or_default();
        match (column.heading.as_str(), column.is_constant()) {
            ("processes", true) => {}
            (name, true) => shared.push(format!("{name} {value}")),
            (_, false) => differ.push(column),
        }
    }
    let requests = match requests.is_constant() {
        true => {
            let count = requests.cells.first().cloned().unwrap_or_default();
            shared.push(format!("{count} requests"));
            None
        }
        false => Some(requests),
    };
    if runs.iter().all(|run| run.header.engine.hide_processes) {
        shared.push("processes hidden".to_owned());
    }
    let mut columns = Vec::new();
    columns.extend(differ);
    columns.push(TableColumn::words("scheduler", each(Run::schedulers)));
    columns.extend(requests);
    (shared, columns)
}

/// The measured columns in tables of runs, with `rows` cells each. `value` gives the number that a row has in a column.
pub fn figures(
    rows: usize,
    value: impl Fn(usize, &Measure) -> Option<f64>,
    fair: bool,
) -> Vec<TableColumn> {
    const RESPONSE: &str = "response ms";
    /// Group, heading, and the column of results.
    const SHOWN: [(&str, &str, &str); 7] = [
        ("", "IOPS", "iops"),
        ("", "MB/s", "throughput_mb_s"),
        ("", "fair", "fairness"),
        (RESPONSE, "mean", "response_mean_ms"),
        (RESPONSE, "p50", "response_p50_ms"),
        (RESPONSE, "p99", "response_p99_ms"),
        (RESPONSE, "max", "response_max_ms"),
    ];
    let shown = SHOWN
        .into_iter()
        .filter(|(_, _, name)| fair || *name != "fairness");
    let shown = shown.map(|(group, heading, name)| {
        let column = column(name).expect("a table shows columns that there are");
        let values = (0..rows).map(|row| value(row, column));
        let shown = match name {
            "fairness" => TableColumn::numbers(heading, values.map(|value| fixed(value, 2))),
            _ => {
                let half = |row| value(row, ci95(column)?);
                let values = values
                    .enumerate()
                    .map(|(row, value)| Some((value?, half(row))));
                measured(heading, &values.collect::<Vec<_>>())
            }
        };
        shown.under(group)
    });
    shown.collect()
}

/// Columns of the head time's shares in %, for parts that round to more than nothing in some row. `of` gives a part's share in each row.
pub fn shares(of: impl Fn(Part) -> Vec<Option<f64>>) -> Vec<TableColumn> {
    let columns = Part::ALL.into_iter().filter_map(|part| {
        let shares = of(part);
        let shown = shares.iter().flatten().any(|share| *share >= 0.05);
        let cells = shares.into_iter().map(|share| fixed(share, 1));
        shown.then(|| TableColumn::numbers(part.name(), cells).under("head time %"))
    });
    columns.collect()
}

/// A number with `places` decimal places; blank for `None`.
fn fixed(value: Option<f64>, places: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.places$}"))
}

/// The measured columns of a report's runs, with the share of the bound where runs have one.
fn measured_columns(runs: &[Run]) -> Vec<TableColumn> {
    let fair = !runs.iter().any(|run| run.recorded);
    let value = |row: usize, column: &Measure| column.of(&Row::Whole(&runs[row])).number();
    let mut shown = figures(runs.len(), value, fair);
    let longest = runs.iter().filter_map(|run| run.bound);
    if let Some(longest) = longest.map(|bound| bound.by.len()).max() {
        let cells = runs.iter().map(|run| match run.bound {
            Some(bound) => format!("{:.1} {:<longest$}", bound.share, bound.by),
            None => String::new(),
        });
        shown.insert(2, TableColumn::numbers("% of bound", cells));
    }
    if runs.iter().any(|run| run.freeblock.is_some()) {
        let scan = |heading, value: &dyn Fn(&FreeblockRun) -> Option<f64>, places| {
            let values = runs.iter().map(|run| value(run.freeblock.as_ref()?));
            TableColumn::numbers(heading, values.map(|value| fixed(value, places))).under("scan")
        };
        shown.push(scan("MB/s", &|scan| Some(scan.mb_s), 2));
        shown.push(scan("in gaps", &|scan| Some(scan.free_mb_s), 2));
        shown.push(scan("left %", &|scan| Some(scan.left_percent), 1));
        if runs
            .iter()
            .any(|run| run.freeblock.is_some_and(|scan| scan.ended_s.is_some()))
        {
            shown.push(scan("ended s", &|scan| scan.ended_s, 0));
        }
    }
    let share = |run: &Run, part| Some(run.head_time.share(part));
    shown.extend(shares(|part| {
        runs.iter().map(|run| share(run, part)).collect()
    }));
    shown
}

/// Commands and head time of each disk of arrays; `None` without arrays.
fn members(runs: &[Run]) -> Option<Vec<TableColumn>> {
    let of_run = |run: &'_ Run| {
        let label = run.label.clone();
        let members = run.members.clone().into_iter().enumerate();
        members.map(move |(disk, member)| (label.clone(), disk, member))
    };
    let rows: Vec<_> = runs.iter().flat_map(of_run).collect();
    rows.first()?;
    let each = || rows.iter();
    let mut columns = vec![
        TableColumn::words("scheduler", each().map(|(label, ..)| label.clone())),
        TableColumn::numbers("disk", each().map(|(_, disk, _)| disk.to_string())),
        TableColumn::numbers("commands", each().map(|(.., of)| of.issued.to_string())),
    ];
    columns.extend(shares(|part| {
        each()
            .map(|(.., of)| Some(of.head_time.share(part)))
            .collect()
    }));
    Some(columns)
}

/// Columns of the programs' results in each run; `None` without programs.
fn programs(runs: &[Run]) -> Option<Vec<TableColumn>> {
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
        TableColumn::numbers(name, numbers(runs, value).into_iter()).under(group)
    };
    let mut columns = vec![TableColumn::words(
        "",
        runs.iter().map(|run| run.label.clone()),
    )];
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
        let goals = first.iter().enumerate();
        for (index, program) in goals.filter(|(_, program)| program.goal_s.is_some()) {
            let goal = |run: &Run| run.programs[index].goal_s;
            let late = |run: &Run| run.programs[index].late_percent;
            columns.push(column(&program.name, "goal s", &goal));
            columns.push(column(&program.name, "late %", &late));
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

/// Rows of each name's reads and writes in each run, and the number of names left out. `None` for a single name, or if all names are
/// programs of one kind, which have columns.
fn by_name(runs: &[Run]) -> Option<(Vec<TableColumn>, usize)> {
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
        TableColumn::words("scheduler", labels.into_iter()),
        TableColumn::words("who", rows.iter().map(|(_, named)| named.name.clone())),
    ];
    if !first.programs.is_empty() {
        let all: Vec<Option<&ProgramRun>> = rows
            .iter()
            .map(|(run, named)| run.programs.get((named.program as usize).checked_sub(1)?))
            .collect();
        let program = |program: &ProgramRun| (program.ended_s, program.throughput_mb_s);
        let of: Vec<_> = all.iter().map(|one| one.map(program)).collect();
        let ends: Vec<f64> = of.iter().flatten().filter_map(|(end, _)| *end).collect();
        let places = places(ends.into_iter());
        let ends = of.iter().map(|program| match program {
            Some((Some(end), _)) => format!("{end:.places$}"),
            Some((None, _)) => "running".to_owned(),
            None => String::new(),
        });
        columns.push(TableColumn::numbers("ended s", ends).under("program"));
        let shown =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        if all.iter().flatten().any(|program| program.goal_s.is_some()) {
            let goals = all.iter().map(|one| shown(one.and_then(|one| one.goal_s)));
            let late = all
                .iter()
                .map(|one| shown(one.and_then(|one| one.late_percent)));
            columns.push(TableColumn::numbers("goal s", goals).under("program"));
            columns.push(TableColumn::numbers("late %", late).under("program"));
        }
        let rates: Vec<_> = of
            .iter()
            .map(|one| one.map(|(_, rate)| (rate, None)))
            .collect();
        columns.push(measured("MB/s", &rates).under("program"));
    }
    type OfKind = fn(&NamedRun) -> Option<&KindRun>;
    let kinds: [(&str, OfKind); 2] = [
        ("reads", |named| named.of_reads.as_ref()),
        ("writes", |named| named.of_writes.as_ref()),
    ];
    for (group, kind) in kinds {
        if rows.iter().all(|(_, named)| kind(named).is_none()) {
            continue;
        }
        let values: [(&str, KindValue); 5] = [
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
        columns.push(TableColumn::numbers("unfinished", unfinished));
    }
    Some((columns, first.by_name.len().saturating_sub(EACH)))
}
