//! The time of a turn, from reads of the same places.

use super::found::{Obstacle, READ_BYTES, Rotation};
use super::meter::Meter;
use crate::Probe;
use crate::random::Random;
use headtime_units::{Extent, Nanos};

/// Places at first.
const PLACES_MIN: usize = 16;
/// The most places: more than a buffer has segments.
const PLACES_MAX: usize = 1024;

/// Rounds over all places: at least, where time allows, and at most.
const ROUNDS_MIN: usize = 6;
const ROUNDS_MAX: usize = 24;

/// Pauses decouple the times of constant answers. So many reads have them.
const PAUSES: usize = 512;
const PAUSE_MAX: u64 = 12_000_000;

/// Turns are looked for from 20,000 a minute to 2,400.
const TURN_MIN: f64 = 3.0e6;
const TURN_MAX: f64 = 25.0e6;

/// Times between reads that the search for the period takes.
const SEARCHED: usize = 256;

/// A mean cosine above this is a period. Among 256 times without one, the highest of 20,000 means is below
/// 0.25 (four and a half deviations of 0.044); among the fewest that are searched, 32, below 0.6.
const COHERENT: f64 = 0.65;
const SEARCHED_MIN: usize = 32;

/// A read of a place that was read before came from the buffer if it took less than this part of what the
/// first reads take.
const HIT_PART: u64 = 8;

/// With more hits than this, more places are read in between.
const HITS_MAX: f64 = 0.3;

/// A read is late if it takes so much longer than the shortest behind the same movement, in turns; a
/// disk that is alone is late for a missed settle at most.
const LATE: f64 = 1.2;
/// The part of the reads that may be late on a disk that is alone.
const LATE_MAX: f64 = 0.08;

/// A place, and each read of it.
struct Place {
    extent: Extent,
    reads: Vec<Read>,
}

#[derive(Clone, Copy)]
struct Read {
    /// When it was answered, in ns.
    at: u64,
    /// How long that took.
    took: u64,
    /// How long the read before took, where that is of the same place each time.
    before: Option<u64>,
}

/// Finds the time of a turn within `time`.
pub(super) fn find<P: Probe>(
    meter: &mut Meter<'_, P>,
    time: Nanos,
    random: &mut Random,
) -> Result<Rotation, Obstacle> {
    let sectors = READ_BYTES.div_ceil(u64::from(meter.sector_bytes()));
    let last = meter.capacity().get() / sectors - 1;
    let draw = |random: &mut Random| Place {
        extent: Extent::at(random.up_to(last) * sectors, sectors),
        reads: Vec::new(),
    };
    // It may have to spin up.
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
            // The next takes as long as those before.
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

/// Reads every place once: in their order, or in a random one. Were it always the same order, all times
/// between two reads of a place would be about as long, and other periods would fit nearly as well.
fn visit<P: Probe>(
    meter: &mut Meter<'_, P>,
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
    // Behind the first there is no movement that comes again.
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

/// What takes less is from the buffer.
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

fn judge<P: Probe>(places: &[Place], meter: &mut Meter<'_, P>) -> Result<Rotation, Obstacle> {
    // Reads of the medium alone.
    let below = hit_below(places);
    let read: Vec<Vec<u64>> = places
        .iter()
        .map(|place| {
            let read = place.reads.iter().filter(|read| read.took >= below);
            read.map(|read| read.at).collect()
        })
        .collect();
    let apart: Vec<f64> = read
        .iter()
        .flat_map(|times| times.windows(2).map(|pair| (pair[1] - pair[0]) as f64))
        .collect();
    if apart.len() < SEARCHED_MIN {
        return Err(Obstacle::Slow {
            reads: meter.reads(),
            took: meter.elapsed(),
        });
    }
    let found = period(&apart);
    let turn = found.unwrap_or(TURN_MAX);
    let late = share_of_late(places, below, turn);
    if late > LATE_MAX {
        return Err(Obstacle::Loaded {
            percent: libm::round(late * 100.0) as u64,
        });
    }
    let Some(turn) = found else {
        let again = || places.iter().flat_map(|place| place.reads.iter().skip(1));
        let reads = again().count() as u64;
        let sum: u64 = again().map(|read| read.took).sum();
        return Err(Obstacle::NoRotation {
            reads,
            mean: Nanos::from_nanos(sum / reads.max(1)),
        });
    };
    Ok(refine(&read, turn))
}

/// Part of the reads that took over a turn longer than the shortest of the same place. The place before is
/// the same each time, and so is the movement.
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
            .filter(|&time| time as f64 - least > LATE * turn)
            .count();
        all += times().count();
    }
    late as f64 / all.max(1) as f64
}

