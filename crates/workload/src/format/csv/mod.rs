//! Separated columns that the caller describes, or that name themselves.

mod columns;
mod presets;

pub use columns::{
    Column, ColumnsError, CsvColumns, DeviceColumn, OpCode, SizeUnit, TimeColumn, TimeForm,
};
use columns::{ROLES, Role};
pub use presets::{PRESETS, Preset};

use super::blkparse::block_event;
use super::fields::{Columns, Field};
use super::rwbs;
use crate::calendar;
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::number::{self, Allowed};
use crate::numbered::Numbered;
use crate::pairing::{BlockAction, BlockEvent, Level, Pairing};
use crate::reader::{self, Reader};
use crate::trace::{Format, TraceRequest};
use crate::write::CSV_HEADINGS;
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};
use std::io::Read;

/// Columns in the order of a file.
struct Layout {
    separator: u8,
    /// What each column is for, up to the last one that is for anything.
    roles: Vec<Option<Role>>,
    /// Roles of columns counted from the end.
    from_end: Vec<(usize, Role)>,
}

/// A line that is a request, or an event of one.
struct Parsed {
    request: TraceRequest,
    /// True if the request covers whole sectors.
    aligned: bool,
    /// The event, if lines are events.
    action: Option<BlockAction>,
}

/// Added to arrivals that are counted back from completions, which may be before the zero of the file.
const BEFORE_ZERO: u64 = 1 << 62;

/// Devices that are named by text, numbered as they appear.
type Names = Numbered<Vec<u8>>;

/// Returns true if a line is the headings that [`Trace::write_csv`](crate::Trace::write_csv) writes.
pub(crate) fn recognise(line: &[u8]) -> bool {
    line == CSV_HEADINGS.as_bytes()
}

/// Names of the presets that the first lines of a file fit.
pub(crate) fn fitting(lines: &[&[u8]]) -> Vec<&'static str> {
    let is_fit = |preset: &&Preset| {
        preset.columns().iter().any(|columns| {
            // The first may be headings.
            lines.iter().take(2).any(|line| {
                let layout = Layout::new(columns, line, 1);
                layout.is_ok_and(|(layout, _)| fits(line, columns, &layout).is_ok_and(|is| is))
            })
        })
    };
    PRESETS
        .iter()
        .filter(is_fit)
        .map(|preset| preset.name)
        .collect()
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
    let mut chosen: Option<(&CsvColumns, Layout)> = None;
    let mut names = Names::new();
    let mut pairing = Pairing::new(reader.options.arrival_event);
    let mut first = true;
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        let (columns, layout) = match &chosen {
            Some((columns, layout)) => (*columns, layout),
            None => match choose(&choices, line, number, std::mem::take(&mut first)) {
                Ok(Choice::Headings(found)) => {
                    reader.notes.lines_ignored += 1;
                    chosen = found;
                    continue;
                }
                Ok(Choice::Layout(columns, layout)) => {
                    let (columns, layout) = chosen.insert((columns, layout));
                    (*columns, &*layout)
                }
                Err(LayoutError::Line(error)) => {
                    reader.odd(number, *error)?;
                    continue;
                }
                Err(LayoutError::Columns(problem)) => {
                    return Err(TraceError::Options {
                        file: reader.file.to_owned(),
                        format: reader.notes.format,
                        problem,
                    });
                }
            },
        };
        match parse(line, columns, layout, &mut names) {
            Ok(Some(parsed)) => {
                reader.notes.unaligned += u64::from(!parsed.aligned);
                let request = parsed.request;
                match parsed.action {
                    None => reader.push(number, request)?,
                    Some(action) => pairing.event(number, &BlockEvent { action, request }),
                }
            }
            Ok(None) => reader.notes.lines_ignored += 1,
            Err(error) => reader.odd(number, *error)?,
        }
    }
    let of_events = choices.iter().any(|columns| columns.action.is_some());
    if of_events {
        reader.take(pairing.finish())?;
    }
    let counts_back = choices.iter().any(CsvColumns::counts_back);
    reader.subtract_date(if counts_back { BEFORE_ZERO } else { 0 });
    reader.device_names = names
        .into_list()
        .iter()
        .enumerate()
        .map(|(index, name)| (index as u32, shown(name)))
        .collect();
    Ok(())
}

