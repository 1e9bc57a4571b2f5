//! The zones of a drive, and the lookup of the zone of an address or a track.

use super::buckets::Buckets;
use super::zone::ZoneMap;
use crate::profile::Spec;
use headtime_units::Track;

#[derive(Clone, Debug)]
pub(super) struct Zones {
    zones: Vec<ZoneMap>,
    /// Index of the zones by their ends.
    buckets: Buckets,
    heads: u16,
    group_cylinders: u32,
    remapped: bool,
}

/// Buckets of the table that finds the zone of an address; zones are few, so that nearly every
/// bucket holds one zone.
const BUCKETS: u64 = 1024;

impl Zones {
    pub(super) fn new(spec: &Spec) -> Zones {
        let capacity = spec.geometry.capacity.get();
        let mut first = 0;
        let zones: Vec<ZoneMap> = spec
            .layout
            .zones
            .iter()
            .map(|zone| {
                let mut map = ZoneMap::new(spec, zone, first);
                // A drive may offer less than its zones hold; the rest stays unused.
                map.end = map.end.min(capacity);
                first = map.end;
                map
            })
            .collect();
        let groups = spec.layout.zones.iter();
        let group_cylinders = groups
            .map(|zone| zone.group_cylinders(spec.layout.order))
            .max();
        Zones {
            buckets: Buckets::new(&zones, |zone| zone.end, BUCKETS),
            zones,
            heads: spec.geometry.heads,
            group_cylinders: group_cylinders.unwrap_or(1),
            remapped: spec.layout.zones.iter().any(|zone| !zone.remaps.is_empty()),
        }
    }

    /// Cylinders in the largest group within which addresses need not follow the order of
    /// cylinders.
    pub(super) fn group_cylinders(&self) -> u32 {
        self.group_cylinders
    }

    pub(super) fn has_remaps(&self) -> bool {
        self.remapped
    }

    /// The cylinders that hold remapped sectors of other cylinders.
    pub(super) fn strays(&self) -> impl Iterator<Item = u32> + '_ {
        self.zones.iter().flat_map(ZoneMap::strays)
    }

    pub(super) fn len(&self) -> usize {
        self.zones.len()
    }

    pub(super) fn zone(&self, index: usize) -> &ZoneMap {
        &self.zones[index]
    }

    /// The zone of an address, which is below the capacity.
    #[inline]
    pub(super) fn of(&self, address: u64) -> &ZoneMap {
        &self.zones[self.index_of(address)]
    }

    /// The number of that zone.
    #[inline]
    pub(super) fn index_of(&self, address: u64) -> usize {
        self.buckets.until(&self.zones, |zone| zone.end, address)
    }

    /// The zone of a track, if it is in one.
    pub(super) fn of_track(&self, track: Track) -> Option<&ZoneMap> {
        let after = self
            .zones
            .partition_point(|zone| zone.first_cylinder <= track.cylinder.0);
        let zone = &self.zones[after.checked_sub(1)?];
        let exists = track.cylinder.0 <= zone.last_cylinder && track.head.0 < self.heads;
        exists.then_some(zone)
    }
}
