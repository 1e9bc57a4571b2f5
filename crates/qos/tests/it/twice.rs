//! The planner and its second version ([`second`](crate::second)) plan the same random runs, and decide the same: windows, their
//! order, lanes and losses. Programs obey the orders of the planner.

use crate::recorder::{at, recorder};
use crate::second::{Goal, Second};
use headtime_engine::GateOrder;
use headtime_qos::{
    Aim, Alpha, Bounds, Model, Planned, Planner, Planning, Profile, Service, TrainOptions,
};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};
use headtime_workload::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const SERVERS: usize = 2;
/// Nanoseconds of a step. No step falls on the border of an epoch.
const STEP: u64 = 499_979;
const SECOND: u64 = 1_000_000_000;
/// Sectors of a request.
const SECTORS: u64 = 64;
const BYTES: u64 = SECTORS * 512;
const ALONE: u64 = 30_000_000;

fn seek(sectors: u64) -> Nanos {
    Nanos::from_nanos(500_000 + sectors.isqrt() * 200)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    Sequential,
    Random,
    Idle,
}

/// Behaviour of a program for some time.
#[derive(Clone, Debug)]
struct Phase {
    /// Step of the run at which the phase ends.
    until: u64,
    pattern: Pattern,
    /// Steps between the end of a request and the next request of the process.
    think: u64,
}

/// Multiple of the I/O time of the profile, and deadline in seconds.
type Wish = (f64, f64);

#[derive(Clone, Debug)]
struct Program {
    goal: Option<Wish>,
    processes: usize,
    /// First sector of the program's data.
    data: u64,
    /// Steps that a sequential request and a random request take.
    service: (u64, u64),
    phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
struct Run {
    /// The last one is unknown to the planners.
    programs: Vec<Program>,
    periods: u64,
    /// Percent of the requests outside of their windows that are served, in each step.
    lend: u64,
    /// True if programs may share a window.
    seeks: bool,
    /// Step at which the first program gets another goal, or none.
    change: Option<(u64, Option<Wish>)>,
    seed: u64,
}

fn phase() -> impl Strategy<Value = (f64, Pattern, u64)> {
    use Pattern::{Idle, Random, Sequential};
    let pattern = prop_oneof![3 => Just(Sequential), 3 => Just(Random), 1 => Just(Idle)];
    let think = prop_oneof![4 => Just(0), 1 => 1_u64..6, 1 => 20_u64..100];
    (0.2..6.0, pattern, think)
}

fn wish() -> impl Strategy<Value = Wish> {
    (1.2..10.0, 0.5..20.0)
}

fn program(goal: impl Strategy<Value = Option<Wish>>) -> impl Strategy<Value = Program> {
    let data = prop_oneof![Just(0), 0_u64..1 << 31];
    let service = (1_u64..4, 4_u64..24);
    let phases = prop::collection::vec(phase(), 1..5);
    (goal, 1_usize..4, data, service, phases).prop_map(
        |(goal, processes, data, service, phases)| {
            let mut until = 0.0;
            let phases = phases.into_iter().map(|(span, pattern, think)| {
                until += span;
                let until = (until * SECOND as f64) as u64 / STEP;
                Phase {
                    until,
                    pattern,
                    think,
                }
            });
            let phases = phases.collect();
            Program {
                goal,
                processes,
                data,
                service,
                phases,
            }
        },
    )
}

/// Runs of 2 to 8 programs, with up to 3 programs of best effort. Goals demand 0.3 to 2.0 of the servers' time.
fn run() -> impl Strategy<Value = Run> {
    let programs = (1_usize..=8, 0_usize..=3, 0_usize..=1)
        .prop_filter("2 to 8", |(goals, best, _)| {
            (2..=8).contains(&(goals + best))
        })
        .prop_flat_map(|(goals, best, unknown)| {
            let some = prop::collection::vec(program(wish().prop_map(Some)), goals);
            let none = prop::collection::vec(program(Just(None)), best);
            (some, none, program(Just(None)), Just(unknown))
        })
        .prop_map(|(mut programs, best, mut last, unknown)| {
            last.processes *= unknown;
            programs.extend(best);
            // Nothing is planned while all are idle: the last known program never is.
            let busy = programs.last_mut().expect("2 or more");
            busy.phases.retain(|phase| phase.pattern != Pattern::Idle);
            busy.phases.push(Phase {
                until: u64::MAX,
                pattern: Pattern::Sequential,
                think: 0,
            });
            programs.push(last);
            programs
        })
        .prop_filter("goals demand 0.3 to 2.0", |programs| {
            let wishes = programs.iter().filter_map(|program| program.goal);
            (0.3..=2.0).contains(&wishes.map(|(multiple, _)| 1.0 / multiple).sum())
        });
    let lend = prop_oneof![Just(0), 0_u64..5];
    let change = prop::option::weighted(0.2, (0_u64..20_000, prop::option::of(wish())));
    (
        programs,
        4_u64..14,
        lend,
        any::<bool>(),
        change,
        any::<u64>(),
    )
        .prop_map(|(programs, periods, lend, seeks, change, seed)| Run {
            programs,
            periods,
            lend,
            seeks,
            change,
            seed,
        })
}

enum Doing {
    Thinks { until: u64 },
    Waits { server: usize },
    IsServed { server: usize, until: u64 },
}

/// A process of a program has one request at a time.
struct Process {
    program: usize,
    doing: Doing,
    next: u64,
    /// Requests so far.
    count: usize,
}

/// Decisions of the planner for a period. Spans are in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Decided {
    windows: Vec<(usize, u64, u64)>,
    /// Lanes that programs have in the period, by number.
    lanes: Vec<usize>,
}

