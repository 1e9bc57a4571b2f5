//! Tests of the gates' promises, with drives that complete in any order.

use super::ages::Ages;
use super::*;
use crate::delays::DelayCounts;
use headtime_sched::{Counts, Flags, Op, Request};
use headtime_units::{Extent, Lba, Sectors};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A step of a drive and its clients.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request of this class arrives.
    Ask(u8),
    /// The drive completes a command, counted from the oldest, or from the newest if true.
    Complete(u8, bool),
    /// The threshold changes.
    Age(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_u8).prop_map(Step::Ask),
        4 => (0..8_u8, any::<bool>()).prop_map(|(at, newest)| Step::Complete(at, newest)),
    ];
    prop::collection::vec(step, 0..400)
}

fn with_thresholds() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..4_u8).prop_map(Step::Ask),
        8 => (0..8_u8, any::<bool>()).prop_map(|(at, newest)| Step::Complete(at, newest)),
        1 => (0..20_u64).prop_map(Step::Age),
    ];
    prop::collection::vec(step, 0..400)
}

fn command(tag: DriveTag, class: Class) -> Request<DriveTag> {
    Request {
        tag,
        op: Op::Read,
        extent: Extent::new(Lba::ZERO, Sectors::new(8)),
        arrival: Time::ZERO,
        origin: Origin::default(),
        class,
        flags: Flags::NONE,
    }
}

/// Requests that wait for a gate, by lane, and a drive.
struct Rig<G> {
    gate: G,
    waiting: Vec<Vec<Class>>,
    counts: DelayCounts,
    /// Commands in the drive, oldest first: tag, class, and number of threshold changes before the command.
    drive: Vec<(DriveTag, Class, u64)>,
    changes: u64,
}

impl<G> Lanes for Rig<G> {
    fn state(&self, lane: Lane) -> LaneState {
        let waiting = &self.waiting[lane.index()];
        LaneState {
            behind_prefix: false,
            queued: 0,
            staged: waiting.len(),
            first: waiting.first().copied(),
            ready: !waiting.is_empty(),
        }
    }
}

impl<G: Gate + Clone> Rig<G> {
    fn new(gate: G) -> Rig<G> {
        Rig {
            waiting: vec![Vec::new(); gate.lanes()],
            gate,
            counts: DelayCounts::default(),
            drive: Vec::new(),
            changes: 0,
        }
    }

    fn ask(&mut self, class: Class) {
        let lane = self.gate.lane(Origin::default(), class);
        self.waiting[lane.index()].push(class);
        self.send();
    }

    /// Sends all requests that may go.
    fn send(&mut self) {
        loop {
            let mut gate = self.gate.clone();
            let Next::Take(lane) = gate.next(Time::ZERO, self) else {
                return;
            };
            if self.waiting[lane.index()].is_empty() {
                return;
            }
            let class = self.waiting[lane.index()].remove(0);
            let free = |tag: &DriveTag| self.drive.iter().all(|(taken, ..)| taken != tag);
            let tag = (0..).map(DriveTag).find(free).expect("there are many");
            self.gate.taken(Time::ZERO, &command(tag, class), lane);
            self.counts.issued(tag);
            self.drive.push((tag, class, self.changes));
        }
    }

    /// Completes a command. Returns its delay count, and true if the threshold has not changed since the command went
    /// to the drive.
    fn complete(&mut self, at: u8, newest: bool) -> Option<(u32, bool)> {
        let len = self.drive.len();
        let at = usize::from(at) % len.max(1);
        let at = if newest { len.checked_sub(at + 1)? } else { at };
        if at >= len {
            return None;
        }
        let (tag, _, since) = self.drive.remove(at);
        self.gate.returned(Time::ZERO, tag);
        let count = self.counts.completed(tag);
        self.send();
        Some((count, since == self.changes))
    }

    fn is_idle(&self) -> bool {
        self.drive.is_empty() && self.waiting.iter().all(Vec::is_empty)
    }
}

fn config(depth: u32) -> Config {
    Config {
        depth,
        ..Config::default()
    }
}

