//! From text to a profile.

use super::table::{Node, Source, Table};
use super::words::{
    CURVE, CurveWord, DESTAGE, INTERPOLATION, ORDER, OrderWord, POLICY, PRESEEK, PolicyWord,
    READ_AHEAD, REQUESTED_DATA, SPARING, SparingWord, TRUST, WRITE_BACK,
};
use super::{
    AccessSpec, BusSpec, CacheSpec, EarlyDisconnect, FirmwarePolicy, Geometry, Interpolation,
    LayoutSpec, MapPart, MapRemap, MapSpec, NoiseSpec, Order, OverheadSpec, Preseek, Profile,
    ProfileError, ProfileErrorKind, Provenance, QueueSpec, ReadAhead, RequestedData, Rotation,
    SeekCurve, SeekSpec, Skew, SpareTrack, Sparing, Spec, Strip, WriteBack, Zone,
};
use headtime_units::{Bytes, Nanos, Sectors};
use toml::de::DeTable;

type Result<T> = std::result::Result<T, ProfileError>;

impl Profile {
    /// Reads a profile. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// The first key that is unknown, missing, of the wrong kind or outside its range, with the
    /// line where it stands; or what does not fit together, such as zones that overlap.
    pub fn from_toml(file: &str, text: &str) -> Result<Profile> {
        read(file, text)
    }
}

fn read(file: &str, text: &str) -> Result<Profile> {
    let source = Source::new(text);
    let table = DeTable::parse(text).map_err(|error| ProfileError {
        file: file.to_string(),
        line: error.span().map(|span| source.line(span.start)),
        key: None,
        kind: ProfileErrorKind::Syntax(error.message().to_string()),
    })?;
    spec(Table::root(&source, table.get_ref()))
        .and_then(Spec::check)
        .map_err(|mut error| {
            error.file = file.to_string();
            error.line = error.key.as_deref().and_then(|key| source.line_of(key));
            error
        })
}

fn spec(root: Table) -> Result<Spec> {
    let name = root.required_text("name")?.to_string();
    let model = root.required_text("model")?.to_string();
    let provenance = Provenance {
        text: root.required_text("provenance")?.trim_end().to_string(),
        trust: match root.table("trust")? {
            Some(table) => trust(&table)?,
            None => Vec::new(),
        },
    };
    let geometry = geometry(root.required_table("geometry")?)?;
    let spec = Spec {
        name,
        model,
        provenance,
        geometry,
        rotation: rotation(root.required_table("rotation")?)?,
        layout: layout(root.required_table("layout")?)?,
        seek: seek(root.required_table("seek")?)?,
        access: root
            .table("access")?
            .map(access)
            .transpose()?
            .unwrap_or_default(),
        cache: root
            .table("cache")?
            .map(cache)
            .transpose()?
            .unwrap_or_default(),
        overhead: root
            .table("overhead")?
            .map(overhead)
            .transpose()?
            .unwrap_or_default(),
        bus: root.table("bus")?.map(bus).transpose()?.unwrap_or_default(),
        queue: root
            .table("queue")?
            .map(queue)
            .transpose()?
            .unwrap_or_default(),
        noise: root
            .table("noise")?
            .map(noise)
            .transpose()?
            .unwrap_or_default(),
    };
    root.finish()?;
    Ok(spec)
}

fn trust(table: &Table) -> Result<Vec<(String, super::Trust)>> {
    table
        .entries()
        .into_iter()
        .map(|(key, node)| {
            let expected = "\"measured\", \"published\", \"derived\" or \"assumed\"";
            let path = table.key(key);
            let Some(text) = node.text() else {
                return Err(node.kind_error(&path, expected));
            };
            match TRUST.iter().find(|(word, _)| *word == text) {
                Some(&(_, trust)) => Ok((key.to_string(), trust)),
                None => Err(ProfileError::range(path, format!("\"{text}\""), expected)),
            }
        })
        .collect()
}

