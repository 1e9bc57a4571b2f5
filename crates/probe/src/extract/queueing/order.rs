//! Order in which a drive serves several commands, by the number of commands.

use super::super::bench::Bench;
use super::super::error::ExtractError;
use super::super::known_drive::KnownDrive;
use super::super::learned_keys::LearnedKeys;
use super::super::turns::part;
use super::Queueing;
use super::flight::Flight;
use headtime_units::{Lba, Track};
use serde::{Deserialize, Serialize};

/// Most reads that are sent together.
const BATCH_READS_MAX: u16 = 32;
/// Total number of reads. While a batch is served, the drive chooses from fewer and fewer reads.
const READS_IN_ALL: u16 = 960;
/// Pairs of reads for a drive with a depth of two.
const READ_PAIRS: u16 = 240;
/// Share of batches, as a fraction, that must be served in order for the drive to count as in order. A batch may contain a hit.
const IN_ORDER: (u32, u32) = (9, 10);
/// Step of the fit, in nanoseconds.
const FIT_STEP_NS: f64 = 10e3;
/// Delay of the arm, in nanoseconds, beyond which the drive may read on before the arm leaves. With sectors slower than `SLOW_SECTOR_NS`
/// this delay varies by place.
const LINGER_DELAY_NS: f64 = 350e3;
const SLOW_SECTOR_NS: f64 = 10e3;
const MOST_MARGIN: f64 = 3e6;

/// Choices of a drive among a number of commands, counted by policy.
///
/// One command may be the first, the nearest and the soonest at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOf {
    /// Smallest and largest number of commands to choose from.
    pub commands: [u16; 2],
    pub choices: u32,
    /// Choices of the oldest command, as FIFO makes them.
    pub first: u32,
    /// Choices of the command with the shortest arm movement, as SSTF makes them. `None` if the drive always took the first, or if its arm
    /// movement varies.
    pub nearest: Option<u32>,
    /// Choices of the command that is soonest under the head, as SPTF makes them. `None` as for `nearest`.
    pub soonest: Option<u32>,
}

/// A choice that the drive made.
struct Choice {
    head: HeadPosition,
    /// Tracks of the commands to choose from, and the angles at which their sectors start.
    had: Vec<(Track, f64)>,
    taken: usize,
}

impl Choice {
    fn of(
        drive: &KnownDrive<'_>,
        head: HeadPosition,
        had: impl Iterator<Item = u64>,
        taken: usize,
    ) -> Choice {
        Choice {
            head,
            had: had.map(|lba| place(drive, lba)).collect(),
            taken,
        }
    }

    /// Time until the head can read a command at angle `at` whose arm movement takes `way`, rotation included.
    fn reach(&self, way: f64, at: f64, turn: f64) -> f64 {
        way + part(at - self.head.angle - way / turn) * turn
    }
}

/// Position of the head when the drive chooses.
#[derive(Clone, Copy)]
struct HeadPosition {
    track: Track,
    /// Approximate angle, in turns.
    angle: f64,
    /// Delay of the arm's departure beyond the movement itself, in nanoseconds.
    later: f64,
}

/// Track of a sector, and the angle at which the sector starts.
fn place(drive: &KnownDrive<'_>, lba: u64) -> (Track, f64) {
    let place = drive.layout.locate(Lba::new(lba));
    let angle = place.angle.turns();
    (place.track, angle)
}

impl Queueing {
    pub(super) fn order(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        depth: u16,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        self.depth = Some(depth);
        // The depth is the number of commands that the host may send. The drive itself may take more.
        learned.know("queue.depth", 0.6);
        let choices = match depth {
            0 | 1 => Vec::new(),
            2 => self.pairs_behind(bench, drive)?,
            _ => self.batches(bench, drive, depth.min(BATCH_READS_MAX))?,
        };
        self.orders_of = tallied(&choices);
        let why = match self.orders {
            None if depth < 2 => "there is one command at a time",
            None => {
                "of two commands the first always went first, which the drive may have begun before it had the other"
            }
            Some(false) => {
                learned.know("queue.policy", 0.9);
                learned.doubt("queue.margin", "commands are served in their order");
                return Ok(());
            }
            Some(true) if depth > 2 && self.sooner.is_none() => {
                "when the arm comes to a waiting command varies"
            }
            Some(true) => {
                self.fit(&choices, drive);
                self.tell_policy(learned);
                self.tell_margin(drive, learned);
                return Ok(());
            }
        };
        for key in ["queue.policy", "queue.margin"] {
            learned.doubt(key, why);
        }
        Ok(())
    }

