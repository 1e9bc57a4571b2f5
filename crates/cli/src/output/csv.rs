//! A report as CSV: one line per run.

use crate::report::{Report, Run, Spread};

/// The text, with a heading.
pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    for (number, run) in report.runs.iter().enumerate() {
        let fields = fields(run);
        if number == 0 {
            let names: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
            text.push_str(&names.join(","));
            text.push('\n');
        }
        let values: Vec<String> = fields
            .into_iter()
            .map(|(_, value)| escaped(&value))
            .collect();
        text.push_str(&values.join(","));
        text.push('\n');
    }
    text
}

fn fields(run: &Run) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut add =
        |name: &str, value: &dyn ToString| fields.push((name.to_owned(), value.to_string()));
    add("scheduler", &run.scheduler);
    add("drive", &run.drive);
    add("depth", &run.depth);
    add("firmware", &run.firmware);
    add("merge", &run.merge);
    add("commit_ahead", &run.commit_ahead);
    add("plug", &run.plug);
    add("hide_processes", &run.hide_processes);
    add("repeats", &run.repeats);
    add("warm_up_s", &run.warm_up_s);
    add("requests", &run.requests);
    add("reads", &run.reads);
    add("failed", &run.failed);
    add("unfinished", &run.unfinished);
    add("oldest_unfinished_ms", &run.oldest_unfinished_ms);
    add("simulated_s", &run.simulated_s);
    add("throughput_mb_s", &run.throughput_mb_s);
    add("iops", &run.iops);
    add("fairness", &run.fairness);
    for (what, spread) in [
        ("response", &run.response_ms),
        ("queue", &run.queue_ms),
        ("device", &run.device_ms),
    ] {
        let Spread {
            mean,
            p50,
            p90,
            p95,
            p99,
            p999,
            max,
        } = spread;
        for (name, value) in [
            ("mean", mean),
            ("p50", p50),
            ("p90", p90),
            ("p95", p95),
            ("p99", p99),
            ("p999", p999),
            ("max", max),
        ] {
            add(&format!("{what}_{name}_ms"), value);
        }
    }
    for ((name, _), time) in crate::plot::PARTS.iter().zip(run.head_time.parts()) {
        add(&format!("head_{}_s", name.replace('-', "_")), &time);
    }
    add("issued", &run.engine.issued);
    add("merged", &run.engine.merged);
    add("held", &run.engine.held);
    add("idled", &run.engine.idled);
    add("queued_max", &run.engine.queued_max);
    add("streams_established", &run.waits.streams_established);
    add("streams", &run.waits.streams);
    add("waits", &run.waits.waits);
    add("waits_won", &run.waits.waits_won);
    add("waits_lost", &run.waits.waits_lost);
    fields
}

/// A field as RFC 4180 wants it.
pub fn escaped(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(escaped("stream(a,b)"), "\"stream(a,b)\"");
        assert_eq!(escaped("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(escaped("noop"), "noop");
    }
}
