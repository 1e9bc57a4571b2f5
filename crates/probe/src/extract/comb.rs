//! Search for remapped sectors, in a scan of the disk.
//!
//! A drive that reads a remapped sector goes to the spare place and comes back, which costs more than a turn. A read is *suspect* if it
//! comes later than predicted by more than a part of a turn. A suspect is read again once the buffer has forgotten it. If the suspect is
//! late again, its halves are read, and so on down to single sectors. A sector is remapped if two reads find it at the same unexpected
//! angle while its neighbours are in place. Unreadable sectors are isolated by halving, too.
//!
//! The scan reads the whole disk from its end to its beginning, some tracks at a time. Read-ahead then covers sectors that were read
//! already, and each read is served by the medium.
//!
//! A bus that is slower than the medium would hide a detour, since sectors wait for the bus anyway. On such a drive the scan reads one
//! piece of a track at a time. The scan returns to a track only after pieces of more tracks than the buffer can hold. Otherwise the buffer
//! could answer, since the drive may retain sectors that pass in front of a piece.

use super::bench::Bench;
use super::error::ExtractError;
use super::holdout::Predictor;
use super::remaps::{CombPlace, MOST_SUSPECTS, Remapped, Remaps, SUSPECT_TURNS, Suspect};
use super::turns::{near, part};
use crate::ProbeError;
use headtime_units::{Extent, Lba, Nanos};

/// Deviation, in turns, by which a read must be early to count as answered partly by the buffer.
const EARLY_TURNS: f64 = 0.03;
/// Most rounds for a suspect that is late as a whole while none of its sectors is found out of place.
const SUSPECT_ROUNDS_MAX: u64 = 3;
/// Tracks per read, and the most bytes per read.
const TRACKS_PER_READ: u32 = 8;
const MOST_BYTES: u64 = 16 << 20;
/// Share of a turn above which the bus time of a track makes the bus slow.
const SLOW_BUS_SHARE: f64 = 0.95;
/// Most tracks in a block that is read in pieces.
const MOST_BLOCK: u64 = 512;
/// Largest share of a turn that bus work may take and still be hidden by arm movement.
const HIDDEN_BUS_SHARE: f64 = 0.85;
/// Share of a turn that the head should arrive before the first sector, and the least share that is in time.
const WAIT_SHARE: f64 = 0.15;
const LEAST_WAIT: f64 = 0.06;
/// Pause, in turns, on a drive that reads on behind a read: its read-ahead may cross the end of a track.
const OVER_END: f64 = 0.25;
/// Most samples of a suspect, and most samples that the buffer answered.
const MOST_LOOKS: u64 = 400;
const MOST_HITS: u64 = 8;
/// Deviation, in sectors, within which a sector is still in place. The position of a slip on its track is not known more exactly.
const IN_PLACE_SECTORS: f64 = 2.5;
/// Unreadable random places in a row after which the error is reported.
const UNREADABLE_IN_ROW: u32 = 8;
/// Most reads between two samples of a suspect.
const MOST_WAIT: u64 = 4_096;
/// Time for keeping the phase, as a share of the scan.
const PHASE_TIME_SHARE: f64 = 0.1;
/// Least reads per zone to estimate its scan time. Where tracks are read in pieces, the estimate uses one piece of each track of the block.
const ZONE_READS_MIN: usize = 4;
/// Range of piece counts to try, starting at the least possible count.
const MORE_PIECES: u64 = 5;

/// A timed read.
struct Timed {
    /// Time beyond the prediction, in turns.
    off: f64,
    /// Angle at the time of the answer.
    angle: f64,
    /// True if the buffer answered.
    hit: bool,
}

/// Returns true if these sectors caused the error.
fn is_of(error: &ExtractError, extent: Extent) -> bool {
    match error {
        ExtractError::Failed(ProbeError::Failed { extent: failed, .. }) => failed.overlaps(extent),
        _ => false,
    }
}

pub(super) struct Comb<'b, 'a, 'l> {
    pub bench: &'b mut Bench<'a>,
    pub plan: CombPlan<'l>,
    /// Extent of the last read, which gives the arm's position; `None` if unknown.
    pub before: Option<Extent>,
}

