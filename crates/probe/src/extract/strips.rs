//! All rows of the found zones as a single sequence of strips.

use super::turns::{near, part};
use super::zone::{FoundZone, Row};
use std::ops::Range;

/// Most consecutive slipped places in the middle of a track.
const MOST_SLIPPED: u64 = 24;

/// Consecutive tracks in the order of addresses, each rotated against the previous track by the same skew.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strip {
    pub row: Row,
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Angle of the first place.
    pub angle: f64,
    /// Slipped places, counted from the first place.
    pub slips: Vec<u64>,
}

/// All strips of a drive. A strip that continues the previous strip is joined to it.
pub(super) fn strips(found: &[FoundZone], tolerance: f64, cuts: bool) -> Vec<Strip> {
    let mut strips: Vec<Strip> = Vec::new();
    for zone in found {
        let flat = zone.flat(cuts);
        let mut faults = zone.faults.iter().peekable();
        let mut later = 0;
        let mut turned = 0.0;
        let mut begin = zone.start;
        // Slipped places that are still ahead: the slips of a fault may continue beyond the end of a strip.
        let mut slipped = 0..0;
        for (index, &(row, place, angle)) in flat.iter().enumerate() {
            let behind = place + row.tracks * row.data;
            let mut slips = Vec::new();
            let mut turn = turned;
            take(&mut slipped, place..behind, &mut slips);
            // First address behind the last slip.
            let mut passed = begin;
            while let Some(fault) = faults.peek() {
                let first = fault.at.saturating_sub(zone.start) + later.min(fault.places);
                if first >= behind {
                    break;
                }
                if fault.places > later {
                    slipped = first..first + (fault.places - later);
                    take(&mut slipped, place..behind, &mut slips);
                    passed = fault.at;
                }
                later = fault.places;
                turned = fault.turned;
                if first <= place {
                    turn = turned;
                }
                faults.next();
            }
            let end = match index + 1 == flat.len() {
                true => zone.end,
                false => (zone.start + behind).saturating_sub(later).max(passed),
            };
            let end = end.clamp(begin, zone.end.max(begin));
            let mut strip = Strip {
                row,
                start: begin,
                end,
                angle: part(angle + turn),
                slips,
            };
            begin = end;
            if index == 0
                && strips
                    .last()
                    .is_some_and(|last| last.gives_back(&mut strip))
            {
                strips.pop();
            }
            match strips.last_mut() {
                Some(last) if last.goes_on(&strip, tolerance) => last.join(&strip),
                // Two parts of a track, separated by a slip or by a false border.
                Some(last) if last.slips_to(&strip, tolerance).is_some() => {
                    let between = last.slips_to(&strip, tolerance).unwrap_or(0);
                    last.end = strip.end;
                    let data = last.row.data;
                    last.slips.extend(data..data + between);
                    last.slips
                        .extend(strip.slips.iter().map(|slip| slip + data + between));
                    last.row.data = last.row.slots;
                    let whole = strips.pop().expect("it was there");
                    match strips.last_mut() {
                        Some(last) if last.goes_on(&whole, tolerance) => last.join(&whole),
                        _ => strips.push(whole),
                    }
                }
                _ => strips.push(strip),
            }
        }
    }
    strips
}

/// Moves the slipped places within a strip to the list of its slips, counted from its first place.
fn take(slipped: &mut Range<u64>, places: Range<u64>, slips: &mut Vec<u64>) {
    let end = slipped.end.min(places.end);
    let first = slipped.start.max(places.start);
    // If a fault takes places back, these places were passed before.
    let next = slips.last().map_or(0, |last| last + 1);
    slips.extend(
        (first..end)
            .map(|slip| slip - places.start)
            .filter(|slip| *slip >= next),
    );
    slipped.start = slipped.start.max(end);
}

impl Strip {
    /// Angle of the last track's first place.
    pub fn last_angle(&self) -> f64 {
        self.angle + self.row.skew * (self.row.tracks - 1) as f64
    }

    fn goes_on(&self, next: &Strip, tolerance: f64) -> bool {
        let (one, other) = (&self.row, &next.row);
        let tolerance = tolerance / one.slots as f64;
        let whole = self.end - self.start + self.slips.len() as u64 == one.tracks * one.data;
        whole
            && (one.slots, one.data) == (other.slots, other.data)
            && (one.tracks > 1 || other.tracks > 1)
            && {
                let skew = if one.tracks > 1 { one.skew } else { other.skew };
                near(next.angle - self.last_angle() - skew).abs() < tolerance
                    && (other.tracks == 1 || near(other.skew - skew).abs() < tolerance)
            }
    }

    /// Number of slipped places between `self` and `next`, if these are the front and the rest of the same track.
    fn slips_to(&self, next: &Strip, tolerance: f64) -> Option<u64> {
        let (one, other) = (&self.row, &next.row);
        if (one.tracks, other.tracks, other.slots) != (1, 1, one.slots) {
            return None;
        }
        let between = one.slots.checked_sub(one.data + other.data)?;
        let slots = one.slots as f64;
        let behind = self.angle + (one.data + between) as f64 / slots;
        (between <= MOST_SLIPPED && near(next.angle - behind).abs() * slots < tolerance)
            .then_some(between)
    }

