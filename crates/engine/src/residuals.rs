//! How far predictions are off, by how far the arm went and by where on the disk, and what margin that asks for.

use headtime_sched::Predicting;
use headtime_units::{Lba, Nanos};

/// Classes of seeks: none, up to 1 ms, up to 2 ms and so on; the last has all that are longer.
const SEEKS: usize = 16;
const SEEK_STEP: u64 = 1_000_000;
/// Regions of the disk, at most.
const REGIONS: usize = 16;
/// The width of a region at first, in sectors. It doubles as often as addresses ask for it.
const NARROWEST: u64 = 1 << 16;
/// Errors are counted in steps of 10 us up to half a millisecond, and of 100 us up to 20 ms.
const FINE: usize = 50;
const COARSE: usize = 195;

/// Commands by how much later they were done than predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// The first are those that were not late, to 10 us.
    counts: [u32; 1 + FINE + COARSE],
    commands: u64,
    /// Errors summed up, of those up to 20 ms.
    sum: i64,
}

impl Default for Residual {
    fn default() -> Residual {
        Residual {
            counts: [0; 1 + FINE + COARSE],
            commands: 0,
            sum: 0,
        }
    }
}

impl Residual {
    fn add(&mut self, error: i64) {
        let late = error.max(0) as u64 / 10_000;
        let step = match late as usize {
            fine if fine <= FINE => fine,
            more => (FINE + (more - FINE).div_ceil(10)).min(FINE + COARSE),
        };
        self.counts[step] = self.counts[step].saturating_add(1);
        self.commands += 1;
        self.sum += error.clamp(-20_000_000, 20_000_000);
    }

    fn merge(&mut self, other: &Residual) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.commands += other.commands;
        self.sum += other.sum;
    }

    /// How many there were.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// The mean error in nanoseconds; 0 without commands.
    pub fn mean(&self) -> i64 {
        self.sum / self.commands.max(1) as i64
    }

    /// How much later than predicted a share of the commands, 0 to 1, was done at most. `None` if there were too few to
    /// say: it takes ten beyond the share.
    pub fn margin(&self, share: f64) -> Option<Nanos> {
        let beyond = self.commands as f64 * (1.0 - share);
        if beyond < 10.0 {
            return None;
        }
        let mut left = self.commands as f64 * share;
        let step = self.counts.iter().position(|count| {
            left -= f64::from(*count);
            left <= 0.0
        });
        let step = step.unwrap_or(FINE + COARSE) as u64;
        let (fine, coarse) = (step.min(FINE as u64), step.saturating_sub(FINE as u64));
        // Up to the end of the step.
        Some(Nanos::from_micros(
            10 * fine + 100 * coarse + if step == 0 { 0 } else { 10 },
        ))
    }
}

/// How far predictions were off, by how far the arm went and by where on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residuals {
    seeks: Box<[Residual; SEEKS]>,
    regions: Box<[Residual; REGIONS]>,
    /// Sectors of a region.
    width: u64,
}

impl Default for Residuals {
    fn default() -> Residuals {
        Residuals {
            seeks: Box::default(),
            regions: Box::default(),
            width: NARROWEST,
        }
    }
}

impl Residuals {
    /// Counts a command.
    pub fn add(&mut self, predicting: &Predicting) {
        let error = predicting.error();
        self.seeks[seek_class(predicting.seek)].add(error);
        let lba = predicting.lba.get();
        while lba / self.width >= REGIONS as u64 {
            self.widen();
        }
        self.regions[(lba / self.width) as usize].add(error);
    }

    /// Regions twice as wide.
    fn widen(&mut self) {
        for at in 0..REGIONS / 2 {
            let mut both = std::mem::take(&mut self.regions[2 * at]);
            both.merge(&self.regions[2 * at + 1]);
            self.regions[at] = both;
        }
        self.regions[REGIONS / 2..].fill(Residual::default());
        self.width *= 2;
    }

    pub(crate) fn merge(&mut self, other: &Residuals) {
        let mut other = other.clone();
        while self.width < other.width {
            self.widen();
        }
        while other.width < self.width {
            other.widen();
        }
        let pairs = self.seeks.iter_mut().zip(other.seeks.iter());
        pairs.for_each(|(own, other)| own.merge(other));
        let pairs = self.regions.iter_mut().zip(other.regions.iter());
        pairs.for_each(|(own, other)| own.merge(other));
    }

    /// By predicted seek: those up to so long, and longer than those before; the last has all that are longer.
    pub fn by_seek(&self) -> impl Iterator<Item = (Nanos, &Residual)> {
        let upto = |class: usize| Nanos::from_nanos(class as u64 * SEEK_STEP);
        let all = self.seeks.iter().enumerate();
        all.map(move |(class, residual)| (upto(class), residual))
    }

