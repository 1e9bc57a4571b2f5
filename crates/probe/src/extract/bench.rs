//! Timed reads of single sectors, and the angles at which they come.

mod follow;

use super::error::ExtractError;
use super::phase::Phase;
use super::rotation::Mark;
use super::stalls::Stalls;
use crate::random::Random;
use crate::{Answer, Probe};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A drive under probe, and the phase of its platters.
///
/// Invariants:
///
/// - `weighs` ⇔ `vary > 0 && !holds_many`; `quiet` ⇒ `vary = 0`.
/// - `phase.is_some()` ⇒ `next_place < places.len()`.
/// - `RELOCK[0] ≤ relock_after ≤ RELOCK[1]`; `evict ≥ 1`; `noise ≥ 0`.
/// - Each key of `seen` is a key of `looked`, and has one angle or more.
/// - `reads = 0` ⇒ `last = u64::MAX`.
pub(super) struct Bench<'a> {
    pub probe: &'a mut dyn Probe,
    pub random: Random,
    /// Commands so far.
    pub reads: u64,
    phase: Option<Phase>,
    places: Vec<Mark>,
    linger: f64,
    /// True if answers come when they should.
    quiet: bool,
    /// True if the buffer holds too many places to evict a sector quickly. Each sample is then on a track of its own.
    holds_many: bool,
    /// True if the drive reads on before any other work, after a second consecutive read on a track.
    pub stays: bool,
    next_place: usize,
    hit_below: f64,
    /// Address of the last command.
    last: u64,
    /// Number of other reads that last evicted a sector from the buffer.
    evict: usize,
    relock_after: Nanos,
    /// Mean deviation of known places, in turns.
    pub noise: f64,
    /// Standard deviation of a single answer in turns; 0 if answers come when they should.
    pub(super) vary: f64,
    /// True if a sample is the result of several reads, because answers vary. Where a second sample is expensive, a sample is a single
    /// read.
    pub(super) weighs: bool,
    /// Sectors that are expected to pass in a turn at the current place.
    pub slots: u64,
    /// All angles of each sampled sector, where answers vary.
    pub(super) seen: BTreeMap<u64, Vec<f64>>,
    /// Answers that took too long for any movement.
    pub stalls: Stalls,
    /// Time after which no command is sent.
    pub give_up: Option<Time>,
    /// Sectors that were read. The buffer may hold these, and some sectors behind each.
    touched: BTreeSet<u64>,
    /// Angle of each sampled sector; true if several samples agreed.
    looked: BTreeMap<u64, (f64, bool)>,
}

/// Turns after which an answer has waited for something other than its sector.
const WAITED_TURNS: f64 = 4.0;
/// Length, in sectors, above which a command is not checked for stalls.
const STALLS_SECTORS: u64 = 128;

/// Shortest and longest interval between two checks of the phase. An unsteady phase is checked more often.
const RELOCK: [Nanos; 2] = [Nanos::from_millis(60), Nanos::from_millis(250)];
/// Assumed sectors per track where nothing is known.
pub(super) const SLOTS: u64 = 1_024;
/// Most sectors that a drive reads ahead although another command waits.
pub(super) const READ_AHEAD_MAX: u64 = 256;
/// Most sectors that are remembered as read.
const MOST_TOUCHED: usize = 16_384;
/// Number of reads to evict a sector above which eviction is expensive.
const DEAR_EVICTION_READS: usize = 24;
/// Most sectors of a track.
pub(super) const MOST_TRACK: u64 = 8_192;
/// Sectors around a read that the buffer may hold with it, while nothing else is known.
const AROUND_SECTORS: u64 = 8;
/// Uncertainty of angles, in turns, above which a walk is not worthwhile.
pub(super) const MOST_NOISE: f64 = 0.01;
/// Most reads after which a sector must have left the buffer.
const MOST_EVICTIONS: usize = 4_096;

