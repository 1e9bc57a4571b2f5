//! A scenario's text as a tree whose every value knows where it stands.
//!
//! The tree comes from TOML; `--set key=value` puts further values into it. A [`Section`] takes
//! typed values out of a table.

use headtime_linux::shown::one_line;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

pub use super::section::{Section, items, split_list};

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
// Both hold text of the file.
#[error("{place}: {}{}", if key.is_empty() { String::new() } else { one_line(key) + ": " }, one_line(problem))]
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
    /// As a person writes it after `--set KEY=`.
    pub fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => plain(other).to_string(),
        }
    }

    /// What it is, for a message.
    pub(super) fn kind(&self) -> String {
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

impl Node {
    /// What stands behind the `=` of an option; see [`Table::set`].
    pub fn option(option: &str, text: &str) -> Node {
        let place = Place::Option(option.into());
        Node {
            value: read_value(text, &place),
            place,
        }
    }
}

/// Keys and values, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(pub(super) BTreeMap<String, Node>);

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
        self.set_value(key, Node::option(option, text))
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

    /// A dotted key with the number of every entry that it leads through: `workload.size` is
    /// `workload.0.size` where there is one workload. Two texts of a key have the same.
    pub fn full_key(&self, key: &str) -> String {
        let mut full: Vec<String> = Vec::new();
        let mut here = Some(self);
        let mut names = key.split('.').map(str::trim).peekable();
        while let Some(name) = names.next() {
            full.push(name.to_owned());
            let found = here.and_then(|table| table.0.get(name));
            here = match found.map(|node| &node.value) {
                Some(Value::Table(inner)) => Some(inner),
                Some(Value::List(list)) if names.peek().is_some() => {
                    let given = names.peek().and_then(|name| name.parse::<usize>().ok());
                    let number = match given {
                        Some(number) => {
                            names.next();
                            Some(number)
                        }
                        None => (list.len() == 1).then_some(0),
                    };
                    full.extend(number.map(|number| number.to_string()));
                    match number.and_then(|number| list.get(number)) {
                        Some(Node {
                            value: Value::Table(inner),
                            ..
                        }) => Some(inner),
                        _ => None,
                    }
                }
                _ => None,
            };
        }
        full.join(".")
    }

    /// The value of a dotted key, if there is one.
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

    /// All values with their dotted keys, as TOML; lists are values.
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

    /// The keys of the top table and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(key, node)| (key.as_str(), node))
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
pub(super) fn read_value(text: &str, place: &Place) -> Value {
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

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
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
            // Which of them is not said, and these are not there.
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
