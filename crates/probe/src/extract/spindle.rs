//! Rotation time of the platters, and the angles of some places.
//!
//! A sector can be read only when it passes the head. Two reads of the same sector from the medium therefore differ by whole turns, however
//! long the arm moved in between. The turn is the longest time that divides all these differences. The paper's references read one sector
//! with the cache off. Here many places are read: the reads in between evict a sector from the cache, and hits are recognized by their
//! time.

use super::bench::Bench;
use super::error::ExtractError;
use super::rotation::{LARGE_BUFFER_PLACES, Mark, ROUNDS_PER_PLACE, Spindle};
use super::turns::{median, near, part};
use crate::period::{COHERENCE_MIN, TURN_NS_MIN, coherence, period};
use headtime_units::Time;

/// Number of places at first, and the most places for a large buffer.
const PLACES_FIRST: u64 = 64;
const MOST_PLACES: u64 = 4_096;
/// Number of reads on each side of a read that determine the local drift.
const DRIFT_READS: usize = 8;
const DRIFT_ROUNDS: usize = 6;
/// Distance of a normal distribution's quartiles from its median, in deviations.
const QUARTILE_DEVIATIONS: f64 = 0.6745;

/// Finds the rotation time and the angles of some places.
///
/// # Errors
///
/// If no time divides the differences. Then nothing turns, or other commands disturb the probe.
pub(super) fn find(bench: &mut Bench<'_>) -> Result<Spindle, ExtractError> {
    let hit_below = hit_time(bench)?;
    let mut count = PLACES_FIRST.min(bench.capacity() / 2).max(1);
    let mut best = 0.0;
    loop {
        let samples = rounds(bench, count, hit_below)?;
        let seen: usize = samples.iter().map(|(_, times)| times.len()).sum();
        // Places must have left the buffer before they are read again. Otherwise they cannot serve to find the phase.
        let few_hits = seen as u64 * 10 > count * ROUNDS_PER_PLACE as u64 * 9;
        if let Some((spindle, coherence)) = fit(&samples, hit_below) {
            best = f64::max(best, coherence);
            if coherence > COHERENCE_MIN
                && spindle.places.len() >= 8
                && (few_hits || count >= MOST_PLACES)
            {
                // A sector that is being read ahead comes as soon as the command is processed, later than a hit. A read that takes an
                // eighth of a turn comes from the medium.
                let hit_below = hit_below.max(spindle.turn / 8.0);
                let linger = linger(bench, &spindle, hit_below)?;
                return Ok(Spindle {
                    hit_below,
                    linger,
                    ..spindle
                });
            }
        }
        // Only buffer hits are a reason to take more places. If even new places are as fast as hits, there is no medium.
        if few_hits || (seen as u64) * 4 < count {
            break;
        }
        if count >= MOST_PLACES {
            return Err(ExtractError::Buffered { places: count });
        }
        count *= 2;
    }
    Err(ExtractError::DoesNotTurn { coherence: best })
}

/// Time limit between reads from the buffer and reads from the medium, in nanoseconds.
fn hit_time(bench: &mut Bench<'_>) -> Result<f64, ExtractError> {
    let mut times = Vec::new();
    for _ in 0..12 {
        let lba = bench.random.up_to(bench.capacity() - 1);
        bench.read(lba, 1)?;
        let again = bench.read(lba, 1)?;
        times.push((again.at - again.sent).as_nanos() as f64);
    }
    let hit = median(&mut times).expect("twelve");
    // Without a buffer the second read takes a turn.
    Ok(if hit < TURN_NS_MIN {
        hit * 1.25 + 60e3
    } else {
        0.0
    })
}

/// Longest time, in nanoseconds, that a drive reads on behind a read before it answers from the buffer. Measured with a sector that the
/// buffer holds, after another sector was read elsewhere. 0 if this is no longer than a hit.
fn linger(bench: &mut Bench<'_>, spindle: &Spindle, hit_below: f64) -> Result<f64, ExtractError> {
    let mut longest = 0.0;
    for _ in 0..16 {
        let [one, other] = [0; 2].map(|_| bench.random.up_to(bench.capacity() - 1));
        bench.read(one, 1)?;
        bench.read(other, 1)?;
        let again = bench.read(one, 1)?;
        let took = (again.at - again.sent).as_nanos() as f64;
        // A longer time may come from the medium.
        if took < spindle.turn * 0.6 {
            longest = f64::max(longest, took);
        }
    }
    Ok(if longest < hit_below { 0.0 } else { longest })
}

