//! Accounts for the time of the arm.
//!
//! Every instant belongs to exactly one [`Part`]. The parts of a [`HeadTime`] sum to the time that
//! has passed. Work for a command that the host waits for comes first, so that a wait for the bus
//! is overhead even while the arm reads ahead:
//!
//! ```text
//! submit                                                                         complete
//!   │ command   │  arm moves │ waits for  │ sectors │ next  │ sectors │ bus not     │
//!   │ processed │ and settles│ the sector │ pass    │ track │ pass    │ hidden      │
//!   ├ overhead ─┼──── seek ──┼─ rotation ─┼transfer ┼switch ┼transfer ┼─ overhead ──┤
//!                                                                       read-ahead ─┼─► idle
//!              (bus of the command before: hidden)                                  └─► or waiting
//! ```
//!
//! *Switch* is a head switch and the skew that hides it. The dead time of a zero-latency access is
//! *rotation*. *Destage* is all movement of the arm that writes back data for which no command
//! waits. *Read-modify-write* is the cost of writing a sector of the medium in part, for commands
//! and for destaging. It lasts from the beginning of the read of the sector's rest until the head
//! is there again.
//!
//! The arm may be at rest while the host has requests pending. This time is *waiting* if the
//! scheduler chose not to send a request. The time is *held* if the host's queue holds the requests
//! back under any scheduler: for order, or until others join them. The time is *overhead* if only
//! the drive's own work keeps the requests out, because the drive already has as many commands as
//! the host sends at a time.

use headtime_units::{Lba, Nanos, Time};

/// An activity of the arm. The arm has exactly one at every instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Moving, settling included.
    Seek,
    /// Switching heads, and the skew that hides the switch.
    Switch,
    /// Waiting for a sector to come round.
    Rotation,
    /// Sectors that a command wants pass under the head.
    Transfer,
    /// Processing a command, or sending its data, with nothing else to do.
    Overhead,
    /// Filling the buffer with sectors that no command asked for.
    ReadAhead,
    /// Writing data that the host already counts as written.
    Destage,
    /// Reading the rest of a sector of the medium that is written in part, and coming back to it.
    ReadModifyWrite,
    /// At rest by the choice of the scheduler, which has requests.
    Waiting,
    /// At rest while requests are held back for order, or until others join them.
    Held,
    /// At rest.
    Idle,
}

impl Part {
    /// All parts, in the order of the columns of a report.
    pub const ALL: [Part; 11] = [
        Part::Seek,
        Part::Switch,
        Part::Rotation,
        Part::Transfer,
        Part::Overhead,
        Part::ReadAhead,
        Part::Destage,
        Part::ReadModifyWrite,
        Part::Waiting,
        Part::Held,
        Part::Idle,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Seek => "seek",
            Part::Switch => "switch",
            Part::Rotation => "rotation",
            Part::Transfer => "transfer",
            Part::Overhead => "overhead",
            Part::ReadAhead => "read-ahead",
            Part::Destage => "destage",
            Part::ReadModifyWrite => "read-modify-write",
            Part::Waiting => "waiting",
            Part::Held => "held",
            Part::Idle => "idle",
        }
    }
}

/// The division of a span of time into parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadTime([Nanos; Part::ALL.len()]);

impl HeadTime {
    /// The time of one part.
    pub fn get(&self, part: Part) -> Nanos {
        self.0[part as usize]
    }

    pub(crate) fn of_part(part: Part, time: Nanos) -> HeadTime {
        let mut all = HeadTime::default();
        all.0[part as usize] = time;
        all
    }

    /// The sum of all parts.
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }

    /// The time in which the arm was neither waiting, held nor idle.
    pub fn busy(&self) -> Nanos {
        let rest = [Part::Waiting, Part::Held, Part::Idle].map(|part| self.get(part));
        self.total() - rest.into_iter().sum()
    }

    /// The time since `earlier`, part by part.
    ///
    /// # Panics
    ///
    /// If `earlier` is not an earlier reading of the same drive.
    pub fn since(&self, earlier: &HeadTime) -> HeadTime {
        let mut parts = self.0;
        for (part, before) in parts.iter_mut().zip(earlier.0) {
            *part -= before;
        }
        HeadTime(parts)
    }

    /// Adds the parts of another drive or span.
    pub fn add(&mut self, other: &HeadTime) {
        for (part, more) in self.0.iter_mut().zip(other.0) {
            *part += more;
        }
    }

    /// Each part with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Nanos)> + '_ {
        Part::ALL.into_iter().map(|part| (part, self.get(part)))
    }
}

