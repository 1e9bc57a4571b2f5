//! Invented drives that could have been built, for tests of code that learns a drive or must work with any drive.

use super::{
    AccessSpec, BusSpec, CacheSpec, Destage, FirmwarePolicy, Geometry, Interpolation, LayoutSpec,
    NoiseSpec, Order, OverheadSpec, Preseek, Profile, QueueSpec, ReadAhead, RequestedData,
    Rotation, SeekCurve, SeekSpec, Skew, Sparing, Spec, Trust, WriteBack, Zone,
};
use crate::layout::Layout;
use headtime_units::{Nanos, Sectors, SignedNanos};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Prefix of the names of such drives.
pub(super) const PREFIX: &str = "plausible-";

/// A drive drawn from a seed: the same on every machine, in every version with the same generator.
///
/// The drive belongs to one of four eras (1993, 1999, 2007, 2020) and has the typical properties of its time. Drawn are
/// speed, surfaces, zones, the order of addresses, spares, defects, buffer, overheads, queue and noise. The skews hide
/// the switches, and the seek curve has the shape that measured curves share. The ranges come from the shipped profiles
/// and from the drives whose figures these profiles rest on.
///
/// # Examples
///
/// ```
/// let drive = headtime_disk::profile::plausible(17);
/// assert_eq!(drive, headtime_disk::profile::by_name("plausible-17").unwrap());
/// ```
pub fn plausible(seed: u64) -> Profile {
    let mut draw = Draw(Pcg32::seed_from_u64(seed));
    let era = *draw.pick(&ERAS);
    let spec = era.drive(&mut draw, seed);
    spec.check()
        .unwrap_or_else(|error| panic!("seed {seed} gives no drive: {error}"))
}

/// A PCG XSH RR 64/32 generator (O'Neill 2014). The stream defines the meaning of a seed.
struct Draw(Pcg32);

impl Draw {
    /// 0 to less than 1.
    fn part(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / 4_294_967_296.0
    }

    fn within(&mut self, [low, high]: [f64; 2]) -> f64 {
        low + (high - low) * self.part()
    }

    /// A whole number, both ends in it.
    fn number(&mut self, [low, high]: [u64; 2]) -> u64 {
        let bits = u64::from(self.0.next_u32()) << 32 | u64::from(self.0.next_u32());
        low + bits % (high - low + 1)
    }

    fn small(&mut self, [low, high]: [u32; 2]) -> u32 {
        self.number([u64::from(low), u64::from(high)]) as u32
    }

    fn chance(&mut self, part: f64) -> bool {
        self.part() < part
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let last = from.len() as u64 - 1;
        &from[self.number([0, last]) as usize]
    }

    fn micros(&mut self, range: [f64; 2]) -> Nanos {
        Nanos::from_micros(self.within(range) as u64)
    }
}

/// Ranges of the properties of an era's drives.
///
/// Invariants:
///
/// - `low ≤ high` for each pair `[low, high]`.
/// - `heads`, `cylinders`, `zones` and `segments` are at least 1; `0 < innermost < 1`.
/// - `rpm`, `bus` and `depth` are not empty.
/// - `by_surface` ⇔ `year ≥ 2007`.
#[derive(Clone, Copy)]
struct Era {
    year: u32,
    rpm: &'static [u32],
    heads: [u32; 2],
    cylinders: [u32; 2],
    /// Sectors of 512 bytes on the outermost tracks.
    outermost: [f64; 2],
    /// Sectors on the innermost tracks as a part of the outermost.
    innermost: [f64; 2],
    zones: [u32; 2],
    /// Mean seek in ms.
    seek: [f64; 2],
    /// Head switch, and further settling of a write, in us.
    switch: [f64; 2],
    settle: [f64; 2],
    /// Buffer in sectors.
    buffer: [u32; 2],
    segments: [u32; 2],
    /// MB/s.
    bus: &'static [f64],
    /// Commands in the drive.
    depth: &'static [u32],
    /// Addresses go along surfaces.
    by_surface: bool,
    /// Bad sectors of the medium in a zone, at most.
    defects: u32,
}

