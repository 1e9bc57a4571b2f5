//! Mounts, and the processes that serve mounts.

use crate::clock::timespec;
use crate::shown::one_line;
use headtime_units::Nanos;
use rustix::event::{PollFd, PollFlags};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Subtype that `fusermount3` adds to the type of this program's mounts.
pub const SUBTYPE: &str = "headtime";

/// A mount, as the kernel lists it (`/proc/self/mountinfo`, proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Number of the device that holds the files: major, minor.
    pub device: (u32, u32),
    pub mountpoint: PathBuf,
    /// Type of the file system, with subtype.
    pub kind: String,
    /// The mounted device, or a text of the server.
    pub source: PathBuf,
}

impl Mount {
    /// Returns the process that serves the mount, if the mount is one of this program's.
    pub fn server(&self) -> Option<Server> {
        let source = self.source.to_str()?;
        let (pid, started) = source.strip_prefix("headtime:")?.split_once('.')?;
        Some(Server {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }
}

/// A process that serves a mount. The process may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    pub pid: i32,
    /// Start time in clock ticks since the machine started. Process numbers are used again.
    pub started: u64,
}

impl Server {
    /// Returns true if the process lives.
    pub fn lives(&self) -> bool {
        started(&self.pid.to_string()).is_ok_and(|(state, started)| {
            // Z and X: the process is dead, and its parent has not collected it.
            started == self.started && state != 'Z' && state != 'X'
        })
    }
}

impl Server {
    /// Opens the process, so that signals and waits are for this process even if its number is used again.
    /// Returns `None` if the process has ended.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn hold(&self) -> io::Result<Option<Held>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            // The process is opened first and checked then. So a process that lives under this number is the
            // open one.
            Ok(held) => Ok(self.lives().then_some(Held(held))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// An open process.
#[derive(Debug)]
pub struct Held(OwnedFd);

impl Held {
    /// Asks the process to end (`SIGTERM`).
    ///
    /// # Errors
    ///
    /// If that is not permitted. A process that has ended is no error.
    pub fn terminate(&self) -> io::Result<()> {
        match rustix::process::pidfd_send_signal(&self.0, Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the end of the process, for `at_most`. Returns true if the process has ended.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn wait(&self, at_most: Nanos) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        // A signal to this program may end the wait early.
        let ready = rustix::event::poll(&mut fds, Some(&timespec(at_most)))?;
        Ok(ready > 0)
    }
}

/// Returns the source of this process's mounts for lists of mounts. The source names the process, so no other
/// file has to record which process serves a mount.
///
/// # Errors
///
/// If `/proc` cannot be read.
pub fn source() -> io::Result<String> {
    let (_, started) = started("self")?;
    let pid = rustix::process::getpid().as_raw_nonzero();
    Ok(format!("headtime:{pid}.{started}"))
}

/// Returns a process's state and start time: fields 3 and 22 of its line in `/proc`.
fn started(pid: &str) -> io::Result<(char, u64)> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name, in parentheses, and may contain any character.
    let fields = line.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next().and_then(|state| state.chars().next());
    let started = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    state
        .zip(started)
        .ok_or_else(|| io::Error::other("/proc has another format"))
}

/// Returns all mounts that this process sees, in the order in which they were made.
///
/// # Errors
///
/// If `/proc` cannot be read.
pub fn all() -> io::Result<Vec<Mount>> {
    Ok(list(&fs::read("/proc/self/mountinfo")?).collect())
}

/// Returns the mounts in a text of the form of `/proc/self/mountinfo`, in order. Lines of another form are
/// skipped.
pub fn list(text: &[u8]) -> impl Iterator<Item = Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse)
}

/// Returns the topmost mount at a path. The path must be absolute and without links.
///
/// # Errors
///
/// As [`all`].
pub fn at(mountpoint: &Path) -> io::Result<Option<Mount>> {
    let mut all = all()?;
    all.retain(|mount| mount.mountpoint == mountpoint);
    Ok(all.pop())
}

fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let mountpoint = unescape(fields.nth(1)?);
    // Any number of optional fields, up to a dash.
    fields.find(|field| *field == b"-")?;
    let kind = fields.next()?;
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        mountpoint,
        kind: String::from_utf8_lossy(kind).into_owned(),
        source: unescape(fields.next()?),
    })
}

