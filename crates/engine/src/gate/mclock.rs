//! `mclock`: each lane has a reservation and a weight, in shares of a capacity that is assumed.
//!
//! # Problem
//!
//! Storage servers promise throughput by mClock, as Ceph does. mClock measures no disk time: it charges each request by
//! a formula. This gate shows the cost of such a promise, and of a wrong capacity.
//!
//! # How it works
//!
//! A request costs its bytes, at least `bandwidth` / `iops`. The next request of each lane has two tags. The tag R grows
//! by cost / reservation and is never earlier than the request's arrival. The tag P grows by cost / weight. If a tag R is
//! due, the lane with the earliest R goes. Otherwise the lane with the least P goes, and its R does not grow. So the
//! drive is never idle while there are requests. After 300 s without requests a lane begins with the others' least P.
//!
//! The reservation of a lane is its share of the bandwidth by `reservations`. If the share is 0, the reservation is the
//! lane's [rate](GateOrder::Rate) of an order, in bytes of cost.
//!
//! # Departures from the source
//!
//! The gate sees no request before the lane sends it. So each request's cost counts in the tags of the lane's next
//! request. The last arrival stands for the next arrival, as long as the lane has requests. There are no limits: Ceph
//! keeps the drive idle rather than exceed a limit.
//!
//! # Bound
//!
//! A lane gets its reservation if the drive can serve the costs of all reservations. If the assumed capacity is too
//! high, then reservations exclude lanes without one.
//!
//! # Source
//!
//! Gulati et al., mClock (OSDI'10), as in Ceph's dmclock library and `mClockScheduler`. The defaults of `iops` and
//! `bandwidth` are Ceph's of a hard disk.

use super::assignment::{Assignment, BY, LANES};
use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, Counts, OptionInfo, Options, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

#[cfg(test)]
mod tests;

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |options, config, _| Some(Box::new(MClock::new(options, config))),
};

const INFO: PolicyInfo = PolicyInfo {
    name: "mclock",
    idea: "reserves shares of an assumed capacity",
    bound: "none if the assumed capacity is too high",
    source: "mClock (OSDI'10), as in Ceph",
    avoid: "the drive's capacity is unknown, or differs by request",
    options: &[
        BY,
        LANES,
        OptionInfo::count(
            "iops",
            315,
            (1, 1_000_000),
            "assumed random requests a second; lower charges small requests more",
        ),
        OptionInfo::count(
            "bandwidth",
            150,
            (1, 100_000),
            "assumed bandwidth in MiB/s; higher makes reservations larger, and charges small requests more",
        ),
        OptionInfo::counts(
            "reservations",
            Counts::new(&[0]),
            (0, 100),
            "reserved share of the bandwidth of each lane in percent, lane 0 first; higher takes from other lanes. 0, \
             as beyond the last number: the rate of the lane's order, if there is one",
        ),
        OptionInfo::counts(
            "weights",
            Counts::new(&[1]),
            (1, 1000),
            "weight of each lane in the rest, lane 0 first; higher has more. Lanes beyond the last number have 1",
        ),
    ],
    ..PolicyInfo::PLAIN
};

/// Time without requests after which a lane begins anew: Ceph's `idle_age`.
const IDLE_AGE: Nanos = Nanos::from_secs(300);

/// Parts of a byte in tags P. Weights divide the parts.
const PARTS: u128 = 1_000_000;

/// Account of a lane: the tags of its next request.
#[derive(Clone, Copy, Debug, Default)]
struct TaggedLane {
    /// Reserved bytes a second by option; 0: the ordered rate.
    share: u64,
    /// Ordered sectors a second.
    rate: u64,
    weight: u64,
    /// The tag R, unless the request arrives later.
    reserved: Time,
    /// The tag P, in [`PARTS`] of a byte.
    weighed: u128,
    /// Earliest arrival of the lane's next request; `None` if the lane has no requests.
    since: Option<Time>,
    /// Last time at which the lane had requests; `None` if there was none.
    seen: Option<Time>,
}

impl TaggedLane {
    /// Returns true if the lane begins anew with its next request.
    fn is_idle(&self, now: Time) -> bool {
        self.since.is_none() && self.seen.is_none_or(|seen| seen + IDLE_AGE <= now)
    }
}

/// Serves lanes by the tags of mClock.
#[derive(Clone, Debug)]
struct MClock {
    assignment: Assignment,
    room: FixedDepth,
    sector_bytes: u64,
    /// Least cost of a request, in bytes.
    least_cost: u64,
    clients: Vec<TaggedLane>,
    /// The decision for the next command: its lane, true if the reservation is due, true if the lane is empty then.
    chosen: Option<(Lane, bool, bool)>,
}

