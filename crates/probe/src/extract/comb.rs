//! Looks for sectors whose data is elsewhere.
//!
//! A drive goes to the spare place and comes back, which costs a turn and more. A read that is later than the profile
//! says by a part of a turn is *suspect*. It is read again when the buffer has forgotten it; late again, each half of it is,
//! and so on until a sector stands alone. One that is answered twice at the same angle, which is not its own, is
//! elsewhere, if its neighbours are not. Sectors that cannot be read are halved in the same way, until each stands alone.
//!
//! All of the disk is read from its end to its beginning, some tracks at a time: what a drive reads ahead is then behind,
//! and all that is asked for comes from the medium. A bus that is slower than the medium would hide a detour behind the
//! sectors that wait for it. There it is a piece of a track at a time, and of more tracks than the buffer holds places
//! before the next piece of the first, since a drive may keep what passes in front of a piece.

use super::bench::Bench;
use super::error::ExtractError;
use super::holdout::Predictor;
use super::remaps::{CombPlace, LATE, MOST_SUSPECTS, Remapped, Remaps, Suspect};
use super::turns::{near, part};
use crate::ProbeError;
use headtime_units::{Extent, Lba, Nanos};

/// A look that is so much earlier was answered by the buffer in part.
const EARLY: f64 = 0.03;
/// A suspect that was late once more, and of which then no part was, is looked at so often.
const ROUNDS: u64 = 3;
/// Tracks that are read at a time, and bytes.
const TRACKS: u32 = 8;
const MOST_BYTES: u64 = 16 << 20;
/// A bus on which the sectors of a track take more than this part of a turn is slow.
const SLOW: f64 = 0.95;
/// Tracks that are read in pieces together, at most.
const MOST_BLOCK: u64 = 512;
/// What the bus does while the arm is elsewhere takes less than this part of a turn.
const HIDDEN: f64 = 0.85;
/// The head is there so much of a turn before the first sector, and not less.
const WAIT: f64 = 0.15;
const LEAST_WAIT: f64 = 0.06;
/// A drive that reads on behind a read may do so over the end of a track, which takes so much longer.
const OVER_END: f64 = 0.25;
/// Looks at a suspect, and those among them that may be answered by the buffer.
const MOST_LOOKS: u64 = 400;
const MOST_HITS: u64 = 8;
/// Fewer sectors than this beside its place is not elsewhere: where in a track one was slipped is not known better.
const NEIGHBOURS: f64 = 2.5;
/// So many places in a row that cannot be read are not one here and there.
const ELSEWHERE: u32 = 8;
/// Reads between two looks at a place, at most.
const MOST_WAIT: u64 = 4_096;
/// Keeping the phase takes this part of the time.
const PHASE: f64 = 0.1;
/// Reads of a zone by which is said how long it takes: where tracks are read in pieces, one of each of the block.
const TRIED: usize = 4;
/// Tracks are tried in up to so many pieces more than are needed.
const MORE_PIECES: u64 = 5;

/// A read that was timed.
struct Timed {
    /// By how much it took longer than predicted, in turns.
    off: f64,
    /// When it was answered.
    angle: f64,
    /// The buffer had it.
    hit: bool,
}

/// Returns true if it was these sectors that could not be read.
fn is_of(error: &ExtractError, extent: Extent) -> bool {
    match error {
        ExtractError::Failed(ProbeError::Failed { extent: failed, .. }) => failed.overlaps(extent),
        _ => false,
    }
}

pub(super) struct Comb<'b, 'a, 'l> {
    pub bench: &'b mut Bench<'a>,
    pub plan: CombPlan<'l>,
    /// Where the arm is.
    pub before: Option<Extent>,
}

/// What a read of each place takes.
pub(super) struct CombPlan<'l> {
    pub predictor: &'l Predictor,
    /// Sectors are taken as they come.
    pub zero_latency: bool,
    /// In nanoseconds.
    pub turn: f64,
    /// Sectors that are read at a time.
    most_sectors: u64,
    /// Tracks that are read in pieces together.
    tracks: u64,
    /// These tracks, the last one first.
    block: Vec<Extent>,
}

impl<'l> CombPlan<'l> {
    /// For a drive of sectors of so many bytes whose buffer holds so many places.
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

