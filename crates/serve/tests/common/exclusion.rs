//! Exclusion of commands that the engine guarantees to a device.

use headtime_sched::{Op, Request};
use headtime_units::Extent;

/// Returns true if a command may be in the device beside others. Overlapping commands, of which one changes data, are
/// never there at the same time. A flush is there alone.
pub fn may_be_beside<T>(others: &[Request<T>], op: Op, extent: Extent) -> bool {
    let matters = |other: &Request<T>| {
        other.op == Op::Flush
            || op == Op::Flush
            || (op.changes() || other.op.changes()) && other.extent.overlaps(extent)
    };
    !others.iter().any(matters)
}
