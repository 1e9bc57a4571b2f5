//! Programs above a page cache, `[[program]]` and `[host]`: their keys, defined once for reading and
//! for writing.

use super::names;
use super::read;
use super::tree::{Section, TreeError};
use headtime_host::HostSpec;
use headtime_host::layout::Written;
use headtime_host::workload::BenchmarkSpec;
use headtime_units::{Bytes, Nanos};
use headtime_workload::TimeDistribution;

/// Programs, and the host they run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Programs {
    /// What they share.
    pub host: HostSpec,
    /// The benchmarks, whose programs are numbered through all of them, from 1.
    pub entries: Vec<Program>,
}

/// A benchmark that is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What results call it, if that is given; with a number if it makes several programs.
    pub name: Option<String>,
    /// What it does.
    pub benchmark: BenchmarkSpec,
}

/// Something that goes through the keys of a table, reading their values or writing them.
pub(super) trait Keys {
    fn count(&mut self, key: &'static str, value: &mut u32) -> Result<(), TreeError>;
    fn number(&mut self, key: &'static str, value: &mut f64) -> Result<(), TreeError>;
    fn flag(&mut self, key: &'static str, value: &mut bool) -> Result<(), TreeError>;
    fn size(&mut self, key: &'static str, value: &mut Bytes) -> Result<(), TreeError>;
    fn duration(&mut self, key: &'static str, value: &mut Nanos) -> Result<(), TreeError>;
    fn times(&mut self, key: &'static str, value: &mut TimeDistribution) -> Result<(), TreeError>;
    fn written(&mut self, key: &'static str, value: &mut Written) -> Result<(), TreeError>;
}

/// Ranges are checked where the host and its programs are built, which knows the disk too.
impl Keys for Section<'_> {
    fn count(&mut self, key: &'static str, value: &mut u32) -> Result<(), TreeError> {
        let given = self.integer(key, 0..=u64::from(u32::MAX))?;
        *value = given.map_or(*value, |given| given as u32);
        Ok(())
    }

    fn number(&mut self, key: &'static str, value: &mut f64) -> Result<(), TreeError> {
        *value = self.float(key, 0.0..=f64::MAX)?.unwrap_or(*value);
        Ok(())
    }

    fn flag(&mut self, key: &'static str, value: &mut bool) -> Result<(), TreeError> {
        *value = Section::flag(self, key)?.unwrap_or(*value);
        Ok(())
    }

    fn size(&mut self, key: &'static str, value: &mut Bytes) -> Result<(), TreeError> {
        *value = Section::size(self, key)?.unwrap_or(*value);
        Ok(())
    }

    fn duration(&mut self, key: &'static str, value: &mut Nanos) -> Result<(), TreeError> {
        *value = Section::duration(self, key)?.unwrap_or(*value);
        Ok(())
    }

    fn times(&mut self, key: &'static str, value: &mut TimeDistribution) -> Result<(), TreeError> {
        *value = read::times(self, key)?.unwrap_or(*value);
        Ok(())
    }

    fn written(&mut self, key: &'static str, value: &mut Written) -> Result<(), TreeError> {
        let given = self.parse(key, "\"unpacked\" or \"copied\"", |text| {
            Written::from_name(text).map_err(|_| "allowed are unpacked, copied".to_owned())
        })?;
        *value = given.unwrap_or(*value);
        Ok(())
    }
}

/// The keys of `[host]`.
pub(super) fn host_keys(host: &mut HostSpec, keys: &mut impl Keys) -> Result<(), TreeError> {
    let HostSpec {
        read_ahead,
        page_cache,
        copy_per_page,
        request_max,
        writeback_interval,
        dirty_expire,
        dirty_background,
        dirty_limit,
        barriers,
    } = host;
    keys.size("read_ahead", read_ahead)?;
    keys.size("page_cache", page_cache)?;
    keys.duration("copy_per_page", copy_per_page)?;
    keys.size("request_max", request_max)?;
    keys.duration("writeback_interval", writeback_interval)?;
    keys.duration("dirty_expire", dirty_expire)?;
    keys.count("dirty_background", dirty_background)?;
    keys.count("dirty_limit", dirty_limit)?;
    keys.flag("barriers", barriers)
}

/// The keys of `[[program]]` but for its benchmark's name.
pub(super) fn program_keys(
    benchmark: &mut BenchmarkSpec,
    keys: &mut impl Keys,
) -> Result<(), TreeError> {
    let (start, scale) = match benchmark {
        BenchmarkSpec::ParRead(spec) => {
            keys.count("processes", &mut spec.processes)?;
            keys.size("file", &mut spec.file)?;
            keys.size("read", &mut spec.read)?;
            keys.size("gap", &mut spec.gap)?;
            keys.times("think", &mut spec.think)?;
            keys.duration("slack", &mut spec.slack)?;
            (&mut spec.start, &mut spec.scale)
        }
        BenchmarkSpec::Grep(spec) => {
            keys.count("instances", &mut spec.instances)?;
            keys.count("files", &mut spec.files)?;
            keys.count("directories", &mut spec.directories)?;
            keys.size("median", &mut spec.median)?;
            keys.number("spread", &mut spec.spread)?;
            keys.written("written", &mut spec.written)?;
            keys.number("aged", &mut spec.aged)?;
            keys.size("hole", &mut spec.hole)?;
            keys.size("read", &mut spec.read)?;
            keys.duration("file_cpu", &mut spec.file_cpu)?;
            keys.duration("kib_cpu", &mut spec.kib_cpu)?;
            keys.size("partition", &mut spec.partition)?;
            keys.size("gap", &mut spec.gap)?;
            (&mut spec.start, &mut spec.scale)
        }
        BenchmarkSpec::PostMark(spec) => {
            keys.count("instances", &mut spec.instances)?;
            keys.count("files", &mut spec.files)?;
            keys.size("size_low", &mut spec.size_low)?;
            keys.size("size_high", &mut spec.size_high)?;
            keys.count("transactions", &mut spec.transactions)?;
            keys.flag("metadata_cached", &mut spec.metadata_cached)?;
            keys.count("bias_read", &mut spec.bias_read)?;
            keys.count("bias_create", &mut spec.bias_create)?;
            keys.size("call", &mut spec.call)?;
            keys.duration("cpu", &mut spec.cpu)?;
            keys.size("partition", &mut spec.partition)?;
            keys.size("gap", &mut spec.gap)?;
            (&mut spec.start, &mut spec.scale)
        }
        BenchmarkSpec::TpcH(spec) => {
            keys.count("instances", &mut spec.instances)?;
            keys.size("part", &mut spec.part)?;
            keys.size("lineitem", &mut spec.lineitem)?;
            keys.size("between", &mut spec.between)?;
            keys.size("page", &mut spec.page)?;
            keys.duration("part_cpu", &mut spec.part_cpu)?;
            keys.duration("lineitem_cpu", &mut spec.lineitem_cpu)?;
            keys.size("gap", &mut spec.gap)?;
            (&mut spec.start, &mut spec.scale)
        }
        BenchmarkSpec::MultiThreads(spec) => {
            keys.count("processes", &mut spec.processes)?;
            keys.count("threads", &mut spec.threads)?;
            keys.size("file", &mut spec.file)?;
            keys.size("segment", &mut spec.segment)?;
            keys.size("read", &mut spec.read)?;
            keys.count("together", &mut spec.together)?;
            keys.size("file_distance", &mut spec.file_distance)?;
            keys.size("process_distance", &mut spec.process_distance)?;
            keys.flag("direct", &mut spec.direct)?;
            (&mut spec.start, &mut spec.scale)
        }
        BenchmarkSpec::MpiIo(spec) => {
            keys.count("programs", &mut spec.programs)?;
            keys.count("processes", &mut spec.processes)?;
            keys.count("servers", &mut spec.servers)?;
            keys.size("block", &mut spec.block)?;
            keys.size("file", &mut spec.file)?;
            keys.size("gap", &mut spec.gap)?;
            keys.count("workers", &mut spec.workers)?;
            keys.duration("latency", &mut spec.latency)?;
            keys.duration("transfer", &mut spec.transfer)?;
            keys.duration("link_wait", &mut spec.link_wait)?;
            keys.duration("elsewhere", &mut spec.elsewhere)?;
            (&mut spec.start, &mut spec.scale)
        }
        other => unreachable!("the keys of {} are not listed", other.name()),
    };
    keys.size("start", start)?;
    keys.number("scale", scale)
}

pub(super) fn programs(
    sections: Vec<Section<'_>>,
    host: Option<Section<'_>>,
) -> Result<Programs, TreeError> {
    let mut programs = Programs {
        host: HostSpec::default(),
        entries: Vec::new(),
    };
    if let Some(mut section) = host {
        host_keys(&mut programs.host, &mut section)?;
        section.finish()?;
    }
    let mut names = Vec::new();
    for mut section in sections {
        let name = names::name(&mut section)?;
        names::is_new(&section, &name, &names)?;
        names.push(name.clone());
        let named = section.parse("benchmark", "the name of a benchmark", |name| {
            BenchmarkSpec::from_name(name).map_err(|error| error.to_string())
        })?;
        let names = BenchmarkSpec::NAMES.join(", ");
        let mut benchmark = named
            .ok_or_else(|| section.error("benchmark", format!("missing; allowed are {names}")))?;
        program_keys(&mut benchmark, &mut section)?;
        section.finish()?;
        programs.entries.push(Program { name, benchmark });
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::super::tree::{Place, Table};
    use super::*;

    /// A number that has no key could not be set, and the hash of a scenario would not know it.
    #[test]
    fn every_number_of_host_and_benchmarks_has_a_key() {
        for name in BenchmarkSpec::NAMES {
            let text = format!(
                "schedulers = 'noop'\ndrive.profile = 'atlas10k'\n[[program]]\nbenchmark = '{name}'"
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
            assert!(count > 14, "{fields}");
        }
    }
}
