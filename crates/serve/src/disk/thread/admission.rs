//! Requests that wait for their client's turn before they go to the engine.

use super::super::options::{ExportShare, ShareBy};
use crate::request::Submission;
use headtime_engine::shares::{ShareOf, Shares, take_out};
use headtime_sched::Class;
use headtime_units::{Nanos, Time};
use std::collections::VecDeque;

/// Requests in the engine, as the time in which the disk serves them. A client with one request waits for others about
/// this long, where the scheduler serves in order of arrival. A longer time leaves schedulers more to choose from.
const WAIT: Nanos = Nanos::from_millis(250);

/// Requests of the clients of a disk.
pub(super) struct Admission {
    exports: Vec<ExportShare>,
    shares: Shares<Submission>,
    /// Requests that do not wait: of class `real-time`, or of exports without shares.
    passing: VecDeque<Submission>,
}

impl Admission {
    /// Shares of the exports, before an engine that takes `depth` commands. Without shares, requests pass in order. Front
    /// ends bound the requests that wait here: each connection has a number of its own, and all have a number of bytes.
    pub fn new(exports: &[ExportShare], depth: u32) -> Admission {
        Admission {
            exports: exports.to_vec(),
            shares: Shares::new(depth, WAIT),
            passing: VecDeque::new(),
        }
    }

    /// True if a request may go to the engine.
    pub fn has_next(&self) -> bool {
        !self.passing.is_empty() || self.shares.waiting() > 0 && self.shares.has_room()
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
        if let Some(submission) = self.passing.pop_front() {
            return Some((submission, None));
        }
        let (share, submission) = self.shares.pop(now)?;
        Some((submission, Some(share)))
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
