//! From a profile to text.

use super::words::{
    CURVE, CurveWord, DESTAGE, INTERPOLATION, PRESEEK, READ_AHEAD, REQUESTED_DATA, TRUST,
    WRITE_BACK, word_of,
};
use super::{
    Destage, FirmwarePolicy, MapPart, MapRemap, MapSpec, Profile, SeekCurve, Skew, SpareTrack,
    Spec, Zone,
};
use headtime_units::{Bytes, Nanos};
use std::fmt::{Display, Write};

/// Text under construction; writing to a string cannot fail.
struct Out(String);

impl Out {
    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.0, "{line}");
    }

    fn section(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n[{name}]");
    }

    fn value(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn quoted(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = \"{}\"", escaped(&value.to_string()));
    }

    /// A duration, left out if zero.
    fn time(&mut self, key: &str, time: Nanos) {
        if !time.is_zero() {
            self.quoted(key, time);
        }
    }
}

impl Profile {
    /// The profile as text that [`Profile::from_toml`] reads back to an equal profile.
    pub fn to_toml(&self) -> String {
        write(self)
    }
}

fn write(spec: &Spec) -> String {
    let mut out = Out(String::new());
    head(&mut out, spec);
    layout(&mut out, spec);
    out.section("seek");
    out.quoted("head_switch", spec.seek.head_switch);
    out.quoted("write_settle", spec.seek.write_settle);
    curve(&mut out, "seek.read", &spec.seek.read);
    if let Some(write) = &spec.seek.write {
        curve(&mut out, "seek.write", write);
    }
    out.section("access");
    out.value("zero_latency_read", spec.access.zero_latency_read);
    out.value("zero_latency_write", spec.access.zero_latency_write);
    cache(&mut out, spec);
    rest(&mut out, spec);
    out.0
}

/// Backslashes, quotes and control characters as TOML's basic strings want them.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '"' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// The same for strings over several lines, where single quotes can stay as they are.
fn escaped_in_lines(line: &str) -> String {
    if line.contains("\"\"") || line.ends_with('"') {
        escaped(line)
    } else {
        escaped(line).replace("\\\"", "\"")
    }
}

fn head(out: &mut Out, spec: &Spec) {
    out.quoted("name", &spec.name);
    out.quoted("model", &spec.model);
    out.line("provenance = \"\"\"");
    // Not by `lines`, which would lose a carriage return.
    for line in spec.provenance.text.split('\n') {
        out.line(escaped_in_lines(line));
    }
    out.line("\"\"\"");
    if !spec.provenance.trust.is_empty() {
        out.section("trust");
        for (key, trust) in &spec.provenance.trust {
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !key.is_empty() && key.chars().all(bare) {
                out.quoted(key, word_of(&TRUST, trust));
            } else {
                out.quoted(&format!("\"{}\"", escaped(key)), word_of(&TRUST, trust));
            }
        }
    }
    out.section("geometry");
    out.value("capacity_sectors", spec.geometry.capacity);
    out.value("cylinders", spec.geometry.cylinders);
    out.value("heads", spec.geometry.heads);
    out.quoted("sector", Bytes(u64::from(spec.geometry.sector_bytes)));
    out.quoted(
        "physical_sector",
        Bytes(u64::from(spec.geometry.physical_sector_bytes)),
    );
    out.section("rotation");
    out.value("rpm", spec.rotation.rpm);
}

fn layout(out: &mut Out, spec: &Spec) {
    out.section("layout");
    let layout = &spec.layout;
    out.quoted("order", layout.order_word());
    if let Some(found) = &layout.map {
        map(out, found);
        return;
    }
    if let (_, Some(tracks)) = layout.order.parts() {
        out.value("tracks_per_surface", tracks);
    }
    if let Some(sparing) = layout.sparing_word() {
        out.quoted("sparing", sparing);
    }
    if let (_, Some(cylinders)) = layout.sparing.parts() {
        out.value("sparing_cylinders", cylinders);
    }
    if !layout.slips_use_spares {
        out.value("slips_use_spares", false);
    }
    for one in &layout.zones {
        out.line("\n[[layout.zones]]");
        zone(out, one);
    }
}

