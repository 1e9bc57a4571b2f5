//! `headtime drive check`

use super::probe::device::{device, remote};
use crate::args::{Check, TextFormat};
use crate::commands::context::Context;
use crate::object::object;
use crate::progress::progress;
use headtime_lab::fault::Fault;
use headtime_lab::output::{self, TableColumn, table};
use headtime_lab::progress::Goal;
use headtime_lab::report::round;
use headtime_probe::check::{Agreement, Job, Score, common, jobs, run};
use headtime_probe::{Guarded, Modelled, Probe};
use headtime_units::Time;

/// Mean response time of random reads below which no arm has moved: a quarter of a turn at 15,000 a minute.
const SOONEST_MS: f64 = 1.0;

/// Runs the jobs on the disk and on its model, and prints the scorecard.
pub(in crate::commands) fn check(args: &Check, context: &mut Context<'_>) -> Result<(), Fault> {
    let profile = context.one_drive(&args.profile, args.one.as_deref())?;
    let mut model = Modelled::new(&profile, args.seed);
    match remote(&args.device, args.export.as_deref())? {
        Some(mut remote) => compare(&mut remote, &mut model, args, context),
        None => compare(&mut device(&args.device, false)?, &mut model, args, context),
    }
}

fn compare(
    disk: &mut dyn Probe,
    model: &mut Modelled,
    args: &Check,
    context: &mut Context<'_>,
) -> Result<(), Fault> {
    let disk = &mut Guarded::new(disk, None);
    let both = common(disk, model).map_err(Fault::input)?;
    let bytes = |side: &dyn Probe| side.capacity().bytes(side.sector_bytes()) as f64;
    if (bytes(disk) / bytes(model) - 1.0).abs() > 0.01 {
        context.note(&format!(
            "{} has {:.1} GB and {} {:.1} GB; the jobs stay within the smaller",
            disk.name(),
            bytes(disk) / 1e9,
            model.name(),
            bytes(model) / 1e9
        ));
    }
    let jobs = jobs(&both, args.reads, args.seed);
    let total: usize = jobs.iter().map(|job| job.reads.len()).sum();
    let progress = progress(context.progress);
    progress.begin(1);
    let mut task = progress.task(Goal::Time(Time::from_nanos(total as u64) - Time::ZERO));
    let mut answered = 0;
    let mut scores = Vec::new();
    for job in jobs {
        progress.say(job.name);
        let measured = run(disk, &job, &mut || {
            answered += 1;
            task.note(Time::from_nanos(answered), 0);
        });
        let measured =
            measured.map_err(|error| Fault::File(format!("{}: {error}", disk.name())))?;
        let modelled = run(model, &job, &mut || {}).expect("a model reads all its sectors");
        let score = Score::of(&measured, &modelled);
        scores.push((job, score));
    }
    progress.end();
    if scores[0].1.disk.mean < SOONEST_MS {
        context.note(&format!(
            "{} answers random reads too soon for a hard disk; a cache, or holes of a file, may answer",
            disk.name()
        ));
    }
    match args.format {
        TextFormat::Json => output::json(context.out, &json(&scores, disk, model, args)),
        TextFormat::Table => {
            let text = describe(&scores, disk, model, context);
            context.print(&text)
        }
    }
}

fn word(score: &Score) -> &'static str {
    match score.agreement() {
        Agreement::Agrees => "agrees",
        Agreement::Near => "near",
        Agreement::Differs => "differs",
    }
}

fn json(
    scores: &[(Job, Score)],
    disk: &dyn Probe,
    model: &dyn Probe,
    args: &Check,
) -> impl serde::Serialize + use<> {
    let times = |times: headtime_probe::check::Times| {
        let [mean, p50, p99] = [times.mean, times.p50, times.p99].map(|ms| round(ms, 6));
        object! { mean_ms: mean, p50_ms: p50, p99_ms: p99 }
    };
    let each = |(job, score): &(Job, Score)| {
        object! {
            job: job.name,
            outstanding: job.depth,
            disk: times(score.disk),
            model: times(score.model),
            ratio: round(score.ratio(), 6),
            demerit_ms: round(score.demerit_ms, 6),
            agreement: word(score),
            keys: job.keys,
        }
    };
    let jobs: Vec<_> = scores.iter().map(each).collect();
    object! {
        version: env!("CARGO_PKG_VERSION"),
        disk: disk.name(),
        profile: model.name(),
        reads: args.reads,
        seed: args.seed,
        jobs: jobs,
    }
}

fn describe(
    scores: &[(Job, Score)],
    disk: &dyn Probe,
    model: &dyn Probe,
    context: &Context<'_>,
) -> String {
    let numbers = |heading, of: fn(&Score) -> f64, places: usize| {
        let cell = move |(_, score): &(Job, Score)| format!("{:.places$}", of(score));
        TableColumn::numbers(heading, scores.iter().map(cell))
    };
    let columns = vec![
        TableColumn::words("job", scores.iter().map(|(job, _)| job.name.to_owned())),
        numbers("disk ms", |score| score.disk.mean, 3),
        numbers("model ms", |score| score.model.mean, 3),
        numbers("ratio", Score::ratio, 2),
        numbers("disk p99", |score| score.disk.p99, 2),
        numbers("model p99", |score| score.model.p99, 2),
        numbers("demerit ms", |score| score.demerit_ms, 3),
        TableColumn::words("", scores.iter().map(|(_, score)| word(score).to_owned())),
    ];
    let agree = scores
        .iter()
        .filter(|(_, score)| score.agreement() == Agreement::Agrees)
        .count();
    let mut text = format!("{} · {}\n\n", disk.name(), model.name());
    text.push_str(&table(&columns, context.terminal));
    text.push_str(&format!("\n{agree} of {} jobs agree.\n", scores.len()));
    for (job, score) in scores {
        if score.agreement() == Agreement::Differs {
            text.push_str(&format!("{}: see {} of the profile.\n", job.name, job.keys));
        }
    }
    text
}
