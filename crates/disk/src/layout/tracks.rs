//! The mapping by a table of tracks.
//!
//! A *place* counts along the strips of a [`MapSpec`] with its repetitions written out. A *number*
//! counts the places that are not slipped, and is an address. A search in a sorted list finds the
//! strip of a place or of a track.

mod flat;
#[cfg(test)]
mod tests;

use super::buckets::Buckets;
use super::place::{Run, Slot, ZoneInfo, fraction, slot_angle, step_of};
use crate::profile::{MapRemap, MapSpec, ProfileError, SpareTrack};
pub(crate) use flat::Misfit;
use flat::{Flat, flatten};
use headtime_config::Place;
use headtime_units::{Angle, Cylinder, Extent, Head, Lba, Track};
use std::collections::{BTreeMap, BTreeSet};

/// Consecutive bad places.
#[derive(Clone, Copy, Debug)]
struct Slipped {
    place: u64,
    count: u64,
    /// Number of the address that would be at the first bad place.
    number: u64,
}

/// The mapping of a drive whose layout is a map.
#[derive(Clone, Debug)]
pub(super) struct TrackMap {
    flats: Vec<Flat>,
    /// The strips of each head, by their cylinders.
    by_head: Vec<Vec<u32>>,
    slips: Vec<Slipped>,
    remaps: Vec<MapRemap>,
    /// The remaps in the order of the places of their data.
    moved: Vec<MapRemap>,
    spare_tracks: Vec<SpareTrack>,
    /// Index of the strips by their first places.
    buckets: Buckets,
    capacity: u64,
}

impl From<Misfit> for ProfileError {
    fn from(misfit: Misfit) -> ProfileError {
        ProfileError::new(Place::NoText, format!("layout.{}", misfit.key), misfit.why)
    }
}

/// Buckets of the table that finds the strip of a place, at most.
const BUCKETS: u64 = 1 << 16;

impl TrackMap {
    /// The mapping, or the part of the map that does not fit. `capacity` is the drive's number of addresses. If absent,
    /// the drive offers all addresses that the map has room for.
    pub(super) fn new(
        map: &MapSpec,
        cylinders: u32,
        heads: u16,
        capacity: Option<u64>,
    ) -> Result<TrackMap, Misfit> {
        let flats = flatten(map, cylinders, heads)?;
        let total = flats.last().map_or(0, Flat::end);
        let mut built = TrackMap {
            by_head: by_head(&flats, heads)?,
            slips: slips(map, total)?,
            remaps: Vec::new(),
            moved: Vec::new(),
            spare_tracks: Vec::new(),
            buckets: Buckets::new(&flats, |flat| flat.first, BUCKETS),
            capacity: 0,
            flats,
        };
        let room = total - built.slips.iter().map(|slip| slip.count).sum::<u64>();
        built.capacity = capacity.unwrap_or(room).min(room);
        built.add_spare_tracks(map, cylinders)?;
        built.add_remaps(map)?;
        Ok(built)
    }

    fn add_spare_tracks(&mut self, map: &MapSpec, cylinders: u32) -> Result<(), Misfit> {
        for (index, spare) in map.spare_tracks.iter().enumerate() {
            let track = Track {
                cylinder: Cylinder(spare.cylinder),
                head: Head(spare.head),
            };
            let before = self.spare_tracks.last();
            let follows = before
                .is_none_or(|before| (before.cylinder, before.head) < (spare.cylinder, spare.head));
            let exists = spare.cylinder < cylinders && usize::from(spare.head) < self.by_head.len();
            let why = if !follows {
                "spare tracks are listed in the order of cylinders and heads, each once"
            } else if !exists {
                "the disk has no such track"
            } else if self.strip_of_track(track).is_some() {
                "the track is in a strip"
            } else if !(1..=65_535).contains(&spare.sectors_per_track) {
                "a track has 1 to 65535 slots"
            } else {
                self.spare_tracks.push(*spare);
                continue;
            };
            return Err(Misfit::new(format!("spare_tracks[{index}]"), why));
        }
        Ok(())
    }