    /// By address: from so far on, up to where the next begins.
    pub fn by_region(&self) -> impl Iterator<Item = (Lba, &Residual)> {
        let from = |region: usize| Lba::new(region as u64 * self.width);
        let all = self.regions.iter().enumerate();
        all.map(move |(region, residual)| (from(region), residual))
    }

    /// How much later than predicted a command may be done that a share of those like it, 0 to 1, were not later: of
    /// those that went as far, and of those near it, the larger. `None` if too few were seen.
    pub fn margin(&self, share: f64, seek: Nanos, lba: Lba) -> Option<Nanos> {
        let region = (lba.get() / self.width).min(REGIONS as u64 - 1) as usize;
        let far = self.seeks[seek_class(seek)].margin(share);
        let near = self.regions[region].margin(share);
        far.max(near)
    }
}

/// 0 without a seek; then 1 for up to a millisecond, 2 for up to two.
fn seek_class(seek: Nanos) -> usize {
    (seek.as_nanos().div_ceil(SEEK_STEP) as usize).min(SEEKS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Surprise;

    fn command(seek: u64, lba: u64, late: i64) -> Predicting {
        let predicted = 30_000_000;
        Predicting {
            observed: Nanos::from_nanos((predicted + late) as u64),
            predicted: Nanos::from_nanos(predicted as u64),
            surprise: Surprise::None,
            seek: Nanos::from_micros(seek),
            lba: Lba::new(lba),
        }
    }

    #[test]
    fn a_margin_is_what_the_share_of_commands_needed_by_distance_and_by_region() {
        let mut all = Residuals::default();
        for number in 0..1_000_u64 {
            // Far ones are late by 200 us, one in fifty by a turn; those in the upper half by 35 us more.
            let far = number % 2 == 0;
            let upper = number % 4 < 2;
            let mut late = if far { 200_000 } else { -5_000 };
            late += if upper { 35_000 } else { 0 };
            late += if number % 50 == 0 { 6_000_000 } else { 0 };
            let lba = number + if upper { 1 << 20 } else { 0 };
            all.add(&command(if far { 4_500 } else { 0 }, lba, late));
        }
        let far = Nanos::from_micros(4_200);
        let high = Lba::new((1 << 20) + 3);
        let margin = |share, seek, lba| all.margin(share, seek, lba).map(Nanos::as_nanos);
        assert_eq!(margin(0.9, far, high), Some(240_000));
        assert_eq!(margin(0.9, Nanos::ZERO, Lba::ZERO), Some(210_000));
        // Beyond 95 % come those that were a turn late.
        assert!(margin(0.97, far, high) >= Some(6_000_000));
        // Of 500 there are 5 beyond 99 %.
        assert_eq!(margin(0.99, far, high), None);
        // None of that length was seen, and none there.
        assert_eq!(margin(0.5, Nanos::from_millis(9), Lba::new(1 << 19)), None);
        let seen: u64 = all.by_region().map(|(_, one)| one.commands()).sum();
        assert_eq!(seen, 1_000);
    }

    #[test]
    fn regions_widen_with_the_addresses_and_two_of_other_widths_add_up() {
        let (mut one, mut other) = (Residuals::default(), Residuals::default());
        for number in 0..100 {
            one.add(&command(0, number * 60_000, 0));
            other.add(&command(2_000, number << 40, 1_000_000));
        }
        let both = |mut one: Residuals, other: &Residuals| {
            one.merge(other);
            one
        };
        let sum = both(one.clone(), &other);
        assert_eq!(sum, both(other, &one));
        let regions: Vec<u64> = sum.by_region().map(|(_, one)| one.commands()).collect();
        assert_eq!(regions.iter().sum::<u64>(), 200);
        assert!(regions[0] >= 100 && regions[12] > 0, "{regions:?}");
        let (upto, seeks) = sum.by_seek().nth(2).unwrap();
        assert_eq!(
            (upto, seeks.commands(), seeks.mean()),
            (Nanos::from_millis(2), 100, 1_000_000)
        );
    }

    #[test]
    fn a_margin_counts_to_the_end_of_its_step_and_stops_at_20_ms() {
        let margin = |late: i64| {
            let mut one = Residual::default();
            (0..100).for_each(|_| one.add(late));
            one.margin(0.5).unwrap().as_nanos()
        };
        assert_eq!([-1_000, 9_999].map(margin), [0, 0]);
        assert_eq!(
            [10_000, 495_000, 505_000].map(margin),
            [20_000, 500_000, 510_000]
        );
        assert_eq!([6_000_000, 90_000_000].map(margin), [6_010_000, 20_010_000]);
    }
}
