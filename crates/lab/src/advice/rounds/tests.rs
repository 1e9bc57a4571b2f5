use super::super::today;
use super::*;

fn role(class: Class) -> Role {
    Role {
        name: "a".to_owned(),
        class,
        measure: SpeedMeasure::Requests,
    }
}

fn run(speed: f64) -> RoleRun {
    RoleRun {
        speed,
        ..RoleRun::default()
    }
}

#[test]
fn a_score_is_the_geometric_mean_of_the_speeds_over_todays() {
    let roles = [role(Class::default()), role(Class::default())];
    let of = |speeds: [f64; 2]| score(&roles, &speeds.map(run), &[10.0, 10.0].map(run));
    assert!((of([10.0, 10.0]) - 1.0).abs() < 1e-12);
    // One role twice as fast and another half as fast is no gain.
    assert!((of([20.0, 5.0]) - 1.0).abs() < 1e-12);
    assert!((of([40.0, 10.0]) - 2.0).abs() < 1e-12);
    // A role that starves ruins the score.
    assert!(of([1_000.0, 0.0]) < 0.5);
}

#[test]
fn class_idle_counts_a_quarter() {
    let roles = [role(Class::default()), role(Class::IDLE)];
    let of = |speeds: [f64; 2]| score(&roles, &speeds.map(run), &[1.0, 1.0].map(run));
    assert!((of([1.0, 16.0]) - 16.0_f64.powf(0.2)).abs() < 1e-12);
    assert!((of([2.0, 1.0 / 16.0]) - 1.0).abs() < 1e-12);
}

#[test]
fn a_role_that_starves_today_gains_if_it_is_served() {
    let roles = [role(Class::default())];
    let of = |speed, today| score(&roles, &[run(speed)], &[run(today)]);
    assert!((of(0.0, 0.0) - 1.0).abs() < 1e-12);
    assert!(of(0.1, 0.0) > 100.0);
    assert!(of(0.0, 0.1) < 0.01);
}

#[test]
fn among_equals_the_setting_that_changes_least_is_chosen() {
    let settings = ["mq-deadline@32", "noop@4", "mq-deadline@4", "mq-deadline@8"];
    let settings: Vec<DiskSetting> = settings.iter().map(|text| today(text).unwrap()).collect();
    let finalists = [0, 1, 2, 3];
    let chosen = |means: [f64; 4]| choose(&finalists, &settings, &means, Side::Linux);
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
    let cases = [(None, 1), (None, 2)];
    let of = pick(1, &[0, 1, 2], &settings, &ratios, &cases, &[]);
    assert!((of.better_percent - 50.0).abs() < 1e-9);
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
fn a_change_counts_if_it_lowers_the_score_and_not_if_it_raises_it() {
    let close = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-12, "{got} {wanted}");
    close(mean(&[Some(2.0), Some(2.0), Some(16.0)], 2), 2.0);
    close(mean(&[Some(2.0), Some(2.0), Some(0.25)], 2), 1.0);
    close(mean(&[Some(1.0), None], 1), LEAST.sqrt());
}
