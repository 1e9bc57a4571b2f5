//! Lower bound on the time that a disk needs for given work, for any scheduler.
//!
//! A [`Bound`] is no schedule, but the longest of three times. Every run takes at least as long as each of these
//! times, for any order, merging and waits:
//!
//! - *arm*: the time in which all sectors that the medium must read or write pass under the head, plus the shortest
//!   movements between tracks;
//! - *command*: the time that the commands occupy drive and bus;
//! - *chain*: the time of the sequential steps of a process, with computing and thinking, across the barriers at which
//!   processes meet.
//!
//! All three times are for the modelled drive at its quickest, with the most favourable noise. The design note
//! (`docs/design/2026-11-22-bound.md`) explains why each time is a bound, and how tight the bounds are.

mod arm;
mod array;
mod chain;
mod command;
mod moves;
mod programs;
mod sort;
mod source;
mod spans;
mod tour;

pub use array::Array;
pub use programs::STEPS_MAX;
pub use source::REQUESTS_MAX;

use arm::{Arm, Hidden};
use command::{Commands, Floors, Load};
use headtime_disk::Layout;
use headtime_disk::profile::{Profile, WriteBack};
use headtime_host::HostBuilder;
use headtime_units::{Nanos, Sectors, Time};
use headtime_workload::Source;
use sort::sort_by_start;
use source::Asked;
use spans::Spans;

/// The drive and the host's queue.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    pub profile: &'a Profile,
    /// Layout of the drive's sectors.
    pub layout: &'a Layout,
    /// Largest number of commands in the drive.
    pub depth: u32,
    /// Largest merged command, in sectors; `None` without merging.
    pub merge: Option<Sectors>,
    /// The array of such drives, if the work is for an array. The bound is then the largest of the members' bounds and
    /// the time of the shared link. The link's time counts as [`Term::Command`].
    pub array: Option<&'a Array>,
}

/// A term of the bound: the least time of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Sectors under the head, and movements.
    Arm,
    /// Commands, and their data on the bus.
    Command,
    /// Sequential steps of processes.
    Chain,
}

impl Term {
    /// All terms, in the order of a report.
    pub const ALL: [Term; 3] = [Term::Arm, Term::Command, Term::Chain];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Term::Arm => "arm",
            Term::Command => "command",
            Term::Chain => "chain",
        }
    }
}

/// The least time for some work, from the start of a run to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    terms: [Nanos; Term::ALL.len()],
    programs: Vec<Program>,
    turns: Option<Turns>,
}

/// Least times of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    number: u32,
    /// Least time of the program if it had the disk to itself.
    alone: Nanos,
    /// Part of `alone` in which the program's sectors pass under the head. No other program's sectors pass meanwhile.
    passing: Nanos,
}

/// The cost of changing between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    /// Least extra time of a change, compared with continuing.
    change: Nanos,
    /// Longest time for which one process can be the only one left at the end.
    last_alone: Nanos,
    /// Number of processes. The work needs one change less in any case.
    processes: u64,
}

impl Bound {
    /// Returns the bound: the longest of the terms.
    pub fn time(&self) -> Nanos {
        self.terms.iter().copied().max().unwrap_or_default()
    }

    /// Returns one of the terms.
    pub fn term(&self, term: Term) -> Nanos {
        self.terms[term as usize]
    }

    /// Returns the longest term; the first if several are equal.
    pub fn binds(&self) -> Term {
        let time = self.time();
        let longest = Term::ALL.into_iter().find(|term| self.term(*term) == time);
        longest.unwrap_or(Term::Arm)
    }

    /// Returns the time for processes that take turns of `slice` at the disk, while at least two have work left. Each
    /// turn ends with a change to another process's sectors. Returns `None` if the work is not programs, or if the
    /// sectors of processes are interleaved.
    ///
    /// This is no bound of a run with such a scheduler. A turn may last longer by the request that is under way when
    /// the slice ends. The next turn may belong to the same process. The time shows the cost of changes.
    pub fn with_slices(&self, slice: Nanos) -> Option<Nanos> {
        let turns = self.turns?;
        if slice.is_zero() {
            return None;
        }
        let arm = self.term(Term::Arm);
        // Each slice of work adds a change. The changes that the work needs in any case are part of the arm's term.
        let shared = arm.saturating_sub(turns.last_alone).as_nanos();
        let changes = (shared / slice.as_nanos()).saturating_sub(turns.processes - 1);
        let arm = arm + turns.change * changes;
        Some(self.time().max(arm))
    }

