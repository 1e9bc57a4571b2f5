//! Types and functions for fields of types that are read.

use crate::error::join;
use crate::read::{names, place};
use crate::{Error, Node, Place, Value};
use headtime_units::Sectors;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::{Deref, RangeInclusive};

/// Value that retains its place, for errors that show only later. Two are equal if their values are.
///
/// # Examples
///
/// ```
/// use headtime_config::{Place, Placed, Table, read};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct File {
///     disk: Vec<Placed<Disk>>,
/// }
///
/// #[derive(Deserialize)]
/// struct Disk {
///     depth: Option<u32>,
/// }
///
/// let table = Table::parse("a.toml", "[[disk]]\n[[disk]]\ndepth = 64").unwrap();
/// let file: File = read(&table, &Place::line("a.toml", 1)).unwrap();
/// let disk = &file.disk[1];
/// assert_eq!(disk.depth, Some(64));
/// assert!(disk.has("depth"));
/// assert_eq!(
///     disk.error_at("depth", "64 is more than the 32 that the drive takes").to_string(),
///     "a.toml:3: disk[1].depth: 64 is more than the 32 that the drive takes"
/// );
/// assert_eq!(disk.error("is too much").to_string(), "a.toml:2: disk[1]: is too much");
/// ```
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    key: String,
    place: Place,
    keys: BTreeMap<String, Place>,
}

impl<T> Placed<T> {
    /// Makes a built-in value.
    pub fn built_in(value: T) -> Placed<T> {
        Placed {
            value,
            key: String::new(),
            place: Place::BuiltIn,
            keys: BTreeMap::new(),
        }
    }

    /// Place of the value.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Key of the value with all its tables.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns true if the table has the key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Makes an error about the value.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(self.place.clone(), self.key.clone(), problem)
    }

    /// Makes an error about a key of the value's table, at the key's place. If the key is not there, the error is at the value's place.
    pub fn error_at(&self, key: &str, problem: impl Into<String>) -> Error {
        let place = self.keys.get(key).unwrap_or(&self.place);
        Error::new(place.clone(), join(&self.key, key), problem)
    }

    /// Changes the value and retains its place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Placed<U> {
        Placed {
            value: change(self.value),
            key: self.key,
            place: self.place,
            keys: self.keys,
        }
    }
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Placed<T>) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Placed<T> {}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Placed<T>, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = Placed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place, which only this crate's reader knows")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Placed<T>, A::Error> {
                let none = || de::Error::custom("a value without its place");
                let value = seq.next_element()?.ok_or_else(none)?;
                let key = seq.next_element()?.ok_or_else(none)?;
                let places: Vec<Vec<String>> = seq.next_element()?.ok_or_else(none)?;
                let mut places = places.iter().filter_map(|written| place(written));
                let (_, place) = places.next().ok_or_else(none)?;
                let keys = places.collect();
                Ok(Placed {
                    value,
                    key,
                    place,
                    keys,
                })
            }
        }

        from.deserialize_struct(names::PLACED, &[], Parts(PhantomData))
    }
}

impl<T: Serialize> Serialize for Placed<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(to)
    }
}

/// One or more values: a list, or a text that is a list by comma. Commas within parentheses do not count. One value is written without
/// brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Many<T>(pub Vec<T>);

/// One value or a list of values, which may be empty. A text is one value, even with commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrList<T>(pub Vec<T>);

impl<T> OneOrList<T> {
    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for OneOrList<T> {
    fn default() -> OneOrList<T> {
        OneOrList(Vec::new())
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    /// Reads one value, for other readers than this crate's.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Vec<T>, D::Error> {
        T::deserialize(from).map(|value| vec![value])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}

macro_rules! lists {
    ($($kind:ident $name:ident)*) => {$(
        impl<'de, T: Deserialize<'de>> Deserialize<'de> for $kind<T> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$kind<T>, D::Error> {
                from.deserialize_newtype_struct(names::$name, ListVisitor(PhantomData)).map($kind)
            }
        }

        impl<T> Deref for $kind<T> {
            type Target = Vec<T>;

            fn deref(&self) -> &Vec<T> {
                &self.0
            }
        }

        impl<T: Serialize> Serialize for $kind<T> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self.0.as_slice() {
                    [one] => one.serialize(to),
                    several => several.serialize(to),
                }
            }
        }
    )*};
}
lists!(Many MANY OneOrList ONE_OR_LIST);

/// Type of a whole number that [`whole`] reads. An `Option` is for a key that may be missing.
pub trait Whole: Sized {
    /// Converts a number, if it fits the type.
    fn of(number: u64) -> Option<Self>;
}

macro_rules! whole {
    ($($kind:ty)*) => {$(
        impl Whole for $kind {
            fn of(number: u64) -> Option<$kind> {
                number.try_into().ok()
            }
        }
    )*};
}
whole!(u8 u16 u32 u64 usize i64);

