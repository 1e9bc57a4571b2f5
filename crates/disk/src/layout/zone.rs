//! The mapping within a zone.
//!
//! There are three counts. A *number* counts the places that could hold an address, from the first
//! one of the zone. A *place* counts slots from the first slot of the zone along the order of
//! tracks, bad slots and spares included. An *ordinal* counts tracks in that order.
//!
//! There are two mappings from number to place. They differ in whether slips use spares:
//!
//! ```text
//! slips use spares:    number ── area ── spares in front that slips left ── slips of the area ──► place
//! they use none:       number ── slips of the zone ── area ── spares in front ──► place
//! ```

use super::buckets::Buckets;
mod home;

use super::by_head::ByHead;
use super::divider::Divider;
use super::groups::{Along, Groups};
use super::place::{Run, Slot, ZoneInfo, fraction, slot_angle, step_of};
use crate::profile::{Order, Skew, Sparing, Spec, Zone};
use headtime_units::{Angle, Cylinder, Extent, Head, Lba, Track};

/// A bad place that addresses pass over.
#[derive(Clone, Copy, Debug)]
struct Slip {
    /// The place (or track).
    place: u64,
    /// The number of the address that would be there; that address and all after it in the area
    /// (or, where slips use no spares, in the zone) move on.
    number: u64,
    /// The area; 0 where slips concern the zone.
    area: u64,
    /// Number of slips of the area (or zone) before this slip.
    before: u64,
}

/// Shift of addresses by slips. Slips of consecutive places share one entry.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Number of the first address that is shifted.
    number: u64,
    /// The area.
    area: u64,
    /// Number of places for which that address and all later addresses of the area (or zone) move
    /// on.
    places: u64,
}

impl Move {
    fn of(slips: &[Slip]) -> Vec<Move> {
        let of_number = slips.chunk_by(|one, next| one.number == next.number);
        let lasts = of_number.filter_map(|same| same.last());
        lasts
            .map(|slip| Move {
                number: slip.number,
                area: slip.area,
                places: slip.before + 1,
            })
            .collect()
    }
}

/// Buckets of the table that finds the slips before a number, for each entry of the table. With this factor nearly
/// every bucket is empty.
const BUCKETS_PER_MOVE: u64 = 8;
const BUCKETS_MOST: u64 = 1 << 14;

/// Places and addresses of a zone.
///
/// Invariants: `remapped` has the pairs of `remaps` with their places exchanged; `is_plain` is true if and only if
/// the zone has no `areas`, slips and remaps; `end` is `first` plus the zone's capacity.
#[derive(Clone, Debug)]
pub(super) struct ZoneMap {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) first_cylinder: u32,
    pub(super) last_cylinder: u32,
    heads: u32,
    per_track: u32,
    reserved: u64,
    by_track: Divider,
    by_heads: Divider,
    /// Tracks that differ by head, if they do. `per_track`, `by_track` and `step` then belong to
    /// the longest.
    by_head: Option<Box<ByHead>>,
    order: Order,
    groups: Groups,
    areas: Option<Areas>,
    /// Slips and remaps count tracks.
    in_tracks: bool,
    /// Places in a unit (a track or a cylinder), if slips turn tracks. Each slip in front of a
    /// track's unit turns the track by one sector.
    slips_turn: Option<Divider>,
    slips: Vec<Slip>,
    /// Shifts in ascending order: one entry for each number at which slips move addresses on.
    moves: Vec<Move>,
    /// Index of `moves` by number.
    moved_by: Buckets,
    /// The places of all slips, also of slips that no address passes.
    bad: Vec<u64>,
    /// Addresses are in consecutive places throughout.
    is_plain: bool,
    /// Remapped places and the places of their data, ascending.
    remaps: Vec<(u64, u64)>,
    /// Places of remapped data and the remapped places, ascending.
    remapped: Vec<(u64, u64)>,
    skews: Skews,
    step: u64,
}

