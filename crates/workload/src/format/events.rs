//! Block events of Linux's tracing, in the text of three programs.
//!
//! ```text
//!     dd-30616 [000] ..... 23447.876: block_rq_issue: 7,0 RS 4096 () 800 + 8 be,0,4 [dd]    tracefs
//!     dd-30616 [000] 23447.876: block_rq_issue:       7,0 RS 4096 () 800 + 8 0x2,0,4 [dd]   trace-cmd report
//!     dd 30616 [000] 23447.876:   block:block_rq_issue: 7,0 RS 4096 () 800 + 8 0x2,0,4 [dd] perf script
//!     process  [cpu] flags seconds: event: device letters bytes (command) sector + sectors priority [name or error]
//! ```
//!
//! The text before the colon behind the event's name is the printing program's. The text behind the
//! colon follows the kernel's own description of the event (linux: include/trace/events/block.h). So
//! one reader can read all three.
//!
//! Newer kernels add the priority, in words or as a number. Only a completion has the error code.
//! tracefs may print the thread group in brackets behind the process. trace-cmd may print the name of
//! an instance before the process.
//!
//! These events matter:
//! - `block_bio_queue`: a request enters the block layer,
//! - `block_rq_insert`: a scheduler takes the request,
//! - `block_rq_issue`: the request goes to the driver,
//! - `block_rq_requeue`: the request comes back,
//! - `block_rq_complete`: the request is complete,
//! - `block_bio_complete`: the request is complete, at drivers without requests, such as device mapper.
//!
//! The reader ignores all other events, and operations that move no data to sectors, such as writing
//! zeroes (`N`). [`Pairing`] makes requests of the events. The process is the thread that ran at the
//! event. The event's own text ends with the name of that thread.
//!
//! If the file reports lost events, the reader counts them. Requests with lost events are missing or
//! lack their completion.

use super::blkparse::{bracketed, device, device_names};
use super::fields::{Field, Fields};
use super::rwbs;
use crate::Format;
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

/// The part of a line before the event's own text.
struct LinePrefix<'a> {
    format: Format,
    /// Thread that ran. `None` if the recording program did not know the thread.
    process: Option<u32>,
    /// Name of the thread as the recording program knows it. An instance of trace-cmd may stand before
    /// the name.
    name: &'a [u8],
    time: Field<'a>,
    /// Name of the event without the group. Empty if there is none.
    event: &'a [u8],
    /// The event's own text.
    text: Fields<'a>,
}

/// Contents of a line.
enum EventLine<'a> {
    /// An event of a request. True if the event reports that the request failed. The last is the name
    /// of the process that ran, empty if it is unknown.
    Event(BlockEvent, bool, &'a [u8]),
    /// Number of lost events.
    Lost(u64),
    /// Any other line.
    Other,
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let format = reader.notes.format;
    let mut devices = Numbered::default();
    let mut pairing = Pairing::new(reader.options.arrival_event);
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        match parse(line, format, &mut devices) {
            Ok(EventLine::Event(event, failed, name)) => {
                reader.name_process(&event, name);
                reader.notes.failed += u64::from(failed);
                pairing.event(number, &event);
            }
            Ok(EventLine::Lost(events)) => {
                reader.notes.lines_ignored += 1;
                reader.notes.lost = reader.notes.lost.saturating_add(events);
            }
            Ok(EventLine::Other) => reader.notes.lines_ignored += 1,
            Err(error) => reader.odd(number, *error)?,
        }
    }
    reader.take(pairing.finish())?;
    reader.device_names = device_names(devices);
    Ok(())
}

/// Format of a line, if the line belongs to one of the formats.
pub(crate) fn recognise(line: &[u8]) -> Option<Format> {
    match head(line) {
        Some(head) => Some(head.format),
        None => is_preamble(line).then_some(Format::Ftrace),
    }
}

