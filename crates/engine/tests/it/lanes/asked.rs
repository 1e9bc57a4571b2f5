//! When the schedulers of lanes are asked.

use crate::world::arrival;
use headtime_engine::{Arrival, Command, Config, Engine, Event, GateSpec, Outcome};
use headtime_sched::{Class, NoPositioning, Op, Scheduler, Spec};
use headtime_testkit::Counted;
use headtime_units::{Nanos, Time};

type Watched = Counted<Box<dyn Scheduler>>;

/// Serves reads of the lowest class one by one, and says how often the schedulers of the three lanes were asked.
fn asked(scheduler: &str) -> Vec<u64> {
    let config = Config::default();
    let gate: GateSpec = "rsd-priority:ranks=0/0/0".parse().expect("a gate");
    let gate = gate.build(&config).expect("in range").expect("a gate");
    let spec: Spec = scheduler.parse().expect("a scheduler");
    let build = || Counted::new(spec.build(None::<NoPositioning>).expect("complete"));
    let schedulers: Vec<Watched> = std::iter::repeat_with(build).take(3).collect();
    let mut engine = Engine::with_gate(config, gate, schedulers).expect("in range");
    let mut now = Time::ZERO;
    for id in 0..10 {
        let mut event = Event::Arrived(Arrival {
            class: Class::IDLE,
            ..arrival(id, Op::Read, id * 1000, 8, 0)
        });
        loop {
            now += Nanos::from_millis(100);
            engine.handle(now, event);
            let mut tag = None;
            while let Some(command) = engine.poll(now) {
                if let Command::Issue(request) = command {
                    tag = Some(request.tag);
                }
            }
            event = match (tag, engine.next_wakeup()) {
                (Some(tag), _) => Event::Completed {
                    tag,
                    outcome: Outcome::Done,
                },
                (None, Some(_)) => Event::Woke,
                (None, None) => break,
            };
        }
    }
    assert!(engine.is_idle());
    engine.schedulers().map(Counted::dispatches).collect()
}

#[test]
fn a_scheduler_that_never_waits_is_asked_for_what_it_has_and_no_more() {
    assert_eq!(asked("noop"), [0, 0, 10]);
}

#[test]
fn a_scheduler_that_may_wait_is_asked_also_while_it_has_nothing() {
    let asked = asked("as");
    assert!(asked[..2].iter().all(|asks| *asks >= 10), "{asked:?}");
}
