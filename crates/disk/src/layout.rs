//! Maps addresses to positions on the disk.
//!
//! [`Layout`] maps a logical address to a cylinder, a head, a slot on the track and the angle at
//! which the slot begins, and back, in at most logarithmic time. The mapping goes
//!
//! ```text
//! address ── zone ──► number in the zone ── spares, slips, remaps ──► slot in the zone
//!                                     ── order of tracks ──► cylinder, head, slot on the track
//!                                     ── skews ──► angle
//! ```
//!
//! and follows the DiskSim 4.0 manual (`dm_layout_g1`) for everything that can be imported. Skews
//! add up from the first track of the zone, whose slot 0 begins at the zone's offset. They do not
//! carry over from one zone to the next. Angle zero is the index mark, the same for all surfaces.
//!
//! A drive whose layout is a map ([`crate::profile::MapSpec`]) has strips of tracks in place of
//! zones. For such a drive each zone in [`Layout::zones`] and in other answers is a strip.
//!
//! This module knows no time. An angle becomes a time in [`crate::mechanics`].

mod buckets;
mod by_head;
mod divider;
mod groups;
mod place;
#[cfg(test)]
mod tests;
mod tracks;
mod zone;
mod zones;

use crate::profile::{MapSpec, Profile, Spec, Zone};
use headtime_units::{Angle, Cylinder, Extent, Head, Lba, Sectors, Track};
pub use place::{Place, Run, Slot, ZoneInfo};
pub(crate) use tracks::Misfit;
use tracks::TrackMap;
pub use tracks::{Fitted, fitted};
use zone::ZoneMap;
use zones::Zones;

/// The position of each sector of a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    map: Map,
    capacity: u64,
    heads: u16,
    group_cylinders: u32,
    remapped: bool,
    strays: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Map {
    Zones(Zones),
    Tracks(Box<TrackMap>),
}

impl Layout {
    /// The layout of a drive.
    pub fn new(profile: &Profile) -> Layout {
        let spec: &Spec = profile;
        let capacity = spec.geometry.capacity.get();
        let (map, group_cylinders, remapped, mut strays) = match &spec.layout.map {
            Some(map) => {
                let tracks = Layout::tracks(spec, map, Some(capacity));
                let tracks = tracks.unwrap_or_else(|misfit| panic!("checked: {misfit:?}"));
                let (slack, remapped) = (tracks.group_cylinders(), tracks.has_remaps());
                let strays: Vec<u32> = tracks.strays().collect();
                (Map::Tracks(Box::new(tracks)), slack, remapped, strays)
            }
            None => {
                let zones = Zones::new(spec);
                let (slack, remapped) = (zones.group_cylinders(), zones.has_remaps());
                let strays = zones.strays().collect();
                (Map::Zones(zones), slack, remapped, strays)
            }
        };
        strays.sort_unstable();
        strays.dedup();
        Layout {
            strays,
            map,
            capacity,
            heads: spec.geometry.heads,
            group_cylinders,
            remapped,
        }
    }

    fn tracks(spec: &Spec, map: &MapSpec, capacity: Option<u64>) -> Result<TrackMap, Misfit> {
        TrackMap::new(map, spec.geometry.cylinders, spec.geometry.heads, capacity)
    }

    /// Number of addresses that a map has room for; the drive offers `capacity` addresses. Fails with the part of the
    /// map that does not fit.
    pub(crate) fn map_capacity(
        spec: &Spec,
        map: &MapSpec,
        capacity: Option<u64>,
    ) -> Result<u64, Misfit> {
        Layout::tracks(spec, map, capacity).map(|tracks| tracks.capacity())
    }

    /// Addresses that a zone of `spec` has room for.
    pub fn zone_capacity(spec: &Spec, zone: &Zone) -> u64 {
        zone::capacity(spec, zone)
    }

    /// Returns a function that returns true if a place of `zone`, counted as slips are, is a spare
    /// that no slip uses. Ignores remaps.
    pub fn zone_spares(spec: &Spec, zone: &Zone) -> impl Fn(u64) -> bool + use<> {
        let zone = ZoneMap::new(spec, zone, 0);
        move |place| zone.is_spare(place)
    }

    /// The index of an address's zone, and the place that the address would have in the zone without remaps, in the
    /// unit of remaps. `None` in a map, and where remaps count tracks.
    pub fn home_of(&self, lba: Lba) -> Option<(usize, u64)> {
        let address = self.address(lba);
        let Map::Zones(zones) = &self.map else {
            return None;
        };
        let index = zones.index_of(address);
        Some((index, zones.zone(index).home(address)?))
    }

    /// Position of a place of a zone, in the unit of remaps. `None` in a map, if remaps count tracks, and behind the
    /// end of the zone.
    pub fn place_in_zone(&self, zone: usize, place: u64) -> Option<Place> {
        match &self.map {
            Map::Zones(zones) if zone < zones.len() => zones.zone(zone).at(place),
            _ => None,
        }
    }

    /// Places of a zone; none in a map.
    pub fn places_in_zone(&self, zone: usize) -> u64 {
        match &self.map {
            Map::Zones(zones) if zone < zones.len() => zones.zone(zone).places(),
            _ => 0,
        }
    }

    /// The number of addresses of the drive.
    pub fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    /// Surfaces.
    pub fn heads(&self) -> u16 {
        self.heads
    }

