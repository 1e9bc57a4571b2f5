//! The places of a zone as its remaps count them.

use super::ZoneMap;
use crate::layout::Place;
use headtime_units::{Cylinder, Head, Track};

impl ZoneMap {
    /// The place of an address without remaps. `None` if places are tracks.
    pub(in crate::layout) fn home(&self, address: u64) -> Option<u64> {
        let number = address - self.first + self.reserved;
        (!self.in_tracks).then(|| self.place_of_number(number).0)
    }

    /// Places in the zone.
    pub(in crate::layout) fn places(&self) -> u64 {
        let cylinders = u64::from(self.last_cylinder - self.first_cylinder) + 1;
        self.first_place(cylinders * u64::from(self.heads))
    }

    /// The position of a place.
    pub(in crate::layout) fn at(&self, place: u64) -> Option<Place> {
        if self.in_tracks || place >= self.places() {
            return None;
        }
        let (ordinal, slot) = self.track_at(place);
        let circle = self.circle(ordinal);
        let track = Track {
            cylinder: Cylinder(circle.cylinder),
            head: Head(circle.head as u16),
        };
        let slot = slot as u32;
        Some(Place {
            track,
            slot,
            angle: self.angle(track, slot),
        })
    }

    /// The cylinders that hold remapped places of other cylinders. A cylinder appears once for each
    /// such remap.
    pub(in crate::layout) fn strays(&self) -> impl Iterator<Item = u32> + '_ {
        let cylinder = |place: u64| {
            let ordinal = match self.in_tracks {
                true => place,
                false => self.track_at(place).0,
            };
            self.circle(ordinal).cylinder
        };
        let moves = self.remaps.iter();
        let moves = moves.map(move |&(from, to)| (cylinder(from), cylinder(to)));
        moves.filter_map(|(from, to)| (from != to).then_some(to))
    }
}
