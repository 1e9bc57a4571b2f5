//! Handshake of a client, before its requests. The module takes bytes and returns bytes, without I/O.
//!
//! Only the fixed newstyle handshake is served. A well-behaved client gets an answer to every option. Input that cannot be answered, or
//! looks like noise, ends the connection ([`HandshakeError`]).

use super::wire::{
    self, BASE_ALLOCATION, BASE_ALLOCATION_ID, REQUEST_BYTES_MAX, STRING_BYTES_MAX, export, info,
    option, put_option_reply, reply, u16_at, u32_at, u64_at,
};
use crate::disk::Addresses;
use headtime_linux::shown::Shown;
use std::sync::Arc;

/// Most bytes of an option's data. A longer option is skipped and refused.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;

/// Most bytes of an option that is skipped. A longer option ends the connection.
pub const OPTION_SKIP_MAX: u32 = 16 << 20;

/// Most options that a client may send until it chooses an export.
pub const OPTIONS_MAX: u32 = 256;

/// Least, preferred and largest size of requests. Requests of any bytes are served, and requests of whole sectors cost least.
const BLOCK_SIZES: [u32; 3] = [1, 4096, REQUEST_BYTES_MAX];

/// Facts about an export for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Name under which clients choose the export.
    pub name: String,
    /// Description, for people.
    pub description: String,
    /// Bytes of the export on its disk.
    pub addresses: Addresses,
    /// True if the export is read-only.
    pub read_only: bool,
    /// True if the export can discard sectors.
    pub discards: bool,
}

impl Offer {
    /// Transmission flags of the export ([`export`]).
    pub fn flags(&self, structured: bool) -> u16 {
        let mut flags = export::HAS_FLAGS
            | export::SEND_FLUSH
            | export::SEND_FUA
            | export::ROTATIONAL
            | export::CAN_MULTI_CONN;
        if self.read_only {
            flags |= export::READ_ONLY;
        } else {
            flags |= export::SEND_WRITE_ZEROES;
            if self.discards {
                flags |= export::SEND_TRIM;
            }
        }
        if structured {
            flags |= export::SEND_DF;
        }
        flags
    }
}

/// The agreement between a client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the chosen offer.
    pub export: usize,
    /// True if replies come in chunks.
    pub structured: bool,
    /// True if the client may ask for the allocated parts.
    pub allocation: bool,
}

/// The next step of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The message is not complete.
    NeedMore,
    /// There may be another message in the input.
    Again,
    /// TLS follows. The handshake goes on within.
    StartTls,
    /// Requests follow.
    Transmission(Choice),
    /// The client ends the handshake.
    End,
}

/// Reason why a connection ends before its first request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The client does not speak this protocol.
    #[error(transparent)]
    Magic(#[from] wire::BadMagic),
    /// The client wants a variant of the protocol that does not exist.
    #[error("client flags {0:#x}, of which 0x1 (fixed newstyle) and 0x2 (no zeroes) are known")]
    Flags(u32),
    /// An option has too much data.
    #[error("option {option} of {len} bytes, of at most {max}")]
    TooLong {
        option: u32,
        /// Bytes.
        len: u32,
        /// Bytes allowed.
        max: u32,
    },
    /// The client sends too many options.
    #[error("more than {OPTIONS_MAX} options")]
    TooMany,
    /// The client sent an option, and its kind of handshake has no error replies.
    #[error("option {0} without the client flag 0x1 (fixed newstyle)")]
    NotFixed(u32),
    /// The client chose an export without TLS, by an option without error replies.
    #[error("EXPORT_NAME before STARTTLS at a socket that needs TLS")]
    NoTls,
    /// The client chose an unknown export by an option without error replies.
    #[error("there is no export \"{}\"", Shown(.0))]
    NoExport(String),
}

/// State of a handshake.
#[derive(Clone, Copy, Debug)]
enum State {
    ClientFlags,
    Options,
    /// Data of an option that is too long.
    Skip {
        option: u32,
        left: u32,
    },
}

/// TLS at a client's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privacy {
    /// The socket has no TLS.
    Plain,
    /// No option but `STARTTLS` and `ABORT` is obeyed.
    TlsNeeded,
    TlsBegun,
}

