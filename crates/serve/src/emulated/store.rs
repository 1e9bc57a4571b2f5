//! The bytes of an emulated drive: memory, or sparse files.
//!
//! A store is a raw image and nothing else, so that other tools can open it: `losetup`, `fsck`,
//! `cmp`. Its size is what it is recognised by. A volume of more than [`FILE_BYTES_MAX`] takes
//! several files, `PATH`, `PATH.1` and so on, of which only the last is shorter.

use super::OpenError;
use crate::device::{Allocation, remove_made};
use crate::file::{allocation, use_of_file};
use rustix::fs::{
    FallocateFlags, FileType, FlockOperation, MemfdFlags, Stat, fallocate, fdatasync, flock, fstat,
    fsync, ftruncate, memfd_create, stat,
};
use rustix::io::{Errno, pread, pwrite};
use rustix::process::{Resource, getrlimit};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The most bytes of one file: 8 TiB, half of what ext4 takes with blocks of 4 KiB.
pub const FILE_BYTES_MAX: u64 = 8 << 40;

/// What is written at a time where zeroes have to be written out.
const ZEROES: &[u8] = &[0; 64 << 10];

/// Sparse bytes. Shared by the disk's thread, the one that syncs, and whoever asks for what is
/// allocated; only the first changes them.
#[derive(Debug)]
pub(super) struct Store {
    files: Vec<OwnedFd>,
    /// Bytes of every file but the last.
    file_bytes: u64,
    bytes: u64,
    in_memory: bool,
    /// Files that were not there before.
    made: Vec<PathBuf>,
    /// Whoever holds this keeps a sync from ending.
    #[cfg(test)]
    pub held: std::sync::Mutex<()>,
}

/// A write that did not reach its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteError {
    /// Bytes that were written.
    pub written: u64,
    /// Why no more.
    pub errno: Errno,
}

impl Store {
    /// A store in memory that takes as much of it as is written.
    pub fn memory(bytes: u64, file_bytes: u64) -> Result<Store, OpenError> {
        let mut files = Vec::new();
        for (_, len) in pieces(bytes, file_bytes) {
            let file = memfd_create("headtime-store", MemfdFlags::CLOEXEC)
                .map_err(|error| OpenError::Memory(error.into()))?;
            ftruncate(&file, len).map_err(|error| OpenError::Memory(error.into()))?;
            files.push(file);
        }
        Ok(Store {
            files,
            file_bytes,
            bytes,
            in_memory: true,
            made: Vec::new(),
            #[cfg(test)]
            held: std::sync::Mutex::default(),
        })
    }

    /// A store in files, which are made if there are none.
    pub fn file(path: &Path, bytes: u64, file_bytes: u64) -> Result<Store, OpenError> {
        let mut made = Vec::new();
        let opened = open(path, bytes, file_bytes, &mut made);
        if opened.is_err() {
            // They are empty.
            remove_made(&made);
        }
        Ok(Store {
            files: opened?,
            file_bytes,
            bytes,
            in_memory: false,
            made,
            #[cfg(test)]
            held: std::sync::Mutex::default(),
        })
    }

    /// The files that were not there before it was opened.
    pub fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// A store of which nothing can be synced.
    #[cfg(test)]
    pub fn broken() -> Store {
        let (pipe, _) = rustix::pipe::pipe().expect("there are pipes");
        Store {
            files: vec![pipe],
            file_bytes: 1,
            bytes: 1,
            in_memory: false,
            made: Vec::new(),
            held: std::sync::Mutex::default(),
        }
    }

    /// Whether it is gone with the process, so that there is nothing to sync.
    pub fn in_memory(&self) -> bool {
        self.in_memory
    }

