//! What a server asks of the machine, where it is permitted: memory that stays, a thread that is
//! not kept waiting. None of it is needed to be right, so what is refused is reported, not an error.

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use std::io;

/// Keeps what the process touches in memory from now on (`mlockall` with `MCL_ONFAULT`): a server
/// that writes back for the system it runs on must not wait for that system to swap it in.
///
/// # Errors
///
/// If the limit of locked memory does not allow it.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let result =
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
    check(result)
}

/// Tells the kernel that this process is part of the way that dirty pages take (`PR_SET_IO_FLUSHER`),
/// so that its own allocations do not wait for them. Needs `CAP_SYS_RESOURCE`.
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

/// Files and sockets that the process makes from now on are for its owner alone.
pub fn private_files() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Makes timeouts of the calling thread as exact as the machine can (`PR_SET_TIMERSLACK`); the
/// default lets them come 50 us late.
pub fn exact_timers() {
    // SAFETY: the arguments are integers. It cannot fail with these.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Puts the calling thread ahead of all ordinary ones (`SCHED_FIFO`, priority 10).
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

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
