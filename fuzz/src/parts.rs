//! Inputs of several parts.

/// A line that begins with this begins another part; what follows it on the line is its name.
const MARK: &str = "%% ";

/// Takes a text apart: what stands before the first mark, and the named parts after it.
pub fn split(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut starts = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix(MARK) {
            starts.push((offset, offset + line.len(), name.trim()));
        }
        offset += line.len();
    }
    let first = starts.first().map_or(text.len(), |(start, ..)| *start);
    let ends = starts.iter().skip(1).map(|(start, ..)| *start);
    let parts = starts
        .iter()
        .zip(ends.chain([text.len()]))
        .map(|((_, begin, name), end)| (*name, &text[*begin..end]))
        .collect();
    (&text[..first], parts)
}

/// Numbers that look random and follow from a seed: where to look in something large.
pub struct Draw(u64);

impl Draw {
    /// From the bytes of an input.
    pub fn new(bytes: &[u8]) -> Draw {
        // FNV-1a: any change of the input looks elsewhere.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Draw(hash)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64, by Steele, Lea and Flood (2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
