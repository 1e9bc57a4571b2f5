//! Zones as they were found: rows of tracks, which repeat, and where sectors are expected by them.

use super::turns::{near, part};
use serde::{Deserialize, Serialize};

/// Tracks of one length that follow each other in the order of addresses, each turned against the one
/// before it by the same: those of a cylinder, or those that the arm passes along a surface.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// How many; 0 as long as the row goes on.
    pub tracks: u64,
    /// Sectors that pass in a turn.
    pub slots: u64,
    /// Places on a track that have an address, or had one before they went bad.
    pub data: u64,
    /// By how much the first track is turned against the last one of the row before it.
    pub enter: f64,
    /// By how much each further track is turned against the one before it.
    pub skew: f64,
}

impl Row {
    /// Returns true if it is like another one, for turns that are known to a tolerance.
    pub fn is_like(&self, other: &Row, tolerance: f64) -> bool {
        let turned = |one: f64, other: f64| near(one - other).abs() < tolerance;
        self.tracks == other.tracks
            && self.begins_like(other, tolerance)
            && (self.tracks == 1 || turned(self.skew, other.skew))
    }

    /// Returns true if its first track is like that of another one.
    pub fn begins_like(&self, other: &Row, tolerance: f64) -> bool {
        let same = (self.slots, self.data) == (other.slots, other.data);
        same && near(self.enter - other.enter).abs() < tolerance
    }

    /// By how much its last track is turned against the last one of the row before it.
    fn turned(&self) -> f64 {
        self.enter + self.skew * self.tracks.saturating_sub(1) as f64
    }
}

/// From an address on, places or angles are others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The first address behind it.
    pub at: u64,
    /// Places that addresses from there on are later, in all.
    pub places: u64,
    /// Turns that tracks from there on are turned by, in all.
    pub turned: f64,
}

/// Addresses on rows of tracks that repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundZone {
    /// The first address, which is place 0.
    pub start: u64,
    /// The address behind the last, once it is known.
    pub end: u64,
    /// The angle of place 0.
    pub angle: f64,
    pub rows: Vec<Row>,
    /// The last so many rows repeat from there on; with 0 the last row goes on.
    pub cycle: u64,
    pub faults: Vec<Fault>,
}

/// Addresses that share spare places behind the last of them, on the rows of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    /// The first address, and that of the next area.
    pub begin: u64,
    pub end: u64,
    /// What faults before it have come to.
    places: u64,
    turned: f64,
    /// Sectors that pass in a turn on its last track.
    slots: u64,
}

impl Area {
    /// Its addresses, at least one.
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.begin).max(1)
    }

    /// Whether its spares can take what is moved where places are so many later in all: not where they were taken back
    /// within it.
    pub fn has_room_for(&self, places: u64) -> bool {
        places >= self.places
    }
}

/// Where a place is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    /// The row, and how often the cycle has come before.
    pub row: usize,
    pub times: u64,
    /// The track in the row, and the place on it.
    pub track: u64,
    pub slot: u64,
    /// Where the track's first place is.
    pub zero: f64,
    /// Tracks since the cycle, or without one the last row, began.
    pub passed: u64,
}

impl FoundZone {
    /// The place of an address, and how much its track is turned by faults.
    pub fn place(&self, lba: u64) -> (u64, f64) {
        let (places, turned) = self.fault_of(lba);
        (lba - self.start + places, turned)
    }

    /// Sectors on its longest tracks; 0 before one was found.
    pub fn sectors_per_track(&self) -> u64 {
        self.rows.iter().map(|row| row.slots).max().unwrap_or(0)
    }

    /// Places that no address has, as far as addresses behind them are later for it.
    pub fn slipped(&self) -> u64 {
        let before = [0]
            .into_iter()
            .chain(self.faults.iter().map(|fault| fault.places));
        let steps = before.zip(&self.faults);
        steps
            .map(|(before, fault)| fault.places.saturating_sub(before))
            .sum()
    }

    /// Rows before the cycle.
    pub(super) fn once(&self) -> usize {
        self.rows.len() - self.cycle as usize
    }

