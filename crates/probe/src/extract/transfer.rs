//! How fast data come over the bus, and what an answer from the buffer costs.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::median;
use crate::Probe;
use serde::{Deserialize, Serialize};

/// What reads of several sizes show, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Each sector.
    pub sector: f64,
    /// An answer from the buffer, without its data; 0 if nothing ever came from there.
    pub hit: f64,
}

/// Sectors of the long reads.
const MANY: u64 = 17;

/// Reads that are in the buffer, of one sector and of several.
pub(super) fn measure<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    hit_below: f64,
) -> Result<Transfer, ExtractError> {
    let mut hits = |count: u64| -> Result<Option<f64>, ExtractError> {
        let mut times = Vec::new();
        for _ in 0..60 {
            let lba = bench
                .random
                .up_to(bench.capacity().saturating_sub(MANY + 1));
            bench.read(lba, count)?;
            let again = bench.read(lba, count)?;
            let time = (again.at - again.sent).as_nanos() as f64;
            // More data may take longer than what a hit may.
            if time < hit_below + count as f64 * 250e3 {
                times.push(time);
            }
        }
        Ok(if times.len() < 30 {
            None
        } else {
            median(&mut times)
        })
    };
    let (Some(one), Some(many)) = (hits(1)?, hits(MANY)?) else {
        return Ok(Transfer::default());
    };
    let sector = ((many - one) / (MANY - 1) as f64).max(0.0);
    Ok(Transfer {
        sector,
        hit: (one - sector).max(0.0),
    })
}
