//! Windows of a period, from the sizes that the lanes ask for.

use super::{LEAST, PERIOD, Plan, Second, Window};

/// A lane in the period to plan. Times in seconds.
#[derive(Clone, Debug)]
pub struct Lane {
    pub number: usize,
    pub members: Vec<usize>,
    /// Time to the earliest deadline; `None`: best effort.
    pub left: Option<f64>,
    pub required: f64,
    pub served: f64,
    pub window: f64,
    pub size: f64,
    pub owed: f64,
    pub repays: f64,
}

impl Second {
    /// Makes the sizes fit the period.
    pub fn divide(&self, mut lanes: Vec<Lane>, apart: f64) -> Plan {
        let period = PERIOD - apart;
        if lanes.is_empty() {
            // Nobody has a request: equal parts for all.
            lanes = (0..self.programs.len())
                .map(|i| self.lane(i, vec![i]))
                .collect();
            lanes.iter_mut().for_each(|lane| lane.left = None);
        }
        let best = lanes.iter().filter(|lane| lane.left.is_none()).count() as f64;
        for lane in lanes.iter_mut().filter(|lane| lane.left.is_none()) {
            lane.size = LEAST;
        }
        let sum: f64 = lanes.iter().map(|lane| lane.size).sum();
        if sum > period {
            // T_cut: by the time to the deadline. A window keeps its least, and the others give more.
            let mut over = sum - period;
            while over > 1e-12 {
                let free: Vec<usize> = (0..lanes.len())
                    .filter(|&n| lanes[n].left.is_some() && lanes[n].size > LEAST + 1e-12)
                    .collect();
                if free.is_empty() {
                    break;
                }
                let total: f64 = free.iter().map(|&n| lanes[n].left.unwrap()).sum();
                let part = |lane: &Lane| {
                    if total > 0.0 {
                        lane.left.unwrap() / total
                    } else {
                        1.0 / free.len() as f64
                    }
                };
                let cuts: Vec<f64> = free.iter().map(|&n| over * part(&lanes[n])).collect();
                let short: Vec<usize> = (0..free.len())
                    .filter(|&n| lanes[free[n]].size - cuts[n] < LEAST)
                    .collect();
                for &n in &short {
                    over -= lanes[free[n]].size - LEAST;
                    lanes[free[n]].size = LEAST;
                }
                if short.is_empty() {
                    for (n, cut) in free.iter().zip(cuts) {
                        lanes[*n].size -= cut;
                    }
                    break;
                }
            }
        } else {
            // Slack repays losses, the most urgent first, and then goes to best effort in equal parts.
            let mut slack = period - sum;
            let mut order: Vec<usize> = (0..lanes.len())
                .filter(|&n| lanes[n].left.is_some())
                .collect();
            order.sort_by(|&a, &b| {
                lanes[a]
                    .left
                    .unwrap()
                    .total_cmp(&lanes[b].left.unwrap())
                    .then(lanes[a].number.cmp(&lanes[b].number))
            });
            for n in order {
                let lane = &mut lanes[n];
                if lane.owed > 0.0 && lane.served > 0.0 && lane.window > 0.0 {
                    // Seconds of window for each second of loss.
                    let price = lane.required / PERIOD / (lane.served / lane.window);
                    let span = (lane.owed * price).min(slack);
                    lane.size += span;
                    lane.repays = span / price;
                    slack -= span;
                }
            }
            let heirs: Vec<usize> = (0..lanes.len())
                .filter(|&n| best == 0.0 || lanes[n].left.is_none())
                .collect();
            for &n in &heirs {
                lanes[n].size += slack / heirs.len() as f64;
            }
        }
        // Windows one after the other, by lane.
        lanes.sort_by_key(|lane| lane.number);
        let mut from = self.plans.len() as f64 * PERIOD + apart;
        let mut windows = Vec::new();
        for lane in &lanes {
            windows.push(Window {
                lane: lane.number,
                from,
                length: lane.size,
                repays: lane.repays,
            });
            from += lane.size;
        }
        Plan {
            lanes: self.lanes(),
            windows,
        }
    }

    fn lanes(&self) -> Vec<usize> {
        (0..self.programs.len())
            .map(|i| if self.programs[i].shared { 0 } else { i })
            .collect()
    }
}
