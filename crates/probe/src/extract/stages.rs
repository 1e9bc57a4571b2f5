//! Work of each stage.

use super::bench::Bench;
use super::error::ExtractError;
use super::{
    Combing, Extraction, HELD_OUT, Stage, comb, gaps, holdout, known_drive, patience, seeks,
    spindle, surfaces, transfer, walk, writes,
};
use crate::Switch;
use headtime_disk::{Layout, Mechanics, Profile};
use headtime_units::{Cylinder, Extent, Nanos, Time};

/// Approximate drive time of a step.
const STEP_TIME: Nanos = Nanos::from_millis(5_000);
/// Most zones for which the gaps between zones are measured.
const MOST_BORDERS: usize = 128;
/// Most zones of a drive. More zones mean that there is no rule.
const MOST_ZONES: usize = 1_024;

impl Extraction {
    pub(super) fn work(&mut self, bench: &mut Bench<'_>) -> Result<(), ExtractError> {
        let until = bench.probe.now() + STEP_TIME;
        let Some(spindle) = &self.spindle else {
            if self.capacity < 1 << 12 {
                return Err(ExtractError::TooSmall {
                    sectors: self.capacity,
                });
            }
            self.spindle = Some(spindle::find(bench)?);
            self.stage = Stage::Tracks;
            return Ok(());
        };
        let hit_below = spindle.hit_below;
        bench.lock(spindle)?;
        let looks_again = self.stage == Stage::Remaps;
        match self.stage {
            Stage::Rotation | Stage::Tracks => self.walk(bench, until)?,
            Stage::Surfaces => {
                let shape = surfaces::shape(bench, &self.walked.zones)?;
                self.settle(shape, bench.turn());
                self.stage = Stage::Bus;
            }
            Stage::Bus => {
                let transfer = transfer::measure(bench, hit_below)?;
                self.transfer = Some(transfer);
                let draft = self.draft()?;
                self.transfer = Some(transfer::begins(bench, transfer, &draft)?);
                self.stage = Stage::Gaps;
            }
            Stage::Gaps => self.gap(bench, until)?,
            Stage::Seeks => self.seek(bench, until)?,
            Stage::Writes => self.write(bench)?,
            Stage::Access => {
                let profile = self.draft()?;
                let free = profile.with(|spec| spec.seek.head_switch = Nanos::ZERO)?;
                let predictor = holdout::Predictor::new(&free, bench.turn());
                self.crossing = holdout::crossing(bench, &predictor)?;
                // The head switch from writes may be below any upper bound.
                if let Some(most) = self
                    .crossing
                    .filter(|most| self.apart().head_switch >= *most)
                {
                    self.crossing = Some(holdout::least_crossing(bench, &predictor, most)?);
                }
                let profile = self.draft()?;
                let predictor = holdout::Predictor::new(&profile, bench.turn());
                self.zero_latency = holdout::zero_latency(bench, &predictor)?;
                self.say_how_long(&predictor, bench.turn());
                self.stage = Stage::HoldOut;
            }
            Stage::HoldOut => {
                let profile = self.draft()?;
                let predictor = holdout::Predictor::new(&profile, bench.turn());
                let taken = self.zero_latency.unwrap_or(false);
                while bench.probe.now() < until && self.held.reads < HELD_OUT {
                    let count = (HELD_OUT - self.held.reads).min(50);
                    let remaps = &mut self.remaps;
                    self.held.compare(bench, &predictor, taken, count, remaps)?;
                }
                if self.held.reads >= HELD_OUT {
                    self.stage = Stage::Electronics;
                }
            }
            Stage::Electronics => {
                let profile = self.draft()?;
                let drive = known_drive::KnownDrive {
                    layout: &Layout::new(&profile),
                    mechanics: &Mechanics::new(&profile),
                    turn: bench.turn(),
                    processing: known_drive::KnownDrive::processing(&profile.overhead),
                    scratch: self.scratch(),
                    unit: match &self.writes {
                        Some(writes) => writes.unit.max(1),
                        None => u64::from(4096 / self.sector_bytes.min(4096)),
                    },
                };
                while bench.probe.now() < until {
                    if !self.electronics.step(bench, &drive)? {
                        self.suspect_what_was_odd(bench.unit());
                        self.stage = match self.remaps.has_work() {
                            true => Stage::Remaps,
                            false => Stage::Done,
                        };
                        break;
                    }
                }
            }
            Stage::Remaps => self.comb(bench, until)?,
            Stage::Done => {}
        }
        // The tracked rotation time is better for the next step. A few reads do not improve it.
        let turn = bench.turn();
        let is_long = self.remaps.combing.is_some();
        if let Some(spindle) = self.spindle.as_mut().filter(|_| !looks_again || is_long) {
            spindle.turn = turn;
        }
        // A scan of all sectors takes a day.
        if !looks_again {
            self.turns.push((self.spent, turn));
        }
        Ok(())
    }

