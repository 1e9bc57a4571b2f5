//! The parameters of one block.

use crate::error::ImportError;
use crate::findings::Findings;
use crate::syntax::{Block, Entry, Param, Value};
use headtime_units::{Nanos, SignedNanos, nearest};
use std::cell::RefCell;

/// Reads parameters of a block and remembers which were read.
pub(crate) struct Fields<'a> {
    pub(crate) block: &'a Block,
    known: RefCell<Vec<&'static str>>,
}

const LONGEST_MS: f64 = 4000.0;

impl<'a> Fields<'a> {
    pub(crate) fn new(block: &'a Block) -> Fields<'a> {
        Fields {
            block,
            known: RefCell::new(Vec::new()),
        }
    }

    /// An error about a parameter, or about the block if it is not there.
    pub(crate) fn error(&self, key: &str, message: impl Into<String>) -> ImportError {
        ImportError::Parameter {
            file: self.block.file.to_string(),
            line: self.line_of(key),
            key: key.to_string(),
            message: message.into(),
        }
    }

    /// The line of a parameter, or of the block if it is not there.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        let param = self.block.last(key);
        param.map_or(self.block.line, |param| param.line)
    }

    /// File, line and name of a parameter, as notes begin.
    pub(crate) fn place(&self, key: &str) -> String {
        format!("{}:{}: `{key}`", self.block.file, self.line_of(key))
    }

    pub(crate) fn param(&self, key: &'static str) -> Option<&'a Param> {
        self.known.borrow_mut().push(key);
        self.block.last(key)
    }

    /// Parameters that say nothing about the drive.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        self.known.borrow_mut().extend(keys);
    }

    /// Reports the parameters that no reader asked for.
    ///
    /// A parameter with almost the name of a missing one is an error: the importer would lose the value that the
    /// block meant. Other unknown parameters belong to another version of the simulator, and do no harm.
    pub(crate) fn finish(&self, found: &mut Findings) -> Result<(), ImportError> {
        let known = self.known.borrow();
        for param in &self.block.params {
            if known.contains(&param.key.as_str()) {
                continue;
            }
            let kind = &self.block.kind;
            let meant = nearest(&param.key, known.iter().copied());
            if let Some(meant) = meant.filter(|key| self.block.last(key).is_none()) {
                let message = format!("unknown parameter of {kind}; did you mean `{meant}`?");
                return Err(self.error(&param.key, message));
            }
            found.note(format!(
                "{}: unknown parameter of {kind}, passed over",
                self.place(&param.key)
            ));
        }
        Ok(())
    }

