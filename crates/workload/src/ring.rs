//! Block events as the kernel's trace buffer holds them.
//!
//! tracefs returns a processor's buffer in pages (`per_cpu/cpuN/trace_pipe_raw`). tracefs describes the
//! pages in text: the head of a page in `events/header_page`, the fields of an event in its `format`.
//! Times in pages are whole nanoseconds. The text of `trace_pipe` rounds times to microseconds. The
//! layout within a page is described in linux: include/linux/ring_buffer.h, and in the file
//! `events/header_event` of tracefs.
//!
//! This module takes descriptions and pages. The caller reads the files.

use crate::format::events::{EventKind, block_event};
use crate::format::rwbs;
use crate::{BlockEvent, reader};
use headtime_units::{Extent, Time};
use std::ops::Range;
use thiserror::Error;

/// Events of the group `block` that [`RingReader`] makes requests of. The last is for drivers without
/// requests.
pub const BLOCK_EVENTS: [&str; 3] = ["block_bio_queue", "block_rq_complete", "block_bio_complete"];

/// Reason why pages of a trace buffer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// A description lacks a field, or has a field in an unknown notation.
    #[error("{file}: {problem}")]
    Description {
        /// The file of tracefs.
        file: String,
        /// Fault of the description.
        problem: String,
    },
    /// A page contradicts its own head or its description.
    #[error("a page of the trace buffer is damaged at byte {at}: {problem}")]
    Page {
        /// Byte of the page, counted from 0.
        at: usize,
        /// Fault of the page.
        problem: &'static str,
    },
}

/// An event from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEvent {
    /// Time of the event, in nanoseconds of the trace clock.
    pub time: u64,
    /// Kind of event, as an index of [`BLOCK_EVENTS`].
    pub kind: usize,
    /// Device number of the kernel: the major number times 2²⁰ plus the minor one.
    pub dev: u32,
    /// Event of a request, with device 0. `None` for operations that traces do not have.
    pub event: Option<BlockEvent>,
    /// True if the event reports that the request failed.
    pub failed: bool,
    /// Name of the process, if the event has one: text, filled up with zeroes.
    pub name: Option<[u8; NAME_MAX]>,
}

/// Longest name of a process, in bytes (linux: `TASK_COMM_LEN`, with a zero at the end).
pub const NAME_MAX: usize = 16;

/// Contents of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingPage {
    /// Number of events on the page, of any kind.
    pub events: u64,
    /// True if events before this page were lost.
    pub lost: bool,
}

/// Reads the events on pages of a trace buffer.
#[derive(Clone, Debug)]
pub struct RingReader {
    timestamp: RawField,
    commit: RawField,
    data: RawField,
    /// Layouts in the order of [`BLOCK_EVENTS`]. `None` if the kernel has no such event.
    layouts: [Option<EventFormat>; BLOCK_EVENTS.len()],
}

/// Position of a number or text in a page or record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RawField {
    at: usize,
    bytes: usize,
}

/// Positions of the fields of an event.
#[derive(Clone, Debug)]
struct EventFormat {
    id: u16,
    process: RawField,
    dev: RawField,
    sector: RawField,
    sectors: RawField,
    letters: RawField,
    error: Option<RawField>,
    name: Option<RawField>,
}

impl RawField {
    const fn range(&self) -> Range<usize> {
        self.at..self.at + self.bytes
    }

    /// Value of the field in `record`: a number of 1, 2, 4 or 8 bytes in the machine's byte order.
    fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.range())?;
        Some(match bytes {
            [one] => u64::from(*one),
            [_, _] => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            [_, _, _, _] => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// Value of the field in `record`: a text that ends at the first zero, or with the field.
    fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = record.get(self.range())?;
        let end = bytes.iter().position(|byte| *byte == 0);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    }
}

impl RingReader {
    /// Creates a reader from the texts of `events/header_page` and of `events/block/NAME/format`. The
    /// latter are in the order of [`BLOCK_EVENTS`], with `None` for an event that the kernel lacks.
    ///
    /// # Errors
    ///
    /// If a description lacks a field, if the size of a number is not 1, 2, 4 or 8 bytes, and if one of
    /// the first two events is missing.
    pub fn new(
        header_page: &str,
        formats: [Option<&str>; BLOCK_EVENTS.len()],
    ) -> Result<RingReader, RingError> {
        let description = Description::new("events/header_page", header_page);
        let data = description.field("data")?;
        let mut layouts = [const { None }; BLOCK_EVENTS.len()];
        for ((layout, text), name) in layouts.iter_mut().zip(formats).zip(BLOCK_EVENTS) {
            *layout = text.map(|text| EventFormat::new(name, text)).transpose()?;
        }
        for (layout, name) in layouts.iter().zip(BLOCK_EVENTS).take(2) {
            if layout.is_none() {
                return Err(RingError::Description {
                    file: format!("events/block/{name}"),
                    problem: "the kernel does not have this event".to_owned(),
                });
            }
        }
        Ok(RingReader {
            timestamp: description.number("timestamp")?,
            commit: description.number("commit")?,
            data,
            layouts,
        })
    }

