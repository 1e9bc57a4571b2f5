//! Options of a job in gaps.

use headtime_sched::Class;
use headtime_units::{Nanos, Sectors};

/// Reaction of the drive to a second command on a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// Scheduling from outside the drive. A second command on a track may make the drive read ahead first. So a gap read has no command of
    /// its own on the track where the preceding command ends, nor where the foreground request begins or ends (section 4.3).
    #[default]
    Outside,
    /// Scheduling in the firmware: there is no such limit. If a track passes in two pieces, its end and then its beginning, two commands
    /// read the pieces as one gap read.
    Firmware,
}

impl Limits {
    pub(super) fn same_track(self) -> bool {
        self == Limits::Firmware
    }
}

/// Measure of the best gap read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The number of wanted blocks (section 4.3).
    #[default]
    Blocks,
    /// The share of the track that is read, and a little more if no block of the track is wanted afterwards. Then short tracks and
    /// remainders of tracks are not left for the end of a scan, and the scan ends sooner.
    Tracks,
}

/// Treatment of reads that the drive's buffer may serve, from earlier reads or from reading ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hits {
    /// No gap read precedes a read that may be a hit. There is no gap before a hit, and sequential clients keep the sectors that the drive
    /// reads ahead for them. Gap reads are also suspended while more than an eighth of the last 64 reads of the medium are surprises. A
    /// surprise ends at another time than predicted, or is overtaken by a later read. Drives that choose the order of service by themselves
    /// cause surprises.
    Spared,
    /// As [`Hits::Spared`]. In addition, gap reads are suspended while they cause, or would cause, more than one of 64 client reads to miss
    /// the drive's buffer.
    #[default]
    Guarded,
    /// Hits are treated as other reads, so they surprise the scheduler (section 3.1).
    Ignored,
}

impl Hits {
    /// Returns true if the job models the drive's buffer.
    pub(super) fn counts(self) -> bool {
        self != Hits::Ignored
    }
}

/// Number of commands that the drive gets at a time while a scan reads.
///
/// With many commands in the drive the scheduler cannot know which command precedes a request, so it cannot compute gaps. With two commands
/// it can compute gaps, but the drive has less to choose from and is slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriveQueue {
    /// Two commands if a promised date needs gap reads and no bound on clients' waits is promised. Otherwise the number without the scan.
    #[default]
    Promised,
    /// Number of commands without the scan.
    Kept,
    /// Two commands at most.
    Short,
}

/// Options of gap reads and idle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeblockOptions {
    /// Margin that is added to the prediction of each seek to a gap read and from it.
    pub conservatism: Nanos,
    /// Most gap reads before one request.
    pub picks: u32,
    /// Most steps of a search.
    pub steps: u64,
    /// Rule for a second command on a track.
    pub limits: Limits,
    /// Measure of the best gap read.
    pub prefer: Prefer,
    /// Treatment of reads that the drive's buffer may serve.
    pub hits: Hits,
    /// Number of commands in the drive.
    pub queue: DriveQueue,
    /// Sectors of a block, 1 or more. A block on two tracks is read together with the sectors that pass at the end of the first track.
    pub block: Sectors,
    /// Reads in idle time; `None` for none.
    pub idle: Option<Idle>,
}

/// Idle reads: pieces in order of address while no client's request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Idle time before the first piece. A client's request that arrives then waits for one piece at most.
    pub after: Nanos,
    /// Most sectors of a piece, rounded up to a block.
    pub piece: Sectors,
}

/// Reads in competition with clients: pieces in order of address, queued like a client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Class of the reads.
    pub class: Class,
    /// Number of pieces that are queued at a time, 1 or more.
    pub outstanding: u32,
    /// Most sectors of a piece, rounded up to a block.
    pub piece: Sectors,
}

impl Default for FreeblockOptions {
    /// Margin of 0.3 ms (section 5.3), one gap read, any number of steps, [`Limits::Outside`], blocks of one sector.
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
