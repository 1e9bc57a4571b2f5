//! Layouts by zones: `dm_layout_g1`.

use crate::error::ImportError;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::syntax::{Block, Value};
use headtime_disk::profile::{LayoutSpec, Order, Skew, Sparing, Zone};

/// How the parameter of sparing reads in a profile.
struct Scheme {
    number: i64,
    sparing: Sparing,
    slips_use_spares: bool,
}

/// Values of the whole layout that matter to a zone.
struct Context {
    heads: u16,
    scheme: Scheme,
    skews_in_turns: bool,
}

/// Reads a `dm_layout_g1`.
pub(crate) fn layout(
    block: &Block,
    heads: u16,
    found: &mut Findings,
) -> Result<LayoutSpec, ImportError> {
    let fields = Fields::new(block);
    let order = match fields.integer("LBN-to-PBN mapping scheme", 0, 2)? {
        0 => Order::CylinderFirst,
        1 => Order::Serpentine,
        _ => Order::SerpentineThroughout,
    };
    let context = Context {
        heads,
        scheme: scheme(&fields)?,
        skews_in_turns: skew_units(&fields)?.unwrap_or(false),
    };
    let mut zones = Vec::new();
    for entry in fields.required_list("Zones")? {
        let Value::Block(block) = &entry.value else {
            return Err(entry.error("Zones", "each item should be a dm_layout_g1_zone block"));
        };
        zones.push(zone(block, &context, found)?);
    }
    fields.finish(found)?;
    Ok(LayoutSpec {
        order,
        sparing: context.scheme.sparing,
        slips_use_spares: context.scheme.slips_use_spares,
        zones,
        map: None,
    })
}

fn scheme(fields: &Fields) -> Result<Scheme, ImportError> {
    let number = fields.integer("Sparing scheme used", 0, 10)?;
    // Every file gives it, and one scheme means it.
    let range = match number {
        8 => fields.count("Rangesize for sparing", 1, 1 << 24)?,
        _ => {
            fields.ignore(&["Rangesize for sparing"]);
            1
        }
    };
    let (sparing, slips_use_spares) = match number {
        1 => (Sparing::TracksAtZoneEnd, true),
        2 => (Sparing::CylinderEnd, true),
        3 => (Sparing::TrackEnd, true),
        4 => (Sparing::CylinderEnd, false),
        5 => (Sparing::CylinderFront, true),
        6 => (Sparing::CylinderFront, false),
        8 => (Sparing::RangeEnd { cylinders: range }, true),
        9 => (Sparing::ZoneEnd, true),
        10 => (Sparing::ZoneEnd, false),
        // Schemes 7 and 0 have no spares. With them, slips make the zone shorter.
        _ => (Sparing::DiskEnd, true),
    };
    Ok(Scheme {
        number,
        sparing,
        slips_use_spares,
    })
}

/// True if skews are parts of a turn; `None` if the file gives no unit.
pub(crate) fn skew_units(fields: &Fields) -> Result<Option<bool>, ImportError> {
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

/// A skew; none if it is not given. Skews may be negative, and whole turns do nothing.
pub(crate) fn skew(
    fields: &Fields,
    key: &'static str,
    in_turns: bool,
    sectors_per_track: u32,
) -> Result<Skew, ImportError> {
    let number = fields.number(key, -65_535.0, 65_535.0)?.unwrap_or(0.0);
    if in_turns {
        return Ok(Skew::Turns(number - libm::floor(number)));
    }
    // As in DiskSim, parts of a sector do not count.
    let sectors = number as i64;
    let forward = if sectors < 0 {
        sectors.rem_euclid(i64::from(sectors_per_track))
    } else {
        sectors
    };
    Ok(Skew::Sectors(forward as u32))
}

fn zone(block: &Block, context: &Context, found: &mut Findings) -> Result<Zone, ImportError> {
    let fields = Fields::new(block);
    if block.kind != "dm_layout_g1_zone" {
        let message = "is not supported here; only dm_layout_g1_zone is";
        return Err(fields.error(&block.kind, message));
    }
    let first_cylinder = fields.count("First cylinder number", 0, (1 << 24) - 1)?;
    let last_cylinder = fields.count("Last cylinder number", first_cylinder, (1 << 24) - 1)?;
    let sectors_per_track = fields.count("Blocks per track", 1, 65_535)?;
    let in_turns = skew_units(&fields)?.unwrap_or(context.skews_in_turns);
    let skew = |key| skew(&fields, key, in_turns, sectors_per_track);
    let places = i64::from(last_cylinder - first_cylinder + 1)
        * i64::from(context.heads)
        * i64::from(sectors_per_track);
    let mut spares = fields.integer("Number of spares", 0, places)? as u64;
    if context.scheme.sparing == Sparing::DiskEnd && spares != 0 {
        let why = match context.scheme.number {
            0 => "sparing scheme 0 keeps no spares",
            _ => "sparing scheme 7 keeps spares at the end of the disk",
        };
        found.note(format!(
            "{}:{}: {why}; `Number of spares` of a zone was left out",
            block.file, block.line
        ));
        spares = 0;
    }
    let mut slips = fields.places("slips")?;
    slips.sort_unstable();
    slips.dedup();
    let defects = fields.places("defects")?;
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
        by_head: Vec::new(),
        tracks_per_surface: None,
        offset: skew("Offset of first block")?,
        track_skew: skew("Skew for track switch")?,
        cylinder_skew: skew("Skew for cylinder switch")?,
        group_skew: None,
        reserved: fields.integer("Empty space at zone front", 0, places)? as u64,
        spares,
        slips,
        remaps,
    };
    fields.finish(found)?;
    Ok(zone)
}