/// Runs the steps, then completes all commands, the newest first. Checks the bound on overtaking throughout.
fn run<G: Gate + Clone>(
    gate: G,
    depth: u32,
    age_th: u64,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(gate);
    let mut threshold = age_th;
    let check = |ended: Option<(u32, bool)>, threshold: u64| {
        if let Some((count, true)) = ended {
            let most = threshold + u64::from(depth) - 1;
            prop_assert!(u64::from(count) <= most, "overtaken {} times", count);
        }
        Ok(())
    };
    for step in steps {
        match *step {
            Step::Ask(class) => rig.ask(Class(class)),
            Step::Complete(at, newest) => {
                let ended = rig.complete(at, newest);
                check(ended, threshold)?;
            }
            Step::Age(age) => {
                threshold = age;
                rig.changes += 1;
                rig.gate.obey(Time::ZERO, &GateOrder::Age(age));
                rig.send();
            }
        }
        prop_assert!(rig.drive.len() <= depth as usize);
        let waits = rig.waiting.iter().any(|lane| !lane.is_empty());
        prop_assert!(
            !waits || !rig.drive.is_empty(),
            "requests wait for an empty drive"
        );
    }
    while !rig.is_idle() {
        let ended = rig.complete(0, true);
        prop_assert!(ended.is_some(), "requests wait for an empty drive");
        check(ended, threshold)?;
    }
    Ok(())
}

/// Algorithm 2 to the letter, with the names and lines of the paper.
struct LiteralAges {
    age_th: i64,
    /// Tags that are taken, with `ageValue`.
    tag_table: BTreeMap<DriveTag, i64>,
    act_req_counter: i64,
    wait_tag: BTreeSet<DriveTag>,
}

impl LiteralAges {
    fn new(age_th: i64) -> LiteralAges {
        LiteralAges {
            age_th,
            tag_table: BTreeMap::new(),
            act_req_counter: 0,
            wait_tag: BTreeSet::new(),
        }
    }

    /// Lines 6 and 7.
    fn assign(&mut self, tag: DriveTag) {
        self.tag_table.insert(tag, -self.act_req_counter);
        self.act_req_counter += 1;
    }

    /// Lines 9 to 22.
    fn free(&mut self, tag: DriveTag) {
        self.wait_tag.remove(&tag);
        self.tag_table.remove(&tag);
        for (other, age_value) in &mut self.tag_table {
            *age_value += 1;
            if *age_value > self.age_th {
                self.wait_tag.insert(*other);
            }
        }
        self.act_req_counter -= 1;
    }

    /// Not in the paper.
    fn set_threshold(&mut self, age_th: u64) {
        self.age_th = age_th as i64;
        let starved = self.tag_table.iter().filter(|(_, age)| **age > self.age_th);
        self.wait_tag = starved.map(|(tag, _)| *tag).collect();
    }
}

