//! Tracks by place: the pieces of a profile, and the zones that the pieces form.
//!
//! The profile keeps measured borders to the sector. A scratch or a border can therefore split one zone into several pieces. A piece is
//! part of a group of tracks, or the rest counted from another head. This module joins the pieces into zones for readers.

use headtime_disk::profile::Order;
use headtime_disk::{Layout, Profile};
use headtime_probe::extract::{Extraction, Stage, skews};
use std::ops::Range;

/// Smallest difference of skews, in turns, that counts.
const SKEW_DIFFERENCE_MIN: f64 = 1e-5;

/// Consecutive tracks that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tracks {
    /// Distance from the beginning of the disk, in sectors.
    pub from: u64,
    pub to: u64,
    /// Sectors of a track for each head, in no order. A single value if all heads are equal.
    pub lengths: Vec<u64>,
    /// Skews as parts of a turn: from track to track, cylinder to cylinder, and group to group.
    pub skews: Option<[f64; 3]>,
    pub slips: u64,
    /// Largest size in sectors of a piece that is no zone: a track, or a group of tracks over all heads.
    pub least: u64,
}

impl Tracks {
    /// Sectors of the longest track.
    pub fn longest(&self) -> u64 {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Sectors of the shortest track.
    pub fn shortest(&self) -> u64 {
        self.lengths.iter().copied().min().unwrap_or(0)
    }

    /// Mean number of sectors of a track, over the heads.
    pub fn mean(&self) -> f64 {
        self.lengths.iter().sum::<u64>() as f64 / self.lengths.len().max(1) as f64
    }

    /// Describes the number of sectors per track.
    pub fn sectors(&self) -> String {
        match (self.shortest(), self.longest()) {
            (shortest, longest) if shortest == longest => longest.to_string(),
            (shortest, longest) => format!("{shortest}-{longest}"),
        }
    }

    fn is_fragment(&self) -> bool {
        self.to - self.from <= self.least
    }

    /// True if the next piece continues the same zone: its heads are equal, but counted from another head.
    fn goes_on_as(&self, next: &Tracks) -> bool {
        let sorted = |tracks: &Tracks| {
            let mut lengths = tracks.lengths.clone();
            lengths.sort_unstable();
            lengths
        };
        let near = |one: f64, other: f64| {
            let off = one - other;
            (off - off.round()).abs() < SKEW_DIFFERENCE_MIN
        };
        let turned = match (self.skews, next.skews) {
            (Some(one), Some(other)) => (one.into_iter().zip(other)).all(|(a, b)| near(a, b)),
            (None, None) => true,
            _ => false,
        };
        turned && sorted(self) == sorted(next)
    }

    fn join(&mut self, next: &Tracks) {
        self.to = next.to;
        self.slips += next.slips;
    }
}

/// Cylinders of a group, in the zones with the smallest and the largest groups. `None` unless the layout goes along one surface of a
/// group and back on the next surface. Zones that are shorter than the largest group count as pieces, and are left out.
pub(super) fn group_cylinders(profile: &Profile) -> Option<[u32; 2]> {
    let Order::SurfaceSerpentine { tracks } = profile.layout.order else {
        return None;
    };
    let zones = profile.layout.zones.iter();
    let groups = zones.map(|zone| {
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        (zone.tracks_per_surface.unwrap_or(tracks), cylinders)
    });
    let most = groups.clone().map(|(group, _)| group).max()?;
    let whole = groups.filter(|(_, cylinders)| *cylinders >= most);
    let least = whole.map(|(group, _)| group).min().unwrap_or(most);
    Some([least, most])
}

/// Returns the pieces of a profile.
pub(super) fn of_profile(profile: &Profile) -> Vec<Tracks> {
    let layout = Layout::new(profile);
    let zones = &profile.layout.zones;
    // If the layout has other zones than the profile, details of the profile's zones do not apply.
    let same = layout.zones().len() == zones.len();
    // Cylinders on each surface before the layout goes on to the next surface.
    let group = group_cylinders(profile).map_or(0, |[_, most]| most);
    let each = layout.zones().enumerate();
    each.map(|(number, zone)| {
        let told = zones.get(number).filter(|_| same);
        let by_head = told.map_or(&[][..], |zone| &zone.by_head);
        let longest = u64::from(zone.sectors_per_track);
        let lengths: Vec<u64> = match by_head {
            [] => vec![longest],
            lengths => lengths.iter().map(|length| u64::from(*length)).collect(),
        };
        let all = u64::from(group) * u64::from(profile.geometry.heads) * longest;
        Tracks {
            from: zone.extent.start.get(),
            to: zone.extent.end().get(),
            lengths,
            skews: told.map(skews),
            slips: told.map_or(0, |zone| zone.slips.len() as u64),
            least: all.max(longest),
        }
    })
    .collect()
}

/// Returns the zones known so far while there is no profile.
pub(super) fn of_walk(extraction: &Extraction) -> Vec<Tracks> {
    let walked = &extraction.walked;
    let zones = walked.zones.iter().map(|zone| Tracks {
        from: zone.start,
        to: zone.end.min(walked.upto.max(zone.start + 1)),
        lengths: vec![zone.sectors_per_track()],
        skews: None,
        slips: zone.slipped(),
        least: zone.sectors_per_track(),
    });
    match extraction.stage() > Stage::Rotation {
        true => zones.collect(),
        false => Vec::new(),
    }
}

/// Joins pieces into zones.
///
/// A piece that is no zone joins the neighbouring zone with the more similar tracks. If several such pieces lie between two zones, the
/// leading pieces join the zone ahead as long as they are more similar to that zone. If no piece is a zone, all pieces remain as they
/// are.
pub(super) fn zones(pieces: &[Tracks]) -> Vec<Tracks> {
    let whole: Vec<usize> = (0..pieces.len())
        .filter(|at| !pieces[*at].is_fragment())
        .collect();
    let Some(&last) = whole.last() else {
        return pieces.to_vec();
    };
    let mut zones: Vec<Tracks> = Vec::new();
    let mut begin = 0;
    for (number, &at) in whole.iter().enumerate() {
        let end = match whole.get(number + 1) {
            Some(&next) => ends(pieces, at, next),
            None if at == last => pieces.len(),
            None => at + 1,
        };
        let zone = joined(pieces, at, begin..end);
        begin = end;
        match zones.last_mut() {
            Some(before) if before.goes_on_as(&zone) => before.join(&zone),
            _ => zones.push(zone),
        }
    }
    zones
}

/// Index behind the last piece that joins `zone`. The next zone is `next`.
fn ends(pieces: &[Tracks], zone: usize, next: usize) -> usize {
    let off = |at: usize, of: usize| (pieces[at].mean() - pieces[of].mean()).abs();
    (zone + 1..next)
        .find(|at| off(*at, next) < off(*at, zone))
        .unwrap_or(next)
}

/// Joins a zone with the pieces around it.
fn joined(pieces: &[Tracks], zone: usize, all: Range<usize>) -> Tracks {
    let around = &pieces[all];
    Tracks {
        from: around.first().map_or(0, |piece| piece.from),
        to: around.last().map_or(0, |piece| piece.to),
        slips: around.iter().map(|piece| piece.slips).sum(),
        ..pieces[zone].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    /// Makes a piece of `sectors` sectors. A group has a thousand sectors.
    fn piece(sectors: u64, lengths: &[u64]) -> Tracks {
        Tracks {
            from: 0,
            to: sectors,
            lengths: lengths.to_vec(),
            skews: Some([0.11, 0.11, 0.25]),
            slips: 1,
            least: 1_000,
        }
    }

    fn zones_of(pieces: &[Tracks]) -> Vec<(u64, u64, String, u64)> {
        let mut at = 0;
        let mut pieces = pieces.to_vec();
        for piece in &mut pieces {
            (piece.from, piece.to) = (at, at + piece.to);
            at = piece.to;
        }
        let zones = zones(&pieces);
        let tell = |zone: &Tracks| (zone.from, zone.to, zone.sectors(), zone.slips);
        zones.iter().map(tell).collect()
    }

    #[test]
    fn groups_are_told_from_the_zone_with_the_shortest_to_that_with_the_longest() {
        let of = |name| group_cylinders(&by_name(name).unwrap());
        assert_eq!(of("atlas10k"), None);
        assert_eq!(of("exos-x18"), Some([128, 128]));
        let truth = by_name("nearline-20tb").unwrap();
        let zones = truth.layout.zones.iter();
        let own: Vec<u32> = zones.filter_map(|zone| zone.tracks_per_surface).collect();
        let all = [own.iter().min(), own.iter().max()].map(|group| *group.unwrap());
        assert!(all[0] > 1 && all[0] < all[1], "{all:?}");
        assert_eq!(group_cylinders(&truth), Some(all));
    }

    #[test]
    fn a_zone_that_came_apart_behind_its_border_is_one_zone() {
        let pieces = [
            piece(90_000, &[100, 96]),
            piece(300, &[92, 91]),
            piece(700, &[92, 88]),
            piece(50_000, &[92, 88]),
            piece(40_000, &[88, 92]),
            piece(999, &[90, 90]),
        ];
        assert_eq!(
            zones_of(&pieces),
            [
                (0, 90_000, "96-100".to_owned(), 1),
                (90_000, 181_999, "88-92".to_owned(), 5),
            ]
        );
    }

    #[test]
    fn zones_that_differ_in_length_or_turn_stay_apart() {
        let mut turned = piece(5_000, &[80]);
        turned.skews = Some([0.12, 0.11, 0.25]);
        let pieces = [piece(5_000, &[90]), piece(5_000, &[80]), turned];
        let all: Vec<String> = zones_of(&pieces).into_iter().map(|zone| zone.2).collect();
        assert_eq!(all, ["90", "80", "80"]);
    }

    #[test]
    fn a_fragment_goes_to_the_neighbour_that_it_is_like() {
        let pieces = [
            piece(10, &[100]),
            piece(5_000, &[100]),
            piece(20, &[99]),
            piece(30, &[81]),
            piece(5_000, &[80]),
        ];
        let ends: Vec<u64> = zones_of(&pieces).into_iter().map(|zone| zone.1).collect();
        assert_eq!(ends, [5_030, 10_060]);
    }

    #[test]
    fn where_there_are_only_fragments_each_is_shown() {
        assert_eq!(zones_of(&[piece(10, &[100]), piece(20, &[90])]).len(), 2);
        assert_eq!(zones_of(&[]), []);
    }
}
