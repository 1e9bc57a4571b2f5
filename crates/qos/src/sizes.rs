//! Lengths of the windows of a period: U-Shape (SC'11), section 3.2.2.
//!
//! # Reading
//!
//! The paper computes the loss of a program when its window is cut: T_loss = D_ushape · (T_cut / T_ushape) / B_required. Here
//! the loss is measured at the end of that window's period. The loss is the shortfall of the bytes served from the bytes that
//! the bounds demanded, divided by B_required. A test shows that both are equal if the throughput within the window stays the
//! same. Measured losses also include the cost of the first windows and of changes of pattern. A plan takes effect a period
//! later. So a loss that the previous plan repays is not repaid again.

use headtime_units::Nanos;

/// Rule for cutting windows if programs with goals demand more than a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortage {
    /// Cuts windows in proportion to the time to the deadline: T_cut of the paper.
    #[default]
    Deadline,
    /// Cuts all windows by the same time.
    Even,
}

/// Traffic and demand of a lane in the period that has ended.
///
/// Symbols of the paper: `window` is T_ushape, `served` is D_ushape, `required` is B_required · T_period, `lost` is T_loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Time to the deadline, 0 if the deadline has passed. `None` means best effort.
    pub left: Option<Nanos>,
    /// Length of the lane's windows in the period that was measured.
    pub window: Nanos,
    /// Bytes served in that period.
    pub served: u64,
    /// Bytes that the bounds demand of the period that was measured.
    pub required: u64,
    /// Loss at the end of that period.
    pub lost: Nanos,
    /// Part of `lost` that the next period repays, by a plan that was made before.
    pub repaying: Nanos,
    /// True if the lane must get a window, however short.
    pub must: bool,
    /// Number of least windows that a promise takes from the period, before all goals. 0 without a promise.
    pub promised: u64,
}

/// Window of a lane in the period to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Length of the window.
    pub window: Nanos,
    /// Part of `lost` that this plan repays.
    pub repays: Nanos,
    /// Time by which the window was cut: T_cut.
    pub cut: Nanos,
}

/// Returns `value · product(times) / product(by)`, rounded down and limited to the largest number. If a divisor is 0, returns
/// `value`.
fn scaled<const N: usize>(value: Nanos, times: [u64; N], by: [u64; N]) -> Nanos {
    let product = |factors: &[u64], first: u128| {
        let factors = factors.iter().map(|factor| u128::from(*factor));
        factors.fold(first, u128::saturating_mul)
    };
    let (times, by) = (
        product(&times, u128::from(value.as_nanos())),
        product(&by, 1),
    );
    match times.checked_div(by) {
        Some(scaled) => Nanos::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX)),
        None => value,
    }
}

impl Demand {
    /// Adds the demand of a program that shares the lane. The loss becomes the mean of both losses, weighted by demand.
    pub(crate) fn add(&mut self, other: &Demand) {
        self.must |= other.must;
        if other.left.is_none() {
            return;
        }
        let all = self.required + other.required;
        let mean =
            |one, two| scaled(one, [self.required], [all]) + scaled(two, [other.required], [all]);
        self.lost = mean(self.lost, other.lost);
        self.repaying = mean(self.repaying, other.repaying);
        self.left = self.left.into_iter().chain(other.left).min();
        self.window += other.window;
        self.served += other.served;
        self.required = all;
    }

    /// Returns T_ushape + T_adjust: the window in which the lane would have served the required bytes. The paper divides by
    /// `served` / T_init_window. Here `served` was measured in `window`, so `window` is T_init_window.
    fn adjusted(&self, period: Nanos) -> Nanos {
        match self.left {
            None => Nanos::ZERO,
            // Without traffic the throughput is unknown, so the window stays.
            Some(_) if self.served == 0 || self.required == 0 => self.window.min(period),
            Some(_) => scaled(self.window, [self.required], [self.served]).min(period),
        }
    }

    /// Returns T_loss at the end of the period: `lost` before the period, plus the shortfall or less the surplus of the
    /// period.
    pub(crate) fn set_back(&self, period: Nanos) -> Nanos {
        let (served, required) = (self.served, self.required);
        let time = |bytes: u64| scaled(period, [bytes], [required]);
        match (required, served < required) {
            (0, _) => self.lost,
            (_, true) => self.lost + time(required - served),
            (_, false) => self.lost.saturating_sub(time(served - required)),
        }
    }

