//! Prepares a scenario for its runs: drives with their changes, and the trace on each drive.

use crate::fault::Fault;
use crate::hash::{Hash, hash_of};
use crate::report::Run;
use crate::scenario::{Device, Group, Pace, Replay, Scenario, Workload};
use crate::stock::Stock;
use headtime_disk::Layout;
use headtime_disk::profile::{Profile, Spec};
use headtime_engine::{Concat, Map, Striped};
use headtime_host::DiskSize;
use headtime_host::workload::{Laid, ReplaySpec, Traced};
use headtime_sched::Op;
use headtime_stack::{Firmware, Known, Source, changed, with_firmware};
use headtime_workload::{
    CsvColumns, Fitter, Part, ReadOptions, Scratch, Script, SyntheticSpec, Trace, TraceError,
};
use std::path::Path;
use std::sync::Arc;

/// A scenario with the contents of all files that it names.
#[derive(Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// Drives, in the order of the scenario.
    pub drives: Vec<DriveSet>,
    /// Identifies the scenario, see [`crate::report::Report::scenario_hash`].
    pub hash: String,
    /// Names of the trace's devices, by export number less one; empty without a trace.
    pub devices: Vec<String>,
    /// Assumptions and changes during preparation, for people.
    pub notes: Vec<String>,
    /// Drives and files that the scenario names, each with a hash of its contents.
    pub sources: Vec<(String, String)>,
}

/// A drive, and the data that all runs on the drive share.
#[derive(Debug)]
pub struct DriveSet {
    /// The drive with its changes.
    pub profile: Profile,
    /// The drive with the firmware order of its profile.
    unordered: Profile,
    /// Layout of the array of such drives, if the scenario has an array.
    pub striped: Option<Striped>,
    /// Layout of the servers' disks, if the scenario has a cluster of several servers.
    pub concat: Option<Concat>,
    /// Disk that the workload sees.
    disk: DiskSize,
    /// Layout of the drive's sectors.
    pub layout: Arc<Layout>,
    /// The drive as schedulers know it.
    pub known: Arc<Known>,
    /// The trace on the drive, if the workload is one.
    pub script: Option<Arc<Script>>,
}

impl DriveSet {
    /// Disk that the workload sees: the drive, the array of such drives, or the volume of a cluster.
    pub fn disk(&self) -> DiskSize {
        self.disk
    }

    /// Size of the drive.
    pub fn one_disk(&self) -> DiskSize {
        size(&self.profile, None)
    }

    /// Layout of all disks behind one address space; `None` for one disk.
    pub fn map(&self) -> Option<Box<dyn Map>> {
        match (&self.striped, &self.concat) {
            (Some(striped), _) => Some(Box::new(striped.clone())),
            (None, Some(concat)) => Some(Box::new(concat.clone())),
            (None, None) => None,
        }
    }

    /// Copy of this set with another order of the firmware.
    fn ordered(&self, firmware: Firmware) -> Result<DriveSet, Fault> {
        Ok(DriveSet {
            profile: with_firmware(&self.unordered, firmware)?,
            unordered: self.unordered.clone(),
            striped: self.striped.clone(),
            concat: self.concat.clone(),
            disk: self.disk,
            layout: Arc::clone(&self.layout),
            known: Arc::clone(&self.known),
            script: self.script.clone(),
        })
    }
}

impl Prepared {
    /// Note on runs of an open replay that end long after the last arrival. Response times then grow with the length of the trace.
    pub fn overload(&self, runs: &[Run]) -> Option<String> {
        /// Length of a run over the time of all arrivals: the drive serves half of what arrives.
        const LATE: f64 = 2.0;
        /// Further seconds, so that a burst at the end of a trace is no overload.
        const BURST_S: f64 = 10.0;
        let Workload::Replay(replay) = &self.scenario.workload else {
            return None;
        };
        let Pace::Open(speed) = replay.pace else {
            return None;
        };
        let (first, last) = self.drives.first()?.script.as_ref()?.arrivals()?;
        let arrivals = speed.scale(last - first).as_secs_f64();
        let ends = |run: &Run| run.warm_up_s + run.simulated_s / f64::from(run.repeats.max(1));
        let run = runs
            .iter()
            .find(|run| ends(run) > LATE * arrivals + BURST_S)?;
        Some(format!(
            "{}: all requests arrive within {arrivals:.3} s, and the run takes {:.1} s. Response times grow with the length of the \
             trace; trace.replay = \"closed\" (--closed N) has N requests at a time",
            run.label,
            ends(run)
        ))
    }
}

