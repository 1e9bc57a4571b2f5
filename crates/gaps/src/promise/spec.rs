//! What is promised of a scan, and what is said of it.

use headtime_units::{Nanos, Sectors, Time};

/// What is promised of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promised {
    /// All is read so long after that was promised.
    pub finish_within: Option<Nanos>,
    /// So much of that is over when the scan hears of it.
    pub passed: Nanos,
    /// The 99th percentile of the clients' latencies is longer by this share of it at most, such as 0.05.
    pub p99: Option<f64>,
    /// Time after which the load repeats.
    pub cycle: Nanos,
    /// Sectors read in a row at clients' cost, such as those of 4 MiB.
    pub unit: Sectors,
    /// Idle time is used when nobody has waited for anything for so long.
    pub patience: Nanos,
}

impl Promised {
    /// The usual [unit](Promised::unit): a seek costs a small part of the time that it takes.
    pub const UNIT_BYTES: u64 = 4 << 20;
}

/// Whether a scan can keep what was promised of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// All that was promised.
    Holds,
    /// It will not have read all by the date, unless it delays clients by more than was promised.
    Late,
    /// Clients wait longer than was promised.
    Slow,
    /// Neither.
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

    /// Returns true if the date cannot hold, or did not.
    pub fn is_late(self) -> bool {
        matches!(self, Verdict::Late | Verdict::Neither)
    }

    /// The same where the date cannot hold.
    pub fn and_late(self) -> Verdict {
        Verdict::of(true, matches!(self, Verdict::Slow | Verdict::Neither))
    }

    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unknown => "unknown",
            Verdict::Holds => "holds",
            Verdict::Late => "late",
            Verdict::Slow => "slow",
            Verdict::Neither => "neither",
        }
    }

    /// Every one.
    pub const ALL: [Verdict; 5] = [
        Verdict::Unknown,
        Verdict::Holds,
        Verdict::Late,
        Verdict::Slow,
        Verdict::Neither,
    ];

    /// In words.
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

/// What clients wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientWaits {
    /// Requests since the scan began.
    pub requests: u64,
    /// What 99 % of them have not exceeded.
    pub p99: Nanos,
    /// The same without the scan, estimated.
    pub p99_without: Nanos,
    /// How long the scan has looked at clients and the drive.
    pub looked: Nanos,
    /// Drive time that the scan asked for at clients' cost.
    pub asked: Nanos,
    /// Drive time that the scan took at clients' cost.
    pub taken: Nanos,
}

/// What there is to be told of a scan with promises.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Whether it keeps them.
    pub verdict: Verdict,
    /// Since when that is said.
    pub since: Time,
    /// When all will have been read if it goes on as it does; `None` if nobody knows, or in more than ten years.
    pub ends: Option<Time>,
    /// What clients wait for.
    pub waits: ClientWaits,
    /// Whether the drive gets few commands at a time for it.
    pub is_narrow: bool,
}
