//! The blocks that a background task still wants, with counts by track and cylinder.

use super::arcs::Arcs;
use super::bits::{Bits, for_words};
use super::on_tracks::{OnTrack, OnTracks};
use headtime_sched::{Passing, TrackPart};
use headtime_units::{Cylinder, Extent, Lba, Sectors, Track};
use std::ops::Range;

/// Set of wanted blocks of a disk, as one bit each, with counts by cylinder and by track.
///
/// A block counts for the track on which it begins. If the block continues on the next track, its reader has to follow.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Sectors of a block.
    block: u64,
    /// Sectors of the disk; the last block may be short.
    capacity: u64,
    bits: Bits,
    heads: u32,
    by_track: OnTracks,
    /// Most wanted blocks on any track of each cylinder.
    by_cylinder: Vec<u32>,
    groups: Vec<Around>,
}

/// Bounds for [`GROUP_CYLINDERS`] consecutive cylinders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    /// Most wanted blocks on any track.
    most: u32,
    /// Upper bound of the sectors of any track that has, or had, a wanted block.
    pub(super) longest: u32,
    /// Most blocks that can begin in one arc of a track.
    in_arc: u32,
}

/// Number of cylinders of an [`Around`], which a search can skip at once.
const GROUP_CYLINDERS: usize = 32;

impl Wanted {
    /// Returns a set without wanted blocks, of a disk of `capacity` sectors in blocks of `block` sectors.
    ///
    /// # Panics
    ///
    /// If a block has no sectors.
    pub fn none<P: Passing>(model: &P, capacity: Sectors, block: Sectors) -> Wanted {
        assert!(block > Sectors::ZERO, "a block has sectors");
        let (block, capacity) = (block.get(), capacity.get());
        let heads = u32::from(model.heads());
        let cylinders = model.cylinders() as usize;
        Wanted {
            block,
            capacity,
            bits: Bits::none(capacity.div_ceil(block)),
            heads,
            by_track: OnTracks::none(cylinders * heads as usize),
            by_cylinder: vec![0; cylinders],
            groups: vec![Around::default(); cylinders.div_ceil(GROUP_CYLINDERS)],
        }
    }

    fn index(&self, track: Track) -> usize {
        track.cylinder.0 as usize * self.heads as usize + usize::from(track.head.0)
    }

    /// Returns the blocks that lie whole in an extent.
    pub(super) fn whole(&self, extent: Extent) -> Range<u64> {
        let (start, end) = (extent.start.get(), extent.end().get().min(self.capacity));
        let first = start.div_ceil(self.block);
        // The last block of the disk may be short.
        let last = if end == self.capacity {
            end.div_ceil(self.block)
        } else {
            end / self.block
        };
        first..last.max(first)
    }

    /// Returns the blocks that begin in an extent.
    fn starting_in(&self, extent: Extent) -> Range<u64> {
        let [first, last] = [extent.start, extent.end()].map(|lba| lba.get().div_ceil(self.block));
        let last = last.min(self.blocks());
        first.min(last)..last
    }

    /// Returns the wanted block that begins among the addresses of a track and ends after them.
    pub(super) fn over_end(&self, addresses: Extent) -> Option<Extent> {
        let end = addresses.end().get();
        let block = end / self.block;
        let start = Lba::new(block * self.block);
        let is_over = start >= addresses.start && start < addresses.end();
        let is_wanted = || end < self.capacity && self.has(block);
        (is_over && is_wanted()).then(|| self.block_at(start))
    }

    /// Returns the number of wanted blocks.
    pub fn left(&self) -> u64 {
        self.bits.count()
    }

    /// Returns the number of sectors of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Returns the end of the disk.
    pub(super) fn end(&self) -> Lba {
        Lba::new(self.capacity)
    }

    /// Returns the number of blocks of the disk.
    pub fn blocks(&self) -> u64 {
        self.capacity.div_ceil(self.block)
    }

    /// Returns the number of wanted blocks that begin on a track.
    pub fn on_track(&self, track: Track) -> u64 {
        let on = self.by_track.get(self.index(track));
        on.map_or(0, |on| u64::from(on.count))
    }

