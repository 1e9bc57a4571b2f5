//! NISE: either the scheduler or the drive orders.
//!
//! # Problem
//!
//! A scheduler that waits for a stream's next request keeps a drive with a queue from ordering, and such a drive does
//! not keep to the scheduler's order. With both at work, streams lose the gain of waiting, and random requests lose the
//! gain of the drive's order.
//!
//! # Rule
//!
//! The *sequentiality metric* is a moving mean of the sizes of requests as they go to the drive: streams read ahead,
//! and their requests are large. When a request is to be chosen, but at most once per `th1`, NISE decides:
//!
//! - *Random*, while the metric is below `th2` sectors: first come, first served, and as many commands in the drive
//!   as the engine allows. The drive orders.
//! - *Sequential*: [`Anticipatory`], and one command in the drive. The scheduler orders.
//!
//! Both choose among the same requests, and the statistics of `anticipatory` go on in either mode. A change waits for
//! nothing. If the drive has more commands than the new depth allows, it completes them.
//!
//! # What the paper leaves open
//!
//! NISE starts in random mode, with a metric of 0. A decision counts whether or not it changes the mode. Section 5.1
//! says once that the metric is compared with `th1`; the algorithm says `th2`. A change of the mode does not end a wait
//! by itself: in random mode the oldest request goes, which ends the wait.
//!
//! # Any set of schedulers
//!
//! `nise(noop,deadline@8,anticipatory@1):th2=20/80` chooses among other schedulers, each with its own depth or the
//! depth of the engine, ordered by the sequential share of the load. Between neighbours stands a threshold. All
//! schedulers have all requests. A request that one scheduler hands out counts as handed out for all, so their
//! statistics of processes go on. Requests merge if all schedulers agree. Two remarks:
//!
//! - A set of schedulers is not in the paper. Without a set, nise follows the paper.
//! - `by=trial` does not use sizes. It measures the service of each scheduler; see `trials.rs` for the method, and the
//!   design note (`docs/design/2026-11-22-ncq.md`) for the reasons.
//!
//! # Bound
//!
//! In random mode no request is overtaken here. In sequential mode the bound of `anticipatory` holds. Among other
//! schedulers, the active scheduler's bound holds while that scheduler is active.
//!
//! # Tunables
//!
//! - `th1` (duration; default 6s): the shortest duration of a mode. Longer than the period of the file system's
//!   write-back, which sends many small requests at once.
//! - `th2` (sectors; default 50): the mean size from which on the load counts as sequential. With more than two
//!   schedulers, one number for each scheduler after the first.
//! - `alpha` (a shift; default 7, 1/128): the weight of each request in the mean. Larger shifts smooth more.
//! - `by` (size or trial; default size): the criterion.
//! - `turn` (duration; default 500ms), `cost` (a share of the time; default 0.01): the duration of each trial, and the
//!   largest cost of trials.
//! - the tunables of `anticipatory`, if no schedulers are named.
//!
//! # Source
//!
//! Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler: Preventing Unexpected Misbehaviors (ACM TOS 6(1), 2010), section 5.1,
//! Algorithm 1.
//!
//! # When not to use it
//!
//! - Streams and random requests come at the same time.
//! - Large requests go to random addresses, or are written. Their sizes look like streams, and the drive gets a command
//!   at a time.
//! - Requests do not name their process.

mod members;

