//! Random reads that were not used to learn, predicted and timed.

use super::bench::Bench;
use super::error::ExtractError;
use super::remaps::{LATE, Remaps};
use super::transfer::Transfer;
use super::turns::part;
use crate::random::Random;
use headtime_disk::{Layout, Model, Profile};
use headtime_sched::{Head, Op, Positioning};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use serde::{Deserialize, Serialize};

/// How well reads were predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Reads that were compared.
    pub reads: u64,
    /// Those that took as long as predicted, within 50, 150 and 300 µs.
    pub within: [u64; 3],
    /// Those that took a turn more or less than predicted, within 300 µs.
    pub late: u64,
    pub early: u64,
    /// Those that came from the buffer.
    pub hits: u64,
    /// The sum of the differences of those within 300 µs, in nanoseconds.
    pub sum: f64,
}

/// Predicts reads of a drive whose rotation the bench follows.
pub(super) struct Predictor {
    model: Model,
    /// The model of the same drive with zero-latency reads.
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

    /// Where addresses are.
    pub fn layout(&self) -> &Layout {
        self.model.layout()
    }

    /// Times of what comes over the bus.
    pub fn transfer(&self) -> Transfer {
        Transfer::of(self.model.profile())
    }

    /// The angle at which a sector is answered.
    pub fn answered(&self, lba: u64) -> f64 {
        let run = self.layout().run(Lba::new(lba));
        let begins = run.angle(0).turns();
        let completion = self.model.profile().overhead.read_completion;
        let transfer = self.transfer();
        let behind = transfer.sector + transfer.reconnect + completion.as_nanos() as f64;
        begins + (1.0 / f64::from(run.sectors_per_track) + behind / self.turn)
    }

    /// How long the head waits for the first sector of a read that is sent at the angle `angle`, in turns, when it was
    /// left by `before`.
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

    /// How long a read takes that is sent at the angle `angle`, when the head was left by `before`.
    pub fn time(&self, angle: f64, before: Extent, extent: Extent, zero_latency: bool) -> Nanos {
        // A time at which the platter of the model is there.
        let turn = self.model.mechanics().turn().as_nanos();
        let sent = Time::from_nanos(8 * turn + (angle * turn as f64) as u64);
        let model = match zero_latency {
            true => &self.as_they_come,
            false => &self.model,
        };
        let head = Head {
            place: model.left_by(before, Op::Read),
            free: Time::ZERO,
        };
        let time = model.follow(&head, sent, extent, Op::Read).done - sent;
        Nanos::from_nanos((time.as_nanos() as f64 * self.turn / turn as f64) as u64)
    }
}

impl Held {
    /// Reads `count` random extents of 8 sectors, and compares.
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
            if self.note(took, said, predictor.turn) > LATE {
                remaps.suspect(extent.start.get(), 8);
            }
        }
        Ok(())
    }

    /// Returns how much longer than predicted the read took, in turns.
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

/// Returns true if the drive takes the sectors of a track as they come: then a whole track takes a
/// turn, wherever in it the head arrives.
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
        // Where both say the same, nothing is learned.
        if (off[0] - off[1]).abs() > predictor.turn / 8.0 {
            votes[usize::from(off[1] < off[0])] += 1;
        }
    }
    let all = votes[0] + votes[1];
    let agree = votes[0].max(votes[1]) * 5 >= all * 4;
    Ok((all >= 6 && agree).then_some(votes[1] > votes[0]))
}

/// Reads across the ends of tracks.
const CROSSINGS: u32 = 16;
/// The same where the next track is turned by the least.
const LEAST_CROSSINGS: usize = 8;
/// Tracks that are looked at for one whose next one is on another surface.
const LOOKED: u32 = 4_096;
/// Of so many of these one has the least turn of all, most likely.
const COMPARED: u32 = 256;

/// The end of a track whose next one is on another surface.
struct End {
    /// The first address of the next one.
    lba: Lba,
    /// What passes between, in nanoseconds.
    gap: f64,
}

/// How a read across the end of a track came out.
#[derive(PartialEq)]
enum Crossed {
    /// The head was there in time.
    Made,
    /// It was there a turn later.
    Missed,
    /// Neither.
    Otherwise,
}

/// How long switching heads takes at most: what passes between the end of a track and where the next one begins, on
/// another surface, if a drive that reads across it loses no turn. `predictor` has it that it takes no time.
pub(super) fn crossing(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
) -> Result<Option<f64>, ExtractError> {
    let (mut made, mut missed) = (0, 0);
    let mut least = f64::INFINITY;
    for _ in 0..CROSSINGS {
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
    Ok((made >= CROSSINGS / 2 && missed * 8 <= made).then_some(least))
}

/// The same where less passes than `most`, which is what passed between tracks that the head was in time for: zones are
/// turned by as much as their makers had to, so that those that are turned by the least say the most.
pub(super) fn least_crossing(
    bench: &mut Bench<'_>,
    predictor: &Predictor,
    most: f64,
) -> Result<f64, ExtractError> {
    let mut random = Random::new(1);
    let ends = (0..COMPARED).map_while(|_| any_end(&mut random, predictor));
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

/// Any end of a track whose next one is on another surface; `None` if there are few.
fn any_end(random: &mut Random, predictor: &Predictor) -> Option<End> {
    let layout = predictor.layout();
    let room = layout.capacity().get() - 8;
    (0..LOOKED).find_map(|_| {
        let lba = Lba::new(random.up_to(room));
        let end = layout.track_extent_of(lba).end();
        // Behind the last track there is none.
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