    /// Cylinders in the largest group within which addresses need not follow the order of cylinders. 1 if addresses
    /// follow that order throughout.
    pub fn group_cylinders(&self) -> u32 {
        self.group_cylinders
    }

    /// Returns true if any address was moved out of order.
    pub fn has_remaps(&self) -> bool {
        self.remapped
    }

    /// The cylinders that hold remapped sectors of other cylinders, in ascending order. On all other cylinders
    /// addresses follow the order of cylinders, except within groups of [`Layout::group_cylinders`].
    pub fn strays(&self) -> &[u32] {
        &self.strays
    }

    /// The zones in the order of addresses.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = ZoneInfo> + '_ {
        let zones = match &self.map {
            Map::Zones(zones) => zones.len(),
            Map::Tracks(tracks) => tracks.strips(),
        };
        (0..zones).map(|index| match &self.map {
            Map::Zones(zones) => zones.zone(index).info(),
            Map::Tracks(tracks) => tracks.strip(index),
        })
    }

    /// The zone of an address.
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn zone_of(&self, lba: Lba) -> ZoneInfo {
        let address = self.address(lba);
        match &self.map {
            Map::Zones(zones) => zones.of(address).info(),
            Map::Tracks(tracks) => tracks.strip(tracks.strip_of(address)),
        }
    }

    fn address(&self, lba: Lba) -> u64 {
        assert!(
            lba.get() < self.capacity,
            "address {lba} past the end of the disk"
        );
        lba.get()
    }

    /// The position of an address.
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn locate(&self, lba: Lba) -> Place {
        let run = self.run(lba);
        Place {
            track: run.track,
            slot: run.slot,
            angle: run.angle(0),
        }
    }

    /// The run of addresses that begins at `lba`. It ends at the end of its track, a slip, a
    /// remapped sector or the end of the zone. Remapped sectors are a run of their own, on the
    /// track where their data is.
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn run(&self, lba: Lba) -> Run {
        let address = self.address(lba);
        match &self.map {
            Map::Zones(zones) => zones.of(address).run(address),
            Map::Tracks(tracks) => tracks.run(address),
        }
    }

    /// The run of all addresses of the track of `lba`, if every slot has one and nothing of the
    /// zone is slipped or moved. Faster than [`Layout::track_extent_of`]. `None` says nothing about
    /// the track.
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn whole_track(&self, lba: Lba) -> Option<Run> {
        let address = self.address(lba);
        match &self.map {
            Map::Zones(zones) => zones.of(address).whole_track(address),
            Map::Tracks(_) => None,
        }
    }

    /// The addresses that belong to the track of `lba` in the order of addresses. Remapped
    /// addresses are included although their data is elsewhere. This is the track in "reading ahead
    /// to the end of the track".
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn track_extent_of(&self, lba: Lba) -> Extent {
        let address = self.address(lba);
        match &self.map {
            Map::Zones(zones) => zones.of(address).track_extent_of(address),
            Map::Tracks(tracks) => tracks.track_extent_of(address),
        }
    }

    /// The addresses on a track in the sense of [`Layout::track_extent_of`]; empty for a track
    /// without any, `None` for one in no zone.
    pub fn track_extent(&self, track: Track) -> Option<Extent> {
        match &self.map {
            Map::Zones(zones) => {
                let zone = zones.of_track(track)?;
                Some(zone.track_extent(track))
            }
            Map::Tracks(tracks) => tracks.track_extent(track),
        }
    }

    /// The address behind the last one of `lba`'s cylinder in the order of addresses; for an order
    /// by surfaces, of its track.
    ///
    /// # Panics
    ///
    /// If the address lies past the end.
    pub fn cylinder_end(&self, lba: Lba) -> Lba {
        let address = self.address(lba);
        Lba::new(match &self.map {
            Map::Zones(zones) => zones.of(address).cylinder_end(address),
            Map::Tracks(tracks) => tracks.cylinder_end(address),
        })
    }

    /// The number of slots of a track; `None` for a track in no zone.
    pub fn sectors_per_track(&self, track: Track) -> Option<u32> {
        match &self.map {
            Map::Zones(zones) => {
                let zone = zones.of_track(track)?;
                Some(zone.sectors_per_track(track.head))
            }
            Map::Tracks(tracks) => tracks.sectors_per_track(track),
        }
    }

    /// The content of a slot; `None` if there is no such slot.
    pub fn slot(&self, track: Track, slot: u32) -> Option<Slot> {
        match &self.map {
            Map::Zones(zones) => {
                let zone = zones.of_track(track)?;
                (slot < zone.sectors_per_track(track.head)).then(|| zone.slot(track, slot))
            }
            Map::Tracks(tracks) => tracks.slot(track, slot),
        }
    }

    /// The angle at which a slot begins, for any content. `None` if there is no such slot.
    pub fn slot_angle(&self, track: Track, slot: u32) -> Option<Angle> {
        let exists = slot < self.sectors_per_track(track)?;
        exists.then(|| match &self.map {
            Map::Zones(zones) => {
                let zone = zones.of_track(track).expect("the track has slots");
                zone.angle(track, slot)
            }
            Map::Tracks(tracks) => tracks.slot_angle(track, slot),
        })
    }

    /// The track on which the arm rests before the first command: cylinder 0, head 0.
    pub fn home(&self) -> Track {
        Track {
            cylinder: Cylinder(0),
            head: Head(0),
        }
    }
}
