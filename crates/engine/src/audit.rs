//! Checks the promises of an engine against its events and commands.
//!
//! An [`Audit`] is notified of every event and command. The audit models a disk with the last writer of each sector. It
//! finds requests that are lost, finished twice, overtaken by a conflicting request, or that pass a flush. The audit also
//! finds a merged command whose parts do not tile it.
//!
//! If there are lanes, the audit checks gates, too. The audit then finds a command that the gate did not let through or is not
//! notified of. The audit finds a command with parts of several lanes, and a request that waits for a request of a lower
//! rank which did not inherit the rank ([`Audit::at_rest`]). A request waits for overlapping requests, and for requests
//! before an earlier flush.
//!
//! The audit stores every sector ever written, so it is for tests and fuzzing.

mod lanes;

use crate::slots::Stage;
use crate::{Arrival, Command, DriveTag, Engine, Event, Finished, Join, Lane, Outcome, RequestId};
use headtime_sched::{Class, Flags, Op, Origin, Request, Scheduler};
use headtime_units::Extent;
use std::collections::{BTreeMap, BTreeSet};

/// A broken promise, as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

/// Last writer of a sector; `None` if there was none, or if the write failed and the contents are unknown.
type LastWriter = Option<RequestId>;

#[derive(Clone, Debug)]
struct Pending {
    sequence: u64,
    op: Op,
    extent: Extent,
    /// True for a flush, or for a write with a preceding flush, until the flush is complete.
    flush_due: bool,
    /// Expected result of a read: each sector with a known last writer in order of arrival.
    expects: Vec<(u64, RequestId)>,
}

impl Pending {
    /// Returns true if this request waits until the other is finished, since the two conflict.
    fn waits_for(&self, earlier: &Pending) -> bool {
        earlier.sequence < self.sequence
            && (earlier.op.changes() || self.op.changes())
            && earlier.extent.overlaps(self.extent)
    }
}

/// Checker of an engine's promises; see the module's page.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    arrived: u64,
    pending: BTreeMap<RequestId, Pending>,
    /// Sequence numbers of pending requests, and of requests with a flush due.
    sequences: BTreeSet<u64>,
    flushes: BTreeSet<u64>,
    in_drive: BTreeMap<DriveTag, (Request<DriveTag>, Vec<RequestId>)>,
    issued: u64,
    /// The last writer of each sector in order of arrival, and on the disk.
    wanted: BTreeMap<u64, RequestId>,
    disk: BTreeMap<u64, LastWriter>,
    failed: BTreeSet<RequestId>,
    /// Calls and answers of the gate; `None` for the default gate.
    gate: Option<lanes::SharedNotes>,
    /// The lane that was drained, if there has been no event since.
    drained: Option<Lane>,
}

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(Violation(format!($($message)+)));
        }
    };
}

fn sectors(extent: Extent) -> core::ops::Range<u64> {
    extent.start.get()..extent.end().get()
}

impl Audit {
    /// Creates an audit of a new engine.
    pub fn new() -> Audit {
        Audit::default()
    }

    /// Watches the calls of the engine's gate from now on. Call this again when the gate is swapped.
    pub fn watch<S: Scheduler>(&mut self, engine: &mut Engine<S>) {
        (self.gate, self.drained) = (None, None);
        let account = lanes::SharedNotes::default();
        account.lock().in_drive = self.in_drive.keys().copied().collect();
        engine.wrap_gate(|gate| {
            self.gate = Some(account.clone());
            Box::new(lanes::Watched { gate, account })
        });
    }

    /// Returns the number of unfinished requests.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }

