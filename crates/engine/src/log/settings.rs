//! What a log says of the engine that it is a log of.

use super::{LogError, Reader, Record};
use crate::{Config, Plug};
use headtime_sched::ServiceCurve;
use headtime_units::{Millionths, Nanos, Sectors};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::BufRead;
use std::str::FromStr;

/// Keys without which an engine cannot be made again.
pub(super) const NEEDED: [&str; 7] = [
    "scheduler",
    "depth",
    "merge",
    "merge_sectors_max",
    "commit_ahead",
    "plug",
    "hide_processes",
];

/// How an engine was made: what a log must say so that its engine can be made again.
///
/// The [log's page](super) has the keys and what their values look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The engine's.
    pub config: Config,
    /// The scheduler's text.
    pub scheduler: String,
    /// What schedulers that ask for it are told of service times, if any does.
    pub curve: Option<ServiceCurve>,
    /// The drive by which schedulers that ask for it predict positions, if any does, as one line of
    /// text: that of `headtime_disk`'s `profile::Reference`.
    pub belief: Option<String>,
    /// Everything else, in order: for people.
    pub others: Vec<(String, String)>,
}

/// Why an engine cannot be made again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A setting is not there.
    #[error("the setting `{0}` is missing, without which the engine cannot be made again")]
    Missing(&'static str),
    /// A setting is there twice.
    #[error("line {line}: the setting `{key}` is there twice")]
    Twice {
        /// Counted from 1.
        line: usize,
        /// Which.
        key: String,
    },
    /// The value of a setting is wrong.
    #[error("line {line}: the setting `{key}` is \"{}\"; {allowed}", short(value))]
    Value {
        /// Counted from 1.
        line: usize,
        /// Which.
        key: &'static str,
        /// What it is.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

/// The beginning of a long text.
fn short(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text.to_owned(),
    }
}

/// A setting as it stands in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its line, counted from 1.
    pub line: usize,
    /// One word.
    pub key: String,
    /// The rest of the line.
    pub value: String,
}

impl LogSettings {
    /// Of an engine whose scheduler needs neither a curve nor positions.
    pub fn new(config: Config, scheduler: &str) -> LogSettings {
        LogSettings {
            config,
            scheduler: scheduler.to_owned(),
            curve: None,
            belief: None,
            others: Vec::new(),
        }
    }

    /// As a log has them: key and value, for [`write_setting`](super::write_setting). Of values
    /// with several lines, the ends become blanks.
    pub fn to_settings(&self) -> Vec<(String, String)> {
        let Config {
            depth,
            merge,
            merge_sectors_max,
            commit_ahead,
            plug,
            hide_origins,
        } = self.config;
        let plug = match plug {
            Some(plug) => format!("{} {}", plug.requests, plug.timeout),
            None => "off".to_owned(),
        };
        let own: [(&str, &dyn ToString); 7] = [
            ("scheduler", &self.scheduler),
            ("depth", &depth),
            ("merge", &merge),
            ("merge_sectors_max", &merge_sectors_max.get()),
            ("commit_ahead", &commit_ahead),
            ("plug", &plug),
            ("hide_processes", &hide_origins),
        ];
        let mut all = self.others.clone();
        all.extend(own.map(|(key, value)| (key.to_owned(), value.to_string())));
        if let Some(curve) = &self.curve {
            all.push(("curve".to_owned(), curve_text(curve)));
        }
        if let Some(belief) = &self.belief {
            all.push(("belief".to_owned(), belief.clone()));
        }
        for (_, value) in &mut all {
            if value.contains(['\n', '\r']) {
                *value = value.replace(['\n', '\r'], " ");
            }
        }
        all
    }

