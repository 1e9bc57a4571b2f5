//! A scenario as text, always in the same form.

use super::programs::{Keys, host_keys, program_keys};
use super::read::{CLASSES, FLAGS};
use super::tree::TreeError;
use super::{Group, Pace, Programs, Replay, Scenario, Workload};
use headtime_host::layout::Written;
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::{First, Pacing, TimeDistribution};
use std::fmt::{Display, Write};

pub(super) fn write(scenario: &Scenario) -> String {
    let mut out = Text(String::new());
    if let Some(title) = &scenario.title {
        out.line("title", quoted(title));
    }
    out.line("seed", scenario.seed);
    out.line("schedulers", list(scenario.schedulers.iter().map(quoted)));
    out.head("drive");
    out.line("profile", list(scenario.drives.iter().map(quoted)));
    if let Some(belief) = &scenario.belief {
        out.line("belief", quoted(belief));
    }
    if let Some(curve) = &scenario.curve {
        out.line("curve", quoted(curve));
    }
    out.line(
        "firmware",
        list(
            scenario
                .firmware
                .iter()
                .map(|firmware| quoted(firmware.name())),
        ),
    );
    out.line("noise", scenario.noise);
    if !scenario.overrides.is_empty() {
        // Sorted, since the tree is.
        let value = toml::Value::Table(scenario.overrides.clone());
        out.line("override", value);
    }
    out.head("engine");
    out.line("depth", list(scenario.depths.iter()));
    out.line("merge", list(scenario.merge.iter()));
    out.line("merge_max", quoted(scenario.merge_max));
    out.line("commit_ahead", list(scenario.commit_ahead.iter()));
    out.line("plug", scenario.plug.is_some());
    if let Some(plug) = scenario.plug {
        out.line("plug_requests", plug.requests);
        out.line("plug_timeout", quoted(plug.timeout));
    }
    out.line("hide_processes", scenario.hide_processes);
    match &scenario.workload {
        Workload::Synthetic(groups) => groups.iter().for_each(|group| out.group(group)),
        Workload::Replay(replay) => out.replay(replay),
        Workload::Programs(programs) => out.programs(programs),
    }
    out.head("run");
    out.line("warm_up", quoted(scenario.warm_up));
    if let Some(duration) = scenario.duration {
        out.line("duration", quoted(duration));
    }
    if let Some(requests) = scenario.requests {
        out.line("requests", requests);
    }
    out.line("repeats", scenario.repeats);
    out.0
}

struct Text(String);

impl Text {
    fn line(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = {value}").expect("a string takes everything");
    }

    fn head(&mut self, name: &str) {
        writeln!(self.0, "\n[{name}]").expect("a string takes everything");
    }

    fn group(&mut self, group: &Group) {
        let process = &group.process;
        self.head("[workload]");
        if let Some(name) = &group.name {
            self.line("name", quoted(name));
        }
        self.line("processes", group.processes);
        self.line("program", process.origin.program);
        let class = CLASSES.iter().find(|(_, class)| *class == process.class);
        if let Some((name, _)) = class {
            self.line("class", quoted(name));
        }
        let flags = FLAGS
            .iter()
            .filter(|(_, flag)| process.write_flags.has(*flag));
        let flags: Vec<String> = flags.map(|(name, _)| quoted(name)).collect();
        if !flags.is_empty() {
            self.line("write_flags", list(flags.iter()));
        }
        match process.pacing {
            Pacing::Closed { think, outstanding } => {
                self.line("think", quoted(think));
                self.line("outstanding", outstanding);
            }
            Pacing::Open { gap } => self.line("gap", quoted(gap)),
        }
        self.line("start", quoted(span(process.start)));
        if let Some(until) = process.until {
            self.line("until", quoted(span(until)));
        }
        if let Some(count) = process.count {
            self.line("requests", count);
        }
        self.line("read_share", process.read_share);
        self.line("sequential_share", process.sequential_share);
        self.line("local_share", process.local_share);
        self.line("local_distance", quoted(process.local_distance));
        self.line("size", quoted(process.size));
        self.line("size_step", quoted(process.size_step));
        self.line("align", quoted(process.align));
        if let Some((Bytes(from), Bytes(to))) = process.range {
            self.line(
                "range",
                quoted(format_args!("{}..{}", Bytes(from), Bytes(to))),
            );
        }
        let first = match process.first {
            First::Anywhere => "anywhere",
            First::Beginning => "beginning",
        };
        self.line("first", quoted(first));
    }