/// The meaning of the first line of a file.
enum Choice<'a> {
    /// It is headings, and says the columns unless there are several descriptions.
    Headings(Option<(&'a CsvColumns, Layout)>),
    Layout(&'a CsvColumns, Layout),
}

/// Why a line says nothing of the columns.
enum LayoutError {
    /// The line is odd.
    Line(Box<FieldError>),
    /// The description does not go with the file.
    Columns(String),
}

/// Finds the description that fits a line. A single one is taken as it is.
fn choose<'a>(
    choices: &'a [CsvColumns],
    line: &[u8],
    number: u64,
    first: bool,
) -> Result<Choice<'a>, LayoutError> {
    let mut odd = None;
    for (index, columns) in choices.iter().enumerate() {
        let (layout, is_heading) = Layout::new(columns, line, number)?;
        if is_heading && first && index == 0 {
            let chosen = (choices.len() == 1).then_some((columns, layout));
            return Ok(Choice::Headings(chosen));
        }
        if choices.len() == 1 {
            return Ok(Choice::Layout(columns, layout));
        }
        match fits(line, columns, &layout) {
            Ok(_) => return Ok(Choice::Layout(columns, layout)),
            Err(error) => odd = odd.or(Some(error)),
        }
    }
    Err(LayoutError::Line(odd.expect("there is a description")))
}

impl Layout {
    /// Finds the columns by the first line, and whether that line is headings.
    fn new(columns: &CsvColumns, line: &[u8], number: u64) -> Result<(Layout, bool), LayoutError> {
        let separator = columns.separator.unwrap_or_else(|| guess_separator(line));
        let mut found: Vec<Field<'_>> = Vec::new();
        let mut fields = Columns::new(line, separator);
        while let Some(field) = fields.next().map_err(LayoutError::Line)? {
            found.push(field);
        }
        let mut roles: Vec<Option<Role>> = Vec::new();
        let mut from_end: Vec<(usize, Role)> = Vec::new();
        let mut address = None;
        let mut by_name = false;
        for (role, column) in columns.roles() {
            let index = match column {
                Column::Number(number) => usize::from(*number) - 1,
                Column::FromEnd(number) => {
                    let number = usize::from(*number);
                    if from_end.iter().any(|(other, _)| *other == number) {
                        let problem = format!("column -{number} is wanted for two things");
                        return Err(LayoutError::Columns(problem));
                    }
                    from_end.push((number, role));
                    if role == Role::Address {
                        address = found.len().checked_sub(number);
                    }
                    continue;
                }
                Column::Name(name) => {
                    by_name = true;
                    let is_it = |field: &Field<'_>| field.text == name.as_bytes();
                    found.iter().position(is_it).ok_or_else(|| {
                        let headings: Vec<String> =
                            found.iter().map(|field| shown(field.text)).collect();
                        LayoutError::Columns(format!(
                            "line {number} has no heading `{}`; it has {}",
                            shown(name.as_bytes()),
                            headings.join(", ")
                        ))
                    })?
                }
            };
            if role == Role::Address {
                address = Some(index);
            }
            if roles.len() <= index {
                roles.resize(index + 1, None);
            }
            if roles[index].is_some() {
                let problem = format!("column {} is wanted for two things", index + 1);
                return Err(LayoutError::Columns(problem));
            }
            roles[index] = Some(role);
        }
        // Without names to look up, the line is headings if its address is not a number.
        let address = address.and_then(|index| found.get(index));
        let is_heading = by_name
            || address.is_some_and(|field| {
                let first = field.text.first();
                first.is_some_and(|first| !first.is_ascii_digit() && *first != b'-')
            });
        let layout = Layout {
            separator,
            roles,
            from_end,
        };
        Ok((layout, is_heading))
    }

    /// The columns of a line by role. A missing column is the empty end of the line.
    #[inline]
    fn fields<'a>(&self, line: &'a [u8]) -> Result<[Field<'a>; ROLES], Box<FieldError>> {
        let end = Field {
            at: line.len(),
            text: b"",
        };
        let mut fields = [end; ROLES];
        let mut all = Columns::new(line, self.separator);
        for role in &self.roles {
            match (all.next()?, role) {
                (Some(field), Some(role)) => fields[*role as usize] = field,
                (Some(_), None) => {}
                (None, _) => break,
            }
        }
        if !self.from_end.is_empty() {
            let mut count = 0;
            let mut all = Columns::new(line, self.separator);
            while all.next()?.is_some() {
                count += 1;
            }
            let mut all = Columns::new(line, self.separator);
            for left in (1..=count).rev() {
                let Some(field) = all.next()? else { break };
                for (_, role) in self.from_end.iter().filter(|(number, _)| *number == left) {
                    fields[*role as usize] = field;
                }
            }
        }
        Ok(fields)
    }
}

