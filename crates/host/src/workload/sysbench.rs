//! The file test of SysBench.

use super::passes::{Pass, Passes, Way, Work};
use super::site::{BenchmarkError, Site, add_process, beside, pair, scaled, scaled_count, share};
use crate::spec::PAGE;
use crate::{FileId, HostBuilder};
use headtime_units::Bytes;
use headtime_workload::Random;
use std::sync::Arc;

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 66;

/// `sysbench`: threads that read many files of one size, in calls at random or one after the other.
///
/// Rests on: Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler (ACM TOS 6(1), 2010), section 6.1. The section names "random
/// read/sequential read" of sysbench and no numbers. The manual of SysBench 0.4 (test `fileio`) gives the defaults: one
/// thread, 128 files of 2 GiB in all, and calls of 16 KiB through the page cache. Random access makes 10,000 calls,
/// with all places equally likely. Sequential access reads all files, one after the other. Trust: high for the pattern
/// and the defaults, low for the places of the files, which lie side by side, each in one piece.
///
/// Left out: the tests that write, and their `fsync`. If several threads read in sequence, they take turns in a fixed
/// order. In SysBench, the thread that is ready first makes the next call.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct SysbenchSpec {
    /// Order of the calls; default random.
    pub access: Access,
    /// Threads of one program, which share the open files; 1 to 4096, default 1.
    pub threads: u32,
    /// Number of files; 1 to 4096, default 128.
    pub files: u32,
    /// Bytes of all files; default 2 GiB. At least a page for each.
    pub total: Bytes,
    /// Bytes of each call; default 16 KiB, at most 1 GiB.
    pub block: Bytes,
    /// Calls of all threads with random access; 1 to 16,777,216, default 10,000.
    pub requests: u32,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// Factor for the sizes of files and the number of calls, more than 0 to 1; default 1. Files are shorter, and begin
    /// at the same places.
    pub scale: f64,
}

/// Order of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Access {
    /// Each at a random place (`rndrd`).
    Random,
    /// From the beginning of the first file to the end of the last (`seqrd`).
    Sequential,
}

impl Default for SysbenchSpec {
    fn default() -> SysbenchSpec {
        SysbenchSpec {
            access: Access::Random,
            threads: 1,
            files: 128,
            total: Bytes(2 << 30),
            block: Bytes(16 << 10),
            requests: 10_000,
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl SysbenchSpec {
    /// Adds the files and threads to a host; the program's number is `program`. Returns the next number. The seed fixes
    /// the places of random calls.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the files do not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("sysbench", builder.disk());
        site.check_count("threads", self.threads)?;
        site.check_processes(builder, "threads", 1, self.threads)?;
        site.check_count("files", self.files)?;
        site.check_size("total", self.total)?;
        let each = self.total.0 / u64::from(self.files) / PAGE * PAGE;
        site.check(each > 0, "total", self.total, "at least 4KiB for each file")?;
        site.check_call("block", self.block)?;
        let few = (1..=1 << 24).contains(&self.requests);
        site.check(few, "requests", self.requests, "1 to 16777216")?;
        site.check_distance("start", self.start)?;
        site.check_scale(self.scale)?;
        let size = scaled(Bytes(each), self.scale);
        let mut files: Vec<FileId> = Vec::new();
        for number in 0..self.files {
            let place = beside(self.start, number, each, Bytes(0));
            files.push(site.add_file(builder, place, size)?);
        }
        let files: Arc<[FileId]> = files.into();
        let requests = scaled_count(self.requests, self.scale);
        for thread in 0..self.threads {
            let share = share(requests, self.threads, thread);
            let pass = Pass {
                way: match self.access {
                    Access::Random => Way::Random(u64::from(share)),
                    Access::Sequential => Way::Every {
                        first: u64::from(thread),
                        step: u64::from(self.threads),
                    },
                },
                ..Pass::reading(Arc::clone(&files), size, self.block.0)
            };
            let random = Random::keyed(seed, pair(program, thread), PURPOSE);
            add_process(
                builder,
                program,
                Passes::new([Work::Pass(pass)].into(), random),
            );
        }
        Ok(program + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::workload::tests::{builder, steps};

    /// The reads of all threads: file and offset.
    fn reads(spec: &SysbenchSpec) -> Vec<Vec<(u32, u64)>> {
        let mut builder = builder();
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(4));
        let read = |step: Step| match step {
            Step::Read { file, offset, len } => {
                assert_eq!(len, 16 << 10);
                (file.0, offset)
            }
            other => panic!("{other:?}"),
        };
        let all = steps(&mut builder).into_iter();
        all.map(|(program, steps)| {
            assert_eq!(program, 3);
            steps.into_iter().map(read).collect()
        })
        .collect()
    }

    #[test]
    fn random_calls_fall_on_all_files_alike() {
        let all = reads(&SysbenchSpec::default());
        assert_eq!((all.len(), all[0].len()), (1, 10_000));
        let mut often = [0_u64; 128];
        for (file, offset) in &all[0] {
            often[*file as usize] += 1;
            assert!(offset % (16 << 10) == 0 && offset + (16 << 10) <= 16 << 20);
        }
        // 78 each in the mean; five standard deviations.
        assert!(
            often.iter().all(|often| often.abs_diff(78) < 45),
            "{often:?}"
        );
    }

    #[test]
    fn threads_share_the_calls_and_the_files() {
        let spec = SysbenchSpec {
            threads: 3,
            requests: 10,
            ..SysbenchSpec::default()
        };
        let counts: Vec<usize> = reads(&spec).iter().map(Vec::len).collect();
        assert_eq!(counts, [4, 3, 3]);
        let spec = SysbenchSpec {
            access: Access::Sequential,
            threads: 2,
            files: 2,
            total: Bytes(96 << 10),
            ..SysbenchSpec::default()
        };
        let step = 16 << 10;
        let expected = [
            [(0, 0), (0, 2 * step), (1, step)],
            [(0, step), (1, 0), (1, 2 * step)],
        ];
        assert_eq!(reads(&spec), expected);
    }

    #[test]
    fn in_sequence_everything_is_read_once() {
        let spec = SysbenchSpec {
            access: Access::Sequential,
            ..SysbenchSpec::default()
        };
        let all = reads(&spec).remove(0);
        assert_eq!(all.len(), (2 << 30) / (16 << 10));
        assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut SysbenchSpec)| {
            let mut spec = SysbenchSpec::default();
            change(&mut spec);
            spec.add(&mut builder(), 1, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.total = Bytes(4096 * 127)),
            "sysbench: total is 508KiB; allowed is at least 4KiB for each file"
        );
        assert_eq!(
            refused(|spec| spec.requests = 0),
            "sysbench: requests is 0; allowed is 1 to 16777216"
        );
        assert_eq!(
            refused(|spec| spec.block = Bytes(0)),
            "sysbench: block is 0B; allowed is 1B to 1GiB"
        );
    }
}
