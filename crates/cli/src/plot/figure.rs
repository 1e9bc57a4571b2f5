//! The picture of a figure: bars or lines of its points, dots of single requests.
//!
//! Ranges that are accepted are drawn behind the values in grey, the paper's numbers as black
//! strokes.

use super::axis::{Axis, label};
use super::svg::{Anchor, FAINT, GRID, INK, Path, Style, Svg};
use super::{EDGE, LINES, WIDTH, across_grid, frame, line_of, lines, wrap};
use crate::execute::Sample;
use crate::figure::judge::{Measured, MeasuredPoint};
use crate::figure::{Figure, PlotKind, PlotSpec, RunOf, X};

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;
/// What is accepted.
const ACCEPTED: &str = "#d9d9d9";

/// Draws a figure as SVG text. `samples` gives the single requests of the runs it shows.
pub fn draw<'a>(
    figure: &Figure,
    measured: &Measured,
    samples: impl Fn(&RunOf) -> &'a [Sample],
) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = EDGE + 14.0;
    svg.text(EDGE, y, Anchor::Start, Style::TITLE, &measured.title);
    let faint = Style {
        fill: FAINT,
        ..Style::PLAIN
    };
    let quick = if measured.quick { ", quick scale" } else { "" };
    let subtitle = format!("{} · seed {}{quick}", measured.source, measured.seed);
    for line in wrap(&subtitle, Style::PLAIN, WIDTH - 2.0 * EDGE) {
        y += 18.0;
        svg.text(EDGE, y, Anchor::Start, faint, &line);
    }
    for plot in &figure.plots {
        y += 34.0;
        svg.text(EDGE, y, Anchor::Start, Style::HEADING, &plot.title);
        y += 22.0;
        y = match plot.kind {
            PlotKind::Bars => bars(&mut svg, y, plot, &shown(figure, measured, plot)),
            PlotKind::Lines => over(&mut svg, y, plot, &shown(figure, measured, plot)),
            PlotKind::Waits | PlotKind::Services => {
                let runs: Vec<(String, &[Sample])> = plot
                    .runs
                    .iter()
                    .map(|run| (run.scheduler.to_string(), samples(run)))
                    .collect();
                dots(&mut svg, y, plot, &runs)
            }
        };
    }
    svg.finish(y + EDGE)
}

/// The points of a panel.
fn shown<'a>(figure: &Figure, measured: &'a Measured, plot: &PlotSpec) -> Vec<&'a MeasuredPoint> {
    let pairs = figure.points.iter().zip(&measured.points);
    pairs
        .filter(|(point, _)| plot.shows(point))
        .map(|(_, measured)| measured)
        .collect()
}

/// The different values of something, in the order of their first appearance.
fn different<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The least and largest value to show, zero included.
fn extent(points: &[&MeasuredPoint]) -> (f64, f64) {
    let values = points.iter().flat_map(|point| {
        let [low, high] = point.accept.unwrap_or_default();
        [Some(point.measured), point.paper, low, high]
    });
    let (low, high) = values.flatten().fold((0.0, 0.0), |(low, high), value| {
        (f64::min(low, value), f64::max(high, value))
    });
    let room = 0.06 * (high - low);
    (
        if low < 0.0 { low - room } else { 0.0 },
        if high > 0.0 { high + room } else { 0.0 },
    )
}

/// The vertical axis with its grid and its label.
fn upright(svg: &mut Svg, axis: &Axis, top: f64, name: &str) {
    let bottom = top + HEIGHT;
    for tick in axis.ticks(6) {
        let y = axis.at(tick);
        svg.line((LEFT, y), (WIDTH - EDGE, y), GRID, 1.0);
        svg.text(LEFT - 6.0, y + 4.0, Anchor::End, Style::SMALL, &label(tick));
    }
    svg.upward(
        LEFT - 56.0,
        (top + bottom) / 2.0,
        Anchor::Middle,
        Style::PLAIN,
        name,
    );
    frame(svg, LEFT, top, WIDTH - EDGE, bottom);
}

/// The name of the horizontal axis; returns where it ends below.
fn across(svg: &mut Svg, bottom: f64, name: &str) -> f64 {
    if name.is_empty() {
        return bottom + 18.0;
    }
    let middle = (LEFT + WIDTH - EDGE) / 2.0;
    svg.text(middle, bottom + 36.0, Anchor::Middle, Style::PLAIN, name);
    bottom + 36.0
}

