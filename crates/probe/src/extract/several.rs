//! Looks that are several reads, where single answers vary too much to tell a sector from the next.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::{LATE, mean, near, part};

/// A look is as many reads as make their mean as exact as this, in sectors: four such deviations are a third of a sector.
const EXACT: f64 = 0.35 / 4.0;
/// Reads of a look, at most.
const MOST: f64 = 15.0;
/// A sector is where it is expected, or is not, if its reads are on one side of the tolerance by so many deviations of their mean.
const SURE: f64 = 1.5;
/// Reads in vain, at most, among those of a look.
const IN_VAIN: usize = 4;

impl Bench<'_> {
    /// Returns true if a look is as many reads as are needed, since answers vary. Under a large buffer it is one ([`Bench::is_coarse`]).
    pub fn varies(&self) -> bool {
        self.weighs
    }

    /// Reads of a look on tracks as they are expected, at most.
    fn reads_of_look(&self) -> usize {
        let vary = self.vary * self.slots as f64;
        libm::ceil((vary / EXACT) * (vary / EXACT)).clamp(1.0, MOST) as usize
    }

    /// What a look is off in the mean, in turns.
    pub(super) fn look_noise(&self) -> f64 {
        match self.vary > 0.0 {
            true if self.weighs => self.vary / (self.reads_of_look() as f64).sqrt(),
            // With what the phase is off.
            true => 1.4 * self.vary,
            false => self.noise,
        }
    }

    /// Reads a sector once more. What it is taken to be at follows from all its reads.
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

    /// How many reads of a sector agree with what it is taken to be at.
    fn agreed(&self, lba: u64) -> usize {
        let (Some(seen), Some(angle)) = (self.seen.get(&lba), self.noted(lba)) else {
            return 0;
        };
        let agrees = |seen: &&f64| near(*seen - angle).abs() <= LATE * self.vary;
        seen.iter().filter(agrees).count()
    }

    /// The angle of a sector, as exact as it is needed where nothing is expected.
    pub(super) fn look_closely(&mut self, lba: u64) -> Result<f64, ExtractError> {
        if self.varies() {
            // One alone may be late.
            let needed = self.reads_of_look().max(2);
            for _ in 0..2 * needed + IN_VAIN {
                if self.agreed(lba) >= needed {
                    break;
                }
                self.look_once_more(lba)?;
            }
        }
        self.look(lba)
    }

    /// How far a sector is from where it is expected, read until that is less or more than a tolerance beyond doubt: most
    /// often one or two reads say so.
    pub(super) fn look_against(
        &mut self,
        lba: u64,
        expected: f64,
        tolerance: f64,
    ) -> Result<f64, ExtractError> {
        if self.varies() {
            let reads = self.reads_of_look();
            for _ in 0..2 * reads + IN_VAIN {
                let (agreed, noted) = (self.agreed(lba), self.noted(lba));
                if let Some(angle) = noted.filter(|_| agreed > 0) {
                    let off = near(angle - expected).abs();
                    // One that is elsewhere may be late.
                    let least = if off < tolerance { 1 } else { 2 };
                    let doubt = SURE * self.vary / (agreed as f64).sqrt();
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
