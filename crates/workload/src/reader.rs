//! What the readers of all formats share.

use crate::error::{FieldError, TraceError};
use crate::input::Input;
use crate::lines::{LINE_MAX, LineError, Lines};
use crate::number::TIME_MAX;
use crate::pairing::Paired;
use crate::trace::{ADDRESS_END, LENGTH_MAX, TRACE_SECTOR};
use crate::{ArrivalEvent, CsvColumns, Format, Notes, TimeUnit, TraceRequest};
use headtime_sched::Op;
use headtime_units::{Extent, Time};
use std::io::Read;

/// How to read a trace. The default recognises the format by content and takes every file as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` recognises it by content.
    pub format: Option<Format>,
    /// Unit of the arrivals of a DiskSim trace; `None` decides by the rule in
    /// [`Notes::time_unit`].
    pub time_unit: Option<TimeUnit>,
    /// What to do with a request that arrives before the one ahead of it.
    pub backwards: Backwards,
    /// Which event of a request is its arrival, where a format has several (blkparse, ftrace, perf);
    /// `None` takes queue events if there are any, else issue events.
    pub arrival_event: Option<ArrivalEvent>,
    /// The columns of a CSV trace; `None` wants the headings that [`Trace::write_csv`](crate::Trace::write_csv) writes.
    pub columns: Option<CsvColumns>,
}

/// What to do with a request that arrives before the one ahead of it in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backwards {
    /// Move it to its place, and count it in [`Notes::out_of_order`].
    #[default]
    Sort,
    /// Report an error.
    Refuse,
}

/// First arrival that is a date and not a time since some start: ten years.
const DATE_MIN: Time = Time::from_nanos(10 * 365 * 86_400 * 1_000_000_000);

/// Collects the requests that the reader of a format finds.
pub(crate) struct Reader<'a> {
    pub file: &'a str,
    pub options: &'a ReadOptions,
    pub requests: Vec<TraceRequest>,
    pub notes: Notes,
    /// Earliest and latest arrival so far.
    pub arrivals: Option<(Time, Time)>,
    pub device_names: Vec<(u32, String)>,
}

impl Reader<'_> {
    /// Refuses options that the format has no use for: they would be a misunderstanding.
    pub fn check_options(&self) -> Result<(), TraceError> {
        let format = self.notes.format;
        let problem = if self.options.columns.is_some() && format != Format::Csv {
            "columns are for csv; say so (--trace-format csv) or leave them out"
        } else if self.options.time_unit.is_some() && format != Format::DiskSim {
            "the format fixes the unit of time (csv: its columns); leave it out"
        } else if self.options.arrival_event.is_some()
            && !matches!(format, Format::Blkparse | Format::Ftrace | Format::Perf)
        {
            "it has no queue and issue events to choose from; leave the choice out"
        } else {
            return Ok(());
        };
        Err(TraceError::Options {
            file: self.file.to_owned(),
            format,
            problem: problem.to_owned(),
        })
    }

    /// Adds the request of a line.
    #[inline]
    pub(crate) fn push(&mut self, line: u64, mut request: TraceRequest) -> Result<(), TraceError> {
        if let Some(arrival) = request.arrival {
            let (earliest, latest) = self.arrivals.unwrap_or((arrival, arrival));
            let other = if arrival > earliest { earliest } else { latest };
            if arrival.as_nanos().abs_diff(other.as_nanos()) > TIME_MAX {
                return Err(TraceError::TooFar {
                    file: self.file.to_owned(),
                    line,
                    found: arrival.to_string(),
                    other: other.to_string(),
                });
            }
            if arrival < latest && self.options.backwards == Backwards::Refuse {
                return Err(TraceError::Backwards {
                    file: self.file.to_owned(),
                    line,
                    found: arrival.to_string(),
                    previous: latest.to_string(),
                });
            }
            self.arrivals = Some((earliest.min(arrival), latest.max(arrival)));
        }
        if request.op == Op::Flush {
            request.extent = Extent::default();
        } else if request.extent.is_empty() {
            self.notes.zero_length += 1;
            return Ok(());
        }
        self.requests.push(request);
        Ok(())
    }

    /// Takes what a pairing found.
    pub(crate) fn take(&mut self, paired: Paired) -> Result<(), TraceError> {
        self.notes.arrival_event = Some(paired.arrival_event);
        self.notes.unpaired = paired.unpaired;
        for (line, request) in paired.requests {
            self.push(line, request)?;
        }
        Ok(())
    }

    /// Makes the first arrival the zero of all times, if they count from a calendar's.
    pub(crate) fn subtract_date(&mut self) {
        let first = self
            .requests
            .iter()
            .filter_map(|request| request.arrival)
            .min();
        let Some(first) = first.filter(|first| *first >= DATE_MIN) else {
            return;
        };
        let base = first - Time::ZERO;
        self.notes.base = base;
        for request in &mut self.requests {
            for time in [&mut request.arrival, &mut request.completion] {
                // A completion may be all that a request has, and earlier.
                *time = time.map(|time| time.saturating_sub(base));
            }
        }
    }

    #[cold]
    pub(crate) fn field_error(&self, line: u64, error: FieldError) -> TraceError {
        error.on(self.file, line)
    }
}

/// Turns an error of the line splitter into one that names the file.
pub(crate) fn line_error<R: Read>(file: &str, input: &Input<R>, error: LineError) -> TraceError {
    match error {
        LineError::TooLong { line } => TraceError::LineTooLong {
            file: file.to_owned(),
            line,
            max: LINE_MAX,
        },
        LineError::Read { offset, source } => input.error(file, offset, source),
    }
}

/// Moves to the next line that is neither blank nor a comment and counts the others. `false` at the
/// end of the file.
#[inline]
pub(crate) fn advance<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<bool, TraceError> {
    loop {
        match lines.advance() {
            Ok(false) => return Ok(false),
            Ok(true) if is_ignored(lines.current()) => reader.notes.lines_ignored += 1,
            Ok(true) => return Ok(true),
            Err(error) => return Err(line_error(reader.file, lines.input(), error)),
        }
    }
}

/// Returns true if a line is blank or a comment (`#`).
#[inline]
pub(crate) fn is_ignored(line: &[u8]) -> bool {
    match line.iter().find(|byte| !matches!(byte, b' ' | b'\t')) {
        None => true,
        Some(byte) => *byte == b'#',
    }
}

/// Checks a run of sectors against what a trace may hold.
#[inline]
pub(crate) fn extent(start: u64, len: u64) -> Option<Extent> {
    (len <= LENGTH_MAX && start < ADDRESS_END && len <= ADDRESS_END - start)
        .then(|| Extent::at(start, len))
}

/// The sectors that these bytes touch, and whether they touch no other byte.
#[inline]
pub(crate) fn extent_of_bytes(offset: u64, size: u64) -> Option<(Extent, bool)> {
    const SECTOR: u64 = TRACE_SECTOR as u64;
    // Counted from the sector, since the last one ends where 64 bits of bytes do.
    let (start, within) = (offset / SECTOR, offset % SECTOR);
    // A request of no bytes is one of no sectors, wherever it is.
    let len = if size == 0 {
        0
    } else {
        within.checked_add(size)?.div_ceil(SECTOR)
    };
    let aligned = size == 0 || (within == 0 && size.is_multiple_of(SECTOR));
    extent(start, len).map(|extent| (extent, aligned))
}

/// What [`extent`] wants.
pub(crate) const EXTENT_ALLOWED: &str = "a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before";
