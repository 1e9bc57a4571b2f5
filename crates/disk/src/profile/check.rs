//! Checks of a profile. Nothing built on a checked profile can fail.

use super::{
    FirmwarePolicy, MapPart, MapSpec, Order, Profile, ProfileError, ReadAhead, SeekCurve, Skew,
    Sparing, Spec, WriteBack, Zone,
};
use crate::layout::Layout;
use headtime_config::Place;
use headtime_units::Nanos;
use std::fmt::Display;
use std::sync::Arc;

type Check = Result<(), ProfileError>;

/// The longest time that a profile may give for anything the drive does.
const TIME_MAX: Nanos = Nanos::from_secs(4);
/// The longest time that a profile may give for a sector on its way to the host: a hundred times the time of any disk.
/// For all commands that a drive holds, each of [`Sectors::REQUEST_MAX`], this sums to seven years.
///
/// [`Sectors::REQUEST_MAX`]: headtime_units::Sectors::REQUEST_MAX
const SECTOR_LONGEST: Nanos = Nanos::from_millis(100);
/// The longest distance in a seek curve, in cylinders.
const SEEK_CYLINDERS_MAX: u32 = 1 << 24;
/// The largest capacity in sectors; keeps products in 64 bits.
const MOST_SECTORS: u64 = 1 << 40;

impl Profile {
    /// Changes a copy of the profile and checks it again.
    ///
    /// # Errors
    ///
    /// The first key that no longer fits.
    ///
    /// # Examples
    ///
    /// ```
    /// let drive = headtime_disk::profile::by_name("atlas10k").unwrap();
    /// let plain = drive.with(|spec| spec.access.zero_latency_read = false).unwrap();
    /// assert!(!plain.access.zero_latency_read);
    /// ```
    pub fn with(&self, change: impl FnOnce(&mut Spec)) -> Result<Profile, ProfileError> {
        let mut spec = Spec::clone(self);
        change(&mut spec);
        spec.check()
    }
}

impl Spec {
    /// Checks that everything is in range and fits together.
    ///
    /// # Errors
    ///
    /// The first field that is not; the error names the key as the text form spells it.
    pub fn check(self) -> Result<Profile, ProfileError> {
        check(&self)?;
        Ok(Profile(Arc::new(self)))
    }
}

/// A value that is out of its range.
fn range(key: impl Into<String>, value: impl Display, allowed: impl Display) -> ProfileError {
    conflict(key, format!("{value} is not allowed; allowed is {allowed}"))
}

/// Values that are each in range, but not together.
fn conflict(key: impl Into<String>, why: impl Into<String>) -> ProfileError {
    ProfileError::new(Place::NoText, key, why)
}

fn check(spec: &Spec) -> Check {
    name(spec)?;
    geometry(spec)?;
    zones(spec)?;
    seek(spec)?;
    cache(spec)?;
    times(spec)?;
    if !(1..=256).contains(&spec.queue.depth) {
        return Err(range("queue.depth", spec.queue.depth, "1 to 256"));
    }
    noise(spec)
}

fn within(key: &str, value: u64, least: u64, most: u64) -> Check {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(range(key, value, format!("{least} to {most}")))
    }
}

/// A part between 0 and 1; NaN is none.
fn part(key: &str, value: f64) -> Check {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(range(key, value, "0 to 1"))
    }
}

fn time(key: &str, value: Nanos) -> Check {
    time_within(key, value, TIME_MAX)
}

fn time_within(key: &str, value: Nanos, most: Nanos) -> Check {
    if value <= most {
        Ok(())
    } else {
        Err(range(key, value, format!("0 to {most}")))
    }
}

fn name(spec: &Spec) -> Check {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if spec.name.is_empty() || !spec.name.chars().all(fits) {
        return Err(range(
            "name",
            format!("\"{}\"", spec.name),
            "lower-case letters, digits, hyphens and points",
        ));
    }
    Ok(())
}

