//! A smooth curve through measured means that never falls.

use headtime_units::{Nanos, Sectors};

/// Measurement at a distance, with the value of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Sectors from the end of the first request to the start of the second: the geometric mean of all samples.
    pub distance: Sectors,
    /// Mean of the samples.
    pub mean: Nanos,
    /// Standard deviation of the samples.
    pub sd: Nanos,
    /// Number of samples, without dropped samples.
    pub samples: u32,
    /// Value of the curve.
    pub fit: Nanos,
}

impl Point {
    /// Difference of the measured mean and the curve, in ns.
    pub fn residual(&self) -> i64 {
        self.mean.as_nanos() as i64 - self.fit.as_nanos() as i64
    }
}

/// Reach of the local fit, in the natural logarithm of the distance: from 0.63 times to 1.6 times the distance.
const FIT_LOG_REACH: f64 = 0.47;

/// Values of the curve at all points. Points are in the order of their distances.
pub(super) fn fit(points: &[Point]) -> Vec<Nanos> {
    let log = |time: Nanos| libm::log(time.as_nanos().max(1) as f64);
    // Distance 0 has no logarithm and is treated separately.
    let alone = points
        .iter()
        .take_while(|point| point.distance.get() == 0)
        .count();
    let x: Vec<f64> = points[alone..]
        .iter()
        .map(|point| libm::log(point.distance.get() as f64))
        .collect();
    let y: Vec<f64> = points[alone..]
        .iter()
        .map(|point| log(point.mean))
        .collect();
    let mut fitted: Vec<f64> = points[..alone]
        .iter()
        .map(|point| log(point.mean))
        .collect();
    fitted.extend((0..x.len()).map(|at| local_line(&x, &y, x[at])));
    rising(&fitted)
        .into_iter()
        .map(|log| Nanos::from_nanos(libm::round(libm::exp(log)).max(1.0) as u64))
        .collect()
}

/// Value at `at` of the line through the points around `at`: least squares with tricube weights.
fn local_line(x: &[f64], y: &[f64], at: f64) -> f64 {
    let (mut weight, mut sum_x, mut sum_y, mut sum_xx, mut sum_xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let from = x.partition_point(|&x| x <= at - FIT_LOG_REACH);
    for (&x, &y) in x[from..].iter().zip(&y[from..]) {
        let apart = (x - at) / FIT_LOG_REACH;
        if apart >= 1.0 {
            break;
        }
        let cube = apart.abs() * apart.abs() * apart.abs();
        let tricube = (1.0 - cube) * (1.0 - cube) * (1.0 - cube);
        let x = x - at;
        weight += tricube;
        sum_x += tricube * x;
        sum_y += tricube * y;
        sum_xx += tricube * x * x;
        sum_xy += tricube * x * y;
    }
    let spread = weight * sum_xx - sum_x * sum_x;
    // Without a neighbour in reach there is no line.
    if spread <= 1e-12 * weight * weight {
        return sum_y / weight;
    }
    (sum_xx * sum_y - sum_x * sum_xy) / spread
}

/// Nearest values that never fall. Falling neighbours are pooled to their mean (pool adjacent violators; Ayer and others 1955).
fn rising(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for &value in values {
        let mut pool = (value, 1);
        while let Some(&(sum, count)) = pools.last() {
            if sum / count as f64 <= pool.0 / pool.1 as f64 {
                break;
            }
            pools.pop();
            pool = (pool.0 + sum, pool.1 + count);
        }
        pools.push(pool);
    }
    pools
        .into_iter()
        .flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::Sectors;
    use proptest::prelude::*;

    fn points(times: impl IntoIterator<Item = (u64, u64)>) -> Vec<Point> {
        times
            .into_iter()
            .map(|(distance, micros)| Point {
                distance: Sectors::new(distance),
                mean: Nanos::from_micros(micros),
                sd: Nanos::ZERO,
                samples: 1,
                fit: Nanos::ZERO,
            })
            .collect()
    }

    #[test]
    fn a_power_law_is_its_own_fit() {
        // A straight line in the logarithms.
        let points = points((0..40).map(|step| {
            let distance = libm::round(libm::pow(1.3, f64::from(step)) * 100.0);
            let micros = libm::round(libm::pow(distance, 0.3) * 10_000.0);
            (distance as u64, micros as u64)
        }));
        for (point, fit) in points.iter().zip(fit(&points)) {
            let (mean, fit) = (point.mean.as_nanos() as f64, fit.as_nanos() as f64);
            assert!((fit / mean - 1.0).abs() < 1e-4, "{point:?}: {fit}");
        }
    }

    #[test]
    fn falling_neighbours_are_pooled() {
        assert_eq!(rising(&[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(rising(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(rising(&[5.0, 4.0, 0.0]), [3.0, 3.0, 3.0]);
        assert_eq!(rising(&[]), [0.0; 0]);
    }

    #[test]
    fn points_far_from_all_others_stand_for_themselves() {
        let points = points([(0, 300), (8, 400), (8_000, 5_000), (8_000_000, 9_000)]);
        let means: Vec<Nanos> = points.iter().map(|point| point.mean).collect();
        for (mean, fit) in means.iter().zip(fit(&points)) {
            let apart = mean.as_nanos().abs_diff(fit.as_nanos());
            assert!(apart <= 2, "{mean} {fit}");
        }
    }

    proptest! {
        #[test]
        fn the_curve_never_falls(times in prop::collection::vec(1_u64..1_000_000, 1..80)) {
            let all = points((0_u64..).map(|n| n * n * 8).zip(times));
            let fitted = fit(&all);
            prop_assert_eq!(fitted.len(), all.len());
            prop_assert!(fitted.is_sorted());
            let (least, most) = (
                all.iter().map(|point| point.mean).min().unwrap(),
                all.iter().map(|point| point.mean).max().unwrap(),
            );
            // Lines overshoot at the ends by no more than a factor.
            prop_assert!(fitted[0] <= most && *fitted.last().unwrap() >= least);
        }
    }
}
