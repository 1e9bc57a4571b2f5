//! A sample.

use crate::features::Vector;

/// An epoch of a server, to train with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Locality of the requests. All numbers are finite.
    pub vector: Vector,
    /// Throughput, in bytes per second; above 0.
    pub rate: f64,
    /// Time of the epoch that counts, in seconds; above 0. `rate * seconds` are its bytes.
    pub seconds: f64,
    /// True if the size of the tree is chosen by the errors of samples like this. Other samples only cover localities that
    /// judged samples do not show.
    pub is_judged: bool,
    /// Samples of a group are held out together, such as all servers in one epoch.
    pub group: u64,
}
