//! NISE: either the scheduler orders, or the drive.
//!
//! # Problem
//!
//! A scheduler that waits for a stream's next request keeps a drive with a queue from ordering, and such a drive does not
//! keep to the scheduler's order. With both at work, streams lose what waiting gains, and random requests what
//! the drive's order gains.
//!
//! # Rule
//!
//! The *sequentiality metric* is a moving mean of the sizes of requests as they go to the drive: streams read
//! ahead, and their requests are large. Every `th1` at most, when a request is to be chosen, it decides:
//!
//! - *Random*, while the metric is below `th2` sectors: first come, first served, and as many commands in the drive
//!   as the engine allows. The drive orders.
//! - *Sequential*: [`Anticipatory`], and one command in the drive. The scheduler orders.
//!
//! Both choose among the same requests, and the statistics of `anticipatory` go on in either mode. A change waits for
//! nothing: of commands that are too many for the new depth the drive completes what it has.
//!
//! # What the paper leaves open
//!
//! It starts random, with a metric of 0. A decision counts whether or not it changes the mode. Section 5.1 says once that
//! the metric is compared with `th1`; the algorithm says `th2`. A change of the mode does not end a wait by itself:
//! in random mode the oldest request goes, which ends it.
//!
//! # Bound
//!
//! In random mode none is overtaken here; in sequential mode that of `anticipatory`.
//!
//! # Tunables
//!
//! - `th1` (duration; default 6s): how long a mode lasts at least. Longer than the period of the file system's
//!   write-back, which sends many small requests at once.
//! - `th2` (sectors; default 50): the mean size from which on the load counts as sequential.
//! - `alpha` (a shift; default 7, 1/128): the weight of each request in the mean. Larger shifts smooth more.
//! - those of `anticipatory`.
//!
//! # Source
//!
//! Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler: Preventing Unexpected Misbehaviors (ACM TOS 6(1), 2010), section 5.1,
//! Algorithm 1.
//!
//! # When not to use it
//!
//! If streams and random requests come at the same time, or if requests do not say which process they are of.

use crate::anticipatory::{Anticipatory, AnticipatoryConfig};
use crate::policy::{Built, OptionInfo, Options, Parts, PolicyInfo};
use crate::{Dispatch, Op, Request, Scheduler, Tag, WaitStats};
use alloc::vec::Vec;
use headtime_units::{Nanos, Time};

const AS: &[OptionInfo] = AnticipatoryConfig::OPTIONS;

/// What is known of it.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "nise",
    idea: "lets the scheduler or drive order",
    bound: "random loads: never overtaken; else that of anticipatory",
    source: "NCQ vs. I/O Scheduler (ACM TOS 2010), 5.1",
    avoid: "streams and random requests come together",
    options: &[
        OptionInfo::duration(
            "th1",
            NiseConfig::DEFAULT.th1,
            "how long a mode lasts at least; lower follows a change of load sooner, and bursts of small writes too; \
             0 decides at every request",
        ),
        OptionInfo::count(
            "th2",
            NiseConfig::DEFAULT.th2,
            (0, 65_535),
            "mean size of requests, in sectors, from which on the scheduler orders and not the drive; 0 is always \
             anticipatory at depth 1 once th1 has passed",
        ),
        OptionInfo::count(
            "alpha",
            NiseConfig::DEFAULT.alpha as u64,
            (0, 16),
            "weight of a request in the mean: 1 divided by 2 to this power; higher smooths more",
        ),
        AS[0],
        AS[1],
        AS[2],
        AS[3],
        AS[4],
        AS[5],
    ],
    waits: true,
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    Built::scheduler(Nise::new(NiseConfig::from_options(&parts.options)))
}

/// Tunables of [`Nise`]; the [module](self) explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiseConfig {
    /// The shortest time from one decision to the next.
    pub th1: Nanos,
    /// The metric, in sectors, from which on the load is sequential.
    pub th2: u64,
    /// A request weighs 1 / 2^alpha in the metric; 0 to 16.
    pub alpha: u32,
    /// Of the scheduler for sequential loads.
    pub anticipatory: AnticipatoryConfig,
}