    pub(super) fn spot(&self, place: u64) -> Spot {
        let once = self.once();
        let (mut left, mut zero, mut passed, mut times) = (place, self.angle, 0, 0);
        for (index, row) in self.rows.iter().enumerate() {
            if index == once {
                let cycle = &self.rows[once..];
                let places: u64 = cycle.iter().map(|row| row.tracks * row.data).sum();
                let tracks: u64 = cycle.iter().map(|row| row.tracks).sum();
                let turned: f64 = cycle.iter().map(Row::turned).sum();
                times = left / places;
                left -= times * places;
                zero += times as f64 * turned;
                passed = times * tracks;
            }
            if index > 0 {
                zero += row.enter;
            }
            let last = index + 1 == self.rows.len();
            if left < row.tracks * row.data || last {
                let track = left / row.data;
                return Spot {
                    row: index,
                    times,
                    track,
                    slot: left % row.data,
                    zero: part(zero + row.skew * track as f64),
                    passed: match self.cycle {
                        0 => track,
                        _ if index < once => 0,
                        _ => passed + track,
                    },
                };
            }
            left -= row.tracks * row.data;
            passed += row.tracks;
            zero += row.skew * row.tracks.saturating_sub(1) as f64;
            if index < once {
                passed = 0;
            }
        }
        unreachable!("a zone has rows")
    }

    /// The spot of an address, turned by faults.
    pub(super) fn spot_of(&self, lba: u64) -> Spot {
        let (place, turned) = self.place(lba);
        let spot = self.spot(place);
        Spot {
            zero: part(spot.zero + turned),
            ..spot
        }
    }

    /// The row of an address.
    pub(super) fn row_of(&self, lba: u64) -> &Row {
        &self.rows[self.spot(self.place(lba).0).row]
    }

    /// The angle of an address.
    pub fn angle_of(&self, lba: u64) -> f64 {
        let spot = self.spot_of(lba);
        part(spot.zero + spot.slot as f64 / self.rows[spot.row].slots as f64)
    }

    /// The address of a place; `None` of a slipped one, and one outside the zone.
    pub(super) fn address(&self, place: u64) -> Option<u64> {
        let mut later = 0;
        for fault in &self.faults {
            let first = fault.at - self.start + fault.places;
            if place >= first {
                later = fault.places;
            } else if place >= fault.at - self.start + later {
                // Between what the address before the fault has and what that behind it has.
                return None;
            } else {
                break;
            }
        }
        let lba = (self.start + place).checked_sub(later)?;
        (lba < self.end).then_some(lba)
    }

    /// From an address on, places are so many later in all, and tracks turned by so much more.
    pub(super) fn fault(&mut self, at: u64, places: u64, turn: f64) {
        self.faults.retain(|fault| fault.at <= at);
        let turned = self.faults.last().map_or(0.0, |fault| fault.turned) + turn;
        match self.faults.last_mut() {
            Some(last) if last.at == at => (last.places, last.turned) = (places, turned),
            _ => self.faults.push(Fault { at, places, turned }),
        }
    }

    /// By how many places faults have made an address later.
    pub(super) fn later(&self, lba: u64) -> u64 {
        self.fault_of(lba).0
    }

    /// Places and turns of the last fault up to an address.
    fn fault_of(&self, lba: u64) -> (u64, f64) {
        let next = self.faults.partition_point(|fault| fault.at <= lba);
        let last = next.checked_sub(1).map(|last| self.faults[last]);
        last.map_or((0, 0.0), |fault| (fault.places, fault.turned))
    }

