//! The planner: bounds of programs become windows of time. U-Shape (SC'11), section 3.2.
//!
//! ```text
//! asked, done ──> Planner ──> Assign, Window    for the gate `windows` of every server
//! ```
//!
//! Time is divided into periods, and a period into epochs. At the end of an epoch each program gets the bound for the next
//! epoch. At the end of a period the planner compares the bytes served with the bytes that the bounds demanded. Then the planner
//! sends the plan of the period after the next: a whole period before the first window of that plan.
//!
//! # Readings
//!
//! - A bound counts in epochs in which the program had a request outstanding. The paper has programs that are never without
//!   one; a program that computes demands nothing.
//! - If a program has requests outstanding and sends none in an epoch, its last bound holds: the program waits for its window.
//! - A program without requests in a whole period has no window, and gets its last one when it comes back.
//! - Programs that share a window are planned as one program with the earliest deadline.

use crate::bound::{Alpha, Bounds};
use crate::goal::GoalError;
use crate::group::{Locality, Votes};
use crate::model::Model;
use crate::profile::Profile;
use crate::sizes::{Demand, Shortage, Size, sizes};
use headtime_engine::{GateOrder, GateSpec, Lane};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// How a planner plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planning {
    /// Length of a period; default 1 s (section 4).
    pub period: Nanos,
    /// Length of an epoch; default 100 ms (section 4). At most a period.
    pub epoch: Nanos,
    /// Shortest window that a lane with requests gets; default 45 ms.
    pub least: Nanos,
    /// Who gives time if goals demand more than a period; default by deadline.
    pub shortage: Shortage,
}

impl Planning {
    /// The planning for disks with this gate, which is `windows`: its period and rule for shortages, and windows of three guards at
    /// least. In a shorter window nothing would begin.
    pub fn of(gate: &GateSpec) -> Planning {
        let options = gate.options();
        Planning {
            period: options.duration("period"),
            least: options.duration("guard") * 3,
            shortage: match options.choice("shortage") {
                "even" => Shortage::Even,
                _ => Shortage::Deadline,
            },
            ..Planning::default()
        }
    }
}

impl Default for Planning {
    fn default() -> Planning {
        Planning {
            period: Nanos::from_millis(1000),
            epoch: Nanos::from_millis(100),
            least: Nanos::from_millis(45),
            shortage: Shortage::Deadline,
        }
    }
}

/// A program that shares the servers.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Number of the program or export in its requests.
    pub number: u16,
    /// Goal and bounds; `None`: best effort.
    pub goal: Option<Aim>,
}

/// Goal of a program.
#[derive(Clone, Debug)]
pub struct Aim {
    /// Time at which the program must have ended.
    pub deadline: Time,
    /// Throughput of the program with the servers to itself.
    pub alone: Rate,
    /// Bounds of the program.
    pub bounds: Bounds,
}

/// Time of a seek over so many sectors.
pub type Seek = Box<dyn Fn(u64) -> Nanos + Send>;

/// Periods of a program so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// Periods in which the program was served.
    pub served: u64,
    /// Of these, periods with the shared window.
    pub shared: u64,
    /// Periods in which the seek to other programs' data and the reuse distance are known.
    pub compared: u64,
    /// Of these, periods in which the mean seek was longer.
    pub far: u64,
}

/// State of a program, for whoever looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Number of the program.
    pub number: u16,
    /// Lane; 0 is shared.
    pub lane: u8,
    /// Bound of this epoch, in bytes per second.
    pub bound: Rate,
    /// Throughput in the last period.
    pub served: Rate,
    /// Throughput that the bounds demanded in the last period.
    pub required: Rate,
    /// Window in the last plan.
    pub window: Nanos,
    /// Time by which cuts have set the program back so far, less what was repaid.
    pub lost: Nanos,
    /// Periods so far.
    pub periods: Periods,
}

/// Lane of a program, or the shared one.
#[derive(Clone, Debug)]
struct Served {
    number: u16,
    goal: Option<Aim>,
    /// Lane that nobody shares.
    own: u8,
    /// True if the program has the shared lane.
    shares: bool,
    votes: Votes,
    outstanding: u64,
    /// True if the program had a request outstanding in this epoch.
    busy: bool,
    bound: Rate,
    served: u64,
    required: u64,
    last: (u64, u64),
    /// Windows of this period and of the next.
    windows: [Nanos; 2],
    /// Starts of these windows.
    starts: [Time; 2],
    /// Last window that traffic was measured in.
    active_window: Nanos,
    lost: Nanos,
    /// Part of `lost` that the plan of the next period repays.
    repaying: Nanos,
    /// True if the program had no request in the last period.
    idle: bool,
    locality: Locality,
    periods: Periods,
}

