//! Jobs as a scenario.

use super::files::Files;
use super::job::Job;
use super::read::File;
use super::values::Values;
use headtime_config::{Error, Node, Place, Table, Value};
use headtime_sched::Class;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{Pacing, Places};

/// Defaults beside the job file: schedulers, drive, and the queue depth of Linux.
const AROUND: [(&str, &str); 3] = [
    ("schedulers", "noop,deadline,sptf"),
    ("drive.profile", "wd5000aaks"),
    ("engine.depth", "32"),
];

/// Makes the table of a scenario from a job file, with the lines of the file as places, and notes for people. `name` is the
/// name of the file.
///
/// # Errors
///
/// If the text is no job file or has a key without simulation; with line, key and advice.
pub fn table(name: &str, text: &str) -> Result<(Table, Vec<String>), Error> {
    let file = File::read(name, text)?;
    let mut notes = Vec::new();
    if !file.idle.is_empty() {
        let keys = file
            .idle
            .iter()
            .map(|(key, line)| format!("{key} (line {line})"));
        let keys: Vec<String> = keys.collect();
        notes.push(format!(
            "{name}: these keys do nothing here: {}",
            keys.join(", ")
        ));
    }
    let jobs = file
        .jobs
        .iter()
        .map(|section| Job::read(Values::new(&file, section)?));
    let jobs: Vec<Job<'_>> = jobs.collect::<Result<_, Error>>()?;
    let files = Files::lay(&file, &jobs)?;
    notes.extend(files.note().map(|note| format!("{name}: {note}")));
    for job in &jobs {
        for note in &job.notes {
            let note = format!("{name}: {note}");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    let mut table = Table::default();
    for (key, text) in AROUND {
        table.set(name, key, text)?;
    }
    let title = name.rsplit('/').next().unwrap_or(name);
    set(
        &mut table,
        "title",
        file.place(1),
        Value::Text(title.to_owned()),
    )?;
    if let Some((job, seed)) = seed(&jobs)? {
        let place = file.place(job.values.line("randseed"));
        set(&mut table, "seed", place, Value::Integer(seed))?;
    }
    let (mut groups, mut from) = (Vec::new(), Nanos::ZERO);
    let mut starts: Vec<Nanos> = Vec::new();
    for job in &jobs {
        if job.stonewall {
            for (earlier, start) in jobs.iter().zip(&starts) {
                from = from.max(end(earlier, *start, job)?);
            }
        }
        let start = from + job.delay;
        starts.push(start);
        for part in 0..job.parts() {
            groups.push(group(&file, job, &files, part, start)?);
        }
    }
    let warm_up = jobs.iter().max_by_key(|job| job.ramp);
    if let Some(job) = warm_up.filter(|job| !job.ramp.is_zero()) {
        let place = file.place(job.values.line("ramp_time"));
        set(
            &mut table,
            "run.warm_up",
            place,
            Value::Text(job.ramp.to_string()),
        )?;
    }
    set(&mut table, "workload", file.place(1), Value::List(groups))?;
    Ok((table, notes))
}

fn set(table: &mut Table, key: &str, place: Place, value: Value) -> Result<(), Error> {
    table.set_value(key, Node { value, place })
}

/// The seed, if a job gives one.
fn seed<'j, 'v>(jobs: &'j [Job<'v>]) -> Result<Option<(&'j Job<'v>, i64)>, Error> {
    for job in jobs {
        if let Some(seed) = job.values.whole("randseed", 0, i64::MAX as u64)? {
            return Ok(Some((job, seed as i64)));
        }
    }
    Ok(None)
}

/// The latest end of a job before a stonewall.
fn end(job: &Job<'_>, start: Nanos, waiting: &Job<'_>) -> Result<Nanos, Error> {
    let end = job.runtime.map(|runtime| start + job.ramp + runtime);
    end.ok_or_else(|| {
        let problem = format!(
            "nothing says when [{}] ends; give that job a runtime, or each job a file of its own",
            job.name
        );
        waiting.values.error("stonewall", problem)
    })
}

/// One or all copies of a job as an entry of `[[workload]]`. The place of each value is the line of its key.
fn group(
    file: &File,
    job: &Job<'_>,
    files: &Files,
    part: u32,
    start: Nanos,
) -> Result<Node, Error> {
    let (values, pattern) = (job.values, &job.pattern);
    let text = |value: &dyn ToString| Some(Value::Text(value.to_string()));
    let number = |value: u64| Some(Value::Integer(value as i64));
    let first_of = |keys: &[&'static str]| {
        let given = keys.iter().find(|key| values.get(key).is_some());
        *given.unwrap_or(&keys[0])
    };
    let is_one = job.parts() == 1;
    let name = if is_one {
        job.name.clone()
    } else {
        format!("{}.{part}", job.name)
    };
    let (think, gap, outstanding) = match job.pacing {
        Pacing::Closed { think, outstanding } => (text(&think), None, Some(outstanding)),
        Pacing::Open { gap, outstanding } => (None, text(&gap), outstanding),
    };
    let class = match job.class {
        Class::REAL_TIME => text(&"real-time"),
        Class::IDLE => text(&"idle"),
        _ => None,
    };
    let [reads, writes] = &pattern.sizes;
    let mixes = pattern.used() == [true, true];
    let sized = first_of(&["bssplit", "bsrange", "bs"]);
    let base = files.start(&job.target(part));
    let begin = base + job.begin(part)?;
    let range = match job.end(part)? {
        Some(end) => text(&format!("{}..{}", Bytes(begin), Bytes(base + end))),
        None if begin == 0 => None,
        None => return Err(values.error("offset", "needs size=BYTES beside it")),
    };
    let until = job.runtime.map(|runtime| start + job.ramp + runtime);
    let entries = [
        ("name", "name", text(&name)),
        (
            "processes",
            "numjobs",
            number(if is_one { job.copies.into() } else { 1 }),
        ),
        ("think", "thinktime", think),
        ("gap", first_of(&["rate", "rate_iops"]), gap),
        (
            "outstanding",
            "iodepth",
            outstanding.and_then(|depth| number(depth.into())),
        ),
        ("start", "startdelay", text(&start)),
        ("until", "runtime", until.and_then(|until| text(&until))),
        ("requests", "size", job.requests.and_then(number)),
        ("class", "prioclass", class),
        ("read_share", "rw", Some(Value::Float(pattern.read_share))),
        (
            "write_flags",
            "sync",
            job.forces.then(|| Value::Text("fua".to_owned())),
        ),
        (
            "fsync",
            first_of(&["fsync", "fdatasync"]),
            job.fsync.and_then(number),
        ),
        (
            "sequential_share",
            "rw",
            Some(Value::Float(pattern.sequential_share)),
        ),
        (
            "size",
            sized,
            text(if pattern.read_share > 0.0 {
                reads
            } else {
                writes
            }),
        ),
        (
            "write_size",
            sized,
            text(writes).filter(|_| mixes && reads != writes),
        ),
        (
            "writes_apart",
            "rw",
            (mixes && pattern.sequential_share > 0.0).then_some(Value::Flag(true)),
        ),
        (
            "size_step",
            sized,
            text(&Bytes(pattern.size_step)).filter(|_| pattern.size_step > 0),
        ),
        ("align", "ba", text(&Bytes(pattern.align))),
        (
            "places",
            "random_distribution",
            text(&pattern.places).filter(|_| pattern.places != Places::Uniform),
        ),
        (
            "first",
            "rw",
            text(&"beginning").filter(|_| !pattern.is_random),
        ),
        ("range", "size", range),
    ];
    let mut table = Table::default();
    for (key, of, value) in entries {
        if let Some(value) = value {
            set(&mut table, key, file.place(values.line(of)), value)?;
        }
    }
    Ok(Node {
        value: Value::Table(table),
        place: file.place(values.section.line),
    })
}
