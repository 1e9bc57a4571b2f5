//! Draws the share of each workload or program of each run: throughput, requests per second and mean response, with separate bars for reads
//! and writes.

use super::axis::Axis;
use super::chart::{Area, across_grid, colours, frame};
use super::drawn::Drawn;
use super::svg::{FAINT, Style, Svg};
use super::{EDGE, WIDTH, label_width};
use headtime_lab::report::{KindRun, KindValue, NamedRun};

const BAR: f64 = 11.0;
const PITCH: f64 = 16.0;
/// Space between the lines of two runs.
const GAP: f64 = 8.0;
/// Space between two charts, with room for the numbers behind the bars.
const BETWEEN: f64 = 74.0;
const READS: &str = "#0072b2";
const WRITES: &str = "#e69f00";
/// Largest number of names that are drawn of a run.
const NAMES_MAX: usize = 8;

/// Reads and writes of a name, if there are any.
fn kinds(named: &NamedRun) -> [Option<&KindRun>; 2] {
    [named.of_reads.as_ref(), named.of_writes.as_ref()]
}

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Drawn<'_>]) -> f64 {
    const HEADING: &str = "Who got what";
    svg.text(EDGE, top, Style::HEADING, HEADING);
    let legend = top + 22.0;
    let lines: Vec<(usize, &NamedRun)> = runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| {
            let names = run.names().iter().take(NAMES_MAX);
            names.map(move |named| (at, named))
        })
        .collect();
    let occurs = |kind: usize| lines.iter().any(|(_, named)| kinds(named)[kind].is_some());
    let kinds_of = [(READS, "reads"), (WRITES, "writes")]
        .into_iter()
        .enumerate();
    let kinds_of = kinds_of.filter(|(kind, _)| occurs(*kind));
    colours(svg, legend, (17.0, 14.0), kinds_of.map(|(_, named)| named));
    let most = runs.iter().map(|run| run.names().len()).max().unwrap_or(0);
    if most > NAMES_MAX {
        let note =
            format!("the first {NAMES_MAX} of {most}; the table has more, CSV and JSON have all");
        let beside = EDGE + Style::HEADING.width(HEADING) + 14.0;
        svg.text(beside, top, Style::SMALL, &note);
    }
    // Each kind of request has its own bar.
    let bars_of = |named: &NamedRun| kinds(named).into_iter().flatten().count().max(1);
    let own: Vec<String> = runs.iter().map(|run| cut(run.label())).collect();
    let called: Vec<String> = lines.iter().map(|(_, named)| cut(&named.name)).collect();
    let labels = label_width(own.iter().map(String::as_str));
    let names = label_width(called.iter().map(String::as_str));
    let left = EDGE + labels + 14.0 + names + 10.0;
    let first = legend + 34.0;
    let bars: usize = lines.iter().map(|(_, named)| bars_of(named)).sum();
    let bottom = first + PITCH * bars as f64 + GAP * runs.len().saturating_sub(1) as f64;
    let width = (WIDTH - EDGE - left - 3.0 * BETWEEN) / 3.0;
    let values: [(&str, KindValue); 3] = [
        ("MB/s", |kind| kind.throughput_mb_s),
        ("requests a second", |kind| kind.iops),
        ("mean response (ms)", |kind| kind.response_ms.mean),
    ];
    let all = || lines.iter().flat_map(|(_, named)| kinds(named)).flatten();
    let charts = [0, 1, 2].map(|number| {
        let (heading, value) = values[number];
        let left = left + (width + BETWEEN) * number as f64;
        let area = Area {
            left,
            top: first - 2.0,
            right: left + width,
            bottom,
        };
        let most = all().map(value).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let axis = Axis::linear(0.0, most, area.left, area.right);
        across_grid(svg, &axis, area, &axis.ticks(3));
        let faint = Style::PLAIN.in_colour(FAINT);
        svg.text(left, first - 10.0, faint, heading);
        (area, axis, value)
    });
    let mut y = first;
    let mut before = None;
    for ((at, named), called) in lines.iter().zip(&called) {
        if before != Some(*at) {
            y += if before.is_some() { GAP } else { 0.0 };
            svg.text(EDGE, y + BAR - 1.0, Style::STRONG, &own[*at]);
            before = Some(*at);
        }
        let name = EDGE + labels + 14.0 + names;
        svg.ending(name, y + BAR - 1.0, Style::PLAIN, called);
        for (kind, colour) in kinds(named).into_iter().zip([READS, WRITES]) {
            let Some(kind) = kind else { continue };
            for (area, axis, value) in &charts {
                let value = value(kind);
                let end = axis.at(value);
                svg.rect(area.left, y, (end - area.left).max(0.5), BAR, colour);
                svg.text(end + 5.0, y + BAR - 1.0, Style::SMALL, &short(value));
            }
            y += PITCH;
        }
        if kinds(named).iter().all(Option::is_none) {
            let text = "nothing";
            svg.text(left + 5.0, y + BAR - 1.0, Style::SMALL, text);
            y += PITCH;
        }
    }
    for (area, ..) in charts {
        frame(svg, area);
    }
    bottom + 18.0
}

/// Cuts a name to leave room for the charts.
fn cut(name: &str) -> String {
    const LETTERS: usize = 28;
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", name[..end].trim_end()),
        None => name.to_owned(),
    }
}

/// Formats a number with three digits.
fn short(value: f64) -> String {
    match value {
        value if value < 0.9995 => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
