//! Interface between a simulation and the sources of its requests.

use headtime_sched::{Class, Flags, Foretold, Op, Origin};
use headtime_units::{Extent, Lba, Nanos, Time};

/// A request that a [`Source`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// Name of the request for its source. Unlike a tag, a cookie is never used again. In a replay the
    /// cookie is the index of the request in its [`Script`](crate::Script).
    pub cookie: u64,
    /// Time at which the request was due, at most the `now` of the call that returned it. Response
    /// times count from this time.
    pub arrival: Time,
    /// Operation of the request.
    pub op: Op,
    /// Sectors of the drive. A flush has no sectors. Its extent begins where its sender's part of the
    /// disk begins.
    pub extent: Extent,
    pub flags: Flags,
    pub origin: Origin,
    pub class: Class,
}

/// A source of requests. Some requests may answer completions.
///
/// A source is a state machine without a clock. The caller of a source repeats:
///
/// ```text
/// while let Some(request) = source.poll(now) { hand it in }
/// sleep until source.next_arrival() or until something completes
/// for each completion: source.completed(now, cookie)
/// ```
///
/// `now` never goes backwards. A source depends on the times at which its requests complete. The number
/// of polls has no effect. A source does not allocate memory after it is built.
pub trait Source {
    /// Time of the next request if nothing completes before. `None` if no request is due until
    /// something completes, or at all. A time in the past means at once.
    fn next_arrival(&self) -> Option<Time>;

    /// Returns the next request that is due at `now`, or `None` if no further request is due. Callers
    /// poll until `None`.
    fn poll(&mut self, now: Time) -> Option<NewRequest>;

    /// Returns where a process's part of the disk begins, if the process has gone to sleep on a request since
    /// this was last asked. Holding requests back for others to join them gains nothing there any more. Callers
    /// ask each time that [`Source::poll`] has returned `None`. While a place is due, [`Source::next_arrival`]
    /// is not later than now.
    fn unplug(&mut self) -> Option<Lba> {
        None
    }

    /// Tells the source if [`Source::foretell`] will be called, which may cost the source some
    /// preparation. If a caller calls this function, the call comes before the first poll.
    fn tell_ahead(&mut self, _ahead: bool) {}

    /// Returns the next request that has become certain to come. Each request is returned once. Callers
    /// ask after each poll and completion until the result is `None`.
    fn foretell(&mut self) -> Option<Foretold> {
        None
    }

    /// Returns calls of processes that have returned, each once. Sources that only make requests return
    /// nothing. Callers ask after each poll until the result is `None`. Calls return while a source is
    /// polled, and the next poll discards them.
    fn returned(&mut self) -> Option<Returned> {
        None
    }

    /// Notes that the request with this cookie has completed.
    ///
    /// # Panics
    ///
    /// If no such request was made. A second completion of the same request may go unnoticed.
    fn completed(&mut self, now: Time, cookie: u64);

    /// Returns true if every request was made and has completed.
    fn done(&self) -> bool;
}

/// Consecutive calls of a process that returned, with or without making requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Time at which the process made the first call.
    pub began: Time,
    /// Duration of each call. Each call begins when the previous one returns.
    pub span: Nanos,
    /// Number of calls, 1 or more.
    pub calls: u32,
}

impl Returned {
    /// Time at which the last call returned.
    pub fn ended(&self) -> Time {
        self.began + self.span * u64::from(self.calls)
    }

    /// Number of calls that returned at `from` or later.
    pub fn since(&self, from: Time) -> u32 {
        if self.ended() < from {
            return 0;
        }
        // At least the last call returned at `from` or later. So fewer than all calls returned before.
        let before = (from.saturating_since(self.began).as_nanos())
            .saturating_sub(1)
            .checked_div(self.span.as_nanos());
        self.calls - before.unwrap_or(0) as u32
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_arrival(&self) -> Option<Time> {
        (**self).next_arrival()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        (**self).poll(now)
    }

    fn unplug(&mut self) -> Option<Lba> {
        (**self).unplug()
    }

    fn tell_ahead(&mut self, ahead: bool) {
        (**self).tell_ahead(ahead);
    }

    fn foretell(&mut self) -> Option<Foretold> {
        (**self).foretell()
    }

    fn returned(&mut self) -> Option<Returned> {
        (**self).returned()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        (**self).completed(now, cookie);
    }

    fn done(&self) -> bool {
        (**self).done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_calls_in_a_row_those_count_that_returned_at_a_time_or_later() {
        for span in 0..4 {
            for count in 1..5_u32 {
                let calls = Returned {
                    began: Time::from_nanos(10),
                    span: Nanos::from_nanos(span),
                    calls: count,
                };
                let ends = (1..=u64::from(count)).map(|nth| 10 + span * nth);
                for from in 5..30 {
                    let since = ends.clone().filter(|end| *end >= from).count();
                    let found = calls.since(Time::from_nanos(from));
                    assert_eq!(found as usize, since, "{calls:?} since {from}");
                }
                assert_eq!(Some(calls.ended().as_nanos()), ends.max());
            }
        }
    }
}
