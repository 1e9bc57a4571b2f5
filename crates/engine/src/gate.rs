//! Gates: which lane may send the next command to the drive.
//!
//! The engine has a queue for each *lane*, each with a scheduler of its own. A [`Gate`] decides which lane a request
//! belongs to, and which lane may send a command now. A refused request stays in its lane. It can still be merged and
//! overtaken there, and does not block other lanes.
//!
//! The gate is notified of each drive tag that is taken and returned, and of orders. The log contains or implies all of
//! this, so a replay makes the same decisions.

mod account;
mod ages;
mod assignment;
mod average;
mod floors;
mod head_time;
mod iolatency;
mod levels;
mod mclock;
mod ranked;
mod registration;
mod rsd;
mod spec;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timed;
mod windows;

pub(crate) use account::Account;
pub use account::{CLASSES, Gating, class_index};
pub use iolatency::IoLatency;
pub use levels::Queueing;
pub use ranked::RsdPriority;
pub use registration::GateProblem;
pub use rsd::Rsd;
pub use spec::{GateError, GateSpec, gates};

use crate::config::Config;
use crate::fields::Fields;
use crate::names::DriveTag;
use headtime_sched::{Class, Origin, Request, Scheduler};
use headtime_units::{Nanos, Time};

/// Names a lane of an engine: 0 to the number of its lanes - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

impl Lane {
    /// The lane as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// State of a lane as a gate sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneState {
    /// Requests that the lane's scheduler has.
    pub queued: usize,
    /// Staged requests: chosen by the scheduler, and waiting for the gate.
    pub staged: usize,
    /// True if the [prefix](crate::Join::Before) of the first staged request is in the drive. Prefix and request are a
    /// unit. The unit takes the drive no longer than the request alone.
    pub behind_prefix: bool,
    /// Class of the first staged request of a client; of the first staged request if no client has one.
    pub first: Option<Class>,
    /// True if taking the lane may give a command. False if the lane is empty or plugged, or if its scheduler waits.
    pub ready: bool,
}

/// The lanes as a gate sees them.
pub trait Lanes {
    /// Returns the state of a lane.
    fn state(&self, lane: Lane) -> LaneState;

    /// Returns true if taking the lane may give a command: [`LaneState::ready`] alone. Most gates need no more.
    fn is_ready(&self, lane: Lane) -> bool {
        self.state(lane).ready
    }

    /// Returns true if the prefix of the first staged request is in the drive: [`LaneState::behind_prefix`] alone.
    fn is_behind_prefix(&self, lane: Lane) -> bool {
        self.state(lane).behind_prefix
    }

    /// Returns the number of staged requests: [`LaneState::staged`] alone.
    fn staged(&self, lane: Lane) -> usize {
        self.state(lane).staged
    }
}

/// The decision of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next command comes from this lane.
    Take(Lane),
    /// No command goes to the drive until this time, or until the next event.
    Hold(Option<Time>),
}

/// An order to a gate, given from outside while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateOrder {
    /// Limit on the number of commands in the drive, 1 to the engine's depth.
    Depth(u32),
    /// Limit on the number of commands that may overtake a command before the gate closes.
    Age(u64),
    /// A lane has the drive from `from` on, for `span`.
    Window {
        /// The lane.
        lane: Lane,
        /// Start of the window.
        from: Time,
        /// Length of the window.
        span: Nanos,
    },
    /// Requests of a program, or of an export, belong to a lane from now on. Requests that wait move to this lane.
    Assign {
        /// Number of the program or export.
        of: u16,
        /// The lane.
        lane: Lane,
    },
    /// A lane keeps its windows to itself until `until`.
    Keep {
        /// The lane.
        lane: Lane,
        /// Time from which the lane may lend windows again.
        until: Time,
    },
    /// A lane is to be served at a constant rate.
    Rate {
        /// The lane.
        lane: Lane,
        /// Sectors a second; 0: no rate, so the lane gets the time that the other lanes leave.
        rate: u64,
    },
}

/// The text of an order in a log: its kind, then numbers. Times are nanoseconds.
impl core::fmt::Display for GateOrder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            GateOrder::Depth(depth) => write!(f, "depth {depth}"),
            GateOrder::Age(commands) => write!(f, "age {commands}"),
            GateOrder::Window { lane, from, span } => {
                let (from, span) = (from.as_nanos(), span.as_nanos());
                write!(f, "window {} {from} {span}", lane.0)
            }
            GateOrder::Assign { of, lane } => write!(f, "assign {of} {}", lane.0),
            GateOrder::Keep { lane, until } => write!(f, "keep {} {}", lane.0, until.as_nanos()),
            GateOrder::Rate { lane, rate } => write!(f, "rate {} {rate}", lane.0),
        }
    }
}

