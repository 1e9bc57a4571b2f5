//! Electronics of a drive: buffer, queue, write cache.
//!
//! Requires the layout and the rotation time. Each [`Electronics::step`] asks one or two questions. The answers are plain data.

use super::ahead::{self, Ahead};
use super::bench::Bench;
use super::buffer_probe::{BufferProbe, HitTime};
use super::error::ExtractError;
use super::jitter::{self, Jitter};
use super::known_drive::KnownDrive;
use super::learned_keys::LearnedKeys;
use super::queueing::{self, Buffered, Leaves, Queueing};
use super::segments::Segments;
use super::write_cache::{self, Reads, WriteCache};
use crate::{Probe, ProbeError, Switch};
use headtime_disk::profile::{CacheSpec, ReadAhead, Spec, Trust};
use serde::{Deserialize, Serialize};

/// Results about a drive's buffer, queue and write cache so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Electronics {
    /// Index of the next question.
    at: usize,
    pub hit: Option<HitTime>,
    pub ahead: Ahead,
    pub segments: Segments,
    pub queueing: Queueing,
    pub write_cache: WriteCache,
    /// Variation of answers from the buffer, and the time of their data.
    pub jitter: Option<Jitter>,
    /// State of each switch that the drive shows, before the probe turned any.
    pub switches: Vec<(Switch, bool)>,
    /// Reason for a switch that could not be turned.
    #[serde(default)]
    pub not_turned: Option<String>,
    pub told: LearnedKeys,
}

/// Keys of the buffer that are learned.
const BUFFER: [&str; 10] = [
    "cache.segments",
    "cache.segment_sectors",
    "cache.room_sectors",
    "cache.read_ahead",
    "cache.read_ahead_max",
    "cache.read_ahead_min",
    "cache.second_read_ahead_min",
    "cache.requested_data",
    "cache.read_ahead_on_idle_hit",
    "cache.read_free_sectors",
];

/// A question.
#[derive(Clone, Copy, Debug)]
enum Step {
    Hits,
    Ahead(ahead::AheadQuestion),
    Segments,
    Room,
    Queue(queueing::QueueQuestion),
    Written(write_cache::WriteQuestion),
    Jitter,
}

fn steps() -> Vec<Step> {
    let mut steps = vec![Step::Hits, Step::Segments];
    steps.extend(ahead::QUESTIONS.map(Step::Ahead));
    steps.push(Step::Room);
    steps.extend(queueing::QUESTIONS.map(Step::Queue));
    steps.extend(write_cache::QUESTIONS.map(Step::Written));
    // The jitter question comes last, where it cannot disturb earlier results.
    steps.push(Step::Jitter);
    steps
}

/// Switches that must be on during a question.
fn needed(step: Step, drive: &KnownDrive<'_>) -> impl Iterator<Item = Switch> {
    let written = matches!(step, Step::Written(_)) && drive.scratch.is_some();
    let written = written.then_some(Switch::WriteCache);
    [Switch::LookAhead].into_iter().chain(written)
}