    /// Takes an event, before or after the engine does.
    ///
    /// # Errors
    ///
    /// If the event is invalid, or shows that a read was served out of order.
    pub fn event(&mut self, event: &Event) -> Result<(), Violation> {
        if let Some(account) = &self.gate {
            account.lock().refused = None;
        }
        self.drained = None;
        match event {
            Event::Drained { from, to } => {
                self.drained = Some(*from).filter(|from| from != to);
                Ok(())
            }
            Event::Woke
            | Event::Unplugged
            | Event::Foretold(_)
            | Event::Ordered(_)
            | Event::Offering(_)
            | Event::Offered(_)
            | Event::Directed(_)
            | Event::Behind { .. } => Ok(()),
            Event::Arrived(new) | Event::Joined { arrival: new, .. } => {
                if let Event::Joined { join, .. } = event
                    && *join != Join::Queued
                {
                    self.joins(new)?;
                }
                ensure!(
                    !self.pending.contains_key(&new.id),
                    "{} arrives twice",
                    new.id
                );
                let sequence = self.arrived;
                self.arrived += 1;
                self.sequences.insert(sequence);
                let flush_due = new.op == Op::Flush || new.flags.has(Flags::PREFLUSH);
                if flush_due {
                    self.flushes.insert(sequence);
                }
                let mut expects = Vec::new();
                if new.op.changes() {
                    for sector in sectors(new.extent) {
                        self.wanted.insert(sector, new.id);
                    }
                } else {
                    let written = self.wanted.range(sectors(new.extent));
                    expects.extend(written.map(|(sector, writer)| (*sector, *writer)));
                }
                let (op, extent) = (new.op, new.extent);
                let pending = Pending {
                    sequence,
                    op,
                    extent,
                    flush_due,
                    expects,
                };
                self.pending.insert(new.id, pending);
                Ok(())
            }
            Event::Completed { tag, outcome } => {
                let Some((request, parts)) = self.in_drive.remove(tag) else {
                    return Err(Violation(format!(
                        "{tag:?} completes and is not in the drive"
                    )));
                };
                self.completed(&request, &parts, *outcome)
            }
        }
    }

    /// Checks a joining request. It goes before earlier requests, so no flush may wait, and no conflicting request may
    /// be pending.
    fn joins(&self, new: &Arrival) -> Result<(), Violation> {
        ensure!(
            self.flushes.is_empty() && matches!(new.op, Op::Read | Op::Write),
            "{new:?} joins while a flush waits"
        );
        let conflict = self.pending.iter().find(|(_, pending)| {
            let changes = new.op.changes() || pending.op.changes();
            changes && pending.extent.overlaps(new.extent)
        });
        if let Some((id, pending)) = conflict {
            let what = format!("{new:?} joins before {id}: {:?}", pending.extent);
            return Err(Violation(what));
        }
        Ok(())
    }

    fn completed(
        &mut self,
        request: &Request<DriveTag>,
        parts: &[RequestId],
        outcome: Outcome,
    ) -> Result<(), Violation> {
        if request.op == Op::Flush {
            for id in parts {
                if let Some(pending) = self.pending.get_mut(id) {
                    pending.flush_due = false;
                    self.flushes.remove(&pending.sequence);
                }
            }
            return Ok(());
        }
        if request.op.changes() {
            // A failed write may have changed some of its sectors.
            self.write(parts, outcome == Outcome::Done);
            return Ok(());
        }
        if outcome != Outcome::Done {
            return Ok(());
        }
        for id in parts {
            for (sector, expected) in &self.pending[id].expects {
                if self.failed.contains(expected) {
                    continue;
                }
                let found = self.disk.get(sector).copied().flatten();
                ensure!(
                    found == Some(*expected),
                    "{id} reads sector {sector} and finds what {found:?} wrote, not {expected}"
                );
            }
        }
        Ok(())
    }

    fn write(&mut self, parts: &[RequestId], good: bool) {
        for id in parts {
            for sector in sectors(self.pending[id].extent) {
                self.disk.insert(sector, good.then_some(*id));
            }
        }
    }

    /// Takes a command that `engine` has just returned.
    ///
    /// # Errors
    ///
    /// If the command breaks a promise.
    pub fn command<S: Scheduler>(
        &mut self,
        engine: &Engine<S>,
        command: &Command,
    ) -> Result<(), Violation> {
        match command {
            Command::Issue(request) => {
                self.issued(request, engine.parts(request.tag).collect())?;
                ensure!(
                    self.in_drive.len() == engine.in_flight() as usize
                        && engine.in_flight() <= engine.config().depth,
                    "{} commands in the drive, the engine counts {}, allowed are {}",
                    self.in_drive.len(),
                    engine.in_flight(),
                    engine.config().depth
                );
                self.by_the_gate(engine, request)?;
                self.inherits(engine)
            }
            Command::Finish(done) => self.finished(RequestId::Client(done.id), done),
            Command::Background(done) => self.finished(RequestId::Background(done.id), done),
        }
    }

