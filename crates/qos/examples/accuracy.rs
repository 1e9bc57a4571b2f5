//! Errors of trees on simulated servers, by the choices that the paper leaves open.
//!
//! ```text
//! cargo run --release -p headtime-qos --example accuracy -- [SERVERS] [EPOCH]
//! ```
//!
//! Each tree is trained with a run of a program and the training workload, and predicts another run of the program. A table has
//! the least error that 50, 80 and 90 % of the epochs do not exceed: of a server, and of the sum over the servers.

#[path = "../tests/it/collective.rs"]
mod collective;

use collective::{Call, profiled, seq_rand, training};
use headtime_qos::{
    CartOptions, Errors, FeatureSet, Model, Profile, Stop, TrainOptions, TrainingOptions,
};
use headtime_sched::Op;
use headtime_units::{Extent, Millionths, Nanos};
use headtime_workload::Random;

/// Errors of a model on a run, of servers and of their sums.
fn errors(model: &Model, run: &Profile) -> [Errors; 2] {
    let tree = model.tree();
    let pairs = run.rows.iter().filter_map(|row| {
        let rate = row.rate()?;
        Some((row.epoch, (tree.predict(&row.sums.vector()), rate)))
    });
    let pairs: Vec<_> = pairs.collect();
    let sums = pairs.chunk_by(|a, b| a.0 == b.0).map(|epoch| {
        let (predicted, actual): (Vec<f64>, Vec<f64>) = epoch.iter().map(|(_, pair)| *pair).unzip();
        (predicted.iter().sum(), actual.iter().sum())
    });
    let sums = Errors::of(sums);
    [Errors::of(pairs.into_iter().map(|(_, pair)| pair)), sums]
}

/// Time that a run would take at the predicted throughputs, as a multiple of the I/O time.
fn time(model: &Model, run: &Profile) -> f64 {
    let mut times = (0.0, 0.0);
    for epoch in run.rows.chunk_by(|a, b| a.epoch == b.epoch) {
        let bytes: u64 = epoch.iter().map(|row| row.sums.bytes).sum();
        let rate: f64 = epoch
            .iter()
            .map(|row| model.tree().predict(&row.sums.vector()))
            .sum();
        times.0 += bytes as f64 / rate;
        times.1 += epoch[0].busy.as_secs_f64();
    }
    times.0 / times.1
}

