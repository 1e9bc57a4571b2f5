//! What a gate is told of the drive behind it.

use crate::Known;
use headtime_disk::{Layout, Longest};
use headtime_engine::{EngineSpec, GateProblem, GateSpec};
use headtime_units::Nanos;
use std::borrow::Cow;

impl Known {
    /// The same engine. A gate with a bound in time that does not say how long a command takes is told what the believed
    /// drive would take, if there is one.
    ///
    /// A log has the engine so, and a replay needs no profile.
    pub fn told<'a>(&self, engine: &'a EngineSpec) -> Cow<'a, EngineSpec> {
        let (Some(bound), Some(belief)) = (engine.gate.lacks_longest(), self.belief()) else {
            return Cow::Borrowed(engine);
        };
        let config = engine.config(belief.geometry.sector_bytes);
        let longest = Longest::of(belief, &Layout::new(belief), config.merge_sectors_max);
        let fits = |gate: &GateSpec| match gate.check(&config) {
            Err(GateProblem::BoundShort { least, .. }) => Err(least),
            _ => Ok(()),
        };
        let mut engine = engine.clone();
        engine.gate = within(&engine.gate, &longest, bound, fits);
        Cow::Owned(engine)
    }
}

/// The gate with the pauses within its bound. If that is too short, with those within the shortest one that is not:
/// a longer bound has more pauses in it.
fn within(
    gate: &GateSpec,
    longest: &Longest,
    bound: Nanos,
    fits: impl Fn(&GateSpec) -> Result<(), Nanos>,
) -> GateSpec {
    // Of a drive that may go on with its buffer for ever no bound is long enough.
    let pauses = |span| match longest.pause < longest.every || longest.pause.is_zero() {
        true => longest.pauses_within(span).min(DAY),
        false => DAY,
    };
    let mut span = bound;
    loop {
        let told = gate.with_longest(longest.service, pauses(span));
        match fits(&told) {
            Err(least) if least > span && span < DAY => span = least,
            _ => return told,
        }
    }
}

/// The longest that an option of a gate may be.
const DAY: Nanos = Nanos::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile;

    #[test]
    fn a_gate_with_a_bound_is_told_how_long_the_believed_drive_takes() {
        let engine = |gate: &str| EngineSpec {
            gate: gate.parse().expect("the gate is known"),
            ..EngineSpec::default()
        };
        let known = Known::learning(profile::by_name("wd5000aaks"));
        let told = |gate| known.told(&engine(gate)).gate.to_string();
        let text = told("rsd:bound=1s");
        assert!(text.starts_with("rsd:bound=1s:longest=121."), "{text}");
        assert_eq!(
            told("rsd:bound=1s:longest=50ms"),
            "rsd:bound=1s:longest=50ms"
        );
        assert_eq!(told("rsd"), "rsd");
        // What is told with a bound that is too short is what the shortest one needs, and that one is allowed.
        let least = |known: &Known, gate: &str| {
            let told = known.told(&engine(gate)).into_owned();
            match told.gate.check(&told.config(512)) {
                Err(GateProblem::BoundShort { least, .. }) => Some(least),
                other => other.map(|()| None).expect("nothing else is wrong"),
            }
        };
        for name in ["rsd", "rsd-priority:ranks=0"] {
            let all = [1, 200, 350].map(|ms| least(&known, &format!("{name}:bound={ms}ms")));
            let shortest = all[0].expect("1 ms is too short");
            assert_eq!(all, [Some(shortest); 3]);
            assert_eq!(least(&known, &format!("{name}:bound={shortest}")), None);
            let shorter = shortest - Nanos::from_nanos(1);
            assert_eq!(
                least(&known, &format!("{name}:bound={shorter}")),
                Some(shortest)
            );
        }
        // It writes its buffer out in front of reads for as long as there is something old in it.
        let endless = Known::learning(profile::by_name("st3400620as"));
        for bound in ["200ms", "10s", "86400s"] {
            let least = least(&endless, &format!("rsd:bound={bound}"));
            assert!(least.is_some_and(|least| least > DAY), "{least:?}");
        }
        let nothing = Known::default();
        let unknown = engine("rsd:bound=1s");
        assert_eq!(*nothing.told(&unknown), unknown);
    }
}