    /// Returns the most wanted blocks on any track of a cylinder.
    pub fn most_on(&self, cylinder: Cylinder) -> u64 {
        let most = self.by_cylinder.get(cylinder.0 as usize);
        most.copied().map_or(0, u64::from)
    }

    /// Returns the bounds for the cylinders around a cylinder.
    pub(super) fn around(&self, cylinder: Cylinder) -> Around {
        let group = self.groups.get(cylinder.0 as usize / GROUP_CYLINDERS);
        group.copied().unwrap_or_default()
    }

    /// Returns an upper bound of a track's wanted blocks that begin in some arcs.
    pub(super) fn on_track_within(&self, track: Track, arcs: Arcs, around: &Around) -> u64 {
        let Some(on) = self.by_track.get(self.index(track)) else {
            return 0;
        };
        let here = on.arcs.and(arcs).count();
        // Each of the other arcs with wanted blocks has one at least.
        let elsewhere = on.arcs.count() - here;
        let here = u64::from(here) * u64::from(around.in_arc);
        here.min(on.most().saturating_sub(u64::from(elsewhere)))
    }

    /// Returns the lowest cylinder of a range with a track that has enough wanted blocks. The number depends on the cylinder's bounds.
    pub(super) fn lowest(&self, range: Range<u32>, enough: impl Fn(&Around) -> u64) -> Option<u32> {
        let (mut at, end) = (range.start as usize, range.end as usize);
        while at < end {
            let next = (at / GROUP_CYLINDERS + 1) * GROUP_CYLINDERS;
            let around = &self.groups[at / GROUP_CYLINDERS];
            let least = enough(around);
            if u64::from(around.most) >= least {
                let here = &self.by_cylinder[at..next.min(end)];
                if let Some(along) = here.iter().position(|most| u64::from(*most) >= least) {
                    return Some((at + along) as u32);
                }
            }
            at = next;
        }
        None
    }

    /// As [`Wanted::lowest`], for the highest cylinder.
    pub(super) fn highest(
        &self,
        range: Range<u32>,
        enough: impl Fn(&Around) -> u64,
    ) -> Option<u32> {
        let (first, mut end) = (range.start as usize, range.end as usize);
        while end > first {
            let begin = (end - 1) / GROUP_CYLINDERS * GROUP_CYLINDERS;
            let around = &self.groups[begin / GROUP_CYLINDERS];
            let least = enough(around);
            if u64::from(around.most) >= least {
                let from = begin.max(first);
                let here = &self.by_cylinder[from..end];
                if let Some(along) = here.iter().rposition(|most| u64::from(*most) >= least) {
                    return Some((from + along) as u32);
                }
            }
            end = begin;
        }
        None
    }

    /// Notes that a track of a cylinder had `before` wanted blocks and has `now`.
    fn note_most(&mut self, cylinder: usize, before: u32, now: u32) {
        let tracks = cylinder * self.heads as usize..(cylinder + 1) * self.heads as usize;
        let by_track = &self.by_track;
        let counts = tracks.map(|index| by_track.get(index).map_or(0, |on| u32::from(on.count)));
        let was = self.by_cylinder[cylinder];
        let most = &mut self.by_cylinder[cylinder];
        note(most, before, now, counts);
        let now = *most;
        let group = cylinder / GROUP_CYLINDERS;
        let end = ((group + 1) * GROUP_CYLINDERS).min(self.by_cylinder.len());
        let most = self.by_cylinder[group * GROUP_CYLINDERS..end]
            .iter()
            .copied();
        note(&mut self.groups[group].most, was, now, most);
    }

    /// Returns the bitmap: block `n` is bit `n % 64` of word `n / 64`, and is set if the block is wanted.
    pub fn bits(&self) -> &[u64] {
        self.bits.words()
    }

    /// Returns true if a block is wanted.
    pub fn has(&self, block: u64) -> bool {
        self.bits.has(block)
    }

