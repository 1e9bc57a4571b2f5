//! Options of a scrub, and reasons for a refusal.

use super::blocks::Keeps;
use super::byte_range::ByteRange;
use super::identity::{Identity, ProgressError};
use super::progress::ScrubPlan;
use super::promises::Promises;
use headtime_linux::clock::Wall;
use headtime_units::{Bytes, Extent, Lba, MorePercent, Nanos, Sectors};
use std::io;
use std::path::PathBuf;

/// Options of a scrub. An option without a value has its default, or the value of the unfinished scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubAsk {
    /// First byte, and byte behind the last; the whole disk if `None`.
    pub range: Option<(u64, u64)>,
    /// Bytes of a block.
    pub block: Option<u64>,
    /// Time without requests after which idle time is used; `Some(None)` if it is not used.
    pub idle: Option<Option<Nanos>>,
    /// File for the hashes of blocks.
    pub hash: Option<PathBuf>,
    /// File for the image of the disk.
    pub copy: Option<PathBuf>,
    /// Time within which the scrub is to be done, from the first request on; `Some(None)` if there is no date.
    pub finish_within: Option<Option<Nanos>>,
    /// Largest allowed increase of the 99th percentile of the clients' latencies; `Some(None)` if there is no bound.
    pub p99: Option<Option<MorePercent>>,
}

/// Reason why a request to a scrub is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// An option has an invalid value.
    #[error("{key}: {problem}")]
    Value {
        /// The option.
        key: &'static str,
        /// The problem, and the allowed values.
        problem: String,
    },
    /// The unfinished scrub has other options.
    #[error(
        "an unfinished scrub has another {what}, {is}; go on with it by giving no options, or stop it before another one begins"
    )]
    Unfinished {
        /// The option that differs.
        what: &'static str,
        /// The option's value in the unfinished scrub.
        is: String,
    },
    /// The scrub cannot continue, for the same reason as before.
    #[error("the scrub is held up: {0}")]
    Held(String),
    /// There is no scrub to control.
    #[error("no scrub is under way")]
    None,
    /// The scrub is suspended and has lost its results.
    #[error("the scrub is held and reads nothing; `resume` begins it anew, and `stop` gives it up")]
    OnlyAnew,
    /// The scrub could read nothing: idle time is off, and gaps cannot be used.
    #[error("--idle off leaves nothing to read in: gaps are {0}")]
    NothingToReadIn(&'static str),
    /// Without a directory for scrubs, writes since a hash or copy could not be recorded.
    #[error(
        "--{0} takes scrub = \"DIRECTORY\" in the configuration of the disk, where it is kept what was written to"
    )]
    NotKept(&'static str),
    /// The drive has not answered a read of the scrub yet.
    #[error("a read of the scrub is still under way; try again when it has ended")]
    UnderWay,
    /// A disk of several members.
    #[error(
        "neither an array nor its disks can be scrubbed while the array is served; serve each disk by itself, read-only, and scrub that"
    )]
    Volume,
    /// A file of the scrub cannot be used.
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// The machine refuses to start a thread.
    #[error("{0}")]
    Machine(#[from] io::Error),
}

