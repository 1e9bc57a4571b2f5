//! Checks on the NBD server: the handshake as a function, and whole sessions over a socket.

#[path = "../../crates/serve/src/nbd/handshake/tests/shake.rs"]
mod shake;

use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, WorkConserving};
use headtime_serve::disk::{Addresses, Disk, Export, ExportLimits, Options};
use headtime_serve::nbd::check::{Action, Refusal, check};
use headtime_serve::nbd::handshake::{Choice, Handshake, HandshakeError, Offer, Step};
use headtime_serve::nbd::wire::{
    self, REQUEST_BYTES, Request, chunk, command, u16_at, u32_at, u64_at,
};
use headtime_serve::nbd::{Limits, Listen, Server};
use headtime_serve::null::Null;
use headtime_units::Sectors;
use shake::shake;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Sectors of the disk: small, so that reads of the whole of it are cheap.
const SECTORS: u64 = 512;

/// Actions and their bytes, by cookie, in the order of the requests.
type Expected = BTreeMap<u64, Vec<(Action, u32)>>;

fn offer() -> Offer {
    Offer {
        name: "null".into(),
        description: "disk null".into(),
        addresses: Addresses::whole(SECTORS * 512, 512),
        read_only: false,
        discards: true,
    }
}

/// `bytes` as records: a byte that says what it is, a length, and so many bytes.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [kind, len, rest @ ..] = bytes else {
            return None;
        };
        let (record, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        bytes = rest;
        Some((*kind, record))
    })
}

/// The first byte is a length of pieces; then there are records, which are options (kinds below 16),
/// options whose length is wrong (below 32), or just bytes.
pub fn handshake(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    let mut input = vec![0, 0, 0, 3];
    for (kind, record) in records(bytes) {
        if kind < 32 {
            input.extend(wire::IHAVEOPT.to_be_bytes());
            input.extend(u32::from(kind % 16).to_be_bytes());
            let len = record.len() as u32;
            let len = if kind < 16 { len } else { len * 77_777 };
            input.extend(len.to_be_bytes());
        }
        input.extend(record);
    }
    let shake = |piece| shake(Handshake::new([offer()].into()), &input, piece);
    let whole = shake(input.len());
    let (_, result, replies) = &whole;
    if let Ok(Some(Step::Transmission(choice))) = result {
        assert_eq!(choice.export, 0);
        assert!(choice.structured || !choice.allocation);
    } else {
        well_formed(replies);
    }
    assert_eq!(shake(usize::from(*piece) + 1), whole);
}

fn well_formed(mut replies: &[u8]) {
    while !replies.is_empty() {
        assert_eq!(u64_at(replies, 0), wire::OPTION_REPLY_MAGIC);
        replies = &replies[20 + u32_at(replies, 16) as usize..];
    }
}

/// A server of a null device, for as long as the process lives.
fn server() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
        let options = Options::new("null", Clock::start(), ("noop".into(), Box::new(build)));
        let null = || Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(SECTORS), 32)) as Box<_>);
        let disk = Disk::start(options, null).expect("starts");
        let export = Export {
            name: "null".into(),
            number: 0,
            class: Class::default(),
            read_only: false,
            addresses: disk.addresses(),
            program: 0,
            limits: ExportLimits::default(),
            disk,
        };
        let name = format!("headtime-fuzz-nbd-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listen = [Listen::unix(&path)];
        let server = Server::bind(&listen, vec![export], Limits::default()).expect("binds");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(server.run(std::future::pending()))
        });
        path
    })
}

/// The first byte says whether replies are structured; then there are records, which are requests
/// (kinds below 128: flags, command, offset, length; the data of a write follow by themselves),
/// requests in full with a header of any kind (below 192), or just bytes.
pub fn messages(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let choice = Choice {
        export: 0,
        structured: first & 1 != 0,
        allocation: first & 3 == 3,
    };
    let mut input = Vec::new();
    for (cookie, (kind, record)) in (0..).zip(records(bytes)) {
        match (kind, record) {
            (..128, [flags, command, at, len, ..]) => {
                let request = Request {
                    flags: (*flags).into(),
                    command: (command % 10).into(),
                    cookie,
                    // Multiples of 256, some of them of 512, and some beyond the end.
                    offset: u64::from(*at) << 10 | u64::from(kind & 1) << 8,
                    len: u32::from(*len) << 9 | u32::from(kind & 2) << 7,
                };
                input.extend(request.to_bytes());
                if request.command == command::WRITE {
                    input.resize(input.len() + request.len as usize, kind);
                }
            }
            (128..192, record) => {
                input.extend(wire::REQUEST_MAGIC.to_be_bytes());
                input.extend(record);
            }
            _ => input.extend(record),
        }
    }
    let output = talk(choice, &input);
    let expected = expected(choice, &input);
    replies(choice, &output, &expected);
}

