//! `headtime drive new`

use clap::Args;
use headtime_disk::SectorFormat;
use headtime_units::{Bytes, Nanos, ParseUnitError};
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `headtime drive new`.
///
/// Invariants of arguments that clap accepts:
///
/// - `from_datasheet` is true.
/// - `force` ⇒ `out.is_some()`.
/// - `capacity` or `sectors` is `None`; `heads` or `platters` is `None`.
#[derive(Debug, Args)]
#[command(after_long_help = NEW_HELP)]
pub struct New {
    /// Use the numbers of a datasheet, without any measurement (required)
    #[arg(long, required = true)]
    pub from_datasheet: bool,
    /// File for the profile; by default the standard output
    #[arg(short, long, value_name = "OUT.toml")]
    pub out: Option<PathBuf>,
    /// Replace OUT.toml if the file exists
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Short name of the profile; by default the file name OUT, or my-disk
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Vendor and model, as free text
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Capacity as sold, as in 500GB or 18TB (required, unless --sectors is given)
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Bytes>,
    /// Number of logical sectors, called LBA on labels
    #[arg(long, value_name = "N", conflicts_with = "capacity")]
    pub sectors: Option<u64>,
    /// Sector format: 512n, 512e or 4Kn; by default 512e above 1 TB, else 512n
    #[arg(long, value_name = "FORMAT")]
    pub sector: Option<SectorName>,
    /// Revolutions per minute, as in 7200 (required)
    #[arg(long, value_name = "N")]
    pub rpm: Option<f64>,
    /// Average seek time of reads, as in 8.5ms (required)
    #[arg(long, value_name = "TIME")]
    pub seek: Option<Nanos>,
    /// Average seek time of writes; by default 0.5 ms more than --seek
    #[arg(long, value_name = "TIME")]
    pub seek_write: Option<Nanos>,
    /// Seek time of reads to the next track; by default 0.12 of --seek
    #[arg(long, value_name = "TIME")]
    pub seek_track: Option<Nanos>,
    /// Seek time of writes to the next track; by default up to 0.15 ms more than for reads
    #[arg(long, value_name = "TIME")]
    pub seek_track_write: Option<Nanos>,
    /// Longest seek time of reads; by default 1.9 times --seek
    #[arg(long, value_name = "TIME")]
    pub seek_maximum: Option<Nanos>,
    /// Longest seek time of writes; by default exceeds the reads' by the same time as the average
    #[arg(long, value_name = "TIME")]
    pub seek_maximum_write: Option<Nanos>,
    /// Sustained transfer rate at the outer edge, as in 270MB/s (required)
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Sustained transfer rate at the inner edge; by default half of --rate
    #[arg(long, value_name = "RATE")]
    pub rate_inner: Option<Rate>,
    /// Size of the drive's buffer, as in 256MiB (required)
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// Number of surfaces with data; by default estimated from the capacity and the rates
    #[arg(long, value_name = "N")]
    pub heads: Option<u16>,
    /// Number of platters with two heads each, in place of --heads
    #[arg(long, value_name = "N", conflicts_with = "heads")]
    pub platters: Option<u16>,
    /// Commands in the drive at a time, 1 to 256; by default 32, or 1 for drives before 2005 (told by track length)
    #[arg(long, value_name = "N")]
    pub queue: Option<u32>,
    /// Rate of the interface, as in 600MB/s; by default the slowest standard rate of twice --rate or more
    #[arg(long, value_name = "RATE")]
    pub interface: Option<Rate>,
}

/// Rate in bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub u64);

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// Reads a size, with or without `/s`.
    fn from_str(text: &str) -> Result<Rate, ParseUnitError> {
        let text = text.trim();
        let Bytes(rate) = text.strip_suffix("/s").unwrap_or(text).parse()?;
        Ok(Rate(rate))
    }
}

/// Sector format by its name in datasheets.
#[derive(Clone, Copy, Debug)]
pub struct SectorName(pub SectorFormat);

impl FromStr for SectorName {
    type Err = String;

    fn from_str(text: &str) -> Result<SectorName, String> {
        let format = match text.to_ascii_lowercase().as_str() {
            "512n" => SectorFormat::Native512,
            "512e" => SectorFormat::Emulated512,
            "4kn" => SectorFormat::Native4K,
            _ => return Err("allowed is 512n, 512e or 4Kn".to_owned()),
        };
        Ok(SectorName(format))
    }
}

const NEW_HELP: &str = "\
Accuracy: the capacity is exact. The rates at both edges and the average seeks
differ from the datasheet by at most 1 %. docs/my-disk.md compares profiles
from datasheets with better profiles of the same drives.

Examples:
  headtime drive new --from-datasheet --capacity 1TB --rpm 7200 --seek 8ms --rate 95MB --cache 8MB";