/// A stretch of time in which the arm has one activity, for plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Beginning of the stretch.
    pub from: Time,
    /// End of the stretch.
    pub to: Time,
    /// Position or destination of the arm: the first sector concerned. In idle time, the last
    /// sector before.
    pub lba: Lba,
    /// Activity of the arm.
    pub part: Part,
}

/// A stretch of time that is known in advance.
#[derive(Clone, Copy, Debug)]
struct Phase {
    until: Time,
    lba: Lba,
    part: Part,
}

/// Keeps the account of one arm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    total: HeadTime,
    /// Everything before this is in `total`.
    settled: Time,
    /// The plan, in order. The first `done` phases are settled.
    phases: Vec<Phase>,
    done: usize,
    lba: Lba,
    spans: Option<Vec<Span>>,
}

impl Ledger {
    /// Records spans from now on, or stops recording and drops the spans.
    pub fn record(&mut self, on: bool) {
        self.spans = on.then(Vec::new);
    }

    /// The spans since the last call, in order.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.spans.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The account up to the last settling.
    pub fn total(&self) -> HeadTime {
        self.total
    }

    /// End of the time that is accounted for.
    pub fn settled(&self) -> Time {
        self.settled
    }

    /// The end of the plan.
    pub fn planned(&self) -> Time {
        self.phases
            .last()
            .map_or(self.settled, |phase| phase.until.max(self.settled))
    }

    /// Plans `part` from the end of the plan up to `until`. No change if the plan ends later.
    pub fn plan(&mut self, until: Time, lba: Lba, part: Part) {
        if until > self.planned() {
            self.phases.push(Phase { until, lba, part });
        }
    }

    /// Enters the plan up to `now` into the account.
    pub fn settle(&mut self, now: Time) {
        while let Some(&phase) = self.phases.get(self.done) {
            if phase.until > now {
                self.fill(now, phase.lba, phase.part);
                return;
            }
            self.fill(phase.until, phase.lba, phase.part);
            self.done += 1;
        }
        self.phases.clear();
        self.done = 0;
    }

    /// Settles the time up to `now`, for which there was no plan, as `part`.
    pub fn fill(&mut self, now: Time, lba: Lba, part: Part) {
        if now <= self.settled {
            return;
        }
        self.total.0[part as usize] += now - self.settled;
        if let Some(spans) = &mut self.spans {
            match spans.last_mut() {
                Some(last) if last.part == part && last.lba == lba && last.to == self.settled => {
                    last.to = now;
                }
                _ => spans.push(Span {
                    from: self.settled,
                    to: now,
                    lba,
                    part,
                }),
            }
        }
        self.lba = lba;
        self.settled = now;
    }

    /// Like [`Ledger::fill`], at the last position of the arm.
    pub fn rest(&mut self, now: Time, part: Part) {
        self.fill(now, self.lba, part);
    }

    /// Drops the plan. Everything up to `now` has been settled.
    pub fn replan(&mut self) {
        self.phases.clear();
        self.done = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn parts_sum_to_the_time() {
        let mut ledger = Ledger::default();
        ledger.record(true);
        ledger.plan(at(10), Lba::new(5), Part::Overhead);
        ledger.plan(at(30), Lba::new(5), Part::Seek);
        ledger.plan(at(25), Lba::new(5), Part::Rotation);
        ledger.plan(at(40), Lba::new(5), Part::Transfer);
        ledger.settle(at(20));
        assert_eq!(ledger.total().get(Part::Seek), Nanos::from_nanos(10));
        ledger.settle(at(100));
        ledger.rest(at(100), Part::Idle);
        let total = ledger.total();
        assert_eq!(total.total(), Nanos::from_nanos(100));
        assert_eq!(total.get(Part::Rotation), Nanos::ZERO);
        assert_eq!(total.busy(), Nanos::from_nanos(40));
        let spans = ledger.take_spans();
        assert_eq!(spans.len(), 4);
        assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!(spans[3].lba, Lba::new(5));
    }

    #[test]
    fn what_is_dropped_from_the_plan_is_not_counted() {
        let mut ledger = Ledger::default();
        ledger.plan(at(50), Lba::ZERO, Part::Overhead);
        ledger.settle(at(20));
        ledger.replan();
        ledger.plan(at(60), Lba::ZERO, Part::Seek);
        ledger.settle(at(60));
        assert_eq!(ledger.total().get(Part::Overhead), Nanos::from_nanos(20));
        assert_eq!(ledger.total().get(Part::Seek), Nanos::from_nanos(40));
    }
}
