//! Copies of served disks, as the command line has them.

use super::common::{Server, headtime, run, wait_until};
use super::nbd::{Ask, Client};
use super::scrub::{FILE, config, done, left, limited, refused, status};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Between two places that are written to.
const APART: usize = 64 << 10;

/// Writes its number to one of 1024 places.
fn write(client: &mut Client, nth: u64) {
    let mut data: Vec<u8> = nth.to_le_bytes().repeat(512);
    let at = nth * 7919 % 1024 * APART as u64;
    assert_eq!(client.ask(Ask::Write, at, &mut data).unwrap(), 0);
}

/// The image has the first so many writes, and no others. Returns how many.
fn holds(image: &[u8]) -> u64 {
    let words: Vec<u64> = (image.chunks(APART))
        .map(|apart| {
            let (page, rest) = apart.split_at(4096);
            assert!(rest.iter().all(|byte| *byte == 0));
            assert!(page.chunks(8).all(|word| word == &page[..8]));
            u64::from_le_bytes(page[..8].try_into().unwrap())
        })
        .collect();
    let line = words.iter().copied().max().unwrap();
    let last: BTreeMap<u64, u64> = (1..=line).map(|nth| (nth * 7919 % 1024, nth)).collect();
    for (place, word) in (0..).zip(words) {
        assert_eq!(
            word,
            last.get(&place).copied().unwrap_or(0),
            "{place} at {line}"
        );
    }
    line
}

#[test]
fn a_copy_that_is_killed_again_and_again_while_clients_write_is_the_disk_at_one_write() {
    // Ten seconds of reading.
    let config = config("scrub = \"state\"\nsole_writer = true").replace("16MiB", "64MiB");
    let mut server = Server::start("copy-kills", &config, &[]);
    // The first one has the directory.
    let mut killed = Vec::new();
    let copy = ["--copy", "image", "--idle", "1ms", "--block", "4KiB"];
    let mut nth = 0;
    for round in 0..5 {
        let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
        for _ in 0..40 {
            nth += 1;
            write(&mut client, nth);
        }
        if round == 0 {
            done(&server, &[&copy[..], &["--no-wait"]].concat());
        }
        for _ in 0..20 {
            nth += 1;
            write(&mut client, nth);
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(status(&server)["state"], "running");
        server.signal("KILL");
        server.end();
        let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
        let next = Server::spawn(server.directory.clone(), &mut again);
        killed.push(std::mem::replace(&mut server, next));
    }
    let before = left(&server);
    assert!((1..16_000).contains(&before), "{before}");
    let (stops, mut client) = (
        Arc::new(AtomicBool::new(false)),
        Client::connect(&server.path("nbd.sock"), "disk0").unwrap(),
    );
    let writer = {
        let stops = Arc::clone(&stops);
        thread::spawn(move || {
            while !stops.load(Ordering::SeqCst) {
                nth += 1;
                write(&mut client, nth);
                if nth.is_multiple_of(4) {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            nth
        })
    };
    let out = done(&server, &copy);
    stops.store(true, Ordering::SeqCst);
    let all = writer.join().unwrap();
    assert!(
        out.contains("image is the disk as it was at one moment"),
        "{out}"
    );
    let line = holds(&fs::read(server.path("image")).unwrap());
    assert!((300..=all).contains(&line), "{line} of {all}");
    assert!(!server.path("state/disk0.copy").exists());
    let metrics = server.told(&["metrics"]);
    assert!(
        metrics.contains("headtime_scrub_blocks_wanted_again_total{disk=\"disk0\"} "),
        "{metrics}"
    );
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_copy_that_finds_no_room_is_held_and_goes_on_when_there_is_some() {
    let config = config("scrub = \"state\"");
    let mut server = limited("copy-full", &config);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    for nth in 0..16 {
        let mut data = vec![nth as u8 + 1; 512 << 10];
        assert_eq!(
            client
                .ask(Ask::Write, nth * (512 << 10), &mut data)
                .unwrap(),
            0
        );
    }
    let fault = [
        "fault",
        "unreadable",
        "disk0",
        "--lba",
        "17",
        "--retries",
        "0",
    ];
    server.told(&fault);
    let copy = ["--copy", "image", "--idle", "1ms", "--block", "64KiB"];
    done(&server, &[&copy[..], &["--no-wait"]].concat());
    // Half of what is not zeroes.
    if !server.limit_files("4194304") {
        return;
    }
    wait_until(
        || status(&server)["state"] == "held",
        || format!("{:#}", status(&server)),
    );
    let held = status(&server);
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("image: File too large"), "{why}");
    assert!(left(&server) > 64, "{held:#}");
    let (exit, error) = refused(&server, &["--copy", "other"]);
    assert_eq!(exit, Some(1), "{error}");
    assert!(error.contains("another copy"), "{error}");
    // Without room it is held again, and clients are served.
    done(&server, &["resume"]);
    wait_until(
        || status(&server)["state"] == "held",
        || format!("{:#}", status(&server)),
    );
    let mut back = [0; 4096];
    assert_eq!(client.ask(Ask::Read, 1 << 20, &mut back).unwrap(), 0);
    server.limit_files("unlimited");
    let mut data = [99; 4096];
    assert_eq!(client.ask(Ask::Write, 5 << 20, &mut data).unwrap(), 0);
    let (exit, error) = refused(&server, &copy);
    assert_eq!(exit, Some(1), "{error}");
    assert!(error.contains("1 sector cannot be read"), "{error}");
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    let (image, mut disk) = (
        fs::read(server.path("image")).unwrap(),
        fs::read(server.path("disk0.img")).unwrap(),
    );
    disk[17 * 512..18 * 512].fill(0);
    assert!(image == disk);
    assert_eq!(image[5 << 20], 99);
}

#[test]
fn a_copy_is_refused_beside_hashes_and_of_a_part_and_over_a_file() {
    let mut server = Server::start("copy-refused", FILE, &[]);
    for more in [["--hash", "hashes"], ["--range", "1MiB-2MiB"]] {
        let (exit, error) = refused(&server, &[&["--copy", "image"][..], &more].concat());
        assert_eq!(exit, Some(2), "{error}");
    }
    let (exit, error) = refused(&server, &["status", "--copy", "image"]);
    assert_eq!(exit, Some(2), "{error}");
    let (exit, error) = refused(&server, &["--copy", "disk0.img"]);
    assert_eq!(exit, Some(1), "{error}");
    assert!(error.contains("disk0.img: it is there already"), "{error}");
    assert!(!server.path("image").exists());
    let none = run(
        &server.directory,
        &["scrub", "control.sock", "disk0", "--copy"],
    );
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(server.terminate(), Some(0));
}
