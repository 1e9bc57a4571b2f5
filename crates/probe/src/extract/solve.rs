//! Solves all parameters of a row of tracks from samples on different tracks.
//!
//! Suppose that a row starts at address `b` and angle `z`. Each of its tracks has `L` sectors and is rotated by `s` against the previous
//! track. Then the angle of address `x` is
//!
//! ```text
//! z + k s + (x - b)/L  turns,   k = floor((x - b)/L)
//! ```
//!
//! Two samples on one track would give `L`. But a large buffer holds everything that passed while the drive waited for the first sample.
//! Samples on separate tracks constrain `z`, `s` and `L` together. `L` is an integer near the previous row's length, so all candidates are
//! tried. For the right one, the samples lie on a line over `k`.

use super::turns::near;
use super::zone::Row;

/// Address and angle of a sampled sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Glance {
    pub lba: u64,
    /// Angle in turns.
    pub angle: f64,
}

/// A row that explains all samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Solved {
    pub slots: u64,
    pub skew: f64,
    /// Range of addresses, both included, in which the row starts.
    pub start: (u64, u64),
    /// Angle of the first address in the range, if the row starts there.
    zero: f64,
    /// Largest deviation of a sample, in turns.
    pub off: f64,
    /// Sum of the squares of all deviations.
    squares: f64,
    /// Tracks between the first sample and the last.
    pub tracks: u64,
}

/// Fewest samples that can contradict a row: three unknowns and one more sample.
const SAMPLES_MIN: usize = 4;
/// Most samples in use.
const SAMPLES_MAX: usize = 32;
/// Largest difference between equal skews, in turns. Rows with equal skews may differ in their start by whole tracks.
const EQUAL_SKEW_TURNS: f64 = 1e-9;
/// Difference in squared deviations, in units of the noise variance, from which a row is clearly less likely. Twice the logarithm of the
/// likelihood ratio.
const LIKELIER_SQUARES: f64 = 25.0;
/// Deviations of a sample above which no row explains it.
const DEVIATIONS_MAX: f64 = 4.5;
/// Ratio of the largest deviations from which the better length is certain.
const CLEAR_RATIO: f64 = 4.0;

impl Solved {
    /// Angle of the row's first address, if the row starts at `start`.
    pub fn zero(&self, start: u64) -> f64 {
        self.zero + start.abs_diff(self.start.0) as f64 / self.slots as f64
    }

    /// A copy of a known row that starts at an address and agrees with a sample.
    pub fn of(row: &Row, start: u64, look: Glance) -> Solved {
        let mut solved = Solved {
            slots: row.slots,
            skew: row.skew,
            start: (start, start),
            zero: 0.0,
            off: 0.0,
            squares: 0.0,
            tracks: 0,
        };
        solved.zero = near(look.angle - solved.angle(look.lba, start));
        solved
    }

    /// Corrects `zero` after the first possible start moved on from `before`.
    pub fn moved(self, before: u64) -> Solved {
        let slots = self.start.0.abs_diff(before) as f64 / self.slots as f64;
        Solved {
            zero: self.zero + slots,
            ..self
        }
    }

    /// Returns the same row of tracks with another first address. The address may be any number of whole tracks before or behind the range
    /// `start`.
    pub fn again_at(self, start: u64) -> Solved {
        let (first, slots) = (self.start.0 as i64, self.slots as i64);
        let within = first + (start as i64 - first).rem_euclid(slots);
        let moved = Solved {
            zero: self.zero(within as u64),
            start: (within as u64, within as u64),
            ..self
        };
        moved.again(start)
    }

    /// This row, moved to another start. The new start gets the angle of the old start.
    pub fn again_from(self, start: u64) -> Solved {
        Solved {
            start: (start, start),
            ..self
        }
    }

    /// This row with its start moved by whole tracks.
    pub fn again(self, start: u64) -> Solved {
        let tracks = Solved::track(start, self.start.0, self.slots);
        Solved {
            start: (start, start),
            zero: self.zero + (self.skew + 1.0) * tracks as f64,
            ..self
        }
    }

    /// Number of the track of `lba`, counted from the row's start.
    fn track(lba: u64, start: u64, slots: u64) -> i64 {
        (lba as i64 - start as i64).div_euclid(slots as i64)
    }

    /// Returns true if the row may reach back to a sample, on its first track or on one track before.
    pub fn goes_back_to(&self, look: Glance, tolerance: f64) -> bool {
        let back = (look.lba as f64 - self.start.0 as f64) / self.slots as f64;
        let off = near(look.angle - self.zero - back);
        [off, near(off + self.skew)]
            .iter()
            .any(|off| off.abs() < tolerance)
    }

