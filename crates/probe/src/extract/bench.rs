//! Reads single sectors, and says at which angle they are.

mod follow;

use super::error::ExtractError;
use super::known::Mark;
use super::phase::Phase;
use super::stalls::Stalls;
use crate::random::Random;
use crate::{Answer, Probe};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A drive under probe, and the phase of its platters.
pub(super) struct Bench<'a> {
    pub probe: &'a mut dyn Probe,
    pub random: Random,
    /// Commands so far.
    pub reads: u64,
    phase: Option<Phase>,
    places: Vec<Mark>,
    linger: f64,
    /// Answers come when they should.
    quiet: bool,
    /// The buffer holds so many places that to drive one out takes long: looks are on tracks of their own.
    holds_many: bool,
    /// Behind a second read in a row on a track the drive reads on before it does anything else.
    pub stays: bool,
    next_place: usize,
    hit_below: f64,
    /// The address of the last command.
    last: u64,
    /// How many other reads drove a sector out of the buffer the last time.
    evict: usize,
    relock_after: Nanos,
    /// What known places are off in the mean, in turns.
    pub noise: f64,
    /// The standard deviation of a single answer in turns; 0 if answers come when they should.
    pub(super) vary: f64,
    /// A look is several reads, as answers vary. Where to look twice is dear it is one read.
    pub(super) weighs: bool,
    /// Sectors that are expected to pass in a turn where it looks.
    pub slots: u64,
    /// All angles at which sectors came that were looked at, where answers vary.
    pub(super) seen: BTreeMap<u64, Vec<f64>>,
    /// Answers that took too long for any movement.
    pub stalls: Stalls,
    /// No command is sent from then on.
    pub give_up: Option<Time>,
    /// Sectors that were read, and may be in the buffer with some behind them.
    touched: BTreeSet<u64>,
    /// Angles of sectors that were looked at, and whether more than one look agreed.
    looked: BTreeMap<u64, (f64, bool)>,
}

/// An answer after more turns than this has waited for something else than its sector.
const WAITED: f64 = 4.0;
/// Longer commands are not looked at.
const STALLS_SECTORS: u64 = 128;

