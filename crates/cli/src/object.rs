//! Objects of JSON, written next to their values.

/// An object of JSON, its keys in this order: `object! { requests: 3, mean_ms: 1.5 }`.
///
/// Serves values that are only written. A struct would list every key twice.
macro_rules! object {
    ($($(#[$attribute:meta])* $key:ident: $value:expr),+ $(,)?) => {{
        #[allow(non_camel_case_types, reason = "a type for each key, called as the key is")]
        let object = {
            #[derive(serde::Serialize)]
            struct Object<$($key),+> {
                $($(#[$attribute])* $key: $key),+
            }
            Object { $($key: $value),+ }
        };
        object
    }};
}
pub(crate) use object;