/// The longest period that times are multiples of, if they have any.
fn period(apart: &[f64]) -> Option<f64> {
    // What comes back sooner was not read from a disk. The shortest tell the period at the coarsest steps.
    let whole = apart.iter().filter(|&&time| time > 0.9 * TURN_MIN);
    let mut apart: Vec<f64> = whole.copied().collect();
    if apart.len() < SEARCHED_MIN {
        return None;
    }
    apart.sort_by(f64::total_cmp);
    apart.truncate(SEARCHED);
    let longest = *apart.last()?;
    let coherence = |turn: f64| {
        let turns = apart.iter().map(|time| time / turn);
        let sum: f64 = turns
            .map(|turns| libm::cos(std::f64::consts::TAU * (turns - libm::floor(turns))))
            .sum();
        sum / apart.len() as f64
    };
    // A step moves the longest time by an eighth of a turn.
    let mut turn = TURN_MAX;
    let mut found: Vec<(f64, f64)> = Vec::new();
    while turn >= TURN_MIN {
        found.push((turn, coherence(turn)));
        turn *= 1.0 - (turn / (8.0 * longest)).min(0.01);
    }
    let best = found.iter().map(|found| found.1).fold(0.0, f64::max);
    if best < COHERENT {
        return None;
    }
    // Parts of the period are periods too. From the first that is as good as any, up to the top.
    let begin = found.iter().position(|found| found.1 >= 0.8 * best)?;
    let peak = found[begin..]
        .iter()
        .take_while(|found| found.1 >= 0.5 * best)
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(peak.0)
}

/// The turn from ever longer times, each of which says it more exactly.
fn refine(read: &[Vec<u64>], turn: f64) -> Rotation {
    let rounds = read.iter().map(Vec::len).max().unwrap_or(0);
    let mut rotation = Rotation {
        turn_ns: turn,
        error: 1.0,
        agree: 0.0,
        reads: 0,
    };
    let mut step = 1;
    while step < rounds {
        let apart = || {
            read.iter().flat_map(move |times| {
                let pairs = times.iter().zip(times.iter().skip(step));
                pairs.map(|(one, other)| (other - one) as f64)
            })
        };
        // Twice, since the first brings the turn nearer.
        for _ in 0..2 {
            let turn = rotation.turn_ns;
            let (mut products, mut squares, mut errors) = (0.0, 0.0, 0.0);
            let (mut agree, mut all) = (0_u64, 0_u64);
            for time in apart() {
                let turns = libm::round(time / turn);
                let error = time - turns * turn;
                all += 1;
                if error.abs() < 0.1 * turn {
                    agree += 1;
                    products += turns * time;
                    squares += turns * turns;
                    errors += error * error;
                }
            }
            if agree < SEARCHED_MIN as u64 / 2 {
                return rotation;
            }
            let deviation = libm::sqrt(errors / agree as f64);
            rotation = Rotation {
                turn_ns: products / squares,
                error: deviation / libm::sqrt(squares) / turn,
                agree: agree as f64 / all as f64,
                reads: agree,
            };
        }
        step *= 2;
    }
    rotation
}