/// Places in areas with spares at the end or the front of each.
#[derive(Clone, Copy, Debug)]
struct Areas {
    /// Places in an area.
    places: u64,
    /// Places of an area that could hold an address.
    numbers: u64,
    by_places: Divider,
    by_numbers: Divider,
    /// Areas that are complete. The rest of the zone has no spares.
    complete: u64,
    /// Spares are at the front.
    at_front: bool,
    /// Slips use the spares of their area.
    slips_use_spares: bool,
}

impl Areas {
    fn spares(&self) -> u64 {
        self.places - self.numbers
    }

    /// Returns true if a place of an area, counted from the area's first, is for spares if no slip uses
    /// any.
    fn is_for_spares(&self, within: u64) -> bool {
        if self.at_front {
            within < self.spares()
        } else {
            within >= self.numbers
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Skews {
    offset: Turned,
    track: Turned,
    cylinder: Turned,
    group: Turned,
    /// True if any skew is in sectors and not a whole number of turns.
    any_sectors: bool,
    /// True if any skew is a part of a turn.
    any_turns: bool,
}

/// A skew as whole sectors, less than a track, plus a part of a turn. One is zero.
#[derive(Clone, Copy, Debug, Default)]
struct Turned {
    sectors: u64,
    /// In 2^64ths of a turn, since errors add up over many tracks.
    turns: u64,
}

impl Turned {
    fn new(skew: Skew, per_track: u64) -> Turned {
        match skew {
            Skew::Sectors(sectors) => Turned {
                // Whole turns have no effect. Over many tracks their sum would be too large for the
                // division.
                sectors: u64::from(sectors) % per_track,
                turns: 0,
            },
            Skew::Turns(turns) => Turned {
                sectors: 0,
                turns: fraction(turns),
            },
        }
    }
}

/// A track within the zone's order.
#[derive(Clone, Copy, Debug)]
struct Circle {
    cylinder: u32,
    head: u32,
    /// Head switches, steps of one cylinder and steps to another group since the first track.
    switches: u64,
    steps: u64,
    group_steps: u64,
}

/// Addresses that a zone yields: its places without reserved, spare and slipped places.
pub(super) fn capacity(spec: &Spec, zone: &Zone) -> u64 {
    let cylinders = u64::from(zone.cylinders());
    let heads = u64::from(spec.geometry.heads);
    let tracks = cylinders * heads;
    let per_track = u64::from(zone.sectors_per_track);
    let places = cylinders * zone.sectors_per_cylinder(spec.geometry.heads);
    let spares = match spec.layout.sparing {
        Sparing::TracksAtZoneEnd => zone.spares * per_track,
        Sparing::CylinderEnd | Sparing::CylinderFront => zone.spares * cylinders,
        Sparing::TrackEnd => zone.spares * tracks,
        Sparing::DiskEnd => 0,
        Sparing::RangeEnd { cylinders: range } => zone.spares * (cylinders / u64::from(range)),
        Sparing::ZoneEnd => zone.spares,
    };
    let slipped = if spec.layout.sparing == Sparing::DiskEnd || !spec.layout.slips_use_spares {
        // Slips among the spares cost no address.
        let areas = Areas::of(spec, zone);
        let costs = |slip: &&u64| match &areas {
            Some(areas) => !areas.is_for_spares(**slip % areas.places),
            None => **slip < places.saturating_sub(spares),
        };
        zone.slips.iter().filter(costs).count() as u64
    } else {
        0
    };
    places.saturating_sub(spares + slipped + zone.reserved)
}

impl Areas {
    /// The areas of a zone whose spares are not all at its end.
    fn of(spec: &Spec, zone: &Zone) -> Option<Areas> {
        let heads = u64::from(spec.geometry.heads);
        let per_track = u64::from(zone.sectors_per_track);
        let cylinders = u64::from(zone.cylinders());
        let (places, complete) = match spec.layout.sparing {
            Sparing::TrackEnd => (per_track, cylinders * heads),
            Sparing::CylinderEnd | Sparing::CylinderFront => (heads * per_track, cylinders),
            Sparing::RangeEnd { cylinders: range } => {
                let range = u64::from(range);
                (range * heads * per_track, cylinders / range)
            }
            Sparing::TracksAtZoneEnd | Sparing::DiskEnd | Sparing::ZoneEnd => return None,
        };
        // A profile with more spares than places is refused, but only after this call.
        let numbers = places.saturating_sub(zone.spares).max(1);
        Some(Areas {
            places,
            numbers,
            by_places: Divider::new(places),
            by_numbers: Divider::new(numbers),
            complete,
            at_front: spec.layout.sparing == Sparing::CylinderFront,
            slips_use_spares: spec.layout.slips_use_spares,
        })
    }
}

impl ZoneMap {
    pub(super) fn new(spec: &Spec, zone: &Zone, first: u64) -> ZoneMap {
        let heads = u32::from(spec.geometry.heads);
        let per_track = u64::from(zone.sectors_per_track);
        let areas = Areas::of(spec, zone);
        let group = zone.group_cylinders(spec.layout.order);
        let slips_turn = match spec.layout.sparing {
            Sparing::TrackEnd => Some(per_track),
            Sparing::CylinderEnd | Sparing::CylinderFront => Some(u64::from(heads) * per_track),
            _ => None,
        };
        let cylinder_skew = zone.cylinder_skew;
        let turned = |skew| Turned::new(skew, per_track);
        let (offset, track) = (turned(zone.offset), turned(zone.track_skew));
        let cylinder = turned(cylinder_skew);
        let group_skew = turned(zone.group_skew.unwrap_or(cylinder_skew));
        let mut map = ZoneMap {
            first,
            end: first + capacity(spec, zone),
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            heads,
            per_track: zone.sectors_per_track,
            reserved: zone.reserved,
            by_track: Divider::new(per_track),
            by_heads: Divider::new(u64::from(heads)),
            by_head: ByHead::of(&zone.by_head, group).map(Box::new),
            order: spec.layout.order,
            groups: Groups::new(group, zone.cylinders(), heads),
            is_plain: areas.is_none() && zone.slips.is_empty() && zone.remaps.is_empty(),
            areas,
            in_tracks: spec.layout.sparing == Sparing::TracksAtZoneEnd,
            slips_turn: slips_turn.map(Divider::new),
            slips: Vec::new(),
            moves: Vec::new(),
            moved_by: Buckets::default(),
            bad: zone.slips.clone(),
            remaps: zone.remaps.clone(),
            remapped: zone.remaps.iter().map(|&(from, to)| (to, from)).collect(),
            skews: Skews {
                offset,
                track,
                cylinder,
                group: group_skew,
                any_sectors: [offset, track, cylinder, group_skew]
                    .iter()
                    .any(|skew| skew.sectors > 0),
                any_turns: [
                    Some(zone.offset),
                    Some(zone.track_skew),
                    Some(cylinder_skew),
                    zone.group_skew,
                ]
                .iter()
                .any(|skew| matches!(skew, Some(Skew::Turns(_)))),
            },
            step: step_of(zone.sectors_per_track),
        };
        map.remapped.sort_unstable();
        let mut slips: Vec<Slip> = Vec::with_capacity(zone.slips.len());
        for &place in &zone.slips {
            if let Some(slip) = map.slip(place, slips.last()) {
                slips.push(slip);
            }
        }
        map.moves = Move::of(&slips);
        let buckets = (map.moves.len() as u64 * BUCKETS_PER_MOVE).clamp(1, BUCKETS_MOST);
        map.moved_by = Buckets::new(&map.moves, |at| at.number, buckets);
        map.slips = slips;
        map
    }

    pub(super) fn info(&self) -> ZoneInfo {
        ZoneInfo {
            extent: Extent::at(self.first, self.end - self.first),
            first_cylinder: Cylinder(self.first_cylinder),
            last_cylinder: Cylinder(self.last_cylinder),
            sectors_per_track: self.per_track,
        }
    }

    /// Slots of the tracks of a head, and 2^64 / slots.
    #[inline]
    fn track_of(&self, head: u32) -> (u32, u64) {
        match &self.by_head {
            None => (self.per_track, self.step),
            Some(by_head) => by_head.track(head),
        }
    }

    pub(super) fn sectors_per_track(&self, head: Head) -> u32 {
        self.track_of(u32::from(head.0)).0
    }

    /// The track of a place, and its slot there.
    #[inline]
    fn track_at(&self, place: u64) -> (u64, u64) {
        match &self.by_head {
            None => self.by_track.divide(place),
            Some(by_head) => {
                let (at, slot) = self.along_at(by_head, place);
                (self.groups.ordinal(&at, self.heads), slot)
            }
        }
    }

    /// The track of a place, by its group, and its slot there.
    #[inline(always)]
    fn along_at(&self, by_head: &ByHead, place: u64) -> (Along, u64) {
        let (group, within) = by_head.group_of(place);
        by_head.track_at(&self.groups, self.is_reversed(group), group, within)
    }

    /// The place of a track's first slot; behind the last track, the end of the zone.
    fn first_place(&self, ordinal: u64) -> u64 {
        match &self.by_head {
            None => ordinal * u64::from(self.per_track),
            Some(by_head) => {
                let (group, within) = self.groups.of_track(ordinal);
                by_head.first_place(&self.groups, self.is_reversed(group), group, within)
            }
        }
    }

    /// Returns true if addresses run from the last head to the first in a group, counted from the zone's
    /// first.
    fn is_reversed(&self, group: u64) -> bool {
        match self.order {
            Order::SurfaceSerpentine { .. } => group % 2 == 1,
            Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => {
                self.runs_backward(group)
            }
        }
    }

    /// The area of a place, and the area's first place.
    fn area_of_place(&self, place: u64) -> (u64, u64) {
        match &self.areas {
            None => (0, 0),
            Some(areas) => {
                let area = areas.by_places.divide(place).0.min(areas.complete);
                (area, area * areas.places)
            }
        }
    }

    /// The slip at `place`, with its number. `last` is the previous slip. `None` for a slip among
    /// spares that no address passes.
    fn slip(&self, place: u64, last: Option<&Slip>) -> Option<Slip> {
        let (area, base) = self.area_of_place(place);
        let in_zone = last.map_or(0, |last| last.before + 1);
        let slip = |area, before, number| Slip {
            place,
            number,
            area,
            before,
        };
        let Some(areas) = &self.areas else {
            return Some(slip(0, in_zone, place - in_zone));
        };
        if !areas.slips_use_spares {
            let within = place - base;
            if areas.is_for_spares(within) {
                return None;
            }
            let front = if areas.at_front { areas.spares() } else { 0 };
            let usable = area * areas.numbers + within - front;
            return Some(slip(0, in_zone, usable - in_zone));
        }
        let before = match last {
            Some(last) if last.area == area => last.before + 1,
            _ => 0,
        };
        let within = (place - base - before).saturating_sub(self.unused_in_front(area));
        if area < areas.complete && within >= areas.numbers {
            // Among the spares that the area does not use: no address is affected, and its number
            // would belong to the next area.
            return None;
        }
        Some(slip(area, before, area * areas.numbers + within))
    }

    /// Spares at the front of an area that no slip of the area uses. Data begins behind these
    /// spares.
    fn unused_in_front(&self, area: u64) -> u64 {
        match &self.areas {
            Some(areas) if areas.at_front && areas.slips_use_spares => {
                let base = area * areas.places;
                let until = |end: u64| self.bad.partition_point(|&bad| bad < end) as u64;
                let slipped = until(base + areas.places) - until(base);
                areas.spares().saturating_sub(slipped)
            }
            _ => 0,
        }
    }

    /// Slips that move `number`, and the count of numbers from `number` on that the next slip does
    /// not move.
    fn slipped_before(&self, number: u64, area: u64) -> (u64, u64) {
        let next = self.moved_by.until(&self.moves, |at| at.number, number);
        let passed = match next.checked_sub(1).map(|last| &self.moves[last]) {
            Some(last) if last.area == area => last.places,
            _ => 0,
        };
        let room = self
            .moves
            .get(next)
            .map_or(u64::MAX, |next| next.number - number);
        (passed, room)
    }

    /// The place of a number, and the count of numbers from `number` on in consecutive places, as
    /// far as slips and areas go.
    fn place_of_number(&self, number: u64) -> (u64, u64) {
        let Some(areas) = &self.areas else {
            if self.slips.is_empty() {
                return (number, u64::MAX);
            }
            let (passed, room) = self.slipped_before(number, 0);
            return (number + passed, room);
        };
        if !areas.slips_use_spares {
            let (passed, room) = self.slipped_before(number, 0);
            let usable = number + passed;
            let (area, within) = areas.by_numbers.divide(usable);
            let front = if areas.at_front { areas.spares() } else { 0 };
            let place = area * areas.places + front + within;
            return (place, room.min(areas.numbers - within));
        }
        let (area, within) = areas.by_numbers.divide(number);
        let (area, room) = if area < areas.complete {
            (area, areas.numbers - within)
        } else {
            (areas.complete, u64::MAX)
        };
        let base = number + area * areas.spares() + self.unused_in_front(area);
        if self.slips.is_empty() {
            return (base, room);
        }
        let (passed, until_slip) = self.slipped_before(number, area);
        (base + passed, room.min(until_slip))
    }

    /// The first number whose place is not before `place`, and the content of `place` itself.
    fn number_at(&self, place: u64) -> (u64, Slot) {
        let (number, spare) = self.first_number_at(place);
        let slot = if self.bad.binary_search(&place).is_ok() {
            Slot::Bad
        } else if spare {
            Slot::Spare
        } else {
            self.slot_of_number(number)
        };
        (number, slot)
    }

    /// The first number whose place is not before `place`, and whether `place` is for spares.
    fn first_number_at(&self, place: u64) -> (u64, bool) {
        let (area, base) = self.area_of_place(place);
        let next = self.slips.partition_point(|slip| slip.place < place);
        let last = next.checked_sub(1).map(|last| &self.slips[last]);
        let within = place - base;
        match &self.areas {
            None => (place - next as u64, false),
            Some(areas) if !areas.slips_use_spares => {
                let front = if areas.at_front { areas.spares() } else { 0 };
                let usable = within.saturating_sub(front).min(areas.numbers);
                let number = area * areas.numbers + usable - next as u64;
                (number, areas.is_for_spares(within))
            }
            Some(areas) => {
                let passed = match last {
                    Some(last) if last.area == area => last.before + 1,
                    _ => 0,
                };
                let unused = self.unused_in_front(area);
                let good = within - passed;
                let along = good.saturating_sub(unused);
                let first = area * areas.numbers;
                if area < areas.complete {
                    let spare = good < unused || along >= areas.numbers;
                    (first + along.min(areas.numbers), spare)
                } else {
                    (first + along, false)
                }
            }
        }
    }

    fn slot_of_number(&self, number: u64) -> Slot {
        match number.checked_sub(self.reserved) {
            None => Slot::Reserved,
            Some(address) if self.first + address < self.end => {
                Slot::Data(Lba::new(self.first + address))
            }
            Some(_) => Slot::Spare,
        }
    }

    /// Returns true if `place` (a track if slips count tracks) is empty without remaps.
    pub(super) fn is_spare(&self, place: u64) -> bool {
        let slot = if self.in_tracks {
            let (track, slot) = self.number_at(place);
            if slot == Slot::Bad {
                slot
            } else {
                self.slot_of_number(track * u64::from(self.per_track))
            }
        } else {
            self.number_at(place).1
        };
        slot == Slot::Spare
    }

    /// Place of `address`, and number of addresses from there on in consecutive places. The run may go on over the ends
    /// of tracks. `u64::MAX` stands for no limit.
    fn place(&self, address: u64) -> (u64, u64) {
        let number = address - self.first + self.reserved;
        if self.is_plain {
            return (number, u64::MAX);
        }
        let (mut place, mut room) = if self.in_tracks {
            let (track, slot) = self.by_track.divide(number);
            let (mut track, _) = self.place_of_number(track);
            if !self.remaps.is_empty() {
                let at = self.remaps.partition_point(|&(from, _)| from < track);
                if let Some(&(_, to)) = self.remaps.get(at).filter(|(from, _)| *from == track) {
                    track = to;
                }
            }
            return (track * u64::from(self.per_track) + slot, u64::MAX);
        } else {
            self.place_of_number(number)
        };
        if !self.remaps.is_empty() {
            let at = self.remaps.partition_point(|&(from, _)| from < place);
            match self.remaps.get(at) {
                Some(&(from, to)) if from == place => (place, room) = (to, 1),
                Some(&(from, _)) => room = room.min(from - place),
                None => {}
            }
        }
        (place, room)
    }

    #[inline]
    pub(super) fn run(&self, address: u64) -> Run {
        let (place, room) = self.place(address);
        if let Some(by_head) = &self.by_head {
            return self.run_by_head(by_head, address, place, room);
        }
        let (ordinal, slot) = self.by_track.divide(place);
        let circle = self.circle(ordinal);
        self.run_on(
            address,
            room,
            (ordinal, slot),
            &circle,
            (self.per_track, self.step),
        )
    }

    /// [`ZoneMap::run`] where tracks differ by head. A function of its own keeps this code out of
    /// the common path.
    #[inline(never)]
    fn run_by_head(&self, by_head: &ByHead, address: u64, place: u64, room: u64) -> Run {
        let (at, slot) = self.along_at(by_head, place);
        let ordinal = self.groups.ordinal(&at, self.heads);
        let circle = self.circle_along(ordinal, &at);
        self.run_on(
            address,
            room,
            (ordinal, slot),
            &circle,
            by_head.track(circle.head),
        )
    }

    /// The run of an address on a track of `per_track` slots. At most `room` addresses are in consecutive places.
    #[inline(always)]
    fn run_on(
        &self,
        address: u64,
        room: u64,
        (ordinal, slot): (u64, u64),
        circle: &Circle,
        (per_track, step): (u32, u64),
    ) -> Run {
        let room = room
            .min(u64::from(per_track) - slot)
            .min(self.end - address);
        let slot = slot as u32;
        let (zero_index, zero) = self.zero(ordinal, circle);
        let mut index = zero_index + slot;
        if index >= per_track {
            index -= per_track;
        }
        Run {
            start: Lba::new(address),
            len: room as u32,
            track: Track {
                cylinder: Cylinder(circle.cylinder),
                head: Head(circle.head as u16),
            },
            slot,
            sectors_per_track: per_track,
            index,
            zero,
            step,
        }
    }

    /// The run of all slots of a track, if each has an address and they are where they would be in a zone
    /// without spares among them.
    pub(super) fn whole_track(&self, address: u64) -> Option<Run> {
        if !self.is_plain {
            return None;
        }
        let number = address - self.first + self.reserved;
        let first = address.checked_sub(self.track_at(number).1)?;
        if first < self.first {
            return None;
        }
        let run = self.run(first);
        (run.len == run.sectors_per_track).then_some(run)
    }

    /// Returns true if addresses run from the last head to the first on a cylinder, counted from the
    /// zone's first.
    fn runs_backward(&self, cylinder: u64) -> bool {
        match self.order {
            Order::Serpentine => cylinder % 2 == 1,
            Order::SerpentineThroughout => (u64::from(self.first_cylinder) + cylinder) % 2 == 1,
            Order::CylinderFirst | Order::SurfaceSerpentine { .. } => false,
        }
    }

    /// The track with this ordinal.
    #[inline(always)]
    fn circle(&self, ordinal: u64) -> Circle {
        match self.order {
            Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => {
                let (cylinder, along) = self.by_heads.divide(ordinal);
                self.circle_on(ordinal, cylinder, along as u32)
            }
            Order::SurfaceSerpentine { .. } => {
                self.circle_along(ordinal, &self.groups.along(ordinal))
            }
        }
    }

    /// The track with this ordinal, if its place in its group is known.
    #[inline(always)]
    fn circle_along(&self, ordinal: u64, at: &Along) -> Circle {
        if !matches!(self.order, Order::SurfaceSerpentine { .. }) {
            // A group is a cylinder.
            return self.circle_on(ordinal, at.group, at.surface);
        }
        let Along {
            group,
            length,
            surface,
            along,
        } = *at;
        let cylinder = if surface % 2 == 0 {
            along
        } else {
            length - 1 - along
        };
        let switches = group * u64::from(self.heads - 1) + u64::from(surface);
        Circle {
            cylinder: self.first_cylinder + group as u32 * self.groups.cylinders + cylinder,
            head: if group % 2 == 0 {
                surface
            } else {
                self.heads - 1 - surface
            },
            switches,
            steps: ordinal - switches - group,
            group_steps: group,
        }
    }

    /// The track with this ordinal in an order by cylinders: the `along`th track of `cylinder`, counted from the zone's
    /// first cylinder.
    #[inline(always)]
    fn circle_on(&self, ordinal: u64, cylinder: u64, along: u32) -> Circle {
        let backward = self.runs_backward(cylinder);
        Circle {
            cylinder: self.first_cylinder + cylinder as u32,
            head: if backward {
                self.heads - 1 - along
            } else {
                along
            },
            switches: ordinal - cylinder,
            steps: cylinder,
            group_steps: 0,
        }
    }

    /// The ordinal of a track of the zone.
    fn ordinal(&self, track: Track) -> u64 {
        let cylinder = u64::from(track.cylinder.0 - self.first_cylinder);
        let head = u64::from(track.head.0);
        let heads = u64::from(self.heads);
        match self.order {
            Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => {
                if self.runs_backward(cylinder) {
                    cylinder * heads + (heads - 1 - head)
                } else {
                    cylinder * heads + head
                }
            }
            Order::SurfaceSerpentine { .. } => {
                let (group, along) = self.groups.of_cylinder(cylinder);
                let length = u64::from(self.groups.length(group).0);
                let surface = if group % 2 == 0 {
                    head
                } else {
                    heads - 1 - head
                };
                let along = if surface % 2 == 0 {
                    along
                } else {
                    length - 1 - along
                };
                group * u64::from(self.groups.cylinders) * heads + surface * length + along
            }
        }
    }

    /// Start of slot 0 of a track: the sectors from the track's zero, and the angle of the track's
    /// zero.
    #[inline(always)]
    fn zero(&self, ordinal: u64, circle: &Circle) -> (u32, Angle) {
        let skews = &self.skews;
        let mut index = 0;
        if skews.any_sectors || self.slips_turn.is_some() {
            index = self.zero_index(ordinal, circle);
        }
        if !skews.any_turns {
            return (index, Angle::ZERO);
        }
        let turns = skews
            .offset
            .turns
            .wrapping_add(circle.switches.wrapping_mul(skews.track.turns))
            .wrapping_add(circle.steps.wrapping_mul(skews.cylinder.turns))
            .wrapping_add(circle.group_steps.wrapping_mul(skews.group.turns));
        (index, Angle::from_bits((turns >> 32) as u32))
    }

    /// Sectors from a track's zero to its slot 0.
    fn zero_index(&self, ordinal: u64, circle: &Circle) -> u32 {
        let skews = &self.skews;
        let mut sectors = skews.offset.sectors
            + circle.switches * skews.track.sectors
            + circle.steps * skews.cylinder.sectors
            + circle.group_steps * skews.group.sectors;
        if let Some(unit) = &self.slips_turn {
            let (_, within) = unit.divide(ordinal * u64::from(self.per_track));
            let place = ordinal * u64::from(self.per_track) - within;
            sectors += self.bad.partition_point(|&bad| bad < place) as u64;
        }
        self.by_track.divide(sectors).1 as u32
    }

    pub(super) fn angle(&self, track: Track, slot: u32) -> Angle {
        let ordinal = self.ordinal(track);
        let (index, zero) = self.zero(ordinal, &self.circle(ordinal));
        let (per_track, step) = self.track_of(u32::from(track.head.0));
        zero + slot_angle((index + slot) % per_track, step)
    }

    pub(super) fn slot(&self, track: Track, slot: u32) -> Slot {
        let per_track = u64::from(self.per_track);
        let ordinal = self.ordinal(track);
        let mut place = if self.in_tracks {
            ordinal
        } else {
            self.first_place(ordinal) + u64::from(slot)
        };
        if self
            .remaps
            .binary_search_by_key(&place, |&(from, _)| from)
            .is_ok()
        {
            return Slot::Bad;
        }
        if let Ok(at) = self.remapped.binary_search_by_key(&place, |&(to, _)| to) {
            place = self.remapped[at].1;
        }
        match self.number_at(place) {
            (_, Slot::Bad) => Slot::Bad,
            (track, _) if self.in_tracks => {
                self.slot_of_number(track * per_track + u64::from(slot))
            }
            (_, slot) => slot,
        }
    }

    /// The addresses whose places, before remaps, are on the tracks from one ordinal up to another.
    fn extent(&self, from: u64, to: u64) -> Extent {
        let per_track = u64::from(self.per_track);
        let number = |ordinal: u64| {
            if self.in_tracks {
                self.first_number_at(ordinal).0 * per_track
            } else {
                self.first_number_at(self.first_place(ordinal)).0
            }
        };
        let address = |number: u64| {
            let address = self.first + number.saturating_sub(self.reserved);
            address.min(self.end)
        };
        let (from, to) = (address(number(from)), address(number(to)));
        Extent::at(from, to - from)
    }

    /// The ordinal of the track that an address would be on without remaps.
    fn ordinal_of(&self, address: u64) -> u64 {
        let number = address - self.first + self.reserved;
        if self.in_tracks {
            self.place_of_number(self.by_track.divide(number).0).0
        } else {
            self.track_at(self.place_of_number(number).0).0
        }
    }

    pub(super) fn track_extent_of(&self, address: u64) -> Extent {
        let ordinal = self.ordinal_of(address);
        self.extent(ordinal, ordinal + 1)
    }

    pub(super) fn track_extent(&self, track: Track) -> Extent {
        let ordinal = self.ordinal(track);
        self.extent(ordinal, ordinal + 1)
    }

    pub(super) fn cylinder_end(&self, address: u64) -> u64 {
        let ordinal = self.ordinal_of(address);
        let to = match self.order {
            Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => {
                (self.by_heads.divide(ordinal).0 + 1) * u64::from(self.heads)
            }
            Order::SurfaceSerpentine { .. } => ordinal + 1,
        };
        self.extent(ordinal, to).end().get()
    }
}
