//! Shares of a disk's head time between clients.
//!
//! # Problem
//!
//! A scheduler chooses among all requests that it has. A client with hundreds of requests fills the scheduler, and the
//! one request of another client waits behind them: for seconds under schedulers that serve in order of arrival or age.
//!
//! # How it works
//!
//! Requests wait here, by client, before they go to the engine. The engine has at most as many requests as it serves in
//! `wait`, by the mean time between completions, at most 128, and at least `depth`. So a new request waits for others
//! of that time.
//! A drive may still leave a request and serve other clients. If a request was in the engine for three times `wait`, no
//! request of a client that was served more follows until the request is done.
//!
//! With few requests each, all clients fit into `wait`, and nobody would wait here. Weights still count: while clients of
//! different weights are active, a client whose served time is `wait` ahead of a client with requests in the engine waits.
//!
//! The next request is that of the client with the least *served* time over its weight. The served time counts the
//! time between completions for the client whose request ended, and the mean of that for requests in the engine. A
//! client that was idle begins with the served time of the least served active client, so nobody saves time up.
//!
//! Urgent requests pass: they neither wait here nor count.
//!
//! # Source
//!
//! Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM '96), with measured times in place of sizes. The bound on what
//! the engine has is our own.

use headtime_units::{Nanos, Time};
use std::collections::VecDeque;

/// Weight of a new time in a mean: 1/8, as for round trips of TCP (RFC 6298).
const MEAN_SHARE: u64 = 8;

/// Requests that the engine has at most, unless `depth` is more. Times vary: a drive's buffer takes writes at once until
/// the buffer is full, so the mean says little of the requests that the engine has already. A drive that serves 128
/// requests a second needs a second for them.
const INSIDE_MAX: u32 = 128;

/// Time in the engine after which a request keeps out requests of others, in units of `wait`. A request waits for one unit
/// in the mean. With two units the engine would be closed often, and random reads would lose 2 % of their rate.
const LONGEST: u64 = 3;

/// Clients without requests that are remembered. With more, the next new client takes the place of the one that was idle
/// for longest, which returns as a new client.
const IDLE_MAX: usize = 64;

/// Requests of clients before they go to the engine.
///
/// Invariants:
/// - `waiting` = Σ of the lengths of `queue`.
/// - Σ of `inside` of the clients = number of places of `held` that are not in `free`.
/// - `oldest` ≤ `since` of each of these places.
#[derive(Debug)]
pub struct Shares<T> {
    clients: Vec<Client<T>>,
    depth: u32,
    wait: Nanos,
    waiting: usize,
    /// Requests in the engine, and places of requests that are done.
    held: Vec<Held>,
    free: Vec<u32>,
    oldest: Time,
    /// True if the next request was refused since a client that was served less has requests in the engine. The next
    /// completion or arrival ends this.
    closed: bool,
    /// Mean time between two completions while the engine has requests.
    mean: Nanos,
    last_done: Time,
}

#[derive(Debug)]
struct Client<T> {
    name: u64,
    queue: VecDeque<T>,
    inside: u32,
    weight: u64,
    /// Served time over the weight, in nanoseconds.
    served: u64,
    /// Mean time between completions that counts for a request of the client.
    mean: Nanos,
    /// Time of the last completion.
    last_done: Time,
}

impl<T> Client<T> {
    fn is_active(&self) -> bool {
        self.inside > 0 || !self.queue.is_empty()
    }

    /// Served time over the weight, with the expected time of the requests in the engine.
    fn served_at_end(&self) -> u64 {
        let inside = self.mean.as_nanos().saturating_mul(u64::from(self.inside));
        self.served.saturating_add(inside / self.weight)
    }
}

/// A request in the engine.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Place of the client. `None`: the request is done.
    client: Option<u32>,
    since: Time,
}

/// Place of a request in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareOf(u32);

/// ClientTurn of a client's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTurn {
    /// The request may go.
    Now,
    /// The client is passed over, and keeps its served time.
    Later,
    /// The client is passed over, and saves nothing up.
    Limited,
}

impl<T> Shares<T> {
    /// Creates shares without clients. `depth` is the number of requests that the engine always gets.
    pub fn new(depth: u32, wait: Nanos) -> Shares<T> {
        Shares {
            clients: Vec::new(),
            depth: depth.max(1),
            wait,
            waiting: 0,
            held: Vec::new(),
            free: Vec::new(),
            oldest: Time::ZERO,
            closed: false,
            mean: Nanos::ZERO,
            last_done: Time::ZERO,
        }
    }

