//! `headtime drive`

mod check;
mod curve;
mod new;
mod probe;

use super::context::Context;
use crate::args::{Import, List, Show, ShowFormat, TextFormat, Validate};
use crate::object::object;
use headtime_disk::profile::{self, FirmwarePolicy, Profile, QueueSpec};
use headtime_disk::{Mechanics, validate as compare};
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use headtime_lab::output::{self, TableColumn, table};
use headtime_lab::report::round;
use headtime_linux::shown::PathShown as _;
use headtime_sched::Op;
use headtime_stack::drives;
use headtime_units::{Bytes, Nanos};
use serde::Serialize;
use std::fs;

pub(super) use check::check;
pub(super) use curve::curve;
pub(super) use new::new;
pub(super) use probe::probe;

/// A drive, and values computed from its profile.
struct Summary {
    profile: Profile,
    mechanics: Mechanics,
}

impl Summary {
    fn new(profile: Profile) -> Summary {
        let mechanics = Mechanics::new(&profile);
        Summary { profile, mechanics }
    }

    fn bytes(&self) -> u64 {
        let geometry = &self.profile.geometry;
        geometry.capacity.bytes(geometry.sector_bytes)
    }

    fn capacity(&self) -> String {
        let gb = self.bytes() as f64 / 1e9;
        if gb < 1000.0 {
            format!("{gb:.1} GB")
        } else {
            format!("{:.2} TB", gb / 1e3)
        }
    }

    /// Times of settled read seeks in ms: over one cylinder, over a third of the cylinders, and over all cylinders.
    fn seeks(&self) -> [f64; 3] {
        let full = self.profile.geometry.cylinders - 1;
        [1, full / 3, full].map(|distance: u32| {
            let time: Nanos = self.mechanics.seek(distance.max(1), Op::Read);
            round(time.as_millis_f64(), 6)
        })
    }

    /// Sectors of the outermost and innermost full tracks.
    fn tracks(&self) -> [u32; 2] {
        let heads = u64::from(self.profile.geometry.heads);
        let [least, most] = self.profile.layout.sectors_per_full_track(heads);
        [most, least]
    }

    /// Rates at which data passes under the head on the outermost and innermost tracks, in MB/s.
    fn media_mb_s(&self) -> [f64; 2] {
        let turns_per_second = self.profile.rotation.rpm / 60.0;
        self.tracks().map(|sectors| {
            let bytes = f64::from(sectors) * f64::from(self.profile.geometry.sector_bytes);
            round(bytes * turns_per_second / 1e6, 3)
        })
    }

    /// Rates of reads and writes in MB/s, each the rate of the slower of interface and bus. `None` if neither takes time.
    fn bus_mb_s(&self) -> [Option<f64>; 2] {
        [true, false].map(|is_read| {
            let sector = self.profile.bus.sector(is_read);
            let bytes = f64::from(self.profile.geometry.sector_bytes);
            (!sector.is_zero()).then(|| round(bytes / sector.as_secs_f64() / 1e6, 3))
        })
    }

    fn segment_bytes(&self) -> u64 {
        let sectors = u64::from(self.profile.cache.segment_sectors);
        sectors * u64::from(self.profile.geometry.sector_bytes)
    }

    fn firmware(&self) -> &'static str {
        match self.profile.queue.policy {
            FirmwarePolicy::Fifo => "fifo",
            FirmwarePolicy::Sptf { .. } => "sptf",
        }
    }

    /// Source of each value of the profile.
    fn trust(&self) -> Vec<(&str, String)> {
        let trust = self.profile.trust.iter();
        trust
            .map(|(key, trust)| (key.as_str(), format!("{trust:?}").to_lowercase()))
            .collect()
    }

    fn json(&self) -> impl Serialize {
        let profile = &self.profile;
        let (geometry, layout) = (&profile.geometry, &profile.layout);
        let [single, third, full] = self.seeks();
        object! {
            name: &profile.name,
            model: &profile.model,
            capacity_bytes: self.bytes(),
            sectors: geometry.capacity.get(),
            sector_bytes: geometry.sector_bytes,
            physical_sector_bytes: geometry.physical_sector_bytes,
            rpm: profile.rotation.rpm,
            revolution_ms: profile.rotation.turn().as_millis_f64(),
            cylinders: geometry.cylinders,
            heads: geometry.heads,
            zones: layout.zone_count(),
            sectors_per_track: self.tracks(),
            media_mb_s: self.media_mb_s(),
            order: layout.order_word(),
            sparing: layout.sparing_word(),
            slipped: layout.slipped(),
            remapped: layout.remapped(),
            seek_ms: object! { single: single, third: third, full: full },
            head_switch_ms: profile.seek.head_switch.as_millis_f64(),
            write_settle_ms: profile.seek.write_settle.as_millis_f64(),
            zero_latency: [profile.access.zero_latency_read, profile.access.zero_latency_write],
            cache_enabled: profile.cache.enabled,
            cache_bytes: u64::from(profile.cache.segments) * self.segment_bytes(),
            bus_mb_s: self.bus_mb_s(),
            queue_depth: profile.queue.depth,
            firmware: self.firmware(),
            noise: !profile.noise.is_off(),
            provenance: &profile.provenance,
            trust: self.trust(),
        }
    }
}

