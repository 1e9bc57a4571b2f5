//! Finds out which parts of a regular file are allocated.

use crate::device::Allocation;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// How often to ask again when the file changes between two questions: soon there is an answer.
const TRIES: usize = 8;

/// A file that knows where its data and its holes are, as `lseek` tells.
pub(crate) trait Sparse {
    /// The first byte of data from `from` on. `NXIO`: there is none, or the file ends before.
    fn data(&self, from: u64) -> Result<u64, Errno>;
    /// The first byte of a hole from `from` on; at the latest the file's end. `NXIO`: the file ends before.
    fn hole(&self, from: u64) -> Result<u64, Errno>;
    /// The file's length.
    fn end(&self) -> Result<u64, Errno>;
}

/// Asking moves the position, so nobody else may use that.
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

/// What [`Allocation::status`] says of one file.
///
/// Reports possible data as allocated, since that only costs a needless copy: if the file system
/// does not know, or the file changes faster than it can be asked. The same holds beyond the end of
/// a file that another program has truncated: reading there fails, and a program that copies the
/// disk must see that.
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

/// Asks once; `None` if the answers do not fit together, as the file has changed meanwhile.
fn ask(file: &impl Sparse, offset: u64, len: u64) -> Result<Option<(bool, u64)>, Errno> {
    let end = file.end()?;
    if end <= offset {
        return Ok(Some((true, len)));
    }
    let data = match file.data(offset) {
        Ok(data) => data,
        Err(Errno::NXIO) => {
            // A hole up to the end. If the file has grown since, there may be data beyond the earlier end.
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
        // A hole has come, or the file has become shorter.
        Ok(_) | Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A regular file as a whole.
#[derive(Debug)]
pub(super) struct Holes {
    /// A descriptor of its own.
    pub file: OwnedFd,
}

impl Allocation for Holes {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        status(&self.file, offset, len)
    }
}

#[cfg(test)]
mod tests;