proptest! {
    /// For any drive, an age is the delay count less the number of earlier commands that are still in the drive.
    #[test]
    fn an_age_is_the_delay_count_less_the_earlier_ones_in_the_drive(steps in steps()) {
        let mut ages = Ages::new(3);
        // Tag, delay count; oldest first.
        let mut drive: Vec<(DriveTag, i64)> = Vec::new();
        for step in steps {
            match step {
                Step::Ask(_) if drive.len() < 40 => {
                    let free = |tag: &DriveTag| drive.iter().all(|(taken, _)| taken != tag);
                    let tag = (0..).map(DriveTag).find(free).unwrap();
                    ages.assign(tag);
                    drive.push((tag, 0));
                }
                Step::Complete(at, _) if !drive.is_empty() => {
                    let at = usize::from(at) % drive.len();
                    let (tag, _) = drive.remove(at);
                    ages.free(tag);
                    for (_, overtaken) in &mut drive[..at] {
                        *overtaken += 1;
                    }
                }
                _ => {}
            }
            let mut starved = Vec::new();
            for (earlier, (tag, overtaken)) in drive.iter().enumerate() {
                let age = overtaken - earlier as i64;
                prop_assert_eq!(ages.age(*tag), Some(age));
                if age > 3 {
                    starved.push(*tag);
                }
            }
            prop_assert_eq!((0..).map_while(|nth| ages.starved(nth)).collect::<Vec<_>>(), starved);
            prop_assert_eq!(ages.active() as usize, drive.len());
        }
    }

    /// Compares with Algorithm 2 line by line, with changing thresholds.
    #[test]
    fn those_starve_that_starve_by_the_algorithm_to_the_letter(steps in with_thresholds()) {
        let (mut ages, mut literal) = (Ages::new(3), LiteralAges::new(3));
        for step in steps {
            let free = (0..).map(DriveTag).find(|tag| !literal.tag_table.contains_key(tag));
            match step {
                Step::Ask(_) if literal.tag_table.len() < 40 => {
                    let tag = free.expect("there are many");
                    ages.assign(tag);
                    literal.assign(tag);
                }
                Step::Complete(at, _) if !literal.tag_table.is_empty() => {
                    let at = usize::from(at) % literal.tag_table.len();
                    let tag = *literal.tag_table.keys().nth(at).expect("it is taken");
                    ages.free(tag);
                    literal.free(tag);
                }
                Step::Age(age) => {
                    ages.set_threshold(age);
                    literal.set_threshold(age);
                }
                _ => {}
            }
            let starved: BTreeSet<DriveTag> = (0..).map_while(|nth| ages.starved(nth)).collect();
            prop_assert_eq!(&starved, &literal.wait_tag);
            prop_assert_eq!(ages.any_starves(), !literal.wait_tag.is_empty());
            for (tag, age) in &literal.tag_table {
                prop_assert_eq!(ages.age(*tag), Some(*age));
            }
        }
    }

    #[test]
    fn rsd_bounds_how_often_a_command_is_overtaken(
        steps in with_thresholds(), depth in 1..33_u32, age_th in 0..40_u64,
    ) {
        run(Rsd::new(&config(depth), age_th), depth, age_th, &steps)?;
    }

    #[test]
    fn ranks_bound_it_too_and_never_close_for_good(
        steps in with_thresholds(), depth in 1..33_u32, age_th in 0..40_u64, ranks in prop::collection::vec(0..40_u16, 1..4), single in any::<bool>(),
    ) {
        let mut ranks = ranks;
        ranks.sort_unstable();
        let queueing = if single { Queueing::Single } else { Queueing::Lanes };
        let gate = RsdPriority::new(&config(depth), age_th, Counts::new(&ranks), queueing);
        run(gate, depth, age_th, &steps)?;
    }
}

/// A drive that always serves its newest command first reaches the bound exactly.
#[test]
fn the_oldest_command_is_overtaken_as_often_as_the_bound_says() {
    let (depth, age_th) = (8, 20);
    let mut rig = Rig::new(Rsd::new(&config(depth), age_th));
    (0..200).for_each(|_| rig.ask(Class::BEST_EFFORT));
    let counts: Vec<u32> = (0..60)
        .filter_map(|_| rig.complete(0, true))
        .map(|(count, _)| count)
        .collect();
    assert_eq!(counts.iter().max(), Some(&(20 + 8 - 1)));
}

/// Algorithm 3 to the letter, for two or more levels. The two departures in [`ranked`] are left out.
#[derive(Clone, Debug)]
struct Literal {
    depth: u32,
    active: u32,
    ranks: Vec<u32>,
    /// By tag: priority, counted up from 1; 0 for none.
    req_prio: Vec<usize>,
    prio_ceiling: usize,
}

impl Literal {
    fn new(depth: u32, ranks: &[u32]) -> Literal {
        Literal {
            depth,
            active: 0,
            ranks: ranks.to_vec(),
            req_prio: vec![0; 64],
            prio_ceiling: 0,
        }
    }

    fn prio(&self, lane: Lane) -> usize {
        self.ranks.len() - lane.index()
    }
}

impl Gate for Literal {
    fn lanes(&self) -> usize {
        self.ranks.len()
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        Lane(class.0.min(self.ranks.len() as u8 - 1))
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        let free = self.depth - self.active;
        let may = |lane: &Lane| {
            let rank = self.ranks[lane.index()];
            lanes.state(*lane).ready && self.prio(*lane) >= self.prio_ceiling && rank < free
        };
        let lane = (0..self.lanes() as u8).map(Lane).find(may);
        lane.map_or(Next::Hold(None), Next::Take)
    }

