//! The record of a policy: names, options, bound, source.
//!
//! Help texts, the table in the documentation and the parser of [`Spec`](crate::Spec) read these
//! records, so that they cannot disagree. A new policy is a file with its [`PolicyInfo`] (`INFO`) and its
//! builder (`build`), and the line of `lib.rs` that declares it.

use crate::{Elevator, Scheduler, ServiceCurve};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use headtime_units::{Millionths, Nanos};

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number of things.
    Count(u64),
    /// A span of time.
    Duration(Nanos),
    /// A weight or a factor.
    Weight(Millionths),
    /// A share in percent.
    Percent(u64),
    /// Yes or no.
    Flag(bool),
    /// One of several words.
    Choice(&'static str),
    /// Several counts, in order.
    Counts(Counts),
}

/// One to eight counts, in order; as text `1/2/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    len: u8,
    counts: [u16; Counts::MAX],
}

impl Counts {
    /// Largest number of counts.
    pub const MAX: usize = 8;

    /// Builds the list from these counts.
    ///
    /// # Panics
    ///
    /// If `given` is empty or longer than [`Counts::MAX`].
    pub const fn new(given: &[u16]) -> Counts {
        assert!(!given.is_empty() && given.len() <= Counts::MAX);
        let mut counts = [0; Counts::MAX];
        let mut at = 0;
        while at < given.len() {
            counts[at] = given[at];
            at += 1;
        }
        Counts {
            len: given.len() as u8,
            counts,
        }
    }

    /// The counts as a slice.
    pub fn as_slice(&self) -> &[u16] {
        &self.counts[..usize::from(self.len)]
    }

    /// Parses counts. Each count must lie within the range.
    pub(crate) fn read(text: &str, (low, high): (u64, u64)) -> Option<Counts> {
        let mut given = [0; Counts::MAX];
        let mut len = 0;
        for part in text.split('/') {
            let count: u16 = part.trim().parse().ok()?;
            (low..=high).contains(&u64::from(count)).then_some(())?;
            *given.get_mut(len)? = count;
            len += 1;
        }
        Some(Counts::new(&given[..len]))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, count) in self.as_slice().iter().enumerate() {
            let slash = if at > 0 { "/" } else { "" };
            write!(f, "{slash}{count}")?;
        }
        Ok(())
    }
}

/// Writes the value as it is read: `16`, `500ms`, `0.03`, `true`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => count.fmt(f),
            Value::Duration(span) => span.fmt(f),
            Value::Weight(weight) => weight.fmt(f),
            Value::Percent(share) => write!(f, "{share}%"),
            Value::Flag(flag) => flag.fmt(f),
            Value::Choice(word) => f.write_str(word),
            Value::Counts(counts) => counts.fmt(f),
        }
    }
}

/// A tunable of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Name, as in `fifo_batch=8`.
    pub key: &'static str,
    /// Value of an option that is not given. The variant is the type of the option.
    pub default: Value,
    /// The lowest and the highest value allowed, of the same variant as the default. For several counts, the range of
    /// each count.
    pub range: (Value, Value),
    /// The words allowed for a choice. Empty for other types.
    pub words: &'static [&'static str],
    /// Meaning, unit, the effect of raising and of lowering the value, and the meaning of 0.
    pub help: &'static str,
}

