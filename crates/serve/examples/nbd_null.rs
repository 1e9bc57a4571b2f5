//! Serves a device that answers at once over NBD, until it is interrupted. The example shows the cost of a request
//! without a disk.
//!
//! ```text
//! cargo run --release --example nbd_null -- --socket PATH|tcp:ADDRESS:PORT [--size-gib 1] [--depth 32] [--tls DIR]
//! ```
//!
//! DIR has `server-cert.pem`, `server-key.pem` and `ca-cert.pem`.

use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, WorkConserving};
use headtime_serve::disk::{Disk, Export, Options};
use headtime_serve::nbd::tls::{Tls, TlsFiles};
use headtime_serve::nbd::{Limits, Listen, Network, Server};
use headtime_serve::null::Null;
use headtime_units::Sectors;
use std::convert::Infallible;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut socket, mut gib, mut depth) = (None, 1, 32);
    let mut network = Network::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        match argument.as_str() {
            "--socket" => socket = Some(value),
            "--size-gib" => gib = value.parse()?,
            "--tls" => {
                let file = |name: &str| Path::new(&value).join(name);
                network.tls = Some(Tls::open(&TlsFiles {
                    certificate: file("server-cert.pem"),
                    key: file("server-key.pem"),
                    ca: Some(file("ca-cert.pem")),
                })?);
            }
            "--depth" => depth = value.parse()?,
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    let socket = socket.ok_or("--socket PATH is missing")?;
    let listen = match socket.starts_with("tcp:") {
        true => socket.parse()?,
        false => Listen::unix(socket),
    };

    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new("null", Clock::start(), ("noop".into(), Box::new(build)));
    options.engine.depth = depth;
    let sectors = Sectors::new(gib << 21);
    let disk = Disk::start(options, move || {
        Ok::<_, Infallible>(Box::new(Null::new(sectors, depth)) as Box<_>)
    })?;
    let export = Export {
        name: "null".into(),
        number: 0,
        class: Class::default(),
        read_only: false,
        addresses: disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: disk.clone(),
    };
    let server = Server::bind_to(network, &[listen], vec![export], Limits::default())?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let mut terminate =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            server
                .run(async move {
                    tokio::select! {
                        _ = tokio::signal::ctrl_c() => {}
                        _ = terminate.recv() => {}
                    }
                })
                .await
        })?;
    disk.stop()?;
    Ok(())
}
