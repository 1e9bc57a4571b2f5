//! Jobs as a scenario.

use super::read::{Section, bytes, read, time, whole};
use headtime_config::{Error, Node, Place, Table, Value};
use headtime_linux::shown::one_line;
use headtime_units::{Bytes, Nanos};
use headtime_workload::Places;
use std::collections::{BTreeMap, BTreeSet};

/// Defaults beside the job file: schedulers, drive, and the queue depth of Linux.
const AROUND: [(&str, &str); 3] = [
    ("schedulers", "noop,deadline,sptf"),
    ("drive.profile", "wd5000aaks"),
    ("engine.depth", "32"),
];
/// Engines with one request under way for any `iodepth`.
const SYNCHRONOUS: &str = "psync sync vsync pvsync pvsync2 sg";
/// Engines that have `iodepth` requests under way.
const ASYNCHRONOUS: &str = "libaio io_uring io_uring_cmd posixaio solarisaio windowsaio";
/// The most jobs, with copies that have files of their own.
const COPIES_MAX: u64 = 4096;
/// The shortest time between two requests of a rate.
const GAP_MIN: Nanos = Nanos::from_micros(1);
/// Files begin at multiples of this many bytes.
const BLOCK: u64 = 1 << 20;

/// Makes the table of a scenario from a job file, with the lines of the file as places, and notes for people. `name` is the
/// name of the file.
///
/// # Errors
///
/// If the text is no job file or has a key without simulation; with line, key and advice.
pub fn table(name: &str, text: &str) -> Result<(Table, Vec<String>), Error> {
    let (sections, idle) = read(name, text)?;
    let mut notes = BTreeSet::new();
    let jobs = sections
        .iter()
        .map(|section| Job::read(section, &mut notes));
    let jobs: Vec<Job<'_>> = jobs.collect::<Result<_, Error>>()?;
    let mut copies = 0;
    for job in &jobs {
        copies += job.copies;
        if copies > COPIES_MAX {
            let problem = format!(
                "more than {COPIES_MAX} jobs in all; copies on one file (filename) count as one"
            );
            return Err(job.section.error("numjobs", problem));
        }
    }
    let starts = starts(&jobs)?;
    let idle: Vec<String> = idle
        .iter()
        .map(|(key, line)| format!("{key} (line {line})"))
        .collect();
    if !idle.is_empty() {
        notes.insert(format!("these keys do nothing here: {}", idle.join(", ")));
    }
    let mut table = Table::default();
    for (key, text) in AROUND {
        table.set(name, key, text)?;
    }
    let mut groups = Vec::new();
    for job in &jobs {
        for copy in 0..job.copies {
            groups.push(job.copy(copy, &starts)?);
        }
    }
    let title = one_line(name.rsplit('/').next().unwrap_or(name));
    for (key, value) in [
        ("title", Value::Text(title)),
        ("workload", Value::List(groups)),
    ] {
        let place = Place::line(name, 1);
        table.set_value(key, Node { value, place })?;
    }
    let notes = notes.into_iter().map(|note| format!("{name}: {note}"));
    Ok((table, notes.collect()))
}

/// A job, with the part of its entry of `[[workload]]` that its copies share.
struct Job<'a> {
    section: &'a Section,
    entry: Table,
    /// Copies with a file of their own; 1 if all have the same.
    copies: u64,
    offset: u64,
    /// The length of the part of the file that is used; `None` is the whole drive.
    len: Option<u64>,
}

/// The pattern of a job, as far as its times depend on the pattern.
struct Pattern {
    is_mixed: bool,
    /// Bytes of a request: in the mean, and the least.
    mean: f64,
    least: u64,
}

fn text(value: impl ToString) -> Option<Value> {
    Some(Value::Text(value.to_string()))
}

/// Reads a number of bytes that are whole sectors.
fn sectors(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        odd if !odd.is_multiple_of(512) => {
            Err("allowed are multiples of 512 bytes, a sector".to_owned())
        }
        whole => Ok(whole),
    }
}

fn number(value: u64) -> Option<Value> {
    Some(Value::Integer(value as i64))
}

