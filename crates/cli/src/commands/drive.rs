//! `headtime drive`

mod curve;

use super::context::Context;
use crate::args::{Import, List, Show, ShowFormat, TextFormat, Validate};
use crate::fault::Fault;
use crate::files::Output;
use crate::output::{self, TableColumn, table};
use crate::report::round;
use headtime_disk::profile::{self, FirmwarePolicy, Profile};
use headtime_disk::{Mechanics, validate as compare};
use headtime_sched::Op;
use headtime_stack::drives;
use headtime_units::{Bytes, Nanos};
use serde::Serialize;
use std::fs;

pub(super) use curve::curve;

/// What is known of a drive, in figures.
#[derive(Serialize)]
struct Summary {
    name: String,
    model: String,
    capacity_bytes: u64,
    sectors: u64,
    sector_bytes: u32,
    physical_sector_bytes: u32,
    rpm: f64,
    revolution_ms: f64,
    cylinders: u32,
    heads: u16,
    zones: usize,
    sectors_per_track: [u32; 2],
    /// Outermost and innermost: what passes under the head in a revolution.
    media_mb_s: [f64; 2],
    order: String,
    /// Absent of a table of tracks.
    sparing: Option<String>,
    slipped: u64,
    remapped: u64,
    seek_ms: Seeks,
    head_switch_ms: f64,
    write_settle_ms: f64,
    zero_latency: [bool; 2],
    cache_enabled: bool,
    cache_bytes: u64,
    /// Reads and writes: the slower of the drive's interface and the bus; absent where neither
    /// takes time.
    bus_mb_s: [Option<f64>; 2],
    queue_depth: u32,
    firmware: &'static str,
    noise: bool,
    provenance: String,
    trust: Vec<(String, String)>,
}

/// Read seeks, settled, in ms.
#[derive(Serialize)]
struct Seeks {
    /// One cylinder.
    single: f64,
    /// A third of the cylinders.
    third: f64,
    /// All of them.
    full: f64,
}

impl Summary {
    fn new(profile: &Profile) -> Summary {
        let (geometry, layout) = (&profile.geometry, &profile.layout);
        let mechanics = Mechanics::new(profile);
        let seek = |distance: u32| {
            let time: Nanos = mechanics.seek(distance.max(1), Op::Read);
            round(time.as_millis_f64(), 6)
        };
        let turns_per_second = profile.rotation.rpm / 60.0;
        let [least, most] = layout.sectors_per_track();
        let rate = |sectors: u32| {
            let bytes = f64::from(sectors) * f64::from(geometry.sector_bytes);
            round(bytes * turns_per_second / 1e6, 3)
        };
        let full = geometry.cylinders - 1;
        let segment = u64::from(profile.cache.segment_sectors) * u64::from(geometry.sector_bytes);
        Summary {
            name: profile.name.clone(),
            model: profile.model.clone(),
            capacity_bytes: geometry.capacity.bytes(geometry.sector_bytes),
            sectors: geometry.capacity.get(),
            sector_bytes: geometry.sector_bytes,
            physical_sector_bytes: geometry.physical_sector_bytes,
            rpm: profile.rotation.rpm,
            revolution_ms: profile.rotation.turn().as_millis_f64(),
            cylinders: geometry.cylinders,
            heads: geometry.heads,
            zones: layout.zone_count(),
            sectors_per_track: [most, least],
            media_mb_s: [rate(most), rate(least)],
            order: layout.order_word(),
            sparing: layout.sparing_word(),
            slipped: layout.slipped(),
            remapped: layout.remapped(),
            seek_ms: Seeks {
                single: seek(1),
                third: seek(full / 3),
                full: seek(full),
            },
            head_switch_ms: profile.seek.head_switch.as_millis_f64(),
            write_settle_ms: profile.seek.write_settle.as_millis_f64(),
            zero_latency: [
                profile.access.zero_latency_read,
                profile.access.zero_latency_write,
            ],
            cache_enabled: profile.cache.enabled,
            cache_bytes: u64::from(profile.cache.segments) * segment,
            bus_mb_s: [true, false].map(|is_read| {
                let sector = profile.bus.sector(is_read);
                let bytes = f64::from(geometry.sector_bytes);
                (!sector.is_zero()).then(|| round(bytes / sector.as_secs_f64() / 1e6, 3))
            }),
            queue_depth: profile.queue.depth,
            firmware: match profile.queue.policy {
                FirmwarePolicy::Fifo => "fifo",
                FirmwarePolicy::Sptf { .. } => "sptf",
            },
            noise: !profile.noise.is_off(),
            provenance: profile.provenance.clone(),
            trust: profile
                .trust
                .iter()
                .map(|(key, trust)| (key.clone(), format!("{trust:?}").to_lowercase()))
                .collect(),
        }
    }

