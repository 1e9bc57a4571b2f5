//! Intake of requests: held back to keep the order, queued in their lane, or joined to a staged request.

use super::Engine;
use crate::event::{Arrival, Join};
use crate::gate::{Gate, Lane};
use crate::lane::{Following, Queue};
use crate::names::RequestId;
use crate::predictions::Predictions;
use crate::slots::Stage;
use crate::world::Approach;
use headtime_sched::{Class, Flags, Op, Request, Scheduler, Tag, Track, TrackedCommand};
use headtime_units::{Sectors, Time};

impl<S: Scheduler> Engine<S> {
    /// Makes a slot for a request.
    #[inline(always)]
    fn add(&mut self, now: Time, arrival: &Arrival, lane: Lane) -> Tag {
        let Arrival {
            id,
            op,
            extent,
            flags,
            origin,
            class,
            since,
        } = *arrival;
        assert!(
            extent.is_empty() == (op == Op::Flush),
            "a request has sectors unless it is a flush: {op:?} {extent}"
        );
        let request = Request {
            tag: Tag::default(),
            op,
            extent,
            flags,
            origin,
            class,
            arrival: since.map_or(now, |since| since.min(now)),
        };
        self.shared.stats.arrived += 1;
        let tag = self.shared.slots.add(id, lane, request);
        let slot = &mut self.shared.slots[tag];
        slot.merged.origin = self.shared.config.seen(origin);
        slot.came = now;
        tag
    }

    pub(super) fn arrived(&mut self, now: Time, arrival: &Arrival) {
        let lane = self.gate.lane(arrival.origin, arrival.class);
        self.take_in(now, arrival, lane);
    }

    #[inline(always)]
    fn take_in(&mut self, now: Time, arrival: &Arrival, lane: Lane) {
        let tag = self.add(now, arrival, lane);
        let barrier = arrival.op == Op::Flush || arrival.flags.has(Flags::PREFLUSH);
        if barrier || !self.behind_flush.is_empty() {
            self.shared.stats.held_flush += 1;
            if self.behind_flush.is_empty() || self.gate.outranks(lane, self.flush_lane) {
                self.flush_lane = lane;
            }
            self.behind_flush.push_back(tag);
            // A waiting scheduler has no request to wait for any more.
            for lane in &mut self.lanes {
                lane.ask |= barrier;
            }
            self.let_in(now);
        } else {
            self.admit(now, tag);
        }
    }

    /// Continues with requests that wait for a flush, after a flush or all earlier requests are complete.
    pub(super) fn advance_flush(&mut self, now: Time) {
        self.let_in(now);
        if self.lanes.only().is_none() {
            self.rank_flush();
        }
    }

    /// Finds the highest lane of the requests that wait for a flush.
    pub(super) fn rank_flush(&mut self) {
        let slots = &self.shared.slots;
        let lanes = self.behind_flush.iter().map(|tag| slots[*tag].lane);
        let first = lanes.reduce(|one, other| self.gate.first_of(one, other));
        self.flush_lane = first.unwrap_or_default();
    }

    /// Admits requests that are not behind a flush. Starts the flush once all earlier requests are complete.
    fn let_in(&mut self, now: Time) {
        while let Some(&tag) = self.behind_flush.front() {
            let slot = &mut self.shared.slots[tag];
            let flushes = slot.own.op == Op::Flush
                || (slot.own.flags.has(Flags::PREFLUSH) && slot.preflush.is_none());
            if flushes && self.live > 0 {
                return;
            }
            if flushes {
                if slot.stage == Stage::Held {
                    slot.stage = Stage::Staged;
                    slot.merged.op = Op::Flush;
                    slot.merged.extent.len = Sectors::ZERO;
                    let lane = slot.lane;
                    let command = self.issue(now, tag, lane);
                    self.outbox.push_back(command);
                }
                return;
            }
            self.behind_flush.pop_front();
            self.admit(now, tag);
        }
    }

    /// Admits a request, unless the request must wait for an overlapping one.
    #[inline(always)]
    fn admit(&mut self, now: Time, tag: Tag) {
        self.live += 1;
        if self.order.admit(&self.shared.slots[tag].own) {
            self.enqueue(now, tag);
        } else {
            self.shared.stats.held_overlap += 1;
            self.raise_those_before(now, tag);
        }
    }

