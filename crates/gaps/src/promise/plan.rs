//! What a second of the arm costs at each hour, and how much of it a date needs.

use super::tail::Tail;
use headtime_units::{Nanos, Time};

/// Parts of a cycle that are remembered apart.
const HOURS: usize = 24;
/// Outright reads take no more of the time than this.
const SHARE_MAX: f64 = 0.9;
/// Of the time in which nobody waits so much is used, until it is known.
const OF_IDLE: f64 = 0.8;
/// A choice is over when less than this share is left.
const TAIL: f64 = 0.1;
/// Prices are looked for between these, in request-seconds for a second of the arm.
const PRICES: (f64, f64) = (1e-5, 1e7);
/// No forecast needs more parts: while it goes by cycles each is a twentieth of what is left, and otherwise a cycle reads a tenth of it.
const PARTS_MAX: usize = 24 * 400;
/// A forecast goes by whole cycles as long as so many of them are to come and one reads no more than this share of what is left.
const CYCLES_FROM: f64 = 32.0;
const CYCLE_SHARE: f64 = 0.1;
/// In a calm part of the cycle no more than this share of the clients' requests take as long as that of which a hundredth may be longer; and so many
/// have been seen.
const CALM: (f64, f64) = (0.001, 1_000.0);

/// What was seen in a part of the cycle. Sums; the newest cycle has half of the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Hour {
    /// Seconds looked at.
    seconds: f64,
    /// Of them, those in which the arm worked for clients.
    busy: f64,
    clients: f64,
    yielding: f64,
    /// Blocks that would have been read for nothing if all were wanted still.
    free: f64,
    /// The logarithm of the highest price that the p99 allowed, for each second.
    allowed: f64,
    /// How long clients' requests took.
    tail: Tail,
}

impl Hour {
    fn halve(&mut self) {
        for sum in [
            &mut self.seconds,
            &mut self.busy,
            &mut self.clients,
            &mut self.yielding,
            &mut self.free,
            &mut self.allowed,
        ] {
            *sum /= 2.0;
        }
        self.tail.halve();
    }

    fn add(&mut self, other: &Hour) {
        self.seconds += other.seconds;
        self.busy += other.busy;
        self.clients += other.clients;
        self.yielding += other.yielding;
        self.free += other.free;
        self.allowed += other.allowed;
        self.tail.add_all(&other.tail);
    }

    /// Returns true if next to none of its requests take as long as this.
    fn is_calm(&self, limit: Nanos) -> bool {
        let (share, least) = CALM;
        self.tail.count() >= least && self.tail.from(limit) <= self.tail.count() * share
    }

    /// The highest price that the p99 allowed, in the mean.
    fn allowed(&self) -> f64 {
        (self.allowed / self.seconds.max(1e-9)).exp()
    }

    /// By the second.
    fn rates(&self) -> Rates {
        let seconds = self.seconds.max(1e-9);
        Rates {
            busy: (self.busy / seconds).clamp(0.0, 1.0),
            clients: self.clients / seconds,
            yielding: self.yielding / seconds,
            free: self.free / seconds,
        }
    }
}

/// What was seen in a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Did {
    pub span: Nanos,
    /// For how long the arm worked for clients.
    pub busy: Nanos,
    pub clients: u64,
    /// Those of them before which something may be read outright.
    pub yielding: u64,
    /// Blocks that were read for nothing.
    pub free: u64,
    /// The highest price that the p99 allowed.
    pub allowed: f64,
    /// How long clients' requests took.
    pub tail: Tail,
}

/// What is to be expected of a part of the cycle, by the second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    busy: f64,
    clients: f64,
    yielding: f64,
    free: f64,
}

impl Rates {
    /// The share of the time in which the arm has nothing to do for clients; a little always, since a queue that never ends is one of
    /// clients that wait.
    fn rest(&self) -> f64 {
        (1.0 - self.busy).max(0.05)
    }

    /// The price of reads in idle time that take so many seconds each.
    fn idle_price(&self, each: f64) -> f64 {
        self.clients * each / (2.0 * self.rest())
    }

