//! Copies of served disks, as the command line has them.

use super::common::{Server, headtime, run, wait_until};
use super::nbd::{Ask, Client};
use super::scrub::{FILE, config, done, left, limited, reaches, refused, status};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
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

/// Asserts that the image has a prefix of the writes, and no others. Returns the number of writes in it.
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
fn a_copy_of_a_part_that_is_killed_while_clients_write_at_its_edges_is_the_part_at_one_write() {
    // Ten seconds of reading.
    let config = config("scrub = \"state\"\nsole_writer = true").replace("16MiB", "64MiB");
    let mut server = Server::start("copy-part", &config, &[]);
    let mut killed = Vec::new();
    // Of pages of 4 KiB; both edges lie in the middle of a block.
    let (first, end) = (257_u64, 15_873_u64);
    let range = format!("{}KiB-{}KiB", first * 4, end * 4);
    let copy = ["--copy", "image", "--block", "16KiB", "--range", &range];
    let copy = [&copy[..], &["--idle", "1ms"]].concat();
    let edges = [first, end].into_iter();
    let places: Vec<u64> = edges.flat_map(|edge| edge - 3..edge + 3).collect();
    let write = |client: &mut Client, nth: u64| {
        let page = places[nth as usize * 7 % places.len()];
        let mut data: Vec<u8> = nth.to_le_bytes().repeat(512);
        assert_eq!(client.ask(Ask::Write, page * 4096, &mut data).unwrap(), 0);
    };
    let mut nth = 0;
    for round in 0..3 {
        let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
        if round == 0 {
            done(&server, &[&copy[..], &["--no-wait"]].concat());
        }
        for _ in 0..30 {
            nth += 1;
            write(&mut client, nth);
            thread::sleep(Duration::from_millis(5));
        }
        let now = status(&server);
        assert_eq!(now["state"], "running", "{now:#}");
        assert_eq!(now["blocks"], 3905);
        assert_eq!(now["copy"]["bytes"][1], end * 4096);
        server.signal("KILL");
        server.end();
        let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
        let next = Server::spawn(server.directory.clone(), &mut again);
        killed.push(std::mem::replace(&mut server, next));
    }
    assert!((1..3905).contains(&left(&server)), "{}", left(&server));
    let stops = Arc::new(AtomicBool::new(false));
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let all = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stops.load(Ordering::SeqCst) {
                nth += 1;
                write(&mut client, nth);
                if nth.is_multiple_of(4) {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            nth
        });
        let out = done(&server, &copy);
        let text = format!(
            "image is {}KiB-{}KiB of the disk as it was",
            first * 4,
            end * 4
        );
        stops.store(true, Ordering::SeqCst);
        assert!(out.contains(&text), "{out}");
        writer.join().unwrap()
    });
    let image = fs::read(server.path("image")).unwrap();
    assert_eq!(image.len() as u64, (end - first) * 4096);
    let word = |page: u64| {
        let at = (page - first) as usize * 4096;
        let page = &image[at..at + 4096];
        assert!(page.chunks(8).all(|word| word == &page[..8]));
        u64::from_le_bytes(page[..8].try_into().unwrap())
    };
    let line = (first..end).map(word).max().unwrap();
    assert!((80..=all).contains(&line), "{line} of {all}");
    for page in first..end {
        let mut writes = (1..=line).rev();
        let last = writes.find(|nth| places[*nth as usize * 7 % places.len()] == page);
        assert_eq!(word(page), last.unwrap_or(0), "{page} at {line}");
    }
    assert!(!server.path("state/disk0.copy").exists());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_copy_that_finds_no_room_is_held_and_goes_on_when_there_is_some() {
    finds_no_room("copy-full", None);
}

#[test]
fn a_copy_of_a_part_that_finds_no_room_is_held_and_goes_on_when_there_is_some() {
    // The part includes unreadable sectors.
    finds_no_room("copy-part-full", Some(5_000..15_000_001));
}

fn finds_no_room(name: &str, part: Option<Range<usize>>) {
    let config = config("scrub = \"state\"");
    let mut server = limited(name, &config);
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
    let mut copy = vec!["--copy", "image", "--idle", "1ms", "--block", "64KiB"];
    let range = part.as_ref();
    let range = range.map(|part| format!("{}B-{}B", part.start, part.end));
    if let Some(range) = &range {
        copy.extend(["--range", range]);
    }
    done(&server, &[&copy[..], &["--no-wait"]].concat());
    // Half of the data that are not zeroes.
    if !server.limit_files("4194304") {
        return;
    }
    reaches(&server, "held");
    let held = status(&server);
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("image: File too large"), "{why}");
    assert!(left(&server) > 64, "{held:#}");
    let (exit, error) = refused(&server, &["--copy", "other"]);
    assert_eq!(exit, Some(1), "{error}");
    assert!(error.contains("another copy"), "{error}");
    // Without room `resume` fails, the scrub is held again, and clients are served.
    let (exit, error) = refused(&server, &["resume"]);
    assert_eq!(exit, Some(1), "{error}");
    assert!(error.contains("image: File too large"), "{error}");
    reaches(&server, "held");
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
    let part = part.unwrap_or(0..disk.len());
    assert_eq!(image.len(), part.len());
    assert_eq!(image[(5 << 20) - part.start], 99);
    assert!(image == disk[part]);
}

#[test]
fn a_copy_is_refused_beside_hashes_and_over_a_file_and_of_another_range() {
    let mut server = Server::start("copy-refused", FILE, &[]);
    let copy = ["--copy", "image"];
    let (exit, error) = refused(&server, &[&copy[..], &["--hash", "hashes"]].concat());
    assert_eq!(exit, Some(2), "{error}");
    // Nothing is read meanwhile.
    let range = |range| [&copy[..], &["--idle", "60s", "--range", range]].concat();
    for (part, exits, problem) in [
        ("1MiB-5MiB", 1, "1MiB..5MiB: allowed is a part"),
        ("2MiB-1MiB", 2, "before the end"),
    ] {
        let (exit, error) = refused(&server, &range(part));
        assert_eq!(exit, Some(exits), "{error}");
        assert!(error.contains(problem), "{error}");
        assert!(!server.path("image").exists());
    }
    done(&server, &[&range("1MiB-3MiB")[..], &["--no-wait"]].concat());
    for other in [&copy[..], &range("1MiB-2MiB")] {
        let (exit, error) = refused(&server, other);
        assert_eq!(exit, Some(1), "{error}");
        let has = "an unfinished scrub has another range, 1MiB-3MiB; go on with it";
        assert!(error.contains(has), "{error}");
    }
    done(&server, &["stop"]);
    wait_until(
        || status(&server)["state"] == "stopped",
        || format!("{:#}", status(&server)),
    );
    fs::remove_file(server.path("image")).unwrap();
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
