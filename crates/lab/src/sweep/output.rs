//! Writes the results of a sweep as CSV, as JSON, and as a table.

use super::plan::{Combination, Plan};
use super::results::{MeasuredRow, Outcome, Results};
use super::{FIRST_COLUMNS, LAST_COLUMNS, lists};
use crate::output::{Served, TableColumn, Terminal, line, measured, reasons, table_that_fits};
use crate::report::catalogue::{Measure, column as find, columns};
use crate::report::field::{Field, Fields};
use crate::report::{key, text};
use crate::scenario::{Header, WHOLE};
use headtime_config::Value;
use serde::Serialize;

/// Failures that the table names one by one.
const NAMED: usize = 10;

/// A row of the results: a combination, and its measurements or the reason why there are none.
#[derive(Clone, Copy)]
struct OutputRow<'a> {
    plan: &'a Plan,
    number: usize,
    row: Result<&'a MeasuredRow, &'a str>,
}

/// All rows, in the order of the combinations.
fn lines<'a>(plan: &'a Plan, results: &'a Results) -> impl Iterator<Item = OutputRow<'a>> {
    let outcomes = results.0.iter().enumerate();
    outcomes.flat_map(move |(number, outcome)| {
        let rows: Vec<Result<&MeasuredRow, &str>> = match outcome {
            Outcome::Rows(rows) => rows.iter().map(Ok).collect(),
            Outcome::Failed(error) => vec![Err(error)],
        };
        let line = move |row| OutputRow { plan, number, row };
        rows.into_iter().map(line)
    })
}

impl<'a> OutputRow<'a> {
    /// The fields with their headings, from the left.
    fn fields(&self) -> Fields<'a> {
        let combination = &self.plan.combinations[self.number];
        let axes = self.plan.sweep.axes.iter().zip(&combination.choice);
        let swept = axes.flat_map(|(axis, step)| axis.keys.iter().zip(axis.step(*step)));
        let swept = swept.map(|(key, node)| (key.as_str(), Field::from(&node.value)));
        let mut fields: Vec<(&str, Field)> = swept.collect();
        let (origin, program) = match self.row {
            Ok(row) => (row.origin.as_str(), row.program.clone()),
            Err(_) => (WHOLE, Field::Nothing),
        };
        let first = [Field::Count(self.number as u64 + 1), origin.into(), program];
        fields.extend(FIRST_COLUMNS.into_iter().zip(first));
        fields.extend(columns().iter().enumerate().map(|(at, column)| {
            let field = match self.row {
                Ok(row) => row.fields[at].clone(),
                Err(_) => of_cell(combination, column.name),
            };
            (column.name, field)
        }));
        let hash = Some(combination.hash.as_str()).filter(|hash| !hash.is_empty());
        let last = [hash.into(), self.row.err().into()];
        fields.extend(LAST_COLUMNS.into_iter().zip(last));
        Fields(fields)
    }
}

/// Field of a column for a run without measurements, from the run's place among the scenario's own lists.
pub fn of_cell(combination: &Combination, column: &str) -> Field {
    let (Some(cell), Some(scenario)) = (&combination.cell, &combination.scenario) else {
        return Field::Nothing;
    };
    match column {
        "scheduler" => Field::Text(match cell.coordinate {
            true => format!("{} coordinated", cell.scheduler),
            false => cell.scheduler.to_string(),
        }),
        "drive" => Field::Text(scenario.drives[0].profile.clone()),
        column => {
            let firmware = scenario.drives[0].simulated.firmware;
            let header = Header::new(&cell.engine, firmware.name());
            header.get(column).into()
        }
    }
}

/// The rows of all combinations, with their headings.
pub fn rows<'a>(plan: &'a Plan, results: &'a Results) -> impl Iterator<Item = Fields<'a>> {
    lines(plan, results).map(|row| row.fields())
}

/// The results as CSV: a line for each combination, and below it a line for each program and origin if there are several.
pub fn csv(plan: &Plan, results: &Results) -> String {
    let mut text = String::new();
    for row in lines(plan, results) {
        let Fields(fields) = row.fields();
        if text.is_empty() {
            text.push_str(&line(fields.iter().map(|(name, _)| (*name).to_owned())));
        }
        text.push_str(&line(fields.iter().map(|(_, field)| field.to_string())));
    }
    text
}

