use super::*;
use crate::ProbeError;
use crate::{Answer, Modelled};
use headtime_disk::profile::{NoiseSpec, by_name, shipped};
use headtime_disk::{Layout, Mechanics, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Time};
use std::collections::BTreeSet;

fn learned(probe: &mut impl Probe, seed: u64) -> Quick {
    let options = QuickOptions {
        seed,
        ..QuickOptions::default()
    };
    quick(probe, &options, &mut |_| {})
}

fn noisy(name: &str) -> Profile {
    let noise = NoiseSpec {
        speed_ppm: 1000,
        overhead_sd: Nanos::from_micros(20),
        seek_sd: Nanos::from_micros(100),
        ..NoiseSpec::default()
    };
    let profile = by_name(name).unwrap();
    profile.with(|spec| spec.noise = noise).unwrap()
}

/// Defects that a test adds to a drive's answers.
#[derive(Clone, Copy)]
enum Trouble {
    /// Another client reads at random, and each command may wait for a read of this client.
    Load,
    /// An answer comes a second late, once per this number of commands.
    Stalls(u64),
    /// All commands from this number on fail.
    Fails(u64),
}

struct Troubled {
    drive: Modelled,
    trouble: Trouble,
    random: Random,
    sent: u64,
}

const OTHER: u16 = 31;

impl Troubled {
    fn new(name: &str, trouble: Trouble) -> Troubled {
        Troubled {
            drive: Modelled::new(&by_name(name).unwrap(), 1),
            trouble,
            random: Random::new(77),
            sent: 0,
        }
    }
}

impl crate::Layer for Troubled {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn depth(&self) -> u16 {
        OTHER
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.sent += 1;
        if let Trouble::Load = self.trouble
            && self.random.up_to(2) == 0
        {
            let place = self.random.up_to(self.drive.capacity().get() - 8);
            let began = self.drive.now();
            self.drive.send(OTHER, Op::Read, Extent::at(place, 8))?;
            let other = self.drive.answer()?;
            // The command was sent when the other was.
            let waited = other.at - began;
            self.drive.send(tag, op, extent)?;
            self.drive.backdate(tag, waited);
            return Ok(());
        }
        self.drive.send(tag, op, extent)
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let mut answer = self.drive.answer()?;
        match self.trouble {
            Trouble::Stalls(every) if self.sent.is_multiple_of(every) => {
                self.drive.pause(Nanos::from_secs(1));
                answer.at += Nanos::from_secs(1);
            }
            Trouble::Fails(from) if self.sent >= from => {
                answer.failure = Some("input/output error".into());
            }
            _ => {}
        }
        Ok(answer)
    }
}

/// Memory: answers at once, or after a time that hardly varies.
struct Memory {
    capacity: u64,
    time: Nanos,
    jitter: u64,
    now: Time,
    random: Random,
    under_way: Vec<(u16, Time)>,
}

impl Memory {
    fn new(capacity: u64, micros: u64, jitter: u64) -> Memory {
        Memory {
            capacity,
            time: Nanos::from_micros(micros),
            jitter,
            now: Time::ZERO,
            random: Random::new(5),
            under_way: Vec::new(),
        }
    }
}

impl Probe for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn depth(&self) -> u16 {
        64
    }

    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, tag: u16, _op: Op, extent: Extent) -> Result<(), ProbeError> {
        assert!(!extent.is_empty() && extent.end().get() <= self.capacity);
        self.under_way.push((tag, self.now));
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let (tag, sent) = self.under_way.remove(0);
        self.now = self.now + self.time + Nanos::from_nanos(self.random.up_to(self.jitter));
        Ok(Answer {
            tag,
            sent,
            at: self.now,
            failure: None,
        })
    }

    fn pause(&mut self, span: Nanos) {
        self.now += span;
    }
}

/// A drive behind a cache that retains all data that was ever read.
struct Cached {
    drive: Modelled,
    kept: BTreeSet<u64>,
    /// Commands that the cache answers itself.
    hits: Vec<(u16, Time)>,
}

