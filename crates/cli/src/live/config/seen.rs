//! Names and files that a configuration must not give twice.

use crate::file_identity::{FileIdentity, canonical, identity_of};
use headtime_config::{Error, Place, Placed};
use headtime_linux::shown::PathShown as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names and files that were given, each with its place.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) disks: BTreeMap<String, Place>,
    pub(super) exports: BTreeMap<String, Place>,
    /// Array of each disk that belongs to an array.
    pub(super) members: BTreeMap<String, String>,
    pub(super) files: BTreeMap<PathBuf, Place>,
    things: BTreeMap<FileIdentity, Place>,
}

/// Notes that a name or a file is given. Returns an error if it was given before.
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

/// Notes that a file, device or socket is in use. Returns an error if it was in use before.
pub(super) fn in_use_once<T>(
    seen: &mut Seen,
    path: &Path,
    section: &Placed<T>,
    key: &str,
) -> Result<(), Error> {
    let what = format!("{} is in use already", path.shown());
    once(&mut seen.files, canonical(path), section, key, &what)?;
    match identity_of(path) {
        Some(thing) => {
            let what = format!("{what}, by another name");
            once(&mut seen.things, thing, section, key, &what)
        }
        None => Ok(()),
    }
}
