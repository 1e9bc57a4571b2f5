//! A scan of a disk in the background of clients.

use crate::Known;
use headtime_config::{number, sizes, whole};
use headtime_disk::Model;
use headtime_gaps::{
    DriveQueue, Freeblock, FreeblockOptions, Hits, Idle, Limits, Prefer, Promised,
};
use headtime_units::{Bytes, Extent, Lba, MorePercent, Nanos, Sectors};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A scan that reads or writes in the gaps of clients' requests, as in configuration files: one key for each field.
///
/// Invariants of keys that [`ScanSpec::build`] accepts:
///
/// - `picks ≤ 1000`; `1 ≤ steps < 2^63`; `0 ≤ left ≤ 1`; `0 ≤ p99 ≤ 1000`.
/// - `block` and `idle_piece` are multiples of a sector, from one sector to the longest request.
/// - `range = Some((from, to))` ⇒ `from < to`, both multiples of a sector and within the disk.
/// - `finish_within` or `p99` is given ⇒ `work = Read`.
/// - `cycle.is_some()` ⇒ `finish_within` or `p99` is given.
/// - `finish_within` and `cycle` are more than zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanSpec {
    /// Direction of the scan.
    pub work: Work,
    /// See [`FreeblockOptions::conservatism`].
    pub conservatism: Nanos,
    /// See [`FreeblockOptions::picks`].
    #[serde(deserialize_with = "whole::<_, _, 0, 1000>")]
    pub picks: u32,
    /// See [`FreeblockOptions::steps`]; no limit if absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::<_, _, 1, STEPS_MAX>"
    )]
    pub steps: Option<u64>,
    /// See [`FreeblockOptions::limits`].
    #[serde(with = "LimitsWord")]
    pub limits: Limits,
    /// See [`FreeblockOptions::prefer`].
    #[serde(with = "PreferWord")]
    pub prefer: Prefer,
    /// See [`FreeblockOptions::hits`].
    #[serde(with = "HitsWord")]
    pub hits: Hits,
    /// See [`FreeblockOptions::queue`].
    #[serde(with = "QueueWord")]
    pub queue: DriveQueue,
    /// See [`FreeblockOptions::block`]; one sector if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// Range of the scan; the whole disk if absent.
    #[serde(with = "sizes", skip_serializing_if = "Option::is_none")]
    pub range: Option<(Bytes, Bytes)>,
    /// Share of the range that has not been read when the run begins, 0 to 1. The unread pieces are scattered, and are
    /// the same in every run.
    #[serde(deserialize_with = "number::<_, _, 0, 1>")]
    pub left: f64,
    /// See [`Idle::after`]; if absent, the scan works only in gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<Nanos>,
    /// See [`Idle::piece`].
    pub idle_piece: Bytes,
    /// See [`Promised::finish_within`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_within: Option<Nanos>,
    /// See [`Promised::p99`]; in percent, or as text such as `+5%`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "percent_more"
    )]
    pub p99: Option<f64>,
    /// See [`Promised::cycle`]; a day if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Nanos>,
    /// True if the run ends when the scan is complete.
    pub to_end: bool,
}

/// Blocks of a piece. At the start of a run, a piece is read or unread as a whole. Ten blocks of 64 KiB are the amount
/// that a gap of a nearline drive reads.
const PIECE_BLOCKS: u64 = 10;

/// Largest whole number in TOML.
const STEPS_MAX: u64 = i64::MAX as u64;

impl Default for ScanSpec {
    /// [`FreeblockOptions::default`], the whole disk, in gaps alone.
    fn default() -> ScanSpec {
        let options = FreeblockOptions::default();
        ScanSpec {
            work: Work::Read,
            conservatism: options.conservatism,
            picks: options.picks,
            steps: None,
            limits: options.limits,
            prefer: options.prefer,
            hits: options.hits,
            queue: options.queue,
            block: None,
            range: None,
            left: 1.0,
            idle_after: None,
            idle_piece: Bytes(256 << 10),
            finish_within: None,
            p99: None,
            cycle: None,
            to_end: false,
        }
    }
}

