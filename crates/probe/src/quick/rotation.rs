//! Rotation time, from reads of the same places.

use super::found::{Obstacle, READ_BYTES, Rotation};
use super::meter::Meter;
use crate::Probe;
use crate::period::{COHERENCE_MIN, TURN_NS_MAX, period};
use crate::random::Random;
use headtime_units::{Extent, Nanos};

/// Number of places at first.
const PLACES_MIN: usize = 16;
/// Most places; more than a buffer has segments.
const PLACES_MAX: usize = 1024;

/// Fewest and most rounds over all places.
const ROUNDS_MIN: usize = 6;
const ROUNDS_MAX: usize = 24;

/// Number of reads with a pause. Pauses decouple the times of constant answers.
const PAUSES: usize = 512;
const PAUSE_MAX: u64 = 12_000_000;

/// Fewest times between reads for a search.
const GAPS_MIN: usize = 32;

/// Least deviation from the expected angle, in turns, of reads that do not count.
const ASTRAY_TURNS: f64 = 0.1;

/// Divisor: a later read of a place is a hit if it takes less than this part of the median first read.
const HIT_PART: u64 = 8;

/// Share of hits above which more places are read.
const HITS_MAX: f64 = 0.3;

/// Excess over the shortest read after the same movement, in turns, that makes a read late. A disk without other load is at most a missed
/// settle late.
const LATE_TURNS: f64 = 1.2;
/// Share of late reads that a disk without other load may have.
const LATE_MAX: f64 = 0.08;

/// A place and all reads at this place.
struct Place {
    extent: Extent,
    reads: Vec<Read>,
}

#[derive(Clone, Copy)]
struct Read {
    /// Time of the answer, in ns.
    at: u64,
    /// Service time in ns.
    took: u64,
    /// Service time of the previous read, if the same place always precedes this one.
    before: Option<u64>,
}

/// Finds the rotation time within `time`.
pub(super) fn find(
    meter: &mut Meter<'_>,
    time: Nanos,
    random: &mut Random,
) -> Result<Rotation, Obstacle> {
    let sectors = READ_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    let last = meter.capacity().get() / sectors - 1;
    let draw = |random: &mut Random| Place {
        extent: Extent::at(random.up_to(last) * sectors, sectors),
        reads: Vec::new(),
    };
    // The first read may include a spin-up.
    let first = draw(random);
    let began = meter.elapsed();
    meter.read(first.extent)?;
    let began = began.max(meter.elapsed());
    let mut places: Vec<Place> = Vec::new();
    let mut wanted = PLACES_MIN;
    'more: loop {
        places.clear();
        places.resize_with(wanted, || draw(random));
        for round in 0..ROUNDS_MAX {
            let used = meter.elapsed().saturating_sub(began);
            // The next round takes about as long as each previous round.
            let next = used.as_nanos() / (round as u64).max(1);
            let over = used.as_nanos() + next > time.as_nanos();
            if round >= ROUNDS_MIN && over {
                break;
            }
            if used > time * 2 {
                break;
            }
            visit(meter, &mut places, round % 2 == 0, random)?;
            meter.check_stalls()?;
            if round > 0 && share_of_hits(&places) > HITS_MAX {
                if wanted == PLACES_MAX {
                    let places = wanted as u64;
                    return Err(Obstacle::Buffered { places });
                }
                wanted *= 2;
                continue 'more;
            }
        }
        break;
    }
    judge(&places, meter)
}

/// Reads every place once, in order or in random order. A constant order would make all times between reads of a place nearly equal, and
/// other periods would fit nearly as well.
fn visit(
    meter: &mut Meter<'_>,
    places: &mut [Place],
    in_turn: bool,
    random: &mut Random,
) -> Result<(), Obstacle> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    if !in_turn {
        for last in (1..order.len()).rev() {
            order.swap(last, random.up_to(last as u64) as usize);
        }
    }
    // The first read follows no repeated movement.
    let mut before = None;
    for (number, place) in order.into_iter().enumerate() {
        if number < PAUSES {
            meter.pause(Nanos::from_nanos(random.up_to(PAUSE_MAX)));
        }
        let place = &mut places[place];
        let took = meter.read(place.extent)?.as_nanos();
        place.reads.push(Read {
            at: meter.now().as_nanos(),
            took,
            before,
        });
        before = in_turn.then_some(took);
    }
    Ok(())
}

/// Time limit for hits, in ns.
fn hit_below(places: &[Place]) -> u64 {
    let mut first: Vec<u64> = places
        .iter()
        .filter_map(|place| place.reads.first().map(|read| read.took))
        .collect();
    let middle = first.len() / 2;
    *first.select_nth_unstable(middle).1 / HIT_PART
}

