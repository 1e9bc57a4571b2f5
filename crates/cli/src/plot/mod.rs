//! `--plot FILE.svg`: where the head was, how long requests took, where the head time went.
//!
//! Colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any kind
//! of colour vision can tell apart; lines differ in their dashes too.

mod axis;
mod breakdown;
mod chart;
pub mod curve;
pub mod figure;
mod head;
pub mod multiples;
pub mod names;
mod response;
mod svg;

use crate::execute::Mark;
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
pub const RUNS_MAX: usize = LINES.len();

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

/// What is drawn of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its name among the others.
    pub label: String,
    /// Figures to show beside the name.
    pub note: String,
    /// What the head did, in order of time; may be only the beginning.
    pub marks: Vec<Mark>,
    /// The distribution of response times: milliseconds, and the share of all requests that took no
    /// longer, 0 to 1.
    pub curve: Vec<(f64, f64)>,
    /// Head time per request in milliseconds, in the order of [`Part::ALL`].
    pub parts: [f64; PARTS],
    /// What each workload or program got, if there are several.
    pub shares: Vec<names::Share>,
}

/// A picture to be.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Its title.
    pub title: String,
    /// What was run, in a line or two.
    pub subtitle: String,
    /// Which part of the time the first panels show, in seconds.
    pub window: (f64, f64),
    /// Bytes of the drive.
    pub capacity: f64,
    /// The runs.
    pub runs: Vec<Run>,
}

/// Draws a picture as SVG text.
pub fn draw(picture: &Picture) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = heading(&mut svg, &picture.title, &picture.subtitle) + 30.0;
    if picture.runs.iter().any(|run| !run.marks.is_empty()) {
        y = head::draw(&mut svg, y, picture) + 36.0;
    }
    y = response::draw(&mut svg, y, &picture.runs) + 36.0;
    if picture.runs.iter().any(|run| run.shares.len() > 1) {
        y = names::draw(&mut svg, y, &picture.runs) + 36.0;
    }
    y = breakdown::draw(&mut svg, y, &picture.runs);
    svg.finish(y + EDGE)
}

