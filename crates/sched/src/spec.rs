//! One text for a scheduler everywhere: flag, scenario, configuration, table.
//!
//! ```text
//! list    = spec *( "," spec )
//! spec    = name [ "(" inside ")" ] *( ":" key "=" value )
//! inside  = spec                                  of a policy that wraps an elevator
//!         | spec [ "@" depth ] *( "," .. )        of one that chooses among schedulers
//! ```
//!
//! `deadline`, `deadline:read_expire=250ms:fifo_batch=8`, `sptf-sw60`, and, for a policy that wraps an elevator,
//! `outer(deadline:fifo_batch=8):key=value`. Space around names, keys and values is ignored. If a policy has an option
//! of its own name, `depth=8` is short for `depth:depth=8`.

use crate::policy::{
    Built, Counts, Knowledge, Needs, OptionInfo, Options, Parts, PolicyInfo, Slices, Value,
};
use crate::registry::{Registry, policies};
use crate::{Elevator, Positioning, Scheduler, WorkConserving};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use headtime_units::{Nanos, ParseUnitError, nearest};

/// Largest nesting depth of policies. The limit keeps any text from exhausting the stack.
const NESTING_MAX: usize = 4;

/// Largest number of schedulers among which a policy can choose.
const CHOICES_MAX: usize = 8;

/// Largest queue depth that a scheduler can ask of a drive.
const DEPTH_MAX: u32 = 256;

/// Specification of a scheduler: a policy, its inner elevator or schedulers, and its options.
///
/// The written form names options in the policy's order and always names the inner elevator.
///
/// # Examples
///
/// ```
/// use headtime_sched::{NoPositioning, Spec};
///
/// let spec: Spec = "deadline:fifo_batch=8:read_expire=250ms".parse()?;
/// assert_eq!(spec.to_string(), "deadline:read_expire=250ms:fifo_batch=8");
/// let scheduler = spec.build(None::<NoPositioning>)?;
/// assert_eq!(scheduler.queued(), 0);
///
/// let error = "dedline".parse::<Spec>().unwrap_err();
/// assert!(error.to_string().contains("did you mean \"deadline\"?"));
/// # Ok::<(), headtime_sched::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    info: &'static PolicyInfo,
    number: Option<u64>,
    inner: Option<Box<Spec>>,
    /// In the order of the text, each with its depth if given.
    choices: Vec<(Spec, Option<u32>)>,
    /// In the order of the policy's options.
    given: Vec<(&'static str, Value)>,
}

/// Error in the text of a scheduler, or a scheduler that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The text of the scheduler, without the rest of its list.
    pub text: String,
    /// Kind of the error.
    pub kind: SpecErrorKind,
}

/// Kinds of errors in the text of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecErrorKind {
    /// The name is missing.
    Empty,
    /// No policy has this name.
    UnknownPolicy {
        /// The name.
        name: String,
        /// The most similar known name.
        suggestion: Option<String>,
        /// All known names.
        known: String,
    },
    /// The policy's name must end in a number.
    Number {
        /// The policy.
        policy: &'static str,
        /// Text in place of the number.
        found: String,
        /// Allowed numbers.
        expected: String,
    },
    /// The policy has no option of this name.
    UnknownOption {
        /// The policy.
        policy: &'static str,
        /// The name.
        key: String,
        /// The most similar option of the policy.
        suggestion: Option<String>,
        /// All options of the policy.
        known: String,
    },
    /// An option is not of the form `key=value`.
    NoValue {
        /// Text in place of the option.
        found: String,
    },
    /// An option has a value that is not allowed.
    Value {
        /// The option.
        key: &'static str,
        /// The value.
        found: String,
        /// Allowed values.
        expected: String,
    },
    /// An option is given twice.
    Repeated {
        /// The option.
        key: &'static str,
    },
    /// A parenthesis has no partner.
    Parenthesis,
    /// Policies wrap each other more than four deep.
    Nesting,
    /// Something other than an option follows a closing parenthesis.
    Trailing {
        /// Text behind the parenthesis.
        found: String,
    },
    /// The policy wraps nothing, but its name is followed by parentheses.
    WrapsNothing {
        /// The policy.
        policy: &'static str,
    },
    /// The schedulers that a policy should choose among are not valid.
    Choices {
        /// The policy.
        policy: &'static str,
        /// Description of the problem.
        problem: String,
    },
    /// A policy that chooses among schedulers cannot be one of the choices.
    ChoosesItself {
        /// The policy.
        policy: &'static str,
    },
    /// Only a policy that never waits can be wrapped.
    InnerWaits {
        /// The policy in parentheses.
        inner: &'static str,
    },
    /// The policy needs the positions of sectors, but no positioning is given.
    NeedsPositioning {
        /// The policy.
        policy: &'static str,
    },
    /// The policy weighs service times, but no service curve is given.
    NeedsCurve {
        /// The policy.
        policy: &'static str,
    },
    /// An elevator is required, but the policy may wait.
    Waits {
        /// The policy.
        policy: &'static str,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scheduler \"{}\": {}", self.text, self.kind)
    }
}

