//! Writer of values as TOML.

use crate::read::names::{LIST, PART};
use serde::Serialize;
use serde::de::value::Error as Unwritable;
use serde::ser::{
    self, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, Serializer,
};
use std::fmt::{Display, Write};

/// Longest line. A longer list is broken into several lines.
const WIDTH: usize = 100;

const ROWS: &str = "$config::rows";
const LINES: &str = "$config::lines";
const VERBATIM: &str = "$config::verbatim";
pub(crate) const WITH_POINT: &str = "$config::with_point";

/// Key and comment before it: `("curve.backward", "A factor, not measured.")`. A comment for the key `""` begins the text.
pub type Comment = (&'static str, &'static str);

/// Writes a value in the order of its fields, first plain values, then tables. A `None` is left out.
///
/// # Panics
///
/// If the value is not a table, or contains a value without a form in TOML, which is a bug of its type.
pub fn to_text<T: Serialize + ?Sized>(value: &T) -> String {
    to_text_with(value, &[], &[])
}

/// Writes a value as [`to_text`] does, with comments, and without the keys of `skip`. Each key is named with all its tables.
///
/// # Panics
///
/// As [`to_text`].
pub fn to_text_with<T: Serialize + ?Sized>(
    value: &T,
    comments: &[Comment],
    skip: &[&str],
) -> String {
    let item = value
        .serialize(Writer)
        .expect("the type has a form in TOML");
    let Item::Table(entries) = item else {
        panic!("a text is a table");
    };
    let text = String::new();
    let mut out = Out {
        text,
        comments,
        skip,
    };
    out.comment("");
    out.table("", &entries);
    out.text
}

/// Word of a value that is written as a word: a variant without content, or a text.
///
/// # Panics
///
/// If the value is not written as a word.
pub fn word<T: Serialize>(value: &T) -> String {
    match value.serialize(Writer) {
        Ok(Item::Text(word)) => word,
        _ => panic!("a word is a text"),
    }
}

/// Writes each item of a list on a line of its own: `#[serde(serialize_with = "rows")]`.
///
/// # Errors
///
/// As the list's own `serialize`.
pub fn rows<T: Serialize + ?Sized, S: Serializer>(list: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(ROWS, list)
}

/// Writes a text over several lines, between three quotes: `#[serde(serialize_with = "lines")]`. A reader finds an additional end of line
/// at the end of the text.
///
/// # Errors
///
/// As the text's own `serialize`.
pub fn lines<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(LINES, text)
}

/// Writes a number in its `Display` form.
///
/// # Errors
///
/// As a text's own `serialize`.
pub fn verbatim<T: Display + ?Sized, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(VERBATIM, &number.to_string())
}

/// Value that is to be written.
enum Item {
    Nothing,
    /// Text that is written as it is.
    Plain(String),
    /// A string, without quotes yet.
    Text(String),
    /// A string of several lines.
    Lines(String),
    List(Vec<Item>),
    Rows(Vec<Item>),
    Table(Entries),
}

type Entries = Vec<(String, Item)>;

impl Item {
    /// True if the item is written as one or several sections.
    fn is_section(&self) -> bool {
        match self {
            Item::Table(_) => true,
            Item::List(list) => {
                !list.is_empty() && list.iter().all(|item| matches!(item, Item::Table(_)))
            }
            _ => false,
        }
    }

    /// Item as a part of a line.
    fn inline(&self) -> String {
        let mut line = String::new();
        self.add_to(&mut line);
        line
    }

    /// Appends the item to a line.
    fn add_to(&self, line: &mut String) {
        match self {
            Item::Nothing => {}
            Item::Plain(text) => line.push_str(text),
            Item::Text(text) | Item::Lines(text) => line.push_str(&quoted(text)),
            Item::List(list) | Item::Rows(list) => {
                line.push('[');
                for (index, item) in list.iter().enumerate() {
                    line.push_str(if index > 0 { ", " } else { "" });
                    item.add_to(line);
                }
                line.push(']');
            }
            Item::Table(entries) if entries.is_empty() => line.push_str("{}"),
            Item::Table(entries) => {
                line.push_str("{ ");
                for (index, (name, item)) in entries.iter().enumerate() {
                    line.push_str(if index > 0 { ", " } else { "" });
                    line.push_str(&key(name));
                    line.push_str(" = ");
                    item.add_to(line);
                }
                line.push_str(" }");
            }
        }
    }
}

