//! The coordinator and the second implementation, side by side on the same calls.

use crate::second::{Order, Second};
use crate::volume::Volume;
use headtime_array::Coordinator;
use headtime_engine::conduct::{Conduct, Conductor};
use headtime_engine::{Config, Engine, Few, Member, Part, Seen, SharedCell};
use headtime_sched::Request;
use headtime_sim::run;
use headtime_units::{Millionths, Time};
use std::sync::Arc;

/// Both. The product's directives are obeyed. Directives of one moment may come in any order. After the first difference
/// the product goes on alone.
struct Both {
    product: Coordinator,
    second: Second,
    /// Directives of this moment that only the second implementation has given, and only the product.
    second_alone: Vec<Order>,
    product_alone: Vec<Order>,
    differs: Option<String>,
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
        self.product.asked(now, whole, member, part, engine);
        if self.differs.is_none() {
            self.second.asked(now, whole, member, part, engine);
        }
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.product.seen(now, member, seen, engine);
        if self.differs.is_none() {
            self.second.seen(now, member, seen, engine);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let product = self.product.next_wakeup();
        if self.differs.is_some() {
            return product;
        }
        product.into_iter().chain(self.second.next_wakeup()).min()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        let order = self.product.order(now, engines);
        if self.differs.is_some() {
            return order;
        }
        let second = self.second.take_orders(now, engines);
        self.second_alone.extend(second);
        self.product_alone.extend(order);
        self.orders += u64::from(order.is_some());
        let second_alone = &mut self.second_alone;
        self.product_alone.retain(|order| {
            let at = second_alone.iter().position(|other| other == order);
            at.map(|at| second_alone.swap_remove(at)).is_none()
        });
        let same = self.second_alone.is_empty() && self.product_alone.is_empty();
        if order.is_none() && !same {
            self.differs = Some(format!(
                "at {now}, after {} directives: product {:?}, second implementation {:?}",
                self.orders, self.product_alone, self.second_alone
            ));
        }
        order
    }
}

/// The first difference if there is one, and the number of directives before.
fn compared(volume: &Volume) -> (Option<String>, u64) {
    let (members, stream) = (volume.map.members, &volume.stream);
    let second = Second::new(members, stream, Arc::clone(&volume.curve));
    let both = SharedCell::new(Both {
        product: Coordinator::new(members, stream, Arc::clone(&volume.curve)),
        second,
        second_alone: Vec::new(),
        product_alone: Vec::new(),
        differs: None,
        orders: 0,
    });
    let mut source = volume.clients();
    let setup = volume.setup(&mut source, Box::new(both.clone()));
    run(setup).unwrap_or_else(|error| panic!("seed {}: {error}", volume.seed));
    let mut both = both.lock();
    (both.differs.take(), both.orders)
}

/// The volume of a seed, with `members` disks and at most `readers` clients, which read. Drives get one command at a time, and nothing merges.
fn of_readers(seed: u64, members: u16, readers: usize) -> Volume {
    let mut volume = Volume::drawn(seed, 60);
    volume.map.members = members;
    // The paper bounds no waits.
    volume.stream.lost = Millionths::ONE;
    volume.engine = Config {
        merge: false,
        ..Config::default()
    };
    volume.habits.truncate(readers);
    for habit in &mut volume.habits {
        (habit.writes, habit.flushes) = (0, 0);
    }
    volume
}

/// First difference of each volume that has one, with its seed, and the number of directives before.
fn differences(volumes: impl Iterator<Item = Volume>) -> (Vec<String>, u64) {
    let mut all = (Vec::new(), 0);
    for volume in volumes {
        let (differs, orders) = compared(&volume);
        all.0
            .extend(differs.map(|text| format!("seed {}: {text}", volume.seed)));
        all.1 += orders;
    }
    all
}

/// Checks that at most `most` of some volumes differ, and that there is something to compare.
fn differ(volumes: impl Iterator<Item = Volume>, most: usize, least_orders: u64) {
    let (different, orders) = differences(volumes);
    println!("{} differ, {orders} directives agree", different.len());
    assert!(different.len() <= most, "{different:#?}");
    assert!(orders > least_orders, "{orders}");
}

/// The design note says how many differ. They have not been reduced.
#[test]
fn two_readers_on_two_disks_get_the_same_directives_but_for_one_of_150_volumes() {
    differ((0..150).map(|seed| of_readers(seed, 2, 2)), 1, 9_000);
}

#[test]
fn four_readers_on_three_disks_get_the_same_directives_but_for_nine_of_150_volumes() {
    differ((0..150).map(|seed| of_readers(seed, 3, 4)), 9, 20_000);
}

/// Red: all should agree. The 64 differences have not been reduced to choices that the paper leaves open.
#[test]
#[ignore = "shows how many volumes with writers, merging and depth differ"]
fn of_100_drawn_volumes_64_get_other_directives() {
    differ((0..100).map(|seed| Volume::drawn(seed, 60)), 64, 5_000);
}