fn geometry(table: Table) -> Result<Geometry> {
    let bytes = |size: Option<Bytes>, default: u32| {
        // Larger sizes are as wrong as the largest that fits.
        size.map_or(default, |size| u32::try_from(size.0).unwrap_or(u32::MAX))
    };
    let sector_bytes = bytes(table.size("sector")?, 512);
    let geometry = Geometry {
        capacity: Sectors::new(table.required_count("capacity_sectors", 1 << 40)?),
        cylinders: table.required_count("cylinders", 1 << 24)? as u32,
        heads: table.required_count("heads", 255)? as u16,
        sector_bytes,
        physical_sector_bytes: bytes(table.size("physical_sector")?, sector_bytes),
    };
    table.finish()?;
    Ok(geometry)
}

fn rotation(table: Table) -> Result<Rotation> {
    let rpm = table
        .number("rpm")?
        .ok_or_else(|| table.missing("rpm", "a number from 60 to 60000"))?;
    table.finish()?;
    Ok(Rotation { rpm })
}

fn layout(table: Table) -> Result<LayoutSpec> {
    // Asked for in any case, so that a key without use is not called unknown.
    let tracks = table.count_u32("tracks_per_surface")?;
    let range = table.count_u32("sparing_cylinders")?;
    let order = table.required_word("order", &ORDER)?;
    if order == OrderWord::Mapped {
        return mapped(table);
    }
    for key in ["groups", "slips", "remaps", "spare_tracks"] {
        if table.get(key).is_some() {
            let message = "means something with order = \"mapped\" only";
            return Err(ProfileError::conflict(table.key(key), message));
        }
    }
    let unused = |key, with| {
        let message = format!("means something with {with} only");
        Err(ProfileError::conflict(table.key(key), message))
    };
    let order = match (order, tracks) {
        (OrderWord::SurfaceSerpentine, Some(tracks)) => Order::SurfaceSerpentine { tracks },
        (OrderWord::SurfaceSerpentine, None) => {
            return Err(table.missing("tracks_per_surface", "an integer from 1 to 1048576"));
        }
        (_, Some(_)) => return unused("tracks_per_surface", "order = \"surface-serpentine\""),
        (OrderWord::CylinderFirst | OrderWord::Mapped, None) => Order::CylinderFirst,
        (OrderWord::Serpentine, None) => Order::Serpentine,
        (OrderWord::SerpentineThroughout, None) => Order::SerpentineThroughout,
    };
    let sparing = match (table.required_word("sparing", &SPARING)?, range) {
        (SparingWord::Range, Some(cylinders)) => Sparing::RangeEnd { cylinders },
        (SparingWord::Range, None) => {
            return Err(table.missing("sparing_cylinders", "an integer from 1 to 16777216"));
        }
        (_, Some(_)) => return unused("sparing_cylinders", "sparing = \"range-end\""),
        (SparingWord::Tracks, None) => Sparing::TracksAtZoneEnd,
        (SparingWord::Cylinder, None) => Sparing::CylinderEnd,
        (SparingWord::CylinderFront, None) => Sparing::CylinderFront,
        (SparingWord::Track, None) => Sparing::TrackEnd,
        (SparingWord::Disk, None) => Sparing::DiskEnd,
        (SparingWord::Zone, None) => Sparing::ZoneEnd,
    };
    let zones = table
        .tables("zones")?
        .into_iter()
        .map(zone)
        .collect::<Result<_>>()?;
    let slips_use_spares = table.flag("slips_use_spares", true)?;
    table.finish()?;
    Ok(LayoutSpec {
        order,
        sparing,
        slips_use_spares,
        zones,
        map: None,
    })
}

const STRIPS: &str = "arrays of 9 numbers, [cylinder, step, offset, skew, places, run, head, first \
                      slot, sectors per track], or of 7, the last of which is a group in place of the \
                      track's";

