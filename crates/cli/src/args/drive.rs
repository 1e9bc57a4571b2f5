//! `headtime drive`

use super::Format;
use super::new::New;
use super::probe::Probe;
use super::trace::TextFormat;
use clap::{Args, Subcommand};
use headtime_units::Bytes;
use std::path::PathBuf;

/// Drive profiles: list, show, make, import, validate, learn
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// List the drives that come with the program
    List(List),
    /// Show the properties of a drive, and their sources
    Show(Show),
    /// Make a profile of a disk from its datasheet
    ///
    /// Takes the numbers of a datasheet and writes a profile, which works wherever a drive is named. If a required number is missing and
    /// the standard input is a terminal, the command asks for the numbers that are not given. Numbers that the datasheet lacks follow from
    /// rules, or are assumed from drives of the same class. The profile names the source of each value.
    New(Box<New>),
    /// Make a profile from DiskSim's parameter files
    ///
    /// Reads a .parv file, and the files in the same directory that the .parv file names (.diskspecs, .model, .seek).
    Import(Import),
    /// Compare a drive's model with response times measured on the real drive
    ///
    /// Sends the requests of a measured trace to the model, one at a time. Each line of the trace has one request, in six columns. The
    /// columns are R or W, the buffer's action (ignored), first block, number of blocks, response time, and pause from the completion to
    /// the next request. Blocks have 512 bytes, and times are in microseconds.
    ///
    /// The demerit is the root mean square distance of the measured and the modelled distribution of response times (Ruemmler and Wilkes
    /// 1994).
    Validate(Validate),
    /// Compare a disk with a profile: the same reads on both
    ///
    /// Runs twelve jobs of reads on the disk and on the profile's model, and prints one scorecard. The jobs are random, sequential, backward
    /// and strided reads of several sizes, alone and with several commands in the drive. If a job differs, the card names the keys of the
    /// profile on which the job depends.
    ///
    /// Check a disk that nothing else uses: other I/O disturbs the measurement and becomes slow. Nothing is written. 200 reads a job take
    /// about half a minute.
    Check(Check),
    /// Learn the service time of a read by the distance from the previous read
    ///
    /// Sends pairs of 4 KiB reads to the modelled drive. The first read, anywhere on the disk, brings the head to a known place. The second
    /// read starts a chosen distance behind the first and is timed. A smooth curve that never falls goes through the mean times. Use the
    /// curve for schedulers that compare waiting for a near request with serving a far request (stream, anticipatory, clairvoyant).
    Curve(Curve),
    /// Learn the profile of a disk by timing reads
    ///
    /// Times reads of a disk and writes a profile: rotation, sectors of each track, zones, skews, surfaces, seeks, overheads, buffer and
    /// queue. Simulations, and schedulers that predict positions, use this profile in the same way as a built-in profile.
    ///
    /// --quick measures for two minutes, and only rotation, bandwidth, random reads and service time by distance.
    ///
    /// Probe a disk that nothing else uses: other I/O disturbs the measurement and becomes slow. Without --write-scratch nothing is
    /// written. docs/probe.md explains the results.
    Probe(Box<Probe>),
}

/// Arguments of `headtime drive list`.
#[derive(Debug, Args)]
pub struct List {
    /// Output format: table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Arguments of `headtime drive show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(value_name = "NAME|FILE")]
    pub drive: String,
    /// Name of the drive in a DiskSim file with several drives
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Output format: table, JSON, or the whole profile as TOML
    #[arg(long, value_enum, default_value_t = ShowFormat::Table, value_name = "FORMAT")]
    pub format: ShowFormat,
}

/// Output formats for a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ShowFormat {
    /// A summary for people
    #[default]
    Table,
    /// The summary as JSON
    Json,
    /// The whole profile, as a file to change and use
    Toml,
}

/// Arguments of `headtime drive import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Parameter file of DiskSim
    #[arg(value_name = "NAME.parv")]
    pub parv: PathBuf,
    /// Name of the drive in a DiskSim file with several drives
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Size of a block in the parameter file, which becomes the sector size: 256B, 512B or 4KiB
    #[arg(long, value_name = "SIZE", default_value = "512B")]
    pub sector: Bytes,
    /// File for the profile; by default the standard output
    #[arg(short, long, value_name = "OUT.toml")]
    pub out: Option<PathBuf>,
}

/// Arguments of `headtime drive validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(short, long, value_name = "NAME|FILE")]
    pub profile: String,
    /// Name of the drive in a DiskSim file with several drives
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Trace of the measured requests
    #[arg(short, long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Output format: table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Arguments of `headtime drive check`.
#[derive(Debug, Args)]
#[command(after_long_help = CHECK_HELP)]
pub struct Check {
    /// Block device, file on a disk, or unix socket of an NBD server
    ///
    /// Devices and files are read past the page cache, and are opened for reading only.
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    /// The drive: a name from `drive list`, a profile FILE.toml, size and speed as in 18TB-7200, or a DiskSim FILE.parv
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// Name of the drive in a DiskSim file with several drives
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Name of the NBD server's export; by default the server's default export
    #[arg(long, value_name = "NAME")]
    pub export: Option<String>,
    /// Reads of each job, 50 to 100000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(50..=100_000),
    )]
    pub reads: u32,
    /// Seed of the random places and of the model's noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Output format: table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}

const CHECK_HELP: &str = "\
How a job is judged:
  agrees   the means differ by at most 5 % or by chance, the medians by 10 %
  near     the means differ by at most 15 % or by chance, the medians by 30 %
  differs  otherwise
  demerit  root mean square distance of both distributions of response times
           (Ruemmler and Wilkes 1994)
  chance   three standard errors of the difference, by means of ten reads each,
           and 30 % at most; a difference of 0.06 ms or less counts as none,
           since the host takes time too
  size     disk and model need 256 MiB

Examples:
  headtime drive check /dev/sdb exos-x18
  headtime drive probe /dev/sdb --out sdb.toml
  headtime drive check /dev/sdb sdb.toml --reads 1000";

/// Arguments of `headtime drive curve`.
#[derive(Debug, Args)]
#[command(after_long_help = CURVE_HELP)]
pub struct Curve {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(value_name = "NAME|FILE")]
    pub drive: String,
    /// Name of the drive in a DiskSim file with several drives
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Write the curve to a file, with the measured means and the options of the measurement
    #[arg(short, long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
    /// Timed reads for each distance, 8 to 100000
    ///
    /// The error of a mean falls with the square root of N: 200 reads leave 1 to 2 % of a service time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(8..=100_000),
    )]
    pub samples: u32,
    /// Seed of the random places, of the random pauses and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub format: Format,
    /// Draw a picture: single reads, mean times and the curve
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const CURVE_HELP: &str = "\
How it is measured:
  distance  from the end of the first read to the start of the second, from 0
            to 31/32 of the disk, at equal steps of the logarithm
  pause     between the two reads, 0 to 12 ms at random, so that the second
            read finds the platter at any angle
  buffer    a second read of data that were read ahead counts with its short
            time, since near requests are as cheap in use
  backward  not measured: counts 1.5 times the forward time, as in the paper
            on Stream Scheduling (FAST 2011)

Examples:
  headtime drive curve wd5000aaks
  headtime drive curve wd5000aaks --plot curve.svg --out curve.toml
  headtime drive show exos-x18 --format toml > mine.toml
  headtime drive curve mine.toml --samples 2000 --format csv > curve.csv";
