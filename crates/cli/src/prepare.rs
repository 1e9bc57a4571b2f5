//! From a scenario to what its runs need: drives with their changes, the trace on each of them.

use crate::fault::Fault;
use crate::scenario::{Firmware, Group, Replay, Scenario, Workload};
use crate::stock::Stock;
use headtime_disk::profile::{FirmwarePolicy, NoiseSpec, Profile, Spec};
use headtime_disk::{Layout, Model};
use headtime_probe::Learned;
use headtime_sched::ServiceCurve;
use headtime_units::Nanos;
use headtime_workload::{
    CsvColumns, Fitter, ReadOptions, Script, SyntheticSpec, Trace, TraceError,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A scenario with everything read that it names.
#[derive(Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// Its drives, in its order.
    pub drives: Vec<DriveSet>,
    /// Names the scenario, see [`crate::report::Report::scenario_hash`].
    pub hash: String,
    /// Names of the trace's devices, by export number less one; empty without a trace.
    pub devices: Vec<String>,
    /// What was assumed or changed on the way, for people.
    pub notes: Vec<String>,
    /// What it names, drives and files, and a hash of the contents of each.
    pub sources: Vec<(String, String)>,
}

/// A drive, and what all runs on it share.
#[derive(Debug)]
pub struct DriveSet {
    /// The drive with its changes, but for the firmware's order.
    pub profile: Profile,
    /// Where its sectors are.
    pub layout: Arc<Layout>,
    /// What position-aware schedulers believe; only if there are such.
    pub belief: Option<Arc<Model>>,
    /// What schedulers that need it believe of service times; only if there are such.
    pub curve: Option<Arc<ServiceCurve>>,
    /// The trace on the drive, if the workload is one.
    pub script: Option<Arc<Script>>,
}

impl DriveSet {
    /// The drive with the order of the firmware changed.
    ///
    /// # Errors
    ///
    /// If the profile does not allow that.
    pub fn with_firmware(&self, firmware: Firmware) -> Result<Profile, Fault> {
        with_firmware(&self.profile, firmware)
    }
}

/// A profile with the order of the firmware changed.
///
/// # Errors
///
/// If the profile does not allow that.
pub fn with_firmware(profile: &Profile, firmware: Firmware) -> Result<Profile, Fault> {
    let policy = match (firmware, profile.queue.policy) {
        (Firmware::Profile, _) => return Ok(profile.clone()),
        (Firmware::Fifo, _) => FirmwarePolicy::Fifo,
        (Firmware::Sptf, given @ FirmwarePolicy::Sptf { .. }) => given,
        (Firmware::Sptf, FirmwarePolicy::Fifo) => FirmwarePolicy::Sptf {
            margin: Nanos::ZERO,
            age_cap: None,
        },
    };
    profile
        .with(|spec| spec.queue.policy = policy)
        .map_err(Fault::input)
}

/// A curve from a file, and its text for a hash.
fn curve_file(file: &str, profile: &Profile) -> Result<(ServiceCurve, String), Fault> {
    let path = Path::new(file);
    let text = fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
    let learned = Learned::from_toml(file, &text).map_err(Fault::input)?;
    let (of, here) = (learned.origin().sector_bytes, profile.geometry.sector_bytes);
    if of != here {
        let name = &profile.name;
        return Err(Fault::Input(format!(
            "{file}: distances are in sectors of {of} bytes; those of {name} have {here}"
        )));
    }
    let (of, here) = (learned.origin().capacity, profile.geometry.capacity);
    if of != here {
        let (name, drive) = (&profile.name, &learned.origin().drive);
        return Err(Fault::Input(format!(
            "{file}: learned from {drive}, which has {of} sectors; {name} has {here}"
        )));
    }
    Ok((learned.curve(), learned.to_toml()))
}

