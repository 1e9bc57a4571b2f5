//! Requests of the front ends, until they go to the engine.

use super::super::steps::EndedJob;
use super::{Live, expiry};
use crate::request::{Failure, Kind, Submission};
use headtime_engine::shares::ShareOf;
use headtime_units::Time;

impl Live {
    /// Takes the next request from the queue, if there is room for another request.
    pub fn fetch(&mut self, now: Time) {
        if self.next.is_some() || !self.has_room() {
            return;
        }
        if !self.steps.is_idle() {
            while let Some(ended) = self.steps.ended() {
                self.count_job(now, &ended);
                self.reply(&ended.to, ended.completion);
            }
            // Where clients share, steps wait for their client's turn.
            if let Some(admission) = &mut self.admission {
                while let Some(step) = self.steps.next_step() {
                    admission.push(step, &self.steps);
                }
            }
            self.next = self.steps.next();
        }
        while self.next.is_none()
            && let Some((submission, share)) = self.take(now)
        {
            if submission.to.is_gone() {
                self.give_share_back(share);
                let Submission {
                    cookie, data, to, ..
                } = submission;
                self.answer(&to, cookie, Err(Failure::new(Kind::ShuttingDown)), data);
                continue;
            }
            self.next = match self.steps.is_step(&submission.to) {
                true => Some(submission),
                // If the request takes several steps, then the first step counts for the share.
                false => self.steps.admit(submission),
            };
            match self.next {
                Some(_) => self.next_share = share,
                None => self.give_share_back(share),
            }
        }
    }

    /// Counts a client's request of several steps that is over.
    fn count_job(&mut self, now: Time, job: &EndedJob) {
        let (request, result) = (&job.request, &job.completion.result);
        if let (true, false, Some((issued, ended))) = (job.is_counted, job.is_refused, job.times) {
            (self.metrics).finished(request, issued, ended, result.is_ok());
            return;
        }
        let export = request.origin.export;
        self.metrics.exports[usize::from(export)].unfinished -= u64::from(job.is_counted);
        if result.is_err_and(|failure| failure.kind == Kind::NotBegun) {
            let waited = now.saturating_since(request.arrival);
            self.metrics.expired(export, request.op, waited);
        }
    }

    /// Takes a request from the queue, or the next one whose client's turn it is.
    fn take(&mut self, now: Time) -> Option<(Submission, Option<ShareOf>)> {
        let Some(admission) = &mut self.admission else {
            let has_room = self.steps.has_room();
            let next = has_room.then(|| self.shared.take()).flatten();
            return next.map(|submission| (submission, None));
        };
        while let Some(submission) = self.shared.take() {
            self.expires = self
                .expires
                .min(expiry::of(self.queue_timeout, submission.arrived));
            admission.push(submission, &self.steps);
        }
        admission.pop(now, &self.steps)
    }

    /// Notes that a request that counted for a share does not go to the engine.
    pub(super) fn give_share_back(&mut self, share: Option<ShareOf>) {
        if let (Some(share), Some(admission)) = (share, &mut self.admission) {
            admission.passed_over(share);
        }
    }

    /// Returns the next time after `now` at which a request may have the rate of its export.
    pub fn opens(&self, now: Time) -> Time {
        let waits = self.admission.as_ref();
        waits.map_or(Time::NEVER, |waits| waits.opens(now))
    }

    /// Returns true if another request may come in.
    fn has_room(&self) -> bool {
        self.pending.len() - self.free.len() < self.unfinished_max
    }

    /// Returns true if a request is ready and may come in.
    pub fn has_next(&self) -> bool {
        let comes = || match &self.admission {
            None => self.steps.has_room() && !self.shared.queue.is_empty(),
            Some(waits) => {
                !self.shared.queue.is_empty() || waits.has_next(&self.steps, || self.clock.now())
            }
        };
        self.has_room() && (self.steps.has_ready() || comes())
    }
}
