//! Draws a sweep: small charts side by side, all with one scale.

use super::axis::Axis;
use super::chart::{
    self, Area, Mark, across, boxes, cross, curve, frame, line_of, lines, marks, nothing, palette,
    upright_grid,
};
use super::svg::{GRID, INK, Style, Svg};
use super::{EDGE, WIDTH, headed, heading};
use headtime_units::{Bytes, Nanos};

/// Left edge of the first charts, with room for numbers and the label.
const LEFT: f64 = 84.0;
/// Space between charts.
const GAP: f64 = 30.0;
/// Largest number of charts side by side.
pub const ACROSS_MAX: usize = 8;

/// Charts to draw.
#[derive(Clone, Debug, Default)]
pub struct Multiples {
    /// Title of the picture.
    pub title: String,
    /// Description of the runs, in a line or two.
    pub subtitle: String,
    /// Parts of the picture, from top to bottom.
    pub blocks: Vec<Block>,
}

/// Charts with one scale and one legend.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Heading of the block.
    pub heading: String,
    /// Quantity that distinguishes the series. Empty for a single series that needs no name.
    pub of_series: String,
    /// Names of the series.
    pub series: Vec<String>,
    /// Rows of charts.
    pub rows: Vec<ChartRow>,
}

/// Charts side by side.
#[derive(Clone, Debug, Default)]
pub struct ChartRow {
    /// Common property of the charts, or an empty text.
    pub name: String,
    /// The charts.
    pub charts: Vec<Chart>,
}

/// One chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Subject of the chart, or an empty text.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Values along the horizontal axis, as text, in their order.
    pub values: Vec<String>,
    /// Measured points.
    pub points: Vec<ChartPoint>,
}

/// A measured point, or a point without a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// Index of the series.
    pub series: usize,
    /// Index of the value along the axis.
    pub at: usize,
    /// Index of the run.
    pub of: usize,
    /// Measured value. `None` if the run failed, or if no value has been set yet.
    pub measured: Option<f64>,
    /// Half the width of the confidence interval.
    pub half: Option<f64>,
}

impl ChartPoint {
    /// Creates the point of a run. The value is set later.
    pub fn new(series: usize, at: usize, of: usize) -> ChartPoint {
        ChartPoint {
            series,
            at,
            of,
            measured: None,
            half: None,
        }
    }
}

/// Returns the values of texts, if all texts are numbers, sizes or durations.
pub fn numbers<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<Vec<f64>> {
    let all = |read: fn(&str) -> Option<f64>| texts.clone().map(read).collect();
    let plain: Option<Vec<f64>> =
        all(|text| text.parse().ok().filter(|value: &f64| value.is_finite()));
    let sizes = || all(|text| Some(text.parse::<Bytes>().ok()?.0 as f64));
    let spans = || all(|text| Some(text.parse::<Nanos>().ok()?.as_nanos() as f64));
    plain.or_else(sizes).or_else(spans)
}

/// Placement of values along a horizontal axis.
#[derive(Clone, Debug, PartialEq)]
enum Along {
    /// Words, evenly in their order.
    Words,
    /// Numbers on a linear axis.
    Linear(Vec<f64>),
    /// Numbers on a logarithmic axis. A zero is drawn separately at the left.
    Log(Vec<f64>),
}

impl Along {
    /// Chooses the axis for values. The axis is logarithmic if all values are powers of two times the smallest, or if their ratio
    /// exceeds `SPAN`.
    fn of(texts: &[String]) -> Along {
        /// Ratio beyond which a linear axis would have most values in its first tenth.
        const SPAN: f64 = 30.0;
        let Some(values) = numbers(texts.iter().map(String::as_str)) else {
            return Along::Words;
        };
        let above = || values.iter().copied().filter(|value| *value > 0.0);
        let least = above().fold(f64::INFINITY, f64::min);
        let most = above().fold(0.0, f64::max);
        // The mantissa of a power of two is zero.
        let is_power = |value: f64| (value / least).to_bits().trailing_zeros() >= 52;
        let negative = values.iter().any(|value| *value < 0.0);
        let log = (above().all(is_power) && most >= 4.0 * least) || most >= SPAN * least;
        match log && !negative && above().count() > 1 {
            true => Along::Log(values),
            false => Along::Linear(values),
        }
    }