const ERAS: [Era; 4] = [
    Era {
        year: 1993,
        rpm: &[4002, 4500, 5400, 6300, 7200],
        heads: [2, 20],
        cylinders: [1_800, 4_200],
        outermost: [70.0, 150.0],
        innermost: [0.5, 0.72],
        zones: [4, 12],
        seek: [8.0, 13.0],
        switch: [500.0, 1_500.0],
        settle: [200.0, 900.0],
        buffer: [256, 2_048],
        segments: [1, 4],
        bus: &[5.0, 10.0, 20.0],
        depth: &[1, 1, 2, 8],
        by_surface: false,
        defects: 12,
    },
    Era {
        year: 1999,
        rpm: &[7200, 10_001, 10_025, 10_033, 15_000],
        heads: [2, 24],
        cylinders: [5_500, 14_500],
        outermost: [170.0, 480.0],
        innermost: [0.6, 0.72],
        zones: [8, 26],
        seek: [3.8, 8.6],
        switch: [150.0, 1_100.0],
        settle: [130.0, 500.0],
        buffer: [1_024, 8_192],
        segments: [3, 16],
        bus: &[20.0, 40.0, 80.0, 160.0],
        depth: &[1, 8, 16, 64],
        by_surface: false,
        defects: 40,
    },
    Era {
        year: 2007,
        rpm: &[5400, 7200, 7200, 10_000],
        heads: [1, 8],
        cylinders: [80_000, 190_000],
        outermost: [900.0, 1_900.0],
        innermost: [0.48, 0.6],
        zones: [14, 34],
        seek: [7.5, 13.0],
        switch: [300.0, 1_200.0],
        settle: [100.0, 500.0],
        buffer: [4_096, 65_536],
        segments: [8, 32],
        bus: &[150.0, 300.0],
        depth: &[1, 31, 32],
        by_surface: true,
        defects: 30,
    },
    Era {
        year: 2020,
        rpm: &[5400, 7200, 7200, 7200],
        heads: [2, 20],
        cylinders: [300_000, 560_000],
        outermost: [3_800.0, 5_400.0],
        innermost: [0.44, 0.52],
        zones: [30, 180],
        seek: [7.2, 10.5],
        switch: [300.0, 900.0],
        settle: [80.0, 250.0],
        buffer: [262_144, 1_000_000],
        segments: [32, 128],
        bus: &[600.0, 1_200.0],
        depth: &[32, 128],
        by_surface: true,
        defects: 25,
    },
];

impl Era {
    fn drive(&self, draw: &mut Draw, seed: u64) -> Spec {
        let medium = match self.year {
            2020 => *draw.pick(&[(512, 4096), (512, 4096), (4096, 4096), (512, 512)]),
            _ => (512, 512),
        };
        let geometry = Geometry {
            capacity: Sectors::ZERO,
            cylinders: draw.small(self.cylinders),
            heads: draw.small(self.heads) as u16,
            sector_bytes: medium.0,
            physical_sector_bytes: medium.1,
        };
        // Some speeds are a little above the nominal speed, as with real units.
        let rpm = f64::from(*draw.pick(self.rpm));
        let rotation = Rotation { rpm };
        let seek = self.seek(draw, geometry.cylinders);
        let provenance = "Drawn from a seed within the ranges of drives of the time; no drive.";
        let mut spec = Spec {
            name: format!("{PREFIX}{seed}"),
            model: format!("A drive that could have been, of about {}", self.year),
            provenance: provenance.to_owned(),
            trust: KEYS.map(|key| (key.to_owned(), Trust::Assumed)).to_vec(),
            geometry,
            rotation,
            layout: LayoutSpec {
                order: self.order(draw),
                sparing: self.sparing(draw),
                slips_use_spares: true,
                zones: Vec::new(),
                map: None,
            },
            seek,
            access: AccessSpec {
                zero_latency_read: draw.chance(0.5),
                zero_latency_write: draw.chance(0.5),
                ..AccessSpec::default()
            },
            cache: CacheSpec::default(),
            overhead: OverheadSpec::default(),
            bus: BusSpec::default(),
            queue: QueueSpec::default(),
            noise: NoiseSpec {
                seek_sd: draw.micros([5.0, 30.0]),
                seek_sd_relative: draw.within([0.0, 0.015]),
                overhead_sd: draw.micros([5.0, 50.0]),
                speed_ppm: draw.small([0, 1_000]),
                ..NoiseSpec::default()
            },
        };
        self.zones(draw, &mut spec);
        defects(self.defects, draw, &mut spec);
        let room = |zone| Layout::zone_capacity(&spec, zone);
        let all: u64 = spec.layout.zones.iter().map(room).sum();
        let per = u64::from(spec.geometry.sectors_per_physical());
        // Makers offer round numbers.
        let offered = (all - draw.number([0, all / 2_000])) / per * per;
        spec.geometry.capacity = Sectors::new(offered.max(per));
        self.cache(draw, &mut spec);
        self.electronics(draw, &mut spec);
        spec
    }

