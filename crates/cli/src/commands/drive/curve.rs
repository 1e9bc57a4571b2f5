//! `headtime drive curve`

use crate::args::Curve;
use crate::args::Format;
use crate::commands::context::Context;
use crate::commands::{columnar, compare};
use crate::object::object;
use crate::plot;
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use headtime_lab::output::{self, TableColumn, table};
use headtime_lab::report::field::Fields;
use headtime_lab::report::round;
use headtime_probe::curve::Origin;
use headtime_probe::{CurveOptions, Learned, Modelled, learn};
use headtime_units::{Nanos, Sectors};
use std::io::Write;

/// Approximate number of lines of a table.
const LINES: usize = 24;

/// Values of each distance, for JSON and CSV.
pub(super) fn points(learned: &Learned) -> Vec<Fields<'static>> {
    let bytes = learned.origin().sector_bytes;
    let ms = |time: Nanos| round(time.as_millis_f64(), 6).into();
    let each = learned.points().iter().map(|point| {
        Fields(vec![
            ("distance_sectors", point.distance.get().into()),
            ("distance_bytes", point.distance.bytes(bytes).into()),
            ("mean_ms", ms(point.mean)),
            ("sd_ms", ms(point.sd)),
            ("samples", point.samples.into()),
            ("curve_ms", ms(point.fit)),
        ])
    });
    each.collect()
}

pub(in crate::commands) fn curve(args: &Curve, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.one_drive(&args.drive, args.one.as_deref())?;
    columnar::check(args.format)?;
    // Outputs are opened first, since learning is useless if its result cannot be written.
    let picture = args.plot.as_deref().map(compare::picture_file);
    let picture = picture.transpose()?;
    let file = args.out.as_deref().map(Output::create).transpose()?;
    let options = CurveOptions {
        samples: args.samples,
        seed: args.seed,
        ..CurveOptions::default()
    };
    let mut probe = Modelled::new(&profile, args.seed);
    let learned = learn(&mut probe, &options).map_err(Fault::input)?;
    for (file, text) in [
        (file, Learned::to_toml as fn(&Learned) -> String),
        (picture, draw),
    ] {
        if let Some(mut file) = file {
            let written = file.write_all(text(&learned).as_bytes());
            written.map_err(|error| Fault::writing(file.path(), &error))?;
            file.finish()?;
        }
    }
    match args.format {
        Format::Table => {
            let text = describe(&learned, context);
            context.print(&text)
        }
        Format::Json => {
            let origin = learned.origin();
            let shown = object! {
                version: env!("CARGO_PKG_VERSION"),
                drive: &origin.drive,
                seed: origin.options.seed,
                samples: origin.options.samples,
                dropped: origin.dropped,
                request_bytes: origin.options.request.0,
                pause_max_ms: origin.options.pause_max.as_millis_f64(),
                backward: origin.options.backward.0 as f64 / 1e6,
                spread: round(learned.spread(), 6),
                points: points(&learned),
            };
            output::json(context.out, &shown)
        }
        Format::Csv => context.print(&Fields::csv(&points(&learned))),
        Format::Parquet => {
            let seed = Some(learned.origin().options.seed);
            let file = columnar::file_of(points(&learned).into_iter(), seed, "")?;
            let written = context.out.write_all(&file);
            written.map_err(|error| Fault::output(&error))
        }
    }
}

/// Describes the measurement in a line.
fn summary(origin: &Origin, distances: usize) -> String {
    let options = &origin.options;
    format!(
        "{} · {distances} distances, {} reads of {} each · seed {}",
        origin.drive, options.samples, options.request, options.seed
    )
}

fn describe(learned: &Learned, context: &Context<'_>) -> String {
    let origin = learned.origin();
    let all = learned.points();
    // The first distance, some in between, and the last.
    let step = all.len().div_ceil(LINES).max(1);
    let last = all.len() - 1;
    let some: Vec<_> = all
        .iter()
        .enumerate()
        .filter(|(index, _)| (last - index).is_multiple_of(step) || *index == 0)
        .map(|(_, point)| point)
        .collect();
    let ms = |time: Nanos| format!("{:.3}", time.as_millis_f64());
    let columns = vec![
        TableColumn::numbers(
            "distance",
            some.iter()
                .map(|point| size(point.distance, origin.sector_bytes)),
        ),
        TableColumn::numbers(
            "sectors",
            some.iter().map(|point| point.distance.get().to_string()),
        ),
        TableColumn::numbers("mean ms", some.iter().map(|point| ms(point.mean))),
        TableColumn::numbers("sd ms", some.iter().map(|point| ms(point.sd))),
        TableColumn::numbers("curve ms", some.iter().map(|point| ms(point.fit))),
    ];
    let mut text = format!("{}\n\n", summary(origin, all.len()));
    text.push_str(&table(&columns, context.terminal));
    text.push_str(&format!(
        "\nmean and sd: the timed reads; curve: what a scheduler goes by, {:.1} % from the means (root \
         mean square).\nBackward accesses count {} times as much. ",
        100.0 * learned.spread(),
        origin.options.backward
    ));
    if origin.dropped > 0 {
        text.push_str(&format!(
            "{} reads took far too long and were left out. ",
            origin.dropped
        ));
    }
    text.push_str("All distances: --format csv, or --plot\n");
    text
}

/// Formats a distance in bytes with three digits.
pub(super) fn size(distance: Sectors, sector_bytes: u32) -> String {
    let bytes = distance.bytes(sector_bytes) as f64;
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let Some((scale, unit)) = units.into_iter().find(|(scale, _)| bytes >= *scale) else {
        return format!("{bytes} B");
    };
    let value = bytes / scale;
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

fn draw(learned: &Learned) -> String {
    plot::curve::draw(&picture(learned))
}

/// Makes the picture of a learned curve.
pub(super) fn picture(learned: &Learned) -> plot::curve::CurvePicture {
    let origin = learned.origin();
    let bytes = |distance: Sectors| distance.bytes(origin.sector_bytes) as f64;
    let points = learned
        .points()
        .iter()
        .map(|point| plot::curve::CurvePoint {
            distance: bytes(point.distance),
            mean: point.mean.as_millis_f64(),
            curve: point.fit.as_millis_f64(),
        });
    let samples = learned
        .samples()
        .iter()
        .map(|sample| (bytes(sample.distance), sample.time.as_millis_f64()));
    plot::curve::CurvePicture {
        subtitle: format!(
            "{} · {:.1} % from the means (root mean square)",
            summary(origin, learned.points().len()),
            100.0 * learned.spread()
        ),
        points: points.collect(),
        samples: samples.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_three_digits() {
        for (sectors, text) in [
            (0, "0 B"),
            (1, "512 B"),
            (8, "4.10 kB"),
            (195, "99.8 kB"),
            (1_950, "998 kB"),
            (1_953_125, "1.00 GB"),
            (195_312_500, "100 GB"),
            (32_213_649_679, "16.5 TB"),
        ] {
            assert_eq!(size(Sectors::new(sectors), 512), text);
        }
    }
}
