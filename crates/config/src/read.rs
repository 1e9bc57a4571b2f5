//! From a tree to a value of a type: serde's deserializer over the tree.

use crate::tree::join;
use crate::{Error, KeyError, Node, Place, Table, Value};
use headtime_units::nearest;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use std::cell::{Cell, RefCell};
use std::fmt;

/// Names by which the types of this crate ask for what serde has no word for.
pub(crate) mod names {
    /// A struct that is written as a list of its fields.
    pub(crate) const LIST: &str = "[]";
    pub(crate) const MANY: &str = "$config::many";
    pub(crate) const ONE_OR_LIST: &str = "$config::one-or-list";
    pub(crate) const PLACED: &str = "$config::placed";
    pub(crate) const PARTS: &str = "$config::parts";
}

/// Reads a value out of a table. `place` stands for the table as a whole in errors.
///
/// # Errors
///
/// The first key that is unknown, missing, of the wrong kind or refused by its type.
pub fn read<T: DeserializeOwned>(table: &Table, place: &Place) -> Result<T, Error> {
    let reader = Reader {
        seen: Seen::Table(table),
        place,
        path: &Path::Root,
        part: None,
        asking: None,
    };
    let fault = match reader.give(T::deserialize) {
        Ok(value) => return Ok(value),
        Err(fault) => fault,
    };
    let mut problem = fault.problem;
    if let Some(missing) = &fault.missing {
        // What should be there only its type can say: it is asked by a value of no kind.
        let asking = Reader {
            asking: Some(missing),
            ..reader
        };
        if let Err(Fault {
            said: true,
            problem: kind,
            ..
        }) = asking.give(T::deserialize)
        {
            problem = format!("missing; give {kind}");
        }
    }
    Err(Error {
        place: fault.place.unwrap_or_else(|| place.clone()),
        key: fault.key,
        problem,
    })
}

/// The way to a value from the top.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

/// As errors write it: `load[1].size`.
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

/// A key that is missing, and the path of the table that it is missing from.
#[derive(Debug)]
struct Missing {
    table: String,
    key: &'static str,
}

/// An error on its way out: the innermost reader that it passes says where it is.
#[derive(Debug)]
pub(crate) struct Fault {
    place: Option<Place>,
    key: String,
    problem: String,
    missing: Option<Box<Missing>>,
    /// Whether the problem is what a type said that was asked what it is.
    said: bool,
}

impl Fault {
    fn new(problem: String) -> Fault {
        Fault {
            place: None,
            key: String::new(),
            problem,
            missing: None,
            said: false,
        }
    }

