//! `headtime serve`

use super::context::Context;
use crate::args::{Live, Serve};
use crate::live::child::{self, RunCommand, SocketFolder};
use crate::live::config::{Config, Socket};
use crate::live::disk::PreparedDisk;
use crate::live::disks::{self, Prepared, Starting};
use crate::live::goals;
use crate::live::server::{Ended, Server};
use crate::live::{messages, sockets};
use headtime_lab::fault::Fault;
use headtime_linux::clock::Clock;
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_linux::sys;
use headtime_serve::disk::{ExportLimits, ShareBy};
use headtime_serve::file::{self, Priorities};
use headtime_serve::listen::Inherited;
use headtime_units::Bytes;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn serve(args: &Serve, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut config = Config::open(&args.config)?;
    let file = args.config.shown();
    let inherited = sockets::inherited()?;
    let is_unheard = config.listen.nbd.is_empty() && inherited.nbd.is_empty();
    let folder = (args.run.as_ref().filter(|_| is_unheard)).map(|_| SocketFolder::new());
    let folder = folder.transpose()?;
    config
        .listen
        .nbd
        .extend(folder.iter().map(|folder| Socket::Unix(folder.socket())));
    if config.listen.nbd.is_empty() && inherited.nbd.is_empty() {
        return Err(Fault::Input(format!(
            "{file}: listen.nbd: missing; give for example nbd = \"unix:headtime.sock\""
        )));
    }
    let clients = match inherited.nbd.is_empty() {
        true => sockets::nbd(&config.listen),
        false => inherited.nbd.clone(),
    };
    if let Some(socket) = clients.iter().find(|socket| socket.tcp().is_some())
        && !args.tcp
        && !config.listen.tcp
        && !config.listen.trusted_network
        && !config.listen.needs_client_certificates()
    {
        return Err(Fault::Input(format!(
            "{file}: listen.nbd: every user of this machine can connect to {socket}; if that is meant, \
             say listen.tcp = true or --tcp, or give listen.tls_ca"
        )));
    }
    let prepared = disks::prepare(&config)?;
    if args.check {
        return check(&config, &prepared, &args.live, context);
    }
    let server = start(&config, inherited, prepared, &args.live)?;
    let announce = |text: &str| {
        if args.ready {
            messages::announce(text);
        }
    };
    let Some(command) = &args.run else {
        let (ended, result) = server.run(&mut |text| announce(text));
        say_end(&ended);
        return result.and_then(|()| on_time(args, &ended));
    };
    let mut exports = server.running.iter().flat_map(|running| &running.exports);
    let export = exports.next().map(|export| export.name.clone());
    let export = export.unwrap_or_default();
    let (mut command, front) = RunCommand::new(command);
    let (ended, result) = server.run_behind(front, &mut |text| {
        announce(text);
        command.start(&child::environment(&config.listen, text, &export));
    });
    say_end(&ended);
    result
        .and(command.result())
        .and_then(|()| on_time(args, &ended))
}

/// Returns an error if completions had to be on time, and were late.
fn on_time(args: &Serve, ended: &Ended) -> Result<(), Fault> {
    match ended.disks.iter().find_map(Ended::late) {
        Some((name, share)) if args.on_time => Err(Fault::Late(format!(
            "disk {name}: {:.1} % of completions were more than 0.5 ms late; run again on an idle machine",
            share * 100.0
        ))),
        _ => Ok(()),
    }
}

/// Starts the disks of a configuration. The caller provides their front.
pub(super) fn start(
    config: &Config,
    inherited: Inherited,
    prepared: Vec<Prepared>,
    live: &Live,
) -> Result<Server, Fault> {
    let goals = goals::prepare(config, &prepared)?;
    let notes = sockets::look(&config.listen)?;
    let network = sockets::network(&config.listen)?;
    messages::begin(&config.log, live.log_format)?;
    let members = prepared.iter().flat_map(|prepared| &prepared.members);
    for note in notes
        .into_iter()
        .chain(members.flat_map(PreparedDisk::warnings))
    {
        tracing::warn!("{note}");
    }
    settle();
    let how = Starting {
        clock: Clock::start(),
        force: live.force,
        log: log(config, live).map(Path::to_owned),
    };
    let running = disks::start(prepared, &how)?;
    Ok(Server {
        file: config.file.clone(),
        listen: config.listen.clone(),
        inherited,
        network,
        clock: how.clock,
        running,
        programs: config.programs.clone(),
        goals,
    })
}

/// File for events and decisions.
fn log<'a>(config: &'a Config, live: &'a Live) -> Option<&'a Path> {
    live.log.as_deref().or(config.log.events.as_deref())
}

/// Prints the summary of a run, even after a fault.
pub(super) fn say_end(ended: &Ended) {
    messages::say("", &ended.summary());
}

/// Prepares the server's process: private files, locked memory, and allocations that do not wait for write-back. Logs each step that the
/// kernel refuses.
fn settle() {
    // Sockets, stores and logs that the server makes are readable by their owner alone.
    sys::private_files();
    match sys::lock_memory() {
        Ok(()) => tracing::debug!("memory is locked as it is touched"),
        Err(error) => tracing::info!("memory is not locked: {error}"),
    }
    match sys::be_io_flusher() {
        Ok(()) => tracing::debug!("allocations do not wait for dirty pages"),
        Err(error) => tracing::info!("allocations may wait for dirty pages: {error}"),
    }
}

