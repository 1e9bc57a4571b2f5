//! Who got what: for each run a line for each workload or program, its throughput, its requests a
//! second and its mean response, reads and writes apart.

use super::axis::{Axis, label};
use super::drawn::Drawn;
use super::svg::{Anchor, FAINT, GRID, Style, Svg};
use super::{EDGE, WIDTH, frame, label_width};
use crate::report::{KindRun, NamedRun};

const BAR: f64 = 11.0;
const PITCH: f64 = 16.0;
/// Between the lines of two runs.
const GAP: f64 = 8.0;
/// Between two charts, with room for the numbers behind the bars.
const BETWEEN: f64 = 74.0;
const READS: &str = "#0072b2";
const WRITES: &str = "#e69f00";
/// More names than that of a run are left out.
const NAMES_MAX: usize = 8;

/// The reads and the writes of a name, if there are such.
fn kinds(named: &NamedRun) -> [Option<&KindRun>; 2] {
    [named.of_reads.as_ref(), named.of_writes.as_ref()]
}

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Drawn<'_>]) -> f64 {
    const HEADING: &str = "Who got what";
    svg.text(EDGE, top, Anchor::Start, Style::HEADING, HEADING);
    let mut at = EDGE;
    let legend = top + 22.0;
    for (name, colour) in [("reads", READS), ("writes", WRITES)] {
        svg.rect(at, legend - 9.0, 12.0, 10.0, colour);
        svg.text(at + 17.0, legend, Anchor::Start, Style::PLAIN, name);
        at += 17.0 + Style::PLAIN.width(name) + 14.0;
    }
    let lines: Vec<(usize, &NamedRun)> = runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| {
            let names = run.names().iter().take(NAMES_MAX);
            names.map(move |named| (at, named))
        })
        .collect();
    let most = runs.iter().map(|run| run.names().len()).max().unwrap_or(0);
    if most > NAMES_MAX {
        let note =
            format!("the first {NAMES_MAX} of {most}; the table has more, CSV and JSON have all");
        let beside = EDGE + Style::HEADING.width(HEADING) + 14.0;
        svg.text(beside, top, Anchor::Start, Style::SMALL, &note);
    }
    // A kind of request has a bar of its own.
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
    type Value = fn(&KindRun) -> f64;
    let charts: [(&str, Value); 3] = [
        ("MB/s", |kind| kind.throughput_mb_s),
        ("requests a second", |kind| kind.iops),
        ("mean response (ms)", |kind| kind.response_ms.mean),
    ];
    let axes = charts.map(|(_, value)| {
        let all = lines
            .iter()
            .flat_map(|(_, named)| kinds(named).into_iter().flatten());
        let most = all.map(value).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    });
    for (number, (heading, _)) in charts.iter().enumerate() {
        let from = left + (width + BETWEEN) * number as f64;
        let axis = Axis::linear(0.0, axes[number], from, from + width);
        for tick in axis.ticks(3) {
            svg.line(
                (axis.at(tick), first - 2.0),
                (axis.at(tick), bottom),
                GRID,
                1.0,
            );
            let y = bottom + 16.0;
            svg.text(axis.at(tick), y, Anchor::Middle, Style::SMALL, &label(tick));
        }
        let style = Style {
            fill: FAINT,
            ..Style::PLAIN
        };
        svg.text(from, first - 10.0, Anchor::Start, style, heading);
    }
    let mut y = first;
    let mut before = None;
    for ((at, named), called) in lines.iter().zip(&called) {
        if before != Some(*at) {
            y += if before.is_some() { GAP } else { 0.0 };
            svg.text(EDGE, y + BAR - 1.0, Anchor::Start, Style::STRONG, &own[*at]);
            before = Some(*at);
        }
        let name = EDGE + labels + 14.0 + names;
        svg.text(name, y + BAR - 1.0, Anchor::End, Style::PLAIN, called);
        for (kind, colour) in kinds(named).into_iter().zip([READS, WRITES]) {
            let Some(kind) = kind else { continue };
            for (number, (_, value)) in charts.iter().enumerate() {
                let from = left + (width + BETWEEN) * number as f64;
                let axis = Axis::linear(0.0, axes[number], from, from + width);
                let value = value(kind);
                svg.rect(from, y, (axis.at(value) - from).max(0.5), BAR, colour);
                let end = axis.at(value) + 5.0;
                svg.text(
                    end,
                    y + BAR - 1.0,
                    Anchor::Start,
                    Style::SMALL,
                    &short(value),
                );
            }
            y += PITCH;
        }
        if kinds(named).iter().all(Option::is_none) {
            let text = "nothing";
            svg.text(left + 5.0, y + BAR - 1.0, Anchor::Start, Style::SMALL, text);
            y += PITCH;
        }
    }
    for number in 0..charts.len() {
        let from = left + (width + BETWEEN) * number as f64;
        frame(svg, from, first - 2.0, from + width, bottom);
    }
    bottom + 18.0
}

/// A name that leaves room for the charts.
fn cut(name: &str) -> String {
    const LETTERS: usize = 28;
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", name[..end].trim_end()),
        None => name.to_owned(),
    }
}

/// A number with three digits.
fn short(value: f64) -> String {
    match value {
        value if value < 0.9995 => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
