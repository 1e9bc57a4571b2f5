//! The contents of a trace, whatever file it came from.

use crate::format::csv::{PRESETS, Preset};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Nanos, Time};
use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;

/// Bytes in a sector of a trace. Traces always count 512; [`Fitter`](crate::Fitter) converts.
pub const TRACE_SECTOR: u32 = 512;

/// Address behind the last sector that a trace may name: 2⁵⁵, so that bytes fit into 64 bits.
pub const ADDRESS_END: u64 = 1 << 55;

/// Longest request that a trace may hold, in sectors: 2³² − 1, about 2 TiB.
pub const LENGTH_MAX: u64 = u32::MAX as u64;

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it was asked for. The zero is the trace's own: see [`Notes::base`].
    pub arrival: Option<Time>,
    /// When it was finished, on the same clock.
    pub completion: Option<Time>,
    /// Which disk. Some formats name disks by text; [`Trace::device_name`] has it.
    pub device: u32,
    /// What to do.
    pub op: Op,
    /// To which sectors of 512 bytes. Empty for a flush alone.
    pub extent: Extent,
    /// Which process asked.
    pub process: Option<u32>,
    pub flags: Flags,
}

/// A recorded sequence of requests, ordered by arrival.
///
/// Requests with equal arrivals, or without any, keep the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub requests: Vec<TraceRequest>,
    /// How the file was read.
    pub notes: Notes,
    /// Names of devices that have one, ascending by number.
    pub(crate) device_names: Vec<(u32, String)>,
}

/// How a trace was read: what was assumed, skipped and changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Name of the file.
    pub file: String,
    pub format: Format,
    /// How it was compressed.
    pub compression: Compression,
    /// Lines of the (decompressed) file.
    pub lines: u64,
    /// Lines without a request: blank, comments, headings, summaries.
    pub lines_ignored: u64,
    /// Unit of the arrivals, where the format leaves it open, and whether it was told or guessed.
    pub time_unit: Option<TimeUnitNote>,
    /// Which event of a request counts as its arrival, where a format records several.
    pub arrival_event: Option<ArrivalEvent>,
    /// What was subtracted from every time: the first arrival of a format that counts from a
    /// calendar date, else zero.
    pub base: Nanos,
    /// Requests that stood behind a later one and were moved to their place.
    pub out_of_order: u64,
    /// How far the largest of those steps went back.
    pub step_back_max: Nanos,
    /// Reads and writes of no sectors, which were left out.
    pub zero_length: u64,
    /// Requests whose bytes did not begin or end with a sector and were widened until they did.
    pub unaligned: u64,
    /// Completions of requests that are not in the trace, or that arrive later; left out.
    pub unpaired: u64,
    /// Requests that ended with an error, as far as the format says so; they are in the trace.
    pub failed: u64,
    /// Events that the recorder lost, as far as the file says so.
    pub lost: u64,
    /// Lines that say something that is not allowed, and were passed over.
    pub odd: Odd,
    /// Requests that the caller left out by [`ReadOptions::part`](crate::ReadOptions::part).
    pub outside: u64,
}

/// Lines that were passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    pub count: u64,
    /// The faults of the first ten.
    pub first: Vec<String>,
}

impl Odd {
    const SHOWN: usize = 10;

    pub(crate) fn add(&mut self, problem: String) {
        self.count += 1;
        if self.first.len() < Odd::SHOWN {
            self.first.push(problem);
        }
    }
}

/// Format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// DiskSim's default: arrival, device, block, blocks, flags.
    DiskSim,
    /// MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime.
    Msr,
    /// Text output of blkparse.
    Blkparse,
    /// Block events as the kernel's tracefs and `trace-cmd report` print them.
    Ftrace,
    /// Block events as `perf script` prints them.
    Perf,
    /// What fio writes with `write_iolog` and reads with `read_iolog`, version 2 or 3.
    Iolog,
    /// Binary records of blktrace.
    Blktrace,
    /// Separated columns that the caller describes, or that name themselves.
    Csv,
    /// Separated columns of a public trace or tool.
    Preset(&'static Preset),
}

/// How a file was compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Unit of a time in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// 100 ns, as Windows counts.
    Ticks,
    /// Nanoseconds.
    Nanos,
}

/// A unit of time and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnitNote {
    pub unit: TimeUnit,
    /// Why this one.
    pub because: UnitReason,
}

/// Why a trace's times were read in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitReason {
    /// The caller said so.
    Told,
    /// An arrival has a decimal point, so the unit is the format's own.
    DecimalPoint,
    /// All arrivals are whole numbers, and in milliseconds they would lie more than a second apart
    /// on average.
    FarApart,
    /// All arrivals are whole numbers, and lie close enough together for milliseconds.
    CloseTogether,
}

