//! Which column of a CSV trace is what.

use crate::error::shown;
use crate::trace::{TimeUnit, UnknownName};
use headtime_units::Bytes;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Arrival,
    /// The second addend of an arrival.
    ArrivalRest,
    Completion,
    /// The second addend of a completion.
    CompletionRest,
    Response,
    Op,
    Action,
    Address,
    Size,
    Device,
    /// The second number of a device.
    DeviceMinor,
    Process,
    Flags,
}

pub(super) const ROLES: usize = Role::Flags as usize + 1;

/// Which column of a CSV trace is what, and in which unit.
///
/// As text, parts separated by commas, each `what=column` or `what=column:unit`. A column is its
/// number from 1, its number from the end of the line (-1 is the last), or its heading:
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
/// | `separator` | | `comma`, `semicolon`, `tab`, `bar` or `blank` in place of a column |
///
/// `op`, `address` and `size` are needed. If any column is named by its heading, the first line must
/// be the headings; else it is skipped if its address is not a number. Without `separator` it is the
/// first of tab, semicolon, comma and bar that the first line contains, and blanks if it has none.
/// A time may be the sum of two columns: `time=1:s+2:ns`, `time=1:date+2:clock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns {
    /// When the request was made.
    pub time: Option<TimeColumn>,
    /// When it was finished.
    pub completion: Option<TimeColumn>,
    /// The response time; beside `time` or `completion`.
    pub response: Option<(Column, TimeUnit)>,
    /// What to do.
    pub op: Column,
    /// How that is written.
    pub op_code: OpCode,
    /// The event of the request, if each line is an event.
    pub action: Option<Column>,
    /// Where it begins.
    pub address: Column,
    /// What addresses count.
    pub address_unit: SizeUnit,
    /// How much it is.
    pub size: Column,
    /// What sizes count.
    pub size_unit: SizeUnit,
    /// Which disk.
    pub device: Option<DeviceColumn>,
    pub process: Option<Column>,
    /// Further properties: the sum of 1 (FUA), 2 (preflush) and 4 (sync).
    pub flags: Option<Column>,
    /// What stands between columns; `None` decides by the first line.
    pub separator: Option<u8>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By its place, counted from 1.
    Number(u16),
    /// By its place from the end of the line, counted from 1.
    FromEnd(u16),
    /// By its heading.
    Name(String),
}

/// A column that holds times, or two whose sum is the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeColumn {
    pub column: Column,
    pub form: TimeForm,
    /// The second addend.
    pub rest: Option<(Column, TimeForm)>,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeForm {
    /// A number of these.
    Unit(TimeUnit),
    /// A date, perhaps with the time of day.
    Date,
    /// The time of day.
    Clock,
}

/// The column of the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceColumn {
    pub column: Column,
    /// The minor number, if `column` is the major one.
    pub minor: Option<Column>,
    /// Whether it holds names, to be numbered from 0 as they appear, and not numbers.
    pub named: bool,
}

/// How an operation is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OpCode {
    /// As a word, letters or a SCSI operation code: read, R, WS, 28.
    #[default]
    Text,
    /// As `Text`. Lines without an operation are passed over.
    Optional,
    /// 1 is a read, 0 a write.
    OneReads,
    /// 0 is a read, 1 a write.
    ZeroReads,
}

/// What an address or size counts: so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizeUnit(u64);

/// A text that does not describe columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("columns: `{found}`: {problem}")]
pub struct ColumnsError {
    /// The part at fault.
    pub found: String,
    /// What is wrong with it, and what is allowed.
    pub problem: String,
}

impl SizeUnit {
    /// Bytes.
    pub const BYTES: SizeUnit = SizeUnit(1);
    /// Sectors of 512 bytes.
    pub const SECTORS: SizeUnit = SizeUnit(512);

    /// Bytes in one.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for SizeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeUnit, String> {
        const ALLOWED: &str =
            "the unit is one of bytes, sectors (of 512 bytes), or a size such as KiB or 4KiB";
        match text {
            "bytes" => Ok(SizeUnit::BYTES),
            "sectors" => Ok(SizeUnit::SECTORS),
            _ => {
                let digits = text.starts_with(|first: char| first.is_ascii_digit());
                let size = if digits {
                    text.to_owned()
                } else {
                    format!("1{text}")
                };
                match size.parse() {
                    Ok(Bytes(bytes)) if bytes > 0 => Ok(SizeUnit(bytes)),
                    _ => Err(ALLOWED.to_owned()),
                }
            }
        }
    }
}

