//! A replay in which every process waits for its own requests.

use super::{ReplayError, Script};
use crate::{NewRequest, Source};
use headtime_sched::Foretold;
use headtime_units::{Nanos, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Replay that submits each request after the completion that its process waited for, with the recorded
/// delay.
///
/// The model: a request waited for the latest completion of its process at or before its arrival. The
/// time between is think time. A process that never has two requests at once thus becomes a closed
/// loop. A process with several requests at once keeps that parallelism. If no request of a process
/// completed before, a request arrives as recorded, counted from the first arrival of the trace.
///
/// This replay suits a disk that is faster or slower than the recorded disk. An open replay would
/// assume that programs do not notice the disk's speed. A closed replay would assume that programs
/// never think.
#[derive(Clone, Debug)]
pub struct ClosedPerProcess {
    script: Arc<Script>,
    /// For each request, the index in `followers` of the first request that waits for it. A last
    /// element gives the end.
    first_follower: Vec<u32>,
    followers: Vec<Follower>,
    due: BinaryHeap<Reverse<(Time, u32)>>,
    made: u64,
    outstanding: u64,
    /// True for each request that was made and has not completed.
    open: Vec<bool>,
    tell_ahead: bool,
    /// Requests that became certain with a completion and have not been returned by `foretell`.
    told: VecDeque<Foretold>,
}

/// A request that waits for another request.
#[derive(Clone, Copy, Debug)]
struct Follower {
    request: u32,
    think: Nanos,
}

impl ClosedPerProcess {
    /// Replays the script.
    ///
    /// # Errors
    ///
    /// If a request has no arrival, no completion, or no process.
    ///
    /// # Panics
    ///
    /// If there are 2³² requests or more.
    pub fn new(script: Arc<Script>) -> Result<ClosedPerProcess, ReplayError> {
        let requests = script.requests();
        assert!(
            u32::try_from(requests.len()).is_ok(),
            "at most 4294967295 requests"
        );
        for (index, request) in requests.iter().enumerate() {
            let number = index as u64 + 1;
            let missing = if request.arrival.is_none() {
                "arrival"
            } else if !request.process_known {
                "process"
            } else if request.completion.is_none() {
                "completion"
            } else {
                continue;
            };
            return Err(ReplayError::NotPerProcess {
                request: number,
                missing,
                formats: script.formats().to_owned(),
            });
        }

        let leaders = leaders(&script);
        let mut first_follower = vec![0_u32; requests.len() + 1];
        for leader in leaders.iter().flatten() {
            first_follower[*leader as usize + 1] += 1;
        }
        for index in 0..requests.len() {
            first_follower[index + 1] += first_follower[index];
        }
        let nobody = Follower {
            request: 0,
            think: Nanos::ZERO,
        };
        let mut followers = vec![nobody; leaders.iter().flatten().count()];
        let mut next = first_follower.clone();
        let mut due = BinaryHeap::with_capacity(requests.len());
        let zero = requests.first().and_then(|request| request.arrival);
        for (index, leader) in leaders.iter().enumerate() {
            let arrival = requests[index].arrival.expect("checked above");
            match leader {
                None => {
                    let start = arrival - zero.expect("there is a first request");
                    due.push(Reverse((Time::ZERO + start, index as u32)));
                }
                Some(leader) => {
                    let completion = requests[*leader as usize]
                        .completion
                        .expect("checked above");
                    let place = &mut next[*leader as usize];
                    followers[*place as usize] = Follower {
                        request: index as u32,
                        think: arrival - completion,
                    };
                    *place += 1;
                }
            }
        }
        Ok(ClosedPerProcess {
            first_follower,
            followers,
            due,
            made: 0,
            outstanding: 0,
            tell_ahead: false,
            told: VecDeque::new(),
            open: vec![false; requests.len()],
            script,
        })
    }
}

/// For each request, finds the request that it waited for. This is the request of the same process that
/// completed last, at or before the arrival.
fn leaders(script: &Script) -> Vec<Option<u32>> {
    let requests = script.requests();
    let process = |index: u32| requests[index as usize].origin.process;
    let completion = |index: u32| requests[index as usize].completion;
    let mut by_arrival: Vec<u32> = (0..requests.len() as u32).collect();
    let mut by_completion = by_arrival.clone();
    // The sort is stable, so the requests of a process stay in order of arrival.
    by_arrival.sort_by_key(|index| process(*index));
    by_completion.sort_by_key(|index| (process(*index), completion(*index)));
    let mut leaders = vec![None; requests.len()];
    let mut done = by_completion.iter().copied().peekable();
    let mut latest = None;
    for index in by_arrival {
        if latest.is_some_and(|latest| process(latest) != process(index)) {
            latest = None;
        }
        while let Some(candidate) = done.peek().copied() {
            let before = process(candidate) < process(index)
                || process(candidate) == process(index)
                    && completion(candidate) <= requests[index as usize].arrival
                    // A request that took no time waits neither for itself nor for a later request.
                    && candidate < index;
            if !before {
                break;
            }
            done.next();
            if process(candidate) == process(index) {
                latest = Some(candidate);
            }
        }
        leaders[index as usize] = latest;
    }
    leaders
}

impl Source for ClosedPerProcess {
    fn next_arrival(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        self.next_arrival().filter(|due| *due <= now)?;
        let Reverse((arrival, index)) = self.due.pop()?;
        let request = self.script.requests()[index as usize];
        self.made += 1;
        self.outstanding += 1;
        self.open[index as usize] = true;
        Some(request.at(u64::from(index), arrival))
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        let index = cookie as usize;
        assert!(
            self.open.get(index).copied().unwrap_or(false),
            "completion of a request that is not outstanding"
        );
        self.open[index] = false;
        self.outstanding -= 1;
        let followers =
            self.first_follower[index] as usize..self.first_follower[index + 1] as usize;
        for follower in &self.followers[followers] {
            let due = now.saturating_add(follower.think);
            self.due.push(Reverse((due, follower.request)));
            if self.tell_ahead {
                let request = self.script.requests()[follower.request as usize];
                self.told.push_back(Foretold {
                    at: due,
                    op: request.op,
                    extent: request.extent,
                    origin: request.origin,
                });
            }
        }
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.tell_ahead = ahead;
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.told.pop_front()
    }

    fn done(&self) -> bool {
        self.outstanding == 0 && self.made == self.script.requests().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::tests::fitter;
    use super::*;
    use crate::{Fit, Trace, TraceRequest};
    use headtime_sched::{Flags, Op};
    use headtime_units::Extent;

    /// Arrival and completion in ms, process.
    fn replay(requests: &[(u64, u64, u32)]) -> ClosedPerProcess {
        ClosedPerProcess::new(Arc::new(script(requests, |_| {}))).unwrap()
    }

    fn script(requests: &[(u64, u64, u32)], change: impl Fn(&mut TraceRequest)) -> Script {
        let requests = requests
            .iter()
            .map(|(arrival, completion, process)| {
                let mut request = TraceRequest {
                    arrival: Some(ms(*arrival)),
                    completion: Some(ms(*completion)),
                    device: 0,
                    op: Op::Read,
                    extent: Extent::at(0, 8),
                    process: Some(*process),
                    flags: Flags::NONE,
                };
                change(&mut request);
                request
            })
            .collect();
        Script::new(&Trace::new(requests), &[], &fitter(Fit::Refuse)).unwrap()
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Nanos::from_millis(millis)
    }

    /// Runs a replay on a disk that serves each request in `service`, and any number of requests at
    /// once. Returns the arrivals in ms, each with the request's index.
    fn run(replay: &mut ClosedPerProcess, service: Nanos) -> Vec<(u64, u64)> {
        let mut made = Vec::new();
        let mut flying: Vec<(Time, u64)> = Vec::new();
        loop {
            let arrival = replay.next_arrival();
            let completion = flying.iter().min().copied();
            match (arrival, completion) {
                (None, None) => break,
                (Some(now), None) => take(replay, now, service, &mut made, &mut flying),
                (Some(now), Some((end, _))) if now < end => {
                    take(replay, now, service, &mut made, &mut flying);
                }
                (_, Some((end, cookie))) => {
                    flying.retain(|other| *other != (end, cookie));
                    replay.completed(end, cookie);
                }
            }
        }
        assert!(replay.done());
        made
    }

    fn take(
        replay: &mut ClosedPerProcess,
        now: Time,
        service: Nanos,
        made: &mut Vec<(u64, u64)>,
        flying: &mut Vec<(Time, u64)>,
    ) {
        let request = replay.poll(now).expect("one is due");
        made.push((request.arrival.as_nanos() / 1_000_000, request.cookie));
        flying.push((now + service, request.cookie));
    }

    #[test]
    fn think_time_follows_the_completion() {
        // Two processes make one request at a time. One thinks for 5 and 10 ms, the other for 1 and 0
        // ms.
        let recorded = [
            (100, 110, 7),
            (103, 104, 8),
            (105, 130, 8),
            (115, 120, 7),
            (130, 140, 7),
            (130, 135, 8),
        ];
        let made = run(&mut replay(&recorded), Nanos::from_millis(2));
        assert_eq!(made, [(0, 0), (3, 1), (6, 2), (7, 3), (8, 5), (19, 4)]);
        // On a disk as fast as the recorded one, the arrivals are the recorded ones.
        let fixed = [(0, 4, 1), (10, 14, 1), (11, 15, 2), (14, 18, 1)];
        let made = run(&mut replay(&fixed), Nanos::from_millis(4));
        assert_eq!(made, [(0, 0), (10, 1), (11, 2), (14, 3)]);
    }

    #[test]
    fn what_is_foretold_comes_then_and_there() {
        let recorded = [(0, 4, 1), (10, 14, 1), (11, 15, 2), (14, 18, 1)];
        let mut replay = replay(&recorded);
        assert_eq!(replay.foretell(), None);
        replay.tell_ahead(true);
        let first = replay.poll(ms(0)).expect("due at once");
        replay.completed(ms(7), first.cookie);
        let told = replay.foretell().expect("it thinks for 6 ms");
        assert_eq!((told.at, told.origin), (ms(13), first.origin));
        assert_eq!(replay.foretell(), None, "told once");
        let mut come = std::iter::from_fn(|| replay.poll(told.at));
        assert!(come.any(|next| (next.arrival, next.extent) == (told.at, told.extent)));
    }

    #[test]
    fn parallel_requests_of_a_process_stay_parallel() {
        // Three requests at once. Then one request follows the second, and one follows the first.
        let recorded = [(0, 30, 1), (0, 10, 1), (1, 50, 1), (12, 60, 1), (35, 70, 1)];
        let made = run(&mut replay(&recorded), Nanos::from_millis(20));
        assert_eq!(made, [(0, 0), (0, 1), (1, 2), (22, 3), (25, 4)]);
    }

    #[test]
    fn requests_that_took_no_time() {
        let recorded = [(5, 5, 1), (5, 5, 1), (5, 9, 1)];
        let made = run(&mut replay(&recorded), Nanos::from_millis(1));
        assert_eq!(made, [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let recorded = [(5, 6, 1), (7, 8, 1)];
        let error = |change: fn(&mut TraceRequest)| {
            ClosedPerProcess::new(Arc::new(script(&recorded, change)))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(|request| request.process = None),
            "request 1 has no process, which a closed replay per process needs beside arrivals and completions; \
             of the formats, blkparse, ftrace and perf have all of them, csv can have them, msr has no processes, \
             and disksim and iolog have neither processes nor completions (the trace is csv)"
        );
        assert!(
            error(|request| {
                if request.arrival == Some(ms(7)) {
                    request.completion = None;
                }
            })
            .starts_with("request 2 has no completion,")
        );
        assert!(error(|request| request.arrival = None).starts_with("request 1 has no arrival,"));
    }
}