    fn order(&self, draw: &mut Draw) -> Order {
        match self.by_surface {
            true => Order::SurfaceSerpentine {
                tracks: *draw.pick(&[16, 32, 50, 64, 100, 128, 160]),
            },
            false => *draw.pick(&[
                Order::CylinderFirst,
                Order::Serpentine,
                Order::SerpentineThroughout,
            ]),
        }
    }

    fn sparing(&self, draw: &mut Draw) -> Sparing {
        match self.by_surface {
            true => *draw.pick(&[Sparing::ZoneEnd, Sparing::ZoneEnd, Sparing::DiskEnd]),
            false => *draw.pick(&[
                Sparing::ZoneEnd,
                Sparing::ZoneEnd,
                Sparing::DiskEnd,
                Sparing::TrackEnd,
                Sparing::CylinderEnd,
                Sparing::CylinderFront,
                Sparing::TracksAtZoneEnd,
                Sparing::RangeEnd { cylinders: 10 },
            ]),
        }
    }

    /// The shape that measured curves share: time over mean seek, by part of the stroke, with the range over
    /// eight drives.
    fn seek(&self, draw: &mut Draw, cylinders: u32) -> SeekSpec {
        let mean = draw.within(self.seek) * 1_000.0;
        // A drive is above or below the others over a part of the stroke, not point by point.
        let [near, far] = [[-1.0, 1.0]; 2].map(|range| draw.within(range));
        let stroke = f64::from(cylinders - 1);
        let mut points: Vec<(u32, Nanos)> = Vec::new();
        let mut distance = 1.0;
        while distance < stroke {
            let time = mean * shape(distance / stroke, near, far);
            points.push((distance as u32, Nanos::from_micros(time as u64)));
            distance = (distance * 1.6).max(distance + 1.0);
        }
        let full = mean * shape(1.0, near, far);
        points.push((cylinders - 1, Nanos::from_micros(full as u64)));
        points.dedup_by_key(|(distance, _)| *distance);
        let settle = draw.micros(self.settle);
        let times = points
            .iter()
            .map(|&(distance, time)| (distance, time + settle));
        let write = SeekCurve::Table {
            interpolation: Interpolation::Log,
            points: times.collect(),
        };
        // Writes have either a curve of their own or a constant further settling.
        let apart = draw.chance(0.3);
        let read = SeekCurve::Table {
            interpolation: *draw.pick(&[Interpolation::Log, Interpolation::Linear]),
            points,
        };
        SeekSpec {
            read,
            write: apart.then_some(write),
            head_switch: draw.micros(self.switch),
            write_settle: SignedNanos::from(if apart { Nanos::ZERO } else { settle }),
        }
    }

