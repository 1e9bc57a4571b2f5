//! Contents of a trace, independent of the file's format.

use crate::TraceRequest;
use crate::format::csv::{PRESETS, Preset};
use crate::names::ProcessNames;
use crate::scratch::{Filed, FiledRequests};
use headtime_units::{Nanos, Time};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Bytes in a sector of a trace. Traces always count sectors of 512 bytes. [`Fitter`](crate::Fitter)
/// converts them.
pub const TRACE_SECTOR: u32 = 512;

/// Address behind the last sector that a trace may name: 2⁵⁵. Byte addresses then fit into 64 bits.
pub const ADDRESS_END: u64 = 1 << 55;

/// Longest request that a trace may hold, in sectors: 2³² − 1, about 2 TiB.
pub const LENGTH_MAX: u64 = u32::MAX as u64;

/// A recorded sequence of requests, ordered by arrival.
///
/// Requests with equal arrivals, or without any, keep the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub requests: Vec<TraceRequest>,
    /// Notes on reading the file.
    pub notes: Notes,
    /// Names of devices that have one, ascending by number.
    pub(crate) device_names: Vec<(u32, String)>,
    /// Names of processes that have one, ascending by number.
    pub(crate) process_names: Vec<(u32, String)>,
    /// The requests of a long trace, in place of `requests`.
    pub(crate) filed: Option<Arc<Filed>>,
}

/// Notes on reading a trace: assumptions, omissions and changes.
///
/// Invariants:
///
/// - `lines_ignored ≤ lines`.
/// - `out_of_order = 0` ⇔ `step_back_max = 0`.
/// - `odd.first.len() = min(odd.count, 10)`.
/// - `kinds.len() ≠ 1`, and `kinds` of each of `kinds` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Name of the file.
    pub file: String,
    pub format: Format,
    /// Compression of the file.
    pub compression: Compression,
    /// Lines of the (decompressed) file.
    pub lines: u64,
    /// Lines without a request: blank, comments, headings, summaries.
    pub lines_ignored: u64,
    /// Unit of the arrivals, if the format leaves the unit open. Tells if the unit was given or
    /// guessed.
    pub time_unit: Option<TimeUnitNote>,
    /// Event of a request that counts as its arrival, if the format records several events.
    pub arrival_event: Option<ArrivalEvent>,
    /// Time that was subtracted from every time. For a format that counts from a calendar date, this is
    /// the first arrival. Otherwise it is zero.
    pub base: Nanos,
    /// Requests that stood behind a later one in the file and were moved to their place in time.
    pub out_of_order: u64,
    /// Longest time by which such a request was earlier than a request ahead.
    pub step_back_max: Nanos,
    /// Reads and writes of no sectors, which were left out.
    pub zero_length: u64,
    /// Requests that did not begin and end at sector bounds, and were widened to whole sectors.
    pub unaligned: u64,
    /// Completions without a request in the trace, or with a request that arrives later. They were left
    /// out.
    pub unpaired: u64,
    /// Requests that ended with an error, if the format reports errors. The trace contains them.
    pub failed: u64,
    /// Events that the recorder lost, if the file reports the loss.
    pub lost: u64,
    /// Lines with a value that is not allowed, which were left out.
    pub odd: Odd,
    /// Requests that the caller left out by [`ReadOptions::part`](crate::ReadOptions::part).
    pub outside: u64,
    /// Notes of the files of each kind, if files of several kinds form one trace. Empty otherwise.
    pub(crate) kinds: Vec<Notes>,
}

/// Lines that were left out as faulty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    pub count: u64,
    /// Descriptions of the first ten faults.
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
    /// Log that fio writes with `write_iolog` and reads with `read_iolog`, version 2 or 3.
    Iolog,
    /// Binary records of blktrace.
    Blktrace,
    /// Separated columns that the caller describes, or that have the headings of this program.
    Csv,
    /// Separated columns of a public trace or tool.
    Preset(&'static Preset),
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
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

/// A unit of time, and the reason for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnitNote {
    pub unit: TimeUnit,
    /// Reason for the choice.
    pub because: UnitReason,
}

