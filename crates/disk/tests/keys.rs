//! Each key of a profile, varied: single commands on an idle drive end when the model says.

use headtime_disk::profile::{
    self, AccessSpec, BusSpec, CacheSpec, Destage, EarlyDisconnect, FirmwarePolicy, NoiseSpec,
    Order, OverheadSpec, Preseek, Profile, QueueSpec, ReadAhead, RequestedData, Rotation,
    SeekCurve, SeekSpec, Skew, Sparing, Spec, WriteBack, Zone,
};
use headtime_disk::{Command, Drive, Hit, Model};
use headtime_sched::{HeadAfter, Op, Positioning};
use headtime_units::{Extent, Nanos, SignedNanos, Time};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

type Change = fn(&mut Spec);

/// Values for each key. A new key of a structure does not compile until it is listed.
macro_rules! vary {
    ($all:ident, $base:ident.$part:ident: $type:ident { $($field:ident: [$($value:expr),*]),* $(,)? }) => {
        let _ = |$type { $($field: _),* }: $type| ();
        $($($all.push((
            concat!(stringify!($part), ".", stringify!($field), " = ", stringify!($value)),
            |$base: &mut Spec| $base.$part.$field = $value,
        ));)*)*
    };
}

fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// Changes every zone alike.
fn zones(spec: &mut Spec, change: impl Fn(&mut Zone)) {
    spec.layout.zones.iter_mut().for_each(change);
}