    /// The files that bytes lie in: file, offset in it, length.
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
            Some((&self.files[file as usize], from, len))
        })
    }

    /// Fills `buffer` from `offset` on.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut rest = buffer;
        for (file, mut from, len) in self.spans(offset, rest.len() as u64) {
            let (mut piece, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            while !piece.is_empty() {
                match pread(file, &mut *piece, from) {
                    // Somebody has made the file shorter.
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

    /// Writes `bytes` from `offset` on.
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

    /// Makes bytes zero, and gives back their space.
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

    /// Makes bytes zero, and takes space for them: what is written there later finds it.
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

    /// Returns when everything written is on the medium that the store lies on.
    pub fn sync(&self) -> Result<(), Errno> {
        #[cfg(test)]
        drop(self.held.lock());
        if self.in_memory {
            return Ok(());
        }
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

/// The sizes of the files of a store, and their numbers.
fn pieces(bytes: u64, file_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(file_bytes)).map(move |number| {
        let before = number * file_bytes;
        (number, file_bytes.min(bytes - before))
    })
}

/// The path of one of them.
fn piece_path(path: &Path, number: u64) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn open(
    path: &Path,
    bytes: u64,
    file_bytes: u64,
    made: &mut Vec<PathBuf>,
) -> Result<Vec<OwnedFd>, OpenError> {
    let mut files: Vec<OwnedFd> = Vec::new();
    // A file that holds something, and one that is empty.
    let (mut holds, mut is_empty) = (None, None);
    for (number, len) in pieces(bytes, file_bytes) {
        let path = piece_path(path, number);
        let file = open_piece(&path, made)?;
        let found = lock(&path, &file)?;
        match found {
            0 => is_empty = Some(path),
            _ if found == len => holds = Some(path),
            _ => {
                return Err(OpenError::OtherSize {
                    path,
                    found,
                    wanted: len,
                });
            }
        }
        files.push(file.into());
    }
    let beyond = piece_path(path, files.len() as u64);
    if beyond.exists() {
        return Err(OpenError::Beyond { path: beyond });
    }
    match (holds, is_empty) {
        (Some(holds), Some(missing)) => return Err(OpenError::InPart { holds, missing }),
        (Some(_), None) => {}
        (None, _) => {
            for (file, (number, len)) in files.iter().zip(pieces(bytes, file_bytes)) {
                make(&piece_path(path, number), file, len)?;
            }
            keep_names(path)?;
        }
    }
    Ok(files)
}

fn open_piece(path: &Path, made: &mut Vec<PathBuf>) -> Result<File, OpenError> {
    let failed = |error| OpenError::File {
        path: path.to_owned(),
        error,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // If somebody else makes it meanwhile, it is theirs.
            let file = options.create_new(true).open(path).map_err(failed)?;
            made.push(path.to_owned());
            Ok(file)
        }
        other => other.map_err(failed),
    }
}

/// Refuses a file that a loop device or a mount stands on: it would be written beneath them, never
/// what somebody wants of a store.
fn refuse_used(path: &Path, stat: &Stat) -> Result<(), OpenError> {
    match use_of_file(path, stat) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => Err(OpenError::InUse {
            path: path.to_owned(),
            what,
        }),
        Err(error) => {
            let path = path.display();
            tracing::warn!("{path}: whether it is in use otherwise cannot be found out: {error}");
            Ok(())
        }
    }
}

/// Whether a file could be a store, as far as that shows without opening it. One that is not there
/// could.
pub(super) fn look(path: &Path) -> Result<(), OpenError> {
    match stat(path) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(OpenError::File {
            path: path.to_owned(),
            error: errno.into(),
        }),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            Err(OpenError::NotAFile {
                path: path.to_owned(),
            })
        }
        Ok(stat) => refuse_used(path, &stat),
    }
}

/// Takes the file for this process alone; its length.
fn lock(path: &Path, file: &File) -> Result<u64, OpenError> {
    let failed = |errno: Errno| OpenError::File {
        path: path.to_owned(),
        error: errno.into(),
    };
    let stat = fstat(file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(OpenError::NotAFile {
            path: path.to_owned(),
        });
    }
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(OpenError::Locked {
                path: path.to_owned(),
            });
        }
        Err(errno) => return Err(failed(errno)),
    }
    refuse_used(path, &stat)?;
    // Only now nobody changes it.
    Ok(fstat(file).map_err(failed)?.st_size as u64)
}

