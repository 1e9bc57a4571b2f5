//! Five real drives, against the response times that were measured on them.
//!
//! The traces are read from where `HEADTIME_DATA` points, or from `../shared/data` beside the
//! project; without them the tests say so and do nothing.

use headtime_disk::profile::by_name;
use headtime_disk::{Profile, disksim, validate};
use std::path::PathBuf;

/// Trace and parameter file, shipped profile, and the demerit that DiskSim 4 reaches, ms.
const DRIVES: [(&str, &str, f64); 5] = [
    ("ibm18es", "ibm18es", 0.136),
    ("cheetah9LP", "cheetah9lp", 0.108),
    ("atlas10k", "atlas10k", 0.268),
    ("barracuda", "barracuda-st32171w", 0.348),
    ("hp_c2247a", "hp-c2247a", 0.093),
];

/// How much of DiskSim's demerit is accepted. The model is below it on every drive; this is the
/// bound that it must never pass.
const ACCEPTED: f64 = 1.10;

fn data() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let valid = root.join("disksim-valid");
    if !valid.is_dir() {
        println!("skipped: no validation traces at {}", valid.display());
        return None;
    }
    Some(valid)
}

fn check(name: &str, profile: &Profile, text: &str, disksim: f64) {
    let trace = validate::parse(name, text).unwrap();
    let result = validate::validate(profile, name, &trace).unwrap();
    println!(
        "{name}: {} requests, mean {:.3} measured, {:.3} modelled, demerit {:.4} ms (DiskSim {disksim})",
        result.requests, result.measured_ms, result.modelled_ms, result.demerit_ms
    );
    assert!(
        result.demerit_ms <= ACCEPTED * disksim,
        "{name}: demerit {:.4} ms, DiskSim has {disksim}",
        result.demerit_ms
    );
}

#[test]
fn imported_drives() {
    let Some(valid) = data() else { return };
    for (name, _, disksim) in DRIVES {
        let import = disksim::import(&valid.join(format!("{name}.parv"))).unwrap();
        let text = std::fs::read_to_string(valid.join(format!("{name}.trace"))).unwrap();
        check(name, &import.profile, &text, disksim);
    }
}

#[test]
fn shipped_profiles() {
    let Some(valid) = data() else { return };
    for (name, slug, disksim) in DRIVES {
        let text = std::fs::read_to_string(valid.join(format!("{name}.trace"))).unwrap();
        check(name, &by_name(slug).unwrap(), &text, disksim);
    }
}
