//! Look-ahead of ATA disks.
//!
//! The kernel's old call for a single ATA command (`HDIO_DRIVE_CMD`, `linux/hdreg.h`) reaches disks behind libata, also those in SAS
//! enclosures that translate. The call needs `CAP_SYS_ADMIN` and `CAP_SYS_RAWIO`.
//!
//! IDENTIFY DEVICE (word 82 bit 6, word 85 bit 6) reports whether the drive can look ahead, and whether look-ahead is on. SET FEATURES
//! (0xAA, 0x55) turns look-ahead on or off until the next power cycle (ACS-3, sections 7.12 and 7.45).

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use crate::switch::SwitchError;
use crate::sys::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const HDIO_DRIVE_CMD: libc::c_ulong = 0x031F;

const IDENTIFY_DEVICE: u8 = 0xEC;
const SET_FEATURES: u8 = 0xEF;
const LOOK_AHEAD_ON: u8 = 0xAA;
const LOOK_AHEAD_OFF: u8 = 0x55;

/// Bytes in front of the data: the command, a number, a feature, and the number of sectors that come back.
const HEAD: usize = 4;
const SECTOR: usize = 512;

/// Returns true if an ATA disk reads ahead.
///
/// # Errors
///
/// If the device takes no ATA commands ([`SwitchError::Foreign`]), the caller may not send any, or the disk cannot read ahead.
pub fn look_ahead(disk: BorrowedFd<'_>) -> Result<bool, SwitchError> {
    let mut answer = [0; HEAD + SECTOR];
    (answer[0], answer[3]) = (IDENTIFY_DEVICE, 1);
    command(disk, &mut answer).map_err(|error| failed("IDENTIFY DEVICE", error))?;
    of_identity(&answer[HEAD..]).ok_or(SwitchError::Absent("the disk says that it has none"))
}

/// Turns the look-ahead of an ATA disk on or off, until the disk loses its power.
///
/// # Errors
///
/// If the device takes no ATA commands, the caller may not send any, or the disk refuses or stays as it is.
pub fn set_look_ahead(disk: BorrowedFd<'_>, on: bool) -> Result<(), SwitchError> {
    if look_ahead(disk)? == on {
        return Ok(());
    }
    let feature = if on { LOOK_AHEAD_ON } else { LOOK_AHEAD_OFF };
    command(disk, &mut [SET_FEATURES, 0, feature, 0])
        .map_err(|error| failed("SET FEATURES", error))?;
    match look_ahead(disk)? == on {
        true => Ok(()),
        false => Err(SwitchError::Left),
    }
}

/// Returns the reason for which the kernel, or the disk, has not done a command.
fn failed(command: &'static str, error: io::Error) -> SwitchError {
    match error.raw_os_error() {
        // Drivers of other disks do not know the call, and report that by one of these errors.
        Some(libc::ENOTTY | libc::EINVAL | libc::EOPNOTSUPP) => SwitchError::Foreign("ATA"),
        Some(libc::EACCES | libc::EPERM) => SwitchError::NotPermitted,
        Some(libc::EIO) => SwitchError::Failed {
            command,
            why: "the disk has not done it".to_owned(),
        },
        _ => SwitchError::Failed {
            command,
            why: error.to_string(),
        },
    }
}

/// Returns the state of look-ahead from IDENTIFY DEVICE data: words of two bytes, the lower first. Returns `None` if the disk cannot look
/// ahead.
fn of_identity(data: &[u8]) -> Option<bool> {
    let word = |at: usize| u16::from_le_bytes([data[2 * at], data[2 * at + 1]]);
    // The words count if the upper bits of word 83 are 01.
    let counts = word(83) >> 14 == 1;
    let bit = |at| word(at) >> 6 & 1 == 1;
    (counts && bit(82)).then(|| bit(85))
}

/// Sends a command. The slice is the head, and room for the number of sectors that the head names.
fn command(disk: BorrowedFd<'_>, command: &mut [u8]) -> io::Result<()> {
    assert_eq!(command.len(), HEAD + usize::from(command[3]) * SECTOR);
    // SAFETY: the kernel reads the head, and writes the head and the number of sectors in the head's last byte. The slice has room for
    // them.
    let result = unsafe { libc::ioctl(disk.as_raw_fd(), HDIO_DRIVE_CMD, command.as_mut_ptr()) };
    check(result)
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
        // The disk cannot read ahead.
        assert_eq!(disk([(82, 0x742B), (83, 0x7F61), (85, 0x7429)]), None);
        // The upper bits of word 83 are not 01, so the words do not count.
        assert_eq!(disk([(82, 0xFFFF), (83, 0xFFFF), (85, 0xFFFF)]), None);
        assert_eq!(disk([(82, 0), (83, 0), (85, 0)]), None);
    }

    #[test]
    fn a_file_takes_no_commands() {
        let file = File::open("/dev/null").unwrap();
        for result in [
            look_ahead(file.as_fd()).map(|_| ()),
            set_look_ahead(file.as_fd(), true),
        ] {
            assert!(
                matches!(result, Err(SwitchError::Foreign("ATA"))),
                "{result:?}"
            );
        }
    }
}
