//! The bytes of the protocol: numbers, and messages to and from them. No I/O.
//!
//! Names are the ones of the protocol's description (`doc/proto.md` of the NBD project, on the
//! baseline protocol and its extensions `INFO`, `STRUCTURED_REPLY`, `BLOCK_STATUS` and
//! `WRITE_ZEROES`). All numbers are big-endian.

/// Longest read, and longest write with data.
pub const REQUEST_BYTES_MAX: u32 = 64 << 20;

/// The first bytes of a server.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// Before an option, from either side's first message on.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Before a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag of server and client: fixed newstyle.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag of server and client: no 124 zeroes after `EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 2;

/// Longest string of the protocol: names of exports and contexts.
pub const STRING_BYTES_MAX: usize = 4096;

/// Options of the handshake.
pub mod option {
    /// Choose an export and begin requests, in the old way without error replies.
    pub const EXPORT_NAME: u32 = 1;
    /// End.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Change to TLS.
    pub const STARTTLS: u32 = 5;
    /// Ask for facts about an export.
    pub const INFO: u32 = 6;
    /// Choose an export and begin requests.
    pub const GO: u32 = 7;
    /// Allow replies in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// A fact about an export.
    pub const INFO: u32 = 3;
    /// A context.
    pub const META_CONTEXT: u32 = 4;
    const ERROR: u32 = 1 << 31;
    /// The server does not know the option.
    pub const ERR_UNSUP: u32 = ERROR + 1;
    /// The server refuses the option by policy.
    pub const ERR_POLICY: u32 = ERROR + 2;
    /// The option is malformed, or comes at the wrong time.
    pub const ERR_INVALID: u32 = ERROR + 3;
    /// The option needs TLS first.
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Kinds of facts about an export.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// Name of the export.
    pub const NAME: u16 = 1;
    /// A description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Sizes of requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export.
pub mod export {
    /// The flags field is valid.
    pub const HAS_FLAGS: u16 = 1;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The export serves [`FLUSH`](super::command::FLUSH).
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The export serves [`FUA`](super::flag::FUA).
    pub const SEND_FUA: u16 = 1 << 3;
    /// The disk rotates, so that seeks cost time.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// The export serves [`TRIM`](super::command::TRIM).
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The export serves [`WRITE_ZEROES`](super::command::WRITE_ZEROES).
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The export serves [`DF`](super::flag::DF).
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Commands.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write the data that follow.
    pub const WRITE: u16 = 1;
    /// End the session, without a reply.
    pub const DISC: u16 = 2;
    /// Make all writes durable.
    pub const FLUSH: u16 = 3;
    /// Discard sectors.
    pub const TRIM: u16 = 4;
    /// Read ahead.
    pub const CACHE: u16 = 5;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Ask for the allocated parts.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command.
pub mod flag {
    /// Reply only when the data are durable.
    pub const FUA: u16 = 1;
    /// The zeroes must have space on the medium.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Reply with one chunk of data.
    pub const DF: u16 = 1 << 2;
    /// Reply with one extent.
    pub const REQ_ONE: u16 = 1 << 3;
}

/// Chunks of structured replies.
pub mod chunk {
    /// Flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
    /// An empty chunk.
    pub const NONE: u16 = 0;
    /// Data.
    pub const OFFSET_DATA: u16 = 1;
    /// The allocated parts.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// Bits of a block's status in `base:allocation`.
pub mod state {
    /// The block is not allocated.
    pub const HOLE: u32 = 1;
    /// The block reads as zeroes.
    pub const ZERO: u32 = 2;
}

/// The one metadata context.
pub const BASE_ALLOCATION: &[u8] = b"base:allocation";
pub const BASE_ALLOCATION_ID: u32 = 1;

/// Errors of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Error {
    /// Not permitted: a write to a read-only export.
    Perm = 1,
    /// The disk failed.
    Io = 5,
    /// The request makes no sense.
    Inval = 22,
    /// No space, or beyond the end.
    NoSpc = 28,
    /// The data do not fit one reply.
    Overflow = 75,
    /// The server ends.
    Shutdown = 108,
}

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u16,
    pub command: u16,
    /// The client's name for the request.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
}

/// Error for bytes that are no message of the protocol. The start of the next message is then unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} begins with {found:#x} in place of {expected:#x}")]
pub struct BadMagic {
    pub what: &'static str,
    pub found: u64,
    pub expected: u64,
}

/// The array at `at`, which is in `bytes`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as long as asked for")
}

/// The number at `at`.
///
/// # Panics
///
/// If it is not in `bytes`.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// The number at `at`.
///
/// # Panics
///
/// If it is not in `bytes`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// The number at `at`.
///
/// # Panics
///
/// If it is not in `bytes`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

impl Request {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// If the bytes do not begin with the magic number of a request.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Request, BadMagic> {
        let magic = u32_at(bytes, 0);
        if magic != REQUEST_MAGIC {
            return Err(BadMagic {
                what: "a request",
                found: magic.into(),
                expected: REQUEST_MAGIC.into(),
            });
        }
        Ok(Request {
            flags: u16_at(bytes, 4),
            command: u16_at(bytes, 6),
            cookie: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            len: u32_at(bytes, 24),
        })
    }

    /// Writes a header, as clients do.
    pub fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }
}

