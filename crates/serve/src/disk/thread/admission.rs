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

/// Requests that wait here at most. With more, the queue is not read, and clients have to wait there.
const WAITING_MAX: usize = 4096;

/// Requests of the clients of a disk.
pub(super) struct Admission {
    exports: Vec<ExportShare>,
    shares: Shares<Submission>,
    /// Requests that do not wait: of class `real-time`, or of exports without shares.
    passing: VecDeque<Submission>,
}

impl Admission {
    /// Shares of the exports, before an engine that takes `depth` commands.
    pub fn new(exports: Vec<ExportShare>, depth: u32) -> Admission {
        Admission {
            exports,
            shares: Shares::new(depth, WAIT),
            passing: VecDeque::new(),
        }
    }

    /// True if another request may wait.
    pub fn has_room_to_wait(&self) -> bool {
        self.shares.waiting() + self.passing.len() < WAITING_MAX
    }

    /// True if a request may go to the engine.
    pub fn has_next(&self) -> bool {
        !self.passing.is_empty() || self.shares.waiting() > 0 && self.shares.has_room()
    }

    /// Adds a request.
    pub fn push(&mut self, submission: Submission) {
        let share = self.exports.get(usize::from(submission.origin.export));
        match share.filter(|share| share.by != ShareBy::None) {
            Some(share) if submission.class != Class::REAL_TIME => {
                let name = match submission.origin.process {
                    // The front end knows no peers.
                    0 => 1 + u64::from(submission.origin.export),
                    client => client.into(),
                };
                self.shares.push(name, share.weight, submission);
            }
            _ => self.passing.push_back(submission),
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