    fn add_remaps(&mut self, map: &MapSpec) -> Result<(), Misfit> {
        let (mut end, mut moved) = (0, BTreeMap::new());
        for (index, remap) in map.remaps.iter().enumerate() {
            end = self
                .check_remap(remap, end, &mut moved)
                .map_err(|why| Misfit::new(format!("remaps[{index}]"), why))?;
        }
        self.moved = moved.into_values().collect();
        self.remaps.clone_from(&map.remaps);
        Ok(())
    }

    /// Checks a remap while no remap is in effect. Earlier remaps end at address `end` and have moved addresses to
    /// `moved`. Adds this remap to `moved` and returns its end.
    fn check_remap(
        &self,
        remap: &MapRemap,
        end: u64,
        moved: &mut BTreeMap<(u32, u16, u32), MapRemap>,
    ) -> Result<u64, &'static str> {
        if remap.count == 0 || remap.address < end {
            return Err("remaps are listed in the order of addresses, each with at least one");
        }
        let behind = remap.address.checked_add(u64::from(remap.count));
        let Some(behind) = behind.filter(|&behind| behind <= self.capacity) else {
            return Err("there are no such addresses");
        };
        let track = Track {
            cylinder: Cylinder(remap.cylinder),
            head: Head(remap.head),
        };
        let slots = self.sectors_per_track(track).unwrap_or(0);
        if slots < remap.count || remap.slot > slots - remap.count {
            return Err("there are no such slots");
        }
        // No remap is in effect yet, so this is the content without remaps.
        let holds_data = |slot: u32| matches!(self.slot(track, slot), Some(Slot::Data(_)));
        if (remap.slot..remap.slot + remap.count).any(holds_data) {
            return Err("the slots hold addresses of their own");
        }
        let slot = |at: u32| (remap.cylinder, remap.head, at);
        let before = moved.range(..slot(remap.slot + remap.count)).next_back();
        if before.is_some_and(|(_, other)| {
            (other.cylinder, other.head) == (remap.cylinder, remap.head)
                && other.slot + other.count > remap.slot
        }) {
            return Err("the slots are another remap's, too");
        }
        moved.insert(slot(remap.slot), *remap);
        Ok(behind)
    }

    fn total(&self) -> u64 {
        self.flats.last().map_or(0, Flat::end)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn has_remaps(&self) -> bool {
        !self.remaps.is_empty()
    }

    /// The cylinders that hold remapped sectors of other cylinders. A cylinder appears once for
    /// each such remap.
    pub(super) fn strays(&self) -> impl Iterator<Item = u32> + '_ {
        let homes = |remap: &MapRemap| remap.address..remap.address + u64::from(remap.count);
        let is_elsewhere = move |remap: &&MapRemap| {
            homes(remap).any(|address| {
                let (flat, along) = self.home(address);
                flat.track(along).cylinder.0 != remap.cylinder
            })
        };
        let elsewhere = self.remaps.iter().filter(is_elsewhere);
        elsewhere.map(|remap| remap.cylinder)
    }

    /// Largest number of cylinders by which a higher address may be farther out than a lower
    /// address, plus one.
    pub(super) fn group_cylinders(&self) -> u32 {
        let (mut highest, mut slack) = (0, 0);
        for flat in &self.flats {
            if flat.descends {
                slack = slack.max(flat.tracks - 1);
            }
            slack = slack.max(u32::saturating_sub(highest, flat.low()));
            highest = highest.max(flat.high());
        }
        slack + 1
    }

    pub(super) fn strips(&self) -> usize {
        self.flats.len()
    }

    /// A strip as a zone.
    pub(super) fn strip(&self, index: usize) -> ZoneInfo {
        let flat = &self.flats[index];
        let (from, to) = (self.address(flat.first), self.address(flat.end()));
        ZoneInfo {
            extent: Extent::at(from, to - from),
            first_cylinder: Cylinder(flat.low()),
            last_cylinder: Cylinder(flat.high()),
            sectors_per_track: flat.sectors_per_track,
        }
    }

    /// The strip of an address, for an address that is not remapped.
    pub(super) fn strip_of(&self, address: u64) -> usize {
        self.strip_of_place(self.place(address).0)
    }

    fn strip_of_place(&self, place: u64) -> usize {
        self.buckets.until(&self.flats, |flat| flat.first, place) - 1
    }

    fn strip_of_track(&self, track: Track) -> Option<&Flat> {
        let strips = self.by_head.get(usize::from(track.head.0))?;
        let flat = |index: &u32| &self.flats[*index as usize];
        let after = strips.partition_point(|index| flat(index).low() <= track.cylinder.0);
        let found = flat(&strips[after.checked_sub(1)?]);
        (track.cylinder.0 <= found.high()).then_some(found)
    }

    fn spare_track(&self, track: Track) -> Option<&SpareTrack> {
        let key = |spare: &SpareTrack| (spare.cylinder, spare.head);
        let found = self
            .spare_tracks
            .binary_search_by_key(&(track.cylinder.0, track.head.0), key);
        found.ok().map(|at| &self.spare_tracks[at])
    }

    /// The place of an address, and the number of addresses from there on in consecutive places, as far as slips go.
    fn place(&self, address: u64) -> (u64, u64) {
        let next = self.slips.partition_point(|slip| slip.number <= address);
        let passed = match next.checked_sub(1).map(|last| &self.slips[last]) {
            Some(last) => last.place + last.count - last.number,
            None => 0,
        };
        let room = match self.slips.get(next) {
            Some(next) => next.number - address,
            None => u64::MAX,
        };
        (address + passed, room)
    }

    /// The first address whose place is not before `place`; the capacity if there is none.
    fn address(&self, place: u64) -> u64 {
        let next = self.slips.partition_point(|slip| slip.place <= place);
        let number = match next.checked_sub(1).map(|last| &self.slips[last]) {
            // For a place within the slip, this is the address behind the slip.
            Some(last) => last.number + place.saturating_sub(last.place + last.count),
            None => place,
        };
        number.min(self.capacity)
    }

    fn is_slipped(&self, place: u64) -> bool {
        let next = self.slips.partition_point(|slip| slip.place <= place);
        next.checked_sub(1)
            .is_some_and(|last| place - self.slips[last].place < self.slips[last].count)
    }

    pub(super) fn run(&self, address: u64) -> Run {
        let next = self
            .remaps
            .partition_point(|remap| remap.address <= address);
        if let Some(last) = next.checked_sub(1).map(|last| &self.remaps[last]) {
            let along = address - last.address;
            if along < u64::from(last.count) {
                return self.moved_run(last, along as u32);
            }
        }
        let (place, mut room) = self.place(address);
        if let Some(next) = self.remaps.get(next) {
            room = room.min(next.address - address);
        }
        let flat = &self.flats[self.strip_of_place(place)];
        let along = ((place - flat.first) / u64::from(flat.places)) as u32;
        let (first, places) = flat.places_of(along);
        let index = (place - first) as u32;
        let room = room
            .min(u64::from(places - index))
            .min(self.capacity - address);
        Run {
            start: Lba::new(address),
            len: room as u32,
            track: flat.track(along),
            slot: flat.first_slot + index,
            sectors_per_track: flat.sectors_per_track,
            index,
            zero: flat.zero_of(along),
            step: flat.step,
        }
    }

    fn moved_run(&self, remap: &MapRemap, along: u32) -> Run {
        let track = Track {
            cylinder: Cylinder(remap.cylinder),
            head: Head(remap.head),
        };
        let slot = remap.slot + along;
        let (zero, first_slot, sectors_per_track) = self.circle(track);
        Run {
            start: Lba::new(remap.address + u64::from(along)),
            len: remap.count - along,
            track,
            slot,
            sectors_per_track,
            index: index(slot, first_slot, sectors_per_track),
            zero,
            step: step_of(sectors_per_track),
        }
    }

    /// An angle of an existing track, the slot that begins at this angle, and the number of slots.
    fn circle(&self, track: Track) -> (Angle, u32, u32) {
        if let Some(flat) = self.strip_of_track(track) {
            let zero = flat.zero_of(flat.along(track.cylinder.0));
            return (zero, flat.first_slot, flat.sectors_per_track);
        }
        let spare = self.spare_track(track).expect("a track of the map");
        let zero = Angle::from_bits((fraction(spare.offset) >> 32) as u32);
        (zero, 0, spare.sectors_per_track)
    }

    pub(super) fn sectors_per_track(&self, track: Track) -> Option<u32> {
        match self.strip_of_track(track) {
            Some(flat) => Some(flat.sectors_per_track),
            None => self.spare_track(track).map(|spare| spare.sectors_per_track),
        }
    }

    /// Angle at which an existing slot begins.
    pub(super) fn slot_angle(&self, track: Track, slot: u32) -> Angle {
        let (zero, first_slot, sectors_per_track) = self.circle(track);
        let index = index(slot, first_slot, sectors_per_track);
        zero + slot_angle(index, step_of(sectors_per_track))
    }

    /// The content of a slot; `None` if there is no such slot.
    pub(super) fn slot(&self, track: Track, slot: u32) -> Option<Slot> {
        if slot >= self.sectors_per_track(track)? {
            return None;
        }
        let key = |remap: &MapRemap| (remap.cylinder, remap.head, remap.slot);
        let wanted = (track.cylinder.0, track.head.0, slot);
        let after = self.moved.partition_point(|remap| key(remap) <= wanted);
        if let Some(last) = after.checked_sub(1).map(|last| &self.moved[last])
            && (last.cylinder, last.head) == (wanted.0, wanted.1)
            && slot - last.slot < last.count
        {
            let address = last.address + u64::from(slot - last.slot);
            return Some(Slot::Data(Lba::new(address)));
        }
        let Some(flat) = self.strip_of_track(track) else {
            return Some(Slot::Spare);
        };
        let (first, places) = flat.places_of(flat.along(track.cylinder.0));
        let Some(index) = slot.checked_sub(flat.first_slot).filter(|&at| at < places) else {
            return Some(Slot::Spare);
        };
        let place = first + u64::from(index);
        if self.is_slipped(place) {
            return Some(Slot::Bad);
        }
        let address = self.address(place);
        if address == self.capacity {
            return Some(Slot::Spare);
        }
        let after = self
            .remaps
            .partition_point(|remap| remap.address <= address);
        let is_moved = after.checked_sub(1).is_some_and(|last| {
            address - self.remaps[last].address < u64::from(self.remaps[last].count)
        });
        Some(if is_moved {
            Slot::Bad
        } else {
            Slot::Data(Lba::new(address))
        })
    }

    /// Strip and track of the place of an address, moved or not.
    fn home(&self, address: u64) -> (&Flat, u32) {
        let (place, _) = self.place(address);
        let flat = &self.flats[self.strip_of_place(place)];
        let along = (place - flat.first) / u64::from(flat.places);
        (flat, along as u32)
    }

    fn extent(&self, flat: &Flat, along: u32) -> Extent {
        let (first, places) = flat.places_of(along);
        let from = self.address(first);
        let to = self.address(first + u64::from(places));
        Extent::at(from, to - from)
    }

    pub(super) fn track_extent_of(&self, address: u64) -> Extent {
        let (flat, along) = self.home(address);
        self.extent(flat, along)
    }

    /// `None` if there is no such track; empty for a track of spares.
    pub(super) fn track_extent(&self, track: Track) -> Option<Extent> {
        match self.strip_of_track(track) {
            Some(flat) => Some(self.extent(flat, flat.along(track.cylinder.0))),
            None => self
                .spare_track(track)
                .map(|_| Extent::at(self.capacity, 0)),
        }
    }

    pub(super) fn cylinder_end(&self, address: u64) -> u64 {
        let (flat, along) = self.home(address);
        let cylinder = flat.track(along).cylinder;
        let mut behind = self.extent(flat, along).end().get();
        // On, a track at a time, as long as the next address is on the same cylinder.
        while behind < self.capacity {
            let (flat, along) = self.home(behind);
            if flat.track(along).cylinder != cylinder {
                break;
            }
            behind = self.extent(flat, along).end().get();
        }
        behind
    }
}

