//! Each check holds on its seeds and on changed seeds: equal inputs each time, on stable Rust, within seconds.

use headtime_fuzz::mutate::mutate;
use headtime_fuzz::{TARGETS, check_of};
use std::fs;
use std::path::{Path, PathBuf};

/// Changes of each seed that are tried, one upon the other.
const CHANGES: u32 = 100;

/// Bytes of the longest input.
const INPUT_MAX: usize = 4096;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Names of the entries of a folder, without their suffixes, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = entries.map(|entry| stem(entry.unwrap().path())).collect();
    names.sort();
    names
}

/// Flips a bit of an input or cuts its last byte, as libFuzzer would.
fn change_bytes(data: &mut [u8], size: usize, _: usize) -> usize {
    let Some(at) = size.checked_sub(1) else {
        return 0;
    };
    let drawn = data[..size]
        .iter()
        .fold(size, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
    match drawn % 3 {
        0 => at,
        _ => {
            data[drawn % size] ^= 1 << (drawn / size % 8);
            size
        }
    }
}

#[test]
fn each_check_holds_on_its_seeds_and_on_changes_of_them() {
    for (name, check) in TARGETS {
        let seeds = folder("seeds").join(name);
        let mut inputs = vec![Vec::new()];
        if seeds.is_dir() {
            let mut files: Vec<_> = fs::read_dir(&seeds)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            files.sort();
            inputs.extend(files.iter().map(|file| fs::read(file).unwrap()));
        }
        for input in inputs {
            check(&input);
            let mut size = input.len();
            let mut data = input;
            data.resize(size.max(INPUT_MAX), 0);
            for seed in 0..CHANGES {
                let max = data.len();
                size = mutate(&mut data, size, max, seed, change_bytes);
                check(&data[..size]);
            }
        }
    }
}

#[test]
fn each_check_has_a_fuzz_target_and_each_folder_of_seeds_a_check() {
    let known: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&folder("fuzz_targets")), known);
    for name in names(&folder("seeds")) {
        check_of(&name);
    }
}
