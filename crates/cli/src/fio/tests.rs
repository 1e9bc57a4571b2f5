use super::table;
use crate::scenario::{Scenario, Workload};
use headtime_config::Place;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{Pacing, Places, ProcessSpec, TimeDistribution};

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
        ("4k", 4096),
        ("4kb", 4096),
        ("4KB", 4096),
        ("4ki", 4096),
        ("4kib", 4000),
        ("4KiB", 4000),
        ("0x1000", 4096),
        ("1m", 1 << 20),
    ] {
        let size = |lines: String| one(&lines).size.to_string().parse::<Bytes>().unwrap().0;
        assert_eq!(size(format!("bs={text}\n")), bytes, "{text}");
        let turned = match bytes {
            4000 => 4096,
            4096 if text.contains(['k', 'K']) => 4000,
            1_048_576 => 1_000_000,
            other => other,
        };
        // Also where the base stands behind.
        assert_eq!(size(format!("bs={text}\nkb_base=1000\n")), turned, "{text}");
    }
    for bad in [
        "",
        "k",
        "-1",
        "4x",
        "4kk",
        "1.5k",
        "99999999999t",
        "(4*1024)",
        "20%",
    ] {
        assert!(read(&format!("[a]\nsize=1m\nbs={bad}\n")).is_err(), "{bad}");
    }
}

#[test]
fn sizes_go_by_a_table_apart_for_reads_and_writes() {
    let process = one("rw=randrw\nbssplit=4k/50:1k/:32k/,64k\n");
    assert_eq!(process.size.to_string(), "4KiB/50:1KiB/25:32KiB/25");
    assert_eq!(process.write_size.unwrap().to_string(), "64KiB/100");
    assert_eq!(process.align, Bytes(1024));
    // The last size gets the rest up to 100, as in fio 3.33. The later key counts.
    let process = one("rw=randread\nbs=8k\nbssplit=4k/50:8k/20\n");
    assert_eq!(process.size.to_string(), "4KiB/50:8KiB/50");
    let process = one("rw=rw\nbs=8k,12k,4k\n");
    let write_size = process.write_size.unwrap().to_string();
    assert_eq!(
        (process.size.to_string(), write_size),
        ("8KiB".into(), "12KiB".into())
    );
    assert_eq!(
        (process.size_step, process.writes_apart),
        (Bytes(4096), true)
    );
    let process = one("rw=randrw\nbsrange=8k-32k,12k:12k\n");
    assert_eq!(process.size.to_string(), "uniform(8KiB..32KiB)");
    assert_eq!(process.write_size.unwrap().to_string(), "12KiB/1");
    assert_eq!(
        error("bssplit=4k/60:8k/60\n"),
        "a.fio:4: bssplit: `4k/60:8k/60`: the percentages are more than 100 together"
    );
}

#[test]
fn patterns_are_random_or_in_order_and_mixed_as_asked() {
    let process = one("rw=randrw\nrwmixread=30\npercentage_random=40\n");
    assert_eq!((process.read_share, process.sequential_share), (0.3, 0.6));
    // The later share counts.
    assert_eq!(
        one("rw=randrw\nrwmixread=30\nrwmixwrite=10\n").read_share,
        0.9
    );
    let process = one("readwrite=randread:8\n");
    assert_eq!(process.sequential_share, 0.875);
    assert!(
        notes("direct=1\nrw=randread:8\n")[0].starts_with("a.fio: rw: a new place comes every 8")
    );
    for (text, places) in [
        ("random", "uniform"),
        ("zipf:1.2", "zipf(1.2)"),
        ("pareto:0.2", "pareto(0.2)"),
        ("zoned:60/10:30/20:10/70", "zoned(60/10:30/20:10/70)"),
        ("zoned:60/10:/40", "zoned(60/10:40/40:0/50)"),
    ] {
        let process = one(&format!("rw=randread\nrandom_distribution={text}\n"));
        assert_eq!(process.places.to_string(), places);
    }
    let process = one("rw=randread\nsize=1t\nrandom_distribution=zoned_abs:60/20g:40/100g\n");
    assert_eq!(process.places, Places::Zoned([(60, 1), (40, 5)].into()));
    assert_eq!(process.range, Some((Bytes(0), Bytes(120 << 30))));
    let problem = error("rw=randread\nrandom_distribution=zipf:1\n");
    assert!(
        problem.contains("it needs a number above 0, up to 10, but not 1"),
        "{problem}"
    );
}

