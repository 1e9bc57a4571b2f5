//! Texts that programs printed, in `tests/data`. The readers find the requests in them.
//!
//! One load, on a loop device with the scheduler mq-deadline of Linux 6.18, recorded by three programs (perf and
//! tracefs in the same run). Four processes made the requests, one after the other:
//!
//! - three direct reads,
//! - a read of 2 MiB, which the kernel handed in as two and issued as four,
//! - a direct write with `O_DSYNC` and its flushes,
//! - four pages written back as one, and a flush,
//! - a discard,
//! - a range of zeroes, which no trace has a place for,
//! - a read that failed.

use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Sectors, Time};
use headtime_workload::{
    ArrivalEvent, BLOCK_EVENTS, ClosedPerProcess, Fit, Fitter, Format, Pairing, ReadOptions,
    RingEvent, RingPage, RingReader, Script, Source, Trace, TraceRequest,
};
use std::path::Path;
use std::sync::Arc;

fn read(name: &str, arrival_event: Option<ArrivalEvent>) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let options = ReadOptions {
        arrival_event,
        ..ReadOptions::default()
    };
    Trace::open(&path, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Operation, first sector, sectors, process counted from the first, and how long it took in us.
fn lines(trace: &Trace) -> Vec<(Op, u64, u64, u32, u64)> {
    let first = trace.requests[0].process.expect("events have processes");
    trace
        .requests
        .iter()
        .map(|request: &TraceRequest| {
            let arrival = request.arrival.expect("events have times");
            let completion = request.completion.expect("all complete");
            (
                request.op,
                request.extent.start.get(),
                request.extent.len.get(),
                // The kernel's own threads have lower numbers.
                request
                    .process
                    .expect("events have processes")
                    .wrapping_sub(first),
                (completion - arrival).as_nanos() / 1000,
            )
        })
        .collect()
}

/// Without the times, which differ from run to run.
fn untimed(trace: &Trace) -> Vec<(Op, u64, u64, u32)> {
    lines(trace)
        .into_iter()
        .map(|(op, start, len, process, _)| (op, start, len, process))
        .collect()
}

const QUEUED: [(Op, u64, u64, u32); 14] = [
    (Op::Read, 800, 8, 0),
    (Op::Read, 808, 8, 0),
    (Op::Read, 5000, 8, 0),
    (Op::Read, 2048, 2048, 0),
    (Op::Read, 4096, 2048, 0),
    (Op::Write, 320, 32, 1),
    (Op::Flush, 0, 0, 1),
    (Op::Write, 32768, 8, 1),
    (Op::Write, 32776, 8, 1),
    (Op::Write, 32784, 8, 1),
    (Op::Write, 32792, 8, 1),
    (Op::Flush, 0, 0, 1),
    (Op::Discard, 4096, 128, 2),
    (Op::Read, 49152, 8, 3),
];

#[test]
fn one_load_through_three_programs() {
    for (name, format) in [
        ("tracefs.txt", Format::Ftrace),
        ("trace-cmd.txt", Format::Ftrace),
        ("perf.txt", Format::Perf),
    ] {
        let trace = read(name, None);
        assert_eq!(trace.notes.format, format, "{name}");
        assert_eq!(trace.notes.arrival_event, Some(ArrivalEvent::Queue));
        assert_eq!(untimed(&trace), QUEUED, "{name}");
        for request in &trace.requests {
            let process = request.process.expect("events have processes");
            assert_eq!(trace.process_name(process), Some("python3"), "{name}");
        }
        let notes = &trace.notes;
        assert_eq!((notes.failed, notes.unpaired, notes.lost), (1, 0, 0));
        assert_eq!((notes.out_of_order, notes.zero_length), (0, 0));
        assert_eq!(trace.device_name(0), Some("7,0"));
        assert_eq!(trace.requests[5].flags, Flags::FUA.with(Flags::SYNC));
        assert_eq!(trace.requests[6].flags, Flags::SYNC);
    }
}

#[test]
fn response_times_are_those_of_the_text() {
    let took: Vec<u64> = lines(&read("tracefs.txt", None))
        .into_iter()
        .map(|line| line.4)
        .collect();
    // The write with O_DSYNC, the sixth, ends with its flush: at 324544, and not at 324068. The parts
    // of the fourth and the fifth end apart.
    assert_eq!(
        took,
        [
            104, 19, 18, 2210, 5524, 567, 74, 37, 33, 29, 27, 251, 71, 35
        ]
    );
}

#[test]
fn issued_requests_keep_their_process() {
    for name in ["tracefs.txt", "trace-cmd.txt", "perf.txt"] {
        let trace = read(name, Some(ArrivalEvent::Issue));
        let issued = untimed(&trace);
        // The merged writes are one, and the kernel issued a flush for each that was asked for, and
        // one for the write with O_DSYNC.
        assert_eq!(issued.len(), 14, "{name}");
        let writes: Vec<_> = issued.iter().filter(|line| line.0 == Op::Write).collect();
        assert_eq!(
            writes,
            [&(Op::Write, 320, 32, 1), &(Op::Write, 32768, 32, 1)]
        );
        // A thread of the kernel issued it.
        assert!(issued.contains(&(Op::Discard, 4096, 128, 2)), "{name}");
        let flushes = issued.iter().filter(|line| line.0 == Op::Flush);
        assert_eq!(flushes.count(), 3, "{name}");
        assert_eq!(trace.notes.unpaired, 0, "{name}");
    }
}

#[test]
fn an_instance_of_trace_cmd_has_a_name() {
    let trace = read("trace-cmd-instance.txt", None);
    assert_eq!(trace.notes.format, Format::Ftrace);
    assert_eq!(untimed_of_complete(&trace), &QUEUED[..3]);
}

/// Complete requests of a trace, for a text that was cut off.
fn untimed_of_complete(trace: &Trace) -> Vec<(Op, u64, u64, u32)> {
    let mut complete = trace.clone();
    complete
        .requests
        .retain(|request| request.completion.is_some());
    untimed(&complete)
}

/// A replay closed per process needs the values that the readers give.
#[test]
fn they_replay_closed_per_process() {
    for name in ["tracefs.txt", "trace-cmd.txt", "perf.txt"] {
        let trace = read(name, None);
        let fitter = Fitter::new(Sectors::new(65_536), 512, Fit::Refuse);
        let script = Arc::new(Script::new(&trace, &[], &fitter).expect("it fits"));
        let mut replay = ClosedPerProcess::new(script).expect("nothing is missing");
        let mut made = 0;
        while let Some(now) = replay.next_arrival() {
            let request = replay.poll(now).expect("one is due");
            replay.completed(now, request.cookie);
            made += 1;
        }
        assert_eq!(made, QUEUED.len(), "{name}");
    }
}

#[test]
fn fio_writes_what_it_did() {
    let trace = read("fio-3.33.iolog", None);
    assert_eq!(trace.notes.format, Format::Iolog);
    let info = trace.info();
    assert_eq!(
        (info.total.reads, info.total.writes, info.total.flushes),
        (6, 4, 2)
    );
    assert_eq!(trace.device_name(0), Some("first.dat"));
    assert_eq!(trace.device_name(1), Some("second.dat"));
    let first = trace.requests[0];
    assert_eq!((first.device, first.extent), (0, Extent::at(8, 8)));
    // It thought for 20 ms between requests, which shows what unit the times are in.
    let gaps = info.gaps.expect("there are times");
    assert!((20_000_000..21_000_000).contains(&gaps.p50.as_nanos()));
    assert_eq!(info.processes, 0);
}

/// Two pages of the trace buffer, one of each processor, and the kernel's printed text of these pages. Both have the
/// same requests, in one case to the nanosecond.
#[test]
#[cfg_attr(
    target_endian = "big",
    ignore = "the pages come from a little-endian machine"
)]
fn pages_of_the_buffer_say_what_the_kernel_prints() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ring");
    let text = |name: &str| std::fs::read_to_string(directory.join(name)).expect("it is there");
    let formats = BLOCK_EVENTS.map(|name| text(&format!("{name}.format")));
    let reader = RingReader::new(
        &text("header_page"),
        [Some(&formats[0]), Some(&formats[1]), Some(&formats[2])],
    )
    .expect("the kernel describes them");
    let mut events: Vec<RingEvent> = Vec::new();
    for (name, count) in [("page0.bin", 23), ("page1.bin", 10)] {
        let page = std::fs::read(directory.join(name)).expect("it is there");
        let found = reader.page(&page, |event| events.push(event));
        let expected = RingPage {
            events: count,
            lost: false,
        };
        assert_eq!(found, Ok(expected), "{name}");
    }
    assert!(events.iter().all(|event| event.dev == 7 << 20));
    assert_eq!(events.iter().filter(|event| event.failed).count(), 1);
    let names: Vec<_> = events.iter().filter_map(|event| event.name).collect();
    assert!(names.iter().all(|name| name.starts_with(b"python3\0")));
    assert_eq!(names.len(), 15);
    events.sort_by_key(|event| event.time);
    let mut pairing = Pairing::new(None);
    for event in events.iter().filter_map(|event| event.event) {
        pairing.event(0, &event);
    }
    let paired = pairing.finish();
    assert_eq!((paired.unpaired, paired.unfinished), (0, 0));

    let printed = read("ring/trace.txt", None);
    let what = |list: &[(Op, u64, u64, u32)]| -> Vec<(Op, u64, u64)> {
        list.iter().map(|line| (line.0, line.1, line.2)).collect()
    };
    assert_eq!(what(&untimed(&printed)), what(&QUEUED));
    let rounded = |time: Option<Time>| {
        time.map(|time| Time::from_nanos((time.as_nanos() + 500) / 1000 * 1000))
    };
    let requests: Vec<TraceRequest> = paired
        .requests
        .into_iter()
        .map(|(_, request)| TraceRequest {
            arrival: rounded(request.arrival),
            completion: rounded(request.completion),
            ..request
        })
        .collect();
    assert_eq!(requests, printed.requests);
}
