//! Service time of a request by its distance.

use alloc::vec::Vec;
use headtime_units::{Lba, Millionths, Nanos, Sectors};

/// The service time of a request by its distance from the head, in sectors.
///
/// The curve does not model tracks and angles. It is a smooth curve through measured times, the mean over all
/// angles. Between two points it is a straight line; beyond the last it is flat. Backward accesses cost more by
/// a factor, since an elevator that sweeps upwards prefers forward accesses.
///
/// Source: FAST'11 section 3.2 (`calculate_service_time`, 50 % more backward).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Distances and times, distances rising from 0.
    points: Vec<(Sectors, Nanos)>,
    backward: Millionths,
    /// Change of the time per sector from each point to the next, in 2^-64 ns, rounded up.
    slopes: Vec<u128>,
    /// Number of points at or below the smallest distance with a number of bits, by that number.
    below: [u32; 65],
}

/// Error in the points of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CurveError {
    /// There is no point.
    Empty,
    /// There are more points than [`ServiceCurve::POINTS_MAX`].
    TooMany(usize),
    /// The first point is not at distance 0.
    NotFromZero,
    /// A distance (by its index) is not larger than the preceding distance.
    NotRising(usize),
    /// A time (by its index) is 0 or longer than a minute.
    Time(usize),
    /// The backward factor is below 1 or above 100.
    Backward,
}

impl core::fmt::Display for CurveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CurveError::Empty => f.write_str("a curve needs at least one point"),
            CurveError::TooMany(points) => write!(
                f,
                "{points} points; allowed are {}",
                ServiceCurve::POINTS_MAX
            ),
            CurveError::NotFromZero => f.write_str("the first point must be at distance 0"),
            CurveError::NotRising(at) => write!(
                f,
                "point {at}: its distance must be larger than that of the point before"
            ),
            CurveError::Time(at) => {
                write!(
                    f,
                    "point {at}: allowed are times above 0 and up to a minute"
                )
            }
            CurveError::Backward => f.write_str("the backward factor must be 1 to 100"),
        }
    }
}

impl core::error::Error for CurveError {}

impl ServiceCurve {
    /// The paper's factor of backward accesses: half more.
    pub const BACKWARD: Millionths = Millionths(1_500_000);

    /// Largest number of points of a curve. A search steps through the points between a power of two and the
    /// distance.
    pub const POINTS_MAX: usize = 4_096;

    /// Builds a curve through these points of distance and time.
    ///
    /// # Errors
    ///
    /// If the number of points or the backward factor is out of range, or if a point is invalid. The first
    /// point must be at distance 0, and distances must rise. A time must be above 0 and at most a minute.
    /// `backward` must be 1 to 100.
    pub fn new(
        points: Vec<(Sectors, Nanos)>,
        backward: Millionths,
    ) -> Result<ServiceCurve, CurveError> {
        let first = points.first().ok_or(CurveError::Empty)?;
        if points.len() > ServiceCurve::POINTS_MAX {
            return Err(CurveError::TooMany(points.len()));
        }
        if first.0 != Sectors::ZERO {
            return Err(CurveError::NotFromZero);
        }
        for (at, (distance, time)) in points.iter().enumerate() {
            if at > 0 && points[at - 1].0 >= *distance {
                return Err(CurveError::NotRising(at));
            }
            if *time == Nanos::ZERO || *time > Nanos::from_secs(60) {
                return Err(CurveError::Time(at));
            }
        }
        if backward < Millionths::ONE || backward > Millionths(100_000_000) {
            return Err(CurveError::Backward);
        }
        let slope = |pair: &[(Sectors, Nanos)]| {
            let ((low, from), (high, to)) = (pair[0], pair[1]);
            let change = u128::from(from.as_nanos().abs_diff(to.as_nanos())) << 64;
            change.div_ceil(u128::from((high - low).get()))
        };
        let slopes = points.windows(2).map(slope).collect();
        let below = core::array::from_fn(|bits| {
            let least = match bits {
                0 => Sectors::ZERO,
                bits => Sectors::new(1 << (bits - 1)),
            };
            points.partition_point(|(at, _)| *at <= least) as u32
        });
        Ok(ServiceCurve {
            points,
            backward,
            slopes,
            below,
        })
    }

    /// The shortest service time of the curve.
    pub fn least(&self) -> Nanos {
        let times = self.points.iter().map(|(_, time)| *time);
        times.min().expect("a curve has points")
    }

    /// The service time at a 2000th of the distance of the last point. Of random pairs of addresses, one in
    /// 1000 is nearer.
    pub fn near(&self) -> Nanos {
        let last = self.points[self.points.len() - 1];
        self.forward(Sectors::new(last.0.get() / 2000))
    }

    /// The mean service time over random pairs of addresses, on a disk with the size of the last point's
    /// distance. A curve of one point gives the mean over both directions.
    pub fn mean(&self) -> Nanos {
        let last = self.points[self.points.len() - 1];
        let end = last.0.get() as f64;
        // Distances d are as frequent as 1 - d / end. The integral of a product of two straight lines follows
        // from their values at the ends.
        let piece = |pair: &[(Sectors, Nanos)]| {
            let value = |at: usize| {
                let (distance, time) = pair[at];
                let distance = distance.get() as f64;
                (distance, time.as_nanos() as f64, 1.0 - distance / end)
            };
            let ((a, from, low), (b, to, high)) = (value(0), value(1));
            (b - a) / 3.0 * (2.0 * from * low + from * high + to * low + 2.0 * to * high) / end
        };
        let forward = match self.points.len() {
            1 => last.1.as_nanos() as f64,
            _ => self.points.windows(2).map(piece).sum(),
        };
        let directions = (1.0 + self.backward.0 as f64 / 1e6) / 2.0;
        Nanos::from_nanos((forward * directions) as u64)
    }

