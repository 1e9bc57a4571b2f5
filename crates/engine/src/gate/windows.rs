//! `windows`: the drive serves one lane at a time, by a plan of windows.
//!
//! # Problem
//!
//! Programs that share a disk lose most of the disk's time to seeks between their data. A program whose file is striped over several
//! servers needs all of them at the same time.
//!
//! # How it works
//!
//! An order [assigns](GateOrder::Assign) a program or an export to a lane. A plan gives lanes windows of time
//! ([`GateOrder::Window`]); a later order replaces all that begins at its start or after. During a window only its lane's
//! requests go to the drive, as the gate inside allows. A request goes only if the drive should be done with everything by
//! the end of the window: `guard` at least, or as many mean services of the lane as commands are in the drive then. The first
//! request of a window waits until the drive is empty of other lanes.
//!
//! A lane that has had nothing for the drive during `lend` lends its window: other lanes send one command at a time, until the lane
//! has a request again.
//!
//! If no new plan comes, the windows of the last `period` are served three more times. Then, and before the first window,
//! all lanes share the drive and go in turn.
//!
//! # Bound
//!
//! The gate promises nothing by itself: the plan has to give each lane windows.
//!
//! # Source
//!
//! Zhang, Davis, Jiang, QoS Support for End Users of I/O-intensive Applications (SC'11), section 3.2. `guard`, `lend`
//! and plans that repeat are readings: the paper names no protocol. It weighs seeks against waiting for the program's next
//! request; `lend` bounds that wait.

use super::assignment::{Assignment, BY, LANES};
use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, LaneState, Lanes, Next};
use crate::names::DriveTag;
use headtime_sched::{Class, OptionInfo, Options, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |options, config, inside| {
        let inside = inside.unwrap_or_else(|| Box::new(FixedDepth::new(config)));
        Some(Box::new(Windows::new(options, inside)))
    },
};

const INFO: PolicyInfo = PolicyInfo {
    name: "windows",
    idea: "serves one program at a time, by a plan",
    bound: "none; the plan gives each lane windows",
    source: "U-Shape (SC'11), 3.2",
    avoid: "nobody gives it a plan",
    options: &[
        BY,
        LANES,
        OptionInfo::duration(
            "guard",
            Nanos::from_millis(15),
            "time before the end of a window in which nothing new goes to the drive; longer leaves the drive idle at \
             each switch, shorter lets commands run into the next window",
        ),
        OptionInfo::duration(
            "lend",
            Nanos::from_millis(10),
            "time without a request after which a lane lends its window to others; longer leaves the drive idle while \
             programs compute, shorter lets others in between two requests of a program. 0s: at once",
        ),
        OptionInfo::duration(
            "period",
            Nanos::from_millis(1000),
            "length of a plan, which is repeated three times if no other one comes",
        ),
        OptionInfo::choice(
            "shortage",
            &["deadline", "even"],
            "for the planner: who gives time if goals demand more than a period. `deadline`: each program in proportion to \
             the time to its deadline. `even`: all programs the same time",
        ),
    ],
    inner: Some("depth"),
    waits: true,
    ..PolicyInfo::PLAIN
};

/// Times that the last plan is repeated if no other one comes.
const REPEATS: u64 = 3;

/// Share of a new service time in the mean of a lane's: 1/8, as for round trips of TCP. The first one is the mean.
const MEAN_SHARE: u64 = 8;

/// A window of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    lane: Lane,
    from: Time,
    until: Time,
}

/// Who has the drive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// All lanes if absent.
    lane: Option<Lane>,
    /// Start of the window; that of the run without one.
    from: Time,
    /// End of the turn, if there is one.
    until: Option<Time>,
}

impl Turn {
    /// All lanes have the drive until a window begins.
    fn shared(until: Option<Time>) -> Turn {
        Turn {
            lane: None,
            from: Time::ZERO,
            until,
        }
    }
}

