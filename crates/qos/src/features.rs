//! The locality of a server's requests in an epoch.

use headtime_sched::Op;
use headtime_units::{Bytes, Extent, nearest};
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use thiserror::Error;

/// Largest piece of a request. Larger requests are split into pieces of at most this size before they are counted.
pub const PIECE_BYTES: Bytes = Bytes(128 << 10);

/// A number that describes the requests of an epoch.
///
/// The *distance* of a piece is its first address, less the end of the preceding piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Feature {
    /// Mean of the absolute distances, in bytes: the paper's `AvgDist`.
    Distance,
    /// Mean of the distances with their signs, in bytes: `AvgDist` as printed.
    SignedDistance,
    /// Mean size of the pieces, in bytes: the paper's `AvgSize`.
    Size,
    /// Mean of log2(1 + absolute distance in bytes).
    LogDistance,
    /// Share of the distances that are 0.
    Sequential,
    /// Share of the pieces that are read.
    Reads,
}

/// All features of an epoch, at the index of the [`Feature`].
pub type Vector = [f64; Feature::ALL.len()];

impl Feature {
    /// All features, in order.
    pub const ALL: [Feature; 6] = [
        Feature::Distance,
        Feature::SignedDistance,
        Feature::Size,
        Feature::LogDistance,
        Feature::Sequential,
        Feature::Reads,
    ];

    /// Name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::Distance => "distance",
            Feature::SignedDistance => "signed-distance",
            Feature::Size => "size",
            Feature::LogDistance => "log-distance",
            Feature::Sequential => "sequential",
            Feature::Reads => "reads",
        }
    }

    /// Place in a [`Vector`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Features that a tree may ask for, at least one.
///
/// As text, names separated by commas: `distance,size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureSet(u8);

impl FeatureSet {
    /// `AvgDist` as absolute distance, and `AvgSize`: the paper's features.
    pub const PAPER: FeatureSet = FeatureSet::of(&[Feature::Distance, Feature::Size]);

    /// The paper's features and the share of sequential requests: the default. The paper's features cannot tell one long jump
    /// among sequential requests from jumps of medium length.
    pub const USUAL: FeatureSet =
        FeatureSet::of(&[Feature::Distance, Feature::Size, Feature::Sequential]);

    /// A set of features.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub const fn of(features: &[Feature]) -> FeatureSet {
        assert!(!features.is_empty(), "a tree asks for features");
        let (mut bits, mut at) = (0, 0);
        while at < features.len() {
            bits |= 1 << features[at] as u8;
            at += 1;
        }
        FeatureSet(bits)
    }

    /// The features, in order.
    pub fn iter(self) -> impl Iterator<Item = Feature> + Clone {
        let all = Feature::ALL.into_iter();
        all.filter(move |feature| self.contains(*feature))
    }

    /// Returns true if the set has a feature.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u8 != 0
    }
}

/// Reason why a text is no set of features.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is no feature{}; allowed are {}", maybe(.nearest), FeatureSet(u8::MAX))]
pub struct FeatureSetError {
    /// The word.
    pub found: String,
    /// Most similar name of a feature.
    pub nearest: Option<&'static str>,
}

fn maybe(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

impl FromStr for FeatureSet {
    type Err = FeatureSetError;

    fn from_str(text: &str) -> Result<FeatureSet, FeatureSetError> {
        let mut bits = 0;
        for word in text.split(',').map(str::trim) {
            let feature = Feature::ALL
                .into_iter()
                .find(|feature| feature.name() == word);
            let feature = feature.ok_or_else(|| FeatureSetError {
                found: word.to_owned(),
                nearest: nearest(word, Feature::ALL.map(Feature::name)),
            })?;
            bits |= 1 << feature as u8;
        }
        Ok(FeatureSet(bits))
    }
}

impl fmt::Display for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, feature) in self.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{}", feature.name())?;
        }
        Ok(())
    }
}

/// Sums over the requests of a server in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Requests with data.
    pub requests: u64,
    /// Pieces of at most [`PIECE_BYTES`].
    pub pieces: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Pieces that are read.
    pub reads: u64,
    /// Distances: one less than the pieces, but 1 if a single piece follows an earlier epoch.
    pub steps: u64,
    /// Distances of 0.
    pub sequential: u64,
    /// Sum of the absolute distances, in bytes.
    pub distance: u64,
    /// Sum of the distances with their signs, in bytes.
    pub signed: i64,
    /// Sum of log2(1 + absolute distance in bytes).
    pub log_distance: f64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.requests += other.requests;
        self.pieces += other.pieces;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.reads += other.reads;
        self.steps += other.steps;
        self.sequential += other.sequential;
        self.distance = self.distance.saturating_add(other.distance);
        self.signed = self.signed.saturating_add(other.signed);
        self.log_distance += other.log_distance;
    }
}

