//! Description of the columns of a CSV trace.

use crate::error::shown;
use crate::trace::{TimeUnit, UnknownName};
use crate::write::CSV_NAME_HEADING;
use headtime_units::Bytes;
use std::str::FromStr;
use thiserror::Error;

/// Role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Arrival,
    /// Second addend of an arrival.
    ArrivalRest,
    Completion,
    /// Second addend of a completion.
    CompletionRest,
    Response,
    Op,
    Action,
    Address,
    Size,
    Device,
    /// Minor number of a device.
    DeviceMinor,
    Process,
    Flags,
    ProcessName,
    /// Last column of a process name with blanks.
    ProcessNameEnd,
}

pub(super) const ROLES: usize = Role::ProcessNameEnd as usize + 1;

impl Role {
    /// Key of the role in a description.
    pub fn key(self) -> &'static str {
        let keys = "time time completion completion response op action address size device device process flags process_name process_name";
        let key = keys.split(' ').nth(self as usize);
        key.expect("a key for each role")
    }

    /// Returns true if each line of a request must have the role's column. The column may be empty.
    pub fn is_needed(self) -> bool {
        let others = ["completion", "response", "process", "flags", "process_name"];
        !others.contains(&self.key())
    }
}

/// Columns of a CSV trace and their units.
///
/// As text, parts are separated by commas, each `what=column` or `what=column:unit`. A column is given
/// by its number from 1, by its number from the end of the line (-1 is the last), or by its heading:
///
/// `time=Timestamp:100ns,op=Type,address=Offset:bytes,size=Size:bytes,device=2,response=7:us`
///
/// | what | unit | |
/// |---|---|---|
/// | `time` | `s`, `ms`, `us`, `100ns`, `ns`, `date`, `clock` | when the request was made |
/// | `completion` | the same | when it was finished |
/// | `response` | `s`, `ms`, `us`, `100ns`, `ns` | how long that took; needs `time` or `completion` |
/// | `op` | none, `read1`, `read0`, `optional` | words, letters or SCSI operation codes; 1 reads and 0 writes; the other way round; as none, and lines where it is empty are passed over |
/// | `action` | none | `Q`, `I`, `D`, `R` or `C`: each line is an event of a request, see [`Pairing`](crate::Pairing) |
/// | `address`, `size` | `bytes`, `sectors` (512 bytes), or a size such as `4KiB` | both needed |
/// | `device` | none, `name` | a number; any text, numbered from 0 as they appear; `1+2`: major and minor number |
/// | `process` | none | a number |
/// | `flags` | none | the sum of 1 (FUA), 2 (preflush) and 4 (sync) |
/// | `process_name` | none | the process's name; `2..-7` for a name with blanks: columns 2 to 7 from the end |
/// | `separator` | | `comma`, `semicolon`, `tab`, `bar` or `blank` in place of a column |
///
/// `op`, `address` and `size` are required. If any column is given by its heading, the first line must
/// be the headings. Otherwise the first line is skipped if its address is not a number. Without
/// `separator`, the separator is the first of tab, semicolon, comma and bar that occurs in the first
/// line, or else blanks. A time may be the sum of two columns: `time=1:s+2:ns`, `time=1:date+2:clock`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumns {
    /// Columns with their roles, each role once.
    pub(super) columns: Vec<(Role, Column)>,
    pub(super) time: TimeForms,
    pub(super) completion: TimeForms,
    /// Unit of response times in nanoseconds, if there are response times.
    pub(super) response_unit: Option<u64>,
    /// True if arrivals are computed as completions minus response times.
    pub(super) counts_back: bool,
    pub(super) op_code: OpCode,
    /// True if each line is an event of a request.
    pub(crate) has_events: bool,
    /// Units of addresses and sizes in bytes.
    pub(super) address_unit: u64,
    pub(super) size_unit: u64,
    /// Notation of devices. `None` means a single device.
    pub(super) device: Option<DeviceForm>,
    /// Byte between columns. `None` lets the first line decide.
    pub(super) separator: Option<u8>,
}

/// Position of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Index from the left, counted from 0.
    Place(usize),
    /// Index from the right, counted from 0.
    FromEnd(usize),
    /// Heading.
    Name(String),
    /// Heading that a file may lack.
    Optional(&'static str),
}

/// Notation of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// A number, in units of this length in nanoseconds.
    Unit(u64),
    /// A date, perhaps with the time of day.
    #[default]
    Date,
    /// The time of day.
    Clock,
}

/// Notation of a time that may be the sum of two columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeForms {
    pub first: TimeForm,
    pub rest: Option<TimeForm>,
}

