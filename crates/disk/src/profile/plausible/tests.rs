use super::super::by_name;
use super::*;
use crate::layout::Slot;
use crate::mechanics::Mechanics;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Time};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 3_000;

/// Every seed gives a drive that passes every check, reads back from its text, and is the same again.
#[test]
fn every_seed_gives_a_drive() {
    let mut words = BTreeMap::<String, u64>::new();
    for seed in 0..SEEDS {
        let profile = plausible(seed);
        assert_eq!(profile.name, format!("plausible-{seed}"));
        if seed % 50 == 0 {
            assert_eq!(plausible(seed), profile);
            assert_eq!(by_name(&profile.name).unwrap(), profile);
        }
        let text = profile.to_toml();
        let again = Profile::from_toml("again", &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, profile, "{seed}");
        let layout = &profile.layout;
        let by_head = layout.zones.iter().any(|zone| !zone.by_head.is_empty());
        let groups = layout
            .zones
            .iter()
            .any(|zone| zone.tracks_per_surface.is_some());
        for (word, counts) in [
            (layout.order_word(), true),
            (layout.sparing_word().unwrap(), true),
            (format!("{:?}", profile.cache.write_back), true),
            (format!("{:?}", profile.cache.read_ahead), true),
            ("slips".to_owned(), layout.slipped() > 0),
            ("remaps".to_owned(), layout.remapped() > 0),
            ("by head".to_owned(), by_head),
            ("groups by zone".to_owned(), groups),
            ("adaptive".to_owned(), profile.cache.room_sectors > 0),
            (
                "second read".to_owned(),
                profile.cache.second_read_ahead_min > 0,
            ),
            (
                "512e".to_owned(),
                profile.geometry.sectors_per_physical() > 1,
            ),
            ("4Kn".to_owned(), profile.geometry.sector_bytes == 4096),
            ("writes apart".to_owned(), profile.seek.write.is_some()),
            ("queue".to_owned(), profile.queue.depth > 1),
            ("zero latency".to_owned(), profile.access.zero_latency_read),
        ] {
            *words.entry(word).or_default() += u64::from(counts);
        }
    }
    // Four orders, seven places for spares, four of the others each; none is rare.
    let rare: Vec<_> = words
        .iter()
        .filter(|(_, count)| **count < SEEDS / 50)
        .collect();
    assert!(rare.is_empty(), "{rare:?}");
    assert_eq!(words.len(), 4 + 7 + 4 + 4 + 11, "{words:?}");
}

/// Pins the generator: a seed means the same drive in every version.
#[test]
fn a_seed_means_one_drive() {
    let found = [0, 1, 2, 3, u64::MAX].map(|seed| plausible(seed).fingerprint());
    assert_eq!(found.map(|hash| format!("{hash:016x}")), PINNED);
}

const PINNED: [&str; 5] = [
    "d118fae2481bcdd0",
    "b5fa662571b8c75f",
    "a21a567c4a2d9278",
    "8d698c76917e2d55",
    "f2988d09964a8fc7",
];

/// Capacities, speeds and rates are typical of each era.
#[test]
fn drives_are_of_their_time() {
    let mut eras = BTreeSet::new();
    for seed in 0..SEEDS {
        let profile = plausible(seed);
        let bytes = profile.geometry.capacity.get() * u64::from(profile.geometry.sector_bytes);
        let [shortest, longest] = profile.layout.sectors_per_track();
        let rate = |slots: u32| {
            let per_turn = f64::from(slots) * f64::from(profile.geometry.sector_bytes);
            per_turn / profile.rotation.turn().as_millis_f64() / 1_000.0
        };
        let (inner, outer) = (rate(shortest), rate(longest));
        let year = profile.model.rsplit(' ').next().unwrap().to_owned();
        let (gb, mb_s) = match year.as_str() {
            "1993" => (0.1..7.0, 2.0..10.0),
            "1999" => (1.0..80.0, 8.0..65.0),
            "2007" => (25.0..1_500.0, 35.0..175.0),
            "2020" => (700.0..32_000.0, 130.0..360.0),
            other => panic!("{other}"),
        };
        eras.insert(year);
        assert!(gb.contains(&(bytes as f64 / 1e9)), "{seed}: {bytes} bytes");
        assert!(mb_s.contains(&outer), "{seed}: {outer} MB/s");
        assert!(
            (0.37..0.85).contains(&(inner / outer)),
            "{seed}: {inner} of {outer}"
        );
    }
    assert_eq!(eras.len(), 4);
}

