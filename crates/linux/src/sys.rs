//! Asks the machine for locked memory, real-time threads and groups. Missing privileges are
//! reported and do not stop the server, since correctness does not depend on them.

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Returns the bytes in a socket that the other side has not read; 0 if the kernel does not say.
pub fn unread(socket: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an integer, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 {
        bytes.max(0) as usize
    } else {
        0
    }
}

/// Reason for which memory is not locked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Allocations beyond the limit would fail.
    #[error(
        "it would be limited to {limit} bytes (ulimit -l), and CAP_IPC_LOCK is not held: later allocations could fail"
    )]
    Limited {
        /// The limit of locked memory, bytes.
        limit: u64,
    },
    /// The kernel refuses.
    #[error(transparent)]
    Machine(#[from] io::Error),
}

/// Locks pages in memory once the process touches them (`mlockall` with `MCL_ONFAULT`). A server that writes
/// back for its own system must not wait for that system to swap its pages in.
///
/// A limit of locked memory (`RLIMIT_MEMLOCK`) then holds for all later mappings, touched or not, and
/// mappings beyond the limit are refused. So memory is locked only where there is no limit, or where the
/// limit does not bind.
///
/// # Errors
///
/// If memory could not be locked without a limit. Nothing is locked then.
pub fn lock_memory() -> Result<(), LockError> {
    let limit = getrlimit(Resource::Memlock).current;
    may_lock(limit, exempt_from_limits())?;
    // SAFETY: no pointers are passed.
    let result =
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
    Ok(check(result)?)
}

fn may_lock(limit: Option<u64>, exempt: bool) -> Result<(), LockError> {
    match limit {
        Some(limit) if !exempt => Err(LockError::Limited { limit }),
        _ => Ok(()),
    }
}

/// Returns true if the limit of locked memory does not bind: with `CAP_IPC_LOCK`, which counts only in the
/// first user namespace (the kernel's `mlock_future_ok` asks `capable`, not `ns_capable`).
fn exempt_from_limits() -> bool {
    has_capability(CapabilitySet::IPC_LOCK)
}

/// Returns true if a capability is held in the first user namespace, where the kernel asks for it.
pub(crate) fn has_capability(capability: CapabilitySet) -> bool {
    let held = capabilities(None).is_ok_and(|sets| sets.effective.contains(capability));
    // The map of all user numbers to themselves. No other namespace may be given this number of users.
    let first = std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    held && first
}

/// Declares to the kernel that this process writes back dirty pages (`PR_SET_IO_FLUSHER`), so that its own
/// allocations do not wait for dirty pages. Needs `CAP_SYS_RESOURCE`.
///
/// # Errors
///
/// If it is not permitted.
pub fn be_io_flusher() -> io::Result<()> {
    // linux/prctl.h, since 5.6.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the arguments are integers.
    let result = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    check(result)
}

/// Makes all files and sockets that the process creates from now on private to their owner.
pub fn private_files() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Lets some writes fail or go on instead of ending or stopping the process: writes beyond the limit of a
/// file's size (`SIGXFSZ`, setrlimit(2)), and writes of a background process to its terminal (`SIGTTOU`,
/// termios(3)).
pub fn survive_writing() {
    for signal in [libc::SIGXFSZ, libc::SIGTTOU] {
        // SAFETY: no handler is set. It cannot fail for these.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Returns the number of a group from any of the machine's sources; `None` if no group has that name.
///
/// # Errors
///
/// If it cannot be looked up.
pub fn group_number(name: &str) -> io::Result<Option<u32>> {
    look_up_group(name, 1 << 10)
}

/// As [`group_number`], with `first` bytes for the first attempt.
fn look_up_group(name: &str, first: usize) -> io::Result<Option<u32>> {
    /// Most bytes of an answer, which lists the members. No group is that large.
    const ANSWER_MAX: usize = 64 << 20;
    let Ok(name) = CString::new(name) else {
        return Ok(None);
    };
    let mut buffer = vec![0; first];
    loop {
        let mut group = MaybeUninit::<libc::group>::uninit();
        let mut found = std::ptr::null_mut::<libc::group>();
        // SAFETY: all pointers outlive the call, and the length is the buffer's.
        let result = unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                group.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        match result {
            0 if found.is_null() => return Ok(None),
            // SAFETY: it points to `group`, which has been filled.
            0 => return Ok(Some(unsafe { (*found).gr_gid })),
            libc::ERANGE if buffer.len() < ANSWER_MAX => buffer.resize(buffer.len() * 2, 0),
            libc::EINTR => {}
            // These errors may also stand for a missing name (getgrnam_r(3)).
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Makes timeouts of the calling thread as exact as possible (`PR_SET_TIMERSLACK`). By default timeouts may
/// come 50 us late.
pub fn exact_timers() {
    // SAFETY: the arguments are integers. It cannot fail with these.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Puts the calling thread ahead of all ordinary threads (`SCHED_FIFO`, priority 10).
///
/// # Errors
///
/// If it is not permitted.
pub fn real_time() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 10 };
    // SAFETY: `param` outlives the call; 0 names the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) };
    check(result)
}

/// Converts the result of a call that returns zero on success.
pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_limit_that_binds_is_not_locked_under() {
        assert!(may_lock(None, false).is_ok());
        assert!(may_lock(Some(8 << 20), true).is_ok());
        let error = may_lock(Some(8 << 20), false).expect_err("limited");
        assert_eq!(
            error.to_string(),
            "it would be limited to 8388608 bytes (ulimit -l), and CAP_IPC_LOCK is not held: later allocations could fail"
        );
    }

    #[test]
    fn groups_are_found_by_name() {
        // Every machine has this group. The first answers do not fit.
        for first in [1, 1 << 10] {
            assert_eq!(look_up_group("root", first).ok(), Some(Some(0)), "{first}");
            for name in ["no-such-group-anywhere", "", "root\0", "0"] {
                assert_eq!(look_up_group(name, first).ok(), Some(None), "{name:?}");
            }
        }
    }

    /// Runs this test again in a process that may lock 4 MiB, with and without the capability.
    #[test]
    fn what_is_allocated_after_locking_is_there() {
        const AGAIN: &str = "HEADTIME_TEST_LOCKS";
        const LIMIT: &str = "4194304";
        if let Some(exempt) = std::env::var_os(AGAIN) {
            let locked = lock_memory();
            assert_eq!(locked.is_ok(), exempt == "yes", "{locked:?}");
            let mut memory = vec![0u8; 256 << 20];
            memory[200 << 20] = 1;
            assert_eq!(std::hint::black_box(&memory)[200 << 20], 1);
            return;
        }
        let own = std::env::current_exe().expect("it runs");
        for exempt in ["yes", "no"] {
            if exempt == "yes" && !exempt_from_limits() {
                println!("skipped: CAP_IPC_LOCK is not held");
                continue;
            }
            let mut child = Command::new("prlimit");
            child.arg(format!("--memlock={LIMIT}:"));
            if exempt == "no" && exempt_from_limits() {
                child.args([
                    "setpriv",
                    "--bounding-set=-ipc_lock",
                    "--inh-caps=-ipc_lock",
                ]);
            }
            child.arg(&own).env(AGAIN, exempt);
            child.args([
                "--exact",
                "sys::tests::what_is_allocated_after_locking_is_there",
            ]);
            match child.output() {
                Ok(output) => assert!(output.status.success(), "{exempt}: {output:?}"),
                Err(error) => println!("skipped: no prlimit: {error}"),
            }
        }
    }
}
