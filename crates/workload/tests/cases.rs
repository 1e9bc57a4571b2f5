//! Tests of foreign traces: several files as one trace, parts of a trace, odd lines, and the collected
//! cases if their folder exists.

use headtime_sched::Op;
use headtime_units::{Nanos, Time};
use headtime_workload::{Format, Part, ReadOptions, Trace, TraceError};
use std::path::{Path, PathBuf};

fn with(format: &str) -> ReadOptions {
    ReadOptions {
        format: Some(format.parse().unwrap()),
        ..ReadOptions::default()
    }
}

fn lenient(options: ReadOptions) -> ReadOptions {
    ReadOptions {
        lenient: true,
        ..options
    }
}

fn nanos(time: Option<Time>) -> Option<u64> {
    time.map(Time::as_nanos)
}

/// Files in a folder of their own.
fn files(test: &str, contents: &[(&str, &str)]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    let write = |(name, text): &(&str, &str)| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    contents.iter().map(write).collect()
}

#[test]
fn several_files_are_one_trace_in_order_of_arrival() {
    let paths = files(
        "several",
        &[
            (
                "a.csv",
                "7,R,0,512,1700000000000002\n9,W,0,512,1700000000000003\n",
            ),
            ("b.csv", "9,R,512,512,1700000000000001\n"),
        ],
    );
    let trace = Trace::open_all(&paths, &with("alibaba")).unwrap();
    let found: Vec<_> = (trace.requests.iter())
        .map(|request| {
            (
                nanos(request.arrival),
                trace.device_name(request.device).unwrap(),
                request.op,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some(0), "9", Op::Read),
            (Some(1000), "7", Op::Read),
            (Some(2000), "9", Op::Write),
        ]
    );
    assert_eq!((trace.notes.lines, trace.devices().len()), (3, 2));
    // A date and a time since some start are of different clocks.
    let paths = files(
        "clocks",
        &[
            ("a.csv", "7,R,0,512,1700000000000002\n"),
            ("b.csv", "9,R,512,512,5\n"),
        ],
    );
    let error = Trace::open_all(&paths, &with("alibaba"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("a.csv has dates and "), "{error}");
}

#[test]
fn files_of_several_kinds_are_described_each() {
    let event = "8,0 1 1 0.5 7 Q R 8 + 8 [p]\n";
    let paths = files(
        "kinds",
        &[
            ("a.trace", "0.0 0 0 8 1\n"),
            ("b.txt", event),
            ("c.trace", "1.0 0 8 8 1\n"),
            ("d.trace", "1 0 8 8 1\n"),
        ],
    );
    let read = |paths: &[PathBuf]| Trace::open_all(paths, &ReadOptions::default()).unwrap();
    let notes = read(&paths).notes;
    let kind = |notes: &headtime_workload::Notes| {
        let files = notes.file.split(", ").count();
        (
            files,
            notes.format.to_string(),
            notes.arrival_event.is_some(),
        )
    };
    let kinds: Vec<_> = notes.kinds().iter().map(kind).collect();
    let disksim = |files| (files, "disksim".to_owned(), false);
    let blkparse = (1, "blkparse".to_owned(), true);
    assert_eq!(kinds, [disksim(2), blkparse, disksim(1)]);
    let formats = notes.of_kinds(|kind| Some(kind.format));
    assert_eq!(formats.as_deref(), Some("disksim, blkparse"));
    // One kind is the kind of the trace.
    let same = read(&[paths[0].clone(), paths[2].clone()]).notes;
    assert_eq!(same.kinds(), std::slice::from_ref(&same));
}

#[test]
fn several_files_name_the_processes_of_one_trace() {
    let paths = files(
        "names",
        &[
            (
                "a.txt",
                "8,0 1 1 0.5 7 Q R 8 + 8 [sh]\n8,0 1 1 0.6 9 Q R 8 + 8 [cat]\n",
            ),
            (
                "b.txt",
                "dd-7 [000] 5.1: block_bio_queue: 8,0 R 8 + 8 [dd]\n<...>-9 [000] 5.2: block_bio_queue: 8,0 R 8 + 8 []\n",
            ),
            ("c.trace", "0.0 0 0 8 1\n"),
        ],
    );
    let trace = Trace::open_all(&paths, &ReadOptions::default()).unwrap();
    let names = [7, 9, 8].map(|process| trace.process_name(process));
    assert_eq!(names, [Some("dd"), Some("cat"), None]);
}

#[test]
fn events_of_a_request_may_be_in_files_of_several_processors() {
    let record = |time: u64, action: u32| {
        let mut record = Vec::new();
        record.extend(0x6561_7407_u32.to_le_bytes());
        record.extend(0_u32.to_le_bytes());
        record.extend(time.to_le_bytes());
        record.extend(5000_u64.to_le_bytes());
        for word in [4096, action, 7, 8 << 20, 0, 0] {
            record.extend(word.to_le_bytes());
        }
        record
    };
    let paths = files("processors", &[("t.blktrace.0", ""), ("t.blktrace.1", "")]);
    std::fs::write(
        &paths[0],
        [record(100, 0x1_0001), record(900, 0x1_0001)].concat(),
    )
    .unwrap();
    std::fs::write(
        &paths[1],
        [record(500, 0x1_0008), record(950, 0x1_0008)].concat(),
    )
    .unwrap();
    let trace = Trace::open_all(&paths, &ReadOptions::default()).unwrap();
    let times = trace
        .requests
        .iter()
        .map(|r| (nanos(r.arrival), nanos(r.completion)));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [(Some(100), Some(500)), (Some(900), Some(950))]
    );
    assert_eq!((trace.notes.unpaired, trace.notes.lines), (0, 4));
}

