//! The journal: a file beside a sweep's output with the results so far. An interrupted sweep continues from its journal.
//!
//! Each line is a hash of its text, a blank, and the text, which is JSON. The first line says which sweep it is. Each other
//! line has the result of one combination, in the order in which they ended. A line that is cut off, or does not have its
//! hash, counts as missing, and its combination runs again.

use super::Sweep;
use super::plan::Plan;
use super::results::{MeasuredRow, Outcome};
use crate::fault::Fault;
use crate::files::{lock, sync_directory};
use crate::hash::hash_of;
use crate::report::catalogue::columns;
use crate::report::field::Field;
use headtime_linux::clock::Clock;
use headtime_linux::shown::PathShown as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The form of the file.
const FORM: u32 = 1;
/// Time after which written lines are brought to the disk, in seconds.
const SYNC_S: f64 = 2.0;

/// Identity of a journal's sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    headtime_sweep: u32,
    pub(super) version: String,
    /// Identity of the runs: [`Plan::hash`].
    hash: String,
    /// Hash of the names of the results' columns and of the invariants' metrics.
    pub(super) columns: String,
    combinations: usize,
    /// Keys with their values, and files with hashes of their contents. Both serve to name changes.
    keys: BTreeMap<String, String>,
    sources: BTreeMap<String, String>,
}

/// A line: the result of one combination.
#[derive(Debug, Serialize, Deserialize)]
struct JournalLine {
    combination: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rows: Vec<Vec<String>>,
}

impl JournalLine {
    fn of(combination: usize, outcome: &Outcome) -> JournalLine {
        let (error, rows) = match outcome {
            Outcome::Failed(error) => (Some(error.clone()), Vec::new()),
            Outcome::Rows(rows) => (None, rows.iter().map(texts).collect()),
        };
        JournalLine {
            combination,
            error,
            rows,
        }
    }
}

fn line_text(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line).expect("a line has text keys");
    format!("{} {text}\n", hash_of(&text))
}

/// Text of a journal with some outcomes, by combination.
pub(super) fn text_of(head: &Head, outcomes: &BTreeMap<usize, Outcome>) -> String {
    let lines = outcomes.iter();
    let lines = lines.map(|(number, outcome)| line_text(&JournalLine::of(*number, outcome)));
    std::iter::once(line_text(head)).chain(lines).collect()
}

/// The file of a journal, locked by this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Time of the first write that may not be on the disk yet.
    unsynced: Option<Clock>,
    added: usize,
}

/// The results that a journal already had.
#[derive(Debug, Default)]
pub struct Kept {
    /// Outcomes by combination.
    pub outcomes: BTreeMap<usize, Outcome>,
    /// Number of damaged lines.
    pub damaged: usize,
}

impl Journal {
    /// Where the journal of an output is.
    pub fn beside(output: &Path) -> PathBuf {
        let mut name = OsString::from(output.file_name().unwrap_or_default());
        name.push(".partial");
        output.with_file_name(name)
    }

