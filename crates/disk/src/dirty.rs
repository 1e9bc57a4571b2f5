//! Dirty data, for a buffer that stores them by address and not by segment.
//!
//! Dirty data form *runs*, ordered by address, which neither overlap nor touch. A write that
//! overlaps or touches runs joins them into one run, which one pass of the arm can write. A run is
//! as old as its oldest sector. When the arm sets out to write data, the data leave their run. They
//! stay in the buffer until they are on the medium, and no write joins them.
//!
//! Nothing is allocated in steady state.

use crate::profile::CacheSpec;
use crate::queue::Target;
use headtime_sched::SortedMap;
use headtime_units::{Extent, Time};

/// Consecutive dirty sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirtyRun {
    /// The first sector.
    pub start: u64,
    /// The sector behind the last.
    pub end: u64,
    /// Arrival time of the oldest sector.
    pub since: Time,
    /// True if the part outside of the run has been read: of the medium's sector at the beginning,
    /// and of that at the end.
    read: [bool; 2],
    /// Position of the first sector.
    pub target: Target,
    /// Rank of the run by age: older runs have smaller stamps.
    stamp: u64,
}

impl DirtyRun {
    /// Sectors of the run.
    pub fn extent(&self) -> Extent {
        Extent::at(self.start, self.end - self.start)
    }
}

/// All dirty data of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Dirty {
    /// The runs by their first sectors.
    runs: SortedMap<u64, DirtyRun>,
    /// The first sectors by age, with when the oldest sector of the run came.
    ages: SortedMap<u64, (u64, Time)>,
    /// Stamp of the next new run.
    stamp: u64,
    /// Sectors of all runs and of `writing`.
    sectors: u64,
    writing: Option<Extent>,
    /// Most sectors and most runs.
    room: u64,
    most: usize,
    /// Sectors of the host in one of the medium.
    per: u64,
    /// Most sectors of a pass.
    size: u64,
}

impl Dirty {
    /// No dirty data, for a drive whose medium's sectors have `per` sectors of the host each.
    pub fn new(spec: &CacheSpec, per: u64) -> Dirty {
        Dirty {
            runs: SortedMap::new(),
            ages: SortedMap::new(),
            stamp: 0,
            sectors: 0,
            writing: None,
            room: spec.write_room(),
            most: spec.destage_runs as usize,
            per,
            size: u64::from(spec.segment_sectors),
        }
    }

