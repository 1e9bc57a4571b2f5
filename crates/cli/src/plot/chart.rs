//! Shared parts of charts: their places, axes, legends, bars and lines, and the colours of their series.

use super::axis::{Axis, label};
use super::svg::{BLACK, GRID, INK, PAPER, Path, Style, Svg};
use super::{EDGE, LINES, PARTS, WIDTH, colour};
use headtime_disk::Part;

/// Place of a chart, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    /// Returns the middle of the chart between left and right.
    pub fn middle(&self) -> f64 {
        (self.left + self.right) / 2.0
    }
}

/// Returns the distinct values, in the order of their first appearance.
pub(super) fn different<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Draws the left and bottom lines of a chart.
pub(super) fn frame(svg: &mut Svg, area: Area) {
    let mut path = Path::default();
    path.move_to(area.left, area.top);
    path.line_to(area.left, area.bottom);
    path.line_to(area.right, area.bottom);
    svg.path(&path, INK, 1.0, "");
}

/// Draws the vertical axis with its grid. Numbers and label stand on the left.
pub(super) fn upright(svg: &mut Svg, axis: &Axis, area: Area, name: &str) {
    upright_grid(svg, axis, area, &axis.ticks(6), true);
    let middle = (area.top + area.bottom) / 2.0;
    svg.upward(area.left - 56.0, middle, Style::PLAIN, name);
    frame(svg, area);
}

/// Draws the grid of a vertical axis. If `numbers`, also draws the numbers of the ticks.
pub(super) fn upright_grid(svg: &mut Svg, axis: &Axis, area: Area, ticks: &[f64], numbers: bool) {
    for tick in ticks {
        let y = axis.at(*tick);
        svg.line((area.left, y), (area.right, y), GRID, 1.0);
        if numbers {
            svg.ending(area.left - 6.0, y + 4.0, Style::SMALL, &label(*tick));
        }
    }
}

/// Draws the grid of a horizontal axis, with the numbers of its ticks.
pub(super) fn across_grid(svg: &mut Svg, axis: &Axis, area: Area, ticks: &[f64]) {
    for tick in ticks {
        let at = axis.at(*tick);
        svg.line((at, area.top), (at, area.bottom), GRID, 1.0);
        svg.centred(at, area.bottom + 16.0, Style::SMALL, &label(*tick));
    }
}

/// Writes the name of the horizontal axis. Returns its lower end.
pub(super) fn across(svg: &mut Svg, area: Area, name: &str) -> f64 {
    if name.is_empty() {
        return area.bottom + 18.0;
    }
    let below = area.bottom + 36.0;
    svg.centred(area.middle(), below, Style::PLAIN, name);
    below
}

/// Colour of accepted ranges.
pub(super) const ACCEPTED: &str = "#d9d9d9";

/// Returns the colour and the dashes of the n-th line.
pub(super) fn line_of(number: usize) -> (&'static str, &'static str) {
    let (colour, _) = LINES[number % LINES.len()];
    // Beyond the palette, each colour is combined with other dashes.
    let (_, dash) = LINES[(number + number / LINES.len()) % LINES.len()];
    (colour, dash)
}

/// Schedulers that have the same line in every picture, each with the number of its line. Other series get the remaining lines.
const OWN_LINES: [(&str, usize); 6] = [
    ("noop", 0),
    ("deadline", 1),
    ("anticipatory", 2),
    ("cfq", 3),
    ("stream", 5),
    ("clairvoyant", 6),
];

