//! Writes of clients that wait in the drive's buffer, and the idle time that the drive needs to destage them.

use headtime_engine::{Finished, Outcome};
use headtime_sched::{Flags, Op};
use headtime_units::{Nanos, Time};

/// Idle time after which a drive has begun to destage. Profiles assume 50 ms.
const DESTAGE_IDLE: Nanos = Nanos::from_millis(100);

/// Most writes that are counted: as many as the buffer of a large drive holds.
const WRITES_MAX: u64 = 8192;

/// Number of writes that the drive has taken into its buffer and probably not destaged.
///
/// A drive destages one write in each turn of an idle time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unwritten {
    writes: u64,
}

impl Unwritten {
    /// Returns the idle time until all writes are destaged.
    pub fn takes(&self, turn: Nanos) -> Nanos {
        match self.writes {
            0 => Nanos::ZERO,
            writes => DESTAGE_IDLE + turn * writes,
        }
    }

    /// Notes an idle time.
    pub fn idle(&mut self, span: Nanos, turn: Nanos) {
        let destages = span.saturating_sub(DESTAGE_IDLE).as_nanos() / turn.as_nanos().max(1);
        self.writes = self.writes.saturating_sub(destages);
    }

    /// Notes a request of a client that is done.
    pub fn noticed(&mut self, now: Time, done: &Finished, turn: Nanos) {
        if done.outcome != Outcome::Done {
            return;
        }
        match done.request.op {
            Op::Flush => self.writes = 0,
            // A write to the medium takes half a turn in the mean.
            Op::Write if now.saturating_since(done.issued) * 8 < turn => {
                let is_forced = done.request.flags.has(Flags::FUA);
                self.writes = (self.writes + u64::from(!is_forced)).min(WRITES_MAX);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::{Class, Origin, Request};
    use headtime_units::Extent;

    const TURN: Nanos = Nanos::from_millis(8);

    /// Notes a client's request that is done after `took`.
    fn done(unwritten: &mut Unwritten, op: Op, flags: Flags, took: Nanos) {
        let done = Finished {
            id: 0,
            outcome: Outcome::Done,
            request: Request {
                tag: (),
                op,
                extent: Extent::at(0, 8),
                arrival: Time::ZERO,
                origin: Origin::default(),
                class: Class::default(),
                flags,
            },
            issued: Time::ZERO,
            surprise: None,
        };
        unwritten.noticed(Time::ZERO + took, &done, TURN);
    }

    #[test]
    fn each_write_that_ends_in_the_buffer_takes_a_turn_of_idle_time() {
        let mut unwritten = Unwritten::default();
        assert_eq!(unwritten.takes(TURN), Nanos::ZERO);
        let quick = Nanos::from_micros(200);
        for _ in 0..10 {
            done(&mut unwritten, Op::Write, Flags::NONE, quick);
        }
        // These requests are on the medium, or are no writes.
        done(
            &mut unwritten,
            Op::Write,
            Flags::NONE,
            Nanos::from_millis(4),
        );
        done(&mut unwritten, Op::Write, Flags::FUA, quick);
        done(&mut unwritten, Op::Read, Flags::NONE, quick);
        assert_eq!(unwritten.takes(TURN), DESTAGE_IDLE + TURN * 10);
        unwritten.idle(DESTAGE_IDLE, TURN);
        assert_eq!(unwritten.takes(TURN), DESTAGE_IDLE + TURN * 10);
        unwritten.idle(DESTAGE_IDLE + TURN * 4, TURN);
        assert_eq!(unwritten.takes(TURN), DESTAGE_IDLE + TURN * 6);
        unwritten.idle(Nanos::from_secs(1), TURN);
        assert_eq!(unwritten.takes(TURN), Nanos::ZERO);
    }

    #[test]
    fn nothing_waits_behind_a_flush() {
        let mut unwritten = Unwritten::default();
        done(&mut unwritten, Op::Write, Flags::NONE, Nanos::ZERO);
        done(&mut unwritten, Op::Flush, Flags::NONE, Nanos::from_secs(1));
        assert_eq!(unwritten.takes(TURN), Nanos::ZERO);
    }
}
