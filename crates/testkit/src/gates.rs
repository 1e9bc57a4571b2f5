//! Gates that try the engine's lanes. Not for use.

use headtime_engine::{Config, DriveTag, Gate, GateOrder, Lane, Lanes, Next};
use headtime_sched::{Class, Origin, Request};
use headtime_units::{Nanos, Time};

/// A gate with two ranks and a limit on the age of commands. Real-time requests go first and have a tag of their own.
/// No command goes while any command in the drive is late.
///
/// A command is late if more than `age_max` others have completed since it went to the drive.
#[derive(Clone, Debug)]
pub struct AgedRanks {
    depth: u32,
    age_max: u64,
    /// True if order hands on rank. A gate with `false` breaks its promise.
    pub inherits: bool,
    completed: u64,
    /// Number of completed commands when each tag was taken.
    taken: Vec<Option<u64>>,
}

impl AgedRanks {
    /// The lane of real-time requests.
    pub const HIGH: Lane = Lane(0);
    /// The lane of all others.
    pub const LOW: Lane = Lane(1);

    /// Creates a gate that admits `depth` commands to the drive, or one less for the low rank. No command goes while more
    /// than `age_max` others have completed since an outstanding command went to the drive.
    pub fn new(depth: u32, age_max: u64) -> AgedRanks {
        AgedRanks {
            depth,
            age_max,
            inherits: true,
            completed: 0,
            taken: Vec::new(),
        }
    }

    fn out(&self) -> u32 {
        self.taken.iter().flatten().count() as u32
    }

    /// Returns true if a command of this lane may go.
    pub fn admits(&self, lane: Lane) -> bool {
        let late = |since: &u64| self.completed - since > self.age_max;
        let reserved = u32::from(lane != AgedRanks::HIGH);
        self.out() + reserved < self.depth && !self.taken.iter().flatten().any(late)
    }
}

impl Gate for AgedRanks {
    fn lanes(&self) -> usize {
        2
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        match class {
            Class::REAL_TIME => AgedRanks::HIGH,
            _ => AgedRanks::LOW,
        }
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        self.inherits && lane < other
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        let mut ranks = [AgedRanks::HIGH, AgedRanks::LOW].into_iter();
        let next = ranks.find(|lane| lanes.state(*lane).ready && self.admits(*lane));
        next.map_or(Next::Hold(None), Next::Take)
    }

    fn taken(&mut self, _: Time, command: &Request<DriveTag>, _: Lane) {
        let place = command.tag.index();
        if self.taken.len() <= place {
            self.taken.resize(place + 1, None);
        }
        self.taken[place] = Some(self.completed);
    }

    fn returned(&mut self, _: Time, tag: DriveTag) {
        self.taken[tag.index()] = None;
        self.completed += 1;
    }

    fn obey(&mut self, _: Time, order: &GateOrder) {
        match order {
            // One tag is reserved.
            GateOrder::Depth(depth) => self.depth = (*depth).max(2),
            GateOrder::Age(commands) => self.age_max = *commands,
            _ => {}
        }
    }
}

/// A gate with two programs, the even and the odd ones, which take turns. Each has the drive for a window, with or
/// without requests.
#[derive(Clone, Debug)]
pub struct Windows {
    depth: u32,
    taken: u32,
    first: Lane,
    from: Time,
    span: Nanos,
}

impl Windows {
    /// A gate with windows of this length. The even programs have the first window.
    pub fn new(depth: u32, span: Nanos) -> Windows {
        Windows {
            depth,
            taken: 0,
            first: Lane(0),
            from: Time::ZERO,
            span,
        }
    }

    /// Lane that owns the window at this time, and the end of the window. Before the first window no lane has the
    /// drive.
    pub fn window(&self, now: Time) -> (Option<Lane>, Time) {
        if now < self.from {
            return (None, self.from);
        }
        let turn = (now - self.from).as_nanos() / self.span.as_nanos();
        let lane = Lane((self.first.0 + (turn % 2) as u8) % 2);
        let end = self.span.saturating_mul(turn + 1);
        (Some(lane), self.from.saturating_add(end))
    }
}

impl Gate for Windows {
    fn lanes(&self) -> usize {
        2
    }

    fn lane(&self, origin: Origin, _: Class) -> Lane {
        Lane((origin.program % 2) as u8)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        // An order may have made the depth less than the number of commands in the drive.
        if self.taken >= self.depth {
            return Next::Hold(None);
        }
        match self.window(now) {
            (Some(lane), _) if lanes.state(lane).ready => Next::Take(lane),
            (_, end) => Next::Hold(Some(end)),
        }
    }

    fn taken(&mut self, _: Time, _: &Request<DriveTag>, _: Lane) {
        self.taken += 1;
    }

    fn returned(&mut self, _: Time, _: DriveTag) {
        self.taken -= 1;
    }

    fn obey(&mut self, _: Time, order: &GateOrder) {
        match order {
            GateOrder::Depth(depth) => self.depth = (*depth).max(1),
            GateOrder::Window { lane, from, span } if !span.is_zero() => {
                (self.first, self.from, self.span) = (Lane(lane.0 % 2), *from, *span);
            }
            _ => {}
        }
    }
}

/// A toy gate by name, for tests that draw one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToyGate {
    /// [`AgedRanks`] with this number as `age_max`.
    Ranks(u64),
    /// [`Windows`] of this length.
    Windows(Nanos),
}

impl ToyGate {
    /// Number of lanes of each toy gate.
    pub const LANES: usize = 2;

    /// A new gate that lets through `depth` commands, 2 or more.
    pub fn build(self, depth: u32) -> Box<dyn Gate> {
        match self {
            ToyGate::Ranks(age_max) => Box::new(AgedRanks::new(depth, age_max)),
            ToyGate::Windows(span) => Box::new(Windows::new(depth, span)),
        }
    }

    /// Text of the gate in a log: name, depth and number.
    pub fn text(self, depth: u32) -> String {
        match self {
            ToyGate::Ranks(age_max) => format!("ranks:{depth}:{age_max}"),
            ToyGate::Windows(span) => format!("windows:{depth}:{}", span.as_nanos()),
        }
    }

    /// The gate of a text that [`ToyGate::text`] makes.
    pub fn named(text: &str, _: &Config) -> Option<Box<dyn Gate>> {
        let (name, numbers) = text.split_once(':')?;
        let (depth, number) = numbers.split_once(':')?;
        let number = number.parse().ok()?;
        let gate = match name {
            "ranks" => ToyGate::Ranks(number),
            "windows" if number > 0 => ToyGate::Windows(Nanos::from_nanos(number)),
            _ => return None,
        };
        let depth: u32 = depth.parse().ok()?;
        Some(gate.build(depth.max(2)))
    }
}
