//! Reads a log line by line.

use super::{Decision, LogError, MAGIC, OPS, OUTCOMES, Record};
use crate::fields::Fields;
use crate::tags::DriveTags;
use crate::{Arrival, DriveTag, Event, GateOrder, Join, Lane, Member, Outcome, RequestId};
use headtime_sched::{Class, Directive, Flags, Foretold, Op, Origin, Tag};
use headtime_units::{Extent, Nanos, Time};
use std::io::{BufRead, Read as _};

/// Largest length of a line in bytes. The longest setting is a drive's whole profile.
pub const LINE_MAX: usize = 4 << 20;

/// Reads a log that is in memory line by line.
///
/// # Errors
///
/// Each error names the line. The caller may continue after a bad line.
pub fn read(text: &str) -> impl Iterator<Item = Result<(usize, Record), LogError>> {
    let mut lines = Lines::default();
    text.lines()
        .filter_map(move |line| lines.next(line).transpose())
}

/// State from the lines so far.
#[derive(Debug, Default)]
struct Lines {
    /// Lines so far.
    number: usize,
    /// The latest time.
    last: Time,
    /// Drive tags of the commands in the drive, for a log that has the engine's own tags.
    tags: Option<DriveTags>,
}

impl Lines {
    /// Parses the next line. Returns `None` for the header and for a blank line.
    fn next(&mut self, line: &str) -> Result<Option<(usize, Record)>, LogError> {
        self.number += 1;
        if self.number == 1 {
            let header = line.trim_end().split_once(char::is_whitespace);
            return match header.map(|(magic, version)| (magic, version.trim_start())) {
                Some((MAGIC, "3")) => Ok(None),
                Some((MAGIC, "1" | "2")) => {
                    self.tags = Some(DriveTags::default());
                    Ok(None)
                }
                Some((MAGIC, version)) => Err(LogError::Version(version.to_owned())),
                _ => Err(LogError::NotALog),
            };
        }
        if line.trim().is_empty() {
            return Ok(None);
        }
        let problem = |problem| LogError::Line {
            line: self.number,
            problem,
        };
        let (member, line) = read_member(line).map_err(problem)?;
        let mut record = read_line(line).map_err(problem)?;
        if let Some(tags) = &mut self.tags {
            name_by_drive_tag(&mut record, tags).map_err(problem)?;
        }
        if let Record::Event(now, _)
        | Record::Decision(now, _)
        | Record::Swapped(now, ..)
        | Record::GateSwapped(now, ..) = &record
        {
            if *now < self.last {
                let now = now.as_nanos();
                return Err(problem(format!("time {now} lies before the line above")));
            }
            self.last = *now;
        }
        if let Some(member) = member {
            if let Record::Setting { .. } = record {
                return Err(problem("a setting is of all members".into()));
            }
            record = Record::OfMember(member, Box::new(record));
        }
        Ok(Some((self.number, record)))
    }
}

