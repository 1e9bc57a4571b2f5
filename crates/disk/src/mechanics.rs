//! The times that the arm and the platter take.
//!
//! All times are pure functions of a profile, the track of the arm, the time, and the sectors to
//! access. An access consists of steps, one for each run of sectors in consecutive slots:
//!
//! ```text
//! at ──► seek ──► head switch ──► rotation ──► transfer ──► seek or switch ──► skew ──► transfer ──► end
//!        └─────── positioning time ───────┘    first track                                next track
//! ```
//!
//! * *seek*: the arm moves and settles. Writes include the further settling.
//! * *switch*: another head is selected (with its write settling). The wait for the first sector of a later track in
//!   the same access counts too. The skew makes this wait long enough to hide the switch.
//! * *rotation*: every other wait for a sector, including the dead time of a zero-latency access.
//! * *transfer*: sectors pass under the head.
//!
//! The platter turns freely: at time t the angle under the heads is (t mod turn) / turn. So
//! shifting an access by whole turns changes nothing. Slots begin at whole nanoseconds. A transfer
//! ends exactly when the next slot begins, so that the sector after it needs no wait.
//!
//! Seek, head switch and write settling combine as in DiskSim's `dm_mech_g1`: the longer of seek
//! and head switch, plus the settling for a write if either was needed. The settling is negative on
//! drives whose writes settle sooner than their reads. A movement never takes less than zero. A
//! zero-latency access takes the sectors of a track in the order in which they pass (DiskSim,
//! "immediate").

mod seek;
#[cfg(test)]
mod tests;
mod walk;

use crate::profile::Profile;
use headtime_sched::Op;
use headtime_units::{Angle, Nanos, SignedNanos, Time, Track};
use seek::LeastTimes;
pub use seek::SeekTimes;
pub(crate) use seek::evaluate as evaluate_seek;
pub use walk::{Access, Step, Walk};

/// The mechanics of a drive.
#[derive(Clone, Debug)]
pub struct Mechanics {
    turn: Nanos,
    /// 2^64 / turn, rounded down.
    turns_per_nano: u64,
    read: SeekTimes,
    /// See [`Mechanics::seek_at_least`].
    least: LeastTimes,
    /// Equal to `read` unless the profile has a curve of its own for writes.
    write: Option<SeekTimes>,
    head_switch: Nanos,
    write_settle: SignedNanos,
    least_positioning: Nanos,
    zero_latency_read: bool,
    zero_latency_write: bool,
    on_track_at_once: bool,
}

/// Time to move the heads from one track to another, ready to transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reposition {
    /// If the arm moves: everything.
    pub seek: Nanos,
    /// If only the head changes: everything.
    pub switch: Nanos,
}

impl Reposition {
    /// Seek and switch together. One is always zero.
    pub fn total(self) -> Nanos {
        self.seek + self.switch
    }
}

impl Mechanics {
    /// The mechanics of a drive at its nominal speed.
    pub fn new(profile: &Profile) -> Mechanics {
        let cylinders = profile.geometry.cylinders;
        let turn = profile.rotation.turn();
        let read = SeekTimes::new(&profile.seek.read, cylinders);
        let write = profile
            .seek
            .write
            .as_ref()
            .map(|curve| SeekTimes::new(curve, cylinders));
        let write_settle = profile.seek.write_settle;
        // A write that settles sooner than a read arrives sooner.
        let soonest = |read: Nanos, write: Nanos| read.min(write).min(write_settle.after(write));
        Mechanics {
            turn,
            turns_per_nano: u64::MAX / turn.as_nanos(),
            // With one cylinder the arm has nowhere to go.
            least_positioning: read.time(1.min(cylinders - 1)) * 2 / 3,
            least: read.least_with(write.as_ref().unwrap_or(&read), soonest),
            read,
            write,
            head_switch: profile.seek.head_switch,
            write_settle,
            zero_latency_read: profile.access.zero_latency_read,
            zero_latency_write: profile.access.zero_latency_write,
            on_track_at_once: profile.access.on_track_at_once,
        }
    }

    /// Turns the drive into a unit that revolves once in `turn`.
    ///
    /// # Panics
    ///
    /// If `turn` is zero or 4.29 s and more.
    pub fn with_turn(mut self, turn: Nanos) -> Mechanics {
        assert!(!turn.is_zero() && turn.as_nanos() < 1 << 32);
        self.turn = turn;
        self.turns_per_nano = u64::MAX / turn.as_nanos();
        self
    }

    /// Time of one revolution.
    pub fn turn(&self) -> Nanos {
        self.turn
    }

