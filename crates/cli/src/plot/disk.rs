//! Draws the results of a whole probe: tracks and skews by place, seeks by distance, and the comparison with other reads.

use super::axis::Axis;
use super::chart::{
    Area, across, across_grid, bar, curve, frame, line_of, lines, upright, upright_grid,
};
use super::curve::bytes;
use super::svg::{GRID, Path, Style, Svg};
use super::{EDGE, WIDTH, headed, heading};

const HEIGHT: f64 = 200.0;
const LEFT: f64 = 84.0;
const GAP: f64 = 40.0;

/// Value of a part of the disk, given by its first byte and its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    pub from: f64,
    pub to: f64,
    pub value: f64,
}

/// A series of points: cylinders and ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seeks {
    pub name: String,
    /// Distances rise.
    pub points: Vec<(f64, f64)>,
}

/// Learned values of a disk, to be drawn. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub struct DiskPicture {
    pub title: String,
    pub subtitle: String,
    /// Capacity in bytes.
    pub capacity: f64,
    /// Sectors per track, by name. A single unnamed series if all heads are equal.
    pub tracks: Vec<(String, Vec<Stretch>)>,
    /// Skews in turns, by name.
    pub skews: Vec<(String, Vec<Stretch>)>,
    pub seeks: Vec<Seeks>,
    /// Share of other reads in each class of lateness, in percent.
    pub checks: Vec<(String, f64)>,
}

/// Draws a picture as SVG text.
pub fn draw(picture: &DiskPicture) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = heading(&mut svg, &picture.title, &picture.subtitle) + 30.0;
    if picture.tracks.iter().any(|(_, parts)| !parts.is_empty()) {
        headed(&mut svg, y, "Sectors on a track", "by place on the disk");
        let named = picture.tracks.iter().map(|(name, _)| name.as_str());
        y = match picture.tracks.len() {
            1 => y + 16.0,
            _ => lines(&mut svg, y + 20.0, named.enumerate()) + 10.0,
        };
        y = steps(&mut svg, y, picture.capacity, "sectors", &picture.tracks) + GAP;
    }
    if !picture.skews.is_empty() {
        let note = "by how much the next track is turned, by place on the disk";
        headed(&mut svg, y, "Skews", note);
        let names = picture.skews.iter().map(|(name, _)| name.as_str());
        y = lines(&mut svg, y + 20.0, names.enumerate()) + 10.0;
        y = steps(
            &mut svg,
            y,
            picture.capacity,
            "part of a turn",
            &picture.skews,
        ) + GAP;
    }
    if picture.seeks.iter().any(|seeks| !seeks.points.is_empty()) {
        headed(&mut svg, y, "Seeks", "by distance; each square was timed");
        let names = picture.seeks.iter().map(|seeks| seeks.name.as_str());
        y = lines(&mut svg, y + 20.0, names.enumerate()) + 10.0;
        y = seeks(&mut svg, y, picture) + GAP;
    }
    if !picture.checks.is_empty() {
        let note = "reads that were not used for learning, against what the profile says of them";
        headed(&mut svg, y, "Check", note);
        y = checks(&mut svg, y + 16.0, &picture.checks);
    }
    svg.finish(y + EDGE)
}

fn area(top: f64, height: f64) -> Area {
    Area {
        left: LEFT,
        top,
        right: WIDTH - EDGE,
        bottom: top + height,
    }
}

/// Draws values as steps over the addresses of the disk.
fn steps(
    svg: &mut Svg,
    top: f64,
    capacity: f64,
    name: &str,
    series: &[(String, Vec<Stretch>)],
) -> f64 {
    let all = series.iter().flat_map(|(_, parts)| parts.iter());
    let most = 1.1 * all.map(|part| part.value).fold(0.0, f64::max);
    let area = area(top, HEIGHT);
    let scale = Axis::linear(0.0, most, area.bottom, area.top);
    upright(svg, &scale, area, name);
    let along = Axis::linear(0.0, capacity, area.left, area.right - 12.0);
    for place in along.ticks(8) {
        let x = along.at(place);
        svg.line((x, area.top), (x, area.bottom), GRID, 1.0);
        svg.centred(x, area.bottom + 16.0, Style::SMALL, &bytes(place));
    }
    for (number, (_, parts)) in series.iter().enumerate() {
        let (colour, dash) = line_of(number);
        let mut line = Path::default();
        let mut end = f64::NAN;
        for part in parts.iter() {
            let y = scale.at(part.value);
            // A part without a value leaves a gap, if the gap is visible.
            match along.at(part.from) - along.at(end) < 0.5 {
                true => line.line_to(along.at(part.from), y),
                false => line.move_to(along.at(part.from), y),
            }
            line.line_to(along.at(part.to), y);
            end = part.to;
        }
        svg.path(&line, colour, 1.6, dash);
    }
    frame(svg, area);
    area.bottom + 16.0
}

