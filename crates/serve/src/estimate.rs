//! Estimates how the arm spends its time in a device that does not report this. The estimate uses the profile of an
//! assumed drive.
//!
//! A real device shows the times at which a command is issued and completes. The profile gives the other times: the
//! seek from the arm's last position, the transfer of the sectors, and the processing. The angle of the platter is
//! unknown, so the rotation is the rest of the measured time:
//!
//! ```text
//! later of issue and completion before                                        completion
//!   │ overhead │ seek or switch │ rotation: the rest, at most a turn │ transfer │ unexplained │
//!   └─ as the profile says ─────┘                                    └──────────┴─► overhead ─┘
//! ```
//!
//! Every instant belongs to one of the eight [`PARTS`], as [`headtime_disk::ledger`] defines them. Reading ahead and
//! destaging are not visible from outside.
//!
//! - No command in the device: *waiting* if the scheduler chose to wait, *held* if the queue holds requests back for
//!   order, otherwise *idle*.
//! - Several commands in the device: the estimate assumes that the device serves the commands in the order of their
//!   completions. A service lasts from the previous completion, or from the command's issue if that is later, to the
//!   command's completion. Time before the service goes to the next command that completes. A command that was queued
//!   at the previous completion costs no processing, because the drive has processed it meanwhile.
//! - An arm that leaves just in time reads ahead instead of waiting. This time is *rotation*. Commands cost no
//!   processing while the arm may read ahead after the last read.
//! - Service at least as long as predicted without rotation: overhead, *seek*, *switch* and *transfer* as predicted.
//!   The rest is *rotation*, up to one turn. Time beyond that has causes outside of one access, such as retries, missed
//!   turns or work for other commands. This time is *overhead*.
//! - Service no longer than processing and bus, or less than half of the prediction: a buffer hit. Processing and bus
//!   are *overhead*. During the rest, a read waited until its sectors were read ahead. The rest is *transfer* up to the
//!   sectors' transfer time, then *overhead*. If the read continues the last read that moved the arm, *seek* and
//!   *switch* get their proportional shares. A buffer hit moves the arm only in this case.
//! - Service between these: the profile is slightly wrong, so all parts are scaled to the measured time.
//! - Flushes, discards and writes that complete in the buffer are *overhead*. The estimate does not see the arm write
//!   data back later, so the idle time is too long. The next positioning then starts from an unknown place, so the seek
//!   is wrong and the rotation compensates for the error. A write that takes as long as an access counts as an access.
//!   If the buffer is full, such a write in fact waits for the accesses of other writes, which take about as long.
//!
//! While a command is in the device, the account ends at the last completion, or at the issue of the first command in
//! the device. The parts of later time are only known at the next completion. Unaccounted time beyond one second counts
//! as overhead at once, so that a hanging device shows.
//!
//! This module has no clock and no influence on decisions.

#[cfg(test)]
mod tests;

use headtime_disk::ledger::Part;
use headtime_disk::profile::{Preseek, Profile};
use headtime_disk::{Access, Model};
use headtime_engine::DriveTag;
use headtime_sched::{Backlog, Flags, Op, Passing, Request};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// The parts that an estimate knows, in the order of reports.
pub const PARTS: [Part; 8] = [
    Part::Seek,
    Part::Switch,
    Part::Rotation,
    Part::Transfer,
    Part::Overhead,
    Part::Waiting,
    Part::Held,
    Part::Idle,
];

/// Longest time by which the account may lag behind.
const BEHIND_MAX: Nanos = Nanos::from_secs(1);

/// Estimated account of the arm's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatedHeadTime([Nanos; Part::ALL.len()]);

impl EstimatedHeadTime {
    /// The time of one part; zero for parts outside of [`PARTS`].
    pub fn get(&self, part: Part) -> Nanos {
        self.0[part as usize]
    }

    /// The sum of all parts, which is the time up to which the account is known, see the [module](self).
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }

    /// Each of the [`PARTS`] with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Nanos)> + '_ {
        PARTS.into_iter().map(|part| (part, self.get(part)))
    }

    /// Adds the parts of another device.
    pub fn add_all(&mut self, other: &EstimatedHeadTime) {
        for (part, more) in self.0.iter_mut().zip(other.0) {
            *part += more;
        }
    }

    fn add(&mut self, part: Part, time: Nanos) {
        self.0[part as usize] += time;
    }
}