    /// Sends batches of reads, and finds out if the drive reorders them. Returns all choices except the first of each batch, because the
    /// number of commands that have arrived by then varies.
    fn batches(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        commands: u16,
    ) -> Result<Vec<Choice>, ExtractError> {
        let sooner = self.sooner.unwrap_or(0.0);
        let later = |per_track: f64| {
            let slot = drive.turn / per_track;
            self.leaves.map_or(0.0, |leaves| leaves.hold(slot)) - sooner
        };
        let count = READS_IN_ALL / commands;
        let mut choices = Vec::new();
        let mut in_order = 0;
        for _ in 0..count {
            in_order += u32::from(batch(bench, drive, commands, later, &mut choices)?);
        }
        let (part, all) = IN_ORDER;
        self.orders = Some(in_order * all < u32::from(count) * part);
        Ok(choices)
    }

    /// Sends pairs of reads right after an answer, when the arm is at a known place. The order of a pair is the only choice of a drive with
    /// two commands. Finds out if the drive makes this choice: an idle drive serves the first at once.
    fn pairs_behind(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
    ) -> Result<Vec<Choice>, ExtractError> {
        let mut choices = Vec::new();
        for _ in 0..READ_PAIRS {
            bench.keep_phase()?;
            let last = bench.capacity() - 1;
            let [from, one, other] = [(); 3].map(|()| bench.random.up_to(last));
            bench.read(from, 1)?;
            let mut flight = Flight::new(bench);
            let sent = flight.send(0, one, 1)?;
            flight.send(1, other, 1)?;
            let taken = usize::from(flight.answer()?.tag);
            flight.empty()?;
            drop(flight);
            let head = HeadPosition {
                track: place(drive, from).0,
                angle: bench.angle_at(sent),
                later: drive.processing,
            };
            let had = [one, other].into_iter();
            choices.push(Choice::of(drive, head, had, taken));
        }
        let in_order = choices.iter().filter(|choice| choice.taken == 0).count();
        let (part, all) = IN_ORDER;
        if in_order as u32 * all < u32::from(READ_PAIRS) * part {
            self.orders = Some(true);
        } else {
            choices.clear();
        }
        Ok(choices)
    }

    /// A line about the order of service, by the number of commands. `None` if the drive never had a choice.
    pub fn order_line(&self) -> Option<String> {
        let orders = &self.orders_of;
        if orders.is_empty() {
            return None;
        }
        let sizes = orders.iter().map(|order| match order.commands {
            [least, most] if least == most => least.to_string(),
            [least, most] => format!("{least}-{most}"),
        });
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        let percent = |taken: fn(&OrderOf) -> Option<u32>| {
            let percents = orders.iter().map(|order| {
                let part = f64::from(taken(order)?) / f64::from(order.choices.max(1));
                Some(format!("{:.0}", 100.0 * part))
            });
            Some(percents.collect::<Option<Vec<_>>>()?.join(", "))
        };
        let first = percent(|order| Some(order.first))?;
        let others = percent(|order| order.soonest).zip(percent(|order| order.nearest));
        Some(match others {
            Some((soonest, nearest)) => format!(
                "of {sizes} commands the soonest under the head in {soonest} % of choices, the nearest in {nearest}, the first in {first}"
            ),
            None => format!("of {sizes} commands the first in {first} % of choices"),
        })
    }

    /// Share of all choices that `taken` counts.
    fn share(&self, taken: impl Fn(&OrderOf) -> Option<u32>) -> f64 {
        let taken: u32 = self.orders_of.iter().filter_map(taken).sum();
        let all: u32 = self.orders_of.iter().map(|order| order.choices).sum();
        f64::from(taken) / f64::from(all.max(1))
    }

