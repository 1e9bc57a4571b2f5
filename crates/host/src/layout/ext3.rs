//! Places directories, inodes and data where the ext3 of Linux 2.6.31 places them.
//!
//! | rule | source |
//! |---|---|
//! | 4 KiB blocks; groups of 32,768 blocks (128 MiB): backup of the superblock and the descriptors in groups 0, 1 and the powers of 3, 5 and 7, room for more descriptors, two bitmaps, inode table | `mke2fs` 1.41 (2008–2010), `sparse_super`, `resize_inode` |
//! | inodes of 256 bytes, one for each 16,384 bytes: 8,192 in a group, 512 blocks of table | `mke2fs.conf` of 1.41; earlier ones had 128 bytes and 8,192, the same 512 blocks |
//! | a directory in the root goes to the group with the fewest directories that has at least average room, searched from a random group on; any other into its parent's group, or the next that has not too many directories, too few inodes or too few blocks | `find_group_orlov`, `fs/ext3/ialloc.c` |
//! | a file's inode goes into its directory's group, or else a quadratic hash away | `find_group_other` |
//! | the lowest free inode of the group is taken | `ext3_new_inode` |
//! | a file's first block: the first free one from the group's start plus the sixteenth of the group that belongs to the writing process, else of the next groups that have any | `ext3_find_near` and `ext3_new_blocks`, `fs/ext3/{inode,balloc}.c` |
//! | every other block: the first free one behind the last | `ext3_find_goal` |
//! | the first 12 blocks are named in the inode, 1,024 more in an indirect block, the others through a second level; each of those lies just before the first block that it names | `ext3_alloc_branch` |
//! | a directory of one block is a list; a larger one has an index block and leaves divided by a hash of the name, and is listed in the order of that hash | `fs/ext3/{namei,dir,hash}.c`, feature `dir_index` |
//!
//! Trust: the rules are read from sources of the time. The version of `mke2fs` and the number of the writing process
//! are assumed.
//!
//! Simplified: the hash of a name is a random number. Leaves of an index are full to ln 2, the mean of a tree with
//! random splits, and share the hashes evenly. Reservation windows matter only for files that are written at the same
//! time, and are left out. An index has one level (508 leaves). Extended attributes, `lost+found` beyond its blocks,
//! and freed directories do not exist. File data is allocated when it is written, as in ext3.

use super::LayoutError;
use headtime_units::{Extent, Lba, Sectors};
use headtime_workload::Random;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;
const BLOCKS_PER_GROUP: u32 = 32_768;
/// Block numbers in an inode, and in an indirect block.
const DIRECT_BLOCKS: u64 = 12;
const INDIRECT_BLOCKS: u64 = 1024;
/// Largest file that two levels of indirection can name, in blocks.
const FILE_BLOCKS_MAX: u64 = DIRECT_BLOCKS + INDIRECT_BLOCKS + INDIRECT_BLOCKS * INDIRECT_BLOCKS;
/// Inodes 1 to 10 are the file system's own, 11 is `lost+found`.
const FIRST_INODE: u32 = 12;
const ROOT_INODE: u32 = 2;
/// Index entries of 8 bytes in the root block of a directory's index.
const LEAVES_MAX: u32 = 508;

/// Options for making a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext3Options {
    /// Bytes of an inode, a power of two from 128 to 4096; default 256.
    pub inode_bytes: u32,
    /// Bytes of the partition for each inode; 1024 to 4 MiB, default 16,384.
    pub bytes_per_inode: u64,
    /// True if there is a journal in the middle of the partition, of the size that `mke2fs` chooses; default true. The
    /// journal takes room, and nothing is written to it.
    pub journal: bool,
}

impl Default for Ext3Options {
    fn default() -> Ext3Options {
        Ext3Options {
            inode_bytes: 256,
            bytes_per_inode: 16_384,
            journal: true,
        }
    }
}

