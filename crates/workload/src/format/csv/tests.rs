use super::*;
use crate::{ReadOptions, Trace};
use headtime_sched::Op;
use headtime_units::{Nanos, Time};

fn read(text: &str, columns: &str) -> Result<Trace, TraceError> {
    let options = ReadOptions {
        format: Some(Format::Csv),
        columns: Some(columns.parse().unwrap()),
        ..ReadOptions::default()
    };
    Trace::read("c.csv", text.as_bytes(), &options)
}

/// Arrival, completion, device, operation, extent, process, flags.
fn all(trace: &Trace) -> Vec<String> {
    trace
        .requests
        .iter()
        .map(|r| {
            format!(
                "{:?} {:?} {} {:?} {} {:?} {}",
                r.arrival.map(Time::as_nanos),
                r.completion.map(Time::as_nanos),
                r.device,
                r.op,
                r.extent,
                r.process,
                r.flags.bits()
            )
        })
        .collect()
}

#[test]
fn columns_are_found_by_their_headings() {
    let text = "Time;Type; Offset;\"Size; bytes\";Disk;Pid\n\
                1.5;R;4096;8192;sdb;17\n\
                2,5;R;0;512;sdb;17\n";
    let columns = "time=Time:s,op=Type,address=Offset:bytes,size=Size; bytes:bytes,device=Disk:name,process=Pid";
    let error = read(text, columns).unwrap_err();
    assert_eq!(
        error.to_string(),
        "c.csv: line 3, column 1: the time is `2,5`; allowed is a decimal number such as 12, 12.5 or 1.25e3"
    );
    let text = text.replace("2,5;R;0;512;sdb;17", "2.5;ws;1;512;sda;");
    let trace = read(&text, columns).unwrap();
    assert_eq!(
        all(&trace),
        [
            "Some(1500000000) None 0 Read 8+16 Some(17) 0",
            "Some(2500000000) None 1 Write 0+2 None 4",
        ]
    );
    assert_eq!(trace.notes.unaligned, 1);
    assert_eq!(trace.device_name(0), Some("sdb"));
    assert_eq!(trace.find_device("sda"), Some(1));
}

#[test]
fn columns_are_found_by_their_numbers() {
    let columns = "op=2:read0,address=4:4KiB,size=3:sectors,time=1:us,response=6:ms";
    let text = "time op size address x resp\n10 0 8 1 x 2.5\n\n# more\n20 1 16 2 x 1\n";
    let trace = read(text, columns).unwrap();
    assert_eq!(
        all(&trace),
        [
            "Some(10000) Some(2510000) 0 Read 8+8 None 0",
            "Some(20000) Some(1020000) 0 Write 16+16 None 0",
        ]
    );
    assert_eq!(trace.notes.lines_ignored, 3);
    // Without headings, the first line is a request.
    assert_eq!(read("10 0 8 1 x 2.5\n", columns).unwrap().requests.len(), 1);
}

#[test]
fn times_that_are_dates_count_from_the_first() {
    let text = "1538323200.25,R,0,8\n1538323201.5,W,8,8\n";
    let columns = "time=1:s,op=2,address=3:sectors,size=4:sectors";
    let trace = read(text, columns).unwrap();
    assert_eq!(
        trace.notes.base,
        Nanos::from_nanos(1_538_323_200_250_000_000)
    );
    assert_eq!(
        trace.requests[1].arrival,
        Some(Time::from_nanos(1_250_000_000))
    );
}

/// Found by fuzzing: two arrivals, each within 292 years of a third, lay further apart than a written
/// trace may have.
#[test]
fn arrivals_lie_within_292_years() {
    let columns = "time=1:s,op=2,address=3:sectors,size=4:sectors";
    let text = "9000000000,R,0,8\n100,R,0,8\n18000000000,R,0,8\n";
    assert_eq!(
        read(text, columns).unwrap_err().to_string(),
        "c.csv: line 3: the request arrives at 18000000000s, more than 292 years from another one at 100s; \
         allowed are arrivals nearer to each other"
    );
}

