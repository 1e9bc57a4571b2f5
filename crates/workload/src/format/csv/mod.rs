//! Separated columns that the caller describes, or that have the headings of this program.

mod columns;
mod presets;

use columns::{Column, DeviceForm, OpCode, ROLES, Role, TimeForm, TimeForms};
pub use columns::{ColumnsError, CsvColumns};
pub use presets::{PRESETS, Preset};

use super::blkparse::block_event;
use super::fields::{Columns, Field};
use super::rwbs;
use crate::calendar;
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::names::ProcessNames;
use crate::number::{self, Allowed};
use crate::numbered::Numbered;
use crate::pairing::{BlockAction, Pairing};
use crate::reader::{self, ReadOptions, Reader};
use crate::trace::{Format, TraceRequest};
use crate::write::{CSV_HEADINGS, CSV_NAME_HEADING};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};
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

/// A line with a request, or with an event of a request.
struct Parsed {
    request: TraceRequest,
    /// True if the request covers whole sectors.
    aligned: bool,
    /// The event, if the lines are events.
    action: Option<BlockAction>,
}

/// Time added to arrivals that are computed from completions. Without it, arrivals might precede the
/// file's zero.
const BEFORE_ZERO: u64 = 1 << 62;

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

/// Reads the request or the event of a line. Returns `None` if the line is to be ignored.
#[inline(always)]
fn parse(
    line: &[u8],
    layout: &Layout<'_>,
    seen: &mut Seen,
) -> Result<Option<Parsed>, Box<FieldError>> {
    let mut fields = [Field::end(line); ROLES];
    let count = layout.split(line, &mut fields)?;
    seen.columns = seen.columns.max(count);
    if count < layout.needed {
        return layout.short_line(line, count);
    }
    parse_fields(line, layout.columns, &fields, seen)
}

