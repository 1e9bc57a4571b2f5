//! Iozone in automatic mode: files of many sizes, in records of many sizes.

use super::passes::{Pass, Passes, Way, Work};
use super::site::{BenchmarkError, Site, add_process, beside, scaled};
use crate::spec::PAGE;
use crate::{FileId, HostBuilder};
use headtime_units::Bytes;
use headtime_workload::Random;
use std::sync::Arc;

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 68;

/// `iozone`: instances of `iozone -a`, each with a file of its own that is made anew for each size of file and record.
///
/// File sizes double from `file_low` to `file_high`, and record sizes double from `record_low` to `record_high`. No
/// record is larger than the file. For each pair of sizes, the program writes the file, writes it again, and reads it
/// twice. The program then reads and writes records at random, and reads the file backwards. Next, the program writes
/// the first record as often as there are records, and reads in strides of 17 records. At last, the program writes the
/// file twice and reads it twice through the C library, and deletes the file. Each test that writes ends with `fsync`.
///
/// Rests on: Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler (ACM TOS 6(1), 2010), Table VI: automatic mode, default
/// parameters. Section 5.1 says "varying the size from 64KB to 512KB". The program's own default goes to 512 MB. The
/// default here follows the paper. The tests, and records from 4 KiB to 16 MiB, are from the manual of Iozone 3. The
/// order is from the columns of the program's reports. `fsync` and `crossover` are from memory of the source. Trust:
/// high for the tests, moderate for their order and `fsync`, low for the largest size and for the place of the file,
/// which lies in one piece. Open: the number of instances.
///
/// Random records are drawn anew in each pass.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct IozoneSpec {
    /// Instances, each a program of one process; 1 to 4096, default 1.
    pub instances: u32,
    /// Bytes of the smallest file; default 64 KiB. At least a page.
    pub file_low: Bytes,
    /// Largest size of a file; default 512 KiB, at most 1 TiB. At least `file_low`.
    pub file_high: Bytes,
    /// Bytes of the smallest record; default 4 KiB. At least 512 bytes.
    pub record_low: Bytes,
    /// Largest size of a record; default 16 MiB, at most 1 GiB. At least `record_low`.
    pub record_high: Bytes,
    /// Size of a file above which records below 64 KiB are left out; default 16 MiB.
    pub crossover: Bytes,
    /// Bytes from the end of the largest file of an instance to the beginning of the next instance's file; default 0.
    pub gap: Bytes,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// Factor for `file_high`, more than 0 to 1; default 1. The size `file_low` is done in any case.
    pub scale: f64,
}

