//! The parameters of one block.

use super::ImportError;
use super::syntax::{Block, Param, Value};
use headtime_units::{Nanos, SignedNanos, nearest};
use std::cell::RefCell;

/// Takes parameters out of a block and keeps account of which were asked for.
pub(super) struct Fields<'a> {
    pub(super) block: &'a Block,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(block: &'a Block) -> Fields<'a> {
        Fields {
            block,
            known: RefCell::new(Vec::new()),
        }
    }

    /// An error about a parameter, or about the block if it is not there.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> ImportError {
        let param = self.block.last(key);
        ImportError::Parameter {
            file: self.block.file.to_string(),
            line: param.map_or(self.block.line, |param| param.line),
            key: key.to_string(),
            message: message.into(),
        }
    }

    pub(super) fn param(&self, key: &'static str) -> Option<&'a Param> {
        self.known.borrow_mut().push(key);
        self.block.last(key)
    }

    /// Parameters that say nothing about the drive.
    pub(super) fn ignore(&self, keys: &[&'static str]) {
        self.known.borrow_mut().extend(keys);
    }

    /// Fails on the first parameter that nobody asked for.
    pub(super) fn finish(&self) -> Result<(), ImportError> {
        let known = self.known.borrow();
        for param in &self.block.params {
            if !known.contains(&param.key.as_str()) {
                let meant = nearest(&param.key, known.iter().copied())
                    .map(|key| format!("; did you mean `{key}`?"))
                    .unwrap_or_default();
                let message = format!("unknown parameter of {}{meant}", self.block.kind);
                return Err(self.error(&param.key, message));
            }
        }
        Ok(())
    }

    fn missing(&self, key: &str) -> ImportError {
        self.error(
            key,
            format!("missing in {} {}", self.block.kind, self.block.name),
        )
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<&'a str>, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.error(key, "should be a single value")),
        }
    }

    pub(super) fn required_text(&self, key: &'static str) -> Result<&'a str, ImportError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// An integer from `least` to `most`.
    pub(super) fn integer(
        &self,
        key: &'static str,
        least: i64,
        most: i64,
    ) -> Result<i64, ImportError> {
        let text = self.required_text(key)?;
        match text.parse::<i64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(self.error(
                key,
                format!("{text} is not allowed; allowed is an integer from {least} to {most}"),
            )),
        }
    }

    pub(super) fn count(
        &self,
        key: &'static str,
        least: u32,
        most: u32,
    ) -> Result<u32, ImportError> {
        self.integer(key, i64::from(least), i64::from(most))
            .map(|value| value as u32)
    }

    /// 0 or 1.
    pub(super) fn flag(&self, key: &'static str) -> Result<bool, ImportError> {
        self.integer(key, 0, 1).map(|value| value == 1)
    }

    pub(super) fn number(
        &self,
        key: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, ImportError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
            _ => Err(self.error(
                key,
                format!("{text} is not allowed; allowed is a number from {least} to {most}"),
            )),
        }
    }

    pub(super) fn required_number(
        &self,
        key: &'static str,
        least: f64,
        most: f64,
    ) -> Result<f64, ImportError> {
        self.number(key, least, most)?
            .ok_or_else(|| self.missing(key))
    }

    /// A time, which parameter files give in milliseconds; up to four seconds.
    pub(super) fn millis(&self, key: &'static str) -> Result<Option<Nanos>, ImportError> {
        Ok(self
            .number(key, 0.0, LONGEST_MS)?
            .map(Nanos::from_millis_f64))
    }

    pub(super) fn required_millis(&self, key: &'static str) -> Result<Nanos, ImportError> {
        self.millis(key)?.ok_or_else(|| self.missing(key))
    }

    /// A time that may be negative; up to four seconds either way.
    pub(super) fn required_signed_millis(
        &self,
        key: &'static str,
    ) -> Result<SignedNanos, ImportError> {
        self.required_number(key, -LONGEST_MS, LONGEST_MS)
            .map(SignedNanos::from_millis_f64)
    }

    pub(super) fn list(
        &self,
        key: &'static str,
    ) -> Result<Option<&'a [(usize, Value)]>, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Ok(None),
            Some(Value::List(items)) => Ok(Some(items)),
            Some(_) => Err(self.error(key, "should be a list in brackets")),
        }
    }

    pub(super) fn required_list(
        &self,
        key: &'static str,
    ) -> Result<&'a [(usize, Value)], ImportError> {
        self.list(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn block(&self, key: &'static str) -> Result<&'a Block, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Err(self.missing(key)),
            Some(Value::Block(block)) => Ok(block),
            Some(_) => Err(self.error(key, "should be a block in braces")),
        }
    }

    /// The items of a list as numbers from `least` on.
    pub(super) fn numbers(
        &self,
        key: &'static str,
        items: &[(usize, Value)],
        least: f64,
    ) -> Result<Vec<f64>, ImportError> {
        let parse = |(line, item): &(usize, Value)| {
            let text = match item {
                Value::Text(text) => text.as_str(),
                _ => "a list or block",
            };
            match text.parse::<f64>() {
                Ok(value) if value >= least && value.is_finite() => Ok(value),
                _ => Err(ImportError::Parameter {
                    file: self.block.file.to_string(),
                    line: *line,
                    key: key.to_string(),
                    message: format!("{text} is not allowed; allowed are numbers from {least} on"),
                }),
            }
        };
        items.iter().map(parse).collect()
    }

    /// The items of a list as integers from zero on.
    pub(super) fn places(
        &self,
        key: &'static str,
        items: &[(usize, Value)],
    ) -> Result<Vec<u64>, ImportError> {
        let parse = |(line, item): &(usize, Value)| {
            let text = match item {
                Value::Text(text) => text.as_str(),
                _ => "a list or block",
            };
            text.parse::<u64>().map_err(|_| ImportError::Parameter {
                file: self.block.file.to_string(),
                line: *line,
                key: key.to_string(),
                message: format!("{text} is not allowed; allowed are integers from 0 on"),
            })
        };
        items.iter().map(parse).collect()
    }
}

const LONGEST_MS: f64 = 4000.0;
