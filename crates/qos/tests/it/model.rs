//! Models: training, files, goals.

use crate::recorder::profile;
use headtime_qos::{
    Alpha, Bounds, Feature, FeatureSet, GoalError, Model, Node, Profile, TrainError, TrainOptions,
};
use headtime_sched::Op;
use headtime_units::{Extent, Millionths, Nanos};
use headtime_workload::Random;
use std::sync::Arc;

fn model(profile: &Profile) -> Model {
    let profiles = std::slice::from_ref(profile);
    Model::train(profiles, None, &by_epoch()).unwrap().model
}

/// Bounds of a sequential epoch and of a random epoch.
fn bounds(model: &Arc<Model>, alpha: Alpha) -> [u64; 2] {
    let mut bounds = Bounds::new(Arc::clone(model), alpha, 512);
    let mut epoch = |distance: u64| {
        for nth in 0..10 {
            bounds.request(0, Op::Read, Extent::at(nth * (64 + distance), 64));
        }
        bounds.epoch_ends().unwrap().0
    };
    [epoch(0), epoch(90_000_000)]
}

#[test]
fn one_model_serves_every_goal() {
    let profile = profile(1);
    let model = Arc::new(model(&profile));
    let multiple = |times: u64| Nanos::from_nanos(profile.run.as_nanos() * times);
    let alphas = [1, 2, 5, 40].map(|times| Alpha::new(multiple(times), &profile).unwrap());
    let [one, others @ ..] = alphas;
    assert!(
        (one.get() - 1.0).abs() < 1e-12,
        "the goal is the profile's run time"
    );
    let at_one = bounds(&model, one);
    assert!(
        at_one[0] > 5 * at_one[1],
        "sequential and random epochs differ: {at_one:?}"
    );
    for alpha in others {
        let scaled = at_one.map(|rate| rate as f64 / alpha.get());
        for (found, expected) in bounds(&model, alpha).into_iter().zip(scaled) {
            assert!(
                (found as f64 - expected).abs() <= 1.0,
                "{found} and {expected}"
            );
        }
    }
}

#[test]
fn another_goal_in_the_middle_of_a_run_counts_from_the_current_epoch_on() {
    let profile = profile(1);
    let twice = Nanos::from_nanos(profile.run.as_nanos() * 2);
    let [alpha, later] = [profile.run, twice].map(|run| Alpha::new(run, &profile).unwrap());
    let mut bounds = Bounds::new(Arc::new(model(&profile)), alpha, 512);
    bounds.request(1, Op::Read, Extent::at(0, 64));
    bounds.set_alpha(later);
    let at_once = bounds.epoch_ends().unwrap();
    bounds.request(1, Op::Read, Extent::at(64, 64));
    assert_eq!(bounds.epoch_ends(), Some(at_once));
    assert_eq!(bounds.epoch_ends(), None, "no request came");
}

#[test]
fn a_goal_below_the_compute_time_or_the_run_alone_names_the_least_possible() {
    let mut profile = profile(1);
    let (compute, run) = (profile.compute(), profile.run);
    let error = |run_time, profile: &Profile| Alpha::new(run_time, profile).unwrap_err();
    assert_eq!(
        error(compute, &profile).to_string(),
        format!(
            "the goal of {compute} is shorter than the compute time, {compute}; the least possible is {run}"
        )
    );
    let least = Nanos::from_nanos(run.as_nanos() - 1);
    assert!(matches!(error(least, &profile), GoalError::Impossible { least, .. } if least == run));
    // With half of the servers the I/O took twice as long.
    profile.setting.share = Millionths(500_000);
    let half = compute + Nanos::from_nanos(profile.io.as_nanos() / 2);
    assert_eq!(profile.least(), half);
    assert!(Alpha::new(half, &profile).is_ok());
    profile.io = Nanos::ZERO;
    assert_eq!(error(run, &profile), GoalError::NoIo);
}

#[test]
fn equal_profiles_give_equal_models_to_the_byte_and_files_are_read_as_written() {
    let models = [1, 1, 2].map(|seed| model(&profile(seed)));
    let texts = models.each_ref().map(Model::to_text);
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
    assert_eq!(Model::from_text(&texts[0]).as_ref(), Ok(&models[0]));
}

#[test]
fn each_changed_byte_and_each_missing_end_of_a_model_is_an_error() {
    let text = model(&profile(1)).to_text();
    assert!(text.contains("\nsplit "));
    for nth in 0..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[nth] ^= 1;
        let changed = String::from_utf8(bytes).unwrap();
        assert!(Model::from_text(&changed).is_err(), "byte {nth}");
        assert!(Model::from_text(&text[..nth]).is_err(), "cut off at {nth}");
    }
}

#[test]
fn a_tree_with_a_missing_or_a_further_node_is_refused() {
    let text = model(&profile(1)).to_text();
    let leaf = text.lines().find(|line| line.starts_with("leaf")).unwrap();
    let error = |to: &str| {
        Model::from_text(&text.replacen(leaf, to, 1))
            .unwrap_err()
            .to_string()
    };
    assert!(error(&format!("{leaf}\n{leaf}\n{leaf}")).contains("the tree is damaged"));
    let without = text.replacen(&format!("{leaf}\n"), "", 1);
    let without = Model::from_text(&without).unwrap_err().to_string();
    assert!(without.contains("the tree is damaged"), "{without}");
    for bad in [
        "leaf 0 5",
        "leaf -1 5",
        "leaf NaN 5",
        "leaf 1e999 5",
        "leaf 1",
        "twig 1 5",
        "split speed 1 5",
    ] {
        let error = error(bad);
        assert!(
            error.starts_with("line 9: ") || error.starts_with("line 10: "),
            "{error}"
        );
        assert!(
            error.contains(&format!("`{bad}` is no node; allowed are `split FEATURE")),
            "{error}"
        );
    }
    let profile = profile(1).to_text();
    assert!(
        Model::from_text(&profile)
            .unwrap_err()
            .to_string()
            .starts_with("line 1: no tree")
    );
}

