//! A learned curve as TOML text.

use super::{
    CurveOptions, DISTANCES_MAX, Learned, Origin, PAUSE_MAX, Point, REQUEST_MAX, SAMPLES_MAX,
    TIME_MAX,
};
use headtime_sched::ServiceCurve;
use headtime_units::{Bytes, Millionths, Nanos, Sectors, nearest};
use std::fmt;
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};

/// The version of the text form that is written and read.
const VERSION: u64 = 1;

/// Why a text is no learned curve: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveFileError {
    /// The name given for the text.
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// The key as the text spells it, such as `curve.points_us[3]`.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with the text of a curve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that means nothing.
    #[error("unknown key{}", .suggestion.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key that may have been meant.
        suggestion: Option<&'static str>,
    },
    /// A key that has to be there.
    #[error("missing; it is {allowed}")]
    Missing {
        /// What it should hold.
        allowed: String,
    },
    /// A value of the wrong kind, or outside its range.
    #[error("{found} is not allowed; allowed is {allowed}")]
    Value { found: String, allowed: String },
    /// A point that is not farther than the one before, or costs less.
    #[error("{0}")]
    Order(String),
}

impl fmt::Display for CurveFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for CurveFileError {}

impl Learned {
    /// The text form: TOML, without the single samples.
    pub fn to_toml(&self) -> String {
        let origin = &self.origin;
        let options = &origin.options;
        let mut text = format!(
            "# The service time of a request by its distance from the one before.\n\
             version = {VERSION}\n\
             \n\
             [provenance]\n\
             drive = {}\n\
             program = {}\n\
             capacity_sectors = {}\n\
             sector = \"{}\"\n\
             request = \"{}\"\n\
             distances = {}\n\
             samples = {}\n\
             pause_max = \"{}\"\n\
             seed = {}\n\
             dropped = {}\n\
             \n\
             [curve]\n\
             # What a backward access costs more: a factor, not measured.\n\
             backward = {}\n\
             # Distance in sectors (end of the one to start of the other); the curve; mean and standard\n\
             # deviation of what was measured, all in us; how many samples.\n\
             points_us = [\n",
            quoted(&origin.drive),
            quoted(&origin.program),
            origin.capacity.get(),
            Bytes(origin.sector_bytes.into()),
            options.request,
            options.distances,
            options.samples,
            options.pause_max,
            // TOML has integers of 63 bits.
            quoted(&options.seed.to_string()),
            origin.dropped,
            quoted(&options.backward.to_string()),
        );
        for point in &self.points {
            text.push_str(&format!(
                "    [{}, {}, {}, {}, {}],\n",
                point.distance.get(),
                micros(point.fit),
                micros(point.mean),
                micros(point.sd),
                point.samples
            ));
        }
        text.push_str("]\n");
        text
    }

    /// Reads the text form; `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// If the text is not one that [`Learned::to_toml`] could have written.
    pub fn from_toml(file: &str, text: &str) -> Result<Learned, CurveFileError> {
        let reader = Reader { file, text };
        let root = DeTable::parse(text).map_err(|error| CurveFileError {
            file: file.to_owned(),
            line: error.span().map(|span| reader.line(span.start)),
            key: None,
            problem: Problem::Syntax(error.message().to_owned()),
        })?;
        let root_line = 1;
        let root = Table {
            reader: &reader,
            path: "",
            line: root_line,
            table: root.get_ref(),
        };
        root.only(&["version", "provenance", "curve"])?;
        root.integer("version", VERSION..=VERSION)?;
        let from = root.table("provenance")?;
        from.only(&[
            "drive",
            "program",
            "capacity_sectors",
            "sector",
            "request",
            "distances",
            "samples",
            "pause_max",
            "seed",
            "dropped",
        ])?;
        let curve = root.table("curve")?;
        curve.only(&["backward", "points_us"])?;
        let origin = Origin {
            drive: from.text("drive", "a name in quotes")?.to_owned(),
            program: from.text("program", "a name in quotes")?.to_owned(),
            capacity: Sectors::new(from.integer("capacity_sectors", 1..=i64::MAX as u64)?),
            sector_bytes: from
                .unit("sector", "\"1B\" to \"64KiB\"", |bytes: &Bytes| {
                    (1..=65_536).contains(&bytes.0)
                })?
                .0 as u32,
            options: CurveOptions {
                distances: from.integer("distances", 8..=DISTANCES_MAX.into())? as u32,
                samples: from.integer("samples", 8..=SAMPLES_MAX.into())? as u32,
                request: from.unit("request", "\"512B\" to \"16MiB\"", |bytes: &Bytes| {
                    (512..=REQUEST_MAX).contains(&bytes.0)
                })?,
                pause_max: from.unit("pause_max", "\"0s\" to \"10s\"", |span: &Nanos| {
                    *span <= PAUSE_MAX
                })?,
                seed: from.seed()?,
                backward: curve.unit("backward", "\"1\" to \"100\"", |factor: &Millionths| {
                    (1_000_000..=100_000_000).contains(&factor.0)
                })?,
            },
            dropped: from.integer("dropped", 0..=i64::MAX as u64)?,
        };
        let points = curve.points("points_us")?;
        let pairs = points.iter().map(|point| (point.distance, point.fit));
        // What it asks for has been checked point by point.
        ServiceCurve::new(pairs.collect(), origin.options.backward)
            .expect("the points are in order");
        Ok(Learned {
            origin,
            points,
            samples: Vec::new(),
        })
    }
}

