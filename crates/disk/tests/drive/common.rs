//! Drives and loads of every kind.

use headtime_disk::profile::{
    BusSpec, Destage, FirmwarePolicy, NoiseSpec, OverheadSpec, Preseek, ReadAhead, RequestedData,
    WriteBack, by_name,
};
use headtime_disk::{Command, Completion, Drive, Fault, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub fn command(tag: u32, op: Op, start: u64, len: u64) -> Command {
    Command {
        tag,
        op,
        extent: Extent::at(start, len),
        fua: false,
        // Few drives look at it.
        high: tag.is_multiple_of(3),
    }
}

/// The next completion. A drive that has to be asked very often for it makes no progress.
pub fn wait(drive: &mut Drive) -> Completion {
    for _ in 0..1_000 {
        let next = drive.next_event().expect("something is under way");
        if let Some(completion) = drive.poll(next) {
            return completion;
        }
    }
    panic!("1000 events, and nothing completes");
}

/// Collects completions until fewer than `depth` commands are in flight. Where none is to come, all
/// that are left are lost, and are given up.
///
/// `in_flight` returns the commands of `state`, and `collect` removes the completed ones.
pub fn make_room<S, V>(
    (drive, now): (&mut Drive, &mut Time),
    depth: usize,
    state: &mut S,
    in_flight: fn(&mut S) -> &mut BTreeMap<u32, V>,
    collect: fn(&mut Drive, Time, &mut S),
) {
    while in_flight(state).len() >= depth {
        match drive.next_event() {
            Some(next) => {
                *now = (*now).max(next);
                collect(drive, *now, state);
            }
            None => {
                for tag in std::mem::take(in_flight(state)).into_keys() {
                    assert!(drive.abort(*now, tag), "{tag} is not in the drive");
                }
            }
        }
    }
}

pub fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// Drives of every kind of buffer, bus and queue.
pub fn profiles() -> impl Strategy<Value = Profile> {
    let name = prop::sample::select(vec![
        "atlas10k",
        "cheetah9lp",
        "barracuda-st32171w",
        "ibm18es",
        "hp-c2247a",
        "barracuda-7200.10-160",
        "wd5000aaks",
        "exos-x18",
        "nearline-20tb",
    ]);
    let write_back = prop::sample::select(vec![
        WriteBack::Off,
        WriteBack::Appending,
        WriteBack::Flushed,
        WriteBack::Full,
    ]);
    let preseek = prop::sample::select(vec![
        Preseek::Off,
        Preseek::AtCompletion,
        Preseek::AtMediaEnd,
    ]);
    let read_ahead = prop::sample::select(vec![
        ReadAhead::Off,
        ReadAhead::TrackEnd,
        ReadAhead::CylinderEnd,
        ReadAhead::SegmentFull,
        ReadAhead::NextTrack,
    ]);
    let requested = prop::sample::select(vec![
        RequestedData::Dropped,
        RequestedData::Kept,
        RequestedData::Replaceable,
    ]);
    let flags = prop::array::uniform16(any::<bool>());
    (
        name,
        write_back,
        preseek,
        read_ahead,
        requested,
        flags,
        0_u32..40,
        1_u32..4,
    )
        .prop_map(
            |(name, write_back, preseek, read_ahead, requested, flags, ahead_min, writes)| {
                by_name(name)
                    .unwrap()
                    .with(|spec| {
                        let cache = &mut spec.cache;
                        cache.write_back = write_back;
                        cache.read_ahead = read_ahead;
                        cache.requested_data = requested;
                        cache.segment_sectors = cache.segment_sectors.min(600);
                        cache.segments = cache.segments.clamp(3, 6);
                        cache.write_segments = writes.min(cache.segments);
                        let bound = flags[0] && read_ahead != ReadAhead::Off;
                        cache.read_ahead_min = if bound { ahead_min } else { 0 };
                        cache.read_ahead_max = match read_ahead {
                            ReadAhead::Off => 0,
                            _ => cache.read_ahead_max.min(600).max(cache.read_ahead_min),
                        };
                        cache.second_read_ahead_min = match bound && flags[2] {
                            true => ahead_min * 20,
                            false => 0,
                        };
                        cache.dedicated_write_segment = flags[1];
                        cache.read_ahead_on_idle_hit = flags[2];
                        cache.read_free_sectors = flags[3];
                        cache.almost_read_hits = flags[4];
                        cache.sneaky_full_read_hits = flags[5];
                        cache.sneaky_intermediate_read_hits = flags[5];
                        cache.read_hits_on_write_data = flags[6];
                        cache.write_prebuffering = flags[7];
                        cache.combine_sequential_writes = flags[8];
                        cache.stop_read_ahead_in_sector = flags[9];
                        cache.disconnect_write_in_seek = flags[10];
                        cache.send_partial_hit_at_once = flags[11];
                        spec.access.zero_latency_read = flags[12];
                        spec.access.zero_latency_write = flags[13];
                        spec.bus.hold_for_read = flags[14] && !flags[5];
                        spec.bus.never_disconnect = flags[15] && flags[0];
                        spec.queue.preseek = preseek;
                        spec.queue.depth = 8;
                        if flags[15] {
                            spec.queue.policy = FirmwarePolicy::Sptf {
                                margin: Nanos::from_micros(300),
                                age_cap: None,
                            };
                        } else {
                            spec.queue.policy = FirmwarePolicy::Fifo;
                        }
                    })
                    .unwrap()
            },
        )
}

/// Drives with buffers of any size, or none to speak of, with long queues, and with times of zero,
/// so that many things happen at once.
pub fn any_drive() -> impl Strategy<Value = Profile> {
    let size = prop::sample::select(vec![1_u32, 2, 8, 37, 200, 600]);
    let destage_delay = prop_oneof![Just(0_u64), 0_u64..5_000_000, Just(60_000_000)];
    let shape = (1_u32..8, size, 1_u32..8, any::<bool>(), destage_delay);
    let depth = prop::sample::select(vec![1_u32, 2, 8, 32]);
    let age_cap = prop::option::of(0_u64..30_000_000);
    let kind = prop::array::uniform4(prop::bool::weighted(0.2));
    let oldest = prop_oneof![Just((0, 0)), (1_u32..6, 0_u64..30_000_000)];
    let policies = (
        oldest,
        prop_oneof![Just(0_u64), 0_u64..2_000_000, Just(50_000_000)],
        prop::bool::weighted(0.3),
        0_u32..3,
    );
    (
        prop_oneof![profiles(), profiles().prop_map(buffering)],
        shape,
        depth,
        age_cap,
        kind,
        any::<bool>(),
        prop::option::of((1_u32..12, 0_u64..300)),
        policies,
    )
        .prop_map(
            |(profile, shape, depth, cap, kind, reshape, sweep, (oldest, hold, prio, room))| {
                profile
                    .with(|spec| {
                        let cache = &mut spec.cache;
                        if reshape {
                            let (segments, size, writes, combine, delay) = shape;
                            let least = 1 + u32::from(cache.dedicated_write_segment);
                            cache.segments = segments.max(least);
                            cache.write_segments = writes.min(cache.segments);
                            cache.segment_sectors = size;
                            cache.read_ahead_max = cache.read_ahead_max.min(size);
                            cache.read_ahead_min = cache.read_ahead_min.min(cache.read_ahead_max);
                            cache.combine_sequential_writes = combine;
                            cache.destage_delay = Nanos::from_nanos(delay);
                        }
                        let cache = &mut spec.cache;
                        if room > 0 && cache.segments > cache.write_segments {
                            let full = (cache.write_segments + room).min(cache.segments);
                            cache.room_sectors = full * cache.segment_sectors;
                        }
                        cache.destage = Destage::Segment;
                        if let Some((runs, age)) = sweep {
                            cache.destage = Destage::Sweep;
                            cache.destage_runs = runs;
                            cache.destage_age = ms(age);
                        }
                        spec.queue.depth = depth;
                        spec.queue.stream_cap =
                            cap.map_or(ms(1_000), |cap| Nanos::from_nanos(cap / 2));
                        if let FirmwarePolicy::Sptf { age_cap, .. } = &mut spec.queue.policy {
                            *age_cap = cap.map(Nanos::from_nanos);
                            spec.queue.stream_hold = Nanos::from_nanos(hold);
                            spec.queue.ncq_prio = prio;
                            spec.queue.oldest_every = oldest.0;
                            spec.queue.oldest_age = Nanos::from_nanos(oldest.1);
                        }
                        let [no_cache, no_times, no_bus, no_noise] = kind;
                        if no_cache {
                            cache.enabled = false;
                            cache.read_ahead = ReadAhead::Off;
                            cache.read_ahead_min = 0;
                            cache.read_ahead_max = 0;
                            cache.second_read_ahead_min = 0;
                            cache.write_back = WriteBack::Off;
                            cache.read_free_sectors = false;
                        }
                        if no_times {
                            spec.overhead = OverheadSpec::default();
                        }
                        if no_bus {
                            spec.bus = BusSpec {
                                hold_for_read: spec.bus.hold_for_read,
                                never_disconnect: spec.bus.never_disconnect,
                                ..BusSpec::default()
                            };
                        }
                        if no_noise {
                            spec.noise = NoiseSpec::default();
                        }
                    })
                    .unwrap()
            },
        )
}

/// A number of cases, or the number in `PROPTEST_CASES` if that is larger.
pub fn at_least(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases.max(cases),
        ..config
    }
}

