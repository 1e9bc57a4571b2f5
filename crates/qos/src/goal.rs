//! Goals of programs.

use headtime_units::{Millionths, Nanos, ParseUnitError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Time in which a program must end.
///
/// As text: `110s`, a run time; `2.5x`, a multiple of the run time alone; `by 06:00`, a time of day.
///
/// # Examples
///
/// ```
/// use headtime_qos::{Goal, GoalError};
/// use headtime_units::Nanos;
///
/// let goal: Goal = "2.5x".parse()?;
/// let alone = Nanos::from_secs(40);
/// let no_days = |_| Err(GoalError::NoDays);
/// assert_eq!(goal.run_time(alone, Nanos::ZERO, no_days)?, Nanos::from_secs(100));
/// # Ok::<(), GoalError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A run time.
    Within(Nanos),
    /// A multiple of the run time alone.
    Times(Millionths),
    /// A time of day by which the program must have ended. Only a server knows the time of day.
    By(TimeOfDay),
}

/// A time of day: hours and minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
}

/// Reason why a goal is refused. Callers put the program and the key in front of the message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GoalError {
    /// The text is no goal.
    #[error(
        "`{found}` is no goal: {problem}; allowed are a run time (`110s`), a multiple of the run time alone (`2.5x`), and on a server a time of day (`by 06:00`)"
    )]
    NoGoal {
        /// The text.
        found: String,
        /// The problem.
        problem: String,
    },
    /// A time of day, given to a caller that has no days.
    #[error(
        "a simulation has no time of day; allowed are a run time (`110s`) and a multiple of the run time alone (`2.5x`)"
    )]
    NoDays,
    /// The goal has passed.
    #[error(
        "the goal, {run_time} after the start of the program, is in the past: the program has run for {elapsed}; set a later goal"
    )]
    Past {
        /// Run time that the goal demands.
        run_time: Nanos,
        /// Run time so far.
        elapsed: Nanos,
    },
    /// The program computes for longer than the goal.
    #[error(
        "the goal of {run_time} is shorter than the compute time, {compute}; the least possible is {least}"
    )]
    BelowCompute {
        /// Run time that the goal demands.
        run_time: Nanos,
        /// Time without I/O.
        compute: Nanos,
        /// Least possible run time.
        least: Nanos,
    },
    /// The program cannot end so early, even with all servers to itself.
    #[error(
        "the goal of {run_time} is shorter than a run with all servers; the least possible is {least}"
    )]
    Impossible {
        /// Run time that the goal demands.
        run_time: Nanos,
        /// Least possible run time.
        least: Nanos,
    },
    /// The profile has no I/O time, so no bound can be derived.
    #[error("the profile has no I/O time, so no bound follows from it; profile a run with I/O")]
    NoIo,
}

impl Goal {
    /// Returns the run time that the goal demands. The program runs for `alone` without others, and has run for `elapsed` so
    /// far.
    ///
    /// `by` gives the time from the start of the program to a time of day. A simulation returns [`GoalError::NoDays`].
    ///
    /// # Errors
    ///
    /// [`GoalError::Past`] if the time has passed, and any error of `by`.
    pub fn run_time(
        self,
        alone: Nanos,
        elapsed: Nanos,
        by: impl FnOnce(TimeOfDay) -> Result<Nanos, GoalError>,
    ) -> Result<Nanos, GoalError> {
        let run_time = match self {
            Goal::Within(span) => span,
            Goal::Times(times) => {
                let nanos = u128::from(alone.as_nanos()) * u128::from(times.0) / 1_000_000;
                Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            Goal::By(time) => by(time)?,
        };
        if run_time <= elapsed {
            return Err(GoalError::Past { run_time, elapsed });
        }
        Ok(run_time)
    }
}

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeOfDay, String> {
        let two = |text: &str, end: u8| {
            let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|number| digits && *number < end);
            number.ok_or_else(|| "a time of day is `00:00` to `23:59`".to_owned())
        };
        let (hour, minute) = text.split_once(':').unwrap_or((text, ""));
        Ok(TimeOfDay {
            hour: two(hour, 24)?,
            minute: two(minute, 60)?,
        })
    }
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Goal, GoalError> {
        let text = text.trim();
        let error = |problem: String| GoalError::NoGoal {
            found: text.to_owned(),
            problem,
        };
        let zero = || error("it is zero".to_owned());
        if let Some(time) = text.strip_prefix("by ") {
            return time.trim().parse().map(Goal::By).map_err(error);
        }
        if let Some(times) = text.strip_suffix('x') {
            let times = times.parse::<Millionths>();
            let times = times.map_err(|problem| error(problem.to_string()))?;
            return (times > Millionths::ZERO)
                .then_some(Goal::Times(times))
                .ok_or_else(zero);
        }
        let span = text.parse::<Nanos>().map_err(|problem| {
            error(match problem {
                ParseUnitError::NoNumber => "it does not begin with a number".to_owned(),
                problem => problem.to_string(),
            })
        })?;
        (span > Nanos::ZERO)
            .then_some(Goal::Within(span))
            .ok_or_else(zero)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Within(span) => write!(f, "{span}"),
            Goal::Times(times) => write!(f, "{times}x"),
            Goal::By(time) => write!(f, "by {time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match text.parse::<Goal>().unwrap_err() {
            GoalError::NoGoal { problem, .. } => problem,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn goals_are_read_from_text_and_written_back() {
        for text in ["110s", "2.5x", "by 06:00", "by 23:59"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
        assert_eq!(problem("soon"), "it does not begin with a number");
        assert_eq!(problem("0s"), "it is zero");
        assert_eq!(problem("0x"), "it is zero");
        assert_eq!(
            problem("-2x"),
            "not a plain number; write for example 0.03, without a unit"
        );
        assert!(problem("110").starts_with("a duration needs its unit"));
        for bad in [
            "by 24:00", "by 6:00", "by 06:60", "by 0600", "by +6:00", "by ",
        ] {
            assert!(bad.parse::<Goal>().is_err(), "{bad}");
        }
        assert_eq!(problem("by 24:00"), "a time of day is `00:00` to `23:59`");
    }

    #[test]
    fn a_goal_that_the_program_has_outrun_is_in_the_past() {
        let alone = Nanos::from_secs(40);
        let after = |goal: &str, elapsed| {
            let by = |_| Ok(Nanos::from_secs(60));
            goal.parse::<Goal>()
                .unwrap()
                .run_time(alone, Nanos::from_secs(elapsed), by)
        };
        assert_eq!(after("110s", 109), Ok(Nanos::from_secs(110)));
        assert_eq!(after("2.5x", 0), Ok(Nanos::from_secs(100)));
        assert_eq!(after("by 06:00", 59), Ok(Nanos::from_secs(60)));
        for (goal, elapsed) in [("110s", 110), ("2.5x", 100), ("by 06:00", 61)] {
            assert!(
                matches!(after(goal, elapsed), Err(GoalError::Past { .. })),
                "{goal}"
            );
        }
        // A very large multiple does not wrap around.
        let huge = Goal::Times(Millionths(u64::MAX));
        let no_days = |_| Err(GoalError::NoDays);
        assert_eq!(
            huge.run_time(alone, Nanos::ZERO, no_days)
                .unwrap()
                .as_nanos(),
            u64::MAX
        );
    }
}
