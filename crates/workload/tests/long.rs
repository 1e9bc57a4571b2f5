//! Long traces, which are in a scratch file: the same requests as in memory.

use headtime_sched::{Class, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{
    ClosedReplay, Fit, Fitter, NewRequest, OpenReplay, Part, ReadOptions, Scratch, Script, Source,
    Speed, Start, Trace, TraceError,
};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

fn path(suffix: &str) -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("long-{}-{number}{suffix}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn scratch_file() -> io::Result<File> {
    let path = path("");
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn long(text: &str, options: &ReadOptions, from: usize) -> Result<Trace, TraceError> {
    let path = path(".trace");
    std::fs::write(&path, text).unwrap();
    let file = scratch_file;
    let trace = Trace::open_long(&[&path], options, Some(Scratch { file, from }));
    std::fs::remove_file(path).unwrap();
    trace
}

fn in_memory(text: &str, options: &ReadOptions) -> Result<Trace, TraceError> {
    long(text, options, usize::MAX)
}

/// Reads a trace both ways, with a scratch file for more than `from` requests, and compares all that a
/// replay asks for. Returns true if the scratch file was used.
fn same(text: &str, options: &ReadOptions, from: usize) -> bool {
    let (short, long) = (in_memory(text, options), long(text, options, from));
    let (short, long) = match (short, long) {
        (Ok(short), Ok(long)) => (short, long),
        (short, long) => {
            let message = |result: Result<Trace, TraceError>| {
                let text = result.unwrap_err().to_string();
                text.split_once(": ").unwrap().1.to_owned()
            };
            assert_eq!(message(long), message(short));
            return false;
        }
    };
    assert_eq!(long.iter().collect::<Vec<_>>(), short.requests);
    assert_eq!(long.count(), short.requests.len() as u64);
    let notes = |trace: &Trace| {
        let mut notes = trace.notes.clone();
        notes.file.clear();
        notes
    };
    assert_eq!(notes(&long), notes(&short));
    assert_eq!(long.devices(), short.devices());
    for device in short.devices() {
        assert_eq!(long.device_name(device), short.device_name(device));
        assert_eq!(
            long.find_device(&device.to_string()),
            short.find_device(&device.to_string())
        );
    }
    for (capacity, sector_bytes, fit) in [
        (1 << 40, 512, Fit::Refuse),
        (1 << 40, 4096, Fit::Refuse),
        (5_000, 512, Fit::Wrap),
        (5_000, 512, Fit::Refuse),
    ] {
        let fitter = Fitter::new(Sectors::new(capacity), sector_bytes, fit);
        for devices in [&short.devices()[..0], &short.devices()[..1]] {
            let script = |trace: &Trace| {
                let mut script = Script::new(trace, devices, &fitter)?;
                script.assign(1, Class::IDLE, |process| process == 3);
                script.assign(2, Class::REAL_TIME, |process| process < 5);
                Ok::<_, headtime_workload::ReplayError>(script)
            };
            let (short, long) = match (script(&short), script(&long)) {
                (Ok(short), Ok(long)) => (short, long),
                (short, long) => {
                    assert_eq!(long.unwrap_err(), short.unwrap_err());
                    continue;
                }
            };
            let counts = |script: &Script| {
                let counts = (script.count(), script.widened(), script.moved());
                // Counted one by one.
                let writes: Vec<Extent> = (script.iter())
                    .filter(|request| request.op == Op::Write)
                    .map(|request| request.extent)
                    .collect();
                let off = |extent: Extent| extent.start.get() % 8 + extent.end().get() % 8 > 0;
                let partial = writes.iter().filter(|extent| off(**extent)).count();
                let partial = (writes.len() as u64, partial as u64);
                assert_eq!(script.partial_writes(8), partial);
                (counts, partial)
            };
            assert_eq!(counts(&long), counts(&short));
            let (short, long) = (Arc::new(short), Arc::new(long));
            for speed in ["1", "0.5", "0.0001"] {
                let replay = |script: &Arc<Script>| {
                    let speed: Speed = speed.parse().unwrap();
                    let replay = OpenReplay::new(Arc::clone(script), speed, Start::AtOnce);
                    replay.map(|mut replay| made(&mut replay))
                };
                assert_eq!(replay(&long), replay(&short));
            }
            let closed = |script: &Arc<Script>| made(&mut ClosedReplay::new(Arc::clone(script), 3));
            assert_eq!(closed(&long), closed(&short));
            assert_eq!(long.failure(), None);
        }
    }
    long.requests.is_empty()
}

/// Returns the requests of a source. A request takes a microsecond.
fn made(source: &mut dyn Source) -> Vec<NewRequest> {
    let (mut now, mut made) = (Time::ZERO, Vec::new());
    while !source.done() {
        now = source.next_arrival().expect("another request").max(now);
        let request = source.poll(now).expect("a request that is due");
        now = now.saturating_add(Nanos::from_micros(1));
        source.completed(now, request.cookie);
        made.push(request);
    }
    made
}

fn with(format: &str) -> ReadOptions {
    ReadOptions {
        format: (!format.is_empty()).then(|| format.parse().unwrap()),
        ..ReadOptions::default()
    }
}

/// A trace of 100 requests in each format. Each fourth request is late by some requests.
fn text(format: &str, late: u64) -> String {
    let mut text = match format {
        "csv" => "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags,process_name\n",
        "iolog" => "fio version 3 iolog\n0 /dev/a add\n",
        _ => "",
    }
    .to_owned();
    for number in 0..100_u64 {
        let time = 1000 + number - late.min(number) * u64::from(number % 4 == 3);
        let (start, len) = (number * 7919 % 9000, 1 + number % 9);
        let (is_read, device) = (number % 3 > 0, number % 5 % 2);
        let op = if is_read { "Read" } else { "Write" };
        let (offset, size) = (512 * start + number % 2, 512 * len);
        let (process, flags) = (number % 7, number % 8);
        match format {
            "csv" => writeln!(
                text,
                "{time}000,{time}999,{device},{op},{start},{len},{process},{flags},p{process}"
            ),
            "disksim" => writeln!(
                text,
                "{time}.5 {device} {start} {len} {}",
                u8::from(is_read)
            ),
            "msr" => writeln!(
                text,
                "1281663720{time}0000,hm,{device},{op},{offset},{size},77"
            ),
            "msr of two hosts" => writeln!(
                text,
                "1281663720{time}0000,h{device},3,{op},{offset},{size},77"
            ),
            "iolog" => writeln!(
                text,
                "{time} /dev/{device} {} {offset} {size}",
                op.to_lowercase()
            ),
            "alibaba" => writeln!(
                text,
                "{device},{},{offset},{size},15770{time}0000",
                &op[..1]
            ),
            "systor" => writeln!(
                text,
                "15770{time}.5,0.25,{},{device},{offset},{size}",
                &op[..1]
            ),
            _ => unreachable!(),
        }
        .unwrap();
    }
    text
}

#[test]
fn a_long_trace_of_each_format_has_the_requests_of_one_in_memory() {
    for (format, name) in [
        ("csv", ""),
        ("disksim", ""),
        ("msr", ""),
        ("msr of two hosts", "msr"),
        ("iolog", ""),
        ("alibaba", "alibaba"),
        ("systor", "systor"),
    ] {
        let options = with(name);
        // Requests in order, requests late by fewer than the reader sorts, requests later still.
        for (late, from, is_filed) in [(0, 8, true), (5, 20, true), (30, 8, false)] {
            let text = text(format, late);
            assert_eq!(same(&text, &options, from), is_filed, "{format} {late}");
        }
        assert!(!same(&text(format, 0), &options, 101), "{format}");
        for (from, span, first) in [
            (Some(10), None, None),
            (None, Some(40), Some(30)),
            (Some(20), Some(30), Some(7)),
            (Some(1 << 20), None, None),
            (None, None, Some(3)),
        ] {
            let unit = match format {
                "csv" | "iolog" => 1_000,
                "disksim" | "msr" | "msr of two hosts" => 1_000_000,
                "alibaba" => 10_000_000,
                _ => 1_000_000_000,
            };
            let nanos = |units: u64| Nanos::from_nanos(units * unit);
            let part = Part {
                from: from.map(nanos),
                span: span.map(nanos),
                first,
            };
            let options = ReadOptions {
                part,
                ..options.clone()
            };
            same(&text(format, 5), &options, 20);
        }
    }
}

#[test]
fn requests_without_arrival_stay_in_memory() {
    let log = |waits: &str| {
        let mut text = "fio version 2 iolog\n/dev/a add\n".to_owned();
        for number in 0..40 {
            writeln!(text, "/dev/a read {} 4096\n{waits}", 4096 * number).unwrap();
        }
        text
    };
    assert!(same(&log("/dev/a wait 100 0"), &with(""), 8));
    assert!(!same(&log(""), &with(""), 8));
    let mut csv = text("csv", 0);
    csv.push_str(",,0,Read,8,8,1,0,p1\n");
    assert!(!same(&csv, &with(""), 8));
}

#[test]
fn a_full_disk_is_named_and_an_odd_line_too() {
    let full = || File::options().read(true).write(true).open("/dev/full");
    let path = path(".csv");
    std::fs::write(&path, text("csv", 0)).unwrap();
    let scratch = Scratch {
        file: full,
        from: 8,
    };
    let error = Trace::open_long(&[&path], &with(""), Some(scratch)).unwrap_err();
    assert!(matches!(error, TraceError::Scratch { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("No space left on device") && text.contains("TMPDIR"),
        "{text}"
    );
    assert!(!same(
        "1.0 0 1 8 1\n2.0 0 1 8 1\n3.0 0 x 8 1\n",
        &with(""),
        2
    ));
}

proptest! {
    #[test]
    fn any_order_of_arrivals_is_the_same(
        times in prop::collection::vec(0..60_u64, 1..80),
        from in 2..40_usize,
    ) {
        let mut text = String::new();
        for (number, time) in times.iter().enumerate() {
            writeln!(text, "{}.0 {} {} 8 1", number as u64 / 2 + time / 6, number % 2, 8 * number).unwrap();
        }
        same(&text, &with("disksim"), from);
    }
}
