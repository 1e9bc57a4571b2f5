//! Estimate of clients' waits without a scan.

use super::latencies::Latencies;
use headtime_engine::Finished;
use headtime_sched::{Origin, Surprise};
use headtime_units::{Nanos, Time};

/// Number of places for origins; a power of two. Origins that share a place count as a client that does not wait for answers.
const ORIGINS: usize = 256;
/// Number of requests after which the shadow's time is brought near to real time again.
const REBASE_REQUESTS: u32 = 256;
/// Number of past idle times, of the drive without the scan, that are retained.
const IDLE_TIMES: usize = 32;
/// Number of requests over which the arm's time is averaged. The mean forgets half after 44 requests.
const MEAN_REQUESTS: f64 = 64.0;

/// Second queue beside the drive's, without the scan's reads outside of gaps.
///
/// Lindley's recursion: requests are served in the order in which they ended. Each request takes the time for which the arm worked. The
/// service begins when the request has arrived and the preceding request has ended. If a read of the scan delays a request, the delay is
/// missing here, also for later requests, until the drive would have been idle.
///
/// A client that waits for each answer would have asked earlier, by the lateness of the last answer. If no request waited in the meantime,
/// the time of asking makes no difference. Clients that never had two requests under way count as waiting for answers. A client without an
/// origin counts as not waiting.
///
/// Invariants: `from <= to` for each `(from, to)` of `idle`; `origins.len() = ORIGINS`; `since_rebase < REBASE_REQUESTS`.
pub(super) struct Shadow {
    /// Time until which the drive would have been busy.
    free: Time,
    /// Past idle times of the drive without the scan, in order of time. If the scan keeps two requests waiting, the later one may overtake
    /// the earlier. The earlier request would have been served in such an idle time.
    idle: [(Time, Time); IDLE_TIMES],
    /// End of the last command that was no gap read.
    before: Time,
    /// True if that command was the scan's.
    behind_scan: bool,
    /// Time at which the first gap read for the coming request was sent.
    picked: Option<Time>,
    /// Lateness of the gap reads for the coming request. The request is late by the same time, and would not be without the gap reads.
    picks_late: Nanos,
    /// Time of one turn of the platter.
    turn: Nanos,
    origins: Box<[ClientState]>,
    /// Number of clients' requests that have not ended. Then the time at which a request last arrived while there were none: clients that
    /// were answered before that time delay no other request.
    under_way: u64,
    quiet: Time,
    since_rebase: u32,
    /// Mean time of the arm for a request: after clients' requests, and after the scan's reads, which leave the arm farther away.
    usual: f64,
    usual_behind: f64,
    pub(super) with: Latencies,
    pub(super) without: Latencies,
}

/// Requests under way and lateness of a client.
#[derive(Clone, Copy, Default)]
struct ClientState {
    origin: Option<Origin>,
    under_way: u32,
    /// True if the client asks without waiting for answers.
    asks_on: bool,
    /// Lateness of the client's last answer compared with the shadow, and the time of that answer.
    late: Nanos,
    ended: Time,
    /// True if that answer was after the last rebase.
    recent: bool,
}

impl Shadow {
    /// Returns a shadow that has seen no requests, of a drive with turns of `turn`.
    pub(super) fn new(turn: Nanos) -> Shadow {
        Shadow {
            free: Time::ZERO,
            idle: [(Time::ZERO, Time::ZERO); IDLE_TIMES],
            before: Time::ZERO,
            behind_scan: false,
            picked: None,
            picks_late: Nanos::ZERO,
            turn,
            origins: vec![ClientState::default(); ORIGINS].into(),
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
        mean => mean + (value - mean) / MEAN_REQUESTS,
    };
}

impl Shadow {
    /// Returns the place of an origin; `None` for the default origin, which names no client.
    fn known(&mut self, origin: Origin) -> Option<&mut ClientState> {
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

    /// Notes a client's request that arrives.
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

    /// Notes the end of a client's request.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        let arrival = done.request.arrival;
        self.under_way = self.under_way.saturating_sub(1);
        let begun = done.issued.min(self.picked.take().unwrap_or(done.issued));
        let start = begun.max(self.before);
        // A scheduler may have kept the drive idle.
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
            // A hit of the drive's buffer says nothing of the arm.
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
        // Without the scan the request would not have ended later.
        let ended = self.serve(came.saturating_add(held), would).min(now);
        self.free = self.free.min(now);
        if let Some(known) = self.known(done.request.origin) {
            (known.late, known.recent) = (now.saturating_since(ended), true);
            known.ended = now;
        }
        self.with.add(now.saturating_since(arrival));
        self.without.add(ended.saturating_since(came));
        self.since_rebase += 1;
        if self.since_rebase == REBASE_REQUESTS {
            self.rebase();
        }
    }

    /// Returns the end of a request that arrives at `came` and keeps the arm for `takes`, without the scan.
    fn serve(&mut self, came: Time, takes: Nanos) -> Time {
        let Some(at) = self.idle.iter().position(|(_, to)| *to > came) else {
            let start = self.free.max(came);
            if start > self.free {
                self.idle.rotate_left(1);
                self.idle[IDLE_TIMES - 1] = (self.free, start);
            }
            self.free = start.saturating_add(takes);
            return self.free;
        };
        let (from, to) = self.idle[at];
        let start = from.max(came);
        let ended = start.saturating_add(takes);
        // If the request does not fit into the idle time, later requests are delayed by the rest, until the drive would have been idle
        // again.
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

    /// With clients that wait for answers, the shadow's time runs ahead more and more. Only differences count, so the shadow is brought
    /// back by the least lateness of these clients. For clients that do not wait, both times are the same.
    fn rebase(&mut self) {
        self.since_rebase = 0;
        let recent = |known: &&mut ClientState| known.recent && !known.asks_on;
        let late = self.origins.iter_mut().filter(recent);
        let least = late.map(|known| known.late).min().unwrap_or(Nanos::ZERO);
        for known in &mut self.origins {
            // A client without requests since the last rebase is no longer late.
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

    /// Notes the end of a gap read.
    pub(super) fn pick(&mut self, done: &Finished) {
        self.picked = Some(self.picked.map_or(done.issued, |at| at.min(done.issued)));
        if let Some(Surprise::Turns(turns) | Surprise::Destaging(turns)) = done.surprise {
            self.picks_late += self.turn * turns.max(0) as u64;
        }
    }

    /// Notes the end of another read of the scan. Returns the time for which the arm worked.
    pub(super) fn own(&mut self, now: Time, done: &Finished) -> Nanos {
        let took = now.saturating_since(done.issued.max(self.before));
        (self.before, self.behind_scan) = (self.before.max(now), true);
        took
    }
}
