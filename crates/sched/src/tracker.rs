//! Tracker of a drive's head: the commands in the drive, their predicted ends, and their real ends.
//!
//! A drive answers commands and does not report the position of its head. A model predicts the head time of each
//! command. Each command begins where the preceding command ended. Each answer corrects the account, since the head is
//! then at the end of the command (Lumb, Schindler and Ganger, FAST 2002, section 3.3, "Resync after each request").

use crate::platter::Platter;
use crate::{HeadAfter, HeadState, HeadTime, Op, Positioning, TrackedCommand, Twin};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use headtime_units::{Extent, Lba, Nanos, SignedNanos, Time};

/// The observed time of a command against its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicting {
    /// From the end of the preceding command to the end of this one. Counts from the time of sending if that is later.
    pub observed: Nanos,
    /// Prediction of `observed`.
    pub predicted: Nanos,
    /// Kind of deviation.
    pub surprise: Surprise,
}

impl Predicting {
    /// Observed time minus predicted time, in nanoseconds. Negative if the command was done sooner.
    pub fn error(&self) -> i64 {
        SignedNanos::longer(self.observed, self.predicted).as_nanos()
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surprise {
    /// At the predicted point of a turn, and in the predicted turn.
    None,
    /// At the predicted point, but this number of turns later or, if negative, earlier.
    Turns(i8),
    /// This number of turns later, while completed writes may have waited in the drive's buffer. Most likely the drive
    /// wrote some of them first. A command that missed its sector at such a time looks the same.
    Destaging(i8),
    /// Sooner than any access to the medium: the drive's buffer served the command.
    Hit,
    /// At another point of the turn: the bus, a retry, or an activity inside the drive.
    Elsewhere,
}

/// Follows the head of one drive.
pub trait Track: fmt::Debug + Send {
    /// Notes that a command has gone to the drive, behind all others there.
    fn issued(&mut self, now: Time, tag: u32, what: TrackedCommand);

    /// Notes that a command is done, with or without success. Returns the observed and the predicted time. `None` if
    /// the command has no sectors, is a write that ends in the drive's buffer, or was never reported to the tracker.
    fn completed(&mut self, now: Time, tag: u32, done: bool) -> Option<Predicting>;

    /// Returns the head behind all commands in the drive, and behind the `staged` commands, which will go there in this
    /// order.
    ///
    /// The time at which the head is free is unknown if the drive has more than two commands and serves them in its own
    /// order.
    fn head(&mut self, now: Time, staged: &mut dyn Iterator<Item = TrackedCommand>) -> HeadState;

    /// Returns the time at which the head should be free behind the commands in the drive. `None` if the drive has no
    /// commands, or if the time is unknown.
    fn due(&mut self, now: Time) -> Option<Time>;

    /// Returns the time at which the drive should answer its first command. `None` if the drive has no commands, or if
    /// the time is unknown.
    fn next_done(&mut self, now: Time) -> Option<Time>;

    /// Returns true if the tracker knows the phase of the platter.
    fn is_found(&self) -> bool;
}

/// Tolerance for reads from the medium: such a read may be done this much sooner than its seek and transfer.
const READ_TOLERANCE: Nanos = Nanos::from_micros(300);

/// Up to this number of commands, the tracker assumes the order of sending, even if the drive has used another order.
const IN_ORDER: usize = 2;

/// A command in the drive.
#[derive(Clone, Copy)]
struct Sent<Place> {
    tag: u32,
    at: Time,
    what: TrackedCommand,
    /// Prediction by the clock of the model, which led by `ahead`. `None` if the command has not been predicted yet.
    time: Option<HeadTime<Place>>,
    ahead: Nanos,
}

/// Follows the head of a drive by a [`Positioning`]. Each command begins where the preceding one ends, and each answer
/// corrects the account.
///
/// Invariants: `known <= chained <= in_drive.len()`; `in_drive[..chained]` have a `time`.
pub struct Tracker<P: Positioning> {
    model: P,
    platter: Option<Platter>,
    twin: Option<Box<dyn Twin>>,
    /// True if the twin predicted the last command at least as well as the head alone.
    twin_is_near: bool,
    /// In the order in which the drive should serve them: first come, first served.
    in_drive: VecDeque<Sent<P::Place>>,
    /// Number of leading commands that are predicted from the current position of the head.
    known: usize,
    /// Number of leading commands that are predicted, each behind the preceding one. The chain may start from an
    /// outdated position of the head.
    chained: usize,
    /// Number of successive commands that have ended in the order of sending.
    in_order: usize,
    /// The head behind the last completed command, by the time of the host.
    place: P::Place,
    free: Time,
    lba: Lba,
    op: Option<Op>,
    /// Time at which the last command was done.
    ended: Time,
    /// Latest time until which writes may wait in the drive's buffer.
    waits_until: Time,
    /// Time at which the last buffered write was done.
    buffered: Time,
    /// The flush that was sent last: tag and time of sending.
    flush: Option<(u32, Time)>,
}

impl<P: Positioning> Tracker<P> {
    /// Follows a drive that is at rest at sector 0.
    pub fn new(model: P) -> Tracker<P> {
        let platter = model.turn().map(Platter::new);
        let place = model.start(Extent::at(0, 1));
        Tracker {
            platter,
            twin: model.twin(),
            twin_is_near: true,
            in_drive: VecDeque::new(),
            known: 0,
            chained: 0,
            in_order: usize::MAX,
            place,
            free: Time::ZERO,
            lba: Lba::ZERO,
            op: None,
            ended: Time::ZERO,
            waits_until: Time::ZERO,
            buffered: Time::ZERO,
            flush: None,
            model,
        }
    }

    /// The phase of the platter, if the model has one.
    pub fn platter(&self) -> Option<&Platter> {
        self.platter.as_ref()
    }

    fn ahead(&self, now: Time) -> Nanos {
        self.platter
            .map_or(Nanos::ZERO, |platter| platter.ahead(now))
    }

    /// Converts a time of the host to the clock of the twin, and returns the conversion back. The clocks differ by half
    /// a turn at most. The conversion preserves the spans between commands.
    fn by_twin(&self, now: Time) -> (Time, impl Fn(Time) -> Time + use<P>) {
        let (ahead, turn) = (self.ahead(now), self.model.turn().unwrap_or_default());
        let behind = match ahead * 2 <= turn {
            true => Nanos::ZERO,
            false => turn,
        };
        let back = move |at: Time| (at + behind).saturating_sub(ahead);
        ((now + ahead).saturating_sub(behind), back)
    }

    /// Returns the head behind the first `count` commands in the drive, all of which are predicted, by a clock of the
    /// model that leads by `ahead`.
    fn behind(&self, count: usize, ahead: Nanos) -> HeadAfter<P::Place> {
        let last = count.checked_sub(1).map(|last| &self.in_drive[last]);
        match last.and_then(|last| Some((last.time?.head, last.ahead))) {
            Some((head, of)) => HeadAfter {
                free: (head.free + ahead).saturating_sub(of),
                ..head
            },
            None => HeadAfter {
                place: self.place,
                free: self.free + ahead,
            },
        }
    }

    /// Predicts the first `count` commands in the drive.
    ///
    /// If a command ends where it did in its earlier prediction, all commands behind it do too. This is the usual case.
    /// The place of a sector on the platter decides when a command ends, not the end of the preceding command.
    fn predict(&mut self, count: usize) {
        while self.known < count {
            let sent = self.in_drive[self.known];
            let ahead = self.ahead(sent.at.max(self.ended));
            let head = self.behind(self.known, ahead);
            let what = sent.what;
            let time = self
                .model
                .follow(&head, sent.at + ahead, what.extent, what.op)
                .buffered_unless(what.forced, &head);
            // A command leaves the arm at the place of its last sector.
            let before = sent.time.filter(|_| self.known < self.chained);
            let as_before = before.is_some_and(|before| before.head.free == time.head.free);
            let sent = &mut self.in_drive[self.known];
            (sent.time, sent.ahead) = (Some(time), ahead);
            self.known += 1;
            if as_before {
                for sent in self.in_drive.range_mut(self.known..self.chained) {
                    sent.ahead = ahead;
                }
                self.known = self.known.max(self.chained);
            }
            self.chained = self.chained.max(self.known);
        }
    }

    /// Notes that the head is not where the predictions of the commands in the drive assumed it.
    fn put_right(&mut self, now: Time) {
        self.ended = now;
        self.known = 0;
    }

    /// Notes the end of a write that waits in the drive's buffer.
    fn buffers(&mut self, now: Time, done: bool) {
        if done {
            self.buffered = now;
            let until = now.saturating_add(self.model.holds_writes());
            self.waits_until = self.waits_until.max(until);
        }
    }

    /// Notes the end of the last flush, if `tag` is that flush. Writes that ended before the flush was sent are then on
    /// the medium.
    fn flushed(&mut self, tag: u32, done: bool) {
        let Some((_, sent)) = self.flush.filter(|(last, _)| *last == tag) else {
            return;
        };
        self.flush = None;
        if done && self.buffered <= sent {
            self.waits_until = Time::ZERO;
        }
    }

    /// Returns true if the tracker may assume that the drive serves its commands in the order of sending.
    fn serves_in_order(&self) -> bool {
        let commands = self.in_drive.len();
        commands <= IN_ORDER || self.in_order >= commands
    }
}

impl<P: Positioning> fmt::Debug for Tracker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("platter", &self.platter)
            .field("in_drive", &self.in_drive.len())
            .field("lba", &self.lba)
            .field("op", &self.op)
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

impl<P: Positioning> Track for Tracker<P> {
    fn issued(&mut self, now: Time, tag: u32, what: TrackedCommand) {
        if what.op == Op::Flush {
            self.flush = Some((tag, now));
        }
        let (at, _) = self.by_twin(now);
        if let Some(twin) = &mut self.twin {
            twin.issued(at, tag, what);
        }
        if what.extent.is_empty() {
            return;
        }
        self.in_drive.push_back(Sent {
            tag,
            at: now,
            what,
            time: None,
            ahead: Nanos::ZERO,
        });
    }

    fn completed(&mut self, now: Time, tag: u32, done: bool) -> Option<Predicting> {
        let (at, back) = self.by_twin(now);
        let twin = self.twin.as_mut();
        let ending = twin.and_then(|twin| twin.ended(at, tag));
        let Some(index) = self.in_drive.iter().position(|sent| sent.tag == tag) else {
            self.flushed(tag, done);
            return None;
        };
        if index > 0 {
            // The drive uses another order. The head moves to this command from its current position.
            let mut sent = self.in_drive.remove(index).expect("it was found");
            sent.time = None;
            self.in_drive.push_front(sent);
            (self.known, self.chained, self.in_order) = (0, 0, 0);
        }
        self.in_order = self.in_order.saturating_add(usize::from(index == 0));
        self.predict(1);
        let sent = self.in_drive.pop_front().expect("it is there");
        let time = sent.time.expect("it is predicted");
        self.chained -= 1;
        if time.buffered.is_some() {
            self.buffers(now, done);
            self.put_right(now);
            return None;
        }
        if !time.on_medium {
            self.buffers(now, done);
            // The time at which the drive writes this data to the medium is unknown, and so is the position of the arm
            // then. The command's sectors are the best estimate.
            (self.place, self.free) = (time.head.place, now);
            (self.lba, self.op) = (sent.what.extent.end(), Some(sent.what.op));
            self.put_right(now);
            return None;
        }
        let begin = sent.at.max(self.ended);
        let expected = (time.done).saturating_sub(sent.ahead);
        let late = SignedNanos::between(expected, now).as_nanos();
        // Noise makes the twin diverge. The tracker then trusts the head alone.
        let by_twin = ending.map(|end| back(end.done));
        let late_by_twin = by_twin.map(|done| SignedNanos::between(done, now).as_nanos());
        let nearer = late_by_twin.filter(|by_twin| by_twin.abs() < late.abs());
        let believed = by_twin.filter(|_| self.twin_is_near).unwrap_or(expected);
        let predicted = believed.saturating_since(begin);
        self.twin_is_near = late_by_twin.is_none_or(|by_twin| by_twin.abs() <= late.abs());
        let observed = now - begin;
        let (mut hit, mut surprise) = (false, Surprise::None);
        let may_destage = begin < self.waits_until;
        if let Some(platter) = &mut self.platter {
            let (turns, rest) = platter.divide(late);
            // A read does not come from the medium in two cases: it is early and at another point of the turn, or it is
            // done before the arm can be there.
            let least = time.seek + time.transfer;
            let early = sent.what.op.is_read() && late < -platter.window(now);
            let as_expected = nearer.is_some_and(|late| late.abs() <= platter.window(now));
            hit = early && (!platter.fits(now, rest) || observed + READ_TOLERANCE < least)
                || as_expected && ending.is_some_and(|end| end.is_hit);
            let off = nearer.map_or(rest, |late| platter.divide(late).1);
            surprise = if hit {
                Surprise::Hit
            } else if !done || !platter.follow(now, off) || off != rest && !platter.fits(now, rest)
            {
                Surprise::Elsewhere
            } else {
                let count = turns.clamp(-100, 100) as i8;
                match turns {
                    0 => Surprise::None,
                    1.. if may_destage => Surprise::Destaging(count),
                    _ => Surprise::Turns(count),
                }
            };
        }
        if !hit {
            // Predicted time from the end on the medium to the answer.
            let told = time.done.saturating_since(time.head.free);
            let early = time.head.free.saturating_since(time.done);
            self.free = now.saturating_sub(told) + early;
            self.place = time.head.place;
            (self.lba, self.op) = (sent.what.extent.end(), Some(sent.what.op));
        }
        self.put_right(now);
        Some(Predicting {
            observed,
            predicted,
            surprise,
        })
    }

    fn head(&mut self, now: Time, staged: &mut dyn Iterator<Item = TrackedCommand>) -> HeadState {
        let ahead = self.ahead(now);
        let mut head = None;
        if self.serves_in_order() {
            self.predict(self.in_drive.len());
            head = Some(self.behind(self.in_drive.len(), ahead));
        }
        // The arm does not move for a write that ends in the drive's buffer.
        let moves = |sent: &&Sent<P::Place>| {
            head.is_none() || sent.time.is_none_or(|time| time.buffered.is_none())
        };
        let (mut lba, mut op) = match self.in_drive.iter().rev().find(moves) {
            Some(last) => (last.what.extent.end(), Some(last.what.op)),
            None => (self.lba, self.op),
        };
        let mut busy = !self.in_drive.is_empty();
        for next in staged.filter(|next| !next.extent.is_empty()) {
            busy = true;
            if let Some(head) = &mut head {
                let time = self
                    .model
                    .follow(head, now + ahead, next.extent, next.op)
                    .buffered_unless(next.forced, head);
                *head = time.head;
                if time.buffered.is_some() {
                    continue;
                }
            }
            (lba, op) = (next.extent.end(), Some(next.op));
        }
        let free = head.map(|head| head.free.saturating_sub(ahead));
        HeadState::tracked(lba, op, free, busy, ahead)
    }

    fn next_done(&mut self, now: Time) -> Option<Time> {
        if self.in_drive.is_empty() || !self.serves_in_order() {
            return None;
        }
        let ((at, back), tag) = (self.by_twin(now), self.in_drive[0].tag);
        let twin = self.twin.as_mut().filter(|_| self.twin_is_near);
        if let Some(end) = twin.and_then(|twin| twin.ends(at, tag)) {
            return Some(back(end.done));
        }
        self.predict(1);
        let first = &self.in_drive[0];
        first.time.map(|time| time.done.saturating_sub(first.ahead))
    }

    fn due(&mut self, now: Time) -> Option<Time> {
        let commands = self.in_drive.len();
        if commands == 0 || !self.serves_in_order() {
            return None;
        }
        self.predict(commands);
        let ahead = self.ahead(now);
        let free = self.behind(commands, ahead).free;
        Some(free.saturating_sub(ahead))
    }

    fn is_found(&self) -> bool {
        self.platter.is_some_and(|platter| platter.is_found())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Predicted;
    use alloc::sync::Arc;

    const TURN: u64 = 6_000_000;

    impl<P: Positioning + Clone> Tracker<P> {
        /// A copy without the twin.
        fn copy(&self) -> Tracker<P> {
            Tracker {
                model: self.model.clone(),
                platter: self.platter,
                twin: None,
                in_drive: self.in_drive.clone(),
                ..*self
            }
        }
    }

    /// A disk on a line. A seek takes a microsecond for each sector. Then the platter turns until its angle, in
    /// microseconds, is the address.
    #[derive(Clone, Copy)]
    struct Line;

    impl Positioning for Line {
        type Place = u64;

        fn start(&self, extent: Extent) -> u64 {
            extent.start.get()
        }

        fn end(&self, extent: Extent) -> u64 {
            extent.end().get()
        }

        fn turn(&self) -> Option<Nanos> {
            Some(Nanos::from_nanos(TURN))
        }

        fn predict(&self, now: Time, from: u64, to: u64, op: Op) -> Predicted {
            let seek = self.seek(from, to, op);
            let at = (now + seek).as_nanos() % TURN;
            let wait = (to * 1_000 % TURN + TURN - at) % TURN;
            Predicted {
                seek,
                rotation: Nanos::from_nanos(wait),
            }
        }

        fn seek(&self, from: u64, to: u64, _: Op) -> Nanos {
            Nanos::from_micros(from.abs_diff(to))
        }
    }

    fn micros(at: u64) -> Time {
        Time::from_nanos(at * 1_000)
    }

    fn command(op: Op, extent: Extent) -> TrackedCommand {
        TrackedCommand {
            op,
            extent,
            forced: false,
        }
    }

    fn read(tracker: &mut Tracker<Line>, now: u64, tag: u32, lba: u64) {
        tracker.issued(micros(now), tag, command(Op::Read, Extent::at(lba, 8)));
    }

    fn head(tracker: &mut Tracker<Line>, now: u64) -> HeadState {
        tracker.head(micros(now), &mut core::iter::empty())
    }

    #[test]
    fn a_command_begins_where_the_one_before_it_ends() {
        let mut tracker = Tracker::new(Line);
        read(&mut tracker, 0, 0, 1_000);
        assert_eq!(tracker.due(micros(0)), Some(micros(1_000)));
        // 500 more sectors to go, and the platter is there at 1,500.
        read(&mut tracker, 0, 1, 1_508);
        assert_eq!(head(&mut tracker, 0).due, Some(micros(1_508)));
        let staged = &mut [command(Op::Read, Extent::at(1_516, 8))].into_iter();
        let behind = tracker.head(micros(0), staged);
        assert_eq!((behind.lba.get(), behind.due), (1_524, Some(micros(1_516))));
        let first = tracker.completed(micros(1_000), 0, true).expect("known");
        assert_eq!((first.error(), first.surprise), (0, Surprise::None));
        let second = tracker.completed(micros(1_508), 1, true).expect("known");
        assert_eq!(second.observed, Nanos::from_micros(508));
        assert_eq!((second.error(), second.surprise), (0, Surprise::None));
        assert_eq!(head(&mut tracker, 2_000).free, Some(micros(1_508)));
        assert_eq!(tracker.due(micros(2_000)), None);
    }

    #[test]
    fn commands_at_the_end_of_the_longest_run_are_followed() {
        let mut tracker = Tracker::new(Line);
        let latest = Time::LATEST;
        read(&mut tracker, 0, 0, 1_000);
        let late = tracker.completed(latest, 0, true).expect("known");
        assert_eq!(late.error(), i64::MAX - 1_000_000);
        // The prediction for this command is after the last time that a run can have.
        tracker.issued(latest, 1, command(Op::Read, Extent::at(5_000, 8)));
        let soon = tracker.completed(latest, 1, true).expect("known");
        assert_eq!(soon.observed, Nanos::ZERO);
        assert!(soon.error() < -1_000_000, "{}", soon.error());
    }

    #[test]
    fn a_turn_more_costs_one_command_and_the_next_is_predicted_from_where_it_ended() {
        let mut tracker = Tracker::new(Line);
        read(&mut tracker, 0, 0, 1_000);
        read(&mut tracker, 0, 1, 1_508);
        let late = tracker.completed(micros(7_000), 0, true).expect("known");
        assert_eq!(
            (late.error(), late.surprise),
            (TURN as i64, Surprise::Turns(1))
        );
        let next = tracker.completed(micros(7_508), 1, true).expect("known");
        assert_eq!((next.error(), next.surprise), (0, Surprise::None));
    }

    #[test]
    fn a_hit_leaves_the_head_where_it_was() {
        let mut tracker = Tracker::new(Line);
        read(&mut tracker, 0, 0, 1_000);
        tracker.completed(micros(1_000), 0, true);
        read(&mut tracker, 1_100, 1, 5_000);
        let hit = tracker.completed(micros(1_250), 1, true).expect("known");
        assert_eq!(hit.surprise, Surprise::Hit);
        assert_eq!(head(&mut tracker, 2_000).lba.get(), 1_008);
        read(&mut tracker, 2_000, 2, 3_008);
        let next = tracker.completed(micros(9_008), 2, true).expect("known");
        assert_eq!((next.error(), next.surprise), (0, Surprise::None));
    }

    #[test]
    fn a_write_that_is_soon_done_is_no_hit_where_writes_end_on_the_medium() {
        let mut tracker = Tracker::new(Line);
        read(&mut tracker, 0, 0, 1_000);
        tracker.completed(micros(1_000), 0, true);
        tracker.issued(micros(1_100), 1, command(Op::Write, Extent::at(5_000, 8)));
        let soon = tracker.completed(micros(1_250), 1, true).expect("known");
        assert_eq!(soon.surprise, Surprise::Elsewhere);
        assert_eq!(head(&mut tracker, 2_000).lba.get(), 5_008);
    }

    #[test]
    fn a_drive_with_another_order_is_followed_from_what_it_served() {
        let mut tracker = Tracker::new(Line);
        read(&mut tracker, 0, 0, 5_000);
        read(&mut tracker, 0, 1, 1_000);
        let first = tracker.completed(micros(1_000), 1, true).expect("known");
        assert_eq!((first.error(), first.surprise), (0, Surprise::None));
        let second = tracker.completed(micros(5_000), 0, true).expect("known");
        assert_eq!((second.error(), second.surprise), (0, Surprise::None));
        assert_eq!(tracker.completed(micros(6_000), 7, true), None);
    }

    /// The same disk, but with a write buffer, which holds a write for a second at most.
    #[derive(Clone, Copy)]
    struct Buffered;

    impl Positioning for Buffered {
        type Place = u64;

        fn start(&self, extent: Extent) -> u64 {
            Line.start(extent)
        }

        fn end(&self, extent: Extent) -> u64 {
            Line.end(extent)
        }

        fn turn(&self) -> Option<Nanos> {
            Line.turn()
        }

        fn holds_writes(&self) -> Nanos {
            Nanos::from_millis(1_000)
        }

        fn predict(&self, now: Time, from: u64, to: u64, op: Op) -> Predicted {
            Line.predict(now, from, to, op)
        }

        fn seek(&self, from: u64, to: u64, op: Op) -> Nanos {
            Line.seek(from, to, op)
        }

        fn follow(
            &self,
            head: &HeadAfter<u64>,
            sent: Time,
            extent: Extent,
            op: Op,
        ) -> HeadTime<u64> {
            let on_medium = Line.follow(head, sent, extent, op);
            let buffered = (!op.is_read()).then(|| sent + Nanos::from_micros(100));
            HeadTime {
                on_medium: op.is_read(),
                buffered,
                ..on_medium
            }
        }
    }

    #[test]
    fn a_turn_more_is_put_down_to_destaging_while_a_write_may_wait_in_the_buffer() {
        // SharedCell, as programs share their models.
        let mut tracker = Tracker::new(Arc::new(Buffered));
        let mut now = 0;
        // Completes a read a turn late. The read is sent `after` microseconds after the last one.
        let mut late = |tracker: &mut Tracker<Arc<Buffered>>, after: u64| {
            now = (now + after).next_multiple_of(6_000);
            tracker.issued(micros(now), 0, command(Op::Read, Extent::at(1_000, 8)));
            let due = tracker.due(micros(now)).expect("it is in order").as_nanos() / 1_000;
            now = due + 6_000;
            let told = tracker.completed(micros(now), 0, true);
            (told.expect("known").surprise, now)
        };
        let write = |tracker: &mut Tracker<Arc<Buffered>>, now: u64, op| {
            let extent = Extent::at(0, if op == Op::Write { 8 } else { 0 });
            tracker.issued(micros(now), 1, command(op, extent));
        };
        let (alone, now) = late(&mut tracker, 0);
        assert_eq!(alone, Surprise::Turns(1));
        write(&mut tracker, now, Op::Write);
        assert_eq!(tracker.completed(micros(now + 100), 1, true), None);
        assert_eq!(late(&mut tracker, 200).0, Surprise::Destaging(1));
        assert_eq!(late(&mut tracker, 500_000).0, Surprise::Destaging(1));
        // The write has waited longer than the drive allows.
        let (after, now) = late(&mut tracker, 1_000_000);
        assert_eq!(after, Surprise::Turns(1));
        // A failed flush leaves the write in the buffer. So does a flush that was sent before the write ended.
        write(&mut tracker, now, Op::Write);
        tracker.completed(micros(now + 100), 1, true);
        write(&mut tracker, now + 200, Op::Flush);
        tracker.completed(micros(now + 300), 1, false);
        let (failed, now) = late(&mut tracker, 400);
        assert_eq!(failed, Surprise::Destaging(1));
        tracker.issued(micros(now), 2, command(Op::Write, Extent::at(0, 8)));
        write(&mut tracker, now + 10, Op::Flush);
        tracker.completed(micros(now + 100), 2, true);
        tracker.completed(micros(now + 200), 1, true);
        let (before, now) = late(&mut tracker, 400);
        assert_eq!(before, Surprise::Destaging(1));
        write(&mut tracker, now, Op::Flush);
        tracker.completed(micros(now + 100), 1, true);
        assert_eq!(late(&mut tracker, 200).0, Surprise::Turns(1));
    }

    #[test]
    fn a_flush_has_no_head_time() {
        let mut tracker = Tracker::new(Line);
        tracker.issued(micros(0), 0, command(Op::Flush, Extent::at(0, 0)));
        assert_eq!(tracker.completed(micros(900), 0, true), None);
        assert_eq!(tracker.due(micros(900)), None);
    }

    #[test]
    fn what_failed_tells_nothing_of_the_platter() {
        let mut tracker = Tracker::new(Line);
        for nth in 0..20 {
            read(&mut tracker, nth * 6_000, 0, 1_000);
            tracker.completed(micros(nth * 6_000 + 1_000), 0, true);
        }
        assert!(tracker.is_found());
        read(&mut tracker, 200_000, 0, 3_000);
        let failed = tracker.completed(micros(260_100), 0, false);
        assert_eq!(failed.expect("known").surprise, Surprise::Elsewhere);
        let now = micros(300_000);
        assert_eq!(
            tracker.platter().map(|platter| platter.ahead(now)),
            Some(Nanos::ZERO)
        );
    }

    /// The prediction for the commands in the drive depends neither on the time of the query nor on earlier
    /// predictions.
    #[test]
    fn the_head_is_the_same_whether_it_is_asked_for_at_each_step_or_once() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut asked, mut seldom) = (Tracker::new(Line), Tracker::new(Line));
        let (mut now, mut tag, mut in_drive) = (0, 0, VecDeque::new());
        let mut surprises = 0;
        for step in 0..20_000 {
            now += random(4_000);
            if in_drive.len() < 8 && random(2) == 0 {
                let lba = random(100_000);
                read(&mut asked, now, tag, lba);
                read(&mut seldom, now, tag, lba);
                in_drive.push_back(tag);
                tag += 1;
            } else if !in_drive.is_empty() {
                // Completes a command: mostly at its due time, sometimes a turn later, sometimes out of order.
                let (one, due) = match random(20) {
                    0 => (in_drive.len() - 1, now),
                    late => {
                        let mut first = seldom.copy();
                        first.predict(1);
                        let sent = first.in_drive[0];
                        let done = sent.time.expect("predicted").done + Nanos::from_nanos(TURN);
                        let done = done.saturating_sub(sent.ahead).as_nanos() / 1_000 - 6_000;
                        (0, done + if late == 1 { 6_000 } else { random(40) })
                    }
                };
                now = now.max(due);
                let done = in_drive.remove(one).expect("it is there");
                let one = asked.completed(micros(now), done, true);
                assert_eq!(one, seldom.completed(micros(now), done, true));
                surprises += u64::from(one.expect("known").surprise != Surprise::None);
            }
            let head = head(&mut asked, now);
            if step % 7 == 0 {
                assert_eq!(head, self::head(&mut seldom, now), "step {step}");
                let mut anew = asked.copy();
                anew.put_right(anew.ended);
                anew.chained = 0;
                anew.in_drive.iter_mut().for_each(|sent| sent.time = None);
                assert_eq!(head, self::head(&mut anew, now), "step {step}");
            }
        }
        assert!(surprises > 500, "{surprises}");
    }

    #[test]
    fn of_many_in_a_drive_with_its_own_order_nobody_knows_when_the_head_is_free() {
        let mut tracker = Tracker::new(Line);
        for tag in 0..4 {
            read(&mut tracker, 0, tag, 1_000 * u64::from(tag + 1));
        }
        assert!(tracker.due(micros(0)).is_some());
        tracker.completed(micros(1_000), 2, true);
        let unknown = head(&mut tracker, 1_000);
        assert_eq!((unknown.lba.get(), unknown.due), (4_008, None));
        assert_eq!((unknown.free, tracker.due(micros(1_000))), (None, None));
        // Two commands are assumed to be served in the order of sending.
        tracker.completed(micros(2_000), 0, true);
        assert!(head(&mut tracker, 2_000).due.is_some());
    }
}
