//! Learns by trying whether it pays to wait for streams.
//!
//! The waits alone do not tell what waiting costs and gains. If the disk leaves a reader, that reader's
//! next window grows meanwhile and saves a seek. If the disk stays, the others' windows grow. So a trial
//! does both in turn and keeps the one that serves more sectors in the same time. The other is tried again
//! from time to time: the more it loses, the more rarely.
//!
//! A trial goes on until the two differ by more than chance explains, in turns that grow. It judges chance by
//! how rounds of one kind differ among themselves. A round ends when what was queued at its beginning has
//! been served, so that each round has something of everybody.
//!
//! Time counts while anything is queued or in the drive. Of a time in which nobody asks for anything, only
//! the beginning counts: readers that all think at once have been kept waiting before.

use headtime_units::{Nanos, Sectors, Time};

/// Of a while in which nobody asks for anything, so much counts.
const IDLE_MOST: Nanos = Nanos::from_millis(10);
/// A round is at least so long, and ends after so long whatever of it is still queued.
const ROUND_LEAST: Nanos = Nanos::from_millis(50);
const ROUND_MOST: Nanos = Nanos::from_millis(500);
/// Nothing is compared that was measured for less.
const TURN: Nanos = Nanos::from_millis(300);
/// What is measured for longer fades; if by then no difference is clear, any is.
const MEMORY: Nanos = Nanos::from_secs(4);
/// The first turn of a trial is its last if after so long it does less than so many percent of what is kept.
/// Of waits the first does not count: they pay only where the disk stays for a while.
const HOPELESS: [(Nanos, u64); 2] = [(Nanos::from_millis(80), 35), (Nanos::from_millis(200), 60)];
/// A difference is clear from so many times its standard error on, squared.
const CLEAR: u128 = 12;
/// Trials may cost one part of so many of what is served, and take one of so many of the time.
const COST_PARTS: u64 = 150;
const TIME_PARTS: u64 = 20;
/// If what is kept does less than what the other did, by so many percent, it is time for a trial.
const FELL: u64 = 115;
/// If it does so many percent of what it did when it was settled, or the other way round, that no longer
/// holds; of which nothing is said before so long.
const CHANGED: u64 = 133;
const SINCE: Nanos = Nanos::from_secs(1);
/// Waiting for less than one part of so many of the time costs nothing to speak of.
const WAITING_PARTS: u64 = 50;
/// Of waiting nothing is known before the disk has waited for so long.
const WAITED: Nanos = Nanos::from_millis(40);

/// What was served, in what time.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    sectors: u64,
    nanos: u64,
    /// Of that time, while something was queued and the disk was held for something else.
    waiting: u64,
    /// Of how many rounds, and the sums of their rates (sectors per second) and of the squares of those.
    rounds: u64,
    rates: u64,
    squares: u128,
}

impl Span {
    fn add(&mut self, round: &Span) {
        self.sectors += round.sectors;
        self.nanos += round.nanos;
        self.waiting += round.waiting;
        let rate = u128::from(round.sectors) * 1_000_000_000 / u128::from(round.nanos.max(1));
        let rate = rate.min(u128::from(u32::MAX)) as u64;
        self.rounds += 1;
        self.rates += rate;
        self.squares += u128::from(rate) * u128::from(rate);
    }

    fn halve(&mut self) {
        self.sectors /= 2;
        self.nanos /= 2;
        self.waiting /= 2;
        self.rounds /= 2;
        self.rates /= 2;
        self.squares /= 2;
    }

    fn lasts(&self, time: Nanos) -> bool {
        self.nanos >= time.as_nanos()
    }

    /// Returns true if the disk has waited long enough to tell what waiting does.
    fn waited(&self) -> bool {
        self.waiting >= WAITED.as_nanos() && self.waiting >= self.nanos / WAITING_PARTS
    }

    /// Returns true if it served more than `percent` percent of what the other served in the same time.
    fn beats(&self, other: &Span, percent: u64) -> bool {
        let rate = |span: &Span, time: &Span| u128::from(span.sectors) * u128::from(time.nanos);
        rate(self, other) * 100 > rate(other, self) * u128::from(percent)
    }

