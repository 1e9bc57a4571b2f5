//! Pages that end with a checksum.
//!
//! The checksum of a page depends on the place of the page and on the file. So damage, a torn write, a page at the place of another page,
//! and a page of an earlier file all show. An earlier version of the same page of the same file does not show.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use twox_hash::XxHash64;

/// Bytes of a page. A process that is killed has written all of a page or nothing.
pub(super) const PAGE: usize = 4096;

/// Bytes of a page before its checksum.
pub(super) const BODY: usize = PAGE - 8;

/// Start value of the checksums of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal(u64);

impl Seal {
    /// Seal of the beginning of a file.
    pub const HEADER: Seal = Seal(0);

    /// Seal of the other pages of a file of this name.
    pub fn of(name: &str) -> Seal {
        Seal(XxHash64::oneshot(1, name.as_bytes()))
    }

    /// Seal of a part of the file with a name of its own.
    pub fn and(self, name: &str) -> Seal {
        Seal(XxHash64::oneshot(self.0, name.as_bytes()))
    }

    /// The checksum of some bytes that begin at a byte of the file.
    pub fn check(self, at: u64, bytes: &[u8]) -> u64 {
        XxHash64::oneshot(self.0.wrapping_add(at), bytes)
    }

    /// Writes the checksum into the last eight bytes of a page that begins at a byte of the file.
    pub fn close(self, at: u64, page: &mut [u8]) {
        let (body, check) = page.split_at_mut(page.len() - 8);
        check.copy_from_slice(&self.check(at, body).to_le_bytes());
    }

    /// Returns true if the checksum of a page fits.
    pub fn fits(self, at: u64, page: &[u8]) -> bool {
        let (body, check) = page.split_at(page.len() - 8);
        check == self.check(at, body).to_le_bytes()
    }

    /// Reads a page; `None` if its checksum does not fit, or the file ends before the page does.
    pub fn read(self, file: &File, at: u64) -> io::Result<Option<[u8; PAGE]>> {
        let mut page = [0; PAGE];
        match file.read_exact_at(&mut page, at) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok(self.fits(at, &page).then_some(page))
    }
}

/// Lines of a text whose checksums fit, with these checksums, and the number of the other lines. An incomplete line at the end counts as
/// neither.
pub(super) fn whole_lines(text: &[u8], from: u64, seal: Seal) -> (String, u64) {
    let (mut lines, mut bad, mut at) = (String::new(), 0, from);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let here = at;
        at += line.len() as u64;
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        match std::str::from_utf8(line)
            .ok()
            .filter(|line| is_whole(line, here, seal))
        {
            Some(line) => {
                lines.push_str(line);
                lines.push('\n');
            }
            None => bad += 1,
        }
    }
    (lines, bad)
}

fn is_whole(line: &str, at: u64, seal: Seal) -> bool {
    let parts = line.rsplit_once(' ');
    parts.is_some_and(|(text, check)| format!("{:016x}", seal.check(at, text.as_bytes())) == check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_only_where_it_was_written_and_as_it_was() {
        let seal = Seal::of("one");
        let mut page = [7; PAGE];
        seal.close(4096, &mut page);
        assert!(seal.fits(4096, &page));
        assert!(!seal.fits(8192, &page) && !Seal::of("other").fits(4096, &page));
        assert!(!seal.and("later").fits(4096, &page));
        for at in [0, 100, BODY, PAGE - 1] {
            let mut damaged = page;
            damaged[at] ^= 1;
            assert!(!seal.fits(4096, &damaged), "{at}");
        }
        assert!(!seal.fits(0, &[0; PAGE]));
    }
}
