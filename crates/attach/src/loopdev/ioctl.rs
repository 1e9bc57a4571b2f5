//! The system calls of loop devices (`linux/loop.h`, loop(4)).

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

// The kernel copies exactly these numbers of bytes.
const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

/// Returns the number of a loop device without a file. The kernel makes a device if there is none. `control` is `/dev/loop-control`.
pub(super) fn free(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: the call takes no argument and touches none of our memory.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Gives a loop device a file for direct reads and writes, in blocks of `block_bytes`. The device shows `name` as its file in places that
/// have no room for a path.
pub(super) fn configure(
    device: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    block_bytes: u32,
    read_only: bool,
    name: &[u8],
) -> io::Result<()> {
    let mut file_name = [0; 64];
    // The last byte stays zero.
    let kept = name.len().min(63);
    file_name[..kept].copy_from_slice(&name[..kept]);
    let read_only = if read_only { LO_FLAGS_READ_ONLY } else { 0 };
    let config = Config {
        fd: file.as_raw_fd() as u32,
        block_size: block_bytes,
        info: Info {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            sizelimit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_DIRECT_IO | read_only,
            file_name,
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads a `struct loop_config`, whose layout and size `config` has, and which
    // outlives the call; it keeps a reference of its own to the file behind `fd`.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    check(result)
}

/// Detaches a loop device's file as soon as no process has the device open.
pub(super) fn clear(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no argument and touches none of our memory.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