/// Returns the line of each series in the palette.
pub(super) fn palette(series: &[&str]) -> Vec<usize> {
    let own = |name: &str| {
        let known = OWN_LINES.iter().find(|(scheduler, _)| {
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
            // Beyond the palette, each line gets other dashes.
            lines[at] = (0..).find(|line| !lines.contains(&Some(*line)));
        }
    }
    lines.into_iter().flatten().collect()
}

/// Draws a legend: marks, each with a name beside the mark. `before` and `after` are the pixels around a name. `mark` draws the mark at
/// the left of a name. Returns the last base line.
fn legend<'a, T>(
    svg: &mut Svg,
    mut y: f64,
    (before, after): (f64, f64),
    names: impl Iterator<Item = (T, &'a str)>,
    mark: impl Fn(&mut Svg, f64, f64, T) -> f64,
) -> f64 {
    let mut x = EDGE;
    for (of, name) in names {
        let width = before + Style::PLAIN.width(name) + after;
        if x + width > WIDTH - EDGE && x > EDGE {
            (x, y) = (EDGE, y + 18.0);
        }
        let beside = mark(svg, x, y, of);
        svg.text(x + beside, y, Style::PLAIN, name);
        x += width;
    }
    y
}

fn box_of(svg: &mut Svg, x: f64, y: f64, colour: &str) -> f64 {
    svg.rect(x, y - 9.0, 12.0, 10.0, colour);
    17.0
}

/// Mark of a chart that belongs to no series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    /// Grey area of accepted values.
    Accepted,
    /// Black stroke at the paper's number.
    Paper,
    /// Thin line over the values of all seeds.
    Seeds,
    /// Thin line over the confidence interval.
    Confidence,
    /// Cross of a combination without the value.
    Failed,
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Mark::Accepted => "accepted range",
            Mark::Paper => "the paper's number",
            Mark::Seeds => "least to largest of the seeds",
            Mark::Confidence => "95 % confidence",
            Mark::Failed => "no value",
        }
    }

    fn draw(self, svg: &mut Svg, x: f64, y: f64) -> f64 {
        let (middle, height) = (x + 6.0, y - 4.0);
        match self {
            Mark::Accepted => return box_of(svg, x, y, ACCEPTED),
            Mark::Paper => svg.line((x, height), (x + 12.0, height), BLACK, 2.0),
            Mark::Seeds | Mark::Confidence => {
                svg.line((middle, y - 10.0), (middle, y + 2.0), INK, 1.0);
            }
            Mark::Failed => cross(svg, middle, height, INK),
        }
        17.0
    }
}

/// Draws the legend of those marks that occur, below a base line. Returns the last base line.
pub(super) fn marks(svg: &mut Svg, y: f64, of: &[(Mark, bool)]) -> f64 {
    let occur = of.iter().filter(|(_, occurs)| *occurs);
    let named = occur.map(|(mark, _)| (*mark, mark.name()));
    if named.clone().next().is_none() {
        return y;
    }
    legend(svg, y + 18.0, (18.0, 14.0), named, |svg, x, y, mark| {
        mark.draw(svg, x, y)
    })
}

/// Draws the mark of a combination without the value.
pub(super) fn cross(svg: &mut Svg, x: f64, y: f64, colour: &str) {
    let mut path = Path::default();
    path.move_to(x - 4.0, y - 4.0);
    path.line_to(x + 4.0, y + 4.0);
    path.move_to(x - 4.0, y + 4.0);
    path.line_to(x + 4.0, y - 4.0);
    svg.path(&path, colour, 1.6, "");
}

/// Says that a part of a picture has no values. Returns the base line.
pub(super) fn nothing(svg: &mut Svg, y: f64) -> f64 {
    svg.text(EDGE, y, Style::SMALL, "no values");
    y
}

/// Draws a legend of boxes, for series with different colours. Returns the last base line.
pub(super) fn colours<'a>(
    svg: &mut Svg,
    y: f64,
    apart: (f64, f64),
    names: impl Iterator<Item = (&'a str, &'a str)>,
) -> f64 {
    legend(svg, y, apart, names, box_of)
}

/// Draws the legend of the head's activities that occur. Returns the last base line.
pub(super) fn activities(svg: &mut Svg, y: f64, used: [bool; PARTS]) -> f64 {
    let used = Part::ALL.into_iter().filter(|part| used[*part as usize]);
    let names = used.map(|part| (colour(part), part.name()));
    colours(svg, y, (18.0, 14.0), names)
}

