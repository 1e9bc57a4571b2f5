//! A scenario's text as a tree whose every value knows where it stands.

pub use super::section::Section;
pub use headtime_config::{Error as TreeError, Node, Place, Table, Value, split_list};