    /// Returns the number of wanted blocks in an extent, and the extent from the first to the last wanted block. Returns `None` if no block
    /// is wanted.
    pub fn within(&self, extent: Extent) -> Option<(u64, Extent)> {
        let range = self.whole(extent);
        let (mut count, mut first, mut last) = (0, None, 0);
        for_words(range, |index, mask| {
            let (at, word) = (index as u64 * 64, self.bits.words()[index] & mask);
            if word != 0 {
                first.get_or_insert(at + u64::from(word.trailing_zeros()));
                last = at + 63 - u64::from(word.leading_zeros());
                count += u64::from(word.count_ones());
            }
        });
        let start = first? * self.block;
        let end = ((last + 1) * self.block).min(self.capacity);
        Some((
            count,
            Extent::new(Lba::new(start), Sectors::new(end - start)),
        ))
    }

    /// Returns the length in blocks of the longest run of wanted blocks in an extent, and the extent of the first such run. Returns `None`
    /// if no block is wanted.
    pub fn longest_run(&self, extent: Extent) -> Option<(u64, Extent)> {
        let mut rest = self.whole(extent);
        let mut longest: Option<Range<u64>> = None;
        while let Some(run) = self.bits.next_run(rest.clone()) {
            rest.start = run.end;
            if longest
                .as_ref()
                .is_none_or(|most| run.end - run.start > most.end - most.start)
            {
                longest = Some(run);
            }
        }
        let run = longest?;
        let start = run.start * self.block;
        let len = (run.end * self.block).min(self.capacity) - start;
        Some((
            run.end - run.start,
            Extent::new(Lba::new(start), Sectors::new(len)),
        ))
    }