    /// Returns an upper bound on the sum of all programs' rates, each over the program's own time, in bytes per second.
    /// `bytes` returns the number of bytes that a program moves, by the program's number. Returns `None` without
    /// programs.
    pub fn sum_of_rates(&self, bytes: impl Fn(u32) -> u64) -> Option<f64> {
        if self.programs.is_empty() {
            return None;
        }
        // When the n-th program ends, the sectors of n programs have passed under the head, and n programs have ended.
        // The n smallest values give a lower bound, for any order of the ends.
        let mut passing: Vec<u64> = Vec::new();
        let (mut alone, mut moved) = (Vec::new(), Vec::new());
        for program in &self.programs {
            passing.push(program.passing.as_nanos());
            alone.push(program.alone.as_nanos());
            moved.push(bytes(program.number));
        }
        passing.sort_unstable();
        alone.sort_unstable();
        moved.sort_unstable_by(|one, other| other.cmp(one));
        let mut passed = 0;
        let mut rates = 0.0;
        for ((passing, alone), bytes) in passing.into_iter().zip(alone).zip(moved) {
            passed += passing;
            rates += bytes as f64 * 1e9 / passed.max(alone).max(1) as f64;
        }
        Some(rates)
    }

    fn raise(&mut self, term: Term, time: Nanos) {
        let known = &mut self.terms[term as usize];
        *known = time.max(*known);
    }
}

