//! Advice as one HTML file that needs no network: tables, an SVG of who waits for whom, and curves that uPlot draws.

use super::commands::{Device, configuration, keep, set, undo};
use super::text::{
    NOT_TRIED, beside_fio, gains, is_like_linux, knobs_of, of_served, quicker, rate, scan_text,
    side, sure, time, with_headtime,
};
use headtime_lab::advice::{Advice, Pick, Tried};
use headtime_lab::fio::MeasuredJob;
use serde::Serialize;
use std::fmt::Write;

const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Colours of roles, which can be told apart on white and on black.
const COLOURS: [&str; 8] = [
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99",
];
/// Colour of time in which the disk served nobody.
const NOBODY: &str = "#9aa5b1";

/// A text without letters that mean something in HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

/// A picture and a table as one page.
pub fn results(title: &str, svg: &str, table: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         <title>{0}</title>\n<style>\n{STYLE}body {{ max-width: 90rem; }} pre {{ white-space: pre; }} svg {{ max-width: 100%; height: auto; }}\n\
         </style>\n</head>\n<body>\n<h1>{0}</h1>\n<pre>{1}</pre>\n{svg}\n<p class=faint>Headtime {2}</p>\n</body>\n</html>\n",
        escaped(title),
        escaped(table),
        env!("CARGO_PKG_VERSION")
    )
}

/// Curves for the script.
#[derive(Serialize)]
struct Curves<'a> {
    settings: Vec<String>,
    roles: Vec<RoleCurves<'a>>,
}

#[derive(Serialize)]
struct RoleCurves<'a> {
    name: &'a str,
    lines: Vec<Vec<(f64, f64)>>,
}