impl Whole for Sectors {
    fn of(number: u64) -> Option<Sectors> {
        Some(Sectors::new(number))
    }
}

impl<T: Whole> Whole for Option<T> {
    fn of(number: u64) -> Option<Option<T>> {
        T::of(number).map(Some)
    }
}

/// Reads a whole number in a range: `#[serde(deserialize_with = "whole::<_, u32, 1, 256>")]`. A field that is an `Option` needs `default`
/// in addition.
///
/// # Errors
///
/// If the value is not a whole number, or is outside the range.
pub fn whole<'de, D, T, const LOW: u64, const HIGH: u64>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Whole,
{
    let number = from.deserialize_u64(InRange(LOW..=HIGH))?;
    let unfit = || de::Error::custom(format_args!("{number} is too large"));
    T::of(number).ok_or_else(unfit)
}

struct InRange(RangeInclusive<u64>);

impl InRange {
    fn refuse<E: de::Error>(&self, number: impl Display) -> E {
        E::custom(format_args!("{number} is out of range; allowed is {self}"))
    }
}

impl Display for InRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            // TOML's integers end here, and the message then names no upper limit.
            (low, high) if *high >= i64::MAX as u64 => write!(f, "{low} and more"),
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) => write!(f, "{low} to {high}"),
        }
    }
}

impl Visitor<'_> for InRange {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            (0, high) if *high >= i64::MAX as u64 => f.write_str("a whole number, 0 or more"),
            (low, high) if *high >= i64::MAX as u64 => write!(f, "a whole number, {low} or more"),
            (low, high) if low == high => write!(f, "the number {low}"),
            (low, high) => write!(f, "a whole number from {low} to {high}"),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(self.refuse(number)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        match self.0.contains(&number) {
            true => Ok(number),
            false => Err(self.refuse(number)),
        }
    }
}

/// Type of a number that [`number`] reads. An `Option` is for a key that may be missing.
pub trait Number {
    /// Converts a number.
    fn of(number: f64) -> Self;
}

impl Number for f64 {
    fn of(number: f64) -> f64 {
        number
    }
}

impl Number for Option<f64> {
    fn of(number: f64) -> Option<f64> {
        Some(number)
    }
}

/// Reads a number between two whole numbers, with or without a point: `#[serde(deserialize_with = "number::<_, f64, 0, 1>")]`.
///
/// # Errors
///
/// If the value is not a number, or is outside the range.
pub fn number<'de, D, T, const LOW: i64, const HIGH: i64>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Number,
{
    struct Within(i64, i64);

    impl Visitor<'_> for Within {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a number from {} to {}", self.0, self.1)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<f64, E> {
            self.visit_f64(number as f64)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<f64, E> {
            self.visit_f64(number as f64)
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<f64, E> {
            let Within(low, high) = self;
            match (low as f64..=high as f64).contains(&number) {
                true => Ok(number),
                false => Err(E::custom(format_args!(
                    "{number} is out of range; allowed is {low} to {high}"
                ))),
            }
        }
    }

    from.deserialize_f64(Within(LOW, HIGH)).map(T::of)
}

/// Reads a value in a range: `bounded(from, Bytes(512), Bytes(1 << 24))`.
///
/// # Errors
///
/// If the value is outside the range, or its type refuses it.
pub fn bounded<'de, D, T>(from: D, low: T, high: T) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialOrd + Display,
{
    let value = T::deserialize(from)?;
    match low <= value && value <= high {
        true => Ok(value),
        false => Err(de::Error::custom(format_args!(
            "{value} is out of range; allowed is {low} to {high}"
        ))),
    }
}

/// Reads a text with the function `read`. `expected` describes the expected text in errors.
///
/// # Errors
///
/// If the value is not a text, or `read` refuses the text. The error then has the text and `read`'s error.
///
/// # Examples
///
/// ```
/// use headtime_config::parse;
/// use serde::Deserializer;
/// use std::net::SocketAddr;
///
/// fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
///     parse(from, "an address, such as \"127.0.0.1:80\"", |text| text.parse::<SocketAddr>())
/// }
/// ```
pub fn parse<'de, D, T, E, F>(from: D, expected: &str, read: F) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
    F: FnOnce(&str) -> Result<T, E>,
{
    struct TextVisitor<'e, F>(&'e str, F);

    impl<T, E: Display, F: FnOnce(&str) -> Result<T, E>> Visitor<'_> for TextVisitor<'_, F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<X: de::Error>(self, text: &str) -> Result<T, X> {
            let refuse = |error| X::custom(format_args!("\"{text}\": {error}"));
            self.1(text).map_err(refuse)
        }
    }

    from.deserialize_str(TextVisitor(expected, read))
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Integer(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Value::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Value::Table)
            }
        }

        from.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        let Placed { value, place, .. } = Placed::deserialize(from)?;
        Ok(Node { value, place })
    }
}
