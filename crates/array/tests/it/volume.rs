//! Random small volumes whose members run `stream`.

use crate::clients::{Clients, Draw, Habit};
use headtime_disk::Layout;
use headtime_disk::drive::Drive;
use headtime_disk::profile::{self, Profile};
use headtime_engine::Config;
use headtime_engine::conduct::Conductor;
use headtime_sched::{Deadline, DeadlineConfig, Scheduler, ServiceCurve, Stream, StreamConfig};
use headtime_sim::{Setup, Station};
use headtime_testkit::Striped;
use headtime_units::{Millionths, Nanos, Sectors};
use headtime_workload::Source;
use std::sync::{Arc, LazyLock};

static DRIVE: LazyLock<Profile> =
    LazyLock::new(|| profile::by_name("wd5000aaks").expect("shipped").clone());
static LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| Arc::new(Layout::new(&DRIVE)));

/// A volume that is drawn, and its clients.
#[derive(Clone, Debug)]
pub struct Volume {
    pub seed: u64,
    pub map: Striped,
    pub engine: Config,
    pub stream: StreamConfig,
    pub curve: Arc<ServiceCurve>,
    pub habits: Vec<Habit>,
}

impl Volume {
    /// The volume of a seed. `requests` is the number that each client asks for.
    pub fn drawn(seed: u64, requests: u64) -> Volume {
        let mut draw = Draw::of(seed);
        let stripe = 8 * (1 + draw.below(16));
        let map = Striped {
            members: 2 + draw.below(4) as u16,
            stripe,
            stripes: [500, 50_000, 1_000_000][draw.below(3) as usize],
            parity: false,
        };
        let engine = Config {
            depth: 1 + draw.below(8) as u32 * draw.below(2) as u32,
            merge: !draw.one_in(3),
            commit_ahead: draw.one_in(3),
            ..Config::default()
        };
        let stream = StreamConfig {
            threshold: 2 + draw.below(3),
            tolerance: Millionths(draw.below(3) * 400_000),
            slice: Nanos::from_millis([15, 40, 124][draw.below(3) as usize]),
            ..StreamConfig::DEFAULT
        };
        let readers = 1 + draw.below(16);
        let habits = (0..readers)
            .map(|_| habit(&mut draw, stripe, requests))
            .collect();
        Volume {
            seed,
            map,
            engine,
            stream,
            curve: curve(&mut draw, map.stripe * map.stripes),
            habits,
        }
    }

    pub fn sectors(&self) -> u64 {
        self.map.capacity()
    }

    pub fn clients(&self) -> Clients {
        Clients::new(self.seed, self.sectors(), &self.habits)
    }

    pub fn scheduler(&self) -> Box<dyn Scheduler> {
        let deadline = Deadline::new(DeadlineConfig::DEFAULT);
        Box::new(Stream::new(deadline, self.stream, Arc::clone(&self.curve)))
    }

    pub fn setup<'a>(
        &self,
        source: &'a mut dyn Source,
        conductor: Box<dyn Conductor>,
    ) -> Setup<'a> {
        let drive = |seed| Drive::with_layout(&DRIVE, Arc::clone(&LAYOUT), seed);
        let station =
            |number: u16| Station::new(drive(u64::from(number)), self.engine, self.scheduler());
        let mut setup = Setup::new(drive(0), self.engine, self.scheduler(), source);
        setup.stations = (0..self.map.members).map(station).collect();
        setup.map = Some(Box::new(self.map.map()));
        setup.conductor = Some(conductor);
        setup
    }
}

fn curve(draw: &mut Draw, sectors: u64) -> Arc<ServiceCurve> {
    let near = 1 + sectors / 1000;
    let points = vec![
        (Sectors::ZERO, Nanos::from_micros(100 + draw.below(400))),
        (
            Sectors::new(near),
            Nanos::from_micros(2_000 + draw.below(3_000)),
        ),
        (
            Sectors::new(sectors),
            Nanos::from_micros(6_000 + draw.below(14_000)),
        ),
    ];
    Arc::new(ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve"))
}

fn habit(draw: &mut Draw, stripe: u64, requests: u64) -> Habit {
    let window = 1 + draw.below(8) * draw.below(2);
    let sequential = draw.below(10) < 7;
    let writes = draw.one_in(5);
    Habit {
        len: match draw.below(4) {
            0 => 8 * (1 + draw.below(stripe / 4)),
            1 => 2 * stripe,
            _ => stripe,
        },
        window,
        low: draw.below(window),
        pause: Nanos::from_micros([0, 300, 2_000, 30_000][draw.below(4) as usize]),
        jumps: match sequential {
            true => 100 * draw.below(2),
            false => 1 + draw.below(3),
        },
        writes: if writes { draw.below(101) } else { 0 },
        flushes: if writes { draw.below(4) } else { 0 },
        requests,
    }
}
