//! Requests behind a flush of some members of a volume.

use headtime_engine::{
    Arrival, Asked, Broken, Concat, Config, Core, Done, DriveTag, Engine, Finished, GaveUp, Late,
    Map, Member, Outcome, Part, RequestId, Striped, World,
};
use headtime_sched::{Backlog, Class, Flags, Noop, Op, Origin, Request, Scheduler, WorkConserving};
use headtime_units::{Extent, Nanos, Sectors, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Sectors of each member.
const SIZES: [u64; 3] = [40, 24, 32];

fn map(concat: bool) -> Box<dyn Map> {
    let sizes = SIZES.map(Sectors::new);
    match concat {
        true => Box::new(Concat::new(&sizes).expect("allowed")),
        false => Box::new(Striped::new(Sectors::new(8), &sizes).expect("allowed")),
    }
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Asked(u64),
    /// A part reached a member.
    Part(u64, u16),
    /// All parts of a flush have ended, or the flush before a write.
    Flushed(u64),
    Finished(u64),
}

/// Clients that ask at given times, and devices that take given times for commands.
struct Devices {
    arrivals: VecDeque<(Time, Arrival)>,
    durations: Vec<u64>,
    commands: usize,
    in_device: Vec<(Time, Member, DriveTag)>,
    steps: Vec<Step>,
    /// By part: the request, if the part is a flush.
    flush_of: BTreeMap<u64, Option<u64>>,
    /// By request: parts of its flush that have not ended.
    flushing: BTreeMap<u64, usize>,
}

impl World for Devices {
    type Error = Broken;

    fn next_device(&self) -> Time {
        let ends = self.in_device.iter().map(|(end, ..)| *end);
        ends.min().unwrap_or(Time::NEVER)
    }

    fn completed(&mut self, at: Time) -> Option<Done> {
        let first = self.in_device.iter().position(|(end, ..)| *end <= at)?;
        let (_, member, tag) = self.in_device.remove(first);
        let outcome = Outcome::Done;
        Some(Done {
            member,
            tag,
            at,
            outcome,
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.arrivals.front().map(|(at, _)| *at)
    }

    fn arrived(&mut self, _: Time) -> Result<Option<Asked>, Broken> {
        let Some((_, arrival)) = self.arrivals.pop_front() else {
            return Ok(None);
        };
        let RequestId::Client(id) = arrival.id else {
            unreachable!("all are of clients")
        };
        self.steps.push(Step::Asked(id));
        Ok(Some(Asked::Request(arrival)))
    }

    fn part(&mut self, member: Member, part: &Part) {
        self.steps.push(Step::Part(part.of, member.0));
        let is_flush = part.extent.is_empty();
        if is_flush {
            *self.flushing.entry(part.of).or_default() += 1;
        }
        self.flush_of.insert(part.id, is_flush.then_some(part.of));
    }

    fn part_finished(&mut self, _: Time, done: &Finished) {
        if let Some(of) = self.flush_of[&done.id]
            && let Some(left) = self.flushing.get_mut(&of)
        {
            *left -= 1;
            if *left == 0 {
                self.steps.push(Step::Flushed(of));
            }
        }
    }

    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        _: &Engine,
    ) -> bool {
        let duration = self.durations[self.commands % self.durations.len()];
        self.commands += 1;
        let end = now + Nanos::from_nanos(duration);
        self.in_device.push((end, member, request.tag));
        true
    }

    fn give_up(&mut self, _: Time, _: &Late<'_>) -> GaveUp {
        unreachable!("there is no timeout")
    }

    fn finished(&mut self, _: Time, done: &Finished) -> Result<(), Broken> {
        self.steps.push(Step::Finished(done.id));
        Ok(())
    }

    fn backlog(&mut self, _: Time, _: Member, _: Backlog) {}
}

fn asked(id: u64, op: Op, flags: Flags, start: u64, len: u64) -> Arrival {
    Arrival {
        id: RequestId::Client(id),
        op,
        extent: Extent::at(start, if op == Op::Flush { 0 } else { len }),
        flags,
        origin: Origin::default(),
        class: Class::BEST_EFFORT,
        since: None,
    }
}

/// Runs requests at their times to their end, under the audit.
fn run(concat: bool, arrivals: &[(u64, Arrival)], durations: &[u64]) -> Vec<Step> {
    let noop = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    let config = Config {
        depth: 2,
        ..Config::default()
    };
    let engines = SIZES.map(|_| Engine::new(config, noop()).expect("valid"));
    let mut core = Core::<&mut dyn FnMut(&str)>::of_volume(engines.into(), map(concat), None);
    core.audit();
    let timed = arrivals
        .iter()
        .map(|(at, new)| (Time::from_nanos(*at), *new));
    let mut world = Devices {
        arrivals: timed.collect(),
        durations: durations.to_vec(),
        commands: 0,
        in_device: Vec::new(),
        steps: Vec::new(),
        flush_of: BTreeMap::new(),
        flushing: BTreeMap::new(),
    };
    loop {
        let due = core.due(&world);
        let Some(next) = due.at() else { break };
        core.step(&mut world, &due, next).expect("promises hold");
    }
    assert!(core.is_idle());
    let ended = |step: &&Step| matches!(step, Step::Finished(_));
    assert_eq!(world.steps.iter().filter(ended).count(), arrivals.len());
    world.steps
}

/// Members from the first to the last that a request concerns.
fn concerned(map: &dyn Map, new: &Arrival) -> Vec<u16> {
    let Extent { start, len } = new.extent;
    let last = start + Sectors::new(len.get().saturating_sub(1));
    let last = map.concerned(last);
    (map.concerned(start).start..last.end).collect()
}

fn share(one: &[u16], other: &[u16]) -> bool {
    one.iter().any(|member| other.contains(member))
}

/// Random requests in 96 sectors. A third of the requests are flushes or writes behind a flush.
fn requests() -> impl Strategy<Value = Vec<(u64, Arrival)>> {
    let one = (0_u64..30, 0_u8..12, 0_u64..96, 1_u64..30);
    prop::collection::vec(one, 1..40).prop_map(|all| {
        let mut now = 0;
        let each = (0..).zip(all).map(|(id, (gap, kind, start, len))| {
            now += gap;
            let len = len.min(96 - start);
            let new = match kind {
                0 | 1 => asked(id, Op::Flush, Flags::NONE, start, 0),
                2 | 3 => asked(id, Op::Write, Flags::PREFLUSH, start, len),
                4..8 => asked(id, Op::Write, Flags::NONE, start, len),
                _ => asked(id, Op::Read, Flags::NONE, start, len),
            };
            (now, new)
        });
        each.collect()
    })
}

proptest! {
    #[test]
    fn members_get_requests_in_order_behind_their_flushes_and_wait_for_no_others(
        arrivals in requests(),
        durations in prop::collection::vec(1_u64..60, 1..9),
        concat in any::<bool>(),
    ) {
        let map = map(concat);
        let new = |id: u64| &arrivals[id as usize].1;
        let of = |id: u64| concerned(&*map, new(id));
        let flushes = |id: &u64| new(*id).op == Op::Flush || new(*id).flags.has(Flags::PREFLUSH);
        let steps = run(concat, &arrivals, &durations);
        let before = |at: usize, step: Step| steps[..at].contains(&step);
        let mut latest = [0; SIZES.len()];
        for (at, step) in steps.iter().enumerate() {
            match *step {
                Step::Part(id, member) => {
                    let latest = &mut latest[usize::from(member)];
                    prop_assert!(*latest <= id, "{id} comes to {member} after {latest}");
                    *latest = id;
                    for flush in (0..id).filter(flushes) {
                        let passes = of(flush).contains(&member) && !before(at, Step::Flushed(flush));
                        prop_assert!(!passes, "{id} passes {flush} on {member}");
                    }
                }
                Step::Asked(id) => {
                    // Flushes that the request waits for, directly or behind others that wait.
                    let mut members = of(id);
                    let mut waits = false;
                    for other in (0..id).rev().filter(|id| !before(at, Step::Finished(*id))) {
                        if share(&members, &of(other)) {
                            members.extend(of(other));
                            waits |= flushes(&other);
                        }
                    }
                    let comes = matches!(steps.get(at + 1), Some(Step::Part(of, _)) if *of == id);
                    prop_assert!(waits || comes, "{id} waits for no flush");
                }
                Step::Flushed(_) | Step::Finished(_) => {}
            }
        }
    }
}

#[test]
fn a_flush_of_one_part_does_not_hold_up_the_others() {
    // The flush of member 1 waits for a long read there.
    let arrivals = [
        (0, asked(0, Op::Read, Flags::NONE, 40, 4)),
        (1, asked(1, Op::Flush, Flags::NONE, 40, 0)),
        (2, asked(2, Op::Read, Flags::NONE, 50, 4)),
        (3, asked(3, Op::Read, Flags::NONE, 0, 4)),
        (4, asked(4, Op::Flush, Flags::NONE, 64, 0)),
        (5, asked(5, Op::Read, Flags::NONE, 64, 4)),
    ];
    let ended = |concat| -> Vec<u64> {
        let steps = run(concat, &arrivals, &[1000, 10, 10, 10, 10, 10]);
        let ended = steps.into_iter().filter_map(|step| match step {
            Step::Finished(id) => Some(id),
            _ => None,
        });
        ended.collect()
    };
    assert_eq!(ended(true), [3, 4, 5, 0, 1, 2]);
    assert_eq!(ended(false), [0, 1, 2, 3, 4, 5], "a stripe has one order");
}
