//! A model predicts another run of a program on simulated servers.

use crate::collective::{profiled, seq_rand, training};
use headtime_qos::{Errors, Model, Setting, TrainOptions, TrainingOptions};

#[test]
fn a_model_predicts_another_run_far_better_than_the_average_throughput_does() {
    let run = |seed| profiled("seq-rand", seq_rand(seed, 600), 2, Setting::EPOCH, seed);
    let options = TrainingOptions {
        requests: 2_000,
        ..TrainingOptions::default()
    };
    let synthetic = profiled("synthetic", training(options), 2, Setting::EPOCH, 3);
    let (first, second) = (run(1), run(2));
    let trained = Model::train(
        std::slice::from_ref(&first),
        Some(&synthetic),
        &TrainOptions::default(),
    );
    let trained = trained.unwrap();
    let tree = trained.model.tree();
    let bytes: u64 = first.rows.iter().map(|row| row.sums.bytes).sum();
    let average = bytes as f64 / first.io.as_secs_f64();
    let (mut time, mut by_tree, mut by_average) = (0.0, Vec::new(), Vec::new());
    for epoch in second.rows.chunk_by(|a, b| a.epoch == b.epoch) {
        let bytes: u64 = epoch.iter().map(|row| row.sums.bytes).sum();
        let actual = bytes as f64 / epoch[0].busy.as_secs_f64();
        let rate = epoch
            .iter()
            .map(|row| tree.predict(&row.sums.vector()))
            .sum();
        time += bytes as f64 / rate;
        by_tree.push((rate, actual));
        by_average.push((average, actual));
    }
    let ratio = time / second.io.as_secs_f64();
    assert!(
        (0.9..1.1).contains(&ratio),
        "predicted I/O time over I/O time: {ratio}"
    );
    let [tree, average] =
        [by_tree, by_average].map(|pairs| Errors::of(pairs).quantile(0.8).unwrap());
    assert!(
        tree < average / 2.0,
        "80 % of the epochs are within {tree}, by the average within {average}"
    );
}
