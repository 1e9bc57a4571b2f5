//! `headtime drive new`

use crate::args::{New, Rate, SectorName};
use crate::commands::context::Context;
use headtime_disk::{Capacity, Datasheet, SheetError};
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::str::FromStr;

/// A value of a datasheet.
struct Item {
    flag: &'static str,
    what: &'static str,
    example: &'static str,
}

impl Item {
    const fn new(flag: &'static str, what: &'static str, example: &'static str) -> Item {
        Item {
            flag,
            what,
            example,
        }
    }
}

const CAPACITY: Item = Item::new("--capacity", "capacity as it is sold", "18TB");
const RPM: Item = Item::new("--rpm", "revolutions per minute", "7200");
const SEEK: Item = Item::new("--seek", "average seek, reading", "8.5ms");
const RATE: Item = Item::new("--rate", "sustained transfer rate, outer edge", "270MB/s");
const CACHE: Item = Item::new("--cache", "size of the buffer", "256MiB");

const SECTOR: Item = Item::new("--sector", "format of the sectors", "512e");
const SEEK_WRITE: Item = Item::new("--seek-write", "average seek, writing", "9.5ms");
const TRACK: Item = Item::new("--seek-track", "seek to the next track, reading", "0.8ms");
const TRACK_WRITE: Item = Item::new(
    "--seek-track-write",
    "seek to the next track, writing",
    "1ms",
);
const MAXIMUM: Item = Item::new("--seek-maximum", "maximum seek, reading", "16ms");
const MAXIMUM_WRITE: Item = Item::new("--seek-maximum-write", "maximum seek, writing", "17ms");
const RATE_INNER: Item = Item::new("--rate-inner", "sustained rate, inner edge", "130MB/s");
const HEADS: Item = Item::new("--heads", "surfaces with data", "18");
const QUEUE: Item = Item::new("--queue", "commands queued", "32");
const INTERFACE: Item = Item::new("--interface", "rate of the interface", "600MB/s");

/// Form for a sheet. Asks a user for values that no option gives, or notes them as missing.
struct Form<'a> {
    /// Source of answers and sink of questions, if a user can be asked.
    asked: Option<(&'a mut dyn BufRead, &'a mut dyn Write)>,
    missing: Vec<&'static Item>,
}

impl Form<'_> {
    /// Reads a value that a sheet must have.
    fn must<T: FromStr<Err: Display>>(
        &mut self,
        given: Option<T>,
        item: &'static Item,
    ) -> Result<Option<T>, Fault> {
        let value = self.get(given, item, true)?;
        if value.is_none() {
            self.missing.push(item);
        }
        Ok(value)
    }

    /// Reads a value that a sheet may have.
    fn may<T: FromStr<Err: Display>>(
        &mut self,
        given: Option<T>,
        item: &Item,
    ) -> Result<Option<T>, Fault> {
        self.get(given, item, false)
    }

    fn get<T: FromStr<Err: Display>>(
        &mut self,
        given: Option<T>,
        item: &Item,
        must: bool,
    ) -> Result<Option<T>, Fault> {
        let (None, Some((answers, questions))) = (&given, &mut self.asked) else {
            return Ok(given);
        };
        let Item {
            flag,
            what,
            example,
        } = item;
        let otherwise = if must {
            ""
        } else {
            "; Enter if it is not there"
        };
        loop {
            let asked = write!(questions, "{what} ({flag}), as in {example}{otherwise}: ");
            let asked = asked.and_then(|()| questions.flush());
            asked.map_err(|error| Fault::File(format!("standard error: cannot write: {error}")))?;
            let mut answer = String::new();
            let read = answers.read_line(&mut answer);
            let read =
                read.map_err(|error| Fault::File(format!("standard input: cannot read: {error}")))?;
            if read == 0 {
                return Err(Fault::Usage(format!("the answers ended before {flag}")));
            }
            match answer.trim() {
                "" if !must => return Ok(None),
                "" => continue,
                answer => match answer.parse() {
                    Ok(value) => return Ok(Some(value)),
                    // An error that cannot be written does not matter, since the question comes again.
                    Err(error) => drop(writeln!(questions, "  {error}")),
                },
            }
        }
    }

    fn what_is_missing(&self) -> Fault {
        let items = self.missing.iter().map(|item| {
            let Item {
                flag,
                what,
                example,
            } = item;
            format!("{flag} ({what}, as in {example})")
        });
        let items: Vec<String> = items.collect();
        Fault::Usage(format!("missing of the datasheet: {}", items.join(", ")))
    }
}