/// Serves lanes in windows of time; U-Shape (SC'11), section 3.2.
///
/// Invariants: windows of `plan` ascend and do not overlap; `in_drive` is the sum of `held`.
#[derive(Debug)]
struct Windows {
    assignment: Assignment,
    inner: Box<dyn Gate>,
    guard: Nanos,
    lend: Nanos,
    period: Nanos,
    plan: Vec<Window>,
    /// Lane that the gate served last.
    serves: Lane,
    /// Lane of which the gate inside was asked last. It may have to see what the lane's scheduler chooses.
    tries: Lane,
    in_drive: u32,
    /// Commands of each lane in the drive.
    held: Vec<u32>,
    /// By tag: lane of the command.
    lane_of: [Lane; DriveTag::DEPTH_MAX as usize],
    /// Time from which the command that returns next is counted to have been served.
    served_from: Time,
    /// Time at which each lane last had a command in the drive.
    used: Vec<Time>,
    /// Mean service time of a lane's command.
    means: Vec<Nanos>,
}

impl Windows {
    /// A gate without a plan; `inner` has one lane.
    fn new(options: Options<'_>, inner: Box<dyn Gate>) -> Windows {
        let assignment = Assignment::of(options);
        Windows {
            means: vec![Nanos::ZERO; assignment.lanes()],
            used: vec![Time::ZERO; assignment.lanes()],
            held: vec![0; assignment.lanes()],
            assignment,
            inner,
            guard: options.duration("guard"),
            lend: options.duration("lend"),
            period: options.duration("period").max(Nanos::from_millis(1)),
            plan: Vec::new(),
            serves: Lane(0),
            tries: Lane(0),
            in_drive: 0,
            lane_of: [Lane(0); DriveTag::DEPTH_MAX as usize],
            served_from: Time::ZERO,
        }
    }

    /// Returns who has the drive at `now`.
    fn turn(&self, now: Time) -> Turn {
        let Some(last) = self.plan.last() else {
            return Turn::shared(None);
        };
        let behind = now.saturating_since(last.until).as_nanos() / self.period.as_nanos();
        let back = if now < last.until { 0 } else { behind + 1 };
        if back > REPEATS {
            return Turn::shared(None);
        }
        let shift = self.period * back;
        let over = |window: &Window| window.until + shift <= now;
        let next = self.plan.partition_point(over);
        let turn = match self.plan.get(next) {
            Some(window) if window.from + shift <= now => self.joined(next),
            window => Turn::shared(window.map(|window| window.from)),
        };
        Turn {
            lane: turn.lane,
            from: turn.from + shift,
            until: turn.until.map(|until| until + shift),
        }
    }

    /// A window of the plan with those of the same lane that follow without a gap.
    fn joined(&self, at: usize) -> Turn {
        let first = self.plan[at];
        let mut until = first.until;
        for next in &self.plan[at + 1..] {
            if next.lane != first.lane || next.from != until {
                break;
            }
            until = next.until;
        }
        Turn {
            lane: Some(first.lane),
            from: first.from,
            until: Some(until),
        }
    }

    /// True if the drive should be done by the end of the turn with what it has and one command more of the lane.
    fn fits(&self, now: Time, lane: Lane, until: Option<Time>) -> bool {
        let services = self.means[lane.index()] * u64::from(self.in_drive + 1);
        until.is_none_or(|until| now + services.max(self.guard) <= until)
    }

    /// Replaces what the plan has from the start of a window on.
    fn plan(&mut self, now: Time, new: Window) {
        self.plan.retain(|window| window.from < new.from);
        if let Some(last) = self.plan.last_mut() {
            last.until = last.until.min(new.from);
        }
        // What may be repeated ends with the last window.
        let oldest = self.period * 2;
        self.plan
            .retain(|window| window.until + oldest > now && window.until > window.from);
        if new.from < new.until {
            self.plan.push(new);
        }
    }

