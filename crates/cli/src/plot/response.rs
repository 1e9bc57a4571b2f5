//! Draws response times in two charts over the logarithm of time. The first shows the share of requests that took no longer. The second
//! shows the share of requests that took longer, and so the few slowest requests.

use super::axis::Axis;
use super::chart::{Area, across, across_grid, frame, line_of, lines, palette, upright_grid};
use super::drawn::Drawn;
use super::svg::{FAINT, Path, Style, Svg};
use super::{EDGE, WIDTH, headed};

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 84.0;
/// Space between the two charts, for the right one's axis.
const BETWEEN: f64 = 84.0;
/// Share of the fastest requests that the axis leaves out. A few buffer hits would stretch the axis by decades.
const LEAST_SHARE: f64 = 0.002;

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Drawn<'_>]) -> f64 {
    headed(
        svg,
        top,
        "How long requests took",
        "from arrival to completion",
    );
    let labels: Vec<&str> = runs.iter().map(|run| run.label()).collect();
    let palette = palette(&labels);
    let legend = palette.iter().copied().zip(labels);
    let top = lines(svg, top + 22.0, legend) + 34.0;
    let width = (WIDTH - LEFT - EDGE - BETWEEN) / 2.0;
    let area = |left: f64, right: f64| Area {
        left,
        top,
        right,
        bottom: top + HEIGHT,
    };
    cumulative(svg, area(LEFT, LEFT + width), runs, &palette);
    slowest(
        svg,
        area(LEFT + width + BETWEEN, WIDTH - EDGE),
        runs,
        &palette,
    )
}

/// Draws one of the two charts. `line` gives the points of a run, in ms and in % of its requests. Returns the lower end of the chart.
fn chart(
    svg: &mut Svg,
    area: Area,
    share: &Axis,
    ticks: &[f64],
    (runs, palette): (&[Drawn<'_>], &[usize]),
    line: impl Fn(&[(f64, f64)]) -> Vec<(f64, f64)>,
    [above, beside]: [&str; 2],
) -> f64 {
    let (low, high) = range(runs);
    let x = Axis::log(low, high, area.left, area.right);
    upright_grid(svg, share, area, ticks, true);
    // Room for the widest label and a gap.
    let apart = Style::SMALL.width("10000") + 6.0;
    across_grid(svg, &x, area, &x.log_ticks(apart));
    let end = across(svg, area, "response time (ms)");
    for (run, number) in runs.iter().zip(palette) {
        let (colour, dash) = line_of(*number);
        let points = line(&run.run.curve).into_iter();
        let points = points.map(|(time, part)| (x.at(time), share.at(part)));
        svg.path(&curve(points), colour, 1.8, dash);
    }
    let faint = Style::PLAIN.in_colour(FAINT);
    svg.text(area.left, area.top - 9.0, faint, above);
    let middle = (area.top + area.bottom) / 2.0;
    svg.upward(area.left - 46.0, middle, Style::PLAIN, beside);
    frame(svg, area);
    end
}

fn cumulative(svg: &mut Svg, area: Area, runs: &[Drawn<'_>], palette: &[usize]) {
    let share = Axis::linear(0.0, 100.0, area.bottom, area.top);
    let ticks = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0];
    let line = |curve: &[(f64, f64)]| {
        let first = curve.first().map(|(time, _)| (*time, 0.0));
        let rest = curve.iter().map(|(time, part)| (*time, part * 100.0));
        first.into_iter().chain(rest).collect()
    };
    let texts = ["all: how many were done within a time", "requests done (%)"];
    chart(svg, area, &share, &ticks, (runs, palette), line, texts);
}

fn slowest(svg: &mut Svg, area: Area, runs: &[Drawn<'_>], palette: &[usize]) -> f64 {
    // The scale reaches down to the share of the single slowest request of the largest run, but covers at most four decades.
    let least = runs
        .iter()
        .filter_map(|run| run.run.curve.iter().rev().find(|(_, part)| *part < 1.0))
        .map(|(_, part)| (1.0 - part) * 100.0)
        .fold(10.0, f64::min)
        .max(0.01);
    let share = Axis::log(least, 100.0, area.bottom, area.top);
    let ticks = [0.01, 0.1, 1.0, 10.0, 100.0].into_iter();
    let ticks: Vec<f64> = ticks.filter(|tick| *tick >= least * (1.0 - 1e-9)).collect();
    let line = |curve: &[(f64, f64)]| {
        let mut before = 1.0;
        let longer = curve.iter().map(|(time, part)| {
            let longer = std::mem::replace(&mut before, 1.0 - part);
            (*time, (longer * 100.0).max(least))
        });
        longer.collect()
    };
    let texts = [
        "the slowest: how many took at least a time",
        "requests left (%)",
    ];
    chart(svg, area, &share, &ticks, (runs, palette), line, texts)
}

/// Range of times to show, in milliseconds.
fn range(runs: &[Drawn<'_>]) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for curve in runs.iter().map(|run| &run.run.curve) {
        let first = curve.iter().find(|(_, share)| *share >= LEAST_SHARE);
        low = first.map_or(low, |(time, _)| low.min(*time));
        high = curve.last().map_or(high, |(time, _)| high.max(*time));
    }
    let low = if low.is_finite() { low.max(0.001) } else { 1.0 };
    (low, high.max(low * 2.0))
}

/// A line through points. Points too close to be visible are left out.
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
