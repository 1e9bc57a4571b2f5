//! `headtime drive new`

use clap::Args;
use headtime_disk::SectorFormat;
use headtime_units::{Bytes, Nanos, ParseUnitError};
use std::path::PathBuf;
use std::str::FromStr;

/// Make a profile of a disk from its datasheet
///
/// Takes what a datasheet says, and writes a profile to use wherever a drive is named. What must be
/// given and is not is asked for, if the standard input is a terminal. What the sheet does not say
/// follows by rules, or is what drives of the class have: the profile says of each key which.
#[derive(Debug, Args)]
#[command(after_long_help = NEW_HELP)]
pub struct New {
    /// From what a datasheet says; nothing is measured
    #[arg(long, required = true)]
    pub from_datasheet: bool,
    /// The profile to write; by default the standard output
    #[arg(short, long, value_name = "OUT.toml")]
    pub out: Option<PathBuf>,
    /// Replace OUT.toml if it is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Short name of the profile; by default that of OUT.toml, or my-disk
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Vendor and model, for people
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Capacity as it is sold, as in 500GB or 18TB (must be given, or --sectors)
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Bytes>,
    /// Logical sectors, which labels call LBA
    #[arg(long, value_name = "N", conflicts_with = "capacity")]
    pub sectors: Option<u64>,
    /// Sectors: 512n, 512e or 4Kn; by default 512e above 1 TB, else 512n
    #[arg(long, value_name = "FORMAT")]
    pub sector: Option<SectorName>,
    /// Revolutions per minute, as in 7200 (must be given)
    #[arg(long, value_name = "N")]
    pub rpm: Option<f64>,
    /// Average seek, reading, as in 8.5ms (must be given)
    #[arg(long, value_name = "TIME")]
    pub seek: Option<Nanos>,
    /// Average seek, writing; by default 0.5 ms longer
    #[arg(long, value_name = "TIME")]
    pub seek_write: Option<Nanos>,
    /// Seek to the next track, reading; by default 0.12 of the average
    #[arg(long, value_name = "TIME")]
    pub seek_track: Option<Nanos>,
    /// Seek to the next track, writing; by default 0.15 ms longer
    #[arg(long, value_name = "TIME")]
    pub seek_track_write: Option<Nanos>,
    /// Maximum seek, reading; by default 1.9 times the average
    #[arg(long, value_name = "TIME")]
    pub seek_maximum: Option<Nanos>,
    /// Maximum seek, writing; by default as much longer as the average
    #[arg(long, value_name = "TIME")]
    pub seek_maximum_write: Option<Nanos>,
    /// Sustained transfer rate at the outer edge, as in 270MB/s (must be given)
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// The same at the inner edge; by default half of it
    #[arg(long, value_name = "RATE")]
    pub rate_inner: Option<Rate>,
    /// Size of the buffer, as in 256MiB (must be given)
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// Surfaces with data; by default from the capacity and the rates
    #[arg(long, value_name = "N")]
    pub heads: Option<u16>,
    /// Platters, with two heads each
    #[arg(long, value_name = "N", conflicts_with = "heads")]
    pub platters: Option<u16>,
    /// Commands that the drive takes at a time; by default 32, or 1 of drives older than 2005
    #[arg(long, value_name = "N")]
    pub queue: Option<u32>,
    /// Rate of the interface, as in 600MB/s; by default the slowest that is twice as fast as the disk
    #[arg(long, value_name = "RATE")]
    pub interface: Option<Rate>,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub u64);

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// A size, with `/s` or without.
    fn from_str(text: &str) -> Result<Rate, ParseUnitError> {
        let text = text.trim();
        let Bytes(rate) = text.strip_suffix("/s").unwrap_or(text).parse()?;
        Ok(Rate(rate))
    }
}

/// A format of sectors, as vendors call it.
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
How near it comes: the capacity is exact; the rates at both ends and the
average seeks are those of the sheet to 1 %. docs/my-disk.md compares
profiles made so with others of the same drives.

Examples:
  headtime drive new --from-datasheet --capacity 1TB --rpm 7200 --seek 8ms --rate 95MB --cache 8MB";