    /// Returns true if the rates of the two differ by more than chance explains.
    fn differs(&self, other: &Span) -> bool {
        const LEAST: u64 = 4;
        if self.rounds.min(other.rounds) < LEAST {
            return false;
        }
        let mean = |span: &Span| span.rates / span.rounds;
        // The variance of the mean.
        let doubt = |span: &Span| {
            let rounds = u128::from(span.rounds);
            let even = u128::from(span.rates) * u128::from(span.rates) / rounds;
            span.squares.saturating_sub(even) / (rounds * (rounds - 1))
        };
        let difference = u128::from(mean(self).abs_diff(mean(other)));
        difference * difference > CLEAR * (doubt(self) + doubt(other))
    }

    /// Returns how much of a time is lost by going on like this rather than like the other.
    fn lost(&self, time: u64, other: &Span) -> u64 {
        if !other.beats(self, 100) {
            return 0;
        }
        let needed = u128::from(self.sectors) * u128::from(other.nanos) * u128::from(time)
            / (u128::from(other.sectors) * u128::from(self.nanos.max(1)));
        time.saturating_sub(u64::try_from(needed).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What is kept goes on, and is measured.
    Kept,
    /// It goes on again: first what was queued under the other is served.
    Returned,
    /// The other is tried: first what was queued before is served.
    Begun,
    /// The other is measured.
    Tried,
}

/// Which of the two is in force, and what is known of both.
#[derive(Clone, Debug)]
pub struct Trials {
    waits: bool,
    phase: Phase,
    now: Time,
    queued: u64,
    in_drive: u64,
    /// True if the disk is held for what has not come.
    holds: bool,
    /// Requests that have come so far.
    turns: u64,
    /// Those up to this turn were there when the round began, and so many of them are still queued.
    first: u64,
    left: u64,
    round: Span,
    /// This trial, and how much of it is to be measured.
    trial: Span,
    length: u64,
    /// Of the one that is kept, lately; of the other, in all turns of this or the last trial.
    kept: Span,
    other: Span,
    /// True if it is settled which is kept. Then the next trial begins anew.
    settled: bool,
    judged: Span,
    /// Time until the next trial.
    pause: u64,
}

impl Default for Trials {
    fn default() -> Trials {
        Trials::new()
    }
}

impl Trials {
    /// Begins with waiting.
    pub fn new() -> Trials {
        Trials {
            waits: true,
            phase: Phase::Kept,
            now: Time::ZERO,
            queued: 0,
            in_drive: 0,
            holds: false,
            turns: 0,
            first: 0,
            left: 0,
            round: Span::default(),
            trial: Span::default(),
            length: TURN.as_nanos(),
            kept: Span::default(),
            other: Span::default(),
            settled: true,
            judged: Span::default(),
            pause: 0,
        }
    }

    /// Returns true if streams are waited for now.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// A request comes. Returns its turn.
    pub fn arrived(&mut self, now: Time) -> u64 {
        self.pass(now);
        self.turns += 1;
        self.queued += 1;
        self.turns
    }

    /// The disk is held for a request that has not come.
    pub fn held(&mut self, now: Time) {
        self.pass(now);
        self.holds = true;
    }

    /// A request goes to the drive.
    pub fn handed_out(&mut self, now: Time, turn: u64) {
        self.pass(now);
        self.in_drive += 1;
        self.holds = false;
        self.left_queue(turn);
    }

    /// A request is no longer queued and does not go to the drive from here.
    pub fn withdrawn(&mut self, turn: u64) {
        self.left_queue(turn);
    }

    /// Nothing is queued any more.
    pub fn cleared(&mut self) {
        self.queued = 0;
        self.left = 0;
        self.holds = false;
    }

    /// A request that went to the drive is over.
    pub fn completed(&mut self, now: Time, sectors: Sectors) {
        self.pass(now);
        self.in_drive = self.in_drive.saturating_sub(1);
        self.round.sectors += sectors.get();
        let served = self.left == 0 && self.round.lasts(ROUND_LEAST);
        if served || self.round.lasts(ROUND_MOST) {
            self.end_round();
        } else if matches!(self.phase, Phase::Begun | Phase::Tried) && !self.other.lasts(TURN) {
            let mut trial = self.trial;
            trial.add(&self.round);
            let hopeless = |(time, percent): &(Nanos, u64)| {
                trial.lasts(*time) && !trial.beats(&self.kept, *percent)
            };
            if HOPELESS[usize::from(self.waits)..].iter().any(hopeless) {
                self.trial = trial;
                self.other = trial;
                self.give_up();
            }
        }
    }

    fn pass(&mut self, now: Time) {
        let passed = now.saturating_since(self.now).as_nanos();
        self.now = self.now.max(now);
        self.round.nanos += match (self.in_drive, self.queued) {
            (0, 0) => passed.min(IDLE_MOST.as_nanos()),
            _ => passed,
        };
        if self.queued > 0 && (self.holds || self.in_drive == 0) {
            self.round.waiting += passed;
        }
    }

    fn left_queue(&mut self, turn: u64) {
        self.queued = self.queued.saturating_sub(1);
        self.left = self.left.saturating_sub(u64::from(turn <= self.first));
    }

    /// Ends a round: what was queued when it began has been served.
    fn end_round(&mut self) {
        let round = self.round;
        match self.phase {
            Phase::Returned => self.begin(Phase::Kept),
            Phase::Kept => {
                if self.waits && self.kept.waiting == 0 {
                    // No stream has been waited for so far.
                    self.kept = Span::default();
                } else if self.kept.lasts(MEMORY) {
                    self.kept.halve();
                }
                self.kept.add(&round);
                self.pause = self.pause.saturating_sub(round.nanos);
                if self.is_due() {
                    self.try_other();
                } else {
                    self.begin(Phase::Kept);
                }
            }
            Phase::Begun => {
                self.trial.add(&round);
                self.begin(Phase::Tried);
            }
            Phase::Tried => {
                self.trial.add(&round);
                if self.other.lasts(MEMORY) {
                    self.other.halve();
                }
                self.other.add(&round);
                self.length = self.length.saturating_sub(round.nanos);
                if self.length == 0 {
                    self.judge();
                } else {
                    self.begin(Phase::Tried);
                }
            }
        }
    }

    /// Returns true if it is time to try the other.
    fn is_due(&self) -> bool {
        let worth = !self.waits || self.kept.waited();
        let fell = self.other.beats(&self.kept, FELL) && self.other.differs(&self.kept);
        let differs = |a: &Span, b: &Span| a.beats(b, CHANGED) && a.differs(b);
        let changed = self.settled
            && self.kept.lasts(SINCE)
            && (differs(&self.judged, &self.kept) || differs(&self.kept, &self.judged));
        worth && (self.pause == 0 || fell || changed) && self.kept.lasts(TURN)
    }

    fn try_other(&mut self) {
        if self.settled {
            self.other = Span::default();
            if self.kept.lasts(MEMORY) {
                self.kept.halve();
            }
        }
        self.settled = false;
        self.waits = !self.waits;
        self.trial = Span::default();
        // As long again as it has been measured.
        self.length = self.other.nanos.max(TURN.as_nanos());
        self.begin(Phase::Begun);
    }

    /// The other has been measured for a turn.
    fn judge(&mut self) {
        let long = self.other.lasts(Nanos::from_nanos(MEMORY.as_nanos() / 2));
        if self.waits && !self.other.waited() {
            // What makes no difference may as well go on, until it does.
            match long {
                true => self.change(),
                false => {
                    self.length = TURN.as_nanos();
                    self.begin(Phase::Tried);
                }
            }
        } else if !long && !self.other.differs(&self.kept) {
            // What is kept gets as long a turn.
            self.pause = self.trial.nanos;
            self.go_back();
        } else if self.other.beats(&self.kept, 100) {
            self.change();
        } else {
            self.give_up();
        }
    }

    /// The other is kept from now on.
    fn change(&mut self) {
        core::mem::swap(&mut self.kept, &mut self.other);
        self.settle(self.other.lost(self.trial.nanos, &self.kept));
        // A trial may profit from what was left over.
        self.kept = Span::default();
        self.begin(Phase::Kept);
    }

    fn give_up(&mut self) {
        self.settle(self.trial.lost(self.trial.nanos, &self.kept));
        self.go_back();
    }

    /// No trial for a while, if one costs so much.
    fn settle(&mut self, lost: u64) {
        self.settled = true;
        self.judged = self.kept;
        let lost = lost.saturating_mul(COST_PARTS);
        self.pause = lost.max(self.trial.nanos.saturating_mul(TIME_PARTS));
    }

    fn go_back(&mut self) {
        self.waits = !self.waits;
        self.begin(Phase::Returned);
    }

    fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.round = Span::default();
        self.first = self.turns;
        self.left = self.queued;
    }
}

#[cfg(test)]
mod tests;
