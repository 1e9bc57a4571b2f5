//! The state machine between those who ask and the drive.

#[cfg(test)]
mod tests;

use crate::config::{Config, ConfigError};
use crate::merge::{End, Likeness, Touching, alike};
use crate::names::{DriveTag, DriveTags, RequestId};
use crate::order::Order;
use crate::slots::{Slot, Slots, Stage};
use headtime_sched::{
    Backlog, Class, Dispatch, Flags, Foretold, Op, Origin, Partners, Request, Scheduler, Tag,
};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::VecDeque;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As asked.
    Done,
    /// The medium could not be read or written.
    MediumError,
    /// The drive did not answer in time.
    TimedOut,
    /// The drive, or the path to it, failed.
    DeviceError,
}

/// A request as it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who asked, and their name for it, returned in [`Finished`]. Unique among the unfinished.
    pub id: RequestId,
    /// What to do.
    pub op: Op,
    /// To which sectors; empty for a flush, and only for it.
    pub extent: Extent,
    /// Further properties.
    pub flags: Flags,
    /// Who asks.
    pub origin: Origin,
    /// Its rank.
    pub class: Class,
}

/// What happens to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody asks for something.
    Arrived(Arrival),
    /// The drive is done with a command.
    Completed {
        /// Which, as named in [`Command::Issue`].
        tag: DriveTag,
        /// How it ended.
        outcome: Outcome,
    },
    /// The time that [`Engine::next_wakeup`] named has come. Harmless at any other time.
    Woke,
    /// Whoever asked for what is held back goes to sleep on it. Harmless when nothing is.
    Unplugged,
    /// A request is certain to come. Only a simulation knows.
    Foretold(Foretold),
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of its [`RequestId`].
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The request as it arrived; it has no tag any more.
    pub request: Request<()>,
    /// When the command that carried it went to the drive, the last time if it was retried.
    pub issued: Time,
}

/// What the engine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hand this to the drive; answer with [`Event::Completed`].
    Issue(Request<DriveTag>),
    /// Tell the client who asked.
    Finish(Finished),
    /// Tell the job in the background that asked.
    Background(Finished),
}

/// What the engine did so far, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that came.
    pub arrived: u64,
    /// Requests that finished.
    pub finished: u64,
    /// Commands given to the drive.
    pub issued: u64,
    /// Requests appended to a queued one.
    pub merged_back: u64,
    /// Requests put in front of a queued one.
    pub merged_front: u64,
    /// Queued requests that grew together.
    pub fused: u64,
    /// Requests that waited for one they overlap.
    pub held_overlap: u64,
    /// Requests that waited for a flush.
    pub held_flush: u64,
    /// Times that the scheduler chose to wait.
    pub idled: u64,
    /// Times that the scheduler gave a request while it had several.
    pub chosen: u64,
    /// Times that it gave one that had come before another that it gave earlier.
    pub overtaken: u64,
    /// Merged requests that failed and were tried again part by part.
    pub split: u64,
    /// The most requests with the scheduler at once.
    pub queued_max: u64,
}

/// Merges, orders, dispatches; see the crate's page for the loop that drives it.
///
/// # Order
///
/// A request that shares a sector with an earlier one, where either changes it, starts when the
/// earlier is complete. A flush starts when everything before it is complete, and everything after
/// it starts when the flush is complete; on SATA the link drains around a flush in any case. A
/// write with [`Flags::PREFLUSH`] is a flush followed by the write. While a flush waits, the scheduler
/// is asked by [`Scheduler::dispatch_forced`].
///
/// # Errors of the drive
///
/// If a merged command fails, its parts are issued again alone, so that the error reaches only the
/// request it belongs to.
#[derive(Debug)]
pub struct Engine<S = Box<dyn Scheduler>> {
    config: Config,
    scheduler: S,
    /// How many requests it has, as it says itself.
    queued: usize,
    slots: Slots,
    order: Order,
    touching: Touching,
    /// A flush and what came after it, in order of arrival.
    behind_flush: VecDeque<Tag>,
    /// Live requests that are not behind a flush.
    live: usize,
    in_flight: u32,
    tags: DriveTags,
    committed: Option<Tag>,
    outbox: VecDeque<Command>,
    /// The scheduler need not be asked before this, unless something happens.
    idle_until: Option<Time>,
    /// Nothing is handed out before, so that requests can collect.
    plugged_until: Option<Time>,
    /// Whether anything happened since the scheduler was last asked.
    ask: bool,
    now: Time,
    /// The latest arrival of a request that the scheduler gave.
    youngest: Time,
    stats: Stats,
}

