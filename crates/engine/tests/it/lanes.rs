//! Lanes and gates, and requests that join staged ones: on toys, under the audit, with logs that replay.

use crate::world::arrival;
use headtime_engine::audit::Audit;
use headtime_engine::{
    Arrival, Command, Config, DriveTag, Engine, Event, Gate, GateOrder, Join, Lane, Outcome,
    RequestId, log,
};
use headtime_sched::{Class, Noop, Op, Origin, Request, Scheduler, Sstf, WorkConserving};
use headtime_testkit::{AgedRanks, Scrub, ToyAnticipator, Windows};
use headtime_units::{Extent, Nanos, Sectors, Time};
use proptest::prelude::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

pub(crate) fn config(depth: u32) -> Config {
    Config {
        depth,
        ..Config::default()
    }
}

fn schedulers(lanes: usize) -> Vec<Box<dyn Scheduler>> {
    let noop = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    std::iter::repeat_with(noop).take(lanes).collect()
}

/// A command and what it carries.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    at: Time,
    request: Request<DriveTag>,
    pub parts: Vec<RequestId>,
}

/// An engine with everything that watches it.
pub(crate) struct Rig<G> {
    pub engine: Engine,
    config: Config,
    gate: G,
    audit: Audit,
    text: String,
    now: Time,
    pub in_drive: Vec<Sent>,
    sent: Vec<Sent>,
    ended: Vec<(RequestId, Outcome)>,
    scrub: Option<Scrub>,
}

impl<G: Gate + Clone + 'static> Rig<G> {
    pub fn new(config: Config, gate: G) -> Rig<G> {
        let lanes = schedulers(gate.lanes());
        let engine = Engine::with_gate(config, Box::new(gate.clone()), lanes).expect("in range");
        Rig::around(engine, gate)
    }

    fn around(mut engine: Engine, gate: G) -> Rig<G> {
        let mut audit = Audit::new();
        audit.watch(&mut engine);
        let mut text = String::new();
        log::write_header(&mut text);
        Rig {
            config: *engine.config(),
            engine,
            gate,
            audit,
            text,
            now: Time::ZERO,
            in_drive: Vec::new(),
            sent: Vec::new(),
            ended: Vec::new(),
            scrub: None,
        }
    }

    fn event(&mut self, event: Event) {
        self.feed(event);
        while let Some((arrival, lane, join)) = match &mut self.scrub {
            Some(scrub) => scrub.joins(&self.engine),
            None => None,
        } {
            self.feed(Event::Joined {
                arrival,
                lane,
                join,
            });
        }
    }

    fn feed(&mut self, event: Event) {
        let now = self.now;
        log::write_event(&mut self.text, now, &event);
        self.audit.event(&event).expect("an event that can be");
        self.engine.handle(now, event);
        self.commands();
    }

    fn commands(&mut self) {
        let now = self.now;
        while let Some(command) = self.engine.poll(now) {
            let kept = self.audit.command(&self.engine, &command);
            kept.expect("the engine's promises");
            log::write_decision(&mut self.text, now, &(&command).into());
            match command {
                Command::Issue(request) => {
                    let parts = self.engine.parts(request.tag);
                    let sent = Sent {
                        at: now,
                        request,
                        parts: parts.map(|(id, _)| id).collect(),
                    };
                    self.in_drive.push(sent.clone());
                    self.sent.push(sent);
                }
                Command::Finish(done) => {
                    self.ended.push((RequestId::Client(done.id), done.outcome));
                }
                Command::Background(done) => {
                    self.ended
                        .push((RequestId::Background(done.id), done.outcome));
                    if let Some(scrub) = &mut self.scrub {
                        scrub.finished(&done);
                    }
                }
            }
        }
    }

    pub fn arrive(&mut self, arrival: Arrival) {
        self.event(Event::Arrived(arrival));
    }

    /// Ends the command that went to the drive `at`-th of those that are there.
    pub fn complete(&mut self, at: usize, outcome: Outcome) {
        let tag = self.in_drive.remove(at).request.tag;
        self.event(Event::Completed { tag, outcome });
    }

    /// Ends everything, the oldest first, and replays the log.
    pub fn finish(mut self) -> Vec<Sent> {
        while !self.engine.is_idle() {
            if self.in_drive.is_empty() {
                self.now = self.engine.next_wakeup().expect("it waits for a time");
                self.event(Event::Woke);
            } else {
                self.now += Nanos::from_millis(1);
                self.complete(0, Outcome::Done);
            }
        }
        assert_eq!(self.audit.unfinished(), 0);
        assert_eq!(self.engine.waiting(), 0);
        self.replay();
        self.sent
    }

    fn replay(&self) {
        let lanes = schedulers(self.gate.lanes());
        let gate = Box::new(self.gate.clone());
        let mut again = Engine::with_gate(self.config, gate, lanes).expect("in range");
        if let Err(error) = log::replay(&self.text, &mut again, |_| None) {
            panic!("{error}\n{}", self.text);
        }
    }
}

