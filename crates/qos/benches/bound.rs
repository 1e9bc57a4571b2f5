//! Time of one bound: a request at a server, and the prediction at the end of an epoch. Time of training.

use criterion::{Criterion, criterion_group, criterion_main};
use headtime_qos::{Accumulator, CartOptions, Sample, Training, TrainingOptions, grow};
use headtime_units::Sectors;
use std::hint::black_box;

fn bounds(criterion: &mut Criterion) {
    let area = Sectors::new(40_000_000);
    let requests: Vec<_> = Training::new(TrainingOptions::default(), area, 512).collect();
    let mut server = Accumulator::new(512);
    let samples = requests.chunks(8).zip(0..).map(|(epoch, group)| {
        epoch
            .iter()
            .for_each(|request| server.add(request.op, request.extent));
        let sums = server.take().expect("an epoch has requests");
        let vector = sums.vector();
        let rate = vector[2] / (0.01 + 1e-4 * vector[3]);
        Sample {
            vector,
            rate,
            seconds: 0.1,
            is_judged: true,
            group,
        }
    });
    let samples: Vec<Sample> = samples.collect();
    let tree = grow(&samples, &CartOptions::default())
        .expect("many groups")
        .tree;
    let mut requests = requests.iter().cycle();
    let mut add = |server: &mut Accumulator| {
        let request = requests.next().expect("a cycle has no end");
        server.add(request.op, request.extent);
    };
    let mut group = criterion.benchmark_group("bound");
    group.bench_function("a request", |bencher| {
        bencher.iter(|| add(black_box(&mut server)));
    });
    group.bench_function(
        "a request, and the end of the epoch with its prediction",
        |bencher| {
            bencher.iter(|| {
                add(&mut server);
                let sums = server.take().expect("an epoch has requests");
                black_box(tree.predict(&sums.vector()))
            });
        },
    );
    group.finish();
    let mut group = criterion.benchmark_group("training");
    group.sample_size(10);
    group.bench_function("20,000 requests in epochs of 8", |bencher| {
        bencher.iter(|| grow(&samples, &CartOptions::default()));
    });
    group.finish();
}

criterion_group!(benches, bounds);
criterion_main!(benches);