    fn taken(&mut self, _: Time, command: &Request<DriveTag>, lane: Lane) {
        let prio = self.prio(lane);
        self.prio_ceiling = self.prio_ceiling.max(prio);
        self.req_prio[command.tag.index()] = prio;
        self.active += 1;
    }

    fn returned(&mut self, _: Time, tag: DriveTag) {
        if self.req_prio[tag.index()] == self.prio_ceiling {
            self.req_prio[tag.index()] = 0;
            self.prio_ceiling = self.req_prio.iter().copied().max().unwrap_or(0);
        }
        self.active -= 1;
    }
}

/// Sends requests of these classes, and completes the oldest command as long as there is one. Returns the number of
/// requests that never went to the drive.
fn left_over<G: Gate + Clone>(gate: G, classes: &[u8]) -> usize {
    let mut rig = Rig::new(gate);
    for class in classes {
        rig.ask(Class(*class));
    }
    while rig.complete(0, false).is_some() {}
    rig.waiting.iter().map(Vec::len).sum()
}

#[test]
fn ranks_of_the_depth_hang_to_the_letter_and_not_here() {
    let classes = [1, 0, 1];
    assert_eq!(left_over(Literal::new(2, &[1, 2]), &classes), 2);
    let gate = RsdPriority::new(&config(2), 90, Counts::new(&[1, 2]), Queueing::Lanes);
    assert_eq!(left_over(gate, &classes), 0);
}

/// A command of the middle level is in the drive when one of the highest level follows, and is done first. In the paper
/// its tag keeps the level. Once the highest command is done, a request of the lowest level waits for no command.
#[test]
fn a_freed_tag_below_the_ceiling_hangs_to_the_letter_and_not_here() {
    let literal = Literal::new(32, &[1, 2, 3]);
    let gate = RsdPriority::new(&config(32), 90, Counts::new(&[1, 2, 3]), Queueing::Lanes);
    fn run<G: Gate + Clone>(gate: G) -> usize {
        let mut rig = Rig::new(gate);
        rig.ask(Class(1));
        rig.ask(Class(0));
        rig.complete(0, false);
        rig.complete(0, false);
        rig.ask(Class(2));
        rig.drive.len()
    }
    assert_eq!((run(literal), run(gate)), (0, 1));
}