#[test]
fn a_part_is_counted_from_the_first_arrival() {
    let text = "5.0 0 0 8 1\n6.0 0 8 8 1\n8.0 0 16 8 1\n7.0 0 24 8 1\n9.0 0 32 8 1\n";
    let part = |from, span, first| {
        let options = ReadOptions {
            part: Part { from, span, first },
            ..ReadOptions::default()
        };
        Trace::read("t", text.as_bytes(), &options).map(|trace| {
            let starts = trace.requests.iter().map(|r| r.extent.start.get() / 8);
            (starts.collect::<Vec<_>>(), trace.notes.outside)
        })
    };
    let ms = |ms| Some(Nanos::from_millis(ms));
    assert_eq!(part(None, None, None).unwrap(), (vec![0, 1, 3, 2, 4], 0));
    assert_eq!(part(ms(1), None, None).unwrap(), (vec![1, 3, 2, 4], 1));
    assert_eq!(part(ms(1), ms(2), None).unwrap(), (vec![1, 3], 3));
    assert_eq!(part(ms(1), ms(9), Some(1)).unwrap(), (vec![1], 4));
    let error = part(ms(5), None, None).unwrap_err().to_string();
    assert_eq!(
        error,
        "t: none of its 5 requests is in the part that was asked for; they arrive within 4ms"
    );
}

#[test]
fn odd_lines_are_errors_or_counted_and_the_first_ten_named() {
    let mut text = "0.0 0 0 8 1\n".to_owned();
    for number in 0..12 {
        text.push_str(&format!("{number} what\n"));
    }
    text.push_str(&"1".repeat(200_000));
    text.push_str("\n1.0 0 8 8 0\n");
    let error = Trace::read("t", text.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("t: line 2, column 3: the device is `what`"),
        "{error}"
    );
    let trace = Trace::read("t", text.as_bytes(), &lenient(ReadOptions::default())).unwrap();
    assert_eq!((trace.requests.len(), trace.notes.lines), (2, 15));
    assert_eq!(
        (trace.notes.odd.count, trace.notes.odd.first.len()),
        (13, 10)
    );
    assert!(trace.notes.odd.first[9].starts_with("t: line 11, column 3"));
    // The first line may be odd, too.
    let trace = Trace::read(
        "t",
        &b"hello\n0.0 0 0 8 1\n"[..],
        &lenient(ReadOptions::default()),
    );
    assert_eq!(trace.unwrap().notes.odd.count, 1);
    let nothing = Trace::read("t", &b"hello\n"[..], &lenient(with("disksim"))).unwrap_err();
    let says = "t: no request; lines: 1; odd: 1 (t: line 1, column 1";
    assert!(nothing.to_string().starts_with(says), "{nothing}");
}

#[test]
fn an_error_in_a_file_says_as_what_it_was_taken() {
    let paths = files(
        "guess",
        &[
            ("fiu.txt", "899 4253 nfsd 5084 8 W 6 0 2ab1\n"),
            ("spc.txt", "0,303567,3584,w,0.0\n"),
        ],
    );
    let error = Trace::open(&paths[0], &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, TraceError::Guessed { .. }));
    let error = error.to_string();
    let says = "(taken for disksim; choose another with --trace-format; its first lines fit fiu)";
    assert!(error.ends_with(says), "{error}");
    let error = Trace::open(&paths[1], &ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("; its first lines fit spc"), "{error}");
    let says = "(taken for blktrace; choose another with --trace-format)";
    std::fs::write(&paths[1], 0x6561_7407_u32.to_le_bytes()).unwrap();
    let error = Trace::open(&paths[1], &ReadOptions::default()).unwrap_err();
    assert!(error.is_odd_line(), "{error}");
    assert!(error.to_string().ends_with(says), "{error}");
    // A caller that gave the format needs no hint.
    let error = Trace::open(&paths[0], &with("disksim"))
        .unwrap_err()
        .to_string();
    assert!(!error.contains("taken for"), "{error}");
}

/// A file, its format, its requests, and arrivals in ns and response times in us of the first requests.
type Right = (
    &'static str,
    &'static str,
    usize,
    &'static [u64],
    &'static [u64],
);

