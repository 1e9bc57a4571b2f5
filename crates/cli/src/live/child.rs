//! A command that runs while a server is ready (`serve --run`). The server ends with the command.

use super::config::{ListenConfig, Socket};
use super::front::Front;
use headtime_lab::fault::Fault;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time that the command has to end, once the server ends for another reason. Then the command is killed.
const END_GRACE: Duration = Duration::from_secs(10);

/// Directories of killed servers that are passed over.
const ATTEMPTS: u32 = 100;

/// A command, before and after it has started.
pub struct RunCommand {
    text: String,
    state: Arc<CommandState>,
    gone: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
struct CommandState {
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Invariant: `status` is absent while `child` is not reaped.
#[derive(Default)]
struct Progress {
    child: Option<Child>,
    status: Option<Result<ExitStatus, String>>,
}

impl CommandState {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to the command, if it still runs.
    fn signal(&self, signal: Signal) {
        // The process is reaped under the lock, so the number is still the command's.
        let progress = self.lock();
        if progress.status.is_none()
            && let Some(child) = &progress.child
        {
            // The command may have ended already.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Waits for the end of the command for at most `END_GRACE`.
    fn ends(&self) -> bool {
        let runs = |progress: &mut Progress| progress.child.is_some() && progress.status.is_none();
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), END_GRACE, runs);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl RunCommand {
    /// Returns the command, and the front of a server that ends with the command.
    pub fn new(text: &str) -> (RunCommand, Front) {
        let state = Arc::new(CommandState::default());
        let (gone, is_gone) = oneshot::channel();
        let (ending, abandoned) = (Arc::clone(&state), Arc::clone(&state));
        let front = Front {
            gone: Box::pin(async {
                // A dropped sender means that the command never started.
                if is_gone.await.is_err() {
                    std::future::pending::<()>().await;
                }
            }),
            end: Box::new(move || {
                ending.signal(Signal::TERM);
                if !ending.ends() {
                    ending.signal(Signal::KILL);
                }
                Ok(())
            }),
            abandon: Arc::new(move || abandoned.signal(Signal::KILL)),
        };
        let command = RunCommand {
            text: text.to_owned(),
            state,
            gone: Some(gone),
        };
        (command, front)
    }

    /// Starts the command by the shell, with the variables of [`environment`].
    pub fn start(&mut self, variables: &[(&'static str, String)]) {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.text);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let Some(gone) = self.gone.take() else {
            return;
        };
        let state = Arc::clone(&self.state);
        match command.spawn() {
            Ok(child) => {
                let id = Pid::from_child(&child);
                state.lock().child = Some(child);
                thread::spawn(move || reap(&state, id, gone));
            }
            Err(error) => {
                state.lock().status = Some(Err(format!("sh: {error}")));
                // Without a receiver the server ends already.
                let _ = gone.send(());
            }
        }
    }

    /// Result of the command.
    ///
    /// # Errors
    ///
    /// If the command did not end with 0; with its exit code, or 128 and the number of the signal that ended it.
    pub fn result(&self) -> Result<(), Fault> {
        match &self.state.lock().status {
            None => Ok(()),
            Some(Ok(status)) if status.success() => Ok(()),
            Some(Ok(status)) => {
                let code = status.code().or(status.signal().map(|signal| 128 + signal));
                let code = code.and_then(|code| u8::try_from(code).ok());
                Err(Fault::Command(code.unwrap_or(1)))
            }
            Some(Err(problem)) => Err(Fault::File(format!("--run: {problem}"))),
        }
    }
}

/// Waits for the end of the command, then takes its status.
fn reap(state: &CommandState, id: Pid, gone: oneshot::Sender<()>) {
    // The process stays a zombie until the lock is held, so that no signal can meet another process.
    let _ = waitid(
        WaitId::Pid(id),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    let mut progress = state.lock();
    let status = progress.child.as_mut().map(Child::wait);
    progress.status = status.map(|status| status.map_err(|error| error.to_string()));
    drop(progress);
    state.changed.notify_all();
    // Without a receiver the server ends already.
    let _ = gone.send(());
}

/// Variables of the command: `uri`, `nbd` and `unixsocket`, as nbdkit sets them, and `HEADTIME_CONTROL`. `ready` is the server's line
/// with its addresses, `export` the first export.
pub fn environment(
    listen: &ListenConfig,
    ready: &str,
    export: &str,
) -> Vec<(&'static str, String)> {
    let (name, export) = (export, quoted(export));
    let mut variables = Vec::new();
    if let Some(Socket::Unix(path)) = listen.nbd.first() {
        let path = path.to_string_lossy().into_owned();
        let uri = format!("nbd+unix:///{export}?socket={}", quoted(&path));
        let nbd = format!("nbd:unix:{path}:exportname={name}");
        variables.extend([("uri", uri), ("nbd", nbd), ("unixsocket", path)]);
    } else {
        // Only the server knows the port if the configuration asks for any.
        let mut addresses = ready
            .split(' ')
            .filter_map(|word| word.strip_prefix("nbd=tcp:"));
        if let Some(address) = addresses.next() {
            if listen.tls.is_some() {
                variables.push(("uri", format!("nbds://{address}/{export}")));
            } else {
                variables.push(("uri", format!("nbd://{address}/{export}")));
                variables.push(("nbd", format!("nbd:{address}:exportname={name}")));
            }
        }
    }
    let control = listen
        .control
        .as_ref()
        .map(|path| path.to_string_lossy().into_owned());
    variables.extend(control.map(|path| ("HEADTIME_CONTROL", path)));
    variables
}

/// Text with percent signs for all but plain characters of a path (RFC 3986).
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                quoted.push(char::from(byte));
            }
            other => {
                let _ = write!(quoted, "%{other:02X}");
            }
        }
    }
    quoted
}

/// A directory of the user's own for a socket. Removed when dropped.
pub struct SocketFolder(PathBuf);

impl SocketFolder {
    /// Makes the directory.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made.
    pub fn new() -> Result<SocketFolder, Fault> {
        let process = std::process::id();
        let path = |attempt| std::env::temp_dir().join(format!("headtime-{process}-{attempt}"));
        // A killed server leaves its directory, and the number of its process comes again.
        let unused = (0..ATTEMPTS).map(path).find(|path| !path.exists());
        let path = unused.unwrap_or_else(|| path(ATTEMPTS));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Fault::writing(&path, &error))?;
        Ok(SocketFolder(path))
    }

