//! Two accounts of a drive's buffer, and counts of reads that the drive served otherwise than predicted.
//!
//! Two accounts model the contents of the buffer: the first as if every gap were used, the second as if no gap were used. While gap reads
//! are made, the first account is the fact. While gap reads are suspended, the second account is the fact. When a suspension starts or
//! ends, both accounts start anew with the fact: gap reads made before a suspension are still in the buffer, and gap reads held back during
//! a suspension are not. The entries are:
//!
//! | | every gap used | no gap used |
//! |---|---|---|
//! | client's read | yes, with the sectors in front unless a gap read takes the wait | yes, with the sectors in front |
//! | gap read of any scan | yes | only during a suspension: the gap read was in the drive at the start, or goes in its request's command |
//! | gap read that is held back | yes, at the end of its request | no |
//! | other read of a job: idle, queued, at clients' cost, parts of blocks | yes | yes, since it does not depend on gaps |
//! | write, failed command | ends reading ahead, as a read does | the same |
//!
//! In the first account a gap read that is held back takes the wait, too. In the second account a gap read takes the wait only if it was in
//! the drive at the start of a suspension.

#[cfg(test)]
mod tests;

use super::buffer::{Buffer, Destaging, Surprises};
use super::guard::{Coming, Guard};
use super::{FreeblockOptions, Hits, Pick};
use headtime_engine::{Finished, Join, Outcome, RequestId};
use headtime_sched::{Buffering, Op, Passing, Surprise};
use headtime_units::{Extent, Lba, Nanos, Time};

/// Both accounts of the buffer, with the counts of surprises and destages.
#[derive(Debug)]
pub(super) struct BufferAccounts {
    /// Possible contents of the buffer if every gap is used.
    with: Buffer,
    /// For [`Hits::Guarded`]: the guard, and the possible contents of the buffer if no gap is used.
    guard: Option<(Guard, Buffer)>,
    surprises: Surprises,
    destaging: Destaging,
    /// Time from which the drive gets few commands for the sake of a scan.
    narrow_from: Time,
}

impl BufferAccounts {
    /// Returns a model that has seen no commands.
    pub fn new<P: Passing>(model: &P, options: &FreeblockOptions) -> BufferAccounts {
        let of = model.buffering().filter(|_| options.hits.counts());
        BufferAccounts::of(of, options.hits == Hits::Guarded && of.is_some())
    }

    fn of(of: Option<Buffering>, guards: bool) -> BufferAccounts {
        BufferAccounts {
            with: Buffer::new(of),
            guard: guards.then(|| (Guard::new(), Buffer::new(of))),
            surprises: Surprises::default(),
            destaging: Destaging::default(),
            narrow_from: Time::ZERO,
        }
    }

    /// Returns true if gap reads are suspended because they would cost clients hits of the drive's buffer.
    pub fn rests(&self) -> bool {
        self.guard.as_ref().is_some_and(|(guard, _)| guard.rests())
    }

    /// Returns true if too many reads were surprises.
    pub fn surprises(&self) -> bool {
        self.surprises.are_many()
    }

    /// Returns true if gap reads are rationed, since the drive destages before many reads of clients.
    pub fn rations(&self) -> bool {
        self.destaging.rations()
    }

    /// Returns true if the ration allows a gap read.
    pub fn allows(&self) -> bool {
        self.destaging.allows()
    }

    /// Takes a gap read from the ration.
    pub fn pay(&mut self) {
        self.destaging.pay();
    }

    /// Notes that the drive gets few commands from now on. Surprises among many commands say nothing of few, so all counts start anew.
    pub fn begin_narrow(&mut self, now: Time) {
        self.surprises = Surprises::default();
        self.destaging = Destaging::default();
        self.narrow_from = now;
    }

    /// Returns the account that is the fact.
    fn in_fact(&self) -> &Buffer {
        match &self.guard {
            Some((guard, without)) if guard.rests() => without,
            _ => &self.with,
        }
    }

    /// Returns true if a read leaves no gap since the buffer may serve the read, by the account with gap reads. See [`Buffer::may_serve`].
    pub fn may_serve(&self, now: Time, read: Extent, behind: Option<Lba>) -> bool {
        self.with.may_serve(now, read, behind)
    }

    /// Returns true if a request is a client's read that has not been [noted](BufferAccounts::note_read).
    pub fn is_unnoted(&mut self, id: RequestId, arrival: Time, op: Op) -> bool {
        match (&mut self.guard, id) {
            (Some((guard, _)), RequestId::Client(id)) => {
                op.is_read() && guard.last(id, arrival).is_none()
            }
            _ => false,
        }
    }

    /// Returns true if the buffer's contents depend on the head's wait for a read.
    pub fn needs_waits(&self) -> bool {
        self.with.keeps_front() || self.with.stays()
    }

    /// Notes a client's read that is about to go to the drive. `hit_expected` is true if the buffer may serve the read. `waits` has the
    /// predicted wait of the head, the addresses of the track, and the length of a turn, if the buffer
    /// [depends](BufferAccounts::needs_waits) on them.
    pub fn note_read(
        &mut self,
        now: Time,
        (id, arrival): (RequestId, Time),
        extent: Extent,
        hit_expected: bool,
        waits: Option<(Nanos, Extent, Nanos)>,
    ) {
        let (Some((guard, without)), RequestId::Client(id)) = (&mut self.guard, id) else {
            return;
        };
        let front = waits.map_or(extent.start, |(waits, track, turn)| {
            self.with.front(extent.start, waits, track, turn)
        });
        guard.note_read(Coming {
            id,
            arrival,
            front,
            waits: waits.map(|(waits, ..)| waits),
            has_gap_read_ahead: false,
            is_taken: false,
            hit_without_gaps: without.has(now, extent),
            hit_expected,
            held: None,
            rests: guard.rests(),
        });
    }

