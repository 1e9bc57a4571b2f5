use super::*;
use crate::{BlockAction, Level};
use headtime_sched::{Flags, Op};
use proptest::prelude::*;

const HEADER: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

fn format(id: u16, more: &str) -> String {
    format!(
        "name: x\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
         \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
         \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n{more}\
         \tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:0;\n\n\
         print fmt: \"field:char nonsense;\"\n"
    )
}

fn reader() -> RingReader {
    let queue = format(
        7,
        "\tfield:char comm[16];\toffset:40;\tsize:16;\tsigned:0;\n",
    );
    let complete = format(8, "\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n");
    RingReader::new(HEADER, [Some(&queue), Some(&complete), None]).expect("all is there")
}

/// A record of an event; 56 bytes.
fn record(id: u16, process: u32, sector: u64, sectors: u32, error: i32, letters: &str) -> Vec<u8> {
    let mut record = vec![0; 56];
    record[..2].copy_from_slice(&id.to_ne_bytes());
    record[4..8].copy_from_slice(&process.to_ne_bytes());
    record[8..12].copy_from_slice(&(8_u32 << 20 | 16).to_ne_bytes());
    record[16..24].copy_from_slice(&sector.to_ne_bytes());
    record[24..28].copy_from_slice(&sectors.to_ne_bytes());
    record[28..32].copy_from_slice(&error.to_ne_bytes());
    record[32..32 + letters.len()].copy_from_slice(letters.as_bytes());
    record[40..42].copy_from_slice(b"dd");
    record
}

/// The first word of an event.
fn word(kind: u32, delta: u32) -> [u8; 4] {
    let word = if cfg!(target_endian = "little") {
        kind | delta << 5
    } else {
        kind << 27 | delta
    };
    word.to_ne_bytes()
}

fn page(time: u64, flags: u64, data: &[u8]) -> Vec<u8> {
    let mut page = Vec::new();
    page.extend_from_slice(&time.to_ne_bytes());
    page.extend_from_slice(&(data.len() as u64 | flags).to_ne_bytes());
    page.extend_from_slice(data);
    page
}

fn all(page: &[u8]) -> (Vec<RingEvent>, Result<RingPage, RingError>) {
    let mut events = Vec::new();
    let end = reader().page(page, |event| events.push(event));
    (events, end)
}

#[test]
fn every_way_in_which_time_goes_on() {
    let queue = record(7, 100, 800, 8, 0, "RS");
    let complete = record(8, 0, 800, 8, -5, "RS");
    let mut data = Vec::new();
    // An event that has its length in words in the first five bits.
    data.extend(word(14, 5));
    data.extend(&queue);
    // 8 discarded bytes, and an event of another kind.
    data.extend(word(29, 1));
    data.extend(4_u32.to_ne_bytes());
    data.extend(word(1, 2));
    data.extend([99, 0, 0, 0]);
    // A long time.
    data.extend(word(30, 3));
    data.extend(1_u32.to_ne_bytes());
    // An event that has its length in bytes in a second word. The length counts that word too.
    data.extend(word(0, 4));
    data.extend(60_u32.to_ne_bytes());
    data.extend(&complete);
    // An absolute time.
    data.extend(word(31, 9));
    data.extend(2_u32.to_ne_bytes());
    data.extend(word(14, 0));
    data.extend(&queue);
    // The end of the data, and bytes left from a former use of the page.
    data.extend(word(29, 0));
    data.extend([0xff; 8]);
    let (events, end) = all(&page(1000, 1 << 31, &data));
    assert_eq!(
        end,
        Ok(RingPage {
            events: 4,
            lost: true
        })
    );
    let times: Vec<u64> = events.iter().map(|event| event.time).collect();
    let long = 1 << 27;
    assert_eq!(times, [1005, 1008 + long + 3 + 4, 2 * long + 9]);
    let first = &events[0];
    assert_eq!((first.kind, first.dev), (0, 8 << 20 | 16));
    assert_eq!(&first.name.expect("it has one")[..3], b"dd\0");
    let event = first.event.expect("a read");
    assert_eq!(event.action, BlockAction::Queue);
    assert_eq!(event.request.op, Op::Read);
    assert_eq!(event.request.flags, Flags::SYNC);
    assert_eq!(event.request.process, Some(100));
    assert_eq!(event.request.extent, Extent::at(800, 8));
    let second = &events[1];
    assert_eq!((second.kind, second.failed), (1, true));
    assert_eq!(
        second.event.expect("a read").action,
        BlockAction::Complete(Level::Both)
    );
}

