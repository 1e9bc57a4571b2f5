//! What the live crates ask of Linux.
//!
//! - [`ata`]: the look-ahead of disks.
//! - [`clock`]: the time.
//! - [`mounts`]: what is mounted where, and taking it away.
//! - [`sys`]: memory that stays, threads that are not kept waiting, groups.
//! - [`shown`]: text from elsewhere (names of files, messages of clients) in messages of our own.
//!
//! What is not here: sockets, the data of devices, files of data.

pub mod ata;
pub mod clock;
pub mod mounts;
pub mod shown;
pub mod sys;
