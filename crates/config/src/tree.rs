//! Tree of a text, whose values know their places.
//!
//! The tree comes from TOML. Options of the command line put further values into it.

use crate::error::join;
use crate::write::WITH_POINT;
use crate::{Error, KeyError, Place};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Most parts of a dotted key, since functions walk trees by recursion.
const PARTS_MAX: usize = 64;

/// Splits a list by comma. Commas within parentheses do not count, and blanks around an item are cut. A blank text is an empty list. An
/// empty item at any comma counts, so that its reader can refuse it.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let is_empty = text.trim().is_empty();
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0
    })
    .map(str::trim)
    .filter(move |_| !is_empty)
}

/// Value of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a decimal point.
    Float(#[serde(serialize_with = "with_point")] f64),
    /// `true` or `false`.
    Flag(bool),
    /// `[..]`, or several `[[name]]`.
    List(Vec<Node>),
    /// `[name]` or `{..}`.
    Table(Table),
}

/// Writes a number with a decimal point, also a whole number, so that it is read as a [`Value::Float`] again.
fn with_point<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(WITH_POINT, number)
}

impl Value {
    /// Text of the value, as a person writes it after `--set KEY=`.
    pub fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => plain(other).to_string(),
        }
    }
}

/// Value with its place. Two nodes are equal if their values are.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Place of the value.
    pub place: Place,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(to)
    }
}

impl Node {
    /// Makes a node for a built-in value.
    pub fn built_in(value: Value) -> Node {
        Node {
            value,
            place: Place::BuiltIn,
        }
    }

    /// Values of a list, or one value. A text is a list by comma. Commas within parentheses do not count. The items of a text are read as
    /// [`Node::option`] reads them.
    pub fn items(&self) -> Vec<Node> {
        match &self.value {
            Value::List(list) => list.clone(),
            _ => self.split(),
        }
    }

    /// Values as [`Node::items`], and a text within a list is a list as well.
    pub(crate) fn all_items(&self) -> Vec<Node> {
        match &self.value {
            Value::List(list) => list.iter().flat_map(Node::split_or_self).collect(),
            _ => self.split(),
        }
    }

    /// Splits as [`Node::split`], but a blank text is one item.
    fn split_or_self(&self) -> Vec<Node> {
        let items = self.split();
        match items.is_empty() {
            true => vec![self.clone()],
            false => items,
        }
    }

    fn split(&self) -> Vec<Node> {
        let Value::Text(text) = &self.value else {
            return vec![self.clone()];
        };
        let item = |item| Node {
            value: read_value(item, &self.place),
            place: self.place.clone(),
        };
        split_list(text).map(item).collect()
    }

    /// Reads the text behind the `=` of an option; see [`Table::set`].
    pub fn option(option: &str, text: &str) -> Node {
        let place = Place::Option(option.into());
        Node {
            value: read_value(text, &place),
            place,
        }
    }
}

/// Keys and values, by name. As a field of a type, takes any keys, and their values retain their places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table(pub(crate) BTreeMap<String, Node>);

impl Table {
    /// Reads a TOML text. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// If the text is not TOML, with the line, or if it has a date, which no type here takes.
    pub fn parse(file: &str, text: &str) -> Result<Table, Error> {
        let file: Arc<str> = file.into();
        let lines = Lines::new(text);
        let place = |offset| Place::Line(Arc::clone(&file), lines.at(offset));
        let table = DeTable::parse(text).map_err(|error| {
            let place = place(error.span().map_or(0, |span| span.start));
            let problem = error.message().replace('\n', "; ");
            Error::new(place, "", format!("not TOML: {problem}"))
        })?;
        convert_table(table.get_ref(), &place)
    }

    /// Sets the value of a dotted key, and makes missing tables on the way.
    ///
    /// `text` is read as a TOML value (`4`, `true`, `[1, 4]`, `"a b"`) if possible, else as a string. So `drive.profile=atlas10k` needs no
    /// quotes. A number selects an entry of a `[[list]]` of tables, as in `workload.1.processes=4`. The number may be left out if the list
    /// has one entry.
    ///
    /// # Errors
    ///
    /// If the key is malformed, or leads through a value that is not a table.
    pub fn set(&mut self, option: &str, key: &str, text: &str) -> Result<(), Error> {
        self.set_value(key, Node::option(option, text))
    }

