//! What a scrub is asked for, and why it is refused.

use super::blocks::Keeps;
use super::byte_range::ByteRange;
use super::identity::{Identity, ProgressError};
use super::progress::Plan;
use super::promises::Promises;
use crate::buffer::BUFFER_BYTES_MAX;
use headtime_linux::clock::Wall;
use headtime_units::{Bytes, Extent, Lba, MorePercent, Nanos, Sectors};
use std::io;
use std::path::PathBuf;

/// What is to be scrubbed, and how; what is not said is as usual, or as the unfinished scrub has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubAsk {
    /// The first byte and the one behind the last; the whole disk if `None`.
    pub range: Option<(u64, u64)>,
    /// Bytes of a block.
    pub block: Option<u64>,
    /// After how long without requests idle time is used; `Some(None)` if it is not.
    pub idle: Option<Option<Nanos>>,
    /// Where hashes of blocks are kept.
    pub hash: Option<PathBuf>,
    /// Where the disk is copied to.
    pub copy: Option<PathBuf>,
    /// After how long it is to be done, from when that was first said; `Some(None)` if there is no date.
    pub finish_within: Option<Option<Nanos>>,
    /// How much longer the 99th percentile of the clients' latencies may be; `Some(None)` if it may be any.
    pub p99: Option<Option<MorePercent>>,
}

/// Why a scrub does not do what it is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// What is asked cannot be.
    #[error("{key}: {problem}")]
    Value {
        /// The option.
        key: &'static str,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// There is an unfinished scrub that is another one.
    #[error(
        "an unfinished scrub has another {what}, {is}; go on with it by giving no options, or stop it before another one begins"
    )]
    Unfinished {
        /// In what it differs.
        what: &'static str,
        /// What that one has.
        is: String,
    },
    /// The scrub cannot go on for the same reason as before.
    #[error("the scrub is held up: {0}")]
    Held(String),
    /// There is nothing to be told.
    #[error("no scrub is under way")]
    None,
    /// It rests, and nothing of it would be gone on with.
    #[error("the scrub is held and reads nothing; `resume` begins it anew, and `stop` gives it up")]
    OnlyAnew,
    /// Nothing could be read: there is no idle time to be used, and gaps cannot be.
    #[error("--idle off leaves nothing to read in: gaps are {0}")]
    NothingToReadIn(&'static str),
    /// What was hashed or copied could not be told from what was written since.
    #[error(
        "--{0} takes scrub = \"DIRECTORY\" in the configuration of the disk, where it is kept what was written to"
    )]
    NotKept(&'static str),
    /// The drive has not answered yet.
    #[error("a read of the scrub is still under way; try again when it has ended")]
    UnderWay,
    /// A disk of several members.
    #[error(
        "neither an array nor its disks can be scrubbed while the array is served; serve each disk by itself, read-only, and scrub that"
    )]
    Volume,
    /// Its progress cannot be kept.
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// The machine refuses a thread.
    #[error("{0}")]
    Machine(#[from] io::Error),
}

impl ScrubError {
    /// What is wrong with an option.
    pub(super) fn value((key, problem): (&'static str, String)) -> ScrubError {
        ScrubError::Value { key, problem }
    }
}

/// Blocks of a disk, if nothing else is said: as small as possible, since small ones pass whole in more gaps, but no more than
/// this, for which all that is known of blocks and tracks takes less than 64 MB.
const BLOCKS_MAX: u64 = 80_000_000;
const BLOCK_MIN: u64 = 8 << 10;

/// The largest block that can be asked for.
const BLOCK_MAX: u64 = 8 << 20;

/// What one read asks for fits a buffer: a block in idle time, and in a gap less than a turn's sectors.
const _: () = assert!(BLOCK_MAX <= BUFFER_BYTES_MAX as u64);

impl ScrubAsk {
    /// What a scrub of a disk does that is asked for so.
    pub(super) fn plan(&self, disk: &Identity) -> Result<Plan, ScrubError> {
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
        // Whole blocks are read.
        let start = start / block * block;
        let end = end.next_multiple_of(block).min(capacity);
        let promises = self.promises(Promises::default());
        let plan = Plan {
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

    /// What is promised once this is asked for.
    pub(super) fn promises(&self, before: Promises) -> Promises {
        before.asked(self.finish_within, self.p99, Wall::now())
    }

    /// What is to be kept of blocks, and where.
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

/// Bytes of a block of a disk of so many bytes, if nothing else is said.
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
