//! Time of one bound: the requests of an epoch at a server, and the prediction at its end.

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
    let mut epochs = requests.chunks(16).cycle();
    let mut group = criterion.benchmark_group("bound");
    group.bench_function("of an epoch of 16 requests at a server", |bencher| {
        bencher.iter(|| {
            for request in epochs.next().expect("a cycle has no end") {
                server.add(request.op, request.extent);
            }
            server
                .take()
                .map(|sums| black_box(tree.predict(&sums.vector())))
        });
    });
    let mut vectors = samples.iter().map(|sample| sample.vector).cycle();
    group.bench_function("prediction alone", |bencher| {
        bencher.iter(|| {
            vectors
                .next()
                .map(|vector| black_box(tree.predict(&vector)))
        });
    });
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
