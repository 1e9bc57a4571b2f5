//! Trains a tree as often as asked: the one side of `benches/training.py`.
//!
//! Samples are epochs of the training workload and of `seq-rand` on simulated servers. Each sample is a line: features of the usual
//! tree and logarithm of the throughput, separated by commas. An empty line ends the samples.
//! Then each line of input trains a tree, with cross-validation and pruning. The answer is the number of leaves.

#[path = "../tests/it/collective.rs"]
mod collective;

use collective::{profiled, seq_rand, training};
use headtime_qos::{CartOptions, Node, Profile, Sample, Setting, TrainingOptions, grow};
use std::io::{BufRead as _, BufWriter, Write as _};

fn main() -> std::io::Result<()> {
    let servers = 9;
    let workload = profiled(
        "training",
        training(TrainingOptions::default()),
        servers,
        Setting::EPOCH,
        1,
    );
    let program = profiled("seq-rand", seq_rand(1, 3_000), servers, Setting::EPOCH, 2);
    let options = CartOptions::default();
    let samples = samples(&program, true, 0).chain(samples(&workload, false, 1 << 32));
    let samples: Vec<Sample> = samples.collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for sample in &samples {
        for feature in options.features.iter() {
            write!(out, "{},", sample.vector[feature.index()])?;
        }
        writeln!(out, "{}", sample.rate.ln())?;
    }
    writeln!(out)?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let grown = grow(&samples, &options).expect("there are epochs");
        let leaves = grown
            .tree
            .nodes()
            .iter()
            .filter(|node| matches!(node, Node::Leaf { .. }));
        writeln!(out, "{}", leaves.count())?;
        out.flush()?;
    }
    Ok(())
}

/// Samples of a profile. Groups are counted from a number on.
fn samples(profile: &Profile, is_judged: bool, from: u64) -> impl Iterator<Item = Sample> {
    profile.rows.iter().filter_map(move |row| {
        Some(Sample {
            vector: row.sums.vector(),
            rate: row.rate()?,
            seconds: row.busy.as_secs_f64(),
            is_judged,
            group: from + row.epoch,
        })
    })
}
