//! From parameters to a profile.

use super::fields::Fields;
use super::syntax::{self, Block, Item, Tree, Value};
use super::{Import, ImportError};
use crate::layout::Layout;
use crate::profile::{
    AccessSpec, BusSpec, CacheSpec, EarlyDisconnect, FirmwarePolicy, Geometry, Interpolation,
    LayoutSpec, NoiseSpec, Order, OverheadSpec, Preseek, Provenance, QueueSpec, ReadAhead,
    RequestedData, Rotation, SeekCurve, SeekSpec, Skew, Sparing, Spec, WriteBack, Zone,
};
use headtime_units::{Nanos, Sectors};
use std::collections::BTreeMap;
use std::path::Path;

/// Files may name files that name files; real ones go two deep.
const DEEPEST: usize = 8;

/// What the files of a run say.
struct Run<'a> {
    beside: &'a mut dyn FnMut(&str) -> std::io::Result<String>,
    blocks: Vec<Block>,
    /// The block that an instance is made of, by the name of the instance.
    instances: BTreeMap<String, String>,
    topology: Vec<Tree>,
    notes: Vec<String>,
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
        self.drop_excess_slips(&mut spec);
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

    /// Drops slips that their area has no spares for, and remaps to where there is no spare: DiskSim
    /// computes nonsense for these few sectors, a profile refuses them.
    fn drop_excess_slips(&mut self, spec: &mut Spec) {
        let heads = u64::from(spec.geometry.heads);
        for index in 0..spec.layout.zones.len() {
            let zone = &spec.layout.zones[index];
            let per_track = u64::from(zone.sectors_per_track);
            let tracks = u64::from(zone.cylinders()) * heads;
            let (places, area) = match spec.layout.sparing {
                Sparing::TracksAtZoneEnd => (tracks, tracks),
                Sparing::TrackEnd => (tracks * per_track, per_track),
                Sparing::RangeEnd { cylinders } => {
                    (tracks * per_track, u64::from(cylinders) * heads * per_track)
                }
                Sparing::ZoneEnd => (tracks * per_track, tracks * per_track),
                Sparing::DiskEnd => continue,
            };
            let mut in_area = (0, 0);
            let kept: Vec<u64> = zone
                .slips
                .iter()
                .copied()
                .filter(|slip| {
                    let this = slip / area;
                    in_area = if in_area.0 == this {
                        (this, in_area.1 + 1)
                    } else {
                        (this, 1)
                    };
                    let whole = (this + 1) * area <= places;
                    *slip < places && whole && in_area.1 <= zone.spares
                })
                .collect();
            let dropped = zone.slips.len() - kept.len();
            spec.layout.zones[index].slips = kept;
            if dropped > 0 {
                self.notes.push(format!(
                    "zone {index}: {dropped} slips have no spare to slip into and were left out"
                ));
            }
        }
        // Slips first, since they decide what is spare.
        for index in 0..spec.layout.zones.len() {
            let zone = &spec.layout.zones[index];
            let fits = zone.spares < u64::from(zone.cylinders()) * heads
                || spec.layout.sparing != Sparing::TracksAtZoneEnd;
            let roomy = zone.spares < u64::from(zone.sectors_per_track)
                || spec.layout.sparing != Sparing::TrackEnd;
            if zone.remaps.is_empty() || !fits || !roomy {
                // The check of the profile will say what is wrong.
                continue;
            }
            let places = u64::from(zone.cylinders())
                * heads
                * if spec.layout.sparing == Sparing::TracksAtZoneEnd {
                    1
                } else {
                    u64::from(zone.sectors_per_track)
                };
            let mut taken = Vec::new();
            let mut last = None;
            let kept: Vec<(u64, u64)> = zone
                .remaps
                .iter()
                .copied()
                .filter(|&(from, to)| {
                    let fits = from < places
                        && to < places
                        && last != Some(from)
                        && !taken.contains(&to)
                        && zone.slips.binary_search(&from).is_err()
                        && Layout::zone_slot_is_spare(spec, zone, to);
                    if fits {
                        taken.push(to);
                        last = Some(from);
                    }
                    fits
                })
                .collect();
            let dropped = zone.remaps.len() - kept.len();
            spec.layout.zones[index].remaps = kept;
            if dropped > 0 {
                self.notes.push(format!(
                    "zone {index}: {dropped} defects are not moved to a spare place and were left \
                     out"
                ));
            }
        }
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
            write_settle: fields.required_millis("Add. write settling delay")?,
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
        })
    }
}

