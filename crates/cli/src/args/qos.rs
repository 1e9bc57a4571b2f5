//! `headtime qos`

use clap::{Args, Subcommand};
use headtime_qos::FeatureSet;
use headtime_units::Millionths;
use std::path::PathBuf;

/// Run-time goals: trees that predict the throughput of programs.
#[derive(Debug, Subcommand)]
pub enum QosVerb {
    /// Train a tree with profiles of a program
    Train(QosTrain),
    /// Show how a tree comes to its predictions
    Explain(QosExplain),
}

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
    #[arg(long, value_name = "LIST", default_value_t = FeatureSet::PAPER)]
    pub features: FeatureSet,
    /// Split until the mean relative error is below this share, such as 0.1, instead of pruning
    #[arg(long, value_name = "SHARE")]
    pub until_error: Option<Millionths>,
    /// Use this many requests of each profile, in a segment drawn by chance; by default all
    #[arg(long, value_name = "REQUESTS")]
    pub segment: Option<u64>,
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
