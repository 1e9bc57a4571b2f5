//! `headtime drive probe --quick`

use super::super::curve;
use super::device::{device, remote};
use super::sparse::sparse;
use crate::args::{Emit, Probe, TextFormat};
use crate::commands::compare;
use crate::commands::context::Context;
use crate::object::object;
use crate::plot::quick::{self as picture, QuickPicture};
use crate::progress::progress;
use headtime_lab::fault::Fault;
use headtime_lab::output::{self, TableColumn, table};
use headtime_lab::progress::Goal;
use headtime_lab::report::round;
use headtime_probe::quick::quick;
use headtime_probe::{Guarded, Learned, Modelled, Quick, QuickOptions};
use headtime_units::{Lba, Nanos, Sectors, Time};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

pub(super) fn probe(args: &Probe, context: &mut Context<'_>) -> Result<(), Fault> {
    let options = QuickOptions {
        time: args.quick_time().map_err(Fault::Usage)?,
        seed: args.seed,
    };
    // Outputs are opened first, since learning is useless if its result cannot be written.
    let picture = args
        .plot
        .as_deref()
        .map(compare::picture_file)
        .transpose()?;
    let learned = match (&args.device, &args.emulate) {
        (Some(path), _) => match remote(path, args.export.as_deref())? {
            Some(mut remote) => learn(&mut remote, &options, context),
            None => learn(&mut device(path, false)?, &options, context),
        },
        (None, emulate) => {
            let profile = context.drive(emulate.as_deref().unwrap_or_default())?;
            learn(&mut Modelled::new(&profile, args.seed), &options, context)
        }
    };
    if let Some(mut file) = picture {
        let written = file.write_all(draw(&learned).as_bytes());
        written.map_err(|error| Fault::writing(file.path(), &error))?;
        file.finish()?;
    }
    match (args.emit, args.format) {
        (Some(what), _) => emit(what, &learned, args.device.as_deref(), context)?,
        (None, TextFormat::Json) => output::json(context.out, &json(&learned))?,
        (None, TextFormat::Table) => {
            let text = describe(&learned, context);
            context.print(&text)?;
        }
    }
    match &learned.obstacle {
        None => Ok(()),
        Some(obstacle) => {
            let name = &learned.drive;
            Err(Fault::Check(format!("{name} was not learned: {obstacle}")))
        }
    }
}

/// Learns a disk without writing to it, and shows the progress.
fn learn(
    probe: &mut impl headtime_probe::Probe,
    options: &QuickOptions,
    context: &Context<'_>,
) -> Quick {
    let progress = progress(context.progress);
    progress.begin(1);
    let mut task = progress.task(Goal::Time(options.time));
    let mut said = "";
    let time = options.time.as_nanos() as f64;
    let mut guarded = Guarded::new(probe, None);
    let learned = quick(&mut guarded, options, &mut |now| {
        if now.part != said {
            said = now.part;
            progress.say(said);
        }
        task.note(Time::from_nanos((now.done * time) as u64), 0);
    });
    progress.end();
    learned
}

fn emit(
    what: Emit,
    learned: &Quick,
    device: Option<&Path>,
    context: &mut Context<'_>,
) -> Result<(), Fault> {
    let text = match what {
        Emit::Ceph => learned.to_ceph(),
        Emit::Curve => learned.curve.as_ref().map(Learned::to_toml),
        Emit::Iocost => {
            let numbers = device.and_then(numbers_of);
            let name = numbers.as_deref().unwrap_or("MAJ:MIN");
            learned.to_iocost(name).map(|(line, notes)| {
                for note in notes {
                    context.note(&note);
                }
                if numbers.is_none() {
                    context.note("MAJ:MIN stands for the numbers of the block device, see lsblk");
                }
                line
            })
        }
    };
    match text {
        Some(text) => context.print(&text),
        // If the reason is known, it is given at the end.
        None if learned.obstacle.is_some() => Ok(()),
        None => Err(Fault::Check(format!(
            "{}: there was too little time for what this takes; --time gives more",
            learned.drive
        ))),
    }
}

