//! What a disk is told beside requests.

use super::super::cause::{Cause, NotCleared};
use super::super::log::Pieces;
use super::super::shared::{Order, lock};
use super::live::Live;
use super::{Thread, kept};
use crate::device::ControlError;
use crate::metrics::Snapshot;
use headtime_engine::{self as engine, Core, Lane, Member, Stats};
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
                    let order = make();
                    if let Some((member, text)) = scheduler_of(&order) {
                        self.schedulers[member.index()].replace_range(.., text);
                    }
                    kept(core.obey(live, at, order));
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
                }
                Order::ClearFailure(answer) => {
                    let _ = answer.send(live.clear_failure());
                }
                Order::Snapshot(answer) => {
                    let _ = answer.send(snapshot(core, live, &self.schedulers[0], at));
                }
                Order::Stop => {
                    live.shared.stopped.store(true, Ordering::SeqCst);
                    live.shared.room.notify_waiters();
                    live.stopping = true;
                }
            }
        }
    }
}

/// Whose first lane an order gives a scheduler, and its text.
fn scheduler_of(order: &engine::Order) -> Option<(Member, &str)> {
    match order {
        engine::Order::Swap {
            member, lane, text, ..
        } if *lane == Lane(0) => Some((*member, text)),
        engine::Order::SwapGate {
            member, schedulers, ..
        } => schedulers.first().map(|(text, _)| (*member, &text[..])),
        _ => None,
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
fn waits(core: &Core<Pieces>) -> WaitStats {
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

fn snapshot(core: &Core<Pieces>, live: &mut Live, scheduler: &str, at: Time) -> Box<Snapshot> {
    live.check_backing();
    let mut stats = Stats::default();
    let (mut in_flight, mut waiting) = (0, 0);
    for engine in core.engines() {
        stats += *engine.stats();
        in_flight += engine.in_flight();
        waiting += engine.waiting();
    }
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
        scheduler: scheduler.to_owned(),
        metrics: live.metrics.clone(),
        engine: stats,
        waits: waits(core),
        in_flight,
        waiting,
        abandoned: live.abandoned(),
        failure: live.latch.cause().map(ToString::to_string),
        in_model_time: live.stations.iter().any(|station| station.in_model_time),
        head_time,
        head_time_estimated,
        capacity: live.shared.geometry.capacity,
    })
}