    fn at(mut self, place: &Place, path: &Path<'_>) -> Fault {
        if self.place.is_none() {
            self.place = Some(place.clone());
            let table = path.to_string();
            match &mut self.missing {
                Some(missing) => {
                    self.key = join(&table, missing.key);
                    missing.table = table;
                }
                None if self.key.is_empty() => self.key = table,
                None => self.key = join(&table, &self.key),
            }
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
        Fault::new(format!(
            "is {}, but should be {}",
            Found(found),
            wanted(expected)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::new(format!(
            "is {}; allowed is {}",
            Found(found),
            wanted(expected)
        ))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Fault {
        let several = if length == 1 { "" } else { "s" };
        let wanted = wanted(expected);
        Fault::new(format!(
            "has {length} value{several}, but should be {wanted}"
        ))
    }

    fn unknown_variant(found: &str, allowed: &'static [&'static str]) -> Fault {
        let guess = nearest(found, allowed.iter().copied());
        let quoted: Vec<String> = allowed.iter().map(|word| format!("\"{word}\"")).collect();
        let allowed = quoted.join(", ");
        Fault::new(match guess {
            Some(guess) => format!(
                "\"{found}\" is not allowed; did you mean \"{guess}\"? Allowed are {allowed}"
            ),
            None => format!("\"{found}\" is not allowed; allowed are {allowed}"),
        })
    }

    fn unknown_field(found: &str, allowed: &'static [&'static str]) -> Fault {
        unknown_key(found, allowed)
    }

    fn missing_field(key: &'static str) -> Fault {
        let table = String::new();
        Fault {
            missing: Some(Box::new(Missing { table, key })),
            ..Fault::new("missing".to_owned())
        }
    }

    fn duplicate_field(field: &'static str) -> Fault {
        Fault::new(format!("`{field}` is there twice"))
    }
}

fn unknown_key(found: &str, allowed: &[&str]) -> Fault {
    /// A guess stands alone where the list would bury it.
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

/// What is there, in the words of [`Value::kind`].
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

/// What is expected, where a type of Rust says it in its own words.
fn wanted(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let (most, signed) = match text.as_str() {
        "u8" => (u8::MAX.into(), false),
        "u16" => (u16::MAX.into(), false),
        "u32" => (u32::MAX.into(), false),
        "u64" | "usize" => return "a whole number, 0 or more".to_owned(),
        "i8" => (i8::MAX as u64, true),
        "i16" => (i16::MAX as u64, true),
        "i32" => (i32::MAX as u64, true),
        "i64" => return "a whole number".to_owned(),
        "f64" | "f32" => return "a number".to_owned(),
        "a boolean" => return "true or false".to_owned(),
        "a sequence" => return "a list".to_owned(),
        "a map" => return "a table".to_owned(),
        other if other.starts_with("struct ") => return "a table".to_owned(),
        other if other.starts_with("a tuple of size ") => {
            return format!("a list of {} values", &other["a tuple of size ".len()..]);
        }
        _ => return text,
    };
    match signed {
        true => format!("a whole number from -{} to {most}", most + 1),
        false => format!("a whole number from 0 to {most}"),
    }
}

/// What a reader sees.
#[derive(Clone, Copy)]
enum Seen<'a> {
    Text(&'a str),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(&'a [Node]),
    Table(&'a Table),
    /// Nothing: a type is asked what it is.
    Nothing,
}

impl<'a> From<&'a Value> for Seen<'a> {
    fn from(value: &'a Value) -> Seen<'a> {
        match value {
            Value::Text(text) => Seen::Text(text),
            Value::Integer(number) => Seen::Integer(*number),
            Value::Float(number) => Seen::Float(*number),
            Value::Flag(flag) => Seen::Flag(*flag),
            Value::List(list) => Seen::List(list),
            Value::Table(table) => Seen::Table(table),
        }
    }
}

impl Seen<'_> {
    fn value(self) -> Option<Value> {
        Some(match self {
            Seen::Text(text) => Value::Text(text.to_owned()),
            Seen::Integer(number) => Value::Integer(number),
            Seen::Float(number) => Value::Float(number),
            Seen::Flag(flag) => Value::Flag(flag),
            Seen::List(list) => Value::List(list.to_vec()),
            Seen::Table(table) => Value::Table(table.clone()),
            Seen::Nothing => return None,
        })
    }

    fn found(&self) -> Unexpected<'_> {
        match *self {
            Seen::Text(text) => Unexpected::Str(text),
            Seen::Integer(number) => Unexpected::Signed(number),
            Seen::Float(number) => Unexpected::Float(number),
            Seen::Flag(flag) => Unexpected::Bool(flag),
            Seen::List(_) => Unexpected::Seq,
            Seen::Table(_) => Unexpected::Map,
            Seen::Nothing => Unexpected::Unit,
        }
    }
}

impl Value {
    /// Says what it is in a message: `the number 7`.
    pub fn kind(&self) -> String {
        Found(Seen::from(self).found()).to_string()
    }
}

/// Keys of a table.
type Keys = &'static [&'static str];

/// The keys that the parts of a table know, so far.
#[derive(Default)]
struct Known {
    keys: RefCell<Vec<&'static str>>,
    /// Whether a part has taken whatever is left.
    rest: Cell<bool>,
}

/// Hands a value of the tree to a type.
#[derive(Clone, Copy)]
struct Reader<'a> {
    seen: Seen<'a>,
    place: &'a Place,
    path: &'a Path<'a>,
    /// If set, a struct takes those of a table's keys that it has, and notes them here.
    part: Option<&'a Known>,
    /// The key whose type is to be asked.
    asking: Option<&'a Missing>,
}

impl<'a> Reader<'a> {
    /// A reader of what is within.
    fn inner<'b>(&'b self, node: &'b Node, path: &'b Path<'b>) -> Reader<'b> {
        Reader {
            seen: Seen::from(&node.value),
            place: &node.place,
            path,
            part: None,
            asking: self.asking,
        }
    }

    /// Reads, and says of an error where it is.
    fn give<T>(self, read: impl FnOnce(Self) -> Result<T, Fault>) -> Result<T, Fault> {
        read(self).map_err(|fault| {
            // A key that the error names may have a place of its own.
            let place = match self.seen {
                Seen::Table(table) if fault.place.is_none() => table.place(&fault.key),
                _ => None,
            };
            fault.at(place.unwrap_or(self.place), self.path)
        })
    }

    fn wrong(&self, expected: &dyn Expected) -> Fault {
        match self.seen {
            Seen::Nothing => Fault {
                said: true,
                ..Fault::new(wanted(expected))
            },
            seen => de::Error::invalid_type(seen.found(), expected),
        }
    }

    /// Fails at the first key in the text that is none of these.
    fn only(&self, table: &Table, keys: &[&str]) -> Result<(), Fault> {
        let unknown = table.iter().filter(|(key, _)| !keys.contains(key));
        match unknown.min_by_key(|(_, node)| &node.place) {
            Some((key, node)) => {
                Err(unknown_key(key, keys).at(&node.place, &Path::Key(self.path, key)))
            }
            None => Ok(()),
        }
    }

