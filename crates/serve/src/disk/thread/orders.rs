//! What a disk is told beside requests.

use super::super::{Cause, NotCleared, Order, lock};
use super::Thread;
use crate::device::ControlError;
use crate::metrics::Snapshot;
use headtime_engine::{Lane, log};
use headtime_sched::WaitStats;
use headtime_units::{Sectors, Time};
use std::sync::atomic::Ordering;

impl Thread {
    pub(super) fn obey(&mut self, real: Time) {
        let at = real.max(self.now);
        // The device is told the time; nothing may happen to it before that.
        self.now = at;
        let orders = std::mem::take(&mut *lock(&self.shared.orders));
        for order in orders {
            match order {
                Order::Swap { text, build } => {
                    if let Some(log) = &mut self.log {
                        log::write_swap(&mut log.text, at, &text);
                    }
                    self.waits_before = self.waits();
                    self.waits_before.streams = 0;
                    // One that is under way ends with its scheduler, unrewarded.
                    self.waits_before.waits_lost =
                        self.waits_before.waits - self.waits_before.waits_won;
                    self.engine.replace_scheduler(at, Lane(0), build());
                    self.scheduler = text;
                    self.commands(at);
                }
                Order::SetTimeout(timeout) => self.set_timeout(at, timeout),
                Order::Device(what, answer) => {
                    let result = self.device.control(at, &what);
                    match result {
                        Ok(sectors) if sectors > Sectors::ZERO => {
                            self.latch(Cause::PowerCut { sectors });
                        }
                        Err(error @ ControlError::Store(_)) => {
                            self.latch(Cause::NotTakenBack { error });
                        }
                        _ => {}
                    }
                    // Who asked may have gone.
                    let _ = answer.send(result);
                }
                Order::ClearFailure(answer) => {
                    let _ = answer.send(self.clear_failure());
                }
                Order::Snapshot(answer) => {
                    let _ = answer.send(self.snapshot(at));
                }
                Order::Stop => {
                    self.shared.stopped.store(true, Ordering::SeqCst);
                    self.shared.room.notify_waiters();
                    self.stopping = true;
                }
            }
        }
    }

    fn clear_failure(&mut self) -> Result<(), NotCleared> {
        match self.device.abandoned() {
            0 => {}
            abandoned => return Err(NotCleared::Abandoned(abandoned)),
        }
        match self.device.check_backing() {
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

    /// Of all schedulers that there were.
    fn waits(&self) -> WaitStats {
        let mut waits = self.waits_before;
        waits += self.engine.scheduler().waits();
        waits
    }

    fn snapshot(&mut self, at: Time) -> Box<Snapshot> {
        self.check_backing();
        Box::new(Snapshot {
            now: at,
            scheduler: self.scheduler.clone(),
            metrics: self.metrics.clone(),
            engine: *self.engine.stats(),
            waits: self.waits(),
            in_flight: self.engine.in_flight(),
            waiting: self.engine.waiting(),
            abandoned: self.device.abandoned(),
            failure: self.latch.cause().map(ToString::to_string),
            in_model_time: self.device.in_model_time(),
            head_time: self.device.head_time(at),
            head_time_estimated: self.estimate.as_mut().map(|estimate| estimate.account(at)),
            capacity: self.shared.geometry.capacity,
        })
    }
}
