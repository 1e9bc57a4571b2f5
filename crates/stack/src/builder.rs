//! Building of schedulers and their gate from a description.

use crate::{Known, Unbuilt};
use headtime_disk::Model;
use headtime_engine::{Config, EngineSpec, GateSpec, Gated, Issue};
use headtime_sched::{Knowledge, Scheduler, Spec, Tracker, WithTracker};
use std::sync::Arc;

/// Builds the schedulers of a description and their gate, for any number of engines and on any thread. All errors occur
/// in [`Builder::new`].
#[derive(Clone, Debug)]
pub struct Builder {
    scheduler: Spec,
    gate: GateSpec,
    config: Config,
    knowledge: Knowledge<Arc<Model>>,
    /// Model that follows the head for an engine whose scheduler has no tracker.
    follows: Option<Arc<Model>>,
}

impl Builder {
    /// Creates a builder. If the scheduler needs a curve, learning it takes some tenths of a second, once for each
    /// `known`.
    ///
    /// # Errors
    ///
    /// If the scheduler or the engine needs knowledge that is missing, or if the gate does not fit the engine.
    pub fn new(
        known: &Known,
        scheduler: &Spec,
        engine: &EngineSpec,
        sector_bytes: u32,
    ) -> Result<Builder, Unbuilt> {
        let config = engine.config(sector_bytes);
        let knowledge = known.knowledge(scheduler, &config)?;
        scheduler.build(knowledge.clone())?;
        engine.gate.build(&config)?;
        let follows = match asks_for_arm(engine) && !scheduler.needs().positioning {
            true => Some(known.model()?.ok_or(Unbuilt::Late)?),
            false => None,
        };
        Ok(Builder {
            follows,
            scheduler: scheduler.clone(),
            gate: engine.gate.clone(),
            config,
            knowledge,
        })
    }

    /// Builds a scheduler.
    pub fn scheduler(&self) -> Box<dyn Scheduler> {
        let built = self.scheduler.build(self.knowledge.clone());
        let built = built.expect("what was built once is built again");
        match &self.follows {
            Some(model) => {
                let tracker = Box::new(Tracker::new(Arc::clone(model)));
                Box::new(WithTracker::new(built, tracker))
            }
            None => built,
        }
    }

    /// Builds the gate, and the schedulers of its lanes after the first. Returns `None` if the engine's default gate
    /// does the same.
    pub fn gated(&self) -> Option<Gated> {
        let built = self.gate.build(&self.config);
        let gate = built.expect("what was built once is built again")?;
        let others = (1..gate.lanes()).map(|_| self.scheduler()).collect();
        Some((gate, others))
    }
}

/// Returns true if an engine needs to know when the arm is free, with any scheduler.
pub fn asks_for_arm(engine: &EngineSpec) -> bool {
    engine.issue == Issue::Late && engine.depth > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    fn builder(scheduler: &str, gate: &str) -> Result<Builder, Unbuilt> {
        let engine = EngineSpec {
            depth: 31,
            gate: gate.parse().expect("the gate is known"),
            ..EngineSpec::default()
        };
        let scheduler = scheduler.parse().expect("the scheduler is known");
        Builder::new(&Known::default(), &scheduler, &engine, 512)
    }

    #[test]
    fn a_gate_of_three_lanes_gets_two_more_schedulers_and_the_engines_own_gets_none() {
        let lanes = |gate| {
            let gated = builder("clook", gate).expect("nothing is missing").gated();
            gated.map(|(gate, others)| (gate.lanes(), others.len()))
        };
        assert_eq!((lanes("depth"), lanes("depth=31")), (None, None));
        assert_eq!(lanes("depth=8"), Some((1, 0)));
        assert_eq!(lanes("rsd:age_th=30"), Some((1, 0)));
        assert_eq!(lanes("rsd-priority:age_th=30:ranks=1/2/3"), Some((3, 2)));
    }

    #[test]
    fn who_is_to_choose_late_and_does_not_predict_gets_a_tracker_of_the_believed_drive() {
        let known = Known::learning(by_name("atlas10k"));
        let tracker = |known: &Known, scheduler: &str, depth, issue| {
            let engine = EngineSpec {
                depth,
                issue,
                ..EngineSpec::default()
            };
            let scheduler = scheduler.parse().expect("the scheduler is known");
            let builder = Builder::new(known, &scheduler, &engine, 512)?;
            Ok::<_, Unbuilt>(builder.scheduler().tracker().is_some())
        };
        assert_eq!(tracker(&known, "sstf", 2, Issue::Late), Ok(true));
        assert_eq!(tracker(&known, "sptf", 2, Issue::Late), Ok(true));
        assert_eq!(tracker(&known, "sstf", 2, Issue::AtOnce), Ok(false));
        assert_eq!(tracker(&known, "sstf", 1, Issue::Late), Ok(false));
        let nothing = Known::default();
        assert_eq!(
            tracker(&nothing, "sstf", 2, Issue::Late),
            Err(Unbuilt::Late)
        );
        assert_eq!(tracker(&nothing, "sstf", 1, Issue::Late), Ok(false));
    }

    #[test]
    fn what_cannot_be_built_says_what_is_missing_or_does_not_fit() {
        let problem = |scheduler, gate| match builder(scheduler, gate) {
            Ok(_) => panic!("{scheduler} behind {gate} was built"),
            Err(problem) => problem,
        };
        assert!(matches!(problem("sptf", "depth"), Unbuilt::Positions(_)));
        assert!(matches!(
            problem("stream(clook)", "depth"),
            Unbuilt::Curve(_)
        ));
        let gate = problem("clook", "rsd-priority:ranks=31");
        assert!(matches!(gate, Unbuilt::Gate(_)), "{gate:?}");
        assert!(
            gate.to_string()
                .contains("less than the depth, which is 31"),
            "{gate}"
        );
    }
}