/// The results as JSON: the swept keys, and a row on a line for each line of the CSV.
pub fn json(plan: &Plan, results: &Results) -> String {
    let keys: Vec<&String> = plan.sweep.axes.iter().flat_map(|axis| &axis.keys).collect();
    let rows: Vec<String> = lines(plan, results)
        .map(|line| format!("    {}", json_of(&line.fields())))
        .collect();
    format!(
        "{{\n  \"version\": {},\n  \"scenario_hash\": {},\n  \"title\": {},\n  \
         \"combinations\": {},\n  \"failed\": {},\n  \"swept\": {},\n  \"rows\": [\n{}\n  ]\n}}\n",
        json_of(&env!("CARGO_PKG_VERSION")),
        json_of(&plan.hash),
        json_of(&plan.title),
        plan.combinations.len(),
        results.failed(),
        json_of(&keys),
        rows.join(",\n")
    )
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names are text")
}

/// Rows of the table with the values that explain why some are equal.
fn served(plan: &Plan, outcomes: &[Outcome]) -> Vec<Served> {
    let row = |(number, outcome): (usize, &Outcome)| {
        let axes = plan.sweep.axes.iter();
        let axes = axes.zip(&plan.combinations[number].choice);
        let others = axes.filter(|(axis, _)| axis.keys != ["schedulers"]);
        let of = others.map(|(_, step)| step.to_string()).collect();
        let field = |name: &str| outcome.whole(name).cloned();
        let all = columns().iter().map(|column| column.name);
        let measured = all.filter(|name| *name != "scheduler");
        let figures = measured.filter_map(|name| Some(field(name)?.to_string()));
        text::served((number + 1).to_string(), of, field, figures.collect())
    };
    outcomes.iter().enumerate().filter_map(row).collect()
}

/// The combinations of a plan, for people; `results` is `None` if no run was made.
pub fn text(plan: &Plan, results: Option<&Results>, terminal: Terminal) -> String {
    let none: Vec<Outcome> = Vec::new();
    let outcomes = results.map_or(&none, |results| &results.0);
    let (shared, mut columns) = chosen(plan, outcomes);
    if results.is_some() {
        columns.extend(figures(outcomes));
    }
    let mut text = String::new();
    if let Some(title) = &plan.title {
        text.push_str(title);
        text.push('\n');
    }
    text.push_str(&format!(
        "{}\n\n{}",
        shared.join(", "),
        table_that_fits(&columns, terminal)
    ));
    if let Some((names, left_out)) = by_name(outcomes) {
        text.push('\n');
        text.push_str(&table_that_fits(&names, terminal));
        if left_out > 0 {
            let more = "more combinations have their rows in CSV and JSON";
            text.push_str(&format!("\n{left_out} {more}\n"));
        }
    }
    let reasons = reasons(&served(plan, outcomes));
    if !reasons.is_empty() {
        text.push_str(&format!("\n{}\n", reasons.join("\n")));
    }
    let errors: Vec<(usize, &str)> = (0..plan.combinations.len())
        .filter_map(|number| {
            let known = plan.combinations[number].error.as_deref();
            let error = match outcomes.get(number) {
                Some(Outcome::Failed(error)) => Some(error.as_str()),
                Some(Outcome::Rows(_)) => None,
                None => known,
            };
            error.map(|error| (number, error))
        })
        .collect();
    if !errors.is_empty() {
        let what = match (errors.len(), results) {
            (1, Some(_)) => "1 combination failed".to_owned(),
            (count, Some(_)) => format!("{count} combinations failed"),
            (1, None) => "1 combination cannot be run".to_owned(),
            (count, None) => format!("{count} combinations cannot be run"),
        };
        text.push_str(&format!("\n{what}\n"));
        for (number, error) in errors.iter().take(NAMED) {
            text.push_str(&format!("  {}: {error}\n", number + 1));
        }
        if let Some(rest) = errors.len().checked_sub(NAMED).filter(|rest| *rest > 0) {
            text.push_str(&format!("  and {rest} more\n"));
        }
    }
    text
}