    /// Angle of an address, if the row starts at `start`.
    pub fn angle(&self, lba: u64, start: u64) -> f64 {
        let track = Solved::track(lba, start, self.slots) as f64;
        let slot = (lba as f64 - self.start.0 as f64) / self.slots as f64;
        self.zero + self.skew * track + slot
    }
}

/// All rows that explain each sample within `tolerance` turns, best first. Track lengths come from `lengths`, and the row starts in the
/// range `start`, both ends included.
pub(super) fn solve(
    looks: &[Glance],
    lengths: std::ops::RangeInclusive<u64>,
    grain: u64,
    start: (u64, u64),
    tolerance: impl Fn(u64) -> f64,
) -> Vec<Solved> {
    let mut fits: Vec<Solved> = Vec::new();
    if looks.len() < SAMPLES_MIN {
        return fits;
    }
    let mut looks = looks.to_vec();
    looks.sort_by_key(|look| look.lba);
    looks.truncate(SAMPLES_MAX);
    let mut line = Vec::with_capacity(looks.len());
    let shortest = lengths.start().next_multiple_of(grain);
    for slots in (shortest..=*lengths.end()).step_by(grain as usize) {
        let tolerance = tolerance(slots);
        for (first, last) in starts(&looks, slots, start) {
            line.clear();
            line.extend(looks.iter().map(|look| {
                let slot = (look.lba as f64 - first as f64) / slots as f64;
                let track = Solved::track(look.lba, first, slots) as f64;
                (track, look.angle - slot)
            }));
            let Some((zero, skew, off, squares)) = straight(&line, tolerance) else {
                continue;
            };
            fits.push(Solved {
                slots,
                skew,
                start: (first, last),
                zero,
                off,
                squares,
                tracks: (line[line.len() - 1].0 - line[0].0) as u64,
            });
        }
    }
    fits.sort_by(|one, other| f64::total_cmp(&one.off, &other.off));
    fits
}

/// The best fit, if the samples exclude all others: rows with another length or another start. `noise` is the usual deviation of a sample,
/// in turns.
pub(super) fn only(fits: &[Solved], noise: f64) -> Option<Solved> {
    let (best, others) = fits.split_first()?;
    let limit = CLEAR_RATIO * f64::max(best.off, noise);
    // A row that starts whole tracks earlier or later is the same row. The range of addresses may cut part of it.
    let same = |other: &&Solved| {
        other.slots == best.slots && (other.skew - best.skew).abs() < EQUAL_SKEW_TURNS
    };
    let is_only = others.iter().all(|other| other.off > limit || same(&other));
    let all = others.iter().filter(same).chain([best]);
    let widest = all.max_by_key(|solved| solved.start.1 - solved.start.0);
    widest.filter(|_| is_only).copied()
}

/// The best fit where samples deviate normally by `noise` turns, if all other fits are far less likely.
pub(super) fn likeliest(fits: &[Solved], noise: f64) -> Option<Solved> {
    let best = fits
        .iter()
        .min_by(|one, other| f64::total_cmp(&one.squares, &other.squares))?;
    if best.off > DEVIATIONS_MAX * noise {
        return None;
    }
    let limit = best.squares + LIKELIER_SQUARES * noise * noise;
    let same =
        |other: &&Solved| other.slots == best.slots && near(other.skew - best.skew).abs() < noise;
    let is_only = fits
        .iter()
        .all(|other| other.squares > limit || same(&other));
    let all = fits
        .iter()
        .filter(same)
        .filter(|other| other.squares <= limit);
    let widest = all.max_by_key(|solved| solved.start.1 - solved.start.0);
    widest.filter(|_| is_only).copied()
}

/// Ranges of start addresses. Within a range, each sample keeps its track number.
fn starts(looks: &[Glance], slots: u64, (first, last): (u64, u64)) -> Vec<(u64, u64)> {
    let mut cuts: Vec<u64> = looks
        .iter()
        .flat_map(|look| {
            // A start behind this address puts the sample on the previous track.
            let behind = look.lba + 1;
            let back = (behind - first - 1) / slots;
            let cut = behind - back * slots;
            (cut..=last).step_by(slots as usize)
        })
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let begins = std::iter::once(first).chain(cuts.iter().copied());
    let ends = cuts.iter().map(|cut| cut - 1).chain(std::iter::once(last));
    begins.zip(ends).collect()
}