impl<S: Scheduler> Engine<S> {
    /// An engine with nothing to do.
    ///
    /// # Errors
    ///
    /// If the configuration is out of range.
    pub fn new(config: Config, scheduler: S) -> Result<Engine<S>, ConfigError> {
        if !(1..=DriveTag::DEPTH_MAX).contains(&config.depth) {
            return Err(ConfigError::Depth(config.depth));
        }
        if config.merge && config.merge_sectors_max == Sectors::ZERO {
            return Err(ConfigError::MergeSectorsMax);
        }
        Ok(Engine {
            config,
            scheduler,
            queued: 0,
            slots: Slots::default(),
            order: Order::default(),
            touching: Touching::default(),
            behind_flush: VecDeque::new(),
            live: 0,
            in_flight: 0,
            tags: DriveTags::default(),
            committed: None,
            outbox: VecDeque::new(),
            idle_until: None,
            plugged_until: None,
            ask: false,
            now: Time::ZERO,
            youngest: Time::ZERO,
            stats: Stats::default(),
        })
    }

    /// Takes note of an event. Afterwards [`Engine::poll`] is to be called with the same `now` until
    /// it returns `None`.
    ///
    /// # Panics
    ///
    /// If time goes backwards, if a tag completes that is not in the drive, or if a request without
    /// sectors is not a flush (or the reverse).
    pub fn handle(&mut self, now: Time, event: Event) {
        assert!(
            now >= self.now,
            "time went backwards: from {} to {now}",
            self.now
        );
        self.now = now;
        match event {
            Event::Arrived(arrival) => self.arrived(now, arrival),
            Event::Completed { tag, outcome } => self.completed(now, tag, outcome),
            Event::Woke => {
                self.ask |= self.idle_until.is_some_and(|until| now >= until);
                if self.plugged_until.is_some_and(|until| now >= until) {
                    self.plugged_until = None;
                }
            }
            Event::Unplugged => self.plugged_until = None,
            Event::Foretold(mut request) => {
                request.origin = self.config.seen(request.origin);
                self.scheduler.foretold(now, &request);
                self.ask = true;
            }
        }
    }

    /// The next command, or `None` when there is nothing to do at `now`.
    pub fn poll(&mut self, now: Time) -> Option<Command> {
        if let Some(command) = self.outbox.pop_front() {
            return Some(command);
        }
        let room = self.in_flight < self.config.depth;
        if room && let Some(tag) = self.committed.take() {
            self.ask = true;
            return Some(self.issue(now, tag));
        }
        let may_take = room || (self.config.commit_ahead && self.committed.is_none());
        if !self.ask || !may_take || self.plugged_until.is_some() {
            return None;
        }
        let several = self.queued > 1;
        let next = match self.behind_flush.is_empty() {
            true => self.scheduler.dispatch(now),
            false => self.scheduler.dispatch_forced(now),
        };
        match next {
            Dispatch::Request(request) => {
                self.queued -= 1;
                self.idle_until = None;
                self.stats.chosen += u64::from(several);
                self.stats.overtaken += u64::from(request.arrival < self.youngest);
                self.youngest = self.youngest.max(request.arrival);
                let tag = request.tag;
                let slot = &mut self.slots[tag];
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
                slot.stage = Stage::Committed;
                if self.config.merge && !slot.alone {
                    self.touching.remove(tag, request.extent);
                }
                if room {
                    return Some(self.issue(now, tag));
                }
                self.committed = Some(tag);
            }
            Dispatch::IdleUntil(until) => {
                assert!(until > now, "a scheduler may not wait for the past");
                self.stats.idled += u64::from(self.idle_until.is_none());
                self.idle_until = Some(until);
                self.ask = false;
            }
            Dispatch::Empty => {
                debug_assert_eq!(self.queued, 0);
                self.idle_until = None;
                self.ask = false;
            }
        }
        None
    }