    /// Number of requests that wait here.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a request of the client with this name and weight.
    pub fn push(&mut self, name: u64, weight: u32, request: T) {
        self.push_at(name, weight, request, VecDeque::len);
    }

    /// Adds a request of a client at a place in the client's queue.
    pub fn push_at(
        &mut self,
        name: u64,
        weight: u32,
        request: T,
        at: impl FnOnce(&VecDeque<T>) -> usize,
    ) {
        let place = self.place(name);
        if !self.clients[place].is_active() {
            let active = self.clients.iter().filter(|of| of.is_active());
            let least = active.map(|of| of.served).min();
            let of = &mut self.clients[place];
            of.weight = u64::from(weight).max(1);
            of.served = of.served.max(least.unwrap_or_default());
        }
        let queue = &mut self.clients[place].queue;
        queue.insert(at(queue), request);
        self.waiting += 1;
        self.closed = false;
    }

    fn place(&mut self, name: u64) -> usize {
        if let Some(place) = self.clients.iter().position(|of| of.name == name) {
            return place;
        }
        let idle = self
            .clients
            .iter()
            .enumerate()
            .filter(|(_, of)| !of.is_active());
        let (count, longest) = idle.fold((0, None), |(count, longest), (place, of)| {
            let place = Some((of.last_done, place));
            (
                count + 1,
                longest.map_or(place, |longest| place.min(Some(longest))),
            )
        });
        let client = Client {
            name,
            queue: VecDeque::new(),
            inside: 0,
            weight: 1,
            served: 0,
            mean: Nanos::ZERO,
            last_done: Time::ZERO,
        };
        match longest {
            Some((_, place)) if count >= IDLE_MAX => {
                self.clients[place] = client;
                place
            }
            _ => {
                self.clients.push(client);
                self.clients.len() - 1
            }
        }
    }

    /// True if the engine may have another request, and the first request of a client may go.
    pub fn has_next(&self, turn: impl Fn(&T) -> ClientTurn) -> bool {
        let mut first = self.clients.iter().filter_map(|of| of.queue.front());
        self.waiting > 0 && self.has_room() && first.any(|first| turn(first) == ClientTurn::Now)
    }

    /// True if the engine may have another request. Before the first completion the mean is not known.
    pub fn has_room(&self) -> bool {
        let inside = self.inside();
        let is_known = self.mean > Nanos::ZERO && inside < INSIDE_MAX;
        let is_short = || self.mean * u64::from(inside) < self.wait;
        !self.closed && (inside < self.depth || is_known && is_short())
    }

    /// Number of requests in the engine.
    fn inside(&self) -> u32 {
        (self.held.len() - self.free.len()) as u32
    }

    /// Takes the next request for the engine, if there is one and the engine may have another.
    pub fn pop(&mut self, now: Time, turn: impl Fn(&T) -> ClientTurn) -> Option<(ShareOf, T)> {
        if self.waiting == 0 || !self.has_room() {
            return None;
        }
        let (mut next, mut is_limited) = (None, false);
        // Weights of the active clients, and the least served time of clients with requests in the engine.
        let (mut lightest, mut heaviest, mut least) = (u64::MAX, 0, u64::MAX);
        for (of, client) in self.clients.iter().zip(0..) {
            if of.is_active() {
                (lightest, heaviest) = (lightest.min(of.weight), heaviest.max(of.weight));
            }
            if of.inside > 0 {
                least = least.min(of.served_at_end());
            }
            let Some(first) = of.queue.front() else {
                continue;
            };
            let turn = turn(first);
            is_limited |= turn == ClientTurn::Limited;
            if turn != ClientTurn::Now {
                continue;
            }
            let key = (of.served_at_end(), client);
            next = Some(next.map_or(key, |next| key.min(next)));
        }
        let (served_at_end, client) = next?;
        if is_limited {
            let served = self.clients[client as usize].served;
            let limited = self.clients.iter_mut();
            let is_limited = |first: &T| turn(first) == ClientTurn::Limited;
            let limited = limited.filter(|of| of.queue.front().is_some_and(is_limited));
            limited.for_each(|of| of.served = of.served.max(served));
        }
        let is_ahead =
            lightest < heaviest && served_at_end.saturating_sub(self.wait.as_nanos()) > least;
        self.closed = is_ahead || self.leaves_another_waiting(now, client);
        if self.closed {
            return None;
        }
        if self.inside() == 0 {
            self.last_done = now;
        }
        let next = &mut self.clients[client as usize];
        let request = next.queue.pop_front()?;
        next.inside += 1;
        self.waiting -= 1;
        Some((self.hold(client, now), request))
    }

