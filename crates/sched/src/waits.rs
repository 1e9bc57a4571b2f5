//! Counts of waits and of their outcomes.

/// The counts of a scheduler that may wait.
///
/// A wait begins when the scheduler has requests queued and answers
/// [`Dispatch::IdleUntil`](crate::Dispatch::IdleUntil) for a request that has not arrived. The wait ends
/// when the scheduler next hands out a request, or has none. It is won if that request was awaited and
/// came meanwhile, else lost. A policy that holds requests back for other reasons (a limit for the
/// drive, a batch that has to end) does not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStats {
    /// Streams that were established, so that the disk waits for them. Zero if the policy forms no
    /// streams.
    pub streams_established: u64,
    /// Established streams that may still go on, as of the last event.
    pub streams: u64,
    /// Waits that began: all won and lost waits, and the one under way.
    pub waits: u64,
    /// Waits in which the awaited request came and was served.
    pub waits_won: u64,
    /// Waits with another end.
    pub waits_lost: u64,
}

impl core::ops::AddAssign for WaitStats {
    fn add_assign(&mut self, other: WaitStats) {
        self.streams_established += other.streams_established;
        self.streams += other.streams;
        self.waits += other.waits;
        self.waits_won += other.waits_won;
        self.waits_lost += other.waits_lost;
    }
}

/// Counts the waits of one scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    begun: u64,
    won: u64,
    lost: u64,
}

impl Waits {
    /// Returns true if a wait is under way.
    pub fn waiting(&self) -> bool {
        self.begun > self.won + self.lost
    }

    /// Begins a wait: requests are queued, and the disk is held for another request.
    pub fn hold(&mut self) {
        if !self.waiting() {
            self.begun += 1;
        }
    }

    /// Ends the wait, if one is under way. `won` is true if the request that goes now was awaited.
    pub fn end(&mut self, won: bool) {
        if self.waiting() {
            self.won += u64::from(won);
            self.lost += u64::from(!won);
        }
    }

    /// Returns the counts for a policy that forms no streams.
    pub fn stats(&self) -> WaitStats {
        WaitStats {
            waits: self.begun,
            waits_won: self.won,
            waits_lost: self.lost,
            ..WaitStats::default()
        }
    }
}