/// Reads the drives and files that a scenario names. Items that `stock` has are not made again.
///
/// # Errors
///
/// If a file cannot be read, is wrong, or does not fit the drive.
pub fn prepare(scenario: Scenario, stock: &Stock) -> Result<Prepared, Fault> {
    let mut notes = Vec::new();
    let mut sources = Vec::new();
    let mut traces = Vec::new();
    for file in scenario.program_traces() {
        let replay = Replay::of_program(file);
        let (trace, hash) = stock.trace(&replay, || read(&replay, stock))?;
        notes.extend(reading_notes(&trace));
        sources.push((file.to_owned(), hash.clone()));
        traces.push(hash);
    }
    for file in scenario.program_profiles() {
        let path = Path::new(file);
        let text = std::fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
        let hash = hash_of(&text);
        sources.push((file.to_owned(), hash.clone()));
        traces.push(hash);
    }
    let trace = match &scenario.workload {
        Workload::Replay(replay) => {
            let (trace, hash) = stock.trace(replay, || read(replay, stock))?;
            sources.push((replay.name(), hash));
            Some((replay, trace))
        }
        Workload::Synthetic(_) | Workload::Programs(_) => None,
    };
    let devices = match &trace {
        Some((replay, trace)) => chosen(replay, trace)?,
        None => Vec::new(),
    };
    let mut set = Vec::new();
    let mut hash = Hash::default();
    hash.text(&portable(&scenario).to_toml());
    traces.iter().for_each(|trace| hash.text(trace));
    let deepest = scenario.engines.iter().map(|engine| engine.depth).max();
    let deepest = deepest.unwrap_or(1);
    for (number, drive) in scenario.drives.iter().enumerate() {
        let name = &drive.profile;
        // A drive of the same files may differ in the order of its firmware.
        let mut earlier = scenario.drives[..number].iter();
        if let Some(at) = earlier.position(|earlier| earlier.profile == *name) {
            let same: &DriveSet = &set[at];
            set.push(same.ordered(drive.simulated.firmware)?);
            continue;
        }
        let (profile, findings) = stock.profile(name)?;
        notes.extend(findings.warnings);
        notes.extend(findings.notes);
        let (as_read, text_as_read) = (profile.clone(), profile.to_toml());
        sources.push((name.clone(), hash_of(&text_as_read)));
        let simulated = &drive.simulated;
        let mut profile = changed(&profile, &simulated.overrides, simulated.noise, name)?;
        if drive.probed {
            profile = stock.believed(Source::Probed(&profile))?;
            notes.push(format!(
                "{}: what probing learns of it stands in its place",
                profile.name
            ));
        }
        if deepest > profile.queue.depth {
            notes.push(format!(
                "{}: its profile says that it takes {} commands at a time; here it takes {deepest}",
                profile.name, profile.queue.depth
            ));
            profile = profile
                .with(|spec: &mut Spec| spec.queue.depth = deepest)
                .map_err(Fault::input)?;
        }
        let text = match profile == as_read {
            true => text_as_read,
            false => profile.to_toml(),
        };
        hash.text(&text);
        let beliefs = drive
            .believed
            .read(Some(&profile), |source| stock.believed(source));
        let beliefs = beliefs.map_err(|(_, fault): (_, Fault)| fault)?;
        // A result depends on assumed drives only if a scheduler asks for them.
        let needs = scenario.needs();
        let believed = beliefs.drive.as_ref();
        let believed = believed.filter(|_| needs.positioning || needs.curve);
        let believed = believed.map(Profile::to_toml);
        let believed = drive.believed.belief.as_ref().zip(believed);
        let curve = beliefs.curve.as_ref().map(|(_, text)| text.clone());
        let curve = drive.believed.curve.as_ref().zip(curve);
        for (name, text) in believed.into_iter().chain(curve.filter(|_| needs.curve)) {
            hash.text(&text);
            sources.push((name.clone(), hash_of(&text)));
        }
        let known = stock.known(beliefs);
        let geometry = &profile.geometry;
        let array = scenario.array.as_ref();
        let striped = array.map(|array| array.build(geometry.capacity, geometry.sector_bytes));
        let striped = striped.transpose();
        let striped = striped.map_err(|error| Fault::Input(format!("array: {error}")))?;
        let cluster = match &scenario.workload {
            Workload::Programs(programs) => programs.cluster.as_ref(),
            Workload::Synthetic(_) | Workload::Replay(_) => None,
        };
        let mut disk = size(&profile, striped.as_ref());
        let mut concat = None;
        if let Some(cluster) = cluster {
            if cluster.servers > 1 {
                let sizes = vec![disk.capacity; cluster.servers.into()];
                concat = Some(Concat::new(&sizes).map_err(Fault::input)?);
            }
            disk = cluster.volume(disk);
        }
        let script = match &trace {
            None => None,
            Some((replay, trace)) => {
                let make = || script(replay, trace, &devices, &profile.name, disk);
                let script = stock.script(replay, &devices, disk, make)?;
                note_changes(&mut notes, &script, &profile);
                Some(script)
            }
        };
        let unordered = DriveSet {
            layout: stock.layout(&profile, &text),
            unordered: profile.clone(),
            striped,
            concat,
            disk,
            profile,
            known,
            script,
        };
        set.push(unordered.ordered(simulated.firmware)?);
    }
    let devices = match &trace {
        None => Vec::new(),
        Some((_, trace)) => {
            hash.trace(trace);
            scratch_fault(trace.failure())?;
            notes.splice(0..0, reading_notes(trace));
            names(trace, &devices)
        }
    };
    Ok(Prepared {
        drives: set,
        hash: hash.finish(),
        devices,
        notes,
        sources,
        scenario,
    })
}

