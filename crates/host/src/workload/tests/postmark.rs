//! Postmark: files that come and go.

use super::*;

/// Follows an instance's files through its steps.
fn check_postmark(builder: &mut HostBuilder, files: usize, transactions: usize) {
    let sizes: Vec<(u64, u64)> = builder
        .files
        .iter()
        .map(|file| {
            let room: u64 = file
                .extents
                .iter()
                .map(|extent| extent.len.get() * 512)
                .sum();
            (file.size, room)
        })
        .collect();
    for (_, steps) in steps(builder) {
        let mut size: Vec<u64> = sizes.iter().map(|&(size, _)| size).collect();
        let mut gone = vec![false; size.len()];
        let (mut thinks, mut loaded, mut deleted) = (0, false, 0);
        let (mut reads, mut appends, mut creates) = (0, 0, 0);
        // File and offset at which a write continues that the buffer has cut.
        let mut goes_on = None;
        for step in steps {
            match step {
                Step::Think(_) => {
                    thinks += 1;
                    goes_on = None;
                }
                Step::ReadBlock(_) => loaded = true,
                Step::DirtyBlock(_) => assert!(loaded, "changed without being read"),
                Step::Read { file, offset, len } => {
                    let at = file.0 as usize;
                    assert!(!gone[at] && offset + len <= size[at] && len <= 4096);
                    reads += u32::from(offset == 0);
                }
                Step::Write { file, offset, len } => {
                    let at = file.0 as usize;
                    assert!(!gone[at] && len <= 4096);
                    assert_eq!(offset, size[at], "it is appended to");
                    creates += u32::from(offset == 0);
                    appends += u32::from(offset > 0 && goes_on != Some((at, offset)));
                    goes_on = Some((at, offset + len));
                    size[at] = offset + len;
                    assert!(size[at] <= sizes[at].1.min(10_000));
                }
                Step::Forget(file) => {
                    assert!(!std::mem::replace(&mut gone[file.0 as usize], true));
                    deleted += 1;
                }
                _ => panic!("{step:?}"),
            }
        }
        assert_eq!(thinks, transactions);
        let half = transactions as f64 / 2.0;
        let near = |count: u32| (f64::from(count) - half).abs() < 4.0 * (half / 2.0).sqrt();
        assert!(near(reads) && near(appends) && near(creates) && near(deleted));
        assert_eq!(creates + deleted, transactions as u32);
    }
    let before = sizes.iter().filter(|&&(size, _)| size > 0).count();
    assert_eq!(before, files * 4);
    let mean = sizes.iter().map(|&(size, _)| size).sum::<u64>() / before as u64;
    assert!((5_100..5_400).contains(&mean), "{mean}");
}

#[test]
fn postmark_reads_appends_creates_and_deletes() {
    let spec = PostMarkSpec {
        scale: 0.2,
        transactions: 10_000,
        metadata_cached: false,
        ..PostMarkSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::PostMark(spec.clone()), 5);
    check_postmark(&mut builder, 2000, 2000);
    // With the metadata in memory nothing else changes.
    let without = |builder: &mut HostBuilder| {
        let mut all = steps(builder);
        for (_, steps) in &mut all {
            steps.retain(|step| !matches!(step, Step::ReadBlock(_)));
        }
        all
    };
    let cold = without(&mut built(&BenchmarkSpec::PostMark(spec.clone()), 5));
    let spec = PostMarkSpec {
        metadata_cached: true,
        ..spec
    };
    let warm = steps(&mut built(&BenchmarkSpec::PostMark(spec), 5));
    assert!(cold == warm);
}

/// Checks that every file is written before use, and that no file is left.
#[test]
fn a_whole_run_of_postmark_begins_and_ends_without_files() {
    let spec = PostMarkSpec {
        instances: 1,
        files: 300,
        transactions: 200,
        whole: true,
        ..PostMarkSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::PostMark(spec), 3);
    assert!(builder.files.iter().all(|file| file.size == 0));
    let files = builder.files.len();
    let (mut there, mut creates, mut deletes) = (vec![0_u64; files], 0, 0);
    let (_, steps) = steps(&mut builder).remove(0);
    let first = steps.iter().filter(|step| matches!(step, Step::Think(_)));
    let thinks = first.count();
    for step in steps {
        match step {
            Step::Write { file, offset, len } => {
                assert_eq!(offset, there[file.0 as usize]);
                creates += usize::from(offset == 0);
                there[file.0 as usize] += len;
            }
            Step::Read { file, offset, len } => assert!(offset + len <= there[file.0 as usize]),
            Step::Forget(file) => {
                assert!(std::mem::take(&mut there[file.0 as usize]) > 0);
                deletes += 1;
            }
            _ => {}
        }
    }
    assert_eq!((creates, deletes), (files, files));
    // One for each file at the start and at the end, and one for each transaction.
    let created = files - 300;
    let left = 300 + created - (200 - created);
    assert_eq!(thinks, 300 + 200 + left);
    assert!(there.iter().all(|size| *size == 0));
}

#[test]
fn postmark_on_a_worn_file_system_writes_files_into_its_holes() {
    let neighbours = |aged| {
        let spec = PostMarkSpec {
            instances: 1,
            files: 300,
            transactions: 1,
            aged,
            hole: Bytes(16 << 10),
            ..PostMarkSpec::default()
        };
        let files = built(&BenchmarkSpec::PostMark(spec), 3).files;
        let ends = files.iter().map(|file| file.extents.last().unwrap());
        let starts = files[1..].iter().map(|file| file.extents[0]);
        ends.zip(starts)
            .filter(|(end, start)| end.is_followed_by(*start))
            .count()
    };
    assert!(neighbours(0.0) > 280, "{}", neighbours(0.0));
    // 300 files of 1.8 blocks have 130 edges of holes of 4 blocks. Three in five edges lie between two files.
    assert!((190..260).contains(&neighbours(0.5)), "{}", neighbours(0.5));
}

#[test]
fn postmark_stops_when_it_is_out_of_files() {
    let spec = PostMarkSpec {
        instances: 1,
        files: 10,
        transactions: 100,
        bias_create: 0,
        bias_read: 10,
        metadata_cached: false,
        ..PostMarkSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::PostMark(spec), 1);
    let (_, steps) = steps(&mut builder).remove(0);
    let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|&step| wanted(step)).count();
    assert_eq!(count(|step| matches!(step, Step::Forget(_))), 10);
    assert_eq!(count(|step| matches!(step, Step::Think(_))), 10);
    assert_eq!(count(|step| matches!(step, Step::Write { .. })), 0);
    // A transaction by hand: the directory's only block, the inode, the data in calls of 4 KiB.
    assert!(matches!(steps[1], Step::ReadBlock(_)) && matches!(steps[2], Step::ReadBlock(_)));
    let Step::Read {
        file,
        offset: 0,
        len,
    } = steps[3]
    else {
        panic!("{:?}", steps[3]);
    };
    assert_eq!(len, builder.files[file.0 as usize].size.min(4096));
}
