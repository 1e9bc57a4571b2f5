//! Chooses the arm's next action, and bounds the time for which sequential reads may keep the arm.
//!
//! Firmware that chooses by position does not seek away from reads that the arm reaches by reading
//! on. It sends data in the buffer at once. It first reads the sectors that come under the head
//! next, through holes too. A *stream* is several reads that have continued each other while other
//! commands were in the drive. A stream keeps the arm until its next read comes, as far as the
//! drive reads ahead.
//!
//! This ends when another command has waited for [`QueueSpec::stream_cap`]. Then all commands that
//! have waited for half of the cap go first, in order of arrival. With each such command go the
//! commands that the arm passes on the way. After that the arm goes on with a stream, the same or
//! another.
//!
//! With a cap of zero the arm goes on with nothing while another command waits. Every command has
//! then waited for long enough. If such commands went in order of arrival, the whole queue would.
//! They therefore go by position.
//!
//! The arm also writes sequential waiting writes in one pass. The drive fetches their data while
//! the arm works, as far as the part of the buffer for written data has room.
//!
//! Firmware may hold the arm for a stream also where the drive reads nothing ahead (`hold`).
//!
//! Firmware may also bound the wait of a command by the number of choices. One of every
//! [`QueueSpec::oldest_every`] choices takes the oldest command, if that command has waited for
//! [`QueueSpec::oldest_age`]. A read that the buffer serves is not counted as a choice.
//!
//! Where [`QueueSpec::ncq_prio`] is on, a command of high priority ends a stream of other commands. While such a
//! command waits for the arm, only commands of high priority are candidates. The exceptions are commands that are too
//! old, and the oldest command at its choice.
//!
//! These rules do not apply while the drive has a single command.
//!
//! [`QueueSpec::stream_cap`]: crate::profile::QueueSpec::stream_cap
//! [`QueueSpec::ncq_prio`]: crate::profile::QueueSpec::ncq_prio
//! [`QueueSpec::oldest_every`]: crate::profile::QueueSpec::oldest_every
//! [`QueueSpec::oldest_age`]: crate::profile::QueueSpec::oldest_age

use super::Drive;
use super::destage::What;
use crate::cache::ReadLookup;
use crate::profile::Preseek;
use crate::queue::{Arm, Rated, Reach, Waiting};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// The next action of the arm.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The arm serves the command at this place of the queue.
    Serve {
        place: usize,
        /// The arm reads on through the sectors in front of the command.
        through: bool,
    },
    /// The arm writes these dirty data.
    Destage(What),
    /// The arm goes on reading ahead until this time.
    GoOn(Time),
    /// No command that could be served waits.
    Nothing,
}

impl Next {
    fn serve(place: usize) -> Next {
        Next::Serve {
            place,
            through: false,
        }
    }
}

/// A command that the arm reaches without setting out.
#[derive(Clone, Copy, Debug)]
struct Coming {
    place: usize,
    time: Nanos,
    through: bool,
}

impl Drive {
    /// Notes for the next choice that a read is served.
    pub(super) fn note_stream(&mut self, index: u16, now: Time, at: Time, moves: bool) {
        if self.streams.is_enabled() && self.queue.is_by_position() {
            let counts = self.is_choosing();
            let slot = &self.slots[usize::from(index)];
            let (extent, sent) = (slot.command.extent, slot.submitted);
            self.streams.note(extent, [sent, now, at], moves, counts);
        }
    }

    /// Returns true if the drive has a choice: several commands are in the drive, and the policy
    /// looks at their positions.
    pub(super) fn is_choosing(&self) -> bool {
        self.queue.is_by_position() && self.in_flight() - self.finished.len() > 1
    }