#[derive(Clone, Debug)]
struct Group {
    /// One bit for each block, set if it is taken.
    blocks: Vec<u64>,
    /// One bit for each inode, set if it is taken.
    inodes: Vec<u64>,
    free_blocks: u32,
    free_inodes: u32,
    directories: u32,
    /// The block bitmap; the inode bitmap and the inode table follow.
    bitmap: u32,
}

/// A file system that remembers which blocks and inodes are taken.
///
/// Deterministic: the same calls with the same seed give the same places.
#[derive(Clone, Debug)]
pub struct Ext3 {
    partition: Extent,
    sectors_per_block: u64,
    options: Ext3Options,
    inodes_per_group: u32,
    block_count: u32,
    groups: Vec<Group>,
    free_blocks: u64,
    free_inodes: u64,
    directories: u64,
    /// Block of a group, a multiple of a sixteenth, at which the writing process begins.
    colour: u32,
    random: Random,
}

/// A directory of an [`Ext3`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    inode: u32,
    /// Block numbers of the directory, in order.
    blocks: Vec<u32>,
    /// Bytes of the directory's entries.
    bytes: u64,
    is_root: bool,
}

/// An indirect block. A reader of the file at `from_block` or later needs this block first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indirect {
    /// First block of the file that the indirect block leads to, counted from 0.
    pub from_block: u64,
    /// Place of the indirect block, which is one block long.
    pub lba: Lba,
}

/// A file of an [`Ext3`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLayout {
    /// Inode number of the file.
    pub inode: u32,
    /// Bytes.
    pub size: u64,
    /// Data of the file in order, in whole blocks. Adjacent blocks are one extent.
    pub data: Vec<Extent>,
    /// Indirect blocks of the file, in the order in which a reader from the beginning needs them. The block of the
    /// second level comes just before the first indirect block that it leads to, and has the same `from_block`.
    pub indirect: Vec<Indirect>,
}

impl Ext3 {
    /// Makes an empty file system on `partition` of a disk with sectors of `sector_bytes`.
    ///
    /// # Errors
    ///
    /// If an option is out of range, or a block is not a whole number of sectors. If the partition is larger than 16
    /// TiB, or too small for a group with its tables (about 300 KiB).
    pub fn format(
        partition: Extent,
        sector_bytes: u32,
        options: Ext3Options,
        seed: u64,
    ) -> Result<Ext3, LayoutError> {
        if sector_bytes == 0 || !BLOCK_BYTES.is_multiple_of(u64::from(sector_bytes)) {
            return Err(LayoutError::Sector { sector_bytes });
        }
        if !(128..=4096).contains(&options.inode_bytes) || !options.inode_bytes.is_power_of_two() {
            return Err(LayoutError::InodeBytes {
                found: options.inode_bytes,
            });
        }
        if !(1024..=4 << 20).contains(&options.bytes_per_inode) {
            return Err(LayoutError::BytesPerInode {
                found: options.bytes_per_inode,
            });
        }
        let sectors_per_block = BLOCK_BYTES / u64::from(sector_bytes);
        let too_small = LayoutError::PartitionSize {
            bytes: partition.len.bytes(sector_bytes),
        };
        let Ok(block_count) = u32::try_from(partition.len.get() / sectors_per_block) else {
            return Err(too_small);
        };
        let groups = block_count.div_ceil(BLOCKS_PER_GROUP);
        let per_block = (BLOCK_BYTES / u64::from(options.inode_bytes)) as u32;
        let wanted = u64::from(block_count) * BLOCK_BYTES / options.bytes_per_inode;
        // A bitmap of one block names at most as many inodes as a group has blocks.
        let inodes_per_group = (wanted.div_ceil(u64::from(groups.max(1))) as u32)
            .clamp(per_block.max(16), BLOCKS_PER_GROUP)
            .div_ceil(per_block)
            * per_block;
        let table = inodes_per_group / per_block;
        let descriptors = groups.div_ceil((BLOCK_BYTES / 32) as u32);
        // Room for the descriptors of a file system 1,024 times as large, at most one block of
        // pointers to them.
        let grown = (u64::from(block_count) * 1024).min(u64::from(u32::MAX));
        let reserved = (grown
            .div_ceil(u64::from(BLOCKS_PER_GROUP))
            .div_ceil(BLOCK_BYTES / 32) as u32)
            .saturating_sub(descriptors)
            .min(INDIRECT_BLOCKS as u32);
        let mut fs = Ext3 {
            partition,
            sectors_per_block,
            options,
            inodes_per_group,
            block_count,
            groups: Vec::with_capacity(groups as usize),
            free_blocks: 0,
            free_inodes: 0,
            directories: 0,
            colour: 0,
            random: Random::keyed(seed, 0, 0),
        };
        for number in 0..groups {
            let first = number * BLOCKS_PER_GROUP;
            let size = (block_count - first).min(BLOCKS_PER_GROUP);
            let backup = if has_backup(number) {
                1 + descriptors + reserved
            } else {
                0
            };
            let overhead = backup + 2 + table;
            if size < overhead + 64 {
                // mke2fs leaves such a remainder unused; a partition of nothing else is too small.
                if number == 0 {
                    return Err(too_small);
                }
                fs.block_count = first;
                break;
            }
            let mut group = Group {
                blocks: vec![0; (BLOCKS_PER_GROUP / 64) as usize],
                inodes: vec![0; inodes_per_group.div_ceil(64) as usize],
                free_blocks: BLOCKS_PER_GROUP,
                free_inodes: inodes_per_group,
                directories: 0,
                bitmap: first + backup,
            };
            for block in (0..overhead).chain(size..BLOCKS_PER_GROUP) {
                group.take_block(block);
            }
            fs.free_blocks += u64::from(group.free_blocks);
            fs.free_inodes += u64::from(group.free_inodes);
            fs.groups.push(group);
        }
        for _ in 1..FIRST_INODE {
            fs.take_inode(0).expect("a new group has free inodes");
        }
        fs.count_directory(0);
        // The root's block and the four of lost+found.
        for _ in 0..5 {
            fs.take_next(0).expect("a new group has free blocks");
        }
        if options.journal {
            let blocks = journal_blocks(fs.block_count);
            let mut last = fs.groups.len() as u32 / 2 * BLOCKS_PER_GROUP;
            for _ in 0..blocks {
                last = fs.take_next(last)?;
            }
        }
        Ok(fs)
    }

