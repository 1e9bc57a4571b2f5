//! From parameters to a profile.

use super::fields::Fields;
use super::fit::fit;
use super::parts::{cache, hpl, overhead, skew_units};
use super::syntax::{self, Block, Item, Tree, Value};
use super::{Import, ImportError};
use crate::layout::Layout;
use crate::profile::{
    AccessSpec, BusSpec, FirmwarePolicy, Geometry, Interpolation, LayoutSpec, NoiseSpec, Order,
    Preseek, Provenance, QueueSpec, Rotation, SeekCurve, SeekSpec, Skew, Sparing, Spec, Zone,
};
use headtime_units::{Nanos, Sectors};
use std::collections::BTreeMap;
use std::path::Path;

/// Files may name files that name files; real ones go two deep.
const DEEPEST: usize = 8;
/// Files that may be named in all, since one that is named twice at each depth multiplies; real runs
/// name three.
const MOST_FILES: usize = 100;

/// What the files of a run say.
struct Run<'a> {
    beside: &'a mut dyn FnMut(&str) -> std::io::Result<String>,
    blocks: Vec<Block>,
    /// The block that an instance is made of, by the name of the instance.
    instances: BTreeMap<String, String>,
    topology: Vec<Tree>,
    notes: Vec<String>,
    /// Files that were named and read.
    files: usize,
}

pub(super) fn import(
    file: &str,
    text: &str,
    mut beside: impl FnMut(&str) -> std::io::Result<String>,
) -> Result<Import, ImportError> {
    let mut run = Run {
        beside: &mut beside,
        blocks: Vec::new(),
        instances: BTreeMap::new(),
        topology: Vec::new(),
        notes: Vec::new(),
        files: 0,
    };
    run.load(file, text, 0)?;
    let (disk, path) = run.disk(file)?;
    let disk = run.expanded(disk, 0)?;
    let bus = run.bus(&path)?;
    let spec = run.spec(file, &disk, bus)?;
    let model = Fields::new(&disk).block("Model")?.file.to_string();
    let profile = spec.check().map_err(|source| ImportError::Profile {
        file: model,
        source: Box::new(source),
    })?;
    Ok(Import {
        profile,
        notes: run.notes,
    })
}

/// A name for the profile: the file's without its ending, in the letters that a name may have.
fn slug(file: &str) -> String {
    let stem = Path::new(file)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let letters = stem.chars().map(|c| {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        }
    });
    let slug: String = letters.collect();
    let slug = slug.trim_matches('-').to_string();
    if slug.is_empty() {
        "imported".to_string()
    } else {
        slug
    }
}