/// A command: kind, start, length, FUA, and think time before it. Few places make commands meet.
pub type Asked = (u8, u64, u64, bool, u64);

pub fn commands() -> impl Strategy<Value = Vec<Asked>> {
    let place = prop_oneof![0_u64..300, 100_000_u64..100_400, 1_999_000_u64..2_000_000];
    let len = prop_oneof![1_u64..40, 200_u64..900];
    let pause = prop_oneof![Just(0_u64), 0_u64..200_000, 1_000_000_u64..80_000_000];
    prop::collection::vec(
        (0_u8..20, place, len, prop::bool::weighted(0.1), pause),
        1..60,
    )
}

/// A drive, its commands, the number of commands in it at a time, and its seed.
pub fn runs() -> impl Strategy<Value = (Profile, Vec<Asked>, usize, u64)> {
    let profile = prop_oneof![profiles(), profiles().prop_map(buffering)];
    (profile, commands(), 1_usize..8, any::<u64>())
}

/// A fault, or an abort of a waiting command.
#[derive(Clone, Debug)]
pub enum Trouble {
    Nothing,
    Inject(Fault),
    Abort(prop::sample::Index),
}

pub fn troubles() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        4 => Just(Trouble::Nothing),
        1 => Just(Trouble::Inject(Fault::LoseNext)),
        2 => (0_u64..400_000_000).prop_map(|span| {
            Trouble::Inject(Fault::Stall(Nanos::from_nanos(span)))
        }),
        4 => any::<prop::sample::Index>().prop_map(Trouble::Abort),
    ]
}

/// The drive with a buffer in which every fitting write completes.
fn buffering(profile: Profile) -> Profile {
    profile
        .with(|spec| spec.cache.write_back = WriteBack::Full)
        .unwrap()
}
