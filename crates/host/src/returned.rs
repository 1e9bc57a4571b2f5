//! Calls that have returned and have not been reported yet.

use headtime_units::{Nanos, Time};
use headtime_workload::Returned;
use std::collections::VecDeque;

/// Runs of calls of equal span, each made when the previous call returned.
#[derive(Debug)]
pub(crate) struct ReturnedCalls {
    earlier: VecDeque<Returned>,
    /// Run that the next call may continue. The run has zero calls if there is none.
    last: Returned,
    /// Return time of the last call of `last`; [`Time::NEVER`] if there is no run.
    ended: Time,
}

impl Default for ReturnedCalls {
    fn default() -> ReturnedCalls {
        let (began, span, calls) = (Time::NEVER, Nanos::ZERO, 0);
        ReturnedCalls {
            earlier: VecDeque::new(),
            last: Returned { began, span, calls },
            ended: Time::NEVER,
        }
    }
}

impl ReturnedCalls {
    /// Adds a call. Most calls find all pages in memory and continue the run, so this path is
    /// short.
    #[inline]
    pub fn push(&mut self, began: Time, ended: Time) {
        let span = ended - began;
        if began == self.ended && span == self.last.span {
            self.last.calls += 1;
        } else {
            self.begin(began, span);
        }
        self.ended = ended;
    }

    fn begin(&mut self, began: Time, span: Nanos) {
        let calls = 1;
        let before = std::mem::replace(&mut self.last, Returned { began, span, calls });
        if before.calls > 0 {
            self.earlier.push_back(before);
        }
    }

    /// Takes the earliest run.
    #[inline]
    pub fn pop(&mut self) -> Option<Returned> {
        self.earlier.pop_front().or_else(|| {
            self.ended = Time::NEVER;
            let calls = std::mem::take(&mut self.last.calls);
            (calls > 0).then_some(Returned { calls, ..self.last })
        })
    }

    #[inline]
    pub fn clear(&mut self) {
        self.earlier.clear();
        self.last.calls = 0;
        self.ended = Time::NEVER;
    }
}
