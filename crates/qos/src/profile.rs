//! The profile of a run: locality and throughput of each server and epoch.

use crate::features::Sums;
use crate::setting::{Setting, SettingError};
use crate::text::{Lines, TextError, finite, first_line, seal};
use headtime_units::{Nanos, Rate};
use headtime_workload::Random;
use std::fmt::Write as _;
use std::str::FromStr;
use thiserror::Error;

/// Kind and version of the text.
const KIND: &str = "profile";
const VERSION: u32 = 1;

/// Allowed run times, for messages.
const SPANS: &str = "times from 0s to 3650d";

/// Names of the columns of a row.
const COLUMNS: &str = "epoch server requests pieces bytes reads steps sequential distance signed log_distance busy_ns";

/// Requests of an epoch at a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Number of the epoch, counted from 0 at the start of the run.
    pub epoch: u64,
    /// Number of the server, counted from 0.
    pub server: u16,
    /// The requests.
    pub sums: Sums,
    /// Service time of the requests, see [`Service`](crate::Service).
    pub busy: Nanos,
}

impl Row {
    /// Throughput of the server in the epoch, in bytes per second: the paper's `B_profile`. `None` if the requests took no
    /// time.
    pub fn rate(&self) -> Option<f64> {
        (!self.busy.is_zero()).then(|| self.sums.bytes as f64 / self.busy.as_secs_f64())
    }
}

/// Profile of a run of one program on one site.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Circumstances of the run.
    pub setting: Setting,
    /// Run time.
    pub run: Nanos,
    /// Time in which the program had any request outstanding; at most the run time.
    pub io: Nanos,
    /// Epochs with requests, in order of epoch and server; at least one.
    pub rows: Vec<Row>,
}

/// An epoch of a run with requests.
pub(crate) struct Active {
    /// Time from the start of the run to the epoch.
    pub start: Nanos,
    /// Length of the epoch, and of the epochs after it into which its requests last.
    pub active: Nanos,
    /// Bytes asked of all servers.
    pub bytes: u64,
    /// Part of the I/O time of the run, in seconds.
    pub io: f64,
}

/// Reason why a profile cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A value of the setting is not allowed.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No request came.
    #[error(
        "program `{program}`: the profile is empty: no read and no write reached a server; profile a run with I/O"
    )]
    Empty {
        /// Name of the program.
        program: String,
    },
}

impl Profile {
    /// Time of the run without I/O: the paper's `T_comp`.
    pub fn compute(&self) -> Nanos {
        self.run.saturating_sub(self.io)
    }

    /// Least possible run time: the compute time, plus the I/O time scaled to all servers. If the program had all servers in
    /// the profiling run, this is the run time of that run.
    pub fn least(&self) -> Nanos {
        let io = u128::from(self.io.as_nanos()) * u128::from(self.setting.share.0) / 1_000_000;
        self.compute() + Nanos::from_nanos(io as u64)
    }

