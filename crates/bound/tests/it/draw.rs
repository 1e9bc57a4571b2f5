//! Random drives, engines, schedulers and requests.

use headtime_bound::{Array, Machine};
use headtime_disk::drive::Drive;
use headtime_disk::profile::{
    self, CacheSpec, Destage, FirmwarePolicy, LayoutSpec, MapPart, MapSpec, Preseek, Profile,
    ReadAhead, RequestedData, Strip, WriteBack,
};
use headtime_disk::{Layout, Model};
use headtime_engine::{Config, Map, Plug, Striped};
use headtime_sched::{Flags, Knowledge, Op, Scheduler, ServiceCurve, Spec, policies};
use headtime_sim::{Report, Setup, Station, run};
use headtime_units::{Extent, Nanos, Sectors};
use headtime_workload::{ClosedReplay, Fit, Fitter, Script, Source, Trace, TraceRequest};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::num::NonZero;
use std::sync::Arc;

/// Number of random runs of a test.
pub const SEEDS: u64 = 600;

pub struct Random(Pcg64Mcg);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Returns a number from 0 to `end` - 1.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A drive, an engine and a scheduler.
pub struct World {
    pub profile: Profile,
    pub layout: Arc<Layout>,
    pub config: Config,
    pub scheduler: Spec,
    pub drive_seed: u64,
    /// Layout and shared link of an array of such drives, and the array for the bound.
    array: Option<(Striped, Option<NonZero<u64>>, Array)>,
    pub told: String,
}

/// Draws a [`world`] with an array of equal drives.
pub fn array(random: &mut Random) -> World {
    let mut world = world(random);
    world.spread(random);
    world
}

pub fn world(random: &mut Random) -> World {
    let shipped = random.pick(profile::shipped());
    let sptf = random.chance(40);
    let depth = *random.pick(&[1, 1, 1, 2, 3, 8, 32]);
    let (cache, write_back, noise) = (random.chance(75), random.below(5), random.below(3));
    let preseek = *random.pick(&[
        Preseek::Off,
        Preseek::AtCompletion,
        Preseek::AtMediaEnd,
        Preseek::JustInTime,
    ]);
    let other_preseek = random.chance(30);
    let margin = Nanos::from_micros(*random.pick(&[0, 0, 1_300]));
    let age_cap = *random.pick(&[
        None,
        Some(Nanos::from_millis(50)),
        Some(Nanos::from_secs(4)),
    ]);
    let stream_cap = Nanos::from_millis(*random.pick(&[0, 20, 100, 1_000]));
    let hold = Nanos::from_micros(*random.pick(&[0, 0, 300, 5_000]));
    let every = *random.pick(&[0, 0, 2, 16]);
    let profile = shipped
        .profile()
        .with(|spec| {
            spec.queue.depth = spec.queue.depth.max(depth);
            spec.queue.policy = match sptf {
                true => FirmwarePolicy::Sptf { margin, age_cap },
                false => FirmwarePolicy::Fifo,
            };
            spec.queue.stream_cap = stream_cap;
            if sptf {
                spec.queue.stream_hold = hold;
                spec.queue.oldest_every = every;
            }
            if other_preseek {
                spec.queue.preseek = preseek;
            }
            if !cache {
                spec.cache = CacheSpec::default();
            } else if write_back == 1 {
                spec.cache.write_back = WriteBack::Off;
            } else if write_back == 2 {
                spec.cache.write_back = WriteBack::Full;
            }
            if noise == 1 {
                spec.noise.seek_sd = Nanos::from_micros(40);
                spec.noise.seek_sd_relative = 0.02;
                spec.noise.overhead_sd = Nanos::from_micros(60);
                spec.noise.speed_ppm = 2000;
            } else if noise == 2 {
                spec.noise = Default::default();
            }
        })
        .expect("in range");
    let profile = match random.chance(30) {
        true => altered(random, profile),
        false => profile,
    };
    let profile = match random.chance(15) && profile.geometry.sectors_per_physical() == 1 {
        true => mapped(random, profile),
        false => profile,
    };
    let config = Config {
        depth,
        merge: random.chance(70),
        merge_sectors_max: Sectors::new(*random.pick(&[1, 8, 64, 256, 1024])),
        commit_ahead: random.chance(30),
        plug: random.chance(30).then_some(Plug::LINUX_2_6),
        ..Config {
            hide_origins: random.chance(30),
            ..Config::default()
        }
    };
    let names: Vec<&str> = policies().map(|policy| policy.name).collect();
    let name = *random.pick(&names);
    let text = if name == "sptf-sw" { "sptf-sw60" } else { name };
    let told = format!(
        "{:?} {:?} {:?} {:?} {:?} {} {}, cache {cache}, write-back {write_back}, noise {noise}, {config:?}, {text}",
        profile.layout.map,
        profile.cache,
        profile.access,
        profile.bus,
        profile.overhead,
        shipped.name,
        if sptf { "sptf" } else { "fifo" },
    );
    World {
        array: None,
        layout: Arc::new(Layout::new(&profile)),
        profile,
        config,
        scheduler: text.parse().expect("a registered name"),
        drive_seed: random.below(u64::MAX),
        told,
    }
}

