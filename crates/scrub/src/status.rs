//! Status of a scrub, as its callers see it.

use super::promises::PromiseStatus;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

/// State of a scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubState {
    /// The scrub reads.
    Running,
    /// A caller has paused the scrub.
    Paused,
    /// An error is in the way. The scrub is suspended until a caller resumes it.
    Held(String),
    /// All sectors that can be read have been read.
    Done,
    /// A caller has stopped the scrub.
    Stopped,
}

impl ScrubState {
    /// Name of the state, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            ScrubState::Running => "running",
            ScrubState::Paused => "paused",
            ScrubState::Held(_) => "held",
            ScrubState::Done => "done",
            ScrubState::Stopped => "stopped",
        }
    }

    /// Returns true if the scrub has ended.
    pub fn is_over(&self) -> bool {
        matches!(self, ScrubState::Done | ScrubState::Stopped)
    }
}

/// Comparison with hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashStatus {
    /// File of the hashes.
    pub file: PathBuf,
    /// Blocks that were compared since the server started.
    pub compared: u64,
    /// Reason why hashes from before the scrub could not be compared.
    pub why_not: Option<String>,
}

/// Copy that a scrub makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyStatus {
    /// File of the image.
    pub file: PathBuf,
    /// First byte of the disk in the file, and the byte behind the last; `None` if the file has the whole disk.
    pub part: Option<(u64, u64)>,
    /// Number of times since the server started that a write made a block wanted again that was copied or being copied.
    pub again: u64,
    /// Reason why an unfinished copy of an earlier server does not count.
    pub why_anew: Option<String>,
    /// True if the moment of the copy is fixed: clients' later writes are not in the image. If a read or the file still fails, a later
    /// moment replaces this moment.
    pub is_settled: bool,
}

/// Use of gaps, or the reason why a scrub does not read in gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Gaps are used.
    Used,
    /// Gaps could be used, but the angle of the platter is not known yet.
    NotFound,
    /// Too many reads of clients end at another time than predicted, or after reads that were sent later.
    Surprised,
    /// The drive destages before many reads of clients, and gap reads are rationed.
    WritesBack,
    /// Gap reads would cost clients hits in the drive's buffer.
    Costly,
    /// The drive has so deep a queue that its order cannot be predicted.
    OtherOrder,
    /// There is no assumed profile.
    NoBelief,
    /// The assumed profile is smaller than the disk, or has another sector size.
    WrongBelief,
}

/// Deepest queue of the drive whose order can be predicted. With more commands, the drive chooses the next one.
const PREDICTED_COMMANDS_MAX: u32 = 2;

impl Gaps {
    /// Expected use of gaps of a drive that gets up to `depth` commands at a time, until clients' requests show the actual one. `self` is
    /// the use of gaps as the profile allows it.
    pub(super) fn at_depth(self, depth: u32) -> Gaps {
        match self {
            Gaps::Used if depth > PREDICTED_COMMANDS_MAX => Gaps::OtherOrder,
            known => known,
        }
    }

    /// Description, for people.
    pub fn text(self) -> &'static str {
        match self {
            Gaps::Used => "used",
            Gaps::NotFound => "not used: the angle of the platter is not known yet, or cannot be",
            Gaps::Surprised => {
                "resting: the drive serves clients in an order of its own, such as staying with who reads in order; depth = 1 leaves it no choice"
            }
            Gaps::WritesBack => {
                "rationed: the drive writes from its buffer between the reads of clients; with its write cache off it would not"
            }
            Gaps::Costly => {
                "resting: clients would lose what the drive's buffer serves them; what passes directly in front of their reads is read with them"
            }
            Gaps::OtherOrder => {
                "not used: the drive has more commands at a time than can be predicted; depth = 1 makes room for them"
            }
            Gaps::NoBelief => "not used: no drive is assumed; give belief in the configuration",
            Gaps::WrongBelief => "not used: the assumed drive in is of another size",
        }
    }
}

/// Status of a scrub.
///
/// Invariants:
///
/// - `hashes` or `copy` is `None`.
/// - `state = Done` ⇒ `left = 0`.
/// - `failing ≤ errors`.
#[derive(Clone, Debug)]
pub struct ScrubStatus {
    /// State of the scrub.
    pub state: ScrubState,
    /// Sectors to read.
    pub range: Extent,
    /// Sectors of a block.
    pub block: Sectors,
    /// Blocks of the range.
    pub blocks: u64,
    /// Blocks that are still to be read.
    pub left: u64,
    /// Blocks read in gaps since the server started.
    pub in_gaps: u64,
    /// Blocks read in idle time since the server started.
    pub in_idle_time: u64,
    /// Blocks read by clients since the server started.
    pub by_others: u64,
    /// Blocks read at clients' cost since the server started: the last blocks of a copy, and reads that a date needs.
    pub outright: u64,
    /// Reads that failed for another reason than unreadable sectors.
    pub errors: u64,
    /// Number of such failures in a row, up to now.
    pub failing: u32,
    /// Sectors that cannot be read.
    pub unreadable: FoundSectors,
    /// Sectors whose contents have changed without a write.
    pub changed: FoundSectors,
    /// Damage of the scrub's files, since the server started or the scrub began.
    pub damage: Damage,
    /// Comparison with hashes, if the scrub has hashes.
    pub hashes: Option<HashStatus>,
    /// Copy, if the scrub copies.
    pub copy: Option<CopyStatus>,
    /// Use of gaps.
    pub gaps: Gaps,
    /// Time without requests after which idle time is used; `None` if the scrub does not use idle time.
    pub idle: Option<Nanos>,
    /// Path of the progress file, if progress is recorded.
    pub kept: Option<String>,
    /// Pace of the last minutes.
    pub pace: Pace,
    /// Status of the promises, if there are any.
    pub promise: Option<PromiseStatus>,
}