/// Number of a block device in the kernel, as `major:minor`. `None` if the path is no block device.
fn numbers_of(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let number = found.rdev();
    let is_block = found.file_type().is_block_device();
    is_block.then(|| {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        format!("{major}:{minor}")
    })
}

fn capacity(learned: &Quick) -> f64 {
    learned.capacity.bytes(learned.sector_bytes) as f64
}

fn place(learned: &Quick, place: Lba) -> f64 {
    Sectors::new(place.get()).bytes(learned.sector_bytes) as f64
}

fn json(learned: &Quick) -> impl serde::Serialize {
    let ms = |time: Nanos| round(time.as_millis_f64(), 6);
    let rates = learned.rates.iter().map(|rate| {
        object! {
            place_bytes: place(learned, rate.place),
            bytes_per_second: round(rate.bytes_per_second, 0),
            sectors_per_turn: sectors_per_turn(learned, rate.bytes_per_second).map(|sectors| round(sectors, 1)),
        }
    });
    let random = learned.random.iter().map(|reads| {
        object! {
            depth: reads.depth,
            reads: reads.reads,
            iops: round(reads.iops, 3),
            mean_ms: ms(reads.mean),
            p99_ms: ms(reads.most),
        }
    });
    object! {
        version: env!("CARGO_PKG_VERSION"),
        drive: &learned.drive,
        capacity_bytes: learned.capacity.bytes(learned.sector_bytes),
        sector_bytes: learned.sector_bytes,
        depth: learned.depth,
        seed: learned.options.seed,
        time_s: learned.options.time.as_secs_f64(),
        took_s: round(learned.took.as_secs_f64(), 6),
        reads: learned.reads,
        obstacle: learned.obstacle.as_ref().map(ToString::to_string),
        rotation: learned.rotation.map(|rotation| object! {
            rpm: round(rotation.rpm(), 4),
            turn_ms: round(rotation.turn_ns / 1e6, 9),
            error_ppm: round(rotation.error * 1e6, 3),
            agree: round(rotation.agree, 6),
            reads: rotation.reads,
        }),
        bandwidth: rates.collect::<Vec<_>>(),
        sequential_4kib_iops: learned.small_sequential.map(|iops| round(iops, 3)),
        random_4kib: random.collect::<Vec<_>>(),
        curve: learned.curve.as_ref().map(curve::points),
    }
}

/// Sectors that pass under the head in a turn at a rate of `bytes_per_second`. The rate includes skews, so tracks have at least this
/// number of sectors. `None` if the speed of rotation is unknown.
fn sectors_per_turn(learned: &Quick, bytes_per_second: f64) -> Option<f64> {
    let rotation = learned.rotation?;
    Some(bytes_per_second * rotation.turn_ns / 1e9 / f64::from(learned.sector_bytes))
}

/// Returns the page.
fn describe(learned: &Quick, context: &Context<'_>) -> String {
    let mut text = format!(
        "{} · {} · {} reads in {:.0} s · seed {}\n\n",
        learned.drive,
        curve::size(learned.capacity, learned.sector_bytes),
        learned.reads,
        learned.took.as_secs_f64(),
        learned.options.seed
    );
    for (name, value) in lines(learned) {
        text.push_str(&format!("{name:12}{value}\n"));
    }
    if !learned.rates.is_empty() {
        let some = sparse(&learned.rates);
        let mut columns = vec![
            TableColumn::numbers(
                "place",
                some.iter()
                    .map(|rate| curve::size(Sectors::new(rate.place.get()), learned.sector_bytes)),
            ),
            TableColumn::numbers(
                "MB/s",
                some.iter()
                    .map(|rate| format!("{:.1}", rate.bytes_per_second / 1e6)),
            ),
        ];
        let tracks: Option<Vec<f64>> = some
            .iter()
            .map(|rate| sectors_per_turn(learned, rate.bytes_per_second))
            .collect();
        if let Some(tracks) = tracks {
            let tracks = tracks.iter().map(|sectors| format!("{sectors:.0}"));
            columns.push(TableColumn::numbers("sectors a turn", tracks));
        }
        text.push_str("\nSequential bandwidth by place\n");
        text.push_str(&table(&columns, context.terminal));
    }
    if let Some(found) = &learned.curve {
        let some = sparse(found.points());
        let columns = [
            TableColumn::numbers(
                "distance",
                some.iter()
                    .map(|point| curve::size(point.distance, learned.sector_bytes)),
            ),
            TableColumn::numbers(
                "ms",
                some.iter()
                    .map(|point| format!("{:.2}", point.fit.as_millis_f64())),
            ),
        ];
        text.push_str("\nTime of a read of 4 KiB by its distance from the one before\n");
        text.push_str(&table(&columns, context.terminal));
    }
    if let Some(obstacle) = &learned.obstacle {
        text.push_str(&format!("\nNot all was learned: {obstacle}\n"));
    }
    text
}

