//! Settings of a log that describe the logged stack.

use crate::describe::entries;
use headtime_config::{Error, Node, Place, Table, Value, read};
use headtime_engine::log::Setting;
use headtime_engine::{Config, EngineSpec, Member};
use headtime_sched::ServiceCurve;
use headtime_units::{Bytes, Millionths, Nanos, Sectors};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::str::FromStr;

/// Bytes of a sector in logs without this setting.
const SECTOR_BYTES: u32 = 512;

/// Settings of a log. The logged engine can be built again from these settings.
///
/// The [log's page](headtime_engine::log) lists the keys and the forms of their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The scheduler's text.
    pub scheduler: String,
    /// The engine.
    pub engine: EngineSpec,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Service-time curve of the schedulers, if any needs a curve.
    pub curve: Option<ServiceCurve>,
    /// Assumed drive of schedulers that predict positions, if there is one. One line of text: a
    /// [`Reference`](headtime_disk::profile::Reference).
    pub belief: Option<String>,
    /// All other settings in order, for information only.
    pub others: Vec<(String, String)>,
}

impl LogSettings {
    /// Creates settings for an engine whose scheduler needs neither a curve nor positions.
    pub fn new(scheduler: &str, engine: EngineSpec, sector_bytes: u32) -> LogSettings {
        LogSettings {
            scheduler: scheduler.to_owned(),
            engine,
            sector_bytes,
            curve: None,
            belief: None,
            others: Vec::new(),
        }
    }

    /// Returns the engine's configuration.
    pub fn config(&self) -> Config {
        self.engine.config(self.sector_bytes)
    }

    /// Returns the settings as keys and values for [`write_setting`](headtime_engine::log::write_setting). Line ends in
    /// values become blanks.
    pub fn to_settings(&self) -> Vec<(String, String)> {
        let mut all = self.others.clone();
        let mut own = |key: &str, value: String| all.push((key.to_owned(), value));
        own("scheduler", self.scheduler.clone());
        for (key, value) in entries(&self.engine) {
            own(&key, value.text());
        }
        own("sector_bytes", self.sector_bytes.to_string());
        if let Some(curve) = &self.curve {
            own("curve", curve_text(curve));
        }
        if let Some(belief) = &self.belief {
            own("belief", belief.clone());
        }
        for (_, value) in &mut all {
            if value.contains(['\n', '\r']) {
                *value = value.replace(['\n', '\r'], " ");
            }
        }
        all
    }

    /// Returns the settings of several members for one log: all settings of the first member, then the settings that
    /// differ for other members. The latter have the member's number before the key (`@1.scheduler`).
    pub fn of_members(members: &[Vec<(String, String)>]) -> Vec<(String, String)> {
        let first = members.first().cloned().unwrap_or_default();
        let others = members.iter().enumerate().skip(1);
        let differing = others.flat_map(|(number, settings)| {
            let own = settings.iter().filter(|own| !first.contains(own));
            own.map(move |(key, value)| (format!("@{number}.{key}"), value.clone()))
        });
        let differing: Vec<_> = differing.collect();
        first.into_iter().chain(differing).collect()
    }

    /// Returns the settings of one member of a log. A setting without a member's number is the first member's, and
    /// holds for all members without an own one.
    pub fn of_member(settings: &[Setting], member: Member) -> Vec<Setting> {
        let prefix = format!("@{}.", member.0);
        let own = settings.iter().filter_map(|setting| {
            let key = setting.key.strip_prefix(&prefix)?.to_owned();
            Some(Setting {
                key,
                ..setting.clone()
            })
        });
        let own: Vec<Setting> = own.collect();
        let is_own = |key: &str| own.iter().any(|own| own.key == key);
        let of_first = settings.iter().filter(|setting| {
            // A key with `@` belongs to another member.
            !setting.key.starts_with('@') && !is_own(&setting.key)
        });
        of_first.cloned().chain(own.iter().cloned()).collect()
    }

