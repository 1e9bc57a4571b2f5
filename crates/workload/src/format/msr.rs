//! MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! The README of the collection describes the columns (SNIA IOTTA, trace set 388; Narayanan, Donnelly,
//! Rowstron, "Write Off-Loading", FAST 2008):
//! - The timestamp is the time of issue, as a Windows file time in 100 ns since 1601.
//! - Type is `Read` or `Write`.
//! - Offset and Size are in bytes.
//! - The response time is in 100 ns.
//!
//! Lines are nearly, but not quite, in order.
//!
//! The reader skips a line of headings at the start. If all lines are of one host, the device is the
//! disk number. Otherwise pairs of host and disk are numbered from 0 in order of appearance.

use super::fields::{Columns, Field};
use crate::TraceRequest;
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::number;
use crate::numbered::Numbered;
use crate::reader::{self, Reader};
use headtime_sched::{Flags, Op};
use headtime_units::Time;
use std::io::Read;

/// Nanoseconds in the unit of both times.
const TICK: u64 = 100;

/// Hosts, and volumes. A volume is a pair of host and disk.
struct Volumes {
    hosts: Numbered<Vec<u8>>,
    list: Numbered<(u32, u32)>,
}

impl Volumes {
    fn new() -> Volumes {
        Volumes {
            hosts: Numbered::default(),
            list: Numbered::default(),
        }
    }

    /// Returns the number of a volume.
    #[inline]
    fn number(&mut self, host: &[u8], disk: u32) -> u32 {
        let host = self.hosts.number(host, || host.to_vec());
        self.list.number(&(host, disk), || (host, disk))
    }
}

pub(crate) fn read<R: Read>(
    lines: &mut Lines<Input<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let mut volumes = Volumes::new();
    let mut first = true;
    while reader::advance(lines, reader)? {
        let (number, line) = (lines.number(), lines.current());
        if std::mem::take(&mut first) && is_heading(line) {
            reader.notes.lines_ignored += 1;
            continue;
        }
        match parse(line, &mut volumes) {
            Ok((request, aligned)) => {
                reader.notes.unaligned += u64::from(!aligned);
                reader.push(number, request)?;
            }
            Err(error) => reader.odd(number, *error)?,
        }
    }
    reader.subtract_date(0)?;
    let (hosts, volumes) = (volumes.hosts.into_list(), volumes.list.into_list());
    let number = |index: u32| match (&hosts[..], volumes[index as usize]) {
        ([_], (_, disk)) => disk,
        _ => index,
    };
    for request in &mut reader.requests {
        request.device = number(request.device);
    }
    if let Some(filed) = &mut reader.filed {
        filed.devices = (0..volumes.len() as u32).map(number).collect();
    }
    reader.device_names = volumes
        .iter()
        .zip(0..)
        .map(|((host, disk), index)| {
            let host = shown(&hosts[*host as usize]);
            (number(index), format!("{host}/{disk}"))
        })
        .collect();
    Ok(())
}

/// Returns true if a line looks like the first of a file in this format: headings, or seven columns
/// with whole numbers in the first and the third. The other columns are not checked.
pub(crate) fn recognise(line: &[u8]) -> bool {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    let is_number = |text: &[u8]| !text.is_empty() && number::is_integer(text);
    is_heading(line) || columns.len() == 7 && is_number(columns[0]) && is_number(columns[2])
}

fn is_heading(line: &[u8]) -> bool {
    line.get(..10)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"timestamp,"))
        && memchr::memchr_iter(b',', line).count() == 6
}