fn map(out: &mut Out, map: &MapSpec) {
    if !map.slips.is_empty() {
        let slips = map.slips.iter();
        list(
            out,
            "slips",
            slips.map(|(place, count)| format!("[{place}, {count}]")),
        );
    }
    if !map.remaps.is_empty() {
        let remap = |remap: &MapRemap| {
            let [address, count] = [remap.address, u64::from(remap.count)];
            format!(
                "[{address}, {count}, {}, {}, {}]",
                remap.cylinder, remap.head, remap.slot
            )
        };
        list(out, "remaps", map.remaps.iter().map(remap));
    }
    if !map.spare_tracks.is_empty() {
        let track = |track: &SpareTrack| {
            format!(
                "[{}, {}, {}, {}]",
                track.cylinder, track.head, track.sectors_per_track, track.offset
            )
        };
        list(out, "spare_tracks", map.spare_tracks.iter().map(track));
    }
    for group in &map.groups {
        out.line("\n[[layout.groups]]");
        out.line("strips = [");
        for strip in group {
            let of = match strip.of {
                MapPart::Track {
                    head,
                    first_slot,
                    sectors_per_track,
                } => format!("{head}, {first_slot}, {sectors_per_track}"),
                MapPart::Group(group) => group.to_string(),
            };
            out.line(format_args!(
                "    [{}, {}, {}, {}, {}, {}, {of}],",
                strip.cylinder, strip.step, strip.offset, strip.skew, strip.places, strip.run
            ));
        }
        out.line("]");
    }
}

fn zone(out: &mut Out, zone: &Zone) {
    out.value(
        "cylinders",
        format_args!("[{}, {}]", zone.first_cylinder, zone.last_cylinder),
    );
    out.value("sectors_per_track", zone.sectors_per_track);
    if zone.offset != Skew::Sectors(0) {
        skew(out, "offset", zone.offset);
    }
    skew(out, "track_skew", zone.track_skew);
    skew(out, "cylinder_skew", zone.cylinder_skew);
    if let Some(group) = zone.group_skew {
        skew(out, "group_skew", group);
    }
    if zone.reserved != 0 {
        out.value("reserved", zone.reserved);
    }
    if zone.spares != 0 {
        out.value("spares", zone.spares);
    }
    if !zone.slips.is_empty() {
        list(out, "slips", zone.slips.iter().map(u64::to_string));
    }
    if !zone.remaps.is_empty() {
        let pairs = zone.remaps.iter();
        list(
            out,
            "remaps",
            pairs.map(|(from, to)| format!("[{from}, {to}]")),
        );
    }
}

fn skew(out: &mut Out, key: &str, skew: Skew) {
    match skew {
        Skew::Sectors(sectors) => out.value(key, sectors),
        Skew::Turns(turns) => out.value(key, format_args!("\"{turns} turns\"")),
    }
}

/// An array, over several lines if it is long.
fn list(out: &mut Out, key: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    let short = format!("{key} = [{}]", items.join(", "));
    if short.len() <= 100 {
        out.line(short);
        return;
    }
    out.line(format_args!("{key} = ["));
    let mut line = String::from("   ");
    for item in items {
        if line.len() + item.len() + 2 > 100 {
            out.line(&line);
            line = String::from("   ");
        }
        let _ = write!(line, " {item},");
    }
    out.line(line);
    out.line("]");
}

