//! Least time of a command in drive and bus, for any place of its data.

use crate::sort::sort_by_start;
use crate::spans::Spans;
use headtime_disk::profile::{Profile, ReadAhead, WriteBack};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors};

/// Least times of a drive's commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floors {
    /// Time from submission to completion, without the transfer of data.
    read: Nanos,
    write: Nanos,
    other: Nanos,
    /// Time of a sector on the bus.
    read_sector: Nanos,
    write_sector: Nanos,
    /// Part of a command's time before the arm can start and after the last sector has passed.
    read_away: Nanos,
    write_away: Nanos,
    /// Time before the arm can start for the first command, if it is a read, or a write.
    read_lead: Nanos,
    write_lead: Nanos,
    /// True if the arm works only for the command that it serves, without reading ahead.
    idle_between: bool,
    writes_wait: bool,
}

impl Floors {
    pub fn new(profile: &Profile) -> Floors {
        let (spec, bus, cache) = (&profile.overhead, &profile.bus, &profile.cache);
        // The noise of a command's overhead is cut at three deviations.
        let noise = profile.noise.overhead_sd * 3;
        let least = |one: Nanos, other: Nanos| one.min(other).saturating_sub(noise);
        let reconnect = spec.first_reselect + spec.data_preparation + bus.arbitration;

        let read_hit = least(spec.read_hit_after_read, spec.read_hit_after_write);
        let read_miss = least(spec.read_miss_after_read, spec.read_miss_after_write);
        let given_up = spec
            .read_disconnect_after_read
            .min(spec.read_disconnect_after_write);
        let miss = spec.per_command
            + read_miss
            + match bus.never_disconnect {
                true => spec.data_preparation,
                false => given_up + reconnect,
            };
        let hit = spec.per_command + read_hit + spec.data_preparation;
        let aside = cache.sneaky_full_read_hits || cache.sneaky_intermediate_read_hits;
        let read = match (cache.enabled, aside) {
            (false, _) => miss,
            (true, false) => miss.min(hit),
            // In the model such a hit takes no time for receiving the command.
            (true, true) => miss.min(read_hit + spec.data_preparation),
        };

        let write_hit = least(spec.write_hit_after_read, spec.write_hit_after_write);
        let write_miss = least(spec.write_miss_after_read, spec.write_miss_after_write);
        let writes_wait = cache.write_back == WriteBack::Off;
        let mut processed = match writes_wait {
            true => write_miss,
            false => write_miss.min(write_hit),
        };
        let mut before_arm = processed;
        if let Some(early) = &spec.early_write_disconnect {
            let again = spec.first_reselect + bus.arbitration;
            processed =
                processed.min(early.command + early.first_disconnect + early.between + again);
            before_arm = before_arm.min(early.command + early.seek_delay);
        }
        let received = if aside { Nanos::ZERO } else { spec.per_command };
        let read_before = received
            + if cache.enabled {
                read_miss.min(read_hit)
            } else {
                read_miss
            };
        let write_before = spec.per_command + before_arm;
        let (read_sector, write_sector) = (bus.sector(true), bus.sector(false));
        Floors {
            read: read + spec.read_completion,
            write: spec.per_command + processed + spec.data_preparation + spec.write_completion,
            other: spec.per_command + spec.write_completion,
            read_sector,
            write_sector,
            read_away: read_before + read_sector + spec.read_completion,
            write_away: write_before + spec.write_completion,
            read_lead: spec.per_command + read_miss,
            // The drive may start to write buffered data before all data have arrived.
            write_lead: if writes_wait {
                write_before
            } else {
                Nanos::ZERO
            },
            idle_between: !cache.enabled || cache.read_ahead == ReadAhead::Off,
            writes_wait,
        }
    }

    /// Returns the least time of a command for `sectors` sectors, from submission to completion.
    pub fn command(&self, op: Op, sectors: Sectors) -> Nanos {
        match op {
            Op::Read => self.read + self.read_sector * sectors.get(),
            Op::Write => self.write + self.write_sector * sectors.get(),
            Op::Flush | Op::Discard => self.other,
        }
    }
}

/// Load of the drive: amount of data, and least number of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub reads: Commands,
    pub writes: Commands,
    /// Flushes and discards.
    pub others: u64,
}

/// Commands of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    /// Least number of commands.
    pub count: u64,
    /// Sectors on the bus.
    pub sectors: u64,
    /// Largest number of sectors in a command.
    pub longest: u64,
}