/// Found by fuzzing: the last possible sector was refused if addresses were given in sectors. The byte
/// behind that sector has an address of 65 bits.
#[test]
fn the_last_sector_is_an_address() {
    let columns = "op=1,address=2:sectors,size=3:sectors";
    let trace = read("R,36028797018963967,1\n", columns).unwrap();
    assert_eq!(trace.requests[0].extent.end().get(), 1 << 55);
    assert_eq!(trace.notes.unaligned, 0);
    let error = read("R,36028797018963967,2\n", columns).unwrap_err();
    assert!(error.to_string().contains("or before"), "{error}");
    let columns = "op=1,address=2:bytes,size=3:bytes";
    let trace = read("R,18446744073709551615,1\n", columns).unwrap();
    assert_eq!(trace.requests[0].extent.len.get(), 1);
    assert_eq!(trace.notes.unaligned, 1);
    for size in ["2", "512", "18446744073709551615"] {
        let text = format!("R,18446744073709551615,{size}\n");
        assert!(read(&text, columns).is_err(), "{size}");
    }
}

#[test]
fn requests_without_times_keep_their_order() {
    let trace = read(
        "R,16,8\nF,0,0\nR,0,0\nD,0,8\n",
        "op=1,address=2:sectors,size=3:sectors",
    )
    .unwrap();
    assert_eq!(
        all(&trace),
        [
            "None None 0 Read 16+8 None 0",
            "None None 0 Flush 0+0 None 0",
            "None None 0 Discard 0+8 None 0",
        ]
    );
    assert_eq!(trace.notes.zero_length, 1);
}

#[test]
fn what_is_written_is_read_back() {
    let own = "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags\n\
               5,105,3,read,8,16,77,0\n,,0,flush,0,0,,4\n9,,0,write,0,1,,7\n";
    let trace = Trace::read("own", own.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(
        all(&trace),
        [
            "Some(5) Some(105) 3 Read 8+16 Some(77) 0",
            "None None 0 Flush 0+0 None 4",
            "Some(9) None 0 Write 0+1 None 7",
        ]
    );
    let mut out = Vec::new();
    trace.write_csv(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), own);
}

/// Processes that have a name, with their names.
fn names(trace: &Trace) -> Vec<(u32, &str)> {
    let named = trace.process_names.iter();
    named
        .map(|(number, name)| (*number, name.as_str()))
        .collect()
}

