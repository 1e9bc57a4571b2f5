//! Cylinders without data between zones.
//!
//! Spare tracks and tracks that a maker left out lie between zones and have no addresses. A seek across a border therefore takes longer
//! than the count of addressed cylinders suggests.

use super::bench::Bench;
use super::error::ExtractError;
use super::seeks::{Target, between};
use headtime_units::{Cylinder, Head, Track};

/// Longest seek within a zone, in cylinders, that must be measured before.
pub(super) const KNOWN_SEEK_CYLINDERS: u32 = 100;
/// Most cylinders that are looked for.
const GAP_CYLINDERS_MAX: u32 = 64;
/// Distances of the two tracks of a seek from the border, in cylinders.
const SIDES: [(u32, u32); 4] = [(0, 0), (1, 0), (2, 2), (8, 16)];
/// Largest mean difference of times, in nanoseconds, that needs no gap.
const EQUAL_TIME_NS: f64 = 25_000.0;

/// Number of cylinders between two zones, from seeks across the border. One zone ends on cylinder `end`, the next starts on `begin`.
/// `seeks` are times within zones. Returns 0 if too few seeks can be timed.
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
    if off(0) < times.len() as f64 * EQUAL_TIME_NS * EQUAL_TIME_NS {
        return Ok(0);
    }
    let best =
        (0..=GAP_CYLINDERS_MAX).min_by(|one, other| f64::total_cmp(&off(*one), &off(*other)));
    Ok(best.expect("a range"))
}