/// Which line of the palette each series has. A scheduler has the same one in every picture; black is
/// left to the papers' numbers.
fn palette(series: &[&str]) -> Vec<usize> {
    const KNOWN: [(&str, usize); 6] = [
        ("noop", 0),
        ("deadline", 1),
        ("anticipatory", 2),
        ("cfq", 3),
        ("stream", 5),
        ("clairvoyant", 6),
    ];
    const FREE: [usize; 7] = [0, 1, 2, 3, 5, 6, 7];
    let own = |name: &str| {
        let known = KNOWN.iter().find(|(scheduler, _)| {
            name.strip_prefix(scheduler)
                .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
        });
        known.map(|(_, line)| *line)
    };
    let mut lines: Vec<Option<usize>> = Vec::new();
    for name in series {
        let line = own(name).filter(|line| !lines.contains(&Some(*line)));
        lines.push(line);
    }
    for at in 0..lines.len() {
        if lines[at].is_none() {
            let free = FREE.iter().find(|line| !lines.contains(&Some(**line)));
            // Past the palette, lines meet other dashes.
            let more = LINES.len() + FREE[at % FREE.len()];
            lines[at] = Some(free.copied().unwrap_or(more));
        }
    }
    lines.into_iter().flatten().collect()
}

fn bars(svg: &mut Svg, top: f64, plot: &PlotSpec, points: &[&MeasuredPoint]) -> f64 {
    let series = different(points.iter().map(|point| point.series.as_str()));
    let palette = palette(&series);
    let groups = different(points.iter().map(|point| &point.x));
    let mut y = top;
    let mut x = EDGE;
    for (number, name) in series.iter().enumerate() {
        let width = 18.0 + Style::PLAIN.width(name) + 14.0;
        if x + width > WIDTH - EDGE && x > EDGE {
            (x, y) = (EDGE, y + 18.0);
        }
        svg.rect(x, y - 9.0, 12.0, 10.0, line_of(palette[number]).0);
        svg.text(x + 17.0, y, Anchor::Start, Style::PLAIN, name);
        x += width;
    }
    let top = y + 16.0;
    let bottom = top + HEIGHT;
    let (low, high) = extent(points);
    let axis = Axis::linear(low, high, bottom, top);
    upright(svg, &axis, top, &plot.y);
    let wide = (WIDTH - EDGE - LEFT) / groups.len().max(1) as f64;
    let bar = (wide * 0.84 / series.len().max(1) as f64).min(60.0);
    for (number, group) in groups.iter().enumerate() {
        let middle = LEFT + wide * (number as f64 + 0.5);
        svg.text(
            middle,
            bottom + 16.0,
            Anchor::Middle,
            Style::PLAIN,
            &group.to_string(),
        );
        let of_group = points.iter().filter(|point| point.x == **group);
        for point in of_group {
            let place = series.iter().position(|name| *name == point.series);
            let place = place.expect("the series are those of the points");
            let from = middle + bar * (place as f64 - series.len() as f64 / 2.0);
            accepted(svg, &axis, point, from + 1.0, bar - 2.0);
            let (zero, value) = (axis.at(0.0), axis.at(point.measured));
            let (upper, lower) = (zero.min(value), zero.max(value));
            let colour = line_of(palette[place]).0;
            svg.rect(
                from + bar * 0.2,
                upper,
                bar * 0.6,
                (lower - upper).max(1.0),
                colour,
            );
            paper(svg, &axis, point, from + 1.0, bar - 2.0);
        }
    }
    svg.line((LEFT, axis.at(0.0)), (WIDTH - EDGE, axis.at(0.0)), INK, 1.0);
    across(svg, bottom, &plot.x)
}

fn accepted(svg: &mut Svg, axis: &Axis, point: &MeasuredPoint, x: f64, width: f64) {
    if let Some([low, high]) = point.accept {
        let low = axis.at(low.unwrap_or(f64::NEG_INFINITY));
        let high = axis.at(high.unwrap_or(f64::INFINITY));
        svg.rect(x, high, width, (low - high).max(1.0), ACCEPTED);
    }
}

fn paper(svg: &mut Svg, axis: &Axis, point: &MeasuredPoint, x: f64, width: f64) {
    if let Some(value) = point.paper {
        let y = axis.at(value);
        svg.line((x, y), (x + width, y), "#000000", 2.0);
    }
}