    /// Opens the journal of a sweep and reads its results. With `restart`, drops the results.
    ///
    /// # Errors
    ///
    /// If the file belongs to another sweep, or is no journal; if another process has it; if it cannot be read or written.
    pub fn open(path: &Path, plan: &Plan, restart: bool) -> Result<(Journal, Kept), Fault> {
        let mut file = lock(path, "another sweep is writing it; give another --out")?;
        let mut content = Vec::new();
        let read = file.read_to_end(&mut content);
        read.map_err(|error| Fault::reading(path, &error))?;
        let head = Head::of(plan);
        let found = JournalText::read(&content, path)?;
        let mut kept = Kept::default();
        let mut end = 0;
        if let Some(found) = found.filter(|_| !restart) {
            let instead = "--restart drops them and starts anew, another --out keeps them";
            (found.head).is_of(&head, path, found.kept.outcomes.len(), instead)?;
            kept = found.kept;
            end = found.end;
        }
        let fault = |error: io::Error| Fault::writing(path, &error);
        file.set_len(end).map_err(fault)?;
        file.seek(SeekFrom::Start(end)).map_err(fault)?;
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            unsynced: None,
            added: 0,
        };
        if end == 0 {
            journal.write(&head)?;
            journal.sync()?;
            // The name must survive a power failure too.
            sync_directory(path).map_err(fault)?;
        }
        Ok((journal, kept))
    }

    /// Adds the outcome of a combination.
    ///
    /// # Errors
    ///
    /// If the line cannot be written.
    pub fn add(&mut self, combination: usize, outcome: &Outcome) -> Result<(), Fault> {
        self.write(&JournalLine::of(combination, outcome))?;
        self.added += 1;
        self.rest()
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Fault> {
        let line = line_text(line);
        // Writes the line in one piece, so that a kill leaves whole lines behind.
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| Fault::writing(&self.path, &error))?;
        self.unsynced.get_or_insert_with(Clock::start);
        Ok(())
    }

    /// Brings written lines to the disk, if that is due.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn rest(&mut self) -> Result<(), Fault> {
        match self.unsynced {
            Some(since) if since.now().as_secs_f64() >= SYNC_S => self.sync(),
            _ => Ok(()),
        }
    }

    /// Brings all written lines to the disk.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn sync(&mut self) -> Result<(), Fault> {
        if self.unsynced.take().is_some() {
            let synced = self.file.sync_data();
            synced.map_err(|error| Fault::writing(&self.path, &error))?;
        }
        Ok(())
    }

    /// Removes the file, since its results are stored elsewhere.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn remove(self) -> Result<(), Fault> {
        fs::remove_file(&self.path).map_err(|error| Fault::writing(&self.path, &error))
    }

    /// Number of outcomes added.
    pub fn added(&self) -> usize {
        self.added
    }

    /// Name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Kept {
    /// Adds the outcomes of a journal of this sweep that nobody writes any more.
    ///
    /// # Errors
    ///
    /// If the file belongs to another sweep, or is no journal.
    pub(super) fn add(&mut self, path: &Path, head: &Head) -> Result<(), Fault> {
        let content = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
        if let Some(found) = JournalText::read(&content, path)? {
            let instead = "restart=True drops them and starts anew, another directory keeps them";
            (found.head).is_of(head, path, found.kept.outcomes.len(), instead)?;
            self.outcomes.extend(found.kept.outcomes);
            self.damaged += found.kept.damaged;
        }
        Ok(())
    }
}

/// The content of a journal's file.
struct JournalText {
    head: Head,
    kept: Kept,
    /// Offset at which the last whole line ends.
    end: u64,
}

impl JournalText {
    /// Returns `None` if there is no whole first line. In that case no other line was written.
    fn read(content: &[u8], path: &Path) -> Result<Option<JournalText>, Fault> {
        let mut lines = content
            .split_inclusive(|byte| *byte == b'\n')
            .take_while(|line| line.ends_with(b"\n"));
        let Some(first) = lines.next() else {
            return Ok(None);
        };
        let head = text(first).and_then(|text| serde_json::from_str::<Head>(text).ok());
        let head = head.ok_or_else(|| {
            let name = path.shown();
            Fault::Input(format!(
                "{name}: is no journal of a sweep; remove it, or give another --out"
            ))
        })?;
        let (mut kept, mut end) = (Kept::default(), first.len());
        for line in lines {
            end += line.len();
            match text(line).and_then(outcome) {
                Some((number, outcome)) if number < head.combinations => {
                    kept.outcomes.insert(number, outcome);
                }
                _ => kept.damaged += 1,
            }
        }
        let end = end as u64;
        Ok(Some(JournalText { head, kept, end }))
    }
}

/// The text of a line, if it is whole.
fn text(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (hash, text) = line.split_once(' ')?;
    (hash == hash_of(text)).then_some(text)
}

fn outcome(text: &str) -> Option<(usize, Outcome)> {
    let line: JournalLine = serde_json::from_str(text).ok()?;
    let outcome = match line.error {
        Some(error) => Outcome::Failed(error),
        None => Outcome::Rows(line.rows.into_iter().map(measured).collect::<Option<_>>()?),
    };
    Some((line.combination, outcome))
}

/// A row as texts. Numbers are texts too, which read back to the same number to the last bit.
fn texts(row: &MeasuredRow) -> Vec<String> {
    let fields = row.fields.iter().map(field_text);
    let head = [row.origin.clone(), field_text(&row.program)];
    head.into_iter().chain(fields).collect()
}

fn measured(texts: Vec<String>) -> Option<MeasuredRow> {
    let mut texts = texts.into_iter();
    let (origin, program) = (texts.next()?, field(&texts.next()?)?);
    let fields = texts.map(|text| field(&text)).collect::<Option<Vec<_>>>()?;
    // The head's columns say how many there are.
    (fields.len() >= columns().len()).then_some(MeasuredRow {
        origin,
        program,
        fields,
    })
}

