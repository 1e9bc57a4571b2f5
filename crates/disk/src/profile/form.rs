//! Text forms of single values in a profile, if they differ from the usual form of their type.

use headtime_config::{number, verbatim, whole};
use headtime_units::{Bytes, Nanos, Sectors};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
pub(super) fn is_nought(number: &u32) -> bool {
    *number == 0
}

pub(super) fn is_nil(part: &f64) -> bool {
    *part == 0.0
}

pub(super) fn is_zero(span: &Nanos) -> bool {
    span.is_zero()
}

pub(super) fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Reads a text of several lines, without the blanks and ends of line at its end.
pub(super) fn trimmed<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| text.trim_end().to_owned())
}

/// Bytes in a sector where a profile does not say.
pub(super) const fn sector() -> u32 {
    512
}

/// A table with free keys, in the order of the text.
pub(super) mod entries {
    use super::*;

    struct Entries<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<(String, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    pub(in super::super) fn deserialize<'de, T, D>(from: D) -> Result<Vec<(String, T)>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        from.deserialize_map(Entries(PhantomData))
    }

    pub(in super::super) fn serialize<T, S>(
        entries: &[(String, T)],
        to: S,
    ) -> Result<S::Ok, S::Error>
    where
        T: Serialize,
        S: Serializer,
    {
        to.collect_map(entries.iter().map(|(key, value)| (key, value)))
    }
}

/// A capacity as a number of sectors.
pub(super) mod capacity {
    use super::*;

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Sectors, D::Error> {
        whole::<_, _, 0, { 1 << 40 }>(from)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        sectors: &Sectors,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(sectors.get())
    }
}

/// Bytes of a sector as a size. Larger sizes are as wrong as the largest that fits; zero is none.
pub(super) mod bytes {
    use super::*;

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<u32, D::Error> {
        match Bytes::deserialize(from)? {
            Bytes(0) => Err(D::Error::custom(
                "0B is not allowed; allowed is 256B, 512B or 4KiB",
            )),
            Bytes(bytes) => Ok(u32::try_from(bytes).unwrap_or(u32::MAX)),
        }
    }

    pub(in super::super) fn serialize<S: Serializer>(
        bytes: &u32,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Bytes((*bytes).into()).serialize(to)
    }
}

/// A time as a number of microseconds.
#[derive(Clone, Copy)]
struct Micros(Nanos);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Micros, D::Error> {
        let micros: f64 = number::<_, _, 0, 4_000_000>(from)?;
        Ok(Micros(Nanos::from_millis_f64(micros / 1000.0)))
    }
}

/// With as many places as there are nanoseconds.
impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (whole, part) = (self.0.as_nanos() / 1000, self.0.as_nanos() % 1000);
        let text = format!("{whole}.{part:03}");
        verbatim(text.trim_end_matches('0').trim_end_matches('.'), to)
    }
}

/// Times as numbers of microseconds.
pub(super) mod times {
    use super::*;

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Nanos>, D::Error> {
        let times = Vec::<Micros>::deserialize(from)?;
        Ok(times.into_iter().map(|Micros(time)| time).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(
        times: &[Nanos],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(times.iter().map(|time| Micros(*time)))
    }
}

/// Points of a curve.
pub(super) mod points {
    use super::*;

    #[derive(Deserialize, Serialize)]
    #[serde(rename = "[]", expecting = "a point [cylinders, microseconds]")]
    struct Point {
        #[serde(deserialize_with = "whole::<_, _, 0, 0x100_0000>")]
        distance: u32,
        time: Micros,
    }

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Vec<(u32, Nanos)>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let points = Vec::<Point>::deserialize(from)?;
        let point = |point: Point| (point.distance, point.time.0);
        Ok(points.into_iter().map(point).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(
        points: &[(u32, Nanos)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(points.iter().map(|&(distance, time)| Point {
            distance,
            time: Micros(time),
        }))
    }
}

/// The table of a curve that is the same everywhere.
pub(super) mod constant {
    use super::*;

    #[derive(Deserialize, Serialize)]
    struct Constant {
        constant: Nanos,
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Nanos, D::Error> {
        Constant::deserialize(from).map(|curve| curve.constant)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Nanos,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Constant { constant: *time }.serialize(to)
    }
}
