//! Files as a whole: compressed, cut off, of the wrong kind, and the real ones where they are.

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use headtime_units::Sectors;
use headtime_workload::{
    Compression, CsvColumns, Fit, Fitter, Format, ReadOptions, Script, TimeUnit, Trace, TraceError,
    UnitReason,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::path::Path;

const LINES: u64 = 5_000;

fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..LINES {
        let address = number.wrapping_mul(0x9e37_79b9) % 1_000_000;
        writeln!(text, "{number}.25 0 {address} 8 {}", number % 2).unwrap();
    }
    text
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read("t.trace", bytes, &ReadOptions::default())
}

#[test]
fn compression_is_recognised_by_content() {
    let plain = read(&text()).unwrap();
    for (bytes, compression) in [
        (gzip(&text()), Compression::Gzip),
        (zstd(&text()), Compression::Zstd),
    ] {
        let trace = read(&bytes).unwrap();
        assert_eq!(trace.notes.compression, compression);
        assert_eq!(trace.requests, plain.requests);
        assert_eq!(trace.notes.lines, LINES);
    }
}

#[test]
fn a_file_of_several_compressed_pieces_is_read_to_its_end() {
    let text = text();
    let (first, second) = text.split_at(text.len() / 3);
    let plain = read(&text).unwrap();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for pieces in [
        [gzip(first), gzip(second)].concat(),
        [zstd(first), zstd(second)].concat(),
        [skippable.clone(), zstd(first), skippable, zstd(second)].concat(),
    ] {
        assert_eq!(read(&pieces).unwrap().requests, plain.requests);
    }
}

