//! A drive with a number of outstanding commands, and the results of its clients.

use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::collections::VecDeque;

/// Place of a client's next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each command directly after the last.
    Forward,
    /// This number of sectors lies between two commands.
    Holes(u64),
    /// Each command directly before the last.
    Backward,
    /// Forward in groups of this number, each group from its last command to its first.
    Shuffled(u64),
    /// Anywhere.
    Random,
}

/// A client that keeps a number of commands outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub op: Op,
    pub order: Order,
    /// First sector and number of sectors of the client's range.
    pub place: (u64, u64),
    /// Sectors of a command.
    pub len: u64,
    pub outstanding: u32,
    pub fua: bool,
}

impl Client {
    /// Reads from the beginning of the disk on, one behind the other.
    pub fn reader(len: u64, outstanding: u32) -> Client {
        Client {
            op: Op::Read,
            order: Order::Forward,
            place: (0, u64::MAX),
            len,
            outstanding,
            fua: false,
        }
    }

    pub fn at(self, start: u64) -> Client {
        Client {
            place: (start, self.place.1),
            ..self
        }
    }

    /// The `n`th command.
    fn extent(&self, n: u64, random: &mut Random) -> Extent {
        let (start, room) = self.place;
        let at = match self.order {
            Order::Forward => n * self.len,
            Order::Holes(hole) => n * (self.len + hole),
            Order::Backward => room - (n + 1) * self.len,
            Order::Shuffled(group) => {
                let within = n % group;
                (n - within + (group - 1 - within)) * self.len
            }
            Order::Random => random.below(room / self.len) * self.len,
        };
        Extent::at(start + at, self.len)
    }
}

#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = u128::from(self.0 >> 32) * u128::from(bound);
        (high >> 32) as u64
    }
}

/// Results of a client.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub bytes: u64,
    /// Time of each command with the drive, in order of completion.
    pub took: Vec<Nanos>,
}

impl Got {
    pub fn longest(&self) -> Nanos {
        self.took.iter().copied().max().unwrap_or(Nanos::ZERO)
    }

    pub fn median(&self) -> Nanos {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(Nanos::ZERO)
    }
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub got: Vec<Got>,
    pub span: Nanos,
}

impl Outcome {
    /// Megabytes a second, of all clients.
    pub fn rate(&self) -> f64 {
        let bytes: u64 = self.got.iter().map(|got| got.bytes).sum();
        bytes as f64 / 1e6 / self.span.as_secs_f64()
    }

    /// Commands a second, of all clients.
    pub fn commands(&self) -> f64 {
        let commands: usize = self.got.iter().map(|got| got.took.len()).sum();
        commands as f64 / self.span.as_secs_f64()
    }
}

/// Runs the clients for `span` on a drive that takes `depth` commands at a time. Other commands wait for the drive in
/// order of arrival. A client sends the next command at each completion.
pub fn run(profile: &Profile, depth: u32, clients: &[Client], span: Nanos) -> Outcome {
    run_warm(profile, depth, clients, Nanos::ZERO, span)
}

/// As [`run`], for `span` from `warm` on, so that the filling of the buffer is left out.
pub fn run_warm(
    profile: &Profile,
    depth: u32,
    clients: &[Client],
    warm: Nanos,
    span: Nanos,
) -> Outcome {
    let mut drive = Drive::new(profile, 1);
    let capacity = drive.capacity().get();
    let mut random = Random(7);
    let mut got = vec![Got::default(); clients.len()];
    let mut issued = vec![0_u64; clients.len()];
    // By tag: the client, and the time of submission.
    let mut tags = vec![(0_usize, Time::ZERO); depth as usize];
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let mut held: VecDeque<usize> = VecDeque::new();
    let most = clients.iter().map(|client| client.outstanding).max();
    for turn in 0..most.unwrap_or(0) {
        let asks = (0..clients.len()).filter(|&c| turn < clients[c].outstanding);
        held.extend(asks);
    }
    let mut now = Time::ZERO;
    let begin = Time::ZERO + warm;
    let end = begin + span;
    while now < end {
        while let Some(&tag) = free.last() {
            let Some(client) = held.pop_front() else {
                break;
            };
            free.pop();
            tags[tag as usize] = (client, now);
            let mut asked = clients[client];
            asked.place.1 = asked.place.1.min(capacity - asked.place.0);
            let extent = asked.extent(issued[client], &mut random);
            issued[client] += 1;
            drive.submit(
                now,
                Command {
                    tag,
                    op: asked.op,
                    extent,
                    fua: asked.fua,
                    high: false,
                },
            );
        }
        now = drive.next_event().expect("something is under way");
        while let Some(done) = drive.poll(now) {
            assert_eq!(done.result, Ok(()));
            let (client, submitted) = tags[done.tag as usize];
            free.push(done.tag);
            held.push_back(client);
            if begin <= done.at && done.at <= end {
                got[client].bytes += clients[client].len * 512;
                got[client].took.push(done.at - submitted);
            }
        }
    }
    Outcome { got, span }
}
