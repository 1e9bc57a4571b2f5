//! What must not be given twice in a configuration.

use headtime_config::{Error, Place, Placed};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What must not be there twice, and where it is.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) disks: BTreeMap<String, Place>,
    pub(super) exports: BTreeMap<String, Place>,
    pub(super) files: BTreeMap<PathBuf, Place>,
    things: BTreeMap<Thing, Place>,
}

/// What is one thing by all its names: hard links, mounts of one folder in two places, nodes of one device.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// A file system's number and the file's.
    File(u64, u64),
    /// A block device's number.
    Device(u64),
}

/// What a path leads to, if that is there and could be a disk.
fn thing(path: &Path) -> Option<Thing> {
    let found = fs::metadata(path).ok()?;
    let kind = found.file_type();
    if kind.is_block_device() {
        return Some(Thing::Device(found.rdev()));
    }
    kind.is_file()
        .then(|| Thing::File(found.dev(), found.ino()))
}

/// Notes that something is there.
pub(super) fn once<K: Ord, T>(
    seen: &mut BTreeMap<K, Place>,
    key: K,
    section: &Placed<T>,
    of: &str,
    what: &str,
) -> Result<(), Error> {
    let error = section.error_at(of, "");
    match seen.insert(key, error.place.clone()) {
        None => Ok(()),
        Some(before) => Err(Error {
            problem: format!("{what}, at {before}"),
            ..error
        }),
    }
}

/// The same file under all its names, if it is there.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            Ok::<_, std::io::Error>(parent.join(path.file_name().unwrap_or_default()))
        })
        .unwrap_or_else(|_| path.to_owned())
}

/// Notes that a file, device or socket is in use.
pub(super) fn in_use_once<T>(
    seen: &mut Seen,
    path: &Path,
    section: &Placed<T>,
    key: &str,
) -> Result<(), Error> {
    let what = format!("{} is in use already", path.display());
    once(&mut seen.files, canonical(path), section, key, &what)?;
    match thing(path) {
        Some(thing) => {
            let what = format!("{what}, by another name");
            once(&mut seen.things, thing, section, key, &what)
        }
        None => Ok(()),
    }
}
