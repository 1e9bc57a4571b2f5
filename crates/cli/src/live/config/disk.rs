//! The section of a disk.

use super::listen::max_bytes;
use super::sections::{Backend, DiskConfig, Emulated, ExportConfig, ExportRange};
use super::seen::{Seen, in_use_once, once};
use headtime_config::{Error, OneOrList, Placed, parse, whole};
use headtime_sched::{Class, Spec};
use headtime_serve::disk::{ExportLimits, ExportShare, ShareBy};
use headtime_stack::{Stack, Timeout};
use headtime_units::{Bytes, Nanos, Rate};
use serde::Deserialize;
use serde::de::{self, Deserializer};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Largest number of exports of one disk.
const EXPORTS_MAX: usize = 1024;

/// The keys of `[[disk]]`.
///
/// Invariants of keys that [`disk`] accepts:
///
/// - `emulate.is_some()` ⇔ `device.is_none()` ⇔ `store.is_some()`.
/// - `seed.is_some()` ⇒ `emulate.is_some()`; `seed < 2^63`.
/// - `direct`, `force` or `io_priority` is given ⇒ `device` is a path.
/// - `device = "null"` ⇒ `size.is_some()`; `size = Some(s)` ⇒ `s ≥ 1`.
/// - `create` ⇒ `!read_only`, and `store` is a path, or `device` is a path and `size.is_some()`.
/// - No array has the disk ⇒ `export` is absent or has 1 to [`EXPORTS_MAX`] entries.
#[derive(Deserialize)]
pub(super) struct DiskKeys {
    #[serde(deserialize_with = "disk_name")]
    name: String,
    emulate: Option<String>,
    device: Option<String>,
    store: Option<String>,
    #[serde(default, deserialize_with = "size")]
    size: Option<Bytes>,
    #[serde(default)]
    create: bool,
    #[serde(default, deserialize_with = "whole::<_, Option<u64>, 0, SEED_MAX>")]
    seed: Option<u64>,
    direct: Option<bool>,
    force: Option<bool>,
    io_priority: Option<bool>,
    #[serde(default = "usual_timeout")]
    timeout: Timeout,
    #[serde(default)]
    queue_timeout: Timeout,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    faults: bool,
    scrub: Option<PathBuf>,
    #[serde(default)]
    sole_writer: bool,
    export: Option<OneOrList<Placed<ExportKeys>>>,
    #[serde(rename = "+stack")]
    stack: Stack,
}

const SEED_MAX: u64 = i64::MAX as u64;