    fn tell_policy(&mut self, learned: &mut LearnedKeys) {
        let soonest = self.share(|order| order.soonest);
        let nearest = self.share(|order| order.nearest);
        let by_position = soonest > 0.75 && soonest > nearest + 0.1;
        self.by_position = Some(by_position);
        if by_position {
            learned.know("queue.policy", soonest.min(0.95));
            return;
        }
        let why = format!(
            "it serves others than the first, but {:.0} % of its choices are soonest under the head and {:.0} % the nearest",
            100.0 * soonest,
            100.0 * nearest
        );
        learned.doubt("queue.policy", why);
    }

    fn tell_margin(&mut self, drive: &KnownDrive<'_>, learned: &mut LearnedKeys) {
        let per_track = drive.layout.run(Lba::ZERO).sectors_per_track;
        let slot = drive.turn / f64::from(per_track);
        let stays = self.leaves.map_or(0.0, |leaves| leaves.hold(slot));
        let why = match self.margin {
            _ if self.by_position != Some(true) => "its choices follow no positions",
            None => "margins far apart agree with its choices alike",
            // With two commands, the margin also contains the processing time before the choice.
            Some(_) if self.depth == Some(2) => {
                "of two commands a drive chooses only as it ends another"
            }
            Some(_)
                if stays - self.sooner.unwrap_or(0.0) > LINGER_DELAY_NS
                    && slot > SLOW_SECTOR_NS =>
            {
                "the arm reads on for a while before it leaves"
            }
            Some(_) => {
                let soonest = self.share(|order| order.soonest);
                learned.know("queue.margin", soonest.min(0.9));
                return;
            }
        };
        self.margin = None;
        learned.doubt("queue.margin", why);
    }

    /// Finds the margin that agrees best with the choices, and counts the choices that agree.
    fn fit(&mut self, choices: &[Choice], drive: &KnownDrive<'_>) {
        let turn = drive.turn;
        let ways: Vec<Vec<f64>> = choices
            .iter()
            .map(|choice| {
                let had = choice.had.iter();
                had.map(|(to, _)| drive.way(choice.head.track, *to))
                    .collect()
            })
            .collect();
        let all = || choices.iter().zip(&ways);
        let is_soonest = |choice: &Choice, ways: &[f64], margin: f64| {
            let times = choice.had.iter().zip(ways).map(|((_, at), way)| {
                choice.reach((way + choice.head.later + margin).max(0.0), *at, turn)
            });
            least(times) == Some(choice.taken)
        };
        let (margin, width) = best(0.0, MOST_MARGIN, FIT_STEP_NS, |margin| {
            let agrees = |(choice, ways): &(&Choice, &Vec<f64>)| is_soonest(choice, ways, margin);
            all().filter(agrees).count()
        });
        self.margin = (width < 500e3).then_some(margin);
        for order in &mut self.orders_of {
            let [from, to] = order.commands.map(usize::from);
            let here = || all().filter(|(choice, _)| (from..=to).contains(&choice.had.len()));
            let nearest =
                here().filter(|(choice, ways)| least(ways.iter().copied()) == Some(choice.taken));
            order.nearest = Some(nearest.count() as u32);
            let soonest = here().filter(|(choice, ways)| is_soonest(choice, ways, margin));
            order.soonest = Some(soonest.count() as u32);
        }
    }
}

/// Counts choices by the number of commands: 2, 3 to 4, 5 to 8, and so on.
fn tallied(choices: &[Choice]) -> Vec<OrderOf> {
    let most = choices.iter().map(|choice| choice.had.len()).max();
    let most = most.unwrap_or(0);
    let mut orders = Vec::new();
    let (mut from, mut to) = (2, 2);
    while from <= most {
        let upto = to.min(most);
        let here = || {
            choices
                .iter()
                .filter(|choice| (from..=upto).contains(&choice.had.len()))
        };
        orders.push(OrderOf {
            commands: [from, upto].map(|count| count as u16),
            choices: here().count() as u32,
            first: here().filter(|choice| choice.taken == 0).count() as u32,
            nearest: None,
            soonest: None,
        });
        (from, to) = (to + 1, 2 * to);
    }
    orders
}