    fn walk(&mut self, bench: &mut Bench<'_>, until: Time) -> Result<(), ExtractError> {
        let begin = until - STEP_TIME;
        let mut done = false;
        while bench.probe.now() < until && !done {
            bench.give_up = Some(bench.probe.now() + patience::longest_step(self.patience));
            let step = walk::Walk {
                bench,
                at: &mut self.walked,
            }
            .step();
            bench.give_up = None;
            let spent = self.stage_spent + (bench.probe.now() - begin);
            done = match step {
                Err(ExtractError::GivenUp) => return Err(self.too_slow(spent)),
                step => step?,
            };
            let (zones, lba) = (self.walked.zones.len(), self.walked.upto);
            if zones > 16 && zones as u64 * (self.capacity / 1024) > lba || zones > MOST_ZONES {
                return Err(self.no_rule());
            }
        }
        if done {
            self.stage = Stage::Surfaces;
            return Ok(());
        }
        let spent = self.stage_spent + (bench.probe.now() - begin);
        self.judge(spent)?;
        self.ask_whether_it_stays(bench, spent)
    }

    /// Measures short seeks, and with them the number of cylinders between zones.
    fn gap(&mut self, bench: &mut Bench<'_>, until: Time) -> Result<(), ExtractError> {
        let profile = self.draft()?;
        let layout = Layout::new(&profile);
        let target = self.target(&profile, &layout);
        if self.switch.is_none() && self.short == 0 {
            self.switch = target.switch(bench, 1_500_000.0)?;
        }
        let short = seeks::distances(target.cylinders);
        let known = short.partition_point(|distance| *distance <= gaps::KNOWN_SEEK_CYLINDERS);
        while self.short < known {
            if bench.probe.now() >= until {
                return Ok(());
            }
            let distance = short[self.short];
            // A distance that cannot be timed now gets another attempt among all seeks.
            self.short += 1;
            let guess = self.seeks.last().map_or(1_500_000.0, |(_, time)| *time);
            self.time(bench, &target, distance, guess)?;
        }
        // If addresses run along surfaces, cylinders are not exact enough.
        let zones = &profile.layout.zones;
        if self.shape.is_some_and(|shape| shape.group == 1) && zones.len() <= MOST_BORDERS {
            while self.gaps.len() < zones.len() {
                let gap = match self.gaps.len() {
                    0 => 0,
                    next => {
                        let end = Cylinder(zones[next - 1].last_cylinder);
                        let begin = Cylinder(zones[next].first_cylinder);
                        gaps::measure(bench, &target, (end, begin), &self.seeks)?
                    }
                };
                self.gaps.push(gap);
                if bench.probe.now() >= until {
                    return Ok(());
                }
            }
        }
        self.stage = Stage::Seeks;
        Ok(())
    }

    fn seek(&mut self, bench: &mut Bench<'_>, until: Time) -> Result<(), ExtractError> {
        let profile = self.draft()?;
        let layout = Layout::new(&profile);
        let target = self.target(&profile, &layout);
        let distances = seeks::coarse_first(seeks::distances(target.cylinders));
        while bench.probe.now() < until && self.tried < distances.len() {
            let distance = distances[self.tried];
            self.tried += 1;
            let guess = seeks::between(&self.seeks, distance).unwrap_or(4_000_000.0);
            self.time(bench, &target, distance, guess)?;
        }
        if self.tried == distances.len() {
            self.stage = Stage::Writes;
        }
        Ok(())
    }

