//! Behaviour of a drive towards a command that waits while the drive serves a read.
//!
//! The arm may leave for the waiting command when the last sector has passed. It may also leave a number of sectors later, or when the data
//! are sent and the answer is given. The sectors that the buffer holds behind the read show how long the head has stayed. A fixed number of
//! sectors in zones of different track lengths means a sector count; a fixed time means a delay.

use super::super::bench::Bench;
use super::super::buffer_probe::BufferProbe;
use super::super::error::ExtractError;
use super::super::known_drive::KnownDrive;
use super::super::learned_keys::LearnedKeys;
use super::super::seeks::Target;
use super::super::turns::{near, part};
use super::flight::Flight;
use super::leaves::Leaves;
use super::{Buffered, Queueing};
use headtime_units::{Extent, Lba, Nanos};

/// Pairs of reads that measure the arrival of the arm, from random places and from the end of the disk.
const RANDOM_PAIRS: u32 = 300;
const END_PAIRS: u32 = 60;
/// Fewest tracks of a zone for the measurement of read-ahead.
const ZONE_TRACKS_MIN: u64 = 64;
/// Times that an arm would wait for the next command, in turns: more than half a turn, and less.
const WAITS: [f64; 2] = [0.85, 0.3];
const VOTES_PER_WAIT: u32 = 12;
/// Most reads that are made to evict the end of the disk from the buffer.
const MOST_EVICTIONS: u64 = 64;
/// Mean time, in nanoseconds, that noise alone can produce, and mean time that it cannot.
const NOISE_NS_MAX: f64 = 25e3;
const EFFECT_NS_MIN: f64 = 80e3;

impl Queueing {
    /// Finds the time for which the head stays behind a read although another command waits.
    pub(super) fn leaves(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        held: Buffered,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "queue.preseek";
        let why = match held {
            _ if bench.probe.depth() < 2 => "there is one command at a time",
            Buffered { hit: None, .. } => "nothing comes from a buffer",
            Buffered {
                segments: None | Some(0..2),
                ..
            } => "the buffer forgets what was read when another command comes",
            Buffered {
                reads_ahead: false, ..
            } => "the drive reads nothing ahead",
            _ => "sectors are as long everywhere",
        };
        let mut zones: Vec<(u64, Extent)> = drive
            .layout
            .zones()
            .filter(|zone| {
                zone.extent.len.get() >= ZONE_TRACKS_MIN * u64::from(zone.sectors_per_track)
            })
            .map(|zone| (u64::from(zone.sectors_per_track), zone.extent))
            .collect();
        zones.sort_by_key(|(per_track, _)| *per_track);
        let ends = match zones.as_slice() {
            [short, .., long] if short.0 * 5 < long.0 * 4 => Some([*short, *long]),
            _ => None,
        };
        let is_possible = bench.probe.depth() > 1 && held.reads_ahead;
        let (Some(hit), Some(2..), Some(ends), true) = (held.hit, held.segments, ends, is_possible)
        else {
            learned.doubt(key, why);
            return Ok(());
        };
        let [_, (_, zone)] = ends;
        let mut buffer = BufferProbe::in_zone(bench, drive.layout, drive.turn, hit, zone);
        buffer.segments = held.segments;
        self.just_in_time = is_just_in_time(&mut buffer, drive)?;
        if self.just_in_time {
            self.leaves = Some(Leaves {
                after: None,
                read_on: 0,
            });
            learned.know(key, 0.9);
            return Ok(());
        }
        let mut seen = [(0, 0.0); 2];
        for (seen, (_, zone)) in seen.iter_mut().zip(ends) {
            let mut buffer = BufferProbe::in_zone(bench, drive.layout, drive.turn, hit, zone);
            buffer.segments = held.segments;
            let Some(count) = read_on(&mut buffer)? else {
                learned.doubt(key, "how far it reads on behind a read differs");
                return Ok(());
            };
            *seen = (count, drive.turn / buffer.per_track as f64);
        }
        self.leaves = Leaves::of(seen);
        match self.leaves {
            Some(_) => learned.know(key, 0.9),
            None => {
                let [(short, _), (long, _)] = seen;
                learned.doubt(
                    key,
                    format!("{short} sectors are read on where tracks are short, {long} where they are long"),
                );
            }
        }
        Ok(())
    }

