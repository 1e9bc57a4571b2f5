//! Bandwidth and rates per second.

use super::found::{DEPTH_MAX, Obstacle, READ_BYTES, RandomReads, Rate};
use super::meter::Meter;
use crate::Probe;
use crate::random::Random;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Time};

/// Size of a read of a stream.
const CHUNK_BYTES: u64 = 128 << 10;
/// Reads of a stream in the drive at a time: the drive already has the next read when a read ends.
const CHUNKS_DEPTH: u16 = 2;
/// Time to measure a stream: two dozen turns.
const STREAM_TIME: Nanos = Nanos::from_millis(200);
const CHUNKS_MIN: u64 = 16;

/// Number of places at first, and the most places.
const PLACES_FIRST: u64 = 16;
const PLACES_MAX: usize = 128;

/// Relative difference below which neighbours count as the same zone.
const ZONE_RATE_DIFFERENCE: f64 = 0.01;

/// Fewest answers at full depth for a rate.
const ANSWERS_MIN: u64 = 16;
/// Number of answers that is enough for any rate, even if the clock stands still.
const ANSWERS_MAX: u64 = 1 << 18;

/// Sequential bandwidth over the disk: evenly at first, then between neighbours that differ most.
pub(super) fn rates(
    meter: &mut Meter<'_>,
    time: Nanos,
    rates: &mut Vec<Rate>,
) -> Result<(), Obstacle> {
    let end = meter.elapsed() + time;
    let capacity = meter.capacity().get();
    let chunk = CHUNK_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    // Each stream starts far enough from the end and from the next stream.
    let span = capacity / (2 * PLACES_FIRST);
    let chunk = chunk.min(span / 16).max(1);
    for place in 0..=PLACES_FIRST {
        let start =
            (u128::from(capacity - span) * u128::from(place) / u128::from(PLACES_FIRST)) as u64;
        rates.push(stream(meter, start, chunk, span)?);
        meter.check_stalls()?;
    }
    while rates.len() < PLACES_MAX && meter.elapsed() < end {
        let apart = |pair: &[Rate]| {
            let ratio = pair[0].bytes_per_second / pair[1].bytes_per_second;
            (ratio - 1.0).abs()
        };
        let far = |pair: &[Rate]| (pair[1].place - pair[0].place).get() > capacity / 2048;
        let widest = rates
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| far(pair) && apart(pair) > ZONE_RATE_DIFFERENCE)
            .max_by(|one, other| apart(one.1).total_cmp(&apart(other.1)));
        let Some((before, pair)) = widest else { break };
        let middle = u64::midpoint(pair[0].place.get(), pair[1].place.get());
        rates.insert(before + 1, stream(meter, middle, chunk, span)?);
    }
    Ok(())
}

/// Bandwidth of a stream that starts at `start` and reads at most `span` sectors.
fn stream(meter: &mut Meter<'_>, start: u64, chunk: u64, span: u64) -> Result<Rate, Obstacle> {
    let per = READ_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    let start = start / per * per;
    let behind = (start + span).min(meter.capacity().get());
    let depth = CHUNKS_DEPTH.min(meter.depth());
    let mut next = start;
    let flow = run(meter, depth, chunk, STREAM_TIME, CHUNKS_MIN, |_| {
        let at = next;
        next += chunk;
        (next <= behind).then_some(at)
    })?;
    let bytes = chunk * u64::from(meter.sector_bytes());
    Ok(Rate {
        place: Lba::new(start),
        bytes_per_second: flow.per_second() * bytes as f64,
    })
}

/// Sequential reads of 4 KiB in a second, at the outermost tracks.
pub(super) fn small(meter: &mut Meter<'_>, time: Nanos) -> Result<f64, Obstacle> {
    let sectors = READ_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    let capacity = meter.capacity().get();
    // Behind the sectors that were read there before.
    let mut next = capacity / 64 / sectors * sectors;
    let depth = meter.depth().min(DEPTH_MAX);
    let flow = run(meter, depth, sectors, time, ANSWERS_MIN, |_| {
        let at = next;
        next += sectors;
        (next <= capacity).then_some(at)
    })?;
    Ok(flow.per_second())
}

/// Random reads of 4 KiB, `depth` at a time.
pub(super) fn random(
    meter: &mut Meter<'_>,
    depth: u16,
    time: Nanos,
    random: &mut Random,
) -> Result<RandomReads, Obstacle> {
    let sectors = READ_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    let last = meter.capacity().get() / sectors - 1;
    let mut flow = run(meter, depth, sectors, time, ANSWERS_MIN, |_| {
        Some(random.up_to(last) * sectors)
    })?;
    meter.check_stalls()?;
    let times = &mut flow.times;
    let sum: u128 = times.iter().map(|time| u128::from(time.as_nanos())).sum();
    let place = (times.len() * 99 / 100).min(times.len() - 1);
    let most = *times.select_nth_unstable(place).1;
    Ok(RandomReads {
        depth,
        reads: times.len() as u64,
        mean: Nanos::from_nanos((sum / times.len() as u128) as u64),
        most,
        iops: flow.per_second(),
    })
}

/// A series of answers.
struct Flow {
    /// Service times of the answers that count.
    times: Vec<Nanos>,
    from: Time,
    until: Time,
}

impl Flow {
    fn per_second(&self) -> f64 {
        let span = (self.until - self.from).as_secs_f64();
        // A clock that stands still has no rates.
        self.times.len() as f64 / span.max(1e-9)
    }
}

/// Holds `depth` reads in the drive for `time`, and until there are `least` answers or `place` has no more. Reads that were sent before the
/// drive had `depth` reads do not count.
fn run(
    meter: &mut Meter<'_>,
    depth: u16,
    sectors: u64,
    time: Nanos,
    least: u64,
    mut place: impl FnMut(u16) -> Option<u64>,
) -> Result<Flow, Obstacle> {
    let mut extents = vec![None; usize::from(depth)];
    let mut in_drive = 0;
    let mut send = |meter: &mut Meter<'_>, tag: u16| {
        let Some(start) = place(tag) else {
            return Ok::<_, Obstacle>(None);
        };
        let extent = Extent::at(start, sectors);
        meter.send(tag, Op::Read, extent)?;
        Ok(Some(extent))
    };
    for tag in 0..depth {
        extents[usize::from(tag)] = send(meter, tag)?;
        in_drive += u16::from(extents[usize::from(tag)].is_some());
    }
    let mut flow = Flow {
        times: Vec::new(),
        from: meter.now(),
        until: meter.now(),
    };
    let mut first = u64::from(in_drive);
    let mut ending = false;
    let mut failed = None;
    while in_drive > 0 {
        // The answer itself tells which extent failed, because the tag is known only now.
        let answer = meter.answer()?;
        in_drive -= 1;
        let tag = usize::from(answer.tag);
        let extent = extents[tag].take().expect("an answer to a command");
        if let Some(source) = answer.failure {
            // Other commands are still in the drive.
            failed.get_or_insert(crate::ProbeError::Failed {
                op: Op::Read,
                extent,
                source,
            });
            ending = true;
        }
        if first > 0 {
            first -= 1;
            flow.from = answer.at;
        } else if !ending {
            flow.times.push(answer.at - answer.sent);
            flow.until = answer.at;
        }
        let answers = flow.times.len() as u64;
        ending |= answers >= least && flow.until.saturating_since(flow.from) >= time;
        ending |= answers >= ANSWERS_MAX;
        if !ending {
            extents[tag] = send(meter, answer.tag)?;
            in_drive += u16::from(extents[tag].is_some());
        }
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(flow),
    }
}