    /// Partition of the file system.
    pub fn partition(&self) -> Extent {
        self.partition
    }

    /// Sets the process that writes from now on. The number modulo 16 selects the sixteenth of a group in which the
    /// process begins to allocate.
    pub fn set_writer(&mut self, process: u32) {
        self.colour = process % 16 * (BLOCKS_PER_GROUP / 16);
    }

    /// Returns the root directory. The root stores no entries. A directory that is made in the root may go to any
    /// group.
    pub fn root(&self) -> Directory {
        Directory {
            inode: ROOT_INODE,
            blocks: vec![self.groups[0].bitmap + 2 + self.table_blocks()],
            bytes: 0,
            is_root: true,
        }
    }

    /// Makes a directory in another directory, under a name of `name_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If no inode or no block is free, or the parent has no room for one more entry (about 1.4 MB
    /// of entries).
    pub fn make_directory(
        &mut self,
        parent: &mut Directory,
        name_bytes: u32,
    ) -> Result<Directory, LayoutError> {
        let group = self.group_for_directory(parent)?;
        let inode = self.take_inode_near(group)?;
        self.count_directory(self.group_of(inode));
        let first = self.take_near_inode(inode)?;
        let mut directory = Directory {
            inode,
            blocks: vec![first],
            bytes: 0,
            is_root: false,
        };
        directory.bytes = entry_bytes(1) + entry_bytes(2);
        self.enter(parent, name_bytes)?;
        Ok(directory)
    }

    /// Makes a file of `size` bytes in a directory and writes it.
    ///
    /// # Errors
    ///
    /// If no inode or no block is free, the directory is full, or the file is larger than 4 GiB.
    pub fn make_file(
        &mut self,
        directory: &mut Directory,
        name_bytes: u32,
        size: u64,
    ) -> Result<FileLayout, LayoutError> {
        let group = self.group_for_file(directory)?;
        let inode = self.take_inode_near(group)?;
        self.enter(directory, name_bytes)?;
        let mut file = FileLayout {
            inode,
            size: 0,
            data: Vec::new(),
            indirect: Vec::new(),
        };
        self.grow(&mut file, size)?;
        Ok(file)
    }