/// Size of a drive, or of an array of such drives.
fn size(drive: &Profile, striped: Option<&Striped>) -> DiskSize {
    DiskSize {
        capacity: striped.map_or(drive.geometry.capacity, Map::capacity),
        sector_bytes: drive.geometry.sector_bytes,
    }
}

/// Reads a trace as a scenario wants it.
///
/// # Errors
///
/// If the trace cannot be read.
pub fn read(replay: &Replay, stock: &Stock) -> Result<Trace, Fault> {
    let reading = &replay.reading;
    let options = reading.options()?;
    let scratch = (!replay.is_whole()).then_some(Scratch {
        // No name, so a crash leaves nothing behind.
        file: tempfile::tempfile,
        from: LONG,
    });
    let files = replay.file.iter().map(|file| stock.local(file));
    let files: Vec<String> = files.collect::<Result<_, Fault>>()?;
    Trace::open_long(&files, &options, scratch).map_err(trace_fault)
}

/// Least number of requests of a trace in a temporary file. They take 16 MiB in memory.
const LONG: usize = 1 << 18;

/// Refuses a temporary file that could not be read to its end.
///
/// # Errors
///
/// If there is a failure.
pub(crate) fn scratch_fault(failure: Option<&str>) -> Result<(), Fault> {
    failure.map_or(Ok(()), |problem| {
        let text = format!("the temporary file of a long trace cannot be read: {problem}");
        Err(Fault::File(text))
    })
}

/// Turns an error of a trace into a fault.
pub fn trace_fault(error: TraceError) -> Fault {
    match error {
        TraceError::Open { .. } | TraceError::Read { .. } | TraceError::Scratch { .. } => {
            Fault::File(error.to_string())
        }
        _ if error.is_odd_line() => {
            Fault::Input(format!("{error}; --lenient passes over odd lines"))
        }
        _ => Fault::input(error),
    }
}

impl crate::scenario::Reading {
    /// Options for the reader of traces.
    ///
    /// # Errors
    ///
    /// If the columns are not columns.
    pub fn options(&self) -> Result<ReadOptions, Fault> {
        let columns = self
            .columns
            .as_deref()
            .map(str::parse::<CsvColumns>)
            .transpose();
        Ok(ReadOptions {
            format: self.format,
            time_unit: self.time_unit,
            arrival_event: self.arrival_event,
            columns: columns.map_err(|error| Fault::Usage(error.to_string()))?,
            lenient: self.lenient,
            part: Part {
                from: self.from,
                span: self.span,
                first: self.first,
            },
            ..ReadOptions::default()
        })
    }
}

/// The devices that are replayed, ascending; all if none is chosen.
fn chosen(replay: &Replay, trace: &Trace) -> Result<Vec<u32>, Fault> {
    let mut devices = Vec::new();
    for Device(text) in replay.devices.iter() {
        let device = trace.find_device(text).ok_or_else(|| {
            let all = names(trace, &trace.devices()).join(", ");
            Fault::Input(format!(
                "{}: no request is for device {text}; there are requests for {all}",
                replay.name()
            ))
        })?;
        devices.push(device);
    }
    if devices.is_empty() {
        devices = trace.devices();
    }
    devices.sort_unstable();
    devices.dedup();
    if devices.len() > usize::from(u16::MAX) {
        return Err(Fault::Input(format!(
            "{}: {} devices; at most {} can be replayed at once, choose some",
            replay.name(),
            devices.len(),
            u16::MAX
        )));
    }
    Ok(devices)
}