use crate::anticipatory::{Anticipatory, AnticipatoryConfig};
use crate::policy::{Among, Built, Counts, OptionInfo, Options, Parts, PolicyInfo};
use crate::{
    Dispatch, Foretold, HeadState, Noop, Op, Partners, Request, Scheduler, Tag, Track, Trials,
    WaitStats, WorkConserving,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use headtime_units::{Millionths, Nanos, Time};
use members::{Member, Members};

const AS: &[OptionInfo] = AnticipatoryConfig::OPTIONS;

/// The record of NISE.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "nise",
    idea: "lets the scheduler or drive order",
    bound: "random loads: never overtaken; else that of anticipatory",
    source: "NCQ vs. I/O Scheduler (ACM TOS 2010), 5.1",
    avoid: "streams and random requests come together, or large requests are random",
    options: &[
        OptionInfo::duration(
            "th1",
            NiseConfig::DEFAULT.th1,
            "how long a mode lasts at least; lower follows a change of load sooner, and bursts of small writes too; \
             0 decides at every request",
        ),
        OptionInfo::counts(
            "th2",
            NiseConfig::DEFAULT.th2,
            (0, 65_535),
            "mean size of requests, in sectors, from which on the scheduler orders and not the drive; 0 is always \
             anticipatory at depth 1 once th1 has passed. Among several schedulers one number, higher than those \
             before, for each after the first",
        ),
        OptionInfo::count(
            "alpha",
            NiseConfig::DEFAULT.alpha as u64,
            (0, 16),
            "weight of a request in the mean: 1 divided by 2 to this power; higher smooths more",
        ),
        OptionInfo::choice(
            "by",
            &["size", "trial"],
            "size: by the mean size of requests, as in the paper. trial: by what each serves, in turns; th1, th2 and \
             alpha say nothing then",
        ),
        OptionInfo::duration(
            "turn",
            NiseConfig::DEFAULT.turn,
            "with by=trial: how long each is measured, at least; lower costs less, and chance decides more",
        ),
        OptionInfo::weight(
            "cost",
            NiseConfig::DEFAULT.cost,
            Millionths(500_000),
            "with by=trial: what share of the time trials may cost once each was tried; higher follows the load sooner; \
             0 tries what loses as rarely as possible",
        ),
        AS[0],
        AS[1],
        AS[2],
        AS[3],
        AS[4],
        AS[5],
    ],
    among: Some(Among {
        unless_named: "noop,anticipatory@1",
        check: fits,
    }),
    waits: true,
    ..PolicyInfo::PLAIN
};

/// Checks that one threshold stands between neighbouring schedulers, and that thresholds rise.
fn fits(options: &Options<'_>, count: usize) -> Result<(), (&'static str, String)> {
    if NiseBy::from_options(options) == NiseBy::Trial || count == 1 {
        return Ok(());
    }
    let th2 = options.counts("th2");
    let rises = th2.as_slice().is_sorted_by(|low, high| low < high);
    match rises && th2.as_slice().len() == count - 1 {
        true => Ok(()),
        false if count == 2 => Err(("th2", "for two schedulers it is one number".to_string())),
        false => Err((
            "th2",
            format!(
                "for {count} schedulers it is {} numbers, each higher than the one before",
                count - 1
            ),
        )),
    }
}

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let config = NiseConfig::from_options(&parts.options);
    Built::scheduler(match parts.choices.is_empty() {
        true => Nise::new(config),
        false => Nise::among(parts.choices, config),
    })
}

/// Criterion of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NiseBy {
    /// The mean size of requests.
    Size,
    /// The measured service of each scheduler.
    Trial,
}

impl NiseBy {
    fn from_options(options: &Options<'_>) -> NiseBy {
        match options.choice("by") {
            "size" => NiseBy::Size,
            _ => NiseBy::Trial,
        }
    }
}

/// Tunables of [`Nise`]; the [module](self) explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiseConfig {
    /// The shortest time from one decision to the next.
    pub th1: Nanos,
    /// Thresholds of the metric, in sectors, one less than the number of schedulers. From a threshold on, the next
    /// scheduler is active.
    pub th2: Counts,
    /// A request weighs 1 / 2^alpha in the metric; 0 to 16.
    pub alpha: u32,
    /// Criterion of the choice.
    pub by: NiseBy,
    /// Shortest measurement of a scheduler in a trial.
    pub turn: Nanos,
    /// Share of the time that trials may cost.
    pub cost: Millionths,
    /// Tunables of the scheduler for sequential loads, if no schedulers are named.
    pub anticipatory: AnticipatoryConfig,
}

impl NiseConfig {
    /// The paper's values.
    pub const DEFAULT: NiseConfig = NiseConfig {
        th1: Nanos::from_secs(6),
        th2: Counts::new(&[50]),
        alpha: 7,
        by: NiseBy::Size,
        turn: Nanos::from_millis(500),
        cost: Millionths(10_000),
        anticipatory: AnticipatoryConfig::DEFAULT,
    };

