//! Requests that wait for their client's turn, or for the rate of their export, before they go to the engine.

use super::super::options::{ExportShare, ShareBy};
use super::steps::Steps;
use crate::request::{Data, Submission};
use headtime_engine::limit::Limit;
use headtime_engine::shares::{ClientTurn, ShareOf, Shares, take_out};
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
    /// Requests that do not wait for a turn, by number of the export: of class `real-time`, or of exports without shares.
    passing: Vec<VecDeque<Submission>>,
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
            passing: Vec::new(),
        }
    }

    /// True if a request may go to the engine.
    pub fn has_next(&self, steps: &Steps, now: impl FnOnce() -> Time) -> bool {
        let limits = &self.limits[..];
        let now = if limits.is_empty() { Time::ZERO } else { now() };
        let mut first = self.passing.iter().filter_map(VecDeque::front);
        first.any(|first| turn(steps, limits, first, now) == ClientTurn::Now)
            || (self.shares).has_next(|first| shared_turn(steps, limits, first, now))
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

    /// Adds a request. A step goes before requests of its client that have not started.
    pub fn push(&mut self, submission: Submission, steps: &Steps) {
        let is_step = steps.is_step(&submission.to);
        let place = |queue: &VecDeque<Submission>| match is_step {
            true => queue
                .iter()
                .take_while(|first| steps.is_step(&first.to))
                .count(),
            false => queue.len(),
        };
        let export = usize::from(submission.origin.export);
        let share = self.exports.get(export);
        let share = share.filter(|_| submission.class != Class::REAL_TIME);
        let client = share.and_then(|share| match share.by {
            ShareBy::None => None,
            ShareBy::Export => Some((0, share.weight)),
            ShareBy::Peer => Some((submission.origin.process, share.weight)),
        });
        match client {
            Some((peer, weight)) => {
                let client = (export as u64) << 32 | u64::from(peer);
                self.shares.push_at(client, weight, submission, place);
            }
            None => {
                if self.passing.len() <= export {
                    self.passing.resize_with(export + 1, VecDeque::new);
                }
                let queue = &mut self.passing[export];
                queue.insert(place(queue), submission);
            }
        }
    }

    /// Takes the next request for the engine, with the share that the request counts for.
    pub fn pop(&mut self, now: Time, steps: &Steps) -> Option<(Submission, Option<ShareOf>)> {
        let limits = &self.limits[..];
        let first = self.passing.iter_mut().filter(|queue| {
            let first = queue.front();
            first.is_some_and(|first| turn(steps, limits, first, now) == ClientTurn::Now)
        });
        let oldest = first.min_by_key(|queue| queue.front().map(|first| first.arrived));
        let (share, submission) = match oldest.and_then(VecDeque::pop_front) {
            Some(submission) => (None, submission),
            None => {
                let turn = |first: &Submission| shared_turn(steps, limits, first, now);
                let (share, submission) = self.shares.pop(now, turn)?;
                (Some(share), submission)
            }
        };
        // The bytes of a request count before its first step. Nobody gets the data of a client that has gone.
        if let Data::Buffer(buffer) = &submission.data
            && let Some(Some(limit)) = self.limits.get_mut(usize::from(submission.origin.export))
            && !steps.is_step(&submission.to)
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
        for queue in &mut self.passing {
            take_out(queue, is_over, out);
        }
        self.shares.take_out(is_over, out);
    }

    /// Takes all waiting requests out.
    pub fn drain(&mut self) -> impl Iterator<Item = Submission> {
        let passing = std::mem::take(&mut self.passing).into_iter().flatten();
        passing.chain(self.shares.drain())
    }
}

/// ClientTurn of the first request of an export. A request of a client that has gone is dropped at once.
fn turn(steps: &Steps, limits: &[Option<Limit>], request: &Submission, now: Time) -> ClientTurn {
    if steps.is_step(&request.to) {
        return ClientTurn::Now;
    }
    match limits.get(usize::from(request.origin.export)) {
        _ if !steps.has_room() => ClientTurn::Later,
        Some(Some(limit)) if limit.opens() > now && !request.to.is_gone() => ClientTurn::Limited,
        _ => ClientTurn::Now,
    }
}

/// ClientTurn of the first request of a client with a share.
fn shared_turn(
    steps: &Steps,
    limits: &[Option<Limit>],
    request: &Submission,
    now: Time,
) -> ClientTurn {
    match turn(steps, limits, request, now) {
        ClientTurn::Now if !steps.may_begin(request) => ClientTurn::Later,
        turn => turn,
    }
}
