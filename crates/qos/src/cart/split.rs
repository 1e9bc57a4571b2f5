//! Growth of a tree to its full size.

use super::sample::Sample;
use crate::features::{Feature, FeatureSet, Vector};

/// Limits of growth.
pub(super) struct Limits {
    /// Features that the tree may use.
    pub features: FeatureSet,
    /// Least number of samples of a node that is split.
    pub min_split: usize,
    /// Least number of samples of a leaf.
    pub min_bucket: usize,
}

/// A node of a full tree. The left child of a node that is split is the next node.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// Mean of the targets.
    pub mean: f64,
    /// Throughput of all samples together, in bytes per second: their bytes, divided by their time.
    pub rate: f64,
    /// Sum of the squared differences from the mean.
    pub sse: f64,
    /// Number of samples.
    pub count: u32,
    /// The question, if the node is split.
    pub split: Option<Split>,
    /// Place of the right child.
    pub right: usize,
}

/// A question: samples whose feature is at most the threshold go left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// The feature.
    pub feature: Feature,
    /// The threshold, halfway between two neighbouring values.
    pub threshold: f64,
    /// Reduction of the squared differences.
    pub gain: f64,
}

impl Branch {
    /// The child that a vector goes to. `at` is the place of this node.
    pub fn child(&self, split: &Split, at: usize, vector: &Vector) -> usize {
        if vector[split.feature.index()] <= split.threshold {
            at + 1
        } else {
            self.right
        }
    }
}

/// A gain has to exceed another one by this part, so that rounding does not decide between equals.
const GAIN_RATIO_MIN: f64 = 1.0 + 1e-12;

/// Least gain of a split, as part of the squared differences of the node.
const LEAST_GAIN: f64 = 1e-9;

/// Grows a tree of the `members` among the samples, until no split is allowed. Nodes are in preorder.
pub(super) fn grow(
    samples: &[Sample],
    y: &[f64],
    members: Vec<u32>,
    limits: &Limits,
) -> Vec<Branch> {
    let count = members.len();
    let orders = limits.features.iter().map(|feature| {
        let value = |member: u32| samples[member as usize].vector[feature.index()];
        let mut order = members.clone();
        order.sort_unstable_by(|a, b| value(*a).total_cmp(&value(*b)).then(a.cmp(b)));
        (feature, order)
    });
    let mut growth = Growth {
        samples,
        y,
        limits,
        orders: orders.collect(),
        goes_left: vec![false; samples.len()],
        right: Vec::with_capacity(count),
    };
    let mut branches: Vec<Branch> = Vec::new();
    // Ranges of samples that are nodes to come, with the parent of each right child.
    let mut ahead = vec![(0, count, None)];
    while let Some((from, to, parent)) = ahead.pop() {
        let at = branches.len();
        if let Some(parent) = parent {
            let parent: &mut Branch = &mut branches[parent];
            parent.right = at;
        }
        let branch = growth.branch(from, to);
        if let Some(split) = branch.split {
            let middle = growth.partition(from, to, &split);
            ahead.push((middle, to, Some(at)));
            ahead.push((from, middle, None));
        }
        branches.push(branch);
    }
    branches
}

struct Growth<'a> {
    samples: &'a [Sample],
    y: &'a [f64],
    limits: &'a Limits,
    /// For each feature, the members in ascending order of the feature within each node's range.
    orders: Vec<(Feature, Vec<u32>)>,
    /// At the index of a sample, true if the sample goes left in the current split.
    goes_left: Vec<bool>,
    /// Members that go right in the current split.
    right: Vec<u32>,
}

impl Growth<'_> {
    /// The node of a range of samples, with its best split.
    fn branch(&self, from: usize, to: usize) -> Branch {
        let members = &self.orders[0].1[from..to];
        let targets = || members.iter().map(|member| self.y[*member as usize]);
        let mean = targets().sum::<f64>() / members.len().max(1) as f64;
        let of = || members.iter().map(|member| &self.samples[*member as usize]);
        let bytes = of().map(|sample| sample.rate * sample.seconds).sum::<f64>();
        let seconds = of().map(|sample| sample.seconds).sum::<f64>();
        let sse = targets().map(|y| (y - mean) * (y - mean)).sum::<f64>();
        let mut best: Option<Split> = None;
        if members.len() >= self.limits.min_split {
            for (feature, order) in &self.orders {
                self.search(*feature, &order[from..to], mean, sse, &mut best);
            }
        }
        Branch {
            mean,
            rate: bytes / seconds,
            sse,
            count: members.len() as u32,
            split: best,
            right: 0,
        }
    }

    /// Replaces `best` by the best split by a feature, if that is clearly better. Targets are taken relative to their mean,
    /// which keeps the sums exact.
    fn search(
        &self,
        feature: Feature,
        order: &[u32],
        mean: f64,
        sse: f64,
        best: &mut Option<Split>,
    ) {
        let value = |member: u32| self.samples[member as usize].vector[feature.index()];
        let target = |member: u32| self.y[member as usize] - mean;
        let total: f64 = order.iter().map(|member| target(*member)).sum();
        let parent = total * total / order.len() as f64;
        let mut least = best.map_or(sse * LEAST_GAIN, |best| best.gain * GAIN_RATIO_MIN);
        let mut sum = 0.0;
        for (before, pair) in (1..).zip(order.windows(2)) {
            sum += target(pair[0]);
            let after = order.len() - before;
            let (low, high) = (value(pair[0]), value(pair[1]));
            if before.min(after) < self.limits.min_bucket || low >= high {
                continue;
            }
            let rest = total - sum;
            let gain = sum * sum / before as f64 + rest * rest / after as f64 - parent;
            if gain > least {
                let middle = low + (high - low) / 2.0;
                *best = Some(Split {
                    feature,
                    threshold: if middle < high { middle } else { low },
                    gain,
                });
                least = gain * GAIN_RATIO_MIN;
            }
        }
    }

    /// Orders a range so that the samples that go left come first, ascending as before on either side. Returns the place of
    /// the first sample that goes right.
    fn partition(&mut self, from: usize, to: usize, split: &Split) -> usize {
        for member in &self.orders[0].1[from..to] {
            let value = self.samples[*member as usize].vector[split.feature.index()];
            self.goes_left[*member as usize] = value <= split.threshold;
        }
        let mut middle = from;
        for (_, order) in &mut self.orders {
            middle = from;
            self.right.clear();
            for at in from..to {
                let member = order[at];
                if self.goes_left[member as usize] {
                    order[middle] = member;
                    middle += 1;
                } else {
                    self.right.push(member);
                }
            }
            order[middle..to].copy_from_slice(&self.right);
        }
        middle
    }
}