    /// Notes the gap read, or gap write, that was found for a request. Returns true if the gap read is held back.
    pub fn holds_back(
        &mut self,
        (id, arrival): (RequestId, Time),
        op: Op,
        pick: Option<&Pick>,
    ) -> bool {
        let Some((guard, _)) = &mut self.guard else {
            return false;
        };
        let rests = guard.rests();
        let (RequestId::Client(id), Some(pick)) = (id, pick) else {
            return rests;
        };
        let Some(coming) = guard.last(id, arrival) else {
            return rests;
        };
        coming.has_gap_read_ahead |= pick.join == Join::Before;
        coming.is_taken = true;
        let is_free = pick.join == Join::With && !self.with.stays();
        let holds = rests && (coming.hit_without_gaps || !is_free);
        // Only the first gap read that is held back for a request counts.
        if holds && coming.held.is_none() {
            coming.held = Some((op, pick.extent));
        }
        holds
    }

    /// Notes the end of a client's request.
    pub fn noticed(&mut self, now: Time, done: &Finished) {
        // Uses the buffer's contents before this read.
        let overtaken = self.overtakes(done);
        self.judge(now, done);
        // Only predicted reads of the medium show surprises.
        let counts = done.issued >= self.narrow_from;
        let surprise = done.surprise.filter(|_| overtaken.is_some() && counts);
        if let (Some(overtaken), Some(surprise)) = (overtaken, surprise) {
            // A destage is no surprise here, since the ration covers destages.
            let surprised = surprise != Surprise::None && !is_destaging(surprise);
            self.surprises.add(overtaken || surprised);
        }
        if done.request.op.is_read() {
            self.destaging.add(surprise.map(is_destaging));
        }
    }

    /// Notes the end of a gap read.
    pub fn picked(&mut self, now: Time, done: &Finished) {
        self.overtakes(done);
        if done.surprise.is_some_and(is_destaging) && done.issued >= self.narrow_from {
            self.destaging.before_pick();
        }
        let start = done.request.extent.start;
        // The head does not wait for a gap read.
        let waited = Some(Nanos::ZERO);
        enter(&mut self.with, now, done, start, waited);
        if let Some((guard, without)) = &mut self.guard
            && guard.rests()
        {
            enter(without, now, done, start, waited);
        }
    }

    /// Notes the end of a job's request that would also have been made without gaps.
    pub fn passed(&mut self, now: Time, done: &Finished) {
        self.overtakes(done);
        let start = done.request.extent.start;
        enter(&mut self.with, now, done, start, None);
        if let Some((_, without)) = &mut self.guard {
            enter(without, now, done, start, None);
        }
    }

    /// Returns true if a read that went to the drive later was done first. Returns `None` if the medium did not serve `done`, or `done` is
    /// no successful read.
    fn overtakes(&mut self, done: &Finished) -> Option<bool> {
        let is_hit = || {
            let fact = self.in_fact();
            fact.may_have_served(done.issued, done.request.extent)
        };
        let by_medium = is_good_read(done) && !is_hit();
        by_medium.then(|| self.surprises.overtaken(done.issued))
    }

    /// Enters a client's request into both accounts, and judges the request.
    fn judge(&mut self, now: Time, done: &Finished) {
        let start = done.request.extent.start;
        let Some((guard, without)) = &mut self.guard else {
            return enter(&mut self.with, now, done, start, None);
        };
        let Some(coming) = guard.take(done) else {
            enter(&mut self.with, now, done, start, None);
            enter(without, now, done, start, None);
            return turn(guard, &mut self.with, without);
        };
        let rests = guard.rests();
        // A gap read takes the wait.
        let waits = |is_taken| match is_taken {
            true => Some(Nanos::ZERO),
            false => coming.waits,
        };
        // A gap read that was held back counts only for the suspension during which it was held back.
        match coming.held.filter(|_| rests) {
            Some((Op::Read, held)) => {
                self.with
                    .read(now, done.issued, held, held.start, waits(true));
            }
            Some(_) => self.with.moved(done.issued, waits(true)),
            None => {}
        }
        let made = coming.has_gap_read_ahead && !coming.rests;
        let [with_pick, without_pick] = match rests {
            true => [coming.has_gap_read_ahead, made],
            false => [made, false],
        };
        let from = |is_behind| if is_behind { start } else { coming.front };
        let taken = waits(coming.is_taken);
        enter(&mut self.with, now, done, from(with_pick), taken);
        enter(without, now, done, from(without_pick), waits(without_pick));
        if let Some(surprise) = done.surprise {
            guard.count(&coming, surprise);
        }
        turn(guard, &mut self.with, without);
    }
}

/// Starts or ends a suspension if that is due. The account that was the fact is copied to the other account.
fn turn(guard: &mut Guard, with: &mut Buffer, without: &mut Buffer) {
    if guard.decide() {
        match guard.rests() {
            true => without.become_as(with),
            false => with.become_as(without),
        }
    }
}

fn is_destaging(surprise: Surprise) -> bool {
    matches!(surprise, Surprise::Destaging(_))
}

fn is_good_read(done: &Finished) -> bool {
    done.request.op.is_read() && done.outcome == Outcome::Done
}

/// Notes a command that is done. The drive has read from `from` on. `waited` is as for [`Buffer::moved`].
fn enter(buffer: &mut Buffer, now: Time, done: &Finished, from: Lba, waited: Option<Nanos>) {
    match is_good_read(done) {
        true => buffer.read(now, done.issued, done.request.extent, from, waited),
        false => buffer.moved(done.issued, waited),
    }
}
