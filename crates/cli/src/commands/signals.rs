//! Signals that end commands which have work to finish first.

use headtime_lab::fault::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Counts SIGINT, SIGTERM and SIGHUP from now on. The first two signals end nothing by themselves. The third ends the process at once.
pub(in crate::commands) fn signals() -> Result<Arc<AtomicU32>, Fault> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let (ready, is_ready) = mpsc::channel();
    let watch = move || {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hangup = signal(SignalKind::hangup())?;
            let _ = ready.send(());
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if counted.fetch_add(1, Ordering::Relaxed) >= 2 {
                    std::process::exit(130);
                }
            }
        })
    };
    let problem =
        |text: &dyn std::fmt::Display| Fault::File(format!("signals cannot be waited for: {text}"));
    let watcher = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map_err(|error| problem(&error))?;
    if is_ready.recv().is_ok() {
        return Ok(count);
    }
    let ended: Result<std::io::Result<()>, _> = watcher.join();
    Err(match ended {
        Ok(Err(error)) => problem(&error),
        _ => problem(&"their thread ended"),
    })
}
