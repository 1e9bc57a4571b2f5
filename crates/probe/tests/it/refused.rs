//! Drives that cannot be learned, and drives that are hard to learn.

use super::between::{Between, Meddled};
use headtime_disk::profile::by_name;
use headtime_probe::extract::{ExtractError, Extraction, STEP_TRIES, Stage};
use headtime_probe::{Answer, Modelled, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cell::Cell;
use std::rc::Rc;

const LONG: Nanos = Nanos::from_millis(10 * 60_000);

/// A device whose reads take `takes`, at any address.
struct Plain<F> {
    sectors: u64,
    now: Time,
    takes: F,
    end: Time,
    sent: Time,
}

impl<F: FnMut(u64) -> u64> Plain<F> {
    fn new(sectors: u64, takes: F) -> Plain<F> {
        Plain {
            sectors,
            now: Time::ZERO,
            takes,
            end: Time::ZERO,
            sent: Time::ZERO,
        }
    }
}

impl<F: FnMut(u64) -> u64> Probe for Plain<F> {
    fn name(&self) -> String {
        "plain".to_owned()
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.sectors)
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn depth(&self) -> u16 {
        1
    }

    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, _: u16, _: Op, extent: Extent) -> Result<(), ProbeError> {
        self.sent = self.now;
        self.end = self.now + Nanos::from_nanos((self.takes)(extent.start.get()));
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        self.now = self.end;
        Ok(Answer {
            tag: 0,
            sent: self.sent,
            at: self.now,
            failure: None,
        })
    }

    fn pause(&mut self, span: Nanos) {
        self.now += span;
    }
}

fn learn(probe: &mut impl Probe) -> (Extraction, Result<(), ExtractError>) {
    let mut extraction = Extraction::new(probe, 1);
    let result = extraction.run(probe, LONG);
    (extraction, result)
}

#[test]
fn devices_without_a_turn_are_told_within_a_minute() {
    let mut dice = Pcg64::seed_from_u64(1);
    let mut noise = move |from: u64, to: u64| from + dice.next_u64() % (to - from);
    let mut far = noise.clone();
    // A null device, a steady device, an SSD and a network.
    let null = learn(&mut Plain::new(1 << 30, |_| 0));
    let steady = learn(&mut Plain::new(1 << 30, |_| 85_000));
    let ssd = learn(&mut Plain::new(1 << 30, |_| noise(70_000, 110_000)));
    let network = learn(&mut Plain::new(1 << 30, |_| far(2_000_000, 30_000_000)));
    let all = [
        ("null", null),
        ("steady", steady),
        ("ssd", ssd),
        ("network", network),
    ];
    for (name, (extraction, result)) in all {
        assert!(
            matches!(result, Err(ExtractError::DoesNotTurn { .. })),
            "{name}: {result:?}"
        );
        println!("{name}: {} after {}", result.unwrap_err(), extraction.spent);
        assert!(
            extraction.spent < Nanos::from_secs(60),
            "{name}: {}",
            extraction.spent
        );
        // Nobody knows how long what cannot be learned takes.
        assert_eq!(extraction.progress().left, None, "{name}");
    }
}

#[test]
fn a_disk_behind_a_cache_that_keeps_everything_is_told() {
    let mut kept = std::collections::BTreeSet::new();
    let mut dice = Pcg64::seed_from_u64(4);
    let mut cached = Plain::new(1 << 30, move |lba| match kept.insert(lba) {
        true => 4_000_000 + dice.next_u64() % 12_000_000,
        false => 90_000,
    });
    let (extraction, result) = learn(&mut cached);
    assert!(
        matches!(result, Err(ExtractError::Buffered { places: 4_096 })),
        "{result:?}"
    );
    assert!(
        extraction.spent < Nanos::from_secs(120),
        "{}",
        extraction.spent
    );
}

