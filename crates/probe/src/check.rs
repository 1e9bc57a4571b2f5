//! Comparison of a disk with a model: the same jobs on both, and a score for each job.
//!
//! A job is a list of reads with a fixed number of commands in the drive. The disk and the model get the same reads in the same order. The
//! rotation phase of a single read is unknown, so distributions are compared: sorted response times, paired by rank. The root mean square of
//! the differences is the *demerit* (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer, March 1994).
//!
//! Each job depends on few keys of a profile. A job that differs names these keys.

use crate::extract::turns::quantile;
use crate::random::Random;
use crate::{Probe, ProbeError};
use headtime_disk::validate::{demerit_ms, mean_ms};
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Nanos, Sectors};

/// Reads on a disk and on its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in the scorecard.
    pub name: &'static str,
    /// Keys of a profile on which the response times depend most.
    pub keys: &'static str,
    /// Commands in the drive at once, at least 1.
    pub depth: u16,
    /// Extents in the order in which they are read.
    pub reads: Vec<Extent>,
}

/// Properties that disk and model share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Sectors that both have.
    pub capacity: Sectors,
    pub sector_bytes: u32,
    /// Multiple of the sector size at which reads begin and end.
    pub aligned_bytes: u32,
    /// Most commands in the drive at once that both take.
    pub depth: u16,
}

/// Places of a job's reads.
#[derive(Clone, Copy)]
enum Places {
    /// Anywhere in the first part of the disk, in thousandths.
    Random(u64),
    /// One read behind the other, from a place of the disk in thousandths.
    InOrder(u64),
    /// Each read ends where the read before began.
    Backward,
    /// Gaps of three reads between two reads.
    Strided,
    /// Two sequential readers in turn, half a disk apart.
    TwoReaders,
    /// Places within 8 MiB, so that many are read again.
    Again,
}

struct Sort {
    name: &'static str,
    keys: &'static str,
    bytes: Bytes,
    depth: u16,
    places: Places,
}

/// Space in which [`Places::Again`] reads.
const AGAIN_BYTES: Bytes = Bytes(8 << 20);
/// Time that a host adds to a response time, in ms. A shorter difference counts as none, so jobs do not show errors of the overheads. NBD over
/// a unix socket takes 0.03 to 0.05 ms on two virtual processors.
const HOST_MS: f64 = 0.06;
/// Consecutive reads of a batch. Response times of neighbours depend on each other, and means of batches hardly do.
const BATCH_READS: usize = 10;
/// Largest difference of means, relative to the disk's, that chance explains.
const CHANCE_MAX: f64 = 0.3;
/// Smallest disk: each job has room.
const CAPACITY_MIN: Bytes = Bytes(256 << 20);

const fn sort(
    name: &'static str,
    places: Places,
    kib: u64,
    depth: u16,
    keys: &'static str,
) -> Sort {
    Sort {
        name,
        keys,
        bytes: Bytes(kib << 10),
        depth,
        places,
    }
}

const SORTS: [Sort; 12] = [
    sort("random 4 KiB", Places::Random(1000), 4, 1, "seek, rotation"),
    sort(
        "random 4 KiB in the first hundredth",
        Places::Random(10),
        4,
        1,
        "seek (short), rotation",
    ),
    sort(
        "random 1 MiB",
        Places::Random(1000),
        1024,
        1,
        "layout.zones, seek, access",
    ),
    sort(
        "random 4 KiB, 4 in the drive",
        Places::Random(1000),
        4,
        4,
        "queue",
    ),
    sort(
        "random 4 KiB, 32 in the drive",
        Places::Random(1000),
        4,
        32,
        "queue",
    ),
    sort(
        "sequential 128 KiB at the beginning",
        Places::InOrder(0),
        128,
        1,
        "layout.zones, cache, bus",
    ),
    sort(
        "sequential 128 KiB near the end",
        Places::InOrder(950),
        128,
        1,
        "layout.zones, cache, bus",
    ),
    sort("sequential 4 KiB", Places::InOrder(300), 4, 1, "cache, bus"),
    sort(
        "backward 64 KiB",
        Places::Backward,
        64,
        1,
        "rotation, access, cache",
    ),
    sort(
        "every fourth 64 KiB",
        Places::Strided,
        64,
        1,
        "cache, rotation",
    ),
    sort(
        "two sequential readers, 64 KiB",
        Places::TwoReaders,
        64,
        1,
        "cache, seek",
    ),
    sort("4 KiB within 8 MiB", Places::Again, 4, 1, "cache"),
];

