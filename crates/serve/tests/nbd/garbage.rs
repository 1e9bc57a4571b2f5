//! Ten thousand clients that send nonsense, in a process of their own: file descriptors are counted.

use crate::client::{Client, unix};
use crate::fixture::{Fixture, Setup};
use headtime_serve::nbd::wire::{Request, command, option};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::process::Command;

const CLIENTS: u32 = 10_000;

/// Set for the process in which nothing else runs.
const ALONE: &str = "HEADTIME_TEST_ALONE";

/// Pseudo-random numbers, the same in every run (Knuth's MMIX, upper half).
struct Random(u64);

impl Random {
    fn next(&mut self, below: u32) -> u32 {
        let (a, c) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
        self.0 = self.0.wrapping_mul(a).wrapping_add(c);
        ((self.0 >> 32) as u32) % below
    }

    fn bytes(&mut self, below: u32) -> Vec<u8> {
        (0..self.next(below))
            .map(|_| self.next(256) as u8)
            .collect()
    }
}

/// Options and other things.
fn handshake(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, random.next(5) as u8];
    for _ in 0..random.next(8) {
        match random.next(6) {
            0 => bytes.extend(random.bytes(100)),
            _ => {
                let mut data = random.bytes(64);
                if random.next(2) == 0 {
                    // Data with a valid beginning.
                    data.splice(..0, [0, 0, 0, 4, b'd', b'i', b's', b'k', 0, 0]);
                }
                bytes.extend(b"IHAVEOPT");
                bytes.extend(random.next(13).to_be_bytes());
                let len = data.len() as u32;
                let len = if random.next(10) == 0 {
                    random.next(1 << 31)
                } else {
                    len
                };
                bytes.extend(len.to_be_bytes());
                bytes.extend(data);
            }
        }
    }
    bytes
}

/// Requests and other things.
fn messages(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.next(20) {
        let len = match random.next(4) {
            0 => random.next(1 << 31) * 2,
            _ => 512 * random.next(64),
        };
        let request = Request {
            flags: if random.next(2) == 0 {
                0
            } else {
                random.next(32) as u16
            },
            command: random.next(10) as u16,
            cookie: random.next(1 << 31).into(),
            offset: match random.next(4) {
                0 => u64::from(random.next(1 << 31)) << random.next(33),
                _ => 512 * u64::from(random.next(1 << 17)),
            },
            len,
        };
        bytes.extend(request.to_bytes());
        if request.command == command::WRITE && random.next(4) > 0 {
            bytes.extend(vec![7; len.min(100_000) as usize]);
        }
        if random.next(30) == 0 {
            bytes.extend(random.bytes(64));
        }
    }
    bytes
}

fn descriptors() -> usize {
    let folder = std::fs::read_dir(Path::new("/proc/self/fd"));
    folder.expect("Linux").count()
}

#[test]
fn nonsense_does_no_harm() {
    if std::env::var_os(ALONE).is_some() {
        return be_spoken_to();
    }
    let own = std::env::current_exe().expect("it runs");
    let mut alone = Command::new(own);
    alone.args(["--exact", "garbage::nonsense_does_no_harm", "--nocapture"]);
    let output = alone.env(ALONE, "1").output().expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}

fn be_spoken_to() {
    let fixture = Fixture::new(Setup::default());
    let path = fixture.path();
    Client::connect(&path, "disk").pread(0, 512);
    fixture.all_gone();
    let before = descriptors();

    let mut random = Random(20_261_121);
    for number in 0..CLIENTS {
        let mut socket = unix(&path);
        let mut bytes = Vec::new();
        if number % 2 == 0 {
            bytes.extend(handshake(&mut random));
        } else {
            let structured = random.next(2) == 0;
            bytes.extend([0, 0, 0, 3]);
            if structured {
                bytes.extend(b"IHAVEOPT");
                bytes.extend(option::STRUCTURED_REPLY.to_be_bytes());
                bytes.extend([0; 4]);
            }
            bytes.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x0a\0\0\0\x04disk\0\0");
            bytes.extend(messages(&mut random));
        }
        // The server may have gone by the time.
        let mut sender = socket.try_clone().expect("the same socket");
        let sent = std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let sent = sender.write_all(&bytes);
                let _ = sender.shutdown(Shutdown::Write);
                sent
            });
            // Some do not wait for answers.
            if number % 5 > 0 {
                let mut sink = [0; 65536];
                while socket.read(&mut sink).is_ok_and(|read| read > 0) {}
            }
            drop(socket);
            sending.join().expect("no panic")
        });
        drop(sent);
        fixture.memory.seen();
    }

    // Nobody is left, nothing is open, and a decent client is served.
    fixture.all_gone();
    assert_eq!(descriptors(), before);
    assert_eq!(fixture.counts.connections(), u64::from(CLIENTS) + 1);
    let mut client = Client::connect_structured(&path, "disk");
    client.pwrite(0, &[1; 4096]);
    assert_eq!(client.pread(0, 4096), [1; 4096]);
}