    /// True if a request of another client, which was served less, has been in the engine for too long.
    fn leaves_another_waiting(&mut self, now: Time, client: u32) -> bool {
        let limit = self.wait * LONGEST;
        if now.saturating_since(self.oldest) < limit {
            return false;
        }
        let held = self.held.iter().filter(|held| held.client.is_some());
        self.oldest = held.clone().map(|held| held.since).min().unwrap_or(now);
        let served = |client: u32| self.clients[client as usize].served;
        let late = held.filter(|held| now.saturating_since(held.since) >= limit);
        let mut others = late.filter_map(|held| held.client.filter(|of| *of != client));
        others.any(|other| served(other) < served(client))
    }

    /// Notes a request that goes to the engine.
    fn hold(&mut self, client: u32, now: Time) -> ShareOf {
        let held = Held {
            client: Some(client),
            since: now,
        };
        match self.free.pop() {
            Some(place) => {
                self.held[place as usize] = held;
                ShareOf(place)
            }
            None => {
                self.held.push(held);
                ShareOf(self.held.len() as u32 - 1)
            }
        }
    }

    /// Notes that a request of a client has ended. Each request that [`Shares::pop`] returned has to end once, here or by
    /// [`Shares::passed_over`].
    pub fn done(&mut self, of: ShareOf, now: Time) {
        let time = now.saturating_since(self.last_done);
        self.last_done = now;
        self.mean = towards(self.mean, time);
        let of = self.release(of);
        of.mean = towards(of.mean, time);
        of.served = of.served.saturating_add(time.as_nanos() / of.weight);
        of.last_done = now;
    }

    /// Notes that a request did not go to the engine after all.
    pub fn passed_over(&mut self, of: ShareOf) {
        self.release(of);
    }

    /// Frees the place of a request, and returns the client.
    fn release(&mut self, ShareOf(place): ShareOf) -> &mut Client<T> {
        let client = self.held[place as usize].client.take();
        self.free.push(place);
        self.closed = false;
        let of = &mut self.clients[client.expect("each request ends once") as usize];
        of.inside -= 1;
        of
    }

    /// Takes the requests out that are over, for the caller to answer.
    pub fn take_out(&mut self, is_over: &mut impl FnMut(&T) -> bool, out: &mut Vec<T>) {
        let before = out.len();
        for client in &mut self.clients {
            take_out(&mut client.queue, is_over, out);
        }
        self.waiting -= out.len() - before;
    }

    /// Takes all requests out, for the caller to answer.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.waiting = 0;
        let clients = std::mem::take(&mut self.clients).into_iter();
        clients.flat_map(|of| of.queue)
    }
}

/// Moves requests that are over from `queue` to `out`. Other requests keep their order.
pub fn take_out<T>(
    queue: &mut VecDeque<T>,
    is_over: &mut impl FnMut(&T) -> bool,
    out: &mut Vec<T>,
) {
    for _ in 0..queue.len() {
        if let Some(request) = queue.pop_front() {
            match is_over(&request) {
                true => out.push(request),
                false => queue.push_back(request),
            }
        }
    }
}

