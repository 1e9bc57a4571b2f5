//! Bounds on waiting that are stated in time.

use crate::model::{Promise, Queued};
use crate::violation::{Rule, Violation};
use headtime_sched::Request;
use headtime_units::{Nanos, Time};

/// The waits of a run, judged at its end when the slowest access is known.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    slowest: Nanos,
    kept: Vec<(Request, Promise, Time)>,
}

impl Waits {
    /// Notes an access of the disk.
    pub fn accessed(&mut self, time: Nanos) {
        self.slowest = self.slowest.max(time);
    }

    /// Notes that a request is handed out.
    pub fn note(&mut self, now: Time, queued: &Queued) {
        if queued.promise.bound.is_some() {
            self.kept.push((queued.request, queued.promise, now));
        }
    }

    /// Returns an error for the first broken promise.
    pub fn verdict(&self) -> Result<(), Violation> {
        for (request, promise, at) in &self.kept {
            let waited = at.saturating_since(promise.since);
            let bound = promise.bound.expect("only those are kept");
            let most = bound.time(self.slowest);
            if waited > most {
                let slowest = self.slowest;
                return Err(Violation {
                    rule: Rule::InTime,
                    at: *at,
                    what: format!(
                        "{request:?} waited {waited}; the policy says at most {most}, which is \
                         {bound:?} with accesses of {slowest}"
                    ),
                });
            }
        }
        Ok(())
    }
}