    /// The points.
    pub fn points(&self) -> &[(Sectors, Nanos)] {
        &self.points
    }

    /// The factor of backward accesses.
    pub fn backward(&self) -> Millionths {
        self.backward
    }

    /// The service time of a request at `to` with the head at `from`.
    pub fn service(&self, from: Lba, to: Lba) -> Nanos {
        if to >= from {
            self.forward(to - from)
        } else {
            // A minute times 100, in millionths of nanoseconds, is within 64 bits.
            let forward = self.forward(from - to).as_nanos();
            Nanos::from_nanos(forward * self.backward.0 / 1_000_000)
        }
    }

    /// The service time of a request `distance` ahead of the head.
    pub fn forward(&self, distance: Sectors) -> Nanos {
        let bits = u64::BITS - distance.get().leading_zeros();
        let mut after = self.below[bits as usize] as usize;
        while let Some((at, _)) = self.points.get(after)
            && *at <= distance
        {
            after += 1;
        }
        let (low, time) = self.points[after - 1];
        let Some((_, next)) = self.points.get(after) else {
            return time;
        };
        let part = u128::from((distance - low).get());
        // The product is at most the whole change, which is within 64 bits.
        let change = Nanos::from_nanos(((self.slopes[after - 1] * part) >> 64) as u64);
        if *next >= time {
            time + change
        } else {
            time - change
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn curve() -> ServiceCurve {
        let points = vec![
            (Sectors::new(0), Nanos::from_micros(500)),
            (Sectors::new(100), Nanos::from_micros(1500)),
            (Sectors::new(1100), Nanos::from_micros(2500)),
        ];
        ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve")
    }

    #[test]
    fn goes_through_its_points_and_straight_between() {
        let curve = curve();
        for (distance, us) in [(0, 500), (50, 1000), (100, 1500), (600, 2000), (1100, 2500)] {
            assert_eq!(
                curve.forward(Sectors::new(distance)),
                Nanos::from_micros(us)
            );
        }
        assert_eq!(
            curve.forward(Sectors::new(u64::MAX)),
            Nanos::from_micros(2500)
        );
    }

    #[test]
    fn the_mean_is_over_random_pairs() {
        let at = |distance, ms| (Sectors::new(distance), Nanos::from_millis(ms));
        let curve = |points| ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve");
        // Two random points are a third of the disk apart in the mean; half of the ways are backward.
        assert_eq!(
            curve(vec![at(0, 3), at(300, 6)]).mean(),
            Nanos::from_millis(5)
        );
        assert_eq!(curve(vec![at(0, 4)]).mean(), Nanos::from_millis(5));
        assert_eq!(
            curve(vec![at(0, 3), at(150, 2), at(300, 6)]).least(),
            Nanos::from_millis(2)
        );
    }

    proptest! {
        #[test]
        fn agrees_with_the_division(
            steps in prop::collection::vec((1..1_u64 << 36, 1..20_000_000_u64), 1..40),
            distance in 0..1_u64 << 42,
            at_point in any::<prop::sample::Index>(),
        ) {
            let mut points = vec![(Sectors::ZERO, Nanos::from_micros(300))];
            for (step, time) in steps {
                let (last, _) = points[points.len() - 1];
                points.push((last + Sectors::new(step), Nanos::from_nanos(time)));
            }
            let curve = ServiceCurve::new(points.clone(), ServiceCurve::BACKWARD).expect("a curve");
            for (at, time) in &points {
                prop_assert_eq!(curve.forward(*at), *time);
            }
            let near = points[at_point.index(points.len())].0.get();
            for distance in [distance, near.saturating_sub(1), near + 1] {
                let after = points.partition_point(|(at, _)| at.get() <= distance);
                let (low, from) = points[after - 1];
                let exact = match points.get(after) {
                    None => i128::from(from.as_nanos()),
                    Some((high, to)) => {
                        let (from, to) = (i128::from(from.as_nanos()), i128::from(to.as_nanos()));
                        let part = i128::from(distance - low.get());
                        from + (to - from) * part / i128::from((*high - low).get())
                    }
                };
                let found = curve.forward(Sectors::new(distance)).as_nanos();
                prop_assert!((i128::from(found) - exact).abs() <= 1, "{} and {}", found, exact);
            }
        }
    }

    #[test]
    fn backward_costs_half_as_much_again() {
        let (low, high) = (Lba::new(1000), Lba::new(1100));
        assert_eq!(curve().service(low, high), Nanos::from_micros(1500));
        assert_eq!(curve().service(high, low), Nanos::from_micros(2250));
    }

    #[test]
    fn bad_points_are_refused() {
        let at = |distance, us| (Sectors::new(distance), Nanos::from_micros(us));
        let refused = |points| ServiceCurve::new(points, ServiceCurve::BACKWARD);
        assert_eq!(refused(vec![]), Err(CurveError::Empty));
        assert_eq!(refused(vec![at(1, 1)]), Err(CurveError::NotFromZero));
        assert_eq!(
            refused(vec![at(0, 1), at(0, 2)]),
            Err(CurveError::NotRising(1))
        );
        assert_eq!(refused(vec![at(0, 1), at(5, 0)]), Err(CurveError::Time(1)));
        let many = |count| refused((0..count).map(|distance| at(distance, 1)).collect());
        assert!(many(4_096).is_ok());
        let error = many(4_097).unwrap_err();
        assert_eq!(alloc::format!("{error}"), "4097 points; allowed are 4096");
        assert_eq!(
            ServiceCurve::new(vec![at(0, 1)], Millionths::ZERO),
            Err(CurveError::Backward)
        );
    }
}
