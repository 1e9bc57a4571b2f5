//! Finds or makes the files of a store. Either all of the files are made or none is.
//!
//! The lock of the first file protects all files: a server without that lock touches no other file. If there are
//! several files, the first is made empty and gets its size after the others exist. A store whose first file has its
//! size is therefore complete. If a killed server leaves a store half made, the next server that may make the store
//! completes it.

use super::EmulateError;
use crate::backing::{
    Claim, Hint, MakeError, New, Place, TRIES_MAX, Way, keep_found_name, keep_name, lock,
    may_have_size, may_write, set_size, still_named,
};
use crate::file::use_of_file;
use headtime_linux::shown::PathShown as _;
use headtime_units::Bytes;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Required files of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces<'a> {
    /// Path of the first file. The other files are `PATH.1` and so on.
    pub path: &'a Path,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes of every file but the last.
    pub file_bytes: u64,
    /// True if the files are made when there is no store yet.
    pub create: bool,
}

/// State of an existing file.
#[derive(Clone, Copy, Debug)]
struct Found {
    bytes: u64,
    /// True if the file has allocated blocks, so that it may hold data.
    holds: bool,
}

/// Judgement of the existing files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The files are a complete store.
    Whole,
    /// There is no store yet, and making the store destroys no data.
    ToMake,
}

impl Found {
    fn of(stat: &Stat) -> Found {
        Found {
            bytes: stat.st_size as u64,
            holds: stat.st_blocks > 0,
        }
    }
}

