//! `headtime qos`

use clap::{Args, Subcommand};
use headtime_qos::{FeatureSet, TrainOptions};
use headtime_units::Millionths;
use std::path::PathBuf;

/// Run-time goals: profiles of programs, trees that predict throughput, and demands of goals.
#[derive(Debug, Subcommand)]
pub enum QosVerb {
    /// Record the profile of a scenario's program, in a simulated run without the other programs
    Profile(QosProfile),
    /// Train a tree with profiles of a program
    ///
    /// The tree predicts the throughput of a server from the locality of the server's requests in an epoch. One tree serves all goals of a
    /// program. The table has the errors in cross-validation: each epoch is predicted by a tree that was trained without this epoch.
    Train(QosTrain),
    /// Show the decisions in a tree that lead to each prediction
    Explain(QosExplain),
    /// Compute the server time that the goals of a scenario demand, and check that all goals fit
    ///
    /// A goal demands a share of the servers' time: 1 / alpha. Alpha is the I/O time that the goal leaves, over the I/O time of a run
    /// alone. If the shares of programs that run together sum to more than 100 %, not all goals can be kept.
    Plan(QosPlan),
    /// Keep goals of programs on several servers, over the servers' control sockets
    ///
    /// Plans windows of time for programs whose data are on several servers, as a single server does for its disks. Prints a line when all
    /// servers have answered, and runs until SIGTERM or SIGINT. A server that falls silent keeps its last plan for three periods. After
    /// that, programs share the server's disks. The server joins again by itself. docs/qos.md explains the requirements of servers.
    Coordinate(QosCoordinate),
}

/// Arguments of `headtime qos coordinate`.
#[derive(Debug, Args)]
#[command(after_help = COORDINATE_HELP)]
pub struct QosCoordinate {
    /// Control sockets of the servers; for a server of another machine, a forwarded socket
    #[arg(value_name = "SOCKET", required = true)]
    pub servers: Vec<PathBuf>,
    /// File with the programs: [[qos.program]] as in a server's configuration, without exports
    #[arg(long, value_name = "FILE.toml")]
    pub programs: PathBuf,
    /// Listen at this control socket, for `headtime control SOCKET qos` and `status`
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
}

const COORDINATE_HELP: &str = "\
Examples:
  headtime qos coordinate a.sock b.sock --programs goals.toml --control goals.sock
  headtime control goals.sock qos goal report 110s
  ssh -N -L b.sock:/run/headtime/control.sock server-b      # a server of another machine";

/// Arguments of `headtime qos profile`.
#[derive(Debug, Args)]
#[command(after_help = PROFILE_HELP)]
pub struct QosProfile {
    /// Scenario whose programs run on a cluster
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Name of the program; "training" for the training workload
    #[arg(value_name = "PROGRAM")]
    pub program: String,
    /// File for the profile; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Set a key of the scenario, as in cluster.servers=3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

const PROFILE_HELP: &str = "\
Example:
  headtime qos profile goals.toml full-seq --out full-seq.profile";

/// Arguments of `headtime qos plan`.
#[derive(Debug, Args)]
#[command(after_help = PLAN_HELP)]
pub struct QosPlan {
    /// Scenario whose programs run on a cluster
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Set a key of the scenario, as in program.0.goal=3x
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

const PLAN_HELP: &str = "\
Example:
  headtime qos plan goals.toml --set program.0.goal=3x";

/// Arguments of `headtime qos train`.
#[derive(Debug, Args)]
#[command(after_help = TRAIN_HELP)]
pub struct QosTrain {
    /// Profiles of runs of one program
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,
    /// Profile of the training workload on the same servers, for requests that the program has not made so far
    #[arg(long, value_name = "PROFILE")]
    pub synthetic: Option<PathBuf>,
    /// File for the tree; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Features that the tree may use: distance, signed-distance, size, log-distance, sequential, reads
    #[arg(long, value_name = "LIST", default_value_t = FeatureSet::USUAL)]
    pub features: FeatureSet,
    /// Split until the mean relative error is below this share, such as 0.1, instead of pruning
    #[arg(long, value_name = "SHARE")]
    pub until_error: Option<Millionths>,
    /// Use this many requests of each profile, in a segment at a random place; by default all
    #[arg(long, value_name = "REQUESTS")]
    pub segment: Option<u64>,
    /// Merge epochs of a server until the merged epoch has this many requests; 1: no merging, as in the paper
    #[arg(long, value_name = "REQUESTS", default_value_t = TrainOptions::default().enough, value_parser = clap::value_parser!(u64).range(1..))]
    pub enough: u64,
}

const TRAIN_HELP: &str = "\
Example:
  headtime qos train ior.profile --synthetic synthetic.profile --out ior.tree";

/// Arguments of `headtime qos explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub struct QosExplain {
    /// Tree that `qos train` wrote
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
