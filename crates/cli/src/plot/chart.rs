//! What charts have in common: where they are, their axes, the colours of their series, bars and
//! lines.

use super::axis::{Axis, label};
use super::svg::{Anchor, GRID, Path, Style, Svg};
use super::{EDGE, LINES, WIDTH, frame, line_of};

/// Where a chart is, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    /// The middle, from left to right.
    pub fn middle(&self) -> f64 {
        (self.left + self.right) / 2.0
    }
}

/// The different values of something, in the order of their first appearance.
pub(super) fn different<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The vertical axis with its grid; its numbers and its label stand on the left.
pub(super) fn upright(svg: &mut Svg, axis: &Axis, area: Area, name: &str) {
    upright_grid(svg, axis, area, 6, true);
    let middle = (area.top + area.bottom) / 2.0;
    svg.upward(area.left - 56.0, middle, Anchor::Middle, Style::PLAIN, name);
    frame(svg, area.left, area.top, area.right, area.bottom);
}

/// The grid of a vertical axis, with about so many ticks, and their numbers if these are wanted.
pub(super) fn upright_grid(svg: &mut Svg, axis: &Axis, area: Area, ticks: usize, numbers: bool) {
    for tick in axis.ticks(ticks) {
        let y = axis.at(tick);
        svg.line((area.left, y), (area.right, y), GRID, 1.0);
        if numbers {
            let text = label(tick);
            svg.text(area.left - 6.0, y + 4.0, Anchor::End, Style::SMALL, &text);
        }
    }
}

/// The name of the horizontal axis; returns where it ends below.
pub(super) fn across(svg: &mut Svg, area: Area, name: &str) -> f64 {
    if name.is_empty() {
        return area.bottom + 18.0;
    }
    let below = area.bottom + 36.0;
    svg.text(area.middle(), below, Anchor::Middle, Style::PLAIN, name);
    below
}

/// Which line of the palette each series has. A scheduler has the same one in every picture; black is
/// left to the papers' numbers.
pub(super) fn palette(series: &[&str]) -> Vec<usize> {
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

/// The legend of bars: a box and a name for each of the lines of a palette; returns its last base
/// line.
pub(super) fn boxes<'a>(
    svg: &mut Svg,
    mut y: f64,
    names: impl Iterator<Item = (usize, &'a str)>,
) -> f64 {
    let mut x = EDGE;
    for (line, name) in names {
        let width = 18.0 + Style::PLAIN.width(name) + 14.0;
        if x + width > WIDTH - EDGE && x > EDGE {
            (x, y) = (EDGE, y + 18.0);
        }
        svg.rect(x, y - 9.0, 12.0, 10.0, line_of(line).0);
        svg.text(x + 17.0, y, Anchor::Start, Style::PLAIN, name);
        x += width;
    }
    y
}

/// A bar from zero to a value.
pub(super) fn bar(svg: &mut Svg, axis: &Axis, x: f64, width: f64, value: f64, colour: &str) {
    let (zero, value) = (axis.at(0.0), axis.at(value));
    let (upper, lower) = (zero.min(value), zero.max(value));
    svg.rect(x, upper, width, (lower - upper).max(1.0), colour);
}

/// A line through points in pixels, from left to right, a square at each; a point that is missing
/// leaves a gap.
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
