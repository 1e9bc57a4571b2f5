//! Facts about a disk: its identity and write cache from `/sys`, and its look-ahead from the disk itself.
//!
//! The write cache of a SCSI disk, and of an ATA disk behind libata, is the file `cache_type` of its `scsi_disk`. A write to the file makes
//! the kernel send a MODE SELECT of the whole caching page as the page is then, with the bit changed. If the disk can save the page, the
//! kernel asks for that. The state of look-ahead is then saved, too, which otherwise lasts only until the next power cycle
//! ([`headtime_linux::look_ahead`]). A caller that restores both therefore restores the write cache last.

use headtime_linux::look_ahead::{look_ahead, set_look_ahead};
use headtime_linux::names::disk_and_names;
use headtime_linux::shown::one_line;
use headtime_linux::switch::SwitchError;
use rustix::fs::{FileType, Mode, OFlags, major, minor, open, stat};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Disk as the kernel shows it.
#[derive(Debug)]
pub struct Kernel {
    identity: String,
    /// File that reads and sets the write cache.
    cache_type: Option<PathBuf>,
    /// Most commands that the kernel sends to the disk at once, if the kernel says so.
    queue_depth: Option<u16>,
    /// Bytes of a sector of the medium, if the kernel says so.
    physical_bytes: Option<u32>,
    /// Open disk for the commands of look-ahead, or the reason why there are none; `None` for a file.
    disk: Option<Result<OwnedFd, SwitchError>>,
}

/// Texts of `cache_type`. Bit 0 of the index says that reads bypass the cache. Bit 1, and the flag, say that writes end in the cache.
const CACHE_TYPES: [(&str, bool); 4] = [
    ("write through", false),
    ("none", false),
    ("write back", true),
    ("write back, no read (daft)", true),
];

impl Kernel {
    /// Reads the facts about the device or file at `path`. `sys` is the directory where the kernel shows its disks.
    ///
    /// # Errors
    ///
    /// If there is no such device or file.
    pub fn of(path: &Path, sys: &Path) -> io::Result<Kernel> {
        let found = stat(path)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
            let path = path.canonicalize()?;
            return Ok(Kernel {
                identity: format!("file {}", one_line(&path.to_string_lossy())),
                cache_type: None,
                queue_depth: None,
                physical_bytes: None,
                disk: None,
            });
        }
        let (major, minor) = (major(found.st_rdev), minor(found.st_rdev));
        let numbers = format!("{major}:{minor}");
        Ok(Kernel::of_numbers(sys, &numbers, || opened(path)))
    }

    fn of_numbers(
        sys: &Path,
        numbers: &str,
        open: impl FnOnce() -> Result<OwnedFd, SwitchError>,
    ) -> Kernel {
        let (disk, names) = disk_and_names(sys, numbers);
        Kernel {
            identity: names.unwrap_or_else(|| format!("block device {numbers}")),
            cache_type: cache_type(&disk),
            queue_depth: queue_depth(&disk),
            physical_bytes: physical_bytes(&disk),
            disk: Some(takes_commands(&disk).and_then(|()| open())),
        }
    }

    /// Name that no other disk has, as far as the kernel knows.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Most commands that the kernel sends to the disk at once, 1 or more; `None` if the kernel does not say. Host and disk agree on the
    /// number, or the administrator sets it (`queue_depth`; 1 for an ATA disk without NCQ).
    pub fn queue_depth(&self) -> Option<u16> {
        self.queue_depth
    }

    /// Bytes of a sector of the medium, a power of two from 512 to 4096; `None` if the kernel does not say. A disk with 512-byte emulation
    /// has 4096.
    pub fn physical_bytes(&self) -> Option<u32> {
        self.physical_bytes
    }

    /// True if the write cache is on; `None` if that is not known.
    pub fn write_cache(&self) -> Option<bool> {
        let (_, on) = self.written()?;
        Some(on)
    }

    /// Turns the write cache on or off.
    ///
    /// # Errors
    ///
    /// If the disk has no such switch, or the kernel or the disk refuses.
    pub fn set_write_cache(&self, on: bool) -> io::Result<()> {
        let known = self.cache_type.as_deref().zip(self.written());
        let Some((path, (at, _))) = known else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // Only the bit of writes changes.
        let to = CACHE_TYPES[at & 1 | usize::from(on) << 1].0;
        fs::write(path, to)?;
        match self.write_cache() {
            Some(is) if is == on => Ok(()),
            _ => Err(io::Error::other("the disk leaves it as it is")),
        }
    }

    /// True if the disk's look-ahead is on.
    ///
    /// # Errors
    ///
    /// If the state is not known, or cannot be changed.
    pub fn look_ahead(&self) -> Result<bool, SwitchError> {
        look_ahead(self.disk()?.as_fd())
    }

    /// Turns the disk's look-ahead on or off.
    ///
    /// # Errors
    ///
    /// If the disk has no such switch, or the kernel or the disk refuses.
    pub fn set_look_ahead(&self, on: bool) -> Result<(), SwitchError> {
        set_look_ahead(self.disk()?.as_fd(), on)
    }

    /// True for a file, which has no switches.
    pub fn is_file(&self) -> bool {
        self.disk.is_none()
    }

    fn disk(&self) -> Result<&OwnedFd, SwitchError> {
        let file = Err(SwitchError::Absent("a file has none"));
        self.disk
            .as_ref()
            .map_or(file, |disk| disk.as_ref().map_err(SwitchError::clone))
    }

    /// State of `cache_type`: the index in [`CACHE_TYPES`], and true if the write cache is on.
    fn written(&self) -> Option<(usize, bool)> {
        let text = fs::read_to_string(self.cache_type.as_deref()?).ok()?;
        let at = CACHE_TYPES
            .iter()
            .position(|(name, _)| *name == text.trim())?;
        Some((at, CACHE_TYPES[at].1))
    }
}