/// Reason why there are no jobs for a disk and a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Reads of one cannot be reads of the other.
    #[error(
        "the disk has sectors of {disk} bytes and the model of {model}; take a profile with {disk}"
    )]
    SectorBytes { disk: u32, model: u32 },
    /// The jobs need more room.
    #[error("{name} has {bytes} bytes, which are too few for the jobs: they need {CAPACITY_MIN}")]
    TooSmall { name: String, bytes: u64 },
}

/// Returns the common properties of a disk and a model.
///
/// # Errors
///
/// If the sizes of their sectors differ, or if the smaller has less than 256 MiB.
pub fn common(disk: &dyn Probe, model: &dyn Probe) -> Result<Common, CheckError> {
    let sector_bytes = disk.sector_bytes();
    if model.sector_bytes() != sector_bytes {
        return Err(CheckError::SectorBytes {
            disk: sector_bytes,
            model: model.sector_bytes(),
        });
    }
    for side in [disk, model] {
        let bytes = side.capacity().bytes(sector_bytes);
        if bytes < CAPACITY_MIN.0 {
            let name = side.name();
            return Err(CheckError::TooSmall { name, bytes });
        }
    }
    let capacity = disk.capacity().min(model.capacity());
    Ok(Common {
        capacity,
        sector_bytes,
        aligned_bytes: disk.physical_bytes().max(4096),
        depth: disk.depth().min(model.depth()),
    })
}

/// Returns the jobs, each with `reads` reads. Equal arguments give equal jobs. Jobs for a deeper queue than both sides have are left out.
///
/// # Panics
///
/// If `reads` is zero.
pub fn jobs(common: &Common, reads: u32, seed: u64) -> Vec<Job> {
    assert!(reads > 0, "jobs without reads");
    let sorts = SORTS.iter().filter(|sort| sort.depth <= common.depth);
    let random = &mut Random::new(seed);
    sorts
        .map(|sort| Job {
            name: sort.name,
            keys: sort.keys,
            depth: sort.depth,
            reads: common.places(sort, reads, random),
        })
        .collect()
}

impl Common {
    fn places(&self, sort: &Sort, reads: u32, random: &mut Random) -> Vec<Extent> {
        let sectors = |bytes: u64| bytes.div_ceil(u64::from(self.sector_bytes));
        let unit = sectors(u64::from(self.aligned_bytes));
        let len = sectors(sort.bytes.0).next_multiple_of(unit);
        // Blocks of the size of a read.
        let blocks = self.capacity.get() / len;
        let part = |thousandths: u64| (u128::from(blocks) * u128::from(thousandths) / 1000) as u64;
        let wrapped = |block: u64| block % blocks;
        let read = |block: u64| Extent::at(block * len, len);
        (0..u64::from(reads))
            .map(|number| {
                read(match sort.places {
                    Places::Random(thousandths) => random.up_to(part(thousandths).max(1) - 1),
                    Places::InOrder(thousandths) => wrapped(part(thousandths) + number),
                    Places::Backward => wrapped(part(500) + u64::from(reads) - number),
                    Places::Strided => wrapped(part(400) + 4 * number),
                    Places::TwoReaders => wrapped(part(200 + 500 * (number % 2)) + number / 2),
                    Places::Again => {
                        let within = (sectors(AGAIN_BYTES.0) / len).max(1);
                        wrapped(part(600) + random.up_to(within - 1))
                    }
                })
            })
            .collect()
    }
}

