//! Draws a figure of a paper: bars or lines of its points, dots of single requests, distributions of errors.

use super::axis::Axis;
use super::chart::{
    self, ACCEPTED, Area, Mark, across, across_grid, boxes, curve, different, line_of, lines,
    marks, nothing, palette, upright,
};
use super::svg::{BLACK, INK, Path, Style, Svg};
use super::{EDGE, WIDTH, heading, wrap};
use headtime_lab::execute::Sample;
use headtime_lab::figure::judge::{MeasuredFigure, MeasuredPoint};
use headtime_lab::figure::output;
use headtime_lab::figure::{Figure, PlotKind, PlotSpec, RunOf, X};

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;

/// Draws a figure as SVG text. `samples` gives the single requests of the runs that the figure shows. `errors` gives each run's errors
/// of prediction in us, with the number of commands for each error.
pub fn draw<'a>(
    figure: &Figure,
    measured: &MeasuredFigure,
    samples: impl Fn(&RunOf) -> &'a [Sample],
    errors: impl Fn(&RunOf) -> Vec<(i64, u64)>,
) -> String {
    let mut svg = Svg::new(WIDTH);
    let quick = if measured.quick { ", quick scale" } else { "" };
    let subtitle = format!("{} · {}{quick}", measured.source, output::seeds(measured));
    let mut y = heading(&mut svg, &measured.title, &subtitle);
    for plot in &figure.plots {
        y += 34.0;
        svg.text(EDGE, y, Style::HEADING, &plot.title);
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
            PlotKind::Errors => {
                let runs = plot.runs.iter().map(|run| {
                    let scenario = &figure.variants[run.variant].name;
                    (format!("{scenario}, {}", run.scheduler), errors(run))
                });
                distribution(&mut svg, y, plot, &runs.collect::<Vec<_>>())
            }
        };
    }
    svg.finish(y + EDGE)
}

/// Returns the measured points that a panel shows.
fn shown<'a>(
    figure: &Figure,
    measured: &'a MeasuredFigure,
    plot: &PlotSpec,
) -> Vec<&'a MeasuredPoint> {
    let pairs = figure.points.iter().zip(&measured.points);
    pairs
        .filter(|(point, _)| plot.shows(point))
        .map(|(_, measured)| measured)
        .collect()
}

/// Draws the legend of marks that belong to no series.
fn others(svg: &mut Svg, y: f64, points: &[&MeasuredPoint]) -> f64 {
    let any = |occurs: fn(&MeasuredPoint) -> bool| points.iter().any(|point| occurs(point));
    let of = [
        (Mark::Accepted, any(|point| point.accept.is_some())),
        (Mark::Paper, any(|point| point.paper.is_some())),
        (Mark::Seeds, any(|point| spread(point).is_some())),
    ];
    marks(svg, y, &of)
}

/// Returns the place of a chart that starts at `top`.
fn below(top: f64) -> Area {
    Area {
        left: LEFT,
        top,
        right: WIDTH - EDGE,
        bottom: top + HEIGHT,
    }
}