    /// From what a log has.
    ///
    /// # Errors
    ///
    /// If one that is needed is missing, is there twice, or is wrong; the error names its line, and
    /// what is allowed.
    pub fn from_settings(settings: &[Setting]) -> Result<LogSettings, SettingsError> {
        let mut keys = BTreeSet::new();
        for setting in settings {
            if !keys.insert(&setting.key) {
                return Err(SettingsError::Twice {
                    line: setting.line,
                    key: setting.key.clone(),
                });
            }
        }
        let find = |key: &str| settings.iter().find(|setting| setting.key == key);
        let get = |key| Get {
            key,
            setting: find(key),
        };
        let config = Config {
            depth: get("depth").number(1..=256)? as u32,
            merge: get("merge").truth()?,
            merge_sectors_max: Sectors::new(get("merge_sectors_max").number(0..=u64::MAX)?),
            commit_ahead: get("commit_ahead").truth()?,
            plug: get("plug").parse(
                plug,
                "allowed are `off`, or requests and a time of at most 3650d: `4 4ms`",
            )?,
            hide_origins: get("hide_processes").truth()?,
        };
        if config.merge && config.merge_sectors_max == Sectors::ZERO {
            let get = get("merge_sectors_max");
            return Err(get.wrong("allowed is 1 and more where `merge` is true"));
        }
        let scheduler = get("scheduler").parse(|text| Some(text.to_owned()), "")?;
        let curve = match find("curve") {
            None => None,
            Some(_) => Some(get("curve").parse(
                curve,
                "it must be the factor of backward accesses in millionths, then points, \
                 SECTORS:NANOSECONDS, from 0 on",
            )?),
        };
        let is_own = |key| NEEDED.contains(&key) || ["curve", "belief"].contains(&key);
        let others = settings
            .iter()
            .filter(|setting| !is_own(setting.key.as_str()))
            .map(|setting| (setting.key.clone(), setting.value.clone()));
        Ok(LogSettings {
            config,
            scheduler,
            curve,
            belief: find("belief").map(|setting| setting.value.clone()),
            others: others.collect(),
        })
    }
}

/// The value of one setting.
struct Get<'a> {
    key: &'static str,
    setting: Option<&'a Setting>,
}

impl Get<'_> {
    fn wrong(&self, allowed: &str) -> SettingsError {
        match self.setting {
            None => SettingsError::Missing(self.key),
            Some(setting) => SettingsError::Value {
                line: setting.line,
                key: self.key,
                value: setting.value.clone(),
                allowed: allowed.to_owned(),
            },
        }
    }

    fn parse<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        allowed: &str,
    ) -> Result<T, SettingsError> {
        let value = self.setting.and_then(|setting| parse(&setting.value));
        value.ok_or_else(|| self.wrong(allowed))
    }

    fn number(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64, SettingsError> {
        let number = |text: &str| text.parse().ok().filter(|number| range.contains(number));
        let allowed = format!("allowed are {} to {}", range.start(), range.end());
        self.parse(number, &allowed)
    }

    fn truth(&self) -> Result<bool, SettingsError> {
        self.parse(|text| text.parse().ok(), "allowed are `true` and `false`")
    }
}

fn plug(text: &str) -> Option<Option<Plug>> {
    if text == "off" {
        return Some(None);
    }
    let (requests, timeout) = text.split_once(' ')?;
    Some(Some(Plug {
        requests: requests.parse().ok()?,
        timeout: timeout.trim().parse().ok()?,
    }))
}

fn curve_text(curve: &ServiceCurve) -> String {
    let mut text = curve.backward().0.to_string();
    for (distance, time) in curve.points() {
        // Writing to a string cannot fail.
        let _ = write!(text, " {}:{}", distance.get(), time.as_nanos());
    }
    text
}

fn curve(text: &str) -> Option<ServiceCurve> {
    let mut words = text.split_ascii_whitespace();
    let number = |word: &str| u64::from_str(word).ok();
    let backward = Millionths(number(words.next()?)?);
    let point = |word: &str| {
        let (distance, time) = word.split_once(':')?;
        Some((
            Sectors::new(number(distance)?),
            Nanos::from_nanos(number(time)?),
        ))
    };
    let points = words.map(point).collect::<Option<Vec<_>>>()?;
    ServiceCurve::new(points, backward).ok()
}

impl<R: BufRead> Reader<R> {
    /// The settings up to the first other record, which is the next to be read.
    ///
    /// # Errors
    ///
    /// As [`Reader::next_record`].
    pub fn settings(&mut self) -> Result<Vec<Setting>, LogError> {
        let mut settings = Vec::new();
        while let Some((line, record)) = self.next_record()? {
            match record {
                Record::Setting { key, value } => settings.push(Setting { line, key, value }),
                other => {
                    self.put_back(line, other);
                    break;
                }
            }
        }
        Ok(settings)
    }
}