/// Plans the windows of programs.
pub struct Planner {
    planning: Planning,
    /// The first has no number: it stands for requests of unknown programs, in the shared lane.
    programs: Vec<Served>,
    orders: VecDeque<GateOrder>,
    epoch_end: Time,
    period_start: Time,
    started: bool,
    seek: Option<Seek>,
}

impl Planner {
    /// A planner that starts at `start`. Each program gets a lane of its own.
    ///
    /// # Panics
    ///
    /// If there are more than 63 programs, or an epoch is longer than a period.
    pub fn new(planning: Planning, programs: Vec<Planned>, start: Time) -> Planner {
        assert!(programs.len() < 64, "more programs than lanes");
        assert!(planning.epoch <= planning.period && !planning.epoch.is_zero());
        let others = Served::new(0, None, 0);
        let own = programs.into_iter().zip(1..);
        let own = own.map(|(program, lane)| Served::new(program.number, program.goal, lane));
        Planner {
            planning,
            programs: std::iter::once(others).chain(own).collect(),
            orders: VecDeque::new(),
            epoch_end: start + planning.epoch,
            period_start: start,
            started: false,
            seek: None,
        }
    }

    /// The same with the time of seeks, so that programs may share a window where seeks between their data cost less than
    /// waiting. Without seek times each program has a window of its own.
    pub fn with_seeks(mut self, seek: Seek) -> Planner {
        self.seek = Some(seek);
        self
    }

    /// Place of a program; the first stands for all that are unknown.
    fn place(&self, number: u16) -> usize {
        let known = self.programs[1..].iter();
        known
            .enumerate()
            .find(|(_, program)| program.number == number)
            .map_or(0, |(at, _)| at + 1)
    }

    /// Notes a request that arrives at a server.
    pub fn asked(&mut self, now: Time, server: u16, number: u16, op: Op, extent: Extent) {
        let at = self.place(number);
        let shared = &self.programs[0];
        let shared = (shared.starts[0], shared.windows[0]);
        let program = &mut self.programs[at];
        let window = match program.shares {
            true => shared,
            false => (program.starts[0], program.windows[0]),
        };
        program.outstanding += 1;
        program.busy = true;
        program.locality.asked(now, window, server, extent.start);
        if let Some(aim) = &mut program.goal {
            aim.bounds.request(server, op, extent);
        }
    }

    /// Notes that a server is done with a request.
    pub fn done(&mut self, now: Time, server: u16, number: u16, bytes: u64) {
        let at = self.place(number);
        let program = &mut self.programs[at];
        program.outstanding = program.outstanding.saturating_sub(1);
        program.busy = true;
        program.served += bytes;
        program.locality.done(now, server);
    }

    /// Sets or clears the goal of a program. Returns false if there is no such program.
    pub fn set_goal(&mut self, number: u16, goal: Option<Aim>) -> bool {
        let at = self.place(number);
        if at == 0 {
            return false;
        }
        let program = &mut self.programs[at];
        (program.goal, program.bound, program.lost) = (goal, Rate(0), Nanos::ZERO);
        true
    }