    /// Bytes that the program asked of all servers.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.sums.bytes).sum()
    }

    /// Epochs with requests.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = Active> + '_ {
        let epochs = || self.rows.chunk_by(|a, b| a.epoch == b.epoch);
        let busy = |rows: &[Row]| rows.iter().map(|row| row.busy).max().unwrap_or_default();
        let all: Nanos = epochs().map(busy).sum();
        // Service times at disks only determine shares of the I/O time.
        let scale = self.io.as_secs_f64() / all.as_secs_f64().max(1e-9);
        let nexts = epochs().skip(1).map(|rows| rows[0].epoch);
        epochs()
            .zip(nexts.chain([u64::MAX]))
            .map(move |(rows, next)| {
                let (epoch, first) = (self.setting.epoch, rows[0].epoch);
                let io = busy(rows).as_secs_f64() * scale;
                // A request may continue in later epochs without a new request.
                let lasts = (io / epoch.as_secs_f64()).ceil().max(1.0) as u64;
                let start = epoch * first;
                let active = epoch * lasts.min(next - first);
                Active {
                    start,
                    active: active.min(self.run.saturating_sub(start)),
                    bytes: rows.iter().map(|row| row.sums.bytes).sum(),
                    io,
                }
            })
    }

    /// Constant rate at which each server must serve the program to end after `run_time`, in sectors a second: case (a) of
    /// section 2.
    pub fn constant_rate(&self, run_time: Nanos, sector_bytes: u32) -> u64 {
        let sectors = self.bytes() / u64::from(sector_bytes) / u64::from(self.setting.servers);
        Rate::of(sectors, run_time).0
    }

    /// Draws a part of the run by `seed`: whole epochs with at least `requests` requests. Returns the whole run if it has
    /// fewer.
    pub fn segment(&self, requests: u64, seed: u64) -> &[Row] {
        let count = |rows: &[Row]| rows.iter().map(|row| row.sums.requests).sum::<u64>();
        let epochs = |from: usize| self.rows[from..].chunk_by(|a, b| a.epoch == b.epoch);
        let Some(more) = count(&self.rows).checked_sub(requests) else {
            return &self.rows;
        };
        let mut skip = Random::new(seed, 0, 0).below(more + 1);
        let mut from = 0;
        for epoch in epochs(0) {
            match skip.checked_sub(count(epoch)) {
                Some(rest) => skip = rest,
                None => break,
            }
            from += epoch.len();
        }
        let (mut to, mut taken) = (from, 0);
        for epoch in epochs(from) {
            if taken >= requests {
                break;
            }
            to += epoch.len();
            taken += count(epoch);
        }
        &self.rows[from..to]
    }

    /// Writes the profile as text.
    pub fn to_text(&self) -> String {
        let mut text = first_line(KIND, VERSION);
        self.setting.write(&mut text);
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            text.write_fmt(arguments).expect("a string takes all text");
        };
        line(format_args!(
            "run = {}\nio = {}\n{COLUMNS}\n",
            self.run, self.io
        ));
        for Row {
            epoch,
            server,
            sums,
            busy,
        } in &self.rows
        {
            let Sums {
                requests,
                pieces,
                bytes,
                reads,
                steps,
                sequential,
                distance,
                signed,
                log_distance,
            } = sums;
            line(format_args!(
                "{epoch} {server} {requests} {pieces} {bytes} {reads} {steps} {sequential} {distance} {signed} {log_distance} {}\n",
                busy.as_nanos()
            ));
        }
        seal(&mut text);
        text
    }

    /// Reads what [`Profile::to_text`] wrote.
    ///
    /// # Errors
    ///
    /// If the text is no profile, of another version, cut off or damaged, or has no rows.
    pub fn from_text(text: &str) -> Result<Profile, TextError> {
        let mut lines = Lines::open(text, KIND, VERSION)?;
        let setting = Setting::read(&mut lines)?;
        let run = lines.value("run", SPANS)?;
        let io = |text: &str| text.parse().ok().filter(|io| *io <= run);
        let io = lines.key("io", "times up to `run`", io)?;
        if lines.next()? != COLUMNS {
            return Err(lines.error(format!("other columns; allowed are: {COLUMNS}")));
        }
        let mut rows: Vec<Row> = Vec::new();
        let last = loop {
            let line = lines.next()?;
            if line.starts_with("end") {
                break line;
            }
            let row = row(line, setting.servers).map_err(|problem| lines.error(problem))?;
            let place = |row: &Row| (row.epoch, row.server);
            if rows.last().is_some_and(|last| place(last) >= place(&row)) {
                return Err(
                    lines.error("not behind the row before it in the order of epoch and server")
                );
            }
            rows.push(row);
        };
        if rows.is_empty() {
            return Err(lines.error(format!(
                "the profile of program `{}` is empty: it has no epoch with requests; profile a run with I/O",
                setting.program
            )));
        }
        lines.finish(last)?;
        Ok(Profile {
            setting,
            run,
            io,
            rows,
        })
    }
}

/// Reads a row.
fn row(line: &str, servers: u16) -> Result<Row, String> {
    let mut words = line.split(' ');
    let mut names = COLUMNS.split(' ');
    let mut word = || {
        let name = names.next().expect("as many names as columns");
        words
            .next()
            .map(|word| (name, word))
            .ok_or_else(|| format!("no column {name}"))
    };
    fn number<T: FromStr>((name, word): (&str, &str)) -> Result<T, String> {
        let number = word.parse();
        number.map_err(|_| format!("{name} is `{word}`; allowed are whole numbers"))
    }
    let (epoch, server) = (number(word()?)?, number(word()?)?);
    let sums = Sums {
        requests: number(word()?)?,
        pieces: number(word()?)?,
        bytes: number(word()?)?,
        reads: number(word()?)?,
        steps: number(word()?)?,
        sequential: number(word()?)?,
        distance: number(word()?)?,
        signed: number(word()?)?,
        log_distance: {
            let (name, word) = word()?;
            let log = finite(word).filter(|log| *log >= 0.0);
            log.ok_or_else(|| format!("{name} is `{word}`; allowed are numbers from 0 on"))?
        },
    };
    let busy = Nanos::from_nanos(number(word()?)?);
    if words.next().is_some() {
        return Err(format!("more columns than {COLUMNS}"));
    }
    if server >= servers {
        return Err(format!(
            "server is {server}; allowed are 0 to {}",
            servers - 1
        ));
    }
    if sums.requests == 0 || sums.bytes == 0 {
        return Err(format!(
            "epoch {epoch} of server {server} is empty; allowed are 1 or more requests with data"
        ));
    }
    if sums.pieces < sums.requests
        || sums.reads > sums.pieces
        || sums.steps > sums.pieces
        || sums.sequential > sums.steps
        || sums.signed.unsigned_abs() > sums.distance
    {
        return Err("the counts contradict each other; the row is damaged".to_owned());
    }
    Ok(Row {
        epoch,
        server,
        sums,
        busy,
    })
}
