//! Random reads that were not used to learn, predicted and timed.

use super::bench::Bench;
use super::error::ExtractError;
use crate::Probe;
use headtime_disk::{Layout, Mechanics, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Time};
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
    layout: Layout,
    mechanics: Mechanics,
    overhead: Nanos,
    sector: Nanos,
    turn: f64,
}

impl Predictor {
    pub fn new(profile: &Profile, turn: f64) -> Predictor {
        let overhead = &profile.overhead;
        Predictor {
            layout: Layout::new(profile),
            mechanics: Mechanics::new(profile),
            overhead: overhead.per_command + overhead.read_miss_after_read,
            sector: profile.bus.sector(true),
            turn,
        }
    }

    /// How long a read takes that is sent at the angle `angle`, when the head was left by `before`.
    pub fn time(&self, angle: f64, before: Extent, extent: Extent, zero_latency: bool) -> Nanos {
        // A time at which the platter of the model is there.
        let turn = self.mechanics.turn().as_nanos();
        let sent = Time::from_nanos(8 * turn + (angle * turn as f64) as u64);
        let last = Lba::new(before.end().get() - 1);
        let from = self.layout.run(last).track;
        let to = self.layout.run(extent.start).track;
        let way = self.mechanics.reposition(from, to, Op::Read).total();
        let begin = sent + self.overhead + self.mechanics.set_up(way, Op::Read);
        let steps = self
            .mechanics
            .walk(&self.layout, from, begin, extent, Op::Read, zero_latency);
        // Sectors go over the bus one after the other, in order, each when it has passed. Those that passed
        // before the first one wait for all before them.
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|step| step.run.start);
        let mut sent_to = Time::ZERO;
        for step in steps {
            for count in 1..=step.run.len {
                sent_to = sent_to.max(step.sectors_end(count)) + self.sector;
            }
        }
        let model = (sent_to - sent).as_nanos() as f64;
        Nanos::from_nanos((model * self.turn / turn as f64) as u64)
    }
}

impl Held {
    /// Reads `count` random extents of 8 sectors, and compares.
    pub(super) fn compare<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        predictor: &Predictor,
        zero_latency: bool,
        count: u64,
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
            self.note(took, said, predictor.turn);
        }
        Ok(())
    }

    fn note(&mut self, took: Nanos, said: Nanos, turn: f64) {
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
    }
}

/// Returns true if the drive takes the sectors of a track as they come: then a whole track takes a
/// turn, wherever in it the head arrives.
pub(super) fn zero_latency<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    predictor: &Predictor,
) -> Result<Option<bool>, ExtractError> {
    let mut votes = [0_u32; 2];
    for _ in 0..24 {
        bench.keep_phase()?;
        let room = bench.capacity() - 8;
        let before = Extent::at(bench.random.up_to(room), 1);
        bench.read(before.start.get(), 1)?;
        let track = predictor
            .layout
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
