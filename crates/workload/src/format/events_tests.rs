use crate::{ArrivalEvent, Format, ReadOptions, Trace, TraceError};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};

fn read_as(text: &str, arrival_event: Option<ArrivalEvent>) -> Result<Trace, TraceError> {
    let options = ReadOptions {
        arrival_event,
        ..ReadOptions::default()
    };
    Trace::read("e.txt", text.as_bytes(), &options)
}

fn read(text: &str) -> Trace {
    read_as(text, None).unwrap_or_else(|error| panic!("{error}"))
}

/// Arrival and completion in us, extent, process.
fn all(trace: &Trace) -> Vec<(u64, Option<u64>, Extent, Option<u32>)> {
    let us = |time: Time| time.as_nanos() / 1000;
    trace
        .requests
        .iter()
        .map(|r| {
            (
                us(r.arrival.expect("from an event")),
                r.completion.map(us),
                r.extent,
                r.process,
            )
        })
        .collect()
}

#[test]
fn processes_may_be_called_anything() {
    for (name, process) in [
        ("dd-12", Some(12)),
        ("Web Content-1234", Some(1234)),
        ("a [0] 1.5: x:-7", Some(7)),
        ("a-1 [000] -9", Some(9)),
        ("<idle>-0", Some(0)),
        ("kworker/u8:1-26959", Some(26959)),
        ("sh-77   (  76)", Some(77)),
        ("sh-77   (-------)", Some(77)),
        ("tape:   sh-77", Some(77)),
    ] {
        for flags in ["", "..... ", "d.s1. "] {
            let text =
                format!("  {name}  [001] {flags}5.000001: block_bio_queue: 8,0 R 8 + 8 [x]\n");
            let trace = read(&text);
            assert_eq!(trace.notes.format, Format::Ftrace, "{text}");
            assert_eq!(
                all(&trace),
                [(5_000_001, None, Extent::at(8, 8), process)],
                "{text}"
            );
        }
    }
    for (name, process) in [
        ("dd 12", Some(12)),
        ("Web Content  1234", Some(1234)),
        ("a-9 [000] 7", Some(7)),
        ("mysqld 812/815", Some(815)),
        (":-1 -1", None),
        ("swapper     0", Some(0)),
    ] {
        let text = format!("  {name} [001] 5.000001123: block:block_bio_queue: 8,0 R 8 + 8 [x]\n");
        let trace = read(&text);
        assert_eq!(trace.notes.format, Format::Perf, "{text}");
        assert_eq!(all(&trace)[0].3, process, "{text}");
        assert_eq!(
            trace.requests[0].arrival,
            Some(Time::from_nanos(5_000_001_123))
        );
    }
}

#[test]
fn processes_have_the_last_name_of_their_events() {
    let trace = read(
        "\
 sh-9 [000] .... 1.000001: block_bio_queue: 8,0 R 100 + 8 [sh]
 <...>-9 [000] .... 1.000002: block_rq_insert: 8,0 R 4096 () 100 + 8 be,0,4 [my [prog]]
 <...>-9 [000] .... 1.000003: block_rq_issue: 8,0 R 4096 () 100 + 8 be,0,4 [<...>]
 <...>-10 (-----) [000] .... 1.000004: block_bio_queue: 8,0 R 200 + 8 []
 z rd_int-11 (   9) [000] .... 1.000005: block_bio_queue: 8,0 R 300 + 8
 <idle>-0 [000] ..s. 1.000009: block_rq_complete: 8,0 R () 100 + 8 [0]
",
    );
    let names = [9, 10, 11, 0].map(|process| trace.process_name(process));
    assert_eq!(names, [Some("my [prog]"), None, Some("z rd_int"), None]);
    let perf = read(
        "\
 sh 9 [000] 1.1: block:block_bio_queue: 8,0 R 100 + 8 [txg_sync]
 :10 10 [000] 1.2: block:block_bio_queue: 8,0 R 200 + 8
 my sql 812/815 [000] 1.3: block:block_bio_queue: 8,0 R 300 + 8
 :-1 -1 [000] 1.4: block:block_bio_queue: 8,0 R 400 + 8 [x]
",
    );
    let names = [9, 10, 815].map(|process| perf.process_name(process));
    assert_eq!(names, [Some("txg_sync"), None, Some("my sql")]);
}

