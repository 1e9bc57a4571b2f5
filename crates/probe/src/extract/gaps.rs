//! Cylinders without data between zones.
//!
//! Spare tracks, and what a maker left out, stand between zones and have no address. A seek over a
//! border takes as long as one over so many cylinders more within a zone.

use super::bench::Bench;
use super::error::ExtractError;
use super::seeks::{Target, between};
use headtime_units::{Cylinder, Head, Track};

/// Seeks within zones that are known before, in cylinders.
pub(super) const KNOWN: u32 = 100;
/// The most cylinders that are looked for.
const MOST: u32 = 64;
/// Cylinders on both sides of a border between which seeks are timed.
const SIDES: [(u32, u32); 4] = [(0, 0), (1, 0), (2, 2), (8, 16)];
/// Times that differ by less than this, in nanoseconds, tell of no gap.
const EQUAL: f64 = 25_000.0;

/// Cylinders between a zone that ends on one and the next, which begins on another, from seeks over
/// the border; `seeks` are those within zones. 0 if there are too few to tell.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    target: &Target<'_>,
    (end, begin): (Cylinder, Cylinder),
    seeks: &[(u32, f64)],
) -> Result<u32, ExtractError> {
    let heads = u64::from(target.heads) - 1;
    let mut times: Vec<(u32, f64)> = Vec::new();
    for (before, behind) in SIDES {
        let Some(low) = end.0.checked_sub(before) else {
            continue;
        };
        let distance = begin.0 + behind - low;
        let guess = between(seeks, distance).unwrap_or(2_000_000.0);
        let time = target.between_tracks(bench, guess, |random| {
            let head = Head(random.up_to(heads) as u16);
            let at = |cylinder| Track {
                cylinder: Cylinder(cylinder),
                head,
            };
            match random.up_to(1) {
                0 => (at(low), at(begin.0 + behind)),
                _ => (at(begin.0 + behind), at(low)),
            }
        })?;
        times.extend(time.map(|time| (distance, time)));
    }
    if times.len() < 3 {
        return Ok(0);
    }
    let off = |gap: u32| -> f64 {
        let one =
            |&(distance, time): &(u32, f64)| between(seeks, distance + gap).map(|said| time - said);
        times.iter().filter_map(one).map(|off| off * off).sum()
    };
    if off(0) < times.len() as f64 * EQUAL * EQUAL {
        return Ok(0);
    }
    let best = (0..=MOST).min_by(|one, other| f64::total_cmp(&off(*one), &off(*other)));
    Ok(best.expect("a range"))
}
