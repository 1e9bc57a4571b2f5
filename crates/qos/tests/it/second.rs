//! The planner of windows, written a second time from the paper (section 3.2) and the tables of the design note.
//!
//! Everything is as plain as it can be: seconds and bytes are floating-point numbers, and a period is planned in one function
//! from top to bottom. Nothing is shared with the product but the bounds of programs, which are an input here.

mod divide;

use divide::Lane;
use headtime_qos::Bounds;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};

pub const PERIOD: f64 = 1.0;
pub const EPOCHS: u64 = 10;
pub const LEAST: f64 = 0.045;

/// A program. The first is not a program: it is all requests of unknown programs.
pub struct Program {
    pub goal: Option<Goal>,
    /// True if the program is in the shared window.
    shared: bool,
    /// Votes of the last periods for a window of the program's own.
    votes: Vec<bool>,
    /// Votes that do not count yet.
    keeps: u32,
    /// Loss by the bounds, in seconds.
    lost: f64,
    /// Delay behind the course, in seconds.
    behind: f64,
    /// Bytes served since the goal was set.
    progress: f64,
    /// Seconds since the goal was set, without epochs in which no request was outstanding.
    clock: f64,
    /// Last window that bytes were served in, in seconds.
    last: f64,
    bound: f64,
    servers: Vec<Server>,
    seen: Seen,
}

pub struct Goal {
    pub deadline: f64,
    /// Start of the run.
    pub start: f64,
    /// Bytes per second with the servers to itself.
    pub alone: f64,
    pub bounds: Bounds,
    /// Bytes of the profile so far, and the second of the program's clock at which they are due.
    pub course: Vec<(f64, f64)>,
}

impl Goal {
    /// Second of the program's clock at which a number of bytes is due. Points of the course are joined by straight
    /// lines.
    fn due(&self, bytes: f64) -> f64 {
        let mut before = (0.0, 0.0);
        for &(to, end) in &self.course {
            if bytes < to {
                return before.1 + (bytes - before.0) / (to - before.0) * (end - before.1);
            }
            before = (to, end);
        }
        before.1
    }
}

impl Program {
    /// Seconds of loss that a plan repays.
    pub fn loss(&self) -> f64 {
        self.lost.max(self.behind)
    }
}

/// Traffic of a program in a period.
#[derive(Default)]
struct Seen {
    /// True if a request was outstanding in this epoch, in this period.
    epoch: bool,
    period: bool,
    required: f64,
    served: f64,
    gaps: Vec<f64>,
}

/// Requests of a program at a server.
#[derive(Clone, Default)]
struct Server {
    outstanding: u32,
    done: Option<f64>,
    place: Option<u64>,
}

/// A window of a plan.
#[derive(Clone, Debug)]
pub struct Window {
    pub lane: usize,
    pub from: f64,
    pub length: f64,
    /// Seconds of loss that the window repays.
    repays: f64,
}

/// Plan of a period.
#[derive(Clone, Debug)]
pub struct Plan {
    pub lanes: Vec<usize>,
    pub windows: Vec<Window>,
}

pub struct Second {
    pub programs: Vec<Program>,
    seek: Option<fn(u64) -> Nanos>,
    /// Epochs that have ended.
    epochs: u64,
    /// Plan of each period.
    pub plans: Vec<Plan>,
}

impl Second {
    pub fn new(goals: Vec<Option<Goal>>, servers: usize, seek: Option<fn(u64) -> Nanos>) -> Second {
        let program = |goal| Program {
            goal,
            shared: false,
            votes: Vec::new(),
            keeps: 0,
            lost: 0.0,
            behind: 0.0,
            progress: 0.0,
            clock: 0.0,
            last: 0.0,
            bound: 0.0,
            servers: vec![Server::default(); servers],
            seen: Seen::default(),
        };
        let mut programs = vec![program(None)];
        programs.extend(goals.into_iter().map(program));
        programs[0].shared = true;
        let mut second = Second {
            programs,
            seek,
            epochs: 0,
            plans: Vec::new(),
        };
        // First windows: the demand of each goal, and the rest in equal parts for best effort. Two periods begin so. Unknown
        // programs have the least window.
        let mut lanes: Vec<Lane> = (1..second.programs.len())
            .map(|i| second.lane(i, vec![i]))
            .collect();
        for lane in lanes.iter_mut().filter(|lane| lane.left.is_some()) {
            let goal = second.programs[lane.number].goal.as_ref().unwrap();
            lane.size = (PERIOD * goal.bounds.share()).clamp(LEAST, PERIOD);
        }
        for _ in 0..2 {
            let mut plan = second.divide(lanes.clone(), LEAST);
            let from = second.plans.len() as f64 * PERIOD;
            let shared = Window {
                lane: 0,
                from,
                length: LEAST,
                repays: 0.0,
            };
            plan.windows.insert(0, shared);
            for window in &plan.windows {
                second.programs[window.lane].last = window.length;
            }
            second.plans.push(plan);
        }
        second
    }

