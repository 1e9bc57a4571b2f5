//! Finds other uses of a file or block device. A disk does not write to a file or device that is mounted, partitioned,
//! a swap area, held by another driver, or behind a loop device.

use headtime_linux::mounts::{self, Mount};
use headtime_linux::names::disk_and_names;
use headtime_linux::shown::{PathShown as _, one_line};
use rustix::fs::{FileType, Stat, major, makedev, minor, stat};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Use of a file or block device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Use {
    /// The file, the device or one of its partitions is mounted.
    Mounted {
        /// The device or file.
        what: String,
        at: PathBuf,
    },
    /// The file, the device or one of its partitions is a swap area.
    Swap {
        /// The device or file.
        what: String,
    },
    /// Another driver (device mapper, RAID, bcache) has built a device on this device, its disk or one of its
    /// partitions.
    Held {
        what: String,
        /// Name of the device-mapper, RAID or bcache device that uses this device.
        by: String,
    },
    /// The device has partitions.
    Partitioned { first: String, count: usize },
    /// The file is behind a loop device.
    Loop { device: String },
    /// Another program has locked the file, or opened the device exclusively.
    Claimed,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Mounted { what, at } => {
                let at = one_line(&at.to_string_lossy());
                write!(f, "{what} is mounted on {at}")
            }
            Use::Swap { what } => write!(f, "{what} is swapped to"),
            Use::Held { what, by } => write!(f, "{what} is held by {by}"),
            Use::Partitioned { first, count: 1 } => write!(f, "it has a partition, {first}"),
            Use::Partitioned { first, count } => {
                write!(f, "it has {count} partitions, the first is {first}")
            }
            Use::Loop { device } => write!(f, "it is behind {device}"),
            Use::Claimed => write!(f, "another program has locked it"),
        }
    }
}

/// Folders in which the kernel reports its state.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub sys: PathBuf,
    pub proc: PathBuf,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            sys: PathBuf::from("/sys"),
            proc: PathBuf::from("/proc"),
        }
    }
}

/// A block device: its number and its directory in sysfs.
struct Node {
    number: u64,
    name: String,
    dir: PathBuf,
}

impl Node {
    fn new(dir: PathBuf) -> io::Result<Node> {
        let number = fs::read_to_string(dir.join("dev"))?;
        let name = dir
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Node {
            number: device_number(number.trim())
                .ok_or_else(|| io::Error::other(format!("{} is no number", number.trim())))?,
            name: name.unwrap_or_default(),
            dir,
        })
    }

    fn holder(&self) -> io::Result<Option<Use>> {
        let names = names(&self.dir.join("holders"))?;
        Ok(names.into_iter().next().map(|by| Use::Held {
            what: self.name.clone(),
            by,
        }))
    }
}

/// Returns the names in a directory, in order. A missing directory has no names.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

fn is_block_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

/// Use that a drive makes of the priorities of commands (NCQ priority of ATA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// The drive has no priorities, or the kernel does not show them.
    Absent,
    /// The drive has priorities, and they are off (`device/ncq_prio_enable`).
    Off,
    /// The drive serves real-time commands first.
    On,
}

impl Machine {
    /// Use of priorities by the disk of a block device.
    pub fn priorities(&self, device: u64) -> Priorities {
        let number = format!("{}:{}", major(device), minor(device));
        let (disk, _) = disk_and_names(&self.sys, &number);
        let is_set = |name| {
            let text = fs::read_to_string(disk.join("device").join(name));
            text.is_ok_and(|text| text.trim() == "1")
        };
        match (is_set("ncq_prio_supported"), is_set("ncq_prio_enable")) {
            (_, true) => Priorities::On,
            (true, false) => Priorities::Off,
            (false, false) => Priorities::Absent,
        }
    }

    /// The directory of a block device.
    pub fn directory(&self, device: u64) -> io::Result<PathBuf> {
        let number = format!("{}:{}", major(device), minor(device));
        fs::canonicalize(self.sys.join("dev/block").join(number))
    }