#[test]
fn names_of_processes_are_written_and_read_back() {
    let own = "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags,process_name\n\
               5,105,3,read,8,16,77,0,\"a, \"\"b\"\"\"\n6,,0,flush,0,0,,4,\n\
               7,,0,write,0,1,9,7,Web Content\n8,,0,write,0,1,10,7,\n9,,0,write,0,1,77,7,\"a, \"\"b\"\"\"\n";
    let trace = Trace::read("own", own.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(names(&trace), [(9, "Web Content"), (77, "a, \"b\"")]);
    assert_eq!(trace.process_name(77), Some("a, \"b\""));
    assert_eq!(
        (trace.process_name(10), trace.process_name(78)),
        (None, None)
    );
    let mut out = Vec::new();
    trace.write_csv(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), own);
    let lost = trace.write_disksim(&mut Vec::new()).unwrap();
    assert_eq!((lost.processes_lost, lost.names_lost), (4, 3));
    // The last name counts, and an empty one does not.
    let renamed = own
        .replace("10,7,", "9,7,dd")
        .replace("77,7,\"a, \"\"b\"\"\"", "77,7,");
    let trace = Trace::read("own", renamed.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(names(&trace), [(9, "dd"), (77, "a, \"b\"")]);
    // A trace of processes without names has no column for names.
    let mut nameless = trace.with_process_names([(9, "<...>"), (1, "cat")]);
    nameless.requests.truncate(3);
    let mut out = Vec::new();
    nameless.write_csv(&mut out).unwrap();
    assert!(out.starts_with(format!("{CSV_HEADINGS}\n").as_bytes()));
}

#[test]
fn a_name_is_a_column_or_reaches_from_one_column_to_another() {
    let rest = "op=1,address=2:sectors,size=3:sectors";
    let text = "R;8;8;7;cat;x\nR;16;8;8;  \"d;d\" ;y\nR;16;8;;nobody;y\nR;24;8;7\n";
    let trace = read(text, &format!("{rest},process=4,process_name=5")).unwrap();
    assert_eq!(names(&trace), [(7, "cat"), (8, "d;d")]);
    let text = "R 8 8  my  long prog 7\nR 8 8 sh 9\n";
    for last in ["-2", "-2,separator=blank"] {
        let columns = format!("{rest},process=-1,process_name=4..{last}");
        let trace = read(text, &columns).unwrap();
        assert_eq!(names(&trace), [(7, "my  long prog"), (9, "sh")]);
    }
    // A line whose name ends before its first column has none.
    let trace = read(
        "R 8 8 9\n",
        &format!("{rest},process=-1,process_name=4..-2"),
    );
    assert_eq!(names(&trace.unwrap()), []);
    let error = read("R,8,8\n", &format!("{rest},process_name=Comm")).unwrap_err();
    assert!(error.to_string().contains("no heading `Comm`"), "{error}");
    // Events have names, too.
    let columns =
        "time=1:s,action=2,op=3,address=4:sectors,size=5:sectors,process=6,process_name=7";
    let trace = read("1,Q,R,8,8,7,cat\n2,C,R,8,8,0,swapper/0\n", columns).unwrap();
    assert_eq!(trace.process_name(7), Some("cat"));
}

#[test]
fn a_bad_line_is_named_in_the_error() {
    let columns =
        "time=1:ms,completion=2:ms,op=3,address=4:KiB,size=5:bytes,device=6,process=7,flags=8";
    for (line, message) in [
        (
            "1,2,Q,0,512,0,1,0",
            "column 5: the operation is `Q`; allowed is read, write, flush, discard, letters as blkparse writes them (R, W, F, D, WS ..), or a SCSI operation code (28, 2a ..)",
        ),
        (
            "1,0.5,R,0,512,0,1,0",
            "column 3: the completion is `0.5`; allowed is a time not before that of the request",
        ),
        (
            "1,2,R,0x10,512,0,1,0",
            "column 7: the address is `0x10`; allowed is a whole number from 0 to 18446744073709551615",
        ),
        (
            "1,2,R,18446744073709551615,512,0,1,0",
            "column 7: the address is `18446744073709551615`; allowed is an address of at most 64 bits of bytes",
        ),
        (
            "1,2,R,0,512,sda,1,0",
            "column 13: the device is `sda`; allowed is a whole number from 0 to 18446744073709551615",
        ),
        (
            "1,2,R,0,512,0,1,8",
            "column 17: the flags is `8`; allowed is 0 to 7",
        ),
        (
            "1,2,R,0",
            "column 8: column 5 for `size` is `(nothing, the line ends with column 4)`; allowed is a column that the line has; \
             give its number, or another separator (--columns), or another format (--trace-format)",
        ),
        (
            "1,2,\"R,0",
            "column 5: a quoted column is `\"R,0`; allowed is a quote at its end",
        ),
    ] {
        let text = format!("1,2,R,0,512,0,1,0\n{line}\n");
        let error = read(&text, columns).unwrap_err();
        assert_eq!(error.to_string(), format!("c.csv: line 2, {message}"));
    }
}

#[test]
fn a_column_that_no_line_has_is_an_error_and_some_lines_may_lack_columns_that_are_not_needed() {
    let rest = "op=1,address=2:sectors,size=3:sectors";
    let text = "op,address,size\nR,8,8,1,0.5\nR,16,8\nW,8,8,1\n";
    for (part, problem) in [
        (
            "time=99:s",
            "c.csv: line 2, column 12: column 99 for `time` is `(nothing, the line ends with column 5)`; allowed is ",
        ),
        (
            "time=4:s",
            "c.csv: line 3, column 7: column 4 for `time` is",
        ),
        ("time=4:s+6:ns", "column 6 for `time`"),
        ("device=9:name", "column 9 for `device`"),
        ("device=-6", "column -6 for `device`"),
        (
            "process=4,flags=6",
            "c.csv: format csv: no line has column 6 for `flags`; the longest ends with column 5; give a column that a line \
             has, or another separator (--columns), or another format (--trace-format), or leave it out",
        ),
        ("process=-6", "no line has column -6 for `process`"),
    ] {
        let error = read(text, &format!("{rest},{part}")).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    let trace = read(text, &format!("{rest},process=4")).unwrap();
    assert_eq!(all(&trace)[1], "None None 0 Read 16+8 None 0");
    // An empty column gives no time.
    let trace = read("R,8,8,\nR,16,8,5\n", &format!("{rest},time=4:s")).unwrap();
    assert_eq!(all(&trace)[0], "None None 0 Read 8+8 None 0");
    // All lines are faulty, since all lines are too short.
    let options = ReadOptions {
        columns: Some(format!("{rest},time=99:s").parse().unwrap()),
        lenient: true,
        ..ReadOptions::default()
    };
    let error = Trace::read("c.csv", text.as_bytes(), &options).unwrap_err();
    let says = "no line has column 99 for `time`; the longest ends with column 5";
    assert!(error.to_string().contains(says), "{error}");
    // A line that is ignored may be short. The other lines are read.
    let events = "time=1:s,action=2,op=3,address=4:sectors,size=5:sectors,process=6";
    let trace = read("1,m\n1,D,R,8,8,7\n2,C,R,8,8,7\n", events).unwrap();
    assert_eq!((trace.requests.len(), trace.notes.lines_ignored), (1, 1));
}

#[test]
fn a_bad_description_of_columns_is_named_in_the_error() {
    for (columns, message) in [
        (
            "op=1",
            "columns: `op=1`: there is no address; op, address and size are needed",
        ),
        (
            "op=1,address=2",
            "columns: `address=2`: an address or size needs its unit: bytes, sectors or a size, as in address=4:bytes",
        ),
        (
            "op=1,address=2:furlongs",
            "columns: `address=2:furlongs`: the unit is one of bytes, sectors (of 512 bytes), or a size such as KiB or 4KiB",
        ),
        (
            "time=1:h",
            "columns: `time=1:h`: unknown unit of time `h`; allowed are s, ms, us, 100ns, ns, date, clock",
        ),
        (
            "op=0",
            "columns: `op=0`: columns are counted from 1 to 1000",
        ),
        (
            "op=",
            "columns: `op=`: there is no column; give its number, from 1, or its heading",
        ),
        ("op=1,op=2", "columns: `op=2`: it is given twice"),
        (
            "size=1:bytes,colour=2",
            "columns: `colour=2`: `colour` is not one of time, completion, response, op, action, address, size, device, process, process_name, flags or separator",
        ),
        (
            "op=1,address=2:bytes,size=3:bytes,response=4:ms",
            "columns: `op=1,address=2:bytes,size=3:bytes,response=4:ms`: a response needs a time or a completion beside it",
        ),
    ] {
        let error = columns.parse::<CsvColumns>().unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let error = read("a,b,c\n1,2,3\n", "op=x,address=b:bytes,size=c:bytes").unwrap_err();
    assert_eq!(
        error.to_string(),
        "c.csv: format csv: line 1 has no heading `x`; it has a, b, c"
    );
    // Found by fuzzing: control characters of a heading reached the terminal.
    let error = read("a,b,c\n", "op=\x1b[31m,address=b:bytes,size=c:bytes").unwrap_err();
    assert!(error.to_string().contains("`\\u{1b}[31m`"), "{error}");
    let error = read("a,b,c\n1,2,3\n", "op=1,address=1:bytes,size=c:bytes").unwrap_err();
    assert_eq!(
        error.to_string(),
        "c.csv: format csv: column 1 is wanted for two things"
    );
}

#[test]
fn sizes_count_in_the_unit_of_their_column() {
    for (text, bytes) in [
        ("bytes", 1),
        ("sectors", 512),
        ("KiB", 1024),
        ("4KiB", 4096),
        ("B", 1),
    ] {
        assert_eq!(columns::size_unit(text), Ok(bytes));
    }
    assert!(columns::size_unit("0KiB").is_err() && columns::size_unit("").is_err());
}

#[test]
fn a_description_of_what_does_not_go_together_is_an_error() {
    let rest = "op=1,address=2:bytes,size=3:bytes";
    for (part, problem) in [
        (
            "time=4:s,completion=5:s,response=6:s",
            "of time, completion and response two at most",
        ),
        (
            "action=4",
            "an action needs a time, and neither completion nor response",
        ),
        (
            "time=5:s,response=6:s,action=4",
            "an action needs a time, and neither",
        ),
        ("time=4", "a time needs its unit"),
        ("time=4:s+x", "a time needs its unit"),
        (
            "response=4:date",
            "unknown unit of time `date`; allowed are s, ms, us, 100ns, ns",
        ),
        ("process=-0", "columns are counted from 1 to 1000"),
    ] {
        let text = format!("{rest},{part}");
        let error = text.parse::<CsvColumns>().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn times_are_summed_counted_back_and_taken_from_calendars() {
    let rest = "op=3,address=4:sectors,size=5:sectors,separator=blank";
    let text = "12 000000345 R 8 8\n12 900000000 W 8 8\n";
    let trace = read(text, &format!("time=1:s+2:ns,{rest}")).unwrap();
    assert_eq!(all(&trace)[0], "Some(12000000345) None 0 Read 8+8 None 0");
    let text = "2024-02-28 23:59:59.5 R 8 8\n2024-02-29 00:00:00.75 W 8 8\n";
    let trace = read(text, &format!("time=1:date+2:clock,{rest}")).unwrap();
    assert_eq!(all(&trace)[1], "Some(1250000000) None 0 Write 8+8 None 0");
    assert_eq!(
        trace.notes.base,
        Nanos::from_nanos(1_709_164_799_500_000_000)
    );
    // A time of day alone goes over midnight, twice here, and lines are out of order around the first one.
    let text = "23:59:59.5 R 8 8\n00:00:00.5 W 8 8\n23:59:59.75 R 16 8\n11:00:00.5 R 8 8\n23:59:59 R 8 8\n0:0:1 W 8 8\n";
    let trace = read(
        text,
        &format!(
            "time=1:clock,{}",
            rest.replace('3', "2")
                .replace('4', "3")
                .replace("size=5", "size=4")
        ),
    )
    .unwrap();
    let arrivals = all(&trace);
    let seconds = [
        86_399.5, 86_399.75, 86_400.5, 126_000.5, 172_799.0, 172_801.0,
    ];
    for (line, seconds) in arrivals.iter().zip(seconds) {
        let nanos = (seconds * 1e9) as u64;
        assert!(line.starts_with(&format!("Some({nanos}) ")), "{line}");
    }
    assert_eq!(arrivals.len(), seconds.len());
    // The first request completes 1 ms after the file's zero, and took longer than 1 ms.
    let text = "1 3.5 R 8 8\n2 0.5 R 16 8\n";
    let trace = read(text, &format!("completion=1:ms,response=2:ms,{rest}")).unwrap();
    assert_eq!(
        all(&trace),
        [
            "Some(0) Some(3500000) 0 Read 8+8 None 0",
            "Some(4000000) Some(4500000) 0 Read 16+8 None 0",
        ]
    );
    assert_eq!(trace.notes.base, Nanos::ZERO);
    let text = "18446744073709 1 R 8 8\n";
    let error = read(text, &format!("completion=1:ms,response=2:ms,{rest}")).unwrap_err();
    assert!(
        error.to_string().contains("before the year 2400"),
        "{error}"
    );
    let error = read(
        "1  R 8 8\n",
        &format!(
            "completion=1:ms,response=2:ms,{}",
            rest.replace("blank", "tab")
        ),
    );
    assert!(error.is_err());
}

#[test]
fn issue_and_completion_of_a_request_become_one_request() {
    let columns =
        "device=1+2,op=3,action=4,address=5:sectors,size=6:sectors,time=7:s,separator=blank";
    let text = "8 16 W D 100 8 0.5\n8 16 N P 0 0 0.55\n8 0 R D 100 8 0.6\n8 16 W C 100 8 0.75\n\
                8 0 FN D 0 0 0.8\n8 0 FN C 0 0 0.9\n8 0 R C 100 8 1\n8 0 R C 900 8 1\n";
    let trace = read(text, columns).unwrap();
    assert_eq!(
        all(&trace),
        [
            "Some(500000000) Some(750000000) 0 Write 100+8 None 0",
            "Some(600000000) Some(1000000000) 1 Read 100+8 None 0",
            "Some(800000000) Some(900000000) 1 Flush 0+0 None 0",
        ]
    );
    assert_eq!(trace.device_name(1), Some("8,0"));
    assert_eq!((trace.notes.unpaired, trace.notes.lines_ignored), (1, 1));
    let error = read("8 16 W 7 100 8 0.5\n", columns)
        .unwrap_err()
        .to_string();
    let says = "column 8: the action is `7`; allowed is a letter such as Q, D or C";
    assert!(error.ends_with(says), "{error}");
    // A line without a time is no event.
    assert!(read("8 16 W D 100 8\n", columns).is_err());
}

#[test]
fn scsi_operation_codes_are_operations() {
    let columns = "op=1,address=2:sectors,size=3:sectors";
    for (code, op) in [
        ("28", Some(Op::Read)),
        ("0x88", Some(Op::Read)),
        ("A8", Some(Op::Read)),
        ("08", Some(Op::Read)),
        ("2A", Some(Op::Write)),
        ("8a", Some(Op::Write)),
        ("aa", Some(Op::Write)),
        ("0a", Some(Op::Write)),
        ("35", Some(Op::Flush)),
        ("91", Some(Op::Flush)),
        ("42", Some(Op::Discard)),
        ("77", None),
        ("8", None),
    ] {
        let found = read(&format!("{code},8,8\n"), columns).ok();
        assert_eq!(found.map(|trace| trace.requests[0].op), op, "{code}");
    }
    // Commands without data of the medium are no requests.
    let trace = read("00,0,0\n12,0,8\n28,8,8\n25,0,8\n", columns).unwrap();
    assert_eq!(trace.requests.len(), 1);
}

#[test]
fn every_preset_is_read_and_stands_in_the_documentation() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.md");
    let page = std::fs::read_to_string(page).unwrap();
    for preset in &PRESETS {
        assert_eq!(preset.columns().len(), preset.layouts.len());
        assert!(
            page.contains(&format!("`{}`", preset.name)),
            "{}",
            preset.name
        );
        for layout in preset.layouts {
            assert!(page.contains(layout), "{}: {layout}", preset.name);
        }
    }
}

#[test]
fn a_preset_finds_the_layout_that_fits() {
    let read = |name: &str, text: &str| {
        let options = ReadOptions {
            format: Some(Format::Preset(Preset::named(name).unwrap())),
            ..ReadOptions::default()
        };
        Trace::read("p", text.as_bytes(), &options)
    };
    // Lines with and without the time in the queue, and a process name with blanks.
    let heading = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    let short = read(
        "biosnoop",
        &format!("{heading}0.5 my prog 7 sda R 8 4096 1.5\n"),
    )
    .unwrap();
    let long = read("biosnoop", "0.5 p 7 sda R 8 4096 0.25 1.5\n").unwrap();
    assert_eq!(short.requests, long.requests);
    let expected = ["Some(0) Some(1500000) 0 Read 8+8 Some(7) 0"];
    assert_eq!(all(&short), expected);
    assert_eq!(names(&short), [(7, "my prog")]);
    assert_eq!(names(&long), [(7, "p")]);
    let odd = read("biosnoop", "0.5 p 7 sda X 8 4096 1.5\n")
        .unwrap_err()
        .to_string();
    assert!(
        odd.contains("line 1, column 13: the operation is `X`"),
        "{odd}"
    );
    // A request without sectors, at the largest sector number.
    let flush = "0.1 k 9 sda R 18446744073709551615 0 1\n0.5 p 7 sda R 8 512 1\n";
    assert_eq!(read("biosnoop", flush).unwrap().notes.zero_length, 1);
    let iotracer = "2024-01-15 10:30:45.123456,1,py,16,write,8192,1.5,5,16,0,1\n\
                    2024-01-15 10:30:45.123456,1,py,0,flush,0,0.5,5,0,0,1\n\
                    2024-01-15 10:30:45.123456,1,py,0,none,0,0.5,5,0,0,1\n";
    assert_eq!(
        all(&read("iotracer", iotracer).unwrap()),
        [
            "Some(0) Some(1500000) 0 Write 16+16 Some(5) 0",
            "Some(1000000) Some(1500000) 0 Flush 0+0 Some(5) 0",
        ]
    );
    assert_eq!(names(&read("iotracer", iotracer).unwrap()), [(5, "py")]);
    let fiu = "89966118837 4253 nfsd 508455936 8 W 6 0 2ab1\n";
    assert_eq!(names(&read("fiu", fiu).unwrap()), [(4253, "nfsd")]);
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1e9,,W,4,0,512\n1e9,,,4,0,512\n";
    let systor = read("systor", systor).unwrap();
    assert_eq!((systor.requests.len(), systor.notes.lines_ignored), (1, 2));
}
