//! Entry of a gate in the table of gates, and errors in a gate's text.

use super::Gate;
use crate::config::Config;
use headtime_sched::{Counts, Options, PolicyInfo, SpecErrorKind};

/// The gate inside another gate. The gate inside has one lane.
pub(super) type Inside = Option<Box<dyn Gate>>;

/// Entry of a gate in the table.
pub(super) struct Registration {
    pub info: &'static PolicyInfo,
    /// Checks the options against the engine's configuration.
    pub check: fn(Options<'_>, &Config) -> Result<(), GateProblem>,
    /// Builds the gate, around the gate inside if there is one. Returns `None` if the gate equals the engine's default
    /// gate.
    pub build: fn(Options<'_>, &Config, Inside) -> Option<Box<dyn Gate>>,
}

/// Problem with the text of a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateProblem {
    /// The text cannot be parsed.
    #[error("{}", in_words(.0))]
    Text(SpecErrorKind),
    /// A level has a lower rank than the level before.
    #[error("ranks is {0}; allowed are numbers that do not fall, the most urgent level first")]
    RanksFall(Counts),
    /// A level could send a command only to an empty drive.
    #[error("ranks is {ranks}; allowed is less than the depth, which is {depth}")]
    RankOfDepth {
        /// The ranks.
        ranks: Counts,
        /// The depth of the engine.
        depth: u32,
    },
    /// No class has a target of latency.
    #[error(
        "there is no target; give one of real_time, best_effort and idle, as in real_time=20ms"
    )]
    NoTarget,
    /// The gate inside has lanes of its own.
    #[error(
        "{inner} has {lanes} lanes; allowed inside is a gate with one, such as depth or rsd, or a gate with queue=single"
    )]
    InnerLanes {
        /// The gate inside.
        inner: String,
        /// The number of lanes of the gate inside.
        lanes: usize,
    },
}

/// Returns the problem as text. The error type belongs to schedulers, which have the same parser.
fn in_words(kind: &SpecErrorKind) -> String {
    match kind {
        SpecErrorKind::Empty => "a gate has a name, as in \"rsd\"".to_owned(),
        SpecErrorKind::UnknownPolicy {
            name,
            suggestion,
            known,
        } => {
            let meant = match suggestion {
                Some(name) => format!("; did you mean \"{name}\"?"),
                None => ".".to_owned(),
            };
            format!("there is no gate \"{name}\"{meant} Known are {known}")
        }
        kind => kind.to_string(),
    }
}
