//! Binary records of blktrace as the kernel writes them: one file for each processor.
//!
//! A record has 48 bytes (linux: include/uapi/linux/blktrace_api.h, version 7) in the byte order of the
//! recording machine. The fields are: magic, sequence, time in ns, sector, bytes, action, process,
//! device, processor, error, length of the data behind the record. The upper half of the action is the
//! kind of request, the lower half the event. Events have the same meaning as in
//! [blkparse](super::blkparse).
//!
//! Each file is in order of time. The events of one request may be in the files of several processors.
//! So the reader reads all given files together, the earliest record first.
//!
//! The kernel writes the name of a process once, in a record of its own.

use super::blkparse::{block_event, device_names};
use super::rwbs;
use crate::TraceRequest;
use crate::error::TraceError;
use crate::input::Input;
use crate::lines::Lines;
use crate::number::TIME_MAX;
use crate::numbered::Numbered;
use crate::pairing::{BlockAction, BlockEvent, Level, Pairing};
use crate::reader::{self, Reader, line_error};
use headtime_units::{Extent, Time};
use std::io::Read;

/// Magic number, with the version in its lowest byte.
const MAGIC: u32 = 0x6561_7407;
const VERSION: u32 = 0xff;
const RECORD: usize = 48;

// Kinds of requests.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
/// A command without sectors.
const COMMAND: u32 = 1 << 9;
/// A message from the kernel, or the name of a process.
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// Returns true if a file of any version begins with these bytes.
pub(crate) fn recognise(start: &[u8]) -> bool {
    let word = start.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| is_magic(word) || is_magic(word.swap_bytes()))
}

fn is_magic(word: u32) -> bool {
    word & !VERSION == MAGIC & !VERSION
}

/// A file, and the position of the reader in that file.
pub(crate) struct Records<R> {
    pub file: String,
    pub lines: Lines<Input<R>>,
    /// Bytes before the next record.
    offset: u64,
    next: Option<BlockEvent>,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(file: String, lines: Lines<Input<R>>) -> Records<R> {
        Records {
            file,
            lines,
            offset: 0,
            next: None,
        }
    }

    /// Moves to the next event of a request.
    fn advance(
        &mut self,
        devices: &mut Numbered<(u32, u32)>,
        reader: &mut Reader<'_>,
    ) -> Result<(), TraceError> {
        self.next = loop {
            let at = self.offset;
            let record = match self.lines.bytes(RECORD) {
                Ok([]) => break None,
                Ok(bytes) => bytes.first_chunk().copied(),
                Err(error) => return Err(line_error(&self.file, self.lines.input(), error)),
            };
            reader.notes.lines += 1;
            let odd = |problem: &str| TraceError::Record {
                file: self.file.clone(),
                offset: at,
                problem: problem.to_owned(),
            };
            let Some(record): Option<[u8; RECORD]> = record else {
                reader.refuse(odd("the file ends within it"))?;
                break None;
            };
            let Some(fields) = EventFields::new(&record) else {
                // The start of the next record is unknown.
                reader.refuse(odd(
                    "it does not begin with the magic of blktrace, version 7; the file is not read further",
                ))?;
                break None;
            };
            let more = usize::from(fields.more);
            match self.lines.bytes(more) {
                Ok(bytes) if bytes.len() < more => {
                    reader.refuse(odd("the file ends within what belongs to it"))?;
                }
                Ok(name) if fields.is_name() => {
                    let end = memchr::memchr(0, name).unwrap_or(name.len());
                    reader.process_names.saw(fields.process, &name[..end]);
                }
                Ok(_) => {}
                Err(error) => return Err(line_error(&self.file, self.lines.input(), error)),
            }
            self.offset += (RECORD + more) as u64;
            match fields.event(devices) {
                Ok(Some(event)) => {
                    let complete = matches!(event.action, BlockAction::Complete(_));
                    reader.notes.failed += u64::from(complete && fields.failed);
                    break Some(event);
                }
                Ok(None) => reader.notes.lines_ignored += 1,
                Err(problem) => reader.refuse(odd(problem))?,
            }
        };
        Ok(())
    }
}

/// Fields of a record.
struct EventFields {
    time: u64,
    sector: u64,
    bytes: u32,
    /// Event, without the bit that marks a control group behind the record.
    action: u32,
    kind: u32,
    process: u32,
    device: (u32, u32),
    failed: bool,
    /// Bytes behind the record that belong to it.
    more: u16,
}