/// One event as older kernels print it without the priority, and newer ones with it, among lines of
/// other kinds.
#[test]
fn versions_of_the_kernel_and_other_lines() {
    let old = "\
# tracer: nop
CPU:1 [LOST 35 EVENTS]
 cat-9 [000] .... 1.000001: block_bio_queue: 8,0 R 100 + 8 [cat]
 cat-9 [000] d..2 1.000002: sched_switch: prev_comm=cat prev_pid=9 ==> next_comm=x
 cat-9 [000] .... 1.000003: block_rq_issue: 8,0 R 4096 () 100 + 8 [cat]
 cat-9 [000] .... 1.000003: <stack trace>
 => blk_mq_submit_bio
 <idle>-0 [000] ..s. 1.000009: block_rq_complete: 8,0 R () 100 + 8 [0]
 smartd-3 [000] .... 1.1: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [smartd]
 <idle>-0 [000] ..s. 1.2: block_rq_complete: 8,0 N (12 00 00 00 24 00) 0 + 0 [0]
";
    let new = old
        .replace(" [cat]", " be,0,4 [cat]")
        .replace(" [0]", " 0x2,0,4 [0]");
    for text in [old, &new] {
        let trace = read(text);
        assert_eq!(
            all(&trace),
            [(1_000_001, Some(1_000_009), Extent::at(100, 8), Some(9))]
        );
        let notes = &trace.notes;
        assert_eq!((notes.lost, notes.failed, notes.unpaired), (35, 0, 0));
        assert_eq!(notes.lines_ignored, 7);
        assert_eq!(trace.device_name(0), Some("8,0"));
    }
}

#[test]
fn an_error_of_the_device_is_counted() {
    let text = "\
 cat-9 [000] 1.000001: block_bio_queue: 8,0 R 100 + 8 [cat]
 cat-9 [000] 1.000009: block_rq_complete: 8,0 R () 100 + 8 be,0,4 [-5]
";
    let trace = read(text);
    assert_eq!(all(&trace)[0].1, Some(1_000_009));
    assert_eq!(trace.notes.failed, 1);
}

/// Device mapper has no requests. Its completions belong to queue events.
#[test]
fn completions_of_drivers_without_requests_are_paired() {
    let text = "\
 cat-9 [000] 1.000001: block_bio_queue: 253,0 R 100 + 8 [cat]
 cat-9 [000] 1.000002: block_bio_queue: 8,0 R 2148 + 8 [cat]
 cat-9 [000] 1.000003: block_rq_issue: 8,0 R 4096 () 2148 + 8 [cat]
 <idle>-0 [000] 1.000008: block_rq_complete: 8,0 R () 2148 + 8 [0]
 <idle>-0 [000] 1.000009: block_bio_complete: 253,0 R 100 + 8 [0]
";
    let trace = read(text);
    assert_eq!(
        all(&trace),
        [
            (1_000_001, Some(1_000_009), Extent::at(100, 8), Some(9)),
            (1_000_002, Some(1_000_008), Extent::at(2148, 8), Some(9)),
        ]
    );
    assert_eq!(trace.devices(), [0, 1]);
}

/// A write with forced unit access on a drive without such access: sectors, then a flush, then the
/// completion.
#[test]
fn forced_writes_end_after_their_flush() {
    let text = "\
 db-9 [000] 1.000001: block_bio_queue: 8,0 WFS 320 + 8 [db]
 db-9 [000] 1.000002: block_rq_issue: 8,0 WS 4096 () 320 + 8 [db]
 db-7 [000] 1.000003: block_bio_queue: 8,0 FWS 0 + 0 [db]
 <idle>-0 [000] 1.000004: block_rq_complete: 8,0 WS () 320 + 8 [0]
 kworker/0:1H-58 [000] 1.000005: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/0:1H]
 <idle>-0 [000] 1.000006: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]
 <idle>-0 [000] 1.000007: block_rq_complete: 8,0 WS () 320 + 0 [0]
 <idle>-0 [000] 1.000008: block_rq_complete: 8,0 WS () 0 + 0 [0]
