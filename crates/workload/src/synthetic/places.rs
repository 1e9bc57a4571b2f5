//! Distributions of random requests over the addresses of a range.

use super::area::Area;
use super::weighted::{DistributionError, Weights, weighted, write_weighted};
use crate::Random;
use crate::random::mix;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Distribution of random requests over the range.
///
/// As text: `uniform`, `zipf(1.1)`, `pareto(0.2)`, `zoned(60/10:30/20:10/70)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Places {
    /// All places with equal chance.
    #[default]
    Uniform,
    /// Zipf: the k-th most frequent place has a chance proportional to k to the power of minus this
    /// number. The number is above 0, at most 10 and not 1. A hash scatters the places over the range,
    /// differently for each process.
    Zipf(f64),
    /// Self-similar, for an h between 0 and 1: a share of 1 - h of the requests goes to a share h of
    /// the places. The same holds within each share. A hash scatters the places over the range.
    Pareto(f64),
    /// Consecutive parts of the range. Each entry is the weight of the requests in the part, and the
    /// length of the part. Both are relative to the sum over all parts.
    Zoned(Arc<[(u32, u32)]>),
}

/// Largest exponent of [`Places::Zipf`].
const EXPONENT_MAX: f64 = 10.0;

impl Places {
    /// Returns true if all places are equally likely.
    pub fn is_uniform(&self) -> bool {
        *self == Places::Uniform
    }

    /// Describes the allowed values if the distribution's values are wrong.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self {
            Places::Zipf(exponent)
                if !(*exponent > 0.0 && *exponent <= EXPONENT_MAX) || *exponent == 1.0 =>
            {
                Some("a number above 0, up to 10, but not 1")
            }
            Places::Pareto(share) if !(*share > 0.0 && *share < 1.0) => {
                Some("a number above 0 and below 1")
            }
            Places::Zoned(parts) if parts.iter().all(|(share, _)| *share == 0) => {
                Some("a part to which requests go")
            }
            _ => None,
        }
    }
}

impl FromStr for Places {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Places, DistributionError> {
        let error = |problem: String| DistributionError {
            found: text.to_owned(),
            problem,
            allowed: "uniform, zipf(1.1), pareto(0.2) and zoned(60/10:30/20:10/70)",
        };
        let number = |inside: &str| {
            let number = inside.trim().parse::<f64>();
            number.map_err(|_| error(format!("`{inside}` is no number")))
        };
        let call = text.trim().strip_suffix(')');
        let places = match call.and_then(|call| call.split_once('(')) {
            None if text.trim() == "uniform" => Places::Uniform,
            Some(("zipf", inside)) => Places::Zipf(number(inside)?),
            Some(("pareto", inside)) => Places::Pareto(number(inside)?),
            Some(("zoned", inside)) => Places::Zoned(weighted(inside).map_err(error)?),
            _ => return Err(error("it is none of these".to_owned())),
        };
        match places.problem() {
            None => Ok(places),
            Some(problem) => Err(error(format!("it needs {problem}"))),
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Places::Uniform => f.write_str("uniform"),
            Places::Zipf(exponent) => write!(f, "zipf({exponent})"),
            Places::Pareto(share) => write!(f, "pareto({share})"),
            Places::Zoned(parts) => {
                f.write_str("zoned(")?;
                write_weighted(parts, f)?;
                f.write_str(")")
            }
        }
    }
}

/// A random draw of aligned places, by [`Places`] in a range.
#[derive(Clone, Debug)]
pub(super) enum PlacesDraw {
    /// All places are equally likely.
    Uniform,
    /// Places drawn by rank.
    Ranked { slots: u64, key: u64, rank: Rank },
    /// Zones, each from its first slot to the slot behind its last.
    Zoned(Weights<(u64, u64)>),
}

/// A distribution of ranks, from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rank {
    /// Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, section 4.3.
    /// A draw takes one random number and one power, for any number of ranks. The first two ranks are
    /// exact.
    Zipf {
        zeta: f64,
        two: f64,
        power: f64,
        eta: f64,
    },
    /// Self-similar, by section 4.2 of the same paper.
    Pareto { power: f64 },
}

