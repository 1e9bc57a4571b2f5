//! A log as it is written in pieces, and the times that are read from one.

use headtime_engine::log::{self, Writer};
use headtime_engine::{Event, Member, Seen};
use headtime_units::{Nanos, Time};

#[test]
fn a_piece_is_handed_on_when_it_is_full_and_news_is_what_follows_the_header() {
    let mut handed: Vec<usize> = Vec::new();
    let mut sink = |piece: &str| handed.push(piece.len());
    let piece = Writer::<&mut dyn FnMut(&str)>::PIECE_BYTES;
    assert!(Writer::<&mut dyn FnMut(&str)>::piece().capacity() >= piece);
    let sink: &mut dyn FnMut(&str) = &mut sink;
    let mut log = Writer::new(&[("depth".to_owned(), "4".to_owned())], sink);
    assert!(!log.has_news(), "the header is none");
    for millis in 0..9_000 {
        let now = Time::ZERO + Nanos::from_millis(millis);
        log.write(now, Member::default(), Seen::Event(&Event::Woke));
        assert!(log.has_news());
        log.flush_if_full();
    }
    log.flush();
    assert!(!log.has_news());
    log.finish();
    let (last, full) = handed[..handed.len() - 1].split_last().expect("pieces");
    assert!(!full.is_empty() && *last < piece, "{handed:?}");
    let is_full = |len: &usize| (piece..piece + 64).contains(len);
    assert!(full.iter().all(is_full), "{handed:?}");
}

#[test]
fn the_latest_time_is_read_and_the_one_after_it_is_refused() {
    let read = |nanos: u64| {
        let mut text = String::new();
        log::write_header(&mut text);
        log::write_event(&mut text, Time::from_nanos(nanos), &Event::Woke);
        log::read(&text).last().expect("a record").map(drop)
    };
    let latest = Time::LATEST.as_nanos();
    assert_eq!(read(latest), Ok(()));
    let error = read(latest + 1).expect_err("it is too late").to_string();
    assert!(
        error.contains(&format!("allowed is up to {latest}")),
        "{error}"
    );
}