    /// Times seeks over a distance, unless this was done before.
    fn time(
        &mut self,
        bench: &mut Bench<'_>,
        target: &seeks::Target<'_>,
        distance: u32,
        guess: f64,
    ) -> Result<(), ExtractError> {
        let known = |&(other, _): &(u32, f64)| other < distance;
        let at = self.seeks.partition_point(known);
        if self
            .seeks
            .get(at)
            .is_none_or(|(other, _)| *other != distance)
            && let Some(time) = target.seek(bench, distance, guess)?
        {
            self.seeks.insert(at, (distance, time));
        }
        Ok(())
    }

    /// Times writes with the write cache off, if it can be turned off, and turns it on again.
    fn write(&mut self, bench: &mut Bench<'_>) -> Result<(), ExtractError> {
        if let Some((first, count)) = self.scratch {
            let profile = self.draft()?;
            let layout = Layout::new(&profile);
            let target = self.target(&profile, &layout);
            let reads = self.apart().seeks;
            let cached = bench.probe.switch(Switch::WriteCache) == Some(true);
            if cached {
                bench.probe.set(Switch::WriteCache, false)?;
            }
            let measured = writes::measure(bench, &target, Extent::at(first, count), &reads, 1);
            if cached {
                bench.probe.set(Switch::WriteCache, true)?;
            }
            self.writes = measured?;
        }
        self.stage = Stage::Access;
        Ok(())
    }

    /// Adds the odd sectors of the walk to the suspects, each with all sectors of its physical sector.
    fn suspect_what_was_odd(&mut self, unit: u64) {
        let mut odd: Vec<u64> = self
            .walked
            .odd
            .iter()
            .map(|lba| lba / unit * unit)
            .collect();
        odd.dedup();
        for lba in odd {
            self.remaps.suspect(lba, unit.min(self.capacity - lba));
        }
    }

    /// Estimates the time of the scan of all sectors, unless the scan has started.
    fn say_how_long(&mut self, predictor: &holdout::Predictor, turn: f64) {
        let taken = self.zero_latency.unwrap_or(false);
        let buffer = (self.sector_bytes, self.electronics.held_places());
        let begins = |combing: &&mut Combing| combing.spent.is_zero();
        if let Some(combing) = self.remaps.combing.as_mut().filter(begins) {
            let mut plan = comb::CombPlan::new(predictor, taken, turn, buffer);
            combing.takes = Some(plan.takes(combing.at.from));
        }
    }

    /// Searches for sectors whose data is elsewhere.
    fn comb(&mut self, bench: &mut Bench<'_>, until: Time) -> Result<(), ExtractError> {
        let profile = self.draft()?;
        let predictor = holdout::Predictor::new(&profile, bench.turn());
        let taken = self.zero_latency.unwrap_or(false);
        self.say_how_long(&predictor, bench.turn());
        let remaps = &mut self.remaps;
        let held_places = self.electronics.held_places();
        remaps.wait = held_places + 2;
        let buffer = (self.sector_bytes, held_places);
        let mut comb = comb::Comb {
            plan: comb::CombPlan::new(&predictor, taken, bench.turn(), buffer),
            bench,
            before: None,
        };
        let begin = comb.bench.probe.now();
        let mut more = true;
        while more && comb.bench.probe.now() < until {
            more = comb.step(remaps)?;
        }
        if let Some(combing) = &mut remaps.combing {
            combing.spent += comb.bench.probe.now() - begin;
            combing.give_up_if_slow();
        }
        if !more {
            self.stage = Stage::Done;
        }
        Ok(())
    }

    fn target<'l>(&self, profile: &Profile, layout: &'l Layout) -> seeks::Target<'l> {
        seeks::Target {
            layout,
            tail: self
                .transfer
                .map_or(0.0, |transfer| transfer.reconnect + transfer.sector),
            cylinders: profile.geometry.cylinders,
            heads: profile.geometry.heads,
            zones: profile
                .layout
                .zones
                .iter()
                .map(|zone| (zone.first_cylinder, zone.last_cylinder))
                .collect(),
        }
    }
}
