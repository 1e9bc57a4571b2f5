//! Five real drives, against the response times that were measured on them.
//!
//! The traces are in the folder `disksim-valid` of the recorded data (see `headtime_testkit::data`).

use headtime_disk::profile::by_name;
use headtime_disk::{Profile, validate};

/// Trace and parameter file, shipped profile, the demerit that DiskSim 4 reaches, and ours, ms.
const DRIVES: [(&str, &str, f64, f64); 5] = [
    ("ibm18es", "ibm18es", 0.136, 0.0796),
    ("cheetah9LP", "cheetah9lp", 0.108, 0.0874),
    ("atlas10k", "atlas10k", 0.268, 0.0769),
    ("barracuda", "barracuda-st32171w", 0.348, 0.2165),
    ("hp_c2247a", "hp-c2247a", 0.093, 0.0906),
];

/// Largest accepted share of DiskSim's demerit. The model is below this bound on every drive, and must never pass it.
const ACCEPTED: f64 = 1.10;

/// Largest accepted distance from the stated demerit, as a share, in either direction. The distance allows for the
/// rounding of the stated values.
const UNSTATED: f64 = 0.02;

fn check(name: &str, profile: &Profile, text: &str, disksim: f64, stated: f64) {
    let trace = validate::parse(name, text).unwrap();
    let result = validate::validate(profile, name, &trace).unwrap();
    let demerit = result.demerit_ms;
    println!(
        "{name}: {} requests, mean {:.3} measured, {:.3} modelled, demerit {demerit:.4} ms \
         (DiskSim {disksim})",
        result.requests, result.measured_ms, result.modelled_ms
    );
    assert!(
        demerit <= ACCEPTED * disksim,
        "{name}: demerit {demerit:.4} ms, DiskSim has {disksim}"
    );
    assert!(
        (demerit - stated).abs() <= UNSTATED * stated,
        "{name}: demerit {demerit:.4} ms where {stated} is stated: a regression, or else a change to \
         state in CHANGELOG.md under \"Simulated results\", in docs/validation.md and here"
    );
}

#[test]
fn imported_drives_agree_with_the_measured_traces() {
    let Some(valid) = headtime_testkit::data("disksim-valid") else {
        return;
    };
    for (name, _, disksim, stated) in DRIVES {
        let import =
            headtime_disksim::import(&valid.join(format!("{name}.parv")), &Default::default())
                .unwrap();
        let text = std::fs::read_to_string(valid.join(format!("{name}.trace"))).unwrap();
        check(name, &import.profile, &text, disksim, stated);
    }
}

#[test]
fn shipped_profiles_agree_with_the_measured_traces() {
    let Some(valid) = headtime_testkit::data("disksim-valid") else {
        return;
    };
    for (name, slug, disksim, stated) in DRIVES {
        let text = std::fs::read_to_string(valid.join(format!("{name}.trace"))).unwrap();
        check(name, &by_name(slug).unwrap(), &text, disksim, stated);
    }
}
