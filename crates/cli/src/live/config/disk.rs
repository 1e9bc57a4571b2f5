//! The section of a disk.

use super::seen::{Seen, in_use_once, once};
use super::{Backend, DiskConfig, Emulated, ExportConfig, Places};
use crate::scenario::MERGE_MAX;
use crate::scenario::tree::{Section, Table, TreeError};
use headtime_sched::{Class, Spec};
use headtime_stack::Firmware;
use headtime_units::{Bytes, Nanos, ParseUnitError};
use std::path::PathBuf;

/// Linux's for SCSI and ATA disks.
const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Exports of one disk.
const EXPORTS_MAX: usize = 1024;

/// Reads the section.
pub(super) fn disk(mut section: Section<'_>, seen: &mut Seen) -> Result<DiskConfig, TreeError> {
    section.allow(&ALL_KEYS)?;
    let name = section
        .text("name")?
        .ok_or_else(|| section.error("name", "missing; give for example \"disk0\""))?
        .to_owned();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) || name.starts_with('.') {
        let problem = format!(
            "\"{name}\": allowed are 1 to 64 letters, digits, `-`, `_` and `.`, which is not the first"
        );
        return Err(section.error("name", problem));
    }
    once(
        &mut seen.disks,
        name.clone(),
        &section,
        "name",
        &format!("there is a disk \"{name}\" already"),
    )?;
    let read_only = section.flag("read_only")?.unwrap_or(false);
    let create = section.flag("create")?.unwrap_or(false);
    let backend = backend(&mut section, seen)?;
    if create {
        may_create(&backend, read_only).map_err(|problem| section.error("create", problem))?;
    }
    let scheduler = section
        .parse("scheduler", "the text of a scheduler", scheduler)?
        .ok_or_else(|| {
            section.error(
                "scheduler",
                "missing; give for example \"stream(deadline)\"",
            )
        })?;
    let belief = section.text("belief")?.map(str::to_owned);
    let curve = section.text("curve")?.map(str::to_owned);
    let depth = section.integer("depth", 1..=256)?.map(|depth| depth as u32);
    let merge = section.flag("merge")?.unwrap_or(true);
    let merge_max = section.size("merge_max")?.unwrap_or(Bytes(512 << 10));
    if merge_max.0 == 0 || !merge_max.0.is_multiple_of(512) || merge_max > MERGE_MAX {
        let problem = "allowed is a multiple of 512B, up to 1GiB";
        return Err(section.error("merge_max", problem));
    }
    let hide_processes = section.flag("hide_processes")?.unwrap_or(false);
    let timeout = section
        .parse("timeout", "a duration, or \"off\"", timeout)?
        .unwrap_or(Some(TIMEOUT));
    let faults = section.flag("faults")?.unwrap_or(false);
    let exports = match section.sections("export")? {
        Some(sections) if sections.len() > EXPORTS_MAX => {
            let problem = format!("{} exports; allowed are {EXPORTS_MAX}", sections.len());
            return Err(section.error("export", problem));
        }
        Some(sections) => sections
            .into_iter()
            .map(|section| export(section, seen, read_only))
            .collect::<Result<_, _>>()?,
        None => {
            once(
                &mut seen.exports,
                name.clone(),
                &section,
                "name",
                "is that of an export, and would be this disk's too, as it has none",
            )?;
            vec![ExportConfig {
                name: name.clone(),
                class: Class::default(),
                read_only,
            }]
        }
    };
    let keys = KEYS
        .into_iter()
        .filter(|key| section.has(key))
        .map(|key| (key, section.error(key, "").place));
    let at = Places {
        path: section.path().to_owned(),
        table: section.place().clone(),
        keys: keys.collect(),
    };
    section.finish()?;
    Ok(DiskConfig {
        name,
        backend,
        scheduler,
        belief,
        curve,
        depth,
        merge,
        merge_max,
        hide_processes,
        timeout,
        read_only,
        create,
        faults,
        exports,
        at,
    })
}

/// Keys of a disk, whatever is behind it.
const ALL_KEYS: [&str; 23] = [
    "name",
    "emulate",
    "device",
    "store",
    "size",
    "create",
    "scheduler",
    "firmware",
    "override",
    "noise",
    "seed",
    "direct",
    "force",
    "belief",
    "curve",
    "depth",
    "merge",
    "merge_max",
    "hide_processes",
    "timeout",
    "read_only",
    "faults",
    "export",
];

/// Keys of a disk that something can be wrong with that shows only when its files are read.
const KEYS: [&str; 11] = [
    "emulate",
    "device",
    "store",
    "size",
    "scheduler",
    "belief",
    "curve",
    "depth",
    "merge_max",
    "override",
    "firmware",
];

/// Reads a scheduler that can be had live. The error does not repeat the text.
pub fn scheduler(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error| {
        let said = format!("{error}");
        let text = format!("scheduler \"{text}\": ");
        said.strip_prefix(&text).unwrap_or(&said).to_owned()
    })?;
    if spec.needs().foresight {
        return Err("is told of requests before they come, which only a simulation can".to_owned());
    }
    Ok(spec)
}