impl Pieces<'_> {
    /// Bytes of each file of a store.
    pub fn lengths(bytes: u64, file_bytes: u64) -> impl Iterator<Item = u64> {
        let starts = (0..bytes.div_ceil(file_bytes)).map(move |number| number * file_bytes);
        starts.map(move |start| file_bytes.min(bytes - start))
    }

    /// Paths of the files, each with its size in bytes.
    fn all(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let lengths = Pieces::lengths(self.bytes, self.file_bytes);
        let numbered = (0..).zip(lengths);
        numbered.map(|(number, bytes)| (self.piece(number), bytes))
    }

    fn piece(&self, number: usize) -> PathBuf {
        if number == 0 {
            return self.path.to_owned();
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// Checks that the files are a store or could become one, as far as possible without writing.
    ///
    /// # Errors
    ///
    /// As [`Pieces::open`].
    pub fn look(&self) -> Result<(), EmulateError> {
        let found = self.look_at_all()?;
        let verdict = self.judge(&found)?;
        for ((path, bytes), found) in self.all().zip(&found) {
            match found {
                Some(_) => {
                    may_write(&path).map_err(|errno| failed(&path, errno))?;
                    open_piece(&path, bytes, OFlags::RDONLY)?;
                }
                None => Place::of(&path)?.may_write()?,
            }
            if verdict == Verdict::ToMake {
                may_have_size(&path, bytes)?;
            }
        }
        Ok(())
    }

    /// Returns the state of each file, without locking the files.
    fn look_at_all(&self) -> Result<Vec<Option<Found>>, EmulateError> {
        let one = |(path, _): (PathBuf, u64)| match stat(&path) {
            Ok(stat) => refuse_used(&path, &stat).map(|()| Some(Found::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(&path, errno)),
        };
        self.all().map(one).collect()
    }

    /// Judges the files by their states.
    fn judge(&self, found: &[Option<Found>]) -> Result<Verdict, EmulateError> {
        for ((path, bytes), found) in self.all().zip(found) {
            if let Some(Found { bytes: found, .. }) = *found
                && found != 0
                && found != bytes
            {
                let wanted = bytes;
                return Err(EmulateError::OtherSize {
                    path,
                    found,
                    wanted,
                });
            }
        }
        let beyond = self.piece(found.len());
        if beyond.exists() {
            return Err(EmulateError::Beyond { path: beyond });
        }
        let in_part = |holds, missing| EmulateError::InPart {
            holds: self.piece(holds),
            missing: self.piece(missing),
        };
        let has_size = |found: &Option<Found>| found.is_some_and(|found| found.bytes > 0);
        if found.first().is_some_and(has_size) {
            return match found.iter().position(|found| !has_size(found)) {
                Some(missing) => Err(in_part(0, missing)),
                None => Ok(Verdict::Whole),
            };
        }
        // A killed server that left the store half made has left files with a size but without data.
        let is_anothers = |found: &Option<Found>| {
            found.is_some_and(|found| found.bytes > 0 && (found.holds || !self.create))
        };
        if let Some(holds) = found.iter().position(is_anothers) {
            return Err(in_part(holds, 0));
        }
        match found.first() {
            _ if self.create => Ok(Verdict::ToMake),
            Some(Some(_)) => {
                let path = self.path.to_owned();
                let wanted = Bytes(self.bytes);
                Err(MakeError::Empty { path, wanted }.into())
            }
            _ => {
                // If the place itself is unusable, its error helps the user more than the hint how to make a store
                // there.
                Place::of(self.path)?;
                let path = self.path.to_owned();
                let hint = Hint::Create(Bytes(self.bytes));
                Err(MakeError::Missing { path, hint }.into())
            }
        }
    }

    /// Opens and locks the files for this process alone, or makes the files.
    ///
    /// # Errors
    ///
    /// If the files are no store, are in use, or are missing and cannot be made. Files that were made by this call are
    /// removed again.
    pub fn open(&self) -> Result<Vec<Arc<Claim>>, EmulateError> {
        self.open_by(Way::default())
    }

    fn open_by(&self, mut way: Way) -> Result<Vec<Arc<Claim>>, EmulateError> {
        for _ in 0..TRIES_MAX {
            let mut claims = vec![None; self.all().count()];
            let is_open = self.open_into(&mut claims, &mut way);
            if matches!(is_open, Ok(true)) {
                return Ok(claims.into_iter().flatten().collect());
            }
            // The first file is removed first, because the others are no store without it.
            for claim in claims.into_iter().flatten() {
                claim.remove();
            }
            is_open?;
        }
        let path = self.path.to_owned();
        Err(MakeError::Unsteady { path }.into())
    }

    /// Opens or makes the files. Returns false if another process interfered, so that all files have to be examined
    /// again.
    fn open_into(
        &self,
        claims: &mut [Option<Arc<Claim>>],
        way: &mut Way,
    ) -> Result<bool, EmulateError> {
        let mut found = vec![None; claims.len()];
        for (number, (path, bytes)) in self.all().enumerate() {
            match open_piece(&path, bytes, OFlags::RDWR)? {
                OpenedPiece::Missing if number == 0 => {
                    // Errors have to show before any file is made.
                    self.judge(&self.look_at_all()?)?;
                    let size = if claims.len() == 1 { bytes } else { 0 };
                    claims[0] = make(&path, size, bytes, way)?;
                    found[0] = Some(Found {
                        bytes: size,
                        holds: false,
                    });
                    if claims[0].is_none() {
                        return Ok(false);
                    }
                }
                OpenedPiece::Missing => {}
                OpenedPiece::Renamed => return Ok(false),
                OpenedPiece::Found(claim) => {
                    // The state is read under the lock, since no other server changes the file from now on.
                    let stat = fstat(claim.file()).map_err(|errno| failed(&path, errno))?;
                    found[number] = Some(Found::of(&stat));
                    claims[number] = Some(Arc::new(claim));
                }
            }
        }
        match self.judge(&found)? {
            Verdict::Whole if claims.iter().flatten().any(|claim| claim.is_made()) => {
                keep_name(self.path)?;
                return Ok(true);
            }
            Verdict::Whole => {
                if self.create {
                    keep_found_name(self.path);
                }
                return Ok(true);
            }
            Verdict::ToMake => {}
        }
        for (number, (path, bytes)) in self.all().enumerate() {
            match (&claims[number], found[number]) {
                (None, _) => {
                    claims[number] = make(&path, bytes, bytes, way)?;
                    if claims[number].is_none() {
                        return Ok(false);
                    }
                }
                (Some(claim), Some(Found { bytes: 0, .. })) if number > 0 => {
                    set_size(&path, claim.file(), bytes)?;
                }
                (Some(_), _) => {}
            }
        }
        keep_name(self.path)?;
        // The size of the first file makes the store complete.
        if let (Some(first), Some((path, bytes))) = (&claims[0], self.all().next()) {
            set_size(&path, first.file(), bytes)?;
        }
        Ok(true)
    }
}

/// Makes a file of `size` bytes that is to have `bytes` in the end. Returns `None` if another process has made the file
/// first.
fn make(
    path: &Path,
    size: u64,
    bytes: u64,
    way: &mut Way,
) -> Result<Option<Arc<Claim>>, EmulateError> {
    // The final size is checked now, even if the file gets it later.
    may_have_size(path, bytes)?;
    let place = Place::of(path)?;
    let Some(new) = New::file_in(&place, way)? else {
        return Ok(None);
    };
    new.locked.map_err(|errno| no_lock(path, errno))?;
    let file = Arc::clone(new.file());
    set_size(path, &file, size)?;
    let published = new.publish(way);
    Ok(published.then(|| Arc::new(Claim::made(path, file, bytes, true))))
}

/// Result of opening a file of a store.
enum OpenedPiece {
    Missing,
    /// The file exists and is locked.
    Found(Claim),
    /// The name led to another file, or to none, by the time of the lock.
    Renamed,
}

/// Opens and locks a file for this process alone.
fn open_piece(path: &Path, bytes: u64, access: OFlags) -> Result<OpenedPiece, EmulateError> {
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(OpenedPiece::Missing),
        Err(Errno::ISDIR) => return Err(not_a_file(path)),
        Err(errno) => return Err(failed(path, errno)),
    };
    let told = |errno| failed(path, errno);
    let stat = fstat(&file).map_err(told)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(not_a_file(path));
    }
    match lock(&file, true) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(EmulateError::Locked {
                path: path.to_owned(),
            });
        }
        Err(errno) => return Err(no_lock(path, errno)),
    }
    if !still_named(path, &file).map_err(told)? {
        return Ok(OpenedPiece::Renamed);
    }
    refuse_used(path, &stat)?;
    Ok(OpenedPiece::Found(Claim::found(
        path,
        Arc::new(file),
        bytes,
    )))
}

/// Refuses a path to anything but a regular file. Also refuses a file that a loop device or a mount uses, since the
/// store would be written beneath that device or mount.
fn refuse_used(path: &Path, stat: &Stat) -> Result<(), EmulateError> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(not_a_file(path));
    }
    match use_of_file(path, stat) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => Err(EmulateError::InUse {
            path: path.to_owned(),
            what,
        }),
        Err(error) => {
            let path = path.shown();
            tracing::warn!("{path}: whether it is in use otherwise cannot be found out: {error}");
            Ok(())
        }
    }
}

fn not_a_file(path: &Path) -> EmulateError {
    EmulateError::NotAFile {
        path: path.to_owned(),
    }
}

fn no_lock(path: &Path, errno: Errno) -> EmulateError {
    EmulateError::NoLock {
        path: path.to_owned(),
        error: errno.into(),
    }
}

fn failed(path: &Path, errno: Errno) -> EmulateError {
    EmulateError::File {
        path: path.to_owned(),
        error: errno.into(),
    }
}

#[cfg(test)]
mod tests;
