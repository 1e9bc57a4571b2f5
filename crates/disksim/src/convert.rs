//! Converts parameters to a profile.

use crate::error::ImportError;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::fit::{fit, fit_cache};
use crate::mechanism::mechanics;
use crate::parts::{cache, overhead};
use crate::run::Run;
use crate::syntax::{Block, Tree};
use crate::{extents, tracks, zones};
use headtime_disk::layout::{Layout, fitted};
use headtime_disk::profile::{
    AccessSpec, BusSpec, FirmwarePolicy, Geometry, LayoutSpec, NoiseSpec, Preseek, Profile,
    QueueSpec, Sparing, Spec,
};
use headtime_units::{Nanos, Sectors};
use std::path::Path;

/// The choice of a drive among several in the files, and its block size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name of the drive: of an instance in the topology, or of a `disksim_disk` block. Needed where there are
    /// several drives that differ.
    pub drive: Option<String>,
    /// Bytes of a block: 256, 512 or 4096. Parameter files count blocks without a size. Each block becomes one sector of
    /// this size, and times for each block stay.
    pub block_bytes: u32,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            drive: None,
            block_bytes: 512,
        }
    }
}

/// A drive read from parameter files.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The drive. The file's name gives the drive's name, and the disk's name gives the model.
    pub profile: Profile,
    /// Notes for people on parameters that the profile has in another form or not at all.
    pub notes: Vec<String>,
    /// Warnings for people on contradictions in the files, each with the side that the importer believes.
    pub warnings: Vec<String>,
}

pub(crate) fn import(
    file: &str,
    text: &str,
    choice: &Choice,
    mut beside: impl FnMut(&str) -> std::io::Result<String>,
) -> Result<Import, ImportError> {
    let mut run = Run::new(&mut beside);
    run.load(file, text)?;
    let (disk, path) = run.disk(file, choice.drive.as_deref())?;
    let disk = run.expanded(disk)?;
    let bus = run.bus(&path)?;
    let mut spec = run.spec(file, &disk, bus)?;
    if let Some(drive) = &choice.drive {
        spec.name = format!("{}-{}", spec.name, slug(drive));
    }
    spec.geometry.sector_bytes = choice.block_bytes;
    spec.geometry.physical_sector_bytes = choice.block_bytes;
    let model = Fields::new(&disk).block("Model")?.file.to_string();
    let profile = spec.check().map_err(|source| ImportError::Profile {
        file: model,
        source: Box::new(source),
    })?;
    Ok(Import {
        profile,
        notes: run.found.notes,
        warnings: run.found.warnings,
    })
}

/// A name for the profile: the file's without its ending.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    slug(&stem.to_string_lossy())
}

