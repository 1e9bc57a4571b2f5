//! State of the job.

/// State of a scrub, as its job knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Blocks are read. When all blocks are done, the scrub ends in steps.
    Runs(Ending),
    /// A caller has paused the scrub. Steps of the end go on.
    Paused(Ending),
    /// An error is in the way until a caller resumes the scrub.
    Held(String),
    /// The results cannot be relied on, so the scrub can only begin anew.
    Lost(String),
    /// The scrub has released its files and threads.
    Over,
}

/// Step of the end of a scrub that hashes or copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Blocks are still to be done.
    NotYet,
    /// The sync of this number makes the results durable.
    Syncs(u64),
    /// The results are durable.
    Synced,
    /// The sync of this number makes the record of the end durable.
    Says(u64),
    /// The record of the end is durable.
    Said,
}

impl State {
    /// State of a scrub without an error.
    pub fn new(paused: bool, ending: Ending) -> State {
        match paused {
            true => State::Paused(ending),
            false => State::Runs(ending),
        }
    }

    /// Error in the way of the scrub, if there is one.
    pub fn problem(&self) -> Option<&str> {
        match self {
            State::Held(why) | State::Lost(why) => Some(why),
            _ => None,
        }
    }

    /// Returns true if no error is in the way of a scrub that is not over.
    pub fn goes_on(&self) -> bool {
        matches!(self, State::Runs(_) | State::Paused(_))
    }

    /// Step of the end. A held scrub begins these steps again.
    pub fn ending(&self) -> Ending {
        match self {
            State::Runs(ending) | State::Paused(ending) => *ending,
            _ => Ending::NotYet,
        }
    }

    /// Goes to a step of the end, unless an error is in the way.
    pub fn ends(&mut self, step: Ending) {
        if let State::Runs(ending) | State::Paused(ending) = self {
            *ending = step;
        }
    }

    /// Goes to the next step after the sync `nth`. A sync that was requested before an error put the scrub on hold does not count.
    pub fn synced(&mut self, nth: u64) {
        match self.ending() {
            Ending::Syncs(asked) if asked == nth => self.ends(Ending::Synced),
            Ending::Says(asked) if asked == nth => self.ends(Ending::Said),
            _ => {}
        }
    }

    /// Pauses the scrub, or lets it read.
    pub fn pause(&mut self, paused: bool) {
        if self.goes_on() {
            *self = State::new(paused, self.ending());
        }
    }

    /// Puts an error in the way.
    pub fn hold(&mut self, why: String) {
        match self {
            State::Lost(before) => *before = why,
            State::Over => {}
            _ => *self = State::Held(why),
        }
    }

    /// Marks the results of a held scrub as lost.
    pub fn lose(&mut self) {
        if let State::Held(why) = self {
            *self = State::Lost(std::mem::take(why));
        }
    }

    /// Removes an error, unless the scrub can only begin anew.
    pub fn go_on(&mut self, paused: bool) {
        if matches!(self, State::Held(_)) {
            *self = State::new(paused, Ending::NotYet);
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
            for mut state in [State::Runs(ending), State::Paused(ending)] {
                state.synced(nth);
                assert_eq!(state.ending(), then);
            }
        }
    }

    #[test]
    fn a_held_scrub_goes_on_as_it_was_told_last_and_begins_its_end_again() {
        let mut state = State::Runs(Ending::Syncs(1));
        state.hold("no room".to_owned());
        state.pause(true);
        state.synced(1);
        assert_eq!(state, State::Held("no room".to_owned()));
        state.go_on(true);
        assert_eq!(state, State::Paused(Ending::NotYet));
        state.go_on(false);
        assert_eq!(state, State::Paused(Ending::NotYet));
    }

    #[test]
    fn a_scrub_without_results_goes_on_by_nothing_and_one_that_is_over_stays_so() {
        let mut state = State::Lost("another disk".to_owned());
        state.hold("no room".to_owned());
        state.go_on(false);
        assert_eq!(state, State::Lost("no room".to_owned()));
        let mut state = State::Over;
        state.hold("no room".to_owned());
        state.go_on(false);
        state.pause(true);
        assert_eq!(state, State::Over);
    }
}
