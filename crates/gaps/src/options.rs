//! What a job in gaps is told to do.

use headtime_sched::Class;
use headtime_units::{Nanos, Sectors};

/// What a drive does with commands on one track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// From outside: a second command on a track may make the drive read ahead before it does anything else. No pick is alone on
    /// the track where the request before it ends, which is in the drive already, or on one where that behind it begins or ends (section 4.3).
    #[default]
    Outside,
    /// In the firmware there is no such limit. What passes of a track in two pieces, at its end and then at its beginning, is one
    /// pick in two commands.
    Firmware,
}

impl Limits {
    pub(super) fn same_track(self) -> bool {
        self == Limits::Firmware
    }
}

/// Which of the picks that can be read in a gap is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// That with the most wanted blocks (section 4.3).
    #[default]
    Blocks,
    /// That which has the greatest share of its track, and a little more if nothing is wanted there any more. Short tracks and rests of tracks are
    /// not left for the end of a scan, so that it ends sooner.
    Tracks,
}

/// What is done before a read that the drive's buffer may serve: of what was read before, or to which the drive reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hits {
    /// Nothing is looked for. There is no gap before a hit, and clients that read in order keep what the drive reads ahead for them.
    /// Nor is anything looked for while more than an eighth of the last 64 reads of clients that should not have been hits ended at
    /// another time than was predicted, or after one that was sent later: the drive serves them in an order of its own, or writes what
    /// it has in its buffer.
    Spared,
    /// The same; and nothing is read in gaps as long as more than one of 64 reads of clients misses the drive's buffer for what is read in gaps, or would be.
    #[default]
    Guarded,
    /// The same as before any other: hits surprise the scheduler (section 3.1).
    Ignored,
}

impl Hits {
    /// Returns true if the drive's buffer is looked at.
    pub(super) fn counts(self) -> bool {
        self != Hits::Ignored
    }
}

/// How many commands the drive gets at a time while a scan reads.
///
/// Nobody knows what a request comes behind in a drive that has many, so there are no gaps then. With few there are, and the drive serves less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriveQueue {
    /// As many as without the scan, unless it has promised a date, does not keep to it in idle time alone, and nobody has promised that clients wait no
    /// longer: then two.
    #[default]
    Promised,
    /// As many as without the scan.
    Kept,
    /// Two at most.
    Short,
}

/// How gaps are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeblockOptions {
    /// Added to the prediction of each seek to a pick and from it.
    pub conservatism: Nanos,
    /// The most picks in a gap.
    pub picks: u32,
    /// The most steps of a search.
    pub steps: u64,
    /// See there.
    pub limits: Limits,
    /// See there.
    pub prefer: Prefer,
    /// See there.
    pub hits: Hits,
    /// See there.
    pub queue: DriveQueue,
    /// Sectors of a block, 1 or more. One that lies on two tracks is read in a gap with what passes at the end of the first.
    pub block: Sectors,
    /// Whether to read also while nobody asks for anything.
    pub idle: Option<Idle>,
}

/// How a disk is read while nobody asks for anything: piece by piece in order of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// For how long nobody has to have waited for anything. Whoever asks then waits for a piece at most.
    pub after: Nanos,
    /// The most sectors of a piece, rounded up to a block.
    pub piece: Sectors,
}

/// How a disk is read at the cost of others: piece by piece in order of address, as a client would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The class of its reads.
    pub class: Class,
    /// How many pieces are asked for at a time, 1 or more.
    pub outstanding: u32,
    /// The most sectors of a piece, rounded up to a block.
    pub piece: Sectors,
}

impl Default for FreeblockOptions {
    /// 0.3 ms (section 5.3), one pick, any number of steps, as from outside, blocks of a sector.
    fn default() -> FreeblockOptions {
        FreeblockOptions {
            conservatism: Nanos::from_micros(300),
            picks: 1,
            steps: u64::MAX,
            limits: Limits::Outside,
            prefer: Prefer::Blocks,
            hits: Hits::Guarded,
            queue: DriveQueue::Promised,
            block: Sectors::new(1),
            idle: None,
        }
    }
}
