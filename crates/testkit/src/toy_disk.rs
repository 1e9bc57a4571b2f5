//! A simple disk whose timing is obviously right, and a model of positions that costs as much as a real drive's.

use headtime_sched::{Op, Positioning, Predicted, Request};
use headtime_units::{Extent, Lba, Nanos, Time};

/// One head over a line of sectors. An access takes 100 us, 10 us per sector, and, if the head must
/// move, 500 us and 40 ns per sector of distance.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToyDisk {
    head: Lba,
}

impl ToyDisk {
    /// Serves a request and moves the head to its end. Returns the duration.
    pub fn access(&mut self, request: &Request) -> Nanos {
        let extent = request.extent;
        let time = ToyDisk::access_time(extent.start, self.head, extent.len.get());
        self.head = extent.end();
        time
    }

    /// Duration of an access of `len` sectors at `lba` with the head at `head`.
    pub fn access_time(lba: Lba, head: Lba, len: u64) -> Nanos {
        let distance = lba.distance(head).get();
        let seek = match distance {
            0 => Nanos::ZERO,
            distance => Nanos::from_micros(500) + Nanos::from_nanos(40) * distance,
        };
        Nanos::from_micros(100) + seek + Nanos::from_micros(10) * len
    }
}

/// Place of a sector on a [`ToyMechanics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToyPlace {
    /// Address, for bounds.
    pub lba: u64,
    /// The arm's position.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// Angle on the track, in 2^32nds of a turn.
    pub angle: u32,
}

/// A disk of 7200 rpm with 16 zones, 4 heads, skew, and a seek curve with a root and a linear part. The disk models
/// no product, but its predictions cost as much as those of a real drive's model.
///
/// The model has no head switch, no settling of writes and no noise.
#[derive(Clone, Debug)]
pub struct ToyMechanics {
    zones: Vec<Zone>,
    /// Seek time in nanoseconds by distance in cylinders. The times never fall.
    seek_ns: Vec<u32>,
    turn_ns: u32,
    sectors: u64,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_lba: u64,
    first_cylinder: u32,
    per_track: u32,
}

const ZONES: u32 = 16;
const CYLINDERS_PER_ZONE: u32 = 2_000;
const HEADS: u32 = 4;
const PER_TRACK_MAX: u32 = 1_200;
const TRACK_SKEW: u32 = 1 << 29;

impl ToyMechanics {
    /// The disk, of 115.2 million sectors.
    pub fn new() -> ToyMechanics {
        let (mut zones, mut lba) = (Vec::new(), 0);
        for zone in 0..ZONES {
            let per_track = PER_TRACK_MAX - 40 * zone;
            zones.push(Zone {
                first_lba: lba,
                first_cylinder: zone * CYLINDERS_PER_ZONE,
                per_track,
            });
            lba += u64::from(per_track * HEADS * CYLINDERS_PER_ZONE);
        }
        // Integer arithmetic gives the same disk on every machine.
        let root = |distance: u64| (distance * 1_000_000).isqrt();
        let seek = |distance: u64| match distance {
            0 => 0,
            distance => 700_000 + 38 * root(distance) + 60 * distance,
        };
        ToyMechanics {
            zones,
            seek_ns: (0..u64::from(ZONES * CYLINDERS_PER_ZONE))
                .map(|distance| seek(distance) as u32)
                .collect(),
            turn_ns: 8_333_333,
            sectors: lba,
        }
    }

    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    fn place(&self, lba: u64) -> ToyPlace {
        let lba = lba.min(self.sectors - 1);
        let zone = self.zones.partition_point(|zone| zone.first_lba <= lba) - 1;
        let zone = self.zones[zone];
        let inside = (lba - zone.first_lba) as u32;
        let (track, sector) = (inside / zone.per_track, inside % zone.per_track);
        let angle = ((u64::from(sector) << 32) / u64::from(zone.per_track)) as u32;
        ToyPlace {
            lba,
            cylinder: zone.first_cylinder + track / HEADS,
            head: track % HEADS,
            angle: angle.wrapping_add(track.wrapping_mul(TRACK_SKEW)),
        }
    }

    fn seek_time(&self, cylinders: u32) -> Nanos {
        let last = self.seek_ns.len() - 1;
        Nanos::from_nanos(u64::from(self.seek_ns[(cylinders as usize).min(last)]))
    }
}

impl Default for ToyMechanics {
    fn default() -> ToyMechanics {
        ToyMechanics::new()
    }
}

impl Positioning for ToyMechanics {
    type Place = ToyPlace;

    fn start(&self, extent: Extent) -> ToyPlace {
        self.place(extent.start.get())
    }

    fn end(&self, extent: Extent) -> ToyPlace {
        self.place(extent.end().get().saturating_sub(1))
    }

    fn predict(&self, now: Time, from: ToyPlace, to: ToyPlace, op: Op) -> Predicted {
        let seek = self.seek(from, to, op);
        let turn = u64::from(self.turn_ns);
        let phase = (now + seek).as_nanos() % turn;
        let angle = ((phase << 32) / turn) as u32;
        let ahead = u64::from(to.angle.wrapping_sub(angle));
        Predicted {
            seek,
            rotation: Nanos::from_nanos((ahead * turn) >> 32),
        }
    }

    fn seek(&self, from: ToyPlace, to: ToyPlace, _: Op) -> Nanos {
        self.seek_time(from.cylinder.abs_diff(to.cylinder))
    }

    fn seek_at_least(&self, from: ToyPlace, _: ToyPlace, lba: Lba) -> Nanos {
        // Addresses past the end have the place of the last sector.
        let sectors = from.lba.abs_diff(lba.get().min(self.sectors - 1));
        // A cylinder has at most this number of sectors, so the distance crosses at least the quotient's number of
        // cylinder ends.
        let cylinders = sectors / u64::from(PER_TRACK_MAX * HEADS);
        self.seek_time(cylinders as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Distances within a track, over some cylinders, and up to past either end of the disk.
    fn distances() -> impl Strategy<Value = u64> {
        prop_oneof![0..1_200_u64, 0..100_000_u64, 0..130_000_000_u64]
    }

    proptest! {
        #[test]
        fn seek_at_least_of_a_nearer_address_bounds_the_seek_to_any_farther_one(
            from in 0..120_000_000_u64,
            up in any::<bool>(),
            a in distances(),
            b in distances(),
        ) {
            let disk = ToyMechanics::new();
            let address = |distance: u64| match up {
                true => from + distance,
                false => from.saturating_sub(distance),
            };
            let (near, far) = (address(a.min(b)), address(a.max(b)));
            let from = disk.place(from);
            let least = disk.seek_at_least(from, disk.place(near), Lba::new(near));
            prop_assert!(least <= disk.seek(from, disk.place(far), Op::Read));
        }

        #[test]
        fn waiting_for_a_sector_takes_less_than_a_turn(
            now in 0..1_u64 << 50,
            from in 0..120_000_000_u64,
            to in 0..120_000_000_u64,
        ) {
            let disk = ToyMechanics::new();
            let (from, to) = (disk.place(from), disk.place(to));
            let predicted = disk.predict(Time::from_nanos(now), from, to, Op::Read);
            prop_assert!(predicted.rotation.as_nanos() < 8_333_333);
            prop_assert_eq!(predicted.seek, disk.seek(from, to, Op::Read));
        }
    }
}