    /// Returns true if all is on the medium.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.writing.is_none()
    }

    /// Sectors that are not on the medium.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns true if half of the room for dirty data is used.
    pub fn is_half_full(&self) -> bool {
        self.sectors * 2 > self.room || self.runs.len() * 2 > self.most
    }

    /// All dirty extents, in no order.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        let runs = self.runs.iter().map(|(_, run)| run.extent());
        self.writing.into_iter().chain(runs)
    }

    /// The run of the first dirty sector at or behind `lba`.
    pub fn at_or_behind(&self, lba: u64) -> Option<DirtyRun> {
        if self.runs.is_empty() {
            return None;
        }
        let (mut down, mut up) = self.runs.around(&lba);
        let here = down.next().filter(|(_, run)| run.end > lba);
        here.or_else(|| up.next()).map(|(_, run)| run)
    }

    /// The first run that begins at `lba` or behind.
    pub fn begins_at_or_behind(&self, lba: u64) -> Option<DirtyRun> {
        self.runs.first_at_or_after(&lba).map(|(_, run)| run)
    }

    /// Positions of the runs that begin before `lba`, downward, and of the other runs, upward.
    pub fn around(
        &self,
        lba: u64,
    ) -> (
        impl Iterator<Item = (u64, Target)>,
        impl Iterator<Item = (u64, Target)>,
    ) {
        let place = |(start, run): (u64, DirtyRun)| (start, run.target);
        let (down, up) = self.runs.around(&lba);
        (down.map(place), up.map(place))
    }

    /// The run that begins at `lba`.
    pub fn get(&self, lba: u64) -> Option<DirtyRun> {
        self.runs.get(&lba)
    }

    /// The oldest run.
    pub fn oldest(&self) -> Option<DirtyRun> {
        let (_, (start, _)) = self.ages.first()?;
        self.runs.get(&start)
    }

    /// Arrival time of the oldest sector of the oldest run.
    pub fn oldest_since(&self) -> Option<Time> {
        self.ages.first().map(|(_, (_, since))| since)
    }

    /// A run with sectors of `extent`.
    pub fn overlapping(&self, extent: Extent) -> Option<DirtyRun> {
        self.at_or_behind(extent.start.get())
            .filter(|run| run.start < extent.end().get())
    }

    /// Returns true if the arm is writing sectors of `extent`.
    pub fn is_writing(&self, extent: Extent) -> bool {
        self.writing.is_some_and(|writing| writing.overlaps(extent))
    }

    /// Returns true if sectors of `extent` are dirty.
    pub fn overlaps(&self, extent: Extent) -> bool {
        self.is_writing(extent) || self.overlapping(extent).is_some()
    }

    /// Returns true if all sectors of `extent` are dirty.
    pub fn covers(&self, extent: Extent) -> bool {
        let (mut from, end) = (extent.start.get(), extent.end().get());
        while from < end {
            let here = self.first_dirty(from);
            match here.filter(|here| here.start.get() <= from) {
                Some(here) => from = here.end().get(),
                None => return false,
            }
        }
        true
    }

    /// The first stretch of dirty sectors that ends behind `lba`.
    pub fn first_dirty(&self, lba: u64) -> Option<Extent> {
        let run = self.at_or_behind(lba).map(|run| run.extent());
        let writing = self.writing.filter(|writing| writing.end().get() > lba);
        match (run, writing) {
            (Some(run), Some(writing)) if writing.start < run.start => Some(writing),
            (run, writing) => run.or(writing),
        }
    }

    /// Returns true if there is room for a write. Sectors that it overwrites count twice.
    pub fn has_room(&self, extent: Extent) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        if self.sectors + extent.len.get() > self.room {
            return false;
        }
        let meets = || {
            let near = self.at_or_behind(start.saturating_sub(1));
            near.is_some_and(|run| run.start <= end && run.end >= start)
        };
        self.runs.len() + usize::from(self.writing.is_some()) < self.most || meets()
    }

    /// Adds a write. There must be room for it, and the arm must not be writing any of its sectors.
    /// `target` returns the position of a sector.
    pub fn insert(&mut self, extent: Extent, now: Time, target: impl FnOnce(u64) -> Target) {
        debug_assert!(!self.is_writing(extent), "{extent} is being written");
        let (mut start, mut end) = (extent.start.get(), extent.end().get());
        let mut stamp = self.stamp;
        let mut since = now;
        let mut known = None;
        // First and last sector of the medium whose part outside of its run has been read.
        let (mut first, mut last) = (u64::MAX, None);
        // Runs that only touch the write join as well.
        while let Some(run) = self
            .at_or_behind(start.saturating_sub(1))
            .filter(|run| run.start <= end && run.end >= start)
        {
            self.take(&run);
            let ends = [run.start, run.end - 1].map(|lba| lba / self.per);
            for (sector, _) in ends.into_iter().zip(run.read).filter(|&(_, read)| read) {
                (first, last) = (first.min(sector), last.max(Some(sector)));
            }
            if run.start <= start {
                known = Some(run.target);
            }
            start = start.min(run.start);
            end = end.max(run.end);
            if run.stamp < stamp {
                (stamp, since) = (run.stamp, run.since);
            }
        }
        self.stamp += u64::from(stamp == self.stamp);
        let has_first = first == start / self.per;
        let has_last = last == Some((end - 1) / self.per);
        let run = DirtyRun {
            start,
            end,
            since,
            read: [has_first, has_last],
            target: known.unwrap_or_else(|| target(start)),
            stamp,
        };
        self.put(run);
    }

    fn put(&mut self, run: DirtyRun) {
        self.sectors += run.end - run.start;
        let before = self.runs.insert(run.start, run);
        let other = self.ages.insert(run.stamp, (run.start, run.since));
        debug_assert!(before.is_none() && other.is_none(), "{run:?} twice");
    }

    fn take(&mut self, run: &DirtyRun) {
        self.sectors -= run.end - run.start;
        let here = self.runs.remove(&run.start);
        let aged = self.ages.remove(&run.stamp);
        debug_assert!(here.is_some() && aged.is_some(), "{run:?} is not there");
    }

    /// Notes that the rest of the medium's sectors at the ends of a run has been read.
    pub fn complete(&mut self, start: u64) {
        let run = self.runs.get(&start).expect("a run begins there");
        // The rest at the end of a run is not read if the run is longer than a pass.
        let all = run.end - run.start <= self.size;
        let read = [true, all || run.read[1]];
        self.runs.insert(start, DirtyRun { read, ..run });
    }

    /// Returns true if one of the medium's sectors lies in part outside of a run.
    pub fn is_ragged(&self, run: &DirtyRun) -> bool {
        let divided = |lba: u64| !lba.is_multiple_of(self.per);
        self.per > 1 && !self.is_complete(run) && (divided(run.start) || divided(run.end))
    }

    /// Returns true if the drive has read the missing parts of the medium's sectors at the ends of
    /// a run. For a run that is longer than a pass only its beginning counts.
    fn is_complete(&self, run: &DirtyRun) -> bool {
        let whole = |lba: u64| lba.is_multiple_of(self.per);
        let long = run.end - run.start > self.size;
        let [first, last] = run.read;
        (first || last && whole(run.start)) && (last || long || whole(run.end))
    }

    /// Takes up to `most` sectors, for the arm to write, from the run that begins at `start`.
    /// Returns the extent to write, and true if the missing parts of the medium's sectors at the
    /// run's ends have been read. The rest of the run is as old as `now`. The rest follows at once
    /// if no other run is nearer.
    ///
    /// A long run is divided between two of the medium's sectors. Unless `all` is asked for, it is
    /// also divided in front of a last sector that it has only in part: the rest of that sector may
    /// still come.
    pub fn begin(
        &mut self,
        start: u64,
        most: u64,
        all: bool,
        now: Time,
        target: impl FnOnce(u64) -> Target,
    ) -> (Extent, bool) {
        debug_assert!(self.writing.is_none(), "there is one arm");
        let run = self.runs.get(&start).expect("a run begins there");
        self.take(&run);
        let mut end = run.end.min(start + most);
        let divides = end / self.per * self.per;
        let completed = self.is_complete(&run);
        let last = end == run.end && (all || completed);
        if divides > start && !last {
            end = divides;
        }
        let extent = Extent::at(start, end - start);
        self.writing = Some(extent);
        self.sectors += end - start;
        if end < run.end {
            let rest = DirtyRun {
                start: end,
                since: now,
                read: [false, run.read[1]],
                stamp: self.stamp,
                target: target(end),
                end: run.end,
            };
            self.stamp += 1;
            self.put(rest);
        }
        (extent, completed)
    }

    /// Ends the write of the arm. Returns the sectors that are written.
    pub fn end(&mut self) -> Extent {
        let writing = self.writing.take().expect("something is written");
        self.sectors -= writing.len.get();
        writing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Destage, WriteBack, by_name};
    use headtime_sched::Op;
    use headtime_units::{Nanos, Track};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Room for 600 sectors in 12 runs, eight sectors in one of the medium.
    fn dirty() -> Dirty {
        let mut spec = by_name("exos-x18").unwrap().cache;
        (spec.write_back, spec.destage) = (WriteBack::Full, Destage::Sweep);
        (spec.segment_sectors, spec.write_segments, spec.destage_runs) = (100, 6, 12);
        Dirty::new(&spec, 8)
    }

    /// A place that encodes the sector.
    fn target(lba: u64) -> Target {
        Target {
            track: Track::default(),
            phase: Nanos::from_nanos(lba),
            op: Op::Write,
        }
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn writes_that_touch_are_one_run_as_old_as_its_oldest_part() {
        let mut dirty = dirty();
        for (now, start) in [(1, 300), (2, 100), (3, 120), (4, 110)] {
            dirty.insert(Extent::at(start, 10), at(now), target);
        }
        let run = dirty.get(100).unwrap();
        assert_eq!((run.end, run.since), (130, at(2)));
        assert_eq!(dirty.oldest().unwrap().start, 300);
        assert_eq!(dirty.sectors(), 40);
        dirty.insert(Extent::at(95, 215), at(5), target);
        let run = dirty.oldest().unwrap();
        assert_eq!((run.start, run.end, run.since), (95, 310, at(1)));
        assert_eq!(run.target, target(95));
    }

    #[test]
    fn what_is_being_written_is_not_joined_and_is_dirty_until_it_is_done() {
        let mut dirty = dirty();
        dirty.insert(Extent::at(0, 100), at(1), target);
        let (extent, _) = dirty.begin(0, 40, false, at(2), target);
        assert_eq!(extent, Extent::at(0, 40));
        let rest = dirty.get(40).unwrap();
        assert_eq!(
            (rest.end, rest.since, rest.target),
            (100, at(2), target(40))
        );
        assert!(dirty.is_writing(Extent::at(39, 5)) && dirty.covers(Extent::at(0, 100)));
        assert_eq!((dirty.sectors(), dirty.end()), (100, Extent::at(0, 40)));
        assert_eq!(dirty.sectors(), 60);
        assert!(!dirty.covers(Extent::at(39, 2)) && !dirty.is_empty());
    }

    #[test]
    fn a_run_is_divided_between_sectors_of_the_medium() {
        for (start, len, most, all, end) in [
            (3, 80, 50, false, 48),
            (3, 80, 100, false, 80),
            (3, 80, 100, true, 83),
            (0, 80, 100, false, 80),
            (3, 4, 100, false, 7),
            (7, 9, 100, false, 16),
            (7, 10, 100, false, 16),
        ] {
            let mut dirty = dirty();
            dirty.insert(Extent::at(start, len), at(1), target);
            let (extent, _) = dirty.begin(start, most, all, at(2), target);
            assert_eq!(extent.end().get(), end, "{start} {len} {most} {all}");
        }
    }

    #[test]
    fn there_is_room_for_what_joins_a_run_when_there_are_as_many_as_may_be() {
        let mut dirty = dirty();
        for n in 0..12 {
            assert!(dirty.has_room(Extent::at(n * 40, 10)));
            dirty.insert(Extent::at(n * 40, 10), at(n), target);
        }
        assert!(!dirty.has_room(Extent::at(1_000, 1)));
        assert!(dirty.has_room(Extent::at(10, 1)) && dirty.has_room(Extent::at(36, 4)));
        assert!(!dirty.has_room(Extent::at(11, 1)) && !dirty.has_room(Extent::at(35, 4)));
        assert!(
            !dirty.has_room(Extent::at(10, 500)),
            "more than there is room for"
        );
    }

    proptest! {
        /// A sector is dirty if it was written since it was last on the medium, for any sequence of writes and
        /// destages. Each dirty sector is in one run, and no two runs touch.
        #[test]
        fn runs_are_what_was_written_and_not_destaged(
            steps in prop::collection::vec((0_u64..400, 1_u64..60, 0_u8..6, any::<bool>()), 1..120),
        ) {
            let mut dirty = dirty();
            // Time since which each sector is dirty. A run's time is at most the time of its oldest
            // sector.
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let mut writing: Option<Extent> = None;
            for (now, (start, len, kind, all)) in (0..).zip(steps) {
                let extent = Extent::at(start, len);
                match kind {
                    0..3 if dirty.has_room(extent) && !dirty.is_writing(extent) => {
                        dirty.insert(extent, at(now), target);
                        for sector in start..start + len {
                            model.entry(sector).or_insert(now);
                        }
                    }
                    3..5 if writing.is_none() => {
                        let run = dirty.at_or_behind(start).or(dirty.oldest());
                        if let Some(run) = run {
                            let (extent, _) = dirty.begin(run.start, len, all, at(now), target);
                            prop_assert!(extent.start.get() == run.start && extent.len.get() <= len.max(8));
                            writing = Some(extent);
                        }
                    }
                    _ => {
                        if let Some(extent) = writing.take() {
                            prop_assert_eq!(dirty.end(), extent);
                            model.retain(|sector, _| !(extent.start.get()..extent.end().get()).contains(sector));
                        }
                    }
                }
                let all: Vec<u64> = dirty
                    .extents()
                    .flat_map(|extent| extent.start.get()..extent.end().get())
                    .collect();
                let set: BTreeSet<u64> = all.iter().copied().collect();
                prop_assert_eq!(set.len(), all.len());
                prop_assert!(set.iter().eq(model.keys()));
                prop_assert_eq!(dirty.sectors(), all.len() as u64);
                let runs: Vec<DirtyRun> = dirty.runs.iter().map(|(_, run)| run).collect();
                prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert!(runs.iter().all(|run| run.target == target(run.start)));
                prop_assert_eq!(dirty.ages.len(), runs.len());
                prop_assert_eq!(dirty.oldest_since(), dirty.oldest().map(|run| run.since));
                if let Some(oldest) = dirty.oldest() {
                    prop_assert!(runs.iter().all(|run| run.since >= oldest.since));
                }
                let asked = Extent::at(start, len);
                let inside = (start..start + len).filter(|sector| set.contains(sector)).count();
                prop_assert_eq!(dirty.overlaps(asked), inside > 0);
                prop_assert_eq!(dirty.covers(asked), inside as u64 == len);
                let first = set.range(start..).next().copied();
                let found = dirty.first_dirty(start).map(|here| here.start.get().max(start));
                prop_assert_eq!(found, first);
            }
        }
    }
}
