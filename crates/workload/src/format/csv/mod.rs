//! Separated columns that the caller describes, or that have the headings of this program.

mod columns;
mod layout;
mod parse;
mod presets;

pub use columns::{ColumnsError, CsvColumns};
use layout::{Layout, Seen};
use parse::{BEFORE_ZERO, parse};
pub use presets::{PRESETS, Preset};

use super::blkparse::block_event;
use crate::error::{FieldError, TraceError, shown};
use crate::input::Input;
use crate::lines::Lines;
use crate::pairing::Pairing;
use crate::reader::{self, ReadOptions, Reader};
use crate::trace::Format;
use crate::write::{CSV_HEADINGS, CSV_NAME_HEADING};
use std::io::Read;

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
    reader.subtract_date(if counts_back { BEFORE_ZERO } else { 0 })?;
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

impl Preset {
    /// Descriptions of the preset's columns.
    fn columns(&self) -> Vec<CsvColumns> {
        let parse = |text: &&str| text.parse().expect("a test reads each of them");
        self.layouts.iter().map(parse).collect()
    }
}

/// Returns true if a line has a request by a description, and false if the line is to be ignored.
#[cold]
#[inline(never)]
fn fits(line: &[u8], layout: &Layout<'_>) -> Result<bool, Box<FieldError>> {
    Ok(parse(line, layout, &mut Seen::default())?.is_some())
}

#[cfg(test)]
mod tests;
