//! What must not be given twice in a configuration.

use crate::apart::{Thing, canonical, thing};
use headtime_config::{Error, Place, Placed};
use headtime_linux::shown::PathShown as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What must not be there twice, and where it is.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) disks: BTreeMap<String, Place>,
    pub(super) exports: BTreeMap<String, Place>,
    /// The array of each disk that an array has.
    pub(super) members: BTreeMap<String, String>,
    pub(super) files: BTreeMap<PathBuf, Place>,
    things: BTreeMap<Thing, Place>,
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

/// Notes that a file, device or socket is in use.
pub(super) fn in_use_once<T>(
    seen: &mut Seen,
    path: &Path,
    section: &Placed<T>,
    key: &str,
) -> Result<(), Error> {
    let what = format!("{} is in use already", path.shown());
    once(&mut seen.files, canonical(path), section, key, &what)?;
    match thing(path) {
        Some(thing) => {
            let what = format!("{what}, by another name");
            once(&mut seen.things, thing, section, key, &what)
        }
        None => Ok(()),
    }
}
