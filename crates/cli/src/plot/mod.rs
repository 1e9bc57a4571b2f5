//! Pictures as SVG, and what all of them share: size, colours, headings, legends, frames.
//!
//! Colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any kind
//! of colour vision can tell apart; lines differ in their dashes too.

mod axis;
mod breakdown;
mod chart;
pub mod comparison;
pub mod curve;
mod drawn;
pub mod figure;
mod head;
pub mod multiples;
mod names;
mod response;
mod svg;

use axis::{Axis, label};
use headtime_disk::Part;
use svg::{Anchor, GRID, INK, Path, Style, Svg};

/// Width of the picture in pixels.
const WIDTH: f64 = 1000.0;
/// Space at the left and right edge.
const EDGE: f64 = 20.0;

/// The number of the head's activities.
const PARTS: usize = Part::ALL.len();

/// The colour of what the head does.
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

/// The most runs that one picture shows: as many as there are lines to tell apart.
pub const DRAWN_MAX: usize = LINES.len();

/// Lines of runs: colour and dashes.
const LINES: [(&str, &str); 8] = [
    ("#0072b2", ""),
    ("#d55e00", "7 3"),
    ("#009e73", "2 2"),
    ("#cc79a7", "9 3 2 3"),
    ("#000000", "4 2"),
    ("#e69f00", ""),
    ("#56b4e9", "12 3"),
    ("#5b3a1e", "1 3"),
];

/// Draws the title and the subtitle of a picture; returns the last base line.
fn heading(svg: &mut Svg, title: &str, subtitle: &str) -> f64 {
    let mut y = EDGE + 14.0;
    svg.text(EDGE, y, Anchor::Start, Style::TITLE, title);
    let faint = Style {
        fill: svg::FAINT,
        ..Style::PLAIN
    };
    for line in wrap(subtitle, Style::PLAIN, WIDTH - 2.0 * EDGE) {
        y += 18.0;
        svg.text(EDGE, y, Anchor::Start, faint, &line);
    }
    y
}

/// The grid of a horizontal axis, from `top` to `bottom`, with about so many ticks and their numbers.
fn across_grid(svg: &mut Svg, x: &Axis, ticks: usize, top: f64, bottom: f64) {
    for tick in x.ticks(ticks) {
        let at = x.at(tick);
        svg.line((at, top), (at, bottom), GRID, 1.0);
        svg.text(
            at,
            bottom + 16.0,
            Anchor::Middle,
            Style::SMALL,
            &label(tick),
        );
    }
}

/// The colour and dashes of the n-th run's line.
fn line_of(number: usize) -> (&'static str, &'static str) {
    let (colour, _) = LINES[number % LINES.len()];
    // Past the palette, colours meet other dashes.
    let (_, dash) = LINES[(number + number / LINES.len()) % LINES.len()];
    (colour, dash)
}

/// Draws the legend of lines, each with its number in the palette; returns its last base line.
fn lines<'a>(svg: &mut Svg, mut y: f64, labels: impl Iterator<Item = (usize, &'a str)>) -> f64 {
    let mut x = EDGE;
    for (number, label) in labels {
        let (colour, dash) = line_of(number);
        let width = 36.0 + Style::PLAIN.width(label) + 16.0;
        if x + width > WIDTH - EDGE && x > EDGE {
            (x, y) = (EDGE, y + 18.0);
        }
        let mut sample = Path::default();
        sample.move_to(x, y - 4.0);
        sample.line_to(x + 30.0, y - 4.0);
        svg.path(&sample, colour, 1.8, dash);
        svg.text(x + 36.0, y, Anchor::Start, Style::PLAIN, label);
        x += width;
    }
    y
}

/// Draws the legend of the head's activities from `x` on, those that occur; returns where it ends
/// below.
fn legend(svg: &mut Svg, x: f64, y: f64, used: [bool; PARTS]) -> f64 {
    let (mut at, mut y) = (x, y);
    for part in Part::ALL.into_iter().filter(|part| used[*part as usize]) {
        let width = 18.0 + Style::PLAIN.width(part.name()) + 14.0;
        if at + width > WIDTH - EDGE {
            (at, y) = (x, y + 18.0);
        }
        svg.rect(at, y - 9.0, 12.0, 10.0, colour(part));
        svg.text(at + 17.0, y, Anchor::Start, Style::PLAIN, part.name());
        at += width;
    }
    y
}

/// The left and bottom lines of a chart.
fn frame(svg: &mut Svg, left: f64, top: f64, right: f64, bottom: f64) {
    let mut path = Path::default();
    path.move_to(left, top);
    path.line_to(left, bottom);
    path.line_to(right, bottom);
    svg.path(&path, INK, 1.0, "");
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

/// The left edge of charts whose rows have these names.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels
        .map(|label| Style::PLAIN.width(label))
        .fold(40.0, f64::max)
}
