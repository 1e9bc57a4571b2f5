//! The end of requests that have waited for the device for too long.
//!
//! A request that the engine has is answered at once. The engine keeps the request's place until the request's turn comes.
//! Then the request ends without a command to the device. So schedulers and logs need not know of this.

use super::{Live, RequestStage};
use crate::disk::thread::admission::Admission;
use crate::request::{Data, Failure, Kind, Submission};
use headtime_units::{Nanos, Time};

/// Least time between two looks at all waiting requests. A request therefore ends at most this time late.
const LOOK_EVERY: Nanos = Nanos::from_millis(10);

/// Time at which a request ends that has not begun.
#[inline]
pub(super) fn of(timeout: Option<Nanos>, arrived: Time) -> Time {
    timeout.map_or(Time::NEVER, |timeout| arrived.saturating_add(timeout))
}

impl Live {
    /// Sets the age at which a request that no device has been given fails.
    pub fn set_queue_timeout(&mut self, timeout: Option<Nanos>) {
        self.queue_timeout = timeout;
        self.expires = timeout.map_or(Time::NEVER, |_| Time::ZERO);
        if timeout.is_some() && self.admission.is_none() {
            // Requests wait there rather than in the queue, which can only be read from its beginning.
            self.admission = Some(Box::new(Admission::new(&[], &[], 1)));
        }
    }

    /// Returns the time of the next look at the waiting requests.
    #[inline]
    pub fn expires(&self) -> Time {
        self.expires
    }

    /// Ends the requests that have waited for too long.
    #[cold]
    pub fn expire(&mut self, now: Time) {
        let Some(timeout) = self.queue_timeout else {
            return;
        };
        let pending = self.pending.iter().flatten();
        for started in pending.filter(|pending| pending.stage == RequestStage::Begun) {
            self.steps.started(&started.to, started.cookie);
        }
        let (mut oldest, mut over) = (Time::NEVER, Vec::new());
        let mut is_due = |arrived: Time| {
            let is_due = now.saturating_since(arrived) >= timeout;
            if !is_due {
                oldest = oldest.min(arrived);
            }
            is_due
        };
        if let Some(admission) = &mut self.admission {
            while let Some(submission) = self.shared.take() {
                admission.push(submission, &self.steps);
            }
            let steps = &self.steps;
            let mut is_over = |waiting: &Submission| {
                !steps.continues(&waiting.to, waiting.cookie) && is_due(waiting.arrived)
            };
            admission.take_out(&mut is_over, &mut over);
            if let Some(next) = self.next.take_if(|next| is_over(next)) {
                over.push(next);
                if let Some(share) = self.next_share.take() {
                    admission.passed_over(share);
                }
            }
        }
        self.steps
            .take_out(&mut |waiting| is_due(waiting.arrived), &mut over);
        let mut in_engine = Vec::new();
        for (place, pending) in self.pending.iter_mut().enumerate() {
            let Some(pending) = pending else { continue };
            let may_end = pending.stage == RequestStage::Waits
                && pending.cookie != super::LAST_FLUSH
                && !self.steps.continues(&pending.to, pending.cookie);
            if may_end && is_due(pending.arrived) {
                pending.stage = RequestStage::Expired;
                in_engine.push(place);
            }
        }
        let count = over.len() + in_engine.len();
        for submission in over {
            let Submission {
                cookie,
                op,
                origin,
                arrived,
                data,
                to,
                ..
            } = submission;
            let waited = now.saturating_since(arrived);
            // A request of several steps counts at the end of its last step.
            if !self.steps.is_step(&to) {
                self.metrics.expired(origin.export, op, waited);
            }
            self.answer(&to, cookie, Err(Failure::new(Kind::NotBegun)), data);
        }
        for place in in_engine {
            self.end_early(place, now);
        }
        if count > 0 {
            tracing::warn!(
                disk = self.shared.name,
                requests = count,
                "ended requests that the device had not begun within {timeout}"
            );
        }
        self.expires = of(self.queue_timeout, oldest).max(now + LOOK_EVERY);
    }

    /// Answers a request that the engine keeps.
    fn end_early(&mut self, place: usize, now: Time) {
        let Some(pending) = &mut self.pending[place] else {
            return;
        };
        let (to, cookie, op) = (
            std::sync::Arc::clone(&pending.to),
            pending.cookie,
            pending.op,
        );
        let (origin, waited) = (pending.origin, now.saturating_since(pending.arrived));
        let is_noted = std::mem::take(&mut pending.is_noted);
        let whole_piece = || {
            let mut pieces = self.pieces.iter_mut().flatten();
            let piece = pieces.find(|piece| piece.of == place && piece.is_whole)?;
            piece.data.take()
        };
        let data: Option<Data> = pending.data.take().or_else(whole_piece);
        if !self.steps.is_step(&to) {
            self.metrics.exports[usize::from(origin.export)].unfinished -= 1;
            self.metrics.expired(origin.export, op, waited);
        }
        if let Some(feed) = self.feed.as_mut().filter(|_| is_noted) {
            feed.done(now, origin.program, 0);
        }
        self.answer(
            &to,
            cookie,
            Err(Failure::new(Kind::NotBegun)),
            data.unwrap_or_default(),
        );
    }
}