    fn from_options(options: &Options<'_>) -> NiseConfig {
        NiseConfig {
            th1: options.duration("th1"),
            th2: options.counts("th2"),
            alpha: u32::try_from(options.count("alpha")).expect("the option's range is smaller"),
            by: NiseBy::from_options(options),
            turn: options.duration("turn"),
            cost: options.weight("cost"),
            anticipatory: AnticipatoryConfig::from_options(options),
        }
    }
}

impl Default for NiseConfig {
    fn default() -> NiseConfig {
        NiseConfig::DEFAULT
    }
}

/// Fractional bits of the metric.
const FRACTION: u32 = 16;

/// The sequentiality metric: a moving mean of the sizes of requests, by shifts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metric(u64);

impl Metric {
    /// M = (1 - 2^-alpha) M + 2^-alpha S (line 20).
    pub fn update(&mut self, sectors: u64, alpha: u32) {
        let size = sectors << FRACTION;
        self.0 = self.0 - (self.0 >> alpha) + (size >> alpha);
    }

    /// The mean, rounded down.
    pub fn sectors(self) -> u64 {
        self.0 >> FRACTION
    }
}

/// Switches between schedulers, and thereby between their order and the drive's; see the [module](self).
pub struct Nise {
    config: NiseConfig,
    members: Members,
    metric: Metric,
    /// Index of the active scheduler.
    active: usize,
    /// Time of the last decision by size.
    decided: Time,
    /// Trials, if the criterion is a trial.
    trials: Option<Trials>,
}

impl Nise {
    /// Builds the paper's NISE: first come, first served as deep as the engine allows, or anticipatory at depth 1.
    /// Without requests, in random mode.
    pub fn new(config: NiseConfig) -> Nise {
        let fifo = WorkConserving::new(Noop::beside_another());
        let anticipatory = Anticipatory::new(config.anticipatory);
        Nise::among(
            alloc::vec![(Box::new(fifo), None), (Box::new(anticipatory), Some(1))],
            config,
        )
    }

    /// Chooses among these schedulers, ordered from random to sequential loads. A depth is given if a scheduler's depth
    /// differs from the engine's. The schedulers must be empty.
    ///
    /// # Panics
    ///
    /// If `choices` is empty.
    pub fn among(choices: Vec<(Box<dyn Scheduler>, Option<u32>)>, config: NiseConfig) -> Nise {
        let trials = || Trials::new(choices.len(), config.turn, config.cost);
        let trials = (config.by == NiseBy::Trial).then(trials);
        let member = |(scheduler, depth): (_, Option<u32>)| Member {
            scheduler,
            depth: depth.unwrap_or(u32::MAX),
        };
        Nise {
            config,
            members: Members::new(choices.into_iter().map(member).collect()),
            metric: Metric::default(),
            active: 0,
            decided: Time::ZERO,
            trials,
        }
    }

    /// The sequentiality metric: the mean size of requests, in sectors.
    pub fn metric(&self) -> u64 {
        self.metric.sectors()
    }

    /// Lines 1 to 10 of Algorithm 1, with any number of thresholds.
    fn decide(&mut self, now: Time) {
        if let Some(trials) = &mut self.trials {
            self.active = trials.choose(now);
            return;
        }
        if now.saturating_since(self.decided) < self.config.th1 {
            return;
        }
        self.decided = now;
        let metric = self.metric.sectors();
        let th2 = self.config.th2.as_slice().iter();
        let reached = |th2: &&u16| metric >= u64::from(**th2);
        self.active = th2.take(self.members.count() - 1).filter(reached).count();
    }

    fn next(&mut self, now: Time, forced: bool) -> Dispatch {
        self.decide(now);
        let answer = self.members.dispatch(now, self.active, forced);
        if let (Some(trials), Dispatch::Request(request)) = (&mut self.trials, answer) {
            trials.handed_out(now, request.tag.index());
        }
        answer
    }
}

