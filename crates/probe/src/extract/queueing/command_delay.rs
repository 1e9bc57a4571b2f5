//! Longest time for which a drive delays a command in favour of others.

use super::super::bench::Bench;
use super::super::error::ExtractError;
use super::super::learned_keys::LearnedKeys;
use super::flight::Flight;
use super::{CROWD_COMMANDS_MAX, Queueing};
use headtime_units::Nanos;

/// Longest time that the probe waits for a command.
const COMMAND_PATIENCE: Nanos = Nanos::from_millis(6_500);
/// Trials per question.
const TRIALS_PER_QUESTION: usize = 5;
/// Waiting time, in nanoseconds, below which a command may have been served because of its position.
const BY_POSITION_NS: f64 = 800e6;
/// Waiting time, in nanoseconds, below which a command may have been served because a track ended.
const BY_TRACK_END_NS: f64 = 30e6;
/// Sectors of each read of a stream.
const STREAM_SECTORS: u64 = 64;

/// Waiting time of a command that was delayed in favour of others, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct CommandDelay {
    /// Bounds of the waiting time: at `low` the command was not next yet, and at `high` it was.
    low: f64,
    high: f64,
    /// Number of other commands that were served before.
    others: u32,
    /// Shortest and longest time between two of these others.
    gaps: [f64; 2],
}