mod ranks {
    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Arrive(Op, u64, u64, bool),
        Complete(prop::sample::Index, bool),
        Order(GateOrder),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let op = prop_oneof![
            8 => Just(Op::Read),
            8 => Just(Op::Write),
            1 => Just(Op::Flush),
        ];
        let step = prop_oneof![
            10 => (op, 0..60_u64, 1..12_u64, any::<bool>())
                .prop_map(|(op, start, len, high)| Step::Arrive(op, start, len, high)),
            8 => (any::<prop::sample::Index>(), prop::bool::weighted(0.9))
                .prop_map(|(which, good)| Step::Complete(which, good)),
            1 => (2..6_u32).prop_map(|depth| Step::Order(GateOrder::Depth(depth))),
            1 => (0..6_u64).prop_map(|age| Step::Order(GateOrder::Age(age))),
        ];
        prop::collection::vec(step, 1..120)
    }

    /// What a request must wait for, by the plain rule, and whether that could go.
    struct Model {
        /// In order of arrival.
        pending: Vec<Arrival>,
    }

    impl Model {
        fn waits_for(later: &Arrival, earlier: &Arrival) -> bool {
            later.op == Op::Flush
                || earlier.op == Op::Flush
                || (later.op.changes() || earlier.op.changes())
                    && later.extent.overlaps(earlier.extent)
        }

        /// Those that could go now, and for which one of the high rank waits, itself among them.
        fn due(&self, sent: &[Sent]) -> Vec<RequestId> {
            let there = |id| sent.iter().any(|sent| sent.parts.contains(&id));
            let mut needed = vec![false; self.pending.len()];
            for (at, one) in self.pending.iter().enumerate().rev() {
                needed[at] |= one.class == Class::REAL_TIME;
                for (before, earlier) in self.pending[..at].iter().enumerate() {
                    needed[before] |= needed[at] && Model::waits_for(one, earlier);
                }
            }
            let pending = self.pending.iter().enumerate();
            let due = pending.filter(|(at, one)| {
                let mut before = self.pending[..*at].iter();
                needed[*at] && !there(one.id) && !before.any(|other| Model::waits_for(one, other))
            });
            due.map(|(_, one)| one.id).collect()
        }
    }

    /// Runs the steps, and says which requests waited behind refused ones of a lower rank.
    fn run(inherits: bool, config: Config, steps: &[Step]) -> Vec<RequestId> {
        // As many as the gate may be told to let through.
        let mut gate = AgedRanks::new(3, 4);
        gate.inherits = inherits;
        let mut rig = Rig::new(config, gate.clone());
        let mut model = Model {
            pending: Vec::new(),
        };
        let mut wrong = Vec::new();
        for (id, step) in (0..).zip(steps) {
            let begun = rig.sent.len();
            rig.now += Nanos::from_micros(1);
            match step {
                Step::Arrive(op, start, len, high) => {
                    let len = if *op == Op::Flush { 0 } else { *len };
                    let mut new = arrival(id, *op, *start, len, 0);
                    if *high {
                        new.class = Class::REAL_TIME;
                    }
                    model.pending.push(new);
                    rig.arrive(new);
                }
                Step::Complete(which, good) => {
                    if rig.in_drive.is_empty() {
                        continue;
                    }
                    let at = which.index(rig.in_drive.len());
                    gate.returned(rig.now, rig.in_drive[at].request.tag);
                    rig.complete(
                        at,
                        match good {
                            true => Outcome::Done,
                            false => Outcome::MediumError,
                        },
                    );
                }
                Step::Order(order) => {
                    gate.told(rig.now, order);
                    rig.event(Event::Ordered(*order));
                }
            }
            for sent in &rig.sent[begun..] {
                gate.taken(rig.now, &sent.request, AgedRanks::HIGH);
            }
            let ended = &rig.ended;
            model
                .pending
                .retain(|one| !ended.iter().any(|(id, _)| *id == one.id));
            if gate.admits(AgedRanks::HIGH) {
                wrong.extend(model.due(&rig.in_drive));
            }
        }
        rig.finish();
        wrong
    }

    proptest! {
        /// The gate refuses either rank now and then, for its age or for the reserved tag; order has requests wait
        /// for others, merged or not, and for flushes.
        #[test]
        fn no_request_of_the_higher_rank_waits_behind_a_refused_lower_one(
            steps in steps(),
            merge in any::<bool>(),
        ) {
            let config = Config { merge, ..config(6) };
            prop_assert_eq!(run(true, config, &steps), vec![]);
        }
    }

    /// Low requests have all tags but the reserved one; the next of them waits for the gate, and one of the high rank
    /// for that one.
    fn behind_a_refused_one(op: Op) -> Vec<Step> {
        let mut steps: Vec<Step> = (0..3)
            .map(|n| Step::Arrive(Op::Read, 100 * n, 8, false))
            .collect();
        let len = if op == Op::Flush { 0 } else { 8 };
        steps.push(Step::Arrive(op, 204, len, true));
        steps
    }

    #[test]
    fn an_overlap_hands_on_rank() {
        assert_eq!(run(true, config(6), &behind_a_refused_one(Op::Write)), []);
        let wrong = run(false, config(6), &behind_a_refused_one(Op::Write));
        assert_eq!(wrong, [RequestId::Client(2)]);
    }

    #[test]
    fn a_flush_hands_on_rank() {
        assert_eq!(run(true, config(6), &behind_a_refused_one(Op::Flush)), []);
        let wrong = run(false, config(6), &behind_a_refused_one(Op::Flush));
        assert_eq!(wrong, [RequestId::Client(2)]);
    }

    #[test]
    fn a_flush_of_the_low_rank_hands_on_that_of_those_behind_it() {
        let mut steps = behind_a_refused_one(Op::Read);
        steps[3] = Step::Arrive(Op::Flush, 0, 0, false);
        assert_eq!(run(false, config(6), &steps), [], "nobody outranks it");
        steps.push(Step::Arrive(Op::Read, 900, 8, true));
        assert_eq!(run(true, config(6), &steps), []);
        assert_eq!(run(false, config(6), &steps), [RequestId::Client(2)]);
    }

    #[test]
    fn one_tag_is_kept_for_the_higher_rank() {
        let mut rig = Rig::new(config(3), AgedRanks::new(3, 100));
        for id in 0..5 {
            rig.arrive(arrival(id, Op::Read, id * 100, 8, 0));
        }
        assert_eq!(rig.in_drive.len(), 2);
        assert_eq!(rig.engine.waiting(), 3);
        let mut high = arrival(5, Op::Read, 900, 8, 0);
        high.class = Class::REAL_TIME;
        rig.arrive(high);
        assert_eq!(rig.in_drive.len(), 3);
        rig.arrive(Arrival {
            id: RequestId::Client(6),
            ..high
        });
        assert_eq!(rig.in_drive.len(), 3, "the drive is full");
        rig.complete(0, Outcome::Done);
        let sent = rig.finish();
        let ids: Vec<_> = sent.iter().map(|sent| sent.parts[0]).collect();
        assert_eq!(ids, [0, 1, 5, 6, 2, 3, 4].map(RequestId::Client));
    }

    #[test]
    fn nothing_goes_while_a_command_is_late() {
        let mut rig = Rig::new(config(4), AgedRanks::new(4, 2));
        for id in 0..12 {
            rig.arrive(arrival(id, Op::Read, id * 100, 8, 0));
        }
        // The first stays; of the others each lets another in, until the first is late.
        for others in [3, 3, 3, 2] {
            assert_eq!(rig.in_drive.len(), others);
            rig.complete(1, Outcome::Done);
        }
        rig.event(Event::Ordered(GateOrder::Age(4)));
        assert_eq!(rig.in_drive.len(), 3, "the order lets it be later");
        rig.complete(0, Outcome::Done);
        assert_eq!(rig.in_drive.len(), 3);
        rig.finish();
    }

    #[test]
    fn requests_that_touch_merge_within_a_lane_only() {
        let mut rig = Rig::new(config(2), AgedRanks::new(2, 100));
        let mut new = arrival(0, Op::Read, 900, 8, 0);
        rig.arrive(new);
        for (id, start, class) in [
            (1, 0, Class::BEST_EFFORT),
            (2, 8, Class::BEST_EFFORT),
            (3, 16, Class::IDLE),
        ] {
            new = arrival(id, Op::Read, start, 8, 0);
            new.class = class;
            rig.arrive(new);
        }
        assert_eq!(rig.engine.stats().merged_back, 1);
        assert_eq!(rig.engine.waiting(), 2);
        rig.finish();
    }
}

