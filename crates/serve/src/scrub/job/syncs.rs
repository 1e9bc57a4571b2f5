//! What makes progress durable.

use super::super::files::DurableFile;
use headtime_linux::shown::PathShown as _;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Makes the progress durable whenever it is told to, on a thread of its own, which ends with who tells it.
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

/// How far the end of a scrub is that does something with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// There is more to do.
    NotYet,
    /// What was done is being made durable, by the sync of this number.
    Syncs(u64),
    /// It is.
    Synced,
    /// That it is done is being made durable.
    Says(u64),
    /// It is.
    Said,
}

impl Ending {
    /// What it is when all that was done before a sync is durable. One that was asked for before something was in the way says nothing.
    pub fn synced(self, nth: u64) -> Ending {
        match self {
            Ending::Syncs(asked) if asked == nth => Ending::Synced,
            Ending::Says(asked) if asked == nth => Ending::Said,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_was_asked_for_before_something_was_in_the_way_says_nothing() {
        for (ending, nth, then) in [
            (Ending::Syncs(2), 2, Ending::Synced),
            (Ending::Syncs(2), 1, Ending::Syncs(2)),
            (Ending::Says(3), 3, Ending::Said),
            (Ending::Says(3), 2, Ending::Says(3)),
            (Ending::NotYet, 1, Ending::NotYet),
            (Ending::Synced, 1, Ending::Synced),
        ] {
            assert_eq!(ending.synced(nth), then);
        }
    }
}
