//! Budgets of time.

use headtime_units::Millionths;

/// Time that may be lost: a share of the time that passes. Amounts are in millionths of nanoseconds.
///
/// Invariant: -most <= left <= most.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    share: i64,
    /// Largest amount that can be left, and largest debt.
    most: i64,
    pub left: i64,
}

impl Budget {
    /// Builds a budget without bounds, and with nothing left.
    pub fn new(share: Millionths) -> Budget {
        Budget {
            share: share.0.cast_signed(),
            most: i64::MAX,
            left: 0,
        }
    }

    /// Bounds the budget by its share of `horizon`, in ns. The budget is then full.
    pub fn within(self, horizon: i64) -> Budget {
        let most = self.share.saturating_mul(horizon);
        let left = most;
        Budget { most, left, ..self }
    }

    pub fn pass(&mut self, nanos: u64) {
        self.add(nanos, self.share);
    }

    pub fn lose(&mut self, nanos: u64) {
        self.add(nanos, -Millionths::ONE.0.cast_signed());
    }

    pub fn gain(&mut self, nanos: u64) {
        self.add(nanos, Millionths::ONE.0.cast_signed());
    }

    /// Returns true if this time may be lost now. A budget of no time affords nothing, not even the beginning of a loss.
    pub fn affords(&self, nanos: u64) -> bool {
        let needed = i128::from(nanos) * i128::from(Millionths::ONE.0);
        self.most > 0 && needed <= i128::from(self.left)
    }

    fn add(&mut self, nanos: u64, parts: i64) {
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let left = self.left.saturating_add(nanos.saturating_mul(parts));
        self.left = left.clamp(-self.most, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_of_the_time_up_to_a_most_and_debts_are_paid() {
        let mut budget = Budget::new(Millionths(30_000));
        assert!(budget.affords(0) && !budget.affords(1));
        budget.pass(2_000);
        assert!(budget.affords(60) && !budget.affords(61));
        budget = budget.within(4_000);
        budget.pass(1_000_000);
        assert!(budget.affords(120) && !budget.affords(121));
        budget.lose(150);
        budget.pass(999);
        assert!(!budget.affords(0));
        budget.pass(1);
        assert!(budget.affords(0));
        budget.lose(u64::MAX);
        budget.pass(4_000);
        assert!(budget.affords(0));
        let mut none = Budget::new(Millionths(0)).within(4_000);
        assert!(!none.affords(0));
        none.gain(1_000_000);
        assert!(!none.affords(0));
    }
}
