//! The command line, declared once: parser, help, man pages and completions all come from here.

mod array;
#[cfg(feature = "fuse")]
mod attach;
mod drive;
mod new;
mod output;
mod probe;
mod qos;
mod report;
mod reproduce;
mod scrub;
mod serve;
mod sim;
mod sweep;
mod trace;

use clap::{Parser, Subcommand, ValueEnum};
use headtime_config::split_list;
use headtime_engine::{GateSpec, gates};
use headtime_lab::fault::EXIT_CODES;
use headtime_sched::{PolicyInfo, Spec, policies};
use std::path::PathBuf;
use std::sync::LazyLock;

pub use array::{ArrayCreate, ArrayDetect, ArrayShow, ArrayVerb};
#[cfg(feature = "fuse")]
pub use attach::{Attach, Detach};
pub use drive::{Check, Curve, DriveVerb, Import, List, Show, ShowFormat, Validate};
pub use new::{New, Rate, SectorName};
pub use output::{Format, Level, OutputOptions};
pub use probe::{Emit, Probe, ScratchRange};
pub use qos::{QosCoordinate, QosExplain, QosPlan, QosProfile, QosTrain, QosVerb};
pub use report::{Report, ReportFormat};
pub use reproduce::{Judging, Reproduce};
pub use scrub::{ByteRange, FinishWithin, IdleAfter, P99More, Scrub, ScrubVerb};
pub use serve::{
    Control, ControlVerb, FaultVerb, Live, OfDisk, ProfileVerb, ProgramVerb, Serve, SortBy, Swap,
    Top,
};
pub use sim::{Example, Fuzz, ReplayLog, SimRun, SimVerb};
pub use sweep::{Engine, PictureArgs, SweepArgs};
pub use trace::{Convert, Info, ReadingOptions, Record, ReplayArgs, TextFormat, To, TraceVerb};

