//! What a disk is told beside requests.

use super::super::{Abandoned, Order, lock};
use super::Thread;
use crate::device::Control;
use crate::metrics::Snapshot;
use headtime_engine::log;
use headtime_sched::WaitStats;
use headtime_units::Time;
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
                    self.engine.replace_scheduler(at, build());
                    self.scheduler = text;
                    self.commands(at);
                }
                Order::SetTimeout(timeout) => self.set_timeout(at, timeout),
                Order::Device(what, answer) => {
                    let result = self.device.control(at, &what);
                    if result.is_ok() {
                        match what {
                            Control::PowerCut => {
                                let failed = self.shared.failed.load(Ordering::SeqCst);
                                self.failed_before_cut.get_or_insert(failed);
                            }
                            // Only what the cut has broken is mended by the power.
                            Control::PowerOn => {
                                if self.failed_before_cut.take() == Some(false) {
                                    self.clear_failure();
                                }
                            }
                            Control::Fault(_) => {}
                        }
                    }
                    // Who asked may have gone.
                    let _ = answer.send(result);
                }
                Order::ClearFailure(answer) => {
                    let result = match self.device.abandoned() {
                        0 => {
                            self.clear_failure();
                            Ok(())
                        }
                        abandoned => Err(Abandoned(abandoned)),
                    };
                    let _ = answer.send(result);
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

    fn clear_failure(&mut self) {
        self.flush_failed = None;
        self.shared.failed.store(false, Ordering::SeqCst);
    }

    /// Of all schedulers that there were.
    fn waits(&self) -> WaitStats {
        let mut waits = self.waits_before;
        waits += self.engine.scheduler().waits();
        waits
    }

    fn snapshot(&mut self, at: Time) -> Box<Snapshot> {
        Box::new(Snapshot {
            now: at,
            scheduler: self.scheduler.clone(),
            metrics: self.metrics.clone(),
            engine: *self.engine.stats(),
            waits: self.waits(),
            in_flight: self.engine.in_flight(),
            waiting: self.engine.waiting(),
            abandoned: self.device.abandoned(),
            failed: self.shared.failed.load(Ordering::Relaxed),
            in_model_time: self.device.in_model_time(),
            head_time: self.device.head_time(at),
            head_time_estimated: self.estimate.as_mut().map(|estimate| estimate.account(at)),
            capacity: self.shared.geometry.capacity,
        })
    }
}