mod windows {
    use super::*;

    const SPAN: Nanos = Nanos::from_millis(100);

    fn of(program: u16, id: u64) -> Arrival {
        let mut new = arrival(id, Op::Read, id * 1000, 8, 0);
        new.origin.program = program;
        new
    }

    /// Two programs ask for `many` at a time, and a command takes 7 ms. What went when, for so long.
    fn run(gate: Windows, many: [u64; 2], until: Time) -> Vec<(u16, Time)> {
        let mut rig = Rig::new(config(2), gate);
        let mut ids = 0..;
        for (program, many) in (0..).zip(many) {
            for _ in 0..many {
                rig.arrive(of(program, ids.next().unwrap()));
            }
        }
        let mut sent = Vec::new();
        let mut owners: Vec<(RequestId, u16)> = Vec::new();
        let mut seen = 0;
        loop {
            for new in &rig.sent[seen..] {
                sent.push((new.request.origin.program, new.at));
                owners.push((new.parts[0], new.request.origin.program));
            }
            seen = rig.sent.len();
            let done = rig
                .in_drive
                .first()
                .map(|sent| sent.at + Nanos::from_millis(7));
            let next = done.into_iter().chain(rig.engine.next_wakeup()).min();
            rig.now = next.expect("something happens");
            if rig.now >= until {
                rig.finish();
                return sent;
            }
            if done == next {
                let program = rig.in_drive[0].request.origin.program;
                rig.complete(0, Outcome::Done);
                rig.arrive(of(program, ids.next().unwrap()));
            } else {
                rig.event(Event::Woke);
            }
        }
    }

