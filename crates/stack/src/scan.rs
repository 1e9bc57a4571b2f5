//! A scan of a disk beside whoever asks for sectors.

use crate::Known;
use headtime_config::{sizes, whole};
use headtime_disk::Model;
use headtime_engine::{Freeblock, FreeblockOptions, Idle, Limits, Prefer};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A scan that reads in the gaps of what others ask for, as people write it: one key for each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanSpec {
    /// As [`FreeblockOptions::conservatism`].
    pub conservatism: Nanos,
    /// As [`FreeblockOptions::picks`].
    #[serde(deserialize_with = "whole::<_, _, 0, 1000>")]
    pub picks: u32,
    /// As [`FreeblockOptions::steps`]; any number of them without it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::<_, _, 1, STEPS_MAX>"
    )]
    pub steps: Option<u64>,
    /// As [`FreeblockOptions::limits`].
    #[serde(with = "LimitsWord")]
    pub limits: Limits,
    /// As [`FreeblockOptions::prefer`].
    #[serde(with = "PreferWord")]
    pub prefer: Prefer,
    /// As [`FreeblockOptions::block`]; a sector without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// What is read; the whole disk without it.
    #[serde(with = "sizes", skip_serializing_if = "Option::is_none")]
    pub range: Option<(Bytes, Bytes)>,
    /// As [`Idle::after`]; only in gaps without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<Nanos>,
    /// As [`Idle::piece`].
    pub idle_piece: Bytes,
    /// Whether the run ends when all has been read.
    pub to_end: bool,
}

/// Any whole number that TOML can hold.
const STEPS_MAX: u64 = i64::MAX as u64;

impl Default for ScanSpec {
    /// [`FreeblockOptions::default`], the whole disk, in gaps alone.
    fn default() -> ScanSpec {
        let options = FreeblockOptions::default();
        ScanSpec {
            conservatism: options.conservatism,
            picks: options.picks,
            steps: None,
            limits: options.limits,
            prefer: options.prefer,
            block: None,
            range: None,
            idle_after: None,
            idle_piece: Bytes(256 << 10),
            to_end: false,
        }
    }
}

/// Why a scan cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ScanError {
    /// As in a configuration, such as `block`.
    pub key: &'static str,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl ScanSpec {
    /// The scan of a disk of so many sectors, by what is known of it.
    ///
    /// # Errors
    ///
    /// If a key does not fit the disk, or nothing is known of where its platter is.
    pub fn build(
        &self,
        known: &Known,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<Freeblock<Arc<Model>>, ScanError> {
        let error = |key, problem: String| Err(ScanError { key, problem });
        let sectors = |key, size: Bytes| match size.0.is_multiple_of(u64::from(sector_bytes)) {
            true => Ok(Sectors::new(size.0 / u64::from(sector_bytes))),
            false => Err(ScanError {
                key,
                problem: format!(
                    "is {size}; allowed is a multiple of {}",
                    Bytes(sector_bytes.into())
                ),
            }),
        };
        let block = match self.block {
            None => Sectors::new(1),
            Some(size) => sectors("block", size)?,
        };
        if block == Sectors::ZERO || block > Sectors::REQUEST_MAX {
            let most = Bytes(Sectors::REQUEST_MAX.bytes(sector_bytes));
            return error("block", format!("allowed is a sector to {most}"));
        }
        let range = match self.range {
            None => Extent::new(Lba::ZERO, capacity),
            Some((from, to)) => {
                let (from, to) = (sectors("range", from)?, sectors("range", to)?);
                if to > capacity {
                    let size = Bytes(capacity.bytes(sector_bytes));
                    return error("range", format!("ends behind the disk, which has {size}"));
                }
                Extent::new(Lba::ZERO + from, to - from)
            }
        };
        let piece = sectors("idle_piece", self.idle_piece)?;
        if piece == Sectors::ZERO || piece > Sectors::REQUEST_MAX {
            let most = Bytes(Sectors::REQUEST_MAX.bytes(sector_bytes));
            return error("idle_piece", format!("allowed is a sector to {most}"));
        }
        let model = match known.model() {
            Ok(Some(model)) => model,
            Ok(None) => {
                let problem = "asks for positions, and no drive is given to believe in";
                return error("conservatism", problem.to_owned());
            }
            Err(why) => return error("conservatism", why.to_string()),
        };
        let options = FreeblockOptions {
            conservatism: self.conservatism,
            picks: self.picks,
            steps: self.steps.unwrap_or(u64::MAX),
            limits: self.limits,
            prefer: self.prefer,
            block,
            idle: self.idle_after.map(|after| Idle { after, piece }),
        };
        match Freeblock::new(model, capacity, range, options) {
            Some(scan) => Ok(scan),
            None => error(
                "conservatism",
                "the drive that is believed does not turn".to_owned(),
            ),
        }
    }
}

/// How people write [`Limits`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Limits", rename_all = "lowercase")]
enum LimitsWord {
    Outside,
    Firmware,
}

/// How people write [`Prefer`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Prefer", rename_all = "lowercase")]
enum PreferWord {
    Blocks,
    Tracks,
}
