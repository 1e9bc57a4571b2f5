//! How long requests took: the share of requests that took no longer, and the share that took
//! longer, which shows the slowest few; both over the logarithm of time.

use super::axis::{Axis, label};
use super::drawn::Drawn;
use super::svg::{Anchor, FAINT, GRID, Path, Style, Svg};
use super::{EDGE, WIDTH, frame, line_of, lines};

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 84.0;
/// Between the two charts, for the right one's axis.
const BETWEEN: f64 = 84.0;
/// Times below this share are left out of the axis: a few buffer hits would stretch it by decades.
const LEAST_SHARE: f64 = 0.002;

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Drawn<'_>]) -> f64 {
    const HEADING: &str = "How long requests took";
    svg.text(EDGE, top, Anchor::Start, Style::HEADING, HEADING);
    let note = "from arrival to completion";
    let beside = EDGE + Style::HEADING.width(HEADING) + 14.0;
    svg.text(beside, top, Anchor::Start, Style::SMALL, note);
    let labels = runs.iter().map(|run| run.label());
    let y = lines(svg, top + 22.0, labels.enumerate()) + 34.0;
    let width = (WIDTH - LEFT - EDGE - BETWEEN) / 2.0;
    let bottom = y + HEIGHT;
    let (low, high) = range(runs);
    cumulative(svg, (LEFT, y), (LEFT + width, bottom), (low, high), runs);
    let left = LEFT + width + BETWEEN;
    slowest(svg, (left, y), (WIDTH - EDGE, bottom), (low, high), runs)
}

type Corner = (f64, f64);

/// Grid and labels of the time axis.
fn times(svg: &mut Svg, x: &Axis, from: Corner, to: Corner) {
    // Room for the widest label and a gap.
    let apart = Style::SMALL.width("10000") + 6.0;
    for tick in x.log_ticks(apart) {
        svg.line((x.at(tick), from.1), (x.at(tick), to.1), GRID, 1.0);
        svg.text(
            x.at(tick),
            to.1 + 16.0,
            Anchor::Middle,
            Style::SMALL,
            &label(tick),
        );
    }
    let middle = (from.0 + to.0) / 2.0;
    svg.text(
        middle,
        to.1 + 36.0,
        Anchor::Middle,
        Style::PLAIN,
        "response time (ms)",
    );
}

fn caption(svg: &mut Svg, from: Corner, to: Corner, above: &str, beside: &str) {
    let style = Style {
        fill: FAINT,
        ..Style::PLAIN
    };
    svg.text(from.0, from.1 - 9.0, Anchor::Start, style, above);
    svg.upward(
        from.0 - 46.0,
        (from.1 + to.1) / 2.0,
        Anchor::Middle,
        Style::PLAIN,
        beside,
    );
    frame(svg, from.0, from.1, to.0, to.1);
}

fn cumulative(svg: &mut Svg, from: Corner, to: Corner, range: (f64, f64), runs: &[Drawn<'_>]) {
    let x = Axis::log(range.0, range.1, from.0, to.0);
    let share = Axis::linear(0.0, 100.0, to.1, from.1);
    for tick in [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0] {
        svg.line((from.0, share.at(tick)), (to.0, share.at(tick)), GRID, 1.0);
        svg.text(
            from.0 - 6.0,
            share.at(tick) + 4.0,
            Anchor::End,
            Style::SMALL,
            &label(tick),
        );
    }
    times(svg, &x, from, to);
    for (number, run) in runs.iter().enumerate() {
        let (colour, dash) = line_of(number);
        let points = run
            .run
            .curve
            .iter()
            .map(|(time, part)| (x.at(*time), share.at(part * 100.0)));
        let first = run
            .run
            .curve
            .first()
            .map(|(time, _)| (x.at(*time), share.at(0.0)));
        svg.path(&curve(first.into_iter().chain(points)), colour, 1.8, dash);
    }
    caption(
        svg,
        from,
        to,
        "all: how many were done within a time",
        "requests done (%)",
    );
}

/// Returns where the chart ends below.
fn slowest(svg: &mut Svg, from: Corner, to: Corner, range: (f64, f64), runs: &[Drawn<'_>]) -> f64 {
    let x = Axis::log(range.0, range.1, from.0, to.0);
    // Down to the one slowest request of the run with most requests, within four decades.
    let least = runs
        .iter()
        .filter_map(|run| run.run.curve.iter().rev().find(|(_, part)| *part < 1.0))
        .map(|(_, part)| (1.0 - part) * 100.0)
        .fold(10.0, f64::min)
        .max(0.01);
    let share = Axis::log(least, 100.0, to.1, from.1);
    for tick in [0.01, 0.1, 1.0, 10.0, 100.0] {
        if tick >= least * (1.0 - 1e-9) {
            svg.line((from.0, share.at(tick)), (to.0, share.at(tick)), GRID, 1.0);
            svg.text(
                from.0 - 6.0,
                share.at(tick) + 4.0,
                Anchor::End,
                Style::SMALL,
                &label(tick),
            );
        }
    }
    times(svg, &x, from, to);
    for (number, run) in runs.iter().enumerate() {
        let (colour, dash) = line_of(number);
        let mut before = 1.0;
        let points: Vec<(f64, f64)> = run
            .run
            .curve
            .iter()
            .map(|(time, part)| {
                let longer = std::mem::replace(&mut before, 1.0 - part);
                (x.at(*time), share.at((longer * 100.0).max(least)))
            })
            .collect();
        svg.path(&curve(points.into_iter()), colour, 1.8, dash);
    }
    caption(
        svg,
        from,
        to,
        "the slowest: how many took at least a time",
        "requests left (%)",
    );
    to.1 + 36.0
}

/// The shortest and longest time worth showing, in milliseconds.
fn range(runs: &[Drawn<'_>]) -> (f64, f64) {
    let mut low = f64::INFINITY;
    let mut high: f64 = 0.0;
    for run in runs {
        let first = run
            .run
            .curve
            .iter()
            .find(|(_, share)| *share >= LEAST_SHARE);
        low = first.map_or(low, |(time, _)| low.min(*time));
        high = run
            .run
            .curve
            .last()
            .map_or(high, |(time, _)| high.max(*time));
    }
    let low = if low.is_finite() { low.max(0.001) } else { 1.0 };
    (low, high.max(low * 2.0))
}

/// A line through points, without those that a pixel could not show.
fn curve(points: impl Iterator<Item = (f64, f64)>) -> Path {
    let mut path = Path::default();
    let mut pen: Option<(f64, f64)> = None;
    let mut skipped = None;
    for to in points {
        match pen {
            None => path.move_to(to.0, to.1),
            Some(at) if (to.0 - at.0).abs() + (to.1 - at.1).abs() < 0.7 => {
                skipped = Some(to);
                continue;
            }
            Some(_) => path.line_to(to.0, to.1),
        }
        (pen, skipped) = (Some(to), None);
    }
    if let Some(last) = skipped {
        path.line_to(last.0, last.1);
    }
    path
}
