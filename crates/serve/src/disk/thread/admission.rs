//! Requests that wait for their client's turn before they go to the engine.

use super::super::options::{ExportShare, ShareBy};
use crate::request::Submission;
use headtime_engine::shares::{ShareOf, Shares};
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
    /// Shares of the exports, before an engine that takes `depth` commands. `None` if there are no shares. Front ends
    /// bound the requests that wait here: each connection has a number of its own, and all have a number of bytes.
    pub fn new(exports: &[ExportShare], depth: u32) -> Option<Admission> {
        (!exports.is_empty()).then(|| Admission {
            exports: exports.to_vec(),
            shares: Shares::new(depth, WAIT),
            passing: VecDeque::new(),
        })
    }

    /// True if a request may go to the engine.
    pub fn has_next(&self) -> bool {
        !self.passing.is_empty() || self.shares.waiting() > 0 && self.shares.has_room()
    }

    /// Adds a request.
    pub fn push(&mut self, submission: Submission) {
        let export = submission.origin.export;
        let share = self.exports[usize::from(export)];
        let peer = match share.by {
            _ if submission.class == Class::REAL_TIME => None,
            ShareBy::None => None,
            ShareBy::Export => Some(0),
            ShareBy::Peer => Some(submission.origin.process),
        };
        match peer {
            Some(peer) => {
                let client = u64::from(export) << 32 | u64::from(peer);
                self.shares.push(client, share.weight, submission);
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

    /// Takes all waiting requests out.
    pub fn drain(&mut self) -> impl Iterator<Item = Submission> {
        self.passing.drain(..).chain(self.shares.drain())
    }
}