impl Default for IozoneSpec {
    fn default() -> IozoneSpec {
        IozoneSpec {
            instances: 1,
            file_low: Bytes(64 << 10),
            file_high: Bytes(512 << 10),
            record_low: Bytes(4096),
            record_high: Bytes(16 << 20),
            crossover: Bytes(16 << 20),
            gap: Bytes(0),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

/// The smallest record in files above the crossover.
const LARGE_RECORD: u64 = 64 << 10;

/// Records from one call to the next in the strided test.
const STRIDE: u64 = 17;

/// Bytes of a call of the C library's stream.
const STREAM_BYTES: u64 = 4096;

impl IozoneSpec {
    /// Adds the files and processes to a host; programs are numbered from `program` on. Returns the number behind the
    /// last program. The seed fixes the random records.
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
        let site = Site::new("iozone", builder.disk());
        self.check(site)?;
        site.check_processes(builder, "instances", self.instances, 1)?;
        let high = Bytes(scaled(self.file_high, self.scale)).max(self.file_low);
        let sizes: Vec<(u64, u64)> = doubled(self.file_low, high)
            .flat_map(|size| {
                let records = doubled(self.record_low, self.record_high);
                let large = size > self.crossover.0;
                let fitting = records
                    .take_while(move |record| *record <= size)
                    .filter(move |record| !large || *record >= LARGE_RECORD);
                fitting.map(move |record| (size, record))
            })
            .collect();
        for number in 0..self.instances {
            let place = beside(self.start, number, self.file_high.0, self.gap);
            let file = site.add_room(builder, place, self.file_high.0)?;
            let each = |&(size, record): &(u64, u64)| tests(file, size, record);
            let work: Vec<Work> = sizes.iter().flat_map(each).collect();
            // A pass takes more room than a call.
            let steps = 3 * work.len() as u64;
            site.check_plan(builder.room_to_plan(), steps)?;
            builder.planned += steps;
            let random = Random::keyed(seed, u64::from(program + number), PURPOSE);
            add_process(builder, program + number, Passes::new(work.into(), random));
        }
        Ok(program + self.instances)
    }

    fn check(&self, site: Site) -> Result<(), BenchmarkError> {
        site.check_count("instances", self.instances)?;
        let (low, high) = (self.file_low, self.file_high);
        let good = high.0 <= 1 << 40;
        site.check(good, "file_high", high, "at most 1TiB")?;
        let good = low.0 >= PAGE && low <= high;
        site.check(good, "file_low", low, "4KiB to file_high")?;
        let (low, high) = (self.record_low, self.record_high);
        site.check_call("record_high", high)?;
        let good = low.0 >= 512 && low <= high;
        site.check(good, "record_low", low, "512B to record_high")?;
        site.check_place(self.gap, self.start, self.scale)
    }
}

/// Sizes from the lower to the upper, each twice the one before.
fn doubled(low: Bytes, high: Bytes) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(low.0), |size| Some(size * 2))
        .take_while(move |size| *size <= high.0)
}

