//! A learned curve as TOML text.

use super::{
    CurveOptions, DISTANCES_MAX, Learned, Origin, PAUSE_MAX, Point, REQUEST_MAX, TIME_MAX,
};
use headtime_config::{
    Comment, Place, Table, bounded, number, parse, read, rows, to_text_with, verbatim, whole,
};
use headtime_sched::ServiceCurve;
use headtime_units::{Bytes, Millionths, Nanos, Sectors};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Error in the text of a curve: problem and place.
pub type CurveFileError = headtime_config::Error;

const COMMENTS: [Comment; 3] = [
    (
        "",
        "The service time of a request by its distance from the one before.",
    ),
    (
        "curve.backward",
        "What a backward access costs more: a factor, not measured.",
    ),
    (
        "curve.points_us",
        "Distance in sectors (end of the one to start of the other); the curve; mean and standard\n\
         deviation of what was measured, all in us; how many samples.",
    ),
];

#[derive(Deserialize, Serialize)]
struct CurveText {
    /// Version of the text form.
    #[serde(deserialize_with = "whole::<_, _, 1, 1>")]
    version: u32,
    provenance: Provenance,
    curve: Curve,
}

#[derive(Deserialize, Serialize)]
struct Provenance {
    drive: String,
    program: String,
    #[serde(deserialize_with = "whole::<_, _, 1, { i64::MAX as u64 }>")]
    capacity_sectors: u64,
    #[serde(deserialize_with = "sector")]
    sector: Bytes,
    #[serde(deserialize_with = "request")]
    request: Bytes,
    #[serde(deserialize_with = "whole::<_, _, 8, 1000>")]
    distances: u32,
    #[serde(deserialize_with = "whole::<_, _, 8, 100000>")]
    samples: u32,
    #[serde(deserialize_with = "pause_max")]
    pause_max: Nanos,
    /// The seed is in quotes because TOML has integers of 63 bits.
    #[serde(serialize_with = "quoted", deserialize_with = "seed")]
    seed: u64,
    dropped: u64,
}

#[derive(Deserialize, Serialize)]
struct Curve {
    #[serde(deserialize_with = "backward")]
    backward: Millionths,
    #[serde(serialize_with = "rows")]
    points_us: Vec<CurveRow>,
}

#[derive(Deserialize, Serialize)]
#[serde(
    rename = "[]",
    expecting = "[distance, curve, mean, deviation, samples], the times in us"
)]
struct CurveRow {
    distance: u64,
    fit: Micros,
    mean: Micros,
    sd: Micros,
    samples: u32,
}

/// A time as a number of microseconds, to the nanosecond.
#[derive(Clone, Copy)]
struct Micros(Nanos);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Micros, D::Error> {
        const TIME_US_MAX: i64 = TIME_MAX.as_nanos() as i64 / 1_000;
        let micros: f64 = number::<_, _, 0, TIME_US_MAX>(from)?;
        Ok(Micros(Nanos::from_nanos(
            libm::round(micros * 1_000.0) as u64
        )))
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (whole, rest) = (self.0.as_nanos() / 1_000, self.0.as_nanos() % 1_000);
        verbatim(&format_args!("{whole}.{rest:03}"), to)
    }
}

fn sector<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    bounded(from, Bytes(1), Bytes(64 << 10))
}

fn request<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    bounded(from, Bytes(512), Bytes(REQUEST_MAX))
}

fn pause_max<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    bounded(from, Nanos::ZERO, PAUSE_MAX)
}

fn backward<'de, D: Deserializer<'de>>(from: D) -> Result<Millionths, D::Error> {
    bounded(from, Millionths::ONE, Millionths(100_000_000))
}

fn seed<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    parse(from, "a whole number in quotes, such as \"1\"", str::parse)
}

fn quoted<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(seed)
}

impl Learned {
    /// Text form: TOML, without the single samples.
    pub fn to_toml(&self) -> String {
        let origin = &self.origin;
        let options = &origin.options;
        let row = |point: &Point| CurveRow {
            distance: point.distance.get(),
            fit: Micros(point.fit),
            mean: Micros(point.mean),
            sd: Micros(point.sd),
            samples: point.samples,
        };
        let text = CurveText {
            version: 1,
            provenance: Provenance {
                drive: origin.drive.clone(),
                program: origin.program.clone(),
                capacity_sectors: origin.capacity.get(),
                sector: Bytes(origin.sector_bytes.into()),
                request: options.request,
                distances: options.distances,
                samples: options.samples,
                pause_max: options.pause_max,
                seed: options.seed,
                dropped: origin.dropped,
            },
            curve: Curve {
                backward: options.backward,
                points_us: self.points.iter().map(row).collect(),
            },
        };
        to_text_with(&text, &COMMENTS, &[])
    }

    /// Reads the text form; `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// If [`Learned::to_toml`] could not have written the text.
    pub fn from_toml(file: &str, text: &str) -> Result<Learned, CurveFileError> {
        let (table, place) = (Table::parse(file, text)?, Place::line(file, 1));
        let text: CurveText = read(&table, &place)?;
        let points = points(&text.curve.points_us).map_err(|error| error.within(&table, &place))?;
        let from = text.provenance;
        let pairs = points.iter().map(|point| (point.distance, point.fit));
        // The requirements have been checked point by point.
        ServiceCurve::new(pairs.collect(), text.curve.backward).expect("the points are in order");
        Ok(Learned {
            origin: Origin {
                drive: from.drive,
                program: from.program,
                capacity: Sectors::new(from.capacity_sectors),
                sector_bytes: from.sector.0 as u32,
                options: CurveOptions {
                    distances: from.distances,
                    samples: from.samples,
                    request: from.request,
                    pause_max: from.pause_max,
                    seed: from.seed,
                    backward: text.curve.backward,
                },
                dropped: from.dropped,
            },
            points,
            samples: Vec::new(),
        })
    }
}

/// Checks the points: each must be farther than the previous point and no cheaper.
fn points(rows: &[CurveRow]) -> Result<Vec<Point>, CurveFileError> {
    let error = |key: String, problem: &str| CurveFileError::new(Place::NoText, key, problem);
    // More distances are not useful, and a curve is searched point by point.
    if !(1..=DISTANCES_MAX as usize).contains(&rows.len()) {
        let problem = format!("has {} points; allowed is 1 to {DISTANCES_MAX}", rows.len());
        return Err(error("curve.points_us".to_owned(), &problem));
    }
    let mut points: Vec<Point> = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let point = Point {
            distance: Sectors::new(row.distance),
            fit: row.fit.0,
            mean: row.mean.0,
            sd: row.sd.0,
            samples: row.samples,
        };
        let wrong = match points.last() {
            _ if point.fit.is_zero() || point.mean.is_zero() => {
                Some("its curve and its mean must be above 0")
            }
            None if point.distance != Sectors::ZERO => {
                Some("the first point must be at distance 0")
            }
            Some(last) if point.distance <= last.distance => {
                Some("its distance must be larger than that of the point before")
            }
            Some(last) if point.fit < last.fit => {
                Some("its time must not be shorter than that of the point before")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(error(format!("curve.points_us[{index}]"), wrong));
        }
        points.push(point);
    }
    Ok(points)
}