/// `None` for never.
fn timeout(text: &str) -> Result<Option<Nanos>, String> {
    if text == "off" {
        return Ok(None);
    }
    let allowed = || "allowed is 100ms to 3650d, or \"off\"".to_owned();
    let span: Nanos = text.parse().map_err(|error| match error {
        ParseUnitError::TooLong => allowed(),
        error => format!("{error}"),
    })?;
    match span >= Nanos::from_millis(100) {
        true => Ok(Some(span)),
        false => Err(allowed()),
    }
}

fn backend(section: &mut Section<'_>, seen: &mut Seen) -> Result<Backend, TreeError> {
    let emulate = section.text("emulate")?.map(str::to_owned);
    let device = section.text("device")?.map(str::to_owned);
    let size = section.size("size")?;
    if size.is_some_and(|size| size.0 == 0 || !size.0.is_multiple_of(512)) {
        return Err(section.error("size", "allowed is a multiple of 512B, from 512B on"));
    }
    let only = |section: &Section<'_>, keys: &[&str], what: &str| match keys
        .iter()
        .find(|key| section.has(key))
    {
        Some(key) => Err(section.error(key, format!("is for {what} only"))),
        None => Ok(()),
    };
    const OF_EMULATED: [&str; 5] = ["store", "firmware", "override", "noise", "seed"];
    const OF_DEVICE: [&str; 2] = ["direct", "force"];
    match (emulate, device) {
        (Some(profile), None) => {
            only(section, &OF_DEVICE, "device = \"PATH\"")?;
            let store = section.text("store")?.ok_or_else(|| {
                section.error("store", "missing; give \"memory\" or the path of a file")
            })?;
            let store = match store {
                "" => return Err(section.error("store", "is empty; give \"memory\" or a path")),
                "memory" => None,
                path => Some(PathBuf::from(path)),
            };
            if let Some(path) = &store {
                in_use_once(seen, path, section, "store")?;
            }
            let firmware = section
                .parse("firmware", "\"profile\", \"fifo\" or \"sptf\"", str::parse)?
                .unwrap_or(Firmware::Profile);
            let noise = section.flag("noise")?.unwrap_or(true);
            let seed = section.integer("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
            let overrides = section
                .any_table("override")?
                .map(Table::to_toml)
                .unwrap_or_default();
            Ok(Backend::Emulated(Emulated {
                profile,
                firmware,
                overrides,
                noise,
                seed,
                store,
                size,
            }))
        }
        (None, Some(device)) if device == "null" => {
            only(section, &OF_EMULATED, "emulate = \"DRIVE\"")?;
            only(section, &OF_DEVICE, "device = \"PATH\"")?;
            let size = size.ok_or_else(|| {
                section.error("size", "missing; the null device is as large as this says")
            })?;
            Ok(Backend::Null { size })
        }
        (None, Some(device)) => {
            only(section, &OF_EMULATED, "emulate = \"DRIVE\"")?;
            if device.is_empty() {
                return Err(section.error("device", "is empty; give a path or \"null\""));
            }
            let path = PathBuf::from(device);
            in_use_once(seen, &path, section, "device")?;
            let direct = section.flag("direct")?.unwrap_or(true);
            let force = section.flag("force")?.unwrap_or(false);
            Ok(Backend::Device {
                path,
                direct,
                force,
                size,
            })
        }
        (Some(_), Some(_)) => {
            let problem = "allowed is one of emulate and device";
            Err(section.error("device", problem))
        }
        (None, None) => Err(section.error(
            "emulate",
            "missing; give emulate = \"wd5000aaks\" or the like, or device = \"PATH\"",
        )),
    }
}

/// Whether there is a file to be made. The error is what is wrong with `create`.
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
    mut section: Section<'_>,
    seen: &mut Seen,
    disk_read_only: bool,
) -> Result<ExportConfig, TreeError> {
    section.allow(&["name", "class", "read_only"])?;
    let name = section
        .text("name")?
        .ok_or_else(|| section.error("name", "missing; give what clients ask for"))?
        .to_owned();
    // A file of this name stands for it where a disk is attached.
    let is_file_name = !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.contains('/')
        && !name.contains(char::is_control);
    if !is_file_name {
        let problem = "allowed are 1 to 255 bytes without `/` and control characters";
        return Err(section.error("name", problem));
    }
    let what = format!("there is an export \"{name}\" already");
    once(&mut seen.exports, name.clone(), &section, "name", &what)?;
    let class = section
        .parse("class", "a class", crate::scenario::class)?
        .unwrap_or_default();
    let read_only = section.flag("read_only")?.unwrap_or(disk_read_only);
    if disk_read_only && !read_only {
        return Err(section.error("read_only", "is false, but the disk is read-only"));
    }
    section.finish()?;
    Ok(ExportConfig {
        name,
        class,
        read_only,
    })
}