    fn zones(&self, draw: &mut Draw, spec: &mut Spec) {
        let per_sector = spec.geometry.sector_bytes / 512;
        let per = spec.geometry.sectors_per_physical();
        let heads = spec.geometry.heads;
        let outermost = draw.within(self.outermost) / f64::from(per_sector);
        let ratio = draw.within(self.innermost);
        let count = draw.small(self.zones);
        let slots = |mean: f64| ((mean / f64::from(per)) as u32).max(8) * per;
        let varies = self.year == 2020 && heads > 1 && draw.chance(0.5);
        let densities: Vec<f64> = (0..heads).map(|_| draw.within([0.93, 1.07])).collect();
        let grouped = self.by_surface && draw.chance(0.4);
        let turn = spec.rotation.turn();
        let reached = |spec: &Spec, distance: u32| {
            let nanos = crate::mechanics::evaluate_seek(
                &spec.seek.read,
                spec.geometry.cylinders,
                distance.min(spec.geometry.cylinders - 1),
            );
            Nanos::from_nanos(u64::from(nanos))
        };
        let step = reached(spec, 1).max(spec.seek.head_switch);
        let margin = draw.within([1.05, 1.4]);
        // Skews of older drives are sectors; with tracks by head they cannot be.
        let in_turns = varies || self.by_surface || draw.chance(0.3);
        let skew = |time: Nanos, slots: u32| {
            let turns = time.as_nanos() as f64 * margin / turn.as_nanos() as f64;
            match in_turns {
                true => Skew::Turns(libm::ceil(turns * 1_000.0).min(999.0) / 1_000.0),
                false => Skew::Sectors((turns * f64::from(slots)) as u32 + 1),
            }
        };
        let widths: Vec<f64> = (0..count).map(|_| draw.within([0.6, 1.4])).collect();
        let sum: f64 = widths.iter().sum();
        let (mut first, mut along) = (0, 0.0);
        for width in widths {
            along += width / sum;
            let last = (along * f64::from(spec.geometry.cylinders)) as u32;
            let last = last.clamp(first + 1, spec.geometry.cylinders);
            let mean = outermost * (1.0 - (1.0 - ratio) * (along - width / sum / 2.0));
            let by_head: Vec<u32> = match varies {
                true => densities.iter().map(|part| slots(mean * part)).collect(),
                false => Vec::new(),
            };
            let sectors_per_track = by_head.iter().copied().max().unwrap_or_else(|| slots(mean));
            let group = match spec.layout.order {
                Order::SurfaceSerpentine { tracks } if grouped => {
                    Some(draw.small([(tracks / 2).max(1), tracks * 2]))
                }
                _ => None,
            };
            let mut zone = Zone {
                first_cylinder: first,
                last_cylinder: last - 1,
                sectors_per_track,
                by_head,
                tracks_per_surface: group,
                offset: Skew::Sectors(0),
                track_skew: skew(spec.seek.head_switch, sectors_per_track),
                cylinder_skew: skew(step, sectors_per_track),
                group_skew: None,
                reserved: 0,
                spares: 0,
                slips: Vec::new(),
                remaps: Vec::new(),
            };
            if in_turns && draw.chance(0.5) {
                zone.offset = Skew::Turns(libm::floor(draw.part() * 1_000.0) / 1_000.0);
            }
            if self.by_surface {
                let far = zone.group_cylinders(spec.layout.order);
                zone.group_skew = Some(skew(reached(spec, far).max(step), sectors_per_track));
            }
            let per_track = u64::from(sectors_per_track);
            zone.spares = match spec.layout.sparing {
                Sparing::DiskEnd => 0,
                Sparing::TrackEnd => draw.number([1, 2]),
                Sparing::CylinderEnd | Sparing::CylinderFront => draw.number([2, 20]),
                Sparing::TracksAtZoneEnd => draw.number([1, u64::from(heads)]),
                Sparing::RangeEnd { .. } => draw.number([10, 60]),
                Sparing::ZoneEnd => {
                    draw.number([per_track, 3 * per_track]) / u64::from(per) * u64::from(per)
                }
            };
            spec.layout.zones.push(zone);
            // Older drives leave cylinders out between zones, for themselves.
            let gap = !self.by_surface && draw.chance(0.3);
            first = (last + u32::from(gap)).min(spec.geometry.cylinders);
            if first == spec.geometry.cylinders {
                break;
            }
        }
    }

