//! What clients would have waited for without a scan.

use super::latencies::Latencies;
use headtime_engine::Finished;
use headtime_sched::{Origin, Surprise};
use headtime_units::{Nanos, Time};

/// Origins that are told apart; a power of two. More share their places, and count as clients that ask whatever the disk does.
const ORIGINS: usize = 256;
/// After so many requests the shadow is brought near to real time again.
const REBASE: u32 = 256;
/// So many of the last times in which the drive would have been idle are known.
const IDLE: usize = 32;
/// A mean of how long requests take forgets half after 44 of them.
const FORGETS: f64 = 64.0;

/// A second queue beside the drive's, without the reads of a scan that are in nobody's gap.
///
/// Lindley's recursion: the requests in the order in which they ended, each for as long as the arm worked for it, begin when they have come
/// and the one before has ended. A delay by a read of the scan is missing here, for those behind it too, until the drive would have been idle.
///
/// A client that waits for each answer would have asked earlier by as much as the last one was late, unless nobody waited for anything
/// meanwhile: then it does not matter when it asks. As such counts who never had two requests
/// under way; whoever is not known by an origin counts as asking whatever the disk does.
pub(super) struct Shadow {
    /// Until when the drive would have been busy.
    free: Time,
    /// When it would have been idle before, from when to when, in order of time. Who was overtaken by others that came later, since the scan had kept
    /// both waiting, would have been served then.
    idle: [(Time, Time); IDLE],
    /// When the last command ended that was no pick.
    before: Time,
    /// Whether that was the scan's.
    behind_scan: bool,
    /// When the first pick in the gap of the request to come was sent.
    picked: Option<Time>,
    /// Time by which gap reads before the request to come were late. The request comes as much later, and would not without them.
    picks_late: Nanos,
    /// A turn of the platter.
    turn: Nanos,
    origins: Box<[Known]>,
    /// Clients' requests that have not ended, and when one last came while there were none: who asks after that is late for nobody.
    under_way: u64,
    quiet: Time,
    since_rebase: u32,
    /// How long the arm works for a request: behind others' requests, and behind reads of the scan, from where it is farther.
    usual: f64,
    usual_behind: f64,
    pub(super) with: Latencies,
    pub(super) without: Latencies,
}

/// A client.
#[derive(Clone, Copy, Default)]
struct Known {
    origin: Option<Origin>,
    under_way: u32,
    /// It asks though it has not been answered.
    asks_on: bool,
    /// By how much later than in the shadow its last request ended, and when.
    late: Nanos,
    ended: Time,
    /// Whether that was since the last rebase.
    recent: bool,
}

impl Shadow {
    /// A shadow that has seen nothing, of a drive with turns of `turn`.
    pub(super) fn new(turn: Nanos) -> Shadow {
        Shadow {
            free: Time::ZERO,
            idle: [(Time::ZERO, Time::ZERO); IDLE],
            before: Time::ZERO,
            behind_scan: false,
            picked: None,
            picks_late: Nanos::ZERO,
            turn,
            origins: vec![Known::default(); ORIGINS].into(),
            under_way: 0,
            quiet: Time::ZERO,
            since_rebase: 0,
            usual: 0.0,
            usual_behind: 0.0,
            with: Latencies::default(),
            without: Latencies::default(),
        }
    }
}

/// Moves a mean towards a value.
fn note(mean: &mut f64, value: Nanos) {
    let value = value.as_nanos() as f64;
    *mean = match *mean {
        0.0 => value,
        mean => mean + (value - mean) / FORGETS,
    };
}

impl Shadow {
    /// The place of an origin, if it is somebody's.
    fn known(&mut self, origin: Origin) -> Option<&mut Known> {
        if origin == Origin::default() {
            return None;
        }
        let mixed = u64::from(origin.process) << 32
            | u64::from(origin.program) << 16
            | u64::from(origin.export);
        let place = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let known = &mut self.origins[place as usize % ORIGINS];
        match known.origin {
            None => known.origin = Some(origin),
            Some(other) => known.asks_on |= other != origin,
        }
        Some(known)
    }

    /// A client asks for something.
    pub(super) fn arrives(&mut self, now: Time, origin: Origin) {
        if self.under_way == 0 {
            self.quiet = now;
        }
        self.under_way += 1;
        let quiet = self.quiet;
        if let Some(known) = self.known(origin) {
            known.asks_on |= known.under_way > 0;
            if quiet >= known.ended {
                known.late = Nanos::ZERO;
            }
            known.under_way += 1;
        }
    }

