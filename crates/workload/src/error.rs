//! Errors of reading a trace.

use crate::names::escaped;
use crate::{Compression, Format, Notes};
use headtime_units::{Extent, Nanos, Sectors};
use std::io;
use thiserror::Error;

/// Reason why a trace cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{file}: cannot open: {source}")]
    Open {
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Reading failed after the file was opened.
    #[error("{file}: cannot read on at byte {offset}: {source}")]
    Read {
        /// Name of the file.
        file: String,
        /// Bytes read before the error.
        offset: u64,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The compressed data is damaged or ends too early.
    #[error(
        "{file}: {compression} data is {} at byte {offset} of the file (byte {decompressed} of its contents): {source}",
        if *truncated { "cut off" } else { "damaged" }
    )]
    Compressed {
        /// Name of the file.
        file: String,
        /// Compression of the file.
        compression: Compression,
        /// True if the file ended before the compressed data did.
        truncated: bool,
        /// Bytes of the file read before the error.
        offset: u64,
        /// Decompressed bytes before the error.
        decompressed: u64,
        /// Error of the decompressor.
        source: io::Error,
    },
    /// A field of a line has a value that is not allowed.
    #[error("{file}: line {line}, column {column}: {field} is `{found}`; allowed is {allowed}")]
    Line {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// First byte of the field in the line, counted from 1.
        column: usize,
        /// Name of the field.
        field: String,
        /// Text of the field, shortened if long.
        found: String,
        /// Values that the field may have.
        allowed: String,
    },
    /// A binary record has a value that is not allowed.
    #[error("{file}: record at byte {offset}: {problem}")]
    Record {
        /// Name of the file.
        file: String,
        /// Offset of the record in bytes.
        offset: u64,
        /// The fault.
        problem: String,
    },
    /// An error in a file whose format was recognised by content, perhaps wrongly.
    #[error("{error} (taken for {format}; choose another with --trace-format{})", names(.fits))]
    Guessed {
        /// The error.
        error: Box<TraceError>,
        /// The format that was guessed.
        format: Format,
        /// Formats whose columns fit the first lines of the file.
        fits: Vec<&'static str>,
    },
    /// Some files count time from a calendar's zero, and others from another zero.
    #[error(
        "{dated} has dates and {undated} has times from another zero, so they cannot be one trace; \
         give files with times of one kind"
    )]
    MixedClocks {
        /// A file with dates.
        dated: String,
        /// A file without dates.
        undated: String,
    },
    /// The part of the trace that the caller chose has no request.
    #[error("{file}: none of its {requests} requests is in the part that was asked for; {}", within(*.duration))]
    EmptyPart {
        /// Name of the file.
        file: String,
        requests: usize,
        /// Time from the first arrival to the last, if there are arrivals.
        duration: Option<Nanos>,
    },
    /// A line is longer than [`LINE_MAX`](crate::LINE_MAX).
    #[error("{file}: line {line} is longer than the {max} bytes allowed; is this a text file?")]
    LineTooLong {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// Largest length of a line, in bytes.
        max: usize,
    },
    /// The content of the file matches no format that is recognised by content.
    #[error(
        "{file}: line {line}: `{found}` is not the beginning of a trace in a known format; recognised are disksim \
         (arrival device block blocks flags), msr (7 columns, the 4th Read or Write), blkparse \
         (major,minor cpu sequence ..), ftrace and perf (process [cpu] seconds: event: ..), iolog \
         (fio version 2 or 3 iolog), blktrace (binary) and csv with the headings that this program writes; {hint}{}",
        names(.fits)
    )]
    UnknownFormat {
        /// Name of the file.
        file: String,
        /// The first line that is neither blank nor a comment.
        line: u64,
        /// Beginning of that line.
        found: String,
        /// Advice for the user.
        hint: &'static str,
        /// Formats whose columns fit the first lines of the file.
        fits: Vec<&'static str>,
    },
    /// The file holds no request.
    #[error("{}: no request{}", .0.file, why_empty(.0))]
    Empty(Box<Notes>),
    /// The standard input is given twice.
    #[error(
        "standard input (-) is given twice, and can be read once; give - once, and other traces as files"
    )]
    InputTwice,
    /// An arrival is earlier than a previous one, and the options demand arrivals in order.
    #[error(
        "{file}: line {line}: the request arrives at {found}, before the one ahead of it at {previous}; \
         allowed are arrivals in order"
    )]
    Backwards {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The arrival, as a span from the zero of the file.
        found: String,
        /// Latest arrival before this request.
        previous: String,
    },
    /// An arrival is too far in time from another one.
    #[error(
        "{file}: line {line}: the request arrives at {found}, more than 292 years from another one at {other}; \
         allowed are arrivals nearer to each other"
    )]
    TooFar {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The arrival, as a span from the zero of the file.
        found: String,
        /// The other arrival.
        other: String,
    },
    /// Requests of a long trace cannot be kept.
    #[error(
        "{file}: the trace is long, and its requests cannot be kept in a temporary file: {source}; give a directory \
         with more room (TMPDIR)"
    )]
    Scratch {
        /// Name of the trace's file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The options do not go with the format.
    #[error("{file}: format {format}: {problem}")]
    Options {
        /// Name of the file.
        file: String,
        format: Format,
        /// Option that is missing or not allowed, with advice.
        problem: String,
    },
}