    /// Returns the length of window that repays a loss: the reverse of [`Demand::set_back`].
    fn repays(&self, lost: Nanos, period: Nanos) -> Nanos {
        let (period, window) = (period.as_nanos(), self.window.as_nanos());
        match self.served {
            0 => Nanos::ZERO,
            served => scaled(lost, [window, self.required], [served, period]),
        }
    }
}

/// Computes the windows of the next period. If there is any lane and the promised windows fit, the windows sum to `period`.
/// Best effort takes the time that others leave. Without best effort, all lanes share that time.
///
/// `least` is the shortest useful window. A lane that [must](Demand::must) have a window gets at least that, if the period
/// has room for all such lanes. [Promised](Demand::promised) windows come first, and have to fit.
pub fn sizes(period: Nanos, least: Nanos, shortage: Shortage, demands: &[Demand]) -> Vec<Size> {
    let promised = least * demands.iter().map(|demand| demand.promised).sum::<u64>();
    let must = demands
        .iter()
        .filter(|demand| demand.must && demand.promised == 0);
    let must = must.count() as u64;
    let least_of = |demand: &Demand| match (demand.promised, demand.must) {
        (0, true) => least.min(period.saturating_sub(promised) / must),
        (0, false) => Nanos::ZERO,
        (windows, _) => least * windows,
    };
    let mut sizes: Vec<Size> = demands
        .iter()
        .map(|demand| Size {
            window: demand.adjusted(period).max(least_of(demand)),
            repays: Nanos::ZERO,
            cut: Nanos::ZERO,
        })
        .collect();
    let total = |sizes: &[Size]| sizes.iter().map(|size| size.window).sum::<Nanos>();
    let over = total(&sizes).saturating_sub(period);
    let weights = demands.iter().map(|demand| match shortage {
        Shortage::Deadline => demand.left.map_or(0, |left| left.as_nanos().max(1)),
        Shortage::Even => u64::from(demand.left.is_some()),
    });
    let weights: Vec<u64> = weights.collect();
    cut(over, demands, &weights, &mut sizes, &least_of);
    let mut under = period.saturating_sub(total(&sizes));
    repay(&mut under, period, demands, &mut sizes);
    share(under, demands, &mut sizes);
    sizes
}

/// Shortens windows by `over` in total, in proportion to `weights`. The weight of best effort is 0. No window becomes shorter
/// than its least. If a window reaches its least, the others shorten by more.
fn cut(
    mut over: Nanos,
    demands: &[Demand],
    weights: &[u64],
    sizes: &mut [Size],
    least: &dyn Fn(&Demand) -> Nanos,
) {
    while !over.is_zero() {
        let room = |at: usize| sizes[at].window.saturating_sub(least(&demands[at]));
        let able: Vec<(usize, Nanos, u64)> = (0..demands.len())
            .map(|at| (at, room(at), weights[at]))
            .filter(|(_, room, weight)| !room.is_zero() && *weight > 0)
            .collect();
        let sum: u128 = able.iter().map(|(.., weight)| u128::from(*weight)).sum();
        if able.is_empty() {
            break;
        }
        let mut left = over;
        for (at, room, weight) in &able {
            let share = u128::from(over.as_nanos()) * u128::from(*weight) / sum;
            // No weight exceeds the sum of weights: a share is at most `over`.
            let share = Nanos::from_nanos(share.max(1) as u64);
            let cut = share.min(*room).min(left);
            sizes[*at].window -= cut;
            sizes[*at].cut += cut;
            left -= cut;
        }
        over = left;
    }
}

/// Lengthens windows to repay losses, the most urgent program first.
fn repay(under: &mut Nanos, period: Nanos, demands: &[Demand], sizes: &mut [Size]) {
    let mut urgent: Vec<usize> = (0..demands.len())
        .filter(|at| demands[*at].left.is_some())
        .collect();
    urgent.sort_by_key(|at| demands[*at].left);
    for at in urgent {
        let (demand, size) = (&demands[at], &mut sizes[at]);
        let due = demand.lost.saturating_sub(demand.repaying);
        let all = demand.repays(due, period);
        if all.is_zero() {
            continue;
        }
        let extra = all.min(*under);
        size.window += extra;
        size.repays = scaled(due, [extra.as_nanos()], [all.as_nanos()]);
        *under -= extra;
    }
}