    /// Checks that the gate let a command through and was notified, and that all parts are of one lane.
    fn by_the_gate<S: Scheduler>(
        &self,
        engine: &Engine<S>,
        request: &Request<DriveTag>,
    ) -> Result<(), Violation> {
        let Some(account) = &self.gate else {
            return Ok(());
        };
        let (account, tag) = (account.lock(), request.tag);
        let mut of_parts = engine.lanes_of(tag);
        let own = of_parts.next();
        ensure!(
            of_parts.all(|lane| Some(lane) == own),
            "the parts of {request:?} are of several lanes"
        );
        let told = account.last.filter(|told| told.tag == tag);
        let (Some(told), Some(own)) = (told, own) else {
            return Err(Violation(format!("the gate is not told of {request:?}")));
        };
        ensure!(
            request.op == Op::Flush || told.let_through,
            "the gate did not let {request:?} through"
        );
        // Requests that a flush waits for go by the flush's rank.
        let lent = !self.flushes.is_empty() && engine.outranks(told.lane, own);
        ensure!(
            told.lane == own || lent,
            "{request:?} of {own:?} goes as one of {:?}",
            told.lane
        );
        ensure!(
            account.in_drive.iter().eq(self.in_drive.keys()),
            "the gate knows of {:?} in the drive, where {:?} are",
            account.in_drive,
            self.in_drive.keys()
        );
        Ok(())
    }

    /// Checks that requests inherit the rank of conflicting requests that wait for them.
    fn inherits<S: Scheduler>(&self, engine: &Engine<S>) -> Result<(), Violation> {
        if self.gate.is_none() {
            return Ok(());
        }
        let flush = self.flushes.first().copied().unwrap_or(u64::MAX);
        let slots = engine.slots();
        let live = slots.live().filter_map(|slot| {
            let pending = &self.pending[&slot.id];
            let whole = &slots[slots.whole(slot.own.tag)];
            let waits = whole.stage != Stage::InFlight && pending.sequence < flush;
            waits.then_some((slot, whole.lane, pending))
        });
        let live: Vec<_> = live.collect();
        for (slot, lane, later) in &live {
            if slot.stage != Stage::Held {
                continue;
            }
            for (other, rank, earlier) in &live {
                ensure!(
                    !later.waits_for(earlier) || !engine.outranks(*lane, *rank),
                    "{} of {lane:?} waits for {}, which is still of {rank:?}",
                    slot.id,
                    other.id
                );
            }
        }
        Ok(())
    }

    /// Checks that a drained lane is empty, except for requests that conflicting requests of the lane wait for.
    fn is_drained<S: Scheduler>(&self, engine: &Engine<S>) -> Result<(), Violation> {
        let Some(lane) = self.drained else {
            return Ok(());
        };
        let flush = self.flushes.first().copied().unwrap_or(u64::MAX);
        let slots = engine.slots();
        let in_lane = || slots.live().filter(|slot| slot.lane == lane);
        let waiting = in_lane().filter(|slot| slot.stage == Stage::Held);
        let waiting = waiting.map(|slot| &self.pending[&slot.id]);
        let waiting: Vec<_> = waiting.filter(|held| held.sequence < flush).collect();
        for left in in_lane().filter(|slot| matches!(slot.stage, Stage::Queued | Stage::Staged)) {
            let mut parts = slots.chain(left.own.tag);
            let is_waited_for = parts.any(|part| {
                let part = &self.pending[&part.id];
                waiting.iter().any(|later| later.waits_for(part))
            });
            ensure!(
                is_waited_for,
                "{} is left in {lane:?}, which was drained",
                left.id
            );
        }
        Ok(())
    }