/// Notation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceForm {
    Number,
    /// Any text. Devices are numbered from 0 in order of appearance.
    Name,
    /// Major and minor number. Devices are numbered from 0 in order of appearance.
    MajorMinor,
}

/// Notation of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OpCode {
    /// A word, letters or a SCSI operation code: read, R, WS, 28.
    #[default]
    Text,
    /// As `Text`. Lines without an operation are ignored.
    Optional,
    /// 1 for a read, 0 for a write.
    OneReads,
    /// 0 for a read, 1 for a write.
    ZeroReads,
}

/// A text that does not describe columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("columns: `{found}`: {problem}")]
pub struct ColumnsError {
    /// Faulty part of the description.
    pub found: String,
    /// Fault, with the allowed values.
    pub problem: String,
}

/// Bytes in the unit of an address or size.
pub(super) fn size_unit(text: &str) -> Result<u64, String> {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    match text {
        "bytes" => return Ok(1),
        "sectors" => return Ok(512),
        _ if digits => text.parse(),
        _ => format!("1{text}").parse(),
    }
    .ok()
    .filter(|Bytes(bytes)| *bytes > 0)
    .map(|Bytes(bytes)| bytes)
    .ok_or_else(|| {
        "the unit is one of bytes, sectors (of 512 bytes), or a size such as KiB or 4KiB".to_owned()
    })
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Column, String> {
        if text.is_empty() {
            Err("there is no column; give its number, from 1, or its heading".to_owned())
        } else if is_digits(text) {
            place(text).map(Column::Place)
        } else if let Some(digits) = text.strip_prefix('-').filter(|rest| is_digits(rest)) {
            place(digits).map(Column::FromEnd)
        } else {
            Ok(Column::Name(text.to_owned()))
        }
    }
}

/// Largest number of a column.
const COLUMN_MAX: usize = 1000;

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Index of a column from either end, counted from 0.
fn place(digits: &str) -> Result<usize, String> {
    let number = digits.parse().ok();
    number
        .filter(|number| (1..=COLUMN_MAX).contains(number))
        .map(|number| number - 1)
        .ok_or_else(|| format!("columns are counted from 1 to {COLUMN_MAX}"))
}

impl FromStr for TimeForm {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeForm, String> {
        match text {
            "date" => Ok(TimeForm::Date),
            "clock" => Ok(TimeForm::Clock),
            _ => text
                .parse()
                .map(|unit: TimeUnit| TimeForm::Unit(unit.nanos()))
                .map_err(|error: UnknownName| format!("{error}, date, clock")),
        }
    }
}

/// Splits the text of a column of times into the column and the notation.
fn time_column(text: &str) -> Result<(&str, TimeForm), String> {
    let (column, form) = text.rsplit_once(':').ok_or(TIME_NEEDS_UNIT)?;
    Ok((column, form.parse()?))
}

const TIME_NEEDS_UNIT: &str =
    "a time needs its unit: s, ms, us, 100ns, ns, date or clock, as in time=1:ms";

const WHAT: &str = "time, completion, response, op, action, address, size, device, process, process_name, flags or separator";

impl FromStr for CsvColumns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<CsvColumns, ColumnsError> {
        let error = |found: &str, problem: String| ColumnsError {
            found: shown(found.as_bytes()),
            problem,
        };
        let mut columns = CsvColumns::default();
        for part in text.split(',').map(str::trim) {
            columns.add(part).map_err(|problem| error(part, problem))?;
        }
        let has = |role| columns.columns.iter().any(|(other, _)| *other == role);
        for (role, what) in [
            (Role::Op, "op"),
            (Role::Address, "address"),
            (Role::Size, "size"),
        ] {
            if !has(role) {
                let problem = format!("there is no {what}; op, address and size are needed");
                return Err(error(text, problem));
            }
        }
        let (time, completion) = (has(Role::Arrival), has(Role::Completion));
        let (response, action) = (has(Role::Response), has(Role::Action));
        let problem = if response && !time && !completion {
            "a response needs a time or a completion beside it"
        } else if response && time && completion {
            "of time, completion and response two at most"
        } else if action && (response || completion || !time) {
            "an action needs a time, and neither completion nor response"
        } else {
            columns.has_events = action;
            columns.counts_back = response && !time;
            return Ok(columns);
        };
        Err(error(text, problem.to_owned()))
    }
}

impl CsvColumns {
    /// Description of the columns that [`Trace::write_csv`](crate::Trace::write_csv) writes.
    pub(super) fn own() -> CsvColumns {
        let mut own: CsvColumns =
            "time=arrival_ns:ns,completion=completion_ns:ns,device=device,op=op,address=address_sectors:sectors,\
             size=size_sectors:sectors,process=process,flags=flags,separator=comma"
                .parse()
                .expect("a test reads them");
        let name = Column::Optional(CSV_NAME_HEADING);
        own.columns.push((Role::ProcessName, name));
        own
    }