/// Divides the remaining time into equal parts. The parts go to lanes of best effort with requests. If there are none, they
/// go to all lanes with requests, or else to all lanes.
fn share(under: Nanos, demands: &[Demand], sizes: &mut [Size]) {
    let best_effort = |demand: &Demand| demand.must && demand.left.is_none();
    let active = |demand: &Demand| demand.must;
    let any = |_: &Demand| true;
    let rules: [&dyn Fn(&Demand) -> bool; 3] = [&best_effort, &active, &any];
    let takes = rules.into_iter().find(|rule| demands.iter().any(rule));
    let takes = takes.unwrap_or(&any);
    let count = demands.iter().filter(|demand| takes(demand)).count() as u64;
    let (mut left, mut count) = (under, count);
    for (size, demand) in sizes.iter_mut().zip(demands) {
        if takes(demand) {
            let part = left / count;
            size.window += part;
            left -= part;
            count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(1000);
    const LEAST: Nanos = Nanos::from_millis(40);

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn goal(left: u64, window: u64, served: u64, required: u64) -> Demand {
        Demand {
            left: Some(Nanos::from_secs(left)),
            window: ms(window),
            served,
            required,
            lost: Nanos::ZERO,
            repaying: Nanos::ZERO,
            must: true,
            promised: 0,
        }
    }

    const BEST_EFFORT: Demand = Demand {
        left: None,
        window: Nanos::ZERO,
        served: 0,
        required: 0,
        lost: Nanos::ZERO,
        repaying: Nanos::ZERO,
        must: true,
        promised: 0,
    };

    #[test]
    fn goals_give_way_to_windows_that_are_promised() {
        let promised = Demand {
            must: false,
            promised: 5,
            ..BEST_EFFORT
        };
        // 900 ms are demanded, and 200 ms promised.
        let demands = [goal(10, 450, 100, 100), goal(10, 450, 100, 100), promised];
        assert_eq!(windows(&demands), [400, 400, 200]);
    }

    fn windows(demands: &[Demand]) -> Vec<u64> {
        let sizes = sizes(PERIOD, LEAST, Shortage::Deadline, demands);
        let windows = sizes.iter().map(|size| size.window);
        windows
            .map(|window| window.as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn a_window_becomes_as_long_as_its_bound_demands() {
        // Half of the demand, whose loss is repaid in one period, and twice the demand.
        let half = Demand {
            lost: ms(500),
            ..goal(10, 100, 50, 100)
        };
        let demands = [half, goal(10, 400, 200, 100), BEST_EFFORT];
        assert_eq!(windows(&demands), [300, 200, 500]);
    }

    #[test]
    fn best_effort_shrinks_first_and_goals_by_the_time_to_their_deadlines() {
        // The goals demand 1,300 ms. The least window of best effort leaves 960 ms, so 340 ms are too many. The later
        // deadline gives more.
        let demands = [
            goal(10, 500, 100, 100),
            goal(30, 800, 100, 100),
            BEST_EFFORT,
        ];
        assert_eq!(windows(&demands), [415, 545, 40]);
    }

    #[test]
    fn an_even_shortage_takes_the_same_time_from_each_goal() {
        // The goals demand 340 ms more than the least window of best effort leaves.
        let demands = [
            goal(10, 500, 100, 100),
            goal(30, 800, 100, 100),
            BEST_EFFORT,
        ];
        let sizes = sizes(PERIOD, LEAST, Shortage::Even, &demands);
        let cuts: Vec<Nanos> = sizes.iter().map(|size| size.cut).collect();
        assert_eq!(cuts, [ms(170), ms(170), ms(0)]);
    }

    #[test]
    fn the_loss_that_is_measured_is_that_of_the_formula() {
        let (served, required) = (1_000_000, 1_000_000);
        let demands = [
            goal(10, 500, served, required),
            goal(30, 800, served, required),
        ];
        let cuts = sizes(PERIOD, LEAST, Shortage::Deadline, &demands);
        for (size, demand) in cuts.iter().zip(&demands) {
            // D · (T_cut / T) / B.
            let share = size.cut.as_secs_f64() / demand.window.as_secs_f64();
            let formula = served as f64 * share / required as f64;
            let rate = served as f64 / demand.window.as_secs_f64();
            let after = Demand {
                window: size.window,
                served: (rate * size.window.as_secs_f64()) as u64,
                ..*demand
            };
            let measured = after.set_back(PERIOD).as_secs_f64();
            assert!((measured - formula).abs() < 1e-5, "{measured} {formula}");
        }
    }

    #[test]
    fn a_window_is_not_cut_below_the_least_and_the_others_give_more() {
        let demands = [goal(1000, 100, 100, 100), goal(1, 1000, 100, 100)];
        assert_eq!(windows(&demands), [40, 960]);
    }

    #[test]
    fn slack_repays_the_most_urgent_loss_first_and_the_rest_is_for_best_effort() {
        let lost = |demand: Demand, lost: u64| Demand {
            lost: ms(lost),
            ..demand
        };
        let near = lost(goal(10, 300, 100, 100), 500);
        let far = lost(goal(20, 300, 100, 100), 2000);
        // The slack is 360 ms: 150 ms repay the near program's 500 ms, and 210 ms repay 700 ms of the far program.
        let demands = [far, near, BEST_EFFORT];
        assert_eq!(windows(&demands), [510, 450, 40]);
    }

    #[test]
    fn a_loss_that_the_plan_before_repays_is_not_repaid_twice() {
        let repaid = Demand {
            lost: ms(500),
            repaying: ms(500),
            ..goal(10, 300, 100, 100)
        };
        assert_eq!(windows(&[repaid, BEST_EFFORT]), [300, 700]);
    }

    #[test]
    fn a_loss_is_not_repaid_by_a_window_of_unknown_throughput() {
        let unserved = Demand {
            lost: ms(500),
            ..goal(10, 300, 0, 100)
        };
        let given = sizes(PERIOD, LEAST, Shortage::Deadline, &[unserved, BEST_EFFORT]);
        assert_eq!(given[0].repays, Nanos::ZERO);
    }

    #[test]
    fn programs_that_share_are_one_with_the_mean_of_their_losses_and_best_effort_adds_no_bytes() {
        let mut shared = goal(10, 300, 100, 100);
        shared.lost = ms(1000);
        shared.add(&goal(5, 0, 200, 300));
        shared.add(&Demand {
            served: 1000,
            ..BEST_EFFORT
        });
        let expected = Demand {
            lost: ms(250),
            ..goal(5, 300, 300, 400)
        };
        assert_eq!(shared, expected);
    }

    #[test]
    fn a_lane_without_traffic_has_the_window_that_it_had() {
        let demands = [goal(10, 300, 0, 100), goal(10, 200, 10, 0), BEST_EFFORT];
        assert_eq!(windows(&demands), [300, 200, 500]);
    }

    #[test]
    fn without_best_effort_all_share_what_is_left() {
        let demands = [goal(10, 300, 10, 10), goal(10, 300, 10, 10)];
        assert_eq!(windows(&demands), [500, 500]);
    }

    #[test]
    fn sizes_sum_to_the_period_whatever_is_demanded() {
        let mut state = 1_u64;
        let mut draw = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for _ in 0..2000 {
            let count = 1 + draw(6);
            let demands: Vec<Demand> = (0..count)
                .map(|_| Demand {
                    left: (draw(3) > 0).then(|| Nanos::from_millis(draw(100_000))),
                    window: ms(draw(1000)),
                    served: draw(1_000_000),
                    required: draw(3_000_000),
                    lost: ms(draw(2000)),
                    repaying: ms(draw(1000)),
                    must: draw(2) > 0,
                    promised: 0,
                })
                .collect();
            let shortage = [Shortage::Deadline, Shortage::Even][draw(2) as usize];
            let sizes = sizes(PERIOD, LEAST, shortage, &demands);
            let sum: Nanos = sizes.iter().map(|size| size.window).sum();
            assert_eq!(sum, PERIOD, "{demands:?}");
            for (size, demand) in sizes.iter().zip(&demands) {
                assert!(!demand.must || size.window >= LEAST, "{demands:?}");
            }
        }
    }
}