/// The phase is looked at again after so long: the less steady the sooner.
const RELOCK: [Nanos; 2] = [Nanos::from_millis(60), Nanos::from_millis(250)];
/// Where nothing is known yet tracks are taken to have so many sectors.
pub(super) const SLOTS: u64 = 1_024;
/// Sectors that a drive reads ahead although another command waits, at most.
pub(super) const AHEAD: u64 = 256;
/// Sectors that were read, of which is known that they were.
const MOST_TOUCHED: usize = 16_384;
/// More reads than this until a sector is out of the buffer are dear.
const DEAR: usize = 24;
/// Sectors that a track may have.
pub(super) const MOST_TRACK: u64 = 8_192;
/// Sectors around one that was read which may be in the buffer with it as far as nothing else is known.
const AROUND: u64 = 8;
/// Angles that are known to no better than this part of a turn are not worth a walk.
pub(super) const MOST_NOISE: f64 = 0.01;
/// Other reads until a sector is expected to be out of the buffer, at most.
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

    /// Reads sectors, whatever the angle.
    pub fn read(&mut self, lba: u64, count: u64) -> Result<Answer, ExtractError> {
        self.command(Op::Read, Extent::at(lba, count))
    }

    /// Sends a command and waits for its answer.
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
            // Many sectors take long over a slow bus, and what is written or flushed may wait for more.
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

    /// Returns true if an answer was too slow for any movement and some reads more: when it came tells nothing. A drive that waits for a
    /// sector may soon do so again, but not for a read that begins before the sector.
    fn has_waited(&self, answer: &Answer) -> bool {
        (answer.at - answer.sent).as_nanos() as f64 > WAITED * self.turn()
    }

    /// Reads something not far from a sector, so that the buffer forgets something. A large buffer may hold all that is near,
    /// and a read beside the sector brings the sector back: the more reads the sector outlasts, the farther away they are.
    fn elsewhere(&mut self, lba: u64) -> Result<(), ExtractError> {
        let apart = self.evict as u64 * MOST_TRACK;
        let window = (self.capacity() / 64).max(apart).min(self.capacity());
        let low = lba.saturating_sub(window / 2).min(self.capacity() - window);
        let lba = low + self.random.up_to(window - 1);
        self.read(lba, 1).map(|_| ())
    }

    /// Reads so many places that the buffer has nothing of what was read before.
    pub fn drive_out(&mut self) -> Result<(), ExtractError> {
        for _ in 0..2 * self.places.len() {
            let lba = self.random.up_to(self.capacity() - 1);
            self.read(lba, 1)?;
            self.keep_phase()?;
        }
        self.touched.clear();
        Ok(())
    }

    /// Returns true if the drive may read on behind a sector before it answers, since it was read on that track last.
    fn would_stay(&self, lba: u64) -> bool {
        self.stays && self.last.abs_diff(lba) < MOST_TRACK
    }

    /// The angle of a sector, as it was when it was looked at before.
    pub fn look(&mut self, lba: u64) -> Result<f64, ExtractError> {
        match self.looked.get(&lba) {
            Some(&(angle, _)) => Ok(angle),
            None => self.look_again(lba),
        }
    }

    /// The angle of a sector, read now.
    pub fn look_again(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let angle = self.angle(lba)?;
        self.looked.insert(lba, (angle, false));
        Ok(angle)
    }

    /// The angle of a sector that was looked at.
    pub(super) fn noted(&self, lba: u64) -> Option<f64> {
        self.looked.get(&lba).map(|(angle, _)| *angle)
    }

    /// A sector is at an angle, as far as looks at it say.
    pub(super) fn note(&mut self, lba: u64, angle: f64) {
        self.looked.insert(lba, (angle, false));
    }

    /// Forgets all angles that it looked at.
    pub fn forget(&mut self) {
        self.looked.clear();
        self.seen.clear();
    }

    /// More than one look at a sector agreed.
    pub fn make_sure(&mut self, lba: u64) {
        if let Some((_, sure)) = self.looked.get_mut(&lba) {
            *sure = true;
        }
    }

    pub fn is_sure(&self, lba: u64) -> bool {
        self.looked.get(&lba).is_some_and(|(_, sure)| *sure)
    }

    /// The angle at which a sector has come, read from the medium.
    pub fn angle(&mut self, lba: u64) -> Result<f64, ExtractError> {
        self.keep_phase()?;
        let is_ahead = self.last <= lba && lba - self.last < AHEAD;
        if is_ahead || self.would_stay(lba) {
            // The drive may have to read on to there before it can do anything else. That is a hit
            // that takes as long as a miss.
            self.elsewhere(lba)?;
        }
        let near = lba.saturating_sub(AHEAD)..=lba;
        if self.touched.range(near).next().is_some() {
            // What is in the buffer may be answered as late as what is not, as long as the drive reads on behind
            // the read before.
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

    /// The angle of a sector, read once; `None` if it is in the buffer, or may be, or is behind the last one.
    pub fn glance(&mut self, lba: u64) -> Result<Option<f64>, ExtractError> {
        if lba >= self.capacity() {
            return Ok(None);
        }
        let around = match self.linger > 0.0 {
            true => lba.saturating_sub(AHEAD)..lba + AROUND,
            false => lba..lba + AROUND,
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

    /// The angle of the last of some sectors that are read in a row; `None` if the buffer had it.
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

    /// Returns true if looks are to be on tracks of their own.
    pub fn holds_many(&self) -> bool {
        self.holds_many
    }

    /// Sectors that are one on the medium, at most: a read of any of them is answered when all have passed.
    pub fn unit(&self) -> u64 {
        u64::from(4096 / self.probe.sector_bytes().clamp(1, 4096))
    }

    /// Sectors that are one on the medium, as the disk says: tracks, and what is slipped on them, are whole numbers of these. One
    /// where answers come when they should, which needs no such word.
    pub fn grain(&self) -> u64 {
        match self.vary > 0.0 {
            true => {
                u64::from(self.probe.physical_bytes() / self.probe.sector_bytes().max(1)).max(1)
            }
            false => 1,
        }
    }

    /// What part of a sector, or how many, is told from none where each look is at a track of its own: as much as 512 bytes are; where
    /// answers vary, a sector of the medium.
    ///
    /// There rows are told by angles alone, which are known as well whatever a sector has: heads whose tracks differ by one
    /// of 4 KiB differ by eight of 512 bytes, and a defect of eight is one.
    pub fn fineness(&self) -> f64 {
        match self.holds_many {
            true if self.vary > 0.0 => self.grain() as f64,
            true => 512.0 / f64::from(self.probe.sector_bytes().max(512)),
            false => 1.0,
        }
    }

    /// Returns true if answers vary and each look is one read.
    pub fn is_coarse(&self) -> bool {
        self.vary > 0.0 && !self.weighs
    }

    /// Sectors that make a difference between tracks at least.
    pub fn coarseness(&self) -> f64 {
        self.fineness().max(1.0)
    }

    /// Sectors of the disk that so many of 512 bytes are there, at least one.
    pub fn parts(&self, sectors: u64) -> u64 {
        (sectors * 512 / u64::from(self.probe.sector_bytes().max(512))).max(1)
    }

    /// Returns true if no answer was late for long.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns true if it takes many other reads until a sector is out of the buffer.
    pub fn is_dear(&self) -> bool {
        self.evict > DEAR
    }

    /// How far off the angle of a sector may be on a track of so many, in turns: a third of a sector, or of a part of one, or of some, unless
    /// angles are not known to that. Where answers vary a look is read until it is on one side of that: hardly less than halfway to the next.
    pub(super) fn tolerance_of(&self, part: f64, slots: u64) -> f64 {
        let least = if self.varies() { 0.45 } else { 0.35 };
        let sector = part / slots as f64;
        if self.is_coarse() {
            // The less it is, the fewer agree by chance. Beyond half a sector it may be the next one as well.
            return (6.0 * self.look_noise()).clamp(0.1 * sector, 0.45 * sector);
        }
        let noise = (4.0 * self.look_noise()).min(MOST_NOISE);
        f64::max(least * sector, noise)
    }

    /// Waits until the drive has read on as long as it wants to before it does anything else. Returns
    /// whether it does.
    pub fn linger(&mut self) -> bool {
        let reads_on = self.linger > 0.0;
        if reads_on {
            self.probe.pause(Nanos::from_nanos(self.linger as u64));
        }
        reads_on
    }

    /// The nearest address, not above one and not below another, that is not in the buffer as far as known; the
    /// first of them if there is none.
    pub fn fresh(&self, lba: u64, floor: u64) -> u64 {
        let mut fresh = lba;
        while let Some(touched) = self
            .touched
            .range(fresh.saturating_sub(AHEAD)..=fresh)
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

    /// Half a million sectors are held, about as many as there are in a 64th of the disk.
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
