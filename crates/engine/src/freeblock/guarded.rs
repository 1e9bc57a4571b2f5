//! What a scan does so that clients keep what the drive's buffer serves them.

use super::buffer::Buffer;
use super::guard::{Coming, Guard};
use super::{Freeblock, Pick};
use crate::{Approach, Finished, Join, RequestId};
use headtime_sched::{Passing, Request};
use headtime_units::{Lba, Time};

impl<P: Passing> Freeblock<P> {
    /// Returns true if picks would cost clients hits of the drive's buffer, and gaps rest.
    pub fn is_costly(&self) -> bool {
        let guard = self.guard.as_ref();
        guard.is_some_and(Guard::rests)
    }

    /// What the drive's buffer may hold in fact.
    pub(super) fn in_fact(&self) -> &Buffer {
        match &self.guard {
            Some(guard) if guard.rests() => guard.without(),
            _ => &self.buffer,
        }
    }

    /// Notes what is to be expected of a client's read that is about to go to the drive; `does` says whether the buffer may serve it.
    pub(super) fn comes<T>(
        &mut self,
        now: Time,
        approach: &Approach,
        id: RequestId,
        request: &Request<T>,
        does: bool,
    ) {
        let extent = request.extent;
        let (true, RequestId::Client(id)) = (self.guard.is_some() && request.op.is_read(), id)
        else {
            return;
        };
        let gap = self.gap(now, approach, request.op, extent);
        let model = &self.model;
        let place = model.start(extent);
        let predicted = model.predict_behind(&gap.source, gap.sent, place, gap.op);
        let track = model.addresses(model.track(place));
        let front = self
            .buffer
            .front(extent.start, predicted.rotation, track, self.turn);
        if let Some(guard) = &mut self.guard {
            guard.comes(Coming {
                id,
                arrival: request.arrival,
                front,
                is_behind: false,
                would: guard.without().has(now, extent),
                does,
                held: None,
                rests: guard.rests(),
            });
        }
    }

    /// Notes what would be read before a request. Returns true if it is not.
    pub(super) fn holds(&mut self, id: RequestId, arrival: Time, pick: Option<&Pick>) -> bool {
        let Some(guard) = &mut self.guard else {
            return false;
        };
        let rests = guard.rests();
        let RequestId::Client(id) = id else {
            return rests;
        };
        let Some(coming) = guard.last(id, arrival) else {
            return rests;
        };
        let Some(pick) = pick else { return rests };
        coming.is_behind |= pick.join == Join::Before;
        let holds = rests && (coming.would || pick.join != Join::With);
        coming.held = holds.then_some(pick.extent);
        holds
    }

    /// Judges a client's request that is done. Returns where what the drive read in front of it begins.
    pub(super) fn judge(&mut self, now: Time, done: &Finished) -> Lba {
        let start = done.request.extent.start;
        let writes = self.writes();
        let Some(guard) = &mut self.guard else {
            return start;
        };
        let coming = guard.take(done);
        guard.read(now, done, coming.map_or(start, |coming| coming.front));
        if let Some(held) = coming.and_then(|coming| coming.held) {
            match writes {
                true => self.buffer.moved(done.issued),
                false => self.buffer.read(now, done.issued, held, held.start),
            }
        }
        if let (Some(coming), Some(surprise)) = (&coming, done.surprise) {
            guard.count(coming, surprise);
        }
        guard.decide();
        let alone = coming.filter(|coming| !coming.is_behind);
        alone.map_or(start, |coming| coming.front)
    }
}
