//! The store of an emulated drive's bytes, in memory or in sparse files.
//!
//! A store is a raw image without a header, so that other tools can open the store: `losetup`, `fsck`, `cmp`. The size
//! identifies a store. A volume of more than [`FILE_BYTES_MAX`] takes several files, `PATH`, `PATH.1` and so on. Only
//! the last is shorter.

use super::EmulateError;
use super::pieces::Pieces;
use crate::backing::{Claim, Lost, Made};
use crate::device::Allocation;
use crate::file::allocation;
use crate::request::{Failure, Kind};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fdatasync, ftruncate, memfd_create};
use rustix::io::{Errno, pread, pwrite};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Largest size of one file: 8 TiB, half the limit of ext4 with blocks of 4 KiB.
pub const FILE_BYTES_MAX: u64 = 8 << 40;

/// Zeroes for one write, where a file system cannot make holes.
const ZEROES: &[u8] = &[0; 64 << 10];

/// Sparse bytes. The disk's thread, the syncing thread and queries of the allocation status share the store. Only the
/// disk's thread changes it.
#[derive(Debug)]
pub(super) struct Store {
    files: Vec<Arc<OwnedFd>>,
    /// Bytes of every file but the last.
    file_bytes: u64,
    bytes: u64,
    /// Claims on the files and their names. Empty for a store in memory.
    claims: Vec<Arc<Claim>>,
    /// Lock with which a test keeps a sync from ending.
    #[cfg(test)]
    pub held: std::sync::Mutex<()>,
}

/// A write that was not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteError {
    /// Bytes that were written.
    pub written: u64,
    /// Error that ended the write.
    pub errno: Errno,
}

/// Converts an error of the kernel to the failure of a command.
pub(super) fn failure(errno: Errno) -> Failure {
    let kind = match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Kind::NoSpace,
        _ => Kind::Device,
    };
    Failure {
        errno: Some(errno.raw_os_error()),
        ..Failure::new(kind)
    }
}

impl Store {
    /// A store in memory. It takes only the memory of written sectors.
    pub fn memory(bytes: u64, file_bytes: u64) -> Result<Store, EmulateError> {
        let mut files = Vec::new();
        for len in Pieces::lengths(bytes, file_bytes) {
            let file = memfd_create("headtime-store", MemfdFlags::CLOEXEC)
                .map_err(|error| EmulateError::Memory(error.into()))?;
            ftruncate(&file, len).map_err(|error| EmulateError::Memory(error.into()))?;
            files.push(Arc::new(file));
        }
        Ok(Store {
            files,
            file_bytes,
            bytes,
            claims: Vec::new(),
            #[cfg(test)]
            held: std::sync::Mutex::default(),
        })
    }

    /// A store in files. Makes the files if they are missing and `create` is set.
    pub fn file(pieces: &Pieces<'_>) -> Result<Store, EmulateError> {
        let claims = pieces.open()?;
        Ok(Store {
            files: claims.iter().map(|claim| claim.file().clone()).collect(),
            file_bytes: pieces.file_bytes,
            bytes: pieces.bytes,
            claims,
            #[cfg(test)]
            held: std::sync::Mutex::default(),
        })
    }

    /// The files that were made when the store was opened.
    pub fn made(&self) -> Made {
        Made::among(&self.claims)
    }

    /// Checks that the files still have their names and sizes.
    pub fn check(&self) -> Result<(), Lost> {
        self.claims.iter().try_for_each(|claim| claim.check())
    }

    /// A store whose syncs fail.
    #[cfg(test)]
    pub fn broken() -> Store {
        let (pipe, _) = rustix::pipe::pipe().expect("there are pipes");
        Store {
            files: vec![Arc::new(pipe)],
            file_bytes: 1,
            bytes: 1,
            claims: Vec::new(),
            held: std::sync::Mutex::default(),
        }
    }

    /// Returns true if the store ends with the process. Such a store needs no sync.
    pub fn in_memory(&self) -> bool {
        self.claims.is_empty()
    }

