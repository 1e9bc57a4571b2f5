//! Freeblock scheduling as a background job of an engine.

use super::{DEPTH, Freeblock, Picked};
use headtime_engine::{Approach, Arrival, Background, Engine, Finished, Join, Lane, Outcome};
use headtime_sched::{Passing, Track, Tracker};
use headtime_units::Time;

impl<P: Passing + Clone + 'static> Background for Freeblock<P> {
    fn tracker(&self) -> Option<Box<dyn Track>> {
        Some(Box::new(Tracker::new(self.model.clone())))
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.note_depth(engine);
        self.look(now, false);
        self.demanded(engine).or_else(|| match approach {
            Some(approach) => {
                let asked = self.outright(now, engine, approach.lane);
                asked.or_else(|| self.in_gap(now, engine, approach))
            }
            None => {
                // Without a tracker there is no approach, and no gap can be computed.
                let lane = engine.unoffered();
                let asked = lane.and_then(|lane| self.outright(now, engine, lane));
                asked.or_else(|| self.alone(now, engine))
            }
        })
    }

    fn is_offered(&self) -> bool {
        self.wanted.left() > 0
    }

    fn depth(&self) -> Option<u32> {
        (self.wanted.left() > 0 && self.is_narrow()).then_some(DEPTH)
    }

    fn is_over(&self) -> bool {
        self.wanted.left() == 0 && self.in_flight.is_empty()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        // Promises are also checked while the disk is unused.
        [self.idle_from(engine), self.next_look()]
            .into_iter()
            .flatten()
            .min()
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        let reads = self.unread() > 0;
        if let Some(promise) = self.promise.as_mut().filter(|_| reads) {
            promise.arrives(now, arrival.origin);
        }
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.noticed(now, done);
        let counts = match self.writes() {
            true => done.request.op.changes(),
            false => done.request.op.is_read(),
        };
        if counts && done.outcome == Outcome::Done {
            let extent = done.request.extent;
            // If a client reads a block that was unreadable, the block counts as read. It may have been rewritten.
            let whole = self.wanted.take(&self.model, extent) + self.forget_unreadable(extent);
            let taken = whole + self.take_parts(extent);
            self.stats.read_by_others += taken;
            if taken > 0 {
                self.keep_unread_suspects();
                self.note_read(now);
            }
        }
    }

    fn finished(&mut self, now: Time, done: &Finished, _data: Option<&[u8]>) {
        let at = self.in_flight.iter().position(|asked| asked.id == done.id);
        let picked = self.in_flight.swap_remove(at.expect("it was asked for"));
        match picked.join {
            Join::Before | Join::With => self.accounts.picked(now, done),
            Join::Outright | Join::Alone | Join::Queued => self.accounts.passed(now, done),
        }
        let Picked {
            blocks,
            join,
            outright,
            ..
        } = picked;
        if let Some(promise) = &mut self.promise {
            match join {
                Join::Outright => promise.has_read(now, done, false, blocks.len()),
                Join::Before => promise.gap_read(done),
                Join::With | Join::Queued => {}
                Join::Alone => promise.has_read(now, done, true, blocks.len()),
            }
        }
        let before = self.stats.blocks;
        match (done.outcome, blocks.as_slice()) {
            (Outcome::Done, _) => {
                if !self.suspects.is_empty() {
                    for block in &blocks {
                        self.suspects.remove(block);
                    }
                }
            }
            // A medium error proves a block unreadable only if the command was for that block alone.
            (Outcome::MediumError, [block])
                if done.request.extent == self.wanted.block_at(*block) =>
            {
                self.stats.blocks -= 1;
                self.suspects.remove(block);
                self.unreadable.insert(*block);
            }
            (outcome, _) => {
                // After a timeout, too, one of many blocks may be the cause.
                if matches!(outcome, Outcome::MediumError | Outcome::TimedOut) {
                    self.suspects.extend(&blocks);
                }
                for block in &blocks {
                    let extent = self.wanted.block_at(*block);
                    self.stats.blocks -= self.wanted.add(&self.model, extent);
                }
            }
        }
        let back = before - self.stats.blocks;
        match join {
            _ if outright => self.stats.blocks_demanded -= back,
            Join::Alone => self.stats.blocks_alone -= back,
            Join::Queued => self.stats.blocks_demanded -= back,
            Join::Before | Join::Outright | Join::With => {}
        }
        self.spare.push(blocks);
        self.note_read(now);
    }
}
