//! Sizes of trees: for each split, a number below which a tree has the split.
//!
//! A tree of size `p` has the splits whose number is above `p`. No split has a larger number than a split above it, so every
//! size is a tree, and larger sizes are smaller trees.

use super::split::Branch;
use super::tree::{Node, Tree};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A number that can be ordered. NaN does not occur.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Number of a leaf.
const LEAF: f64 = f64::NEG_INFINITY;

/// By cost complexity: the complexity parameter at which a split goes, per sample. The weakest link goes first: the split
/// whose subtree reduces the squared differences least for each of its leaves.
pub(super) fn weakest_links(branches: &[Branch]) -> Vec<f64> {
    let count = branches.len();
    let samples = branches.first().map_or(1, |root| root.count.max(1));
    let (mut parents, mut ends) = (vec![None; count], vec![0; count]);
    // The leaves of each node's subtree, and the sum of their squared differences.
    let mut leaves = vec![1_u32; count];
    let mut sse: Vec<f64> = branches.iter().map(|branch| branch.sse).collect();
    for (at, branch) in branches.iter().enumerate().rev() {
        ends[at] = at + 1;
        if branch.split.is_some() {
            let (left, right) = (at + 1, branch.right);
            (parents[left], parents[right]) = (Some(at), Some(at));
            ends[at] = ends[right];
            leaves[at] = leaves[left] + leaves[right];
            sse[at] = sse[left] + sse[right];
        }
    }
    let link = |at: usize, leaves: &[u32], sse: &[f64]| {
        let gained = branches[at].sse - sse[at];
        Ordered(gained / f64::from(leaves[at] - 1) / f64::from(samples))
    };
    let splits = (0..count).filter(|at| branches[*at].split.is_some());
    let mut weakest: BinaryHeap<_> = splits
        .map(|at| Reverse((link(at, &leaves, &sse), at, leaves[at])))
        .collect();
    let mut numbers = vec![LEAF; count];
    let mut number = 0.0_f64;
    while let Some(Reverse((Ordered(value), at, leaves_then))) = weakest.pop() {
        // Gone, or weaker by now.
        if numbers[at] > LEAF || leaves[at] != leaves_then {
            continue;
        }
        number = number.max(value);
        for below in at..ends[at] {
            if branches[below].split.is_some() && numbers[below] == LEAF {
                numbers[below] = number;
            }
        }
        let (fewer, more) = (leaves[at] - 1, branches[at].sse - sse[at]);
        let mut above = parents[at];
        while let Some(ancestor) = above {
            leaves[ancestor] -= fewer;
            sse[ancestor] += more;
            let link = link(ancestor, &leaves, &sse);
            weakest.push(Reverse((link, ancestor, leaves[ancestor])));
            above = parents[ancestor];
        }
    }
    numbers
}

/// By growth: minus the number of splits before, if the leaf with the largest gain is split next.
pub(super) fn best_first(branches: &[Branch]) -> Vec<f64> {
    let mut numbers = vec![LEAF; branches.len()];
    let candidate = |at: usize| {
        let split = branches.get(at)?.split?;
        Some((Ordered(split.gain), Reverse(at)))
    };
    let mut ahead: BinaryHeap<_> = candidate(0).into_iter().collect();
    let mut before = 0.0;
    while let Some((_, Reverse(at))) = ahead.pop() {
        numbers[at] = -before;
        before += 1.0;
        ahead.extend(candidate(at + 1));
        ahead.extend(candidate(branches[at].right));
    }
    numbers
}

/// Sizes to try, ascending: one between each two numbers, one below all and one above all.
pub(super) fn between(numbers: &[f64]) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers
        .iter()
        .copied()
        .filter(|number| *number > LEAF)
        .collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let middles = numbers.windows(2).map(|pair| (pair[0] * pair[1]).sqrt());
    let mut sizes = vec![0.0];
    sizes.extend(middles);
    sizes.push(f64::INFINITY);
    sizes
}

/// Sizes to try, ascending: each number of splits from all down to none.
pub(super) fn steps(numbers: &[f64]) -> Vec<f64> {
    let splits = numbers.iter().filter(|number| **number > LEAF).count();
    (0..=splits).rev().map(|splits| -(splits as f64)).collect()
}

/// The tree of a size.
pub(super) fn cut(branches: &[Branch], numbers: &[f64], size: f64) -> Tree {
    let mut nodes = Vec::new();
    let mut ahead = vec![0];
    while let Some(at) = ahead.pop() {
        let branch = &branches[at];
        let split = branch.split.filter(|_| numbers[at] > size);
        nodes.push(match split {
            None => Node::Leaf {
                rate: branch.rate,
                samples: branch.count,
            },
            Some(split) => {
                ahead.extend([branch.right, at + 1]);
                Node::Split {
                    feature: split.feature,
                    threshold: split.threshold,
                    samples: branch.count,
                }
            }
        });
    }
    Tree::of(nodes).expect("a subtree is a tree")
}