    /// Those that went outside of their program's window, and the edges at which nobody was there.
    fn wrong(sent: &[(u16, Time)], edges: u64) -> Vec<(u16, Time)> {
        let mut wrong: Vec<(u16, Time)> = sent
            .iter()
            .filter(|(program, at)| at.as_nanos() / SPAN.as_nanos() % 2 != u64::from(*program))
            .copied()
            .collect();
        for edge in 1..edges {
            let (program, at) = ((edge % 2) as u16, Time::ZERO + SPAN * edge);
            // Two commands of 7 ms at a time: 98 ms from one edge, and a free drive at the next.
            if !sent.contains(&(program, at)) {
                wrong.push((program, at));
            }
        }
        wrong
    }

    #[test]
    fn edges_of_windows_are_exact() {
        // One of them asks for so little that the drive is free at the edge; the other has more than it takes.
        let sent = run(Windows::new(2, SPAN), [1, 1], at(1000));
        assert_eq!(wrong(&sent, 10), []);
        // A command that began in the window may end in the next one: the drive is full at the edge.
        let busy = run(Windows::new(2, SPAN), [40, 40], at(1000));
        assert_eq!(wrong(&busy, 1), []);
        assert!(busy.len() > 250, "{}", busy.len());
        let switches: Vec<Time> = busy
            .windows(2)
            .filter(|pair| pair[0].0 != pair[1].0)
            .map(|pair| pair[1].1)
            .collect();
        assert_eq!(switches.len(), 9);
        for (edge, switch) in (1..).zip(switches) {
            let late = switch - (Time::ZERO + SPAN * edge);
            assert!(late < Nanos::from_millis(7), "{late} after edge {edge}");
        }
    }

