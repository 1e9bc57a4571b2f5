//! Separated columns that the caller describes, or that have the headings of this program.

mod columns;
mod parse;
mod presets;

use columns::{Column, ROLES, Role};
pub use columns::{ColumnsError, CsvColumns};
use parse::{BEFORE_ZERO, Parsed, parse, parse_fields};
pub use presets::{PRESETS, Preset};

use super::blkparse::block_event;
use super::fields::{Columns, Field};
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::names::ProcessNames;
use crate::numbered::Numbered;
use crate::pairing::Pairing;
use crate::reader::{self, ReadOptions, Reader};
use crate::trace::Format;
use crate::write::{CSV_HEADINGS, CSV_NAME_HEADING};
use std::io::Read;

/// Columns in the order of the file.
struct Layout<'a> {
    columns: &'a CsvColumns,
    separator: u8,
    /// Role of each column from the left, up to the last column with a role.
    roles: Vec<Option<Role>>,
    /// Role of each column from the right.
    from_end: Vec<Option<Role>>,
    /// Number of columns that a line with a request must have.
    needed: usize,
    /// True if the first line has headings and no request.
    has_headings: bool,
}

/// Properties of the lines so far.
#[derive(Default)]
struct Seen {
    /// Devices that have a text as name, numbered in order of appearance.
    names: Names,
    process_names: ProcessNames,
    /// Name of a process without the quotes around it.
    unquoted: Vec<u8>,
    /// Columns of the longest line. Columns behind the last role do not count.
    columns: usize,
}

impl Seen {
    /// Notes the name of a process: a column, or all from one column to another. Doubled quotes within
    /// a quoted column become single ones.
    #[inline(never)]
    fn name_process(&mut self, process: u32, line: &[u8], fields: &[Field<'_>; ROLES]) {
        let first = fields[Role::ProcessName as usize];
        let end = fields[Role::ProcessNameEnd as usize];
        let name = if !end.text.is_empty() {
            let range = first.at..end.at + end.text.len();
            line.get(range).unwrap_or(b"")
        } else if first.is_quoted(line) && first.text.contains(&b'"') {
            self.unquoted.clear();
            // The first quote of each pair is left out.
            let mut pair = false;
            let single = first.text.iter().filter(|byte| {
                pair = **byte == b'"' && !pair;
                !pair
            });
            self.unquoted.extend(single);
            &self.unquoted
        } else {
            first.text
        };
        self.process_names.saw(process, name);
    }
}

type Names = Numbered<Vec<u8>>;

/// Returns true if a line has the headings that [`Trace::write_csv`](crate::Trace::write_csv) writes.
pub(crate) fn recognise(line: &[u8]) -> bool {
    match line.strip_prefix(CSV_HEADINGS.as_bytes()) {
        Some([b',', name @ ..]) => name == CSV_NAME_HEADING.as_bytes(),
        rest => rest == Some(b""),
    }
}

/// Names of the presets that fit at least one of these lines.
pub(crate) fn fitting(lines: &[&[u8]]) -> Vec<&'static str> {
    let options = ReadOptions::default();
    let reader = Reader::new("", Format::Csv, &options);
    let is_fit = |columns: &CsvColumns, line: &[u8]| {
        let layout = Layout::new(columns, line, 1, &reader);
        layout.is_ok_and(|layout| fits(line, &layout).is_ok_and(|is_request| is_request))
    };
    let presets = PRESETS.iter().filter(|preset| {
        let columns = preset.columns();
        (columns.iter()).any(|columns| lines.iter().any(|line| is_fit(columns, line)))
    });
    presets.map(|preset| preset.name).collect()
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let choices = match (reader.notes.format, &reader.options.columns) {
        (Format::Preset(preset), _) => preset.columns(),
        (_, Some(columns)) => vec![columns.clone()],
        (_, None) => vec![CsvColumns::own()],
    };
    let mut chosen: Option<Layout<'_>> = None;
    let mut seen = Seen::default();
    let mut pairing = Pairing::new(reader.options.arrival_event);
    let mut first = true;
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        if chosen.is_none() {
            match choose(&choices, line, number, std::mem::take(&mut first), reader) {
                Ok(found) => chosen = found,
                Err(error) if error.is_odd_line() => {
                    reader.refuse(error)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            if chosen.as_ref().is_none_or(|layout| layout.has_headings) {
                reader.notes.lines_ignored += 1;
                continue;
            }
        }
        let Some(layout) = &chosen else { continue };
        match parse(line, layout, &mut seen) {
            Ok(Some(parsed)) => {
                reader.notes.unaligned += u64::from(!parsed.aligned);
                match parsed.action {
                    None => reader.push(number, parsed.request)?,
                    Some(action) => pairing.event(number, &block_event(action, parsed.request)),
                }
            }
            Ok(None) => reader.notes.lines_ignored += 1,
            Err(error) => reader.odd(number, *error)?,
        }
    }
    if let Some(layout) = &chosen {
        layout.check_columns(&seen, reader)?;
    }
    if choices.iter().any(|columns| columns.has_events) {
        reader.take(pairing.finish())?;
    }
    let counts_back = choices.iter().any(|columns| columns.counts_back);
    reader.subtract_date(if counts_back { BEFORE_ZERO } else { 0 });
    reader.process_names = seen.process_names;
    let names = seen.names.into_list();
    reader.device_names = (0..).zip(names.iter().map(|name| shown(name))).collect();
    Ok(())
}

/// Finds the description that fits a line. A single description is taken without a check. Returns
/// `None` if there are several descriptions and the line has headings.
fn choose<'a>(
    choices: &'a [CsvColumns],
    line: &[u8],
    number: u64,
    first: bool,
    reader: &Reader<'_>,
) -> Result<Option<Layout<'a>>, TraceError> {
    let mut odd = None;
    for columns in choices {
        let mut layout = Layout::new(columns, line, number, reader)?;
        layout.has_headings &= first && odd.is_none();
        if choices.len() == 1 {
            return Ok(Some(layout));
        }
        if layout.has_headings {
            return Ok(None);
        }
        match fits(line, &layout) {
            Ok(_) => return Ok(Some(layout)),
            Err(error) => odd = odd.or(Some(error)),
        }
    }
    let odd = odd.expect("there is a description");
    Err(reader.field_error(number, *odd))
}