    /// Sets or clears the goal of a program.
    pub fn set_goal(&mut self, i: usize, goal: Option<Goal>) {
        let program = &mut self.programs[i];
        (program.goal, program.bound, program.lost) = (goal, 0.0, 0.0);
        (program.behind, program.progress, program.clock) = (0.0, 0.0, 0.0);
        // Demands of the goal before are no loss of this one.
        program.seen.required = 0.0;
    }

    /// A request arrives.
    pub fn asked(&mut self, now: Time, server: usize, i: usize, op: Op, extent: Extent) {
        let now = now.as_secs_f64();
        let within = self.window_at(i, now);
        let program = &mut self.programs[i];
        if let Some(goal) = &mut program.goal {
            goal.bounds.request(server as u16, op, extent);
        }
        let at = &mut program.servers[server];
        match at.done {
            Some(done) if at.outstanding == 0 && within.is_some_and(|(from, _)| done >= from) => {
                program.seen.gaps.push(now - done)
            }
            _ => {}
        }
        at.place = Some(extent.start.get());
        at.outstanding += 1;
        (program.seen.epoch, program.seen.period) = (true, true);
    }

    /// A request is done.
    pub fn done(&mut self, now: Time, server: usize, i: usize, bytes: u64) {
        let program = &mut self.programs[i];
        let at = &mut program.servers[server];
        at.outstanding -= 1;
        at.done = Some(now.as_secs_f64());
        program.seen.served += bytes as f64;
        program.progress += bytes as f64;
    }

    /// The window of a program at a time.
    fn window_at(&self, i: usize, now: f64) -> Option<(f64, f64)> {
        let plan = self.plans.get((now / PERIOD) as usize)?;
        let window = plan
            .windows
            .iter()
            .find(|w| w.lane == plan.lanes[i] && w.from <= now && now < w.from + w.length)?;
        Some((window.from, window.from + window.length))
    }

    /// Ends the epochs that end at or before `now`.
    pub fn advance(&mut self, now: Time) {
        while (self.epochs + 1) * 100_000_000 <= now.as_nanos() {
            let end = (self.epochs + 1) as f64 * PERIOD / EPOCHS as f64;
            for program in &mut self.programs {
                let outstanding = program.servers.iter().any(|server| server.outstanding > 0);
                if program.seen.epoch {
                    program.seen.required += program.bound * PERIOD / EPOCHS as f64;
                    // A goal may have been set within the epoch.
                    let since = program.goal.as_ref().map_or(0.0, |goal| end - goal.start);
                    program.clock += since.min(PERIOD / EPOCHS as f64);
                }
                if let Some(goal) = &mut program.goal {
                    // Without requests the last bound holds.
                    if let Some(Rate(rate)) = goal.bounds.epoch_ends() {
                        program.bound = rate as f64;
                    }
                }
                program.seen.epoch = outstanding;
            }
            self.epochs += 1;
            if self.epochs.is_multiple_of(EPOCHS) {
                let plan = self.period_ends();
                self.plans.push(plan);
            }
        }
    }

    /// True if the mean seek to the data of others costs more than the mean gap: a vote for a window of the program's own.
    fn vote(&self, i: usize) -> Option<bool> {
        let (seek, program) = (self.seek?, &self.programs[i]);
        if program.seen.gaps.is_empty() {
            return None;
        }
        let gap = program.seen.gaps.iter().sum::<f64>() / program.seen.gaps.len() as f64;
        let mut seeks = Vec::new();
        for (j, other) in self.programs.iter().enumerate().skip(1) {
            if j == i || other.seen.served == 0.0 {
                continue;
            }
            // Mean distance between the last requests, over the servers that both use.
            let both = program
                .servers
                .iter()
                .zip(&other.servers)
                .filter_map(|(one, other)| Some((one.place?, other.place?)));
            let distances: Vec<u64> = both.map(|(one, other)| one.abs_diff(other)).collect();
            if !distances.is_empty() {
                let mean = distances.iter().sum::<u64>() / distances.len() as u64;
                seeks.push(seek(mean).as_secs_f64());
            }
        }
        let mean = seeks.iter().sum::<f64>() / seeks.len() as f64;
        (!seeks.is_empty()).then_some(mean > gap)
    }

    /// Traffic and demand of a lane with these members.
    fn lane(&self, number: usize, members: Vec<usize>) -> Lane {
        let now = self.epochs as f64 / EPOCHS as f64;
        let is_goal = |i: &usize| self.programs[*i].goal.is_some();
        let required: f64 = members
            .iter()
            .filter(|i| is_goal(i))
            .map(|&i| self.programs[i].seen.required)
            .sum();
        let left = |i: &usize| (self.programs[*i].goal.as_ref().unwrap().deadline - now).max(0.0);
        let left = members
            .iter()
            .filter(|i| is_goal(i))
            .map(left)
            .reduce(f64::min);
        let mut lane = Lane {
            number,
            left,
            required,
            members,
            served: 0.0,
            window: 0.0,
            size: 0.0,
            owed: 0.0,
            repays: 0.0,
        };
        if let Some(observed) = self.plans.len().checked_sub(2).map(|at| &self.plans[at]) {
            // Last windows that the members were served in, and what programs with goals were served in them, if the lanes had
            // windows in this period at all.
            let mut lanes: Vec<usize> = lane
                .members
                .iter()
                .filter(|i| is_goal(i))
                .map(|&i| observed.lanes[i])
                .collect();
            lanes.sort_unstable();
            lanes.dedup();
            for at in lanes {
                lane.window += self.programs[at].last;
                if observed.windows.iter().any(|w| w.lane == at) {
                    let there =
                        (1..self.programs.len()).filter(|i| is_goal(i) && observed.lanes[*i] == at);
                    lane.served += there.map(|i| self.programs[i].seen.served).sum::<f64>();
                }
            }
        }
        lane
    }

