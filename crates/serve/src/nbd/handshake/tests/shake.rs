//! Client that sends all its bytes, for tests and for fuzzing.

use super::{Handshake, HandshakeError, Step};

/// Number of bytes taken, the end of the handshake (`None` if it needs more bytes), and the answers.
type Shaken = (usize, Result<Option<Step>, HandshakeError>, Vec<u8>);

/// Runs a handshake with `input`, `piece` bytes at a time.
pub fn shake(mut handshake: Handshake, input: &[u8], piece: usize) -> Shaken {
    let (mut out, mut start, mut end) = (Vec::new(), 0, 0);
    loop {
        match handshake.advance(&input[start..end], &mut out) {
            Ok((0, Step::NeedMore)) if end == input.len() => return (start, Ok(None), out),
            Ok((0, Step::NeedMore)) => end = input.len().min(end + piece),
            Ok((taken, Step::Again)) => start += taken,
            Ok((taken, step)) => return (start + taken, Ok(Some(step)), out),
            Err(error) => return (start, Err(error), out),
        }
        assert!(start <= end, "more is taken than was there");
    }
}
