//! What a disk is told beside requests.

use super::super::log::Pieces;
use super::super::{Cause, NotCleared, Order, lock};
use super::live::Live;
use super::{Thread, kept};
use crate::device::ControlError;
use crate::metrics::Snapshot;
use headtime_engine::{self as engine, Core, Member};
use headtime_sched::WaitStats;
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
                Order::Swap { text, build } => {
                    let swap = engine::Order::Swap {
                        member: Member::default(),
                        text: text.clone(),
                        scheduler: build(),
                    };
                    kept(core.obey(live, at, swap));
                    self.scheduler = text;
                }
                Order::SetTimeout(timeout) => {
                    kept(core.obey(live, at, engine::Order::Timeout(timeout)));
                }
                Order::Device(what, answer) => {
                    let result = live.station.device.control(at, &what);
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
                    let _ = answer.send(snapshot(core, live, &self.scheduler, at));
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

impl Live {
    fn clear_failure(&mut self) -> Result<(), NotCleared> {
        match self.station.device.abandoned() {
            0 => {}
            abandoned => return Err(NotCleared::Abandoned(abandoned)),
        }
        match self.station.device.check_backing() {
            Err(lost) if lost.is_loss() => return Err(NotCleared::Backing(lost)),
            _ => {}
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
    waits += core.engine().scheduler().waits();
    waits
}

fn snapshot(core: &Core<Pieces>, live: &mut Live, scheduler: &str, at: Time) -> Box<Snapshot> {
    live.check_backing();
    let (engine, station) = (core.engine(), &mut live.station);
    let estimate = station.estimate.as_mut();
    Box::new(Snapshot {
        now: at,
        scheduler: scheduler.to_owned(),
        metrics: live.metrics.clone(),
        engine: *engine.stats(),
        waits: waits(core),
        in_flight: engine.in_flight(),
        waiting: engine.waiting(),
        abandoned: station.device.abandoned(),
        failure: live.latch.cause().map(ToString::to_string),
        in_model_time: station.in_model_time,
        head_time: station.device.head_time(at),
        head_time_estimated: estimate.map(|estimate| estimate.account(at)),
        capacity: live.shared.geometry.capacity,
    })
}
