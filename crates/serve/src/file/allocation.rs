//! Finds out which parts of a regular file are allocated.

use crate::device::Allocation;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// Number of attempts if the file changes between two calls. Usually one of them succeeds.
const TRIES: usize = 8;

/// A file that reports its data and its holes, as `lseek` does.
pub(crate) trait Sparse {
    /// Returns the first byte of data from `from` on. Fails with `NXIO` if there are no data up to the file's end.
    fn data(&self, from: u64) -> Result<u64, Errno>;
    /// Returns the first byte of a hole from `from` on, at the latest the file's end. Fails with `NXIO` if the file
    /// ends before `from`.
    fn hole(&self, from: u64) -> Result<u64, Errno>;
    /// Returns the file's length.
    fn end(&self) -> Result<u64, Errno>;
}

/// The calls move the descriptor's position, so the descriptor must have no other user.
impl Sparse for OwnedFd {
    fn data(&self, from: u64) -> Result<u64, Errno> {
        seek(self, SeekFrom::Data(from))
    }

    fn hole(&self, from: u64) -> Result<u64, Errno> {
        seek(self, SeekFrom::Hole(from))
    }

    fn end(&self) -> Result<u64, Errno> {
        seek(self, SeekFrom::End(0))
    }
}

/// Returns the [`Allocation::status`] of one file.
///
/// Bytes that may be data are reported as allocated, since an error in this direction only costs a needless copy. This
/// concerns file systems that do not know, and files that change faster than they can be asked. It also concerns the
/// bytes beyond the end of a file that another program has truncated. A program that copies the disk must try to read
/// these bytes and see the error.
pub(crate) fn status(file: &impl Sparse, offset: u64, len: u64) -> io::Result<(bool, u64)> {
    if len == 0 {
        return Ok((false, 0));
    }
    for _ in 0..TRIES {
        match ask(file, offset, len) {
            Ok(Some(told)) => return Ok(told),
            Ok(None) | Err(Errno::INTR) => {}
            Err(Errno::INVAL | Errno::OPNOTSUPP) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((true, len))
}

/// Asks once. Returns `None` if the answers contradict each other because the file has changed meanwhile.
fn ask(file: &impl Sparse, offset: u64, len: u64) -> Result<Option<(bool, u64)>, Errno> {
    let end = file.end()?;
    if end <= offset {
        return Ok(Some((true, len)));
    }
    let data = match file.data(offset) {
        Ok(data) => data,
        Err(Errno::NXIO) => {
            // There is a hole up to the end. If the file has grown since, there may be data beyond the earlier end.
            let end = end.min(file.end()?);
            return Ok((end > offset).then(|| (false, len.min(end - offset))));
        }
        Err(errno) => return Err(errno),
    };
    if data > offset {
        return Ok(Some((false, len.min(data - offset))));
    }
    match file.hole(offset) {
        Ok(hole) if hole > offset => Ok(Some((true, len.min(hole - offset)))),
        // A hole was punched, or the file has become shorter.
        Ok(_) | Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A regular file as a whole.
#[derive(Debug)]
pub(super) struct Holes {
    /// Descriptor without other users.
    pub file: OwnedFd,
}

impl Allocation for Holes {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        status(&self.file, offset, len)
    }
}

#[cfg(test)]
mod tests;