    fn cache(&self, draw: &mut Draw, spec: &mut Spec) {
        let per_sector = spec.geometry.sector_bytes / 512;
        let buffer = draw.small(self.buffer) / per_sector;
        let segments = draw.small(self.segments);
        let size = (buffer / segments).max(64);
        let adaptive = self.year == 2020 && draw.chance(0.5);
        let cache = &mut spec.cache;
        *cache = CacheSpec {
            enabled: true,
            segments,
            segment_sectors: size,
            room_sectors: 0,
            write_segments: draw.small([1, segments.div_ceil(2)]),
            dedicated_write_segment: segments > 2 && draw.chance(0.2),
            read_ahead: *draw.pick(&[
                ReadAhead::TrackEnd,
                ReadAhead::CylinderEnd,
                ReadAhead::SegmentFull,
                ReadAhead::SegmentFull,
                ReadAhead::NextTrack,
            ]),
            read_ahead_max: draw.small([size / 2, size]),
            read_ahead_min: draw.small([0, 32]),
            requested_data: *draw.pick(&[RequestedData::Kept, RequestedData::Replaceable]),
            read_free_sectors: draw.chance(0.5),
            read_hits_on_write_data: draw.chance(0.8),
            write_back: match self.year {
                1993 => *draw.pick(&[WriteBack::Off, WriteBack::Appending]),
                1999 => *draw.pick(&[WriteBack::Appending, WriteBack::Flushed, WriteBack::Full]),
                _ => WriteBack::Full,
            },
            destage_delay: draw.micros([0.0, 80_000.0]),
            ..CacheSpec::default()
        };
        if self.by_surface {
            cache.destage = Destage::Sweep;
            cache.destage_runs = draw.small([64, 8_192]);
            cache.destage_age = draw.micros([500_000.0, 4_000_000.0]);
        }
        if adaptive {
            cache.segments = segments * 8;
            cache.segment_sectors = size * 2;
            cache.room_sectors = size * segments;
            cache.write_segments = (segments / 4).max(1);
        }
        if draw.chance(0.1) {
            cache.second_read_ahead_min = 65_535;
        }
        cache.read_ahead_min = cache.read_ahead_min.min(cache.read_ahead_max);
    }

    fn electronics(&self, draw: &mut Draw, spec: &mut Spec) {
        let late = self.by_surface;
        let each = match late {
            true => [100.0, 600.0],
            false => [0.0, 400.0],
        };
        spec.overhead.per_command = draw.micros(each);
        if !late {
            spec.overhead.read_hit_after_read = draw.micros([50.0, 500.0]);
            spec.overhead.read_hit_after_write = draw.micros([50.0, 500.0]);
            spec.overhead.read_miss_after_read = draw.micros([0.0, 600.0]);
            spec.overhead.read_miss_after_write = draw.micros([0.0, 600.0]);
            spec.overhead.write_miss_after_read = draw.micros([100.0, 900.0]);
            spec.overhead.write_miss_after_write = draw.micros([100.0, 900.0]);
        }
        let nanos = f64::from(spec.geometry.sector_bytes) * 1_000.0 / draw.pick(self.bus);
        spec.bus.interface_sector = Nanos::from_nanos(nanos as u64);
        let depth = *draw.pick(self.depth);
        spec.queue.depth = depth;
        spec.queue.preseek =
            *draw.pick(&[Preseek::Off, Preseek::AtCompletion, Preseek::AtMediaEnd]);
        if depth > 1 {
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: draw.micros([0.0, 1_300.0]),
                age_cap: draw
                    .chance(0.6)
                    .then(|| draw.micros([1_000_000.0, 4_000_000.0])),
            };
            spec.queue.stream_cap = match draw.chance(0.3) {
                true => Nanos::ZERO,
                false => draw.micros([50_000.0, 2_000_000.0]),
            };
        }
    }
}

/// The sections of a profile whose trust is marked.
const KEYS: [&str; 10] = [
    "geometry", "rotation", "layout", "seek", "access", "cache", "overhead", "bus", "queue",
    "noise",
];

/// Part of the stroke, and time over mean seek: the least, the median and the largest of eight drives. The first row is
/// beyond the measured range.
const SHAPE: [(f64, [f64; 3]); 12] = [
    (1e-5, [0.07, 0.14, 0.18]),
    (1e-4, [0.08, 0.17, 0.22]),
    (1e-3, [0.17, 0.245, 0.27]),
    (3e-3, [0.21, 0.29, 0.32]),
    (0.01, [0.29, 0.375, 0.41]),
    (0.03, [0.43, 0.48, 0.57]),
    (0.1, [0.62, 0.655, 0.71]),
    (0.2, [0.83, 0.855, 0.88]),
    (1.0 / 3.0, [1.01, 1.03, 1.08]),
    (0.5, [1.23, 1.245, 1.28]),
    (0.7, [1.45, 1.485, 1.57]),
    (1.0, [1.79, 1.93, 2.02]),
];

