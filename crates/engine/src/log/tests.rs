//! Tests of writing and reading logs, and of error messages.

use super::*;
use crate::Arrival;
use headtime_sched::{Class, Directive, Flags, Foretold, Origin};

#[test]
fn bad_lines_are_named() {
    let problem = |text: &str| {
        read(text)
            .find_map(Result::err)
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    for (text, expected) in [
        ("", ""),
        (
            "hello",
            "line 1: not a log: it must begin with \"headtime-log 3\"",
        ),
        (
            "headtime-log 4",
            "line 1: version 4 is not known; this program reads up to 3",
        ),
        (
            "headtime-log 1\nX 1",
            "line 2: \"X\" is no kind of line; allowed are A, C, W, U, T, J, P, R, O, M, B, D, S, G, I, F and #",
        ),
        (
            "headtime-log1",
            "line 1: not a log: it must begin with \"headtime-log 3\"",
        ),
        (
            "headtime-log 1\n# ",
            "line 2: the name of the setting is missing",
        ),
        ("headtime-log 1\nW", "line 2: the time is missing"),
        (
            "headtime-log 1\nW -3",
            "line 2: the time is \"-3\"; it must be a whole number",
        ),
        (
            "headtime-log 1\nW 9223372036854775808",
            "line 2: the time is 9223372036854775808; allowed is up to 9223372036854775807",
        ),
        (
            "headtime-log 1\nW 3 4",
            "line 2: \"4\" is one field too many",
        ),
        (
            "headtime-log 1\nW 3\nW 2",
            "line 3: time 2 lies before the line above",
        ),
        (
            "headtime-log 1\nC 3 0 fine",
            "line 2: \"fine\" is no outcome; allowed are ok, medium, timeout and device",
        ),
        (
            "headtime-log 1\nA 3 0 R 0 0 0 0 0 0 1",
            "line 2: only a flush has 0 sectors, and it has no more",
        ),
        (
            "headtime-log 1\nA 3 0 R 0 8 9 0 0 0 1",
            "line 2: flags are 9; allowed are 0 to 7",
        ),
        (
            "headtime-log 1\nA 3 0 R 0 8 0 0 70000 0 1",
            "line 2: the program is 70000, which is too large",
        ),
        (
            "headtime-log 3\nF 3 c1 ok",
            "line 2: the id is \"c1\"; it must be a whole number, with `b` before it for the background",
        ),
        ("headtime-log 3\nD 3 1", "line 2: the lane is missing"),
        (
            "headtime-log 3\nP 3 1",
            "line 2: \"1\" is neither on nor off",
        ),
        (
            "headtime-log 3\nJ 3 b3 R 0 8 0 0 0 0 2 0 by",
            "line 2: \"by\" is no way to join; allowed are before, with, alone and queued",
        ),
        (
            "headtime-log 3\nD 3 1 256",
            "line 2: the lane is 256, which is too large",
        ),
        (
            "headtime-log 2\nI 3 9 R 0 1\nI 3 9 R 0 1",
            "line 3: tag 9 is issued and in the drive",
        ),
        (
            "headtime-log 2\nI 3 9 R 0 1\nC 3 8 ok",
            "line 3: tag 8 completes and is not in the drive",
        ),
        (
            "headtime-log 1\nI 3 0 R 18446744073709551615 1",
            "line 2: 18446744073709551615+1 leaves 64 bits",
        ),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
}

#[test]
fn lines_round_trip() {
    let mut text = String::new();
    write_header(&mut text);
    write_setting(&mut text, "scheduler", "deadline:fifo_batch=8");
    let records = [
        Record::Setting {
            key: "scheduler".into(),
            value: "deadline:fifo_batch=8".into(),
        },
        Record::Event(
            Time::from_nanos(1),
            Event::Arrived(Arrival {
                id: RequestId::Client(u64::MAX),
                op: Op::Write,
                extent: Extent::at(1, 2),
                flags: Flags::FUA.with(Flags::SYNC),
                origin: Origin {
                    process: 3,
                    program: 4,
                    export: 5,
                },
                class: Class::IDLE,
                since: Some(Time::from_nanos(1)),
            }),
        ),
        Record::Decision(
            Time::from_nanos(1),
            Decision::Issue {
                tag: DriveTag(7),
                op: Op::Write,
                extent: Extent::at(1, 2),
            },
        ),
        Record::Event(
            Time::from_nanos(9),
            Event::Completed {
                tag: DriveTag(7),
                outcome: Outcome::MediumError,
            },
        ),
        Record::Decision(
            Time::from_nanos(9),
            Decision::Finish {
                id: RequestId::Client(u64::MAX),
                outcome: Outcome::MediumError,
            },
        ),
        Record::Event(Time::from_nanos(10), Event::Woke),
        Record::Event(Time::from_nanos(10), Event::Unplugged),
        // A flush of a part of the volume.
        Record::Event(
            Time::from_nanos(10),
            Event::Arrived(Arrival {
                id: RequestId::Client(6),
                op: Op::Flush,
                extent: Extent::at(4096, 0),
                flags: Flags::NONE,
                origin: Origin::default(),
                class: Class::BEST_EFFORT,
                since: None,
            }),
        ),
        Record::Event(Time::from_nanos(10), Event::Offering(true)),
        Record::Event(Time::from_nanos(10), Event::Offering(false)),
        Record::Event(Time::from_nanos(10), Event::Offered(Lane(255))),
        Record::Event(
            Time::from_nanos(10),
            Event::Directed(Directive::Mark(RequestId::Client(17))),
        ),
        Record::Event(
            Time::from_nanos(10),
            Event::Directed(Directive::Dedicate {
                until: Time::from_nanos(11),
            }),
        ),
        Record::Event(Time::from_nanos(10), Event::Directed(Directive::Release)),
        Record::Event(
            Time::from_nanos(10),
            Event::Joined {
                arrival: Arrival {
                    id: RequestId::Background(4),
                    op: Op::Read,
                    extent: Extent::at(1, 2),
                    flags: Flags::NONE,
                    origin: Origin::default(),
                    class: Class::IDLE,
                    since: None,
                },
                lane: Lane(1),
                join: Join::Alone,
            },
        ),
        Record::Event(
            Time::from_nanos(10),
            Event::Behind {
                origin: Origin {
                    process: 1,
                    program: 2,
                    export: 3,
                },
                class: Class::IDLE,
            },
        ),
        Record::Event(
            Time::from_nanos(10),
            Event::Foretold(Foretold {
                at: Time::from_nanos(12),
                op: Op::Write,
                extent: Extent::at(7, 3),
                origin: Origin {
                    process: 5,
                    program: 6,
                    export: 7,
                },
            }),
        ),
        Record::Event(
            Time::from_nanos(10),
            Event::Drained {
                from: Lane(3),
                to: Lane(255),
            },
        ),
        Record::Swapped(Time::from_nanos(11), Lane(0), "sptf-sw60".into()),
        Record::Swapped(Time::from_nanos(11), Lane(7), "noop".into()),
        Record::GateSwapped(
            Time::from_nanos(11),
            "ranks:age=4".into(),
            vec!["noop".into(), "sstf".into()],
        ),
        Record::OfMember(
            Member(u16::MAX),
            Box::new(Record::Event(Time::from_nanos(11), Event::Woke)),
        ),
    ];
    for record in &records[1..] {
        write_record(&mut text, record);
    }
    let read: Vec<Record> = read(&text)
        .map(|line| line.expect("as written").1)
        .collect();
    assert_eq!(read, records);
}

#[test]
fn tags_of_version_2_become_the_lowest_drive_tags_that_are_free() {
    let lines = "I 0 7 R 0 1\nI 0 3 R 9 1\nC 1 7 ok\nI 1 5 R 5 1\nI 1 7 R 7 1\nC 2 3 ok\nC 2 7 ok";
    let tags = |version: u32| -> Vec<u32> {
        let text = format!("headtime-log {version}\n{lines}");
        let tag = |record| match record {
            Record::Decision(_, Decision::Issue { tag, .. }) => tag.0,
            Record::Event(_, Event::Completed { tag, .. }) => tag.0,
            other => panic!("{other:?}"),
        };
        read(&text)
            .map(|line| tag(line.expect("a log").1))
            .collect()
    };
    assert_eq!(tags(2), [0, 1, 0, 0, 2, 1, 2]);
    assert_eq!(tags(1), tags(2));
    assert_eq!(tags(3), [7, 3, 7, 5, 7, 3, 7]);
}

#[test]
fn a_log_of_version_2_with_more_commands_than_any_drive_takes_is_refused() {
    let mut text = "headtime-log 2\n".to_owned();
    for tag in 0..257 {
        text.push_str(&format!("I 0 {tag} R 0 1\n"));
    }
    let error = read(&text).find_map(Result::err).expect("one too many");
    assert_eq!(
        error.to_string(),
        "line 258: tag 256 is issued, with 256 others in the drive"
    );
}

/// Reads a stream. Returns the numbers of the lines read, the error, and true if the last line has no end.
fn stream(text: &[u8]) -> (Vec<usize>, Option<String>, bool) {
    let mut reader = Reader::new(text);
    let (mut lines, mut error) = (Vec::new(), None);
    loop {
        match reader.next_record() {
            Ok(Some((line, _))) => lines.push(line),
            Ok(None) => break,
            Err(found) => {
                error = Some(found.to_string());
                break;
            }
        }
    }
    (lines, error, reader.is_cut())
}

#[test]
fn a_stream_is_read_up_to_where_it_was_cut() {
    let whole = "headtime-log 3\n# depth 1\n\nA 0 0 R 0 8 0 0 0 0 1\nW 500\n";
    assert_eq!(stream(whole.as_bytes()), (vec![2, 4, 5], None, false));
    // A log cut at any place gives its complete lines.
    for len in 15..whole.len() {
        let (lines, error, cut) = stream(&whole.as_bytes()[..len]);
        assert_eq!(error, None, "{len}");
        let ends = whole.as_bytes()[len - 1] == b'\n';
        assert_eq!(cut, !ends, "{len}");
        let complete = whole[..len].matches('\n').count();
        assert!(
            lines.iter().all(|line| *line <= complete),
            "{len}: {lines:?}"
        );
    }
    for len in 0..14 {
        let (lines, error, cut) = stream(&whole.as_bytes()[..len]);
        assert_eq!((lines, cut), (vec![], true));
        let known = error.is_some_and(|error| error.starts_with("line 1: "));
        assert!(known, "{len}");
    }
}

#[test]
fn a_stream_that_is_no_log_is_refused() {
    let error = |text: &[u8]| stream(text).1.unwrap_or_default();
    assert_eq!(
        error(b"headtime-log 3\nW 3\nW \xff\n"),
        "line 3: is not text in UTF-8"
    );
    assert_eq!(
        error(b"\xff\xfe"),
        "line 1: not a log: it must begin with \"headtime-log 3\""
    );
    assert_eq!(
        error(b"headtime-log 3\nW 3\nW 2\n"),
        "line 3: time 2 lies before the line above"
    );
    let mut long = b"headtime-log 3\n# x ".to_vec();
    long.resize(LINE_MAX + 100, b'x');
    assert_eq!(
        error(&long),
        format!("line 2: the line is longer than {LINE_MAX} bytes")
    );
}

/// A medium that fails.
struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("worn out"))
    }
}

#[test]
fn a_stream_that_cannot_be_read_says_so_once() {
    let begun = "headtime-log 3\nW 3\n".as_bytes();
    let input = std::io::BufReader::new(std::io::Read::chain(begun, Broken));
    let got: Vec<_> = Reader::new(input).collect();
    assert_eq!(got.len(), 2);
    let error = got[1].as_ref().expect_err("it is broken").to_string();
    assert_eq!(error, "line 3: cannot read: worn out");
}

#[test]
fn a_line_of_a_member_that_cannot_be_is_refused() {
    let problem = |line: &str| {
        let text = format!("headtime-log 3\n{line}\n");
        let mut read = read(&text);
        read.find_map(Result::err).expect("wrong").to_string()
    };
    let allowed = "allowed are 1 to 65535, and nothing for member 0";
    assert_eq!(
        problem("@0 W 9"),
        format!("line 2: the member is \"0\"; {allowed}")
    );
    assert_eq!(
        problem("@65536 W 9"),
        format!("line 2: the member is \"65536\"; {allowed}")
    );
    assert_eq!(problem("@2"), "line 2: the kind of line is missing");
    assert_eq!(
        problem("@2 # key value"),
        "line 2: a setting is of all members"
    );
}