/// Reads the request of a line. The device is the number of the volume in `volumes`. Also returns true
/// if the request covers whole sectors.
#[inline]
fn parse(line: &[u8], volumes: &mut Volumes) -> Result<(TraceRequest, bool), Box<FieldError>> {
    let mut columns = Columns::new(line, b',');
    let mut next = || (columns.next()).map(|column| column.unwrap_or(Field::end(line)));
    let arrival = next()?.date("Timestamp", TICK)?;
    let host = next()?;
    let disk = next()?.unsigned_32("DiskNumber")?;
    let op = next()?;
    let op = if op.text.eq_ignore_ascii_case(b"read") {
        Op::Read
    } else if op.text.eq_ignore_ascii_case(b"write") {
        Op::Write
    } else {
        return Err(op.error("Type", "Read or Write"));
    };
    let offset = next()?;
    let size = next()?.unsigned("Size")?;
    let (extent, aligned) = reader::extent_of_bytes(offset.unsigned("Offset")?, size)
        .ok_or_else(|| offset.error("Offset with Size", reader::EXTENT_ALLOWED))?;
    let response = next()?;
    let completion = arrival
        .checked_add(response.time("ResponseTime", TICK)?)
        .filter(|nanos| *nanos < u64::MAX)
        .ok_or_else(|| response.error("ResponseTime", "a time before the year 2185"))?;
    if let Some(further) = columns.next()? {
        return Err(further.error("a further column", "the end of the line, after 7 columns"));
    }
    Ok((
        TraceRequest {
            arrival: Some(Time::from_nanos(arrival)),
            completion: Some(Time::from_nanos(completion)),
            device: volumes.number(host.text, disk),
            op,
            extent,
            process: None,
            flags: Flags::NONE,
        },
        aligned,
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Backwards, Format, ReadOptions, Trace, TraceError};
    use headtime_sched::Op;
    use headtime_units::{Extent, Nanos, Time};

    fn read(text: &str) -> Result<Trace, TraceError> {
        Trace::read("m.csv", text.as_bytes(), &ReadOptions::default())
    }

    const TEXT: &str = "\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,2822144000,4096,0
128166372016000000,hm,0,Read,512,512,100
";

    #[test]
    fn dates_become_spans_and_response_times_completions() {
        let trace = read(TEXT).unwrap();
        assert_eq!(trace.notes.format, Format::Msr);
        assert_eq!(
            trace.notes.base,
            Nanos::from_nanos(12_816_637_200_306_162_900)
        );
        assert_eq!(trace.notes.out_of_order, 1);
        let first = trace.requests[0];
        assert_eq!(first.arrival, Some(Time::ZERO));
        assert_eq!(first.completion, Some(Time::from_nanos(41_300)));
        assert_eq!((first.device, first.op), (1, Op::Read));
        assert_eq!(first.extent, Extent::at(383_496_192 / 512, 64));
        assert_eq!(
            trace.requests[1].arrival,
            Some(Time::from_nanos(1_293_837_100))
        );
        assert_eq!(trace.requests[2].extent, Extent::at(2_822_144_000 / 512, 8));
        assert_eq!(trace.devices(), [0, 1]);
        assert_eq!(trace.device_name(0), Some("hm/0"));
        assert_eq!(trace.find_device("hm/1"), Some(1));
    }

    #[test]
    fn volumes_of_several_hosts_are_numbered() {
        let text = TEXT.replace("hm,0", "prn,1");
        let trace = read(&text).unwrap();
        assert_eq!(trace.devices(), [0, 1]);
        assert_eq!(trace.device_name(0), Some("hm/1"));
        assert_eq!(trace.device_name(1), Some("prn/1"));
    }

    #[test]
    fn headings_bytes_that_are_no_sectors_and_no_bytes() {
        let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n\
                    128166372003061629,hm,1,Read,1000,100,413\r\n\
                    128166372003061630,hm,1,Read,1024,0,413\r\n";
        let trace = read(text).unwrap();
        assert_eq!(trace.requests.len(), 1);
        assert_eq!(trace.requests[0].extent, Extent::at(1, 2));
        let notes = &trace.notes;
        assert_eq!(
            (notes.unaligned, notes.zero_length, notes.lines_ignored),
            (1, 1, 1)
        );
    }

    #[test]
    fn errors_name_the_column() {
        for (line, message) in [
            (
                "128166372003061629,hm,1,Reed,0,512,1",
                "line 2, column 25: Type is `Reed`; allowed is Read or Write",
            ),
            (
                "128166372003061629,hm,1,Read,0,512",
                "line 2, column 35: ResponseTime is `(nothing, the line ends)`; allowed is a decimal number such as 12, 12.5 or 1.25e3",
            ),
            (
                "128166372003061629,hm,1,Read,0,512,1,1",
                "line 2, column 38: a further column is `1`; allowed is the end of the line, after 7 columns",
            ),
            (
                "-5,hm,1,Read,0,512,1",
                "line 2, column 1: Timestamp is `-5`; allowed is a number of 0 or more",
            ),
            (
                "99999999999999999999,hm,1,Read,0,512,1",
                "line 2, column 1: Timestamp is `99999999999999999999`; allowed is a time of at most 292 years (584 for a date)",
            ),
            (
                "128166372003061629,hm,1,Read,18446744073709551615,512,1",
                "line 2, column 30: Offset with Size is `18446744073709551615`; allowed is a run of at most 4294967295 sectors of 512 bytes that ends at sector 36028797018963968 or before",
            ),
            (
                "1,hm,1,Read,0,512,1",
                "line 2: the request arrives at 100ns, more than 292 years from another one at 12816637200.3061629s; allowed are arrivals nearer to each other",
            ),
        ] {
            let text = format!("128166372003061629,hm,1,Read,0,512,1\n{line}\n");
            assert_eq!(
                read(&text).unwrap_err().to_string(),
                format!("m.csv: {message}")
            );
        }
    }

    #[test]
    fn arrivals_out_of_order_are_refused_if_asked() {
        let options = ReadOptions {
            backwards: Backwards::Refuse,
            ..ReadOptions::default()
        };
        let error = Trace::read("m.csv", TEXT.as_bytes(), &options).unwrap_err();
        assert!(matches!(error, TraceError::Backwards { line: 3, .. }));
    }
}
