//! Letters by which the kernel's block layer describes a request (`blk_fill_rwbs`).

use headtime_sched::{Flags, Op};

/// Reads letters such as `R`, `WS`, `FWFS` or `D`. Returns `None` for other text, and for operations
/// without sectors (`N` and the commands to zoned disks).
///
/// The letters come in this order:
/// - `F` for a flush before the operation,
/// - the operation: `R` read, `W` write, `D` discard, `F` a flush by itself, or `N` none,
/// - flags: `F` forced unit access, `A` read-ahead, `S` synchronous, `M` metadata, `U` atomic, `E` erase.
///
/// `DE` is a secure erase.
pub(crate) fn read(letters: &[u8]) -> Option<(Op, Flags)> {
    let mut flags = Flags::NONE;
    let (first, mut rest) = letters.split_first()?;
    let mut op = *first;
    if op == b'F'
        && let Some((next, others)) = rest.split_first()
        && matches!(next, b'R' | b'W' | b'D' | b'F' | b'N')
    {
        flags = flags.with(Flags::PREFLUSH);
        op = *next;
        rest = others;
    }
    let op = match op {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        b'F' => Op::Flush,
        // An empty request with a flush before it is a flush by itself.
        b'N' if flags.has(Flags::PREFLUSH) => Op::Flush,
        _ => return None,
    };
    for letter in rest {
        match letter {
            b'F' => flags = flags.with(Flags::FUA),
            b'S' => flags = flags.with(Flags::SYNC),
            b'A' | b'M' | b'E' | b'U' => {}
            _ => return None,
        }
    }
    if op == Op::Flush {
        // A flush by itself has no flush before or after.
        flags = if flags.has(Flags::SYNC) {
            Flags::SYNC
        } else {
            Flags::NONE
        };
    }
    Some((op, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_letters_give_operation_and_flags() {
        let fua_sync = Flags::FUA.with(Flags::SYNC);
        for (letters, expected) in [
            ("R", Some((Op::Read, Flags::NONE))),
            ("RA", Some((Op::Read, Flags::NONE))),
            ("WSM", Some((Op::Write, Flags::SYNC))),
            ("WFS", Some((Op::Write, fua_sync))),
            ("FWFS", Some((Op::Write, fua_sync.with(Flags::PREFLUSH)))),
            ("FWS", Some((Op::Write, Flags::PREFLUSH.with(Flags::SYNC)))),
            ("F", Some((Op::Flush, Flags::NONE))),
            ("FF", Some((Op::Flush, Flags::NONE))),
            ("FN", Some((Op::Flush, Flags::NONE))),
            ("FFS", Some((Op::Flush, Flags::SYNC))),
            ("D", Some((Op::Discard, Flags::NONE))),
            ("DE", Some((Op::Discard, Flags::NONE))),
            ("N", None),
            ("ZR", None),
            ("", None),
            ("W?", None),
        ] {
            assert_eq!(read(letters.as_bytes()), expected, "{letters}");
        }
    }
}
