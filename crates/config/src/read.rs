//! Reader of a tree: serde's deserializer that makes a value of a type.

use crate::error::join;
use crate::{Error, KeyError, Node, Place, Table, Value};
use headtime_units::nearest;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IgnoredAny,
    IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::iter::Enumerate;
use std::{fmt, slice};

/// Names of forms that types of this crate need and serde does not know.
pub(crate) mod names {
    /// Struct that is written as a list of its fields.
    pub(crate) const LIST: &str = "[]";
    pub(crate) const MANY: &str = "$config::many";
    pub(crate) const ONE_OR_LIST: &str = "$config::one-or-list";
    pub(crate) const PLACED: &str = "$config::placed";
    /// First character of the name of a field whose keys are in the table of its struct.
    pub(crate) const PART: char = '+';
}

/// Reads a value out of a table. `place` stands for the table as a whole in errors.
///
/// # Errors
///
/// The first key that is unknown, missing, of the wrong kind or refused by its type.
pub fn read<T: DeserializeOwned>(table: &Table, place: &Place) -> Result<T, Error> {
    let value = Value::Table(table.clone());
    let reader = Reader {
        value: Some(&value),
        place,
        path: &Path::Root,
        part: None,
        asking: None,
    };
    let mut fault = match reader.give(T::deserialize) {
        Ok(value) => return Ok(value),
        Err(fault) => fault,
    };
    if fault.is_missing {
        // A missing key of the struct itself is reported before missing keys of its parts.
        let table = fault
            .key
            .rsplit_once('.')
            .map_or("", |(table, _)| table)
            .to_owned();
        let again = |asking| {
            let asking = Some(asking);
            (Reader { asking, ..reader }).give(T::deserialize).err()
        };
        let own = again(Asking::Own(&table)).filter(|own| own.is_missing && !own.is_part);
        fault = own.unwrap_or(fault);
        // Only the type of a missing key knows its expected value. A value of no kind makes the type say so in its error.
        if let Some(said) = again(Asking::Kind(&fault.key)).filter(|said| said.is_said) {
            fault.problem = format!("missing; give {}", said.problem);
        }
    }
    let place = fault.place.unwrap_or_else(|| place.clone());
    Err(Error::new(place, fault.key, fault.problem))
}

/// Path to a value from the top table.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

/// Writes the path as errors have it: `load[1].size`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => f.write_str(key),
            Path::Key(path, key) => write!(f, "{path}.{key}"),
            Path::Item(path, number) => write!(f, "{path}[{number}]"),
        }
    }
}

/// Error on its way out of the reader. The innermost reader that has a place adds it.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    place: Option<Place>,
    /// Key with all its tables once `place` is set. Before, the key within the table that is being read, if the error names a key.
    key: String,
    problem: String,
    is_missing: bool,
    /// True if the missing field is a part, since the reader has left it out ([`Asking::Own`]).
    is_part: bool,
    /// True if the problem is a type's description of the value that it expects ([`Asking::Kind`]).
    is_said: bool,
}

impl Fault {
    fn new(problem: String) -> Fault {
        Fault {
            problem,
            ..Fault::default()
        }
    }

