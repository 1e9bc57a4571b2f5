//! The sections of the sockets and of the messages.

use super::access::{self, AccessKeys, Given, GroupConfig, SocketMode};
use super::sections::{ListenConfig, LogConfig, LogFormat, Socket};
use super::seen::{Seen, in_use_once, once};
use crate::live::messages::filter;
use headtime_config::{Error, Many, Place, Placed, parse};
use headtime_serve::nbd::REMOTE;
use headtime_serve::nbd::tls::TlsFiles;
use headtime_units::Bytes;
use serde::Deserialize;
use serde::de::Deserializer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest path of a unix socket, in bytes: 108 with the zero that ends the path (unix(7)).
pub const SOCKET_PATH_MAX: usize = 107;

/// Keys of the clients' sockets. Unlike an address, a mode with a last digit other than 0 clearly lets in all users. So no second key
/// is needed.
const CLIENTS: AccessKeys = AccessKeys {
    mode: "mode",
    group: "group",
    of: "nbd",
    others: true,
};

const CONTROL: AccessKeys = AccessKeys {
    mode: "control_mode",
    group: "control_group",
    of: "control",
    others: false,
};

/// The keys of `[listen]`.
///
/// Invariants of keys that [`listen`] accepts:
///
/// - `tls_certificate.is_some()` ⇔ `tls_key.is_some()`; `tls_ca.is_some()` ⇒ `tls_key.is_some()`.
/// - An address of `nbd` is no loopback address ⇒ `tls_ca.is_some()` or `trusted_network`.
/// - `mode` or `group` is given ⇒ `nbd` has a unix socket; `control_mode` or `control_group` ⇒ `control.is_some()`.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListenKeys {
    nbd: Option<Many<Socket>>,
    mode: Option<SocketMode>,
    group: Option<Placed<GroupConfig>>,
    tcp: bool,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    trusted_network: bool,
    #[serde(deserialize_with = "metrics")]
    metrics: Option<SocketAddr>,
    #[serde(deserialize_with = "control")]
    control: Option<PathBuf>,
    #[serde(deserialize_with = "max_bytes")]
    max_bytes: Option<Bytes>,
    control_mode: Option<SocketMode>,
    control_group: Option<Placed<GroupConfig>>,
}

fn metrics<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let expected = "an address, such as \"127.0.0.1:9104\"";
    parse(from, expected, |text| loopback(text, 9104)).map(Some)
}

pub(super) fn max_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    match Bytes::deserialize(from)? {
        max if (1 << 20..=1 << 40).contains(&max.0) => Ok(Some(max)),
        _ => Err(serde::de::Error::custom("allowed is 1MiB to 1TiB")),
    }
}

fn control<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = |text: &str| match text.parse()? {
        Socket::Unix(path) => Ok(path),
        Socket::Tcp(_) => Err("allowed is a unix socket only, unix:PATH".to_owned()),
    };
    parse(from, "\"unix:PATH\"", path).map(Some)
}