    fn capacity(&self) -> String {
        let gb = self.capacity_bytes as f64 / 1e9;
        if gb < 1000.0 {
            format!("{gb:.1} GB")
        } else {
            format!("{:.2} TB", gb / 1e3)
        }
    }
}

pub(super) fn list(args: &List, context: &mut Context<'_>) -> Result<(), Fault> {
    let shipped: Vec<Summary> = profile::shipped()
        .iter()
        .map(|shipped| Summary::new(&shipped.profile()))
        .collect();
    if args.format == TextFormat::Json {
        return output::json(context.out, &shipped);
    }
    let each =
        |show: fn(&Summary) -> String| shipped.iter().map(show).collect::<Vec<_>>().into_iter();
    let columns = vec![
        TableColumn::words("name", each(|drive| drive.name.clone())),
        TableColumn::numbers("capacity", each(Summary::capacity)),
        TableColumn::numbers("rpm", each(|drive| drive.rpm.to_string())),
        TableColumn::numbers("heads", each(|drive| drive.heads.to_string())),
        TableColumn::numbers(
            "seek ms",
            each(|drive| format!("{:.2}", drive.seek_ms.third)),
        ),
        TableColumn::numbers(
            "MB/s",
            each(|drive| format!("{:.0}-{:.0}", drive.media_mb_s[0], drive.media_mb_s[1])),
        ),
        TableColumn::numbers("depth", each(|drive| drive.queue_depth.to_string())),
        TableColumn::words("firmware", each(|drive| drive.firmware.to_owned())),
        TableColumn::words("model", each(|drive| drive.model.clone())),
    ];
    let text = table(&columns, context.terminal);
    context.print(&text)?;
    context.print(
        "\nseek: a third of the cylinders; MB/s: what passes under the head, outermost and innermost \
         zone.\nMore about one: headtime drive show NAME\n",
    )
}

pub(super) fn show(args: &Show, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.drive(&args.drive)?;
    match args.format {
        ShowFormat::Toml => context.print(&profile.to_toml()),
        ShowFormat::Json => output::json(context.out, &Summary::new(&profile)),
        ShowFormat::Table => {
            let text = describe(&Summary::new(&profile), &profile);
            context.print(&text)
        }
    }
}

