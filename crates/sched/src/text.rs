//! Schedulers and classes as they stand in configuration.

use crate::Class;
use core::fmt;
use core::str::FromStr;

const CLASSES: [(&str, Class); 3] = [
    ("real-time", Class::REAL_TIME),
    ("best-effort", Class::BEST_EFFORT),
    ("idle", Class::IDLE),
];

/// A text that names no class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownClass;

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("allowed are real-time, best-effort, idle")
    }
}

impl core::error::Error for UnknownClass {}

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Class, UnknownClass> {
        let class = CLASSES.iter().find(|(name, _)| *name == text);
        class.map(|(_, class)| *class).ok_or(UnknownClass)
    }
}

/// Writes the name, or the number of a class without a name.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CLASSES.iter().find(|(_, class)| class == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "class {}", self.0),
        }
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use crate::{Class, Spec};
    use core::fmt;
    use serde::de::{Deserialize, Deserializer, Error, Visitor};
    use serde::{Serialize, Serializer};

    headtime_units::serde_as_text!(Class, "a class");

    /// An error says the text once, which a [`SpecError`](crate::SpecError) does already.
    impl<'de> Deserialize<'de> for Spec {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Spec, D::Error> {
            struct TextVisitor;

            impl Visitor<'_> for TextVisitor {
                type Value = Spec;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("the text of a scheduler, such as \"deadline\"")
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<Spec, E> {
                    let read: Result<Spec, _> = text.parse();
                    read.map_err(|error| E::custom(format_args!("\"{text}\": {}", error.kind)))
                }
            }

            from.deserialize_str(TextVisitor)
        }
    }

    impl Serialize for Spec {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn classes_are_read_as_they_are_written() {
        for (name, class) in CLASSES {
            assert_eq!((name.parse(), class.to_string()), (Ok(class), name.into()));
        }
        assert_eq!("best".parse::<Class>(), Err(UnknownClass));
        assert_eq!(Class(7).to_string(), "class 7");
    }
}
