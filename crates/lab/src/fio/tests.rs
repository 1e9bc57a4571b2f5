use super::table;
use crate::scenario::{Scenario, Workload};
use headtime_config::Place;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{Pacing, ProcessSpec, TimeDistribution};

/// The scenario of a job file, with its notes.
fn read(text: &str) -> Result<(Scenario, Vec<String>), String> {
    let (table, notes) = table("a.fio", text).map_err(|error| error.to_string())?;
    let scenario = Scenario::from_table(&table, Place::line("a.fio", 1));
    Ok((scenario.map_err(|error| error.to_string())?, notes))
}

/// The groups of a job file, each with its name and its number of processes.
fn groups(text: &str) -> Vec<(String, u32, ProcessSpec)> {
    let (scenario, _) = read(text).unwrap();
    let Workload::Synthetic(groups) = scenario.workload else {
        panic!("jobs are processes");
    };
    let group =
        |group: crate::scenario::Group| (group.name.unwrap(), group.processes, group.process);
    groups.into_iter().map(group).collect()
}

/// The process of a file with one job of these lines on a device, with direct I/O.
fn one(lines: &str) -> ProcessSpec {
    let text = format!("[a]\nfilename=/dev/sdb\ndirect=1\nruntime=1\n{lines}");
    groups(&text).remove(0).2
}

fn error(lines: &str) -> String {
    let text = format!("[a]\nfilename=/dev/sdb\nruntime=1\n{lines}");
    read(&text).unwrap_err()
}

fn notes(lines: &str) -> Vec<String> {
    read(&format!("[a]\nfilename=/dev/sdb\nruntime=1\n{lines}"))
        .unwrap()
        .1
}

#[test]
fn an_offset_that_is_no_sector_is_an_error_at_its_line() {
    let error = error("rw=read\nsize=1g\noffset=10");
    assert!(
        error.contains(":6: offset") && error.contains("512"),
        "{error}"
    );
}

#[test]
fn sections_take_what_the_global_ones_above_them_say() {
    let text = "\
; one comment
[global]
bs=8k ; another
size=1m
[one]
rw=randwrite # and one more
[global]
bs = 16k
[two]
numjobs=2
filename=x
";
    let groups = groups(text);
    let said = |number: usize| {
        let (name, processes, process) = &groups[number];
        (
            name.as_str(),
            *processes,
            process.size.to_string(),
            process.read_share,
        )
    };
    assert_eq!(said(0), ("one", 1, "8KiB".to_owned(), 0.0));
    assert_eq!(said(1), ("two", 2, "16KiB".to_owned(), 1.0));
    // A file of one's own, then one of both copies.
    let mib = |mib: u64| Bytes(mib << 20);
    assert_eq!(groups[0].2.range, Some((mib(0), mib(1))));
    assert_eq!(groups[1].2.range, Some((mib(1), mib(2))));
    assert_eq!(groups[1].2.count, Some(64));
}

/// Measured with fio 3.33: the size of the first request in the log of `fio --bs=..`.
#[test]
fn sizes_have_the_units_that_fio_takes() {
    for (text, bytes) in [
        ("4096", 4096),
        ("4096b", 4096),
        ("4k", 4096),
        ("4kb", 4096),
        ("4KB", 4096),
        ("4ki", 4096),
        ("4kib", 4000),
        ("4KiB", 4000),
        ("1m", 1 << 20),
        ("1MiB", 1_000_000),
    ] {
        assert_eq!(one(&format!("bs={text}\n")).align, Bytes(bytes), "{text}");
    }
    for bad in [
        "",
        "0",
        "k",
        "-1",
        "4x",
        "4kk",
        "4bb",
        "1.5k",
        "99999999999t",
        "(4*1024)",
        "20%",
    ] {
        assert!(read(&format!("[a]\nsize=1m\nbs={bad}\n")).is_err(), "{bad}");
    }
}