/// Lower-case name of a file without directory and extension, if a profile may have this name.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?.to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let has_letters = name.contains(|c: char| c.is_ascii_alphanumeric());
    (has_letters && name.chars().all(fits)).then_some(name)
}

/// Makes the sheet from given values and from answers.
fn sheet<'a>(
    args: &New,
    asked: Option<(&'a mut dyn BufRead, &'a mut dyn Write)>,
) -> Result<Datasheet, Fault> {
    let mut form = Form {
        asked,
        missing: Vec::new(),
    };
    let rate = |rate: Rate| rate.0;
    let capacity = match args.sectors {
        Some(sectors) => Some(Capacity::Sectors(sectors)),
        None => form.must(args.capacity, &CAPACITY)?.map(Capacity::Nominal),
    };
    let rpm = form.must(args.rpm, &RPM)?;
    let seek = form.must(args.seek, &SEEK)?;
    let outer = form.must(args.rate, &RATE)?.map(rate);
    let cache = form.must(args.cache, &CACHE)?;
    let heads = match args.platters {
        Some(platters) => Some(platters.saturating_mul(2)),
        None => form.may(args.heads, &HEADS)?,
    };
    let sector = form.may(args.sector, &SECTOR)?;
    let seek_write = form.may(args.seek_write, &SEEK_WRITE)?;
    let track = form.may(args.seek_track, &TRACK)?;
    let track_write = form.may(args.seek_track_write, &TRACK_WRITE)?;
    let maximum = form.may(args.seek_maximum, &MAXIMUM)?;
    let maximum_write = form.may(args.seek_maximum_write, &MAXIMUM_WRITE)?;
    let rate_inner = form.may(args.rate_inner, &RATE_INNER)?.map(rate);
    let queue = form.may(args.queue, &QUEUE)?;
    let interface = form.may(args.interface, &INTERFACE)?.map(rate);
    let (Some(capacity), Some(rpm), Some(seek), Some(rate), Some(cache)) =
        (capacity, rpm, seek, outer, cache)
    else {
        return Err(form.what_is_missing());
    };
    let name = args.name.clone();
    let name = name.or_else(|| args.out.as_deref().and_then(name_of));
    Ok(Datasheet {
        name: name.unwrap_or_else(|| "my-disk".to_owned()),
        model: args.model.clone(),
        capacity,
        sector: sector.map(|SectorName(format)| format),
        rpm,
        seek,
        seek_write,
        track,
        track_write,
        maximum,
        maximum_write,
        rate,
        rate_inner,
        cache,
        heads,
        queue,
        interface,
    })
}

/// Creates the fault about an item, in the words of the command line.
fn refused(error: &SheetError, args: &New) -> Fault {
    let of_platters = match (error.item, args.platters) {
        ("heads", Some(_)) => ", two for each of --platters",
        _ => "",
    };
    let SheetError {
        item,
        value,
        allowed,
    } = error;
    Fault::Usage(format!(
        "--{item}{of_platters}: {value} is not allowed; allowed is {allowed}"
    ))
}

