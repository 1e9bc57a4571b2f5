//! After any end of a probe, the drive's switches are as before. If the probe cannot restore them, a record has their
//! states, and the next start restores them.

use super::toys;
use headtime_disk::profile::{Profile, WriteBack, by_name};
use headtime_probe::extract::{ExtractError, Extraction, Stage};
use headtime_probe::quick::quick;
use headtime_probe::{
    Answer, Guarded, Modelled, Probe, ProbeError, QuickOptions, Stopping, Switch,
};
use headtime_sched::Op;
use headtime_units::Extent;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// An event that disturbs a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    /// The drive fails this number of commands.
    Fails(u64),
    /// An answer cannot be waited for.
    Lost,
    /// The drive is not there any more.
    Gone,
    /// The drive refuses to turn a switch, once.
    Balks,
    /// It turns none any more.
    Stuck,
    /// Nothing can be recorded any more.
    Unrecorded,
    /// The probe is told to stop.
    Stop,
    /// The probe has a bug.
    Panic,
    /// Nothing that the probe does has an effect any more.
    Kill,
}

/// Time of the event: after a number of commands, or after a number of written records and turned switches.
#[derive(Clone, Copy, Debug)]
enum At {
    Command(u64),
    Turn(u64),
}

/// Surroundings of a probe that outlive the probe.
struct World {
    blow: Blow,
    at: At,
    commands: Cell<u64>,
    turns: Cell<u64>,
    /// Commands since the event.
    since: Cell<u64>,
    has_balked: Cell<bool>,
    /// True from the next start on, when temporary events are over.
    is_over: Cell<bool>,
    /// States of switches to restore, as recorded on disk.
    record: RefCell<Vec<(Switch, bool)>>,
}

impl World {
    fn new(blow: Blow, at: At) -> World {
        World {
            blow,
            at,
            commands: Cell::new(0),
            turns: Cell::new(0),
            since: Cell::new(0),
            has_balked: Cell::new(false),
            is_over: Cell::new(false),
            record: RefCell::new(Vec::new()),
        }
    }

    fn has_happened(&self) -> bool {
        let has = match self.at {
            At::Command(count) => self.commands.get() > count,
            At::Turn(count) => self.turns.get() > count,
        };
        has && !self.is_over.get()
    }

    /// Returns true if this is what has happened.
    fn suffers(&self, blow: Blow) -> bool {
        self.has_happened() && self.blow == blow
    }

    /// Returns true if the drive hears nothing.
    fn is_deaf(&self) -> bool {
        self.suffers(Blow::Gone) || self.suffers(Blow::Kill)
    }

    /// Effect of the event on the command that is sent now.
    fn command(&self) -> Option<Blow> {
        self.commands.set(self.commands.get() + 1);
        if !self.has_happened() {
            return None;
        }
        self.since.set(self.since.get() + 1);
        let most = match self.blow {
            Blow::Fails(count) => count,
            Blow::Lost | Blow::Panic => 1,
            _ => u64::MAX,
        };
        (self.since.get() <= most).then_some(self.blow)
    }

    /// Returns true if a switch is not turned now.
    fn is_stuck(&self) -> bool {
        self.is_deaf()
            || self.suffers(Blow::Stuck)
            || self.suffers(Blow::Balks) && !self.has_balked.replace(true)
    }

    /// A record is written or a switch is turned.
    fn turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    fn note(&self, turned: &[(Switch, bool)]) -> Result<(), &'static str> {
        self.turn();
        if self.suffers(Blow::Unrecorded) || self.suffers(Blow::Kill) {
            return Err("disk full");
        }
        *self.record.borrow_mut() = turned.to_vec();
        Ok(())
    }
}

/// How a switch is before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    On,
    Off,
    /// It cannot be reached.
    Absent,
}

/// A drive under the event.
struct Struck<'w> {
    drive: Modelled,
    world: &'w World,
    settings: [Setting; 2],
    before: [Option<bool>; 2],
    /// Effect of the event on the command of each tag.
    fate: Vec<Option<Blow>>,
}