    /// Returns the use of a block device, if there is one.
    ///
    /// # Errors
    ///
    /// If the kernel does not report the uses.
    pub fn use_of_device(&self, device: u64) -> io::Result<Option<Use>> {
        let whole = Node::new(self.directory(device)?)?;
        let mut partitions = Vec::new();
        for name in names(&whole.dir)? {
            let dir = whole.dir.join(name);
            if dir.join("partition").exists() {
                partitions.push(Node::new(dir)?);
            }
        }
        // A device that was built on a whole disk also uses the disk's partitions.
        let parent = match (whole.dir.join("partition").exists(), whole.dir.parent()) {
            (true, Some(parent)) => Some(Node::new(parent.to_owned())?),
            _ => None,
        };
        let nodes: Vec<&Node> = std::iter::once(&whole).chain(&partitions).collect();
        if let Some(found) = self.mount_of(&nodes)? {
            return Ok(Some(found));
        }
        for path in self.swaps()? {
            let Ok(stat) = stat(&path) else { continue };
            if let Some(node) = nodes
                .iter()
                .find(|node| is_block_device(&stat) && node.number == stat.st_rdev)
            {
                let what = node.name.clone();
                return Ok(Some(Use::Swap { what }));
            }
        }
        for node in nodes.iter().copied().chain(&parent) {
            if let Some(held) = node.holder()? {
                return Ok(Some(held));
            }
        }
        Ok(partitions.first().map(|first| Use::Partitioned {
            first: first.name.clone(),
            count: partitions.len(),
        }))
    }

    fn mounts(&self) -> io::Result<Vec<Mount>> {
        let text = fs::read(self.proc.join("self/mountinfo"))?;
        Ok(mounts::list(&text).collect())
    }

    fn mount_of(&self, nodes: &[&Node]) -> io::Result<Option<Use>> {
        for mount in self.mounts()? {
            // A file system on several devices has a device number of its own, and names one of its devices as the
            // source.
            let source = match mount.source.starts_with("/dev") {
                true => stat(&mount.source).ok().filter(is_block_device),
                false => None,
            };
            let (major, minor) = mount.device;
            let numbers = [
                Some(makedev(major, minor)),
                source.map(|source| source.st_rdev),
            ];
            if let Some(node) = nodes
                .iter()
                .find(|node| numbers.contains(&Some(node.number)))
            {
                return Ok(Some(Use::Mounted {
                    what: node.name.clone(),
                    at: mount.mountpoint,
                }));
            }
        }
        Ok(None)
    }

    /// Paths of all swap areas.
    fn swaps(&self) -> io::Result<Vec<PathBuf>> {
        let text = match fs::read_to_string(self.proc.join("swaps")) {
            Ok(text) => text,
            // A kernel without swapping has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let first = |line: &str| {
            let path = line.split_ascii_whitespace().next()?;
            Some(mounts::unescape(path.as_bytes()))
        };
        Ok(text.lines().skip(1).filter_map(first).collect())
    }

