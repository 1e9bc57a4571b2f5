//! Limits of a walk over the tracks: the walk ends early if its rows explain no tracks, or if it is too slow for the patience.

use super::Extraction;
use super::error::ExtractError;
use super::patience::longest_step;
use super::walk::Walked;
use headtime_units::Nanos;

/// Fewest rows for a check of the number of tracks per row.
const ROWS_MIN: u64 = 128;

impl Extraction {
    /// Sets the time limit of the walk over the tracks.
    pub fn set_patience(&mut self, patience: Nanos) {
        self.patience = patience;
    }

    /// Records the progress of the walk after the time `spent`.
    ///
    /// # Errors
    ///
    /// If the tracks follow no rule, or the walk will not end within the patience.
    pub(super) fn judge(&mut self, spent: Nanos) -> Result<(), ExtractError> {
        let upto = self.walked.upto;
        self.pace.note(spent, upto);
        let (rows, tracks) = rows_and_tracks(&self.walked);
        if rows >= ROWS_MIN && rows > tracks {
            return Err(self.no_rule());
        }
        if spent.saturating_sub(self.pace.since()) > longest_step(self.patience) {
            let least = self.pace.least(self.capacity);
            if least.is_none_or(|least| least > self.patience.as_nanos() as f64) {
                return Err(self.too_slow(spent));
            }
        }
        Ok(())
    }

    /// Error for tracks that follow no rule.
    pub(super) fn no_rule(&self) -> ExtractError {
        let (rows, tracks) = rows_and_tracks(&self.walked);
        ExtractError::NoRule {
            zones: self.walked.zones.len(),
            rows,
            tracks,
            lba: self.walked.upto,
        }
    }

    /// Error for a walk that takes too long.
    pub(super) fn too_slow(&self, spent: Nanos) -> ExtractError {
        let (rows, tracks) = rows_and_tracks(&self.walked);
        let least = self.pace.least(self.capacity);
        ExtractError::TooSlow {
            spent,
            share: self.walked.upto as f64 / self.capacity.max(1) as f64,
            rows,
            tracks,
            least: least.filter(|least| least.is_finite()).map(|least| {
                // A finite limit, longer than any possible wait.
                Nanos::from_nanos(least.min(1e18) as u64)
            }),
            patience: self.patience,
        }
    }
}

/// Number of rows that were measured one by one, and number of tracks that they explain.
fn rows_and_tracks(walked: &Walked) -> (u64, u64) {
    let rows = walked.zones.iter().map(|zone| zone.rows.len() as u64).sum();
    let tracks = walked.zones.iter().map(|zone| {
        let end = zone.end.min(walked.upto);
        end.saturating_sub(zone.start) / zone.sectors_per_track().max(1)
    });
    (rows, tracks.sum())
}
