//! The engine: a state machine between clients and the drive.

mod arrival;
mod completion;
mod issue;
mod lanes;
#[cfg(test)]
mod tests;

use crate::config::{Config, ConfigError};
use crate::event::{Command, Event, Stats};
use crate::few::Few;
use crate::gate::{Account, AnyGate, FixedDepth, Gate, GateOrder, Gated, Gating, Lane};
use crate::lane::{Following, Queue, Shared};
use crate::names::{DriveTag, RequestId};
use crate::order::Precedence;
use crate::predictions::Predictions;
use crate::slots::Slots;
use crate::slots::Stage;
use crate::tags::DriveTags;
use headtime_sched::{Backlog, Class, Directive, Request, Scheduler, Tag};
use headtime_units::{Extent, Sectors, Time};
use std::collections::VecDeque;

/// Merges, orders, dispatches; see the crate's page for the loop that drives it.
///
/// # Order
///
/// A request that shares a sector with an earlier one, where either changes it, starts when the
/// earlier is complete. A flush starts when everything before it is complete, and everything after
/// it starts when the flush is complete; on SATA the link drains around a flush in any case. A
/// write with [`Flags::PREFLUSH`](headtime_sched::Flags::PREFLUSH) is a flush followed by the write. While a flush
/// waits, schedulers are asked by [`Scheduler::dispatch_forced`].
///
/// # Lanes
///
/// A request belongs to a lane, merges only with others there, and goes when the [`Gate`] takes its lane.
/// Order sees all lanes. A request that must wait for one in a lane of lower rank gives it its lane; so
/// order never undoes what a gate promises to a lane.
///
/// # Staged requests
///
/// What a scheduler has chosen and the gate has not taken is *staged*. A request can still join it
/// ([`Event::Joined`]): before it, or as a part of the same command. While the engine [offers](Event::Offering) what is
/// chosen, each request is staged until [`Event::Offered`], also where the gate would take it at once.
///
/// # Errors of the drive
///
/// If a merged command fails, its parts are issued again alone, so that the error reaches only the
/// request it belongs to. If requests had joined it, the others go first.
#[derive(Debug)]
pub struct Engine<S = Box<dyn Scheduler>> {
    shared: Shared,
    lanes: Few<Queue<S>>,
    gate: AnyGate,
    /// What the gate said last, if that was to hold.
    hold: Option<Hold>,
    account: Account,
    order: Precedence,
    /// A flush and what came after it, in order of arrival.
    behind_flush: VecDeque<Tag>,
    /// The lane of those that wait for a flush, and so of everything before it.
    flush_lane: Lane,
    /// Live requests that are not behind a flush.
    live: usize,
    in_flight: u32,
    /// The depth that was last ordered, and the one that the gate was last told.
    depth_ordered: u32,
    depth: u32,
    /// End of the dedication that was ordered last, for the lanes of marked requests if there are several lanes.
    dedicated: Time,
    tags: DriveTags,
    outbox: VecDeque<Command>,
    /// Nothing is chosen before, since the drive will not be free for it so soon.
    late_until: Option<Time>,
    /// Whether what is chosen is offered before it goes.
    offering: bool,
    now: Time,
    /// Kept for its memory.
    to_raise: Vec<Tag>,
}

/// The gate lets nothing through.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
}

impl<S: Scheduler> Engine<S> {
    /// An engine with nothing to do, one lane, and a gate of fixed depth.
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    pub fn new(config: Config, scheduler: S) -> Result<Engine<S>, ConfigError> {
        let gate = AnyGate::Fixed(FixedDepth::new(&config));
        Engine::build(config, gate, vec![scheduler])
    }

    /// An engine with nothing to do, and a scheduler for each lane of the gate.
    ///
    /// The gate decides in place of [`Config::commit_ahead`]. [`Config::depth`] is the most commands that the drive
    /// takes, whatever the gate says; a gate may let fewer through.
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    ///
    /// # Panics
    ///
    /// If there is not one scheduler for each lane.
    pub fn with_gate(
        config: Config,
        gate: Box<dyn Gate>,
        schedulers: Vec<S>,
    ) -> Result<Engine<S>, ConfigError> {
        Engine::build(config, AnyGate::Other(gate), schedulers)
    }

    /// An engine with nothing to do: that of [`Engine::with_gate`] if there is a gate, else that of [`Engine::new`].
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    ///
    /// # Panics
    ///
    /// If there is not one scheduler for each lane.
    pub fn behind(
        config: Config,
        scheduler: S,
        gated: Option<Gated<S>>,
    ) -> Result<Engine<S>, ConfigError> {
        match gated {
            None => Engine::new(config, scheduler),
            Some((gate, others)) => {
                let schedulers = core::iter::once(scheduler).chain(others).collect();
                Engine::with_gate(config, gate, schedulers)
            }
        }
    }