/// Seek times rise with the distance, and their mean over the cylinders is plausible.
#[test]
fn seeks_have_the_shape_of_measured_ones() {
    for seed in 0..SEEDS / 10 {
        let profile = plausible(seed);
        let mechanics = Mechanics::new(&profile);
        let cylinders = profile.geometry.cylinders;
        let time = |distance: u32| mechanics.seek(distance, Op::Read).as_millis_f64();
        let far = f64::from(cylinders - 1);
        let parts: Vec<f64> = (1..=100)
            .map(|part| time((far * f64::from(part) / 100.0) as u32))
            .collect();
        assert!(
            parts.windows(2).all(|pair| pair[0] <= pair[1]),
            "{seed}: {parts:?}"
        );
        // Two random cylinders are near each other more often than far apart.
        let weighted = (1..=100_u32).zip(&parts);
        let sum: f64 = weighted
            .map(|(part, time)| f64::from(2 * (100 - part) + 1) * time)
            .sum();
        let mean = sum / 10_000.0;
        assert!((3.3..14.5).contains(&mean), "{seed}: {mean} ms");
        assert!(
            (1.6..2.3).contains(&(parts[99] / mean)),
            "{seed}: {} of {mean}",
            parts[99]
        );
        assert!(time(1) < 0.45 * mean, "{seed}: {} of {mean}", time(1));
    }
}

/// Addresses map to positions and back, at the ends of zones and around defects.
#[test]
fn addresses_of_drawn_layouts_round_trip() {
    for seed in 0..SEEDS / 10 {
        let profile = plausible(seed);
        let layout = Layout::new(&profile);
        let capacity = layout.capacity().get();
        let mut next = Lba::ZERO;
        for zone in layout.zones() {
            assert_eq!(zone.extent.start, next, "{seed}");
            next = zone.extent.end();
            let (start, len) = (zone.extent.start.get(), zone.extent.len.get());
            for lba in (0..40)
                .map(|n| start + n * n * n * 104_729 % len.max(1))
                .chain([start + len - 1])
            {
                let lba = Lba::new(lba.min(capacity - 1));
                let place = layout.locate(lba);
                assert_eq!(
                    layout.slot(place.track, place.slot),
                    Some(Slot::Data(lba)),
                    "{seed}"
                );
                assert_eq!(
                    layout.slot_angle(place.track, place.slot),
                    Some(place.angle),
                    "{seed}"
                );
                assert!(layout.track_extent_of(lba).contains(lba), "{seed}: {lba}");
            }
        }
        assert_eq!(next.get(), capacity, "{seed}");
    }
}

/// A sequential read loses no turn between tracks: the skews hide the switches.
#[test]
fn sequential_reads_lose_no_turn_between_tracks() {
    for seed in 0..SEEDS / 10 {
        let profile = plausible(seed);
        let layout = Layout::new(&profile);
        let mechanics = Mechanics::new(&profile);
        let turn = profile.rotation.turn().as_nanos() as f64;
        for zone in layout.zones() {
            let len = (u64::from(zone.sectors_per_track) * 40).min(zone.extent.len.get());
            let extent = Extent::at(zone.extent.start.get(), len);
            let from = layout.locate(extent.start).track;
            let access = mechanics.access(&layout, from, Time::ZERO, extent, Op::Read, false);
            let tracks = len as f64 / f64::from(zone.sectors_per_track);
            let turns = (access.total().as_nanos() as f64) / turn;
            // Half a turn for each step to the next track is more than any skew. Remapped sectors cost turns of their
            // own, there and back.
            let moved = profile.layout.remapped() as f64 * 4.0;
            assert!(
                turns < 1.6 * tracks + 3.0 + moved,
                "{seed}: {turns} turns for {tracks} tracks"
            );
        }
    }
}