impl fmt::Display for SpecErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SpecErrorKind::*;
        let meant = |suggestion: &Option<String>| match suggestion {
            Some(name) => format!("; did you mean \"{name}\"?"),
            None => String::from("."),
        };
        match self {
            Empty => f.write_str("a scheduler has a name, as in \"deadline\""),
            UnknownPolicy {
                name,
                suggestion,
                known,
            } => write!(
                f,
                "there is no policy \"{name}\"{} Known are {known}",
                meant(suggestion)
            ),
            Number {
                policy,
                found,
                expected,
            } => write!(f, "{policy} is followed by {expected}, not by \"{found}\""),
            UnknownOption {
                policy,
                key,
                suggestion,
                known,
            } => write!(
                f,
                "{policy} has no option \"{key}\"{} {known}",
                meant(suggestion)
            ),
            NoValue { found } => {
                write!(
                    f,
                    "\"{found}\" is not an option; write key=value after each colon"
                )
            }
            Value {
                key,
                found,
                expected,
            } => write!(f, "{key} is \"{found}\"; {expected}"),
            Repeated { key } => write!(f, "{key} is given twice"),
            Parenthesis => f.write_str("a parenthesis has no partner"),
            Nesting => write!(f, "policies may wrap each other {NESTING_MAX} deep"),
            Trailing { found } => write!(
                f,
                "\"{found}\" follows a closing parenthesis; only options can, as in \":key=value\""
            ),
            WrapsNothing { policy } => write!(f, "{policy} wraps no other policy"),
            Choices { policy, problem } => write!(
                f,
                "{problem}; {policy} chooses among 1 to {CHOICES_MAX} schedulers, with the depth of each if that is \
                 not the engine's, as in \"{policy}(noop,anticipatory@1)\""
            ),
            ChoosesItself { policy } => write!(
                f,
                "{policy} chooses among schedulers, and cannot be one of them"
            ),
            InnerWaits { inner } => write!(
                f,
                "{inner} may wait, and only a policy that never waits can be wrapped"
            ),
            NeedsPositioning { policy } => write!(
                f,
                "{policy} decides by where sectors are and needs a drive profile to know that"
            ),
            NeedsCurve { policy } => write!(
                f,
                "{policy} weighs service times and needs a curve of them; headtime drive curve learns one"
            ),
            Waits { policy } => write!(f, "{policy} may wait, and an elevator is wanted here"),
        }
    }
}

impl core::error::Error for SpecError {}

impl Spec {
    /// Reads a list, separated by commas outside parentheses.
    ///
    /// # Errors
    ///
    /// If an entry is not a valid scheduler, or if the list is empty.
    pub fn parse_list(text: &str) -> Result<Vec<Spec>, SpecError> {
        let mut rest = Some(text);
        core::iter::from_fn(|| {
            let (first, after) = split_top(rest?, ',');
            rest = after;
            Some(first.parse())
        })
        .collect()
    }

    /// Reads a policy of a separate table, which holds no schedulers. The specification cannot be built here.
    ///
    /// # Errors
    ///
    /// If the text is not a valid specification of a policy in the table.
    pub fn parse_among(text: &str, table: &[&'static PolicyInfo]) -> Result<Spec, SpecError> {
        parse(text, table)
    }

    /// The options of the policy by name, given or default.
    pub fn values(&self) -> Options<'_> {
        Options::new(self.info, self.number, &self.given)
    }

