//! Programs whose processes make calls together, on simulated servers, and their profiles.

use headtime_disk::drive::Drive;
use headtime_disk::profile;
use headtime_engine::{Config, Striped};
use headtime_qos::{Profile, Recorder, Service, Setting, Training, TrainingOptions};
use headtime_sched::{Class, Flags, NoPositioning, Op, Origin, Spec};
use headtime_sim::{Setup, Station, run};
use headtime_units::{Extent, Millionths, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Random, Source};

/// Sectors of a strip.
pub const STRIP: u64 = 128;

/// Requests that processes make together, after some time.
pub struct Call {
    pub think: Nanos,
    pub requests: Vec<(u32, Op, Extent)>,
}

/// Runs calls, one after the other.
pub struct Collective<I> {
    calls: I,
    servers: u64,
    current: Vec<(u32, Op, Extent)>,
    due: Option<Time>,
    made: u64,
    outstanding: u32,
    busy_from: Time,
    pub recorder: Recorder,
    pub end: Time,
}

impl<I: Iterator<Item = Call>> Collective<I> {
    pub fn new(program: &str, calls: I, servers: u16, epoch: Nanos) -> Collective<I> {
        let setting = Setting {
            site: "simulated".to_owned(),
            program: program.to_owned(),
            share: Millionths::ONE,
            epoch,
            service: Service::Program,
            servers,
        };
        let mut source = Collective {
            calls,
            servers: u64::from(servers),
            current: Vec::new(),
            due: None,
            made: 0,
            outstanding: 0,
            busy_from: Time::ZERO,
            recorder: Recorder::new(setting, 512, Time::ZERO).unwrap(),
            end: Time::ZERO,
        };
        source.next_call(Time::ZERO);
        source
    }

    fn next_call(&mut self, now: Time) {
        self.due = None;
        if let Some(call) = self.calls.next() {
            self.current = call.requests;
            self.current.reverse();
            self.due = Some(now + call.think);
        }
    }

    /// Tells the recorder of the parts of a request.
    fn record(&mut self, now: Time, op: Op, extent: Extent) {
        if self.servers == 1 {
            return self.recorder.request(now, 0, op, extent);
        }
        let (mut at, end) = (extent.start.get(), extent.end().get());
        while at < end {
            let strip = at / STRIP;
            let until = end.min((strip + 1) * STRIP);
            let place = strip / self.servers * STRIP + at % STRIP;
            let server = (strip % self.servers) as u16;
            self.recorder
                .request(now, server, op, Extent::at(place, until - at));
            at = until;
        }
    }
}

impl<I: Iterator<Item = Call>> Source for Collective<I> {
    fn next_arrival(&self) -> Option<Time> {
        self.due
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let arrival = self.due.filter(|due| *due <= now)?;
        let (process, op, extent) = self.current.pop()?;
        self.record(now, op, extent);
        if self.outstanding == 0 {
            self.busy_from = now;
        }
        if self.current.is_empty() {
            self.due = None;
        }
        self.outstanding += 1;
        self.made += 1;
        Some(NewRequest {
            cookie: self.made,
            arrival,
            op,
            extent,
            flags: Flags::NONE,
            origin: Origin {
                process: process + 1,
                ..Origin::default()
            },
            class: Class::default(),
        })
    }

    fn completed(&mut self, now: Time, _cookie: u64) {
        self.outstanding -= 1;
        self.end = now;
        if self.outstanding == 0 {
            self.recorder.busy(self.busy_from, now);
            if self.current.is_empty() {
                self.next_call(now);
            }
        }
    }

    fn done(&self) -> bool {
        self.outstanding == 0 && self.due.is_none()
    }
}

/// Profile of calls, with a number of servers.
pub fn profiled(
    program: &str,
    calls: impl Iterator<Item = Call>,
    servers: u16,
    epoch: Nanos,
    seed: u64,
) -> Profile {
    let model = profile::by_name("barracuda-7200.10-160").expect("a shipped profile");
    let engine = Config {
        depth: 31,
        ..Config::default()
    };
    let scheduler = || {
        "cfq"
            .parse::<Spec>()
            .unwrap()
            .build(None::<NoPositioning>)
            .unwrap()
    };
    let drive = |number: u64| Drive::new(&model, seed * 100 + number);
    let mut source = Collective::new(program, calls, servers, epoch);
    let mut setup = Setup::new(drive(0), engine, scheduler(), &mut source);
    if servers > 1 {
        let station = |number| Station::new(drive(number), engine, scheduler());
        setup.stations = (0..u64::from(servers)).map(station).collect();
        let sizes = vec![model.geometry.capacity; usize::from(servers)];
        setup.map = Some(Box::new(Striped::new(Sectors::new(STRIP), &sizes).unwrap()));
    }
    run(setup).unwrap();
    source.recorder.finish(source.end).unwrap()
}

/// The training workload in a file of 20 GB.
pub fn training(options: TrainingOptions) -> impl Iterator<Item = Call> {
    let mut requests = Training::new(options, Sectors::new(40_000_000), 512).peekable();
    std::iter::from_fn(move || {
        let call = requests.peek()?.call;
        let mut of_call = Vec::new();
        while let Some(request) = requests.next_if(|request| request.call == call) {
            of_call.push((request.process, request.op, request.extent));
        }
        Some(Call {
            think: Nanos::ZERO,
            requests: of_call,
        })
    })
}

/// Eight processes read 64 KiB each: a part in sequence, then a part at random, and so on (the paper's seq-rand).
pub fn seq_rand(seed: u64, calls: u64) -> impl Iterator<Item = Call> {
    let mut random = Random::new(seed, 1, 0);
    let strips = 160_000;
    (0..calls).map(move |call| {
        let is_random = call % 200 >= 150;
        let strip = |process: u64, random: &mut Random| match is_random {
            true => random.below(strips),
            false => (call * 8 + process) % strips,
        };
        let request = |process: u64| {
            let at = strip(process, &mut random) * STRIP;
            (process as u32, Op::Read, Extent::at(at, STRIP))
        };
        Call {
            think: Nanos::from_micros(500),
            requests: (0..8).map(request).collect(),
        }
    })
}