/// Returns the drive with a table of tracks of random lengths in place of zones. Returns the unchanged drive if the
/// table is invalid or too small.
fn mapped(random: &mut Random, profile: Profile) -> Profile {
    let wide = *random.pick(&[1, 4, 20]);
    let heads = profile.geometry.heads.min(4);
    let turned = |random: &mut Random| random.below(1000) as f64 / 1000.0;
    let strips: Vec<Strip> = (0..heads)
        .map(|head| {
            let slots = 20 + random.below(900);
            let places = match random.chance(60) {
                true => slots,
                false => 1 + random.below(slots),
            };
            let outward = head % 2 == 1;
            Strip {
                cylinder: if outward { wide as i32 - 1 } else { 0 },
                step: if outward { -1 } else { 1 },
                offset: turned(random),
                skew: turned(random),
                places,
                run: places * wide,
                of: MapPart::Track {
                    head,
                    first_slot: random.below(slots - places + 1) as u32,
                    sectors_per_track: slots as u32,
                },
            }
        })
        .collect();
    let places: u64 = strips.iter().map(|strip| strip.run).sum();
    let all = places * (u64::from(profile.geometry.cylinders) / wide);
    let disk = Strip {
        cylinder: 0,
        step: wide as i32,
        offset: 0.0,
        skew: turned(random),
        places,
        run: all,
        of: MapPart::Group(0),
    };
    let changed = profile.with(|spec| {
        spec.geometry.capacity = Sectors::new(all);
        spec.layout = LayoutSpec::mapped(MapSpec {
            groups: vec![strips, vec![disk]],
            ..MapSpec::default()
        });
    });
    changed.ok().filter(|_| all > 1_000_000).unwrap_or(profile)
}

/// Returns a drive with random changes, or the unchanged drive if the result is invalid.
fn altered(random: &mut Random, profile: Profile) -> Profile {
    let aheads = [
        ReadAhead::Off,
        ReadAhead::TrackEnd,
        ReadAhead::CylinderEnd,
        ReadAhead::SegmentFull,
        ReadAhead::NextTrack,
    ];
    let kept = [
        RequestedData::Dropped,
        RequestedData::Kept,
        RequestedData::Replaceable,
    ];
    let other = profile.with(|spec| {
        let cache = &mut spec.cache;
        if cache.enabled {
            cache.read_ahead = *random.pick(&aheads);
            cache.requested_data = *random.pick(&kept);
            cache.segments = 1 + random.below(6) as u32;
            cache.write_segments = 1 + random.below(u64::from(cache.segments)) as u32;
            cache.dedicated_write_segment &= cache.segments > 1;
            cache.segment_sectors = *random.pick(&[16, 100, 700, 5000]);
            (cache.read_ahead_min, cache.read_ahead_max) = match cache.read_ahead {
                ReadAhead::Off => (0, 0),
                _ => (random.below(16) as u32, cache.segment_sectors),
            };
            cache.read_free_sectors = random.chance(50);
            cache.sneaky_full_read_hits = random.chance(30);
            cache.sneaky_intermediate_read_hits = random.chance(30);
            cache.almost_read_hits = random.chance(30);
            cache.read_ahead_on_idle_hit = random.chance(30);
            cache.read_hits_on_write_data = random.chance(70);
            cache.stop_read_ahead_in_sector = random.chance(30);
            cache.write_prebuffering = random.chance(30);
            cache.destage = *random.pick(&[Destage::Segment, Destage::Sweep, Destage::Sweep]);
            cache.destage_runs = *random.pick(&[1, 8, 1024]);
            cache.destage_age = Nanos::from_millis(*random.pick(&[0, 50, 4_000]));
            cache.read_high_water = *random.pick(&[0.0, 0.5, 1.0]);
        }
        spec.access.zero_latency_read = random.chance(50);
        spec.access.zero_latency_write = random.chance(50);
        spec.bus.never_disconnect = random.chance(20);
        spec.bus.hold_for_read = random.chance(30);
        spec.bus.arbitration = Nanos::from_nanos(random.below(2) * 20_000);
        spec.overhead.data_preparation = Nanos::from_nanos(random.below(2) * 70_000);
        spec.overhead.read_disconnect_after_read = Nanos::from_nanos(random.below(2) * 50_000);
        spec.overhead.first_reselect = Nanos::from_nanos(random.below(2) * 90_000);
        spec.overhead.write_completion = Nanos::from_nanos(random.below(2) * 40_000);
    });
    other.unwrap_or(profile)
}

