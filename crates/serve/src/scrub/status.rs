//! How far a scrub is, as everybody may see it.

use super::promises::PromiseStatus;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

/// In what state a scrub is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubState {
    /// It reads.
    Running,
    /// Somebody has told it to rest.
    Paused,
    /// Something is in its way, and it rests until somebody tells it to go on.
    Held(String),
    /// All has been read that can be.
    Done,
    /// It was given up.
    Stopped,
}

impl ScrubState {
    /// Its name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            ScrubState::Running => "running",
            ScrubState::Paused => "paused",
            ScrubState::Held(_) => "held",
            ScrubState::Done => "done",
            ScrubState::Stopped => "stopped",
        }
    }

    /// Returns true if there is nothing more to come of it.
    pub fn is_over(&self) -> bool {
        matches!(self, ScrubState::Done | ScrubState::Stopped)
    }
}

/// What a scrub with hashes compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashStatus {
    /// Where the hashes are.
    pub file: PathBuf,
    /// Blocks that were compared so far; since the server started.
    pub compared: u64,
    /// Why nothing could be compared of what was hashed before the scrub began.
    pub why_not: Option<String>,
}

/// What a scrub copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyStatus {
    /// Where to.
    pub file: PathBuf,
    /// The bytes of the disk that the file has, the first one and the one behind the last; `None` if it has all.
    pub part: Option<(u64, u64)>,
    /// Blocks that were copied, or were being copied, and had to be read again since somebody wrote to them; since the server started.
    pub again: u64,
    /// Reason why an unfinished copy of an earlier server does not count.
    pub why_anew: Option<String>,
    /// Whether the image is settled: it will be the disk as it was at a line that is behind us, unless a read or the file fails still.
    pub is_settled: bool,
}

/// Whether a scrub reads in gaps, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// It does.
    Used,
    /// It could, but nothing has shown yet where the platter is.
    NotFound,
    /// Too many reads of clients end at another time than was predicted, or after others that were sent later.
    Surprised,
    /// The drive destages before many reads of clients, and gap reads are rationed.
    WritesBack,
    /// Clients would lose hits of the drive's buffer by it.
    Costly,
    /// More commands are in the drive than anybody can say the order of.
    OtherOrder,
    /// Nobody says which drive it is.
    NoBelief,
    /// The drive that is believed in is not as large as the disk, or has other sectors.
    WrongBelief,
}

/// With more commands in it than these the drive chooses among them, and nobody knows which is next.
const PREDICTED: u32 = 2;

impl Gaps {
    /// What is to be expected as long as no client has shown it, of a drive that may get so many commands at a time; `self` is what is known of
    /// the drive.
    pub(super) fn at_depth(self, depth: u32) -> Gaps {
        match self {
            Gaps::Used if depth > PREDICTED => Gaps::OtherOrder,
            known => known,
        }
    }

    /// The same, for people.
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
            Gaps::NoBelief => "not used: no drive is believed in; give belief in the configuration",
            Gaps::WrongBelief => "not used: the drive that is believed in is of another size",
        }
    }
}

/// How far a scrub is.
#[derive(Clone, Debug)]
pub struct ScrubStatus {
    /// In what state it is.
    pub state: ScrubState,
    /// What is read.
    pub range: Extent,
    /// Sectors of a block.
    pub block: Sectors,
    /// Blocks of the range.
    pub blocks: u64,
    /// Those that are still to be read.
    pub left: u64,
    /// Blocks read in gaps since the server started.
    pub in_gaps: u64,
    /// The same, while nobody asked for anything.
    pub in_idle_time: u64,
    /// The same, by others.
    pub by_others: u64,
    /// The same, at the cost of clients: the last blocks of a copy, and what a date needs.
    pub outright: u64,
    /// Reads that failed, and were not for sectors that cannot be read.
    pub errors: u64,
    /// How many of them in a row, up to now.
    pub failing: u32,
    /// Sectors that cannot be read.
    pub unreadable: FoundSectors,
    /// Sectors that are not what they were, though nobody has written to them.
    pub changed: FoundSectors,
    /// Damage of its files, since the server started or the scrub began.
    pub damage: Damage,
    /// What is compared, if anything is.
    pub hashes: Option<HashStatus>,
    /// What is copied, if anything is.
    pub copy: Option<CopyStatus>,
    /// Whether gaps are used.
    pub gaps: Gaps,
    /// After how long without requests idle time is used; `None` if it is not.
    pub idle: Option<Nanos>,
    /// Where its progress is kept, if it is.
    pub kept: Option<String>,
    /// How fast it is.
    pub pace: Pace,
    /// What is said of its promises, if there are any.
    pub promise: Option<PromiseStatus>,
}

