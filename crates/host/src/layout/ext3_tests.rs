use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn format(bytes: u64) -> Ext3 {
    let partition = Extent::at(2048, bytes / 512);
    Ext3::format(partition, 512, Ext3Options::default(), 1).expect("it is large enough")
}

/// Number of a file's or directory's block in the file system.
fn block(fs: &Ext3, lba: Lba) -> u64 {
    u64::from(fs.block_of(lba))
}

#[test]
fn tables_are_where_mke2fs_puts_them() {
    // 10 GiB: 2,621,440 blocks, 80 groups, one block of descriptors; 1,024 times that are 81,920
    // groups, 640 blocks of descriptors, so 639 are kept free behind the one.
    let fs = format(10 * GIB);
    assert_eq!(fs.groups.len(), 80);
    assert_eq!(fs.inodes_per_group, 8192);
    let bitmap = |group: usize| fs.groups[group].bitmap - group as u32 * BLOCKS_PER_GROUP;
    for group in [0, 1, 3, 5, 7, 9, 25, 27, 49] {
        assert_eq!(bitmap(group), 1 + 1 + 639, "group {group}");
    }
    for group in [2, 4, 6, 8, 10, 15, 50, 79] {
        assert_eq!(bitmap(group), 0, "group {group}");
    }
    // Two bitmaps, 512 blocks of inodes.
    assert_eq!(fs.groups[2].free_blocks, BLOCKS_PER_GROUP - 514);
    assert_eq!(fs.groups[2].free_inodes, 8192);
    // Ten inodes of the system and lost+found; the root's block and four of lost+found.
    assert_eq!(fs.groups[0].free_inodes, 8192 - 11);
    assert_eq!(fs.groups[0].free_blocks, BLOCKS_PER_GROUP - 641 - 514 - 5);
    // The journal of 128 MiB begins in the middle group and goes on in the next.
    assert_eq!(fs.groups[40].free_blocks, 0);
    assert_eq!(fs.groups[41].free_blocks, BLOCKS_PER_GROUP - 514 - 514);
    let free: u64 = fs
        .groups
        .iter()
        .map(|group| u64::from(group.free_blocks))
        .sum();
    assert_eq!(fs.free_blocks(), free);
    // Inode 1 lies in the first block behind the bitmaps, sixteen in a block.
    assert_eq!(block(&fs, fs.inode_block(1)), 641 + 2);
    assert_eq!(block(&fs, fs.inode_block(16)), 641 + 2);
    assert_eq!(block(&fs, fs.inode_block(17)), 641 + 3);
    assert_eq!(block(&fs, fs.inode_block(8193)), 32_768 + 641 + 2);
    assert_eq!(block(&fs, fs.root().blocks[0].into_lba(&fs)), 641 + 514);
}

trait IntoLba {
    fn into_lba(self, fs: &Ext3) -> Lba;
}

impl IntoLba for u32 {
    fn into_lba(self, fs: &Ext3) -> Lba {
        fs.lba(self)
    }
}

#[test]
fn what_the_disk_cannot_hold_is_an_error() {
    let options = Ext3Options::default();
    let make = |bytes: u64, sector: u32, options| {
        Ext3::format(
            Extent::at(0, bytes / u64::from(sector.max(1))),
            sector,
            options,
            1,
        )
        .map(|_| ())
    };
    assert_eq!(make(GIB, 512, options), Ok(()));
    assert_eq!(make(GIB, 4096, options), Ok(()));
    assert!(matches!(
        make(GIB, 520, options),
        Err(LayoutError::Sector { sector_bytes: 520 })
    ));
    assert!(matches!(
        make(GIB, 0, options),
        Err(LayoutError::Sector { .. })
    ));
    assert!(matches!(
        make(MIB / 4, 512, options),
        Err(LayoutError::PartitionSize { .. })
    ));
    assert!(matches!(
        make(1 << 44, 512, options),
        Err(LayoutError::PartitionSize { .. })
    ));
    let odd = Ext3Options {
        inode_bytes: 200,
        ..options
    };
    assert!(matches!(
        make(GIB, 512, odd),
        Err(LayoutError::InodeBytes { found: 200 })
    ));
    let dense = Ext3Options {
        bytes_per_inode: 512,
        ..options
    };
    assert!(matches!(
        make(GIB, 512, dense),
        Err(LayoutError::BytesPerInode { found: 512 })
    ));
}