impl<'w> Struck<'w> {
    fn new(truth: &Profile, settings: [Setting; 2], world: &'w World) -> Struck<'w> {
        let mut drive = Modelled::new(truth, 1);
        for (which, setting) in Switch::ALL.into_iter().zip(settings) {
            if setting == Setting::Off && drive.switch(which).is_some() {
                drive.set(which, false).unwrap();
            }
        }
        Struck {
            before: Switch::ALL.map(|which| drive.switch(which)),
            fate: vec![None; usize::from(drive.depth())],
            drive,
            world,
            settings,
        }
    }

    fn guarded(&mut self, scratch: Option<Extent>) -> Guarded<'_> {
        let world = self.world;
        Guarded::new(self, scratch).recording(|turned| Ok(world.note(turned)?))
    }

    fn switches(&mut self) -> [Option<bool>; 2] {
        Switch::ALL.map(|which| self.drive.switch(which))
    }

    /// If the probe is killed now, the record has all states to restore.
    fn check_record(&mut self) {
        let is = self.switches();
        for (at, which) in Switch::ALL.into_iter().enumerate() {
            let record = self.world.record.borrow();
            let is_known = self.before[at].is_some_and(|on| record.contains(&(which, on)));
            assert!(is[at] == self.before[at] || is_known, "{which}: {record:?}");
        }
    }

    fn failed(extent: Extent) -> ProbeError {
        ProbeError::Failed {
            op: Op::Read,
            extent,
            source: "no such device".into(),
        }
    }
}

impl headtime_probe::Layer for Struck<'_> {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        let fate = self.world.command();
        self.check_record();
        assert_ne!(fate, Some(Blow::Panic), "learning has a bug");
        if self.world.is_deaf() {
            return Err(Struck::failed(extent));
        }
        self.fate[usize::from(tag)] = fate;
        self.drive.send(tag, op, extent)
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let answer = self.drive.answer()?;
        match self.fate[usize::from(answer.tag)] {
            _ if self.world.is_deaf() => Err(Struck::failed(Extent::at(0, 0))),
            Some(Blow::Lost) => Err(Struck::failed(Extent::at(0, 0))),
            Some(Blow::Fails(_)) => Ok(Answer {
                failure: Some("unrecovered read error".into()),
                ..answer
            }),
            _ => Ok(answer),
        }
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        let is_there = self.settings[which as usize] != Setting::Absent && !self.world.is_deaf();
        is_there.then(|| self.drive.switch(which)).flatten()
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        assert_ne!(self.settings[which as usize], Setting::Absent, "{which}");
        self.world.turn();
        if self.world.is_stuck() {
            let source = "it is stuck".into();
            return Err(ProbeError::Refused { which, source });
        }
        self.drive.set(which, on)?;
        self.check_record();
        Ok(())
    }
}

/// A drive, its learned values at some stages, and the number of commands of a whole probe.
struct Subject {
    truth: Profile,
    known: Vec<Extraction>,
    commands: u64,
}

/// Stages from which a probe continues. Switches are turned from the second of these on.
const STAGES: [Stage; 3] = [Stage::Rotation, Stage::Writes, Stage::Electronics];

impl Subject {
    fn new(truth: Profile) -> Subject {
        let mut probe = Modelled::new(&truth, 1);
        let mut extraction = Extraction::new(&probe, 1);
        let mut known = Vec::new();
        while extraction.stage() != Stage::Done {
            if STAGES.get(known.len()) == Some(&extraction.stage()) {
                known.push(extraction.clone());
            }
            extraction.step(&mut probe).unwrap();
        }
        Subject {
            truth,
            known,
            commands: extraction.reads,
        }
    }
}

/// Drives with both switches and with one, with one command at a time and with more.
fn subjects() -> &'static [Subject] {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    SUBJECTS.get_or_init(|| {
        let old = by_name("hp-c2247a").unwrap();
        let cached = old.with(|spec| spec.cache.write_back = WriteBack::Full);
        let all = [
            toys::little(),
            old,
            cached.unwrap(),
            toys::roomy(),
            by_name("wd5000aaks").unwrap(),
        ];
        all.map(Subject::new).into_iter().collect()
    })
}

/// Kind of probe.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Quick,
    /// A whole probe from one of the stages on, with true if a third of the drive may be written.
    Whole(usize, bool),
}

