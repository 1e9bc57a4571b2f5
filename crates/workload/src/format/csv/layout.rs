//! Columns of a file by role.

use super::columns::{Column, CsvColumns, ROLES, Role};
use crate::error::{FieldError, TraceError, shown};
use crate::format::fields::{Columns, Field};
use crate::names::ProcessNames;
use crate::numbered::Numbered;
use crate::reader::Reader;

/// Columns in the order of the file.
pub(super) struct Layout<'a> {
    pub columns: &'a CsvColumns,
    separator: u8,
    /// Role of each column from the left, up to the last column with a role.
    roles: Vec<Option<Role>>,
    /// Role of each column from the right.
    from_end: Vec<Option<Role>>,
    /// Number of columns that a line with a request must have.
    pub needed: usize,
    /// True if the first line has headings and no request.
    pub has_headings: bool,
}

/// Properties of the lines so far.
#[derive(Default)]
pub(super) struct Seen {
    /// Devices that have a text as name, numbered in order of appearance.
    pub names: Names,
    pub process_names: ProcessNames,
    /// Name of a process without the quotes around it.
    unquoted: Vec<u8>,
    /// Columns of the longest line. Columns behind the last role do not count.
    pub columns: usize,
    /// Last time of day, in nanoseconds from the midnight before the first line.
    last_clock: Option<u64>,
}

impl Seen {
    /// Returns the nanoseconds from the midnight before the first line to a time of day. A time of day that is
    /// earlier than the last one by more than an hour is of the next day. So a trace may run over midnight, and
    /// lines may be out of order by an hour.
    #[inline(never)]
    pub fn around_midnight(&mut self, clock: u64) -> u64 {
        const HOUR: u64 = 3_600_000_000_000;
        const DAY: u64 = 24 * HOUR;
        let last = self.last_clock.unwrap_or(clock);
        let today = last - last % DAY + clock;
        let nearest = if today + HOUR < last {
            today + DAY
        } else if today > last + DAY - HOUR && today >= DAY {
            today - DAY
        } else {
            today
        };
        self.last_clock = Some(nearest);
        nearest
    }

    /// Notes the name of a process: a column, or all from one column to another. Doubled quotes within
    /// a quoted column become single ones.
    #[inline(never)]
    pub fn name_process(&mut self, process: u32, line: &[u8], fields: &[Field<'_>; ROLES]) {
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

pub(super) type Names = Numbered<Vec<u8>>;

impl<'a> Layout<'a> {
    /// Finds the columns by the first line.
    pub fn new(
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
    pub fn split<'l>(
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
    pub fn lacking(&self, columns: usize, of: impl Fn(Role) -> bool) -> Option<String> {
        let roles = self.roles.iter().zip(1..).map(|(role, at)| (role, at, ""));
        let from_end = self.from_end.iter().zip(1..);
        let from_end = from_end.map(|(role, at)| (role, at, "-"));
        roles.chain(from_end).find_map(|(role, at, sign)| {
            let role = role.filter(|role| at > columns && of(*role))?;
            Some(format!("column {sign}{at} for `{}`", role.key()))
        })
    }

    /// Refuses a description with a column that no line has.
    pub fn check_columns(&self, seen: &Seen, reader: &Reader<'_>) -> Result<(), TraceError> {
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

/// Returns the first of tab, semicolon, comma and bar that occurs in the line, or else a blank.
fn guess_separator(line: &[u8]) -> u8 {
    *b"\t;,|"
        .iter()
        .find(|separator| line.contains(separator))
        .unwrap_or(&b' ')
}
