//! The bus between buffer and host.
//!
//! The sectors of a read become available one after another as they leave the medium ([`Sending`]).
//! The bus sends them in order of address. A drive without sectors to send either holds the bus, or
//! releases it and requests it again when enough sectors have come (the high water mark).

use crate::layout::{Layout, Run};
use crate::mechanics::{Mechanics, Step, Walk};
use crate::profile::Spec;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// Sectors with consecutive addresses that become available at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Number of sectors, at least 1.
    count: u64,
    /// Time at which the first sector is in the buffer.
    first: Time,
    /// Time at which the last sector is in the buffer.
    last: Time,
}

impl Piece {
    /// Sectors available at `now`.
    fn available(&self, now: Time) -> u64 {
        if now >= self.last {
            self.count
        } else if now < self.first {
            0
        } else {
            let passed = (now - self.first).as_nanos();
            1 + passed * (self.count - 1) / (self.last - self.first).as_nanos()
        }
    }

    /// Time at which the first `count` sectors, at least 1, are available.
    fn when(&self, count: u64) -> Time {
        let span = (self.last - self.first).as_nanos();
        let steps = self.count - 1;
        match (count - 1).min(steps) {
            0 => self.first,
            wanted => self.first + Nanos::from_nanos((span * wanted).div_ceil(steps)),
        }
    }
}

/// Costs of sending the data of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// A sector over the bus.
    pub sector: Nanos,
    /// The bus is held while sectors are awaited.
    pub hold: bool,
    /// Giving up the bus.
    pub disconnect: Nanos,
    /// Getting the bus again, ready to send.
    pub reconnect: Nanos,
    /// Sectors to wait for before asking for the bus again; at least 1.
    pub water: u64,
}

impl Link {
    /// Costs of a read of `len` sectors by a drive that gives up the bus in `disconnect`.
    pub fn new(spec: &Spec, len: u64, disconnect: Nanos) -> Link {
        let (overhead, bus) = (&spec.overhead, &spec.bus);
        Link {
            sector: bus.sector(true),
            hold: bus.hold_for_read || bus.never_disconnect,
            disconnect,
            reconnect: overhead.first_reselect + overhead.data_preparation + bus.arbitration,
            water: spec.cache.read_water(len),
        }
    }
}

/// State of a read that begins to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The read has the bus and is ready to send at this time.
    Connected(Time),
    /// The read is off the bus from this time on.
    Disconnected(Time),
}

/// A read in progress: sectors enter the buffer from the medium, and leave over the bus in order of address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    link: Link,
    /// True if a drive on the bus stays there and sends each sector as soon as the buffer has the sector.
    flows: bool,
    total: u64,
    /// First sector that the buffer lacks, and the number of sectors in front.
    next: Lba,
    there: u64,
    /// Sectors that a zero-latency access has read ahead of their turn.
    early: Extent,
    sent: u64,
    /// End of the last transfer, or time since when the drive is off the bus.
    now: Time,
    off_bus: bool,
    /// Start of the time in which the bus is free.
    free: Time,
    begin: Option<Time>,
}

impl Sending {
    /// A read of `extent` whose first `ready` sectors are in the buffer. The bus is free from `free` on.
    #[inline(always)]
    pub fn new(link: Link, extent: Extent, ready: u64, start: Start, free: Time) -> Sending {
        let (now, off_bus) = match start {
            Start::Connected(at) => (at.max(free), false),
            Start::Disconnected(at) => (at, true),
        };
        let next = extent.start + Sectors::new(ready);
        let seamless = link.disconnect.is_zero() && link.reconnect.is_zero() && link.water <= 1;
        let mut sending = Sending {
            flows: link.hold || seamless,
            link,
            total: extent.len.get(),
            next,
            there: 0,
            early: Extent::new(next, Sectors::ZERO),
            sent: 0,
            now,
            off_bus,
            free,
            begin: (!off_bus).then_some(now),
        };
        if ready > 0 {
            sending.come(Piece {
                count: ready,
                first: Time::ZERO,
                last: Time::ZERO,
            });
        }
        sending
    }

    /// Notes that a step has passed under the head. Sectors that the buffer had before are not sent again.
    #[inline(always)]
    pub fn take(&mut self, step: &Step) {
        let run = step.extent();
        if run.start > self.next {
            // A zero-latency access reorders the sectors of one track at most, in runs of rising addresses.
            let start = match self.early.is_empty() {
                true => run.start,
                false => self.early.start,
            };
            self.early = Extent::new(start, self.early.len + run.len);
            return;
        }
        if run.end() <= self.next {
            return;
        }
        let skipped = (self.next - run.start).get() as u32;
        self.next = run.end();
        self.come(Piece {
            count: u64::from(step.run.len - skipped),
            first: step.sectors_end(skipped + 1),
            last: step.end(),
        });
        if !self.early.is_empty() && self.next == self.early.start {
            let count = self.early.len.get();
            self.next = self.early.end();
            self.early.len = Sectors::ZERO;
            self.come(Piece {
                count,
                first: step.end(),
                last: step.end(),
            });
        }
    }

