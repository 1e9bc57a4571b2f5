//! Tests of scenarios as text.

use super::*;
use headtime_host::HostSpec;
use headtime_host::workload::BenchmarkSpec;
use headtime_qos::{FeatureSet, Service};
use headtime_testkit::damaged;
use headtime_units::Nanos;
use proptest::prelude::*;

const RANDOM: &str = include_str!("../../../../experiments/random-4k.toml");

fn read(text: &str) -> Result<Scenario, TreeError> {
    let table = Table::parse("s.toml", text)?;
    Scenario::from_table(&table, Place::BuiltIn)
}

/// Changes of a scenario, and the error of each.
#[test]
fn what_does_not_fit_together() {
    let mut others = Vec::new();
    for (from, to, error) in [
        (
            "[run]",
            "[trace]\nfile = \"x\"\n[run]",
            "trace: allowed is one of",
        ),
        (
            "duration = \"310s\"",
            "duration = \"10s\"",
            "run.duration: allowed is more than the warm-up",
        ),
        (
            "size = \"4KiB\"",
            "gap = \"1s\"\nthink = \"1s\"",
            "think: is for processes that wait",
        ),
        (
            "size = \"4KiB\"",
            "sequential_share = 0.7\nlocal_share = 0.7",
            "local_share: allowed is at most 1",
        ),
        (
            "size = \"4KiB\"",
            "range = \"4KiB..4KiB\"",
            "the first end must be below the second",
        ),
        (
            "size = \"4KiB\"",
            "name = \"\"",
            "s.toml:12: workload[0].name: \"\": allowed are 1 to 64 letters",
        ),
        (
            "size = \"4KiB\"",
            "name = \"12345678901234567890123456789012345678901234567890123456789012345\"",
            "allowed are 1 to 64 letters",
        ),
        (
            "size = \"4KiB\"",
            "name = \"two\\nlines\"",
            "workload[0].name: \"two\\nlines\": allowed are letters that can be seen",
        ),
        (
            "size = \"4KiB\"",
            "name = \"\\u202eturned\"",
            "allowed are letters that can be seen",
        ),
        (
            "size = \"4KiB\"",
            "name = \" web\"",
            "allowed are single blanks between words",
        ),
        (
            "size = \"4KiB\"",
            "name = \"all\"",
            "is what results call something else",
        ),
        (
            "size = \"4KiB\"",
            "name = \"process 3\"",
            "is what results call something else",
        ),
        (
            "size = \"4KiB\"",
            "name = 3",
            "workload[0].name: is the number 3, but should be a string",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nname=\"a\"\nbenchmark=\"grep\"\n[[program]]\nname=\"a\"\nbenchmark=\"grep\"",
            "program[1].name: \"a\" is the name of another already",
        ),
        (
            "size = \"4KiB\"",
            "class = \"best\"",
            "allowed are real-time, best-effort, idle",
        ),
        (
            "processes = 16",
            "processes = 1000001",
            "allowed is 1 to 1000000",
        ),
        (
            "[drive]",
            "[drive]\nfirmware = \"sptff\"",
            "did you mean \"sptf\"",
        ),
        (
            "[run]",
            "[engine]\nmerge_max = \"1000B\"\n[run]",
            "allowed is a multiple of 512B",
        ),
        (
            "[run]",
            "[engine]\nmerge_max = \"1073742336B\"\n[run]",
            "engine.merge_max: allowed is a multiple of 512B, up to 1GiB",
        ),
        (
            "[run]",
            "[engine]\nplug = true\nplug_timeout = \"213503d\"\n[run]",
            "s.toml:16: engine.plug_timeout: \"213503d\": a duration is at most 3650d",
        ),
        (
            "warm_up = \"10s\"",
            "warm_up = \"315360000.000000001s\"",
            "run.warm_up: \"315360000.000000001s\": a duration is at most 3650d",
        ),
        (
            "duration = \"310s\"",
            "duration = \"3651d\"",
            "run.duration: \"3651d\": a duration is at most 3650d",
        ),
        (
            "warm_up = \"10s\"",
            "timeout = \"99ms\"",
            "run.timeout: \"99ms\": allowed is 100ms to 3650d, or \"off\"",
        ),
        (
            "size = \"4KiB\"",
            "think = \"exponential(213503d)\"",
            "a duration is at most 3650d",
        ),
        (
            "size = \"4KiB\"",
            "gap = \"uniform(1s..99999d)\"",
            "a duration is at most 3650d",
        ),
        (
            "size = \"4KiB\"",
            "start = \"99999d\"",
            "workload[0].start: \"99999d\": a duration is at most 3650d",
        ),
        (
            "size = \"4KiB\"",
            "until = \"99999d\"",
            "workload[0].until: \"99999d\": a duration is at most 3650d",
        ),
        (
            "schedulers = [\"noop\",",
            "schedulers = [\"stream(deadline:read_expire=213503d)\",",
            "read_expire is \"213503d\"; allowed is 0ns to 86400s",
        ),
        (
            "schedulers = [\"noop\",",
            "schedulers = [\"stream(deadline):slice=213503d\",",
            "slice is \"213503d\"; allowed is 0ns to 86400s",
        ),
        (
            "processes = 16",
            "processes = 1000000\noutstanding = 11",
            "workload[0]: more than 10000000 requests outstanding in all",
        ),
        (
            "seed = 1",
            "seed = -1",
            "seed: -1 is out of range; allowed is 0 and more",
        ),
        (
            "[run]",
            "[host]\nread_ahead = \"1MiB\"\n[run]",
            "host: is for [[program]] only",
        ),
        (
            "[run]",
            "[[program]]\nbenchmark = \"par-read\"\n[run]",
            "program: allowed is one of",
        ),
        (
            "[run]",
            "[engine]\nplug_requests = 4\n[run]",
            "engine.plug_requests: is for plug = true",
        ),
        (
            "[run]",
            "[engine]\nplug = true\nplug_timeout = \"0s\"\n[run]",
            "engine.plug_timeout: allowed is more than 0s",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nbenchmark = \"parread\"",
            "did you mean \"par-read\"?",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nbenchmark = \"par-read\"\nthinks = \"1ms\"",
            "did you mean `think`?",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nbenchmark = \"par-read\"\nthink = \"lognormal(5.4ms)\"",
            "program[0].think: \"lognormal(5.4ms)\": `lognormal(5.4ms)` is no distribution: the two \
             ends are not separated by ..; allowed are 30ms, uniform(10ms..50ms), exponential(30ms) and \
             lognormal(900us..5.4ms)",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nbenchmark = \"par-read\"\nthink = 5",
            "program[0].think: is the number 5, but should be a duration or a distribution of durations",
        ),
        (
            "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
            "[[program]]\nthink = \"1ms\"",
            "program[0].benchmark: missing",
        ),
        (
            "profile = ",
            "profil = ",
            "drive.profil: unknown key; did you mean `profile`?",
        ),
        (
            "profile = \"wd5000aaks\"",
            "noise = true",
            "drive.profile: missing; give the name or file of a drive profile, such as \"atlas10k\"",
        ),
        (
            "schedulers = ",
            "scheduler = ",
            "scheduler: unknown key; did you mean `schedulers`?",
        ),
    ] {
        let changed = RANDOM.replacen(from, to, 1);
        assert_ne!(changed, RANDOM, "{from}");
        let found = read(&changed).unwrap_err().to_string();
        if !found.contains(error) {
            others.push(format!("{found}\n  instead of {error}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

/// Five lists of a hundred multiply to more runs than fit into memory. Once, making them ran out of memory before anything failed.
#[test]
fn runs_are_limited() {
    let with = |schedulers: usize, depths: usize, repeats: u32| {
        let text = RANDOM
            .replacen(
                "[\"noop\", ",
                &format!("[{}", "\"noop\", ".repeat(schedulers - 6)),
                1,
            )
            .replacen("repeats = 3", &format!("repeats = {repeats}"), 1);
        let depths = vec!["1"; depths].join(", ");
        read(&format!("{text}[engine]\ndepth = [{depths}]\n"))
    };
    assert_eq!(cells(&with(100, 100, 10).unwrap()).len(), 10_000);
    let error = with(100, 100, 11).unwrap_err().to_string();
    assert!(
        error.contains("these make 110000 runs; allowed are 100000"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_damage_makes_it_panic(text in damaged(&[DEFAULT, RANDOM])) {
        if let Ok(scenario) = read(&text) {
            prop_assert_eq!(read(&scenario.to_toml()), Ok(scenario));
        }
    }

    #[test]
    fn no_setting_makes_it_panic(key in "[a-z0-9._]{0,20}", value in ".{0,40}") {
        let mut table = Scenario::default_table();
        if table.set("--set", &key, &value).is_ok() {
            let _ = Scenario::from_table(&table, Place::BuiltIn);
        }
    }
}

fn read_ok(text: &str) -> Scenario {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn canonical_text_reads_back() {
    let everything = "
        title = 'say \"hi\" \\ there'
        seed = 7
        schedulers = 'noop, deadline:fifo_batch=4'
        [drive]
        profile = ['atlas10k', 'some file.toml']
        probed = true
        belief = 'wd5000aaks'
        firmware = 'fifo,sptf'
        noise = false
        override.cache.enabled = false
        override.seek.read_us = [[1, 831], [2, 1003.5]]
        [engine]
        depth = [1, 4]
        merge = [true, false]
        merge_max = '64KiB'
        commit_ahead = true
        [[workload]]
        name = 'web, and mail'
        processes = 3
        program = 2
        class = 'idle'
        write_flags = ['fua', 'sync']
        gap = 'exponential(20ms)'
        start = '1s'
        until = '20s'
        requests = 100
        read_share = 0.25
        sequential_share = 0.5
        local_share = 0.25
        local_distance = 'uniform(0B..1MiB)'
        size = 'exponential(8KiB)'
        size_step = '4KiB'
        align = '8KiB'
        range = '1MB..10GB'
        first = 'beginning'
        [[workload]]
        think = 'uniform(1ms..2ms)'
        outstanding = 4
        [run]
        duration = '5s'
        requests = 1000
        repeats = 3
        timeout = '1500ms'
    ";
    let trace = "
        schedulers = 'noop'
        drive.profile = 'atlas10k'
        [trace]
        file = 'a.trace'
        format = 'disksim'
        time_unit = 'ns'
        devices = [0, 'host/1']
        speed = 0.5
        fit = 'wrap'
    ";
    let programs = "
        schedulers = 'noop'
        drive.profile = 'atlas10k'
        drive.curve = 'some curve.toml'
        [engine]
        plug_requests = 8
        hide_processes = true
        [host]
        read_ahead = '1MiB'
        chunk = '32KiB'
        dirty_limit = 40
        [[program]]
        benchmark = 'par-read'
        think = 'lognormal(900us..5.4ms)'
        scale = 0.25
        [[program]]
        name = 'search'
        class = 'idle'
        benchmark = 'grep'
        written = 'unpacked'
        aged = 0.5
        [[program]]
        benchmark = 'postmark'
        bias_read = 7
        [[program]]
        benchmark = 'tpch-q19'
        page = '16KiB'
        [[program]]
        benchmark = 'multi-threads'
        direct = true
        [[program]]
        benchmark = 'mpi-io-test'
        latency = '1ms'
        [[program]]
        benchmark = 'sysbench'
        access = 'sequential'
        [[program]]
        benchmark = 'bonnie'
        instances = 4
        [[program]]
        benchmark = 'iozone'
        record_high = '1MiB'
        [[program]]
        benchmark = 'kernel-compile'
        object_share = 0.5
    ";
    let scan = "
        schedulers = 'sptf'
        drive.profile = 'atlas10k'
        [freeblock]
        conservatism = '400us'
        picks = 2
        steps = 1000
        limits = 'firmware'
        block = '4KiB'
        range = '1GB..2GB'
        idle_after = '20ms'
        idle_piece = '1MiB'
        to_end = true
        [[workload]]
    ";
    let closed = trace.replace("speed = 0.5", "replay = 'closed'\noutstanding = 32");
    for text in [DEFAULT, everything, trace, programs, scan, &closed] {
        let scenario = read_ok(text);
        let written = scenario.to_toml();
        assert_eq!(read_ok(&written), scenario, "{written}");
        assert_eq!(read_ok(&written).to_toml(), written);
    }
    // Given values are neither lost nor taken for defaults.
    let written = read_ok(programs).to_toml();
    for line in programs.lines().map(str::trim).skip(4) {
        let line = line.replace('\'', "\"");
        let heading = line.starts_with('[') || line.is_empty();
        assert!(heading || written.contains(&line), "{line} in {written}");
    }
    assert!(written.contains("plug = true") && written.contains("commit_ahead = true"));
}

#[test]
fn the_default_in_full() {
    insta::assert_snapshot!(read_ok(DEFAULT).to_toml());
}

/// A number that has no key could not be set, and the hash of a scenario would not know it.
#[test]
fn every_number_of_host_and_benchmarks_has_a_key() {
    for name in BenchmarkSpec::NAMES {
        // A program that ends with the others needs another.
        let another = match BenchmarkSpec::from_name(name).unwrap().is_endless() {
            true => "[[program]]\nbenchmark = 'full-seq'",
            false => "",
        };
        let text = format!(
            "schedulers = 'noop'\ndrive.profile = 'atlas10k'\nhost.chunk = '64KiB'\n\
             [[program]]\nbenchmark = '{name}'\n{another}"
        );
        let table = Table::parse("s.toml", &text).unwrap();
        let scenario = Scenario::from_table(&table, Place::BuiltIn).unwrap();
        let written = scenario.to_toml();
        let fields = format!(
            "{:?}, {:?}",
            BenchmarkSpec::from_name(name).unwrap(),
            HostSpec::default()
        );
        let names = fields
            .split([' ', '{', '('])
            .filter_map(|word| word.strip_suffix(':'));
        let mut count = 0;
        for field in names {
            let line = format!("\n{field} = ");
            assert!(written.contains(&line), "{name}: {field} in {written}");
            count += 1;
        }
        assert!(count > 12, "{fields}");
    }
}

const CLUSTER: &str = "schedulers = 'noop'\ndrive.profile = 'atlas10k'\n[cluster]\nservers = 3\n\
                       [[program]]\nbenchmark = 'full-seq'\n";

#[test]
fn every_number_of_a_cluster_has_a_key_and_reads_back() {
    let scenario = read_ok(CLUSTER);
    let written = scenario.to_toml();
    assert_eq!(read_ok(&written), scenario);
    let Workload::Programs(programs) = scenario.workload else {
        panic!("{written}");
    };
    let fields = format!("{:?}", programs.cluster.unwrap());
    let names = fields
        .split([' ', '{'])
        .filter_map(|word| word.strip_suffix(':'));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 8, "{fields}");
    for name in names {
        assert!(
            written.contains(&format!("\n{name} = ")),
            "{name} in {written}"
        );
    }
}

#[test]
fn profiles_of_programs_have_an_epoch_and_features() {
    let text = format!(
        "{CLUSTER}[qos]\nepoch = '50ms'\nfeatures = 'distance,size'\nservice = 'disk'\njudge = true\n"
    );
    let scenario = read_ok(&text);
    let Workload::Programs(programs) = &scenario.workload else {
        panic!("{text}");
    };
    assert_eq!(programs.qos.epoch, Nanos::from_millis(50));
    assert_eq!(programs.qos.features, FeatureSet::PAPER);
    assert!(programs.qos.judge);
    assert_eq!(programs.qos.service, Service::Disk);
    assert_eq!(read_ok(&scenario.to_toml()), scenario);
    for (from, to, error) in [
        ("'50ms'", "'2s'", "qos.epoch: `2s`: allowed is 1ms to 1s"),
        (
            "'distance,size'",
            "'age'",
            "qos.features: \"age\": `age` is no feature",
        ),
    ] {
        let refused = read(&text.replace(from, to)).expect_err(to).to_string();
        assert!(refused.contains(error), "{refused}");
    }
}

#[test]
fn what_does_not_fit_a_cluster() {
    for (from, to, error) in [
        (
            "servers = 3",
            "servers = 0",
            "s.toml:4: cluster.servers: `0`: allowed is 1 to 64",
        ),
        (
            "servers = 3",
            "servers = 65",
            "s.toml:4: cluster.servers: `65`: allowed is 1 to 64",
        ),
        (
            "servers = 3",
            "strip = '6KiB'",
            "s.toml:4: cluster.strip: `6KiB`: allowed is a multiple",
        ),
        (
            "servers = 3",
            "[array]\nmembers = 2",
            "array: each server has one disk",
        ),
        (
            "servers = 3",
            "[host]\nchunk = '64KiB'",
            "s.toml:5: host.chunk: is for a host above an array",
        ),
        (
            "'full-seq'",
            "'grep'",
            "s.toml:6: program[0].benchmark: `grep` needs a host with a disk of its own",
        ),
        (
            "'full-seq'",
            "'backup'",
            "program: every program goes on until the others have ended",
        ),
        (
            "[[program]]\nbenchmark = 'full-seq'",
            "[[workload]]\nrequests = 1",
            "cluster: is for [[program]] only",
        ),
        (
            "[[program]]\nbenchmark = 'full-seq'",
            "[trace]\nfile = 'x'",
            "cluster: is for [[program]] only",
        ),
    ] {
        let text = CLUSTER.replace(from, to);
        let table = Table::parse("s.toml", &text).unwrap();
        let found = Scenario::from_table(&table, Place::line("s.toml", 1));
        let found = found.unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
}

const GUESTS: &str = "schedulers = 'noop'\ndrive.profile = 'atlas10k'\n[host]\nguests = 2\n\
                      [[program]]\nbenchmark = 'full-seq'\n";

fn programs(text: &str) -> Programs {
    match read_ok(text).workload {
        Workload::Programs(programs) => programs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_guest_makes_short_requests_unless_told_otherwise() {
    let found = programs(GUESTS);
    assert_eq!(found.guests, Some(2));
    assert_eq!(found.host.request_max.0, 44 << 10);
    let usual = HostSpec {
        request_max: found.host.request_max,
        ..HostSpec::default()
    };
    assert_eq!(found.host, usual);
    let set = GUESTS.replace("guests = 2", "guests = 2\nrequest_max = '1MiB'");
    assert_eq!(programs(&set).host.request_max.0, 1 << 20);
    let none = programs(&GUESTS.replace("guests = 2", ""));
    assert_eq!((none.guests, none.host), (None, HostSpec::default()));
    // The guest does not know that its disk is an array.
    let array = format!("array.members = 3\n{GUESTS}");
    let host = programs(&array).host;
    assert_eq!(host.read_ahead, HostSpec::default().read_ahead);
    assert!(host.chunk.is_some());
}

#[test]
fn guests_read_back() {
    let scenario = read_ok(GUESTS);
    let written = scenario.to_toml();
    assert!(written.contains("\nguests = 2\n"), "{written}");
    assert_eq!(read_ok(&written), scenario);
}

#[test]
fn guests_that_cannot_be() {
    for (from, to, error) in [
        (
            "guests = 2",
            "guests = 0",
            "s.toml:4: host.guests: 0 is out of range; allowed is 1 to 64",
        ),
        (
            "guests = 2",
            "guests = 65",
            "s.toml:4: host.guests: 65 is out of range; allowed is 1 to 64",
        ),
        (
            "guests = 2",
            "guests = 'two'",
            "s.toml:4: host.guests: is the string \"two\", but should be a whole number from 1 to 64",
        ),
        (
            "guests = 2",
            "guests = 2\n[cluster]\nservers = 2",
            "s.toml:4: host.guests: is for one host; leave out [cluster] or this",
        ),
        (
            "[[program]]\nbenchmark = 'full-seq'",
            "[[workload]]\nrequests = 1",
            "host: is for [[program]] only",
        ),
    ] {
        let text = GUESTS.replace(from, to);
        let table = Table::parse("s.toml", &text).unwrap();
        let found = Scenario::from_table(&table, Place::line("s.toml", 1));
        let found = found.unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
}
