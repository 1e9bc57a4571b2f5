//! Reads a trace of any format.

use crate::error::TraceError;
use crate::format::{self, blktrace};
use crate::input::Input;
use crate::lines::Lines;
use crate::reader::{ReadOptions, Reader, line_error};
use crate::{Format, Scratch, Trace};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Lines of any input.
type AnyLines<'a> = Lines<Input<Box<dyn Read + 'a>>>;

/// An input whose format is known.
struct Opened<'a> {
    file: String,
    lines: AnyLines<'a>,
    format: Format,
    /// The first bytes of the file, if they decided the format.
    guessed: Option<Vec<u8>>,
}

impl Trace {
    /// Reads a file, decompressing it if it is compressed. `-` is the standard input.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or read, if its format is unknown, at the first line with a value
    /// that is not allowed, and if the file has no request.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
        Trace::open_all(&[path], options)
    }

    /// Reads several files as one trace, in order of arrival. All files of blktrace are read
    /// together, since one request may have events in several files.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`], and if some files have dates and others do not. If the content of a file
    /// decided its format, an error names that format.
    ///
    /// # Panics
    ///
    /// If there is no path.
    pub fn open_all(
        paths: &[impl AsRef<Path>],
        options: &ReadOptions,
    ) -> Result<Trace, TraceError> {
        Trace::open_long(paths, options, None)
    }

    /// As [`Trace::open_all`]. The requests of a long trace in one file go to a scratch file. Then
    /// [`Trace::requests`] is empty, and [`Trace::iter`] returns them.
    ///
    /// # Errors
    ///
    /// As [`Trace::open_all`], and if the scratch file cannot be written.
    ///
    /// # Panics
    ///
    /// If there is no path.
    pub fn open_long(
        paths: &[impl AsRef<Path>],
        options: &ReadOptions,
        scratch: Option<Scratch>,
    ) -> Result<Trace, TraceError> {
        let scratch = scratch.filter(|_| paths.len() == 1);
        let mut records = Vec::new();
        let mut traces = Vec::new();
        let inputs = paths.iter().filter(|path| is_input(path.as_ref()));
        if inputs.count() > 1 {
            return Err(TraceError::InputTwice);
        }
        for path in paths {
            let path = path.as_ref();
            let (file, input): (_, Box<dyn Read>) = if is_input(path) {
                ("standard input".to_owned(), Box::new(io::stdin().lock()))
            } else {
                let file = path.display().to_string();
                let opened = File::open(path).map_err(|source| TraceError::Open {
                    file: file.clone(),
                    source,
                })?;
                (file, Box::new(opened))
            };
            let opened = Opened::new(file, input, options)?;
            if opened.format == Format::Blktrace {
                records.push(opened);
            } else {
                let (format, start) = (opened.format, opened.guessed.clone());
                let read = opened.read(options, scratch);
                traces.push(read.map_err(|error| guessed(error, format, start))?);
            }
        }
        if let Some(Opened { guessed: start, .. }) = records.first() {
            let start = start.clone();
            let read = read_records(records, options);
            traces.push(read.map_err(|error| guessed(error, Format::Blktrace, start))?);
        }
        let mut trace = if traces.len() == 1 {
            traces.remove(0)
        } else {
            Trace::merged(traces)?
        };
        trace.keep(options.part)?;
        Ok(trace)
    }

    /// Reads a stream, decompressing it if it is compressed. `file` names the stream in errors. The
    /// first read asks for 4 bytes, later reads for large pieces, so `input` needs no buffer.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn read(file: &str, input: impl Read, options: &ReadOptions) -> Result<Trace, TraceError> {
        let opened = Opened::new(file.to_owned(), Box::new(input), options)?;
        let mut trace = match opened.format {
            Format::Blktrace => read_records(vec![opened], options)?,
            _ => opened.read(options, None)?,
        };
        trace.keep(options.part)?;
        Ok(trace)
    }
}

impl<'a> Opened<'a> {
    fn new(
        file: String,
        input: Box<dyn Read + 'a>,
        options: &ReadOptions,
    ) -> Result<Opened<'a>, TraceError> {
        let input = Input::new(input).map_err(|source| TraceError::Read {
            file: file.clone(),
            offset: 0,
            source,
        })?;
        let mut lines = Lines::new(input);
        if let Err(error) = lines.skip(BYTE_ORDER_MARK) {
            return Err(line_error(&file, lines.input(), error));
        }
        let (format, guessed) = match options.format {
            Some(format) => (format, None),
            // A description of columns implies the format CSV.
            None if options.columns.is_some() => (Format::Csv, None),
            None => {
                let sample = match lines.sample() {
                    Ok(sample) => sample.to_vec(),
                    Err(error) => return Err(line_error(&file, lines.input(), error)),
                };
                let format = format::recognise(&file, &sample, options.lenient)?;
                (format, Some(sample))
            }
        };
        Ok(Opened {
            file,
            lines,
            format,
            guessed,
        })
    }

    fn read(
        mut self,
        options: &ReadOptions,
        scratch: Option<Scratch>,
    ) -> Result<Trace, TraceError> {
        let mut reader = Reader::new(&self.file, self.format, options).with_scratch(scratch);
        reader.check_options()?;
        let lines = &mut self.lines;
        match self.format {
            Format::DiskSim => format::disksim::read(lines, &mut reader)?,
            Format::Msr => format::msr::read(lines, &mut reader)?,
            Format::Blkparse => format::blkparse::read(lines, &mut reader)?,
            Format::Ftrace | Format::Perf => format::events::read(lines, &mut reader)?,
            Format::Iolog => format::iolog::read(lines, &mut reader)?,
            Format::Csv | Format::Preset(_) => format::csv::read(lines, &mut reader)?,
            Format::Blktrace => unreachable!("records are read together"),
        }
        reader.notes.lines = lines.number();
        reader.notes.compression = lines.input().compression();
        reader.finish()
    }
}

/// Returns true if a path stands for the standard input.
fn is_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads files of blktrace, which together form one trace.
fn read_records(files: Vec<Opened<'_>>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let names: Vec<&str> = files.iter().map(|opened| opened.file.as_str()).collect();
    let names = names.join(", ");
    let mut reader = Reader::new(&names, Format::Blktrace, options);
    reader.check_options()?;
    reader.notes.compression = files[0].lines.input().compression();
    let files = files.into_iter();
    let records = files.map(|opened| blktrace::Records::new(opened.file, opened.lines));
    blktrace::read(records.collect(), &mut reader)?;
    reader.finish()
}

/// Adds the format that was guessed from the `start` of a file to an error, since the guess may be
/// wrong.
fn guessed(error: TraceError, format: Format, start: Option<Vec<u8>>) -> TraceError {
    let of_the_system = matches!(
        error,
        TraceError::Open { .. }
            | TraceError::Read { .. }
            | TraceError::Compressed { .. }
            | TraceError::Scratch { .. }
    );
    match start {
        Some(start) if !of_the_system => TraceError::Guessed {
            error: Box::new(error),
            format,
            fits: format::fitting(&start),
        },
        _ => error,
    }
}

/// Byte order mark that some programs write before a text in UTF-8 (Unicode 16, section 23.8).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
