//! Log that fio writes with `write_iolog` and reads with `read_iolog`.
//!
//! ```text
//!     fio version 2 iolog           fio version 3 iolog
//!     /dev/sda add                  0 /dev/sda add
//!     /dev/sda open                 138 /dev/sda open
//!     /dev/sda read 28672 4096      142 /dev/sda read 28672 4096
//!     /dev/sda wait 100000 0        100579 /dev/sda write 385024 4096
//! ```
//!
//! fio's HOWTO describes the formats ("Trace file format v2", "v3"). Offset and length are in bytes.
//! `sync` and `datasync` are flushes, and `trim` is a discard. `add`, `open` and `close` are no
//! requests. The format has no completions and no processes.
//!
//! In version 3 each line begins with a time. The HOWTO gives no unit for this time. fio 3.33 writes
//! microseconds since the start. In version 2 only `wait` gives a time: the microseconds since the
//! previous `wait`. The second number of `wait` has no meaning. A log of version 2 without `wait` has
//! no arrivals.
//!
//! Each file is a device, named by its path, and numbered from 0 in order of appearance. Every file
//! begins at sector 0.

use super::fields::{Field, Fields};
use crate::TraceRequest;
use crate::error::{FieldError, TraceError};
use crate::input::Input;
use crate::lines::Lines;
use crate::number::TIME_MAX;
use crate::numbered::Numbered;
use crate::reader::{self, Reader};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};
use std::io::Read;

const MICROSECOND: u64 = 1_000;

/// Contents of a line.
enum IologLine {
    /// A request. True if the request covers whole sectors.
    Request(TraceRequest, bool),
    /// Nanoseconds since the previous `wait`.
    Wait(u64),
    /// Any other line.
    Other,
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let mut files = Numbered::default();
    let mut version = None;
    // Sum of all waits of version 2 so far.
    let mut waited = None;
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        let Some(timed) = version else {
            version = Some(is_timed(line).map_err(|error| reader.field_error(number, *error))?);
            reader.notes.lines_ignored += 1;
            continue;
        };
        match parse(line, timed, waited.unwrap_or(0), &mut files) {
            Ok(IologLine::Request(request, aligned)) => {
                reader.notes.unaligned += u64::from(!aligned);
                reader.push(number, request)?;
            }
            Ok(IologLine::Wait(nanos)) => {
                waited = Some(waited.unwrap_or(0).saturating_add(nanos).min(TIME_MAX));
                reader.notes.lines_ignored += 1;
            }
            Ok(IologLine::Other) => reader.notes.lines_ignored += 1,
            Err(error) => reader.odd(number, *error)?,
        }
    }
    if version == Some(false) && waited.is_none() {
        reader.take_back()?;
        for request in &mut reader.requests {
            request.arrival = None;
        }
    }
    reader.device_names = files
        .into_list()
        .iter()
        .zip(0..)
        .map(|(file, index)| (index, crate::error::shown(file)))
        .collect();
    Ok(())
}

/// Returns true if a line is the first of a file in this format, of any version.
pub(crate) fn recognise(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"fio version ") && line.ends_with(b" iolog")
}

/// Returns true if the version that the first line names has times.
fn is_timed(line: &[u8]) -> Result<bool, Box<FieldError>> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Ok(false),
        b"fio version 3 iolog" => Ok(true),
        other => Err(FieldError::new(
            0,
            "the version",
            other,
            "`fio version 2 iolog` or `fio version 3 iolog`",
        )),
    }
}

fn parse(
    line: &[u8],
    timed: bool,
    waited: u64,
    files: &mut Numbered<Vec<u8>>,
) -> Result<IologLine, Box<FieldError>> {
    if recognise(line) {
        return Err(FieldError::new(
            0,
            "the line",
            line,
            "one log in a file; here begins the log of a second job (numjobs=2, or two sections of the job file) or of \
             a further run: give each job and each run a write_iolog of its own",
        ));
    }
    let mut fields = Fields::new(line);
    let time = if timed {
        fields.next().time("the time", MICROSECOND)?
    } else {
        waited
    };
    let file = fields.next();
    let action = fields.next();
    let op = match action.text {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"trim" => Op::Discard,
        b"sync" | b"datasync" => Op::Flush,
        b"add" | b"open" | b"close" => {
            fields.end("the end of the line: a file is only named")?;
            return Ok(IologLine::Other);
        }
        // `sync_file_range` writes a part of a file back, without flushing the disk's cache.
        b"sync_file_range" => return Ok(IologLine::Other),
        b"wait" if !timed => {
            let nanos = fields.next().time("the time to wait", MICROSECOND)?;
            number_or_none(fields.next(), "the second number")?;
            fields.end("the end of the line")?;
            return Ok(IologLine::Wait(nanos));
        }
        b"wait" => {
            return Err(action.error(
                "the action",
                "an action without a time of its own: version 3 has no wait",
            ));
        }
        _ => {
            return Err(action.error(
                "the action",
                "read, write, trim, sync, datasync, wait (version 2), add, open or close",
            ));
        }
    };
    let offset = fields.next();
    let length = fields.next();
    let (extent, aligned) = if op == Op::Flush {
        number_or_none(offset, "the offset")?;
        number_or_none(length, "the length")?;
        (Extent::default(), true)
    } else {
        let at = offset.unsigned("the offset")?;
        reader::extent_of_bytes(at, length.unsigned("the length")?)
            .ok_or_else(|| offset.error("the offset with the length", reader::EXTENT_ALLOWED))?
    };
    fields.end("the end of the line, after the length")?;
    let device = files.number(file.text, || file.text.to_vec());
    Ok(IologLine::Request(
        TraceRequest {
            arrival: Some(Time::from_nanos(time)),
            completion: None,
            device,
            op,
            extent,
            process: None,
            flags: Flags::NONE,
        },
        aligned,
    ))
}

