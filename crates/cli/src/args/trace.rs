//! `headtime trace`

use super::{Gates, OutputOptions, Schedulers, gates_of, names_help, schedulers};
use clap::{Args, Subcommand, ValueEnum};
use headtime_stack::Firmware;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{ArrivalEvent, Fit, Format, Speed, TimeUnit};
use std::path::PathBuf;

/// Traces: look at, convert, replay, record
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Show a summary of a trace
    Info(Info),
    /// Write a trace in another format
    ///
    /// The number of values that the other format cannot hold is printed on standard error.
    Convert(Convert),
    /// Replay a trace on a modelled drive under each of the schedulers
    ///
    /// Sends the requests of all chosen devices to one drive.
    Replay(Box<ReplayArgs>),
    /// Record the requests of a block device with their processes
    ///
    /// Uses the kernel's tracing (tracefs). Needs root, but neither a module nor blktrace. Records requests as they reach the block layer,
    /// before merging and scheduling, each with its thread and its completion. Reads from the page cache do not reach the block layer.
    /// Delayed writes count for the thread that writes the cached data back.
    ///
    /// DEVICE is a disk, a loop device, a device-mapper node or a partition. For a partition the trace has the disk's requests within the
    /// partition, with addresses of the disk. The recording ends after the duration, at Ctrl-C or SIGTERM, when the device goes away, or
    /// after 8 million requests.
    Record(Record),
}

/// Options for reading a trace.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Reading the trace")]
pub struct ReadingOptions {
    /// Format of the trace; own formats are recognised if it is not given
    #[arg(long, value_name = "FORMAT", help = formats_help())]
    pub trace_format: Option<Format>,
    /// Unit of the times of a DiskSim trace: s, ms, us, 100ns or ns; guessed if not given
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Event of a blkparse, ftrace or perf trace that counts as a request's arrival: queue or issue
    #[arg(long, value_name = "EVENT")]
    pub arrival_event: Option<ArrivalEvent>,
    /// Columns of a CSV trace, as in time=1:ms,op=3,address=4:bytes,size=5:bytes
    ///
    /// Parts are what=column or what=column:unit, separated by commas. A column is given by its
    /// heading, by its number from 1, or by its number from the end, -1 for the last. Parts:
    ///   time, completion            s, ms, us, 100ns, ns, date or clock; two are added: 1:s+2:ns
    ///   response                    s, ms, us, 100ns or ns, beside time or completion
    ///   op                          words, letters or SCSI codes; read1 or read0 for digits;
    ///                               optional: lines without it are passed over
    ///   action                      Q, I, D, R or C: lines are events, joined to requests
    ///   address, size               bytes, sectors (512 bytes), or a size such as 4KiB
    ///   device                      a number; name for any text; 1+2 for major and minor
    ///   process                     a number
    ///   process_name                text; 2..-7 for a name with blanks
    ///   flags                       the sum of 1 (FUA), 2 (preflush) and 4 (sync)
    ///   separator                   comma, semicolon, tab, bar or blank
    /// op, address and size are needed.
    #[arg(verbatim_doc_comment, long, value_name = "COLUMNS")]
    pub columns: Option<String>,
    /// Skip malformed lines, count these and show the first ten; by default such a line is an error
    #[arg(long)]
    pub lenient: bool,
    /// Use only requests that arrive at least this long after the first, such as 10s
    #[arg(long, value_name = "TIME")]
    pub from: Option<Nanos>,
    /// Use only requests of a period of this length, such as 60s
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub span: Option<Nanos>,
    /// Use at most N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub first: Option<u64>,
}

fn formats_help() -> String {
    let names: Vec<&str> = Format::names().collect();
    format!(
        "Format of the trace, recognised if not given: {}",
        names.join(", ")
    )
}

/// Arguments of `headtime trace info`.
#[derive(Debug, Args)]
pub struct Info {
    /// The trace; may be compressed with gzip or zstd; - is standard input, several are one trace
    #[arg(value_name = "FILE", required = true)]
    pub trace: Vec<PathBuf>,
    /// Output format: table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
    /// Options for reading the trace.
    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// Arguments of `headtime trace record`.
#[derive(Debug, Args)]
#[command(after_long_help = RECORD_EXAMPLES)]
pub struct Record {
    /// Block device, such as /dev/sda, /dev/sda1 or /dev/loop0
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    /// CSV file to write: FILE.csv, or FILE.csv.gz for compression with gzip
    #[arg(short, long = "out", value_name = "FILE")]
    pub out: PathBuf,
    /// Duration of the recording, such as 60s; by default until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub span: Option<Nanos>,
    /// Size of the kernel's buffer for each processor, 16KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = buffer)]
    pub buffer: Bytes,
}

const RECORD_EXAMPLES: &str = "Examples:
  headtime trace record /dev/sda --for 60s -o disk.csv.gz
  headtime trace replay disk.csv.gz --profile exos-x18 --closed-per-process -s noop,sstf";

fn span(text: &str) -> Result<Nanos, String> {
    let span: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if span.is_zero() {
        return Err("it must be longer than nothing".to_owned());
    }
    Ok(span)
}

fn buffer(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if (16 << 10..=1 << 30).contains(&bytes.0) {
        Ok(bytes)
    } else {
        Err("allowed are 16KiB to 1GiB".to_owned())
    }
}

/// A table, or JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// A table for people
    #[default]
    Table,
    /// JSON
    Json,
}

