//! A reader in the background.

use super::site::{BenchmarkError, Site};
use crate::{Behaviour, FileId, HostBuilder, ProcessSpec, Step};
use headtime_units::{Bytes, Time};

/// `backup`: one process reads a file in sequence, again and again, until all other programs have ended.
///
/// The process drops the file from memory before each pass but the first.
///
/// Rests on: the U-Shape paper (SC 2011), which runs "a background program performing data backup" that has no goal
/// (section 4.3). Size and calls are choices.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct BackupSpec {
    /// Bytes of the file; default 100 GiB.
    pub size: Bytes,
    /// Bytes of each call; default 256 KiB.
    pub read: Bytes,
    /// Place of the file on the disk; default 0.
    pub start: Bytes,
}

impl Default for BackupSpec {
    fn default() -> BackupSpec {
        BackupSpec {
            size: Bytes(100 << 30),
            read: Bytes(256 << 10),
            start: Bytes(0),
        }
    }
}

impl BackupSpec {
    /// Adds the file and process to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the file does not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("backup", builder.disk());
        site.check_size("size", self.size)?;
        site.check_call("read", self.read)?;
        site.check_distance("start", self.start)?;
        let file = site.add_file(builder, self.start.0, self.size.0)?;
        builder.add_background(ProcessSpec {
            program,
            behaviour: Box::new(Again {
                file,
                size: self.size.0,
                read: self.read.0,
                offset: 0,
            }),
            served_by: None,
            start: Time::ZERO,
        });
        Ok(program + 1)
    }
}

/// Reads a file again and again.
struct Again {
    file: FileId,
    size: u64,
    read: u64,
    offset: u64,
}

impl Behaviour for Again {
    fn next(&mut self) -> Step {
        let (file, offset) = (self.file, self.offset);
        if offset >= self.size {
            self.offset = 0;
            return Step::Forget(file);
        }
        let len = self.read.min(self.size - offset);
        self.offset += len;
        Step::Read { file, offset, len }
    }
}
