//! `windows`: the drive serves one lane at a time, by a plan of windows.
//!
//! # Problem
//!
//! Programs that share a disk lose most of the disk's time to seeks between their data. A program with a file that is
//! striped over several servers needs all these servers at the same time.
//!
//! # How it works
//!
//! An order [assigns](GateOrder::Assign) a program or an export to a lane. A plan gives lanes windows of time
//! ([`GateOrder::Window`]); a later order replaces all that begins at its start or after. During a window only its
//! lane's requests go to the drive, as the gate inside allows. A request goes only if the drive should be done with
//! everything by the end of the window. The estimate is the sum of the lane's mean service times plus three deviations
//! of the sum, and at least `guard`. The first request of a window needs `guard` alone, and waits until the drive is
//! empty of other lanes.
//!
//! A lane without a request during `lend` lends its window. Other lanes then send one command at a time, until the lane
//! has a request again. A lane with an order to [keep](GateOrder::Keep) its windows does not lend.
//!
//! Requests of class `real-time` have a lane of their own. The urgent lane goes first in every window. Urgent requests do not wait
//! for a window, and the window's lane loses the time that they take.
//!
//! If no new plan comes, the windows of the last `period` are repeated three times. Afterwards, and before the first
//! window, all lanes share the drive and go in turn.
//!
//! # Bound
//!
//! The gate promises nothing by itself: the plan has to give each lane windows.
//!
//! # Source
//!
//! Zhang, Davis, Jiang, QoS Support for End Users of I/O-intensive Applications (SC'11), section 3.2. `guard`, `lend`
//! and plans that repeat are readings: the paper names no protocol. The paper weighs seeks against waiting for the
//! program's next request. `lend` bounds this wait.

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
    idea: "serves one program at a time, by a plan, and urgent requests at any time",
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
            "losses",
            &["course", "bounds"],
            "for whoever plans. bounds: a program is paid back what its bounds demanded and it was not served, as in the paper; \
             course: at least the time by which the program is behind its profile",
        ),
        OptionInfo::choice(
            "shortage",
            &["deadline", "even"],
            "for whoever plans: who gives time if goals demand more than a period. `deadline`: each program in proportion to \
             the time to its deadline, as in the paper. `even`: all programs the same time",
        ),
    ],
    inner: Some("depth"),
    waits: true,
    ..PolicyInfo::PLAIN
};

/// Number of times that the last plan is repeated if no new plan comes.
const PLAN_REPEATS: u64 = 3;

/// Weight of a new service time in a lane's mean: 1/8, as for round trips of TCP (RFC 6298). The first service time is
/// the first mean.
const MEAN_SHARE: u64 = 8;

/// Weight of a new difference from the mean in the mean deviation: 1/4 (RFC 6298). The first mean deviation is half of
/// the first mean.
const DEVIATION_SHARE: u64 = 4;

/// Margin on the sum of service times, in mean deviations. Three mean deviations are 2.4 standard deviations of a
/// normal distribution. One sum in 120 exceeds this margin.
const MARGIN_DEVIATIONS: u64 = 3;

/// A window of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    lane: Lane,
    from: Time,
    until: Time,
}

/// The lane that has the drive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// Lane with the drive; all lanes if absent.
    lane: Option<Lane>,
    /// Start of the window; [`Time::ZERO`] without a window.
    from: Time,
    /// End of the turn, if there is one.
    until: Option<Time>,
}

impl Turn {
    /// Returns a turn in which all lanes have the drive until a window begins.
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
    /// Lane for which the gate inside was asked last. The gate inside may have to see the request that this lane's
    /// scheduler chooses.
    tries: Lane,
    /// Lane whose prefix went last. The request after the prefix goes next.
    behind_prefix: Option<Lane>,
    in_drive: u32,
    /// Commands of each lane in the drive.
    held: Vec<u32>,
    /// By tag: lane of the command.
    lane_of: [Lane; DriveTag::DEPTH_MAX as usize],
    /// Start of the service of the command that returns next: the last completion, or the dispatch to an empty drive.
    served_from: Time,
    /// Time at which each lane last had a command in the drive.
    used: Vec<Time>,
    /// Time until which each lane keeps its windows to itself.
    keeps: Vec<Time>,
    /// Mean service time of a lane's command, and the mean deviation.
    services: Vec<(Nanos, Nanos)>,
}

