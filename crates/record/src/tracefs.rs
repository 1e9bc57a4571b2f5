//! An instance of the kernel's tracing, for one recording.

use crate::error::RecordError;
use headtime_linux::mounts;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Prefix of the names of this program's instances.
const PREFIX: &str = "headtime-";

/// A directory of tracefs with buffers and switches of its own. The directory is removed when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    root: Root,
    name: String,
}

/// Access to tracefs.
#[derive(Debug)]
enum Root {
    Mounted(PathBuf),
    /// A mount without a mount point, known by its descriptor.
    Detached(OwnedFd),
}

impl Root {
    /// Returns the mounted tracefs, or a mount that no other process sees.
    fn find() -> Result<Root, RecordError> {
        let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
        if let Some(path) = mounted(&text) {
            return Ok(Root::Mounted(path));
        }
        detached()
            .map(Root::Detached)
            .map_err(|source| RecordError::NoTracefs { source })
    }

    fn path(&self) -> PathBuf {
        match self {
            Root::Mounted(path) => path.clone(),
            Root::Detached(root) => PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd())),
        }
    }
}

/// Returns the mount point of tracefs, from the text of `/proc/self/mountinfo`.
fn mounted(text: &[u8]) -> Option<PathBuf> {
    mounts::list(text)
        .find(|mount| mount.kind == "tracefs")
        .map(|mount| mount.mountpoint)
}

/// Mounts tracefs without a mount point.
fn detached() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let mount = rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    Ok(mount)
}

impl Instance {
    /// Makes an instance, and removes instances that dead processes of this program left.
    pub(crate) fn new() -> Result<Instance, RecordError> {
        // One process may record several devices.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = Root::find()?;
        remove_stale(&root.path().join("instances"));
        let own = std::process::id();
        let start = started(own).unwrap_or(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = Instance {
            root,
            name: format!("{PREFIX}{own}-{start}-{number}"),
        };
        let directory = instance.directory();
        fs::create_dir(&directory).map_err(|source| instance.fault("make", "", source))?;
        Ok(instance)
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("instances").join(&self.name)
    }

    fn fault(&self, what: &'static str, file: &str, source: io::Error) -> RecordError {
        RecordError::Tracefs {
            what,
            file: format!("instances/{}/{file}", self.name),
            source,
        }
    }

    /// Writes to a file of the instance.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), RecordError> {
        fs::write(self.directory().join(file), text)
            .map_err(|source| self.fault("write to", file, source))
    }

    pub(crate) fn read(&self, file: &str) -> Result<String, RecordError> {
        read(&self.directory().join(file)).map_err(|source| self.fault("read", file, source))
    }

    /// Reads a file that not every kernel has.
    pub(crate) fn read_optional(&self, file: &str) -> Option<String> {
        self.read(file).ok()
    }

    /// Reads a file of tracefs that belongs to no instance.
    pub(crate) fn read_root(&self, file: &str) -> Result<String, RecordError> {
        read(&self.root.path().join(file)).map_err(|source| RecordError::Tracefs {
            what: "read",
            file: file.to_owned(),
            source,
        })
    }

    /// Opens a file for reading. Reads do not wait for data.
    pub(crate) fn open(&self, file: &str) -> Result<File, RecordError> {
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .mode(Mode::empty().bits())
            .open(self.directory().join(file))
            .map_err(|source| self.fault("open", file, source))
    }

    /// Returns the size of the buffers' pages, as the kernel reports it; otherwise 4 KiB.
    pub(crate) fn page_bytes(&self) -> usize {
        let kib = self
            .read_optional("buffer_subbuf_size_kb")
            .and_then(|text| text.trim().parse::<usize>().ok());
        kib.unwrap_or(4).clamp(4, 1 << 16) * 1024
    }

    /// Returns the names of the processors' directories, `cpu0` and so on.
    pub(crate) fn processors(&self) -> Result<Vec<String>, RecordError> {
        let fault = |source| self.fault("read", "per_cpu", source);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory().join("per_cpu")).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with("cpu")) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        remove(&self.directory());
    }
}

/// Reads the text of a file. Some files of tracefs return nothing to a second read, so the first read must be
/// large enough for the whole text. `std` begins with a small one.
fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = vec![0; 64 << 10];
    let mut end = 0;
    loop {
        if end == text.len() {
            text.resize(2 * end, 0);
        }
        match file.read(&mut text[end..]) {
            Ok(0) => break,
            Ok(bytes) => end += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    text.truncate(end);
    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Switches an instance off and removes it. Failures are ignored, since the next recording tries again.
#[allow(
    clippy::disallowed_methods,
    reason = "a recording ends in the world, and nobody tells when the other is done"
)]
fn remove(directory: &Path) {
    let _ = fs::write(directory.join("tracing_on"), "0");
    let _ = fs::write(directory.join("events/enable"), "0");
    // Another process may be using the directory.
    for _ in 0..20 {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

/// Removes instances whose processes are gone.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_stale(name, started)) {
            remove(&entry.path());
        }
    }
}

/// Returns true if a name belongs to an instance whose process is gone. `started` returns the start time of a
/// process; `None` if no process has the number.
fn is_stale(name: &str, started: impl Fn(u32) -> Option<u64>) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let mut numbers = rest.split('-').map(str::parse::<u64>);
    let (Some(Ok(process)), Some(Ok(start)), Some(Ok(_)), None) = (
        numbers.next(),
        numbers.next(),
        numbers.next(),
        numbers.next(),
    ) else {
        return false;
    };
    u32::try_from(process).is_ok_and(|process| started(process) != Some(start))
}

/// Returns the start time of a process, in clock ticks since the system started: field 22 of its `stat`
/// (proc(5)).
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may contain any character.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Returns the number of lost events, from the text of a processor's `stats`.
pub(crate) fn lost(statistics: &str) -> u64 {
    let count = |line: &str| {
        let (name, number) = line.split_once(": ")?;
        matches!(name, "overrun" | "commit overrun" | "dropped events")
            .then(|| number.trim().parse::<u64>().ok())?
    };
    statistics.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_tracefs_is_found_among_others() {
        let text = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
36 25 0:11 / /sys/kernel/with\\040blank rw,nosuid shared:16 - tracefs tracefs rw
";
        assert_eq!(
            mounted(text.as_bytes()),
            Some(PathBuf::from("/sys/kernel/with blank"))
        );
        assert_eq!(mounted(text.replace("tracefs", "tmpfs").as_bytes()), None);
        assert_eq!(mounted(b"nonsense\n - tracefs\n"), None);
    }

    #[test]
    fn an_instance_is_stale_if_its_process_is_gone() {
        let started = |process| (process == 7).then_some(100);
        for (name, stale) in [
            ("headtime-7-100-0", false),
            ("headtime-7-99-0", true),
            ("headtime-8-100-3", true),
            ("headtime-8", false),
            ("headtime-8-100-3-4", false),
            ("headtime-8-x-3", false),
            ("somebody-8-100-3", false),
        ] {
            assert_eq!(is_stale(name, started), stale, "{name}");
        }
        let own = super::started(std::process::id()).expect("this process is there");
        assert!(own > 0);
    }

    #[test]
    fn lost_events_are_read_from_the_statistics() {
        let text = "\
entries: 23
overrun: 5
commit overrun: 1
bytes: 1348
oldest event ts: 25734.728316
now ts: 25734.849844
dropped events: 2
read events: 9
";
        assert_eq!(lost(text), 8);
    }
}