/// The first of tab, semicolon, comma and bar that the line has, else blanks.
fn guess_separator(line: &[u8]) -> u8 {
    *b"\t;,|"
        .iter()
        .find(|separator| line.contains(separator))
        .unwrap_or(&b' ')
}

/// Returns true if a line is a request by a description, false if the line is passed over.
#[cold]
#[inline(never)]
fn fits(line: &[u8], columns: &CsvColumns, layout: &Layout) -> Result<bool, Box<FieldError>> {
    Ok(parse(line, columns, layout, &mut Names::new())?.is_some())
}

/// The request or the event of a line; `None` if the line is passed over.
#[inline(always)]
fn parse(
    line: &[u8],
    columns: &CsvColumns,
    layout: &Layout,
    names: &mut Names,
) -> Result<Option<Parsed>, Box<FieldError>> {
    let fields = layout.fields(line)?;
    let field = |role: Role| fields[role as usize];
    let given = |role: Role| Some(field(role)).filter(|field| !field.text.is_empty());

    let action = match &columns.action {
        None => None,
        Some(_) => match action(field(Role::Action))? {
            Some(action) => Some(action),
            None => return Ok(None),
        },
    };
    let Some((op, mut flags)) = columns.op_code.read(field(Role::Op))? else {
        return Ok(None);
    };
    let arrival = match (&columns.time, given(Role::Arrival)) {
        (Some(column), Some(first)) => {
            Some(time(column, first, field(Role::ArrivalRest), "the time")?)
        }
        _ => None,
    };
    let completion = match (&columns.completion, given(Role::Completion)) {
        (Some(column), Some(first)) => {
            let rest = field(Role::CompletionRest);
            Some(time(column, first, rest, "the completion")?)
        }
        _ => None,
    };
    let response = match (&columns.response, given(Role::Response)) {
        (Some((_, unit)), Some(field)) => {
            Some((field, field.time("the response time", unit.nanos())?))
        }
        _ => None,
    };
    let (arrival, completion) = match (arrival, completion, response) {
        (None, None, Some((field, _))) => {
            let allowed = "a response time beside a time only";
            return Err(field.error("the response time", allowed));
        }
        (Some(arrival), _, Some((field, response))) => {
            let completion = arrival
                .checked_add(response)
                .filter(|nanos| *nanos < u64::MAX);
            let allowed = "one that ends 584 years after zero or before";
            (
                Some(arrival),
                Some(completion.ok_or_else(|| field.error("the response time", allowed))?),
            )
        }
        (None, Some(completion), response) if columns.counts_back() => {
            let (field, response) = response
                .ok_or_else(|| field(Role::Response).error("the response time", "a time"))?;
            let completion = completion
                .checked_add(BEFORE_ZERO)
                .filter(|nanos| *nanos < u64::MAX)
                .ok_or_else(|| field.error("the completion", "a time before the year 2400"))?;
            let arrival = completion
                .checked_sub(response)
                .ok_or_else(|| field.error("the response time", "one of less than 146 years"))?;
            (Some(arrival), Some(completion))
        }
        (arrival, completion, _) => (arrival, completion),
    };
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
    let bytes = |field: Field<'_>, name: &str, unit: SizeUnit| {
        let count = field.unsigned(name)?;
        count
            .checked_mul(unit.bytes())
            .ok_or_else(|| field.error(name, "an address of at most 64 bits of bytes"))
    };
    // Flushes, and requests of nothing, may be at no sector at all.
    let nowhere = |field: Field<'_>| field.text.is_empty() && field.at < line.len();
    let length = if op == Op::Flush && nowhere(size) {
        0
    } else {
        bytes(size, "the size", columns.size_unit)?
    };
    let (extent, aligned) = if length == 0 && (op == Op::Flush || is_last_sector(address.text)) {
        (Extent::default(), true)
    } else {
        let offset = bytes(address, "the address", columns.address_unit)?;
        reader::extent_of_bytes(offset, length)
            .ok_or_else(|| address.error("the address with the size", reader::EXTENT_ALLOWED))?
    };
    let device = match (&columns.device, field(Role::Device)) {
        (None, _) => 0,
        (Some(DeviceColumn { minor: Some(_), .. }), major) => {
            let major = major.unsigned_32("the major number of the device")?;
            let minor = field(Role::DeviceMinor).unsigned_32("the minor number of the device")?;
            let name = format!("{major},{minor}").into_bytes();
            names.number(&name[..], || name.clone())
        }
        (Some(DeviceColumn { named: false, .. }), field) => field.unsigned_32("the device")?,
        (Some(DeviceColumn { named: true, .. }), field) => {
            names.number(field.text, || field.text.to_vec())
        }
    };
    let process = given(Role::Process)
        .map(|field| field.unsigned_32("the process"))
        .transpose()?;
    let request = TraceRequest {
        arrival: arrival.map(Time::from_nanos),
        completion: completion.map(Time::from_nanos),
        device,
        op,
        extent,
        process,
        flags,
    };
    Ok(Some(match action {
        None => Parsed {
            request,
            aligned,
            action,
        },
        Some(action) => {
            let BlockEvent { action, request } = block_event(action, request);
            Parsed {
                request,
                aligned,
                action: Some(action),
            }
        }
    }))
}