fn geometry(spec: &Spec) -> Check {
    let geometry = &spec.geometry;
    within("geometry.heads", u64::from(geometry.heads), 1, 255)?;
    within(
        "geometry.cylinders",
        u64::from(geometry.cylinders),
        1,
        1 << 24,
    )?;
    if !matches!(geometry.sector_bytes, 256 | 512 | 4096) {
        return Err(range(
            "geometry.sector",
            format!("{}B", geometry.sector_bytes),
            "256B, 512B or 4KiB",
        ));
    }
    let physical = geometry.physical_sector_bytes;
    let is_emulated = geometry.sector_bytes == 512 && physical == 4096;
    if physical != geometry.sector_bytes && !is_emulated {
        return Err(range(
            "geometry.physical_sector",
            format!("{physical}B"),
            "the size of a logical sector, or 4KiB for 512B",
        ));
    }
    let rpm = spec.rotation.rpm;
    if !(60.0..=60_000.0).contains(&rpm) {
        return Err(range("rotation.rpm", rpm, "60 to 60000"));
    }
    match spec.layout.order {
        Order::SurfaceSerpentine { tracks } => {
            within("layout.tracks_per_surface", u64::from(tracks), 1, 1 << 20)?;
        }
        Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => {}
    }
    let has_choice = matches!(
        spec.layout.sparing,
        Sparing::CylinderEnd | Sparing::CylinderFront | Sparing::ZoneEnd
    );
    if !spec.layout.slips_use_spares && !has_choice {
        return Err(conflict(
            "layout.slips_use_spares",
            "false means something with sparing = \"cylinder-end\", \"cylinder-front\" or \
             \"zone-end\" only",
        ));
    }
    match spec.layout.sparing {
        Sparing::RangeEnd { cylinders } => {
            within("layout.sparing_cylinders", u64::from(cylinders), 1, 1 << 24)
        }
        _ => Ok(()),
    }
}

fn map(spec: &Spec, map: &MapSpec) -> Check {
    let layout = &spec.layout;
    let plain = (Order::CylinderFirst, Sparing::DiskEnd, true, 0);
    let others = (
        layout.order,
        layout.sparing,
        layout.slips_use_spares,
        layout.zones.len(),
    );
    if others != plain {
        return Err(conflict(
            "layout",
            "a layout is a map, or zones with an order and a sparing",
        ));
    }
    let aligned = u64::from(spec.geometry.sectors_per_physical());
    for (group, strips) in map.groups.iter().enumerate() {
        for (index, strip) in strips.iter().enumerate() {
            let key = format!("layout.groups[{group}].strips[{index}]");
            part(&key, strip.offset)?;
            part(&key, strip.skew)?;
            if let MapPart::Track {
                sectors_per_track, ..
            } = strip.of
                && !(strip.places.is_multiple_of(aligned)
                    && u64::from(sectors_per_track).is_multiple_of(aligned))
            {
                return Err(range(
                    key,
                    format!("{} places of {sectors_per_track} slots", strip.places),
                    format!("multiples of {aligned}, since sectors on the medium hold so many"),
                ));
            }
        }
    }
    for (index, track) in map.spare_tracks.iter().enumerate() {
        part(&format!("layout.spare_tracks[{index}]"), track.offset)?;
    }
    let capacity = spec.geometry.capacity.get();
    let room = Layout::map_capacity(spec, map, Some(capacity)).map_err(ProfileError::from)?;
    within("geometry.capacity_sectors", capacity, 1, MOST_SECTORS)?;
    if capacity > room {
        return Err(conflict(
            "geometry.capacity_sectors",
            format!("{capacity} is more than the map has room for, which is {room}"),
        ));
    }
    Ok(())
}

