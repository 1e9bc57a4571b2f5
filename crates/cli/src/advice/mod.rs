//! Advice for a disk, for people: lines for a terminal and a page.

mod commands;
mod device;
mod html;
mod knobs;
mod text;

pub use commands::Device;
pub use html::{page, results};
pub use text::text;