impl Windows {
    /// Creates a gate without a plan. `inner` has one lane.
    fn new(options: Options<'_>, inner: Box<dyn Gate>) -> Windows {
        let assignment = Assignment::of(options);
        let lanes = assignment.lanes() + 1;
        Windows {
            services: vec![(Nanos::ZERO, Nanos::ZERO); lanes],
            used: vec![Time::ZERO; lanes],
            keeps: vec![Time::ZERO; lanes],
            held: vec![0; lanes],
            assignment,
            inner,
            guard: options.duration("guard"),
            lend: options.duration("lend"),
            period: options.duration("period").max(Nanos::from_millis(1)),
            plan: Vec::new(),
            serves: Lane(0),
            tries: Lane(0),
            behind_prefix: None,
            in_drive: 0,
            lane_of: [Lane(0); DriveTag::DEPTH_MAX as usize],
            served_from: Time::ZERO,
        }
    }

    /// Returns the turn at `now`.
    fn turn(&self, now: Time) -> Turn {
        let Some(last) = self.plan.last() else {
            return Turn::shared(None);
        };
        let behind = now.saturating_since(last.until).as_nanos() / self.period.as_nanos();
        let back = if now < last.until { 0 } else { behind + 1 };
        if back > PLAN_REPEATS {
            return Turn::shared(None);
        }
        let shift = self.period * back;
        let over = |window: &Window| window.until + shift <= now;
        let next = self.plan.partition_point(over);
        let turn = match self.plan.get(next) {
            Some(window) if window.from + shift <= now => self.joined(next),
            window => Turn::shared(window.map(|window| window.from)),
        };
        // Only the last period is repeated.
        let begin = match back {
            0 => Time::ZERO,
            _ => last.until.saturating_sub(self.period),
        };
        Turn {
            lane: turn.lane,
            from: turn.from.max(begin) + shift,
            until: turn.until.map(|until| until + shift),
        }
    }

    /// Joins a window of the plan with its neighbours of the same lane.
    fn joined(&self, at: usize) -> Turn {
        let Window {
            lane,
            mut from,
            mut until,
        } = self.plan[at];
        for before in self.plan[..at].iter().rev() {
            if before.lane != lane || before.until != from {
                break;
            }
            from = before.from;
        }
        for next in &self.plan[at + 1..] {
            if next.lane != lane || next.from != until {
                break;
            }
            until = next.until;
        }
        Turn {
            lane: Some(lane),
            from,
            until: Some(until),
        }
    }

    /// Returns true if the drive should complete one more command of the lane by the end of the turn. The first command
    /// of a window needs `guard` alone. Otherwise a lane with services longer than its windows would never be served.
    fn fits(&self, now: Time, lane: Lane, turn: Turn) -> bool {
        let Some(until) = turn.until else {
            return true;
        };
        let is_first = turn.lane == Some(lane) && self.in_drive == 0;
        if is_first && self.used[lane.index()] < turn.from {
            return now + self.guard <= until;
        }
        let count = u64::from(self.in_drive + 1);
        let (mean, deviation) = self.services[lane.index()];
        // The squares of the deviations add up.
        let deviation = u128::from(deviation.as_nanos());
        let deviation = (deviation * deviation * u128::from(count)).isqrt();
        let deviation = Nanos::from_nanos(u64::try_from(deviation).unwrap_or(u64::MAX));
        let services = mean * count + deviation * MARGIN_DEVIATIONS;
        now + services.max(self.guard) <= until
    }

    /// Replaces the part of the plan from the start of the new window on.
    fn plan(&mut self, now: Time, new: Window) {
        self.plan.retain(|window| window.from < new.from);
        if let Some(last) = self.plan.last_mut() {
            last.until = last.until.min(new.from);
        }
        // Only the period up to the end of the last window can be repeated, so windows older than two periods can go.
        let oldest = self.period * 2;
        self.plan
            .retain(|window| window.until + oldest > now && window.until > window.from);
        if new.from < new.until {
            self.plan.push(new);
        }
    }

    /// Lane of urgent requests. The lanes that orders assign have lower numbers.
    fn urgent(&self) -> Lane {
        Lane(self.assignment.lanes() as u8)
    }

    /// Asks the gate inside for a command of a lane. If the gate inside holds, this gate holds until `until` at the
    /// latest.
    fn take(&mut self, now: Time, lanes: &dyn Lanes, lane: Lane, until: Option<Time>) -> Next {
        self.tries = lane;
        match self.inner.next(now, &Only { lanes, lane }) {
            Next::Take(_) => Next::Take(lane),
            Next::Hold(inner) => Next::Hold(earlier(inner, until)),
        }
    }