    /// Size of a page in bytes, by the description.
    pub fn page_bytes(&self) -> usize {
        self.data.range().end
    }

    /// Hands out the block events of a page, in order of time.
    ///
    /// # Errors
    ///
    /// If the page contradicts itself. The events before the fault have been handed out.
    pub fn page(
        &self,
        page: &[u8],
        mut each: impl FnMut(RingEvent),
    ) -> Result<RingPage, RingError> {
        // The upper bits of the length tell if events before the page were lost, and if the number of
        // lost events follows the last event.
        const LOST: u64 = 1 << 31;
        const LENGTH: u64 = (1 << 27) - 1;
        // Values of an event's first five bits that are not its length in words.
        const PADDING: u32 = 29;
        const TIME_EXTEND: u32 = 30;
        const TIME_STAMP: u32 = 31;
        // An absolute time has 59 bits. The upper bits are taken from the page's time.
        const ABSOLUTE: u32 = 59;

        let head = |field: &RawField| {
            field.number(page).ok_or(RingError::Page {
                at: page.len(),
                problem: "it ends within its head",
            })
        };
        let mut time = head(&self.timestamp)?;
        let commit = head(&self.commit)?;
        let mut found = RingPage {
            events: 0,
            lost: commit & LOST != 0,
        };
        let from = self.data.at;
        let end = from + (commit & LENGTH) as usize;
        if end > page.len() {
            return Err(RingError::Page {
                at: self.commit.at,
                problem: "it says that it is longer than it is",
            });
        }
        let word = |at: usize| -> Result<u32, RingError> {
            match page[..end].get(at..at + 4) {
                Some(bytes) => Ok(u32::from_ne_bytes(bytes.try_into().expect("four bytes"))),
                None => Err(RingError::Page {
                    at,
                    problem: "it ends within an event",
                }),
            }
        };
        let mut at = from;
        while at < end {
            let first = word(at)?;
            let (kind, delta) = if cfg!(target_endian = "little") {
                (first & 31, u64::from(first >> 5))
            } else {
                (first >> 27, u64::from(first & ((1 << 27) - 1)))
            };
            let (body, next) = match kind {
                PADDING if delta == 0 => break,
                PADDING => (None, at + 4 + word(at + 4)? as usize),
                TIME_EXTEND => {
                    let upper = u64::from(word(at + 4)?) << 27;
                    time = time.wrapping_add(upper + delta);
                    at += 8;
                    continue;
                }
                TIME_STAMP => {
                    let stamp = (u64::from(word(at + 4)?) << 27) + delta;
                    time = time >> ABSOLUTE << ABSOLUTE | stamp;
                    at += 8;
                    continue;
                }
                0 => {
                    let length = word(at + 4)? as usize;
                    let next = at + 4 + length;
                    (Some(at + 8..next), next)
                }
                words => {
                    let next = at + 4 + words as usize * 4;
                    (Some(at + 4..next), next)
                }
            };
            if next > end || next <= at || body.as_ref().is_some_and(|body| body.start > body.end) {
                return Err(RingError::Page {
                    at,
                    problem: "an event is of an impossible length",
                });
            }
            time = time.wrapping_add(delta);
            if let Some(body) = body {
                found.events += 1;
                let start = body.start;
                if let Some(event) = self.event(time, &page[body], start)? {
                    each(event);
                }
            }
            at = next.next_multiple_of(4);
        }
        Ok(found)
    }