    /// Puts a request that may start into the queue of its lane.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Time, tag: Tag) {
        let lane = self.shared.slots[tag].lane;
        self.lanes[lane.index()].enqueue(now, tag, &mut self.shared);
    }

    /// Returns the first staged request of a lane that its scheduler has chosen, and the position in the list of staged
    /// requests.
    pub(super) fn target(&self, lane: Lane) -> Option<(usize, Tag)> {
        let staged = self.lanes.get(lane.index())?.staged.iter().copied();
        let chosen = |(_, tag): &(usize, Tag)| self.shared.slots[*tag].chosen_by.is_some();
        staged.enumerate().find(chosen)
    }

    /// Returns the first staged request of a lane that requests may join: its name, and its present command.
    pub fn joinable(&self, lane: Lane) -> Option<(RequestId, Request<()>)> {
        let slot = &self.shared.slots[self.target(lane)?.1];
        Some((slot.id, slot.merged.tagged(())))
    }

    /// Returns the state of head and drive before that request; `None` if there is no such request, or no tracker
    /// follows the head.
    pub(crate) fn approach(&mut self, now: Time, lane: Lane) -> Option<Approach> {
        let (before, target) = self.target(lane)?;
        let slots = &self.shared.slots;
        let follows = self.gate.follows(lane, slots[target].merged.class);
        let staged = self.lanes[lane.index()].staged.iter().take(before);
        let staged = staged.map(|tag| TrackedCommand::of(&slots[*tag].merged));
        let tracker = &mut self.shared.following.as_mut()?.tracker;
        let head = tracker.head(now, &mut { staged });
        let room = match self.in_flight < self.depth {
            true => Some(now),
            false => tracker.next_done(now),
        };
        Some(Approach {
            lane,
            head,
            room,
            serial: self.depth == 1 || !follows,
        })
    }

    /// Follows the head with `tracker`, unless the head is followed already.
    pub(crate) fn follow_with(&mut self, tracker: Box<dyn Track>) {
        self.shared.following.get_or_insert_with(|| Following {
            tracker,
            predictions: Predictions::default(),
            for_job: true,
        });
    }

    /// Stops following the head, unless a scheduler needs it.
    pub(crate) fn follow_no_longer(&mut self) {
        let following = &mut self.shared.following;
        *following = following.take().filter(|following| !following.for_job);
    }

    /// Returns true if a tracker follows the head and knows the angle of the platter.
    pub fn platter_is_found(&self) -> bool {
        let following = self.shared.following.as_ref();
        following.is_some_and(|following| following.tracker.is_found())
    }

    /// Returns true if no request waits outside the drive, no scheduler holds the drive for a future request, and the
    /// drive has room.
    pub fn is_quiet(&self) -> bool {
        let quiet = |lane: &Queue<S>| !lane.has_any() && lane.idle_until.is_none();
        self.waiting() == 0 && self.lanes.iter().all(quiet) && self.in_flight < self.depth
    }

    /// Returns true if a request may join the first staged request of a lane, go alone, or be queued.
    ///
    /// A request may not join if nothing is staged, if a flush waits, or if the request conflicts with a live one. It
    /// may not join a staged request that is more urgent than [`Class::BEST_EFFORT`]. To go in the same command, the
    /// request must touch the staged one, and have the same operation and flags. The command must not exceed
    /// [`Config::merge_sectors_max`](crate::Config::merge_sectors_max). To go alone, the request needs a
    /// [quiet](Engine::is_quiet) engine. Any read or write may be queued.
    pub fn may_join(&self, arrival: &Arrival, lane: Lane, join: Join) -> bool {
        let conflicts = || self.order.conflicts(arrival.extent, arrival.op.changes());
        if matches!(join, Join::Alone | Join::Queued) {
            let moves = matches!(arrival.op, Op::Read | Op::Write);
            let plain = moves && !arrival.flags.has(Flags::PREFLUSH) && !arrival.extent.is_empty();
            let there = lane.index() < self.lanes.count();
            let now = join == Join::Queued || (self.is_quiet() && !conflicts());
            return there && plain && now;
        }
        let Some((_, tag)) = self.target(lane) else {
            return false;
        };
        let barrier = arrival.flags.has(Flags::PREFLUSH) || arrival.extent.is_empty();
        if barrier || arrival.op == Op::Flush || !self.behind_flush.is_empty() {
            return false;
        }
        let (other, extent) = (&self.shared.slots[tag].merged, arrival.extent);
        if other.class < Class::BEST_EFFORT {
            return false;
        }
        let fits = || {
            let touches = extent.end() == other.extent.start || extent.start == other.extent.end();
            let alike = other.op == arrival.op && other.flags == arrival.flags;
            let most = self.shared.config.merge_sectors_max;
            touches
                && alike
                && matches!(arrival.op, Op::Read | Op::Write)
                && extent.len <= most
                && other.extent.len <= most - extent.len
        };
        (join != Join::With || fits()) && !conflicts()
    }

    pub(super) fn joined(&mut self, now: Time, arrival: &Arrival, lane: Lane, join: Join) {
        let may = self.may_join(arrival, lane, join);
        assert!(may, "{} may not join", arrival.id);
        if join == Join::Queued {
            self.shared.stats.joined += 1;
            return self.take_in(now, arrival, lane);
        }
        let target = self.target(lane);
        let tag = self.add(now, arrival, lane);
        self.live += 1;
        self.shared.stats.joined += 1;
        let starts = self.order.admit(&self.shared.slots[tag].own);
        assert!(starts, "it conflicts with nothing");
        match (join, target) {
            (Join::Before | Join::Outright | Join::Alone, target) => {
                let slot = &mut self.shared.slots[tag];
                slot.stage = Stage::Staged;
                if join == Join::Before {
                    slot.prefix_of = target.map(|(_, tag)| tag);
                }
                let before = target.map_or(0, |(at, _)| at);
                self.lanes[lane.index()].staged.insert(before, tag);
            }
            (Join::With, None) | (Join::Queued, _) => unreachable!("it may join"),
            (Join::With, Some((_, target))) => {
                let slots = &mut self.shared.slots;
                slots[tag].joined = true;
                slots.append_parts(target, tag);
                let extent = &mut slots[target].merged.extent;
                extent.start = extent.start.min(arrival.extent.start);
                extent.len += arrival.extent.len;
            }
        }
    }
}
