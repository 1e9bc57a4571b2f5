//! The handshake over a socket.

use super::channel::{Channel, readable};
use super::handshake::{Choice, Handshake, Offer, Step};
use super::inbox::Inbox;
use super::session::SessionError;
use super::stream::Moved;
use super::tls::Tls;
use std::io::{ErrorKind, IoSliceMut};
use std::sync::Arc;

/// Conducts the handshake, which needs TLS if `tls` is present. Returns the agreement, and the bytes that the client sent after it; `None`
/// if the client left or the server ends.
pub(super) async fn negotiate(
    channel: &mut Channel,
    offers: &Arc<[Offer]>,
    tls: Option<&Tls>,
    inbox: &Inbox,
) -> Result<Option<(Choice, Vec<u8>)>, SessionError> {
    let offers = Arc::clone(offers);
    let mut handshake = match tls {
        None => Handshake::new(offers),
        Some(_) => Handshake::with_tls(offers),
    };
    let (mut input, mut output) = (Vec::new(), Handshake::GREETING.to_vec());
    let mut piece = [0; 4096];
    loop {
        channel.write_all(&output).await?;
        output.clear();
        let (taken, step) = handshake.advance(&input, &mut output)?;
        input.drain(..taken);
        match step {
            Step::Again => {}
            Step::StartTls => {
                channel.write_all(&output).await?;
                output.clear();
                let tls = tls.expect("a handshake without TLS does not begin it");
                // Bytes behind the option are taken for TLS. So nobody can put plain options there.
                match channel.start_tls(tls, &input, inbox).await {
                    Ok(true) => input.clear(),
                    Ok(false) => return Ok(None),
                    Err(error) if error.kind() == ErrorKind::InvalidData => {
                        let client = channel.socket().peer_name();
                        return Err(SessionError::Tls { client, error });
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Step::Transmission(choice) => {
                channel.write_all(&output).await?;
                return Ok(Some((choice, input)));
            }
            Step::End => {
                // A client that asked to end may leave before the answer.
                let _ = channel.write_all(&output).await;
                return Ok(None);
            }
            Step::NeedMore => match channel.read(&mut [IoSliceMut::new(&mut piece)])? {
                Moved::Bytes(0) => return Ok(None),
                Moved::Bytes(more) => input.extend_from_slice(&piece[..more]),
                Moved::Nothing => {
                    if !readable(channel.socket(), inbox).await? {
                        return Ok(None);
                    }
                }
            },
        }
    }
}
