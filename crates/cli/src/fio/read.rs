//! The sections and settings of a job file.

use super::keys::{IDLE, MEANT, canonical, refused};
use headtime_config::{Error, Place};
use headtime_units::nearest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub text: String,
    pub line: usize,
}

/// A section with what `[global]` sections above it say.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub name: String,
    pub line: usize,
    pub settings: BTreeMap<String, Setting>,
}

/// A job file.
#[derive(Debug)]
pub(super) struct File {
    pub name: Arc<str>,
    pub jobs: Vec<Section>,
    /// Keys that do nothing here, with the first line of each.
    pub idle: BTreeMap<String, usize>,
}

impl File {
    pub fn error(&self, line: usize, key: &str, problem: impl Into<String>) -> Error {
        Error::new(self.place(line), key, problem)
    }

    pub fn place(&self, line: usize) -> Place {
        Place::Line(Arc::clone(&self.name), line)
    }

    /// Reads a job file, whose name errors give.
    pub fn read(name: &str, text: &str) -> Result<File, Error> {
        let mut file = File {
            name: name.into(),
            jobs: Vec::new(),
            idle: BTreeMap::new(),
        };
        let mut global = BTreeMap::new();
        // True in `[global]`, false in a job, `None` before the first section.
        let mut is_global = None;
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let number = number + 1;
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let Some(name) = name.strip_suffix(']') else {
                    return Err(file.error(number, "", format!("{line}: a section ends with ]")));
                };
                is_global = Some(name == "global");
                if name != "global" {
                    file.jobs.push(Section {
                        name: name.to_owned(),
                        line: number,
                        settings: global.clone(),
                    });
                }
                continue;
            }
            let (key, value) = match line.split_once('=') {
                Some((key, value)) => (key.trim_end(), value.trim_start()),
                // fio's switches need no value.
                None => (line, "1"),
            };
            let settings = match (is_global, file.jobs.last_mut()) {
                (Some(true), _) => &mut global,
                (Some(false), Some(job)) => &mut job.settings,
                _ => {
                    let problem = "stands in front of the first section, such as [global] or [job]";
                    return Err(file.error(number, key, problem));
                }
            };
            match meaning(key, value) {
                Ok(true) => {
                    let key = canonical(key).to_owned();
                    let text = value.to_owned();
                    settings.insert(key, Setting { text, line: number });
                }
                Ok(false) => {
                    file.idle.entry(key.to_owned()).or_insert(number);
                }
                Err(problem) => return Err(file.error(number, key, problem)),
            }
        }
        match file.jobs.is_empty() {
            true => Err(file.error(1, "", "no job; give a section such as [job]")),
            false => Ok(file),
        }
    }
}

/// Returns true if a key has a meaning here, false if it is idle.
fn meaning(key: &str, value: &str) -> Result<bool, String> {
    if let Some(file) = key.strip_prefix("include ") {
        return Err(format!(
            "other files are not included; copy the lines of {} here",
            file.trim()
        ));
    }
    if value.contains('$') {
        return Err(format!(
            "`{value}`: variables are not replaced; write the value"
        ));
    }
    let name = canonical(key);
    if MEANT.split_whitespace().any(|meant| meant == name) {
        return Ok(true);
    }
    if IDLE.split_whitespace().any(|idle| idle == name) {
        return Ok(false);
    }
    if let Some([_, off, instead]) = refused().find(|[refused, ..]| *refused == name) {
        if off.split_whitespace().any(|off| off == value) {
            return Ok(false);
        }
        let instead = if instead.is_empty() {
            String::new()
        } else {
            format!(" ({instead})")
        };
        return Err(format!(
            "`{value}` changes the load and is not simulated{instead}; leave the key out"
        ));
    }
    let all = MEANT.split_whitespace().chain(IDLE.split_whitespace());
    let guess = nearest(key, all.chain(refused().map(|[name, ..]| name)));
    let guess = guess.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    Err(format!(
        "is no key that is known here; {guess}Leave the key out if it does not change what is read and written"
    ))
}
