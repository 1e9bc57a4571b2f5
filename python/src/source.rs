//! Scenarios from Python: a dict, a file, or a text.

use crate::error::Failure;
use headtime_config::{Error, Node, Place, Table, Value};
use headtime_lab::fault::Fault;
use headtime_lab::fio;
use headtime_lab::scenario::Scenario;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of a scenario that is a text, in errors.
const TEXT: &str = "scenario";
/// Method of an object that returns its keys of a scenario.
const KEYS: &str = "_keys";

/// A scenario as keys and values.
pub struct Source {
    pub table: Table,
    /// Place of the whole text.
    pub place: Place,
    pub notes: Vec<String>,
}

impl Source {
    /// Reads a scenario, and puts settings and a seed into it. Without a scenario, takes the built-in one.
    pub fn new(
        scenario: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
        seed: Option<u64>,
    ) -> Result<Source, Failure> {
        let mut source = match scenario {
            None => Source {
                table: Scenario::default_table(),
                place: Place::BuiltIn,
                notes: Vec::new(),
            },
            Some(scenario) => Source::read(scenario)?,
        };
        if let Some(settings) = settings {
            let place = Place::Option("settings".into());
            let table = &mut source.table;
            each(settings, "", &place, &mut |key, node| {
                Scenario::put(table, key, node)
            })?;
        }
        if let Some(seed) = seed {
            let place = Place::Option("seed".into());
            let value = Value::Integer(seed as i64);
            source.table.set_value("seed", Node { value, place })?;
        }
        Ok(source)
    }

    fn read(scenario: &Bound<'_, PyAny>) -> Result<Source, Failure> {
        if let Ok(dict) = scenario.cast::<PyDict>() {
            return Ok(Source {
                table: table(dict, &Place::NoText)?,
                place: Place::NoText,
                notes: Vec::new(),
            });
        }
        if let Ok(text) = scenario.cast::<PyString>() {
            let text = text.to_str()?;
            if text.contains(['\n', '=']) {
                return Source::parse(TEXT, text);
            }
        }
        let path: PathBuf = scenario.extract().map_err(|_| {
            let kind = scenario.get_type();
            let problem = format!("a scenario is a dict, a file or a text, and not {kind}");
            PyTypeError::new_err(problem)
        })?;
        Source::open(&path)
    }

    /// Reads a file: TOML, or a job of fio.
    pub fn open(path: &Path) -> Result<Source, Failure> {
        let file = path.display().to_string();
        let text = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
        let text = String::from_utf8(text);
        let text = text.map_err(|_| Fault::Input(format!("{file}: is not text in UTF-8")))?;
        let end = path.extension();
        if end.is_some_and(|end| end.eq_ignore_ascii_case("fio")) {
            let (table, notes) = fio::table(&file, &text)?;
            let place = Place::line(&file, 1);
            return Ok(Source {
                table,
                place,
                notes,
            });
        }
        Source::parse(&file, &text)
    }

    fn parse(file: &str, text: &str) -> Result<Source, Failure> {
        Ok(Source {
            table: Table::parse(file, text)?,
            place: Place::line(file, 1),
            notes: Vec::new(),
        })
    }

    /// The scenario.
    pub fn scenario(&self) -> Result<Scenario, Failure> {
        Ok(Scenario::from_table(&self.table, self.place.clone())?)
    }
}

/// A dict as a table.
pub fn table(dict: &Bound<'_, PyDict>, place: &Place) -> Result<Table, Failure> {
    let mut table = Table::default();
    each(dict, "", place, &mut |key, node| table.set_value(key, node))?;
    Ok(table)
}

/// The values of a dict with their dotted keys. A dict in the dict is a table, also if a dotted key names the same table.
pub fn each(
    dict: &Bound<'_, PyDict>,
    of: &str,
    place: &Place,
    put: &mut dyn FnMut(&str, Node) -> Result<(), Error>,
) -> Result<(), Failure> {
    for (key, value) in dict {
        let key = key.cast::<PyString>().map_err(|_| {
            let of = if of.is_empty() { TEXT } else { of };
            PyTypeError::new_err(format!("{of}: the key {key} is not a text"))
        })?;
        let key = match of {
            "" => key.to_str()?.to_owned(),
            of => format!("{of}.{}", key.to_str()?),
        };
        let value = plain(value)?;
        match value.cast::<PyDict>() {
            Ok(inner) => each(inner, &key, place, put)?,
            Err(_) => put(&key, node(&key, &value, place)?)?,
        }
    }
    Ok(())
}

/// The dict that an object stands for, or the value itself.
fn plain(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    match value.getattr_opt(KEYS)? {
        Some(keys) => keys.call0(),
        None => Ok(value),
    }
}

/// A value as a node of a scenario.
pub fn node(key: &str, value: &Bound<'_, PyAny>, place: &Place) -> Result<Node, Failure> {
    let value = if let Ok(text) = value.cast::<PyString>() {
        Value::Text(text.to_str()?.to_owned())
    } else if let Ok(flag) = value.cast::<PyBool>() {
        Value::Flag(flag.is_true())
    } else if let Ok(dict) = value.cast::<PyDict>() {
        Value::Table(table(dict, place)?)
    } else if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>();
        Value::Integer(number.map_err(|_| wrong(key, value))?)
    } else if value.is_instance_of::<PyFloat>() {
        Value::Float(value.extract()?)
    } else if let Ok(path) = value.extract::<PathBuf>() {
        Value::Text(path.display().to_string())
    } else if let Ok(number) = value.extract::<i64>() {
        // Numbers of other packages, such as numpy's.
        Value::Integer(number)
    } else if let Ok(number) = value.extract::<f64>() {
        Value::Float(number)
    } else if let Ok(items) = value.try_iter() {
        let item = |item: PyResult<Bound<'_, PyAny>>| node(key, &plain(item?)?, place);
        Value::List(items.map(item).collect::<Result<_, _>>()?)
    } else {
        return Err(wrong(key, value).into());
    };
    let place = place.clone();
    Ok(Node { value, place })
}

fn wrong(key: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{key}: is {value}; allowed are a text, a number, a flag, a list and a dict"
    ))
}