/// Plan of a scan: extents to read, and predicted times.
pub(super) struct CombPlan<'l> {
    pub predictor: &'l Predictor,
    /// True if the drive reads the sectors of a track in the order in which they pass.
    pub zero_latency: bool,
    /// Rotation time in nanoseconds.
    pub turn: f64,
    /// Most sectors per read.
    most_sectors: u64,
    /// Most tracks in a block that is read in pieces.
    tracks: u64,
    /// Tracks of the current block, the last one first.
    block: Vec<Extent>,
}

impl<'l> CombPlan<'l> {
    /// Plan for a drive with the given sector size and number of places that its buffer holds.
    pub fn new(
        predictor: &'l Predictor,
        zero_latency: bool,
        turn: f64,
        (sector_bytes, held_places): (u32, u64),
    ) -> CombPlan<'l> {
        CombPlan {
            predictor,
            zero_latency,
            turn,
            most_sectors: MOST_BYTES / u64::from(sector_bytes.max(1)),
            tracks: (held_places + 2).clamp(8, MOST_BLOCK),
            block: Vec::new(),
        }
    }

    /// Next extent to read, and the progress of the scan after this read.
    fn next(&mut self, at: CombPlace) -> (Extent, CombPlace) {
        let layout = self.predictor.layout();
        let last = Lba::new(at.from - 1);
        let slots = u64::from(layout.run(last).sectors_per_track);
        if self.predictor.transfer().sector * slots as f64 > SLOW_BUS_SHARE * self.turn {
            return self.next_piece(at, slots);
        }
        let mut start = layout.track_extent_of(last).start.get();
        for _ in 1..TRACKS_PER_READ {
            if start == 0 {
                break;
            }
            let before = layout.track_extent_of(Lba::new(start - 1));
            if at.from - before.start.get() > self.most_sectors {
                break;
            }
            start = before.start.get();
        }
        let behind = CombPlace {
            from: start,
            ..CombPlace::default()
        };
        (Extent::at(start, at.from - start), behind)
    }

    /// Next extent to read where the bus is slow. The first pass over a block reads the last piece of each track, and each further pass
    /// reads the next piece toward the start.
    fn next_piece(&mut self, at: CombPlace, slots: u64) -> (Extent, CombPlace) {
        if self
            .block
            .first()
            .is_none_or(|first| first.end().get() != at.from)
        {
            let layout = self.predictor.layout();
            self.block.clear();
            let mut end = at.from;
            while end > 0 && (self.block.len() as u64) < self.tracks {
                let track = layout.track_extent_of(Lba::new(end - 1));
                // Leaves out the part of a track that was read before.
                let extent = Extent::at(track.start.get(), end - track.start.get());
                self.block.push(extent);
                end = track.start.get();
            }
        }
        let mut at = at;
        if at.of == 0 {
            (at.of, at.farther) = self.quickest(slots);
        }
        let pieces = at.of;
        let tracks = self.block.len() as u64;
        let (pass, track) = (at.pieces / tracks, at.pieces % tracks);
        let farther = at.farther.get(track as usize).copied().unwrap_or(0);
        let index = (pieces - 1 - pass + farther) % pieces;
        let extent = piece(self.block[track as usize], index, pieces);
        let behind = match at.pieces + 1 < tracks * pieces {
            true => CombPlace {
                pieces: at.pieces + 1,
                ..at
            },
            false => CombPlace {
                from: self.block.last().expect("a track").start.get(),
                ..CombPlace::default()
            },
        };
        (extent, behind)
    }

    /// Number of pieces per track that minimizes the time for the block. Also returns, for each track, the offset of its first piece from
    /// the first piece of the first track.
    fn quickest(&self, slots: u64) -> (u64, Vec<u64>) {
        let most = HIDDEN_BUS_SHARE * self.turn / self.predictor.transfer().sector;
        let fewest = libm::ceil(slots as f64 / most.max(1.0)) as u64;
        let tried = fewest..(fewest + MORE_PIECES).min(slots.max(fewest + 1));
        let timed = tried.map(|pieces| (pieces, self.rhythm(pieces)));
        let best = timed.min_by(|(_, one), (_, other)| f64::total_cmp(&one.0, &other.0));
        best.map_or((fewest, Vec::new()), |(pieces, (_, farther))| {
            (pieces, farther)
        })
    }

    /// Mean time per sector, in nanoseconds, for tracks in `pieces` pieces. From each track the head reads the first piece that it can
    /// reach once bus and arm have finished with the track before. Also returns the offsets of these pieces.
    fn rhythm(&self, pieces: u64) -> (f64, Vec<u64>) {
        let first = pieces / 2;
        let (mut farther, mut extents) = (vec![0], vec![piece(self.block[0], first, pieces)]);
        let mut angle = 0.0;
        let (mut spent, mut read) = (0.0, 0);
        for track in &self.block[1..] {
            let before = *extents.last().expect("the first");
            let each =
                (0..pieces).map(|more| (more, piece(*track, (first + more) % pieces, pieces)));
            let each = each.filter(|(_, extent)| extent.len.get() > 0);
            let each =
                each.map(|(more, extent)| (self.passes(angle, before, extent), more, extent));
            let soonest = each.min_by(|(one, ..), (other, ..)| f64::total_cmp(one, other));
            let Some((_, more, extent)) = soonest.filter(|_| before.len.get() > 0) else {
                farther.push(0);
                extents.push(piece(*track, first, pieces));
                continue;
            };
            let takes = self.step(angle, before, extent);
            angle = part(angle + takes / self.turn);
            spent += takes;
            read += extent.len.get();
            farther.push(more);
            extents.push(extent);
        }
        (spent / read.max(1) as f64, farther)
    }

    /// Time of a read behind another read that ended at `angle`, in nanoseconds, including the pause in between.
    fn step(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        let pause = self.pause(angle, before, extent);
        let sent = part(angle + pause);
        let said = self.predictor.time(sent, before, extent, self.zero_latency);
        said.as_nanos() as f64 + pause * self.turn
    }

    /// Total time of some reads behind the first of them, in nanoseconds, and the number of sectors that they read.
    fn chain(&self, extents: impl IntoIterator<Item = Extent>) -> (f64, u64) {
        let mut extents = extents.into_iter().filter(|extent| extent.len.get() > 0);
        let Some(mut before) = extents.next() else {
            return (0.0, 0);
        };
        let (mut angle, mut spent, mut read) = (0.0, 0.0, 0);
        for extent in extents {
            let takes = self.step(angle, before, extent);
            angle = part(angle + takes / self.turn);
            spent += takes;
            read += extent.len.get();
            before = extent;
        }
        (spent, read)
    }

    /// Turns until the first sector of a read comes, plus one if the head would barely be in time.
    fn passes(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        match self.predictor.wait(angle, before, extent) {
            wait if wait < LEAST_WAIT => wait + 1.0,
            wait => wait,
        }
    }

    /// Pause before a read, in turns, after which the head arrives a little before the first sector. A small error in the predicted
    /// movement then costs no turn. A drive with zero-latency reads then starts at the first sector.
    fn pause(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        (self.passes(angle, before, extent) - WAIT_SHARE).max(0.0)
    }

    /// Time to read all sectors in front of an address.
    pub fn takes(&mut self, from: u64) -> Nanos {
        let mut nanos = 0.0;
        let zones = self.predictor.layout().zones().map(|zone| zone.extent);
        for zone in zones.collect::<Vec<Extent>>() {
            let len = from.min(zone.end().get()).saturating_sub(zone.start.get());
            if len == 0 {
                continue;
            }
            let mut at = CombPlace {
                from: zone.start.get() + len - len / 3,
                ..CombPlace::default()
            };
            let mut extents = Vec::new();
            while extents.len() <= at.farther.len().max(ZONE_READS_MIN) && at.from > 0 {
                let (extent, behind) = self.next(at);
                extents.push(extent);
                at = behind;
            }
            let (spent, read) = self.chain(extents);
            if read > 0 {
                nanos += spent / read as f64 * len as f64;
            }
        }
        Nanos::from_nanos((nanos * (1.0 + PHASE_TIME_SHARE)) as u64)
    }
}