";
    let trace = read(text);
    assert_eq!(
        all(&trace),
        [
            (1_000_001, Some(1_000_007), Extent::at(320, 8), Some(9)),
            (1_000_003, Some(1_000_008), Extent::default(), Some(7)),
        ]
    );
    assert_eq!(trace.requests[0].flags, Flags::FUA.with(Flags::SYNC));
    assert_eq!(trace.requests[1].op, Op::Flush);
    let issued = read_as(text, Some(ArrivalEvent::Issue)).expect("there are issue events");
    assert_eq!(
        all(&issued),
        [
            (1_000_002, Some(1_000_004), Extent::at(320, 8), Some(9)),
            // Flush that the kernel issued for both.
            (1_000_005, Some(1_000_006), Extent::default(), Some(7)),
        ]
    );
    assert_eq!((trace.notes.unpaired, issued.notes.unpaired), (0, 0));
}

#[test]
fn errors_name_the_field() {
    let start = " a-1 [000] 1.000001: ";
    for (line, message) in [
        (
            "nonsense",
            "column 1: the line is `nonsense`; allowed is process-id [cpu] seconds: event: .., as tracefs and `trace-cmd report` print by themselves",
        ),
        (
            "a 1 [000] 1.5: block:block_bio_queue: 8,0 R 1 + 1 [x]",
            "column 1: the line is `a 1 [000] 1.5: block:block_bio_queue: 8,0 R 1 + 1 [x]`; allowed is process-id [cpu] seconds: event: .., as tracefs and `trace-cmd report` print by themselves",
        ),
        (
            " a-1 [000] 123456: block_bio_queue: 8,0 R 1 + 1 [x]",
            "column 12: the time is `123456`; allowed is seconds with a decimal point (a trace clock that counts time, such as local, global, mono or boot)",
        ),
        (
            &format!("{start}block_bio_queue: sda R 1 + 1 [x]"),
            "column 39: the device is `sda`; allowed is major,minor such as 8,0",
        ),
        (
            &format!("{start}block_bio_queue: 8,0 q 1 + 1 [x]"),
            "column 43: the operation is `q`; allowed is letters such as R, WS, FWFS or D",
        ),
        (
            &format!("{start}block_bio_queue: 8,0 R 1 - 1 [x]"),
            "column 47: what is behind the sector is `-`; allowed is + and the number of sectors",
        ),
        (
            &format!("{start}block_bio_queue: 8,0 R 1 + [x]"),
            "column 49: the number of sectors is `[x]`; allowed is a whole number from 0 to 18446744073709551615",
        ),
        (
            &format!("{start}block_rq_issue: 8,0 R () 1 + 1 [x]"),
            "column 44: the number of bytes is `()`; allowed is a whole number from 0 to 18446744073709551615",
        ),
        (
            &format!("{start}block_rq_complete: 8,0 R 1 + 1 [0]"),
            "column 47: the command is `1`; allowed is bytes of a command in round brackets, or ()",
        ),
        (
            &format!("{start}block_rq_complete: 8,0 R (12 00 1 + 1 [0]"),
            "column 63: the command is `(nothing, the line ends)`; allowed is a round bracket at its end",
        ),
        (
            &format!("{start}block_rq_complete: 8,0 R () 1 + 1"),
            "column 55: the error code is `(nothing, the line ends)`; allowed is a number in square brackets such as [0]",
        ),
        (
            &format!("{start}block_bio_queue: 8,0 R 18446744073709551615 + 1 [x]"),
            "column 45: the sector with the number of sectors is `18446744073709551615`; allowed is a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before",
        ),
    ] {
        let text = format!("{start}block_bio_queue: 8,0 R 1 + 1 [x]\n{line}\n");
        let error = read_as(&text, None).expect_err(line);
        assert_eq!(error.to_string(), format!("e.txt: line 2, {message}"));
    }
}
