//! DiskSim's own ASCII format: `arrival device block blocks flags`, one request per line.
//!
//! The DiskSim 4 manual describes the columns as the default trace format:
//! - arrival time, a decimal number of milliseconds since the start,
//! - device number,
//! - first block,
//! - number of blocks,
//! - flags in hexadecimal. Bit 0 marks a read. The other bits are ignored.
//!
//! Other simulators write the same columns with arrivals in whole nanoseconds. Unless the caller gives
//! the unit, the first 64 KiB decide. The unit is nanoseconds if no arrival there has a decimal point,
//! and if the mean distance would exceed a second in milliseconds. Otherwise the unit is milliseconds.
//! After a guess of nanoseconds, a later decimal point is an error.

use super::fields::Fields;
use crate::TraceRequest;
use crate::error::{FieldError, TraceError};
use crate::input::Input;
use crate::lines::{LINE_MAX, Lines};
use crate::number;
use crate::reader::{self, EXTENT_ALLOWED, Reader};
use crate::trace::{TimeUnit, TimeUnitNote, UnitReason};
use headtime_sched::{Flags, Op};
use headtime_units::Time;
use std::io::Read;

/// Largest mean distance of whole numbers that are taken for milliseconds.
const GAP_MS_MAX: u64 = 1_000;

/// Bit of the flags that marks a read.
const READ: u32 = 1;

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let note = match reader.options.time_unit {
        Some(unit) => TimeUnitNote {
            unit,
            because: UnitReason::Told,
        },
        None => {
            let file = reader.file;
            match lines.sample() {
                Ok(sample) => guess(&sample[..sample.len().min(LINE_MAX)]),
                Err(error) => return Err(reader::line_error(file, lines.input(), error)),
            }
        }
    };
    reader.notes.time_unit = Some(note);
    while reader::advance(lines, reader)? {
        match parse(lines.current(), note) {
            Ok(request) => reader.push(lines.number(), request)?,
            Err(error) => reader.odd(lines.number(), *error)?,
        }
    }
    Ok(())
}

#[inline]
fn parse(line: &[u8], note: TimeUnitNote) -> Result<TraceRequest, Box<FieldError>> {
    let mut fields = Fields::new(line);
    let arrival = fields.next();
    let nanos = arrival.time("the arrival", note.unit.nanos())?;
    if note.because == UnitReason::FarApart && !number::is_integer(arrival.text) {
        return Err(arrival.error(
            "the arrival",
            "a whole number, since the arrivals at the start of the file look like nanoseconds; \
             tell the unit (--time-unit) if they are not",
        ));
    }
    let device = fields.next().unsigned_32("the device")?;
    let block = fields.next();
    let start = block.unsigned("the block")?;
    let blocks = fields.next();
    let len = blocks.unsigned("the number of blocks")?;
    let extent = reader::extent(start, len)
        .ok_or_else(|| block.error("the block with the number of blocks", EXTENT_ALLOWED))?;
    let flags = fields.next().hexadecimal("the flags")?;
    fields.end("the end of the line, after arrival, device, block, blocks and flags")?;
    Ok(TraceRequest {
        arrival: Some(Time::from_nanos(nanos)),
        completion: None,
        device,
        op: if flags & READ != 0 {
            Op::Read
        } else {
            Op::Write
        },
        extent,
        process: None,
        flags: Flags::NONE,
    })
}

