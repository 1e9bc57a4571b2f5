//! The rule of the coordinator, written a second time: from sections 2.1 and 2.2 of the paper, the design note on arrays and
//! the crate's page, without the product's code.

use headtime_engine::conduct::{Conduct, Conductor};
use headtime_engine::{Command, Engine, Few, Member, Part, RequestId, Seen};
use headtime_sched::{Directive, Request, ServiceCurve, StreamConfig};
use headtime_units::{Lba, Nanos, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most streams at a time.
const STREAMS_MAX: usize = 256;

/// Time for which a stream is unusable.
const UNUSABLE: Nanos = Nanos::from_secs(1);

/// A directive, and the member whose scheduler obeys.
pub type Order = (Member, Conduct);

/// A part of a client's request that has not ended.
#[derive(Clone, Copy, Debug)]
struct Piece {
    of: u64,
    member: Member,
    /// Where the part begins in the volume.
    start: Lba,
    stream: Option<u64>,
    issued: bool,
    /// Number of parts that came before.
    number: u64,
}

/// A client's request that has not ended.
#[derive(Clone, Debug)]
struct Whole {
    sectors_left: u64,
    stream: Option<u64>,
}

/// Time that counts as a wait.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    passed: Nanos,
    since: Option<Time>,
}

impl Clock {
    fn read(&self, now: Time) -> Nanos {
        let since = self
            .since
            .map_or(Nanos::ZERO, |since| now.saturating_since(since));
        self.passed + since
    }

    fn run(&mut self, now: Time, runs: bool) {
        self.passed = self.read(now);
        self.since = runs.then_some(now);
    }
}

/// A physical stream.
#[derive(Clone, Copy, Debug, Default)]
struct Physical {
    /// Steps; 0 before the first.
    size: u64,
    /// True if a part has ended on the disk since the step began.
    step_over: bool,
    end: Lba,
    newest: u64,
    newest_issued: bool,
    outstanding: u32,
    /// Reading of the stream's clock when the last part ended.
    ended: Nanos,
    limit: Option<Nanos>,
}

/// A virtual stream.
#[derive(Clone, Debug)]
struct Virtual {
    key: u64,
    size: u64,
    /// True if a request has ended since the step began.
    step_over: bool,
    end: Lba,
    /// Number of the newest request.
    newest: u64,
    outstanding: u32,
    /// When the last request ended.
    ended: Time,
    clock: Clock,
    usable: Time,
    /// When it was last served.
    served: Option<Time>,
    /// True if all heads are at the stream.
    at: bool,
    disks: Vec<Physical>,
}

#[derive(Clone, Copy, Debug)]
struct Served {
    key: u64,
    until: Time,
}

pub struct Second {
    members: u16,
    config: StreamConfig,
    curve: Arc<ServiceCurve>,
    streams: Vec<Virtual>,
    keys: u64,
    pieces: BTreeMap<u64, Piece>,
    wholes: BTreeMap<u64, Whole>,
    numbers: u64,
    /// By member: the stream of the last command.
    last: Vec<Option<u64>>,
    /// By member: true if the head is at the stream that is served.
    there: Vec<bool>,
    served: Option<Served>,
    /// The stream whose slice ended, until a request of others goes.
    ended: Option<u64>,
    orders: Vec<Order>,
}

/// A wait and a service that have to be shorter than a limit together.
#[derive(Clone, Copy, Debug)]
struct Try {
    wait: Nanos,
    service: Nanos,
    limit: Nanos,
    size: u64,
    threshold: u64,
}

impl Second {
    pub fn new(members: u16, config: &StreamConfig, curve: Arc<ServiceCurve>) -> Second {
        Second {
            members,
            config: *config,
            curve,
            streams: Vec::new(),
            keys: 0,
            pieces: BTreeMap::new(),
            wholes: BTreeMap::new(),
            numbers: 0,
            last: vec![None; members.into()],
            there: vec![false; members.into()],
            served: None,
            ended: None,
            orders: Vec::new(),
        }
    }

    /// Directives that have not been taken yet.
    pub fn take_orders(&mut self, now: Time, engines: &Few<Engine>) -> Vec<Order> {
        let mut taken = Vec::new();
        while let Some(order) = self.order(now, engines) {
            taken.push(order);
        }
        taken
    }

