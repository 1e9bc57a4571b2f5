//! Times of writes: processing, settling, and the head switch that reads hide.
//!
//! Only sectors of the scratch range are written. The drive must answer writes when they are on the medium. Then an answer comes at the
//! angle of its sector, as for reads.

use super::bench::Bench;
use super::error::ExtractError;
use super::reach::{Aim, Reach};
use super::seeks::Target;
use super::turns::{median, near, part};
use headtime_sched::Op;
use headtime_units::{Cylinder, Extent, Head, Lba, Track};
use serde::{Deserialize, Serialize};

/// Fewest sectors of a scratch range that can show the number of writes in the write cache.
pub(super) const SECTORS_MIN: u64 = 4_096;
/// Size of a scratch range with enough tracks for writes and reads, even with a buffer that holds earlier reads. Half of this size is
/// enough on all shipped drives; a quarter is not.
pub(super) const BYTES_MIN: u64 = 256 << 20;

/// Least times of writes, in nanoseconds, up to the start of the first sector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    /// Sectors per write: the sectors of a physical sector.
    pub unit: u64,
    /// Delay from the end of the last sector to the answer.
    pub tail: f64,
    /// On the track of the previous read, and on the track of the previous write.
    pub after_read: Option<f64>,
    pub after_write: Option<f64>,
    /// To another surface of the cylinder, after a read.
    pub switch: Option<f64>,
    /// By distance, after a read.
    pub seeks: Vec<(u32, f64)>,
    /// Distance and time of a read after a write.
    pub read_after: Option<(u32, f64)>,
}

/// Range for writes, and the delay of their answers.
struct Scratch<'t, 'l> {
    target: &'t Target<'l>,
    range: Extent,
    low: u32,
    high: u32,
    unit: u64,
    /// Delay from the end of the last sector to the answer, in nanoseconds.
    tail: f64,
}

impl Scratch<'_, '_> {
    /// Random track that lies within the range.
    fn track(&self, random: &mut crate::random::Random) -> Option<Track> {
        (0..32).find_map(|_| {
            let cylinder = self.low + random.up_to(u64::from(self.high - self.low)) as u32;
            let head = random.up_to(u64::from(self.target.heads) - 1) as u16;
            let track = Track {
                cylinder: Cylinder(cylinder),
                head: Head(head),
            };
            let extent = self.target.layout.track_extent(track)?;
            let fits = extent.len.get() > self.unit
                && self.range.start <= extent.start
                && extent.end() <= self.range.end();
            fits.then_some(track)
        })
    }

    /// Address on a track whose sector starts at `angle` or soon after.
    fn aim(&self, track: Track, turn: f64, angle: f64) -> Option<Aim> {
        let per_track = f64::from(self.target.layout.sectors_per_track(track)?);
        let mut aim = self.target.aim(track, turn, angle)?;
        let begins = aim.answered - aim.lead / turn;
        let more = (self.unit - aim.lba % self.unit) % self.unit;
        aim.lba += more;
        aim.lead = turn * self.unit as f64 / per_track + self.tail;
        aim.answered = begins + more as f64 / per_track + aim.lead / turn;
        let extent = Extent::at(aim.lba, self.unit);
        let run = self.target.layout.run(extent.start);
        let here = run.track == track && u64::from(run.len) >= self.unit;
        (here && self.range.start <= extent.start && extent.end() <= self.range.end())
            .then_some(aim)
    }
}

/// Distances at which writes are compared with reads.
fn distances(cylinders: u32) -> impl Iterator<Item = u32> {
    (0..)
        .map(|power| 1 << power)
        .take_while(move |distance| *distance < cylinders * 3 / 4)
}

