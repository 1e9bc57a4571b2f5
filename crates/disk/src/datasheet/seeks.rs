//! Seek times from an average: the shape that measured drives share.

use super::sheet::{Datasheet, SheetError, part, time};
use crate::mechanics::evaluate_seek;
use crate::profile::{Interpolation, SeekCurve, Zone};
use headtime_units::Nanos;

/// Time over mean seek by distance over stroke: the median of eight measured drives. Scaled in this way, the curves
/// of the drives collapse onto one. The drives: Atlas 10K, Atlas III, Cheetah 4LP, Cheetah 9LP, Barracuda ST32171W,
/// IBM 18ES, Atlas 10K V, a WD drive of 4 TB. The first point is extrapolated.
pub(super) const SHAPE: [(f64, f64); 12] = [
    (1e-5, 0.14),
    (1e-4, 0.17),
    (1e-3, 0.245),
    (0.003, 0.29),
    (0.01, 0.375),
    (0.03, 0.48),
    (0.1, 0.655),
    (0.2, 0.855),
    (1.0 / 3.0, 1.03),
    (0.5, 1.245),
    (0.7, 1.485),
    (1.0, 1.93),
];
/// Part of the stroke from which a given maximum bends the shape.
const BENDS_FROM: f64 = 1.0 / 3.0;
/// Time of a step to the next track over the mean seek: the shape at one of some 200,000 to 500,000 cylinders.
pub(super) const TRACK_PART: f64 = 0.12;
/// Extra settling of writes in ms: after a step to the next track, and on average.
pub(super) const SETTLE_MS: [f64; 2] = [0.15, 0.5];

/// The seek times of a sheet, completed by estimates of the missing times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeks {
    pub average: Nanos,
    pub average_write: Nanos,
    pub track: Nanos,
    /// Extra settling of a write on the next track or another head.
    pub settle: Nanos,
    pub head_switch: Nanos,
    maximum: Option<Nanos>,
    maximum_write: Option<Nanos>,
}

impl Seeks {
    pub fn of(sheet: &Datasheet) -> Result<Seeks, SheetError> {
        let [short, long] = SETTLE_MS.map(Nanos::from_millis_f64);
        let average_write = sheet.seek_write.unwrap_or(sheet.seek + long);
        let later = average_write - sheet.seek;
        // A sheet may have the time of writes alone.
        let track = sheet.track.unwrap_or_else(|| {
            let usual = part(sheet.seek, TRACK_PART);
            sheet.track_write.map_or(usual, |write| usual.min(write))
        });
        let settle = match sheet.track_write {
            Some(write) => {
                let why = "that of reads to half the average seek of reads";
                time("seek-track-write", write, track, part(sheet.seek, 0.5), why)?;
                write - track
            }
            None => short.min(later),
        };
        if let Some(write) = sheet.maximum_write {
            let least = sheet.maximum.unwrap_or_else(|| part(average_write, 1.3));
            let why = "that of reads, or 1.3 times the average, to 4 times it";
            time("seek-maximum-write", write, least, average_write * 4, why)?;
        }
        Ok(Seeks {
            average: sheet.seek,
            average_write,
            track,
            settle,
            head_switch: part(sheet.seek, TRACK_PART),
            maximum: sheet.maximum,
            maximum_write: sheet.maximum_write,
        })
    }

    /// Time to the next track or to another head, whichever takes longer, ready to write.
    pub fn step(&self) -> Nanos {
        self.track.max(self.head_switch) + self.settle
    }

    /// Time to another head, ready to write.
    pub fn switch(&self) -> Nanos {
        self.head_switch + self.settle
    }

    /// The curves for reading and writing of a drive with these zones.
    ///
    /// The write curve does not contain [`Seeks::settle`], since a profile adds that time to the
    /// whole curve.
    pub fn curves(&self, zones: &[Zone], cylinders: u32) -> (SeekCurve, SeekCurve) {
        let far = Distances::between_random_sectors(zones, cylinders);
        let read = |scale: f64| self.read(scale, cylinders);
        let scale = solve(0.5, 2.0, |scale| {
            far.mean(&read(scale), cylinders) - ms(self.average)
        });
        let points = read(scale);
        let settle = ms(self.settle);
        let later = |later: f64| {
            let points = points.iter().map(|&(distance, at)| {
                let at = if distance == 1 {
                    at
                } else {
                    at + later - settle
                };
                (distance, at.max(0.0))
            });
            let mut points: Vec<(u32, f64)> = points.collect();
            if let Some((_, full)) = points.last_mut() {
                *full = self.maximum_write.map_or(*full, |write| ms(write) - settle);
            }
            rise(&mut points);
            points
        };
        let whole = ms(self.average_write) - settle;
        let longest = ms(self.average) * 2.0;
        let write = later(solve(-longest, longest, |more| {
            far.mean(&later(more), cylinders) - whole
        }));
        (table(&points), table(&write))
    }

