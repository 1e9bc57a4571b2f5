//! Look-ahead of disks: reading on after the requested sectors.
//!
//! The kernel has no file for look-ahead, so the commands go to the disk itself. ATA disks behind libata also answer SCSI commands, but
//! these change nothing but the write cache. So ATA disks get ATA commands. A disk that takes no ATA commands is treated as a SCSI disk.

use crate::switch::SwitchError;
use crate::{ata, scsi};
use std::os::fd::BorrowedFd;

/// Returns true if a disk reads ahead.
///
/// # Errors
///
/// If look-ahead is not known, or could not be changed.
pub fn look_ahead(disk: BorrowedFd<'_>) -> Result<bool, SwitchError> {
    match ata::look_ahead(disk) {
        Err(SwitchError::Foreign(_)) => scsi::look_ahead(disk),
        known => known,
    }
}

/// Turns the look-ahead of a disk on or off, and checks the result. The disk forgets the setting when it loses its power.
///
/// # Errors
///
/// If the disk has no such switch, the caller may not change the switch, or the disk refuses or stays as it is.
pub fn set_look_ahead(disk: BorrowedFd<'_>, on: bool) -> Result<(), SwitchError> {
    match ata::set_look_ahead(disk, on) {
        Err(SwitchError::Foreign(_)) => scsi::set_look_ahead(disk, on),
        done => done,
    }
}