impl<'a> Bench<'a> {
    pub fn new(probe: &'a mut dyn Probe, seed: u64) -> Bench<'a> {
        Bench {
            probe,
            random: Random::new(seed),
            reads: 0,
            phase: None,
            places: Vec::new(),
            linger: 0.0,
            quiet: false,
            holds_many: false,
            stays: false,
            next_place: 0,
            hit_below: 0.0,
            last: u64::MAX,
            evict: 2,
            relock_after: RELOCK[0],
            noise: 0.0,
            vary: 0.0,
            weighs: false,
            slots: SLOTS,
            seen: BTreeMap::new(),
            stalls: Stalls::default(),
            give_up: None,
            touched: BTreeSet::new(),
            looked: BTreeMap::new(),
        }
    }

    pub fn capacity(&self) -> u64 {
        self.probe.capacity().get()
    }

    /// Reads sectors without regard to the angle.
    pub fn read(&mut self, lba: u64, count: u64) -> Result<Answer, ExtractError> {
        self.command(Op::Read, Extent::at(lba, count))
    }

    /// Sends a command and waits for the answer.
    pub fn command(&mut self, op: Op, extent: Extent) -> Result<Answer, ExtractError> {
        if let Some(end) = self.give_up
            && self.probe.now() > end
        {
            return Err(ExtractError::GivenUp);
        }
        self.probe.send(0, op, extent)?;
        let answer = self.probe.answer()?;
        self.reads += 1;
        self.last = extent.start.get();
        match answer.failure {
            // Many sectors take long on a slow bus, and writes or flushes may wait for other work.
            None if !op.is_read() || extent.len.get() > STALLS_SECTORS => Ok(answer),
            None if self.stalls.too_many(answer.at - answer.sent) => {
                Err(ExtractError::Stalls(self.stalls))
            }
            None => Ok(answer),
            Some(source) => Err(ExtractError::Failed(crate::ProbeError::Failed {
                op,
                extent,
                source,
            })),
        }
    }

    /// Returns true if an answer was too fast for the medium.
    pub fn is_hit(&self, answer: &Answer) -> bool {
        ((answer.at - answer.sent).as_nanos() as f64) < self.hit_below
    }

    /// Returns true if an answer was too slow for any movement and a few more reads. The time of such an answer tells nothing. A drive that
    /// waits for a sector may soon do so again, but not for a read that starts before this sector.
    fn has_waited(&self, answer: &Answer) -> bool {
        (answer.at - answer.sent).as_nanos() as f64 > WAITED_TURNS * self.turn()
    }

    /// Reads a random sector near another sector, to evict something from the buffer. A large buffer may hold the whole neighbourhood, and
    /// a read next to the sector may bring the sector back. The longer the sector stays, the farther away these reads are.
    fn elsewhere(&mut self, lba: u64) -> Result<(), ExtractError> {
        let apart = self.evict as u64 * MOST_TRACK;
        let window = (self.capacity() / 64).max(apart).min(self.capacity());
        let low = lba.saturating_sub(window / 2).min(self.capacity() - window);
        let lba = low + self.random.up_to(window - 1);
        self.read(lba, 1).map(|_| ())
    }

    /// Reads enough places to evict all earlier reads from the buffer.
    pub fn drive_out(&mut self) -> Result<(), ExtractError> {
        for _ in 0..2 * self.places.len() {
            let lba = self.random.up_to(self.capacity() - 1);
            self.read(lba, 1)?;
            self.keep_phase()?;
        }
        self.touched.clear();
        Ok(())
    }

    /// Returns true if the last command was on the track of `lba` and the drive may read on there before it answers.
    fn would_stay(&self, lba: u64) -> bool {
        self.stays && self.last.abs_diff(lba) < MOST_TRACK
    }

    /// Angle of a sector, from an earlier sample if there is one.
    pub fn look(&mut self, lba: u64) -> Result<f64, ExtractError> {
        match self.looked.get(&lba) {
            Some(&(angle, _)) => Ok(angle),
            None => self.look_again(lba),
        }
    }

    /// Angle of a sector, from a new sample.
    pub fn look_again(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let angle = self.angle(lba)?;
        self.looked.insert(lba, (angle, false));
        Ok(angle)
    }

    /// Angle of a sector from an earlier sample.
    pub(super) fn noted(&self, lba: u64) -> Option<f64> {
        self.looked.get(&lba).map(|(angle, _)| *angle)
    }

    /// Records the angle of a sector.
    pub(super) fn note(&mut self, lba: u64, angle: f64) {
        self.looked.insert(lba, (angle, false));
    }

    /// Forgets all sampled angles.
    pub fn forget(&mut self) {
        self.looked.clear();
        self.seen.clear();
    }

    /// Marks a sector's angle as confirmed by several samples.
    pub fn make_sure(&mut self, lba: u64) {
        if let Some((_, sure)) = self.looked.get_mut(&lba) {
            *sure = true;
        }
    }

    pub fn is_sure(&self, lba: u64) -> bool {
        self.looked.get(&lba).is_some_and(|(_, sure)| *sure)
    }

    /// Angle of a sector, read from the medium.
    pub fn angle(&mut self, lba: u64) -> Result<f64, ExtractError> {
        self.keep_phase()?;
        let is_ahead = self.last <= lba && lba - self.last < READ_AHEAD_MAX;
        if is_ahead || self.would_stay(lba) {
            // The drive may have to read on to this sector before any other work. A hit then takes as long as a miss.
            self.elsewhere(lba)?;
        }
        let near = lba.saturating_sub(READ_AHEAD_MAX)..=lba;
        if self.touched.range(near).next().is_some() {
            // While the drive reads on behind an earlier read, the buffer may answer as late as the medium.
            self.linger();
        }
        let mut answer = self.read(lba, 1)?;
        let (mut tried, mut before) = (0, 0);
        while self.is_hit(&answer) || before < lba.min(1) && self.has_waited(&answer) {
            if self.has_waited(&answer) {
                before = lba.min(1);
            }
            if tried > MOST_EVICTIONS {
                return Err(ExtractError::Sticks { lba });
            }
            for _ in 0..self.evict {
                self.elsewhere(lba)?;
            }
            tried += self.evict;
            self.keep_phase()?;
            self.linger();
            answer = self.read(lba - before, before + 1)?;
            self.evict = if self.is_hit(&answer) {
                self.evict * 2
            } else {
                (self.evict * 7 / 8).max(1)
            };
        }
        if self.touched.len() > MOST_TOUCHED {
            self.touched.clear();
        }
        self.touched.insert(lba);
        Ok(self.angle_at(answer.at))
    }

    /// Angle of a sector from a single read. `None` if the buffer has or may have the sector, or if the drive ends before it.
    pub fn glance(&mut self, lba: u64) -> Result<Option<f64>, ExtractError> {
        if lba >= self.capacity() {
            return Ok(None);
        }
        let around = match self.linger > 0.0 {
            true => lba.saturating_sub(READ_AHEAD_MAX)..lba + AROUND_SECTORS,
            false => lba..lba + AROUND_SECTORS,
        };
        if self.touched.range(around).next().is_some() {
            return Ok(None);
        }
        self.keep_phase()?;
        if self.would_stay(lba) {
            self.elsewhere(lba)?;
        }
        let behind = lba.saturating_sub(MOST_TRACK)..lba;
        if self.linger > 0.0 && self.touched.range(behind).next().is_some() {
            self.linger();
        }
        let answer = self.read(lba, 1)?;
        if self.touched.len() > MOST_TOUCHED {
            self.touched.clear();
        }
        self.touched.insert(lba);
        let tells = !self.is_hit(&answer) && !self.has_waited(&answer);
        Ok(tells.then(|| self.angle_at(answer.at)))
    }

    /// Angle of the last of some sectors that are read in a row; `None` if the buffer answered.
    pub fn last_of(&mut self, lbas: [u64; 3]) -> Result<Option<f64>, ExtractError> {
        self.keep_phase()?;
        self.elsewhere(lbas[0])?;
        let mut angle = None;
        for lba in lbas {
            self.linger();
            let answer = self.read(lba, 1)?;
            angle = (!self.is_hit(&answer)).then(|| self.angle_at(answer.at));
        }
        self.touched.extend(lbas);
        Ok(angle)
    }

    /// Returns true if each sample should be on a track of its own.
    pub fn holds_many(&self) -> bool {
        self.holds_many
    }

    /// Most sectors of a physical sector. The drive answers a read of one of these sectors when the whole physical sector has passed.
    pub fn unit(&self) -> u64 {
        u64::from(4096 / self.probe.sector_bytes().clamp(1, 4096))
    }

    /// Sectors per physical sector, as the disk reports. Tracks and slips are multiples of this number. One where answers come when they
    /// should, because no report is needed there.
    pub fn grain(&self) -> u64 {
        match self.vary > 0.0 {
            true => {
                u64::from(self.probe.physical_bytes() / self.probe.sector_bytes().max(1)).max(1)
            }
            false => 1,
        }
    }

    /// Smallest difference between tracks that is resolved, in sectors. Usually one sector. If each sample is on a track of its own, it is
    /// 512 bytes, which may be a part of a sector. If answers vary as well, it is a physical sector.
    ///
    /// On separate tracks, rows follow from angles alone, and angles are equally exact for sectors of any size. A difference of one sector
    /// of 4 KiB between heads looks like eight sectors of 512 bytes.
    pub fn fineness(&self) -> f64 {
        match self.holds_many {
            true if self.vary > 0.0 => self.grain() as f64,
            true => 512.0 / f64::from(self.probe.sector_bytes().max(512)),
            false => 1.0,
        }
    }

    /// Returns true if answers vary and each sample is a single read.
    pub fn is_coarse(&self) -> bool {
        self.vary > 0.0 && !self.weighs
    }

    /// Smallest difference between tracks that is resolved, in whole sectors.
    pub fn coarseness(&self) -> f64 {
        self.fineness().max(1.0)
    }

    /// Number of the disk's sectors in `sectors` of 512 bytes, at least one.
    pub fn parts(&self, sectors: u64) -> u64 {
        (sectors * 512 / u64::from(self.probe.sector_bytes().max(512))).max(1)
    }

    /// Returns true if no answers are late.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns true if evicting a sector from the buffer takes many reads.
    pub fn is_dear(&self) -> bool {
        self.evict > DEAR_EVICTION_READS
    }

    /// Largest deviation of an angle that counts as agreement, in turns, on a track of `slots` sectors. A bit more than a third of `part`
    /// sectors, or the noise of the samples if that is larger. Where answers vary and a sample is several reads, the limit is just below
    /// half.
    pub(super) fn tolerance_of(&self, part: f64, slots: u64) -> f64 {
        let least = if self.varies() { 0.45 } else { 0.35 };
        let sector = part / slots as f64;
        if self.is_coarse() {
            // A small limit lets fewer samples agree by chance. Beyond half a sector the next sector would agree as well.
            return (6.0 * self.look_noise()).clamp(0.1 * sector, 0.45 * sector);
        }
        let noise = (4.0 * self.look_noise()).min(MOST_NOISE);
        f64::max(least * sector, noise)
    }

    /// Pauses for the longest time that the drive reads on before other work. Returns true if the drive reads on at all.
    pub fn linger(&mut self) -> bool {
        let reads_on = self.linger > 0.0;
        if reads_on {
            self.probe.pause(Nanos::from_nanos(self.linger as u64));
        }
        reads_on
    }

    /// Nearest address from `lba` down to `floor` that is probably not in the buffer; `lba` if there is none.
    pub fn fresh(&self, lba: u64, floor: u64) -> u64 {
        let mut fresh = lba;
        while let Some(touched) = self
            .touched
            .range(fresh.saturating_sub(READ_AHEAD_MAX)..=fresh)
            .next()
        {
            match touched.checked_sub(1) {
                Some(below) if below >= floor => fresh = below,
                _ => return lba,
            }
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::super::spindle;
    use super::*;
    use crate::Modelled;
    use headtime_disk::profile::Profile;

    /// The buffer holds half a million sectors, about as many as a 64th of the disk.
    #[test]
    fn a_sector_leaves_a_buffer_that_holds_most_of_what_is_near() {
        let text = include_str!("../../../cli/tests/data/roomy.toml");
        let drive = Profile::from_toml("roomy.toml", text).expect("it is right");
        let mut probe = Modelled::new(&drive, 3);
        let mut bench = Bench::new(&mut probe, 3);
        let spindle = spindle::find(&mut bench).expect("it turns");
        bench.lock(&spindle).expect("its places are known");
        for lba in [120_575, 19_045_184] {
            for _ in 0..20 {
                bench.angle(lba).expect("it leaves the buffer");
            }
        }
    }
}