/// Reads a log from a file or a stream, with one line in memory at a time.
///
/// A last line without an end is not read, since its writer was interrupted.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    lines: Lines,
    line: Vec<u8>,
    /// The next line's number and record, if already read.
    next: Option<(usize, Record)>,
    cut: bool,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> Reader<R> {
        Reader {
            input,
            lines: Lines::default(),
            line: Vec::new(),
            next: None,
            cut: false,
            over: false,
        }
    }

    /// Puts back the record that was read last.
    pub(super) fn put_back(&mut self, line: usize, record: Record) {
        self.next = Some((line, record));
    }

    /// Returns the last line read, without its end, for messages. Bytes that are no text are replaced.
    pub fn line(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.line.trim_ascii_end())
    }

    /// Returns the number of lines that were read so far.
    pub fn number(&self) -> usize {
        self.lines.number
    }

    /// Returns true if the last line has no end and was left out, or if there is no line at all.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the next record and the number of its line, counted from 1; `None` at the end. Skips the header and
    /// blank lines.
    ///
    /// # Errors
    ///
    /// If the input cannot be read ([`LogError::Read`]), which ends the log, or if a line is invalid. Each error names
    /// the line.
    pub fn next_record(&mut self) -> Result<Option<(usize, Record)>, LogError> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        while !self.over {
            self.line.clear();
            let line = self.lines.number + 1;
            let most = LINE_MAX as u64 + 1;
            let read = (&mut self.input)
                .take(most)
                .read_until(b'\n', &mut self.line);
            if let Err(error) = read {
                self.over = true;
                let problem = error.to_string();
                return Err(LogError::Read { line, problem });
            }
            if self.line.len() > LINE_MAX {
                self.over = true;
                let problem = format!("the line is longer than {LINE_MAX} bytes");
                return Err(LogError::Line { line, problem });
            }
            if self.line.last() != Some(&b'\n') {
                self.over = true;
                self.cut = !self.line.is_empty() || self.lines.number == 0;
                if self.lines.number > 0 {
                    return Ok(None);
                }
                // An input without a header gives an error below.
            }
            let Ok(text) = std::str::from_utf8(&self.line) else {
                self.lines.number += 1;
                return Err(match line {
                    1 => LogError::NotALog,
                    _ => LogError::Line {
                        line,
                        problem: "is not text in UTF-8".to_owned(),
                    },
                });
            };
            if let Some(record) = self.lines.next(text)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<(usize, Record), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

/// Replaces the engine's own tag in a record by the drive tag that the engine would have given.
fn name_by_drive_tag(record: &mut Record, tags: &mut DriveTags) -> Result<(), String> {
    match record {
        Record::Decision(_, Decision::Issue { tag, .. }) => {
            let own = Tag(tag.0);
            if tags.held_by(own).is_some() {
                return Err(format!("tag {} is issued and in the drive", own.0));
            }
            *tag = tags.take(own).ok_or_else(|| {
                let most = DriveTag::DEPTH_MAX;
                format!("tag {} is issued, with {most} others in the drive", own.0)
            })?;
        }
        Record::Event(_, Event::Completed { tag, .. }) => {
            let own = Tag(tag.0);
            *tag = tags
                .held_by(own)
                .ok_or_else(|| format!("tag {} completes and is not in the drive", own.0))?;
            tags.give_back(*tag);
        }
        _ => {}
    }
    Ok(())
}

/// Splits a line into its member, if it names one, and the rest.
fn read_member(line: &str) -> Result<(Option<Member>, &str), String> {
    let Some(named) = line.strip_prefix('@') else {
        return Ok((None, line));
    };
    let (number, rest) = named.split_once(' ').unwrap_or((named, ""));
    match number.parse() {
        Ok(number) if number > 0 => Ok((Some(Member(number)), rest)),
        _ => Err(format!(
            "the member is \"{number}\"; allowed are 1 to {}, and nothing for member 0",
            u16::MAX
        )),
    }
}

fn read_line(line: &str) -> Result<Record, String> {
    if let Some(setting) = line.strip_prefix('#') {
        let setting = setting.trim();
        let (key, value) = setting
            .split_once(char::is_whitespace)
            .unwrap_or((setting, ""));
        if key.is_empty() {
            return Err("the name of the setting is missing".into());
        }
        return Ok(Record::Setting {
            key: key.to_owned(),
            value: value.trim().to_owned(),
        });
    }
    let mut fields = Fields(line.split_ascii_whitespace());
    let kind = fields.word("kind of line")?;
    let record = match kind {
        "A" => {
            let at = fields.time()?;
            let arrival = fields.arrival()?;
            let has_since = fields.0.clone().next().is_some();
            let since = has_since.then(|| fields.time()).transpose()?;
            Record::Event(at, Event::Arrived(Arrival { since, ..arrival }))
        }
        "J" => Record::Event(
            fields.time()?,
            Event::Joined {
                arrival: fields.arrival()?,
                lane: fields.lane()?,
                join: match fields.word("way to join")? {
                    "before" => Join::Before,
                    "outright" => Join::Outright,
                    "with" => Join::With,
                    "alone" => Join::Alone,
                    "queued" => Join::Queued,
                    word => {
                        return Err(format!(
                            "\"{word}\" is no way to join; allowed are before, with, alone and queued"
                        ));
                    }
                },
            },
        ),
        "P" => {
            let time = fields.time()?;
            let on = match fields.word("on or off")? {
                "on" => true,
                "off" => false,
                word => return Err(format!("\"{word}\" is neither on nor off")),
            };
            Record::Event(time, Event::Offering(on))
        }
        "R" => Record::Event(fields.time()?, Event::Offered(fields.lane()?)),
        "O" => Record::Event(
            fields.time()?,
            Event::Ordered(GateOrder::read(&mut fields)?),
        ),
        "M" => Record::Event(fields.time()?, Event::Directed(fields.directive()?)),
        "B" => Record::Event(
            fields.time()?,
            Event::Behind {
                origin: fields.origin()?,
                class: Class(fields.small("class")?),
            },
        ),
        "D" => Record::Event(
            fields.time()?,
            Event::Drained {
                from: fields.lane()?,
                to: fields.lane()?,
            },
        ),
        "C" => Record::Event(
            fields.time()?,
            Event::Completed {
                tag: fields.tag()?,
                outcome: fields.outcome()?,
            },
        ),
        "W" => Record::Event(fields.time()?, Event::Woke),
        "U" => Record::Event(fields.time()?, Event::Unplugged),
        "T" => Record::Event(
            fields.time()?,
            Event::Foretold(Foretold {
                at: fields.time()?,
                op: fields.op()?,
                extent: fields.extent()?,
                origin: fields.origin()?,
            }),
        ),
        "S" => {
            let (time, text) = (fields.time()?, fields.word("scheduler")?.to_owned());
            let lane = match fields.0.clone().next() {
                Some(_) => fields.lane()?,
                None => Lane(0),
            };
            Record::Swapped(time, lane, text)
        }
        "G" => {
            let (time, gate) = (fields.time()?, fields.word("gate")?.to_owned());
            let first = fields.word("scheduler")?;
            let texts = std::iter::once(first).chain(fields.0.by_ref());
            Record::GateSwapped(time, gate, texts.map(str::to_owned).collect())
        }
        "I" => Record::Decision(
            fields.time()?,
            Decision::Issue {
                tag: fields.tag()?,
                op: fields.op()?,
                extent: fields.extent()?,
            },
        ),
        "F" => Record::Decision(
            fields.time()?,
            Decision::Finish {
                id: fields.id()?,
                outcome: fields.outcome()?,
            },
        ),
        other => {
            return Err(format!(
                "\"{other}\" is no kind of line; allowed are A, C, W, U, T, J, P, R, O, M, B, D, S, G, I, F and #"
            ));
        }
    };
    match fields.0.next() {
        Some(more) => Err(format!("\"{more}\" is one field too many")),
        None => Ok(record),
    }
}

impl Fields<'_> {
    fn arrival(&mut self) -> Result<Arrival, String> {
        let id = self.id()?;
        let op = self.op()?;
        let extent = self.extent()?;
        if extent.is_empty() != (op == Op::Flush) {
            return Err("only a flush has 0 sectors, and it has no more".into());
        }
        let bits = self.number("flags")?;
        let flags = u8::try_from(bits)
            .ok()
            .and_then(Flags::from_bits)
            .ok_or_else(|| format!("flags are {bits}; allowed are 0 to 7"))?;
        Ok(Arrival {
            id,
            op,
            extent,
            flags,
            origin: self.origin()?,
            class: Class(self.small("class")?),
            since: None,
        })
    }

    fn directive(&mut self) -> Result<Directive<RequestId>, String> {
        match self.word("directive")? {
            "mark" => Ok(Directive::Mark(self.id()?)),
            "dedicate" => Ok(Directive::Dedicate {
                until: Time::ZERO + Nanos::from_nanos(self.number("end of the dedication")?),
            }),
            "release" => Ok(Directive::Release),
            word => Err(format!(
                "\"{word}\" is no directive; allowed are mark, dedicate and release"
            )),
        }
    }

    fn lane(&mut self) -> Result<Lane, String> {
        self.small("lane").map(Lane)
    }

    fn origin(&mut self) -> Result<Origin, String> {
        Ok(Origin {
            process: self.small("process")?,
            program: self.small("program")?,
            export: self.small("export")?,
        })
    }

    fn tag(&mut self) -> Result<DriveTag, String> {
        self.small("tag").map(DriveTag)
    }

    fn id(&mut self) -> Result<RequestId, String> {
        let word = self.word("id")?;
        let id = match word.strip_prefix('b') {
            Some(number) => number.parse().map(RequestId::Background),
            None => word.parse().map(RequestId::Client),
        };
        id.map_err(|_| {
            format!("the id is \"{word}\"; it must be a whole number, with `b` before it for the background")
        })
    }

    fn extent(&mut self) -> Result<Extent, String> {
        let (start, len) = (self.number("address")?, self.number("number of sectors")?);
        match start.checked_add(len) {
            Some(_) => Ok(Extent::at(start, len)),
            None => Err(format!("{start}+{len} leaves 64 bits")),
        }
    }

    fn op(&mut self) -> Result<Op, String> {
        let word = self.word("operation")?;
        OPS.into_iter()
            .find(|(letter, _)| *letter == word)
            .map(|(_, op)| op)
            .ok_or_else(|| format!("\"{word}\" is no operation; allowed are R, W, F and D"))
    }

    fn outcome(&mut self) -> Result<Outcome, String> {
        let word = self.word("outcome")?;
        OUTCOMES
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, outcome)| outcome)
            .ok_or_else(|| {
                format!("\"{word}\" is no outcome; allowed are ok, medium, timeout and device")
            })
    }
}
