//! Holds the arm for the next read of a stream, also when the drive reads nothing ahead.
//!
//! Reading ahead keeps the arm for a stream as far as it goes (`choice`). Firmware may in addition hold the arm for
//! [`QueueSpec::stream_hold`] after a read that continued another. If a host asks for one read at a time, its next read
//! is then served before all waiting commands. [`QueueSpec::stream_cap`] ends the hold as it ends reading ahead.
//!
//! [`QueueSpec::stream_hold`]: crate::profile::QueueSpec::stream_hold
//! [`QueueSpec::stream_cap`]: crate::profile::QueueSpec::stream_cap

use super::command::Command;
use crate::queue::Reach;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Least number of reads in a row that make a stream for which the arm is held.
const IN_ROW: u16 = 2;

/// Ends of reads that are remembered, so that streams that are served in turn are recognized.
const READ_ENDS_MAX: usize = 8;

/// Ends of recent reads.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    span: Nanos,
    /// Most recent first.
    ends: Vec<End>,
    held: Option<HeldStream>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    next: Lba,
    /// Time at which the read that ends there has completed.
    at: Time,
    /// Reads that have continued each other up to here, each sent when the one before had completed, while other commands
    /// were in the drive.
    in_row: u16,
}

/// The stream that the arm served last.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldStream {
    /// First sector of the stream's next read.
    pub next: Lba,
    /// Time at which the arm began to serve the stream.
    pub since: Time,
    /// Time at which the drive gives up waiting.
    pub until: Time,
}

impl HeldStream {
    /// The reach of the arm once the stream's next read has come.
    pub fn reach(&self) -> Reach {
        Reach {
            op: Op::Read,
            start: self.next,
            next: self.next,
            limit: self.next + Sectors::new(1),
            around: self.next,
        }
    }
}

impl Streams {
    /// An empty memory of streams. The arm is held for `span`; with a span of zero nothing is
    /// remembered.
    pub fn new(span: Nanos) -> Streams {
        let room = if span.is_zero() { 0 } else { READ_ENDS_MAX };
        Streams {
            span,
            ends: Vec::with_capacity(room),
            held: None,
        }
    }

    /// Notes that a read of `extent`, sent at `sent`, is served from `now` on and completes `at`. `moves` is true if
    /// the arm serves the read. `counts` is true if other commands are in the drive.
    pub fn note(&mut self, extent: Extent, [sent, now, at]: [Time; 3], moves: bool, counts: bool) {
        let known = self.ends.iter().position(|end| end.next == extent.start);
        let known = known.map(|place| self.ends.remove(place));
        let before = known.map_or(0, |end| end.in_row);
        if self.ends.len() == READ_ENDS_MAX {
            // Single reads are many, and must not evict a stream.
            let single = self.ends.iter().rposition(|end| end.in_row < IN_ROW);
            self.ends.remove(single.unwrap_or(READ_ENDS_MAX - 1));
        }
        // Reads that wait in the drive together do not need a hold: they do not count.
        let alone = known.is_none_or(|end| end.at <= sent);
        let in_row = match counts {
            true => before.saturating_add(u16::from(alone)),
            false => 0,
        };
        let next = extent.end();
        self.ends.insert(0, End { next, at, in_row });
        let goes_on = self.held.filter(|held| held.next == extent.start);
        if in_row >= IN_ROW && (moves || goes_on.is_some()) {
            self.held = Some(HeldStream {
                next,
                since: goes_on.map_or(now, |held| held.since),
                until: at.saturating_add(self.span),
            });
        } else if moves || goes_on.is_some() {
            self.held = None;
        }
    }

    /// Returns true if the profile has the drive hold its arm for streams.
    pub fn is_enabled(&self) -> bool {
        !self.span.is_zero()
    }

    /// The stream for which the arm is held, or whose next read has come in time.
    pub fn held(&self) -> Option<HeldStream> {
        self.held
    }

    /// The arm does something else.
    pub fn end_hold(&mut self) {
        self.held = None;
    }

    /// Returns true if the arm is not free for a command, since a hold waits for another.
    pub fn keep_from(&self, command: &Command, now: Time) -> bool {
        let held = self.held.filter(|held| now < held.until);
        held.is_some_and(|held| command.op != Op::Read || command.extent.start != held.next)
    }
}
