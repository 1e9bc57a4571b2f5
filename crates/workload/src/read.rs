//! Reads a trace of any format.

use crate::error::TraceError;
use crate::format;
use crate::input::Input;
use crate::lines::Lines;
use crate::reader::{ReadOptions, Reader, line_error};
use crate::{Format, Notes, Trace};
use std::fs::File;
use std::io::Read;
use std::path::Path;

impl Trace {
    /// Reads a file, decompressing it if it is compressed.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or read, if its format is unknown, at the first line that says
    /// something that is not allowed, and if it holds no request.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
        let file = path.display().to_string();
        let opened = File::open(path).map_err(|source| TraceError::Open {
            file: file.clone(),
            source,
        })?;
        Trace::read(&file, opened, options)
    }

    /// Reads a stream, decompressing it if it is compressed. `file` names it in errors. The reader
    /// is asked for 4 bytes first and then for large pieces, and needs no buffer of its own.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn read(file: &str, input: impl Read, options: &ReadOptions) -> Result<Trace, TraceError> {
        let input = Input::new(input).map_err(|source| TraceError::Read {
            file: file.to_owned(),
            offset: 0,
            source,
        })?;
        let mut lines = Lines::new(input);
        if let Err(error) = lines.skip(BYTE_ORDER_MARK) {
            return Err(line_error(file, lines.input(), error));
        }
        let mut reader = Reader {
            file,
            options,
            requests: Vec::new(),
            notes: Notes::new(file, Format::DiskSim),
            arrivals: None,
            device_names: Vec::new(),
        };
        reader.notes.format = match options.format {
            Some(format) => format,
            // Columns say that there are columns.
            None if options.columns.is_some() => Format::Csv,
            None => format::recognise(file, &mut lines)?,
        };
        reader.check_options()?;
        match reader.notes.format {
            Format::DiskSim => format::disksim::read(&mut lines, &mut reader)?,
            Format::Msr => format::msr::read(&mut lines, &mut reader)?,
            Format::Blkparse => format::blkparse::read(&mut lines, &mut reader)?,
            Format::Ftrace | Format::Perf => format::events::read(&mut lines, &mut reader)?,
            Format::Iolog => format::iolog::read(&mut lines, &mut reader)?,
            Format::Csv => format::csv::read(&mut lines, &mut reader)?,
        }
        reader.notes.lines = lines.number();
        reader.notes.compression = lines.input().compression();
        if reader.requests.is_empty() {
            return Err(TraceError::Empty {
                file: file.to_owned(),
                lines: reader.notes.lines,
                format: reader.notes.format,
                ignored: reader.notes.lines_ignored,
                zero_length: reader.notes.zero_length,
                unpaired: reader.notes.unpaired,
            });
        }
        reader.device_names.sort_unstable();
        let mut trace = Trace {
            requests: reader.requests,
            notes: reader.notes,
            device_names: reader.device_names,
        };
        trace.sort();
        Ok(trace)
    }
}

/// What some programs write before a text in UTF-8 (Unicode 16, section 23.8).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
