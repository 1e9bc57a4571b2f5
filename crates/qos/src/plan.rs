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
//! - A bound counts in epochs in which the program had a request outstanding. The programs of the paper always have one. Here a
//!   program that computes demands nothing.
//! - If a program has requests outstanding and sends none in an epoch, its last bound holds: the program waits for its window.
//! - A program without requests in a whole period has no window. When the program makes requests again, it gets its last window.
//! - Epochs in which a program had no request outstanding do not count against its course. The course leaves out such epochs of the
//!   profile.
//! - Periods in which no program had a request are left out. The last plan counts until the next one.
//! - A program that has a loss without a plan to repay the loss lends none of its windows.
//! - Programs that share a window are planned as one program with the earliest deadline.
//! - If a program has become [slower](Drift::Slower) than its profile, the planner compares the rest of the run with the deadline. If the
//!   rest fits, its bound is the throughput that the rest needs, and it has no course. Otherwise the goal's bound and course remain.

use crate::aim::Aim;
use crate::drift::Drift;
use crate::group::{Grouped, Votes};
use crate::served::Served;
use crate::setting::Setting;
use crate::sizes::{Demand, Shortage, sizes};
use headtime_engine::{GateOrder, GateSpec, Lane};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};
use std::collections::VecDeque;

/// Options of a planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planning {
    /// Length of a period; default 1 s (section 4).
    pub period: Nanos,
    /// Length of an epoch; default 100 ms (section 4). At most a period.
    pub epoch: Nanos,
    /// Shortest window that a lane with requests gets; default 45 ms.
    pub least: Nanos,
    /// True if the loss of a program is never less than its delay behind the course of its profile. Default true. In the
    /// paper, bounds alone determine losses.
    pub course: bool,
    /// True if the planner compares runs with their profiles, and derives a new bound for a run that has become slower.
    /// Default true. The paper assumes that runs equal their profiles.
    pub drift: bool,
    /// Rule for cutting windows if goals demand more than a period. Default: by deadline.
    pub shortage: Shortage,
}

impl Planning {
    /// Checks that windows can be planned for this gate, which is a gate `windows`.
    ///
    /// # Errors
    ///
    /// If a period is shorter than an epoch, or has no room for two windows of three guards each.
    pub fn check(gate: &GateSpec) -> Result<(), String> {
        let options = gate.options();
        let (period, guard) = (options.duration("period"), options.duration("guard"));
        let least = Setting::EPOCH.max(guard * 6);
        match period >= least {
            true => Ok(()),
            false => Err(format!(
                "its period is {period}; allowed is {least} or more with a guard of {guard}"
            )),
        }
    }

    /// Options for disks with this gate, which is a gate `windows`. The period is the gate's. The least window is three
    /// guards long, since no request would start in a shorter window.
    pub fn of(gate: &GateSpec) -> Planning {
        let options = gate.options();
        Planning {
            period: options.duration("period"),
            least: options.duration("guard") * 3,
            course: options.choice("losses") == "course",
            drift: options.choice("losses") == "course",
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
            epoch: Setting::EPOCH,
            least: Nanos::from_millis(45),
            course: true,
            drift: true,
            shortage: Shortage::Deadline,
        }
    }
}

/// A program that shares the servers.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Number of the program or export in its requests.
    pub number: u16,
    /// Goal and bounds. `None` means best effort.
    pub goal: Option<Aim>,
}

/// Time of a seek over a number of sectors.
pub type Seek = Box<dyn Fn(u64) -> Nanos + Send>;

/// State of a program, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Number of the program.
    pub number: u16,
    /// Lane of the program. Lane 0 is shared.
    pub lane: u8,
    /// Bound of this epoch, in bytes per second.
    pub bound: Rate,
    /// Throughput in the last period.
    pub served: Rate,
    /// Throughput that the bounds demanded in the last period.
    pub required: Rate,
    /// Window in the last plan.
    pub window: Nanos,
    /// Time by which cuts have set the program back, less the time repaid. At least the program's delay behind the course of
    /// its run.
    pub lost: Nanos,
    /// Least time that the rest of the run needs with all servers, by the profile. 0 without a goal. For a slower run, the
    /// I/O time is multiplied by the slowdown of the last periods.
    pub rest: Nanos,
    /// Difference of the run from its profile; `None` until the planner finds a difference, and without a goal.
    pub drift: Option<Drift>,
    /// Choices between the program's own window and the shared window so far.
    pub grouped: Grouped,
}