#[test]
fn a_disk_that_stalls_every_now_and_then_is_told_from_one_that_starts() {
    // As a shingled disk that tidies up: a second, once in 200 reads.
    let every = |period: u64, from: u64| {
        move |read: u64| {
            let stalls = read > from && read.is_multiple_of(period);
            Meddled::Late(Nanos::from_millis(if stalls { 1_000 } else { 0 }))
        }
    };
    let mut tidying = Between::new("hp-c2247a", every(200, 0));
    let (extraction, result) = learn(&mut tidying);
    let Err(ExtractError::Stalls(stalls)) = result else {
        panic!("{result:?}");
    };
    assert_eq!((stalls.count, stalls.of), (3, 600));
    println!("tidying: {stalls:?} after {}", extraction.spent);
    assert!(stalls.longest >= Nanos::from_secs(1));
    assert!(extraction.spent < Nanos::from_secs(60));
    // Every read: slow from the beginning, as a network is or a disk that dies.
    let (extraction, result) = learn(&mut Between::new("hp-c2247a", every(1, 0)));
    assert!(matches!(result, Err(ExtractError::Stalls(_))), "{result:?}");
    assert_eq!(extraction.reads, 3);
    // The first two: the motor starts.
    let mut starting = Between::new("hp-c2247a", |read| {
        Meddled::Late(Nanos::from_secs(if read < 3 { 6 } else { 0 }))
    });
    let (extraction, result) = learn(&mut starting);
    result.unwrap();
    assert_eq!(extraction.stage(), Stage::Done);
}

#[test]
fn a_disk_of_a_few_sectors_is_too_small() {
    // One is a file of 512 bytes in memory.
    for sectors in [1, 8, 4_095] {
        let (extraction, result) = learn(&mut Plain::new(sectors, |_| 1_000_000));
        assert!(
            matches!(result, Err(ExtractError::TooSmall { .. })),
            "{sectors}: {result:?}"
        );
        assert_eq!(extraction.reads, 0);
    }
}

#[test]
fn a_disk_under_load_is_refused_and_keeps_what_is_known() {
    // Each read waits for another one, somewhere, as often as not.
    let mut dice = Pcg64::seed_from_u64(2);
    let mut loaded = Between::new("atlas10k", move |_| {
        let other = dice.next_u64() % 24_000_000;
        Meddled::Late(Nanos::from_nanos(other.saturating_sub(6_000_000)))
    });
    let (extraction, result) = learn(&mut loaded);
    println!("loaded: {} after {}", result.unwrap_err(), extraction.spent);
    assert!(
        extraction.spent < Nanos::from_secs(120),
        "{}",
        extraction.spent
    );
    assert!(extraction.stage() < Stage::Seeks);
    assert!(extraction.profile().is_err());
}

#[test]
fn a_disk_that_fails_half_way_says_where_and_can_be_gone_on_with() {
    let mut failing = Between::new("hp-c2247a", |read| match read {
        2_000 => Meddled::Fails,
        _ => Meddled::Late(Nanos::ZERO),
    });
    let (mut extraction, result) = learn(&mut failing);
    let error = result.unwrap_err().to_string();
    assert!(
        error.starts_with("a read of sectors ") && error.ends_with("unrecovered read error"),
        "{error}"
    );
    assert!(!extraction.walked.zones.is_empty());
    println!("failing: {error} after {}", extraction.spent);
    extraction.run(&mut failing, LONG).unwrap();
    assert_eq!(extraction.stage(), Stage::Done);
    assert_eq!(extraction.profile().unwrap().geometry.heads, 13);
}

#[test]
fn reads_that_fail_here_and_there_end_no_probe() {
    let mut failing = Between::new("hp-c2247a", |read| match read % 2_000 {
        0 => Meddled::Fails,
        _ => Meddled::Late(Nanos::ZERO),
    });
    let mut extraction = Extraction::new(&failing, 1);
    while extraction.stage() != Stage::Done {
        extraction.step_or_stay(&mut failing).unwrap();
    }
    assert!(failing.reads > 8_000, "{}", failing.reads);
    assert!(extraction.in_vain.0 > 0);
    assert_eq!(extraction.profile().unwrap().geometry.heads, 13);
}

