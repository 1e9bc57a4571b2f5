//! Text output of blkparse in its default format.
//!
//! ```text
//!   8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
//!   device cpu sequence   seconds       pid  action, letters, sector + sectors [process]
//! ```
//!
//! Five actions matter (blkparse(1), "trace actions"):
//! - `Q`: a request enters the block layer,
//! - `I`: a scheduler takes the request,
//! - `D`: the request goes to the driver, perhaps merged with others,
//! - `R`: the driver gives an issued request back,
//! - `C`: the request is complete.
//!
//! The reader ignores all other actions, the summary at the end, and commands without sectors.
//!
//! The requests of the trace are the `Q` events, on which a scheduler works. If there are no `Q`
//! events, they are the `D` events. [`ReadOptions::arrival_event`](crate::ReadOptions) overrides this
//! choice. A completion is paired by device, operation and sectors: see [`Pairing`]. If a thread of the
//! kernel issues a request, its `I` event may tell which process made the request.
//!
//! A process has the name of its last such event.
//!
//! Devices are named `major,minor`, and numbered from 0 in order of appearance.

use super::fields::{Field, Fields};
use super::rwbs;
use crate::TraceRequest;
use crate::error::{FieldError, TraceError};
use crate::input::Input;
use crate::lines::Lines;
use crate::number;
use crate::numbered::Numbered;
use crate::pairing::{BlockAction, BlockEvent, Level, Pairing};
use crate::reader::{self, Reader};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};
use std::io::Read;

const SECOND: u64 = 1_000_000_000;

/// Contents of a line.
enum BlkparseLine<'a> {
    /// An event, with the name of the process that ran. The name may be empty.
    Event(BlockEvent, &'a [u8]),
    /// Any other line.
    Other,
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let mut devices = Numbered::default();
    let mut pairing = Pairing::new(reader.options.arrival_event);
    let mut summary = false;
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        if !recognise(line) {
            summary |= is_summary(line);
            if summary {
                reader.notes.lines_ignored += 1;
                continue;
            }
        }
        match parse(line, &mut devices) {
            Ok(BlkparseLine::Event(event, name)) => {
                reader.name_process(&event, name);
                pairing.event(number, &event);
            }
            Ok(BlkparseLine::Other) => reader.notes.lines_ignored += 1,
            Err(error) => reader.odd(number, *error)?,
        }
    }
    reader.take(pairing.finish())?;
    reader.device_names = device_names(devices);
    Ok(())
}

/// Names of devices, `major,minor`, by number.
pub(super) fn device_names(devices: Numbered<(u32, u32)>) -> Vec<(u32, String)> {
    devices
        .into_list()
        .iter()
        .zip(0..)
        .map(|((major, minor), index)| (index, format!("{major},{minor}")))
        .collect()
}

/// Returns true if a line begins with `major,minor`, as events do. The rest of the line is not checked.
pub(crate) fn recognise(line: &[u8]) -> bool {
    device(Fields::new(line).next()).is_ok()
}

/// Returns true if a line is the first of the summary that blkparse writes behind the events.
fn is_summary(line: &[u8]) -> bool {
    let word = Fields::new(line).next().text;
    [
        &b"CPU"[..],
        b"Total",
        b"Throughput",
        b"Events",
        b"Skips",
        b"Input",
    ]
    .iter()
    .any(|start| word.starts_with(start))
}

pub(super) fn device(field: Field<'_>) -> Result<(u32, u32), Box<FieldError>> {
    let number = |text: &[u8]| {
        number::unsigned(text)
            .ok()
            .and_then(|number| u32::try_from(number).ok())
    };
    memchr::memchr(b',', field.text)
        .and_then(|comma| {
            let (major, minor) = (&field.text[..comma], &field.text[comma + 1..]);
            Some((number(major)?, number(minor)?))
        })
        .ok_or_else(|| field.error("the device", "major,minor such as 8,0"))
}

/// Name of a process in square brackets at the end of a text. Empty if there is none. The name itself
/// may contain brackets.
#[inline]
pub(super) fn bracketed(text: &[u8]) -> &[u8] {
    let name = memchr::memchr(b'[', text).map(|open| &text[open + 1..]);
    let name = name.and_then(|rest| rest.trim_ascii_end().strip_suffix(b"]"));
    name.unwrap_or(b"")
}