    /// Adds a part of a description.
    fn add(&mut self, part: &str) -> Result<(), String> {
        let (what, value) = part
            .split_once('=')
            .ok_or("write what=column or what=column:unit")?;
        // A heading may contain a colon. The unit follows the last colon.
        let (name, unit) = match value.rsplit_once(':') {
            Some((name, unit)) => (name, Some(unit)),
            None => (value, None),
        };
        let bytes = || {
            size_unit(unit.ok_or(
                "an address or size needs its unit: bytes, sectors or a size, as in address=4:bytes",
            )?)
        };
        match what {
            "time" => self.time = self.add_time(value, Role::Arrival, Role::ArrivalRest)?,
            "completion" => {
                self.completion = self.add_time(value, Role::Completion, Role::CompletionRest)?;
            }
            "response" => {
                let unit = unit.ok_or(TIME_NEEDS_UNIT)?.parse();
                let unit = unit.map_err(|error: UnknownName| error.to_string())?;
                self.response_unit = Some(TimeUnit::nanos(unit));
                self.add_column(Role::Response, name)?;
            }
            "op" => {
                let (name, code) = match unit {
                    Some("read1") => (name, OpCode::OneReads),
                    Some("read0") => (name, OpCode::ZeroReads),
                    Some("optional") => (name, OpCode::Optional),
                    _ => (value, OpCode::Text),
                };
                self.op_code = code;
                self.add_column(Role::Op, name)?;
            }
            "action" => self.add_column(Role::Action, value)?,
            "address" => {
                self.address_unit = bytes()?;
                self.add_column(Role::Address, name)?;
            }
            "size" => {
                self.size_unit = bytes()?;
                self.add_column(Role::Size, name)?;
            }
            "device" => {
                let (text, form) = match unit {
                    Some("name") => (name, DeviceForm::Name),
                    _ => (value, DeviceForm::Number),
                };
                match text.split_once('+') {
                    Some((major, minor)) if is_digits(major) && is_digits(minor) => {
                        self.device = Some(DeviceForm::MajorMinor);
                        self.add_column(Role::Device, major)?;
                        self.add_column(Role::DeviceMinor, minor)?;
                    }
                    _ => {
                        self.device = Some(form);
                        self.add_column(Role::Device, text)?;
                    }
                }
            }
            "process" => self.add_column(Role::Process, value)?,
            "process_name" => match value.split_once("..") {
                Some((first, last))
                    if is_digits(first) && is_digits(last.strip_prefix('-').unwrap_or(last)) =>
                {
                    self.add_column(Role::ProcessName, first)?;
                    self.add_column(Role::ProcessNameEnd, last)?;
                }
                _ => self.add_column(Role::ProcessName, value)?,
            },
            "flags" => self.add_column(Role::Flags, value)?,
            "separator" => {
                let byte = match value {
                    "comma" => b',',
                    "semicolon" => b';',
                    "tab" => b'\t',
                    "bar" => b'|',
                    "blank" => b' ',
                    _ => Err("the separator is comma, semicolon, tab, bar or blank")?,
                };
                if self.separator.replace(byte).is_some() {
                    return Err(TWICE.to_owned());
                }
            }
            _ => return Err(format!("`{}` is not one of {WHAT}", shown(what.as_bytes()))),
        }
        Ok(())
    }

    /// Adds a column of times, or two columns whose sum is the time.
    fn add_time(&mut self, text: &str, first: Role, second: Role) -> Result<TimeForms, String> {
        // A heading may contain a plus sign. The sign then follows no unit.
        let sum = (text.rsplit_once('+')).filter(|(addend, _)| time_column(addend).is_ok());
        let (text, rest) = sum.map_or((text, None), |(text, rest)| (text, Some(rest)));
        let (column, form) = time_column(text)?;
        self.add_column(first, column)?;
        let mut forms = TimeForms {
            first: form,
            rest: None,
        };
        if let Some(rest) = rest {
            let (column, form) = time_column(rest)?;
            self.add_column(second, column)?;
            forms.rest = Some(form);
        }
        Ok(forms)
    }

    /// Adds a column for a role that has none yet.
    fn add_column(&mut self, role: Role, text: &str) -> Result<(), String> {
        let column = text.parse()?;
        if self.columns.iter().any(|(other, _)| *other == role) {
            return Err(TWICE.to_owned());
        }
        self.columns.push((role, column));
        Ok(())
    }
}

const TWICE: &str = "it is given twice";