    /// Adds the next sectors in order, and sends all that the water mark permits.
    #[inline(always)]
    fn come(&mut self, piece: Piece) {
        let (link, before) = (self.link, self.there);
        self.there += piece.count;
        loop {
            if self.off_bus {
                let enough = (self.sent + link.water).min(self.total);
                if enough > self.there {
                    return;
                }
                self.now = self.now.max(piece.when(enough - before)) + link.reconnect;
                self.off_bus = false;
                if self.begin.is_none() {
                    self.now = self.now.max(self.free);
                    self.begin = Some(self.now);
                }
                if self.flows {
                    self.now += link.sector * before;
                }
            }
            if self.flows {
                let all = link.sector * piece.count;
                let sent = (self.now + all).max(piece.first + all);
                self.now = sent.max(piece.last + link.sector);
                return;
            }
            let here = before + piece.available(self.now) - self.sent;
            if here > 0 {
                self.now += link.sector * here;
                self.sent += here;
                if self.sent == self.there {
                    return;
                }
            } else {
                self.now += link.disconnect;
                self.off_bus = true;
            }
        }
    }

    /// Times at which the drive first gets the bus and has sent the last sector, once all steps are noted.
    pub fn end(&self) -> (Time, Time) {
        debug_assert!(self.there == self.total && self.early.is_empty());
        (self.begin.unwrap_or(self.now), self.now)
    }
}

/// The data of a write as they come over the bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed {
    /// Time at which the first sector is in the buffer.
    pub first: Time,
    /// Time from each sector to the next.
    pub sector: Nanos,
    /// Sectors that must be there before the first is written; at least 1.
    pub lead: u64,
}

impl Feed {
    /// Time at which the first `count` sectors are in the buffer.
    fn when(&self, count: u64) -> Time {
        self.first + self.sector * count.saturating_sub(1)
    }
}

/// The steps of a write to the medium, in the order in which they happen. Each sector is written when it has come over the bus.
#[derive(Clone, Debug)]
pub(crate) struct Fed<'a> {
    mechanics: &'a Mechanics,
    layout: &'a Layout,
    extent: Extent,
    walk: Walk<'a>,
    late: Option<Feed>,
}

impl<'a> Fed<'a> {
    /// A write of `extent` for which the arm leaves track `from` at `begin`. Without a feed, or if the feed ends by `begin`,
    /// all data are in the buffer, and a zero-latency drive writes them in any order.
    pub fn new(
        mechanics: &'a Mechanics,
        layout: &'a Layout,
        from: Track,
        begin: Time,
        extent: Extent,
        feed: Option<Feed>,
    ) -> Fed<'a> {
        let count = extent.len.get();
        let late = feed.filter(|feed| feed.when(count.max(feed.lead)) > begin);
        let zero_latency = mechanics.zero_latency(Op::Write) && late.is_none();
        Fed {
            walk: mechanics.walk(layout, from, begin, extent, Op::Write, zero_latency),
            mechanics,
            layout,
            extent,
            late,
        }
    }

    /// Sets the first run, if known, and the error of the first movement in nanoseconds.
    pub fn with_first(mut self, first: Run, error: i64) -> Fed<'a> {
        self.walk = self.walk.with_first(Some(first)).with_seek_error(error);
        self
    }
}

impl Iterator for Fed<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let mut step = self.walk.next()?;
        let Some(feed) = &self.late else {
            return Some(step);
        };
        let turn = self.mechanics.turn();
        let done = (step.run.start - self.extent.start).get();
        let needed = feed.when((done + 1).max(feed.lead.min(self.extent.len.get())));
        // A sector whose data are late waits for whole turns.
        let late = needed.saturating_since(step.transfer_begin());
        step.rotation += turn * late.as_nanos().div_ceil(turn.as_nanos());
        let count = in_time(&step, done, feed);
        step.transfer = step.sectors_end(count) - step.transfer_begin();
        step.run = step.run.truncated(count.into());
        let next = step.run.end();
        let rest = Extent::new(next, self.extent.end() - next);
        let (track, now) = (step.run.track, step.end());
        self.walk = (self.mechanics).walk(self.layout, track, now, rest, Op::Write, false);
        Some(step)
    }
}

/// Number of sectors of `step` whose data arrive before the head does, at least 1. `done` sectors were written before.
fn in_time(step: &Step, done: u64, feed: &Feed) -> u32 {
    let (len, due) = (step.run.len, step.transfer_begin());
    if feed.when(done + u64::from(len)) <= due || len == 1 {
        return len;
    }
    let slot = step.transfer.as_nanos() / u64::from(len);
    let behind = feed.sector.as_nanos().saturating_sub(slot);
    if behind == 0 {
        return len;
    }
    let lead = due.saturating_since(feed.when(done + 1)).as_nanos();
    (lead / behind + 1).min(u64::from(len)) as u32
}