impl Machine<'_> {
    /// Returns the least time in which all programs of a host can end. Every program must end. Returns `None` if the
    /// programs have more than [`STEPS_MAX`] steps.
    ///
    /// # Panics
    ///
    /// If a program reads beyond its files or is of another host.
    pub fn programs(&self, builder: HostBuilder) -> Option<Bound> {
        let floors = Floors::new(self.profile);
        let plan = builder.into_plan();
        let needed = programs::needed(plan, &floors, self.merge, self.array)?;
        let arm = Arm::new(self.profile, self.layout);
        let mut bound = Bound::default();
        let mut sectors = 0;
        for share in &needed.shares {
            let (writes, load) = (&share.writes, &share.load);
            let reads = share.reads.without(&share.maybe_written).without(writes);
            let least = self.arm(&arm, &floors, &reads.and(writes), writes, load);
            bound.raise(Term::Arm, least);
            bound.raise(Term::Command, load.least(&floors, self.depth));
            sectors += load.reads.sectors + load.writes.sectors;
        }
        bound.raise(Term::Command, self.on_bus(sectors));
        let fetch = |resource: u32| needed.fetch[resource as usize];
        let ends = chain::ends(&needed.chains, &needed.barriers, fetch);
        let since_start = |time: &Time| *time - Time::ZERO;
        let chain = ends.iter().map(since_start).max();
        bound.raise(Term::Chain, chain.unwrap_or_default());

        // By process and drive.
        let own: Vec<Vec<Spans>> = (needed.of_processes.iter())
            .map(|(_, own)| {
                let shares = own.iter().zip(&needed.shares);
                let clean = shares
                    .map(|(own, share)| own.without(&share.maybe_written).without(&share.writes));
                clean.collect()
            })
            .collect();
        if self.array.is_none() {
            bound.turns = turns(&arm, &own.concat());
        }
        let numbers = needed.of_processes.iter().map(|(program, _)| *program);
        for ((number, own), end) in numbers.zip(&own).zip(&ends) {
            // The members of an array may work for the program at the same time.
            let passing = own.iter().map(|own| arm.passing(own)).sum::<Nanos>() / own.len() as u64;
            let least = |own: &Spans| arm.least(own, false, Hidden::default());
            let alone = own.iter().map(least).fold(since_start(end), Nanos::max);
            match bound
                .programs
                .iter_mut()
                .find(|known| known.number == number)
            {
                Some(known) => {
                    known.alone = known.alone.max(alone);
                    known.passing += passing;
                }
                None => bound.programs.push(Program {
                    number,
                    alone,
                    passing,
                }),
            }
        }
        // Sectors that two processes need pass once for both.
        let shared = |drive: usize| {
            let sectors: u64 = own.iter().map(|own| own[drive].sectors()).sum();
            let all = own
                .iter()
                .fold(Spans::default(), |all, own| all.and(&own[drive]));
            sectors != all.sectors()
        };
        if (0..needed.shares.len()).any(shared) {
            for program in &mut bound.programs {
                program.passing = Nanos::ZERO;
            }
        }
        Some(bound)
    }

    /// Returns the least time in which a replay or synthetic processes can end. The source must be unused. Returns
    /// `None` if the source has more than [`REQUESTS_MAX`] requests.
    pub fn source(&self, source: &mut dyn Source) -> Option<Bound> {
        let floors = Floors::new(self.profile);
        let least = |op, extent| floors.command(op, array::largest_share(self.array, &[extent]));
        let (end, asked) = source::drain(source, least)?;
        let mut bound = Bound::default();
        bound.raise(Term::Command, self.on_bus(asked.sectors()));
        for share in asked.by_drive(self.array) {
            self.requests(share, &mut bound);
        }
        bound.raise(Term::Chain, end - Time::ZERO);
        Some(bound)
    }

    /// Returns the least time of an array's link for this number of sectors.
    fn on_bus(&self, sectors: u64) -> Nanos {
        let bytes = u128::from(sectors) * u128::from(self.profile.geometry.sector_bytes);
        self.array.map_or(Nanos::ZERO, |array| array.on_bus(bytes))
    }

    /// Raises `bound` to the bound of one drive's requests.
    fn requests(&self, asked: Asked, bound: &mut Bound) {
        let floors = Floors::new(self.profile);
        let Asked {
            mut reads,
            mut writes,
            others,
        } = asked;
        // The following steps need the requests in order.
        sort_by_start(&mut reads);
        sort_by_start(&mut writes);
        let (read, written) = (Spans::of_sorted(&reads), Spans::of_sorted(&writes));
        let load = Load {
            reads: Commands::of_sorted(&reads, &read, self.merge),
            writes: Commands::of_sorted(&writes, &written, self.merge),
            others,
        };
        drop((reads, writes));
        let media = read.and(&written);
        let arm = Arm::new(self.profile, self.layout);
        bound.raise(Term::Arm, self.arm(&arm, &floors, &media, &written, &load));
        bound.raise(Term::Command, load.least(&floors, self.depth));
    }

    /// Returns the arm's term for the sectors `media`; the sectors `written` are written.
    fn arm(
        &self,
        arm: &Arm<'_>,
        floors: &Floors,
        media: &Spans,
        written: &Spans,
        load: &Load,
    ) -> Nanos {
        let unwritten = self.unwritten(written.sectors(), load.writes.longest);
        let mut least = arm.least(media, true, unwritten);
        if unwritten.sectors > 0 {
            // The sectors left dirty may save more than all writes cost. The reads alone are a bound, too.
            let reads = media.without(written);
            least = least.max(arm.least(&reads, true, Hidden::default()));
        }
        let beside = match media.is_empty() {
            true => Nanos::ZERO,
            false => load.beside_arm(floors, self.depth),
        };
        least + beside
    }

    /// Returns the largest set of sectors that may be dirty in the buffer when the last command completes. The commands
    /// write `sectors` sectors, `longest` at most in each command.
    fn unwritten(&self, sectors: u64, longest: u64) -> Hidden {
        let cache = &self.profile.cache;
        let segments = u64::from(cache.write_segments);
        let room = segments * u64::from(cache.segment_sectors);
        let (room, stretches) = match cache.write_back {
            WriteBack::Off => return Hidden::default(),
            // While the arm writes, the drive may accept a command that is longer than the buffer.
            WriteBack::Appending | WriteBack::Flushed => (room + longest, segments),
            // The firmware may keep any number of pieces.
            WriteBack::Full => (room, u64::MAX),
        };
        Hidden {
            sectors: room.min(sectors),
            stretches,
        }
    }
}

/// Returns the cost of changing between processes whose sectors are disjoint ranges.
fn turns(arm: &Arm<'_>, own: &[Spans]) -> Option<Turns> {
    let mut own: Vec<&Spans> = own.iter().filter(|own| !own.is_empty()).collect();
    if own.len() < 2 {
        return None;
    }
    own.sort_unstable_by_key(|own| own.start());
    if own.windows(2).any(|pair| pair[0].end() > pair[1].start()) {
        return None;
    }
    let ways = own.windows(2).map(|pair| arm.way_between(pair[0], pair[1]));
    let way = ways.min().unwrap_or_default();
    let mut alone: Vec<Nanos> = own
        .iter()
        .map(|own| arm.least(own, false, Hidden::default()))
        .collect();
    alone.sort_unstable();
    Some(Turns {
        change: Nanos::from_nanos(way.saturating_sub(arm.least_move())),
        last_alone: alone[alone.len() - 1] - alone[alone.len() - 2],
        processes: own.len() as u64,
    })
}
