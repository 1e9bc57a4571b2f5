//! Names of disks, which `/sys` shows.

use crate::shown::one_line;
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of a block device's disk, and the name of the device; `None` if the kernel knows no name. The path would be no name, since
/// another device may have it after the next boot. The name of a partition is its number, its place, and the name of the disk.
pub fn disk_and_names(sys: &Path, numbers: &str) -> (PathBuf, Option<String>) {
    let part = sys.join("dev/block").join(numbers);
    let text = |path: PathBuf| fs::read_to_string(path).ok();
    // The directory of a partition lies in its disk's.
    let number = text(part.join("partition"));
    let disk = match number {
        None => part.clone(),
        // The path in `/sys/dev/block` is a symbolic link. Only the resolved path has the disk's directory as its parent.
        Some(_) => part
            .canonicalize()
            .ok()
            .and_then(|part| part.parent().map(Path::to_owned))
            .unwrap_or_else(|| part.clone()),
    };
    let mut names = Vec::new();
    for name in [
        "wwid",
        "device/wwid",
        "device/model",
        "device/serial",
        "dm/uuid",
    ] {
        let text = text(disk.join(name)).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        if !words.is_empty() {
            names.push(one_line(&words.join(" ")));
        }
    }
    if names.is_empty() {
        return (disk, None);
    }
    if let Some(number) = number {
        let start = text(part.join("start"));
        let start = start.map(|start| format!(" from {}", start.trim()));
        let place = start.unwrap_or_default();
        names.insert(0, format!("partition {}{place}", number.trim()));
    }
    (disk, Some(names.join(", ")))
}
