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

/// Merges, orders and dispatches requests; see the crate's page for the loop around the engine.
///
/// # Order
///
/// If a request shares a sector with an earlier request and either changes the sector, the later request starts when
/// the earlier one is complete. A flush starts when all earlier requests are complete. All later requests start when
/// the flush is complete. On SATA the link drains around a flush in any case. A write with
/// [`Flags::PREFLUSH`](headtime_sched::Flags::PREFLUSH) is a flush followed by the write. While a flush waits, the
/// engine asks schedulers by [`Scheduler::dispatch_forced`].
///
/// # Lanes
///
/// A request belongs to a lane, merges only with requests of this lane, and goes when the [`Gate`] takes the lane. The
/// order of requests holds across all lanes. If a request must wait for a request in a lane of lower rank, it passes
/// its lane on to this request. So the order never breaks a gate's promise to a lane.
///
/// # Staged requests
///
/// A request that a scheduler has chosen and the gate has not taken is *staged*. A request of a job can still join a
/// staged request ([`Event::Joined`]): as a preceding command, or as a part of the same command. While the engine
/// [offers](Event::Offering) chosen requests, each request is staged until [`Event::Offered`], even if the gate would
/// take it at once.
///
/// # Errors of the drive
///
/// If a merged command fails, its parts are issued again alone, so that the error reaches only the request that caused
/// it. If requests of a job had joined the command, the other parts go first.
///
/// Invariants: `in_flight` is the number of taken `tags`, and at most the configured depth; `depth` is at most
/// `depth_ordered`; the first request of `behind_flush` has to flush; `now` never falls.
#[derive(Debug)]
pub struct Engine<S = Box<dyn Scheduler>> {
    shared: Shared,
    lanes: Few<Queue<S>>,
    gate: AnyGate,
    /// The gate's last decision, if it was to hold.
    hold: Option<Hold>,
    account: Account,
    order: Precedence,
    /// A flush and all later requests, in order of arrival.
    behind_flush: VecDeque<Tag>,
    /// The highest lane of requests that wait for a flush. Earlier requests inherit its rank.
    flush_lane: Lane,
    /// Live requests that are not behind a flush.
    live: usize,
    in_flight: u32,
    /// The depth of the last order, and the depth that the gate was last notified of.
    depth_ordered: u32,
    depth: u32,
    /// End of the last dedication ordered by a conductor. With several lanes, it holds for the lanes of marked
    /// requests.
    dedicated: Time,
    tags: DriveTags,
    outbox: VecDeque<Command>,
    /// Time before which no request is chosen, since the arm will not be free.
    late_until: Option<Time>,
    /// True if each chosen request waits until it has been offered to jobs.
    offering: bool,
    now: Time,
    /// Scratch list, kept to reuse its memory.
    to_raise: Vec<Tag>,
}

/// The gate lets no command through.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
}

impl<S: Scheduler> Engine<S> {
    /// Creates an empty engine with one lane and a gate of fixed depth.
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    pub fn new(config: Config, scheduler: S) -> Result<Engine<S>, ConfigError> {
        let gate = AnyGate::Fixed(FixedDepth::new(&config));
        Engine::build(config, gate, vec![scheduler])
    }

    /// Creates an empty engine with a scheduler for each lane of the gate.
    ///
    /// The gate decides in place of [`Config::commit_ahead`]. [`Config::depth`] is the largest number of commands in
    /// the drive. A gate may admit fewer.
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    ///
    /// # Panics
    ///
    /// If the number of schedulers differs from the number of lanes.
    pub fn with_gate(
        config: Config,
        gate: Box<dyn Gate>,
        schedulers: Vec<S>,
    ) -> Result<Engine<S>, ConfigError> {
        Engine::build(config, AnyGate::Other(gate), schedulers)
    }

    /// Creates an empty engine, by [`Engine::with_gate`] if there is a gate, else by [`Engine::new`].
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    ///
    /// # Panics
    ///
    /// If the number of schedulers differs from the number of lanes.
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

    /// Takes an event. Afterwards, call [`Engine::poll`] with the same `now` until it returns `None`.
    ///
    /// # Panics
    ///
    /// If time goes backwards, or if a completed tag is not in the drive. If a request may not join, or if a named lane
    /// does not exist. Also if a request without sectors is not a flush, or a flush has sectors.
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

    /// Takes an event of a rare kind: neither an arrival nor a completion.
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
            // A lane without a request of the stream, such as an urgent lane, continues.
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

    /// Returns the request that would go to the drive next, as far as the engine knows. This is the first staged
    /// request by lane, or else the first candidate of a scheduler by lane. The id is the id of the request's first
    /// part.
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
            self.gate.obey(now, order);
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

    /// Returns the number of commands in the drive.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the present limit on the number of commands in the drive: the configured or ordered depth, or less if a
    /// scheduler proposes less.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the depth of the last order, or of the configuration if there was no order.
    pub(crate) fn depth_ordered(&self) -> u32 {
        self.depth_ordered
    }

    /// Returns the number of requests outside the drive: queued, staged, or held back.
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

    /// Returns true if a request is held back by an overlapping request or a flush.
    #[inline(always)]
    fn is_anything_held(&self) -> bool {
        self.order.held() + self.behind_flush.len() > 0
    }

    /// Returns true if nothing is queued, held or in flight.
    pub fn is_idle(&self) -> bool {
        self.live == 0 && self.behind_flush.is_empty() && self.outbox.is_empty()
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Returns the errors of predictions so far; `None` if nothing follows the head.
    pub fn predictions(&self) -> Option<&Predictions> {
        let following = self.shared.following.as_ref();
        following.map(|following| &following.predictions)
    }

    /// Returns the counts of the engine's gates up to `now`.
    pub fn gating(&self, now: Time) -> Gating {
        self.account.read(now)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns the scheduler of the first lane.
    pub fn scheduler(&self) -> &S {
        &self.lanes[0].scheduler
    }

    /// Returns the schedulers of all lanes.
    pub fn schedulers(&self) -> impl Iterator<Item = &S> {
        self.lanes.iter().map(|lane| &lane.scheduler)
    }

    /// Returns the requests that a command carries, as id and extent on arrival. The requests are in order of merging,
    /// not of address.
    ///
    /// Valid from [`Command::Issue`] until [`Event::Completed`] for its tag; empty otherwise.
    pub fn parts(&self, tag: DriveTag) -> impl Iterator<Item = (RequestId, Extent)> {
        let slots = &self.shared.slots;
        core::iter::successors(self.tags.holder(tag), |tag| slots[*tag].next)
            .map(|tag| (slots[tag].id, slots[tag].own.extent))
    }

    /// Returns the staged commands of a lane in order.
    ///
    /// # Panics
    ///
    /// If there is no such lane.
    pub fn staged(&self, lane: Lane) -> impl Iterator<Item = Request<()>> {
        let staged = self.lanes[lane.index()].staged.iter();
        staged.map(|tag| self.shared.slots[*tag].merged.tagged(()))
    }

    /// Returns the unfinished requests as they arrived, in no particular order.
    pub fn unfinished(&self) -> impl Iterator<Item = (RequestId, Request<()>)> {
        let live = self.shared.slots.live();
        live.map(|slot| (slot.id, slot.own.tagged(())))
    }
}
