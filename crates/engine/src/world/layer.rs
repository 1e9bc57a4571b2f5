//! A job in the background that wraps another job.

use super::{Approach, Background};
use crate::{Arrival, Engine, Finished, Join, Lane};
use headtime_sched::Track;
use headtime_units::Time;

/// A job that wraps another job, and changes or watches some of its calls.
///
/// A method that the implementation leaves out goes to the wrapped job. Import this trait only where a layer is
/// written, since its methods have the names of [`Background`]'s.
pub trait BackgroundLayer: Send {
    /// Type of the wrapped job.
    type Under: Background;

    /// Returns the wrapped job.
    fn under(&self) -> &Self::Under;

    /// Returns the wrapped job.
    fn under_mut(&mut self) -> &mut Self::Under;

    /// See [`Background::joins`].
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.under_mut().joins(now, engine, approach)
    }

    /// See [`Background::is_offered`].
    fn is_offered(&self) -> bool {
        self.under().is_offered()
    }

    /// See [`Background::depth`].
    fn depth(&self) -> Option<u32> {
        self.under().depth()
    }

    /// See [`Background::next_wakeup`].
    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        self.under().next_wakeup(engine)
    }

    /// See [`Background::is_over`].
    fn is_over(&self) -> bool {
        self.under().is_over()
    }

    /// See [`Background::tracker`].
    fn tracker(&self) -> Option<Box<dyn Track>> {
        self.under().tracker()
    }

    /// See [`Background::arrives`].
    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        self.under_mut().arrives(now, arrival);
    }

    /// See [`Background::seen`].
    fn seen(&mut self, now: Time, done: &Finished) {
        self.under_mut().seen(now, done);
    }

    /// See [`Background::fill`].
    ///
    /// # Panics
    ///
    /// As for [`Background::fill`].
    fn fill(&mut self, id: u64, data: &mut [u8]) {
        self.under_mut().fill(id, data);
    }

    /// See [`Background::finished`].
    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.under_mut().finished(now, done, data);
    }
}

impl<L: BackgroundLayer> Background for L {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        BackgroundLayer::joins(self, now, engine, approach)
    }

    fn is_offered(&self) -> bool {
        BackgroundLayer::is_offered(self)
    }

    fn depth(&self) -> Option<u32> {
        BackgroundLayer::depth(self)
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        BackgroundLayer::next_wakeup(self, engine)
    }

    fn is_over(&self) -> bool {
        BackgroundLayer::is_over(self)
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        BackgroundLayer::tracker(self)
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        BackgroundLayer::arrives(self, now, arrival);
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        BackgroundLayer::seen(self, now, done);
    }

    fn fill(&mut self, id: u64, data: &mut [u8]) {
        BackgroundLayer::fill(self, id, data);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        BackgroundLayer::finished(self, now, done, data);
    }
}
