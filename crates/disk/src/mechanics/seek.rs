//! Tables of seek times, computed from a profile's curve when it is loaded.

use crate::profile::{Interpolation, SeekCurve};
use headtime_units::Nanos;

/// Distances up to this have an entry of their own.
const DENSE_CYLINDERS: u32 = 1 << 14;
/// Longer distances lie between knots, 2^`KNOT_BITS` in each doubling of the distance.
const KNOT_BITS: u32 = 9;

/// Seek times in nanoseconds by distance, looked up in constant time.
///
/// Distances below 16,384 cylinders are exact. Longer distances, on drives that have them, are
/// interpolated between 512 knots per doubling of the distance.
#[derive(Clone, Debug)]
pub struct SeekTimes {
    dense: Vec<u32>,
    knots: Vec<u32>,
    least: LeastTimes,
}

/// For each entry of [`SeekTimes`], a lower bound of this entry and all later entries.
#[derive(Clone, Debug)]
pub(super) struct LeastTimes {
    dense: Vec<u32>,
    knots: Vec<u32>,
}

impl SeekTimes {
    /// The seek times of a drive with `cylinders` cylinders.
    pub(crate) fn new(curve: &SeekCurve, cylinders: u32) -> SeekTimes {
        let mut rising = Rising::of(curve);
        let mut time = |distance: u32| match &mut rising {
            Some(rising) => rounded(rising.time(distance)),
            None => evaluate(curve, cylinders, distance),
        };
        let dense: Vec<u32> = (0..cylinders.min(DENSE_CYLINDERS)).map(&mut time).collect();
        let mut knots = Vec::new();
        if cylinders > DENSE_CYLINDERS {
            let mut knot = DENSE_CYLINDERS;
            knots.push(time(knot));
            // One knot past the end, to interpolate towards.
            while knot < cylinders {
                knot += 1 << (knot.ilog2() - KNOT_BITS);
                knots.push(time(knot));
            }
        }
        let mut least = u32::MAX;
        let mut from_right = |times: &[u32]| {
            let mut bounds: Vec<u32> = times
                .iter()
                .rev()
                .map(|&time| {
                    least = least.min(time);
                    least
                })
                .collect();
            bounds.reverse();
            bounds
        };
        let knots_at_least = from_right(&knots);
        let least = LeastTimes {
            dense: from_right(&dense),
            knots: knots_at_least,
        };
        SeekTimes {
            dense,
            knots,
            least,
        }
    }

    /// The time of a seek over `distance` cylinders; zero for zero.
    ///
    /// # Panics
    ///
    /// If the drive has no two cylinders so far apart.
    pub fn time(&self, distance: u32) -> Nanos {
        if let Some(&time) = self.dense.get(distance as usize) {
            return Nanos::from_nanos(u64::from(time));
        }
        let (knot, shift) = knot_of(distance);
        let (low, high) = (u64::from(self.knots[knot]), u64::from(self.knots[knot + 1]));
        let along = u64::from(distance & ((1 << shift) - 1));
        let part = (high.abs_diff(low) * along) >> shift;
        Nanos::from_nanos(if high >= low { low + part } else { low - part })
    }

    /// Lower bound of the time of any seek over `distance` cylinders or more; zero for zero.
    ///
    /// # Panics
    ///
    /// If the drive has no two cylinders so far apart.
    pub fn at_least(&self, distance: u32) -> Nanos {
        self.least.time(distance)
    }

    /// For each distance, `least` of two bounds: the bound of these times and the bound of `other`. Both are for the
    /// same number of cylinders. The result of `least` is no more than either bound.
    pub(super) fn least_with(
        &self,
        other: &SeekTimes,
        least: impl Fn(Nanos, Nanos) -> Nanos,
    ) -> LeastTimes {
        let nanos = |time: &u32| Nanos::from_nanos(u64::from(*time));
        let of = |one: &[u32], other: &[u32]| -> Vec<u32> {
            let pairs = one.iter().zip(other);
            let least = pairs.map(|(one, other)| least(nanos(one), nanos(other)));
            least.map(|time| time.as_nanos() as u32).collect()
        };
        LeastTimes {
            dense: of(&self.least.dense, &other.least.dense),
            knots: of(&self.least.knots, &other.least.knots),
        }
    }
}

impl LeastTimes {
    /// The bound for a distance.
    ///
    /// # Panics
    ///
    /// If the drive has no two cylinders so far apart.
    #[inline]
    pub(super) fn time(&self, distance: u32) -> Nanos {
        let time = match self.dense.get(distance as usize) {
            Some(&time) => time,
            None => self.knots[knot_of(distance).0],
        };
        Nanos::from_nanos(u64::from(time))
    }
}

