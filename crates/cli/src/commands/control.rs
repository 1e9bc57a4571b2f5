//! `headtime control`

use super::Context;
use crate::args::{Control, ControlVerb, FaultVerb};
use crate::fault::Fault;
use headtime_serve::http::client::ask;
use std::io;
use std::path::Path;

pub(super) fn control(args: &Control, context: &mut Context<'_>) -> Result<(), Fault> {
    let to = |disk: &str, what: &str| -> Result<String, Fault> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match !disk.is_empty() && disk.bytes().all(plain) {
            true => Ok(format!("/disks/{disk}/{what}")),
            false => Err(Fault::Usage(format!("no disk can be called `{disk}`"))),
        }
    };
    let mut body = "";
    let (method, target) = match &args.verb {
        ControlVerb::Status => ("GET", "/status".to_owned()),
        ControlVerb::Metrics => ("GET", "/metrics".to_owned()),
        ControlVerb::PowerCut(of) => ("POST", to(&of.disk, "power-cut")?),
        ControlVerb::PowerOn(of) => ("POST", to(&of.disk, "power-on")?),
        ControlVerb::ClearFailure(of) => ("POST", to(&of.disk, "clear-failure")?),
        ControlVerb::Scheduler(swap) => {
            body = &swap.scheduler;
            ("POST", to(&swap.disk, "scheduler")?)
        }
        ControlVerb::Fault(fault) => ("POST", self::fault(fault, &to)?),
    };
    let answer = ask(&args.socket, method, &target, body)
        .map_err(|error| unanswered(&args.socket, &error))?;
    match answer.status {
        200 => context.print(&answer.body),
        // The server says what is wrong with what it was asked.
        400 | 403 | 404 => Err(Fault::Usage(answer.body.trim_end().to_owned())),
        _ => Err(Fault::Check(answer.body.trim_end().to_owned())),
    }
}

/// Why there is no answer: mostly it is the wrong socket, or nobody is there.
fn unanswered(socket: &Path, error: &io::Error) -> Fault {
    let what = "`listen.control` in the server's configuration";
    let hint = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("; no server listens there: give the path of {what}, of one that runs")
        }
        io::ErrorKind::InvalidData => format!("; give the path of {what}"),
        _ => String::new(),
    };
    Fault::File(format!("{}: {error}{hint}", socket.display()))
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