fn zones(spec: &Spec) -> Check {
    if let Some(found) = &spec.layout.map {
        return map(spec, found);
    }
    if spec.layout.zones.is_empty() {
        return Err(conflict("layout.zones", "a drive has at least one zone"));
    }
    within("layout.zones", spec.layout.zones.len() as u64, 1, 10_000)?;
    let mut free = 0;
    let mut capacity = 0;
    for (index, zone) in spec.layout.zones.iter().enumerate() {
        let key = format!("layout.zones[{index}]");
        if zone.last_cylinder < zone.first_cylinder {
            return Err(range(
                format!("{key}.cylinders"),
                format!("[{}, {}]", zone.first_cylinder, zone.last_cylinder),
                "[first, last] with the first not above the last",
            ));
        }
        if zone.first_cylinder < free {
            return Err(conflict(
                format!("{key}.cylinders"),
                format!(
                    "[{}, {}] overlaps zone {}, which ends at cylinder {}; zones are listed in \
                     order and share no cylinder",
                    zone.first_cylinder,
                    zone.last_cylinder,
                    index - 1,
                    free - 1
                ),
            ));
        }
        if zone.last_cylinder >= spec.geometry.cylinders {
            return Err(range(
                format!("{key}.cylinders"),
                format!("[{}, {}]", zone.first_cylinder, zone.last_cylinder),
                format!(
                    "cylinders 0 to {} (geometry.cylinders = {})",
                    spec.geometry.cylinders - 1,
                    spec.geometry.cylinders
                ),
            ));
        }
        free = zone.last_cylinder + 1;
        check_zone(spec, zone, &key)?;
        capacity += Layout::zone_capacity(spec, zone);
    }
    within(
        "geometry.capacity_sectors",
        spec.geometry.capacity.get(),
        1,
        MOST_SECTORS,
    )?;
    if spec.geometry.capacity.get() > capacity {
        return Err(conflict(
            "geometry.capacity_sectors",
            format!(
                "{} is more than the zones have room for, which is {capacity}",
                spec.geometry.capacity
            ),
        ));
    }
    Ok(())
}

fn check_zone(spec: &Spec, zone: &Zone, key: &str) -> Check {
    let per_track = u64::from(zone.sectors_per_track);
    within(&format!("{key}.sectors_per_track"), per_track, 1, 65_535)?;
    let aligned = u64::from(spec.geometry.sectors_per_physical());
    if !per_track.is_multiple_of(aligned) {
        return Err(range(
            format!("{key}.sectors_per_track"),
            per_track,
            format!("a multiple of {aligned}, since sectors on the medium hold so many"),
        ));
    }
    by_head(spec, zone, key)?;
    for (name, skew) in [
        ("offset", Some(zone.offset)),
        ("track_skew", Some(zone.track_skew)),
        ("cylinder_skew", Some(zone.cylinder_skew)),
        ("group_skew", zone.group_skew),
    ] {
        match skew {
            Some(Skew::Sectors(sectors)) => {
                within(&format!("{key}.{name}"), u64::from(sectors), 0, 65_535)?;
            }
            Some(Skew::Turns(turns)) => part(&format!("{key}.{name}"), turns)?,
            None => {}
        }
    }
    let by_surface = matches!(spec.layout.order, Order::SurfaceSerpentine { .. });
    if zone.group_skew.is_some() && !by_surface {
        return Err(conflict(
            format!("{key}.group_skew"),
            "means something with order = \"surface-serpentine\" only",
        ));
    }
    if let Some(group) = zone.tracks_per_surface {
        let key = format!("{key}.tracks_per_surface");
        if !by_surface {
            let why = "means something with order = \"surface-serpentine\" only";
            return Err(conflict(key, why));
        }
        within(&key, u64::from(group), 1, 1 << 20)?;
    }
    let cylinders = u64::from(zone.cylinders());
    let tracks = cylinders * u64::from(spec.geometry.heads);
    let places = cylinders * zone.sectors_per_cylinder(spec.geometry.heads);
    within(key, places, 1, MOST_SECTORS)?;
    let (spared, area) = match spec.layout.sparing {
        Sparing::TracksAtZoneEnd => (tracks, "tracks in the zone"),
        Sparing::TrackEnd => (per_track, "sectors on a track"),
        Sparing::CylinderEnd | Sparing::CylinderFront => (
            u64::from(spec.geometry.heads) * per_track,
            "sectors on a cylinder",
        ),
        Sparing::RangeEnd { cylinders: range } => (
            u64::from(range) * u64::from(spec.geometry.heads) * per_track,
            "sectors in a range",
        ),
        Sparing::ZoneEnd | Sparing::DiskEnd => (places, "sectors in the zone"),
    };
    if zone.spares >= spared {
        return Err(range(
            format!("{key}.spares"),
            zone.spares,
            format!("less than the {spared} {area}"),
        ));
    }
    if spec.layout.sparing == Sparing::DiskEnd && zone.spares != 0 {
        return Err(range(
            format!("{key}.spares"),
            zone.spares,
            "0, since sparing = \"disk-end\" keeps no spares in a zone",
        ));
    }
    if zone.reserved >= places {
        return Err(range(
            format!("{key}.reserved"),
            zone.reserved,
            format!("less than the {places} sectors of the zone"),
        ));
    }
    slips(spec, zone, key)?;
    if Layout::zone_capacity(spec, zone) == 0 {
        return Err(conflict(key, "no sector of the zone is left for data"));
    }
    remaps(spec, zone, key)
}

