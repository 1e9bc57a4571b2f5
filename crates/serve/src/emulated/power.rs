//! Switches the power of an emulated drive off and on.

use super::{Emulated, InFlight, Ready};
use crate::device::{ControlError, Done};
use crate::request::{Failure, Kind};
use headtime_engine::DriveTag;
use headtime_sched::Op;
use headtime_units::{Nanos, Sectors, Time};

/// Longest time for which a power cut waits until the restored data are synced.
const CUT_SYNC_MAX: Nanos = Nanos::from_secs(30);

impl Emulated {
    /// Cuts the power. Returns the number of lost sectors of completed writes. A write that has completed in the model
    /// but was not polled yet counts, too, although no client knows of its completion.
    pub(super) fn power_cut(&mut self, now: Time) -> Result<Sectors, ControlError> {
        if !self.has_power {
            return Err(ControlError::PowerIsOff);
        }
        let now = self.advance(now);
        self.has_power = false;
        self.drive.power_cycle(now);
        self.account(now);
        // Commands whose completions were not handed out fail. The data of a write may be lost, and a read may have
        // returned data that the power cut takes back.
        let offline = Err(Failure::new(Kind::Offline));
        for ready in &mut self.ready {
            ready.done.at = now;
            ready.done.result = offline;
            ready.durable = false;
        }
        for _ in 0..self.syncing.len() {
            let Some(mut syncing) = self.syncing.pop_front() else {
                break;
            };
            if syncing.abandoned {
                self.syncing.push_back(syncing);
                continue;
            }
            syncing.done.at = now;
            syncing.done.result = offline;
            self.ready.push_back(Ready {
                done: syncing.done,
                op: Op::Flush,
                durable: false,
            });
        }
        for (index, command) in self.in_flight.iter_mut().enumerate() {
            if let Some(InFlight { op, parts, .. }) = command.take() {
                self.ready.push_back(Ready {
                    done: Done {
                        tag: DriveTag(index as u32),
                        at: now,
                        result: offline,
                        parts,
                    },
                    op,
                    durable: false,
                });
            }
        }
        let lost = self.undo.at_stake();
        let mut failed = None;
        let sector = u64::from(self.geometry.sector_bytes);
        self.undo.power_cut(|lba, old| {
            if let Err(error) = self.store.write(lba.get() * sector, old) {
                failed = Some(error.errno);
            }
        });
        let synced = match (failed, &self.syncer) {
            (Some(errno), _) => Err(errno),
            (None, Some(syncer)) => syncer.sync(CUT_SYNC_MAX),
            (None, None) => Ok(()),
        };
        match synced {
            Ok(()) => Ok(lost),
            Err(errno) => Err(ControlError::Store(errno.raw_os_error())),
        }
    }

    pub(super) fn power_on(&mut self, now: Time) -> Result<(), ControlError> {
        if self.has_power {
            return Err(ControlError::PowerIsOn);
        }
        let now = self.advance(now);
        self.drive.power_cycle(now);
        self.has_power = true;
        Ok(())
    }
}
