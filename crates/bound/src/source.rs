//! Sources of requests that are no programs: traces and made-up processes.

use crate::REQUESTS_MAX;
use headtime_sched::{Foretold, Op};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::{NewRequest, Source};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What was asked: the operation, and the sectors.
pub(crate) type Asked = (Op, Extent);

/// When a source can have come to its end at the earliest, if each request takes at least `least`
/// and any number of them goes by at once; and all its requests. `None` if they are too many.
///
/// That is a bound for sources whose requests come no later when others complete sooner, and are
/// the same then, as all replays and made-up processes are.
pub(crate) fn drain(
    source: &mut dyn Source,
    least: impl Fn(&Asked) -> Nanos,
) -> Option<(Time, Vec<Asked>)> {
    let (mut now, mut asked) = (Time::ZERO, Vec::new());
    let mut under_way: BinaryHeap<Reverse<(Time, u64)>> = BinaryHeap::new();
    loop {
        while let Some(request) = source.poll(now) {
            let one = (request.op, request.extent);
            under_way.push(Reverse((now.saturating_add(least(&one)), request.cookie)));
            if asked.len() == REQUESTS_MAX {
                return None;
            }
            asked.push(one);
        }
        let arrival = source.next_arrival().map(|at| at.max(now));
        let done = under_way.peek().map(|Reverse((at, _))| *at);
        match (arrival, done) {
            (Some(at), done) if done.is_none_or(|done| at < done) => now = at,
            (_, Some(at)) => {
                now = at;
                if let Some(Reverse((at, cookie))) = under_way.pop() {
                    source.completed(at, cookie);
                }
            }
            _ => return Some((now, asked)),
        }
    }
}

/// A source that notes which of its requests came and completed within the time measured.
///
/// It changes nothing of what passes through.
pub struct Watched<'a> {
    source: &'a mut dyn Source,
    from: Time,
    under_way: BTreeMap<u64, Asked>,
    completed: Vec<Asked>,
    too_many: bool,
}

impl<'a> Watched<'a> {
    /// Notes requests that come from `from` on.
    pub fn new(source: &'a mut dyn Source, from: Time) -> Watched<'a> {
        Watched {
            source,
            from,
            under_way: BTreeMap::new(),
            completed: Vec::new(),
            too_many: false,
        }
    }

    /// The requests that have completed; `None` if they are more than [`REQUESTS_MAX`].
    pub fn into_completed(self) -> Option<Completed> {
        (!self.too_many).then_some(Completed {
            requests: self.completed,
            from_rest: self.from == Time::ZERO,
        })
    }

    fn note(&mut self, asked: Asked) {
        if self.completed.len() == REQUESTS_MAX {
            self.too_many = true;
            self.completed = Vec::new();
            self.under_way.clear();
        } else {
            self.completed.push(asked);
        }
    }
}

/// Requests that came and completed within a span of time.
#[derive(Clone, Debug, Default)]
pub struct Completed {
    pub(crate) requests: Vec<Asked>,
    /// The span begins with the run, when the buffer is empty and the arm at rest.
    pub(crate) from_rest: bool,
}

impl Source for Watched<'_> {
    fn next_arrival(&self) -> Option<Time> {
        self.source.next_arrival()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let request = self.source.poll(now)?;
        if now >= self.from && !self.too_many {
            let asked = (request.op, request.extent);
            self.under_way.insert(request.cookie, asked);
        }
        Some(request)
    }

    fn unplug(&mut self) -> bool {
        self.source.unplug()
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.source.tell_ahead(ahead);
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.source.foretell()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        if let Some(asked) = self.under_way.remove(&cookie) {
            self.note(asked);
        }
        self.source.completed(now, cookie);
    }

    fn done(&self) -> bool {
        self.source.done()
    }
}