    /// The share of outright reads, which take so many seconds each, at a price.
    fn share_at(&self, price: f64, each: f64) -> f64 {
        if price <= 0.0 || self.yielding <= 0.0 {
            return 0.0;
        }
        // Between two of them a client is served that lets another one pass, and so are those that do not.
        let most = each / (each + self.busy / self.yielding);
        let share = 1.0 - (self.busy / price).sqrt() / self.rest();
        share.clamp(0.0, most.min(SHARE_MAX))
    }
}

/// How much poorer gaps are when a share of all is left: by its root, and in the last tenth by as much as that is less.
pub(super) fn poorer(left: f64) -> f64 {
    match left.clamp(0.0, 1.0) {
        left if left >= TAIL => left.sqrt(),
        left => left / TAIL * TAIL.sqrt(),
    }
}

/// What reads of a scan do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Sweeping {
    /// Blocks that are read in a second of the arm, now.
    pub blocks: f64,
    /// The same when each is read alone.
    pub least: f64,
    /// Seconds of a read.
    pub each: f64,
}

impl Sweeping {
    /// Of blocks that are read each alone, for so long.
    pub(in super::super) fn alone(each: Nanos) -> Sweeping {
        let each = each.as_secs_f64().max(1e-6);
        Sweeping {
            blocks: 1.0 / each,
            least: 1.0 / each,
            each,
        }
    }
}

/// What a plan says of now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ways {
    /// Idle time is used.
    pub idle: bool,
    /// The share of the time that outright reads take.
    pub share: f64,
}

/// Remembers a cycle, and looks forward.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    cycle: f64,
    hours: [Hour; HOURS],
    all: Hour,
    /// The part of the cycle that was added to last.
    last: usize,
    /// The load at last.
    now: Rates,
    /// How much of the time in which nobody waits is used, in each part: the more clients there are, the shorter it is each time.
    of_idle: [f64; HOURS],
    /// The parts of the cycle in which a read in idle time makes no request one of the longest.
    calm: [bool; HOURS],
}

/// What the p99 allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// This price at the most.
    Now(f64),
    /// In each part of the cycle what it allowed there before.
    AsBefore,
}

/// What is to be read by when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub now: Time,
    /// Blocks left, and those of all.
    pub left: u64,
    pub all: u64,
    pub sweeping: Sweeping,
    /// What the p99 allows, but in idle time of calm parts of the cycle.
    pub bound: Bound,
    /// Whether reads at the cost of clients are counted on.
    pub outright: bool,
    /// How long an outright read waits in the drive for the commands of others, in seconds.
    pub lag: f64,
    /// Blocks that clients would have wanted again in a second if all had been read.
    pub again: f64,
}

impl Goal {
    /// Blocks that are wanted again in a second where a share of all is left.
    fn again(&self, left: f64) -> f64 {
        self.again * (1.0 - left).max(0.0)
    }

    /// The share of the time that outright reads take which are to have a share of it. The next one is due when the one before is served.
    fn served(&self, share: f64) -> f64 {
        share / (1.0 + share * self.lag / self.sweeping.each.max(1e-9))
    }
}

impl Plan {
    pub(super) fn new(cycle: Nanos) -> Plan {
        Plan {
            cycle: cycle.as_secs_f64().max(1e-3),
            hours: [Hour::default(); HOURS],
            all: Hour::default(),
            last: 0,
            now: Rates::default(),
            of_idle: [OF_IDLE; HOURS],
            calm: [false; HOURS],
        }
    }

    /// One that has seen nothing of a load that repeats after as long.
    pub(super) fn of_same_cycle(&self) -> Plan {
        Plan {
            cycle: self.cycle,
            ..Plan::new(Nanos::ZERO)
        }
    }

    /// A hundredth of the clients' requests may be longer than this.
    pub(super) fn set_limit(&mut self, limit: Nanos) {
        self.calm = self.hours.map(|hour| hour.is_calm(limit));
    }

    /// What the p99 has allowed so far says nothing any more: from now on it is another one, which allows this for now.
    pub(super) fn forget_allowed(&mut self, price: f64) {
        let price = price.clamp(PRICES.0, PRICES.1).ln();
        for hour in self.hours.iter_mut().chain([&mut self.all]) {
            hour.allowed = hour.seconds * price;
        }
    }