/// Whether skews are parts of a turn; `None` if it is not said.
fn skew_units(fields: &Fields) -> Result<Option<bool>, ImportError> {
    match fields.text("Skew units")? {
        None => Ok(None),
        Some("revolutions") => Ok(Some(true)),
        Some("sectors") => Ok(Some(false)),
        Some(other) => {
            let message = format!("{other} is not allowed; allowed are sectors and revolutions");
            Err(fields.error("Skew units", message))
        }
    }
}

fn hpl(fields: &Fields, first_ten: bool) -> Result<SeekCurve, ImportError> {
    let key = "HPL seek equation values";
    // The last one may be -1, which stands for none.
    let values = fields.numbers(key, fields.required_list(key)?, -1.0)?;
    let &[
        split,
        root_base,
        root_factor,
        line_base,
        line_factor,
        single,
    ] = values.as_slice()
    else {
        let message = format!("{} values; there are six", values.len());
        return Err(fields.error(key, message));
    };
    if values[..5].iter().any(|&value| value < 0.0) {
        return Err(fields.error(key, "only the last value may be negative"));
    }
    if split > f64::from(1 << 24) || values[1..].iter().any(|&value| value > 4000.0) {
        return Err(fields.error(
            key,
            "cylinders up to 2^24 and milliseconds up to 4000 are allowed",
        ));
    }
    let first = if first_ten {
        let key = "First ten seek times";
        let times = fields.numbers(key, fields.required_list(key)?, 0.0)?;
        if times.len() != 10 || times.iter().any(|&time| time > 4000.0) {
            return Err(fields.error(key, "should be ten times of up to 4000 ms"));
        }
        times.into_iter().map(Nanos::from_millis_f64).collect()
    } else if single >= 0.0 {
        vec![Nanos::from_millis_f64(single)]
    } else {
        Vec::new()
    };
    Ok(SeekCurve::Hpl {
        split: split as u32,
        root_base: Nanos::from_millis_f64(root_base),
        root_factor: Nanos::from_millis_f64(root_factor),
        line_base: Nanos::from_millis_f64(line_base),
        line_factor: Nanos::from_millis_f64(line_factor),
        first,
    })
}