#[test]
fn operations_without_a_place_have_a_time_all_the_same() {
    let mut data = Vec::new();
    data.extend(word(14, 5));
    data.extend(record(7, 1, 0, 8, 0, "NS"));
    data.extend(word(14, 5));
    data.extend(record(8, 1, u64::MAX, 0, 0, "FF"));
    let (events, _) = all(&page(0, 0, &data));
    assert_eq!(events[0].event, None);
    let flush = events[1].event.expect("a flush");
    assert_eq!(flush.action, BlockAction::Complete(Level::Issued));
    assert_eq!(flush.request.extent, Extent::default());
}

#[test]
fn a_damaged_page_is_an_error_that_names_the_damage() {
    let mut short = page(0, 0, &word(14, 5));
    let (_, end) = all(&short);
    assert_eq!(
        end.unwrap_err().to_string(),
        "a page of the trace buffer is damaged at byte 16: an event is of an impossible length"
    );
    short[8] = 200;
    assert_eq!(
        all(&short).1.unwrap_err().to_string(),
        "a page of the trace buffer is damaged at byte 8: it says that it is longer than it is"
    );
    assert_eq!(
        all(&short[..10]).1.unwrap_err().to_string(),
        "a page of the trace buffer is damaged at byte 10: it ends within its head"
    );
    let mut data = word(2, 5).to_vec();
    data.extend([7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        all(&page(0, 0, &data)).1.unwrap_err().to_string(),
        "a page of the trace buffer is damaged at byte 20: an event is shorter than its description"
    );
}

#[test]
fn descriptions_that_lack_a_field_are_errors() {
    let queue = format(7, "");
    for (header, queue, message) in [
        (
            "",
            Some(&*queue),
            "events/header_page: it has no field `data`",
        ),
        (
            HEADER,
            None,
            "events/block/block_bio_queue: the kernel does not have this event",
        ),
        (
            HEADER,
            Some("ID: 7\n"),
            "events/block/block_bio_queue/format: it has no field `common_pid`",
        ),
        (
            HEADER,
            Some("nothing"),
            "events/block/block_bio_queue/format: it has no line `ID: number`",
        ),
        (
            HEADER,
            Some("ID: 7\nfield:int common_pid;\toffset:4;\tsize:3;"),
            "events/block/block_bio_queue/format: its field `common_pid` has 3 bytes; a number has 1, 2, 4 or 8",
        ),
        (
            HEADER,
            Some("ID: 7\nfield:int common_pid;\toffset:x;\tsize:4;"),
            "events/block/block_bio_queue/format: its field `common_pid` has no offset under 65536",
        ),
    ] {
        let complete = format(8, "");
        let error = RingReader::new(header, [queue, Some(&complete), None]).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

proptest! {
    /// Reading a page of any content ends without a panic, and the page counts all events that were
    /// handed out.
    #[test]
    fn no_page_makes_it_panic(
        data in prop::collection::vec(any::<u8>(), 0..400),
        length in 0_u64..500,
    ) {
        let mut page = page(1, 0, &data);
        page[8..16].copy_from_slice(&length.to_ne_bytes());
        let mut events = 0;
        if let Ok(found) = reader().page(&page, |_| events += 1) {
            prop_assert!(events <= found.events);
        }
    }

    #[test]
    fn no_description_makes_it_panic(text in "(\tfield:[a-z_ ]{0,9};?\t?(offset:[0-9]{0,6};)?\tsize:[0-9]{0,3};\n|ID: [0-9]{1,6}\n){0,9}") {
        let _ = RingReader::new(&text, [Some(&text), Some(&text), None]);
    }
}