    fn hour_at(&self, seconds: f64) -> usize {
        let along = seconds / self.cycle;
        (((along - along.floor()) * HOURS as f64) as usize).min(HOURS - 1)
    }

    /// After so long the load repeats. What was seen is forgotten if that is another cycle.
    pub(super) fn set_cycle(&mut self, cycle: Nanos) {
        if cycle.as_secs_f64().max(1e-3) != self.cycle {
            *self = Plan::new(cycle);
        }
    }

    /// Notes what was seen in a span that ends now, and the share of all that is left.
    pub(super) fn saw(&mut self, now: Time, did: &Did, left: f64) {
        let seconds = did.span.as_secs_f64();
        let seen = Hour {
            seconds,
            busy: did.busy.as_secs_f64(),
            clients: did.clients as f64,
            yielding: did.yielding as f64,
            free: did.free as f64 / poorer(left).max(0.03),
            allowed: seconds * did.allowed.clamp(PRICES.0, PRICES.1).ln(),
            tail: did.tail,
        };
        let middle = now.as_nanos() as f64 / 1e9 - seen.seconds / 2.0;
        let hour = self.hour_at(middle.max(0.0));
        if hour != self.last {
            self.hours[hour].halve();
            self.last = hour;
        }
        self.hours[hour].add(&seen);
        self.all.add(&seen);
        self.now = seen.rates();
    }

    /// Notes how much of a span without clients the arm has read in.
    pub(super) fn swept_idle(&mut self, now: Time, share: f64) {
        let hour = self.hour_at(now.as_nanos() as f64 / 1e9);
        self.of_idle[hour] += (share.clamp(0.1, 1.0) - self.of_idle[hour]) / 16.0;
    }

    /// What was seen of a part of the cycle; of one that was not seen yet, all.
    fn seen(&self, hour: usize) -> &Hour {
        match self.hours[hour].seconds > 0.0 {
            true => &self.hours[hour],
            false => &self.all,
        }
    }

    fn rates(&self, hour: usize) -> Rates {
        self.seen(hour).rates()
    }

    /// The highest price that the p99 allows in a part of the cycle.
    fn bound(&self, hour: usize, goal: &Goal) -> f64 {
        match goal.bound {
            Bound::Now(price) => price,
            Bound::AsBefore => self.seen(hour).allowed(),
        }
    }

    /// The highest price of reads at the cost of clients in a part of the cycle.
    fn outright_price(&self, hour: usize, goal: &Goal, price: f64) -> f64 {
        match goal.outright {
            true => price.min(self.bound(hour, goal)),
            false => 0.0,
        }
    }

    /// Returns true if idle time of a part of the cycle is used at a price. Where nobody asks for anything it costs nothing.
    fn idles(&self, hour: usize, rates: &Rates, goal: &Goal, price: f64) -> bool {
        let costs = rates.idle_price(goal.sweeping.each);
        costs <= price && (costs <= self.bound(hour, goal) || self.calm[hour])
    }

    /// The share of a part of the cycle in which the arm reads at a price.
    fn arm(&self, hour: usize, goal: &Goal, price: f64) -> f64 {
        let rates = self.rates(hour);
        let share = rates.share_at(self.outright_price(hour, goal, price), goal.sweeping.each);
        let share = goal.served(share);
        match self.idles(hour, &rates, goal, price) {
            true => share + (1.0 - rates.busy - share).max(0.0) * self.of_idle[hour],
            false => share,
        }
    }

    /// What a whole cycle has at a price: blocks in gaps if all were wanted still, and seconds of the arm.
    fn whole(&self, goal: &Goal, price: f64) -> (f64, f64) {
        let part = self.cycle / HOURS as f64;
        (0..HOURS).fold((0.0, 0.0), |(gaps, arm), hour| {
            let more = self.arm(hour, goal, price);
            (gaps + self.rates(hour).free * part, arm + more * part)
        })
    }

