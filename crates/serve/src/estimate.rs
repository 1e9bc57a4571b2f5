//! Estimates where the arm's time goes in a device that does not report it, from the profile of the
//! drive that the device is believed to be.
//!
//! A real device shows when a command is issued and when it completes. The profile gives the rest:
//! the seek from where the last command left the arm, the transfer of the sectors, and the
//! processing. Nobody knows the angle of the platter, so the rotation is what remains of the
//! measured time:
//!
//! ```text
//! later of issue and completion before                                        completion
//!   │ overhead │ seek or switch │ rotation: the rest, at most a turn │ transfer │ unexplained │
//!   └─ as the profile says ─────┘                                    └──────────┴─► overhead ─┘
//! ```
//!
//! Every instant is one of the eight [`PARTS`], in the meaning of [`headtime_disk::ledger`]; reading
//! ahead and destaging cannot be seen.
//!
//! - Nothing in the device: *waiting* if the scheduler has requests, *held* if the queue keeps them back for
//!   order, else *idle*.
//! - Several commands in the device: the order in which they complete is taken for the order in which
//!   they are served, each from the completion before (or from when it was issued, if that is later)
//!   to its own. What lies before that goes to the next one to complete. Those that were queued there
//!   when the one before completed cost no processing: the drive did that beside.
//! - An arm that leaves just in time reads ahead in place of waiting: that time is *rotation*. Commands cost no processing
//!   as long as the arm may read ahead behind the last read.
//! - As long as predicted without any rotation, or longer: overhead, *seek*, *switch* and *transfer* as
//!   predicted. Of the rest, up to a turn is *rotation*; what is beyond that is not explained by one
//!   access (retries, turns that are missed, work for other commands) and is *overhead*.
//! - No longer than processing and bus take, or less than half of the prediction: the buffer had it.
//!   Processing and bus are *overhead*. For the rest a read waited for its own sectors to be read
//!   ahead: it is *transfer* up to what those take (for a read that goes on where the last one ended,
//!   *switch* and *seek* in proportion), then *overhead*. Such a command does not move the arm, unless
//!   it goes on where the last one that did ended.
//! - Between these the profile is a little wrong: all parts are scaled to what was measured.
//! - Flushes and discards are *overhead*, and so is a write that completes in the buffer. The arm's
//!   movements for what is written back later are not seen: they make the idle time too long, and
//!   positioning after them starts from a place that is not known, so that the seek is off and the
//!   rotation makes up for it. A write that takes as long as an access, as they do when the buffer is
//!   full, is taken for one; it waited for others in truth, the time of which is much alike.
//!
//! While something is in the device, the account ends at the last completion (or where the first of
//! the commands there was issued), as what follows is only known with the next one; but a second later
//! the time is overhead whatever may come, so that a device that hangs shows.
//!
//! What is not here: a clock, and any influence on decisions.

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

/// The account is never further behind than this.
const BEHIND_MAX: Nanos = Nanos::from_secs(1);

/// Where the arm's time went, estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatedHeadTime([Nanos; Part::ALL.len()]);

impl EstimatedHeadTime {
    /// The time of one part; zero for those that are not in [`PARTS`].
    pub fn get(&self, part: Part) -> Nanos {
        self.0[part as usize]
    }

    /// The sum of all parts: the time up to which the account is known, see the [module](self).
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
    /// A write that completes on the medium only.
    through: bool,
}

/// What the profile says of a command. One that was issued before the last completion is taken to
/// have been processed beside the work for that.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    /// If the arm has to go for it: processing, what of the bus is not hidden, completion.
    overhead: Nanos,
    /// The same if it is in the buffer, or comes there by itself.
    in_buffer: Nanos,
    /// All of the bus beyond `in_buffer`.
    bus: Nanos,
    /// Without rotation.
    seek: Nanos,
    switch: Nanos,
    transfer: Nanos,
}

impl Predicted {
    /// The least time of an access of the arm.
    fn least(&self) -> Nanos {
        self.overhead + self.seek + self.switch + self.transfer
    }
}

/// Keeps the account of a device's arm from the issue and completion of its commands. The caller
/// passes the time. A time before the last one counts as the last one.
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
    /// By tag.
    commands: Vec<Option<Command>>,
    in_device: usize,
    /// Where the arm is taken to be.
    track: Track,
    /// Behind the last read that the arm went for.
    read_end: Option<Lba>,
    /// Until then an arm that leaves just in time may read ahead behind that.
    ahead_until: Time,
    last_was_read: bool,
}

impl HeadTimeEstimate {
    /// For a device that is taken to be such a drive, with sectors of `sector_bytes`, at rest at time
    /// zero. The estimate ignores the profile's noise, except the processing of buffer hits. Addresses
    /// beyond its capacity are taken for its last one.
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

    /// A command is issued to the device. No other command there has its tag.
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

    /// The device is done with a command, well or not. One that was not issued does not count.
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

    /// A command is aborted: all that the device did for it is overhead.
    pub fn gave_up(&mut self, now: Time, tag: DriveTag) {
        if self.take(now, tag).is_some() {
            self.leave();
        }
    }

    /// Why requests wait, from `now` on.
    pub fn pending(&mut self, now: Time, backlog: Backlog) {
        if backlog != self.backlog {
            self.advance(now);
            self.backlog = backlog;
        }
    }

    /// The account. Its parts sum to `now` if no command is in the device, else to the time up to
    /// which it is known, at most a second earlier. No part ever decreases.
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

    /// After a command: what nobody is left to explain is overhead.
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

    /// Charges as much of `left` as there is.
    fn charge_of(&mut self, left: &mut Nanos, part: Part, time: Nanos) {
        let time = time.min(*left);
        *left -= time;
        self.charge(part, time);
    }

    /// Divides the time of a command, which others may have shared.
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
                // The rest of it happened beside what the arm did for them.
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
            // Less than predicted, but by far more than the buffer takes.
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
            // With the sector before, a new track at the beginning is one within the access.
            whole = Extent::new(
                Lba::new(extent.start.get() - 1),
                extent.len + Sectors::new(1),
            );
        }
        // Rotation is not asked for, so that any time and order of sectors will do.
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
        // Getting the bus back, if it was given up.
        let reconnect = spec.first_reselect + spec.data_preparation + profile.bus.arbitration;
        // Sectors go over the bus while those behind them pass, from when so many have.
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
                // It was processed, and the one before was sent, while the arm was busy with that; but for what the
                // arm waits for at the end of each.
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
            // A write that has to be on the medium is not in the buffer, however short it was.
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

    /// Sectors of the profile that hold those of the device; none for a command without.
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