#[test]
fn a_step_that_fails_however_it_draws_its_places_is_given_up() {
    let failures = Rc::new(Cell::new(0));
    let count = Rc::clone(&failures);
    let mut failing = Between::new("hp-c2247a", move |read| match read {
        2_000.. if count.get() < STEP_TRIES => {
            count.set(count.get() + 1);
            Meddled::Fails
        }
        _ => Meddled::Late(Nanos::ZERO),
    });
    let mut extraction = Extraction::new(&failing, 1);
    let error = loop {
        match extraction.step_or_stay(&mut failing) {
            Ok(_) => assert_ne!(extraction.stage(), Stage::Done),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ExtractError::Failed(_)), "{error}");
    assert_eq!(failures.get(), STEP_TRIES);
    // A later start goes on with the results so far.
    assert!(!extraction.walked.zones.is_empty());
    while extraction.stage() != Stage::Done {
        extraction.step_or_stay(&mut failing).unwrap();
    }
    assert_eq!(extraction.profile().unwrap().geometry.heads, 13);
}

#[test]
fn a_few_late_answers_change_no_track() {
    // One in fifty answers is late by up to two turns: a retry, a recalibration, another program.
    let mut dice = Pcg64::seed_from_u64(3);
    let mut uneven = Between::new("hp-c2247a", move |_| {
        let late = dice.next_u64() % 50 == 0;
        Meddled::Late(Nanos::from_nanos(if late {
            dice.next_u64() % 20_000_000
        } else {
            0
        }))
    });
    let (extraction, result) = learn(&mut uneven);
    result.unwrap();
    let truth = by_name("hp-c2247a").unwrap();
    let learned = extraction.profile().unwrap();
    let lengths = |zones: &[headtime_disk::profile::Zone]| -> Vec<u32> {
        zones.iter().map(|zone| zone.sectors_per_track).collect()
    };
    assert_eq!(lengths(&learned.layout.zones), lengths(&truth.layout.zones));
}

#[test]
fn a_budget_ends_it_with_what_is_known() {
    let profile = by_name("atlas10k").unwrap();
    let mut probe = Modelled::new(&profile, 1);
    let mut extraction = Extraction::new(&probe, 1);
    extraction
        .run(&mut probe, Nanos::from_millis(60_000))
        .unwrap();
    assert_eq!(extraction.stage(), Stage::Tracks);
    assert!(extraction.spent < Nanos::from_millis(70_000));
    assert!(matches!(extraction.profile(), Err(ExtractError::TooEarly)));
    assert!(extraction.spindle.is_some() && extraction.walked.upto > 1_000_000);
    let progress = extraction.progress();
    assert!(progress.share > 0.05 && progress.share < 0.9);
    let left = progress.left.unwrap();
    assert!(
        left > Nanos::from_secs(60) && left < Nanos::from_secs(600),
        "{left}"
    );
    // Some seeks make a curve.
    while extraction.seeks.len() < 20 {
        extraction.step(&mut probe).unwrap();
    }
    let learned = extraction.profile().unwrap();
    assert_eq!(learned.geometry.heads, 6);
}

/// A disk whose tracks all have a length and a turn of their own.
struct Wild {
    /// The first address of each track, and where it begins in millionths of a turn.
    tracks: Vec<(u64, u64)>,
    now: Time,
    end: Time,
    sent: Time,
    arm: usize,
}

impl Wild {
    const TURN: u64 = 8_000_000;

    fn new(count: usize) -> Wild {
        let mut dice = Pcg64::seed_from_u64(9);
        let mut first = 0;
        let tracks = (0..=count).map(|_| {
            let track = (first, dice.next_u64() % 1_000_000);
            first += 300 + dice.next_u64() % 400;
            track
        });
        Wild {
            tracks: tracks.collect(),
            now: Time::ZERO,
            end: Time::ZERO,
            sent: Time::ZERO,
            arm: 0,
        }
    }
}