/// Plans the windows of programs.
pub struct Planner {
    planning: Planning,
    /// Programs. The first has no number: it stands for requests of unknown programs, in the shared lane.
    programs: Vec<Served>,
    orders: VecDeque<GateOrder>,
    epoch_end: Time,
    period_start: Time,
    started: bool,
    seek: Option<Seek>,
}

impl Planner {
    /// Creates a planner that starts at `start`. Each program gets a lane of its own.
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

    /// Adds the times of seeks. Programs may then share a window if seeks between their data cost less than waiting. Without
    /// seek times each program has a window of its own.
    pub fn with_seeks(mut self, seek: Seek) -> Planner {
        self.seek = Some(seek);
        self
    }

    /// Adds a promise: 99 % of a program's requests are done within `p99`, if the program's windows have room for the
    /// requests. [`Planning::check_p99`] tells which times are allowed. A program without requests also has its windows, and
    /// lends them.
    ///
    /// # Panics
    ///
    /// If there is no such program.
    pub fn with_p99(mut self, number: u16, p99: Nanos) -> Planner {
        let at = self.place(number);
        assert!(at > 0, "no program {number}");
        self.programs[at].p99 = Some(p99);
        self
    }

    /// Number of parts of a period. Each part has a window of each program with a promise. 1 without promises.
    fn parts(&self) -> u64 {
        let promises = self.programs.iter().filter_map(|program| program.p99);
        promises.min().map_or(1, |p99| self.planning.parts(p99))
    }

    /// Index of a program. The first stands for all unknown programs.
    fn place(&self, number: u16) -> usize {
        let known = self.programs[1..].iter();
        known
            .enumerate()
            .find(|(_, program)| program.number == number)
            .map_or(0, |(at, _)| at + 1)
    }