#[test]
fn times_have_the_units_that_fio_takes() {
    for (text, micros) in [
        ("5", 5),
        ("5us", 5),
        ("5usec", 5),
        ("5MS", 5_000),
        ("5msec", 5_000),
        ("5sec", 5_000_000),
        ("5s", 5_000_000),
        ("5m", 300_000_000),
        ("1d", 86_400_000_000),
    ] {
        let Pacing::Closed { think, .. } = one(&format!("thinktime={text}\n")).pacing else {
            panic!("a think time is for closed processes");
        };
        assert_eq!(
            think,
            TimeDistribution::Constant(Nanos::from_micros(micros)),
            "{text}"
        );
    }
    for bad in ["", "ec", "-1", "5x", "99999999d"] {
        assert!(
            read(&format!("[a]\nsize=1m\nthinktime={bad}\n")).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn sizes_go_by_a_table_apart_for_reads_and_writes() {
    let process = one("rw=randrw\nbssplit=4k/50:1k/:32k/,64k\n");
    assert_eq!(process.size.to_string(), "4KiB/100:1KiB/50:32KiB/50");
    assert_eq!(process.write_size.unwrap().to_string(), "64KiB");
    assert_eq!(process.align, Bytes(1024));
    // The last size gets the rest up to 100, as in fio 3.33. A job's key counts before a global one.
    let text = "[global]\nbs=8k\nsize=1m\n[a]\nrw=randread\nbssplit=4k/50:8k/20:16k/0\n";
    assert_eq!(
        groups(text)[0].2.size.to_string(),
        "4KiB/50:8KiB/20:16KiB/30"
    );
    let process = one("rw=rw\nbs=8k,12k,4k\n");
    let write_size = process.write_size.unwrap().to_string();
    assert_eq!(
        (process.size.to_string(), write_size),
        ("8KiB".into(), "12KiB".into())
    );
    assert!(process.writes_apart);
    assert_eq!(one("bs=6k\n").size.to_string(), "6KiB/100");
    // Of sizes for the other kind nothing is left.
    let process = one("rw=randwrite\nbs=1k,8k\n");
    assert_eq!(
        (process.size.to_string(), process.write_size, process.align),
        ("8KiB".into(), None, Bytes(8192))
    );
    assert_eq!(
        error("bssplit=4k/60:8k/60\n"),
        "a.fio:4: bssplit: `4k/60:8k/60`: the percentages are more than 100 together"
    );
}

#[test]
fn patterns_are_random_or_in_order_and_mixed_as_asked() {
    let process = one("rw=randrw\nrwmixread=30\n");
    assert_eq!((process.read_share, process.sequential_share), (0.3, 0.0));
    let process = one("readwrite=rw\nrwmixwrite=10\n");
    assert_eq!((process.read_share, process.sequential_share), (0.9, 1.0));
    for (text, places) in [
        ("random", "uniform"),
        ("zipf:1.2", "zipf(1.2)"),
        ("pareto:0.2", "pareto(0.2)"),
        ("zoned:60/10:30/20:10/70", "zoned(60/10:30/20:10/70)"),
    ] {
        let process = one(&format!("rw=randread\nrandom_distribution={text}\n"));
        assert_eq!(process.places.to_string(), places);
    }
    for (text, problem) in [
        (
            "zipf:1",
            "it needs a number above 0, up to 10, but not 1; allowed are random, zipf:1.2",
        ),
        ("zipf:1.2:0.5", "`1.2:0.5` is no number"),
        ("zoned:60/10:40/80", "their lengths, are 100 % together"),
        ("normal:20", "allowed are random"),
    ] {
        let found = error(&format!("rw=randread\nrandom_distribution={text}\n"));
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn requests_come_by_depth_think_time_or_rate() {
    let closed = |micros, outstanding| Pacing::Closed {
        think: TimeDistribution::Constant(Nanos::from_micros(micros)),
        outstanding,
    };
    // fio's usual engine has one request under way.
    assert_eq!(one("iodepth=32\n").pacing, closed(0, 1));
    assert!(
        notes("direct=1\niodepth=32\n")[0].contains("with psync, fio has one request under way")
    );
    assert_eq!(one("iodepth=32\nioengine=libaio\n").pacing, closed(0, 32));
    assert_eq!(
        one("iodepth=32\nioengine=libaio\nthinktime=5\n").pacing,
        closed(5, 1)
    );
    let open = |millis, outstanding| Pacing::Open {
        gap: TimeDistribution::Constant(Nanos::from_millis(millis)),
        outstanding: Some(outstanding),
    };
    assert_eq!(one("rate=1000kib\nbs=4000\n").pacing, open(4, 1));
    assert_eq!(
        one("rate_iops=100\nrw=write\niodepth=4\nioengine=io_uring\n").pacing,
        open(10, 4)
    );
    // A rate of requests is one of bytes of the smallest, as fio counts.
    assert_eq!(
        one("rate_iops=100\nbssplit=4k/50:12k/50\n").pacing,
        open(20, 1)
    );
    assert!(error("rw=rw\nrate_iops=100\n").contains("make two jobs"));
    assert!(error("rate=1m\nthinktime=5\n").contains("without thinktime"));
    // At the bound.
    one("rate_iops=1000000\n");
    for (rate, most) in [("rate_iops=2m", "1000000"), ("rate=8g", "4096000000")] {
        let (key, value) = rate.split_once('=').unwrap();
        let said =
            format!("a.fio:4: {key}: `{value}`: allowed is up to {most}, a request every 1us");
        assert_eq!(error(&format!("{rate}\n")), said);
    }
    assert_eq!(one("rw=write\nfsync=8\n").fsync, Some(8));
    assert_eq!(one("rw=write\nfdatasync=8\n").fsync, Some(8));
    assert_eq!(one("rw=write\nfsync=0\n").fsync, None);
}

#[test]
fn jobs_begin_and_end_as_their_keys_say() {
    let text = "\
[global]
filename=/dev/sdb
direct=1
runtime=2
[one]
size=1m
io_size=2m
[two]
startdelay=1
time_based
size=1m
[three]
number_ios=3
";
    let groups = groups(text);
    let millis = |millis| headtime_units::Time::ZERO + Nanos::from_millis(millis);
    let times: Vec<_> = groups
        .iter()
        .map(|(_, _, process)| (process.start, process.until, process.count))
        .collect();
    assert_eq!(times[0], (millis(0), Some(millis(2000)), Some(512)));
    assert_eq!(times[1], (millis(1000), Some(millis(3000)), None));
    assert_eq!(times[2], (millis(0), Some(millis(2000)), Some(3)));
}

#[test]
fn copies_with_files_of_their_own_lie_one_behind_the_other() {
    let text = "[w]\nrw=write\nnumjobs=2\nsize=1500k\ndirectory=/mnt\n[r]\nfilename=/mnt/w.1.0\nsize=3m\n\
                [s]\nfilename=x\nsize=1m\noffset=1m\n";
    let of_each = groups(text);
    let found: Vec<_> = of_each
        .iter()
        .map(|(name, _, process)| (name.as_str(), process.range.unwrap()))
        .collect();
    let (kib, mib) = (|kib: u64| Bytes(kib << 10), |mib: u64| Bytes(mib << 20));
    assert_eq!(
        found,
        [
            ("w", (mib(0), kib(1500))),
            ("w", (mib(2), kib(2048 + 1500))),
            ("r", (mib(2), mib(5))),
            ("s", (mib(6), mib(7))),
        ]
    );
}

#[test]
fn what_does_nothing_is_named_and_what_is_not_simulated_is_refused() {
    assert_eq!(
        notes("direct=1\nthread\nlog_avg_msec=9\nverify=0\n"),
        [
            "a.fio: these keys do nothing here: log_avg_msec (line 6), thread (line 5), verify (line 7)"
        ]
    );
    assert!(notes("direct=0\n")[0].contains("past the page cache"));
    for (lines, problem) in [
        (
            "include b.fio\n",
            "4: include b.fio: other files are not included; copy the lines of b.fio here",
        ),
        (
            "bs=${BS}\n",
            "4: bs: `${BS}`: variables are not replaced; write the value",
        ),
        (
            "rw=trim\n",
            "4: rw: `trim`: allowed are read, write, rw, randread, randwrite and randrw; trims, and numbers behind :, are not simulated",
        ),
        (
            "iodpth=4\n",
            "4: iodpth: is no key that is known here; did you mean `iodepth`? If not, remove the key if it does not change what is read and written",
        ),
        (
            "verify=crc32c\n",
            "4: verify: `crc32c` changes the load and is not simulated; remove the key: simulated data have no contents",
        ),
        (
            "size=20%\n",
            "4: size: `20%`: allowed is a number of bytes, as in 4096, 4k or 10g, up to 1024p; a percentage has no meaning here",
        ),
        (
            "ioengine=net\n",
            "4: ioengine: `net`: is not simulated; allowed are psync sync vsync pvsync pvsync2 sg libaio io_uring io_uring_cmd posixaio solarisaio windowsaio",
        ),
        (
            "filename=/dev/sdb:/dev/sdc\n",
            "4: filename: `/dev/sdb:/dev/sdc`: a job has one file; give each file a job",
        ),
        (
            "[b]\nfilename=/dev/sdc\nruntime=1\n",
            "5: filename: `/dev/sdc`: one drive is simulated, and jobs above have another; give each drive a job file",
        ),
        (
            "stonewall\n",
            "4: stonewall: `1` changes the load and is not simulated; give each job a job file of its own, or a startdelay",
        ),
        (
            "bs=4k\nbssplit=4k/50:8k/50\n",
            "5: bssplit: not together with bs; give one of them",
        ),
        ("[b\n", "4: [b: a section ends with ]"),
    ] {
        assert_eq!(error(lines), format!("a.fio:{problem}"));
    }
    assert_eq!(
        read("bs=4k\n").unwrap_err(),
        "a.fio:1: bs: stands in front of the first section, such as [global] or [job]"
    );
    assert_eq!(
        read("# nothing\n").unwrap_err(),
        "a.fio:1: no job; give a section such as [job]"
    );
    let endless = read("[a]\nfilename=/dev/sdb\n").unwrap_err();
    assert_eq!(
        endless,
        "a.fio:1: size: nothing says when the job ends; give size, or runtime"
    );
}

#[test]
fn the_page_has_every_key_that_says_something() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fio.md");
    let page = std::fs::read_to_string(page).unwrap();
    let refused = super::keys::REFUSED
        .lines()
        .map(|line| line.split('|').next().unwrap());
    let refused = refused
        .flat_map(|keys| keys.split(' '))
        .map(|key| key.split('=').next().unwrap());
    for key in super::keys::MEANT.split_whitespace().chain(refused) {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn the_number_of_jobs_has_a_bound() {
    let most = "[a]\nsize=4k\nnumjobs=4096\n";
    assert_eq!(groups(most).len(), 4096);
    let problem = |text: &str| read(text).unwrap_err();
    assert_eq!(
        problem("[a]\nsize=4k\nnumjobs=1000000\n"),
        "a.fio:3: numjobs: `1000000`: allowed is a whole number from 1 to 4096"
    );
    let more = problem(&format!("{most}[b]\nsize=4k\nnumjobs=2\n"));
    assert!(
        more.starts_with("a.fio:6: numjobs: `2`: more than 4096 jobs in all"),
        "{more}"
    );
}

#[test]
fn sections_of_one_name_are_jobs_with_one_row_of_results() {
    let groups = groups("[a]\nsize=4k\n\n[a]\nsize=4k\n");
    let names = groups.iter().map(|(name, ..)| name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "a"]);
}
