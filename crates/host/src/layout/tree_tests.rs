use super::super::BLOCK_BYTES;
use super::super::Ext3Options;
use super::*;
use headtime_units::{Extent, Sectors};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn lay(spec: &TreeSpec, partition: Extent, written: Written, seed: u64) -> (TreePlan, Tree, Ext3) {
    let mut fs = Ext3::format(partition, 512, Ext3Options::default(), seed).unwrap();
    fs.set_writer(seed as u32);
    let plan = spec.plan(seed).unwrap();
    let mut root = fs.root();
    let tree = plan.lay(&mut fs, &mut root, written, seed).unwrap();
    (plan, tree, fs)
}

/// Extents of all directories and files, without inode blocks.
fn extents(tree: &Tree) -> Vec<Extent> {
    let block = |lba| Extent::new(lba, Sectors::new(8));
    let mut all: Vec<Extent> = Vec::new();
    for directory in &tree.directories {
        all.extend(directory.blocks.iter().map(|&lba| block(lba)));
    }
    for file in &tree.files {
        all.extend(&file.layout.data);
        all.extend(
            file.layout
                .indirect
                .iter()
                .map(|indirect| block(indirect.lba)),
        );
    }
    all.sort_by_key(|extent| extent.start);
    all
}

fn check_laws(plan: &TreePlan, tree: &Tree, partition: Extent) {
    let all = extents(tree);
    for pair in all.windows(2) {
        assert!(pair[0].end() <= pair[1].start, "{pair:?} overlap");
    }
    for extent in &all {
        assert!(partition.covers(*extent), "{extent:?}");
    }
    for (file, &size) in tree.files.iter().zip(plan.sizes()) {
        assert_eq!(file.layout.size, size);
        let sectors: u64 = file.layout.data.iter().map(|extent| extent.len.get()).sum();
        assert_eq!(sectors, size.div_ceil(BLOCK_BYTES) * 8);
        let blocks = size.div_ceil(BLOCK_BYTES);
        assert_eq!(file.layout.indirect.is_empty(), blocks <= 12);
        for indirect in &file.layout.indirect {
            assert!(indirect.from_block < blocks);
        }
        let inode = Extent::new(file.inode_block, Sectors::new(8));
        assert!(partition.covers(inode));
        let before = all.partition_point(|extent| extent.start <= inode.start);
        let around = &all[before.saturating_sub(1)..(before + 1).min(all.len())];
        assert!(
            around.iter().all(|extent| !extent.overlaps(inode)),
            "data in an inode table"
        );
    }
    let mut inodes: Vec<u32> = tree.files.iter().map(|file| file.layout.inode).collect();
    inodes.sort_unstable();
    assert!(
        inodes.windows(2).all(|pair| pair[0] < pair[1]),
        "an inode is used twice"
    );
}

