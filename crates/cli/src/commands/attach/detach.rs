//! `headtime detach`

use super::super::context::Context;
use crate::args::Detach;
use headtime_attach::loopdev::{self, LoopDevice, User};
use headtime_lab::fault::Fault;
use headtime_linux::mounts::{self, Held};
use headtime_linux::shown::PathShown as _;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

pub(in super::super) fn detach(args: &Detach, context: &mut Context<'_>) -> Result<(), Fault> {
    let mountpoint = mounts::canonical(&args.mountpoint)
        .map_err(|error| Fault::reading(&args.mountpoint, &error))?;
    let at = mountpoint.shown();
    let failed = |error: io::Error| Fault::File(format!("{at}: {error}"));
    let mount = mounts::at(&mountpoint).map_err(failed)?;
    let devices = loopdev::backed_by(&mountpoint).map_err(failed)?;
    let server = match &mount {
        None if devices.is_empty() => {
            return Err(Fault::File(format!("{at}: nothing is attached there")));
        }
        None => None,
        Some(mount) => Some(mount.server().ok_or_else(|| {
            let kind = &mount.kind;
            Fault::File(format!(
                "{at}: what is mounted there is {kind}, and none of ours"
            ))
        })?),
    };
    free(&devices, args.force, context)?;
    let held = match server {
        Some(server) => server.hold().map_err(failed)?,
        None => None,
    };
    if let Some(held) = held {
        end(&held, args, &mountpoint)?;
    } else if server.is_some() {
        context.note(&format!("{at}: its server has gone already"));
    }
    clear(&mountpoint, context)
}

/// Checks that loop devices are not in use.
fn free(devices: &[LoopDevice], force: bool, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut used = String::new();
    for device in devices {
        let path = device.path();
        let users = device
            .users()
            .map_err(|error| Fault::reading(&path, &error))?;
        for user in users {
            let device = path.shown();
            match &user {
                User::Mounted(at) if force => {
                    context.note(&format!("{device} is {user}; unmounting"));
                    unmount(at, context)?;
                }
                _ => {
                    let _ = write!(used, "\n  {device} is {user}");
                }
            }
        }
    }
    match (used.is_empty(), force) {
        (true, _) => Ok(()),
        (false, false) => Err(Fault::File(format!(
            "in use; unmount what is mounted, or say --force:{used}"
        ))),
        (false, true) => Err(Fault::File(format!(
            "in use, which has to end first:{used}"
        ))),
    }
}

/// Unmounts a mount. A mount in use is unmounted lazily.
fn unmount(at: &Path, context: &mut Context<'_>) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::File(format!("{}: {error}", at.shown()));
    match mounts::unmount(at, false) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            context.note(&format!(
                "{}: in use; nobody finds it any more, and it goes with the last who has it open",
                at.shown()
            ));
            mounts::unmount(at, true).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Ends the server, which then undoes its mount and devices.
fn end(held: &Held, args: &Detach, mountpoint: &Path) -> Result<(), Fault> {
    let at = mountpoint.shown();
    let failed = |error: io::Error| Fault::File(format!("{at}: its server: {error}"));
    held.terminate().map_err(failed)?;
    if held.wait(args.timeout).map_err(failed)? {
        return Ok(());
    }
    if args.force {
        // After a second request, the server does not wait for processes with open files.
        held.terminate().map_err(failed)?;
        if held.wait(args.timeout).map_err(failed)? {
            return Ok(());
        }
    }
    Err(Fault::File(format!(
        "{at}: its server has been told to end and has not within {}; it says what it waits for",
        args.timeout
    )))
}

/// Removes the devices and the mount that a server has left behind because it could not end properly.
fn clear(mountpoint: &Path, context: &mut Context<'_>) -> Result<(), Fault> {
    let at = mountpoint.shown();
    let failed = |error: io::Error| Fault::File(format!("{at}: {error}"));
    for device in loopdev::backed_by(mountpoint).map_err(failed)? {
        let path = device.path();
        let path = path.shown();
        device.reset();
        let gone = device
            .detach()
            .map_err(|error| Fault::File(format!("{path}: {error}")))?;
        context.note(&match gone {
            true => format!("{path}: its file was taken away"),
            false => format!("{path}: is open, and loses its file when it is closed"),
        });
    }
    if mounts::at(mountpoint).map_err(failed)?.is_some() {
        unmount(mountpoint, context)?;
        context.note(&format!("{at}: unmounted"));
    }
    Ok(())
}