impl<'a> Layout<'a> {
    /// Finds the columns by the first line.
    fn new(
        columns: &'a CsvColumns,
        line: &[u8],
        number: u64,
        reader: &Reader<'_>,
    ) -> Result<Layout<'a>, TraceError> {
        let wrong = |problem: String| TraceError::Options {
            file: reader.file.to_owned(),
            format: reader.notes.format,
            problem,
        };
        let separator = columns.separator.unwrap_or_else(|| guess_separator(line));
        let found = Columns::new(line, separator).all();
        let found = found.map_err(|error| reader.field_error(number, *error))?;
        let mut layout = Layout {
            columns,
            separator,
            roles: Vec::new(),
            from_end: Vec::new(),
            needed: 0,
            has_headings: false,
        };
        for (role, column) in &columns.columns {
            let (list, sign, index) = match column {
                Column::Place(index) => (&mut layout.roles, "", *index),
                Column::FromEnd(index) => (&mut layout.from_end, "-", *index),
                Column::Optional(name) => {
                    let is_it = |field: &Field<'_>| field.text == name.as_bytes();
                    let Some(index) = found.iter().position(is_it) else {
                        continue;
                    };
                    (&mut layout.roles, "", index)
                }
                Column::Name(name) => {
                    layout.has_headings = true;
                    let is_it = |field: &Field<'_>| field.text == name.as_bytes();
                    let index = found.iter().position(is_it).ok_or_else(|| {
                        let headings = found.iter().map(|field| shown(field.text));
                        wrong(format!(
                            "line {number} has no heading `{}`; it has {}",
                            shown(name.as_bytes()),
                            headings.collect::<Vec<_>>().join(", ")
                        ))
                    })?;
                    (&mut layout.roles, "", index)
                }
            };
            if list.len() <= index {
                list.resize(index + 1, None);
            }
            if list[index].replace(*role).is_some() {
                let column = index + 1;
                return Err(wrong(format!(
                    "column {sign}{column} is wanted for two things"
                )));
            }
            if role.is_needed() {
                layout.needed = layout.needed.max(index + 1);
            }
        }
        // If no column is given by heading, the first line has headings if its address is not a number.
        let mut fields = [Field::end(line); ROLES];
        let split = layout.split(line, &mut fields);
        split.map_err(|error| reader.field_error(number, *error))?;
        let first = fields[Role::Address as usize].text.first();
        layout.has_headings |= first.is_some_and(|first| !first.is_ascii_digit() && *first != b'-');
        Ok(layout)
    }

    /// Finds the columns of a line by role. A missing column becomes the empty end of the line. Returns
    /// the number of columns. Without roles from the right, columns behind the last role do not count.
    #[inline(always)]
    fn split<'l>(
        &self,
        line: &'l [u8],
        fields: &mut [Field<'l>; ROLES],
    ) -> Result<usize, Box<FieldError>> {
        let mut all = Columns::new(line, self.separator);
        let mut count = self.roles.len();
        for (at, role) in self.roles.iter().enumerate() {
            match (all.next()?, role) {
                (Some(field), Some(role)) => fields[*role as usize] = field,
                (Some(_), None) => {}
                (None, _) => {
                    count = at;
                    break;
                }
            }
        }
        if !self.from_end.is_empty() {
            let all = Columns::new(line, self.separator).all()?;
            for (field, role) in all.iter().rev().zip(&self.from_end) {
                if let Some(role) = role {
                    fields[*role as usize] = *field;
                }
            }
            count = all.len();
        }
        Ok(count)
    }

    /// Returns the first column, among the given roles, that is missing in a line of `columns` columns.
    fn lacking(&self, columns: usize, of: impl Fn(Role) -> bool) -> Option<String> {
        let roles = self.roles.iter().zip(1..).map(|(role, at)| (role, at, ""));
        let from_end = self.from_end.iter().zip(1..);
        let from_end = from_end.map(|(role, at)| (role, at, "-"));
        roles.chain(from_end).find_map(|(role, at, sign)| {
            let role = role.filter(|role| at > columns && of(*role))?;
            Some(format!("column {sign}{at} for `{}`", role.key()))
        })
    }

    /// Returns the error for a line that lacks a required column. A line without a request may be
    /// short.
    #[cold]
    #[inline(never)]
    fn short_line(&self, line: &[u8], columns: usize) -> Result<Option<Parsed>, Box<FieldError>> {
        let mut fields = [Field::end(line); ROLES];
        self.split(line, &mut fields)?;
        let parsed = parse_fields(line, self.columns, &fields, &mut Seen::default());
        if matches!(parsed, Ok(None)) {
            return parsed;
        }
        let column = self.lacking(columns, Role::is_needed);
        let column = column.expect("a column that is needed");
        let found = format!("(nothing, the line ends with column {columns})");
        let allowed = "a column that the line has; give its number, or another separator (--columns), or another format (--trace-format)";
        Err(FieldError::new(
            line.len(),
            &column,
            found.as_bytes(),
            allowed,
        ))
    }

    /// Refuses a description with a column that no line has.
    fn check_columns(&self, seen: &Seen, reader: &Reader<'_>) -> Result<(), TraceError> {
        let columns = seen.columns;
        // A file without lines has no request. The reader reports that error instead.
        let lacking = self.lacking(columns, |_| columns > 0);
        lacking.map_or(Ok(()), |column| {
            Err(TraceError::Options {
                file: reader.file.to_owned(),
                format: reader.notes.format,
                problem: format!(
                    "no line has {column}; the longest ends with column {columns}; give a column that a line has, \
                     or another separator (--columns), or another format (--trace-format), or leave it out"
                ),
            })
        })
    }
}

impl Preset {
    /// Descriptions of the preset's columns.
    fn columns(&self) -> Vec<CsvColumns> {
        let parse = |text: &&str| text.parse().expect("a test reads each of them");
        self.layouts.iter().map(parse).collect()
    }
}

/// Returns the first of tab, semicolon, comma and bar that occurs in the line, or else a blank.
fn guess_separator(line: &[u8]) -> u8 {
    *b"\t;,|"
        .iter()
        .find(|separator| line.contains(separator))
        .unwrap_or(&b' ')
}

/// Returns true if a line has a request by a description, and false if the line is to be ignored.
#[cold]
#[inline(never)]
fn fits(line: &[u8], layout: &Layout<'_>) -> Result<bool, Box<FieldError>> {
    Ok(parse(line, layout, &mut Seen::default())?.is_some())
}

#[cfg(test)]
mod tests;
