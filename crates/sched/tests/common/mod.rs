//! Service curve for the tests of schedulers.

use headtime_sched::ServiceCurve;
use headtime_units::{Nanos, Sectors};
use std::sync::Arc;

/// 1 ms nearby, 10 ms far away; half as much again backward.
pub fn curve() -> Arc<ServiceCurve> {
    let points = [
        (0, 1_000),
        (2_000, 2_000),
        (50_000, 6_000),
        (800_000, 10_000),
    ];
    let points = points.map(|(distance, us)| (Sectors::new(distance), Nanos::from_micros(us)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD);
    Arc::new(curve.expect("a curve"))
}