    #[test]
    fn a_drive_that_is_free_at_an_edge_gets_the_next_command_in_that_nanosecond() {
        let from = Time::from_nanos(12_345);
        let mut gate = Windows::new(1, SPAN);
        let order = GateOrder::Window {
            lane: Lane(0),
            from,
            span: SPAN,
        };
        gate.told(Time::ZERO, &order);
        for (edge, program) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            let mut rig = Rig::new(config(1), gate.clone());
            rig.now = from + SPAN * edge - Nanos::from_nanos(1);
            if edge == 0 {
                rig.now = Time::ZERO;
            }
            rig.arrive(of(program, 0));
            assert_eq!(rig.sent.len(), 0, "edge {edge}");
            assert_eq!(rig.engine.next_wakeup(), Some(from + SPAN * edge));
            let sent = rig.finish();
            assert_eq!(sent[0].at, from + SPAN * edge);
        }
    }

    /// Whose program a command is, and when it went.
    type Went = (u16, Time);

    /// The edges at which nobody was there and what went, with windows that begin at `from` with this program's.
    fn missed(program: u8, from: Time) -> (Vec<Went>, Vec<Went>) {
        let mut gate = Windows::new(2, SPAN);
        gate.told(
            Time::ZERO,
            &GateOrder::Window {
                lane: Lane(program),
                from,
                span: SPAN,
            },
        );
        let sent = run(gate, [1, 1], at(1000));
        (wrong(&sent, 10), sent)
    }

    #[test]
    fn windows_that_are_off_by_a_nanosecond_miss_every_edge_and_exact_ones_none() {
        let nano = Nanos::from_nanos(1);
        let edges = |offset: fn(Time, Nanos) -> Time| -> Vec<(u16, Time)> {
            let edge = |edge: u64| ((edge % 2) as u16, offset(Time::ZERO + SPAN * edge, nano));
            (1..10).map(edge).collect()
        };
        assert_eq!(missed(0, Time::ZERO).0, []);
        // They are late by just that: whoever is missed at an edge is there in the next nanosecond.
        let (late, sent) = missed(0, Time::ZERO + nano);
        assert_eq!(late, edges(|edge, _| edge));
        for there in edges(|edge, nano| edge + nano) {
            assert!(sent.contains(&there), "{there:?}");
        }
        // Whoever is early goes in the other's window, also before the tenth edge, at which the run ends.
        let (early, _) = missed(1, Time::ZERO + SPAN - nano);
        let mut expected = edges(|edge, nano| edge - nano);
        expected.push((0, at(1000) - nano));
        expected.extend(edges(|edge, _| edge));
        assert_eq!(early, expected);
    }

    /// A wait that was over while the gate held woke the engine for ever, at a time that had passed. Expected: it
    /// sleeps until the gate is to be asked again.
    #[test]
    fn a_wait_that_ends_while_the_gate_holds_wakes_the_engine_once() {
        let schedulers = (0..2).map(|_| Box::new(ToyAnticipator::new(Sstf::new())) as Box<_>);
        let gate = Windows::new(2, SPAN);
        let engine = Engine::with_gate(config(2), Box::new(gate.clone()), schedulers.collect());
        let mut rig = Rig::around(engine.expect("in range"), gate);
        // A stream, and behind it one that is far away.
        for (id, start) in [(0, 0), (1, 8), (2, 5000)] {
            let new = arrival(id, Op::Read, start, 8, 0);
            if id == 2 {
                rig.now = at(99);
                rig.arrive(new);
            } else {
                rig.arrive(new);
                rig.now = at(99);
                rig.complete(0, Outcome::Done);
            }
        }
        assert_eq!(rig.in_drive.len(), 0, "it waits for the stream to go on");
        for ms in [100, 101] {
            assert_eq!(rig.engine.next_wakeup(), Some(at(ms)));
            rig.now = at(ms);
            rig.event(Event::Woke);
        }
        assert_eq!(rig.engine.next_wakeup(), Some(at(200)), "its next window");
        rig.now = at(200);
        rig.event(Event::Woke);
        assert_eq!(rig.in_drive.len(), 1);
    }

    #[test]
    fn windows_are_moved_by_an_order_in_the_middle_of_one() {
        let mut rig = Rig::new(config(1), Windows::new(1, SPAN));
        rig.now = at(10);
        rig.arrive(of(1, 0));
        assert_eq!(rig.engine.next_wakeup(), Some(at(100)));
        let from = at(40) + Nanos::from_nanos(7);
        rig.event(Event::Ordered(GateOrder::Window {
            lane: Lane(1),
            from,
            span: Nanos::from_millis(5),
        }));
        assert_eq!(rig.engine.next_wakeup(), Some(from));
        assert_eq!(rig.finish()[0].at, from);
    }
}

mod staged {
    use super::*;
    use headtime_engine::FixedDepth;

    /// Chooses one request ahead, so that there is always one to join.
    fn ahead() -> Rig<FixedDepth> {
        let config = Config {
            commit_ahead: true,
            ..config(1)
        };
        let scheduler = schedulers(1).remove(0);
        let engine = Engine::new(config, scheduler).expect("in range");
        Rig::around(engine, FixedDepth::new(&config))
    }

    fn background(id: u64, op: Op, start: u64, len: u64) -> Arrival {
        Arrival {
            id: RequestId::Background(id),
            ..arrival(0, op, start, len, 0)
        }
    }

    fn join(rig: &mut Rig<FixedDepth>, arrival: Arrival, join: Join) {
        let lane = Lane(0);
        rig.event(Event::Joined {
            arrival,
            lane,
            join,
        });
    }

    fn extents(sent: &[Sent]) -> Vec<String> {
        let text = |sent: &Sent| sent.request.extent.to_string();
        sent.iter().map(text).collect()
    }

    #[test]
    fn a_staged_request_is_preceded_and_widened() {
        let mut rig = ahead();
        rig.arrive(arrival(0, Op::Read, 0, 8, 0));
        rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
        rig.arrive(arrival(2, Op::Read, 2000, 8, 0));
        join(&mut rig, background(0, Op::Read, 984, 16), Join::With);
        join(&mut rig, background(1, Op::Read, 500, 8), Join::Before);
        join(&mut rig, background(2, Op::Read, 600, 8), Join::Before);
        join(&mut rig, background(3, Op::Read, 1008, 4), Join::With);
        assert_eq!(rig.engine.stats().joined, 4);
        assert_eq!(rig.engine.staged(Lane(0)).count(), 3);
        assert_eq!(rig.engine.waiting(), 4);
        let sent = rig.finish();
        assert_eq!(
            extents(&sent),
            ["0+8", "500+8", "600+8", "984+28", "2000+8"]
        );
        let expected = [
            RequestId::Client(1),
            RequestId::Background(0),
            RequestId::Background(3),
        ];
        assert_eq!(sent[3].parts, expected);
    }

