//! Rotation time, as the common divisor of times between passes of a sector.

use std::f64::consts::TAU;

/// Longest and shortest rotation time of the search, in nanoseconds: 2,000 and 25,000 turns a minute.
pub(crate) const TURN_NS_MAX: f64 = 30.0e6;
pub(crate) const TURN_NS_MIN: f64 = 2.4e6;
/// Gaps shorter than this are not from the medium.
const GAP_NS_MIN: f64 = 0.9 * TURN_NS_MIN;
/// Fewest gaps that show a period, and the number of gaps at the start of the search.
const GAPS_MIN: usize = 16;
const GAPS_SEARCHED: usize = 64;
/// Mean cosine above which a period is accepted. Of 64 gaps without a period, the highest of a million means is below 0.46 (each exceeds r
/// with probability exp(-64 r²)). With more gaps the highest mean is lower.
pub(crate) const COHERENCE_MIN: f64 = 0.6;
/// Most rotation times that are examined as candidates, the longest first. The true rotation time is among the longest, because the other
/// candidates are mostly its fractions.
const PEAKS_MAX: usize = 64;
/// Least agreement of a candidate, as a share of the best agreement.
const COHERENCE_RATIO_MIN: f64 = 0.85;

/// Common divisor of gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// Rotation time, in the unit of the gaps: nanoseconds.
    pub turn: f64,
    /// Agreement of the gaps, 1 at best.
    pub coherence: f64,
    /// Number of the shortest gaps that are left out.
    pub without: usize,
}

/// Longest time that divides nearly all gaps, and its agreement. `None` if there are too few gaps.
///
/// The search starts with the shortest gaps, which permit the coarsest steps. On a drive with a large buffer these may be slow hits,
/// delayed by read-ahead into the next track. The search is therefore repeated without the shortest eighth.
pub(crate) fn period(gaps: &mut Vec<f64>) -> Option<Period> {
    gaps.retain(|gap| *gap > GAP_NS_MIN);
    gaps.sort_by(f64::total_cmp);
    let fits = [0, gaps.len() / 8].into_iter().filter_map(|without| {
        let (turn, coherence) = fit(&gaps[without..])?;
        Some(Period {
            turn,
            coherence,
            without,
        })
    });
    fits.reduce(|one, other| {
        if one.coherence > COHERENCE_MIN {
            one
        } else {
            other
        }
    })
}

/// Agreement of gaps with a turn: the mean cosine of their remainders.
pub(crate) fn coherence(turn: f64, gaps: &[f64]) -> f64 {
    let sum: f64 = gaps.iter().map(|gap| libm::cos(TAU * (gap / turn))).sum();
    sum / gaps.len() as f64
}

fn fit(gaps: &[f64]) -> Option<(f64, f64)> {
    if gaps.len() < GAPS_MIN {
        return None;
    }
    let few = gaps.len().min(GAPS_SEARCHED);
    // If a buffer holds hundreds of places, the shortest gaps are nearly equal. Then a turn more or less in each gap is a peak, too. Longer
    // gaps exclude such peaks.
    let settled = peaks(&gaps[..few]).into_iter().map(|turn| {
        let turn = settle(turn, gaps, few);
        (turn, coherence(turn, gaps))
    });
    let settled: Vec<(f64, f64)> = settled.collect();
    let best = settled.iter().map(|found| found.1).fold(0.0, f64::max);
    // Fractions of the turn agree equally well. The longest candidate is the turn.
    settled
        .into_iter()
        .find(|found| found.1 > COHERENCE_RATIO_MIN * best)
}

/// Turns with the best agreement, longest first.
fn peaks(gaps: &[f64]) -> Vec<f64> {
    // A step moves the longest gap by a tenth of a turn.
    let step = 1.0 / (gaps[gaps.len() - 1] * 10.0);
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut rate = 1.0 / TURN_NS_MAX;
    while rate < 1.0 / TURN_NS_MIN {
        rates.push((rate, coherence(1.0 / rate, gaps)));
        rate += step;
    }
    let most = rates.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let hills = rates.split(|(_, score)| *score <= 0.5 * most);
    let tops = hills.filter_map(|hill| hill.iter().max_by(|one, other| one.1.total_cmp(&other.1)));
    let high = tops.filter(|(_, score)| *score > COHERENCE_RATIO_MIN * most);
    high.take(PEAKS_MAX).map(|(rate, _)| 1.0 / rate).collect()
}

/// Refines the turn with longer and longer gaps: a line through (turns, gap) without outliers.
fn settle(mut turn: f64, gaps: &[f64], few: usize) -> f64 {
    let mut known = few;
    loop {
        for _ in 0..3 {
            let (mut up, mut down) = (0.0, 0.0);
            for gap in &gaps[..known] {
                let turns = libm::round(gap / turn);
                if (gap / turn - turns).abs() < 0.1 {
                    up += turns * gap;
                    down += turns * turns;
                }
            }
            if down > 0.0 {
                turn = up / down;
            }
        }
        if known == gaps.len() {
            return turn;
        }
        known = (known * 3 / 2).min(gaps.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const TURN: f64 = 8_333_333.0;

    /// Gaps of random whole turns, each up to 20 us off.
    fn gaps(count: u64, from: u64, to: u64) -> Vec<f64> {
        let mut random = Random::new(from + to);
        let gap = |_| {
            let turns = (from + random.up_to(to - from)) as f64;
            turns * TURN + random.up_to(40_000) as f64 - 20_000.0
        };
        (0..count).map(gap).collect()
    }

    fn is_found(mut gaps: Vec<f64>) {
        let found = period(&mut gaps).unwrap();
        assert!((found.turn / TURN - 1.0).abs() < 1e-5, "{found:?}");
        assert!(found.coherence > 0.9, "{found:?}");
    }

    #[test]
    fn neither_a_part_of_the_turn_nor_one_turn_more_or_less_is_taken_for_it() {
        is_found(gaps(400, 1, 30));
        is_found(gaps(GAPS_MIN as u64, 5, 40));
        // The shortest gaps are nearly equal: a turn that is longer by one part in 640 fits them, too.
        is_found([gaps(64, 630, 650), gaps(400, 650, 4_000)].concat());
    }

    #[test]
    fn short_gaps_that_are_no_whole_turns_are_passed_over() {
        let mut random = Random::new(7);
        let hits = |_| (300 * 8_333_333 + random.up_to(200_000_000)) as f64;
        let hits: Vec<f64> = (0..70).map(hits).collect();
        is_found([hits, gaps(700, 600, 4_000)].concat());
    }

    #[test]
    fn gaps_without_a_period_do_not_agree() {
        let mut random = Random::new(3);
        for count in [40, 400, 4_000] {
            let mut gaps: Vec<f64> = (0..count)
                .map(|_| random.up_to(4_000_000_000) as f64)
                .collect();
            let found = period(&mut gaps).unwrap();
            assert!(found.coherence < COHERENCE_MIN, "{count}: {found:?}");
        }
        assert!(period(&mut vec![100.0; 5_000]).is_none());
        assert!(period(&mut gaps(GAPS_MIN as u64 - 1, 1, 30)).is_none());
    }
}
