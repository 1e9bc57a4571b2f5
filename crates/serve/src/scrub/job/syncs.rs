//! What makes progress durable.

use super::super::files::Durable;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Makes the progress durable whenever it is told to, on a thread of its own, which ends with who tells it.
pub(super) struct Syncs {
    pub durable: Arc<Durable>,
    asks: SyncSender<()>,
}

impl Syncs {
    pub fn begin(durable: Arc<Durable>) -> io::Result<Syncs> {
        let (asks, told) = sync_channel(1);
        let file = Arc::clone(&durable);
        std::thread::Builder::new()
            .name("scrub-sync".to_owned())
            .spawn(move || {
                while told.recv().is_ok() {
                    if let Err(error) = file.sync() {
                        tracing::warn!("{}: {error}", file.path().display());
                    }
                }
            })?;
        Ok(Syncs { durable, asks })
    }

    /// Asks for it. The error is that of an earlier time.
    pub fn ask(&self) -> io::Result<()> {
        match self.asks.try_send(()) {
            // If one is under way, the next time is soon enough.
            Ok(()) | Err(TrySendError::Full(())) => self.durable.problem(),
            Err(TrySendError::Disconnected(())) => Err(io::Error::other(
                "the thread that makes it durable has ended",
            )),
        }
    }
}
