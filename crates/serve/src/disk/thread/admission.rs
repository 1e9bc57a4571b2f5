//! Requests that wait for their client's turn, or for the rate of their export, before they go to the engine.

use super::super::options::{ExportShare, ShareBy};
use crate::request::{Data, Submission};
use headtime_engine::limit::Limit;
use headtime_engine::shares::{ShareOf, Shares, take_out};
use headtime_sched::Class;
use headtime_units::{Nanos, Rate, Time};
use std::collections::VecDeque;

/// Requests in the engine, as the time in which the disk serves them. A client with one request waits for others about
/// this long, where the scheduler serves in order of arrival. A longer time leaves schedulers more to choose from.
const WAIT: Nanos = Nanos::from_millis(250);

/// Requests of the clients of a disk.
pub(super) struct Admission {
    exports: Vec<ExportShare>,
    /// Limits of the exports, by number. Exports beyond the end have none.
    limits: Vec<Option<Limit>>,
    shares: Shares<Submission>,
    /// Requests that do not wait: of class `real-time`, or of exports without shares.
    passing: VecDeque<Submission>,
}

impl Admission {
    /// Shares and rates of the exports, before an engine that takes `depth` commands. Without shares, requests pass in
    /// order. Front ends bound the requests that wait here: each connection has a number of its own, and all have a number
    /// of bytes.
    pub fn new(exports: &[ExportShare], rates: &[Option<Rate>], depth: u32) -> Admission {
        Admission {
            exports: exports.to_vec(),
            limits: rates.iter().map(|rate| rate.map(Limit::new)).collect(),
            shares: Shares::new(depth, WAIT),
            passing: VecDeque::new(),
        }
    }

    /// True if a request may go to the engine.
    pub fn has_next(&self, now: impl FnOnce() -> Time) -> bool {
        let shared = self.shares.waiting() > 0 && self.shares.has_room();
        if self.limits.is_empty() {
            return !self.passing.is_empty() || shared;
        }
        let (now, shared) = (now(), shared.then(|| self.shares.first()));
        let mut first = self.passing.iter().chain(shared.into_iter().flatten());
        first.any(|waiting| may_go(&self.limits, waiting, now))
    }

    /// Next time after `now` at which an export has its rate.
    pub fn opens(&self, now: Time) -> Time {
        let times = self.limits.iter().flatten().map(Limit::opens);
        times.filter(|at| *at > now).min().unwrap_or(Time::NEVER)
    }

    /// Lifts the limits, so that the disk can end.
    pub fn lift_limits(&mut self) {
        self.limits.clear();
    }

    /// Adds a request.
    pub fn push(&mut self, submission: Submission) {
        let export = submission.origin.export;
        let share = self.exports.get(usize::from(export));
        let share = share.filter(|_| submission.class != Class::REAL_TIME);
        let client = share.and_then(|share| match share.by {
            ShareBy::None => None,
            ShareBy::Export => Some((0, share.weight)),
            ShareBy::Peer => Some((submission.origin.process, share.weight)),
        });
        match client {
            Some((peer, weight)) => {
                let client = u64::from(export) << 32 | u64::from(peer);
                self.shares.push(client, weight, submission);
            }
            None => self.passing.push_back(submission),
        }
    }

    /// Takes the next request for the engine, with the share that the request counts for.
    pub fn pop(&mut self, now: Time) -> Option<(Submission, Option<ShareOf>)> {
        let limits = &self.limits;
        let may_go = |waiting: &Submission| may_go(limits, waiting, now);
        let passing = self.passing.iter().position(may_go);
        let (share, submission) = match passing.and_then(|place| self.passing.remove(place)) {
            Some(submission) => (None, submission),
            None => {
                let (share, submission) = self.shares.pop(now, may_go)?;
                (Some(share), submission)
            }
        };
        // Nobody gets the data of a client that has gone.
        if let Data::Buffer(buffer) = &submission.data
            && let Some(Some(limit)) = self.limits.get_mut(usize::from(submission.origin.export))
            && !submission.to.is_gone()
        {
            limit.take(buffer.len() as u64, now);
        }
        Some((submission, share))
    }

    /// Notes that a request has ended.
    pub fn done(&mut self, share: ShareOf, now: Time) {
        self.shares.done(share, now);
    }

    /// Notes that a request did not go to the engine.
    pub fn passed_over(&mut self, share: ShareOf) {
        self.shares.passed_over(share);
    }

    /// Takes the waiting requests out that are over.
    pub fn take_out(
        &mut self,
        is_over: &mut impl FnMut(&Submission) -> bool,
        out: &mut Vec<Submission>,
    ) {
        take_out(&mut self.passing, is_over, out);
        self.shares.take_out(is_over, out);
    }

    /// Takes all waiting requests out.
    pub fn drain(&mut self) -> impl Iterator<Item = Submission> {
        self.passing.drain(..).chain(self.shares.drain())
    }
}

/// True if the export of a request has its rate. A request of a client that has gone is dropped at once.
fn may_go(limits: &[Option<Limit>], request: &Submission, now: Time) -> bool {
    match limits.get(usize::from(request.origin.export)) {
        Some(Some(limit)) => limit.opens() <= now || request.to.is_gone(),
        _ => true,
    }
}