    /// Makes a file larger. The new blocks lie as near behind the old ones as there is room.
    ///
    /// # Errors
    ///
    /// If no block is free or the file would be larger than 4 GiB.
    pub fn grow(&mut self, file: &mut FileLayout, size: u64) -> Result<(), LayoutError> {
        let wanted = size.div_ceil(BLOCK_BYTES);
        if wanted > FILE_BLOCKS_MAX {
            return Err(LayoutError::FileSize { bytes: size });
        }
        let mut have = self.blocks_in(&file.data);
        let mut last = file
            .data
            .last()
            .map(|extent| self.block_of(extent.end()) - 1);
        while have < wanted {
            for _ in 0..indirect_blocks_before(have) {
                let block = self.take_behind(last, file.inode)?;
                last = Some(block);
                file.indirect.push(Indirect {
                    from_block: have,
                    lba: self.lba(block),
                });
            }
            let block = self.take_behind(last, file.inode)?;
            last = Some(block);
            let new = Extent::new(self.lba(block), Sectors::new(self.sectors_per_block));
            match file.data.last_mut() {
                Some(extent) if extent.is_followed_by(new) => {
                    extent.len = Sectors::new(extent.len.get() + new.len.get());
                }
                _ => file.data.push(new),
            }
            have += 1;
        }
        file.size = file.size.max(size);
        Ok(())
    }

    /// Deletes a file and frees its blocks and inode. The directory of the file does not shrink.
    ///
    /// # Panics
    ///
    /// If the file was deleted before.
    pub fn remove(&mut self, file: &FileLayout) {
        for extent in &file.data {
            let first = self.block_of(extent.start);
            for block in first..self.block_of(extent.end()) {
                self.give_back(block);
            }
        }
        for indirect in &file.indirect {
            self.give_back(self.block_of(indirect.lba));
        }
        let group = &mut self.groups[((file.inode - 1) / self.inodes_per_group) as usize];
        let place = (file.inode - 1) % self.inodes_per_group;
        let (word, bit) = (place as usize / 64, place % 64);
        assert!(
            group.inodes[word] >> bit & 1 == 1,
            "inode {} is free",
            file.inode
        );
        group.inodes[word] &= !(1 << bit);
        group.free_inodes += 1;
        self.free_inodes += 1;
    }

    /// Fills free blocks as years of use would. Runs of taken blocks and of free blocks alternate, with exponential
    /// lengths. About `used` (0 to 0.95) of the blocks are taken, and a hole has `hole_blocks` blocks in the mean (at
    /// least 1). This model is assumed, since measured file systems vary widely.
    ///
    /// # Errors
    ///
    /// If an argument is out of range.
    pub fn age(&mut self, used: f64, hole_blocks: f64) -> Result<(), LayoutError> {
        if !(0.0..=0.95).contains(&used) || !(1.0..=1e6).contains(&hole_blocks) {
            return Err(LayoutError::Age { used, hole_blocks });
        }
        if used == 0.0 {
            return Ok(());
        }
        let taken_mean = hole_blocks * used / (1.0 - used);
        let mut block = 0_u64;
        let count = u64::from(self.block_count);
        while block < count {
            let hole = (self.random.exponential() * hole_blocks + 0.5) as u64;
            block += hole;
            let taken = (self.random.exponential() * taken_mean + 0.5) as u64;
            let end = (block + taken).min(count);
            while block < end {
                let number = block as u32;
                let group = &self.groups[(number / BLOCKS_PER_GROUP) as usize];
                if !group.block_taken(number % BLOCKS_PER_GROUP) {
                    self.take(number);
                }
                block += 1;
            }
        }
        Ok(())
    }

