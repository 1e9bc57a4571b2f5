//! Bonnie++: a large file written, rewritten, read, and read at random.

use super::passes::{Pass, Passes, Way, Work};
use super::site::{BenchmarkError, Site, add_process, beside, pair, scaled, scaled_count, share};
use crate::HostBuilder;
use headtime_units::{Bytes, Nanos};
use headtime_workload::Random;
use std::sync::Arc;

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 67;

/// `bonnie`: instances of bonnie++, each with a file of its own.
///
/// An instance writes its file character by character, in calls of 4 KiB of the C library. The instance deletes the
/// file, and writes it again in calls of `chunk`. Then each chunk is read and written back. At last the file is read by
/// characters, and by chunks. Each test that writes ends with `fsync`. Then `seekers` processes read chunks at random,
/// and write every tenth back.
///
/// Rests on: Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler (ACM TOS 6(1), 2010), Table VI: N instances "with default
/// parameters". The order of the tests, chunks of 8 KiB, 8,000 seeks of 3 processes, and `fsync` when a file is closed
/// are from the source of bonnie++ 1.0x. In this source a file has twice the size of the memory, and the paper's
/// machine has 1 GB. Trust: high for the pattern, low for the processor's time and for the places of files. Each file
/// lies in one piece, with `gap` between files. Open: the number of instances in the figures.
///
/// Left out: the tests of small files, which create, look up and delete 16,384 empty files and so move only metadata.
/// Bonnie++ splits a file of more than 1 GB into several, which is left out too. Instances do not share processors.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct BonnieSpec {
    /// Instances (N), each a program; 1 to 4096, default 1.
    pub instances: u32,
    /// Bytes of each file; default 2 GiB.
    pub file: Bytes,
    /// Bytes of each call by chunks; default 8 KiB, at most 1 GiB.
    pub chunk: Bytes,
    /// Processes that seek; 1 to 4096, default 3.
    pub seekers: u32,
    /// Seeks of all these processes together; 1 to 16,777,216, default 8,000.
    pub seeks: u32,
    /// Processor time for each KiB that is written or read by characters; default 18 us (assumed: 57 MB/s).
    pub char_cpu: Nanos,
    /// Bytes from the end of a file to the beginning of the next; default 0.
    pub gap: Bytes,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// Factor for the size of each file and the number of seeks, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for BonnieSpec {
    fn default() -> BonnieSpec {
        BonnieSpec {
            instances: 1,
            file: Bytes(2 << 30),
            chunk: Bytes(8 << 10),
            seekers: 3,
            seeks: 8_000,
            char_cpu: Nanos::from_micros(18),
            gap: Bytes(0),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

/// Bytes of a call of the C library's stream.
const STREAM_BYTES: u64 = 4096;

/// Share of the seeks that write back the chunk that they read (`UpdateSeek`).
const UPDATED_SHARE: f64 = 0.1;

impl BonnieSpec {
    /// Adds the files and processes to a host; programs are numbered from `program` on. Returns the number behind the
    /// last program. The seed fixes the places of the seeks.
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
        let site = Site::new("bonnie", builder.disk());
        site.check_count("instances", self.instances)?;
        site.check_size("file", self.file)?;
        site.check_call("chunk", self.chunk)?;
        site.check_count("seekers", self.seekers)?;
        site.check_processes(builder, "seekers", self.instances, self.seekers + 1)?;
        let few = (1..=1 << 24).contains(&self.seeks);
        site.check(few, "seeks", self.seeks, "1 to 16777216")?;
        site.check_place(self.gap, self.start, self.scale)?;
        let size = scaled(self.file, self.scale);
        let seeks = scaled_count(self.seeks, self.scale);
        for number in 0..self.instances {
            let place = beside(self.start, number, self.file.0, self.gap);
            let file = site.add_room(builder, place, size)?;
            let chunks = Pass::reading([file].into(), size, self.chunk.0);
            let chars = Pass {
                call: STREAM_BYTES,
                kib_cpu: self.char_cpu,
                ..chunks.clone()
            };
            let written = |pass: &Pass| Pass {
                reads: false,
                writes: 1.0,
                ..pass.clone()
            };
            let rewritten = Pass {
                writes: 1.0,
                ..chunks.clone()
            };
            let meet = Work::Meet(builder.add_barrier(self.seekers + 1));
            let work: Arc<[Work]> = [
                Work::Pass(written(&chars)),
                Work::Sync(file),
                Work::Forget(file),
                Work::Pass(written(&chunks)),
                Work::Sync(file),
                Work::Pass(rewritten),
                Work::Sync(file),
                Work::Pass(chars),
                Work::Pass(chunks.clone()),
                meet.clone(),
            ]
            .into();
            for process in 0..=self.seekers {
                let own = pair(program + number, process);
                let work = match process.checked_sub(1) {
                    None => Arc::clone(&work),
                    Some(seeker) => {
                        let opened = site.reopen(builder, file)?;
                        let share = share(seeks, self.seekers, seeker);
                        let seek = Pass {
                            files: [opened].into(),
                            way: Way::Random(u64::from(share)),
                            writes: UPDATED_SHARE,
                            ..chunks.clone()
                        };
                        [meet.clone(), Work::Pass(seek), Work::Sync(opened)].into()
                    }
                };
                let passes = Passes::new(work, Random::keyed(seed, own, PURPOSE));
                add_process(builder, program + number, passes);
            }
        }
        Ok(program + self.instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{builder, steps};
    use crate::{BarrierId, FileId, Step};

    /// A file of 80 KiB in 10 chunks.
    fn small() -> BonnieSpec {
        BonnieSpec {
            file: Bytes(80 << 10),
            seeks: 1_000,
            ..BonnieSpec::default()
        }
    }

    #[test]
    fn an_instance_writes_rewrites_and_reads_and_then_its_seekers_seek() {
        let spec = BonnieSpec {
            instances: 2,
            ..small()
        };
        let mut builder = builder();
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(5));
        assert_eq!(builder.barriers, [4, 4]);
        let all = steps(&mut builder);
        let programs = all.iter().map(|(program, _)| *program);
        assert_eq!(programs.collect::<Vec<_>>(), [3, 3, 3, 3, 4, 4, 4, 4]);
        let (file, steps) = (FileId(0), &all[0].1);
        let write = |offset, len| Step::Write { file, offset, len };
        let read = |offset, len| Step::Read { file, offset, len };
        let think = Step::Think(Nanos::from_micros(72));
        // 20 calls by characters, each with time to work.
        assert_eq!(
            steps[..4],
            [write(0, 4096), think, write(4096, 4096), think]
        );
        assert_eq!(
            steps[40..44],
            [
                Step::Sync(file),
                Step::Forget(file),
                write(0, 8192),
                write(8192, 8192)
            ]
        );
        let rewrite = [
            Step::Sync(file),
            read(0, 8192),
            write(0, 8192),
            read(8192, 8192),
        ];
        assert_eq!(steps[52..56], rewrite);
        assert_eq!(steps[73..76], [Step::Sync(file), read(0, 4096), think]);
        assert_eq!(steps[114], read(0, 8192));
        let meet = Step::Barrier(BarrierId(0));
        assert_eq!((steps.len(), steps.last()), (125, Some(&meet)));
        let (mut reads, mut writes) = (0, 0);
        for (number, (_, steps)) in all[1..4].iter().enumerate() {
            assert_eq!(steps[0], meet);
            let own = FileId(1 + number as u32);
            assert_eq!(steps.last(), Some(&Step::Sync(own)));
            for step in &steps[1..steps.len() - 1] {
                match *step {
                    Step::Read { file, offset, len } => {
                        assert_eq!((file, offset % 8192, len), (own, 0, 8192));
                        reads += 1;
                    }
                    Step::Write { .. } => writes += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(reads, 1_000);
        // Five standard errors.
        assert!((53..147).contains(&writes), "{writes}");
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut BonnieSpec)| {
            let mut spec = small();
            change(&mut spec);
            spec.add(&mut builder(), 1, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.seekers = 0),
            "bonnie: seekers is 0; allowed is 1 to 4096"
        );
        assert_eq!(
            refused(|spec| spec.seeks = 0),
            "bonnie: seeks is 0; allowed is 1 to 16777216"
        );
        assert!(
            refused(|spec| spec.file = Bytes(1 << 40)).starts_with("bonnie: the data ends at byte")
        );
        assert_eq!(
            refused(|spec| (spec.instances, spec.seekers) = (4096, 4096)),
            "bonnie: seekers is 4097; allowed is at most 1000000 processes in all"
        );
    }
}
