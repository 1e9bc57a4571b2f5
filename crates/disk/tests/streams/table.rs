//! The whole table, for the design note: `cargo test -p headtime-disk --test streams -- --ignored
//! --nocapture`.

use crate::harness::{Client, Order, run, run_warm};
use crate::{DEPTHS, QUEUED, cache_off, streams};
use headtime_disk::Profile;
use headtime_disk::profile::{WriteBack, by_name};
use headtime_sched::Op;
use headtime_units::Nanos;

fn line(name: &str, mut value: impl FnMut(u32) -> String) {
    print!("  {name:<44}");
    for depth in DEPTHS {
        print!("{:>9}", value(depth));
    }
    println!();
}

fn rates(name: &str, profile: &Profile, clients: impl Fn(u32) -> Vec<Client>) {
    let span = Nanos::from_millis(6_000);
    line(name, |depth| {
        format!("{:.1}", run(profile, depth, &clients(depth), span).rate())
    });
}

#[test]
#[ignore = "prints a table"]
fn table() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        println!("{name}: MB/s at depth {DEPTHS:?}");
        for kib in [4, 16, 64, 128, 512, 1024] {
            let len = kib * 2;
            rates(&format!("read {kib} KiB"), &profile, |depth| {
                vec![Client::reader(len, depth)]
            });
        }
        for (count, each) in [(2, 1), (2, 16), (4, 1), (4, 8)] {
            for kib in [16, 128, 1024] {
                let label = format!("read {kib} KiB, {count} streams of {each}");
                rates(&label, &profile, |_| {
                    streams(&profile, kib * 2, count, each)
                });
            }
        }
        let off = cache_off(&profile);
        let write_through = profile
            .with(|spec| spec.cache.write_back = WriteBack::Off)
            .unwrap();
        let read = |depth| Client::reader(256, depth);
        for (label, order) in [
            ("hole of 4 KiB", Order::Holes(8)),
            ("hole of 128 KiB", Order::Holes(256)),
            ("hole of 1 MiB", Order::Holes(2048)),
            ("backward", Order::Backward),
            ("shuffled in 4", Order::Shuffled(4)),
            ("shuffled in 16", Order::Shuffled(16)),
        ] {
            rates(&format!("read 128 KiB, {label}"), &profile, |depth| {
                vec![Client {
                    order,
                    place: (0, 4_000_000),
                    ..read(depth)
                }]
            });
        }
        for kib in [4, 128, 1024] {
            rates(&format!("read {kib} KiB, cache off"), &off, |depth| {
                vec![Client::reader(kib * 2, depth)]
            });
        }
        rates("read 128 KiB, cache off, backward", &off, |depth| {
            vec![Client {
                order: Order::Backward,
                place: (0, 4_000_000),
                ..read(depth)
            }]
        });
        rates("read 128 KiB, FUA", &profile, |depth| {
            vec![Client {
                fua: true,
                ..read(depth)
            }]
        });
        for kib in [4, 128, 1024] {
            let write = |depth| Client {
                op: Op::Write,
                ..Client::reader(kib * 2, depth)
            };
            rates(&format!("write {kib} KiB"), &profile, |d| vec![write(d)]);
            rates(&format!("write {kib} KiB, FUA"), &profile, |depth| {
                vec![Client {
                    fua: true,
                    ..write(depth)
                }]
            });
            rates(
                &format!("write {kib} KiB, write cache off"),
                &write_through,
                |d| vec![write(d)],
            );
        }
        let random = |outstanding| Client {
            order: Order::Random,
            ..Client::reader(8, outstanding)
        };
        line("random read 4 KiB, IOPS", |depth| {
            let done = run(
                &profile,
                depth,
                &[random(depth)],
                Nanos::from_millis(30_000),
            );
            format!("{:.1}", done.commands())
        });
        for (label, stream) in [("one read of", 1), ("8 reads of", 8)] {
            let beside = |depth| {
                let clients = [Client::reader(256, stream), random(1)];
                run(&profile, depth, &clients, Nanos::from_millis(30_000))
            };
            line(&format!("random beside {label} a stream: stream"), |d| {
                let done = beside(d);
                format!("{:.1}", done.got[0].bytes as f64 / 30e6)
            });
            line("  random: number", |d| {
                beside(d).got[1].took.len().to_string()
            });
            line("  random: median ms", |d| {
                format!("{:.0}", beside(d).got[1].median().as_secs_f64() * 1e3)
            });
            line("  random: longest ms", |d| {
                format!("{:.0}", beside(d).got[1].longest().as_secs_f64() * 1e3)
            });
        }
    }
}

#[test]
#[ignore = "prints a table"]
fn caps() {
    for name in QUEUED {
        for cap in [0, 50, 100, 250, 500, 1000, 4000] {
            let profile = by_name(name)
                .unwrap()
                .with(|spec| spec.queue.stream_cap = Nanos::from_millis(cap))
                .unwrap();
            print!("{name:<24} cap {cap:>5} ms:");
            let span = Nanos::from_millis(20_000);
            for (kib, count, each) in [
                (16, 2, 1),
                (128, 2, 1),
                (128, 2, 16),
                (16, 4, 8),
                (128, 4, 1),
                (128, 4, 8),
                (1024, 4, 8),
            ] {
                let done = run(&profile, 32, &streams(&profile, kib * 2, count, each), span);
                let least = done.got.iter().map(|got| got.bytes).min().unwrap() as f64 / 20e6;
                let longest = done.got.iter().map(|got| got.longest()).max().unwrap();
                print!(
                    " {:.0}/{least:.0}/{:.0}",
                    done.rate(),
                    longest.as_secs_f64() * 1e3
                );
            }
            for (stream, others) in [(1, 1), (8, 1), (1, 16), (16, 16)] {
                let random = Client {
                    order: Order::Random,
                    ..Client::reader(8, others)
                };
                let clients = [Client::reader(256, stream), random];
                let done = run(&profile, 32, &clients, span);
                print!(
                    " | {:.0} {:.1} {:.0} {:.0}",
                    done.got[0].bytes as f64 / 20e6,
                    done.got[1].took.len() as f64 / 20.0,
                    done.got[1].median().as_secs_f64() * 1e3,
                    done.got[1].longest().as_secs_f64() * 1e3
                );
            }
            println!();
        }
    }
}