/// All tests with one size of the file and one size of the records.
fn tests(file: FileId, size: u64, record: u64) -> Vec<Work> {
    let files: Arc<[FileId]> = [file].into();
    let read = |call, way| Pass {
        way,
        ..Pass::reading(Arc::clone(&files), size, call)
    };
    let write = |call, way| Pass {
        reads: false,
        writes: 1.0,
        ..read(call, way)
    };
    let all = size.div_ceil(record);
    let stream = record.min(STREAM_BYTES);
    let ways = [
        write(record, Way::FORWARDS),
        write(record, Way::FORWARDS),
        read(record, Way::FORWARDS),
        read(record, Way::FORWARDS),
        read(record, Way::Random(all)),
        write(record, Way::Random(all)),
        read(record, Way::Backwards),
        write(record, Way::Same),
        read(record, Way::Strides(STRIDE)),
        write(stream, Way::FORWARDS),
        write(stream, Way::FORWARDS),
        read(stream, Way::FORWARDS),
        read(stream, Way::FORWARDS),
    ];
    let tests = ways.into_iter().flat_map(|pass| {
        let wrote = !pass.reads;
        let sync = wrote.then_some(Work::Sync(file));
        [Some(Work::Pass(pass)), sync].into_iter().flatten()
    });
    tests.chain([Work::Forget(file)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::workload::tests::{builder, steps};

    fn of(spec: &IozoneSpec) -> Vec<(u32, Vec<Step>)> {
        let mut builder = builder();
        let behind = 3 + spec.instances;
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(behind));
        steps(&mut builder)
    }

    fn small() -> IozoneSpec {
        IozoneSpec {
            file_high: Bytes(64 << 10),
            record_low: Bytes(32 << 10),
            ..IozoneSpec::default()
        }
    }

    #[test]
    fn the_tests_of_a_size_come_in_the_program_s_order() {
        let all = of(&small());
        let (file, len) = (FileId(0), 32 << 10);
        let half = |number: u64| number * len;
        let r = |number| Step::Read {
            file,
            offset: half(number),
            len,
        };
        let w = |number| Step::Write {
            file,
            offset: half(number),
            len,
        };
        let sync = Step::Sync(file);
        let steps = &all[0].1;
        assert_eq!(all.len(), 1);
        assert_eq!(
            steps[..10],
            [w(0), w(1), sync, w(0), w(1), sync, r(0), r(1), r(0), r(1)]
        );
        // Two reads and two writes at random.
        assert!(
            steps[10..12]
                .iter()
                .all(|step| *step == r(0) || *step == r(1))
        );
        assert!(
            steps[12..14]
                .iter()
                .all(|step| *step == w(0) || *step == w(1))
        );
        assert_eq!(steps[14..17], [sync, r(1), r(0)]);
        assert_eq!(steps[17..22], [w(0), w(0), sync, r(0), r(1)]);
        let stream = |number| Step::Write {
            file,
            offset: 4096 * number as u64,
            len: 4096,
        };
        assert_eq!(steps[22..24], [stream(0), stream(1)]);
        let forget = steps
            .iter()
            .position(|step| *step == Step::Forget(file))
            .unwrap();
        // Four passes of 16 calls through the C library. The two writing passes end with a sync.
        assert_eq!(forget, 22 + 4 * 16 + 2);
        // The whole file in one record is next, and nothing after it: no record is larger than the file.
        let len = 64 << 10;
        assert_eq!(
            steps[forget + 1],
            Step::Write {
                file,
                offset: 0,
                len
            }
        );
        let forgotten = steps.iter().filter(|step| **step == Step::Forget(file));
        assert_eq!(forgotten.count(), 2);
    }

    #[test]
    fn sizes_double_up_to_the_largest_and_scale_leaves_out_large_ones() {
        let sizes = |spec: &IozoneSpec| -> Vec<u64> {
            let (mut sizes, mut end) = (Vec::new(), 0);
            for step in &of(spec)[0].1 {
                match step {
                    Step::Write { offset, len, .. } => end = end.max(offset + len),
                    Step::Forget(_) => sizes.push(std::mem::take(&mut end) >> 10),
                    _ => {}
                }
            }
            sizes.dedup();
            sizes
        };
        let all = IozoneSpec::default();
        assert_eq!(sizes(&all), [64, 128, 256, 512]);
        let scaled = |scale| IozoneSpec {
            scale,
            ..all.clone()
        };
        assert_eq!(sizes(&scaled(0.5)), [64, 128, 256]);
        assert_eq!(sizes(&scaled(0.01)), [64]);
    }

    #[test]
    fn files_above_the_crossover_have_no_small_records() {
        let spec = IozoneSpec {
            file_high: Bytes(128 << 10),
            crossover: Bytes(64 << 10),
            ..IozoneSpec::default()
        };
        let (mut records, mut first) = (Vec::new(), true);
        for step in &of(&spec)[0].1 {
            if let (Step::Write { len, .. }, true) = (step, first) {
                records.push(len >> 10);
            }
            first = matches!(step, Step::Forget(_));
        }
        assert_eq!(records, [4, 8, 16, 32, 64, 64, 128]);
    }

    #[test]
    fn instances_have_files_side_by_side() {
        let spec = IozoneSpec {
            instances: 2,
            gap: Bytes(1 << 20),
            ..small()
        };
        let mut builder = builder();
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(5));
        let starts = builder
            .files
            .iter()
            .map(|file| file.extents[0].start.get() / 8);
        assert_eq!(starts.collect::<Vec<_>>(), [0, 16 + 256]);
        assert_eq!(steps(&mut builder)[1].0, 4);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut IozoneSpec)| {
            let mut spec = IozoneSpec::default();
            change(&mut spec);
            spec.add(&mut builder(), 1, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.file_low = Bytes(1 << 20)),
            "iozone: file_low is 1MiB; allowed is 4KiB to file_high"
        );
        assert_eq!(
            refused(|spec| spec.record_low = Bytes(1)),
            "iozone: record_low is 1B; allowed is 512B to record_high"
        );
        assert_eq!(
            refused(|spec| spec.file_high = Bytes(1 << 41)),
            "iozone: file_high is 2TiB; allowed is at most 1TiB"
        );
    }
}
