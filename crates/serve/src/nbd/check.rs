//! Checks of requests: each becomes an action or a refusal. No I/O.
//!
//! Every well-formed request gets an answer. The connection ends only if the start of the next message is unknown, or would take too long
//! to reach.

use super::handshake::{Choice, Offer};
use super::wire::{Error, REQUEST_BYTES_MAX, Request, command, flag};
use crate::request::Cut;
use headtime_units::Extent;

/// Most bytes of a refused write that are skipped. A longer write ends the connection.
pub const SKIP_BYTES_MAX: u32 = 256 << 20;

/// Action for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Read(Extent),
    /// Write the data that follow the header.
    Write(Extent, Cut, Durable),
    /// Write zeroes.
    Zeroes {
        /// Sectors, which may be more than a buffer has room for.
        extent: Extent,
        cut: Cut,
        /// True if the sectors may be discarded instead.
        may_punch: bool,
        /// Condition of the reply.
        durable: Durable,
    },
    /// Discard sectors.
    Trim(Extent, Cut, Durable),
    /// Make all writes durable.
    Flush,
    /// Report the allocated parts.
    Status {
        /// At most one extent.
        one: bool,
    },
    /// End the session, as the client wishes.
    Disconnect,
    /// Reply with an error.
    Refuse(Refusal),
    /// End the connection.
    Drop(&'static str),
}

/// True if the reply has to wait until the data are on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable(pub bool);

/// Error reply without a request to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub error: Error,
    /// Description, for people.
    pub text: &'static str,
    /// Bytes to skip: the data of a refused write.
    pub skip: u32,
}

/// Decides what to do with `request` on the export of `offer`, under the agreement `choice`.
pub fn check(request: &Request, offer: &Offer, choice: &Choice) -> Action {
    let is_write = request.command == command::WRITE;
    if is_write && request.len > SKIP_BYTES_MAX {
        return Action::Drop("a write of more than 256 MiB");
    }
    match accept(request, offer, choice) {
        Ok(action) => action,
        Err((error, text)) => Action::Refuse(Refusal {
            error,
            text,
            skip: if is_write { request.len } else { 0 },
        }),
    }
}

fn accept(
    request: &Request,
    offer: &Offer,
    choice: &Choice,
) -> Result<Action, (Error, &'static str)> {
    let durable = Durable(request.flags & flag::FUA != 0);
    let inval = |text| Err((Error::Inval, text));
    let flags = match request.command {
        command::DISC => return Ok(Action::Disconnect),
        command::READ if choice.structured => flag::DF,
        command::READ | command::WRITE | command::FLUSH | command::TRIM => 0,
        command::WRITE_ZEROES => flag::NO_HOLE,
        command::BLOCK_STATUS => flag::REQ_ONE,
        _ => return inval("an unknown command"),
    };
    // Some clients set FUA on every command, which does no harm.
    if request.flags & !(flags | flag::FUA) != 0 {
        return inval("a flag that this command does not have");
    }
    if request.command == command::FLUSH {
        return match (request.offset, request.len) {
            (0, 0) => Ok(Action::Flush),
            _ => inval("a flush has neither offset nor length"),
        };
    }
    let writes = matches!(
        request.command,
        command::WRITE | command::TRIM | command::WRITE_ZEROES
    );
    if writes && offer.read_only {
        return Err((Error::Perm, "the export is read-only"));
    }
    let (extent, cut) = extent(request, offer)?;
    let fits = request.len <= REQUEST_BYTES_MAX;
    match request.command {
        command::READ if fits => Ok(Action::Read(extent)),
        command::READ if request.flags & flag::DF != 0 => {
            Err((Error::Overflow, "more than 64 MiB in one chunk"))
        }
        command::WRITE if fits => Ok(Action::Write(extent, cut, durable)),
        command::READ | command::WRITE => inval("more than 64 MiB"),
        command::TRIM if offer.discards => Ok(Action::Trim(extent, cut, durable)),
        command::TRIM => inval("the disk cannot discard"),
        command::WRITE_ZEROES => Ok(Action::Zeroes {
            extent,
            cut,
            may_punch: request.flags & flag::NO_HOLE == 0,
            durable,
        }),
        _ if choice.allocation => Ok(Action::Status {
            one: request.flags & flag::REQ_ONE != 0,
        }),
        _ => inval("base:allocation was not chosen"),
    }
}

