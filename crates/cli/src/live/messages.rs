//! Messages of a server: to people on standard error, and to the service manager over its socket. One message on standard output says that
//! the server is ready.
//!
//! A message must neither block nor end a server, even if its destination is full, gone, or without a reader. (Every Rust program ignores
//! SIGPIPE, so a write to a reader who has gone is an error.)

mod lines;
mod outbox;

use super::config::{LogConfig, LogFormat};
use headtime_lab::fault::Fault;
use headtime_linux::shown::one_line;
use headtime_linux::sys;
use headtime_units::Nanos;
use lines::Lines;
use outbox::{BOUNDS, Outbox};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::convert::Infallible;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Environment variable that selects messages, in place of the configuration.
pub const LEVEL: &str = "HEADTIME_LOG";

/// Time for writing the remaining messages when the process ends.
const END_WITHIN: Nanos = Nanos::from_secs(1);

/// Longest wait for a busy service manager.
const NOTIFY_WITHIN: Duration = Duration::from_secs(1);

/// Outbox and format of messages, once started.
static MESSAGES: OnceLock<(Outbox, Lines)> = OnceLock::new();

/// Starts to write messages to standard error. [`LEVEL`] selects the messages, else the configuration, else all from `info` on. From now on
/// no caller waits for a message to be written. Panics are messages too. Call [`end`] before the process ends.
///
/// # Errors
///
/// If the selection of messages is malformed, or the thread cannot be started.
pub fn begin(config: &LogConfig, format: Option<LogFormat>) -> Result<(), Fault> {
    let given = env::var_os(LEVEL)
        .map(|level| level.to_string_lossy().into_owned())
        .filter(|level| !level.is_empty());
    let filter = match (&given, &config.level) {
        (Some(level), _) => {
            filter(level).map_err(|problem| Fault::Usage(format!("{LEVEL}={level}: {problem}")))?
        }
        (None, Some(level)) => filter(level)
            .map_err(|problem| Fault::Input(format!("log.level: \"{level}\": {problem}")))?,
        (None, None) => Targets::new().with_default(LevelFilter::INFO),
    };
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = Lines {
        json: format.or(config.format).unwrap_or_default() == LogFormat::Json,
        colour: io::stderr().is_terminal() && !plain,
    };
    sys::survive_writing();
    let missing = move |count| {
        let text = format!("{count} messages were dropped here: standard error did not take them");
        lines.line(Level::WARN, text)
    };
    let sink = Box::new(Unbuffered(io::stderr()));
    let outbox = Outbox::start(sink, BOUNDS, Box::new(missing))
        .map_err(|error| Fault::File(format!("cannot start a thread for messages: {error}")))?;
    // Messages have started already in a test that runs several servers in one process.
    let (outbox, lines) = MESSAGES.get_or_init(|| (outbox, lines));
    let (writer, lines) = (outbox.clone(), *lines);
    let layer = fmt::layer()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .log_internal_errors(false)
        .event_format(lines);
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init();
    panic::set_hook(Box::new(move |panic| panicked(outbox, lines, panic)));
    Ok(())
}

/// Reports a bug, as Rust does by itself, but without waiting for a reader.
fn panicked(outbox: &Outbox, lines: Lines, panic: &PanicHookInfo<'_>) {
    let say = |text: &str| outbox.put(lines.line(Level::ERROR, text));
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| Some(payload.downcast_ref::<String>()?.as_str()));
    let what = text.unwrap_or("what it said is no text");
    match panic.location() {
        Some(at) => say(&format!("a bug: thread {name} panicked at {at}: {what}")),
        None => say(&format!("a bug: thread {name} panicked: {what}")),
    }
    // Printed only if the environment's RUST_BACKTRACE asks for it.
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        backtrace.to_string().lines().for_each(say);
    }
    // An abort may follow.
    outbox.empty_unless_stuck(END_WITHIN);
}

/// Writes each line of a text to standard error. If messages have not started, the lines are written at once. `before` comes from this
/// program, and may have colours.
pub fn say(before: &str, text: &str) {
    let mut before = before;
    for line in text.lines() {
        let line = format!("{before}{}\n", one_line(line));
        match MESSAGES.get() {
            Some((outbox, _)) => outbox.put(line),
            // If standard error takes nothing, the line is lost.
            None => drop(io::stderr().write_all(line.as_bytes())),
        }
        before = "";
    }
}

