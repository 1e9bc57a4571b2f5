//! A source that makes given requests at their times.

use headtime_units::Time;
use headtime_workload::{NewRequest, Source};

/// Makes requests that are sorted by arrival, each once, and notes which have ended.
pub struct Scripted<'a> {
    requests: &'a [NewRequest],
    next: usize,
    /// Cookies of the requests that have ended, in order of their ends.
    pub ended: Vec<u64>,
}

impl Scripted<'_> {
    pub fn new(requests: &[NewRequest]) -> Scripted<'_> {
        Scripted {
            requests,
            next: 0,
            ended: Vec::new(),
        }
    }
}

impl Source for Scripted<'_> {
    fn next_arrival(&self) -> Option<Time> {
        self.requests.get(self.next).map(|next| next.arrival)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let next = self.requests.get(self.next)?;
        (next.arrival <= now).then(|| {
            self.next += 1;
            *next
        })
    }

    fn completed(&mut self, _: Time, cookie: u64) {
        assert!(!self.ended.contains(&cookie), "{cookie} is answered twice");
        self.ended.push(cookie);
    }

    fn done(&self) -> bool {
        self.ended.len() == self.requests.len()
    }
}