/// Times at which each of `count` places was read, over some rounds in random order.
fn rounds(
    bench: &mut Bench<'_>,
    count: u64,
    hit_below: f64,
) -> Result<Vec<(u64, Vec<Time>)>, ExtractError> {
    let capacity = bench.capacity();
    let mut places: Vec<(u64, Vec<Time>)> = (0..count)
        .map(|index| {
            let width = capacity / count;
            (index * width + bench.random.up_to(width - 1), Vec::new())
        })
        .collect();
    for _ in 0..ROUNDS_PER_PLACE {
        let mut order: Vec<usize> = (0..places.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, bench.random.up_to(at as u64) as usize);
        }
        for index in order {
            let answer = bench.read(places[index].0, 1)?;
            if (answer.at - answer.sent).as_nanos() as f64 >= hit_below {
                places[index].1.push(answer.at);
            }
        }
    }
    Ok(places)
}

/// Rotation time, angles of the places, and coherence of the times.
fn fit(samples: &[(u64, Vec<Time>)], hit_below: f64) -> Option<(Spindle, f64)> {
    let mut gaps: Vec<f64> = Vec::new();
    for (_, times) in samples {
        for (index, early) in times.iter().enumerate() {
            for late in &times[index + 1..] {
                gaps.push((*late - *early).as_nanos() as f64);
            }
        }
    }
    let found = period(&mut gaps)?;
    let (turn, gaps) = (found.turn, &gaps[found.without..]);
    let astray = gaps.iter().filter(|gap| near(*gap / turn).abs() > 0.02);
    let astray = astray.count() as f64 / gaps.len() as f64;
    let mut seen: Vec<Seen> = Vec::new();
    let mut angles: Vec<(u64, f64)> = Vec::new();
    for (lba, times) in samples {
        let Some(first) = times.first() else { continue };
        let origin = first.as_nanos() as f64 / turn;
        let off = |time: &Time| near(time.as_nanos() as f64 / turn - origin);
        if times.len() >= 2 && times.iter().all(|time| off(time).abs() < 0.02) {
            seen.extend(times.iter().map(|time| Seen {
                place: angles.len(),
                at: time.as_nanos() as f64,
                off: off(time),
            }));
            angles.push((*lba, origin));
        }
    }
    let (offsets, turn, varies) = steady(&seen, angles.len(), turn);
    let places = angles
        .iter()
        .zip(offsets)
        .map(|(&(lba, origin), offset)| Mark {
            lba,
            angle: part(origin + offset),
        });
    let places = places.collect();
    let spindle = Spindle {
        turn,
        astray,
        places,
        hit_below,
        linger: 0.0,
        varies,
    };
    Some((spindle, coherence(turn, gaps)))
}

/// A timed read of a place.
struct Seen {
    place: usize,
    at: f64,
    /// Deviation from the place's first time, in turns.
    off: f64,
}

/// Residual of an answer after subtracting its angle and whole turns.
struct Left {
    at: f64,
    place: usize,
    off: f64,
}

/// Removes slow drift from residuals: the median of the neighbouring reads, then the mean of each place. While many places are read, the
/// speed may change in ways that the fitted curve does not follow.
fn straighten(lefts: &mut [Left], places: usize) {
    for _ in 0..DRIFT_ROUNDS {
        let offs: Vec<f64> = lefts.iter().map(|left| left.off).collect();
        let mut sums = vec![(0.0, 0.0); places];
        for (index, left) in lefts.iter_mut().enumerate() {
            let beside =
                index.saturating_sub(DRIFT_READS)..(index + DRIFT_READS + 1).min(offs.len());
            left.off -= median(&mut offs[beside].to_vec()).unwrap_or(0.0);
            sums[left.place].0 += left.off;
            sums[left.place].1 += 1.0;
        }
        for left in lefts.iter_mut() {
            let (sum, count) = sums[left.place];
            left.off -= sum / f64::max(count, 1.0);
        }
    }
}

