//! Which of several commands a drive takes first.

use super::super::bench::Bench;
use super::super::error::ExtractError;
use super::super::ground::Ground;
use super::super::told::Told;
use super::super::turns::part;
use super::flight::Flight;
use super::leaves::Leaves;
use super::{BATCH, Queueing};
use crate::Probe;
use headtime_units::{Lba, Track};

const BATCHES: usize = 60;
/// Steps of what is fitted, and the largest margin.
const STEP: f64 = 10e3;
/// An arm that leaves so much later than it could may read on first; where sectors take so long, that differs by place.
const LINGERS: f64 = 350e3;
const SLOW: f64 = 10e3;
const MOST_MARGIN: f64 = 3e6;

/// A choice that the drive made.
struct Choice {
    from: Track,
    /// The part of a turn that has passed when the last one was read.
    angle: f64,
    /// How long the arm stays there, in nanoseconds.
    hold: f64,
    /// Where the commands are that it had, and the part of a turn at which each begins.
    had: Vec<(Track, f64)>,
    taken: usize,
}

impl Choice {
    /// When the head can read a command that takes `way` to get to, after waiting for it.
    fn reach(&self, way: f64, at: f64, turn: f64) -> f64 {
        way + part(at - self.angle - way / turn) * turn
    }
}

impl Queueing {
    pub(super) fn order<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        ground: &Ground<'_>,
        depth: u16,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        self.depth = Some(depth);
        // What the host may send, not what the drive would take.
        told.know("queue.depth", 0.6);
        if depth < 3 {
            for key in ["queue.policy", "queue.margin"] {
                told.doubt(
                    key,
                    "with fewer than three commands at a time there is no choice",
                );
            }
            return Ok(());
        }
        let hold = self.leaves;
        let mut choices = Vec::new();
        let mut overtaken = 0;
        for _ in 0..BATCHES {
            overtaken += batch(bench, ground, depth.min(BATCH), hold, &mut choices)?;
        }
        self.orders = Some(overtaken > 0);
        if overtaken == 0 {
            told.know("queue.policy", 0.9);
            told.doubt("queue.margin", "commands are served in their order");
            return Ok(());
        }
        let Some(sooner) = self.sooner else {
            for key in ["queue.policy", "queue.margin"] {
                told.doubt(key, "when the arm comes to a waiting command varies");
            }
            return Ok(());
        };
        self.fit(&choices, ground, sooner);
        let [soonest, nearest] = self.agree;
        if soonest > 0.75 && soonest > nearest + 0.1 {
            self.by_position = Some(true);
            told.know("queue.policy", soonest.min(0.95));
        } else {
            self.by_position = Some(false);
            let why = format!(
                "it serves others than the first, but {:.0} % of its choices are soonest under the head and {:.0} % the nearest",
                100.0 * soonest,
                100.0 * nearest
            );
            told.doubt("queue.policy", why);
        }
        let per_track = ground.layout.run(Lba::ZERO).sectors_per_track;
        let slot = ground.turn / f64::from(per_track);
        let stays = self.leaves.map_or(0.0, |leaves| leaves.hold(slot));
        let why = match self.margin {
            _ if self.by_position != Some(true) => "its choices follow no positions",
            None => "margins far apart agree with its choices alike",
            Some(_) if stays - sooner > LINGERS && slot > SLOW => {
                "the arm reads on for a while before it leaves"
            }
            Some(_) => {
                told.know("queue.margin", soonest.min(0.9));
                return Ok(());
            }
        };
        self.margin = None;
        told.doubt("queue.margin", why);
        Ok(())
    }

    /// Finds which margin agrees with choices best.
    fn fit(&mut self, choices: &[Choice], ground: &Ground<'_>, sooner: f64) {
        let turn = ground.turn;
        let way = |from, to| ground.way(from, to);
        let ways: Vec<Vec<f64>> = choices
            .iter()
            .map(|choice| {
                choice
                    .had
                    .iter()
                    .map(|(to, _)| way(choice.from, *to))
                    .collect()
            })
            .collect();
        let agrees = |margin: f64| {
            let agree = choices.iter().zip(&ways).filter(|(choice, ways)| {
                let times = choice.had.iter().zip(ways.iter()).map(|((_, at), way)| {
                    choice.reach((way + choice.hold - sooner + margin).max(0.0), *at, turn)
                });
                least(times) == Some(choice.taken)
            });
            agree.count()
        };
        let (margin, most, width) = best(0.0, MOST_MARGIN, STEP, agrees);
        let all = choices.len().max(1) as f64;
        let nearest = choices
            .iter()
            .zip(&ways)
            .filter(|(choice, ways)| least(ways.iter().copied()) == Some(choice.taken));
        self.agree = [most as f64 / all, nearest.count() as f64 / all];
        self.margin = (width < 500e3).then_some(margin);
    }
}

/// Sends reads of random places at once; how many were answered before one that was sent earlier.
fn batch<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    ground: &Ground<'_>,
    count: u16,
    leaves: Option<Leaves>,
    choices: &mut Vec<Choice>,
) -> Result<u32, ExtractError> {
    let layout = ground.layout;
    let places: Vec<u64> = (0..count)
        .map(|_| bench.random.up_to(bench.capacity() - 1))
        .collect();
    let target = |lba: u64| {
        let place = layout.locate(Lba::new(lba));
        let angle = f64::from(place.angle.to_bits()) / 4_294_967_296.0;
        (place.track, angle)
    };
    let mut flight = Flight::new(bench);
    for (tag, lba) in (0..).zip(&places) {
        flight.send(tag, *lba, 1)?;
    }
    let mut waiting: Vec<u16> = (0..count).collect();
    let mut overtaken = 0;
    let mut before: Option<(Track, f64, f64)> = None;
    while !waiting.is_empty() {
        let answer = flight.answer()?;
        let at = waiting.iter().position(|tag| *tag == answer.tag);
        let taken = at.expect("a tag that was sent");
        overtaken += u32::from(taken > 0);
        if let Some((from, angle, hold)) = before {
            choices.push(Choice {
                from,
                angle,
                hold,
                had: waiting
                    .iter()
                    .map(|tag| target(places[usize::from(*tag)]))
                    .collect(),
                taken,
            });
        }
        let lba = places[usize::from(answer.tag)];
        let (track, begins) = target(lba);
        let per_track = f64::from(layout.run(Lba::new(lba)).sectors_per_track);
        let hold = leaves.map_or(0.0, |leaves| leaves.hold(ground.turn / per_track));
        before = Some((track, begins + 1.0 / per_track, hold));
        waiting.remove(taken);
    }
    Ok(overtaken)
}

/// The place of the least.
fn least(times: impl Iterator<Item = f64>) -> Option<usize> {
    let least = times
        .enumerate()
        .min_by(|(_, one), (_, other)| f64::total_cmp(one, other));
    least.map(|(place, _)| place)
}

/// Where a count is largest between two times, how large, and over what width it is nearly so.
fn best(low: f64, high: f64, each: f64, count: impl Fn(f64) -> usize) -> (f64, usize, f64) {
    let steps = libm::round((high - low) / each) as usize;
    let counts: Vec<usize> = (0..=steps)
        .map(|step| count(low + step as f64 * each))
        .collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let near = |part: f64| {
        let enough = |count: &usize| *count as f64 >= most as f64 * part;
        let first = counts.iter().position(enough).unwrap_or(0);
        let last = counts.iter().rposition(enough).unwrap_or(0);
        [first, last].map(|step| low + step as f64 * each)
    };
    let [first, last] = near(1.0);
    let [from, to] = near(0.97);
    ((first + last) / 2.0, most, to - from)
}
