//! What probing finds out about a simulated drive, where that is wanted in place of its profile.

use super::{ExtractError, Extraction, Stage};
use crate::Modelled;
use headtime_disk::Profile;
use headtime_units::{Extent, Nanos};

/// Time of the drive's that learning it may take.
const BUDGET: Nanos = Nanos::from_secs(90 * 60);

/// Why a simulated drive was not learned.
#[derive(Debug, thiserror::Error)]
pub enum UnlearnedModel {
    /// It cannot be.
    #[error("{drive} cannot be learned: {source}")]
    Failed { drive: String, source: ExtractError },
    /// It takes too long.
    #[error("{drive} is not learned within {BUDGET} of its time: it was still at {stage:?}")]
    TooSlow { drive: String, stage: Stage },
}

/// The profile that is learned of a unit of a modelled drive, whose speed and noise are drawn from
/// `seed`. All of the drive may be written. Takes seconds of processor time: keep it.
///
/// # Errors
///
/// If the drive cannot be learned, or not within 90 minutes of its time.
pub fn profile_of(truth: &Profile, seed: u64) -> Result<Profile, UnlearnedModel> {
    let drive = || truth.name.clone();
    let failed = |source| UnlearnedModel::Failed {
        drive: drive(),
        source,
    };
    let mut probe = Modelled::new(truth, seed);
    let all = Extent::at(0, truth.geometry.capacity.get());
    let mut extraction = Extraction::new(&probe, seed).with_scratch(all);
    extraction.run(&mut probe, BUDGET).map_err(failed)?;
    match extraction.stage() {
        Stage::Done => extraction.profile().map_err(failed),
        stage => Err(UnlearnedModel::TooSlow {
            drive: drive(),
            stage,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::{Spec, by_name};
    use headtime_units::Sectors;

    #[test]
    fn a_drive_too_small_to_be_learned_is_an_error_that_names_it() {
        let smaller = |spec: &mut Spec| {
            spec.layout.zones.truncate(1);
            let zone = &mut spec.layout.zones[0];
            (zone.last_cylinder, zone.spares, zone.reserved) = (3, 0, 0);
            zone.slips = Vec::new();
            spec.geometry.cylinders = 4;
            spec.geometry.capacity = Sectors::new(1_000);
        };
        let tiny = by_name("hp-c2247a").unwrap().with(smaller).unwrap();
        let refused = profile_of(&tiny, 1).unwrap_err().to_string();
        assert!(
            refused.starts_with("hp-c2247a cannot be learned: 1000 sectors are too few"),
            "{refused}"
        );
    }
}
