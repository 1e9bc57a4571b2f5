//! What a gate is told of the drive behind it.

use crate::Known;
use headtime_disk::{Layout, Longest};
use headtime_engine::EngineSpec;
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
        let sector_bytes = belief.geometry.sector_bytes;
        let largest = engine.config(sector_bytes).merge_sectors_max;
        let longest = Longest::of(belief, &Layout::new(belief), largest);
        let mut engine = engine.clone();
        let pause = longest.pauses_within(bound);
        engine.gate = engine.gate.with_longest(longest.service, pause);
        Cow::Owned(engine)
    }
}

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
        let nothing = Known::default();
        let unknown = engine("rsd:bound=1s");
        assert_eq!(*nothing.told(&unknown), unknown);
    }
}
