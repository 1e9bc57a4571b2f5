//! serde for types that are text in files.

#[doc(hidden)]
pub use serde;

/// Implements serde's traits for a type by its text: `Display` writes it, `FromStr` reads it.
///
/// An error quotes the text and then gives the message of `FromStr`. The second argument describes the expected text,
/// for errors about values of another type.
///
/// # Examples
///
/// ```
/// # use headtime_units::{Nanos, ParseUnitError};
/// # use std::{fmt, str::FromStr};
/// struct Pause(Nanos);
///
/// impl FromStr for Pause {
///     type Err = ParseUnitError;
///
///     fn from_str(text: &str) -> Result<Pause, ParseUnitError> {
///         text.parse().map(Pause)
///     }
/// }
///
/// impl fmt::Display for Pause {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         self.0.fmt(f)
///     }
/// }
///
/// headtime_units::serde_as_text!(Pause, "a pause, such as \"30ms\"");
/// ```
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty, $expected:literal) => {
        impl<'de> $crate::as_text::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::as_text::serde::Deserializer<'de>>(
                from: D,
            ) -> ::core::result::Result<$type, D::Error> {
                struct TextVisitor;

                impl $crate::as_text::serde::de::Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: $crate::as_text::serde::de::Error>(
                        self,
                        text: &str,
                    ) -> ::core::result::Result<$type, E> {
                        let read: ::core::result::Result<$type, _> = text.parse();
                        read.map_err(|error| E::custom(format_args!("\"{text}\": {error}")))
                    }
                }

                from.deserialize_str(TextVisitor)
            }
        }

        impl $crate::as_text::serde::Serialize for $type {
            fn serialize<S: $crate::as_text::serde::Serializer>(
                &self,
                to: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}
