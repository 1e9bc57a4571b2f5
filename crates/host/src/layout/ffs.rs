//! Places directories, inodes and data as the fast file system of 4.4BSD does in FreeBSD 4.

use super::LayoutError;
use headtime_units::{Extent, Lba, Sectors};
use std::collections::BTreeSet;

/// Fragments of 1 KiB in a block of 4 KiB.
const FRAGMENTS: u64 = 4;
const FRAGMENT_BYTES: u64 = 1_024;
/// Inodes of 128 bytes in a block.
const INODES: u32 = 32;
/// First fragment of a group's inodes. In front are room for the boot block (8 KiB), two superblocks, and the group's
/// own block.
const FIRST_INODE: u64 = 28;
/// Fragments of a "cylinder". The newfs of FreeBSD 4 counts one track of 4,096 sectors, independent of the drive's
/// geometry.
const CYLINDER: u64 = 2_048;
/// Cylinders of a group. The group's maps of fragments, inodes and clusters must fit into one block.
const CYLINDERS: u64 = 9;
const GROUP: u64 = CYLINDERS * CYLINDER;
/// One inode for four fragments.
const GROUP_INODES: u32 = (GROUP / 4) as u32;
/// First data fragment of a group.
const DATA: u64 = FIRST_INODE + GROUP_INODES as u64 * 128 / FRAGMENT_BYTES;

/// A file system with blocks of 4 KiB and fragments of 1 KiB, and its contents.
///
/// Rests on: McKusick, Joy, Leffler and Fabry, A Fast File System for UNIX (ACM TOCS 2(3), 1984), section 3.3. The
/// functions `ffs_dirpref`, `ffs_valloc`, `ffs_blkpref` and `ffs_alloccg` of FreeBSD 4 and the defaults of its `newfs`
/// are from memory.
///
/// A new directory goes to a group with at least the mean number of free inodes. Among these groups, the one with the
/// fewest directories is chosen. A file's inode and data go into the directory's group, and the data take the first
/// free place there. A file smaller than a block takes fragments of a block that is broken already, before the file
/// breaks another block.
///
/// Left out: files of more than a block, deletion, and the moves of growing files. The root has the blocks of all its
/// entries from the beginning.
#[derive(Debug)]
pub struct Ffs {
    start: Lba,
    sectors_per_block: u64,
    groups: Vec<FfsGroup>,
    root: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct FfsGroup {
    /// End of the group's fragments, counted from the group's beginning.
    end: u64,
    inodes: u32,
    directories: u32,
    /// First fragment of the first block that was never taken.
    next: u64,
    /// Runs of free fragments in broken blocks, by length.
    broken: [BTreeSet<u64>; FRAGMENTS as usize],
}

/// Places of the parts of a directory or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FfsEntry {
    /// Group of the inode.
    pub group: u32,
    /// Block that holds the inode.
    pub inode_block: Lba,
    /// Block that holds the data.
    pub data: Extent,
}

impl Ffs {
    /// Makes a fresh file system on a partition of the disk, with a root directory for `entries` entries.
    ///
    /// # Errors
    ///
    /// If the sectors do not make blocks, are too few for a group, or the root does not fit.
    pub fn format(partition: Extent, sector_bytes: u32, entries: u32) -> Result<Ffs, LayoutError> {
        let sector = u64::from(sector_bytes);
        let divides = sector > 0 && FRAGMENT_BYTES.is_multiple_of(sector);
        if !divides && sector != FRAGMENTS * FRAGMENT_BYTES {
            return Err(LayoutError::Sector { sector_bytes });
        }
        let all = partition.len.get() * sector / FRAGMENT_BYTES;
        if all < 2 * DATA {
            let bytes = all * FRAGMENT_BYTES;
            return Err(LayoutError::PartitionSize { bytes });
        }
        let ends = (0..all.div_ceil(GROUP)).map(|group| (all - group * GROUP).min(GROUP));
        // The remainder at the end is a group if it has room for data.
        let ends = ends.filter(|end| *end > DATA + FRAGMENTS);
        let groups = ends.map(|end| FfsGroup {
            end: end / FRAGMENTS * FRAGMENTS,
            next: DATA.next_multiple_of(FRAGMENTS),
            ..FfsGroup::default()
        });
        let mut fs = Ffs {
            start: partition.start,
            sectors_per_block: FRAGMENT_BYTES * FRAGMENTS / sector,
            groups: groups.collect(),
            root: Vec::new(),
        };
        // Inodes 0 and 1 are unused, 2 is the root.
        (fs.groups[0].inodes, fs.groups[0].directories) = (3, 1);
        for _ in 0..u64::from(entries.max(1)).div_ceil(ENTRIES) {
            let block = fs.fragments(0, FRAGMENTS)?;
            fs.root.push(block);
        }
        Ok(fs)
    }

