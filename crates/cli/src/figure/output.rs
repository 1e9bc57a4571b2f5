//! A measured figure as a table, as JSON, as CSV.

use super::judge::{MeasuredFigure, MeasuredPoint, Shares, Tally, range};
use crate::execute::Sample;
use crate::output::{TableColumn, Terminal, escaped, table};
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
            _ if point.by_construction => "by construction",
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
    let mut text =
        "id,series,x,metric,unit,measured,paper,accept_low,accept_high,within,calibrated,by_construction,least,most,bound_share"
            .to_owned();
    let with_shares = measured.points.iter().any(|point| point.shares.is_some());
    text.push_str(if with_shares {
        ",fairness,share_least,share_most\n"
    } else {
        "\n"
    });
    for point in &measured.points {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let [low, high] = point.accept.unwrap_or_default();
        let [least, most] = point.range.unwrap_or([point.measured; 2]);
        let mut fields = vec![
            measured.id.clone(),
            point.series.clone(),
            point.x.to_string(),
            point.metric.to_owned(),
            point.unit.clone(),
            point.measured.to_string(),
            number(point.paper),
            number(low),
            number(high),
            point
                .within
                .map(|within| within.to_string())
                .unwrap_or_default(),
            point.calibrated.to_string(),
            point.by_construction.to_string(),
            least.to_string(),
            most.to_string(),
            number(point.bound_share),
        ];
        if with_shares {
            let fairness = point.shares.as_ref().map(|shares| shares.fairness);
            let ends = point.shares.as_ref().map(Shares::ends);
            fields.push(number(fairness));
            fields.extend([0, 1].map(|end| number(ends.map(|ends| ends[end]))));
        }
        let fields: Vec<String> = fields.iter().map(|field| escaped(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

/// The heading of what predictions were off in runs as CSV.
pub const ERRORS_HEADING: &str = "scenario,scheduler,error_us,commands\n";

/// What predictions were off in a run, in us, and how many commands had that, as CSV without a heading.
pub fn errors_csv(scenario: &str, scheduler: &str, errors: &[(i64, u64)]) -> String {
    let (scenario, scheduler) = (escaped(scenario), escaped(scheduler));
    errors
        .iter()
        .map(|(error, commands)| format!("{scenario},{scheduler},{error},{commands}\n"))
        .collect()
}

/// The heading of the requests of runs as CSV.
pub const SAMPLES_HEADING: &str = "scenario,scheduler,arrived_s,wait_ms,service_ms\n";

/// The requests of a run as CSV, without a heading.
pub fn samples_csv(scenario: &str, scheduler: &str, samples: &[Sample]) -> String {
    let (scenario, scheduler) = (escaped(scenario), escaped(scheduler));
    samples
        .iter()
        .map(|sample| {
            let wait = round((sample.issued - sample.arrived) * 1e3, 6);
            let service = round((sample.done - sample.issued) * 1e3, 6);
            format!(
                "{scenario},{scheduler},{},{wait},{service}\n",
                sample.arrived
            )
        })
        .collect()
}
