//! Sources of requests that are no programs: traces and made-up processes.

use crate::REQUESTS_MAX;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::Source;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