/// Reads the request or the event from the columns by role.
#[inline(always)]
fn parse_fields(
    line: &[u8],
    columns: &CsvColumns,
    fields: &[Field<'_>; ROLES],
    seen: &mut Seen,
) -> Result<Option<Parsed>, Box<FieldError>> {
    let field = |role: Role| fields[role as usize];
    let given = |role: Role| Some(field(role)).filter(|field| !field.text.is_empty());

    let action = if columns.has_events {
        match action(field(Role::Action))? {
            None => return Ok(None),
            action => action,
        }
    } else {
        None
    };
    let Some((op, mut flags)) = columns.op_code.read(field(Role::Op))? else {
        return Ok(None);
    };
    let (first, rest) = (field(Role::Arrival), field(Role::ArrivalRest));
    let mut arrival = columns.time.read(first, rest, "the time")?;
    let (first, rest) = (field(Role::Completion), field(Role::CompletionRest));
    let mut completion = columns.completion.read(first, rest, "the completion")?;
    if let Some(unit) = columns.response_unit {
        let response = field(Role::Response);
        (arrival, completion) = if columns.counts_back {
            count_back(completion, field(Role::Completion), response, unit)?
        } else {
            (arrival, completed(arrival, response, unit)?)
        };
    }
    if action.is_some() && arrival.is_none() {
        return Err(field(Role::Arrival).error("the time", "a time, since each line is an event"));
    }
    if let (Some(arrival), Some(completion)) = (arrival, completion)
        && completion < arrival
    {
        let error = field(Role::Completion);
        return Err(error.error("the completion", "a time not before that of the request"));
    }
    if let Some(field) = given(Role::Flags) {
        let bits = field.unsigned("the flags")?;
        let bits = u8::try_from(bits).ok().and_then(Flags::from_bits);
        flags = flags.with(bits.ok_or_else(|| field.error("the flags", "0 to 7"))?);
    }
    let (address, size) = (field(Role::Address), field(Role::Size));
    // A flush may lack size and address. A request of no sectors may have the largest number as
    // address.
    let nowhere = |field: Field<'_>| field.text.is_empty() && field.at < line.len();
    let length = if op == Op::Flush && nowhere(size) {
        0
    } else {
        size.bytes("the size", columns.size_unit)?
    };
    let (extent, aligned) = if length == 0 && (op == Op::Flush || is_last_sector(address.text)) {
        (Extent::default(), true)
    } else {
        let offset = address.bytes("the address", columns.address_unit)?;
        reader::extent_of_bytes(offset, length)
            .ok_or_else(|| address.error("the address with the size", reader::EXTENT_ALLOWED))?
    };
    let device = match columns.device {
        None => 0,
        Some(DeviceForm::Number) => field(Role::Device).unsigned_32("the device")?,
        Some(DeviceForm::Name) => {
            let name = field(Role::Device).text;
            seen.names.number(name, || name.to_vec())
        }
        Some(DeviceForm::MajorMinor) => {
            let major = field(Role::Device).unsigned_32("the major number of the device")?;
            let minor = field(Role::DeviceMinor).unsigned_32("the minor number of the device")?;
            let name = format!("{major},{minor}").into_bytes();
            seen.names.number(&name[..], || name.clone())
        }
    };
    let process = given(Role::Process)
        .map(|field| field.unsigned_32("the process"))
        .transpose()?;
    if let (Some(process), Some(_)) = (process, given(Role::ProcessName)) {
        seen.name_process(process, line, fields);
    }
    let request = TraceRequest {
        arrival: arrival.map(Time::from_nanos),
        completion: completion.map(Time::from_nanos),
        device,
        op,
        extent,
        process,
        flags,
    };
    Ok(Some(Parsed {
        request,
        aligned,
        action,
    }))
}

/// Returns true if an address is the largest number of 64 bits. The kernel marks a request without
/// sectors by this number.
fn is_last_sector(address: &[u8]) -> bool {
    address == b"18446744073709551615" || address == b"-1"
}

/// Adds two times. Returns `None` if the sum is too large.
fn sum(first: u64, second: u64) -> Option<u64> {
    first.checked_add(second).filter(|nanos| *nanos < u64::MAX)
}

/// Returns the completion of a request, if the response time is given.
fn completed(
    arrival: Option<u64>,
    response: Field<'_>,
    unit: u64,
) -> Result<Option<u64>, Box<FieldError>> {
    const NAME: &str = "the response time";
    if response.text.is_empty() {
        return Ok(None);
    }
    let arrival =
        arrival.ok_or_else(|| response.error(NAME, "a response time beside a time only"))?;
    let completion = sum(arrival, response.time(NAME, unit)?);
    let allowed = "one that ends 584 years after zero or before";
    completion
        .map(Some)
        .ok_or_else(|| response.error(NAME, allowed))
}

/// Computes the arrival from the completion and the response time. Adds [`BEFORE_ZERO`] to both times.
fn count_back(
    completion: Option<u64>,
    field: Field<'_>,
    response: Field<'_>,
    unit: u64,
) -> Result<(Option<u64>, Option<u64>), Box<FieldError>> {
    const NAME: &str = "the response time";
    let Some(completion) = completion else {
        // A response time without a completion is an error.
        return completed(None, response, unit).map(|none| (none, none));
    };
    let completion = sum(completion, BEFORE_ZERO)
        .ok_or_else(|| field.error("the completion", "a time before the year 2400"))?;
    let arrival = completion.checked_sub(response.time(NAME, unit)?);
    let arrival = arrival.ok_or_else(|| response.error(NAME, "one of less than 146 years"))?;
    Ok((Some(arrival), Some(completion)))
}

impl TimeForms {
    /// Reads a time, which may be the sum of two columns.
    #[inline(always)]
    fn read(
        self,
        first: Field<'_>,
        rest: Field<'_>,
        name: &str,
    ) -> Result<Option<u64>, Box<FieldError>> {
        if first.text.is_empty() {
            return Ok(None);
        }
        match (self.first, self.rest) {
            (TimeForm::Unit(unit), None) => first.date(name, unit).map(Some),
            (form, None) => form.read(first, name).map(Some),
            (form, Some(other)) => sum(form.read(first, name)?, other.read(rest, name)?)
                .map(Some)
                .ok_or_else(|| rest.error(name, "a time of at most 584 years")),
        }
    }
}

impl TimeForm {
    #[inline(never)]
    fn read(self, field: Field<'_>, name: &str) -> Result<u64, Box<FieldError>> {
        match self {
            TimeForm::Unit(unit) => return field.date(name, unit),
            TimeForm::Date => calendar::date(field.text),
            TimeForm::Clock => calendar::clock(field.text),
        }
        .map_err(|Allowed(allowed)| field.error(name, allowed))
    }
}

/// Reads the event of a request. Returns `None` for events that are to be ignored.
fn action(field: Field<'_>) -> Result<Option<BlockAction>, Box<FieldError>> {
    let action = BlockAction::of_letter(field.text);
    let is_word = !field.text.is_empty() && field.text.iter().all(u8::is_ascii_alphabetic);
    if action.is_none() && !is_word {
        return Err(field.error("the action", "a letter such as Q, D or C"));
    }
    Ok(action)
}

impl OpCode {
    /// Reads the operation of a column, and its flags. Returns `None` for an operation without sectors.
    #[inline(always)]
    fn read(self, field: Field<'_>) -> Result<Option<(Op, Flags)>, Box<FieldError>> {
        let text = field.text;
        let plain = |op: Op| (op, Flags::NONE);
        let found = match self {
            OpCode::Optional if text.is_empty() => return Ok(None),
            OpCode::Text | OpCode::Optional => {
                let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
                if is("read") {
                    Some(plain(Op::Read))
                } else if is("write") {
                    Some(plain(Op::Write))
                } else if is("flush") {
                    Some(plain(Op::Flush))
                } else if is("discard") || is("trim") || is("unmap") || is("secure_erase") {
                    Some(plain(Op::Discard))
                } else if is("none") || is("n") {
                    return Ok(None);
                } else {
                    let op = scsi(text).map(plain);
                    op.or_else(|| rwbs::read(&text.to_ascii_uppercase()))
                }
            }
            OpCode::OneReads | OpCode::ZeroReads => match number::unsigned(text) {
                Ok(bit @ (0 | 1)) if (bit == 1) == (self == OpCode::OneReads) => {
                    Some(plain(Op::Read))
                }
                Ok(0 | 1) => Some(plain(Op::Write)),
                _ => None,
            },
        };
        found
            .map(Some)
            .ok_or_else(|| field.error("the operation", self.allowed()))
    }

    fn allowed(self) -> &'static str {
        match self {
            OpCode::Text | OpCode::Optional => {
                "read, write, flush, discard, letters as blkparse writes them (R, W, F, D, WS ..), or a SCSI operation code (28, 2a ..)"
            }
            OpCode::OneReads => "1 for a read or 0 for a write",
            OpCode::ZeroReads => "0 for a read or 1 for a write",
        }
    }
}

/// Operation of a SCSI command by its code, two hexadecimal digits (SBC-4, table of commands).
fn scsi(text: &[u8]) -> Option<Op> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.len() != 2 {
        return None;
    }
    Some(match number::hexadecimal(digits).ok()? {
        // READ commands of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        // WRITE commands of 6, 10, 12 and 16 bytes, then WRITE AND VERIFY, then WRITE SAME.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
