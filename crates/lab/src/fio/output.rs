//! fio's output as JSON (`--output-format=json`): its options are the job, and its percentiles stand beside the model's.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Response times that fio measured of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredJob {
    /// Name of the job.
    pub name: String,
    /// Median completion latency in ms, of reads, or of writes if the job has no reads.
    pub p50_ms: f64,
    /// 99th percentile, likewise.
    pub p99_ms: f64,
}

#[derive(Deserialize)]
struct FioOutput {
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    jobs: Vec<OutputJob>,
}

#[derive(Deserialize)]
struct OutputJob {
    jobname: String,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
}

#[derive(Default, Deserialize)]
struct Direction {
    #[serde(default)]
    total_ios: u64,
    #[serde(default)]
    clat_ns: Latency,
}

#[derive(Default, Deserialize)]
struct Latency {
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Latency {
    /// The latency that `percent` of the requests do not exceed, in ms.
    fn at(&self, percent: f64) -> Option<f64> {
        let mut all = self.percentile.iter();
        all.find_map(|(key, ns)| (key.parse() == Ok(percent)).then_some(ns / 1e6))
    }
}

/// Keys of the job that name fio's own output.
const OF_OUTPUT: [&str; 3] = ["name", "output", "output-format"];

/// Makes the text of a job file from fio's JSON, and returns what fio measured. Several entries of one name are copies of one job.
///
/// # Errors
///
/// If the text is no such JSON.
pub fn job(text: &str) -> Result<(String, Vec<MeasuredJob>), String> {
    // fio can write lines in front of the JSON.
    let start = text
        .find('{')
        .ok_or("is no output of fio: it has no JSON")?;
    let mut outputs = serde_json::Deserializer::from_str(&text[start..]).into_iter::<FioOutput>();
    let output = match outputs.next() {
        Some(Ok(output)) => output,
        Some(Err(error)) => return Err(format!("is no output of fio in JSON: {error}")),
        None => return Err("is no output of fio: it has no JSON".to_owned()),
    };
    let section = |name: &str, options: &BTreeMap<String, String>| {
        let lines = options
            .iter()
            .filter(|(key, _)| !OF_OUTPUT.contains(&key.as_str()));
        let lines = lines.map(|(key, value)| match value.as_str() {
            "" => format!("{key}\n"),
            value => format!("{key}={value}\n"),
        });
        format!("[{name}]\n{}", lines.collect::<String>())
    };
    let mut job = section("global", &output.global);
    let (mut measured, mut names) = (Vec::new(), Vec::new());
    for one in &output.jobs {
        if names.contains(&&one.jobname) {
            continue;
        }
        names.push(&one.jobname);
        job.push_str(&section(&one.jobname, &one.options));
        let of = if one.read.total_ios > 0 {
            &one.read
        } else {
            &one.write
        };
        if let (Some(p50_ms), Some(p99_ms)) = (of.clat_ns.at(50.0), of.clat_ns.at(99.0)) {
            measured.push(MeasuredJob {
                name: one.jobname.clone(),
                p50_ms,
                p99_ms,
            });
        }
    }
    Ok((job, measured))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"note: a line of fio
{ "fio version": "fio-3.33", "global options": { "direct": "1", "ioengine": "libaio", "output-format": "json" },
  "jobs": [
    { "jobname": "db", "job options": { "name": "db", "rw": "randread", "bs": "8k", "numjobs": "2", "group_reporting": "" },
      "read": { "total_ios": 9, "clat_ns": { "percentile": { "50.000000": 8000000, "99.000000": 21000000 } } } },
    { "jobname": "db", "job options": { "name": "db", "rw": "randread", "bs": "8k", "numjobs": "2" } },
    { "jobname": "log", "job options": { "rw": "write" },
      "read": { "total_ios": 0 }, "write": { "total_ios": 5, "clat_ns": { "percentile": { "50.000000": 1e6, "99.000000": 2e6 } } } }
  ] }
"#;

    #[test]
    fn the_options_are_the_job_and_the_percentiles_are_measured() {
        let (text, measured) = job(OUTPUT).unwrap();
        let wanted = "[global]\ndirect=1\nioengine=libaio\n[db]\nbs=8k\ngroup_reporting\nnumjobs=2\nrw=randread\n[log]\nrw=write\n";
        assert_eq!(text, wanted);
        let of = |name: &str, p50_ms, p99_ms| MeasuredJob {
            name: name.to_owned(),
            p50_ms,
            p99_ms,
        };
        assert_eq!(measured, [of("db", 8.0, 21.0), of("log", 1.0, 2.0)]);
    }

    #[test]
    fn other_texts_are_errors() {
        for text in [
            "",
            "rw=read",
            "[1, 2]",
            "{}",
            "{\"jobs\": 3}",
            "{\"jobs\": [",
        ] {
            assert!(
                job(text).unwrap_err().starts_with("is no output of fio"),
                "{text}"
            );
        }
    }
}