/// Directory with the SCSI facts about a disk, which ATA disks have, too.
const SCSI_DISK: &str = "device/scsi_disk";

/// Queue depth of a SCSI or ATA disk.
fn queue_depth(disk: &Path) -> Option<u16> {
    let text = fs::read_to_string(disk.join("device/queue_depth")).ok()?;
    let depth: u64 = text.trim().parse().ok()?;
    Some(u16::try_from(depth).unwrap_or(u16::MAX).max(1))
}

/// Bytes of the medium's sectors, as the kernel has them.
fn physical_bytes(disk: &Path) -> Option<u32> {
    let text = fs::read_to_string(disk.join("queue/physical_block_size")).ok()?;
    let bytes: u32 = text.trim().parse().ok()?;
    // Larger values come from a bridge or an array, and do not describe the medium.
    let is_medium = bytes.is_power_of_two() && (512..=4096).contains(&bytes);
    is_medium.then_some(bytes)
}

/// File `cache_type` of a SCSI disk.
fn cache_type(disk: &Path) -> Option<PathBuf> {
    let mut found = fs::read_dir(disk.join(SCSI_DISK)).ok()?;
    let path = found.next()?.ok()?.path().join("cache_type");
    path.exists().then_some(path)
}

/// Checks that ATA or SCSI commands reach this disk and no other. A mapped device would pass them to the disks below.
fn takes_commands(disk: &Path) -> Result<(), SwitchError> {
    if !disk.join(SCSI_DISK).is_dir() {
        return Err(SwitchError::Absent(
            "only ATA, SATA, SCSI and SAS disks have one",
        ));
    }
    let Ok(way) = disk.canonicalize() else {
        return Err(SwitchError::Absent(
            "nobody says where the disk is attached",
        ));
    };
    let is_usb = |name: &OsStr| name.as_encoded_bytes().starts_with(b"usb");
    match way.iter().any(is_usb) {
        // The kernel does not ask disks behind USB for the page, either.
        true => Err(SwitchError::Absent(
            "disks behind USB are not asked for one, since some do not survive it",
        )),
        false => Ok(()),
    }
}

