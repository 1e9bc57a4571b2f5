//! Advice as lines for a terminal.

use super::commands::{Device, keep, set, undo};
use super::knobs::knobs;
use headtime_lab::advice::{
    Advice, DiskSetting, GapScan, Pick, Quicker, Role, RoleRun, SCAN_LEAST, Side, SpeedMeasure,
    Waits,
};
use headtime_lab::fio::MeasuredJob;
use headtime_lab::output::{TableColumn, Terminal, table};

/// Most changes that are listed by name.
const LISTED_MAX: usize = 3;

/// Formats a number with about three digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a time in ms.
pub(super) fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.0} s", ms / 1e3),
        ms if ms >= 1_000.0 => format!("{:.1} s", ms / 1e3),
        ms => format!("{} ms", short(ms)),
    }
}

/// A response time, or the age of the oldest request if none was served.
pub(super) fn of_served(run: &RoleRun, ms: f64) -> String {
    match run.speed > 0.0 {
        true => time(ms),
        false => format!("> {}", time(run.worst_ms)),
    }
}

/// Rate of a role in its unit.
pub(super) fn rate(role: &Role, run: &RoleRun) -> String {
    match role.measure {
        _ if run.speed <= 0.0 => "none".to_owned(),
        SpeedMeasure::Program => format!("{} MB/s", short(run.mb_s)),
        _ if run.iops > 0.0 && run.mb_s / run.iops > 0.1 => format!("{} MB/s", short(run.mb_s)),
        _ => format!("{}/s", short(run.iops)),
    }
}

/// Text of a role's value in a run.
type ShowRole = fn(&Role, &RoleRun) -> String;

/// Measures of a role in the table: name and text of the value.
const MEASURES: [(&str, ShowRole); 3] = [
    ("served", rate),
    ("median", |_, run| of_served(run, run.p50_ms)),
    ("slowest 1 %", |_, run| of_served(run, run.p99_ms)),
];

/// The whole text.
pub fn text(
    advice: &Advice,
    measured: &[MeasuredJob],
    device: &Device,
    terminal: Terminal,
) -> String {
    let [today, linux, headtime] =
        [0, advice.linux.tried, advice.headtime.tried].map(|at| &advice.tried[at]);
    let mut lines = Vec::new();
    let title = advice.title.as_deref().unwrap_or("The load");
    lines.push(format!("{title}, on {}", advice.drive));
    if let Some(doubt) = &device.doubt {
        lines.push(format!("This answer does not hold: {doubt}."));
    }
    lines.push(String::new());
    let rows: Vec<_> = (0..advice.roles.len())
        .flat_map(|at| MEASURES.map(|(name, show)| (at, name, show)))
        .collect();
    let role_names = rows
        .iter()
        .map(|(at, name, _)| match *name == MEASURES[0].0 {
            true => advice.roles[*at].name.clone(),
            false => String::new(),
        });
    let measure_names = rows.iter().map(|(_, name, _)| (*name).to_owned());
    let mut columns = vec![
        TableColumn::words("role", role_names),
        TableColumn::words("", measure_names),
    ];
    for (name, tried) in [("today", today), ("Linux", linux), ("Headtime", headtime)] {
        let cells = rows.iter();
        let cells = cells.map(|(at, _, show)| show(&advice.roles[*at], &tried.roles[*at]));
        columns.push(TableColumn::numbers(name, cells));
    }
    lines.push(table(&columns, terminal).trim_end().to_owned());
    lines.push(String::new());
    lines.push(format!("Today: {}.{}", today.setting, who_waits(advice)));
    lines.extend(beside_fio(advice, measured));
    lines.push(match advice.linux.is_today() {
        true => {
            "Without Headtime: leave the setting as it is; no other one is better by more than 3 %."
                .to_owned()
        }
        false => format!(
            "Without Headtime: {}: {}.",
            linux.setting,
            gains(advice, &linux.roles)
        ),
    });
    if !advice.linux.is_today() {
        lines.push(format!("  set   {}", set(&linux.setting, device)));
        lines.push(format!("  keep  {}", keep(&linux.setting, device)));
        lines.push(format!("  undo  {}", undo(&today.setting, device)));
        let knobs = knobs_of(advice).into_iter();
        lines.extend(knobs.map(|knob| format!("  or    {knob}")));
    }
    lines.push(format!("  sure  {}", sure(advice, &advice.linux)));
    if let Some((setting, said)) = quicker(advice, &advice.linux) {
        lines.push(format!("  or    {said}"));
        lines.push(format!("  set   {}", set(setting, device)));
    }
    lines.push(format!(
        "With Headtime in front: {}.",
        with_headtime(advice)
    ));
    if !is_like_linux(advice) {
        lines.push(format!("  sure  {}", sure(advice, &advice.headtime)));
        lines.extend(quicker(advice, &advice.headtime).map(|(_, said)| format!("  or    {said}")));
    }
    if let Some(scan) = &advice.scan {
        lines.push(format!("  scan  {}", scan_text(scan)));
    }
    lines.push(format!(
        "Simulated: {} runs of {} s. Not tried: {}.",
        advice.runs,
        short(advice.simulated_s),
        NOT_TRIED
    ));
    lines.join("\n") + "\n"
}