/// Runs a job. Returns the response times in the order of the answers, and calls `answered` after each.
///
/// # Errors
///
/// If a read fails.
pub fn run(
    probe: &mut dyn Probe,
    job: &Job,
    answered: &mut dyn FnMut(),
) -> Result<Vec<Nanos>, ProbeError> {
    let depth = usize::from(job.depth).min(job.reads.len());
    let (first, rest) = job.reads.split_at(depth);
    let mut in_drive = first.to_vec();
    let mut rest = rest.iter();
    let mut times = Vec::with_capacity(job.reads.len());
    for (tag, extent) in first.iter().enumerate() {
        probe.send(tag as u16, Op::Read, *extent)?;
    }
    while times.len() < job.reads.len() {
        let answer = probe.answer()?;
        let extent = &mut in_drive[usize::from(answer.tag)];
        if let Some(source) = answer.failure {
            return Err(ProbeError::Failed {
                op: Op::Read,
                extent: *extent,
                source,
            });
        }
        times.push(answer.at - answer.sent);
        answered();
        if let Some(next) = rest.next() {
            *extent = *next;
            probe.send(answer.tag, Op::Read, *next)?;
        }
    }
    Ok(times)
}

/// Response times of a job, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    pub p50: f64,
    pub p99: f64,
}

impl Times {
    fn of(times: &[Nanos]) -> Times {
        let mean = mean_ms(times);
        let batches = times.chunks_exact(BATCH_READS).map(mean_ms);
        let squares = batches.map(|batch| (batch - mean) * (batch - mean));
        let count = (times.len() / BATCH_READS) as f64;
        let free = (count - 1.0).max(1.0);
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_millis_f64()).collect();
        Times {
            mean,
            error: libm::sqrt(squares.sum::<f64>() / free / count.max(1.0)),
            p50: quantile(&mut ms, 0.5),
            p99: quantile(&mut ms, 0.99),
        }
    }
}

/// Agreement of a model with a disk in a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    pub disk: Times,
    pub model: Times,
    /// Root mean square distance of both distributions, in ms.
    pub demerit_ms: f64,
}

/// Verdict on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The means differ by at most 5 % or by chance (up to 30 %), and the medians by at most 10 %.
    Agrees,
    /// The means differ by at most 15 % or by chance (up to 30 %), and the medians by at most 30 %.
    Near,
    Differs,
}

impl Score {
    /// Compares response times of a disk and of a model.
    ///
    /// # Panics
    ///
    /// If the numbers of response times differ, or are zero.
    pub fn of(disk: &[Nanos], model: &[Nanos]) -> Score {
        Score {
            disk: Times::of(disk),
            model: Times::of(model),
            demerit_ms: demerit_ms(disk, model),
        }
    }

    /// Mean of the model over the mean of the disk.
    pub fn ratio(&self) -> f64 {
        self.model.mean / self.disk.mean.max(1e-6)
    }

    pub fn agreement(&self) -> Agreement {
        let off = |disk: f64, model: f64| match (model - disk).abs() {
            time if time <= HOST_MS => 0.0,
            time => time / disk.max(1e-6),
        };
        let mean = off(self.disk.mean, self.model.mean);
        let median = off(self.disk.p50, self.model.p50);
        // Few reads that wait for a turn make most of some means.
        let error = libm::hypot(self.disk.error, self.model.error);
        let chance = (3.0 * error / self.disk.mean.max(1e-6)).min(CHANCE_MAX);
        let within =
            |mean_max: f64, median_max: f64| mean <= mean_max.max(chance) && median <= median_max;
        match () {
            () if within(0.05, 0.1) => Agreement::Agrees,
            () if within(0.15, 0.3) => Agreement::Near,
            () => Agreement::Differs,
        }
    }
}

#[cfg(test)]
mod tests;