    /// The area with spares of its own in which an address is, if the rule has such: each ends with a track that is
    /// cut.
    pub(super) fn area(&self, lba: u64) -> Option<Area> {
        let (before, cycle) = self.rows.split_at(self.once());
        let whole = cycle.iter().map(|row| row.data).max()?;
        let is_cut = |row: &Row| row.data < whole;
        // A track that is cut in front is turned by what it lacks.
        let ends = |at: usize| {
            let last = &cycle[(at + cycle.len() - 1) % cycle.len()];
            let same = near(cycle[at].enter - last.skew).abs() < 0.35 / last.slots as f64;
            cycle[at].tracks == 1 && last.tracks > 1 && !is_cut(last) && same
        };
        let cut = |at: &usize| is_cut(&cycle[*at]);
        if !(0..cycle.len()).any(|at| cut(&at)) || !(0..cycle.len()).filter(cut).all(ends) {
            return None;
        }
        let count = |rows: &[Row]| rows.iter().map(|row| row.tracks * row.data).sum::<u64>();
        let (once, each) = (count(before), count(cycle));
        let mut index = self.faults.partition_point(|fault| fault.at <= lba);
        loop {
            let fault = index.checked_sub(1).map(|index| self.faults[index]);
            let (places, turned) = fault.map_or((0, 0.0), |fault| (fault.places, fault.turned));
            let place = lba - self.start + places;
            let passed = place.checked_sub(once)?;
            // Ends of areas around the place, counted from where the rule begins.
            let rule = passed / each * each;
            let mut at = rule;
            let (mut begin, mut end, mut slots) = (None, None, 0);
            for row in cycle.iter().chain(cycle) {
                at += row.tracks * row.data;
                if is_cut(row) && at <= passed {
                    begin = Some(at);
                } else if is_cut(row) {
                    (end, slots) = (Some(at), row.slots);
                    break;
                }
            }
            let last = cycle.iter().rposition(is_cut)?;
            let behind = count(&cycle[last + 1..]);
            let begin = begin.unwrap_or(rule.saturating_sub(behind));
            let address = |at: u64| (self.start + once + at).saturating_sub(places);
            let area = Area {
                begin: address(begin),
                end: address(end?),
                places,
                turned,
                slots,
            };
            match fault {
                // It is one of the area's own.
                Some(fault) if fault.at > area.begin => index -= 1,
                _ => return Some(area),
            }
        }
    }

    /// From an address on, places are so many later in all, up to the end of its area, whose spares take what is
    /// moved there: the next one begins where it would have.
    pub(super) fn slip_in(&mut self, area: Area, at: u64, places: u64) {
        self.faults.retain(|fault| fault.at < at);
        let (before, turned) = (area.places, area.turned);
        self.faults.push(Fault { at, places, turned });
        let moved = places.saturating_sub(before);
        // The last ones have the spares behind the track that is cut.
        let spare = Fault {
            at: area.end.saturating_sub(moved).max(at),
            places: before,
            turned: turned + moved as f64 / area.slots as f64,
        };
        let next = Fault {
            at: area.end,
            turned,
            ..spare
        };
        self.faults.extend([spare, next]);
    }

    /// The tracks turn by `off` too little over those that passed since the cycle, or the row, began.
    pub(super) fn refine(&mut self, passed: u64, off: f64) {
        let each = off / passed as f64;
        let once = self.once();
        let (from, cycle) = match self.cycle {
            0 => (self.rows.len() - 1, false),
            _ => (once, true),
        };
        for row in &mut self.rows[from..] {
            row.skew += each;
            if cycle {
                row.enter += each;
            }
        }
    }

    /// Ends it before an address, on which no rule holds any more: what repeated stands row by row, and the
    /// last row ends. Returns false, having done nothing but to set the end, if that would be more than so
    /// many rows.
    pub(super) fn break_at(&mut self, lba: u64, most: u64) -> bool {
        self.faults.retain(|fault| fault.at <= lba);
        let (place, _) = self.place(lba - 1);
        let spot = self.spot(place);
        let once = self.once();
        if self.cycle > 0 && spot.row >= once {
            let rows = once as u64 + spot.times * self.cycle;
            if rows > most {
                self.end = lba;
                return false;
            }
            let cycle = self.rows[once..].to_vec();
            for _ in 0..spot.times {
                self.rows.extend_from_slice(&cycle);
            }
            self.rows
                .truncate(once + (spot.times * self.cycle) as usize + (spot.row - once) + 1);
        } else {
            self.rows.truncate(spot.row + 1);
        }
        self.cycle = 0;
        let last = self.rows.last_mut().expect("a zone has rows");
        let cut = spot.slot + 1;
        if cut == last.data {
            last.tracks = spot.track + 1;
        } else if spot.track == 0 {
            last.tracks = 1;
            last.data = cut;
        } else {
            last.tracks = spot.track;
            let tail = Row {
                tracks: 1,
                data: cut,
                enter: last.skew,
                ..*last
            };
            self.rows.push(tail);
        }
        true
    }