/// A name in the letters that one may have.
fn slug(name: &str) -> String {
    let letters = name.chars().map(|c| {
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

/// A layout as a file has it.
struct Laid {
    layout: LayoutSpec,
    /// Cylinders that it reaches.
    cylinders: u32,
    /// Addresses that it has room for; for zones, that depends on the rest of the drive.
    room: Option<u64>,
}

/// A disk of a run: its name, its block, and the instances above it, nearest first.
type FoundDisk<'r> = (&'r str, &'r Block, Vec<String>);

impl Run<'_> {
    fn block_of(&self, instance: &str) -> Option<&Block> {
        let name = self.instances.get(instance)?;
        self.blocks.iter().find(|block| block.name == *name)
    }

    /// The chosen disk of the run, and the instances above it, nearest first.
    fn disk(&self, file: &str, wanted: Option<&str>) -> Result<(Block, Vec<String>), ImportError> {
        let mut disks = Vec::new();
        for tree in &self.topology {
            self.find_disks(tree, &mut Vec::new(), &mut disks);
        }
        // A block outside of the topology is taken only if its name is asked for, or if there is no other disk.
        let is_meant = wanted.is_some() || disks.is_empty();
        for block in &self.blocks {
            let is_known = disks.iter().any(|(_, known, _)| known.name == block.name);
            if block.kind == "disksim_disk" && is_meant && !is_known {
                disks.push((block.name.as_str(), block, Vec::new()));
            }
        }
        let error = |file: &str, line: usize, message: String| ImportError::Parameter {
            file: file.to_string(),
            line,
            key: "disksim_disk".to_string(),
            message,
        };
        let (Some((_, first, _)), Some((_, last, _))) = (disks.first(), disks.last()) else {
            const OTHERS: &str = "disksim_simpledisk memsmodel_mems ssdmodel_ssd dm_disk";
            let is_other = |block: &&Block| OTHERS.split(' ').any(|kind| kind == block.kind);
            return Err(match self.blocks.iter().find(is_other) {
                Some(Block {
                    kind,
                    name,
                    file,
                    line,
                    ..
                }) => {
                    let problem = "is not supported; only a disksim_disk is";
                    error(file, *line, format!("{kind} {name} {problem}"))
                }
                None => error(file, 1, "there is no disksim_disk block".to_string()),
            });
        };
        let mut all = disks.iter();
        let found = match wanted {
            None => (all.all(|(_, block, _)| block.name == first.name)).then(|| &disks[0]),
            Some(wanted) => (all.find(|(name, ..)| *name == wanted))
                .or_else(|| disks.iter().find(|(_, block, _)| block.name == wanted)),
        };
        if let Some((_, block, above)) = found {
            return Ok(((*block).clone(), above.clone()));
        }
        let names = disks
            .iter()
            .map(|(name, block, _)| match *name == block.name {
                true => (*name).to_string(),
                false => format!("{name} ({})", block.name),
            });
        let names: Vec<String> = names.collect();
        let what = match wanted {
            Some(wanted) => format!("no drive is called {wanted}"),
            None => "several drives that differ; say which with --drive NAME, or as FILE#NAME \
                     where a drive is named"
                .to_string(),
        };
        let message = format!("{what}; there are {}", names.join(", "));
        Err(error(&last.file, last.line, message))
    }

    /// Goes down a tree to all disks.
    fn find_disks<'t>(
        &'t self,
        tree: &'t Tree,
        above: &mut Vec<String>,
        disks: &mut Vec<FoundDisk<'t>>,
    ) {
        match self.block_of(&tree.instance) {
            Some(block) if block.kind == "disksim_disk" => {
                let above = above.iter().rev().cloned().collect();
                disks.push((&tree.instance, block, above));
            }
            _ => {
                above.push(tree.instance.clone());
                for tree in &tree.below {
                    self.find_disks(tree, above, disks);
                }
                above.pop();
            }
        }
    }

    /// Sums up the buses and controllers between disk and host. Data pass through all of them at once, so the slowest
    /// counts.
    fn bus(&mut self, path: &[String]) -> Result<BusSpec, ImportError> {
        let mut spec = BusSpec::default();
        let (mut buses, mut found) = (0, Findings::default());
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
                    fields.finish(&mut found)?;
                }
                "disksim_ctlr" => {
                    let bulk = fields.measured_millis("Bulk sector transfer time", &mut found)?;
                    let bulk = Nanos::from_millis_f64(bulk);
                    spec.read_sector = spec.read_sector.max(bulk);
                    spec.write_sector = spec.write_sector.max(bulk);
                    if fields.integer("type", 1, 3)? != 1 {
                        found.note(format!(
                            "{}:{}: the cache and the delays of controller {} are not part of the \
                             drive and were left out",
                            block.file, block.line, block.name
                        ));
                    }
                }
                _ => {}
            }
        }
        self.found.notes.append(&mut found.notes);
        if buses == 0 {
            self.found
                .note("no bus: sectors take only the drive's own transfer time");
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
        let block_count = model.integer("Block count", 0, 1 << 40)? as u64;
        let laid = self.layout(model.block("Layout Model")?, heads, block_count)?;
        let (rotation, seek) = mechanics(self, model.block("Mechanical Model")?)?;
        model.finish(&mut self.found)?;
        if laid.cylinders > cylinders {
            self.found.warn(format!(
                "{} is {cylinders}, but the layout reaches cylinder {}, which is believed",
                model.place("Number of cylinders"),
                laid.cylinders - 1
            ));
            cylinders = laid.cylinders;
        }
        let interface = fields.measured_millis("Bulk sector transfer time", &mut self.found)?;
        bus.interface_sector = Nanos::from_millis_f64(interface);
        bus.hold_for_read = fields.flag("Hold bus entire read xfer")?;
        bus.hold_for_write = fields.flag("Hold bus entire write xfer")?;
        bus.never_disconnect = fields.flag("Never disconnect")?;
        let mut spec = Spec {
            name: stem(file),
            model: disk.name.clone(),
            provenance: format!("Imported from the DiskSim parameter file {file}."),
            trust: Vec::new(),
            geometry: Geometry {
                capacity: Sectors::ZERO,
                cylinders,
                heads,
                sector_bytes: 512,
                physical_sector_bytes: 512,
            },
            rotation,
            layout: laid.layout,
            seek,
            access: AccessSpec {
                zero_latency_read: fields.integer("Immediate buffer read", 0, 2)? != 0,
                zero_latency_write: fields.integer("Immediate buffer write", 0, 2)? != 0,
                ..AccessSpec::default()
            },
            cache: cache(&fields, &mut self.found)?,
            overhead: overhead(&fields, &mut self.found)?,
            bus,
            queue: self.queue(&fields)?,
            noise: NoiseSpec::default(),
        };
        fields.finish(&mut self.found)?;
        fit(&mut spec, &mut self.found);
        let zones = spec.layout.zones.iter();
        let in_zones = zones.map(|zone| Layout::zone_capacity(&spec, zone));
        let room = laid.room.unwrap_or_else(|| in_zones.sum());
        let capacity = self.capacity(&model, block_count, room, &spec.layout);
        spec.geometry.capacity = Sectors::new(capacity);
        fit_cache(&mut spec, &mut self.found);
        Ok(spec)
    }

    fn layout(&mut self, block: &Block, heads: u16, offered: u64) -> Result<Laid, ImportError> {
        let layout = match block.kind.as_str() {
            "dm_layout_g1" => zones::layout(block, heads, &mut self.found)?,
            "dm_layout_g2" => extents::layout(self, block)?,
            "dm_layout_g4" => tracks::layout(block, &mut self.found)?,
            kind => {
                let message = "not supported; dm_layout_g1, dm_layout_g2 and dm_layout_g4 are";
                return Err(Fields::new(block).error(kind, message));
            }
        };
        let Some(map) = &layout.map else {
            return Ok(Laid {
                cylinders: layout.zones.last().map_or(0, |zone| zone.last_cylinder + 1),
                room: None,
                layout,
            });
        };
        let fitted = fitted(map, heads, offered).map_err(|source| ImportError::Profile {
            file: block.file.to_string(),
            source: Box::new(source),
        })?;
        for (left_out, what) in [(fitted.slips, "slips"), (fitted.remaps, "remaps")] {
            if left_out > 0 {
                self.found.note(format!(
                    "{}: {left_out} {what} of the layout do not fit and were left out",
                    block.file
                ));
            }
        }
        Ok(Laid {
            layout: LayoutSpec::mapped(fitted.map),
            cylinders: fitted.cylinders,
            room: Some(fitted.room),
        })
    }

    /// Returns the lesser of the block count and the layout's room. DiskSim itself uses the room, which is more than
    /// the drive had on most of its files.
    fn capacity(
        &mut self,
        model: &Fields,
        block_count: u64,
        room: u64,
        layout: &LayoutSpec,
    ) -> u64 {
        let place = model.place("Block count");
        if block_count == 0 || block_count > room {
            self.found.warn(format!(
                "{place} is {block_count}, but the layout has room for {room} blocks; the layout is \
                 believed"
            ));
            return room;
        }
        if block_count < room {
            let unused = room - block_count;
            let why = if layout.map.is_some() {
                ""
            } else if layout.sparing == Sparing::DiskEnd || !layout.slips_use_spares {
                ", as spares at the end of the disk"
            } else {
                ""
            };
            self.found.warn(format!(
                "{place} is {block_count}, but the layout has room for {room} blocks; the block count \
                 is believed, and the last {unused} blocks stay unused{why}"
            ));
        }
        block_count
    }

    fn queue(&mut self, fields: &Fields) -> Result<QueueSpec, ImportError> {
        let depth = match fields.count("Max queue length", 0, u32::MAX)? {
            depth @ 1..=256 => depth,
            length => {
                let place = fields.place("Max queue length");
                self.found
                    .note(format!("{place} is {length}; taken as 256"));
                256
            }
        };
        let scheduler = Fields::new(fields.block("Scheduler")?);
        // With one command at a time there is nothing to choose.
        let policy = match scheduler.integer("Scheduling policy", 1, 64)? {
            _ if depth == 1 => FirmwarePolicy::Fifo,
            1 => FirmwarePolicy::Fifo,
            // The positioning-time algorithms of the manual's table are 8 to 16, aged or not.
            policy => {
                let place = scheduler.place("Scheduling policy");
                if (9..=16).contains(&policy) {
                    self.found
                        .note(format!("{place} is {policy}; taken as plain SPTF"));
                } else if policy != 8 {
                    self.found.note(format!(
                        "{place} is {policy}, for which drives here have no firmware; taken as SPTF"
                    ));
                }
                FirmwarePolicy::Sptf {
                    margin: Nanos::ZERO,
                    age_cap: None,
                }
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
            ..QueueSpec::default()
        })
    }
}
