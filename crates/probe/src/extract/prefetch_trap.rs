//! Test for the prefetch trap: after a second consecutive read on a track, some drives read on to its end before any other work.
//!
//! The next read is late by the rest of the track, and no rule fits its time. A read elsewhere in between restores normal behaviour, at the
//! cost of one more read. The test is therefore made only if a walk is slow.

use super::Extraction;
use super::bench::Bench;
use super::error::ExtractError;
use super::turns::near;
use super::walk::Walked;
use headtime_units::Nanos;

/// Time of the walk before its pace is judged.
const JUDGED_AFTER: Nanos = Nanos::from_secs(180);
/// Divisor of the patience: a walk is slow if its estimated time exceeds this part.
const SLOW_WALK_PART: f64 = 3.0;
/// Number of places with three consecutive reads.
const PLACES_TESTED: u64 = 32;
/// Distances between the three reads of a test, in sectors of 512 bytes. On most drives, at least one of these distances keeps
/// the three sectors on one track, and none of them in the buffer by the read of another.
const READ_DISTANCES: [u64; 3] = [40, 150, 500];
/// Fewest last reads that must come from the medium.
const MEDIUM_READS_MIN: u64 = 8;
/// Deviation of the last read from its angle alone, in turns, that counts as late.
const LATE_TURNS: f64 = 0.02;
/// Divisor: a larger share of late reads than `1 / LATE_READS_PART` is no accident.
const LATE_READS_PART: u64 = 5;

impl Extraction {
    /// Tests once if the drive stays on tracks, provided that the walk is old enough and slow.
    pub(super) fn ask_whether_it_stays(
        &mut self,
        bench: &mut Bench<'_>,
        spent: Nanos,
    ) -> Result<(), ExtractError> {
        let least = self.pace.least(self.capacity);
        let slow = self.patience.as_nanos() as f64 / SLOW_WALK_PART;
        let gets_on = least.is_some_and(|least| least < slow);
        if self.walked.asked || spent < JUDGED_AFTER || gets_on || self.walked.upto == 0 {
            return Ok(());
        }
        self.walked.asked = true;
        if !self.walked.stays && stays_on_tracks(bench)? {
            // All earlier results of the walk are wrong.
            self.walked = Walked {
                stays: true,
                asked: true,
                ..Walked::default()
            };
            bench.forget();
            self.pace.anew(spent, 0);
        }
        Ok(())
    }
}

/// Returns true if the third of three consecutive reads on a track comes at another angle than alone.
fn stays_on_tracks(bench: &mut Bench<'_>) -> Result<bool, ExtractError> {
    let sectors = 512.0 / f64::from(bench.probe.sector_bytes().max(512));
    let unit = bench.unit();
    let mut places = Vec::new();
    for place in 0..PLACES_TESTED {
        let apart = (READ_DISTANCES[place as usize % READ_DISTANCES.len()] as f64 * sectors) as u64
            / unit
            * unit;
        let first = bench.random.up_to(bench.capacity() - 2 * apart - 1) / unit * unit;
        places.push([first, first + apart, first + 2 * apart]);
    }
    let mut alone = Vec::new();
    for [.., last] in &places {
        alone.push(bench.angle(*last)?);
    }
    bench.drive_out()?;
    let (mut seen, mut late) = (0, 0);
    for (place, alone) in places.into_iter().zip(alone) {
        if let Some(angle) = bench.last_of(place)? {
            seen += 1;
            late += u64::from(near(angle - alone).abs() > LATE_TURNS);
        }
    }
    Ok(seen >= MEDIUM_READS_MIN && late * LATE_READS_PART > seen)
}