/// The end of a window of time that begins at `from` in which every run still shows how the head
/// moves: about `transfers` transfers of the run that has most of them.
pub fn window_end(from: f64, transfers: usize, runs: &[Run]) -> f64 {
    let ends = runs.iter().filter_map(|run| {
        let mut marks = run
            .marks
            .iter()
            .filter(|mark| mark.from >= from && mark.part == Part::Transfer);
        marks.nth(transfers).map(|mark| mark.to)
    });
    let last = runs
        .iter()
        .filter_map(|run| run.marks.last())
        .map(|mark| mark.to);
    let shortest = |end: Option<f64>, next: f64| Some(end.map_or(next, |end: f64| end.min(next)));
    let longest = |end: Option<f64>, next: f64| Some(end.map_or(next, |end: f64| end.max(next)));
    let end = ends.fold(None, shortest).or(last.fold(None, longest));
    end.unwrap_or(from).max(from)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up run: a saw-tooth of seeks, each with a wait and a transfer.
    fn run(label: &str, seek: f64) -> Run {
        let mut marks = Vec::new();
        let mut now = 0.0;
        let mut address = 0.0;
        let mut state = 12_345_u64;
        for _ in 0..400 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            address = if seek > 0.005 {
                (state >> 33) as f64 / 2_f64.powi(31) * 5e11
            } else {
                (address + 1.1e10) % 5e11
            };
            for (part, time) in [
                (Part::Overhead, 0.0003),
                (Part::Seek, seek),
                (Part::Rotation, 0.004),
                (Part::Transfer, 0.0002),
            ] {
                marks.push(Mark {
                    from: now,
                    to: now + time,
                    address,
                    part,
                });
                now += time;
            }
        }
        Run {
            label: label.to_owned(),
            note: "75 requests/s, mean response 213 ms".to_owned(),
            marks,
            curve: (1..200)
                .map(|step| {
                    (
                        seek * 100.0 * f64::from(step).powf(1.3),
                        f64::from(step) / 199.0,
                    )
                })
                .collect(),
            parts: [seek * 1e3, 0.1, 4.0, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            shares: Vec::new(),
        }
    }

    fn picture() -> Picture {
        let runs = vec![
            run("noop", 0.009),
            run("stream(deadline):slice=124ms", 0.003),
        ];
        Picture {
            title: "Random reads <4 KiB>".to_owned(),
            subtitle: "wd5000aaks · 16 processes · seed 1".to_owned(),
            window: (0.0, window_end(0.0, 150, &runs)),
            capacity: 5e11,
            runs,
        }
    }

    /// However long names are, bars have room, and more names than can be read are said to be left out.
    #[test]
    fn who_got_what_has_a_line_for_each_name() {
        let share = |name: &str, reads: bool| names::Share {
            name: name.to_owned(),
            kinds: [
                reads.then_some(names::Kind {
                    rate: 1.25,
                    iops: 300.0,
                    mean: 3.3,
                }),
                None,
            ],
        };
        let mut picture = picture();
        assert!(!draw(&picture).contains("Who got what"));
        for run in &mut picture.runs {
            run.shares = vec![share("scrub & co", true), share("idle one", false)];
        }
        let text = draw(&picture);
        for part in [
            "Who got what",
            ">scrub &amp; co<",
            ">1.25<",
            ">300<",
            ">3.30<",
            ">nothing<",
        ] {
            assert!(text.contains(part), "no {part}");
        }
        assert!(!text.contains("the first"));
        picture.runs[0].label =
            "a drive with a long name stream(deadline):slice=124ms @32".to_owned();
        picture.runs[1].shares = (0..20)
            .map(|number| share(&format!("{number}{}", "W".repeat(60)), true))
            .collect();
        let text = draw(&picture);
        assert!(
            text.contains("the first 8 of 20") && text.contains("7WWW") && !text.contains("8WWW")
        );
        assert!(!text.contains("width=\"-"), "a bar of a negative width");
    }

    #[test]
    fn a_picture_has_all_its_parts() {
        let text = draw(&picture());
        for part in [
            "Random reads &lt;4 KiB&gt;",
            "address (GB)",
            "simulated time (ms)",
            "response time (ms)",
            "requests done (%)",
            "requests left (%)",
            "head time per request (ms)",
            ">stream(deadline):slice=124ms<",
            ">seek<",
            ">idle<",
        ] {
            assert!(text.contains(part), "no {part}");
        }
        // Nothing reads ahead here, so the legend does not speak of it.
        assert!(!text.contains("read-ahead"));
        assert_eq!(text, draw(&picture()));
        if let Some(path) = std::env::var_os("HEADTIME_TEST_SVG") {
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn long_runs_stay_small() {
        let mut picture = picture();
        let one = picture.runs[0].marks.clone();
        let turn = one.last().unwrap().to;
        for round in 1..50 {
            let shift = f64::from(round) * turn;
            picture.runs[0].marks.extend(one.iter().map(|mark| Mark {
                from: mark.from + shift,
                to: mark.to + shift,
                ..*mark
            }));
        }
        picture.window = (0.0, 50.0 * turn);
        let size = draw(&picture).len();
        assert!(size < 2_000_000, "{size} bytes");
    }

    #[test]
    fn the_window_ends_where_the_run_with_most_transfers_has_enough() {
        let runs = [run("a", 0.009), run("b", 0.003)];
        let end = window_end(0.0, 100, &runs);
        assert!((end - 101.0 * 0.0075).abs() < 1e-6, "{end}");
        assert_eq!(
            window_end(0.0, 100_000, &runs),
            runs[0].marks.last().unwrap().to
        );
        assert_eq!(window_end(3.0, 10, &[]), 3.0);
    }
}