    /// Returns the time at which the next order may be due. Returns `None` while no request is outstanding: ask for orders when a
    /// request comes.
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.started || !self.orders.is_empty() {
            return Some(Time::ZERO);
        }
        let waits = self.programs.iter().any(|program| program.outstanding > 0);
        waits.then_some(self.epoch_end)
    }

    /// The next order that is due at `now`.
    pub fn order(&mut self, now: Time) -> Option<GateOrder> {
        if !self.started {
            self.started = true;
            self.start();
        }
        while self.orders.is_empty() && now >= self.epoch_end {
            self.epoch_ends();
        }
        self.orders.pop_front()
    }

    /// Returns the state of each program, without those that are unknown.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        let period = self.planning.period;
        let rate = move |bytes: u64| Rate::of(bytes, period);
        self.programs[1..].iter().map(move |program| State {
            number: program.number,
            lane: program.lane().0,
            bound: program.bound,
            served: rate(program.last.0),
            required: rate(program.last.1),
            window: program.windows[1],
            lost: program.lost,
            periods: program.periods,
        })
    }

    /// Assigns programs to lanes, and plans the first two periods.
    fn start(&mut self) {
        for program in &self.programs[1..] {
            self.orders.push_back(program.assigned());
        }
        let first = self.initial();
        for (program, window) in self.programs.iter_mut().zip(first) {
            program.windows = [window; 2];
            program.active_window = window;
        }
        for period in 0..2 {
            self.send(self.period_start + self.planning.period * period);
        }
    }

    /// Sizes of the first windows: what the goals demand, and the rest in equal parts for best effort. The paper's rule, inverse
    /// to the throughput, sets a program that moves many bytes back by 2 s in the first two periods.
    fn initial(&self) -> Vec<Nanos> {
        let (period, least) = (self.planning.period, self.planning.least);
        let goals = self.programs[1..]
            .iter()
            .map(|program| program.goal.as_ref());
        let shares: f64 = goals.clone().flatten().map(|aim| aim.bounds.share()).sum();
        let best_effort = goals.clone().filter(Option::is_none).count();
        let rest = (1.0 - shares).max(0.0) / best_effort as f64;
        let weights = goals.map(|aim| aim.map_or(rest, |aim| aim.bounds.share()));
        let weights: Vec<f64> = weights.collect();
        let sum: f64 = weights.iter().sum();
        let (mut left, mut of) = (period - least, sum);
        let windows = weights.iter().map(|weight| {
            let part = left.as_nanos() as f64 * (weight / of).min(1.0);
            let window = match weight < &of {
                true => Nanos::from_nanos(part as u64).max(least).min(left),
                false => left,
            };
            (left, of) = (left - window, of - weight);
            window
        });
        std::iter::once(least).chain(windows).collect()
    }

    fn epoch_ends(&mut self) {
        let epoch = self.planning.epoch;
        for program in &mut self.programs {
            if program.busy {
                program.required += program.bound.bytes_in(epoch);
            }
            let waits = program.outstanding > 0;
            let next = program.goal.as_mut().map(|aim| aim.bounds.epoch_ends());
            if let Some(bound) = next.flatten() {
                program.bound = bound;
            }
            program.busy = waits;
        }
        let end = self.epoch_end;
        self.epoch_end = end + epoch;
        // An epoch that does not divide the period lasts into the next one.
        if end >= self.period_start + self.planning.period {
            self.period_ends();
        }
    }

    fn period_ends(&mut self) {
        let now = self.period_start + self.planning.period;
        self.period_start = now;
        let shared = self
            .programs
            .iter()
            .any(|program| program.shares && program.served > 0);
        for (at, program) in self.programs.iter_mut().enumerate() {
            program.idle = program.served == 0 && program.outstanding == 0;
            program.periods.served += u64::from(program.served > 0);
            program.periods.shared += u64::from(program.served > 0 && program.shares);
            if program.served > 0 && !program.shares || at == 0 && shared {
                program.active_window = program.windows[0];
            }
        }
        self.regroup();
        let mut demands: Vec<Demand> = self
            .programs
            .iter()
            .map(|program| program.demand(now))
            .collect();
        let (shared, own) = demands.split_first_mut().expect("the shared lane");
        for (program, demand) in self.programs[1..].iter().zip(own) {
            if program.shares {
                shared.add(&std::mem::take(demand));
            }
        }
        let Planning {
            period,
            least,
            shortage,
            ..
        } = self.planning;
        let sizes = sizes(period, least, shortage, &demands);
        for (program, size) in self.programs.iter_mut().zip(sizes) {
            program.plan(size);
        }
        self.send(now + self.planning.period);
    }

    /// Moves programs to windows of their own, or to the shared one.
    fn regroup(&mut self) {
        for at in 1..self.programs.len() {
            let wants = self.wants_own(at);
            let (period, program) = (self.planning.period, &mut self.programs[at]);
            program.periods.compared += u64::from(wants.is_some());
            program.periods.far += u64::from(wants == Some(true));
            let short = program.goal.is_some() && program.served < program.required;
            let own = match wants.map(|own| program.votes.vote(own)) {
                _ if program.shares && short => Some(true),
                Some(voted) => voted,
                None => None,
            };
            if own != Some(program.shares) {
                continue;
            }
            program.shares = !program.shares;
            program.votes = Votes::after(short && !program.shares);
            let window = program.active_window;
            if program.shares {
                // The shared window has to serve one program more, and repays the program's loss.
                let lost = std::mem::take(&mut program.lost);
                self.programs[0].active_window += window;
                self.programs[0].lost += lost;
            } else {
                let lost = std::mem::take(&mut self.programs[0].lost);
                self.programs[at].lost = lost;
            }
            let program = &mut self.programs[at];
            // The window that should serve what the bounds demand.
            let alone = program.goal.as_ref().map_or(0, |aim| aim.alone.0);
            if !program.shares && alone > 0 {
                program.active_window = Rate(alone).time(program.required).min(period);
                program.served = program.required;
                let left = program.active_window;
                let shared = &mut self.programs[0].active_window;
                *shared = shared.saturating_sub(left).max(self.planning.least);
            }
            let program = &self.programs[at];
            self.orders.push_back(program.assigned());
        }
    }

    /// True if seeks between the program's data and that of others cost more than waiting for the program's next request.
    fn wants_own(&mut self, at: usize) -> Option<bool> {
        let seek = self.seek.as_ref()?;
        let reuse = self.programs[at].locality.take_reuse()?;
        let own = &self.programs[at];
        let others = self.programs[1..]
            .iter()
            .filter(|other| other.number != own.number);
        let active = others.filter(|other| other.served > 0);
        let seeks = active.filter_map(|other| own.locality.distance(&other.locality).map(seek));
        let (sum, count) = seeks.fold((Nanos::ZERO, 0), |(sum, count), seek| {
            (sum + seek, count + 1)
        });
        (count > 0).then(|| sum / count > reuse)
    }

    /// Sends the plan of the period that starts at `from`.
    fn send(&mut self, mut from: Time) {
        for program in &mut self.programs {
            let span = program.windows[1];
            program.starts = [program.starts[1], from];
            if span.is_zero() {
                continue;
            }
            self.orders.push_back(GateOrder::Window {
                lane: Lane(program.own),
                from,
                span,
            });
            from += span;
        }
    }
}