    #[test]
    fn a_client_may_join_as_any_part() {
        let mut rig = ahead();
        rig.arrive(arrival(0, Op::Write, 0, 8, 0));
        rig.arrive(arrival(1, Op::Write, 1000, 8, 0));
        join(&mut rig, arrival(2, Op::Write, 992, 8, 0), Join::With);
        rig.complete(0, Outcome::Done);
        rig.complete(0, Outcome::Done);
        let ended: Vec<_> = rig.ended.iter().map(|(id, _)| *id).collect();
        assert_eq!(ended, [0, 1, 2].map(RequestId::Client));
        rig.finish();
    }

    #[test]
    fn a_request_that_may_not_join_is_told_so() {
        let mut rig = ahead();
        let read = |start, len| background(9, Op::Read, start, len);
        let may =
            |rig: &Rig<FixedDepth>, arrival, join| rig.engine.may_join(&arrival, Lane(0), join);
        assert!(!may(&rig, read(0, 8), Join::Before), "nothing is staged");
        rig.arrive(arrival(0, Op::Write, 0, 8, 0));
        assert!(!may(&rig, read(100, 8), Join::Before), "nothing is staged");
        rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
        rig.arrive(arrival(2, Op::Write, 20_000, 8, 0));
        for (arrival, join, expected) in [
            (read(100, 8), Join::Before, true),
            (read(4, 8), Join::Before, false),
            (read(19_996, 5), Join::Before, false),
            (read(992, 8), Join::With, true),
            (read(1008, 1016), Join::With, true),
            (read(1008, 1017), Join::With, false),
            (read(991, 8), Join::With, false),
            (read(1000, 8), Join::With, false),
            (background(9, Op::Write, 992, 8), Join::With, false),
            (background(9, Op::Write, 992, 8), Join::Before, true),
            (background(9, Op::Write, 1000, 8), Join::Before, false),
            (background(9, Op::Flush, 0, 0), Join::Before, false),
        ] {
            assert_eq!(may(&rig, arrival, join), expected, "{arrival:?} {join:?}");
        }
        assert!(!rig.engine.may_join(&read(100, 8), Lane(1), Join::Before));
        rig.arrive(arrival(3, Op::Flush, 0, 0, 0));
        assert!(!may(&rig, read(100, 8), Join::Before), "a flush waits");
        rig.finish();
    }

    #[test]
    #[should_panic(expected = "b9 may not join")]
    fn joining_nothing_is_a_bug() {
        join(&mut ahead(), background(9, Op::Read, 0, 8), Join::Before);
    }

    #[test]
    fn a_log_in_which_a_request_joins_nothing_is_refused() {
        let text = "headtime-log 3\nJ 5 b1 R 0 8 0 0 0 0 1 0 before\n";
        let mut engine = Engine::new(config(1), schedulers(1).remove(0)).unwrap();
        let error = log::replay(text, &mut engine, |_| None).expect_err("nothing is staged");
        assert_eq!(
            error.to_string(),
            "line 2: request b1 joins a staged one, and there is none that it may join"
        );
    }

    /// The background's sectors cannot be read: whoever is waited for must not pay for that.
    #[test]
    fn after_an_error_the_foreground_goes_again_alone_and_first() {
        let mut rig = ahead();
        rig.arrive(arrival(0, Op::Read, 0, 8, 0));
        rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
        join(&mut rig, background(0, Op::Read, 992, 8), Join::With);
        rig.arrive(arrival(2, Op::Read, 2000, 8, 0));
        rig.complete(0, Outcome::Done);
        assert_eq!(rig.in_drive[0].request.extent, Extent::at(992, 16));
        rig.complete(0, Outcome::MediumError);
        assert_eq!(rig.in_drive[0].request.extent, Extent::at(1000, 8));
        assert_eq!(rig.engine.stats().split, 1);
        rig.complete(0, Outcome::Done);
        assert_eq!(
            rig.ended.last(),
            Some(&(RequestId::Client(1), Outcome::Done))
        );
        let sent = rig.finish();
        assert_eq!(
            extents(&sent),
            ["0+8", "992+16", "1000+8", "2000+8", "992+8"]
        );
    }

