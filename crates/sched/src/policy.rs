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
    /// How many of something.
    Count(u64),
    /// How long.
    Duration(Nanos),
    /// How much of something: a weight or a factor.
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
    /// How many counts there can be.
    pub const MAX: usize = 8;

    /// These counts.
    ///
    /// # Panics
    ///
    /// If there are none, or more than [`Counts::MAX`].
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

    /// Reads counts of which each lies within a range.
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
    /// Its name, as in `fifo_batch=8`.
    pub key: &'static str,
    /// What it is when nothing is said. Its variant is the type of the option.
    pub default: Value,
    /// The lowest and the highest value allowed, of the same variant as the default. Of several counts, those
    /// of each count.
    pub range: (Value, Value),
    /// Of a choice, the words allowed; else empty.
    pub words: &'static [&'static str],
    /// What it means, its unit, the effect of raising and of lowering it, and what 0 means.
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
    /// The lowest allowed.
    pub min: u64,
    /// The highest allowed.
    pub max: u64,
    /// A customary one, for examples.
    pub example: u64,
    /// What it means, in what unit.
    pub help: &'static str,
}

/// What a policy must know. It cannot be built without the positioning and the curve that it needs. It can
/// be built without foresight, and gains nothing then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Where sectors are: a [`Positioning`](crate::Positioning), the belief about the disk.
    pub positioning: bool,
    /// How long a request takes by its distance: a [`ServiceCurve`].
    pub curve: bool,
    /// What comes next: [`Scheduler::foretold`], which only a simulation can tell.
    pub foresight: bool,
}

impl Needs {
    /// The requests alone.
    pub const NOTHING: Needs = Needs {
        positioning: false,
        curve: false,
        foresight: false,
    };

    /// Returns what either of two needs.
    pub const fn with(self, other: Needs) -> Needs {
        Needs {
            positioning: self.positioning || other.positioning,
            curve: self.curve || other.curve,
            foresight: self.foresight || other.foresight,
        }
    }
}

/// To whom a policy gives the disk for a slice of time while others wait. The word is the option that
/// says how long the slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slices {
    /// To nobody.
    None,
    /// To a stream of requests.
    ToStreams(&'static str),
    /// To a process, if requests say which one they are of.
    ToProcesses(&'static str),
}

/// Of a policy that chooses among schedulers: says what is wrong with its options for so many of them, as the key
/// and what is allowed.
pub type CheckAmong = fn(&Options<'_>, usize) -> Result<(), (&'static str, String)>;

/// That a policy chooses among schedulers.
#[derive(Clone, Copy)]
pub struct Among {
    /// Those among which it chooses when none are named, as text.
    pub unless_named: &'static str,
    /// Whether its options fit so many.
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

/// The record of a policy, there before one is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Its name; without the number if it has one.
    pub name: &'static str,
    /// Further names, read but never written.
    pub aliases: &'static [&'static str],
    /// The number that must follow the name directly.
    pub number: Option<NumberInfo>,
    /// What it does, in six words or less.
    pub idea: &'static str,
    /// How long a request may wait, in words.
    pub bound: &'static str,
    /// Where the rule is from.
    pub source: &'static str,
    /// When something else is the better choice.
    pub avoid: &'static str,
    /// Its tunables.
    pub options: &'static [OptionInfo],
    /// What it must know; not what the elevator in it must, see [`Spec::needs`](crate::Spec::needs).
    pub needs: Needs,
    /// Of a policy that wraps an elevator, which one when none is named; `None` if it wraps none.
    pub inner: Option<&'static str>,
    /// Of a policy that chooses among schedulers of the same requests, how they are checked; `None` if it does not.
    pub among: Option<Among>,
    /// True if it may wait although requests are queued, and so cannot be wrapped itself.
    pub waits: bool,
    /// To whom it gives slices of the disk's time.
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
    /// If the policy has none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
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
    /// If the policy has no such option, or if it is none.
    pub fn choice(&self, key: &str) -> &'static str {
        match self.value(key) {
            Value::Choice(word) => word,
            other => panic!("{key} is {other:?}, not a choice"),
        }
    }
}

/// What a policy may be told of the disk, for those that need it.
#[derive(Clone, Debug)]
pub struct Knowledge<P> {
    /// Where sectors are.
    pub positioning: Option<P>,
    /// How long requests take by distance.
    pub curve: Option<Arc<ServiceCurve>>,
    /// How many requests can be handed out and not yet done: as many as the drive takes at a time, and
    /// one more if the driver commits to one ahead.
    pub handed_out_max: Option<u64>,
}

impl<P> Default for Knowledge<P> {
    /// Knows nothing.
    fn default() -> Knowledge<P> {
        Knowledge {
            positioning: None,
            curve: None,
            handed_out_max: None,
        }
    }
}

impl<P> From<Option<P>> for Knowledge<P> {
    /// Knows positions alone, or nothing.
    fn from(positioning: Option<P>) -> Knowledge<P> {
        Knowledge {
            positioning,
            ..Knowledge::default()
        }
    }
}

/// What a policy is built from.
pub struct Parts<'a, P> {
    /// Its options.
    pub options: Options<'a>,
    /// Where sectors are; there if the policy needs it.
    pub positioning: Option<P>,
    /// How long requests take by distance; there if the policy needs it.
    pub curve: Option<Arc<ServiceCurve>>,
    /// How many requests can be handed out and not yet done, if that is known.
    pub handed_out_max: Option<u64>,
    /// The elevator to wrap; there if the policy wraps one.
    pub inner: Option<Box<dyn Elevator>>,
    /// The schedulers to choose among, each with its depth if that is not the engine's; none if none were named.
    pub choices: Vec<(Box<dyn Scheduler>, Option<u32>)>,
}

/// What a builder gives.
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