#[test]
fn requests_come_by_depth_think_time_or_rate() {
    let closed = |micros, outstanding| Pacing::Closed {
        think: TimeDistribution::Constant(Nanos::from_micros(micros)),
        outstanding,
    };
    // fio's usual engine has one request under way.
    assert_eq!(one("iodepth=32\n").pacing, closed(0, 1));
    assert!(notes("direct=1\niodepth=32\n")[0].contains("psync has one request under way"));
    assert_eq!(one("iodepth=32\nioengine=libaio\n").pacing, closed(0, 32));
    assert_eq!(
        one("iodepth=32\nioengine=libaio\nthinktime=5\n").pacing,
        closed(5, 1)
    );
    let open = |gap, outstanding| Pacing::Open {
        gap,
        outstanding: Some(outstanding),
    };
    let millis = |millis| TimeDistribution::Constant(Nanos::from_millis(millis));
    assert_eq!(
        one("rate=1000k\nbs=4000\nkb_base=1000\n").pacing,
        open(millis(4), 1)
    );
    assert_eq!(
        one("rate_iops=100\nrw=write\niodepth=4\nioengine=io_uring\n").pacing,
        open(millis(10), 4)
    );
    // A rate of requests is one of bytes of the smallest, as fio counts.
    assert_eq!(
        one("rate_iops=100\nbssplit=4k/50:12k/50\n").pacing,
        open(millis(20), 1)
    );
    let gap = TimeDistribution::Exponential(Nanos::from_millis(10));
    assert_eq!(
        one("rate_iops=100\nrate_process=poisson\n").pacing,
        open(gap, 1)
    );
    assert!(error("rw=rw\nrate_iops=100\n").contains("make two jobs"));
    let process = one("rw=write\nfdatasync=8\nsync=dsync\nprioclass=1\n");
    assert_eq!(process.fsync, Some(8));
    assert!(process.write_flags.has(headtime_sched::Flags::FUA));
}

#[test]
fn jobs_begin_and_end_as_their_keys_say() {
    let text = "\
[global]
filename=/dev/sdb
direct=1
runtime=2
ramp_time=500ms
[one]
size=1m
loops=2
[two]
stonewall
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
    assert_eq!(times[0], (millis(0), Some(millis(2500)), Some(512)));
    assert_eq!(times[1], (millis(3500), Some(millis(6000)), None));
    assert_eq!(times[2], (millis(2500), Some(millis(5000)), Some(3)));
    assert_eq!(read(text).unwrap().0.run.warm_up, Nanos::from_millis(500));
}

#[test]
fn copies_with_files_of_their_own_lie_one_behind_the_other() {
    let text = "[w]\nrw=write\nnumjobs=2\nsize=1500k\ndirectory=/mnt\n";
    let of_each = groups(text);
    let names: Vec<&str> = of_each.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["w.0", "w.1"]);
    assert_eq!(
        of_each[1].2.range,
        Some((Bytes(2 << 20), Bytes((2 << 20) + 1_536_000)))
    );
    let (_, notes) = read(text).unwrap();
    assert_eq!(
        notes[0],
        "a.fio: files lie one behind the other: /mnt/w.0.0 at 0B..1500KiB, /mnt/w.1.0 at 2MiB..3548KiB"
    );
    let text = "[w]\nfilename=/dev/sdb\nnumjobs=2\nsize=1m\noffset=1m\noffset_increment=4m\n";
    assert_eq!(
        groups(text)[1].2.range,
        Some((Bytes(5 << 20), Bytes(6 << 20)))
    );
}

#[test]
fn what_does_nothing_is_named_and_what_is_not_simulated_is_refused() {
    assert_eq!(
        notes("direct=1\nthread\ngroup_reporting\nverify=0\n"),
        [
            "a.fio: these keys do nothing here: group_reporting (line 6), thread (line 5), verify (line 7)"
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
            "4: rw: `trim`: allowed are read, write, rw, randread, randwrite and randrw; nothing is trimmed",
        ),
        (
            "rw=write:4k\n",
            "4: rw: `write:4k`: sequential requests with holes are not simulated; leave out what stands behind :",
        ),
        (
            "iodpth=4\n",
            "4: iodpth: is no key that is known here; did you mean `iodepth`? Leave the key out if it does not change what is read and written",
        ),
        (
            "verify=crc32c\n",
            "4: verify: `crc32c` changes the load and is not simulated (simulated data have no contents); leave the key out",
        ),
        (
            "size=20%\n",
            "4: size: `20%`: the size of the file is not known here; give bytes, as in 10g",
        ),
        (
            "ioengine=net\n",
            "4: ioengine: `net`: is no engine whose requests are simulated; allowed are psync, sync, vsync, pvsync, pvsync2, sg and libaio, io_uring, io_uring_cmd, posixaio, solarisaio, windowsaio",
        ),
        (
            "filename=/dev/sdb:/dev/sdc\n",
            "4: filename: `/dev/sdb:/dev/sdc`: a job has one file; give each file a job of its own",
        ),
        (
            "[b]\nfilename=/dev/sdc\nruntime=1\n",
            "5: filename: `/dev/sdc`: one drive is simulated, and there are /dev/sdb and /dev/sdc; give each a job file",
        ),
        (
            "[b]\nfilename=/dev/sdb\nsize=1m\n[c]\nstonewall\nfilename=/dev/sdb\nsize=1m\n",
            "8: stonewall: `1`: nothing says when [b] ends; give that job a runtime, or each job a file of its own",
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
    // Errors of the scenario have the line of the job, too.
    let twice = read("[a]\nsize=1m\n[a]\nsize=1m\n").unwrap_err();
    assert!(twice.starts_with("a.fio:3: workload[1].name: "), "{twice}");
}

#[test]
fn the_page_has_every_key_that_says_something() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fio.md");
    let page = std::fs::read_to_string(page).unwrap();
    let refused = super::keys::refused().map(|[key, ..]| key);
    for key in super::keys::MEANT.split_whitespace().chain(refused) {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}
