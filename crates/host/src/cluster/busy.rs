//! Time in which a program has any call outstanding.

use headtime_units::{Nanos, Time};

/// The union of the calls of a program's processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy {
    outstanding: u32,
    /// Start of the time in which some call has been outstanding.
    since: Time,
    /// Sum of all such times that have ended.
    total: Nanos,
    /// Time within each epoch from the start of the run on, if epochs were asked for.
    epochs: Vec<Nanos>,
}

impl Busy {
    /// Notes that a call begins.
    pub fn begin(&mut self, at: Time) {
        if self.outstanding == 0 {
            self.since = at;
        }
        self.outstanding += 1;
    }

    /// Notes that a call returns.
    pub fn end(&mut self, at: Time, epoch: Option<Nanos>) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.add(at, epoch);
        }
    }

    fn add(&mut self, until: Time, epoch: Option<Nanos>) {
        self.total += until - self.since;
        let Some(epoch) = epoch.map(Nanos::as_nanos).filter(|epoch| *epoch > 0) else {
            return;
        };
        let (mut from, until) = (self.since.as_nanos(), until.as_nanos());
        while from < until {
            let number = from / epoch;
            let end = until.min((number + 1) * epoch);
            let number = number as usize;
            if self.epochs.len() <= number {
                self.epochs.resize(number + 1, Nanos::ZERO);
            }
            self.epochs[number] += Nanos::from_nanos(end - from);
            from = end;
        }
    }

    /// Time up to `now`, and the time within each epoch. Epochs behind the last call are left out.
    pub fn until(&self, now: Time, epoch: Option<Nanos>) -> (Nanos, Vec<Nanos>) {
        let mut all = self.clone();
        if all.outstanding > 0 {
            all.add(now.max(all.since), epoch);
        }
        (all.total, all.epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_overlap_count_once_and_epochs_share_them() {
        let at = Time::from_nanos;
        let epoch = Some(Nanos::from_nanos(10));
        let mut busy = Busy::default();
        busy.begin(at(5));
        busy.begin(at(8));
        busy.end(at(12), epoch);
        busy.end(at(31), epoch);
        busy.begin(at(45));
        let epochs = |nanos: &[u64]| nanos.iter().map(|each| Nanos::from_nanos(*each)).collect();
        assert_eq!(
            busy.until(at(47), epoch),
            (Nanos::from_nanos(28), epochs(&[5, 10, 10, 1, 2]))
        );
        busy.end(at(45), epoch);
        assert_eq!(
            busy.until(at(60), None),
            (Nanos::from_nanos(26), epochs(&[5, 10, 10, 1]))
        );
    }
}
