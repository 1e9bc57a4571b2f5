//! What the live crates ask of Linux.
//!
//! - [`look_ahead`]: whether a disk reads ahead, and having it do so or not: ATA ([`ata`]) and SCSI ([`scsi`]).
//! - [`clock`]: the time.
//! - [`mounts`]: what is mounted where, and taking it away.
//! - [`sys`]: memory that stays, threads that are not kept waiting, groups.
//! - [`shown`]: text from elsewhere (names of files, messages of clients) in messages of our own.
//!
//! What is not here: sockets, the data of devices, files of data.

pub mod ata;
pub mod clock;
pub mod look_ahead;
pub mod mounts;
pub mod scsi;
pub mod shown;
pub mod switch;
pub mod sys;