    fn stream(&mut self, key: u64) -> Option<&mut Virtual> {
        self.streams.iter_mut().find(|stream| stream.key == key)
    }

    fn virtual_service(&self, from: Lba, to: Lba) -> Nanos {
        let distance = Lba::new(from.distance(to).get() / u64::from(self.members));
        match to >= from {
            true => self.curve.service(Lba::ZERO, distance),
            false => self.curve.service(distance, Lba::ZERO),
        }
    }

    fn has_second_chance(&self, size: u64, threshold: u64) -> bool {
        let tolerance = u128::from(self.config.tolerance.0);
        tolerance > 0
            && u128::from(size) * 1_000_000 >= u128::from(threshold) * (1_000_000 + tolerance)
    }

    fn prolonged(&self, limit: Nanos) -> Nanos {
        let more = u128::from(limit.as_nanos()) * u128::from(self.config.tolerance.0) / 1_000_000;
        limit + Nanos::from_nanos(more as u64)
    }

    /// The size of the stream before the child, if the request is one.
    fn child_of(&self, try_: Try) -> Option<u64> {
        let Try {
            wait,
            service,
            limit,
            size,
            threshold,
        } = try_;
        if wait + service < limit {
            return Some(size);
        }
        let least = self.curve.least();
        let first_over = wait + least >= limit;
        let second = first_over && limit > least && self.has_second_chance(size, threshold);
        (second && wait + service < self.prolonged(limit)).then_some(threshold)
    }

    /// Longest wait before a physical stream ends, second chance included.
    fn longest_wait(&self, limit: Nanos, size: u64) -> Nanos {
        let least = self.curve.least();
        match limit > least && self.has_second_chance(size, self.config.threshold) {
            true => self.prolonged(limit).saturating_sub(least),
            false => limit.saturating_sub(least),
        }
    }

    fn candidate(&self, now: Time, engine: &Engine) -> Option<(Piece, Lba)> {
        let (id, request) = engine.candidate(now)?;
        let RequestId::Client(id) = id else {
            return None;
        };
        Some((*self.pieces.get(&id)?, request.extent.start))
    }

    fn find_parent(
        &self,
        now: Time,
        start: Lba,
        candidate: Option<(Piece, Lba)>,
    ) -> Option<(usize, u64)> {
        let tried = self
            .streams
            .iter()
            .enumerate()
            .filter_map(|(index, stream)| {
                let together = stream.outstanding > 0;
                let service = self.virtual_service(stream.end, start);
                if together && !stream.step_over && stream.end == start {
                    return Some((index, stream.size, service));
                }
                let size = self.child_of(Try {
                    wait: match together {
                        true => Nanos::ZERO,
                        false => now.saturating_since(stream.ended),
                    },
                    service,
                    limit: match candidate {
                        Some((piece, _)) if piece.stream == Some(stream.key) => self.curve.mean(),
                        Some((piece, _)) => self.virtual_service(stream.end, piece.start),
                        None if together => self.curve.near(),
                        None => self.curve.mean(),
                    },
                    size: stream.size,
                    threshold: self.config.threshold * u64::from(self.members),
                })?;
                Some((index, size, service))
            });
        let best = tried.min_by_key(|(index, _, service)| {
            let stream = &self.streams[*index];
            (*service, u64::MAX - stream.size, u64::MAX - stream.newest)
        });
        best.map(|(index, size, _)| (index, size))
    }

    /// Joins a client's request to a stream.
    fn join(
        &mut self,
        now: Time,
        whole: &Request<()>,
        candidate: Option<(Piece, Lba)>,
    ) -> Option<u64> {
        let number = self.numbers;
        let start = whole.extent.start;
        let found = self.find_parent(now, start, candidate);
        let index = match found {
            Some((index, size)) => {
                let stream = &mut self.streams[index];
                stream.size = size + 1;
                stream.step_over = false;
                index
            }
            None => {
                self.forget(now);
                if self.streams.len() >= STREAMS_MAX {
                    return None;
                }
                self.keys += 1;
                self.streams.push(Virtual {
                    key: self.keys,
                    size: 1,
                    step_over: false,
                    end: Lba::ZERO,
                    newest: 0,
                    outstanding: 0,
                    ended: now,
                    clock: Clock::default(),
                    usable: now,
                    served: None,
                    at: false,
                    disks: vec![Physical::default(); self.members.into()],
                });
                self.streams.len() - 1
            }
        };
        let stream = &mut self.streams[index];
        stream.end = whole.extent.end();
        stream.newest = number;
        stream.outstanding += 1;
        Some(stream.key)
    }