/// Piece `index` of a track that is cut into `pieces`.
fn piece(track: Extent, index: u64, pieces: u64) -> Extent {
    let part = |index: u64| track.len.get() * index / pieces;
    let start = part(index);
    Extent::at(track.start.get() + start, part(index + 1) - start)
}

impl Comb<'_, '_, '_> {
    /// Makes one or two reads. Returns false if the scan and all suspects are finished.
    pub fn step(&mut self, at: &mut Remaps) -> Result<bool, ExtractError> {
        if at.suspects.first().is_some_and(|next| next.due <= at.reads) {
            let suspect = at.suspects.remove(0);
            self.ask(suspect, at)?;
            return Ok(true);
        }
        let room = at.suspects.len() < MOST_SUSPECTS;
        let next = at.combing.as_mut();
        if let Some(combing) = next.filter(|combing| combing.goes_on() && room) {
            let (chunk, behind) = self.plan.next(combing.at.clone());
            if chunk.len.get() == 0 {
                combing.at = behind;
                return Ok(true);
            }
            let is_suspect = match self.time(chunk) {
                Err(error) if is_of(&error, chunk) => {
                    self.before = None;
                    true
                }
                timed => {
                    let timed = timed?;
                    timed.hit || timed.off.abs() > SUSPECT_TURNS
                }
            };
            combing.at = behind;
            at.reads += 1;
            if is_suspect {
                at.suspect(chunk.start.get(), chunk.len.get());
            }
            return Ok(true);
        }
        if at.suspects.is_empty() {
            return Ok(false);
        }
        self.go_elsewhere()?;
        at.reads += 1;
        Ok(true)
    }

    fn go_elsewhere(&mut self) -> Result<Extent, ExtractError> {
        let mut tries = 0;
        loop {
            let lba = self.bench.random.up_to(self.bench.capacity() - 1);
            let place = Extent::at(lba, 1);
            match self.bench.read(lba, 1) {
                Err(error) if is_of(&error, place) && tries < UNREADABLE_IN_ROW => tries += 1,
                read => {
                    read?;
                    self.before = Some(place);
                    return Ok(place);
                }
            }
        }
    }

    /// Reads an extent and compares its time with the prediction.
    fn time(&mut self, extent: Extent) -> Result<Timed, ExtractError> {
        if self.bench.keep_phase()? {
            self.before = None;
        }
        let before = match self.before {
            Some(before) => before,
            None => self.go_elsewhere()?,
        };
        let turn = self.bench.turn();
        if self.bench.linger() {
            let over = Nanos::from_nanos((OVER_END * turn) as u64);
            self.bench.probe.pause(over);
        }
        let now = self.bench.probe.now();
        let pause = self.plan.pause(self.bench.angle_at(now), before, extent);
        if pause > 0.0 {
            let pause = Nanos::from_nanos((pause * turn) as u64);
            self.bench.probe.pause(pause);
        }
        let now = self.bench.probe.now();
        let angle = self.bench.angle_at(now);
        let zero_latency = self.plan.zero_latency;
        let said = self
            .plan
            .predictor
            .time(angle, before, extent, zero_latency);
        let answer = self.bench.read(extent.start.get(), extent.len.get())?;
        let took = (answer.at - answer.sent).as_nanos() as f64;
        let off = (took - said.as_nanos() as f64) / turn;
        self.before = (off.abs() < SUSPECT_TURNS).then_some(extent);
        Ok(Timed {
            off,
            angle: self.bench.angle_at(answer.at),
            hit: self.bench.is_hit(&answer),
        })
    }

    /// Samples the next piece of a suspect.
    fn ask(&mut self, mut suspect: Suspect, at: &mut Remaps) -> Result<(), ExtractError> {
        let Some(&(start, len)) = suspect.pieces.last() else {
            return Ok(());
        };
        suspect.looks += 1;
        at.reads += 1;
        let asked = match len {
            1 => self.ask_one(start, &mut suspect),
            _ => self.ask_many((start, len), &mut suspect),
        };
        match asked {
            Err(error) if is_of(&error, self.asked_for(start, len)) => {
                suspect.pieces.pop();
                suspect.seen = None;
                match len {
                    1 => at.cannot_be_read(start),
                    _ => self.halve((start, len), &mut suspect),
                }
            }
            asked => asked?,
        }
        if suspect.pieces.is_empty() && suspect.late && suspect.away.is_empty() {
            suspect.rounds += 1;
            suspect.late = false;
            if suspect.rounds < SUSPECT_ROUNDS_MAX {
                suspect.pieces.push(suspect.whole);
            }
        }
        if suspect.pieces.is_empty() {
            self.look_around(&mut suspect, &at.unreadable);
        }
        // The arm may be at a spare place, or on its way there: read-ahead visits spare places, too.
        self.before = None;
        if suspect.hits > MOST_HITS || suspect.looks > MOST_LOOKS || suspect.is_other_tracks() {
            at.unclear += 1;
        } else if suspect.pieces.is_empty() {
            at.note(suspect.away);
        } else {
            // The buffer may hold more places than measured.
            let wait = (at.wait << suspect.hits.min(12)).min(MOST_WAIT.max(at.wait));
            suspect.due = at.reads + wait;
            at.suspects.push(suspect);
        }
        Ok(())
    }

    /// Samples several sectors with one read.
    fn ask_many(
        &mut self,
        (start, len): (u64, u64),
        suspect: &mut Suspect,
    ) -> Result<(), ExtractError> {
        let timed = self.time(self.asked_for(start, len))?;
        if timed.hit || timed.off < -EARLY_TURNS {
            suspect.hits += 1;
            return Ok(());
        }
        suspect.pieces.pop();
        if timed.off > SUSPECT_TURNS {
            suspect.late = true;
            self.halve((start, len), suspect);
            if (start, len) == suspect.whole {
                // If the learned tracks are wrong here, both ends show it.
                suspect.pieces.push((start + len - 1, 1));
                suspect.pieces.push((start, 1));
            }
        }
        Ok(())
    }

    /// Puts both halves of a piece on the suspect's list.
    fn halve(&self, (start, len): (u64, u64), suspect: &mut Suspect) {
        let half = self.half(start, len);
        suspect.pieces.push((start, half));
        suspect.pieces.push((start + half, len - half));
    }

    /// Samples a single sector.
    fn ask_one(&mut self, lba: u64, suspect: &mut Suspect) -> Result<(), ExtractError> {
        let timed = self.time(Extent::at(lba, 1))?;
        if timed.hit {
            suspect.hits += 1;
            return Ok(());
        }
        let slots = self
            .plan
            .predictor
            .layout()
            .run(Lba::new(lba))
            .sectors_per_track;
        let coarse = self.bench.coarseness();
        let tolerance = self.bench.tolerance_of(coarse, u64::from(slots));
        let off_by = |angle: f64| near(timed.angle - angle).abs();
        let is_at = |angle: f64| off_by(angle) < tolerance;
        let home = self.plan.predictor.answered(lba);
        let is_beside = off_by(home) * f64::from(slots) < IN_PLACE_SECTORS;
        if is_at(home) || is_beside && timed.off < SUSPECT_TURNS {
            suspect.home.push(lba);
        } else if suspect.seen.is_some_and(is_at) {
            let angle = timed.angle;
            suspect.away.push(Remapped { lba, angle });
            suspect.away.sort_by_key(|remapped| remapped.lba);
        } else {
            suspect.seen = Some(timed.angle);
            return Ok(());
        }
        suspect.seen = None;
        suspect.pieces.pop();
        Ok(())
    }

    /// Extent to read in order to sample a piece. A piece of more than one sector gets a neighbour on each side, within its tracks. A drive
    /// that leaves for a remapped sector is late for the neighbour behind. While the drive waits for the neighbour in front, it does not
    /// leave.
    fn asked_for(&self, start: u64, len: u64) -> Extent {
        if len == 1 {
            return Extent::at(start, 1);
        }
        let layout = self.plan.predictor.layout();
        let track = |lba: u64| layout.track_extent_of(Lba::new(lba));
        let before = u64::from(start > track(start).start.get());
        let behind = u64::from(start + len < track(start + len - 1).end().get());
        Extent::at(start - before, before + len + behind)
    }

    /// Length of the first half of a piece. A piece of several tracks is divided at the end of a track.
    fn half(&self, start: u64, len: u64) -> u64 {
        let layout = self.plan.predictor.layout();
        let middle = layout.track_extent_of(Lba::new(start + len / 2));
        match middle.start.get() > start {
            true => middle.start.get() - start,
            false if middle.end().get() < start + len => middle.end().get() - start,
            false => len / 2,
        }
    }

    /// Adds the neighbours of remapped sectors to the suspect's list until a neighbour is in place.
    fn look_around(&self, suspect: &mut Suspect, unreadable: &[u64]) {
        let capacity = self.bench.capacity();
        let away: Vec<u64> = suspect.away.iter().map(|away| away.lba).collect();
        for lba in &away {
            let beside = [lba.checked_sub(1), Some(lba + 1)].into_iter().flatten();
            for beside in beside {
                let known = away.contains(&beside)
                    || suspect.home.contains(&beside)
                    || unreadable.contains(&beside)
                    || suspect.pieces.contains(&(beside, 1));
                if beside < capacity && !known {
                    suspect.pieces.push((beside, 1));
                }
            }
        }
    }
}