impl ScrubStatus {
    /// Share of the blocks that has been read, 0 to 1.
    pub fn share(&self) -> f64 {
        match self.blocks {
            0 => 1.0,
            blocks => (blocks - self.left.min(blocks)) as f64 / blocks as f64,
        }
    }

    /// Remaining time at the pace of the last minutes; `None` if the scrub does not run or the pace is not known.
    pub fn remaining(&self) -> Option<Nanos> {
        let rate = self.pace.blocks_per_s()?;
        let seconds = self.left as f64 / rate;
        let runs = self.state == ScrubState::Running && seconds < 1e9;
        runs.then(|| Nanos::from_millis((seconds * 1e3) as u64))
    }
}

/// Damage of the files of a scrub. The server has made these pages anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Pages and lines whose checksums did not fit.
    pub pages: u64,
    /// Sectors whose state was on these pages.
    pub sectors: FoundSectors,
}

impl Damage {
    /// Adds a damaged page, which had the state of these sectors.
    pub fn add(&mut self, extent: Extent) {
        self.pages += 1;
        if !extent.is_empty() {
            self.sectors.add(extent);
        }
    }

    /// Adds other damage.
    pub fn add_all(&mut self, other: &Damage) {
        for extent in other.sectors.extents() {
            self.sectors.add(extent);
        }
        self.pages += other.pages;
    }
}

/// Most extents in the list. Sectors of further extents are only counted.
const FOUND_MAX: usize = 1 << 16;

/// Most finds that enter the list, also if they join to fewer extents. Sectors of further finds are only counted.
const FINDS_MAX: u64 = 1 << 18;

/// List of sectors with a finding, such as unreadable sectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundSectors {
    /// Start and end of each extent. No extent touches another.
    extents: BTreeMap<u64, u64>,
    finds: u64,
    /// Number of sectors that were found and are in no extent of the list.
    beyond: u64,
}

impl FoundSectors {
    /// Adds sectors. Returns true if they are new and the list has room for them.
    pub fn add(&mut self, extent: Extent) -> bool {
        let (mut start, mut end) = (extent.start.get(), extent.end().get());
        let before = self.extents.range(..=start).next_back();
        let joined = match before {
            Some((_, until)) if *until >= end => return false,
            Some((from, until)) if *until >= start => Some(*from),
            _ => None,
        };
        let behind = self.extents.range(start..=end).next().is_some();
        let is_full = self.extents.len() >= FOUND_MAX && joined.is_none() && !behind;
        if is_full || self.finds >= FINDS_MAX {
            self.beyond += extent.len.get();
            return false;
        }
        self.finds += 1;
        start = joined.unwrap_or(start);
        while let Some((from, until)) = self.extents.range(start..=end).next() {
            let (from, until) = (*from, *until);
            self.extents.remove(&from);
            end = end.max(until);
        }
        self.extents.insert(start, end);
        true
    }

    /// Removes sectors. Returns true if the list had any of these sectors.
    pub fn remove(&mut self, extent: Extent) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        let mut any = false;
        // Handles the last extent that begins before the end, until no extent reaches over the start.
        while let Some((from, until)) = self.extents.range(..end).next_back() {
            let (from, until) = (*from, *until);
            if until <= start {
                break;
            }
            any = true;
            self.extents.remove(&from);
            if from < start {
                self.extents.insert(from, start);
            }
            if until > end {
                self.extents.insert(end, until);
            }
        }
        any
    }

    /// Returns true if the list is full, and more sectors may have been found.
    pub fn is_full(&self) -> bool {
        self.extents.len() >= FOUND_MAX || self.finds >= FINDS_MAX
    }

    /// Number of the sectors of `extent` that are in the list.
    pub fn within(&self, extent: Extent) -> u64 {
        let (start, end) = (extent.start.get(), extent.end().get());
        let overlaps = self.extents.range(..end).rev();
        let overlaps = overlaps.take_while(|(_, until)| **until > start);
        overlaps
            .map(|(from, until)| (*until).min(end) - (*from).max(start))
            .sum()
    }

    /// Adds sectors that were found but whose addresses are not listed.
    pub fn add_beyond(&mut self, sectors: u64) {
        self.beyond += sectors;
    }

    /// Number of sectors that are not in the list. A sector that was found twice counts twice.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Extents of the list, by address. Neighbouring sectors form one extent.
    pub fn extents(&self) -> Vec<Extent> {
        let extents = self.extents.iter();
        let extents = extents.map(|(start, end)| Extent::at(*start, end - start));
        extents.collect()
    }

    /// Number of all sectors that were found.
    pub fn sectors(&self) -> u64 {
        let kept: u64 = self.extents.iter().map(|(start, end)| end - start).sum();
        kept + self.beyond
    }
}