/// Simulate hard disks, compare I/O schedulers, and serve disks with them
///
/// Head time is the time that the arm of a hard disk spends on a request: seek, rotational latency and transfer. Headtime shows how each
/// scheduler spends head time, for synthetic programs and recorded traces. The models of real drives have known errors against
/// measurements. Headtime also serves real and emulated disks to clients, with the same schedulers.
#[derive(Debug, Parser)]
#[command(
    name = "headtime",
    version = VERSION.as_str(),
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = EXIT_CODES,
    after_long_help = after_help(),
)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Simulate: compare schedulers on a modelled drive
    #[command(subcommand)]
    Sim(SimVerb),
    /// Run a scenario for many values of its keys
    ///
    /// `[sweep]` in a scenario lists values for any key that `--set` takes; docs/sweep.md explains the keys. Runs every combination of the
    /// values, or varies each key alone while the others keep the scenario's values. Runs go in parallel on all processors, which does not
    /// change the results. A combination that fails gets the error as its result, and the other combinations run.
    ///
    /// With --out, a file beside the output, NAME.partial, keeps finished combinations.
    ///
    /// Running the command again continues an interrupted sweep from this file. The command refuses if the scenario, a file that the
    /// scenario names or the version of headtime has changed.
    Sweep(Box<SweepArgs>),
    /// Advise on a disk: waits of the clients, and settings
    ///
    /// Replays a load on a model of the drive under many settings of Linux and of Headtime, and recommends one of each. Repeats the best
    /// settings with other seeds, with other values of the drive's assumed keys, and with a little more load. The advice names each change
    /// under which it fails. docs/report.md explains the score and the output.
    Report(Box<Report>),
    /// Traces: look at, convert, replay, record
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Drive profiles: list, show, make, import, validate, learn
    #[command(subcommand)]
    Drive(DriveVerb),
    /// Reproduce figures of published papers and check the results
    ///
    /// A figure is a set of scenarios, and of points that are measured in these scenarios. A point can name the paper's value, the
    /// accepted range and the reason for this range. docs/figures.md explains the files.
    Reproduce(Reproduce),
    /// Serve disks, real or emulated in real time, to NBD clients
    ///
    /// Puts a scheduler in front of a file, a block device, or an emulated drive with its data in memory or in a sparse file. The
    /// schedulers are the same as in simulation. docs/serve.md explains the configuration.
    ///
    /// Runs until SIGTERM or SIGINT. The server then accepts no more clients, finishes the accepted requests and flushes all disks. A
    /// second signal ends the server at once (exit code 5). On SIGHUP the server reads the configuration again, and swaps schedulers, gates
    /// and timeouts while requests are in flight.
    Serve(Serve),
    /// Serve disks as files, and as loop devices on these files
    ///
    /// Mounts a directory (FUSE) with a file for each export of a `headtime serve` configuration. With --loop, each file also gets a loop
    /// device, for file systems and other programs that need a block device. Sockets under `[listen]` are served too.
    ///
    /// Runs until SIGTERM, SIGINT or `headtime detach`. The command then waits until no file system is mounted on a loop device and no file
    /// is open. Afterwards it writes cached data back, removes the loop devices, unmounts the directory and flushes the disks. A second
    /// signal ends the command at once (exit code 5), and data that were not flushed are lost.
    #[cfg(feature = "fuse")]
    Attach(Attach),
    /// Stop a running `headtime attach`, or clean up after a killed one
    ///
    /// Ends the server, which detaches the loop devices and unmounts the directory. The command waits for the server's end. If the server
    /// is gone already, the command itself detaches and unmounts. Without --force the command refuses while a loop device is in use.
    #[cfg(feature = "fuse")]
    Detach(Detach),
    /// Headers of the disks of arrays: write, show, detect md superblocks
    #[command(subcommand)]
    Array(ArrayVerb),
    /// Query or control a server over its control socket
    Control(Control),
    /// Watch a server in a terminal: arms, queues, exports, gates, scrubs, windows
    ///
    /// Rates cover the last second. Times of requests count from the start of the server. Keys sort the exports and freeze the figures.
    /// Another key changes a scheduler or a gate, after a question.
    Top(Top),
    /// Read a whole served disk beside its clients, and report unreadable sectors
    ///
    /// The server reads in idle time, and in gaps: while the head would only wait for a client's sector. Gaps need an assumed profile of
    /// the drive (`belief` in the configuration), and a disk that turns as the profile says. docs/scrub.md explains the details.
    ///
    /// The command starts the scrub and waits for its end. If the command is interrupted, the scrub goes on in the server. Running the
    /// command again waits for a running scrub, resumes a paused or held scrub, or starts the next scrub if the last is done.
    Scrub(Scrub),
    /// Run-time goals for programs that share servers: train trees, explain predictions
    #[command(subcommand)]
    Qos(QosVerb),
    /// Write man pages, shell completions or example files into a directory
    Generate(Generate),
    /// Explain a command, the schedulers or the gates
    Help(Help),
}

/// Arguments of `headtime help`.
#[derive(Debug, clap::Args)]
pub struct Help {
    /// `schedulers`, `gates`, or a command, such as `sim run`
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// Version, with the commit if the environment of the build has named one in `HEADTIME_COMMIT`, as for packages.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("HEADTIME_COMMIT");
    commit.map_or_else(
        || version.to_owned(),
        |commit| format!("{version} ({commit})"),
    )
});

/// Arguments of `headtime generate`.
#[derive(Debug, clap::Args)]
pub struct Generate {
    /// Kind of files to write
    pub what: Generated,
    /// Directory for the files; created if missing
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Kinds of files that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// A man page per verb
    Man,
    /// Completions for bash, zsh, fish, elvish and PowerShell
    Completions,
    /// The files that examples in help texts use: scenarios, a recorded trace, a sweep, a server's configuration
    Examples,
}

/// One or several gates, as one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Gates(pub Vec<GateSpec>);

fn gates_of(text: &str) -> Result<Gates, String> {
    let read = split_list(text).map(str::parse);
    let read: Result<Vec<GateSpec>, _> = read.collect();
    match read {
        Ok(gates) if gates.is_empty() => Err("names no gate".to_owned()),
        Ok(gates) => Ok(Gates(gates)),
        Err(error) => Err(error.to_string()),
    }
}