pub(super) fn list(args: &List, context: &mut Context<'_>) -> Result<(), Fault> {
    let shipped = profile::shipped().iter();
    let shipped = shipped.map(|shipped| Summary::new(shipped.profile()));
    let shipped: Vec<Summary> = shipped.collect();
    if args.format == TextFormat::Json {
        let all: Vec<_> = shipped.iter().map(Summary::json).collect();
        return output::json(context.out, &all);
    }
    let each = |show: fn(&Summary) -> String| shipped.iter().map(show);
    let rates = |drive: &Summary| {
        let [fast, slow] = drive.media_mb_s();
        format!("{fast:.0}-{slow:.0}")
    };
    let columns = vec![
        TableColumn::words("name", each(|drive| drive.profile.name.clone())),
        TableColumn::numbers("capacity", each(Summary::capacity)),
        TableColumn::numbers("rpm", each(|drive| drive.profile.rotation.rpm.to_string())),
        TableColumn::numbers(
            "heads",
            each(|drive| drive.profile.geometry.heads.to_string()),
        ),
        TableColumn::numbers("seek ms", each(|drive| format!("{:.2}", drive.seeks()[1]))),
        TableColumn::numbers("MB/s", each(rates)),
        TableColumn::numbers("depth", each(|drive| drive.profile.queue.depth.to_string())),
        TableColumn::words("firmware", each(|drive| drive.firmware().to_owned())),
        TableColumn::words("model", each(|drive| drive.profile.model.clone())),
    ];
    let text = table(&columns, context.terminal);
    context.print(&text)?;
    let native = shipped
        .iter()
        .filter(|drive| drive.profile.native().is_ok());
    let native: Vec<&str> = native.map(|drive| &*drive.profile.name).collect();
    context.print(&format!(
        "\nseek: a third of the cylinders; MB/s: what passes under the head, outermost and innermost \
         zone.\nNAME-4kn, the same with sectors of 4 KiB for the host too, is there of {}.\n\
         More about one: headtime drive show NAME\n",
        native.join(", ")
    ))
}

pub(super) fn show(args: &Show, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.one_drive(&args.drive, args.one.as_deref())?;
    match args.format {
        ShowFormat::Toml => context.print(&profile.to_toml()),
        ShowFormat::Json => output::json(context.out, &Summary::new(profile).json()),
        ShowFormat::Table => context.print(&describe(&Summary::new(profile))),
    }
}

/// Describes the criteria of the firmware other than positions and age.
fn beside_position(queue: &QueueSpec) -> String {
    let mut text = match queue.stream_cap {
        Nanos::ZERO => ", stays with no stream".to_owned(),
        cap => format!(", stays with a stream for {cap}"),
    };
    if !queue.stream_hold.is_zero() {
        text += &format!(", waits {} for its next read", queue.stream_hold);
    }
    if queue.oldest_every > 0 {
        let (every, age) = (queue.oldest_every, queue.oldest_age);
        text += &format!(", one choice of {every} is the oldest from {age} on");
    }
    if queue.ncq_prio {
        text += ", commands of high priority first";
    }
    text
}

