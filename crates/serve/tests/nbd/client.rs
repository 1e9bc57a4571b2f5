//! A client that does one thing at a time, and looks at every byte.

use headtime_serve::nbd::wire::{
    self, Request, command, option, put_option_reply, reply, u16_at, u32_at, u64_at,
};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Reads wait no longer than this: a test that would hang fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// A reply, or the whole of a structured one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub error: u32,
    /// Where, if a structured reply says so.
    pub at: Option<u64>,
    pub data: Vec<u8>,
}

pub struct Client {
    pub socket: Box<dyn Socket>,
    pub structured: bool,
    pub size: u64,
    pub flags: u16,
    pub next: u64,
}

impl Client {
    /// With a simple handshake.
    pub fn connect(path: &Path, export: &str) -> Client {
        Client::over(unix(path), export, false, false)
    }

    /// With structured replies and base:allocation.
    pub fn connect_structured(path: &Path, export: &str) -> Client {
        Client::over(unix(path), export, true, true)
    }

    pub fn over(
        socket: impl Socket + 'static,
        export: &str,
        structured: bool,
        status: bool,
    ) -> Client {
        let mut client = Client::greeted(socket);
        client.choose(export, structured, status);
        client
    }

    /// After the greetings of both sides.
    pub fn greeted(socket: impl Socket + 'static) -> Client {
        let mut client = Client {
            socket: Box::new(socket),
            structured: false,
            size: 0,
            flags: 0,
            next: 1,
        };
        assert_eq!(client.read(18), b"NBDMAGICIHAVEOPT\0\x03");
        client.send(&3u32.to_be_bytes());
        client
    }

    /// Chooses an export.
    pub fn choose(&mut self, export: &str, structured: bool, status: bool) {
        self.structured = structured;
        let name = [&(export.len() as u32).to_be_bytes(), export.as_bytes()].concat();
        if structured {
            assert_eq!(self.option(option::STRUCTURED_REPLY, b"").len(), 1);
        }
        if status {
            let query = [&[0, 0, 0, 1, 0, 0, 0, 15], wire::BASE_ALLOCATION].concat();
            let replies = self.option(option::SET_META_CONTEXT, &[&name[..], &query].concat());
            assert_eq!(replies[0].0, reply::META_CONTEXT);
        }
        let replies = self.option(option::GO, &[&name[..], &[0, 0]].concat());
        assert_eq!(replies.last().map(|(kind, _)| *kind), Some(reply::ACK));
        for (_, data) in &replies {
            if data.len() == 12 {
                self.size = u64_at(data, 2);
                self.flags = u16_at(data, 10);
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    pub fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.socket
            .read_exact(&mut bytes)
            .expect("the server answers");
        bytes
    }

    /// Returns true if the server has closed the connection, and said no more.
    pub fn is_closed(&mut self) -> bool {
        match self.socket.read(&mut [0; 1]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Sends an option, and waits for the last reply to it.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut bytes = wire::IHAVEOPT.to_be_bytes().to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes);
        let mut replies = Vec::new();
        loop {
            let head = self.read(20);
            let mut expected = Vec::new();
            put_option_reply(&mut expected, option, u32_at(&head, 12), &[]);
            assert_eq!(head[..16], expected[..16]);
            let kind = u32_at(&head, 12);
            let data = self.read(u32_at(&head, 16) as usize);
            replies.push((kind, data));
            if kind == reply::ACK || kind > 1 << 31 {
                return replies;
            }
        }
    }

    /// Sends a request, and its data; returns its cookie.
    pub fn request(&mut self, command: u16, flags: u16, offset: u64, len: u32, data: &[u8]) -> u64 {
        let cookie = self.next;
        self.next += 1;
        let request = Request {
            flags,
            command,
            cookie,
            offset,
            len,
        };
        let mut bytes = request.to_bytes().to_vec();
        bytes.extend(data);
        self.send(&bytes);
        cookie
    }

    /// Reads the next reply. `len` is the number of bytes of a successful read.
    pub fn reply(&mut self, len: usize) -> Reply {
        let magic = u32_at(&self.read(4), 0);
        if magic == wire::SIMPLE_REPLY_MAGIC {
            let head = self.read(12);
            let error = u32_at(&head, 0);
            return Reply {
                cookie: u64_at(&head, 4),
                error,
                at: None,
                data: match error {
                    0 => self.read(len),
                    _ => Vec::new(),
                },
            };
        }
        assert_eq!(magic, wire::STRUCTURED_REPLY_MAGIC);
        assert!(self.structured);
        let head = self.read(16);
        assert_eq!(u16_at(&head, 0), wire::chunk::DONE, "all is in one chunk");
        let body = self.read(u32_at(&head, 12) as usize);
        let mut reply = Reply {
            cookie: u64_at(&head, 4),
            error: 0,
            at: None,
            data: Vec::new(),
        };
        match u16_at(&head, 2) {
            wire::chunk::OFFSET_DATA => {
                reply.at = Some(u64_at(&body, 0));
                reply.data = body[8..].to_vec();
            }
            wire::chunk::BLOCK_STATUS => reply.data = body,
            kind @ (wire::chunk::ERROR | wire::chunk::ERROR_OFFSET) => {
                reply.error = u32_at(&body, 0);
                let text = 6 + usize::from(u16_at(&body, 4));
                assert!(std::str::from_utf8(&body[6..text]).is_ok());
                match kind {
                    wire::chunk::ERROR => assert_eq!(body.len(), text),
                    _ => reply.at = Some(u64_at(&body, text)),
                }
            }
            kind => panic!("a chunk of kind {kind}"),
        }
        reply
    }

    /// The next simple reply, whose data are as long as `len` says of its cookie.
    pub fn reply_of(&mut self, len: impl Fn(u64) -> usize) -> Reply {
        let magic = u32_at(&self.read(4), 0);
        assert_eq!(magic, wire::SIMPLE_REPLY_MAGIC);
        let head = self.read(12);
        let (error, cookie) = (u32_at(&head, 0), u64_at(&head, 4));
        let data = self.read(if error == 0 { len(cookie) } else { 0 });
        Reply {
            cookie,
            error,
            at: None,
            data,
        }
    }

    /// Sends a request and waits for its reply.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, len: u32, data: &[u8]) -> Reply {
        let cookie = self.request(command, flags, offset, len, data);
        let reply = self.reply(if command == command::READ {
            len as usize
        } else {
            0
        });
        assert_eq!(reply.cookie, cookie);
        reply
    }

    pub fn pread(&mut self, offset: u64, len: u32) -> Vec<u8> {
        let reply = self.ask(command::READ, 0, offset, len, b"");
        assert_eq!(reply.error, 0);
        assert!(reply.at.is_none_or(|at| at == offset));
        assert_eq!(reply.data.len(), len as usize);
        reply.data
    }

    pub fn pwrite(&mut self, offset: u64, data: &[u8]) {
        let reply = self.ask(command::WRITE, 0, offset, data.len() as u32, data);
        assert_eq!(reply.error, 0);
    }
}

pub fn unix(path: &Path) -> UnixStream {
    let socket = UnixStream::connect(path).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}
