//! Zones as found by the walk: repeating rows of tracks, and the expected places of sectors.

use super::turns::{near, part};
use serde::{Deserialize, Serialize};

/// Consecutive tracks of the same length, each rotated against the previous track by the same skew. A row covers the tracks of a cylinder,
/// or the tracks that the arm passes along a surface.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number of tracks; 0 while the end of the row is unknown.
    pub tracks: u64,
    /// Sectors that pass in a turn.
    pub slots: u64,
    /// Places on a track that have an address, or had an address before they went bad.
    pub data: u64,
    /// Rotation of the first track against the last track of the previous row, in turns.
    pub enter: f64,
    /// Rotation of each further track against the previous track, in turns.
    pub skew: f64,
}

impl Row {
    /// Returns true if both rows are equal, with angles within a tolerance.
    pub fn is_like(&self, other: &Row, tolerance: f64) -> bool {
        let turned = |one: f64, other: f64| near(one - other).abs() < tolerance;
        self.tracks == other.tracks
            && self.begins_like(other, tolerance)
            && (self.tracks == 1 || turned(self.skew, other.skew))
    }

    /// Returns true if both rows start with equal tracks.
    pub fn begins_like(&self, other: &Row, tolerance: f64) -> bool {
        let same = (self.slots, self.data) == (other.slots, other.data);
        same && near(self.enter - other.enter).abs() < tolerance
    }

    /// Rotation of the last track against the last track of the previous row.
    fn turned(&self) -> f64 {
        self.enter + self.skew * self.tracks.saturating_sub(1) as f64
    }
}

/// Change of places or angles from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// First address behind the change.
    pub at: u64,
    /// Total shift of the addresses from there on, in places.
    pub places: u64,
    /// Extra rotation of the tracks from there on, in turns, in total.
    pub turned: f64,
}

/// Addresses on rows of tracks that repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundZone {
    /// First address, which is place 0.
    pub start: u64,
    /// Address behind the last, once known.
    pub end: u64,
    /// Angle of place 0.
    pub angle: f64,
    pub rows: Vec<Row>,
    /// Number of last rows that repeat from there on. With 0 the last row continues.
    pub cycle: u64,
    pub faults: Vec<Fault>,
}

/// Addresses that share the spare places behind them, in rows of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    /// First address of this area, and first address of the next area.
    pub begin: u64,
    pub end: u64,
    /// Totals of the faults before the area.
    places: u64,
    turned: f64,
    /// Sectors that pass in a turn on the area's last track.
    slots: u64,
}

impl Area {
    /// Number of addresses, at least one.
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.begin).max(1)
    }

    /// Returns true if the spares can take addresses that are later by `places` in total. False if fewer than before the area: then the
    /// shift was taken back within the area.
    pub fn has_room_for(&self, places: u64) -> bool {
        places >= self.places
    }
}

/// Position of a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    /// Row, and number of complete cycles before this row.
    pub row: usize,
    pub times: u64,
    /// Track within the row, and place on the track.
    pub track: u64,
    pub slot: u64,
    /// Angle of the track's first place.
    pub zero: f64,
    /// Tracks since the start of the cycle, or, without a cycle, of the last row.
    pub passed: u64,
}

impl FoundZone {
    /// Place of an address, and extra rotation of its track by faults.
    pub fn place(&self, lba: u64) -> (u64, f64) {
        let (places, turned) = self.fault_of(lba);
        (lba - self.start + places, turned)
    }

    /// Sectors on the longest tracks; 0 before a row is found.
    pub fn sectors_per_track(&self) -> u64 {
        self.rows.iter().map(|row| row.slots).max().unwrap_or(0)
    }

    /// Number of places without an address, counted by the shifts that they caused.
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

    /// Position of an address, including rotation by faults.
    pub(super) fn spot_of(&self, lba: u64) -> Spot {
        let (place, turned) = self.place(lba);
        let spot = self.spot(place);
        Spot {
            zero: part(spot.zero + turned),
            ..spot
        }
    }

