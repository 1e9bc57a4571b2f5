//! A drive whose host sees the sectors of the medium.

use super::{CacheSpec, Profile, ProfileError, Skew, Spec, Zone};
use headtime_config::Place;
use headtime_units::Sectors;

/// Suffix of a drive's name for the variant with 4 KiB sectors.
pub(super) const SUFFIX: &str = "-4kn";

impl Profile {
    /// This drive with sectors of 4 KiB for the host too (4Kn), in place of eight sectors of 512 bytes in each (512e).
    /// Cylinders, tracks and times stay the same. The name ends in `-4kn`.
    ///
    /// # Errors
    ///
    /// If the host sees the sectors of the medium already; if the layout is a table of tracks, or the
    /// capacity no whole number of the larger sectors.
    ///
    /// # Examples
    ///
    /// ```
    /// let drive = headtime_disk::profile::by_name("nearline-20tb").unwrap();
    /// let native = drive.native().unwrap();
    /// assert_eq!(native.geometry.sector_bytes, 4096);
    /// assert_eq!(native.geometry.capacity.get() * 8, drive.geometry.capacity.get());
    /// ```
    pub fn native(&self) -> Result<Profile, ProfileError> {
        let refused = |key: &str, why: &str| Err(ProfileError::new(Place::NoText, key, why));
        let per = self.geometry.sectors_per_physical();
        if per == 1 {
            let why = "the host sees the sectors of the medium already";
            return refused("geometry.sector", why);
        }
        if self.layout.map.is_some() {
            let why = "a table of tracks counts sectors of one size";
            return refused("layout.order", why);
        }
        if !self.geometry.capacity.get().is_multiple_of(u64::from(per)) {
            let why = "is no whole number of 4 KiB sectors";
            return refused("geometry.capacity_sectors", why);
        }
        let mut spec = Spec::clone(self);
        spec.name += SUFFIX;
        spec.model = spec.model.replace("512e", "4Kn");
        spec.geometry.sector_bytes = spec.geometry.physical_sector_bytes;
        spec.geometry.capacity = Sectors::new(spec.geometry.capacity.get() / u64::from(per));
        let in_tracks = spec.layout.sparing == super::Sparing::TracksAtZoneEnd;
        for zone in &mut spec.layout.zones {
            zone_of(zone, per, in_tracks);
        }
        cache_of(&mut spec.cache, per);
        let bus = &mut spec.bus;
        for time in [
            &mut bus.interface_sector,
            &mut bus.read_sector,
            &mut bus.write_sector,
        ] {
            *time = *time * u64::from(per);
        }
        spec.check()
    }
}

/// A zone in sectors `per` times as large. A large sector is bad, or remapped, if any part is.
fn zone_of(zone: &mut Zone, per: u32, in_tracks: bool) {
    let slots = zone.sectors_per_track;
    for skew in [
        Some(&mut zone.offset),
        Some(&mut zone.track_skew),
        Some(&mut zone.cylinder_skew),
        zone.group_skew.as_mut(),
    ]
    .into_iter()
    .flatten()
    {
        *skew = match *skew {
            Skew::Sectors(sectors) if sectors % per == 0 => Skew::Sectors(sectors / per),
            Skew::Sectors(sectors) => Skew::Turns(f64::from(sectors % slots) / f64::from(slots)),
            turns @ Skew::Turns(_) => turns,
        };
    }
    zone.sectors_per_track /= per;
    zone.by_head.iter_mut().for_each(|slots| *slots /= per);
    if in_tracks {
        return;
    }
    let per = u64::from(per);
    zone.reserved = zone.reserved.div_ceil(per);
    zone.spares /= per;
    zone.slips.iter_mut().for_each(|place| *place /= per);
    zone.slips.dedup();
    let larger = |&(from, to): &(u64, u64)| (from / per, to / per);
    zone.remaps = zone.remaps.iter().map(larger).collect();
    zone.remaps.dedup_by_key(|(from, _)| *from);
}

fn cache_of(cache: &mut CacheSpec, per: u32) {
    cache.segment_sectors = (cache.segment_sectors / per).max(1);
    cache.room_sectors /= per;
    cache.read_ahead_max = (cache.read_ahead_max / per).min(cache.segment_sectors);
    cache.read_ahead_min = cache.read_ahead_min.div_ceil(per).min(cache.read_ahead_max);
    cache.second_read_ahead_min = cache.second_read_ahead_min.div_ceil(per);
}

#[cfg(test)]
mod tests {
    use super::super::by_name;
    use super::*;
    use crate::layout::Layout;
    use headtime_units::Lba;

    #[test]
    fn a_native_drive_has_the_same_sectors_in_the_same_places() {
        let drive = by_name("nearline-20tb").unwrap();
        let native = by_name("nearline-20tb-4kn").unwrap();
        assert_eq!(native, drive.native().unwrap());
        assert_eq!(native.name, "nearline-20tb-4kn");
        assert!(native.model.contains("4Kn") && !native.model.contains("512e"));
        let (small, large) = (Layout::new(&drive), Layout::new(&native));
        assert_eq!(small.capacity().get(), 8 * large.capacity().get());
        let slipped = |profile: &Profile| profile.layout.slipped();
        assert_eq!(slipped(&drive), 8 * slipped(&native));
        let capacity = large.capacity().get();
        let anywhere = (0..20_000).map(|n| n * 48_271_u64.pow(3) % capacity);
        let ends = large.zones().flat_map(|zone| {
            let end = zone.extent.end().get();
            [zone.extent.start.get(), end - 1]
        });
        for lba in anywhere.chain(ends) {
            let [found, expected] = [(&large, lba), (&small, 8 * lba)]
                .map(|(layout, lba)| layout.locate(Lba::new(lba)));
            assert_eq!(found.track, expected.track, "{lba}");
            assert_eq!(found.slot * 8, expected.slot, "{lba}");
            let apart = found.angle - expected.angle;
            let apart = apart.to_bits().min(apart.to_bits().wrapping_neg());
            // Angles of slots are rounded.
            assert!(apart < 1 << 12, "{lba}: {apart}");
        }
    }

    #[test]
    fn every_shipped_drive_with_larger_sectors_can_be_native_and_no_other() {
        for shipped in super::super::shipped() {
            let profile = shipped.profile();
            let native = by_name(&format!("{}-4kn", shipped.name));
            let larger = profile.geometry.sectors_per_physical() > 1;
            assert_eq!(native.is_some(), larger, "{}", shipped.name);
            if let Some(native) = native {
                assert_eq!(native.geometry.sectors_per_physical(), 1);
                let again = Profile::from_toml("again", &native.to_toml()).unwrap();
                assert_eq!(again, native);
            }
        }
        let error = by_name("atlas10k").unwrap().native().unwrap_err();
        assert_eq!(
            error.to_string(),
            "geometry.sector: the host sees the sectors of the medium already"
        );
    }
}
