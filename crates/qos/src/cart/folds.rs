//! Cross-validation: each sample is predicted by a tree that was grown without the sample's part.

use super::sample::Sample;
use super::split::Branch;
use headtime_workload::Random;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A division of the samples into parts.
pub(super) struct Folds {
    /// The part of each sample.
    pub part: Vec<u32>,
    parts: u32,
}

/// Reason why no tree can be grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{groups} epochs with throughput are too few for cross-validation; allowed are 2 or more")]
pub struct TooFew {
    /// Number of groups.
    pub groups: usize,
}

impl Folds {
    /// Divides samples into `parts` parts at random, but always in the same way. A group is never divided. Returns an error
    /// if there are fewer than two groups.
    pub fn new(groups: impl Iterator<Item = u64> + Clone, parts: u32) -> Result<Folds, TooFew> {
        let numbers: BTreeSet<u64> = groups.clone().collect();
        if numbers.len() < 2 {
            return Err(TooFew {
                groups: numbers.len(),
            });
        }
        let parts = parts.clamp(2, u32::try_from(numbers.len()).unwrap_or(u32::MAX));
        let mut order: Vec<u64> = numbers.into_iter().collect();
        Random::new(0, 0, 0).shuffle(&mut order);
        let parts_of = order.into_iter().zip((0..parts).cycle());
        let parts_of: BTreeMap<u64, u32> = parts_of.collect();
        Ok(Folds {
            part: groups.map(|group| parts_of[&group]).collect(),
            parts,
        })
    }

    /// Grows a tree for each part, of the samples of the other parts. `grow` makes the nodes of a tree and the numbers of its
    /// splits.
    pub fn grown(self, grow: impl Fn(Vec<u32>) -> (Vec<Branch>, Vec<f64>)) -> GrownFolds {
        let trees = (0..self.parts).map(|part| {
            let others = (0_u32..).zip(&self.part).filter(|(_, of)| **of != part);
            grow(others.map(|(sample, _)| sample).collect())
        });
        GrownFolds {
            trees: trees.collect(),
            part: self.part,
        }
    }
}

/// A tree for each part.
pub(super) struct GrownFolds {
    trees: Vec<(Vec<Branch>, Vec<f64>)>,
    part: Vec<u32>,
}

impl GrownFolds {
    /// Losses of the held-out samples, for each of ascending sizes. `loss` compares a leaf with a sample. Only samples
    /// that are judged count; if no sample is judged, all count.
    pub fn losses(
        &self,
        sizes: &[f64],
        samples: &[Sample],
        loss: impl Fn(&Branch, usize) -> f64,
    ) -> Losses {
        // Between two sizes a sample's leaf is the same, so only changes are added.
        let mut changes = vec![(0.0, 0.0); sizes.len() + 1];
        let all = samples.iter().all(|sample| !sample.is_judged);
        let mut count = 0.0;
        for (sample, Sample { vector, .. }) in samples
            .iter()
            .enumerate()
            .filter(|(_, sample)| all || sample.is_judged)
        {
            count += 1.0;
            let (branches, numbers) = &self.trees[self.part[sample] as usize];
            let (mut at, mut above) = (0, sizes.len());
            loop {
                let from = sizes.partition_point(|size| *size < numbers[at]);
                if from < above {
                    let loss = loss(&branches[at], sample);
                    changes[from].0 += loss;
                    changes[from].1 += loss * loss;
                    changes[above].0 -= loss;
                    changes[above].1 -= loss * loss;
                    above = from;
                }
                match &branches[at].split {
                    Some(split) if above > 0 => at = branches[at].child(split, at, vector),
                    _ => break,
                }
            }
        }
        let mut sums = (0.0, 0.0);
        let means = changes[..sizes.len()].iter().map(|change| {
            sums = (sums.0 + change.0, sums.1 + change.1);
            let mean = sums.0 / count;
            let variance = (sums.1 / count - mean * mean).max(0.0);
            (mean, (variance / count).sqrt())
        });
        Losses(means.collect())
    }

    /// Throughputs of the leaves that the held-out samples come to, in trees of a size.
    pub fn predictions(&self, size: f64, samples: &[Sample]) -> Vec<f64> {
        let predict = |(sample, Sample { vector, .. }): (usize, &Sample)| {
            let (branches, numbers) = &self.trees[self.part[sample] as usize];
            let mut at = 0;
            while let Some(split) = &branches[at].split
                && numbers[at] > size
            {
                at = branches[at].child(split, at, vector);
            }
            branches[at].rate
        };
        samples.iter().enumerate().map(predict).collect()
    }
}

/// Mean loss of each size, with its standard error. Sizes ascend, so trees become smaller.
pub(super) struct Losses(pub Vec<(f64, f64)>);

impl Losses {
    /// The smallest tree of those with the least loss.
    pub fn least(&self) -> usize {
        let losses = self.0.iter().enumerate().rev();
        let least = losses.min_by(|a, b| a.1.0.total_cmp(&b.1.0));
        least.map_or(0, |(at, _)| at)
    }

    /// The smallest tree whose loss is at most a standard error above the least.
    pub fn within_one_error(&self) -> usize {
        let (loss, error) = self.0[self.least()];
        let within = self.0.iter().rposition(|(other, _)| *other <= loss + error);
        within.unwrap_or(0)
    }

    /// The smallest tree whose loss is below a threshold.
    pub fn smallest_below(&self, threshold: f64) -> Option<usize> {
        self.0.iter().rposition(|(loss, _)| *loss < threshold)
    }
}