/// Arguments of `headtime trace convert`.
#[derive(Debug, Args)]
#[command(override_usage = "headtime trace convert [OPTIONS] <IN>... <OUT>")]
pub struct Convert {
    /// The trace, and last the file to write, which is compressed with gzip if its name ends in .gz
    ///
    /// The trace may be compressed with gzip or zstd. Several files are one trace. - is standard input, or standard output as the last.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Format to write; by default by the name of OUT: .csv, or .trace, .disksim, .ascii for disksim
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<To>,
    /// Options for reading the trace.
    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// DiskSim's columns: arrival in ms, device, block, blocks, flags
    Disksim,
    /// Columns with headings; loses nothing
    Csv,
}

/// Arguments of `headtime trace replay`.
///
/// Invariants of arguments that clap accepts:
///
/// - `trace` and `profile` are not empty.
/// - At most one of `open`, `closed` and `closed_per_process` is given.
/// - `speed.is_some()` ⇒ `closed.is_none()` and `!closed_per_process`.
/// - `1 ≤ closed ≤ 65535`; each of `depth` is in `1..=256`; `seed < 2^63`.
#[derive(Debug, Args)]
#[command(after_long_help = replay_help(), allow_negative_numbers = true)]
pub struct ReplayArgs {
    /// The trace; may be compressed with gzip or zstd; - is standard input, several are one trace
    #[arg(value_name = "TRACE", required = true)]
    pub trace: Vec<PathBuf>,
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(
        short,
        long,
        value_name = "NAME|FILE",
        required = true,
        value_delimiter = ','
    )]
    pub profile: Vec<String>,
    /// Schedulers to compare
    #[arg(short, long, value_name = "LIST", value_parser = schedulers, default_value = "noop")]
    pub scheduler: Vec<Schedulers>,
    /// Gates to compare
    #[arg(long, value_name = "LIST", value_parser = gates_of)]
    pub gate: Vec<Gates>,
    /// Requests in the drive at once, 1 to 256; several are compared
    #[arg(short, long, value_name = "D", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: Vec<u32>,
    /// Replay this device of the trace only; can be repeated
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Keep the recorded arrivals (this is the default)
    #[arg(long, group = "pace")]
    pub open: bool,
    /// Speed of an open replay, 0.0001 to 10000: 2 is twice as fast, 0.5 half as fast
    #[arg(long, value_name = "F", conflicts_with_all = ["closed", "closed_per_process"])]
    pub speed: Option<Speed>,
    /// Ignore arrivals: keep N requests outstanding (1 to 65535), in the order of the trace
    #[arg(long, value_name = "N", group = "pace", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub closed: Option<u32>,
    /// Let each process send its next request a recorded think time after the previous completion
    ///
    /// The think time is an arrival minus the previous completion of the same process. The trace needs processes and
    /// completions.
    #[arg(long, group = "pace")]
    pub closed_per_process: bool,
    /// Treatment of addresses past the end of the drive: error, or wrap
    ///
    /// With wrap, addresses count modulo the capacity. A request that would cross the end is moved back until it fits.
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub fit: Fit,
    /// Order in which the drive serves its commands: profile, fifo or sptf; several are compared
    #[arg(
        long,
        value_name = "ORDER",
        value_delimiter = ',',
        default_value = "profile"
    )]
    pub firmware: Vec<Firmware>,
    /// Set any other key of the scenario, as in engine.merge=false or run.warm_up=10s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the drive's noise; for several seeds, --set run.repeats=5
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Write events and decisions to a file; there must be only one scheduler
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print the scenario of these options, and run nothing
    #[arg(long)]
    pub print_scenario: bool,
    /// Options for reading the trace.
    #[command(flatten)]
    pub reading: ReadingOptions,
    /// Options for the output of results.
    #[command(flatten)]
    pub output: OutputOptions,
}

fn replay_help() -> String {
    format!(
        "Examples:\n\
         \x20 headtime generate examples .\n\
         \x20 headtime trace replay database.csv.gz --profile exos-x18 --scheduler noop,deadline,sstf\n\
         \x20 headtime trace replay database.csv.gz --profile atlas10k --closed 32 --fit wrap --device 0\n\
         \x20 headtime trace replay database.csv.gz --profile exos-x18 --open --speed 0.5 --plot half.svg\n\n{}",
        names_help()
    )
}