    /// Gives the entries of a table that has no other keys than these, and perhaps a tag.
    fn fields<'de, V: Visitor<'de>>(
        self,
        keys: Keys,
        tag: Option<&'static str>,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Seen::Table(table) = self.seen else {
            return Err(self.wrong(&visitor));
        };
        match self.part {
            Some(known) => {
                let keys = keys.iter().copied().chain(tag);
                known.keys.borrow_mut().extend(keys);
            }
            None => {
                let all: Vec<&str> = keys.iter().copied().chain(tag).collect();
                self.only(table, &all)?;
            }
        }
        let entries = table
            .iter()
            .filter(|(key, _)| keys.contains(key) && Some(*key) != tag);
        visitor.visit_map(Entries::new(self, entries))
    }

    fn items<'de, V: Visitor<'de>>(self, list: &[Node], visitor: V) -> Result<V::Value, Fault> {
        let (from, numbered) = (self, true);
        visitor.visit_seq(Items {
            from,
            list,
            next: 0,
            numbered,
        })
    }

    /// Reads parts of a table, and fails at a key that is in none.
    fn parts<T>(
        self,
        tag: Option<&'static str>,
        read: impl FnOnce(Reader<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Seen::Table(table) = self.seen else {
            return read(self);
        };
        if let Some(outer) = self.part {
            outer.keys.borrow_mut().extend(tag);
            return read(self);
        }
        let known = Known {
            keys: RefCell::new(Vec::from_iter(tag)),
            rest: Cell::new(false),
        };
        let part = Some(&known);
        let value = read(Reader { part, ..self });
        // A misspelt key is named before what is missing without it.
        let other = value.as_ref().is_err_and(|fault| fault.missing.is_none());
        if !other && !known.rest.get() {
            self.only(table, &known.keys.borrow())?;
        }
        value
    }
}

