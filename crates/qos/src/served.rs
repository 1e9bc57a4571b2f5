//! Measurements and windows of a program in the periods of a plan.

use crate::aim::Aim;
use crate::bound::Alpha;
use crate::drift::Drift;
use crate::group::{Grouped, Locality, Votes};
use crate::sizes::{Demand, Size};
use headtime_engine::{GateOrder, Lane};
use headtime_units::{Nanos, Rate, Time};

/// Lane of a program, or the shared one.
///
/// Invariants:
///
/// - `own` is the place of the program in the planner's list; 0 is the shared lane.
/// - `outstanding > 0` ⇒ `busy`.
/// - `goal.is_none()` ⇒ `lost = behind = 0`.
/// - `p99.is_some()` ⇒ `shares = [false; 3]`.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub number: u16,
    pub goal: Option<Aim>,
    /// Time within which 99 % of the requests must be done.
    pub p99: Option<Nanos>,
    /// The program's own lane, which no other program has.
    pub own: u8,
    /// True if the program has the shared lane: in the measured period, in this period, and in the next plan.
    pub shares: [bool; 3],
    pub votes: Votes,
    pub grouped: Grouped,
    pub outstanding: u64,
    /// True if the program had a request outstanding in this epoch.
    pub busy: bool,
    pub bound: Rate,
    pub served: u64,
    pub required: u64,
    pub last: (u64, u64),
    /// Windows of this period and of the next.
    pub windows: [Nanos; 2],
    /// Starts of these windows.
    pub starts: [Time; 2],
    /// Last window in which traffic was measured.
    pub active_window: Nanos,
    pub lost: Nanos,
    /// Delay of the program behind its course at the end of the last period.
    pub behind: Nanos,
    /// Bytes served since the goal was set.
    pub progress: u64,
    /// Time of the epochs since the goal was set in which the program had a request outstanding.
    pub clock: Nanos,
    /// Part of this period's window that lies in such epochs.
    pub within: Nanos,
    /// Part of `lost` that the plan of the next period repays.
    pub repaying: Nanos,
    /// True if the program had no request in the last period.
    pub idle: bool,
    pub locality: Locality,
}

impl Served {
    pub fn new(number: u16, goal: Option<Aim>, own: u8) -> Served {
        Served {
            number,
            goal,
            p99: None,
            own,
            shares: [false; 3],
            votes: Votes::default(),
            grouped: Grouped::default(),
            outstanding: 0,
            busy: false,
            bound: Rate(0),
            served: 0,
            required: 0,
            last: (0, 0),
            windows: [Nanos::ZERO; 2],
            starts: [Time::ZERO; 2],
            active_window: Nanos::ZERO,
            lost: Nanos::ZERO,
            behind: Nanos::ZERO,
            progress: 0,
            clock: Nanos::ZERO,
            within: Nanos::ZERO,
            repaying: Nanos::ZERO,
            idle: false,
            locality: Locality::default(),
        }
    }

    /// Returns the lane of the program's requests.
    pub fn lane(&self) -> Lane {
        match self.shares[1] {
            true => Lane(0),
            false => Lane(self.own),
        }
    }

    pub fn assigned(&self) -> GateOrder {
        GateOrder::Assign {
            of: self.number,
            lane: self.lane(),
        }
    }

    /// Traffic and demand of the program in the period that ends at `now`. A period has `parts` parts.
    pub fn demand(&self, now: Time, parts: u64) -> Demand {
        let left = self
            .goal
            .as_ref()
            .map(|aim| aim.deadline.saturating_since(now));
        Demand {
            left: left.filter(|_| !self.idle),
            window: self.active_window,
            served: self.served,
            required: self.required,
            lost: self.lost,
            repaying: self.repaying,
            must: !self.idle,
            promised: self.p99.map_or(0, |_| parts),
        }
    }

    /// Loss that windows repay: the loss by the bounds, or the delay behind the course if that is longer.
    pub fn loss(&self) -> Nanos {
        self.lost.max(self.behind)
    }

    /// Least time that the rest of the run needs.
    pub fn rest(&self) -> Nanos {
        let rest = |aim: &Aim| aim.rest_of(self.progress);
        self.goal.as_ref().map_or(Nanos::ZERO, rest)
    }

    /// Part of the program's own window in the interval of `length` that ends at `end`.
    pub fn window_since(&self, end: Time, length: Nanos) -> Nanos {
        if self.shares[1] {
            return Nanos::ZERO;
        }
        let from = self.starts[0].max(Time::ZERO + end.saturating_since(Time::ZERO + length));
        end.min(self.starts[0] + self.windows[0])
            .saturating_since(from)
    }

    /// Compares the period that ends at `now` with the profile. If a run has become slower and its rest fits, the rest
    /// determines its new bound. Start and end of a window together take as long as the `least` window, so that time is not
    /// counted.
    pub fn look_for_drift(&mut self, now: Time, least: Nanos) {
        let window = std::mem::take(&mut self.within).saturating_sub(least);
        let (before, progress) = (
            self.progress - self.served.min(self.progress),
            self.progress,
        );
        let Some(aim) = &mut self.goal else {
            return;
        };
        aim.watch.period_ends(window, before, progress);
        if let Some(Drift::Slower(_)) = aim.watch.drift() {
            let [compute, io] = aim.rest(progress);
            let left = aim.deadline.saturating_since(now + compute);
            let again = Alpha::of_rest(left, io);
            aim.bounds.set_alpha(again.unwrap_or(aim.alpha));
            aim.bounds.set_most(again.map(|_| aim.watch.rate()));
            aim.again = again.is_some();
            if aim.again {
                self.behind = Nanos::ZERO;
            }
        }
    }

    /// True if the bound was derived from the rest of the run. A derived bound includes all losses so far.
    pub fn catches_up(&self) -> bool {
        self.goal.as_ref().is_some_and(|aim| aim.again)
    }

    /// Sets the window of the period after the next. `shared` is the loss that the shared window repays.
    pub fn plan(&mut self, size: Size, shared: Nanos) {
        self.last = (self.served, self.required);
        (self.served, self.required) = (0, 0);
        self.windows = [self.windows[1], size.window];
        self.repaying = match self.shares[2] {
            true => shared.min(self.loss()),
            false => size.repays,
        };
    }
}