    /// Forgets streams that can have no child any more.
    fn forget(&mut self, now: Time) {
        let longest = self.curve.points().iter().map(|(_, time)| *time).max();
        let longest = longest.expect("a curve has points").as_nanos();
        let longest = Nanos::from_nanos(longest * self.curve.backward().0 / 1_000_000);
        let longest = self.prolonged(longest.max(self.curve.mean()));
        let served = self.served.map(|served| served.key);
        self.streams.retain(|stream| {
            stream.outstanding > 0
                || served == Some(stream.key)
                || now.saturating_since(stream.ended) <= longest
        });
    }

    /// Extends the physical stream of a disk by a part. Returns false if it is broken.
    fn extend(
        &mut self,
        now: Time,
        key: u64,
        part: &Part,
        member: Member,
        candidate: Option<(Piece, Lba)>,
    ) -> bool {
        let Some(stream) = self.streams.iter().find(|stream| stream.key == key) else {
            return true;
        };
        let mut disk = stream.disks[member.index()];
        let mut whole = true;
        if disk.size == 0 {
            disk.size = 1;
        } else if !(disk.outstanding > 0 && !disk.step_over && disk.end == part.extent.start) {
            let new_step = disk.outstanding == 0 || disk.step_over;
            disk.step_over = false;
            let together = disk.outstanding > 0;
            let limit = disk.limit.unwrap_or_else(|| match candidate {
                Some((piece, _)) if piece.stream == Some(key) && together => self.curve.near(),
                Some((piece, _)) if piece.stream == Some(key) => self.curve.mean(),
                Some((_, at)) => self.curve.service(disk.end, at),
                None if together => self.curve.near(),
                None => self.curve.mean(),
            });
            let size = self.child_of(Try {
                wait: match together {
                    true => Nanos::ZERO,
                    false => stream.clock.read(now).saturating_sub(disk.ended),
                },
                service: self.curve.service(disk.end, part.extent.start),
                limit,
                size: disk.size,
                threshold: self.config.threshold,
            });
            whole = size.is_some();
            disk.size = size.map_or(1, |size| size + u64::from(new_step));
        }
        disk.end = part.extent.end();
        disk.newest = part.id;
        disk.newest_issued = false;
        disk.outstanding += 1;
        disk.limit = None;
        let stream = self.stream(key).expect("found before");
        stream.disks[member.index()] = disk;
        whole
    }

    /// Sets the clock of a stream: it runs while no request is outstanding, and while all heads are at the stream that is
    /// served.
    fn set_clock(&mut self, now: Time, key: u64) {
        let served = self.served.is_some_and(|served| served.key == key);
        let at_stream = served && self.there.iter().all(|there| *there);
        if let Some(stream) = self.stream(key) {
            let runs = stream.outstanding == 0 || at_stream;
            stream.clock.run(now, runs);
            if at_stream && !stream.at {
                let reading = stream.clock.read(now);
                for disk in &mut stream.disks {
                    disk.ended = reading;
                }
            }
            stream.at = at_stream;
        }
    }

    fn is_ready(&self, now: Time, stream: &Virtual) -> bool {
        let established = |disk: &Physical| disk.size >= self.config.threshold;
        stream.size >= self.config.threshold * u64::from(self.members)
            && now >= stream.usable
            && stream.disks.iter().all(established)
    }

    fn serve(&mut self, now: Time, key: u64) {
        let until = now.saturating_add(self.config.slice);
        self.served = Some(Served { key, until });
        let members = (0..self.members).map(Member);
        self.orders
            .extend(members.map(|member| (member, Directive::Dedicate { until }.into())));
        let queued = self.pieces.iter();
        let queued = queued.filter(|(_, piece)| piece.stream == Some(key) && !piece.issued);
        let mut queued: Vec<_> = queued
            .map(|(id, piece)| (piece.number, piece.member, *id))
            .collect();
        queued.sort_unstable();
        let marks = queued.into_iter().map(|(_, member, id)| {
            let mark = Directive::Mark(RequestId::Client(id)).into();
            (member, mark)
        });
        self.orders.extend(marks);
    }

