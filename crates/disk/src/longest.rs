//! How long a drive may take for a command, at most.
//!
//! A host that promises when something is done must know this. It cannot take a command back from the drive, nor
//! say which of its commands is next.

use crate::layout::Layout;
use crate::mechanics::Mechanics;
use crate::profile::{FirmwarePolicy, Profile, ReadAhead, WriteBack};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Random variation is cut at so many standard deviations.
const DEVIATIONS: u64 = 3;

/// The part of the cap on a stream for which runs of dirty data may go before reads.
const RUNS_PART: u64 = 8;

/// So many places in each zone are looked at for how long the sectors of a command pass.
const PLACES: u64 = 16;

/// How long the drive may take; without faults, and without flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// From the end of a command to the end of the next one: the longest movement and a turn, the sectors, overheads
    /// and the bus, what the arm reads ahead or waits before it leaves a stream, and what of the buffer the drive writes before.
    pub service: Nanos,
    /// For how long dirty data may go first although commands wait, in each [`every`](Longest::every).
    pub pause: Nanos,
    /// How often that may be.
    pub every: Nanos,
}

impl Longest {
    /// The longest service of a command of up to so many sectors. Looks at a few places of each zone.
    pub fn of(profile: &Profile, layout: &Layout, largest: Sectors) -> Longest {
        let drive = Slow {
            profile,
            layout,
            mechanics: Mechanics::new(profile),
        };
        let spec = &profile.cache;
        let segment = Sectors::new(u64::from(spec.segment_sectors));
        let cap = profile.queue.stream_cap;
        let by_position = profile.queue.policy != FirmwarePolicy::Fifo;
        let mut service = drive.access() + drive.passing(largest) + drive.outside_the_arm(largest);
        if spec.enabled && spec.read_ahead != ReadAhead::Off && by_position {
            // Once around a track of which a command wants the beginning, or the rest of the segment.
            let most = u64::from(spec.read_ahead_max).saturating_add(largest.get());
            let ahead = drive.passing(segment.min(Sectors::new(most)));
            let ahead = ahead.max(drive.mechanics.turn());
            service += ahead.min(cap);
        }
        if spec.second_read_ahead_min > 0 {
            // The rest of a track.
            service += drive.mechanics.turn();
        }
        if by_position {
            service += profile.queue.stream_hold.min(cap);
        }
        let mut pause = Nanos::ZERO;
        if spec.enabled && spec.write_back != WriteBack::Off {
            // What the run lacks of the medium's sectors is read first.
            let ragged = profile.geometry.sectors_per_physical() > 1;
            let accesses = if ragged { 2 } else { 1 };
            let run = drive.access() * accesses + drive.passing(segment.max(largest));
            service += run;
            pause = cap / RUNS_PART + run;
        }
        // A unit may turn, and so do everything, more slowly.
        let ppm = u64::from(profile.noise.speed_ppm);
        let slow = |time: Nanos| time + Nanos::from_nanos(time.as_nanos() / 1_000_000 * ppm + ppm);
        Longest {
            service: slow(service),
            pause: slow(pause),
            every: cap.max(pause),
        }
    }

    /// How long dirty data may go first in all, within a time.
    pub fn pauses_within(&self, time: Nanos) -> Nanos {
        match self.pause {
            Nanos::ZERO => Nanos::ZERO,
            pause => pause * (1 + time.as_nanos() / self.every.as_nanos().max(1)),
        }
    }
}

/// A drive at its slowest.
struct Slow<'a> {
    profile: &'a Profile,
    layout: &'a Layout,
    mechanics: Mechanics,
}

