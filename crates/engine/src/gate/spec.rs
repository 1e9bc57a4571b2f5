//! Text of a gate, the same in flags, scenarios, configurations and logs.
//!
//! The text has the form of a scheduler's text: `depth=8`, `rsd:age_th=90`, `rsd-priority:age_th=90:ranks=1/2`.

use super::registration::{GateProblem, Inside, Registration};
use super::{
    FixedDepth, Gate, GateOrder, average, head_time, iolatency, mclock, ranked, rsd, windows,
};
use crate::config::Config;
use core::fmt;
use core::str::FromStr;
use headtime_sched::{OptionInfo, Options, PolicyInfo, Spec, Value};

/// The gates in the order of help and documentation. A new gate needs a line here.
const ALL: &[Registration] = &[
    DEPTH,
    rsd::ENTRY,
    ranked::ENTRY,
    head_time::ENTRY,
    iolatency::ENTRY,
    windows::ENTRY,
    average::ENTRY,
    mclock::ENTRY,
];

const DEPTH: Registration = Registration {
    info: &PolicyInfo {
        name: "depth",
        idea: "so many commands at once",
        bound: "none",
        source: "every driver",
        avoid: "commands must not starve in the drive",
        options: &[OptionInfo::count(
            "depth",
            256,
            (1, 256),
            "how many commands may be in the drive, if the engine's depth is not less; lower lets the scheduler choose",
        )],
        ..PolicyInfo::PLAIN
    },
    check: |_, _| Ok(()),
    build: |options, config, _| {
        let depth = most(options);
        let lower = || Box::new(FixedDepth::of(config, depth)) as Box<dyn Gate>;
        (depth < config.depth).then(lower)
    },
};

fn most(options: Options<'_>) -> u32 {
    u32::try_from(options.count("depth")).expect("the option's range is smaller")
}

/// Lists the gates in the order of help and documentation.
pub fn gates() -> impl ExactSizeIterator<Item = &'static PolicyInfo> {
    ALL.iter().map(|entry| entry.info)
}

/// A gate by name, with its options.
///
/// # Examples
///
/// ```
/// use headtime_engine::GateSpec;
///
/// let gate: GateSpec = "rsd-priority:ranks=1/4".parse()?;
/// assert_eq!(gate.to_string(), "rsd-priority:ranks=1/4");
///
/// let error = "rdd".parse::<GateSpec>().unwrap_err();
/// assert!(error.to_string().contains("did you mean \"rsd\"?"));
/// # Ok::<(), headtime_engine::GateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateSpec(Spec);

/// Error of a text that names no gate, or no gate that fits the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gate \"{text}\": {problem}")]
pub struct GateError {
    /// The gate with its options.
    pub text: String,
    /// The problem.
    pub problem: GateProblem,
}

impl GateSpec {
    /// Returns the gate's description.
    pub fn info(&self) -> &'static PolicyInfo {
        self.0.info()
    }

    fn entry(&self) -> &'static Registration {
        let named = |entry: &&Registration| entry.info.name == self.info().name;
        let entry = ALL.iter().find(named);
        entry.expect("gates are read from the same table")
    }

    /// Returns the values of the gate's options, given or default, without the options of the gate inside.
    pub fn options(&self) -> Options<'_> {
        self.0.values()
    }

    /// Returns the gate inside this one, if one is given.
    pub fn inner(&self) -> Option<GateSpec> {
        self.0.inner().cloned().map(GateSpec)
    }

    /// Returns the number of times that a command in the drive may be overtaken before the gate closes. `None` if the
    /// gate has no such threshold.
    pub fn age_th(&self) -> Option<u64> {
        match self.info().option("age_th") {
            Some(option) => Some(self.0.values().count(option.key)),
            None => self.inner()?.age_th(),
        }
    }

    /// Checks the options against the engine's configuration.
    ///
    /// # Errors
    ///
    /// If an option of the gate does not fit the engine.
    pub fn check(&self, config: &Config) -> Result<(), GateProblem> {
        (self.entry().check)(self.0.values(), config)?;
        self.inside(config).map(|_| ())
    }

    /// Builds the gate inside this one, if there is one.
    fn inside(&self, config: &Config) -> Result<Inside, GateProblem> {
        let Some(inner) = self.inner() else {
            return Ok(None);
        };
        let gate = inner
            .build_in_flight(config)
            .map_err(|error| error.problem)?;
        match gate.lanes() {
            1 => Ok(Some(gate)),
            lanes => Err(GateProblem::InnerLanes {
                inner: inner.to_string(),
                lanes,
            }),
        }
    }

    /// Builds the gate for an engine of this configuration. Returns `None` if the engine's default gate does the same.
    ///
    /// # Errors
    ///
    /// If an option of the gate does not fit the engine.
    pub fn build(&self, config: &Config) -> Result<Option<Box<dyn Gate>>, GateError> {
        let refused = |problem| GateError {
            text: self.to_string(),
            problem,
        };
        self.check(config).map_err(refused)?;
        let inside = self.inside(config).map_err(refused)?;
        Ok((self.entry().build)(self.0.values(), config, inside))
    }

    /// Builds the gate for a running engine of this configuration, in place of its present gate.
    ///
    /// # Errors
    ///
    /// If an option of the gate does not fit the engine.
    pub fn build_in_flight(&self, config: &Config) -> Result<Box<dyn Gate>, GateError> {
        let gate = self.build(config)?;
        Ok(gate.unwrap_or_else(|| Box::new(FixedDepth::new(config))))
    }

    /// Returns the order that turns the gate `before` into this gate, if the two differ in the threshold of age alone.
    /// The gate then keeps the ages of the commands in the drive. A swap would lose these ages.
    pub fn order_from(&self, before: &GateSpec) -> Option<GateOrder> {
        let same_gate = self.info().name == before.info().name;
        let pairs = self.0.options().zip(before.0.options());
        let mut differing = pairs.filter(|(one, other)| same_gate && one != other);
        match (differing.next(), differing.next()) {
            (Some(((option, Value::Count(threshold)), _)), None) if option.key == "age_th" => {
                Some(GateOrder::Age(threshold))
            }
            _ => None,
        }
    }
}

impl Default for GateSpec {
    /// Returns the gate that limits the engine's depth alone.
    fn default() -> GateSpec {
        "depth".parse().expect("there is such a gate")
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::GateSpec;
    use core::fmt;
    use serde::de::{Deserialize, Deserializer, Error, Visitor};
    use serde::{Serialize, Serializer};

    /// Writes the text once in an error. A [`GateError`](super::GateError) contains the text already, so only its
    /// problem is used.
    impl<'de> Deserialize<'de> for GateSpec {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<GateSpec, D::Error> {
            struct TextVisitor;

            impl Visitor<'_> for TextVisitor {
                type Value = GateSpec;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("the text of a gate, such as \"rsd:age_th=90\"")
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<GateSpec, E> {
                    let read: Result<GateSpec, _> = text.parse();
                    read.map_err(|error| E::custom(format_args!("\"{text}\": {}", error.problem)))
                }
            }

            from.deserialize_str(TextVisitor)
        }
    }

    impl Serialize for GateSpec {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }
}

impl FromStr for GateSpec {
    type Err = GateError;

    fn from_str(text: &str) -> Result<GateSpec, GateError> {
        let table: Vec<&'static PolicyInfo> = gates().collect();
        let read = Spec::parse_among(text, &table);
        read.map(GateSpec).map_err(|error| GateError {
            text: error.text,
            problem: GateProblem::Text(error.kind),
        })
    }
}

impl fmt::Display for GateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
