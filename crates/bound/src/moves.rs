//! Least times of the arm's movements between tracks.

use headtime_disk::Mechanics;
use headtime_disk::profile::{NoiseSpec, Profile};

/// Least times of movements by distance in cylinders, in nanoseconds, with any stops on the way.
///
/// The times rise with the distance, and no sequence of shorter movements is quicker. So for places in order of
/// cylinders, the sum over neighbours is the least time of a path through all places. The path is the minimum spanning
/// tree of points on a line.
///
/// Distances of 512 cylinders or more are grouped in classes, 512 in each doubling. A time is therefore up to 0.2 % too
/// short.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// Time to another track of the same cylinder.
    switch: u64,
    classes: Vec<Class>,
    /// Times of distances below [`NEAR_CYLINDERS`].
    near: Vec<u64>,
}

/// Class of distances in cylinders, from `first` up to the next class. All distances of a class share the least time per
/// cylinder.
#[derive(Clone, Copy, Debug)]
struct Class {
    first: u32,
    /// Least time per cylinder up to this class, as the quotient `time / over`.
    time: u64,
    over: u32,
    /// Least time of all later classes.
    beyond: u64,
}

impl Class {
    /// Returns the least time for a distance. A movement in steps takes at least the least time for each cylinder. The
    /// sum of rounded-up times is no less than the rounded-up time of the whole distance.
    fn at(&self, distance: u32) -> u64 {
        (self.time * u64::from(distance)).div_ceil(u64::from(self.over))
    }
}

const CLASS_BITS: u32 = 9;

/// Distance in cylinders above most movements.
const NEAR_CYLINDERS: u32 = 1 << 10;

/// Returns the index of the class of a distance, which is at least 1.
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
    /// Computes the movements of a drive, each at its quickest under the drive's noise.
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
        // A longer distance must not take less time.
        let mut beyond = u64::MAX;
        for class in classes.iter_mut().rev() {
            class.beyond = beyond;
            beyond = beyond.min(class.at(class.first));
        }
        // Another track of the same cylinder needs another head.
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
        moves.near = (0..NEAR_CYLINDERS)
            .map(|distance| moves.least(distance))
            .collect();
        moves
    }

    /// Returns the least time to a track at this distance; for 0, to another track of the same cylinder.
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

/// Returns the least time of a seek under noise, which is cut at three deviations.
fn quickest(noise: &NoiseSpec, nanos: u64) -> u64 {
    // The noise is drawn in floats. Rounding here is to the safe side.
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
        // The best rate is 4 cylinders in 1.2 ms. So 10 cylinders take at least 3 ms, and 1 to 3 cylinders take no more
        // than 4 cylinders.
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
        // The deviation is the larger of 20 us and 1 % of the seek.
        assert_eq!(calm.least(1) - noisy.least(1), 60_001);
        let long = calm.least(186_239);
        assert!(long - noisy.least(186_239) <= long * 3 / 100 + 2);
    }
}