/// A map without the entries that do not fit, and how many these were.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The map.
    pub map: MapSpec,
    /// Cylinders that the map reaches.
    pub cylinders: u32,
    /// Addresses that the map has room for.
    pub room: u64,
    /// Slips that were left out.
    pub slips: usize,
    /// Remaps that were left out.
    pub remaps: usize,
}

/// Removes slips and remaps that do not fit from a map, and spare tracks that the map does not
/// need. `offered` is the number of addresses that the drive offers, if the map has room for them.
///
/// # Errors
///
/// If the tracks themselves do not fit together.
pub fn fitted(map: &MapSpec, heads: u16, offered: u64) -> Result<Fitted, ProfileError> {
    const CYLINDERS: u32 = 1 << 24;
    let bare = MapSpec {
        groups: map.groups.clone(),
        ..MapSpec::default()
    };
    let mut built = TrackMap::new(&bare, CYLINDERS, heads, None)?;
    let (total, mut end) = (built.total(), 0);
    let mut fits = bare;
    for &(place, count) in &map.slips {
        if count > 0 && place >= end && place.checked_add(count).is_some_and(|end| end <= total) {
            fits.slips.push((place, count));
            end = place + count;
        }
    }
    built.slips = slips(&fits, total)?;
    let room = total - fits.slips.iter().map(|(_, count)| count).sum::<u64>();
    built.capacity = if offered == 0 {
        room
    } else {
        offered.min(room)
    };
    let mut spare_tracks = map.spare_tracks.clone();
    spare_tracks.sort_by_key(|spare| (spare.cylinder, spare.head));
    spare_tracks.dedup_by_key(|spare| (spare.cylinder, spare.head));
    spare_tracks.retain(|spare| {
        let track = Track {
            cylinder: Cylinder(spare.cylinder),
            head: Head(spare.head),
        };
        spare.head < heads && built.strip_of_track(track).is_none()
    });
    built.spare_tracks = spare_tracks;
    let (mut end, mut moved) = (0, BTreeMap::new());
    for remap in &map.remaps {
        if let Ok(behind) = built.check_remap(remap, end, &mut moved) {
            end = behind;
            fits.remaps.push(*remap);
        }
    }
    let used: BTreeSet<(u32, u16)> = fits
        .remaps
        .iter()
        .map(|remap| (remap.cylinder, remap.head))
        .collect();
    let is_used = |spare: &SpareTrack| used.contains(&(spare.cylinder, spare.head));
    fits.spare_tracks = built.spare_tracks.iter().copied().filter(is_used).collect();
    let strips = built.flats.iter().map(Flat::high);
    let spares = fits.spare_tracks.iter().map(|spare| spare.cylinder);
    Ok(Fitted {
        cylinders: strips.chain(spares).max().map_or(1, |last| last + 1),
        room,
        slips: map.slips.len() - fits.slips.len(),
        remaps: map.remaps.len() - fits.remaps.len(),
        map: fits,
    })
}

