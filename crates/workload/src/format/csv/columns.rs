//! Which column of a CSV trace is what.

use crate::error::shown;
use crate::trace::TimeUnit;
use headtime_units::Bytes;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Arrival,
    Completion,
    Response,
    Op,
    Address,
    Size,
    Device,
    Process,
    Flags,
}

pub(super) const ROLES: usize = Role::Flags as usize + 1;

/// Which column of a CSV trace is what, and in which unit.
///
/// As text, parts separated by commas, each `what=column` or `what=column:unit`; a column is its
/// number, counted from 1, or its heading:
///
/// `time=Timestamp:100ns,op=Type,address=Offset:bytes,size=Size:bytes,device=2,response=7:us`
///
/// | what | unit | |
/// |---|---|---|
/// | `time` | `s`, `ms`, `us`, `100ns`, `ns` | when the request was made |
/// | `completion` | the same | when it was finished |
/// | `response` | the same | how long that took; needs `time` |
/// | `op` | none, `read1`, `read0` | words or letters; 1 reads and 0 writes; the other way round |
/// | `address`, `size` | `bytes`, `sectors` (512 bytes), or a size such as `4KiB` | both needed |
/// | `device` | none, `name` | a number; any text, numbered from 0 as they appear |
/// | `process` | none | a number |
/// | `flags` | none | the sum of 1 (FUA), 2 (preflush) and 4 (sync) |
/// | `separator` | | `comma`, `semicolon`, `tab`, `bar` or `blank` in place of a column |
///
/// `op`, `address` and `size` are needed. If any column is named by its heading, the first line must
/// be the headings; else it is skipped if its address is not a number. Without `separator` it is the
/// first of tab, semicolon, comma and bar that the first line contains, and blanks if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns {
    /// When the request was made.
    pub time: Option<(Column, TimeUnit)>,
    /// When it was finished.
    pub completion: Option<(Column, TimeUnit)>,
    /// How long that took; of no effect beside `completion`.
    pub response: Option<(Column, TimeUnit)>,
    /// What to do.
    pub op: Column,
    /// How that is written.
    pub op_code: OpCode,
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
    /// By its heading.
    Name(String),
}

/// The column of the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceColumn {
    pub column: Column,
    /// Whether it holds names, to be numbered from 0 as they appear, and not numbers.
    pub named: bool,
}

/// How an operation is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OpCode {
    /// As a word or letters: read, R, WS.
    #[default]
    Text,
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
        } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse()
                .ok()
                .filter(|number| (1..=COLUMN_MAX).contains(number))
                .map(Column::Number)
                .ok_or_else(|| format!("columns are counted from 1 to {COLUMN_MAX}"))
        } else {
            Ok(Column::Name(text.to_owned()))
        }
    }
}

/// Last column that may be asked for.
const COLUMN_MAX: u16 = 1000;

const WHAT: &str =
    "time, completion, response, op, address, size, device, process, flags or separator";

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
        if parts.response.is_some() && parts.time.is_none() {
            return Err(ColumnsError {
                found: shown(text.as_bytes()),
                problem: "a response needs a time to count from".to_owned(),
            });
        }
        if parts.response.is_some() && parts.completion.is_some() {
            return Err(ColumnsError {
                found: shown(text.as_bytes()),
                problem: "a completion or a response, not both".to_owned(),
            });
        }
        Ok(CsvColumns {
            time: parts.time,
            completion: parts.completion,
            response: parts.response,
            op,
            op_code,
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
    time: Option<(Column, TimeUnit)>,
    completion: Option<(Column, TimeUnit)>,
    response: Option<(Column, TimeUnit)>,
    op: Option<(Column, OpCode)>,
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
        let time = || -> Result<(Column, TimeUnit), String> {
            let unit =
                unit.ok_or("a time needs its unit: s, ms, us, 100ns or ns, as in time=1:ms")?;
            let unit = unit
                .parse()
                .map_err(|error: crate::trace::UnknownName| error.to_string())?;
            Ok((name.parse()?, unit))
        };
        let size = || -> Result<(Column, SizeUnit), String> {
            let unit = unit.ok_or(
                "an address or size needs its unit: bytes, sectors or a size, as in address=4:bytes",
            )?;
            Ok((name.parse()?, unit.parse()?))
        };
        match what {
            "time" => once(&mut self.time, time()?),
            "completion" => once(&mut self.completion, time()?),
            "response" => once(&mut self.response, time()?),
            "address" => once(&mut self.address, size()?),
            "size" => once(&mut self.size, size()?),
            "op" => {
                let (name, code) = match unit {
                    Some("read1") => (name, OpCode::OneReads),
                    Some("read0") => (name, OpCode::ZeroReads),
                    _ => (value, OpCode::Text),
                };
                once(&mut self.op, (name.parse()?, code))
            }
            "device" => {
                let named = unit == Some("name");
                let column = if named { name } else { value }.parse()?;
                once(&mut self.device, DeviceColumn { column, named })
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
        CsvColumns {
            time: Some((name("arrival_ns"), TimeUnit::Nanos)),
            completion: Some((name("completion_ns"), TimeUnit::Nanos)),
            response: None,
            op: name("op"),
            op_code: OpCode::Text,
            address: name("address_sectors"),
            address_unit: SizeUnit::SECTORS,
            size: name("size_sectors"),
            size_unit: SizeUnit::SECTORS,
            device: Some(DeviceColumn {
                column: name("device"),
                named: false,
            }),
            process: Some(name("process")),
            flags: Some(name("flags")),
            separator: Some(b','),
        }
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = (Role, &Column)> {
        [
            (Role::Arrival, self.time.as_ref().map(|(column, _)| column)),
            (
                Role::Completion,
                self.completion.as_ref().map(|(column, _)| column),
            ),
            (
                Role::Response,
                self.response.as_ref().map(|(column, _)| column),
            ),
            (Role::Op, Some(&self.op)),
            (Role::Address, Some(&self.address)),
            (Role::Size, Some(&self.size)),
            (
                Role::Device,
                self.device.as_ref().map(|device| &device.column),
            ),
            (Role::Process, self.process.as_ref()),
            (Role::Flags, self.flags.as_ref()),
        ]
        .into_iter()
        .filter_map(|(role, column)| column.map(|column| (role, column)))
    }

    pub(super) fn time_unit(&self) -> Option<TimeUnit> {
        self.time.as_ref().map(|(_, unit)| *unit)
    }

    pub(super) fn completion_unit(&self) -> Option<TimeUnit> {
        self.completion.as_ref().map(|(_, unit)| *unit)
    }

    pub(super) fn response_unit(&self) -> Option<TimeUnit> {
        self.response.as_ref().map(|(_, unit)| *unit)
    }
}
