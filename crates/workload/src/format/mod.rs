//! Recognises the format of a trace.

pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod csv;
pub(crate) mod disksim;
pub(crate) mod events;
mod fields;
pub(crate) mod iolog;
pub(crate) mod msr;
pub(crate) mod rwbs;

use crate::Format;
use crate::error::{TraceError, shown};
use crate::reader::is_ignored;
use fields::words;

/// Recognises the format of a file that begins with `sample`. The first line that is neither blank nor
/// a comment decides. If `lenient`, the first line of a known format decides.
pub(crate) fn recognise(file: &str, sample: &[u8], lenient: bool) -> Result<Format, TraceError> {
    if blktrace::recognise(sample) {
        return Ok(Format::Blktrace);
    }
    let mut unknown = None;
    for (index, line) in said(sample) {
        match format_of(line) {
            Ok(format) => return Ok(format),
            Err(hint) => {
                unknown.get_or_insert_with(|| TraceError::UnknownFormat {
                    file: file.to_owned(),
                    line: index as u64 + 1,
                    found: shown(line),
                    hint,
                    fits: fitting(sample),
                });
            }
        }
        if !lenient {
            break;
        }
    }
    // The sample has nothing but blank lines and comments. The reader will report a file without
    // requests.
    unknown.map_or(Ok(Format::DiskSim), Err)
}

/// Presets whose columns the first lines of a file fit.
pub(crate) fn fitting(sample: &[u8]) -> Vec<&'static str> {
    let first: Vec<&[u8]> = said(sample).map(|(_, line)| line).take(2).collect();
    csv::fitting(&first)
}

/// Lines of a sample that are neither blank nor comments, with their indices.
fn said(sample: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = sample.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.enumerate().filter(|(_, line)| !is_ignored(line))
}

const HINT: &str = "give the format (--trace-format), and the columns if it is csv (--columns)";
const HINT_VALIDATION: &str = "it looks like a DiskSim validation trace, which holds measured response times of a drive: see `drive validate`";

/// Returns the format of a file that begins with `line`, or a hint for the user if no format fits.
fn format_of(line: &[u8]) -> Result<Format, &'static str> {
    let is_number = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_digit)
            && word
                .iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    if csv::recognise(line) {
        return Ok(Format::Csv);
    }
    if msr::recognise(line) {
        return Ok(Format::Msr);
    }
    let columns: Vec<&[u8]> = words(line).map(|(_, word)| word).collect();
    if blkparse::recognise(line) && columns.len() >= 6 {
        return Ok(Format::Blkparse);
    }
    if iolog::recognise(line) {
        return Ok(Format::Iolog);
    }
    if let Some(format) = events::recognise(line) {
        return Ok(format);
    }
    if columns.first().is_some_and(|first| is_number(first)) && !line.contains(&b',') {
        return Ok(Format::DiskSim);
    }
    if columns.len() == 6 && matches!(columns[0], b"R" | b"W") && is_number(columns[2]) {
        return Err(HINT_VALIDATION);
    }
    Err(HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_first_line() {
        assert_eq!(format_of(b"13.191135\t30\t0\t5\t1"), Ok(Format::DiskSim));
        assert_eq!(format_of(b"  12 0 5 8 0"), Ok(Format::DiskSim));
        assert_eq!(
            format_of(b"W Hit 4583176 4 663.0 45422.0"),
            Err(HINT_VALIDATION)
        );
        assert_eq!(
            format_of(b"128166372003061629,hm,1,Read,383496192,32768,413"),
            Ok(Format::Msr)
        );
        assert_eq!(
            format_of(b"  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]"),
            Ok(Format::Blkparse)
        );
        for (line, format) in [
            ("cpus=2", Format::Ftrace),
            (
                "      dd-30616   [000] ..... 23447.876029: block_bio_queue: 7,0 RS 800 + 8 [dd]",
                Format::Ftrace,
            ),
            (
                "  7 up-30616 [000] 23447.876029: sched_waking: comm=dd pid=3",
                Format::Ftrace,
            ),
            (
                "   9p x   7 [001] 23446.598366:   block:block_bio_queue: 254,0 RM 19618528 + 8 [9p x]",
                Format::Perf,
            ),
            ("fio version 3 iolog", Format::Iolog),
            ("fio version 9 iolog", Format::Iolog),
        ] {
            assert_eq!(format_of(line.as_bytes()), Ok(format), "{line}");
        }
        assert_eq!(
            format_of(crate::write::CSV_HEADINGS.as_bytes()),
            Ok(Format::Csv)
        );
        assert_eq!(format_of(b"time,address,size"), Err(HINT));
        assert_eq!(format_of(b"hello world"), Err(HINT));
    }
}
