//! Regression trees (CART): growth by variance reduction, size by cross-validation.

mod folds;
mod prune;
mod split;
mod tree;

use crate::features::{FeatureSet, Vector};
use folds::Folds;
use headtime_units::{Millionths, nearest};
use split::Limits;
use std::str::FromStr;
use thiserror::Error;

pub use tree::{Node, Tree};

/// An epoch of a server, to train with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Locality of the requests. All numbers are finite.
    pub vector: Vector,
    /// Throughput, in bytes per second; above 0.
    pub rate: f64,
    /// Samples of a group are held out together, such as all servers in one epoch.
    pub group: u64,
}

/// Scale of throughputs in which the tree reduces the variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Bytes per second, as in the paper. Leaves have arithmetic means.
    Linear,
    /// Logarithm of the throughput. Leaves have geometric means.
    #[default]
    Log,
}

/// Rule for the size of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Growth to the end, then pruning by cost complexity: the smallest tree whose cross-validated error is at most a
    /// standard error above the least.
    Pruned,
    /// The leaf that reduces the variance most is split next, until the mean relative error in cross-validation is below the
    /// threshold: the paper's rule. If no size achieves that, the size with the least error.
    Error(Millionths),
}

/// Options of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CartOptions {
    /// Features that the tree may ask for.
    pub features: FeatureSet,
    /// Scale of throughputs.
    pub scale: Scale,
    /// Rule for the size of the tree.
    pub stop: Stop,
    /// Least number of samples of a node that is split, 2 or more.
    pub min_split: u32,
    /// Least number of samples of a leaf, 1 or more.
    pub min_bucket: u32,
    /// Parts for cross-validation, 2 or more.
    pub folds: u32,
}

impl Default for CartOptions {
    fn default() -> CartOptions {
        CartOptions {
            features: FeatureSet::PAPER,
            scale: Scale::Log,
            stop: Stop::Pruned,
            min_split: 20,
            min_bucket: 7,
            folds: 10,
        }
    }
}

/// A tree, and its errors in cross-validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// The tree, of all samples.
    pub tree: Tree,
    /// Predictions of trees of the same rule that were grown without the sample's part, at the index of the sample.
    pub held_out: Vec<f64>,
    /// True unless [`Stop::Error`] found no tree whose error is below its threshold.
    pub is_met: bool,
}

/// Why no tree can be grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{groups} epochs with throughput are too few for cross-validation; allowed are 2 or more")]
pub struct TooFew {
    /// Number of groups.
    pub groups: usize,
}

/// Grows a tree.
///
/// # Errors
///
/// If there are fewer than two groups.
///
/// # Panics
///
/// If a sample has a number that is not allowed.
pub fn grow(samples: &[Sample], options: &CartOptions) -> Result<Grown, TooFew> {
    for sample in samples {
        let finite = sample.vector.iter().all(|value| value.is_finite());
        assert!(
            finite && sample.rate.is_finite() && sample.rate > 0.0,
            "{sample:?}"
        );
    }
    let scale = options.scale;
    let vectors: Vec<Vector> = samples.iter().map(|sample| sample.vector).collect();
    let rates: Vec<f64> = samples.iter().map(|sample| sample.rate).collect();
    let y: Vec<f64> = rates.iter().map(|rate| scale.of(*rate)).collect();
    let limits = Limits {
        features: options.features,
        min_split: options.min_split.max(2) as usize,
        min_bucket: options.min_bucket.max(1) as usize,
    };
    let keys = match options.stop {
        Stop::Pruned => prune::weakest_links,
        Stop::Error(_) => prune::best_first,
    };
    let branches = split::grow(&vectors, &y, (0..samples.len() as u32).collect(), &limits);
    let sizes = keys(&branches);
    let folds = Folds::new(samples.iter().map(|sample| sample.group), options.folds)
        .ok_or_else(|| too_few(samples))?;
    let folds = folds.grown(|members| {
        let branches = split::grow(&vectors, &y, members, &limits);
        let sizes = keys(&branches);
        (branches, sizes)
    });
    let (size, is_met) = match options.stop {
        Stop::Pruned => {
            let squared = |predicted: f64, sample: usize| (predicted - y[sample]).powi(2);
            let sizes = prune::between(&sizes);
            let losses = folds.losses(&sizes, &vectors, squared);
            (sizes[losses.within_one_error()], true)
        }
        Stop::Error(threshold) => {
            let relative =
                |predicted: f64, sample: usize| (scale.rate(predicted) / rates[sample] - 1.0).abs();
            let sizes = prune::steps(&sizes);
            let losses = folds.losses(&sizes, &vectors, relative);
            let below = losses.smallest_below(threshold.0 as f64 / 1e6);
            (
                sizes[below.unwrap_or_else(|| losses.least())],
                below.is_some(),
            )
        }
    };
    let held_out = folds.predictions(size, &vectors);
    Ok(Grown {
        tree: prune::cut(&branches, &sizes, size, |mean| scale.rate(mean)),
        held_out: held_out.into_iter().map(|mean| scale.rate(mean)).collect(),
        is_met,
    })
}

fn too_few(samples: &[Sample]) -> TooFew {
    TooFew {
        groups: usize::from(!samples.is_empty()),
    }
}

impl Scale {
    /// Name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Linear => "linear",
            Scale::Log => "log",
        }
    }

    /// A throughput on the scale.
    fn of(self, rate: f64) -> f64 {
        match self {
            Scale::Linear => rate,
            Scale::Log => libm::log(rate),
        }
    }

    /// The throughput at a point of the scale.
    fn rate(self, point: f64) -> f64 {
        match self {
            Scale::Linear => point,
            Scale::Log => libm::exp(point),
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let all = [Scale::Linear, Scale::Log];
        let found = all.into_iter().find(|scale| scale.name() == text);
        found.ok_or_else(|| {
            let near = nearest(text, all.map(Scale::name));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("`{text}` is no scale{near}; allowed are linear and log")
        })
    }
}

/// Relative errors of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors(Vec<f64>);

impl Errors {
    /// Errors of pairs of prediction and truth: `|predicted / actual - 1|`.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Errors {
        let error = |(predicted, actual): (f64, f64)| (predicted / actual - 1.0).abs();
        let mut errors: Vec<f64> = pairs.into_iter().map(error).collect();
        errors.sort_by(f64::total_cmp);
        Errors(errors)
    }

    /// The least error that a share of the predictions, 0 to 1, does not exceed. `None` without predictions.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let nth = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(nth.saturating_sub(1)).copied()
    }

    /// Number of predictions.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