    fn at(mut self, place: &Place, path: &Path<'_>) -> Fault {
        if self.place.is_none() {
            self.place = Some(place.clone());
            self.key = join(&path.to_string(), &self.key);
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(problem: T) -> Fault {
        let text = problem.to_string();
        match KeyError::read(&text) {
            Some((key, problem)) => Fault {
                key: key.to_owned(),
                ..Fault::new(problem.to_owned())
            },
            None => Fault::new(text),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        let wanted = wanted(expected);
        Fault::new(format!("is {}, but should be {wanted}", Found(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        let wanted = wanted(expected);
        Fault::new(format!("is {}; allowed is {wanted}", Found(found)))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Fault {
        let several = if length == 1 { "" } else { "s" };
        let wanted = wanted(expected);
        Fault::new(format!(
            "has {length} value{several}, but should be {wanted}"
        ))
    }

    fn unknown_variant(found: &str, allowed: &'static [&'static str]) -> Fault {
        let quoted: Vec<String> = allowed.iter().map(|word| format!("\"{word}\"")).collect();
        let (guess, a) = match nearest(found, allowed.iter().copied()) {
            Some(guess) => (format!("did you mean \"{guess}\"? "), "A"),
            None => (String::new(), "a"),
        };
        let allowed = quoted.join(", ");
        Fault::new(format!(
            "\"{found}\" is not allowed; {guess}{a}llowed are {allowed}"
        ))
    }

    fn unknown_field(found: &str, allowed: &'static [&'static str]) -> Fault {
        unknown_key(found, allowed)
    }

    fn missing_field(key: &'static str) -> Fault {
        Fault {
            key: key.to_owned(),
            is_missing: true,
            is_part: key.starts_with(names::PART),
            ..Fault::new("missing".to_owned())
        }
    }

    fn duplicate_field(field: &'static str) -> Fault {
        Fault::new(format!("`{field}` is there twice"))
    }
}

fn unknown_key(found: &str, allowed: &[&str]) -> Fault {
    /// Most keys in a message with a guess. A longer list would hide the guess.
    const SHOWN_MAX: usize = 24;
    let guess = nearest(found, allowed.iter().copied());
    let mut sorted = allowed.to_vec();
    sorted.sort_unstable();
    let sorted = sorted.join(", ");
    Fault::new(match guess {
        Some(guess) if allowed.len() > SHOWN_MAX => {
            format!("unknown key; did you mean `{guess}`?")
        }
        Some(guess) => format!("unknown key; did you mean `{guess}`? Allowed here: {sorted}"),
        None => format!("unknown key; allowed here: {sorted}"),
    })
}

/// Description of a value that was found, in the words of [`Value::kind`].
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Str(text) => write!(f, "the string \"{text}\""),
            Unexpected::Signed(number) => write!(f, "the number {number}"),
            Unexpected::Unsigned(number) => write!(f, "the number {number}"),
            Unexpected::Float(number) => write!(f, "the number {number}"),
            Unexpected::Bool(flag) => write!(f, "{flag}"),
            Unexpected::Seq => f.write_str("a list"),
            Unexpected::Map | Unexpected::StructVariant => f.write_str("a table"),
            other => write!(f, "{other}"),
        }
    }
}

/// Description of an expected value, in the words of this crate instead of Rust's.
fn wanted(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let whole = |low: i64, high: u64| format!("a whole number from {low} to {high}");
    match text.as_str() {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i8" => whole(i8::MIN.into(), i8::MAX as u64),
        "i16" => whole(i16::MIN.into(), i16::MAX as u64),
        "i32" => whole(i32::MIN.into(), i32::MAX as u64),
        "i64" => "a whole number".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => match other.strip_prefix("a tuple of size ") {
            Some(size) => format!("a list of {size} values"),
            None => text,
        },
    }
}

fn found(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Text(text) => Unexpected::Str(text),
        Value::Integer(number) => Unexpected::Signed(*number),
        Value::Float(number) => Unexpected::Float(*number),
        Value::Flag(flag) => Unexpected::Bool(*flag),
        Value::List(_) => Unexpected::Seq,
        Value::Table(_) => Unexpected::Map,
    }
}

impl Value {
    /// Describes the value for a message: `the number 7`.
    pub fn kind(&self) -> String {
        Found(found(self)).to_string()
    }
}

/// Keys of a table.
type Keys = &'static [&'static str];

/// Keys that the parts of a table have, as far as the parts were read.
#[derive(Default)]
struct KnownKeys {
    keys: RefCell<Vec<&'static str>>,
    /// Number of parts that have not been read.
    left: Cell<usize>,
    /// True if a part has taken all remaining keys.
    rest: Cell<bool>,
}

/// Reason for a second reading after an error.
#[derive(Clone, Copy, PartialEq)]
enum Asking<'a> {
    /// To find a missing key of this table's struct itself, without its parts.
    Own(&'a str),
    /// To find the expected kind of this key's value.
    Kind(&'a str),
}

/// Reader that hands a value of the tree to a type.
#[derive(Clone, Copy)]
struct Reader<'a> {
    /// `None` if the type is to describe the value that it expects.
    value: Option<&'a Value>,
    place: &'a Place,
    path: &'a Path<'a>,
    /// Set while parts of a table are read. A struct then takes only its own keys of the table, and notes them here.
    part: Option<&'a KnownKeys>,
    asking: Option<Asking<'a>>,
}

impl<'a> Reader<'a> {
    /// Makes a reader of an inner value.
    fn inner<'b>(&'b self, node: &'b Node, path: &'b Path<'b>) -> Reader<'b> {
        Reader {
            value: Some(&node.value),
            place: &node.place,
            path,
            part: None,
            asking: self.asking,
        }
    }

    /// Reads a value, and adds the place to an error that has none.
    fn give<T>(self, read: impl FnOnce(Self) -> Result<T, Fault>) -> Result<T, Fault> {
        read(self).map_err(|fault| self.placed(fault))
    }