/// Writes the remaining messages before the process ends, if that does not take long.
pub fn end() {
    let announced = ANNOUNCED.lock().expect("nobody panics with it").take();
    if let Some(announced) = announced {
        // The thread sends nothing, and closes the channel when it ends.
        let _ = announced.recv_timeout(Duration::from_nanos(END_WITHIN.as_nanos()));
    }
    if let Some((outbox, _)) = MESSAGES.get() {
        outbox.empty(END_WITHIN);
    }
}

/// Receiver whose channel closes after the announcement was written or could not be written.
static ANNOUNCED: Mutex<Option<Receiver<Infallible>>> = Mutex::new(None);

/// Counter of dropped messages. The counter is updated as long as the process lives.
pub fn dropped() -> Arc<AtomicU64> {
    let messages = MESSAGES.get();
    messages.map_or_else(Arc::default, |(outbox, _)| outbox.dropped())
}

/// Writes to standard output that the server is ready. The function does not wait for a reader, since the server
/// already serves clients. If writing fails, a message reports this.
pub fn announce(text: &str) {
    let lines: String = text.lines().map(|line| one_line(line) + "\n").collect();
    let (done, announced) = mpsc::channel();
    *ANNOUNCED.lock().expect("nobody panics with it") = Some(announced);
    let write = move || {
        let _done: Sender<Infallible> = done;
        if let Err(error) = Unbuffered(io::stdout()).write_all(lines.as_bytes()) {
            tracing::error!(
                "standard output: cannot write that the server is ready: {error}; it serves all the same"
            );
        }
    };
    let thread = std::thread::Builder::new().name("ready".to_owned());
    if let Err(error) = thread.spawn(write) {
        tracing::error!("standard output: cannot start a thread that writes to it: {error}");
    }
}

/// A file without the buffer and locks of the standard library. The buffer would be written at the end of the process, and other threads
/// would wait for the locks.
struct Unbuffered<F>(F);

impl<F: AsFd> Write for Unbuffered<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                // The file may have been opened as non-blocking on purpose.
                Err(Errno::AGAIN) => {
                    let mut room = [PollFd::new(&self.0, PollFlags::OUT)];
                    let _ = poll(&mut room, None);
                }
                result => return Ok(result?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a selection of messages: a level, or levels of parts of the program, separated by commas.
///
/// # Errors
///
/// If an item is neither. A misspelt level would select a part of that name, and no message of other parts would appear.
pub fn filter(text: &str) -> Result<Targets, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_one = |part: &str| {
        part.contains('=') || LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part))
    };
    if let Some(part) = text.split(',').map(str::trim).find(|part| !is_one(part)) {
        return Err(format!(
            "`{part}` is no level; allowed are {}, or PART=LEVEL, several by comma",
            LEVELS.join(", ")
        ));
    }
    text.parse()
        .map_err(|error: tracing_subscriber::filter::ParseError| error.to_string())
}

/// Tells the service manager, if there is one (`NOTIFY_SOCKET`), as sd_notify(3) does.
pub fn notify(state: &str) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket.to_string_lossy(), state) {
        tracing::warn!("the service manager cannot be told {state}: {error}");
    }
}

/// Time within which the service manager expects to be told that the server runs (`WATCHDOG_USEC`), as sd_watchdog_enabled(3)
/// reads it.
pub fn watchdog() -> Option<Duration> {
    let number = |name| env::var_os(name)?.to_str()?.parse::<u64>().ok();
    let is_for_another = |process| process != u64::from(std::process::id());
    if number("WATCHDOG_PID").is_some_and(is_for_another) {
        return None;
    }
    let within = number("WATCHDOG_USEC").map(Duration::from_micros)?;
    (within > Duration::ZERO).then_some(within)
}

fn send(socket: &str, state: &str) -> io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    from.set_write_timeout(Some(NOTIFY_WITHIN))?;
    from.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests;