/// Bytes of the longest [`Head`].
pub const HEAD_BYTES_MAX: usize = 96;

/// The head of a reply: everything before its data.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    len: u8,
}

impl Head {
    const EMPTY: Head = Head {
        bytes: [0; HEAD_BYTES_MAX],
        len: 0,
    };

    /// Makes a simple reply; `None` is success. The data of a read follow.
    pub fn simple(cookie: u64, error: Option<Error>) -> Head {
        let mut head = Head::EMPTY;
        head.put(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        head.put(&error.map_or(0, |error| error as u32).to_be_bytes());
        head.put(&cookie.to_be_bytes());
        head
    }

    /// Makes the only chunk of a read that succeeded. `len` bytes follow, at least one.
    pub fn data(cookie: u64, offset: u64, len: u32) -> Head {
        let mut head = Head::chunk(chunk::OFFSET_DATA, cookie, 8 + len);
        head.put(&offset.to_be_bytes());
        head
    }

    /// Makes the only chunk of a block status. `len` bytes follow.
    pub fn block_status(cookie: u64, len: u32) -> Head {
        Head::chunk(chunk::BLOCK_STATUS, cookie, len)
    }

    /// Makes the only chunk of a failed request, with a text, and the offset of the failure if it is known. A text that does not fit is
    /// cut.
    pub fn error(cookie: u64, error: Error, at: Option<u64>, text: &str) -> Head {
        let kind = match at {
            Some(_) => chunk::ERROR_OFFSET,
            None => chunk::ERROR,
        };
        // A cut within a character does no harm, since the texts are plain.
        let text = &text.as_bytes()[..text.len().min(HEAD_BYTES_MAX - 20 - 14)];
        let rest = 6 + text.len() + at.map_or(0, |_| 8);
        let mut head = Head::chunk(kind, cookie, rest as u32);
        head.put(&(error as u32).to_be_bytes());
        head.put(&(text.len() as u16).to_be_bytes());
        head.put(text);
        if let Some(at) = at {
            head.put(&at.to_be_bytes());
        }
        head
    }

    fn chunk(kind: u16, cookie: u64, len: u32) -> Head {
        let mut head = Head::EMPTY;
        head.put(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        head.put(&chunk::DONE.to_be_bytes());
        head.put(&kind.to_be_bytes());
        head.put(&cookie.to_be_bytes());
        head.put(&len.to_be_bytes());
        head
    }

    fn put(&mut self, bytes: &[u8]) {
        let len = usize::from(self.len);
        self.bytes[len..len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Appends a reply to an option.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let len: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(len as u32).to_be_bytes());
    for part in data {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_bytes_and_back() {
        let request = Request {
            flags: flag::FUA,
            command: command::WRITE,
            cookie: 0x0102_0304_0506_0708,
            offset: 0x1000,
            len: 512,
        };
        let bytes = request.to_bytes();
        assert_eq!(
            bytes,
            [
                0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10,
                0, 0, 0, 2, 0
            ]
        );
        assert_eq!(Request::parse(&bytes), Ok(request));
        let mut wrong = bytes;
        wrong[0] ^= 1;
        let error = Request::parse(&wrong).expect_err("no request");
        assert_eq!(
            error.to_string(),
            "a request begins with 0x24609513 in place of 0x25609513"
        );
    }

    #[test]
    fn heads_of_replies_have_the_bytes_of_the_protocol() {
        assert_eq!(
            Head::simple(7, None).as_bytes(),
            [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
        );
        assert_eq!(
            Head::simple(7, Some(Error::NoSpc)).as_bytes()[4..8],
            [0, 0, 0, 28]
        );
        assert_eq!(
            Head::data(7, 0x200, 0x400).as_bytes(),
            [
                0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 4, 8, 0, 0, 0, 0,
                0, 0, 2, 0
            ]
        );
        assert_eq!(
            Head::error(7, Error::Io, None, "no").as_bytes(),
            [
                0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0,
                5, 0, 2, b'n', b'o'
            ]
        );
        assert_eq!(
            Head::error(7, Error::Io, Some(0x300), "no").as_bytes()[6..],
            [
                0x80, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0, 5, 0, 2, b'n', b'o', 0, 0,
                0, 0, 0, 0, 3, 0
            ]
        );
        assert_eq!(
            Head::block_status(7, 12).as_bytes()[4..],
            [0, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 12]
        );
    }

    #[test]
    fn a_text_too_long_is_cut() {
        let text = "x".repeat(500);
        let head = Head::error(1, Error::Inval, Some(9), &text);
        assert_eq!(head.as_bytes().len(), HEAD_BYTES_MAX);
        assert_eq!(u32_at(head.as_bytes(), 16) as usize, HEAD_BYTES_MAX - 20);
        assert_eq!(u16_at(head.as_bytes(), 24), 62);
        assert_eq!(u64_at(head.as_bytes(), HEAD_BYTES_MAX - 8), 9);
    }
}