    /// Returns true if the profile lets this operation take sectors as they pass.
    pub fn zero_latency(&self, op: Op) -> bool {
        if op.is_read() {
            self.zero_latency_read
        } else {
            self.zero_latency_write
        }
    }

    /// Switching heads, without write settling.
    pub fn head_switch(&self) -> Nanos {
        self.head_switch
    }

    /// The additional settling before a write, after any movement or head switch. Negative if
    /// writes settle sooner.
    pub fn write_settle(&self) -> SignedNanos {
        self.write_settle
    }

    /// Time to move the arm over `distance` cylinders, ready to read or, but for
    /// [`Mechanics::write_settle`], to write. Zero for zero.
    pub fn seek(&self, distance: u32, op: Op) -> Nanos {
        match &self.write {
            Some(write) if !op.is_read() => write.time(distance),
            _ => self.read.time(distance),
        }
    }

    /// A lower bound of the time of every seek over `distance` cylinders or more, for reads and
    /// writes, with and without the settling of writes.
    ///
    /// Measured seek times may dip, so [`Mechanics::seek`] itself is no such bound.
    pub fn seek_at_least(&self, distance: u32) -> Nanos {
        self.least.time(distance)
    }

    /// Time to move the heads from one track to another, settled and ready to transfer. Zero if the
    /// tracks are equal. Rotation is not included.
    pub fn reposition(&self, from: Track, to: Track, op: Op) -> Reposition {
        if from == to {
            return Reposition::default();
        }
        let switch = if from.head == to.head {
            Nanos::ZERO
        } else {
            self.head_switch
        };
        let settle = |time: Nanos| {
            // Nothing moved or switched in no time needs no settling.
            if op.is_read() || time.is_zero() {
                time
            } else {
                self.write_settle.after(time)
            }
        };
        let distance = from.cylinder.distance(to.cylinder);
        if distance == 0 {
            Reposition {
                seek: Nanos::ZERO,
                switch: settle(switch),
            }
        } else {
            Reposition {
                seek: settle(self.seek(distance, op).max(switch)),
                switch: Nanos::ZERO,
            }
        }
    }

    /// Extra time of a read whose arm movement, `way`, is too short to hide the drive's set-up: the least positioning
    /// time, two thirds of a single-cylinder seek, minus `way`. Reads that go on from the sector before need no set-up.
    /// Zero for other operations, and zero on the same track if the profile says so
    /// ([`AccessSpec::on_track_at_once`](crate::profile::AccessSpec::on_track_at_once)).
    ///
    /// DiskSim takes no time for a read on the track where the head is. On the four drives whose parameters were
    /// extracted automatically, measured reads on the same track or cylinder take 0.6 to 1.2 ms longer. This is 0.6 to
    /// 0.8 of their single-cylinder seeks. On the fifth drive the set-up makes no difference. The one factor for all
    /// drives was chosen by the demerit of all five.
    pub fn set_up(&self, way: Nanos, op: Op) -> Nanos {
        let at_once = self.on_track_at_once && way.is_zero();
        if op.is_read() && !at_once {
            self.least_positioning.saturating_sub(way)
        } else {
            Nanos::ZERO
        }
    }

    /// The point of a turn at which the heads are over `angle`, counted from angle zero: 0 to less
    /// than a turn, rounded down.
    pub fn phase(&self, angle: Angle) -> Nanos {
        Nanos::from_nanos((u64::from(angle.to_bits()) * self.turn.as_nanos()) >> 32)
    }

    /// The point of a turn at which the platter is at `now`.
    pub fn phase_at(&self, now: Time) -> Nanos {
        // `now % turn` without a division: the estimate of whole turns is at most one short, since
        // the reciprocal is less than 2^-64 off and times are less than 2^64.
        let (now, turn) = (now.as_nanos(), self.turn.as_nanos());
        let turns = ((u128::from(now) * u128::from(self.turns_per_nano)) >> 64) as u64;
        let phase = now - turns * turn;
        Nanos::from_nanos(if phase >= turn { phase - turn } else { phase })
    }

    /// The point of a turn at which the platter is `span` after it was at `phase`.
    #[inline]
    pub(crate) fn phase_after(&self, phase: Nanos, span: Nanos) -> Nanos {
        let mut later = phase + span;
        // Seeks take a few turns at most.
        if later >= self.turn * 8 {
            later = Nanos::from_nanos(later.as_nanos() % self.turn.as_nanos());
        }
        while later >= self.turn {
            later -= self.turn;
        }
        later
    }

    /// Time that the platter takes from one point of a turn to another: less than a turn, zero if
    /// they are equal.
    pub fn wait(&self, from: Nanos, to: Nanos) -> Nanos {
        if to >= from {
            to - from
        } else {
            to + self.turn - from
        }
    }
}
