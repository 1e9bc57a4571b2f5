//! Test helpers of the other crates: strategies for arrivals, checkers of the promises that a policy makes, texts of
//! every policy, toy disks and toy policies. [`data()`] finds the folder of recorded data. Broken policies try the
//! checkers, which must catch them.
//!
//! A product crate may depend on it in its tests only.

mod arrivals;
mod broken;
mod cases;
mod check;
mod counted;
mod damage;
mod data;
mod flushes;
mod folder;
mod gates;
mod model;
mod page;
pub mod recorded;
mod scrub;
pub mod steps;
mod striped;
mod subject;
mod texts;
mod toy_disk;
mod toys;
mod violation;
mod waits;

pub use arrivals::{Arrival, CAPACITY, Scenario, plain_scenarios, scenarios, starving};
pub use broken::{Broken, BrokenWaiter, Fault, WaitFault};
pub use cases::cases;
pub use check::{Served, check, check_elevator, check_patiently, check_waits};
pub use counted::Counted;
pub use damage::damaged;
pub use data::data;
pub use flushes::FlushLook;
pub use folder::Folder;
pub use gates::{AgedRanks, ToyGate, Windows};
pub use page::{Page, written};
pub use scrub::{Scrub, ShownScrub};
pub use striped::Striped;
pub use texts::{extreme_texts, plain_texts};
pub use toy_disk::{ToyDisk, ToyMechanics, ToyPlace};
pub use toys::{ToyAnticipator, ToyFair};
pub use violation::{Rule, Violation};
