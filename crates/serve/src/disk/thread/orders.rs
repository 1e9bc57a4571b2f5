//! Carries out orders to a disk's thread.

use super::super::cause::{Cause, NotCleared};
use super::super::log::LogThread;
use super::super::shared::{Order, lock};
use super::live::Live;
use super::{Chosen, Thread, kept};
use crate::device::ControlError;
use crate::metrics::{MemberSnapshot, Snapshot};
use headtime_engine::{self as engine, Config, Core, Gate, GateSpec, Lane, Member, Predictions};
use headtime_sched::{Scheduler, WaitStats};
use headtime_units::{Sectors, Time};
use std::sync::atomic::Ordering;

impl Thread {
    pub(super) fn obey(&mut self, real: Time) {
        // A device learns this time with its order, so the engine must not send the device anything at an earlier time.
        let at = self.core.pass(real);
        let Thread { core, live, .. } = self;
        let orders = std::mem::take(&mut *lock(&live.shared.orders));
        for order in orders {
            match order {
                Order::Core(make) => {
                    kept(core.obey(live, at, make()));
                }
                Order::Scheduler(member, text, mut build) => {
                    self.chosen[member.index()].retire(core, member);
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
                    chosen.retire(core, member);
                    kept(core.obey(live, at, chosen.regate(member, text, make())));
                }
                Order::NamedGate(member, spec) => {
                    let config = core.engines()[member.index()].config();
                    let chosen = &mut self.chosen[member.index()];
                    if let Some(order) = chosen.order_for(member, &spec, config) {
                        if matches!(order, engine::Order::SwapGate { .. }) {
                            chosen.retire(core, member);
                        }
                        kept(core.obey(live, at, order));
                    }
                }
                Order::Device(members, what, answer) => {
                    let (mut lost, mut failed, mut changed) = (Sectors::ZERO, None, false);
                    for member in members {
                        let device = &mut live.stations[usize::from(member)].device;
                        match device.control(at, &what) {
                            Ok(sectors) => (lost, changed) = (lost + sectors, true),
                            Err(error) => {
                                if matches!(error, ControlError::Store(_)) {
                                    live.latch(Cause::NotTakenBack { error });
                                }
                                failed = failed.or(Some(error));
                            }
                        }
                    }
                    // If the power of only some members was on or off already, the order has succeeded.
                    let was_so = |error: &ControlError| {
                        matches!(error, ControlError::PowerIsOn | ControlError::PowerIsOff)
                    };
                    let failed = failed.filter(|error| !(changed && was_so(error)));
                    if lost > Sectors::ZERO {
                        live.latch(Cause::PowerCut { sectors: lost });
                    }
                    // The caller may no longer wait for the answer.
                    let _ = answer.send(failed.map_or(Ok(lost), Err));
                    // Data that were not flushed may be lost. The background jobs are notified now, since no request
                    // may follow.
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
                Order::QueueTimeout(timeout) => live.set_queue_timeout(timeout),
                Order::ClearFailure(answer) => {
                    // The background jobs have to notice the failure before it is cleared.
                    kept(core.ask_jobs(live, at));
                    let _ = answer.send(live.clear_failure());
                }
                Order::Snapshot(answer) => {
                    let _ = answer.send(snapshot(core, live, &self.chosen, at));
                }
                Order::Stop => {
                    live.shared.stopped.store(true, Ordering::SeqCst);
                    live.shared.room.notify_waiters();
                    live.stopping = true;
                    live.admission
                        .iter_mut()
                        .for_each(|waits| waits.lift_limits());
                    // A background job that reads whenever the disk is idle would never end.
                    core.ask_no_more();
                    kept(core.ask_jobs(live, at));
                }
            }
        }
    }
}

impl Chosen {
    /// Adds the waits of the schedulers that are about to be swapped out to `waits_before`.
    fn retire(&mut self, core: &Core<LogThread>, member: Member) {
        self.waits_before = waits(core, member, self.waits_before);
        self.waits_before.streams = 0;
        // A wait that is under way ends with its scheduler and counts as lost.
        self.waits_before.waits_lost = self.waits_before.waits - self.waits_before.waits_won;
    }

    /// Returns the order that puts a gate in force, with new schedulers for its lanes.
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

    /// Returns the order that puts the named gate in force; `None` if it is in force already.
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

/// Adds the waits of a member's schedulers to `waits`.
fn waits(core: &Core<LogThread>, member: Member, mut waits: WaitStats) -> WaitStats {
    for scheduler in core.engines()[member.index()].schedulers() {
        waits += scheduler.waits();
    }
    waits
}

fn snapshot(core: &Core<LogThread>, live: &mut Live, chosen: &[Chosen], at: Time) -> Box<Snapshot> {
    live.check_backing();
    let engines = (0..).map(Member).zip(core.engines());
    let stations = live.stations.iter_mut().zip(chosen);
    let members = engines
        .zip(stations)
        .map(|((member, engine), (station, chosen))| {
            let estimate = station.estimate.as_mut();
            MemberSnapshot {
                scheduler: chosen.scheduler.clone(),
                gate: chosen.gate.clone(),
                engine: *engine.stats(),
                gating: engine.gating(at),
                waits: waits(core, member, chosen.waits_before),
                in_flight: engine.in_flight(),
                waiting: engine.waiting(),
                abandoned: station.device.abandoned(),
                timeouts: station.timeouts,
                errors: station.errors,
                head_time_estimated: estimate.map(|estimate| estimate.account(at)),
                head_time: station.device.head_time(at),
                predictions: engine.predictions().map(Predictions::counts),
            }
        });
    let mut members: Vec<MemberSnapshot> = members.collect();
    let whole = match &mut members[..] {
        [_] => members.remove(0),
        several => MemberSnapshot::sum(several),
    };
    Box::new(Snapshot {
        now: at,
        whole,
        members,
        conducted: core.conducted(),
        metrics: live.metrics.clone(),
        failure: live.latch.cause().map(ToString::to_string),
        in_model_time: live.stations.iter().any(|station| station.in_model_time),
        capacity: live.shared.geometry.capacity,
    })
}
