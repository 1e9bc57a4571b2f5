//! Typed values out of a table: what nobody takes is refused at the end.

use super::tree::{Node, Place, Table, TreeError, Value, join, read_value};
use headtime_units::{Bytes, Nanos, nearest};
use std::ops::RangeInclusive;
use std::path::Path;

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
        let items = items(node);
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
        let given = self.table.0.keys();
        let Some(unknown) = given.into_iter().find(|key| !keys.contains(&key.as_str())) else {
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

/// One value or a list of them; a string may itself be a list by comma.
pub fn items(node: &Node) -> Vec<Node> {
    match &node.value {
        Value::List(list) => list.clone(),
        Value::Text(text) => split_list(text)
            .map(|item| Node {
                // `--set engine.depth=1,4` is no TOML; its items are.
                value: read_value(item, &node.place),
                place: node.place.clone(),
            })
            .collect(),
        _ => vec![node.clone()],
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
