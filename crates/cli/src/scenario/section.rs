//! Typed values out of a table: what nobody takes is refused at the end.

use super::tree::{Node, Place, Table, TreeError, Value};
use headtime_config::split_list;
use headtime_units::{Bytes, Nanos, nearest};
use std::ops::RangeInclusive;
use std::path::Path;

fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
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
        let place = self.table.get(key).map(|node| &node.place);
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
        let place = self.table.get(key).map_or(&self.place, |node| &node.place);
        TreeError {
            place: place.clone(),
            key: join(&self.path, key),
            problem: problem.into(),
        }
    }

    /// The value of a key, which is thereby known.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Whether the key is there; does not make it known.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
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
        let items = node.items();
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

    /// Says which keys there can be, before any is read: a misspelt one is named as such then, and
    /// not by what is missing without it. [`Section::finish`] is needed all the same, as which of
    /// them fit together shows only later.
    ///
    /// # Errors
    ///
    /// At the first key that is another, with the one that it resembles.
    pub fn allow(&self, keys: &[&str]) -> Result<(), TreeError> {
        let given = self.table.iter().map(|(key, _)| key);
        let Some(unknown) = given.into_iter().find(|key| !keys.contains(key)) else {
            return Ok(());
        };
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let allowed = keys.join(", ");
        let problem = match nearest(unknown, keys.iter().copied()) {
            Some(guess) => format!("unknown key; did you mean `{guess}`? Allowed here: {allowed}"),
            None => format!("unknown key; allowed here: {allowed}"),
        };
        Err(self.error(unknown, problem))
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// At the first key that nobody asked for, with the known one that it resembles.
    pub fn finish(self) -> Result<(), TreeError> {
        self.allow(&self.known)
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
