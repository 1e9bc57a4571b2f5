//! A scenario's text as a tree whose every value knows where it stands.
//!
//! The tree comes from TOML; `--set key=value` puts further values into it. A [`Section`] takes
//! typed values out of a table and, at its end, refuses what nobody took.

use headtime_units::{Bytes, Nanos, nearest};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file, at a line counted from 1.
    Line(Arc<str>, usize),
    /// On the command line, in an option that is shown as given.
    Option(Arc<str>),
    /// Nowhere: the program's own default.
    BuiltIn,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(file, line) => write!(f, "{file}:{line}"),
            Place::Option(text) => f.write_str(text),
            Place::BuiltIn => f.write_str("built-in default"),
        }
    }
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{problem}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct TreeError {
    /// Where.
    pub place: Place,
    /// The key with all its tables, `engine.depth`; empty if it is about the text as a whole.
    pub key: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// `[..]`, or several `[[name]]`.
    List(Vec<Node>),
    /// `[name]` or `{..}`.
    Table(Table),
}

impl Value {
    /// What it is, for a message.
    fn kind(&self) -> String {
        match self {
            Value::Text(text) => format!("the string \"{text}\""),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where.
    pub place: Place,
}

/// Keys and values, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(BTreeMap<String, Node>);

impl Table {
    /// Reads a TOML text. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// If it is not TOML, with the line; or if it holds a date, which nothing takes.
    pub fn parse(file: &str, text: &str) -> Result<Table, TreeError> {
        let file: Arc<str> = file.into();
        let lines = Lines::new(text);
        let place = |offset| Place::Line(Arc::clone(&file), lines.at(offset));
        let table = DeTable::parse(text).map_err(|error| TreeError {
            place: place(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            problem: format!("not TOML: {}", error.message().replace('\n', "; ")),
        })?;
        convert_table(table.get_ref(), &place)
    }

    /// Sets the value of a dotted key, making the tables on the way.
    ///
    /// `text` is read as a TOML value if it is one (`4`, `true`, `[1, 4]`, `"a b"`), else taken as a
    /// string, so that `drive.profile=atlas10k` needs no quotes. Whole `[[lists]]` of tables are
    /// reached by number, `workload.1.processes=4`, which may be left out if there is but one.
    ///
    /// # Errors
    ///
    /// If the key is not one, or leads through something that is no table.
    pub fn set(&mut self, option: &str, key: &str, text: &str) -> Result<(), TreeError> {
        let place = Place::Option(option.into());
        let value = read_value(text, &place);
        self.set_value(key, Node { value, place })
    }

    /// Sets the value of a dotted key, as [`Table::set`].
    ///
    /// # Errors
    ///
    /// As [`Table::set`].
    pub fn set_value(&mut self, key: &str, node: Node) -> Result<(), TreeError> {
        let place = node.place.clone();
        let error = |key: &str, problem: &str| {
            Err(TreeError {
                place: place.clone(),
                key: key.to_owned(),
                problem: problem.to_owned(),
            })
        };
        let parts: Vec<&str> = key.split('.').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return error(key, "not a key; write for example engine.depth=4");
        }
        let (last, tables) = parts.split_last().expect("split gives at least one part");
        let mut table = self;
        let mut passed = String::new();
        let mut tables = tables.iter().peekable();
        while let Some(name) = tables.next() {
            passed = join(&passed, name);
            let next = table.0.entry((*name).to_owned()).or_insert_with(|| Node {
                value: Value::Table(Table::default()),
                place: place.clone(),
            });
            let inner = match &mut next.value {
                Value::Table(inner) => inner,
                Value::List(list) => {
                    let count = list.len();
                    let number = tables.peek().and_then(|name| name.parse::<usize>().ok());
                    let number = match number {
                        Some(number) => {
                            tables.next();
                            number
                        }
                        None if count == 1 => 0,
                        None => {
                            return error(
                                &passed,
                                &format!("is a list of {count}; say which, as in {passed}.0"),
                            );
                        }
                    };
                    match list.get_mut(number).map(|node| &mut node.value) {
                        Some(Value::Table(inner)) => inner,
                        Some(_) => return error(&passed, "is no list of tables"),
                        None => {
                            return error(
                                &passed,
                                &format!("has no entry {number}; there are {count}, from 0"),
                            );
                        }
                    }
                }
                other => {
                    let kind = other.kind();
                    return error(&passed, &format!("is {kind}, not a table"));
                }
            };
            table = inner;
        }
        table.0.insert((*last).to_owned(), node);
        Ok(())
    }

    /// Removes a key of the top table; says whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        self.0.remove(key).is_some()
    }

    /// A value of the top table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key)
    }