    /// Sets the value of a dotted key, as [`Table::set`].
    ///
    /// # Errors
    ///
    /// As [`Table::set`].
    pub fn set_value(&mut self, key: &str, node: Node) -> Result<(), Error> {
        let place = node.place.clone();
        let error = |key: &str, problem: &str| Err(Error::new(place.clone(), key, problem));
        let parts: Vec<&str> = key.split('.').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return error(key, "not a key; write for example engine.depth=4");
        }
        if parts.len() > PARTS_MAX {
            return error("", &format!("the key has more than {PARTS_MAX} parts"));
        }
        let (last, tables) = parts.split_last().expect("split gives at least one part");
        let mut table = self;
        let mut passed = String::new();
        let mut tables = tables.iter().copied().peekable();
        while let Some(name) = tables.next() {
            passed = join(&passed, name);
            let empty = || Node {
                value: Value::Table(Table::default()),
                place: place.clone(),
            };
            let next = table.0.entry(name.to_owned()).or_insert_with(empty);
            table = match &mut next.value {
                Value::Table(inner) => inner,
                Value::List(list) => {
                    let count = list.len();
                    let Some(number) = number_in(list, &mut tables) else {
                        let problem = format!("is a list of {count}; say which, as in {passed}.0");
                        return error(&passed, &problem);
                    };
                    match list.get_mut(number).map(|node| &mut node.value) {
                        Some(Value::Table(inner)) => inner,
                        Some(_) => return error(&passed, "is no list of tables"),
                        None => {
                            let problem =
                                format!("has no entry {number}; there are {count}, from 0");
                            return error(&passed, &problem);
                        }
                    }
                }
                other => return error(&passed, &format!("is {}, not a table", other.kind())),
            };
        }
        table.0.insert((*last).to_owned(), node);
        Ok(())
    }

    /// Dotted key with the number of every entry of a list on the way: `workload.size` is `workload.0.size` if there is one workload. All
    /// spellings of a key have the same full key.
    pub fn full_key(&self, key: &str) -> String {
        let mut full: Vec<String> = Vec::new();
        let mut here = Some(self);
        let mut names = key.split('.').map(str::trim).peekable();
        while let Some(name) = names.next() {
            full.push(name.to_owned());
            let mut found = here.and_then(|table| table.0.get(name));
            if let Some(Value::List(list)) = found.map(|node| &node.value)
                && names.peek().is_some()
            {
                let number = number_in(list, &mut names);
                full.extend(number.map(|number| number.to_string()));
                found = number.and_then(|number| list.get(number));
            }
            here = found.and_then(|node| match &node.value {
                Value::Table(inner) => Some(inner),
                _ => None,
            });
        }
        full.join(".")
    }

    /// Value of a dotted key, if there is one.
    pub fn at(&self, key: &str) -> Option<&Node> {
        let full = self.full_key(key);
        let mut names = full.split('.');
        let mut node = self.0.get(names.next()?)?;
        for name in names {
            node = match &node.value {
                Value::Table(inner) => inner.0.get(name)?,
                Value::List(list) => list.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Replaces a value that [`Table::at`] finds.
    pub(crate) fn replace(&mut self, key: &str, value: Node) {
        let full = self.full_key(key);
        let (first, names) = full.split_once('.').unwrap_or((&full, ""));
        let mut node = self.0.get_mut(first);
        for name in names.split_terminator('.') {
            node = node.and_then(|node| match &mut node.value {
                Value::Table(inner) => inner.0.get_mut(name),
                Value::List(list) => list.get_mut(name.parse::<usize>().ok()?),
                _ => None,
            });
        }
        *node.expect("the key is there") = value;
    }

    /// All values as TOML, with their dotted keys. A list is one value.
    pub fn flat(&self) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        self.flatten("", &mut flat);
        flat
    }

    fn flatten(&self, path: &str, flat: &mut BTreeMap<String, String>) {
        for (key, node) in &self.0 {
            let path = join(path, key);
            match &node.value {
                Value::Table(inner) => inner.flatten(&path, flat),
                value => {
                    flat.insert(path, plain(value).to_string());
                }
            }
        }
    }

    /// Place of a key in the form of errors, `load[1].size`. If the key is not there, the place of the innermost table or list around it;
    /// `None` if not even the first part of the key is there.
    pub fn place(&self, key: &str) -> Option<&Place> {
        let mut place = None;
        let mut table = self;
        let mut rest = key;
        loop {
            // A key may have points in its name, such as the keys of a profile's trust.
            if let Some(node) = table.0.get(rest) {
                return Some(&node.place);
            }
            let (part, behind) = rest.split_once('.').unwrap_or((rest, ""));
            let mut numbers = part.split('[');
            let Some(mut node) = table.0.get(numbers.next().unwrap_or_default()) else {
                return place;
            };
            place = Some(&node.place);
            for number in numbers {
                let number = number.trim_end_matches(']').parse::<usize>().ok();
                match (&node.value, number) {
                    (Value::List(list), Some(number)) if number < list.len() => {
                        node = &list[number];
                        place = Some(&node.place);
                    }
                    _ => return place,
                }
            }
            match &node.value {
                Value::Table(inner) if !behind.is_empty() => (table, rest) = (inner, behind),
                _ => return place,
            }
        }
    }

    /// Value of the top table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key)
    }

    /// Removes a value from the top table and returns it.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        self.0.remove(key)
    }

    /// Overlays the values of `over`, table by table. Lists are replaced as a whole.
    pub fn overlay(&mut self, over: &Table) {
        for (key, node) in &over.0 {
            match (self.0.get_mut(key).map(|own| &mut own.value), &node.value) {
                (Some(Value::Table(own)), Value::Table(over)) => own.overlay(over),
                _ => {
                    self.0.insert(key.clone(), node.clone());
                }
            }
        }
    }

    /// Keys of the top table and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// Returns true if the table has no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Index of the list's entry that the next name of a key selects. A list of one entry needs no number.
