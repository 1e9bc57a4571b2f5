//! Draws the picture of `sim run --plot`: the place of the head, response times, and shares of the head time.

use super::svg::Svg;
use super::{EDGE, WIDTH, breakdown, head, heading, names, response};
use headtime_disk::Part;

pub use super::drawn::{Comparison, Drawn};

/// Draws a comparison as SVG text.
pub fn draw(picture: &Comparison<'_>) -> String {
    let mut svg = Svg::new(WIDTH);
    let mut y = heading(&mut svg, &picture.title, &picture.subtitle) + 30.0;
    if picture.runs.iter().any(|run| !run.marks.is_empty()) {
        y = head::draw(&mut svg, y, picture) + 36.0;
    }
    if picture.runs.iter().any(|run| !run.run.curve.is_empty()) {
        y = response::draw(&mut svg, y, &picture.runs) + 36.0;
    }
    if picture.runs.iter().any(|run| !run.names().is_empty()) {
        y = names::draw(&mut svg, y, &picture.runs) + 36.0;
    }
    if picture.runs.iter().any(|run| run.run.requests > 0) {
        y = breakdown::draw(&mut svg, y, &picture.runs) + 36.0;
    }
    svg.finish(y - 36.0 + EDGE)
}

/// Returns the end of a time window that starts at `from`. The run with the most transfers has about `transfers` transfers in the
/// window. Every run still shows the movement of its head.
pub fn window_end(from: f64, transfers: usize, runs: &[Drawn<'_>]) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_lab::execute::Mark;
    use headtime_lab::report::{HeadTime, KindRun, NamedRun, Run, Spread};

    /// An invented run of one request.
    fn run(label: &str, seek: f64) -> Run {
        let parts = [seek * 1e3, 0.1, 4.0, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let step = |step: u32| {
            let time = seek * 100.0 * f64::from(step).powf(1.3);
            (time, f64::from(step) / 199.0)
        };
        Run {
            label: label.to_owned(),
            requests: 1,
            curve: (1..200).map(step).collect(),
            head_time: HeadTime::of(|part| parts[part as usize] / 1e3),
            ..Run::default()
        }
    }

    /// A saw-tooth of seeks, each with a wait and a transfer.
    fn marks(seek: f64) -> Vec<Mark> {
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
        marks
    }

    fn runs() -> [Run; 2] {
        [
            run("noop", 0.009),
            run("stream(deadline):slice=124ms", 0.003),
        ]
    }

    fn picture(runs: &[Run; 2]) -> Comparison<'_> {
        let drawn = |run, seek| Drawn {
            run,
            marks: marks(seek),
        };
        let runs = vec![drawn(&runs[0], 0.009), drawn(&runs[1], 0.003)];
        Comparison {
            title: "Random reads <4 KiB>".to_owned(),
            subtitle: "wd5000aaks · 16 processes · seed 1".to_owned(),
            window: (0.0, window_end(0.0, 150, &runs)),
            capacity: 5e11,
            runs,
        }
    }

    /// Bars have room beside names of any length. If there are more names than fit, the picture tells how many are shown.
    #[test]
    fn who_got_what_has_a_line_for_each_name() {
        let share = |name: &str, reads: bool| NamedRun {
            name: name.to_owned(),
            of_reads: reads.then(|| KindRun {
                throughput_mb_s: 1.25,
                iops: 300.0,
                response_ms: Spread {
                    mean: 3.3,
                    ..Spread::default()
                },
                ..KindRun::default()
            }),
            ..NamedRun::default()
        };
        let mut runs = runs();
        assert!(!draw(&picture(&runs)).contains("Who got what"));
        for run in &mut runs {
            run.by_name = vec![share("scrub & co", true), share("idle one", false)];
        }
        let text = draw(&picture(&runs));
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
        runs[0].label = "a drive with a long name stream(deadline):slice=124ms @32".to_owned();
        runs[1].by_name = (0..20)
            .map(|number| share(&format!("{number}{}", "W".repeat(60)), true))
            .collect();
        let text = draw(&picture(&runs));
        assert!(
            text.contains("the first 8 of 20") && text.contains("7WWW") && !text.contains("8WWW")
        );
        assert!(!text.contains("width=\"-"), "a bar of a negative width");
    }

    #[test]
    fn a_picture_has_all_its_parts() {
        let runs = runs();
        let text = draw(&picture(&runs));
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
        // No head reads ahead in these runs, so the legend leaves read-ahead out.
        assert!(!text.contains("read-ahead"));
        assert_eq!(text, draw(&picture(&runs)));
        if let Some(path) = std::env::var_os("HEADTIME_TEST_SVG") {
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn long_runs_stay_small() {
        let runs = runs();
        let mut picture = picture(&runs);
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
        let of = runs();
        let runs = picture(&of).runs;
        let end = window_end(0.0, 100, &runs);
        assert!((end - 101.0 * 0.0075).abs() < 1e-6, "{end}");
        assert_eq!(
            window_end(0.0, 100_000, &runs),
            runs[0].marks.last().unwrap().to
        );
        assert_eq!(window_end(3.0, 10, &[]), 3.0);
    }
}
