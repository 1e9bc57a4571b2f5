//! Settings at the start of a log.

use super::{LogError, Reader, Record};
use std::io::BufRead;

/// A setting in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The line of the setting, counted from 1.
    pub line: usize,
    /// One word.
    pub key: String,
    /// The rest of the line.
    pub value: String,
}

impl<R: BufRead> Reader<R> {
    /// Reads the settings up to the first other record, which is read next.
    ///
    /// # Errors
    ///
    /// As for [`Reader::next_record`].
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
