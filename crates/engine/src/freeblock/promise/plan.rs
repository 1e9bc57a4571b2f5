//! What a second of the arm costs at each hour, and how much of it a date needs.

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
/// No forecast has more parts.
const PARTS_MAX: usize = 24 * 400;

/// What was seen in a part of the cycle. Sums; the newest cycle has half of the weight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hour {
    /// Seconds looked at.
    seconds: f64,
    /// Of them, those in which the arm worked for clients.
    busy: f64,
    clients: f64,
    /// Blocks that would have been read for nothing if all were wanted still.
    free: f64,
}

impl Hour {
    fn halve(&mut self) {
        for sum in [
            &mut self.seconds,
            &mut self.busy,
            &mut self.clients,
            &mut self.free,
        ] {
            *sum /= 2.0;
        }
    }

    fn add(&mut self, other: &Hour) {
        self.seconds += other.seconds;
        self.busy += other.busy;
        self.clients += other.clients;
        self.free += other.free;
    }

    /// By the second.
    fn rates(&self) -> Rates {
        let seconds = self.seconds.max(1e-9);
        Rates {
            busy: (self.busy / seconds).clamp(0.0, 1.0),
            clients: self.clients / seconds,
            free: self.free / seconds,
        }
    }
}

/// What is to be expected of a part of the cycle, by the second.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    busy: f64,
    clients: f64,
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
        if price <= 0.0 || self.clients <= 0.0 {
            return 0.0;
        }
        // Between two of them a client is served.
        let most = each / (each + self.busy / self.clients);
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

/// What a plan says of now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ways {
    /// Idle time is used.
    pub idle: bool,
    /// The share of the time that outright reads take.
    pub share: f64,
}

/// Remembers a cycle, and looks forward.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    cycle: f64,
    hours: [Hour; HOURS],
    all: Hour,
    /// The part of the cycle that was added to last.
    last: usize,
    /// The load at last.
    now: Rates,
    of_idle: f64,
}

/// What is to be read by when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub now: Time,
    /// Blocks left, and those of all.
    pub left: u64,
    pub all: u64,
    pub sweeping: Sweeping,
}

impl Plan {
    pub(super) fn new(cycle: Nanos) -> Plan {
        Plan {
            cycle: cycle.as_secs_f64().max(1e-3),
            hours: [Hour::default(); HOURS],
            all: Hour::default(),
            last: 0,
            now: Rates::default(),
            of_idle: OF_IDLE,
        }
    }

    fn hour_at(&self, seconds: f64) -> usize {
        let along = seconds / self.cycle;
        (((along - along.floor()) * HOURS as f64) as usize).min(HOURS - 1)
    }

    /// Notes what was seen in a span that ends now: for how long the arm worked for clients and how many there were, what was read for nothing,
    /// and the share of all that is left.
    pub(super) fn saw(
        &mut self,
        now: Time,
        span: Nanos,
        busy: Nanos,
        clients: u64,
        free: u64,
        left: f64,
    ) {
        let seen = Hour {
            seconds: span.as_secs_f64(),
            busy: busy.as_secs_f64(),
            clients: clients as f64,
            free: free as f64 / poorer(left).max(0.03),
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
    pub(super) fn swept_idle(&mut self, share: f64) {
        self.of_idle += (share.clamp(0.1, 1.0) - self.of_idle) / 16.0;
    }

    /// What is to be expected; of a part that was not seen yet, the mean of all.
    fn rates(&self, hour: usize) -> Rates {
        match self.hours[hour].seconds > 0.0 {
            true => self.hours[hour].rates(),
            false => self.all.rates(),
        }
    }

    /// Seconds until all has been read at a price, or `most` if that takes longer.
    fn takes(&self, goal: &Goal, price: f64, most: f64) -> f64 {
        let (from, part) = (goal.now.as_nanos() as f64 / 1e9, self.cycle / HOURS as f64);
        let all = goal.all.max(1) as f64;
        let mut left = goal.left as f64;
        let (mut along, mut dense) = (0.0, 1.0);
        for _ in 0..PARTS_MAX {
            // To the end of the part of the cycle.
            let at = (from + along) / part;
            let span = (at.floor() + 1.0 - at) * part;
            let span = span.min(most - along).max(part * 1e-6);
            let rates = self.rates(self.hour_at(from + along + span / 2.0));
            let share = rates.share_at(price, goal.sweeping.each);
            let mut arm = share;
            if rates.idle_price(goal.sweeping.each) <= price {
                arm += (1.0 - rates.busy - share).max(0.0) * self.of_idle;
            }
            let share = left / all;
            let gaps = rates.free * poorer(share);
            // What is left when this much is read in gaps is as much thinner where the sweep comes.
            let swept = arm * (goal.sweeping.blocks * dense).max(goal.sweeping.least);
            // In the tail half of it passes at the most: what is read in gaps falls too fast.
            let span = match share < TAIL && gaps > 0.0 {
                true => span.min(left / (2.0 * gaps)),
                false => span,
            };
            let would = (left - (gaps + swept) * span).max(0.0);
            let gaps = (gaps + rates.free * poorer(would / all)) / 2.0;
            let rate = gaps + swept;
            if left <= rate * span || left < 0.5 {
                return along + (left / rate.max(1e-300)).min(span);
            }
            dense *= 1.0 - gaps * span / left;
            left -= rate * span;
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
    pub(super) fn ways(&self, now: Time, price: f64, sweeping: &Sweeping) -> Ways {
        let hour = self.rates(self.hour_at(now.as_nanos() as f64 / 1e9));
        // More clients than at this time of the last cycles are dearer.
        let rates = Rates {
            busy: hour.busy.max(self.now.busy),
            clients: hour.clients.max(self.now.clients),
            free: hour.free,
        };
        Ways {
            idle: price > 0.0 && rates.idle_price(sweeping.each) <= price,
            share: rates.share_at(price, sweeping.each),
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
            plan.saw(
                now,
                HOUR,
                Nanos::from_secs(busy),
                busy * 100,
                busy * 10,
                1.0,
            );
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
            let sweeping = goal(1).sweeping;
            // The last look was at midnight.
            plan.ways(now, price, &sweeping)
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
}