/// Tracks that differ by head.
fn by_head(spec: &Spec, zone: &Zone, key: &str) -> Check {
    if zone.by_head.is_empty() {
        return Ok(());
    }
    let tracks = format!("{key}.sectors_per_track");
    let (given, heads) = (zone.by_head.len(), usize::from(spec.geometry.heads));
    // A list of one would be read back as a number.
    if given != heads || heads == 1 {
        let why = format!(
            "has a list of {given} numbers; allowed are one, or one for each of {heads} heads"
        );
        return Err(conflict(tracks, why));
    }
    let aligned = u64::from(spec.geometry.sectors_per_physical());
    for slots in zone.by_head.iter().map(|slots| u64::from(*slots)) {
        within(&tracks, slots, 1, 65_535)?;
        if !slots.is_multiple_of(aligned) {
            let why = format!("a multiple of {aligned}, since sectors on the medium hold so many");
            return Err(range(tracks, slots, why));
        }
    }
    let longest = zone.by_head.iter().max();
    if longest != Some(&zone.sectors_per_track) {
        let allowed = "that of the longest track by head";
        return Err(range(tracks, zone.sectors_per_track, allowed));
    }
    if !matches!(spec.layout.sparing, Sparing::ZoneEnd | Sparing::DiskEnd) {
        let why = "tracks differ by head with sparing = \"zone-end\" or \"disk-end\" only";
        return Err(conflict(tracks, why));
    }
    for (name, skew) in [
        ("offset", Some(zone.offset)),
        ("track_skew", Some(zone.track_skew)),
        ("cylinder_skew", Some(zone.cylinder_skew)),
        ("group_skew", zone.group_skew),
    ] {
        if let Some(Skew::Sectors(sectors @ 1..)) = skew {
            let allowed = "a part of a turn, since tracks differ by head";
            return Err(range(format!("{key}.{name}"), sectors, allowed));
        }
    }
    Ok(())
}