/// Basic string of TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Escapes backslashes, quotes and control characters for TOML's basic strings.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' | '"' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            char if char.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out
}

/// Escapes a line of a string over several lines. Quotes stay as they are, unless three could meet.
fn escaped_in_lines(line: &str) -> String {
    match line.contains("\"\"") || line.ends_with('"') {
        true => escaped(line),
        false => escaped(line).replace("\\\"", "\""),
    }
}

/// Key, in quotes if needed.
fn key(name: &str) -> String {
    let bare = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// Text under construction. Writing to a string cannot fail.
struct Out<'a> {
    text: String,
    comments: &'a [Comment],
    skip: &'a [&'a str],
}

impl Out<'_> {
    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{line}");
    }

    fn comment(&mut self, path: &str) {
        let all = self.comments;
        for (_, comment) in all.iter().filter(|(key, _)| *key == path) {
            comment
                .lines()
                .for_each(|line| self.line(format_args!("# {line}")));
        }
    }

    fn table(&mut self, path: &str, entries: &Entries) {
        let join = |name: &str| match path {
            "" => key(name),
            _ => format!("{path}.{}", key(name)),
        };
        for (name, item) in entries.iter().filter(|(_, item)| !item.is_section()) {
            let path = join(name);
            if !self.skip.contains(&&*path) {
                self.comment(&path);
                self.value(&key(name), item);
            }
        }
        for (name, item) in entries.iter().filter(|(_, item)| item.is_section()) {
            let path = join(name);
            match item {
                Item::Table(entries) => {
                    // A table of tables only needs no header of its own.
                    let has_values = entries.iter().any(|(_, item)| !item.is_section());
                    if has_values || entries.is_empty() {
                        self.line(format_args!("\n[{path}]"));
                    }
                    self.table(&path, entries);
                }
                Item::List(list) => {
                    for item in list {
                        if let Item::Table(entries) = item {
                            self.line(format_args!("\n[[{path}]]"));
                            self.table(&path, entries);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, key: &str, item: &Item) {
        match item {
            Item::Nothing => {}
            Item::Lines(text) => {
                self.line(format_args!("{key} = \"\"\""));
                // `str::lines` would lose a carriage return.
                text.split('\n')
                    .for_each(|line| self.line(escaped_in_lines(line)));
                self.line("\"\"\"");
            }
            Item::Rows(rows) => {
                self.line(format_args!("{key} = ["));
                for row in rows {
                    self.text.push_str("    ");
                    row.add_to(&mut self.text);
                    self.text.push_str(",\n");
                }
                self.line("]");
            }
            item => {
                let begin = self.text.len();
                self.text.push_str(key);
                self.text.push_str(" = ");
                item.add_to(&mut self.text);
                match item {
                    Item::List(list) if self.text.len() - begin > WIDTH => {
                        self.text.truncate(begin);
                        self.long(key, list);
                    }
                    _ => self.text.push('\n'),
                }
            }
        }
    }

    /// Writes a list that does not fit into a line.
    fn long(&mut self, key: &str, list: &[Item]) {
        self.line(format_args!("{key} = ["));
        let mut line = "   ".to_owned();
        for item in list.iter().map(Item::inline) {
            if line.len() + item.len() + 2 > WIDTH {
                self.line(&line);
                line.truncate(3);
            }
            let _ = write!(line, " {item},");
        }
        self.line(line);
        self.line("]");
    }
}

/// Result whose error says that TOML has no form for a value.
type Result<T, E = Unwritable> = std::result::Result<T, E>;

fn unwritable<T>(what: &str) -> Result<T> {
    Err(ser::Error::custom(format_args!(
        "{what} has no form in TOML"
    )))
}

fn plain(value: impl Display) -> Result<Item> {
    Ok(Item::Plain(value.to_string()))
}

/// Entries of an item that has to be a table.
fn entries(item: Item) -> Result<Entries> {
    match item {
        Item::Table(entries) => Ok(entries),
        _ => unwritable("a part of a table that is none"),
    }
}

/// Entry for the tag of a variant; see the crate's documentation.
fn tag(name: &str, variant: &str) -> Result<Entries> {
    match name.strip_prefix('$') {
        Some(tag) => Ok(vec![(tag.to_owned(), Item::Text(variant.to_owned()))]),
        None => unwritable("a variant with content, of an enum without a tag,"),
    }
}

macro_rules! plain {
    ($($method:ident($kind:ty))*) => {$(
        fn $method(self, value: $kind) -> Result<Item> {
            plain(value)
        }
    )*};
}

struct Writer;

impl Serializer for Writer {
    type Ok = Item;
    type Error = Unwritable;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = Impossible<Item, Unwritable>;
    type SerializeMap = Map;
    type SerializeStruct = Map;
    type SerializeStructVariant = Map;

    plain! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32)
        serialize_i64(i64) serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    fn serialize_f32(self, value: f32) -> Result<Item> {
        self.serialize_f64(value.into())
    }

    /// Writes a whole number without a point, as a person does. From 1e15 on, the number has a point or an exponent, since TOML's integers
    /// end at 2^63.
    fn serialize_f64(self, value: f64) -> Result<Item> {
        match value.is_nan() {
            true => plain("nan"),
            false if value.is_finite() && value.abs() >= 1e15 => plain(format_args!("{value:?}")),
            false => plain(value),
        }
    }

    fn serialize_char(self, value: char) -> Result<Item> {
        Ok(Item::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<Item> {
        Ok(Item::Text(value.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Item> {
        unwritable("a string of bytes")
    }

    fn serialize_none(self) -> Result<Item> {
        Ok(Item::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Item> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Item> {
        Ok(Item::Nothing)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Item> {
        Ok(Item::Nothing)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        _: u32,
        word: &'static str,
    ) -> Result<Item> {
        match name.starts_with('$') {
            true => tag(name, word).map(Item::Table),
            false => self.serialize_str(word),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Item> {
        Ok(match (name, value.serialize(self)?) {
            (ROWS, Item::List(list)) => Item::Rows(list),
            (LINES, Item::Text(text)) => Item::Lines(text),
            (VERBATIM, Item::Text(text)) => Item::Plain(text),
            (WITH_POINT, Item::Plain(text)) if text.parse::<i64>().is_ok() => {
                Item::Plain(text + ".0")
            }
            (_, item) => item,
        })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        word: &'static str,
        value: &T,
    ) -> Result<Item> {
        let mut all = tag(name, word)?;
        all.extend(entries(value.serialize(self)?)?);
        Ok(Item::Table(all))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List> {
        Ok(List::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<List> {
        Ok(List::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List> {
        Ok(List::default())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<Item, Unwritable>> {
        unwritable("a variant that is a tuple")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Map> {
        Ok(Map::default())
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Map> {
        Ok(Map {
            is_list: name == LIST,
            ..Map::default()
        })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        word: &'static str,
        _: usize,
    ) -> Result<Map> {
        Ok(Map {
            entries: tag(name, word)?,
            ..Map::default()
        })
    }
}

#[derive(Default)]
struct List(Vec<Item>);

macro_rules! list {
    ($($of:ident $method:ident)*) => {$(
        impl $of for List {
            type Ok = Item;
            type Error = Unwritable;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.0.push(value.serialize(Writer)?);
                Ok(())
            }

            fn end(self) -> Result<Item> {
                Ok(Item::List(self.0))
            }
        }
    )*};
}
list!(SerializeSeq serialize_element SerializeTuple serialize_element SerializeTupleStruct serialize_field);

#[derive(Default)]
struct Map {
    entries: Entries,
    key: Option<String>,
    /// True if the values form a list, so that the keys do not count.
    is_list: bool,
}

impl Map {
    fn add<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<()> {
        match value.serialize(Writer)? {
            Item::Nothing => {}
            item => self.entries.push((key, item)),
        }
        Ok(())
    }
}

impl SerializeMap for Map {
    type Ok = Item;
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let Item::Text(key) = key.serialize(Writer)? else {
            return unwritable("a key that is no text");
        };
        self.key = Some(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key = self.key.take().expect("a key comes before its value");
        self.add(key, value)
    }

    fn end(self) -> Result<Item> {
        Ok(match self.is_list {
            true => Item::List(self.entries.into_iter().map(|(_, item)| item).collect()),
            false => Item::Table(self.entries),
        })
    }
}

macro_rules! fields {
    ($($of:ident)*) => {$(
        impl $of for Map {
            type Ok = Item;
            type Error = Unwritable;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<()> {
                match key.starts_with(PART) {
                    true => self.entries.extend(entries(value.serialize(Writer)?)?),
                    false => self.add(key.to_owned(), value)?,
                }
                Ok(())
            }

            fn end(self) -> Result<Item> {
                SerializeMap::end(self)
            }
        }
    )*};
}
fields!(SerializeStruct SerializeStructVariant);