/// A letter for its kind, and the value.
fn field_text(field: &Field) -> String {
    let kind = match field {
        Field::Nothing => return String::new(),
        Field::Count(_) => 'c',
        Field::Number(_) => 'n',
        Field::Flag(_) => 'f',
        Field::Text(_) => 't',
    };
    format!("{kind}{field}")
}

fn field(text: &str) -> Option<Field> {
    let Some(kind) = text.chars().next() else {
        return Some(Field::Nothing);
    };
    let value = &text[kind.len_utf8()..];
    match kind {
        'c' => value.parse().ok().map(Field::Count),
        'n' => value.parse().ok().map(Field::Number),
        'f' => value.parse().ok().map(Field::Flag),
        't' => Some(Field::Text(value.to_owned())),
        _ => None,
    }
}

impl Head {
    /// Hash of the names of all columns and of the invariants' metrics.
    pub(super) fn columns(sweep: &Sweep) -> String {
        let judged = sweep.invariants.iter().map(|one| one.metric);
        let names = columns().iter().chain(judged).map(|value| value.name);
        hash_of(&names.collect::<Vec<&str>>().join(","))
    }

    pub(super) fn of(plan: &Plan) -> Head {
        Head {
            headtime_sweep: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hash: plan.hash.clone(),
            columns: Head::columns(&plan.sweep),
            combinations: plan.combinations.len(),
            keys: plan.keys.clone(),
            sources: plan.sources.clone(),
        }
    }

    /// Refuses results of any sweep other than `now`. `instead` says what to do.
    fn is_of(&self, now: &Head, path: &Path, has: usize, instead: &str) -> Result<(), Fault> {
        let same = |head: &Head| {
            (
                head.headtime_sweep,
                head.version.clone(),
                head.hash.clone(),
                head.columns.clone(),
            )
        };
        if same(self) == same(now) {
            return Ok(());
        }
        Err(Fault::Input(format!(
            "{}: has {has} of {} combinations of another sweep: {}. {instead}",
            path.shown(),
            self.combinations,
            self.changes(now).join("; ")
        )))
    }

    /// Changes since the journal was written, in words.
    fn changes(&self, now: &Head) -> Vec<String> {
        /// More changes than that say less.
        const NAMED: usize = 4;
        let mut changes = Vec::new();
        if self.version != now.version {
            changes.push(format!(
                "headtime was version {} and is {}",
                self.version, now.version
            ));
        }
        let mut keys: Vec<&String> = self.keys.keys().chain(now.keys.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let change = match (self.keys.get(key), now.keys.get(key)) {
                (Some(was), Some(is)) if was != is => format!("{key} was {was} and is {is}"),
                (Some(was), None) => format!("{key} was {was} and is not given"),
                (None, Some(is)) => format!("{key} was not given and is {is}"),
                _ => continue,
            };
            changes.push(change);
        }
        for (name, was) in &self.sources {
            if now.sources.get(name).is_some_and(|is| is != was) {
                changes.push(format!("{name} has other contents"));
            }
        }
        if changes.is_empty() {
            changes.push(match self.columns == now.columns {
                true => "what it runs has changed, or a file that it names".to_owned(),
                false => "its results have other columns".to_owned(),
            });
        }
        if changes.len() > NAMED {
            let rest = changes.len() - NAMED;
            changes.truncate(NAMED);
            changes.push(format!("{rest} more"));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_to_the_last_bit() {
        let numbers = [
            0.0,
            -0.0,
            0.1,
            1.0 / 3.0,
            1e-9,
            123_456_789.123_456_7,
            f64::MAX,
        ];
        let fields = numbers.map(Field::Number).into_iter().chain([
            Field::Nothing,
            Field::Count(u64::MAX),
            Field::Flag(true),
            Field::Text("ün \"x\", y\n".to_owned()),
            Field::Text(String::new()),
        ]);
        for value in fields {
            let back = field(&field_text(&value)).unwrap();
            assert_eq!(back, value);
            if let (Field::Number(one), Field::Number(other)) = (&back, &value) {
                assert_eq!(one.to_bits(), other.to_bits());
            }
        }
        for wrong in ["x1", "c-1", "nx", "fno", "ü"] {
            assert_eq!(field(wrong), None, "{wrong}");
        }
    }
}