impl TraceError {
    /// Returns true if one line or record causes the error, and not the choice of the format.
    pub fn is_odd_line(&self) -> bool {
        match self {
            TraceError::Line { .. }
            | TraceError::LineTooLong { .. }
            | TraceError::Record { .. } => true,
            TraceError::Guessed { error, fits, .. } => fits.is_empty() && error.is_odd_line(),
            _ => false,
        }
    }
}

/// A request that does not fit the drive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "request {request} of the trace (device {device}, {extent} in sectors of {sector_bytes} bytes) ends past the last \
     sector of the drive; allowed are addresses below {capacity}, or wrap them (fit wrap)"
)]
pub struct PastTheEnd {
    /// Which request in order of arrival, counted from 1.
    pub request: u64,
    /// Device of the request.
    pub device: u32,
    /// Sectors of the request, in sectors of the drive.
    pub extent: Extent,
    /// Bytes in a sector of the drive.
    pub sector_bytes: u32,
    /// Number of sectors of the drive.
    pub capacity: Sectors,
}

/// A field with a value that is not allowed. The reader adds file and line.
#[derive(Debug)]
pub(crate) struct FieldError {
    pub column: usize,
    pub field: String,
    pub found: String,
    pub allowed: String,
}

impl FieldError {
    /// Creates an error. `found` starts at byte `at` of the line, counted from 0.
    #[cold]
    pub(crate) fn new(at: usize, field: &str, found: &[u8], allowed: &str) -> Box<FieldError> {
        Box::new(FieldError {
            column: at + 1,
            field: field.to_owned(),
            found: shown(found),
            allowed: allowed.to_owned(),
        })
    }

    #[cold]
    pub(crate) fn on(self, file: &str, line: u64) -> TraceError {
        TraceError::Line {
            file: file.to_owned(),
            line,
            column: self.column,
            field: self.field,
            found: self.found,
            allowed: self.allowed,
        }
    }
}

/// Describes why a file has no requests, with the number of lines that were left out for each reason.
fn why_empty(notes: &Notes) -> String {
    if notes.lines == 0 {
        return ": it is empty; leave it out, or give a file with requests".to_owned();
    }
    let mut text = format!("; lines: {}", notes.lines);
    for (count, what) in [
        (
            notes.lines_ignored,
            "passed over (blank, comments, headings, events that are no requests)",
        ),
        (notes.zero_length, "requests of no sectors"),
        (notes.unpaired, "completions without their request"),
        (notes.odd.count, "odd"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {what}: {count}"));
        }
    }
    if let Some(first) = notes.odd.first.first() {
        text.push_str(&format!(" ({first})"));
    }
    text
}

/// Names of formats, for a message.
fn names(formats: &[&str]) -> String {
    match formats {
        [] => String::new(),
        some => format!("; its first lines fit {}", some.join(" or ")),
    }
}

fn within(duration: Option<Nanos>) -> String {
    match duration {
        Some(duration) => format!("they arrive within {duration}"),
        None => "they have no arrivals, so only --first can choose".to_owned(),
    }
}

/// Bytes of unknown origin as text for a message: one line, short, without terminal escapes.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 60;
    let cut = &bytes[..bytes.len().min(SHOWN_MAX)];
    let mut text = escaped(cut);
    if bytes.len() > SHOWN_MAX {
        text.push_str("..");
    }
    text
}
