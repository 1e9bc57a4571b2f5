//! Order in which a drive serves its commands.
//!
//! The probe sends several reads at once. The order of the answers shows the drive's preference. It also shows for how long nearby commands
//! or a stream delay another command. A model of positioning time predicts the choices, as in Lumb, Schindler and Ganger (FAST 2002,
//! section 3.2). Agreement shows that positioning time is the key.

mod command_delay;
mod flight;
mod leaves;
mod order;
mod waiting;

use super::bench::Bench;
use super::buffer_probe::HitTime;
use super::error::ExtractError;
use super::known_drive::KnownDrive;
use super::learned_keys::LearnedKeys;
use headtime_disk::profile::{FirmwarePolicy, Preseek, QueueSpec};
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

pub use leaves::Leaves;
pub use order::OrderOf;

/// Results about the queue. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queueing {
    pub depth: Option<u16>,
    /// True if the drive serves commands out of order.
    pub orders: Option<bool>,
    /// Choices among commands, by the number of commands that the drive had, fewest first.
    pub orders_of: Vec<OrderOf>,
    /// Time at which the arm leaves for the next command, if the drive already has this command.
    pub leaves: Option<Leaves>,
    /// True if the arm leaves as late as the next command permits, but no sooner than [`Leaves`] says.
    #[serde(default)]
    pub just_in_time: bool,
    /// Gain in arrival time over the prediction from single commands, in addition to [`Leaves`].
    pub sooner: Option<f64>,
    /// True if the drive chooses by the shortest positioning time.
    pub by_position: Option<bool>,
    pub margin: Option<f64>,
    /// Age at which a command is served next; `None` if there is no such age.
    pub age_cap: Option<f64>,
    pub stream_cap: Option<f64>,
    pub hits_pass: Option<bool>,
}

/// Most commands among which another command has to wait.
const CROWD_COMMANDS_MAX: u16 = 16;

/// Results about the buffer so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffered {
    pub hit: Option<HitTime>,
    pub segments: Option<u64>,
    pub reads_ahead: bool,
}

/// Questions in their order.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueueQuestion {
    Leaves,
    Sooner,
    Last,
    Order,
    Age,
    Stream,
    HitsPass,
}

pub(super) const QUESTIONS: [QueueQuestion; 7] = [
    QueueQuestion::Leaves,
    QueueQuestion::Sooner,
    QueueQuestion::Last,
    QueueQuestion::Order,
    QueueQuestion::Age,
    QueueQuestion::Stream,
    QueueQuestion::HitsPass,
];

pub(super) const KEYS: [&str; 7] = [
    "queue.depth",
    "queue.preseek",
    "queue.policy",
    "queue.margin",
    "queue.age_cap",
    "queue.stream_cap",
    "cache.sneaky_full_read_hits",
];

impl Queueing {
    pub(super) fn ask(
        &mut self,
        question: QueueQuestion,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        held: Buffered,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let depth = bench.probe.depth();
        let key = match question {
            QueueQuestion::Leaves => return self.leaves(bench, drive, held, learned),
            QueueQuestion::Sooner => {
                if depth > 1 {
                    self.come_sooner(bench, drive)?;
                }
                return Ok(());
            }
            QueueQuestion::Last => return self.last(bench, drive, held, learned),
            QueueQuestion::Order => return self.order(bench, drive, depth, learned),
            QueueQuestion::HitsPass => return self.hits_pass(bench, drive, depth, learned),
            QueueQuestion::Age => "queue.age_cap",
            QueueQuestion::Stream => "queue.stream_cap",
        };
        let why = match (self.orders, depth) {
            (Some(true), 4..) => None,
            (Some(true), _) => Some("so few commands at a time do not keep one waiting"),
            (Some(false), _) => Some("commands are served in their order"),
            (None, _) => Some("it is not known whether the drive orders"),
        };
        if let Some(why) = why {
            learned.doubt(key, why);
            return Ok(());
        }
        match question {
            QueueQuestion::Age => self.age(bench, depth, learned),
            _ => self.stream(bench, depth, learned),
        }
    }

    /// Copies the results to a profile.
    pub(super) fn apply(&self, queue: &mut QueueSpec) {
        let Some(depth) = self.depth else { return };
        queue.depth = u32::from(depth).clamp(1, 256);
        if let Some(leaves) = self.leaves {
            queue.preseek = match leaves.after {
                None if self.just_in_time => Preseek::JustInTime,
                None => Preseek::AtMediaEnd,
                Some(_) => Preseek::Off,
            };
        }
        if self.by_position != Some(true) {
            return;
        }
        let nanos = |time: f64| Nanos::from_nanos(time.max(0.0) as u64);
        queue.policy = FirmwarePolicy::Sptf {
            margin: self.margin.map_or(Nanos::ZERO, nanos),
            age_cap: self.age_cap.map(nanos),
        };
        if let Some(cap) = self.stream_cap {
            queue.stream_cap = nanos(cap);
        }
    }
}
