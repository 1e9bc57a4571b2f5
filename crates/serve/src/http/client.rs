//! A client of the control socket. Supports only the part of HTTP that one request and one answer need.

use headtime_linux::clock::Clock;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest time for an answer, longer than any request takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Largest size of an answer, enough for the state of hundreds of exports.
const ANSWER_MAX: u64 = 64 << 20;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status; 200 after a success.
    pub status: u16,
    /// Body of the answer.
    pub body: String,
}

/// Sends a request to the server behind a control socket.
///
/// # Errors
///
/// If no server listens at the socket, or the answer is not HTTP.
///
/// # Panics
///
/// If method or target contain blanks or line ends. Callers build both from text without them.
pub fn ask(socket: &Path, method: &str, target: &str, body: &str) -> io::Result<Answer> {
    ask_within(PATIENCE, socket, method, target, body)
}

/// Sends a request like [`ask`]. The whole answer has to come within `patience`.
///
/// # Errors
///
/// As [`ask`], and if the answer takes longer.
///
/// # Panics
///
/// As [`ask`].
pub fn ask_within(
    patience: Duration,
    socket: &Path,
    method: &str,
    target: &str,
    body: &str,
) -> io::Result<Answer> {
    assert!(!method.contains(char::is_whitespace) && !target.contains(char::is_whitespace));
    let mut stream = Limited::connect(socket, patience)?;
    let len = body.len();
    let question = format!(
        "{method} {target} HTTP/1.1\r\nHost: headtime\r\nConnection: close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len}\r\n\r\n{body}"
    );
    // A server that refuses may answer and close before it has read the body. Writing then fails, or the read after the
    // answer fails, although the answer is complete.
    let asked = stream.write_all(question.as_bytes());
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_MAX).read_to_end(&mut answer);
    if let Some(answer) = parse(&answer) {
        return Ok(answer);
    }
    asked?;
    read?;
    let problem = "the answer is not HTTP";
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// A connection with a time limit.
struct Limited {
    stream: UnixStream,
    /// Clock that started before the connection.
    clock: Clock,
    patience: Duration,
}

impl Limited {
    /// Connects. If the server accepts no clients, connecting fails when the time is over.
    fn connect(path: &Path, patience: Duration) -> io::Result<Limited> {
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let limited = Limited {
            stream: UnixStream::from(socket),
            clock: Clock::start(),
            patience,
        };
        // The kernel limits `connect` by the time for writing.
        limited.stream.set_write_timeout(limited.left()?)?;
        rustix::net::connect(&limited.stream, &SocketAddrUnix::new(path)?)?;
        Ok(limited)
    }

    /// Remaining time.
    fn left(&self) -> io::Result<Option<Duration>> {
        let spent = Duration::from_nanos(self.clock.now().as_nanos());
        let left = self.patience.saturating_sub(spent);
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Limited {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(to)
    }
}

impl Write for Limited {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Parses an answer. The server gives the answer's length and closes the connection afterwards.
fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    first
        .next()
        .filter(|version| version.starts_with("HTTP/1."))?;
    let status = first.next()?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = answer[end + 4..].get(..length)?;
    let body = String::from_utf8_lossy(body).into_owned();
    Some(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_answer_from_a_server_that_does_not_read_the_body_is_an_answer() {
        let folder = Folder::new();
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let refusal = b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n";
            stream.write_all(refusal).unwrap();
        });
        // The body is larger than the socket's buffer.
        let body = "x".repeat(8 << 20);
        let answer = ask(&socket, "POST", "/disks/none/fault", &body).unwrap();
        server.join().unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "no\n"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the server is slow")]
    fn an_answer_that_trickles_is_given_up_in_time() {
        let folder = Folder::new();
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The loop ends with the connection, or after 20 s.
            for _ in 0..400 {
                std::thread::sleep(Duration::from_millis(50));
                if stream.write_all(b"x").is_err() {
                    break;
                }
            }
        });
        let patience = Duration::from_millis(300);
        let error = ask_within(patience, &socket, "GET", "/", "").unwrap_err();
        let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
        assert!(kinds.contains(&error.kind()), "{error:?}");
        server.join().unwrap();
    }

    #[test]
    fn a_server_that_accepts_nobody_is_given_up_in_time() {
        let folder = Folder::new();
        let path = folder.join("socket");
        let address = SocketAddrUnix::new(&path).unwrap();
        let server = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&server, &address).unwrap();
        rustix::net::listen(&server, 0).unwrap();
        let _waits = UnixStream::connect(&path).unwrap();
        let patience = Duration::from_millis(300);
        let error = ask_within(patience, &path, "GET", "/", "").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn answers_are_read_with_status_and_body() {
        let answer = parse(b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\nx: y\r\n\r\nno\n");
        let expected = Answer {
            status: 404,
            body: "no\n".to_owned(),
        };
        assert_eq!(answer, Some(expected));
        for broken in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 x\r\ncontent-length: 0\r\n\r\n",
        ] {
            assert_eq!(parse(broken), None);
        }
    }
}