    proptest! {
        /// Commands fail now and then.
        #[test]
        fn a_scrub_that_joins_staged_requests_gets_all_it_asks_for(
            requests in prop::collection::vec((0..400_u64, 1..30_u64, any::<bool>()), 1..60),
            fails in prop::collection::vec(prop::bool::weighted(0.2), 200),
        ) {
            let mut rig = ahead();
            rig.scrub = Some(Scrub::new(Sectors::new(400), Sectors::new(8), 50));
            let clients = requests.len();
            let mut fails = fails.into_iter();
            for (id, (start, len, write)) in (0..).zip(requests) {
                rig.now += Nanos::from_micros(10);
                let op = if write { Op::Write } else { Op::Read };
                rig.arrive(arrival(id, op, start, len, 0));
                if id % 2 == 0 {
                    let outcome = match fails.next() {
                        Some(true) => Outcome::MediumError,
                        _ => Outcome::Done,
                    };
                    rig.complete(0, outcome);
                }
            }
            while !rig.engine.is_idle() {
                rig.complete(0, Outcome::Done);
            }
            let scrub = rig.scrub.as_ref().unwrap();
            prop_assert!(scrub.waits.is_empty());
            prop_assert_eq!(scrub.finished, rig.engine.stats().joined);
            let background = rig.ended.iter().filter(|(id, _)| matches!(id, RequestId::Background(_)));
            prop_assert_eq!(rig.ended.len() - background.count(), clients);
            rig.finish();
        }
    }
}

mod in_flight {
    use super::*;

    fn low(id: u64, start: u64) -> Arrival {
        arrival(id, Op::Read, start, 8, 0)
    }

    fn high(id: u64, start: u64) -> Arrival {
        Arrival {
            class: Class::REAL_TIME,
            ..low(id, start)
        }
    }

    #[derive(Clone, Debug)]
    enum Move {
        Arrive(Op, u64, u64, bool),
        Complete(prop::sample::Index),
        /// Of the first lane into the second, or the other way round.
        Drain(bool),
        /// To a gate with ranks, or one with windows.
        Gate(bool),
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let op = prop_oneof![6 => Just(Op::Read), 6 => Just(Op::Write), 1 => Just(Op::Flush)];
        let step = prop_oneof![
            10 => (op, 0..60_u64, 1..12_u64, any::<bool>())
                .prop_map(|(op, start, len, high)| Move::Arrive(op, start, len, high)),
            6 => any::<prop::sample::Index>().prop_map(Move::Complete),
            1 => any::<bool>().prop_map(Move::Drain),
            1 => any::<bool>().prop_map(Move::Gate),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        /// The audit looks on: parts stay in one lane, and whatever a higher rank waits for has that rank.
        #[test]
        fn lanes_that_are_drained_and_gates_that_are_swapped_break_no_promise(
            moves in moves(),
            merge in any::<bool>(),
        ) {
            let config = Config { merge, ..config(4) };
            let mut rig = Rig::new(config, AgedRanks::new(3, 4));
            for (id, step) in (0..).zip(moves) {
                rig.now += Nanos::from_micros(1);
                match step {
                    Move::Arrive(op, start, len, high) => {
                        let len = if op == Op::Flush { 0 } else { len };
                        let mut new = arrival(id, op, start, len, 0);
                        new.class = if high { Class::REAL_TIME } else { Class::IDLE };
                        new.origin.program = (id % 2) as u16;
                        rig.arrive(new);
                    }
                    Move::Complete(_) if rig.in_drive.is_empty() => {}
                    Move::Complete(which) => {
                        rig.complete(which.index(rig.in_drive.len()), Outcome::Done);
                    }
                    Move::Drain(down) => {
                        let (from, to) = if down { (Lane(0), Lane(1)) } else { (Lane(1), Lane(0)) };
                        rig.engine.drain_lane(rig.now, from, to);
                        rig.commands();
                    }
                    Move::Gate(ranks) => {
                        let gate: Box<dyn Gate> = match ranks {
                            true => Box::new(AgedRanks::new(3, 4)),
                            false => Box::new(Windows::new(3, Nanos::from_micros(7))),
                        };
                        rig.engine.replace_gate(rig.now, gate, schedulers(2));
                        rig.audit.watch(&mut rig.engine);
                        rig.commands();
                    }
                }
            }
            while !rig.engine.is_idle() {
                if rig.in_drive.is_empty() {
                    rig.now = rig.engine.next_wakeup().expect("it waits for a time");
                    rig.event(Event::Woke);
                } else {
                    rig.complete(0, Outcome::Done);
                }
            }
            prop_assert_eq!(rig.audit.unfinished(), 0);
        }
    }

    fn starts(engine: &mut Engine, now: Time, in_drive: &mut Vec<DriveTag>) -> Vec<u64> {
        let commands = std::iter::from_fn(|| engine.poll(now));
        let starts = commands.filter_map(|command| match command {
            Command::Issue(request) => {
                in_drive.push(request.tag);
                Some(request.extent.start.get())
            }
            _ => None,
        });
        starts.collect()
    }

    /// After all of [`busy`].
    const LATER: Time = Time::from_nanos(9);