impl OptionInfo {
    /// A count, from `range.0` to `range.1`.
    pub const fn count(
        key: &'static str,
        default: u64,
        range: (u64, u64),
        help: &'static str,
    ) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Count(default),
            range: (Value::Count(range.0), Value::Count(range.1)),
            words: &[],
            help,
        }
    }

    /// A duration, up to a day.
    pub const fn duration(key: &'static str, default: Nanos, help: &'static str) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Duration(default),
            range: (
                Value::Duration(Nanos::ZERO),
                Value::Duration(Nanos::from_secs(86_400)),
            ),
            words: &[],
            help,
        }
    }

    /// A weight, from 0 to `max`.
    pub const fn weight(
        key: &'static str,
        default: Millionths,
        max: Millionths,
        help: &'static str,
    ) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Weight(default),
            range: (Value::Weight(Millionths::ZERO), Value::Weight(max)),
            words: &[],
            help,
        }
    }

    /// A share in whole percent, from 0 to `max`.
    pub const fn percent(
        key: &'static str,
        default: u64,
        max: u64,
        help: &'static str,
    ) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Percent(default),
            range: (Value::Percent(0), Value::Percent(max)),
            words: &[],
            help,
        }
    }

    /// `true` or `false`.
    pub const fn flag(key: &'static str, default: bool, help: &'static str) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Flag(default),
            range: (Value::Flag(false), Value::Flag(true)),
            words: &[],
            help,
        }
    }

    /// Several counts, each from `range.0` to `range.1`.
    pub const fn counts(
        key: &'static str,
        default: Counts,
        range: (u64, u64),
        help: &'static str,
    ) -> OptionInfo {
        OptionInfo {
            key,
            default: Value::Counts(default),
            range: (Value::Count(range.0), Value::Count(range.1)),
            words: &[],
            help,
        }
    }

    /// One of `words`, the first by default.
    pub const fn choice(
        key: &'static str,
        words: &'static [&'static str],
        help: &'static str,
    ) -> OptionInfo {
        let (first, last) = (words[0], words[words.len() - 1]);
        OptionInfo {
            key,
            default: Value::Choice(first),
            range: (Value::Choice(first), Value::Choice(last)),
            words,
            help,
        }
    }
}

/// A number that ends a policy's name, such as the 60 of `sptf-sw60`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberInfo {
    /// The lowest number allowed.
    pub min: u64,
    /// The highest number allowed.
    pub max: u64,
    /// A customary number, for examples.
    pub example: u64,
    /// Meaning and unit.
    pub help: &'static str,
}

/// Knowledge that a policy needs. The positioning and the curve must be there to build a policy that needs them. A
/// policy that needs foresight can be built without foresight, but then gains nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Places of sectors: a [`Positioning`](crate::Positioning), the assumed profile of the disk.
    pub positioning: bool,
    /// Service times by distance: a [`ServiceCurve`].
    pub curve: bool,
    /// Requests to come: [`Scheduler::foretold`]. Only a simulation knows these requests.
    pub foresight: bool,
}

impl Needs {
    /// Nothing but the requests.
    pub const NOTHING: Needs = Needs {
        positioning: false,
        curve: false,
        foresight: false,
    };

    /// Combines the needs of two policies.
    pub const fn with(self, other: Needs) -> Needs {
        Needs {
            positioning: self.positioning || other.positioning,
            curve: self.curve || other.curve,
            foresight: self.foresight || other.foresight,
        }
    }
}

/// Party that gets the disk from a policy for a slice of time while other requests wait. The word is the name of the
/// option that sets the length of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slices {
    /// No party.
    None,
    /// A stream of requests.
    ToStreams(&'static str),
    /// A process, if requests name their process.
    ToProcesses(&'static str),
}

/// Check of a policy that chooses among schedulers. Returns an error if the options do not fit the number of
/// schedulers: the key of the option and the values allowed.
pub type CheckAmong = fn(&Options<'_>, usize) -> Result<(), (&'static str, String)>;

/// Properties of a policy that chooses among schedulers.
#[derive(Clone, Copy)]
pub struct Among {
    /// Schedulers, as text, for a specification that names none.
    pub unless_named: &'static str,
    /// Check that the options fit the number of schedulers.
    pub check: CheckAmong,
}

impl fmt::Debug for Among {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.unless_named)
    }
}

impl PartialEq for Among {
    fn eq(&self, other: &Among) -> bool {
        self.unless_named == other.unless_named
    }
}

impl Eq for Among {}

