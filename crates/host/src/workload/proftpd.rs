//! An FTP server that sends files to several clients.

use super::par_read::Sequential;
use super::site::{BenchmarkError, Site, add_process, beside, scaled};
use crate::HostBuilder;
use headtime_units::Bytes;

/// `proftpd`: a process for each client sends one file from beginning to end.
///
/// Rests on: the paper (section 3.4): four clients, 300 MB each, 20 GB between files. The server sends
/// the whole file by one `sendfile()` and gives the kernel no advice. The kernel moves at most 16 pages at
/// a time, and each such move is a call here. Trust: high for places and sizes. The network costs nothing.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct ProFtpdSpec {
    /// Clients, each with a file and a program number of its own; 1 to 4096, default 4.
    pub clients: u32,
    /// Bytes of each file; default 300 MB.
    pub file: Bytes,
    /// Bytes that the kernel moves at a time; default 64 KiB, at most 1 GiB.
    pub read: Bytes,
    /// Bytes from the end of a file to the beginning of the next; default 20 GB.
    pub gap: Bytes,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// Share of each file that is sent, more than 0 to 1, default 1. Distances stay.
    pub scale: f64,
}

impl Default for ProFtpdSpec {
    fn default() -> ProFtpdSpec {
        ProFtpdSpec {
            clients: 4,
            file: Bytes(300_000_000),
            read: Bytes(64 << 10),
            gap: Bytes(20_000_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl ProFtpdSpec {
    /// Adds the files and processes to a host; programs are numbered from `program` on. Returns the
    /// number behind the last.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the files do not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("proftpd", builder.disk());
        site.check_count("clients", self.clients)?;
        site.check_size("file", self.file)?;
        site.check_call("read", self.read)?;
        site.check_place(self.gap, self.start, self.scale)?;
        let size = scaled(self.file, self.scale);
        for number in 0..self.clients {
            let place = beside(self.start, number, self.file.0, self.gap);
            let file = site.add_file(builder, place, size)?;
            add_process(
                builder,
                program + number,
                Sequential::new(file, size, self.read.0),
            );
        }
        Ok(program + self.clients)
    }
}