/// Known facts, by name.
fn lines(learned: &Quick) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(rotation) = &learned.rotation {
        let ppm = (rotation.error * 1e6).max(0.1);
        lines.push((
            "rotation",
            format!(
                "{:.2} turns a minute, {:.4} ms each, to {ppm:.1} millionths",
                rotation.rpm(),
                rotation.turn_ns / 1e6
            ),
        ));
    }
    if let Some([fastest, slowest]) = learned.fastest_and_slowest() {
        let (high, low) = (fastest / 1e6, slowest / 1e6);
        let percent = 100.0 * slowest / fastest;
        lines.push((
            "sequential",
            format!(
                "{high:.1} MB/s where it is fastest, {low:.1} where it is slowest ({percent:.0} %)"
            ),
        ));
        if let (Some(slowest), Some(fastest)) = (
            sectors_per_turn(learned, slowest),
            sectors_per_turn(learned, fastest),
        ) {
            lines.push((
                "a turn",
                format!(
                    "brings {slowest:.0} to {fastest:.0} sectors of {} bytes; tracks have as many or more",
                    learned.sector_bytes
                ),
            ));
        }
    }
    if let Some(small) = learned.small_sequential {
        lines.push((
            "small reads",
            format!("{small:.0} of 4 KiB a second in sequence"),
        ));
    }
    for (number, reads) in learned.random.iter().enumerate() {
        let name = if number == 0 { "random" } else { "" };
        let depth = match reads.depth {
            1 => "one at a time".to_owned(),
            depth => format!("{depth} at a time"),
        };
        let ms = |time: Nanos| time.as_millis_f64();
        let gain = match learned.random.first() {
            Some(first) if number > 0 => {
                format!(": {:.2} times as many", reads.iops / first.iops)
            }
            _ => String::new(),
        };
        lines.push((
            name,
            format!(
                "{:.1} of 4 KiB a second {depth}{gain}; {:.2} ms each, 99 % below {:.1}",
                reads.iops,
                ms(reads.mean),
                ms(reads.most)
            ),
        ));
    }
    lines
}

fn draw(learned: &Quick) -> String {
    let words = lines(learned).into_iter().map(|(name, value)| match name {
        "" => value,
        name => format!("{name}: {value}"),
    });
    let mut subtitle = words.collect::<Vec<_>>().join("\n");
    if let Some(obstacle) = &learned.obstacle {
        subtitle.push_str(&format!("\nNot all was learned: {obstacle}"));
    }
    let rates = learned.rates.iter();
    picture::draw(&QuickPicture {
        title: format!(
            "{}, {}",
            learned.drive,
            curve::size(learned.capacity, learned.sector_bytes)
        ),
        subtitle,
        capacity: capacity(learned),
        rates: rates
            .map(|rate| (place(learned, rate.place), rate.bytes_per_second / 1e6))
            .collect(),
        curve: learned.curve.as_ref().map(curve::picture),
    })
}