#[test]
fn with_lanes_a_refused_request_blocks_none_more_urgent_and_with_one_queue_it_does() {
    let sent = |queueing| {
        let mut rig = Rig::new(RsdPriority::new(
            &config(4),
            90,
            Counts::new(&[0, 2]),
            queueing,
        ));
        // The third request needs one more free tag.
        [1, 1, 1, 0]
            .into_iter()
            .for_each(|class| rig.ask(Class(class)));
        rig.drive
            .iter()
            .map(|(_, class, _)| class.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(sent(Queueing::Lanes), [1, 1, 0]);
    assert_eq!(sent(Queueing::Single), [1, 1]);
}

#[test]
fn while_an_urgent_command_is_in_the_drive_no_less_urgent_one_goes() {
    let mut rig = Rig::new(RsdPriority::new(
        &config(32),
        90,
        Counts::new(&[1, 2]),
        Queueing::Lanes,
    ));
    rig.ask(Class(0));
    rig.ask(Class(1));
    assert_eq!(rig.drive.len(), 1);
    rig.complete(0, false);
    assert_eq!(rig.drive.len(), 1);
    rig.ask(Class(1));
    assert_eq!(rig.drive.len(), 2);
}

#[test]
fn a_raised_threshold_opens_the_gate_and_a_lowered_one_closes_it() {
    let mut rig = Rig::new(Rsd::new(&config(4), 100));
    (0..50).for_each(|_| rig.ask(Class(1)));
    (0..10).for_each(|_| assert!(rig.complete(0, true).is_some()));
    assert_eq!(rig.drive.len(), 4);
    rig.gate.obey(Time::ZERO, &GateOrder::Age(5));
    rig.complete(0, true);
    assert_eq!(rig.drive.len(), 3);
    rig.gate.obey(Time::ZERO, &GateOrder::Age(100));
    rig.send();
    assert_eq!(rig.drive.len(), 4);
}

/// By lane: number of staged requests, and true if the lane is ready.
struct States(&'static [(usize, bool)]);

impl Lanes for States {
    fn state(&self, lane: Lane) -> LaneState {
        let (staged, ready) = self.0[lane.index()];
        LaneState {
            staged,
            ready,
            ..LaneState::default()
        }
    }
}

#[test]
fn what_a_gate_asks_of_a_lane_alone_is_what_its_state_says() {
    let lanes = States(&[(0, true), (3, false)]);
    assert_eq!([0, 1].map(|lane| lanes.staged(Lane(lane))), [0, 3]);
    assert_eq!([0, 1].map(|lane| lanes.is_ready(Lane(lane))), [true, false]);
}

#[test]
fn ranks_choose_ahead_in_the_first_lane_that_is_ready_and_has_nothing_staged_if_requests_are_to_be()
{
    let lanes = States(&[(0, false), (1, true), (0, true), (0, true)]);
    let ahead = |commit_ahead, queueing| {
        let config = Config {
            commit_ahead,
            ..config(8)
        };
        let ranks = Counts::new(&[0, 1, 2, 3]);
        RsdPriority::new(&config, 90, ranks, queueing).ahead(&lanes)
    };
    assert_eq!(ahead(true, Queueing::Lanes), Some(Lane(2)));
    assert_eq!(ahead(false, Queueing::Lanes), None);
    let single = RsdPriority::new(&config(8), 90, Counts::new(&[0, 1]), Queueing::Single);
    assert_eq!(single.ahead(&States(&[(0, true)])), Some(Lane(0)));
    assert_eq!(single.ahead(&States(&[(1, true)])), None);
}

#[test]
fn ranks_hear_of_a_depth_and_of_a_threshold() {
    let ranks = Counts::new(&[0]);
    let mut rig = Rig::new(RsdPriority::new(&config(4), 100, ranks, Queueing::Lanes));
    (0..50).for_each(|_| rig.ask(Class(0)));
    rig.gate.obey(Time::ZERO, &GateOrder::Depth(2));
    (0..2).for_each(|_| assert!(rig.complete(0, true).is_some()));
    assert_eq!(rig.drive.len(), 2);
    rig.gate.obey(Time::ZERO, &GateOrder::Depth(4));
    rig.send();
    (0..10).for_each(|_| assert!(rig.complete(0, true).is_some()));
    assert_eq!(rig.drive.len(), 4);
    rig.gate.obey(Time::ZERO, &GateOrder::Age(5));
    rig.complete(0, true);
    assert_eq!(rig.drive.len(), 3);
}

#[test]
fn a_more_urgent_level_outranks_a_less_urgent_one_and_not_itself() {
    let ranks = Counts::new(&[0, 1, 2]);
    let gate = RsdPriority::new(&config(8), 90, ranks, Queueing::Lanes);
    let outranks = |lane, other| gate.outranks(Lane(lane), Lane(other));
    assert_eq!(
        [outranks(0, 2), outranks(1, 1), outranks(2, 1)],
        [true, false, false]
    );
}

#[test]
fn gates_are_written_as_they_are_read() {
    for text in [
        "depth=8",
        "depth",
        "rsd",
        "rsd:age_th=30",
        "rsd-priority:age_th=30:ranks=1/2:queue=single",
    ] {
        let spec: GateSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        assert!(spec.build(&config(32)).is_ok());
    }
    let spec: GateSpec = " depth:depth=8 ".parse().unwrap();
    assert_eq!(spec.to_string(), "depth=8");
}

#[test]
fn a_gate_that_closes_by_age_says_at_which_and_others_say_none() {
    let threshold = |text: &str| text.parse::<GateSpec>().unwrap().age_th();
    assert_eq!(threshold("rsd:age_th=30"), Some(30));
    assert_eq!(threshold("rsd-priority"), Some(90));
    assert_eq!(threshold("depth=8"), None);
    assert_eq!(threshold("iolatency"), None);
}

/// An ordered depth is limited to the depth in the gate's text.
#[test]
fn a_gate_of_a_lower_depth_than_the_engine_has_keeps_to_it() {
    let sent = |depth, ordered| {
        let mut gate = FixedDepth::of(&config(depth), 8);
        gate.obey(Time::ZERO, &GateOrder::Depth(ordered));
        let mut rig = Rig::new(gate);
        (0..50).for_each(|_| rig.ask(Class(1)));
        rig.drive.len()
    };
    assert_eq!((sent(32, 32), sent(32, 3), sent(4, 32)), (8, 3, 4));
    let own = |text: &str| {
        let spec: GateSpec = text.parse().unwrap();
        spec.build(&config(8)).unwrap().is_none()
    };
    assert!(own("depth") && own("depth=8") && !own("depth=7"));
}

#[test]
fn a_threshold_alone_is_an_order_and_any_other_change_is_a_swap() {
    let order = |from: &str, to: &str| {
        let read = |text: &str| text.parse::<GateSpec>().unwrap();
        read(to).order_from(&read(from))
    };
    assert_eq!(order("rsd", "rsd:age_th=5"), Some(GateOrder::Age(5)));
    assert_eq!(order("rsd:age_th=5", "rsd"), Some(GateOrder::Age(90)));
    assert_eq!(
        order("rsd-priority:ranks=1/2", "rsd-priority:ranks=1/2:age_th=7"),
        Some(GateOrder::Age(7))
    );
    for (from, to) in [
        ("rsd", "rsd"),
        ("rsd", "rsd:age_th=90"),
        ("rsd", "rsd-priority:age_th=5"),
        ("depth=4", "depth=5"),
        ("depth", "rsd:age_th=5"),
        ("rsd-priority:ranks=1/2", "rsd-priority:ranks=1/3:age_th=7"),
        ("rsd-priority:age_th=7", "rsd-priority:queue=single"),
    ] {
        assert_eq!(order(from, to), None, "{from} {to}");
    }
}

#[test]
fn a_text_that_names_no_gate_is_refused_with_what_is_allowed() {
    let refused = |text: &str| text.parse::<GateSpec>().unwrap_err().to_string();
    assert_eq!(
        refused("rdd"),
        "gate \"rdd\": there is no gate \"rdd\"; did you mean \"rsd\"? Known are depth, rsd, rsd-priority, head-time, \
         iolatency, windows, average, mclock"
    );
    assert_eq!(refused(""), "gate \"\": a gate has a name, as in \"rsd\"");
    assert_eq!(
        refused("depth=0"),
        "gate \"depth=0\": depth is \"0\"; allowed is 1 to 256"
    );
    assert_eq!(
        refused("rsd:age_th=x"),
        "gate \"rsd:age_th=x\": age_th is \"x\"; allowed is 0 to 1000000"
    );
    assert_eq!(
        refused("rsd-priority:ranks=1/x"),
        "gate \"rsd-priority:ranks=1/x\": ranks is \"1/x\"; allowed are 1 to 8 numbers of 0 to 255, as in 1/2/3"
    );
    for floor in ["5", "51%", "0.5%"] {
        assert_eq!(
            refused(&format!("rsd-priority:floor={floor}")),
            format!(
                "gate \"rsd-priority:floor={floor}\": floor is \"{floor}\"; allowed is 0% to 50%"
            )
        );
    }
    let zero: GateSpec = "rsd-priority:floor=0".parse().unwrap();
    assert_eq!(zero.options().percent("floor"), 0);
    let built = |text: &str, depth| {
        let spec: GateSpec = text.parse().unwrap();
        spec.build(&config(depth))
            .map(|_| ())
            .map_err(|error| error.problem.to_string())
    };
    assert_eq!(built("rsd-priority:ranks=1/3", 4), Ok(()));
    assert_eq!(built("rsd-priority:ranks=1/3", 1), Ok(()));
    assert_eq!(
        built("rsd-priority:ranks=1/4", 4),
        Err("ranks is 1/4; allowed is less than the depth, which is 4".into())
    );
    assert_eq!(
        built("rsd-priority:ranks=2/1", 31),
        Err(
            "ranks is 2/1; allowed are numbers that do not fall, the most urgent level first"
                .into()
        )
    );
}
