//! Drives that stay on a track behind a second read of it in a row: they read on there before they do anything else.
//!
//! What is read next is late by as much as the track has left, so that no rule fits to looks on it. If something else is read
//! in between, it is as other drives are. That takes a read more, so that it is only done
//! where a walk gets on slowly and the drive is such a one.

use super::Extraction;
use super::bench::Bench;
use super::error::ExtractError;
use super::turns::near;
use super::walk::Walked;
use headtime_units::Nanos;

/// The walk is so old before it is asked whether it gets on.
const EARLY: Nanos = Nanos::from_secs(180);
/// It gets on slowly if it would take this part of the patience.
const SLOW: f64 = 3.0;
/// Places at which three sectors are read in a row.
const PLACES: u64 = 32;
/// How far apart in sectors of 512 bytes: on most drives three of one of these are on a track, and not in the buffer.
const APART: [u64; 3] = [40, 150, 500];
/// So many of the last ones have to come from the medium.
const LEAST: u64 = 8;
/// One that is this part of a turn from where it is alone was late.
const LATE: f64 = 0.02;
/// One in so many that are late is no accident.
const PART: u64 = 5;

impl Extraction {
    /// Asks once, if the walk that has taken so long gets on slowly, whether the drive stays on tracks.
    pub(super) fn ask_whether_it_stays(
        &mut self,
        bench: &mut Bench<'_>,
        spent: Nanos,
    ) -> Result<(), ExtractError> {
        let least = self.pace.least(self.capacity);
        let slow = self.patience.as_nanos() as f64 / SLOW;
        let gets_on = least.is_some_and(|least| least < slow);
        if self.walked.asked || spent < EARLY || gets_on || self.walked.upto == 0 {
            return Ok(());
        }
        self.walked.asked = true;
        if !self.walked.stays && stays_on_tracks(bench)? {
            // What was found until then is wrong.
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

/// Whether reads behind two of the same track come at another angle than they do alone.
fn stays_on_tracks(bench: &mut Bench<'_>) -> Result<bool, ExtractError> {
    let sectors = 512.0 / f64::from(bench.probe.sector_bytes().max(512));
    let unit = bench.unit();
    let mut places = Vec::new();
    for place in 0..PLACES {
        let apart = (APART[place as usize % APART.len()] as f64 * sectors) as u64 / unit * unit;
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
            late += u64::from(near(angle - alone).abs() > LATE);
        }
    }
    Ok(seen >= LEAST && late * PART > seen)
}
