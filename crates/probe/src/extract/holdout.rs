//! Hold-out test: random reads that were not used to learn, predicted and timed.

use super::bench::Bench;
use super::error::ExtractError;
use super::remaps::{Remaps, SUSPECT_TURNS};
use super::transfer::Transfer;
use super::turns::part;
use crate::random::Random;
use headtime_disk::{Layout, Model, Profile};
use headtime_sched::{HeadAfter, Op, Positioning};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use serde::{Deserialize, Serialize};

/// Quality of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Number of reads that were compared.
    pub reads: u64,
    /// Reads that took the predicted time, within 50, 150 and 300 µs.
    pub within: [u64; 3],
    /// Reads that took a turn more or a turn less than predicted, within 300 µs.
    pub late: u64,
    pub early: u64,
    /// Reads that came from the buffer.
    pub hits: u64,
    /// Sum of the deviations of the reads within 300 µs, in nanoseconds.
    pub sum: f64,
}

/// Predicts reads of a drive whose rotation the bench tracks.
pub(super) struct Predictor {
    model: Model,
    /// Model of the same drive with zero-latency reads.
    as_they_come: Model,
    turn: f64,
}

impl Predictor {
    pub fn new(profile: &Profile, turn: f64) -> Predictor {
        let model = Model::new(profile);
        Predictor {
            as_they_come: model.with_zero_latency_reads(true),
            model: model.with_zero_latency_reads(false),
            turn,
        }
    }

    /// Layout of the drive.
    pub fn layout(&self) -> &Layout {
        self.model.layout()
    }

    /// Bus times of the drive.
    pub fn transfer(&self) -> Transfer {
        Transfer::of(self.model.profile())
    }

    /// Angle at which a sector is answered.
    pub fn answered(&self, lba: u64) -> f64 {
        let run = self.layout().run(Lba::new(lba));
        let begins = run.angle(0).turns();
        let completion = self.model.profile().overhead.read_completion;
        let transfer = self.transfer();
        let behind = transfer.sector + transfer.reconnect + completion.as_nanos() as f64;
        begins + (1.0 / f64::from(run.sectors_per_track) + behind / self.turn)
    }

    /// Turns until the first sector of a read passes the head, for a read that is sent at `angle` behind the read `before`.
    pub fn wait(&self, angle: f64, before: Extent, extent: Extent) -> f64 {
        let (mechanics, overhead) = (self.model.mechanics(), &self.model.profile().overhead);
        let first = self.layout().run(extent.start);
        let from = self.layout().run(before.end() - Sectors::new(1)).track;
        let way = mechanics.reposition(from, first.track, Op::Read).total();
        let processed = overhead.per_command + overhead.read_miss_after_read;
        let there = (processed + mechanics.set_up(way, Op::Read) + way).as_nanos() as f64;
        let turn = mechanics.turn().as_nanos() as f64;
        let begins = first.angle(0).turns();
        part(begins - angle - there / turn)
    }

    /// Time of a read that is sent at `angle` behind the read `before`.
    pub fn time(&self, angle: f64, before: Extent, extent: Extent, zero_latency: bool) -> Nanos {
        // Choose a time at which the model's platter has this angle.
        let turn = self.model.mechanics().turn().as_nanos();
        let sent = Time::from_nanos(8 * turn + (angle * turn as f64) as u64);
        let model = match zero_latency {
            true => &self.as_they_come,
            false => &self.model,
        };
        let head = HeadAfter {
            place: model.left_by(before, Op::Read),
            free: Time::ZERO,
        };
        let time = model.follow(&head, sent, extent, Op::Read).done - sent;
        Nanos::from_nanos((time.as_nanos() as f64 * self.turn / turn as f64) as u64)
    }
}

impl Held {
    /// Reads `count` random extents of 8 sectors, and compares their times with the predictions.
    pub(super) fn compare(
        &mut self,
        bench: &mut Bench<'_>,
        predictor: &Predictor,
        zero_latency: bool,
        count: u64,
        remaps: &mut Remaps,
    ) -> Result<(), ExtractError> {
        let room = bench.capacity() - 8;
        bench.keep_phase()?;
        let mut before = Extent::at(bench.random.up_to(room), 8);
        bench.read(before.start.get(), 8)?;
        for _ in 0..count {
            if bench.keep_phase()? {
                before = Extent::at(bench.random.up_to(room), 8);
                bench.read(before.start.get(), 8)?;
            }
            let extent = Extent::at(bench.random.up_to(room), 8);
            bench.linger();
            let now = bench.probe.now();
            let said = predictor.time(bench.angle_at(now), before, extent, zero_latency);
            let answer = bench.read(extent.start.get(), 8)?;
            let took = answer.at - answer.sent;
            before = extent;
            if self.note(took, said, predictor.turn) > SUSPECT_TURNS {
                remaps.suspect(extent.start.get(), 8);
            }
        }
        Ok(())
    }

    /// Records a read. Returns its deviation from the prediction, in turns.
    fn note(&mut self, took: Nanos, said: Nanos, turn: f64) -> f64 {
        let off = took.as_nanos() as f64 - said.as_nanos() as f64;
        self.reads += 1;
        for (most, within) in [50e3, 150e3, 300e3].into_iter().zip(&mut self.within) {
            *within += u64::from(off.abs() <= most);
        }
        if off.abs() <= 300e3 {
            self.sum += off;
        } else if (off - turn).abs() <= 300e3 {
            self.late += 1;
        } else if (off + turn).abs() <= 300e3 {
            self.early += 1;
        } else if (took.as_nanos() as f64) < turn / 8.0 {
            self.hits += 1;
        }
        off / turn
    }
}

