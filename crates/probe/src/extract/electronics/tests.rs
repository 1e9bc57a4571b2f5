use super::*;
use crate::{Answer, Modelled, ProbeError};
use headtime_disk::Profile;
use headtime_disk::profile::{Order, ReadAhead, RequestedData, by_name, shipped};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::BTreeMap;

/// What is learned of a drive whose layout is known.
fn learn(truth: &Profile, seed: u64) -> (Electronics, Modelled, Nanos) {
    let mut probe = Modelled::new(truth, seed);
    let layout = Layout::new(truth);
    let turn = probe.drive().turn().as_nanos() as f64;
    let mut electronics = Electronics::default();
    let begin = probe.now();
    let mut number = 0;
    loop {
        number += 1;
        let mut bench = Bench::new(&mut probe, seed ^ (number << 32));
        let more = electronics.step(&mut bench, &layout, turn).unwrap();
        if !more {
            break;
        }
    }
    let spent = probe.now() - begin;
    (electronics, probe, spent)
}

/// How a key came out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Right,
    Unknown,
    Wrong,
}

/// A key, how it came out, and what was said of it.
type Judged = (&'static str, Outcome, String);

fn judge<T: std::fmt::Debug>(
    key: &'static str,
    said: Option<T>,
    is: impl std::fmt::Debug,
    right: impl Fn(&T) -> bool,
) -> Judged {
    let outcome = match &said {
        None => Outcome::Unknown,
        Some(said) if right(said) => Outcome::Right,
        Some(_) => Outcome::Wrong,
    };
    (key, outcome, format!("{said:?} of {is:?}"))
}

/// What is learned against what is true. Values that come to the same in every answer of the drive are the same.
fn compare(truth: &Profile, e: &Electronics) -> Vec<Judged> {
    let c = &truth.cache;
    let reads = u64::from(c.segments - u32::from(c.dedicated_write_segment));
    let size = u64::from(c.segment_sectors);
    // Where a cylinder's tracks do not follow each other, it ends with the track.
    let alone =
        truth.geometry.heads == 1 || matches!(truth.layout.order, Order::SurfaceSerpentine { .. });
    let ends = |kind: ReadAhead| match kind {
        ReadAhead::CylinderEnd if alone => ReadAhead::TrackEnd,
        other => other,
    };
    let most = u64::from(c.read_ahead_max);
    let most = match c.requested_data {
        RequestedData::Kept => most.min(size - 1),
        _ => most,
    };
    let room = u64::from(c.room_sectors);
    let within = |said: u64, is: u64, part: f64| said.abs_diff(is) as f64 <= part * is as f64;
    let knows = |key: &str| e.told.knows(key);
    vec![
        judge("segments (read)", e.segments.count, reads, |said| {
            *said == reads
        }),
        judge("segment_sectors", e.ahead.segment, size, |said| {
            *said == size
        }),
        judge(
            "room_sectors",
            knows("cache.room_sectors").then_some(e.segments.room.unwrap_or(0)),
            room,
            |said| within(*said, room, 0.02),
        ),
        judge("read_ahead", e.ahead.kind, c.read_ahead, |said| {
            ends(*said) == ends(c.read_ahead)
        }),
        judge("read_ahead_max", e.ahead.most, most, |said| *said == most),
        judge("read_ahead_min", e.ahead.least, c.read_ahead_min, |said| {
            *said == u64::from(c.read_ahead_min)
        }),
        judge(
            "second_read_ahead_min",
            e.ahead.second,
            c.second_read_ahead_min,
            |said| *said == u64::from(c.second_read_ahead_min),
        ),
        judge(
            "requested_data",
            e.ahead.requested,
            c.requested_data,
            |said| *said == c.requested_data,
        ),
        judge(
            "read_ahead_on_idle_hit",
            e.ahead.on_idle_hit,
            c.read_ahead_on_idle_hit,
            |said| *said == c.read_ahead_on_idle_hit,
        ),
        judge(
            "read_free_sectors",
            e.ahead.free_sectors,
            c.read_free_sectors,
            |said| *said == c.read_free_sectors,
        ),
        judge(
            "zero_latency (around)",
            e.ahead.around,
            truth.access.zero_latency_read,
            |said| *said == truth.access.zero_latency_read,
        ),
    ]
}

/// How many keys came out how, by key.
type Counts = BTreeMap<&'static str, [u32; 3]>;

/// Counts how keys come out on drives; the longest times, and what was wrong.
fn count(names: impl Iterator<Item = String>) -> (Counts, Vec<(Nanos, String)>, Vec<String>) {
    let mut counts = Counts::new();
    let mut times: Vec<(Nanos, String)> = Vec::new();
    let mut wrong = Vec::new();
    for name in names {
        let truth = by_name(&name).unwrap();
        let (electronics, _, spent) = learn(&truth, 5);
        times.push((spent, name.clone()));
        for (key, outcome, said) in compare(&truth, &electronics) {
            counts.entry(key).or_default()[outcome as usize] += 1;
            if outcome == Outcome::Wrong {
                wrong.push(format!("{name}: {key}: {said}"));
            }
        }
        let told = &electronics.told;
        for key in Electronics::KEYS {
            let unknown = told.unknown.iter().filter(|(other, _)| other == key);
            let said = usize::from(told.knows(key)) + unknown.count();
            assert!(said == 1, "{name}: {key} is said {said} times");
        }
    }
    times.sort();
    times.reverse();
    (counts, times, wrong)
}

fn table(names: impl Iterator<Item = String>) {
    let (counts, times, wrong) = count(names);
    println!("{:<26}{:>7}{:>9}{:>7}", "", "right", "unknown", "wrong");
    for (key, [right, unknown, wrong]) in counts {
        println!("{key:<26}{right:>7}{unknown:>9}{wrong:>7}");
    }
    println!("longest: {:?}\n{wrong:#?}", &times[..6]);
}

fn shipped_names() -> impl Iterator<Item = String> {
    shipped().iter().map(|shipped| shipped.name.to_owned())
}

#[test]
#[ignore = "prints a table"]
fn table_of_shipped_drives() {
    table(shipped_names());
}

#[test]
#[ignore = "prints a table"]
fn table_of_drawn_drives() {
    table((0..50).map(|seed| format!("plausible-{seed}")));
}

#[test]
#[ignore = "prints a table"]
fn table_of_drives_that_nothing_was_chosen_by() {
    table((50..150).map(|seed| format!("plausible-{seed}")));
}

#[test]
fn segments_and_reading_ahead_of_shipped_drives_are_found_or_said_to_be_unknown() {
    let (counts, times, wrong) = count(shipped_names());
    assert_eq!(wrong, Vec::<String>::new());
    for key in [
        "segments (read)",
        "segment_sectors",
        "read_ahead",
        "read_free_sectors",
    ] {
        assert_eq!(counts[key], [11, 0, 0], "{key}");
    }
    for (spent, name) in times {
        let most = if by_name(&name).unwrap().geometry.cylinders > 400_000 {
            600
        } else {
            120
        };
        assert!(spent < Nanos::from_secs(most), "{name}: {spent}");
    }
}

#[test]
fn drives_that_could_have_been_have_nothing_wrong() {
    let (_, _, wrong) = count((0..12).map(|seed| format!("plausible-{seed}")));
    assert_eq!(wrong, Vec::<String>::new());
}

/// A drive without a buffer that keeps anything, as the format's default is.
#[test]
fn a_drive_without_a_buffer_is_said_to_have_none() {
    let bare = |spec: &mut Spec| spec.cache = CacheSpec::default();
    let truth = by_name("atlas10k").unwrap().with(bare).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    assert_eq!(electronics.hit, None);
    assert!(electronics.told.known.is_empty());
    assert_eq!(electronics.told.unknown.len(), Electronics::KEYS.len());
}

/// A drive that fails after so many commands.
struct Failing {
    drive: Modelled,
    left: u32,
}

impl Probe for Failing {
    fn name(&self) -> String {
        self.drive.name()
    }

    fn capacity(&self) -> Sectors {
        self.drive.capacity()
    }

    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }

    fn depth(&self) -> u16 {
        self.drive.depth()
    }

    fn now(&mut self) -> Time {
        self.drive.now()
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(ProbeError::NotScratch(extent))?;
        self.drive.send(tag, op, extent)
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        self.drive.answer()
    }

    fn pause(&mut self, span: Nanos) {
        self.drive.pause(span);
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        self.drive.switch(which)
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        self.drive.set(which, on)
    }
}

#[test]
fn switches_are_as_they_were_after_each_step_and_after_any_failure() {
    let truth = by_name("ibm18es").unwrap();
    let layout = Layout::new(&truth);
    for (look_ahead, left) in [
        (false, u32::MAX),
        (true, u32::MAX),
        (false, 150),
        (false, 700),
        (false, 400),
    ] {
        let mut drive = Modelled::new(&truth, 5);
        drive.set(Switch::LookAhead, look_ahead).unwrap();
        let turn = drive.drive().turn().as_nanos() as f64;
        let mut failing = Failing { drive, left };
        let before = Switch::ALL.map(|which| failing.switch(which));
        let mut electronics = Electronics::default();
        let mut failed = false;
        for number in 0.. {
            let mut bench = Bench::new(&mut failing, number);
            let result = electronics.step(&mut bench, &layout, turn);
            let after = Switch::ALL.map(|which| failing.switch(which));
            assert_eq!(after, before, "step {number} of {left} commands");
            match result {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        assert_eq!(failed, left < u32::MAX, "{left}");
        if !failed {
            // What is switched off is learned all the same.
            assert_eq!(electronics.ahead.kind, Some(ReadAhead::SegmentFull));
            assert_eq!(electronics.segments.count, Some(6));
        }
    }
}