    /// Checks a count of sectors that are read on behind each read: the arm may also stay for another reason. Behind the last sector of the
    /// disk there is nothing to read on.
    pub(super) fn last(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        held: Buffered,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "queue.preseek";
        let hidden = self
            .leaves
            .filter(|leaves| leaves.after.is_none() && leaves.read_on > 1);
        let (Some(leaves), Some(sooner)) = (hidden, self.sooner) else {
            return Ok(());
        };
        let Some(count) = held.segments.filter(|count| *count <= MOST_EVICTIONS) else {
            learned.know(key, 0.6);
            return Ok(());
        };
        let last = bench.capacity() - 1;
        let alone = pairs(bench, drive, None, (END_PAIRS, -sooner), |bench| {
            for _ in 0..count {
                let lba = bench.random.up_to(last / 8 * 7);
                bench.read(lba, 1)?;
            }
            Ok(last)
        })?;
        let Some(alone) = alone else {
            learned.know(key, 0.6);
            return Ok(());
        };
        let after = sooner - alone;
        if after > EFFECT_NS_MIN {
            self.leaves = Some(Leaves {
                after: Some(after),
                ..leaves
            });
            learned.know(key, 0.7);
        } else if after < NOISE_NS_MAX {
            learned.know(key, 0.9);
        } else {
            learned.know(key, 0.5);
        }
        Ok(())
    }

    pub(super) fn hits_pass(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        depth: u16,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.sneaky_full_read_hits";
        if depth < 2 {
            learned.doubt(key, "there is one command at a time");
            return Ok(());
        }
        let capacity = bench.capacity();
        let (mut passed, mut asked) = (0, 0);
        for _ in 0..8 {
            let held = bench.random.up_to(capacity / 4);
            let far = capacity - 1 - bench.random.up_to(capacity / 4);
            bench.read(held, 1)?;
            bench
                .probe
                .pause(Nanos::from_nanos((0.2 * drive.turn) as u64));
            let again = bench.read(held, 1)?;
            let hit = (again.at - again.sent).as_nanos() as f64;
            let mut flight = Flight::new(bench);
            flight.send(0, far, 1)?;
            // The arm is on its way.
            flight.bench.probe.pause(Nanos::from_micros(900));
            flight.send(1, held, 1)?;
            let first = flight.answer()?;
            let took = (first.at - first.sent).as_nanos() as f64;
            if first.tag == 1 && took < hit + 300e3 {
                passed += 1;
            }
            asked += 1;
            flight.empty()?;
        }
        match passed {
            0 => self.hits_pass = Some(false),
            _ if passed * 4 >= asked * 3 => self.hits_pass = Some(true),
            _ => {
                learned.doubt(
                    key,
                    format!("{passed} of {asked} hits passed a read of the medium"),
                );
                return Ok(());
            }
        }
        learned.know(key, 0.9);
        Ok(())
    }
}

/// Approximate number of sectors that are held behind a read, if another command waits during the read.
fn read_on(buffer: &mut BufferProbe<'_, '_, '_>) -> Result<Option<u64>, ExtractError> {
    let into = 4.min(buffer.per_track / 4).max(1);
    let most = buffer.per_track - into - 2;
    let held = buffer.about(most, |buffer, count| {
        buffer.likely(|buffer| {
            let Some(track) = buffer.track(0, |_, _| true) else {
                return Ok(None);
            };
            let lba = track.start.get() + into;
            let far = buffer.far(lba);
            is_held_behind(buffer, (lba, far), count)
        })
    })?;
    Ok(held.filter(|held| *held < most))
}

/// Returns true if the sector `count` behind a read is held, if another command waits during the read. `None` if the other command was
/// served first.
fn is_held_behind(
    buffer: &mut BufferProbe<'_, '_, '_>,
    (lba, far): (u64, u64),
    count: u64,
) -> Result<Option<bool>, ExtractError> {
    buffer.away(lba)?;
    let turns = 0.5 + buffer.bench.random.unit();
    buffer.pause(turns);
    let mut flight = Flight::new(buffer.bench);
    flight.send(0, lba, 1)?;
    flight.send(1, far, 1)?;
    let first = flight.answer()?.tag;
    flight.answer()?;
    drop(flight);
    buffer.rest(0);
    let held = buffer.is_held(lba + count)?;
    Ok((first == 0).then_some(held))
}