    /// Block of the inode table that holds an inode.
    pub fn inode_block(&self, inode: u32) -> Lba {
        let group = &self.groups[((inode - 1) / self.inodes_per_group) as usize];
        let place = (inode - 1) % self.inodes_per_group;
        let per_block = (BLOCK_BYTES / u64::from(self.options.inode_bytes)) as u32;
        self.lba(group.bitmap + 2 + place / per_block)
    }

    /// Inode bitmap of this inode's group.
    pub fn inode_bitmap(&self, inode: u32) -> Lba {
        self.lba(self.groups[((inode - 1) / self.inodes_per_group) as usize].bitmap + 1)
    }

    /// Block bitmap of the group in which this sector lies.
    pub fn block_bitmap(&self, lba: Lba) -> Lba {
        self.lba(self.groups[(self.block_of(lba) / BLOCKS_PER_GROUP) as usize].bitmap)
    }

    /// All blocks of a directory, in order. If the directory has an index, the first block is the root of the index.
    pub fn directory_blocks<'a>(
        &'a self,
        directory: &'a Directory,
    ) -> impl Iterator<Item = Lba> + 'a {
        directory.blocks.iter().map(|&block| self.lba(block))
    }

    /// The blocks that a lookup of the name with this hash reads: the only block, or the root of the index and a leaf.
    pub fn lookup(&self, directory: &Directory, hash: u32) -> (Lba, Option<Lba>) {
        let leaf = directory.leaf(hash).map(|leaf| self.lba(leaf));
        (self.lba(directory.blocks[0]), leaf)
    }

    pub fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    fn group_for_directory(&mut self, parent: &Directory) -> Result<u32, LayoutError> {
        let count = self.groups.len() as u32;
        let average_inodes = (self.free_inodes / u64::from(count)) as u32;
        let average_blocks = (self.free_blocks / u64::from(count)) as u32;
        let from;
        if parent.is_root {
            from = self.random.bits() % count;
            let mut best = None;
            let mut fewest = self.inodes_per_group;
            for number in around(from, count) {
                let group = &self.groups[number as usize];
                if group.free_inodes > 0
                    && group.directories < fewest
                    && group.free_inodes >= average_inodes
                    && group.free_blocks >= average_blocks
                {
                    best = Some(number);
                    fewest = group.directories;
                }
            }
            if let Some(best) = best {
                return Ok(best);
            }
        } else {
            from = self.group_of(parent.inode);
            let directories_max =
                (self.directories / u64::from(count)) as u32 + self.inodes_per_group / 16;
            let inodes_min = average_inodes.saturating_sub(self.inodes_per_group / 4);
            let blocks_min = average_blocks.saturating_sub(BLOCKS_PER_GROUP / 4);
            for number in around(from, count) {
                let group = &self.groups[number as usize];
                if group.free_inodes > 0
                    && group.directories < directories_max
                    && group.free_inodes >= inodes_min
                    && group.free_blocks >= blocks_min
                {
                    return Ok(number);
                }
            }
        }
        let enough = |least: u32| {
            around(from, count).find(|&number| {
                let free = self.groups[number as usize].free_inodes;
                free > 0 && free >= least
            })
        };
        enough(average_inodes)
            .or_else(|| enough(0))
            .ok_or(LayoutError::Full { what: "inode" })
    }

    fn group_for_file(&self, directory: &Directory) -> Result<u32, LayoutError> {
        let count = self.groups.len() as u32;
        let parent = self.group_of(directory.inode);
        let has_room = |number: u32| {
            let group = &self.groups[number as usize];
            group.free_inodes > 0 && group.free_blocks > 0
        };
        if has_room(parent) {
            return Ok(parent);
        }
        let mut group = (parent + directory.inode) % count;
        let mut step = 1;
        while step < count {
            group = (group + step) % count;
            if has_room(group) {
                return Ok(group);
            }
            step <<= 1;
        }
        around(parent + 1, count)
            .find(|&number| self.groups[number as usize].free_inodes > 0)
            .ok_or(LayoutError::Full { what: "inode" })
    }

    /// Adds an entry to a directory, with a new block if the directory needs one.
    fn enter(&mut self, directory: &mut Directory, name_bytes: u32) -> Result<(), LayoutError> {
        if directory.is_root {
            return Ok(());
        }
        directory.bytes += entry_bytes(name_bytes);
        let wanted = directory_blocks(directory.bytes);
        if wanted > LEAVES_MAX + 1 {
            return Err(LayoutError::DirectoryFull {
                inode: directory.inode,
            });
        }
        while (directory.blocks.len() as u32) < wanted {
            let block = self.take_behind(directory.blocks.last().copied(), directory.inode)?;
            directory.blocks.push(block);
        }
        Ok(())
    }

    fn take_behind(&mut self, last: Option<u32>, inode: u32) -> Result<u32, LayoutError> {
        match last {
            Some(last) => self.take_next(last),
            None => self.take_near_inode(inode),
        }
    }

    /// Takes the first block of the file or directory with this inode.
    fn take_near_inode(&mut self, inode: u32) -> Result<u32, LayoutError> {
        let start = self.group_of(inode) * BLOCKS_PER_GROUP;
        // An incomplete last group is divided into sixteenths of its actual size.
        let size = (self.block_count - start).min(BLOCKS_PER_GROUP);
        let goal =
            start + (u64::from(self.colour) * u64::from(size) / u64::from(BLOCKS_PER_GROUP)) as u32;
        self.take_next(goal)
    }

    /// Takes the first free block from `goal` on in the goal's group. If there is none, the groups behind are searched
    /// in turn, and the goal's group comes last.
    fn take_next(&mut self, goal: u32) -> Result<u32, LayoutError> {
        let count = self.groups.len() as u32;
        let own = (goal / BLOCKS_PER_GROUP).min(count - 1);
        let found = self.groups[own as usize]
            .first_free(goal - own * BLOCKS_PER_GROUP)
            .map(|place| own * BLOCKS_PER_GROUP + place)
            .or_else(|| {
                (1..=count).find_map(|step| {
                    let number = (own + step) % count;
                    let place = self.groups[number as usize].first_free(0)?;
                    Some(number * BLOCKS_PER_GROUP + place)
                })
            })
            .ok_or(LayoutError::Full { what: "block" })?;
        self.take(found);
        Ok(found)
    }

    fn take(&mut self, block: u32) {
        self.groups[(block / BLOCKS_PER_GROUP) as usize].take_block(block % BLOCKS_PER_GROUP);
        self.free_blocks -= 1;
    }

    fn give_back(&mut self, block: u32) {
        let group = &mut self.groups[(block / BLOCKS_PER_GROUP) as usize];
        let place = block % BLOCKS_PER_GROUP;
        assert!(group.block_taken(place), "block {block} is free");
        group.blocks[place as usize / 64] &= !(1 << (place % 64));
        group.free_blocks += 1;
        self.free_blocks += 1;
    }

    fn take_inode_near(&mut self, group: u32) -> Result<u32, LayoutError> {
        let count = self.groups.len() as u32;
        around(group, count)
            .find_map(|number| self.take_inode(number))
            .ok_or(LayoutError::Full { what: "inode" })
    }

    /// Takes the free inode with the lowest number in a group.
    fn take_inode(&mut self, group: u32) -> Option<u32> {
        let taken = &mut self.groups[group as usize];
        if taken.free_inodes == 0 {
            return None;
        }
        let word = taken.inodes.iter().position(|&word| word != u64::MAX)?;
        let bit = taken.inodes[word].trailing_ones();
        let place = word as u32 * 64 + bit;
        debug_assert!(place < self.inodes_per_group);
        taken.inodes[word] |= 1 << bit;
        taken.free_inodes -= 1;
        self.free_inodes -= 1;
        Some(group * self.inodes_per_group + place + 1)
    }

    fn count_directory(&mut self, group: u32) {
        self.groups[group as usize].directories += 1;
        self.directories += 1;
    }

    fn group_of(&self, inode: u32) -> u32 {
        (inode - 1) / self.inodes_per_group
    }

    fn table_blocks(&self) -> u32 {
        (u64::from(self.inodes_per_group) * u64::from(self.options.inode_bytes) / BLOCK_BYTES)
            as u32
    }

    fn lba(&self, block: u32) -> Lba {
        Lba::new(self.partition.start.get() + u64::from(block) * self.sectors_per_block)
    }

    fn block_of(&self, lba: Lba) -> u32 {
        ((lba.get() - self.partition.start.get()) / self.sectors_per_block) as u32
    }

    fn blocks_in(&self, extents: &[Extent]) -> u64 {
        extents.iter().map(|extent| extent.len.get()).sum::<u64>() / self.sectors_per_block
    }
}