/// Which recorded event is a request's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrivalEvent {
    /// It entered the block layer (blkparse `Q`, event `block_bio_queue`), before merging and
    /// scheduling.
    Queue,
    /// It was handed to the driver (blkparse `D`, event `block_rq_issue`), after both.
    Issue,
}

impl Trace {
    /// A trace of these requests, put in order of arrival.
    pub fn new(requests: Vec<TraceRequest>) -> Trace {
        let mut trace = Trace {
            requests,
            notes: Notes::new("", Format::Csv),
            device_names: Vec::new(),
        };
        trace.sort();
        trace
    }

    /// Name of a device, for formats that name them: `host/disk` (MSR Cambridge), `major,minor`
    /// (blkparse, ftrace, perf), a file (iolog).
    pub fn device_name(&self, device: u32) -> Option<&str> {
        self.device_names
            .binary_search_by_key(&device, |(number, _)| *number)
            .ok()
            .map(|index| self.device_names[index].1.as_str())
    }

    /// Number of the device with this name, or of this number, if a request is for it.
    pub fn find_device(&self, text: &str) -> Option<u32> {
        let named = self.device_names.iter().find(|(_, name)| name == text);
        let device = named.map_or_else(|| text.parse().ok(), |(number, _)| Some(*number))?;
        self.requests
            .iter()
            .any(|request| request.device == device)
            .then_some(device)
    }

    /// The devices that requests are for, ascending.
    pub fn devices(&self) -> Vec<u32> {
        // Most are small numbers, for which a set of bits is the quickest.
        let (mut low, mut high) = (0_u64, BTreeSet::new());
        for request in &self.requests {
            match request.device {
                device @ 0..64 => low |= 1 << device,
                device => _ = high.insert(device),
            }
        }
        let low = (0..64).filter(|device| low >> device & 1 == 1);
        low.chain(high).collect()
    }

    /// Puts the requests in order of arrival and counts those that were not.
    pub(crate) fn sort(&mut self) {
        let mut latest = Time::ZERO;
        for request in &self.requests {
            let Some(arrival) = request.arrival else {
                continue;
            };
            let back = latest.saturating_since(arrival);
            if !back.is_zero() {
                self.notes.out_of_order += 1;
                self.notes.step_back_max = self.notes.step_back_max.max(back);
            }
            latest = latest.max(arrival);
        }
        if self.notes.out_of_order > 0 {
            // Requests without an arrival go with the one before them.
            let mut latest = Time::ZERO;
            let mut keyed: Vec<(Time, TraceRequest)> = self
                .requests
                .iter()
                .map(|request| {
                    latest = request.arrival.unwrap_or(latest);
                    (latest, *request)
                })
                .collect();
            keyed.sort_by_key(|(key, _)| *key);
            self.requests.clear();
            self.requests
                .extend(keyed.into_iter().map(|(_, request)| request));
        }
    }
}

impl Notes {
    pub(crate) fn new(file: &str, format: Format) -> Notes {
        Notes {
            file: file.to_owned(),
            format,
            compression: Compression::None,
            lines: 0,
            lines_ignored: 0,
            time_unit: None,
            arrival_event: None,
            base: Nanos::ZERO,
            out_of_order: 0,
            step_back_max: Nanos::ZERO,
            zero_length: 0,
            unaligned: 0,
            unpaired: 0,
            failed: 0,
            lost: 0,
            odd: Odd::default(),
            outside: 0,
        }
    }

    /// Adds the counts of another file.
    pub(crate) fn add(&mut self, other: Notes) {
        self.file = format!("{}, {}", self.file, other.file);
        self.arrival_event = self.arrival_event.or(other.arrival_event);
        for (count, more) in [
            (&mut self.lines, other.lines),
            (&mut self.lines_ignored, other.lines_ignored),
            (&mut self.out_of_order, other.out_of_order),
            (&mut self.zero_length, other.zero_length),
            (&mut self.unaligned, other.unaligned),
            (&mut self.unpaired, other.unpaired),
            (&mut self.failed, other.failed),
            (&mut self.lost, other.lost),
            (&mut self.odd.count, other.odd.count),
        ] {
            *count = count.saturating_add(more);
        }
        self.step_back_max = self.step_back_max.max(other.step_back_max);
        self.odd.first.extend(other.odd.first);
        self.odd.first.truncate(Odd::SHOWN);
    }
}

impl TimeUnit {
    /// Nanoseconds in one.
    pub const fn nanos(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Micros => 1_000,
            TimeUnit::Ticks => 100,
            TimeUnit::Nanos => 1,
        }
    }
}

/// A text that names none of a fixed set of things.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {what} `{found}`; allowed are {allowed}")]
pub struct UnknownName {
    /// What was to be named.
    pub what: &'static str,
    pub found: String,
    /// The names that there are, separated by commas.
    pub allowed: String,
}