    /// The next ready lane behind the one that was served last.
    fn in_turn(&self, lanes: &dyn Lanes) -> Option<Lane> {
        let count = self.assignment.lanes();
        let behind = (1..=count).map(|step| Lane(((self.serves.index() + step) % count) as u8));
        let mut ready = behind.filter(|lane| lanes.is_ready(*lane));
        ready.next()
    }
}

/// A lane as the gate inside sees it, which knows one only.
struct Only<'a> {
    lanes: &'a dyn Lanes,
    lane: Lane,
}

impl Lanes for Only<'_> {
    fn state(&self, _: Lane) -> LaneState {
        self.lanes.state(self.lane)
    }

    fn is_ready(&self, _: Lane) -> bool {
        self.lanes.is_ready(self.lane)
    }

    fn is_behind_prefix(&self, _: Lane) -> bool {
        self.lanes.is_behind_prefix(self.lane)
    }

    fn staged(&self, _: Lane) -> usize {
        self.lanes.staged(self.lane)
    }
}

/// The earlier of two times, of which either may be missing.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

impl Gate for Windows {
    fn lanes(&self) -> usize {
        self.assignment.lanes()
    }

    fn lane(&self, origin: Origin, _: Class) -> Lane {
        self.assignment.lane(origin)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        let Turn {
            lane: own,
            from,
            until,
        } = self.turn(now);
        let lent = own.filter(|own| !lanes.is_ready(*own));
        if let Some(own) = lent {
            let from = self.used[own.index()].max(from) + self.lend;
            if self.in_drive > 0 || now < from {
                let wakes = Some(from).filter(|from| *from > now);
                return Next::Hold(earlier(wakes, until));
            }
        }
        let own = own.filter(|_| lent.is_none());
        let Some(lane) = own.or_else(|| self.in_turn(lanes)) else {
            return Next::Hold(until);
        };
        let foreign = own.is_some() && self.held[lane.index()] < self.in_drive;
        if foreign || !self.fits(now, lane, until) {
            return Next::Hold(until);
        }
        self.tries = lane;
        match self.inner.next(now, &Only { lanes, lane }) {
            Next::Take(_) => {
                self.serves = lane;
                Next::Take(lane)
            }
            Next::Hold(inner) => Next::Hold(earlier(inner, until)),
        }
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        let lane = self.tries;
        let ahead = self.inner.ahead(&Only { lanes, lane });
        ahead.map(|_| lane)
    }

    fn follows(&self, _: Lane, class: Class) -> bool {
        self.inner.follows(Lane(0), class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.inner.taken(now, command, Lane(0));
        if self.in_drive == 0 {
            self.served_from = now;
        }
        self.in_drive += 1;
        self.held[lane.index()] += 1;
        self.lane_of[command.tag.index()] = lane;
        self.used[lane.index()] = now;
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.inner.returned(now, tag);
        self.in_drive -= 1;
        let lane = self.lane_of[tag.index()].index();
        self.held[lane] -= 1;
        self.used[lane] = now;
        let (service, mean) = (now - self.served_from, self.means[lane]);
        let longer = service.saturating_sub(mean) / MEAN_SHARE;
        let shorter = mean.saturating_sub(service) / MEAN_SHARE;
        self.means[lane] = match mean {
            Nanos::ZERO => service,
            mean => mean + longer - shorter,
        };
        self.served_from = now;
    }

    fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.inner.starved(nth)
    }

    fn told(&mut self, now: Time, order: &GateOrder) {
        match *order {
            GateOrder::Assign { .. } => self.assignment.told(order),
            GateOrder::Window { lane, from, span } => {
                let known = lane.index() < self.assignment.lanes();
                let lane = if known { lane } else { Lane(0) };
                let until = from + span;
                self.plan(now, Window { lane, from, until });
            }
            GateOrder::Rate { .. } | GateOrder::Depth(_) | GateOrder::Age(_) => {
                self.inner.told(now, order);
            }
        }
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        self.assignment.in_force(tell);
        for &Window { lane, from, until } in &self.plan {
            let span = until - from;
            tell(&GateOrder::Window { lane, from, span });
        }
    }
}