fn mapped(table: Table) -> Result<LayoutSpec> {
    for key in [
        "zones",
        "sparing",
        "sparing_cylinders",
        "slips_use_spares",
        "tracks_per_surface",
    ] {
        if table.get(key).is_some() {
            let message = "means nothing with order = \"mapped\", which says where every track is";
            return Err(ProfileError::conflict(table.key(key), message));
        }
    }
    let groups = table
        .tables("groups")?
        .into_iter()
        .map(group)
        .collect::<Result<_>>()?;
    let key = |name| table.key(name);
    let items = |name, expected| match table.get(name) {
        Some(node) => node.items(&table.key(name), expected),
        None => Ok(Vec::new()),
    };
    const REMAPS: &str = "an array of [address, count, cylinder, head, slot]";
    let remap = |node: Node| {
        let key = key("remaps");
        let [address, count, cylinder, head, slot] = node.tuple(&key, REMAPS)?;
        Ok(MapRemap {
            address: address.count(&key, 1 << 48)?,
            count: count.count(&key, 65_535)? as u32,
            cylinder: cylinder.count(&key, (1 << 24) - 1)? as u32,
            head: head.count(&key, 254)? as u16,
            slot: slot.count(&key, 65_534)? as u32,
        })
    };
    const SPARES: &str = "an array of [cylinder, head, sectors per track, offset]";
    let spare = |node: Node| {
        let key = key("spare_tracks");
        let [cylinder, head, sectors, offset] = node.tuple(&key, SPARES)?;
        Ok(SpareTrack {
            cylinder: cylinder.count(&key, (1 << 24) - 1)? as u32,
            head: head.count(&key, 254)? as u16,
            sectors_per_track: sectors.count(&key, 65_535)? as u32,
            offset: offset.turns(&key)?,
        })
    };
    let map = MapSpec {
        groups,
        slips: pairs(&table, "slips")?,
        remaps: items("remaps", REMAPS)?
            .into_iter()
            .map(remap)
            .collect::<Result<_>>()?,
        spare_tracks: items("spare_tracks", SPARES)?
            .into_iter()
            .map(spare)
            .collect::<Result<_>>()?,
    };
    table.finish()?;
    Ok(LayoutSpec::mapped(map))
}

fn group(table: Table) -> Result<Vec<Strip>> {
    let key = table.key("strips");
    let node = table
        .get("strips")
        .ok_or_else(|| table.missing("strips", STRIPS))?;
    let strips = node
        .rows(&key, STRIPS)?
        .iter()
        .map(|(key, node)| strip(node, key))
        .collect::<Result<_>>()?;
    table.finish()?;
    Ok(strips)
}

fn strip(node: &Node, key: &str) -> Result<Strip> {
    let items = node.items(key, STRIPS)?;
    let (common, of) = match items.as_slice() {
        [common @ .., head, first_slot, slots] if items.len() == 9 => {
            let of = MapPart::Track {
                head: head.count(key, 254)? as u16,
                first_slot: first_slot.count(key, 65_534)? as u32,
                sectors_per_track: slots.count(key, 65_535)? as u32,
            };
            (common, of)
        }
        [common @ .., group] if items.len() == 7 => {
            (common, MapPart::Group(group.count(key, 1 << 32)? as usize))
        }
        _ => return Err(node.kind_error(key, STRIPS)),
    };
    let &[cylinder, step, offset, skew, places, run] = common else {
        return Err(node.kind_error(key, STRIPS));
    };
    Ok(Strip {
        cylinder: cylinder.signed(key, 1 << 24)?,
        step: step.signed(key, 1 << 24)?,
        offset: offset.turns(key)?,
        skew: skew.turns(key)?,
        places: places.count(key, 1 << 48)?,
        run: run.count(key, 1 << 48)?,
        of,
    })
}

const CYLINDERS: &str = "[first, last], two cylinders";

fn zone(table: Table) -> Result<Zone> {
    let key = table.key("cylinders");
    let cylinders = table
        .get("cylinders")
        .ok_or_else(|| table.missing("cylinders", CYLINDERS))?;
    let [first, last] = cylinders.tuple(&key, CYLINDERS)?;
    let zone = Zone {
        first_cylinder: first.count(&key, (1 << 24) - 1)? as u32,
        last_cylinder: last.count(&key, (1 << 24) - 1)? as u32,
        sectors_per_track: table.required_count("sectors_per_track", 65_535)? as u32,
        offset: skew(&table, "offset")?.unwrap_or(Skew::Sectors(0)),
        track_skew: skew(&table, "track_skew")?.unwrap_or(Skew::Sectors(0)),
        cylinder_skew: skew(&table, "cylinder_skew")?.unwrap_or(Skew::Sectors(0)),
        group_skew: skew(&table, "group_skew")?,
        reserved: table.count("reserved", 1 << 48)?.unwrap_or(0),
        spares: table.count("spares", 1 << 48)?.unwrap_or(0),
        slips: places(&table, "slips")?,
        remaps: pairs(&table, "remaps")?,
    };
    table.finish()?;
    Ok(zone)
}