    /// Returns the use of a regular file, if there is one.
    ///
    /// # Errors
    ///
    /// If the kernel does not report the uses.
    pub fn use_of_file(&self, path: &Path, file: &Stat) -> io::Result<Option<Use>> {
        let same = |other: &Path| {
            stat(other)
                .is_ok_and(|other| other.st_dev == file.st_dev && other.st_ino == file.st_ino)
        };
        let block = self.sys.join("block");
        for device in names(&block)? {
            let backing = block.join(&device).join("loop/backing_file");
            // Only a loop device in use has a backing file.
            let Ok(backing) = fs::read_to_string(backing) else {
                continue;
            };
            if same(Path::new(backing.trim_end_matches('\n'))) {
                return Ok(Some(Use::Loop { device }));
            }
        }
        let what = || path.shown().to_string();
        if self.swaps()?.iter().any(|swap| same(swap)) {
            return Ok(Some(Use::Swap { what: what() }));
        }
        // Only this file system can be mounted from a file without a loop device. The sources of other file systems may
        // be names of servers, which must not be looked up.
        for mount in self.mounts()? {
            if mount.kind == "erofs" && same(&mount.source) {
                return Ok(Some(Use::Mounted {
                    what: what(),
                    at: mount.mountpoint,
                }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory of files such as a kernel provides.
    struct Told(PathBuf);

    impl Told {
        fn new(name: &str) -> Told {
            let name = format!("headtime-safety-{name}-{}", std::process::id());
            let told = Told(std::env::temp_dir().join(name));
            let _ = fs::remove_dir_all(&told.0);
            told.file("proc/self/mountinfo", "");
            told.file("proc/swaps", "Filename Type Size Used Priority\n");
            told
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            fs::write(path, text).expect("writes");
        }

        /// A device as `devices/sdx`, or a partition as `devices/sdx/sdx1`.
        fn device(&self, dir: &str, number: &str) {
            self.file(&format!("sys/{dir}/dev"), &format!("{number}\n"));
            let by_number = self.0.join("sys/dev/block");
            fs::create_dir_all(&by_number).expect("makes");
            symlink(self.0.join("sys").join(dir), by_number.join(number)).expect("links");
        }

        fn partition(&self, dir: &str, number: &str) {
            self.device(dir, number);
            self.file(&format!("sys/{dir}/partition"), "1\n");
        }

        fn machine(&self) -> Machine {
            Machine {
                sys: self.0.join("sys"),
                proc: self.0.join("proc"),
            }
        }

        fn found(&self, number: &str) -> Option<String> {
            let number = device_number(number).expect("a number");
            let found = self.machine().use_of_device(number).expect("tells");
            found.map(|found| found.to_string())
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn holders_of_a_disk_and_of_its_partitions() {
        let told = Told::new("holders");
        told.device("devices/sdx", "8:16");
        assert_eq!(told.found("8:16"), None);
        told.partition("devices/sdx/sdx1", "8:17");
        told.partition("devices/sdx/sdx2", "8:18");
        let partitioned = "it has 2 partitions, the first is sdx1";
        assert_eq!(told.found("8:16").as_deref(), Some(partitioned));
        assert_eq!(told.found("8:17"), None);
        told.file("sys/devices/sdx/sdx2/holders/dm-3", "");
        let held = "sdx2 is held by dm-3";
        assert_eq!(told.found("8:16").as_deref(), Some(held));
        assert_eq!(told.found("8:18").as_deref(), Some(held));
        assert_eq!(told.found("8:17"), None);
        // A device built on the disk also holds the disk's partitions.
        told.file("sys/devices/sdx/holders/md0", "");
        assert_eq!(told.found("8:17").as_deref(), Some("sdx is held by md0"));
    }

    #[test]
    fn mounts_of_a_disk_and_of_its_partitions() {
        let told = Told::new("mounts");
        told.device("devices/sdx", "8:16");
        told.partition("devices/sdx/sdx1", "8:17");
        told.file(
            "proc/self/mountinfo",
            "22 1 254:0 / / rw - ext4 /dev/root rw\n\
             30 22 8:17 / /mnt/two\\040words rw,noatime shared:1 master:2 - xfs /dev/sdx1 rw\n",
        );
        let mounted = "sdx1 is mounted on /mnt/two words";
        assert_eq!(told.found("8:16").as_deref(), Some(mounted));
        assert_eq!(told.found("8:17").as_deref(), Some(mounted));
    }

    #[test]
    fn what_is_not_told_is_an_error() {
        let told = Told::new("untold");
        told.device("devices/sdx", "8:16");
        let machine = told.machine();
        assert!(machine.use_of_device(makedev(8, 32)).is_err());
        fs::remove_file(told.0.join("proc/self/mountinfo")).expect("was there");
        assert!(machine.use_of_device(makedev(8, 16)).is_err());
    }

    #[test]
    fn a_file_that_is_swapped_to() {
        let told = Told::new("swap file");
        told.file("swap file", "");
        let path = told.0.join("swap file");
        let escaped = path.display().to_string().replace(' ', "\\040");
        told.file(
            "proc/swaps",
            &format!("Filename Type\n{escaped} file 8 0 -2\n"),
        );
        let file = stat(&path).expect("is there");
        let found = told.machine().use_of_file(&path, &file).expect("tells");
        let what = path.display().to_string();
        assert_eq!(found, Some(Use::Swap { what }));
    }

    #[test]
    fn priorities_are_those_of_the_disk_also_for_a_partition() {
        let told = Told::new("priorities");
        told.device("devices/sda", "8:0");
        told.partition("devices/sda/sda1", "8:1");
        let both = || [makedev(8, 0), makedev(8, 1)].map(|of| told.machine().priorities(of));
        assert_eq!(both(), [Priorities::Absent; 2]);
        told.file("sys/devices/sda/device/ncq_prio_supported", "0\n");
        assert_eq!(both(), [Priorities::Absent; 2]);
        told.file("sys/devices/sda/device/ncq_prio_supported", "1\n");
        told.file("sys/devices/sda/device/ncq_prio_enable", "0\n");
        assert_eq!(both(), [Priorities::Off; 2]);
        told.file("sys/devices/sda/device/ncq_prio_enable", "1\n");
        assert_eq!(both(), [Priorities::On; 2]);
    }
}