impl Aim {
    /// The goal of a run that starts at `start` and has to take `run_time`, of a program with this profile and a model that was
    /// trained with the profile. Sectors have `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If the program cannot end so early, or the profile has no I/O time.
    pub fn new(
        profile: &Profile,
        model: Arc<Model>,
        run_time: Nanos,
        start: Time,
        sector_bytes: u32,
    ) -> Result<Aim, GoalError> {
        let alpha = Alpha::new(run_time, profile)?;
        let io = profile.least().saturating_sub(profile.compute());
        Ok(Aim {
            deadline: Time::from_nanos(start.as_nanos().saturating_add(run_time.as_nanos())),
            alone: Rate::of(profile.bytes(), io),
            bounds: Bounds::new(model, alpha, sector_bytes),
        })
    }
}

impl Served {
    fn new(number: u16, goal: Option<Aim>, own: u8) -> Served {
        Served {
            number,
            goal,
            own,
            shares: false,
            votes: Votes::default(),
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
            repaying: Nanos::ZERO,
            idle: false,
            locality: Locality::default(),
            periods: Periods::default(),
        }
    }

    /// Returns the lane of the program's requests.
    fn lane(&self) -> Lane {
        match self.shares {
            true => Lane(0),
            false => Lane(self.own),
        }
    }

    fn assigned(&self) -> GateOrder {
        GateOrder::Assign {
            of: self.number,
            lane: self.lane(),
        }
    }

    /// Traffic and demand of the program in the period that ends now.
    fn demand(&self, now: Time) -> Demand {
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
        }
    }

    /// Takes the size of the window in the period after the next.
    fn plan(&mut self, size: Size) {
        self.last = (self.served, self.required);
        (self.served, self.required) = (0, 0);
        self.windows = [self.windows[1], size.window];
        match self.shares {
            true => self.repaying = Nanos::ZERO,
            // What a program lost before a pause is still owed.
            false if self.idle => self.repaying = Nanos::ZERO,
            false => (self.lost, self.repaying) = (size.lost, size.repays),
        }
    }
}

#[cfg(test)]
mod tests;
