//! `headtime control`

mod status;
mod top;

use super::context::Context;
use crate::args::{Control, ControlVerb, FaultVerb, ProfileVerb, ProgramVerb};
use headtime_lab::fault::Fault;
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_serve::http::client::{Answer, ask};
use std::io;
use std::path::Path;

pub(super) use top::top;

pub(super) fn control(args: &Control, context: &mut Context<'_>) -> Result<(), Fault> {
    let to = disk_target;
    let mut body = "";
    let (method, target) = match &args.verb {
        ControlVerb::Status { .. } => ("GET", "/status".to_owned()),
        ControlVerb::Metrics => ("GET", "/metrics".to_owned()),
        ControlVerb::PowerCut(of) => ("POST", to(&of.disk, "power-cut")?),
        ControlVerb::PowerOn(of) => ("POST", to(&of.disk, "power-on")?),
        ControlVerb::ClearFailure(of) => ("POST", to(&of.disk, "clear-failure")?),
        ControlVerb::Scheduler(swap) => {
            body = &swap.scheduler;
            ("POST", to(&swap.disk, "scheduler")?)
        }
        ControlVerb::Gate(swap) => {
            body = &swap.gate;
            ("POST", to(&swap.disk, "gate")?)
        }
        ControlVerb::Qos { verb: None } => ("GET", "/qos".to_owned()),
        ControlVerb::Qos {
            verb: Some(ProgramVerb::Goal { program, goal }),
        } => {
            body = goal;
            ("POST", named("qos", program, "goal")?)
        }
        ControlVerb::Qos {
            verb: Some(ProgramVerb::Profile { program, verb }),
        } => {
            let verb = match verb {
                ProfileVerb::Start => "profile/start",
                ProfileVerb::Stop => "profile/stop",
            };
            ("POST", named("qos", program, verb)?)
        }
        ControlVerb::Fault(fault) => ("POST", self::fault(fault, &to)?),
    };
    let answer = ask_server(&args.socket, method, &target, body)?;
    let is_for_people = matches!(args.verb, ControlVerb::Status { json: false });
    let table = is_for_people.then(|| status::text(&answer, context.terminal));
    context.print(&table.flatten().unwrap_or(answer))
}

/// Target of a command to a disk.
pub(super) fn disk_target(disk: &str, what: &str) -> Result<String, Fault> {
    named("disks", disk, what)
}

/// Target of a command to a disk or a program.
fn named(of: &str, name: &str, what: &str) -> Result<String, Fault> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !name.is_empty() && name.bytes().all(plain) {
        true => Ok(format!("/{of}/{name}/{what}")),
        false => Err(Fault::Usage(format!(
            "no {} can be called `{}`",
            if of == "qos" { "program" } else { "disk" },
            one_line(name)
        ))),
    }
}

/// Asks the server behind a control socket. A refusal of the server is an error.
pub(super) fn ask_server(
    socket: &Path,
    method: &str,
    target: &str,
    body: &str,
) -> Result<String, Fault> {
    let answer = ask(socket, method, target, body).map_err(|error| unanswered(socket, &error))?;
    done(socket, answer)
}

/// Returns the text of an answer. Every refusal is a [`Fault::Check`], even for an unknown disk or scheduler, since the command line
/// does not show the server's disks. A script that asks several servers can therefore tell a refusal from a mistake of its own.
fn done(socket: &Path, answer: Answer) -> Result<String, Fault> {
    match (answer.status, answer.body.trim_end()) {
        (200, _) => Ok(answer.body),
        // A server that gives no reason does not know the request. The server has another version, or is no Headtime server.
        (status, "") => Err(Fault::Check(format!(
            "{}: refused with HTTP's {status}, without a reason",
            socket.shown()
        ))),
        (_, why) => Err(Fault::Check(why.to_owned())),
    }
}

/// Creates the fault for a missing answer. The usual cause is a wrong socket, or a socket without a server.
fn unanswered(socket: &Path, error: &io::Error) -> Fault {
    let what = "`listen.control` in the server's configuration";
    let hint = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("; no server listens there: give the path of {what}, of one that runs")
        }
        io::ErrorKind::InvalidData => format!("; give the path of {what}"),
        io::ErrorKind::PermissionDenied => {
            "; who may connect say `listen.control_mode` and `listen.control_group` in the server's \
             configuration, and the directories above it"
                .to_owned()
        }
        _ => String::new(),
    };
    Fault::File(format!("{}: {error}{hint}", socket.shown()))
}

fn fault(
    fault: &FaultVerb,
    to: &impl Fn(&str, &str) -> Result<String, Fault>,
) -> Result<String, Fault> {
    match fault {
        FaultVerb::Unreadable {
            disk,
            lba,
            sectors,
            retries,
        } => to(
            disk,
            &format!("fault?kind=unreadable&lba={lba}&sectors={sectors}&retries={retries}"),
        ),
        FaultVerb::Stall { disk, span } => to(disk, &format!("fault?kind=stall&for={span}")),
        FaultVerb::LoseNext { disk } => to(disk, "fault?kind=lose-next"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> (u8, String) {
        let body = body.to_owned();
        match done(Path::new("c.sock"), Answer { status, body }) {
            Ok(body) => (0, body),
            Err(fault) => (fault.exit_code(), fault.to_string()),
        }
    }

    #[test]
    fn whatever_the_server_refuses_ends_with_1() {
        assert_eq!(of(200, "as it is\n"), (0, "as it is\n".to_owned()));
        for status in [204, 302, 400, 403, 404, 405, 409, 413, 500, 503] {
            assert_eq!(of(status, "why\n"), (1, "why".to_owned()), "{status}");
            let bare = format!("c.sock: refused with HTTP's {status}, without a reason");
            assert_eq!(of(status, ""), (1, bare), "{status}");
        }
    }
}