    /// Path of the socket.
    pub fn socket(&self) -> PathBuf {
        let folder: &Path = &self.0;
        folder.join("nbd.sock")
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // The server has removed the socket.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_those_of_nbdkit() {
        let of = |listen: &ListenConfig, ready: &str, export: &str| {
            let variables = environment(listen, ready, export);
            let lines = variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            lines.collect::<Vec<_>>()
        };
        let mut listen = ListenConfig {
            nbd: vec![Socket::Unix("/a b/s".into())],
            control: Some("c.sock".into()),
            ..ListenConfig::default()
        };
        assert_eq!(
            of(&listen, "ready nbd=unix:/a b/s", "disk0"),
            [
                "uri=nbd+unix:///disk0?socket=/a%20b/s",
                "nbd=nbd:unix:/a b/s:exportname=disk0",
                "unixsocket=/a b/s",
                "HEADTIME_CONTROL=c.sock"
            ]
        );
        listen.nbd = vec![Socket::Tcp("127.0.0.1:0".parse().unwrap())];
        listen.control = None;
        assert_eq!(
            of(&listen, "ready nbd=tcp:127.0.0.1:10809 metrics=x", "a%b"),
            [
                "uri=nbd://127.0.0.1:10809/a%25b",
                "nbd=nbd:127.0.0.1:10809:exportname=a%b"
            ]
        );
    }
}