impl ScrubError {
    /// Error for an invalid option.
    pub(super) fn value((key, problem): (&'static str, String)) -> ScrubError {
        ScrubError::Value { key, problem }
    }
}

/// Most blocks of a disk. The state of this number of blocks and of the tracks takes less than 64 MB. The default block is the smallest
/// that this limit allows, since more small blocks pass whole in gaps.
const BLOCKS_MAX: u64 = 80_000_000;
const BLOCK_MIN: u64 = 8 << 10;

/// Largest block.
const BLOCK_MAX: u64 = 8 << 20;

/// Most bytes of a read. In idle time a read is at most a block, and in a gap less than the sectors of a turn.
pub const READ_BYTES_MAX: u64 = BLOCK_MAX;

impl ScrubAsk {
    /// Checks the options and returns the plan of a scrub of this disk.
    pub(super) fn plan(&self, disk: &Identity) -> Result<ScrubPlan, ScrubError> {
        let sector = u64::from(disk.sector_bytes);
        let capacity = disk.bytes();
        let block = match self.block {
            None => usual_block(capacity).max(sector),
            Some(block) if block.is_power_of_two() && (sector..=BLOCK_MAX).contains(&block) => {
                if capacity.div_ceil(block) > BLOCKS_MAX {
                    return Err(ScrubError::Value {
                        key: "block",
                        problem: format!(
                            "{}: of so many blocks too much would have to be known; of this disk {} are the least",
                            Bytes(block),
                            Bytes(usual_block(capacity))
                        ),
                    });
                }
                block
            }
            Some(block) => {
                return Err(ScrubError::Value {
                    key: "block",
                    problem: format!(
                        "{}: allowed are powers of two from a sector's {} to {}",
                        Bytes(block),
                        Bytes(sector),
                        Bytes(BLOCK_MAX)
                    ),
                });
            }
        };
        let (start, end) = self.range.unwrap_or((0, capacity));
        if start >= end || end > capacity {
            return Err(ScrubError::Value {
                key: "range",
                problem: format!(
                    "{}..{}: allowed is a part of the disk's 0..{}, not an empty one",
                    Bytes(start),
                    Bytes(end),
                    Bytes(capacity)
                ),
            });
        }
        let part = ByteRange { start, end };
        // The scrub reads whole blocks.
        let start = start / block * block;
        let end = end.next_multiple_of(block).min(capacity);
        let promises = self.promises(Promises::default());
        let plan = ScrubPlan {
            identity: disk.clone(),
            range: Extent::new(
                Lba::new(start / sector),
                Sectors::new((end - start) / sector),
            ),
            part,
            block: Sectors::new(block / sector),
            idle: self.idle,
            keeps: self.keeps()?,
            promises,
        };
        promises
            .may_be_made(plan.idle())
            .map_err(ScrubError::value)?;
        Ok(plan)
    }

    /// Promises after this request.
    pub(super) fn promises(&self, before: Promises) -> Promises {
        before.asked(self.finish_within, self.p99, Wall::now())
    }

    /// Hashes or image to make, and the path.
    fn keeps(&self) -> Result<Option<(Keeps, PathBuf)>, ScrubError> {
        let refused = |problem: &str| ScrubError::Value {
            key: "copy",
            problem: problem.to_owned(),
        };
        match (&self.hash, &self.copy) {
            (Some(_), Some(_)) => Err(refused("one scrub hashes or copies, and not both")),
            (Some(path), None) => Ok(Some((Keeps::Hashes, path.clone()))),
            (None, Some(path)) => Ok(Some((Keeps::Image, path.clone()))),
            (None, None) => Ok(None),
        }
    }
}

/// Default bytes of a block of a disk with `capacity` bytes.
fn usual_block(capacity: u64) -> u64 {
    let mut block = BLOCK_MIN;
    while capacity.div_ceil(block) > BLOCKS_MAX {
        block *= 2;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_would_be_too_many_are_refused() {
        let disk = Identity {
            device: "null".to_owned(),
            capacity: Sectors::new(20_000_000_000_000 / 512),
            sector_bytes: 512,
        };
        let planned = |block| {
            let ask = ScrubAsk {
                block: Some(block),
                ..ScrubAsk::default()
            };
            ask.plan(&disk).map(|plan| plan.block.get() * 512)
        };
        assert_eq!(planned(256 << 10).ok(), Some(256 << 10));
        let error = planned(128 << 10).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("of this disk 256KiB are the least"),
            "{error}"
        );
        for block in [0, 3 << 10, 256] {
            let error = planned(block).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("powers of two"), "{error}");
        }
    }

    #[test]
    fn blocks_are_small_unless_there_would_be_too_many() {
        assert_eq!(usual_block(1 << 20), 8 << 10);
        assert_eq!(usual_block(600_000_000_000), 8 << 10);
        assert_eq!(usual_block(4_000_000_000_000), 64 << 10);
        assert_eq!(usual_block(20_000_000_000_000), 256 << 10);
    }
}
