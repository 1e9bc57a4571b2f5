//! One job: how much it asks for, when, and how deep.

use super::files::Target;
use super::pattern::Pattern;
use super::values::Values;
use headtime_config::Error;
use headtime_sched::Class;
use headtime_units::Nanos;
use headtime_workload::{Pacing, TimeDistribution};

/// A job, with all that its keys say.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    pub values: Values<'a>,
    pub name: String,
    pub copies: u32,
    pub pattern: Pattern,
    pub pacing: Pacing,
    pub class: Class,
    /// True if each write is on the medium when it is done.
    pub forces: bool,
    pub fsync: Option<u64>,
    /// True if the job starts after the end of all earlier jobs.
    pub stonewall: bool,
    pub delay: Nanos,
    pub ramp: Nanos,
    pub runtime: Option<Nanos>,
    /// Most requests of each copy.
    pub requests: Option<u64>,
    file: (Option<u64>, u64, u64),
    pub notes: Vec<String>,
}

/// Engines with one request under way for any `iodepth`.
const SYNCHRONOUS: [&str; 6] = ["psync", "sync", "vsync", "pvsync", "pvsync2", "sg"];
/// Engines that have `iodepth` requests under way.
const ASYNCHRONOUS: [&str; 6] = [
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "solarisaio",
    "windowsaio",
];
/// The most copies of a job that have each a file of its own.
const COPIES_MAX: u64 = 4096;

