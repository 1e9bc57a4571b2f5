//! `docs/schedulers.md` says what the registration table says.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_sched::{PolicyInfo, Value, policies};
use std::fmt::Write;
use std::path::Path;

const INTRO: &str = "\
<!-- Written by crates/sched/tests/docs.rs from the table of policies; HEADTIME_BLESS=1 writes it anew. -->
# Schedulers

A scheduler is named the same way in a flag, a scenario, a configuration and a result:

```text
NAME[:OPTION=VALUE]...          deadline:read_expire=250ms:fifo_batch=8
NAME(INNER)[:OPTION=VALUE]...   of a policy that wraps another
```

Lists are separated by commas. Durations have a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`),
weights are decimals without one.

*Overtaken* counts requests that arrived later and were served earlier. A bound in time is the
longest that a request is queued on a disk that serves one request after the other. The documentation
of the policy's module derives it.
";

fn page() -> String {
    let mut page = String::from(INTRO);
    page += "\n| name | idea | bound on waiting | options | source |\n|---|---|---|---|---|\n";
    for info in policies() {
        let names: Vec<String> = [format!("`{}`", info.title())]
            .into_iter()
            .chain(info.aliases.iter().map(|alias| format!("`{alias}`")))
            .collect();
        let number = info.number.map(|_| "`N`".to_string());
        let keys = info
            .options
            .iter()
            .map(|option| format!("`{}`", option.key));
        let options: Vec<String> = number.into_iter().chain(keys).collect();
        let options = if options.is_empty() {
            "none".to_string()
        } else {
            options.join(", ")
        };
        let row = [
            &names.join(", "),
            info.idea,
            info.bound,
            &options,
            info.source,
        ];
        let row = row.map(|cell| cell.replace('|', "\\|"));
        writeln!(page, "| {} |", row.join(" | ")).expect("strings do not fail");
    }
    for info in policies() {
        page += &section(info);
    }
    page
}

fn section(info: &PolicyInfo) -> String {
    let mut text = format!("\n## {}\n\n", info.title());
    let needs = match (info.needs.positioning, info.needs.curve) {
        (true, _) => " Needs a drive profile to know where sectors are.",
        (_, true) => " Needs a curve of service times.",
        _ => "",
    };
    let mut idea: Vec<char> = info.idea.chars().collect();
    idea[0] = idea[0].to_ascii_uppercase();
    let idea: String = idea.into_iter().collect();
    text += &format!("{idea}.{needs} Avoid it where {}.\n", info.avoid);
    if let Some(number) = info.number {
        text += &format!(
            "\n`N`, {} to {}, as in `{}{}`: {}.\n",
            number.min, number.max, info.name, number.example, number.help
        );
    }
    if !info.options.is_empty() {
        text += "\n| option | default | allowed | meaning |\n|---|---|---|---|\n";
        for option in info.options {
            let (low, high) = option.range;
            let allowed = match option.default {
                Value::Flag(_) => format!("{low}, {high}"),
                Value::Choice(_) => option.words.join(", "),
                Value::Counts(_) => {
                    format!("1 to {} of {low} to {high}", headtime_sched::Counts::MAX)
                }
                _ => format!("{low} to {high}"),
            };
            text += &format!(
                "| `{}` | {} | {allowed} | {} |\n",
                option.key, option.default, option.help
            );
        }
    }
    text
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedulers.md");
    let page = page();
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("docs");
        std::fs::write(&path, &page).expect("docs/schedulers.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/schedulers.md is stale; HEADTIME_BLESS=1 cargo test -p headtime-sched writes it anew"
    );
}