/// The record of a policy. It exists without an instance of the policy.
///
/// Invariants of the records in the table of policies:
///
/// - No two policies have a name or an alias in common, and no two options of a policy have the same key.
/// - `idea` has 1 to 6 words; `bound`, `source` and `avoid` are not empty.
/// - `number = Some(n)` ⇒ `n.min ≤ n.example ≤ n.max`.
/// - `inner.is_some()` ⇒ `among.is_none()`.
/// - `waits` ⇔ the scheduler that is built may wait.
/// - `slices` names an option ⇒ the option is in `options`, and its value is a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Name, without the number if the policy has a number.
    pub name: &'static str,
    /// Further names, which are read but never written.
    pub aliases: &'static [&'static str],
    /// The number that must follow the name directly.
    pub number: Option<NumberInfo>,
    /// Rule of the policy, in six words or less.
    pub idea: &'static str,
    /// Bound of a request's wait, in words.
    pub bound: &'static str,
    /// Source of the rule.
    pub source: &'static str,
    /// Cases in which another policy is the better choice.
    pub avoid: &'static str,
    /// Options of the policy.
    pub options: &'static [OptionInfo],
    /// Knowledge that the policy itself needs. [`Spec::needs`](crate::Spec::needs) adds the needs of the inner
    /// elevator.
    pub needs: Needs,
    /// Default elevator of a policy that wraps an elevator; `None` if the policy wraps no elevator.
    pub inner: Option<&'static str>,
    /// Properties of a policy that chooses among schedulers of the same requests; `None` for other policies.
    pub among: Option<Among>,
    /// True if the policy may wait although requests are queued. A waiting policy cannot be wrapped.
    pub waits: bool,
    /// Party that gets slices of the disk's time.
    pub slices: Slices,
}

impl PolicyInfo {
    /// A policy without aliases, number, options, inner elevator, or need for positions, which
    /// never waits: the start of a record.
    pub const PLAIN: PolicyInfo = PolicyInfo {
        name: "",
        aliases: &[],
        number: None,
        idea: "",
        bound: "",
        source: "",
        avoid: "",
        options: &[],
        needs: Needs::NOTHING,
        inner: None,
        among: None,
        waits: false,
        slices: Slices::None,
    };

    /// The name as help texts show it: `deadline`, `sptf-swN`.
    pub fn title(&self) -> impl fmt::Display {
        Title(*self)
    }

    /// The tunable of this name.
    pub fn option(&self, key: &str) -> Option<&'static OptionInfo> {
        self.options.iter().find(|option| option.key == key)
    }
}

struct Title(PolicyInfo);

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)?;
        f.write_str(if self.0.number.is_some() { "N" } else { "" })
    }
}

/// The options that a policy is built with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    info: &'static PolicyInfo,
    number: Option<u64>,
    given: &'a [(&'static str, Value)],
}