    fn programs(&mut self, programs: &Programs) {
        const WRITES: &str = "writing cannot fail";
        self.head("host");
        host_keys(&mut programs.host.clone(), self).expect(WRITES);
        for program in &programs.entries {
            self.head("[program]");
            if let Some(name) = &program.name {
                self.line("name", quoted(name));
            }
            self.line("benchmark", quoted(program.benchmark.name()));
            program_keys(&mut program.benchmark.clone(), self).expect(WRITES);
        }
    }

    fn replay(&mut self, replay: &Replay) {
        self.head("trace");
        self.line("file", quoted(&replay.file));
        if let Some(format) = replay.reading.format {
            self.line("format", quoted(format));
        }
        if let Some(unit) = replay.reading.time_unit {
            self.line("time_unit", quoted(unit));
        }
        if let Some(event) = replay.reading.arrival_event {
            self.line("arrival_event", quoted(event));
        }
        if let Some(columns) = &replay.reading.columns {
            self.line("columns", quoted(columns));
        }
        if !replay.devices.is_empty() {
            self.line("devices", list(replay.devices.iter().map(quoted)));
        }
        match replay.pace {
            Pace::Open(speed) => {
                self.line("replay", quoted("open"));
                self.line("speed", speed);
            }
            Pace::Closed(outstanding) => {
                self.line("replay", quoted("closed"));
                self.line("outstanding", outstanding);
            }
            Pace::ClosedPerProcess => self.line("replay", quoted("closed-per-process")),
        }
        self.line("fit", quoted(replay.fit));
    }
}

impl Keys for Text {
    fn count(&mut self, key: &'static str, value: &mut u32) -> Result<(), TreeError> {
        self.line(key, value);
        Ok(())
    }

    fn number(&mut self, key: &'static str, value: &mut f64) -> Result<(), TreeError> {
        self.line(key, value);
        Ok(())
    }

    fn flag(&mut self, key: &'static str, value: &mut bool) -> Result<(), TreeError> {
        self.line(key, value);
        Ok(())
    }

    fn size(&mut self, key: &'static str, value: &mut Bytes) -> Result<(), TreeError> {
        self.line(key, quoted(value));
        Ok(())
    }

    fn duration(&mut self, key: &'static str, value: &mut Nanos) -> Result<(), TreeError> {
        self.line(key, quoted(value));
        Ok(())
    }

    fn times(&mut self, key: &'static str, value: &mut TimeDistribution) -> Result<(), TreeError> {
        self.line(key, quoted(value));
        Ok(())
    }

    fn written(&mut self, key: &'static str, value: &mut Written) -> Result<(), TreeError> {
        self.line(key, quoted(value.name()));
        Ok(())
    }
}

fn span(time: Time) -> Nanos {
    time - Time::ZERO
}

/// A TOML string; the library knows what to escape.
fn quoted(text: impl Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// One value, or a list of several.
fn list(items: impl Iterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    match items.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Place, Table};
    use super::super::{DEFAULT, Scenario};

    fn read(text: &str) -> Scenario {
        let table = Table::parse("s.toml", text).unwrap();
        Scenario::from_table(&table, Place::BuiltIn).unwrap()
    }

    #[test]
    fn canonical_text_reads_back() {
        let everything = "
            title = 'say \"hi\" \\ there'
            seed = 7
            schedulers = 'noop, deadline:fifo_batch=4'
            [drive]
            profile = ['atlas10k', 'some file.toml']
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
            dirty_limit = 40
            [[program]]
            benchmark = 'par-read'
            think = 'lognormal(900us..5.4ms)'
            scale = 0.25
            [[program]]
            name = 'search'
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
        ";
        let closed = trace.replace("speed = 0.5", "replay = 'closed'\noutstanding = 32");
        for text in [DEFAULT, everything, trace, programs, &closed] {
            let scenario = read(text);
            let written = scenario.to_toml();
            assert_eq!(read(&written), scenario, "{written}");
            assert_eq!(read(&written).to_toml(), written);
        }
        // What is given is neither lost on the way nor taken for a default.
        let written = read(programs).to_toml();
        for line in programs.lines().map(str::trim).skip(4) {
            let line = line.replace('\'', "\"");
            let heading = line.starts_with('[') || line.is_empty();
            assert!(heading || written.contains(&line), "{line} in {written}");
        }
        assert!(written.contains("plug = true") && written.contains("commit_ahead = true"));
    }

    #[test]
    fn the_default_in_full() {
        insta::assert_snapshot!(read(DEFAULT).to_toml());
    }
}
