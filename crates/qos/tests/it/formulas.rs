//! The formulas of section 3.1 again, from the list of all requests, on random runs.

use crate::recorder::{at, recorder, setting};
use headtime_qos::{Alpha, Bounds, Feature, Model, Profile, Service, TrainOptions, Vector};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};
use headtime_workload::Random;
use std::sync::Arc;

const SERVERS: u16 = 3;

/// A request: arrival in microseconds, server, operation, sectors.
type Asked = (u64, u16, Op, Extent);

/// Random requests in order. Some are large, some follow one another, some are flushes.
pub fn drawn(seed: u64, count: u64) -> Vec<Asked> {
    let mut random = Random::new(seed, 3, 0);
    let (mut now, mut end) = (0, 0);
    let request = |_| {
        now += random.below(3) * random.below(60_000);
        let start = match random.below(3) {
            0 => end,
            _ => random.below(1 << 30),
        };
        let len = random.below(4) * random.below(700);
        end = start + len;
        let op = [Op::Read, Op::Write, Op::Read, Op::Flush][random.below(4) as usize];
        (
            now,
            random.below(SERVERS.into()) as u16,
            op,
            Extent::at(start, len),
        )
    };
    (0..count).map(request).collect()
}

/// Pieces of at most 128 KiB of a server's requests in an epoch: first byte, bytes, and whether they are read.
fn pieces(asked: &[Asked], server: u16, epoch: u64) -> Vec<(i64, i64, bool)> {
    let mut pieces = Vec::new();
    for (time, of, op, extent) in asked {
        let has_data = matches!(op, Op::Read | Op::Write);
        if *of != server || time / 100_000 != epoch || !has_data {
            continue;
        }
        let (mut byte, mut left) = (
            extent.start.get() as i64 * 512,
            extent.len.get() as i64 * 512,
        );
        while left > 0 {
            pieces.push((byte, left.min(131_072), op.is_read()));
            byte += 131_072;
            left -= 131_072;
        }
    }
    pieces
}

/// Features of an epoch at a server, by the formulas.
fn vector(asked: &[Asked], server: u16, epoch: u64) -> Option<Vector> {
    let pieces = pieces(asked, server, epoch);
    let n = pieces.len() as f64;
    let mut distances: Vec<i64> = Vec::new();
    for pair in pieces.windows(2) {
        distances.push(pair[1].0 - (pair[0].0 + pair[0].1));
    }
    if pieces.len() == 1 {
        // The formula divides by zero. The distance from the server's last earlier piece stands in.
        let earlier = (0..epoch)
            .rev()
            .find_map(|epoch| self::pieces(asked, server, epoch).pop());
        distances.extend(earlier.map(|(byte, bytes, _)| pieces[0].0 - (byte + bytes)));
    }
    let mean = |of: &dyn Fn(f64) -> f64| match distances.len() {
        0 => 0.0,
        count => {
            distances
                .iter()
                .map(|distance| of(*distance as f64))
                .sum::<f64>()
                / count as f64
        }
    };
    (n > 0.0).then(|| {
        [
            mean(&f64::abs),
            mean(&|distance| distance),
            pieces.iter().map(|piece| piece.1 as f64).sum::<f64>() / n,
            mean(&|distance| (1.0 + distance.abs()).log2()),
            mean(&|distance| f64::from(u8::from(distance == 0.0))),
            pieces.iter().filter(|piece| piece.2).count() as f64 / n,
        ]
    })
}