impl<'a> Options<'a> {
    pub(crate) fn new(
        info: &'static PolicyInfo,
        number: Option<u64>,
        given: &'a [(&'static str, Value)],
    ) -> Options<'a> {
        Options {
            info,
            number,
            given,
        }
    }

    /// The number that ends the policy's name.
    ///
    /// # Panics
    ///
    /// If the policy has no number.
    pub fn number(&self) -> u64 {
        self.number.expect("the policy's name ends in a number")
    }

    /// The value of an option, given or default.
    ///
    /// # Panics
    ///
    /// If the policy has no such option.
    pub fn value(&self, key: &str) -> Value {
        let given = self.given.iter().find(|(name, _)| *name == key);
        match given {
            Some((_, value)) => *value,
            None => {
                let option = self.info.option(key);
                option
                    .unwrap_or_else(|| panic!("{} has no option {key}", self.info.name))
                    .default
            }
        }
    }

    /// The value of an option that is a count.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a count.
    pub fn count(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Count(count) => count,
            other => panic!("{key} is {other:?}, not a count"),
        }
    }

    /// The value of an option that is several counts.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a list of counts.
    pub fn counts(&self, key: &str) -> Counts {
        match self.value(key) {
            Value::Counts(counts) => counts,
            other => panic!("{key} is {other:?}, not several counts"),
        }
    }

    /// The value of an option that is a duration.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a duration.
    pub fn duration(&self, key: &str) -> Nanos {
        match self.value(key) {
            Value::Duration(span) => span,
            other => panic!("{key} is {other:?}, not a duration"),
        }
    }

    /// The value of an option that is a weight.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a weight.
    pub fn weight(&self, key: &str) -> Millionths {
        match self.value(key) {
            Value::Weight(weight) => weight,
            other => panic!("{key} is {other:?}, not a weight"),
        }
    }

    /// The value of an option that is a share in percent.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a share in percent.
    pub fn percent(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Percent(share) => share,
            other => panic!("{key} is {other:?}, not a share in percent"),
        }
    }

    /// The value of an option that is true or false.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a flag.
    pub fn flag(&self, key: &str) -> bool {
        match self.value(key) {
            Value::Flag(flag) => flag,
            other => panic!("{key} is {other:?}, not a flag"),
        }
    }

    /// The value of an option that is a choice.
    ///
    /// # Panics
    ///
    /// If the policy has no such option, or if the option is not a choice.
    pub fn choice(&self, key: &str) -> &'static str {
        match self.value(key) {
            Value::Choice(word) => word,
            other => panic!("{key} is {other:?}, not a choice"),
        }
    }
}

/// Knowledge of the disk for the policies that need it.
#[derive(Clone, Debug)]
pub struct Knowledge<P> {
    /// Model of the places of sectors.
    pub positioning: Option<P>,
    /// Service times of requests by distance.
    pub curve: Option<Arc<ServiceCurve>>,
    /// Largest number of requests that can be handed out and not yet done. This is the number that the drive takes at a
    /// time, and one more if the driver commits to a request ahead.
    pub handed_out_max: Option<u64>,
}

impl<P> Default for Knowledge<P> {
    /// Returns no knowledge.
    fn default() -> Knowledge<P> {
        Knowledge {
            positioning: None,
            curve: None,
            handed_out_max: None,
        }
    }
}

impl<P> From<Option<P>> for Knowledge<P> {
    /// Returns knowledge of positions alone, or no knowledge.
    fn from(positioning: Option<P>) -> Knowledge<P> {
        Knowledge {
            positioning,
            ..Knowledge::default()
        }
    }
}

/// Parts that a policy is built from.
pub struct Parts<'a, P> {
    /// Options of the policy.
    pub options: Options<'a>,
    /// Model of the places of sectors, if the policy needs it.
    pub positioning: Option<P>,
    /// Service times of requests by distance, if the policy needs them.
    pub curve: Option<Arc<ServiceCurve>>,
    /// Largest number of requests that can be handed out and not yet done, if this number is known.
    pub handed_out_max: Option<u64>,
    /// The elevator to wrap, if the policy wraps an elevator.
    pub inner: Option<Box<dyn Elevator>>,
    /// The schedulers to choose among. A depth is given if a scheduler's depth differs from the engine's. Empty if the
    /// specification names no schedulers.
    pub choices: Vec<(Box<dyn Scheduler>, Option<u32>)>,
}

/// Result of a builder.
pub enum Built {
    /// A policy that never waits.
    Elevator(Box<dyn Elevator>),
    /// A policy that may wait.
    Scheduler(Box<dyn Scheduler>),
}

impl Built {
    /// Boxes an elevator.
    pub fn elevator(elevator: impl Elevator + 'static) -> Built {
        Built::Elevator(Box::new(elevator))
    }

    /// Boxes a scheduler that may wait.
    pub fn scheduler(scheduler: impl Scheduler + 'static) -> Built {
        Built::Scheduler(Box::new(scheduler))
    }
}