impl Scheduler for Nise {
    fn insert(&mut self, now: Time, request: Request) {
        if let Some(trials) = &mut self.trials {
            trials.arrived(now, request.tag.index(), request.is_sync());
            if request.is_sync() && matches!(request.op, Op::Read | Op::Write) {
                trials.seen(&request);
            }
        }
        self.members.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.next(now, false)
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.next(now, true)
    }

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        self.members.tracker()
    }

    fn head_is(&mut self, head: &HeadState) {
        self.members.head_is(head);
    }

    fn depth(&self) -> Option<u32> {
        Some(self.members.depth(self.active))
    }

    fn dispatched(&mut self, now: Time, request: &Request) {
        // Other operations move no data.
        if matches!(request.op, Op::Read | Op::Write) {
            self.metric
                .update(request.extent.len.get(), self.config.alpha);
        }
        self.members.dispatched(now, request);
    }

    fn completed(&mut self, now: Time, request: &Request) {
        if let Some(trials) = &mut self.trials {
            trials.completed(now, request.tag.index(), request.extent.len);
        }
        self.members.completed(now, request);
    }

    fn foretold(&mut self, now: Time, request: &Foretold) {
        self.members.foretold(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.members.may_merge(queued, new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.members.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        self.members.partners(request, front)
    }

    fn merged(&mut self, grown: &Request) {
        if let Some(trials) = &mut self.trials {
            trials.grown(grown);
        }
        self.members.merged(grown);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        if let Some(trials) = &mut self.trials {
            trials.withdrawn(tag.index());
        }
        self.members.withdraw(tag)
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        if let Some(trials) = &mut self.trials {
            trials.withdrawn(gone.index());
        }
        self.members.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.members.queued()
    }

    /// The metric, the active scheduler and the results of trials stay.
    fn drain(&mut self) -> Vec<Request> {
        if let Some(trials) = &mut self.trials {
            trials.cleared();
        }
        self.members.drain()
    }

    fn waits(&self) -> WaitStats {
        self.members.waits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::tests::at;
    use headtime_units::Extent;

    fn request(tag: u32, process: u32, lba: u64, sectors: u64, ms: u64) -> Request {
        let request = Request::new(Tag(tag), Op::Read, Extent::at(lba, sectors), at(ms));
        Request {
            origin: Origin {
                process,
                ..Origin::default()
            },
            ..request
        }
    }

    fn sent(nise: &mut Nise, ms: u64) -> Option<u32> {
        match nise.dispatch(at(ms)) {
            Dispatch::Request(request) => {
                nise.dispatched(at(ms), &request);
                Some(request.tag.0)
            }
            _ => None,
        }
    }

    /// Feeds requests of `sectors`, one after the other, in this span of time.
    fn feed(nise: &mut Nise, sectors: u64, ms: core::ops::Range<u64>) {
        for at_ms in ms.step_by(10) {
            let request = request(0, 1, at_ms * 1000, sectors, at_ms);
            nise.insert(at(at_ms), request);
            if sent(nise, at_ms).is_none() {
                // The scheduler waits for the drive or a process. The request goes a second later at the latest.
                assert!(sent(nise, at_ms + 2_000).is_some(), "at {at_ms} ms");
            }
            nise.completed(at(at_ms), &request);
        }
    }

    #[test]
    fn random_loads_go_in_order_of_arrival_at_any_depth() {
        let mut nise = Nise::new(NiseConfig::DEFAULT);
        assert_eq!(nise.depth(), Some(u32::MAX));
        for (tag, lba) in [(0, 900), (1, 100), (2, 500)] {
            nise.insert(
                at(u64::from(tag)),
                request(tag, tag, lba * 1_000_000, 8, u64::from(tag)),
            );
        }
        assert_eq!(
            [10, 11, 12].map(|ms| sent(&mut nise, ms)),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(sent(&mut nise, 13), None);
    }

    #[test]
    fn the_metric_is_a_mean_by_shifts_of_what_goes_to_the_drive() {
        let mut nise = Nise::new(NiseConfig::DEFAULT);
        let large = request(0, 0, 0, 256, 0);
        nise.dispatched(at(0), &large);
        assert_eq!(nise.metric(), 2);
        (0..2_000).for_each(|_| nise.dispatched(at(0), &large));
        assert!((255..=256).contains(&nise.metric()), "{}", nise.metric());
        // Discards move no data.
        let discard = Request {
            op: Op::Discard,
            ..request(0, 0, 0, 1 << 20, 0)
        };
        nise.dispatched(at(0), &discard);
        assert!(nise.metric() <= 256, "{}", nise.metric());
        // After 89 requests half of the distance is gone: 127/128 to the power of 89.
        (0..89).for_each(|_| nise.dispatched(at(0), &request(0, 0, 0, 8, 0)));
        assert!((131..=134).contains(&nise.metric()), "{}", nise.metric());
    }

    #[test]
    fn it_decides_at_most_every_th1_and_proposes_the_depth() {
        let mut nise = Nise::new(NiseConfig::DEFAULT);
        feed(&mut nise, 256, 0..5_990);
        assert!(nise.metric() >= 50);
        assert_eq!(nise.depth(), Some(u32::MAX));
        feed(&mut nise, 256, 6_000..6_010);
        assert_eq!(nise.depth(), Some(1));
        // Small requests change the metric soon. The mode changes when six more seconds have passed.
        feed(&mut nise, 8, 6_010..11_990);
        assert_eq!((nise.metric() < 50, nise.depth()), (true, Some(1)));
        feed(&mut nise, 8, 12_000..12_010);
        assert_eq!(nise.depth(), Some(u32::MAX));
    }

    fn built(text: &str) -> Box<dyn Scheduler> {
        let spec: crate::Spec = text.parse().unwrap_or_else(|error| panic!("{error}"));
        spec.build(None::<crate::NoPositioning>)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Moves the metric by requests of this size, and returns the depth then.
    fn moved(nise: &mut dyn Scheduler, sectors: u64, ms: u64) -> Option<u32> {
        let one = request(900, 1, 0, sectors, ms);
        (0..200).for_each(|_| nise.dispatched(at(ms), &one));
        // A decision also counts when nothing is queued.
        assert_eq!(nise.dispatch(at(ms)), Dispatch::Empty);
        nise.depth()
    }

    #[test]
    fn each_band_of_the_metric_has_a_scheduler_and_a_depth_of_its_own() {
        let text = "nise(noop,deadline@8,as@1):th1=0ns:th2=20/80:alpha=3";
        let mut nise = built(text);
        assert_eq!(nise.depth(), Some(u32::MAX));
        assert_eq!(moved(&mut nise, 40, 1), Some(8));
        assert_eq!(moved(&mut nise, 200, 2), Some(1));
        assert_eq!(moved(&mut nise, 79, 3), Some(8));
        assert_eq!(moved(&mut nise, 8, 4), Some(u32::MAX));
    }

    #[test]
    fn who_has_the_say_orders_and_the_others_go_on_from_there() {
        let mut nise = built("nise(noop,clook@1):th1=0ns:alpha=0");
        for (tag, lba) in [(0, 900), (1, 300), (2, 500), (3, 100), (4, 700)] {
            nise.insert(at(0), request(tag, tag, lba * 1000, 8, u64::from(tag)));
        }
        let mut sent = |ms| match nise.dispatch(at(ms)) {
            Dispatch::Request(request) => {
                // The size is large or small enough to move the metric into the other band.
                let sectors = if ms % 2 == 1 { 200 } else { 8 };
                let size = Extent::at(0, sectors);
                nise.dispatched(
                    at(ms),
                    &Request {
                        extent: size,
                        ..request
                    },
                );
                request.tag.0
            }
            other => panic!("{other:?}"),
        };
        // noop: 900; clook from there on: 100; noop: the oldest, 300; clook from there on: 500.
        assert_eq!([1, 2, 3, 4].map(&mut sent), [0, 3, 1, 2]);
        assert_eq!(nise.queued(), 1);
    }

    #[test]
    fn two_requests_merge_if_all_agree() {
        let lenient = built("nise");
        let strict = built("nise(noop,as@1)");
        for (mut nise, agree) in [(lenient, true), (strict, false)] {
            for (tag, lba) in [(0, 100), (1, 5_000), (2, 108)] {
                nise.insert(at(0), request(tag, 1, lba, 8, u64::from(tag)));
            }
            let last = request(2, 1, 108, 8, 2);
            assert_eq!(
                nise.may_merge(Tag(0), &last),
                agree,
                "noop knows neighbours alone"
            );
            assert_eq!(nise.partners(&last, false).include(Tag(0)), agree);
            assert!(nise.may_merge(Tag(1), &last));
        }
        let of_processes = built("nise(noop,cfq,as@1):by=trial");
        let keys = [1, 1, 2].map(|process| of_processes.merge_key(&request(0, process, 0, 8, 0)));
        assert!(keys[0] == keys[1] && keys[0] != keys[2], "{keys:?}");
    }
}