impl Electronics {
    /// Keys that are learned.
    pub(super) fn keys() -> impl Iterator<Item = &'static str> {
        BUFFER
            .into_iter()
            .chain(queueing::KEYS)
            .chain(write_cache::KEYS)
            .chain([jitter::KEY])
            .chain(jitter::NOT)
    }

    /// Share of the questions that are answered.
    pub fn share(&self) -> f64 {
        self.at as f64 / steps().len() as f64
    }

    /// Number of places that the buffer holds, as measured so far.
    pub(super) fn held_places(&self) -> u64 {
        self.segments.count.unwrap_or(self.segments.least)
    }

    /// Answers the next question. Returns false if no question is left.
    ///
    /// Switches that are off are turned on for the question and off again, even after a failure.
    pub(super) fn step(
        &mut self,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
    ) -> Result<bool, ExtractError> {
        let Some(step) = steps().get(self.at).copied() else {
            return Ok(false);
        };
        if let Step::Hits = step {
            self.see_switches(bench.probe);
        }
        let mut turned = Vec::new();
        let result = needed(step, drive)
            .try_for_each(|which| {
                if bench.probe.switch(which) != Some(false) {
                    return Ok(());
                }
                match bench.probe.set(which, true) {
                    // The drive then counts as a drive without read-ahead.
                    Err(error @ ProbeError::Refused { .. })
                        if which == Switch::LookAhead
                            && bench.probe.switch(which) == Some(false) =>
                    {
                        self.not_turned = Some(error.to_string());
                    }
                    set => {
                        set?;
                        turned.push(which);
                    }
                }
                Ok(())
            })
            .and_then(|()| self.answer(step, bench, drive));
        let mut back = Ok(());
        for which in turned {
            back = back.and(bench.probe.set(which, false));
        }
        result?;
        back?;
        self.at += 1;
        let more = self.at < steps().len();
        if !more {
            self.tell_the_rest();
        }
        Ok(more)
    }

    /// Records the state of all switches before any is turned. A failed step may record them again.
    fn see_switches(&mut self, probe: &mut dyn Probe) {
        self.switches.clear();
        self.not_turned = None;
        for which in Switch::ALL {
            let on = probe.switch(which);
            self.switches.extend(on.map(|on| (which, on)));
        }
    }

    /// Gives a reason for every key that is still unknown.
    fn tell_the_rest(&mut self) {
        for key in jitter::NOT {
            self.told.doubt(key, jitter::WHY_NOT);
        }
        let why = match self.ahead.kind {
            Some(ReadAhead::Off) => "the drive reads nothing ahead",
            _ => "what it rests on is not known",
        };
        for key in Electronics::keys() {
            let is_unknown = self.told.unknown.iter().any(|(other, _)| other == key);
            if !is_unknown && !self.told.knows(key) {
                self.told.doubt(key, why);
            }
        }
    }

    fn answer(
        &mut self,
        step: Step,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
    ) -> Result<(), ExtractError> {
        if let Step::Hits = step {
            self.hit = HitTime::measure(bench, drive.turn)?;
            if self.hit.is_none() {
                for key in BUFFER.into_iter().chain([jitter::KEY]) {
                    self.told
                        .doubt(key, "no read that was repeated came from a buffer");
                }
            }
            return Ok(());
        }
        if let Step::Queue(question) = step {
            let held = Buffered {
                hit: self.hit,
                segments: self.segments.count.or(Some(self.segments.least)),
                reads_ahead: self.ahead.kind.is_some_and(|kind| kind != ReadAhead::Off),
            };
            let learned = &mut self.told;
            self.queueing.ask(question, bench, drive, held, learned)?;
            let is_settled = matches!(question, queueing::QueueQuestion::Last);
            let leaves = self.queueing.leaves.filter(|_| is_settled);
            if let Some(read_on) = leaves.and_then(Leaves::read_on) {
                self.ahead.note_least(read_on, learned);
            }
            return Ok(());
        }
        if let Step::Written(question) = step {
            let mut switches = self.switches.iter();
            let cached = switches.find(|(which, _)| *which == Switch::WriteCache);
            let reads = Reads {
                cached: cached.map(|(_, on)| *on),
                hit: self.hit.unwrap_or_default(),
                segment: self.ahead.segment,
                segments: self.segments.count,
            };
            let learned = &mut self.told;
            return self.write_cache.ask(question, bench, drive, reads, learned);
        }
        let Some(hit) = self.hit else { return Ok(()) };
        if let Step::Jitter = step {
            self.jitter = jitter::measure(bench, hit, self.ahead.segment)?;
            match self.jitter {
                Some(_) => self.told.know(jitter::KEY, 0.8),
                None => self
                    .told
                    .doubt(jitter::KEY, "too few reads came from the buffer"),
            }
            return Ok(());
        }
        let fewest = self.held_places();
        let learned = &mut self.told;
        let mut buffer = BufferProbe::new(bench, drive.layout, drive.turn, hit);
        buffer.segments = (fewest > 0).then_some(fewest);
        match step {
            Step::Hits | Step::Queue(_) | Step::Written(_) | Step::Jitter => Ok(()),
            Step::Ahead(question) => self.ahead.ask(question, &mut buffer, learned),
            Step::Segments => self.segments.count(&mut buffer, learned),
            Step::Room => {
                let known = (self.ahead.segment, self.ahead.passing);
                self.segments.room(&mut buffer, known, learned)
            }
        }
    }

    /// Copies the results to a profile.
    pub(super) fn apply(&self, spec: &mut Spec) {
        for (key, _) in &self.told.known {
            let is_read = self.write_cache.is_read && key == "cache.write_back";
            let trust = if is_read { Trust::Read } else { Trust::Learned };
            spec.trust.push((key.clone(), trust));
        }
        // The other keys of this section are learned.
        let unknown = self.told.unknown.iter();
        let assumed = unknown.filter(|(key, _)| key.starts_with("overhead."));
        spec.trust
            .extend(assumed.map(|(key, _)| (key.clone(), Trust::Assumed)));
        self.queueing.apply(&mut spec.queue);
        if let Some(jitter) = self.jitter {
            spec.noise.overhead_sd = jitter.overhead_sd();
        }
        let Some(segment) = self.ahead.segment.filter(|_| self.hit.is_some()) else {
            return;
        };
        let fewest = self.held_places();
        let room = self.segments.room.map_or(0, |room| room.max(2 * segment));
        let mut cache = CacheSpec {
            enabled: true,
            segments: fewest.clamp(1, 65_535) as u32,
            segment_sectors: segment as u32,
            room_sectors: room as u32,
            read_free_sectors: self.ahead.free_sectors.unwrap_or(false),
            sneaky_full_read_hits: self.queueing.hits_pass.unwrap_or(false),
            ..CacheSpec::default()
        };
        self.ahead.apply(&mut cache);
        self.write_cache.apply(&mut cache);
        spec.cache = cache;
    }

    /// Lines about unknown keys, switches, and the order of commands.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for (which, on) in &self.switches {
            let state = if *on { "on" } else { "off" };
            text += &format!("When the probe began, {which} was {state}.\n");
        }
        if let Some(why) = &self.not_turned {
            text += &format!("Learned as the drive is: {why}.\n");
        }
        if let Some(order) = self.queueing.order_line() {
            text += &format!("Order: {order}.\n");
        }
        for (key, why) in &self.told.unknown {
            text += &format!("Not learned: {key}, since {why}.\n");
        }
        text
    }
}

#[cfg(test)]
mod tests;