    /// Returns the pixel of each value, from `left` to `right`.
    fn places(&self, count: usize, left: f64, right: f64) -> Vec<f64> {
        let (left, right) = (left + 8.0, right - 8.0);
        match self {
            Along::Words => {
                let wide = (right - left + 16.0) / count.max(1) as f64;
                (0..count)
                    .map(|at| left - 8.0 + wide * (at as f64 + 0.5))
                    .collect()
            }
            Along::Linear(values) => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if low >= high {
                    return vec![(left + right) / 2.0; values.len()];
                }
                let axis = Axis::linear(low, high, left, right);
                values.iter().map(|value| axis.at(*value)).collect()
            }
            Along::Log(values) => {
                let above = || values.iter().copied().filter(|value| *value > 0.0);
                let least = above().fold(f64::INFINITY, f64::min);
                let most = above().fold(0.0, f64::max);
                let zero = values.contains(&0.0);
                let first = match zero {
                    true => left + (right - left) / (count.max(2) - 1) as f64,
                    false => left,
                };
                let axis = Axis::log(least, most, first, right);
                let place = |value: &f64| if *value > 0.0 { axis.at(*value) } else { left };
                values.iter().map(place).collect()
            }
        }
    }
}

/// Draws a picture as SVG text.
pub fn draw(picture: &Multiples) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = heading(&mut svg, &picture.title, &picture.subtitle);
    for block in &picture.blocks {
        y = self::block(&mut svg, y + 34.0, block);
    }
    svg.finish(y + EDGE)
}

fn block(svg: &mut Svg, top: f64, block: &Block) -> f64 {
    let mut y = top;
    let names: Vec<&str> = block.series.iter().map(String::as_str).collect();
    let palette = palette(&names);
    let charts = || block.rows.iter().flat_map(|row| &row.charts);
    let points = || charts().flat_map(|chart| &chart.points);
    if points().all(|point| point.measured.is_none()) {
        svg.text(EDGE, y, Style::HEADING, &block.heading);
        return nothing(svg, y + 22.0);
    }
    if block.of_series.is_empty() {
        svg.text(EDGE, y, Style::HEADING, &block.heading);
    } else {
        headed(svg, y, &block.heading, &format!("by {}", block.of_series));
        y += 22.0;
        let legend = palette.iter().copied().zip(names.iter().copied());
        y = match charts().all(|chart| Along::of(&chart.values) == Along::Words) {
            true => boxes(svg, y, legend),
            false => lines(svg, y, legend),
        };
    }
    let wide = |point: &ChartPoint| point.half.is_some_and(|half| half > 0.0);
    let of = [
        (Mark::Confidence, points().any(wide)),
        (Mark::Failed, points().any(|point| point.measured.is_none())),
    ];
    y = marks(svg, y, &of);
    let most = points().filter_map(|point| Some(point.measured? + point.half.unwrap_or(0.0)));
    let most = most.fold(0.0, f64::max);
    let wide = block
        .rows
        .iter()
        .map(|row| row.charts.len())
        .max()
        .unwrap_or(1);
    let height = match wide {
        1 => 300.0,
        2 => 230.0,
        3 => 180.0,
        _ => 150.0,
    };
    let width = (WIDTH - EDGE - LEFT - GAP * (wide as f64 - 1.0)) / wide as f64;
    for (number, row) in block.rows.iter().enumerate() {
        if !row.name.is_empty() {
            y += 26.0;
            svg.text(EDGE, y, Style::STRONG, &row.name);
        }
        let titled = row.charts.iter().any(|chart| !chart.title.is_empty());
        let from = y + if titled { 36.0 } else { 16.0 };
        // If the charts below have the same axis, only the lowest charts show its name.
        let next = block.rows.get(number + 1).map(|next| &next.charts);
        let mut end = from + height;
        for (place, chart) in row.charts.iter().enumerate() {
            let left = LEFT + place as f64 * (width + GAP);
            let area = Area {
                left,
                top: from,
                right: left + width,
                bottom: from + height,
            };
            let below = next.and_then(|charts| charts.get(place));
            let name = match below.is_some_and(|below| below.x == chart.x) {
                true => "",
                false => &chart.x,
            };
            let axis = Axis::linear(0.0, most * 1.06, area.bottom, area.top);
            end = end.max(self::chart(
                svg,
                area,
                &axis,
                chart,
                name,
                &palette,
                place == 0,
            ));
        }
        y = end;
    }
    y
}

/// Draws one chart. Returns its lower end.
fn chart(
    svg: &mut Svg,
    area: Area,
    axis: &Axis,
    chart: &Chart,
    name: &str,
    palette: &[usize],
    numbers: bool,
) -> f64 {
    let title = shortened(&chart.title, Style::STRONG, area.right - area.left);
    svg.text(area.left, area.top - 10.0, Style::STRONG, &title);
    upright_grid(svg, axis, area, &axis.ticks(5), numbers);
    let scale = Along::of(&chart.values);
    let places = scale.places(chart.values.len(), area.left, area.right);
    ticks(svg, area, &chart.values, &places, scale == Along::Words);
    match scale {
        Along::Words => bars(svg, area, axis, chart, &places, palette),
        Along::Linear(_) | Along::Log(_) => over(svg, area, axis, chart, &places, palette),
    }
    frame(svg, area);
    across(svg, area, name)
}

