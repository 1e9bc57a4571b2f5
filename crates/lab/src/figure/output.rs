//! A measured figure as a table, as JSON, as CSV.

use super::judge::{MeasuredFigure, MeasuredPoint, Shares, Tally, range};
use crate::execute::Sample;
use crate::output::{TableColumn, Terminal, table};
use crate::report::field::{Field, Fields};
use crate::report::round;

/// The text for people.
pub fn text(measured: &MeasuredFigure, terminal: Terminal) -> String {
    let shown = |point: &&MeasuredPoint| !measured.reds_alone || point.within == Some(false);
    let points: Vec<&MeasuredPoint> = measured.points.iter().filter(shown).collect();
    let mut text = format!("{}: {}\n{}\n", measured.id, measured.title, measured.source);
    text.push_str(&seeds(measured));
    if measured.quick {
        text.push_str(", quick scale: the ranges were meant for the full one");
    }
    text.push_str("\n\n");
    let number = |value: Option<f64>| value.map(digits).unwrap_or_default();
    let verdict = |point: &&MeasuredPoint| {
        match point.within {
            _ if point.calibrated => "calibrated",
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        }
        .to_owned()
    };
    let range_of = |point: &&MeasuredPoint| match point.range {
        Some([least, most]) if least < most => format!("{} to {}", digits(least), digits(most)),
        _ => String::new(),
    };
    let mut columns = vec![
        TableColumn::words("series", points.iter().map(|point| point.series.clone())),
        TableColumn::words("x", points.iter().map(|point| point.x.to_string())),
        TableColumn::words("metric", points.iter().map(|point| point.metric.to_owned())),
        TableColumn::numbers(
            "measured",
            points.iter().map(|point| digits(point.measured)),
        ),
        TableColumn::words("unit", points.iter().map(|point| point.unit.clone())),
        TableColumn::numbers("paper", points.iter().map(|point| number(point.stated))),
        TableColumn::words("accepted", points.iter().map(|point| range(point.accept))),
        TableColumn::words("within", points.iter().map(verdict)),
    ];
    if points.iter().any(|point| point.bound_share.is_some()) {
        let shares = points.iter().map(|point| match point.bound_share {
            Some(share) => format!("{share:.1}"),
            None => String::new(),
        });
        columns.insert(5, TableColumn::numbers("% of bound", shares));
    }
    if points.iter().any(|point| point.shares.is_some()) {
        let fairness = points.iter().map(|point| match &point.shares {
            Some(shares) => digits(shares.fairness),
            None => String::new(),
        });
        let shares = points
            .iter()
            .map(|point| point.shares.as_ref().map(shares_of).unwrap_or_default());
        columns.push(TableColumn::numbers("fairness", fairness));
        columns.push(TableColumn::words("% of each origin", shares));
    }
    if measured.seeds > 1 {
        let column = TableColumn::words("of the seeds", points.iter().map(range_of));
        columns.insert(4, column);
    }
    text.push_str(&table(&columns, terminal));
    if measured.points.iter().any(|point| point.within.is_some()) {
        text.push_str(&format!("\n{}\n", Tally::of([measured])));
    }
    if !measured.notes.is_empty() {
        text.push('\n');
        for note in &measured.notes {
            text.push_str(&format!("- {note}\n"));
        }
    }
    text
}

/// The share of each origin; of more than a few, the least and the largest.
fn shares_of(shares: &Shares) -> String {
    const NAMED: usize = 4;
    if shares.shares.len() <= NAMED {
        let each = shares.shares.iter().map(|share| digits(*share));
        return each.collect::<Vec<String>>().join(", ");
    }
    let [least, most] = shares.ends();
    let count = shares.shares.len();
    format!("{count} of {} to {}", digits(least), digits(most))
}

/// The seeds of a figure, in words.
pub fn seeds(measured: &MeasuredFigure) -> String {
    let first = measured.seed;
    match measured.seeds {
        1 => format!("seed {first}"),
        seeds => format!(
            "seeds {first} to {}: means, and the least and largest value",
            first.wrapping_add(u64::from(seeds) - 1)
        ),
    }
}

/// A value with about four significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 999.5 => format!("{value:.0}"),
        size if size >= 99.95 => format!("{value:.1}"),
        size if size >= 9.995 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// Points as CSV, with a heading.
pub fn csv(measured: &MeasuredFigure) -> String {
    let with_shares = measured.points.iter().any(|point| point.shares.is_some());
    let rows = measured.points.iter().map(|point| {
        let [low, high] = point.accept.unwrap_or_default();
        let [least, most] = point.range.unwrap_or([point.measured; 2]);
        let mut fields: Vec<(&str, Field)> = vec![
            ("id", (&measured.id).into()),
            ("series", (&point.series).into()),
            ("x", Field::Text(point.x.to_string())),
            ("metric", point.metric.into()),
            ("unit", (&point.unit).into()),
            ("measured", point.measured.into()),
            ("paper", point.paper.into()),
            ("accept_low", low.into()),
            ("accept_high", high.into()),
            ("within", point.within.into()),
            ("calibrated", point.calibrated.into()),
            ("least", least.into()),
            ("most", most.into()),
            ("bound_share", point.bound_share.into()),
        ];
        if with_shares {
            let ends = point.shares.as_ref().map(Shares::ends);
            let fairness = point.shares.as_ref().map(|shares| shares.fairness);
            fields.push(("fairness", fairness.into()));
            fields.push(("share_least", ends.map(|ends| ends[0]).into()));
            fields.push(("share_most", ends.map(|ends| ends[1]).into()));
        }
        Fields(fields)
    });
    Fields::csv(&rows.collect::<Vec<_>>())
}

/// The errors of prediction of a run with their numbers of commands, as rows of CSV.
pub fn errors<'a>(run: [(&'a str, Field); 2], errors: &[(i64, u64)]) -> Vec<Fields<'a>> {
    let row = |(error, commands): &(i64, u64)| {
        let own = [
            ("error_us", (*error as f64).into()),
            ("commands", (*commands).into()),
        ];
        Fields(run.clone().into_iter().chain(own).collect())
    };
    errors.iter().map(row).collect()
}

/// The requests of a run, as rows of CSV.
pub fn samples<'a>(run: [(&'a str, Field); 2], samples: &[Sample]) -> Vec<Fields<'a>> {
    let row = |sample: &Sample| {
        let own = [
            ("arrived_s", sample.arrived.into()),
            (
                "wait_ms",
                round((sample.issued - sample.arrived) * 1e3, 6).into(),
            ),
            (
                "service_ms",
                round((sample.done - sample.issued) * 1e3, 6).into(),
            ),
        ];
        Fields(run.clone().into_iter().chain(own).collect())
    };
    samples.iter().map(row).collect()
}