/// Reason for reading a trace's times in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitReason {
    /// The caller gave the unit.
    Told,
    /// An arrival has a decimal point, so the unit is the format's own.
    DecimalPoint,
    /// All arrivals are whole numbers, and in milliseconds they would lie more than a second apart
    /// on average.
    FarApart,
    /// All arrivals are whole numbers, and lie close enough together for milliseconds.
    CloseTogether,
}

/// Recorded event that counts as a request's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrivalEvent {
    /// The request entered the block layer (blkparse `Q`, event `block_bio_queue`), before merging and
    /// scheduling.
    Queue,
    /// The request was handed to the driver (blkparse `D`, event `block_rq_issue`), after merging and
    /// scheduling.
    Issue,
}

impl Trace {
    /// Creates a trace of these requests, in order of arrival.
    pub fn new(requests: Vec<TraceRequest>) -> Trace {
        let mut trace = Trace {
            requests,
            notes: Notes::new("", Format::Csv),
            device_names: Vec::new(),
            process_names: Vec::new(),
            filed: None,
        };
        trace.sort(0);
        trace
    }

    /// Returns all requests in order, from memory or from the scratch file.
    pub fn iter(&self) -> impl Iterator<Item = TraceRequest> {
        let filed = self.filed.as_ref().map(FiledRequests::new);
        let requests = self.requests.iter().copied();
        requests.chain(filed.into_iter().flatten())
    }

    /// Number of requests.
    pub fn count(&self) -> u64 {
        let filed = self.filed.as_ref().map_or(0, |filed| filed.len());
        self.requests.len() as u64 + filed
    }

    /// Error that ended [`Trace::iter`] too early.
    pub fn failure(&self) -> Option<&str> {
        self.filed.as_ref()?.failure()
    }

    /// Replaces the names of processes. The last name of a process counts. A name that stands for an
    /// unknown one, such as `<...>`, does not count.
    pub fn with_process_names<N: AsRef<[u8]>>(
        mut self,
        names: impl IntoIterator<Item = (u32, N)>,
    ) -> Trace {
        let mut table = ProcessNames::default();
        for (process, name) in names {
            table.saw(process, name.as_ref());
        }
        self.process_names = table.into_table();
        self
    }

    /// Name of a device, for formats that name them: `host/disk` (MSR Cambridge), `major,minor`
    /// (blkparse, ftrace, perf), a file (iolog).
    pub fn device_name(&self, device: u32) -> Option<&str> {
        name_in(&self.device_names, device)
    }

    /// Last name of a process, for formats that name them (blkparse, blktrace, ftrace, perf, csv, and
    /// some presets). A name is printable text of at most 64 bytes.
    pub fn process_name(&self, process: u32) -> Option<&str> {
        name_in(&self.process_names, process)
    }

    /// Finds the device with this name or number. Returns `None` if no request is for that device.
    pub fn find_device(&self, text: &str) -> Option<u32> {
        let named = self.device_names.iter().find(|(_, name)| name == text);
        let device = named.map_or_else(|| text.parse().ok(), |(number, _)| Some(*number))?;
        let is_present = match &self.filed {
            Some(_) => self.devices().contains(&device),
            None => (self.requests.iter()).any(|request| request.device == device),
        };
        is_present.then_some(device)
    }

    /// Devices that have requests, in ascending order.
    pub fn devices(&self) -> Vec<u32> {
        let find = || self.find_devices();
        (self.filed.as_ref()).map_or_else(find, |filed| filed.present(find))
    }

    fn find_devices(&self) -> Vec<u32> {
        // Most device numbers are small. A set of bits is the quickest for small numbers.
        let (mut low, mut high) = (0_u64, BTreeSet::new());
        self.iter().for_each(|request| match request.device {
            device @ 0..64 => low |= 1 << device,
            device => _ = high.insert(device),
        });
        let low = (0..64).filter(|device| low >> device & 1 == 1);
        low.chain(high).collect()
    }

