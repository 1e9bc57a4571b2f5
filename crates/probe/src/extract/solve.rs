//! Solves together what a row of tracks is, from looks on different tracks.
//!
//! A row whose first track begins at address `b` and angle `z`, with tracks of `L` sectors each turned by
//! `s` against the one before, has address `x` at
//!
//! ```text
//! z + k s + (x - b)/L  turns,   k = floor((x - b)/L)
//! ```
//!
//! Two looks on one track would tell `L`, but a large buffer has what passed while the drive waited for the
//! first. On tracks of their own, each look says something of `z`, `s` and `L` together. `L` is a whole
//! number near that of the row before, so each one is tried: with it, the looks must lie on a line over `k`.

use super::turns::near;
use super::zone::Row;

/// Where a sector was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Glance {
    pub lba: u64,
    /// In turns.
    pub angle: f64,
}

/// A row that has all looks where they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Solved {
    pub slots: u64,
    pub skew: f64,
    /// The row begins at one of these addresses, both included.
    pub start: (u64, u64),
    /// The angle of the first of them, if the row begins there.
    zero: f64,
    /// The largest difference of a look, in turns.
    pub off: f64,
    /// The sum of the squares of all differences.
    squares: f64,
    /// Tracks between the first look and the last.
    pub tracks: u64,
}

/// Looks at least that say something: three unknowns, and one look that could contradict.
const LEAST: usize = 4;
/// Looks at most.
const MOST: usize = 32;
/// Skews are the same up to this part of a turn: those of one row that begins some tracks before or behind.
const SAME: f64 = 1e-9;
/// The same where answers vary: twice the logarithm of how much likelier it is.
const LIKELIER: f64 = 25.0;
/// A look that is off by more deviations is not of the row.
const FAR: f64 = 4.5;
/// A length is told from the next one if its looks are this much better.
const CLEARLY: f64 = 4.0;

impl Solved {
    /// Where a track begins, if the row begins at an address.
    pub fn zero(&self, start: u64) -> f64 {
        self.zero + start.abs_diff(self.start.0) as f64 / self.slots as f64
    }

    /// A row like a known one that begins at an address, and has a look where it was.
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

    /// The same as its angles were before the first address at which it may begin moved on.
    pub fn moved(self, before: u64) -> Solved {
        let slots = self.start.0.abs_diff(before) as f64 / self.slots as f64;
        Solved {
            zero: self.zero + slots,
            ..self
        }
    }

    /// The same if it begins at an address that may be some whole tracks before or behind those at which it may.
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

    /// The same row as it is if it begins at another address with the angle that it has at its first.
    pub fn again_from(self, start: u64) -> Solved {
        Solved {
            start: (start, start),
            ..self
        }
    }

    /// The same if it begins some whole tracks before or behind.
    pub fn again(self, start: u64) -> Solved {
        let tracks = Solved::track(start, self.start.0, self.slots);
        Solved {
            start: (start, start),
            zero: self.zero + (self.skew + 1.0) * tracks as f64,
            ..self
        }
    }

    /// Tracks from the first one to that of an address, if the row begins at another one.
    fn track(lba: u64, start: u64, slots: u64) -> i64 {
        (lba as i64 - start as i64).div_euclid(slots as i64)
    }

    /// Returns true if it may begin as far before as where a look was, on its first track or on one before that.
    pub fn goes_back_to(&self, look: Glance, tolerance: f64) -> bool {
        let back = (look.lba as f64 - self.start.0 as f64) / self.slots as f64;
        let off = near(look.angle - self.zero - back);
        [off, near(off + self.skew)]
            .iter()
            .any(|off| off.abs() < tolerance)
    }

    /// The angle of an address, if the row begins at `start`.
    pub fn angle(&self, lba: u64, start: u64) -> f64 {
        let track = Solved::track(lba, start, self.slots) as f64;
        let slot = (lba as f64 - self.start.0 as f64) / self.slots as f64;
        self.zero + self.skew * track + slot
    }
}

/// All rows that have each look within `tolerance` turns of where it was: tracks are of one of `lengths`
/// sectors, and the row begins at one of the addresses `start`, both included. The best is the first.
pub(super) fn solve(
    looks: &[Glance],
    lengths: std::ops::RangeInclusive<u64>,
    grain: u64,
    start: (u64, u64),
    tolerance: impl Fn(u64) -> f64,
) -> Vec<Solved> {
    let mut fits: Vec<Solved> = Vec::new();
    if looks.len() < LEAST {
        return fits;
    }
    let mut looks = looks.to_vec();
    looks.sort_by_key(|look| look.lba);
    looks.truncate(MOST);
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

/// The best fit, if looks tell it from all others: those with tracks of another length, or that begin
/// elsewhere. `noise` is what a look may be off, in turns.
pub(super) fn only(fits: &[Solved], noise: f64) -> Option<Solved> {
    let (best, others) = fits.split_first()?;
    let limit = CLEARLY * f64::max(best.off, noise);
    // Whole tracks before or behind it is the same row, of which the range of addresses may cut a part.
    let same = |other: &&Solved| other.slots == best.slots && (other.skew - best.skew).abs() < SAME;
    let told = others.iter().all(|other| other.off > limit || same(&other));
    let all = others.iter().filter(same).chain([best]);
    let widest = all.max_by_key(|solved| solved.start.1 - solved.start.0);
    widest.filter(|_| told).copied()
}

/// The same where each look is off by a normal deviation of `noise` turns: the others are less likely by far.
pub(super) fn likeliest(fits: &[Solved], noise: f64) -> Option<Solved> {
    let best = fits
        .iter()
        .min_by(|one, other| f64::total_cmp(&one.squares, &other.squares))?;
    if best.off > FAR * noise {
        return None;
    }
    let limit = best.squares + LIKELIER * noise * noise;
    let same =
        |other: &&Solved| other.slots == best.slots && near(other.skew - best.skew).abs() < noise;
    let told = fits
        .iter()
        .all(|other| other.squares > limit || same(&other));
    let all = fits
        .iter()
        .filter(same)
        .filter(|other| other.squares <= limit);
    let widest = all.max_by_key(|solved| solved.start.1 - solved.start.0);
    widest.filter(|_| told).copied()
}

/// Ranges of addresses at which the row may begin, within each of which all looks are as many tracks on.
fn starts(looks: &[Glance], slots: u64, (first, last): (u64, u64)) -> Vec<(u64, u64)> {
    let mut cuts: Vec<u64> = looks
        .iter()
        .flat_map(|look| {
            // Behind a track's first address at this look the row begins on the track behind.
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

/// The line on which angles lie over tracks: the angle of track 0, what each track adds, and the largest
/// difference. `None` if one is beyond the tolerance. Points are in the order of tracks.
fn straight(points: &[(f64, f64)], tolerance: f64) -> Option<(f64, f64, f64, f64)> {
    // From tracks next to each other the turn is known; farther ones make it exact.
    let pair = points
        .windows(2)
        .position(|pair| pair[1].0 - pair[0].0 == 1.0)?;
    let (origin, angle) = points[pair];
    let mut skew = near(points[pair + 1].1 - angle);
    let mut reach = 1.0;
    let mut whole = [0.0; MOST];
    let (mut before, mut behind) = (pair, pair + 1);
    for _ in 0..points.len() {
        // The nearest that is left.
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

    /// A row that begins at address 70,000.
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

        /// Looks at so many tracks from one on, each anywhere on a track.
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
        // Some whole tracks before or behind, too.
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

    /// Looks of a drive with 4 KiB sectors behind addresses of 512 bytes.
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
            // One that is late by a sector and a half is none of the row, though the limit is wide.
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
