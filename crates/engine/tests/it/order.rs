//! Random requests with overlaps, flushes and bad sectors: the engine keeps its promises.

use crate::world::{Timed, ToyDrive, Virtual, arrival, run};
use headtime_engine::{Config, Engine, Plug, Stats, log};
use headtime_sched::{Flags, Noop, Op, Scheduler, WorkConserving};
use headtime_testkit::{ToyAnticipator, ToyFair};
use headtime_units::{Nanos, Sectors, Time};
use proptest::prelude::*;

fn arrivals() -> impl Strategy<Value = Vec<Timed>> {
    let one = (0_u64..200, 0_u8..20, 0_u64..64, 1_u64..9, 0_u32..3, 0_u8..6);
    proptest::collection::vec(one, 1..80).prop_map(|ones| {
        let mut now = Time::ZERO;
        let mut sequential = 1000;
        let mut all = Vec::new();
        for (id, (gap, kind, start, len, process, flags)) in ones.into_iter().enumerate() {
            now += Nanos::from_micros(gap.saturating_sub(60));
            let id = id as u64;
            let mut new = match kind {
                0 => arrival(id, Op::Flush, 0, 0, process),
                1 => arrival(id, Op::Discard, start, len, process),
                2..=7 => arrival(id, Op::Write, start, len, process),
                8..=13 => arrival(id, Op::Read, start, len, process),
                _ => {
                    sequential += len;
                    arrival(id, Op::Read, sequential - len, len, process)
                }
            };
            if new.op == Op::Write {
                new.flags = match flags {
                    0 => Flags::FUA,
                    1 => Flags::PREFLUSH,
                    2 => Flags::PREFLUSH.with(Flags::FUA),
                    _ => Flags::NONE,
                };
            }
            all.push((now, new));
        }
        all
    })
}

fn config() -> impl Strategy<Value = Config> {
    let plug = (1_u32..6, 1_u64..5000).prop_map(|(requests, us)| Plug {
        requests,
        timeout: Nanos::from_micros(us),
    });
    let plug = proptest::option::of(plug);
    (
        1_u32..8,
        any::<bool>(),
        1_u64..40,
        any::<bool>(),
        plug,
        any::<bool>(),
    )
        .prop_map(
            |(depth, merge, most, commit_ahead, plug, hide_origins)| Config {
                depth,
                merge,
                merge_sectors_max: Sectors::new(most),
                commit_ahead,
                plug,
                hide_origins,
            },
        )
}

fn keeps_promises<S: Scheduler>(
    new: impl Fn() -> S,
    config: Config,
    arrivals: &[Timed],
    bad: &[u64],
) -> Stats {
    let done = run(
        config,
        new(),
        arrivals,
        ToyDrive::new(bad.to_vec()),
        &mut Virtual,
    );
    let mut engine = Engine::new(config, new()).expect("the same configuration");
    let replayed = log::replay(&done.log, &mut engine, |_| None).expect("the same decisions");
    assert!(replayed.events >= arrivals.len() as u64);
    *engine.stats()
}

proptest! {
    #[test]
    fn noop(arrivals in arrivals(), config in config(), bad in proptest::option::of(0_u64..64)) {
        let bad: Vec<u64> = bad.into_iter().collect();
        keeps_promises(|| WorkConserving::new(Noop::new()), config, &arrivals, &bad);
    }

    #[test]
    fn anticipator(arrivals in arrivals(), config in config()) {
        keeps_promises(|| ToyAnticipator::new(Noop::new()), config, &arrivals, &[]);
    }

    #[test]
    fn fair(arrivals in arrivals(), config in config()) {
        keeps_promises(|| WorkConserving::new(ToyFair::new()), config, &arrivals, &[]);
    }

    #[test]
    fn log_reader_takes_anything(text in ".*") {
        let _ = log::read(&format!("headtime-log 1\n{text}")).count();
    }
}