/// Returns true if the drive reads the sectors of a track in the order in which they pass. A whole track then takes a turn from any angle
/// of arrival.
pub(super) fn zero_latency(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
) -> Result<Option<bool>, ExtractError> {
    let mut votes = [0_u32; 2];
    for _ in 0..24 {
        bench.keep_phase()?;
        let room = bench.capacity() - 8;
        let before = Extent::at(bench.random.up_to(room), 1);
        bench.read(before.start.get(), 1)?;
        let track = predictor
            .layout()
            .track_extent_of(Lba::new(bench.random.up_to(room)));
        let length = track.len.get().min(65_535);
        let track = Extent::at(track.start.get(), length);
        let now = bench.probe.now();
        let angle = bench.angle_at(now);
        let said = [false, true].map(|taken| predictor.time(angle, before, track, taken));
        let answer = bench.read(track.start.get(), length)?;
        let took = answer.at - answer.sent;
        let off = said.map(|said| (took.as_nanos() as f64 - said.as_nanos() as f64).abs());
        // Equal predictions decide nothing.
        if (off[0] - off[1]).abs() > predictor.turn / 8.0 {
            votes[usize::from(off[1] < off[0])] += 1;
        }
    }
    let all = votes[0] + votes[1];
    let agree = votes[0].max(votes[1]) * 5 >= all * 4;
    Ok((all >= 6 && agree).then_some(votes[1] > votes[0]))
}

/// Number of reads across the ends of tracks.
const CROSSING_READS: u32 = 16;
/// Number of reads across the ends of tracks with the smallest gaps.
const LEAST_CROSSINGS: usize = 8;
/// Most tracks to try until the next track is on another surface.
const TRACK_TRIES: u32 = 4_096;
/// Number of track ends that most likely include the smallest gap of the disk.
const COMPARED_TRACK_ENDS: u32 = 256;

/// End of a track before a track on another surface.
struct End {
    /// First address of the next track.
    lba: Lba,
    /// Rotation time between the two tracks, in nanoseconds.
    gap: f64,
}

/// Result of a read across the end of a track.
#[derive(PartialEq)]
enum Crossed {
    /// The head was in time.
    Made,
    /// The head was a turn late.
    Missed,
    /// Any other time.
    Otherwise,
}

/// Upper bound of the head switch time. A drive may read from one track to the next, on another surface, without the loss of a turn. Then
/// the switch fits into the gap between the two tracks. The `predictor` must assume a switch time of zero.
pub(super) fn crossing(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
) -> Result<Option<f64>, ExtractError> {
    let (mut made, mut missed) = (0, 0);
    let mut least = f64::INFINITY;
    for _ in 0..CROSSING_READS {
        let Some(end) = any_end(&mut bench.random, predictor) else {
            return Ok(None);
        };
        match across(bench, predictor, &end)? {
            Crossed::Made => {
                made += 1;
                least = least.min(end.gap);
            }
            Crossed::Missed => missed += 1,
            Crossed::Otherwise => {}
        }
    }
    Ok((made >= CROSSING_READS / 2 && missed * 8 <= made).then_some(least))
}

/// Upper bound of the head switch time from the smallest gaps below `most`, a gap that the head is known to make. Zones differ in their
/// gaps, and the smallest gap gives the best bound.
pub(super) fn least_crossing(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
    most: f64,
) -> Result<f64, ExtractError> {
    let mut random = Random::new(1);
    let ends = (0..COMPARED_TRACK_ENDS).map_while(|_| any_end(&mut random, predictor));
    let mut ends: Vec<End> = ends.filter(|end| end.gap < most).collect();
    ends.sort_by(|one, other| f64::total_cmp(&one.gap, &other.gap));
    ends.truncate(LEAST_CROSSINGS);
    let mut made = 0;
    for end in &ends {
        made += usize::from(across(bench, predictor, end)? == Crossed::Made);
    }
    match ends.last() {
        Some(end) if made * 8 >= ends.len() * 7 => Ok(end.gap),
        _ => Ok(most),
    }
}

/// Random end of a track before a track on another surface; `None` if such ends are rare.
fn any_end(random: &mut Random, predictor: &Predictor) -> Option<End> {
    let layout = predictor.layout();
    let room = layout.capacity().get() - 8;
    (0..TRACK_TRIES).find_map(|_| {
        let lba = Lba::new(random.up_to(room));
        let end = layout.track_extent_of(lba).end();
        // Nothing follows the last track.
        if end.get() >= room {
            return None;
        }
        let [last, next] = [Lba::new(end.get() - 1), end].map(|lba| layout.locate(lba));
        (last.track.head != next.track.head).then(|| {
            let passes = layout.sectors_per_track(last.track).map_or(0.0, f64::from);
            let between = next.angle.to_bits().wrapping_sub(last.angle.to_bits());
            let gap = part(f64::from(between) / 4_294_967_296.0 - 1.0 / passes);
            End {
                lba: end,
                gap: gap * predictor.turn,
            }
        })
    })
}

/// Reads across the end of a track.
fn across(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
    end: &End,
) -> Result<Crossed, ExtractError> {
    let turn = predictor.turn;
    let room = bench.capacity() - 8;
    bench.keep_phase()?;
    let before = Extent::at(bench.random.up_to(room), 1);
    bench.read(before.start.get(), 1)?;
    bench.linger();
    let now = bench.probe.now();
    let extent = Extent::at(end.lba.get() - 1, 2);
    let said = predictor.time(bench.angle_at(now), before, extent, false);
    let answer = bench.read(extent.start.get(), 2)?;
    let off = (answer.at - answer.sent).as_nanos() as f64 - said.as_nanos() as f64;
    Ok(if off.abs() < turn / 8.0 {
        Crossed::Made
    } else if (off - turn).abs() < turn / 8.0 {
        Crossed::Missed
    } else {
        Crossed::Otherwise
    })
}