/// The mean with a new time. The first time is the first mean.
fn towards(mean: Nanos, time: Nanos) -> Nanos {
    match mean {
        Nanos::ZERO => time,
        mean => {
            mean + time.saturating_sub(mean) / MEAN_SHARE - mean.saturating_sub(time) / MEAN_SHARE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    /// Serves one request at a time, `service` ms each, for `ms`. Returns the requests served by client. Clients whose
    /// `depth` is given always have that many requests.
    fn serve(weights: &[u32], depths: &[u32], services: &[u64], ms: u64) -> Vec<u64> {
        let mut shares = Shares::new(4, Nanos::from_millis(100));
        let push = |shares: &mut Shares<usize>, client: usize| {
            shares.push(client as u64, weights[client], client);
        };
        let mut served = vec![0; weights.len()];
        let mut engine = VecDeque::new();
        for (client, depth) in depths.iter().enumerate() {
            (0..*depth).for_each(|_| push(&mut shares, client));
        }
        let mut now = 0;
        while now < ms {
            while let Some(next) = shares.pop(at(now), |_| ClientTurn::Now) {
                engine.push_back(next);
            }
            let (share, client) = engine.pop_front().expect("a client always asks");
            now += services[client];
            shares.done(share, at(now));
            served[client] += 1;
            push(&mut shares, client);
        }
        served
    }

    #[test]
    fn clients_that_always_ask_have_equal_time_whatever_their_depths_and_sizes() {
        let served = serve(&[1, 1], &[100, 20], &[4, 4], 8_000);
        assert!(served[0].abs_diff(served[1]) < 60, "{served:?}");
        let served = serve(&[1, 1], &[50, 50], &[8, 2], 8_000);
        assert!((served[0] * 8).abs_diff(served[1] * 2) < 400, "{served:?}");
    }

    #[test]
    fn weights_divide_the_time() {
        let served = serve(&[3, 1], &[100, 100], &[4, 4], 8_000);
        assert!((1_450..1_550).contains(&served[0]), "{served:?}");
        // The engine has room for the requests of both.
        for (weight, depth, time) in [(2, 2, 6), (2, 6, 6), (3, 4, 12), (10, 3, 2), (2, 16, 1)] {
            let served = serve(&[weight, 1], &[depth, depth], &[time, time], 24_000);
            let fair = (served[0] + served[1]) * u64::from(weight) / u64::from(weight + 1);
            assert!(
                served[0].abs_diff(fair) <= fair / 20,
                "{weight} {depth} {time}: {served:?}"
            );
        }
        // Clients of other depths and times.
        let served = serve(&[2, 1], &[3, 16], &[6, 6], 24_000);
        assert!((2_600..2_720).contains(&served[0]), "{served:?}");
        let served = serve(&[2, 1], &[6, 6], &[2, 8], 24_000);
        assert!(
            (served[0] * 2).abs_diff(served[1] * 16) < 1_600,
            "{served:?}"
        );
        // The client with the weight uses less than its share.
        let served = serve(&[1, 1, 4], &[6, 6, 0], &[6, 6, 6], 24_000);
        assert!(served[0].abs_diff(served[1]) < 20, "{served:?}");
    }

    #[test]
    fn a_client_with_one_request_waits_for_the_bound_alone() {
        // The engine has 25 requests of 4 ms in 100 ms. In between the lone client has one request served.
        let served = serve(&[1, 1], &[1_000, 1], &[4, 4], 10_000);
        assert!((90..=110).contains(&served[1]), "{served:?}");
    }

    #[test]
    fn an_idle_client_saves_nothing_up() {
        let mut shares = Shares::new(1, Nanos::ZERO);
        for ms in 0..100 {
            shares.push(0, 1, 0);
            let (share, _) = shares.pop(at(ms), |_| ClientTurn::Now).unwrap();
            shares.done(share, at(ms + 1));
        }
        (0..20).for_each(|_| shares.push(0, 1, 0));
        (0..20).for_each(|_| shares.push(1, 1, 1));
        let mut order = Vec::new();
        for ms in 100..120 {
            let (share, client) = shares.pop(at(ms), |_| ClientTurn::Now).unwrap();
            shares.done(share, at(ms + 1));
            order.push(client);
        }
        let ones = order.iter().filter(|client| **client == 1).count();
        assert!((9..=11).contains(&ones), "{order:?}");
    }

    #[test]
    fn a_client_that_may_not_go_keeps_nobody_out_and_saves_nothing_up() {
        let mut shares = Shares::new(1, Nanos::ZERO);
        (0..200).for_each(|_| (0..2).for_each(|client| shares.push(client, 1, client)));
        let mut order = Vec::new();
        for ms in 0..200 {
            let (share, client) = shares
                .pop(at(ms), |client| match *client == 1 || ms >= 100 {
                    true => ClientTurn::Now,
                    false => ClientTurn::Limited,
                })
                .unwrap();
            shares.done(share, at(ms + 1));
            order.push(client);
        }
        assert_eq!(order[..100], [1; 100]);
        let ones = order[100..].iter().filter(|client| **client == 1).count();
        assert!((49..=51).contains(&ones), "{order:?}");
        assert!(shares.has_next(|_| ClientTurn::Now) && !shares.has_next(|_| ClientTurn::Later));
        assert!(shares.pop(at(200), |_| ClientTurn::Later).is_none());
    }

    #[test]
    fn a_request_that_a_drive_leaves_keeps_others_out_after_three_waits() {
        let mut shares = Shares::new(4, Nanos::from_millis(100));
        shares.push(0, 1, ());
        let (left, ()) = shares
            .pop(at(0), |_| ClientTurn::Now)
            .expect("there is room");
        let mut inside = VecDeque::new();
        let mut served = 0;
        for ms in 0..1_000 {
            shares.push(1, 1, ());
            inside.extend(std::iter::from_fn(|| {
                shares.pop(at(ms), |_| ClientTurn::Now)
            }));
            if let Some((share, ())) = inside.pop_front() {
                shares.done(share, at(ms));
                served = ms;
            }
        }
        assert_eq!(served, 299);
        assert!(!shares.has_room());
        // The client itself has no reason to wait.
        shares.push(0, 1, ());
        shares.done(left, at(1_000));
        assert!(shares.has_room() && shares.pop(at(1_000), |_| ClientTurn::Now).is_some());
    }

    #[test]
    fn a_request_that_a_drive_leaves_does_not_keep_out_a_client_that_was_served_less() {
        let mut shares = Shares::new(4, Nanos::from_millis(100));
        for ms in 0..50 {
            shares.push(0, 1, ());
            let (share, ()) = shares
                .pop(at(ms), |_| ClientTurn::Now)
                .expect("there is room");
            shares.done(share, at(ms + 1));
        }
        shares.push(0, 1, ());
        shares.push(0, 1, ());
        let (left, ()) = shares
            .pop(at(50), |_| ClientTurn::Now)
            .expect("there is room");
        shares.push(1, 1, ());
        // Client 1 begins with the served time of client 0, which is then served more.
        shares.done(left, at(60));
        let (other, ()) = shares
            .pop(at(60), |_| ClientTurn::Now)
            .expect("there is room");
        assert!(
            shares.pop(at(60), |_| ClientTurn::Now).is_some(),
            "the drive leaves this request of client 0"
        );
        shares.done(other, at(61));
        shares.push(1, 1, ());
        assert!(
            shares.pop(at(900), |_| ClientTurn::Now).is_some(),
            "served less"
        );
        shares.push(0, 1, ());
        assert!(
            shares.pop(at(900), |_| ClientTurn::Now).is_some(),
            "its own request waits"
        );
    }

    #[test]
    fn a_disk_that_becomes_slow_has_no_more_than_128_requests_of_another_client() {
        let mut shares = Shares::new(1, Nanos::from_millis(500));
        let mut inside = VecDeque::new();
        (0..5_000).for_each(|_| shares.push(0, 1, 0));
        let mut now = Time::ZERO;
        // A buffer takes 1,000 writes at once.
        for _ in 0..1_000 {
            inside.extend(std::iter::from_fn(|| shares.pop(now, |_| ClientTurn::Now)));
            now += Nanos::from_micros(10);
            let (share, _) = inside.pop_front().expect("one is inside");
            shares.done(share, now);
        }
        inside.extend(std::iter::from_fn(|| shares.pop(now, |_| ClientTurn::Now)));
        assert_eq!(inside.len(), 128);
        // Now each takes 8 ms, in order of arrival. Another client comes.
        shares.push(1, 1, 1);
        let mut served = 0;
        loop {
            now += Nanos::from_millis(8);
            let (share, client) = inside.pop_front().expect("one is inside");
            shares.done(share, now);
            if client == 1 {
                break;
            }
            served += 1;
            inside.extend(std::iter::from_fn(|| shares.pop(now, |_| ClientTurn::Now)));
        }
        assert!((64..=128).contains(&served), "{served}");
    }

    #[test]
    fn a_thousand_clients_that_come_and_go_take_no_more_memory_than_some() {
        let mut shares = Shares::new(1, Nanos::ZERO);
        for name in 0..1_000 {
            shares.push(name, 1, name);
            let (share, who) = shares.pop(at(name), |_| ClientTurn::Now).unwrap();
            assert_eq!(who, name);
            shares.done(share, at(name + 1));
        }
        assert!(shares.clients.len() <= IDLE_MAX + 1);
        shares.push(5, 1, 5);
        assert_eq!(shares.drain().collect::<Vec<_>>(), [5]);
        assert_eq!(shares.waiting(), 0);
    }

    #[test]
    fn requests_that_are_taken_out_do_not_change_the_order_of_the_others() {
        let mut shares = Shares::new(10, Nanos::from_secs(1));
        (0..8).for_each(|number| shares.push(number % 2, 1, number));
        let mut out = Vec::new();
        shares.take_out(&mut |number| [1, 2, 4].contains(number), &mut out);
        out.sort_unstable();
        assert_eq!((out, shares.waiting()), (vec![1, 2, 4], 5));
        let rest: Vec<u64> = std::iter::from_fn(|| shares.pop(at(0), |_| ClientTurn::Now))
            .map(|(_, number)| number)
            .collect();
        for client in 0..2 {
            let of_client = rest.iter().filter(|number| **number % 2 == client);
            assert!(of_client.is_sorted(), "{rest:?}");
        }
        assert_eq!(rest.len(), 5);
    }
}