impl NiseConfig {
    /// The paper's values.
    pub const DEFAULT: NiseConfig = NiseConfig {
        th1: Nanos::from_secs(6),
        th2: 50,
        alpha: 7,
        anticipatory: AnticipatoryConfig::DEFAULT,
    };

    fn from_options(options: &Options<'_>) -> NiseConfig {
        NiseConfig {
            th1: options.duration("th1"),
            th2: options.count("th2"),
            alpha: u32::try_from(options.count("alpha")).expect("the option's range is smaller"),
            anticipatory: AnticipatoryConfig::from_options(options),
        }
    }
}

impl Default for NiseConfig {
    fn default() -> NiseConfig {
        NiseConfig::DEFAULT
    }
}

/// Bits behind the point of the metric.
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

/// Who orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Random,
    Sequential,
}

/// Switches between the scheduler's order and the drive's; see the [module](self).
#[derive(Clone, Debug)]
pub struct Nise {
    config: NiseConfig,
    inner: Anticipatory,
    metric: Metric,
    mode: Mode,
    /// When it last decided.
    decided: Time,
}

impl Nise {
    /// Without requests, in random mode.
    pub fn new(config: NiseConfig) -> Nise {
        Nise {
            config,
            inner: Anticipatory::new(config.anticipatory),
            metric: Metric::default(),
            mode: Mode::Random,
            decided: Time::ZERO,
        }
    }

    /// The sequentiality metric: the mean size of requests, in sectors.
    pub fn metric(&self) -> u64 {
        self.metric.sectors()
    }

    /// Lines 1 to 10 of Algorithm 1.
    fn decide(&mut self, now: Time) {
        if now.saturating_since(self.decided) < self.config.th1 {
            return;
        }
        self.decided = now;
        self.mode = match self.metric.sectors() >= self.config.th2 {
            true => Mode::Sequential,
            false => Mode::Random,
        };
    }
}

impl Scheduler for Nise {
    fn insert(&mut self, now: Time, request: Request) {
        self.inner.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.decide(now);
        if self.mode == Mode::Random
            && let Some(request) = self.inner.dispatch_oldest()
        {
            return Dispatch::Request(request);
        }
        self.inner.dispatch(now)
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatch(now)
    }

    fn depth(&self) -> Option<u32> {
        match self.mode {
            Mode::Random => Some(u32::MAX),
            Mode::Sequential => Some(1),
        }
    }

    fn dispatched(&mut self, now: Time, request: &Request) {
        // Others move no data.
        if matches!(request.op, Op::Read | Op::Write) {
            self.metric
                .update(request.extent.len.get(), self.config.alpha);
        }
        self.inner.dispatched(now, request);
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.inner.completed(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.inner.may_merge(queued, new)
    }

    fn merged(&mut self, grown: &Request) {
        self.inner.merged(grown);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.inner.withdraw(tag)
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.inner.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.inner.queued()
    }

    /// The metric and the mode stay.
    fn drain(&mut self) -> Vec<Request> {
        self.inner.drain()
    }

    fn waits(&self) -> WaitStats {
        self.inner.waits()
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

    /// Requests of `sectors`, one after the other, up to this time.
    fn feed(nise: &mut Nise, sectors: u64, ms: core::ops::Range<u64>) {
        for at_ms in ms.step_by(10) {
            let request = request(0, 1, at_ms * 1000, sectors, at_ms);
            nise.insert(at(at_ms), request);
            if sent(nise, at_ms).is_none() {
                // It waits for the drive or a process, and goes at the latest a second later.
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
        // Small requests change the metric soon, and the mode when six more seconds have passed.
        feed(&mut nise, 8, 6_010..11_990);
        assert_eq!((nise.metric() < 50, nise.depth()), (true, Some(1)));
        feed(&mut nise, 8, 12_000..12_010);
        assert_eq!(nise.depth(), Some(u32::MAX));
    }
}