#[derive(Deserialize)]
pub(super) struct ExportKeys {
    #[serde(deserialize_with = "export_name")]
    name: String,
    #[serde(default)]
    class: Class,
    read_only: Option<bool>,
    range: Option<Placed<ExportRange>>,
    #[serde(default = "one", deserialize_with = "whole::<_, u32, 1, 1000>")]
    share: u32,
    #[serde(default)]
    share_by: ShareBy,
    #[serde(default, deserialize_with = "rate")]
    rate: Option<Rate>,
    #[serde(default, deserialize_with = "whole::<_, Option<u32>, 1, 65_536>")]
    max_in_flight: Option<u32>,
    #[serde(default, deserialize_with = "max_bytes")]
    max_bytes: Option<Bytes>,
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let rate = |text: &str| match text.parse() {
        Ok(Rate(rate)) if (1 << 16..=1 << 40).contains(&rate) => Ok(Rate(rate)),
        Ok(_) => Err("allowed is 64KiB/s to 1TiB/s".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    parse(from, "a rate, such as \"20MiB/s\"", rate).map(Some)
}

fn one() -> u32 {
    1
}

pub(super) fn disk_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    parse(from, "a name, such as \"disk0\"", |name| {
        let is_plain = !name.is_empty() && name.len() <= 64 && name.bytes().all(plain);
        match is_plain && !name.starts_with('.') {
            true => Ok(name.to_owned()),
            false => {
                Err("allowed are 1 to 64 letters, digits, `-`, `_` and `.`, which is not the first")
            }
        }
    })
}

/// Reads the name of an export. The name must be a valid file name, since the export of an attached disk is a file.
fn export_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let is_file_name = !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.contains('/')
        && !name.contains(char::is_control);
    match is_file_name {
        true => Ok(name),
        false => Err(de::Error::custom(
            "allowed are 1 to 255 bytes without `/` and control characters",
        )),
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let size = Bytes::deserialize(from)?;
    match size.0 > 0 {
        true => Ok(Some(size)),
        false => Err(de::Error::custom("allowed is 1B or more")),
    }
}

/// Default timeout of Linux for SCSI and ATA disks.
fn usual_timeout() -> Timeout {
    Timeout(Some(Nanos::from_secs(30)))
}

/// Checks a disk against all disks that precede this one. Disks that `of_arrays` names have no exports.
pub(super) fn disk(
    keys: Placed<DiskKeys>,
    seen: &mut Seen,
    of_arrays: &BTreeSet<String>,
) -> Result<DiskConfig, Error> {
    let at = &keys;
    let (disk, stack) = (&keys.value, &keys.stack);
    let what = format!("there is a disk \"{}\" already", disk.name);
    once(&mut seen.disks, disk.name.clone(), at, "name", &what)?;
    let backend = backend(at, seen)?;
    if disk.create {
        let made = may_create(&backend, disk.read_only);
        made.map_err(|problem| at.error_at("create", problem))?;
    }
    may_be_live(&stack.scheduler).map_err(|problem| {
        at.error_at("scheduler", format!("\"{}\": {problem}", stack.scheduler))
    })?;
    let exports = match of_arrays.contains(&disk.name) {
        true => Vec::new(),
        false => exports(at, &disk.name, disk.export.as_ref(), disk.read_only, seen)?,
    };
    Ok(DiskConfig {
        name: disk.name.clone(),
        backend,
        stack: stack.clone(),
        depth: at.has("depth").then_some(stack.engine.depth),
        timeout: disk.timeout.0,
        queue_timeout: disk.queue_timeout.0,
        read_only: disk.read_only,
        create: disk.create,
        faults: disk.faults,
        scrub: disk.scrub.clone(),
        sole_writer: disk.sole_writer,
        exports,
        at: keys.map(|_| ()),
    })
}

/// The exports of a disk or an array.
pub(super) fn exports<T>(
    at: &Placed<T>,
    name: &str,
    keys: Option<&OneOrList<Placed<ExportKeys>>>,
    read_only: bool,
    seen: &mut Seen,
) -> Result<Vec<ExportConfig>, Error> {
    match keys {
        Some(OneOrList(exports)) if exports.is_empty() => {
            Err(at.error_at("export", "is an empty list; give at least one"))
        }
        Some(OneOrList(exports)) if exports.len() > EXPORTS_MAX => {
            let problem = format!("{} exports; allowed are {EXPORTS_MAX}", exports.len());
            Err(at.error_at("export", problem))
        }
        Some(OneOrList(exports)) => {
            let mut read: Vec<ExportConfig> = Vec::with_capacity(exports.len());
            for keys in exports {
                let export = export(keys, seen, read_only)?;
                if let Some(other) = read.iter().find(|other| collide(&export, other)) {
                    let problem = format!(
                        "{} and {} take writes to the same bytes; give ranges apart, the same range, or read_only = true",
                        described(&export),
                        described(other)
                    );
                    return Err(keys.error_at("range", problem));
                }
                read.push(export);
            }
            Ok(read)
        }
        None => {
            let what = "is that of an export, and would be this disk's too, as it has none";
            once(&mut seen.exports, name.to_owned(), at, "name", what)?;
            Ok(vec![ExportConfig {
                name: name.to_owned(),
                class: Class::default(),
                read_only,
                range: None,
                program: 0,
                share: ExportShare {
                    weight: 1,
                    by: ShareBy::default(),
                },
                rate: None,
                limits: ExportLimits::default(),
            }])
        }
    }
}

/// Reads a scheduler that can run live. The error does not repeat the text.
pub fn scheduler(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error| {
        let said = format!("{error}");
        let text = format!("scheduler \"{text}\": ");
        said.strip_prefix(&text).unwrap_or(&said).to_owned()
    })?;
    may_be_live(&spec)?;
    Ok(spec)
}

fn may_be_live(spec: &Spec) -> Result<(), String> {
    match spec.needs().foresight {
        true => Err("is told of requests before they come, which only a simulation can".to_owned()),
        false => Ok(()),
    }
}

