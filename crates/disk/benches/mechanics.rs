//! Cost of finding a sector and of predicting an access. The drives are an old drive with slips, a drive that spares
//! in ranges, and a present-day drive.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headtime_disk::{Model, profile};
use headtime_sched::{HeadAfter, Op, Positioning};
use headtime_units::{Extent, Time};
use std::hint::black_box;

const COUNT: u64 = 4096;

/// Addresses all over the disk, from a linear congruential generator (Knuth's constants).
fn extents(model: &Model) -> Vec<Extent> {
    let room = model.layout().capacity().get() - 8;
    let mut state = 1_u64;
    (0..COUNT)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Extent::at((state >> 20) % room, 8)
        })
        .collect()
}

fn mechanics(criterion: &mut Criterion) {
    for name in [
        "atlas10k",
        "barracuda-st32171w",
        "exos-x18",
        "nearline-20tb",
    ] {
        let model = Model::new(&profile::by_name(name).expect("a shipped profile"));
        let (layout, mechanics) = (model.layout(), model.mechanics());
        let extents = extents(&model);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(COUNT));
        group.bench_function("locate", |bencher| {
            bencher.iter(|| {
                for extent in &extents {
                    black_box(layout.locate(black_box(extent.start)));
                }
            });
        });
        let places: Vec<_> = extents.iter().map(|extent| model.start(*extent)).collect();
        group.bench_function("predict", |bencher| {
            bencher.iter(|| {
                for (index, pair) in places.windows(2).enumerate() {
                    let now = Time::from_nanos(black_box(index as u64 * 10_000_000));
                    black_box(model.predict(now, pair[0], pair[1], Op::Read));
                }
            });
        });
        group.bench_function("follow", |bencher| {
            bencher.iter(|| {
                let mut head = HeadAfter {
                    place: places[0],
                    free: Time::ZERO,
                };
                for extent in &extents {
                    head = model.follow(&head, head.free, *extent, Op::Read).head;
                }
                head.free
            });
        });
        for (label, zero_latency) in [("access", false), ("access, zero latency", true)] {
            group.bench_function(label, |bencher| {
                bencher.iter(|| {
                    let (mut from, mut now) = (layout.home(), Time::ZERO);
                    for extent in &extents {
                        let access =
                            mechanics.access(layout, from, now, *extent, Op::Read, zero_latency);
                        now += access.total();
                        from = access.track;
                    }
                    now
                });
            });
        }
    }
}

criterion_group!(benches, mechanics);
criterion_main!(benches);