/// Reads an allowed increase in percent: a number, or the text form of the command line.
fn percent_more<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    struct Percent;

    impl Visitor<'_> for Percent {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(
                f,
                "a number from 0 to {}, or such as \"+5%\"",
                MorePercent::MOST.percent()
            )
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<f64, E> {
            self.visit_f64(number as f64)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<f64, E> {
            self.visit_f64(number as f64)
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<f64, E> {
            let most = MorePercent::MOST.percent();
            match (0.0..=most).contains(&number) {
                true => Ok(number),
                false => Err(E::custom(format_args!(
                    "{number} is out of range; allowed is 0 to {most}"
                ))),
            }
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
            let more: Result<MorePercent, _> = text.parse();
            more.map(MorePercent::percent).map_err(E::custom)
        }
    }

    from.deserialize_any(Percent).map(Some)
}

/// A day.
const CYCLE_TIME: Nanos = Nanos::from_secs(86_400);

/// Error of a scan's keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ScanError {
    /// The key as in a configuration, such as `block`.
    pub key: &'static str,
    /// The problem, and the allowed values.
    pub problem: String,
}

impl ScanSpec {
    /// Builds the scan of a disk of `capacity` sectors. `known` has the assumed drive.
    ///
    /// # Errors
    ///
    /// If a key does not fit the disk, or if no drive is assumed, so that positions cannot be predicted.
    pub fn build(
        &self,
        known: &Known,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<Freeblock<Arc<Model>>, ScanError> {
        self.build_of(self.left, known, capacity, sector_bytes)
    }

    /// Checks that the scan of a disk of `capacity` sectors can be built. The check does not count blocks, which takes
    /// seconds for a large disk.
    ///
    /// # Errors
    ///
    /// As for [`ScanSpec::build`].
    pub fn check(
        &self,
        known: &Known,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<(), ScanError> {
        self.build_of(0.0, known, capacity, sector_bytes)
            .map(|_| ())
    }

    /// Builds the scan of a share of the blocks.
    fn build_of(
        &self,
        left: f64,
        known: &Known,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<Freeblock<Arc<Model>>, ScanError> {
        let range = match self.range {
            None => Extent::new(Lba::ZERO, capacity),
            Some(range) => extent_of("range", range, capacity, sector_bytes)?,
        };
        let (model, options) = self.options(known, range.end(), sector_bytes)?;
        let promised = self.promised(sector_bytes)?;
        let pieces = pieces(range, options.block, left);
        match Freeblock::of(model, capacity, pieces, options) {
            Some(scan) => Ok(match (promised, self.work) {
                (Some(promised), _) => scan.with_promise(promised, self.piece(sector_bytes)?),
                (None, Work::Read) => scan,
                (None, Work::Write) => scan.writing(),
            }),
            None => refused("conservatism", "the assumed drive does not turn"),
        }
    }

    /// Returns the model of the assumed drive, and the options of the scan. The scan ends before the sector `upto`.
    ///
    /// # Errors
    ///
    /// As for [`ScanSpec::build`].
    fn options(
        &self,
        known: &Known,
        upto: Lba,
        sector_bytes: u32,
    ) -> Result<(Arc<Model>, FreeblockOptions), ScanError> {
        let block = match self.block {
            None => Sectors::new(1),
            Some(size) => sectors_of("block", size, sector_bytes)?,
        };
        if block == Sectors::ZERO || block > Sectors::REQUEST_MAX {
            let most = Bytes(Sectors::REQUEST_MAX.bytes(sector_bytes));
            return refused("block", format!("allowed is a sector to {most}"));
        }
        let piece = self.piece(sector_bytes)?;
        let model = match known.model() {
            Ok(Some(model)) => model,
            Ok(None) => {
                let problem = "asks for positions, and no drive is given to believe in";
                return refused("conservatism", problem);
            }
            Err(why) => return refused("conservatism", why.to_string()),
        };
        if let Some(belief) = known.belief() {
            let has = belief.geometry.sector_bytes;
            if has != sector_bytes {
                let problem = format!(
                    "the assumed drive has sectors of {has} bytes, and the disk of {sector_bytes}"
                );
                return refused("conservatism", problem);
            }
            let size = belief.geometry.capacity;
            if Lba::ZERO + size < upto {
                let size = Bytes(size.bytes(has));
                let problem = format!("ends behind the assumed drive, which has {size}");
                return refused("range", problem);
            }
        }
        let options = FreeblockOptions {
            conservatism: self.conservatism,
            picks: self.picks,
            steps: self.steps.unwrap_or(u64::MAX),
            limits: self.limits,
            prefer: self.prefer,
            hits: self.hits,
            queue: self.queue,
            block,
            idle: self.idle_after.map(|after| Idle { after, piece }),
        };
        Ok((model, options))
    }

    /// Returns the largest read in idle time, in sectors.
    ///
    /// # Errors
    ///
    /// If the size is no allowed size of a read.
    fn piece(&self, sector_bytes: u32) -> Result<Sectors, ScanError> {
        let piece = sectors_of("idle_piece", self.idle_piece, sector_bytes)?;
        match piece == Sectors::ZERO || piece > Sectors::REQUEST_MAX {
            true => {
                let most = Bytes(Sectors::REQUEST_MAX.bytes(sector_bytes));
                refused("idle_piece", format!("allowed is a sector to {most}"))
            }
            false => Ok(piece),
        }
    }
}

/// Returns an error for an invalid key.
fn refused<T>(key: &'static str, problem: impl Into<String>) -> Result<T, ScanError> {
    let problem = problem.into();
    Err(ScanError { key, problem })
}

/// Converts a size to sectors.
///
/// # Errors
///
/// If the size is no multiple of a sector.
fn sectors_of(key: &'static str, size: Bytes, sector_bytes: u32) -> Result<Sectors, ScanError> {
    match size.0.is_multiple_of(u64::from(sector_bytes)) {
        true => Ok(Sectors::new(size.0 / u64::from(sector_bytes))),
        false => {
            let sector = Bytes(sector_bytes.into());
            refused(key, format!("is {size}; allowed is a multiple of {sector}"))
        }
    }
}

/// Returns the sectors between two places of a disk of `capacity`.
///
/// # Errors
///
/// If a place is no multiple of a sector, or lies beyond the disk.
fn extent_of(
    key: &'static str,
    (from, to): (Bytes, Bytes),
    capacity: Sectors,
    sector_bytes: u32,
) -> Result<Extent, ScanError> {
    let (from, to) = (
        sectors_of(key, from, sector_bytes)?,
        sectors_of(key, to, sector_bytes)?,
    );
    if to > capacity {
        let size = Bytes(capacity.bytes(sector_bytes));
        return refused(key, format!("ends behind the disk, which has {size}"));
    }
    Ok(Extent::new(Lba::ZERO + from, to - from))
}

impl ScanSpec {
    /// Returns the key of the scan's first promise, if there is a promise.
    pub fn promises(&self) -> Option<&'static str> {
        let date = self.finish_within.map(|_| "finish_within");
        date.or_else(|| self.p99.map(|_| "p99"))
    }

    /// Returns the promise of the scan, if there is one.
    fn promised(&self, sector_bytes: u32) -> Result<Option<Promised>, ScanError> {
        let error = refused::<Option<Promised>>;
        if self.promises().is_none() {
            return match self.cycle {
                Some(_) => error("cycle", "is for scans with finish_within or p99"),
                None => Ok(None),
            };
        }
        if self.work == Work::Write {
            let key = match self.p99 {
                Some(_) => "p99",
                None => "finish_within",
            };
            return error(key, "is for scans that read; work is write");
        }
        let cycle = self.cycle.unwrap_or(CYCLE_TIME);
        if cycle.is_zero() || self.finish_within.is_some_and(Nanos::is_zero) {
            let key = if cycle.is_zero() {
                "cycle"
            } else {
                "finish_within"
            };
            return error(key, "allowed is more than no time");
        }
        Ok(Some(Promised {
            finish_within: self.finish_within,
            passed: Nanos::ZERO,
            p99: self.p99.map(|percent| percent / 100.0),
            cycle,
            unit: Sectors::new(Promised::UNIT_BYTES / u64::from(sector_bytes)),
            patience: self.idle_after.unwrap_or_default(),
        }))
    }
}

/// Returns a share of the pieces of a range. Adjacent pieces are joined.
fn pieces(range: Extent, block: Sectors, share: f64) -> impl Iterator<Item = Extent> {
    let piece = block.get() * PIECE_BLOCKS;
    let (start, end) = (range.start.get(), range.end().get());
    let mut next = start / piece;
    std::iter::from_fn(move || {
        while next * piece < end && !is_left(next, share) {
            next += 1;
        }
        let first = next;
        while next * piece < end && is_left(next, share) {
            next += 1;
        }
        let (from, to) = ((first * piece).max(start), (next * piece).min(end));
        (from < to).then(|| Extent::new(Lba::new(from), Sectors::new(to - from)))
    })
}

/// Returns true if a piece belongs to a share of all pieces.
fn is_left(piece: u64, share: f64) -> bool {
    // SplitMix64's mixing.
    let mixed = piece.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ (mixed >> 31);
    share >= 1.0 || ((mixed >> 11) as f64) < share * (1_u64 << 53) as f64
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// The scan reads blocks.
    Read,
    /// The scan writes blocks, through the drive's buffer to the medium (FUA).
    Write,
}

/// Text form of [`Limits`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Limits", rename_all = "lowercase")]
enum LimitsWord {
    Outside,
    Firmware,
}

/// Text form of [`Prefer`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Prefer", rename_all = "lowercase")]
enum PreferWord {
    Blocks,
    Tracks,
}

/// Text form of [`Hits`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Hits", rename_all = "lowercase")]
enum HitsWord {
    Guarded,
    Spared,
    Ignored,
}

/// Text form of [`DriveQueue`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "DriveQueue", rename_all = "lowercase")]
enum QueueWord {
    Promised,
    Kept,
    Short,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_range_is_pieces_of_it_in_order() {
        let range = Extent::new(Lba::new(1_003), Sectors::new(1_000_000));
        let block = Sectors::new(8);
        let all: Vec<Extent> = pieces(range, block, 1.0).collect();
        assert_eq!(all, [range]);
        assert_eq!(pieces(range, block, 0.0).count(), 0);
        for share in [0.1, 0.5, 0.9] {
            let some: Vec<Extent> = pieces(range, block, share).collect();
            assert!(some.iter().all(|piece| range.covers(*piece)));
            assert!(some.windows(2).all(|pair| pair[0].end() < pair[1].start));
            let sectors: u64 = some.iter().map(|piece| piece.len.get()).sum();
            let off = sectors as f64 / 1e6 - share;
            assert!(off.abs() < 0.02, "{share}: {sectors}");
        }
    }

    #[test]
    fn a_scan_promises_what_its_keys_say() {
        let promised = |spec: &ScanSpec| spec.promised(512);
        let mut spec = ScanSpec::default();
        assert_eq!(promised(&spec), Ok(None));
        spec.cycle = Some(Nanos::from_secs(1));
        assert_eq!(promised(&spec).unwrap_err().key, "cycle");
        spec.p99 = Some(5.0);
        let made = promised(&spec).expect("it can be").expect("it is");
        assert_eq!((made.p99, made.cycle), (Some(0.05), Nanos::from_secs(1)));
        assert_eq!(made.finish_within, None);
        spec.finish_within = Some(Nanos::ZERO);
        assert_eq!(promised(&spec).unwrap_err().key, "finish_within");
        spec.work = Work::Write;
        assert_eq!(promised(&spec).unwrap_err().key, "p99");
        spec.p99 = None;
        assert_eq!(promised(&spec).unwrap_err().key, "finish_within");
        (spec.finish_within, spec.cycle) = (None, None);
        assert_eq!(promised(&spec), Ok(None));
    }
}
