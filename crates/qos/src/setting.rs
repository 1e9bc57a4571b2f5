//! Circumstances of a profiling run.

use crate::text::{Lines, NAMES, TextError, is_name};
use headtime_units::{Millionths, Nanos, nearest};
use std::fmt::{Display, Write as _};
use std::str::FromStr;
use thiserror::Error;

/// Time that counts as service of a server's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Time in which the program has any request outstanding, anywhere. Throughputs of all servers add up to the
    /// throughput of the program.
    #[default]
    Program,
    /// Sum of the service times at the server's disk: the paper's formula to the letter. It leaves out network and waits for
    /// other servers.
    Disk,
}

impl Service {
    /// Name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Program => "program",
            Service::Disk => "disk",
        }
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Service, String> {
        let all = [Service::Program, Service::Disk];
        let found = all.into_iter().find(|service| service.name() == text);
        found.ok_or_else(|| {
            let near = nearest(text, all.map(Service::name));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("`{text}` is no service time{near}; allowed are program and disk")
        })
    }
}

/// Circumstances of a profiling run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the servers, such as of a cluster.
    pub site: String,
    /// Name of the program.
    pub program: String,
    /// Share of the servers' time that the program had, above 0 and at most 1.
    pub share: Millionths,
    /// Length of an epoch.
    pub epoch: Nanos,
    /// Time that counts as service.
    pub service: Service,
    /// Number of servers, 1 or more.
    pub servers: u16,
}

impl Setting {
    /// Length of an epoch in the paper.
    pub const EPOCH: Nanos = Nanos::from_millis(100);

    /// Checks all values.
    ///
    /// # Errors
    ///
    /// The first value that is not allowed.
    pub fn check(&self) -> Result<(), SettingError> {
        let error = |key, found: &dyn Display, allowed| SettingError {
            program: self.program.clone(),
            key,
            found: found.to_string(),
            allowed,
        };
        if !is_name(&self.program) {
            return Err(error("program", &self.program, NAMES));
        }
        if !is_name(&self.site) {
            return Err(error("site", &self.site, NAMES));
        }
        if !is_share(self.share) {
            return Err(error("share", &self.share, SHARES));
        }
        if self.epoch.is_zero() {
            return Err(error("epoch", &self.epoch, EPOCHS));
        }
        if self.servers == 0 {
            return Err(error("servers", &self.servers, SERVERS));
        }
        Ok(())
    }

    /// Checks that the run was on a site and of a program.
    ///
    /// # Errors
    ///
    /// If the run was on another site or of another program.
    pub fn expect(&self, site: &str, program: &str) -> Result<(), Differs> {
        differs("site", self.site.as_str(), site)?;
        differs("program", self.program.as_str(), program)
    }

    /// Checks that two runs can train one tree: all is equal but the program.
    ///
    /// # Errors
    ///
    /// The first key that differs.
    pub fn expect_like(&self, other: &Setting) -> Result<(), Differs> {
        differs("site", &self.site, &other.site)?;
        differs("share", self.share, other.share)?;
        differs("epoch", self.epoch, other.epoch)?;
        differs("service", self.service.name(), other.service.name())?;
        differs("servers", self.servers, other.servers)
    }

    /// Appends a line for each key.
    pub(crate) fn write(&self, text: &mut String) {
        let Setting {
            site,
            program,
            share,
            epoch,
            service,
            servers,
        } = self;
        let service = service.name();
        write!(
            text,
            "site = {site}\nprogram = {program}\nshare = {share}\nepoch = {epoch}\nservice = {service}\nservers = {servers}\n"
        )
        .expect("a string takes all text");
    }

    /// Reads what [`Setting::write`] wrote.
    pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Setting, TextError> {
        let name = |text: &str| is_name(text).then(|| text.to_owned());
        let share = |text: &str| text.parse().ok().filter(|share| is_share(*share));
        let epoch = |text: &str| text.parse().ok().filter(|span: &Nanos| !span.is_zero());
        let servers = |text: &str| text.parse().ok().filter(|servers| *servers > 0);
        Ok(Setting {
            site: lines.key("site", NAMES, name)?,
            program: lines.key("program", NAMES, name)?,
            share: lines.key("share", SHARES, share)?,
            epoch: lines.key("epoch", EPOCHS, epoch)?,
            service: lines.value("service", "program, disk")?,
            servers: lines.key("servers", SERVERS, servers)?,
        })
    }
}

fn differs<T: PartialEq + Display>(
    key: &'static str,
    found: T,
    expected: T,
) -> Result<(), Differs> {
    if found == expected {
        return Ok(());
    }
    Err(Differs {
        key,
        found: found.to_string(),
        expected: expected.to_string(),
    })
}

/// A value of a setting that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("program `{program}`: {key} is `{found}`; allowed: {allowed}")]
pub struct SettingError {
    /// The program.
    pub program: String,
    /// The key.
    pub key: &'static str,
    /// The value.
    pub found: String,
    /// Allowed values.
    pub allowed: &'static str,
}

/// A profile or a tree of another site, program or manner of profiling.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} is `{found}`; `{expected}` is needed")]
pub struct Differs {
    /// The key.
    pub key: &'static str,
    /// The value.
    pub found: String,
    /// The value that is needed.
    pub expected: String,
}

const SHARES: &str = "numbers above 0, up to 1";
const EPOCHS: &str = "times above 0, such as 100ms";
const SERVERS: &str = "whole numbers from 1 to 65535";

fn is_share(share: Millionths) -> bool {
    share > Millionths::ZERO && share <= Millionths::ONE
}