    /// A client's request has ended.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        let arrival = done.request.arrival;
        self.under_way = self.under_way.saturating_sub(1);
        let begun = done.issued.min(self.picked.take().unwrap_or(done.issued));
        let start = begun.max(self.before);
        // A scheduler may have held the drive.
        let held = begun.saturating_since(arrival.max(self.before));
        let took = now.saturating_since(start);
        let took = took.saturating_sub(std::mem::take(&mut self.picks_late));
        let mut would = took;
        match self.behind_scan && !took.is_zero() {
            true => {
                note(&mut self.usual_behind, took);
                let share = (self.usual / self.usual_behind).clamp(0.0, 1.0);
                if self.usual > 0.0 {
                    would = Nanos::from_nanos((took.as_nanos() as f64 * share) as u64);
                }
            }
            // What the buffer serves meanwhile says nothing of the arm.
            false if took.is_zero() => {}
            false => note(&mut self.usual, took),
        }
        (self.before, self.behind_scan) = (self.before.max(now), false);
        let known = self.known(done.request.origin);
        let waits = known.as_ref().is_some_and(|known| !known.asks_on);
        let late = known.as_ref().map_or(Nanos::ZERO, |known| known.late);
        let came = match waits {
            true => arrival.saturating_sub(late),
            false => arrival,
        };
        if let Some(known) = known {
            known.under_way = known.under_way.saturating_sub(1);
        }
        // It would not have ended later.
        let ended = self.serve(came.saturating_add(held), would).min(now);
        self.free = self.free.min(now);
        if let Some(known) = self.known(done.request.origin) {
            (known.late, known.recent) = (now.saturating_since(ended), true);
            known.ended = now;
        }
        self.with.add(now.saturating_since(arrival));
        self.without.add(ended.saturating_since(came));
        self.since_rebase += 1;
        if self.since_rebase == REBASE {
            self.rebase();
        }
    }

    /// When a request would have ended that comes and takes so long.
    fn serve(&mut self, came: Time, takes: Nanos) -> Time {
        let Some(at) = self.idle.iter().position(|(_, to)| *to > came) else {
            let start = self.free.max(came);
            if start > self.free {
                self.idle.rotate_left(1);
                self.idle[IDLE - 1] = (self.free, start);
            }
            self.free = start.saturating_add(takes);
            return self.free;
        };
        let (from, to) = self.idle[at];
        let start = from.max(came);
        let ended = start.saturating_add(takes);
        // Who would have come then is later by what does not fit, until the drive would have been idle again.
        let mut over = ended.saturating_since(to);
        self.idle[at] =
            match ended < to && to.saturating_since(ended) > start.saturating_since(from) {
                true => (ended, to),
                false => (from, start),
            };
        for (from, to) in &mut self.idle[at + 1..] {
            let part = over.min(to.saturating_since(*from));
            *from = from.saturating_add(part);
            over = over.saturating_sub(part);
        }
        self.free = self.free.saturating_add(over);
        ended
    }

    /// Behind clients that wait the shadow's time runs ahead, ever more. Only differences count, so it is brought back by as much as all of them are
    /// late; for those who ask whatever the disk does, the two times are one.
    fn rebase(&mut self) {
        self.since_rebase = 0;
        let recent = |known: &&mut Known| known.recent && !known.asks_on;
        let late = self.origins.iter_mut().filter(recent);
        let least = late.map(|known| known.late).min().unwrap_or(Nanos::ZERO);
        for known in &mut self.origins {
            // Who has asked for nothing since then has nothing to do with it any more.
            known.late = match known.recent || known.under_way > 0 {
                true => known.late.saturating_sub(least),
                false => Nanos::ZERO,
            };
            known.recent = false;
        }
        self.free = self.free.saturating_add(least).min(self.before);
        for (from, to) in &mut self.idle {
            *from = from.saturating_add(least);
            *to = to.saturating_add(least);
        }
    }

    /// A pick in a gap has ended.
    pub(super) fn pick(&mut self, done: &Finished) {
        self.picked = Some(self.picked.map_or(done.issued, |at| at.min(done.issued)));
        if let Some(Surprise::Turns(turns) | Surprise::Destaging(turns)) = done.surprise {
            self.picks_late += self.turn * turns.max(0) as u64;
        }
    }

    /// Another read of the scan has ended. Returns for how long the arm worked for it.
    pub(super) fn own(&mut self, now: Time, done: &Finished) -> Nanos {
        let took = now.saturating_since(done.issued.max(self.before));
        (self.before, self.behind_scan) = (self.before.max(now), true);
        took
    }
}
