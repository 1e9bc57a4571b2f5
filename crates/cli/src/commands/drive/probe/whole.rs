//! `headtime drive probe`: learns everything about a disk, in sessions that can be stopped and resumed.
//!
//! A simulated drive is switched on anew for each step, at the time spent so far. So a resumed session finds the same drive as a
//! session that was never stopped.

use super::device::{device, remote};
use super::page::{Page, ProbeEnd};
use super::state::{StateFile, SwitchRecord};
use crate::args::{Probe as Args, TextFormat};
use crate::commands::compare;
use crate::commands::context::Context;
use crate::commands::signals::signals;
use crate::progress::progress;
use headtime_disk::Profile;
use headtime_lab::fault::{Fault, name};
use headtime_lab::files::Output;
use headtime_lab::hash::hash_of;
use headtime_lab::output;
use headtime_lab::progress::Goal;
use headtime_linux::clock::Clock;
use headtime_probe::extract::{ExtractError, Extraction, Outlook, Stage};
use headtime_probe::{Guarded, Modelled, Probe, ProbeError, Stopping, Switch};
use headtime_serve::file::File;
use headtime_serve::probed::{Probed, Remote};
use headtime_units::{Bytes, Nanos, Time};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Time for a running step to end after the session's time is over.
const STEP_GRACE: Nanos = Nanos::from_secs(10);
/// Least time between two writes of the state, in seconds. Steps of a simulated drive are fast, so repeating a few costs little.
const WRITE_S: f64 = 0.1;
/// End of the progress bar.
const SHARES: u64 = 1_000;

/// Subject of a probe.
enum Subject {
    Device(Box<Probed<File>>),
    /// A disk behind a socket.
    Remote(Box<Remote>),
    EmulatedDrive(EmulatedDrive),
}

/// Access for which a device is opened.
#[derive(Clone, Copy)]
enum Access {
    Read,
    /// For reading and writing.
    Write,
}

/// A simulated drive while it is off.
struct EmulatedDrive {
    profile: Profile,
    seed: u64,
    /// File with the drive's switches.
    switches: Option<PathBuf>,
}

impl EmulatedDrive {
    /// Switches the drive on.
    fn on(&self, at: Nanos) -> Lasting<'_> {
        let mut drive = Modelled::new(&self.profile, self.seed);
        drive.pause(at);
        let mut lasting = Lasting {
            drive,
            file: self.switches.as_deref(),
        };
        lasting.restore();
        lasting
    }
}

/// A simulated drive that stores its switches in a file, as disks store switches on the medium.
struct Lasting<'a> {
    drive: Modelled,
    file: Option<&'a Path>,
}

impl Lasting<'_> {
    /// Sets the switches to their states when the drive was last switched off.
    fn restore(&mut self) {
        let kept = self.file.and_then(|path| fs::read_to_string(path).ok());
        for line in kept.iter().flat_map(|text| text.lines()) {
            for which in Switch::ALL {
                if let Some(on) = line.strip_prefix(&format!("{which:?} ")) {
                    // A switch that the drive does not have is ignored.
                    let _ = self.drive.set(which, on == "on");
                }
            }
        }
    }
}

impl headtime_probe::Layer for Lasting<'_> {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        self.drive.set(which, on)?;
        let Some(path) = self.file else {
            return Ok(());
        };
        let mut text = String::new();
        for which in Switch::ALL {
            if let Some(on) = self.drive.switch(which) {
                let word = if on { "on" } else { "off" };
                text.push_str(&format!("{which:?} {word}\n"));
            }
        }
        let kept = Output::write_all_of(path, &text);
        kept.map_err(|error| ProbeError::NotRecorded {
            which,
            source: error.into(),
        })
    }
}

impl Subject {
    fn open(args: &Args, access: Access, context: &mut Context<'_>) -> Result<Subject, Fault> {
        if let Some(path) = &args.device {
            if let Some(remote) = remote(path, args.export.as_deref())? {
                return Ok(Subject::Remote(Box::new(remote)));
            }
            let writes = matches!(access, Access::Write);
            return Ok(Subject::Device(Box::new(device(path, writes)?)));
        }
        Ok(Subject::EmulatedDrive(EmulatedDrive {
            profile: context.drive(args.emulate.as_deref().unwrap_or_default())?,
            seed: args.seed,
            switches: args.emulate_switches.clone(),
        }))
    }

