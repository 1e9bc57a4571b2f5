//! Which device is recorded.

use crate::error::RecordError;
use headtime_units::Extent;
use rustix::fs::{FileType, major, minor};
use std::fs;
use std::path::{Path, PathBuf};

/// Where sysfs tells of block devices by their numbers.
const BLOCK: &str = "/sys/dev/block";

/// A block device to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    path: String,
    disk: String,
    numbers: (u32, u32),
    part: Option<Extent>,
}

impl Target {
    /// The device of this path. A disk, loop device or device-mapper node is recorded as such, not what
    /// lies below it; of a partition, the requests to its disk that begin between its ends, and flushes
    /// of the disk, which name no partition.
    ///
    /// # Errors
    ///
    /// If there is no block device of that name, or one with nothing in it.
    pub fn new(path: &Path) -> Result<Target, RecordError> {
        let device = path.display().to_string();
        let fault = |problem: String| RecordError::Device {
            device: device.clone(),
            problem,
        };
        let found = rustix::fs::stat(path).map_err(|error| fault(error.to_string()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
            return Err(fault(
                "it is not a block device; what is recorded is a device such as /dev/sda, /dev/sda1 or /dev/loop0"
                    .to_owned(),
            ));
        }
        let numbers = (major(found.st_rdev), minor(found.st_rdev));
        let directory = directory(numbers);
        let text = |name: &str| fs::read_to_string(directory.join(name));
        let size = number(text("size")).ok_or_else(|| {
            fault(format!(
                "{} does not say how large it is",
                directory.display()
            ))
        })?;
        if size == 0 {
            return Err(fault("nothing is in it, its size is 0".to_owned()));
        }
        let mut target = Target {
            path: device.clone(),
            disk: String::new(),
            numbers,
            part: None,
        };
        let mut place = fs::canonicalize(&directory).map_err(|error| fault(error.to_string()))?;
        if directory.join("partition").exists() {
            let start = number(text("start"))
                .filter(|start| start.checked_add(size).is_some())
                .ok_or_else(|| fault("sysfs does not say where it begins".to_owned()))?;
            target.part = Some(Extent::at(start, size));
            place.pop();
            target.numbers = fs::read_to_string(place.join("dev"))
                .ok()
                .and_then(|text| two_numbers(text.trim()))
                .ok_or_else(|| fault("sysfs does not say on which disk it is".to_owned()))?;
        }
        target.disk = place
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok(target)
    }

    /// The path that it was asked for by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the kernel calls the disk, such as `sda`, also if a partition of it is recorded.
    pub fn disk(&self) -> &str {
        &self.disk
    }

    /// Major and minor number of the disk.
    pub fn numbers(&self) -> (u32, u32) {
        self.numbers
    }

    /// The sectors of 512 bytes of the disk that are recorded; `None` if all are.
    pub fn part(&self) -> Option<Extent> {
        self.part
    }

    /// The disk as events name it.
    pub(crate) fn dev(&self) -> u32 {
        // linux: include/linux/kdev_t.h, MKDEV.
        self.numbers.0 << 20 | self.numbers.1
    }

    /// What an event must fulfil, in the words of tracefs.
    pub(crate) fn filter(&self) -> String {
        let dev = self.dev();
        match self.part {
            None => format!("dev == {dev}"),
            Some(part) => {
                let (start, end) = (part.start.get(), part.end().get());
                format!("dev == {dev} && ((sector >= {start} && sector < {end}) || nr_sector == 0)")
            }
        }
    }

    /// Returns true if it has been taken away, or what was in it.
    pub(crate) fn is_gone(&self) -> bool {
        let size = fs::read_to_string(directory(self.numbers).join("size"));
        number(size).is_none_or(|size| size == 0)
    }
}

fn directory((major, minor): (u32, u32)) -> PathBuf {
    Path::new(BLOCK).join(format!("{major}:{minor}"))
}

fn number(text: std::io::Result<String>) -> Option<u64> {
    text.ok()?.trim().parse().ok()
}

fn two_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_the_device_of_the_target() {
        let mut target = Target {
            path: "/dev/sdb1".to_owned(),
            disk: "sdb".to_owned(),
            numbers: (8, 16),
            part: None,
        };
        assert_eq!(target.filter(), "dev == 8388624");
        target.part = Some(Extent::at(2048, 1000));
        assert_eq!(
            target.filter(),
            "dev == 8388624 && ((sector >= 2048 && sector < 3048) || nr_sector == 0)"
        );
    }

    #[test]
    fn a_path_that_is_no_block_device_is_refused() {
        for (path, problem) in [
            ("/dev/null", "it is not a block device; what is recorded"),
            ("/", "it is not a block device; what is recorded"),
            ("/dev/no-such-device", "No such file or directory"),
        ] {
            let message = Target::new(Path::new(path)).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("{path}: {problem}")),
                "{message}"
            );
        }
    }
}
