//! What a disk is told beside requests.

use super::super::cause::{Cause, NotCleared};
use super::super::log::LogThread;
use super::super::shared::{Order, lock};
use super::live::Live;
use super::{Chosen, Thread, kept};
use crate::device::ControlError;
use crate::metrics::Snapshot;
use headtime_engine::{
    self as engine, Config, Core, Gate, GateSpec, Gating, Lane, Member, Predictions, Stats,
};
use headtime_sched::{Scheduler, WaitStats};
use headtime_units::{Sectors, Time};
use std::sync::atomic::Ordering;

impl Thread {
    pub(super) fn obey(&mut self, real: Time) {
        // The device is told the time; nothing may happen to it before that.
        let at = self.core.pass(real);
        let Thread { core, live, .. } = self;
        let orders = std::mem::take(&mut *lock(&live.shared.orders));
        for order in orders {
            match order {
                Order::Core(make) => {
                    kept(core.obey(live, at, make()));
                }
                Order::Scheduler(member, text, mut build) => {
                    let lanes = core.engines()[member.index()].schedulers().count();
                    for lane in (0..lanes as u8).map(Lane) {
                        let order = engine::Order::Swap {
                            member,
                            lane,
                            text: text.clone(),
                            scheduler: build(),
                        };
                        kept(core.obey(live, at, order));
                    }
                    let chosen = &mut self.chosen[member.index()];
                    (chosen.scheduler, chosen.build) = (text, build);
                }
                Order::Drain(member, from, to) => {
                    let lanes = core.engines()[member.index()].schedulers().count();
                    if from.index().max(to.index()) < lanes {
                        let order = engine::Order::Drain { member, from, to };
                        kept(core.obey(live, at, order));
                    }
                }
                Order::Gate(member, text, make) => {
                    let chosen = &mut self.chosen[member.index()];
                    kept(core.obey(live, at, chosen.regate(member, text, make())));
                }
                Order::NamedGate(member, spec) => {
                    let config = core.engines()[member.index()].config();
                    let chosen = &mut self.chosen[member.index()];
                    if let Some(order) = chosen.order_for(member, &spec, config) {
                        kept(core.obey(live, at, order));
                    }
                }
                Order::Device(member, what, answer) => {
                    let result = live.stations[member.index()].device.control(at, &what);
                    match result {
                        Ok(sectors) if sectors > Sectors::ZERO => {
                            live.latch(Cause::PowerCut { sectors });
                        }
                        Err(error @ ControlError::Store(_)) => {
                            live.latch(Cause::NotTakenBack { error });
                        }
                        _ => {}
                    }
                    // Who asked may have gone.
                    let _ = answer.send(result);
                    // What was not forced has perhaps gone, which jobs are to know though nobody asks for anything.
                    kept(core.ask_jobs(live, at));
                }
                Order::Job(member, make) => {
                    core.run_in_background(member, make());
                    kept(core.ask_jobs(live, at));
                }
                Order::EndJob(member) => {
                    core.end_background(member);
                    kept(core.ask_jobs(live, at));
                }
                Order::AskJobs => kept(core.ask_jobs(live, at)),
                Order::ClearFailure(answer) => {
                    // They are to know of it while it is there.
                    kept(core.ask_jobs(live, at));
                    let _ = answer.send(live.clear_failure());
                }
                Order::Snapshot(answer) => {
                    let _ = answer.send(snapshot(core, live, &self.chosen[0], at));
                }
                Order::Stop => {
                    live.shared.stopped.store(true, Ordering::SeqCst);
                    live.shared.room.notify_waiters();
                    live.stopping = true;
                    // One that reads whenever nobody else does would have no end.
                    core.ask_no_more();
                    kept(core.ask_jobs(live, at));
                }
            }
        }
    }
}

impl Chosen {
    /// Puts a gate in force, with new schedulers for its lanes.
    fn regate(&mut self, member: Member, text: String, gate: Box<dyn Gate>) -> engine::Order {
        self.gate.clone_from(&text);
        let lanes = 0..gate.lanes();
        engine::Order::SwapGate {
            member,
            text,
            gate,
            schedulers: lanes
                .map(|_| (self.scheduler.clone(), (self.build)()))
                .collect(),
        }
    }

    /// What makes the gate one of this name; `None` if it is that already.
    fn order_for(
        &mut self,
        member: Member,
        spec: &GateSpec,
        config: &Config,
    ) -> Option<engine::Order> {
        let text = spec.to_string();
        let before: Option<GateSpec> = self.gate.parse().ok();
        if before.as_ref() == Some(spec) {
            return None;
        }
        if let Some(order) = before.and_then(|before| spec.order_from(&before)) {
            self.gate = text;
            return Some(engine::Order::Gate(member, order));
        }
        let gate = spec.build_in_flight(config);
        let gate = gate.expect("whoever named it has asked whether it fits");
        Some(self.regate(member, text, gate))
    }
}

impl Live {
    fn clear_failure(&mut self) -> Result<(), NotCleared> {
        match self.abandoned() {
            0 => {}
            abandoned => return Err(NotCleared::Abandoned(abandoned)),
        }
        for station in &self.stations {
            match station.device.check_backing() {
                Err(lost) if lost.is_loss() => return Err(NotCleared::Backing(lost)),
                _ => {}
            }
        }
        match self.latch.clear() {
            true => {
                self.shared.failed.store(false, Ordering::SeqCst);
                Ok(())
            }
            false => Err(NotCleared::NotFailed),
        }
    }
}

/// How often all schedulers waited that there were.
fn waits(core: &Core<LogThread>) -> WaitStats {
    let mut waits = core.waits_before();
    waits.streams = 0;
    // One that was under way ended with its scheduler, unrewarded.
    waits.waits_lost = waits.waits - waits.waits_won;
    for engine in core.engines() {
        for scheduler in engine.schedulers() {
            waits += scheduler.waits();
        }
    }
    waits
}

fn snapshot(core: &Core<LogThread>, live: &mut Live, chosen: &Chosen, at: Time) -> Box<Snapshot> {
    live.check_backing();
    let (mut stats, mut gating) = (Stats::default(), Gating::default());
    let (mut in_flight, mut waiting) = (0, 0);
    for engine in core.engines() {
        stats += *engine.stats();
        gating += engine.gating(at);
        in_flight += engine.in_flight();
        waiting += engine.waiting();
    }
    let only = core.engines().only();
    let predictions = only.and_then(|engine| engine.predictions());
    let predictions = predictions.map(Predictions::counts);
    let (head_time, head_time_estimated) = match &mut live.stations[..] {
        [station] => {
            let estimate = station.estimate.as_mut();
            let estimated = estimate.map(|estimate| estimate.account(at));
            (station.device.head_time(at), estimated)
        }
        _ => (None, None),
    };
    Box::new(Snapshot {
        now: at,
        scheduler: chosen.scheduler.clone(),
        gate: chosen.gate.clone(),
        metrics: live.metrics.clone(),
        engine: stats,
        gating,
        waits: waits(core),
        in_flight,
        waiting,
        abandoned: live.abandoned(),
        failure: live.latch.cause().map(ToString::to_string),
        in_model_time: live.stations.iter().any(|station| station.in_model_time),
        head_time,
        head_time_estimated,
        predictions,
        capacity: live.shared.geometry.capacity,
    })
}
