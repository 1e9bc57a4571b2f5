//! Limit on the time without progress of a client.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Limit on the time that a client may take for its next step. The time runs while the server waits for the client, and starts anew with
/// each step of the client.
///
/// The limit costs nothing while the server does not wait for the client, and one allocation the first time.
pub(super) struct Patience {
    limit: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    runs: bool,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Patience {
        Patience {
            limit,
            sleep: None,
            runs: false,
        }
    }

    /// Stops the time, since the client has made progress or need not.
    pub(super) fn rest(&mut self) {
        self.runs = false;
    }

    /// Waits for the limit. Ready if the time is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.runs {
            self.runs = true;
            sleep.as_mut().reset(Instant::now() + limit);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn progress_begins_it_anew() {
        let limit = Duration::from_millis(60);
        let mut patience = Patience::new(limit);
        let begin = Instant::now();
        let mut last = begin;
        while begin.elapsed() < 2 * limit {
            last = Instant::now();
            patience.rest();
            let now = poll_fn(|cx| Poll::Ready(patience.poll(cx))).await;
            assert!(now.is_pending());
            tokio::task::yield_now().await;
        }
        poll_fn(|cx| patience.poll(cx)).await;
        assert!(last.elapsed() >= limit);
        // The time stays over until there is progress.
        assert!(
            poll_fn(|cx| Poll::Ready(patience.poll(cx)))
                .await
                .is_ready()
        );
        patience.rest();
        assert!(
            poll_fn(|cx| Poll::Ready(patience.poll(cx)))
                .await
                .is_pending()
        );
    }
}