#[test]
fn cut_off_files_are_errors_that_name_the_place() {
    for (whole, name) in [(gzip(&text()), "gzip"), (zstd(&text()), "zstd")] {
        for part in [1, 3, 5, 7, 9] {
            let cut = whole.len() * part / 10;
            let error = read(&whole[..cut]).unwrap_err();
            let TraceError::Compressed {
                truncated, offset, ..
            } = &error
            else {
                panic!("{error}");
            };
            assert!(*truncated, "{error}");
            assert_eq!(*offset, cut as u64, "{error}");
            let message = error.to_string();
            let start = format!("t.trace: {name} data is cut off at byte {cut} of the file (byte ");
            assert!(message.starts_with(&start), "{message}");
        }
        // One byte less, the checksum's last, is noticed too.
        assert!(read(&whole[..whole.len() - 1]).is_err());
    }
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 9, 0, 0, 0, 1];
    let message = read(&skippable).unwrap_err().to_string();
    assert!(
        message.contains("cut off at byte 9 of the file"),
        "{message}"
    );
}

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let mut damaged = gzip(&text());
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let error = read(&damaged).unwrap_err();
    // The bytes that come out may be no trace before they are no gzip.
    assert!(
        matches!(
            error,
            TraceError::Compressed { .. }
                | TraceError::Line { .. }
                | TraceError::LineTooLong { .. }
        ),
        "{error}"
    );
    let mut wrong_sum = gzip(&text());
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    let error = read(&wrong_sum).unwrap_err();
    assert!(
        matches!(
            error,
            TraceError::Compressed {
                truncated: false,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_file_of_another_kind_is_an_error_that_says_so() {
    for (bytes, start) in [
        (
            &b""[..],
            "t.trace: no request: it is empty; leave it out, or give a file with requests",
        ),
        (
            b"\n\n# nothing\n",
            "t.trace: no request; lines: 3; passed over (blank, comments, ",
        ),
        (
            b"\x7fELF\x02\x01\n",
            "t.trace: line 1: `\\u{7f}ELF\\u{2}\\u{1}` is not the beginning of a trace",
        ),
        (
            b"R Hit 4583176 4 663.0 45422.0\n",
            "t.trace: line 1: `R Hit 4583176 4 663.0 45422.0` is not",
        ),
        (
            b"\n\na;b;c\n",
            "t.trace: line 3: `a;b;c` is not the beginning of a trace in a known format",
        ),
    ] {
        let message = read(bytes).unwrap_err().to_string();
        assert!(message.starts_with(start), "{message}");
    }
    let validation = read(b"R Hit 4583176 4 663.0 45422.0\n")
        .unwrap_err()
        .to_string();
    assert!(validation.contains("drive validate"), "{validation}");
    let long = vec![b'1'; 70_000];
    let message = read(&long).unwrap_err().to_string();
    assert_eq!(
        message,
        "t.trace: line 1 is longer than the 65536 bytes allowed; is this a text file?"
    );
    let missing = Trace::open(Path::new("no/such.trace"), &ReadOptions::default()).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("no/such.trace: cannot open: ")
    );
}

#[test]
fn options_that_do_not_go_with_the_format() {
    let columns: CsvColumns = "op=1,address=2:bytes,size=3:bytes".parse().unwrap();
    for (format, columns, unit, problem) in [
        (
            Some(Format::DiskSim),
            Some(columns),
            None,
            "columns are for csv",
        ),
        (
            Some(Format::Msr),
            None,
            Some(TimeUnit::Millis),
            "the format fixes the unit of time",
        ),
    ] {
        let text = b"1,h,0,Read,0,512,1\n".as_slice();
        let options = ReadOptions {
            format,
            columns,
            time_unit: unit,
            ..ReadOptions::default()
        };
        let message = Trace::read("t", text, &options).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn the_recorded_traces_have_their_known_figures() {
    let Some(traces) = headtime_testkit::data("traces") else {
        return;
    };
    for (name, requests, devices, reads, unit, because, span_ms) in [
        (
            "disksim-ascii",
            100_000,
            14,
            79_634,
            TimeUnit::Millis,
            UnitReason::DecimalPoint,
            1_532_935,
        ),
        (
            "wsrch-small",
            24_783,
            6,
            24_779,
            TimeUnit::Nanos,
            UnitReason::FarApart,
            60_055,
        ),
        (
            "tpcc-small",
            6_999,
            16,
            4_381,
            TimeUnit::Nanos,
            UnitReason::FarApart,
            136,
        ),
    ] {
        let path = traces.join(format!("{name}.trace"));
        let trace = Trace::open(&path, &ReadOptions::default()).unwrap();
        let info = trace.info();
        assert_eq!(info.total.requests(), requests, "{name}");
        assert_eq!(
            (info.devices.len(), info.total.reads),
            (devices, reads),
            "{name}"
        );
        assert_eq!(info.notes.lines, requests, "{name}");
        let note = info.notes.time_unit.unwrap();
        assert_eq!((note.unit, note.because), (unit, because), "{name}");
        assert_eq!(info.span().as_nanos() / 1_000_000, span_ms, "{name}");
        assert_eq!(info.notes.out_of_order, 0, "{name}");

        // Written traces read back as the same requests.
        let mut csv = Vec::new();
        trace.write_csv(&mut csv).unwrap();
        assert_eq!(read(&csv).unwrap().requests, trace.requests, "{name}");
        let mut disksim = Vec::new();
        assert_eq!(
            trace.write_disksim(&mut disksim).unwrap().requests,
            requests
        );
        assert_eq!(read(&disksim).unwrap().requests, trace.requests, "{name}");
        if name == "disksim-ascii" {
            let original = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
            assert_eq!(
                String::from_utf8(disksim).unwrap(),
                original.replace('\t', " ")
            );
        }

        // The Atlas 10K has 17,938,986 sectors; the web trace reaches further on devices 0 to 2.
        let fitter = Fitter::new(Sectors::new(17_938_986), 512, Fit::Wrap);
        let script = Script::new(&trace, &[], &fitter).unwrap();
        assert_eq!(script.requests().len() as u64, requests);
        assert_eq!(script.moved() > 0, name != "disksim-ascii", "{name}");
    }
    let path = traces.join("wsrch-small.trace");
    let trace = Trace::open(&path, &ReadOptions::default()).unwrap();
    let fitter = Fitter::new(Sectors::new(17_938_986), 512, Fit::Wrap);
    let script = Script::new(&trace, &[0, 1, 2], &fitter).unwrap();
    assert_eq!(script.requests().len(), 24_783 - 25);
}