fn seeks(svg: &mut Svg, top: f64, picture: &DiskPicture) -> f64 {
    let area = area(top, 1.4 * HEIGHT);
    let points = || picture.seeks.iter().flat_map(|seeks| seeks.points.iter());
    let longest = points().map(|(_, time)| *time).fold(0.0, f64::max);
    let farthest = points().map(|(distance, _)| *distance).fold(1.0, f64::max);
    let scale = Axis::linear(0.0, 1.1 * longest, area.bottom, area.top);
    upright_grid(svg, &scale, area, &scale.ticks(6), true);
    let middle = (area.top + area.bottom) / 2.0;
    svg.upward(LEFT - 48.0, middle, Style::PLAIN, "ms");
    let along = Axis::log(1.0, farthest, area.left, area.right - 12.0);
    across_grid(svg, &along, area, &along.log_ticks(60.0));
    for (number, seeks) in picture.seeks.iter().enumerate() {
        let at = |&(distance, time): &(f64, f64)| Some((along.at(distance), scale.at(time)));
        let points: Vec<Option<(f64, f64)>> = seeks.points.iter().map(at).collect();
        curve(svg, &points, number);
    }
    frame(svg, area);
    across(svg, area, "cylinders")
}

fn checks(svg: &mut Svg, top: f64, checks: &[(String, f64)]) -> f64 {
    let area = area(top, 0.7 * HEIGHT);
    // The scale leaves room for the number above a bar of 100 %.
    let scale = Axis::linear(0.0, 115.0, area.bottom, area.top);
    upright(svg, &scale, area, "% of the reads");
    let width = (area.right - area.left) / checks.len() as f64;
    for (number, (name, share)) in checks.iter().enumerate() {
        let x = area.left + width * (number as f64 + 0.25);
        bar(svg, &scale, x, width / 2.0, *share, 0);
        let middle = x + width / 4.0;
        let above = scale.at(*share) - 4.0;
        svg.centred(middle, above, Style::SMALL, &format!("{share:.1}"));
        svg.centred(middle, area.bottom + 16.0, Style::SMALL, name);
    }
    frame(svg, area);
    area.bottom + 16.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_what_there_is_and_no_more() {
        let stretch = |from, to, value| Stretch { from, to, value };
        let mut picture = DiskPicture {
            title: "a <disk>".to_owned(),
            subtitle: "turns".to_owned(),
            capacity: 9e9,
            tracks: vec![(
                String::new(),
                vec![stretch(0.0, 4e9, 334.0), stretch(5e9, 9e9, 229.0)],
            )],
            ..DiskPicture::default()
        };
        let text = draw(&picture);
        for part in ["a &lt;disk&gt;", ">Sectors on a track<", ">8 GB<"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        for part in [">Skews<", ">Seeks<", ">Check<"] {
            assert!(!text.contains(part), "{part}");
        }
        picture.skews = vec![("next cylinder".to_owned(), vec![stretch(0.0, 9e9, 0.2)])];
        picture.seeks = vec![Seeks {
            name: "reads".to_owned(),
            points: vec![(1.0, 0.8), (100.0, 2.0), (9_000.0, 9.0)],
        }];
        picture.checks = vec![("within 50 us".to_owned(), 99.6)];
        let text = draw(&picture);
        for part in [">next cylinder<", ">cylinders<", ">99.6<", ">within 50 us<"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(draw(&DiskPicture::default()).ends_with("</svg>\n"));
        // Series of heads with different tracks have names.
        let all = picture.tracks[0].1.clone();
        picture.tracks = vec![
            ("longest".to_owned(), all.clone()),
            ("shortest".to_owned(), all),
        ];
        assert!(draw(&picture).contains(">shortest<"));
        // Without a seek table there is no part for seeks.
        picture.seeks[0].points.clear();
        assert!(!draw(&picture).contains(">Seeks<"));
    }
}