    /// Seconds until all has been read at a price, or `most` if that takes longer.
    pub(super) fn takes(&self, goal: &Goal, price: f64, most: f64) -> f64 {
        let (from, part) = (goal.now.as_nanos() as f64 / 1e9, self.cycle / HOURS as f64);
        let all = goal.all.max(1) as f64;
        let mut left = goal.left as f64;
        let (mut along, mut dense) = (0.0, 1.0);
        let is_long = most > CYCLES_FROM * self.cycle;
        let whole = is_long.then(|| self.whole(goal, price));
        for _ in 0..PARTS_MAX {
            let to_go = (most - along) / self.cycle;
            if let Some((free, arm)) = whole.filter(|_| to_go > CYCLES_FROM && left >= 0.5) {
                let swept = arm * (goal.sweeping.blocks * dense).max(goal.sweeping.least);
                let swept = swept - goal.again(left / all) * self.cycle;
                let gaps = free * poorer(left / all);
                // What clients write has to be read again as fast.
                if gaps + swept <= 0.0 {
                    return most;
                }
                let most = left * CYCLE_SHARE / (gaps + swept).max(1e-300);
                let cycles = most.min(to_go).floor();
                if cycles >= 1.0 {
                    let would = left - (gaps + swept) * cycles;
                    let gaps = (gaps + free * poorer(would / all)) / 2.0;
                    dense *= 1.0 - gaps * cycles / left;
                    left -= (gaps + swept) * cycles;
                    along += cycles * self.cycle;
                    continue;
                }
            }
            // To the end of the part of the cycle.
            let at = (from + along) / part;
            let span = (at.floor() + 1.0 - at) * part;
            let span = span.min(most - along).max(part * 1e-6);
            let hour = self.hour_at(from + along + span / 2.0);
            let rates = self.rates(hour);
            let arm = self.arm(hour, goal, price);
            let share = left / all;
            let gaps = rates.free * poorer(share);
            // What is left when this much is read in gaps is as much thinner where the sweep comes.
            let swept = arm * (goal.sweeping.blocks * dense).max(goal.sweeping.least);
            let swept = swept - goal.again(share);
            // In the tail half of it passes at the most: what is read in gaps falls too fast.
            let span = match share < TAIL && gaps > 0.0 {
                true => span.min(left / (2.0 * gaps)),
                false => span,
            };
            let would = (left - (gaps + swept) * span).clamp(0.0, all);
            let gaps = (gaps + rates.free * poorer(would / all)) / 2.0;
            let rate = gaps + swept;
            if left <= rate * span || (left < 0.5 && rate > 0.0) {
                return along + (left / rate.max(1e-300)).min(span);
            }
            dense *= (1.0 - gaps * span / left.max(0.5)).max(0.0);
            left = (left - rate * span).clamp(0.0, all);
            along += span;
            if along >= most {
                return most;
            }
        }
        most
    }

