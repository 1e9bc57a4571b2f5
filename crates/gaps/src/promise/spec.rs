//! Promises of a scan, and the verdict on these promises.

use headtime_units::{Nanos, Sectors, Time};

/// Promises of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promised {
    /// Time, from the promise, within which all blocks are read.
    pub finish_within: Option<Nanos>,
    /// Part of that time that had passed when the scan was notified.
    pub passed: Nanos,
    /// Largest increase of the 99th percentile of clients' latencies, as a share such as 0.05.
    pub p99: Option<f64>,
    /// Time after which the load repeats.
    pub cycle: Nanos,
    /// Sectors read in a row at clients' cost, such as 4 MiB.
    pub unit: Sectors,
    /// Idle time after which the scan reads.
    pub patience: Nanos,
}

impl Promised {
    /// Bytes of the usual [unit](Promised::unit). The seek takes a small part of the time that such a unit takes.
    pub const UNIT_BYTES: u64 = 4 << 20;
}

/// Verdict on a scan's promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The verdict is not known yet.
    #[default]
    Unknown,
    /// All promises hold.
    Holds,
    /// The date cannot hold, unless the scan delays clients by more than was promised.
    Late,
    /// Clients wait longer than was promised.
    Slow,
    /// The date and the bound on clients' waits both fail.
    Neither,
}

impl Verdict {
    pub(super) fn of(late: bool, slow: bool) -> Verdict {
        match (late, slow) {
            (false, false) => Verdict::Holds,
            (true, false) => Verdict::Late,
            (false, true) => Verdict::Slow,
            (true, true) => Verdict::Neither,
        }
    }

    /// Returns true if the date cannot hold, or did not hold.
    pub fn is_late(self) -> bool {
        matches!(self, Verdict::Late | Verdict::Neither)
    }

    /// Returns this verdict for a date that cannot hold.
    pub fn and_late(self) -> Verdict {
        Verdict::of(true, matches!(self, Verdict::Slow | Verdict::Neither))
    }

    /// Returns the verdict's name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unknown => "unknown",
            Verdict::Holds => "holds",
            Verdict::Late => "late",
            Verdict::Slow => "slow",
            Verdict::Neither => "neither",
        }
    }

    /// All verdicts.
    pub const ALL: [Verdict; 5] = [
        Verdict::Unknown,
        Verdict::Holds,
        Verdict::Late,
        Verdict::Slow,
        Verdict::Neither,
    ];

    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Unknown => "not known yet",
            Verdict::Holds => "holds",
            Verdict::Late => "the date cannot hold",
            Verdict::Slow => "the p99 cannot hold",
            Verdict::Neither => "neither can hold",
        }
    }
}

/// Waits of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientWaits {
    /// Number of requests since the scan began.
    pub requests: u64,
    /// 99th percentile of the latencies of clients' requests since the scan began.
    pub p99: Nanos,
    /// Estimate of the 99th percentile without the scan.
    pub p99_without: Nanos,
    /// Time for which the scan has measured clients and the drive.
    pub looked: Nanos,
    /// Drive time that the scan asked for at clients' cost.
    pub asked: Nanos,
    /// Drive time that the scan took at clients' cost.
    pub taken: Nanos,
}

/// Status of a scan with promises.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Verdict on the promises.
    pub verdict: Verdict,
    /// Time of the verdict.
    pub since: Time,
    /// Expected end of the scan at its present rates; `None` if unknown, or in more than ten years.
    pub ends: Option<Time>,
    /// Waits of clients.
    pub waits: ClientWaits,
    /// True if the drive gets two commands at most for this scan.
    pub is_narrow: bool,
}
