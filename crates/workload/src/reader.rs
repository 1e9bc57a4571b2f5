//! Parts that the readers of all formats share.

use crate::error::{FieldError, TraceError};
use crate::input::Input;
use crate::lines::{LINE_MAX, LineError, Lines};
use crate::names::ProcessNames;
use crate::number::TIME_MAX;
use crate::pairing::{BlockEvent, Paired};
use crate::scratch::{Filed, FiledRequests, Scratch, Spill};
use crate::trace::{ADDRESS_END, LENGTH_MAX, TRACE_SECTOR};
use crate::{ArrivalEvent, CsvColumns, Format, Notes, TimeUnit, Trace, TraceRequest};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::io::{self, Read};
use std::sync::Arc;

/// Options for reading a trace. By default the content decides the format, and every file is taken as
/// it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format. `None` decides by content.
    pub format: Option<Format>,
    /// Unit of the arrivals of a DiskSim trace. `None` decides by the rule in [`Notes::time_unit`].
    pub time_unit: Option<TimeUnit>,
    /// Treatment of a request that arrives before a request ahead of it in the file.
    pub backwards: Backwards,
    /// Event of a request that counts as its arrival, for formats with several events (blkparse,
    /// ftrace, perf). `None` takes queue events if there are any, else issue events.
    pub arrival_event: Option<ArrivalEvent>,
    /// Columns of a CSV trace. `None` requires the headings that
    /// [`Trace::write_csv`](crate::Trace::write_csv) writes.
    pub columns: Option<CsvColumns>,
    /// True to leave out lines with a value that is not allowed, and to count them in [`Notes::odd`].
    /// False to report the first such line as an error.
    pub lenient: bool,
    /// Part of the trace to use. The default is all of the trace.
    pub part: Part,
}

/// A part of a trace, in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Time from the first arrival to the start of the part.
    pub from: Option<Nanos>,
    /// Length of the part in time, from its start.
    pub span: Option<Nanos>,
    /// Largest number of requests in the part.
    pub first: Option<u64>,
}

/// Treatment of a request that arrives before a request ahead of it in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backwards {
    /// Move the request to its place in time, and count the request in [`Notes::out_of_order`].
    #[default]
    Sort,
    /// Report an error.
    Refuse,
}

/// Least first arrival that is taken for a date: ten years. A smaller one counts from another start.
const DATE_MIN: Time = Time::from_nanos(10 * 365 * 86_400 * 1_000_000_000);