impl MClock {
    /// Creates a gate without orders for an engine of this configuration.
    fn new(options: Options<'_>, config: &Config) -> MClock {
        let assignment = Assignment::of(options);
        let bandwidth = options.count("bandwidth") << 20;
        let least_cost = (bandwidth / options.count("iops")).max(1);
        let of = |key, lane: Lane, beyond| {
            let counts = options.counts(key);
            counts
                .as_slice()
                .get(lane.index())
                .map_or(beyond, |count| u64::from(*count))
        };
        let clients = assignment.all().map(|lane| TaggedLane {
            share: bandwidth / 100 * of("reservations", lane, 0),
            weight: of("weights", lane, 1),
            ..TaggedLane::default()
        });
        MClock {
            clients: clients.collect(),
            assignment,
            room: FixedDepth::new(config),
            sector_bytes: u64::from(config.sector_bytes),
            least_cost,
            chosen: None,
        }
    }

    /// Reservation of a lane in bytes a second; 0: none.
    fn reservation(&self, client: &TaggedLane) -> u64 {
        match client.share {
            0 => client.rate.saturating_mul(self.sector_bytes),
            share => share,
        }
    }

    /// Notes which lanes have requests.
    fn look(&mut self, now: Time, lanes: &dyn Lanes) {
        for lane in self.assignment.all() {
            if !lanes.is_ready(lane) {
                self.clients[lane.index()].since = None;
                continue;
            }
            let others = self.clients.iter().filter(|other| !other.is_idle(now));
            let least = others.map(|other| other.weighed).min();
            let client = &mut self.clients[lane.index()];
            if client.is_idle(now) {
                client.weighed = least.unwrap_or_default();
                client.reserved = now;
            }
            client.since = client.since.or(Some(now));
            client.seen = Some(now);
        }
    }

    /// Returns the lane that goes next, and true if its reservation is due.
    fn choose(&self, now: Time) -> Option<(Lane, bool)> {
        let rank = |(lane, client): (Lane, &TaggedLane)| {
            let tag = client.since?.max(client.reserved);
            match tag <= now && self.reservation(client) > 0 {
                true => Some((0, u128::from(tag.as_nanos()), lane)),
                false => Some((1, client.weighed, lane)),
            }
        };
        let clients = self.assignment.all().zip(&self.clients);
        let first = clients.filter_map(rank).min();
        first.map(|(phase, _, lane)| (lane, phase == 0))
    }
}

impl Gate for MClock {
    fn lanes(&self) -> usize {
        self.assignment.lanes()
    }

    fn lane(&self, origin: Origin, _: Class) -> Lane {
        self.assignment.lane(origin)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        self.look(now, lanes);
        let choice = self.room.has_room().then(|| self.choose(now)).flatten();
        self.chosen = choice.map(|(lane, due)| {
            let state = lanes.state(lane);
            (lane, due, state.queued + state.staged <= 1)
        });
        choice.map_or(Next::Hold(None), |(lane, _)| Next::Take(lane))
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.room.ahead_of(self.assignment.all(), lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        let chosen = self.chosen.take().filter(|(of, ..)| *of == lane);
        let (_, due, last) = chosen.unwrap_or((lane, false, false));
        let bytes = command.extent.len.get().saturating_mul(self.sector_bytes);
        let cost = bytes.max(self.least_cost);
        let reservation = self.reservation(&self.clients[lane.index()]);
        let client = &mut self.clients[lane.index()];
        client.weighed += u128::from(cost) * PARTS / u128::from(client.weight);
        client.reserved = client.reserved.max(command.arrival);
        if due {
            let nanos = u128::from(cost) * 1_000_000_000 / u128::from(reservation.max(1));
            let span = Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            client.reserved = client.reserved.saturating_add(span);
        }
        client.since = (!last).then_some(command.arrival);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        match *order {
            GateOrder::Assign { .. } => self.assignment.obey(order),
            GateOrder::Rate { lane, rate } => {
                if let Some(client) = self.clients.get_mut(lane.index()) {
                    client.rate = rate;
                    client.reserved = now;
                }
            }
            _ => self.room.obey(now, order),
        }
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        self.assignment.in_force(tell);
        for (lane, client) in self.assignment.all().zip(&self.clients) {
            let rate = client.rate;
            tell(&GateOrder::Rate { lane, rate });
        }
    }
}