/// Slots from the one at a track's zero to another.
fn index(slot: u32, first_slot: u32, sectors_per_track: u32) -> u32 {
    if slot >= first_slot {
        slot - first_slot
    } else {
        slot + sectors_per_track - first_slot
    }
}

/// The strips of each head, by their cylinders, which no two share.
fn by_head(flats: &[Flat], heads: u16) -> Result<Vec<Vec<u32>>, Misfit> {
    let mut by_head = vec![Vec::new(); usize::from(heads)];
    for (index, flat) in flats.iter().enumerate() {
        by_head[usize::from(flat.head)].push(index as u32);
    }
    for strips in &mut by_head {
        strips.sort_unstable_by_key(|index| flats[*index as usize].low());
        for pair in strips.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|index| &flats[index as usize]);
            if one.high() >= other.low() {
                let why = format!(
                    "two strips have the track of head {} on cylinder {}",
                    other.head,
                    other.low()
                );
                return Err(Misfit::new("groups", why));
            }
        }
    }
    Ok(by_head)
}

fn slips(map: &MapSpec, total: u64) -> Result<Vec<Slipped>, Misfit> {
    let (mut slips, mut end, mut before) = (Vec::with_capacity(map.slips.len()), 0, 0);
    for (index, &(place, count)) in map.slips.iter().enumerate() {
        let behind = place.checked_add(count);
        let why = if count == 0 || place < end {
            "slips are listed in the order of places, each with at least one"
        } else if behind.is_none_or(|behind| behind > total) {
            "there are no such places"
        } else {
            slips.push(Slipped {
                place,
                count,
                number: place - before,
            });
            (end, before) = (place + count, before + count);
            continue;
        };
        return Err(Misfit::new(format!("slips[{index}]"), why));
    }
    Ok(slips)
}
