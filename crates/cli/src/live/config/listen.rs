//! The sections of the sockets and of the messages.

use super::access::{self, Keys};
use super::seen::{Seen, in_use_once, once};
use super::{ListenConfig, LogConfig, LogFormat, SOCKET_PATH_MAX, Socket};
use crate::live::messages::filter;
use crate::scenario::tree::{Place, Section, TreeError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A last digit other than 0 says nothing but that everybody is let in: it needs no second key to be
/// meant, as an address does.
const CLIENTS: Keys = Keys {
    mode: "mode",
    group: "group",
    of: "nbd",
    others: true,
};

const CONTROL: Keys = Keys {
    mode: "control_mode",
    group: "control_group",
    of: "control",
    others: false,
};

/// Reads `[listen]`.
pub(super) fn listen(mut section: Section<'_>, seen: &mut Seen) -> Result<ListenConfig, TreeError> {
    section.allow(&[
        "nbd",
        "mode",
        "group",
        "tcp",
        "metrics",
        "control",
        "control_mode",
        "control_group",
    ])?;
    let expected = "a socket, such as \"unix:headtime.sock\"";
    let nbd = section
        .parse_list("nbd", expected, |text| {
            socket(text).map_err(|problem| format!("\"{text}\": {problem}"))
        })?
        .unwrap_or_default();
    let tcp = section.flag("tcp")?.unwrap_or(false);
    let metrics = section.parse(
        "metrics",
        "an address, such as \"127.0.0.1:9104\"",
        |text| loopback(text, 9104),
    )?;
    let control = section.parse("control", "\"unix:PATH\"", |text| match socket(text)? {
        Socket::Unix(path) => Ok(path),
        Socket::Tcp(_) => Err("allowed is a unix socket only, unix:PATH".to_owned()),
    })?;
    let is_unix = |socket: &Socket| matches!(socket, Socket::Unix(_));
    let access = access::access(&mut section, &CLIENTS, nbd.iter().any(is_unix))?;
    let control_access = access::access(&mut section, &CONTROL, control.is_some())?;
    let mut sockets: Vec<(&str, &Path)> = Vec::new();
    sockets.extend(nbd.iter().filter_map(|socket| match socket {
        Socket::Unix(path) => Some(("nbd", path.as_path())),
        Socket::Tcp(_) => None,
    }));
    sockets.extend(control.as_deref().map(|path| ("control", path)));
    for (key, path) in sockets {
        in_use_once(seen, path, &section, key)?;
    }
    let mut addresses: BTreeMap<SocketAddr, Place> = BTreeMap::new();
    let tcp_sockets = nbd.iter().filter_map(|socket| match socket {
        Socket::Tcp(address) => Some(("nbd", *address)),
        Socket::Unix(_) => None,
    });
    for (key, address) in tcp_sockets.chain(metrics.map(|address| ("metrics", address))) {
        // Port 0 is another one each time.
        if address.port() != 0 {
            let what = format!("{address} is in use already");
            once(&mut addresses, address, &section, key, &what)?;
        }
    }
    section.finish()?;
    Ok(ListenConfig {
        nbd,
        access,
        tcp,
        metrics,
        control,
        control_access,
    })
}

/// Reads `unix:PATH` or `tcp:ADDRESS:PORT`.
fn socket(text: &str) -> Result<Socket, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.len() {
            0 => Err("the path is missing; write unix:PATH".to_owned()),
            len if len > SOCKET_PATH_MAX => Err(format!(
                "the path has {len} bytes; a unix socket's has at most {SOCKET_PATH_MAX}"
            )),
            _ => Ok(Socket::Unix(PathBuf::from(path))),
        };
    }
    if let Some(address) = text.strip_prefix("tcp:") {
        return loopback(address, 10809).map(Socket::Tcp);
    }
    Err("write unix:PATH, or tcp:127.0.0.1:10809".to_owned())
}

/// Reads an address that only this machine reaches; `port` is one for an example.
fn loopback(text: &str, port: u16) -> Result<SocketAddr, String> {
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let address: SocketAddr = literal
        .parse()
        .map_err(|_| format!("write address and port, such as 127.0.0.1:{port} or [::1]:{port}"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "other machines could reach that address; allowed are 127.0.0.1 and [::1] only"
                .to_owned(),
        ),
    }
}

/// Reads `[log]`.
pub(super) fn log(mut section: Section<'_>) -> Result<LogConfig, TreeError> {
    section.allow(&["level", "format", "events"])?;
    let level = section.parse("level", "a level, such as \"info\"", |text| {
        filter(text).map(|_| text.to_owned())
    })?;
    let format = section.parse("format", "\"text\" or \"json\"", |text| match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("allowed are text, json".to_owned()),
    })?;
    let events = section.text("events")?.map(PathBuf::from);
    section.finish()?;
    Ok(LogConfig {
        level,
        format,
        events,
    })
}
