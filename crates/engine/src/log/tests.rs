//! What is written is read, and what is wrong is named.

use super::*;
use crate::Arrival;
use headtime_sched::{Class, Flags, Foretold, Origin};

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
            "line 1: not a log: it must begin with \"headtime-log 2\"",
        ),
        (
            "headtime-log 3",
            "line 1: version 3 is not known; this program reads up to 2",
        ),
        (
            "headtime-log 1\nX 1",
            "line 2: \"X\" is no kind of line; allowed are A, C, W, U, T, S, I, F and #",
        ),
        (
            "headtime-log1",
            "line 1: not a log: it must begin with \"headtime-log 2\"",
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
                id: u64::MAX,
                op: Op::Write,
                extent: Extent::at(1, 2),
                flags: Flags::FUA.with(Flags::SYNC),
                origin: Origin {
                    process: 3,
                    program: 4,
                    export: 5,
                },
                class: Class::IDLE,
            }),
        ),
        Record::Decision(
            Time::from_nanos(1),
            Decision::Issue {
                tag: Tag(7),
                op: Op::Write,
                extent: Extent::at(1, 2),
            },
        ),
        Record::Event(
            Time::from_nanos(9),
            Event::Completed {
                tag: Tag(7),
                outcome: Outcome::MediumError,
            },
        ),
        Record::Decision(
            Time::from_nanos(9),
            Decision::Finish {
                id: u64::MAX,
                outcome: Outcome::MediumError,
            },
        ),
        Record::Event(Time::from_nanos(10), Event::Woke),
        Record::Event(Time::from_nanos(10), Event::Unplugged),
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
        Record::Swapped(Time::from_nanos(11), "sptf-sw60".into()),
    ];
    for record in &records {
        match record {
            Record::Setting { .. } => {}
            Record::Event(now, event) => write_event(&mut text, *now, event),
            Record::Decision(now, decision) => write_decision(&mut text, *now, decision),
            Record::Swapped(now, scheduler) => write_swap(&mut text, *now, scheduler),
        }
    }
    let read: Vec<Record> = read(&text)
        .map(|line| line.expect("as written").1)
        .collect();
    assert_eq!(read, records);
}
