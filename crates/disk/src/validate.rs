//! Compares the model with a real drive.
//!
//! A validation trace lists requests that a real drive served one at a time, each with its measured
//! response time and the pause before the next. The model runs it *closed*: it issues each request
//! a pause after the modelled completion of the request before, with the pause from the trace.
//! Single requests cannot be compared, since the rotation phase at which each was issued is
//! unknown. The two distributions can: sort both and pair them rank by rank. The root mean square
//! of the differences is the *demerit* (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer, March 1994).

use crate::drive::{Command, Drive};
use crate::profile::{NoiseSpec, Profile, ProfileError};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};

/// Bytes in a block of a validation trace.
const BLOCK_BYTES: u64 = 512;

/// A measured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Read or write.
    pub op: Op,
    /// The sectors of the request, in blocks of 512 bytes.
    pub blocks: Extent,
    /// Response time of the real drive.
    pub response: Nanos,
    /// Pause from the completion to the next request.
    pub gap: Nanos,
    /// Line in the trace, from 1.
    pub line: usize,
}

/// Why a validation trace cannot be read, or does not fit the drive.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line does not have the form of a request.
    #[error("{file}, line {line}: {what}; a line is `R|W action block count response-us gap-us`")]
    Line {
        /// The name of the trace.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The fault of the line.
        what: String,
    },
    /// There is no request.
    #[error("{file}: no requests; a line is `R|W action block count response-us gap-us`")]
    Empty {
        /// The name of the trace.
        file: String,
    },
    /// A request does not fit the drive.
    #[error("{file}, line {line}: blocks {blocks} (of 512 bytes) {what}")]
    Unfit {
        /// The name of the trace.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Request in blocks of 512 bytes.
        blocks: Extent,
        /// The reason.
        what: String,
    },
    /// The requests take longer than can be modelled.
    #[error(
        "{file}, line {line}: what stands before takes more than 292 years, and no model goes so far"
    )]
    TooLate {
        /// The name of the trace.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// The profile without its noise does not pass its checks.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Agreement of a model with a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Requests compared.
    pub requests: usize,
    /// Mean measured response time, ms.
    pub measured_ms: f64,
    /// Mean modelled response time, ms.
    pub modelled_ms: f64,
    /// Root mean square distance of the distributions, ms.
    pub demerit_ms: f64,
    /// The modelled response times, in the order of the trace.
    pub modelled: Vec<Nanos>,
}

/// Reads a validation trace; `file` is the name that errors give.
///
/// Each line has one request: `R` or `W`, the assumed action of the drive's buffer (not used), the
/// first block, the number of blocks, the measured response time and the pause afterwards. Both
/// times are in microseconds, up to a billion. Empty lines, and lines that begin with `#`, are
/// skipped.
///
/// # Errors
///
/// The first line of another form, or a trace without requests.
pub fn parse(file: &str, text: &str) -> Result<Vec<Measured>, TraceError> {
    let mut requests = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let line = index + 1;
        let request = parse_line(trimmed, line).map_err(|what| TraceError::Line {
            file: file.to_owned(),
            line,
            what,
        })?;
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(TraceError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(requests)
}

fn parse_line(text: &str, line: usize) -> Result<Measured, String> {
    let mut fields = text.split_whitespace();
    let mut field = |name: &str| {
        fields
            .next()
            .ok_or_else(|| format!("the {name} is missing"))
    };
    let op = match field("operation")? {
        "R" => Op::Read,
        "W" => Op::Write,
        other => return Err(format!("operation `{}` is neither R nor W", shown(other))),
    };
    field("buffer action")?;
    let block = whole("first block", field("first block")?, 0, 1 << 55)?;
    let most = Sectors::REQUEST_MAX.get();
    let count = whole("block count", field("block count")?, 1, most)?;
    let response = micros("response time", field("response time")?)?;
    let gap = micros("gap", field("gap")?)?;
    if let Some(more) = fields.next() {
        return Err(format!("`{}` is one field too many", shown(more)));
    }
    Ok(Measured {
        op,
        blocks: Extent::at(block, count),
        response,
        gap,
        line,
    })
}

/// The beginning of a field, for an error.
fn shown(field: &str) -> String {
    field.chars().take(40).collect()
}

fn whole(name: &str, field: &str, least: u64, most: u64) -> Result<u64, String> {
    field
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            format!(
                "{name} `{}` is not a whole number {least} to {most}",
                shown(field)
            )
        })
}