fn describe(summary: &Summary, profile: &Profile) -> String {
    let on_off = |flag: bool| if flag { "on" } else { "off" };
    let ms = |value: f64| format!("{value:.3} ms");
    let sectors = if summary.sector_bytes == summary.physical_sector_bytes {
        format!("{} of {} bytes", summary.sectors, summary.sector_bytes)
    } else {
        format!(
            "{} of {} bytes, {} on the medium",
            summary.sectors, summary.sector_bytes, summary.physical_sector_bytes
        )
    };
    let [outer, inner] = summary.sectors_per_track;
    let [fast, slow] = summary.media_mb_s;
    let [zero_read, zero_write] = summary.zero_latency;
    let bus = match summary.bus_mb_s {
        [Some(read), Some(write)] if read == write => format!("{read:.1} MB/s"),
        [None, None] => "takes no time".to_owned(),
        [read, write] => {
            let speed = |speed: Option<f64>| {
                speed.map_or_else(|| "no time".to_owned(), |speed| format!("{speed:.1} MB/s"))
            };
            format!("reads {}, writes {}", speed(read), speed(write))
        }
    };
    let queue = match profile.queue.policy {
        FirmwarePolicy::Fifo => format!("{} commands, in their order", summary.queue_depth),
        FirmwarePolicy::Sptf { margin, age_cap } => {
            let cap =
                age_cap.map_or_else(String::new, |cap| format!(", none waits longer than {cap}"));
            format!(
                "{} commands, shortest positioning time first, margin {margin}{cap}",
                summary.queue_depth
            )
        }
    };
    let lines = [
        ("name", summary.name.clone()),
        ("model", summary.model.clone()),
        ("capacity", summary.capacity()),
        ("sectors", sectors),
        (
            "rotation",
            format!(
                "{} rpm, {:.3} ms a revolution",
                summary.rpm, summary.revolution_ms
            ),
        ),
        (
            "geometry",
            format!(
                "{} cylinders, {} heads, {} zones",
                summary.cylinders, summary.heads, summary.zones
            ),
        ),
        (
            "tracks",
            format!(
                "{outer} sectors outside, {inner} inside: {fast:.1} to {slow:.1} MB/s under the head"
            ),
        ),
        (
            "layout",
            format!(
                "{}{}, {} slipped, {} remapped",
                summary.order,
                summary
                    .sparing
                    .as_ref()
                    .map_or_else(String::new, |sparing| format!(", spares {sparing}")),
                summary.slipped,
                summary.remapped
            ),
        ),
        (
            "seek",
            format!(
                "{} one cylinder, {} a third, {} all",
                ms(summary.seek_ms.single),
                ms(summary.seek_ms.third),
                ms(summary.seek_ms.full)
            ),
        ),
        (
            "switch",
            format!(
                "{} head switch, {} {} to settle before a write",
                ms(summary.head_switch_ms),
                ms(summary.write_settle_ms.abs()),
                if summary.write_settle_ms < 0.0 {
                    "less"
                } else {
                    "more"
                }
            ),
        ),
        (
            "access",
            format!(
                "zero latency: reads {}, writes {}",
                on_off(zero_read),
                on_off(zero_write)
            ),
        ),
        (
            "cache",
            format!(
                "{}, {} segments of {}",
                on_off(summary.cache_enabled),
                profile.cache.segments,
                Bytes(u64::from(profile.cache.segment_sectors) * u64::from(summary.sector_bytes))
            ),
        ),
        ("bus", bus),
        ("queue", queue),
        ("noise", on_off(summary.noise).to_owned()),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:12}{value}\n"));
    }
    text.push_str("\nWhere the values come from\n");
    for line in summary.provenance.trim().lines() {
        text.push_str(&format!("  {line}\n"));
    }
    let widths = summary.trust.iter().map(|(key, _)| key.len());
    let width = widths.max().unwrap_or(0) + 2;
    for (key, trust) in &summary.trust {
        text.push_str(&format!("  {key:width$}{trust}\n"));
    }
    text
}

pub(super) fn import(args: &Import, context: &mut Context<'_>) -> Result<(), Fault> {
    let (profile, findings) = drives::import(&args.parv)?;
    context.found(&findings);
    let text = profile.to_toml();
    match &args.out {
        Some(path) => Output::write_all_of(path, &text),
        None => context.print(&text),
    }
}

/// How well a model agrees with its drive.
#[derive(Serialize)]
struct Validated {
    drive: String,
    requests: usize,
    mean_ms: Means,
    demerit_ms: f64,
}

#[derive(Serialize)]
struct Means {
    measured: f64,
    modelled: f64,
}

pub(super) fn validate(args: &Validate, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.drive(&args.profile)?;
    let file = args.trace.display().to_string();
    let content = fs::read(&args.trace).map_err(|error| Fault::reading(&args.trace, &error))?;
    let text = String::from_utf8_lossy(&content);
    let trace = compare::parse(&file, &text).map_err(Fault::input)?;
    let found = compare::validate(&profile, &file, &trace).map_err(Fault::input)?;
    let validated = Validated {
        drive: profile.name.clone(),
        requests: found.requests,
        mean_ms: Means {
            measured: round(found.measured_ms, 6),
            modelled: round(found.modelled_ms, 6),
        },
        demerit_ms: round(found.demerit_ms, 6),
    };
    if args.format == TextFormat::Json {
        return output::json(context.out, &validated);
    }
    let Means { measured, modelled } = validated.mean_ms;
    let demerit = validated.demerit_ms;
    let columns = vec![
        TableColumn::words("drive", std::iter::once(validated.drive)),
        TableColumn::numbers("requests", std::iter::once(validated.requests.to_string())),
        TableColumn::numbers(
            "measured mean ms",
            std::iter::once(format!("{measured:.3}")),
        ),
        TableColumn::numbers(
            "modelled mean ms",
            std::iter::once(format!("{modelled:.3}")),
        ),
        TableColumn::numbers("demerit ms", std::iter::once(format!("{demerit:.3}"))),
        TableColumn::numbers(
            "% of mean",
            std::iter::once(format!("{:.1}", 100.0 * demerit / measured)),
        ),
    ];
    let text = table(&columns, context.terminal);
    context.print(&text)
}