    /// Returns the first sectors of the wanted blocks that lie whole in an extent.
    pub fn blocks_in(&self, extent: Extent) -> impl Iterator<Item = Lba> + '_ {
        let blocks = self.whole(extent).filter(|block| self.has(*block));
        blocks.map(|block| Lba::new(block * self.block))
    }

    /// Returns the next run of wanted blocks at or after a sector, in at most `most` sectors, with its number of blocks. The run has at
    /// least one block. After the end of the disk the search starts again at the beginning.
    pub fn next(&self, from: Lba, most: Sectors) -> Option<(u64, Extent)> {
        let from = from.get().div_ceil(self.block);
        let first = self.bits.next(from..self.blocks());
        let first = first.or_else(|| self.bits.next(0..from.min(self.blocks())))?;
        let most = (most.get() / self.block).max(1);
        let end = (first + most).min(self.blocks());
        let last = (first..end).find(|block| !self.has(*block)).unwrap_or(end);
        let start = first * self.block;
        let len = (last * self.block).min(self.capacity) - start;
        Some((
            last - first,
            Extent::new(Lba::new(start), Sectors::new(len)),
        ))
    }

    /// As [`Wanted::next`], but across unwanted blocks: from the first wanted block to the last within `most` sectors.
    pub fn sweep(&self, from: Lba, most: Sectors) -> Option<(u64, Extent)> {
        let from = from.get().div_ceil(self.block);
        let first = self.bits.next(from..self.blocks());
        let first = first.or_else(|| self.bits.next(0..from.min(self.blocks())))?;
        let end = (first + (most.get() / self.block).max(1)) * self.block;
        let start = first * self.block;
        let len = end.min(self.capacity) - start;
        self.within(Extent::new(Lba::new(start), Sectors::new(len)))
    }

    /// Returns the number of tracks of the disk.
    pub(super) fn tracks(&self) -> usize {
        self.by_track.len()
    }

    /// Returns the block that begins at a sector.
    pub fn block_at(&self, lba: Lba) -> Extent {
        let len = self.block.min(self.capacity.saturating_sub(lba.get()));
        Extent::new(lba, Sectors::new(len))
    }

    /// Makes the whole blocks of an extent unwanted. Returns the number of blocks that were wanted.
    pub fn take<P: Passing>(&mut self, model: &P, extent: Extent) -> u64 {
        self.change(model, extent, false)
    }

    /// Makes the whole blocks of an extent wanted. Returns the number of blocks that were not wanted.
    pub fn add<P: Passing>(&mut self, model: &P, extent: Extent) -> u64 {
        self.change(model, extent, true)
    }

    fn change<P: Passing>(&mut self, model: &P, extent: Extent, on: bool) -> u64 {
        let range = self.whole(extent);
        let mut changed = 0;
        let mut next = range.start;
        while next < range.end {
            let lba = Lba::new(next * self.block);
            let track = model.track(model.start(Extent::new(lba, Sectors::new(1))));
            let addresses = model.addresses(track);
            let here = self.starting_in(addresses);
            // A remapped block counts for the track on which it was before.
            let end = if here.contains(&next) {
                here.end.min(range.end)
            } else {
                next + 1
            };
            let count = self.bits.set(next..end, on);
            if count > 0 {
                match here.contains(&next) {
                    true => self.note(model, track, addresses),
                    false => self.note_beside(model, next),
                }
            }
            changed += count;
            next = end;
        }
        changed
    }

    /// Notes a change of a block that begins on another track than its neighbours, since the block was remapped. The block counts for the
    /// track of its neighbours.
    fn note_beside<P: Passing>(&mut self, model: &P, block: u64) {
        let beside = [block.checked_sub(1), Some(block + 1)];
        for beside in beside.into_iter().flatten() {
            if beside >= self.blocks() {
                continue;
            }
            let lba = Lba::new(beside * self.block);
            let track = model.track(model.start(Extent::new(lba, Sectors::new(1))));
            let addresses = model.addresses(track);
            if self.starting_in(addresses).contains(&block) {
                return self.note(model, track, addresses);
            }
        }
    }

    /// Updates the counts of a track after a change of its wanted blocks.
    fn note<P: Passing>(&mut self, model: &P, track: Track, addresses: Extent) {
        let here = self.starting_in(addresses);
        let mut group = self.groups[track.cylinder.0 as usize / GROUP_CYLINDERS];
        let mut arcs = Arcs::default();
        model.parts(track, &mut |part| {
            // Blocks that begin in this part.
            let from = part.extent.start.get().div_ceil(self.block).max(here.start);
            let to = part.extent.end().get().div_ceil(self.block).min(here.end);
            arcs = arcs.or(self.arcs(&part, from..to));
            let most = Arcs::most(part.step.saturating_mul(self.block));
            group.in_arc = group.in_arc.max(u32::try_from(most).unwrap_or(u32::MAX));
        });
        let sectors = u32::try_from(addresses.len.get()).unwrap_or(u32::MAX);
        group.longest = group.longest.max(sectors);
        self.groups[track.cylinder.0 as usize / GROUP_CYLINDERS] = group;

        let index = self.index(track);
        let before = self.by_track.get(index).unwrap_or_default().count;
        // Counted anew: the addition and the removal of a remapped block need not be noted for the same track.
        let now = match here == (0..self.blocks()) {
            true => self.bits.count(),
            false => self.bits.count_in(here),
        };
        let now = u16::try_from(now).unwrap_or(u16::MAX);
        self.by_track.set(index, OnTrack { count: now, arcs });
        let (before, now) = (u32::from(before), u32::from(now));
        self.note_most(track.cylinder.0 as usize, before, now);
    }

    /// Returns the arcs in which the wanted blocks of a range begin. All blocks are in one part of a track.
    fn arcs(&self, part: &TrackPart, range: Range<u64>) -> Arcs {
        let size = part.step.saturating_mul(self.block).max(1);
        let begin = u64::from(part.begin.to_bits()) << 32;
        let at = |block: u64| {
            let along = block * self.block - part.extent.start.get();
            begin.wrapping_add(part.step.wrapping_mul(along))
        };
        let mut arcs = Arcs::default();
        let mut next = range.start;
        if size <= Arcs::SIZE {
            // Most tracks of a disk that is all wanted have one run, with a block in each arc.
            while let Some(run) = self.bits.next_run(next..range.end) {
                arcs = arcs.or(Arcs::of_items(at(run.start), size, run.end - run.start));
                next = run.end;
            }
        } else {
            while let Some(block) = self.bits.next(next..range.end) {
                arcs = arcs.or(Arcs::at(at(block)));
                next = block + 1;
            }
        }
        arcs
    }
}

/// Updates the maximum of several numbers after one number has changed.
fn note(most: &mut u32, before: u32, now: u32, all: impl Iterator<Item = u32>) {
    if now >= *most {
        *most = now;
    } else if before == *most {
        *most = all.max().unwrap_or(0);
    }
}