/// Reads what a scenario names. What `stock` has is not made again.
///
/// # Errors
///
/// If a file cannot be read, is wrong, or does not fit the drive.
pub fn prepare(scenario: Scenario, stock: &Stock) -> Result<Prepared, Fault> {
    let mut notes = Vec::new();
    let mut sources = Vec::new();
    let trace = match &scenario.workload {
        Workload::Replay(replay) => {
            let (trace, hash) = stock.trace(replay, || read(replay))?;
            sources.push((replay.file.clone(), hash));
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
    for name in &scenario.drives {
        let (profile, findings) = stock.profile(name)?;
        notes.extend(findings.warnings);
        notes.extend(findings.notes);
        sources.push((name.clone(), hash_of(&profile.to_toml())));
        let mut profile = changed(&profile, &scenario.overrides, scenario.noise, name)?;
        let deepest = scenario.depths.iter().copied().max().unwrap_or(1);
        if deepest > profile.queue.depth {
            notes.push(format!(
                "{}: its profile says that it takes {} commands at a time; here it takes {deepest}",
                profile.name, profile.queue.depth
            ));
            profile = profile
                .with(|spec: &mut Spec| spec.queue.depth = deepest)
                .map_err(Fault::input)?;
        }
        let text = profile.to_toml();
        hash.text(&text);
        let needs = scenario.needs();
        let believed = match &scenario.belief {
            Some(name) if needs.positioning || needs.curve => {
                let (believed, _) = stock.profile(name)?;
                let text = believed.to_toml();
                hash.text(&text);
                sources.push((name.clone(), hash_of(&text)));
                Some((believed, text))
            }
            _ => None,
        };
        let (believed, believed_text) = believed
            .as_ref()
            .map_or((&profile, &text), |(believed, text)| (believed, text));
        let belief = needs
            .positioning
            .then(|| stock.belief(believed, believed_text));
        let curve = match &scenario.curve {
            _ if !needs.curve => None,
            Some(file) => {
                let (curve, text) = curve_file(file, &profile)?;
                hash.text(&text);
                sources.push((file.clone(), hash_of(&text)));
                Some(Arc::new(curve))
            }
            None => Some(stock.curve(believed, believed_text)),
        };
        let script = match &trace {
            None => None,
            Some((replay, trace)) => {
                let make = || script(replay, trace, &devices, &profile);
                let script = stock.script(replay, &devices, &profile, make)?;
                note_changes(&mut notes, &script, &profile);
                Some(script)
            }
        };
        let layout = stock.layout(&profile, &text);
        set.push(DriveSet {
            profile,
            layout,
            belief,
            curve,
            script,
        });
    }
    let devices = match &trace {
        None => Vec::new(),
        Some((_, trace)) => {
            hash.trace(trace);
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

/// The profile with other values for some of its keys, and without its noise if that is not wanted.
///
/// # Errors
///
/// If there is no such key, or what comes of it is no drive.
pub fn changed(
    profile: &Profile,
    overrides: &toml::Table,
    noise: bool,
    name: &str,
) -> Result<Profile, Fault> {
    let mut profile = profile.clone();
    if !overrides.is_empty() {
        let text = profile.to_toml();
        let mut table: toml::Table = text
            .parse()
            .map_err(|error| Fault::Input(format!("{name}: its own text is not TOML: {error}")))?;
        merge(&mut table, overrides);
        without_what_is_off(&mut table, overrides);
        let file = format!("{name} with drive.override");
        profile = Profile::from_toml(&file, &table.to_string()).map_err(|mut error| {
            // The line would be one of a text that nobody sees.
            error.line = None;
            Fault::input(error)
        })?;
    }
    if !noise {
        profile = profile
            .with(|spec: &mut Spec| spec.noise = NoiseSpec::default())
            .map_err(Fault::input)?;
    }
    Ok(profile)
}

/// Puts `over` into `table`, table by table.
fn merge(table: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Switching the buffer or reading ahead off takes with it what means nothing then, unless that is
/// overridden too: whoever asks for it nevertheless is told that it does not fit.
fn without_what_is_off(profile: &mut toml::Table, over: &toml::Table) {
    let (Some(toml::Value::Table(cache)), Some(toml::Value::Table(over))) =
        (profile.get_mut("cache"), over.get("cache"))
    else {
        return;
    };
    let off = toml::Value::from("off");
    let mut clear = |key: &str, value: toml::Value| {
        if !over.contains_key(key) {
            cache.insert(key.to_owned(), value);
        }
    };
    let disabled = over.get("enabled") == Some(&toml::Value::from(false));
    if disabled {
        clear("read_ahead", off.clone());
        clear("write_back", off.clone());
        clear("read_free_sectors", false.into());
    }
    if disabled || over.get("read_ahead") == Some(&off) {
        clear("read_ahead_min", 0.into());
        clear("read_ahead_max", 0.into());
    }
}

/// Reads a trace as a scenario wants it.
///
/// # Errors
///
/// If it cannot be read.
pub fn read(replay: &Replay) -> Result<Trace, Fault> {
    let reading = &replay.reading;
    let options = reading.options()?;
    Trace::open(Path::new(&replay.file), &options).map_err(trace_fault)
}

/// A fault for what is wrong with a trace.
pub fn trace_fault(error: TraceError) -> Fault {
    match error {
        TraceError::Open { .. } | TraceError::Read { .. } => Fault::File(error.to_string()),
        _ => Fault::input(error),
    }
}

impl crate::scenario::Reading {
    /// For the reader of traces.
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
            ..ReadOptions::default()
        })
    }
}

/// The devices that are replayed, ascending; all if none is chosen.
fn chosen(replay: &Replay, trace: &Trace) -> Result<Vec<u32>, Fault> {
    let mut devices = Vec::new();
    for text in &replay.devices {
        let device = trace.find_device(text).ok_or_else(|| {
            let all = names(trace, &trace.devices()).join(", ");
            Fault::Input(format!(
                "{}: no request is for device {text}; there are requests for {all}",
                replay.file
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
            replay.file,
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
    profile: &Profile,
) -> Result<Script, Fault> {
    let geometry = &profile.geometry;
    let fitter = Fitter::new(geometry.capacity, geometry.sector_bytes, replay.fit);
    Script::new(trace, devices, &fitter).map_err(|error| {
        Fault::Input(format!(
            "{}: on drive {}: {error}",
            replay.file, profile.name
        ))
    })
}

fn note_changes(notes: &mut Vec<String>, script: &Script, profile: &Profile) {
    let total = script.requests().len();
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
            "{}: {partial} of {writes} writes do not begin and end with its sectors of {} bytes; the drive reads              the rest of those first, which takes a turn (read-modify-write in the head time)",
            profile.name, profile.geometry.physical_sector_bytes
        ));
    }
}

/// What was assumed or changed while the trace was read.
pub fn reading_notes(trace: &Trace) -> Vec<String> {
    use headtime_workload::UnitReason;
    let notes = &trace.notes;
    let file = &notes.file;
    let mut texts = Vec::new();
    if let Some(unit) = &notes.time_unit
        && matches!(
            unit.because,
            UnitReason::FarApart | UnitReason::CloseTogether
        )
    {
        texts.push(format!(
            "{file}: times are taken as {unit}; --time-unit says otherwise"
        ));
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
    texts
}

/// The scenario without what differs from place to place but not in meaning: the seed, which is
/// reported beside the hash, and the directories of files, whose contents are hashed.
fn portable(scenario: &Scenario) -> Scenario {
    let file_name = |text: &String| {
        let name = Path::new(text).file_name();
        name.map_or_else(|| text.clone(), |name| name.to_string_lossy().into_owned())
    };
    let mut portable = scenario.clone();
    portable.seed = 0;
    portable.drives = scenario.drives.iter().map(file_name).collect();
    portable.belief = scenario.belief.as_ref().map(file_name);
    portable.curve = scenario.curve.as_ref().map(file_name);
    if let Workload::Replay(replay) = &mut portable.workload {
        replay.file = file_name(&replay.file);
    }
    portable
}

/// The hash of one text.
pub fn hash_of(text: &str) -> String {
    let mut hash = Hash::default();
    hash.text(text);
    hash.finish()
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): short, and the same everywhere.
#[derive(Debug)]
pub(crate) struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// A text and its end.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }

    /// The requests of a trace.
    pub(crate) fn trace(&mut self, trace: &Trace) {
        for request in &trace.requests {
            // One step for eight bytes: a trace may have millions of requests.
            for word in [
                request.arrival.map_or(u64::MAX, |time| time.as_nanos()),
                request.completion.map_or(u64::MAX, |time| time.as_nanos()),
                u64::from(request.device) << 32 | u64::from(request.process.unwrap_or(0)),
                request.extent.start.get(),
                request.extent.len.get() << 16
                    | (request.op as u64) << 8
                    | u64::from(request.flags.bits()),
            ] {
                self.0 = (self.0 ^ word)
                    .wrapping_mul(0x0000_0100_0000_01b3)
                    .rotate_left(23);
            }
        }
    }

    pub(crate) fn finish(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// Made-up programs, at most so many requests of all together, with a seed.
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
    use crate::drives;

    #[test]
    fn a_buffer_switched_off_takes_what_needs_it_along() {
        let changed = |over: &str| {
            let drive = drives::open("wd5000aaks").unwrap();
            changed(&drive, &over.parse().unwrap(), true, "wd5000aaks")
        };
        let plain = changed("").unwrap().cache;
        assert!(plain.enabled && plain.read_ahead_max > 0);
        let off = changed("cache.enabled = false").unwrap().cache;
        assert!(!off.enabled && !off.read_free_sectors);
        assert_eq!((off.read_ahead_min, off.read_ahead_max), (0, 0));
        let no_ahead = changed("cache.read_ahead = \"off\"").unwrap();
        assert!(no_ahead.cache.enabled);
        assert_eq!(no_ahead.cache.read_ahead_max, 0);
        // What is asked for is not dropped silently.
        let fault = changed("cache = { enabled = false, write_back = \"full\" }").unwrap_err();
        assert!(
            fault
                .to_string()
                .contains("cache.write_back: needs cache.enabled = true"),
            "{fault}"
        );
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Hash::default();
        hash.bytes(b"foobar");
        // Test vector of the draft.
        assert_eq!(hash.finish(), "85944171f73967e8");
    }
}