/// Splits the front of a line. A process name may contain blanks, brackets and colons, so the processor
/// in brackets is found by its neighbours.
fn head(line: &[u8]) -> Option<LinePrefix<'_>> {
    memchr::memchr_iter(b'[', line).find_map(|at| head_around(line, at))
}

/// Splits the front of a line whose processor has its opening bracket at `at`.
fn head_around(line: &[u8], at: usize) -> Option<LinePrefix<'_>> {
    let (before, behind) = (&line[..at], &line[at + 1..]);
    let close = behind.iter().position(|byte| *byte == b']')?;
    if close == 0 || !number::is_integer(&behind[..close]) || !before.ends_with(b" ") {
        return None;
    }
    let (format, process, name) = process(before)?;
    let mut text = Fields::behind(line, at + close + 2);
    let mut time = text.next();
    if time.text.last() != Some(&b':') {
        // Flags such as interrupts off or need for resched, one character each.
        time = text.next();
    }
    time.text = time.text.strip_suffix(b":")?;
    // Text without a colon is no event, but may be a stack or a mark made by a program.
    let event = text.next().text.strip_suffix(b":").unwrap_or(b"");
    let event = event.rsplit(|byte| *byte == b':').next()?;
    let starts = time.text.first().is_some_and(u8::is_ascii_digit);
    starts.then_some(LinePrefix {
        format,
        process,
        name,
        time,
        event,
        text,
    })
}

/// Finds the process at the end of `before`. `name-123` may be followed by a thread group `(  123)`.
/// The other notations are `name 123` and `name 123/123`. perf prints -1 for an unknown process.
/// Also returns the name.
fn process(before: &[u8]) -> Option<(Format, Option<u32>, &[u8])> {
    let mut before = before.trim_ascii_end();
    if let Some(group) = before.strip_suffix(b")") {
        let open = group.iter().rposition(|byte| *byte == b'(')?;
        before = group[..open].trim_ascii_end();
    }
    let from = before
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |last| last + 1);
    let digits = &before[from..];
    let number = number::unsigned(digits).ok()?;
    let process = u32::try_from(number).ok()?;
    let (name, mark) = before[..from].split_at(from.checked_sub(1)?);
    let known = Some(process);
    Some(match mark[0] {
        b'-' if digits == b"1" && name.ends_with(b" ") => (Format::Perf, None, name),
        b'-' => (Format::Ftrace, known, name),
        b' ' | b'\t' => (Format::Perf, known, name),
        // The second number is the thread. The other programs print the thread too.
        b'/' if name.last().is_some_and(u8::is_ascii_digit) => {
            let group = name.iter().rposition(|byte| !byte.is_ascii_digit());
            (Format::Perf, known, &name[..group.unwrap_or(0)])
        }
        _ => return None,
    })
}

/// Returns true if trace-cmd or tracefs writes such a line beside the events.
fn is_preamble(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    lost(line).is_some()
        || line.starts_with(b"cpus=")
        || line.starts_with(b"version = ")
        || line.starts_with(b"CPU ") && line.ends_with(b" is empty")
}

/// Number of lost events that a line reports. The forms are `CPU:1 [LOST 35 EVENTS]`, `CPU:1 [35 EVENTS
/// DROPPED]`, where the number may be missing, and perf's `PERF_RECORD_LOST lost 35`.
fn lost(line: &[u8]) -> Option<u64> {
    let contains = |text: &[u8]| memchr::memmem::find(line, text).is_some();
    let of_processor = line.starts_with(b"CPU:") && (contains(b"LOST") || contains(b"DROPPED"));
    if !of_processor && !contains(b"PERF_RECORD_LOST") {
        return None;
    }
    let behind = if of_processor {
        line.iter().position(|byte| *byte == b'[')?
    } else {
        0
    };
    let mut counts = line[behind..]
        .split(|byte| !byte.is_ascii_digit())
        .filter_map(|digits| number::unsigned(digits).ok());
    Some(counts.next_back().unwrap_or(1))
}