    /// Returns true if the subject is a device or a file of this machine.
    fn is_device(&self) -> bool {
        matches!(self, Subject::Device(_))
    }

    /// Identity of the disk, different from any other disk's.
    fn identity(&self) -> String {
        match self {
            Subject::Device(probe) => {
                let bytes = probe.capacity().bytes(probe.sector_bytes());
                format!("{}, {}", probe.identity(), Bytes(bytes))
            }
            Subject::Remote(probe) => {
                let bytes = probe.capacity().bytes(probe.sector_bytes());
                format!("NBD export {}, {}", probe.identity(), Bytes(bytes))
            }
            Subject::EmulatedDrive(emulated) => format!(
                "{}, simulated, seed {}, profile {}",
                emulated.profile.name,
                emulated.seed,
                hash_of(&emulated.profile.to_toml())
            ),
        }
    }

    fn begin(&self, args: &Args) -> Result<Extraction, Fault> {
        let new = |extraction: Extraction| match args.write_scratch {
            None => Ok(extraction),
            Some(range) => {
                let scratch = range.on(extraction.capacity(), extraction.sector_bytes());
                Ok(extraction.with_scratch(scratch.map_err(Fault::Usage)?))
            }
        };
        match self {
            Subject::Device(probe) => new(Extraction::new(probe.as_ref(), args.seed)),
            Subject::Remote(probe) => new(Extraction::new(probe.as_ref(), args.seed)),
            Subject::EmulatedDrive(emulated) => {
                new(Extraction::new(&emulated.on(Nanos::ZERO), args.seed))
            }
        }
    }

    /// Puts back switches that a killed probe has left changed.
    fn put_back(&mut self, left: &[(Switch, bool)], record: &SwitchRecord) -> Result<(), Fault> {
        let done = match self {
            Subject::Device(probe) => {
                guarded(&mut **probe, None, Turning::Recorded(record)).restore_earlier(left)
            }
            Subject::Remote(probe) => {
                guarded(&mut **probe, None, Turning::Recorded(record)).restore_earlier(left)
            }
            Subject::EmulatedDrive(emulated) => {
                let mut probe = emulated.on(Nanos::ZERO);
                guarded(&mut probe, None, Turning::Recorded(record)).restore_earlier(left)
            }
        };
        done.map_err(|error| {
            Fault::File(format!(
                "a killed probe has left switches of the disk turned, which cannot be put back: {error}"
            ))
        })
    }

    fn step(
        &mut self,
        extraction: &mut Extraction,
        record: Option<&SwitchRecord>,
        session: &Session<'_>,
    ) -> Result<Outlook, ExtractError> {
        let turning = match record {
            Some(record) => Turning::Recorded(record),
            None if extraction.scratch().is_some() && !self.keeps_switches() => Turning::Passing,
            None => Turning::Never,
        };
        match self {
            Subject::Device(probe) => step(&mut **probe, extraction, turning, session),
            Subject::Remote(probe) => step(&mut **probe, extraction, turning, session),
            Subject::EmulatedDrive(emulated) => step(
                &mut emulated.on(extraction.spent),
                extraction,
                turning,
                session,
            ),
        }
    }

    /// True if a switch retains its state after this program has ended.
    fn keeps_switches(&self) -> bool {
        match self {
            Subject::Device(_) | Subject::Remote(_) => true,
            Subject::EmulatedDrive(emulated) => emulated.switches.is_some(),
        }
    }
}

/// Treatment of switches that a probe changes.
#[derive(Clone, Copy)]
enum Turning<'a> {
    /// Switches are put back. If the probe is killed, the next probe puts them back from the record.
    Recorded(&'a SwitchRecord),
    /// Switches are put back, and do not outlast the process.
    Passing,
    /// No switch is changed, since a killed probe would leave the switch changed.
    Never,
}

fn guarded<'a>(
    probe: &'a mut dyn Probe,
    scratch: Option<headtime_units::Extent>,
    turning: Turning<'a>,
) -> Guarded<'a> {
    let guarded = Guarded::new(probe, scratch);
    match turning {
        Turning::Recorded(record) => guarded.recording(move |turned| Ok(record.note(turned)?)),
        Turning::Passing => guarded,
        Turning::Never => guarded.without_switches(),
    }
}

