//! Contradictions between learned parts of a layout.

use super::Extraction;
use super::holdout::Predictor;
use super::shape::{Shape, Spared};
use super::turns::near;
use headtime_disk::Profile;

/// Addresses whose angles are compared.
const COMPARED_ADDRESSES: u64 = 2_048;
/// Least share of these addresses at equal angles.
const AGREEING_SHARE_MIN: f64 = 0.98;
/// Largest share of a disk that is spare.
const MOST_SPARE: f64 = 0.1;
/// Mean number of cylinders per zone below which zones are pieces, if most have the track length of the previous zone.
const PIECE_CYLINDERS: u32 = 64;
const WHAT_TO_DO: &str = "probe again with another --seed, and use the profile for simulation only until two seeds agree";

impl Extraction {
    /// Stores the shape of the drive, and the contradictions between the resulting profile and the walk over the tracks.
    ///
    /// Spares within a zone are accepted if the profile then places addresses where the walk found them. Otherwise the shape with spares at
    /// zone ends competes, in which each part that ends with spares is a zone. The better of the two stays.
    pub(super) fn settle(&mut self, shape: Shape, turn: f64) {
        let plain = Shape {
            spared: Spared::ZoneEnd,
            ..shape
        };
        let mut best: Option<(f64, Shape, Profile)> = None;
        for shape in [shape, plain] {
            self.shape = Some(shape);
            let Ok(profile) = self.draft() else { continue };
            let agree = self.agreement(&profile, turn);
            let is_better =
                |best: &(f64, Shape, Profile)| best.0 < AGREEING_SHARE_MIN && best.0 < agree;
            if best.as_ref().is_none_or(is_better) {
                best = Some((agree, shape, profile));
            }
        }
        self.shape = Some(best.as_ref().map_or(shape, |(_, shape, _)| *shape));
        self.contradictions = best.map_or(Vec::new(), |(agree, _, profile)| {
            contradictions(&profile, agree)
        });
    }

    /// Share of addresses for which the profile and the walk over the tracks give the same angle.
    fn agreement(&self, profile: &Profile, turn: f64) -> f64 {
        let predictor = Predictor::new(profile, turn);
        let zones = &self.walked.zones;
        let agrees = |at: &u64| {
            let lba = (at * (self.capacity / COMPARED_ADDRESSES) + at % 61).min(self.capacity - 1);
            let zone = zones.partition_point(|zone| zone.start <= lba).max(1) - 1;
            let zone = &zones[zone];
            let off = near(predictor.answered(lba) - zone.angle_of(lba));
            off.abs() * (zone.row_of(lba).slots as f64) < 0.5
        };
        (0..COMPARED_ADDRESSES).filter(agrees).count() as f64 / COMPARED_ADDRESSES as f64
    }
}

/// Contradictions of a profile, each a sentence with advice. `agree` is the share of addresses for which profile and walk agree, 0 to 1.
fn contradictions(profile: &Profile, agree: f64) -> Vec<String> {
    let zones = &profile.layout.zones;
    let geometry = &profile.geometry;
    let mut found = Vec::new();
    if agree < AGREEING_SHARE_MIN {
        let astray = 100.0 * (1.0 - agree);
        found.push(format!(
            "{astray:.0} % of sectors came at another angle than the profile has"
        ));
    }
    let places = zones
        .iter()
        .map(|zone| u64::from(zone.cylinders()) * zone.sectors_per_cylinder(geometry.heads));
    let more = places.sum::<u64>() as f64 / geometry.capacity.get() as f64 - 1.0;
    if more > MOST_SPARE {
        found.push(format!(
            "{} cylinders of {} surfaces have room for {:.0} % more sectors than the disk has",
            geometry.cylinders,
            geometry.heads,
            100.0 * more
        ));
    }
    let same = zones.windows(2).filter(|pair| {
        let of = |at: usize| (pair[at].sectors_per_track, &pair[at].by_head);
        of(0) == of(1)
    });
    let same = same.count();
    let are_short = zones.len() as u32 > geometry.cylinders / PIECE_CYLINDERS;
    if are_short && 2 * same > zones.len() {
        found.push(format!(
            "{same} of {} zones have tracks as long as the zone before them, so that zones were learned in pieces",
            zones.len()
        ));
    }
    let with_advice = |what: String| format!("{what}: {WHAT_TO_DO}");
    found.into_iter().map(with_advice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::{by_name, shipped};
    use headtime_units::Sectors;

    #[test]
    fn no_shipped_drive_contradicts_itself() {
        for shipped in shipped() {
            assert_eq!(
                contradictions(&shipped.profile(), 1.0),
                Vec::<String>::new()
            );
        }
    }

    #[test]
    fn each_contradiction_is_told_with_what_to_do() {
        let profile = by_name("cheetah9lp").unwrap();
        let half = |spec: &mut headtime_disk::Spec| {
            let all = spec.geometry.capacity.get();
            spec.geometry.capacity = Sectors::new(all / 2);
        };
        let told = contradictions(&profile.with(half).unwrap(), 0.9);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("10 % of sectors"), "{told:?}");
        assert!(told[1].contains("room for 10"), "{told:?}");
        assert!(told.iter().all(|what| what.ends_with(WHAT_TO_DO)));
    }
}