fn changes() -> Vec<(&'static str, Change)> {
    let mut all: Vec<(&'static str, Change)> = vec![("as it is", |_| ())];
    vary!(all, spec.rotation: Rotation { rpm: [3_600.0, 15_000.0] });
    vary!(all, spec.access: AccessSpec {
        zero_latency_read: [false, true],
        zero_latency_write: [false, true],
        on_track_at_once: [false, true],
    });
    vary!(all, spec.seek: SeekSpec {
        read: [SeekCurve::Constant(us(3_000)), SeekCurve::Linear { single: us(500), average: us(7_000), full: us(15_000) }],
        write: [None, Some(SeekCurve::Curve { single: us(900), average: us(8_000), full: us(17_000) })],
        head_switch: [us(0), us(1_500)],
        write_settle: [SignedNanos::from_nanos(-300_000), SignedNanos::from_nanos(0), SignedNanos::from_nanos(700_000)],
    });
    vary!(all, spec.bus: BusSpec {
        interface_sector: [us(0), us(20), us(150), us(600)],
        read_sector: [us(0), us(40), us(400)],
        write_sector: [us(0), us(40), us(400)],
        arbitration: [us(0), us(90)],
        hold_for_read: [false, true],
        hold_for_write: [false, true],
        never_disconnect: [false, true],
    });
    vary!(all, spec.overhead: OverheadSpec {
        per_command: [us(0), us(700)],
        read_hit_after_read: [us(0), us(700)],
        read_hit_after_write: [us(0), us(700)],
        read_miss_after_read: [us(0), us(1_300)],
        read_miss_after_write: [us(0), us(1_300)],
        write_hit_after_read: [us(0), us(700)],
        write_hit_after_write: [us(0), us(700)],
        write_miss_after_read: [us(0), us(1_300)],
        write_miss_after_write: [us(0), us(1_300)],
        read_completion: [us(0), us(400)],
        write_completion: [us(0), us(400)],
        data_preparation: [us(0), us(300)],
        first_reselect: [us(0), us(500)],
        other_reselect: [us(0), us(500)],
        read_disconnect_after_read: [us(0), us(250)],
        read_disconnect_after_write: [us(0), us(250)],
        write_disconnect: [us(0), us(2_500)],
        minimum_seek_delay: [us(0), us(1_100)],
        early_write_disconnect: [None, Some(EarlyDisconnect {
            command: us(800),
            first_disconnect: us(70),
            between: us(120),
            second_disconnect: us(1_900),
            seek_delay: us(140),
        })],
    });
    vary!(all, spec.queue: QueueSpec {
        depth: [1, 32],
        policy: [FirmwarePolicy::Fifo, FirmwarePolicy::Sptf { margin: us(300), age_cap: None }],
        preseek: [Preseek::Off, Preseek::AtCompletion, Preseek::AtMediaEnd, Preseek::JustInTime],
        stream_cap: [us(0), us(50_000)],
        stream_hold: [us(0), us(5_000)],
        ncq_prio: [false, true],
        oldest_every: [0, 8],
        oldest_age: [us(0), us(90_000)],
    });
    vary!(all, spec.cache: CacheSpec {
        enabled: [false, true],
        segments: [2, 48],
        segment_sectors: [16, 57, 4_096],
        room_sectors: [0, 8_192],
        write_segments: [1, 2],
        dedicated_write_segment: [false, true],
        read_ahead: [ReadAhead::Off, ReadAhead::TrackEnd, ReadAhead::CylinderEnd, ReadAhead::SegmentFull, ReadAhead::NextTrack],
        read_ahead_min: [0, 1, 40, 700],
        read_ahead_max: [0, 8, 4_000],
        second_read_ahead_min: [0, 60],
        requested_data: [RequestedData::Dropped, RequestedData::Kept, RequestedData::Replaceable],
        read_ahead_on_idle_hit: [false, true],
        read_free_sectors: [false, true],
        almost_read_hits: [false, true],
        sneaky_full_read_hits: [false, true],
        sneaky_partial_read_hits: [false, true],
        sneaky_intermediate_read_hits: [false, true],
        read_hits_on_write_data: [false, true],
        write_prebuffering: [false, true],
        write_back: [WriteBack::Off, WriteBack::Appending, WriteBack::Flushed, WriteBack::Full],
        destage_delay: [us(0), us(40_000)],
        destage: [Destage::Segment, Destage::Sweep],
        destage_runs: [16, 1_024],
        destage_age: [us(900_000), us(4_000_000)],
        combine_sequential_writes: [false, true],
        stop_read_ahead_in_sector: [false, true],
        disconnect_write_in_seek: [false, true],
        write_hit_stops_read_ahead: [false, true],
        read_direct_to_buffer: [false, true],
        send_partial_hit_at_once: [false, true],
        write_low_water: [0.0, 0.9],
        read_high_water: [0.0, 0.3, 0.9],
        water_by_request: [false, true],
    });
    let layouts: [(&str, Change); 11] = [
        ("layout.order = serpentine", |spec| {
            spec.layout.order = Order::Serpentine;
        }),
        ("layout.order = serpentine throughout", |spec| {
            spec.layout.order = Order::SerpentineThroughout;
        }),
        ("layout.order = surface serpentine", |spec| {
            spec.layout.order = Order::SurfaceSerpentine { tracks: 40 };
        }),
        ("layout.sparing = track end", |spec| {
            spec.layout.sparing = Sparing::TrackEnd;
        }),
        ("layout.sparing = disk end", |spec| {
            spec.layout.sparing = Sparing::DiskEnd;
        }),
        ("layout.zones.offset", |spec| {
            zones(spec, |zone| zone.offset = Skew::Turns(0.37));
        }),
        ("layout.zones.track_skew = 0", |spec| {
            zones(spec, |zone| zone.track_skew = Skew::Sectors(0));
        }),
        ("layout.zones.track_skew", |spec| {
            zones(spec, |zone| zone.track_skew = Skew::Turns(0.31));
        }),
        ("layout.zones.cylinder_skew", |spec| {
            zones(spec, |zone| zone.cylinder_skew = Skew::Turns(0.6));
        }),
        ("layout.zones.reserved", |spec| {
            zones(spec, |zone| zone.reserved = 0);
        }),
        ("layout.zones.slips", |spec| {
            zones(spec, |zone| zone.slips.clear());
        }),
    ];
    all.extend(layouts);
    all
}

/// Reason for which the head alone does not tell the end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exception {
    /// The buffer serves sectors of the command.
    Buffered,
    /// The drive has read ahead for an unknown time, or reads ahead near the command's sectors.
    ReadAhead,
    /// The write ends in the buffer while the arm sets out, or the drive would do so without FUA.
    SetsOut,
    /// The write waits alone for reading ahead. The model assumes a second command. Then the drive prefetches data.
    Alone,
}

#[derive(Debug, Default)]
struct Found {
    matched: u32,
    excepted: u32,
    /// Commands with errors, with their predecessors.
    wrong: Vec<String>,
}

