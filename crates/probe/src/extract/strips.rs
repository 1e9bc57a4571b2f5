//! The rows of all found zones as one sequence, from which tracks are taken.

use super::turns::{near, part};
use super::zone::{FoundZone, Row};

/// Places that are slipped in the middle of a track, at most.
const MOST_SLIPPED: u64 = 24;

/// Tracks in the order of addresses, each turned against the one before by the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strip {
    pub row: Row,
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// The angle of the first place.
    pub angle: f64,
    /// Slipped places, counted from the first.
    pub slips: Vec<u64>,
}

/// All strips of a drive; those that go on as the one before did are one with it.
pub(super) fn strips(found: &[FoundZone], tolerance: f64) -> Vec<Strip> {
    let mut strips: Vec<Strip> = Vec::new();
    for zone in found {
        let flat = zone.flat();
        let mut faults = zone.faults.iter().peekable();
        let mut later = 0;
        let mut turned = 0.0;
        let mut begin = zone.start;
        for (index, &(row, place, angle)) in flat.iter().enumerate() {
            let behind = place + row.tracks * row.data;
            let mut slips = Vec::new();
            let mut turn = turned;
            while let Some(fault) = faults.peek() {
                let first = fault.at - zone.start + later.min(fault.places);
                if first >= behind {
                    break;
                }
                let passed = first + fault.places.saturating_sub(later);
                slips.extend((first..passed).map(|slip| slip - place));
                later = fault.places;
                turned = fault.turned;
                if first <= place {
                    turn = turned;
                }
                faults.next();
            }
            let end = match index + 1 == flat.len() {
                true => zone.end,
                false => (zone.start + behind).saturating_sub(later).min(zone.end),
            };
            let strip = Strip {
                row,
                start: begin,
                end,
                angle: part(angle + turn),
                slips,
            };
            begin = end;
            match strips.last_mut() {
                Some(last) if last.goes_on(&strip, tolerance) => last.join(&strip),
                // Two parts of a track, which something cut that was none of the drive's.
                // Two parts of a track, which something cut that was none of the drive's, or a slip.
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

impl Strip {
    /// Where its last track begins.
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

    /// If this is the front and `next` the rest of one track: how many places are slipped between them.
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

    /// The front part of so many tracks, and the rest.
    pub fn split(&self, tracks: u64) -> (Strip, Option<Strip>) {
        if tracks >= self.row.tracks {
            return (self.clone(), None);
        }
        let places = tracks * self.row.data;
        let in_front = self.slips.partition_point(|slip| *slip < places);
        let middle = self.start + places - in_front as u64;
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