fn micros(name: &str, field: &str) -> Result<Nanos, String> {
    field
        .parse()
        .ok()
        .filter(|number| (0.0..=1e9).contains(number))
        .map(|micros: f64| Nanos::from_millis_f64(micros / 1e3))
        .ok_or_else(|| {
            format!(
                "{name} `{}` is not a number of microseconds 0 to 1000000000",
                shown(field)
            )
        })
}

/// Runs a trace against a drive and compares; `file` is the name that errors give.
///
/// The heads start over cylinder 0 at angle 0 at time zero, with an empty buffer and no noise, and
/// every request counts.
///
/// # Errors
///
/// A request that is not on the drive or not on whole sectors, or that comes later than [`Time::LATEST`].
pub fn validate(
    profile: &Profile,
    file: &str,
    trace: &[Measured],
) -> Result<Validation, TraceError> {
    if trace.is_empty() {
        return Err(TraceError::Empty {
            file: file.to_owned(),
        });
    }
    let profile = profile.with(|spec| spec.noise = NoiseSpec::default())?;
    let mut drive = Drive::new(&profile, 0);
    let sector_bytes = u64::from(profile.geometry.sector_bytes);
    let mut now = Time::ZERO;
    let mut modelled = Vec::with_capacity(trace.len());
    for (tag, request) in (0..).zip(trace) {
        if now > Time::LATEST {
            return Err(TraceError::TooLate {
                file: file.to_owned(),
                line: request.line,
            });
        }
        let extent = on_drive(request, sector_bytes, drive.capacity().get()).map_err(|what| {
            TraceError::Unfit {
                file: file.to_owned(),
                line: request.line,
                blocks: request.blocks,
                what,
            }
        })?;
        drive.submit(
            now,
            Command {
                tag,
                op: request.op,
                extent,
                fua: false,
                high: false,
            },
        );
        let at = loop {
            let next = drive.next_event().expect("a command completes");
            if let Some(completion) = drive.poll(next) {
                break completion.at;
            }
        };
        modelled.push(at - now);
        now = at + request.gap;
    }
    let measured: Vec<Nanos> = trace.iter().map(|request| request.response).collect();
    Ok(Validation {
        requests: trace.len(),
        measured_ms: mean_ms(&measured),
        modelled_ms: mean_ms(&modelled),
        demerit_ms: demerit_ms(&measured, &modelled),
        modelled,
    })
}

/// The sectors of a request, with `sector_bytes` bytes each.
fn on_drive(request: &Measured, sector_bytes: u64, capacity: u64) -> Result<Extent, String> {
    let bytes = [request.blocks.start.get(), request.blocks.len.get()]
        .map(|blocks| u128::from(blocks) * u128::from(BLOCK_BYTES));
    let sector = u128::from(sector_bytes);
    if bytes.iter().any(|bytes| bytes % sector != 0) {
        return Err(format!("are not whole sectors of {sector_bytes} bytes"));
    }
    let [start, len] = bytes.map(|bytes| bytes / sector);
    if start + len > u128::from(capacity) {
        let blocks = u128::from(capacity) * sector / u128::from(BLOCK_BYTES);
        return Err(format!(
            "reach past the end of the drive, which has {blocks}"
        ));
    }
    // Less than the capacity.
    Ok(Extent::at(start as u64, len as u64))
}

/// Mean of response times, ms. NaN without any.
pub fn mean_ms(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.as_millis_f64()).sum::<f64>() / times.len() as f64
}

