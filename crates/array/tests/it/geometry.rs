//! Disks that clients make an array of get the directives of an array of the server's own.

use crate::volume::Volume;
use headtime_array::{Coordinator, Geometry};
use headtime_engine::conduct::{Conduct, Conductor};
use headtime_engine::{Engine, Few, Member, Part, Seen, SharedCell};
use headtime_sched::Request;
use headtime_sim::run;
use headtime_units::{Extent, Sectors, Time};
use std::sync::Arc;

/// Sectors of a chunk and of each request: clients' places are multiples, so that each request has one part.
const CHUNK: u64 = 8;

/// Two coordinators that see the same requests: with addresses of the array, and with addresses of the disks.
struct Both {
    array: Coordinator,
    of_disks: Coordinator,
    /// Sectors of a disk: the volume of all disks has one behind the other.
    disk: u64,
    orders: u64,
}

impl Conductor for Both {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        self.array.asked(now, whole, member, part, engine);
        let before = self.disk * u64::from(member.0);
        let there = Extent::at(before + part.extent.start.get(), part.extent.len.get());
        let whole = Request {
            extent: there,
            ..*whole
        };
        self.of_disks.asked(now, &whole, member, part, engine);
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.array.seen(now, member, seen, engine);
        self.of_disks.seen(now, member, seen, engine);
    }

    fn next_wakeup(&self) -> Option<Time> {
        assert_eq!(self.array.next_wakeup(), self.of_disks.next_wakeup());
        self.array.next_wakeup()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        let order = self.array.order(now, engines);
        assert_eq!(self.of_disks.order(now, engines), order, "at {now}");
        self.orders += u64::from(order.is_some());
        order
    }
}

#[test]
fn requests_with_addresses_of_disks_get_the_same_directives() {
    let mut orders = 0;
    for seed in 0..60 {
        let mut volume = Volume::drawn(seed, 60);
        volume.map.stripes *= volume.map.stripe / CHUNK;
        volume.map.stripe = CHUNK;
        for habit in &mut volume.habits {
            habit.len = CHUNK;
        }
        let members = volume.map.members;
        if members > 2 && seed % 2 == 1 {
            // Clients write parity themselves, so they only read here.
            volume.map.parity = true;
            for habit in &mut volume.habits {
                (habit.writes, habit.flushes) = (0, 0);
            }
        }
        let data = volume.map.map().data_disks();
        let coordinator = || {
            let curve = Arc::clone(&volume.curve);
            Coordinator::new(members, &volume.stream, curve).with_data(data)
        };
        let both = SharedCell::new(Both {
            array: coordinator(),
            of_disks: coordinator().with_geometry(Geometry {
                layout: volume.map.map(),
                offsets: vec![Sectors::ZERO; usize::from(members)],
            }),
            disk: volume.map.stripe * volume.map.stripes,
            orders: 0,
        });
        let mut source = volume.clients();
        let setup = volume.setup(&mut source, Box::new(both.clone()));
        run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        orders += both.lock().orders;
    }
    assert!(orders > 5_000, "{orders}");
}