    /// Takes a value out of the top table.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        self.0.remove(key)
    }

    /// Puts the values of `over` in place of its own, table by table; lists are replaced whole.
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

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a plain TOML table, without places.
    pub fn to_toml(&self) -> toml::Table {
        self.0
            .iter()
            .map(|(key, node)| (key.clone(), plain(&node.value)))
            .collect()
    }
}

fn plain(value: &Value) -> toml::Value {
    match value {
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::Integer(number) => toml::Value::Integer(*number),
        Value::Float(number) => toml::Value::Float(*number),
        Value::Flag(flag) => toml::Value::Boolean(*flag),
        Value::List(list) => {
            toml::Value::Array(list.iter().map(|node| plain(&node.value)).collect())
        }
        Value::Table(table) => toml::Value::Table(table.to_toml()),
    }
}

/// Which line an offset is in.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Result<Table, TreeError> {
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
        .collect::<Result<BTreeMap<String, Node>, TreeError>>()
        .map(Table)
}

/// A value whose key stands at `at`; `offset` is where the value itself begins.
fn convert(
    value: &DeValue<'_>,
    at: Place,
    offset: usize,
    place: &dyn Fn(usize) -> Place,
) -> Result<Node, TreeError> {
    let refuse = |problem: String| TreeError {
        place: place(offset),
        key: String::new(),
        problem,
    };
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

/// Reads the right side of `--set key=value`.
fn read_value(text: &str, place: &Place) -> Value {
    // A whole line keeps the TOML grammar in charge; what it refuses is meant as a string.
    let line = format!("value = {text}");
    let parsed = DeTable::parse(&line).ok().and_then(|table| {
        let here = |_| place.clone();
        let mut table = convert_table(table.get_ref(), &here).ok()?;
        let value = table.0.remove("value")?.value;
        table.is_empty().then_some(value)
    });
    parsed.unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Takes typed values out of a table.
pub struct Section<'a> {
    table: &'a Table,
    place: Place,
    path: String,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole of a text.
    pub fn new(table: &'a Table, place: Place) -> Section<'a> {
        Section {
            table,
            place,
            path: String::new(),
            known: Vec::new(),
        }
    }

    /// Where the table stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The table itself.
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// Its name with all tables around it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A file that a key names: one that stands in a scenario file is looked for beside that, one
    /// that stands on the command line where the command runs.
    pub fn beside(&self, key: &str, file: &str) -> String {
        let place = self.table.0.get(key).map(|node| &node.place);
        match place {
            Some(Place::Line(scenario, _)) => {
                let path = Path::new(scenario.as_ref()).with_file_name(file);
                path.to_string_lossy().into_owned()
            }
            _ => file.to_owned(),
        }
    }

    /// An error about one of its keys.
    pub fn error(&self, key: &str, problem: impl Into<String>) -> TreeError {
        let place = self
            .table
            .0
            .get(key)
            .map_or(&self.place, |node| &node.place);
        TreeError {
            place: place.clone(),
            key: join(&self.path, key),
            problem: problem.into(),
        }
    }

    /// The value of a key, which is thereby known.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.0.get(key)
    }

    /// Whether the key is there; does not make it known.
    pub fn has(&self, key: &str) -> bool {
        self.table.0.contains_key(key)
    }

    fn wrong(&self, key: &str, node: &Node, expected: &str) -> TreeError {
        self.error(
            key,
            format!("is {}, but should be {expected}", node.value.kind()),
        )
    }

    /// A string.
    ///
    /// # Errors
    ///
    /// If it is something else; so for the others.
    pub fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Text(text) => Ok(Some(text)),
            _ => Err(self.wrong(key, node, "a string")),
        }
    }

    /// A string or a list of strings, each of which may hold commas.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn texts(&mut self, key: &'static str) -> Result<Vec<&'a str>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(Vec::new());
        };
        let text = |node: &'a Node| match &node.value {
            Value::Text(text) => Ok(text.as_str()),
            _ => Err(self.wrong(key, node, "a string or a list of strings")),
        };
        match &node.value {
            Value::List(list) => list.iter().map(text).collect(),
            _ => Ok(vec![text(node)?]),
        }
    }

    /// A string that something reads, such as a duration.
    ///
    /// # Errors
    ///
    /// With what the reader says.
    pub fn parse<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Text(text) => match read(text) {
                Ok(value) => Ok(Some(value)),
                Err(problem) => Err(self.error(key, format!("\"{text}\": {problem}"))),
            },
            _ => Err(self.wrong(key, node, expected)),
        }
    }

    /// A duration with its unit.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<Nanos>, TreeError> {
        self.parse(key, "a duration with its unit, such as \"30ms\"", |text| {
            text.parse::<Nanos>().map_err(|error| error.to_string())
        })
    }

    /// A size with its unit.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn size(&mut self, key: &'static str) -> Result<Option<Bytes>, TreeError> {
        self.parse(key, "a size with its unit, such as \"4KiB\"", |text| {
            text.parse::<Bytes>().map_err(|error| error.to_string())
        })
    }

    /// A whole number in a range.
    ///
    /// # Errors
    ///
    /// If it is none, or outside.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        self.integer_of(key, node, &range).map(Some)
    }

    fn integer_of(
        &self,
        key: &str,
        node: &Node,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, TreeError> {
        let number = match &node.value {
            Value::Integer(number) => *number,
            _ => return Err(self.wrong(key, node, "a whole number")),
        };
        match u64::try_from(number) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let (low, high) = (range.start(), range.end());
                let allowed = if *high >= i64::MAX as u64 {
                    format!("{low} and more")
                } else {
                    format!("{low} to {high}")
                };
                Err(self.error(
                    key,
                    format!("{number} is out of range; allowed is {allowed}"),
                ))
            }
        }
    }

    /// A number in a range, with or without a point.
    ///
    /// # Errors
    ///
    /// If it is none, or outside.
    pub fn float(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let number = match &node.value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return Err(self.wrong(key, node, "a number")),
        };
        if range.contains(&number) {
            Ok(Some(number))
        } else {
            let (low, high) = (range.start(), range.end());
            let problem = format!("{number} is out of range; allowed is {low} to {high}");
            Err(self.error(key, problem))
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn flag(&mut self, key: &'static str) -> Result<Option<bool>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Flag(flag) => Ok(Some(*flag)),
            _ => Err(self.wrong(key, node, "true or false")),
        }
    }

    /// One value or a list of them; a string may itself be a list by comma, whose commas within
    /// parentheses do not count.
    fn items(&mut self, key: &'static str) -> Result<Option<Vec<Node>>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let items = match &node.value {
            Value::List(list) => list.clone(),
            Value::Text(text) => split_list(text)
                .map(|item| Node {
                    // `--set engine.depth=1,4` is no TOML; its items are.
                    value: read_value(item, &node.place),
                    place: node.place.clone(),
                })
                .collect(),
            _ => vec![node.clone()],
        };
        if items.is_empty() {
            return Err(self.error(key, "is an empty list; give at least one"));
        }
        Ok(Some(items))
    }

    /// One or several whole numbers in a range.
    ///
    /// # Errors
    ///
    /// If one is none, or outside, or if there is none.
    pub fn integers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Vec<u64>>, TreeError> {
        let Some(items) = self.items(key)? else {
            return Ok(None);
        };
        let numbers = items.iter().map(|node| self.integer_of(key, node, &range));
        numbers.collect::<Result<_, _>>().map(Some)
    }

    /// One or several flags.
    ///
    /// # Errors
    ///
    /// If one is neither `true` nor `false`, or if there is none.
    pub fn flags(&mut self, key: &'static str) -> Result<Option<Vec<bool>>, TreeError> {
        let Some(items) = self.items(key)? else {
            return Ok(None);
        };
        let flags = items.iter().map(|node| match &node.value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(self.wrong(key, node, "true or false")),
        });
        flags.collect::<Result<_, _>>().map(Some)
    }

    /// One or several strings that something reads, such as schedulers.
    ///
    /// # Errors
    ///
    /// With what the reader says.
    pub fn parse_list<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let mut texts: Vec<&str> = Vec::new();
        match &node.value {
            Value::Text(text) => texts.extend(split_list(text)),
            Value::List(list) => {
                for item in list {
                    match &item.value {
                        Value::Text(text) => texts.extend(split_list(text)),
                        _ => return Err(self.wrong(key, item, expected)),
                    }
                }
            }
            _ => return Err(self.wrong(key, node, expected)),
        }
        if texts.is_empty() {
            return Err(self.error(key, "is an empty list; give at least one"));
        }
        let values = texts
            .into_iter()
            .map(|text| read(text).map_err(|problem| self.error(key, problem)));
        values.collect::<Result<_, _>>().map(Some)
    }

    /// A table within.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Table(table) => Ok(Some(Section {
                table,
                place: node.place.clone(),
                path: join(&self.path, key),
                known: Vec::new(),
            })),
            _ => Err(self.wrong(key, node, "a table")),
        }
    }

    /// One table, or a list of tables.
    ///
    /// # Errors
    ///
    /// If it is something else, or an empty list.
    pub fn sections(&mut self, key: &'static str) -> Result<Option<Vec<Section<'a>>>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let Value::List(list) = &node.value else {
            return Ok(self.section(key)?.map(|section| vec![section]));
        };
        if list.is_empty() {
            return Err(self.error(key, "is an empty list; give at least one"));
        }
        let sections = list
            .iter()
            .enumerate()
            .map(|(number, item)| match &item.value {
                Value::Table(table) => Ok(Section {
                    table,
                    place: item.place.clone(),
                    path: join(&self.path, &format!("{key}[{number}]")),
                    known: Vec::new(),
                }),
                _ => Err(self.wrong(key, item, "a table")),
            });
        sections.collect::<Result<_, _>>().map(Some)
    }

    /// A table as it is, whatever its keys.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn any_table(&mut self, key: &'static str) -> Result<Option<&'a Table>, TreeError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        match &node.value {
            Value::Table(table) => Ok(Some(table)),
            _ => Err(self.wrong(key, node, "a table")),
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// At the first key that nobody asked for, with the known one that it resembles.
    pub fn finish(self) -> Result<(), TreeError> {
        let unknown = self
            .table
            .0
            .keys()
            .find(|key| !self.known.contains(&key.as_str()));
        let Some(unknown) = unknown else {
            return Ok(());
        };
        let mut known = self.known.clone();
        known.sort_unstable();
        let allowed = known.join(", ");
        let problem = match nearest(unknown, known.iter().copied()) {
            Some(guess) => format!("unknown key; did you mean `{guess}`? Allowed here: {allowed}"),
            None => format!("unknown key; allowed here: {allowed}"),
        };
        Err(self.error(unknown, problem))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The items of a list by comma; commas within parentheses do not count, blanks around an item
/// are cut, and empty items vanish.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0
    })
    .map(str::trim)
    .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Table {
        Table::parse("s.toml", text).unwrap()
    }

    fn place() -> Place {
        Place::BuiltIn
    }

    #[test]
    fn values_know_their_lines() {
        let table = parse("a = 1\n\n[b]\nc = \"3\"\nd = 7\n");
        let mut top = Section::new(&table, place());
        assert_eq!(top.integer("a", 0..=9), Ok(Some(1)));
        let mut b = top.section("b").unwrap().unwrap();
        assert_eq!(b.text("c"), Ok(Some("3")));
        let error = b.integer("d", 0..=6).unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:5: b.d: 7 is out of range; allowed is 0 to 6"
        );
        let error = b.duration("d").unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:5: b.d: is the number 7, but should be a duration with its unit, such as \"30ms\""
        );
        let error = b.duration("c").unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:4: b.c: \"3\": a duration needs its unit: ns, us, ms, s, m, h or d, as in 30ms"
        );
    }

    #[test]
    fn unknown_keys_are_refused_with_a_guess() {
        let table = parse("[engine]\nmerge = true\ndeph = 4\n");
        let mut top = Section::new(&table, place());
        let mut engine = top.section("engine").unwrap().unwrap();
        engine.flag("merge").unwrap();
        engine.integer("depth", 1..=256).unwrap();
        let error = engine.finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:3: engine.deph: unknown key; did you mean `depth`? Allowed here: depth, merge"
        );
        top.finish().unwrap();
        let table = parse("zzz = 4\n");
        let mut top = Section::new(&table, place());
        top.text("abc").unwrap();
        assert_eq!(
            top.finish().unwrap_err().to_string(),
            "s.toml:1: zzz: unknown key; allowed here: abc"
        );
    }

    #[test]
    fn options_override_and_name_themselves() {
        let mut table = parse("[engine]\ndepth = 1\n[[load]]\nn = 1\n[[load]]\nn = 2\n");
        table
            .set("--set engine.depth=1,4", "engine.depth", "1,4")
            .unwrap();
        table
            .set("--set drive.profile=atlas10k", "drive.profile", "atlas10k")
            .unwrap();
        table.set("--set load.1.n=300", "load.1.n", "300").unwrap();
        let mut top = Section::new(&table, place());
        let mut engine = top.section("engine").unwrap().unwrap();
        assert_eq!(engine.integers("depth", 1..=256), Ok(Some(vec![1, 4])));
        let mut drive = top.section("drive").unwrap().unwrap();
        assert_eq!(drive.text("profile"), Ok(Some("atlas10k")));
        let mut loads = top.sections("load").unwrap().unwrap();
        let error = loads[1].integer("n", 0..=256).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--set load.1.n=300: load[1].n: 300 is out of range; allowed is 0 to 256"
        );
        for (key, problem) in [
            ("load.5.n", "load: has no entry 5; there are 2, from 0"),
            ("load.n", "load: is a list of 2; say which, as in load.0"),
            (
                "engine.depth.x",
                "engine.depth: is the string \"1,4\", not a table",
            ),
            (
                "engine..x",
                "engine..x: not a key; write for example engine.depth=4",
            ),
        ] {
            let error = table.set("--set", key, "1").unwrap_err();
            assert_eq!(error.to_string(), format!("--set: {problem}"));
        }
    }

    #[test]
    fn tables_are_laid_over_each_other() {
        let mut table = parse("a = 1\nb.c = 1\nb.d = [1, 2]\n");
        table.overlay(&parse("b.d = [3]\nb.e.f = 4\na.g = 5\n"));
        let all: toml::Table = "a.g = 5\nb.c = 1\nb.d = [3]\nb.e.f = 4\n".parse().unwrap();
        assert_eq!(table.to_toml(), all);
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

    #[test]
    fn files_are_beside_the_scenario_that_names_them() {
        let mut table = Table::parse("some/where/s.toml", "a = 'x.trace'").unwrap();
        table.set("--set", "b", "x.trace").unwrap();
        let top = Section::new(&table, place());
        assert_eq!(top.beside("a", "x.trace"), "some/where/x.trace");
        assert_eq!(top.beside("a", "/x.trace"), "/x.trace");
        assert_eq!(top.beside("b", "x.trace"), "x.trace");
        let table = Table::parse("s.toml", "a = 'x.trace'").unwrap();
        assert_eq!(
            Section::new(&table, place()).beside("a", "x.trace"),
            "x.trace"
        );
    }

    #[test]
    fn lists_split_outside_parentheses() {
        let items: Vec<&str> = split_list("noop, stream(a,b):x=1 ,,sstf").collect();
        assert_eq!(items, ["noop", "stream(a,b):x=1", "sstf"]);
    }
}
