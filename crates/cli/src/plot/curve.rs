//! Draws a learned curve: single reads, their means, and the curve through them.

use super::axis::{Axis, label};
use super::chart::{Area, colours, frame, upright_grid};
use super::svg::{GRID, Path, Style, Svg};
use super::{EDGE, WIDTH, heading};

const HEIGHT: f64 = 440.0;
const LEFT: f64 = 84.0;
/// Place of distance 0, left of the logarithmic axis.
const ZERO: f64 = LEFT + 20.0;
/// Start of the logarithmic axis.
const FIRST: f64 = LEFT + 56.0;
/// Largest number of single reads that are drawn.
const DOTS_MAX: usize = 6_000;

const DOT: &str = "#bbbbbb";
const MEAN: &str = "#0072b2";
const CURVE: &str = "#d55e00";

/// Mean and curve at one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Distance in bytes.
    pub distance: f64,
    /// Mean of the reads in ms.
    pub mean: f64,
    /// The curve in ms.
    pub curve: f64,
}

/// A learned curve, to be drawn.
#[derive(Clone, Debug, Default)]
pub struct CurvePicture {
    /// Description of the measurement, in a line or two.
    pub subtitle: String,
    /// Means and curve, by ascending distance from 0.
    pub points: Vec<CurvePoint>,
    /// Single reads: distance in bytes, time in ms.
    pub samples: Vec<(f64, f64)>,
}

/// Draws a picture as SVG text.
pub fn draw(picture: &CurvePicture) -> String {
    let mut svg = Svg::new(WIDTH);
    let title = "How long a request takes, by its distance from the one before";
    let y = heading(&mut svg, title, &picture.subtitle) + 26.0;
    let bottom = panel(&mut svg, y, picture);
    svg.finish(bottom + EDGE)
}

/// Draws the legend at `y`, and the chart below. Returns its last base line.
pub(super) fn panel(svg: &mut Svg, y: f64, picture: &CurvePicture) -> f64 {
    let names = [
        (DOT, "a read"),
        (MEAN, "mean of a distance"),
        (CURVE, "curve"),
    ];
    colours(svg, y, (17.0, 16.0), names.into_iter());
    let top = y + 16.0;
    let bottom = top + HEIGHT;

    // Reads that the learner dropped as outliers do not determine the scale, since they would flatten all other
    // values.
    let longest = picture.points.iter().map(|point| point.mean);
    let high = 1.3 * longest.fold(0.0, f64::max);
    let upright = Axis::linear(0.0, high, bottom, top);
    let area = Area {
        left: LEFT,
        top,
        right: WIDTH - EDGE,
        bottom,
    };
    upright_grid(svg, &upright, area, &upright.ticks(8), true);
    let middle = (top + bottom) / 2.0;
    svg.upward(LEFT - 48.0, middle, Style::PLAIN, "service time (ms)");
    let distances = || picture.points.iter().map(|point| point.distance);
    let least = distances().find(|&distance| distance > 0.0).unwrap_or(1.0);
    let most = distances().fold(least, f64::max);
    let along = Axis::log(least, most, FIRST, WIDTH - EDGE - 12.0);
    let place = |distance: f64| {
        if distance < least {
            ZERO
        } else {
            along.at(distance)
        }
    };
    let mut ticks = vec![(ZERO, "0".to_owned())];
    ticks.extend(
        along
            .log_ticks(60.0)
            .into_iter()
            .map(|value| (along.at(value), bytes(value))),
    );
    for (x, text) in ticks {
        svg.line((x, top), (x, bottom), GRID, 1.0);
        svg.centred(x, bottom + 16.0, Style::SMALL, &text);
    }
    svg.centred(
        (LEFT + WIDTH - EDGE) / 2.0,
        bottom + 38.0,
        Style::PLAIN,
        "distance, end to start",
    );

    // One path draws all dots: a stroke that is as long as it is wide looks like a dot.
    let mut dots = Path::default();
    let step = picture.samples.len().div_ceil(DOTS_MAX).max(1);
    // The step must not divide the number of distances. Otherwise only some distances would be drawn.
    let step = if picture.points.len().is_multiple_of(step) && step > 1 {
        step + 1
    } else {
        step
    };
    for &(distance, time) in picture.samples.iter().step_by(step) {
        if time <= high {
            let (x, y) = (place(distance), upright.at(time));
            dots.move_to(x - 0.8, y);
            dots.line_to(x + 0.8, y);
        }
    }
    svg.path(&dots, DOT, 1.6, "");
    frame(svg, area);
    let mut curve = Path::default();
    for (number, point) in picture.points.iter().enumerate() {
        let (x, y) = (place(point.distance), upright.at(point.curve));
        match number {
            0 => curve.move_to(x, y),
            _ => curve.line_to(x, y),
        }
    }
    for point in &picture.points {
        let (x, y) = (place(point.distance), upright.at(point.mean));
        svg.rect(x - 2.0, y - 2.0, 4.0, 4.0, MEAN);
    }
    svg.path(&curve, CURVE, 1.8, "");
    bottom + 38.0
}

/// Formats bytes for a tick.
pub(super) fn bytes(value: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    // A value that rounding has put just below a unit counts as the unit.
    let found = units
        .into_iter()
        .find(|(scale, _)| value >= scale * 0.999_999);
    match found {
        Some((scale, unit)) => format!("{} {unit}", label(value / scale)),
        None => format!("{} B", label(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_all_its_parts() {
        let points: Vec<CurvePoint> = (0..60)
            .map(|step| {
                let distance = match step {
                    0 => 0.0,
                    step => 4096.0 * libm::pow(1.35, f64::from(step)),
                };
                let curve = 0.2 + 0.25 * f64::from(step);
                CurvePoint {
                    distance,
                    mean: curve * 1.02,
                    curve,
                }
            })
            .collect();
        let samples = (0..20_000)
            .map(|number| {
                let point = points[number % points.len()];
                (point.distance, point.mean * (number % 7) as f64 / 3.0)
            })
            .collect();
        let picture = CurvePicture {
            subtitle: "wd5000aaks & <others>".to_owned(),
            points,
            samples,
        };
        let text = draw(&picture);
        for part in [
            "wd5000aaks &amp; &lt;others&gt;",
            "service time (ms)",
            ">distance, end to start<",
            ">0<",
            ">10 kB<",
            ">1 MB<",
            ">mean of a distance<",
        ] {
            assert!(text.contains(part), "no {part}");
        }
        let (_, drawn) = text.split_once("</style>").expect("a style for dark pages");
        assert_eq!(drawn.matches(MEAN).count(), 60 + 1);
        assert!(text.len() < 200_000, "{} bytes", text.len());
        assert_eq!(text, draw(&picture));
    }

    #[test]
    fn nothing_is_drawn_without_an_end() {
        // Two cases: no points at all, and distance 0 alone, as for a disk of a few sectors.
        assert!(draw(&CurvePicture::default()).ends_with("</svg>\n"));
        let alone = CurvePoint {
            distance: 0.0,
            mean: 1.0,
            curve: 1.0,
        };
        let picture = CurvePicture {
            points: vec![alone],
            ..CurvePicture::default()
        };
        assert!(draw(&picture).ends_with("</svg>\n"));
    }
}
