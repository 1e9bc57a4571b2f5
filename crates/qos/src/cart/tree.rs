//! A tree that predicts.

use crate::features::{Feature, Vector};
use std::fmt;

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// A question. Vectors whose feature is at most the threshold go on to the next node, others to the right child.
    Split {
        /// The feature.
        feature: Feature,
        /// The threshold.
        threshold: f64,
        /// Samples that came here in training.
        samples: u32,
    },
    /// A prediction.
    Leaf {
        /// Throughput, in bytes per second.
        rate: f64,
        /// Samples that came here in training.
        samples: u32,
    },
}

/// A regression tree: predicts the throughput of a server from the locality of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// In preorder.
    nodes: Vec<Node>,
    /// Place of the right child of each split.
    right: Vec<u32>,
}

impl Tree {
    /// A tree of nodes in preorder: a split, its left subtree, its right subtree.
    ///
    /// # Errors
    ///
    /// The number of nodes that were read as a tree, if some are missing or some follow.
    pub fn of(nodes: Vec<Node>) -> Result<Tree, usize> {
        let mut right = vec![0; nodes.len()];
        // Splits whose right child is still to come.
        let mut open = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if let Node::Split { .. } = node {
                open.push(at);
            } else {
                match open.pop() {
                    Some(split) => right[split] = at as u32 + 1,
                    None if at + 1 == nodes.len() => return Ok(Tree { nodes, right }),
                    None => return Err(at + 1),
                }
            }
        }
        Err(nodes.len())
    }

    /// Throughput that the tree predicts, in bytes per second.
    pub fn predict(&self, vector: &Vector) -> f64 {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                Node::Leaf { rate, .. } => return rate,
                Node::Split {
                    feature, threshold, ..
                } => at = self.child(at, feature, threshold, vector),
            }
        }
    }

    fn child(&self, at: usize, feature: Feature, threshold: f64, vector: &Vector) -> usize {
        if vector[feature.index()] <= threshold {
            at + 1
        } else {
            self.right[at] as usize
        }
    }

    /// The nodes from the root to the prediction.
    pub fn path(&self, vector: &Vector) -> impl Iterator<Item = &Node> {
        let vector = *vector;
        std::iter::successors(Some(0), move |at| match self.nodes[*at] {
            Node::Leaf { .. } => None,
            Node::Split {
                feature, threshold, ..
            } => Some(self.child(*at, feature, threshold, &vector)),
        })
        .map(|at| &self.nodes[at])
    }

    /// All nodes, in preorder.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of predictions that the tree can give.
    pub fn leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }
}

/// Writes a node as a line of a file: `split distance 4096 120`, `leaf 1000000 60`.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Split {
                feature,
                threshold,
                samples,
            } => write!(f, "split {} {threshold} {samples}", feature.name()),
            Node::Leaf { rate, samples } => write!(f, "leaf {rate} {samples}"),
        }
    }
}