/// The knot at or before a distance of at least [`DENSE_CYLINDERS`], and the exponent of its interval.
fn knot_of(distance: u32) -> (usize, u32) {
    let exponent = distance.ilog2();
    let shift = exponent - KNOT_BITS;
    let doubling = exponent - DENSE_CYLINDERS.ilog2();
    let within = (distance >> shift) & ((1 << KNOT_BITS) - 1);
    (((doubling << KNOT_BITS) + within) as usize, shift)
}

/// The curve at a distance, in nanoseconds, at least zero and at most what 32 bits hold.
pub(crate) fn evaluate(curve: &SeekCurve, cylinders: u32, distance: u32) -> u32 {
    if distance == 0 {
        return 0;
    }
    let nanos = |time: Nanos| time.as_nanos() as f64;
    let d = f64::from(distance);
    let time = match curve {
        SeekCurve::Table {
            points,
            interpolation,
        } => {
            let after = points.partition_point(|&(at, _)| at < distance);
            Between::of(points, *interpolation, after).time(d)
        }
        SeekCurve::Hpl {
            split,
            root_base,
            root_factor,
            line_base,
            line_factor,
            first,
        } => match first.get(distance as usize - 1) {
            Some(&time) => nanos(time),
            None if distance < *split => nanos(*root_base) + nanos(*root_factor) * libm::sqrt(d),
            None => nanos(*line_base) + nanos(*line_factor) * d,
        },
        SeekCurve::Curve {
            single,
            average,
            full,
        } => {
            let (min, avg, max) = (nanos(*single), nanos(*average), nanos(*full));
            let n = f64::from(cylinders);
            let root = (-10.0 * min + 15.0 * avg - 5.0 * max) / (3.0 * libm::sqrt(n));
            let line = (7.0 * min - 15.0 * avg + 8.0 * max) / (3.0 * n);
            min + root * libm::sqrt(d - 1.0) + line * (d - 1.0)
        }
        SeekCurve::Linear {
            single,
            average,
            full,
        } => {
            let (min, avg, max) = (nanos(*single), nanos(*average), nanos(*full));
            let end = f64::from(cylinders - 1).max(1.0);
            let third = (end / 3.0).max(1.0);
            if d <= third {
                let part = if third > 1.0 {
                    (d - 1.0) / (third - 1.0)
                } else {
                    1.0
                };
                min + (avg - min) * part
            } else {
                avg + (max - avg) * (d - third) / (end - third)
            }
        }
        SeekCurve::Constant(time) => nanos(*time),
    };
    rounded(time)
}

fn rounded(nanos: f64) -> u32 {
    // A cast from float saturates.
    libm::round(nanos) as u32
}

/// The part of a table up to one of its points, in cylinders and nanoseconds.
struct Between {
    from: (f64, f64),
    to: (f64, f64),
    /// Logarithm of the ratio of both distances, if times go with the logarithm of the distance.
    log: Option<f64>,
}

impl Between {
    /// The part in front of a point; behind the last one, a line goes on as the last part does.
    fn of(points: &[(u32, Nanos)], interpolation: Interpolation, after: usize) -> Between {
        let at = |(distance, time): (u32, Nanos)| (f64::from(distance), time.as_nanos() as f64);
        let high = after.min(points.len() - 1);
        let before = high.checked_sub(1).map(|before| points[before]);
        let (from, to) = (at(before.unwrap_or((0, Nanos::ZERO))), at(points[high]));
        // Beyond the last point a line goes on in any case: a logarithm would flatten.
        let is_log = matches!(interpolation, Interpolation::Log) && from.0 > 0.0 && after == high;
        let log = is_log.then(|| libm::log(to.0 / from.0));
        Between { from, to, log }
    }

    fn time(&self, distance: f64) -> f64 {
        let (from, to) = (self.from, self.to);
        if distance == to.0 {
            return to.1;
        }
        let part = match self.log {
            Some(log) => libm::log(distance / from.0) / log,
            None => (distance - from.0) / (to.0 - from.0),
        };
        from.1 + (to.1 - from.1) * part
    }
}

/// A table that is read at rising distances. The line between two points is computed once.
struct Rising<'a> {
    points: &'a [(u32, Nanos)],
    interpolation: Interpolation,
    /// The first point that is not nearer than the last distance.
    after: usize,
    between: Between,
}

impl<'a> Rising<'a> {
    fn of(curve: &'a SeekCurve) -> Option<Rising<'a>> {
        let SeekCurve::Table {
            points,
            interpolation,
        } = curve
        else {
            return None;
        };
        Some(Rising {
            points,
            interpolation: *interpolation,
            after: 0,
            between: Between::of(points, *interpolation, 0),
        })
    }

    fn time(&mut self, distance: u32) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let is_nearer = |&(at, _): &(u32, Nanos)| at < distance;
        let nearer = self.points[self.after..]
            .iter()
            .take_while(|at| is_nearer(at));
        let nearer = nearer.count();
        if nearer > 0 {
            self.after += nearer;
            self.between = Between::of(self.points, self.interpolation, self.after);
        }
        self.between.time(f64::from(distance))
    }
}