    /// Chooses what an arm that is free at `now` does for the commands that wait.
    pub(super) fn choose(&mut self, now: Time) -> Next {
        self.going.alone = false;
        if let Some(what) = self.destage_due(now) {
            return Next::Destage(what);
        }
        let high = self.queue.has_high();
        if let Some(until) = self.going.overdue.filter(|_| !high) {
            let rated = self.rate(now, until);
            if let Some(next) = self.next_overdue(&rated, now) {
                return next;
            }
            self.going.overdue = None;
        }
        let mut rated = self.rate(now, Time::NEVER);
        if let Some(chosen) = self.chosen(now) {
            rated.other = Some(chosen);
        }
        // A hit does not keep the arm from other commands, unless the arm waits for the bus.
        let free = self.profile.queue.preseek >= Preseek::AtMediaEnd || rated.oldest.is_none();
        if let Some(place) = rated.old.or(rated.hit.filter(|_| free)) {
            return Next::serve(place);
        }
        if let Some(place) = self.turn_of_the_oldest(now) {
            return Next::serve(place);
        }
        let coming = self.coming(&rated, now);
        let alone = match coming {
            None if !high => self.goes_on_alone(&rated, now),
            _ => None,
        };
        let holds = !high && coming.is_none() && alone.is_none() && rated.hit.is_none();
        if holds && let Some(next) = self.next_held(&rated, now) {
            return next;
        }
        if (rated.hit.is_some() || coming.is_some() || alone.is_some())
            && let Some(place) = rated.oldest
        {
            let oldest = self.queue.get(place);
            let cap = self.profile.queue.stream_cap;
            let until = self.going.since.max(oldest.arrived).saturating_add(cap);
            let flush = self.flushes > 0;
            let kept = match coming {
                // A flush ends the stream at once, unless the stream's next read came before the
                // command that waits.
                Some(coming) if !flush || coming.place < place => {
                    self.kept_waiting(coming.place, now)
                }
                _ => (flush || now >= until).then_some(place),
            };
            if let Some(place) = kept {
                let nearest = rated.other.filter(|_| cap.is_zero());
                let place = nearest.map_or(place, |(nearest, _)| nearest);
                if let Some(next) = self.serve_kept(place, now) {
                    return next;
                }
            } else if let Some(hit) = rated.hit {
                return Next::serve(hit);
            } else if let Some(ends) = alone {
                self.going.alone = true;
                return Next::GoOn(until.min(ends));
            }
        } else if let Some(ends) = alone
            && rated.around.is_some()
        {
            self.going.alone = true;
            return Next::GoOn(ends);
        }
        let choice = match (coming, rated.other) {
            (Some(coming), None) => Some((coming.place, coming.time, coming.through)),
            (Some(coming), Some((_, time))) if coming.time <= time => {
                Some((coming.place, coming.time, coming.through))
            }
            (_, other) => other.map(|(place, time)| (place, time, false)),
        };
        if let Some(what) = self.destage_first(choice.map(|(place, time, _)| (place, time)), now) {
            return Next::Destage(what);
        }
        if let Some((place, time)) = rated.other
            && choice == Some((place, time, false))
            && let Some(until) = self.leaves_at(&self.queue.get(place).clone(), now)
        {
            self.going.alone = true;
            self.going.next = Some(self.queue.get(place).slot);
            return Next::GoOn(until);
        }
        match choice {
            Some((place, _, through)) => Next::Serve { place, through },
            // The oldest command waits for room that only a completion makes.
            None => match rated.hit.or(rated.coming).or(rated.around) {
                Some(place) => Next::serve(place),
                None => Next::Nothing,
            },
        }
    }

    /// The oldest command that needs the arm, if this choice is the turn of the oldest and the command has waited for
    /// long enough.
    fn turn_of_the_oldest(&self, now: Time) -> Option<usize> {
        let queue = &self.profile.queue;
        let is_its_turn = self.choices + 1 == queue.oldest_every;
        if !is_its_turn || !self.is_choosing() {
            return None;
        }
        let place = self.queue.iter().position(|waiting| waiting.needs_arm)?;
        let waited = now.saturating_since(self.queue.get(place).arrived);
        (waited >= queue.oldest_age).then_some(place)
    }