/// Draws the legend of bars, each with its number in the palette. Returns the last base line.
pub(super) fn boxes<'a>(
    svg: &mut Svg,
    y: f64,
    names: impl Iterator<Item = (usize, &'a str)>,
) -> f64 {
    legend(svg, y, (24.0, 14.0), names, |svg, x, y, line| {
        svg.rect(x, y - 9.0, 18.0, 10.0, line_of(line).0);
        stripe(svg, (x, y - 4.0), (x + 18.0, y - 4.0), 3.0, line);
        23.0
    })
}

/// Draws the dashes of a line within a box of its colour.
fn stripe(svg: &mut Svg, from: (f64, f64), to: (f64, f64), width: f64, line: usize) {
    let (_, dash) = line_of(line);
    if dash.is_empty() {
        return;
    }
    let mut path = Path::default();
    path.move_to(from.0, from.1);
    path.line_to(to.0, to.1);
    svg.path(&path, PAPER, width, dash);
}

/// Draws the legend of lines, each with its number in the palette. Returns the last base line.
pub(super) fn lines<'a>(
    svg: &mut Svg,
    y: f64,
    names: impl Iterator<Item = (usize, &'a str)>,
) -> f64 {
    legend(svg, y, (36.0, 16.0), names, |svg, x, y, number| {
        let (colour, dash) = line_of(number);
        let mut sample = Path::default();
        sample.move_to(x, y - 4.0);
        sample.line_to(x + 30.0, y - 4.0);
        svg.path(&sample, colour, 1.8, dash);
        36.0
    })
}

/// Draws a bar from zero to a value. A stripe has the dashes of the bar's line, so that a print without colours tells bars apart.
pub(super) fn bar(svg: &mut Svg, axis: &Axis, x: f64, width: f64, value: f64, line: usize) {
    /// Narrower bars have no stripe.
    const STRIPED: f64 = 5.0;
    let (zero, value) = (axis.at(0.0), axis.at(value));
    let (upper, lower) = (zero.min(value), zero.max(value));
    let (colour, _) = line_of(line);
    svg.rect(x, upper, width, (lower - upper).max(1.0), colour);
    if width >= STRIPED && lower > upper {
        let middle = x + width / 2.0;
        let wide = (width * 0.3).min(3.0);
        stripe(svg, (middle, lower), (middle, upper), wide, line);
    }
}

/// Draws a line through points in pixels, from left to right, with a square at each point. A missing point leaves a gap.
pub(super) fn curve(svg: &mut Svg, points: &[Option<(f64, f64)>], line: usize) {
    let (colour, dash) = line_of(line);
    let mut path = Path::default();
    let mut lifted = true;
    for point in points {
        let Some((x, y)) = *point else {
            lifted = true;
            continue;
        };
        match lifted {
            true => path.move_to(x, y),
            false => path.line_to(x, y),
        }
        lifted = false;
        svg.rect(x - 2.0, y - 2.0, 4.0, 4.0, colour);
    }
    svg.path(&path, colour, 1.8, dash);
}

#[cfg(test)]
mod tests {
    use super::{OWN_LINES, palette};
    use headtime_sched::policies;

    #[test]
    fn every_name_with_a_line_of_its_own_is_a_scheduler_s() {
        for (name, _) in OWN_LINES {
            assert!(policies().any(|policy| policy.name == name), "{name}");
        }
    }

    #[test]
    fn lines_differ_without_their_colours() {
        let mut dashes = crate::plot::LINES.map(|(_, dash)| dash);
        dashes.sort_unstable();
        assert!(dashes.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_scheduler_has_its_colour_in_every_picture() {
        let all = OWN_LINES.map(|(name, _)| name);
        let whole = palette(&all);
        for (at, name) in all.iter().enumerate() {
            assert_eq!(palette(&[name]), [whole[at]], "{name}");
        }
        assert_eq!(palette(&["stream(deadline)"]), [whole[4]]);
        // A second stream scheduler and an unknown series get remaining lines. No two series share a line.
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
