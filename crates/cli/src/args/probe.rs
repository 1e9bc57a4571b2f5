//! `headtime drive probe`

use super::trace::TextFormat;
use clap::Args;
use headtime_probe::QuickOptions;
use headtime_probe::extract::Extraction;
use headtime_units::{Bytes, Extent, Nanos, Sectors};
use std::path::PathBuf;
use std::str::FromStr;

/// Learn what a disk is by timing it
///
/// Reads a disk, sees when the answers come, and writes a profile of it: how fast it turns, the sectors of its tracks, zones,
/// skews, surfaces, seeks, overheads. Schedulers that go by position and the simulator work with
/// it as with the profiles that come with the program. With --quick it takes two minutes and tells the speed of rotation,
/// of sequential and of random reads, and of seeks by distance. What else uses the disk disturbs the measurement and
/// is slowed down by it. Nothing is written without --write-scratch.
#[derive(Debug, Args)]
#[command(after_long_help = PROBE_HELP)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["device", "emulate"])))]
pub struct Probe {
    /// The block device, or a file on a disk, opened for reading only, past the page cache; or the unix socket of an NBD server
    #[arg(value_name = "DEVICE")]
    pub device: Option<PathBuf>,
    /// Of an NBD server with several exports, which
    #[arg(
        long,
        value_name = "NAME",
        requires = "device",
        conflicts_with = "emulate"
    )]
    pub export: Option<String>,
    /// A simulated drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(long, value_name = "NAME|FILE")]
    pub emulate: Option<String>,
    /// Only what two minutes tell
    #[arg(long)]
    pub quick: bool,
    /// Write the profile that was learned to a file
    #[arg(short, long, value_name = "FILE.toml", conflicts_with = "quick")]
    pub out: Option<PathBuf>,
    /// How long it may take, from 10s on; by default until all is learned. With --quick 30s to 1h, by default 2m
    ///
    /// A whole probe keeps what it knows by then, and goes on with it if there is a --state. Its first part, how fast the disk turns, is in one
    /// piece: seconds, and up to 5m where the buffer is large. What is given less than that begins there again.
    #[arg(long, value_name = "DURATION")]
    pub time: Option<Nanos>,
    /// End if looking at the tracks would take longer than this, from 10m on; by default 3h
    ///
    /// It is said after a twelfth of that, by how much of the disk is explained until then.
    #[arg(long, value_name = "DURATION", conflicts_with = "quick", value_parser = patience)]
    pub patience: Option<Nanos>,
    /// Keep what is known in a file, every few seconds, and go on with it if it is there
    ///
    /// An empty file is as none: what was killed before anything was known leaves one.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub state: Option<PathBuf>,
    /// Time writes on these sectors; WHAT IS THERE IS LOST. As FIRST-END: numbers of sectors, or sizes as in 10GB-12GB
    ///
    /// Zeroes go there and nowhere else, and the device is opened for writing. A write cache that can be switched is off meanwhile; to
    /// switch it on again even if this is killed there must be a --state, but for a simulated drive. The least is 256 MiB, or an eighth of a disk of less than 2 GiB.
    #[arg(long, value_name = "RANGE", conflicts_with = "quick")]
    pub write_scratch: Option<ScratchRange>,
    /// Read all sectors in the end, to find those whose data is elsewhere (remapped, grown defects)
    ///
    /// Takes a fifth longer than reading the whole disk does, and up to twice as long behind a bus that is slower than the medium: 10
    /// minutes to an hour for 9 GB, 2 to 3 hours for 500 GB, more than a day for 20 TB. How long is said before it begins. It may be stopped, and gone on with if there is a --state; a
    /// disk that a state has learned already is read so, too.
    #[arg(long, conflicts_with = "quick")]
    pub remaps: bool,
    /// The seed of the places, of the pauses and of a simulated drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
    /// What another program takes, in place of the page of --quick
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "format",
        requires = "quick"
    )]
    pub emit: Option<Emit>,
    /// Draw a picture: tracks and skews by place, seeks by distance; with --quick bandwidth by place and service time by distance
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Where a simulated drive keeps its switches while it is off, as disks do
    #[arg(
        long,
        value_name = "FILE",
        requires = "emulate",
        conflicts_with = "quick",
        hide = true
    )]
    pub emulate_switches: Option<PathBuf>,
}

/// What other programs take of what was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// osd_mclock_max_capacity_iops_hdd and osd_mclock_max_sequential_bandwidth_hdd, for ceph.conf
    Ceph,
    /// A line for /sys/fs/cgroup/io.cost.model
    Iocost,
    /// The service time by distance, as `drive curve --out` writes it
    Curve,
}

impl Probe {
    /// How long --quick may take.
    ///
    /// # Errors
    ///
    /// If that is out of range.
    pub fn quick_time(&self) -> Result<Nanos, String> {
        let time = self.time.unwrap_or(QuickOptions::default().time);
        let (least, most) = (QuickOptions::TIME_MIN, QuickOptions::TIME_MAX);
        match (least..=most).contains(&time) {
            true => Ok(time),
            false => Err("--time: with --quick allowed is 30s to 1h".to_owned()),
        }
    }

    /// How long a whole probe may take; `None` if that is all the same.
    ///
    /// # Errors
    ///
    /// If that is too short to learn anything.
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

/// Sectors that may be written, as they were asked for.
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
    /// The sectors of a disk.
    ///
    /// # Errors
    ///
    /// If they are too few to learn anything by, or the disk does not have them all.
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
What cannot be learned is said as soon as it shows, with what is known by then,
and ends with exit code 1: what does not turn (an SSD, memory), a disk that
something else uses, reads that stall, tracks whose rule takes longer than
--patience to learn, a failure; also a profile by which other
reads do not come in time. Ended by --time or a signal before all is learned:
exit code 5.

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