/// Fits a spindle whose speed changes smoothly. Returns the angles of places against their first times, the turn at the end, and the
/// standard deviation of a single answer. Alternating least squares fit the angles and a cubic curve of the phase over time. Each place is
/// read at several times in random order, which keeps the two apart.
fn steady(seen: &[Seen], places: usize, turn: f64) -> (Vec<f64>, f64, f64) {
    let mut offsets = vec![0.0; places];
    let begin = seen
        .iter()
        .map(|seen| seen.at)
        .fold(f64::INFINITY, f64::min);
    let end = seen.iter().map(|seen| seen.at).fold(0.0, f64::max);
    let half = (end - begin) / 2.0;
    if half <= 0.0 {
        return (offsets, turn, 0.0);
    }
    // Legendre polynomials, which are nearly independent of each other.
    let shapes = |at: f64| {
        let u = (at - begin) / half - 1.0;
        [u, (3.0 * u * u - 1.0) / 2.0, (5.0 * u * u - 3.0) * u / 2.0]
    };
    let mut curve = [0.0; 3];
    let left = |seen: &Seen, offsets: &[f64], curve: &[f64; 3]| {
        let bent: f64 = shapes(seen.at)
            .iter()
            .zip(curve)
            .map(|(shape, size)| shape * size)
            .sum();
        seen.off - offsets[seen.place] - bent
    };
    for _ in 0..100 {
        let mut sums = vec![(0.0, 0.0); places];
        for seen in seen {
            sums[seen.place].0 += left(seen, &offsets, &curve);
            sums[seen.place].1 += 1.0;
        }
        for (offset, (sum, count)) in offsets.iter_mut().zip(sums) {
            *offset += sum / f64::max(count, 1.0);
        }
        for shape in 0..curve.len() {
            let (mut up, mut down) = (0.0, 0.0);
            for seen in seen {
                let size = shapes(seen.at)[shape];
                up += size * left(seen, &offsets, &curve);
                down += size * size;
            }
            curve[shape] += up / down;
        }
    }
    // The phase is the sum of turns and curve. The slope of the sum at the end is the speed there.
    let slope = (curve[0] + 3.0 * curve[1] + 6.0 * curve[2]) / half;
    let mut lefts: Vec<Left> = seen
        .iter()
        .map(|seen| Left {
            at: seen.at,
            place: seen.place,
            off: left(seen, &offsets, &curve),
        })
        .collect();
    lefts.sort_by(|one, other| one.at.total_cmp(&other.at));
    if places > LARGE_BUFFER_PLACES {
        straighten(&mut lefts, places);
    }
    // Differences between consecutive reads cancel an error in the curve's shape. The median ignores the few late answers.
    let steps = lefts
        .windows(2)
        .map(|pair| (pair[1].off - pair[0].off).abs());
    let step = median(&mut steps.collect::<Vec<f64>>()).unwrap_or(0.0);
    let free = seen.len() as f64 / seen.len().saturating_sub(places).max(1) as f64;
    let varies = step / QUARTILE_DEVIATIONS * (free / 2.0).sqrt();
    (offsets, 1.0 / (1.0 / turn + slope), varies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const TURN: f64 = 8_333_333.0;

    /// Standard deviation of answers, in turns, as measured from four rounds over places. The true value is `deviation`, and the speed
    /// wanders by 100 ppm with the given period in seconds.
    fn varies(deviation: f64, period: f64) -> f64 {
        const PLACES_FIRST: usize = 256;
        let mut random = Random::new(7);
        let angles: Vec<f64> = (0..PLACES_FIRST).map(|_| random.unit()).collect();
        let mut firsts: Vec<Option<f64>> = vec![None; PLACES_FIRST];
        let mut seen = Vec::new();
        let (mut at, mut read) = (0.0, 0);
        for _ in 0..ROUNDS_PER_PLACE {
            let mut order: Vec<usize> = (0..PLACES_FIRST).collect();
            for index in (1..PLACES_FIRST).rev() {
                order.swap(index, random.up_to(index as u64) as usize);
            }
            for place in order {
                at += 11e6 + random.unit() * 2e6;
                read += 1;
                let wave = std::f64::consts::TAU * at / 1e9 / period;
                let wander = 100e-6 * period * 1e9 / std::f64::consts::TAU / TURN * wave.sin();
                let late = if read % 300 == 0 { 0.01 } else { 0.0 };
                // A uniform distribution of width w has the variance w²/12.
                let varies = deviation * 12_f64.sqrt() * (random.unit() - 0.5);
                let angle = angles[place] + wander + varies + late;
                let first = *firsts[place].get_or_insert(angle);
                seen.push(Seen {
                    place,
                    at,
                    off: angle - first,
                });
            }
        }
        steady(&seen, PLACES_FIRST, TURN).2
    }

    #[test]
    fn a_speed_that_wanders_is_none_of_what_answers_vary_by() {
        for period in [120.0, 7_200.0] {
            for deviation in [1e-5, 1e-4] {
                let found = varies(deviation, period);
                assert!((found / deviation - 1.0).abs() < 0.2, "{period} s: {found}");
            }
        }
        for period in [120.0, 7_200.0] {
            let found = varies(0.0, period);
            assert!(found < 1e-6, "{period} s: {found}");
        }
    }
}
