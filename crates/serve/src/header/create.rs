//! Writes the headers of a new array.

use super::{CHUNK_MAX, Header, HeaderError, LEN, SetId, UNIT, is_chunk};
use crate::backing::MakeError;
use crate::file::OpenError;
use crate::file::opening::{FileOptions, Opened, Opening, open_checked};
use crate::file::safety::Machine;
use headtime_engine::MEMBERS_MAX;
use headtime_linux::shown::PathShown as _;
use headtime_units::Bytes;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Options of making an array.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Bytes on a disk before the next disk's turn.
    pub chunk: u64,
    /// The size in bytes of each file; files that are not there are made.
    pub size: Option<u64>,
    /// True if block devices, headers and data are overwritten.
    pub overwrite: bool,
    /// True if files and devices in use are opened.
    pub force: bool,
}

/// Reason why an array cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The number of disks is not allowed.
    #[error("{0} disks; allowed are 2 to {most}", most = MEMBERS_MAX)]
    Count(usize),
    /// The chunk is not allowed.
    #[error("chunks of {0}; allowed is a multiple of {unit} up to {most}", unit = Bytes(UNIT), most = Bytes(CHUNK_MAX))]
    Chunk(Bytes),
    /// A disk is there twice.
    #[error("{} is there twice: {} is the same file or device", .path.shown(), .other.shown())]
    Twice { path: PathBuf, other: PathBuf },
    /// A file does not exist, and no size is given.
    #[error("{} is not there; --size 4GiB makes a file of 4GiB", .0.shown())]
    Missing(PathBuf),
    /// A disk cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A disk has no room for a chunk after the header.
    #[error("{}: {bytes} are too few; a header takes {header}, and a chunk {chunk}", .path.shown(), header = Bytes(Header::DATA))]
    Small {
        path: PathBuf,
        bytes: Bytes,
        chunk: Bytes,
    },
    /// The disk is a block device, or holds a header or data that would be lost.
    #[error("{}: {is}; --overwrite makes an array of it all the same", .path.shown())]
    Precious { path: PathBuf, is: String },
    /// A system call failed.
    #[error("{}: {doing}: {error}", .path.shown())]
    Io {
        path: PathBuf,
        /// Attempted action.
        doing: &'static str,
        error: io::Error,
    },
}

/// Writes headers on files and block devices, which become the disks of an array in this order. Returns the headers. No
/// header is written before all disks are prepared. If preparing fails, the files that were made are removed again.
///
/// # Errors
///
/// If a disk cannot belong to the array, or holds data that would be lost, see [`CreateError`].
pub fn create(paths: &[PathBuf], options: &CreateOptions) -> Result<Vec<Header>, CreateError> {
    if !(2..=MEMBERS_MAX).contains(&paths.len()) {
        return Err(CreateError::Count(paths.len()));
    }
    if !is_chunk(options.chunk) {
        return Err(CreateError::Chunk(Bytes(options.chunk)));
    }
    refuse_twice(paths)?;
    let mut opened = Vec::with_capacity(paths.len());
    let prepared = prepare(paths, options, &mut opened).map(|set| {
        let headers = (0..).zip(&opened).map(|(index, (_, bytes))| Header {
            set,
            count: paths.len() as u32,
            index,
            chunk: options.chunk,
            bytes: *bytes,
        });
        headers.collect::<Vec<Header>>()
    });
    let headers = prepared.inspect_err(|_| {
        opened.iter().for_each(|(opened, _)| opened.claim.remove());
    })?;
    for ((header, (opened, _)), path) in headers.iter().zip(&opened).zip(paths) {
        let failed = io_error(path, "writing its header");
        let file = open_again(opened).map_err(&failed)?;
        // The rest of the sector is written too, for any sector size.
        let mut page = [0; UNIT as usize];
        page[..LEN].copy_from_slice(&header.encode());
        let written = file.write_all_at(&page, 0).and_then(|()| file.sync_all());
        written.map_err(&failed)?;
    }
    Ok(headers)
}

/// Opens and locks all disks, and determines their sizes. Returns a name for the set.
fn prepare(
    paths: &[PathBuf],
    options: &CreateOptions,
    opened: &mut Vec<(Opened, u64)>,
) -> Result<SetId, CreateError> {
    for path in paths {
        let disk = open(path, options)?;
        let found = disk.bytes;
        let bytes = found.saturating_sub(Header::DATA);
        let bytes = bytes - bytes % UNIT;
        let checked = match bytes < options.chunk {
            true => Err(CreateError::Small {
                path: path.clone(),
                bytes: Bytes(found),
                chunk: Bytes(options.chunk),
            }),
            false if options.overwrite => Ok(()),
            false => refuse_precious(path, &disk),
        };
        opened.push((disk, bytes));
        checked?;
    }
    let mut set = [0; 16];
    let random = Path::new("/dev/urandom");
    let read = File::open(random).and_then(|mut file| file.read_exact(&mut set));
    read.map_err(io_error(random, "reading a name for the set"))?;
    Ok(SetId(set))
}

fn open(path: &Path, options: &CreateOptions) -> Result<Opened, CreateError> {
    let file = FileOptions {
        direct: false,
        force: options.force,
        size: options.size,
        create: options.size.is_some(),
        ..FileOptions::new(path)
    };
    let opening = Opening {
        machine: &Machine::default(),
        for_writing: true,
    };
    open_checked(&file, &opening).map_err(|error| match error {
        OpenError::Make(MakeError::Missing { path, .. }) => CreateError::Missing(path),
        error => CreateError::Open(error),
    })
}

fn open_again(opened: &Opened) -> io::Result<File> {
    Ok(File::from(opened.claim.file().try_clone()?))
}

fn io_error(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> CreateError {
    let path = path.to_owned();
    move |error| CreateError::Io {
        path: path.clone(),
        doing,
        error,
    }
}

/// Refuses several names of one file. The file would be opened twice, and be found locked the second time.
fn refuse_twice(paths: &[PathBuf]) -> Result<(), CreateError> {
    let identity = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        Some(match found.file_type().is_block_device() {
            true => (u64::MAX, found.rdev()),
            false => (found.dev(), found.ino()),
        })
    };
    let found: Vec<_> = paths.iter().map(identity).collect();
    for (number, path) in paths.iter().enumerate() {
        let same = |other: &usize| {
            paths[*other] == *path || found[number].is_some() && found[*other] == found[number]
        };
        if let Some(other) = (0..number).find(same) {
            let (path, other) = (path.clone(), paths[other].clone());
            return Err(CreateError::Twice { path, other });
        }
    }
    Ok(())
}

/// Refuses a disk whose contents the user may still want.
fn refuse_precious(path: &Path, disk: &Opened) -> Result<(), CreateError> {
    let precious = |is: String| CreateError::Precious {
        path: path.to_owned(),
        is,
    };
    if disk.is_block_device {
        return Err(precious("is a block device".to_owned()));
    }
    let failed = io_error(path, "reading it");
    let file = open_again(disk).map_err(&failed)?;
    match Header::read(&file) {
        Ok(None) => {}
        Ok(Some(header)) => {
            let Header { set, index, .. } = header;
            return Err(precious(format!("is disk {index} of the set {set}")));
        }
        Err(HeaderError::Io(error)) => return Err(failed(error)),
        Err(error) => return Err(precious(error.to_string())),
    }
    let mut space = vec![0; Header::DATA as usize];
    file.read_exact_at(&mut space, 0).map_err(&failed)?;
    match space.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => {
            let data = Bytes(Header::DATA);
            Err(precious(format!("has data in the first {data}")))
        }
    }
}