impl Group {
    fn block_taken(&self, place: u32) -> bool {
        self.blocks[place as usize / 64] >> (place % 64) & 1 == 1
    }

    fn take_block(&mut self, place: u32) {
        debug_assert!(!self.block_taken(place));
        self.blocks[place as usize / 64] |= 1 << (place % 64);
        self.free_blocks -= 1;
    }

    /// The first free block from `from` on.
    fn first_free(&self, from: u32) -> Option<u32> {
        if self.free_blocks == 0 || from >= BLOCKS_PER_GROUP {
            return None;
        }
        let mut word = from as usize / 64;
        let mut taken = self.blocks[word] | ((1 << (from % 64)) - 1);
        while taken == u64::MAX {
            word += 1;
            taken = *self.blocks.get(word)?;
        }
        Some(word as u32 * 64 + taken.trailing_ones())
    }
}

impl Directory {
    /// Inode number of the directory.
    pub fn inode(&self) -> u32 {
        self.inode
    }

    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Leaf with the names of this hash; `None` without an index.
    fn leaf(&self, hash: u32) -> Option<u32> {
        let leaves = self.blocks.len() as u64 - 1;
        if leaves == 0 {
            return None;
        }
        Some(self.blocks[1 + ((u64::from(hash) * leaves) >> 32) as usize])
    }
}