    /// The points of the read curve, in ms, where the shape stands for `scale` times the average.
    fn read(&self, scale: f64, cylinders: u32) -> Vec<(u32, f64)> {
        let stroke = f64::from(cylinders - 1);
        let unit = ms(self.average) * scale;
        let (_, whole) = SHAPE[SHAPE.len() - 1];
        let bend = self.maximum.map_or(1.0, |full| ms(full) / (whole * unit));
        let mut points = vec![(1, ms(self.track))];
        for (share, time) in SHAPE {
            let distance = libm::round(share * stroke) as u32;
            if distance < 2 || points.last().is_some_and(|&(last, _)| distance <= last) {
                continue;
            }
            let bent = (libm::log(share / BENDS_FROM) / -libm::log(BENDS_FROM)).max(0.0);
            points.push((distance, unit * time * libm::pow(bend, bent)));
        }
        if let (Some(most), Some((_, full))) = (self.maximum, points.last_mut()) {
            *full = ms(most);
        }
        rise(&mut points);
        points
    }
}

fn ms(time: Nanos) -> f64 {
    time.as_millis_f64()
}

/// Makes the points rise: none is above the last point, and none below its predecessor. The last
/// point stays.
fn rise(points: &mut [(u32, f64)]) {
    let last = points.last().map_or(0.0, |&(_, at)| at);
    let mut least = 0.0_f64;
    for (_, at) in points {
        *at = at.clamp(least.min(last), last);
        least = *at;
    }
}

/// A table of the points, in whole microseconds.
fn table(points: &[(u32, f64)]) -> SeekCurve {
    let points = points.iter().map(|&(distance, at)| {
        let micros = libm::round(at * 1e3) as u64;
        (distance, Nanos::from_micros(micros))
    });
    SeekCurve::Table {
        points: points.collect(),
        interpolation: Interpolation::Log,
    }
}

/// The zero of a rising function between `low` and `high`.
fn solve(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if function(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Distances between two random sectors, with their shares, whose sum is 1.
struct Distances(Vec<(u32, f64)>);

impl Distances {
    /// Ratio of the ends of a cell, for long distances.
    const GROWTH: f64 = 1.012;

    fn between_random_sectors(zones: &[Zone], cylinders: u32) -> Distances {
        let sectors: Vec<(f64, f64)> = zones
            .iter()
            .map(|zone| {
                let end = f64::from(zone.last_cylinder + 1);
                (end, f64::from(zone.sectors_per_track))
            })
            .collect();
        let end = f64::from(cylinders) - 0.5;
        let mut cells = Vec::new();
        let mut from = 0.5;
        while from < end {
            let to = (from + 1.0)
                .max(libm::floor(from * Distances::GROWTH) + 0.5)
                .min(end);
            let middle = libm::round(f64::midpoint(from, to));
            let share = (to - from) * density(&sectors, middle);
            cells.push((middle as u32, share));
            from = to;
        }
        // Both sectors are on the same cylinder.
        cells.push((0, 0.5 * density(&sectors, 0.0)));
        let all: f64 = cells.iter().map(|(_, share)| share).sum();
        for (_, share) in &mut cells {
            *share /= all;
        }
        Distances(cells)
    }

    /// The mean time, ms, of the curve through the points.
    fn mean(&self, points: &[(u32, f64)], cylinders: u32) -> f64 {
        let curve = table(points);
        let time = |distance| f64::from(evaluate_seek(&curve, cylinders, distance)) / 1e6;
        let times = self.0.iter();
        times.map(|&(distance, share)| share * time(distance)).sum()
    }
}

/// Density of pairs of sectors at a distance: the integral of the sectors per track here times the sectors per track
/// `distance` cylinders farther in. `sectors` has the ends of the zones and their sectors per track.
fn density(sectors: &[(f64, f64)], distance: f64) -> f64 {
    let last = sectors.last().map_or(0.0, |&(end, _)| end);
    let (mut here, mut there) = (0, 0);
    let (mut at, mut sum) = (0.0, 0.0);
    while there < sectors.len() && sectors[there].0 <= distance {
        there += 1;
    }
    while at + distance < last {
        let (end_here, per_here) = sectors[here];
        let (end_there, per_there) = sectors[there];
        let to = end_here.min(end_there - distance);
        sum += (to - at) * per_here * per_there;
        if end_here <= to {
            here += 1;
        }
        if end_there - distance <= to {
            there += 1;
        }
        at = to;
    }
    sum
}