fn main() {
    let mut words = std::env::args().skip(1);
    let servers: u16 = words
        .next()
        .map_or(9, |word| word.parse().expect("servers"));
    let epoch = words
        .next()
        .map_or(Nanos::from_millis(100), |word| word.parse().expect("epoch"));
    let of = |name: &str, calls: Box<dyn Iterator<Item = Call>>, seed| {
        profiled(name, calls, servers, epoch, seed)
    };
    let synthetic = of(
        "synthetic",
        Box::new(training(TrainingOptions::default())),
        1,
    );
    println!(
        "synthetic: {} rows, {}",
        synthetic.rows.len(),
        synthetic.run
    );
    let programs = [
        (
            "seq-rand",
            [
                of("seq-rand", Box::new(seq_rand(1, 3_000)), 2),
                of("seq-rand", Box::new(seq_rand(2, 3_000)), 3),
            ],
        ),
        (
            "ior",
            [
                of("ior", Box::new(ior(4_000)), 4),
                of("ior", Box::new(ior(4_000)), 5),
            ],
        ),
        (
            "search",
            [
                of("search", Box::new(search(1, 2_000)), 6),
                of("search", Box::new(search(2, 2_000)), 7),
            ],
        ),
    ];
    for (name, [first, second]) in &programs {
        println!(
            "{name}: {} and {} rows, {} and {}",
            first.rows.len(),
            second.rows.len(),
            first.run,
            second.run
        );
    }
    let default = CartOptions::default();
    let all: FeatureSet = "distance,size,log-distance,sequential,reads"
        .parse()
        .expect("features");
    let set = |text: &str| text.parse::<FeatureSet>().expect("features");
    let error = |millionths| Stop::Error(Millionths(millionths));
    let choices = [
        ("default: pruned, distance,size", default),
        (
            "error 0.1",
            CartOptions {
                stop: error(100_000),
                ..default
            },
        ),
        (
            "error 0.2",
            CartOptions {
                stop: error(200_000),
                ..default
            },
        ),
        (
            "buckets of 3",
            CartOptions {
                min_bucket: 3,
                min_split: 6,
                ..default
            },
        ),
        (
            "buckets of 20",
            CartOptions {
                min_bucket: 20,
                min_split: 40,
                ..default
            },
        ),
        (
            "signed-distance,size",
            CartOptions {
                features: set("signed-distance,size"),
                ..default
            },
        ),
        (
            "log-distance,size",
            CartOptions {
                features: set("log-distance,size"),
                ..default
            },
        ),
        (
            "distance,size,sequential",
            CartOptions {
                features: set("distance,size,sequential"),
                ..default
            },
        ),
        (
            "all five",
            CartOptions {
                features: all,
                ..default
            },
        ),
        (
            "all five, error 0.1",
            CartOptions {
                features: all,
                stop: error(100_000),
                ..default
            },
        ),
    ];
    for (name, [first, second]) in &programs {
        println!(
            "\n{name:<36} leaves  server: 50  80  90 %   sum: 50  80  90 %  seen (cv): server 90, sum 90, synthetic 90"
        );
        for (choice, cart) in &choices {
            let run = std::slice::from_ref(first);
            let alone = std::slice::from_ref(&synthetic);
            let sets = [
                (*choice, run, Some(&synthetic)),
                ("  the program alone", run, None),
                ("  the training workload alone", alone, None),
            ];
            let sets = if *choice == choices[0].0 || *choice == "all five" {
                &sets[..]
            } else {
                &sets[..1]
            };
            for (set, profiles, synthetic) in sets {
                let options = TrainOptions {
                    cart: *cart,
                    segment: None,
                    enough: 1,
                };
                let trained = Model::train(profiles, *synthetic, &options).expect("trained");
                let [server, sum] = errors(&trained.model, second);
                let at =
                    |errors: &Errors, share| 100.0 * errors.quantile(share).unwrap_or(f64::NAN);
                let three = |errors: &Errors| {
                    format!(
                        "{:5.1} {:5.1} {:5.1}",
                        at(errors, 0.5),
                        at(errors, 0.8),
                        at(errors, 0.9)
                    )
                };
                println!(
                    "{set:<36} {:>6} {} {}   {:5.1} {:5.1} {:5.1}  {:.3}{}",
                    trained.model.tree().leaves(),
                    three(&server),
                    three(&sum),
                    at(&trained.servers, 0.9),
                    at(&trained.sums, 0.9),
                    at(&trained.synthetic, 0.9),
                    time(&trained.model, second),
                    if trained.is_met {
                        ""
                    } else {
                        "  threshold not met"
                    }
                );
            }
        }
    }
}

/// Eight processes read 32 KiB each, every process its own part of 256 MB (the paper's ior-mpi-io).
fn ior(calls: u64) -> impl Iterator<Item = Call> {
    (0..calls).map(|call| {
        let request = |process: u64| {
            let at = process * 524_288 + call * 64;
            (process as u32, Op::Read, Extent::at(at, 64))
        };
        Call {
            think: Nanos::ZERO,
            requests: (0..8).map(request).collect(),
        }
    })
}

/// Queries that read parts of a database at random, in sizes from 8 KiB to 1 MiB, and write results in order, as S3aSim does.
fn search(seed: u64, calls: u64) -> impl Iterator<Item = Call> {
    let mut random = Random::new(seed, 2, 0);
    let mut written = 4_000_000;
    (0..calls).map(move |call| {
        let think = Nanos::from_micros(random.below(4_000));
        let request = |process: u64| {
            let sectors = 16 << random.below(8);
            if call % 4 == 3 {
                let at = written;
                written += sectors;
                return (process as u32, Op::Write, Extent::at(at, sectors));
            }
            let at = random.below(1_000_000) / 8 * 8;
            (process as u32, Op::Read, Extent::at(at, sectors))
        };
        Call {
            think,
            requests: (0..8).map(request).collect(),
        }
    })
}
