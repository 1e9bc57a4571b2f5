//! Writes a trace.

use crate::number::{write_millis, write_unsigned};
use crate::{Trace, TraceRequest};
use headtime_sched::Op;
use headtime_units::{Nanos, Time};
use std::io::{self, Write};
use thiserror::Error;

/// Counts of written requests, and of data that the written trace lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Requests written.
    pub requests: u64,
    /// Flushes and discards that were left out, since the format has none.
    pub left_out: u64,
    /// Completions that were not written.
    pub completions_lost: u64,
    /// Processes that were not written.
    pub processes_lost: u64,
    /// Names of processes that were not written, one for each request of such a process.
    pub names_lost: u64,
    /// Flags (FUA, preflush, sync) that were not written.
    pub flags_lost: u64,
}

/// Reason why a trace cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing to the output failed.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    /// A request has no arrival.
    #[error("request {request} has no arrival, which the disksim format needs; write csv")]
    NoArrival {
        /// Number of the request in order of arrival, counted from 1.
        request: u64,
    },
}

/// Bytes collected before each write.
const CHUNK_BYTES: usize = 64 * 1024;

impl Trace {
    /// Writes DiskSim's ASCII format: arrival in milliseconds with six decimal places, device, block,
    /// blocks, and 1 for a read or 0 for a write.
    ///
    /// # Errors
    ///
    /// If a read or write has no arrival, and if writing to `out` fails.
    pub fn write_disksim(&self, out: &mut dyn Write) -> Result<Written, WriteError> {
        let mut written = Written::default();
        let mut text = Vec::with_capacity(CHUNK_BYTES + 128);
        for (index, request) in self.requests.iter().enumerate() {
            let read = match request.op {
                Op::Read => 1,
                Op::Write => 0,
                Op::Flush | Op::Discard => {
                    written.left_out += 1;
                    continue;
                }
            };
            let arrival = request.arrival.ok_or(WriteError::NoArrival {
                request: index as u64 + 1,
            })?;
            write_millis(Nanos::from_nanos(arrival.as_nanos()), &mut text);
            for value in [
                u64::from(request.device),
                request.extent.start.get(),
                request.extent.len.get(),
                read,
            ] {
                text.push(b' ');
                write_unsigned(value, &mut text);
            }
            text.push(b'\n');
            written.requests += 1;
            written.completions_lost += u64::from(request.completion.is_some());
            written.processes_lost += u64::from(request.process.is_some());
            written.names_lost += u64::from(self.name_of(request).is_some());
            written.flags_lost += u64::from(request.flags.bits() != 0);
            pass_on(&mut text, CHUNK_BYTES, out)?;
        }
        pass_on(&mut text, 1, out)?;
        Ok(written)
    }

    /// Writes all of the trace as separated columns, with headings that [`Trace::open`] recognises.
    /// Times are in nanoseconds, addresses and sizes in sectors of 512 bytes. Unknown values are empty.
    /// If a process has a name, each line ends with the name of its process.
    ///
    /// # Errors
    ///
    /// If writing to `out` fails.
    pub fn write_csv(&self, out: &mut dyn Write) -> Result<Written, WriteError> {
        let mut text = Vec::with_capacity(CHUNK_BYTES + 256);
        text.extend_from_slice(CSV_HEADINGS.as_bytes());
        let has_names = self.requests.iter().any(|one| self.name_of(one).is_some());
        if has_names {
            text.push(b',');
            text.extend_from_slice(CSV_NAME_HEADING.as_bytes());
        }
        text.push(b'\n');
        let mut last = (None, None);
        for request in &self.requests {
            let optional = |value: Option<u64>, text: &mut Vec<u8>| {
                if let Some(value) = value {
                    write_unsigned(value, text);
                }
                text.push(b',');
            };
            optional(request.arrival.map(Time::as_nanos), &mut text);
            optional(request.completion.map(Time::as_nanos), &mut text);
            optional(Some(u64::from(request.device)), &mut text);
            text.extend_from_slice(op_name(request.op).as_bytes());
            text.push(b',');
            optional(Some(request.extent.start.get()), &mut text);
            optional(Some(request.extent.len.get()), &mut text);
            optional(request.process.map(u64::from), &mut text);
            write_unsigned(u64::from(request.flags.bits()), &mut text);
            if has_names {
                if last.0 != request.process {
                    last = (request.process, self.name_of(request));
                }
                text.push(b',');
                write_quoted(last.1.unwrap_or_default(), &mut text);
            }
            text.push(b'\n');
            pass_on(&mut text, CHUNK_BYTES, out)?;
        }
        pass_on(&mut text, 1, out)?;
        Ok(Written {
            requests: self.requests.len() as u64,
            ..Written::default()
        })
    }

    /// Name of the process of a request.
    fn name_of(&self, request: &TraceRequest) -> Option<&str> {
        self.process_name(request.process?)
    }
}

/// Headings of the columns that [`Trace::write_csv`] writes.
pub(crate) const CSV_HEADINGS: &str =
    "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags";

/// Heading behind [`CSV_HEADINGS`] in a trace whose processes have names.
pub(crate) const CSV_NAME_HEADING: &str = "process_name";

/// The word for an operation in a CSV trace.
const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
    }
}

/// Writes the text of a column, in quotes if it has separators or quotes.
fn write_quoted(column: &str, text: &mut Vec<u8>) {
    if !column.contains([',', '"']) {
        return text.extend_from_slice(column.as_bytes());
    }
    text.push(b'"');
    text.extend_from_slice(column.replace('"', "\"\"").as_bytes());
    text.push(b'"');
}

/// Writes the collected text if it has at least `least` bytes.
fn pass_on(text: &mut Vec<u8>, least: usize, out: &mut dyn Write) -> io::Result<()> {
    if text.len() >= least {
        out.write_all(text)?;
        text.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{ReadOptions, Trace};

    #[test]
    fn the_disksim_format_comes_back() {
        let text = "0.000001 0 5 8 1\n13.191135 30 576560 5 0\n1532949.045363 2 0 64 1\n";
        let trace = Trace::read("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let mut out = Vec::new();
        let written = trace.write_disksim(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
        assert_eq!((written.requests, written.left_out), (3, 0));
    }
}