/// Makes a step. Afterwards all switches have their former states.
fn step(
    probe: &mut dyn Probe,
    extraction: &mut Extraction,
    turning: Turning<'_>,
    session: &Session<'_>,
) -> Result<Outlook, ExtractError> {
    let end = session
        .until
        .map(|until| probe.now() + until.saturating_sub(extraction.spent) + STEP_GRACE);
    let mut guarded = guarded(probe, extraction.scratch(), turning);
    let mut stop = |now: Time| session.is_told() || end.is_some_and(|end| now > end);
    let outlook = extraction.step_or_stay(&mut Stopping::new(&mut guarded, &mut stop));
    guarded.restore()?;
    outlook
}

/// Conditions for a session to end before everything is learned.
struct Session<'a> {
    told: &'a AtomicU32,
    /// Total time spent on the probe at which the session ends, over all sessions.
    until: Option<Nanos>,
}

impl Session<'_> {
    fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed) > 0
    }
}

pub(super) fn probe(args: &Args, context: &mut Context<'_>) -> Result<(), Fault> {
    let time = args.whole_time().map_err(Fault::Usage)?;
    if let Some(path) = &args.plot {
        compare::is_picture(path)?;
    }
    let mut subject = Subject::open(args, Access::Read, context)?;
    // The state comes before any unrelated refusal: switches must be put back, and the disk may serve others by now.
    let state = match &args.state {
        Some(path) => Some((path, take_state(path, &mut subject, context)?)),
        None => None,
    };
    // Outputs are opened first, since learning is useless if its result cannot be written.
    for path in [&args.out, &args.plot].into_iter().flatten() {
        drop(Output::create(path)?);
    }
    if args.write_scratch.is_some() && state.is_some() && subject.is_device() {
        drop(subject);
        subject = Subject::open(args, Access::Write, context)?;
    }
    let mut extraction = subject.begin(args)?;
    if args.write_scratch.is_some() && args.state.is_none() && subject.keeps_switches() {
        return Err(Fault::Usage(
            "--write-scratch: needs --state FILE, so that a write cache that is off meanwhile is switched on again even if \
             this is killed"
                .to_owned(),
        ));
    }
    let mut state = match state {
        Some((path, opened)) => {
            let (file, known) = opened?;
            if let Some(known) = known {
                extraction = go_on(path, known, &extraction, context)?;
            }
            if let Subject::Device(probe) = &subject
                && let Some(why) = probe.without_look_ahead()
            {
                context.note(&format!("look-ahead stays as it is: {why}"));
            }
            Some(file)
        }
        None => None,
    };
    if args.remaps {
        extraction = extraction.with_remaps();
    }
    if let Some(patience) = args.patience {
        extraction.set_patience(patience);
    }
    let signals = signals()?;
    say_what_is_written(&extraction, context);
    let session = Session {
        told: &signals,
        until: time.map(|time| extraction.spent + time),
    };
    let end = run(
        &mut subject,
        &mut extraction,
        state.as_mut(),
        &session,
        context,
    )?;
    let page = Page::new(&extraction, end);
    if let (Some(path), Some(profile)) = (&args.out, page.profile()) {
        Output::write_all_of(path, &profile.to_toml())?;
    }
    if let Some(path) = &args.plot {
        Output::write_all_of(path, &page.draw())?;
    }
    match args.format {
        TextFormat::Json => output::json(context.out, &page.json())?,
        TextFormat::Table => {
            let text = page.text(context.terminal);
            context.print(&text)?;
        }
    }
    page.result(args.out.as_deref(), args.state.as_deref())
}

/// A state with its knowledge, or the reason why the state cannot be resumed.
type OpenedState = Result<(StateFile, Option<Extraction>), Fault>;

/// Locks and reads the state, and puts back switches that a killed probe has left changed.
fn take_state(
    path: &Path,
    subject: &mut Subject,
    context: &mut Context<'_>,
) -> Result<OpenedState, Fault> {
    let disk = subject.identity();
    let opened = match StateFile::open(path, &disk) {
        // Another process has the state, or the file is not a regular file.
        Err(fault @ (Fault::File(_) | Fault::Usage(_))) => return Err(fault),
        // Switches are put back even if the state cannot be resumed.
        opened => opened,
    };
    let record = SwitchRecord::beside(path, &disk);
    let left = record.left()?;
    if !left.is_empty() {
        subject.put_back(&left, &record)?;
        for (which, on) in left {
            let word = if on { "on" } else { "off" };
            context.note(&format!(
                "{which} is {word} again, which a probe that was killed had turned"
            ));
        }
    }
    Ok(opened)
}