fn parse<'a>(
    line: &'a [u8],
    devices: &mut Numbered<(u32, u32)>,
) -> Result<BlkparseLine<'a>, Box<FieldError>> {
    let mut fields = Fields::new(line);
    let device = device(fields.next())?;
    fields.next().unsigned("the processor")?;
    fields.next().unsigned("the sequence number")?;
    let time = fields.next().time("the time", SECOND)?;
    let process = fields.next().unsigned_32("the process")?;
    let letter = fields.next();
    let Some(action) = BlockAction::of_letter(letter.text) else {
        return if letter.text.is_empty() {
            Err(letter.error("the action", "a letter such as Q, D or C"))
        } else {
            Ok(BlkparseLine::Other)
        };
    };
    let letters = fields.next();
    let Some((op, flags)) = rwbs::read(letters.text) else {
        // Commands without sectors have letters too.
        return if letters.text.iter().all(u8::is_ascii_uppercase) && !letters.text.is_empty() {
            Ok(BlkparseLine::Other)
        } else {
            Err(letters.error("the operation", "letters such as R, WS, FWFS or D"))
        };
    };
    let request = TraceRequest {
        arrival: Some(Time::from_nanos(time)),
        completion: None,
        device: devices.number(&device, || device),
        op,
        extent: extent(&mut fields)?,
        process: Some(process),
        flags,
    };
    // Completed and requeued requests have an error code in place of the name.
    let name = match action {
        BlockAction::Queue | BlockAction::Insert | BlockAction::Issue => {
            bracketed(&line[letters.at..])
        }
        BlockAction::Requeue | BlockAction::Complete(_) => b"",
    };
    Ok(BlkparseLine::Event(block_event(action, request), name))
}

/// Makes the event of a request as blktrace records it, with a flush as an empty write.
pub(super) fn block_event(action: BlockAction, request: TraceRequest) -> BlockEvent {
    let TraceRequest {
        mut op,
        extent,
        mut flags,
        ..
    } = request;
    let mut action = action;
    if op == Op::Write && extent.is_empty() && matches!(action, BlockAction::Complete(_)) {
        // Completion of a flush that a process asked for. The kernel may have removed the letter `F` by
        // then.
        if !flags.has(Flags::PREFLUSH) {
            action = BlockAction::Complete(Level::Queued);
        }
        if extent.start.get() == 0 {
            op = Op::Flush;
        }
    }
    if extent.is_empty() && flags.has(Flags::PREFLUSH) {
        // An empty write with a flush before it is the flush itself.
        op = Op::Flush;
        flags = Flags::NONE;
    }
    BlockEvent {
        action,
        request: TraceRequest {
            op,
            extent: if op == Op::Flush {
                Extent::default()
            } else {
                extent
            },
            flags,
            ..request
        },
    }
}

