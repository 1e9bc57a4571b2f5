//! The table of policies. `build.rs` makes it of the public modules of the crate.

use crate::policy::{Built, Parts, PolicyInfo};
use crate::{Op, Positioning, Predicted};
use core::marker::PhantomData;
use headtime_units::{Extent, Nanos, Time};

/// A policy and how one is built.
pub(crate) struct Registration<P> {
    pub info: &'static PolicyInfo,
    pub build: fn(Parts<'_, P>) -> Built,
}

impl<P> Registration<P> {
    const fn new(info: &'static PolicyInfo, build: fn(Parts<'_, P>) -> Built) -> Registration<P> {
        Registration { info, build }
    }
}

/// The table, for builders that take a `P`.
pub(crate) struct Registry<P>(PhantomData<P>);

impl<P: Positioning + Clone + 'static> Registry<P> {
    pub const ALL: &'static [Registration<P>] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));
}

/// All policies, in the order in which help and documentation show them.
pub fn policies() -> impl ExactSizeIterator<Item = &'static PolicyInfo> {
    Registry::<NoPositioning>::ALL
        .iter()
        .map(|entry| entry.info)
}

/// The type to name where no policy will need a position: `spec.build(None::<NoPositioning>)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPositioning {}

impl Positioning for NoPositioning {
    type Place = ();

    fn start(&self, _: Extent) {
        match *self {}
    }

    fn end(&self, _: Extent) {
        match *self {}
    }

    fn predict(&self, _: Time, (): (), (): (), _: Op) -> Predicted {
        match *self {}
    }

    fn seek(&self, (): (), (): (), _: Op) -> Nanos {
        match *self {}
    }
}
