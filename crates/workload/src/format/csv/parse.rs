//! Request or event of a line.

use super::columns::{CsvColumns, DeviceForm, OpCode, ROLES, Role, TimeForm, TimeForms};
use super::layout::{Layout, Seen};
use crate::TraceRequest;
use crate::calendar;
use crate::error::FieldError;
use crate::format::fields::Field;
use crate::format::rwbs;
use crate::number::{self, Allowed};
use crate::pairing::BlockAction;
use crate::reader;
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};

/// A line with a request, or with an event of a request.
pub(super) struct Parsed {
    pub request: TraceRequest,
    /// True if the request covers whole sectors.
    pub aligned: bool,
    /// The event, if the lines are events.
    pub action: Option<BlockAction>,
}

/// Time added to arrivals that are computed from completions. Without it, arrivals might precede the
/// file's zero.
pub(super) const BEFORE_ZERO: u64 = 1 << 62;

/// Reads the request or the event of a line. Returns `None` if the line is to be ignored.
#[inline(always)]
pub(super) fn parse(
    line: &[u8],
    layout: &Layout<'_>,
    seen: &mut Seen,
) -> Result<Option<Parsed>, Box<FieldError>> {
    let mut fields = [Field::end(line); ROLES];
    let count = layout.split(line, &mut fields)?;
    seen.columns = seen.columns.max(count);
    if count < layout.needed {
        return short_line(layout, line, count);
    }
    parse_fields(line, layout.columns, &fields, seen)
}

/// Returns the error for a line that lacks a required column. A line without a request may be
/// short.
#[cold]
#[inline(never)]
fn short_line(
    layout: &Layout<'_>,
    line: &[u8],
    columns: usize,
) -> Result<Option<Parsed>, Box<FieldError>> {
    let mut fields = [Field::end(line); ROLES];
    layout.split(line, &mut fields)?;
    let parsed = parse_fields(line, layout.columns, &fields, &mut Seen::default());
    if matches!(parsed, Ok(None)) {
        return parsed;
    }
    let column = layout.lacking(columns, Role::is_needed);
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
    let mut arrival = columns.time.read(first, rest, "the time", seen)?;
    let (first, rest) = (field(Role::Completion), field(Role::CompletionRest));
    let mut completion = columns
        .completion
        .read(first, rest, "the completion", seen)?;
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
        seen: &mut Seen,
    ) -> Result<Option<u64>, Box<FieldError>> {
        if first.text.is_empty() {
            return Ok(None);
        }
        match (self.first, self.rest) {
            (TimeForm::Unit(unit), None) => first.date(name, unit).map(Some),
            (TimeForm::Clock, None) => {
                let clock = TimeForm::Clock.read(first, name)?;
                Ok(Some(seen.around_midnight(clock)))
            }
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
                    match scsi(text) {
                        Some(None) => return Ok(None),
                        Some(Some(op)) => Some(plain(op)),
                        None => rwbs::read(&text.to_ascii_uppercase()),
                    }
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

/// Operation of a SCSI command by its code, two hexadecimal digits (SBC-4 and SPC-4, tables of commands). The inner `None`
/// is a command that neither reads, writes nor flushes the medium.
fn scsi(text: &[u8]) -> Option<Option<Op>> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.len() != 2 {
        return None;
    }
    Some(Some(match number::hexadecimal(digits).ok()? {
        // State: TEST UNIT READY, REQUEST SENSE, INQUIRY, START STOP UNIT, PREVENT MEDIUM REMOVAL.
        // Pages: MODE SELECT and MODE SENSE, LOG SELECT and LOG SENSE.
        // Capacity and units: READ CAPACITY, SERVICE ACTION IN, REPORT LUNS, PERSISTENT RESERVE, MAINTENANCE IN.
        0x00 | 0x03 | 0x12 | 0x15 | 0x55 | 0x1a | 0x5a | 0x1b | 0x1e | 0x25 | 0x4c | 0x4d
        | 0x5e | 0x5f | 0x9e | 0xa0 | 0xa3 => return Some(None),
        // READ commands of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        // WRITE commands of 6, 10, 12 and 16 bytes, then WRITE AND VERIFY, then WRITE SAME.
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        _ => return None,
    }))
}