    /// Moves programs between own windows and the shared one.
    fn regroup(&mut self) {
        let observed = self.plans[self.plans.len() - 2].clone();
        let votes: Vec<Option<bool>> = (0..self.programs.len()).map(|i| self.vote(i)).collect();
        for (i, vote) in votes.into_iter().enumerate().skip(1) {
            let p = &mut self.programs[i];
            let mut agreed = None;
            if let Some(vote) = vote {
                p.votes.push(vote);
                if p.keeps > 0 {
                    p.keeps -= 1;
                } else if p.votes.ends_with(&[vote, vote]) {
                    // Two periods in a row.
                    agreed = Some(vote);
                }
            }
            // A member of the shared window that was short gets a window of its own, and keeps it for ten votes.
            let short =
                p.goal.is_some() && p.seen.served < p.seen.required && observed.lanes[i] == 0;
            if p.shared && (short || agreed == Some(true)) {
                (p.shared, p.votes, p.keeps) = (false, Vec::new(), if short { 10 } else { 0 });
            } else if !p.shared && agreed == Some(false) {
                (p.shared, p.votes) = (true, Vec::new());
            }
        }
    }

    /// The plan of the period after the next.
    fn period_ends(&mut self) -> Plan {
        let observed = self.plans[self.plans.len() - 2].clone();
        let coming = self.plans[self.plans.len() - 1].clone();
        self.regroup();
        // Losses: demand less service, over the demand of a second. A surplus pays back.
        let before: Vec<f64> = self.programs.iter().map(Program::loss).collect();
        for p in self
            .programs
            .iter_mut()
            .filter(|p| p.goal.is_some() && p.seen.required > 0.0)
        {
            p.lost =
                (p.lost + (p.seen.required - p.seen.served) / p.seen.required * PERIOD).max(0.0);
        }
        for p in &mut self.programs {
            p.behind = p
                .goal
                .as_ref()
                .map_or(0.0, |goal| (p.clock - goal.due(p.progress)).max(0.0));
        }
        // Last windows that bytes were served in.
        for window in &observed.windows {
            let mut users = (0..self.programs.len()).filter(|&i| observed.lanes[i] == window.lane);
            if users.any(|i| self.programs[i].seen.served > 0.0) {
                self.programs[window.lane].last = window.length;
            }
        }
        // Lanes of programs that had a request in this period.
        let busy: Vec<usize> = (0..self.programs.len())
            .filter(|&i| self.programs[i].seen.period)
            .collect();
        let (group, own): (Vec<usize>, Vec<usize>) =
            busy.into_iter().partition(|&i| self.programs[i].shared);
        let mut lanes: Vec<Lane> = own.into_iter().map(|i| self.lane(i, vec![i])).collect();
        if !group.is_empty() {
            lanes.push(self.lane(0, group));
        }
        for lane in lanes.iter_mut().filter(|lane| lane.left.is_some()) {
            // Mean of the members' losses, by demand. A loss that the coming plan repays is not repaid twice.
            let (mut lost, mut repaid) = (0.0, 0.0);
            for &i in lane
                .members
                .iter()
                .filter(|&&i| self.programs[i].goal.is_some() && lane.required > 0.0)
            {
                let part = self.programs[i].seen.required / lane.required;
                let repays: f64 = coming
                    .windows
                    .iter()
                    .filter(|w| w.lane == coming.lanes[i])
                    .map(|w| w.repays)
                    .sum();
                lost += part * self.programs[i].loss();
                repaid += part * repays.min(before[i]);
            }
            lane.owed = (lost - repaid).max(0.0);
            let first = lane.members[0];
            let leaves = lane.number != 0 && observed.lanes[first] == 0;
            if leaves {
                // A program that leaves the shared window: what serves its demand at its throughput alone.
                lane.window = lane.required / self.programs[first].goal.as_ref().unwrap().alone;
                lane.served = lane.required;
            }
            // T_ushape + T_adjust. Without a throughput or a demand, the last window.
            lane.size = lane.window;
            if lane.served > 0.0 && lane.required > 0.0 {
                lane.size = lane.required * lane.window / lane.served;
            } else {
                lane.owed = 0.0;
            }
            lane.size = lane.size.clamp(LEAST, PERIOD);
        }
        let plan = self.divide(lanes, 0.0);
        for p in &mut self.programs {
            let outstanding = p.servers.iter().any(|server| server.outstanding > 0);
            p.seen = Seen {
                epoch: outstanding,
                period: outstanding,
                ..Seen::default()
            };
        }
        plan
    }
}
