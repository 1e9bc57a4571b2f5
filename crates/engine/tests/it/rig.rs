//! An engine behind any gate, with everything that watches it: the audit, and a log that is replayed at the end.

use headtime_engine::audit::Audit;
use headtime_engine::{
    Arrival, Command, Config, DriveTag, Engine, Event, Gate, Outcome, RequestId, log,
};
use headtime_sched::{Noop, Request, Scheduler, WorkConserving};
use headtime_testkit::Scrub;
use headtime_units::{Nanos, Time};

pub fn at(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

pub fn config(depth: u32) -> Config {
    Config {
        depth,
        ..Config::default()
    }
}

pub fn schedulers(lanes: usize) -> Vec<Box<dyn Scheduler>> {
    let noop = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    std::iter::repeat_with(noop).take(lanes).collect()
}

/// A command with its parts.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub request: Request<DriveTag>,
    pub parts: Vec<RequestId>,
}

/// An engine with everything that watches it.
pub struct Rig<G> {
    pub engine: Engine,
    config: Config,
    gate: G,
    pub audit: Audit,
    /// The log.
    pub text: String,
    pub now: Time,
    pub in_drive: Vec<Sent>,
    pub sent: Vec<Sent>,
    pub ended: Vec<(RequestId, Outcome)>,
    pub scrub: Option<Scrub>,
}

impl<G: Gate + Clone + 'static> Rig<G> {
    pub fn new(config: Config, gate: G) -> Rig<G> {
        let lanes = schedulers(gate.lanes());
        let engine = Engine::with_gate(config, Box::new(gate.clone()), lanes).expect("in range");
        Rig::around(engine, gate)
    }

    pub fn around(mut engine: Engine, gate: G) -> Rig<G> {
        let mut audit = Audit::new();
        audit.watch(&mut engine);
        let mut text = String::new();
        log::write_header(&mut text);
        Rig {
            config: *engine.config(),
            engine,
            gate,
            audit,
            text,
            now: Time::ZERO,
            in_drive: Vec::new(),
            sent: Vec::new(),
            ended: Vec::new(),
            scrub: None,
        }
    }

    pub fn event(&mut self, event: Event) {
        self.feed(event);
        loop {
            let joins = self.scrub.as_mut();
            let joins = joins.and_then(|scrub| scrub.joins(&self.engine));
            let joined = joins.map(|(arrival, lane, join)| Event::Joined {
                arrival,
                lane,
                join,
            });
            let offered = || self.engine.unoffered().map(Event::Offered);
            match joined.or_else(offered) {
                Some(event) => self.feed(event),
                None => return,
            }
        }
    }

    fn feed(&mut self, event: Event) {
        let now = self.now;
        log::write_event(&mut self.text, now, &event);
        self.audit.event(&event).expect("an event that can be");
        self.engine.handle(now, event);
        self.commands();
    }

    pub fn commands(&mut self) {
        let now = self.now;
        while let Some(command) = self.engine.poll(now) {
            let kept = self.audit.command(&self.engine, &command);
            kept.expect("the engine's promises");
            log::write_decision(&mut self.text, now, &(&command).into());
            match command {
                Command::Issue(request) => {
                    let parts = self.engine.parts(request.tag);
                    let sent = Sent {
                        at: now,
                        request,
                        parts: parts.map(|(id, _)| id).collect(),
                    };
                    self.in_drive.push(sent.clone());
                    self.sent.push(sent);
                }
                Command::Finish(done) => {
                    self.ended.push((RequestId::Client(done.id), done.outcome));
                }
                Command::Background(done) => {
                    self.ended
                        .push((RequestId::Background(done.id), done.outcome));
                    if let Some(scrub) = &mut self.scrub {
                        scrub.finished(&done);
                    }
                }
            }
        }
        let kept = self.audit.at_rest(&self.engine, []);
        kept.expect("the rank of what waits for a flush");
    }

    pub fn arrive(&mut self, arrival: Arrival) {
        self.event(Event::Arrived(arrival));
    }

    /// Ends the `at`-th command in the drive, in the order in which they went there.
    pub fn complete(&mut self, at: usize, outcome: Outcome) {
        let tag = self.in_drive.remove(at).request.tag;
        self.event(Event::Completed { tag, outcome });
    }

    /// Ends everything, the oldest first, and replays the log.
    pub fn finish(mut self) -> Vec<Sent> {
        while !self.engine.is_idle() {
            if self.in_drive.is_empty() {
                self.now = self.engine.next_wakeup().expect("it waits for a time");
                self.event(Event::Woke);
            } else {
                self.now += Nanos::from_millis(1);
                self.complete(0, Outcome::Done);
            }
        }
        assert_eq!(self.audit.unfinished(), 0);
        assert_eq!(self.engine.waiting(), 0);
        self.replay();
        self.sent
    }

    fn replay(&self) {
        let lanes = schedulers(self.gate.lanes());
        let gate = Box::new(self.gate.clone());
        let again = Engine::with_gate(self.config, gate, lanes).expect("in range");
        if let Err(error) = log::replay(&self.text, again, |_| None) {
            panic!("{error}\n{}", self.text);
        }
    }
}
