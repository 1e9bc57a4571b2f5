//! Words of a log's line, read in sequence.

use headtime_units::Time;

/// The remaining words of a line. Errors contain the caller's name for the word.
pub(crate) struct Fields<'a>(pub std::str::SplitAsciiWhitespace<'a>);

impl<'a> Fields<'a> {
    /// Returns the next word.
    pub fn word(&mut self, name: &str) -> Result<&'a str, String> {
        self.0
            .next()
            .ok_or_else(|| format!("the {name} is missing"))
    }

    /// Returns the next word as a number.
    pub fn number(&mut self, name: &str) -> Result<u64, String> {
        let word = self.word(name)?;
        word.parse()
            .map_err(|_| format!("the {name} is \"{word}\"; it must be a whole number"))
    }

    /// Returns the next word as a number of a smaller type.
    pub fn small<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, String> {
        let number = self.number(name)?;
        T::try_from(number).map_err(|_| format!("the {name} is {number}, which is too large"))
    }

    /// Returns the next word as a time in nanoseconds.
    pub fn time(&mut self) -> Result<Time, String> {
        let time = self.number("time").map(Time::from_nanos)?;
        if time > Time::LATEST {
            let (time, latest) = (time.as_nanos(), Time::LATEST.as_nanos());
            return Err(format!("the time is {time}; allowed is up to {latest}"));
        }
        Ok(time)
    }
}
