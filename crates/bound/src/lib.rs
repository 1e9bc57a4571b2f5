//! The least time that a disk needs for given work, whatever the scheduler.
//!
//! A [`Bound`] is no schedule. It is the longest of three times. Every run takes at least as long
//! as each of them, however it orders, merges and waits:
//!
//! - *arm*: the time in which all sectors that must come from the medium, or reach it, pass under the
//!   head, and the shortest movements between their tracks;
//! - *command*: the time that the commands take of drive and bus;
//! - *chain*: the time for what a process does one thing after the other, computing and thinking
//!   included, over the barriers at which processes meet.
//!
//! All three are of the modelled drive at its quickest: noise is taken at its least. The design
//! note (`docs/design/2026-11-22-bound.md`) says why each is a bound, and how tight they are.

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

/// The drive and the host's queue that do the work.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    pub profile: &'a Profile,
    /// Where its sectors are.
    pub layout: &'a Layout,
    /// Commands in the drive at once.
    pub depth: u32,
    /// The most sectors of a merged command; `None` if nothing is merged.
    pub merge: Option<Sectors>,
    /// The array whose members are such drives, if the work is for an array. The bound is then the largest of the members'
    /// bounds and the time of the link that they share, which counts as [`Term::Command`].
    pub array: Option<&'a Array>,
}

/// The resource whose least time a term of the bound is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Sectors under the head, and movements.
    Arm,
    /// Commands, and their data on the bus.
    Command,
    /// What processes do one thing after the other.
    Chain,
}

impl Term {
    /// All, in the order of a report.
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

/// The least for one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    number: u32,
    /// If it had the disk to itself.
    alone: Nanos,
    /// Of it, what its sectors take to pass, which no other program's do meanwhile.
    passing: Nanos,
}

/// The cost of changing between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    /// The least that a change takes longer than going on.
    change: Nanos,
    /// At the end, one process alone has this much left at most.
    last_alone: Nanos,
    /// Changes that the work needs in any case.
    processes: u64,
}

impl Bound {
    /// The least time.
    pub fn time(&self) -> Nanos {
        self.terms.iter().copied().max().unwrap_or_default()
    }

    /// One of the times of which it is the longest.
    pub fn term(&self, term: Term) -> Nanos {
        self.terms[term as usize]
    }

    /// Which of them is the longest; of equals, the first.
    pub fn binds(&self) -> Term {
        let time = self.time();
        let longest = Term::ALL.into_iter().find(|term| self.term(*term) == time);
        longest.unwrap_or(Term::Arm)
    }

    /// The time if processes take turns of `slice` at the disk as long as two of them have something
    /// left, and each turn ends with a change to another one's sectors. Returns `None` if the work is
    /// not that of programs, or if their sectors lie among each other.
    ///
    /// This is no bound of a run with such a scheduler. A turn may last longer, by the request that
    /// is under way when the slice is over, and the next turn may be of the same process. The time says
    /// what changes cost.
    pub fn with_slices(&self, slice: Nanos) -> Option<Nanos> {
        let turns = self.turns?;
        if slice.is_zero() {
            return None;
        }
        let arm = self.term(Term::Arm);
        // Each slice of work brings one change more than the work needs in any case.
        let shared = arm.saturating_sub(turns.last_alone).as_nanos();
        let changes = (shared / slice.as_nanos()).saturating_sub(turns.processes - 1);
        let arm = arm + turns.change * changes;
        Some(self.time().max(arm))
    }

    /// The most that the rates of all programs can sum up to, each over its own time, in bytes per
    /// second. `bytes` says how many bytes a program moves, by its number. Returns `None` without
    /// programs.
    pub fn sum_of_rates(&self, bytes: impl Fn(u32) -> u64) -> Option<f64> {
        if self.programs.is_empty() {
            return None;
        }
        // Whichever end first, so many of them have passed under the head by then, and the slowest
        // of them has ended.
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
    /// The least time in which all programs of a host can have ended. All of them must end. Returns
    /// `None` if they have more than [`STEPS_MAX`] steps.
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
            // The members may work for the program at the same time.
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
        // What two of them want passes once for both.
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

    /// The least time in which a replay or made-up processes can have come to their end. The source
    /// must be given anew. Returns `None` if it has more than [`REQUESTS_MAX`] requests.
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

    /// Least time of an array's link for this number of sectors.
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
        // What follows goes through them in order.
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

    /// The term of the arm, for sectors of which some are written.
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
            // What is left dirty may be more than all writes are worth; reads are as long without them.
            let reads = media.without(written);
            least = least.max(arm.least(&reads, true, Hidden::default()));
        }
        let beside = match media.is_empty() {
            true => Nanos::ZERO,
            false => load.beside_arm(floors, self.depth),
        };
        least + beside
    }

    /// What may still be dirty in the buffer when the last command completes, of `sectors` written
    /// by commands of up to `longest` sectors.
    fn unwritten(&self, sectors: u64, longest: u64) -> Hidden {
        let cache = &self.profile.cache;
        let segments = u64::from(cache.write_segments);
        let room = segments * u64::from(cache.segment_sectors);
        let (room, stretches) = match cache.write_back {
            WriteBack::Off => return Hidden::default(),
            // What the arm writes may be followed by a command that is longer than the buffer.
            WriteBack::Appending | WriteBack::Flushed => (room + longest, segments),
            // In whatever pieces the firmware keeps it.
            WriteBack::Full => (room, u64::MAX),
        };
        Hidden {
            sectors: room.min(sectors),
            stretches,
        }
    }
}

/// What it costs to change between processes whose sectors lie apart.
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