/// Runs three commands on a drive at rest, one after the other.
fn three(profile: &Profile, rested: &Drive, model: &Model, random: &mut Pcg64, found: &mut Found) {
    let mut below = |most: u64| random.next_u64() % most;
    let capacity = model.layout().capacity().get();
    let per = u64::from(profile.geometry.sectors_per_physical());
    let ahead = profile.cache.enabled && profile.cache.read_ahead != ReadAhead::Off;
    let mut drive = rested.clone();
    let mut now = Time::from_nanos(below(1 << 30));
    let mut head = HeadAfter {
        place: model.left_by(Extent::at(0, 1), Op::Read),
        free: Time::ZERO,
    };
    let mut before = String::new();
    let mut last = Extent::at(0, 1);
    for tag in 0..3 {
        let op = match below(2) {
            0 => Op::Read,
            _ => Op::Write,
        };
        let len = [1, 8, 9, 64, 1_024][below(5) as usize].max(per) / per * per;
        let near = below(4) == 0;
        let most = capacity - len;
        let start = match near {
            true => (last.start.get() + below(900)).min(most),
            false => below(most),
        };
        let extent = Extent::at(start / per * per, len);
        let fua = below(2) == 0;
        if below(2) == 0 && tag > 0 {
            now += us(below(30_000));
        }
        let command = Command {
            tag,
            op,
            extent,
            fua,
            high: false,
        };
        drive.submit(now, command);
        let done = loop {
            let next = drive.next_event().expect("a command is in the drive");
            if let Some(done) = drive.poll(next) {
                break done;
            }
        };
        let time = model
            .follow(&head, now, extent, op)
            .buffered_unless(fua, &head);
        let idle = now > head.free;
        let excepted = match done.hit {
            Hit::Full | Hit::Partial => Some(Exception::Buffered),
            Hit::Miss | Hit::Through if ahead && (idle || near) => Some(Exception::ReadAhead),
            _ if op == Op::Write
                && now < head.free
                && profile.queue.policy != FirmwarePolicy::Fifo =>
            {
                Some(Exception::Alone)
            }
            _ if op == Op::Write && profile.cache.write_back == WriteBack::Appending
                || profile.cache.write_back == WriteBack::Flushed =>
            {
                Some(Exception::SetsOut)
            }
            _ => None,
        };
        let off = time.done.max(done.at) - time.done.min(done.at);
        let case = format!(
            "{op:?} {extent:?} at {now}{}: {} ns off, {:?}",
            if fua { " forced" } else { "" },
            done.at.as_nanos() as i64 - time.done.as_nanos() as i64,
            done.hit,
        );
        if off <= us(1) {
            found.matched += 1;
        } else if excepted.is_some() {
            found.excepted += 1;
            return;
        } else {
            found.wrong.push(format!("{before}{case}"));
            return;
        }
        before += &format!("{case}; ");
        if time.buffered.is_some() || !time.on_medium {
            // The time of writing back is unknown here.
            return;
        }
        (now, head, last) = (done.at, time.head, extent);
    }
}

#[test]
fn each_key_is_in_the_prediction() {
    let mut failed = Vec::new();
    for name in ["atlas10k", "hp-c2247a", "wd5000aaks"] {
        let shipped = profile::by_name(name).expect("shipped");
        let mut valid = 0;
        for (key, change) in changes() {
            let changed = shipped.with(|spec| {
                spec.noise = NoiseSpec::default();
                change(spec);
            });
            let Ok(profile) = changed else { continue };
            valid += 1;
            let (drive, model) = (Drive::new(&profile, 1), Model::new(&profile));
            let mut random = Pcg64::seed_from_u64(11);
            let mut found = Found::default();
            for _ in 0..100 {
                three(&profile, &drive, &model, &mut random, &mut found);
            }
            let Found {
                matched,
                excepted,
                wrong,
            } = &found;
            if !wrong.is_empty() || *matched < 60 {
                failed.push(format!(
                    "{name}, {key}: {matched} right, {excepted} excepted, {} wrong: {:#?}",
                    wrong.len(),
                    &wrong[..wrong.len().min(2)]
                ));
            }
        }
        assert!(valid > 100, "{name}: {valid} changes are valid");
    }
    assert!(
        failed.is_empty(),
        "{} of\n{}",
        failed.len(),
        failed.join("\n")
    );
}
