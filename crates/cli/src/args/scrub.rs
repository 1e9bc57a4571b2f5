//! `headtime scrub`

use clap::{Args, ValueEnum};
use headtime_units::{Bytes, MorePercent, Nanos};
use std::path::PathBuf;
use std::str::FromStr;

use super::TextFormat;

/// Read a served disk to its end beside its clients, and name what cannot be read
///
/// The server reads while the head would wait for a client's sector, if it believes in a drive and finds that the disk turns like
/// it, and while nobody asks for anything. docs/scrub.md explains it. The command waits for the end; if it is ended before, the
/// scrub goes on. The same command again shows a scrub that is under way, goes on with one that was paused, and begins the next one
/// when the last is done.
#[derive(Debug, Args)]
#[command(after_help = SCRUB_EXIT_CODES)]
pub struct Scrub {
    /// The server's listen.control socket
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// The disk's name
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// What to do
    #[arg(value_enum, default_value_t, hide_default_value = true)]
    pub verb: ScrubVerb,
    /// Read this part alone, such as 10GB-12GB; whole blocks are read, and with --copy exactly these bytes are copied
    #[arg(long, value_name = "FIRST-END")]
    pub range: Option<ByteRange>,
    /// Read in blocks of this size, a power of two; by default 8KiB, and more on disks of more than 655 GB
    #[arg(long, value_name = "SIZE")]
    pub block: Option<Bytes>,
    /// Read also when nobody has asked for anything for so long, 50ms by default; off: never
    #[arg(long, value_name = "SPAN|off")]
    pub idle: Option<IdleAfter>,
    /// Keep a hash of each block in FILE, and name the blocks that have changed since without a write through the server
    ///
    /// The server writes FILE, and has to keep its progress (scrub = "DIRECTORY"). What was hashed before the server was started counts
    /// if its configuration says that nobody else writes to the disk (sole_writer = true).
    #[arg(long, value_name = "FILE")]
    pub hash: Option<PathBuf>,
    /// Copy the disk, or its --range, to FILE, a new one, with holes for zeroes: it is the disk at one moment, whatever is written meanwhile
    ///
    /// With --range FIRST-END, FILE begins with the byte FIRST of the disk and has END - FIRST bytes, as with dd: that of a partition can be mounted.
    /// That moment is near the end. A block that is written to after it was copied is copied again. The server writes FILE, and has to keep its
    /// progress (scrub = "DIRECTORY"); FILE cannot be on a file system of the disk itself. A server that is started again goes on if its
    /// configuration says that nobody else writes to the disk (sole_writer = true), and else begins anew.
    #[arg(long, value_name = "FILE", conflicts_with = "hash")]
    pub copy: Option<PathBuf>,
    /// Have it done so long after this was first said, such as 14d; off: by no date
    ///
    /// The scrub reads at the cost of clients what gaps and idle time do not bring, and says if the date cannot hold. The same span again
    /// leaves the date where it is. Another span counts from now, also for a scrub that is under way.
    #[arg(long, value_name = "SPAN|off")]
    pub finish_within: Option<FinishWithin>,
    /// Let the clients' 99th percentile be this much longer than without the scrub, at most, such as +5%; off: any
    ///
    /// The server estimates the percentile without the scrub. If the bound and a date cannot both hold, then the bound does. The bound may be
    /// changed while the scrub is under way.
    #[arg(long, value_name = "+N%|off", allow_hyphen_values = true)]
    pub p99: Option<P99More>,
    /// Do not wait for the end
    #[arg(long)]
    pub no_wait: bool,
    /// The format of what is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Those of them that scrub ends with.
const SCRUB_EXIT_CODES: &str = "\
Exit codes:
  0  done, and everything could be read; or what was asked for was done
  1  sectors cannot be read or have changed, which are printed; or what was promised was not kept,
     or cannot be; or the scrub was stopped or is held up; or the server refuses
  2  the command line is wrong, and nobody was asked
  4  nobody answers at SOCKET, or it cannot be connected to";

/// What a scrub is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ScrubVerb {
    /// Begin one, or go on with it, and wait for its end
    #[default]
    Begin,
    /// Print how far it is
    Status,
    /// Let it rest until it is resumed, also over restarts of the server
    Pause,
    /// Let it go on
    Resume,
    /// Give it up
    Stop,
}

/// Bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first one.
    pub first: u64,
    /// The one behind the last.
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

/// When idle time begins, if it is used.
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

/// After how long a scrub is to be done, if by any date.
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

/// How much longer requests may take, if not any time.
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