    /// The lowest price at which all has been read within so many seconds; `None` if it is not at any.
    pub(super) fn price(&self, goal: &Goal, seconds: f64) -> Option<f64> {
        let suffices = |price: f64| self.takes(goal, price, seconds) < seconds;
        if suffices(0.0) {
            return Some(0.0);
        }
        let (mut low, mut high) = PRICES;
        if !suffices(high) {
            return None;
        }
        while high / low > 1.02 {
            let middle = (low * high).sqrt();
            match suffices(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        Some(high)
    }

    /// Whether all has been read within so many seconds at a price.
    pub(super) fn suffices(&self, goal: &Goal, price: f64, seconds: f64) -> bool {
        self.takes(goal, price, seconds) < seconds
    }

    /// What is done now at a price.
    pub(super) fn ways(&self, goal: &Goal, price: f64) -> Ways {
        let part = self.hour_at(goal.now.as_nanos() as f64 / 1e9);
        let hour = self.rates(part);
        // More clients than at this time of the last cycles are dearer.
        let rates = Rates {
            busy: hour.busy.max(self.now.busy),
            clients: hour.clients.max(self.now.clients),
            yielding: hour.yielding.max(self.now.yielding),
            free: hour.free,
        };
        Ways {
            idle: self.idles(part, &rates, goal, price),
            share: rates.share_at(self.outright_price(part, goal, price), goal.sweeping.each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Nanos = Nanos::from_secs(3600);

    /// A day of a disk that is busy for half of the time at day and for a twentieth at night, with as much in gaps.
    fn day() -> Plan {
        let mut plan = Plan::new(HOUR.saturating_mul(24));
        for hour in 1..=24 {
            let now = Time::ZERO + HOUR.saturating_mul(hour);
            let busy = if (9..=20).contains(&hour) { 1800 } else { 180 };
            let did = Did {
                span: HOUR,
                busy: Nanos::from_secs(busy),
                clients: busy * 100,
                yielding: busy * 100,
                free: busy * 10,
                allowed: f64::INFINITY,
                tail: Tail::default(),
            };
            plan.saw(now, &did, 1.0);
        }
        plan
    }

    fn goal(left: u64) -> Goal {
        Goal {
            now: Time::ZERO + HOUR.saturating_mul(24),
            left,
            all: 1_000_000,
            sweeping: Sweeping {
                blocks: 100.0,
                least: 50.0,
                each: 0.01,
            },
            bound: Bound::Now(f64::INFINITY),
            outright: true,
            lag: 0.0,
            again: 0.0,
        }
    }

    const DAY: f64 = 86_400.0;

    #[test]
    fn gaps_that_suffice_cost_nothing() {
        // 12 hours of 18,000 blocks and 12 of 1,800 a day, at first.
        assert_eq!(day().price(&goal(100_000), 30.0 * DAY), Some(0.0));
    }

    #[test]
    fn quiet_hours_are_used_first_then_all_idle_time_then_the_clients_time() {
        let plan = day();
        let (noon, midnight) = (12.5, 1.5);
        let at = |hours: f64, price| {
            let now = Time::ZERO + Nanos::from_millis_f64(hours * 3.6e6);
            // The last look was at midnight.
            plan.ways(&Goal { now, ..goal(1) }, price)
        };
        // A night has 11.4 hours of idle time, 4,104,000 blocks; in a day more.
        let night = plan.price(&goal(1_000_000), 1.5 * DAY).expect("it does");
        assert!(night > 0.0);
        assert!(at(midnight, night).idle && !at(noon, night).idle, "{night}");
        assert_eq!(at(noon, night).share, 0.0);
        let mut late = goal(1_000_000);
        late.now = Time::ZERO + HOUR.saturating_mul(34);
        let seconds = 14_000.0;
        let noons = plan.price(&late, 2.0 * seconds).expect("it does");
        assert!(at(noon, noons).idle && noons > night, "{noons} {night}");
        let dear = plan.price(&late, 1.6 * seconds).expect("it does");
        assert!(at(noon, dear).share > 0.0 && dear > noons, "{dear}");
        assert_eq!(plan.price(&late, 0.5 * seconds), None);
    }

    #[test]
    fn a_bound_of_the_price_is_for_outright_reads_and_for_hours_with_long_requests() {
        let mut plan = day();
        let at = |hour: u64| Goal {
            now: Time::ZERO + HOUR.saturating_mul(24 + hour),
            bound: Bound::Now(1e-4),
            ..goal(1_000_000)
        };
        let (noon, midnight) = (at(12), at(1));
        let price = 1e6;
        for goal in [&noon, &midnight] {
            assert_eq!(plan.ways(goal, price), Ways::default());
        }
        assert_eq!(plan.price(&midnight, 2.0 * DAY), None);
        // A day of short nights and long noons.
        for hour in 25..=48 {
            let is_day = (33..=44).contains(&hour);
            let mut did = Did {
                span: HOUR,
                busy: Nanos::from_secs(if is_day { 1800 } else { 180 }),
                clients: 18_000,
                yielding: 18_000,
                ..Did::default()
            };
            for request in 0..2_000 {
                let is_long = request % 100 == 0 && is_day;
                did.tail
                    .add(Nanos::from_millis(if is_long { 120 } else { 30 }));
            }
            plan.saw(Time::ZERO + HOUR.saturating_mul(hour), &did, 1.0);
        }
        plan.set_limit(Nanos::from_millis(100));
        let idle = Ways {
            idle: true,
            share: 0.0,
        };
        assert_eq!(plan.ways(&at(25), price), idle);
        assert_eq!(plan.ways(&at(36), price), Ways::default());
        assert!(plan.price(&at(24), 2.0 * DAY).is_some());
        plan.set_limit(Nanos::from_millis(30));
        assert_eq!(plan.ways(&at(25), price), Ways::default());
    }

    #[test]
    fn what_the_p99_allows_by_noon_says_nothing_of_the_night() {
        let mut plan = day();
        // The second day it allows reads at the cost of clients by night alone.
        for hour in 25..=48 {
            let is_day = (33..=44).contains(&hour);
            let did = Did {
                span: HOUR,
                busy: HOUR / 20,
                clients: 18_000,
                yielding: 18_000,
                allowed: if is_day { 0.0 } else { 1e6 },
                ..Did::default()
            };
            plan.saw(Time::ZERO + HOUR.saturating_mul(hour), &did, 1.0);
        }
        let takes = |bound| {
            let now = Time::ZERO + HOUR.saturating_mul(36);
            let goal = Goal {
                now,
                bound,
                ..goal(1_000_000)
            };
            plan.takes(&goal, 1e7, 30.0 * DAY)
        };
        let (before, none, all) = (
            takes(Bound::AsBefore),
            takes(Bound::Now(0.0)),
            takes(Bound::Now(1e7)),
        );
        assert_eq!(none, 30.0 * DAY);
        // Noons have to be waited for.
        assert!(all < before && before < DAY, "{all} {before}");
        // Another p99 is promised, of which nothing is known.
        for (price, expected) in [(0.0, none), (f64::INFINITY, all)] {
            plan.forget_allowed(price);
            let takes = plan.takes(
                &Goal {
                    now: Time::ZERO + HOUR.saturating_mul(36),
                    bound: Bound::AsBefore,
                    ..goal(1_000_000)
                },
                1e7,
                30.0 * DAY,
            );
            assert_eq!(takes, expected);
        }
    }

    #[test]
    fn what_idle_time_gives_by_day_says_nothing_of_the_night() {
        let mut plan = day();
        let night = plan.takes(&goal(1_000_000), 1.0, 9.0 * DAY);
        for _ in 0..100 {
            plan.swept_idle(Time::ZERO + HOUR.saturating_mul(12), 0.1);
        }
        // It is midnight, and the night suffices.
        assert_eq!(plan.takes(&goal(1_000_000), 1.0, 9.0 * DAY), night);
        for _ in 0..100 {
            plan.swept_idle(Time::ZERO + HOUR, 0.1);
        }
        assert!(plan.takes(&goal(1_000_000), 1.0, 9.0 * DAY) > night);
    }

    #[test]
    fn a_longer_time_never_costs_more() {
        let plan = day();
        let mut last = f64::INFINITY;
        for tenths in 1..200 {
            let seconds = f64::from(tenths) * DAY / 50.0;
            let price = plan.price(&goal(900_000), seconds).unwrap_or(f64::INFINITY);
            assert!(price <= last, "{tenths}");
            last = price;
        }
    }

    #[test]
    fn nothing_is_read_outright_before_requests_that_let_nothing_pass() {
        let mut plan = Plan::new(HOUR);
        let busy = Did {
            span: HOUR,
            busy: HOUR,
            clients: 400_000,
            yielding: 0,
            ..Did::default()
        };
        plan.saw(Time::ZERO + HOUR, &busy, 1.0);
        assert_eq!(plan.price(&goal(1_000), 365.0 * DAY), None);
        // One in a thousand that does is enough for a little.
        let some = Did {
            yielding: 400,
            ..busy
        };
        plan.saw(Time::ZERO + HOUR + HOUR, &some, 1.0);
        let a_day = plan.price(&goal(1_000), DAY);
        assert!(a_day.is_some());
        assert_eq!(plan.price(&goal(1_000_000), DAY), None);
    }

    /// A day of 100 s, so that ten years have more parts than a forecast can go through one by one.
    fn short_day() -> Plan {
        let second = Nanos::from_secs(1);
        let mut plan = Plan::new(second.saturating_mul(100));
        for at in 1..=100 {
            let busy = if (30..80).contains(&at) { 500 } else { 50 };
            let did = Did {
                span: second,
                busy: Nanos::from_millis(busy),
                clients: busy,
                yielding: busy,
                free: busy / 50,
                ..Did::default()
            };
            plan.saw(Time::ZERO + second.saturating_mul(at), &did, 1.0);
        }
        plan
    }

    #[test]
    fn a_forecast_reaches_to_the_longest_date() {
        let plan = short_day();
        let mut goal = goal(1_000_000);
        goal.now = Time::ZERO + Nanos::from_secs(100);
        // 525 blocks in 100 s at first.
        let in_gaps = plan.takes(&goal, 0.0, 3_650.0 * DAY);
        let at_first = 1e6 / 5.25;
        assert!(
            in_gaps > 3.0 * at_first && in_gaps < 20.0 * at_first,
            "{in_gaps}"
        );
        assert_eq!(plan.price(&goal, in_gaps * 1.001), Some(0.0));
        assert_ne!(plan.price(&goal, in_gaps * 0.9), Some(0.0));
        // Nothing is read at all.
        let mut none = Plan::new(Nanos::from_secs(100));
        let did = Did {
            span: HOUR,
            clients: 1_000,
            ..Did::default()
        };
        none.saw(Time::ZERO + HOUR, &did, 1.0);
        assert_eq!(none.takes(&goal, 0.0, 3_650.0 * DAY), 3_650.0 * DAY);
    }

    #[test]
    fn what_clients_write_is_read_again() {
        let plan = short_day();
        let goal = |again| Goal {
            sweeping: Sweeping {
                blocks: 1.0,
                least: 1.0,
                each: 0.01,
            },
            all: 100_000,
            again,
            ..goal(100_000)
        };
        let takes = |again| plan.takes(&goal(again), 10.0, 3_650.0 * DAY);
        assert!(takes(0.1) > 1.01 * takes(0.0), "{}", takes(0.1));
        assert!(takes(0.3) > 1.03 * takes(0.0) && takes(0.3) < 10.0 * takes(0.0));
        // Faster than it can be read.
        assert_eq!(takes(10.0), 3_650.0 * DAY);
        assert_eq!(plan.price(&goal(10.0), 30.0 * DAY), None);
    }

    #[test]
    fn what_a_forecast_counts_on_is_used_also_at_no_price() {
        let mut plan = Plan::new(HOUR.saturating_mul(24));
        let idle = Did {
            span: HOUR,
            ..Did::default()
        };
        plan.saw(Time::ZERO + HOUR, &idle, 1.0);
        let goal = goal(1_000);
        assert_eq!(plan.price(&goal, DAY), Some(0.0));
        assert!(plan.ways(&goal, 0.0).idle);
        // With the first client that is another matter.
        let one = Did { clients: 1, ..idle };
        plan.saw(Time::ZERO + HOUR + HOUR, &one, 1.0);
        assert!(!plan.ways(&goal, 0.0).idle);
    }

    /// Second by second.
    fn by_seconds(plan: &Plan, goal: &Goal, price: f64) -> f64 {
        let from = goal.now.as_nanos() as f64 / 1e9;
        let all = goal.all as f64;
        let (mut left, mut dense, mut along) = (goal.left as f64, 1.0, 0.0);
        while left >= 0.5 {
            let hour = plan.hour_at(from + along + 0.5);
            let rates = plan.rates(hour);
            let gaps = rates.free * poorer(left / all);
            let swept = (goal.sweeping.blocks * dense).max(goal.sweeping.least);
            let swept = plan.arm(hour, goal, price) * swept;
            dense *= 1.0 - gaps / left;
            left -= gaps + swept;
            along += 1.0;
        }
        along
    }

    #[test]
    fn a_forecast_by_cycles_is_that_by_seconds() {
        let plan = short_day();
        for (left, all) in [(100_000, 100_000), (30_000, 1_000_000)] {
            let mut goal = goal(left);
            goal.all = all;
            goal.sweeping = Sweeping {
                blocks: 1.0,
                least: 0.5,
                each: 0.01,
            };
            for price in [0.0, 0.004, 10.0] {
                let by_cycles = plan.takes(&goal, price, 3_650.0 * DAY);
                let by_seconds = by_seconds(&plan, &goal, price);
                assert!(by_seconds > 10_000.0, "{by_seconds}");
                let off = by_cycles / by_seconds - 1.0;
                assert!(off.abs() < 0.03, "{left} {price}: {by_cycles} {by_seconds}");
            }
        }
    }
}
