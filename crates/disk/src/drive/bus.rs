//! The bus between buffer and host.
//!
//! The sectors of a read become available one after another as they leave the medium ([`Piece`]).
//! The bus sends them in order of address. A drive without sectors to send either holds the bus, or
//! releases it and requests it again when enough sectors have come (the high water mark).

use headtime_units::{Nanos, Time};

/// Sectors with consecutive addresses that become available at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// How many; at least 1.
    pub count: u64,
    /// When the first is in the buffer.
    pub first: Time,
    /// When the last is.
    pub last: Time,
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

    /// When the first `count` sectors, at least 1, are available.
    fn when(&self, count: u64) -> Time {
        let span = (self.last - self.first).as_nanos();
        let steps = self.count - 1;
        match (count - 1).min(steps) {
            0 => self.first,
            wanted => self.first + Nanos::from_nanos((span * wanted).div_ceil(steps)),
        }
    }
}

/// The sectors of a read, as they come into the buffer.
#[derive(Clone, Copy, Debug)]
struct Arriving<'a> {
    /// That many are there before the first of these.
    there: u64,
    pieces: &'a [Piece],
}

impl Arriving<'_> {
    /// When the first `count` sectors are there.
    fn when(&self, count: u64) -> Time {
        let mut left = count.saturating_sub(self.there);
        if left == 0 {
            return Time::ZERO;
        }
        for piece in self.pieces {
            if left <= piece.count {
                return piece.when(left);
            }
            left -= piece.count;
        }
        unreachable!("more sectors sent than read")
    }

    /// How many sectors are there at `now`.
    fn available(&self, now: Time) -> u64 {
        let mut sum = self.there;
        for piece in self.pieces {
            let here = piece.available(now);
            sum += here;
            if here < piece.count {
                break;
            }
        }
        sum
    }

    /// Sectors have been sent. The pieces among them are not looked at again: a long read has many,
    /// and is sent in many turns.
    fn pass(&mut self, sent: u64) {
        while let [piece, rest @ ..] = self.pieces
            && self.there + piece.count <= sent
        {
            self.there += piece.count;
            self.pieces = rest;
        }
    }
}

/// What sending the data of a read costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// A sector over the bus.
    pub sector: Nanos,
    /// The bus is held while sectors are awaited.
    pub hold: bool,
    /// Giving it up.
    pub disconnect: Nanos,
    /// Getting it again, ready to send.
    pub reconnect: Nanos,
    /// Sectors to wait for before asking for it again; at least 1.
    pub water: u64,
}

/// How a read begins to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// It has the bus and is ready to send at this time.
    Connected(Time),
    /// It is off the bus from this time on.
    Disconnected(Time),
}

/// When a read of `total` sectors, `ready` of which are in the buffer and the rest of which come as
/// `pieces`, has the bus first, and when its last sector has been sent. `free` is when the bus is.
pub(super) fn send(
    link: &Link,
    pieces: &[Piece],
    ready: u64,
    total: u64,
    start: Start,
    free: Time,
) -> (Time, Time) {
    let mut coming = Arriving {
        there: ready,
        pieces,
    };
    let reconnected = |coming: &Arriving<'_>, from: Time, sent: u64| {
        let enough = coming.when((sent + link.water).min(total));
        from.max(enough) + link.reconnect
    };
    let begin = match start {
        Start::Connected(at) => at,
        Start::Disconnected(at) => reconnected(&coming, at, 0),
    }
    .max(free);
    let seamless = link.disconnect.is_zero() && link.reconnect.is_zero() && link.water <= 1;
    if link.hold || seamless {
        return (begin, stream(link.sector, pieces, ready, begin));
    }
    let (mut now, mut sent) = (begin, 0);
    while sent < total {
        let here = coming.available(now).min(total) - sent;
        if here > 0 {
            now += link.sector * here;
            sent += here;
            coming.pass(sent);
        } else {
            now = reconnected(&coming, now + link.disconnect, sent);
        }
    }
    (begin, now)
}

/// The time at which a bus that is held from `begin` on has sent everything. It sends each sector
/// as soon as the sector is there and the one before it is sent.
fn stream(sector: Nanos, pieces: &[Piece], ready: u64, begin: Time) -> Time {
    let mut end = begin + sector * ready;
    for piece in pieces {
        let all = sector * piece.count;
        end = (end + all).max(piece.first + all).max(piece.last + sector);
    }
    end
}

/// When the bus is taken.
///
/// Transfers of the command that has the arm are planned ahead. Short transfers of other commands
/// fill the gaps where they fit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bus {
    /// Until then it is taken by short transfers before the planned one.
    gap: Time,
    /// The planned transfer.
    begin: Time,
    end: Time,
}

impl Bus {
    /// When a transfer can be planned from.
    pub fn free(&self) -> Time {
        self.gap.max(self.end)
    }

    /// Plans a transfer, behind all others.
    pub fn plan(&mut self, begin: Time, end: Time) {
        self.gap = self.free();
        self.begin = begin;
        self.end = end;
    }

    /// Puts in a short transfer at `at` or later; when it begins.
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

    /// Eight sectors, 20 apart, the first at 1000.
    const MEDIA: [Piece; 1] = [Piece {
        count: 8,
        first: Time::from_nanos(1000),
        last: Time::from_nanos(1140),
    }];

    #[test]
    fn a_slow_bus_starts_with_the_first_sector() {
        let start = Start::Disconnected(at(0));
        assert_eq!(
            send(&SLOW, &MEDIA, 0, 8, start, at(0)),
            (at(1030), at(1830))
        );
    }

    #[test]
    fn a_fast_bus_ends_with_the_last_sector() {
        let fast = Link {
            sector: Nanos::from_nanos(5),
            reconnect: Nanos::ZERO,
            ..SLOW
        };
        let start = Start::Disconnected(at(0));
        assert_eq!(
            send(&fast, &MEDIA, 0, 8, start, at(0)),
            (at(1000), at(1145))
        );
        // Giving the bus up costs nothing, so it makes no difference.
        let loose = Link {
            hold: false,
            ..fast
        };
        assert_eq!(
            send(&loose, &MEDIA, 0, 8, start, at(0)),
            (at(1000), at(1145))
        );
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
        // Four at 1060; connected 1070, four sent 1090 where a fifth is there since 1080: sent 1095;
        // off 1105; the rest (less than the mark) at 1140; connected 1150, three sent.
        let start = Start::Disconnected(at(0));
        assert_eq!(
            send(&link, &MEDIA, 0, 8, start, at(0)),
            (at(1070), at(1165))
        );
    }

    #[test]
    fn a_partial_hit_sends_what_it_has() {
        let link = Link {
            hold: false,
            ..SLOW
        };
        // Two at once, sent at 700; off; sectors from 1000 on.
        let start = Start::Connected(at(500));
        assert_eq!(
            send(&link, &MEDIA, 2, 10, start, at(0)),
            (at(500), at(1830))
        );
    }

    /// Half a million times the bus is given up and asked for again, in a hundred thousand pieces.
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
            send(&link, &pieces, 0, 500_000, start, at(0)),
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
