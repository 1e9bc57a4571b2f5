//! Separated columns that the caller describes, or that name themselves.

mod columns;

pub use columns::{Column, ColumnsError, CsvColumns, DeviceColumn, OpCode, SizeUnit};
use columns::{ROLES, Role};

use super::fields::{Columns, Field};
use super::rwbs;
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::number;
use crate::numbered::Numbered;
use crate::reader::{self, Reader};
use crate::trace::{Format, TimeUnit, TraceRequest};
use crate::write::CSV_HEADINGS;
use headtime_sched::{Flags, Op};
use headtime_units::Time;
use std::io::Read;

/// Columns in the order of a file.
struct Layout {
    separator: u8,
    /// What each column is for, up to the last one that is for anything.
    roles: Vec<Option<Role>>,
}

/// Devices that are named by text, numbered as they appear.
type Names = Numbered<Vec<u8>>;

/// Returns true if a line is the headings that [`Trace::write_csv`](crate::Trace::write_csv) writes.
pub(crate) fn recognise(line: &[u8]) -> bool {
    line == CSV_HEADINGS.as_bytes()
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let own = CsvColumns::own();
    let columns = reader.options.columns.as_ref().unwrap_or(&own);
    let mut layout: Option<Layout> = None;
    let mut names = Names::new();
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        let layout = match &layout {
            Some(layout) => layout,
            None => {
                let (found, is_heading) = Layout::new(columns, line, number, reader)?;
                let found = layout.insert(found);
                if is_heading {
                    reader.notes.lines_ignored += 1;
                    continue;
                }
                found
            }
        };
        match parse(line, columns, layout, &mut names) {
            Ok((request, aligned)) => {
                reader.notes.unaligned += u64::from(!aligned);
                reader.push(number, request)?;
            }
            Err(error) => return Err(reader.field_error(number, *error)),
        }
    }
    reader.subtract_date();
    reader.device_names = names
        .into_list()
        .iter()
        .enumerate()
        .map(|(index, name)| (index as u32, shown(name)))
        .collect();
    Ok(())
}

impl Layout {
    /// Finds the columns by the first line, and whether that line is headings.
    fn new(
        columns: &CsvColumns,
        line: &[u8],
        number: u64,
        reader: &Reader<'_>,
    ) -> Result<(Layout, bool), TraceError> {
        let separator = columns.separator.unwrap_or_else(|| guess_separator(line));
        let mut found: Vec<Field<'_>> = Vec::new();
        let mut fields = Columns::new(line, separator);
        loop {
            match fields.next() {
                Ok(Some(field)) => found.push(field),
                Ok(None) => break,
                Err(error) => return Err(reader.field_error(number, *error)),
            }
        }
        let mut roles = Vec::new();
        let mut by_name = false;
        for (role, column) in columns.roles() {
            let index = match column {
                Column::Number(number) => *number as usize - 1,
                Column::Name(name) => {
                    by_name = true;
                    let is_it = |field: &Field<'_>| field.text == name.as_bytes();
                    found.iter().position(is_it).ok_or_else(|| {
                        let headings: Vec<String> =
                            found.iter().map(|field| shown(field.text)).collect();
                        TraceError::Options {
                            file: reader.file.to_owned(),
                            format: Format::Csv,
                            problem: format!(
                                "line {number} has no heading `{}`; it has {}",
                                shown(name.as_bytes()),
                                headings.join(", ")
                            ),
                        }
                    })?
                }
            };
            if roles.len() <= index {
                roles.resize(index + 1, None);
            }
            if roles[index].is_some() {
                return Err(TraceError::Options {
                    file: reader.file.to_owned(),
                    format: Format::Csv,
                    problem: format!("column {} is wanted for two things", index + 1),
                });
            }
            roles[index] = Some(role);
        }
        // Without names to look up, the line is headings if its address is not a number.
        let address = roles.iter().position(|role| *role == Some(Role::Address));
        let address = address.and_then(|index| found.get(index));
        let is_heading = by_name
            || address.is_some_and(|field| {
                field
                    .text
                    .first()
                    .is_some_and(|first| !first.is_ascii_digit() && *first != b'-')
            });
        Ok((Layout { separator, roles }, is_heading))
    }
}

/// The first of tab, semicolon, comma and bar that the line has, else blanks.
fn guess_separator(line: &[u8]) -> u8 {
    *b"\t;,|"
        .iter()
        .find(|separator| line.contains(separator))
        .unwrap_or(&b' ')
}

