//! Checks on the text of schedulers.

use headtime_disk::{Model, Profile};
use headtime_sched::{Knowledge, NoPositioning, ServiceCurve, Spec};
use headtime_units::{Nanos, Sectors};
use std::sync::{Arc, LazyLock};

/// Where sectors are, for policies that must know.
static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| {
    let text = include_str!("../seeds/profile/small.toml");
    let profile = Profile::from_toml("small.toml", text).expect("a seed is a profile");
    Arc::new(Model::new(&profile))
});

/// How long requests take, for policies that must know.
static CURVE: LazyLock<Arc<ServiceCurve>> = LazyLock::new(|| {
    let points = vec![
        (Sectors::ZERO, Nanos::from_micros(500)),
        (Sectors::new(1 << 10), Nanos::from_millis(8)),
        (Sectors::new(1 << 20), Nanos::from_millis(16)),
    ];
    let curve = ServiceCurve::new(points, ServiceCurve::BACKWARD);
    Arc::new(curve.expect("a curve"))
});

/// What a policy is built with in every target.
pub fn knowledge() -> Knowledge<Arc<Model>> {
    Knowledge {
        positioning: Some(Arc::clone(&MODEL)),
        curve: Some(Arc::clone(&CURVE)),
        handed_out_max: None,
    }
}

/// Reads `bytes` as one scheduler and as a list of them.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(spec) = text.parse::<Spec>() {
        one(&spec);
    }
    match Spec::parse_list(text) {
        Ok(list) => {
            assert!(!list.is_empty());
            let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
            assert_eq!(Spec::parse_list(&texts.join(",")), Ok(list.clone()));
            list.iter().for_each(one);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn one(spec: &Spec) {
    let text = spec.to_string();
    assert_eq!(text.parse::<Spec>().as_ref(), Ok(spec));
    assert_eq!(spec.options().count(), spec.info().options.len());
    let scheduler = spec.build(knowledge()).expect("nothing is missing");
    assert_eq!(scheduler.queued(), 0);
    let without = spec.build(None::<NoPositioning>);
    assert_eq!(
        without.is_err(),
        spec.needs().positioning || spec.needs().curve
    );
    let elevator = spec.build_elevator(knowledge());
    assert_eq!(elevator.is_err(), spec.info().waits);
}