#[test]
fn profiles_of_another_site_program_or_manner_do_not_train_together() {
    let first = profile(1);
    let error = |change: fn(&mut Profile)| {
        let mut second = profile(2);
        change(&mut second);
        Model::train(&[first.clone(), second], None, &by_epoch())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(|p| p.setting.site = "other".to_owned()),
        "profile 2: site is `other`; `site` is needed, as in the first profile"
    );
    assert!(
        error(|p| p.setting.program = "other".to_owned())
            .contains("program is `other`; `program` is needed")
    );
    assert!(
        error(|p| p.setting.share = Millionths(500_000)).contains("share is `0.5`; `1` is needed")
    );
    assert!(error(|p| p.setting.epoch = Nanos::from_millis(40)).contains("epoch is `40ms`"));
    let mut synthetic = profile(3);
    synthetic.setting.program = "synthetic".to_owned();
    let train = |synthetic: &Profile| {
        Model::train(std::slice::from_ref(&first), Some(synthetic), &by_epoch())
    };
    assert!(
        train(&synthetic).is_ok(),
        "the training workload is another program"
    );
    synthetic.setting.servers = 9;
    assert!(
        train(&synthetic)
            .unwrap_err()
            .to_string()
            .starts_with("synthetic profile: servers is `9`")
    );
    let expected = first
        .setting
        .expect("site", "mouse")
        .unwrap_err()
        .to_string();
    assert_eq!(expected, "program is `program`; `mouse` is needed");
}

#[test]
fn the_program_decides_on_the_size_of_the_tree_and_not_a_noisy_training_workload() {
    let mut options = TrainOptions::default();
    options.cart.features = FeatureSet::of(&[Feature::Distance]);
    let mut program = profile(1);
    for row in &mut program.rows {
        let is_sequential = row.sums.distance < 1 << 20;
        let rate = if is_sequential { 10.5e6 } else { 10e6 };
        row.busy = Nanos::from_nanos((row.sums.bytes as f64 / rate * 1e9) as u64);
    }
    let mut noisy = profile(3);
    let mut random = Random::new(1, 0, 0);
    for row in &mut noisy.rows {
        row.sums.distance = (1 << 50) + random.below(1 << 50);
        row.busy = Nanos::from_millis(1 << random.below(12));
    }
    let profiles = std::slice::from_ref(&program);
    let trained = Model::train(profiles, Some(&noisy), &options).unwrap();
    let alone = Model::train(std::slice::from_ref(&noisy), None, &options);
    assert_eq!(
        alone.unwrap().model.tree().leaves(),
        1,
        "noise has no structure"
    );
    for row in &program.rows {
        let (predicted, actual) = (
            trained.model.tree().predict(&row.sums.vector()),
            row.rate().unwrap(),
        );
        assert!(
            (predicted / actual - 1.0).abs() < 0.01,
            "{predicted} and {actual}"
        );
    }
}

#[test]
fn too_few_epochs_and_epochs_without_time_train_no_model() {
    let train = |profile: &Profile| Model::train(std::slice::from_ref(profile), None, &by_epoch());
    assert_eq!(
        Model::train(&[], None, &by_epoch()),
        Err(TrainError::NoProfile)
    );
    let mut one = profile(1);
    one.rows.retain(|row| row.epoch == 3);
    let error = train(&one).unwrap_err().to_string();
    assert!(
        error.starts_with("program `program`: 1 epochs with throughput are too few"),
        "{error}"
    );
    let mut untimed = profile(1);
    untimed.rows[4].busy = Nanos::ZERO;
    untimed.rows[7].busy = Nanos::ZERO;
    assert_eq!(train(&untimed).unwrap().untimed, 2);
    untimed
        .rows
        .iter_mut()
        .for_each(|row| row.busy = Nanos::ZERO);
    assert!(matches!(train(&untimed), Err(TrainError::TooFew { .. })));
}

#[test]
fn a_path_leads_to_the_prediction_by_its_questions() {
    let profile = profile(1);
    let model = model(&profile);
    for row in &profile.rows {
        let vector = row.sums.vector();
        let path: Vec<&Node> = model.tree().path(&vector).collect();
        let (last, questions) = path.split_last().unwrap();
        assert!(matches!(last, Node::Leaf { rate, .. } if *rate == model.tree().predict(&vector)));
        let asked = |node: &&&Node| matches!(node, Node::Split { feature, .. } if [Feature::Distance, Feature::Size].contains(feature));
        assert!(!questions.is_empty() && questions.iter().all(|node| asked(&node)));
    }
}

/// Each epoch counts by itself, as in the paper.
fn by_epoch() -> TrainOptions {
    TrainOptions {
        enough: 1,
        ..TrainOptions::default()
    }
}