impl<'a> Job<'a> {
    pub fn read(values: Values<'a>) -> Result<Job<'a>, Error> {
        let pattern = Pattern::read(values)?;
        let mut notes: Vec<String> = pattern.note.iter().cloned().collect();
        if !values.flag("direct")? || values.flag("buffered")? {
            notes.push(
                "direct=0: requests go to the drive all the same, past the page cache".into(),
            );
        }
        let second = Nanos::from_secs(1);
        let time = |key| Ok::<_, Error>(values.time(key, second)?.unwrap_or_default());
        let runtime = values
            .time("runtime", second)?
            .filter(|time| !time.is_zero());
        let time_based = values.flag("time_based")?;
        if time_based && runtime.is_none() {
            return Err(values.error("time_based", "needs runtime=TIME"));
        }
        let sizes = |key| Ok::<_, Error>(values.bytes(key)?.filter(|bytes| *bytes > 0));
        let (size, file_size) = (sizes("size")?, sizes("filesize")?);
        let offset = values.bytes("offset")?.unwrap_or_default();
        let amount = match sizes("io_size")? {
            None => size.or(file_size),
            amount => amount,
        };
        let loops = values.whole("loops", 1, 1 << 32)?.unwrap_or(1);
        let (mean, _) = pattern.bytes();
        let amount = amount.filter(|_| !time_based).map(|bytes| {
            let requests = (bytes as f64 * loops as f64 / mean).ceil();
            (requests as u64).clamp(1, i64::MAX as u64)
        });
        let number = values.whole("number_ios", 0, i64::MAX as u64)?;
        let number = number.filter(|number| *number > 0);
        let requests = amount.into_iter().chain(number).min();
        if requests.is_none() && runtime.is_none() {
            let problem = "nothing says when the job ends; give size, or runtime";
            return Err(values.error("size", problem));
        }
        let flushes: Vec<u64> = ["fsync", "fdatasync"]
            .into_iter()
            .filter_map(|key| values.whole(key, 0, 1 << 32).transpose())
            .filter(|every| !matches!(every, Ok(0)))
            .collect::<Result<_, Error>>()?;
        let fsync = match flushes[..] {
            [] => None,
            [every] => Some(every),
            _ => return Err(values.error("fdatasync", "not together with fsync; give one of them")),
        };
        let class = match values.whole("prioclass", 0, 3)? {
            Some(1) => Class::REAL_TIME,
            Some(3) => Class::IDLE,
            _ => Class::BEST_EFFORT,
        };
        let forces = match values.text("sync") {
            None | Some("0" | "none") => false,
            Some("1" | "sync" | "dsync") => true,
            Some(_) => return Err(values.error("sync", "allowed are none, sync and dsync")),
        };
        let copies = values.whole("numjobs", 1, 1_000_000)?.unwrap_or(1) as u32;
        let job = Job {
            values,
            name: values
                .text("name")
                .unwrap_or(&values.section.name)
                .to_owned(),
            copies,
            pacing: pacing(values, &pattern, &mut notes)?,
            pattern,
            class,
            forces,
            fsync,
            stonewall: values.flag("stonewall")?,
            delay: time("startdelay")?,
            ramp: time("ramp_time")?,
            runtime,
            requests,
            file: (
                file_size.map(|size| size.saturating_sub(offset)).or(size),
                offset,
                values.bytes("offset_increment")?.unwrap_or_default(),
            ),
            notes,
        };
        if u64::from(job.parts()) > COPIES_MAX {
            let problem =
                format!("at most {COPIES_MAX} jobs have each a file or a part of their own");
            return Err(values.error("numjobs", problem));
        }
        Ok(job)
    }

    /// The number of separate places of its copies; 1 if all copies share one place.
    pub fn parts(&self) -> u32 {
        match self.file.2 > 0 || self.values.get("filename").is_none() {
            true => self.copies,
            false => 1,
        }
    }

    /// The file or device of a copy.
    pub fn target(&self, copy: u32) -> Target {
        let name = match self.values.text("filename") {
            Some(name) => name.to_owned(),
            None => format!("{}.{copy}.0", self.name),
        };
        match self.values.text("directory") {
            Some(directory) if !name.starts_with('/') => {
                Target::File(format!("{}/{name}", directory.trim_end_matches('/')))
            }
            _ if name.starts_with("/dev/") => Target::Device(name),
            _ => Target::File(name),
        }
    }

    /// Where a copy begins in its file, in bytes.
    pub fn begin(&self, copy: u32) -> Result<u64, Error> {
        let (_, offset, increment) = self.file;
        let begin = increment.checked_mul(u64::from(copy));
        let begin = begin.and_then(|more| more.checked_add(offset));
        let begin = begin.filter(|begin| *begin < 1 << 62);
        begin.ok_or_else(|| self.values.error("offset_increment", "is too large"))
    }

    /// The end of a copy's part of its file; `None` if that ends with the drive.
    pub fn end(&self, copy: u32) -> Result<Option<u64>, Error> {
        let (len, ..) = self.file;
        let len = self.pattern.reach.or(len);
        let begin = self.begin(copy)?;
        let end = len.map(|len| begin.checked_add(len).filter(|end| *end < 1 << 62));
        match end {
            None => Ok(None),
            Some(Some(end)) => Ok(Some(end)),
            Some(None) => Err(self.values.error("size", "is too large")),
        }
    }
}

fn pacing(values: Values<'_>, pattern: &Pattern, notes: &mut Vec<String>) -> Result<Pacing, Error> {
    for key in ["filename", "directory"] {
        if values.text(key).is_some_and(|text| text.contains(':')) {
            return Err(values.error(key, "a job has one file; give each file a job of its own"));
        }
    }
    let engine = values.text("ioengine").unwrap_or("psync");
    let depth = values.whole("iodepth", 1, 65_535)?.unwrap_or(1) as u32;
    let is_synchronous = SYNCHRONOUS.contains(&engine);
    if !is_synchronous && !ASYNCHRONOUS.contains(&engine) {
        let problem = format!(
            "is no engine whose requests are simulated; allowed are {} and {}",
            SYNCHRONOUS.join(", "),
            ASYNCHRONOUS.join(", ")
        );
        return Err(values.error("ioengine", problem));
    }
    if is_synchronous && depth > 1 {
        notes.push(format!(
            "iodepth={depth}: {engine} has one request under way, whatever that says"
        ));
    }
    let outstanding = if is_synchronous { 1 } else { depth };
    let think = values
        .time("thinktime", Nanos::from_micros(1))?
        .unwrap_or_default();
    let gap = gap(values, pattern)?;
    match gap {
        Some(_) if !think.is_zero() => {
            Err(values.error("thinktime", "not together with rate; give one of them"))
        }
        Some(gap) => Ok(Pacing::Open {
            gap,
            outstanding: Some(outstanding),
        }),
        None => {
            if !think.is_zero() && outstanding > 1 {
                notes.push(format!(
                    "iodepth={depth}: with thinktime fio has one request under way"
                ));
            }
            Ok(Pacing::Closed {
                think: TimeDistribution::Constant(think),
                outstanding: if think.is_zero() { outstanding } else { 1 },
            })
        }
    }
}

/// The time between two requests, if a rate says so.
fn gap(values: Values<'_>, pattern: &Pattern) -> Result<Option<TimeDistribution>, Error> {
    let (mean, least) = pattern.bytes();
    let mut per_s = None;
    for key in ["rate", "rate_iops"] {
        let given = values.both(key, |text| values.bytes_of(text))?;
        let given = given.into_iter().zip(pattern.used());
        let given: Vec<u64> = given
            .filter_map(|(rate, used)| rate.filter(|rate| used && *rate > 0))
            .collect();
        match given[..] {
            [] => {}
            [rate] if per_s.is_none() => {
                // fio counts a rate of requests in bytes of its smallest ones.
                per_s = Some((
                    key,
                    rate as f64 * if key == "rate" { 1.0 } else { least as f64 },
                ));
            }
            [_] => return Err(values.error(key, "not together with rate; give one of them")),
            _ => {
                let problem = "a rate is for jobs that only read or only write; make two jobs";
                return Err(values.error(key, problem));
            }
        }
    }
    let is_poisson = match values.text("rate_process") {
        None | Some("linear") => false,
        Some("poisson") => true,
        Some(_) => return Err(values.error("rate_process", "allowed are linear and poisson")),
    };
    let Some((key, per_s)) = per_s else {
        return Ok(None);
    };
    if pattern.used() == [true, true] {
        let problem = "a rate is for jobs that only read or only write; make two jobs";
        return Err(values.error(key, problem));
    }
    let bytes = if is_poisson { least as f64 } else { mean };
    let nanos = bytes / per_s * 1e9;
    // Casting saturates.
    let gap = Nanos::from_nanos(((nanos + 0.5) as u64).clamp(1, 1 << 58));
    Ok(Some(match is_poisson {
        true => TimeDistribution::Exponential(gap),
        false => TimeDistribution::Constant(gap),
    }))
}