impl Commands {
    /// Returns the commands for `requests`. No request is split. `most` is the largest merged command in sectors,
    /// `None` without merging.
    ///
    /// A command consists of adjacent requests, so no command spans a gap.
    pub fn of(mut requests: Vec<Extent>, most: Option<Sectors>) -> Commands {
        sort_by_start(&mut requests);
        Commands::of_sorted(&requests, &Spans::of_sorted(&requests), most)
    }

    /// As [`Commands::of`], for requests in the order of their first sectors. `together` is the union of the requests.
    pub fn of_sorted(requests: &[Extent], together: &Spans, most: Option<Sectors>) -> Commands {
        let sectors = requests.iter().map(|extent| extent.len.get()).sum();
        let longest = requests.iter().map(|extent| extent.len.get()).max();
        let longest = longest.unwrap_or(0);
        let Some(most) = most else {
            return Commands {
                count: requests.len() as u64,
                sectors,
                longest,
            };
        };
        // A single request may be larger than `most`.
        let most = most.get().max(longest).max(1);
        let mut left = requests.iter().peekable();
        let mut count = 0;
        for span in together.extents() {
            let mut here = 0;
            while let Some(extent) = left.next_if(|extent| extent.start < span.end()) {
                here += extent.len.get();
            }
            count += u64::div_ceil(here, most);
        }
        Commands {
            count,
            sectors,
            longest: if requests.is_empty() { 0 } else { most },
        }
    }
}

impl Load {
    /// Returns the least time in which a drive with up to `depth` commands at once can complete the load.
    ///
    /// Data of all commands share the bus at any depth. The other parts of up to `depth` commands can overlap.
    pub fn least(&self, floors: &Floors, depth: u32) -> Nanos {
        let bus =
            floors.read_sector * self.reads.sectors + floors.write_sector * self.writes.sectors;
        let own = floors.read * self.reads.count
            + floors.write * self.writes.count
            + floors.other * self.others;
        // Time before the first data and after the last. These may be of a read and of a write.
        let ends = match (self.reads.count, self.writes.count) {
            (0, 0) if self.others > 0 => floors.other,
            (0, 0) => Nanos::ZERO,
            (_, 0) => floors.read,
            (0, _) => floors.write,
            _ => Nanos::ZERO,
        };
        let all = Nanos::from_nanos((own + bus).as_nanos().div_ceil(u64::from(depth)));
        all.max(bus + ends)
    }

    /// Returns the least time that passes in addition to the work of the arm. If the arm works for one command at a
    /// time and nothing else, this is the time of all commands. Otherwise it is the time of the first command.
    pub fn beside_arm(&self, floors: &Floors, depth: u32) -> Nanos {
        let writes = self.writes.count == 0 || floors.writes_wait;
        if depth > 1 || !floors.idle_between || !writes {
            return match (self.reads.count, self.writes.count) {
                (0, 0) => Nanos::ZERO,
                (_, 0) => floors.read_lead,
                (0, _) => floors.write_lead,
                _ => floors.read_lead.min(floors.write_lead),
            };
        }
        floors.read_away * self.reads.count
            + floors.write_away * self.writes.count
            + floors.other * self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(of: &[(u64, u64)]) -> Vec<Extent> {
        of.iter()
            .map(|(start, len)| Extent::at(*start, *len))
            .collect()
    }

    #[test]
    fn commands_reach_over_no_gap_and_hold_no_more_than_the_most() {
        let apart = extents(&[(0, 8), (16, 8), (8, 8), (100, 8), (116, 8)]);
        let count = |of: &[Extent], most| Commands::of(of.to_vec(), most).count;
        assert_eq!(count(&apart, None), 5);
        assert_eq!(count(&apart, Some(Sectors::new(1024))), 3);
        assert_eq!(count(&apart, Some(Sectors::new(16))), 4);
        // A single request may be larger than the limit. Then any command may be as large as this request.
        let large = extents(&[(0, 64), (64, 8), (72, 8)]);
        assert_eq!(count(&large, Some(Sectors::new(16))), 2);
        // Sectors that are requested twice are transferred twice.
        let twice = extents(&[(0, 8), (0, 8), (0, 8)]);
        let twice = Commands::of(twice, Some(Sectors::new(16)));
        assert_eq!((twice.count, twice.sectors), (2, 24));
        assert_eq!(
            Commands::of(Vec::new(), Some(Sectors::new(16))),
            Commands::default()
        );
    }
}