    fn release(&mut self, now: Time) -> Option<Served> {
        let served = self.served.take()?;
        let members = (0..self.members).map(Member);
        self.orders
            .extend(members.map(|member| (member, Directive::Release.into())));
        self.set_clock(now, served.key);
        Some(served)
    }

    fn break_off(&mut self, now: Time) {
        if let Some(served) = self.release(now)
            && let Some(stream) = self.stream(served.key)
        {
            stream.usable = now.saturating_add(UNUSABLE);
        }
    }

    /// Ends the slice that is over.
    fn pass(&mut self, now: Time) {
        if let Some(served) = self.served
            && now >= served.until
            && self.others_wait(served.key)
        {
            self.release(now);
            self.ended = Some(served.key);
        }
    }

    fn others_wait(&self, key: u64) -> bool {
        self.pieces.values().any(|piece| piece.stream != Some(key))
    }

    fn issued(&mut self, now: Time, member: Member, request_start: Lba, ids: &[u64]) {
        for id in ids {
            if let Some(piece) = self.pieces.get_mut(id) {
                piece.issued = true;
            }
        }
        let pieces = ids.iter().filter_map(|id| self.pieces.get(id));
        let mut keys: Vec<u64> = pieces.filter_map(|piece| piece.stream).collect();
        keys.dedup();
        for stream in &mut self.streams {
            let own = keys.contains(&stream.key);
            let disk = &mut stream.disks[member.index()];
            if disk.size == 0 {
                continue;
            }
            if own {
                disk.newest_issued |= ids.contains(&disk.newest);
                disk.limit = None;
            } else if disk.newest_issued && disk.limit.is_none() && !own {
                disk.limit = Some(self.curve.service(disk.end, request_start));
            }
        }
        self.last[member.index()] = keys.first().copied();
        if let Some(served) = self.served {
            let own = keys.contains(&served.key);
            self.there[member.index()] = own && self.there[member.index()];
        }
        if self.ended.is_some_and(|ended| !keys.contains(&ended)) {
            self.ended = None;
        }
        if let Some(served) = self.served {
            self.set_clock(now, served.key);
        }
        for key in keys {
            let Some(stream) = self.streams.iter().find(|stream| stream.key == key) else {
                continue;
            };
            if self.served.is_none()
                && !self.config.slice.is_zero()
                && self.ended != Some(key)
                && self.is_ready(now, stream)
                && self.others_wait(key)
            {
                let ready = self.streams.iter().filter(|stream| {
                    stream.outstanding > 0
                        && self.is_ready(now, stream)
                        && self.others_wait(stream.key)
                });
                let key = ready
                    .min_by_key(|stream| (stream.served, stream.key))
                    .map_or(key, |stream| stream.key);
                if let Some(stream) = self.stream(key) {
                    stream.served = Some(now);
                }
                self.serve(now, key);
                self.there.fill(false);
                self.set_clock(now, key);
            }
        }
    }

    fn finished_in_drive(&mut self, now: Time, id: u64) {
        let Some(piece) = self.pieces.get(&id).copied() else {
            return;
        };
        if let Some(key) = piece.stream
            && let Some(stream) = self.stream(key)
        {
            let reading = stream.clock.read(now);
            let disk = &mut stream.disks[piece.member.index()];
            disk.outstanding -= 1;
            disk.ended = reading;
            disk.step_over = true;
            stream.step_over = true;
        }
        let member = piece.member.index();
        if let Some(served) = self.served
            && piece.stream == Some(served.key)
            && self.last[member] == Some(served.key)
        {
            self.there[member] = true;
            self.set_clock(now, served.key);
        }
    }

    fn whole_ended(&mut self, now: Time, of: u64, sectors: u64) {
        let Some(whole) = self.wholes.get_mut(&of) else {
            return;
        };
        whole.sectors_left -= sectors;
        if whole.sectors_left > 0 {
            return;
        }
        let stream = whole.stream;
        self.wholes.remove(&of);
        if let Some(key) = stream
            && let Some(stream) = self.stream(key)
        {
            stream.outstanding -= 1;
            stream.ended = now;
            self.set_clock(now, key);
        }
    }

