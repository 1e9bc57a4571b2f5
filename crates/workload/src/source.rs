//! The seam between a simulation and whatever makes its requests.

use headtime_sched::{Class, Flags, Foretold, Op, Origin};
use headtime_units::{Extent, Lba, Nanos, Time};

/// A request that a [`Source`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// Names the request to its source when it completes; unlike a tag it is never used again. Of a
    /// replay, the index of the request in its [`Script`](crate::Script).
    pub cookie: u64,
    /// When it was due; at most the `now` of the call that returned it. Response times count from
    /// here.
    pub arrival: Time,
    /// What to do.
    pub op: Op,
    /// Sectors of the drive. A flush has no sectors, and begins where its sender's part of the disk begins.
    pub extent: Extent,
    pub flags: Flags,
    pub origin: Origin,
    pub class: Class,
}

/// Makes requests, some of them in answer to completions.
///
/// A source is a state machine without a clock. Its caller repeats:
///
/// ```text
/// while let Some(request) = source.poll(now) { hand it in }
/// sleep until source.next_arrival() or until something completes
/// for each completion: source.completed(now, cookie)
/// ```
///
/// `now` never goes backwards. A source depends on when its requests complete, not on how often it
/// is polled. It does not allocate once it is built.
pub trait Source {
    /// When the next request is due if nothing completes before; `None` if none is due until
    /// something completes, or at all. May lie in the past, which means at once.
    fn next_arrival(&self) -> Option<Time>;

    /// The next request that is due at `now`; `None` if there is none for the moment. To be called
    /// until then.
    fn poll(&mut self, now: Time) -> Option<NewRequest>;

    /// Returns where a process's part of the disk begins, if the process has gone to sleep on a request since
    /// this was last asked. Holding requests back for others to join them gains nothing there any more. Callers
    /// ask each time that [`Source::poll`] has returned `None`. While a place is due, [`Source::next_arrival`]
    /// is not later than now.
    fn unplug(&mut self) -> Option<Lba> {
        None
    }

    /// Whether [`Source::foretell`] is to be asked, which may cost a source something to prepare.
    /// To be called before the first poll, if at all.
    fn tell_ahead(&mut self, _ahead: bool) {}

    /// The next request that has become certain to come, each told once. To be asked after each
    /// poll and completion until it returns `None`.
    fn foretell(&mut self) -> Option<Foretold> {
        None
    }

    /// Calls of processes that have returned, each told once; nothing of sources that only make requests. To be asked
    /// after each poll until it returns `None`: calls return while a source is polled, and the next poll forgets them.
    fn returned(&mut self) -> Option<Returned> {
        None
    }

    /// Notes that the request with this cookie has completed.
    ///
    /// # Panics
    ///
    /// If no such request was made. Naming one twice may go unnoticed.
    fn completed(&mut self, now: Time, cookie: u64);

    /// Returns true if every request was made and has completed.
    fn done(&self) -> bool;
}

/// Calls that returned, whether they made requests or found all in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// When a process made the first of them.
    pub began: Time,
    /// How long each took. The next one was made when the one before returned.
    pub span: Nanos,
    /// How many there are, 1 or more.
    pub calls: u32,
}

impl Returned {
    /// When the last of them returned.
    pub fn ended(&self) -> Time {
        self.began + self.span * u64::from(self.calls)
    }

    /// How many of them returned at `from` or later.
    pub fn since(&self, from: Time) -> u32 {
        if self.ended() < from {
            return 0;
        }
        // At least one returned in time, so that fewer than all did before.
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
