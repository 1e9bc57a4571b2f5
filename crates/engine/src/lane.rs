//! The queue of a lane: its scheduler, its staged commands, its plug.

mod merging;

use crate::config::Config;
use crate::event::Stats;
use crate::few::Few;
use crate::gate::{AnyGate, Gate, Lane, LaneState, Lanes};
use crate::merge::Touching;
use crate::names::{DriveTag, RequestId};
use crate::predictions::Predictions;
use crate::slots::{Slots, Stage};
use headtime_sched::{Dispatch, Flags, Scheduler, Surprise, Tag, Track, TrackedCommand};
use headtime_units::Time;
use std::collections::VecDeque;

/// State that all lanes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: Config,
    pub slots: Slots,
    pub stats: Stats,
    /// Number of requests that all schedulers have.
    pub queued: u64,
    /// Tracker of the head, if a scheduler or a job needs one.
    pub following: Option<Following>,
}

/// Tracker of the drive's head, and the errors of its predictions.
#[derive(Debug)]
pub(crate) struct Following {
    pub tracker: Box<dyn Track>,
    pub predictions: Predictions,
    /// True if the tracker is for a job alone. No decision of a scheduler depends on it then, and a replay needs no
    /// tracker.
    pub for_job: bool,
}

impl Following {
    /// Takes the trackers of all schedulers, and uses the first.
    pub fn of<'a, S: Scheduler + 'a>(
        schedulers: impl Iterator<Item = &'a mut S>,
    ) -> Option<Following> {
        // Every scheduler has to hand over its tracker.
        let trackers: Vec<_> = schedulers.filter_map(Scheduler::tracker).collect();
        let tracker = trackers.into_iter().next()?;
        Some(Following {
            tracker,
            predictions: Predictions::default(),
            for_job: false,
        })
    }

    /// Notes the end of a command. Returns the end compared with the prediction, if there was one. Not inlined, so that
    /// engines without a tracker do not carry this code.
    #[inline(never)]
    pub fn completed(&mut self, now: Time, tag: DriveTag, done: bool) -> Option<Surprise> {
        let predicting = self.tracker.completed(now, tag.0, done)?;
        self.predictions.add(&predicting);
        Some(predicting.surprise)
    }
}

/// The requests of a lane. The lane's scheduler has the queued requests, which can merge. Chosen requests are staged
/// until the gate takes them.
///
/// Invariants: `queued` equals the scheduler's count; `proposes` and `waits` describe the present scheduler;
/// `youngest` never falls.
#[derive(Debug)]
pub(crate) struct Queue<S> {
    lane: Lane,
    pub scheduler: S,
    /// Number of requests that the scheduler has; equals [`Scheduler::queued`].
    pub queued: usize,
    touching: Touching,
    /// Chosen requests, in the order in which they go.
    pub staged: VecDeque<Tag>,
    /// [Prefix](crate::Join::Before) in the drive, and the prefix's staged request.
    pub prefix: Option<(Tag, Tag)>,
    /// Time before which the scheduler need not be asked, unless there is an event.
    pub idle_until: Option<Time>,
    /// True if `idle_until` has come, but the gate has not let the engine ask the scheduler since.
    idle_over: bool,
    /// Time until which the plug holds requests back, so that they can collect.
    pub plugged_until: Option<Time>,
    /// True if there was an event since the scheduler was last asked.
    pub ask: bool,
    /// Latest arrival among the requests that the scheduler has given.
    youngest: Time,
    /// True if the scheduler proposes a depth.
    pub proposes: bool,
    /// True if the scheduler may wait. The engine asks a waiting scheduler even while it has no request.
    waits: bool,
    /// True if the gate has refused the next request, though the drive had room.
    pub refused: bool,
}

impl<S: Scheduler> Queue<S> {
    /// Creates the queues of a gate's lanes.
    ///
    /// # Panics
    ///
    /// If the number of schedulers differs from the number of lanes.
    pub fn of_lanes(gate: &AnyGate, schedulers: Vec<S>) -> Few<Queue<S>> {
        assert!(
            schedulers.len() == gate.lanes() && (1..=256).contains(&gate.lanes()),
            "a scheduler for each lane, 1 to 256"
        );
        let lanes = (0..=u8::MAX).map(Lane).zip(schedulers);
        let queues = lanes.map(|(lane, scheduler)| Queue::new(lane, scheduler));
        Few::from(queues.collect::<Vec<_>>())
    }

