//! Thread that makes progress durable.

use super::super::files::DurableFile;
use headtime_linux::shown::PathShown as _;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Makes the progress durable on request, on a thread of its own. The thread ends when this value is dropped.
pub(super) struct Syncs {
    pub durable: Arc<DurableFile>,
    asks: SyncSender<()>,
}

impl Syncs {
    pub fn begin(durable: Arc<DurableFile>) -> io::Result<Syncs> {
        let (asks, told) = sync_channel(1);
        let file = Arc::clone(&durable);
        std::thread::Builder::new()
            .name("scrub-sync".to_owned())
            .spawn(move || {
                while told.recv().is_ok() {
                    if let Err(error) = file.sync() {
                        tracing::warn!("{}: {error}", file.path().shown());
                    }
                }
            })?;
        Ok(Syncs { durable, asks })
    }

    /// Requests a sync without waiting for it. Returns the error of an earlier sync.
    pub fn ask(&self) -> io::Result<()> {
        match self.asks.try_send(()) {
            // If a request is already queued, that one is enough.
            Ok(()) | Err(TrySendError::Full(())) => self.durable.problem(),
            Err(TrySendError::Disconnected(())) => Err(io::Error::other(
                "the thread that makes it durable has ended",
            )),
        }
    }
}
