//! Circumstances of a profiling run.

use crate::text::{Lines, NAMES, TextError, first_line, is_name};
use headtime_units::{Millionths, Nanos};
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
    /// Sum of the service times at the server's disk, literally as in the paper's formula. Time in the network and waits for
    /// other servers do not count.
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

impl Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Service {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Service, Self::Err> {
        let all = [Service::Program, Service::Disk];
        let found = all.into_iter().find(|service| service.name() == text);
        found.ok_or("allowed are program and disk")
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

    /// Checks all values: a file with them must be readable.
    ///
    /// # Errors
    ///
    /// The first value that is not allowed.
    pub fn check(&self) -> Result<(), SettingError> {
        let mut text = first_line("setting", 1);
        self.write(&mut text);
        let read = Lines::open(&text, "setting", 1).and_then(|mut lines| Setting::read(&mut lines));
        match read {
            Ok(_) => Ok(()),
            Err(TextError { problem, .. }) => Err(SettingError {
                program: self.program.clone(),
                problem,
            }),
        }
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
        const SHARES: &str = "numbers above 0, up to 1";
        let name = |text: &str| is_name(text).then(|| text.to_owned());
        let shares = Millionths(1)..=Millionths::ONE;
        let share = |text: &str| text.parse().ok().filter(|share| shares.contains(share));
        let epoch = |text: &str| text.parse().ok().filter(|span: &Nanos| !span.is_zero());
        let servers = |text: &str| text.parse().ok().filter(|servers| *servers > 0);
        Ok(Setting {
            site: lines.key("site", NAMES, name)?,
            program: lines.key("program", NAMES, name)?,
            share: lines.key("share", SHARES, share)?,
            epoch: lines.key("epoch", "times above 0, such as 100ms", epoch)?,
            service: lines.key("service", "program, disk", |text| text.parse().ok())?,
            servers: lines.key("servers", "whole numbers from 1 to 65535", servers)?,
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
#[error("program `{program}`: {problem}")]
pub struct SettingError {
    /// The program.
    pub program: String,
    /// The key, its value, and the allowed values.
    pub problem: String,
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
