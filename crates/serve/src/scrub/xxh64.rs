//! XXH64 (Collet, xxHash specification 0.1.1): a fast hash of 64 bits that is not meant to withstand anybody who wants two blocks to be alike.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn round(lane: u64, input: u64) -> u64 {
    let lane = lane.wrapping_add(input.wrapping_mul(P2));
    lane.rotate_left(31).wrapping_mul(P1)
}

/// The hash of some bytes, with a seed of zero.
pub(super) fn xxh64(data: &[u8]) -> u64 {
    let mut stripes = data.chunks_exact(32);
    let mut hash = if data.len() < 32 {
        P5
    } else {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()];
        for stripe in stripes.by_ref() {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word(bytes));
            }
        }
        let turns = lanes.iter().zip([1, 7, 12, 18]);
        let mixed = turns.fold(0_u64, |hash, (lane, by)| {
            hash.wrapping_add(lane.rotate_left(by))
        });
        lanes.iter().fold(mixed, |hash, lane| {
            (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4)
        })
    };
    hash = hash.wrapping_add(data.len() as u64);
    let rest = if data.len() < 32 {
        data
    } else {
        stripes.remainder()
    };
    let mut words = rest.chunks_exact(8);
    for bytes in words.by_ref() {
        hash ^= round(0, word(bytes));
        hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    let mut halves = words.remainder().chunks_exact(4);
    for bytes in halves.by_ref() {
        let half = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        hash ^= u64::from(half).wrapping_mul(P1);
        hash = hash.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in halves.remainder() {
        hash ^= u64::from(*byte).wrapping_mul(P5);
        hash = hash.rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn hashes_are_those_that_everybody_else_has() {
        for (text, hash) in [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("asdf", 0x4158_72F5_99CE_A71E),
            ("xxhash", 0x32DD_3895_2C4B_C720),
            // Stripes, words, a half and single bytes.
            (
                "Call me Ishmael. Some years ago--never mind how long precisely-",
                0x02A2_E854_70D6_FD96,
            ),
        ] {
            assert_eq!(xxh64(text.as_bytes()), hash, "{text}");
        }
    }
}
