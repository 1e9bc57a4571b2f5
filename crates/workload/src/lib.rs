//! The requests that programs make of a disk: traces, replays and synthetic programs.
//!
//! A [`Trace`] is a recorded sequence of requests, read from any of several formats. A [`Script`]
//! is a trace prepared for one drive: it has the chosen devices, and a [`Fitter`] has mapped their
//! addresses onto the drive. A simulation takes requests from a [`Source`]: a replay of a script
//! ([`OpenReplay`], [`ClosedReplay`], [`ClosedPerProcess`]) or synthetic programs ([`Synthetic`]).
//!
//! ```
//! use headtime_units::{Sectors, Time};
//! use headtime_workload::{ClosedReplay, Fit, Fitter, ReadOptions, Script, Source, Trace};
//! use std::sync::Arc;
//!
//! let text = "0.5 0 1000 8 1\n1.5 0 99000 16 0\n";
//! let trace = Trace::read("two.trace", text.as_bytes(), &ReadOptions::default())?;
//! assert_eq!(trace.info().total.reads, 1);
//!
//! // A drive of 50,000 sectors of 512 bytes, one request outstanding.
//! let fitter = Fitter::new(Sectors::new(50_000), 512, Fit::Wrap);
//! let script = Arc::new(Script::new(&trace, &[], &fitter)?);
//! let mut source = ClosedReplay::new(script, 1);
//! let first = source.poll(Time::ZERO).unwrap();
//! assert!(source.poll(Time::ZERO).is_none());
//! let served = Time::from_nanos(8_000_000);
//! source.completed(served, first.cookie);
//! let second = source.poll(served).unwrap();
//! assert_eq!(second.extent.start.get(), 49_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has no clock (time is an argument), no disk and no printing. The only I/O is reading the
//! trace file that a caller names, and the scratch file that a caller opens for a long trace.

mod calendar;
mod error;
mod fit;
mod format;
mod info;
mod input;
mod lines;
mod merge;
mod names;
mod number;
mod numbered;
mod pairing;
mod random;
mod read;
mod reader;
mod replay;
mod request;
mod ring;
mod scratch;
mod source;
mod synthetic;
#[cfg(feature = "serde")]
mod text;
mod trace;
mod write;

pub use error::{PastTheEnd, TraceError};
pub use fit::{Fit, Fitted, Fitter};
pub use format::csv::{ColumnsError, CsvColumns, PRESETS, Preset};
pub use info::{BUSIEST_MAX, DeviceInfo, Figures, ProcessInfo, SizeBin, Spread, TraceInfo};
pub use lines::LINE_MAX;
pub use pairing::{BlockAction, BlockEvent, Level, Paired, Pairing};
pub use random::Random;
pub use reader::{Backwards, Part, ReadOptions};
pub use replay::{
    ClosedPerProcess, ClosedReplay, OpenReplay, ReplayError, Script, ScriptRequest, Speed,
    SpeedError, Start,
};
pub use request::TraceRequest;
pub use ring::{BLOCK_EVENTS, NAME_MAX, RingError, RingEvent, RingPage, RingReader};
pub use scratch::Scratch;
pub use source::{NewRequest, Returned, Source};
pub use synthetic::{
    Cycle, DistributionError, First, Pacing, Places, ProcessSpec, SizeDistribution, Sizes,
    SpecError, Synthetic, SyntheticSpec, TimeDistribution,
};
pub use trace::{
    ADDRESS_END, ArrivalEvent, Compression, Format, LENGTH_MAX, Notes, Odd, TRACE_SECTOR, TimeUnit,
    TimeUnitNote, Trace, UnitReason, UnknownName,
};
pub use write::{WriteError, Written};
