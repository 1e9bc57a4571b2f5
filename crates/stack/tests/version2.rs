//! Logs of earlier versions.

use headtime_engine::Engine;
use headtime_engine::log::{Reader, Replay};
use headtime_sched::{Knowledge, NoPositioning, Spec};
use headtime_stack::LogSettings;

/// Version 2 named commands by the engine's own index. The writer of version 2 made this log of a random run. The run
/// has up to eight commands at a time, a flush, and a drive that loses some commands and fails to read others.
#[test]
fn a_log_of_version_2_is_replayed_with_the_same_decisions() {
    let text = include_str!("data/version-2.log");
    let settings = Reader::new(text.as_bytes()).settings().expect("settings");
    let settings =
        LogSettings::from_settings("version-2.log", &settings).expect("all that is needed");
    let spec: Spec = settings.scheduler.parse().expect("a scheduler");
    let scheduler = spec.build(Knowledge::<NoPositioning>::default());
    let engine = Engine::new(settings.config(), scheduler.expect("it needs nothing")).unwrap();
    let mut replay = Replay::new(engine);
    let replayed = replay.all(text, |_| None).expect("the same decisions");
    assert_eq!((replayed.events, replayed.decisions), (74, 56));
    assert!(replay.engines()[0].is_idle());
}