/// Devices as people call them.
fn names(trace: &Trace, devices: &[u32]) -> Vec<String> {
    devices
        .iter()
        .map(|device| {
            trace
                .device_name(*device)
                .map_or_else(|| device.to_string(), str::to_owned)
        })
        .collect()
}

fn script(
    replay: &Replay,
    trace: &Trace,
    devices: &[u32],
    drive: &str,
    disk: DiskSize,
) -> Result<Script, Fault> {
    let fitter = Fitter::new(disk.capacity, disk.sector_bytes, replay.fit);
    let mut script = Script::new(trace, devices, &fitter)
        .map_err(|error| Fault::Input(format!("{}: on drive {drive}: {error}", replay.name())))?;
    for (number, role) in (1..).zip(replay.roles.iter()) {
        script.assign(number, role.class, |process| role.has(trace, process));
    }
    Ok(script)
}

/// The reads and writes of a program's trace on a disk, made once for all hosts with such a disk. A host has whole pages. Requests behind
/// the last whole page are fitted as if they lay past the end of the disk.
///
/// # Errors
///
/// If the trace cannot be read.
pub fn traced(spec: &ReplaySpec, disk: DiskSize, stock: &Stock) -> Result<Laid, Fault> {
    let disk = disk.whole_pages();
    stock.traced(spec, disk, || {
        Ok(spec.lay(by_device(&spec.trace, disk, stock)?))
    })
}

/// The reads and writes of each device of a trace.
fn by_device(file: &str, disk: DiskSize, stock: &Stock) -> Result<Vec<Vec<Traced>>, Fault> {
    let replay = Replay::of_program(file);
    let (trace, _) = stock.trace(&replay, || read(&replay, stock))?;
    let devices = chosen(&replay, &trace)?;
    let script = script(&replay, &trace, &devices, "", disk)?;
    let mut by_device = vec![Vec::new(); devices.len()];
    for request in script.iter() {
        if matches!(request.op, Op::Read | Op::Write) {
            // Export 0 says that the trace has no devices. All requests are of one process then.
            let device = usize::from(request.origin.export).saturating_sub(1);
            by_device[device].push((request.op, request.extent));
        }
    }
    Ok(by_device)
}

fn note_changes(notes: &mut Vec<String>, script: &Script, profile: &Profile) {
    let total = script.count();
    if script.moved() > 0 {
        notes.push(format!(
            "{}: {} of {total} requests lay past the end of the drive and were wrapped",
            profile.name,
            script.moved()
        ));
    }
    if script.widened() > 0 {
        notes.push(format!(
            "{}: {} of {total} requests were widened to whole sectors of {} bytes",
            profile.name,
            script.widened(),
            profile.geometry.sector_bytes
        ));
    }
    let sectors = u64::from(profile.geometry.sectors_per_physical());
    let (writes, partial) = script.partial_writes(sectors);
    if partial > 0 {
        notes.push(format!(
            "{}: {partial} of {writes} writes do not begin and end with its sectors of {} bytes; the drive reads \
             the rest of those first, which takes a turn (read-modify-write in the head time)",
            profile.name, profile.geometry.physical_sector_bytes
        ));
    }
}

/// Assumptions and changes during the reading of a trace.
pub fn reading_notes(trace: &Trace) -> Vec<String> {
    use headtime_workload::UnitReason;
    let notes = &trace.notes;
    let file = &notes.file;
    let mut texts = Vec::new();
    for kind in notes.kinds() {
        if let Some(unit) = &kind.time_unit
            && matches!(
                unit.because,
                UnitReason::FarApart | UnitReason::CloseTogether
            )
        {
            let file = &kind.file;
            texts.push(format!(
                "{file}: times are taken as {unit}; --time-unit says otherwise"
            ));
        }
    }
    if notes.out_of_order > 0 {
        texts.push(format!(
            "{file}: {} requests arrive before the one ahead of them (by up to {}) and were moved to \
             their place",
            notes.out_of_order, notes.step_back_max
        ));
    }
    for (count, what) in [
        (
            notes.zero_length,
            "reads and writes of no sectors were left out",
        ),
        (
            notes.unaligned,
            "requests were widened to whole sectors of 512 bytes",
        ),
        (
            notes.unpaired,
            "completions without a request were left out",
        ),
        (notes.failed, "requests ended with an error"),
        (
            notes.lost,
            "events were lost when it was recorded, so requests are missing or lack their completion",
        ),
    ] {
        if count > 0 {
            texts.push(format!("{file}: {count} {what}"));
        }
    }
    if notes.outside > 0 {
        texts.push(format!(
            "{file}: {} of its {} requests are used",
            trace.count(),
            trace.count() + notes.outside
        ));
    }
    let odd = &notes.odd;
    let passed_over = match (odd.count, odd.first.len() as u64) {
        (0, _) => None,
        (1, _) => Some("1 odd line was passed over:".to_owned()),
        (count, shown) if shown < count => Some(format!(
            "{count} odd lines were passed over; the first {shown} of them:"
        )),
        (count, _) => Some(format!("{count} odd lines were passed over:")),
    };
    texts.extend(passed_over.map(|text| format!("{file}: {text}")));
    texts.extend(odd.first.iter().cloned());
    texts
}

