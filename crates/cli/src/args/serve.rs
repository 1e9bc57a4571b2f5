//! `headtime serve` and `headtime control`

use super::schedulers_help;
use crate::live::config::LogFormat;
use clap::{Args, Subcommand};
use headtime_units::Nanos;
use std::path::PathBuf;

/// Serve disks, real or emulated in real time, to NBD clients
///
/// The same schedulers as in simulation, in front of a file, a block device, or a drive that is
/// emulated with its data in memory or in a sparse file. docs/serve.md explains the configuration.
/// Runs until SIGTERM or SIGINT. Then it accepts no more clients, finishes the requests that it has
/// and flushes everything; a second signal ends it at once (exit code 5). On SIGHUP it reads the
/// configuration again and swaps schedulers, gates and timeouts in flight.
#[derive(Debug, Args)]
#[command(after_long_help = serve_help())]
pub struct Serve {
    /// What to serve, and where
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Check the configuration and what it names, say what would be served, and open nothing for writing
    #[arg(long)]
    pub check: bool,
    /// Allow listen.nbd = "tcp:..", which every user of this machine can connect to
    #[arg(long)]
    pub tcp: bool,
    /// Print a line on standard output when all sockets can be connected to
    ///
    /// If that fails, the server logs a message and goes on.
    #[arg(long)]
    pub ready: bool,
    /// How its disks run
    #[command(flatten)]
    pub live: Live,
}

/// How the disks of a configuration run, whatever is in front of them.
#[derive(Debug, Args)]
pub struct Live {
    /// Write events and decisions; with several disks into a file for each, FILE.NAME
    ///
    /// FILE may be a pipe. If its reader takes nothing for ten seconds, the log ends there and the
    /// disk goes on.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Open devices even if they are mounted, partitioned or otherwise in use; their data may be lost
    #[arg(long)]
    pub force: bool,
    /// The format of messages on standard error
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

fn serve_help() -> String {
    format!(
        "Example:\n\
         \x20 [[disk]]\n\
         \x20 name = \"disk0\"\n\
         \x20 emulate = \"wd5000aaks\"          # or device = \"PATH\"\n\
         \x20 store = \"memory\"                # or the path of a sparse file; create = true makes it\n\
         \x20 size = \"4GiB\"\n\
         \x20 scheduler = \"stream(deadline)\"\n\
         \x20 [listen]\n\
         \x20 nbd = \"unix:headtime.sock\"\n\n\
         \x20 headtime serve disk.toml &\n\
         \x20 nbdinfo 'nbd+unix:///disk0?socket=headtime.sock'\n\n\
         Environment:\n\
         \x20 HEADTIME_LOG   which messages: error, warn, info (the default), debug\n\n{}",
        schedulers_help()
    )
}

/// Query or control a server over its control socket
#[derive(Debug, Args)]
#[command(after_help = CONTROL_EXIT_CODES)]
pub struct Control {
    /// The server's listen.control socket
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub verb: ControlVerb,
}

/// Those of them that control ends with.
const CONTROL_EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the server refuses: it has no such disk, may not, or cannot do that now, and says so
  2  the command line is wrong, and nobody was asked
  4  nobody answers at SOCKET, or it cannot be connected to";

/// What a server can be asked or told.
#[derive(Debug, Subcommand)]
pub enum ControlVerb {
    /// Print the state of all disks, as JSON
    Status,
    /// Print what Prometheus reads
    Metrics,
    /// Cut the power of an emulated drive: it loses what it has not written, and fails every request
    ///
    /// Needs faults = true in the disk's configuration.
    PowerCut(OfDisk),
    /// Switch the power of an emulated drive on again
    PowerOn(OfDisk),
    /// Accept writes again after one failed
    ClearFailure(OfDisk),
    /// Inject a fault into a disk
    ///
    /// Needs faults = true in the disk's configuration.
    #[command(subcommand)]
    Fault(FaultVerb),
    /// Swap the scheduler of a disk in flight
    Scheduler(Swap),
    /// Print programs and their goals as JSON, set a goal, or record a profile
    ///
    /// docs/serve.md explains goals.
    Qos {
        /// Action; without one the state is printed.
        #[command(subcommand)]
        verb: Option<ProgramVerb>,
    },
    /// Change the gate of a disk in flight
    ///
    /// If only age_th changes, the gate keeps what it knows of the commands in the drive.
    Gate(Regate),
}

/// Actions on programs.
#[derive(Debug, Subcommand)]
pub enum ProgramVerb {
    /// Set the goal of a program's next run, which starts with the next request
    Goal {
        /// The program's name
        program: String,
        /// A run time (110s), a multiple of the run time alone (2.5x), a time of day ("by 06:00"), or none
        goal: String,
    },
    /// Record a profile of a run without windows, from the next request to the last one that is over
    Profile {
        /// The program's name
        program: String,
        /// Start the recording, or stop it and print the profile
        #[arg(value_enum)]
        verb: ProfileVerb,
    },
}

/// Ends of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileVerb {
    /// From the next request on
    Start,
    /// Print the profile
    Stop,
}

/// Which disk.
#[derive(Debug, Args)]
pub struct OfDisk {
    /// The disk's name
    pub disk: String,
}

/// A scheduler for a disk.
#[derive(Debug, Args)]
pub struct Swap {
    /// The disk's name
    pub disk: String,
    /// The scheduler, as in the configuration
    pub scheduler: String,
}

/// A gate for a disk.
#[derive(Debug, Args)]
pub struct Regate {
    /// The disk's name
    pub disk: String,
    /// The gate, as in the configuration
    pub gate: String,
}

/// What can go wrong.
#[derive(Debug, Subcommand)]
pub enum FaultVerb {
    /// Make sectors unreadable until they are written
    Unreadable {
        /// The disk's name
        disk: String,
        /// The first sector
        #[arg(long)]
        lba: u64,
        /// How many
        #[arg(long, default_value_t = 1)]
        sectors: u64,
        /// For how many turns the drive retries
        #[arg(long, default_value_t = 3)]
        retries: u32,
    },
    /// Begin no command for some time
    Stall {
        /// The disk's name
        disk: String,
        /// How long
        #[arg(long = "for", value_name = "DURATION")]
        span: Nanos,
    },
    /// Never answer the next command
    LoseNext {
        /// The disk's name
        disk: String,
    },
}