/// Handshake with one client.
#[derive(Clone, Debug)]
pub struct Handshake {
    offers: Arc<[Offer]>,
    state: State,
    privacy: Privacy,
    fixed: bool,
    no_zeroes: bool,
    structured: bool,
    /// Export for which the client has chosen `base:allocation`.
    context: Option<usize>,
    options: u32,
}

/// Bytes before an option's data.
const OPTION_HEAD: usize = 16;

impl Handshake {
    /// The server's first message.
    pub const GREETING: [u8; 18] = {
        let mut bytes = [0; 18];
        let parts = [wire::NBDMAGIC.to_be_bytes(), wire::IHAVEOPT.to_be_bytes()];
        let mut at = 0;
        while at < 16 {
            bytes[at] = parts[at / 8][at % 8];
            at += 1;
        }
        bytes[17] = (wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES) as u8;
        bytes
    };

    /// Makes the state after the greeting.
    pub fn new(offers: Arc<[Offer]>) -> Handshake {
        Handshake {
            offers,
            state: State::ClientFlags,
            privacy: Privacy::Plain,
            fixed: false,
            no_zeroes: false,
            structured: false,
            context: None,
            options: 0,
        }
    }

    /// Makes the state after the greeting at a socket that needs TLS.
    pub fn with_tls(offers: Arc<[Offer]>) -> Handshake {
        Handshake {
            privacy: Privacy::TlsNeeded,
            ..Handshake::new(offers)
        }
    }

    /// Takes at most one message from the beginning of `input`, and appends the answer to `out`. Returns the number of bytes that were
    /// taken: none if the message is not complete.
    ///
    /// # Errors
    ///
    /// If the connection has to end. The bytes in `out` then need not be sent.
    pub fn advance(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Step), HandshakeError> {
        match self.state {
            State::ClientFlags => self.client_flags(input),
            State::Skip { option, left } => {
                let taken = input.len().min(left as usize);
                let left = left - taken as u32;
                if left > 0 {
                    self.state = State::Skip { option, left };
                    let step = [Step::Again, Step::NeedMore][usize::from(taken == 0)];
                    return Ok((taken, step));
                }
                self.state = State::Options;
                match self.privacy {
                    Privacy::TlsNeeded => refuse_plain(out, option),
                    _ => refuse(out, option, reply::ERR_TOO_BIG, "too long an option"),
                }
                Ok((taken, Step::Again))
            }
            State::Options => self.option(input, out),
        }
    }

