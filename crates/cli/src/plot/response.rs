//! How long requests took: the share of requests that took no longer, over the logarithm of time.

use super::axis::{Axis, label};
use super::svg::{Anchor, GRID, Path, Style, Svg};
use super::{EDGE, Run, WIDTH, frame, line_of};

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;
/// Times below this share are left out of the axis: a few buffer hits would stretch it by decades.
const LEAST_SHARE: f64 = 0.002;

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Run]) -> f64 {
    svg.text(
        EDGE,
        top,
        Anchor::Start,
        Style::HEADING,
        "How long requests took",
    );
    let note = "share of requests that were finished within a time, from arrival to completion";
    let beside = EDGE + Style::HEADING.width("How long requests took") + 14.0;
    svg.text(beside, top, Anchor::Start, Style::SMALL, note);
    let names = runs.iter().map(|run| Style::PLAIN.width(&run.label));
    let legend = names.fold(60.0, f64::max) + 44.0;
    let right = WIDTH - EDGE - legend;
    let (y, bottom) = (top + 18.0, top + 18.0 + HEIGHT);
    let (low, high) = range(runs);
    let x = Axis::log(low, high, LEFT, right);
    let share = Axis::linear(0.0, 100.0, bottom, y);
    for tick in [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0] {
        svg.line((LEFT, share.at(tick)), (right, share.at(tick)), GRID, 1.0);
        svg.text(
            LEFT - 6.0,
            share.at(tick) + 4.0,
            Anchor::End,
            Style::SMALL,
            &label(tick),
        );
    }
    for tick in x.ticks(14) {
        svg.line((x.at(tick), y), (x.at(tick), bottom), GRID, 1.0);
        svg.text(
            x.at(tick),
            bottom + 16.0,
            Anchor::Middle,
            Style::SMALL,
            &label(tick),
        );
    }
    for (number, run) in runs.iter().enumerate() {
        let (colour, dash) = line_of(number);
        svg.path(&steps(&run.curve, &x, &share), colour, 1.8, dash);
        let row = y + 12.0 + number as f64 * 20.0;
        let mut sample = Path::default();
        sample.move_to(right + 16.0, row - 4.0);
        sample.line_to(right + 46.0, row - 4.0);
        svg.path(&sample, colour, 1.8, dash);
        svg.text(right + 52.0, row, Anchor::Start, Style::PLAIN, &run.label);
    }
    frame(svg, LEFT, y, right, bottom);
    svg.upward(
        EDGE + 12.0,
        (y + bottom) / 2.0,
        Anchor::Middle,
        Style::PLAIN,
        "requests (%)",
    );
    let middle = (LEFT + right) / 2.0;
    svg.text(
        middle,
        bottom + 36.0,
        Anchor::Middle,
        Style::PLAIN,
        "response time (ms)",
    );
    let rows = y + 12.0 + runs.len() as f64 * 20.0;
    (bottom + 36.0).max(rows)
}

/// The shortest and longest time worth showing, in milliseconds.
fn range(runs: &[Run]) -> (f64, f64) {
    let mut low = f64::INFINITY;
    let mut high: f64 = 0.0;
    for run in runs {
        let first = run.curve.iter().find(|(_, share)| *share >= LEAST_SHARE);
        low = first.map_or(low, |(time, _)| low.min(*time));
        high = run.curve.last().map_or(high, |(time, _)| high.max(*time));
    }
    let low = if low.is_finite() { low.max(0.001) } else { 1.0 };
    (low, high.max(low * 2.0))
}

/// The curve as steps, without those that a pixel could not show.
fn steps(curve: &[(f64, f64)], x: &Axis, share: &Axis) -> Path {
    let mut path = Path::default();
    let mut pen: Option<(f64, f64)> = None;
    for (number, (time, part)) in curve.iter().enumerate() {
        let to = (x.at(*time), share.at(part * 100.0));
        match pen {
            None => {
                path.move_to(to.0, share.at(0.0));
                path.line_to(to.0, to.1);
                pen = Some(to);
            }
            Some(at) => {
                let far = (to.0 - at.0).abs() + (to.1 - at.1).abs() >= 0.7;
                if far || number + 1 == curve.len() {
                    path.line_to(to.0, to.1);
                    pen = Some(to);
                }
            }
        }
    }
    path
}