    /// The record of the policy.
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// The elevator that the policy wraps.
    pub fn inner(&self) -> Option<&Spec> {
        self.inner.as_deref()
    }

    /// Returns the schedulers among which the policy chooses. A depth is given if a scheduler's depth differs from the
    /// engine's. Empty if the text names no schedulers.
    pub fn choices(&self) -> &[(Spec, Option<u32>)] {
        &self.choices
    }

    /// All options of the policy with their values, given or default. Options of inner policies are left out.
    pub fn options(&self) -> impl Iterator<Item = (&'static OptionInfo, Value)> + '_ {
        let options = self.values();
        self.info
            .options
            .iter()
            .map(move |option| (option, options.value(option.key)))
    }

    /// Returns the inner elevator or the schedulers to choose among.
    fn inside(&self) -> impl Iterator<Item = &Spec> {
        let choices = self.choices.iter().map(|(spec, _)| spec);
        self.inner().into_iter().chain(choices)
    }

    /// Returns the knowledge that the policy and its inner policies need.
    pub fn needs(&self) -> Needs {
        let needs = self.inside().map(Spec::needs);
        needs.fold(self.info.needs, Needs::with)
    }

    /// Returns the time for which the policy serves one stream, or one process if processes are known, while others
    /// wait.
    pub fn slice(&self, processes_known: bool) -> Option<Nanos> {
        let key = match self.info.slices {
            Slices::ToStreams(key) => key,
            Slices::ToProcesses(key) if processes_known => key,
            Slices::ToProcesses(_) | Slices::None => return None,
        };
        Some(self.values().duration(key))
    }

    /// The longest duration among the options of the policy and of its inner policies.
    pub fn longest_option(&self) -> Nanos {
        let own = self.options().map(|(_, value)| match value {
            Value::Duration(span) => span,
            _ => Nanos::ZERO,
        });
        let inner = self.inside().map(Spec::longest_option);
        own.chain(inner).max().unwrap_or_default()
    }

    /// Builds the scheduler. An elevator is driven by [`WorkConserving`].
    ///
    /// `positioning` is the model for the decisions of position-aware policies. If none is given,
    /// [`NoPositioning`](crate::NoPositioning) stands in as the type.
    ///
    /// # Errors
    ///
    /// If a policy needs a positioning and none is given.
    pub fn build<P>(
        &self,
        knowledge: impl Into<Knowledge<P>>,
    ) -> Result<Box<dyn Scheduler>, SpecError>
    where
        P: Positioning + Clone + 'static,
    {
        Ok(match self.build_any(&knowledge.into())? {
            Built::Elevator(elevator) => Box::new(WorkConserving::new(elevator)),
            Built::Scheduler(scheduler) => scheduler,
        })
    }

    /// Builds the elevator, for a caller that drives the elevator itself.
    ///
    /// # Errors
    ///
    /// If the policy may wait, or if it needs a positioning and none is given.
    pub fn build_elevator<P>(
        &self,
        knowledge: impl Into<Knowledge<P>>,
    ) -> Result<Box<dyn Elevator>, SpecError>
    where
        P: Positioning + Clone + 'static,
    {
        match self.build_any(&knowledge.into())? {
            Built::Elevator(elevator) => Ok(elevator),
            Built::Scheduler(_) => Err(self.error(SpecErrorKind::Waits {
                policy: self.info.name,
            })),
        }
    }

    fn build_any<P>(&self, knowledge: &Knowledge<P>) -> Result<Built, SpecError>
    where
        P: Positioning + Clone + 'static,
    {
        if self.info.needs.positioning && knowledge.positioning.is_none() {
            return Err(self.error(SpecErrorKind::NeedsPositioning {
                policy: self.info.name,
            }));
        }
        if self.info.needs.curve && knowledge.curve.is_none() {
            return Err(self.error(SpecErrorKind::NeedsCurve {
                policy: self.info.name,
            }));
        }
        let inner = match &self.inner {
            Some(inner) => Some(inner.build_elevator(knowledge.clone())?),
            None => None,
        };
        let choices = self.choices.iter().map(|(spec, depth)| {
            let scheduler = spec.build(knowledge.clone())?;
            Ok((scheduler, *depth))
        });
        let choices = choices.collect::<Result<_, SpecError>>()?;
        let entry = Registry::<P>::ALL
            .iter()
            .find(|entry| entry.info.name == self.info.name)
            .expect("policies are read from the same table");
        Ok((entry.build)(Parts {
            options: self.values(),
            positioning: knowledge.positioning.clone(),
            curve: knowledge.curve.clone(),
            handed_out_max: knowledge.handed_out_max,
            inner,
            choices,
        }))
    }

    fn error(&self, kind: SpecErrorKind) -> SpecError {
        SpecError {
            text: self.to_string(),
            kind,
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let table: Vec<&'static PolicyInfo> = policies().collect();
        parse(text, &table)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        if let Some(number) = self.number {
            number.fmt(f)?;
        }
        if let Some(inner) = &self.inner {
            write!(f, "({inner})")?;
        }
        for (at, (choice, depth)) in self.choices.iter().enumerate() {
            write!(f, "{}{choice}", if at == 0 { "(" } else { "," })?;
            if let Some(depth) = depth {
                write!(f, "@{depth}")?;
            }
        }
        f.write_str(if self.choices.is_empty() { "" } else { ")" })?;
        let is_own = |key: &str| key == self.info.name;
        if let Some((_, own)) = self.given.iter().find(|(key, _)| is_own(key)) {
            write!(f, "={own}")?;
        }
        for (key, value) in self.given.iter().filter(|(key, _)| !is_own(key)) {
            write!(f, ":{key}={value}")?;
        }
        Ok(())
    }
}

fn parse(text: &str, table: &[&'static PolicyInfo]) -> Result<Spec, SpecError> {
    parse_level(text, table, 0, false).map_err(|kind| SpecError {
        text: text.trim().to_string(),
        kind,
    })
}

fn parse_level(
    text: &str,
    table: &[&'static PolicyInfo],
    depth: usize,
    chosen: bool,
) -> Result<Spec, SpecErrorKind> {
    let (head, mut rest) = split_top(text, ':');
    let (name, inside) = split_inner(head)?;
    let named = |name: &str| {
        table
            .iter()
            .any(|info| info.name == name && info.option(name).is_some())
    };
    let (name, short) = match name.split_once('=') {
        Some((before, _)) if named(before.trim()) => (before.trim(), Some(name)),
        _ => (name, None),
    };
    let (info, number) = find(name, table)?;
    if chosen && info.among.is_some() {
        // This check precedes reading the inner text, so that no text can exhaust the stack.
        return Err(SpecErrorKind::ChoosesItself { policy: info.name });
    }
    if depth > 0 && info.waits {
        return Err(SpecErrorKind::InnerWaits { inner: info.name });
    }
    if depth > NESTING_MAX {
        return Err(SpecErrorKind::Nesting);
    }
    let mut choices = Vec::new();
    let inner = match (info.inner, inside) {
        (None, None) => None,
        (None, Some(inside)) if info.among.is_some() => {
            choices = parse_choices(inside, table, info)?;
            None
        }
        (None, Some(_)) => return Err(SpecErrorKind::WrapsNothing { policy: info.name }),
        (Some(default), inside) => {
            let inside = inside.unwrap_or(default);
            Some(Box::new(parse_level(inside, table, depth + 1, false)?))
        }
    };
    let mut given: Vec<(&'static str, Value)> = Vec::new();
    let options = core::iter::from_fn(|| {
        let (option, after) = split_top(rest?, ':');
        rest = after;
        Some(option)
    });
    for option in short.into_iter().chain(options) {
        let (key, value) = read_option(info, option)?;
        if given.iter().any(|(other, _)| *other == key) {
            return Err(SpecErrorKind::Repeated { key });
        }
        given.push((key, value));
    }
    let place = |key: &str| info.options.iter().position(|option| option.key == key);
    given.sort_by_key(|(key, _)| place(key));
    let spec = Spec {
        info,
        number,
        inner,
        choices,
        given,
    };
    if let Some(among) = info.among {
        let count = match spec.choices.len() {
            0 => among.unless_named.split(',').count(),
            named => named,
        };
        (among.check)(&spec.values(), count).map_err(|(key, expected)| SpecErrorKind::Value {
            key,
            found: spec.values().value(key).to_string(),
            expected,
        })?;
    }
    Ok(spec)
}

/// Reads the schedulers among which a policy chooses.
fn parse_choices(
    text: &str,
    table: &[&'static PolicyInfo],
    info: &'static PolicyInfo,
) -> Result<Vec<(Spec, Option<u32>)>, SpecErrorKind> {
    let refused = |problem: String| SpecErrorKind::Choices {
        policy: info.name,
        problem,
    };
    let mut choices = Vec::new();
    let mut rest = Some(text);
    while let Some(left) = rest {
        let (choice, after) = split_top(left, ',');
        rest = after;
        if choices.len() == CHOICES_MAX {
            return Err(refused(format!("more than {CHOICES_MAX} are named")));
        }
        let (spec, own) = match split_top(choice, '@') {
            (spec, None) => (spec, None),
            (spec, Some(own)) => {
                let own = own.trim();
                let read = own.parse().ok();
                let read = read.filter(|depth| (1..=DEPTH_MAX).contains(depth));
                let expected = || refused(format!("depth \"{own}\" is not 1 to {DEPTH_MAX}"));
                (spec, Some(read.ok_or_else(expected)?))
            }
        };
        choices.push((parse_level(spec, table, 0, true)?, own));
    }
    Ok(choices)
}

/// Splits a text at the first `separator` outside parentheses.
fn split_top(text: &str, separator: char) -> (&str, Option<&str>) {
    let mut depth = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            sign if sign == separator && depth == 0 => {
                return (&text[..at], Some(&text[at + sign.len_utf8()..]));
            }
            _ => {}
        }
    }
    (text, None)
}

/// Splits a text into the name and the text in parentheses behind the name.
fn split_inner(text: &str) -> Result<(&str, Option<&str>), SpecErrorKind> {
    let text = text.trim();
    let Some(open) = text.find('(') else {
        return match text.find(')') {
            Some(_) => Err(SpecErrorKind::Parenthesis),
            None => Ok((text, None)),
        };
    };
    let mut depth = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or(SpecErrorKind::Parenthesis)?,
            _ => continue,
        }
        if depth == 0 {
            let after = text[at + 1..].trim();
            return match after {
                "" => Ok((text[..open].trim(), Some(&text[open + 1..at]))),
                after if after.contains(['(', ')']) => Err(SpecErrorKind::Parenthesis),
                after => Err(SpecErrorKind::Trailing {
                    found: after.to_string(),
                }),
            };
        }
    }
    Err(SpecErrorKind::Parenthesis)
}

/// Finds the policy of this name, and the number that the name ends in.
fn find(
    name: &str,
    table: &[&'static PolicyInfo],
) -> Result<(&'static PolicyInfo, Option<u64>), SpecErrorKind> {
    if name.is_empty() {
        return Err(SpecErrorKind::Empty);
    }
    let named = |name: &str| {
        let found = |info: &&&PolicyInfo| info.name == name || info.aliases.contains(&name);
        table.iter().find(found).copied()
    };
    if let Some(info) = named(name).filter(|info| info.number.is_none()) {
        return Ok((info, None));
    }
    let base = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let digits = &name[base.len()..];
    if let Some(info) = named(base)
        && let Some(number) = info.number
    {
        let expected = || SpecErrorKind::Number {
            policy: info.name,
            found: digits.to_string(),
            expected: format!(
                "a number from {} to {}, as in \"{}{}\"",
                number.min, number.max, info.name, number.example
            ),
        };
        let value = digits.parse().map_err(|_| expected())?;
        if !(number.min..=number.max).contains(&value) {
            return Err(expected());
        }
        return Ok((info, Some(value)));
    }
    let names = |info: &&'static PolicyInfo| {
        let title = match info.number {
            Some(number) => format!("{}{}", info.name, number.example),
            None => info.name.to_string(),
        };
        let aliases = info.aliases.iter().map(|alias| alias.to_string());
        core::iter::once(title).chain(aliases).collect::<Vec<_>>()
    };
    let known: Vec<String> = table.iter().map(|info| info.title().to_string()).collect();
    Err(SpecErrorKind::UnknownPolicy {
        name: name.to_string(),
        suggestion: nearest(name, table.iter().flat_map(names)),
        known: known.join(", "),
    })
}

/// Reads `key=value`, or the `key` of a flag that is on.
fn read_option(
    info: &'static PolicyInfo,
    text: &str,
) -> Result<(&'static str, Value), SpecErrorKind> {
    let Some((key, value)) = text.split_once('=') else {
        let option = info.option(text.trim());
        // The name of a flag is enough.
        if let Some(option) = option.filter(|option| matches!(option.default, Value::Flag(_))) {
            return Ok((option.key, Value::Flag(true)));
        }
        return Err(SpecErrorKind::NoValue {
            found: text.trim().to_string(),
        });
    };
    let (key, value) = (key.trim(), value.trim());
    let Some(option) = info.option(key) else {
        let keys = || info.options.iter().map(|option| option.key.to_string());
        let known = match keys().collect::<Vec<_>>() {
            keys if keys.is_empty() => "It has none".to_string(),
            keys => format!("Known are {}", keys.join(", ")),
        };
        return Err(SpecErrorKind::UnknownOption {
            policy: info.name,
            key: key.to_string(),
            suggestion: nearest(key, keys()),
            known,
        });
    };
    let refused = |expected: String| SpecErrorKind::Value {
        key: option.key,
        found: value.to_string(),
        expected,
    };
    let (low, high) = option.range;
    let allowed = || format!("allowed is {low} to {high}");
    let told = |error: Option<ParseUnitError>| match error {
        Some(error) => refused(error.to_string()),
        None => refused(allowed()),
    };
    let read = match (option.default, low, high) {
        (Value::Count(_), Value::Count(low), Value::Count(high)) => value
            .parse()
            .ok()
            .filter(|count| (low..=high).contains(count))
            .map(Value::Count)
            .ok_or_else(|| refused(allowed()))?,
        (Value::Counts(_), Value::Count(low), Value::Count(high)) => {
            let several = || {
                let most = Counts::MAX;
                refused(format!(
                    "allowed are 1 to {most} numbers of {low} to {high}, as in 1/2/3"
                ))
            };
            Value::Counts(Counts::read(value, (low, high)).ok_or_else(several)?)
        }
        (Value::Duration(_), Value::Duration(low), Value::Duration(high)) => {
            Value::Duration(unit_within(value, low, high).map_err(told)?)
        }
        (Value::Weight(_), Value::Weight(low), Value::Weight(high)) => {
            Value::Weight(unit_within(value, low, high).map_err(told)?)
        }
        (Value::Percent(_), Value::Percent(low), Value::Percent(high)) => {
            // Zero needs no unit.
            let number = value.strip_suffix('%').or((value == "0").then_some(value));
            let share = number.and_then(|number| number.parse().ok());
            let share = share.filter(|share| (low..=high).contains(share));
            Value::Percent(share.ok_or_else(|| refused(allowed()))?)
        }
        (Value::Choice(_), ..) => {
            let word = option.words.iter().find(|word| **word == value);
            let allowed = || refused(format!("allowed is {}", option.words.join(" or ")));
            Value::Choice(word.ok_or_else(allowed)?)
        }
        (Value::Flag(_), ..) => match value {
            "true" | "on" | "yes" => Value::Flag(true),
            "false" | "off" | "no" => Value::Flag(false),
            _ => return Err(refused("allowed is true or false".to_string())),
        },
        (default, ..) => unreachable!("{key} is {default:?} and its range is of another type"),
    };
    Ok((option.key, read))
}

/// Reads a duration or a weight. An error of `None` means a value out of range.
fn unit_within<T>(text: &str, low: T, high: T) -> Result<T, Option<ParseUnitError>>
where
    T: FromStr<Err = ParseUnitError> + PartialOrd,
{
    let value: T = text.parse().map_err(|error| match error {
        // The range of the option is a better hint than the range of the parser.
        ParseUnitError::TooLong | ParseUnitError::TooLarge => None,
        error => Some(error),
    })?;
    match (low..=high).contains(&value) {
        true => Ok(value),
        false => Err(None),
    }
}

#[cfg(test)]
mod tests;