/// Settings of the programs on the disk that hold background work back, beside Linux's recommended setting.
pub(super) fn knobs_of(advice: &Advice) -> Vec<String> {
    let [today, then] = [0, advice.linux.tried].map(|at| &advice.tried[at]);
    knobs(&advice.roles, [&today.roles, &then.roles])
}

/// Latencies that fio measured, and the model's: a line for each job.
pub(super) fn beside_fio(advice: &Advice, measured: &[MeasuredJob]) -> Vec<String> {
    let model = advice.roles.iter().zip(&advice.tried[0].roles);
    let lines = model.filter_map(|(role, run)| {
        let fio = measured.iter().find(|job| job.name == role.name)?;
        Some(format!(
            "  fio measured of {}: median {}, slowest 1 % {}; the model has {}, {}",
            role.name,
            time(fio.p50_ms),
            time(fio.p99_ms),
            time(run.p50_ms),
            time(run.p99_ms)
        ))
    });
    lines.collect()
}

/// True if the settings that are recommended for both sides decide alike.
pub(super) fn is_like_linux(advice: &Advice) -> bool {
    let [linux, headtime] =
        [&advice.linux, &advice.headtime].map(|pick| &advice.tried[pick.tried].setting);
    linux.scheduler == headtime.scheduler
        && linux.depth == headtime.depth
        && linux.gate == headtime.gate
}

/// Gain of Headtime's setting.
pub(super) fn with_headtime(advice: &Advice) -> String {
    let tried = &advice.tried[advice.headtime.tried];
    if is_like_linux(advice) {
        return "nothing is gained; the best setting is the same".to_owned();
    }
    let note = match advice.headtime.gains {
        true => "",
        false => "; by the score that is no gain over the setting of Linux",
    };
    format!("{}: {}{note}", tried.setting, gains(advice, &tried.roles))
}

/// Linux settings that are not simulated.
pub(super) const NOT_TRIED: &str = "kyber, nr_requests";

/// Describes a background scan.
pub(super) fn scan_text(scan: &GapScan) -> String {
    let cost = 100.0 * (1.0 - scan.cost);
    let cost = match cost < 1.0 {
        true => "which costs the others less than 1 %".to_owned(),
        false => format!("which costs the others {cost:.0} %"),
    };
    if scan.mb_s < SCAN_LEAST {
        return "a scan finds hardly any gaps on the head's way; in idle time it can read more"
            .to_owned();
    }
    let queue = match scan.short_queue {
        true => ", with two commands in the drive,",
        false => "",
    };
    let long = match scan.days {
        days if days < 1.5 => format!("{:.1} hours", 24.0 * days),
        days => format!("{days:.0} days"),
    };
    format!(
        "a scan in gaps{queue} reads {} MB/s beside this, the disk in {long}, {cost}",
        short(scan.mb_s)
    )
}

