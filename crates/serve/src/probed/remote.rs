//! Disk behind an NBD server, as a probe. The server may be `headtime serve` or another one.
//!
//! The measured times include two processes and a socket.

use crate::nbd::wire::{
    self, Request, command, info, option, put_option_reply, reply, u16_at, u32_at, u64_at,
};
use headtime_linux::clock::Clock;
use headtime_linux::shown::one_line;
use headtime_probe::{Answer, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for a server's answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of commands at a time.
const DEPTH: usize = 32;
/// Longest message of a handshake.
const MESSAGE_MAX: u32 = 1 << 16;

/// Export of an NBD server.
#[derive(Debug)]
pub struct Remote {
    name: String,
    identity: String,
    socket: UnixStream,
    capacity: Sectors,
    sector_bytes: u32,
    clock: Clock,
    /// Commands by tag: the time at which the command was sent, and the bytes that its reply brings.
    sent: Vec<Option<(Time, u32)>>,
    data: Vec<u8>,
}

fn refused(text: String) -> io::Error {
    io::Error::other(text)
}

impl Remote {
    /// Connects to an export. An empty name stands for the only export.
    ///
    /// # Errors
    ///
    /// If no server listens there, if the server does not speak NBD, or if the server has no such export.
    pub fn connect(path: &Path, export: &str) -> io::Result<Remote> {
        let mut socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting)?;
        let is_nbd =
            u64_at(&greeting, 0) == wire::NBDMAGIC && u64_at(&greeting, 8) == wire::IHAVEOPT;
        if !is_nbd || u16_at(&greeting, 16) & wire::FLAG_FIXED_NEWSTYLE == 0 {
            return Err(refused("there is no NBD server of today".to_owned()));
        }
        let mut go = u32::from(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES)
            .to_be_bytes()
            .to_vec();
        let name = [&(export.len() as u32).to_be_bytes(), export.as_bytes()].concat();
        go.extend(wire::IHAVEOPT.to_be_bytes());
        go.extend(option::GO.to_be_bytes());
        go.extend((name.len() as u32 + 4).to_be_bytes());
        go.extend(name);
        go.extend(1_u16.to_be_bytes());
        go.extend(info::BLOCK_SIZE.to_be_bytes());
        socket.write_all(&go)?;
        let (mut bytes, mut sector_bytes) = (0, 512);
        loop {
            let (kind, data) = Remote::reply(&mut socket)?;
            match (kind, data.len()) {
                (reply::ACK, _) => break,
                (reply::INFO, 12) if u16_at(&data, 0) == info::EXPORT => bytes = u64_at(&data, 2),
                (reply::INFO, 14) if u16_at(&data, 0) == info::BLOCK_SIZE => {
                    sector_bytes = u32_at(&data, 2).clamp(512, 4096);
                }
                (reply::INFO, _) => {}
                _ => {
                    let said = one_line(&String::from_utf8_lossy(&data));
                    return Err(refused(format!(
                        "the export `{export}` cannot be had: {said}"
                    )));
                }
            }
        }
        let named = |path: &Path| match (export, one_line(&path.to_string_lossy())) {
            ("", path) => path,
            (export, path) => format!("{export} of {path}"),
        };
        Ok(Remote {
            name: named(path),
            // The identity does not depend on how the path was typed.
            identity: named(&path.canonicalize()?),
            socket,
            capacity: Sectors::new(bytes / u64::from(sector_bytes)),
            sector_bytes,
            clock: Clock::start(),
            sent: vec![None; DEPTH],
            data: Vec::new(),
        })
    }

    /// Name that no other export of this machine has. The name has the whole path of the socket.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Reads a reply to [`option::GO`].
    fn reply(socket: &mut UnixStream) -> io::Result<(u32, Vec<u8>)> {
        let mut head = [0; 20];
        socket.read_exact(&mut head)?;
        let (kind, len) = (u32_at(&head, 12), u32_at(&head, 16));
        let mut expected = Vec::new();
        put_option_reply(&mut expected, option::GO, kind, &[]);
        if head[..16] != expected[..16] || len > MESSAGE_MAX {
            return Err(refused(
                "the server does not answer what was asked".to_owned(),
            ));
        }
        let mut data = vec![0; len as usize];
        socket.read_exact(&mut data)?;
        Ok((kind, data))
    }

    /// Reads the next reply. Returns its tag and its error number, which is zero for success.
    fn next(&mut self) -> io::Result<(u16, u32)> {
        let mut head = [0; 16];
        self.socket.read_exact(&mut head)?;
        let (error, tag) = (u32_at(&head, 4), u64_at(&head, 8));
        let sent = self.sent.get(tag as usize).copied().flatten();
        let known = u32_at(&head, 0) == wire::SIMPLE_REPLY_MAGIC && tag < DEPTH as u64;
        let Some((_, bytes)) = sent.filter(|_| known) else {
            return Err(refused("the server answers what was not asked".to_owned()));
        };
        if error == 0 {
            self.data.resize(bytes as usize, 0);
            self.socket.read_exact(&mut self.data)?;
        }
        Ok((tag as u16, error))
    }
}

impl Probe for Remote {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn depth(&self) -> u16 {
        DEPTH as u16
    }

    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        let place = &mut self.sent[usize::from(tag)];
        assert!(place.is_none(), "tag {tag} is in use");
        let bytes = extent.len.bytes(self.sector_bytes) as u32;
        let (command, brings) = match op {
            Op::Read => (command::READ, bytes),
            Op::Write => (command::WRITE, 0),
            Op::Flush => (command::FLUSH, 0),
            Op::Discard => (command::TRIM, 0),
        };
        let flush = op == Op::Flush;
        let request = Request {
            flags: 0,
            command,
            cookie: tag.into(),
            offset: if flush {
                0
            } else {
                extent.start.get() * u64::from(self.sector_bytes)
            },
            len: if flush { 0 } else { bytes },
        };
        let mut message = request.to_bytes().to_vec();
        if op == Op::Write {
            message.resize(message.len() + bytes as usize, 0);
        }
        let now = self.clock.now();
        self.socket
            .write_all(&message)
            .map_err(|error| ProbeError::Failed {
                op,
                extent,
                source: error.into(),
            })?;
        *place = Some((now, brings));
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        assert!(
            self.sent.iter().any(Option::is_some),
            "no command is under way"
        );
        let (tag, error) = self.next().map_err(|error| ProbeError::Failed {
            op: Op::Read,
            extent: Extent::at(0, 0),
            source: error.into(),
        })?;
        let at = self.clock.now();
        let (sent, _) = self.sent[usize::from(tag)].take().expect("it was asked");
        Ok(Answer {
            tag,
            sent,
            at,
            failure: (error != 0).then(|| format!("the server says error {error}").into()),
        })
    }

    fn pause(&mut self, span: Nanos) {
        super::sleep(span);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let end = Request {
            flags: 0,
            command: command::DISC,
            cookie: 0,
            offset: 0,
            len: 0,
        };
        // The server also ends the session with the connection.
        let _ = self.socket.write_all(&end.to_bytes());
    }
}
