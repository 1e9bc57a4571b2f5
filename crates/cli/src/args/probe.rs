//! `headtime drive probe`

use super::trace::TextFormat;
use clap::Args;
use headtime_probe::QuickOptions;
use headtime_probe::extract::Extraction;
use headtime_units::{Bytes, Extent, Nanos, Sectors};
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `headtime drive probe`.
///
/// Invariants of arguments that clap accepts:
///
/// - `device.is_some()` ⇔ `emulate.is_none()`.
/// - `export.is_some()` ⇒ `device.is_some()`; `emulate_switches.is_some()` ⇒ `emulate.is_some()`.
/// - `quick` ⇒ `out`, `patience`, `state`, `write_scratch` and `emulate_switches` are `None`, and `!remaps`.
/// - `emit.is_some()` ⇒ `quick`, and `--format` is not given.
/// - `seed < 2^63`.
#[derive(Debug, Args)]
#[command(after_long_help = PROBE_HELP)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["device", "emulate"])))]
pub struct Probe {
    /// Block device, file on a disk, or unix socket of an NBD server
    ///
    /// Devices and files are read past the page cache. They are opened for reading only, unless --write-scratch is given.
    #[arg(value_name = "DEVICE")]
    pub device: Option<PathBuf>,
    /// Name of the NBD server's export; by default the server's default export
    #[arg(
        long,
        value_name = "NAME",
        requires = "device",
        conflicts_with = "emulate"
    )]
    pub export: Option<String>,
    /// Simulated drive to probe: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(long, value_name = "NAME|FILE")]
    pub emulate: Option<String>,
    /// Measure for two minutes only: rotation, bandwidth, random reads, service time by distance
    #[arg(long)]
    pub quick: bool,
    /// Write the learned profile to a file
    #[arg(short, long, value_name = "FILE.toml", conflicts_with = "quick")]
    pub out: Option<PathBuf>,
    /// Time limit, 10s or more; by default none. With --quick 30s to 1h, by default 2m
    ///
    /// At the limit, a whole probe shows its results so far. With --state, the same command continues the probe later. The first part,
    /// which measures the rotation, cannot be divided: it takes seconds, or up to 5m with a large buffer. If the limit is shorter, this
    /// part starts again each time.
    #[arg(long, value_name = "DURATION")]
    pub time: Option<Nanos>,
    /// Give up if learning all tracks would take longer than this, 10m or more; by default 3h
    ///
    /// After a twelfth of this time the probe estimates the total time, from the share of the disk that is learned by then.
    #[arg(long, value_name = "DURATION", conflicts_with = "quick", value_parser = patience)]
    pub patience: Option<Nanos>,
    /// Save the progress in a file every few seconds, and continue from this file if it exists
    ///
    /// The file is for one disk, one --seed, one range of --write-scratch and one version of headtime. An empty file counts as missing: a
    /// probe that is killed before its first result leaves an empty file.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub state: Option<PathBuf>,
    /// Time writes on the sectors FIRST-END, as in 10GB-12GB; THEIR DATA ARE LOST
    ///
    /// FIRST is the first sector, and END the sector behind the last. Both are numbers of sectors, or sizes with a unit. The range has at
    /// least 256 MiB, or an eighth of a disk of less than 2 GiB. Zeroes are written to this range and nowhere else. Without this option the
    /// profile has the times of reads for writes.
    ///
    /// If the drive's write cache can be switched, the cache is off meanwhile. For a real disk --state is required, so that the cache can
    /// be switched on again even after a kill.
    #[arg(long, value_name = "RANGE", conflicts_with = "quick")]
    pub write_scratch: Option<ScratchRange>,
    /// Read all sectors at the end, to find remapped sectors (grown defects)
    ///
    /// Takes 10 minutes to an hour for 9 GB, 2 to 3 hours for 500 GB, and more than a day for 20 TB. The command announces the time before
    /// this part starts. With --state this part can be interrupted and continued, and added to a finished probe.
    #[arg(long, conflicts_with = "quick")]
    pub remaps: bool,
    /// Seed of the random places, of the random pauses and of a simulated drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Output format: a page of text, or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
    /// Print settings for another program in place of the page of --quick
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "format",
        requires = "quick"
    )]
    pub emit: Option<Emit>,
    /// Draw a picture of the results
    ///
    /// A whole probe shows tracks and skews by place, and seeks by distance. --quick shows bandwidth by place and service time by distance.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// File that keeps the switches of a simulated drive while the drive is off
    #[arg(
        long,
        value_name = "FILE",
        requires = "emulate",
        conflicts_with = "quick",
        hide = true
    )]
    pub emulate_switches: Option<PathBuf>,
}

/// Settings for other programs that a quick probe can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// Keys of ceph.conf: osd_mclock_max_capacity_iops_hdd and osd_mclock_max_sequential_bandwidth_hdd
    Ceph,
    /// Line for /sys/fs/cgroup/io.cost.model
    Iocost,
    /// Service time by distance, in the format of `drive curve --out`
    Curve,
}

impl Probe {
    /// Time limit of a quick probe.
    ///
    /// # Errors
    ///
    /// If the given time is out of range.
    pub fn quick_time(&self) -> Result<Nanos, String> {
        let time = self.time.unwrap_or(QuickOptions::default().time);
        let (least, most) = (QuickOptions::TIME_MIN, QuickOptions::TIME_MAX);
        match (least..=most).contains(&time) {
            true => Ok(time),
            false => Err("--time: with --quick allowed is 30s to 1h".to_owned()),
        }
    }