    fn client_flags(&mut self, input: &[u8]) -> Result<(usize, Step), HandshakeError> {
        if input.len() < 4 {
            return Ok((0, Step::NeedMore));
        }
        let flags = u32_at(input, 0);
        let known = u32::from(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES);
        if flags & !known != 0 {
            return Err(HandshakeError::Flags(flags));
        }
        self.fixed = flags & u32::from(wire::FLAG_FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(wire::FLAG_NO_ZEROES) != 0;
        self.state = State::Options;
        Ok((4, Step::Again))
    }

    fn option(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Step), HandshakeError> {
        if input.len() >= 8 && u64_at(input, 0) != wire::IHAVEOPT {
            return Err(HandshakeError::Magic(wire::BadMagic {
                what: "an option",
                found: u64_at(input, 0),
                expected: wire::IHAVEOPT,
            }));
        }
        if input.len() < OPTION_HEAD {
            return Ok((0, Step::NeedMore));
        }
        let (option, len) = (u32_at(input, 8), u32_at(input, 12));
        if !self.fixed && option != option::EXPORT_NAME {
            return Err(HandshakeError::NotFixed(option));
        }
        let max = match option {
            option::EXPORT_NAME => STRING_BYTES_MAX as u32,
            _ => OPTION_SKIP_MAX,
        };
        if len > max {
            return Err(HandshakeError::TooLong { option, len, max });
        }
        if len > OPTION_BYTES_MAX {
            self.count()?;
            self.state = State::Skip { option, left: len };
            return Ok((OPTION_HEAD, Step::Again));
        }
        let end = OPTION_HEAD + len as usize;
        let Some(data) = input.get(OPTION_HEAD..end) else {
            return Ok((0, Step::NeedMore));
        };
        self.count()?;
        let step = self.obey(option, data, out)?;
        Ok((end, step))
    }

    fn count(&mut self) -> Result<(), HandshakeError> {
        self.options += 1;
        match self.options > OPTIONS_MAX {
            true => Err(HandshakeError::TooMany),
            false => Ok(()),
        }
    }

    fn obey(
        &mut self,
        option: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, HandshakeError> {
        match option {
            option::STARTTLS => return Ok(self.start_tls(data, out)),
            option::EXPORT_NAME if self.privacy == Privacy::TlsNeeded => {
                return Err(HandshakeError::NoTls);
            }
            option::ABORT => {
                put_option_reply(out, option, reply::ACK, &[]);
                return Ok(Step::End);
            }
            _ if self.privacy == Privacy::TlsNeeded => refuse_plain(out, option),
            option::EXPORT_NAME => {
                let Some(index) = self.find(data) else {
                    let name = String::from_utf8_lossy(data).into_owned();
                    return Err(HandshakeError::NoExport(name));
                };
                let offer = &self.offers[index];
                out.extend_from_slice(&offer.addresses.bytes().to_be_bytes());
                out.extend_from_slice(&offer.flags(self.structured).to_be_bytes());
                if !self.no_zeroes {
                    out.extend_from_slice(&[0; 124]);
                }
                return Ok(Step::Transmission(self.choice(index)));
            }
            option::LIST if data.is_empty() => {
                for offer in &*self.offers {
                    let len = (offer.name.len() as u32).to_be_bytes();
                    let data = [
                        &len[..],
                        offer.name.as_bytes(),
                        offer.description.as_bytes(),
                    ];
                    put_option_reply(out, option, reply::SERVER, &data);
                }
                put_option_reply(out, option, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() && !self.structured => {
                self.structured = true;
                put_option_reply(out, option, reply::ACK, &[]);
            }
            option::LIST => refuse(out, option, reply::ERR_INVALID, "LIST has no data"),
            option::STRUCTURED_REPLY => {
                let text = "STRUCTURED_REPLY has no data, and comes once";
                refuse(out, option, reply::ERR_INVALID, text);
            }
            option::INFO | option::GO => {
                if let Some(index) = self.info(option, data, out)
                    && option == option::GO
                {
                    return Ok(Step::Transmission(self.choice(index)));
                }
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(option, data, out);
            }
            _ => refuse(out, option, reply::ERR_UNSUP, "an unknown option"),
        }
        Ok(Step::Again)
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> Step {
        let (kind, text) = match self.privacy {
            Privacy::Plain => (reply::ERR_POLICY, "this socket has no TLS"),
            Privacy::TlsBegun => (reply::ERR_INVALID, "TLS has begun"),
            Privacy::TlsNeeded if !data.is_empty() => (reply::ERR_INVALID, "STARTTLS has no data"),
            Privacy::TlsNeeded => {
                self.privacy = Privacy::TlsBegun;
                put_option_reply(out, option::STARTTLS, reply::ACK, &[]);
                return Step::StartTls;
            }
        };
        refuse(out, option::STARTTLS, kind, text);
        Step::Again
    }

    /// Index of the export with this name. An empty name stands for the only export.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let named = |offer: &Offer| offer.name.as_bytes() == name;
        let only = name.is_empty() && self.offers.len() == 1;
        self.offers
            .iter()
            .position(named)
            .or_else(|| only.then_some(0))
    }

    fn choice(&self, export: usize) -> Choice {
        Choice {
            export,
            structured: self.structured,
            allocation: self.structured && self.context == Some(export),
        }
    }

    /// Answers an `INFO` or `GO`. Returns the index of the export, if there is one.
    fn info(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let Some((name, asked)) = parse_info(data) else {
            let text = "not a name and a list of kinds of information";
            refuse(out, option, reply::ERR_INVALID, text);
            return None;
        };
        let Some(index) = self.find(name) else {
            refuse(out, option, reply::ERR_UNKNOWN, "no such export");
            return None;
        };
        let offer = &self.offers[index];
        let mut put = |kind: u16, parts: &[&[u8]]| {
            let kind = kind.to_be_bytes();
            let mut all: [&[u8]; 4] = [&kind, &[], &[], &[]];
            all[1..=parts.len()].copy_from_slice(parts);
            put_option_reply(out, option, reply::INFO, &all);
        };
        let asks_for = |kind: u16| asked.chunks_exact(2).any(|found| u16_at(found, 0) == kind);
        if asks_for(info::NAME) {
            put(info::NAME, &[offer.name.as_bytes()]);
        }
        if asks_for(info::DESCRIPTION) && !offer.description.is_empty() {
            put(info::DESCRIPTION, &[offer.description.as_bytes()]);
        }
        // Clients that did not ask for the sizes get them, too, so that every client knows which requests are refused.
        let sizes = BLOCK_SIZES.map(u32::to_be_bytes);
        put(info::BLOCK_SIZE, &[&sizes[0], &sizes[1], &sizes[2]]);
        let flags = offer.flags(self.structured).to_be_bytes();
        put(
            info::EXPORT,
            &[&offer.addresses.bytes().to_be_bytes(), &flags],
        );
        put_option_reply(out, option, reply::ACK, &[]);
        Some(index)
    }

    fn meta_context(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let set = option == option::SET_META_CONTEXT;
        if set {
            // Each `SET_META_CONTEXT` replaces the one before, even if it fails.
            self.context = None;
        }
        if !self.structured {
            let text = "contexts need STRUCTURED_REPLY";
            return refuse(out, option, reply::ERR_INVALID, text);
        }
        let Some((name, queries)) = parse_meta_context(data) else {
            let text = "not a name and a list of contexts";
            return refuse(out, option, reply::ERR_INVALID, text);
        };
        let Some(index) = self.find(name) else {
            return refuse(out, option, reply::ERR_UNKNOWN, "no such export");
        };
        let listed = !set && (queries.is_empty() || queries.contains(&&b"base:"[..]));
        if listed || queries.contains(&BASE_ALLOCATION) {
            let id = if set { BASE_ALLOCATION_ID } else { 0 };
            let data = [&id.to_be_bytes(), BASE_ALLOCATION];
            put_option_reply(out, option, reply::META_CONTEXT, &data);
            if set {
                self.context = Some(index);
            }
        }
        put_option_reply(out, option, reply::ACK, &[]);
    }
}

fn refuse_plain(out: &mut Vec<u8>, option: u32) {
    let text = "this socket needs TLS; send STARTTLS first";
    refuse(out, option, reply::ERR_TLS_REQD, text);
}

fn refuse(out: &mut Vec<u8>, option: u32, kind: u32, text: &str) {
    put_option_reply(out, option, kind, &[text.as_bytes()]);
}

/// Splits data into a string that follows its length, and the rest.
fn parse_string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = u32_at(data.get(..4)?, 0) as usize;
    if len > STRING_BYTES_MAX {
        return None;
    }
    data[4..].split_at_checked(len)
}

/// Parses the data of an `INFO` or `GO`: the name, and the kinds of information.
fn parse_info(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = parse_string(data)?;
    let (count, kinds) = rest.split_at_checked(2)?;
    (kinds.len() == 2 * usize::from(u16_at(count, 0))).then_some((name, kinds))
}

/// Parses the data of a `LIST_META_CONTEXT` or `SET_META_CONTEXT`: the name, and the queries.
fn parse_meta_context(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = parse_string(data)?;
    let (count, mut rest) = rest.split_at_checked(4)?;
    let count = u32_at(count, 0) as usize;
    // Each query takes at least four bytes.
    if count > rest.len() / 4 {
        return None;
    }
    let mut queries = Vec::with_capacity(count);
    for _ in 0..count {
        let (query, after) = parse_string(rest)?;
        queries.push(query);
        rest = after;
    }
    rest.is_empty().then_some((name, queries))
}

#[cfg(test)]
mod tests;