/// Fits a line through angles over track numbers. Returns the angle of track 0, the slope, the largest deviation, and the sum of squares.
/// `None` if a deviation exceeds the tolerance. Points are in the order of tracks.
fn straight(points: &[(f64, f64)], tolerance: f64) -> Option<(f64, f64, f64, f64)> {
    // Neighbouring tracks give a first slope; farther tracks make it exact.
    let pair = points
        .windows(2)
        .position(|pair| pair[1].0 - pair[0].0 == 1.0)?;
    let (origin, angle) = points[pair];
    let mut skew = near(points[pair + 1].1 - angle);
    let mut reach = 1.0;
    let mut whole = [0.0; SAMPLES_MAX];
    let (mut before, mut behind) = (pair, pair + 1);
    for _ in 0..points.len() {
        // Continue with the nearest remaining point.
        let is_behind = match (before.checked_sub(1), points.get(behind)) {
            (Some(before), Some(behind)) => behind.0 - origin <= origin - points[before].0,
            (_, behind) => behind.is_some(),
        };
        let at = match (is_behind, behind < points.len() || before > 0) {
            (_, false) => break,
            (true, _) => {
                behind += 1;
                behind - 1
            }
            (false, _) => {
                before -= 1;
                before
            }
        };
        let (track, other) = points[at];
        let along = track - origin;
        let off = near(other - angle - skew * along);
        let unsure = tolerance * (2.0 + 2.0 * along.abs() / reach);
        if off.abs() > unsure.min(0.25) {
            return None;
        }
        whole[at] = skew * along + off;
        if along.abs() > reach {
            skew = whole[at] / along;
            reach = along.abs();
        }
    }
    let count = points.len() as f64;
    let middle = points.iter().map(|(track, _)| track - origin).sum::<f64>() / count;
    let mean = whole[..points.len()].iter().sum::<f64>() / count;
    let (mut up, mut down) = (0.0, 0.0);
    for ((track, _), whole) in points.iter().zip(whole) {
        let along = track - origin - middle;
        up += along * (whole - mean);
        down += along * along;
    }
    let skew = up / down;
    let first = mean - skew * middle;
    let offs = points
        .iter()
        .zip(whole)
        .map(|((track, _), whole)| (whole - first - skew * (track - origin)).abs());
    let (off, squares) = offs.fold((0.0, 0.0), |(most, squares), off| {
        (f64::max(most, off), squares + off * off)
    });
    (off < tolerance).then_some((angle + first - skew * origin, skew, off, squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A row that starts at address 70,000.
    #[derive(Clone, Copy)]
    struct Truth {
        slots: u64,
        skew: f64,
        zero: f64,
    }

    const START: u64 = 70_000;
    const TRUTH: Truth = Truth {
        slots: 4_992,
        skew: 0.113,
        zero: 0.62,
    };

    impl Truth {
        fn look(&self, lba: u64) -> Glance {
            let (track, slot) = ((lba - START) / self.slots, (lba - START) % self.slots);
            let angle = self.zero + self.skew * track as f64 + slot as f64 / self.slots as f64;
            Glance {
                lba,
                angle: super::super::turns::part(angle),
            }
        }

        /// Samples at random places of `count` tracks, starting with track `first`.
        fn looks(&self, first: u64, count: u64, random: &mut Random) -> Vec<Glance> {
            let tracks = first..first + count;
            let at = |track: u64| START + track * self.slots;
            tracks
                .map(|track| self.look(at(track) + random.up_to(self.slots - 1)))
                .collect()
        }
    }

    fn limit(slots: u64) -> f64 {
        0.3 / slots as f64
    }

    #[test]
    fn a_row_is_told_by_looks_on_tracks_of_their_own() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let truth = Truth {
                slots: 500 + random.up_to(5_000),
                skew: random.unit() - 0.5,
                zero: random.unit(),
            };
            let looks = truth.looks(0, 9, &mut random);
            let lengths = truth.slots * 84 / 100..=truth.slots * 119 / 100;
            let found = solve(&looks, lengths, 1, (START, START), limit);
            let best = only(&found, 1e-7).unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
            assert_eq!(best.slots, truth.slots, "seed {seed}");
            assert!(near(best.skew - truth.skew).abs() < 1e-9);
            assert!(near(best.zero(START) - truth.zero).abs() < 1e-9);
            let lba = START + 57 * truth.slots + 31;
            let angle = best.angle(lba, START);
            assert!(near(angle - truth.look(lba).angle).abs() < 1e-7);
        }
    }

    #[test]
    fn noise_of_a_tenth_of_a_sector_is_no_other_length() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut looks = TRUTH.looks(0, 16, &mut random);
            for look in &mut looks {
                look.angle += (random.unit() - 0.5) * 0.2 / TRUTH.slots as f64;
            }
            let found = solve(&looks, 4_200..=5_900, 1, (START, START), limit);
            assert_eq!(found[0].slots, TRUTH.slots, "seed {seed}");
            let far = START + 100 * TRUTH.slots;
            let off = near(found[0].angle(far, START) - TRUTH.look(far).angle);
            assert!(off.abs() * (TRUTH.slots as f64) < 2.5, "seed {seed}: {off}");
        }
    }

    #[test]
    fn looks_at_one_place_of_each_track_do_not_tell_a_length_from_the_next() {
        let same = |track: u64| TRUTH.look(START + track * TRUTH.slots + 2_000);
        let mut looks: Vec<Glance> = (0..9).map(same).collect();
        let solved = |looks: &[Glance]| solve(looks, 4_200..=5_900, 1, (START, START), limit);
        assert!(solved(&looks).len() > 100);
        assert_eq!(only(&solved(&looks), 1e-7), None);
        assert!(solved(&looks[..3]).is_empty());
        looks.push(TRUTH.look(START + 4 * TRUTH.slots + 300));
        assert_eq!(only(&solved(&looks), 1e-7).unwrap().slots, TRUTH.slots);
    }

    #[test]
    fn a_look_that_comes_at_another_angle_is_no_row() {
        let mut random = Random::new(2);
        let mut looks = TRUTH.looks(0, 10, &mut random);
        looks[4].angle += 3.0 / TRUTH.slots as f64;
        let found = solve(&looks, 4_200..=5_900, 1, (START, START), limit);
        assert_eq!(found, Vec::new());
    }

    #[test]
    fn where_a_row_begins_is_as_wide_as_no_look_was_between() {
        let mut random = Random::new(3);
        let looks = TRUTH.looks(1, 9, &mut random);
        let (low, high) = (START - 3_000, START + 3_500);
        let found = solve(&looks, 4_200..=5_900, 1, (low, high), limit);
        let best = only(&found, 1e-7).expect("one row");
        assert_eq!(best.slots, TRUTH.slots);
        // The start is ambiguous by whole tracks.
        let first = best.start.0 as i64 - START as i64;
        let last = best.start.1 as i64 - START as i64;
        let slots = TRUTH.slots as i64;
        let within =
            |from: i64, to: i64| (-1..=1).any(|track| from <= track * slots && track * slots <= to);
        assert!(within(first, last), "{first} {last}");
        for lba in [
            START + slots as u64 * 20 + 4_990,
            START + slots as u64 * 30 + 9,
        ] {
            let angle = best.again_at(START).angle(lba, START);
            assert!(near(angle - TRUTH.look(lba).angle).abs() < 1e-6);
        }
    }

    /// Samples of a drive with 4 KiB sectors behind addresses of 512 bytes.
    #[test]
    fn answers_that_vary_by_two_fifths_of_a_sector_of_the_medium_tell_a_row() {
        let sigma = 0.4 * 8.0 / 12_f64.sqrt() / TRUTH.slots as f64;
        let mut told = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut looks = TRUTH.looks(0, 14, &mut random);
            for look in &mut looks {
                look.angle += (random.unit() - 0.5) * 0.4 * 8.0 / TRUTH.slots as f64;
            }
            let limit = |slots: u64| 2.4 / slots as f64;
            let found = solve(&looks, 4_200..=5_900, 8, (START, START), limit);
            if let Some(best) = likeliest(&found, sigma) {
                assert_eq!(best.slots, TRUTH.slots, "seed {seed}");
                told += 1;
            }
            // A sample that is late by a sector and a half excludes the row, although the limit is wide.
            let limit = |slots: u64| 16.0 / slots as f64;
            looks[5].angle += 12.0 / TRUTH.slots as f64;
            let found = solve(&looks, 4_200..=5_900, 8, (START, START), limit);
            assert_eq!(likeliest(&found, sigma), None, "seed {seed}");
        }
        assert!(told >= 36, "{told}");
    }

    #[test]
    fn a_look_before_a_row_is_one_of_it_on_the_same_track_or_the_one_before() {
        let mut random = Random::new(4);
        let looks = TRUTH.looks(1, 9, &mut random);
        let start = (START + TRUTH.slots, START + TRUTH.slots);
        let found = solve(&looks, 4_200..=5_900, 1, start, limit);
        let best = only(&found, 1e-7).expect("one row");
        let tolerance = limit(TRUTH.slots);
        assert!(best.goes_back_to(TRUTH.look(START + 4_000), tolerance));
        let other = Glance {
            angle: TRUTH.look(START + 4_000).angle + 0.01,
            lba: START + 4_000,
        };
        assert!(!best.goes_back_to(other, tolerance));
    }
}