/// Returns true if the head stays on the track as long as the next command permits. The test uses half a turn. The head must stay when the
/// arm would otherwise wait longer than that, and must leave when the arm would wait less.
fn is_just_in_time(
    buffer: &mut BufferProbe<'_, '_, '_>,
    drive: &KnownDrive<'_>,
) -> Result<bool, ExtractError> {
    let target = Target::of(drive.layout);
    let mut stays = [None; 2];
    for (stays, wait) in stays.iter_mut().zip(WAITS) {
        let votes = buffer.votes(VOTES_PER_WAIT, |buffer| {
            let Some(track) = buffer.track(0, |_, _| true) else {
                return Ok(None);
            };
            let lba = track.start.get() + buffer.per_track / 16;
            let run = drive.layout.run(Lba::new(lba));
            let to = drive.layout.run(Lba::new(buffer.far(lba))).track;
            let there = drive.layout.locate(Lba::new(lba)).angle.turns()
                + drive.way(run.track, to) / drive.turn;
            match target.aim(to, drive.turn, part(there + wait)) {
                Some(aim) => is_held_behind(buffer, (lba, aim.lba), buffer.per_track / 2),
                None => Ok(None),
            }
        })?;
        *stays = votes.verdict();
    }
    Ok(stays == [Some(true), Some(false)])
}

impl Queueing {
    /// Measures how much sooner the drive reads a command that waited during the previous read than arm movement and known delays predict.
    pub(super) fn come_sooner(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
    ) -> Result<(), ExtractError> {
        self.sooner = pairs(bench, drive, self.leaves, (RANDOM_PAIRS, 0.0), |bench| {
            let last = bench.capacity() - 1;
            Ok(bench.random.up_to(last))
        })?;
        Ok(())
    }
}

/// Measures pairs of commands. The first command comes from `first`, and the search starts near `guess` nanoseconds after the predicted
/// arrival.
///
/// A sector that passes at the right time is caught in half of the trials. The angles of both sectors give the duration of the movement,
/// without any processing of the second command.
fn pairs(
    bench: &mut Bench<'_>,
    drive: &KnownDrive<'_>,
    leaves: Option<Leaves>,
    (rounds, guess): (u32, f64),
    mut first: impl FnMut(&mut Bench<'_>) -> Result<u64, ExtractError>,
) -> Result<Option<f64>, ExtractError> {
    let (layout, turn) = (drive.layout, drive.turn);
    let target = Target::of(layout);
    // Differences between the start of a sector and the predicted arrival.
    let mut seen: Vec<f64> = Vec::new();
    let mut at = guess;
    for round in 0..rounds {
        let first = first(bench)?;
        let second = bench.random.up_to(bench.capacity() - 1);
        let run = layout.run(Lba::new(first));
        let to = layout.run(Lba::new(second)).track;
        let begins = layout.locate(Lba::new(first)).angle.turns();
        let ends = begins + 1.0 / f64::from(run.sectors_per_track);
        let read_on = leaves.map_or(0, |leaves| leaves.read_on);
        if read_on > 1 && u64::from(run.len) <= read_on {
            // The drive would read on over the end of the track.
            continue;
        }
        let slot = turn / f64::from(run.sectors_per_track);
        let hold = leaves.map_or(0.0, |leaves| leaves.hold(slot));
        let way = drive.way(run.track, to) + hold;
        let Some(aim) = target.aim(to, turn, part(ends + (way + at) / turn)) else {
            continue;
        };
        let begins = aim.answered - aim.lead / turn;
        // A sector nearly a turn after the arrival counts as slightly early.
        let later = near(begins - ends - way / turn) * turn;
        if (later - at).abs() > turn / 8.0 {
            continue;
        }
        // Read-ahead that the drive must finish should not delay the first command.
        bench.probe.pause(Nanos::from_nanos((0.5 * turn) as u64));
        let mut flight = Flight::new(bench);
        flight.send(0, first, 1)?;
        flight.send(1, aim.lba, 1)?;
        let [one, other] = [flight.answer()?, flight.answer()?];
        if (one.tag, other.tag) != (0, 1) {
            continue;
        }
        let took = other.at.saturating_since(one.at).as_nanos() as f64 - way - later - aim.lead;
        let caught = match took / turn {
            -0.3..0.3 => true,
            0.7..1.3 => false,
            _ => continue,
        };
        seen.push(later);
        let width = 400e3 / libm::sqrt(f64::from(round + 1));
        at += if caught { -width } else { width };
    }
    let third = seen.len() / 3;
    if third * 6 < rounds as usize {
        return Ok(None);
    }
    // Time at which half of the sectors are caught (Robbins and Monro), without the approach at the start.
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let [middle, end] = [&seen[third..2 * third], &seen[2 * third..]].map(mean);
    let is_steady = (middle - end).abs() < 120e3;
    Ok(is_steady.then_some(-mean(&seen[third..])))
}