    /// Time limit of a whole probe; `None` without a limit.
    ///
    /// # Errors
    ///
    /// If the given time is too short to learn anything.
    pub fn whole_time(&self) -> Result<Option<Nanos>, String> {
        match self.time {
            Some(time) if time < Nanos::from_secs(10) => {
                Err("--time: allowed is 10s and more".to_owned())
            }
            time => Ok(time),
        }
    }
}

fn patience(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(time) if time < Nanos::from_secs(600) => Err("allowed is 10m and more".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeEnd {
    Sector(u64),
    Bytes(u64),
}

impl FromStr for RangeEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<RangeEnd, String> {
        let text = text.trim();
        if text.bytes().all(|sign| sign.is_ascii_digit()) {
            let number = text.parse();
            return number
                .map(RangeEnd::Sector)
                .map_err(|_| format!("`{text}` is no number of a sector"));
        }
        let size = text.parse::<Bytes>();
        size.map(|size| RangeEnd::Bytes(size.0))
            .map_err(|error| error.to_string())
    }
}

/// Range of sectors that may be overwritten, in the units of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchRange {
    first: RangeEnd,
    end: RangeEnd,
}

impl FromStr for ScratchRange {
    type Err = String;

    fn from_str(text: &str) -> Result<ScratchRange, String> {
        let (first, end) = text
            .split_once('-')
            .ok_or("allowed is FIRST-END: numbers of sectors, or sizes as in 10GB-12GB")?;
        Ok(ScratchRange {
            first: first.parse()?,
            end: end.parse()?,
        })
    }
}

impl ScratchRange {
    /// The range in sectors of a disk with this capacity.
    ///
    /// # Errors
    ///
    /// If the range is too short to time writes, exceeds the disk, or has an end within a sector.
    pub fn on(&self, capacity: Sectors, sector_bytes: u32) -> Result<Extent, String> {
        let sector = |end: RangeEnd| match end {
            RangeEnd::Sector(sector) => Ok(sector),
            RangeEnd::Bytes(bytes) if bytes.is_multiple_of(u64::from(sector_bytes)) => {
                Ok(bytes / u64::from(sector_bytes))
            }
            RangeEnd::Bytes(bytes) => Err(format!(
                "--write-scratch: {bytes} bytes are not whole sectors of {sector_bytes}"
            )),
        };
        let (first, end) = (sector(self.first)?, sector(self.end)?);
        if first >= end {
            return Err(format!(
                "--write-scratch: from sector {first} up to {end} there is none"
            ));
        }
        if end > capacity.get() {
            return Err(format!(
                "--write-scratch: ends at sector {end}; the disk ends at {capacity}"
            ));
        }
        let least = Extraction::scratch_min(capacity, sector_bytes).get();
        if end - first < least {
            return Err(format!(
                "--write-scratch: {} sectors are too few to learn by; of this disk {least} or more are needed, which are {}",
                end - first,
                Bytes(least * u64::from(sector_bytes))
            ));
        }
        Ok(Extent::at(first, end - first))
    }
}

const PROBE_HELP: &str = "\
If a disk cannot be learned, the command stops as soon as this shows, prints the
reason and the results so far, and ends with exit code 1. Reasons are: nothing
turns (an SSD, memory), something else uses the disk, reads stall or fail, or
learning the tracks would take longer than --patience. Exit code 1 also means
that further reads contradict the learned profile. If --time or a signal ends a
whole probe early, the exit code is 5.

Examples:
  headtime drive probe --emulate cheetah9lp --out learned.toml --plot disk.svg
  headtime drive probe --emulate cheetah9lp --state mine.probe --time 20m
  headtime drive probe --emulate cheetah18lp --remaps --out learned.toml
  sudo headtime drive probe /dev/sdb --state sdb.probe --out sdb.toml
  sudo headtime drive probe /dev/sdb --state sdb.probe --write-scratch 10GB-12GB
  headtime drive probe --emulate exos-x18 --quick --plot disk.svg
  sudo headtime drive probe /dev/sdb --quick
  sudo headtime drive probe /dev/sdb --quick --emit ceph
  sudo headtime drive probe /dev/sdb --quick --emit iocost | sudo tee /sys/fs/cgroup/io.cost.model
  sudo headtime drive probe /dev/sdb --quick --emit curve > mine.curve.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_range_is_of_sectors_or_sizes_and_within_the_disk() {
        let on = |text: &str, sector_bytes| -> Result<(u64, u64), String> {
            let range = text.parse::<ScratchRange>()?;
            let extent = range.on(Sectors::new(1_000_000), sector_bytes)?;
            Ok((extent.start.get(), extent.len.get()))
        };
        assert_eq!(on("100-200000", 512), Ok((100, 199_900)));
        assert_eq!(on("0-1000000", 512), Ok((0, 1_000_000)));
        assert_eq!(on("1MiB-65MiB", 512), Ok((2048, 131_072)));
        assert_eq!(on("5-125005", 4096), Ok((5, 125_000)));
        assert_eq!(on("100MiB-1000000", 4096), Ok((25_600, 974_400)));
        for (text, said) in [
            ("5", "FIRST-END"),
            ("", "FIRST-END"),
            ("a-b", "no number"),
            ("-5", "no number"),
            ("5-", "no number"),
            ("7-7", "there is none"),
            ("9-7", "there is none"),
            ("0-1000001", "the disk ends at 1000000"),
            ("0B-1kB", "not whole sectors"),
            ("0-1", "1 sectors are too few"),
            ("9-125008", "of this disk 125000 or more are needed"),
            ("0-99999999999999999999999", "no number"),
        ] {
            let error = on(text, 512).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