    /// Sets the limits behind requests that have ended, where nothing went to the drive behind them.
    fn set_limits(&mut self, now: Time, engines: &Few<Engine>) {
        for index in 0..self.streams.len() {
            let key = self.streams[index].key;
            for (member, engine) in engines.iter().enumerate() {
                let disk = &self.streams[index].disks[member];
                if disk.size == 0 || disk.outstanding > 0 || disk.limit.is_some() {
                    continue;
                }
                let limit = match self.candidate(now, engine) {
                    Some((piece, at)) if piece.stream != Some(key) => {
                        self.curve.service(disk.end, at)
                    }
                    _ => self.curve.mean(),
                };
                self.streams[index].disks[member].limit = Some(limit);
            }
        }
    }

    /// When the first disk's wait for the stream that is served is over.
    fn breaks(&self) -> Option<Time> {
        let served = self.served?;
        if !self.others_wait(served.key) {
            return None;
        }
        let stream = (self.streams.iter()).find(|stream| stream.key == served.key)?;
        let since = stream.clock.since?;
        let waits = stream.disks.iter().filter(|disk| disk.outstanding == 0);
        let ends = waits.filter_map(|disk| {
            let longest = self.longest_wait(disk.limit?, disk.size);
            let end = disk.ended + longest;
            Some(since.saturating_add(end.saturating_sub(stream.clock.passed)))
        });
        ends.min().filter(|at| *at < served.until)
    }
}

impl Conductor for Second {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        if part.extent.is_empty() {
            return;
        }
        self.pass(now);
        let candidate = self.candidate(now, engine);
        let stream = match self.wholes.get(&part.of) {
            Some(known) => {
                let stream = known.stream;
                if let Some(stream) = stream.and_then(|key| self.stream(key)) {
                    stream.size += 1;
                }
                stream
            }
            None => {
                let stream = self.join(now, whole, candidate);
                self.wholes.insert(
                    part.of,
                    Whole {
                        sectors_left: whole.extent.len.get(),
                        stream,
                    },
                );
                stream
            }
        };
        let number = self.numbers;
        self.numbers += 1;
        self.pieces.insert(
            part.id,
            Piece {
                of: part.of,
                member,
                start: whole.extent.start + part.offset,
                stream,
                issued: false,
                number,
            },
        );
        let Some(key) = stream else {
            return;
        };
        let kept = self.extend(now, key, part, member, candidate);
        self.set_clock(now, key);
        if self.served.is_some_and(|served| served.key == key) {
            match kept {
                true => {
                    let mark = Directive::Mark(RequestId::Client(part.id)).into();
                    self.orders.push((member, mark));
                }
                false => self.break_off(now),
            }
        }
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.pass(now);
        match seen {
            Seen::Command(Command::Issue(request)) => {
                let ids: Vec<u64> = engine
                    .parts(request.tag)
                    .filter_map(|(id, _)| match id {
                        RequestId::Client(id) => Some(id),
                        RequestId::Background(_) => None,
                    })
                    .collect();
                if !request.extent.is_empty() {
                    self.issued(now, member, request.extent.start, &ids);
                }
            }
            Seen::Command(Command::Finish(done)) => {
                if let Some(piece) = self.pieces.get(&done.id) {
                    let (of, sectors) = (piece.of, done.request.extent.len.get());
                    self.finished_in_drive(now, done.id);
                    self.pieces.remove(&done.id);
                    self.whole_ended(now, of, sectors);
                }
            }
            Seen::Swapped(..) | Seen::GateSwapped(..) => {
                self.release(now);
            }
            Seen::Event(_) | Seen::Command(_) => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let until = self
            .served
            .filter(|served| self.others_wait(served.key))
            .map(|served| served.until);
        self.breaks().into_iter().chain(until).min()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<Order> {
        self.pass(now);
        self.set_limits(now, engines);
        if self.breaks().is_some_and(|at| at <= now) {
            self.break_off(now);
        }
        if self.orders.is_empty() {
            return None;
        }
        Some(self.orders.remove(0))
    }
}
