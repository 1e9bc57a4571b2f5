//! The handshake over a socket.

use super::handshake::{Choice, Handshake, Offer, Step};
use super::inbox::Inbox;
use super::session::SessionError;
use super::stream::Moved;
use crate::listen::Stream;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::task::Poll;

/// Conducts the handshake. Returns the agreement, and the bytes that the client sent after it; `None` if the client left or the server
/// ends.
pub(super) async fn negotiate(
    stream: &Stream,
    offers: &Arc<[Offer]>,
    inbox: &Inbox,
) -> Result<Option<(Choice, Vec<u8>)>, SessionError> {
    let mut handshake = Handshake::new(Arc::clone(offers));
    let (mut input, mut output) = (Vec::new(), Handshake::GREETING.to_vec());
    let mut piece = [0; 4096];
    loop {
        write_all(stream, &output).await?;
        output.clear();
        let (taken, step) = handshake.advance(&input, &mut output)?;
        input.drain(..taken);
        match step {
            Step::Again => {}
            Step::Transmission(choice) => {
                write_all(stream, &output).await?;
                return Ok(Some((choice, input)));
            }
            Step::End => {
                // A client that asked to end may leave before the answer.
                let _ = write_all(stream, &output).await;
                return Ok(None);
            }
            Step::NeedMore => {
                poll_fn(|cx| match inbox.sleep(cx.waker(), false) {
                    true => stream.poll_read_ready(cx),
                    false => Poll::Ready(Ok(())),
                })
                .await?;
                if inbox.is_draining() {
                    return Ok(None);
                }
                match stream.read(&mut [IoSliceMut::new(&mut piece)])? {
                    Moved::Bytes(0) => return Ok(None),
                    Moved::Bytes(more) => input.extend_from_slice(&piece[..more]),
                    Moved::Nothing => {}
                }
            }
        }
    }
}

async fn write_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(&[IoSlice::new(bytes)])? {
            Moved::Bytes(written) => bytes = &bytes[written..],
            Moved::Nothing => poll_fn(|cx| stream.poll_write_ready(cx)).await?,
        }
    }
    Ok(())
}