    /// When to come back with [`Event::Woke`] if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        match (self.idle_until, self.plugged_until) {
            (Some(idle), Some(plugged)) => Some(idle.min(plugged)),
            (one, other) => one.or(other),
        }
    }

    /// Requests in the drive.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests that are not in the drive: with the scheduler, committed, or held back.
    pub fn waiting(&self) -> usize {
        debug_assert_eq!(self.queued, self.scheduler.queued());
        self.queued
            + usize::from(self.committed.is_some())
            + self.order.held()
            + self.behind_flush.len()
    }

    /// Why requests are [waiting](Engine::waiting), once [`Engine::poll`] has returned `None`.
    pub fn backlog(&self) -> Backlog {
        let room = self.in_flight < self.config.depth;
        let queued = self.queued > 0 || self.committed.is_some();
        match (queued, self.idle_until.is_some() && room) {
            (true, true) => Backlog::Chosen,
            (true, false) if self.plugged_until.is_none() => Backlog::Busy,
            _ if self.waiting() > 0 => Backlog::Held,
            _ => Backlog::Nothing,
        }
    }

    /// Whether nothing is queued, held or in flight.
    pub fn is_idle(&self) -> bool {
        self.live == 0 && self.behind_flush.is_empty() && self.outbox.is_empty()
    }

    /// What was done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Swaps the scheduler in flight: what is queued moves to the new one in order of arrival.
    ///
    /// Returns the old one, empty. [`Engine::poll`] is to be called afterwards.
    pub fn replace_scheduler(&mut self, now: Time, scheduler: S) -> S {
        assert!(scheduler.queued() == 0, "the new scheduler must be empty");
        let mut old = core::mem::replace(&mut self.scheduler, scheduler);
        for request in old.drain() {
            self.scheduler.insert(now, request);
        }
        let (slots, scheduler) = (&self.slots, &self.scheduler);
        self.touching
            .rekey(|tag| scheduler.merge_key(&slots[tag].merged));
        self.idle_until = None;
        self.plugged_until = None;
        self.ask = true;
        old
    }

    /// The requests that a command carries, as id and extent, the first one first: merging appends,
    /// so they are in order of merging and not of address. Each is as it arrived.
    ///
    /// Valid from [`Command::Issue`] until [`Event::Completed`] for its tag; empty otherwise.
    pub fn parts(&self, tag: DriveTag) -> impl Iterator<Item = (RequestId, Extent)> {
        core::iter::successors(self.tags.holder(tag), |tag| self.slots[*tag].next)
            .map(|tag| (self.slots[tag].id, self.slots[tag].own.extent))
    }

    /// The requests that are not finished, as they arrived, in no particular order.
    pub fn unfinished(&self) -> impl Iterator<Item = (RequestId, Request<()>)> {
        self.slots.live().map(|slot| (slot.id, slot.own.tagged(())))
    }

    fn arrived(&mut self, now: Time, arrival: Arrival) {
        let Arrival { op, extent, .. } = arrival;
        assert!(
            extent.is_empty() == (op == Op::Flush),
            "a request has sectors unless it is a flush: {op:?} {extent}"
        );
        self.stats.arrived += 1;
        let request = Request {
            tag: Tag::default(),
            op,
            extent,
            flags: arrival.flags,
            origin: arrival.origin,
            class: arrival.class,
            arrival: now,
        };
        let tag = self.slots.add(arrival.id, request);
        self.slots[tag].merged.origin = self.config.seen(arrival.origin);
        let barrier = op == Op::Flush || arrival.flags.has(Flags::PREFLUSH);
        if barrier || !self.behind_flush.is_empty() {
            self.stats.held_flush += 1;
            self.behind_flush.push_back(tag);
            // A scheduler that waits has nobody to wait for any more.
            self.ask |= barrier;
            self.advance_flush(now);
        } else {
            self.admit(now, tag);
        }
    }

    /// Lets in what is not behind a flush; starts the flush once all before it is complete.
    fn advance_flush(&mut self, now: Time) {
        while let Some(&tag) = self.behind_flush.front() {
            let own = self.slots[tag].own;
            let flushes = own.op == Op::Flush
                || (own.flags.has(Flags::PREFLUSH) && self.slots[tag].preflush.is_none());
            if flushes && self.live > 0 {
                return;
            }
            if flushes {
                if self.slots[tag].stage == Stage::Held {
                    let slot = &mut self.slots[tag];
                    slot.stage = Stage::Committed;
                    slot.merged.op = Op::Flush;
                    slot.merged.extent.len = Sectors::ZERO;
                    let command = self.issue(now, tag);
                    self.outbox.push_back(command);
                }
                return;
            }
            self.behind_flush.pop_front();
            self.admit(now, tag);
        }
    }

    /// Lets a request in, unless it must wait for one it overlaps.
    fn admit(&mut self, now: Time, tag: Tag) {
        self.live += 1;
        if self.order.admit(&self.slots[tag].own) {
            self.enqueue(now, tag);
        } else {
            self.stats.held_overlap += 1;
        }
    }

    /// Gives a request to the scheduler, merged with a queued one if it touches one.
    fn enqueue(&mut self, now: Time, tag: Tag) {
        self.ask = true;
        if self.config.merge && !self.slots[tag].alone && self.try_merge(tag) {
            return;
        }
        let slot = &mut self.slots[tag];
        slot.stage = Stage::Queued;
        let request = slot.merged;
        if self.config.merge && !slot.alone {
            let scheduler = &self.scheduler;
            self.touching
                .insert(&request, || scheduler.merge_key(&request));
        }
        let empty = self.queued == 0 && self.committed.is_none();
        self.scheduler.insert(now, request);
        self.queued += 1;
        let queued = self.queued as u64;
        self.stats.queued_max = self.stats.queued_max.max(queued);
        if let Some(plug) = self.config.plug {
            if empty {
                self.plugged_until = Some(now.saturating_add(plug.timeout));
            }
            if queued >= u64::from(plug.requests) || request.flags.has(Flags::SYNC) {
                self.plugged_until = None;
            }
        }
    }

    fn try_merge(&mut self, tag: Tag) -> bool {
        let new = self.slots[tag].merged;
        if !matches!(new.op, Op::Read | Op::Write) {
            return false;
        }
        let may = |queued: Tag| {
            let queued_as = &self.slots[queued].merged;
            alike(queued_as, &new, self.config.merge_sectors_max)
                && self.scheduler.may_merge(queued, &new)
        };
        let back = self.partner(End::Back, new.extent.start, &new, may);
        let front = match back {
            Some(_) => None,
            None => self.partner(End::Front, new.extent.end(), &new, may),
        };
        let Some(kept) = back.or(front) else {
            return false;
        };
        self.slots[tag].stage = Stage::Part;
        self.append_parts(kept, tag);
        let mut extent = self.slots[kept].merged.extent;
        self.touching.remove(kept, extent);
        extent.len += new.extent.len;
        if back.is_some() {
            self.stats.merged_back += 1;
        } else {
            self.stats.merged_front += 1;
            extent.start = new.extent.start;
        }
        let merged = &mut self.slots[kept].merged;
        merged.extent = extent;
        // One that was held back may be older than what it joins.
        merged.arrival = merged.arrival.min(new.arrival);
        let fused = self.try_fuse(kept, back.is_some());
        let grown = self.slots[kept].merged;
        let scheduler = &self.scheduler;
        self.touching.insert(&grown, || scheduler.merge_key(&grown));
        if let Some(gone) = fused {
            self.queued -= 1;
            self.scheduler.fused(kept, gone);
        }
        self.scheduler.merged(&grown);
        true
    }

    /// Takes the queued neighbour that `kept` has grown up to into it. `kept` is not in the index.
    fn try_fuse(&mut self, kept: Tag, at_end: bool) -> Option<Tag> {
        let grown = self.slots[kept].merged;
        let may = |queued: Tag| {
            let queued_as = &self.slots[queued].merged;
            alike(&grown, queued_as, self.config.merge_sectors_max)
                && self.scheduler.may_merge(kept, queued_as)
        };
        let gone = if at_end {
            self.partner(End::Front, grown.extent.end(), &grown, may)
        } else {
            self.partner(End::Back, grown.extent.start, &grown, may)
        }?;
        let other = self.slots[gone].merged;
        self.touching.remove(gone, other.extent);
        self.slots[gone].stage = Stage::Part;
        self.append_parts(kept, gone);
        let kept = &mut self.slots[kept].merged;
        kept.extent.len += other.extent.len;
        kept.extent.start = kept.extent.start.min(other.extent.start);
        kept.arrival = kept.arrival.min(other.arrival);
        self.stats.fused += 1;
        Some(gone)
    }

    /// The first of the queued requests with this end at `lba` that `may` become one with `request`.
    fn partner(
        &self,
        end: End,
        lba: Lba,
        request: &Request,
        may: impl Fn(Tag) -> bool,
    ) -> Option<Tag> {
        let ends = self.touching.ends(end);
        let first = ends.first(lba)?;
        if may(first) {
            return Some(first);
        }
        if !ends.has_more(lba, first) {
            return None;
        }
        match self.scheduler.partners(request, end == End::Front) {
            Partners::Only(few) => few
                .into_iter()
                .flatten()
                .filter_map(|tag| Some((ends.turn(lba, tag)?, tag)))
                .filter(|(_, tag)| may(*tag))
                .min()
                .map(|(_, tag)| tag),
            Partners::Any => {
                let room = self.config.merge_sectors_max;
                let room = Sectors::new(room.get().checked_sub(request.extent.len.get())?);
                let like = Likeness::of(request, self.scheduler.merge_key(request));
                let mut from = 0;
                loop {
                    let (turn, tag) = ends.next_alike(lba, like, room, from)?;
                    if may(tag) {
                        return Some(tag);
                    }
                    from = turn + 1;
                }
            }
        }
    }

    fn append_parts(&mut self, kept: Tag, gone: Tag) {
        let tail = self.slots[kept].last;
        self.slots[tail].next = Some(gone);
        self.slots[kept].last = self.slots[gone].last;
    }

    fn issue(&mut self, now: Time, tag: Tag) -> Command {
        let slot = &mut self.slots[tag];
        slot.stage = Stage::InFlight;
        slot.issued = now;
        let request = slot.merged;
        self.in_flight += 1;
        self.stats.issued += 1;
        if request.op != Op::Flush {
            self.scheduler.dispatched(now, &request);
        }
        let drive_tag = self.tags.take(tag).expect("the depth is in range");
        Command::Issue(request.tagged(drive_tag))
    }

    fn completed(&mut self, now: Time, tag: DriveTag, outcome: Outcome) {
        let Some(tag) = self.tags.give_back(tag) else {
            panic!("tag {} completed and is not in the drive", tag.0)
        };
        let slot = &self.slots[tag];
        let (merged, issued) = (slot.merged, slot.issued);
        self.in_flight -= 1;
        self.ask = true;
        self.plugged_until = None;
        if merged.op == Op::Flush {
            self.flushed(now, tag, outcome);
            return;
        }
        self.scheduler.completed(now, &merged);
        let split = outcome != Outcome::Done && self.slots[tag].next.is_some();
        self.stats.split += u64::from(split);
        let mut part = Some(tag);
        while let Some(tag) = part {
            part = self.slots[tag].next.take();
            if split {
                let slot = &mut self.slots[tag];
                slot.unmerge();
                slot.last = tag;
                slot.alone = true;
                self.enqueue(now, tag);
            } else {
                self.finish(now, tag, outcome, issued);
            }
        }
    }

    fn flushed(&mut self, now: Time, tag: Tag, outcome: Outcome) {
        let slot = &mut self.slots[tag];
        if slot.own.op == Op::Flush || outcome != Outcome::Done {
            // A write whose flush failed must not be taken for durable: it fails with its flush.
            let (slot, issued) = (*slot, slot.issued);
            self.behind_flush.pop_front();
            self.slots.remove(tag);
            self.report(&slot, outcome, issued);
        } else {
            slot.unmerge();
            slot.stage = Stage::Held;
            slot.preflush = Some(outcome);
        }
        self.advance_flush(now);
    }

    fn finish(&mut self, now: Time, tag: Tag, outcome: Outcome, issued: Time) {
        let slot = self.slots[tag];
        self.order.finish(tag);
        self.slots.remove(tag);
        self.live -= 1;
        self.report(&slot, outcome, issued);
        while let Some(freed) = self.order.next_freed() {
            self.enqueue(now, freed);
        }
        if self.live == 0 {
            self.advance_flush(now);
        }
    }

    fn report(&mut self, slot: &Slot, outcome: Outcome, issued: Time) {
        self.stats.finished += 1;
        let finished = |id| Finished {
            id,
            outcome,
            request: slot.own.tagged(()),
            issued,
        };
        self.outbox.push_back(match slot.id {
            RequestId::Client(id) => Command::Finish(finished(id)),
            RequestId::Background(id) => Command::Background(finished(id)),
        });
    }
}