impl<'a> Job<'a> {
    fn read(section: &'a Section, notes: &mut BTreeSet<String>) -> Result<Job<'a>, Error> {
        let numjobs = section.get("numjobs", whole(1, COPIES_MAX))?.unwrap_or(1);
        let filename = section.text("filename");
        let mut job = Job {
            section,
            entry: Table::default(),
            copies: if filename.is_some() { 1 } else { numjobs },
            offset: section.get("offset", sectors)?.unwrap_or_default(),
            len: section.get("size", sectors)?.filter(|size| *size > 0),
        };
        job.put("processes", "numjobs", number(numjobs / job.copies))?;
        let pattern = job.pattern()?;
        job.pacing(&pattern, notes)?;
        job.times(&pattern)?;
        let problem = match job.len {
            _ if filename.is_some_and(|name| name.contains(':')) => {
                return Err(section.error("filename", "a job has one file; give each file a job"));
            }
            None if !is_drive(&job.path(0)) => "nothing says how long the file is; give size",
            None if job.offset > 0 => "an offset needs size=BYTES beside it",
            _ => return Ok(job),
        };
        Err(section.error("size", problem))
    }

    /// Puts a value into the entry, with the line of a key of fio as its place.
    fn put(&mut self, key: &str, of: &str, value: Option<Value>) -> Result<(), Error> {
        set(&mut self.entry, key, self.section.place(of), value)
    }

    /// A number of more than nothing.
    fn some(&self, key: &str) -> Result<Option<u64>, Error> {
        Ok(self.section.get(key, bytes)?.filter(|number| *number > 0))
    }

    /// Operations, sizes and places.
    fn pattern(&mut self) -> Result<Pattern, Error> {
        let section = self.section;
        let reads = section.get("rwmixread", whole(0, 100))?.unwrap_or(50);
        let rw = section.text("rw").unwrap_or("read");
        let reads = match rw {
            "read" | "randread" => 100,
            "write" | "randwrite" => 0,
            "rw" | "readwrite" | "randrw" if section.is_written("rwmixwrite") => 100 - reads,
            "rw" | "readwrite" | "randrw" => reads,
            _ => {
                let allowed = "allowed are read, write, rw, randread, randwrite and randrw; \
                               trims, and numbers behind :, are not simulated";
                return Err(section.error("rw", allowed));
            }
        };
        let (share, is_mixed) = (reads as f64 / 100.0, (1..100).contains(&reads));
        let (is_random, places) = (
            rw.starts_with("rand"),
            section.get("random_distribution", places)?,
        );
        let sequential = if is_random { 0.0 } else { 1.0 };
        let flag = (is_mixed && !is_random).then_some(Value::Flag(true));
        let places = places.filter(|places| is_random && !places.is_uniform());
        self.put("read_share", "rw", Some(Value::Float(share)))?;
        self.put("sequential_share", "rw", Some(Value::Float(sequential)))?;
        self.put("first", "rw", text("beginning").filter(|_| !is_random))?;
        self.put("writes_apart", "rw", flag)?;
        self.put("places", "random_distribution", places.and_then(text))?;

        let sizes = section.get("bs", sizes)?;
        let [of_reads, of_writes] = sizes.unwrap_or_else(|| [vec![(4096, 1)], vec![(4096, 1)]]);
        let used = match reads {
            0 => vec![of_writes],
            100 => vec![of_reads],
            _ => vec![of_reads, of_writes],
        };
        let (first, last) = (&used[0], &used[used.len() - 1]);
        let least = first.iter().chain(last).map(|(size, _)| *size).min();
        let least = least.unwrap_or_default();
        self.put("size", "bs", text(described(first)))?;
        self.put(
            "write_size",
            "bs",
            text(described(last)).filter(|_| first != last),
        )?;
        self.put("align", "bs", text(Bytes(least)))?;
        Ok(Pattern {
            is_mixed,
            mean: share * mean(first) + (1.0 - share) * mean(last),
            least,
        })
    }

    /// The number of requests under way, and the times between requests.
    fn pacing(&mut self, pattern: &Pattern, notes: &mut BTreeSet<String>) -> Result<(), Error> {
        let section = self.section;
        let engine = section.text("ioengine").unwrap_or("psync");
        let has = |engines: &str| engines.split(' ').any(|known| known == engine);
        if !has(SYNCHRONOUS) && !has(ASYNCHRONOUS) {
            let problem = format!("is not simulated; allowed are {SYNCHRONOUS} {ASYNCHRONOUS}");
            return Err(section.error("ioengine", problem));
        }
        let depth = section.get("iodepth", whole(1, 65_535))?.unwrap_or(1);
        let think = section.get("thinktime", time("us"))?;
        let think = think.filter(|time| !time.is_zero());
        let one = match think {
            _ if has(SYNCHRONOUS) => Some(engine),
            think => think.map(|_| "thinktime"),
        };
        if let Some(one) = one.filter(|_| depth > 1) {
            let note = format!("iodepth={depth}: with {one}, fio has one request under way");
            notes.insert(note);
        }
        let direct = section.get("direct", whole(0, 1))?.unwrap_or(0);
        if direct == u64::from(section.is_written("buffered")) {
            let note = "direct=0: requests go to the drive all the same, past the page cache";
            notes.insert(note.to_owned());
        }
        let rate = self.some("rate")?;
        if rate.is_some() && (think.is_some() || pattern.is_mixed) {
            let problem = "a rate is for jobs without thinktime that only read or only write; \
                           make two jobs of a mixed job";
            return Err(section.error("rate", problem));
        }
        // fio counts a rate of requests in bytes of the smallest requests.
        let unit = match section.is_written("rate_iops") {
            true => pattern.least as f64,
            false => 1.0,
        };
        // Casting saturates.
        let gap = rate.map(|rate| (pattern.mean / (rate as f64 * unit) * 1e9 + 0.5) as u64);
        let gap = gap.map(|nanos| Nanos::from_nanos(nanos.min(1 << 58)));
        if gap.is_some_and(|gap| gap < GAP_MIN) {
            let most = (pattern.mean / unit / GAP_MIN.as_secs_f64()).floor();
            let problem = format!("allowed is up to {most}, a request every {GAP_MIN}");
            return Err(section.error("rate", problem));
        }
        let fsync = self.some("fsync")?.and_then(number);
        self.put("outstanding", "iodepth", number(one.map_or(depth, |_| 1)))?;
        self.put("think", "thinktime", think.and_then(text))?;
        self.put("gap", "rate", gap.and_then(text))?;
        self.put("fsync", "fsync", fsync)
    }

    /// The beginning and the end of the job.
    fn times(&mut self, pattern: &Pattern) -> Result<(), Error> {
        let section = self.section;
        let start = section.get("startdelay", time("s"))?.unwrap_or_default();
        let runtime = section
            .get("runtime", time("s"))?
            .filter(|time| !time.is_zero());
        let is_timed = section.get("time_based", whole(0, 1))? == Some(1);
        let amount = self.some("io_size")?.or(self.len).filter(|_| !is_timed);
        let requests = amount.map(|bytes| (bytes as f64 / pattern.mean).ceil() as u64);
        let requests = requests.into_iter().chain(self.some("number_ios")?).min();
        if runtime.is_none() && (is_timed || requests.is_none()) {
            let problem = "nothing says when the job ends; give size, or runtime";
            return Err(section.error("size", problem));
        }
        let until = runtime.map(|runtime| start + runtime);
        self.put("start", "startdelay", text(start))?;
        self.put("until", "runtime", until.and_then(text))?;
        self.put("requests", "size", requests.and_then(number))
    }

    /// The file of a copy.
    fn path(&self, copy: u64) -> String {
        let own = || format!("{}.{copy}.0", self.section.name);
        let name = self
            .section
            .text("filename")
            .map_or_else(own, str::to_owned);
        match self.section.text("directory") {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        }
    }

    /// The entry of a copy, or of all if they share a file.
    fn copy(&self, copy: u64, starts: &BTreeMap<String, u64>) -> Result<Node, Error> {
        let name = self.section.name.clone();
        let begin = starts[&self.path(copy)] + self.offset;
        let range = self
            .len
            .map(|len| format!("{}..{}", Bytes(begin), Bytes(begin + len)));
        let mut entry = self.entry.clone();
        set(&mut entry, "name", self.section.start(), text(name))?;
        set(
            &mut entry,
            "range",
            self.section.place("size"),
            range.and_then(text),
        )?;
        Ok(Node {
            value: Value::Table(entry),
            place: self.section.start(),
        })
    }
}

fn set(table: &mut Table, key: &str, place: Place, value: Option<Value>) -> Result<(), Error> {
    value.map_or(Ok(()), |value| table.set_value(key, Node { value, place }))
}

fn is_drive(path: &str) -> bool {
    path.starts_with("/dev/")
}

/// The beginning of each file. Files lie one behind the other, from the beginning of the drive.
fn starts(jobs: &[Job<'_>]) -> Result<BTreeMap<String, u64>, Error> {
    let copies = |job: &Job<'_>| 0..job.copies;
    let mut files: Vec<(&Job<'_>, String)> = Vec::new();
    for job in jobs {
        files.extend(copies(job).map(|copy| (job, job.path(copy))));
    }
    let mut ends = BTreeMap::<&str, u64>::new();
    for (job, path) in &files {
        let end = ends.entry(path).or_default();
        *end = (job.offset + job.len.unwrap_or_default()).max(*end);
    }
    if let Some((job, _)) = files.iter().find(|(_, path)| *path != files[0].1)
        && files.iter().any(|(_, path)| is_drive(path))
    {
        let problem =
            "one drive is simulated, and jobs above have another; give each drive a job file";
        return Err(job.section.error("filename", problem));
    }
    let (mut starts, mut next) = (BTreeMap::new(), 0_u64);
    for (job, path) in &files {
        if let Some(len) = ends.remove(path.as_str()) {
            starts.insert(path.clone(), next);
            let end = next.checked_add(len).filter(|end| *end < 1 << 62);
            let problem = "the files together are too large";
            let end = end.ok_or_else(|| job.section.error("size", problem))?;
            next = end.next_multiple_of(BLOCK);
        }
    }
    Ok(starts)
}

/// Sizes of requests, each with its weight.
type Sizes = Vec<(u64, u64)>;

/// The sizes of reads and of writes. One table is for both; a third, for trims, is not looked at.
fn sizes(text: &str) -> Result<[Sizes; 2], String> {
    let tables = text.split(',').map(split);
    let tables: Vec<Sizes> = tables.collect::<Result<_, String>>()?;
    match &tables[..] {
        [both] => Ok([both.clone(), both.clone()]),
        [reads, writes] | [reads, writes, _] => Ok([reads.clone(), writes.clone()]),
        _ => Err("allowed are at most three values: reads, writes, trims".to_owned()),
    }
}

/// Sizes with percentages. Sizes without a percentage share the rest up to 100; if there are none, the last size gets the rest.
fn split(text: &str) -> Result<Sizes, String> {
    let entries = text.split(':').map(|entry| {
        let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let percent = Some(percent).filter(|percent| !percent.is_empty());
        match bytes(size)? {
            0 => Err("allowed is a size of more than nothing".to_owned()),
            size => Ok((size, percent.map(whole(0, 100)).transpose()?)),
        }
    });
    let entries: Vec<(u64, Option<u64>)> = entries.collect::<Result<_, String>>()?;
    let given: u64 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    let rest = 100_u64
        .checked_sub(given)
        .ok_or("the percentages are more than 100 together")?;
    let open = entries
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count() as u64;
    let weight = |percent: Option<u64>| percent.map_or(rest, |percent| percent * open.max(1));
    let mut sizes: Sizes = entries
        .into_iter()
        .map(|(size, of)| (size, weight(of)))
        .collect();
    if let Some((_, last)) = sizes.last_mut().filter(|_| open == 0) {
        *last += rest;
    }
    sizes.retain(|(_, weight)| *weight > 0);
    Ok(sizes)
}

fn mean(sizes: &[(u64, u64)]) -> f64 {
    let sum: u64 = sizes.iter().map(|(_, weight)| weight).sum();
    let bytes = sizes
        .iter()
        .map(|(size, weight)| *size as f64 * *weight as f64);
    bytes.sum::<f64>() / sum as f64
}

/// Sizes as a scenario has them. One size that is no multiple of the usual `size_step` becomes a table.
fn described(sizes: &[(u64, u64)]) -> String {
    if let [(size, _)] = sizes
        && size.is_multiple_of(4096)
    {
        return Bytes(*size).to_string();
    }
    let entries = sizes
        .iter()
        .map(|(size, weight)| format!("{}/{weight}", Bytes(*size)));
    entries.collect::<Vec<_>>().join(":")
}

/// The spread of random requests.
fn places(text: &str) -> Result<Places, String> {
    let allowed = "allowed are random, zipf:1.2, pareto:0.2 and zoned:60/10:40/90";
    let places = match text.split_once(':') {
        None if text == "random" => return Ok(Places::Uniform),
        None => return Err(allowed.to_owned()),
        Some((kind, inside)) => format!("{kind}({inside})").parse(),
    };
    let whole = |parts: &[(u32, u32)]| {
        let sum =
            |of: fn(&(u32, u32)) -> u32| parts.iter().map(|part| u64::from(of(part))).sum::<u64>();
        sum(|(share, _)| *share) == 100 && sum(|(_, len)| *len) == 100
    };
    match places {
        Ok(Places::Zoned(parts)) if !whole(&parts) => {
            Err("the requests of all zones, and their lengths, are 100 % together".to_owned())
        }
        Ok(places) => Ok(places),
        Err(error) => Err(format!("{}; {allowed}", error.problem)),
    }
}
