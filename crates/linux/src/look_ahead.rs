//! The look-ahead of disks: reading on behind what was asked for.
//!
//! The kernel has no file for it, so the disk itself is asked. ATA disks behind libata answer the commands of SCSI, too, but let
//! nothing but the write cache be changed so: they are asked in their own way, and a disk that takes no ATA commands is one of SCSI.

use crate::switch::SwitchError;
use crate::{ata, scsi};
use std::os::fd::BorrowedFd;

/// Whether a disk reads ahead.
///
/// # Errors
///
/// If that is not known, or could not be changed.
pub fn look_ahead(disk: BorrowedFd<'_>) -> Result<bool, SwitchError> {
    match ata::look_ahead(disk) {
        Err(SwitchError::Foreign(_)) => scsi::look_ahead(disk),
        known => known,
    }
}

/// Has a disk read ahead, or not, and asks it whether it does. It forgets that when it loses its power.
///
/// # Errors
///
/// If it has no such switch, who asks may not turn it, or the disk refuses or leaves it as it is.
pub fn set_look_ahead(disk: BorrowedFd<'_>, on: bool) -> Result<(), SwitchError> {
    match ata::set_look_ahead(disk, on) {
        Err(SwitchError::Foreign(_)) => scsi::set_look_ahead(disk, on),
        done => done,
    }
}
