//! Holding the disk for a request that has not arrived: the part that does not depend on how the request
//! is foreseen.

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

/// How long to hold the disk at a stretch when the end is an event rather than a time.
pub(crate) const FAR: Nanos = Nanos::from_secs(1);

/// Knows something of requests to come: for which new request the disk should have waited, and
/// whether to wait.
///
/// The *tail* is the request handed out last. `pending` gives the address of what the elevator
/// would serve behind the tail; it is asked only when needed.
pub trait Foresight {
    /// A request arrives. Returns true if the disk may be held behind the tail for this request; it
    /// then replaces any request that came earlier and was held for.
    fn arrived(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool;

    /// Returns true if [`Foresight::arrived`] would say yes to `request`.
    fn awaits(&self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool;

    /// A request is handed out, and is the tail from now on. Returns the number of the run that it
    /// belongs to. As long as this number stays the same, the disk serves one stream.
    fn handed_out(&mut self, now: Time, request: &Request) -> u64;

    /// A request that was handed out is over.
    fn completed(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>);

    /// Until when the disk should be held behind the tail rather than serve `next`, as far as is
    /// known at `now`. Returns `None` if it should not be held. `next` is the request that was
    /// awaited, if that `came`, or else the elevator's candidate.
    fn hold(&mut self, now: Time, next: &Request, came: bool) -> Option<Time>;

    /// The queued request that goes right behind the tail, wherever the elevator has it.
    fn follower(&self) -> Option<Tag> {
        None
    }

    /// A queued request has grown: it is `grown` now.
    fn merged(&mut self, _grown: &Request) {}

    /// The queued request `gone` became part of the queued request `kept`.
    fn fused(&mut self, kept: Tag, gone: Tag);

    /// The queued request `tag` has been withdrawn and is served elsewhere.
    fn withdrawn(&mut self, tag: Tag);

    /// Somebody knows of a request that will come.
    fn foretold(&mut self, _now: Time, _request: &Foretold) {}

    /// Forgets everything.
    fn reset(&mut self);

    /// Returns the number of streams that were waited for so far, and of those that may still go on.
    fn streams(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nowhere, or in the drive after it was in the elevator.
    Gone,
    /// In the elevator.
    InElevator,
    /// It is the next one.
    Held,
    /// In the drive, without having been in the elevator.
    Bypassed,
}

#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    stage: Stage,
    arrival: Time,
    turn: u64,
    /// Behind its last sector.
    end: Lba,
}

/// Turns an elevator and a foresight into a scheduler that may wait.
///
/// All such schedulers share four rules. An urgent candidate of the elevator goes at once. A stream is
/// served for at most a slice of time while others are pending. The request that was waited for bypasses
/// the elevator. While a [`Directive`] dedicates the disk, only marked requests go, and nothing is foreseen.
#[derive(Clone, Debug)]
pub struct Anticipating<E, F> {
    elevator: E,
    pub(crate) foresight: F,
    slice: Nanos,
    /// Slices end at ticks of a timer, if there is one.
    hz: Option<Hz>,
    /// Behind the last request handed out.
    head: HeadState,
    /// Where a tracker has the head, for the elevator's next choice. What is foreseen and held goes by the requests handed
    /// out: one that the drive's buffer serves leaves the head where it is, but its stream goes on behind it.
    tracked: Option<HeadState>,
    /// What was waited for, and goes next.
    held: Option<Request>,
    /// The run that is served, and since when.
    run: (u64, Time),
    /// By tag.
    members: Vec<FrameEntry>,
    turns: u64,
    now: Time,
    waits: Waits,
    /// What is held, if it came during the wait.
    came: Option<Tag>,
    /// Orders of whoever coordinates several disks. While the disk is dedicated, nothing is held.
    dedication: Dedication,
}

impl<E: Elevator, F: Foresight> Anticipating<E, F> {
    /// With the head at sector 0 and nothing known of the past.
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

    /// Returns the time at which the served stream must let go of the disk if anything else is pending.
    fn slice_end(&self) -> Time {
        match self.hz {
            Some(hz) => hz.fires(self.run.1, hz.ticks(self.slice)),
            None => self.run.1.saturating_add(self.slice),
        }
    }

    /// Returns true if a request that was waited for may go ahead of what the elevator has.
    fn may_bypass(&self, now: Time) -> bool {
        now < self.slice_end()
    }

    /// Returns true if a new request may become part of one that waits in the elevator. `continues`
    /// says whether it goes on where that one ends.
    ///
    /// A request that the disk waits for would wait there, inside another one. But nothing is
    /// nearer than the request that it continues, unless the tail ends there too.
    fn may_wait_within(&self, new: &Request, continues: bool) -> bool {
        let now = self.now.max(new.arrival);
        let pending = pending(&self.elevator, now, &self.head);
        let awaits = || self.foresight.awaits(now, new, pending);
        let continues = continues && self.head.lba != new.extent.start;
        continues || !(self.may_bypass(now) && awaits())
    }

    /// The held request joins those that wait in the elevator.
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

    /// The elevator's choice goes, and the held request joins those that wait in the elevator.
    fn let_go(&mut self, now: Time) -> Dispatch {
        let request = self.elevator.take(now, &self.elevator_head());
        let request = request.expect("it was peeked at");
        self.give_back(now);
        self.hand_out(now, request, Stage::Gone)
    }

    /// A request that waits in the elevator goes, whichever the elevator would serve.
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

    /// Chooses what is next. Holds the disk only if `may_hold`.
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

/// The address of what an elevator would serve.
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
            // Of two queued requests, one cannot leave the elevator, or where it is held, for the
            // other.
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
                    // Any, as far as this can say: nobody is vetoed by that.
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
        let other = self.members[gone.index()];
        self.members[gone.index()].stage = Stage::Gone;
        let member = &mut self.members[kept.index()];
        if (other.arrival, other.turn) < (member.arrival, member.turn) {
            (member.arrival, member.turn) = (other.arrival, other.turn);
        }
    }

    /// If the request is held, it has come: the wait for it is over. A wait for another request goes on.
    /// What that one has to beat stays what it was, also if the withdrawn request was it.
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