/// Guesses the unit of the arrivals from the start of a file.
fn guess(sample: &[u8]) -> TimeUnitNote {
    let note = |unit, because| TimeUnitNote { unit, because };
    // The last line may be cut off.
    let whole = memchr::memrchr(b'\n', sample).map_or(sample, |at| &sample[..at]);
    let (mut least, mut most, mut count) = (u64::MAX, 0, 0_u64);
    for line in whole.split(|byte| *byte == b'\n') {
        let arrival = Fields::new(line).next().text;
        if arrival.starts_with(b"#") {
            continue;
        }
        if arrival.contains(&b'.') {
            return note(TimeUnit::Millis, UnitReason::DecimalPoint);
        }
        // Text that is no number is skipped here. The reader reports the error at its line.
        if let Ok(arrival) = number::unsigned(arrival) {
            least = least.min(arrival);
            most = most.max(arrival);
            count += 1;
        }
    }
    if count >= 2 && (most - least) / (count - 1) > GAP_MS_MAX {
        note(TimeUnit::Nanos, UnitReason::FarApart)
    } else {
        note(TimeUnit::Millis, UnitReason::CloseTogether)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ReadOptions, TimeUnit, Trace, TraceError, UnitReason};
    use headtime_sched::Op;
    use headtime_units::{Extent, Nanos, Time};

    fn parse(text: &str, options: &ReadOptions) -> Result<Trace, TraceError> {
        Trace::read("t.trace", text.as_bytes(), options)
    }

    fn with(unit: TimeUnit) -> ReadOptions {
        ReadOptions {
            time_unit: Some(unit),
            ..ReadOptions::default()
        }
    }

    fn arrivals(trace: &Trace) -> Vec<u64> {
        trace
            .requests
            .iter()
            .map(|request| request.arrival.unwrap().as_nanos())
            .collect()
    }

    #[test]
    fn a_line_becomes_a_request() {
        let text = "# a comment\r\n\r\n 13.191135\t30\t576560\t5\t1\r\n14 2 7 1 0";
        let trace = parse(text, &ReadOptions::default()).unwrap();
        assert_eq!(trace.requests.len(), 2);
        let request = trace.requests[0];
        assert_eq!(request.arrival, Some(Time::from_nanos(13_191_135)));
        assert_eq!((request.device, request.op), (30, Op::Read));
        assert_eq!(request.extent, Extent::at(576_560, 5));
        assert_eq!((request.process, request.completion), (None, None));
        assert_eq!(trace.requests[1].op, Op::Write);
        assert_eq!((trace.notes.lines, trace.notes.lines_ignored), (4, 2));
    }

    #[test]
    fn the_unit_is_told_or_guessed_and_noted() {
        let far = "11413000 0 657728 16 1\n11565000 1 31244784 64 1\n";
        let close = "0 0 100 8 1\n10 0 200 8 1\n";
        for (text, options, unit, because, arrival) in [
            (
                far,
                ReadOptions::default(),
                "ns",
                UnitReason::FarApart,
                11_413_000,
            ),
            (
                far,
                with(TimeUnit::Millis),
                "ms",
                UnitReason::Told,
                11_413_000_000_000,
            ),
            (
                close,
                ReadOptions::default(),
                "ms",
                UnitReason::CloseTogether,
                0,
            ),
            (close, with(TimeUnit::Nanos), "ns", UnitReason::Told, 0),
            (
                "5 0 1 1 1\n",
                ReadOptions::default(),
                "ms",
                UnitReason::CloseTogether,
                5_000_000,
            ),
        ] {
            let trace = parse(text, &options).unwrap();
            let note = trace.notes.time_unit.unwrap();
            assert_eq!(
                (note.unit.to_string().as_str(), note.because),
                (unit, because)
            );
            assert_eq!(arrivals(&trace)[0], arrival);
        }
    }

    #[test]
    fn a_wrong_guess_does_not_pass() {
        let mut text = String::new();
        for number in 1..=6000_u64 {
            text += &format!("{} 0 0 8 1\n", number * 1_000_000);
        }
        text += "6001000000.5 0 0 8 1\n";
        let error = parse(&text, &ReadOptions::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("t.trace: line 6001, column 1: the arrival is `6001000000.5`"),
            "{text}"
        );
    }

    #[test]
    fn arrivals_out_of_order_are_sorted_or_refused() {
        let text = "3.0 0 3 1 1\n1.0 0 1 1 1\n2.5 0 2 1 1\n";
        let trace = parse(text, &ReadOptions::default()).unwrap();
        assert_eq!(arrivals(&trace), [1_000_000, 2_500_000, 3_000_000]);
        assert_eq!(trace.notes.out_of_order, 2);
        assert_eq!(trace.notes.step_back_max, Nanos::from_millis(2));
        let refuse = ReadOptions {
            backwards: crate::Backwards::Refuse,
            ..ReadOptions::default()
        };
        assert_eq!(
            parse(text, &refuse).unwrap_err().to_string(),
            "t.trace: line 2: the request arrives at 1ms, before the one ahead of it at 3ms; \
             allowed are arrivals in order"
        );
    }

    #[test]
    fn errors_name_the_place_and_what_is_allowed() {
        let number = "allowed is a whole number from 0 to 18446744073709551615";
        for (line, message) in [
            (
                "-1.5 0 0 8 1",
                "column 1: the arrival is `-1.5`; allowed is a number of 0 or more".to_owned(),
            ),
            (
                "1.5 0 0",
                format!("column 8: the number of blocks is `(nothing, the line ends)`; {number}"),
            ),
            (
                "1.5 0 12x4 8 1",
                format!("column 7: the block is `12x4`; {number}"),
            ),
            (
                "1.5 4294967296 0 8 1",
                "column 5: the device is `4294967296`; allowed is a whole number from 0 to 4294967295".to_owned(),
            ),
            (
                "1.5 0 0 8 G",
                "column 11: the flags is `G`; allowed is a hexadecimal number of at most 8 digits".to_owned(),
            ),
            (
                "1.5 0 0 8 1 extra",
                "column 13: a further field is `extra`; allowed is the end of the line, after arrival, device, block, blocks and flags".to_owned(),
            ),
            (
                "1.5 0 36028797018963968 8 1",
                "column 7: the block with the number of blocks is `36028797018963968`; allowed is a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before".to_owned(),
            ),
            (
                "1.5 0 0 4294967296 1",
                "column 7: the block with the number of blocks is `0`; allowed is a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before".to_owned(),
            ),
        ] {
            let text = format!("0.0 0 0 8 1\n{line}\n");
            let error = parse(&text, &ReadOptions::default()).unwrap_err();
            assert_eq!(error.to_string(), format!("t.trace: line 2, {message}"));
        }
        // Bytes that are no text are escaped in the message.
        let error = Trace::read(
            "t",
            &b"1.0 0 \xff\x1b[31m 8 1\n"[..],
            &ReadOptions::default(),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("`\u{fffd}\\u{1b}[31m`")
        );
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let plain = parse("1.0 0 5 1 1\n", &ReadOptions::default()).unwrap();
        let marked = parse("\u{feff}1.0 0 5 1 1\n", &ReadOptions::default()).unwrap();
        assert_eq!(plain, marked);
        // A byte order mark is accepted at the start of a file only.
        let error = parse(
            "1.0 0 5 1 1\n\u{feff}1.0 0 5 1 1\n",
            &ReadOptions::default(),
        );
        assert!(error.unwrap_err().to_string().contains("line 2, column 1"));
    }

    #[test]
    fn a_file_without_requests_is_an_error() {
        let empty = parse("# only\n\n", &ReadOptions::default()).unwrap_err();
        assert_eq!(
            empty.to_string(),
            "t.trace: no request; lines: 2; passed over (blank, comments, headings, events that are no \
             requests): 2"
        );
        let empty = parse("# only\n1.0 0 5 0 1\n", &ReadOptions::default()).unwrap_err();
        assert!(
            empty.to_string().ends_with("; requests of no sectors: 1"),
            "{empty}"
        );
        let empty = parse("", &ReadOptions::default()).unwrap_err();
        assert_eq!(
            empty.to_string(),
            "t.trace: no request: it is empty; leave it out, or give a file with requests"
        );
        let trace = parse("1.0 0 5 0 1\n2.0 0 5 1 1\n", &ReadOptions::default()).unwrap();
        assert_eq!((trace.requests.len(), trace.notes.zero_length), (1, 1));
    }
}