fn share_of_hits(places: &[Place]) -> f64 {
    let below = hit_below(places);
    let again = || places.iter().flat_map(|place| place.reads.iter().skip(1));
    let hits = again().filter(|read| read.took < below).count();
    hits as f64 / again().count().max(1) as f64
}

fn judge(places: &[Place], meter: &mut Meter<'_>) -> Result<Rotation, Obstacle> {
    // Reads of the medium alone.
    let below = hit_below(places);
    let read: Vec<Vec<u64>> = places
        .iter()
        .map(|place| {
            let read = place.reads.iter().filter(|read| read.took >= below);
            read.map(|read| read.at).collect()
        })
        .collect();
    let mut gaps = gaps(&read);
    if gaps.len() < GAPS_MIN {
        return Err(Obstacle::Slow {
            reads: meter.reads(),
            took: meter.elapsed(),
        });
    }
    let found = period(&mut gaps).filter(|found| found.coherence > COHERENCE_MIN);
    let turn = found.map_or(TURN_NS_MAX, |found| found.turn);
    let late = share_of_late(places, below, turn);
    if late > LATE_MAX {
        return Err(Obstacle::Loaded {
            percent: libm::round(late * 100.0) as u64,
        });
    }
    let Some(found) = found else {
        let again = || places.iter().flat_map(|place| place.reads.iter().skip(1));
        let reads = again().count() as u64;
        let sum: u64 = again().map(|read| read.took).sum();
        return Err(Obstacle::NoRotation {
            reads,
            mean: Nanos::from_nanos(sum / reads.max(1)),
        });
    };
    Ok(measure(&read, found.turn))
}

/// Share of reads that took over a turn longer than the shortest read of the same place. The previous place is always the same, and
/// therefore the movement, too.
fn share_of_late(places: &[Place], below: u64, turn: f64) -> f64 {
    let (mut late, mut all) = (0, 0);
    for place in places {
        let times = || {
            let moved =
                |read: &&Read| read.took >= below && read.before.is_some_and(|took| took >= below);
            let reads = place.reads.iter().filter(moved);
            reads.map(|read| read.took)
        };
        let least = times().min().unwrap_or(0) as f64;
        late += times()
            .filter(|&time| time as f64 - least > LATE_TURNS * turn)
            .count();
        all += times().count();
    }
    late as f64 / all.max(1) as f64
}

/// Times between any two reads of a place.
fn gaps(read: &[Vec<u64>]) -> Vec<f64> {
    let mut gaps = Vec::new();
    for times in read {
        for (index, early) in times.iter().enumerate() {
            gaps.extend(times[index + 1..].iter().map(|late| (late - early) as f64));
        }
    }
    gaps
}

/// Rotation time and its error, by least squares over the reads of each place. The angle of each place is unknown. A place therefore
/// contributes one fact less than its number of reads.
fn measure(read: &[Vec<u64>], turn: f64) -> Rotation {
    let (mut products, mut squares, mut left) = (0.0, 0.0, 0.0);
    let (mut agree, mut all, mut places) = (0_u64, 0_u64, 0_u64);
    for times in read.iter().filter(|times| times.len() > 1) {
        all += times.len() as u64;
        // The reference is the read that agrees with the most others.
        let off = |from: u64, time: u64| {
            let turns = (time as f64 - from as f64) / turn;
            turns - libm::round(turns)
        };
        let near = |from: u64| {
            let near = move |time: &&u64| off(from, **time).abs() < ASTRAY_TURNS;
            times.iter().filter(near)
        };
        let from = times.iter().max_by_key(|from| near(**from).count());
        let from = *from.expect("two and more");
        if near(from).count() < 2 {
            continue;
        }
        // Whole turns of each read since the reference, and its lateness.
        let seen = || {
            near(from).map(|time| {
                let turns = libm::round((*time as f64 - from as f64) / turn);
                (turns, off(from, *time) * turn)
            })
        };
        let count = seen().count() as f64;
        let (turns, late) = seen().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let middle = (turns / count, late / count);
        for (turns, late) in seen() {
            let (turns, late) = (turns - middle.0, late - middle.1);
            products += turns * late;
            squares += turns * turns;
            left += late * late;
        }
        agree += count as u64;
        places += 1;
    }
    let more = products / squares;
    // Residual after the correction of the turn.
    let left = (left - more * products).max(0.0);
    let free = agree.saturating_sub(places + 1).max(1);
    Rotation {
        turn_ns: turn + more,
        error: libm::sqrt(left / free as f64 / squares) / turn,
        agree: agree as f64 / all as f64,
        reads: agree,
    }
}