impl Slow<'_> {
    /// The longest way to a sector: a movement, settled for a write, and a turn.
    fn access(&self) -> Nanos {
        let noise = &self.profile.noise;
        let varied = |seek: Nanos| {
            let relative = seek.as_nanos() as f64 * noise.seek_sd_relative;
            seek + noise.seek_sd.max(Nanos::from_nanos(relative as u64 + 1)) * DEVIATIONS
        };
        let cylinders = self.profile.geometry.cylinders;
        let times = (1..cylinders)
            .flat_map(|distance| [Op::Read, Op::Write].map(|op| self.mechanics.seek(distance, op)));
        let seek = varied(times.max().unwrap_or_default()).max(self.mechanics.head_switch());
        let settled = self.mechanics.write_settle().after(seek).max(seek);
        settled + self.mechanics.set_up(Nanos::ZERO, Op::Read) + self.mechanics.turn()
    }

    /// How long so many sectors in a row pass at most, with the movements between tracks.
    fn passing(&self, sectors: Sectors) -> Nanos {
        let mut longest = Nanos::ZERO;
        for zone in self.layout.zones() {
            let all = zone.extent;
            let len = sectors.get().min(all.len.get());
            for place in 0..=PLACES {
                let start = (all.len.get() - len) as u128 * u128::from(place) / u128::from(PLACES);
                let start = Lba::new(all.start.get() + start as u64);
                let track = self.layout.locate(start).track;
                for op in [Op::Read, Op::Write] {
                    let extent = Extent::new(start, Sectors::new(len));
                    let access =
                        self.mechanics
                            .access(self.layout, track, Time::ZERO, extent, op, false);
                    longest = longest.max(access.seek + access.switch + access.transfer);
                }
            }
        }
        // Between zones, and where the places are not the worst.
        let more = self.mechanics.turn();
        let moved = match self.layout.has_remaps() {
            true => self.access() * 2,
            false => Nanos::ZERO,
        };
        longest + more + moved
    }

    /// Overheads, and the bus.
    fn outside_the_arm(&self, sectors: Sectors) -> Nanos {
        let overhead = &self.profile.overhead;
        let early = overhead
            .early_write_disconnect
            .map_or(Nanos::ZERO, |early| {
                early
                    .durations()
                    .iter()
                    .fold(Nanos::ZERO, |sum, (_, time)| sum + *time)
            });
        let all = overhead
            .durations()
            .iter()
            .fold(early, |sum, (_, time)| sum + *time);
        let bus = &self.profile.bus;
        let sector = bus.sector(true).max(bus.sector(false));
        let varies = self.profile.noise.overhead_sd * DEVIATIONS;
        // A command may give up the bus and get it again.
        all * 2 + varies * 2 + bus.arbitration * 4 + sector * sectors.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::by_name;

    fn longest(change: impl Fn(&mut crate::profile::Spec), sectors: u64) -> Longest {
        let profile = by_name("wd5000aaks").expect("shipped");
        let profile = profile.with(change).expect("in range");
        Longest::of(&profile, &Layout::new(&profile), Sectors::new(sectors))
    }

    #[test]
    fn what_a_drive_does_not_do_takes_no_time() {
        let whole = longest(|_| {}, 1024);
        let through = longest(|spec| spec.cache.write_back = WriteBack::Off, 1024);
        let plain = longest(
            |spec| {
                spec.cache.write_back = WriteBack::Off;
                spec.cache.read_ahead = ReadAhead::Off;
                (spec.cache.read_ahead_min, spec.cache.read_ahead_max) = (0, 0);
            },
            1024,
        );
        assert!(whole.service > through.service && through.service > plain.service);
        assert!(!whole.pause.is_zero() && through.pause.is_zero());
        // A full stroke and a turn are 27 ms, 512 KiB at the innermost tracks about 12 ms.
        let millis = plain.service.as_nanos() / 1_000_000;
        assert!((40..60).contains(&millis), "{millis} ms");
    }

    #[test]
    fn a_larger_command_takes_longer() {
        assert!(longest(|_| {}, 2048).service > longest(|_| {}, 1024).service);
    }

    #[test]
    fn what_is_written_first_comes_once_in_each_cap_on_a_stream() {
        let known = longest(|spec| spec.queue.stream_cap = Nanos::from_millis(100), 1024);
        let times = |millis| {
            known.pauses_within(Nanos::from_millis(millis)).as_nanos() / known.pause.as_nanos()
        };
        assert_eq!([50, 150, 450].map(times), [1, 2, 5]);
        let through = longest(|spec| spec.cache.write_back = WriteBack::Off, 1024);
        assert_eq!(through.pauses_within(Nanos::from_secs(9)), Nanos::ZERO);
    }
}
