//! Makes a profile of the events of a run.

use crate::features::{Accumulator, Sums};
use crate::profile::{Profile, ProfileError, Row};
use crate::setting::{Service, Setting, SettingError};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::collections::BTreeMap;

/// Takes the profile of a run of one program.
///
/// # Readings
///
/// The paper groups requests by the epoch in which they come, with their service times. A service time may end in a later
/// epoch. So the program's I/O time is divided at the first request of each epoch. The I/O time of an epoch lasts until the
/// first request of the next epoch that has one. If the program has one request outstanding at a time, this is exactly the
/// sum of the service times. The times of all epochs add up to the I/O time of the program.
///
/// # Examples
///
/// ```
/// use headtime_qos::{Recorder, Service, Setting};
/// use headtime_sched::Op;
/// use headtime_units::{Extent, Millionths, Time};
///
/// let setting = Setting {
///     site: "lab".to_owned(),
///     program: "copy".to_owned(),
///     share: Millionths::ONE,
///     epoch: Setting::EPOCH,
///     service: Service::Program,
///     servers: 1,
/// };
/// let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
/// let mut recorder = Recorder::new(setting, 512, at(0))?;
/// recorder.request(at(10), 0, Op::Read, Extent::at(0, 2000));
/// recorder.busy(at(10), at(20));
/// let profile = recorder.finish(at(50))?;
/// assert_eq!(profile.rows[0].rate(), Some(102_400_000.0));
/// assert_eq!(profile.compute().as_nanos(), 40_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    setting: Setting,
    start: Time,
    servers: Vec<Server>,
    rows: BTreeMap<(u64, u16), (Sums, Nanos)>,
    /// Epochs with requests, in order.
    epochs: Vec<Epoch>,
    /// Place in `epochs` of the last I/O time.
    at: usize,
    /// I/O time before the first request.
    early: Nanos,
    io: Nanos,
    last_request: Time,
    last_busy: Time,
}

#[derive(Clone, Debug)]
struct Server {
    requests: Accumulator,
    /// Epoch of the requests.
    epoch: u64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    number: u64,
    /// Time of the first request.
    first: Time,
    /// I/O time of the program.
    busy: Nanos,
}

impl Recorder {
    /// A run that starts at `start`, on servers whose sectors have `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If a value of the setting is not allowed.
    pub fn new(setting: Setting, sector_bytes: u32, start: Time) -> Result<Recorder, SettingError> {
        setting.check()?;
        let server = Server {
            requests: Accumulator::new(sector_bytes),
            epoch: 0,
        };
        Ok(Recorder {
            servers: vec![server; usize::from(setting.servers)],
            setting,
            start,
            rows: BTreeMap::new(),
            epochs: Vec::new(),
            at: 0,
            early: Nanos::ZERO,
            io: Nanos::ZERO,
            last_request: start,
            last_busy: start,
        })
    }

    fn epoch_of(&self, at: Time) -> u64 {
        (at - self.start).as_nanos() / self.setting.epoch.as_nanos()
    }

    /// Notes a request that arrives at a server. Flushes, discards and requests without sectors do not count.
    ///
    /// # Panics
    ///
    /// If the time goes backwards, or there is no such server.
    pub fn request(&mut self, at: Time, server: u16, op: Op, extent: Extent) {
        assert!(at >= self.last_request, "requests come in order");
        self.last_request = at;
        if !matches!(op, Op::Read | Op::Write) || extent.is_empty() {
            return;
        }
        let number = self.epoch_of(at);
        if self.epochs.last().is_none_or(|last| last.number < number) {
            self.epochs.push(Epoch {
                number,
                first: at,
                busy: std::mem::take(&mut self.early),
            });
        }
        let of = &mut self.servers[usize::from(server)];
        if of.epoch != number {
            let before = std::mem::replace(&mut of.epoch, number);
            Recorder::store(&mut self.rows, before, server, of.requests.take());
        }
        of.requests.add(op, extent);
    }

    fn store(
        rows: &mut BTreeMap<(u64, u16), (Sums, Nanos)>,
        epoch: u64,
        server: u16,
        sums: Option<Sums>,
    ) {
        if let Some(sums) = sums {
            rows.entry((epoch, server)).or_default().0 = sums;
        }
    }

    /// Notes that the program had a request outstanding from `from` to `to`. Intervals come in order and do not overlap. All
    /// requests before `to` were noted.
    ///
    /// # Panics
    ///
    /// If an interval begins before the previous interval ends.
    pub fn busy(&mut self, from: Time, to: Time) {
        assert!(
            from >= self.last_busy && from <= to,
            "intervals of I/O come in order"
        );
        self.last_busy = to;
        self.io += to - from;
        let mut from = from;
        if let Some(first) = self.epochs.first().map(|epoch| epoch.first)
            && from < first
        {
            let early = first.min(to);
            self.epochs[0].busy += early - from;
            from = early;
        } else if self.epochs.is_empty() {
            self.early += to - from;
            return;
        }
        while from < to {
            let next = self
                .epochs
                .get(self.at + 1)
                .map_or(Time::NEVER, |next| next.first);
            if next <= from {
                self.at += 1;
                continue;
            }
            let until = next.min(to);
            self.epochs[self.at].busy += until - from;
            from = until;
        }
    }

    /// Notes the service time of a request at its disk, for [`Service::Disk`]. `at` is the arrival of the request at the
    /// server.
    ///
    /// # Panics
    ///
    /// If there is no such server, or the arrival is before the start.
    pub fn served(&mut self, at: Time, server: u16, service: Nanos) {
        assert!(server < self.setting.servers, "no server {server}");
        let epoch = self.epoch_of(at);
        self.rows.entry((epoch, server)).or_default().1 += service;
    }

    /// Ends the run.
    ///
    /// # Errors
    ///
    /// If no server had a request.
    ///
    /// # Panics
    ///
    /// If the run ends before its last request or I/O time.
    pub fn finish(mut self, end: Time) -> Result<Profile, ProfileError> {
        assert!(
            end >= self.last_request && end >= self.last_busy,
            "a run ends at its end"
        );
        for (number, server) in self.servers.iter_mut().enumerate() {
            Recorder::store(
                &mut self.rows,
                server.epoch,
                number as u16,
                server.requests.take(),
            );
        }
        let mut epochs = self.epochs.iter();
        let mut current = None;
        let mut rows = Vec::with_capacity(self.rows.len());
        for ((epoch, server), (sums, disk)) in self.rows {
            while current.is_none_or(|current: &Epoch| current.number < epoch) {
                let Some(next) = epochs.next() else { break };
                current = Some(next);
            }
            // A service time without a request belongs to a flush.
            if sums.requests == 0 {
                continue;
            }
            let busy = match self.setting.service {
                Service::Program => current.map_or(Nanos::ZERO, |current| current.busy),
                Service::Disk => disk,
            };
            rows.push(Row {
                epoch,
                server,
                sums,
                busy,
            });
        }
        if rows.is_empty() {
            return Err(ProfileError::Empty {
                program: self.setting.program,
            });
        }
        Ok(Profile {
            setting: self.setting,
            run: end - self.start,
            io: self.io,
            rows,
        })
    }
}