    /// An engine of two ranks with a command in the drive, and those that wait.
    fn busy() -> (Engine, Vec<DriveTag>) {
        let gate = Box::new(AgedRanks::new(2, 100));
        let mut engine = Engine::with_gate(config(2), gate, schedulers(2)).unwrap();
        let (mut in_drive, mut now) = (Vec::new(), Time::ZERO);
        for new in [
            low(0, 5000),
            low(1, 300),
            high(2, 4000),
            high(3, 400),
            low(4, 100),
        ] {
            now += Nanos::from_nanos(1);
            engine.handle(now, Event::Arrived(new));
            starts(&mut engine, now, &mut in_drive);
        }
        assert_eq!((in_drive.len(), engine.waiting()), (2, 3));
        (engine, in_drive)
    }

    /// Completes everything, and says where what goes then begins.
    fn rest(mut engine: Engine, mut in_drive: Vec<DriveTag>) -> Vec<u64> {
        let mut all = starts(&mut engine, LATER, &mut in_drive);
        while !in_drive.is_empty() {
            let (tag, outcome) = (in_drive.remove(0), Outcome::Done);
            engine.handle(LATER, Event::Completed { tag, outcome });
            all.extend(starts(&mut engine, LATER, &mut in_drive));
        }
        assert!(engine.is_idle());
        assert_eq!(engine.stats().finished, engine.stats().arrived);
        all
    }

    #[test]
    fn without_a_change_the_ranks_go_in_their_order() {
        let (engine, in_drive) = busy();
        assert_eq!(rest(engine, in_drive), [400, 300, 100]);
    }

    #[test]
    fn a_lane_is_drained_into_another() {
        let (mut engine, in_drive) = busy();
        engine.drain_lane(LATER, AgedRanks::LOW, AgedRanks::LOW);
        engine.drain_lane(LATER, AgedRanks::HIGH, AgedRanks::LOW);
        assert_eq!(engine.waiting(), 3);
        assert_eq!(rest(engine, in_drive), [300, 400, 100]);
    }

    #[test]
    fn a_lane_gets_another_scheduler_and_the_others_keep_theirs() {
        let (mut engine, in_drive) = busy();
        let sstf = Box::new(WorkConserving::new(Sstf::new()));
        let old = engine.replace_scheduler(LATER, AgedRanks::LOW, sstf);
        assert_eq!(old.queued(), 0);
        assert_eq!(rest(engine, in_drive), [400, 100, 300]);
    }

    /// The new one has the even and the odd programs in lanes, whatever their rank.
    #[test]
    fn a_gate_takes_over_with_everything_that_waits() {
        let (mut engine, in_drive) = busy();
        let gate = Box::new(Windows::new(2, Nanos::from_millis(100)));
        let old = engine.replace_gate(LATER, gate, schedulers(2));
        assert!(old.iter().all(|old| old.queued() == 0));
        assert_eq!(engine.waiting(), 3);
        assert_eq!(engine.poll(LATER), None, "it knows that the drive is full");
        // All are of program 0, whose window it is, and go in order of arrival.
        assert_eq!(rest(engine, in_drive), [300, 400, 100]);
    }

    #[test]
    fn what_is_staged_moves_with_its_lane() {
        let config = Config {
            commit_ahead: true,
            ..config(1)
        };
        let mut engine = Engine::new(config, schedulers(1).remove(0)).unwrap();
        let mut in_drive = Vec::new();
        for new in [low(0, 5000), low(1, 300), low(2, 100)] {
            engine.handle(Time::ZERO, Event::Arrived(new));
            starts(&mut engine, Time::ZERO, &mut in_drive);
        }
        assert_eq!(engine.staged(Lane(0)).count(), 1);
        engine.replace_gate(Time::ZERO, Box::new(AgedRanks::new(2, 100)), schedulers(2));
        assert_eq!(engine.staged(AgedRanks::LOW).count(), 1);
        engine.drain_lane(Time::ZERO, AgedRanks::LOW, AgedRanks::HIGH);
        assert_eq!(engine.staged(AgedRanks::HIGH).count(), 1);
        let origin = Origin::default();
        assert_eq!(
            engine
                .unfinished()
                .filter(|(_, one)| one.origin == origin)
                .count(),
            3
        );
        // The low rank may have one tag of two, the high one both; but the drive takes one.
        let (tag, outcome) = (in_drive.remove(0), Outcome::Done);
        engine.handle(Time::ZERO, Event::Completed { tag, outcome });
        let first = engine.poll(Time::ZERO);
        assert!(matches!(first, Some(Command::Finish(_))), "{first:?}");
        let Some(Command::Issue(next)) = engine.poll(Time::ZERO) else {
            panic!("the staged one goes")
        };
        assert_eq!(next.extent.start.get(), 300);
    }
}
