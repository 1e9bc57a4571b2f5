//! `headtime qos`

use clap::{Args, Subcommand};
use headtime_qos::{FeatureSet, TrainOptions};
use headtime_units::Millionths;
use std::path::PathBuf;

/// Run-time goals: profiles of programs, trees that predict their throughput, and what goals demand.
#[derive(Debug, Subcommand)]
pub enum QosVerb {
    /// Take the profile of a program of a scenario, in a simulated run without the other programs
    Profile(QosProfile),
    /// Train a tree with profiles of a program
    Train(QosTrain),
    /// Show how a tree comes to its predictions
    Explain(QosExplain),
    /// Say what the goals of a scenario demand, and whether all can be kept
    Plan(QosPlan),
    /// Keep goals of programs on several servers, over their control sockets
    Coordinate(QosCoordinate),
}

/// `headtime qos coordinate`
///
/// Plans windows of time for programs whose data are on several servers, as one server does for its disks. Prints a line when all
/// servers have answered, and runs until SIGTERM or SIGINT. A server that falls silent keeps its last plan for three periods; then its programs share its disks. It joins again by
/// itself. docs/qos.md explains what servers need.
#[derive(Debug, Args)]
#[command(after_help = COORDINATE_HELP)]
pub struct QosCoordinate {
    /// Control sockets of the servers; a server of another machine has a forwarded socket
    #[arg(value_name = "SOCKET", required = true)]
    pub servers: Vec<PathBuf>,
    /// The programs: a file with [[qos.program]], as in a server's configuration, without exports
    #[arg(long, value_name = "FILE.toml")]
    pub programs: PathBuf,
    /// Listen at a control socket of its own, for `headtime control SOCKET qos` and `status`
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
}

const COORDINATE_HELP: &str = "\
Examples:
  headtime qos coordinate a.sock b.sock --programs goals.toml --control goals.sock
  headtime control goals.sock qos goal report 110s
  ssh -N -L b.sock:/run/headtime/control.sock server-b      # a server of another machine";

/// `headtime qos profile`
#[derive(Debug, Args)]
#[command(after_help = PROFILE_HELP)]
pub struct QosProfile {
    /// The scenario, whose programs run on a cluster
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Name of the program; "training" for the training workload
    #[arg(value_name = "PROGRAM")]
    pub program: String,
    /// The profile; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Set a key of the scenario, as in cluster.servers=3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

const PROFILE_HELP: &str = "\
Example:
  headtime qos profile goals.toml full-seq --out full-seq.profile";

/// `headtime qos plan`
///
/// A goal demands a share of the servers' time: 1 / alpha, where alpha is the I/O time that the goal leaves over the I/O time of a
/// run alone. If the shares of programs that run together sum to more than 100 %, not all goals can be kept.
#[derive(Debug, Args)]
#[command(after_help = PLAN_HELP)]
pub struct QosPlan {
    /// The scenario, whose programs run on a cluster
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Set a key of the scenario, as in program.0.goal=3x
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

const PLAN_HELP: &str = "\
Example:
  headtime qos plan goals.toml --set program.0.goal=3x";

/// `headtime qos train`
///
/// The tree predicts the throughput of a server from the locality of its requests in an epoch. One tree serves all goals of a
/// program. The table has the errors in cross-validation: each epoch is predicted by a tree that was trained without the epoch.
#[derive(Debug, Args)]
#[command(after_help = TRAIN_HELP)]
pub struct QosTrain {
    /// Profiles of runs of one program
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,
    /// Profile of the training workload on the same servers, for requests that the program has not made so far
    #[arg(long, value_name = "PROFILE")]
    pub synthetic: Option<PathBuf>,
    /// The tree; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Features that the tree may ask for: distance, signed-distance, size, log-distance, sequential, reads
    #[arg(long, value_name = "LIST", default_value_t = FeatureSet::USUAL)]
    pub features: FeatureSet,
    /// Split until the mean relative error is below this share, such as 0.1, instead of pruning
    #[arg(long, value_name = "SHARE")]
    pub until_error: Option<Millionths>,
    /// Use this many requests of each profile, in a segment drawn by chance; by default all
    #[arg(long, value_name = "REQUESTS")]
    pub segment: Option<u64>,
    /// Count epochs of a server together until they have this many requests; 1: each epoch by itself, as in the paper
    #[arg(long, value_name = "REQUESTS", default_value_t = TrainOptions::default().enough, value_parser = clap::value_parser!(u64).range(1..))]
    pub enough: u64,
}

const TRAIN_HELP: &str = "\
Example:
  headtime qos train ior.profile --synthetic synthetic.profile --out ior.tree";

/// `headtime qos explain`
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub struct QosExplain {
    /// The tree
    #[arg(value_name = "TREE")]
    pub tree: PathBuf,
    /// Explain the predictions for all epochs of a run of the same program, and show their errors
    #[arg(
        value_name = "PROFILE",
        required_unless_present = "features",
        conflicts_with = "features"
    )]
    pub profile: Option<PathBuf>,
    /// Explain the prediction for features by name: bytes, and shares from 0 to 1
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub features: Option<String>,
}

const EXPLAIN_HELP: &str = "\
Examples:
  headtime qos explain ior.tree second.profile
  headtime qos explain ior.tree --features distance=256MB,size=32KiB";