impl Queueing {
    /// Measures the waiting time of a command far away, while `near` supplies a new command for each answer. `None` if the wait exceeds the
    /// patience of the probe.
    fn measure_delay(
        bench: &mut Bench<'_>,
        (depth, ahead, far): (u16, usize, u64),
        mut near: impl FnMut(&mut Bench<'_>) -> (u64, u64),
    ) -> Result<Option<CommandDelay>, ExtractError> {
        let mut flight = Flight::new(bench);
        let (others, last) = (depth - 1, depth - 1);
        for tag in 0..others {
            let (lba, count) = near(flight.bench);
            flight.send(tag, lba, count)?;
        }
        for _ in 0..ahead {
            let tag = flight.answer()?.tag;
            let (lba, count) = near(flight.bench);
            flight.send(tag, lba, count)?;
        }
        let sent = flight.send(last, far, 1)?;
        let (mut before, mut latest) = (sent, sent);
        let mut served = 0;
        let mut gaps = [f64::INFINITY, 0.0];
        loop {
            let answer = flight.answer()?;
            if answer.tag == last {
                flight.empty()?;
                return Ok(Some(CommandDelay {
                    low: (before - sent).as_nanos() as f64,
                    high: (latest - sent).as_nanos() as f64,
                    others: served,
                    gaps,
                }));
            }
            // Several answers may have come before the host sent this command.
            (before, latest) = (latest, latest.max(answer.at));
            served += 1;
            if served > 1 {
                let gap = (latest - before).as_nanos() as f64;
                gaps = [gaps[0].min(gap), gaps[1].max(gap)];
            }
            if latest > sent + COMMAND_PATIENCE {
                flight.empty()?;
                return Ok(None);
            }
            let (lba, count) = near(flight.bench);
            flight.send(answer.tag, lba, count)?;
        }
    }

    pub(super) fn age(
        &mut self,
        bench: &mut Bench<'_>,
        depth: u16,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "queue.age_cap";
        let capacity = bench.capacity();
        let window = (capacity / 200).max(1);
        let mut seen = Vec::new();
        for _ in 0..TRIALS_PER_QUESTION {
            let far = capacity - 1 - bench.random.up_to(window);
            let first = bench.random.up_to(window);
            let delay =
                Queueing::measure_delay(bench, (depth.min(CROWD_COMMANDS_MAX), 8, far), |bench| {
                    (first + bench.random.up_to(window), 1)
                })?;
            let Some(delay) = delay else {
                // In earlier trials the command was served for its position.
                learned.know(key, 0.8);
                return Ok(());
            };
            seen.push(delay);
            if let Some(cap) = age_cap(&mut seen) {
                self.age_cap = Some(cap);
                learned.know(key, 0.9);
                return Ok(());
            }
        }
        learned.doubt(key, varied(&seen));
        Ok(())
    }

    pub(super) fn stream(
        &mut self,
        bench: &mut Bench<'_>,
        depth: u16,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "queue.stream_cap";
        let capacity = bench.capacity();
        let mut seen = Vec::new();
        for _ in 0..TRIALS_PER_QUESTION {
            let far = capacity - 1 - bench.random.up_to(capacity / 200);
            let mut next = bench.random.up_to(capacity / 8);
            let delay = Queueing::measure_delay(bench, (depth.min(8), 24, far), |_| {
                next += STREAM_SECTORS;
                (next - STREAM_SECTORS, STREAM_SECTORS)
            })?;
            let Some(delay) = delay else {
                learned.doubt(
                    key,
                    format!(
                        "a stream keeps another command waiting for more than {COMMAND_PATIENCE}"
                    ),
                );
                return Ok(());
            };
            seen.push(delay);
        }
        // A stream that restarts begins a new span, so single trials may last longer.
        seen.sort_by(|one, other| f64::total_cmp(&one.high, &other.high));
        let agreed = seen.windows(3).find_map(common);
        let limit = self.age_cap.unwrap_or(f64::INFINITY) - 50e6;
        match agreed {
            _ if seen.iter().all(|delay| delay.others <= 3) => {
                self.stream_cap = Some(0.0);
                learned.know(key, 0.8);
            }
            // Answers wait for each other there, not for the arm.
            Some(_)
                if seen
                    .iter()
                    .all(|delay| delay.gaps[1] < 1.05 * delay.gaps[0]) =>
            {
                learned.doubt(key, "the way to the host is slower than the medium");
            }
            Some(cap) if cap < BY_TRACK_END_NS || seen[1].others < 3 * u32::from(depth.min(8)) => {
                learned.doubt(
                    key,
                    format!(
                        "another command was kept waiting for {:.0} ms, which is too short to tell",
                        cap / 1e6
                    ),
                );
            }
            Some(cap) if cap < limit => {
                self.stream_cap = Some(cap);
                learned.know(key, 0.9);
            }
            Some(_) => learned.doubt(
                key,
                "a stream keeps another command waiting until that is too old",
            ),
            None => learned.doubt(key, varied(&seen)),
        }
        Ok(())
    }
}

/// Age at which a command is served next, if the trials agree.
fn age_cap(seen: &mut [CommandDelay]) -> Option<f64> {
    seen.sort_by(|one, other| f64::total_cmp(&other.high, &one.high));
    // A command may be served early for its position, even repeatedly at a similar time by chance, but never late.
    let needed = if seen.first()?.high < BY_POSITION_NS {
        TRIALS_PER_QUESTION
    } else {
        2
    };
    common(seen.get(..needed)?)
}

/// Time on which all trials agree.
fn common(seen: &[CommandDelay]) -> Option<f64> {
    let low = seen.iter().map(|delay| delay.low).fold(0.0, f64::max);
    let high = seen
        .iter()
        .map(|delay| delay.high)
        .fold(f64::INFINITY, f64::min);
    // Answers come a little after the arm is free.
    (low < high + 3e6 && !seen.is_empty()).then_some((low + high) / 2.0)
}

fn varied(seen: &[CommandDelay]) -> String {
    let least = seen
        .iter()
        .map(|delay| delay.high)
        .fold(f64::INFINITY, f64::min);
    let most = seen.iter().map(|delay| delay.high).fold(0.0, f64::max);
    format!(
        "another command was kept waiting for {:.0} to {:.0} ms",
        least / 1e6,
        most / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(ms: f64) -> CommandDelay {
        CommandDelay {
            low: ms * 1e6 - 4e6,
            high: ms * 1e6 + 4e6,
            others: 30,
            gaps: [8e6, 8e6],
        }
    }

    #[test]
    fn two_trials_tell_a_late_cap_and_all_an_early_one() {
        let of = |ms: &[f64]| {
            let mut seen: Vec<CommandDelay> = ms.iter().copied().map(delay).collect();
            age_cap(&mut seen).map(|cap| cap / 1e6)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[2_000.0]), None);
        assert_eq!(of(&[2_000.0, 2_000.0]), Some(2_000.0));
        // Served once for its position, before the cap.
        assert_eq!(of(&[300.0, 2_000.0, 2_000.0]), Some(2_000.0));
        // Agreement by chance.
        assert_eq!(of(&[228.0, 228.0, 228.0]), None);
        assert_eq!(of(&[228.0, 228.0, 228.0, 120.0]), None);
        assert_eq!(of(&[228.0; 5]), Some(228.0));
        assert_eq!(of(&[228.0, 228.0, 228.0, 228.0, 120.0]), None);
    }
}