    /// Returns the next ready lane after the last served one.
    fn in_turn(&self, lanes: &dyn Lanes) -> Option<Lane> {
        let count = self.assignment.lanes();
        let behind = (1..=count).map(|step| Lane(((self.serves.index() + step) % count) as u8));
        let mut ready = behind.filter(|lane| lanes.is_ready(*lane));
        ready.next()
    }
}

/// One lane as the gate inside sees it. The gate inside knows one lane only.
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

/// The earlier of two times; either may be missing.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

impl Gate for Windows {
    fn lanes(&self) -> usize {
        self.assignment.lanes() + 1
    }

    fn lane(&self, origin: Origin, class: Class) -> Lane {
        match class {
            Class::REAL_TIME => self.urgent(),
            _ => self.assignment.lane(origin),
        }
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        lane == self.urgent() && other != lane
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        // Prefix and request take the drive no longer than the request alone. The window had room for the request.
        if lanes.is_behind_prefix(self.tries) {
            self.behind_prefix = Some(self.tries);
        }
        if let Some(lane) = self.behind_prefix.filter(|lane| lanes.staged(*lane) > 0) {
            return self.take(now, lanes, lane, None);
        }
        let urgent = self.urgent();
        if lanes.is_ready(urgent) {
            let next = self.take(now, lanes, urgent, None);
            let LaneState { queued, staged, .. } = lanes.state(urgent);
            // A flush lends the lane to earlier requests. The gate inside may have to see a chosen request of the
            // earlier requests' lanes first.
            if next == Next::Take(urgent) || queued + staged > 0 {
                return next;
            }
        }
        let turn = self.turn(now);
        let Turn {
            lane: own,
            from,
            until,
        } = turn;
        let lent = own.filter(|own| !lanes.is_ready(*own));
        if let Some(own) = lent {
            let from = self.used[own.index()].max(from) + self.lend;
            let from = from.max(self.keeps[own.index()]);
            if self.in_drive > 0 || now < from {
                let wakes = Some(from).filter(|from| *from > now);
                return Next::Hold(earlier(wakes, until));
            }
        }
        let own = own.filter(|_| lent.is_none());
        let Some(lane) = own.or_else(|| self.in_turn(lanes)) else {
            return Next::Hold(until);
        };
        let in_window = self.held[lane.index()] + self.held[urgent.index()];
        let foreign = own.is_some() && in_window < self.in_drive;
        if foreign || !self.fits(now, lane, turn) {
            return Next::Hold(until);
        }
        let next = self.take(now, lanes, lane, until);
        if next == Next::Take(lane) {
            self.serves = lane;
        }
        next
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
        self.behind_prefix = None;
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.inner.returned(now, tag);
        self.in_drive -= 1;
        let lane = self.lane_of[tag.index()].index();
        self.held[lane] -= 1;
        self.used[lane] = now;
        let service = now - self.served_from;
        let (mean, deviation) = self.services[lane];
        let longer = service.saturating_sub(mean);
        let shorter = mean.saturating_sub(service);
        self.services[lane] = match mean {
            Nanos::ZERO => (service, service / 2),
            mean => (
                mean + longer / MEAN_SHARE - shorter / MEAN_SHARE,
                deviation - deviation / DEVIATION_SHARE + (longer + shorter) / DEVIATION_SHARE,
            ),
        };
        self.served_from = now;
    }

    fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.inner.starved(nth)
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        match *order {
            GateOrder::Assign { .. } => self.assignment.obey(order),
            GateOrder::Window { lane, from, span } => {
                let known = lane.index() < self.assignment.lanes();
                let lane = if known { lane } else { Lane(0) };
                let until = from + span;
                self.plan(now, Window { lane, from, until });
            }
            GateOrder::Keep { lane, until } => {
                if lane.index() < self.assignment.lanes() {
                    self.keeps[lane.index()] = until;
                }
            }
            GateOrder::Rate { .. } | GateOrder::Depth(_) | GateOrder::Age(_) => {
                self.inner.obey(now, order);
            }
        }
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        self.assignment.in_force(tell);
        for &Window { lane, from, until } in &self.plan {
            let span = until - from;
            tell(&GateOrder::Window { lane, from, span });
        }
        for (lane, until) in (0..).map(Lane).zip(self.keeps.iter().copied()) {
            if until > Time::ZERO {
                tell(&GateOrder::Keep { lane, until });
            }
        }
    }
}