impl Run<'_> {
    fn read(&mut self, name: &str, named_in: &str, line: usize) -> Result<String, ImportError> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(ImportError::Syntax {
                file: named_in.to_string(),
                line,
                message: format!("more than {MOST_FILES} files are named in all"),
            });
        }
        (self.beside)(name).map_err(|source| ImportError::Read {
            file: name.to_string(),
            named_in: Some(format!("{named_in}:{line}")),
            source,
        })
    }

    fn too_deep(file: &str, line: usize) -> ImportError {
        ImportError::Syntax {
            file: file.to_string(),
            line,
            message: format!("files that name files more than {DEEPEST} deep"),
        }
    }

    /// Takes in a file and those that it names at its top level.
    fn load(&mut self, file: &str, text: &str, depth: usize) -> Result<(), ImportError> {
        for item in syntax::parse(file, text)? {
            match item {
                Item::Block(block) => self.blocks.push(block),
                Item::Source(name, line) => {
                    if depth == DEEPEST {
                        return Err(Run::too_deep(file, line));
                    }
                    let text = self.read(&name, file, line)?;
                    self.load(&name, &text, depth + 1)?;
                }
                Item::Instantiate { instances, of } => {
                    for instance in instances {
                        self.instances.insert(instance, of.clone());
                    }
                }
                Item::Topology(tree) => self.topology.push(tree),
            }
        }
        Ok(())
    }

    /// The same block with the files that it names in place of their names.
    fn expanded(&mut self, mut block: Block, depth: usize) -> Result<Block, ImportError> {
        for param in block.replaced() {
            self.notes.push(format!(
                "{}:{}: `{}` is given again later, which counts",
                block.file, param.line, param.key
            ));
        }
        for param in &mut block.params {
            if let Value::Source(name) = &param.value {
                if depth == DEEPEST {
                    return Err(Run::too_deep(&block.file, param.line));
                }
                let text = self.read(name, &block.file, param.line)?;
                let found = syntax::parse(name, &text)?
                    .into_iter()
                    .find_map(|item| match item {
                        Item::Block(block) => Some(block),
                        _ => None,
                    });
                let Some(found) = found else {
                    return Err(ImportError::Parameter {
                        file: block.file.to_string(),
                        line: param.line,
                        key: param.key.clone(),
                        message: format!("{name} has no block in it"),
                    });
                };
                param.value = Value::Block(found);
            }
            if let Value::Block(inner) = &param.value {
                let inner = self.expanded(inner.clone(), depth + 1)?;
                param.value = Value::Block(inner);
            }
        }
        Ok(block)
    }

    fn block_of(&self, instance: &str) -> Option<&Block> {
        let name = self.instances.get(instance)?;
        self.blocks.iter().find(|block| block.name == *name)
    }

    /// The disk of the run, and the instances above it, nearest first.
    fn disk(&self, file: &str) -> Result<(Block, Vec<String>), ImportError> {
        let mut above = Vec::new();
        for tree in &self.topology {
            if let Some(path) = self.find_disk(tree, &mut above) {
                let (disk, above) = path;
                return Ok((disk.clone(), above));
            }
        }
        let mut disks = self
            .blocks
            .iter()
            .filter(|block| block.kind == "disksim_disk");
        match (disks.next(), disks.next()) {
            (Some(disk), None) => Ok((disk.clone(), Vec::new())),
            (Some(_), Some(second)) => Err(ImportError::Parameter {
                file: second.file.to_string(),
                line: second.line,
                key: second.name.clone(),
                message: "a second disk, and no topology says which one is meant".to_string(),
            }),
            (None, _) => {
                // Say what is there instead, if it is a device of another kind.
                const OTHERS: [&str; 4] = [
                    "disksim_simpledisk",
                    "memsmodel_mems",
                    "ssdmodel_ssd",
                    "dm_disk",
                ];
                let other = self
                    .blocks
                    .iter()
                    .find(|block| OTHERS.contains(&block.kind.as_str()));
                let (file, line, message) = match other {
                    Some(block) => (
                        block.file.to_string(),
                        block.line,
                        format!(
                            "{} {} is not supported; only a disksim_disk is",
                            block.kind, block.name
                        ),
                    ),
                    None => (
                        file.to_string(),
                        1,
                        "there is no disksim_disk block".to_string(),
                    ),
                };
                Err(ImportError::Parameter {
                    file,
                    line,
                    key: "disksim_disk".to_string(),
                    message,
                })
            }
        }
    }

    /// Goes down a tree to the first disk.
    fn find_disk<'t>(
        &'t self,
        tree: &'t Tree,
        above: &mut Vec<String>,
    ) -> Option<(&'t Block, Vec<String>)> {
        if let Some(block) = self.block_of(&tree.instance)
            && block.kind == "disksim_disk"
        {
            return Some((block, above.iter().rev().cloned().collect()));
        }
        above.push(tree.instance.clone());
        let found = tree
            .below
            .iter()
            .find_map(|tree| self.find_disk(tree, above));
        above.pop();
        found
    }

    /// What the buses and controllers between disk and host add up to: as data pass through all of
    /// them at once, the slowest counts.
    fn bus(&mut self, path: &[String]) -> Result<BusSpec, ImportError> {
        let mut spec = BusSpec::default();
        let (mut buses, mut notes) = (0, Vec::new());
        for instance in path {
            let Some(block) = self.block_of(instance) else {
                continue;
            };
            let fields = Fields::new(block);
            match block.kind.as_str() {
                "disksim_bus" => {
                    fields.integer("type", 1, 2)?;
                    fields.ignore(&["Arbitration type", "Print stats"]);
                    let arbitration = fields.required_millis("Arbitration time")?;
                    if buses == 0 {
                        spec.arbitration = arbitration;
                    }
                    let read = fields.required_millis("Read block transfer time")?;
                    let write = fields.required_millis("Write block transfer time")?;
                    spec.read_sector = spec.read_sector.max(read);
                    spec.write_sector = spec.write_sector.max(write);
                    buses += 1;
                    fields.finish()?;
                }
                "disksim_ctlr" => {
                    let bulk = fields.required_millis("Bulk sector transfer time")?;
                    spec.read_sector = spec.read_sector.max(bulk);
                    spec.write_sector = spec.write_sector.max(bulk);
                    if fields.integer("type", 1, 3)? != 1 {
                        notes.push(format!(
                            "{}:{}: the cache and the delays of controller {} are not part of the \
                             drive and were left out",
                            block.file, block.line, block.name
                        ));
                    }
                }
                _ => {}
            }
        }
        self.notes.append(&mut notes);
        if buses == 0 {
            self.notes
                .push("no bus: sectors take only the drive's own transfer time".to_string());
        }
        Ok(spec)
    }

    fn spec(&mut self, file: &str, disk: &Block, mut bus: BusSpec) -> Result<Spec, ImportError> {
        let fields = Fields::new(disk);
        fields.ignore(&[
            "Print stats",
            "Avg sectors per cylinder",
            "Calc sector by sector",
        ]);
        let model = Fields::new(fields.block("Model")?);
        if model.block.kind != "dm_disk" {
            let kind = &model.block.kind;
            return Err(fields.error("Model", format!("{kind} is not supported; only dm_disk is")));
        }
        let heads = model.integer("Number of data surfaces", 1, 255)? as u16;
        let mut cylinders = model.count("Number of cylinders", 1, 1 << 24)?;
        let block_count = model.integer("Block count", 1, 1 << 40)? as u64;
        let layout = self.layout(model.block("Layout Model")?, heads)?;
        let (rotation, seek) = self.mechanics(model.block("Mechanical Model")?)?;
        model.finish()?;
        if let Some(last) = layout.zones.last()
            && last.last_cylinder >= cylinders
        {
            self.notes.push(format!(
                "{}: `Number of cylinders` is {cylinders}, but zones reach cylinder {}",
                model.block.file, last.last_cylinder
            ));
            cylinders = last.last_cylinder + 1;
        }
        bus.interface_sector = fields.required_millis("Bulk sector transfer time")?;
        bus.hold_for_read = fields.flag("Hold bus entire read xfer")?;
        bus.hold_for_write = fields.flag("Hold bus entire write xfer")?;
        bus.never_disconnect = fields.flag("Never disconnect")?;
        let mut spec = Spec {
            name: slug(file),
            model: disk.name.clone(),
            provenance: Provenance {
                text: format!("Imported from the DiskSim parameter file {file}."),
                trust: Vec::new(),
            },
            geometry: Geometry {
                capacity: Sectors::ZERO,
                cylinders,
                heads,
                sector_bytes: 512,
                physical_sector_bytes: 512,
            },
            rotation,
            layout,
            seek,
            access: AccessSpec {
                zero_latency_read: fields.integer("Immediate buffer read", 0, 2)? != 0,
                zero_latency_write: fields.integer("Immediate buffer write", 0, 2)? != 0,
            },
            cache: cache(&fields)?,
            overhead: overhead(&fields)?,
            bus,
            queue: self.queue(&fields)?,
            noise: NoiseSpec::default(),
        };
        fields.finish()?;
        fit(&mut spec, &mut self.notes);
        let zones = &spec.layout.zones;
        let room: u64 = zones
            .iter()
            .map(|zone| Layout::zone_capacity(&spec, zone))
            .sum();
        if block_count > room {
            self.notes.push(format!(
                "{}: `Block count` is {block_count}, but the zones have room for {room} blocks, \
                 which is taken as the capacity",
                model.block.file
            ));
        }
        // DiskSim itself goes by the room, which is more than the drive had on most of its files.
        spec.geometry.capacity = Sectors::new(block_count.min(room));
        Ok(spec)
    }

    fn layout(&mut self, block: &Block, heads: u16) -> Result<LayoutSpec, ImportError> {
        let fields = Fields::new(block);
        if block.kind != "dm_layout_g1" {
            let message = "not supported; only dm_layout_g1 is";
            return Err(fields.error(&block.kind, message));
        }
        let order = match fields.integer("LBN-to-PBN mapping scheme", 0, 2)? {
            0 => Order::CylinderFirst,
            1 => Order::Serpentine,
            scheme => {
                let message = format!("{scheme} is not supported; supported are 0 and 1");
                return Err(fields.error("LBN-to-PBN mapping scheme", message));
            }
        };
        let range = fields.count("Rangesize for sparing", 1, 1 << 24)?;
        let sparing = match fields.integer("Sparing scheme used", 0, 10)? {
            1 => Sparing::TracksAtZoneEnd,
            3 => Sparing::TrackEnd,
            7 => Sparing::DiskEnd,
            8 => Sparing::RangeEnd { cylinders: range },
            9 => Sparing::ZoneEnd,
            scheme => {
                let message = format!("{scheme} is not supported; supported are 1, 3, 7, 8 and 9");
                return Err(fields.error("Sparing scheme used", message));
            }
        };
        let turns = skew_units(&fields)?.unwrap_or(false);
        let mut zones = Vec::new();
        for (line, item) in fields.required_list("Zones")? {
            let Value::Block(block) = item else {
                return Err(ImportError::Parameter {
                    file: block.file.to_string(),
                    line: *line,
                    key: "Zones".to_string(),
                    message: "each item should be a dm_layout_g1_zone block".to_string(),
                });
            };
            zones.push(self.zone(block, heads, sparing, turns)?);
        }
        fields.finish()?;
        Ok(LayoutSpec {
            order,
            sparing,
            slips_use_spares: true,
            zones,
        })
    }

    fn zone(
        &mut self,
        block: &Block,
        heads: u16,
        sparing: Sparing,
        turns: bool,
    ) -> Result<Zone, ImportError> {
        let fields = Fields::new(block);
        if block.kind != "dm_layout_g1_zone" {
            let message = "not supported; only dm_layout_g1_zone is";
            return Err(fields.error(&block.kind, message));
        }
        let first_cylinder = fields.count("First cylinder number", 0, (1 << 24) - 1)?;
        let last_cylinder = fields.count("Last cylinder number", first_cylinder, (1 << 24) - 1)?;
        let sectors_per_track = fields.count("Blocks per track", 1, 65_535)?;
        let turns = skew_units(&fields)?.unwrap_or(turns);
        let skew = |key| {
            if turns {
                // Whole turns do nothing.
                let turns = fields.number(key, 0.0, 65_535.0)?.unwrap_or(0.0);
                Ok(Skew::Turns(turns - libm::floor(turns)))
            } else {
                // As in DiskSim, parts of a sector do not count.
                let sectors = fields.number(key, 0.0, 65_535.0)?.unwrap_or(0.0);
                Ok(Skew::Sectors(sectors as u32))
            }
        };
        let places = i64::from(last_cylinder - first_cylinder + 1)
            * i64::from(heads)
            * i64::from(sectors_per_track);
        let mut spares = fields.integer("Number of spares", 0, places)? as u64;
        if sparing == Sparing::DiskEnd && spares != 0 {
            self.notes.push(format!(
                "{}:{}: sparing scheme 7 keeps spares at the end of the disk; `Number of spares` \
                 of a zone was left out",
                block.file, block.line
            ));
            spares = 0;
        }
        let mut slips = fields.places("slips", fields.required_list("slips")?)?;
        slips.sort_unstable();
        slips.dedup();
        let defects = fields.places("defects", fields.required_list("defects")?)?;
        if !defects.len().is_multiple_of(2) {
            let message = "an odd number of places; they are pairs of from and to";
            return Err(fields.error("defects", message));
        }
        let mut remaps: Vec<(u64, u64)> = defects
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            // A place that was moved to itself was not moved.
            .filter(|(from, to)| from != to)
            .collect();
        remaps.sort_unstable();
        let zone = Zone {
            first_cylinder,
            last_cylinder,
            sectors_per_track,
            offset: skew("Offset of first block")?,
            track_skew: skew("Skew for track switch")?,
            cylinder_skew: skew("Skew for cylinder switch")?,
            group_skew: None,
            reserved: fields.integer("Empty space at zone front", 0, places)? as u64,
            spares,
            slips,
            remaps,
        };
        fields.finish()?;
        Ok(zone)
    }

    fn mechanics(&mut self, block: &Block) -> Result<(Rotation, SeekSpec), ImportError> {
        let fields = Fields::new(block);
        if block.kind != "dm_mech_g1" {
            let message = "not supported; only dm_mech_g1 is";
            return Err(fields.error(&block.kind, message));
        }
        let access = fields.required_text("Access time type")?;
        if access != "trackSwitchPlusRotation" {
            let message = format!("{access} is not supported; only trackSwitchPlusRotation is");
            return Err(fields.error("Access time type", message));
        }
        // Given for every kind of seek, and used by one.
        fields.ignore(&[
            "Constant access time",
            "Average seek time",
            "Constant seek time",
            "Single cylinder seek time",
            "Full strobe seek time",
            "Full seek curve",
            "First ten seek times",
            "HPL seek equation values",
        ]);
        let three = || -> Result<(Nanos, Nanos, Nanos), ImportError> {
            Ok((
                fields.required_millis("Single cylinder seek time")?,
                fields.required_millis("Average seek time")?,
                fields.required_millis("Full strobe seek time")?,
            ))
        };
        let read = match fields.required_text("Seek type")? {
            "extracted" => self.extracted(&fields)?,
            "hpl" => hpl(&fields, false)?,
            "hplplus10" => hpl(&fields, true)?,
            "curve" => {
                let (single, average, full) = three()?;
                SeekCurve::Curve {
                    single,
                    average,
                    full,
                }
            }
            "linear" => {
                let (single, average, full) = three()?;
                SeekCurve::Linear {
                    single,
                    average,
                    full,
                }
            }
            "constant" => SeekCurve::Constant(fields.required_millis("Constant seek time")?),
            other => {
                let message = format!(
                    "{other} is not supported; supported are extracted, hpl, hplplus10, curve, \
                     linear and constant"
                );
                return Err(fields.error("Seek type", message));
            }
        };
        let rpm = fields.integer("Rotation speed (in rpms)", 60, 60_000)?;
        let spread = fields.required_number("Percent error in rpms", 0.0, 100.0)?;
        if spread > 0.0 {
            self.notes.push(format!(
                "{}: `Percent error in rpms` is {spread}; the drive turns at its nominal speed, as \
                 in DiskSim (noise.speed_ppm varies it)",
                block.file
            ));
        }
        let seek = SeekSpec {
            read,
            write: None,
            head_switch: fields.required_millis("Head switch time")?,
            write_settle: fields.required_signed_millis("Add. write settling delay")?,
        };
        fields.finish()?;
        Ok((Rotation { rpm: rpm as f64 }, seek))
    }

    /// A table of distances and times in a file of its own.
    fn extracted(&mut self, fields: &Fields) -> Result<SeekCurve, ImportError> {
        let name = fields.required_text("Full seek curve")?;
        let line = fields
            .param("Full seek curve")
            .map_or(0, |param| param.line);
        let text = self.read(name, &fields.block.file, line)?;
        let mut points: Vec<(u32, Nanos)> = Vec::new();
        let mut announced = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let error = |message: String| ImportError::Syntax {
                file: name.to_string(),
                line: index + 1,
                message,
            };
            if let Some(count) = line.strip_prefix("Seek distances measured:") {
                let count = count.trim().parse::<usize>();
                announced = Some(count.map_err(|_| {
                    error(format!("`{line}` should end in the number of distances"))
                })?);
                continue;
            }
            let mut parts = line.split(',').map(str::trim);
            let distance = parts.next().and_then(|text| text.parse::<u32>().ok());
            let time = parts.next().and_then(|text| text.parse::<f64>().ok());
            let (Some(distance), Some(time)) = (distance, time) else {
                return Err(error(format!(
                    "`{line}` should be `cylinders, milliseconds`"
                )));
            };
            if !(0.0..=4000.0).contains(&time) {
                return Err(error(format!(
                    "{time} ms is not allowed; allowed is 0 to 4000"
                )));
            }
            if distance == 0 {
                self.notes
                    .push(format!("{name}:{}: a seek over no cylinders", index + 1));
                continue;
            }
            match points.last() {
                Some(&(last, _)) if last >= distance => {
                    return Err(error(format!(
                        "distance {distance} after {last}; distances go up, each once"
                    )));
                }
                _ => points.push((distance, Nanos::from_millis_f64(time))),
            }
        }
        if points.is_empty() {
            return Err(ImportError::Syntax {
                file: name.to_string(),
                line: 1,
                message: "there are no seek times in it".to_string(),
            });
        }
        if let Some(announced) = announced.filter(|&announced| announced != points.len()) {
            self.notes.push(format!(
                "{name}: has {} distances, but announces {announced}; is it complete?",
                points.len()
            ));
        }
        Ok(SeekCurve::Table {
            points,
            interpolation: Interpolation::Linear,
        })
    }

    fn queue(&mut self, fields: &Fields) -> Result<QueueSpec, ImportError> {
        let depth = match fields.count("Max queue length", 0, u32::MAX)? {
            depth @ 1..=256 => depth,
            length => {
                self.notes
                    .push(format!("`Max queue length` is {length}; taken as 256"));
                256
            }
        };
        let scheduler = Fields::new(fields.block("Scheduler")?);
        // With one command at a time there is nothing to choose.
        let policy = match scheduler.integer("Scheduling policy", 1, 64)? {
            _ if depth == 1 => FirmwarePolicy::Fifo,
            1 => FirmwarePolicy::Fifo,
            // The positioning-time algorithms of the manual's table, aged or not.
            policy @ 8..=16 => {
                if policy != 8 {
                    self.notes
                        .push(format!("`Scheduling policy` {policy}: taken as plain SPTF"));
                }
                FirmwarePolicy::Sptf {
                    margin: Nanos::ZERO,
                    age_cap: None,
                }
            }
            other => {
                let message = format!("{other} is not supported; supported are 1 and 8 to 16");
                return Err(scheduler.error("Scheduling policy", message));
            }
        };
        let preseek = match fields.integer("Preseeking level", 0, 2)? {
            0 => Preseek::Off,
            1 => Preseek::AtCompletion,
            _ => Preseek::AtMediaEnd,
        };
        Ok(QueueSpec {
            depth,
            policy,
            preseek,
            stream_cap: QueueSpec::STREAM_CAP,
        })
    }
}