fn describe(summary: &Summary) -> String {
    let profile = &summary.profile;
    let (geometry, layout, seek) = (&profile.geometry, &profile.layout, &profile.seek);
    let on_off = |flag: bool| if flag { "on" } else { "off" };
    let ms = |value: f64| format!("{value:.3} ms");
    let sector_bytes = geometry.sector_bytes;
    let mut sectors = format!("{} of {sector_bytes} bytes", geometry.capacity.get());
    if sector_bytes != geometry.physical_sector_bytes {
        let bytes = geometry.physical_sector_bytes;
        sectors.push_str(&format!(", {bytes} on the medium"));
    }
    let [outer, inner] = summary.tracks();
    let [fast, slow] = summary.media_mb_s();
    let speed = |speed: Option<f64>| {
        speed.map_or_else(|| "no time".to_owned(), |speed| format!("{speed:.1} MB/s"))
    };
    let bus = match summary.bus_mb_s() {
        [None, None] => "takes no time".to_owned(),
        [read, write] if read == write => speed(read),
        [read, write] => format!("reads {}, writes {}", speed(read), speed(write)),
    };
    let order = match profile.queue.policy {
        FirmwarePolicy::Fifo => "in their order".to_owned(),
        FirmwarePolicy::Sptf { margin, age_cap } => {
            let cap = age_cap.map(|cap| format!(", none waits longer than {cap}"));
            let cap = cap.unwrap_or_default();
            let more = beside_position(&profile.queue);
            format!("shortest positioning time first, margin {margin}{cap}{more}")
        }
    };
    let turn = profile.rotation.turn().as_millis_f64();
    let spares = layout.sparing_word();
    let spares = spares.map_or_else(String::new, |sparing| format!(", spares {sparing}"));
    let [single, third, full] = summary.seeks().map(ms);
    let settle = seek.write_settle.as_millis_f64();
    let more = if settle < 0.0 { "less" } else { "more" };
    let (read, write) = (
        profile.access.zero_latency_read,
        profile.access.zero_latency_write,
    );
    let lines = [
        ("name", profile.name.clone()),
        ("model", profile.model.clone()),
        ("capacity", summary.capacity()),
        ("sectors", sectors),
        (
            "rotation",
            format!("{} rpm, {turn:.3} ms a revolution", profile.rotation.rpm),
        ),
        (
            "geometry",
            format!(
                "{} cylinders, {} heads, {} zones",
                geometry.cylinders,
                geometry.heads,
                layout.zone_count()
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
                "{}{spares}, {} slipped, {} remapped",
                layout.order_word(),
                layout.slipped(),
                layout.remapped()
            ),
        ),
        (
            "seek",
            format!("{single} one cylinder, {third} a third, {full} all"),
        ),
        (
            "switch",
            format!(
                "{} head switch, {} {more} to settle before a write",
                ms(seek.head_switch.as_millis_f64()),
                ms(settle.abs())
            ),
        ),
        (
            "access",
            format!(
                "zero latency: reads {}, writes {}",
                on_off(read),
                on_off(write)
            ),
        ),
        (
            "cache",
            format!(
                "{}, {} segments of {}",
                on_off(profile.cache.enabled),
                profile.cache.segments,
                Bytes(summary.segment_bytes())
            ),
        ),
        ("bus", bus),
        (
            "queue",
            format!("{} commands, {order}", profile.queue.depth),
        ),
        ("noise", on_off(!profile.noise.is_off()).to_owned()),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:12}{value}\n"));
    }
    text.push_str("\nWhere the values come from\n");
    for line in profile.provenance.trim().lines() {
        text.push_str(&format!("  {line}\n"));
    }
    let trust = summary.trust();
    let width = trust.iter().map(|(key, _)| key.len()).max().unwrap_or(0) + 2;
    for (key, trust) in trust {
        text.push_str(&format!("  {key:width$}{trust}\n"));
    }
    text
}

pub(super) fn import(args: &Import, context: &mut Context<'_>) -> Result<(), Fault> {
    let Some(block_bytes) = [256, 512, 4096]
        .into_iter()
        .find(|size| args.sector == Bytes(u64::from(*size)))
    else {
        let sector = args.sector;
        return Err(Fault::Usage(format!(
            "--sector {sector}: allowed are 256B, 512B and 4KiB"
        )));
    };
    let choice = drives::Choice {
        drive: args.one.clone(),
        block_bytes,
    };
    let (profile, findings) = drives::import(&args.parv, &choice)?;
    context.found(&findings);
    let text = profile.to_toml();
    match &args.out {
        Some(path) => Output::write_all_of(path, &text),
        None => context.print(&text),
    }
}

/// Compares a model with measurements of its drive.
pub(super) fn validate(args: &Validate, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.one_drive(&args.profile, args.one.as_deref())?;
    let file = args.trace.shown().to_string();
    let content = fs::read(&args.trace).map_err(|error| Fault::reading(&args.trace, &error))?;
    let text = String::from_utf8_lossy(&content);
    let trace = compare::parse(&file, &text).map_err(Fault::input)?;
    let found = compare::validate(&profile, &file, &trace).map_err(Fault::input)?;
    let [measured, modelled, demerit] =
        [found.measured_ms, found.modelled_ms, found.demerit_ms].map(|ms| round(ms, 6));
    if args.format == TextFormat::Json {
        let validated = object! {
            drive: &profile.name,
            requests: found.requests,
            mean_ms: object! { measured: measured, modelled: modelled },
            demerit_ms: demerit,
        };
        return output::json(context.out, &validated);
    }
    let share = 100.0 * demerit / measured;
    let number = |heading, cell: String| TableColumn::numbers(heading, std::iter::once(cell));
    let columns = vec![
        TableColumn::words("drive", std::iter::once(profile.name.clone())),
        number("requests", found.requests.to_string()),
        number("measured mean ms", format!("{measured:.3}")),
        number("modelled mean ms", format!("{modelled:.3}")),
        number("demerit ms", format!("{demerit:.3}")),
        number("% of mean", format!("{share:.1}")),
    ];
    context.print(&table(&columns, context.terminal))
}