/// Pace at which blocks are read.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Samples of time and blocks read until then, the oldest first.
    seen: VecDeque<(Time, u64)>,
}

/// Time between two samples.
const LOOK_EVERY: Nanos = Nanos::from_secs(5);

/// Number of samples that are retained: ten minutes.
const SAMPLES_MAX: usize = 120;

impl Pace {
    /// Notes the number of blocks that are read by now.
    pub fn note(&mut self, now: Time, read: u64) {
        let is_first = self.seen.len() < 2;
        let before = self.seen.iter().nth_back(1);
        if is_first || before.is_some_and(|(at, _)| now.saturating_since(*at) >= LOOK_EVERY) {
            self.seen.push_back((now, read));
            if self.seen.len() > SAMPLES_MAX {
                self.seen.pop_front();
            }
        } else if let Some(last) = self.seen.back_mut() {
            *last = (now, read);
        }
    }

    /// Drops all samples, since they say nothing about the future pace.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Blocks per second; `None` if the pace is not known, or no block was read.
    pub fn blocks_per_s(&self) -> Option<f64> {
        let ((from, before), (to, after)) = (self.seen.front()?, self.seen.back()?);
        let span = to.saturating_since(*from).as_secs_f64();
        let read = after.saturating_sub(*before) as f64;
        (span > 0.2 && read > 0.0).then(|| read / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_side_by_side_are_one_extent() {
        let mut found = FoundSectors::default();
        for (start, len) in [(10, 1), (8, 1), (9, 1), (20, 4), (22, 8), (8, 1)] {
            found.add(Extent::at(start, len));
        }
        assert_eq!(found.extents(), [Extent::at(8, 3), Extent::at(20, 10)]);
        assert_eq!(found.sectors(), 13);
        // An extent around others, and an extent between two.
        assert!(found.add(Extent::at(5, 8)) && found.add(Extent::at(13, 7)));
        assert_eq!(found.extents(), [Extent::at(5, 25)]);
        assert!(!found.add(Extent::at(6, 3)));
    }

    #[test]
    fn sectors_that_can_be_read_after_all_are_taken_out_of_extents() {
        let found = || {
            let mut found = FoundSectors::default();
            for (start, len) in [(10, 10), (30, 5), (40, 1)] {
                found.add(Extent::at(start, len));
            }
            found
        };
        for (start, len, left) in [
            (0, 10, &[(10, 10), (30, 5), (40, 1)][..]),
            (20, 10, &[(10, 10), (30, 5), (40, 1)]),
            (12, 3, &[(10, 2), (15, 5), (30, 5), (40, 1)]),
            (15, 20, &[(10, 5), (40, 1)]),
            (30, 5, &[(10, 10), (40, 1)]),
            (5, 33, &[(40, 1)]),
            (0, 100, &[]),
        ] {
            let mut found = found();
            let before = found.sectors();
            let any = found.remove(Extent::at(start, len));
            let expected: Vec<Extent> =
                left.iter().map(|(at, len)| Extent::at(*at, *len)).collect();
            assert_eq!(found.extents(), expected, "{start} {len}");
            assert_eq!(any, found.sectors() < before);
        }
    }

    #[test]
    fn of_very_many_sectors_it_is_counted_how_many_and_no_more_is_kept() {
        let mut found = FoundSectors::default();
        for lba in 0..FOUND_MAX as u64 + 10 {
            assert_eq!(found.add(Extent::at(lba * 3, 1)), lba < FOUND_MAX as u64);
        }
        assert_eq!(found.extents().len(), FOUND_MAX);
        assert_eq!(found.sectors(), FOUND_MAX as u64 + 10);
        // A sector that touches a listed extent takes no more room.
        assert!(found.add(Extent::at(1, 1)));
        // A disk without readable sectors must not fill the list without end.
        let mut found = FoundSectors::default();
        for lba in 0..FINDS_MAX + 7 {
            found.add(Extent::at(lba, 1));
        }
        assert_eq!((found.extents().len(), found.beyond()), (1, 7));
    }

    #[test]
    fn the_pace_is_that_of_the_last_minutes() {
        let mut pace = Pace::default();
        assert_eq!(pace.blocks_per_s(), None);
        // A thousand a second for an hour, then a hundred.
        let mut read = 0;
        for second in 0..7_200_u64 {
            pace.note(Time::ZERO + Nanos::from_secs(second), read);
            read += if second < 3_600 { 1_000 } else { 100 };
        }
        let rate = pace.blocks_per_s().expect("it is known");
        assert!((99.0..101.0).contains(&rate), "{rate}");
    }
}