    /// Returns the event in `record`, which lies at byte `at`, if the event is one of [`BLOCK_EVENTS`].
    fn event(&self, time: u64, record: &[u8], at: usize) -> Result<Option<RingEvent>, RingError> {
        let Some(id) = record.first_chunk::<2>() else {
            return Ok(None);
        };
        let id = u16::from_ne_bytes(*id);
        let is_it =
            |layout: &Option<EventFormat>| layout.as_ref().is_some_and(|layout| layout.id == id);
        let Some(kind) = self.layouts.iter().position(is_it) else {
            return Ok(None);
        };
        let layout = self.layouts[kind].as_ref().expect("found by it");
        layout
            .read(record, EventKind::named(BLOCK_EVENTS[kind]), time)
            .map(|event| Some(RingEvent { kind, ..event }))
            .ok_or(RingError::Page {
                at,
                problem: "an event is shorter than its description",
            })
    }
}

impl EventFormat {
    fn new(name: &str, text: &str) -> Result<EventFormat, RingError> {
        let description = Description::new(&format!("events/block/{name}/format"), text);
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:"))
            .and_then(|id| id.trim().parse().ok());
        Ok(EventFormat {
            id: id.ok_or_else(|| description.error("it has no line `ID: number`"))?,
            process: description.number("common_pid")?,
            dev: description.number("dev")?,
            sector: description.number("sector")?,
            sectors: description.number("nr_sector")?,
            letters: description.field("rwbs")?,
            // Kernels use different names for the error. Queue events have no error.
            error: description
                .number("error")
                .or_else(|_| description.number("errors"))
                .ok(),
            name: description.field("comm").ok(),
        })
    }

    /// Reads an event. Returns `None` if the record is too short.
    fn read(&self, record: &[u8], kind: EventKind, time: u64) -> Option<RingEvent> {
        let dev = self.dev.number(record)? as u32;
        let start = self.sector.number(record)?;
        let len = self.sectors.number(record)?;
        let process = self.process.number(record)? as u32;
        let letters = self.letters.text(record)?;
        let failed = match &self.error {
            Some(error) => kind.is_complete() && error.number(record)? != 0,
            None => false,
        };
        let name = match &self.name {
            Some(name) => {
                let text = name.text(record)?;
                let text = &text[..text.len().min(NAME_MAX)];
                let mut bytes = [0; NAME_MAX];
                bytes[..text.len()].copy_from_slice(text);
                Some(bytes)
            }
            None => None,
        };
        // The block layer's own flush has the largest sector number, which becomes an empty extent.
        let extent = match len {
            0 => Some(reader::extent(start, 0).unwrap_or_default()),
            _ => reader::extent(start, len),
        };
        let event = rwbs::read(letters)
            .zip(extent)
            .map(|((op, flags), extent): (_, Extent)| {
                let time = Time::from_nanos(time);
                block_event(kind, time, 0, op, flags, extent, Some(process))
            });
        Some(RingEvent {
            time,
            kind: 0,
            dev,
            event,
            failed,
            name,
        })
    }
}

/// Text of lines such as `field:sector_t sector; offset:16; size:8; signed:0;`.
struct Description<'a> {
    file: String,
    text: &'a str,
}

impl<'a> Description<'a> {
    fn new(file: &str, text: &'a str) -> Description<'a> {
        Description {
            file: file.to_owned(),
            text,
        }
    }

    fn error(&self, problem: &str) -> RingError {
        RingError::Description {
            file: self.file.clone(),
            problem: problem.to_owned(),
        }
    }

    /// Finds the field called `name`, which may be an array.
    fn field(&self, name: &str) -> Result<RawField, RingError> {
        let found = self.text.lines().find_map(|line| {
            let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            let called = declared.trim().rsplit([' ', '*']).next()?;
            let called = called.split('[').next()?;
            (called == name).then_some(rest)
        });
        let rest = found.ok_or_else(|| self.error(&format!("it has no field `{name}`")))?;
        let number = |key: &str| {
            rest.split(';')
                .find_map(|part| part.trim().strip_prefix(key))
                .and_then(|text| text.strip_prefix(':'))
                .and_then(|text| text.trim().parse::<u16>().ok())
                .map(usize::from)
                .ok_or_else(|| self.error(&format!("its field `{name}` has no {key} under 65536")))
        };
        Ok(RawField {
            at: number("offset")?,
            bytes: number("size")?,
        })
    }

    /// Finds the field called `name`, and checks that its size is the size of a number.
    fn number(&self, name: &str) -> Result<RawField, RingError> {
        let field = self.field(name)?;
        if !matches!(field.bytes, 1 | 2 | 4 | 8) {
            let bytes = field.bytes;
            return Err(self.error(&format!(
                "its field `{name}` has {bytes} bytes; a number has 1, 2, 4 or 8"
            )));
        }
        Ok(field)
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