impl fmt::Display for SizeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SizeUnit::BYTES => f.write_str("bytes"),
            SizeUnit::SECTORS => f.write_str("sectors"),
            SizeUnit(bytes) => Bytes(bytes).fmt(f),
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Column, String> {
        if text.is_empty() {
            Err("there is no column; give its number, from 1, or its heading".to_owned())
        } else if is_digits(text) {
            place(text).map(Column::Number)
        } else if let Some(digits) = text.strip_prefix('-').filter(|rest| is_digits(rest)) {
            place(digits).map(Column::FromEnd)
        } else {
            Ok(Column::Name(text.to_owned()))
        }
    }
}

/// Last column that may be asked for.
const COLUMN_MAX: u16 = 1000;

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The place of a column, from either end.
fn place(digits: &str) -> Result<u16, String> {
    let number = digits.parse().ok();
    number
        .filter(|number| (1..=COLUMN_MAX).contains(number))
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
                .map(TimeForm::Unit)
                .map_err(|error: UnknownName| format!("{error}, date, clock")),
        }
    }
}

impl FromStr for TimeColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeColumn, String> {
        let one = |text: &str| -> Result<(Column, TimeForm), String> {
            let (name, form) = text.rsplit_once(':').ok_or(TIME_NEEDS_UNIT)?;
            Ok((name.parse()?, form.parse()?))
        };
        // A heading may contain a plus sign. The sign then follows no unit.
        let both = text.rsplit_once('+').and_then(|(first, rest)| {
            let first = one(first).ok()?;
            Some((first, one(rest)))
        });
        let ((column, form), rest) = match both {
            Some((first, rest)) => (first, Some(rest?)),
            None => (one(text)?, None),
        };
        Ok(TimeColumn { column, form, rest })
    }
}

const TIME_NEEDS_UNIT: &str =
    "a time needs its unit: s, ms, us, 100ns, ns, date or clock, as in time=1:ms";

const WHAT: &str =
    "time, completion, response, op, action, address, size, device, process, flags or separator";

impl FromStr for CsvColumns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<CsvColumns, ColumnsError> {
        let mut parts = Parts::default();
        for part in text.split(',') {
            parts.add(part.trim()).map_err(|problem| ColumnsError {
                found: shown(part.trim().as_bytes()),
                problem,
            })?;
        }
        let missing = |what: &str| ColumnsError {
            found: shown(text.as_bytes()),
            problem: format!("there is no {what}; op, address and size are needed"),
        };
        let (op, op_code) = parts.op.ok_or_else(|| missing("op"))?;
        let (address, address_unit) = parts.address.ok_or_else(|| missing("address"))?;
        let (size, size_unit) = parts.size.ok_or_else(|| missing("size"))?;
        let (time, completion) = (parts.time.is_some(), parts.completion.is_some());
        let problem = match parts.response {
            Some(_) if !time && !completion => "a response needs a time or a completion beside it",
            Some(_) if time && completion => "of time, completion and response two at most",
            ref response
                if parts.action.is_some() && (response.is_some() || completion || !time) =>
            {
                "an action needs a time, and neither completion nor response"
            }
            _ => "",
        };
        if !problem.is_empty() {
            return Err(ColumnsError {
                found: shown(text.as_bytes()),
                problem: problem.to_owned(),
            });
        }
        Ok(CsvColumns {
            time: parts.time,
            completion: parts.completion,
            response: parts.response,
            op,
            op_code,
            action: parts.action,
            address,
            address_unit,
            size,
            size_unit,
            device: parts.device,
            process: parts.process,
            flags: parts.flags,
            separator: parts.separator,
        })
    }
}

/// What has been read of a text so far.
#[derive(Default)]
struct Parts {
    time: Option<TimeColumn>,
    completion: Option<TimeColumn>,
    response: Option<(Column, TimeUnit)>,
    op: Option<(Column, OpCode)>,
    action: Option<Column>,
    address: Option<(Column, SizeUnit)>,
    size: Option<(Column, SizeUnit)>,
    device: Option<DeviceColumn>,
    process: Option<Column>,
    flags: Option<Column>,
    separator: Option<u8>,
}

