//! Clients that ask in a closed loop: each asks again after an answer and a pause.

use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::{NewRequest, Source};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Random numbers of a seed.
pub struct Draw(Pcg64Mcg);

impl Draw {
    pub fn of(seed: u64) -> Draw {
        Draw(Pcg64Mcg::seed_from_u64(seed))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub fn one_in(&mut self, several: u64) -> bool {
        self.below(several) == 0
    }
}

/// Behaviour of a client.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// Sectors of a request.
    pub len: u64,
    /// Requests that are asked for together.
    pub window: u64,
    /// Number of unanswered requests at which the client asks for the next window.
    pub low: u64,
    /// The longest pause before a window.
    pub pause: Nanos,
    /// One window in this number begins elsewhere; 1 is a random client, and 0 never moves.
    pub jumps: u64,
    /// Percent of requests that write.
    pub writes: u64,
    /// Percent of requests that flush.
    pub flushes: u64,
    /// Requests in all.
    pub requests: u64,
}

struct Client {
    habit: Habit,
    place: u64,
    asked: u64,
    unanswered: u64,
    /// Requests of the window to come, and their time.
    rest: u64,
    due: Time,
}

/// The clients of a volume.
pub struct Clients {
    draw: Draw,
    sectors: u64,
    clients: Vec<Client>,
    /// By cookie: the client.
    owners: Vec<usize>,
    answered: usize,
}

impl Clients {
    pub fn new(seed: u64, sectors: u64, habits: &[Habit]) -> Clients {
        let mut draw = Draw::of(seed);
        let client = |habit: &Habit| Client {
            habit: *habit,
            place: 8 * draw.below((sectors - habit.len) / 8),
            asked: 0,
            unanswered: 0,
            rest: habit.window,
            due: Time::from_nanos(draw.below(5_000_000)),
        };
        let clients = habits.iter().map(client).collect();
        Clients {
            draw,
            sectors,
            clients,
            owners: Vec::new(),
            answered: 0,
        }
    }

    pub fn asked(&self) -> u64 {
        self.owners.len() as u64
    }

    fn first(&self) -> Option<(Time, usize)> {
        let waiting = self.clients.iter().enumerate();
        let waiting = waiting.filter(|(_, client)| client.rest > 0);
        waiting.map(|(index, client)| (client.due, index)).min()
    }
}

impl Source for Clients {
    fn next_arrival(&self) -> Option<Time> {
        self.first().map(|(due, _)| due)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let (due, index) = self.first().filter(|(due, _)| *due <= now)?;
        let Clients { draw, clients, .. } = self;
        let client = &mut clients[index];
        let Habit { len, window, .. } = client.habit;
        let begins = client.rest == window;
        let moves = begins && client.habit.jumps > 0 && draw.one_in(client.habit.jumps);
        if moves || client.place + len > self.sectors {
            client.place = 8 * draw.below((self.sectors - len) / 8);
        }
        let op = match draw.below(100) {
            percent if percent < client.habit.flushes => Op::Flush,
            percent if percent < client.habit.flushes + client.habit.writes => Op::Write,
            _ => Op::Read,
        };
        let extent = match op {
            Op::Flush => Extent::default(),
            _ => Extent::at(client.place, len),
        };
        let flags = match op {
            Op::Write if client.habit.flushes > 0 && draw.one_in(8) => Flags::PREFLUSH,
            _ => Flags::NONE,
        };
        client.place += extent.len.get();
        client.asked += 1;
        client.unanswered += 1;
        client.rest = (client.rest - 1).min(client.habit.requests - client.asked);
        let cookie = self.owners.len() as u64;
        self.owners.push(index);
        Some(NewRequest {
            cookie,
            arrival: due,
            op,
            extent,
            flags,
            origin: Origin {
                process: index as u32 + 1,
                ..Origin::default()
            },
            class: Class::BEST_EFFORT,
        })
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.answered += 1;
        let client = &mut self.clients[self.owners[cookie as usize]];
        client.unanswered -= 1;
        let left = client.habit.requests - client.asked;
        if client.rest == 0 && left > 0 && client.unanswered <= client.habit.low {
            client.rest = client.habit.window.min(left);
            let pause = self.draw.below(client.habit.pause.as_nanos() + 1);
            client.due = now + Nanos::from_nanos(pause);
        }
    }

    fn done(&self) -> bool {
        let ended = |client: &Client| client.asked == client.habit.requests;
        self.answered == self.owners.len() && self.clients.iter().all(ended)
    }
}