    /// Row of an address.
    pub(super) fn row_of(&self, lba: u64) -> &Row {
        &self.rows[self.spot(self.place(lba).0).row]
    }

    /// Angle of an address.
    pub fn angle_of(&self, lba: u64) -> f64 {
        let spot = self.spot_of(lba);
        part(spot.zero + spot.slot as f64 / self.rows[spot.row].slots as f64)
    }

    /// Address of a place; `None` for a slipped place or a place outside the zone.
    pub(super) fn address(&self, place: u64) -> Option<u64> {
        let mut later = 0;
        for fault in &self.faults {
            let first = fault.at - self.start + fault.places;
            if place >= first {
                later = fault.places;
            } else if place >= fault.at - self.start + later {
                // The place lies between the places of the two addresses around a fault.
                return None;
            } else {
                break;
            }
        }
        let lba = (self.start + place).checked_sub(later)?;
        (lba < self.end).then_some(lba)
    }

    /// Shifts all addresses from `at` on by `places` in total, and rotates their tracks further by `turn`.
    pub(super) fn fault(&mut self, at: u64, places: u64, turn: f64) {
        self.faults.retain(|fault| fault.at <= at);
        let turned = self.faults.last().map_or(0.0, |fault| fault.turned) + turn;
        match self.faults.last_mut() {
            Some(last) if last.at == at => (last.places, last.turned) = (places, turned),
            _ => self.faults.push(Fault { at, places, turned }),
        }
    }

    /// Shift of an address by faults, in places.
    pub(super) fn later(&self, lba: u64) -> u64 {
        self.fault_of(lba).0
    }

    /// Places and turns of the last fault up to an address.
    fn fault_of(&self, lba: u64) -> (u64, f64) {
        let next = self.faults.partition_point(|fault| fault.at <= lba);
        let last = next.checked_sub(1).map(|last| self.faults[last]);
        last.map_or((0, 0.0), |fault| (fault.places, fault.turned))
    }

    /// Spare area of an address; `None` if the rule has no such areas. Each area ends with a cut track.
    pub(super) fn area(&self, lba: u64) -> Option<Area> {
        let (before, cycle) = self.rows.split_at(self.once());
        let whole = cycle.iter().map(|row| row.data).max()?;
        let is_cut = |row: &Row| row.data < whole;
        // A track that is cut in front is rotated by the missing part.
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
            // Ends of the areas around the place, counted from the start of the rule.
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
                // The fault belongs to this area.
                Some(fault) if fault.at > area.begin => index -= 1,
                _ => return Some(area),
            }
        }
    }

    /// Shifts the addresses from `at` on to a total of `places`, up to the end of their area. The spares of the area take the last
    /// addresses, and the next area starts in its old place.
    pub(super) fn slip_in(&mut self, area: Area, at: u64, places: u64) {
        self.faults.retain(|fault| fault.at < at);
        let (before, turned) = (area.places, area.turned);
        self.faults.push(Fault { at, places, turned });
        let moved = places.saturating_sub(before);
        // The last addresses use the spares behind the cut track.
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

    /// Spreads a deviation `off` evenly over the skews of the `passed` tracks since the start of the cycle or the row.
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

    /// Ends the zone's rule before an address: cycles are written out as single rows, and the last row ends. Returns false if this makes
    /// more than `most` rows. Then only the zone's end is set.
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

    /// All rows up to the zone's end, with cycles written out. Each row comes with its first place and the angle of this place. With
    /// `cuts`, an incomplete last track is a row of its own.
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

    /// Areas of 27 addresses: two tracks of ten places, and a third track with seven addresses and three spares.
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
        // The start of the rule does not matter.
        zone.rows.rotate_left(1);
        zone.rows.insert(0, zone.rows[1]);
        assert_eq!(bounds(&zone, 1_020), (1_020, 1_027));
        assert_eq!(bounds(&zone, 1_027), (1_027, 1_054));
        // There are no spares behind a track that is cut in front, and none behind a whole row.
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
                // On the cut track, places continue into the spares.
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
