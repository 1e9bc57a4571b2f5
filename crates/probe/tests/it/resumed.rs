//! An extraction that is stopped, written down and read again.

use super::toys;
use headtime_config::{Place, Table, read, to_text};
use headtime_disk::profile::{Profile, by_name};
use headtime_probe::extract::{ExtractError, Extraction, Spared, Stage};
use headtime_probe::{Answer, Modelled, Probe, ProbeError, Stopping};
use headtime_units::Nanos;
use proptest::prelude::*;

/// The extraction after it was written down and read.
fn again(extraction: &Extraction) -> Extraction {
    let text = to_text(extraction);
    let table = Table::parse("state.toml", &text).unwrap();
    read(&table, &Place::line("state.toml", 1)).unwrap()
}

/// Runs a probe and stops before each step for which `stops` is true. Returns the learned values and, for a refused
/// drive, the reason.
fn run_or_refuse(
    truth: &Profile,
    seed: u64,
    stops: impl Fn(u32) -> bool,
) -> (Extraction, Option<String>) {
    let mut probe = Modelled::new(truth, seed);
    let mut extraction = Extraction::new(&probe, seed);
    let mut steps = 0;
    while extraction.stage() != Stage::Done {
        if stops(steps) {
            let read = again(&extraction);
            assert_eq!(read, extraction, "step {steps}");
            extraction = read;
        }
        if let Err(why) = extraction.step(&mut probe) {
            return (extraction, Some(why.to_string()));
        }
        steps += 1;
    }
    (extraction, None)
}

/// As `run_or_refuse`, for a drive that is not refused.
fn run(truth: &Profile, seed: u64, stops: impl Fn(u32) -> bool) -> Extraction {
    let (extraction, why) = run_or_refuse(truth, seed, stops);
    assert_eq!(why, None);
    extraction
}

/// A drive with answers that come later by up to `most` nanoseconds. The time alone determines the delay, also after
/// a break.
struct Varying {
    drive: Modelled,
    most: u64,
}

impl headtime_probe::Layer for Varying {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let answer = self.drive.answer()?;
        let mixed = answer.at.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let late = Nanos::from_nanos((mixed * self.most) >> 32);
        self.drive.pause(late);
        Ok(Answer {
            at: answer.at + late,
            ..answer
        })
    }
}

/// Learns a drive that is switched on anew for each step, as the command does it, with stops at these commands.
/// Returns the learned values, and the reason for an early end.
fn run_told(truth: &Profile, (seed, most): (u64, u64), stops: &[u64]) -> (Extraction, String) {
    let mut extraction = Extraction::new(&Modelled::new(truth, seed), seed);
    let mut commands = 0;
    while extraction.stage() != Stage::Done {
        let mut drive = Modelled::new(truth, seed);
        drive.pause(extraction.spent);
        let mut stop = |_| {
            commands += 1;
            stops.contains(&commands)
        };
        let mut varying = Varying { drive, most };
        match extraction.step_or_stay(&mut Stopping::new(&mut varying, &mut stop)) {
            Ok(_) => {}
            Err(ExtractError::Probe(ProbeError::Stopped)) => extraction = again(&extraction),
            Err(error) => return (extraction, error.to_string()),
        }
    }
    (extraction, String::new())
}

/// Drives with a small buffer, and a drive whose large buffer makes the probe read no place twice.
fn drives() -> impl Strategy<Value = Profile> {
    let all = vec![toys::little(), toys::roomy(), by_name("hp-c2247a").unwrap()];
    prop::sample::select(all)
}

fn text(extraction: &Extraction) -> Option<String> {
    Some(extraction.profile().ok()?.to_toml())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(16), ..ProptestConfig::default() })]
    #[test]
    fn who_stops_and_goes_on_learns_the_same_profile(
        truth in drives(),
        seed in 0_u64..1_000_000,
        stops in prop::collection::vec(any::<bool>(), 64),
    ) {
        let (through, why) = run_or_refuse(&truth, seed, |_| false);
        let (stopped, other) = run_or_refuse(&truth, seed, |step| stops[step as usize % stops.len()]);
        prop_assert_eq!(&through, &stopped);
        prop_assert_eq!(&why, &other);
        prop_assert_eq!(why, None);
        prop_assert!(text(&through).is_some());
        prop_assert_eq!(text(&through), text(&stopped));
    }

    #[test]
    fn who_is_stopped_at_any_commands_and_goes_on_learns_the_same_profile(
        truth in drives(),
        seed in 0_u64..1_000_000,
        // Where answers vary, looks are several reads, or one under a large buffer.
        most in prop::sample::select(vec![0_u64, 1_000]),
        stops in prop::collection::vec(0_u64..60_000, 1..30),
    ) {
        let (through, why) = run_told(&truth, (seed, most), &[]);
        let (stopped, other) = run_told(&truth, (seed, most), &stops);
        prop_assert_eq!(&why, "");
        prop_assert_eq!(why, other);
        prop_assert_eq!(text(&through), text(&stopped));
        // The state keeps no results of interrupted steps.
        prop_assert_eq!(again(&through), again(&stopped));
    }
}

/// Answers that come while the host is busy are older than the host's next command.
#[test]
fn answers_may_be_older_than_the_command_that_is_sent_next() {
    let (_, why) = run_told(&toys::roomy(), (483_107, 1_000), &[]);
    assert_eq!(why, "");
}

#[test]
fn a_drive_with_a_large_buffer_is_learned() {
    let truth = toys::roomy();
    for seed in 0..3 {
        let learned = run(&truth, seed, |_| false);
        assert!(text(&learned).is_some(), "{seed}");
    }
}

#[test]
fn who_stops_on_a_drive_with_spares_by_ranges_of_cylinders_learns_the_same_profile() {
    // The ranges of the second drive do not fit where the walk found its sectors: each is a zone.
    for (name, are_ranges) in [("barracuda-st32171w", true), ("plausible-16", false)] {
        let truth = by_name(name).unwrap();
        let through = run(&truth, 1, |_| false);
        let spared = through.shape.unwrap().spared;
        let is_range = matches!(spared, Spared::Range(_));
        assert_eq!(is_range, are_ranges, "{name}: {spared:?}");
        let stopped = run(&truth, 1, |_| true);
        assert_eq!(through, stopped, "{name}");
        let [one, other] = [&through, &stopped].map(|extraction| extraction.profile().unwrap());
        assert_eq!(one.to_toml(), other.to_toml(), "{name}");
    }
}

#[test]
fn who_stops_while_all_sectors_are_read_finds_the_same() {
    let truth = by_name("cheetah18lp").unwrap();
    let truth = headtime_lab::accuracy::remapped(&truth, 20, 1);
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
    // A probe for remapped sectors does not begin again.
    assert_eq!(through.clone().with_remaps(), through);
}

#[test]
fn on_a_drive_that_was_switched_off_meanwhile_the_tracks_are_the_same() {
    // The drive has another phase, another place of the arm and an empty buffer. The learned values are still right.
    let profile = by_name("hp-c2247a").unwrap();
    let through = run(&profile, 3, |_| false);
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
