//! `sptf-swN`, the seek-weighted variant of [`sptf`], which has its rule, bound and source.

use crate::Positioning;
use crate::policy::{Built, NumberInfo, Parts, PolicyInfo};
use crate::sptf::{self, Sptf};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sptf-sw",
    number: Some(NumberInfo {
        min: 0,
        max: 10_000,
        example: 60,
        help: "percent by which positioning may exceed the shortest to save seek; higher leaves \
               more rotational latency for freeblock and less throughput; 0 only breaks ties",
    }),
    idea: "shortest seek among the soonest reached",
    bound: "none: can starve",
    options: &[],
    source: "Lumb, Schindler, Ganger, FAST 2002, section 4.2",
    avoid: "nothing uses the rotational latency that it leaves",
    ..sptf::INFO
};

pub(crate) fn build<P: Positioning + Clone + 'static>(parts: Parts<'_, P>) -> Built {
    let percent = parts.options.number() as u32;
    let positioning = sptf::positioning(parts.positioning);
    Built::elevator(Sptf::seek_weighted(positioning, percent).tracked())
}
