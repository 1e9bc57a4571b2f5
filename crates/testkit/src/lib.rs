//! What the tests of the other crates share: strategies for arrivals, checkers of the promises that
//! a policy makes, a toy disk, toy policies, and broken ones that the checkers must catch.
//!
//! What is not here: anything that a product crate may depend on outside its tests.