impl crate::Layer for Cached {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        if self.kept.insert(extent.start.get()) {
            return self.drive.send(tag, op, extent);
        }
        self.hits.push((tag, self.drive.now()));
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let Some((tag, sent)) = self.hits.pop() else {
            return self.drive.answer();
        };
        self.drive.pause(Nanos::from_micros(100));
        Ok(Answer {
            tag,
            sent,
            at: self.drive.now(),
            failure: None,
        })
    }
}

#[test]
fn of_a_disk_behind_a_cache_all_but_the_turn_is_learned() {
    let mut cached = Cached {
        drive: Modelled::new(&by_name("wd5000aaks").unwrap(), 1),
        kept: BTreeSet::new(),
        hits: Vec::new(),
    };
    let quick = learned(&mut cached, 1);
    assert_eq!(quick.obstacle, Some(Obstacle::Buffered { places: 1024 }));
    assert_eq!((quick.rotation, quick.random.len()), (None, 2));
    assert!(quick.rates.len() > 16 && quick.curve.is_some());
    assert!(quick.took < Nanos::from_secs(140), "{}", quick.took);
}

#[test]
fn a_disk_of_a_read_a_second_is_too_slow_for_the_time() {
    let options = QuickOptions {
        time: QuickOptions::TIME_MIN,
        seed: 1,
    };
    let mut memory = Memory::new(1 << 30, 1_000_000, 300_000_000);
    let quick = quick(&mut memory, &options, &mut |_| {});
    let Some(Obstacle::Slow { reads, took }) = quick.obstacle else {
        panic!("{:?}", quick.obstacle);
    };
    assert!(
        reads < 40 && took < Nanos::from_secs(40),
        "{reads} in {took}"
    );
}

#[test]
fn shipped_drives_are_learned_in_two_minutes() {
    for shipped in shipped() {
        let profile = shipped.profile();
        let name = &profile.name;
        let mut probe = Modelled::new(&profile, 1);
        let quick = learned(&mut probe, 1);
        assert_eq!(quick.obstacle, None, "{name}");
        assert!(
            quick.took <= Nanos::from_secs(120),
            "{name}: {}",
            quick.took
        );
        let rotation = quick.rotation.unwrap();
        let truth = probe.drive().turn().as_nanos() as f64;
        let off = (rotation.turn_ns / truth - 1.0).abs();
        assert!(off < 5e-6, "{name}: {off} off");
        // The limit is the speed of sequential reading or the bus.
        let (layout, mechanics) = (Layout::new(&profile), Mechanics::new(&profile));
        let bus = profile.bus.sector(true);
        for rate in quick.rates.iter().step_by(quick.rates.len() / 8) {
            let takes = |sectors| {
                let place = rate.place + Sectors::new(256);
                let extent = Extent::new(place, Sectors::new(sectors));
                let home = layout.run(place).track;
                mechanics
                    .access(&layout, home, Time::ZERO, extent, Op::Read, false)
                    .total()
            };
            let sector_bytes = u64::from(profile.geometry.sector_bytes);
            let sectors = (rate.bytes_per_second / 5.0) as u64 / sector_bytes;
            let sectors = sectors.max(16 * 256);
            let takes = (takes(sectors + 1) - takes(1)).max(bus * sectors);
            let bytes = sectors * sector_bytes;
            let truth = bytes as f64 / takes.as_secs_f64();
            let share = rate.bytes_per_second / truth;
            // A slow bus idles while the drive takes the next command.
            let least = if takes > bus * sectors { 0.95 } else { 0.88 };
            assert!(
                (least..1.05).contains(&share),
                "{name} at {}: {share}",
                rate.place
            );
        }
        let curve = quick.curve.expect("there was time");
        assert!(curve.points().len() >= 12, "{name}");
        let depth = profile.queue.depth.min(32) as u16;
        let depths: Vec<u16> = quick.random.iter().map(|reads| reads.depth).collect();
        assert_eq!(
            depths,
            if depth > 1 { vec![1, depth] } else { vec![1] },
            "{name}"
        );
    }
}