impl EventFields {
    fn new(record: &[u8; RECORD]) -> Option<EventFields> {
        let raw = |at: usize| record[at..].first_chunk::<4>().expect("within the record");
        let swapped = match u32::from_le_bytes(*raw(0)) {
            MAGIC => false,
            word if word.swap_bytes() == MAGIC => true,
            _ => return None,
        };
        let word = |at: usize| {
            let little = u32::from_le_bytes(*raw(at));
            if swapped { little.swap_bytes() } else { little }
        };
        let long = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            if swapped {
                first << 32 | second
            } else {
                second << 32 | first
            }
        };
        let short = |at: usize| {
            let little = u16::from_le_bytes([record[at], record[at + 1]]);
            if swapped { little.swap_bytes() } else { little }
        };
        let (action, device) = (word(28), word(36));
        Some(EventFields {
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action: action & 0xff,
            kind: action >> 16,
            process: word(32),
            device: (device >> 20, device & 0xf_ffff),
            failed: short(44) != 0,
            more: short(46),
        })
    }

    /// Returns true if the name of the process stands behind the record (`BLK_TN_PROCESS`).
    fn is_name(&self) -> bool {
        self.kind & NOTIFY != 0 && self.action == 0
    }

    fn event(
        &self,
        devices: &mut Numbered<(u32, u32)>,
    ) -> Result<Option<BlockEvent>, &'static str> {
        if self.kind & (NOTIFY | COMMAND) != 0 {
            return Ok(None);
        }
        let action = match self.action {
            1 => BlockAction::Queue,
            6 => BlockAction::Requeue,
            7 => BlockAction::Issue,
            8 => BlockAction::Complete(Level::Both),
            12 => BlockAction::Insert,
            _ => return Ok(None),
        };
        let has = |kind: u32| self.kind & kind != 0;
        let mut letters = Vec::with_capacity(4);
        letters.extend(has(FLUSH).then_some(b'F'));
        letters.push(match () {
            () if has(DISCARD) => b'D',
            () if has(WRITE) => b'W',
            () if self.bytes > 0 => b'R',
            () => b'N',
        });
        letters.extend(has(FUA).then_some(b'F'));
        letters.extend(has(SYNC).then_some(b'S'));
        let Some((op, flags)) = rwbs::read(&letters) else {
            return Ok(None);
        };
        if self.time > TIME_MAX {
            return Err("its time is over 292 years");
        }
        let sectors = u64::from(self.bytes).div_ceil(512);
        let extent = match reader::extent(self.sector, sectors) {
            None if sectors == 0 => Extent::default(),
            extent => extent.ok_or("its sectors lie beyond 36028797018963968")?,
        };
        let device = self.device;
        let request = TraceRequest {
            arrival: Some(Time::from_nanos(self.time)),
            completion: None,
            device: devices.number(&device, || device),
            op,
            extent,
            process: Some(self.process),
            flags,
        };
        Ok(Some(block_event(action, request)))
    }
}

