//! Identities of files and devices. One file must not serve two purposes, even under two names.

use headtime_lab::fault::{Fault, name};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Identity of a file or a device. All names have the same identity: hard links, mounts of one folder in two places, nodes of one
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileIdentity {
    /// Number of the file system, and number of the file.
    File(u64, u64),
    /// Number of a block device.
    Device(u64),
}

/// Identity of the file or block device at a path, if it exists.
pub(crate) fn identity_of(path: &Path) -> Option<FileIdentity> {
    let found = fs::metadata(path).ok()?;
    let kind = found.file_type();
    if kind.is_block_device() {
        return Some(FileIdentity::Device(found.rdev()));
    }
    kind.is_file()
        .then(|| FileIdentity::File(found.dev(), found.ino()))
}

/// Path that is equal for all names of a file except hard links, even if the file does not exist.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            Ok::<_, std::io::Error>(parent.join(path.file_name().unwrap_or_default()))
        })
        .unwrap_or_else(|_| path.to_owned())
}

/// Refuses two files that are the same. Each file comes with the option that names it. A terminal, a pipe or `/dev/null` is a mere
/// stream, so several options may name it.
///
/// # Errors
///
/// If two files are the same.
pub(crate) fn are_apart(files: &[(&str, &Path)]) -> Result<(), Fault> {
    for (index, (one, path)) in files.iter().enumerate() {
        let is_stream = fs::metadata(path).is_ok_and(|found| {
            let kind = found.file_type();
            kind.is_char_device() || kind.is_fifo()
        });
        if is_stream {
            continue;
        }
        for (other, before) in &files[..index] {
            let is_same = identity_of(path).is_some_and(|this| identity_of(before) == Some(this));
            if is_same || canonical(path) == canonical(before) {
                return Err(Fault::Usage(format!(
                    "{one} {}: is {other} {}; one would overwrite the other",
                    name(path),
                    name(before)
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_under_all_its_names() {
        let directory = std::env::temp_dir().join(format!("headtime-apart-{}", std::process::id()));
        fs::create_dir_all(directory.join("folder")).unwrap();
        let at = |name: &str| directory.join(name);
        fs::write(at("there"), "").unwrap();
        fs::hard_link(at("there"), at("hard")).unwrap();
        std::os::unix::fs::symlink("there", at("soft")).unwrap();
        std::os::unix::fs::symlink("folder", at("way")).unwrap();
        for (one, other, are_one) in [
            ("there", "there", true),
            ("there", "./there", true),
            ("there", "folder/../there", true),
            ("there", "hard", true),
            ("there", "soft", true),
            ("new", "./new", true),
            ("folder/new", "way/new", true),
            ("there", "new", false),
            ("new", "folder/new", false),
            ("nowhere/new", "nowhere/other", false),
        ] {
            let (one, other) = (at(one), at(other));
            let refused = are_apart(&[("--out", &one), ("--state", &other)]);
            assert_eq!(refused.is_err(), are_one, "{one:?} {other:?}");
        }
        let null = Path::new("/dev/null");
        are_apart(&[("--out", null), ("--plot", null)]).unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }
}
