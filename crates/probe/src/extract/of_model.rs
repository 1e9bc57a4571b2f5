//! Results of probing a simulated drive, for uses in place of the drive's own profile.

use super::{ExtractError, Extraction, Stage};
use crate::{Modelled, Probe};
use headtime_disk::Profile;
use headtime_units::{Extent, Nanos};

/// Drive time within which a drive must be learned.
const BUDGET: Nanos = Nanos::from_secs(90 * 60);

/// Reasons why a simulated drive was not learned.
#[derive(Debug, thiserror::Error)]
pub enum UnlearnedModel {
    /// The drive cannot be learned.
    #[error("{drive} cannot be learned: {source}")]
    Failed { drive: String, source: ExtractError },
    /// Learning takes too long.
    #[error("{drive} is not learned within {budget} of its time: it was still at {stage:?}")]
    TooSlow {
        drive: String,
        budget: Nanos,
        stage: Stage,
    },
}

/// Learns the profile of a unit of a modelled drive. Speed and noise of the unit are drawn from `seed`, and all of the drive may be
/// written. The call takes seconds of processor time, so callers should save the result.
///
/// # Errors
///
/// If the drive cannot be learned within 90 minutes of its time.
pub fn profile_of(truth: &Profile, seed: u64) -> Result<Profile, UnlearnedModel> {
    let mut probe = Modelled::new(truth, seed);
    let all = Extent::at(0, truth.geometry.capacity.get());
    let extraction = Extraction::new(&probe, seed).with_scratch(all);
    let extraction = run_model(extraction, &mut probe, BUDGET)?;
    extraction.profile().map_err(failed(&probe))
}

/// Learns a modelled drive within `budget` of its time, completely enough for a profile.
///
/// # Errors
///
/// If the drive cannot be learned in that time.
pub fn run_model(
    mut extraction: Extraction,
    probe: &mut Modelled,
    budget: Nanos,
) -> Result<Extraction, UnlearnedModel> {
    extraction.run(probe, budget).map_err(failed(probe))?;
    match extraction.stage() {
        Stage::Done => extraction.profile().map_err(failed(probe))?,
        stage => {
            return Err(UnlearnedModel::TooSlow {
                drive: probe.name(),
                budget,
                stage,
            });
        }
    };
    Ok(extraction)
}

fn failed(probe: &Modelled) -> impl Fn(ExtractError) -> UnlearnedModel {
    let drive = probe.name();
    move |source| UnlearnedModel::Failed {
        drive: drive.clone(),
        source,
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
            refused.starts_with(
                "hp-c2247a cannot be learned: it has too few sectors to learn anything from, 1000"
            ),
            "{refused}"
        );
    }
}
