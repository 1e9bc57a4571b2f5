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
