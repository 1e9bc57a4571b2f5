//! Arrays of disks: several disks that form one.

use super::config::{ArrayConfig, Backend, GeometryConfig, Layout, coordinates, differing_keys};
use super::disk::{OpenFailure, Opener, PreparedDisk, is_locked};
use headtime_array::{Coordinator, Geometry};
use headtime_engine::conduct::Conductor;
use headtime_engine::{Concat, Map, MapError, Striped};
use headtime_lab::fault::Fault;
use headtime_sched::StreamConfig;
use headtime_serve::device::Device;
use headtime_serve::disk::{Addresses, StartError, Volume};
use headtime_serve::file;
use headtime_serve::header::{Header, check_set};
use headtime_stack::{ArrayMembers as _, entries};
use headtime_units::{Bytes, Sectors};
use std::fmt;

/// Size and header of a disk.
pub(super) struct Found {
    pub sectors: Sectors,
    sector_bytes: u32,
    /// True if the last sector has fewer bytes than the others.
    is_cut: bool,
    header: Option<Header>,
}

/// Reason why disks cannot form an array.
#[derive(Debug)]
struct Unfit {
    /// Index in the array of the disk at fault, if a single disk is at fault.
    member: Option<usize>,
    problem: String,
    /// True if another server uses the disk.
    is_locked: bool,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Unfit {}

impl Unfit {
    fn of(member: usize, problem: impl fmt::Display) -> Unfit {
        Unfit {
            member: Some(member),
            problem: problem.to_string(),
            is_locked: false,
        }
    }