/// Returns true if a line is part of a call stack: `=> function` (tracefs), or a tab, an address and a
/// function (perf).
fn is_call(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let address = || {
        let word = text.split(|byte| *byte == b' ').next().unwrap_or(b"");
        word.len() >= 4 && word.iter().all(u8::is_ascii_hexdigit)
    };
    text.starts_with(b"=> ") || line.starts_with(b"\t") && address()
}

fn parse<'a>(
    line: &'a [u8],
    format: Format,
    devices: &mut Numbered<(u32, u32)>,
) -> Result<EventLine<'a>, Box<FieldError>> {
    let Some(mut head) = head(line).filter(|head| head.format == format) else {
        return match lost(line.trim_ascii_start()) {
            Some(events) => Ok(EventLine::Lost(events)),
            None if is_preamble(line) || is_call(line) => Ok(EventLine::Other),
            None => Err(no_event(line, format)),
        };
    };
    let kind = match head.event {
        b"block_bio_queue" => EventKind::BioQueue,
        b"block_rq_insert" => EventKind::Insert,
        b"block_rq_issue" => EventKind::Issue,
        b"block_rq_requeue" => EventKind::Requeue,
        b"block_rq_complete" => EventKind::RequestComplete,
        b"block_bio_complete" => EventKind::BioComplete,
        b"" => return Ok(lost(line).map_or(EventLine::Other, EventLine::Lost)),
        _ => return Ok(EventLine::Other),
    };
    if memchr::memchr(b'.', head.time.text).is_none() {
        return Err(head.time.error("the time", "seconds with a decimal point (a trace clock that counts time, such as local, global, mono or boot)"));
    }
    let time = head.time.time("the time", SECOND)?;
    let text = &mut head.text;
    let device = device(text.next())?;
    let letters = text.next();
    let Some((op, flags)) = rwbs::read(letters.text) else {
        // Commands without sectors have letters too.
        return if letters.text.iter().all(u8::is_ascii_uppercase) && !letters.text.is_empty() {
            Ok(EventLine::Other)
        } else {
            Err(letters.error("the operation", "letters such as R, WS, FWFS or D"))
        };
    };
    if !matches!(kind, EventKind::BioQueue | EventKind::BioComplete) {
        command(text, matches!(kind, EventKind::Insert | EventKind::Issue))?;
    }
    let extent = extent(text)?;
    let failed = kind.is_complete() && error(text)?;
    let name = match kind {
        EventKind::BioQueue | EventKind::Insert | EventKind::Issue => {
            match bracketed(text.rest()) {
                b"" => head.name,
                name => name,
            }
        }
        _ => b"",
    };
    let index = devices.number(&device, || device);
    let time = Time::from_nanos(time);
    let event = block_event(kind, time, index, op, flags, extent, head.process);
    Ok(EventLine::Event(event, failed, name))
}

/// Kind of event of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    BioQueue,
    Insert,
    Issue,
    Requeue,
    RequestComplete,
    BioComplete,
}

impl EventKind {
    /// Kind of a recorded event by its name. Only the events in `BLOCK_EVENTS` are recorded.
    ///
    /// # Panics
    ///
    /// For other names.
    pub(crate) fn named(name: &str) -> EventKind {
        match name {
            "block_bio_queue" => EventKind::BioQueue,
            "block_rq_complete" => EventKind::RequestComplete,
            "block_bio_complete" => EventKind::BioComplete,
            _ => unreachable!("{name} is not among those that are recorded"),
        }
    }

    pub(crate) const fn is_complete(self) -> bool {
        matches!(self, EventKind::RequestComplete | EventKind::BioComplete)
    }
}

