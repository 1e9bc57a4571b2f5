//! Names of requests and commands outside the engine.

use crate::world::arrival;
use headtime_engine::audit::Audit;
use headtime_engine::log;
use headtime_engine::{Arrival, Command, Config, DriveTag, Engine, Event, Outcome, RequestId};
use headtime_sched::{Noop, Op, WorkConserving};
use headtime_units::Time;

fn engine(depth: u32) -> Engine<WorkConserving<Noop>> {
    let config = Config {
        depth,
        ..Config::default()
    };
    Engine::new(config, WorkConserving::new(Noop::new())).expect("in range")
}

fn issued(engine: &mut Engine<WorkConserving<Noop>>) -> Vec<u32> {
    let commands = std::iter::from_fn(|| engine.poll(Time::ZERO));
    let tags = commands.filter_map(|command| match command {
        Command::Issue(request) => Some(request.tag.0),
        _ => None,
    });
    tags.collect()
}

#[test]
fn a_command_has_the_lowest_tag_of_those_that_are_free() {
    let mut engine = engine(3);
    let now = Time::ZERO;
    for id in 0..6 {
        engine.handle(now, Event::Arrived(arrival(id, Op::Read, id * 100, 8, 0)));
    }
    assert_eq!(issued(&mut engine), [0, 1, 2]);
    for (tag, next) in [(1, vec![1]), (2, vec![2]), (0, vec![0]), (2, vec![])] {
        let (tag, outcome) = (DriveTag(tag), Outcome::Done);
        engine.handle(now, Event::Completed { tag, outcome });
        assert_eq!(engine.parts(tag).count(), 0, "the tag is free");
        assert_eq!(issued(&mut engine), next);
    }
}

/// A job in the background may use the same numbers as a client.
#[test]
fn a_request_in_the_background_is_not_reported_to_a_client() {
    let (mut engine, mut audit, now) = (engine(1), Audit::new(), Time::ZERO);
    let mut text = String::new();
    log::write_header(&mut text);
    let client = arrival(7, Op::Read, 0, 8, 0);
    let background = Arrival {
        id: RequestId::Background(7),
        ..arrival(0, Op::Read, 8, 8, 0)
    };
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    let mut ends = Vec::new();
    // The first goes to the drive; the others touch, and become one command.
    for event in [
        Event::Arrived(arrival(1, Op::Read, 100, 8, 0)),
        Event::Arrived(client),
        Event::Arrived(background),
        Event::Completed { tag, outcome },
        Event::Completed { tag, outcome },
    ] {
        log::write_event(&mut text, now, &event);
        audit.event(&event).expect("an event that can be");
        engine.handle(now, event);
        while let Some(command) = engine.poll(now) {
            audit.command(&engine, &command).expect("a promise kept");
            log::write_decision(&mut text, now, &(&command).into());
            match command {
                Command::Issue(_) => {}
                Command::Finish(done) => ends.push(RequestId::Client(done.id)),
                Command::Background(done) => ends.push(RequestId::Background(done.id)),
            }
        }
    }
    assert_eq!(
        ends,
        [
            RequestId::Client(1),
            RequestId::Client(7),
            RequestId::Background(7)
        ]
    );
    assert!(text.contains("\nA 0 b7 R 8 8 0 0 0 0 1\n"), "{text}");
    assert!(text.contains("\nF 0 b7 ok\n"), "{text}");
    let again = self::engine(1);
    let replayed = log::replay(&text, again, |_| None).expect("the same decisions");
    assert_eq!(replayed.decisions, 5);
}