fn slips(spec: &Spec, zone: &Zone, key: &str) -> Check {
    let key = format!("{key}.slips");
    let (in_zone, unit) = slip_units(spec, zone);
    for pair in zone.slips.windows(2) {
        if pair[0] >= pair[1] {
            return Err(range(
                key,
                format!("{}, {}", pair[0], pair[1]),
                "ascending numbers, each once",
            ));
        }
    }
    if let Some(&last) = zone.slips.last().filter(|&&last| last >= in_zone) {
        return Err(range(
            key,
            last,
            format!("less than the {in_zone} {unit} of the zone"),
        ));
    }
    let per_area = match spec.layout.sparing {
        // Slips make the zone shorter, so spares cannot run out.
        _ if !spec.layout.slips_use_spares => None,
        Sparing::TrackEnd => Some(u64::from(zone.sectors_per_track)),
        Sparing::CylinderEnd | Sparing::CylinderFront => {
            Some(u64::from(spec.geometry.heads) * u64::from(zone.sectors_per_track))
        }
        Sparing::RangeEnd { cylinders } => Some(
            u64::from(cylinders)
                * u64::from(spec.geometry.heads)
                * u64::from(zone.sectors_per_track),
        ),
        Sparing::TracksAtZoneEnd | Sparing::ZoneEnd => Some(in_zone),
        Sparing::DiskEnd => None,
    };
    let Some(per_area) = per_area else {
        return Ok(());
    };
    let mut rest = zone.slips.as_slice();
    while let Some(&first) = rest.first() {
        let area = first / per_area;
        let count = rest.partition_point(|slip| slip / per_area == area);
        let whole = (area + 1) * per_area <= in_zone;
        let spares = if whole { zone.spares } else { 0 };
        if count as u64 > spares {
            return Err(conflict(
                key,
                format!(
                    "{count} slips from {first} on share an area of {per_area} {unit} with \
                     {spares} spares; there cannot be more slips than spares"
                ),
            ));
        }
        rest = &rest[count..];
    }
    Ok(())
}

/// Largest number of slips in a zone, and the unit that slips count.
fn slip_units(spec: &Spec, zone: &Zone) -> (u64, &'static str) {
    let tracks = u64::from(zone.cylinders()) * u64::from(spec.geometry.heads);
    if spec.layout.sparing == Sparing::TracksAtZoneEnd {
        (tracks, "tracks")
    } else {
        let per_cylinder = zone.sectors_per_cylinder(spec.geometry.heads);
        (u64::from(zone.cylinders()) * per_cylinder, "sectors")
    }
}

fn remaps(spec: &Spec, zone: &Zone, key: &str) -> Check {
    let key = format!("{key}.remaps");
    let (in_zone, unit) = slip_units(spec, zone);
    let mut targets: Vec<u64> = zone.remaps.iter().map(|&(_, to)| to).collect();
    targets.sort_unstable();
    let ascending = zone.remaps.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let is_moved = |place: &u64| {
        zone.remaps
            .binary_search_by_key(place, |pair| pair.0)
            .is_ok()
    };
    if !ascending
        || targets.windows(2).any(|pair| pair[0] == pair[1])
        || targets.iter().any(is_moved)
    {
        return Err(conflict(
            key,
            "pairs [from, to] are listed in ascending order of from, and no place occurs twice",
        ));
    }
    if zone.remaps.is_empty() {
        return Ok(());
    }
    let is_spare = Layout::zone_spares(spec, zone);
    for &(from, to) in &zone.remaps {
        let pair = format!("[{from}, {to}]");
        if from >= in_zone || to >= in_zone {
            return Err(range(
                key,
                pair,
                format!("less than the {in_zone} {unit} of the zone"),
            ));
        }
        if !is_spare(to) {
            return Err(range(key, pair, "a move to a spare place"));
        }
        if zone.slips.binary_search(&from).is_ok() {
            return Err(conflict(key, format!("{pair}: {from} is slipped already")));
        }
    }
    Ok(())
}

fn seek(spec: &Spec) -> Check {
    curve(spec, &spec.seek.read, "seek.read")?;
    if let Some(write) = &spec.seek.write {
        curve(spec, write, "seek.write")?;
    }
    time("seek.head_switch", spec.seek.head_switch)?;
    let settle = spec.seek.write_settle;
    if settle.abs() > TIME_MAX {
        return Err(range(
            "seek.write_settle",
            settle,
            format!("-{TIME_MAX} to {TIME_MAX}"),
        ));
    }
    Ok(())
}

