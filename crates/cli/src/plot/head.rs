//! Draws the place of the head: address over time, coloured by activity, in a panel for each run.

use super::axis::{Axis, label};
use super::chart::{Area, activities, frame, upright_grid};
use super::drawn::{Comparison, Drawn};
use super::svg::{GRID, Path, Style, Svg};
use super::{EDGE, PARTS, WIDTH, colour};
use headtime_disk::Part;
use headtime_lab::execute::Mark;
use std::collections::BTreeSet;

const PANEL: f64 = 96.0;
const GAP: f64 = 26.0;
const LEFT: f64 = 84.0;

/// Unit for a span of seconds, and the number of units in a second.
fn time_unit(span: f64) -> (&'static str, f64) {
    match span {
        span if span < 0.002 => ("us", 1e6),
        span if span < 2.0 => ("ms", 1e3),
        span if span < 7200.0 => ("s", 1.0),
        _ => ("h", 1.0 / 3600.0),
    }
}

/// Unit for addresses, and its size in bytes.
fn size_unit(bytes: f64) -> (&'static str, f64) {
    match bytes {
        bytes if bytes < 2e9 => ("MB", 1e6),
        bytes if bytes < 2e12 => ("GB", 1e9),
        _ => ("TB", 1e12),
    }
}

pub(super) fn draw(svg: &mut Svg, top: f64, picture: &Comparison<'_>) -> f64 {
    let (from, to) = picture.window;
    let (unit, per_second) = time_unit(to - from);
    let (low, high) = addresses(picture);
    let (size, bytes) = size_unit(high);
    let heading = "Where the head was, and what it did there";
    svg.text(EDGE, top, Style::HEADING, heading);
    let within = |mark: &&Mark| mark.to > from && mark.from < to;
    let marks = picture.runs.iter().flat_map(|run| &run.marks);
    let mut used = [false; PARTS];
    for mark in marks.filter(within) {
        used[mark.part as usize] = true;
    }
    let mut y = activities(svg, top + 22.0, used) + 12.0;
    let x = Axis::linear(from * per_second, to * per_second, LEFT, WIDTH - EDGE);
    let ticks = x.ticks(10);
    let panels = picture.runs.len();
    for (number, run) in picture.runs.iter().enumerate() {
        y += GAP;
        let bottom = y + PANEL;
        svg.text(LEFT, y - 7.0, Style::STRONG, run.label());
        let beside = LEFT + Style::STRONG.width(run.label()) + 12.0;
        svg.text(beside, y - 7.0, Style::SMALL, &run.note());
        let scale = Axis::linear(low / bytes, high / bytes, bottom, y);
        for tick in &ticks {
            svg.line((x.at(*tick), y), (x.at(*tick), bottom), GRID, 1.0);
        }
        let area = Area {
            left: LEFT,
            top: y,
            right: WIDTH - EDGE,
            bottom,
        };
        upright_grid(svg, &scale, area, &scale.ticks(4), true);
        let place = |mark_time: f64, address: f64| {
            (x.at(mark_time * per_second), scale.at(address / bytes))
        };
        strokes(svg, run, picture.window, place);
        if !run.marks.iter().any(|mark| within(&mark)) {
            let middle = (y + bottom) / 2.0;
            svg.centred(area.middle(), middle, Style::SMALL, "no requests here");
        }
        frame(svg, area);
        let name = format!("address ({size})");
        svg.upward(EDGE + 12.0, (y + bottom) / 2.0, Style::SMALL, &name);
        y = bottom;
        if number + 1 == panels {
            for tick in &ticks {
                svg.centred(x.at(*tick), y + 16.0, Style::SMALL, &label(*tick));
            }
            y += 34.0;
            let name = format!("simulated time ({unit})");
            svg.centred(area.middle(), y, Style::PLAIN, &name);
        }
    }
    y
}

/// Range of addresses that the panels show, in bytes. This is the whole drive if the heads use much of the drive, or else the used
/// part.
fn addresses(picture: &Comparison<'_>) -> (f64, f64) {
    let (from, to) = picture.window;
    let marks = picture.runs.iter().flat_map(|run| &run.marks);
    let shown = marks
        .filter(|mark| mark.to > from && mark.from < to)
        .map(|mark| mark.address);
    let (low, high) = shown.fold((f64::INFINITY, 0.0_f64), |(low, high), address| {
        (low.min(address), high.max(address))
    });
    let used = high - low;
    if used > 0.3 * picture.capacity || used <= 0.0 || !used.is_finite() {
        return (0.0, picture.capacity);
    }
    let edge = 0.05 * used;
    // If the used part begins near zero, the range begins at zero.
    let low = if low < 0.3 * used { 0.0 } else { low - edge };
    (low, (high + edge).min(picture.capacity))
}

/// Draws the strokes of a panel, one path per activity. Strokes on the same pixels are drawn once. So the picture stays small for runs
/// of any length.
fn strokes(
    svg: &mut Svg,
    run: &Drawn<'_>,
    window: (f64, f64),
    place: impl Fn(f64, f64) -> (f64, f64),
) {
    let mut paths: [Path; PARTS] = Default::default();
    let mut drawn = BTreeSet::new();
    let mut head = run.marks.first().map_or(0.0, |mark| mark.address);
    for mark in &run.marks {
        let came_from = head;
        // During these activities the arm does not move.
        if !matches!(
            mark.part,
            Part::Overhead | Part::Waiting | Part::Held | Part::Idle
        ) {
            head = mark.address;
        }
        if mark.to <= window.0 || mark.from >= window.1 {
            continue;
        }
        let moves = matches!(mark.part, Part::Seek | Part::Destage);
        let start = if moves { came_from } else { head };
        let (from, to) = (mark.from.max(window.0), mark.to.min(window.1));
        let (begin, mut end) = (place(from, start), place(to, head));
        // A shorter stroke would not be visible, so the stroke is lengthened.
        if end.0 - begin.0 < 0.8 && start == head {
            end.0 = begin.0 + 0.8;
        }
        let pixel = |(x, y): (f64, f64)| ((x * 2.0) as i32, (y * 2.0) as i32);
        if drawn.insert((mark.part, pixel(begin), pixel(end))) {
            let path = &mut paths[mark.part as usize];
            path.move_to(begin.0, begin.1);
            path.line_to(end.0, end.1);
        }
    }
    // The most important activities are drawn last, so that they lie on top.
    for part in [
        Part::Idle,
        Part::Held,
        Part::Waiting,
        Part::Seek,
        Part::ReadAhead,
        Part::Destage,
        Part::ReadModifyWrite,
        Part::Overhead,
        Part::Switch,
        Part::Rotation,
        Part::Transfer,
    ] {
        let width = match part {
            Part::Seek => 0.9,
            Part::Idle | Part::Waiting | Part::Held => 2.0,
            _ => 4.0,
        };
        svg.path(&paths[part as usize], colour(part), width, "");
    }
}