/// Checks a number that has no meaning and may be missing.
fn number_or_none(field: Field<'_>, name: &str) -> Result<(), Box<FieldError>> {
    if field.text.is_empty() {
        return Ok(());
    }
    field.unsigned(name).map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, Trace, TraceError, TraceRequest};
    use headtime_sched::Op;
    use headtime_units::{Extent, Time};

    fn read(text: &str) -> Result<Trace, TraceError> {
        Trace::read("io.log", text.as_bytes(), &ReadOptions::default())
    }

    /// Arrival in us, device, operation, extent.
    fn all(trace: &Trace) -> Vec<(Option<u64>, u32, Op, Extent)> {
        let us = |time: Time| time.as_nanos() / 1000;
        trace
            .requests
            .iter()
            .map(|r: &TraceRequest| (r.arrival.map(us), r.device, r.op, r.extent))
            .collect()
    }

    const VERSION_2: &str = "\
fio version 2 iolog
/dev/sdb add
/dev/sdc add
/dev/sdb open
/dev/sdc open
/dev/sdb read 28672 4096
/dev/sdb wait 20000 0
/dev/sdc write 385024 8192
/dev/sdc datasync 0 0
/dev/sdb wait 5000
/dev/sdb trim 1048576 65536
/dev/sdb sync
/dev/sdb close
/dev/sdc close
";

    #[test]
    fn waits_of_version_2_add_up_to_arrivals() {
        let trace = read(VERSION_2).unwrap();
        assert_eq!(trace.notes.format, Format::Iolog);
        assert_eq!(
            all(&trace),
            [
                (Some(0), 0, Op::Read, Extent::at(56, 8)),
                (Some(20_000), 1, Op::Write, Extent::at(752, 16)),
                (Some(20_000), 1, Op::Flush, Extent::default()),
                (Some(25_000), 0, Op::Discard, Extent::at(2048, 128)),
                (Some(25_000), 0, Op::Flush, Extent::default()),
            ]
        );
        assert_eq!(trace.device_name(1), Some("/dev/sdc"));
        assert_eq!((trace.notes.lines, trace.notes.lines_ignored), (14, 9));
    }

    #[test]
    fn without_waits_there_is_no_time() {
        let text: String = VERSION_2
            .lines()
            .filter(|line| !line.contains(" wait "))
            .map(|line| format!("{line}\n"))
            .collect();
        let trace = read(&text).unwrap();
        assert_eq!(trace.requests.len(), 5);
        assert!(
            trace
                .requests
                .iter()
                .all(|request| request.arrival.is_none())
        );
    }

    #[test]
    fn times_of_version_3_are_arrivals_in_microseconds() {
        let text = "\
fio version 3 iolog
30 data-a add
138 data-a open
142 data-a read 1000 100
100579 data-a write 0 512
100600 data-a close
";
        let trace = read(text).unwrap();
        assert_eq!(
            all(&trace),
            [
                (Some(142), 0, Op::Read, Extent::at(1, 2)),
                (Some(100_579), 0, Op::Write, Extent::at(0, 1)),
            ]
        );
        assert_eq!(trace.notes.unaligned, 1);
    }

    #[test]
    fn errors_name_the_field() {
        for (version, line, message) in [
            (
                1,
                "/f read 0 512",
                "line 1, column 1: the version is `fio version 1 iolog`; allowed is `fio version 2 iolog` or `fio version 3 iolog`",
            ),
            (
                2,
                "/f reed 0 512",
                "line 2, column 4: the action is `reed`; allowed is read, write, trim, sync, datasync, wait (version 2), add, open or close",
            ),
            (
                2,
                "/f read 0",
                "line 2, column 10: the length is `(nothing, the line ends)`; allowed is a whole number from 0 to 18446744073709551615",
            ),
            (
                2,
                "/f read 0 512 7",
                "line 2, column 15: a further field is `7`; allowed is the end of the line, after the length",
            ),
            (
                3,
                "fio version 3 iolog",
                "line 2, column 1: the line is `fio version 3 iolog`; allowed is one log in a file; here begins the log of a second job (numjobs=2, or two sections of the job file) or of a further run: give each job and each run a write_iolog of its own",
            ),
            (
                3,
                "/f read 0 512",
                "line 2, column 1: the time is `/f`; allowed is a decimal number such as 12, 12.5 or 1.25e3",
            ),
            (
                3,
                "5 /f wait 100 0",
                "line 2, column 6: the action is `wait`; allowed is an action without a time of its own: version 3 has no wait",
            ),
            (
                2,
                "/f write 18446744073709551615 512",
                "line 2, column 10: the offset with the length is `18446744073709551615`; allowed is a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before",
            ),
        ] {
            let text = format!("fio version {version} iolog\n{line}\n");
            let error = read(&text).unwrap_err();
            assert_eq!(error.to_string(), format!("io.log: {message}"));
        }
    }
}