impl Probe for Wild {
    fn name(&self) -> String {
        "wild".to_owned()
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.tracks.last().unwrap().0)
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn depth(&self) -> u16 {
        1
    }

    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, _: u16, _: Op, extent: Extent) -> Result<(), ProbeError> {
        let last = extent.end().get() - 1;
        let track = self.tracks.partition_point(|(first, _)| *first <= last) - 1;
        let (first, zero) = self.tracks[track];
        let slots = self.tracks[track + 1].0 - first;
        let passed = zero * Self::TURN / 1_000_000 + (last + 1 - first) * Self::TURN / slots;
        let way = track.abs_diff(self.arm).min(1) as u64 * 1_000_000;
        let there = self.now.as_nanos() + 200_000 + way;
        let wait = (passed + Self::TURN * 2 - there % Self::TURN) % Self::TURN;
        self.arm = track;
        self.sent = self.now;
        self.end = Time::from_nanos(there + wait);
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        self.now = self.end;
        Ok(Answer {
            tag: 0,
            sent: self.sent,
            at: self.now,
            failure: None,
        })
    }

    fn pause(&mut self, span: Nanos) {
        self.now += span;
    }
}

#[test]
fn a_disk_whose_tracks_all_differ_is_told_after_some_of_them() {
    let (extraction, result) = learn(&mut Wild::new(40_000));
    let Err(error) = result else {
        panic!("{:?}", extraction.stage());
    };
    println!("{} s: {error}", extraction.spent.as_secs_f64());
    assert!(matches!(error, ExtractError::NoRule { .. }), "{error}");
    assert!(
        extraction.spent < Nanos::from_secs(600),
        "{}",
        extraction.spent
    );
    // The turn stays known.
    let turn = extraction.spindle.as_ref().unwrap().turn;
    assert!((turn / Wild::TURN as f64 - 1.0).abs() < 1e-5, "{turn}");
}

#[test]
fn a_walk_that_would_take_hours_is_told_within_minutes_and_more_patience_goes_on() {
    let truth = by_name("plausible-103").unwrap();
    let mut probe = Modelled::new(&truth, 7);
    let mut extraction = Extraction::new(&probe, 7);
    assert_eq!(extraction.progress().left, None);
    let error = extraction
        .run(&mut probe, Nanos::from_secs(3 * 3_600))
        .unwrap_err();
    println!("{} s: {error}", extraction.spent.as_secs_f64());
    let ExtractError::TooSlow {
        share, least, rows, ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(share > 0.0 && share < 0.1 && rows > 0, "{error}");
    assert!(least.unwrap() > Nanos::from_secs(3 * 3_600), "{error}");
    assert!(
        extraction.spent < Nanos::from_secs(20 * 60),
        "{}",
        extraction.spent
    );
    assert!(extraction.spindle.is_some() && !extraction.walked.zones.is_empty());
    // With more patience the probe goes on from there.
    let before = extraction.walked.upto;
    extraction.set_patience(Nanos::from_secs(100 * 3_600));
    let more = extraction.spent + Nanos::from_secs(600);
    extraction.run(&mut probe, more).unwrap();
    assert!(extraction.walked.upto > before);
}

#[test]
fn a_step_that_gets_nowhere_is_given_up() {
    // Clearing a place from the buffer takes hundreds of reads, and the first row cannot be found otherwise. The
    // numbers of defects on its tracks follow no rule.
    let scratched = |spec: &mut headtime_disk::Spec| {
        let zone = &mut spec.layout.zones[0];
        let slots = u64::from(zone.by_head[0]);
        let defects = (0..64).flat_map(|track| {
            let first = track * slots + 1_000;
            first..first + track * 7 % 5 * 8
        });
        let mut slips: Vec<u64> = defects.collect();
        slips.append(&mut zone.slips);
        zone.slips = slips;
        // The spares keep the number of sectors as before.
        zone.spares -= 64 / 5 * 80;
        spec.cache.segments = 512;
        spec.cache.segment_sectors = 8_192;
        spec.cache.room_sectors = 1_000_000;
    };
    let truth = by_name("nearline-20tb").unwrap().with(scratched).unwrap();
    let mut probe = Modelled::new(&truth, 7);
    let mut extraction = Extraction::new(&probe, 7);
    extraction.set_patience(Nanos::from_secs(600));
    let error = extraction
        .run(&mut probe, Nanos::from_secs(3_600))
        .unwrap_err();
    println!("{} s: {error}", extraction.spent.as_secs_f64());
    assert!(matches!(error, ExtractError::TooSlow { .. }), "{error}");
    assert_eq!(extraction.walked.upto, 0);
    assert!(
        extraction.spent < Nanos::from_secs(300),
        "{}",
        extraction.spent
    );
}