/// Reads `sector + sectors`. A missing sector, or a sector alone, means no sectors.
fn extent(fields: &mut Fields<'_>) -> Result<Extent, Box<FieldError>> {
    let sector = fields.next();
    if sector.text.is_empty() || matches!(sector.text[0], b'[' | b'(') {
        return Ok(Extent::default());
    }
    let start = sector.unsigned("the sector")?;
    let plus = fields.next();
    if plus.text != b"+" {
        let ends = plus.text.is_empty() || matches!(plus.text[0], b'[' | b'(');
        return if ends {
            Ok(reader::extent(start, 0).unwrap_or_default())
        } else {
            Err(plus.error("what is behind the sector", "+ and the number of sectors"))
        };
    }
    let len = fields.next().unsigned("the number of sectors")?;
    reader::extent(start, len).ok_or_else(|| {
        sector.error(
            "the sector with the number of sectors",
            reader::EXTENT_ALLOWED,
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::{ArrivalEvent, Format, ReadOptions, Trace, TraceError};
    use headtime_sched::{Flags, Op};
    use headtime_units::{Extent, Time};

    fn read(text: &str, arrival_event: Option<ArrivalEvent>) -> Result<Trace, TraceError> {
        let options = ReadOptions {
            arrival_event,
            ..ReadOptions::default()
        };
        Trace::read("b.txt", text.as_bytes(), &options)
    }

    /// Arrival and completion in us, device, extent.
    fn all(trace: &Trace) -> Vec<(u64, Option<u64>, u32, Extent)> {
        let us = |time: Time| time.as_nanos() / 1000;
        trace
            .requests
            .iter()
            .map(|r| {
                (
                    us(r.arrival.unwrap()),
                    r.completion.map(us),
                    r.device,
                    r.extent,
                )
            })
            .collect()
    }

    const MERGED: &str = "
  8,0    1        1     0.000010000   100  Q   R 1000 + 8 [cat]
  8,0    1        2     0.000011000   100  G   R 1000 + 8 [cat]
  8,0    1        3     0.000012000   100  P   N [cat]
  8,0    1        4     0.000020000   100  Q   R 1008 + 16 [cat]
  8,0    1        5     0.000021000   100  M   R 1008 + 16 [cat]
  8,0    1        6     0.000022000   100  U   N [cat] 1
  8,16   1        7     0.000025000   101  Q  WS 5000 + 8 [sync]
  8,0    1        8     0.000030000   100  D   R 1000 + 24 [cat]
  8,16   1        9     0.000031000   101  D  WS 5000 + 8 [sync]
  8,0    0        1     0.005000000     0  C   R 1000 + 24 [0]
  8,16   0        2     0.006000000     0  C  WS 5000 + 8 [0]
CPU0 (8,0):
 Reads Queued:           2,       12KiB\t Writes Queued:           0,        0KiB
 Read depth:             1        \t Write depth:             0

Total (8,0):
 Reads Queued:           2,       12KiB
Throughput (R/W): 2,400KiB/s / 0KiB/s
Events (8,0): 9 entries
Skips: 0 forward (0 -   0.0%)
";

    #[test]
    fn queued_requests_and_their_common_completion() {
        let trace = read(MERGED, None).unwrap();
        assert_eq!(trace.notes.format, Format::Blkparse);
        assert_eq!(trace.notes.arrival_event, Some(ArrivalEvent::Queue));
        assert_eq!(
            all(&trace),
            [
                (10, Some(5000), 0, Extent::at(1000, 8)),
                (20, Some(5000), 0, Extent::at(1008, 16)),
                (25, Some(6000), 1, Extent::at(5000, 8)),
            ]
        );
        assert_eq!(trace.requests[0].process, Some(100));
        assert_eq!(trace.requests[2].flags, Flags::SYNC);
        assert_eq!(trace.device_name(1), Some("8,16"));
        assert_eq!(trace.notes.unpaired, 0);
    }

    #[test]
    fn issue_events_are_the_requests_if_chosen() {
        let expected = [
            (30, Some(5000), 0, Extent::at(1000, 24)),
            (31, Some(6000), 1, Extent::at(5000, 8)),
        ];
        assert_eq!(
            all(&read(MERGED, Some(ArrivalEvent::Issue)).unwrap()),
            expected
        );
        let without: String = MERGED
            .lines()
            .filter(|line| !line.contains(" Q "))
            .map(|line| format!("{line}\n"))
            .collect();
        let trace = read(&without, None).unwrap();
        assert_eq!(trace.notes.arrival_event, Some(ArrivalEvent::Issue));
        assert_eq!(all(&trace), expected);
    }

    #[test]
    fn split_twin_requeued_and_stray() {
        // One request completes in two parts.
        let split = "\
8,0 1 1 0.000001000 9 Q R 100 + 16 [x]
8,0 1 2 0.000002000 9 C R 108 + 8 [0]
8,0 1 3 0.000003000 9 C R 100 + 8 [0]
";
        assert_eq!(
            all(&read(split, None).unwrap()),
            [(1, Some(3), 0, Extent::at(100, 16))]
        );
        // Two equal requests complete in order. A third completion matches no request.
        let twins = "\
8,0 1 1 0.000001000 9 Q R 100 + 8 [x]
8,0 1 1 0.000002000 9 Q R 100 + 8 [y]
8,0 1 2 0.000003000 9 C R 100 + 8 [0]
8,0 1 3 0.000004000 9 C R 100 + 8 [0]
8,0 1 3 0.000005000 9 C R 100 + 8 [0]
8,0 1 3 0.000005000 9 Q W 100 + 8 [0]
";
        let trace = read(twins, None).unwrap();
        assert_eq!(
            all(&trace),
            [
                (1, Some(3), 0, Extent::at(100, 8)),
                (2, Some(4), 0, Extent::at(100, 8)),
                (5, None, 0, Extent::at(100, 8)),
            ]
        );
        assert_eq!(trace.notes.unpaired, 1);
        // A request that is given back and issued again remains one request.
        let requeued = "\
8,0 1 1 0.000001000 9 D R 100 + 8 [x]
8,0 1 1 0.000002000 9 R R 100 + 8 [0]
8,0 1 2 0.000003000 9 D R 100 + 8 [x]
8,0 1 3 0.000004000 9 C R 100 + 8 [0]
";
        assert_eq!(
            all(&read(requeued, None).unwrap()),
            [(1, Some(4), 0, Extent::at(100, 8))]
        );
    }

    /// Found by fuzzing: a completion before its request was accepted, and the response time was
    /// negative.
    #[test]
    fn a_completion_before_the_request_is_not_its() {
        let text = "\
8,0 1 1 0.000005000 9 Q R 100 + 8 [x]
8,0 1 2 0.000003000 9 C R 100 + 8 [0]
";
        let trace = read(text, None).unwrap();
        assert_eq!(all(&trace), [(5, None, 0, Extent::at(100, 8))]);
        assert_eq!(trace.notes.unpaired, 1);
    }

    #[test]
    fn flushes_and_discards_are_read_and_commands_passed_over() {
        let text = "\
8,0 1 1 0.000001000 9 Q FWS [fsync]
8,0 1 2 0.000002000 9 Q FWFS 64 + 8 [jbd2]
8,0 1 3 0.000003000 9 Q DS 1024 + 2048 [fstrim]
8,0 1 4 0.000004000 9 D N 36 (12 00 00 00 24 00 ..) [smartd]
8,0 1 5 0.000005000 9 C FWS 0 [0]
8,0 1 6 0.000006000 9 C FWFS 64 + 8 [0]
8,0 1 7 0.000007000 9 C DS 1024 + 2048 [0]
8,0 1 0 0.000007000 9 m N cfq expired
";
        let trace = read(text, None).unwrap();
        let ops: Vec<(Op, Flags)> = trace.requests.iter().map(|r| (r.op, r.flags)).collect();
        let strong = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC);
        assert_eq!(
            ops,
            [
                (Op::Flush, Flags::NONE),
                (Op::Write, strong),
                (Op::Discard, Flags::SYNC),
            ]
        );
        let completions: Vec<Option<u64>> = all(&trace).iter().map(|r| r.1).collect();
        assert_eq!(completions, [Some(5), Some(6), Some(7)]);
    }

    #[test]
    fn processes_have_the_last_name_of_their_events() {
        let text = "
  8,0 1 1 0.1 9 Q R 1 + 8 [sh]
  8,0 1 2 0.2 332 Q RM 1000 + 8 [xfsaild/sda1 (x]]
  8,0 1 3 0.3 9 I R 1 + 8 (      12) [Web Content]
  8,0 1 4 0.4 34004 Q FWS [sync]
  8,0 1 5 0.5 12 Q RA 999 + 8 []
  8,0 1 6 0.6 13 Q RA 1999 + 8 [(null)]
  8,0 1 7 0.7 9 D R 1 + 8 [<...>]
  8,0 1 8 0.8 9 C R 1 + 8 [0]
  8,0 1 9 0.9 9 R R 1 + 8 [5]
  8,0 1 9 0.9 14 Q R 1 + 8
";
        let trace = read(text, None).unwrap();
        let names = [9, 332, 34004, 12, 13, 14].map(|process| trace.process_name(process));
        let expected = [Some("Web Content"), Some("xfsaild/sda1 (x]"), Some("sync")];
        assert_eq!(names[..3], expected);
        assert_eq!(names[3..], [None; 3]);
    }

    #[test]
    fn errors_name_the_field() {
        for (line, message) in [
            (
                "8,0 1 1 -0.5 9 Q R 1 + 8 [x]",
                "line 2, column 9: the time is `-0.5`; allowed is a number of 0 or more",
            ),
            (
                "8,0 1 1 0.5 9 Q R 1 + [x]",
                "line 2, column 23: the number of sectors is `[x]`; allowed is a whole number from 0 to 18446744073709551615",
            ),
            (
                "8,0 1 1 0.5 9 Q q 1 + 8 [x]",
                "line 2, column 17: the operation is `q`; allowed is letters such as R, WS, FWFS or D",
            ),
            (
                "8,0 1 1 0.5",
                "line 2, column 12: the process is `(nothing, the line ends)`; allowed is a whole number from 0 to 18446744073709551615",
            ),
            (
                "sda 1 1 0.5 9 Q R 1 + 8",
                "line 2, column 1: the device is `sda`; allowed is major,minor such as 8,0",
            ),
        ] {
            let text = format!("8,0 1 1 0.1 9 Q R 1 + 8 [x]\n{line}\n");
            let error = read(&text, None).unwrap_err();
            assert_eq!(error.to_string(), format!("b.txt: {message}"));
        }
    }
}
