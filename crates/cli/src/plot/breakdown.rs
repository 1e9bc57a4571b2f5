//! Draws the shares of the head time: a bar for each run, as long as its head time per request.

use super::axis::Axis;
use super::chart::{Area, across, across_grid, activities, frame};
use super::drawn::Drawn;
use super::svg::{FAINT, ON_LIGHT, PAPER, Style, Svg};
use super::{EDGE, PARTS, WIDTH, colour, headed, label_width};
use headtime_disk::Part;

const BAR: f64 = 20.0;
const PITCH: f64 = 30.0;

pub(super) fn draw(svg: &mut Svg, top: f64, runs: &[Drawn<'_>]) -> f64 {
    let note = "all of the time divided by the number of requests; numbers in the bars are its shares in %";
    headed(svg, top, "Where the head time went", note);
    let total = |run: &Drawn<'_>| run.run.parts_per_request().iter().sum::<f64>();
    let mut used = [false; PARTS];
    for run in runs {
        for (used, time) in used.iter_mut().zip(run.run.parts_per_request()) {
            // Activities that are too short for a bar are left out of the legend.
            *used |= time >= 0.001 * total(run) && time > 0.0;
        }
    }
    let mut y = activities(svg, top + 22.0, used) + 12.0;
    let left = EDGE + label_width(runs.iter().map(|run| run.label())) + 10.0;
    let longest = runs.iter().map(total).fold(0.0, f64::max);
    // Room for the sum behind the longest bar.
    let area = Area {
        left,
        top: y,
        right: WIDTH - EDGE - 64.0,
        bottom: y + PITCH * runs.len() as f64 + 4.0,
    };
    let x = Axis::linear(0.0, longest, left, area.right);
    across_grid(svg, &x, area, &x.ticks(10));
    frame(svg, area);
    y += (PITCH - BAR) / 2.0 + 2.0;
    for run in runs {
        let base = y + BAR / 2.0 + 4.0;
        svg.ending(left - 8.0, base, Style::PLAIN, run.label());
        let (sum, mut before) = (total(run), 0.0);
        for (part, time) in Part::ALL.into_iter().zip(run.run.parts_per_request()) {
            let (from, to) = (x.at(before), x.at(before + time));
            before += time;
            if to - from < 0.05 {
                continue;
            }
            svg.rect(from, y, to - from, BAR, colour(part));
            let share = format!("{:.0}", 100.0 * time / sum);
            if to - from > Style::SMALL.width(&share) + 4.0 {
                let dark = matches!(
                    part,
                    Part::Seek
                        | Part::Transfer
                        | Part::ReadAhead
                        | Part::Destage
                        | Part::ReadModifyWrite
                );
                let fill = if dark { PAPER } else { ON_LIGHT };
                let style = Style::SMALL.in_colour(fill);
                svg.centred((from + to) / 2.0, base, style, &share);
            }
        }
        let style = Style::SMALL.in_colour(FAINT);
        svg.text(x.at(sum) + 6.0, base, style, &format!("{sum:.2} ms"));
        y += PITCH;
    }
    across(svg, area, "head time per request (ms)")
}
