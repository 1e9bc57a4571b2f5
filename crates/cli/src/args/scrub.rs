//! `headtime scrub`

use clap::{Args, ValueEnum};
use headtime_units::{Bytes, MorePercent, Nanos};
use std::path::PathBuf;
use std::str::FromStr;

use super::TextFormat;

/// Arguments of `headtime scrub`.
#[derive(Debug, Args)]
#[command(after_help = SCRUB_EXIT_CODES)]
pub struct Scrub {
    /// Control socket of the server (`listen.control`)
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// Name of the disk
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// Action; by default begin
    #[arg(value_enum, default_value_t, hide_default_value = true)]
    pub verb: ScrubVerb,
    /// Read only this part of the disk, such as 10GB-12GB
    ///
    /// FIRST is the first byte, and END the byte behind the last. The scrub reads whole blocks. With --copy, it copies exactly these bytes.
    #[arg(long, value_name = "FIRST-END")]
    pub range: Option<ByteRange>,
    /// Size of a block, a power of two up to 8MiB; by default 8KiB, more on disks above 655 GB
    ///
    /// The scrub reads whole blocks, and records its progress by blocks. The smallest block is a sector.
    #[arg(long, value_name = "SIZE")]
    pub block: Option<Bytes>,
    /// Read in idle time, after this time without requests of clients; off: never
    ///
    /// By default 50ms, or 2ms with --finish-within or --p99. These two options, and a disk without usable gaps, do not allow off.
    #[arg(long, value_name = "SPAN|off")]
    pub idle: Option<IdleAfter>,
    /// Keep a hash of each block in FILE, and report blocks that changed without a write through the server
    ///
    /// The server writes FILE, and compares with hashes of earlier scrubs. The disk's configuration must name a directory for the progress
    /// (scrub = "DIRECTORY"). Hashes from before the start of the server count only with sole_writer = true, which says that nothing but
    /// the server writes to the disk.
    #[arg(long, value_name = "FILE")]
    pub hash: Option<PathBuf>,
    /// Copy the disk, or its --range, to the new file FILE, with the contents of one moment
    ///
    /// FILE has the disk's contents at one moment near the end of the copy, with holes for zeroes. If clients write to a copied block, the
    /// block is copied again. With --range FIRST-END, FILE starts with the byte FIRST of the disk and has END - FIRST bytes, as with dd.
    /// The image of a partition can therefore be mounted.
    ///
    /// The server writes FILE, which must not lie on a file system of the disk itself. The disk's configuration must name a directory for
    /// the progress (scrub = "DIRECTORY"). A restarted server continues the copy with sole_writer = true in the configuration, which says
    /// that nothing but the server writes to the disk. Otherwise the copy starts over.
    #[arg(long, value_name = "FILE", conflicts_with = "hash")]
    pub copy: Option<PathBuf>,
    /// Finish the scrub within this time from now, such as 14d; off: no date
    ///
    /// If gaps and idle time are too short for the date, the scrub also reads at clients' cost. The status says if the date cannot be kept.
    /// Giving the same span again does not move the date. Another span counts from now, also for a running scrub.
    #[arg(long, value_name = "SPAN|off")]
    pub finish_within: Option<FinishWithin>,
    /// Bound on the increase of the clients' 99th percentile of response times, such as +5%; off: none
    ///
    /// The server estimates the percentile without the scrub. If the bound and a date cannot both be kept, the scrub keeps the bound. The
    /// bound can be changed while the scrub runs.
    #[arg(long, value_name = "+N%|off", allow_hyphen_values = true)]
    pub p99: Option<P99More>,
    /// Start the scrub and return, without waiting for its end
    #[arg(long)]
    pub no_wait: bool,
    /// Output format: table or JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Exit codes of `headtime scrub`.
const SCRUB_EXIT_CODES: &str = "\
Exit codes:
  0  done, and all sectors could be read; or the requested action succeeded
  1  sectors cannot be read or have changed, and are printed; or a date or bound was not kept, or
     cannot be; or the scrub was stopped or is held up; or the server refuses the request
  2  the command line is wrong, and the server was not contacted
  4  no server answers at SOCKET, or the connection fails";

/// Actions on a scrub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ScrubVerb {
    /// Start a scrub, or continue the unfinished scrub, and wait for the end
    #[default]
    Begin,
    /// Print the state and the progress
    Status,
    /// Suspend the scrub until `resume`, also across restarts of the server
    Pause,
    /// Continue a scrub that is paused or held up
    Resume,
    /// End the scrub and discard its progress
    Stop,
}

/// Range of bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// Byte behind the last.
    pub end: u64,
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteRange, String> {
        let ends = text.split_once('-');
        let (first, end) = ends.ok_or("allowed is FIRST-END, sizes as in 10GB-12GB")?;
        let size = |text: &str| match text {
            "0" => Ok(0),
            text => text.parse::<Bytes>().map(|bytes| bytes.0),
        };
        let range = ByteRange {
            first: size(first).map_err(|error| error.to_string())?,
            end: size(end).map_err(|error| error.to_string())?,
        };
        match range.first < range.end {
            true => Ok(range),
            false => Err("the first byte has to be before the end".to_owned()),
        }
    }
}

/// Time without requests after which idle time begins; `None` if idle time is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleAfter(pub Option<Nanos>);

impl FromStr for IdleAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<IdleAfter, String> {
        match text {
            "off" => Ok(IdleAfter(None)),
            text => match text.parse::<Nanos>() {
                Ok(span) => Ok(IdleAfter(Some(span))),
                Err(error) => Err(format!("{error}; or off")),
            },
        }
    }
}

/// Time until a scrub has to be done; `None` without a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishWithin(pub Option<Nanos>);

impl FromStr for FinishWithin {
    type Err = String;

    fn from_str(text: &str) -> Result<FinishWithin, String> {
        match text {
            "off" => Ok(FinishWithin(None)),
            text => match text.parse::<Nanos>() {
                Ok(Nanos::ZERO) => Err("allowed is more than no time; or off".to_owned()),
                Ok(span) => Ok(FinishWithin(Some(span))),
                Err(error) => Err(format!("{error}; or off")),
            },
        }
    }
}

/// Largest accepted increase of the 99th percentile of response times; `None` without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P99More(pub Option<MorePercent>);

impl FromStr for P99More {
    type Err = String;

    fn from_str(text: &str) -> Result<P99More, String> {
        match text {
            "off" => Ok(P99More(None)),
            text => match text.parse() {
                Ok(more) => Ok(P99More(Some(more))),
                Err(error) => Err(format!("{error}; or off")),
            },
        }
    }
}