/// Rows of each workload, program or role of each combination, and the number of combinations left out. `None` if all have one
/// name, or are programs of one kind.
fn by_name(outcomes: &[Outcome]) -> Option<(Vec<TableColumn>, usize)> {
    /// Combinations beyond that many rows are left out.
    const ROWS: usize = 72;
    const VALUES: [(&str, &str); 5] = [
        ("iops", "IOPS"),
        ("mb_s", "MB/s"),
        ("response_mean_ms", "mean ms"),
        ("response_p99_ms", "p99 ms"),
        ("response_max_ms", "max ms"),
    ];
    let field = |row: &MeasuredRow, name: &str| {
        let at = columns().iter().position(|column| column.name == name)?;
        row.fields.get(at)?.number()
    };
    let (mut rows, mut left_out): (Vec<(usize, &MeasuredRow)>, usize) = (Vec::new(), 0);
    for (number, outcome) in outcomes.iter().enumerate() {
        let Outcome::Rows(all) = outcome else {
            continue;
        };
        // Rows of processes and disks do not count reads.
        let named = all.iter().skip(1);
        let named = named.filter(|row| field(row, "reads").is_some());
        let named: Vec<_> = named.map(|row| (number, row)).collect();
        match rows.is_empty() || rows.len() + named.len() <= ROWS {
            true => rows.extend(named),
            false => left_out += 1,
        }
    }
    // Programs of one kind have numbers behind one name.
    let kind = |(_, row): &(usize, &MeasuredRow)| match row.program {
        Field::Nothing => row.origin.clone(),
        _ => row.origin.trim_end_matches(char::is_numeric).to_owned(),
    };
    let one = rows.first().map(kind)?;
    if rows.iter().all(|row| kind(row) == one) {
        return None;
    }
    let first = |at: usize| at == 0 || rows[at - 1].0 != rows[at].0;
    let numbers = (0..rows.len()).map(|at| match first(at) {
        true => (rows[at].0 + 1).to_string(),
        false => String::new(),
    });
    let mut columns = vec![
        TableColumn::numbers("#", numbers),
        TableColumn::words("who", rows.iter().map(|(_, row)| row.origin.clone())),
    ];
    for (kind, group) in [("read", "reads"), ("write", "writes")] {
        for (key, name) in VALUES {
            let key = format!("{kind}_{key}");
            let values = rows.iter().map(|(_, row)| Some((field(row, &key)?, None)));
            let values: Vec<_> = values.collect();
            if values.iter().any(Option::is_some) {
                columns.push(measured(name, &values).under(group));
            }
        }
    }
    Some((columns, left_out))
}

/// Words that all combinations share, and columns in which combinations differ.
pub fn chosen(plan: &Plan, outcomes: &[Outcome]) -> (Vec<String>, Vec<TableColumn>) {
    let all = &plan.combinations;
    let mut shared = vec![match all.len() {
        1 => "1 combination".to_owned(),
        count => format!("{count} combinations"),
    }];
    let numbers = (1..=all.len()).map(|number| number.to_string());
    let mut columns = vec![TableColumn::numbers("#", numbers)];
    for (place, axis) in plan.sweep.axes.iter().enumerate() {
        for (at, key) in axis.keys.iter().enumerate() {
            let value = |step: usize| &axis.step(step)[at].value;
            let cells: Vec<String> = all
                .iter()
                .map(|one| value(one.choice[place]).text())
                .collect();
            let is_number = (0..axis.len())
                .all(|step| matches!(value(step), Value::Integer(_) | Value::Float(_)));
            match cells.windows(2).all(|pair| pair[0] == pair[1]) {
                true => shared.push(format!("{key} {}", cells[0])),
                false if is_number => columns.push(TableColumn::numbers(key, cells.into_iter())),
                false => columns.push(TableColumn::words(key, cells.into_iter())),
            }
        }
    }
    // Columns that the scenario's own lists make, beside the swept keys.
    let usual = Header::default();
    for (key, name) in lists() {
        let cells: Vec<String> = (0..all.len())
            .map(|number| described(plan, outcomes, number, name).to_string())
            .collect();
        let mut pairs = all.windows(2).zip(cells.windows(2));
        let within = pairs.any(|(two, of)| two[0].choice == two[1].choice && of[0] != of[1]);
        let constant = cells.windows(2).all(|pair| pair[0] == pair[1]);
        let keys = plan.sweep.axes.iter().flat_map(|axis| &axis.keys);
        let swept = keys.into_iter().any(|own| *own == key);
        // Usual values are left out.
        let is_usual = match cells[0].as_str() {
            "true" | "false" | "" => true,
            value => usual.words().any(|word| word == (name, value)),
        };
        if within {
            columns.push(TableColumn::words(name, cells.into_iter()));
        } else if constant && !swept && !is_usual {
            shared.push(format!("{name} {}", cells[0]));
        }
    }
    (shared, columns)
}

/// Value of a column of a combination, as measured or as planned.
pub fn described(plan: &Plan, outcomes: &[Outcome], number: usize, column: &str) -> Field {
    let measured = outcomes
        .get(number)
        .and_then(|outcome| outcome.whole(column));
    measured
        .cloned()
        .unwrap_or_else(|| of_cell(&plan.combinations[number], column))
}

fn figures(outcomes: &[Outcome]) -> Vec<TableColumn> {
    let value = |outcome: &Outcome, column: &Measure| outcome.whole(column.name)?.number();
    let mut shown = text::figures(
        outcomes.len(),
        |row, column| value(&outcomes[row], column),
        true,
    );
    shown.extend(text::shares(|part| {
        let share = find(&format!("head_{}_pct", key(part)));
        let each = outcomes.iter().map(|outcome| value(outcome, share?));
        each.collect()
    }));
    shown
}
