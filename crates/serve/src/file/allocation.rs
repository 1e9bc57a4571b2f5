//! What of a regular file is allocated.

use crate::device::Allocation;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// Asks the file system with `SEEK_DATA` and `SEEK_HOLE`. One that does not know says that
/// everything is allocated.
#[derive(Debug)]
pub(super) struct Holes {
    /// A descriptor of its own: asking moves its offset, which nobody else uses.
    pub file: OwnedFd,
}

impl Allocation for Holes {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        // Between two questions a hole may come where there was none; soon there is an answer.
        for _ in 0..8 {
            let data = match seek(&self.file, SeekFrom::Data(offset)) {
                Ok(data) => data,
                // A hole up to the end.
                Err(Errno::NXIO) => return Ok((false, len)),
                Err(Errno::INVAL) => return Ok((true, len)),
                Err(error) => return Err(error.into()),
            };
            if data > offset {
                return Ok((false, len.min(data - offset)));
            }
            match seek(&self.file, SeekFrom::Hole(offset)) {
                Ok(hole) if hole > offset => return Ok((true, len.min(hole - offset))),
                Ok(_) | Err(Errno::NXIO) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // As allocated it is only copied for nothing.
        Ok((true, len))
    }
}
