//! A query of a decision-support benchmark.

use super::site::{BenchmarkError, Site, add_process, beside, scaled};
use crate::{Behaviour, FileId, HostBuilder, Step};
use headtime_units::{Bytes, Nanos};

/// Bytes of the files that PostgreSQL divides a table into.
const SEGMENT: u64 = 1 << 30;

/// `tpch-q19`: query 19 of TPC-H on PostgreSQL 8.3, at scale factor 1, several instances.
///
/// Query 19 joins `part` (200,000 rows) and `lineitem` (6,001,215 rows) under conditions that no index helps with.
/// PostgreSQL hashes the smaller table and then reads the larger one. Both are read from beginning to end, in pages of
/// 8 KiB, with `read()`.
///
/// Rests on: the paper for the instances, the scale factor, the versions (PostgreSQL 8.3.7, DBT-3 1.5) and the
/// distances, and the specification of TPC-H for the rows. The sizes are computed.
///
/// A row of `lineitem` has four integers, four floats, two short characters, three dates, 25 and 10 characters, and a
/// comment of 27. With one byte more for each text, these are 113 bytes. With a header of 24, rounded up to 8, and 4
/// for the pointer, a row has about 144 bytes. A page of 8,168 bytes has 56 rows, which makes 107,200 pages, 880 MB. A
/// row of `part` has about 164 bytes. A page has 49 rows, which makes 4,080 pages, 33 MB.
///
/// Trust: the sizes to a few percent, the plan moderate (assumed, not observed), the time for each page low (56 rows at
/// half a microsecond on a Core 2 Duo).
///
/// Left out: the rest of the database except for its room, other files of the server, and the time before the first
/// row. Sorting and hashing on disk are left out too, since the hash of `part` is small.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct TpcHSpec {
    /// Instances, each a program of one process with tables of its own; 1 to 4096, default 3.
    pub instances: u32,
    /// Bytes of the table that is hashed; default 33.4 MB.
    pub part: Bytes,
    /// Bytes of the table that is read after the hashing; default 878 MB.
    pub lineitem: Bytes,
    /// Bytes between the two tables, for the tables that were loaded between them; default 390 MB (`partsupp`,
    /// `customer`, `orders`; assumed).
    pub between: Bytes,
    /// Bytes of a page and of each call; default 8 KiB.
    pub page: Bytes,
    /// Processor time for each page of `part`; default 30 us.
    pub part_cpu: Nanos,
    /// Processor time for each page of `lineitem`; default 28 us. A longer time makes the query less bound to the disk.
    pub lineitem_cpu: Nanos,
    /// Bytes from the end of an instance's tables to the beginning of the next; default 50 GB.
    pub gap: Bytes,
    /// Place of the first table on the disk; default 0.
    pub start: Bytes,
    /// Factor for the size of each table, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for TpcHSpec {
    fn default() -> TpcHSpec {
        TpcHSpec {
            instances: 3,
            part: Bytes(33_400_000),
            lineitem: Bytes(878_000_000),
            between: Bytes(390_000_000),
            page: Bytes(8192),
            part_cpu: Nanos::from_micros(30),
            lineitem_cpu: Nanos::from_micros(28),
            gap: Bytes(50_000_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl TpcHSpec {
    /// Adds the tables and processes to a host; programs are numbered from `program` on. Returns the number behind the
    /// last program.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the tables do not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("tpch-q19", builder.disk());
        site.check_count("instances", self.instances)?;
        site.check_size("part", self.part)?;
        site.check_size("lineitem", self.lineitem)?;
        site.check_distance("between", self.between)?;
        site.check_call("page", self.page)?;
        site.check_place(self.gap, self.start, self.scale)?;
        let whole = self.part.0 + self.between.0 + self.lineitem.0;
        for number in 0..self.instances {
            let part = beside(self.start, number, whole, self.gap);
            let lineitem = part + self.part.0 + self.between.0;
            let mut scans = Vec::new();
            for (place, size, cpu) in [
                (part, self.part, self.part_cpu),
                (lineitem, self.lineitem, self.lineitem_cpu),
            ] {
                let size = scaled(size, self.scale).div_ceil(self.page.0) * self.page.0;
                for offset in (0..size).step_by(SEGMENT as usize) {
                    let size = (size - offset).min(SEGMENT);
                    let file = site.add_file(builder, place + offset, size)?;
                    scans.push((file, size, cpu));
                }
            }
            let scans = TableScans::new(scans, self.page.0);
            add_process(builder, program + number, scans);
        }
        Ok(program + self.instances)
    }
}

/// Reads files one after the other, page by page, and works on each page.
struct TableScans {
    scans: Vec<(FileId, u64, Nanos)>,
    page: u64,
    at: usize,
    offset: u64,
    /// Work on the page that was just read.
    work: Nanos,
}

impl TableScans {
    fn new(scans: Vec<(FileId, u64, Nanos)>, page: u64) -> TableScans {
        TableScans {
            scans,
            page,
            at: 0,
            offset: 0,
            work: Nanos::ZERO,
        }
    }
}

impl Behaviour for TableScans {
    fn next(&mut self) -> Step {
        if !self.work.is_zero() {
            return Step::Think(std::mem::replace(&mut self.work, Nanos::ZERO));
        }
        let Some(&(file, size, cpu)) = self.scans.get(self.at) else {
            return Step::Exit;
        };
        let offset = self.offset;
        let len = self.page.min(size - offset);
        self.work = cpu;
        self.offset += len;
        if self.offset >= size {
            self.at += 1;
            self.offset = 0;
        }
        Step::Read { file, offset, len }
    }
}