/// A command in the device.
#[derive(Clone, Copy, Debug)]
struct Command {
    issued: Time,
    op: Op,
    extent: Extent,
    /// True for a write that completes only on the medium.
    through: bool,
}

/// Times of a command according to the profile. A command that was issued before the last completion is assumed to have
/// been processed during the previous service.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    /// Overhead of an access: processing, completion, and the bus time that the access does not hide.
    overhead: Nanos,
    /// Overhead if the sectors are in the buffer, or are read ahead into the buffer.
    in_buffer: Nanos,
    /// Bus time beyond `in_buffer`.
    bus: Nanos,
    /// Seek time of an access. The rotation is not predicted.
    seek: Nanos,
    switch: Nanos,
    transfer: Nanos,
}

impl Predicted {
    /// The shortest time of an access, which has no rotation.
    fn least(&self) -> Nanos {
        self.overhead + self.seek + self.switch + self.transfer
    }
}

/// Estimate of a device's arm account from the issue and completion of commands. The caller passes the time. A time
/// before the time of the last call counts as the time of the last call.
#[derive(Clone, Debug)]
pub struct HeadTimeEstimate {
    model: Model,
    /// Bytes of a sector of the device, and of the profile.
    sector_bytes: [u64; 2],
    account: EstimatedHeadTime,
    /// Everything before this is in the account.
    settled: Time,
    /// Time of the last call.
    now: Time,
    backlog: Backlog,
    /// Commands in the device, by tag.
    commands: Vec<Option<Command>>,
    in_device: usize,
    /// Assumed position of the arm.
    track: Track,
    /// End of the last read that moved the arm; `None` if a write moved the arm last.
    read_end: Option<Lba>,
    /// Time until which the arm may read ahead after `read_end`, if the profile lets the arm leave just in time.
    ahead_until: Time,
    last_was_read: bool,
}

impl HeadTimeEstimate {
    /// Starts an estimate for a device with sectors of `sector_bytes`, which is assumed to be the drive of `profile`
    /// and idle at time zero. The estimate ignores the profile's noise, except in the processing of buffer hits.
    /// Addresses beyond the profile's capacity count as its last address.
    pub fn new(profile: &Profile, sector_bytes: u32) -> HeadTimeEstimate {
        let model = Model::new(profile);
        HeadTimeEstimate {
            sector_bytes: [sector_bytes, profile.geometry.sector_bytes].map(u64::from),
            account: EstimatedHeadTime::default(),
            settled: Time::ZERO,
            now: Time::ZERO,
            backlog: Backlog::Nothing,
            commands: Vec::new(),
            in_device: 0,
            track: model.layout().home(),
            read_end: None,
            ahead_until: Time::ZERO,
            last_was_read: true,
            model,
        }
    }

    /// Notes that a command is issued. No other command in the device has the same tag.
    pub fn issue(&mut self, now: Time, request: &Request<DriveTag>) {
        self.advance(now);
        let index = request.tag.index();
        if self.commands.len() <= index {
            self.commands.resize(index + 1, None);
        }
        let command = Command {
            issued: self.now,
            op: request.op,
            extent: self.extent(request.extent),
            through: request.flags.has(Flags::FUA),
        };
        let before = self.commands[index].replace(command);
        self.in_device += usize::from(before.is_none());
    }

    /// Notes that the device has completed a command, successfully or not. A tag without a command is ignored.
    pub fn completed(&mut self, now: Time, tag: DriveTag) {
        let Some(command) = self.take(now, tag) else {
            return;
        };
        let from = self.settled.max(command.issued);
        let service = self.now - from;
        self.serve(&command, service, self.in_device > 0);
        self.last_was_read = command.op.is_read();
        self.leave();
    }

    /// Notes that a command is aborted. All of the device's time for the command is overhead.
    pub fn gave_up(&mut self, now: Time, tag: DriveTag) {
        if self.take(now, tag).is_some() {
            self.leave();
        }
    }

    /// Notes the reason why requests wait from `now` on.
    pub fn pending(&mut self, now: Time, backlog: Backlog) {
        if backlog != self.backlog {
            self.advance(now);
            self.backlog = backlog;
        }
    }

    /// Returns the account. If no command is in the device, the parts sum to `now`. Otherwise the parts sum to the time
    /// up to which the account is known, at most a second earlier. No part ever decreases.
    pub fn account(&mut self, now: Time) -> EstimatedHeadTime {
        self.advance(now);
        self.catch_up();
        self.account
    }