#[test]
fn the_turn_is_found_in_spite_of_noise_with_any_seed() {
    for name in ["atlas10k", "barracuda-7200.10-160", "exos-x18"] {
        let profile = noisy(name);
        for seed in 1..=5 {
            let mut probe = Modelled::new(&profile, seed);
            let quick = learned(&mut probe, seed);
            assert_eq!(quick.obstacle, None, "{name} {seed}");
            let truth = probe.drive().turn().as_nanos() as f64;
            let off = (quick.rotation.unwrap().turn_ns / truth - 1.0).abs();
            assert!(off < 5e-6, "{name} {seed}: {:.2} ppm off", off * 1e6);
        }
    }
}

#[test]
fn the_turn_is_within_5_ppm_and_its_error_covers_the_miss_on_every_shipped_drive() {
    // A buffer of hundreds of places leaves only gaps with similar numbers of turns. One turn more or less fits nearly as well.
    let mut profiles: Vec<Profile> = shipped().iter().map(|shipped| shipped.profile()).collect();
    profiles.push(by_name("nearline-20tb-4kn").unwrap());
    let names: Vec<&str> = profiles.iter().map(|profile| &*profile.name).collect();
    assert!(names.contains(&"nearline-20tb"), "{names:?}");
    let noisy: Vec<Profile> = names.into_iter().map(noisy).collect();
    let (mut covered, mut all) = (0, 0);
    for profile in profiles.iter().chain(&noisy) {
        for seed in 1..=5 {
            let mut probe = Modelled::new(profile, seed);
            let mut nobody = |_| {};
            let mut meter = Meter::new(&mut probe, Nanos::from_secs(120), &mut nobody);
            let time = Nanos::from_secs(24);
            let found = rotation::find(&mut meter, time, &mut Random::new(seed));
            let rotation = found.unwrap();
            let truth = probe.drive().turn().as_nanos() as f64;
            let off = (rotation.turn_ns / truth - 1.0).abs();
            let name = &profile.name;
            assert!(off < 5e-6, "{name} {seed}: {:.2} ppm off", off * 1e6);
            assert!(rotation.agree > 0.9, "{name} {seed}: {rotation:?}");
            // Times are in whole nanoseconds, and so is the turn of the drive.
            covered += u32::from(off <= 3.0 * rotation.error + 1e-7);
            all += 1;
        }
    }
    assert!(covered * 100 >= all * 98, "{covered} of {all}");
}

#[test]
fn random_reads_are_as_many_as_the_drive_serves() {
    let profile = by_name("wd5000aaks").unwrap();
    let quick = learned(&mut Modelled::new(&profile, 1), 1);
    let mut probe = Modelled::new(&profile, 9);
    let mut random = Random::new(9);
    let last = probe.capacity().get() / 8 - 1;
    let mut sum = Nanos::ZERO;
    for _ in 0..20_000 {
        sum += probe.read(Extent::at(random.up_to(last) * 8, 8)).unwrap();
    }
    let truth = 20_000.0 / sum.as_secs_f64();
    let one = &quick.random[0];
    assert!(
        (one.iops / truth - 1.0).abs() < 0.03,
        "{} {truth}",
        one.iops
    );
    assert!(quick.random[1].iops > 1.4 * one.iops, "the drive orders 32");
}

#[test]
fn the_same_seed_learns_the_same() {
    let profile = noisy("wd5000aaks");
    let learned = |seed| learned(&mut Modelled::new(&profile, 3), seed);
    assert_eq!(learned(4), learned(4));
    assert_ne!(learned(4).random, learned(5).random);
}

