//! `headtime serve` and `headtime control`

use super::names_help;
use crate::live::config::LogFormat;
use clap::{Args, Subcommand};
use headtime_units::Nanos;
use std::path::PathBuf;

/// Arguments of `headtime serve`.
#[derive(Debug, Args)]
#[command(after_long_help = serve_help())]
pub struct Serve {
    /// Configuration: disks, exports and sockets
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Check the configuration, print the disks and sockets, and serve nothing
    ///
    /// The check also covers files and devices of the configuration, and opens nothing for writing.
    #[arg(long)]
    pub check: bool,
    /// Allow listen.nbd = "tcp:.."; every user of this machine can connect to such a port
    #[arg(long)]
    pub tcp: bool,
    /// Print a line on standard output when all sockets accept connections
    ///
    /// If the line cannot be printed, the server logs a message and goes on.
    #[arg(long)]
    pub ready: bool,
    /// Run a shell command once all sockets accept connections, and end with it
    ///
    /// The command finds the first export at `$uri` and `$nbd`, the socket at `$unixsocket`, and the control socket at
    /// `$HEADTIME_CONTROL`. Without `listen.nbd` the server makes a socket in a directory of its own. The exit code is
    /// the command's. If the server is told to end, the command gets SIGTERM, and SIGKILL ten seconds later.
    #[arg(long, value_name = "COMMAND", conflicts_with = "check")]
    pub run: Option<String>,
    /// End with exit code 6 if this machine was too busy for an emulated drive
    ///
    /// The limit is 0.5 % of the drive's completions over 0.5 ms late. Without the option, the server prints a warning. An exit
    /// code of `--run` other than 0 comes first.
    #[arg(long, conflicts_with = "check")]
    pub on_time: bool,
    /// Options of the running disks.
    #[command(flatten)]
    pub live: Live,
}

/// Options of the running disks, for all front ends.
#[derive(Debug, Args)]
pub struct Live {
    /// Write events and decisions of the disk to FILE, or of several disks to FILE.NAME each
    ///
    /// `headtime sim replay-log` reads such a log. FILE may be a pipe. If the pipe's reader takes nothing for ten seconds, the
    /// log ends there and the disk goes on.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Open devices even if they are mounted, partitioned or otherwise in use; their data may be lost
    #[arg(long)]
    pub force: bool,
    /// Format of messages on standard error; by default log.format of the configuration, or text
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
         \x20 HEADTIME_LOG   least level of printed messages: error, warn, info (the default), debug\n\n{}",
        names_help()
    )
}

/// Arguments of `headtime control`.
#[derive(Debug, Args)]
#[command(after_help = CONTROL_EXIT_CODES)]
pub struct Control {
    /// Control socket of the server (`listen.control`)
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// Command to the server.
    #[command(subcommand)]
    pub verb: ControlVerb,
}

/// Arguments of `headtime top`.
#[derive(Debug, Args)]
#[command(after_help = CONTROL_EXIT_CODES)]
pub struct Top {
    /// Control socket of the server (`listen.control`)
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// Print one table, of a second, and end; needs no terminal
    #[arg(long)]
    pub once: bool,
    /// Order of the exports
    #[arg(long, value_enum, value_name = "ORDER", default_value_t)]
    pub sort: SortBy,
}

/// Orders of exports. The largest value goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SortBy {
    /// As in the configuration
    #[default]
    Place,
    /// By bytes a second
    Bytes,
    /// By requests a second
    Requests,
    /// By the 99th percentile of the response times
    P99,
}

/// Exit codes of `headtime control` and `headtime top`.
const CONTROL_EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the server refuses and gives the reason: no such disk, not allowed, or not possible now
  2  the command line is wrong, and the server was not contacted
  4  no server answers at SOCKET, or the connection fails";

/// Commands to a server.
#[derive(Debug, Subcommand)]
pub enum ControlVerb {
    /// Print the state of all disks, exports and programs
    Status {
        /// Print the server's JSON
        #[arg(long)]
        json: bool,
    },
    /// Print metrics in the text format of Prometheus
    Metrics,
    /// Cut the power of an emulated drive
    ///
    /// The drive loses data in its buffer that are not on the medium yet, and fails every request until power-on. Prints the number of
    /// acknowledged sectors that are lost, if any. Needs faults = true in the disk's configuration.
    PowerCut(OfDisk),
    /// Switch the power of an emulated drive on again
    PowerOn(OfDisk),
    /// Accept writes again after a write failed
    ///
    /// Refused while the kernel holds a command that timed out, and while the file under the disk is deleted, replaced or cut short.
    ClearFailure(OfDisk),
    /// Inject a fault into a disk
    ///
    /// Needs faults = true in the disk's configuration.
    #[command(subcommand)]
    Fault(FaultVerb),
    /// Swap the scheduler of a disk while requests are in flight
    Scheduler(Swap),
    /// Print programs and their goals as JSON, set a goal, or record a profile
    ///
    /// docs/serve.md explains goals.
    Qos {
        /// Action; without one the state is printed.
        #[command(subcommand)]
        verb: Option<ProgramVerb>,
    },
    /// Change the gate of a disk while requests are in flight
    ///
    /// If only age_th changes, the gate keeps its counts of the commands in the drive. Any other change makes a new gate.
    Gate(Regate),
}

/// Actions on programs.
#[derive(Debug, Subcommand)]
pub enum ProgramVerb {
    /// Set the goal of a program's next run, which starts with the next request
    Goal {
        /// Name of the program
        program: String,
        /// Run time (110s), multiple of the run time alone (2.5x), time of day ("by 06:00"), or none
        goal: String,
    },
    /// Record the profile of a program's run, from its next request on
    ///
    /// The profile ends with the last request that is done at `stop`. Let no other program use the disks meanwhile. Refused while any
    /// program has a goal, since disks then serve programs in windows of time.
    Profile {
        /// Name of the program
        program: String,
        /// Start the recording, or stop it and print the profile
        #[arg(value_enum)]
        verb: ProfileVerb,
    },
}

/// Start and end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileVerb {
    /// Start the recording with the next request
    Start,
    /// Stop the recording and print the profile
    Stop,
}

/// Name of a disk.
#[derive(Debug, Args)]
pub struct OfDisk {
    /// Name of the disk
    pub disk: String,
}

/// A scheduler for a disk.
#[derive(Debug, Args)]
pub struct Swap {
    /// Name of the disk
    pub disk: String,
    /// Scheduler with its options, as in the configuration
    pub scheduler: String,
}

/// A gate for a disk.
#[derive(Debug, Args)]
pub struct Regate {
    /// Name of the disk
    pub disk: String,
    /// Gate with its options, as in the configuration
    pub gate: String,
}

/// Faults that can be injected.
#[derive(Debug, Subcommand)]
pub enum FaultVerb {
    /// Make sectors unreadable until they are written
    Unreadable {
        /// Name of the disk
        disk: String,
        /// First sector
        #[arg(long)]
        lba: u64,
        /// Number of sectors
        #[arg(long, default_value_t = 1)]
        sectors: u64,
        /// Turns of the platter for which the drive retries a read, 0 to 100000
        #[arg(long, default_value_t = 3)]
        retries: u32,
    },
    /// Start no command for some time
    Stall {
        /// Name of the disk
        disk: String,
        /// Duration of the stall, such as 500ms; at most 1h
        #[arg(long = "for", value_name = "DURATION")]
        span: Nanos,
    },
    /// Never answer the next command, so that it times out
    LoseNext {
        /// Name of the disk
        disk: String,
    },
}
