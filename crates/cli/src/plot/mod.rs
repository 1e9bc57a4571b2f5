//! Draws pictures as SVG: of a comparison, a sweep, a figure, a learned curve, and a probed disk (`quick`, or whole: `disk`).
//!
//! This file has the size, colours and headings of all pictures. Most colours are from Okabe and Ito ("Color Universal Design", 2008).
//! People with any kind of colour vision can tell them apart. Lines differ in their dashes too, and bars have the dashes of their line as
//! a stripe, for prints without colours.

mod axis;
mod breakdown;
mod chart;
pub mod comparison;
pub mod curve;
pub mod disk;
mod drawn;
pub mod figure;
mod head;
pub mod multiples;
mod names;
pub mod quick;
mod response;
mod svg;
pub mod sweep;

use headtime_disk::Part;
use svg::{Style, Svg};

/// Width of the picture in pixels.
const WIDTH: f64 = 1000.0;
/// Space at the left and right edge.
const EDGE: f64 = 20.0;

/// Number of the head's activities.
const PARTS: usize = Part::ALL.len();

/// Colour of an activity of the head.
const fn colour(part: Part) -> &'static str {
    match part {
        Part::Seek => "#d55e00",
        Part::Switch => "#f0e442",
        Part::Rotation => "#56b4e9",
        Part::Transfer => "#009e73",
        Part::Overhead => "#cc79a7",
        Part::ReadAhead => "#0072b2",
        Part::Destage => "#5b3a1e",
        Part::ReadModifyWrite => "#882255",
        Part::Waiting => "#e69f00",
        Part::Held => "#999933",
        Part::Idle => "#cccccc",
    }
}

/// Largest number of runs in one picture: the number of distinct lines.
pub const DRAWN_MAX: usize = LINES.len();

/// Lines of runs, each with colour and dashes.
const LINES: [(&str, &str); 12] = [
    ("#0072b2", ""),
    ("#d55e00", "7 3"),
    ("#009e73", "2 2"),
    ("#cc79a7", "9 3 2 3"),
    ("#332288", "4 2"),
    ("#e69f00", "20 2"),
    ("#56b4e9", "12 3"),
    ("#5b3a1e", "1 3"),
    ("#882255", "9 3 2 3 2 3"),
    ("#999933", "5 5"),
    ("#5533dd", "14 3 5 3"),
    ("#ff5577", "3 6"),
];

/// Draws the title and the subtitle of a picture. Returns its last base line.
fn heading(svg: &mut Svg, title: &str, subtitle: &str) -> f64 {
    let mut y = EDGE + 14.0;
    svg.text(EDGE, y, Style::TITLE, title);
    let faint = Style::PLAIN.in_colour(svg::FAINT);
    for line in wrap(subtitle, Style::PLAIN, WIDTH - 2.0 * EDGE) {
        y += 18.0;
        svg.text(EDGE, y, faint, &line);
    }
    y
}

/// Draws the heading of a part, with a note beside the heading.
fn headed(svg: &mut Svg, y: f64, heading: &str, note: &str) {
    svg.text(EDGE, y, Style::HEADING, heading);
    let beside = EDGE + Style::HEADING.width(heading) + 14.0;
    svg.text(beside, y, Style::SMALL, note);
}

/// Breaks a text into lines no wider than `width`.
fn wrap(text: &str, style: Style, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() {
                word.to_owned()
            } else {
                format!("{line} {word}")
            };
            if style.width(&longer) > width && !line.is_empty() {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        lines.push(line);
    }
    lines
}

/// Returns the left edge of charts whose rows have these names.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels
        .map(|label| Style::PLAIN.width(label))
        .fold(40.0, f64::max)
}
