//! Interfaces of Linux for the live crates.
//!
//! - [`look_ahead`]: reading and setting the look-ahead of a disk: ATA ([`ata`]) and SCSI ([`scsi`]).
//! - [`clock`]: the time.
//! - [`mounts`]: lists of mounts, and unmounting.
//! - [`names`]: names of disks.
//! - [`sys`]: locked memory, real-time threads, groups.
//! - [`shown`]: text from elsewhere (names of files, messages of clients) in this program's messages.
//!
//! Sockets, the data of devices and files of data are in other crates.

pub mod ata;
pub mod clock;
pub mod look_ahead;
pub mod mounts;
pub mod names;
pub mod scsi;
pub mod shown;
pub mod switch;
pub mod sys;