/// Returns true if an address is the largest number of 64 bits, the kernel's mark for no sector.
fn is_last_sector(address: &[u8]) -> bool {
    address == b"18446744073709551615" || address == b"-1"
}

/// A time, which may be the sum of two columns.
#[inline]
fn time(
    column: &TimeColumn,
    first: Field<'_>,
    rest: Field<'_>,
    name: &str,
) -> Result<u64, Box<FieldError>> {
    let one = |field: Field<'_>, form: TimeForm| match form {
        TimeForm::Unit(unit) => field.date(name, unit.nanos()),
        TimeForm::Date => {
            calendar::date(field.text).map_err(|Allowed(allowed)| field.error(name, allowed))
        }
        TimeForm::Clock => {
            calendar::clock(field.text).map_err(|Allowed(allowed)| field.error(name, allowed))
        }
    };
    let nanos = one(first, column.form)?;
    match &column.rest {
        None => Ok(nanos),
        Some((_, form)) => nanos
            .checked_add(one(rest, *form)?)
            .filter(|nanos| *nanos < u64::MAX)
            .ok_or_else(|| rest.error(name, "a time of at most 584 years")),
    }
}

/// The event of a request; `None` for events that do not matter.
fn action(field: Field<'_>) -> Result<Option<BlockAction>, Box<FieldError>> {
    Ok(Some(match field.text {
        b"Q" => BlockAction::Queue,
        b"I" => BlockAction::Insert,
        b"D" => BlockAction::Issue,
        b"R" => BlockAction::Requeue,
        b"C" => BlockAction::Complete(Level::Both),
        other if !other.is_empty() && other.iter().all(u8::is_ascii_alphabetic) => return Ok(None),
        _ => return Err(field.error("the action", "a letter such as Q, D or C")),
    }))
}

impl OpCode {
    /// The operation that a column stands for, and flags if it has any; `None` if it is not for sectors.
    fn read(self, field: Field<'_>) -> Result<Option<(Op, Flags)>, Box<FieldError>> {
        let text = field.text;
        let found = match self {
            OpCode::Optional if text.is_empty() => return Ok(None),
            OpCode::Text | OpCode::Optional => {
                let word = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
                let op = if word("read") {
                    Some(Op::Read)
                } else if word("write") {
                    Some(Op::Write)
                } else if word("flush") {
                    Some(Op::Flush)
                } else if word("discard") || word("trim") || word("unmap") || word("secure_erase") {
                    Some(Op::Discard)
                } else if word("none") || word("n") {
                    return Ok(None);
                } else {
                    scsi(text)
                };
                match op {
                    Some(op) => Some((op, Flags::NONE)),
                    None => rwbs::read(&text.to_ascii_uppercase()),
                }
            }
            OpCode::OneReads | OpCode::ZeroReads => {
                let read = u64::from(self == OpCode::OneReads);
                match number::unsigned(text) {
                    Ok(bit) if bit == read => Some((Op::Read, Flags::NONE)),
                    Ok(0 | 1) => Some((Op::Write, Flags::NONE)),
                    _ => None,
                }
            }
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

/// The operation of a SCSI command by its code, two hexadecimal digits (SBC-4, table of commands).
fn scsi(text: &[u8]) -> Option<Op> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.len() != 2 {
        return None;
    }
    Some(match number::hexadecimal(digits).ok()? {
        // Of 6, 10, 12, 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        // The same, then with verification, then the same data in many blocks.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