    /// What is read next, and how far all is read with it.
    fn next(&mut self, at: CombPlace) -> (Extent, CombPlace) {
        let layout = self.predictor.layout();
        let last = Lba::new(at.from - 1);
        let slots = u64::from(layout.run(last).sectors_per_track);
        if self.predictor.transfer().sector * slots as f64 > SLOW * self.turn {
            return self.next_piece(at, slots);
        }
        let mut start = layout.track_extent_of(last).start.get();
        for _ in 1..TRACKS {
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

    /// The same where the bus is slow: the last piece of each of some tracks, then the one in front of it of each.
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
                // What was read of a track before is not read again.
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

    /// In how many pieces the tracks of the block, of so many sectors, are read soonest, and by how many pieces the one
    /// read of each is farther on its track than that of the first.
    fn quickest(&self, slots: u64) -> (u64, Vec<u64>) {
        let most = HIDDEN * self.turn / self.predictor.transfer().sector;
        let fewest = libm::ceil(slots as f64 / most.max(1.0)) as u64;
        let tried = fewest..(fewest + MORE_PIECES).min(slots.max(fewest + 1));
        let timed = tried.map(|pieces| (pieces, self.rhythm(pieces)));
        let best = timed.min_by(|(_, one), (_, other)| f64::total_cmp(&one.0, &other.0));
        best.map_or((fewest, Vec::new()), |(pieces, (_, farther))| {
            (pieces, farther)
        })
    }

    /// What a sector takes if tracks are read in so many pieces, and of each track the piece is taken that comes first when
    /// the bus and the arm are done with that of the track before; and which ones these are.
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

    /// How long a read takes behind another one that ended at an angle, in nanoseconds, with what is waited before it.
    fn step(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        let pause = self.pause(angle, before, extent);
        let sent = part(angle + pause);
        let said = self.predictor.time(sent, before, extent, self.zero_latency);
        said.as_nanos() as f64 + pause * self.turn
    }

    /// How long some reads take behind the first of them, and how many sectors those are.
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

    /// How long the head waits for the first sector of a read, or for when it comes again if it is hardly there in time.
    fn passes(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        match self.predictor.wait(angle, before, extent) {
            wait if wait < LEAST_WAIT => wait + 1.0,
            wait => wait,
        }
    }

    /// How long to wait with a read, in turns, so that the head comes a little before its first sector: what the way takes
    /// more or less then costs no turn, and a drive that takes sectors as they come takes them in their order.
    fn pause(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        (self.passes(angle, before, extent) - WAIT).max(0.0)
    }

    /// How long it takes to read all in front of an address.
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
            while extents.len() <= at.farther.len().max(TRIED) && at.from > 0 {
                let (extent, behind) = self.next(at);
                extents.push(extent);
                at = behind;
            }
            let (spent, read) = self.chain(extents);
            if read > 0 {
                nanos += spent / read as f64 * len as f64;
            }
        }
        Nanos::from_nanos((nanos * (1.0 + PHASE)) as u64)
    }
}

/// One of so many pieces of a track.
fn piece(track: Extent, index: u64, pieces: u64) -> Extent {
    let part = |index: u64| track.len.get() * index / pieces;
    let start = part(index);
    Extent::at(track.start.get() + start, part(index + 1) - start)
}

impl Comb<'_, '_, '_> {
    /// Makes a read or two. Returns false if nothing is left to look at.
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
                    timed.hit || timed.off.abs() > LATE
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
                Err(error) if is_of(&error, place) && tries < ELSEWHERE => tries += 1,
                read => {
                    read?;
                    self.before = Some(place);
                    return Ok(place);
                }
            }
        }
    }

    /// Reads sectors, and compares what that takes with what the profile says.
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
        self.before = (off.abs() < LATE).then_some(extent);
        Ok(Timed {
            off,
            angle: self.bench.angle_at(answer.at),
            hit: self.bench.is_hit(&answer),
        })
    }

    /// Looks at the next piece of a suspect.
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
            if suspect.rounds < ROUNDS {
                suspect.pieces.push(suspect.whole);
            }
        }
        if suspect.pieces.is_empty() {
            self.look_around(&mut suspect, &at.unreadable);
        }
        // The arm may be at a spare place, or on its way there: a drive that reads ahead goes there, too.
        self.before = None;
        if suspect.hits > MOST_HITS || suspect.looks > MOST_LOOKS || suspect.is_other_tracks() {
            at.unclear += 1;
        } else if suspect.pieces.is_empty() {
            at.note(suspect.away);
        } else {
            // The buffer may hold more places than it was seen to.
            let wait = (at.wait << suspect.hits.min(12)).min(MOST_WAIT.max(at.wait));
            suspect.due = at.reads + wait;
            at.suspects.push(suspect);
        }
        Ok(())
    }

    /// Looks at some sectors at once.
    fn ask_many(
        &mut self,
        (start, len): (u64, u64),
        suspect: &mut Suspect,
    ) -> Result<(), ExtractError> {
        let timed = self.time(self.asked_for(start, len))?;
        if timed.hit || timed.off < -EARLY {
            suspect.hits += 1;
            return Ok(());
        }
        suspect.pieces.pop();
        if timed.off > LATE {
            suspect.late = true;
            self.halve((start, len), suspect);
            if (start, len) == suspect.whole {
                // If its tracks are others than was learned, both ends show it.
                suspect.pieces.push((start + len - 1, 1));
                suspect.pieces.push((start, 1));
            }
        }
        Ok(())
    }

    /// Each half of some sectors is looked at next.
    fn halve(&self, (start, len): (u64, u64), suspect: &mut Suspect) {
        let half = self.half(start, len);
        suspect.pieces.push((start, half));
        suspect.pieces.push((start + half, len - half));
    }

    /// Looks at a sector alone.
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
        let is_beside = off_by(home) * f64::from(slots) < NEIGHBOURS;
        if is_at(home) || is_beside && timed.off < LATE {
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

    /// What is read to look at a piece: more sectors than one with another on each side, as far as these are on its tracks.
    /// A drive that has gone away for one of the piece comes late to the one behind, and does not go while it waits for the
    /// first.
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

    /// Where to halve sectors: at a track's end, if they are on several.
    fn half(&self, start: u64, len: u64) -> u64 {
        let layout = self.plan.predictor.layout();
        let middle = layout.track_extent_of(Lba::new(start + len / 2));
        match middle.start.get() > start {
            true => middle.start.get() - start,
            false if middle.end().get() < start + len => middle.end().get() - start,
            false => len / 2,
        }
    }

    /// Sectors beside those that are elsewhere are looked at, too, until one is where it should be.
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
