use super::super::{RoleRun, SpeedMeasure, today};
use super::*;

#[test]
fn among_equals_the_setting_that_changes_least_is_chosen() {
    let settings = ["mq-deadline@32", "noop@4", "mq-deadline@4", "mq-deadline@8"];
    let settings: Vec<DiskSetting> = settings.iter().map(|text| today(text).unwrap()).collect();
    let finals: Vec<&DiskSetting> = settings.iter().collect();
    let chosen = |means: [f64; 4]| choose(&finals, &means, Side::Linux);
    assert_eq!(chosen([1.0, 2.0, 1.99, 1.98]), 3);
    assert_eq!(chosen([1.0, 2.0, 1.99, 1.5]), 2);
    assert_eq!(chosen([1.0, 2.0, 1.5, 1.5]), 1);
    assert_eq!(chosen([1.0, 1.02, 1.01, 1.0]), 0);
}

#[test]
fn a_recommendation_says_under_which_changes_it_fails() {
    let settings = ["mq-deadline@32", "noop@4", "mq-deadline@4"];
    let settings: Vec<DiskSetting> = settings.iter().map(|text| today(text).unwrap()).collect();
    // By finalist, by case: seeds 1 and 2.
    let ratios = [
        vec![Some(1.0), Some(1.0)],
        vec![Some(2.0), Some(0.5)],
        vec![Some(1.9), Some(0.8)],
    ];
    let cases = ["seed 1".to_owned(), "seed 2".to_owned()];
    let finals: Vec<&DiskSetting> = settings.iter().collect();
    let of = pick(1, 7, &finals, &ratios, &cases);
    assert_eq!((of.tried, of.is_today()), (7, false));
    assert!((of.no_worse_percent - 50.0).abs() < 1e-9);
    assert_eq!(of.worse_if, [("seed 2".to_owned(), 0.5)]);
    assert_eq!(of.beaten_if.len(), 1);
    let (name, setting, ratio) = &of.beaten_if[0];
    assert_eq!(
        (name.as_str(), setting.as_str()),
        ("seed 2", settings[0].to_string().as_str())
    );
    assert!((ratio - 2.0).abs() < 1e-9);
}

#[test]
fn a_scan_that_reads_comes_before_a_cheap_one_and_a_cheap_one_before_a_fast_one() {
    let scan = |mb_s: f64, cost: f64| GapScan {
        mb_s,
        days: 1.0,
        cost,
        short_queue: false,
    };
    for (one, other, better) in [
        ((0.0, 1.0), (10.0, 0.8), 10.0),
        ((5.0, 0.99), (20.0, 0.8), 5.0),
        ((5.0, 0.99), (20.0, 0.96), 20.0),
        // Both cost much: the cheaper.
        ((5.0, 0.9), (20.0, 0.8), 5.0),
    ] {
        let [one, other] = [one, other].map(|(mb_s, cost)| scan(mb_s, cost));
        let of = [(one.clone(), other.clone()), (other, one)];
        for (one, other) in of {
            assert!((better_scan(one, other).mb_s - better).abs() < 1e-9);
        }
    }
}

/// Setting, score, then speed and 99th percentile of each role.
type Row<'a> = (&'a str, f64, [(f64, f64); 2]);

/// A load of a database and a resync of class idle.
fn two_roles(settings: &[Row<'_>]) -> (Vec<Role>, Vec<Tried>) {
    let role = |name: &str, class| Role {
        name: name.to_owned(),
        class,
        measure: SpeedMeasure::Requests,
        processes: Vec::new(),
    };
    let roles = vec![role("db", Class::BEST_EFFORT), role("resync", Class::IDLE)];
    let tried = settings.iter().map(|(setting, score, runs)| Tried {
        setting: today(setting).unwrap(),
        roles: runs
            .map(|(speed, p99_ms)| RoleRun {
                speed,
                p99_ms,
                ..RoleRun::default()
            })
            .to_vec(),
        score: *score,
        second_round: false,
    });
    let tried = tried.collect();
    (roles, tried)
}

#[test]
fn a_setting_that_halves_the_slowest_requests_of_a_role_is_named_beside_the_recommended_one() {
    let chosen = ("mq-deadline@32", 1.0, [(74.0, 1_050.0), (1_277.0, 20.0)]);
    let quick = ("mq-deadline@4", 0.9, [(101.0, 116.0), (386.0, 2_000.0)]);
    let better = ("noop@4", 1.0, [(90.0, 500.0), (700.0, 900.0)]);
    let of = |settings: &[_]| {
        let (roles, tried) = two_roles(settings);
        quicker(&roles, &tried, 0).map(|quicker| (quicker.tried, quicker.role))
    };
    assert_eq!(of(&[chosen, quick]), Some((1, 0)));
    // The better score counts among those that help.
    assert_eq!(of(&[chosen, quick, better]), Some((2, 0)));
    // No help: as slow, slower itself, too dear, starving, or nobody waits.
    assert_eq!(of(&[chosen]), None);
    assert_eq!(
        of(&[chosen, ("noop@4", 0.9, [(101.0, 600.0), (386.0, 2_000.0)])]),
        None
    );
    assert_eq!(
        of(&[chosen, ("noop@4", 0.9, [(70.0, 116.0), (386.0, 2_000.0)])]),
        None
    );
    assert_eq!(
        of(&[chosen, ("noop@4", 0.4, [(101.0, 116.0), (386.0, 2_000.0)])]),
        None
    );
    assert_eq!(
        of(&[chosen, ("noop@4", 0.9, [(101.0, 116.0), (100.0, 2_000.0)])]),
        None
    );
    assert_eq!(
        of(&[("noop@32", 1.0, [(74.0, 40.0), (9.0, 900.0)]), quick]),
        None
    );
}
