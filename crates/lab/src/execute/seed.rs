//! Derives seeds from one another, by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

/// The seed of a repeat. The first repeat has the scenario's own.
pub(super) fn of_repeat(scenario: u64, repeat: u32) -> u64 {
    if repeat == 0 {
        scenario
    } else {
        mix(scenario ^ mix(u64::from(repeat)))
    }
}

/// Derives another seed. Draws with the new seed show no relation to draws with `state`.
pub(super) fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