impl Sums {
    /// The features. If no distance is known, features of distance are 0.
    pub fn vector(&self) -> Vector {
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        [
            mean(self.distance as f64, self.steps),
            mean(self.signed as f64, self.steps),
            mean(self.bytes as f64, self.pieces),
            mean(self.log_distance, self.steps),
            mean(self.sequential as f64, self.steps),
            mean(self.reads as f64, self.pieces),
        ]
    }
}

/// Follows the requests of one program at one server. Allocates nothing.
///
/// # Examples
///
/// ```
/// use headtime_qos::{Accumulator, Feature};
/// use headtime_sched::Op;
/// use headtime_units::Extent;
///
/// let mut server = Accumulator::new(512);
/// server.add(Op::Read, Extent::at(0, 8));
/// server.add(Op::Read, Extent::at(108, 8));
/// let vector = server.take().unwrap().vector();
/// assert_eq!(vector[Feature::Distance.index()], 51_200.0);
/// assert!(server.take().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Accumulator {
    sector_bytes: u64,
    sums: Sums,
    /// Distance of the first piece of this epoch from the last piece of an earlier epoch, in bytes.
    carried: Option<i64>,
    /// The sector behind the last request of any epoch.
    end: Option<u64>,
}

impl Accumulator {
    /// A server whose sectors have `sector_bytes` bytes.
    ///
    /// # Panics
    ///
    /// If sectors have no bytes.
    pub fn new(sector_bytes: u32) -> Accumulator {
        assert!(sector_bytes > 0, "sectors have bytes");
        Accumulator {
            sector_bytes: u64::from(sector_bytes),
            sums: Sums::default(),
            carried: None,
            end: None,
        }
    }

    /// Counts a request. Flushes, discards and requests without sectors do not count.
    pub fn add(&mut self, op: Op, extent: Extent) {
        if !matches!(op, Op::Read | Op::Write) || extent.is_empty() {
            return;
        }
        let start = extent.start.get();
        let bytes = extent.len.get().saturating_mul(self.sector_bytes);
        let pieces = bytes.div_ceil(PIECE_BYTES.0);
        let end = self.end.replace(start.saturating_add(extent.len.get()));
        let distance = end.map(|end| self.bytes_between(end, start));
        match distance {
            Some(distance) if self.sums.pieces > 0 => self.step(distance),
            _ => self.carried = distance,
        }
        let sums = &mut self.sums;
        sums.requests += 1;
        sums.pieces += pieces;
        sums.bytes = sums.bytes.saturating_add(bytes);
        sums.reads += if op == Op::Read { pieces } else { 0 };
        sums.steps += pieces - 1;
        sums.sequential += pieces - 1;
    }

    fn bytes_between(&self, from: u64, to: u64) -> i64 {
        let sectors = i128::from(to) - i128::from(from);
        let bytes = sectors * i128::from(self.sector_bytes);
        bytes.clamp(i128::from(-i64::MAX), i128::from(i64::MAX)) as i64
    }

    fn step(&mut self, distance: i64) {
        let (sums, absolute) = (&mut self.sums, distance.unsigned_abs());
        sums.steps += 1;
        sums.sequential += u64::from(distance == 0);
        sums.distance = sums.distance.saturating_add(absolute);
        sums.signed = sums.signed.saturating_add(distance);
        if distance != 0 {
            sums.log_distance += libm::log2(1.0 + absolute as f64);
        }
    }

    /// Returns the requests of this epoch so far.
    pub fn requests(&self) -> u64 {
        self.sums.requests
    }

    /// Ends the epoch. Returns its sums, or `None` if no request came.
    ///
    /// The paper's mean is over the distances within the epoch. An epoch with a single piece has none, so the distance from
    /// an earlier epoch stands in.
    pub fn take(&mut self) -> Option<Sums> {
        if self.sums.pieces == 1
            && let Some(carried) = self.carried.take()
        {
            self.step(carried);
        }
        let sums = std::mem::take(&mut self.sums);
        (sums.requests > 0).then_some(sums)
    }
}
