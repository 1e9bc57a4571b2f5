//! `headtime report`: lines, page, JSON, and wrong questions.

use super::common::{ended, json, number, scratch, stdout};
use std::fs;

/// A question that takes no time.
const SHORT: [&str; 7] = [
    "report",
    "--like",
    "vm+scrub",
    "--profile",
    "exos-x18",
    "--seeds",
    "1",
];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let duration = ["--set", "run.duration=7s", "--set", "run.warm_up=2s"];
    SHORT.iter().chain(&duration).chain(more).copied().collect()
}

#[test]
fn readers_starve_beside_a_scrub_today_and_not_under_the_recommended_settings() {
    let answer = json(&short(&["--format", "json"]));
    let tried = answer["tried"].as_array().unwrap();
    let reads =
        |at: &serde_json::Value| number(&tried[at.as_u64().unwrap() as usize]["roles"][0]["iops"]);
    let today = number(&tried[0]["roles"][0]["iops"]);
    assert!(today < 10.0, "{today}");
    for side in ["linux", "headtime"] {
        let recommended = reads(&answer[side]["tried"]);
        assert!(recommended > 5.0 * today, "{side}: {recommended}");
    }
    // Most of a reader's wait is for the scrub.
    let waits = &answer["waits"][0];
    assert!(
        number(&waits["served_ms"][1]) > 10.0 * number(&waits["served_ms"][0]),
        "{waits}"
    );
}

#[test]
fn the_answer_has_lines_to_set_to_keep_and_to_undo_and_a_page_that_asks_no_network() {
    let folder = scratch("report");
    let page = folder.join("page.html");
    let text = stdout(&short(&["-o", page.to_str().unwrap(), "--jobs", "1"]));
    for wanted in [
        "/sys/block/sdX/queue/scheduler",
        "/sys/block/sdX/device/queue_depth",
        "  keep  echo 'ACTION==\"add|change\"",
        "  undo  rm -f /etc/udev/rules.d/99-headtime.rules; echo mq-deadline",
        "A request of vm takes",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    for wanted in [
        "Without Headtime",
        "depth = ",
        "uPlot=function",
        "All settings that were tried",
    ] {
        assert!(html.contains(wanted), "{wanted}");
    }
    for from in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(from), "{from}");
    }
}

#[test]
fn processes_of_a_trace_become_roles_by_name_and_by_number() {
    let folder = scratch("report-roles");
    let trace = folder.join("two.csv");
    let mut text =
        "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags,process_name\n".to_owned();
    for request in 0..200_u64 {
        let (arrival, is_scrub) = (10_000_000 * request, request % 2 == 0);
        let (sector, process) = match is_scrub {
            true => (2048 * request, "7,0,z_rd_int"),
            false => (7_919 * request % 1_000_000 * 8, "8,0,qemu"),
        };
        let completion = arrival + 8_000_000;
        text.push_str(&format!(
            "{arrival},{completion},0,read,{sector},8,{process}\n"
        ));
    }
    fs::write(&trace, text).unwrap();
    let trace = trace.to_str().unwrap();
    let question = ["report", trace, "--profile", "wd5000aaks", "--seeds", "1"];
    let roles = |role: &str| {
        let more = ["--role", role, "--format", "json"];
        let answer = json(&[&question[..], &more].concat());
        let roles = answer["roles"].as_array().unwrap().clone();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        roles
            .iter()
            .map(|role| (text(&role["name"]), text(&role["class"])))
            .collect::<Vec<_>>()
    };
    let pair = |name: &str, class: &str| (name.to_owned(), class.to_owned());
    let wanted = [pair("scrub", "idle"), pair("others", "best-effort")];
    assert_eq!(roles("scrub:idle=z_rd*"), wanted);
    assert_eq!(roles("scrub:idle=7"), wanted);
    assert_eq!(roles("both=qemu,z_rd_int"), [pair("both", "best-effort")]);
    let with_a_role_without_requests = roles("none=nobody");
    assert_eq!(
        with_a_role_without_requests,
        [pair("others", "best-effort")]
    );
    let today = ["--today", "none@4", "--jobs", "1"];
    let text = stdout(&[&question[..], &today].concat());
    assert!(
        text.contains("Today: none, 4 commands in the drive."),
        "{text}"
    );
}

#[test]
fn a_job_of_fio_that_ends_before_the_warm_up_is_answered() {
    let job = scratch("report-fio").join("short.fio");
    let text = "[reader]\nrw=randread\nbs=4k\nsize=1g\nruntime=4\ndirect=1\nnumjobs=2\n";
    fs::write(&job, text).unwrap();
    let question = ["report", job.to_str().unwrap(), "--profile", "wd5000aaks"];
    let more = ["--seeds", "1", "--jobs", "1", "--format", "json"];
    let answer = json(&[&question[..], &more].concat());
    // Copies with a file each are one role.
    assert_eq!(answer["roles"].as_array().unwrap().len(), 1);
    assert_eq!(answer["roles"][0]["name"], "reader");
    let iops = number(&answer["tried"][0]["roles"][0]["iops"]);
    assert!((50.0..200.0).contains(&iops), "{iops}");
}

#[test]
fn a_wrong_question_says_what_to_do() {
    let folder = scratch("report-wrong");
    let wrong = folder.join("wrong.json");
    fs::write(&wrong, "{\"jobs\": 3}").unwrap();
    for (args, code, problem) in [
        (vec!["report"], 2, "<LOAD>"),
        (
            vec!["report", "--like", "web", "--profile", "exos-x18"],
            2,
            "allowed are vm+scrub",
        ),
        (
            vec!["report", "--like", "rebuild"],
            2,
            "give --profile NAME|FILE",
        ),
        (
            vec!["report", "tiny.trace", "--like", "rebuild"],
            2,
            "cannot be used with",
        ),
        (
            vec!["report", "--like", "rebuild", "--profile", "18TB-7000"],
            3,
            "allowed are 5400, 7200, 10000, 15000",
        ),
        (
            vec![
                "report",
                "--like",
                "rebuild",
                "--profile",
                "exos-x18",
                "-o",
                "page.pdf",
            ],
            2,
            "ends in .html",
        ),
        (
            vec![
                "report",
                "--like",
                "rebuild",
                "--profile",
                "exos-x18",
                "--today",
                "kyber",
            ],
            2,
            "kyber",
        ),
        (
            vec![
                "report",
                "--like",
                "rebuild",
                "--profile",
                "exos-x18",
                "--today",
                "none@0",
            ],
            2,
            "from 1 to 256",
        ),
        (
            vec!["report", "small.toml", "--role", "a=b"],
            2,
            "--role and the options for reading are for traces",
        ),
        (
            vec![
                "report",
                "tiny.trace",
                "--profile",
                "atlas10k",
                "--role",
                "a",
            ],
            2,
            "write NAME[:CLASS]=PROCESS",
        ),
        (
            vec!["report", "none.trace", "--profile", "atlas10k"],
            4,
            "none.trace",
        ),
        (
            vec!["report", wrong.to_str().unwrap(), "--profile", "atlas10k"],
            3,
            "is no output of fio",
        ),
    ] {
        let (got, text) = ended(&args);
        assert_eq!(got, code, "{args:?}: {text}");
        assert!(text.contains(problem), "{args:?}: {text}");
    }
}