fn number_in<'k>(
    list: &[Node],
    names: &mut Peekable<impl Iterator<Item = &'k str>>,
) -> Option<usize> {
    let given = names.peek().and_then(|name| name.parse().ok());
    match given {
        Some(_) => names.next(),
        None => return (list.len() == 1).then_some(0),
    };
    given
}

/// Value in TOML's form, without its place.
fn plain(value: &Value) -> toml::Value {
    toml::Value::try_from(value).expect("a value of TOML has its form")
}

/// Line ends of a text, to find the line of an offset.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Result<Table, Error> {
    table
        .iter()
        .map(|(key, value)| {
            let node = convert(
                value.get_ref(),
                place(key.span().start),
                value.span().start,
                place,
            )?;
            Ok((key.get_ref().to_string(), node))
        })
        .collect::<Result<BTreeMap<String, Node>, Error>>()
        .map(Table)
}

/// Converts a value whose key is at `at`. `offset` is the byte at which the value itself begins.
fn convert(
    value: &DeValue<'_>,
    at: Place,
    offset: usize,
    place: &dyn Fn(usize) -> Place,
) -> Result<Node, Error> {
    let refuse = |problem: String| Error::new(place(offset), "", problem);
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(parsed.map_err(|_| refuse(format!("{number} is too large")))?)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse();
            Value::Float(parsed.map_err(|_| refuse(format!("{number} is not a number")))?)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(date) => {
            return Err(refuse(format!("{date} is a date; nothing here takes one")));
        }
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|item| {
                    let start = item.span().start;
                    convert(item.get_ref(), place(start), start, place)
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, place)?),
    };
    Ok(Node { value, place: at })
}