fn over(svg: &mut Svg, top: f64, plot: &PlotSpec, points: &[&MeasuredPoint]) -> f64 {
    let series = different(points.iter().map(|point| point.series.as_str()));
    let palette = palette(&series);
    let legend = palette.iter().copied().zip(series.iter().copied());
    let top = lines(svg, top, legend) + 16.0;
    let bottom = top + HEIGHT;
    let (low, high) = extent(points);
    let axis = Axis::linear(low, high, bottom, top);
    upright(svg, &axis, top, &plot.y);
    let place = |point: &MeasuredPoint| match &point.x {
        X::Number(x) => *x,
        X::Text(_) => unreachable!("lines are over numbers"),
    };
    let xs = points.iter().map(|point| place(point));
    let (least, most) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    let x = Axis::linear(least, most, LEFT, WIDTH - EDGE - 10.0);
    across_grid(svg, &x, 10, top, bottom);
    for point in points {
        let at = x.at(place(point)) - 4.0;
        accepted(svg, &axis, point, at, 8.0);
        paper(svg, &axis, point, at, 8.0);
    }
    for (number, name) in series.iter().enumerate() {
        let (colour, dash) = line_of(palette[number]);
        let mut path = Path::default();
        let mut own: Vec<&&MeasuredPoint> = points
            .iter()
            .filter(|point| point.series == *name)
            .collect();
        own.sort_by(|one, other| place(one).total_cmp(&place(other)));
        for (number, point) in own.into_iter().enumerate() {
            let (x, y) = (x.at(place(point)), axis.at(point.measured));
            match number {
                0 => path.move_to(x, y),
                _ => path.line_to(x, y),
            }
            svg.rect(x - 2.0, y - 2.0, 4.0, 4.0, colour);
        }
        svg.path(&path, colour, 1.8, dash);
    }
    across(svg, bottom, &plot.x)
}

/// Requests over the time at which they came.
fn dots(svg: &mut Svg, top: f64, plot: &PlotSpec, runs: &[(String, &[Sample])]) -> f64 {
    let value = |sample: &Sample| match plot.kind {
        PlotKind::Waits => (sample.issued - sample.arrived) * 1e3,
        _ => (sample.done - sample.issued) * 1e3,
    };
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let palette = palette(&names);
    let mut x = EDGE;
    for (number, (name, _)) in runs.iter().enumerate() {
        svg.rect(x, top - 7.0, 6.0, 6.0, line_of(palette[number]).0);
        svg.text(x + 12.0, top, Anchor::Start, Style::PLAIN, name);
        x += 12.0 + Style::PLAIN.width(name) + 14.0;
    }
    let top = top + 16.0;
    let bottom = top + HEIGHT;
    let all = || runs.iter().flat_map(|(_, samples)| samples.iter());
    let most = all().map(value).fold(0.0, f64::max);
    let last = all().map(|sample| sample.arrived).fold(0.0, f64::max);
    let axis = Axis::linear(0.0, most * 1.05, bottom, top);
    upright(svg, &axis, top, &plot.y);
    let x = Axis::linear(0.0, last, LEFT, WIDTH - EDGE - 10.0);
    across_grid(svg, &x, 8, top, bottom);
    for (number, (_, samples)) in runs.iter().enumerate() {
        // One path for all: a stroke as long as it is wide is a dot.
        let mut path = Path::default();
        for sample in *samples {
            let (x, y) = (x.at(sample.arrived), axis.at(value(sample)));
            path.move_to(x - 1.25, y);
            path.line_to(x + 1.25, y);
        }
        svg.path(&path, line_of(palette[number]).0, 2.5, "");
    }
    across(svg, bottom, &plot.x)
}

#[cfg(test)]
mod tests {
    use super::palette;

    #[test]
    fn a_scheduler_has_its_colour_in_every_picture() {
        let all = [
            "noop",
            "deadline",
            "anticipatory",
            "cfq",
            "stream",
            "clairvoyant",
        ];
        let whole = palette(&all);
        for (at, name) in all.iter().enumerate() {
            assert_eq!(palette(&[name]), [whole[at]], "{name}");
        }
        assert_eq!(palette(&["stream(deadline)"]), [whole[4]]);
        // Another of the same, and one nobody knows, have what is left; none has another's.
        let mut more = palette(&[
            "stream, 31 FIFO",
            "stream, 31 SPTF",
            "think time 0 us",
            "cfq",
        ]);
        assert_eq!((more[0], more[3]), (whole[4], whole[3]));
        more.sort_unstable();
        more.dedup();
        assert_eq!(more.len(), 4);
        assert_eq!(palette(&["a"; 20]).len(), 20);
    }
}
