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
    CartOptions, Errors, Model, Profile, Setting, Stop, TrainOptions, TrainingOptions,
};
use headtime_sched::Op;
use headtime_units::{Extent, Millionths, Nanos};
use headtime_workload::Random;

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

/// Names of the columns behind the name of a tree.
const COLUMNS: &str =
    "leaves   server: 50  80  90 %   sum: 50  80  90 %   90 % seen: server, sum, synthetic   time";

fn main() {
    let mut words = std::env::args().skip(1);
    let servers = words
        .next()
        .map_or(9, |word| word.parse().expect("servers"));
    let epoch = words
        .next()
        .map_or(Setting::EPOCH, |word| word.parse().expect("an epoch"));
    let synthetic = training(TrainingOptions::default());
    let synthetic = profiled("synthetic", synthetic, servers, epoch, 1);
    let calls = |program: &str, seed| -> Box<dyn Iterator<Item = Call>> {
        match program {
            "seq-rand" => Box::new(seq_rand(seed, 3_000)),
            "ior" => Box::new(ior(4_000)),
            _ => Box::new(search(seed, 2_000)),
        }
    };
    let all = "distance,size,log-distance,sequential,reads";
    // Features, threshold of the error, least samples of a leaf.
    let trees = [
        ("distance,size", None, 7),
        ("distance,size", Some(100_000), 7),
        ("distance,size", None, 3),
        ("distance,size", None, 20),
        ("signed-distance,size", None, 7),
        ("log-distance,size", None, 7),
        ("distance,size,sequential", None, 7),
        (all, None, 7),
        (all, Some(100_000), 7),
    ];
    for (program, drives) in [("seq-rand", 1), ("ior", 3), ("search", 5)] {
        let run = |seed| profiled(program, calls(program, seed), servers, epoch, drives + seed);
        let (first, second) = (run(1), run(2));
        println!(
            "\n{program}, {} and {}\n{:<60} {COLUMNS}",
            first.run, second.run, ""
        );
        for (features, error, min_bucket) in trees {
            let default = CartOptions::default();
            let cart = CartOptions {
                features: features.parse().expect("features"),
                stop: error.map_or(default.stop, |error| Stop::Error(Millionths(error))),
                min_bucket,
                ..default
            };
            let options = TrainOptions {
                cart,
                segment: None,
                enough: 1,
            };
            for (set, profile, synthetic) in [
                ("", &first, Some(&synthetic)),
                ("the program alone", &first, None),
                ("the training workload alone", &synthetic, None),
            ] {
                let trained = Model::train(std::slice::from_ref(profile), synthetic, &options);
                let trained = trained.expect("epochs");
                let [server, sum] = trained.model.errors(&second).expect("the same setting");
                let percent = |errors: &Errors, share| {
                    let error = errors.quantile(share);
                    error.map_or("     ".to_owned(), |error| format!("{:5.1}", 100.0 * error))
                };
                let three = |errors| {
                    [0.5, 0.8, 0.9]
                        .map(|share| percent(errors, share))
                        .join(" ")
                };
                let seen = [&trained.servers, &trained.sums, &trained.synthetic];
                let seen = seen.map(|errors| percent(errors, 0.9)).join(" ");
                let rule = error.map_or("pruned", |_| "error 0.1");
                println!(
                    "{:<60} {:>6}   {}   {}   {seen}   {:.3}",
                    format!("{features} {rule} {min_bucket} {set}"),
                    trained.model.tree().leaves(),
                    three(&server),
                    three(&sum),
                    time(&trained.model, &second),
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