    /// Accounts for the time in which no command was in the device.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.in_device == 0 {
            let part = match self.backlog {
                Backlog::Nothing => Part::Idle,
                Backlog::Busy => Part::Overhead,
                Backlog::Chosen => Part::Waiting,
                Backlog::Held => Part::Held,
            };
            self.charge(part, self.now - self.settled);
        }
    }

    fn take(&mut self, now: Time, tag: DriveTag) -> Option<Command> {
        let command = self.commands.get_mut(tag.index())?.take()?;
        self.now = self.now.max(now);
        self.in_device -= 1;
        Some(command)
    }

    /// Ends a command. If no command is left that could explain the remaining time, this time is overhead.
    fn leave(&mut self) {
        if self.in_device == 0 {
            self.charge(Part::Overhead, self.now - self.settled);
        }
        self.catch_up();
    }

    fn catch_up(&mut self) {
        let behind = self.now - self.settled;
        self.charge(Part::Overhead, behind.saturating_sub(BEHIND_MAX));
    }

    fn charge(&mut self, part: Part, time: Nanos) {
        self.account.add(part, time);
        self.settled += time;
    }

    /// Charges `time` to a part, at most `left`, and takes the charged time from `left`.
    fn charge_of(&mut self, left: &mut Nanos, part: Part, time: Nanos) {
        let time = time.min(*left);
        *left -= time;
        self.charge(part, time);
    }

    /// Divides the service time of a command among the parts. `others` is true if other commands are in the device.
    fn serve(&mut self, command: &Command, service: Nanos, others: bool) {
        if command.extent.is_empty() || command.op == Op::Discard {
            self.charge(Part::Overhead, service);
            return;
        }
        let goes_on = command.op.is_read()
            && self.last_was_read
            && self.read_end == Some(command.extent.start);
        let (access, predicted) = self.predict(command, goes_on);
        let least = predicted.least();
        let wholly = service <= predicted.in_buffer + predicted.bus;
        let mut left = service;
        if service >= least {
            self.charge_of(&mut left, Part::Overhead, predicted.overhead);
            self.charge_of(&mut left, Part::Seek, predicted.seek);
            self.charge_of(&mut left, Part::Switch, predicted.switch);
            self.charge_of(&mut left, Part::Transfer, predicted.transfer);
            let turn = self.model.mechanics().turn();
            self.charge_of(&mut left, Part::Rotation, turn);
        } else if wholly {
            if others && !goes_on {
                // The rest of the time passed during the arm's work for the other commands.
                left = left.min(predicted.in_buffer);
            }
        } else if goes_on {
            self.charge_of(&mut left, Part::Overhead, predicted.in_buffer);
            // The arm was under way already.
            let way = predicted.seek + predicted.switch + predicted.transfer;
            let waited = left.min(way);
            for (part, time) in [
                (Part::Seek, predicted.seek),
                (Part::Switch, predicted.switch),
                (Part::Transfer, predicted.transfer),
            ] {
                self.charge_of(&mut left, part, scaled(time, waited, way));
            }
        } else if service < least / 2 {
            let varies = self.model.profile().noise.overhead_sd * 3;
            let processed = predicted.in_buffer + predicted.bus + varies;
            self.charge_of(&mut left, Part::Overhead, processed);
            if command.op.is_read() {
                self.charge_of(&mut left, Part::Transfer, predicted.transfer);
            }
        } else {
            // The service took less than predicted, but far more than a buffer hit.
            for (part, time) in [
                (Part::Seek, predicted.seek),
                (Part::Switch, predicted.switch),
                (Part::Transfer, predicted.transfer),
            ] {
                self.charge_of(&mut left, part, scaled(time, service, least));
            }
        }
        self.charge(Part::Overhead, left);
        let from_buffer = service < least && (wholly || service < least / 2);
        if goes_on || !from_buffer {
            self.moved(command, access.track);
        }
    }

    fn moved(&mut self, command: &Command, track: Track) {
        self.track = track;
        self.read_end = command.op.is_read().then(|| command.extent.end());
        let in_time = self.model.profile().queue.preseek == Preseek::JustInTime;
        let ahead = self
            .model
            .buffering()
            .filter(|_| in_time && command.op.is_read());
        let ahead = ahead.map_or(Nanos::ZERO, |reads| reads.sector * reads.ahead.get());
        self.ahead_until = self.now + ahead;
    }

    fn predict(&self, command: &Command, goes_on: bool) -> (Access, Predicted) {
        let Command { op, extent, .. } = *command;
        let queued = command.issued < self.settled;
        let (layout, mechanics) = (self.model.layout(), self.model.mechanics());
        let mut whole = extent;
        if goes_on {
            // The sector before is included, so that a new track at the beginning counts as a switch within the access.
            whole = Extent::new(
                Lba::new(extent.start.get() - 1),
                extent.len + Sectors::new(1),
            );
        }
        // The rotation is not used, so any time and any order of sectors will do.
        let access = mechanics.access(layout, self.track, Time::ZERO, whole, op, false);
        let transfer = scaled(
            access.transfer,
            Nanos::from_nanos(extent.len.get()),
            Nanos::from_nanos(whole.len.get()),
        );
        let profile = self.model.profile();
        let spec = &profile.overhead;
        let sector = profile.bus.sector(op.is_read());
        let bus = sector * extent.len.get();
        // Time to get the bus back, if the drive has released the bus.
        let reconnect = spec.first_reselect + spec.data_preparation + profile.bus.arbitration;
        // Sectors go over the bus while later sectors pass under the head, once the buffer has reached its high-water
        // mark.
        let after = match (op.is_read(), goes_on) {
            (true, false) => {
                let len = extent.len.get();
                let behind = len - profile.cache.read_water(len).min(len);
                let hidden = scaled(transfer, Nanos::from_nanos(behind), Nanos::from_nanos(len));
                (reconnect + bus).saturating_sub(hidden)
            }
            _ => bus.saturating_sub(transfer),
        };
        let bus_after = after.max(sector);
        let (miss, hit, completion) = match (op.is_read(), self.last_was_read) {
            (true, true) => (
                spec.read_miss_after_read,
                spec.read_hit_after_read,
                spec.read_completion,
            ),
            (true, false) => (
                spec.read_miss_after_write,
                spec.read_hit_after_write,
                spec.read_completion,
            ),
            (false, true) => (
                spec.write_miss_after_read,
                spec.write_hit_after_read,
                spec.write_completion,
            ),
            (false, false) => (
                spec.write_miss_after_write,
                spec.write_hit_after_write,
                spec.write_completion,
            ),
        };
        let set_up = match goes_on {
            true => Nanos::ZERO,
            false => {
                let way = access.seek + access.switch;
                mechanics.set_up(way.min(mechanics.turn()), op)
            }
        };
        let in_buffer = spec.per_command + hit + spec.data_preparation + completion;
        let predicted = Predicted {
            overhead: match goes_on {
                // The arm's work hides the processing of a queued command and the sending of the previous data. Only
                // those steps remain for which the arm waits at the end of a command.
                _ if queued => match profile.queue.preseek {
                    Preseek::Off => completion + bus_after,
                    Preseek::AtCompletion => completion,
                    Preseek::AtMediaEnd | Preseek::JustInTime => Nanos::ZERO,
                },
                true => in_buffer + bus_after,
                false if command.issued < self.ahead_until => completion + set_up + bus_after,
                false => spec.per_command + miss + completion + set_up + bus_after,
            },
            in_buffer: match goes_on {
                true if queued => Nanos::ZERO,
                true => in_buffer + bus_after,
                false => in_buffer,
            },
            // A write that has to reach the medium is no buffer hit, even if it was short.
            bus: match (command.through, goes_on) {
                (true, _) => Nanos::ZERO,
                (false, true) => bus.saturating_sub(bus_after) + reconnect,
                (false, false) => bus + reconnect,
            },
            seek: access.seek,
            switch: access.switch,
            transfer,
        };
        (access, predicted)
    }

    /// Converts sectors of the device to the profile's sectors that contain them. An empty extent stays empty.
    fn extent(&self, extent: Extent) -> Extent {
        if extent.is_empty() {
            return extent;
        }
        let [device, profile] = self.sector_bytes;
        let capacity = self.model.layout().capacity().get();
        let start = extent.start.get() * device / profile;
        let end = (extent.end().get() * device).div_ceil(profile);
        let start = start.min(capacity - 1);
        Extent::at(start, end.min(capacity).max(start + 1) - start)
    }
}

/// `time * of / whole`, rounded down.
fn scaled(time: Nanos, of: Nanos, whole: Nanos) -> Nanos {
    let product = u128::from(time.as_nanos()) * u128::from(of.as_nanos());
    Nanos::from_nanos((product / u128::from(whole.as_nanos().max(1))) as u64)
}