/// Resumes from the knowledge of a state, if the state was started with the same options.
fn go_on(
    path: &Path,
    known: Extraction,
    begun: &Extraction,
    context: &mut Context<'_>,
) -> Result<Extraction, Fault> {
    if known.scratch() != begun.scratch() || known.seed() != begun.seed() {
        let scratch = match known.scratch() {
            None => "without --write-scratch".to_owned(),
            Some(range) => format!("with --write-scratch {}-{}", range.start, range.end()),
        };
        return Err(Fault::Input(format!(
            "{}: was begun with --seed {} and {scratch}; go on so, or begin with another --state",
            name(path),
            known.seed()
        )));
    }
    context.note(&format!(
        "goes on with {}: {} commands in {:.0} s, next {}",
        name(path),
        known.reads,
        known.spent.as_secs_f64(),
        known.stage().text()
    ));
    Ok(known)
}

/// Announces the sectors to be overwritten, before anything is written.
fn say_what_is_written(extraction: &Extraction, context: &mut Context<'_>) {
    let Some(range) = extraction
        .scratch()
        .filter(|_| extraction.stage() <= Stage::Writes)
    else {
        return;
    };
    let bytes = |sectors: u64| Bytes(sectors * u64::from(extraction.sector_bytes()));
    context.warn(&format!(
        "writes zeroes to {} of {} from {} on (sectors {} to {}), and nowhere else; what is there is lost",
        bytes(range.len.get()),
        extraction.name(),
        bytes(range.start.get()),
        range.start,
        range.end().get() - 1,
    ));
}

/// Announces the time for reading all sectors, before the reading starts.
fn say_how_long(extraction: &Extraction, context: &mut Context<'_>) {
    let combing = extraction.remaps.combing.as_ref();
    let left = combing.and_then(|combing| Some(combing.takes?.saturating_sub(combing.spent)));
    if let Some(left) = left {
        context.note(&format!(
            "reads all sectors now, for about {} of the disk's time",
            minutes(left.as_secs_f64())
        ));
    }
}

/// Continues until everything is known, the time is over, a signal asks for the end, or the disk cannot be learned.
fn run(
    subject: &mut Subject,
    extraction: &mut Extraction,
    mut state: Option<&mut StateFile>,
    session: &Session<'_>,
    context: &mut Context<'_>,
) -> Result<ProbeEnd, Fault> {
    let record = state.as_ref().map(|state| state.record());
    let progress = progress(context.progress);
    progress.begin(1);
    let mut task = progress.task(Goal::Requests(SHARES));
    let mut written = Clock::start();
    let mut told = false;
    let end = loop {
        if extraction.stage() == Stage::Done {
            break ProbeEnd::Done;
        }
        if session.until.is_some_and(|until| extraction.spent >= until) {
            break ProbeEnd::Time;
        }
        match subject.step(extraction, record.as_ref(), session) {
            Ok(outlook) => {
                if outlook.stage == Stage::Remaps && !told {
                    told = true;
                    say_how_long(extraction, context);
                }
                let spent = extraction.spent.as_secs_f64();
                let rest = outlook.left.map(Nanos::as_secs_f64);
                let share = rest.map_or(0.0, |rest| spent / (spent + rest).max(1e-9));
                task.note(Time::ZERO, (share * SHARES as f64) as u64);
                let rest = match rest {
                    Some(rest) => format!("about {} of the disk's time to go", minutes(rest)),
                    None => "how long the rest takes is not known yet".to_owned(),
                };
                progress.say(&format!("{}, {rest}", outlook.stage.text()));
            }
            Err(ExtractError::Probe(ProbeError::Stopped)) if session.is_told() => {
                break ProbeEnd::Told;
            }
            Err(ExtractError::Probe(ProbeError::Stopped)) => break ProbeEnd::Time,
            Err(error) => break ProbeEnd::Refused(error.to_string()),
        }
        if let Some(state) = &mut state
            && written.now().as_secs_f64() >= WRITE_S
        {
            state.write(extraction)?;
            written = Clock::start();
        }
    };
    progress.end();
    if let Some(state) = state {
        state.write(extraction)?;
    }
    Ok(end)
}

fn minutes(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3_600.0),
    }
}