/// Decodes the kernel's escapes for blanks in these fields and in `/proc/swaps`: a backslash and three octal digits.
pub fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *byte == b'\\');
        let code = digits.and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match code {
            Some(code) => {
                plain.push(code);
                rest = &after[3..];
            }
            None => {
                plain.push(*byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

/// Returns an absolute path without links. The mount at the path's end is not accessed, since it may be dead
/// or slow.
///
/// # Errors
///
/// If the path's directory does not exist.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let whole = parent.canonicalize()?.join(name);
            // If the path is a link, its target is accessed.
            match fs::read_link(&whole) {
                Ok(_) => whole.canonicalize(),
                Err(_) => Ok(whole),
            }
        }
        _ => Ok(path),
    }
}

/// Unmounts a path. If `lazily`, the path is free at once, and the mount ends when all open files are closed.
///
/// Without root this needs `fusermount3`, and only works for the caller's own FUSE mounts.
///
/// # Errors
///
/// `EBUSY` if a file is in use, `EINVAL` if nothing is mounted there, and other errors of the kernel.
pub fn unmount(mountpoint: &Path, lazily: bool) -> io::Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    if lazily {
        flags |= UnmountFlags::DETACH;
    }
    match rustix::mount::unmount(mountpoint, flags) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let how = if lazily { "-uz" } else { "-u" };
    let output = Command::new("fusermount3")
        .arg(how)
        .arg("--")
        .arg(mountpoint)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match said.contains("busy") {
        true => Err(rustix::io::Errno::BUSY.into()),
        false => Err(io::Error::other(one_line(&said))),
    }
}

/// Returns true if a path is another path or below it.
pub fn below(path: &Path, above: &Path) -> bool {
    // The paths are compared as bytes: the kernel's text of a path may end in a remark that is no component.
    let (path, above) = (path.as_os_str().as_bytes(), above.as_os_str().as_bytes());
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || above.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel() {
        let line = b"36 35 0:98 /mnt1 /a\\040b\\134c rw,noatime master:1 shared:2 - fuse.headtime headtime:77.123456 rw";
        let mount = parse(line).expect("well formed");
        assert_eq!(mount.device, (0, 98));
        assert_eq!(mount.mountpoint, Path::new("/a b\\c"));
        assert_eq!(mount.kind, "fuse.headtime");
        let server = Server {
            pid: 77,
            started: 123_456,
        };
        assert_eq!(mount.server(), Some(server));
        assert_eq!(parse(b"36 35 0:98 / / rw"), None);
        assert_eq!(parse(b""), None);
        let other = b"1 2 8:1 / / rw - ext4 /dev/sda1 rw";
        assert_eq!(parse(other).expect("well formed").server(), None);
    }

    #[test]
    fn octal_escapes_in_mount_paths_are_undone() {
        for (text, path) in [
            ("/a\\040b\\134c", "/a b\\c"),
            ("/a\\04", "/a\\04"),
            ("a\\9\\134b\\", "a\\9\\b\\"),
            ("\\", "\\"),
            ("/\\777", "/\\777"),
        ] {
            assert_eq!(unescape(text.as_bytes()), Path::new(path), "{text}");
        }
    }

    #[test]
    fn this_process_lives_and_an_earlier_one_of_its_number_does_not() {
        let mount = Mount {
            device: (0, 1),
            mountpoint: PathBuf::from("/"),
            kind: "fuse".to_owned(),
            source: PathBuf::from(source().expect("/proc")),
        };
        let server = mount.server().expect("one of ours");
        assert!(server.lives());
        let earlier = Server {
            started: server.started - 1,
            ..server
        };
        assert!(!earlier.lives());
        assert!(earlier.hold().expect("the kernel allows it").is_none());
        let held = server.hold().expect("the kernel allows it");
        let ended = held.expect("lives").wait(Nanos::from_millis(1));
        assert!(!ended.expect("waits"));
    }

    #[test]
    fn a_path_is_below_another_by_whole_names() {
        let below = |path: &str, above: &str| below(Path::new(path), Path::new(above));
        assert!(below("/mnt/a/disk0", "/mnt/a"));
        assert!(below("/mnt/a", "/mnt/a"));
        assert!(below("/x", "/"));
        assert!(!below("/mnt/ab", "/mnt/a"));
        assert!(!below("/mnt", "/mnt/a"));
    }
}