    fn new(lane: Lane, scheduler: S) -> Queue<S> {
        assert!(scheduler.queued() == 0, "the new scheduler must be empty");
        Queue {
            lane,
            proposes: scheduler.depth().is_some(),
            waits: !scheduler.never_waits(),
            scheduler,
            queued: 0,
            touching: Touching::default(),
            staged: VecDeque::new(),
            prefix: None,
            idle_until: None,
            idle_over: false,
            plugged_until: None,
            ask: false,
            youngest: Time::ZERO,
            refused: false,
        }
    }

    /// Returns true if the scheduler may be asked for a request, and may have one.
    #[inline]
    pub fn may_choose(&self) -> bool {
        self.ask && self.plugged_until.is_none() && (self.queued > 0 || self.waits)
    }

    /// Returns true if the lane may give a command.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.staged.is_empty() || self.may_choose()
    }

    /// Returns true if the lane has a queued or staged request.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.queued > 0 || !self.staged.is_empty()
    }

    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        let idle_until = self.idle_until.filter(|_| !self.idle_over);
        match (idle_until, self.plugged_until) {
            (Some(idle), Some(plugged)) => Some(idle.min(plugged)),
            (one, other) => one.or(other),
        }
    }

    pub fn woke(&mut self, now: Time) {
        if self.idle_until.is_some_and(|until| now >= until) {
            (self.ask, self.idle_over) = (true, true);
        }
        if self.plugged_until.is_some_and(|until| now >= until) {
            self.plugged_until = None;
        }
    }

    /// Gives a request to the scheduler, merged with a queued request if possible.
    pub fn enqueue(&mut self, now: Time, tag: Tag, of: &mut Shared) {
        self.ask = true;
        let merges = of.config.merge && !of.slots[tag].alone;
        if merges && self.try_merge(tag, of) {
            return;
        }
        let empty = !self.has_any();
        self.insert(now, tag, of);
        if let Some(plug) = of.config.plug {
            if empty {
                self.plugged_until = Some(now.saturating_add(plug.timeout));
            }
            let sync = of.slots[tag].merged.flags.has(Flags::SYNC);
            if self.queued as u64 >= u64::from(plug.requests) || sync {
                self.plugged_until = None;
            }
        }
    }

    /// Gives a request to the scheduler without merging.
    #[inline(always)]
    pub fn insert(&mut self, now: Time, tag: Tag, of: &mut Shared) {
        self.ask = true;
        let slot = &mut of.slots[tag];
        (slot.stage, slot.lane) = (Stage::Queued, self.lane);
        let request = slot.merged;
        if of.config.merge && !slot.alone {
            let scheduler = &self.scheduler;
            self.touching
                .insert(&request, || scheduler.merge_key(&request));
        }
        self.scheduler.insert(now, request);
        self.queued += 1;
        of.queued += 1;
        of.stats.queued_max = of.stats.queued_max.max(of.queued);
    }

    /// Takes a request back from the scheduler, for another lane.
    pub fn withdraw(&mut self, tag: Tag, of: &mut Shared) {
        let request = self.scheduler.withdraw(tag);
        assert!(request.tag == tag, "the scheduler gave back {request:?}");
        self.leave(tag, of);
        // The scheduler may have waited for this request.
        self.ask = true;
    }

    /// Notes that the scheduler has a request no longer.
    #[inline(always)]
    fn leave(&mut self, tag: Tag, of: &mut Shared) {
        self.queued -= 1;
        of.queued -= 1;
        let slot = &of.slots[tag];
        if of.config.merge && !slot.alone {
            self.touching.remove(tag, slot.merged.extent);
        }
    }

    /// Asks the scheduler to choose a request. `forced` is true while a flush waits.
    #[inline(always)]
    pub fn choose(&mut self, now: Time, forced: bool, of: &mut Shared) -> Option<Tag> {
        self.idle_over = false;
        // A tracker that is for a job alone is hidden from schedulers. Otherwise a job would change their decisions.
        if of.following.as_ref().is_some_and(|head| !head.for_job) {
            self.look_where_the_head_is(now, of);
        }
        let several = self.queued > 1;
        let next = match forced {
            false => self.scheduler.dispatch(now),
            true => self.scheduler.dispatch_forced(now),
        };
        match next {
            Dispatch::Request(request) => {
                self.idle_until = None;
                let stats = &mut of.stats;
                stats.chosen += u64::from(several);
                stats.overtaken += u64::from(request.arrival < self.youngest);
                self.youngest = self.youngest.max(request.arrival);
                let tag = request.tag;
                let slot = &mut of.slots[tag];
                assert!(
                    slot.stage == Stage::Queued,
                    "request {} was not queued",
                    tag.0
                );
                assert!(
                    slot.merged.extent == request.extent,
                    "request {} was altered",
                    tag.0
                );
                (slot.stage, slot.chosen_by) = (Stage::Staged, Some(self.lane));
                slot.offered = false;
                self.leave(tag, of);
                Some(tag)
            }
            Dispatch::IdleUntil(until) => {
                assert!(until > now, "a scheduler may not wait for the past");
                assert!(self.waits, "a scheduler that never waits has waited");
                of.stats.idled += u64::from(self.idle_until.is_none());
                self.idle_until = Some(until);
                self.ask = false;
                None
            }
            Dispatch::Empty => {
                debug_assert_eq!(self.queued, 0);
                self.idle_until = None;
                self.ask = false;
                None
            }
        }
    }

    /// Notifies the scheduler of the head's position. Not inlined, so that engines without a tracker do not carry this
    /// code.
    #[inline(never)]
    fn look_where_the_head_is(&mut self, now: Time, of: &mut Shared) {
        let Some(following) = &mut of.following else {
            return;
        };
        let slots = &of.slots;
        let staged = self
            .staged
            .iter()
            .map(|tag| TrackedCommand::of(&slots[*tag].merged));
        let head = following.tracker.head(now, &mut { staged });
        self.scheduler.head_is(&head);
    }

    /// Takes all requests out of the scheduler, in order of arrival.
    pub fn drain(&mut self, of: &mut Shared) -> Vec<Tag> {
        let tags: Vec<Tag> = self.scheduler.drain().iter().map(|old| old.tag).collect();
        for tag in &tags {
            self.leave(*tag, of);
        }
        self.idle_until = None;
        self.plugged_until = None;
        self.ask = true;
        tags
    }

    /// Replaces the scheduler. Returns the old one, empty.
    pub fn replace_scheduler(&mut self, now: Time, scheduler: S, of: &Shared) -> S {
        assert!(scheduler.queued() == 0, "the new scheduler must be empty");
        self.proposes = scheduler.depth().is_some();
        self.waits = !scheduler.never_waits();
        let mut old = core::mem::replace(&mut self.scheduler, scheduler);
        for request in old.drain() {
            self.scheduler.insert(now, request);
        }
        let scheduler = &self.scheduler;
        self.touching
            .rekey(|tag| scheduler.merge_key(&of.slots[tag].merged));
        self.idle_until = None;
        self.plugged_until = None;
        self.ask = true;
        old
    }

    #[inline]
    fn is_behind_prefix(&self) -> bool {
        let first = self.staged.front();
        self.prefix
            .is_some_and(|(_, request)| first == Some(&request))
    }

    fn state(&self, slots: &Slots) -> LaneState {
        // A job's request that joined a client's request goes with it, and by the client's class.
        let of_client = |tag: &&Tag| matches!(slots[**tag].id, RequestId::Client(_));
        let first = self.staged.front().map(|front| match of_client(&front) {
            true => front,
            false => self.staged.iter().find(of_client).unwrap_or(front),
        });
        LaneState {
            queued: self.queued,
            staged: self.staged.len(),
            first: first.map(|tag| slots[*tag].merged.class),
            behind_prefix: self.is_behind_prefix(),
            ready: self.is_ready(),
        }
    }
}

/// The lanes as the gate sees them, with a waiting flush.
pub(crate) struct View<'a, S> {
    pub lanes: &'a Few<Queue<S>>,
    pub slots: &'a Slots,
    /// Lane of a flush that waits for a ready request of another lane.
    pub flush: Option<Lane>,
}

impl<S: Scheduler> Lanes for View<'_, S> {
    fn state(&self, lane: Lane) -> LaneState {
        let mut state = self.lanes[lane.index()].state(self.slots);
        state.ready = self.is_ready(lane);
        state
    }

    #[inline]
    fn is_ready(&self, lane: Lane) -> bool {
        self.lanes[lane.index()].is_ready() || self.flush == Some(lane)
    }

    #[inline]
    fn is_behind_prefix(&self, lane: Lane) -> bool {
        self.lanes[lane.index()].is_behind_prefix()
    }

    #[inline]
    fn staged(&self, lane: Lane) -> usize {
        self.lanes[lane.index()].staged.len()
    }
}