/// Root mean square of the differences between two sets of response times, paired by rank, ms.
///
/// # Panics
///
/// If they are not equally many, or none.
pub fn demerit_ms(measured: &[Nanos], modelled: &[Nanos]) -> f64 {
    assert_eq!(
        measured.len(),
        modelled.len(),
        "as many measured as modelled times"
    );
    assert!(!measured.is_empty(), "something to compare");
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    let squares: f64 = sorted(measured)
        .iter()
        .zip(sorted(modelled))
        .map(|(a, b)| {
            let difference = a.as_millis_f64() - b.as_millis_f64();
            difference * difference
        })
        .sum();
    libm::sqrt(squares / measured.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_validation_trace_become_requests() {
        let trace = parse(
            "t",
            "R Hit 10 4 13661.0 26658.00\n\n# x\nW Miss 0 1 1e3 0\n",
        )
        .unwrap();
        assert_eq!(trace.len(), 2);
        assert_eq!(trace[0].blocks, Extent::at(10, 4));
        assert_eq!(trace[0].response, Nanos::from_micros(13_661));
        assert_eq!(trace[0].gap, Nanos::from_micros(26_658));
        assert_eq!((trace[1].op, trace[1].line), (Op::Write, 4));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, what) in [
            ("X Hit 1 1 1 1", "operation `X` is neither R nor W"),
            ("R Hit", "the first block is missing"),
            (
                "R Hit -1 1 1 1",
                "first block `-1` is not a whole number 0 to 36028797018963968",
            ),
            (
                "R Hit 1 0 1 1",
                "block count `0` is not a whole number 1 to 8388608",
            ),
            (
                "R Hit 1 1 nan 1",
                "response time `nan` is not a number of microseconds 0 to 1000000000",
            ),
            (
                "R Hit 1 1 1 -2",
                "gap `-2` is not a number of microseconds 0 to 1000000000",
            ),
            ("R Hit 1 1 1", "the gap is missing"),
            ("R Hit 1 1 1 1 7", "`7` is one field too many"),
        ] {
            let text = format!("R Hit 1 1 1 1\n{line}\n");
            let error = parse("t", &text).unwrap_err();
            let TraceError::Line {
                line: 2,
                what: said,
                ..
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(said, what);
        }
        assert_eq!(
            parse("t", "\n").unwrap_err(),
            TraceError::Empty { file: "t".into() }
        );
    }

    #[test]
    fn truncated_lines_are_errors_not_panics() {
        let text = "W Doub 1194877    15     17221.000     21894.380";
        for cut in 0..text.len() - 1 {
            // Some beginnings are whole lines with shorter numbers.
            let _ = parse("t", &text[..cut]);
        }
        assert!(parse("t", "W Doub 1194877    15     17221.000").is_err());
    }

    /// Ten million lines with the longest gap that a line may have come to this.
    #[test]
    fn a_trace_of_more_years_than_there_are_is_an_error_at_the_first_line_beyond() {
        let profile = crate::profile::by_name("wd5000aaks").expect("shipped");
        let run = |requests: usize| {
            let request = |line| Measured {
                op: Op::Read,
                blocks: Extent::at(8, 8),
                response: Nanos::from_millis(1),
                gap: Nanos::LONGEST,
                line,
            };
            let trace: Vec<Measured> = (1..=requests).map(request).collect();
            validate(&profile, "t", &trace).map(|report| report.requests)
        };
        assert_eq!(run(30), Ok(30));
        let error = run(60).unwrap_err();
        assert_eq!(
            error.to_string(),
            "t, line 31: what stands before takes more than 292 years, and no model goes so far"
        );
    }

    #[test]
    fn demerit_pairs_by_rank() {
        let ms = Nanos::from_millis;
        let measured = [ms(3), ms(1), ms(2)];
        assert_eq!(demerit_ms(&measured, &[ms(2), ms(3), ms(1)]), 0.0);
        assert_eq!(demerit_ms(&measured, &[ms(4), ms(3), ms(2)]), 1.0);
    }
}
