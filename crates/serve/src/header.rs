//! The header of an array's disk on a file or a block device.
//!
//! The header names the set of disks, and the place of this disk in the set. Serving an array reads and checks the headers and
//! never writes them. [`create`] writes them.
//!
//! | byte | |
//! |---|---|
//! | 0 | `headtime-array` and two zeroes |
//! | 16 | version, 1; level, 0 for RAID 0: 4 bytes each, as all numbers little-endian |
//! | 24 | name of the set: 16 random bytes |
//! | 40 | disks of the set; place of this one, from 0: 4 bytes each |
//! | 48 | bytes of a chunk; bytes of the disk behind the header: 8 bytes each |
//! | 504 | XxHash64 of the bytes before |
//!
//! The data begin at byte [`Header::DATA`]. The disk has the bytes that the header says, even if the file grows. The
//! place of every sector of the array follows from the sizes of the array's disks.

mod create;

pub use create::{CreateError, CreateOptions, create};

use headtime_units::Bytes;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use twox_hash::XxHash64;

const MAGIC: &[u8; 16] = b"headtime-array\0\0";
const VERSION: u32 = 1;
const RAID0: u32 = 0;

/// Bytes of a header with its checksum.
const LEN: usize = 512;
/// Bytes before the checksum.
const BODY: usize = LEN - 8;

/// Unit of the bytes of a chunk and of a disk: the largest sector, and a page.
pub(crate) const UNIT: u64 = 4096;

/// Largest chunk of an array, as the configuration has it.
pub(crate) const CHUNK_MAX: u64 = 64 << 20;

/// Returns true if an array may have chunks of this number of bytes.
pub(crate) fn is_chunk(bytes: u64) -> bool {
    (1..=CHUNK_MAX).contains(&bytes) && bytes.is_multiple_of(UNIT)
}

/// Name of the set of disks that an array is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetId(pub [u8; 16]);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub set: SetId,
    /// Disks of the set that have headers.
    pub count: u32,
    /// Place of this disk in the set, from 0.
    pub index: u32,
    /// Bytes on a disk before the next disk's turn.
    pub chunk: u64,
    /// Bytes of the disk, without the header.
    pub bytes: u64,
}

/// Reason why a file is no disk of an array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// There is no header.
    #[error("has no header of an array; `headtime array create` writes the headers of a new array")]
    None,
    /// This program does not know the version.
    #[error("the header has version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// The checksum does not fit, or a number is out of range.
    #[error("the header is damaged")]
    Damaged,
    /// The file ends before the disk.
    #[error("is too small: has {found} behind the header, which says {bytes}")]
    Small { found: Bytes, bytes: Bytes },
    /// A system call failed.
    #[error("reading the header: {0}")]
    Io(#[from] io::Error),
}

impl Header {
    /// Byte at which the data begin: a multiple of every sector size, and of the erase blocks of flash.
    pub const DATA: u64 = 1 << 20;

    fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, MAGIC);
        put(16, &VERSION.to_le_bytes());
        put(20, &RAID0.to_le_bytes());
        put(24, &self.set.0);
        put(40, &self.count.to_le_bytes());
        put(44, &self.index.to_le_bytes());
        put(48, &self.chunk.to_le_bytes());
        put(56, &self.bytes.to_le_bytes());
        let check = XxHash64::oneshot(0, &bytes[..BODY]).to_le_bytes();
        bytes[BODY..].copy_from_slice(&check);
        bytes
    }

    /// Decodes a header. Returns `None` if the bytes are no header.
    fn decode(bytes: &[u8; LEN]) -> Result<Option<Header>, HeaderError> {
        if bytes[..16] != *MAGIC {
            return Ok(None);
        }
        let small = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let large = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        if XxHash64::oneshot(0, &bytes[..BODY]) != large(BODY) {
            return Err(HeaderError::Damaged);
        }
        if small(16) != VERSION {
            return Err(HeaderError::Version(small(16)));
        }
        let header = Header {
            set: SetId(bytes[24..40].try_into().expect("sixteen")),
            count: small(40),
            index: small(44),
            chunk: large(48),
            bytes: large(56),
        };
        let whole = |bytes: u64| bytes > 0 && bytes.is_multiple_of(UNIT);
        match small(20) == RAID0
            && header.index < header.count
            && whole(header.chunk)
            && whole(header.bytes)
        {
            true => Ok(Some(header)),
            false => Err(HeaderError::Damaged),
        }
    }

    /// Reads the header of an open file, without direct I/O; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the header cannot be read, is damaged, or has an unknown version.
    pub fn read(file: &File) -> Result<Option<Header>, HeaderError> {
        let mut bytes = [0; LEN];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Header::decode(&bytes),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Checks that disks are all disks of one set, in their order. Each disk has a name; a file or a block device has a header as
/// well. `chunk` is the array's chunk in bytes.
///
/// # Errors
///
/// The number of the first that is not, and why.
pub fn check_set(disks: &[(&str, Option<&Header>)], chunk: u64) -> Result<(), (usize, String)> {
    let headers = disks.iter().enumerate();
    let headers = headers.filter_map(|(number, (name, header))| Some((number, *name, (*header)?)));
    let headers: Vec<(usize, &str, &Header)> = headers.collect();
    let Some((_, first_name, first)) = headers.first() else {
        return Ok(());
    };
    for (place, (number, _, header)) in (0..).zip(&headers) {
        let index = header.index;
        let given = |index| headers.iter().any(|(_, _, other)| other.index == index);
        let problem = if header.set != first.set {
            let (set, first) = (header.set, first.set);
            format!(
                "belongs to another array: its set is {set}, and that of {first_name} is {first}"
            )
        } else if index < place {
            let (_, before, _) = headers[index as usize];
            format!("is there twice: {before} is disk {index} of the set, too")
        } else if index > place && given(place) {
            format!("is disk {index} of the set at place {place}: give the disks in their order")
        } else if index > place {
            format!("is disk {index} of the set, of which disk {place} is missing")
        } else if header.chunk != chunk {
            let (own, given) = (Bytes(header.chunk), Bytes(chunk));
            format!("has chunks of {own} by its header; the array is to have {given}")
        } else {
            continue;
        };
        return Err((*number, problem));
    }
    let count = headers.len() as u32;
    match headers.last() {
        Some((number, _, last)) if last.count != count => Err((
            *number,
            format!(
                "is one of {} disks of its set, and {count} are given",
                last.count
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