/// One or several schedulers, as one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedulers(pub Vec<Spec>);

fn schedulers(text: &str) -> Result<Schedulers, String> {
    Spec::parse_list(text)
        .map(Schedulers)
        .map_err(|error| error.to_string())
}

fn titles(table: impl Iterator<Item = &'static PolicyInfo>) -> String {
    let titles: Vec<String> = table.map(|policy| policy.title().to_string()).collect();
    titles.join(", ")
}

fn after_help() -> String {
    format!(
        "Examples:\n\
         \x20 headtime sim run\n\
         \x20 headtime sim run --example par-read --set drive.profile=exos-x18 --set engine.depth=1,4,16\n\
         \x20 headtime generate examples .\n\
         \x20 headtime sweep par-read.toml --vary host.read_ahead=0B,128KiB,1MiB --plot ahead.svg\n\
         \x20 headtime trace replay database.csv.gz --profile exos-x18 --scheduler noop,sstf --closed 32\n\
         \x20 headtime report --like vm+scrub --profile exos-x18\n\
         \x20 headtime drive list\n\
         \x20 headtime reproduce --list\n\n\
         Values:\n\
         \x20 sizes      4KiB, 1GB (kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024)\n\
         \x20 durations  100us, 30ms, 14d (ns, us, ms, s, m, h, d); a bare number is an error\n\
         \x20 lists      separated by commas; options that take a list can also be repeated\n\n\
         Schedulers: {}\n\
         Gates: {}\n\
         \x20 (`headtime help schedulers` and `headtime help gates` explain each, with the options)\n\n\
         {EXIT_CODES}\n\n\
         Environment:\n\
         \x20 NO_COLOR   if set, no colours and no bold letters",
        titles(policies()),
        titles(gates()),
    )
}

/// Names of the schedulers and gates, for the help of the commands that take these.
fn names_help() -> String {
    format!(
        "Schedulers: {}\n\
         \x20 (`headtime help schedulers` explains each, with the options)\n\
         Gates: {}\n\
         \x20 (`headtime help gates` explains each, with the options)",
        titles(policies()),
        titles(gates()),
    )
}

/// Explains each scheduler and its options.
pub fn schedulers_help() -> String {
    table_help(
        "Schedulers, which order requests (schedulers of a scenario, scheduler of a disk):",
        "Options of a scheduler follow it, joined by colons: deadline:fifo_batch=4:read_expire=200ms",
        &policies().collect::<Vec<_>>(),
    )
}

/// Explains each gate and its options.
pub fn gates_help() -> String {
    table_help(
        "Gates, which say when a command may go to the drive (engine.gate of a scenario, gate of a disk):",
        "Options of a gate follow it, joined by colons: rsd:age_th=30",
        &gates().collect::<Vec<_>>(),
    )
}

/// Lists the schedulers or gates of a table, each with its idea, and then their options.
fn table_help(title: &str, options: &str, table: &[&'static PolicyInfo]) -> String {
    let width = (table.iter())
        .map(|policy| policy.title().to_string().len())
        .max()
        .unwrap_or(0);
    let mut text = title.to_owned();
    for policy in table {
        text.push_str(&format!(
            "\n  {:width$}  {}",
            policy.title().to_string(),
            policy.idea
        ));
    }
    text.push_str("\n\n");
    text.push_str(options);
    let mut before: Vec<&PolicyInfo> = Vec::new();
    for policy in table.iter().filter(|policy| !policy.options.is_empty()) {
        text.push_str(&format!("\n\n  {}", policy.title()));
        // If a policy has all options of an earlier policy, only the additional options are listed.
        let like = before.iter().find(|other| {
            other
                .options
                .iter()
                .all(|option| policy.options.contains(option))
        });
        if let Some(like) = like {
            text.push_str(&format!("\n    those of {}", like.title()));
        }
        let known = like.map_or(&[][..], |like| like.options);
        let new = policy
            .options
            .iter()
            .filter(|option| !known.contains(option));
        for option in new {
            text.push_str(&format!("\n    {}={}", option.key, option.default));
            text.push_str(&format!("  {}", option.help));
        }
        before.push(policy);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