impl core::str::FromStr for GateOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<GateOrder, String> {
        let mut fields = Fields(text.split_ascii_whitespace());
        let order = GateOrder::read(&mut fields)?;
        match fields.0.next() {
            None => Ok(order),
            Some(word) => Err(format!("\"{word}\" stands behind the order")),
        }
    }
}

impl GateOrder {
    /// Parses the output of [`GateOrder`]'s [`Display`](core::fmt::Display).
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<GateOrder, String> {
        match fields.word("order")? {
            "depth" => fields.small("depth").map(GateOrder::Depth),
            "age" => fields.number("age").map(GateOrder::Age),
            "window" => Ok(GateOrder::Window {
                lane: fields.small("lane").map(Lane)?,
                from: fields.time()?,
                span: fields.number("length").map(Nanos::from_nanos)?,
            }),
            "assign" => Ok(GateOrder::Assign {
                of: fields.small("number")?,
                lane: fields.small("lane").map(Lane)?,
            }),
            "keep" => Ok(GateOrder::Keep {
                lane: fields.small("lane").map(Lane)?,
                until: fields.time()?,
            }),
            "rate" => Ok(GateOrder::Rate {
                lane: fields.small("lane").map(Lane)?,
                rate: fields.number("rate")?,
            }),
            word => Err(format!(
                "\"{word}\" is no order; allowed are depth, age, window, assign, keep and rate"
            )),
        }
    }
}

/// Decides which lane a request belongs to, and which lane may go next.
///
/// A gate is a function of its inputs, as the engine is.
pub trait Gate: core::fmt::Debug + Send {
    /// Returns the number of lanes, 1 to 256. It never changes.
    fn lanes(&self) -> usize {
        1
    }

    /// Returns the lane of a request. The origin is the true one, even if the scheduler sees another.
    #[inline]
    fn lane(&self, _origin: Origin, _class: Class) -> Lane {
        Lane(0)
    }

    /// Returns true if a request in `lane` passes its lane on to a request in `other` for which it must wait. A request
    /// waits if the two overlap, or if one is a flush. A gate with a promise to a lane needs this. Otherwise requests
    /// of other lanes, which must go first to keep the order, would break the promise.
    fn outranks(&self, _lane: Lane, _other: Lane) -> bool {
        false
    }

    /// Decides which lane may go now. Called while any lane is ready. If the chosen lane gives no command, the lane is
    /// no longer ready, and the gate is called again. If the gate chooses a lane that is not ready, no command goes
    /// until the next event.
    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next;

    /// Returns the lane whose scheduler is to choose a request ahead. The chosen request is staged. Called when
    /// [`Gate::next`] holds.
    fn ahead(&self, _lanes: &dyn Lanes) -> Option<Lane> {
        None
    }

    /// Returns true if a request of this lane and class may go while the drive has nothing but the request's prefix
    /// ([`LaneState::behind_prefix`]).
    fn follows(&self, _lane: Lane, _class: Class) -> bool {
        true
    }

    /// Notifies the gate that a command of this lane goes to the drive. A flush goes without a decision of the gate,
    /// since the engine has emptied the drive for it.
    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane);

    /// Notifies the gate that the drive is done with a command.
    fn returned(&mut self, now: Time, tag: DriveTag);

    /// Returns the starving command with index `nth`, counted from 0 in order of dispatch; `None` if there are no more.
    /// Gates without a measure of starvation always return `None`.
    fn starved(&self, _nth: usize) -> Option<DriveTag> {
        None
    }

    /// Gives the gate an order. A gate ignores orders of a kind that it does not know.
    fn obey(&mut self, _now: Time, _order: &GateOrder) {}

    /// Calls `tell` with each order that is in force, so that a new gate can obey these orders. Called when the gate is
    /// swapped.
    fn in_force(&self, _tell: &mut dyn FnMut(&GateOrder)) {}
}

/// A gate, and the schedulers of its lanes after the first.
pub type Gated<S = Box<dyn Scheduler>> = (Box<dyn Gate>, Vec<S>);

/// Admits commands up to a depth, with one lane.
#[derive(Clone, Copy, Debug)]
pub struct FixedDepth {
    /// The largest depth that an order can set.
    most: u32,
    depth: u32,
    taken: u32,
    commit_ahead: bool,
}