/// Decisions that were compared.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    windows: u64,
    lanes: u64,
    losses: u64,
    /// Lanes that are shared.
    shared: u64,
}

/// Both planners, and the orders of the one so far.
struct Both {
    planner: Planner,
    second: Second,
    decided: BTreeMap<u64, Decided>,
    lanes: Vec<usize>,
    periods: u64,
    counts: Counts,
}

impl Both {
    fn orders(&mut self, at: Time) {
        while let Some(order) = self.planner.order(at) {
            match order {
                GateOrder::Assign { of, lane } => self.lanes[usize::from(of)] = lane.index(),
                GateOrder::Window { lane, from, span } => {
                    let from = from.as_nanos();
                    let plan = self.decided.entry(from / SECOND).or_default();
                    plan.windows.push((lane.index(), from, span.as_nanos()));
                }
                // The second planner leaves lending to the gate.
                GateOrder::Keep { .. } => {}
                other => panic!("{other:?} is no order of a plan"),
            }
        }
    }

    /// Lets the planners end their epochs, and compares losses at the end of a period.
    fn advance(&mut self, now: Time) -> Result<(), String> {
        while let Some(due) = self.planner.next_wakeup().filter(|&due| due <= now) {
            self.orders(due);
        }
        self.orders(now);
        self.second.advance(now);
        let period = now.as_nanos() / SECOND;
        // Programs obey their lanes as soon as the order is there.
        let plan = self.decided.entry(period).or_default();
        plan.lanes.clone_from(&self.lanes);
        while self.periods < period {
            self.periods += 1;
            let states = self.planner.states().zip(&self.second.programs[1..]);
            for (state, second) in states {
                self.counts.losses += 1;
                if (state.lost.as_secs_f64() - second.loss()).abs() > 1e-4 {
                    let (of, end) = (state.number, self.periods);
                    return Err(format!(
                        "{end} s, loss of {of}: {:?}, second {}",
                        state.lost,
                        second.loss()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Compares the plans of all periods.
    fn plans(&mut self, periods: u64) -> Result<(), String> {
        for at in 0..periods {
            let (one, other) = (&self.decided[&at], &self.second.plans[at as usize]);
            let lanes = one
                .windows
                .iter()
                .map(|(lane, ..)| *lane)
                .collect::<Vec<_>>();
            let second = other
                .windows
                .iter()
                .map(|window| window.lane)
                .collect::<Vec<_>>();
            if lanes != second || one.lanes != other.lanes {
                return Err(format!("{at} s: {one:?}, second {other:?}"));
            }
            let windows = one.windows.iter().zip(&other.windows);
            for ((_, from, span), window) in windows {
                let second = (window.from * 1e9, window.length * 1e9);
                let apart = (*from as f64 - second.0)
                    .abs()
                    .max((*span as f64 - second.1).abs());
                if apart > 1e6 {
                    return Err(format!("{at} s: {one:?}, second {other:?}"));
                }
            }
            self.counts.windows += lanes.len() as u64;
            self.counts.lanes += one.lanes.len() as u64 - 1;
            self.counts.shared += one.lanes[1..].iter().filter(|lane| **lane == 0).count() as u64;
        }
        Ok(())
    }
}

fn both(run: &Run, site: &Site) -> Both {
    let known = run.programs.len() - 1;
    let wishes = || run.programs[..known].iter().map(|program| program.goal);
    let planned = wishes().zip(1..).map(|(wish, number)| Planned {
        number,
        goal: wish.map(|wish| site.aim(wish, Time::ZERO)),
    });
    // The second planner takes runs to be as in their profiles.
    let planning = Planning {
        drift: false,
        ..Planning::default()
    };
    let mut planner = Planner::new(planning, planned.collect(), Time::ZERO);
    if run.seeks {
        planner = planner.with_seeks(Box::new(seek));
    }
    let goals = wishes().map(|wish| wish.map(|wish| site.goal(wish, Time::ZERO)));
    Both {
        planner,
        second: Second::new(goals.collect(), SERVERS, run.seeks.then_some(seek)),
        decided: BTreeMap::new(),
        lanes: vec![0; known + 1],
        periods: 0,
        counts: Counts::default(),
    }
}

static SITE: LazyLock<Site> = LazyLock::new(Site::new);

/// Goals of programs with this profile: a second of sequential requests, a second of random ones, and so on.
struct Site {
    profile: Profile,
    model: Arc<Model>,
}

impl Site {
    fn new() -> Site {
        let mut random = Random::new(1, 9, 0);
        let mut recorder = recorder(SERVERS as u16, Service::Program);
        let mut micros = 0;
        for nth in 0.. {
            // The program computes for half a second.
            if micros > 7_300_000 && micros < 7_800_000 {
                micros = 7_800_000;
            }
            let sequential = micros / 1_000_000 % 2 == 0;
            let start = if sequential {
                nth * SECTORS
            } else {
                random.below(1 << 31)
            };
            let took = if sequential { 1_000 } else { 9_500 };
            let server = (nth % SERVERS as u64) as u16;
            recorder.request(at(micros), server, Op::Read, Extent::at(start, SECTORS));
            recorder.busy(at(micros), at(micros + took));
            micros += took + 200;
            if micros > 20_000_000 {
                break;
            }
        }
        let profile = recorder.finish(at(micros)).expect("there are requests");
        let options = TrainOptions {
            enough: 1,
            ..TrainOptions::default()
        };
        let trained = Model::train(std::slice::from_ref(&profile), None, &options);
        let model = Arc::new(trained.expect("there are epochs").model);
        Site { profile, model }
    }

    fn run_time(&self, multiple: f64) -> Nanos {
        let io = self.profile.io.as_nanos() as f64 * multiple;
        self.profile.compute() + Nanos::from_nanos(io as u64)
    }

    fn aim(&self, (multiple, deadline): Wish, start: Time) -> Aim {
        let (model, run_time) = (Arc::clone(&self.model), self.run_time(multiple));
        let mut aim = Aim::new(&self.profile, model, run_time, start, 512).expect("it is possible");
        aim.deadline = Time::from_nanos((deadline * 1e9) as u64);
        aim.alone = Rate(ALONE);
        aim
    }

    fn goal(&self, wish: Wish, start: Time) -> Goal {
        let alpha = Alpha::new(self.run_time(wish.0), &self.profile).expect("it is possible");
        // Epochs without requests are left out. Compute time passes as in the profile. I/O time is stretched.
        let (mut bytes, mut io, mut epochs) = (0.0, 0.0, 0.0);
        let mut course: Vec<(f64, f64)> = Vec::new();
        for epoch in self.profile.rows.chunk_by(|a, b| a.epoch == b.epoch) {
            bytes += epoch.iter().map(|row| row.sums.bytes as f64).sum::<f64>();
            io += epoch[0].busy.as_secs_f64();
            let start = epoch[0].epoch as f64 / 10.0;
            epochs += (self.profile.run.as_secs_f64() - start).min(0.1);
            course.push((bytes, (epochs - io).max(0.0) + io * alpha.get()));
        }
        Goal {
            deadline: wish.1,
            start: start.as_secs_f64(),
            alone: ALONE as f64,
            bounds: Bounds::new(Arc::clone(&self.model), alpha, 512),
            course,
        }
    }
}

/// Lets both planners follow a run. Returns the numbers of decisions, or the first difference.
fn compare(run: &Run) -> Result<Counts, String> {
    let mut both = both(run, &SITE);
    let unknown = run.programs.len() - 1;
    let mut random = Random::new(run.seed, 0, 0);
    let mut processes = Vec::new();
    for (program, of) in run.programs.iter().enumerate() {
        for count in 0..of.processes {
            let doing = Doing::Thinks {
                until: count as u64,
            };
            processes.push(Process {
                program,
                doing,
                next: count as u64 * 10_000,
                count,
            });
        }
    }
    let mut free = [0; SERVERS];
    for step in 0..run.periods * SECOND / STEP {
        let now = Time::from_nanos(step * STEP + 7);
        both.advance(now)?;
        if let Some((_, wish)) = run.change.filter(|(at, _)| *at == step) {
            both.planner
                .set_goal(1, wish.map(|wish| SITE.aim(wish, now)));
            both.second
                .set_goal(1, wish.map(|wish| SITE.goal(wish, now)));
        }
        let plan = &both.decided[&(now.as_nanos() / SECOND)];
        let has =
            |window: &&(usize, u64, u64)| (window.1..window.1 + window.2).contains(&now.as_nanos());
        let turn = plan.windows.iter().find(has).map(|window| window.0);
        for process in &mut processes {
            // The planner knows no program 99; the second one has it at 0.
            let (number, place) = match process.program == unknown {
                true => (99, 0),
                false => (process.program as u16 + 1, process.program + 1),
            };
            let program = &run.programs[process.program];
            let phase = program.phases.iter().find(|phase| step < phase.until);
            match process.doing {
                Doing::IsServed { server, until } if until <= step => {
                    both.planner.done(now, server as u16, number, BYTES);
                    both.second.done(now, server, place, BYTES);
                    let until = step + phase.map_or(0, |phase| phase.think);
                    process.doing = Doing::Thinks { until };
                }
                _ => {}
            }
            match (&process.doing, phase) {
                (Doing::Thinks { until }, Some(phase))
                    if *until <= step && phase.pattern != Pattern::Idle =>
                {
                    let server = process.count % SERVERS;
                    let at = match phase.pattern {
                        Pattern::Random => random.below(1 << 24),
                        _ => process.next,
                    };
                    (process.count, process.next) = (process.count + 1, at + SECTORS);
                    let extent = Extent::at(program.data + at, SECTORS);
                    both.planner
                        .asked(now, server as u16, number, Op::Read, extent);
                    both.second.asked(now, server, place, Op::Read, extent);
                    process.doing = Doing::Waits { server };
                }
                _ => {}
            }
            match process.doing {
                Doing::Waits { server }
                    if free[server] <= step
                        && (turn == Some(plan.lanes[place]) || random.below(100) < run.lend) =>
                {
                    let sequential =
                        phase.is_some_and(|phase| phase.pattern == Pattern::Sequential);
                    let until = step
                        + if sequential {
                            program.service.0
                        } else {
                            program.service.1
                        };
                    free[server] = until;
                    process.doing = Doing::IsServed { server, until };
                }
                _ => {}
            }
        }
    }
    both.plans(run.periods)?;
    Ok(both.counts)
}

proptest! {
    #[test]
    fn both_planners_decide_the_same(run in run()) {
        let compared = compare(&run);
        prop_assert!(compared.is_ok(), "{}", compared.unwrap_err());
    }
}