/// So many sectors, or text such as `0.14 turns`.
fn skew(table: &Table, name: &'static str) -> Result<Option<Skew>> {
    const EXPECTED: &str = "a number of sectors, or a part of a turn in quotes, as \"0.14 turns\"";
    let Some(node) = table.get(name) else {
        return Ok(None);
    };
    let key = table.key(name);
    let Some(text) = node.text() else {
        let sectors = node.count(&key, 65_535);
        return sectors.map(|sectors| Some(Skew::Sectors(sectors as u32)));
    };
    let turns = text
        .trim_end()
        .strip_suffix("turns")
        .and_then(|number| number.trim().parse::<f64>().ok())
        .ok_or_else(|| node.kind_error(&key, EXPECTED))?;
    Ok(Some(Skew::Turns(turns)))
}

fn places(table: &Table, name: &'static str) -> Result<Vec<u64>> {
    let Some(node) = table.get(name) else {
        return Ok(Vec::new());
    };
    let key = table.key(name);
    node.items(&key, "an array of integers")?
        .iter()
        .map(|item| item.count(&key, 1 << 48))
        .collect()
}

fn pairs(table: &Table, name: &'static str) -> Result<Vec<(u64, u64)>> {
    const EXPECTED: &str = "an array of pairs [from, to]";
    let Some(node) = table.get(name) else {
        return Ok(Vec::new());
    };
    let key = table.key(name);
    node.items(&key, EXPECTED)?
        .iter()
        .map(|item| {
            let [from, to] = item.tuple(&key, EXPECTED)?;
            Ok((from.count(&key, 1 << 48)?, to.count(&key, 1 << 48)?))
        })
        .collect()
}

fn seek(table: Table) -> Result<SeekSpec> {
    let seek = SeekSpec {
        read: curve(table.required_table("read")?)?,
        write: table.table("write")?.map(curve).transpose()?,
        head_switch: table.required_time("head_switch")?,
        write_settle: table.signed_time("write_settle")?.unwrap_or_default(),
    };
    table.finish()?;
    Ok(seek)
}

fn curve(table: Table) -> Result<SeekCurve> {
    let curve = match table.required_word("kind", &CURVE)? {
        CurveWord::Table => SeekCurve::Table {
            points: points(&table)?,
            interpolation: table
                .word("interpolation", &INTERPOLATION)?
                .unwrap_or(Interpolation::Linear),
        },
        CurveWord::Hpl => SeekCurve::Hpl {
            split: table.required_count("split", 1 << 24)? as u32,
            root_base: table.required_time("root_base")?,
            root_factor: table.required_time("root_factor")?,
            line_base: table.required_time("line_base")?,
            line_factor: table.required_time("line_factor")?,
            first: first_times(&table)?,
        },
        CurveWord::Curve => {
            let (single, average, full) = three(&table)?;
            SeekCurve::Curve {
                single,
                average,
                full,
            }
        }
        CurveWord::Linear => {
            let (single, average, full) = three(&table)?;
            SeekCurve::Linear {
                single,
                average,
                full,
            }
        }
        CurveWord::Constant => SeekCurve::Constant(table.required_time("constant")?),
    };
    table.finish()?;
    Ok(curve)
}

fn three(table: &Table) -> Result<(Nanos, Nanos, Nanos)> {
    Ok((
        table.required_time("single")?,
        table.required_time("average")?,
        table.required_time("full")?,
    ))
}

fn points(table: &Table) -> Result<Vec<(u32, Nanos)>> {
    const EXPECTED: &str = "an array of points [cylinders, microseconds]";
    let key = table.key("table_us");
    let node = table
        .get("table_us")
        .ok_or_else(|| table.missing("table_us", EXPECTED))?;
    node.items(&key, EXPECTED)?
        .iter()
        .map(|point: &Node| {
            let [distance, time] = point.tuple(&key, EXPECTED)?;
            Ok((distance.count(&key, 1 << 24)? as u32, time.micros(&key)?))
        })
        .collect()
}