/// Microseconds with as many places as there are nanoseconds.
fn micros(time: Nanos) -> String {
    let (whole, part) = (time.as_nanos() / 1000, time.as_nanos() % 1000);
    let text = format!("{whole}.{part:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn curve(out: &mut Out, section: &str, curve: &SeekCurve) {
    out.section(section);
    let kind = match curve {
        SeekCurve::Table { .. } => CurveWord::Table,
        SeekCurve::Hpl { .. } => CurveWord::Hpl,
        SeekCurve::Curve { .. } => CurveWord::Curve,
        SeekCurve::Linear { .. } => CurveWord::Linear,
        SeekCurve::Constant(_) => CurveWord::Constant,
    };
    out.quoted("kind", word_of(&CURVE, &kind));
    match curve {
        SeekCurve::Table {
            points,
            interpolation,
        } => {
            out.quoted("interpolation", word_of(&INTERPOLATION, interpolation));
            let points = points.iter();
            list(
                out,
                "table_us",
                points.map(|(d, t)| format!("[{d}, {}]", micros(*t))),
            );
        }
        SeekCurve::Hpl {
            split,
            root_base,
            root_factor,
            line_base,
            line_factor,
            first,
        } => {
            out.value("split", split);
            out.quoted("root_base", root_base);
            out.quoted("root_factor", root_factor);
            out.quoted("line_base", line_base);
            out.quoted("line_factor", line_factor);
            if !first.is_empty() {
                list(out, "first_us", first.iter().map(|time| micros(*time)));
            }
        }
        SeekCurve::Curve {
            single,
            average,
            full,
        }
        | SeekCurve::Linear {
            single,
            average,
            full,
        } => {
            out.quoted("single", single);
            out.quoted("average", average);
            out.quoted("full", full);
        }
        SeekCurve::Constant(time) => out.quoted("constant", time),
    }
}

fn cache(out: &mut Out, spec: &Spec) {
    let cache = &spec.cache;
    out.section("cache");
    out.value("enabled", cache.enabled);
    out.value("segments", cache.segments);
    out.value("segment_sectors", cache.segment_sectors);
    out.value("write_segments", cache.write_segments);
    out.value("dedicated_write_segment", cache.dedicated_write_segment);
    out.quoted("read_ahead", word_of(&READ_AHEAD, &cache.read_ahead));
    out.value("read_ahead_min", cache.read_ahead_min);
    out.value("read_ahead_max", cache.read_ahead_max);
    out.quoted(
        "requested_data",
        word_of(&REQUESTED_DATA, &cache.requested_data),
    );
    out.value("read_ahead_on_idle_hit", cache.read_ahead_on_idle_hit);
    out.value("read_free_sectors", cache.read_free_sectors);
    out.value("almost_read_hits", cache.almost_read_hits);
    out.value("sneaky_full_read_hits", cache.sneaky_full_read_hits);
    out.value("sneaky_partial_read_hits", cache.sneaky_partial_read_hits);
    out.value(
        "sneaky_intermediate_read_hits",
        cache.sneaky_intermediate_read_hits,
    );
    out.value("read_hits_on_write_data", cache.read_hits_on_write_data);
    out.value("write_prebuffering", cache.write_prebuffering);
    out.quoted("write_back", word_of(&WRITE_BACK, &cache.write_back));
    out.time("destage_delay", cache.destage_delay);
    if cache.destage == Destage::Sweep {
        out.quoted("destage", word_of(&DESTAGE, &cache.destage));
        out.value("destage_runs", cache.destage_runs);
        out.quoted("destage_age", cache.destage_age);
    }
    out.value("combine_sequential_writes", cache.combine_sequential_writes);
    out.value("stop_read_ahead_in_sector", cache.stop_read_ahead_in_sector);
    out.value("disconnect_write_in_seek", cache.disconnect_write_in_seek);
    out.value(
        "write_hit_stops_read_ahead",
        cache.write_hit_stops_read_ahead,
    );
    out.value("read_direct_to_buffer", cache.read_direct_to_buffer);
    out.value("send_partial_hit_at_once", cache.send_partial_hit_at_once);
    out.value("write_low_water", cache.write_low_water);
    out.value("read_high_water", cache.read_high_water);
    out.value("water_by_request", cache.water_by_request);
}

fn rest(out: &mut Out, spec: &Spec) {
    out.section("overhead");
    for (key, time) in spec.overhead.durations() {
        out.time(key, time);
    }
    if let Some(early) = &spec.overhead.early_write_disconnect {
        out.section("overhead.early_write_disconnect");
        for (key, time) in early.durations() {
            out.time(key, time);
        }
    }
    out.section("bus");
    out.time("interface_sector", spec.bus.interface_sector);
    out.time("read_sector", spec.bus.read_sector);
    out.time("write_sector", spec.bus.write_sector);
    out.time("arbitration", spec.bus.arbitration);
    out.value("hold_for_read", spec.bus.hold_for_read);
    out.value("hold_for_write", spec.bus.hold_for_write);
    out.value("never_disconnect", spec.bus.never_disconnect);
    out.section("queue");
    out.value("depth", spec.queue.depth);
    match spec.queue.policy {
        FirmwarePolicy::Fifo => out.quoted("policy", "fifo"),
        FirmwarePolicy::Sptf { margin, age_cap } => {
            out.quoted("policy", "sptf");
            out.time("margin", margin);
            if let Some(cap) = age_cap {
                out.quoted("age_cap", cap);
            }
            out.quoted("stream_cap", spec.queue.stream_cap);
        }
    }
    out.quoted("preseek", word_of(&PRESEEK, &spec.queue.preseek));
    if !spec.noise.is_off() {
        out.section("noise");
        out.time("seek_sd", spec.noise.seek_sd);
        out.value("seek_sd_relative", spec.noise.seek_sd_relative);
        out.time("overhead_sd", spec.noise.overhead_sd);
        out.value("speed_ppm", spec.noise.speed_ppm);
    }
}