#[test]
fn a_file_follows_the_last_one_in_the_writers_sixteenth() {
    let mut fs = format(10 * GIB);
    fs.set_writer(16 + 3);
    let mut root = fs.root();
    let mut top = fs.make_directory(&mut root, 4).unwrap();
    let group = u64::from(fs.group_of(top.inode));
    let first = group * 32_768 + 3 * 2048;
    assert_eq!(u64::from(top.blocks[0]), first);
    let a = fs.make_file(&mut top, 5, 5000).unwrap();
    let b = fs.make_file(&mut top, 5, 4096).unwrap();
    let empty = fs.make_file(&mut top, 5, 0).unwrap();
    assert_eq!(
        (a.inode, b.inode, empty.inode),
        (top.inode + 1, top.inode + 2, top.inode + 3)
    );
    assert_eq!(
        a.data,
        [Extent::new(fs.lba(first as u32 + 1), Sectors::new(16))]
    );
    assert_eq!(
        b.data,
        [Extent::new(fs.lba(first as u32 + 3), Sectors::new(8))]
    );
    assert!(empty.data.is_empty());
    // The space of a deleted file is taken again, and the rest of the new file goes on behind.
    fs.remove(&a);
    let c = fs.make_file(&mut top, 5, 3 * 4096).unwrap();
    assert_eq!(c.inode, a.inode);
    let place =
        |at: u64, blocks: u64| Extent::new(fs.lba((first + at) as u32), Sectors::new(blocks * 8));
    assert_eq!(c.data, [place(1, 2), place(4, 1)]);
    // A file that grows later goes on at the first free block behind its last.
    let mut b = b;
    let _other = fs.make_file(&mut top, 5, 4096).unwrap();
    let before = fs.clone();
    fs.grow(&mut b, 4096 + 1).unwrap();
    let lba = |at: u64| before.lba((first + at) as u32);
    assert_eq!(
        b.data,
        [
            Extent::new(lba(3), Sectors::new(8)),
            Extent::new(lba(6), Sectors::new(8))
        ]
    );
    assert_eq!(b.size, 4097);
}

#[test]
fn indirect_blocks_are_where_ext3_has_them() {
    let mut fs = format(10 * GIB);
    let mut root = fs.root();
    let mut top = fs.make_directory(&mut root, 4).unwrap();
    // 2,100 blocks: 12 direct, 1,024 behind the first, 1,024 and 40 behind two more and the second
    // level.
    let file = fs.make_file(&mut top, 5, 2100 * 4096).unwrap();
    let start = block(&fs, file.data[0].start);
    let runs: Vec<(u64, u64)> = file
        .data
        .iter()
        .map(|extent| (block(&fs, extent.start) - start, extent.len.get() / 8))
        .collect();
    assert_eq!(
        runs,
        [
            (0, 12),
            (13, 1024),
            (13 + 1024 + 2, 1024),
            (13 + 1024 + 2 + 1024 + 1, 40)
        ]
    );
    let indirect: Vec<(u64, u64)> = file
        .indirect
        .iter()
        .map(|indirect| (indirect.from_block, block(&fs, indirect.lba) - start))
        .collect();
    assert_eq!(
        indirect,
        [(12, 12), (1036, 1037), (1036, 1038), (2060, 2063)]
    );
    let small = fs.make_file(&mut top, 5, 12 * 4096).unwrap();
    assert!(small.indirect.is_empty());
    let large = fs.make_file(&mut top, 5, 5 * GIB);
    assert_eq!(large, Err(LayoutError::FileSize { bytes: 5 * GIB }));
}

