//! Coordinator of an array's disks: chooses the virtual stream that all disks serve, and the end of its slice.

use crate::geometry::Geometry;
use crate::streams::{Stream, Streams};
use headtime_engine::conduct::{Conduct, Conducted, Conductor};
use headtime_engine::{Command, Engine, Few, Member, Part, RequestId, Seen};
use headtime_sched::{
    Directive, Op, Request, ServiceCurve, Spec, StreamConfig, StreamRule, Trials,
};
use headtime_units::{Lba, Nanos, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// A part of a client's request on a disk.
#[derive(Clone, Copy, Debug, Default)]
struct PartOf {
    stream: Option<usize>,
    member: Member,
    /// Address in the array; `None` for sectors of a disk that clients have outside of the array.
    start: Option<Lba>,
    /// True until a command that carries the part goes to the drive.
    is_queued: bool,
    /// True for a read for the parity of a write. The write, and so its stream, comes when such reads have ended.
    is_ahead: bool,
}

/// Stream that all disks serve.
#[derive(Clone, Copy, Debug)]
struct Served {
    stream: usize,
    from: Time,
    /// End of the slice.
    until: Time,
}

/// Coordinates the schedulers of an array's disks; see the crate's page.
///
/// Invariants:
///
/// - `obeys.len() = heads.len() = members`.
/// - `served` is some stream ⇒ each disk has been dedicated to that stream, or the directives wait in `directives`.
/// - `parts[id]` is the entry of each outstanding part, by the part's id.
/// - `outstanding` = Σ of the streams' outstanding parts + parts without a stream.
#[derive(Debug)]
pub struct Coordinator {
    members: u16,
    slice: Nanos,
    /// Rule for the virtual disk.
    whole: StreamRule,
    /// Rule for each disk.
    disk: StreamRule,
    streams: Streams,
    parts: Vec<PartOf>,
    /// Stream of the client's request whose parts are arriving.
    arriving: Option<usize>,
    outstanding: u32,
    served: Option<Served>,
    /// Serial number of the last served stream, if no other request has gone to a disk since.
    last: Option<u64>,
    /// For each member, true if the scheduler obeys directives. If one does not, no stream is served.
    obeys: Vec<bool>,
    /// For each member, the stream of the last command that went to the disk.
    heads: Vec<Option<u64>>,
    /// Disks on which the newest request of a stream has just ended. The next decision of such a disk sets the limit.
    undecided: Vec<(usize, Member)>,
    directives: VecDeque<(Member, Directive<RequestId>)>,
    stats: Conducted,
    /// Trials of serving and not serving streams, if waits are bounded.
    trials: Option<Trials>,
    /// Layout of the array, if requests have addresses of the disks.
    geometry: Option<Geometry>,
}

impl Coordinator {
    /// Makes the coordinator one of a layout with parity: each row has `disks` chunks of data.
    #[must_use]
    pub fn with_data(mut self, disks: u16) -> Coordinator {
        self.whole = self.disk.clone().striped(u64::from(disks));
        self.streams = Streams::new(usize::from(self.members), &self.whole);
        self
    }

    /// Makes the coordinator one of disks whose clients make the array: requests have addresses of the disks.
    #[must_use]
    pub fn with_geometry(self, geometry: Geometry) -> Coordinator {
        Coordinator {
            geometry: Some(geometry),
            ..self
        }
    }

    /// Creates a coordinator of `members` equal disks. Each disk's scheduler is [`Stream`](headtime_sched::Stream)
    /// with this configuration and this curve.
    pub fn new(members: u16, config: &StreamConfig, curve: Arc<ServiceCurve>) -> Coordinator {
        let disk = StreamRule::new(curve, config.threshold, config.tolerance);
        let whole = disk.clone().striped(u64::from(members));
        Coordinator {
            members,
            slice: config.slice,
            streams: Streams::new(usize::from(members), &whole),
            whole,
            disk,
            parts: Vec::new(),
            arriving: None,
            outstanding: 0,
            served: None,
            last: None,
            obeys: vec![true; usize::from(members)],
            heads: vec![None; usize::from(members)],
            undecided: Vec::new(),
            directives: VecDeque::new(),
            stats: Conducted::default(),
            trials: config.trials(),
            geometry: None,
        }
    }

    /// Returns the entry of an outstanding part of a client's request.
    fn part_of(&self, id: RequestId) -> Option<&PartOf> {
        match id {
            RequestId::Client(id) => self.parts.get(id as usize),
            RequestId::Background(_) => None,
        }
    }

    fn all(&self) -> impl Iterator<Item = Member> + use<> {
        (0..self.members).map(Member)
    }

    fn serves(&self, stream: usize) -> bool {
        self.served.is_some_and(|served| served.stream == stream)
    }

    /// Returns true if requests of other streams, or of none, are outstanding.
    fn others_wait(&self, stream: &Stream) -> bool {
        self.outstanding > stream.tail.outstanding
    }

    /// Notes that a command with a request of this stream goes to a disk. May start a slice.
    fn issued(&mut self, now: Time, member: Member, stream: Option<usize>) {
        if let Some(served) = self.served {
            let physical = &mut self.streams.get_mut(served.stream).physical[member.index()];
            physical.has_head &= stream == Some(served.stream);
        }
        let serial = stream.map(|index| self.streams.get(index).serial);
        self.heads[member.index()] = serial;
        if self.last != serial {
            self.last = None;
        }
        let is_ready = |index: &usize| self.is_ready(now, self.streams.get(*index));
        if let (Some(index), None, None) = (stream, self.served, self.last)
            && is_ready(&index)
        {
            let all = (0..self.streams.count()).filter(is_ready);
            let next = all.min_by_key(|index| {
                let stream = self.streams.get(*index);
                (stream.served, stream.serial)
            });
            self.serve(now, next.unwrap_or(index));
        }
    }

    /// Returns true if a stream may be served and requests of others wait.
    fn is_ready(&self, now: Time, stream: &Stream) -> bool {
        let may = self.trials.as_ref().is_none_or(Trials::waits);
        may && !self.slice.is_zero()
            && self.obeys.iter().all(|obeys| *obeys)
            && stream.tail.outstanding > 0
            && stream.is_ready(now, &self.whole, &self.disk)
            && self.others_wait(stream)
    }

    /// Starts a slice. The stream's next request to each disk becomes urgent, so that each disk's head goes to its part of the stream at once
    /// (section 2.2).
    fn serve(&mut self, now: Time, index: usize) {
        let until = now.saturating_add(self.slice);
        self.served = Some(Served {
            stream: index,
            from: now,
            until,
        });
        self.stats.slices += 1;
        self.streams.get_mut(index).served = Some(now);
        for member in self.all() {
            self.directives
                .push_back((member, Directive::Dedicate { until }));
        }
        for (id, part) in (0..).zip(&self.parts) {
            if part.is_queued && part.stream == Some(index) {
                self.directives.push_back((part.member, mark(id)));
            }
        }
    }

    /// Ends the slice. All disks then decide for themselves.
    fn release(&mut self, now: Time) {
        let Some(served) = self.served.take() else {
            return;
        };
        self.stats.dedicated += now.saturating_since(served.from);
        self.last = Some(self.streams.get(served.stream).serial);
        for physical in &mut self.streams.get_mut(served.stream).physical {
            physical.has_head = false;
        }
        for member in self.all() {
            self.directives.push_back((member, Directive::Release));
        }
    }

    /// Ends the slice of the served stream and makes the stream unusable, since one of its physical streams has broken.
    /// A stream that is not served stays as before. The paper: "When the array's scheduler observes broken physical
    /// streams, it will mark the virtual stream as unusable."
    fn broke(&mut self, now: Time, index: usize) {
        if self.serves(index) {
            self.streams.get_mut(index).make_unusable(now);
            self.stats.broken += 1;
            self.release(now);
        }
    }

    /// Sets the limits of disks on which the newest request of a stream has ended. The limit is the service time of the
    /// disk's candidate.
    fn decide(&mut self, now: Time, engines: &Few<Engine>) {
        while let Some((index, member)) = self.undecided.pop() {
            let pending = engines[member.index()].candidate(now);
            let physical = &mut self.streams.get_mut(index).physical[member.index()];
            if physical.tail.outstanding == 0 && physical.limit.is_none() {
                let pending = pending.map(|(_, request)| request.extent.start);
                physical.limit = Some(self.disk.limit(physical.end(), pending));
                if self.served.is_some_and(|served| served.stream == index)
                    && let Some(trials) = &mut self.trials
                {
                    trials.held(now, None);
                }
            }
        }
    }

    /// Ends a slice whose time is over, before any other event of that time.
    fn pass(&mut self, now: Time) {
        let is_over = |served: Served| {
            now >= served.until && self.others_wait(self.streams.get(served.stream))
        };
        if self.served.is_some_and(is_over) {
            self.release(now);
        }
    }

    /// Ends the slice if others wait, and if its time is over or the next request of a physical stream is late.
    fn end_slice(&mut self, now: Time) {
        let Some(served) = self.served else {
            return;
        };
        let stream = self.streams.get(served.stream);
        if !self.others_wait(stream) {
            return;
        }
        if now >= served.until || self.trials.as_ref().is_some_and(|all| !all.waits()) {
            return self.release(now);
        }
        for member in 0..usize::from(self.members) {
            loop {
                let stream = self.streams.get_mut(served.stream);
                let deadline = stream.deadline(&stream.physical[member], &self.disk);
                if deadline.is_none_or(|deadline| deadline > now) {
                    break;
                }
                if !stream.physical[member].second_chance(&self.disk) {
                    return self.broke(now, served.stream);
                }
            }
        }
    }
}

/// Returns true if a scheduler of this text obeys directives.
fn obeys(text: &str) -> bool {
    let spec = text.parse::<Spec>();
    spec.is_ok_and(|spec| StreamConfig::of(&spec).is_some())
}

fn mark(id: u64) -> Directive<RequestId> {
    Directive::Mark(RequestId::Client(id))
}

impl Conductor for Coordinator {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        self.pass(now);
        let at = part.id as usize;
        if at >= self.parts.len() {
            self.parts.resize(at + 1, PartOf::default());
        }
        if part.added == Some(Op::Read) {
            self.parts[at] = PartOf {
                stream: None,
                member,
                start: Some(whole.extent.start),
                is_queued: true,
                is_ahead: true,
            };
            return;
        }
        self.outstanding += 1;
        // First run of array sectors that the request covers, and number of such runs. Each run counts as a step of the
        // stream.
        let (extent, steps) = match &self.geometry {
            None => (Some(whole.extent), 1),
            Some(geometry) => geometry.steps(member, part.extent),
        };
        let start = extent.map(|extent| extent.start + part.offset);
        let candidate = engine.candidate(now);
        // Parity is a part of the write's stream on its disk, and no step of the stream in the array.
        if part.offset.get() == 0 && part.added.is_none() {
            let pending = candidate.and_then(|(id, _)| self.part_of(id));
            let pending = pending.and_then(|pending| Some((pending.start?, pending.stream)));
            let held = self.served.map(|served| served.stream);
            // A flush, the flush before a write, and sectors outside of the array have no stream.
            self.arriving = extent
                .filter(|_| !part.extent.is_empty())
                .and_then(|extent| {
                    self.streams
                        .request(now, &self.whole, extent, pending, held)
                });
            for index in (1..steps).filter_map(|_| self.arriving) {
                self.streams.further_part(index, &self.whole);
            }
        } else if let Some(index) = self.arriving.filter(|_| part.added.is_none()) {
            self.streams.further_part(index, &self.whole);
        }
        self.parts[at] = PartOf {
            stream: self.arriving,
            member,
            start,
            is_queued: true,
            is_ahead: false,
        };
        if let Some(trials) = &mut self.trials {
            trials.arrived(now, at, whole.is_sync());
            trials.choose(now);
        }
        let Some(index) = self.arriving else {
            return;
        };
        let other = candidate.filter(|(id, _)| {
            let of = self.part_of(*id).and_then(|part| part.stream);
            of != Some(index)
        });
        let pending = other.map(|(_, request)| request.extent.start);
        let stream = self.streams.get_mut(index);
        match stream.part(now, &self.disk, (member, part.extent), pending) {
            true if self.serves(index) => self.directives.push_back((member, mark(part.id))),
            true => {}
            false => self.broke(now, index),
        }
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.pass(now);
        match seen {
            Seen::Command(Command::Issue(request)) => {
                let mut stream = None;
                for (id, _) in engine.parts(request.tag) {
                    if let RequestId::Client(id) = id
                        && let Some(part) = self.parts.get_mut(id as usize)
                    {
                        part.is_queued = false;
                        stream = stream.or(part.stream);
                        if let Some(trials) = &mut self.trials
                            && !part.is_ahead
                        {
                            trials.handed_out(now, id as usize);
                        }
                    }
                }
                for (index, of) in &self.undecided {
                    let physical = &mut self.streams.get_mut(*index).physical[member.index()];
                    if *of == member && stream != Some(*index) && physical.limit.is_none() {
                        let limit = self.disk.service(physical.end(), request.extent.start);
                        physical.limit = Some(limit);
                    }
                }
                self.issued(now, member, stream);
            }
            Seen::Command(Command::Finish(done)) => {
                let part = &mut self.parts[done.id as usize];
                if part.is_ahead {
                    part.is_queued = false;
                    return;
                }
                self.outstanding -= 1;
                if let Some(trials) = &mut self.trials {
                    match part.is_queued {
                        true => trials.withdrawn(done.id as usize),
                        false => trials.completed(now, done.id as usize, done.request.extent.len),
                    }
                }
                part.is_queued = false;
                let Some(index) = part.stream else {
                    return;
                };
                let serves = self.serves(index);
                let stream = self.streams.get_mut(index);
                let serves = serves && self.heads[member.index()] == Some(stream.serial);
                if stream.part_done(now, member, serves) {
                    self.undecided.push((index, member));
                }
            }
            // The new scheduler does not know earlier marks.
            Seen::Swapped(_, text) => {
                self.obeys[member.index()] = obeys(text);
                self.release(now);
            }
            Seen::GateSwapped(_, texts) => {
                self.obeys[member.index()] = texts.iter().all(|text| obeys(text));
                self.release(now);
            }
            Seen::Event(_) | Seen::Command(Command::Background(_)) => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let served = self.served?;
        let stream = self.streams.get(served.stream);
        if !self.others_wait(stream) {
            return None;
        }
        let deadline = |physical| stream.deadline(physical, &self.disk);
        let deadlines = stream.physical.iter().filter_map(deadline);
        Some(deadlines.fold(served.until, Time::min))
    }

    fn conducted(&self) -> Option<Conducted> {
        Some(Conducted {
            streams: self.streams.established,
            ..self.stats
        })
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        self.decide(now, engines);
        self.end_slice(now);
        let (member, directive) = self.directives.pop_front()?;
        Some((member, directive.into()))
    }
}