impl ScrubStatus {
    /// The share that has been read, 0 to 1.
    pub fn share(&self) -> f64 {
        match self.blocks {
            0 => 1.0,
            blocks => (blocks - self.left.min(blocks)) as f64 / blocks as f64,
        }
    }

    /// How long it still takes at the pace of the last minutes, if that says anything.
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
    /// The sectors that the pages were about.
    pub sectors: FoundSectors,
}

impl Damage {
    /// A page is damaged that is about these sectors.
    pub fn add(&mut self, extent: Extent) {
        self.pages += 1;
        if !extent.is_empty() {
            self.sectors.add(extent);
        }
    }

    /// All of this is damaged, too.
    pub fn add_all(&mut self, other: &Damage) {
        for extent in other.sectors.extents() {
            self.sectors.add(extent);
        }
        self.pages += other.pages;
    }
}

/// The most extents of which it is kept where they are; of more than these it is only counted how many sectors they have.
const FOUND_MAX: usize = 1 << 16;

/// Of so many finds it is kept where they were, also if they lie side by side.
const FINDS_MAX: u64 = 1 << 18;

/// Sectors that cannot be read, or of which something else was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundSectors {
    /// Where each extent begins, and where it ends; none touches another.
    extents: BTreeMap<u64, u64>,
    finds: u64,
    /// Sectors that are in none of them.
    beyond: u64,
}

impl FoundSectors {
    /// These are found. Returns true if they are new and it is kept where they are.
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

    /// These are not what was found any more. Returns true if it was kept of any of them that they were.
    pub fn remove(&mut self, extent: Extent) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        let mut any = false;
        // The last one that begins before the end, as long as there is one that reaches over the start.
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

    /// Number of these sectors that are in the list.
    pub fn within(&self, extent: Extent) -> u64 {
        let (start, end) = (extent.start.get(), extent.end().get());
        let overlaps = self.extents.range(..end).rev();
        let overlaps = overlaps.take_while(|(_, until)| **until > start);
        overlaps
            .map(|(from, until)| (*until).min(end) - (*from).max(start))
            .sum()
    }

    /// So many more were found elsewhere.
    pub fn add_beyond(&mut self, sectors: u64) {
        self.beyond += sectors;
    }

    /// Sectors of which it is not kept where they are, those that were found twice twice.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Those of which it is kept where they are, in order of address, those side by side as one.
    pub fn extents(&self) -> Vec<Extent> {
        let extents = self.extents.iter();
        let extents = extents.map(|(start, end)| Extent::at(*start, end - start));
        extents.collect()
    }

    /// How many there are.
    pub fn sectors(&self) -> u64 {
        let kept: u64 = self.extents.iter().map(|(start, end)| end - start).sum();
        kept + self.beyond
    }
}

/// How fast blocks are read.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// How many were read by when, the oldest first.
    seen: VecDeque<(Time, u64)>,
}

/// Between two looks.
const LOOK_EVERY: Nanos = Nanos::from_secs(5);

/// So many looks back: ten minutes.
const LOOKS: usize = 120;

impl Pace {
    /// So many were read by now.
    pub fn note(&mut self, now: Time, read: u64) {
        let is_first = self.seen.len() < 2;
        let before = self.seen.iter().nth_back(1);
        if is_first || before.is_some_and(|(at, _)| now.saturating_since(*at) >= LOOK_EVERY) {
            self.seen.push_back((now, read));
            if self.seen.len() > LOOKS {
                self.seen.pop_front();
            }
        } else if let Some(last) = self.seen.back_mut() {
            *last = (now, read);
        }
    }

    /// What was before says nothing of what comes.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Blocks in a second; `None` if that is not known, or none were read.
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
        // One that is around, and one that is between.
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
        // What touches one that is kept takes no more room.
        assert!(found.add(Extent::at(1, 1)));
        // A disk of which nothing can be read does not write without end.
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