/// Checks the sockets of clients, control and metrics.
pub(super) fn listen(keys: &Placed<ListenKeys>, seen: &mut Seen) -> Result<ListenConfig, Error> {
    let nbd = keys.nbd.as_ref().map_or(&[][..], |Many(sockets)| sockets);
    let is_unix = |socket: &Socket| matches!(socket, Socket::Unix(_));
    let given = |mode: Option<SocketMode>, group, is_there| Given {
        mode: mode.map(|SocketMode(mode)| mode),
        group,
        is_there,
    };
    let clients = given(keys.mode, keys.group.as_ref(), nbd.iter().any(is_unix));
    let access = access::access(keys, &CLIENTS, &clients)?;
    let controlling = given(
        keys.control_mode,
        keys.control_group.as_ref(),
        keys.control.is_some(),
    );
    let control_access = access::access(keys, &CONTROL, &controlling)?;
    let mut sockets: Vec<(&str, &Path)> = Vec::new();
    sockets.extend(nbd.iter().filter_map(|socket| match socket {
        Socket::Unix(path) => Some(("nbd", path.as_path())),
        Socket::Tcp(_) => None,
    }));
    sockets.extend(keys.control.as_deref().map(|path| ("control", path)));
    for (key, path) in sockets {
        in_use_once(seen, path, keys, key)?;
    }
    let mut addresses: BTreeMap<SocketAddr, Place> = BTreeMap::new();
    let tls = tls(keys)?;
    let tcp_sockets = nbd.iter().filter_map(|socket| match socket {
        Socket::Tcp(address) => Some(("nbd", *address)),
        Socket::Unix(_) => None,
    });
    for (key, address) in tcp_sockets.clone() {
        if !(address.ip().is_loopback() || keys.tls_ca.is_some() || keys.trusted_network) {
            let problem =
                format!("tcp:{address}: other machines reach this address; allowed is {REMOTE}");
            return Err(keys.error_at(key, problem));
        }
    }
    for (key, address) in tcp_sockets.chain(keys.metrics.map(|address| ("metrics", address))) {
        // Port 0 stands for a different port each time.
        if address.port() != 0 {
            let what = format!("{address} is in use already");
            once(&mut addresses, address, keys, key, &what)?;
        }
    }
    Ok(ListenConfig {
        max_bytes: keys.max_bytes.map(|max| max.0 as usize),
        nbd: nbd.to_vec(),
        access,
        tcp: keys.tcp,
        tls,
        trusted_network: keys.trusted_network,
        metrics: keys.metrics,
        control: keys.control.clone(),
        control_access,
    })
}

/// The files of TLS.
fn tls(keys: &Placed<ListenKeys>) -> Result<Option<Placed<TlsFiles>>, Error> {
    let (certificate, key) = match (&keys.tls_certificate, &keys.tls_key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (Some(_), None) => {
            return Err(keys.error_at("tls_certificate", "needs tls_key, the certificate's key"));
        }
        (None, Some(_)) => {
            return Err(keys.error_at("tls_key", "needs tls_certificate, its certificate"));
        }
        (None, None) if keys.tls_ca.is_some() => {
            return Err(keys.error_at("tls_ca", "needs tls_certificate and tls_key"));
        }
        (None, None) => return Ok(None),
    };
    if let Some(Many(sockets)) = &keys.nbd
        && !sockets
            .iter()
            .any(|socket| matches!(socket, Socket::Tcp(_)))
    {
        return Err(keys.error_at("tls_certificate", "is for addresses, and nbd has none"));
    }
    let ca = keys.tls_ca.clone();
    let files = TlsFiles {
        certificate,
        key,
        ca,
    };
    Ok(Some(keys.clone().map(|_| files)))
}

headtime_units::serde_as_text!(Socket, "a socket, such as \"unix:headtime.sock\"");

/// `unix:PATH` or `tcp:ADDRESS:PORT`.
impl FromStr for Socket {
    type Err = String;

    fn from_str(text: &str) -> Result<Socket, String> {
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
            return self::address(address, 10809).map(Socket::Tcp);
        }
        Err("write unix:PATH, or tcp:127.0.0.1:10809".to_owned())
    }
}

/// Reads an address. `port` is for the example in errors.
fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    literal
        .parse()
        .map_err(|_| format!("write address and port, such as 127.0.0.1:{port} or [::1]:{port}"))
}

/// Reads an address that only this machine reaches.
fn loopback(text: &str, port: u16) -> Result<SocketAddr, String> {
    let address = address(text, port)?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "other machines could reach that address; allowed are 127.0.0.1 and [::1] only"
                .to_owned(),
        ),
    }
}

/// The keys of `[log]`.
#[derive(Deserialize)]
pub(super) struct LogKeys {
    #[serde(default, deserialize_with = "level")]
    level: Option<String>,
    format: Option<LogFormat>,
    events: Option<PathBuf>,
}

fn level<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parse(from, "a level, such as \"info\"", |text| {
        filter(text).map(|_| Some(text.to_owned()))
    })
}

impl From<LogKeys> for LogConfig {
    fn from(keys: LogKeys) -> LogConfig {
        LogConfig {
            level: keys.level,
            format: keys.format,
            events: keys.events,
        }
    }
}