#[test]
fn directories_stay_with_their_parent_until_its_group_fills() {
    let mut fs = format(10 * GIB);
    let mut root = fs.root();
    let tops: Vec<u32> = (0..60)
        .map(|_| {
            let top = fs.make_directory(&mut root, 4).unwrap();
            fs.group_of(top.inode)
        })
        .collect();
    // Group 0 has the root, and the journal's groups have less than average room. Every other group
    // gets one directory.
    let mut spread = tops.clone();
    spread.sort_unstable();
    spread.dedup();
    assert_eq!(spread.len(), 60);
    assert!(!spread.contains(&0) && !spread.contains(&40));

    let mut top = fs.make_directory(&mut root, 4).unwrap();
    let home = fs.group_of(top.inode);
    let mut groups = Vec::new();
    for _ in 0..30 {
        let mut child = fs.make_directory(&mut top, 4).unwrap();
        groups.push(fs.group_of(child.inode) - home);
        // 2 MiB each.
        let _ = fs.make_file(&mut child, 5, 2 * MIB).unwrap();
    }
    // A group takes directories until it has 8,192 blocks less than the average. A directory here
    // takes 514: its own, 512 of data, an indirect one. The average, 31,759 because of the journal,
    // falls by 514 / 80 for each. A group with 32,254 free blocks is refused after the 18th
    // directory. The group has 32,253 - 18 * 514 = 23,001 blocks left, and 31,759 - 115 - 8,192 =
    // 23,452 are needed. After the 17th directory, 23,515 blocks were enough.
    let own = groups.iter().take_while(|&&group| group == 0).count();
    assert_eq!(own, 18, "{groups:?}");
    assert!(
        groups[own..].iter().all(|&group| group == 1 || group == 2),
        "{groups:?}"
    );
}

#[test]
fn a_directory_becomes_an_index_when_its_block_is_full() {
    let mut fs = format(10 * GIB);
    let mut root = fs.root();
    let mut directory = fs.make_directory(&mut root, 4).unwrap();
    // Two entries of 12 bytes at the start, then 20 bytes for each name of 11.
    for _ in 0..203 {
        fs.enter(&mut directory, 11).unwrap();
    }
    assert_eq!(directory.block_count(), 1);
    assert_eq!(fs.lookup(&directory, u32::MAX).1, None);
    fs.enter(&mut directory, 11).unwrap();
    assert_eq!(directory.block_count(), 3);
    let root_block = fs.lba(directory.blocks[0]);
    assert_eq!(
        fs.lookup(&directory, 0),
        (root_block, Some(fs.lba(directory.blocks[1])))
    );
    assert_eq!(
        fs.lookup(&directory, u32::MAX),
        (root_block, Some(fs.lba(directory.blocks[2])))
    );
    for _ in 0..10_000 {
        fs.enter(&mut directory, 11).unwrap();
    }
    // 204,104 bytes at 2,839 a leaf.
    assert_eq!(directory.block_count(), 73);
    let full = (0..200_000).find_map(|_| fs.enter(&mut directory, 11).err());
    let inode = directory.inode;
    assert_eq!(full, Some(LayoutError::DirectoryFull { inode }));
}

#[test]
fn a_full_file_system_says_so() {
    let mut fs = format(16 * MIB);
    let mut root = fs.root();
    let mut top = fs.make_directory(&mut root, 4).unwrap();
    let free = fs.free_blocks();
    let file = fs.make_file(&mut top, 5, 12 * 4096).unwrap();
    assert_eq!(fs.free_blocks(), free - 12);
    let full = fs.make_file(&mut top, 5, 64 * MIB);
    assert_eq!(full, Err(LayoutError::Full { what: "block" }));
    fs.remove(&file);
    let files = (0..2000).find_map(|_| fs.make_file(&mut top, 5, 0).err());
    assert_eq!(files, Some(LayoutError::Full { what: "inode" }));
}

#[test]
fn files_on_an_aged_file_system_lie_in_pieces() {
    let mut fs = format(4 * GIB);
    let before = fs.free_blocks();
    fs.age(0.6, 8.0).unwrap();
    let share = fs.free_blocks() as f64 / before as f64;
    assert!((0.37..0.43).contains(&share), "{share}");
    let mut root = fs.root();
    let mut top = fs.make_directory(&mut root, 4).unwrap();
    let file = fs.make_file(&mut top, 5, 4 * MIB).unwrap();
    let runs = file.data.len();
    // Holes of 8 blocks in the mean: 1,024 blocks in about 128 pieces.
    assert!((90..180).contains(&runs), "{runs}");
    assert!(fs.age(0.99, 8.0).is_err());
    assert!(fs.age(0.5, 0.0).is_err());
}