    fn build(config: Config, gate: AnyGate, schedulers: Vec<S>) -> Result<Engine<S>, ConfigError> {
        if !(1..=DriveTag::DEPTH_MAX).contains(&config.depth) {
            return Err(ConfigError::Depth(config.depth));
        }
        if config.merge && config.merge_sectors_max == Sectors::ZERO {
            return Err(ConfigError::MergeSectorsMax);
        }
        let mut lanes = Queue::of_lanes(&gate, schedulers);
        let following = Following::of(lanes.iter_mut().map(|lane| &mut lane.scheduler));
        Ok(Engine {
            lanes,
            gate,
            shared: Shared {
                config,
                slots: Slots::default(),
                stats: Stats::default(),
                queued: 0,
                following,
            },
            hold: None,
            account: Account::default(),
            order: Precedence::default(),
            behind_flush: VecDeque::new(),
            flush_lane: Lane(0),
            live: 0,
            in_flight: 0,
            depth_ordered: config.depth,
            depth: config.depth,
            dedicated: Time::ZERO,
            tags: DriveTags::default(),
            outbox: VecDeque::new(),
            late_until: None,
            offering: false,
            now: Time::ZERO,
            to_raise: Vec::new(),
        })
    }

    /// Takes note of an event. Afterwards [`Engine::poll`] is to be called with the same `now` until
    /// it returns `None`.
    ///
    /// # Panics
    ///
    /// If time goes backwards, if a tag completes that is not in the drive, if a request joins that may not, if there is
    /// no lane that is named, or if a request without sectors is not a flush (or the reverse).
    pub fn handle(&mut self, now: Time, event: Event) {
        self.note(now, &event);
    }

    /// As [`Engine::handle`].
    pub(crate) fn note(&mut self, now: Time, event: &Event) {
        assert!(
            now >= self.now,
            "time went backwards: from {} to {now}",
            self.now
        );
        self.now = now;
        match event {
            Event::Arrived(arrival) => self.arrived(now, arrival),
            Event::Completed { tag, outcome } => self.completed(now, *tag, *outcome),
            other => self.note_other(now, *other),
        }
    }