/// Makes the event of a request from the fields of an event.
pub(crate) fn block_event(
    kind: EventKind,
    time: Time,
    device: u32,
    op: Op,
    flags: Flags,
    extent: Extent,
    process: Option<u32>,
) -> BlockEvent {
    let (mut op, mut flags) = (op, flags);
    let mut action = match kind {
        EventKind::BioQueue => BlockAction::Queue,
        EventKind::Insert => BlockAction::Insert,
        EventKind::Issue => BlockAction::Issue,
        EventKind::Requeue => BlockAction::Requeue,
        EventKind::RequestComplete if op == Op::Flush => BlockAction::Complete(Level::Issued),
        EventKind::RequestComplete => BlockAction::Complete(Level::Both),
        EventKind::BioComplete => BlockAction::Complete(Level::Queued),
    };
    if op == Op::Write && extent.is_empty() {
        // A process's flush is an empty write with a flush before it. At its completion the letter of
        // the flush is gone. An empty write elsewhere than at sector 0 is the end of a write with
        // flushes around it.
        if kind.is_complete() {
            action = BlockAction::Complete(Level::Queued);
        }
        if !kind.is_complete() || extent.start.get() == 0 {
            op = Op::Flush;
            flags = if flags.has(Flags::SYNC) {
                Flags::SYNC
            } else {
                Flags::NONE
            };
        }
    }
    BlockEvent {
        action,
        request: TraceRequest {
            arrival: Some(time),
            completion: None,
            device,
            op,
            extent: if op == Op::Flush {
                Extent::default()
            } else {
                extent
            },
            process,
            flags,
        },
    }
}

/// Error for a line that is no event of the format.
#[cold]
fn no_event(line: &[u8], format: Format) -> Box<FieldError> {
    let at = line.len() - line.trim_ascii_start().len();
    let allowed = if format == Format::Perf {
        "process id [cpu] seconds: event: .., as `perf script` prints by itself"
    } else {
        "process-id [cpu] seconds: event: .., as tracefs and `trace-cmd report` print by themselves"
    };
    FieldError::new(at, "the line", &line[at..], allowed)
}

/// Skips the number of bytes, if there is one, and the command in brackets. Reads and writes have `()`.
fn command(text: &mut Fields<'_>, bytes: bool) -> Result<(), Box<FieldError>> {
    if bytes {
        text.next().unsigned("the number of bytes")?;
    }
    let mut word = text.next();
    if !word.text.starts_with(b"(") {
        return Err(word.error("the command", "bytes of a command in round brackets, or ()"));
    }
    while !word.text.ends_with(b")") {
        word = text.next();
        if word.text.is_empty() {
            return Err(word.error("the command", "a round bracket at its end"));
        }
    }
    Ok(())
}

/// Reads `sector + sectors`. An empty request may be at any sector.
fn extent(text: &mut Fields<'_>) -> Result<Extent, Box<FieldError>> {
    let sector = text.next();
    let start = sector.unsigned("the sector")?;
    let plus = text.next();
    if plus.text != b"+" {
        return Err(plus.error("what is behind the sector", "+ and the number of sectors"));
    }
    let len = text.next().unsigned("the number of sectors")?;
    if len == 0 {
        // At the completion of the block layer's own flush, the sector is the largest number.
        return Ok(reader::extent(start, 0).unwrap_or_default());
    }
    reader::extent(start, len).ok_or_else(|| {
        sector.error(
            "the sector with the number of sectors",
            reader::EXTENT_ALLOWED,
        )
    })
}

/// Reads the error code in square brackets at the end of a completion. Newer kernels print a priority
/// before the code. Returns true if the code is not 0.
fn error(text: &mut Fields<'_>) -> Result<bool, Box<FieldError>> {
    let mut code = text.next();
    if !code.text.starts_with(b"[") && !code.text.is_empty() {
        code = text.next();
    }
    let number = code
        .text
        .strip_prefix(b"[")
        .and_then(|rest| rest.strip_suffix(b"]"))
        .map(|rest| rest.strip_prefix(b"-").unwrap_or(rest))
        .and_then(|digits| number::unsigned(digits).ok());
    number
        .map(|number| number != 0)
        .ok_or_else(|| code.error("the error code", "a number in square brackets such as [0]"))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