impl FixedDepth {
    /// Creates a gate with the depth of this configuration. The gate chooses one request ahead if
    /// [`Config::commit_ahead`] is set.
    pub fn new(config: &Config) -> FixedDepth {
        FixedDepth::of(config, config.depth)
    }

    /// Creates a gate of `depth`, or of the configuration's depth if that is less.
    pub(crate) fn of(config: &Config, depth: u32) -> FixedDepth {
        let most = depth.min(config.depth);
        FixedDepth {
            most,
            depth: most,
            taken: 0,
            commit_ahead: config.commit_ahead,
        }
    }

    /// Returns the number of commands that may still go to the drive.
    pub(crate) fn free(&self) -> u32 {
        self.depth.saturating_sub(self.taken)
    }

    /// Returns true if a command may go to the drive.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.taken < self.depth
    }

    /// Returns true if a request is chosen ahead while `staged` requests are staged.
    #[inline]
    pub(crate) fn is_ahead(&self, staged: usize) -> bool {
        self.commit_ahead && staged == 0
    }

    /// Returns true if requests are ever chosen ahead.
    /// Returns the first of these lanes that may have a request staged ahead: it is ready, and has nothing staged.
    pub(crate) fn ahead_of(
        &self,
        mut all: impl Iterator<Item = Lane>,
        lanes: &dyn Lanes,
    ) -> Option<Lane> {
        all.find(|lane| self.is_ahead(lanes.staged(*lane)) && lanes.is_ready(*lane))
    }

    #[inline]
    pub(crate) fn commits_ahead(&self) -> bool {
        self.commit_ahead
    }
}

impl Gate for FixedDepth {
    #[inline]
    fn next(&mut self, _: Time, _: &dyn Lanes) -> Next {
        match self.has_room() {
            true => Next::Take(Lane(0)),
            false => Next::Hold(None),
        }
    }

    fn follows(&self, _: Lane, _: Class) -> bool {
        self.depth > 1
    }

    #[inline]
    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        let ahead = self.commit_ahead && self.is_ahead(lanes.staged(Lane(0)));
        ahead.then_some(Lane(0))
    }

    #[inline]
    fn taken(&mut self, _: Time, _: &Request<DriveTag>, _: Lane) {
        self.taken += 1;
    }

    #[inline]
    fn returned(&mut self, _: Time, _: DriveTag) {
        self.taken -= 1;
    }

    fn obey(&mut self, _: Time, order: &GateOrder) {
        if let GateOrder::Depth(depth) = order {
            self.depth = self.most.min(*depth);
        }
    }
}

/// The gate of an engine. The default gate is called directly, since the engine calls the gate several times for each
/// command.
#[derive(Debug)]
pub(crate) enum AnyGate {
    Fixed(FixedDepth),
    Other(Box<dyn Gate>),
}

impl AnyGate {
    /// Returns the lane of the higher rank, `one` if neither lane outranks the other.
    pub fn first_of(&self, one: Lane, other: Lane) -> Lane {
        match self.outranks(other, one) {
            true => other,
            false => one,
        }
    }
}

macro_rules! either {
    ($gate:expr, $inner:ident => $call:expr) => {
        match $gate {
            AnyGate::Fixed($inner) => $call,
            AnyGate::Other($inner) => $call,
        }
    };
}

impl Gate for AnyGate {
    fn lanes(&self) -> usize {
        either!(self, gate => gate.lanes())
    }

    #[inline]
    fn lane(&self, origin: Origin, class: Class) -> Lane {
        either!(self, gate => gate.lane(origin, class))
    }

    #[inline]
    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        either!(self, gate => gate.outranks(lane, other))
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        either!(self, gate => gate.follows(lane, class))
    }

    #[inline]
    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        either!(self, gate => gate.next(now, lanes))
    }

    #[inline]
    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        either!(self, gate => gate.ahead(lanes))
    }

    #[inline]
    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        either!(self, gate => gate.taken(now, command, lane));
    }

    #[inline]
    fn returned(&mut self, now: Time, tag: DriveTag) {
        either!(self, gate => gate.returned(now, tag));
    }

    #[inline]
    fn starved(&self, nth: usize) -> Option<DriveTag> {
        either!(self, gate => gate.starved(nth))
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        either!(self, gate => gate.obey(now, order));
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        either!(self, gate => gate.in_force(tell));
    }
}