    /// All rows, what repeats written out, up to its end: each with its first place and the angle of that. With `cuts`, the track on which
    /// the zone ends is a row of its own.
    pub(super) fn flat(&self, cuts: bool) -> Vec<(Row, u64, f64)> {
        let mut flat = Vec::new();
        let last = self.place(self.end - 1).0 + 1;
        let (mut place, mut angle) = (0, self.angle);
        let once = self.once();
        let mut index = 0;
        while place < last {
            let row = self.rows[index];
            if !flat.is_empty() {
                angle += row.enter;
            }
            let room = (last - place).div_ceil(row.data);
            let tracks = match row.tracks {
                0 => room,
                tracks => tracks.min(room),
            };
            let cut = match cuts {
                true => (place + tracks * row.data).saturating_sub(last),
                false => 0,
            };
            let whole = tracks - u64::from(cut > 0);
            if whole > 0 {
                let row = Row {
                    tracks: whole,
                    ..row
                };
                flat.push((row, place, part(angle)));
            }
            if cut > 0 {
                let (place, angle) = (place + whole * row.data, angle + row.skew * whole as f64);
                let tail = Row {
                    tracks: 1,
                    data: row.data - cut,
                    enter: if whole > 0 { row.skew } else { row.enter },
                    ..row
                };
                flat.push((tail, place, part(angle)));
            }
            place += tracks * row.data;
            angle += row.skew * (tracks - 1) as f64;
            index += 1;
            if index == self.rows.len() {
                index = once.min(self.rows.len() - 1);
            }
        }
        flat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Areas of 27 addresses: two tracks of ten, and one of ten that has seven and three spares.
    fn with_areas() -> FoundZone {
        let row = |tracks, data, enter| Row {
            tracks,
            slots: 10,
            data,
            enter,
            skew: 0.2,
        };
        FoundZone {
            start: 1_000,
            end: 2_000,
            angle: 0.0,
            rows: vec![row(2, 10, 0.3), row(1, 7, 0.2)],
            cycle: 2,
            faults: Vec::new(),
        }
    }

    fn bounds(zone: &FoundZone, lba: u64) -> (u64, u64) {
        let area = zone.area(lba).expect("the rule has areas");
        (area.begin, area.end)
    }

    #[test]
    fn areas_end_where_tracks_are_cut_amid_a_rule() {
        let mut zone = with_areas();
        assert_eq!(bounds(&zone, 1_000), (1_000, 1_027));
        assert_eq!(bounds(&zone, 1_026), (1_000, 1_027));
        assert_eq!(bounds(&zone, 1_027), (1_027, 1_054));
        // Wherever the rule begins in itself.
        zone.rows.rotate_left(1);
        zone.rows.insert(0, zone.rows[1]);
        assert_eq!(bounds(&zone, 1_020), (1_020, 1_027));
        assert_eq!(bounds(&zone, 1_027), (1_027, 1_054));
        // A track that is cut in front, and a row that is whole, have none behind them.
        zone.rows = vec![
            zone.rows[0],
            Row {
                enter: 0.5,
                ..zone.rows[1]
            },
        ];
        assert_eq!(zone.area(1_000), None);
        zone.cycle = 1;
        assert_eq!(zone.area(1_000), None);
    }

    #[test]
    fn spares_of_an_area_end_its_slips_and_hold_what_is_moved_to_its_end() {
        let plain = with_areas();
        let mut zone = plain.clone();
        for (at, places, moved) in [(1_031, 1, 1), (1_040, 3, 3)] {
            zone.slip_in(zone.area(at).unwrap(), at, places);
            for lba in 1_000..1_200 {
                let is_moved = (1_031..1_054).contains(&lba);
                let later = match is_moved {
                    true if lba >= 1_040 => moved,
                    true => 1,
                    false => 0,
                };
                let cut = 1_054 - 7;
                // On the track that is cut places go on to its spares.
                let expected = match lba + later {
                    place if is_moved && place >= cut => {
                        part(plain.angle_of(cut) + (place - cut) as f64 / 10.0)
                    }
                    place => plain.angle_of(place),
                };
                let off = near(zone.angle_of(lba) - expected);
                assert!(off.abs() < 1e-9, "{lba}: {off} with {places} places");
            }
        }
        assert_eq!(zone.slipped(), 3);
    }

    #[test]
    fn an_area_whose_places_were_taken_back_within_it_has_no_room_for_fewer_than_before_it() {
        let mut zone = with_areas();
        zone.fault(1_010, 5, 0.0);
        zone.fault(1_030, 2, 0.0);
        let area = zone.area(1_040).unwrap();
        assert!(area.begin < 1_030 && area.end > 1_040, "{area:?}");
        assert!(!area.has_room_for(zone.later(1_040) + 2));
        assert!(area.has_room_for(6));
    }
}