/// Collects the requests that a format's reader finds.
pub(crate) struct Reader<'a> {
    pub file: &'a str,
    pub options: &'a ReadOptions,
    pub requests: Vec<TraceRequest>,
    pub notes: Notes,
    /// Earliest and latest arrival so far.
    pub arrivals: Option<(Time, Time)>,
    pub device_names: Vec<(u32, String)>,
    pub process_names: ProcessNames,
    /// Place for the requests of a long trace. `None` keeps all in `requests`.
    scratch: Option<Scratch>,
    /// Length of `requests` at which the earlier half goes to the scratch file.
    spill_at: usize,
    spill: Option<Spill>,
    /// The requests, once all are in a file.
    pub filed: Option<Filed>,
    /// Number of the first of `requests` that were sorted before, and counted if they were out of order.
    sorted: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str, format: Format, options: &'a ReadOptions) -> Reader<'a> {
        Reader {
            file,
            options,
            requests: Vec::new(),
            notes: Notes::new(file, format),
            arrivals: None,
            device_names: Vec::new(),
            process_names: ProcessNames::default(),
            scratch: None,
            spill_at: usize::MAX,
            spill: None,
            filed: None,
            sorted: 0,
        }
    }

    /// Gives the requests of a long trace a place.
    pub(crate) fn with_scratch(mut self, scratch: Option<Scratch>) -> Reader<'a> {
        self.scratch = scratch;
        self.spill_at = scratch.map_or(usize::MAX, |scratch| scratch.from);
        self
    }

    /// Returns the collected requests as a trace.
    pub(crate) fn finish(mut self) -> Result<Trace, TraceError> {
        self.settle()?;
        if self.requests.is_empty() && self.filed.is_none() {
            return Err(TraceError::Empty(Box::new(self.notes)));
        }
        self.device_names.sort_unstable();
        let mut trace = Trace {
            requests: self.requests,
            notes: self.notes,
            device_names: self.device_names,
            process_names: self.process_names.into_table(),
            filed: self.filed.map(Arc::new),
        };
        trace.sort(self.sorted);
        Ok(trace)
    }

    /// Writes the earlier half of the requests to the scratch file, or `all`.
    #[cold]
    #[inline(never)]
    fn spill(&mut self, all: bool) -> Result<(), TraceError> {
        let Some(scratch) = self.scratch else {
            return Ok(());
        };
        let count = self.requests.len() / if all { 1 } else { 2 };
        let has_arrivals = self.requests.iter().all(|one| one.arrival.is_some());
        self.notes.sort(&mut self.requests, self.sorted);
        self.sorted = self.requests.len();
        let mut write = || -> io::Result<bool> {
            if self.spill.is_none() {
                self.spill = Some(Spill::new(scratch)?);
            }
            let spill = self.spill.as_mut().expect("it was made");
            Ok(has_arrivals && spill.write(&self.requests[..count])?)
        };
        match write() {
            Ok(true) => {
                self.requests.drain(..count);
                self.sorted -= count;
                Ok(())
            }
            Ok(false) => self.take_back(),
            Err(source) => Err(self.scratch_error(source)),
        }
    }

    /// Writes the last requests to the scratch file, if others are there.
    pub(crate) fn settle(&mut self) -> Result<(), TraceError> {
        if self.spill.is_some() {
            self.spill(true)?;
        }
        if let Some(spill) = self.spill.take() {
            self.filed = Some(spill.finish().map_err(|error| self.scratch_error(error))?);
        }
        Ok(())
    }

    /// Takes all requests back into memory, and leaves them there.
    pub(crate) fn take_back(&mut self) -> Result<(), TraceError> {
        (self.scratch, self.spill_at) = (None, usize::MAX);
        let spill = self.spill.take().map(Spill::finish).transpose();
        let spill = spill.map_err(|error| self.scratch_error(error))?;
        if let Some(filed) = spill.or(self.filed.take()) {
            let filed = Arc::new(filed);
            let mut requests: Vec<TraceRequest> = FiledRequests::new(&filed).collect();
            if let Some(problem) = filed.failure() {
                return Err(self.scratch_error(io::Error::other(problem)));
            }
            self.sorted += requests.len();
            requests.append(&mut self.requests);
            self.requests = requests;
        }
        Ok(())
    }

    fn scratch_error(&self, source: io::Error) -> TraceError {
        TraceError::Scratch {
            file: self.file.to_owned(),
            source,
        }
    }

    /// Refuses options that the format does not use, since the caller expects an effect.
    pub fn check_options(&self) -> Result<(), TraceError> {
        let format = self.notes.format;
        let has_events = match format {
            Format::Blkparse | Format::Blktrace | Format::Ftrace | Format::Perf => true,
            Format::Csv => {
                (self.options.columns.as_ref()).is_some_and(|columns| columns.has_events)
            }
            Format::Preset(preset) => preset.has_events(),
            _ => false,
        };
        let problem = if self.options.columns.is_some() && format != Format::Csv {
            "columns are for csv; say so (--trace-format csv) or leave them out"
        } else if self.options.time_unit.is_some() && format != Format::DiskSim {
            "the format fixes the unit of time (csv: its columns); leave it out"
        } else if self.options.arrival_event.is_some() && !has_events {
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

    /// Adds the request of a line, or counts the request if it has no sectors.
    #[inline(always)]
    pub(crate) fn push(&mut self, line: u64, mut request: TraceRequest) -> Result<(), TraceError> {
        if let Some(arrival) = request.arrival {
            let (earliest, latest) = self.arrivals.unwrap_or((arrival, arrival));
            let other = if arrival > earliest { earliest } else { latest };
            let is_far = arrival.as_nanos().abs_diff(other.as_nanos()) > TIME_MAX;
            if is_far || arrival < latest && self.options.backwards == Backwards::Refuse {
                return self.refuse_arrival(line, arrival, is_far.then_some(other), latest);
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
        if self.requests.len() >= self.spill_at {
            self.spill(false)?;
        }
        Ok(())
    }

    /// Refuses an arrival that is too far from another one, or before the latest.
    #[cold]
    #[inline(never)]
    fn refuse_arrival(
        &mut self,
        line: u64,
        arrival: Time,
        far_from: Option<Time>,
        latest: Time,
    ) -> Result<(), TraceError> {
        let file = self.file.to_owned();
        let found = arrival.to_string();
        self.refuse(match far_from {
            Some(other) => TraceError::TooFar {
                file,
                line,
                found,
                other: other.to_string(),
            },
            None => TraceError::Backwards {
                file,
                line,
                found,
                previous: latest.to_string(),
            },
        })
    }

    /// Notes the name of the process that ran at an event. An empty name is unknown.
    #[inline]
    pub(crate) fn name_process(&mut self, event: &BlockEvent, name: &[u8]) {
        if let (Some(process), false) = (event.request.process, name.is_empty()) {
            self.process_names.saw(process, name);
        }
    }

    /// Adds the requests and the notes of a pairing.
    pub(crate) fn take(&mut self, paired: Paired) -> Result<(), TraceError> {
        self.notes.arrival_event = Some(paired.arrival_event);
        self.notes.unpaired = paired.unpaired;
        for (line, request) in paired.requests {
            self.push(line, request)?;
        }
        Ok(())
    }

    /// Makes the first arrival the zero of all times, if the times count from a calendar's zero. `zero`
    /// has been added to all times beforehand.
    pub(crate) fn subtract_date(&mut self, zero: u64) -> Result<(), TraceError> {
        self.settle()?;
        let first = match &self.filed {
            Some(filed) => Some(filed.arrivals.0),
            None => (self.requests.iter())
                .filter_map(|request| request.arrival)
                .min(),
        };
        let Some(first) = first.filter(|first| *first >= DATE_MIN) else {
            return Ok(());
        };
        let base = first - Time::ZERO;
        self.notes.base = base.saturating_sub(Nanos::from_nanos(zero));
        // A request may have a completion and no arrival. Such a completion may precede the first
        // arrival.
        map_times(&mut self.requests, |time| time.saturating_sub(base));
        if let Some(filed) = &mut self.filed {
            filed.base = base;
        }
        Ok(())
    }

    /// Counts a line with a value that is not allowed, or returns an error if the options are not
    /// lenient.
    #[cold]
    #[inline(never)]
    pub(crate) fn odd(&mut self, line: u64, error: FieldError) -> Result<(), TraceError> {
        let error = self.field_error(line, error);
        self.refuse(error)
    }

    /// Counts an error if the options are lenient, or else returns the error.
    #[cold]
    pub(crate) fn refuse(&mut self, error: TraceError) -> Result<(), TraceError> {
        if !self.options.lenient {
            return Err(error);
        }
        self.notes.odd.add(error.to_string());
        Ok(())
    }

    #[cold]
    pub(crate) fn field_error(&self, line: u64, error: FieldError) -> TraceError {
        error.on(self.file, line)
    }
}

/// Applies a function to all times of requests.
pub(crate) fn map_times(requests: &mut [TraceRequest], change: impl Fn(Time) -> Time) {
    for request in requests {
        request.arrival = request.arrival.map(&change);
        request.completion = request.completion.map(&change);
    }
}

/// Converts an error of the line splitter into an error that names the file.
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

/// Moves to the next line that is neither blank nor a comment, and counts the lines skipped. Returns
/// `false` at the end of the file.
#[inline(always)]
pub(crate) fn advance<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<bool, TraceError> {
    loop {
        match lines.advance() {
            Ok(false) => return Ok(false),
            Ok(true) if is_ignored(lines.current()) => reader.notes.lines_ignored += 1,
            Ok(true) => return Ok(true),
            Err(error) => skip_long(lines, reader, error)?,
        }
    }
}

/// Skips a line that is too long if the options are lenient, or else returns the error.
#[cold]
#[inline(never)]
fn skip_long<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
    error: LineError,
) -> Result<(), TraceError> {
    let is_long = matches!(error, LineError::TooLong { .. });
    let error = line_error(reader.file, lines.input(), error);
    if !is_long {
        return Err(error);
    }
    reader.refuse(error)?;
    lines
        .skip_line()
        .map_err(|error| line_error(reader.file, lines.input(), error))
}

/// Returns true if a line is blank or a comment (`#`).
#[inline]
pub(crate) fn is_ignored(line: &[u8]) -> bool {
    match line.iter().find(|byte| !matches!(byte, b' ' | b'\t')) {
        None => true,
        Some(byte) => *byte == b'#',
    }
}

/// Returns the extent if a trace may contain it, or else `None`.
#[inline]
pub(crate) fn extent(start: u64, len: u64) -> Option<Extent> {
    (len <= LENGTH_MAX && start < ADDRESS_END && len <= ADDRESS_END - start)
        .then(|| Extent::at(start, len))
}

/// Returns the sectors that these bytes touch, and true if the bytes fill the sectors.
#[inline]
pub(crate) fn extent_of_bytes(offset: u64, size: u64) -> Option<(Extent, bool)> {
    const SECTOR: u64 = TRACE_SECTOR as u64;
    // Bytes are counted from the start of the first sector. Counted from zero, the end of the last
    // sector would exceed 64 bits.
    let (start, within) = (offset / SECTOR, offset % SECTOR);
    // A request of no bytes has no sectors at any offset.
    let len = if size == 0 {
        0
    } else {
        within.checked_add(size)?.div_ceil(SECTOR)
    };
    let aligned = size == 0 || (within == 0 && size.is_multiple_of(SECTOR));
    extent(start, len).map(|extent| (extent, aligned))
}

/// Description of the extents that [`extent`] accepts, for messages.
pub(crate) const EXTENT_ALLOWED: &str = "a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before";
