//! Places of a striped file on the servers.

/// Strips in turn over servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stripes {
    pub servers: u64,
    /// Bytes of a strip.
    pub strip: u64,
}

/// Bytes of a server's part of a file, without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub server: u64,
    /// First byte in the server's part.
    pub offset: u64,
    pub len: u64,
}

impl Stripes {
    /// Place on each server's disk at which the server's part of a file begins, if the file begins at this byte of the
    /// volume. The place is rounded down to a whole row of strips.
    pub fn begin(self, byte: u64) -> u64 {
        byte / (self.servers * self.strip) * self.strip
    }

    /// Bytes of a server's part of the first `bytes` bytes of a file.
    pub fn share(self, bytes: u64, server: u64) -> u64 {
        let strips = bytes / self.strip;
        let (rows, more) = (strips / self.servers, strips % self.servers);
        let rest = match server.cmp(&more) {
            std::cmp::Ordering::Less => self.strip,
            std::cmp::Ordering::Equal => bytes % self.strip,
            std::cmp::Ordering::Greater => 0,
        };
        rows * self.strip + rest
    }

    /// Segments of the bytes `offset..end` of a file, in the order of their first bytes. Each server with bytes of this
    /// range has one segment.
    pub fn segments(self, offset: u64, end: u64) -> impl Iterator<Item = Segment> {
        let Stripes { servers, strip } = self;
        let first = offset / strip;
        let strips = match offset < end {
            true => (end - 1) / strip - first + 1,
            false => 0,
        };
        (0..strips.min(servers)).map(move |nth| {
            let from = first + nth;
            let to = from + (strips - 1 - nth) / servers * servers;
            let skipped = offset.saturating_sub(from * strip);
            let start = from / servers * strip + skipped;
            let behind = to / servers * strip + strip.min(end - to * strip);
            Segment {
                server: from % servers,
                offset: start,
                len: behind - start,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Byte b of a file is byte b mod c of strip b div c, and segments have each byte of a range once.
        #[test]
        fn segments_have_the_bytes_of_a_range(
            servers in 1_u64..6, strip in 1_u64..5, offset in 0_u64..60, len in 0_u64..60,
        ) {
            let stripes = Stripes { servers, strip };
            let mut wanted: Vec<(u64, u64)> = (offset..offset + len)
                .map(|byte| {
                    let number = byte / strip;
                    (number % servers, number / servers * strip + byte % strip)
                })
                .collect();
            let mut found = Vec::new();
            for segment in stripes.segments(offset, offset + len) {
                prop_assert!(segment.len > 0);
                let bytes = segment.offset..segment.offset + segment.len;
                found.extend(bytes.map(|byte| (segment.server, byte)));
            }
            wanted.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }

        #[test]
        fn shares_are_dense_and_sum_to_the_file(
            servers in 1_u64..6, strip in 1_u64..5, bytes in 0_u64..100,
        ) {
            let stripes = Stripes { servers, strip };
            for segment in stripes.segments(0, bytes) {
                prop_assert_eq!(segment.len, stripes.share(bytes, segment.server));
                prop_assert_eq!(segment.offset, 0);
            }
            let sum: u64 = (0..servers).map(|server| stripes.share(bytes, server)).sum();
            prop_assert_eq!(sum, bytes);
        }
    }
}
