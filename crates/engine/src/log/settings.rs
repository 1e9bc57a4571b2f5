//! What a log says before the first event.

use super::{LogError, Reader, Record};
use std::io::BufRead;

/// A setting as it stands in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its line, counted from 1.
    pub line: usize,
    /// One word.
    pub key: String,
    /// The rest of the line.
    pub value: String,
}

impl<R: BufRead> Reader<R> {
    /// The settings up to the first other record, which is the next to be read.
    ///
    /// # Errors
    ///
    /// As [`Reader::next_record`].
    pub fn settings(&mut self) -> Result<Vec<Setting>, LogError> {
        let mut settings = Vec::new();
        while let Some((line, record)) = self.next_record()? {
            match record {
                Record::Setting { key, value } => settings.push(Setting { line, key, value }),
                other => {
                    self.put_back(line, other);
                    break;
                }
            }
        }
        Ok(settings)
    }
}