/// The words of an enumeration: `"a", "b" or "c"`.
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
        match self.seen {
            Seen::Text(text) => visitor.visit_str(text),
            Seen::Integer(number) => visitor.visit_i64(number),
            Seen::Float(number) => visitor.visit_f64(number),
            Seen::Flag(flag) => visitor.visit_bool(flag),
            Seen::List(list) => self.items(list, visitor),
            Seen::Table(table) => visitor.visit_map(Entries::new(self, table.iter())),
            Seen::Nothing => Err(self.wrong(&visitor)),
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
        let one_or_list = [names::MANY, names::ONE_OR_LIST].contains(&name);
        let Some(value) = self.seen.value().filter(|_| one_or_list) else {
            return visitor.visit_newtype_struct(self);
        };
        let numbered = matches!(value, Value::List(_));
        let place = self.place.clone();
        let node = Node { value, place };
        let list = match node.value {
            _ if name == names::MANY => node.all_items(),
            Value::List(list) => list,
            _ => vec![node],
        };
        if list.is_empty() && name == names::MANY {
            return Err(Fault::new("is an empty list; give at least one".to_owned()));
        }
        let items = Items {
            from: self,
            list: &list,
            next: 0,
            numbered,
        };
        visitor.visit_seq(items)
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
            names::LIST => match self.seen {
                Seen::List(_) => self.deserialize_tuple(keys.len(), visitor),
                _ => Err(self.wrong(&visitor)),
            },
            names::PARTS => self.parts(None, |reader| visitor.visit_seq(Parts(reader))),
            _ => self.fields(keys, None, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        words: Keys,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match (self.seen, name.strip_prefix('$')) {
            (Seen::Text(word), None) => visitor.visit_enum(StrDeserializer::new(word)),
            (_, None) => Err(self.wrong(&one_of(words).as_str())),
            (Seen::Table(table), Some(tag)) => {
                let path = Path::Key(self.path, tag);
                let Some(node) = table.get(tag) else {
                    let problem = format!("missing; give {}", one_of(words));
                    return Err(Fault::new(problem).at(self.place, &path));
                };
                let reader = self.inner(node, &path);
                let word = reader.give(|reader| match reader.seen {
                    Seen::Text(word) => Ok(word),
                    _ => Err(reader.wrong(&one_of(words).as_str())),
                })?;
                visitor.visit_enum(Tagged {
                    from: self,
                    tag,
                    word,
                    reader,
                })
            }
            (_, Some(_)) => Err(self.wrong(&"a table")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.seen {
            Seen::List(list) => self.items(list, visitor),
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        match self.seen {
            Seen::List(list) if list.len() != len => {
                Err(de::Error::invalid_length(list.len(), &visitor))
            }
            _ => self.deserialize_seq(visitor),
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
        let Seen::Table(table) = self.seen else {
            return Err(self.wrong(&visitor));
        };
        let Some(known) = self.part else {
            return self.deserialize_any(visitor);
        };
        // What the parts before it do not know.
        known.rest.set(true);
        let keys = known.keys.borrow().clone();
        let entries = table.iter().filter(|(key, _)| !keys.contains(key));
        visitor.visit_map(Entries::new(self, entries))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct identifier ignored_any
    }
}

/// The items of a list.
struct Items<'a> {
    from: Reader<'a>,
    list: &'a [Node],
    next: usize,
    /// Whether errors number them.
    numbered: bool,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(node) = self.list.get(self.next) else {
            return Ok(None);
        };
        let numbered = Path::Item(self.from.path, self.next);
        let path = if self.numbered {
            &numbered
        } else {
            self.from.path
        };
        self.next += 1;
        let reader = self.from.inner(node, path);
        reader.give(|reader| seed.deserialize(reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len() - self.next)
    }
}

/// The entries of a table, in the order of the text.
struct Entries<'a> {
    from: Reader<'a>,
    list: std::vec::IntoIter<(&'a str, Option<&'a Node>)>,
    value: Option<(&'a str, Option<&'a Node>)>,
}

impl<'a> Entries<'a> {
    fn new(from: Reader<'a>, entries: impl Iterator<Item = (&'a str, &'a Node)>) -> Entries<'a> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(_, node)| &node.place);
        let mut list: Vec<_> = entries
            .into_iter()
            .map(|(key, node)| (key, Some(node)))
            .collect();
        if let Some(missing) = from.asking
            && missing.table == from.path.to_string()
        {
            list.push((missing.key, None));
        }
        let list = list.into_iter();
        Entries {
            from,
            list,
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        self.value = self.list.next();
        let Some((key, node)) = self.value else {
            return Ok(None);
        };
        let path = Path::Key(self.from.path, key);
        let place = node.map_or(self.from.place, |node| &node.place);
        let name: StrDeserializer<'_, Fault> = key.into_deserializer();
        seed.deserialize(name)
            .map(Some)
            .map_err(|fault| fault.at(place, &path))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (key, node) = self.value.take().expect("a key comes before its value");
        let path = Path::Key(self.from.path, key);
        let reader = match node {
            Some(node) => self.from.inner(node, &path),
            None => Reader {
                seen: Seen::Nothing,
                path: &path,
                ..self.from
            },
        };
        reader.give(|reader| seed.deserialize(reader))
    }
}

/// A table whose tag says which variant it is.
struct Tagged<'a> {
    from: Reader<'a>,
    tag: &'static str,
    word: &'a str,
    /// Of the tag's value.
    reader: Reader<'a>,
}

impl<'de> EnumAccess<'de> for Tagged<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let word: StrDeserializer<'_, Fault> = self.word.into_deserializer();
        let variant = self.reader.give(|_| seed.deserialize(word))?;
        Ok((variant, self))
    }
}

/// A variant takes nothing else of the table.
struct Nothing;

impl<'de> Visitor<'de> for Nothing {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Ok(())
    }
}

impl<'de> VariantAccess<'de> for Tagged<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.from.fields(&[], Some(self.tag), Nothing)
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

/// The parts of a [`Both`](crate::Both), each of which reads the whole table.
struct Parts<'a>(Reader<'a>);

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        seed.deserialize(self.0).map(Some)
    }
}

/// A value, its key, and its place and those of its keys; see [`Placed`](crate::Placed).
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
        let value = match self.next {
            1 => seed.deserialize(self.from)?,
            2 => seed.deserialize(self.from.path.to_string().into_deserializer())?,
            _ => {
                let mut places = vec![written(String::new(), self.from.place)];
                if let Seen::Table(table) = self.from.seen {
                    let keys = table.iter();
                    places.extend(keys.map(|(key, node)| written(key.to_owned(), &node.place)));
                }
                seed.deserialize(places.into_deserializer())?
            }
        };
        Ok(Some(value))
    }
}

/// A key and its place in a form that passes through serde; [`place`] reads it.
fn written(key: String, place: &Place) -> Vec<String> {
    match place {
        Place::Line(file, line) => vec![key, file.to_string(), line.to_string()],
        Place::Option(option) => vec![key, option.to_string()],
        Place::BuiltIn => vec![key],
        Place::NoText => vec![key, String::new(), String::new(), String::new()],
    }
}

/// Reads what [`written`] wrote.
pub(crate) fn place(written: &[String]) -> Option<(String, Place)> {
    let (key, place) = match written {
        [key] => (key, Place::BuiltIn),
        [key, _, _, _] => (key, Place::NoText),
        [key, option] => (key, Place::Option(option.as_str().into())),
        [key, file, line] => (key, Place::line(file, line.parse().ok()?)),
        _ => return None,
    };
    Some((key.clone(), place))
}
