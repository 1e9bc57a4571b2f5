//! Lanes that orders assign to programs or to exports.

use super::{GateOrder, Lane};
use headtime_sched::{OptionInfo, Options, Origin};

/// Option: whether programs or exports have lanes.
pub(super) const BY: OptionInfo = OptionInfo::choice(
    "by",
    &["program", "export"],
    "whose requests an order assigns to a lane: a program's, or those that come through an export",
);

/// Option: number of lanes.
pub(super) const LANES: OptionInfo = OptionInfo::count(
    "lanes",
    8,
    (1, 64),
    "lanes, each with a queue and a scheduler of its own; the first is shared by all that have none. More lanes \
     serve more programs apart, and each takes memory",
);

/// Lane of each program or export.
///
/// Invariants: numbers ascend; each lane is below `lanes`.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    by_export: bool,
    lanes: u8,
    assigned: Vec<(u16, Lane)>,
}

impl Assignment {
    /// Creates an assignment in which no program or export has a lane of its own.
    pub fn of(options: Options<'_>) -> Assignment {
        Assignment {
            by_export: options.choice("by") == "export",
            lanes: u8::try_from(options.count("lanes")).expect("the option's range is smaller"),
            assigned: Vec::new(),
        }
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        usize::from(self.lanes)
    }

    /// Returns all lanes.
    pub fn all(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..self.lanes).map(Lane)
    }

    /// Returns the lane of a request. Without a lane of its own, a program or export has the shared lane 0.
    pub fn lane(&self, origin: Origin) -> Lane {
        let number = match self.by_export {
            true => origin.export,
            false => origin.program,
        };
        let found = self.assigned.iter().find(|(of, _)| *of == number);
        found.map_or(Lane(0), |(_, lane)| *lane)
    }

    /// Calls `tell` with the order of each lane that is assigned.
    pub fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        for &(of, lane) in &self.assigned {
            tell(&GateOrder::Assign { of, lane });
        }
    }

    /// Obeys an order of assignment. If the order's lane does not exist, the shared lane takes its place.
    pub fn obey(&mut self, order: &GateOrder) {
        let GateOrder::Assign { of, lane } = *order else {
            return;
        };
        let lane = match lane.index() < self.lanes() {
            true => lane,
            false => Lane(0),
        };
        match self.assigned.binary_search_by_key(&of, |(of, _)| *of) {
            Ok(at) => self.assigned[at].1 = lane,
            Err(at) => self.assigned.insert(at, (of, lane)),
        }
    }
}