fn check_walk(tree: &Tree) {
    let mut directories = vec![0; tree.directories.len()];
    let mut files = vec![0; tree.files.len()];
    let mut inside = None;
    for visit in tree.walk() {
        match visit {
            Visit::Directory(number) => {
                directories[number as usize] += 1;
                inside = Some(number);
            }
            Visit::File(number) => {
                files[number as usize] += 1;
                let directory = tree.files[number as usize].directory;
                assert_eq!(
                    directories[directory as usize], 1,
                    "a file before its directory"
                );
            }
        }
    }
    assert!(inside.is_some());
    assert!(directories.iter().all(|&count| count == 1));
    assert!(files.iter().all(|&count| count == 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn trees_of_any_shape_keep_the_laws_of_a_layout(
        files in 1_u32..800,
        directories in 1_u32..60,
        top in 1_u32..10,
        depth_max in 1_u32..8,
        median in 1_u64..40_000,
        spread in 0.0..2.0_f64,
        copied in any::<bool>(),
        age in 0.0..0.6_f64,
        seed in any::<u64>(),
    ) {
        let spec = TreeSpec {
            files, directories, top, depth_max, median: Bytes(median), spread,
            ..TreeSpec::default()
        };
        let partition = Extent::at(12_345 * 8, 4 * GIB / 512);
        let written = if copied { Written::Copied } else { Written::Unpacked };
        let mut fs = Ext3::format(partition, 512, Ext3Options::default(), seed).unwrap();
        fs.set_writer(seed as u32);
        fs.age(age, 16.0).unwrap();
        let plan = spec.plan(seed).unwrap();
        let mut root = fs.root();
        let tree = plan.lay(&mut fs, &mut root, written, seed).unwrap();
        check_laws(&plan, &tree, partition);
        check_walk(&tree);
        // Deleting all files frees exactly their blocks.
        let free = fs.free_blocks();
        for file in &tree.files {
            fs.remove(&file.layout);
        }
        let held: u64 = tree.files.iter()
            .map(|file| file.layout.size.div_ceil(BLOCK_BYTES) + file.layout.indirect.len() as u64)
            .sum();
        prop_assert_eq!(fs.free_blocks(), free + held);
    }
}

#[test]
fn the_kernel_tree_is_as_large_as_it_should_be() {
    let partition = Extent::at(0, 2 * GIB / 512);
    let (plan, tree, _) = lay(&TreeSpec::default(), partition, Written::Unpacked, 1);
    check_laws(&plan, &tree, partition);
    check_walk(&tree);
    assert_eq!(tree.files.len(), 29_100);
    assert_eq!(tree.directories.len(), 1_760);
    let bytes = tree.bytes();
    assert!((350_000_000..380_000_000).contains(&bytes), "{bytes}");
    let mut sizes = plan.sizes().to_vec();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!((5_300..5_900).contains(&median), "{median}");
    let largest = sizes.last().copied().unwrap();
    assert!((500_000..3_000_000).contains(&largest), "{largest}");
    // On a fresh file system, ext3 splits hardly any file that it does not have to split.
    let pieces: usize = tree.files.iter().map(|file| file.layout.data.len()).sum();
    let needed: usize = tree
        .files
        .iter()
        .map(|file| {
            if file.layout.indirect.is_empty() {
                1
            } else {
                2
            }
        })
        .sum();
    assert!(pieces < needed + 300, "{pieces} pieces, {needed} needed");
}

#[test]
fn a_copy_is_read_in_order_and_an_archive_is_not() {
    let partition = Extent::at(0, 2 * GIB / 512);
    // Number of files in the walk that begin exactly behind the previous file.
    let follows = |written| {
        let (_, tree, _) = lay(&TreeSpec::default(), partition, written, 1);
        let mut end = None;
        let mut count = 0;
        for visit in tree.walk() {
            if let Visit::File(file) = visit {
                let data = &tree.files[file as usize].layout.data;
                if end == data.first().map(|extent| extent.start) {
                    count += 1;
                }
                end = data.last().map(|extent| extent.end());
            }
        }
        count
    };
    let unpacked = follows(Written::Unpacked);
    let copied = follows(Written::Copied);
    assert!(copied > 26_000, "{copied}");
    assert!(unpacked < 3_000, "{unpacked}");
}

#[test]
fn the_same_seed_lays_the_same_tree() {
    let partition = Extent::at(0, 2 * GIB / 512);
    let spec = TreeSpec {
        files: 2000,
        directories: 100,
        ..TreeSpec::default()
    };
    let lay = |seed| lay(&spec, partition, Written::Unpacked, seed).1;
    assert_eq!(lay(5), lay(5));
    assert_ne!(lay(5), lay(6));
}

#[test]
fn numbers_out_of_range_are_named() {
    let wrong = TreeSpec {
        spread: 4.0,
        ..TreeSpec::default()
    };
    let error = wrong.plan(1).unwrap_err().to_string();
    assert_eq!(error, "a tree with spread = 4: allowed are 0 to 3");
    let error = Written::from_name("moved").unwrap_err().to_string();
    assert_eq!(
        error,
        "a tree with written = moved: allowed are unpacked, copied"
    );
    for written in [Written::Unpacked, Written::Copied] {
        assert_eq!(Written::from_name(written.name()), Ok(written));
    }
}