    /// Counts a choice: the arm serves a command and could have served another.
    pub(super) fn note_choice(&mut self) {
        let every = self.profile.queue.oldest_every;
        self.choices = match self.choices + 1 < every {
            true => self.choices + 1,
            false => 0,
        };
    }

    /// The next action for the commands that a stream has kept waiting for too long. `None` if
    /// there is no such command.
    fn next_overdue(&mut self, rated: &Rated, now: Time) -> Option<Next> {
        if let Some(place) = rated.old.or(rated.hit) {
            return Some(Next::serve(place));
        }
        let oldest = rated.oldest?;
        if self.profile.queue.stream_cap.is_zero()
            && let Some((nearest, _)) = rated.other
        {
            return Some(Next::serve(nearest));
        }
        if let Some(coming) = self.coming(rated, now)
            && rated.other.is_none_or(|(_, time)| coming.time <= time)
        {
            if let Some(place) = self.kept_waiting(coming.place, now) {
                return self.serve_kept(place, now);
            }
            return Some(Next::Serve {
                place: coming.place,
                through: coming.through,
            });
        }
        self.serve_waiting(oldest, now)
    }

    /// The next action of an arm that is held for a stream. The arm serves the stream's next read if that came in time,
    /// else waits for the read. If the stream has kept another command waiting for the cap, the arm serves that
    /// command. `None` if the arm is not held, no other command waits, a flush waits, or the hold has run out.
    fn next_held(&mut self, rated: &Rated, now: Time) -> Option<Next> {
        let cap = self.profile.queue.stream_cap;
        let held = self.streams.held().filter(|_| !cap.is_zero())?;
        let oldest = rated.oldest.filter(|_| self.flushes == 0)?;
        let next = self.queue.iter().position(|waiting| {
            let continues = waiting.op == Op::Read && waiting.extent.start == held.next;
            continues && waiting.needs_arm && waiting.arrived <= held.until
        });
        let kept = match next {
            Some(next) if now >= held.since.saturating_add(cap) => {
                let by = Time::ZERO + (now - Time::ZERO).saturating_sub(cap);
                let has = |waiting: &Waiting| self.has(waiting);
                self.queue.first_apart(&held.reach(), next, by, has)
            }
            Some(_) => None,
            None if now >= held.until => return None,
            None => {
                let until = held.since.max(self.queue.get(oldest).arrived);
                let until = until.saturating_add(cap);
                if now < until {
                    self.going.alone = true;
                    return Some(Next::GoOn(held.until.min(until)));
                }
                Some(oldest)
            }
        };
        match (kept, next) {
            (Some(place), _) => {
                self.streams.end_hold();
                self.serve_kept(place, now)
            }
            (None, Some(next)) => Some(Next::serve(next)),
            (None, None) => None,
        }
    }

    /// The first command that a stream has kept waiting for the cap, if the stream goes on with the command at
    /// `coming`. `None` until the arm has served the stream for the cap. Commands of the stream itself do not count.
    fn kept_waiting(&self, coming: usize, now: Time) -> Option<usize> {
        let cap = self.profile.queue.stream_cap;
        if now < self.going.since.saturating_add(cap) {
            return None;
        }
        let reach = self.reach(now)?;
        let by = Time::ZERO + (now - Time::ZERO).saturating_sub(cap);
        self.queue
            .first_apart(&reach, coming, by, |waiting| self.has(waiting))
    }

    /// Serves a command that has been kept waiting for the cap.
    fn serve_kept(&mut self, place: usize, now: Time) -> Option<Next> {
        // Commands that have waited for half of the cap go along. At the next cap they would be
        // late.
        let enough = self.profile.queue.stream_cap / 2;
        self.going.overdue = Some(Time::ZERO + (now - Time::ZERO).saturating_sub(enough));
        self.serve_waiting(place, now)
    }

    /// Returns true if the buffer still has the data of a read that it had once.
    fn has(&self, waiting: &Waiting) -> bool {
        let found = self.cache.find_read(waiting.extent);
        matches!(found, ReadLookup::Whole(_)) || self.cache.runs_serve(waiting.extent)
    }