    fn missing(&self, key: &str) -> ImportError {
        let (kind, name) = (&self.block.kind, &self.block.name);
        let blank = if name.is_empty() { "" } else { " " };
        self.error(key, format!("missing in {kind}{blank}{name}"))
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<&'a str>, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.error(key, "should be a single value")),
        }
    }

    pub(crate) fn required_text(&self, key: &'static str) -> Result<&'a str, ImportError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// An integer from `least` to `most`.
    pub(crate) fn integer(
        &self,
        key: &'static str,
        least: i64,
        most: i64,
    ) -> Result<i64, ImportError> {
        let text = self.required_text(key)?;
        match integer(text) {
            Some(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(self.error(
                key,
                format!("{text} is not allowed; allowed is an integer from {least} to {most}"),
            )),
        }
    }

    pub(crate) fn count(
        &self,
        key: &'static str,
        least: u32,
        most: u32,
    ) -> Result<u32, ImportError> {
        self.integer(key, i64::from(least), i64::from(most))
            .map(|value| value as u32)
    }

    /// A count that another parameter limits; one above the limit is taken as that.
    pub(crate) fn count_up_to(
        &self,
        key: &'static str,
        least: u32,
        (limit, most): (&str, u32),
        found: &mut Findings,
    ) -> Result<u32, ImportError> {
        let count = self.count(key, least, u32::MAX)?;
        if count > most {
            found.note(format!(
                "{} is {count}, more than `{limit}`; taken as {most}",
                self.place(key)
            ));
        }
        Ok(count.min(most))
    }

    /// 0 or 1.
    pub(crate) fn flag(&self, key: &'static str) -> Result<bool, ImportError> {
        self.integer(key, 0, 1).map(|value| value == 1)
    }

    pub(crate) fn number(
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

    pub(crate) fn required_number(
        &self,
        key: &'static str,
        least: f64,
        most: f64,
    ) -> Result<f64, ImportError> {
        self.number(key, least, most)?
            .ok_or_else(|| self.missing(key))
    }

    /// A time, which parameter files give in milliseconds; up to four seconds.
    pub(crate) fn required_millis(&self, key: &'static str) -> Result<Nanos, ImportError> {
        self.required_number(key, 0.0, LONGEST_MS)
            .map(Nanos::from_millis_f64)
    }

    /// A time that is measured as a difference, so that it may come out below nothing; then none.
    pub(crate) fn measured_millis(
        &self,
        key: &'static str,
        found: &mut Findings,
    ) -> Result<f64, ImportError> {
        let millis = self.required_number(key, -LONGEST_MS, LONGEST_MS)?;
        if millis < 0.0 {
            found.note(format!("{} is {millis}; taken as 0", self.place(key)));
        }
        Ok(millis.max(0.0))
    }

    /// A time that may be negative; up to four seconds either way.
    pub(crate) fn required_signed_millis(
        &self,
        key: &'static str,
    ) -> Result<SignedNanos, ImportError> {
        self.required_number(key, -LONGEST_MS, LONGEST_MS)
            .map(SignedNanos::from_millis_f64)
    }

    pub(crate) fn list(&self, key: &'static str) -> Result<Option<&'a [Entry]>, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Ok(None),
            Some(Value::List(entries)) => Ok(Some(entries)),
            Some(_) => Err(self.error(key, "should be a list in brackets")),
        }
    }

    pub(crate) fn required_list(&self, key: &'static str) -> Result<&'a [Entry], ImportError> {
        self.list(key)?.ok_or_else(|| self.missing(key))
    }

    pub(crate) fn block(&self, key: &'static str) -> Result<&'a Block, ImportError> {
        match self.param(key).map(|param| &param.value) {
            None => Err(self.missing(key)),
            Some(Value::Block(block)) => Ok(block),
            Some(_) => Err(self.error(key, "should be a block in braces")),
        }
    }

    /// The items of a list as numbers from `least` on.
    pub(crate) fn numbers(&self, key: &'static str, least: f64) -> Result<Vec<f64>, ImportError> {
        let entries = self.required_list(key)?;
        entries
            .iter()
            .map(|entry| entry.number(key, least, f64::MAX))
            .collect()
    }

    /// The items of a list as integers from zero on; none if it is not given.
    pub(crate) fn places(&self, key: &'static str) -> Result<Vec<u64>, ImportError> {
        let entries = self.list(key)?.unwrap_or_default();
        entries
            .iter()
            .map(|entry| entry.count(key, u64::MAX))
            .collect()
    }
}

/// An integer as parameter files spell it: decimal, hexadecimal, or with nothing behind a point.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    if let Some(digits) = digits.strip_prefix("0x") {
        let value = i64::from_str_radix(digits, 16).ok()?;
        return (value >= 0).then_some(sign * value);
    }
    let whole = match text.split_once('.') {
        Some((whole, rest)) if !rest.is_empty() && rest.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    whole.parse().ok()
}

impl Entry {
    /// An error about this item of the list `key`.
    pub(crate) fn error(&self, key: &str, message: impl Into<String>) -> ImportError {
        ImportError::Parameter {
            file: self.file.to_string(),
            line: self.line,
            key: key.to_string(),
            message: message.into(),
        }
    }

    /// The item's text or, without a single value, the name of its kind.
    pub(crate) fn text(&self) -> &str {
        match &self.value {
            Value::Text(text) => text,
            Value::List(_) => "a list",
            Value::Block(_) => "a block",
            Value::Source(_) => "a file",
        }
    }

    pub(crate) fn number(&self, key: &str, least: f64, most: f64) -> Result<f64, ImportError> {
        let text = self.text();
        match text.parse::<f64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => {
                let allowed = if most == f64::MAX {
                    format!("numbers from {least} on")
                } else {
                    format!("numbers from {least} to {most}")
                };
                let message = format!("{text} is not allowed; allowed are {allowed}");
                Err(self.error(key, message))
            }
        }
    }

    pub(crate) fn integer(&self, key: &str, least: i64, most: i64) -> Result<i64, ImportError> {
        let text = self.text();
        match integer(text) {
            Some(value) if (least..=most).contains(&value) => Ok(value),
            _ => {
                let allowed = format!("integers from {least} to {most}");
                let message = format!("{text} is not allowed; allowed are {allowed}");
                Err(self.error(key, message))
            }
        }
    }

    pub(crate) fn count(&self, key: &str, most: u64) -> Result<u64, ImportError> {
        let text = self.text();
        match text.parse::<u64>() {
            Ok(value) if value <= most => Ok(value),
            _ => {
                let allowed = if most == u64::MAX {
                    "integers from 0 on".to_string()
                } else {
                    format!("integers from 0 to {most}")
                };
                let message = format!("{text} is not allowed; allowed are {allowed}");
                Err(self.error(key, message))
            }
        }
    }
}