/// Draws the values along the axis, as many as fit. The ends come first.
fn ticks(svg: &mut Svg, area: Area, values: &[String], places: &[f64], words: bool) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| places[*one].total_cmp(&places[*other]));
    if order.len() > 2 {
        // The last value comes before the values between.
        let last = order.pop().expect("there are three");
        order.insert(1, last);
    }
    let mut taken: Vec<(f64, f64)> = Vec::new();
    let most = (area.right - area.left) / values.len().max(1) as f64;
    for at in order {
        let x = places[at];
        if !words {
            svg.line((x, area.top), (x, area.bottom), GRID, 1.0);
        }
        let text = match words {
            true => shortened(&values[at], Style::SMALL, most - 4.0),
            false => values[at].clone(),
        };
        let half = Style::SMALL.width(&text) / 2.0 + 3.0;
        let free = |(from, to): &(f64, f64)| x + half <= *from || x - half >= *to;
        if taken.iter().all(free) {
            taken.push((x - half, x + half));
            let below = area.bottom + 16.0;
            svg.centred(x, below, Style::SMALL, &text);
        }
    }
}

/// Cuts a text to fit a width.
fn shortened(text: &str, style: Style, width: f64) -> String {
    if style.width(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if style.width(&format!("{short}{letter}…")) > width {
            break;
        }
        short.push(letter);
    }
    format!("{short}…")
}

fn over(svg: &mut Svg, area: Area, axis: &Axis, chart: &Chart, places: &[f64], palette: &[usize]) {
    for (series, line) in palette.iter().enumerate() {
        let own = chart.points.iter().filter(|point| point.series == series);
        let mut own: Vec<&ChartPoint> = own.collect();
        own.sort_by(|one, other| places[one.at].total_cmp(&places[other.at]));
        for point in &own {
            let x = places[point.at];
            match point.measured {
                Some(value) => interval(svg, axis, x, value, point.half, line_of(*line).0),
                None => cross(svg, x, area.bottom - 7.0, line_of(*line).0),
            }
        }
        let points = own
            .iter()
            .map(|point| Some((places[point.at], axis.at(point.measured?))));
        curve(svg, &points.collect::<Vec<_>>(), *line);
    }
}

fn bars(svg: &mut Svg, area: Area, axis: &Axis, chart: &Chart, places: &[f64], palette: &[usize]) {
    let wide = (area.right - area.left) / places.len().max(1) as f64;
    let width = (wide * 0.84 / palette.len().max(1) as f64).min(60.0);
    for point in &chart.points {
        let side = point.series as f64 - palette.len() as f64 / 2.0;
        let from = places[point.at] + width * side;
        let middle = from + width / 2.0;
        let colour = line_of(palette[point.series]).0;
        match point.measured {
            Some(value) => {
                let line = palette[point.series];
                chart::bar(svg, axis, from + width * 0.1, width * 0.8, value, line);
                interval(svg, axis, middle, value, point.half, INK);
            }
            None => cross(svg, middle, area.bottom - 7.0, colour),
        }
    }
}