fn backend(at: &Placed<DiskKeys>, seen: &mut Seen) -> Result<Backend, Error> {
    let (disk, stack) = (&at.value, &at.stack);
    let only = |keys: &[&str], what: &str| match keys.iter().find(|key| at.has(key)) {
        Some(key) => Err(at.error_at(key, format!("is for {what} only"))),
        None => Ok(()),
    };
    let whole_sectors = || match disk.size {
        Some(size) if !size.0.is_multiple_of(512) => {
            Err(at.error_at("size", "allowed is a multiple of 512B here"))
        }
        _ => Ok(()),
    };
    const EMULATE: &str = "emulate = \"DRIVE\"";
    const DEVICE: &str = "device = \"PATH\"";
    const OF_EMULATED: [&str; 5] = ["store", "seed", "firmware", "noise", "override"];
    const OF_DEVICE: [&str; 3] = ["direct", "force", "io_priority"];
    match (&disk.emulate, &disk.device) {
        (Some(profile), None) => {
            only(&OF_DEVICE, DEVICE)?;
            whole_sectors()?;
            let store = disk.store.as_deref().ok_or_else(|| {
                at.error_at("store", "missing; give \"memory\" or the path of a file")
            })?;
            let store = match store {
                "" => return Err(at.error_at("store", "is empty; give \"memory\" or a path")),
                "memory" => None,
                path => Some(PathBuf::from(path)),
            };
            if let Some(path) = &store {
                in_use_once(seen, path, at, "store")?;
            }
            Ok(Backend::Emulated(Emulated {
                profile: profile.clone(),
                simulated: stack.simulated.clone(),
                seed: disk.seed.unwrap_or(1),
                store,
                size: disk.size,
            }))
        }
        (None, Some(device)) if device == "null" => {
            only(&OF_EMULATED, EMULATE)?;
            only(&OF_DEVICE, DEVICE)?;
            whole_sectors()?;
            let size = disk.size.ok_or_else(|| {
                at.error_at("size", "missing; the null device is as large as this says")
            })?;
            Ok(Backend::Null { size })
        }
        (None, Some(device)) => {
            only(&OF_EMULATED, EMULATE)?;
            if device.is_empty() {
                return Err(at.error_at("device", "is empty; give a path or \"null\""));
            }
            let path = PathBuf::from(device);
            in_use_once(seen, &path, at, "device")?;
            Ok(Backend::Device {
                path,
                direct: disk.direct.unwrap_or(true),
                force: disk.force.unwrap_or(false),
                size: disk.size,
                io_priority: disk.io_priority,
            })
        }
        (Some(_), Some(_)) => {
            let problem = "allowed is one of emulate and device";
            Err(at.error_at("device", problem))
        }
        (None, None) => Err(at.error_at(
            "emulate",
            "missing; give emulate = \"wd5000aaks\" or the like, or device = \"PATH\"",
        )),
    }
}

/// Refuses `create` if there is no file to make. The error is the problem with `create`.
fn may_create(backend: &Backend, read_only: bool) -> Result<(), &'static str> {
    match backend {
        Backend::Emulated(Emulated { store: None, .. }) | Backend::Null { .. } => {
            Err("is for a file: a store = \"PATH\" or a device = \"PATH\"")
        }
        Backend::Device { size: None, .. } => {
            Err("takes size, which says how large the file is to be")
        }
        _ if read_only => Err("is true, but the disk is read-only: what is only read is not made"),
        _ => Ok(()),
    }
}

fn export(
    keys: &Placed<ExportKeys>,
    seen: &mut Seen,
    disk_read_only: bool,
) -> Result<ExportConfig, Error> {
    let name = &keys.name;
    let what = format!("there is an export \"{name}\" already");
    once(&mut seen.exports, name.clone(), keys, "name", &what)?;
    let read_only = keys.read_only.unwrap_or(disk_read_only);
    if disk_read_only && !read_only {
        return Err(keys.error_at("read_only", "is false, but the disk is read-only"));
    }
    let usual = ExportLimits::default();
    Ok(ExportConfig {
        name: name.clone(),
        class: keys.class,
        read_only,
        range: keys.range.clone(),
        program: 0,
        share: ExportShare {
            weight: keys.share,
            by: keys.share_by,
        },
        rate: keys.rate,
        limits: ExportLimits {
            requests: keys
                .max_in_flight
                .map_or(usual.requests, |max| max as usize),
            bytes: keys.max_bytes.map_or(usual.bytes, |max| max.0 as usize),
        },
    })
}

/// Returns true if two exports that take writes overlap but differ. Two exports of the same bytes are two names for these bytes,
/// usually with different classes.
fn collide(one: &ExportConfig, other: &ExportConfig) -> bool {
    let common = match (one.range.as_deref(), other.range.as_deref()) {
        (Some(one), Some(other)) => one != other && one.start < other.end && other.start < one.end,
        (None, None) => false,
        _ => true,
    };
    common && !one.read_only && !other.read_only
}

fn described(export: &ExportConfig) -> String {
    let name = &export.name;
    match &export.range {
        None => format!("{name} (the whole disk)"),
        Some(range) => format!("{name} ({})", **range),
    }
}