pub(in crate::commands) fn new(args: &New, context: &mut Context<'_>) -> Result<(), Fault> {
    let kept = args.out.as_deref().filter(|_| !args.force);
    // This check comes before the user answers fifteen questions.
    kept.map_or(Ok(()), Output::is_new)?;
    let is_whole = (args.capacity.is_some() || args.sectors.is_some())
        && args.rpm.is_some()
        && args.seek.is_some()
        && args.rate.is_some()
        && args.cache.is_some();
    let stdin = io::stdin();
    let mut answers = stdin.lock();
    let asked: Option<(&mut dyn BufRead, &mut dyn Write)> = match !is_whole && stdin.is_terminal() {
        true => Some((&mut answers, &mut *context.err)),
        false => None,
    };
    let sheet = sheet(args, asked)?;
    let profile = sheet.profile().map_err(|error| refused(&error, args))?;
    let text = profile.to_toml();
    match (&args.out, kept) {
        (_, Some(path)) => Output::write_new(path, &text),
        (Some(path), None) => Output::write_all_of(path, &text),
        (None, None) => context.print(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, DriveVerb, Verb};
    use clap::Parser;
    use headtime_disk::SectorFormat;
    use headtime_units::{Bytes, Nanos};

    fn args(given: &[&str]) -> New {
        let start = ["headtime", "drive", "new", "--from-datasheet"];
        let cli = Cli::try_parse_from(start.iter().chain(given)).unwrap();
        match cli.verb {
            Verb::Drive(DriveVerb::New(new)) => *new,
            verb => panic!("{verb:?}"),
        }
    }

    /// Returns the sheet of these flags and answers, and the questions.
    fn answered(given: &[&str], answers: &str) -> (Result<Datasheet, Fault>, String) {
        let mut questions = Vec::new();
        let sheet = sheet(
            &args(given),
            Some((&mut answers.as_bytes(), &mut questions)),
        );
        (sheet, String::from_utf8(questions).unwrap())
    }

    #[test]
    fn what_is_missing_is_asked_for_until_it_can_be_read_and_what_is_given_is_not() {
        let given = ["--capacity", "18TB", "--rpm", "7200", "--heads", "18"];
        let answers = "7.5\n\n7.5ms\n270MB/s\n256MiB\n512E\n\n\n\n17.1ms\n\n130 MB\n\n600MB/s\n";
        let (sheet, questions) = answered(&given, answers);
        let sheet = sheet.unwrap();
        assert_eq!(sheet.seek, Nanos::from_micros(7_500));
        assert_eq!((sheet.rate, sheet.cache), (270_000_000, Bytes(256 << 20)));
        assert_eq!(sheet.sector, Some(SectorFormat::Emulated512));
        assert_eq!(sheet.maximum, Some(Nanos::from_micros(17_100)));
        assert_eq!(
            (sheet.seek_write, sheet.track, sheet.maximum_write),
            (None, None, None)
        );
        assert_eq!(
            (sheet.rate_inner, sheet.interface),
            (Some(130_000_000), Some(600_000_000))
        );
        assert_eq!(sheet.heads, Some(18));
        assert_eq!(sheet.queue, None);
        // The question comes three times. The answers are a number without a unit, an empty line, and a time.
        assert_eq!(questions.matches("(--seek), as in 8.5ms: ").count(), 3);
        assert!(
            questions.contains("  a duration needs its unit"),
            "{questions}"
        );
        assert!(
            !questions.contains("--rpm") && !questions.contains("--heads"),
            "{questions}"
        );
        assert!(questions.ends_with("(--interface), as in 600MB/s; Enter if it is not there: "));
    }

    #[test]
    fn answers_that_end_early_are_an_error_that_says_where() {
        let (sheet, _) = answered(&[], "18TB\n7200\n");
        let fault = sheet.unwrap_err();
        assert_eq!(fault.to_string(), "the answers ended before --seek");
        assert_eq!(fault.exit_code(), 2);
    }

    #[test]
    fn a_profile_is_named_after_its_file_where_that_can_be() {
        for (path, name) in [
            ("a/Exos-X18.toml", Some("exos-x18")),
            ("disk.two.toml", Some("disk.two")),
            ("my disk.toml", None),
            ("/", None),
            ("-", None),
        ] {
            assert_eq!(name_of(Path::new(path)).as_deref(), name, "{path}");
        }
    }
}