/// The request of a line, and whether it covers whole sectors.
fn parse(
    line: &[u8],
    columns: &CsvColumns,
    layout: &Layout,
    names: &mut Names,
) -> Result<(TraceRequest, bool), Box<FieldError>> {
    let end = Field {
        at: line.len(),
        text: b"",
    };
    let mut fields = [end; ROLES];
    let mut all = Columns::new(line, layout.separator);
    for role in &layout.roles {
        match (all.next()?, role) {
            (Some(field), Some(role)) => fields[*role as usize] = field,
            (Some(_), None) => {}
            (None, _) => break,
        }
    }
    let field = |role: Role| fields[role as usize];
    let given = |role: Role| Some(field(role)).filter(|field| !field.text.is_empty());

    let unit = |unit: Option<TimeUnit>| unit.map_or(1, TimeUnit::nanos);
    let arrival = given(Role::Arrival)
        .map(|field| field.date("the time", unit(columns.time_unit())))
        .transpose()?;
    let completion = match (given(Role::Completion), given(Role::Response)) {
        (Some(field), _) => Some(field.date("the completion", unit(columns.completion_unit()))?),
        (None, Some(field)) => {
            let response = field.time("the response time", unit(columns.response_unit()))?;
            let arrival = arrival.ok_or_else(|| {
                field.error("the response time", "a response time beside a time only")
            })?;
            let completion = arrival
                .checked_add(response)
                .filter(|nanos| *nanos < u64::MAX);
            Some(completion.ok_or_else(|| {
                field.error(
                    "the response time",
                    "one that ends 584 years after zero or before",
                )
            })?)
        }
        (None, None) => None,
    };
    if let (Some(arrival), Some(completion)) = (arrival, completion)
        && completion < arrival
    {
        let error = field(Role::Completion);
        return Err(error.error("the completion", "a time not before that of the request"));
    }
    let op = field(Role::Op);
    let (op, mut flags) = columns
        .op_code
        .read(op.text)
        .ok_or_else(|| op.error("the operation", columns.op_code.allowed()))?;
    if let Some(field) = given(Role::Flags) {
        let bits = field.unsigned("the flags")?;
        let bits = u8::try_from(bits).ok().and_then(Flags::from_bits);
        flags = flags.with(bits.ok_or_else(|| field.error("the flags", "0 to 7"))?);
    }
    let (address, size) = (field(Role::Address), field(Role::Size));
    let bytes = |field: Field<'_>, name: &str, unit: SizeUnit| {
        let count = field.unsigned(name)?;
        count
            .checked_mul(unit.bytes())
            .ok_or_else(|| field.error(name, "an address of at most 64 bits of bytes"))
    };
    let offset = bytes(address, "the address", columns.address_unit)?;
    let length = bytes(size, "the size", columns.size_unit)?;
    let (extent, aligned) = reader::extent_of_bytes(offset, length)
        .ok_or_else(|| address.error("the address with the size", reader::EXTENT_ALLOWED))?;
    let device = match (&columns.device, field(Role::Device)) {
        (None, _) => 0,
        (Some(DeviceColumn { named: false, .. }), field) => field.unsigned_32("the device")?,
        (Some(DeviceColumn { named: true, .. }), field) => {
            names.number(field.text, || field.text.to_vec())
        }
    };
    let process = given(Role::Process)
        .map(|field| field.unsigned_32("the process"))
        .transpose()?;
    Ok((
        TraceRequest {
            arrival: arrival.map(Time::from_nanos),
            completion: completion.map(Time::from_nanos),
            device,
            op,
            extent,
            process,
            flags,
        },
        aligned,
    ))
}

impl OpCode {
    /// The operation that a text stands for, and flags if the text has any.
    fn read(self, text: &[u8]) -> Option<(Op, Flags)> {
        let number = || number::unsigned(text).ok();
        let op = match self {
            OpCode::Text => {
                let word = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
                if word("read") {
                    Op::Read
                } else if word("write") {
                    Op::Write
                } else if word("flush") {
                    Op::Flush
                } else if word("discard") || word("trim") || word("unmap") {
                    Op::Discard
                } else {
                    return rwbs::read(&text.to_ascii_uppercase());
                }
            }
            OpCode::OneReads | OpCode::ZeroReads => {
                let read = u64::from(self == OpCode::OneReads);
                match number()? {
                    bit if bit == read => Op::Read,
                    0 | 1 => Op::Write,
                    _ => return None,
                }
            }
        };
        Some((op, Flags::NONE))
    }

    fn allowed(self) -> &'static str {
        match self {
            OpCode::Text => {
                "read, write, flush, discard, or letters as blkparse writes them (R, W, F, D, WS ..)"
            }
            OpCode::OneReads => "1 for a read or 0 for a write",
            OpCode::ZeroReads => "0 for a read or 1 for a write",
        }
    }
}

#[cfg(test)]
mod tests;