/// The whole page.
pub fn page(advice: &Advice, measured: &[MeasuredJob], device: &Device, belief: &str) -> String {
    let title = advice.title.as_deref().unwrap_or("A load");
    let mut body = String::new();
    let mut put = |text: String| {
        body.push_str(&text);
        body.push('\n');
    };
    put(format!("<h1>{}</h1>", escaped(title)));
    put(format!(
        "<p class=faint>Drive {}. Simulated: {} runs of {:.0} s, seeds and changes of the second round included. Headtime {}.</p>",
        escaped(&advice.drive),
        advice.runs,
        advice.simulated_s,
        env!("CARGO_PKG_VERSION")
    ));
    if let Some(doubt) = &device.doubt {
        put(format!(
            "<p class=doubt><b>This answer does not hold:</b> {}.</p>",
            escaped(doubt)
        ));
    }
    put(format!(
        "<h2>Today: {}</h2>",
        escaped(&advice.tried[0].setting.to_string())
    ));
    put(waits(advice));
    for line in beside_fio(advice, measured) {
        put(format!("<p>{}.</p>", escaped(line.trim())));
    }
    put("<div class=cards>".to_owned());
    put(linux(advice, device));
    put(headtime(advice, device, belief));
    put("</div>".to_owned());
    put("<h2>How long requests take</h2>\n<p class=faint>Share of requests that were done within a time. Drag to zoom, double-click to go back.</p>".to_owned());
    for (at, role) in advice.roles.iter().enumerate() {
        put(format!(
            "<h3>{}</h3>\n<div class=chart id=chart{at}></div>",
            escaped(&role.name)
        ));
    }
    put(all_settings(advice));
    put(changes(advice));
    let data = serde_json::to_string(&curves(advice)).expect("numbers and texts are JSON");
    // No text can end or nest the script element.
    let data = data.replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         <title>{}</title>\n<style>\n{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<button id=theme>light / dark</button>\n{body}\
         <script type=\"application/json\" id=curves>{data}</script>\n<script>{UPLOT}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn curves(advice: &Advice) -> Curves<'_> {
    let settings = advice.curves.iter().map(|(at, _)| match *at {
        0 => "today".to_owned(),
        at => advice.tried[at].setting.to_string(),
    });
    let roles = advice.roles.iter().enumerate().map(|(at, role)| {
        let lines = advice.curves.iter().map(|(_, roles)| {
            let points = roles[at].iter();
            points
                .map(|(ms, share)| (rounded(*ms), rounded(*share)))
                .collect()
        });
        RoleCurves {
            name: &role.name,
            lines: lines.collect(),
        }
    });
    Curves {
        settings: settings.collect(),
        roles: roles.collect(),
    }
}

fn rounded(value: f64) -> f64 {
    headtime_lab::report::round(value, 4)
}

/// Bars: time of the disk for each role, during the requests of a role.
fn waits(advice: &Advice) -> String {
    let total =
        |at: usize| advice.waits[at].served_ms.iter().sum::<f64>() + advice.waits[at].held_ms;
    let longest = (0..advice.waits.len()).map(total).fold(1e-9, f64::max);
    let (left, width, row) = (150.0, 620.0, 34.0);
    let height = 26.0 + row * advice.waits.len() as f64;
    let mut svg = format!("<svg class=waits viewBox=\"0 0 880 {height}\" role=img width=100%>");
    for (at, (role, waits)) in advice.roles.iter().zip(&advice.waits).enumerate() {
        let y = 4.0 + row * at as f64;
        let _ = write!(
            svg,
            "<text x=0 y={}>{}</text>",
            y + 16.0,
            escaped(&role.name)
        );
        let served = waits.served_ms.iter().enumerate();
        let parts = served.map(|(of, ms)| {
            (
                COLOURS[of % COLOURS.len()],
                *ms,
                advice.roles[of].name.as_str(),
            )
        });
        let mut x = left;
        for (colour, ms, who) in parts.chain([(NOBODY, waits.held_ms, "nobody")]) {
            let wide = width * ms / longest;
            let _ = write!(
                svg,
                "<rect x={x:.1} y={y} width={wide:.1} height=22 fill=\"{colour}\"><title>{}: {}</title></rect>",
                escaped(who),
                time(ms)
            );
            x += wide;
        }
        let _ = write!(
            svg,
            "<text x={:.1} y={}>{}</text>",
            x + 6.0,
            y + 16.0,
            time(total(at))
        );
    }
    let mut x = left;
    let y = height - 6.0;
    let names = advice.roles.iter().enumerate();
    let names = names.map(|(at, role)| (COLOURS[at % COLOURS.len()], role.name.as_str()));
    for (colour, name) in names.chain([(NOBODY, "nobody")]) {
        let _ = write!(
            svg,
            "<rect x={x} y={} width=10 height=10 fill=\"{colour}\"/><text x={} y={y}>{}</text>",
            y - 9.0,
            x + 14.0,
            escaped(name)
        );
        x += 34.0 + 8.0 * name.chars().count() as f64;
    }
    svg.push_str("</svg>");
    format!(
        "<p>What the disk serves while a request of a role is under way, in the mean:</p>\n{svg}"
    )
}

fn pick_rows(advice: &Advice, tried: &Tried) -> String {
    let today = &advice.tried[0].roles;
    let mut rows =
        "<table><tr><th class=w>role<th>today<th>then<th>slowest 1 % today<th>then</tr>".to_owned();
    for ((role, was), is) in advice.roles.iter().zip(today).zip(&tried.roles) {
        let class = |better: bool| if better { "gain" } else { "loss" };
        let _ = write!(
            rows,
            "<tr><td class=w>{}<td>{}<td class={}>{}<td>{}<td class={}>{}</tr>",
            escaped(&role.name),
            rate(role, was),
            class(is.speed >= was.speed),
            rate(role, is),
            of_served(was, was.p99_ms),
            class(is.speed > 0.0 && (was.speed <= 0.0 || is.p99_ms <= was.p99_ms)),
            of_served(is, is.p99_ms)
        );
    }
    rows + "</table>"
}

fn how_sure(advice: &Advice, pick: &Pick) -> String {
    format!("<p><b>How sure:</b> {}.</p>", escaped(&sure(advice, pick)))
}

fn linux(advice: &Advice, device: &Device) -> String {
    let tried = &advice.tried[advice.linux.tried];
    let mut text = "<div class=card><h2>Without Headtime</h2>".to_owned();
    if advice.linux.is_today() {
        text.push_str(
            "<p>Leave the setting as it is: no other one is better by more than 3 %.</p>",
        );
    } else {
        let _ = write!(
            text,
            "<p><b>{}</b>: {}.</p>{}<pre>{}</pre><p>Over reboots:</p><pre>{}</pre><p>Undo:</p><pre>{}</pre>",
            escaped(&tried.setting.to_string()),
            escaped(&gains(advice, &tried.roles)),
            pick_rows(advice, tried),
            escaped(&set(&tried.setting, device)),
            escaped(&keep(&tried.setting, device)),
            escaped(&undo(&advice.tried[0].setting, device))
        );
        let knobs = knobs_of(advice);
        if !knobs.is_empty() {
            let knobs = escaped(&knobs.join("\n"));
            let _ = write!(text, "<p>Or, not simulated:</p><pre>{knobs}</pre>");
        }
    }
    text.push_str(&how_sure(advice, &advice.linux));
    if let Some((setting, said)) = quicker(advice, &advice.linux) {
        let set = escaped(&set(setting, device));
        let _ = write!(text, "<p><b>Or</b> {}.</p><pre>{set}</pre>", escaped(&said));
    }
    text + "</div>"
}

fn headtime(advice: &Advice, device: &Device, belief: &str) -> String {
    let tried = &advice.tried[advice.headtime.tried];
    let mut text = format!(
        "<div class=card><h2>With Headtime in front</h2><p>{}.</p>{}<pre>{}</pre>",
        escaped(&with_headtime(advice)),
        pick_rows(advice, tried),
        escaped(&configuration(
            &tried.setting,
            &advice.roles,
            belief,
            device
        ))
    );
    if !is_like_linux(advice) {
        text.push_str(&how_sure(advice, &advice.headtime));
        if let Some((_, said)) = quicker(advice, &advice.headtime) {
            let _ = write!(text, "<p><b>Or</b> {}.</p>", escaped(&said));
        }
    }
    if let Some(scan) = &advice.scan {
        let _ = write!(text, "<p><b>Scan:</b> {}.</p>", escaped(&scan_text(scan)));
    }
    text + "</div>"
}

fn all_settings(advice: &Advice) -> String {
    let mut text = "<h2>All settings that were tried</h2>\n<p>The score is the speed of each role over today's, as a geometric mean in which class idle \
        has a quarter of the weight of others. Settings of the second round have means over all seeds, the others are single runs.</p>\n\
        <div class=wide><table><tr><th class=w>setting<th class=w>by<th>score"
        .to_owned();
    for role in &advice.roles {
        let name = escaped(&role.name);
        let _ = write!(text, "<th>{name}<th>median<th>slowest 1 %<th>worst");
    }
    text.push_str("</tr>\n");
    for (at, tried) in advice.tried.iter().enumerate() {
        let best = at == advice.linux.tried || at == advice.headtime.tried;
        let class = if best { " class=best" } else { "" };
        let note = match (at, tried.second_round) {
            (0, _) => " (today)",
            (_, true) => "",
            (_, false) => " (one run)",
        };
        let _ = write!(
            text,
            "<tr{class}><td class=w>{}{note}<td class=w>{}<td>{:.2}",
            escaped(&tried.setting.to_string()),
            side(tried.setting.side),
            tried.score
        );
        for (role, run) in advice.roles.iter().zip(&tried.roles) {
            let _ = write!(
                text,
                "<td>{}<td>{}<td>{}<td>{}",
                rate(role, run),
                of_served(run, run.p50_ms),
                of_served(run, run.p99_ms),
                time(run.worst_ms)
            );
        }
        text.push_str("</tr>\n");
    }
    let _ = write!(
        text,
        "</table></div>\n<p class=faint>Not tried: {NOT_TRIED}.</p>"
    );
    text
}

fn changes(advice: &Advice) -> String {
    let names = advice.changes.iter().map(|change| escaped(&change.name));
    format!(
        "<h2>What the second round varies</h2>\n<p>{} seeds; and one at a time, values that the profile does not know for sure, and a little more load: {}.</p>",
        advice.seeds,
        names.collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums of the released package.
    #[test]
    fn the_vendored_script_is_the_released_one() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/vendor/uplot");
        let check = std::process::Command::new("sha256sum")
            .args(["-c", "--quiet", "SHA256SUMS"])
            .current_dir(dir)
            .status();
        assert!(check.unwrap().success());
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escaped("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }
}