/// Number of terms of a zeta function that are summed one by one. The rest is approximated by an
/// integral with its first corrections (Euler and Maclaurin). The error is about 10⁻⁹ of the sum.
const TERMS: u64 = 1000;

/// Sum of k^-exponent for k from 1 to `count`.
fn zeta(count: u64, exponent: f64) -> f64 {
    let term = |k: f64| libm::pow(k, -exponent);
    let first = count.min(TERMS);
    let sum: f64 = (1..=first).map(|k| term(k as f64)).sum();
    let (from, to) = (first as f64, count as f64);
    let inverse = 1.0 - exponent;
    let integral = (libm::pow(to, inverse) - libm::pow(from, inverse)) / inverse;
    let ends = (term(to) - term(from)) / 2.0;
    let slopes = exponent / 12.0 * (term(from) / from - term(to) / to);
    sum + integral + ends + slopes
}

impl Rank {
    fn zipf(count: u64, exponent: f64) -> Rank {
        let (zeta, two) = (zeta(count, exponent), 1.0 + libm::pow(0.5, exponent));
        let share = libm::pow(2.0 / count as f64, 1.0 - exponent);
        Rank::Zipf {
            zeta,
            two,
            power: 1.0 / (1.0 - exponent),
            eta: (1.0 - share) / (1.0 - two / zeta),
        }
    }

    fn pareto(share: f64) -> Rank {
        Rank::Pareto {
            power: libm::log(share) / libm::log(1.0 - share),
        }
    }

    fn draw(self, count: u64, stream: &mut Random) -> u64 {
        let unit = stream.unit();
        let rank = match self {
            Rank::Zipf { zeta, .. } if unit * zeta < 1.0 => 0.0,
            Rank::Zipf { zeta, two, .. } if unit * zeta < two => 1.0,
            Rank::Zipf { power, eta, .. } => {
                count as f64 * libm::pow(eta * unit - eta + 1.0, power)
            }
            Rank::Pareto { power } => count as f64 * libm::pow(unit, power),
        };
        (rank as u64).min(count - 1)
    }
}

impl PlacesDraw {
    /// Creates a draw from checked `places`. `keys` gives the key of the hash that scatters places.
    pub(super) fn new(places: &Places, area: Area, mut keys: Random) -> PlacesDraw {
        let slots = area.slots();
        let mut ranked = |rank| PlacesDraw::Ranked {
            slots,
            key: keys.below(u64::MAX),
            rank,
        };
        match places {
            Places::Uniform => PlacesDraw::Uniform,
            Places::Zipf(exponent) => ranked(Rank::zipf(slots, *exponent)),
            Places::Pareto(share) => ranked(Rank::pareto(*share)),
            Places::Zoned(parts) => {
                let whole: u64 = parts.iter().map(|(_, len)| u64::from(*len)).sum();
                let place =
                    |at: u64| (u128::from(slots) * u128::from(at) / u128::from(whole)) as u64;
                let mut upto = 0;
                let zones = parts.iter().map(|(share, len)| {
                    let from = place(upto).min(slots - 1);
                    upto += u64::from(*len);
                    ((from, place(upto).max(from + 1)), *share)
                });
                Weights::new(zones).map_or(PlacesDraw::Uniform, PlacesDraw::Zoned)
            }
        }
    }

    /// Draws the start of a request of `len` sectors.
    pub(super) fn draw(&self, area: Area, len: u64, stream: &mut Random) -> u64 {
        let slot = match self {
            PlacesDraw::Uniform => return area.anywhere(len, stream),
            PlacesDraw::Ranked { slots, key, rank } => {
                let hash = mix(rank.draw(*slots, stream).wrapping_add(*key));
                ((u128::from(hash) * u128::from(*slots)) >> 64) as u64
            }
            PlacesDraw::Zoned(zones) => {
                let (from, to) = zones.draw(stream);
                from + stream.below(to - from)
            }
        };
        area.slot(slot, len)
    }
}