#[test]
fn the_collected_cases_are_read_right() {
    let Some(cases) = headtime_testkit::data("../cases") else {
        return;
    };
    const CASES: [Right; 18] = [
        (
            "biosnoop.txt",
            "biosnoop",
            3,
            &[0, 2_413_000, 3_177_000],
            &[3_140, 5_810, 5_050],
        ),
        (
            "bp-f1.txt",
            "blkparse-f",
            2,
            &[12_345, 10_000_000],
            &[8_100, 8_000],
        ),
        (
            "bp-f2.txt",
            "blkparse-f",
            3,
            &[12_345, 8_112_345, 1_005_000_000],
            &[],
        ),
        ("bp-f4-tabs.txt", "blkparse-f", 1, &[0], &[8_001]),
        (
            "bp-odd.txt",
            "blkparse",
            6,
            &[2_197, 8_607],
            &[8_997, 8_991],
        ),
        ("bp-cut.txt", "blkparse", 2, &[2_197, 8_607], &[]),
        (
            "ftrace-dm.txt",
            "ftrace",
            2,
            &[28_336_973_288_000],
            &[28, 27],
        ),
        (
            "systrace.txt",
            "systrace",
            2,
            &[1_001_000_000, 1_006_000_000],
            &[2_000, 2_000],
        ),
        ("sync-fn.txt", "blkparse", 1, &[0], &[68]),
        (
            "netsys.txt",
            "blkparse",
            2,
            &[675_722_600_000],
            &[7_400, 8_308],
        ),
        ("alibaba.csv", "alibaba", 3, &[0, 4_000, 19_233_000], &[]),
        ("tencent.csv", "tencent", 3, &[0, 0, 1_000_000_000], &[]),
        ("systor.csv", "systor", 3, &[0, 365_860, 1_465_860], &[157]),
        ("financial.spc", "spc", 6, &[0, 0, 26_214_000], &[]),
        ("fiu.blkparse", "fiu", 4, &[89_966_118_837], &[]),
        ("trace.blktrace.0", "blktrace", 1, &[1_000], &[8_001]),
        ("iolog-noclose.log", "iolog", 3, &[0, 100_000_000], &[]),
        ("iolog-trim.log", "iolog", 3, &[], &[]),
    ];
    for (file, format, requests, arrivals, responses) in CASES {
        let path = cases.join(file);
        let trace = Trace::open(&path, &lenient(with(format))).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(trace.requests.len(), requests, "{file}");
        let arrived = trace.requests.iter().filter_map(|r| nanos(r.arrival));
        let arrived: Vec<u64> = arrived.take(arrivals.len()).collect();
        assert_eq!(arrived, arrivals, "{file}");
        let took = trace
            .requests
            .iter()
            .filter_map(|r| Some(r.completion? - r.arrival?));
        let took: Vec<u64> = took.map(|took| took.as_nanos() / 1_000).collect();
        assert_eq!(took[..responses.len()], *responses, "{file}");
        let odd = u64::from(matches!(file, "biosnoop.txt" | "bp-cut.txt"));
        assert_eq!(trace.notes.odd.count, odd, "{file}");
    }
    let processes = |file: &str, format: &str| {
        let trace = Trace::open(&cases.join(file), &lenient(with(format))).unwrap();
        trace.requests.iter().map(|r| r.process).collect::<Vec<_>>()
    };
    assert_eq!(
        processes("biosnoop.txt", "biosnoop"),
        [Some(10291), Some(477), Some(10282)]
    );
    assert_eq!(processes("trace.blktrace.0", "blktrace"), [Some(100)]);
    for (file, format, process, name) in [
        ("biosnoop.txt", "biosnoop", 477, "jbd2/sdb1"),
        ("bp-odd.txt", "blkparse", 332, "xfsaild/sda1 (x]"),
        ("ftrace-dm.txt", "ftrace", 10477, "paging"),
        ("systrace.txt", "systrace", 40, "reader thread"),
        ("sync-fn.txt", "blkparse", 34004, "sync"),
        ("fiu.blkparse", "fiu", 2522, "kjournald"),
    ] {
        let trace = Trace::open(&cases.join(file), &lenient(with(format))).unwrap();
        assert_eq!(trace.process_name(process), Some(name), "{file}");
    }
    let scsi = ReadOptions {
        format: Some(Format::Csv),
        columns: Some(
            "time=1:s,op=2,address=3:sectors,size=4:sectors"
                .parse()
                .unwrap(),
        ),
        ..ReadOptions::default()
    };
    let scsi = Trace::open(&cases.join("scsi-opcodes.csv"), &scsi).unwrap();
    assert_eq!(
        scsi.requests.iter().map(|r| r.op).collect::<Vec<_>>(),
        [Op::Read, Op::Write]
    );
    let two_jobs = Trace::open(&cases.join("iolog-numjobs2.log"), &ReadOptions::default());
    let two_jobs = two_jobs.unwrap_err().to_string();
    assert!(
        two_jobs.contains("the log of a second job (numjobs=2"),
        "{two_jobs}"
    );
}
