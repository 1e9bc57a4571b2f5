//! Comparison of learned keys with the truth.

use super::super::Electronics;
use super::{learn, zero_latency};
use headtime_disk::Profile;
use headtime_disk::profile::{
    FirmwarePolicy, Order, Preseek, ReadAhead, RequestedData, WriteBack, by_name, shipped,
};
use headtime_units::Nanos;
use std::collections::BTreeMap;

/// Outcome for a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    Right,
    Unknown,
    Wrong,
}

/// A key, its outcome, and a text about both values.
pub(super) type Judged = (&'static str, Outcome, String);

pub(super) fn judge<T: std::fmt::Debug>(
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

/// Compares learned keys with the truth. Values with the same effect on all answers count as equal.
pub(super) fn compare(truth: &Profile, e: &Electronics) -> Vec<Judged> {
    let c = &truth.cache;
    let reads = u64::from(c.segments - u32::from(c.dedicated_write_segment));
    let size = u64::from(c.segment_sectors);
    // If the tracks of a cylinder do not follow each other, the end of the cylinder is the end of the track.
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
    let (is_sptf, margin, age) = match truth.queue.policy {
        FirmwarePolicy::Sptf { margin, age_cap } => (
            true,
            margin.as_nanos() as f64,
            age_cap.map_or(0.0, |cap| cap.as_nanos() as f64),
        ),
        FirmwarePolicy::Fifo => (false, 0.0, 0.0),
    };
    let cap = truth.queue.stream_cap.as_nanos() as f64;
    let within = |said: u64, is: u64, part: f64| said.abs_diff(is) as f64 <= part * is as f64;
    // The model treats both alike.
    let same = |kind: WriteBack| match kind {
        WriteBack::Appending => WriteBack::Flushed,
        other => other,
    };
    let writable = u64::from(if c.dedicated_write_segment {
        1
    } else {
        c.write_segments
    });
    // Response times of writes that the buffer takes, after a read and after a write, in microseconds.
    let spec = &truth.overhead;
    let accepted = |place: usize| {
        let sectors = e.write_cache.accepted.map_or(1, |(sectors, _)| sectors);
        let hit = [spec.write_hit_after_read, spec.write_hit_after_write][place];
        let sent = truth.bus.sector(false) * sectors;
        (spec.per_command + hit + sent + spec.write_completion).as_nanos() as f64 / 1e3
    };
    let accepted_us = |place: usize, key: &str| {
        let times = e.write_cache.accepted.filter(|_| e.told.knows(key));
        times.map(|(_, times)| times[place] / 1e3)
    };
    let knows = |key: &str| e.told.knows(key);
    vec![
        judge(
            "write_hit_after_read",
            accepted_us(0, "overhead.write_hit_after_read"),
            accepted(0),
            |said| (said - accepted(0)).abs() <= 0.1 * accepted(0) + 20.0,
        ),
        judge(
            "write_hit_after_write",
            accepted_us(1, "overhead.write_hit_after_write"),
            accepted(1),
            |said| (said - accepted(1)).abs() <= 0.1 * accepted(1) + 20.0,
        ),
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
            // The current sector is read to its end in any case.
            *said == u64::from(c.read_ahead_min) || (*said).max(u64::from(c.read_ahead_min)) == 1
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
            "policy",
            knows("queue.policy").then_some(e.queueing.by_position == Some(true)),
            truth.queue.policy,
            |said| *said == is_sptf,
        ),
        judge(
            "preseek",
            knows("queue.preseek")
                .then_some(e.queueing.leaves)
                .flatten(),
            truth.queue.preseek,
            |said| {
                let bus = truth.bus.sector(true) + truth.overhead.read_completion;
                let per_track = truth.layout.sectors_per_track()[0].max(1);
                // No sector passes before the data are sent.
                let slot = truth.rotation.turn() / u64::from(per_track);
                let at_once = bus < slot.max(Nanos::from_micros(25));
                let leaves = truth.queue.preseek != Preseek::Off;
                said.after.map_or(at_once || leaves, |after| {
                    !leaves && (after - bus.as_nanos() as f64).abs() < 40e3
                })
            },
        ),
        judge("margin (80 us)", e.queueing.margin, margin, |said| {
            (*said - margin).abs() < 80e3
        }),
        judge(
            "age_cap (20 ms)",
            knows("queue.age_cap").then_some(e.queueing.age_cap.unwrap_or(0.0)),
            age,
            |said| (*said - age).abs() < 20e6,
        ),
        judge("stream_cap (20 ms)", e.queueing.stream_cap, cap, |said| {
            (*said - cap).abs() < 20e6
        }),
        judge(
            "sneaky_full_read_hits",
            e.queueing.hits_pass,
            c.sneaky_full_read_hits,
            |said| *said == c.sneaky_full_read_hits,
        ),
        judge(
            "write_back",
            e.write_cache.write_back,
            c.write_back,
            |said| same(*said) == same(c.write_back),
        ),
        judge(
            "write_segments",
            e.write_cache.write_segments,
            c.write_segments,
            |said| said.abs_diff(writable) as f64 <= 0.1 * writable as f64,
        ),
        judge(
            "destage",
            knows("cache.destage").then_some(e.write_cache.destage),
            c.destage,
            |said| *said == Some(c.destage),
        ),
        judge(
            "destage_runs (10 %)",
            knows("cache.destage_runs").then_some(e.write_cache.runs.unwrap_or(0)),
            c.destage_runs,
            |said| within(*said, u64::from(c.destage_runs), 0.1),
        ),
        judge(
            "destage_delay (6 ms)",
            e.write_cache.delay,
            c.destage_delay,
            |said| (said - c.destage_delay.as_nanos() as f64).abs() < 6e6,
        ),
        judge(
            "destage_age (30 ms)",
            e.write_cache.age,
            c.destage_age,
            |said| (said - c.destage_age.as_nanos() as f64).abs() < 30e6,
        ),
        judge(
            "read_hits_on_write_data",
            e.write_cache.serves_reads,
            c.read_hits_on_write_data,
            |said| *said == c.read_hits_on_write_data,
        ),
        judge(
            "dedicated_write_segment",
            e.write_cache.dedicated,
            c.dedicated_write_segment,
            |said| *said == c.dedicated_write_segment,
        ),
        judge(
            "zero_latency_read",
            zero_latency(truth).or(e.ahead.around),
            truth.access.zero_latency_read,
            |said| *said == truth.access.zero_latency_read,
        ),
    ]
}

/// Number of each outcome, by key.
pub(super) type Counts = BTreeMap<&'static str, [u32; 3]>;

/// Counts the outcomes for drives. Also returns the times, longest first, and the wrong values.
pub(super) fn count(
    names: impl Iterator<Item = String>,
) -> (Counts, Vec<(Nanos, String)>, Vec<String>) {
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
        for key in Electronics::keys() {
            let unknown = told.unknown.iter().filter(|(other, _)| other == key);
            let said = usize::from(told.knows(key)) + unknown.count();
            assert!(said == 1, "{name}: {key} is said {said} times");
        }
    }
    times.sort();
    times.reverse();
    (counts, times, wrong)
}

pub(super) fn table(names: impl Iterator<Item = String>) {
    let (counts, times, wrong) = count(names);
    println!("{:<26}{:>7}{:>9}{:>7}", "", "right", "unknown", "wrong");
    for (key, [right, unknown, wrong]) in counts {
        println!("{key:<26}{right:>7}{unknown:>9}{wrong:>7}");
    }
    println!("longest: {:?}\n{wrong:#?}", &times[..6]);
}

pub(super) fn shipped_names() -> impl Iterator<Item = String> {
    shipped().iter().map(|shipped| shipped.name.to_owned())
}