    /// Notes a request that arrives at a server.
    pub fn asked(&mut self, now: Time, server: u16, number: u16, op: Op, extent: Extent) {
        if self.started {
            self.catch_up(now);
        }
        let at = self.place(number);
        let shared = &self.programs[0];
        let shared = (shared.starts[0], shared.windows[0]);
        let program = &mut self.programs[at];
        let window = match program.shares[1] {
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

    /// Notes that a server has finished a request.
    pub fn done(&mut self, now: Time, server: u16, number: u16, bytes: u64) {
        let at = self.place(number);
        let program = &mut self.programs[at];
        program.outstanding = program.outstanding.saturating_sub(1);
        program.busy = true;
        program.served += bytes;
        program.progress += bytes;
        program.locality.done(now, server);
    }

    /// Sets or clears the goal of a program. Returns false if there is no such program.
    pub fn set_goal(&mut self, number: u16, goal: Option<Aim>) -> bool {
        let at = self.place(number);
        if at == 0 {
            return false;
        }
        let program = &mut self.programs[at];
        (program.goal, program.bound) = (goal, Rate(0));
        (program.lost, program.repaying) = (Nanos::ZERO, Nanos::ZERO);
        (program.behind, program.progress) = (Nanos::ZERO, 0);
        (program.clock, program.within) = (Nanos::ZERO, Nanos::ZERO);
        program.required = 0;
        true
    }

    /// Share of the servers' time that all goals demand while their programs have requests outstanding.
    pub fn demanded(&self) -> f64 {
        let aims = self.programs.iter().filter_map(|one| one.goal.as_ref());
        aims.map(|aim| aim.bounds.share()).sum()
    }

    /// Returns the time at which the next order may be due. Returns `None` while no request is outstanding. The caller then
    /// asks for orders when a request comes.
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.started || !self.orders.is_empty() {
            return Some(Time::ZERO);
        }
        let waits = self.programs.iter().any(|program| program.outstanding > 0);
        waits.then_some(self.epoch_end)
    }

    /// Returns the next order that is due at `now`.
    pub fn order(&mut self, now: Time) -> Option<GateOrder> {
        if !self.started {
            self.started = true;
            self.start();
        }
        if self.orders.is_empty() && !self.is_idle() {
            self.catch_up(now);
        }
        self.orders.pop_front()
    }

    /// True if no program had a request outstanding or was served in this period. The planner then waits for a request.
    fn is_idle(&self) -> bool {
        let idle = |program: &Served| !program.busy && program.served == 0 && program.required == 0;
        self.programs.iter().all(idle)
    }

    /// Ends the epochs that end by `now`. A request after a pause does not count in the epochs of the pause.
    fn catch_up(&mut self, now: Time) {
        while now >= self.epoch_end {
            match self.is_left_out(now) {
                true => self.skip(now),
                false => self.epoch_ends(),
            }
        }
    }

    /// Number of periods that have ended by `now`, from the start of the current one.
    fn passed(&self, now: Time) -> u64 {
        now.saturating_since(self.period_start).as_nanos() / self.planning.period.as_nanos()
    }

    /// True if the periods up to `now` are left out. One or two periods are left out if no program had a request. Three or
    /// more periods pass only if the caller reports no request and fetches no orders. They are left out if no program was
    /// served.
    fn is_left_out(&self, now: Time) -> bool {
        let unserved = || self.programs.iter().all(|program| program.served == 0);
        match self.passed(now) {
            0 => false,
            1 | 2 => self.is_idle(),
            _ => unserved(),
        }
    }

    /// Leaves out the periods up to `now`. The last plan counts until the next one, and programs have the lanes of that plan.
    fn skip(&mut self, now: Time) {
        let period = self.planning.period;
        self.period_start += period * self.passed(now);
        self.epoch_end = self.period_start + self.planning.epoch;
        for program in &mut self.programs {
            let [_, measured, begins] = program.shares;
            program.shares = [begins; 3];
            program.windows[0] = program.windows[1];
            program.required = 0;
            if measured != begins {
                self.orders.push_back(program.assigned());
            }
        }
        for ahead in 0..2 {
            self.send(self.period_start + period * ahead);
        }
    }

    /// Returns the state of each known program.
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
            lost: program.loss(),
            rest: program.rest(),
            drift: program.goal.as_ref().and_then(|aim| aim.watch.drift()),
            grouped: program.grouped,
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

    /// Lengths of the first windows: the demand of each goal, and equal parts of the rest for best effort. The
    /// paper's lengths are inverse to the throughput. With the paper's lengths, a program that moves many bytes is
    /// set back by 2 s in the first two periods.
    fn initial(&self) -> impl Iterator<Item = Nanos> + use<> {
        let (period, least) = (self.planning.period, self.planning.least);
        let demands = self.programs[1..].iter().map(|program| {
            let share = program.goal.as_ref().map_or(0.0, |aim| aim.bounds.share());
            Demand {
                window: Nanos::from_nanos((period.as_nanos() as f64 * share) as u64),
                must: true,
                ..program.demand(self.period_start, self.parts())
            }
        });
        let demands: Vec<Demand> = demands.collect();
        let sizes = sizes(period - least, least, self.planning.shortage, &demands);
        std::iter::once(least).chain(sizes.into_iter().map(|size| size.window))
    }

    fn epoch_ends(&mut self) {
        let (epoch, end) = (self.planning.epoch, self.epoch_end);
        for program in &mut self.programs {
            if program.busy {
                program.required += program.bound.bytes_in(epoch);
                let start = program.goal.as_ref().map_or(end, |aim| aim.start);
                let counts = end.saturating_since(start).min(epoch);
                program.clock += counts;
                program.within += program.window_since(end, counts);
            }
            let waits = program.outstanding > 0;
            let next = program.goal.as_mut().map(|aim| aim.bounds.epoch_ends());
            if let Some(bound) = next.flatten() {
                program.bound = bound;
            }
            program.busy = waits;
        }
        self.epoch_end = end + epoch;
        // If an epoch does not divide the period, its end may lie in the next period.
        if end >= self.period_start + self.planning.period {
            self.period_ends();
        }
    }

    fn period_ends(&mut self) {
        let now = self.period_start + self.planning.period;
        self.period_start = now;
        let uses_shared = |program: &Served| program.shares[1] && program.served > 0;
        let shared = self.programs.iter().any(uses_shared);
        for (at, program) in self.programs.iter_mut().enumerate() {
            program.idle = program.served == 0 && program.outstanding == 0;
            let goal = program.goal.as_ref().filter(|_| self.planning.course);
            program.behind = goal.map_or(Nanos::ZERO, |aim| {
                let due = aim.course.time_of(program.progress);
                program.clock.saturating_sub(due)
            });
            if self.planning.drift {
                program.look_for_drift(now, self.planning.least);
            }
            let used = program.served > 0 || at == 0 && shared;
            if used && !program.windows[0].is_zero() {
                program.active_window = program.windows[0];
            }
            let [_, measured, begins] = program.shares;
            program.shares = [measured, begins, begins];
            if measured != begins {
                self.orders.push_back(program.assigned());
            }
        }
        self.regroup();
        let demands = self.demands(now);
        let Planning {
            period,
            least,
            shortage,
            ..
        } = self.planning;
        let sizes = sizes(period, least, shortage, &demands);
        let shared = sizes[0].repays;
        for ((program, size), demand) in self.programs.iter_mut().zip(sizes).zip(&demands) {
            program.plan(size, shared);
            let repaid = demand.repaying + size.repays;
            if self.planning.course && demand.left.is_some() && demand.lost > repaid {
                let (lane, until) = (Lane(program.own), now + period * 2);
                self.orders.push_back(GateOrder::Keep { lane, until });
            }
        }
        self.send(now + self.planning.period);
    }

    /// Moves programs to windows of their own, or to the shared window, from the next plan on.
    fn regroup(&mut self) {
        for at in 1..self.programs.len() {
            if self.programs[at].p99.is_some() {
                continue;
            }
            let wants = self.wants_own(at);
            let program = &mut self.programs[at];
            let [measured, _, shares] = program.shares;
            let grouped = &mut program.grouped;
            grouped.compared += u32::from(wants.is_some());
            grouped.seeks_longer += u32::from(wants == Some(true));
            grouped.served += u32::from(program.served > 0);
            grouped.shared += u32::from(program.served > 0 && measured);
            let short = measured && program.goal.is_some() && program.served < program.required;
            let own = match wants.map(|own| program.votes.vote(own)) {
                _ if shares && short => Some(true),
                Some(voted) => voted,
                None => None,
            };
            if own == Some(shares) {
                program.shares[2] = !shares;
                program.votes = Votes::after(shares && short);
            }
        }
    }

    /// Adds up losses, and returns traffic and demand of each lane in the period that ends at `now`.
    fn demands(&mut self, now: Time) -> Vec<Demand> {
        let (period, parts) = (self.planning.period, self.parts());
        let demands = self.programs.iter();
        let demands = demands.map(|program| program.demand(now, parts));
        let mut demands: Vec<Demand> = demands.collect();
        let (shared, own) = demands.split_first_mut().expect("the shared lane");
        let stays = |program: &Served| {
            let [measured, _, shares] = program.shares;
            measured && shares && program.goal.is_some() && !program.idle
        };
        let stays = self.programs.iter().any(stays);
        let shared_window = self.programs[0].windows[0];
        // Best effort demands nothing, so best effort's bytes in the shared window do not count.
        shared.served = 0;
        if !stays {
            shared.window = Nanos::ZERO;
        }
        for (program, demand) in self.programs[1..].iter_mut().zip(own) {
            if program.goal.is_some() {
                program.lost = match program.catches_up() {
                    true => Nanos::ZERO,
                    false => demand.set_back(period),
                };
                demand.lost = program.loss();
            }
            let [measured, _, shares] = program.shares;
            let window = if measured {
                shared_window
            } else {
                program.windows[0]
            };
            if window.is_zero() {
                // Without a window, the lane was served in windows that other lanes lent. So its throughput in a window is
                // unknown.
                demand.served = 0;
            }
            if measured {
                demand.window = Nanos::ZERO;
            }
            if shares {
                shared.add(&std::mem::take(demand));
            } else if let (true, Some(aim)) = (measured, &program.goal) {
                if stays {
                    shared.served += demand.served;
                }
                // Window that serves the demand at the throughput of the program alone.
                demand.window = aim.alone.time(demand.required).min(period);
                demand.served = demand.required;
            }
        }
        demands
    }

    /// True if seeks between the program's data and other programs' data cost more than waiting for the program's next
    /// request.
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

    /// Sends the plan of the period that starts at `from`. Each part of the period begins with a window of each program with
    /// a promise. The windows of the other programs follow, as far as the part has room.
    fn send(&mut self, from: Time) {
        let (period, parts) = (self.planning.period, self.parts());
        for program in &mut self.programs {
            program.starts = [program.starts[1], Time::LATEST];
        }
        let mut left: Vec<Nanos> = self.programs.iter().map(|one| one.windows[1]).collect();
        let mut now = from;
        for part in 1..=parts {
            let end = from + period * part / parts;
            for is_promised in [true, false] {
                for (program, left) in self.programs.iter_mut().zip(&mut left) {
                    if program.p99.is_some() != is_promised {
                        continue;
                    }
                    let span = match is_promised {
                        true => program.windows[1] / parts,
                        false => (*left).min(end.saturating_since(now)),
                    };
                    program.starts[1] = program.starts[1].min(now);
                    if span.is_zero() {
                        continue;
                    }
                    let lane = Lane(program.own);
                    self.orders.push_back(GateOrder::Window {
                        lane,
                        from: now,
                        span,
                    });
                    *left -= span;
                    now += span;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