/// Microseconds with as many places as nanoseconds need.
fn micros(span: Nanos) -> String {
    let (whole, rest) = (span.as_nanos() / 1_000, span.as_nanos() % 1_000);
    format!("{whole}.{rest:03}")
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A text and its name.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    /// The line of an offset, from 1.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    fn error(&self, line: usize, key: String, problem: Problem) -> CurveFileError {
        CurveFileError {
            file: self.file.to_owned(),
            line: Some(line),
            key: Some(key),
            problem,
        }
    }
}

/// A table of the text, and where it stands.
struct Table<'a> {
    reader: &'a Reader<'a>,
    path: &'static str,
    line: usize,
    table: &'a DeTable<'a>,
}

/// A value as an error shows it.
fn shown(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn integer(value: &DeValue) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A time in microseconds, to the nanosecond.
fn time(value: &DeValue) -> Option<Nanos> {
    let micros = match value {
        DeValue::Float(number) => number.as_str().parse().ok()?,
        value => integer(value)? as f64,
    };
    let most = TIME_MAX.as_micros_f64();
    (0.0..=most)
        .contains(&micros)
        .then(|| Nanos::from_nanos(libm::round(micros * 1_000.0) as u64))
}

impl<'a> Table<'a> {
    fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Fails on any other key, the first in the text.
    fn only(&self, known: &[&'static str]) -> Result<(), CurveFileError> {
        let unknown = self
            .table
            .iter()
            .map(|(key, _)| key)
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = unknown else {
            return Ok(());
        };
        let name: &str = key.get_ref();
        let suggestion = nearest(name, known.iter().copied());
        Err(self.reader.error(
            self.reader.line(key.span().start),
            self.key(name),
            Problem::UnknownKey { suggestion },
        ))
    }

    /// The value of a key and its line.
    fn get(&self, key: &str, allowed: &str) -> Result<(&'a DeValue<'a>, usize), CurveFileError> {
        let found = self.table.iter().find(|(name, _)| name.get_ref() == key);
        match found {
            Some((_, value)) => Ok((value.get_ref(), self.reader.line(value.span().start))),
            None => Err(self.reader.error(
                self.line,
                self.key(key),
                Problem::Missing {
                    allowed: allowed.to_owned(),
                },
            )),
        }
    }

    fn value_error(
        &self,
        line: usize,
        key: &str,
        found: &DeValue,
        allowed: &str,
    ) -> CurveFileError {
        self.reader.error(
            line,
            self.key(key),
            Problem::Value {
                found: shown(found),
                allowed: allowed.to_owned(),
            },
        )
    }

    fn table(&self, key: &'static str) -> Result<Table<'a>, CurveFileError> {
        let (value, line) = self.get(key, "a table")?;
        let table = value
            .as_table()
            .ok_or_else(|| self.value_error(line, key, value, "a table"))?;
        Ok(Table {
            reader: self.reader,
            path: key,
            line,
            table,
        })
    }

    fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, CurveFileError> {
        let allowed = if range.start() == range.end() {
            range.start().to_string()
        } else {
            format!("an integer from {} to {}", range.start(), range.end())
        };
        let (value, line) = self.get(key, &allowed)?;
        integer(value)
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.value_error(line, key, value, &allowed))
    }

    fn text(&self, key: &str, allowed: &str) -> Result<&'a str, CurveFileError> {
        let (value, line) = self.get(key, allowed)?;
        value
            .as_str()
            .ok_or_else(|| self.value_error(line, key, value, allowed))
    }

    /// A text that means a value.
    fn unit<T: std::str::FromStr>(
        &self,
        key: &str,
        allowed: &str,
        within: impl FnOnce(&T) -> bool,
    ) -> Result<T, CurveFileError> {
        let (value, line) = self.get(key, allowed)?;
        value
            .as_str()
            .and_then(|text| text.parse().ok())
            .filter(within)
            .ok_or_else(|| self.value_error(line, key, value, allowed))
    }

    fn seed(&self) -> Result<u64, CurveFileError> {
        self.unit("seed", "an integer of 64 bits in quotes", |_: &u64| true)
    }

    /// The points, each farther than the one before and no cheaper.
    fn points(&self, key: &'static str) -> Result<Vec<Point>, CurveFileError> {
        const ROWS: &str = "an array of up to 1000 [distance, curve, mean, deviation, samples], the \
                            first at distance 0";
        const ROW: &str = "[distance, curve, mean, deviation, samples]: integers from 0, but times in \
                           us, above 0 (the deviation from 0) to 60000000";
        let (value, line) = self.get(key, ROWS)?;
        let rows = value
            .as_array()
            .filter(|rows| (1..=DISTANCES_MAX as usize).contains(&rows.len()))
            .ok_or_else(|| self.value_error(line, key, value, ROWS))?;
        let mut points: Vec<Point> = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let line = self.reader.line(row.span().start);
            let name = format!("{key}[{index}]");
            let point = row
                .get_ref()
                .as_array()
                .and_then(|row| {
                    let row: Vec<&DeValue> = row.iter().map(|item| item.get_ref()).collect();
                    let [distance, fit, mean, sd, samples] = row[..] else {
                        return None;
                    };
                    Some(Point {
                        distance: Sectors::new(integer(distance)?),
                        fit: time(fit).filter(|fit| !fit.is_zero())?,
                        mean: time(mean).filter(|mean| !mean.is_zero())?,
                        sd: time(sd)?,
                        samples: u32::try_from(integer(samples)?).ok()?,
                    })
                })
                .ok_or_else(|| self.value_error(line, &name, row.get_ref(), ROW))?;
            let wrong = match points.last() {
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
                let problem = Problem::Order(wrong.to_owned());
                return Err(self.reader.error(line, self.key(&name), problem));
            }
            points.push(point);
        }
        Ok(points)
    }
}
