//! Messages of a server: to people on standard error, to the service manager over its socket.

use super::config::{LogConfig, LogFormat};
use crate::fault::Fault;
use std::env;
use std::io::{self, IsTerminal};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use tracing_subscriber::EnvFilter;

/// Which messages, in place of the configuration's.
pub const LEVEL: &str = "HEADTIME_LOG";

/// Begins to write messages to standard error: those that [`LEVEL`] names, or else the configuration,
/// or else all from `info` on.
///
/// # Errors
///
/// If that is not written as it must be.
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
        (None, None) => EnvFilter::new("info"),
    };
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let messages = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !plain)
        .with_target(false);
    // Who has begun already is a test that runs several servers in one process.
    let _ = match format.or(config.format).unwrap_or_default() {
        LogFormat::Text => messages.try_init(),
        LogFormat::Json => messages.json().try_init(),
    };
    Ok(())
}

/// Reads which messages are wanted: a level, or levels of parts of the program by comma.
///
/// # Errors
///
/// If one is neither. A word that is no level would be the name of a part, and everything else silent.
pub fn filter(text: &str) -> Result<EnvFilter, String> {
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
    EnvFilter::try_new(text).map_err(|error| error.to_string())
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

fn send(socket: &str, state: &str) -> io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
