use super::*;
use std::path::PathBuf;

/// The directory of the measured drives, or `None` with a line that says so.
fn data() -> Option<PathBuf> {
    let root = std::env::var_os("HEADTIME_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let data = root.join("disksim-valid");
    if data.exists() {
        Some(data)
    } else {
        println!("skipped: no {}", data.display());
        None
    }
}

#[test]
fn imports_the_measured_drives() {
    let Some(data) = data() else { return };
    for (name, blocks) in [
        ("atlas10k", 17_938_986),
        ("cheetah9LP", 17_783_240),
        ("barracuda", 4_110_000),
        ("ibm18es", 17_916_240),
        ("hp_c2247a", 2_054_864),
    ] {
        let import = import(&data.join(format!("{name}.parv"))).unwrap_or_else(|e| panic!("{e}"));
        println!("{name}: {:?}", import.notes);
        assert_eq!(import.profile.geometry.capacity.get(), blocks, "{name}");
    }
}