pub(crate) fn read<R: Read>(
    mut files: Vec<Records<R>>,
    reader: &mut Reader<'_>,
) -> Result<(), TraceError> {
    let mut devices = Numbered::default();
    let mut pairing = Pairing::new(reader.options.arrival_event);
    for file in &mut files {
        file.advance(&mut devices, reader)?;
    }
    let time =
        |records: &&mut Records<R>| records.next.as_ref().and_then(|next| next.request.arrival);
    let mut number = 0;
    while let Some(file) = files
        .iter_mut()
        .filter(|records| records.next.is_some())
        .min_by_key(time)
    {
        number += 1;
        if let Some(event) = &file.next {
            pairing.event(number, event);
        }
        file.advance(&mut devices, reader)?;
    }
    reader.take(pairing.finish())?;
    reader.device_names = device_names(devices);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Format, Notes, ReadOptions, Trace, TraceError, TraceRequest};
    use headtime_sched::{Flags, Op};
    use headtime_units::{Extent, Time};

    /// Makes a record of device 8,16 and process 7 with five bytes behind the record.
    fn record(big: bool, time: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
        let mut record = Vec::new();
        let mut put = |value: u64, len: usize| {
            let little = value.to_le_bytes();
            let mut field = little[..len].to_vec();
            if big {
                field.reverse();
            }
            record.extend(field);
        };
        put(0x6561_7407, 4);
        put(1, 4);
        put(time, 8);
        put(sector, 8);
        put(bytes.into(), 4);
        put(action.into(), 4);
        put(7, 4);
        put(8 << 20 | 16, 4);
        put(0, 4);
        put(0, 2);
        put(5, 2);
        record.extend(b"cfq 1");
        record
    }

    fn read(bytes: &[u8], lenient: bool) -> Result<Trace, TraceError> {
        let options = ReadOptions {
            lenient,
            ..ReadOptions::default()
        };
        Trace::read("t.blktrace.0", bytes, &options)
    }

    /// Records of a queued write, a message, the write's issue and completion, and a flush.
    fn sample(big: bool) -> Vec<u8> {
        const SYNC_WRITE: u32 = 0xa << 16;
        [
            record(big, 1_000, 5_000, 4096, SYNC_WRITE | 1),
            record(big, 1_100, 0, 0, 0x400 << 16 | 2),
            record(big, 1_200, 5_000, 4096, SYNC_WRITE | 0x100 | 7),
            record(big, 9_000, 5_000, 4096, SYNC_WRITE | 8),
            record(big, 9_500, 0, 0, 0xe << 16 | 1),
            record(big, 9_600, u64::MAX, 0, 0x4 << 16 | 7),
            record(big, 9_900, 0, 0, 0xa << 16 | 8),
        ]
        .concat()
    }

    #[test]
    fn records_of_both_byte_orders_become_requests() {
        let mut read_of_each = Vec::new();
        for big in [false, true] {
            let trace = read(&sample(big), false).unwrap();
            let Notes {
                format,
                lines,
                lines_ignored,
                ..
            } = trace.notes;
            assert_eq!((format, lines, lines_ignored), (Format::Blktrace, 7, 1));
            assert_eq!(trace.device_name(0), Some("8,16"));
            read_of_each.push(trace.requests);
        }
        let nanos = |nanos: u64| Some(Time::from_nanos(nanos));
        let write = TraceRequest {
            arrival: nanos(1_000),
            completion: nanos(9_000),
            device: 0,
            op: Op::Write,
            extent: Extent::at(5_000, 8),
            process: Some(7),
            flags: Flags::SYNC,
        };
        let flush = TraceRequest {
            arrival: nanos(9_500),
            completion: nanos(9_900),
            op: Op::Flush,
            extent: Extent::default(),
            flags: Flags::NONE,
            ..write
        };
        assert_eq!(read_of_each[0], [write, flush]);
        assert_eq!(read_of_each[0], read_of_each[1]);
    }

    #[test]
    fn processes_have_the_names_that_the_kernel_notes() {
        for big in [false, true] {
            let mut bytes = Vec::new();
            for name in ["cfq 1", "sh\0\0\0", "d\x1bd\0x", "\0\0\0\0\0"] {
                let mut note = record(big, 0, 0, 0, 0x400 << 16);
                note.truncate(48);
                note.extend(name.as_bytes());
                bytes.extend(note);
            }
            bytes.extend(sample(big));
            let trace = read(&bytes, false).unwrap();
            // Messages, which are no names, follow in the sample.
            assert_eq!(trace.process_name(7), Some("d\\u{1b}d"));
            assert_eq!(trace.notes.lines_ignored, 5);
        }
    }

    #[test]
    fn a_record_that_is_cut_off_or_no_record_is_an_error_and_may_be_passed_over() {
        let sample = sample(false);
        let cut = &sample[..sample.len() - 7];
        let error = read(cut, false).unwrap_err().to_string();
        let cut_says = "t.blktrace.0: record at byte 318: the file ends within it";
        assert_eq!(error, cut_says);
        let trace = read(cut, true).unwrap();
        assert_eq!(trace.requests.len(), 2);
        assert_eq!(
            (trace.notes.odd.count, &trace.notes.odd.first[0][..]),
            (1, cut_says)
        );
        let mut garbled = sample.clone();
        garbled[53 * 4] = 6;
        let error = read(&garbled, false).unwrap_err().to_string();
        assert!(
            error.starts_with("t.blktrace.0: record at byte 212: it does not begin"),
            "{error}"
        );
        assert_eq!(read(&garbled, true).unwrap().requests.len(), 1);
    }
}