    /// Takes note of what happens more seldom than that requests arrive and commands end.
    #[inline(never)]
    fn note_other(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrived(_) | Event::Completed { .. } => unreachable!("noted before"),
            Event::Woke => self.lanes.iter_mut().for_each(|lane| lane.woke(now)),
            Event::Unplugged => self.unplug(),
            Event::Foretold(mut request) => {
                let lane = self.gate.lane(request.origin, Class::default());
                request.origin = self.shared.config.seen(request.origin);
                let lane = &mut self.lanes[lane.index()];
                lane.scheduler.foretold(now, &request);
                lane.ask = true;
            }
            Event::Joined {
                arrival,
                lane,
                join,
            } => self.joined(now, &arrival, lane, join),
            Event::Offering(on) => self.offering = on,
            Event::Offered(lane) => self.offered(lane),
            Event::Ordered(order) => self.ordered(now, &order),
            Event::Directed(directive) => self.directed(now, directive),
            Event::Behind { origin, class } => self.waits_behind(origin, class),
            Event::Drained { from, to } => self.drain_lane(now, from, to),
        }
    }

    fn directed(&mut self, now: Time, directive: Directive<RequestId>) {
        let mark = match directive {
            Directive::Mark(id) => {
                let slots = &self.shared.slots;
                let found = slots.by_id(id).map(|tag| slots.whole(tag));
                let queued = |tag: &Tag| slots[*tag].stage == Stage::Queued;
                let Some(tag) = found.filter(queued) else {
                    return;
                };
                let lane = &mut self.lanes[self.shared.slots[tag].lane.index()];
                lane.ask = true;
                if now < self.dedicated {
                    let until = self.dedicated;
                    let dedicate = Directive::Dedicate { until };
                    lane.scheduler.directed(now, &dedicate);
                }
                return lane.scheduler.directed(now, &Directive::Mark(tag));
            }
            // A lane without a request of the stream, such as an urgent one, goes on.
            Directive::Dedicate { until } if self.lanes.only().is_none() => {
                self.dedicated = until;
                return;
            }
            Directive::Dedicate { until } => Directive::Dedicate { until },
            Directive::Release => {
                self.dedicated = Time::ZERO;
                Directive::Release
            }
        };
        for lane in &mut self.lanes {
            lane.ask = true;
            lane.scheduler.directed(now, &mark);
        }
    }

    /// Request that would go to the drive next, as far as the engine knows: the first that is staged, or else the first
    /// candidate of a scheduler, by lane. The id is the one of the request's first part.
    pub fn candidate(&self, now: Time) -> Option<(RequestId, Request<()>)> {
        let staged = self
            .lanes
            .iter()
            .find_map(|lane| lane.staged.front().copied());
        let queued = || {
            self.lanes
                .iter()
                .find_map(|lane| lane.scheduler.candidate(now))
        };
        let tag = staged.or_else(|| queued().map(|request| request.tag))?;
        let slot = &self.shared.slots[tag];
        Some((slot.id, slot.merged.tagged(())))
    }

    fn ordered(&mut self, now: Time, order: &GateOrder) {
        if let GateOrder::Depth(depth) = *order {
            self.depth_ordered = depth.clamp(1, self.shared.config.depth);
            self.propose_depth(now, None);
        } else {
            let before = match order {
                GateOrder::Assign { .. } => self.lanes_by_gate(),
                _ => Vec::new(),
            };
            self.gate.told(now, order);
            self.account.changed();
            self.reassign(now, before);
        }
    }

    fn unplug(&mut self) {
        for lane in &mut self.lanes {
            lane.plugged_until = None;
        }
    }

    /// Returns the time at which the engine needs [`Event::Woke`] if nothing else happens before.
    #[inline(always)]
    pub fn next_wakeup(&self) -> Option<Time> {
        match (self.lanes.only(), self.hold, self.late_until) {
            (Some(lane), None, None) => lane.next_wakeup(),
            (_, hold, late) => {
                let lanes = self.lanes.iter().filter_map(Queue::next_wakeup);
                let held = hold.and_then(|hold| hold.until);
                lanes.chain(held).chain(late).min()
            }
        }
    }

    /// Requests in the drive.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The most commands that the drive gets at present: what is configured or ordered, or less where a scheduler proposes that.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Most commands that the drive may get by the last order, or by the configuration if none came.
    pub(crate) fn depth_ordered(&self) -> u32 {
        self.depth_ordered
    }

    /// Requests that are not in the drive: with a scheduler, staged, or held back.
    pub fn waiting(&self) -> usize {
        let in_lane = |lane: &Queue<S>| {
            debug_assert_eq!(lane.queued, lane.scheduler.queued());
            lane.queued + lane.staged.len()
        };
        let in_lanes: usize = self.lanes.iter().map(in_lane).sum();
        in_lanes + self.order.held() + self.behind_flush.len()
    }

    /// Returns why requests are [waiting](Engine::waiting), once [`Engine::poll`] has returned `None`.
    #[inline(always)]
    pub fn backlog(&self) -> Backlog {
        match self.lanes.only() {
            Some(lane) => self.backlog_in(core::iter::once(lane)),
            None => self.backlog_in_several(),
        }
    }

    #[cold]
    #[inline(never)]
    fn backlog_in_several(&self) -> Backlog {
        self.backlog_in(self.lanes.iter())
    }

    #[inline(always)]
    fn backlog_in<'a>(&self, lanes: impl Iterator<Item = &'a Queue<S>> + Clone) -> Backlog
    where
        S: 'a,
    {
        let room = self.in_flight < self.depth && self.hold.is_none();
        let queued = lanes.clone().any(Queue::has_any);
        let waits = |lane: &Queue<S>| lane.idle_until.is_some();
        let free = |lane: &Queue<S>| lane.has_any() && lane.plugged_until.is_none();
        match (queued, room && lanes.clone().any(waits)) {
            (true, true) => Backlog::Chosen,
            (true, false) if lanes.clone().any(free) => Backlog::Busy,
            _ if queued || self.is_anything_held() => Backlog::Held,
            _ => Backlog::Nothing,
        }
    }

    /// Returns true if order holds a request back.
    #[inline(always)]
    fn is_anything_held(&self) -> bool {
        self.order.held() + self.behind_flush.len() > 0
    }

    /// Returns true if nothing is queued, held or in flight.
    pub fn is_idle(&self) -> bool {
        self.live == 0 && self.behind_flush.is_empty() && self.outbox.is_empty()
    }

    /// Returns the counts of what was done so far.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// What was predicted of the commands so far; `None` if no scheduler asks where the head is.
    pub fn predictions(&self) -> Option<&Predictions> {
        let following = self.shared.following.as_ref();
        following.map(|following| &following.predictions)
    }

    /// What its gates did up to `now`.
    pub fn gating(&self, now: Time) -> Gating {
        self.account.read(now)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The scheduler of the first lane.
    pub fn scheduler(&self) -> &S {
        &self.lanes[0].scheduler
    }

    /// The schedulers of all lanes.
    pub fn schedulers(&self) -> impl Iterator<Item = &S> {
        self.lanes.iter().map(|lane| &lane.scheduler)
    }

    /// The requests that a command carries, as id and extent, the first one first: merging appends,
    /// so they are in order of merging and not of address. Each is as it arrived.
    ///
    /// Valid from [`Command::Issue`] until [`Event::Completed`] for its tag; empty otherwise.
    pub fn parts(&self, tag: DriveTag) -> impl Iterator<Item = (RequestId, Extent)> {
        let slots = &self.shared.slots;
        core::iter::successors(self.tags.holder(tag), |tag| slots[*tag].next)
            .map(|tag| (slots[tag].id, slots[tag].own.extent))
    }

    /// The commands that are staged in a lane, the first one first.
    ///
    /// # Panics
    ///
    /// If there is no such lane.
    pub fn staged(&self, lane: Lane) -> impl Iterator<Item = Request<()>> {
        let staged = self.lanes[lane.index()].staged.iter();
        staged.map(|tag| self.shared.slots[*tag].merged.tagged(()))
    }

    /// The requests that are not finished, as they arrived, in no particular order.
    pub fn unfinished(&self) -> impl Iterator<Item = (RequestId, Request<()>)> {
        let live = self.shared.slots.live();
        live.map(|slot| (slot.id, slot.own.tagged(())))
    }
}