/// Times at which the bus is taken.
///
/// Transfers of the command that has the arm are planned ahead. Short transfers of other commands
/// fill the gaps where they fit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bus {
    /// End of the short transfers before the planned transfer.
    gap: Time,
    /// The planned transfer.
    begin: Time,
    end: Time,
}

impl Bus {
    /// Time from which a transfer can be planned.
    pub fn free(&self) -> Time {
        self.gap.max(self.end)
    }

    /// Plans a transfer, behind all others.
    pub fn plan(&mut self, begin: Time, end: Time) {
        self.gap = self.free();
        self.begin = begin;
        self.end = end;
    }

    /// Puts in a short transfer at `at` or later. Returns its beginning.
    pub fn squeeze(&mut self, at: Time, length: Nanos) -> Time {
        let early = at.max(self.gap);
        if early + length <= self.begin {
            self.gap = early + length;
            return early;
        }
        let late = at.max(self.free());
        self.gap = late + length;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    const SLOW: Link = Link {
        sector: Nanos::from_nanos(100),
        hold: true,
        disconnect: Nanos::ZERO,
        reconnect: Nanos::from_nanos(30),
        water: 1,
    };

    /// Begin and end of a read of `total` sectors on the bus. The buffer has `ready` sectors, and `pieces` follow.
    fn send(link: &Link, pieces: &[Piece], ready: u64, total: u64, start: Start) -> (Time, Time) {
        let mut sending = Sending::new(*link, Extent::at(0, total), ready, start, Time::ZERO);
        pieces.iter().for_each(|piece| sending.come(*piece));
        sending.end()
    }

    /// Eight sectors, 20 apart, the first at 1000.
    const MEDIA: [Piece; 1] = [Piece {
        count: 8,
        first: Time::from_nanos(1000),
        last: Time::from_nanos(1140),
    }];

    #[test]
    fn a_slow_bus_starts_with_the_first_sector() {
        let start = Start::Disconnected(at(0));
        assert_eq!(send(&SLOW, &MEDIA, 0, 8, start), (at(1030), at(1830)));
    }

    #[test]
    fn a_fast_bus_ends_with_the_last_sector() {
        let fast = Link {
            sector: Nanos::from_nanos(5),
            reconnect: Nanos::ZERO,
            ..SLOW
        };
        let start = Start::Disconnected(at(0));
        assert_eq!(send(&fast, &MEDIA, 0, 8, start), (at(1000), at(1145)));
        // To give up the bus costs nothing, so the result is the same.
        let loose = Link {
            hold: false,
            ..fast
        };
        assert_eq!(send(&loose, &MEDIA, 0, 8, start), (at(1000), at(1145)));
    }

    #[test]
    fn a_drive_that_runs_dry_disconnects() {
        let link = Link {
            sector: Nanos::from_nanos(5),
            hold: false,
            disconnect: Nanos::from_nanos(10),
            reconnect: Nanos::from_nanos(10),
            water: 4,
        };
        // Four sectors are there at 1060. The drive connects at 1070 and has sent four at 1090. A fifth is there since
        // 1080 and is sent at 1095. The drive is off the bus at 1105. The rest (less than the mark) is there at 1140.
        // The drive connects at 1150 and sends three.
        let start = Start::Disconnected(at(0));
        assert_eq!(send(&link, &MEDIA, 0, 8, start), (at(1070), at(1165)));
    }

    #[test]
    fn a_partial_hit_sends_what_it_has() {
        let link = Link {
            hold: false,
            ..SLOW
        };
        // Two at once, sent at 700; off; sectors from 1000 on.
        let start = Start::Connected(at(500));
        assert_eq!(send(&link, &MEDIA, 2, 10, start), (at(500), at(1830)));
    }

    /// A read in a hundred thousand pieces, with half a million disconnections from the bus.
    #[test]
    fn a_long_read_is_sent_in_pieces_without_going_over_all_of_them_for_each() {
        let pieces: Vec<Piece> = (0..100_000)
            .map(|piece| Piece {
                count: 5,
                first: at(1_000 * piece + 200),
                last: at(1_000 * (piece + 1)),
            })
            .collect();
        let link = Link {
            sector: Nanos::from_nanos(5),
            hold: false,
            disconnect: Nanos::from_nanos(10),
            reconnect: Nanos::from_nanos(10),
            water: 1,
        };
        let start = Start::Disconnected(at(0));
        // Each sector is sent 10 after it has come, in 5.
        assert_eq!(
            send(&link, &pieces, 0, 500_000, start),
            (at(210), at(100_000_015))
        );
    }

    #[test]
    fn short_transfers_go_before_a_planned_one_if_they_fit() {
        let mut bus = Bus::default();
        bus.plan(at(1000), at(2000));
        assert_eq!(bus.squeeze(at(100), Nanos::from_nanos(500)), at(100));
        assert_eq!(bus.squeeze(at(100), Nanos::from_nanos(500)), at(2000));
        assert_eq!(bus.free(), at(2500));
    }
}