/// Bytes of a directory entry: 8 and the name, rounded up to 4.
fn entry_bytes(name_bytes: u32) -> u64 {
    (8 + u64::from(name_bytes)).div_ceil(4) * 4
}

/// Number of blocks of a directory whose entries have `bytes` bytes: one, or an index and leaves full to ln 2.
fn directory_blocks(bytes: u64) -> u32 {
    if bytes <= BLOCK_BYTES {
        return 1;
    }
    let leaves = (bytes * 1000).div_ceil(BLOCK_BYTES * 693).max(2);
    u32::try_from(leaves).map_or(u32::MAX, |leaves| leaves.saturating_add(1))
}

/// Number of indirect blocks that a file of `blocks` blocks needs before its next block.
fn indirect_blocks_before(blocks: u64) -> u32 {
    if blocks == DIRECT_BLOCKS {
        1
    } else if blocks == DIRECT_BLOCKS + INDIRECT_BLOCKS {
        2
    } else if blocks > DIRECT_BLOCKS + INDIRECT_BLOCKS
        && (blocks - DIRECT_BLOCKS).is_multiple_of(INDIRECT_BLOCKS)
    {
        1
    } else {
        0
    }
}

/// Returns true if a group holds a copy of the superblock: 0, 1 and the powers of 3, 5 and 7.
fn has_backup(group: u32) -> bool {
    let power_of = |base: u32| {
        let mut power = base;
        while power < group {
            power = power.saturating_mul(base);
        }
        power == group
    };
    group <= 1 || power_of(3) || power_of(5) || power_of(7)
}

/// Blocks that `mke2fs` gives the journal of a file system of `blocks` blocks.
fn journal_blocks(blocks: u32) -> u32 {
    match blocks {
        0..2048 => 0,
        2048..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..1_048_576 => 16_384,
        _ => 32_768,
    }
}

/// Numbers of all groups, from `from` on, wrapping around at the end.
fn around(from: u32, count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |step| (from % count + step) % count)
}

#[cfg(test)]
#[path = "ext3_tests.rs"]
mod tests;
