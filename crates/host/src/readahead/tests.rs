//! Traces derived by hand from the rules, for windows of at most 32 pages.

use super::*;
use std::collections::BTreeSet;

/// A file in memory whose pages arrive at once.
struct Reader {
    state: Readahead,
    cached: BTreeSet<u64>,
    marks: BTreeSet<u64>,
    /// Pages of the file.
    end: u64,
    /// Pages submitted, and the page touched when they were.
    submitted: Vec<(u64, u64)>,
}

impl Reader {
    fn new(max: u64, end: u64) -> Reader {
        Reader {
            state: Readahead::new(max),
            cached: BTreeSet::new(),
            marks: BTreeSet::new(),
            end,
            submitted: Vec::new(),
        }
    }

    fn ask(&mut self, cause: Cause, page: u64, request: u64) {
        let cached = &self.cached;
        let window = self
            .state
            .ask(cause, page, request, |page| cached.contains(&page));
        let Some(window) = window else { return };
        let mut count = 0;
        for page in window.start..(window.start + window.pages).min(self.end) {
            if self.cached.insert(page) {
                count += 1;
                if window.mark == Some(page) {
                    self.marks.insert(page);
                }
            }
        }
        if count > 0 {
            self.submitted.push((count, page));
        }
    }

    /// One call of `pages` pages.
    fn read(&mut self, start: u64, pages: u64) {
        let end = (start + pages).min(self.end);
        for page in start..end {
            if !self.cached.contains(&page) {
                self.ask(Cause::Missing, page, start + pages - page);
                assert!(self.cached.contains(&page), "page {page} must be read");
            }
            if self.marks.remove(&page) {
                self.ask(Cause::Marked, page, start + pages - page);
            }
        }
        if end > start {
            self.state.call_ended(end - 1);
        }
    }

    /// Trace in the notation of the fact tables: "p@q" for p pages submitted when page q is
    /// touched.
    fn text(&self) -> String {
        self.submitted
            .iter()
            .map(|(pages, page)| format!("{pages}@{page}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The windows of calls of `pages` pages from `start` on, until page `until`.
fn sequential(start: u64, pages: u64, until: u64) -> String {
    let mut reader = Reader::new(32, 1 << 20);
    let mut at = start;
    while at < until {
        reader.read(at, pages);
        at += pages;
    }
    reader.text()
}

#[test]
fn windows_grow_for_a_sequential_reader_from_the_beginning() {
    for (pages, until, expected) in [
        (1, 93, "4@0 8@1 16@4 32@12 32@28 32@60 32@92"),
        (2, 60, "4@0 8@2 16@4 32@12 32@28"),
        (4, 88, "8@0 16@4 32@8 32@24 32@56"),
        (8, 80, "16@0 32@8 32@16 32@48"),
        (16, 96, "32@0 32@16 32@32 32@64"),
        (32, 96, "64@0 32@32 32@64"),
        (64, 128, "64@0 32@32 32@64 32@96"),
        (
            256,
            128,
            "64@0 32@32 32@64 32@96 32@128 32@160 32@192 32@224",
        ),
    ] {
        assert_eq!(
            sequential(0, pages, until),
            expected,
            "{pages} pages a call"
        );
    }
}

#[test]
fn windows_grow_for_a_sequential_reader_from_elsewhere() {
    assert_eq!(
        sequential(1000, 1, 1015),
        "1@1000 4@1001 8@1002 16@1005 32@1013"
    );
    assert_eq!(
        sequential(1000, 16, 1070),
        "16@1000 32@1016 32@1032 32@1048"
    );
}

#[test]
fn random_reads_get_no_readahead() {
    let once = |pages| {
        let mut reader = Reader::new(32, 1 << 20);
        reader.read(500, pages);
        reader.text()
    };
    assert_eq!(once(1), "1@500");
    assert_eq!(once(7), "7@500");
    assert_eq!(once(32), "32@500");
    // 256 KiB fetch 384 KiB.
    assert_eq!(once(64), "64@500 32@532");
    let mut reader = Reader::new(32, 1 << 20);
    for page in [500, 90_000, 7, 40_000] {
        reader.read(page, 3);
    }
    assert_eq!(reader.text(), "3@500 3@90000 3@7 3@40000");
}

#[test]
fn strides_and_backward_scans_have_no_readahead() {
    let mut reader = Reader::new(32, 1 << 20);
    for record in 1..20 {
        reader.read(record * 4, 1);
    }
    assert_eq!(
        reader.submitted,
        (1..20).map(|n| (1, n * 4)).collect::<Vec<_>>()
    );
    let mut reader = Reader::new(32, 1 << 20);
    for page in (100..120).rev() {
        reader.read(page, 1);
    }
    assert_eq!(
        reader.submitted,
        (100..120).rev().map(|n| (1, n)).collect::<Vec<_>>()
    );
}

#[test]
fn a_stride_of_the_first_window_looks_sequential() {
    // The first window of a one-page call at the beginning of a file has four pages. A call that
    // skips the other three is where a sequential reader is expected. Every mark that a stride of
    // four hits continues the sequence as well.
    let mut reader = Reader::new(32, 1 << 20);
    for record in 0..24 {
        reader.read(record * 4, 1);
    }
    assert_eq!(reader.text(), "4@0 24@4 32@12 32@28 32@60 32@92");
    // Any other stride is random from the second call on.
    let mut reader = Reader::new(32, 1 << 20);
    for record in 0..4 {
        reader.read(record * 5, 1);
    }
    assert_eq!(reader.text(), "4@0 1@5 1@10 1@15");
}

#[test]
fn two_streams_on_one_descriptor() {
    let mut reader = Reader::new(32, 1 << 20);
    let mut first = Vec::new();
    for step in 0..80 {
        let before = reader.submitted.len();
        reader.read(1000 + step, 1);
        first.extend(reader.submitted[before..].iter().map(|(pages, _)| *pages));
        reader.read(90_000 + step, 1);
    }
    // The first read is one page alone. Then readahead finds the trace of the stream (context), and
    // the marks carry the stream.
    assert_eq!(first[..5], [1, 12, 18, 32, 32]);
}

#[test]
fn windows_end_with_the_file() {
    let mut reader = Reader::new(32, 10);
    for page in 0..10 {
        reader.read(page, 1);
    }
    assert_eq!(reader.text(), "4@0 8@1".replace("8@1", "6@1"));
}

#[test]
fn without_readahead_each_page_alone() {
    let mut reader = Reader::new(0, 100);
    reader.read(0, 5);
    assert_eq!(reader.text(), "1@0 1@1 1@2 1@3 1@4");
}
