//! Ends a walk over the tracks that gets nowhere.

use super::Extraction;
use super::error::ExtractError;
use super::patience::longest_step;
use super::walk::Walked;
use headtime_units::Nanos;

/// Rows before it is asked how many tracks each has.
const ROWS: u64 = 128;

impl Extraction {
    /// A walk over the tracks that will take longer is ended.
    pub fn set_patience(&mut self, patience: Nanos) {
        self.patience = patience;
    }

    /// Notes how far the walk is after so much time of its own.
    ///
    /// # Errors
    ///
    /// If its tracks follow no rule, or it will not end within the patience.
    pub(super) fn judge(&mut self, spent: Nanos) -> Result<(), ExtractError> {
        let upto = self.walked.upto;
        self.pace.note(spent, upto);
        let (rows, tracks) = rows_and_tracks(&self.walked);
        if rows >= ROWS && rows > tracks {
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

    /// Tracks that follow no rule.
    pub(super) fn no_rule(&self) -> ExtractError {
        let (rows, tracks) = rows_and_tracks(&self.walked);
        ExtractError::NoRule {
            zones: self.walked.zones.len(),
            rows,
            tracks,
            lba: self.walked.upto,
        }
    }

    /// A walk that gets nowhere.
    pub(super) fn too_slow(&self, spent: Nanos) -> ExtractError {
        let (rows, tracks) = rows_and_tracks(&self.walked);
        let least = self.pace.least(self.capacity);
        ExtractError::TooSlow {
            spent,
            share: self.walked.upto as f64 / self.capacity.max(1) as f64,
            rows,
            tracks,
            least: least.filter(|least| least.is_finite()).map(|least| {
                // Nobody waits longer than that.
                Nanos::from_nanos(least.min(1e18) as u64)
            }),
            patience: self.patience,
        }
    }
}

/// Rows that were measured one by one, and the tracks that are explained by them.
fn rows_and_tracks(walked: &Walked) -> (u64, u64) {
    let rows = walked.zones.iter().map(|zone| zone.rows.len() as u64).sum();
    let tracks = walked.zones.iter().map(|zone| {
        let end = zone.end.min(walked.upto);
        end.saturating_sub(zone.start) / zone.sectors_per_track().max(1)
    });
    (rows, tracks.sum())
}