fn first_times(table: &Table) -> Result<Vec<Nanos>> {
    let key = table.key("first_us");
    let Some(node) = table.get("first_us") else {
        return Ok(Vec::new());
    };
    node.items(&key, "an array of microseconds")?
        .iter()
        .map(|item| item.micros(&key))
        .collect()
}

fn access(table: Table) -> Result<AccessSpec> {
    let access = AccessSpec {
        zero_latency_read: table.flag("zero_latency_read", false)?,
        zero_latency_write: table.flag("zero_latency_write", false)?,
    };
    table.finish()?;
    Ok(access)
}

fn cache(table: Table) -> Result<CacheSpec> {
    let base = CacheSpec::plain();
    let segment_sectors = table
        .count_u32("segment_sectors")?
        .ok_or_else(|| table.missing("segment_sectors", "an integer, from 1 to the capacity"))?;
    let read_ahead = table
        .word("read_ahead", &READ_AHEAD)?
        .unwrap_or(ReadAhead::Off);
    let ahead = if read_ahead == ReadAhead::Off {
        0
    } else {
        segment_sectors
    };
    let cache = CacheSpec {
        enabled: table.flag("enabled", true)?,
        segments: table
            .count_u32("segments")?
            .ok_or_else(|| table.missing("segments", "an integer from 1 to 65535"))?,
        segment_sectors,
        write_segments: table.count_u32("write_segments")?.unwrap_or(1),
        dedicated_write_segment: table.flag("dedicated_write_segment", false)?,
        read_ahead,
        read_ahead_min: table.count_u32("read_ahead_min")?.unwrap_or(0),
        read_ahead_max: table.count_u32("read_ahead_max")?.unwrap_or(ahead),
        requested_data: table
            .word("requested_data", &REQUESTED_DATA)?
            .unwrap_or(RequestedData::Kept),
        read_ahead_on_idle_hit: table
            .flag("read_ahead_on_idle_hit", base.read_ahead_on_idle_hit)?,
        read_free_sectors: table.flag("read_free_sectors", base.read_free_sectors)?,
        almost_read_hits: table.flag("almost_read_hits", base.almost_read_hits)?,
        sneaky_full_read_hits: table.flag("sneaky_full_read_hits", base.sneaky_full_read_hits)?,
        sneaky_partial_read_hits: table
            .flag("sneaky_partial_read_hits", base.sneaky_partial_read_hits)?,
        sneaky_intermediate_read_hits: table.flag(
            "sneaky_intermediate_read_hits",
            base.sneaky_intermediate_read_hits,
        )?,
        read_hits_on_write_data: table
            .flag("read_hits_on_write_data", base.read_hits_on_write_data)?,
        write_prebuffering: table.flag("write_prebuffering", base.write_prebuffering)?,
        write_back: table
            .word("write_back", &WRITE_BACK)?
            .unwrap_or(WriteBack::Off),
        destage_delay: table.time_or_zero("destage_delay")?,
        destage: table.word("destage", &DESTAGE)?.unwrap_or(base.destage),
        destage_runs: table
            .count_u32("destage_runs")?
            .unwrap_or(base.destage_runs),
        destage_age: table.time("destage_age")?.unwrap_or(base.destage_age),
        combine_sequential_writes: table
            .flag("combine_sequential_writes", base.combine_sequential_writes)?,
        stop_read_ahead_in_sector: table
            .flag("stop_read_ahead_in_sector", base.stop_read_ahead_in_sector)?,
        disconnect_write_in_seek: table
            .flag("disconnect_write_in_seek", base.disconnect_write_in_seek)?,
        write_hit_stops_read_ahead: table.flag(
            "write_hit_stops_read_ahead",
            base.write_hit_stops_read_ahead,
        )?,
        read_direct_to_buffer: table.flag("read_direct_to_buffer", base.read_direct_to_buffer)?,
        send_partial_hit_at_once: table
            .flag("send_partial_hit_at_once", base.send_partial_hit_at_once)?,
        write_low_water: table.number("write_low_water")?.unwrap_or(0.0),
        read_high_water: table.number("read_high_water")?.unwrap_or(0.0),
        water_by_request: table.flag("water_by_request", base.water_by_request)?,
    };
    table.finish()?;
    Ok(cache)
}

