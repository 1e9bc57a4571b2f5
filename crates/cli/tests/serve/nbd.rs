//! An NBD client for these tests: one connection, simple replies.

use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Kind of request.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Read = 0,
    Write = 1,
    Flush = 3,
    Zeroes = 6,
}

/// An answer: the request's number, and the error's, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub cookie: u64,
    pub error: u32,
}

pub struct Client {
    stream: UnixStream,
    pub bytes: u64,
}

impl Client {
    /// Connects to an export, which the server ends the connection for if it does not exist.
    pub fn connect(socket: &Path, export: &str) -> Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle, no zeroes; then NBD_OPT_EXPORT_NAME.
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1_u32.to_be_bytes());
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        stream.write_all(&hello)?;
        let mut answer = [0; 10];
        stream.read_exact(&mut answer)?;
        let bytes = u64::from_be_bytes(answer[..8].try_into().unwrap());
        Ok(Client { stream, bytes })
    }

    pub fn send(
        &mut self,
        ask: Ask,
        cookie: u64,
        offset: u64,
        len: u32,
        data: &[u8],
    ) -> Result<()> {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(0_u16.to_be_bytes());
        request.extend((ask as u16).to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(len.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request)
    }

    /// The next answer; `data` is filled if it is one to a read that succeeded.
    pub fn answer(&mut self, data: &mut [u8]) -> Result<Answer> {
        let answer = self.reply()?;
        if answer.error == 0 {
            self.read(data)?;
        }
        Ok(answer)
    }

    /// The next answer without its data.
    pub fn reply(&mut self) -> Result<Answer> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(reply[4..8].try_into().unwrap());
        let cookie = u64::from_be_bytes(reply[8..].try_into().unwrap());
        Ok(Answer { cookie, error })
    }

    /// Data of an answer.
    pub fn read(&mut self, data: &mut [u8]) -> Result<()> {
        self.stream.read_exact(data)
    }

    /// Reads bytes and drops them.
    pub fn skip(&mut self, bytes: usize) {
        self.stream.read_exact(&mut vec![0; bytes]).unwrap();
    }

    /// One request and its answer; the error's number.
    pub fn ask(&mut self, ask: Ask, offset: u64, data: &mut [u8]) -> Result<u32> {
        let len = data.len() as u32;
        match ask {
            Ask::Write => {
                self.send(ask, 1, offset, len, data)?;
                Ok(self.answer(&mut [])?.error)
            }
            Ask::Read => {
                self.send(ask, 1, offset, len, &[])?;
                Ok(self.answer(data)?.error)
            }
            Ask::Flush | Ask::Zeroes => {
                self.send(ask, 1, offset, len, &[])?;
                Ok(self.answer(&mut [])?.error)
            }
        }
    }
}