    /// Adds the place of this reader to an error that has none.
    fn placed(&self, fault: Fault) -> Fault {
        // The key that the error names may have its own place.
        let place = match self.value {
            Some(Value::Table(table)) if fault.place.is_none() => table.place(&fault.key),
            _ => None,
        };
        fault.at(place.unwrap_or(self.place), self.path)
    }

    fn wrong(&self, expected: &dyn Expected) -> Fault {
        match self.value {
            Some(value) => de::Error::invalid_type(found(value), expected),
            None => Fault {
                is_said: true,
                ..Fault::new(wanted(expected))
            },
        }
    }

    /// Fails at the first key in the text that is not in `keys`.
    fn only(&self, table: &Table, keys: &[&str]) -> Result<(), Fault> {
        let unknown = table.iter().filter(|(key, _)| !keys.contains(key));
        match unknown.min_by_key(|(_, node)| &node.place) {
            Some((key, node)) => {
                Err(unknown_key(key, keys).at(&node.place, &Path::Key(self.path, key)))
            }
            None => Ok(()),
        }
    }

    /// Passes the entries of a table to `visitor`. Fails if the table has a key that is neither in `keys` nor the tag.
    fn fields<'de, V: Visitor<'de>>(
        self,
        keys: Keys,
        tag: Option<&'static str>,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let has_parts = keys.iter().any(|key| key.starts_with(names::PART));
        if has_parts && self.part.is_none() && matches!(self.value, Some(Value::Table(_))) {
            return self.parts(None, |reader| reader.fields(keys, tag, visitor));
        }
        let entries = self.entries(keys, tag, &visitor)?;
        visitor.visit_map(entries)
    }