fn curve(spec: &Spec, curve: &SeekCurve, key: &str) -> Check {
    match curve {
        SeekCurve::Table { points, .. } => {
            let key = format!("{key}.table_us");
            let Some(&(first, _)) = points.first() else {
                return Err(conflict(key, "at least one point [cylinders, us]"));
            };
            if first == 0 {
                return Err(range(key, 0, "distances from 1 cylinder up"));
            }
            let farthest = points.last().map_or(first, |&(distance, _)| distance);
            if farthest > SEEK_CYLINDERS_MAX {
                return Err(range(
                    key,
                    farthest,
                    format!("distances of up to {SEEK_CYLINDERS_MAX} cylinders"),
                ));
            }
            for pair in points.windows(2) {
                if pair[0].0 >= pair[1].0 {
                    return Err(range(
                        key,
                        format!("{}, {}", pair[0].0, pair[1].0),
                        "ascending distances, each once",
                    ));
                }
            }
            for &(_, at) in points {
                time(&key, at)?;
            }
        }
        SeekCurve::Hpl {
            root_base,
            root_factor,
            line_base,
            line_factor,
            first,
            split,
        } => {
            within(
                &format!("{key}.split"),
                u64::from(*split),
                0,
                u64::from(SEEK_CYLINDERS_MAX),
            )?;
            for (name, value) in [
                ("root_base", root_base),
                ("root_factor", root_factor),
                ("line_base", line_base),
                ("line_factor", line_factor),
            ] {
                time(&format!("{key}.{name}"), *value)?;
            }
            let key = format!("{key}.first_us");
            if !matches!(first.len(), 0 | 1 | 10) {
                return Err(range(
                    key,
                    format!("{} times", first.len()),
                    "1 or 10 times, or the key left out",
                ));
            }
            for &at in first {
                time(&key, at)?;
            }
        }
        SeekCurve::Curve {
            single,
            average,
            full,
        }
        | SeekCurve::Linear {
            single,
            average,
            full,
        } => {
            for (name, value) in [("single", single), ("average", average), ("full", full)] {
                time(&format!("{key}.{name}"), *value)?;
            }
        }
        SeekCurve::Constant(value) => time(&format!("{key}.constant"), *value)?,
    }
    // Lines may go on past the last point to where no time can be.
    let cylinders = spec.geometry.cylinders;
    for distance in [1, cylinders / 2, cylinders.saturating_sub(1)] {
        let nanos = crate::mechanics::evaluate_seek(curve, cylinders, distance);
        if distance > 0 && Nanos::from_nanos(u64::from(nanos)) > TIME_MAX {
            return Err(conflict(
                key,
                format!("a seek over {distance} cylinders would take more than {TIME_MAX}"),
            ));
        }
    }
    Ok(())
}

fn cache(spec: &Spec) -> Check {
    let cache = &spec.cache;
    let capacity = spec.geometry.capacity.get();
    within("cache.segments", u64::from(cache.segments), 1, 65_535)?;
    within(
        "cache.segment_sectors",
        u64::from(cache.segment_sectors),
        1,
        // Without a cache the segment is as large as commands need.
        if cache.enabled {
            capacity.min(u64::from(u32::MAX))
        } else {
            u64::from(u32::MAX)
        },
    )?;
    within(
        "cache.write_segments",
        u64::from(cache.write_segments),
        1,
        u64::from(cache.segments),
    )?;
    if cache.room_sectors > 0 {
        // Reads need a segment beside the dirty segments.
        let size = u64::from(cache.segment_sectors);
        within(
            "cache.room_sectors",
            u64::from(cache.room_sectors),
            size * (u64::from(cache.write_segments) + 1),
            u64::from(u32::MAX),
        )?;
    }
    within(
        "cache.read_ahead_max",
        u64::from(cache.read_ahead_max),
        0,
        u64::from(cache.segment_sectors),
    )?;
    within(
        "cache.read_ahead_min",
        u64::from(cache.read_ahead_min),
        0,
        u64::from(cache.read_ahead_max),
    )?;
    within(
        "cache.second_read_ahead_min",
        u64::from(cache.second_read_ahead_min),
        0,
        65_535,
    )?;
    part("cache.write_low_water", cache.write_low_water)?;
    part("cache.read_high_water", cache.read_high_water)?;
    if cache.dedicated_write_segment && cache.segments < 2 {
        return Err(conflict(
            "cache.dedicated_write_segment",
            "needs at least two segments (cache.segments)",
        ));
    }
    if !cache.enabled {
        for (key, used) in [
            ("cache.read_ahead", cache.read_ahead != ReadAhead::Off),
            ("cache.write_back", cache.write_back != WriteBack::Off),
            ("cache.read_free_sectors", cache.read_free_sectors),
        ] {
            if used {
                return Err(conflict(key, "needs cache.enabled = true"));
            }
        }
    }
    if cache.read_ahead == ReadAhead::Off && cache.read_ahead_max > 0 {
        return Err(range(
            "cache.read_ahead_max",
            cache.read_ahead_max,
            "0, since cache.read_ahead = \"off\"",
        ));
    }
    if cache.read_ahead == ReadAhead::Off && cache.second_read_ahead_min > 0 {
        return Err(range(
            "cache.second_read_ahead_min",
            cache.second_read_ahead_min,
            "0, since cache.read_ahead = \"off\"",
        ));
    }
    let sneaky = cache.sneaky_full_read_hits
        || cache.sneaky_partial_read_hits
        || cache.sneaky_intermediate_read_hits;
    if sneaky && spec.bus.hold_for_read {
        return Err(conflict(
            "bus.hold_for_read",
            "a drive whose hits may use the bus during other commands (cache.sneaky_..) does not \
             hold it for a whole read",
        ));
    }
    within(
        "cache.destage_runs",
        u64::from(cache.destage_runs),
        1,
        65_535,
    )?;
    time("cache.destage_age", cache.destage_age)?;
    time("cache.destage_delay", cache.destage_delay)
}