/// Describes the disk's work during the requests of the slowest role.
fn who_waits(advice: &Advice) -> String {
    let slowest = advice
        .waits
        .iter()
        .enumerate()
        .filter(|(_, waits)| waits.requests > 0);
    let total = |waits: &Waits| waits.served_ms.iter().sum::<f64>() + waits.held_ms;
    let wait = |at: usize, waits: &Waits| total(waits) - waits.served_ms[at];
    let slowest = slowest.max_by(|(a, one), (b, other)| wait(*a, one).total_cmp(&wait(*b, other)));
    let starved = advice.roles.iter().zip(&advice.tried[0].roles);
    let starved = starved.filter(|(_, run)| run.speed <= 0.0);
    if let Some((role, run)) = starved.max_by(|(_, a), (_, b)| a.worst_ms.total_cmp(&b.worst_ms)) {
        return format!(
            " No request of {} is served; the oldest waits for {}.",
            role.name,
            time(run.worst_ms)
        );
    }
    let Some((at, waits)) = slowest else {
        return String::new();
    };
    let mut parts: Vec<(f64, String)> = waits
        .served_ms
        .iter()
        .enumerate()
        .map(|(of, ms)| match of == at {
            true => (*ms, format!("{} its own requests", time(*ms))),
            false => (*ms, format!("{} {}", time(*ms), advice.roles[of].name)),
        })
        .collect();
    parts.push((waits.held_ms, format!("{} nobody", time(waits.held_ms))));
    parts.retain(|(ms, _)| *ms >= 0.01 * total(waits));
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let parts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    format!(
        " A request of {} takes {}; meanwhile the disk serves: {}.",
        advice.roles[at].name,
        time(total(waits)),
        parts.join(", ")
    )
}

/// Speeds beside today's.
pub(super) fn gains(advice: &Advice, runs: &[RoleRun]) -> String {
    let today = &advice.tried[0].roles;
    let one = |((role, run), today): ((&Role, &RoleRun), &RoleRun)| {
        let ratio = run.speed / today.speed;
        match role.measure {
            _ if run.speed <= 0.0 => format!("{} starves", role.name),
            _ if today.speed <= 0.0 => format!("{} no longer starves", role.name),
            SpeedMeasure::Response => {
                format!("{} waits {} times as long", role.name, short(1.0 / ratio))
            }
            _ => format!("{} {} times as fast", role.name, short(ratio)),
        }
    };
    let all = advice.roles.iter().zip(runs).zip(today).map(one);
    all.collect::<Vec<_>>().join(", ")
}

/// Setting for a person who cares more for the slowest requests of one role, and its price.
pub(super) fn quicker<'a>(advice: &'a Advice, pick: &Pick) -> Option<(&'a DiskSetting, String)> {
    let Quicker { tried, role } = pick.quicker?;
    let (chosen, other) = (&advice.tried[pick.tried], &advice.tried[tried]);
    let said = format!(
        "{}, if the slowest requests of {} matter more: slowest 1 % {} in place of {}; {}",
        other.setting,
        advice.roles[role].name,
        time(other.roles[role].p99_ms),
        time(chosen.roles[role].p99_ms),
        gains(advice, &other.roles)
    );
    Some((&other.setting, said))
}

/// Share of runs in which a recommendation holds, and changes under which the recommendation fails.
pub(super) fn sure(advice: &Advice, pick: &Pick) -> String {
    let runs = format!(
        "{} seed{} and {} changes of the drive or the load",
        advice.seeds,
        if advice.seeds == 1 { "" } else { "s" },
        advice.changes.len()
    );
    let mut text = match pick.is_today() {
        true => format!("no setting of Linux is better by more than 3 % in the mean of {runs}"),
        false if pick.worse_if.is_empty() => format!("no worse than today in all of {runs}"),
        false => format!(
            "no worse than today in {:.0} % of {runs}",
            pick.no_worse_percent
        ),
    };
    let list = |items: Vec<String>| {
        let more = items.len().saturating_sub(LISTED_MAX);
        let mut items: Vec<String> = items.into_iter().take(LISTED_MAX).collect();
        if more > 0 {
            items.push(format!("{more} more"));
        }
        items.join(", ")
    };
    if !pick.worse_if.is_empty() && !pick.is_today() {
        let items = pick
            .worse_if
            .iter()
            .map(|(name, score)| format!("{name} ({})", short(*score)));
        text.push_str(&format!("; worse with {}", list(items.collect())));
    }
    if !pick.beaten_if.is_empty() {
        let items = pick.beaten_if.iter();
        let items =
            items.map(|(name, setting, ratio)| format!("{name} ({setting}: {})", short(*ratio)));
        text.push_str(&format!(
            "; another one is better with {}",
            list(items.collect())
        ));
    }
    text
}

/// Name of a side.
pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Linux => "Linux",
        Side::Headtime => "Headtime",
    }
}