/// Change that a test makes to a file system.
#[derive(Clone, Debug)]
enum Change {
    Make { directory: usize, size: u64 },
    Grow { file: usize, by: u64 },
    Remove { file: usize },
    Directory { parent: usize },
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let any = 0_usize..1000;
    // Up to about 6 MB, past the second level of indirection, but mostly small.
    let size = prop_oneof![0_u64..20_000, 0_u64..200_000, 4_000_000_u64..6_000_000];
    let change = prop_oneof![
        4 => (any.clone(), size.clone()).prop_map(|(directory, size)| Change::Make { directory, size }),
        2 => (any.clone(), size).prop_map(|(file, by)| Change::Grow { file, by }),
        2 => any.clone().prop_map(|file| Change::Remove { file }),
        1 => any.prop_map(|parent| Change::Directory { parent }),
    ];
    proptest::collection::vec(change, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks each block's owner against a list, after any sequence of making, growing and
    /// removing.
    #[test]
    fn no_block_has_two_owners(changes in changes(), writer in 0_u32..16, seed in any::<u64>()) {
        let partition = Extent::at(40_960, GIB / 512);
        let mut fs = Ext3::format(partition, 512, Ext3Options::default(), seed).unwrap();
        fs.set_writer(writer);
        let mut root = fs.root();
        let mut directories = vec![fs.make_directory(&mut root, 4).unwrap()];
        let mut files: Vec<FileLayout> = Vec::new();
        for change in changes {
            match change {
                Change::Make { directory, size } => {
                    let count = directories.len();
                    let made = fs.make_file(&mut directories[directory % count], 8, size);
                    files.push(made.unwrap());
                }
                Change::Grow { file, by } if !files.is_empty() => {
                    let count = files.len();
                    let file = &mut files[file % count];
                    let size = file.size + by;
                    fs.grow(file, size).unwrap();
                }
                Change::Remove { file } if !files.is_empty() => {
                    let file = files.swap_remove(file % files.len());
                    fs.remove(&file);
                }
                Change::Directory { parent } => {
                    let count = directories.len();
                    let made = fs.make_directory(&mut directories[parent % count], 8);
                    directories.push(made.unwrap());
                }
                Change::Grow { .. } | Change::Remove { .. } => {}
            }
        }
        // All owned blocks, including tables.
        let mut owned: Vec<u32> = Vec::new();
        for (number, group) in fs.groups.iter().enumerate() {
            let tables = group.bitmap..group.bitmap + 2 + fs.table_blocks();
            owned.extend(tables);
            owned.extend(number as u32 * BLOCKS_PER_GROUP..group.bitmap);
        }
        for directory in &directories {
            owned.extend(&directory.blocks);
        }
        for file in &files {
            let blocks = file.size.div_ceil(BLOCK_BYTES);
            prop_assert_eq!(fs.blocks_in(&file.data), blocks);
            let needed: u64 = (0..blocks).map(|at| u64::from(indirect_blocks_before(at))).sum();
            prop_assert_eq!(file.indirect.len() as u64, needed);
            for extent in &file.data {
                prop_assert!(partition.covers(*extent));
                owned.extend(fs.block_of(extent.start)..fs.block_of(extent.end()));
            }
            for pair in file.data.windows(2) {
                prop_assert!(!pair[0].is_followed_by(pair[1]), "one extent in two");
            }
            owned.extend(file.indirect.iter().map(|indirect| fs.block_of(indirect.lba)));
        }
        owned.sort_unstable();
        prop_assert!(owned.windows(2).all(|pair| pair[0] < pair[1]), "two owners");
        for &block in &owned {
            let group = &fs.groups[(block / BLOCKS_PER_GROUP) as usize];
            prop_assert!(group.block_taken(block % BLOCKS_PER_GROUP));
        }
        // The root, lost+found and the journal (8,192 blocks of 1 GiB) are the rest.
        let taken = u64::from(fs.block_count) - fs.free_blocks();
        prop_assert_eq!(taken, owned.len() as u64 + 5 + 8192);
    }
}