#[test]
fn the_watcher_hears_how_far_it_is() {
    let mut probe = Modelled::new(&by_name("wd5000aaks").unwrap(), 1);
    let mut heard = Vec::new();
    let options = QuickOptions {
        time: QuickOptions::TIME_MIN,
        seed: 1,
    };
    let quick = quick(&mut probe, &options, &mut |progress| heard.push(progress));
    assert_eq!(quick.obstacle, None);
    assert!(quick.took <= options.time, "{}", quick.took);
    assert!(heard.is_sorted_by(|one, other| one.done <= other.done));
    assert!(heard.last().unwrap().done > 0.7);
    let mut parts: Vec<&str> = heard.iter().map(|progress| progress.part).collect();
    parts.dedup();
    assert_eq!(parts, ["rotation", "bandwidth", "random reads", "seeks"]);
}

#[test]
fn what_does_not_turn_is_said_within_seconds() {
    for (micros, jitter) in [(0, 0), (1, 0), (80, 0), (80, 40_000), (900, 500_000)] {
        let quick = learned(&mut Memory::new(1 << 30, micros, jitter), 1);
        let obstacle = quick.obstacle.unwrap();
        assert!(
            matches!(obstacle, Obstacle::NoRotation { .. }),
            "{micros} {jitter}: {obstacle}"
        );
        assert!(
            quick.took < Nanos::from_secs(40),
            "{micros}: {}",
            quick.took
        );
        assert_eq!(quick.rotation, None);
        assert_eq!(quick.random.len(), 2, "what it does is known");
    }
}

#[test]
fn a_disk_of_a_few_sectors_is_none() {
    for (sectors, is_small) in [(1, true), (32_767, true), (32_768, false)] {
        let mut memory = Memory::new(sectors, 80, 100);
        let quick = learned(&mut memory, 1);
        let small =
            matches!(quick.obstacle, Some(Obstacle::TooSmall { bytes }) if bytes == sectors * 512);
        assert_eq!(small, is_small, "{sectors}: {:?}", quick.obstacle);
        assert_eq!(quick.reads == 0, is_small, "nothing is read of it");
    }
}

#[test]
fn a_disk_that_something_else_uses_is_not_learned() {
    let mut probe = Troubled::new("wd5000aaks", Trouble::Load);
    let quick = learned(&mut probe, 1);
    assert!(
        matches!(quick.obstacle, Some(Obstacle::Loaded { percent: 9.. })),
        "{:?}",
        quick.obstacle
    );
    assert!(quick.took < Nanos::from_secs(60));
}

#[test]
fn a_disk_that_stalls_now_and_then_is_not_learned() {
    for every in [20, 90, 400] {
        let mut probe = Troubled::new("wd5000aaks", Trouble::Stalls(every));
        let quick = learned(&mut probe, 1);
        let Some(Obstacle::Stalls { count, longest, .. }) = quick.obstacle else {
            panic!("{every}: {:?}", quick.obstacle);
        };
        assert!(count >= 3 && longest >= Nanos::from_secs(1), "{every}");
    }
}

#[test]
fn what_is_known_when_a_disk_fails_is_kept() {
    let mut probe = Troubled::new("wd5000aaks", Trouble::Fails(1));
    let first = learned(&mut probe, 1);
    assert!(matches!(first.obstacle, Some(Obstacle::Failed(_))));
    assert_eq!((first.rotation, first.random.len()), (None, 0));

    let whole = learned(
        &mut Troubled::new("wd5000aaks", Trouble::Fails(u64::MAX)),
        1,
    );
    let mut probe = Troubled::new("wd5000aaks", Trouble::Fails(whole.reads - 100));
    let last = learned(&mut probe, 1);
    let Some(Obstacle::Failed(text)) = &last.obstacle else {
        panic!("{:?}", last.obstacle);
    };
    assert!(text.contains("a read of sectors"), "{text}");
    assert!(text.ends_with("input/output error"), "{text}");
    assert_eq!(last.rotation, whole.rotation);
    assert_eq!(last.random[0], whole.random[0]);
    assert!(last.curve.is_none());
}