    /// Entries of the table: its own keys, then its parts.
    ///
    /// Fails if the value is no table, or if a table that is no part has a key that is neither in
    /// `keys` nor the tag. `expected` describes the table in that error.
    fn entries(
        self,
        keys: Keys,
        tag: Option<&'static str>,
        expected: &dyn Expected,
    ) -> Result<TableAccess<'a>, Fault> {
        let Some(Value::Table(table)) = self.value else {
            return Err(self.wrong(expected));
        };
        let (parts, own): (Vec<_>, Vec<_>) =
            keys.iter().partition(|key| key.starts_with(names::PART));
        let all = own.iter().copied().chain(tag);
        match self.part {
            Some(known) => {
                known.keys.borrow_mut().extend(all);
                known.left.set(known.left.get() + parts.len());
            }
            None => self.only(table, &Vec::from_iter(all))?,
        }
        let is_own = |key: &str| own.contains(&key) && Some(key) != tag;
        let path = self.path.to_string();
        let is_asked = |key: &&str| self.asking == Some(Asking::Kind(&join(&path, key)));
        let asked = own
            .iter()
            .copied()
            .find(is_asked)
            .map(|key| (key, Entry::Asked));
        let parts = parts
            .into_iter()
            .filter(|_| self.asking != Some(Asking::Own(&path)));
        let mut entries = TableAccess::new(self, table, &is_own);
        entries.list.extend(asked);
        entries.list.extend(parts.map(|key| (key, Entry::Part)));
        Ok(entries)
    }

    fn items<'de, V: Visitor<'de>>(self, list: &[Node], visitor: V) -> Result<V::Value, Fault> {
        let list = list.iter().enumerate();
        visitor.visit_seq(Items { from: self, list })
    }

    /// Reads the parts of a table, and fails at a key that no part has.
    fn parts<T>(
        self,
        tag: Option<&'static str>,
        read: impl FnOnce(Reader<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(Value::Table(table)) = self.value else {
            return read(self);
        };
        if let Some(outer) = self.part {
            outer.keys.borrow_mut().extend(tag);
            return read(self);
        }
        let known = KnownKeys {
            keys: RefCell::new(Vec::from_iter(tag)),
            ..KnownKeys::default()
        };
        let part = Some(&known);
        let value = read(Reader { part, ..self });
        self.check_parts(table, &known, value.as_ref().err())?;
        value
    }

    /// Fails at a key that no part has, after the parts were read.
    fn check_parts(
        &self,
        table: &Table,
        known: &KnownKeys,
        fault: Option<&Fault>,
    ) -> Result<(), Fault> {
        // A misspelt key is reported first, before a missing key.
        let other = fault.is_some_and(|fault| !fault.is_missing);
        if !other && !known.rest.get() && known.left.get() == 0 {
            self.only(table, &known.keys.borrow())?;
        }
        Ok(())
    }

    /// Items of a value that a type of this crate asks for by name; `None` for another name.
    fn named_items(&self, name: &str) -> Result<Option<Vec<Node>>, Fault> {
        let node = |value: &Value| Node {
            value: value.clone(),
            place: self.place.clone(),
        };
        let list = match (name, self.value) {
            (names::MANY, Some(value)) => node(value).all_items(),
            (names::ONE_OR_LIST, Some(Value::List(list))) => list.clone(),
            (names::ONE_OR_LIST, Some(value)) => vec![node(value)],
            _ => return Ok(None),
        };
        if list.is_empty() && name == names::MANY {
            return Err(Fault::new("is an empty list; give at least one".to_owned()));
        }
        Ok(Some(list))
    }

    /// Places of the value and of its keys, in the form that [`place`] reads.
    fn places(&self) -> Value {
        let mut places = vec![written("", self.place)];
        if let Some(Value::Table(table)) = self.value {
            places.extend(table.iter().map(|(key, node)| written(key, &node.place)));
        }
        Value::List(places)
    }

    /// Variant that the tag of a table names.
    fn tagged(self, tag: &'static str, words: Keys) -> Result<Tagged<'a>, Fault> {
        let Some(Value::Table(table)) = self.value else {
            return Err(self.wrong(&"a table"));
        };
        let path = Path::Key(self.path, tag);
        let Some(node) = table.get(tag) else {
            let problem = format!("missing; give {}", one_of(words));
            return Err(Fault::new(problem).at(self.place, &path));
        };
        let reader = self.inner(node, &path);
        match &node.value {
            Value::Text(word) => Ok(Tagged {
                from: self,
                tag,
                word,
                place: &node.place,
            }),
            _ => Err(reader.placed(reader.wrong(&one_of(words).as_str()))),
        }
    }
}

/// Joins the words of an enumeration: `"a", "b" or "c"`.
fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Some(Value::Text(text)) => visitor.visit_str(text),
            Some(Value::Integer(number)) => visitor.visit_i64(*number),
            Some(Value::Float(number)) => visitor.visit_f64(*number),
            Some(Value::Flag(flag)) => visitor.visit_bool(*flag),
            Some(Value::List(list)) => self.items(list, visitor),
            Some(Value::Table(table)) => {
                visitor.visit_map(TableAccess::new(self, table, &|_| true))
            }
            None => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.named_items(name)? {
            Some(list) => self.items(&list, visitor),
            None => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        keys: Keys,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match name {
            names::PLACED => visitor.visit_seq(PlacedParts {
                from: self,
                next: 0,
            }),
            names::LIST => match self.value {
                Some(Value::List(_)) => self.deserialize_tuple(keys.len(), visitor),
                _ => Err(self.wrong(&visitor)),
            },
            _ => self.fields(keys, None, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        words: Keys,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match (self.value, name.strip_prefix('$')) {
            (Some(Value::Text(word)), None) => visitor.visit_enum(StrDeserializer::new(word)),
            (_, None) => Err(self.wrong(&one_of(words).as_str())),
            (_, Some(tag)) => visitor.visit_enum(self.tagged(tag, words)?),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Some(Value::List(list)) if list.len() != len => {
                Err(de::Error::invalid_length(list.len(), &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let (Some(Value::Table(table)), Some(known)) = (self.value, self.part) else {
            return self.deserialize_any(visitor);
        };
        // The map takes the keys that no part before has.
        known.rest.set(true);
        let keys = known.keys.borrow().clone();
        visitor.visit_map(TableAccess::new(self, table, &|key| !keys.contains(&key)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq identifier ignored_any
    }
}

/// Items of a list. Errors number the items of a list in the text, and not the items of a text by comma.
struct Items<'a> {
    from: Reader<'a>,
    list: Enumerate<slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((number, node)) = self.list.next() else {
            return Ok(None);
        };
        let numbered = Path::Item(self.from.path, number);
        let path = match self.from.value {
            Some(Value::List(_)) => &numbered,
            _ => self.from.path,
        };
        let reader = self.from.inner(node, path);
        reader.give(|reader| seed.deserialize(reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len())
    }
}

/// Entry of a table as serde sees the table: a value of the text, or an entry without a value of its own.
#[derive(Clone, Copy)]
enum Entry<'a> {
    Value(&'a Node),
    /// No value: the key's type is to describe the value that it expects.
    Asked,
    /// Another reading of the same table, for a part of the struct.
    Part,
}

/// Entries of a table in the order of the text, followed by missing keys and parts.
struct TableAccess<'a> {
    from: Reader<'a>,
    list: VecDeque<(&'a str, Entry<'a>)>,
    value: Option<(&'a str, Entry<'a>)>,
}

impl<'a> TableAccess<'a> {
    /// Makes the entries whose key is `wanted`.
    fn new(from: Reader<'a>, table: &'a Table, wanted: &dyn Fn(&str) -> bool) -> TableAccess<'a> {
        let mut list: Vec<_> = table.iter().filter(|(key, _)| wanted(key)).collect();
        list.sort_by_key(|(_, node)| &node.place);
        let list = list
            .into_iter()
            .map(|(key, node)| (key, Entry::Value(node)));
        TableAccess {
            from,
            list: list.collect(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for TableAccess<'_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.value = self.list.pop_front();
        let Some((key, entry)) = self.value else {
            return Ok(None);
        };
        let path = Path::Key(self.from.path, key);
        let place = match entry {
            Entry::Value(node) => &node.place,
            Entry::Asked | Entry::Part => self.from.place,
        };
        let name: StrDeserializer<'_, Fault> = key.into_deserializer();
        let key = seed.deserialize(name);
        key.map(Some).map_err(|fault| fault.at(place, &path))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (key, entry) = self.value.take().expect("a key comes before its value");
        let path = Path::Key(self.from.path, key);
        let reader = match entry {
            Entry::Value(node) => self.from.inner(node, &path),
            Entry::Asked => Reader {
                value: None,
                path: &path,
                ..self.from
            },
            Entry::Part => {
                let known = self.from.part.expect("parts have keys in common");
                known.left.set(known.left.get() - 1);
                self.from
            }
        };
        reader.give(|reader| seed.deserialize(reader))
    }
}

/// Table whose tag names a variant.
struct Tagged<'a> {
    from: Reader<'a>,
    tag: &'static str,
    word: &'a str,
    /// Place of the tag's value.
    place: &'a Place,
}

impl<'de> EnumAccess<'de> for Tagged<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let word: StrDeserializer<'_, Fault> = self.word.into_deserializer();
        let path = Path::Key(self.from.path, self.tag);
        let variant = seed
            .deserialize(word)
            .map_err(|fault| fault.at(self.place, &path))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        let fields = self.from.fields(&[], Some(self.tag), IgnoredAny);
        fields.map(drop)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        self.from
            .parts(Some(self.tag), |reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        Err(self.from.wrong(&visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, keys: Keys, visitor: V) -> Result<V::Value, Fault> {
        self.from.fields(keys, Some(self.tag), visitor)
    }
}

/// Sequence of a value, its key, and the places of the value and its keys; see [`Placed`](crate::Placed).
struct PlacedParts<'a> {
    from: Reader<'a>,
    next: u8,
}

impl<'de> SeqAccess<'de> for PlacedParts<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.next += 1;
        let described = match self.next {
            1 => None,
            2 => Some(Value::Text(self.from.path.to_string())),
            _ => Some(self.from.places()),
        };
        let value = described.as_ref().or(self.from.value);
        let reader = Reader { value, ..self.from };
        seed.deserialize(reader).map(Some)
    }
}

/// Writes a key and its place in a form that passes through serde; [`place`] reads the form.
fn written(key: &str, place: &Place) -> Node {
    let texts = match place {
        Place::Line(file, line) => vec![key.to_owned(), file.to_string(), line.to_string()],
        Place::Key(file, line, of) => {
            let end = String::new();
            vec![
                key.to_owned(),
                file.to_string(),
                line.to_string(),
                of.to_string(),
                end,
            ]
        }
        Place::Option(option) => vec![key.to_owned(), option.to_string()],
        Place::BuiltIn => vec![key.to_owned()],
        Place::NoText => vec![key.to_owned(), String::new(), String::new(), String::new()],
    };
    let texts = texts.into_iter().map(Value::Text).map(Node::built_in);
    Node::built_in(Value::List(texts.collect()))
}

/// Reads the form that [`written`] writes.
pub(crate) fn place(written: &[String]) -> Option<(String, Place)> {
    let (key, place) = match written {
        [key] => (key, Place::BuiltIn),
        [key, _, _, _] => (key, Place::NoText),
        [key, option] => (key, Place::Option(option.as_str().into())),
        [key, file, line] => (key, Place::line(file, line.parse().ok()?)),
        [key, file, line, of, _] => {
            let (file, of) = (file.as_str().into(), of.as_str().into());
            (key, Place::Key(file, line.parse().ok()?, of))
        }
        _ => return None,
    };
    Some((key.clone(), place))
}
