//! What is known of a drive's buffer, and of the order in which it serves: of the drive, and so one for all scans of a disk.
//!
//! There are two accounts of what the buffer may hold: one as if every gap were used, and one as if none were. While gaps are used,
//! the first tells the facts; while they rest, the second does. Each time that a rest begins or ends, both begin anew with the facts of that time: what
//! was picked before a rest is in the buffer still, and what would have been picked in one is not. What enters which:
//!
//! | | as if every gap were used | as if none were |
//! |---|---|---|
//! | a client's read | what passes in front of it, unless something else was or would have been read in that time | what passes in front of it; in a rest, unless something else was read in that time in fact |
//! | a pick, of whichever scan | yes | in a rest only: one that was in the drive when that began, or goes in its request's command |
//! | a pick that is not made since gaps rest | yes, when its request is done | no |
//! | what else the jobs read: in idle time, queued, outright for a date, parts of blocks | yes | yes: it is read whether gaps are used or not |
//! | writes, and what fails | they end reading ahead as a read does | the same |

#[cfg(test)]
mod tests;

use super::buffer::{Buffer, Destaging, Surprises};
use super::guard::{Coming, Guard};
use super::{FreeblockOptions, Hits, Pick};
use headtime_engine::{Finished, Join, Outcome, RequestId};
use headtime_sched::{Buffering, Op, Passing, Surprise};
use headtime_units::{Extent, Lba, Nanos, Time};

/// See above.
#[derive(Debug)]
pub(super) struct Kept {
    /// What the buffer may hold if every gap is used.
    with: Buffer,
    /// Of [`Hits::Guarded`], with what the buffer may hold if none is.
    guard: Option<(Guard, Buffer)>,
    surprises: Surprises,
    destaging: Destaging,
    /// Since when the drive gets few commands for the sake of a scan.
    narrow_from: Time,
}

impl Kept {
    /// Of a drive of which nothing has been seen.
    pub fn new<P: Passing>(model: &P, options: &FreeblockOptions) -> Kept {
        let of = model.buffering().filter(|_| options.hits.counts());
        Kept::of(of, options.hits == Hits::Guarded && of.is_some())
    }

    fn of(of: Option<Buffering>, guards: bool) -> Kept {
        Kept {
            with: Buffer::new(of),
            guard: guards.then(|| (Guard::new(), Buffer::new(of))),
            surprises: Surprises::default(),
            destaging: Destaging::default(),
            narrow_from: Time::ZERO,
        }
    }

    /// Returns true if picks would cost clients hits of the drive's buffer, and gaps rest.
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

    /// From now on the drive gets few commands. What surprised among many says nothing of them.
    pub fn begin_narrow(&mut self, now: Time) {
        self.surprises = Surprises::default();
        self.destaging = Destaging::default();
        self.narrow_from = now;
    }

    /// What the buffer may hold in fact.
    fn in_fact(&self) -> &Buffer {
        match &self.guard {
            Some((guard, without)) if guard.rests() => without,
            _ => &self.with,
        }
    }

    /// Returns true if there is no gap before a read, since the buffer may serve it; of a scan that does not rest. See [`Buffer::may_serve`].
    pub fn may_serve(&self, now: Time, read: Extent, behind: Option<Lba>) -> bool {
        self.with.may_serve(now, read, behind)
    }

    /// Returns true if a request is to be [noted](Kept::comes): a client's read that was not.
    pub fn notes(&mut self, id: RequestId, arrival: Time, op: Op) -> bool {
        match (&mut self.guard, id) {
            (Some((guard, _)), RequestId::Client(id)) => {
                op.is_read() && guard.last(id, arrival).is_none()
            }
            _ => false,
        }
    }

    /// Returns true if the buffer depends on the time for which the head waits for a read.
    pub fn needs_waits(&self) -> bool {
        self.with.keeps_front() || self.with.stays()
    }

    /// Notes a client's read that is about to go to the drive. `does` is true if the buffer may serve the read. `waits` has the predicted wait
    /// of the head, the addresses of the track, and the length of a turn, if the buffer [depends](Kept::needs_waits) on them.
    pub fn comes(
        &mut self,
        now: Time,
        (id, arrival): (RequestId, Time),
        extent: Extent,
        does: bool,
        waits: Option<(Nanos, Extent, Nanos)>,
    ) {
        let (Some((guard, without)), RequestId::Client(id)) = (&mut self.guard, id) else {
            return;
        };
        let front = waits.map_or(extent.start, |(waits, track, turn)| {
            self.with.front(extent.start, waits, track, turn)
        });
        guard.comes(Coming {
            id,
            arrival,
            front,
            waits: waits.map(|(waits, ..)| waits),
            is_behind: false,
            is_taken: false,
            would: without.has(now, extent),
            does,
            held: None,
            rests: guard.rests(),
        });
    }

    /// Notes what would be read, or written, before a request. Returns true if it is not.
    pub fn holds(&mut self, (id, arrival): (RequestId, Time), op: Op, pick: Option<&Pick>) -> bool {
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
        coming.is_behind |= pick.join == Join::Before;
        coming.is_taken = true;
        let is_free = pick.join == Join::With && !self.with.stays();
        let holds = rests && (coming.would || !is_free);
        // With several scans the gap would have been that of the first.
        if holds && coming.held.is_none() {
            coming.held = Some((op, pick.extent));
        }
        holds
    }

    /// A client's request is done.
    pub fn noticed(&mut self, now: Time, done: &Finished) {
        // By what was there before this read.
        let overtaken = self.overtakes(done);
        self.judge(now, done);
        // Of what nobody predicts nothing is known that was no surprise.
        let counts = done.issued >= self.narrow_from;
        let surprise = done.surprise.filter(|_| overtaken.is_some() && counts);
        if let (Some(overtaken), Some(surprise)) = (overtaken, surprise) {
            // Gap reads beside a drive that destages are rationed.
            let surprised = surprise != Surprise::None && !is_destaging(surprise);
            self.surprises.add(overtaken || surprised);
        }
        if done.request.op.is_read() {
            self.destaging.add(surprise.map(is_destaging));
        }
    }

    /// A gap read is done.
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

    /// Something else is done that a job has asked for, and would have without gaps.
    pub fn passed(&mut self, now: Time, done: &Finished) {
        self.overtakes(done);
        let start = done.request.extent.start;
        enter(&mut self.with, now, done, start, None);
        if let Some((_, without)) = &mut self.guard {
            enter(without, now, done, start, None);
        }
    }

    /// Returns, of a read that the medium should have served, whether the drive took another such read first that went to it later.
    fn overtakes(&mut self, done: &Finished) -> Option<bool> {
        let is_hit = || {
            let fact = self.in_fact();
            fact.may_have_served(done.issued, done.request.extent)
        };
        let by_medium = is_good_read(done) && !is_hit();
        by_medium.then(|| self.surprises.overtaken(done.issued))
    }

    /// Enters a client's request into the accounts, and judges it.
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
        // What was held is of the rest in which it was.
        match coming.held.filter(|_| rests) {
            Some((Op::Read, held)) => {
                self.with
                    .read(now, done.issued, held, held.start, waits(true));
            }
            Some(_) => self.with.moved(done.issued, waits(true)),
            None => {}
        }
        let made = coming.is_behind && !coming.rests;
        let [with_pick, without_pick] = match rests {
            true => [coming.is_behind, made],
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

/// Begins or ends a rest, if it is time for that: the account that told the facts tells the other one.
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
