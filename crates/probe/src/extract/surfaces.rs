//! How many surfaces there are, and how long addresses stay on one.
//!
//! Skews repeat after a cylinder of an old drive, and after a group of cylinders of a new one. In a
//! group, addresses run along a surface and back on the next one. So two surfaces' worth of tracks on,
//! the arm is where it began: the way there is a switch of heads, while every other far track of the
//! group needs a seek (Wong: the minima of the seek time count the surfaces).

use super::bench::Bench;
use super::error::ExtractError;
use super::reach::{Aim, Reach};
use super::shape::{Shape, period};
use super::turns::part;
use super::zone::FoundZone;
use crate::Probe;
use headtime_sched::Op;
use headtime_units::Extent;

/// The most surfaces that are looked for.
const MOST_HEADS: u64 = 32;
/// Fewer tracks on a surface than this are the surfaces of a cylinder.
const LEAST_GROUP: u64 = 16;
/// Times that differ by less than this, in nanoseconds, may be equal.
const EQUAL: f64 = 120_000.0;

/// Finds the shape of a drive whose tracks are known.
pub(super) fn shape<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    zones: &[FoundZone],
) -> Result<Shape, ExtractError> {
    let period = period(zones);
    if period <= MOST_HEADS {
        return Ok(Shape {
            period,
            heads: period,
            group: 1,
        });
    }
    let mut best: Option<(f64, u64)> = None;
    let longest = zones.iter().max_by_key(|zone| zone.track(zone.end - 1).0);
    let zone = longest.expect("a drive has zones");
    // From the longest stay on a surface down; equal times are those of its multiples, so that the
    // shortest of them counts.
    for heads in 1..=MOST_HEADS {
        let group = period / heads;
        if !period.is_multiple_of(heads) || group < LEAST_GROUP {
            continue;
        }
        // With one surface nothing comes back.
        let there = if heads == 1 { group / 2 } else { 2 * group - 1 };
        let Some(time) = way(bench, zone, period, there)? else {
            continue;
        };
        if best.is_none_or(|(least, _)| time < least + EQUAL) {
            best = Some((best.map_or(time, |(least, _)| least.min(time)), heads));
        }
    }
    let heads = best.map_or(1, |(_, heads)| heads);
    Ok(Shape {
        period,
        heads,
        group: period / heads,
    })
}

/// The least time from the first track of a group to one that comes `there` tracks later.
fn way<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    zone: &FoundZone,
    period: u64,
    there: u64,
) -> Result<Option<f64>, ExtractError> {
    let turn = bench.turn();
    let first = zone
        .extras
        .iter()
        .find(|extra| extra.every == period)
        .map_or(0, |extra| extra.at);
    let groups = (zone.track(zone.end - 1).0.saturating_sub(first) / period).max(1);
    Reach { bench }.search(1_500_000.0, |reach, guess| {
        let begin = first + reach.bench.random.up_to(groups - 1) * period;
        let Some(source) = zone.address(begin, 0) else {
            return Ok(None);
        };
        let source = (Op::Read, Extent::at(source, 1));
        let aim = |angle: f64| {
            let slots = zone.sectors_per_track as f64;
            let track = begin + there;
            let slot =
                libm::ceil(part(angle - zone.track_angle(track) + 1.0 / slots) * slots) as u64;
            let slot = slot % zone.sectors_per_track;
            let lba = zone.address(track, slot)?;
            Some(Aim {
                lba,
                answered: zone.angle_of(lba),
                lead: turn / slots,
            })
        };
        reach.trial(source, (Op::Read, 1), aim, guess)
    })
}