    /// Puts the requests in order of arrival, as [`Notes::sort`].
    pub(crate) fn sort(&mut self, sorted: usize) {
        self.notes.sort(&mut self.requests, sorted);
    }
}

/// Finds the name of a number in a sorted table.
fn name_in(table: &[(u32, String)], number: u32) -> Option<&str> {
    let found = table.binary_search_by_key(&number, |(number, _)| *number);
    found.ok().map(|index| table[index].1.as_str())
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
            kinds: Vec::new(),
        }
    }

    /// Puts requests in order of arrival, and counts the requests that were out of order. The first
    /// `sorted` requests were counted before.
    pub(crate) fn sort(&mut self, requests: &mut Vec<TraceRequest>, sorted: usize) {
        let before = requests[..sorted].iter().filter_map(|one| one.arrival);
        let mut latest = before.max().unwrap_or(Time::ZERO);
        for request in &requests[sorted..] {
            let Some(arrival) = request.arrival else {
                continue;
            };
            let back = latest.saturating_since(arrival);
            if !back.is_zero() {
                self.out_of_order += 1;
                self.step_back_max = self.step_back_max.max(back);
            }
            latest = latest.max(arrival);
        }
        if self.out_of_order > 0 {
            // Requests without an arrival stay behind the previous request.
            let mut latest = Time::ZERO;
            let mut keyed: Vec<(Time, TraceRequest)> = requests
                .iter()
                .map(|request| {
                    latest = request.arrival.unwrap_or(latest);
                    (latest, *request)
                })
                .collect();
            keyed.sort_by_key(|(key, _)| *key);
            requests.clear();
            requests.extend(keyed.into_iter().map(|(_, request)| request));
        }
    }

    /// Notes of the files of each kind. Files of one kind agree in format, compression, unit of time and
    /// event of arrivals.
    pub fn kinds(&self) -> &[Notes] {
        match &self.kinds[..] {
            [] => std::slice::from_ref(self),
            kinds => kinds,
        }
    }

    /// Returns the distinct values of a property over the kinds of files. `None` if no file has the
    /// property.
    pub fn of_kinds<T: fmt::Display>(&self, of: impl Fn(&Notes) -> Option<T>) -> Option<String> {
        let mut values: Vec<String> = Vec::new();
        for value in self.kinds().iter().filter_map(of) {
            let value = value.to_string();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Returns true if another file is of the same kind.
    fn is_kind_of(&self, other: &Notes) -> bool {
        let kind = |of: &Notes| (of.format, of.compression, of.time_unit, of.arrival_event);
        kind(self) == kind(other)
    }

    /// Adds the counts of another file.
    pub(crate) fn add(&mut self, other: Notes) {
        if !self.kinds.is_empty() || !self.is_kind_of(&other) {
            if self.kinds.is_empty() {
                self.kinds.push(self.clone());
            }
            let mut kinds = self.kinds.iter_mut();
            match kinds.find(|kind| kind.is_kind_of(&other)) {
                Some(kind) => kind.file = format!("{}, {}", kind.file, other.file),
                None => self.kinds.push(other.clone()),
            }
        }
        self.file = format!("{}, {}", self.file, other.file);
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
    /// Nanoseconds in one unit.
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

/// A text that is not a name in a fixed set of names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {what} `{found}`; allowed are {allowed}")]
pub struct UnknownName {
    /// Kind of thing that the text should name.
    pub what: &'static str,
    pub found: String,
    /// Allowed names, separated by commas.
    pub allowed: String,
}

/// A table of names that implements `Display` and `FromStr`.
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

/// Formats with a reader of their own, and their names. `Display` writes the first name.
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
    use headtime_sched::{Flags, Op};
    use headtime_units::Extent;

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