/// Prints the disks that would be served.
fn check(
    config: &Config,
    prepared: &[Prepared],
    live: &Live,
    context: &mut Context<'_>,
) -> Result<(), Fault> {
    let (mut text, mut in_use) = (String::new(), Vec::new());
    for prepared in prepared {
        let size = match prepared.look(live.force) {
            Ok(found) => Some(Bytes(found.bytes())),
            // The server of an earlier version of this configuration, in most cases.
            Err(Fault::InUse(problem)) => {
                in_use.push(format!("{problem}; a start is refused meanwhile"));
                None
            }
            Err(fault) => return Err(fault),
        };
        match &prepared.array {
            None => check_disk(&mut text, "", &prepared.members[0], size, live.force),
            Some(array) => {
                let (name, what) = (&array.name, one_line(&prepared.backend()));
                let size = size.map_or(String::new(), |size| format!(", {size}"));
                let _ = writeln!(text, "array {name}: {what}{size}");
                for member in &prepared.members {
                    check_disk(&mut text, "  ", member, None, live.force);
                }
            }
        }
        for export in prepared.exports() {
            let class = export.class;
            let read_only = if export.read_only { ", read-only" } else { "" };
            let range =
                (export.range.as_ref()).map_or(String::new(), |range| format!(", {}", **range));
            let share = match (export.share.by, export.share.weight) {
                (ShareBy::None, _) => ", no share".to_owned(),
                (ShareBy::Peer, weight) => format!(", share {weight} for each peer"),
                (ShareBy::Export, 1) => String::new(),
                (ShareBy::Export, weight) => format!(", share {weight}"),
            };
            let rate = (export.rate).map_or(String::new(), |rate| format!(", at most {rate}"));
            let usual = ExportLimits::default();
            let ExportLimits { requests, bytes } = export.limits;
            let mut limits = String::new();
            if requests != usual.requests {
                let _ = write!(limits, ", at most {requests} requests in flight");
            }
            if bytes != usual.bytes {
                let _ = write!(limits, ", at most {} in flight", Bytes(bytes as u64));
            }
            let _ = writeln!(
                text,
                "  export {}: {class}{read_only}{range}{share}{rate}{limits}",
                export.name
            );
        }
    }
    goals::prepare(config, prepared)?;
    for program in &config.programs {
        let goal = (program.goal).map_or(String::new(), |goal| format!(", goal {goal}"));
        let p99 = (program.p99).map_or(String::new(), |p99| format!(", p99 {p99}"));
        let exports = program.exports.join(", ");
        let _ = writeln!(text, "program {}: {exports}{goal}{p99}", program.name);
    }
    disks::look_at_logs(prepared, log(config, live))?;
    let notes = sockets::look(&config.listen)?;
    sockets::network(&config.listen)?;
    let tls = match (
        &config.listen.tls,
        config.listen.needs_client_certificates(),
    ) {
        (None, _) => "",
        (Some(_), false) => ", TLS",
        (Some(_), true) => ", TLS with client certificates",
    };
    for socket in &config.listen.nbd {
        let shown = one_line(&socket.to_string());
        let _ = match socket {
            Socket::Unix(_) => writeln!(text, "nbd at {shown}{}", config.listen.access),
            Socket::Tcp(_) => writeln!(text, "nbd at {shown}{tls}"),
        };
    }
    if let Some(address) = config.listen.metrics {
        let _ = writeln!(text, "metrics at http://{address}/metrics");
    }
    if let Some(path) = &config.listen.control {
        let path = one_line(&path.to_string_lossy());
        let access = &config.listen.control_access;
        let _ = writeln!(text, "control at unix:{path}{access}");
    }
    context.print(&text)?;
    let notes = in_use.iter().chain(&notes);
    notes.for_each(|note| context.note(note));
    let members = prepared.iter().flat_map(|prepared| &prepared.members);
    members
        .flat_map(PreparedDisk::warnings)
        .for_each(|note| context.warn(&note));
    Ok(())
}

/// Adds a line for a disk that would be served.
/// Use of classes by the drive of a disk, for a device that has priorities or gets classes.
fn priorities(prepared: &PreparedDisk, force: bool) -> String {
    let options = prepared.file_options(force);
    let Some(Ok(file)) = options.map(|options| file::look_at(&options)) else {
        return String::new();
    };
    let sent = if file.sends_classes() { "" } else { "not " };
    match file.priorities() {
        Priorities::Absent if !file.sends_classes() => String::new(),
        Priorities::Absent => ", classes sent, no NCQ priority shown".to_owned(),
        Priorities::Off => format!(", classes {sent}sent, NCQ priority off (ncq_prio_enable)"),
        Priorities::On => format!(", classes {sent}sent, NCQ priority on"),
    }
}

fn check_disk(
    text: &mut String,
    indent: &str,
    prepared: &PreparedDisk,
    size: Option<Bytes>,
    force: bool,
) {
    let disk = &prepared.config;
    let size = size.map_or(String::new(), |size| format!(" {size},"));
    let timeout = disk
        .timeout
        .map_or("off".to_owned(), |timeout| timeout.to_string());
    let waiting = disk.queue_timeout.map_or(String::new(), |timeout| {
        format!(", queue_timeout {timeout}")
    });
    let read_only = if disk.read_only { ", read-only" } else { "" };
    let priorities = priorities(prepared, force);
    let assumed = prepared.known.belief().map_or(String::new(), |drive| {
        format!(", assumed profile {}", drive.name)
    });
    let _ = writeln!(
        text,
        "{indent}disk {}: {},{size} {}, depth {}, gate {}{assumed}, timeout {timeout}{waiting}{read_only}{priorities}",
        disk.name,
        one_line(&prepared.backend()),
        disk.stack.scheduler,
        prepared.engine.depth,
        prepared.engine.gate,
    );
}