/// The scenario without details that may differ between places: the seed, and the directories of files. The seed is reported beside the
/// hash, and the contents of files are hashed.
fn portable(scenario: &Scenario) -> Scenario {
    let mut portable = scenario.clone();
    portable.seed = 0;
    portable.each_file(&mut |file| {
        if let Some(name) = Path::new(file).file_name() {
            *file = name.to_string_lossy().into_owned();
        }
    });
    portable
}

/// Made-up programs with a seed; `requests` limits the requests of all programs together.
pub fn synthetic(groups: &[Group], requests: Option<u64>, seed: u64) -> SyntheticSpec {
    let mut processes = Vec::new();
    for group in groups {
        for _ in 0..group.processes {
            let mut process = group.process.clone();
            process.origin.process = processes.len() as u32 + 1;
            processes.push(process);
        }
    }
    SyntheticSpec {
        seed,
        count: requests,
        processes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_config::Place;
    use headtime_host::workload::BenchmarkSpec;
    use headtime_host::{HostBuilder, HostSpec, Step};
    use headtime_units::Sectors;

    /// The drive of the default scenario on an atlas10k with a setting more.
    fn drive(key: &str, value: &str) -> DriveSet {
        let mut table = Scenario::default_table();
        let profile = ("drive.profile", "atlas10k");
        for (key, value) in [profile, ("engine.depth", "1"), (key, value)] {
            table.set("--set", key, value).expect("a setting");
        }
        let scenario = Scenario::from_table(&table, Place::BuiltIn).expect("a scenario");
        let mut prepared = prepare(scenario, &Stock::default()).expect("all is there");
        prepared.drives.pop().expect("a drive")
    }

    #[test]
    fn a_probed_drive_is_what_a_probed_belief_is_of_the_drive_and_is_believed_to_be_itself() {
        let truth = drive("drive.belief", "probed");
        let probed = drive("drive.probed", "true");
        assert_eq!(Some(&probed.profile), truth.known.belief());
        assert_eq!(Some(&probed.profile), probed.known.belief());
        assert_ne!(probed.profile, truth.profile);
    }

    /// The steps of a host's processes that replay a trace.
    fn steps(spec: &ReplaySpec, disk: DiskSize, stock: &Stock) -> Vec<(Op, u64, u64)> {
        let laid = traced(spec, disk, stock).expect("the trace is good");
        let mut builder = HostBuilder::new(HostSpec::default(), disk).expect("a host");
        let benchmark = BenchmarkSpec::Replay(spec.clone());
        benchmark
            .add_laid(&laid, &mut builder, 1)
            .expect("a program");
        let processes = builder.into_plan().processes.into_iter();
        let steps = processes.flat_map(|mut process| {
            std::iter::from_fn(move || match process.behaviour.next() {
                Step::Direct {
                    op, offset, len, ..
                } => Some((op, offset, len)),
                _ => None,
            })
        });
        steps.collect()
    }

    #[test]
    fn a_program_s_trace_is_made_once_and_no_request_lies_in_a_part_of_a_page() {
        let folder = headtime_testkit::Folder::new();
        let file = folder.join("trace.csv");
        let rows = "0,s,0,Read,2048,1024,0\n1,s,0,Write,512000512,1024,0\n";
        std::fs::write(&file, rows).expect("a file");
        let trace = file.to_str().expect("a path").to_owned();
        let spec = ReplaySpec { trace };
        // The last page has 3 of 8 sectors: the second request lies there.
        let disk = DiskSize {
            capacity: Sectors::new(1_000_003),
            sector_bytes: 512,
        };
        let stock = Stock::default();
        let once = steps(&spec, disk, &stock);
        assert_eq!(once.len(), 2, "{once:?}");
        let (op, offset, len) = once[1];
        assert_eq!((op, len), (Op::Write, 1024));
        assert!(offset + len <= 512_000_000, "{once:?}");
        let never = || panic!("it is there");
        let again = stock.traced(&spec, disk.whole_pages(), never);
        assert!(again.is_ok());
    }
}