/// Draws a confidence interval.
fn interval(svg: &mut Svg, axis: &Axis, x: f64, value: f64, half: Option<f64>, colour: &str) {
    if let Some(half) = half.filter(|half| *half > 0.0) {
        let (low, high) = (axis.at(value - half), axis.at(value + half));
        svg.line((x, low), (x, high), colour, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn powers_of_two_and_decades_have_a_logarithmic_axis() {
        let is_log = |values: &[&str]| matches!(Along::of(&texts(values)), Along::Log(_));
        assert!(is_log(&["1", "2", "4", "32"]));
        assert!(is_log(&["32KiB", "1MiB", "128KiB"]));
        assert!(is_log(&["0B", "4KiB", "64KiB"]));
        assert!(is_log(&["100us", "1ms", "10ms", "1s"]));
        assert!(!is_log(&["1", "2"]));
        assert!(!is_log(&["1", "2", "3", "4"]));
        assert!(!is_log(&["0", "1", "2"]));
        assert!(!is_log(&["-1", "2", "64"]));
        assert!(!is_log(&["0", "64"]));
        assert_eq!(Along::of(&texts(&["4KiB", "10ms"])), Along::Words);
        assert_eq!(Along::of(&texts(&["noop", "4"])), Along::Words);
        assert_eq!(Along::of(&texts(&["inf", "4"])), Along::Words);
        let linear = Along::of(&texts(&["30ms", "10ms"]));
        assert_eq!(linear, Along::Linear(vec![3e7, 1e7]));
    }

    #[test]
    fn zero_stands_left_of_a_logarithmic_axis() {
        let scale = Along::of(&texts(&["0B", "4KiB", "8KiB", "16KiB"]));
        assert_eq!(scale.places(4, 92.0, 408.0), [100.0, 200.0, 300.0, 400.0]);
        let scale = Along::of(&texts(&["1", "2", "4"]));
        assert_eq!(scale.places(3, 92.0, 308.0), [100.0, 200.0, 300.0]);
        // One value alone is in the middle.
        let scale = Along::of(&texts(&["5"]));
        assert_eq!(scale.places(1, 0.0, 100.0), [50.0]);
    }

    fn picture() -> Multiples {
        let point = |series, at, measured| ChartPoint {
            measured,
            half: Some(0.5),
            ..ChartPoint::new(series, at, 0)
        };
        let chart = |title: &str, values: &[&str]| Chart {
            title: title.to_owned(),
            x: "engine.depth".to_owned(),
            values: texts(values),
            points: (0..values.len())
                .flat_map(|at| {
                    let missing = at == 1;
                    let value = (!missing).then_some(at as f64);
                    [point(0, at, value), point(1, at, Some(2.0))]
                })
                .collect(),
        };
        Multiples {
            title: "A <sweep>".to_owned(),
            subtitle: "drive wd5000aaks".to_owned(),
            blocks: vec![Block {
                heading: "throughput (MB/s)".to_owned(),
                of_series: "scheduler".to_owned(),
                series: texts(&["noop", "stream"]),
                rows: vec![ChartRow {
                    name: "merge true".to_owned(),
                    charts: vec![
                        chart("processes 4", &["1", "2", "4"]),
                        chart("processes 16", &["noop", "sptf", "stream"]),
                    ],
                }],
            }],
        }
    }

    #[test]
    fn a_picture_has_all_its_parts() {
        let text = draw(&picture());
        for part in [
            "A &lt;sweep&gt;",
            "throughput (MB/s)",
            ">by scheduler<",
            ">noop<",
            ">merge true<",
            ">processes 4<",
            ">processes 16<",
            ">engine.depth<",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert_eq!(text, draw(&picture()));
        assert!(draw(&Multiples::default()).ends_with("</svg>\n"));
    }

    /// A line has a gap at a combination without the value, and continues behind the gap.
    #[test]
    fn what_failed_leaves_a_gap_and_a_cross() {
        let whole = |measured| {
            let mut picture = picture();
            let charts = &mut picture.blocks[0].rows[0].charts;
            charts.truncate(1);
            charts[0].points[2].measured = measured;
            draw(&picture)
        };
        let (gap, none) = (whole(None), whole(Some(1.0)));
        let strokes = |text: &str, stroke: &str| text.matches(stroke).count();
        // In the chart and in the legend.
        assert_eq!(strokes(&gap, "stroke-width=\"1.6\""), 2);
        assert_eq!(strokes(&none, "stroke-width=\"1.6\""), 0);
        let line = |text: &str| {
            let mut paths = text
                .lines()
                .filter(|line| line.contains("stroke-width=\"1.8\""));
            // The first two lines belong to the legend.
            paths.nth(2).unwrap().matches('M').count()
        };
        assert_eq!((line(&gap), line(&none)), (2, 1));
    }

    #[test]
    fn a_block_without_values_says_so() {
        let mut picture = picture();
        let text = draw(&picture);
        assert!(text.contains(">95 % confidence<") && text.contains(">no value<"));
        let rows = &mut picture.blocks[0].rows;
        let charts = rows.iter_mut().flat_map(|row| &mut row.charts);
        for point in charts.flat_map(|chart| &mut chart.points) {
            point.measured = None;
        }
        let text = draw(&picture);
        assert!(text.contains(">no values<") && !text.contains("<path"));
    }

    #[test]
    fn labels_do_not_run_into_each_other() {
        let mut picture = picture();
        let charts = &mut picture.blocks[0].rows[0].charts;
        charts.truncate(1);
        charts[0].values = (0..400).map(|value| value.to_string()).collect();
        let text = draw(&picture);
        let labels = text.matches("text-anchor=\"middle\"").count();
        assert!((10..60).contains(&labels), "{labels}");
        assert!(text.contains(">0<") && text.contains(">399<"));
        assert_eq!(shortened("stream(deadline)", Style::PLAIN, 60.0), "stream…");
    }
}