/// Returns the least and the largest value to show, zero included.
fn extent(points: &[&MeasuredPoint]) -> (f64, f64) {
    let values = points.iter().flat_map(|point| {
        let [low, high] = point.accept.unwrap_or_default();
        let [least, most] = point.range.unwrap_or([point.measured; 2]);
        [Some(least), Some(most), point.paper, low, high]
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

fn bars(svg: &mut Svg, top: f64, plot: &PlotSpec, points: &[&MeasuredPoint]) -> f64 {
    if points.is_empty() {
        return nothing(svg, top);
    }
    let series = different(points.iter().map(|point| point.series.as_str()));
    let palette = palette(&series);
    let groups = different(points.iter().map(|point| &point.x));
    let names = palette.iter().copied().zip(series.iter().copied());
    let legend = boxes(svg, top, names);
    let mut area = below(others(svg, legend, points) + 16.0);
    let bottom = area.bottom;
    let (low, high) = extent(points);
    let axis = Axis::linear(low, high, bottom, area.top);
    upright(svg, &axis, area, &plot.y);
    let wide = (WIDTH - EDGE - LEFT) / groups.len().max(1) as f64;
    let bar = (wide * 0.84 / series.len().max(1) as f64).min(60.0);
    let words: Vec<String> = groups.iter().map(ToString::to_string).collect();
    area.bottom += names_below(svg, bottom, wide, &words);
    for (number, group) in groups.iter().enumerate() {
        let middle = LEFT + wide * (number as f64 + 0.5);
        let of_group = points.iter().filter(|point| point.x == **group);
        for point in of_group {
            let place = series.iter().position(|name| *name == point.series);
            let place = place.expect("the series are those of the points");
            let from = middle + bar * (place as f64 - series.len() as f64 / 2.0);
            accepted(svg, &axis, point, from + 1.0, bar - 2.0);
            let (line, value) = (palette[place], point.measured);
            chart::bar(svg, &axis, from + bar * 0.2, bar * 0.6, value, line);
            seeds(svg, &axis, point, from + bar * 0.5);
            paper(svg, &axis, point, from + 1.0, bar - 2.0);
        }
    }
    svg.line((LEFT, axis.at(0.0)), (WIDTH - EDGE, axis.at(0.0)), INK, 1.0);
    across(svg, area, &plot.x)
}

/// Writes names below groups that are `wide` pixels apart: in lines, or upright if a word is too wide. Returns the height beyond one line.
fn names_below(svg: &mut Svg, bottom: f64, wide: f64, names: &[String]) -> f64 {
    const LINE: f64 = 14.0;
    let room = wide - 4.0;
    let broken = names.iter().map(|name| wrap(name, Style::PLAIN, room));
    let broken: Vec<Vec<String>> = broken.collect();
    let width = |text: &String| Style::PLAIN.width(text);
    let middle = |number: usize| LEFT + wide * (number as f64 + 0.5);
    if broken.iter().flatten().any(|line| width(line) > room) {
        for (number, name) in names.iter().enumerate() {
            svg.upward_to(middle(number) + 4.0, bottom + 8.0, Style::PLAIN, name);
        }
        return names.iter().map(width).fold(0.0, f64::max) - 12.0;
    }
    for (number, lines) in broken.iter().enumerate() {
        for (below, line) in lines.iter().enumerate() {
            let y = bottom + 16.0 + LINE * below as f64;
            svg.centred(middle(number), y, Style::PLAIN, line);
        }
    }
    let most = broken.iter().map(Vec::len).max().unwrap_or(1);
    LINE * most.saturating_sub(1) as f64
}

/// Draws the range of the seeds' values.
fn seeds(svg: &mut Svg, axis: &Axis, point: &MeasuredPoint, x: f64) {
    if let Some([least, most]) = spread(point) {
        svg.line((x, axis.at(least)), (x, axis.at(most)), INK, 1.0);
    }
}

/// Returns the least and the largest value of a point's seeds, if they differ.
fn spread(point: &MeasuredPoint) -> Option<[f64; 2]> {
    point.range.filter(|[least, most]| least < most)
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
        svg.line((x, y), (x + width, y), BLACK, 2.0);
    }
}

fn over(svg: &mut Svg, top: f64, plot: &PlotSpec, points: &[&MeasuredPoint]) -> f64 {
    if points.is_empty() {
        return nothing(svg, top);
    }
    let series = different(points.iter().map(|point| point.series.as_str()));
    let palette = palette(&series);
    let legend = palette.iter().copied().zip(series.iter().copied());
    let legend = lines(svg, top, legend);
    let area = below(others(svg, legend, points) + 16.0);
    let (low, high) = extent(points);
    let axis = Axis::linear(low, high, area.bottom, area.top);
    upright(svg, &axis, area, &plot.y);
    let place = |point: &MeasuredPoint| match &point.x {
        X::Number(x) => *x,
        X::Text(_) => unreachable!("lines are over numbers"),
    };
    let xs = points.iter().map(|point| place(point));
    let (least, most) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    let x = Axis::linear(least, most, LEFT, WIDTH - EDGE - 10.0);
    across_grid(svg, &x, area, &x.ticks(10));
    for point in points {
        let at = x.at(place(point)) - 4.0;
        accepted(svg, &axis, point, at, 8.0);
        paper(svg, &axis, point, at, 8.0);
        seeds(svg, &axis, point, at + 4.0);
    }
    for (number, name) in series.iter().enumerate() {
        let own = points.iter().filter(|point| point.series == *name);
        let mut own: Vec<&&MeasuredPoint> = own.collect();
        own.sort_by(|one, other| place(one).total_cmp(&place(other)));
        let own: Vec<_> = own
            .into_iter()
            .map(|point| Some((x.at(place(point)), axis.at(point.measured))))
            .collect();
        curve(svg, &own, palette[number]);
    }
    across(svg, area, &plot.x)
}

/// Width of a bar of a distribution, in us.
const BAR_US: i64 = 100;
/// Least share to show, in %: a few commands in a hundred thousand.
const LEAST_SHARE: f64 = 0.01;

/// Draws the distribution of errors of prediction, in milliseconds. The axis of shares is logarithmic, since errors of a whole turn are
/// about a hundred times rarer than the others.
fn distribution(
    svg: &mut Svg,
    top: f64,
    plot: &PlotSpec,
    runs: &[(String, Vec<(i64, u64)>)],
) -> f64 {
    if runs.iter().all(|(_, errors)| errors.is_empty()) {
        return nothing(svg, top);
    }
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let palette = palette(&names);
    let legend = palette.iter().copied().zip(names.iter().copied());
    let area = below(boxes(svg, top, legend) + 16.0);
    let axis = Axis::log(LEAST_SHARE, 100.0, area.bottom, area.top);
    let ticks = axis.log_ticks(24.0);
    chart::upright_grid(svg, &axis, area, &ticks, true);
    let middle = (area.top + area.bottom) / 2.0;
    svg.upward(area.left - 56.0, middle, Style::PLAIN, &plot.y);
    chart::frame(svg, area);
    let shares = runs.iter().map(|(_, errors)| by_part(errors));
    let shares: Vec<Vec<(f64, f64)>> = shares.collect();
    let seen = shares.iter().flatten().map(|(off, _)| off.abs());
    let most = seen.fold(1.0, f64::max) + BAR_US as f64 / 1e3;
    let x = Axis::linear(-most, most, LEFT, WIDTH - EDGE - 10.0);
    across_grid(svg, &x, area, &x.ticks(12));
    let wide = x.at(BAR_US as f64 / 1e3) - x.at(0.0);
    for (number, shares) in shares.iter().enumerate() {
        // Bars of several runs are drawn side by side.
        let bar = wide / runs.len() as f64;
        for (off, share) in shares {
            let left = x.at(off - BAR_US as f64 / 2e3) + number as f64 * bar;
            let high = axis.at(*share);
            let colour = line_of(palette[number]).0;
            svg.rect(left, high, bar.max(1.0), area.bottom - high, colour);
        }
    }
    across(svg, area, &plot.x)
}

/// Returns errors in ms, at the middle of each bar, with the share of commands in %. Shares too small to be shown are left out.
fn by_part(errors: &[(i64, u64)]) -> Vec<(f64, f64)> {
    let all: u64 = errors.iter().map(|(_, commands)| commands).sum();
    let mut parts = std::collections::BTreeMap::new();
    for (error, commands) in errors {
        let part = (error + BAR_US / 2).div_euclid(BAR_US);
        *parts.entry(part).or_insert(0) += commands;
    }
    let share = |commands: u64| 100.0 * commands as f64 / all as f64;
    let shares = parts
        .into_iter()
        .map(|(part, commands): (i64, u64)| ((part * BAR_US) as f64 / 1e3, share(commands)));
    shares.filter(|(_, share)| *share >= LEAST_SHARE).collect()
}

/// Draws a dot for each request over its time of arrival.
fn dots(svg: &mut Svg, top: f64, plot: &PlotSpec, runs: &[(String, &[Sample])]) -> f64 {
    let value = |sample: &Sample| match plot.kind {
        PlotKind::Waits => (sample.issued - sample.arrived) * 1e3,
        _ => (sample.done - sample.issued) * 1e3,
    };
    if runs.iter().all(|(_, samples)| samples.is_empty()) {
        return nothing(svg, top);
    }
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let palette = palette(&names);
    let mut x = EDGE;
    for (number, (name, _)) in runs.iter().enumerate() {
        svg.rect(x, top - 7.0, 6.0, 6.0, line_of(palette[number]).0);
        svg.text(x + 12.0, top, Style::PLAIN, name);
        x += 12.0 + Style::PLAIN.width(name) + 14.0;
    }
    let area = below(top + 16.0);
    let all = || runs.iter().flat_map(|(_, samples)| samples.iter());
    let most = all().map(value).fold(0.0, f64::max);
    let last = all().map(|sample| sample.arrived).fold(0.0, f64::max);
    let axis = Axis::linear(0.0, most * 1.05, area.bottom, area.top);
    upright(svg, &axis, area, &plot.y);
    let x = Axis::linear(0.0, last, LEFT, WIDTH - EDGE - 10.0);
    across_grid(svg, &x, area, &x.ticks(8));
    for (number, (_, samples)) in runs.iter().enumerate() {
        // One path draws all dots: a stroke that is as long as it is wide looks like a dot.
        let mut path = Path::default();
        for sample in *samples {
            let (x, y) = (x.at(sample.arrived), axis.at(value(sample)));
            path.move_to(x - 1.25, y);
            path.line_to(x + 1.25, y);
        }
        svg.path(&path, line_of(palette[number]).0, 2.5, "");
    }
    across(svg, area, &plot.x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_in_parts_around_their_middles() {
        let errors = [
            (-6_010, 10),
            (-50, 300),
            (0, 500),
            (40, 179),
            (50, 10),
            (9_000, 1),
        ];
        let shares = by_part(&errors);
        let expected = [(-6.0, 1.0), (0.0, 97.9), (0.1, 1.0), (9.0, 0.1)];
        assert_eq!(shares, expected);
        // One command of a hundred thousand is too few to be shown. Without predictions the result is empty.
        assert_eq!(by_part(&[(0, 99_999), (700, 1)]).len(), 1);
        assert_eq!(by_part(&[]), []);
    }
}