/// Time over mean seek of a drive that lies `near` and `far` off the median, -1 for the least and 1 for the
/// largest, at short and at long distances.
fn shape(part: f64, near: f64, far: f64) -> f64 {
    let along = |part: f64| libm::log(part.max(1e-5));
    let at = |index: usize| {
        let (part, [least, median, largest]) = SHAPE[index];
        let far_part = 1.0 - along(part) / along(1e-5);
        let off = near + (far - near) * far_part;
        let time = match off < 0.0 {
            true => median + (median - least) * off,
            false => median + (largest - median) * off,
        };
        (along(part), time)
    };
    let next = SHAPE
        .partition_point(|(end, _)| *end <= part)
        .min(SHAPE.len() - 1);
    let ((before, low), (behind, high)) = (at(next.max(1) - 1), at(next.max(1)));
    let share = ((along(part) - before) / (behind - before)).clamp(0.0, 1.0);
    low + (high - low) * share
}

/// Bad sectors: slipped when the drive was made, and moved since.
fn defects(most: u32, draw: &mut Draw, spec: &mut Spec) {
    let per = u64::from(spec.geometry.sectors_per_physical());
    let sparing = spec.layout.sparing;
    let heads = spec.geometry.heads;
    for index in 0..spec.layout.zones.len() {
        let zone = &spec.layout.zones[index];
        let cylinder = zone.sectors_per_cylinder(heads);
        let per_track = u64::from(zone.sectors_per_track);
        let (unit, area) = match sparing {
            Sparing::TracksAtZoneEnd => {
                let tracks = u64::from(zone.cylinders()) * u64::from(heads);
                (tracks, tracks)
            }
            _ => {
                let all = cylinder * u64::from(zone.cylinders());
                let area = match sparing {
                    Sparing::TrackEnd => per_track,
                    Sparing::CylinderEnd | Sparing::CylinderFront => cylinder,
                    Sparing::RangeEnd { cylinders } => cylinder * u64::from(cylinders),
                    _ => all,
                };
                (all, area)
            }
        };
        let count = match sparing {
            Sparing::TracksAtZoneEnd => draw.number([0, zone.spares]),
            _ => draw.number([0, u64::from(most)]),
        };
        let mut bad: Vec<u64> = (0..count)
            .map(|_| draw.number([0, unit / per - 1]))
            .collect();
        bad.sort_unstable();
        bad.dedup();
        // No area has more slips than spares. One spare stays for later defects.
        let spares = match sparing {
            Sparing::DiskEnd => u64::MAX,
            _ => zone.spares.saturating_sub(per),
        };
        let (mut slips, mut used) = (Vec::new(), (u64::MAX, 0));
        for place in bad.into_iter().map(|place| place * per) {
            if place / area != used.0 {
                used = (place / area, 0);
            }
            let whole = (place / area + 1) * area <= unit;
            if whole && used.1 + per <= spares {
                used.1 += per;
                slips.extend(place..place + per);
            }
        }
        spec.layout.zones[index].slips = slips;
        let moved = draw.number([0, 3]);
        let remaps = remaps(moved, draw, spec, index, (unit, area));
        spec.layout.zones[index].remaps = remaps;
    }
}

/// Up to `count` sectors of the medium whose data is in spare places of their area.
fn remaps(
    count: u64,
    draw: &mut Draw,
    spec: &Spec,
    index: usize,
    (unit, area): (u64, u64),
) -> Vec<(u64, u64)> {
    let per = u64::from(spec.geometry.sectors_per_physical());
    let zone = &spec.layout.zones[index];
    let is_spare = Layout::zone_spares(spec, zone);
    let mut remaps: Vec<(u64, u64)> = Vec::new();
    for _ in 0..count {
        let from = draw.number([0, unit / per - 1]) * per;
        let base = from / area * area;
        let to = match spec.layout.sparing {
            Sparing::CylinderFront => base,
            _ => (base + area).min(unit).saturating_sub(per) / per * per,
        };
        let good = |place: u64| !is_spare(place) && zone.slips.binary_search(&place).is_err();
        let taken = remaps.iter().any(|pair| pair.0 == from || pair.1 == to);
        let fits = (0..per).all(|part| good(from + part) && is_spare(to + part));
        if fits && !taken {
            remaps.extend((0..per).map(|part| (from + part, to + part)));
        }
    }
    remaps.sort_unstable();
    remaps
}

#[cfg(test)]
mod tests;