    /// Reads the settings of a log. Errors have the name `file`.
    ///
    /// # Errors
    ///
    /// If a required setting is missing, or a setting is repeated or invalid. The error names the line and the allowed
    /// values.
    pub fn from_settings(file: &str, settings: &[Setting]) -> Result<LogSettings, Error> {
        let place = |setting: &Setting| Place::line(file, setting.line);
        let mut keys = BTreeSet::new();
        for setting in settings {
            if !keys.insert(&setting.key) {
                let problem = "this setting is there twice";
                return Err(Error::new(place(setting), &setting.key, problem));
            }
        }
        let find = |key: &str| settings.iter().find(|setting| setting.key == key);
        for key in ["scheduler", "depth"] {
            if find(key).is_none() {
                let problem =
                    "this setting is missing, without which the engine cannot be made again";
                return Err(Error::new(Place::line(file, 1), key, problem));
            }
        }
        let mut table = Table::default();
        let mut others = Vec::new();
        let of_engine = entries(&EngineSpec::linux_2_6().complete().expect("it has a plug"));
        let is_of_engine = |key: &str| of_engine.iter().any(|(own, _)| own == key);
        for setting in settings {
            let mut put = |key: &str, value: Value| {
                let place = place(setting);
                table.set_value(key, Node { value, place })
            };
            match setting.key.as_str() {
                "scheduler" | "sector_bytes" | "curve" | "belief" => {}
                "merge_sectors_max" => put("merge_max", of_sectors(&setting.value))?,
                "plug" if !["true", "false"].contains(&setting.value.as_str()) => {
                    for (key, value) in old_plug(&setting.value) {
                        put(key, value)?;
                    }
                }
                key if is_of_engine(key) => put(key, Node::option("", &setting.value).value)?,
                _ => others.push((setting.key.clone(), setting.value.clone())),
            }
        }
        let engine = read(&table, &Place::line(file, 1))?;
        let curve = find("curve").map(|setting| {
            curve(&setting.value).ok_or_else(|| {
                let problem = "must be the factor of backward accesses in millionths, then points, \
                               SECTORS:NANOSECONDS, from 0 on";
                Error::new(place(setting), "curve", problem)
            })
        });
        let sector_bytes = match find("sector_bytes") {
            None => SECTOR_BYTES,
            Some(setting) => {
                let found: Option<u32> = setting.value.parse().ok();
                let power = found.filter(|bytes| bytes.is_power_of_two() && *bytes >= 512);
                let problem = "allowed is a power of two, from 512 on";
                power.ok_or_else(|| Error::new(place(setting), "sector_bytes", problem))?
            }
        };
        let text = |key| find(key).map(|setting| setting.value.clone());
        Ok(LogSettings {
            scheduler: text("scheduler").unwrap_or_default(),
            engine,
            sector_bytes,
            curve: curve.transpose()?,
            belief: text("belief"),
            others,
        })
    }
}

/// Converts a number of sectors, from a log up to version 2, to a size. It may be 0 if nothing is merged, and has no
/// meaning then.
fn of_sectors(text: &str) -> Value {
    match text.parse::<u64>() {
        Ok(sectors) => {
            let bytes = sectors.max(1).saturating_mul(u64::from(SECTOR_BYTES));
            Value::Text(Bytes(bytes.min(EngineSpec::MERGE_MAX.0)).to_string())
        }
        Err(_) => Value::Text(text.to_owned()),
    }
}