/// Writes that complete in the buffer, once that is full.
#[test]
#[ignore = "prints a table"]
fn buffered() {
    let (warm, span) = (Nanos::from_millis(10_000), Nanos::from_millis(20_000));
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        println!("{name}: depth {DEPTHS:?}");
        let write = |kib: u64, depth| Client {
            op: Op::Write,
            ..Client::reader(kib * 2, depth)
        };
        let capacity = profile.geometry.capacity.get();
        let inner = (capacity - 40_000_000) / 8 * 8;
        for (label, start) in [("", 0), (" at the inner edge", inner)] {
            for kib in [4, 16, 128, 1024] {
                line(&format!("write {kib} KiB{label}, MB/s"), |depth| {
                    let client = write(kib, depth).at(start);
                    let done = run_warm(&profile, depth, &[client], warm, span);
                    format!("{:.1}", done.rate())
                });
            }
        }
        for count in [2, 4] {
            line(&format!("{count} streams of 128 KiB, MB/s"), |depth| {
                let clients: Vec<Client> = (0..count)
                    .map(|n| write(128, depth).at(capacity / 64 * 8 * n))
                    .collect();
                let done = run_warm(&profile, depth, &clients, warm, span);
                let least = done.got.iter().map(|got| got.bytes).min().unwrap() as f64 / 20e6;
                format!("{:.0}/{least:.0}", done.rate())
            });
        }
        let random = |op, outstanding| Client {
            op,
            order: Order::Random,
            ..Client::reader(8, outstanding)
        };
        for (label, shift) in [("", 0), (", off the 4 KiB", 1)] {
            line(&format!("random write 4 KiB{label}, IOPS"), |depth| {
                let client = random(Op::Write, depth).at(shift);
                let done = run_warm(&profile, depth, &[client], warm, span);
                format!("{:.1}", done.commands())
            });
            line("  longest ms", |depth| {
                let client = random(Op::Write, depth).at(shift);
                let done = run_warm(&profile, depth, &[client], warm, span);
                format!("{:.0}", done.got[0].longest().as_secs_f64() * 1e3)
            });
            line(&format!("write 128 KiB{label}, MB/s"), |depth| {
                let client = write(128, depth).at(shift);
                let done = run_warm(&profile, depth, &[client], warm, span);
                format!("{:.1}", done.rate())
            });
        }
        line("random reads and writes, half each, IOPS", |depth| {
            let half = depth.div_ceil(2);
            let clients = [random(Op::Read, half), random(Op::Write, half)];
            let done = run_warm(&profile, depth, &clients, warm, span);
            let of = |n: usize| done.got[n].took.len() as f64 / 20.0;
            format!("{:.0}/{:.0}", of(0), of(1))
        });
        line("  longest read, ms", |depth| {
            let half = depth.div_ceil(2);
            let clients = [random(Op::Read, half), random(Op::Write, half)];
            let done = run_warm(&profile, depth, &clients, warm, span);
            format!("{:.0}", done.got[0].longest().as_secs_f64() * 1e3)
        });
        line("stream of reads beside random writes", |depth| {
            let clients = [Client::reader(256, 1), random(Op::Write, depth.min(31))];
            let done = run_warm(&profile, 32, &clients, warm, span);
            format!(
                "{:.0}/{:.0}",
                done.got[0].bytes as f64 / 20e6,
                done.got[1].took.len() as f64 / 20.0
            )
        });
        line("random reads beside a stream of writes", |depth| {
            let clients = [write(128, depth.min(31)), random(Op::Read, 1)];
            let done = run_warm(&profile, 32, &clients, warm, span);
            format!(
                "{:.0}/{:.1}",
                done.got[0].bytes as f64 / 20e6,
                done.got[1].took.len() as f64 / 20.0
            )
        });
    }
}

#[test]
#[ignore = "prints a table"]
fn runs() {
    let (warm, span) = (Nanos::from_millis(20_000), Nanos::from_millis(60_000));
    for name in QUEUED {
        for runs in [1024, 4096, 8192, 16384, 32768] {
            let profile = by_name(name)
                .unwrap()
                .with(|spec| spec.cache.destage_runs = runs)
                .unwrap();
            let whole = profile.geometry.capacity.get();
            print!("{name} {runs:>6}:");
            for place in [whole, whole / 16, whole / 256] {
                let client = Client {
                    op: Op::Write,
                    order: Order::Random,
                    place: (0, place),
                    ..Client::reader(8, 16)
                };
                let done = run_warm(&profile, 16, &[client], warm, span);
                print!(
                    " {:>6.0} ({:.0} ms)",
                    done.commands(),
                    done.got[0].longest().as_secs_f64() * 1e3
                );
            }
            println!();
        }
    }
}
