//! Samples of several reads, for drives whose single answers vary too much to distinguish neighbouring sectors.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::{LATE_DEVIATIONS, mean, near, part};

/// Target deviation of a sample's mean, in sectors: four such deviations are about a third of a sector. The number of reads follows.
const MEAN_DEVIATION_SECTORS: f64 = 0.35 / 4.0;
/// Most reads per sample.
const READS_MAX: f64 = 15.0;
/// Number of standard deviations between a mean and the tolerance that decides a comparison.
const SURE_DEVIATIONS: f64 = 1.5;
/// Reads in vain that a sample may have, beyond twice its planned number of reads.
const READS_IN_VAIN_MAX: usize = 4;

impl Bench<'_> {
    /// Returns true if a sample consists of several reads because answers vary. With a large buffer a sample is a single read
    /// ([`Bench::is_coarse`]).
    pub fn varies(&self) -> bool {
        self.weighs
    }

    /// Most reads per sample for tracks of the expected length.
    fn reads_of_look(&self) -> usize {
        let vary = self.vary * self.slots as f64;
        libm::ceil((vary / MEAN_DEVIATION_SECTORS) * (vary / MEAN_DEVIATION_SECTORS))
            .clamp(1.0, READS_MAX) as usize
    }

    /// Mean deviation of a sample, in turns.
    pub(super) fn look_noise(&self) -> f64 {
        match self.vary > 0.0 {
            true if self.weighs => self.vary / (self.reads_of_look() as f64).sqrt(),
            // Includes the error of the phase.
            true => 1.4 * self.vary,
            false => self.noise,
        }
    }

    /// Reads a sector once more, and updates the sector's angle from all reads.
    fn look_once_more(&mut self, lba: u64) -> Result<(), ExtractError> {
        let angle = self.angle(lba)?;
        let seen = self.seen.entry(lba).or_default();
        seen.push(angle);
        let one = seen[0];
        let mut offs: Vec<f64> = seen.iter().map(|angle| near(angle - one)).collect();
        let angle = part(one + mean(&mut offs, self.vary));
        self.note(lba, angle);
        Ok(())
    }

    /// Number of reads of a sector that agree with the sector's angle.
    fn agreed(&self, lba: u64) -> usize {
        let (Some(seen), Some(angle)) = (self.seen.get(&lba), self.noted(lba)) else {
            return 0;
        };
        let agrees = |seen: &&f64| near(*seen - angle).abs() <= LATE_DEVIATIONS * self.vary;
        seen.iter().filter(agrees).count()
    }

    /// Angle of a sector with full precision, where no angle is expected.
    pub(super) fn look_closely(&mut self, lba: u64) -> Result<f64, ExtractError> {
        if self.varies() {
            // A single read may be late.
            let needed = self.reads_of_look().max(2);
            for _ in 0..2 * needed + READS_IN_VAIN_MAX {
                if self.agreed(lba) >= needed {
                    break;
                }
                self.look_once_more(lba)?;
            }
        }
        self.look(lba)
    }

    /// Deviation of a sector from its expected angle. The sector is read until the deviation is clearly below or above the tolerance,
    /// usually once or twice.
    pub(super) fn look_against(
        &mut self,
        lba: u64,
        expected: f64,
        tolerance: f64,
    ) -> Result<f64, ExtractError> {
        if self.varies() {
            let reads = self.reads_of_look();
            for _ in 0..2 * reads + READS_IN_VAIN_MAX {
                let (agreed, noted) = (self.agreed(lba), self.noted(lba));
                if let Some(angle) = noted.filter(|_| agreed > 0) {
                    let off = near(angle - expected).abs();
                    // A read at an unexpected angle may be late.
                    let least = if off < tolerance { 1 } else { 2 };
                    let doubt = SURE_DEVIATIONS * self.vary / (agreed as f64).sqrt();
                    if agreed >= least && (agreed >= reads || (off - tolerance).abs() > doubt) {
                        break;
                    }
                }
                self.look_once_more(lba)?;
            }
        }
        Ok(near(self.look(lba)? - expected))
    }
}
