//! Checks on goals, profiles of programs, and trees.

use headtime_qos::{FeatureSet, Goal, Model, Profile};

/// Reads `bytes` as a goal, features, a profile and a tree. A text that is one of these is written and read back.
///
/// # Panics
///
/// If a text reads differently after it was written.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(goal) = text.parse::<Goal>() {
        assert_eq!(goal.to_string().parse(), Ok(goal));
    }
    if let Ok(features) = text.parse::<FeatureSet>() {
        assert_eq!(features.to_string().parse(), Ok(features));
    }
    if let Ok(model) = Model::from_text(&text) {
        assert_eq!(Model::from_text(&model.to_text()), Ok(model));
    }
    if let Ok(profile) = Profile::from_text(&text) {
        for row in &profile.rows {
            assert!(row.sums.vector().iter().all(|feature| feature.is_finite()));
        }
        assert!(profile.least() <= profile.run);
        assert_eq!(Profile::from_text(&profile.to_text()), Ok(profile));
    }
}
