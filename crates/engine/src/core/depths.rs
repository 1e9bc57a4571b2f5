//! How many commands a drive may have: what was ordered, and what a job in the background asks for.

use crate::GateOrder;

/// The two, of a member. The lower one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depths {
    /// None if nothing was ordered: that of the configuration.
    ordered: Option<u32>,
    by_job: Option<u32>,
}

impl Depths {
    /// An order to the gate. Returns what the gate is told.
    pub fn order(&mut self, order: GateOrder) -> GateOrder {
        let GateOrder::Depth(depth) = order else {
            return order;
        };
        self.ordered = Some(depth);
        GateOrder::Depth(self.by_job.map_or(depth, |most| most.min(depth)))
    }

    /// What the job asks for now. Returns what the gate is told, if that is something else; `config` is the depth of the configuration.
    pub fn job(&mut self, by_job: Option<u32>, config: u32) -> Option<GateOrder> {
        if by_job == self.by_job {
            return None;
        }
        self.by_job = by_job;
        Some(self.order(GateOrder::Depth(self.ordered.unwrap_or(config))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_one_of_an_order_and_a_wish_counts_and_an_order_outlives_a_wish() {
        let depth = GateOrder::Depth;
        let mut depths = Depths::default();
        assert_eq!(depths.job(None, 32), None);
        assert_eq!(depths.job(Some(2), 32), Some(depth(2)));
        assert_eq!(depths.job(Some(2), 32), None, "it was told");
        assert_eq!(depths.order(depth(8)), depth(2));
        assert_eq!(depths.order(GateOrder::Age(3)), GateOrder::Age(3));
        assert_eq!(depths.job(None, 32), Some(depth(8)));
        assert_eq!(depths.order(depth(1)), depth(1));
        assert_eq!(depths.job(Some(2), 32), Some(depth(1)));
        assert_eq!(depths.job(None, 32), Some(depth(1)));
        let mut fresh = Depths::default();
        fresh.job(Some(2), 32);
        assert_eq!(fresh.job(None, 32), Some(depth(32)));
    }
}