/// What the server says after the handshake.
fn talk(choice: Choice, input: &[u8]) -> Vec<u8> {
    let mut socket = UnixStream::connect(server()).expect("listens");
    let patience = Some(Duration::from_secs(5));
    socket.set_read_timeout(patience).expect("a timeout");
    socket.set_write_timeout(patience).expect("a timeout");
    let mut hello = vec![0, 0, 0, 3];
    let mut answer = 18;
    let mut option = |option: u32, data: &[u8], replies: usize| {
        hello.extend(wire::IHAVEOPT.to_be_bytes());
        hello.extend(option.to_be_bytes());
        hello.extend((data.len() as u32).to_be_bytes());
        hello.extend(data);
        answer += replies;
    };
    if choice.structured {
        option(wire::option::STRUCTURED_REPLY, b"", 20);
    }
    if choice.allocation {
        let query = b"\0\0\0\x04null\0\0\0\x01\0\0\0\x0fbase:allocation";
        option(wire::option::SET_META_CONTEXT, query, 20 + 19 + 20);
    }
    option(
        wire::option::GO,
        b"\0\0\0\x04null\0\0",
        20 + 14 + 20 + 12 + 20,
    );
    socket.write_all(&hello).expect("reads");
    socket.read_exact(&mut vec![0; answer]).expect("answers");
    let mut sender = socket.try_clone().expect("the same socket");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The server may hang up before it has read all.
            let _ = sender.write_all(input);
            let _ = sender.shutdown(Shutdown::Write);
        });
        let mut output = Vec::new();
        match socket.read_to_end(&mut output) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        output
    })
}

/// Requests with an answer: cookie, kind and length. A cookie may occur several times.
/// The `bool` says whether the connection then ends well; if not, the last may go unanswered.
fn expected(choice: Choice, mut input: &[u8]) -> (Expected, bool) {
    let mut expected = Expected::new();
    while let Some(header) = input.first_chunk::<REQUEST_BYTES>() {
        let Ok(request) = Request::parse(header) else {
            return (expected, false);
        };
        let action = check(&request, &offer(), &choice);
        let data = match action {
            Action::Disconnect => return (expected, true),
            Action::Drop(_) => return (expected, false),
            Action::Write(..) => request.len as usize,
            Action::Refuse(Refusal { skip, .. }) => skip as usize,
            _ => 0,
        };
        let Some(rest) = input.get(REQUEST_BYTES + data..) else {
            break;
        };
        input = rest;
        expected
            .entry(request.cookie)
            .or_default()
            .push((action, request.len));
    }
    (expected, true)
}

fn replies(choice: Choice, mut output: &[u8], (expected, well): &(Expected, bool)) {
    let mut left = expected.clone();
    while !output.is_empty() {
        let (cookie, error, len);
        if u32_at(output, 0) == wire::SIMPLE_REPLY_MAGIC {
            cookie = u64_at(output, 8);
            error = u32_at(output, 4);
            assert!(error == 0 || !choice.structured);
            // Cookies are the client's business; with two of a kind there is no telling.
            match &expected[&cookie][..] {
                [(Action::Read(_), bytes)] if error == 0 => {
                    assert!(!choice.structured);
                    len = 16 + *bytes as usize;
                }
                [_] => len = 16,
                _ => return,
            }
        } else {
            assert_eq!(u32_at(output, 0), wire::STRUCTURED_REPLY_MAGIC);
            assert!(choice.structured);
            assert_eq!(u16_at(output, 4), chunk::DONE);
            cookie = u64_at(output, 8);
            let kind = u16_at(output, 6);
            error = if kind & 1 << 15 == 0 {
                0
            } else {
                u32_at(output, 20)
            };
            assert_eq!(error != 0, kind & 1 << 15 != 0);
            len = 20 + u32_at(output, 16) as usize;
        }
        let of_cookie = left.get_mut(&cookie).expect("an answer to a request");
        let (action, _) = of_cookie.pop().expect("one answer to each request");
        if let ([_], Action::Refuse(refusal)) = (&expected[&cookie][..], action) {
            assert_eq!(error, refusal.error as u32);
        } else if expected[&cookie].len() == 1 {
            assert_eq!(error, 0, "{action:?}");
        }
        if *well {
            output = &output[len..];
        } else {
            // It was cut off somewhere.
            output = output.get(len..).unwrap_or_default();
        }
    }
    if *well {
        assert!(left.values().all(Vec::is_empty), "no answer to {left:?}");
    }
}