/// Gives an empty file its size.
fn make(path: &Path, file: &OwnedFd, len: u64) -> Result<(), OpenError> {
    // Beyond this limit the kernel does not refuse, it ends the process.
    if let Some(limit) = getrlimit(Resource::Fsize).current
        && limit < len
    {
        return Err(OpenError::Limit {
            path: path.to_owned(),
            wanted: len,
            limit,
        });
    }
    ftruncate(file, len).map_err(|errno| match errno {
        Errno::FBIG | Errno::INVAL => OpenError::TooLarge {
            path: path.to_owned(),
            wanted: len,
        },
        errno => OpenError::File {
            path: path.to_owned(),
            error: errno.into(),
        },
    })
}

/// Files that have just been made are still there after a crash of the machine.
fn keep_names(path: &Path) -> Result<(), OpenError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let synced = File::open(folder).and_then(|folder| Ok(fsync(folder)?));
    synced.map_err(|error| OpenError::File {
        path: folder.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(bytes: u64, file_bytes: u64, test: impl Fn(&Store)) {
        let folder = Folder::new();
        test(&Store::memory(bytes, file_bytes).expect("opens"));
        test(&Store::file(&folder.0.join("store"), bytes, file_bytes).expect("opens"));
    }

    /// A folder that is gone with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            use std::sync::atomic::{AtomicU32, Ordering};
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("headtime-store-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).expect("a folder for temporary files");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn bytes_over_several_files() {
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
    fn what_is_allocated() {
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

    /// An answer is about one piece; who wants to know more asks again.
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

    /// What it has lost cannot be read: it must not be said to be zeroes.
    #[test]
    fn a_store_that_somebody_has_made_shorter_is_no_hole_beyond_its_end() {
        let folder = Folder::new();
        let path = folder.0.join("store");
        let store = Store::file(&path, 2 << 20, 1 << 20).expect("opens");
        let first = OpenOptions::new().write(true).open(&path).expect("opens");
        first.set_len(1 << 19).expect("cuts");
        assert_eq!(store.status(0, 1 << 20).ok(), Some((false, 1 << 19)));
        assert_eq!(store.status(1 << 19, 1 << 20).ok(), Some((true, 1 << 19)));
        assert_eq!(store.read(1 << 19, &mut [0; 512]), Err(Errno::IO));
        assert_eq!(store.status(1 << 20, 1 << 20).ok(), Some((false, 1 << 20)));
    }

    #[test]
    fn a_store_is_recognised_by_its_size() {
        let folder = Folder::new();
        let path = folder.0.join("store");
        let open = |bytes| Store::file(&path, bytes, 1 << 20);
        let refused = |bytes| open(bytes).expect_err("refused").to_string();
        let shown = path.display();
        let store = open(3 << 19).expect("opens");
        store.write((1 << 20) - 1, &[7; 2]).expect("there is room");
        assert_eq!(
            refused(3 << 19),
            format!("{shown} is in use by another server")
        );
        drop(store);
        assert_eq!(
            refused(1 << 19),
            format!("{shown} is a store of 1048576 bytes, not of 524288")
        );
        assert_eq!(
            refused(1 << 20),
            format!("{shown}.1 belongs to a larger store; this one ends before it")
        );
        assert_eq!(
            refused(5 << 19),
            format!("{shown}.1 is a store of 524288 bytes, not of 1048576")
        );
        assert!(!folder.0.join("store.2").exists());
        let store = open(3 << 19).expect("opens");
        let mut back = [0; 4];
        store.read((1 << 20) - 2, &mut back).expect("reads");
        assert_eq!(back, [0, 7, 7, 0]);
        drop(store);
        std::fs::remove_file(folder.0.join("store.1")).expect("is there");
        assert_eq!(
            refused(3 << 19),
            format!("{shown} is there, but {shown}.1, which belongs to it, is not")
        );
        assert!(!folder.0.join("store.1").exists());
    }

    #[test]
    fn what_is_no_file() {
        let refused = |path: &str| {
            Store::file(Path::new(path), 4096, 4096)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(refused("/dev/null"), "/dev/null is not a regular file");
        assert_eq!(
            refused("/proc/none/store"),
            "/proc/none/store: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_store_larger_than_the_kernel_takes() {
        let folder = Folder::new();
        let path = folder.0.join("store");
        let error = Store::file(&path, 1 << 62, 1 << 62).expect_err("too large");
        assert!(
            matches!(error, OpenError::TooLarge { .. } | OpenError::Limit { .. }),
            "{error}"
        );
        assert!(!path.exists());
    }
}
