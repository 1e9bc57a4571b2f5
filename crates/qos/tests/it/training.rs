//! The training workload.

use headtime_qos::{Training, TrainingOptions, TrainingRequest};
use headtime_sched::Op;
use headtime_units::{Bytes, Sectors};
use std::collections::BTreeSet;

const AREA: Sectors = Sectors::new(40_000_000);

fn requests(seed: u64) -> Vec<TrainingRequest> {
    let options = TrainingOptions {
        seed,
        ..TrainingOptions::default()
    };
    Training::new(options, AREA, 512).collect()
}

/// Distances of requests that are not sequential, in bytes.
fn distances(requests: &[TrainingRequest]) -> Vec<u64> {
    let pairs = requests.windows(2);
    let distances = pairs.map(|pair| {
        pair[1]
            .extent
            .start
            .get()
            .abs_diff(pair[0].extent.end().get())
    });
    distances
        .filter(|distance| *distance > 0)
        .map(|sectors| sectors * 512)
        .collect()
}

#[test]
fn there_are_20_000_requests_of_eight_processes_in_turn() {
    let requests = requests(1);
    assert_eq!(requests.len(), 20_000);
    for (nth, request) in (0..).zip(&requests) {
        assert_eq!(
            (request.call, u64::from(request.process)),
            (nth / 8, nth % 8)
        );
        assert!(request.extent.end().get() <= AREA.get());
        assert!(request.extent.start.get() % 8 == 0);
    }
    assert_eq!(requests, self::requests(1));
    assert_ne!(requests, self::requests(2));
}

#[test]
fn sizes_are_4_to_128_kib_uniformly() {
    let requests: Vec<_> = (0..5).flat_map(requests).collect();
    let mut counts = [0_u64; 33];
    for request in &requests {
        counts[request.extent.len.get() as usize / 8] += 1;
    }
    let mean = requests.len() as f64 / 32.0;
    assert_eq!(counts[0], 0);
    assert!(
        counts[1..]
            .iter()
            .all(|count| (*count as f64 / mean - 1.0).abs() < 0.5),
        "{counts:?}"
    );
}

#[test]
fn small_distances_have_smaller_steps_and_the_longest_is_the_reach() {
    let distances: Vec<u64> = (0..5)
        .flat_map(|seed| self::distances(&requests(seed)))
        .collect();
    let share = |from: u64, to: u64| {
        let count = distances
            .iter()
            .filter(|distance| (from..to).contains(*distance))
            .count();
        count as f64 / distances.len() as f64
    };
    // Each factor of 16 between 64 KiB and 4 GiB has nearly as many.
    let shares: Vec<f64> = (0..4)
        .map(|nth| share(65_536 << (4 * nth), 65_536 << (4 * nth + 4)))
        .collect();
    assert!(
        shares.iter().all(|share| (0.12..0.28).contains(share)),
        "{shares:?}"
    );
    let distinct: BTreeSet<u64> = distances.iter().copied().collect();
    assert!(distinct.len() > 500, "not the doublings alone");
    assert!(
        share(10_000_000_001, u64::MAX) < 0.02,
        "beyond the reach are the far ends alone"
    );
}

#[test]
fn sequential_requests_and_reads_are_drawn_anew_every_eight_calls() {
    let requests = requests(1);
    let shares = |of: &dyn Fn(&[TrainingRequest]) -> bool| -> Vec<f64> {
        let share = |pattern: &[TrainingRequest]| {
            pattern.windows(2).filter(|pair| of(pair)).count() as f64 / 63.0
        };
        requests.chunks_exact(64).map(share).collect()
    };
    let sequential = shares(&|pair| pair[0].extent.end() == pair[1].extent.start);
    let reads = shares(&|pair| pair[0].op == Op::Read);
    for shares in [sequential, reads] {
        let share = |from: f64, to: f64| {
            let count = shares
                .iter()
                .filter(|share| (from..=to).contains(*share))
                .count();
            count as f64 / shares.len() as f64
        };
        for (from, to) in [(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)] {
            assert!(share(from, to) > 0.1, "{from} to {to}: {}", share(from, to));
        }
    }
}

#[test]
fn a_small_area_and_a_reach_of_nothing_are_no_trouble() {
    for (reach, area) in [
        (0, 256),
        (4_096, 256),
        (10_000_000_000, 256),
        (10_000_000_000, 300),
    ] {
        let options = TrainingOptions {
            reach: Bytes(reach),
            requests: 1_000,
            ..TrainingOptions::default()
        };
        for sector_bytes in [512, 4096] {
            let area = Sectors::new(area * 512 / u64::from(sector_bytes));
            let mut requests = Training::new(options, area, sector_bytes);
            assert!(requests.all(|request| request.extent.end().get() <= area.get()));
        }
    }
}