/// Opens a device for commands other than reads and writes.
fn opened(path: &Path) -> Result<OwnedFd, SwitchError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| SwitchError::Failed {
        command: "open",
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probed::Probed;
    use headtime_probe::Probe;
    use headtime_testkit::Folder;
    use headtime_units::Sectors;

    /// Makes the directories of a disk with one partition, as the kernel shows them.
    fn machine(folder: &Folder, cache: &str) -> PathBuf {
        let disk = folder.join("devices/ata1/block/sda");
        let scsi = folder.join("devices/ata1/scsi_disk/0:0:0:0");
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::create_dir_all(&scsi).unwrap();
        fs::create_dir_all(folder.join("dev/block")).unwrap();
        let link = |to: &str, from: PathBuf| std::os::unix::fs::symlink(to, from).unwrap();
        link("../..", disk.join("device"));
        link("../../devices/ata1/block/sda", folder.join("dev/block/8:0"));
        link(
            "../../devices/ata1/block/sda/sda1",
            folder.join("dev/block/8:1"),
        );
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        fs::write(disk.join("sda1/start"), "2048\n").unwrap();
        fs::write(folder.join("devices/ata1/model"), "WDC WD5000AAKS  \n").unwrap();
        fs::write(folder.join("devices/ata1/wwid"), "t10.ATA   WDC  123 \n").unwrap();
        let file = scsi.join("cache_type");
        fs::write(&file, cache).unwrap();
        file
    }

    const NOT_OPENED: SwitchError = SwitchError::Absent("it is not opened here");

    fn of_numbers(folder: &Folder, numbers: &str) -> Kernel {
        Kernel::of_numbers(&folder.join(""), numbers, || Err(NOT_OPENED))
    }

    #[test]
    fn a_disk_and_its_partition_have_names_of_their_own_and_one_cache() {
        let folder = Folder::new();
        let file = machine(&folder, "write back\n");
        let disk = of_numbers(&folder, "8:0");
        let part = of_numbers(&folder, "8:1");
        assert_eq!(disk.identity(), "t10.ATA WDC 123, WDC WD5000AAKS");
        assert_eq!(
            part.identity(),
            "partition 1 from 2048, t10.ATA WDC 123, WDC WD5000AAKS"
        );
        assert_eq!(
            (disk.write_cache(), part.write_cache()),
            (Some(true), Some(true))
        );
        part.set_write_cache(false).unwrap();
        assert_eq!(disk.write_cache(), Some(false));
        assert_eq!(fs::read_to_string(&file).unwrap(), "write through");
        disk.set_write_cache(true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "write back");
    }

    #[test]
    fn a_disk_gets_no_more_commands_than_the_kernel_sends() {
        let folder = Folder::new();
        machine(&folder, "write back\n");
        assert_eq!(of_numbers(&folder, "8:0").queue_depth(), None);
        for (text, depth) in [
            ("1\n", Some(1)),
            ("32\n", Some(32)),
            ("0\n", Some(1)),
            ("70000\n", Some(u16::MAX)),
            ("many\n", None),
        ] {
            fs::write(folder.join("devices/ata1/queue_depth"), text).unwrap();
            assert_eq!(of_numbers(&folder, "8:1").queue_depth(), depth, "{text}");
            let null = crate::null::Null::new(Sectors::new(1 << 20), 32);
            let probed = Probed::new("null".to_owned(), null);
            let probed = probed.with_kernel(of_numbers(&folder, "8:0"));
            assert_eq!(probed.depth(), depth.unwrap_or(32).min(32), "{text}");
        }
    }

    #[test]
    fn a_disk_says_how_large_the_sectors_of_its_medium_are() {
        let folder = Folder::new();
        machine(&folder, "write back\n");
        assert_eq!(of_numbers(&folder, "8:0").physical_bytes(), None);
        let queue = folder.join("devices/ata1/block/sda/queue");
        fs::create_dir(&queue).unwrap();
        // The probe uses sectors that are at least as large as the disk's logical ones.
        for (text, says, goes_by) in [
            ("512\n", Some(512), 512),
            ("4096\n", Some(4096), 4096),
            ("256\n", None, 512),
            ("65536\n", None, 512),
            ("0\n", None, 512),
            ("3000\n", None, 512),
            ("large\n", None, 512),
        ] {
            fs::write(queue.join("physical_block_size"), text).unwrap();
            let kernel = of_numbers(&folder, "8:1");
            assert_eq!(kernel.physical_bytes(), says, "{text}");
            let null = crate::null::Null::new(Sectors::new(1 << 20), 32);
            let probed = Probed::new("null".to_owned(), null).with_kernel(kernel);
            assert_eq!(probed.physical_bytes(), goes_by, "{text}");
        }
    }

    #[test]
    fn a_cache_that_reads_go_past_stays_so() {
        let folder = Folder::new();
        let file = machine(&folder, "none\n");
        let disk = of_numbers(&folder, "8:0");
        assert_eq!(disk.write_cache(), Some(false));
        disk.set_write_cache(true).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "write back, no read (daft)");
        // An unknown text is left alone.
        fs::write(&file, "write sideways").unwrap();
        assert_eq!(disk.write_cache(), None);
        assert!(disk.set_write_cache(false).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "write sideways");
    }

    #[test]
    fn only_disks_of_scsi_and_ata_are_sent_commands() {
        let folder = Folder::new();
        machine(&folder, "write back\n");
        for numbers in ["8:0", "8:1"] {
            assert_eq!(of_numbers(&folder, numbers).look_ahead(), Err(NOT_OPENED));
        }
        // A mapped device on this disk is not sent commands.
        fs::create_dir_all(folder.join("devices/virtual/block/dm-0/dm")).unwrap();
        let name = folder.join("dev/block/253:0");
        std::os::unix::fs::symlink("../../devices/virtual/block/dm-0", name).unwrap();
        let mapped = of_numbers(&folder, "253:0").look_ahead();
        assert!(matches!(mapped, Err(SwitchError::Absent(why)) if why.starts_with("only ")));
        // A disk behind USB is not sent commands.
        fs::rename(folder.join("devices/ata1"), folder.join("devices/usb2")).unwrap();
        fs::remove_file(folder.join("dev/block/8:0")).unwrap();
        let name = folder.join("dev/block/8:0");
        std::os::unix::fs::symlink("../../devices/usb2/block/sda", name).unwrap();
        let usb = of_numbers(&folder, "8:0");
        assert_eq!(usb.write_cache(), Some(true));
        assert!(matches!(usb.look_ahead(), Err(SwitchError::Absent(why)) if why.contains("USB")));
    }

    #[test]
    fn what_the_kernel_does_not_know_has_no_switch() {
        let folder = Folder::new();
        let unknown = of_numbers(&folder, "259:3");
        assert_eq!(unknown.identity(), "block device 259:3");
        assert_eq!(unknown.write_cache(), None);
        assert!(unknown.set_write_cache(true).is_err());
        let none = unknown.look_ahead().unwrap_err().to_string();
        assert_eq!(
            none,
            "there is no such switch: only ATA, SATA, SCSI and SAS disks have one"
        );
        assert!(unknown.set_look_ahead(true).is_err() && !unknown.is_file());
        let path = folder.join("a disk");
        fs::write(&path, "").unwrap();
        let file = Kernel::of(&path, &folder.join("")).unwrap();
        assert!(file.identity().starts_with("file /"), "{}", file.identity());
        assert_eq!(file.write_cache(), None);
        assert!(file.look_ahead().is_err() && file.is_file());
        assert!(Kernel::of(&folder.join("nothing"), &folder.join("")).is_err());
    }
}
