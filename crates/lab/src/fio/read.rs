//! The sections and settings of a job file, and values as fio writes them.

use super::keys::{canonical, meaning};
use headtime_config::{Error, Place};
use headtime_units::Nanos;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// A key, as the file has it, with its value.
#[derive(Clone, Debug)]
struct Setting {
    key: String,
    text: String,
    line: usize,
}

/// A section with what `[global]` sections above it say.
#[derive(Debug)]
pub(super) struct Section {
    file: Arc<str>,
    pub name: String,
    line: usize,
    settings: BTreeMap<String, Setting>,
}

impl Section {
    /// The line of a key, under the name that the file has; or the line of the section.
    pub fn place(&self, key: &str) -> Place {
        let setting = self.settings.get(key);
        let (line, key) = setting.map_or((self.line, key), |setting| (setting.line, &setting.key));
        Place::Key(Arc::clone(&self.file), line, key.into())
    }

    /// The line of the section, and its name.
    pub fn start(&self) -> Place {
        let name = format!("[{}]", self.name);
        Place::Key(Arc::clone(&self.file), self.line, name.into())
    }

    /// An error about the value of a key.
    pub fn error(&self, key: &str, problem: impl Display) -> Error {
        let text = self.text(key);
        let text = text.map_or_else(String::new, |text| format!("`{text}`: "));
        Error::new(self.place(key), key, format!("{text}{problem}"))
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(|setting| setting.text.as_str())
    }

    /// Returns true if the file has a setting under this one of its names.
    pub fn is_written(&self, key: &str) -> bool {
        let setting = self.settings.get(canonical(key));
        setting.is_some_and(|setting| setting.key == key)
    }

    /// Reads the value of a key, if the key is there.
    pub fn get<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let value = self.text(key).map(read).transpose();
        value.map_err(|problem| self.error(key, problem))
    }
}

/// Reads a job file, whose name errors give: its jobs, and the idle keys with the first line of each.
pub(super) fn read(
    name: &str,
    text: &str,
) -> Result<(Vec<Section>, BTreeMap<String, usize>), Error> {
    let file: Arc<str> = name.into();
    let (mut jobs, mut idle) = (Vec::<Section>::new(), BTreeMap::new());
    let mut global = BTreeMap::<String, Setting>::new();
    // The line of the section; true in `[global]`.
    let mut section = None;
    for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
        let error = |key: &str, problem: String| {
            Error::new(Place::Line(Arc::clone(&file), number), key, problem)
        };
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']');
            let name = name.ok_or_else(|| error("", format!("{line}: a section ends with ]")))?;
            section = Some((number, name == "global"));
            if name != "global" {
                jobs.push(Section {
                    file: Arc::clone(&file),
                    name: name.to_owned(),
                    line: number,
                    settings: global.clone(),
                });
            }
            continue;
        }
        // fio's switches need no value.
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        let (key, value) = (key.trim_end(), value.trim_start());
        let (begin, settings) = match (section, jobs.last_mut()) {
            (Some((begin, true)), _) => (begin, &mut global),
            (Some((begin, false)), Some(job)) => (begin, &mut job.settings),
            _ => {
                let problem = "stands in front of the first section, such as [global] or [job]";
                return Err(error(key, problem.to_owned()));
            }
        };
        if !meaning(key, value).map_err(|problem| error(key, problem))? {
            idle.entry(key.to_owned()).or_insert(number);
            continue;
        }
        let setting = Setting {
            key: key.to_owned(),
            text: value.to_owned(),
            line: number,
        };
        if let Some(other) = settings.insert(canonical(key).to_owned(), setting)
            && other.key != key
            && other.line > begin
        {
            let problem = format!("not together with {}; give one of them", other.key);
            return Err(error(key, problem));
        }
    }
    match jobs.is_empty() {
        true => Err(Error::new(
            Place::Line(file, 1),
            "",
            "no job; give a section such as [job]",
        )),
        false => Ok((jobs, idle)),
    }
}

/// A number of bytes. fio takes `4k`, `4kb` and `4ki` for 4096 bytes, and `4kib` for 4000; so measured with fio 3.33.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1 << 60;
    let lower = text.to_ascii_lowercase();
    let end = lower.find(|digit: char| !digit.is_ascii_digit());
    let (digits, unit) = lower.split_at(end.unwrap_or(lower.len()));
    let (prefix, base) = match unit.strip_suffix("ib") {
        Some(prefix) => (prefix, 1000_u64),
        None => (unit.strip_suffix(['b', 'i']).unwrap_or(unit), 1024),
    };
    let power = ["", "k", "m", "g", "t", "p"]
        .iter()
        .position(|known| *known == prefix);
    let factor = power.map(|power| base.pow(power as u32));
    let number = digits.parse::<u64>().ok().zip(factor);
    let bytes = number.and_then(|(number, factor)| number.checked_mul(factor));
    let allowed = "allowed is a number of bytes, as in 4096, 4k or 10g, up to 1024p; a percentage has no meaning here";
    bytes
        .filter(|bytes| *bytes <= MOST)
        .ok_or_else(|| allowed.to_owned())
}

/// Reads a whole number from `least` to `most`.
pub(super) fn whole(least: u64, most: u64) -> impl Fn(&str) -> Result<u64, String> {
    move |text| match bytes(text) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("allowed is a whole number from {least} to {most}")),
    }
}

/// Reads a time, whose unit is `unit` if none is given.
pub(super) fn time(unit: &str) -> impl Fn(&str) -> Result<Nanos, String> {
    move |text| {
        let mut text = text.to_ascii_lowercase();
        if text.ends_with(|last: char| last.is_ascii_digit()) {
            text += unit;
        }
        // fio's sec, msec and usec.
        let time = text.strip_suffix("ec").unwrap_or(&text).parse::<Nanos>();
        time.map_err(|problem| problem.to_string())
    }
}