fn extent(request: &Request, offer: &Offer) -> Result<(Extent, Cut), (Error, &'static str)> {
    let (offset, len) = (request.offset, u64::from(request.len));
    if len == 0 {
        return Err((Error::Inval, "a length of zero"));
    }
    if offset
        .checked_add(len)
        .is_none_or(|end| end > offer.addresses.bytes())
    {
        let error = match request.command {
            command::WRITE | command::WRITE_ZEROES => Error::NoSpc,
            _ => Error::Inval,
        };
        return Err((error, "beyond the end of the export"));
    }
    Ok(offer.addresses.span(offset, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Addresses;
    use Error::{Inval, NoSpc, Overflow, Perm};

    const OFFER: Offer = Offer {
        name: String::new(),
        description: String::new(),
        addresses: Addresses::whole(1 << 30, 512),
        read_only: false,
        discards: true,
    };

    const PLAIN: Choice = Choice {
        export: 0,
        structured: false,
        allocation: false,
    };

    const ALL: Choice = Choice {
        export: 0,
        structured: true,
        allocation: true,
    };

    fn request(command: u16, flags: u16, offset: u64, len: u32) -> Request {
        Request {
            flags,
            command,
            cookie: 1,
            offset,
            len,
        }
    }

    fn refused(action: Action) -> Option<Error> {
        match action {
            Action::Refuse(refusal) => Some(refusal.error),
            _ => None,
        }
    }

    #[test]
    fn every_command_becomes_its_action() {
        let go = |command, flags, offset, len| {
            check(&request(command, flags, offset, len), &OFFER, &ALL)
        };
        let extent = Extent::at(8, 16);
        assert_eq!(go(command::READ, 0, 4096, 8192), Action::Read(extent));
        assert_eq!(
            go(command::READ, flag::DF, 4096, 8192),
            Action::Read(extent)
        );
        assert_eq!(
            go(command::WRITE, flag::FUA, 4096, 8192),
            Action::Write(extent, Cut::NONE, Durable(true))
        );
        assert_eq!(
            go(command::TRIM, 0, 4096, 8192),
            Action::Trim(extent, Cut::NONE, Durable(false))
        );
        assert_eq!(
            go(command::WRITE_ZEROES, flag::NO_HOLE, 0, 1 << 29),
            Action::Zeroes {
                extent: Extent::at(0, 1 << 20),
                cut: Cut::NONE,
                may_punch: false,
                durable: Durable(false)
            }
        );
        assert_eq!(go(command::FLUSH, flag::FUA, 0, 0), Action::Flush);
        assert_eq!(
            go(command::BLOCK_STATUS, flag::REQ_ONE, 0, 1 << 30),
            Action::Status { one: true }
        );
        // A disconnect counts with any flags, offset and length.
        assert_eq!(go(command::DISC, 0xffff, 1, 1), Action::Disconnect);
    }

    #[test]
    fn requests_that_break_a_rule_are_refused() {
        let cases = [
            (request(command::READ, 0, 0, 0), Inval),
            (request(command::READ, 0, 1 << 30, 512), Inval),
            (request(command::READ, 0, u64::MAX - 511, 512), Inval),
            (request(command::READ, 0, u64::MAX, u32::MAX), Inval),
            (request(command::READ, 0, 0, (64 << 20) + 1), Inval),
            (
                request(command::READ, flag::DF, 0, (64 << 20) + 1),
                Overflow,
            ),
            (request(command::READ, flag::NO_HOLE, 0, 512), Inval),
            (request(command::READ, 1 << 4, 0, 512), Inval),
            (request(command::WRITE, 0, 1 << 30, 512), NoSpc),
            (request(command::WRITE, 0, (1 << 30) - 512, 1024), NoSpc),
            (request(command::WRITE, flag::DF, 0, 512), Inval),
            (request(command::WRITE_ZEROES, 0, 1 << 30, 512), NoSpc),
            (request(command::WRITE_ZEROES, 1 << 4, 0, 512), Inval),
            (request(command::TRIM, 0, 1 << 30, 512), Inval),
            (request(command::FLUSH, 0, 0, 512), Inval),
            (request(command::FLUSH, 0, 512, 0), Inval),
            (request(command::CACHE, 0, 0, 512), Inval),
            (request(command::BLOCK_STATUS, 0, 0, 1 << 31), Inval),
            (request(99, 0, 0, 512), Inval),
        ];
        for (request, error) in cases {
            let action = check(&request, &OFFER, &ALL);
            assert_eq!(refused(action), Some(error), "{request:?}: {action:?}");
        }
    }

    #[test]
    fn what_was_not_agreed_on() {
        let read = request(command::READ, flag::DF, 0, 512);
        assert_eq!(refused(check(&read, &OFFER, &PLAIN)), Some(Inval));
        let status = request(command::BLOCK_STATUS, 0, 0, 512);
        assert_eq!(refused(check(&status, &OFFER, &PLAIN)), Some(Inval));
        let read_only = Offer {
            read_only: true,
            ..OFFER
        };
        for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            let write = request(command, 0, 1, 513);
            assert_eq!(refused(check(&write, &read_only, &ALL)), Some(Perm));
        }
        let stiff = Offer {
            discards: false,
            ..OFFER
        };
        let trim = request(command::TRIM, 0, 0, 512);
        assert_eq!(refused(check(&trim, &stiff, &ALL)), Some(Inval));
    }

    #[test]
    fn data_of_a_refused_write_are_skipped() {
        let too_long = request(command::WRITE, 0, 0, SKIP_BYTES_MAX);
        let action = check(&too_long, &OFFER, &PLAIN);
        assert!(matches!(action, Action::Refuse(Refusal { skip, .. }) if skip == SKIP_BYTES_MAX));
        let absurd = request(command::WRITE, 0, 0, SKIP_BYTES_MAX + 1);
        assert!(matches!(check(&absurd, &OFFER, &PLAIN), Action::Drop(_)));
    }

    #[test]
    fn bytes_are_widened_to_sectors_and_the_rest_is_kept() {
        let odd = Offer {
            addresses: Addresses::whole(10_000, 4096),
            ..OFFER
        };
        let cut = |head, tail| Cut { head, tail };
        for (offset, len, extent, kept) in [
            (512, 4096, Extent::at(0, 2), cut(512, 3584)),
            (4096, 4096, Extent::at(1, 1), Cut::NONE),
            (4095, 1, Extent::at(0, 1), cut(4095, 0)),
            (8192, 1, Extent::at(2, 1), cut(0, 4095)),
            // Behind the end there is nothing to keep.
            (8192, 1808, Extent::at(2, 1), Cut::NONE),
            (0, 10_000, Extent::at(0, 3), Cut::NONE),
            (9999, 1, Extent::at(2, 1), cut(1807, 0)),
        ] {
            let write = request(command::WRITE, 0, offset, len);
            let action = Action::Write(extent, kept, Durable(false));
            assert_eq!(check(&write, &odd, &ALL), action, "{len} at {offset}");
            let read = request(command::READ, 0, offset, len);
            assert_eq!(check(&read, &odd, &ALL), Action::Read(extent));
        }
        let beyond = request(command::WRITE, 0, 9999, 2);
        assert_eq!(refused(check(&beyond, &odd, &ALL)), Some(NoSpc));
    }
}
