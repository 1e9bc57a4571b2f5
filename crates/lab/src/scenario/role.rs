//! Roles of a trace's processes.

use super::names;
use headtime_sched::Class;
use headtime_workload::Trace;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Group of a trace's processes, as text `NAME[:CLASS]=PROCESS,..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSpec {
    /// Name in results.
    pub name: String,
    /// Class of the processes' requests.
    pub class: Class,
    /// Names or numbers of processes. A name that ends in `*` fits all names that begin so.
    pub processes: Vec<String>,
}

impl RoleSpec {
    /// Name of the row for processes of no role.
    pub const OTHERS: &'static str = "others";

    /// True if the role has a process of the trace.
    pub fn has(&self, trace: &Trace, process: u32) -> bool {
        let name = trace.process_name(process);
        self.processes.iter().any(|wanted| {
            let by_name = name.is_some_and(|name| match wanted.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == wanted,
            });
            by_name || wanted.parse() == Ok(process)
        })
    }
}

impl fmt::Display for RoleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}={}",
            self.name,
            self.class,
            self.processes.join(",")
        )
    }
}

impl FromStr for RoleSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<RoleSpec, String> {
        let form = "write NAME[:CLASS]=PROCESS,.., as in scrub:idle=z_rd_int,txg_sync";
        let (name, processes) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}`: {form}"))?;
        let (name, class) = match name.rsplit_once(':') {
            Some((name, class)) => (
                name,
                class
                    .parse()
                    .map_err(|error| format!("`{text}`: {error}"))?,
            ),
            None => (name, Class::default()),
        };
        names::check(name).map_err(|problem| format!("`{text}`: the name `{name}`: {problem}"))?;
        if name == RoleSpec::OTHERS {
            return Err(format!(
                "`{text}`: `{name}` is the name of processes without a role; allowed is any other"
            ));
        }
        let processes: Vec<String> = processes
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect();
        if processes.iter().any(String::is_empty) {
            return Err(format!("`{text}`: a process has no name; {form}"));
        }
        Ok(RoleSpec {
            name: name.to_owned(),
            class,
            processes,
        })
    }
}

impl<'de> Deserialize<'de> for RoleSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RoleSpec, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for RoleSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_reads_back_and_errors_say_what_is_allowed() {
        let role: RoleSpec = "scrub:idle=z_rd_int,kworker/*, 17".parse().unwrap();
        assert_eq!((role.name.as_str(), role.class), ("scrub", Class::IDLE));
        assert_eq!(role.processes, ["z_rd_int", "kworker/*", "17"]);
        assert_eq!(role.to_string().parse(), Ok(role));
        assert_eq!("a=b".parse::<RoleSpec>().unwrap().class, Class::default());
        for (text, problem) in [
            ("a", "write NAME[:CLASS]=PROCESS"),
            ("=b", "the name ``"),
            ("a:slow=b", "slow"),
            ("a=", "a process has no name"),
            ("a=b,,c", "a process has no name"),
            ("others=b", "is the name of processes without a role"),
        ] {
            let error = text.parse::<RoleSpec>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