/// Sends reads of random places at once, and records the drive's choices, from the second choice until a single read is left. Returns true
/// if all reads were served in order.
///
/// `later` maps a track length to the delay of the arm's departure from such a track for a waiting command, beyond the movement itself.
fn batch(
    bench: &mut Bench<'_>,
    drive: &KnownDrive<'_>,
    count: u16,
    later: impl Fn(f64) -> f64,
    choices: &mut Vec<Choice>,
) -> Result<bool, ExtractError> {
    let last = bench.capacity() - 1;
    let lbas: Vec<u64> = (0..count).map(|_| bench.random.up_to(last)).collect();
    let mut flight = Flight::new(bench);
    for (tag, lba) in (0..).zip(&lbas) {
        flight.send(tag, *lba, 1)?;
    }
    let mut waiting: Vec<u16> = (0..count).collect();
    let mut in_order = true;
    let mut head: Option<HeadPosition> = None;
    while !waiting.is_empty() {
        let answer = flight.answer()?;
        let at = waiting.iter().position(|tag| *tag == answer.tag);
        let taken = at.expect("a tag that was sent");
        in_order &= taken == 0;
        if let Some(head) = head.filter(|_| waiting.len() > 1) {
            let had = waiting.iter().map(|tag| lbas[usize::from(*tag)]);
            choices.push(Choice::of(drive, head, had, taken));
        }
        let lba = lbas[usize::from(answer.tag)];
        let (track, begins) = place(drive, lba);
        let per_track = f64::from(drive.layout.run(Lba::new(lba)).sectors_per_track);
        head = Some(HeadPosition {
            track,
            angle: begins + 1.0 / per_track,
            later: later(per_track),
        });
        waiting.remove(taken);
    }
    Ok(in_order)
}

/// Index of the smallest time.
fn least(times: impl Iterator<Item = f64>) -> Option<usize> {
    let least = times
        .enumerate()
        .min_by(|(_, one), (_, other)| f64::total_cmp(one, other));
    least.map(|(place, _)| place)
}

/// Middle of the times with the largest count, and the width of the range with at least 97 % of this count.
fn best(low: f64, high: f64, each: f64, count: impl Fn(f64) -> usize) -> (f64, f64) {
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
    ((first + last) / 2.0, to - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::{Cylinder, Head as Surface};

    fn choices(of: &[(usize, usize)]) -> Vec<Choice> {
        let track = Track {
            cylinder: Cylinder(0),
            head: Surface(0),
        };
        let choice = |&(had, taken): &(usize, usize)| Choice {
            head: HeadPosition {
                track,
                angle: 0.0,
                later: 0.0,
            },
            had: vec![(track, 0.0); had],
            taken,
        };
        of.iter().map(choice).collect()
    }

    #[test]
    fn choices_are_counted_by_how_many_commands_there_were() {
        let orders = tallied(&choices(&[(2, 0), (3, 1), (4, 0), (5, 4), (9, 0), (10, 2)]));
        let told = orders
            .iter()
            .map(|order| (order.commands, order.choices, order.first));
        let expected = [
            ([2, 2], 1, 1),
            ([3, 4], 2, 1),
            ([5, 8], 1, 0),
            ([9, 10], 2, 1),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(tallied(&[]), []);
    }

    #[test]
    fn a_line_says_which_commands_are_taken() {
        let of = |orders, orders_of| Queueing {
            orders,
            orders_of,
            ..Queueing::default()
        };
        let order = |commands, nearest: Option<u32>| OrderOf {
            commands,
            choices: 50,
            first: 10,
            nearest,
            soonest: nearest.map(|_| 49),
        };
        assert_eq!(of(None, vec![]).order_line(), None);
        let all = vec![order([2, 2], Some(30)), order([3, 3], Some(25))];
        assert_eq!(
            of(Some(true), all.clone()).order_line().unwrap(),
            "of 2, 3 commands the soonest under the head in 98, 98 % of choices, the nearest in 60, 50, the first in 20, 20"
        );
        assert_eq!(
            of(Some(true), vec![order([2, 2], None), order([3, 4], None)])
                .order_line()
                .unwrap(),
            "of 2, 3-4 commands the first in 20, 20 % of choices"
        );
    }
}
