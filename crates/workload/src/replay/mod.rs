//! Replays traces.
//!
//! A [`Script`] is a trace prepared for one drive: the chosen devices, with their addresses on the
//! drive. The replays of a comparison share one script. [`OpenReplay`] keeps the recorded arrivals.
//! [`ClosedReplay`] keeps a number of requests outstanding. [`ClosedPerProcess`] keeps the recorded
//! think times.

mod closed;
mod open;
mod per_process;
mod script;

pub use closed::ClosedReplay;
pub use open::{OpenReplay, Speed, SpeedError, Start};
pub use per_process::ClosedPerProcess;
pub use script::{Script, ScriptRequest};

use crate::PastTheEnd;
use headtime_units::{Extent, Sectors};
use thiserror::Error;

/// Reason why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A request does not fit the drive.
    #[error(transparent)]
    PastTheEnd(#[from] PastTheEnd),
    /// A chosen device has no request.
    #[error("no request of the trace is for device {device}; it has requests for {present}")]
    NoSuchDevice {
        device: u32,
        /// Devices with requests, separated by commas.
        present: String,
    },
    /// The number of devices exceeds the numbers of a disk's exports.
    #[error(
        "the trace is of {devices} devices; allowed are {}; choose some",
        u16::MAX
    )]
    TooManyDevices {
        /// Number of chosen devices.
        devices: usize,
    },
    /// A request is longer than drives accept.
    #[error(
        "request {request} is a read or write of {} sectors of {sector_bytes} bytes; allowed are {}",
        extent.len,
        Sectors::REQUEST_MAX
    )]
    TooLong {
        /// Number of the request in the trace in order of arrival, counted from 1.
        request: u64,
        /// Sectors of the request on the drive.
        extent: Extent,
        /// Bytes in a sector of the drive.
        sector_bytes: u32,
    },
    /// A request arrives later than the latest time of a run.
    #[error(
        "request {request} arrives 292 years after the start or later, and so far no run goes; replay the trace faster"
    )]
    TooLate {
        /// Number of the request among those of the chosen devices in order of arrival, counted from 1.
        request: u64,
    },
    #[error(
        "request {request} has no arrival, which an open replay needs; replay it closed, or give the column of the \
         arrivals"
    )]
    NoArrival {
        /// Number of the request in order of arrival, counted from 1.
        request: u64,
    },
    /// A request lacks a value that a closed replay per process needs.
    #[error(
        "request {request} has no {missing}, which a closed replay per process needs beside {}; of the formats, \
         blkparse, ftrace and perf have all of them, csv can have them, msr has no processes, and disksim and iolog \
         have neither processes nor completions (the trace is {formats})",
        beside(missing)
    )]
    NotPerProcess {
        /// Number of the request among those of the chosen devices in order of arrival, counted from 1.
        request: u64,
        /// The missing value: `arrival`, `process` or `completion`.
        missing: &'static str,
        /// Formats of the trace.
        formats: String,
    },
}

/// Names the other values that a closed replay per process needs.
fn beside(missing: &str) -> &'static str {
    match missing {
        "arrival" => "processes and completions",
        "process" => "arrivals and completions",
        _ => "arrivals and processes",
    }
}