/// Parses the right side of `--set key=value`.
fn read_value(text: &str, place: &Place) -> Value {
    // The text is parsed as a part of a whole line, so that TOML's grammar decides. A text that the grammar refuses is a string.
    let line = format!("value = {text}");
    let parsed = DeTable::parse(&line).ok().and_then(|table| {
        let here = |_| place.clone();
        let mut table = convert_table(table.get_ref(), &here).ok()?;
        let value = table.0.remove("value")?.value;
        table.is_empty().then_some(value)
    });
    parsed.unwrap_or_else(|| Value::Text(text.to_owned()))
}

impl Error {
    /// Adds the place of the error's key in `table`, or `place`, the table's own, if the key is not there. For checks after the reading.
    pub fn within(self, table: &Table, place: &Place) -> Error {
        let place = table.place(&self.key).unwrap_or(place).clone();
        Error { place, ..self }
    }
}

impl KeyError {
    /// Makes an error with a place, as [`Error::within`].
    pub fn within(self, table: &Table, place: &Place) -> Error {
        Error::new(Place::NoText, self.key, self.problem).within(table, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Table {
        Table::parse("s.toml", text).unwrap()
    }

    #[test]
    fn of_a_list_in_a_text_no_item_vanishes_because_it_is_empty() {
        let items = |text: &str| split_list(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(items(" a , b(1,2) "), ["a", "b(1,2)"]);
        assert_eq!(items("a,,b"), ["a", "", "b"]);
        assert_eq!(items(", a"), ["", "a"]);
        assert_eq!(items("a, "), ["a", ""]);
        assert_eq!(items(","), ["", ""]);
        assert!(items("").is_empty() && items(" ").is_empty());

        let table = parse("a = 'x,,y'\nb = ['x', '', 'y,z']\nc = ''");
        let of = |key| {
            let items = table.at(key).unwrap().all_items();
            items
                .iter()
                .map(|item| item.value.text())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("a"), ["x", "", "y"]);
        assert_eq!(of("b"), ["x", "", "y", "z"]);
        assert!(of("c").is_empty());
    }

    #[test]
    fn a_key_has_one_full_text() {
        let table = parse(
            "[engine]\ndepth = 1\n[[one]]\nn = 1\nm = [7, 8]\n[[two]]\nn = 1\n[[two]]\nn = 2\n",
        );
        for (key, full, value) in [
            ("engine.depth", "engine.depth", Some("1")),
            (" engine . depth", "engine.depth", Some("1")),
            ("one.n", "one.0.n", Some("1")),
            ("one.0.n", "one.0.n", Some("1")),
            ("one.m", "one.0.m", Some("[7, 8]")),
            ("one.m.1", "one.0.m.1", Some("8")),
            ("two.1.n", "two.1.n", Some("2")),
            // The key does not say which entry, and the following keys are not there.
            ("two.n", "two.n", None),
            ("two.2.n", "two.2.n", None),
            ("one.n.x", "one.0.n.x", None),
            ("engine.deph", "engine.deph", None),
            ("three.n", "three.n", None),
            ("", "", None),
        ] {
            assert_eq!(table.full_key(key), full);
            let found = table.at(key).map(|node| node.value.text());
            assert_eq!(found.as_deref(), value, "{key}");
        }
    }

    #[test]
    fn tables_are_laid_over_each_other() {
        let mut table = parse("a = 1\nb.c = 1\nb.d = [1, 2]\n");
        table.overlay(&parse("b.d = [3]\nb.e.f = 4\na.g = 5\n"));
        assert_eq!(table, parse("a.g = 5\nb.c = 1\nb.d = [3]\nb.e.f = 4\n"));
        assert!(table.take("a").is_some() && table.get("a").is_none());
    }

    #[test]
    fn syntax_errors_have_their_line() {
        let error = Table::parse("s.toml", "a = 1\nb = \n").unwrap_err();
        assert!(
            error.to_string().starts_with("s.toml:2: not TOML: "),
            "{error}"
        );
        let error = Table::parse("s.toml", "a = 1\nb = 1979-05-27\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:2: 1979-05-27 is a date; nothing here takes one"
        );
    }
}