fn overhead(table: Table) -> Result<OverheadSpec> {
    let early = match table.table("early_write_disconnect")? {
        Some(table) => {
            let early = EarlyDisconnect {
                command: table.time_or_zero("command")?,
                first_disconnect: table.time_or_zero("first_disconnect")?,
                between: table.time_or_zero("between")?,
                second_disconnect: table.time_or_zero("second_disconnect")?,
                seek_delay: table.time_or_zero("seek_delay")?,
            };
            table.finish()?;
            Some(early)
        }
        None => None,
    };
    let overhead = OverheadSpec {
        per_command: table.time_or_zero("per_command")?,
        read_hit_after_read: table.time_or_zero("read_hit_after_read")?,
        read_hit_after_write: table.time_or_zero("read_hit_after_write")?,
        read_miss_after_read: table.time_or_zero("read_miss_after_read")?,
        read_miss_after_write: table.time_or_zero("read_miss_after_write")?,
        write_hit_after_read: table.time_or_zero("write_hit_after_read")?,
        write_hit_after_write: table.time_or_zero("write_hit_after_write")?,
        write_miss_after_read: table.time_or_zero("write_miss_after_read")?,
        write_miss_after_write: table.time_or_zero("write_miss_after_write")?,
        read_completion: table.time_or_zero("read_completion")?,
        write_completion: table.time_or_zero("write_completion")?,
        data_preparation: table.time_or_zero("data_preparation")?,
        first_reselect: table.time_or_zero("first_reselect")?,
        other_reselect: table.time_or_zero("other_reselect")?,
        read_disconnect_after_read: table.time_or_zero("read_disconnect_after_read")?,
        read_disconnect_after_write: table.time_or_zero("read_disconnect_after_write")?,
        write_disconnect: table.time_or_zero("write_disconnect")?,
        minimum_seek_delay: table.time_or_zero("minimum_seek_delay")?,
        early_write_disconnect: early,
    };
    table.finish()?;
    Ok(overhead)
}

fn bus(table: Table) -> Result<BusSpec> {
    let bus = BusSpec {
        interface_sector: table.time_or_zero("interface_sector")?,
        read_sector: table.time_or_zero("read_sector")?,
        write_sector: table.time_or_zero("write_sector")?,
        arbitration: table.time_or_zero("arbitration")?,
        hold_for_read: table.flag("hold_for_read", false)?,
        hold_for_write: table.flag("hold_for_write", false)?,
        never_disconnect: table.flag("never_disconnect", false)?,
    };
    table.finish()?;
    Ok(bus)
}

fn queue(table: Table) -> Result<QueueSpec> {
    let margin = table.time("margin")?;
    let age_cap = table.time("age_cap")?;
    let stream_cap = table.time("stream_cap")?;
    let policy = match table.word("policy", &POLICY)?.unwrap_or(PolicyWord::Fifo) {
        PolicyWord::Sptf => FirmwarePolicy::Sptf {
            margin: margin.unwrap_or(Nanos::ZERO),
            age_cap,
        },
        PolicyWord::Fifo => {
            let for_sptf = [
                ("margin", margin),
                ("age_cap", age_cap),
                ("stream_cap", stream_cap),
            ];
            for (key, given) in for_sptf {
                if given.is_some() {
                    let message = "means something with policy = \"sptf\" only";
                    return Err(ProfileError::conflict(table.key(key), message));
                }
            }
            FirmwarePolicy::Fifo
        }
    };
    let queue = QueueSpec {
        depth: table.count_u32("depth")?.unwrap_or(1),
        policy,
        preseek: table.word("preseek", &PRESEEK)?.unwrap_or(Preseek::Off),
        stream_cap: stream_cap.unwrap_or(QueueSpec::STREAM_CAP),
    };
    table.finish()?;
    Ok(queue)
}

fn noise(table: Table) -> Result<NoiseSpec> {
    let noise = NoiseSpec {
        seek_sd: table.time_or_zero("seek_sd")?,
        seek_sd_relative: table.number("seek_sd_relative")?.unwrap_or(0.0),
        overhead_sd: table.time_or_zero("overhead_sd")?,
        speed_ppm: table.count_u32("speed_ppm")?.unwrap_or(0),
    };
    table.finish()?;
    Ok(noise)
}