/// Measures writes in `range`. `None` if the drive answers writes before they are on the medium.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    target: &Target<'_>,
    range: Extent,
    reads: &[(u32, f64)],
    unit: u64,
) -> Result<Option<Writes>, ExtractError> {
    let cylinder = |lba: Lba| target.layout.locate(lba).track.cylinder.0;
    let ends = [
        cylinder(range.start),
        cylinder(Lba::new(range.end().get() - 1)),
    ];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let mut scratch = Scratch {
        target,
        range,
        low,
        high,
        unit,
        tail: 0.0,
    };
    let Some(tail) = tail(bench, &scratch)? else {
        return Ok(None);
    };
    scratch.tail = tail;
    let mut writes = Writes {
        unit,
        tail,
        ..Writes::default()
    };
    let guess = 600_000.0;
    writes.after_read = least(bench, &scratch, guess, Op::Read, |_, to| Some(to))?;
    let turn = bench.turn();
    if unit == 1 && writes.after_read.is_none_or(|time| time > 0.8 * turn) {
        // A physical sector that is written in part must be read first.
        return measure(bench, target, range, reads, 8);
    }
    writes.after_write = least(bench, &scratch, guess, Op::Write, |_, to| Some(to))?;
    writes.switch = least(bench, &scratch, 2.0 * guess, Op::Read, |random, to| {
        let others = u64::from(target.heads).checked_sub(2)?;
        let head = (u64::from(to.head.0) + 1 + random.up_to(others)) % u64::from(target.heads);
        Some(Track {
            head: Head(head as u16),
            ..to
        })
    })?;
    for distance in distances(target.cylinders) {
        let guess = super::seeks::between(reads, distance).unwrap_or(4.0 * guess) + 400_000.0;
        let time = least(bench, &scratch, guess, Op::Read, |_, to| {
            beside(to, distance, target.cylinders)
        })?;
        writes.seeks.extend(time.map(|time| (distance, time)));
    }
    let distance = 16.min(target.cylinders / 2).max(1);
    let guess = super::seeks::between(reads, distance).unwrap_or(2.0 * guess);
    let time = target.least(bench, guess, |random| {
        let from = scratch.track(random)?;
        let to = beside(from, distance, target.cylinders)?;
        let run = target.layout.run(target.layout.track_extent(from)?.start);
        let first = run.start.get().next_multiple_of(unit);
        let source = Extent::at(first, unit);
        (range.start <= source.start && source.end() <= range.end()).then_some((
            Op::Write,
            source,
            to,
        ))
    })?;
    writes.read_after = time.map(|time| (distance, time));
    Ok(Some(writes))
}

/// Track on the same surface at a distance in cylinders.
fn beside(track: Track, distance: u32, cylinders: u32) -> Option<Track> {
    let at = track.cylinder.0;
    let cylinder = match at.checked_sub(distance) {
        Some(lower) => lower,
        None => at + distance,
    };
    (cylinder < cylinders).then_some(Track {
        cylinder: Cylinder(cylinder),
        ..track
    })
}

/// Least time of a write on a scratch track, after a command on the track that `from` returns.
fn least(
    bench: &mut Bench<'_>,
    scratch: &Scratch<'_, '_>,
    guess: f64,
    before: Op,
    from: impl Fn(&mut crate::random::Random, Track) -> Option<Track>,
) -> Result<Option<f64>, ExtractError> {
    let turn = bench.turn();
    Reach { bench }.search(guess, |reach, guess| {
        let random = &mut reach.bench.random;
        let Some(to) = scratch.track(random) else {
            return Ok(None);
        };
        let Some(from) = from(random, to) else {
            return Ok(None);
        };
        let source = if before.is_read() {
            scratch.target.source(from).map(|lba| Extent::at(lba, 1))
        } else {
            let first = scratch
                .target
                .layout
                .track_extent(from)
                .map(|extent| extent.start.get());
            first.map(|first| Extent::at(first.next_multiple_of(scratch.unit), scratch.unit))
        };
        let Some(source) = source else {
            return Ok(None);
        };
        reach.trial(
            (before, source),
            (Op::Write, scratch.unit),
            |angle| scratch.aim(to, turn, angle),
            guess,
        )
    })
}

/// Delay from the end of a write's sectors to its answer, in nanoseconds. `None` if the answer does not depend on the angle.
fn tail(bench: &mut Bench<'_>, scratch: &Scratch<'_, '_>) -> Result<Option<f64>, ExtractError> {
    let turn = bench.turn();
    let mut late = Vec::new();
    for _ in 0..24 {
        bench.keep_phase()?;
        let Some(track) = scratch.track(&mut bench.random) else {
            continue;
        };
        let angle = bench.random.unit();
        let Some(aim) = scratch.aim(track, turn, angle) else {
            continue;
        };
        let answer = bench.command(Op::Write, Extent::at(aim.lba, scratch.unit))?;
        late.push(part(bench.angle_at(answer.at) - aim.answered + 0.05) - 0.05);
    }
    let Some(middle) = median(&mut late) else {
        return Ok(None);
    };
    let agree = late
        .iter()
        .filter(|late| near(**late - middle).abs() < 0.01)
        .count();
    Ok((late.len() >= 12 && agree * 10 >= late.len() * 8).then_some(middle * turn))
}