impl World {
    /// Puts the drive into an array of equal drives.
    pub fn spread(&mut self, random: &mut Random) {
        let geometry = &self.profile.geometry;
        let page = 4096 / u64::from(geometry.sector_bytes);
        let members = *random.pick(&[2, 2, 3, 5]);
        let chunk = page * *random.pick(&[1, 16, 16, 100]);
        let sizes = vec![geometry.capacity; members.into()];
        let striped = Striped::new(Sectors::new(chunk), &sizes).expect("allowed");
        let bus = NonZero::new(*random.pick(&[0, 2_000_000, 40_000_000, 1_000_000_000]));
        self.told += &format!(", {members} drives, chunk {chunk}, bus {bus:?}");
        let map = striped.clone();
        let array = Array::new(members, bus, move |extent| {
            let (member, part) = map.first(extent);
            (member.0, part)
        });
        self.array = Some((striped, bus, array));
    }

    pub fn machine(&self) -> Machine<'_> {
        Machine {
            array: self.array.as_ref().map(|(.., array)| array),
            profile: &self.profile,
            layout: &self.layout,
            depth: self.config.depth,
            merge: self.config.merge.then_some(self.config.merge_sectors_max),
        }
    }

    fn scheduler(&self) -> Box<dyn Scheduler> {
        let capacity = self.profile.geometry.capacity;
        let points = vec![
            (Sectors::ZERO, Nanos::from_micros(500)),
            (
                Sectors::new(1 + capacity.get() / 1000),
                Nanos::from_millis(8),
            ),
            (Sectors::new(2 + capacity.get()), Nanos::from_millis(16)),
        ];
        let curve = ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve");
        let knowledge = Knowledge {
            positioning: Some(Arc::new(Model::new(&self.profile))),
            curve: Some(Arc::new(curve)),
            handed_out_max: Some(self.config.handed_out_max()),
        };
        self.scheduler.build(knowledge).expect("it can be built")
    }

    pub fn run(&self, source: &mut dyn Source) -> Report {
        let drive = Drive::with_layout(&self.profile, Arc::clone(&self.layout), self.drive_seed);
        let mut setup = Setup::new(drive, self.config, self.scheduler(), source);
        if let Some((striped, bus, _)) = &self.array {
            for member in 1..u64::from(striped.members()) {
                let layout = Arc::clone(&self.layout);
                let drive = Drive::with_layout(&self.profile, layout, self.drive_seed + member);
                let station = Station::new(drive, self.config, self.scheduler());
                setup.stations.push(station);
            }
            setup.map = Some(Box::new(striped.clone()));
            setup.bus = *bus;
        }
        setup.tell_ahead = self.scheduler.info().name == "clairvoyant";
        run(setup).expect("it runs")
    }
}

/// Draws extents in a part of the disk. Most are near each other, so that they share tracks, are adjacent, overlap, and
/// hit the buffer.
pub fn extents(random: &mut Random, capacity: u64, count: u64) -> Vec<Extent> {
    let region = *random.pick(&[300, 3_000, 30_000, 1_000_000, capacity]);
    let region = region.min(capacity);
    let first = random.below(capacity - region + 1);
    let longest = *random.pick(&[1, 8, 64, 512, 3000]).min(&region);
    let (onward, backward) = (random.below(101), random.below(101));
    let grain = *random.pick(&[1, 8, 64]);
    let mut last = Extent::at(first, 1);
    (0..count)
        .map(|_| {
            let len = 1 + random.below(longest);
            let start = if random.chance(onward) {
                last.end().get()
            } else if random.chance(backward / 2) {
                last.start.get().saturating_sub(len)
            } else {
                first + random.below(region) / grain * grain
            };
            last = Extent::at(start.min(capacity - len), len);
            last
        })
        .collect()
}

/// Creates a replay of these requests in order, `outstanding` at a time.
pub fn replay(profile: &Profile, asked: &[(Op, Extent)], outstanding: u32) -> ClosedReplay {
    let requests = asked.iter().map(|(op, extent)| TraceRequest {
        arrival: None,
        completion: None,
        device: 0,
        op: *op,
        extent: *extent,
        process: None,
        flags: Flags::NONE,
    });
    let geometry = &profile.geometry;
    let fitter = Fitter::new(geometry.capacity, geometry.sector_bytes, Fit::Refuse);
    let script = Script::new(&Trace::new(requests.collect()), &[], &fitter).expect("it fits");
    ClosedReplay::new(Arc::new(script), outstanding)
}