    /// A disk that cannot be opened.
    fn unopened(member: usize, error: &(dyn std::error::Error + 'static)) -> Unfit {
        Unfit {
            is_locked: is_locked(error),
            ..Unfit::of(member, error)
        }
    }

    /// Returns the error at the key that is wrong.
    fn fault(&self, array: &ArrayConfig, members: &[PreparedDisk]) -> Fault {
        match self.member {
            None => array.error("members", self.problem.as_str()),
            Some(member) => {
                let disk = &members[member];
                let (name, problem) = (&array.name, &self.problem);
                let problem = format!("member {member} of the array {name}: {problem}");
                disk.refused(problem, self.is_locked)
            }
        }
    }
}

/// Checks that disks have the same depth. Without a key, a disk has the depth of its drive.
pub(super) fn alike(array: &ArrayConfig, members: &[PreparedDisk]) -> Result<(), Fault> {
    let first = &members[0];
    match (members.iter()).find(|disk| disk.engine.depth != first.engine.depth) {
        None => Ok(()),
        Some(disk) => {
            let (name, one, other) = (&array.name, disk.engine.depth, first.engine.depth);
            Err(disk.config.error(
                "depth",
                format!(
                    "is {one}, and {other} at {}: all disks of the array {name} have the same; give it for each",
                    first.config.name
                ),
            ))
        }
    }
}

/// Describes the layout and the disks of an array in words.
pub(super) fn backend(array: &ArrayConfig) -> String {
    let (mut level, mut rest) = (String::new(), vec![array.spec.members.join(", ")]);
    for (key, value) in entries(&array.spec) {
        match key.as_str() {
            "level" => level = value.text(),
            "members" => {}
            _ => rest.push(format!("{key} {}", value.text())),
        }
    }
    let by_clients = match &array.geometry {
        Some(geometry) => {
            rest.push(geometry.to_string());
            "clients' "
        }
        None => "",
    };
    format!("{by_clients}{level} of {}", rest.join(", "))
}

/// Settings of an array in a log. Readers of the log use them, and a replay ignores them.
pub(super) fn log_settings(array: &ArrayConfig) -> Vec<(String, String)> {
    let name = ("array".to_owned(), array.name.clone());
    let geometry = array.geometry.iter();
    let geometry = geometry.map(|of| ("array.geometry".to_owned(), of.to_string()));
    [name]
        .into_iter()
        .chain(array.spec.log_settings())
        .chain(geometry)
        .collect()
}

/// Layout of the volume of the disks that were found: the array, or one disk behind the other if clients make the array.
fn lay(array: &ArrayConfig, found: &[Found]) -> Result<Box<dyn Map>, Unfit> {
    let striped = stripe(array, found)?;
    if array.geometry.is_none() {
        return Ok(Box::new(striped));
    }
    let sizes: Vec<Sectors> = found.iter().map(|of| of.sectors).collect();
    match Concat::new(&sizes) {
        Ok(concat) => Ok(Box::new(concat)),
        Err(error) => Err(Unfit {
            member: None,
            problem: error.to_string(),
            is_locked: false,
        }),
    }
}

/// Lays an array over the disks that were found. Fails if the disks do not fit together.
fn stripe(array: &ArrayConfig, found: &[Found]) -> Result<Striped, Unfit> {
    let names = &array.spec.members;
    let sector_bytes = found[0].sector_bytes;
    if let Some(other) = found.iter().position(|of| of.sector_bytes != sector_bytes) {
        let (own, first) = (found[other].sector_bytes, &names[0]);
        let problem = format!("has sectors of {own} bytes, and {first} of {sector_bytes}");
        return Err(Unfit::of(other, problem));
    }
    let headers = names.iter().zip(found);
    let headers = headers.map(|(name, of)| (name.as_str(), of.header.as_ref()));
    check_set(&headers.collect::<Vec<_>>(), array.spec.chunk.0)
        .map_err(|(member, problem)| Unfit::of(member, problem))?;
    let sizes = match &array.geometry {
        None => found.iter().map(|of| of.sectors).collect(),
        Some(geometry) => data_of_disks(geometry, found)?,
    };
    let striped = array.spec.over(&sizes, sector_bytes);
    let striped = striped.map(|striped| {
        let layout = array.geometry.as_ref().map(|geometry| geometry.layout);
        match layout {
            Some(Layout::Original) => striped.original(),
            _ => striped,
        }
    });
    striped.map_err(|error| match error {
        MapError::Small(member, size, chunk) => Unfit::of(
            member,
            format!("is too small: {size} sectors; a chunk has {chunk}"),
        ),
        error => Unfit {
            member: None,
            problem: error.to_string(),
            is_locked: false,
        },
    })
}

/// Sectors of each disk that belong to an array of clients.
fn data_of_disks(geometry: &GeometryConfig, found: &[Found]) -> Result<Vec<Sectors>, Unfit> {
    let mut data = Vec::with_capacity(found.len());
    for (member, of) in found.iter().enumerate() {
        let sector = u64::from(of.sector_bytes);
        let bytes = of.sectors.bytes(of.sector_bytes);
        let offset = geometry.offsets[member];
        let size = geometry.sizes.as_ref().map(|sizes| sizes[member]);
        let size = size.unwrap_or(Bytes(bytes.saturating_sub(offset.0)));
        let end = offset.0.checked_add(size.0);
        let problem = if of.is_cut {
            format!("has a last sector of fewer than {sector} bytes, which no array can have")
        } else if [offset, size].iter().any(|at| !at.0.is_multiple_of(sector)) {
            format!("geometry: {size} from {offset} on are no whole sectors of {sector} bytes")
        } else if size.0 == 0 || end.is_none_or(|end| end > bytes) {
            let bytes = Bytes(bytes);
            format!("geometry: {size} from {offset} on are not within the disk's {bytes}")
        } else {
            data.push(Sectors::new(size.0 / sector));
            continue;
        };
        return Err(Unfit::of(member, problem));
    }
    Ok(data)
}

/// Coordinator of an array's disks, if its configuration has one.
pub(super) fn conductor(
    array: &ArrayConfig,
    members: &[PreparedDisk],
    force: bool,
) -> Result<Option<Box<dyn Conductor + Send>>, Fault> {
    let first = &members[0];
    let config = StreamConfig::of(&first.config.stack.scheduler);
    let Some(config) = config.filter(|_| coordinates(&array.spec)) else {
        return Ok(None);
    };
    let problem = "the coordinator needs a curve of service times; give `curve` or `belief`";
    let curve = first.known.curve();
    let curve = curve.ok_or_else(|| first.config.error("scheduler", problem))?;
    let coordinator = Coordinator::new(array.spec.members.count(), &config, curve);
    let Some(keys) = &array.geometry else {
        return Ok(Some(Box::new(coordinator)));
    };
    let found = find(array, members, force)?;
    let layout = stripe(array, &found).map_err(|unfit| unfit.fault(array, members))?;
    let offsets = keys.offsets.iter().zip(&found);
    let offsets = offsets.map(|(at, of)| Sectors::new(at.0 / u64::from(of.sector_bytes)));
    let data = layout.data_disks();
    let coordinator = match data == array.spec.members.count() {
        true => coordinator,
        false => coordinator.with_data(data),
    };
    let offsets = offsets.collect();
    Ok(Some(Box::new(
        coordinator.with_geometry(Geometry { layout, offsets }),
    )))
}

/// Checks the disks of an array without opening any disk for writing. Returns all bytes of the volume, and the disks.
pub(super) fn look(
    array: &ArrayConfig,
    members: &[PreparedDisk],
    force: bool,
) -> Result<(Addresses, Vec<Found>), Fault> {
    let found = find(array, members, force)?;
    let map = lay(array, &found).map_err(|unfit| unfit.fault(array, members))?;
    let sector_bytes = found[0].sector_bytes;
    let whole = Addresses::whole(map.capacity().bytes(sector_bytes), sector_bytes);
    Ok((whole, found))
}

/// Finds the size of each disk without opening any disk for writing.
fn find(array: &ArrayConfig, members: &[PreparedDisk], force: bool) -> Result<Vec<Found>, Fault> {
    let mut found = Vec::with_capacity(members.len());
    for (member, disk) in members.iter().enumerate() {
        found.push(match (&disk.config.backend, disk.file_options(force)) {
            (Backend::Device { .. }, Some(options)) => {
                let file = file::look_at(&options);
                let file =
                    file.map_err(|error| Unfit::unopened(member, &error).fault(array, members))?;
                Found {
                    header: file.header().cloned(),
                    ..of_device(&file)
                }
            }
            _ => {
                let disk = disk.look(force)?;
                let (bytes, sector_bytes) = (disk.bytes(), disk.sector_bytes());
                Found {
                    sectors: Sectors::new(bytes / u64::from(sector_bytes)),
                    sector_bytes,
                    is_cut: !bytes.is_multiple_of(u64::from(sector_bytes)),
                    header: None,
                }
            }
        });
    }
    Ok(found)
}

/// Size of an opened device.
fn of_device(device: &dyn Device) -> Found {
    let geometry = device.geometry();
    let sector_bytes = geometry.sector_bytes;
    Found {
        sectors: geometry.capacity,
        sector_bytes,
        is_cut: device.bytes() != geometry.capacity.bytes(sector_bytes),
        header: None,
    }
}

/// Opens all disks of an array. If a disk fails, all files that opening made are removed.
pub(super) fn open(array: &ArrayConfig, openers: Vec<Opener>) -> Result<Volume, OpenFailure> {
    let mut devices: Vec<Box<dyn Device>> = Vec::with_capacity(openers.len());
    let laid = open_each(openers, &mut devices).and_then(|found| lay(array, &found));
    match laid {
        Ok(map) => Ok((devices, map)),
        Err(unfit) => {
            devices.iter().for_each(|device| device.made().remove());
            Err(unfit.into())
        }
    }
}

fn open_each(
    openers: Vec<Opener>,
    devices: &mut Vec<Box<dyn Device>>,
) -> Result<Vec<Found>, Unfit> {
    let mut found = Vec::with_capacity(openers.len());
    for (member, open) in openers.into_iter().enumerate() {
        let opened = open().map_err(|error| Unfit::unopened(member, &*error))?;
        found.push(Found {
            header: opened.header,
            ..of_device(&*opened.device)
        });
        devices.push(opened.device);
    }
    Ok(found)
}

/// Creates the fault for an array that does not start.
pub(super) fn fault(array: &ArrayConfig, members: &[PreparedDisk], error: StartError) -> Fault {
    match &error {
        StartError::Device { error, .. } => match error.downcast_ref::<Unfit>() {
            Some(unfit) => unfit.fault(array, members),
            None => array.error("members", error.to_string()),
        },
        _ => Fault::input(error),
    }
}

/// Describes changes of arrays in another reading of the configuration. Each change requires a restart.
pub(super) fn fixed_differences(old: &[&ArrayConfig], new: &[ArrayConfig]) -> Vec<String> {
    let find = |name: &str| new.iter().find(|array| array.name == name);
    let of_old = old.iter().filter_map(|old| {
        let name = &old.name;
        let Some(new) = find(name) else {
            return Some(format!("array {name} is gone; that takes a restart"));
        };
        let mut keys = differing_keys(&old.spec, &new.spec);
        for (key, differs) in [
            ("export", old.exports != new.exports),
            ("geometry", old.geometry != new.geometry),
        ] {
            keys.extend(differs.then(|| key.to_owned()));
        }
        let keys: Vec<String> = keys.into_iter().collect();
        let keys = Some(keys.join(", ")).filter(|keys| !keys.is_empty())?;
        Some(format!(
            "array {name}: {keys}: another value takes a restart"
        ))
    });
    let is_old = |new: &&ArrayConfig| old.iter().any(|old| old.name == new.name);
    let of_new = new.iter().filter(|new| !is_old(new));
    let of_new = of_new.map(|new| format!("array {} is new; that takes a restart", new.name));
    of_old.chain(of_new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::config::Config;

    #[test]
    fn disks_that_do_not_fit_each_other_are_refused_by_their_number() {
        let disk = |name| {
            format!(
                "[[disk]]\nname = \"{name}\"\ndevice = \"null\"\nsize = \"1MiB\"\nscheduler = \"noop\"\n"
            )
        };
        let text = format!(
            "{}{}[[array]]\nname = \"a\"\nmembers = [\"x\", \"y\"]\n",
            disk("x"),
            disk("y")
        );
        let config = Config::parse("c", &text).unwrap();
        let found = |sectors, sector_bytes| Found {
            sectors: Sectors::new(sectors),
            sector_bytes,
            is_cut: false,
            header: None,
        };
        let laid = |found: &[Found]| stripe(&config.arrays[0], found);
        let striped = laid(&[found(300, 512), found(128, 512)]).expect("they fit");
        assert_eq!(striped.capacity(), Sectors::new(256 + 128));
        for (two, problem) in [
            (found(1024, 4096), "has sectors of 4096 bytes, and x of 512"),
            (
                found(127, 512),
                "is too small: 127 sectors; a chunk has 128",
            ),
        ] {
            let unfit = laid(&[found(300, 512), two]).expect_err(problem);
            assert_eq!(
                (unfit.member, unfit.to_string()),
                (Some(1), problem.to_owned())
            );
        }
    }
}