    /// Blocks to read to find an entry of the root by number: the block of the root's inode, and the root's block with
    /// the entry.
    pub fn root(&self, entry: u32) -> [Lba; 2] {
        let block = self.root[(u64::from(entry) / ENTRIES) as usize % self.root.len()];
        [self.inode_block(0, 2), self.lba(block)]
    }

    /// Makes a directory with room for up to 60 files.
    ///
    /// # Errors
    ///
    /// If nothing is free.
    pub fn make_directory(&mut self) -> Result<FfsEntry, LayoutError> {
        let free: u64 = self
            .groups
            .iter()
            .map(|group| u64::from(group.free()))
            .sum();
        let mean = (free / self.groups.len() as u64) as u32;
        let enough = |group: &&(usize, &FfsGroup)| group.1.free() >= mean;
        let groups = self.groups.iter().enumerate().collect::<Vec<_>>();
        let fewest = groups.iter().filter(enough);
        let fewest = fewest.min_by_key(|(_, group)| group.directories);
        let at = fewest.expect("one has the mean").0;
        let made = self.make(at, 1)?;
        self.groups[made.group as usize].directories += 1;
        Ok(made)
    }

    /// Makes a file of at most a block in a directory.
    ///
    /// # Errors
    ///
    /// If the file is larger, or nothing is free.
    pub fn make_file(&mut self, directory: &FfsEntry, bytes: u64) -> Result<FfsEntry, LayoutError> {
        if bytes > FRAGMENTS * FRAGMENT_BYTES {
            return Err(LayoutError::FileSize { bytes });
        }
        self.make(
            directory.group as usize,
            bytes.div_ceil(FRAGMENT_BYTES).max(1),
        )
    }

    fn make(&mut self, wanted: usize, fragments: u64) -> Result<FfsEntry, LayoutError> {
        let free = |group: &FfsGroup| group.free() > 0;
        let at = self
            .near(wanted, free)
            .ok_or(LayoutError::Full { what: "inode" })?;
        let inode = self.groups[at].inodes;
        let first = self.fragments(at, fragments)?;
        self.groups[at].inodes += 1;
        // A reader of whole blocks reads all of the block.
        let block = first / FRAGMENTS * FRAGMENTS;
        Ok(FfsEntry {
            group: at as u32,
            inode_block: self.inode_block(at, inode),
            data: Extent::new(self.lba(block), Sectors::new(self.sectors_per_block)),
        })
    }

    /// First group that satisfies `has`. The wanted group is tried first. The next groups are tried in steps that
    /// double, and then all groups in turn.
    fn near(&self, wanted: usize, has: impl Fn(&FfsGroup) -> bool) -> Option<usize> {
        let count = self.groups.len();
        let steps = std::iter::successors(Some(1), |step| Some(step * 2));
        let steps = steps.take_while(|step| *step < count);
        let jumps = steps.scan(wanted, |at, step| {
            *at = (*at + step) % count;
            Some(*at)
        });
        let others = (0..count).map(|step| (wanted + 2 + step) % count);
        let mut all = std::iter::once(wanted).chain(jumps).chain(others);
        all.find(|at| has(&self.groups[*at]))
    }

    /// Takes `count` fragments in a group or near the group. Returns the first fragment, counted from the beginning of
    /// the file system.
    fn fragments(&mut self, wanted: usize, count: u64) -> Result<u64, LayoutError> {
        let has =
            |group: &FfsGroup| group.next + FRAGMENTS <= group.end || group.run(count).is_some();
        let full = LayoutError::Full { what: "block" };
        let at = self.near(wanted, has).ok_or(full)?;
        let group = &mut self.groups[at];
        let (first, len) = match group.run(count) {
            Some((len, first)) => {
                group.broken[len as usize].remove(&first);
                (first, len)
            }
            None => {
                let first = group.next;
                group.next += FRAGMENTS;
                (first, FRAGMENTS)
            }
        };
        if len > count {
            group.broken[(len - count) as usize].insert(first + count);
        }
        Ok(at as u64 * GROUP + first)
    }

    fn inode_block(&self, group: usize, inode: u32) -> Lba {
        let block = u64::from(inode / INODES) * FRAGMENTS;
        self.lba(group as u64 * GROUP + FIRST_INODE + block)
    }

