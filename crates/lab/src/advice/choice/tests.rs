use super::super::today;
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
