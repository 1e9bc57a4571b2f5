//! Background job that notices writes between two scrubs.

use super::super::sink::SinkThread;
use super::super::watch::Watch;
use headtime_engine::{Approach, Arrival, Background, Engine, Finished, Join, Lane};
use headtime_units::Time;
use std::sync::Arc;

/// Job that reads nothing and notifies watches of writes.
pub(crate) struct Resting(Vec<Arc<Watch>>, SinkThread);

impl Resting {
    /// `worker` is the sink's thread of the scrub before, and may still be running.
    pub fn new(watches: Vec<Arc<Watch>>, worker: SinkThread) -> Resting {
        Resting(watches, worker)
    }
}

impl Background for Resting {
    fn joins(
        &mut self,
        _: Time,
        _: &Engine,
        _: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.0.iter().for_each(|watch| watch.look_at_disk());
        None
    }

    fn arrives(&mut self, _: Time, arrival: &Arrival) {
        if arrival.op.changes() {
            self.0.iter().for_each(|watch| watch.forget(arrival.extent));
        }
    }

    fn finished(&mut self, _: Time, done: &Finished, _: Option<&[u8]>) {
        panic!("b{} is not its request", done.id);
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        let mut ended = false;
        for watch in &self.0 {
            ended |= watch.ends_with_disk();
        }
        if ended {
            // The last owner of a watch closes its file, which has to happen before the server ends.
            self.1.join();
        }
    }
}