impl Parts {
    fn add(&mut self, part: &str) -> Result<(), String> {
        let (what, value) = part
            .split_once('=')
            .ok_or_else(|| "write what=column or what=column:unit".to_owned())?;
        // A heading may have a colon; the unit stands behind the last.
        let (name, unit) = match value.rsplit_once(':') {
            Some((name, unit)) => (name, Some(unit)),
            None => (value, None),
        };
        let span = || -> Result<(Column, TimeUnit), String> {
            let unit = unit.ok_or(TIME_NEEDS_UNIT)?.parse();
            let unit = unit.map_err(|error: UnknownName| error.to_string())?;
            Ok((name.parse()?, unit))
        };
        let size = || -> Result<(Column, SizeUnit), String> {
            let unit = unit.ok_or(
                "an address or size needs its unit: bytes, sectors or a size, as in address=4:bytes",
            )?;
            Ok((name.parse()?, unit.parse()?))
        };
        match what {
            "time" => once(&mut self.time, value.parse()?),
            "completion" => once(&mut self.completion, value.parse()?),
            "response" => once(&mut self.response, span()?),
            "action" => once(&mut self.action, value.parse()?),
            "address" => once(&mut self.address, size()?),
            "size" => once(&mut self.size, size()?),
            "op" => {
                let (name, code) = match unit {
                    Some("read1") => (name, OpCode::OneReads),
                    Some("read0") => (name, OpCode::ZeroReads),
                    Some("optional") => (name, OpCode::Optional),
                    _ => (value, OpCode::Text),
                };
                once(&mut self.op, (name.parse()?, code))
            }
            "device" => {
                let named = unit == Some("name");
                let text = if named { name } else { value };
                let (column, minor) = match text.split_once('+') {
                    Some((major, minor)) if is_digits(major) && is_digits(minor) => {
                        (major.parse()?, Some(minor.parse()?))
                    }
                    _ => (text.parse()?, None),
                };
                let device = DeviceColumn {
                    column,
                    minor,
                    named,
                };
                once(&mut self.device, device)
            }
            "process" => once(&mut self.process, value.parse()?),
            "flags" => once(&mut self.flags, value.parse()?),
            "separator" => {
                let byte = match value {
                    "comma" => b',',
                    "semicolon" => b';',
                    "tab" => b'\t',
                    "bar" => b'|',
                    "blank" => b' ',
                    _ => {
                        return Err(
                            "the separator is comma, semicolon, tab, bar or blank".to_owned()
                        );
                    }
                };
                once(&mut self.separator, byte)
            }
            _ => Err(format!("`{}` is not one of {WHAT}", shown(what.as_bytes()))),
        }
    }
}

/// Fills a place that must be empty.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err("it is given twice".to_owned()),
    }
}

impl CsvColumns {
    /// The columns that [`Trace::write_csv`](crate::Trace::write_csv) writes.
    pub(super) fn own() -> CsvColumns {
        let name = |name: &str| Column::Name(name.to_owned());
        let time = |heading: &str| {
            Some(TimeColumn {
                column: name(heading),
                form: TimeForm::Unit(TimeUnit::Nanos),
                rest: None,
            })
        };
        CsvColumns {
            time: time("arrival_ns"),
            completion: time("completion_ns"),
            response: None,
            op: name("op"),
            op_code: OpCode::Text,
            action: None,
            address: name("address_sectors"),
            address_unit: SizeUnit::SECTORS,
            size: name("size_sectors"),
            size_unit: SizeUnit::SECTORS,
            device: Some(DeviceColumn {
                column: name("device"),
                minor: None,
                named: false,
            }),
            process: Some(name("process")),
            flags: Some(name("flags")),
            separator: Some(b','),
        }
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = (Role, &Column)> {
        let (time, completion) = (self.time.as_ref(), self.completion.as_ref());
        let device = self.device.as_ref();
        fn rest(time: &TimeColumn) -> Option<&Column> {
            time.rest.as_ref().map(|(column, _)| column)
        }
        [
            (Role::Arrival, time.map(|time| &time.column)),
            (Role::ArrivalRest, time.and_then(rest)),
            (Role::Completion, completion.map(|time| &time.column)),
            (Role::CompletionRest, completion.and_then(rest)),
            (
                Role::Response,
                self.response.as_ref().map(|(column, _)| column),
            ),
            (Role::Op, Some(&self.op)),
            (Role::Action, self.action.as_ref()),
            (Role::Address, Some(&self.address)),
            (Role::Size, Some(&self.size)),
            (Role::Device, device.map(|device| &device.column)),
            (
                Role::DeviceMinor,
                device.and_then(|device| device.minor.as_ref()),
            ),
            (Role::Process, self.process.as_ref()),
            (Role::Flags, self.flags.as_ref()),
        ]
        .into_iter()
        .filter_map(|(role, column)| column.map(|column| (role, column)))
    }

    /// Returns true if arrivals are completions less response times.
    pub(super) fn counts_back(&self) -> bool {
        self.time.is_none() && self.response.is_some()
    }
}