fn cache(fields: &Fields) -> Result<CacheSpec, ImportError> {
    let segments = fields.count("Number of buffer segments", 1, 65_535)?;
    let segment_sectors = fields.count("Segment size (in blks)", 1, u32::MAX)?;
    let read_ahead = match fields.integer("Buffer continuous read", 0, 4)? {
        0 => ReadAhead::Off,
        1 => ReadAhead::TrackEnd,
        2 => ReadAhead::CylinderEnd,
        3 => ReadAhead::SegmentFull,
        _ => ReadAhead::NextTrack,
    };
    let min = fields.count("Minimum read-ahead (blks)", 0, segment_sectors)?;
    let max = fields.count("Maximum read-ahead (blks)", 0, segment_sectors)?;
    let off = read_ahead == ReadAhead::Off;
    Ok(CacheSpec {
        enabled: fields.integer("Enable caching in buffer", 0, 2)? != 0,
        segments,
        segment_sectors,
        write_segments: fields.count("Maximum number of write segments", 1, segments)?,
        dedicated_write_segment: fields.flag("Use separate write segment")?,
        read_ahead,
        read_ahead_min: if off { 0 } else { min },
        read_ahead_max: if off { 0 } else { max.max(min) },
        requested_data: match fields.integer("Read-ahead over requested", -1, 1)? {
            -1 => RequestedData::Dropped,
            0 => RequestedData::Kept,
            _ => RequestedData::Replaceable,
        },
        read_ahead_on_idle_hit: fields.flag("Read-ahead on idle hit")?,
        read_free_sectors: fields.flag("Read any free blocks")?,
        almost_read_hits: fields.flag("Allow almost read hits")?,
        sneaky_full_read_hits: fields.flag("Allow sneaky full read hits")?,
        sneaky_partial_read_hits: fields.flag("Allow sneaky partial read hits")?,
        sneaky_intermediate_read_hits: fields.flag("Allow sneaky intermediate read hits")?,
        read_hits_on_write_data: fields.flag("Allow read hits on write data")?,
        write_prebuffering: fields.flag("Allow write prebuffering")?,
        write_back: match fields.integer("Fast write level", 0, 2)? {
            0 => WriteBack::Off,
            1 => WriteBack::Appending,
            _ => WriteBack::Flushed,
        },
        destage_delay: Nanos::ZERO,
        combine_sequential_writes: fields.flag("Combine seq writes")?,
        stop_read_ahead_in_sector: fields.flag("Stop prefetch in sector")?,
        disconnect_write_in_seek: fields.flag("Disconnect write if seek")?,
        write_hit_stops_read_ahead: fields.flag("Write hit stop prefetch")?,
        read_direct_to_buffer: fields.flag("Read directly to buffer")?,
        send_partial_hit_at_once: fields.flag("Immed transfer partial hit")?,
        write_low_water: fields.required_number("Low (write) water mark", 0.0, 1.0)?,
        read_high_water: fields.required_number("High (read) water mark", 0.0, 1.0)?,
        water_by_request: fields.flag("Set watermark by reqsize")?,
    })
}

fn overhead(fields: &Fields) -> Result<OverheadSpec, ImportError> {
    let scale = fields.required_number("Time scale for overheads", 0.0, 1000.0)?;
    let time = |key| {
        let millis = fields.required_number(key, 0.0, 4000.0)?;
        Ok::<_, ImportError>(Nanos::from_millis_f64(millis * scale))
    };
    let early = EarlyDisconnect {
        command: time("Extradisc command overhead")?,
        first_disconnect: time("Extradisc disconnect overhead")?,
        between: time("Extradisc inter-disconnect delay")?,
        second_disconnect: time("Extradisc 2nd disconnect overhead")?,
        seek_delay: time("Extradisc seek delta")?,
    };
    Ok(OverheadSpec {
        per_command: time("Per-request overhead time")?,
        read_hit_after_read: time("Read hit over. after read")?,
        read_hit_after_write: time("Read hit over. after write")?,
        read_miss_after_read: time("Read miss over. after read")?,
        read_miss_after_write: time("Read miss over. after write")?,
        write_hit_after_read: time("Write hit over. after read")?,
        write_hit_after_write: time("Write hit over. after write")?,
        write_miss_after_read: time("Write miss over. after read")?,
        write_miss_after_write: time("Write miss over. after write")?,
        read_completion: time("Read completion overhead")?,
        write_completion: time("Write completion overhead")?,
        data_preparation: time("Data preparation overhead")?,
        first_reselect: time("First reselect overhead")?,
        other_reselect: time("Other reselect overhead")?,
        read_disconnect_after_read: time("Read disconnect afterread")?,
        read_disconnect_after_write: time("Read disconnect afterwrite")?,
        write_disconnect: time("Write disconnect overhead")?,
        minimum_seek_delay: time("Minimum seek delay")?,
        early_write_disconnect: fields.flag("Extra write disconnect")?.then_some(early),
    })
}
