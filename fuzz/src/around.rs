//! What stands before and around the drives of a run: a volume, gates, jobs in the background, orders to them.
//!
//! It is written as the part `%% around` of an input, in the form of a log without its first line:
//!
//! ```text
//! # members 3 64                three members, in stripes of 64 sectors
//! # gate ranks:4:6              a toy gate before each
//! # scrub 8 100                 a job at each: pieces of 8 sectors, 100 requests
//! O 5000000 depth 3             orders and swaps, at a time
//! @1 G 6000000 windows:4:3000000 cfq noop
//! D 7000000 1 0
//! ```

use headtime_engine::log::{self, Record, Replay};
use headtime_engine::{Config, Engine, Event, Gated, Lane, Map, MapError, Member, Order, Striped};
use headtime_sched::{Scheduler, Spec};
use headtime_sim::{Setup, Station};
use headtime_testkit::{Scrub, ShownScrub, ToyGate};
use headtime_units::{Sectors, Time};

/// The most orders that an input gives.
const ORDERS: usize = 50;

/// What stands there, as it was read; nothing by default.
#[derive(Default)]
pub struct Around {
    members: Option<(u16, u64)>,
    gate: Option<String>,
    scrub: Option<(u64, u64)>,
    orders: Vec<(Time, Member, Record)>,
    /// The jobs of a run.
    scrubs: Vec<ShownScrub>,
}

/// Makes a scheduler that a swap names.
pub type Build<'a> = &'a dyn Fn(&Spec) -> Box<dyn Scheduler>;

impl Around {
    /// What makes sense of a text.
    pub fn read(text: &str) -> Around {
        let text = format!("headtime-log {}\n{text}", log::VERSION);
        let mut around = Around::default();
        for (_, record) in log::read(&text).flatten() {
            let (member, record) = match record {
                Record::OfMember(member, record) => (member, *record),
                record => (Member(0), record),
            };
            match record {
                Record::Setting { key, value } => around.set(&key, &value),
                Record::Event(at, Event::Ordered(_) | Event::Drained { .. })
                | Record::Swapped(at, ..)
                | Record::GateSwapped(at, ..)
                    if around.orders.len() < ORDERS =>
                {
                    around.orders.push((at, member, record));
                }
                _ => {}
            }
        }
        around
    }

    fn set(&mut self, key: &str, value: &str) {
        let mut numbers = value.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let two = numbers.next().zip(numbers.next());
        match key {
            "members" => {
                let in_range = |(members, stripe): (u64, u64)| {
                    (2..=4).contains(&members) && (1..1 << 20).contains(&stripe)
                };
                let two = two.filter(|two| in_range(*two));
                self.members = two.map(|(members, stripe)| (members as u16, stripe));
            }
            "scrub" => {
                let in_range = |(piece, _): &(u64, u64)| (1..=1024).contains(piece);
                self.scrub = two.filter(in_range);
            }
            "gate" => {
                self.gate = ToyGate::named(value, &Config::default()).map(|_| value.to_owned())
            }
            _ => {}
        }
    }

    /// The map of a volume of drives of this size, if there is a volume.
    ///
    /// # Errors
    ///
    /// If the drives are too small for it.
    pub fn map(&self, capacity: Sectors) -> Result<Option<Striped>, MapError> {
        let striped = |(members, stripe): (u16, u64)| {
            let sizes = vec![capacity; usize::from(members)];
            Striped::new(Sectors::new(stripe), &sizes)
        };
        self.members.map(striped).transpose()
    }

    fn gated(&self, scheduler: &Spec, build: Build<'_>) -> Option<Gated> {
        let gate = ToyGate::named(self.gate.as_ref()?, &Config::default())?;
        let others = (1..gate.lanes()).map(|_| build(scheduler));
        Some((gate, others.collect()))
    }

    /// Puts everything into a run whose members have these stations.
    pub fn into_setup(
        &mut self,
        setup: &mut Setup<'_>,
        stations: Vec<Station>,
        scheduler: &Spec,
        build: Build<'_>,
    ) {
        let capacity = stations[0].drive.capacity();
        let map = self.map(capacity).ok().flatten();
        setup.map = map.map(|map| Box::new(map) as Box<dyn Map>);
        setup.stations = stations;
        setup.audit = true;
        for station in &mut setup.stations {
            station.gate = self.gated(scheduler, build);
            if let Some((piece, most)) = self.scrub {
                let scrub = Scrub::new(capacity, Sectors::new(piece), most);
                let scrub = ShownScrub::new(scrub);
                self.scrubs.push(scrub.clone());
                station.background = Some(Box::new(scrub));
            }
        }
        let mut gated = vec![self.gate.is_some(); setup.stations.len()];
        for (at, member, record) in &self.orders {
            let Some(gated) = gated.get_mut(member.index()) else {
                continue;
            };
            if let Some(order) = order(*member, record, gated, build) {
                setup.orders.push((*at, order));
            }
        }
    }

    /// Checks that each job was told of what it asked for, and that the run decides again as its log has it.
    pub fn check(&self, log: &str, config: Config, scheduler: &Spec, build: Build<'_>) {
        for scrub in &self.scrubs {
            assert!(scrub.waits_for_nothing(), "{scrub:?}");
        }
        let members = self.members.map_or(1, |(members, _)| members);
        let engine = |_| {
            let gated = self.gated(scheduler, build);
            Engine::behind(config, build(scheduler), gated).expect("as in the run")
        };
        let engines: Vec<Engine> = (0..members).map(engine).collect();
        let mut replay = Replay::of_volume(engines).with_gates(ToyGate::named);
        if let Err(error) = replay.all(log, |text| Some(build(&text.parse().ok()?))) {
            panic!("{error}\n{log}");
        }
    }
}

/// The order that a line of a log stands for, if a member that has a second lane, if it is `gated`, can obey it.
fn order(member: Member, record: &Record, gated: &mut bool, build: Build<'_>) -> Option<Order> {
    let second = *gated;
    let has = |lane: Lane| lane == Lane(0) || lane == Lane(1) && second;
    match record {
        Record::Event(_, Event::Ordered(order)) => Some(Order::Gate(member, *order)),
        Record::Event(_, Event::Drained { from, to }) => {
            let (from, to) = (*from, *to);
            let there = has(from) && has(to);
            there.then_some(Order::Drain { member, from, to })
        }
        Record::Swapped(_, lane, text) => {
            let spec: Spec = text.parse().ok()?;
            has(*lane).then(|| Order::Swap {
                member,
                lane: *lane,
                text: spec.to_string(),
                scheduler: build(&spec),
            })
        }
        Record::GateSwapped(_, text, schedulers) => {
            let gate = ToyGate::named(text, &Config::default())?;
            let specs = schedulers.iter().map(|text| text.parse::<Spec>().ok());
            let specs = specs.collect::<Option<Vec<Spec>>>()?;
            if specs.len() != gate.lanes() {
                return None;
            }
            *gated = true;
            Some(Order::SwapGate {
                member,
                text: text.clone(),
                gate,
                schedulers: specs
                    .iter()
                    .map(|spec| (spec.to_string(), build(spec)))
                    .collect(),
            })
        }
        _ => None,
    }
}
