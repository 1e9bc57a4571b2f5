//! Files that are written: whole, or not at all.

use crate::fault::{Fault, name};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that is being written. Until [`Output::finish`], an old file of the name stays as it is.
///
/// Devices and pipes cannot be replaced and are written to directly. `-` is standard output.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// Temporary file with the text, if the text is not written to the file itself.
    beside: Option<PathBuf>,
    writer: BufWriter<File>,
}

impl Output {
    /// Starts a file. Fails early if the file could not be written at the end.
    ///
    /// # Errors
    ///
    /// If the directory does not exist or may not be written to.
    pub fn create(path: &Path) -> Result<Output, Fault> {
        let special = is_special(path);
        let beside = (!special).then(|| {
            let mut name = OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(".{}.part", std::process::id()));
            path.with_file_name(name)
        });
        let file = match &beside {
            Some(beside) => File::create_new(beside),
            None if is_stdout(path) => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            None => File::options().write(true).open(path),
        };
        let file = file.map_err(|error| Fault::writing(path, &error))?;
        Ok(Output {
            path: path.to_owned(),
            beside,
            writer: BufWriter::new(file),
        })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn finish(mut self) -> Result<(), Fault> {
        let done = self.writer.flush().and_then(|()| match &self.beside {
            Some(beside) => fs::rename(beside, &self.path),
            None => Ok(()),
        });
        done.map_err(|error| Fault::writing(&self.path, &error))?;
        self.beside = None;
        Ok(())
    }

    /// Writes a text as the whole file.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn write_all_of(path: &Path, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Fault> {
        let mut output = Output::create(path)?;
        output
            .write_all(text.as_ref())
            .map_err(|error| Fault::writing(path, &error))?;
        output.finish()
    }

    /// Refuses a file that exists. Devices and pipes are accepted.
    ///
    /// # Errors
    ///
    /// If the file exists.
    pub fn is_new(path: &Path) -> Result<(), Fault> {
        match fs::symlink_metadata(path) {
            Ok(_) if !is_special(path) => Err(Fault::File(format!(
                "{}: is there already; --force replaces it",
                name(path)
            ))),
            _ => Ok(()),
        }
    }

    /// Writes a text as a whole new file.
    ///
    /// # Errors
    ///
    /// If the file exists, even if it was made in the meantime, or if it cannot be written.
    pub fn write_new(path: &Path, text: &str) -> Result<(), Fault> {
        Output::is_new(path)?;
        if is_special(path) {
            return Output::write_all_of(path, text);
        }
        // If two processes take the name at the same time, one gets the error that the file exists.
        File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Output::is_new(path)
                .err()
                .unwrap_or_else(|| Fault::writing(path, &error)),
            _ => Fault::writing(path, &error),
        })?;
        let written = Output::write_all_of(path, text);
        if written.is_err() {
            // The name alone is of no use.
            let _ = fs::remove_file(path);
        }
        written
    }

    /// The file's name, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a file for this process alone, and makes an empty one if there is none. `taken` says what to do if another
/// process has it.
///
/// # Errors
///
/// If another process has the file, or the file cannot be read and written.
pub fn lock(path: &Path, taken: &str) -> Result<File, Fault> {
    let fault = |error: io::Error| Fault::writing(path, &error);
    loop {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path).map_err(fault)?;
        // Not every file system has locks.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Fault::File(format!("{}: {taken}", name(path))));
        }
        // The other process may have removed or replaced the file between opening and locking.
        let same = |found: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == found.ino());
        if fs::metadata(path).is_ok_and(same) {
            return Ok(file);
        }
    }
}

/// Makes the names of a file's directory durable.
///
/// # Errors
///
/// If that fails.
pub fn sync_directory(of: &Path) -> io::Result<()> {
    let directory = of.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// True for names of standard output. Text goes to the open file itself: the name `/dev/stdout` opens a redirected file anew, at its
/// beginning.
fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// True for a name that stands for no file to be replaced: an open file of the process, a device, or a pipe. Text is written there
/// directly. Files of file systems below `/dev`, as `/dev/shm`, are files.
pub fn is_special(path: &Path) -> bool {
    let is_open = path == Path::new("/dev/stderr") || path.starts_with("/dev/fd");
    let there = || fs::metadata(path).is_ok_and(|found| !found.is_file());
    is_stdout(path) || is_open || there()
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Removes the text of a file that was not finished.
impl Drop for Output {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Nothing more can be done about a failure here.
            let _ = fs::remove_file(beside);
        }
    }
}

/// Returns true if a name is the URL of an object in a store.
pub(crate) fn is_url(name: &str) -> bool {
    name.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("headtime-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn appears_when_finished_and_not_before() {
        let directory = directory("whole");
        let path = directory.join("a.svg");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        Output::write_all_of(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_missing_directory_is_an_error_at_once() {
        let path = Path::new("no-such-directory/a.svg");
        let fault = Output::create(path).unwrap_err();
        assert_eq!(fault.exit_code(), 4);
        assert!(
            fault
                .to_string()
                .starts_with("no-such-directory/a.svg: cannot write: ")
        );
    }

    #[test]
    fn a_new_file_does_not_take_the_place_of_one_that_is_there() {
        let directory = directory("new");
        let path = directory.join("a.toml");
        Output::write_new(&path, "first").unwrap();
        let fault = Output::write_new(&path, "second").unwrap_err();
        assert_eq!(fault.exit_code(), 4);
        let said = format!("{}: is there already; --force replaces it", path.display());
        assert_eq!(fault.to_string(), said);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        // A link that leads nowhere is a file, too.
        let link = directory.join("link.toml");
        std::os::unix::fs::symlink("nowhere.toml", &link).unwrap();
        assert!(Output::write_new(&link, "third").is_err());
        Output::write_new(Path::new("/dev/null"), "nothing").unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        fs::remove_dir_all(&directory).unwrap();
    }
}
