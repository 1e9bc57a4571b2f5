//! Checks on the reader of the kernel's trace buffer.

use crate::parts;
use headtime_workload::{
    ADDRESS_END, ArrivalEvent, BLOCK_EVENTS, Pairing, RingError, RingEvent, RingPage, RingReader,
};
use std::sync::OnceLock;

/// Real descriptions, with which pages are read.
const DESCRIPTIONS: &str = include_str!("../seeds/ring_format/all");

/// Real pages, which are read with any descriptions.
const PAGES: [&[u8]; 2] = [
    include_bytes!("../seeds/ring_page/busy"),
    include_bytes!("../seeds/ring_page/quiet"),
];

/// The bytes of a page that come before its events, as described.
const HEAD_BYTES: usize = 16;

/// The text before the first mark is `header_page`, the parts are the formats of events.
fn reader(text: &str) -> Result<RingReader, RingError> {
    let (header_page, parts) = parts::split(text);
    let formats = BLOCK_EVENTS.map(|event| {
        let (_, format) = parts.iter().find(|(name, _)| *name == event)?;
        Some(*format)
    });
    RingReader::new(header_page, formats)
}

type Read = (Vec<RingEvent>, Result<RingPage, RingError>);

fn read(reader: &RingReader, page: &[u8]) -> Read {
    let mut events = Vec::new();
    let result = reader.page(page, |event| events.push(event));
    match &result {
        Ok(page) => assert!(events.len() as u64 <= page.events),
        Err(RingError::Page { at, .. }) => assert!(*at <= page.len().max(reader.page_bytes())),
        Err(error) => panic!("not about the page: {error}"),
    }
    for event in &events {
        assert!(event.kind < BLOCK_EVENTS.len());
        let Some(block) = &event.event else {
            continue;
        };
        // Of a flush, or of the end of a write with flushes around it, the length is anything.
        assert!(block.request.extent.end().get() <= ADDRESS_END);
        // Who hands in a request does not know yet how it ends.
        assert!(!event.failed || event.kind > 0);
    }
    pair(&events);
    (events, result)
}

/// Requests are made of the events, and not more.
fn pair(events: &[RingEvent]) {
    let mut pairing = Pairing::new(Some(ArrivalEvent::Queue));
    for (number, event) in (1..).zip(events) {
        if let Some(block) = &event.event {
            pairing.event(number, block);
        }
    }
    let paired = pairing.finish();
    let completed = |complete: bool| {
        let requests = paired.requests.iter();
        requests
            .filter(|(_, request)| request.completion.is_some() == complete)
            .count()
    };
    assert_eq!(completed(false) as u64, paired.unfinished);
    assert!(completed(true) + completed(false) <= events.len());
    for (_, request) in &paired.requests {
        if let (Some(arrival), Some(completion)) = (request.arrival, request.completion) {
            assert!(arrival <= completion);
        }
    }
}

/// `bytes` are a page.
pub fn page(bytes: &[u8]) {
    static READER: OnceLock<RingReader> = OnceLock::new();
    let reader = READER.get_or_init(|| {
        let reader = reader(DESCRIPTIONS).expect("a kernel's own");
        for page in PAGES {
            let (events, result) = read(&reader, page);
            assert!(result.is_ok() && !events.is_empty(), "a kernel's own");
        }
        reader
    });
    let (events, result) = read(reader, bytes);
    if result.is_err() {
        return;
    }
    // What lies behind the end that the page names is not looked at.
    let commit = bytes[8..HEAD_BYTES].try_into().expect("eight bytes");
    let end = HEAD_BYTES + (u64::from_ne_bytes(commit) & ((1 << 27) - 1)) as usize;
    assert_eq!(
        read(reader, &bytes[..end]),
        (events.clone(), result.clone())
    );
    let mut longer = bytes[..end].to_vec();
    longer.resize(end + 64, 0xff);
    assert_eq!(read(reader, &longer), (events, result));
}

/// `bytes` are descriptions.
pub fn format(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match reader(text) {
        Ok(reader) => {
            for page in PAGES {
                let (whole, _) = read(&reader, page);
                // A page that is cut short says less, and nothing else.
                for end in (0..page.len()).step_by(97) {
                    let (events, _) = read(&reader, &page[..end]);
                    assert!(whole.starts_with(&events));
                }
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("events/"), "{text}");
            assert!(!text.chars().any(|char| char.is_control()), "{text:?}");
        }
    }
}
