//! Holding the disk for a request that has not arrived: the part that does not depend on the method of prediction.

use super::dedication::Dedication;
use crate::jiffies::Hz;
use crate::waits::Waits;
use crate::{
    Candidate, Directive, Dispatch, Elevator, Foretold, HeadState, Partners, Request, Scheduler,
    Tag, Track, WaitStats,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use headtime_units::{Lba, Nanos, Time};

/// Time for which the disk is held at a stretch if the end is an event rather than a time.
pub(crate) const HELD_AT_A_STRETCH: Nanos = Nanos::from_secs(1);

/// Prediction of requests to come: decides if the disk should wait, and which new request the disk should have waited
/// for.
///
/// The *tail* is the request handed out last. `pending` returns the address of the request that the elevator would
/// serve behind the tail. It is called only when needed.
pub trait Foresight: Send {
    /// Notes an arrival. Returns true if the disk may be held behind the tail for this request. The request then
    /// replaces any earlier request that the disk was held for.
    fn arrived(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool;

    /// Returns true if [`Foresight::arrived`] would return true for `request`.
    fn awaits(&self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool;

    /// Notes that a request is handed out. This request is the tail from now on. Returns the number of the request's
    /// run. While this number stays the same, the disk serves one stream.
    fn handed_out(&mut self, now: Time, request: &Request) -> u64;

    /// Notes that a request that was handed out is done.
    fn completed(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>);

    /// Returns the time until which the disk should be held behind the tail rather than serve `next`, by the knowledge
    /// at `now`. `None` if the disk should not be held. If `came`, `next` is the request that was awaited. Otherwise
    /// `next` is the elevator's candidate.
    fn hold(&mut self, now: Time, next: &Request, came: bool) -> Option<Time>;

    /// Returns the queued request that goes right behind the tail, past the elevator's order.
    fn follower(&self) -> Option<Tag> {
        None
    }

    /// Notes that a queued request has grown to `grown`.
    fn merged(&mut self, _grown: &Request) {}

    /// Notes that the queued request `gone` became part of the queued request `kept`.
    fn fused(&mut self, kept: Tag, gone: Tag);

    /// Notes that the queued request `tag` has been withdrawn and is served elsewhere.
    fn withdrawn(&mut self, tag: Tag);

    /// Notes a request that is certain to come.
    fn foretold(&mut self, _now: Time, _request: &Foretold) {}

    /// Forgets everything.
    fn reset(&mut self);

    /// Returns the number of streams that the disk has waited for so far, and the number of those that may still go on.
    fn streams(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Location of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nowhere, or in the drive after a time in the elevator.
    Gone,
    /// In the elevator.
    InElevator,
    /// Held back as the next request.
    Held,
    /// In the drive, without a time in the elevator.
    Bypassed,
}

#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    stage: Stage,
    arrival: Time,
    turn: u64,
    /// End of the request.
    end: Lba,
}

/// A scheduler that may wait, built from an elevator and a foresight.
///
/// All such schedulers share four rules. An urgent candidate of the elevator goes at once. A stream is served for at
/// most a slice of time while other requests are pending. An awaited request bypasses the elevator. While a
/// [`Directive`] dedicates the disk, only marked requests go, and the foresight is not used.
///
/// Invariants:
///
/// - `held = Some(request)` ⇔ `members[request.tag].stage = Held`, which one member has at most.
/// - The disk is dedicated at `now` ⇒ `held.is_none()`.
/// - `members[tag].turn < turns` for each queued request.
/// - `run.1 ≤ now`.
#[derive(Clone, Debug)]
pub struct Anticipating<E, F> {
    elevator: E,
    pub(crate) foresight: F,
    slice: Nanos,
    /// Slices end at ticks of a timer, if there is one.
    hz: Option<Hz>,
    /// The head behind the last request handed out.
    head: HeadState,
    /// The head by a tracker, for the elevator's next choice. The foresight uses the requests handed out instead: if
    /// the drive's buffer serves a request, the head stays where it is, but the request's stream continues behind the
    /// request.
    tracked: Option<HeadState>,
    /// The request that was awaited, and goes next.
    held: Option<Request>,
    /// The run that is served, and its start.
    run: (u64, Time),
    /// By tag.
    members: Vec<FrameEntry>,
    turns: u64,
    now: Time,
    waits: Waits,
    /// The held request, if it came during the wait.
    came: Option<Tag>,
    /// Orders of a coordinator of several disks. While the disk is dedicated, no request is held.
    dedication: Dedication,
}

impl<E: Elevator, F: Foresight> Anticipating<E, F> {
    /// Builds a scheduler with the head at sector 0 and no history.
    pub(crate) fn with(
        elevator: E,
        foresight: F,
        slice: Nanos,
        hz: Option<Hz>,
    ) -> Anticipating<E, F> {
        Anticipating {
            elevator,
            foresight,
            slice,
            hz,
            head: HeadState::START,
            tracked: None,
            held: None,
            run: (0, Time::ZERO),
            members: Vec::new(),
            turns: 0,
            now: Time::ZERO,
            waits: Waits::default(),
            came: None,
            dedication: Dedication::default(),
        }
    }

    /// The elevator.
    pub fn elevator(&self) -> &E {
        &self.elevator
    }

    fn elevator_head(&self) -> HeadState {
        self.tracked.unwrap_or(self.head)
    }

    fn stage(&self, tag: Tag) -> Stage {
        match self.members.get(tag.index()) {
            Some(member) => member.stage,
            None => Stage::Gone,
        }
    }

    /// Returns the time at which the served stream must release the disk if another request is pending.
    fn slice_end(&self) -> Time {
        match self.hz {
            Some(hz) => hz.fires(self.run.1, hz.ticks(self.slice)),
            None => self.run.1.saturating_add(self.slice),
        }
    }

    /// Returns true if an awaited request may overtake the elevator's requests.
    fn may_bypass(&self, now: Time) -> bool {
        now < self.slice_end()
    }

    /// Returns true if a new request may become part of a request that waits in the elevator. `continues` is true if
    /// the new request begins at the end of that request.
    ///
    /// A request that the disk waits for would then wait inside another request. But the nearest request is the one
    /// that it continues, unless the tail ends there too.
    fn may_wait_within(&self, new: &Request, continues: bool) -> bool {
        let now = self.now.max(new.arrival);
        let pending = pending(&self.elevator, now, &self.head);
        let awaits = || self.foresight.awaits(now, new, pending);
        let continues = continues && self.head.lba != new.extent.start;
        continues || !(self.may_bypass(now) && awaits())
    }

    /// Inserts the held request into the elevator.
    fn give_back(&mut self, now: Time) {
        if let Some(held) = self.held.take() {
            self.members[held.tag.index()].stage = Stage::InElevator;
            self.came = None;
            self.elevator.insert(now, held);
        }
    }

    fn hand_out(&mut self, now: Time, request: Request, stage: Stage) -> Dispatch {
        self.members[request.tag.index()].stage = stage;
        self.dedication.forget(request.tag);
        self.waits.end(self.came.take() == Some(request.tag));
        self.head = HeadState::behind(&request);
        self.tracked = None;
        let run = self.foresight.handed_out(now, &request);
        if run != self.run.0 {
            self.run = (run, now);
        }
        Dispatch::Request(request)
    }

    /// Hands out the elevator's choice, and inserts the held request into the elevator.
    fn let_go(&mut self, now: Time) -> Dispatch {
        let request = self.elevator.take(now, &self.elevator_head());
        let request = request.expect("it was peeked at");
        self.give_back(now);
        self.hand_out(now, request, Stage::Gone)
    }

    /// Hands out a request that waits in the elevator, even if the elevator would choose another.
    fn take_out(&mut self, now: Time, tag: Tag, candidate: Option<Request>) -> Dispatch {
        if candidate.is_some_and(|candidate| candidate.tag == tag) {
            let request = self.elevator.take(now, &self.elevator_head());
            let request = request.expect("it was peeked at");
            return self.hand_out(now, request, Stage::Gone);
        }
        let request = self.elevator.withdraw(tag);
        self.hand_out(now, request, Stage::Bypassed)
    }

    /// Chooses among marked requests, and waits for them until a time. Section 2.2: a request that has expired goes at
    /// once.
    fn choose_marked(&mut self, now: Time, until: Time, candidate: Option<Candidate>) -> Dispatch {
        let Some(candidate) = candidate else {
            self.waits.end(false);
            return Dispatch::Empty;
        };
        if candidate.urgent {
            return self.let_go(now);
        }
        if let Some(first) = self.dedication.first() {
            return self.take_out(now, first, Some(candidate.request));
        }
        self.waits.hold();
        let expires = self.elevator.expires(now).unwrap_or(Time::NEVER);
        Dispatch::IdleUntil(until.min(expires))
    }

    /// Chooses the next request. Holds the disk only if `may_hold`.
    fn choose(&mut self, now: Time, may_hold: bool) -> Dispatch {
        self.now = now;
        let candidate = self.elevator.peek(now, &self.elevator_head());
        if may_hold && let Some(until) = self.dedication.until(now) {
            return self.choose_marked(now, until, candidate);
        }
        let slice_end = self.slice_end();
        if candidate.is_some_and(|candidate| candidate.urgent || now >= slice_end) {
            return self.let_go(now);
        }
        let candidate = candidate.map(|candidate| candidate.request);
        if let Some(follower) = self.foresight.follower()
            && self.stage(follower) == Stage::InElevator
        {
            return self.take_out(now, follower, candidate);
        }
        let Some(next) = self.held.or(candidate) else {
            self.waits.end(false);
            return Dispatch::Empty;
        };
        if may_hold
            && let Some(until) = self.foresight.hold(now, &next, self.held.is_some())
            && until > now
        {
            let until = match candidate {
                Some(_) => {
                    let expires = self.elevator.expires(now).unwrap_or(Time::NEVER);
                    until.min(slice_end).min(expires)
                }
                None => until,
            };
            self.waits.hold();
            return Dispatch::IdleUntil(until);
        }
        match self.held.take() {
            Some(held) => self.hand_out(now, held, Stage::Bypassed),
            None => self.let_go(now),
        }
    }
}

/// Returns the address of the elevator's choice.
fn pending<E: Elevator>(elevator: &E, now: Time, head: &HeadState) -> impl Fn() -> Option<Lba> {
    move || {
        let candidate = elevator.peek(now, head)?;
        Some(candidate.request.extent.start)
    }
}

impl<E: Elevator, F: Foresight> Scheduler for Anticipating<E, F> {
    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        self.elevator.tracker()
    }

    fn head_is(&mut self, head: &HeadState) {
        self.tracked = Some(*head);
    }

    fn insert(&mut self, now: Time, request: Request) {
        self.now = now;
        let at = request.tag.index();
        if at >= self.members.len() {
            let empty = FrameEntry {
                stage: Stage::Gone,
                arrival: Time::ZERO,
                turn: 0,
                end: Lba::ZERO,
            };
            self.members.resize(at + 1, empty);
        }
        let pending = pending(&self.elevator, now, &self.head);
        let awaited = self.foresight.arrived(now, &request, pending);
        let dedicated = self.dedication.until(now).is_some();
        let held = awaited && !dedicated && self.may_bypass(now);
        self.members[at] = FrameEntry {
            stage: if held { Stage::Held } else { Stage::InElevator },
            arrival: request.arrival,
            turn: self.turns,
            end: request.extent.end(),
        };
        self.turns += 1;
        if held {
            self.give_back(now);
            self.came = self.waits.waiting().then_some(request.tag);
            self.held = Some(request);
        } else {
            self.elevator.insert(now, request);
        }
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.choose(now, true)
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.choose(now, false)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.now = now;
        self.head.completed(now, request);
        match self.stage(request.tag) {
            Stage::Bypassed => self.members[request.tag.index()].stage = Stage::Gone,
            _ => self.elevator.completed(now, request),
        }
        let pending = pending(&self.elevator, now, &self.head);
        self.foresight.completed(now, request, pending);
    }

    fn foretold(&mut self, now: Time, request: &Foretold) {
        self.now = now;
        self.foresight.foretold(now, request);
    }

    fn candidate(&self, now: Time) -> Option<Request> {
        let candidate = self.elevator.peek(now, &self.elevator_head());
        self.held.or(candidate.map(|candidate| candidate.request))
    }

    fn directed(&mut self, now: Time, directive: &Directive<Tag>) {
        self.now = now;
        match *directive {
            Directive::Mark(tag) => {
                if self.waits.waiting() && self.dedication.until(now).is_some() {
                    self.came.get_or_insert(tag);
                }
                self.dedication.mark(tag);
            }
            Directive::Dedicate { until } => {
                self.give_back(now);
                self.dedication.begin(until);
            }
            Directive::Release => self.dedication.end(),
        }
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let new_is_queued = matches!(self.stage(new.tag), Stage::InElevator | Stage::Held);
        match self.stage(queued) {
            // A queued request cannot leave its place, in the elevator or held, for another queued request.
            Stage::Held => !new_is_queued,
            _ if self.stage(new.tag) == Stage::Held => false,
            _ if !self.elevator.may_merge(queued, new) => false,
            _ if new_is_queued => true,
            _ => {
                let continues = self.members[queued.index()].end == new.extent.start;
                self.may_wait_within(new, continues)
            }
        }
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.elevator.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        match self.stage(request.tag) {
            Stage::Held => Partners::NONE,
            Stage::InElevator => self.elevator.partners(request, front),
            Stage::Gone | Stage::Bypassed => {
                let held = self.held.map(|held| held.tag);
                let waiting = match self.may_wait_within(request, !front) {
                    true => self.elevator.partners(request, front),
                    false => Partners::NONE,
                };
                match (waiting, held) {
                    (Partners::Only([one, None]), held) => Partners::Only([one, held]),
                    // The answer `Any` vetoes no merge. `may_merge` decides.
                    (_, Some(_)) => Partners::Any,
                    (waiting, None) => waiting,
                }
            }
        }
    }

    fn merged(&mut self, grown: &Request) {
        let member = &mut self.members[grown.tag.index()];
        member.end = grown.extent.end();
        member.arrival = member.arrival.min(grown.arrival);
        self.foresight.merged(grown);
        match &mut self.held {
            Some(held) if held.tag == grown.tag => *held = *grown,
            _ => self.elevator.merged(grown),
        }
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.elevator.fused(kept, gone);
        self.foresight.fused(kept, gone);
        if self.dedication.forget(gone) {
            self.dedication.mark(kept);
        }
        if self.came == Some(gone) {
            self.came = Some(kept);
        }
        let other = self.members[gone.index()];
        self.members[gone.index()].stage = Stage::Gone;
        let member = &mut self.members[kept.index()];
        if (other.arrival, other.turn) < (member.arrival, member.turn) {
            (member.arrival, member.turn) = (other.arrival, other.turn);
        }
    }

    /// A withdrawal of the held request ends the wait, since the request has come. A wait for another request goes
    /// on. The limit of that wait stays the same, even if the limit came from the withdrawn request.
    fn withdraw(&mut self, tag: Tag) -> Request {
        let request = match self.held.take_if(|held| held.tag == tag) {
            Some(held) => held,
            None => self.elevator.withdraw(tag),
        };
        self.members[tag.index()].stage = Stage::Gone;
        self.came = self.came.filter(|came| *came != tag);
        self.dedication.forget(tag);
        self.foresight.withdrawn(tag);
        request
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.elevator.queued() + usize::from(self.held.is_some())
    }

    fn drain(&mut self) -> Vec<Request> {
        let mut all = self.elevator.drain();
        all.extend(self.held.take());
        all.sort_by_key(|request| (request.arrival, self.members[request.tag.index()].turn));
        for request in &all {
            self.members[request.tag.index()].stage = Stage::Gone;
        }
        self.foresight.reset();
        self.dedication.end();
        self.came = None;
        self.waits.end(false);
        all
    }

    fn waits(&self) -> WaitStats {
        let (streams_established, streams) = self.foresight.streams();
        WaitStats {
            streams_established,
            streams,
            ..self.waits.stats()
        }
    }
}
