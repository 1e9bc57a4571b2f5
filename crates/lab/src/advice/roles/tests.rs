use super::*;

fn role(class: Class) -> Role {
    Role {
        name: "a".to_owned(),
        class,
        measure: SpeedMeasure::Requests,
        processes: Vec::new(),
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
fn a_change_counts_if_it_lowers_the_score_and_not_if_it_raises_it() {
    let close = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-12, "{got} {wanted}");
    close(mean(&[Some(2.0), Some(2.0), Some(16.0)], 2), 2.0);
    close(mean(&[Some(2.0), Some(2.0), Some(0.25)], 2), 1.0);
    close(mean(&[Some(1.0), None], 1), LEAST.sqrt());
}
