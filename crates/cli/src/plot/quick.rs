//! Draws the results of a quick probe: bandwidth by place, service time by distance.

use super::axis::Axis;
use super::chart::{Area, frame, upright_grid};
use super::curve::{CurvePicture, bytes, panel};
use super::svg::{GRID, Path, Style, Svg};
use super::{EDGE, WIDTH, headed, heading};

const HEIGHT: f64 = 260.0;
const LEFT: f64 = 84.0;
const COLOUR: &str = "#0072b2";

/// Results of a quick probe, to be drawn.
#[derive(Clone, Debug, Default)]
pub struct QuickPicture {
    /// Name of the disk. `subtitle` describes the measurement, in a line or two.
    pub title: String,
    pub subtitle: String,
    /// Capacity in bytes.
    pub capacity: f64,
    /// Sequential bandwidth: distance from the beginning of the disk in bytes, and MB/s. Distances ascend.
    pub rates: Vec<(f64, f64)>,
    /// Service time by distance, if it was measured.
    pub curve: Option<CurvePicture>,
}

/// Draws a picture as SVG text.
pub fn draw(picture: &QuickPicture) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = heading(&mut svg, &picture.title, &picture.subtitle) + 30.0;
    if !picture.rates.is_empty() {
        headed(&mut svg, y, "Sequential bandwidth", "by place on the disk");
        y = rates(&mut svg, y + 16.0, picture) + 36.0;
    }
    if let Some(curve) = &picture.curve {
        let note = "by the distance of a request from the one before";
        headed(&mut svg, y, "Service time", note);
        y = panel(&mut svg, y + 22.0, curve);
    }
    svg.finish(y + EDGE)
}

fn rates(svg: &mut Svg, top: f64, picture: &QuickPicture) -> f64 {
    let bottom = top + HEIGHT;
    let area = Area {
        left: LEFT,
        top,
        right: WIDTH - EDGE,
        bottom,
    };
    let most = picture.rates.iter().map(|rate| rate.1).fold(0.0, f64::max);
    let upright = Axis::linear(0.0, 1.1 * most, bottom, top);
    upright_grid(svg, &upright, area, &upright.ticks(6), true);
    let middle = (top + bottom) / 2.0;
    svg.upward(LEFT - 48.0, middle, Style::PLAIN, "MB/s");
    let along = Axis::linear(0.0, picture.capacity, LEFT, WIDTH - EDGE - 12.0);
    for place in along.ticks(8) {
        let x = along.at(place);
        svg.line((x, top), (x, bottom), GRID, 1.0);
        svg.centred(x, bottom + 16.0, Style::SMALL, &bytes(place));
    }
    let mut line = Path::default();
    for (number, &(place, rate)) in picture.rates.iter().enumerate() {
        let (x, y) = (along.at(place), upright.at(rate));
        match number {
            0 => line.move_to(x, y),
            _ => line.line_to(x, y),
        }
        svg.rect(x - 1.5, y - 1.5, 3.0, 3.0, COLOUR);
    }
    svg.path(&line, COLOUR, 1.4, "");
    frame(svg, area);
    bottom + 16.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_what_there_is() {
        let mut picture = QuickPicture {
            title: "a <disk>".to_owned(),
            subtitle: "read".to_owned(),
            capacity: 5e11,
            rates: vec![(0.0, 90.0), (2.5e11, 70.0), (5e11, 40.0)],
            curve: None,
        };
        let text = draw(&picture);
        for part in [
            "a &lt;disk&gt;",
            ">Sequential bandwidth<",
            ">500 GB<",
            ">MB/s<",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        let (_, drawn) = text.split_once("</style>").expect("a style for dark pages");
        assert_eq!(drawn.matches(COLOUR).count(), 3 + 1);
        assert!(!text.contains("Service time"));
        picture.curve = Some(CurvePicture::default());
        picture.rates.clear();
        let text = draw(&picture);
        assert!(text.contains(">Service time<") && !text.contains("bandwidth"));
        assert!(draw(&QuickPicture::default()).ends_with("</svg>\n"));
    }
}