/// A table of names, both ways.
macro_rules! names {
    ($type:ident, $what:literal, { $($value:ident => $text:literal $(| $other:literal)*),+ $(,)? }) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($type::$value => $text),+ })
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::trace::UnknownName;

            fn from_str(text: &str) -> Result<$type, crate::trace::UnknownName> {
                match text {
                    $($text $(| $other)* => Ok($type::$value),)+
                    _ => Err(crate::trace::UnknownName {
                        what: $what,
                        found: text.to_owned(),
                        allowed: [$($text),+].join(", "),
                    }),
                }
            }
        }
    };
}
pub(crate) use names;

/// Formats that have a reader of their own, by their names; the first of each is its own.
const FORMATS: [(Format, &[&str]); 8] = [
    (Format::DiskSim, &["disksim", "disksim-ascii"]),
    (Format::Msr, &["msr"]),
    (Format::Blkparse, &["blkparse"]),
    (Format::Blktrace, &["blktrace"]),
    (
        Format::Ftrace,
        &["ftrace", "trace-cmd", "tracefs", "systrace"],
    ),
    (Format::Perf, &["perf", "perf-script"]),
    (Format::Iolog, &["iolog", "fio"]),
    (Format::Csv, &["csv"]),
];

impl Format {
    /// The names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let own = FORMATS.iter().map(|(_, names)| names[0]);
        own.chain(PRESETS.iter().map(|preset| preset.name))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Preset(preset) => preset.name,
            own => {
                let found = FORMATS.iter().find(|(format, _)| format == own);
                found.expect("each has a name").1[0]
            }
        })
    }
}

impl std::str::FromStr for Format {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Format, UnknownName> {
        let own = FORMATS.iter().find(|(_, names)| names.contains(&text));
        own.map(|(format, _)| *format)
            .or_else(|| Preset::named(text).map(Format::Preset))
            .ok_or_else(|| UnknownName {
                what: "trace format",
                found: text.to_owned(),
                allowed: Format::names().collect::<Vec<_>>().join(", "),
            })
    }
}

names!(TimeUnit, "unit of time", {
    Seconds => "s",
    Millis => "ms",
    Micros => "us",
    Ticks => "100ns",
    Nanos => "ns",
});
names!(ArrivalEvent, "event", { Queue => "queue" | "Q", Issue => "issue" | "D" });

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// Writes for example `ns (guessed: whole numbers, on average more than 1 s apart if they were ms)`.
impl fmt::Display for TimeUnitNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.unit)?;
        f.write_str(match self.because {
            UnitReason::Told => " (as told)",
            UnitReason::DecimalPoint => "",
            UnitReason::FarApart => {
                " (guessed: whole numbers, on average more than 1 s apart if they were ms)"
            }
            UnitReason::CloseTogether => {
                " (guessed: whole numbers, on average at most 1 s apart if they are ms)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(arrival: Option<u64>, start: u64) -> TraceRequest {
        TraceRequest {
            arrival: arrival.map(Time::from_nanos),
            completion: None,
            device: start as u32 % 3,
            op: Op::Read,
            extent: Extent::at(start, 8),
            process: None,
            flags: Flags::NONE,
        }
    }

    #[test]
    fn sorting_is_stable_and_counted() {
        let trace = Trace::new(vec![
            at(Some(10), 0),
            at(Some(30), 1),
            at(None, 2),
            at(Some(20), 3),
            at(Some(25), 4),
            at(Some(30), 5),
        ]);
        let starts: Vec<u64> = trace
            .requests
            .iter()
            .map(|request| request.extent.start.get())
            .collect();
        assert_eq!(starts, [0, 3, 4, 1, 2, 5]);
        assert_eq!(trace.notes.out_of_order, 2);
        assert_eq!(trace.notes.step_back_max, Nanos::from_nanos(10));
        assert_eq!(trace.devices(), [0, 1, 2]);
        assert_eq!(trace.find_device("2"), Some(2));
        assert_eq!(trace.find_device("3"), None);
    }

    #[test]
    fn notes_name_few_devices_and_count_many() {
        for count in [1, 31, 32, 33, 1000_u32] {
            let requests = (0..5000_u64)
                .map(|number| {
                    let mut request = at(Some(number), number);
                    request.device = (number as u32).wrapping_mul(7919) % count;
                    request
                })
                .collect();
            let expected: Vec<u32> = (0..count).collect();
            assert_eq!(Trace::new(requests).devices(), expected);
        }
    }

    #[test]
    fn every_name_is_read_back_as_its_value() {
        for unit in ["s", "ms", "us", "100ns", "ns"] {
            assert_eq!(unit.parse::<TimeUnit>().unwrap().to_string(), unit);
        }
        for name in Format::names() {
            assert_eq!(name.parse::<Format>().unwrap().to_string(), name);
        }
        let error = "vhd".parse::<Format>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown trace format `vhd`; allowed are disksim, msr, blkparse, blktrace, ftrace, perf, iolog, csv, \
             biosnoop, iotracer, fiu, spc, alibaba, tencent, systor, blkparse-f"
        );
    }
}
