//! The device that is recorded.

use crate::error::RecordError;
use headtime_units::Extent;
use rustix::fs::{FileType, major, minor};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of sysfs that lists block devices by number.
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
    /// Returns the device of a path. A disk, loop device or device-mapper node is recorded as such, without
    /// the devices below. For a partition, requests to its disk that begin inside the partition are recorded.
    /// Flushes of the disk are recorded, too, since they name no partition.
    ///
    /// # Errors
    ///
    /// If the path is no block device, or the device is empty.
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

    /// Returns the path from which the target was made.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the kernel's name of the disk, such as `sda`, even if only a partition is recorded.
    pub fn disk(&self) -> &str {
        &self.disk
    }

    /// Returns the major and minor number of the disk.
    pub fn numbers(&self) -> (u32, u32) {
        self.numbers
    }

    /// Returns the recorded sectors of 512 bytes of the disk; `None` if all sectors are recorded.
    pub fn part(&self) -> Option<Extent> {
        self.part
    }

    /// Returns the disk's number as in events.
    pub(crate) fn dev(&self) -> u32 {
        // linux: include/linux/kdev_t.h, MKDEV.
        self.numbers.0 << 20 | self.numbers.1
    }

    /// Returns the filter for events, in the syntax of tracefs.
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

    /// Returns true if the device, or the medium in it, has been removed.
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