/// Converts the plug of a log up to version 2: `off`, or requests and a timeout.
fn old_plug(text: &str) -> Vec<(&'static str, Value)> {
    match text.split_once(' ') {
        _ if text == "off" => vec![("plug", Value::Flag(false))],
        Some((requests, timeout)) => vec![
            ("plug", Value::Flag(true)),
            ("plug_requests", Node::option("", requests).value),
            ("plug_timeout", Value::Text(timeout.trim().to_owned())),
        ],
        None => vec![("plug", Value::Text(text.to_owned()))],
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_engine::Plug;
    use headtime_engine::log::{Reader, Record, write_setting};

    fn settings_of(lines: &str) -> Result<LogSettings, String> {
        let text = format!("headtime-log 2\n{lines}W 5\n");
        let mut reader = Reader::new(text.as_bytes());
        let settings = reader.settings().expect("they can be read");
        assert!(
            matches!(reader.next_record(), Ok(Some((_, Record::Event(..))))),
            "what follows is not lost"
        );
        LogSettings::from_settings("x", &settings).map_err(|error| error.to_string())
    }

    fn lines_of(settings: &LogSettings) -> String {
        let mut text = String::new();
        for (key, value) in settings.to_settings() {
            write_setting(&mut text, &key, &value);
        }
        text
    }

    fn plain() -> LogSettings {
        LogSettings::new("noop", EngineSpec::default(), 512)
    }

    #[test]
    fn settings_round_trip() {
        let points = vec![
            (Sectors::ZERO, Nanos::from_nanos(123_457)),
            (Sectors::new(1 << 40), Nanos::from_nanos(59_999_999_999)),
        ];
        let full = LogSettings {
            engine: EngineSpec {
                depth: 31,
                gate: "rsd:age_th=30".parse().unwrap(),
                merge: false,
                merge_max: Bytes(77 << 9),
                commit_ahead: true,
                plug: true,
                plug_requests: Some(3),
                plug_timeout: Some(Nanos::from_nanos(4_000_001)),
                ..EngineSpec {
                    hide_processes: true,
                    ..EngineSpec::default()
                }
            },
            scheduler: "stream(deadline:fifo_batch=8):slice=20ms".to_owned(),
            sector_bytes: 4096,
            curve: Some(ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve")),
            belief: Some("wd5000aaks 0123456789abcdef".to_owned()),
            others: vec![("version".to_owned(), "0.1.0".to_owned())],
        };
        for settings in [full, plain()] {
            assert_eq!(settings_of(&lines_of(&settings)), Ok(settings));
        }
    }

    #[test]
    fn settings_of_version_2_are_read() {
        let with = |plug: &str| {
            let lines = "# scheduler noop\n# depth 4\n# merge true\n# merge_sectors_max 128\n\
                         # commit_ahead true\n# hide_processes false\n";
            settings_of(&format!("{lines}# plug {plug}\n")).map(|settings| settings.config())
        };
        let off = Config {
            depth: 4,
            merge: true,
            merge_sectors_max: Sectors::new(128),
            commit_ahead: true,
            ..Config::default()
        };
        assert_eq!(with("off"), Ok(off));
        let plug = Some(Plug {
            requests: 3,
            timeout: Nanos::from_millis(5),
        });
        assert_eq!(with("3 5ms"), Ok(Config { plug, ..off }));
        for (plug, problem) in [
            (
                "4",
                "x:8: plug: is the string \"4\", but should be true or false",
            ),
            (
                "4 213503d",
                "x:8: plug_timeout: \"213503d\": a duration is at most 3650d",
            ),
        ] {
            let found = with(plug).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn settings_of_members_round_trip() {
        let of = |scheduler: &str, drive: &str| {
            let mut settings = LogSettings::new(scheduler, EngineSpec::default(), 512);
            settings.others = vec![("drive".to_owned(), drive.to_owned())];
            settings
        };
        let members = [of("noop", "a"), of("sstf", "a"), of("noop", "b")];
        let all = members.each_ref().map(LogSettings::to_settings);
        let written = LogSettings::of_members(&all);
        let differing: Vec<_> = (written.iter())
            .filter(|(key, _)| key.starts_with('@'))
            .collect();
        let expected = [("@1.scheduler", "sstf"), ("@2.drive", "b")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(differing, expected.iter().collect::<Vec<_>>());
        let mut text = String::from("headtime-log 3\n");
        for (key, value) in &written {
            write_setting(&mut text, key, value);
        }
        let settings = Reader::new(text.as_bytes()).settings().expect("a log");
        for (number, member) in (0..).zip(members) {
            let own = LogSettings::of_member(&settings, Member(number));
            assert_eq!(LogSettings::from_settings("x", &own), Ok(member));
        }
    }

    /// A linear search for each setting among all earlier ones took minutes.
    #[test]
    fn a_setting_that_is_there_twice_is_found_among_a_hundred_thousand() {
        let mut text = lines_of(&plain());
        let own = text.lines().count();
        for number in 0..100_000 {
            write_setting(&mut text, &format!("key{number}"), "value");
        }
        let settings = settings_of(&text).expect("others are for people");
        assert_eq!(settings.others.len(), 100_000);
        write_setting(&mut text, "key0", "value");
        let line = 1 + own + 100_000 + 1;
        let expected = format!("x:{line}: key0: this setting is there twice");
        assert_eq!(settings_of(&text), Err(expected));
    }

    #[test]
    fn settings_that_do_not_do_are_named_with_their_line() {
        let good = lines_of(&plain());
        let error = |from: &str, to: &str| {
            let changed = good.replace(from, to);
            assert_ne!(changed, good, "{from}");
            settings_of(&changed).expect_err(to)
        };
        for key in ["scheduler", "depth"] {
            let error = error(&format!("# {key} "), "# other ");
            assert!(
                error.starts_with(&format!("x:1: {key}: this setting is missing")),
                "{error}"
            );
        }
        for (from, to, expected) in [
            (
                "depth 1",
                "depth 257",
                "depth: 257 is out of range; allowed is 1 to 256",
            ),
            (
                "merge true",
                "merge yes",
                "merge: is the string \"yes\", but should be true or false",
            ),
            (
                "merge_max 512KiB",
                "merge_max 0B",
                "merge_max: allowed is a multiple of 512B, up to 1GiB",
            ),
            (
                "sector_bytes 512",
                "sector_bytes 100",
                "sector_bytes: allowed is a power of two, from 512 on",
            ),
            (
                "plug false",
                "plug false\n# plug_requests 4",
                "plug_requests: is for plug = true",
            ),
        ] {
            // The header is line 1, and the invalid line is the last inserted one.
            let before = good.lines().position(|line| line == format!("# {from}"));
            let line = before.expect("it is there") + 1 + to.lines().count();
            assert_eq!(error(from, to), format!("x:{line}: {expected}"));
        }
        for curve in [
            "learned",
            "",
            "1500000",
            "1500000 8:5",
            "1500000 0:5 0:6",
            "1 0:5",
        ] {
            let error = error("# plug", &format!("# curve {curve}\n# plug"));
            assert!(error.contains("curve: must be the factor"), "{error}");
        }
    }
}