    /// Returns the file, the offset in the file and the length of each stretch of the bytes.
    fn spans(&self, offset: u64, len: u64) -> impl Iterator<Item = (&OwnedFd, u64, u64)> {
        let end = offset + len;
        assert!(end <= self.bytes, "bytes {offset}+{len} of {}", self.bytes);
        let mut at = offset;
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let (file, from) = (at / self.file_bytes, at % self.file_bytes);
            let len = (end - at).min(self.file_bytes - from);
            at += len;
            Some((&*self.files[file as usize], from, len))
        })
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut rest = buffer;
        for (file, mut from, len) in self.spans(offset, rest.len() as u64) {
            let (mut piece, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            while !piece.is_empty() {
                match pread(file, &mut *piece, from) {
                    // Another program has made the file shorter.
                    Ok(0) => return Err(Errno::IO),
                    Ok(read) => {
                        piece = &mut piece[read..];
                        from += read as u64;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut written = 0;
        for (file, from, len) in self.spans(offset, bytes.len() as u64) {
            let end = written + len;
            let mut at = from;
            while written < end {
                match pwrite(file, &bytes[written as usize..end as usize], at) {
                    Ok(0) => {
                        let errno = Errno::NOSPC;
                        return Err(WriteError { written, errno });
                    }
                    Ok(more) => {
                        written += more as u64;
                        at += more as u64;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(WriteError { written, errno }),
                }
            }
        }
        Ok(())
    }

    /// Zeroes bytes and frees their space.
    pub fn punch(&self, offset: u64, len: u64) -> Result<(), Errno> {
        for (file, from, len) in self.spans(offset, len) {
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match retried(|| fallocate(file, punch, from, len)) {
                Err(Errno::OPNOTSUPP) => write_zeroes(file, from, len)?,
                other => other?,
            }
        }
        Ok(())
    }

    /// Zeroes bytes and allocates their space, so that later writes there do not run out of space.
    pub fn zero(&self, offset: u64, len: u64) -> Result<(), Errno> {
        self.punch(offset, len)?;
        for (file, from, len) in self.spans(offset, len) {
            match retried(|| fallocate(file, FallocateFlags::KEEP_SIZE, from, len)) {
                Err(Errno::OPNOTSUPP) => write_zeroes(file, from, len)?,
                other => other?,
            }
        }
        Ok(())
    }

    /// Syncs all files. Returns when every written byte is on the medium under the store.
    pub fn sync(&self) -> Result<(), Errno> {
        #[cfg(test)]
        drop(self.held.lock());
        self.files
            .iter()
            .try_for_each(|file| retried(|| fdatasync(file)))
    }
}

fn retried(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn write_zeroes(file: &OwnedFd, from: u64, len: u64) -> Result<(), Errno> {
    let (mut at, end) = (from, from + len);
    while at < end {
        let len = (end - at).min(ZEROES.len() as u64);
        match pwrite(file, &ZEROES[..len as usize], at) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(more) => at += more as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Allocation for Store {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        match self.spans(offset, len).next() {
            Some((file, from, len)) => allocation::status(file, from, len),
            None => Ok((false, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;
    use std::path::Path;

    fn both(bytes: u64, file_bytes: u64, test: impl Fn(&Store)) {
        let folder = Folder::new();
        test(&Store::memory(bytes, file_bytes).expect("opens"));
        let path = folder.join("store");
        test(&Store::file(&pieces(&path, bytes, file_bytes)).expect("opens"));
    }

    fn pieces(path: &Path, bytes: u64, file_bytes: u64) -> Pieces<'_> {
        Pieces {
            path,
            bytes,
            file_bytes,
            create: true,
        }
    }

    #[test]
    fn a_limit_of_space_is_told_from_a_failed_device() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            assert_eq!(failure(errno).kind, Kind::NoSpace);
        }
        assert_eq!(failure(Errno::IO).kind, Kind::Device);
    }

    #[test]
    fn bytes_over_several_files_are_read_back() {
        both(40_960, 16_384, |store| {
            let bytes: Vec<u8> = (0..20_000u32).map(|n| n as u8 | 1).collect();
            store.write(10_000, &bytes).expect("there is room");
            let mut back = vec![0; 40_960];
            store.read(0, &mut back).expect("reads");
            assert!(back[..10_000].iter().all(|byte| *byte == 0));
            assert_eq!(back[10_000..30_000], bytes);
            assert!(back[30_000..].iter().all(|byte| *byte == 0));
            store.punch(12_000, 10_000).expect("punches");
            store.zero(25_000, 1_000).expect("zeroes");
            store.read(0, &mut back).expect("reads");
            assert!(back[12_000..22_000].iter().all(|byte| *byte == 0));
            assert!(back[25_000..26_000].iter().all(|byte| *byte == 0));
            assert_eq!(back[22_000..25_000], bytes[12_000..15_000]);
        });
    }

    #[test]
    fn written_pages_of_a_store_are_allocated() {
        both(3 << 20, 2 << 20, |store| {
            assert_eq!(store.status(0, 3 << 20).ok(), Some((false, 2 << 20)));
            store.write(1 << 20, &[1; 8192]).expect("there is room");
            assert_eq!(store.status(0, 3 << 20).ok(), Some((false, 1 << 20)));
            assert_eq!(store.status(1 << 20, 1 << 20).ok(), Some((true, 8192)));
            assert_eq!(store.status(1 << 20, 512).ok(), Some((true, 512)));
            store.punch(1 << 20, 4096).expect("punches");
            let from = (1 << 20) + 512;
            assert_eq!(store.status(from, 4096).ok(), Some((false, 4096 - 512)));
            assert_eq!(store.status(2 << 20, 1 << 20).ok(), Some((false, 1 << 20)));
        });
    }

    /// An answer covers at most one file, so the caller asks again for the rest.
    #[test]
    fn what_is_allocated_in_pieces_and_at_their_ends() {
        both(3 << 20, 1 << 20, |store| {
            store.write((1 << 20) - 4096, &[1; 8192]).expect("room");
            store.write((3 << 20) - 4096, &[1; 4096]).expect("room");
            let mut told = Vec::new();
            let mut at = 0;
            while at < 3 << 20 {
                let (allocated, len) = store.status(at, (3 << 20) - at).expect("it can tell");
                assert!(len > 0, "at {at}");
                told.push((allocated, len));
                at += len;
            }
            let (data, hole) = ((true, 4096), (false, (1 << 20) - 4096));
            assert_eq!(told, [hole, data, data, hole, hole, data]);
            for at in [0, 1 << 20, 3 << 20] {
                assert_eq!(store.status(at, 0).ok(), Some((false, 0)), "{at}");
            }
        });
    }

    /// The lost bytes cannot be read, so the store must not report them as a hole of zeroes.
    #[test]
    fn a_store_that_somebody_has_made_shorter_is_no_hole_beyond_its_end() {
        let folder = Folder::new();
        let path = folder.join("store");
        let store = Store::file(&pieces(&path, 2 << 20, 1 << 20)).expect("opens");
        let first = std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("opens");
        first.set_len(1 << 19).expect("cuts");
        assert_eq!(store.status(0, 1 << 20).ok(), Some((false, 1 << 19)));
        assert_eq!(store.status(1 << 19, 1 << 20).ok(), Some((true, 1 << 19)));
        assert_eq!(store.read(1 << 19, &mut [0; 512]), Err(Errno::IO));
        assert_eq!(store.status(1 << 20, 1 << 20).ok(), Some((false, 1 << 20)));
    }
}