/// As `headtime drive probe` goes about it.
fn learn(struck: &mut Struck<'_>, mut extraction: Extraction) -> Result<(), ExtractError> {
    let world = struck.world;
    let mut stop = |_| world.suffers(Blow::Stop);
    while extraction.stage() != Stage::Done {
        let mut guarded = struck.guarded(extraction.scratch());
        let outlook = extraction.step_or_stay(&mut Stopping::new(&mut guarded, &mut stop));
        guarded.restore()?;
        assert_eq!(struck.switches(), struck.before, "after a step");
        outlook?;
    }
    Ok(())
}

/// As `headtime drive probe --quick` does.
fn learn_quickly(struck: &mut Struck<'_>) {
    let world = struck.world;
    let mut stop = |_| world.suffers(Blow::Stop);
    let options = QuickOptions {
        time: QuickOptions::TIME_MIN,
        seed: 1,
    };
    let mut guarded = struck.guarded(None);
    quick(
        &mut Stopping::new(&mut guarded, &mut stop),
        &options,
        &mut |_| (),
    );
    drop(guarded);
    assert_eq!(world.turns.get(), 0, "it turns no switch");
}

fn blows() -> impl Strategy<Value = Blow> {
    prop_oneof![
        // The probe repeats the failed step.
        Just(Blow::Fails(1)),
        (2_u64..100).prop_map(Blow::Fails),
        Just(Blow::Fails(u64::MAX)),
        Just(Blow::Lost),
        Just(Blow::Gone),
        Just(Blow::Balks),
        Just(Blow::Stuck),
        Just(Blow::Unrecorded),
        Just(Blow::Stop),
        Just(Blow::Panic),
        Just(Blow::Kill),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let whole = |stage: usize| {
        prop::bool::weighted(0.8).prop_map(move |written| Asked::Whole(stage, written))
    };
    prop_oneof![
        1 => Just(Asked::Quick),
        1 => whole(0),
        4 => whole(1),
        8 => whole(2),
    ]
}

fn settings() -> impl Strategy<Value = [Setting; 2]> {
    let all = vec![Setting::On, Setting::Off, Setting::Absent];
    prop::array::uniform2(prop::sample::select(all))
}

proptest! {
    #[test]
    fn switches_are_as_they_were_whatever_ends_a_probe(
        // The last two take ten times as long.
        which in prop_oneof![5 => 0..3_usize, 1 => 3..5_usize],
        asked in asked(),
        settings in settings(),
        blow in blows(),
        // A share of the commands, at times past the last one, or a number of turns among some hundred.
        at in prop_oneof![(0.0..1.05_f64).prop_map(Ok), (0_u64..150).prop_map(Err)],
    ) {
        let subject = &subjects()[which];
        let commands = match asked {
            Asked::Quick => 3_000,
            Asked::Whole(stage, _) => subject.commands - subject.known[stage].reads,
        };
        let at = match at {
            Ok(part) => At::Command((part * commands as f64) as u64),
            Err(turns) => At::Turn(turns),
        };
        let world = World::new(blow, at);
        let mut struck = Struck::new(&subject.truth, settings, &world);
        let ended = catch_unwind(AssertUnwindSafe(|| match asked {
            Asked::Quick => learn_quickly(&mut struck),
            Asked::Whole(stage, written) => {
                let mut extraction = subject.known[stage].clone();
                if written {
                    let third = subject.truth.geometry.capacity.get() / 3;
                    extraction = extraction.with_scratch(Extent::at(third, third));
                }
                // The result of learning does not matter for the switches.
                let _ = learn(&mut struck, extraction);
            }
        }));
        if let Err(bug) = ended && !world.suffers(Blow::Panic) {
            std::panic::resume_unwind(bug);
        }
        struck.check_record();
        let lasts = [Blow::Gone, Blow::Stuck, Blow::Unrecorded, Blow::Kill].iter().any(|blow| world.suffers(*blow));
        if !lasts {
            prop_assert_eq!(struck.switches(), struck.before);
            prop_assert_eq!(&*world.record.borrow(), &[]);
        }
        // The next start. Earlier commands are done by then.
        world.is_over.set(true);
        while struck.drive.drive().in_flight() > 0 {
            struck.drive.answer().unwrap();
        }
        let left = world.record.borrow().clone();
        struck.guarded(None).restore_earlier(&left).unwrap();
        prop_assert_eq!(struck.switches(), struck.before);
        prop_assert_eq!(&*world.record.borrow(), &[]);
    }
}
