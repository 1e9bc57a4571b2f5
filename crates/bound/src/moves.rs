//! The least time that the arm needs from one track to another.

use headtime_disk::Mechanics;
use headtime_disk::profile::{NoiseSpec, Profile};

/// Least times of movements by distance in cylinders, in nanoseconds, whatever is on the way.
///
/// They rise with the distance, and no way over places in between is shorter. Hence, with places in
/// order of their cylinders, the sum over neighbours is the least that a path through all of them takes
/// (the minimum spanning tree of points on a line).
///
/// Distances from 512 cylinders on are taken in classes, 512 in each doubling, which makes a time up
/// to 0.2 % too short.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// To another track of the same cylinder.
    switch: u64,
    classes: Vec<Class>,
    /// The times of distances up to here.
    near: Vec<u64>,
}

/// Distances from one up to that of the next class.
#[derive(Clone, Copy, Debug)]
struct Class {
    first: u32,
    /// The least time per cylinder up to here, as a time over a distance.
    time: u64,
    over: u32,
    /// The least of all classes behind.
    beyond: u64,
}

impl Class {
    /// A way in steps costs at least the least time for each cylinder. Rounded up, such times still
    /// add up to no less than that of the whole way.
    fn at(&self, distance: u32) -> u64 {
        (self.time * u64::from(distance)).div_ceil(u64::from(self.over))
    }
}

const CLASS_BITS: u32 = 9;

/// Most movements are shorter than this.
const NEAR: u32 = 1 << 10;

/// The place of the class of a distance of at least one.
fn class_of(distance: u32) -> usize {
    let exponent = distance.ilog2();
    match exponent.checked_sub(CLASS_BITS) {
        None => distance as usize - 1,
        Some(shift) => {
            let within = (distance >> shift) - (1 << CLASS_BITS);
            ((1 << CLASS_BITS) - 1 + (shift << CLASS_BITS) + within) as usize
        }
    }
}

impl Moves {
    /// Those of a drive, each as quick as its noise can make it.
    pub fn new(profile: &Profile, mechanics: &Mechanics) -> Moves {
        let quickest = |nanos: u64| quickest(&profile.noise, nanos);
        let cylinders = profile.geometry.cylinders;
        let mut classes: Vec<Class> = Vec::new();
        let mut first = 1;
        while first < cylinders {
            let width = match first.ilog2() {
                small if small < CLASS_BITS => 1,
                large => 1 << (large - CLASS_BITS),
            };
            let time = quickest(mechanics.seek_at_least(first).as_nanos());
            let over = (first + width - 1).min(cylinders - 1);
            let before = classes.last().map(|class| (class.time, class.over));
            let (time, over) = match before {
                Some((least, cylinders))
                    if least * u64::from(over) <= time * u64::from(cylinders) =>
                {
                    (least, cylinders)
                }
                _ => (time, over),
            };
            classes.push(Class {
                first,
                time,
                over,
                beyond: u64::MAX,
            });
            first += width;
        }
        // What is farther is not nearer.
        let mut beyond = u64::MAX;
        for class in classes.iter_mut().rev() {
            class.beyond = beyond;
            beyond = beyond.min(class.at(class.first));
        }
        // Another track of the same cylinder is that of another head, if there is one.
        let switch = match profile.geometry.heads {
            1 => u64::MAX,
            _ => quickest(mechanics.head_switch().as_nanos()),
        };
        let switch = switch.min(beyond);
        let mut moves = Moves {
            switch: if switch == u64::MAX { 0 } else { switch },
            classes,
            near: Vec::new(),
        };
        moves.near = (0..NEAR).map(|distance| moves.least(distance)).collect();
        moves
    }

    /// The least time to a track so many cylinders away; with 0, to another one of the same.
    pub fn least(&self, cylinders: u32) -> u64 {
        if cylinders == 0 {
            return self.switch;
        }
        if let Some(time) = self.near.get(cylinders as usize) {
            return *time;
        }
        match self
            .classes
            .get(class_of(cylinders))
            .or(self.classes.last())
        {
            Some(class) => class.at(cylinders).min(class.beyond),
            None => self.switch,
        }
    }
}

/// The least that noise can make of a seek: it is cut at three deviations.
fn quickest(noise: &NoiseSpec, nanos: u64) -> u64 {
    // The noise itself is drawn in floats; rounded here to the side that is safe.
    if noise.seek_sd_relative >= 1.0 / 3.0 {
        return 0;
    }
    let deviation = (noise.seek_sd.as_nanos() as f64).max(nanos as f64 * noise.seek_sd_relative);
    if deviation > 0.0 {
        nanos.saturating_sub((3.0 * deviation).ceil() as u64 + 1)
    } else {
        nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::{SeekCurve, by_name, shipped};
    use headtime_sched::Op;
    use headtime_units::Nanos;

    #[test]
    fn moves_rise_and_detours_are_no_shorter_on_every_drive() {
        for drive in shipped() {
            let profile = drive.profile();
            let mechanics = Mechanics::new(&profile);
            let moves = Moves::new(&profile, &mechanics);
            let last = profile.geometry.cylinders - 1;
            let rises =
                (0..last).all(|distance| moves.least(distance) <= moves.least(distance + 1));
            assert!(rises, "{}", drive.name);
            for step in 1..400u32 {
                let one = 1 + step.wrapping_mul(7_919) % last;
                let direct = mechanics
                    .seek(one, Op::Read)
                    .min(mechanics.seek(one, Op::Write));
                assert!(moves.least(one) <= direct.as_nanos(), "{}", drive.name);
                for other in [1, 2, step, one / 2, one, last - one] {
                    if other > 0 && one + other <= last {
                        let (there, whole) = (moves.least(one) + moves.least(other), one + other);
                        assert!(
                            there >= moves.least(whole),
                            "{}: {one}, {other}",
                            drive.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_curve_that_dips_or_grows_faster_than_the_distance_is_taken_by_its_short_cuts() {
        let drive = by_name("atlas10k").unwrap();
        let times = [
            (1, 1000),
            (2, 900),
            (3, 5000),
            (4, 1200),
            (10, 9000),
            (10_041, 20_000),
        ];
        let drive = drive
            .with(|spec| {
                spec.seek.head_switch = Nanos::from_micros(2000);
                spec.seek.write = None;
                spec.seek.read = SeekCurve::Table {
                    points: times.map(|(at, us)| (at, Nanos::from_micros(us))).to_vec(),
                    interpolation: headtime_disk::profile::Interpolation::Linear,
                };
            })
            .unwrap();
        let moves = Moves::new(&drive, &Mechanics::new(&drive));
        // 4 cylinders in 1.2 ms is the best rate: 10 take at least 3 ms; 1 to 3 take no more than 4.
        let micros = |distance| moves.least(distance) / 1000;
        assert_eq!(
            [0, 1, 2, 3, 4, 8, 10].map(micros),
            [900, 900, 900, 1200, 1200, 2400, 3000]
        );
    }

    #[test]
    fn noise_makes_moves_quicker_by_three_deviations() {
        let drive = by_name("wd5000aaks").unwrap();
        let calm = drive
            .with(|spec| spec.noise = NoiseSpec::default())
            .unwrap();
        let moves = |profile: &Profile| Moves::new(profile, &Mechanics::new(profile));
        let (noisy, calm) = (moves(&drive), moves(&calm));
        // 20 us at least, 1 % of the seek.
        assert_eq!(calm.least(1) - noisy.least(1), 60_001);
        let long = calm.least(186_239);
        assert!(long - noisy.least(186_239) <= long * 3 / 100 + 2);
    }
}
