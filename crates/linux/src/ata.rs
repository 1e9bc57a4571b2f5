//! The look-ahead of ATA disks.
//!
//! The kernel has no file for it. Its old call for a single ATA command (`HDIO_DRIVE_CMD`, `linux/hdreg.h`) reaches disks behind libata, also those in
//! SAS enclosures that translate; it needs `CAP_SYS_ADMIN` and `CAP_SYS_RAWIO`. The drive says by IDENTIFY DEVICE (word 82 bit 6, word 85 bit 6) whether it can look ahead and
//! does, and SET FEATURES (0xAA, 0x55) turns that on or off until its next power cycle (ACS-3, sections 7.12 and 7.45).

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const HDIO_DRIVE_CMD: libc::c_ulong = 0x031F;

const IDENTIFY_DEVICE: u8 = 0xEC;
const SET_FEATURES: u8 = 0xEF;
const LOOK_AHEAD_ON: u8 = 0xAA;
const LOOK_AHEAD_OFF: u8 = 0x55;

/// What the call takes in front of a sector of data: the command, a number, a feature, and how many sectors come back.
const HEAD: usize = 4;
const SECTOR: usize = 512;

/// Whether an ATA disk reads ahead; `None` if it cannot.
///
/// # Errors
///
/// If the device takes no ATA commands, or who asks may not send any.
pub fn look_ahead(disk: BorrowedFd<'_>) -> io::Result<Option<bool>> {
    let mut answer = [0; HEAD + SECTOR];
    (answer[0], answer[3]) = (IDENTIFY_DEVICE, 1);
    command(disk, &mut answer)?;
    Ok(of_identity(&answer[HEAD..]))
}

/// Has an ATA disk read ahead, or not, until it loses its power.
///
/// # Errors
///
/// If the device takes no ATA commands, who asks may not send any, or the disk refuses.
pub fn set_look_ahead(disk: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let feature = if on { LOOK_AHEAD_ON } else { LOOK_AHEAD_OFF };
    command(disk, &mut [SET_FEATURES, 0, feature, 0])
}

/// What a disk says of itself: words of two bytes, the lower first.
fn of_identity(data: &[u8]) -> Option<bool> {
    let word = |at: usize| u16::from_le_bytes([data[2 * at], data[2 * at + 1]]);
    // The words count if the upper bits of word 83 are 01.
    let counts = word(83) >> 14 == 1;
    let bit = |at| word(at) >> 6 & 1 == 1;
    (counts && bit(82)).then(|| bit(85))
}

/// Sends a command that takes as much room as it has, in whole sectors behind its head.
fn command(disk: BorrowedFd<'_>, command: &mut [u8]) -> io::Result<()> {
    assert_eq!(command.len(), HEAD + usize::from(command[3]) * SECTOR);
    // SAFETY: the kernel reads the head, and writes it and as many sectors behind it as the head's last byte says, which are there.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), HDIO_DRIVE_CMD, command.as_mut_ptr()) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    fn disk(words: [(usize, u16); 3]) -> Option<bool> {
        let mut data = [0; SECTOR];
        for (at, word) in words {
            data[2 * at..2 * at + 2].copy_from_slice(&word.to_le_bytes());
        }
        of_identity(&data)
    }

    #[test]
    fn a_disk_says_whether_it_reads_ahead() {
        // As a WD5000AAKS has it: word 82 0x746B, 83 0x7F61, 85 0x7469.
        assert_eq!(disk([(82, 0x746B), (83, 0x7F61), (85, 0x7469)]), Some(true));
        assert_eq!(
            disk([(82, 0x746B), (83, 0x7F61), (85, 0x7429)]),
            Some(false)
        );
        // It cannot.
        assert_eq!(disk([(82, 0x742B), (83, 0x7F61), (85, 0x7429)]), None);
        // What it says of commands does not count.
        assert_eq!(disk([(82, 0xFFFF), (83, 0xFFFF), (85, 0xFFFF)]), None);
        assert_eq!(disk([(82, 0), (83, 0), (85, 0)]), None);
    }

    #[test]
    fn a_file_takes_no_commands() {
        let file = File::open("/dev/null").unwrap();
        assert!(look_ahead(file.as_fd()).is_err());
        assert!(set_look_ahead(file.as_fd(), true).is_err());
    }
}