    /// Returns true, and moves the addresses of this cut track to `next`, if `next` starts with the rest of the same track. Two rules that
    /// start a track at the same angle hide the border. The walk then finds the border a few sectors late.
    fn gives_back(&self, next: &mut Strip) -> bool {
        let (one, other) = (self.row, next.row);
        let count = other.slots.saturating_sub(other.data);
        let slots = other.slots as f64;
        let begins = next.angle - count as f64 / slots;
        let is_front = (one.tracks, one.data, other.tracks) == (1, count, 1)
            && one.data < one.slots
            && self.slips.is_empty();
        if !is_front || near(self.angle - begins).abs() * slots >= 1.0 {
            return false;
        }
        next.row.data = other.slots;
        next.start = self.start;
        next.angle = part(begins);
        next.slips.iter_mut().for_each(|slip| *slip += count);
        true
    }

    fn join(&mut self, next: &Strip) {
        let places = self.row.tracks * self.row.data;
        if self.row.tracks == 1 {
            self.row.skew = next.row.skew;
        }
        self.row.tracks += next.row.tracks;
        self.end = next.end;
        self.slips
            .extend(next.slips.iter().map(|slip| slip + places));
    }

    /// Splits off the first `tracks` tracks. Returns them and the rest.
    pub fn split(&self, tracks: u64) -> (Strip, Option<Strip>) {
        if tracks >= self.row.tracks {
            return (self.clone(), None);
        }
        let places = tracks * self.row.data;
        let in_front = self.slips.partition_point(|slip| *slip < places);
        let middle = (self.start + places - in_front as u64).min(self.end);
        let part = |tracks: u64| Row { tracks, ..self.row };
        let front = Strip {
            row: part(tracks),
            end: middle,
            slips: self.slips[..in_front].to_vec(),
            ..*self
        };
        let behind = Strip {
            row: part(self.row.tracks - tracks),
            start: middle,
            angle: super::turns::part(self.angle + self.row.skew * tracks as f64),
            slips: self.slips[in_front..]
                .iter()
                .map(|slip| slip - places)
                .collect(),
            ..*self
        };
        (front, Some(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone::Fault;
    use super::*;

    /// Rows of tracks with ten places each, from address 1,000 on.
    fn zone(tracks: &[u64], faults: &[(u64, u64)]) -> FoundZone {
        let row = |tracks: &u64| Row {
            tracks: *tracks,
            slots: 10,
            data: 10,
            // The angles between rows differ, so no row continues another.
            enter: 0.1 * *tracks as f64,
            skew: 0.05,
        };
        let fault = |&(at, places): &(u64, u64)| Fault {
            at,
            places,
            turned: 0.0,
        };
        let rows: Vec<Row> = tracks.iter().map(row).collect();
        let slipped = faults.last().map_or(0, |(_, places)| *places);
        let places: u64 = tracks.iter().map(|tracks| tracks * 10).sum();
        FoundZone {
            start: 1_000,
            end: 1_000 + places - slipped,
            angle: 0.0,
            rows,
            cycle: 0,
            faults: faults.iter().map(fault).collect(),
        }
    }

    /// Addresses and slips of each strip.
    fn taken(zone: &FoundZone) -> Vec<(u64, u64, Vec<u64>)> {
        let strips = strips(std::slice::from_ref(zone), 0.3, false);
        let each = strips.into_iter();
        each.map(|strip| (strip.start, strip.end, strip.slips))
            .collect()
    }

    #[test]
    fn places_that_are_slipped_over_the_end_of_a_row_are_of_the_next_one_from_there_on() {
        // The last two places of the first row, all of the second row, and one of the third row.
        let zone = zone(&[2, 1, 3], &[(1_018, 13)]);
        let expected = [
            (1_000, 1_018, vec![18, 19]),
            (1_018, 1_018, (0..10).collect()),
            (1_018, 1_047, vec![0]),
        ];
        assert_eq!(taken(&zone), expected);
        for (place, address) in [(17, Some(1_017)), (20, None), (31, Some(1_018))] {
            assert_eq!(zone.address(place), address, "{place}");
        }
    }

    #[test]
    fn what_is_slipped_behind_an_address_that_was_taken_back_is_no_slip_of_a_row_passed_before() {
        // The second fault takes places back into the first row, and the third fault slips some of them.
        let zone = zone(
            &[2, 1, 3],
            &[(1_015, 8), (1_016, 0), (1_017, 6), (1_040, 6)],
        );
        let strips = taken(&zone);
        for (index, (start, end, slips)) in strips.iter().enumerate() {
            let next = strips.get(index + 1).map_or(zone.end, |next| next.0);
            assert!(start <= end && *end == next, "{strips:?}");
            assert!(slips.is_sorted_by(|one, next| one < next), "{strips:?}");
        }
        let most = [20, 10, 30];
        let within =
            |(strip, most): (&(u64, u64, Vec<u64>), u64)| strip.2.iter().all(|slip| *slip < most);
        assert!(strips.iter().zip(most).all(within), "{strips:?}");
    }
}