    /// Checks two promises when there are no more commands. A lane that was just drained is empty. Requests that a
    /// flush waits for had the rank of the requests after the flush when the gate refused them. Some requests after the
    /// flush may wait `outside` the engine, for a flush of a volume.
    ///
    /// # Errors
    ///
    /// If the lane is not empty, or if the rank was not inherited.
    pub fn at_rest<S: Scheduler>(
        &self,
        engine: &Engine<S>,
        outside: impl IntoIterator<Item = (Origin, Class)>,
    ) -> Result<(), Violation> {
        self.is_drained(engine)?;
        let account = self.gate.as_ref().map(|account| account.lock());
        let refused = account
            .as_ref()
            .and_then(|account| account.refused.as_ref());
        let (Some(seen), Some(flush)) = (refused, self.flushes.first()) else {
            return Ok(());
        };
        let after = |id| self.pending[id].sequence >= *flush;
        let inside = engine.slots().live().filter(|slot| after(&slot.id));
        let outside = outside.into_iter();
        let outside = outside.map(|(origin, class)| engine.lane_of(origin, class));
        let waiting: BTreeSet<Lane> = inside.map(|slot| slot.lane).chain(outside).collect();
        // The check accepts any ready lane of no lower rank that the gate saw among the waiting lanes.
        let shown = |of: Lane| {
            let mut all = waiting.iter();
            all.any(|lane| seen[lane.index()].ready && !engine.outranks(of, *lane))
        };
        for (lane, state) in (0..=u8::MAX).map(Lane).zip(seen) {
            let refused = state.ready && state.queued + state.staged > 0;
            let mut higher = waiting.iter().filter(|of| engine.outranks(**of, lane));
            if let Some(of) = higher.find(|of| refused && !shown(**of)) {
                return Err(Violation(format!(
                    "one of {of:?} waits for a flush, and the gate refuses what that waits for as of {lane:?}"
                )));
            }
        }
        Ok(())
    }

    fn finished(&mut self, id: RequestId, done: &Finished) -> Result<(), Violation> {
        let Some(pending) = self.pending.remove(&id) else {
            return Err(Violation(format!("{id} finishes and is not pending")));
        };
        ensure!(
            done.request.extent == pending.extent && done.request.op == pending.op,
            "{id} finishes as something else: {:?}",
            done.request
        );
        if done.outcome != Outcome::Done {
            self.failed.insert(id);
        } else {
            ensure!(!pending.flush_due, "{id} finishes without its flush");
        }
        self.flushes.remove(&pending.sequence);
        self.sequences.remove(&pending.sequence);
        Ok(())
    }

    fn issued(
        &mut self,
        request: &Request<DriveTag>,
        parts: Vec<(RequestId, Extent)>,
    ) -> Result<(), Violation> {
        let lowest = (0..).find(|tag| !self.in_drive.contains_key(&DriveTag(*tag)));
        ensure!(
            lowest == Some(request.tag.0),
            "{request:?} has not the lowest free tag, which is {lowest:?}"
        );
        ensure!(!parts.is_empty(), "{request:?} serves nobody");
        let mut ids: Vec<RequestId> = parts.iter().map(|(id, _)| *id).collect();
        for id in &ids {
            ensure!(
                self.pending.contains_key(id),
                "{id} is issued and not pending"
            );
        }
        ids.sort_by_key(|id| self.pending[id].extent.start);
        let mut next = request.extent.start;
        for id in &ids {
            let pending = &self.pending[id];
            if request.op == Op::Flush {
                ensure!(pending.flush_due, "{id} has no flush due");
                ensure!(
                    self.sequences.first() == Some(&pending.sequence),
                    "the flush {id} passes what came before"
                );
                ensure!(
                    self.in_drive.is_empty(),
                    "the flush {id} is not alone in the drive"
                );
                continue;
            }
            ensure!(
                request.op == pending.op,
                "{id} is issued as {:?}",
                request.op
            );
            ensure!(
                pending.extent.start == next,
                "the parts of {request:?} do not tile it"
            );
            next = pending.extent.end();
            if let Some(flush) = self.flushes.first() {
                ensure!(*flush > pending.sequence, "{id} passes a flush");
            }
        }
        ensure!(
            next == request.extent.end(),
            "the parts of {request:?} do not tile it"
        );
        for (other, _) in self.in_drive.values() {
            ensure!(
                other.op != Op::Flush,
                "{request:?} is in the drive with a flush"
            );
            ensure!(
                !(other.op.changes() || request.op.changes())
                    || !other.extent.overlaps(request.extent),
                "{request:?} and {other:?} overlap in the drive"
            );
        }
        // A write takes effect between issue and completion. Every second write takes effect at issue.
        self.issued += 1;
        if request.op.changes() && self.issued.is_multiple_of(2) {
            self.write(&ids, true);
        }
        self.in_drive.insert(request.tag, (*request, ids));
        Ok(())
    }
}
