//! Limits on the number of commands in the drive: by order, and by a job in the background.

use crate::GateOrder;

/// The limits of a member's job and of orders. The lower limit counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depths {
    by_job: Option<u32>,
    /// Depth of the last order. Used only if the job sets a limit.
    ordered: u32,
}

impl Depths {
    /// Limits an order to the gate to the depth that the job asks for.
    pub fn order(&mut self, order: GateOrder) -> GateOrder {
        let GateOrder::Depth(depth) = order else {
            return order;
        };
        self.ordered = depth;
        GateOrder::Depth(self.by_job.map_or(depth, |most| most.min(depth)))
    }

    /// Takes the depth that the job asks for now. Returns an order if the depth differs from the job's previous one.
    /// `in_force` is the depth of the last order.
    pub fn job(&mut self, by_job: Option<u32>, in_force: u32) -> Option<GateOrder> {
        if by_job == self.by_job {
            return None;
        }
        if self.by_job.is_none() {
            self.ordered = in_force;
        }
        self.by_job = by_job;
        Some(self.order(GateOrder::Depth(self.ordered)))
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
        assert_eq!(depths.job(None, 2), Some(depth(8)));
        assert_eq!(depths.order(depth(1)), depth(1));
        assert_eq!(depths.job(Some(2), 1), Some(depth(1)));
        assert_eq!(depths.job(None, 1), Some(depth(1)));
        let mut fresh = Depths::default();
        fresh.job(Some(2), 5);
        assert_eq!(fresh.job(None, 2), Some(depth(5)));
    }
}