    /// Serves the command at `place`. If the command continues other waiting commands, serves the
    /// first of the row. If the command does not need the arm, destages instead.
    fn serve_waiting(&mut self, place: usize, now: Time) -> Option<Next> {
        if self.queue.get(place).needs_arm {
            return Some(Next::serve(self.queue.first_of_run(place)));
        }
        let what = match self.flushes {
            0 => self.destage_overdue(now),
            // These destages end with the flush.
            _ => self.next_destage(now),
        };
        what.map(Next::Destage)
    }

    fn rate(&self, now: Time, until: Time) -> Rated {
        let arm = Arm {
            from: self.arm_track(),
            now,
            reach: self.reach(now),
        };
        self.queue
            .rate(&self.mechanics, &arm, until, |waiting| self.has(waiting))
    }

    /// The sectors that the arm, free at `now`, reaches without setting out for them.
    fn reach(&self, now: Time) -> Option<Reach> {
        if !self.is_choosing() {
            return None;
        }
        if let Some(ahead) = self.ahead.filter(|_| self.cache.spec().enabled) {
            let segment = self.cache.get(ahead.segment);
            let (start, next) = (Lba::new(segment.start), Lba::new(segment.end));
            return (ahead.at <= now).then_some(Reach {
                op: Op::Read,
                start,
                next,
                limit: if ahead.reached {
                    start
                } else {
                    self.ahead_limit(&ahead)
                },
                around: ahead.around.map_or(start, |(_, first)| {
                    let size = u64::from(self.cache.spec().segment_sectors);
                    first.max(Lba::new(ahead.next.get().saturating_sub(size)))
                }),
            });
        }
        let (op, (at, next)) = match self.write_last.0 == now {
            true => (Op::Write, self.write_last),
            false => (Op::Read, self.read_last),
        };
        (at == now).then_some(Reach {
            op,
            start: next,
            next,
            limit: next + Sectors::new(1),
            around: next,
        })
    }

    /// The command that the arm reaches first by reading on, unless setting out gets it there
    /// sooner.
    fn coming(&self, rated: &Rated, now: Time) -> Option<Coming> {
        let place = rated.coming?;
        let waiting = self.queue.get(place);
        let at_once = Coming {
            place,
            time: Nanos::ZERO,
            through: false,
        };
        let Some(ahead) = self.ahead.filter(|_| self.cache.spec().enabled) else {
            let late = waiting.op == Op::Write && !self.is_fetched(waiting.slot, now);
            return Some(Coming {
                time: if late { self.turn() } else { Nanos::ZERO },
                ..at_once
            });
        };
        let (start, len) = (waiting.extent.start, waiting.extent.len);
        if start <= Lba::new(self.cache.get(ahead.segment).end) {
            return Some(at_once);
        }
        let hole = Extent::new(ahead.next, start - ahead.next);
        if hole.len <= len {
            // A command that is nearer by position would leave this command behind, for a whole
            // turn.
            return Some(Coming {
                through: true,
                ..at_once
            });
        }
        let walk = self
            .mechanics
            .walk(&self.layout, ahead.track, ahead.at, hole, Op::Read, false);
        let time = walk.last()?.end().saturating_since(now);
        let target = waiting.target?;
        let direct = self
            .queue
            .estimate(&self.mechanics, self.arm_track(), now, target, time);
        Some(Coming {
            place,
            time: time.min(direct),
            through: time <= direct,
        })
    }

    /// Time until which the arm goes on reading ahead although no waiting command begins in the
    /// sectors ahead. The head completes its turn of the track because a waiting command needs the
    /// beginning of the track. `None` if no command does, or if the arm can reach another command
    /// sooner.
    fn goes_on_alone(&mut self, rated: &Rated, now: Time) -> Option<Time> {
        rated.around?;
        let (at, _) = self.ahead?.around?;
        let sooner = rated
            .other
            .is_some_and(|(_, time)| time < at.saturating_since(now));
        (!sooner && now < at).then_some(at)
    }
}
