//! How a drive orders the commands that it has.
//!
//! Several reads are sent at once; the order of the answers shows which it takes first, and when another
//! command is kept waiting by near ones or by a stream, until when. That the key is the positioning time
//! shows as in Lumb, Schindler and Ganger (FAST 2002, section 3.2): its choices are those of a model.

mod flight;
mod kept;
mod leaves;
mod order;
mod waiting;

use super::bench::Bench;
use super::desk::HitTime;
use super::error::ExtractError;
use super::ground::Ground;
use super::told::Told;
use headtime_disk::profile::{FirmwarePolicy, Preseek, QueueSpec};
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

pub use leaves::Leaves;
pub use order::OrderOf;

/// What was found out about the queue. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queueing {
    pub depth: Option<u16>,
    /// It takes others than the first.
    pub orders: Option<bool>,
    /// How commands are ordered, by how many the drive had, the fewest first.
    pub orders_of: Vec<OrderOf>,
    /// When the arm leaves for the next command, if that is in the drive already.
    pub leaves: Option<Leaves>,
    /// The arm leaves so late that the head comes just in time, and no sooner than [`Leaves`] says.
    #[serde(default)]
    pub just_in_time: bool,
    /// By how much sooner than single commands show the arm is there then, beside what [`Leaves`] says.
    pub sooner: Option<f64>,
    /// Choices are those of the shortest positioning time.
    pub by_position: Option<bool>,
    pub margin: Option<f64>,
    /// None if a command is never too old.
    pub age_cap: Option<f64>,
    pub stream_cap: Option<f64>,
    pub hits_pass: Option<bool>,
}

/// Commands among which one is kept waiting, at most.
const CROWD: u16 = 16;

/// What is known of the buffer already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffered {
    pub hit: Option<HitTime>,
    pub segments: Option<u64>,
    pub reads_ahead: bool,
}

/// The questions in their order.
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
        ground: &Ground<'_>,
        held: Buffered,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let depth = bench.probe.depth();
        let key = match question {
            QueueQuestion::Leaves => return self.leaves(bench, ground, held, told),
            QueueQuestion::Sooner => {
                if depth > 1 {
                    self.come_sooner(bench, ground)?;
                }
                return Ok(());
            }
            QueueQuestion::Last => return self.last(bench, ground, held, told),
            QueueQuestion::Order => return self.order(bench, ground, depth, told),
            QueueQuestion::HitsPass => return self.hits_pass(bench, ground, depth, told),
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
            told.doubt(key, why);
            return Ok(());
        }
        match question {
            QueueQuestion::Age => self.age(bench, depth, told),
            _ => self.stream(bench, depth, told),
        }
    }

    /// Puts what is known into a profile.
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
