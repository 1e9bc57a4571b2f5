//! Checks on the reader of validation traces, and on comparing one with a model.

use headtime_disk::Profile;
use headtime_disk::validate::{parse, validate};
use std::sync::LazyLock;

/// A drive small enough to be built for every input.
static SMALL: LazyLock<Profile> = LazyLock::new(|| {
    let text = include_str!("../seeds/profile/small.toml");
    Profile::from_toml("small.toml", text).expect("a seed is a profile")
});

/// Reads `bytes` as a validation trace; if it is one, runs it on a small drive.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let trace = match parse("FILE", text) {
        Ok(trace) => trace,
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("FILE"), "{text}");
            return;
        }
    };
    assert!(!trace.is_empty());
    assert!(trace.is_sorted_by_key(|request| request.line));
    match validate(&SMALL, "FILE", &trace) {
        Ok(report) => {
            assert_eq!(report.requests, trace.len());
            assert_eq!(report.modelled.len(), trace.len());
            assert!(report.demerit_ms.is_finite() && report.demerit_ms >= 0.0);
            // Neither mean can be farther from the other than the distributions are.
            let distance = (report.measured_ms - report.modelled_ms).abs();
            assert!(distance <= report.demerit_ms * 1.000_001 + 1e-6);
        }
        Err(error) => assert!(error.to_string().starts_with("FILE"), "{error}"),
    }
}
