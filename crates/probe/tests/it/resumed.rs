//! An extraction that is stopped, written down and read again.

use headtime_config::{Place, Table, read, to_text};
use headtime_disk::profile::by_name;
use headtime_probe::Modelled;
use headtime_probe::extract::{Extraction, Spared, Stage};
use proptest::prelude::*;

/// The extraction after it was written down and read.
fn again(extraction: &Extraction) -> Extraction {
    let text = to_text(extraction);
    let table = Table::parse("state.toml", &text).unwrap();
    read(&table, &Place::line("state.toml", 1)).unwrap()
}

/// Runs through, stopping before each step whose number `stops` says.
fn run(name: &str, seed: u64, stops: impl Fn(u32) -> bool) -> Extraction {
    let mut probe = Modelled::new(&by_name(name).unwrap(), seed);
    let mut extraction = Extraction::new(&probe, seed);
    let mut steps = 0;
    while extraction.stage() != Stage::Done {
        if stops(steps) {
            let read = again(&extraction);
            assert_eq!(read, extraction, "step {steps}");
            extraction = read;
        }
        extraction.step(&mut probe).unwrap();
        steps += 1;
    }
    extraction
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn who_stops_and_goes_on_learns_the_same_profile(
        seed in 0_u64..1_000_000,
        stops in prop::collection::vec(any::<bool>(), 64),
    ) {
        let through = run("hp-c2247a", seed, |_| false);
        let stopped = run("hp-c2247a", seed, |step| stops[step as usize % stops.len()]);
        prop_assert_eq!(&through, &stopped);
        let text = |extraction: &Extraction| extraction.profile().unwrap().to_toml();
        prop_assert_eq!(text(&through), text(&stopped));
    }
}

#[test]
fn who_stops_on_a_drive_with_spares_by_ranges_of_cylinders_learns_the_same_profile() {
    for name in ["barracuda-st32171w", "plausible-16"] {
        let through = run(name, 1, |_| false);
        let spared = through.shape.unwrap().spared;
        assert!(matches!(spared, Spared::Range(_)), "{name}: {spared:?}");
        let stopped = run(name, 1, |_| true);
        assert_eq!(through, stopped, "{name}");
        let [one, other] = [&through, &stopped].map(|extraction| extraction.profile().unwrap());
        assert_eq!(one.to_toml(), other.to_toml(), "{name}");
    }
}

#[test]
fn who_stops_while_all_sectors_are_read_finds_the_same() {
    let truth = by_name("cheetah18lp").unwrap();
    let truth = headtime_probe::accuracy::remapped(&truth, 20, 1);
    let run = |stops: bool| {
        let mut probe = Modelled::new(&truth, 1);
        let mut extraction = Extraction::new(&probe, 1);
        // Asked for when all else is known.
        while extraction.stage() != Stage::Done {
            extraction.step(&mut probe).unwrap();
        }
        extraction = extraction.with_remaps();
        assert_eq!(extraction.stage(), Stage::Remaps);
        while extraction.stage() != Stage::Done {
            if stops {
                extraction = again(&extraction);
            }
            extraction.step(&mut probe).unwrap();
        }
        extraction
    };
    let (through, stopped) = (run(false), run(true));
    assert_eq!(through, stopped);
    assert_eq!(through.remaps.found.len(), 20);
    // What is read is read once.
    assert_eq!(through.clone().with_remaps(), through);
}

#[test]
fn on_a_drive_that_was_switched_off_meanwhile_the_tracks_are_the_same() {
    // Another phase, another place of the arm, an empty buffer: what was learned is still right.
    let profile = by_name("hp-c2247a").unwrap();
    let through = run("hp-c2247a", 3, |_| false);
    let mut extraction = Extraction::new(&Modelled::new(&profile, 3), 3);
    while extraction.stage() != Stage::Done {
        let mut probe = Modelled::new(&profile, 3);
        for _ in 0..2 {
            extraction.step(&mut probe).unwrap();
        }
    }
    let [one, other] = [&through, &extraction].map(|extraction| extraction.profile().unwrap());
    assert_eq!(one.geometry, other.geometry);
    let zones = one.layout.zones.iter().zip(&other.layout.zones);
    for (one, other) in zones {
        let key = |zone: &headtime_disk::profile::Zone| {
            (
                zone.first_cylinder,
                zone.last_cylinder,
                zone.sectors_per_track,
                zone.slips.len(),
            )
        };
        assert_eq!(key(one), key(other));
    }
    assert_eq!(one.layout.zones.len(), other.layout.zones.len());
}
