//! TOML tables with checked access: every error names the key and its line.

use super::{ProfileError, ProfileErrorKind};
use headtime_units::{Bytes, Nanos, SignedNanos, nearest};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Result<T> = std::result::Result<T, ProfileError>;

/// A text, and where its keys stand.
pub(super) struct Source {
    /// Offsets at which lines begin.
    starts: Vec<usize>,
    lines: RefCell<BTreeMap<String, usize>>,
}

impl Source {
    pub(super) fn new(text: &str) -> Source {
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Source {
            starts,
            lines: RefCell::new(BTreeMap::new()),
        }
    }

    /// The line of an offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    /// The line of a key, or of the innermost table that could have held it.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let lines = self.lines.borrow();
        let mut key = key;
        loop {
            if let Some(&line) = lines.get(key) {
                return Some(line);
            }
            let cut = key.rfind(['.', '['])?;
            key = &key[..cut];
        }
    }
}

/// A value and how its key is spelled from the top.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    source: &'a Source,
    value: &'a DeValue<'a>,
}

/// A table of a profile.
pub(super) struct Table<'a> {
    source: &'a Source,
    path: String,
    table: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
}

/// `a` or `an`, for what a value is.
fn kind_name(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

fn wrong_kind(key: &str, value: &DeValue, expected: &str) -> ProfileError {
    let found = match value {
        DeValue::String(text) => format!("the string \"{text}\""),
        DeValue::Integer(number) => number.as_str().to_string(),
        DeValue::Float(number) => number.as_str().to_string(),
        DeValue::Boolean(value) => value.to_string(),
        other => kind_name(other).to_string(),
    };
    ProfileError::new(
        key,
        ProfileErrorKind::Kind {
            found,
            expected: expected.to_string(),
        },
    )
}

impl<'a> Node<'a> {
    fn integer(&self) -> Option<i64> {
        let number = self.value.as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    /// An integer or a float; no infinity and no NaN.
    fn number(&self) -> Option<f64> {
        let number = match self.value {
            DeValue::Float(number) => number.as_str().parse().ok()?,
            _ => self.integer()? as f64,
        };
        number.is_finite().then_some(number)
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub(super) fn count(&self, key: &str, most: u64) -> Result<u64> {
        let allowed = format!("an integer from 0 to {most}");
        let Some(value) = self.integer() else {
            return Err(wrong_kind(key, self.value, &allowed));
        };
        match u64::try_from(value) {
            Ok(value) if value <= most => Ok(value),
            _ => Err(ProfileError::range(key, value, allowed)),
        }
    }

    /// An integer from `-most` to `most`.
    pub(super) fn signed(&self, key: &str, most: i32) -> Result<i32> {
        let allowed = format!("an integer from -{most} to {most}");
        let Some(value) = self.integer() else {
            return Err(wrong_kind(key, self.value, &allowed));
        };
        match i32::try_from(value) {
            Ok(value) if (-most..=most).contains(&value) => Ok(value),
            _ => Err(ProfileError::range(key, value, allowed)),
        }
    }

    /// A part of a turn.
    pub(super) fn turns(&self, key: &str) -> Result<f64> {
        const ALLOWED: &str = "a part of a turn, from 0 to 1";
        match self.number() {
            Some(value) if (0.0..=1.0).contains(&value) => Ok(value),
            Some(value) => Err(ProfileError::range(key, value, ALLOWED)),
            None => Err(wrong_kind(key, self.value, ALLOWED)),
        }
    }

    pub(super) fn items(&self, key: &str, expected: &str) -> Result<Vec<Node<'a>>> {
        let Some(array) = self.value.as_array() else {
            return Err(wrong_kind(key, self.value, expected));
        };
        Ok(array
            .iter()
            .map(|item| Node {
                source: self.source,
                value: item.get_ref(),
            })
            .collect())
    }

    /// The items of an array that may be long, each with its key, so that errors find its line.
    pub(super) fn rows(&self, key: &str, expected: &str) -> Result<Vec<(String, Node<'a>)>> {
        let Some(array) = self.value.as_array() else {
            return Err(wrong_kind(key, self.value, expected));
        };
        let mut lines = self.source.lines.borrow_mut();
        let row = |(index, item): (usize, &'a Spanned<DeValue<'a>>)| {
            let key = format!("{key}[{index}]");
            lines.insert(key.clone(), self.source.line(item.span().start));
            let node = Node {
                source: self.source,
                value: item.get_ref(),
            };
            (key, node)
        };
        Ok(array.iter().enumerate().map(row).collect())
    }

    /// An array of exactly `N` items.
    pub(super) fn tuple<const N: usize>(&self, key: &str, expected: &str) -> Result<[Node<'a>; N]> {
        self.items(key, expected)?
            .try_into()
            .map_err(|_| wrong_kind(key, self.value, expected))
    }

    /// Microseconds, as an integer or with places behind the point.
    pub(super) fn micros(&self, key: &str) -> Result<Nanos> {
        const ALLOWED: &str = "microseconds from 0 to 4000000";
        match self.number() {
            Some(value) if (0.0..=4_000_000.0).contains(&value) => {
                Ok(Nanos::from_millis_f64(value / 1000.0))
            }
            Some(value) => Err(ProfileError::range(key, value, ALLOWED)),
            None => Err(wrong_kind(key, self.value, ALLOWED)),
        }
    }

    pub(super) fn kind_error(&self, key: &str, expected: &str) -> ProfileError {
        wrong_kind(key, self.value, expected)
    }
}

impl<'a> Table<'a> {
    pub(super) fn root(source: &'a Source, table: &'a DeTable<'a>) -> Table<'a> {
        Table::new(source, String::new(), table)
    }

    fn new(source: &'a Source, path: String, table: &'a DeTable<'a>) -> Table<'a> {
        for (key, _) in table.iter() {
            let key_path = join(&path, key.get_ref());
            let line = source.line(key.span().start);
            source.lines.borrow_mut().insert(key_path, line);
        }
        Table {
            source,
            path,
            table,
            known: RefCell::new(Vec::new()),
        }
    }

    /// How a key of this table is spelled from the top.
    pub(super) fn key(&self, key: &str) -> String {
        join(&self.path, key)
    }

    pub(super) fn get(&self, key: &'static str) -> Option<Node<'a>> {
        self.known.borrow_mut().push(key);
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| Node {
                source: self.source,
                value: value.get_ref(),
            })
    }

    /// Fails on a key that nobody asked for.
    pub(super) fn finish(self) -> Result<()> {
        let known = self.known.borrow();
        // In the order of the text, so that the first one is named.
        let mut keys: Vec<&Spanned<_>> = self.table.iter().map(|(key, _)| key).collect();
        keys.sort_by_key(|key| key.span().start);
        for key in keys {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let suggestion = nearest(name, known.iter().copied()).map(str::to_string);
                return Err(ProfileError::new(
                    self.key(name),
                    ProfileErrorKind::UnknownKey { suggestion },
                ));
            }
        }
        Ok(())
    }

    pub(super) fn missing(&self, key: &str, expected: &str) -> ProfileError {
        ProfileError::new(
            self.key(key),
            ProfileErrorKind::Missing {
                expected: expected.to_string(),
            },
        )
    }

    /// The keys and values of a table whose keys are free.
    pub(super) fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
            .into_iter()
            .map(|(key, value)| {
                let node = Node {
                    source: self.source,
                    value: value.get_ref(),
                };
                (key.get_ref().as_ref(), node)
            })
            .collect()
    }

    pub(super) fn table(&self, key: &'static str) -> Result<Option<Table<'a>>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        match node.value.as_table() {
            Some(table) => Ok(Some(Table::new(self.source, self.key(key), table))),
            None => Err(wrong_kind(&self.key(key), node.value, "a table")),
        }
    }

    pub(super) fn required_table(&self, key: &'static str) -> Result<Table<'a>> {
        self.table(key)?.ok_or_else(|| self.missing(key, "a table"))
    }

    /// An array of tables.
    pub(super) fn tables(&self, key: &'static str) -> Result<Vec<Table<'a>>> {
        let path = self.key(key);
        let Some(node) = self.get(key) else {
            return Err(self.missing(key, "an array of tables"));
        };
        let Some(array) = node.value.as_array() else {
            return Err(wrong_kind(&path, node.value, "an array of tables"));
        };
        array
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let path = format!("{path}[{index}]");
                let line = self.source.line(item.span().start);
                self.source.lines.borrow_mut().insert(path.clone(), line);
                match item.get_ref().as_table() {
                    Some(table) => Ok(Table::new(self.source, path, table)),
                    None => Err(wrong_kind(&path, item.get_ref(), "a table")),
                }
            })
            .collect()
    }

    pub(super) fn count(&self, key: &'static str, most: u64) -> Result<Option<u64>> {
        self.get(key)
            .map(|node| node.count(&self.key(key), most))
            .transpose()
    }

    pub(super) fn required_count(&self, key: &'static str, most: u64) -> Result<u64> {
        self.count(key, most)?
            .ok_or_else(|| self.missing(key, &format!("an integer from 0 to {most}")))
    }

    pub(super) fn count_u32(&self, key: &'static str) -> Result<Option<u32>> {
        Ok(self
            .count(key, u64::from(u32::MAX))?
            .map(|value| value as u32))
    }

    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        match node.number() {
            Some(value) => Ok(Some(value)),
            None => Err(wrong_kind(&self.key(key), node.value, "a number")),
        }
    }

    pub(super) fn flag(&self, key: &'static str, default: bool) -> Result<bool> {
        match self.get(key).map(|node| (node, node.value.as_bool())) {
            None => Ok(default),
            Some((_, Some(value))) => Ok(value),
            Some((node, None)) => Err(wrong_kind(&self.key(key), node.value, "true or false")),
        }
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<&'a str>> {
        match self.get(key).map(|node| (node, node.value.as_str())) {
            None => Ok(None),
            Some((_, Some(text))) => Ok(Some(text)),
            Some((node, None)) => Err(wrong_kind(&self.key(key), node.value, "a string")),
        }
    }

    pub(super) fn required_text(&self, key: &'static str) -> Result<&'a str> {
        self.text(key)?.ok_or_else(|| self.missing(key, "a string"))
    }

    /// Text with a unit.
    fn with_unit<T: FromStr<Err: Display>>(
        &self,
        key: &'static str,
        expected: &str,
    ) -> Result<Option<T>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        let Some(text) = node.value.as_str() else {
            return Err(wrong_kind(&self.key(key), node.value, expected));
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(ProfileError::new(
                self.key(key),
                ProfileErrorKind::Kind {
                    found: format!("\"{text}\""),
                    expected: format!("{expected} ({error})"),
                },
            )),
        }
    }

    pub(super) fn time(&self, key: &'static str) -> Result<Option<Nanos>> {
        self.with_unit(key, DURATION)
    }

    pub(super) fn signed_time(&self, key: &'static str) -> Result<Option<SignedNanos>> {
        self.with_unit(key, "a duration in quotes, such as \"0.8ms\" or \"-0.2ms\"")
    }

    pub(super) fn time_or_zero(&self, key: &'static str) -> Result<Nanos> {
        Ok(self.time(key)?.unwrap_or(Nanos::ZERO))
    }

    pub(super) fn required_time(&self, key: &'static str) -> Result<Nanos> {
        self.time(key)?.ok_or_else(|| self.missing(key, DURATION))
    }

    pub(super) fn size(&self, key: &'static str) -> Result<Option<Bytes>> {
        self.with_unit(key, "a size in quotes, such as \"512B\"")
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some(&(_, value)) => Ok(Some(value)),
            None => Err(ProfileError::range(
                self.key(key),
                format!("\"{text}\""),
                one_of(words.iter().map(|(word, _)| *word)),
            )),
        }
    }

    pub(super) fn required_word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<T> {
        self.word(key, words)?
            .ok_or_else(|| self.missing(key, &one_of(words.iter().map(|(word, _)| *word))))
    }
}

const DURATION: &str = "a duration in quotes, such as \"0.8ms\"";

fn one_of<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}