fn times(spec: &Spec) -> Check {
    for (name, value) in spec.overhead.durations() {
        time(&format!("overhead.{name}"), value)?;
    }
    if let Some(early) = &spec.overhead.early_write_disconnect {
        for (name, value) in early.durations() {
            time(&format!("overhead.early_write_disconnect.{name}"), value)?;
        }
    }
    let bus = &spec.bus;
    for (key, value) in [
        ("bus.interface_sector", bus.interface_sector),
        ("bus.read_sector", bus.read_sector),
        ("bus.write_sector", bus.write_sector),
    ] {
        time_within(key, value, SECTOR_LONGEST)?;
    }
    time("bus.arbitration", bus.arbitration)?;
    match spec.queue.policy {
        FirmwarePolicy::Fifo => Ok(()),
        FirmwarePolicy::Sptf { margin, .. } => {
            let queue = &spec.queue;
            time("queue.stream_cap", queue.stream_cap)?;
            time("queue.stream_hold", queue.stream_hold)?;
            within("queue.oldest_every", queue.oldest_every.into(), 0, 65_535)?;
            time("queue.oldest_age", queue.oldest_age)?;
            if queue.oldest_every == 0 && !queue.oldest_age.is_zero() {
                return Err(conflict(
                    "queue.oldest_age",
                    "is for oldest_every of 1 and more",
                ));
            }
            time("queue.margin", margin)
        }
    }
}

fn noise(spec: &Spec) -> Check {
    let noise = &spec.noise;
    time("noise.seek_sd", noise.seek_sd)?;
    part("noise.seek_sd_relative", noise.seek_sd_relative)?;
    time("noise.overhead_sd", noise.overhead_sd)?;
    part("noise.retried_reads", noise.retried_reads)?;
    part("noise.long_waits", noise.long_waits)?;
    within("noise.speed_ppm", u64::from(noise.speed_ppm), 0, 100_000)?;
    within("noise.wander_ppm", u64::from(noise.wander_ppm), 0, 10_000)?;
    let (least, most) = (Nanos::from_secs(1), Nanos::from_secs(86_400));
    match noise.wander_period {
        period if noise.wander_ppm == 0 && !period.is_zero() => Err(conflict(
            "noise.wander_period",
            "is for wander_ppm of 1 and more",
        )),
        period if noise.wander_ppm > 0 && !(least..=most).contains(&period) => {
            let allowed = format!("{least} to {most}");
            Err(range("noise.wander_period", period, allowed))
        }
        _ => Ok(()),
    }
}