    fn lba(&self, fragment: u64) -> Lba {
        let blocks = fragment / FRAGMENTS;
        self.start + Sectors::new(blocks * self.sectors_per_block)
    }
}

/// Entries of a directory in a block, with names of up to seven bytes.
const ENTRIES: u64 = 256;

impl FfsGroup {
    fn free(&self) -> u32 {
        GROUP_INODES - self.inodes
    }

    /// Length and start of the first among the shortest free runs with at least `count` fragments.
    fn run(&self, count: u64) -> Option<(u64, u64)> {
        (count..FRAGMENTS).find_map(|len| {
            let first = self.broken[len as usize].first()?;
            Some((len, *first))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Ffs {
        // Ten groups of 18 MiB.
        Ffs::format(Extent::at(800, 10 * GROUP * 2), 512, 2_000).unwrap()
    }

    #[test]
    fn a_group_begins_with_its_own_blocks_and_inodes_and_data_come_behind() {
        let fs = fresh();
        assert_eq!((fs.groups.len(), GROUP_INODES, DATA), (10, 4_608, 604));
        let [inode, first] = fs.root(0);
        assert_eq!(inode, Lba::new(800 + 28 * 2));
        assert_eq!(first, Lba::new(800 + 604 * 2));
        assert_eq!(fs.root(1_999)[1], Lba::new(800 + (604 + 7 * 4) * 2));
    }

    #[test]
    fn directories_spread_over_the_groups_and_their_files_stay_with_them() {
        let mut fs = fresh();
        let mut groups = Vec::new();
        for _ in 0..20 {
            let directory = fs.make_directory().unwrap();
            groups.push(directory.group);
            for _ in 0..50 {
                let file = fs.make_file(&directory, 3_000).unwrap();
                assert_eq!(file.group, directory.group);
                let from = 800 + u64::from(file.group) * GROUP * 2;
                let own = from..from + GROUP * 2;
                assert!(own.contains(&file.inode_block.get()));
                assert!(own.contains(&file.data.start.get()));
            }
        }
        // The root's group comes last in the first round. No group is taken twice before all are taken.
        groups[..10].sort_unstable();
        assert_eq!(groups[..10], (0..10).collect::<Vec<_>>());
        groups[10..].sort_unstable();
        assert_eq!(groups[10..], (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_smaller_than_a_block_fills_broken_blocks_first() {
        let mut fs = fresh();
        let directory = fs.make_directory().unwrap();
        let at = |entry: &FfsEntry| (entry.data.start.get() - 800) / 8 * 4 % GROUP;
        // The first file of three fragments takes the rest of the directory's block.
        let files: Vec<FfsEntry> = (0..3)
            .map(|_| fs.make_file(&directory, 3_000).unwrap())
            .collect();
        assert_eq!(at(&directory), DATA);
        assert_eq!(
            files.iter().map(at).collect::<Vec<_>>(),
            [DATA, DATA + 4, DATA + 8]
        );
        // The other two files leave one fragment each. The next small file goes into the first of these fragments.
        assert_eq!(at(&fs.make_file(&directory, 1_000).unwrap()), DATA + 4);
        assert_eq!(at(&fs.make_file(&directory, 4_096).unwrap()), DATA + 12);
        // A block holds 32 inodes, and the directory has the first.
        let block = |entry: &FfsEntry| entry.inode_block;
        assert_eq!(block(&directory), block(&files[0]));
        let more: Vec<FfsEntry> = (0..27)
            .map(|_| fs.make_file(&directory, 1).unwrap())
            .collect();
        assert_eq!(block(&more[25]), block(&directory));
        assert_eq!(block(&more[26]).get(), block(&directory).get() + 8);
    }

    #[test]
    fn what_a_group_has_not_another_has_until_nothing_is_left() {
        let mut fs = fresh();
        let directory = fs.make_directory().unwrap();
        let mut groups = BTreeSet::new();
        let full = loop {
            match fs.make_file(&directory, 4_096) {
                Ok(file) => groups.insert(file.group),
                Err(full) => break full,
            };
        };
        assert_eq!(groups.len(), 10);
        assert!(matches!(full, LayoutError::Full { .. }), "{full}");
        assert!(matches!(
            fs.make_file(&directory, 4_097),
            Err(LayoutError::FileSize { bytes: 4_097 })
        ));
        let small = Ffs::format(Extent::at(0, 100), 512, 10);
        assert!(matches!(small, Err(LayoutError::PartitionSize { .. })));
        let odd = Ffs::format(Extent::at(0, 1 << 20), 520, 10);
        assert!(matches!(
            odd,
            Err(LayoutError::Sector { sector_bytes: 520 })
        ));
    }
}