fn recorded(asked: &[Asked]) -> Profile {
    let mut recorder = recorder(SERVERS, Service::Program);
    for (time, server, op, extent) in asked {
        recorder.request(at(*time), *server, *op, *extent);
    }
    recorder.busy(at(0), at(asked.last().unwrap().0 + 5_000));
    recorder
        .finish(at(asked.last().unwrap().0 + 1_000_000))
        .unwrap()
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn features_of_a_profile_are_those_of_the_formulas() {
    for seed in 0..20 {
        let asked = drawn(seed, 200);
        let profile = recorded(&asked);
        let epochs = asked.last().unwrap().0 / 100_000 + 1;
        let mut rows = profile.rows.iter();
        for epoch in 0..epochs {
            for server in 0..SERVERS {
                let Some(expected) = vector(&asked, server, epoch) else {
                    continue;
                };
                let row = rows
                    .next()
                    .expect("a row for each server and epoch with requests");
                assert_eq!((row.epoch, row.server), (epoch, server));
                let found = row.sums.vector();
                for feature in Feature::ALL {
                    let (found, expected) = (found[feature.index()], expected[feature.index()]);
                    assert!(
                        is_near(found, expected),
                        "{feature:?} of {epoch}: {found}, {expected}"
                    );
                }
            }
        }
        assert!(rows.next().is_none());
    }
}

#[test]
fn a_bound_is_the_sum_of_predictions_by_the_formulas_over_alpha() {
    let asked = drawn(1, 3_000);
    let profile = recorded(&asked);
    let trained = Model::train(std::slice::from_ref(&profile), None, &by_epoch());
    let model = Arc::new(trained.unwrap().model);
    assert!(model.tree().leaves() > 1, "a tree that distinguishes");
    let run = Nanos::from_nanos(profile.run.as_nanos() * 3);
    let alpha = Alpha::new(run, &profile).unwrap();
    let (io, compute) = (profile.io.as_secs_f64(), profile.compute().as_secs_f64());
    assert!(is_near(alpha.get(), (run.as_secs_f64() - compute) / io));

    let asked = drawn(2, 500);
    let mut bounds = Bounds::new(Arc::clone(&model), alpha, 512);
    let mut next = asked.iter().peekable();
    let mut with_requests = 0;
    for epoch in 0..asked.last().unwrap().0 / 100_000 + 1 {
        while let Some((_, server, op, extent)) = next.next_if(|asked| asked.0 / 100_000 == epoch) {
            bounds.request(*server, *op, *extent);
        }
        let vectors = (0..SERVERS).filter_map(|server| vector(&asked, server, epoch));
        let rates: Vec<f64> = vectors
            .map(|vector| model.tree().predict(&vector))
            .collect();
        let sum = rates.iter().sum::<f64>() / alpha.get();
        let expected = (!rates.is_empty()).then(|| Rate(sum.round() as u64));
        let found = bounds.epoch_ends();
        let near = found
            .zip(expected)
            .is_none_or(|(a, b)| a.0.abs_diff(b.0) <= 1);
        assert!(
            found.is_some() == expected.is_some() && near,
            "{found:?} and {expected:?}"
        );
        with_requests += u32::from(found.is_some());
    }
    assert!(with_requests > 50);
}

#[test]
fn b_profile_is_bytes_over_service_time_and_servers_add_up() {
    let asked = drawn(3, 400);
    let profile = recorded(&asked);
    for epoch in profile.rows.chunk_by(|a, b| a.epoch == b.epoch) {
        let bytes: u64 = epoch.iter().map(|row| row.sums.bytes).sum();
        let sum: f64 = epoch.iter().filter_map(|row| row.rate()).sum();
        assert!(is_near(sum, bytes as f64 / epoch[0].busy.as_secs_f64()));
    }
    assert_eq!(profile.setting, setting(SERVERS, Service::Program));
    let busy: Nanos = profile
        .rows
        .chunk_by(|a, b| a.epoch == b.epoch)
        .map(|epoch| epoch[0].busy)
        .sum();
    assert_eq!(busy, profile.io);
    assert_eq!(Time::ZERO + profile.io, at(asked.last().unwrap().0 + 5_000));
}

/// Each epoch counts by itself, as in the paper.
fn by_epoch() -> TrainOptions {
    TrainOptions {
        enough: 1,
        ..TrainOptions::default()
    }
}
