//! From tracks in the order of addresses to cylinders and heads.
//!
//! The rule by which tracks are turned has a period: on an old drive the tracks of a cylinder, then
//! a longer turn for the step of the arm; on a new one the tracks of a group of cylinders, surface
//! by surface. Which of the two it is, and how long the arm stays on a surface, seeks say
//! ([`super::surfaces`]).

use super::turns::part;
use super::zone::FoundZone;
use headtime_disk::profile::{Skew, Zone};
use serde::{Deserialize, Serialize};

/// How tracks are spread over the surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Tracks after which the skews repeat.
    pub period: u64,
    /// Surfaces.
    pub heads: u64,
    /// Tracks on a surface before the next one's turn; 1 if all of a cylinder come first.
    pub group: u64,
}

/// The period that most zones have; 1 if none has any.
pub(super) fn period(zones: &[FoundZone]) -> u64 {
    let mut counts: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    for zone in zones {
        // What recurs within the zone, the most often.
        let recurs = |every: u64| every > 0;
        let periods = zone
            .extras
            .iter()
            .map(|extra| extra.every)
            .filter(|every| recurs(*every));
        if let Some(every) = periods.min() {
            *counts.entry(every).or_default() += zone.end - zone.start;
        }
    }
    counts
        .into_iter()
        .max_by_key(|&(_, sectors)| sectors)
        .map_or(1, |(every, _)| every)
}

/// A stretch of a found zone without any irregular turn: a zone of the profile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    /// Its tracks in the found zone.
    from: u64,
    to: u64,
    /// The first track that is turned by more, at least `from`.
    turned: u64,
    /// By how much more.
    more: f64,
}

/// Cuts a found zone where its turns break the rule.
fn stretches(zone: &FoundZone, period: u64) -> Vec<Stretch> {
    let last = zone.track(zone.end - 1).0 + 1;
    let mut cuts: Vec<u64> = vec![0];
    for extra in &zone.extras {
        if extra.every == period {
            // A second rule, for instance one sector more from some cylinder on.
            if extra.at >= period {
                cuts.push(extra.at);
            }
        } else {
            let mut at = extra.at;
            while at < last {
                cuts.push(at);
                if extra.every == 0 {
                    break;
                }
                at += extra.every;
            }
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    // The first turn of all is a rule, not a break.
    let first = zone
        .extras
        .iter()
        .filter(|extra| extra.every == period)
        .map(|extra| extra.at)
        .min();
    cuts.retain(|cut| *cut == 0 || Some(*cut) != first);
    let ends: Vec<u64> = cuts[1..].iter().copied().chain([last]).collect();
    let cut = cuts
        .iter()
        .zip(ends)
        .filter(|&(&from, to)| from < to && from < last);
    cut.map(|(&from, to)| {
        let mut more = 0.0;
        let mut turned = None;
        for extra in zone
            .extras
            .iter()
            .filter(|extra| extra.every == period && extra.at < to)
        {
            // The first of its turns behind the first track.
            let past = (from + 1).saturating_sub(extra.at).div_ceil(period);
            let next = extra.at + past * period;
            turned = Some(turned.map_or(next, |other: u64| other.min(next)));
            more += extra.skew;
        }
        Stretch {
            from,
            to,
            turned: turned.unwrap_or(from + period),
            more,
        }
    })
    .collect()
}

/// The zones of a profile: as [`Shape`] has it, angles being those at which sectors begin.
///
/// `gaps` are the cylinders without data before each, as far as known.
/// `late` is how much later, in turns of a track of so many sectors, a sector is answered than it
/// begins.
pub(super) fn zones(
    found: &[FoundZone],
    shape: Shape,
    gaps: &[u32],
    late: impl Fn(u64) -> f64,
) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    let mut cylinder = 0_u32;
    for zone in found {
        let per_track = zone.sectors_per_track;
        for stretch in stretches(zone, shape.period) {
            // Tracks of the first cylinder or group that come before the stretch.
            let missing =
                (shape.period - (stretch.turned - stretch.from) % shape.period) % shape.period;
            let slot = if stretch.from == 0 {
                zone.first_slot
            } else {
                0
            };
            let reserved = missing * per_track + slot;
            let base = stretch.from * per_track;
            let last_place = zone.place(zone.end - 1).0 + 1;
            let places = (stretch.to * per_track).min(last_place) - base;
            let tracks = missing + places.div_ceil(per_track);
            let cylinders = tracks.div_ceil(shape.heads) as u32;
            let room = u64::from(cylinders) * shape.heads * per_track;
            let first_place = base + slot;
            let slips: Vec<u64> = zone
                .slips
                .iter()
                .flat_map(|&(first, count)| first..first + count)
                .map(|place| place + zone.first_slot)
                .filter(|place| (first_place..base + places).contains(place))
                .map(|place| place - base + missing * per_track)
                .collect();
            let addresses = places - slot - slips.len() as u64;
            let turns = |angle: f64| Skew::Turns(part(angle));
            // The tracks that are missing are turned like the others.
            let offset =
                zone.track_angle(stretch.from) - zone.skew * missing as f64 - late(per_track);
            let long = zone.skew + stretch.more;
            let by_cylinder = shape.group == 1;
            cylinder += gaps.get(zones.len()).copied().unwrap_or(0);
            zones.push(Zone {
                first_cylinder: cylinder,
                last_cylinder: cylinder + cylinders - 1,
                sectors_per_track: per_track as u32,
                by_head: Vec::new(),
                tracks_per_surface: None,
                offset: turns(offset),
                track_skew: turns(zone.skew),
                cylinder_skew: turns(if by_cylinder { long } else { zone.skew }),
                group_skew: (!by_cylinder).then(|| turns(long)),
                reserved,
                spares: room - reserved - addresses,
                slips,
                remaps: Vec::new(),
            });
            cylinder += cylinders;
        }
    }
    zones
}
