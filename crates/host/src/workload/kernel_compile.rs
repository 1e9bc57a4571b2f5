//! A kernel that is compiled.

use super::planned::{Job, PlannedFile, Planner, Unplanned};
use super::site::{BenchmarkError, Part, Site, of_kib, scaled_count};
use crate::DiskSize;
use crate::layout::{self, BLOCK_BYTES, Ext3, LayoutError, Tree, TreeDirectory, TreeSpec, Written};
use headtime_units::{Bytes, Nanos};
use headtime_workload::Random;

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 80;
/// Bytes of a name that the compiler makes.
const NAME_BYTES: u32 = 14;
/// A call that writes: the buffer of the C library.
const WRITE: u64 = 4096;
/// Processor time of the linker for each KiB that it reads, and of the deletion of a file.
const LINK_KIB: Nanos = Nanos::from_micros(10);
const REMOVAL: Nanos = Nanos::from_micros(20);
/// Number of links of the kernel, and size of the kernel as a share of its objects. Two links only find the places of
/// the symbols.
const IMAGES: u32 = 3;
const IMAGE_SHARE: f64 = 0.6;

/// `kernel-compile`: `make -j 4; make clean` in the sources of Linux 2.6.22.
///
/// At the start the tree is on the disk, and nothing is in memory. Sources are compiled directory by directory. The
/// compiler reads the source and its headers, whole files at a time. Then the compiler works, and writes an object and
/// the object's list of dependencies. A header is in memory after its first use. When a directory and its
/// subdirectories are done, their objects are linked into one object. The last link makes the kernel. `make clean` goes
/// through all directories of the tree and deletes the files that were made.
///
/// Rests on: Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler (ACM TOS 6(1), 2010), Table VI, for the command and the
/// version. The number of files is from published counts of that version (22,411, with 8.5 million lines). The
/// makefiles of the kernel give the written files, the link in each directory, the three links of the kernel, and the
/// clean-up. [`TreeSpec`] gives the shape of the tree, and [`Ext3`] the places of files. Trust: high for the pattern,
/// moderate for the tree.
///
/// An object has a quarter of its source's size. A default kernel for m68k has 3.6 MB of text and data (2.6.28,
/// published), and 1,600 sources have 32 MB. Relocations and symbols about double an object (trust: low). The kernel
/// keeps symbols and loses relocations. The larger half of a directory's files are its sources. By the law of the
/// sizes, these files have 20 KB in the mean, and real sources have about 19 KB.
///
/// Assumed: the number of sources in the default configuration, the number of headers that each includes, the lists of
/// dependencies, and the processor's time (trust: low).
///
/// Simplified: processes compile the sources in fixed turns. The process that compiled the last source of a directory
/// links the directory. The objects are assumed to be in memory, although another process may still be writing one.
/// Processors are shared evenly at all times. The compiler's own files are in memory, and the compiler makes no
/// temporary files (`-pipe`).
///
/// Invariants of a spec that a host accepts:
///
/// - `1 ≤ jobs ≤ 4096`; `1 ≤ processors ≤ 4096`; `0 < scale ≤ 1`.
/// - `files ≥ 1`, `⌊files scale⌋ ≤ 10^7`; `directories ≥ 1`, `⌊directories scale⌋ ≤ 10^6`.
/// - `1 ≤ sources ≤ 10^7`; `includes ≤ headers ≤ 10^7`.
/// - `1 B ≤ median ≤ 1 GiB`; `0 ≤ spread ≤ 3`; `0 < object_share ≤ 100`; `1 B ≤ depends ≤ 1 GiB`.
/// - `1 B ≤ partition ≤ 16 TiB`; `start ≤ 1024 TiB`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct KernelCompileSpec {
    /// Processes of one program that compile at the same time; 1 to 4096, default 4.
    pub jobs: u32,
    /// Processors that the processes share; 1 to 4096, default 2 as in the paper. If processors are fewer than
    /// processes, processor times are longer in proportion.
    pub processors: u32,
    /// Files of the tree; 1 to 10 million, default 22,411.
    pub files: u32,
    /// Directories of the tree; 1 to 1 million, default 1,300.
    pub directories: u32,
    /// Median size of the files; default 5,000 bytes.
    pub median: Bytes,
    /// Standard deviation of the logarithm of the sizes; 0 to 3, default 1.27, which makes the mean 11.2 KB.
    pub spread: f64,
    /// Files to compile; 1 to 10 million, default 1,600. If the tree has fewer sources, fewer are compiled.
    pub sources: u32,
    /// Files that are headers for all sources; 0 to 10 million, default 1,500. Headers fill directories of their own.
    pub headers: u32,
    /// Mean number of headers that a source includes; default 300, at most `headers`. The c most popular headers are in
    /// every source. The probability of a less popular header, with rank n, falls as c/n.
    pub includes: u32,
    /// Bytes of an object for each byte of its source, more than 0 to 100; default 0.25.
    pub object_share: f64,
    /// Bytes of an object's list of dependencies; default 16 KiB, at most 1 GiB.
    pub depends: Bytes,
    /// Processor time of a compilation, default 90 ms, and additional time for each KiB of the source, default 8 ms.
    pub source_cpu: Nanos,
    pub kib_cpu: Nanos,
    /// True if the files that were made are deleted at the end; default true.
    pub clean: bool,
    /// Bytes of the partition; default 2 GiB.
    pub partition: Bytes,
    /// Place of the partition on the disk; default 0.
    pub start: Bytes,
    /// Factor for the numbers of files, directories, sources and headers, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for KernelCompileSpec {
    fn default() -> KernelCompileSpec {
        KernelCompileSpec {
            jobs: 4,
            processors: 2,
            files: 22_411,
            directories: 1_300,
            median: Bytes(5_000),
            spread: 1.27,
            sources: 1_600,
            headers: 1_500,
            includes: 300,
            object_share: 0.25,
            depends: Bytes(16 << 10),
            source_cpu: Nanos::from_millis(90),
            kib_cpu: Nanos::from_millis(8),
            clean: true,
            partition: Bytes(2 << 30),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl KernelCompileSpec {
    /// Lays out the tree, and plans the steps of each process. There is room for `room` steps in all.
    ///
    /// # Errors
    ///
    /// If a number is out of range, or there are more than `room` steps. If the tree and the files to be made do not
    /// fit into the partition, or the partition does not fit on the disk.
    pub(super) fn lay(
        &self,
        disk: DiskSize,
        seed: u64,
        room: u64,
    ) -> Result<Vec<Part<Job>>, BenchmarkError> {
        let site = Site::new("kernel-compile", disk);
        self.check(site)?;
        let mut random = Random::keyed(seed, 0, PURPOSE);
        let fresh = (0.0, Bytes(BLOCK_BYTES));
        let (mut fs, own) = site.ext3(self.start.0, self.partition.0, fresh, &mut random)?;
        let build = || -> Result<Part<Job>, Unplanned> {
            let tree = TreeSpec {
                files: scaled_count(self.files, self.scale).min(self.files),
                directories: scaled_count(self.directories, self.scale).min(self.directories),
                median: self.median,
                spread: self.spread,
                ..TreeSpec::default()
            };
            let plan = tree.plan(seed)?;
            let mut root = fs.root();
            let tree = plan.lay(&mut fs, &mut root, Written::Unpacked, own)?;
            Build::new(self, fs, &tree, random, room).run()
        };
        Ok(vec![build().map_err(|error| error.of(site))?])
    }

    fn check(&self, site: Site) -> Result<(), BenchmarkError> {
        site.check_count("jobs", self.jobs)?;
        site.check_count("processors", self.processors)?;
        let few = 1..=10_000_000;
        site.check(
            few.contains(&self.sources),
            "sources",
            self.sources,
            "1 to 10000000",
        )?;
        site.check(
            self.headers <= 10_000_000,
            "headers",
            self.headers,
            "0 to 10000000",
        )?;
        let good = self.includes <= self.headers;
        site.check(good, "includes", self.includes, "0 to headers")?;
        let good = self.object_share > 0.0 && self.object_share <= 100.0;
        site.check(
            good,
            "object_share",
            self.object_share,
            "more than 0, at most 100",
        )?;
        site.check_call("depends", self.depends)?;
        site.check_size("partition", self.partition)?;
        site.check_distance("start", self.start)?;
        site.check_scale(self.scale)
    }
}

/// Law of the headers that a source includes. The first `core` headers are always included. `others` more headers are
/// drawn, and the probability of a header falls as one over its rank.
struct Popularity {
    core: usize,
    others: usize,
    /// Range of drawn ranks: the first rank, and the logarithm of the ratio of the last rank to the first.
    first: f64,
    reach: f64,
}

impl Popularity {
    /// Law for `headers` headers, with `mean` includes of a source: `mean` = c + c ln(headers / c), where c is the
    /// core.
    fn new(headers: usize, mean: f64) -> Popularity {
        let headers = headers as f64;
        let of = |c: f64| c + c * libm::log(headers / c);
        let (mut low, mut high) = (0.0, headers);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match of(middle) < mean {
                true => low = middle,
                false => high = middle,
            }
        }
        let core = high as usize;
        Popularity {
            core,
            others: (mean as usize).saturating_sub(core),
            first: high,
            reach: libm::log(headers / high),
        }
    }

    fn draw(&self, random: &mut Random) -> usize {
        (self.first * libm::exp(random.unit() * self.reach)) as usize
    }
}

/// Files of a directory that are compiled, and the makefile, which is read.
#[derive(Clone, Default)]
struct Sources {
    compiled: Vec<u32>,
    makefile: Option<u32>,
}

/// State of the planning.
///
/// Invariants:
///
/// - `known.len() = tree.files.len()`; `known[file] = Some(n)` ⇒ `n < planner.files.len()`.
/// - `sources.len() = tree.directories.len()`.
/// - `included.len() = headers.len()`; `popularity.core ≤ headers.len()`.
/// - `processes.len() = spec.jobs`.
struct Build<'a> {
    spec: &'a KernelCompileSpec,
    tree: &'a Tree,
    planner: Planner,
    random: Random,
    /// Index in the planner of each file of the tree, if the file was read.
    known: Vec<Option<u32>>,
    sources: Vec<Sources>,
    /// Headers, the most popular first, and the last source that included each header.
    headers: Vec<u32>,
    included: Vec<u32>,
    popularity: Popularity,
    /// Steps of each process, and number of the process that has its turn.
    processes: Vec<Vec<Job>>,
    turn: usize,
    made: Vec<u32>,
    /// Steps that may still be planned.
    room: u64,
}

impl<'a> Build<'a> {
    fn new(
        spec: &'a KernelCompileSpec,
        fs: Ext3,
        tree: &'a Tree,
        mut random: Random,
        room: u64,
    ) -> Build<'a> {
        let mut order: Vec<usize> = (0..tree.directories.len()).collect();
        random.shuffle(&mut order);
        let wanted = |count: u32| match count {
            0 => 0,
            count => scaled_count(count, spec.scale) as usize,
        };
        let mut headers = Vec::new();
        let mut sources = vec![Sources::default(); tree.directories.len()];
        let mut left = wanted(spec.sources);
        for directory in order {
            let mut files: Vec<u32> = files_of(&tree.directories[directory]).collect();
            let missing = wanted(spec.headers) - headers.len();
            if missing > 0 {
                headers.extend(files.into_iter().take(missing));
                continue;
            }
            files.sort_by_key(|file| {
                let size = tree.files[*file as usize].layout.size;
                (std::cmp::Reverse(size), *file)
            });
            let larger = files.len().div_ceil(2).min(left);
            left -= larger;
            sources[directory] = Sources {
                makefile: files.get(larger).copied(),
                compiled: files[..larger].to_vec(),
            };
        }
        random.shuffle(&mut headers);
        let share = f64::from(spec.includes) / f64::from(spec.headers.max(1));
        let directories = tree.directories.iter();
        Build {
            spec,
            tree,
            planner: Planner {
                fs,
                directories: directories.map(|one| one.directory.clone()).collect(),
                files: Vec::new(),
                jobs: Vec::new(),
                read_call: u64::MAX,
                write_call: WRITE,
            },
            random,
            known: vec![None; tree.files.len()],
            sources,
            popularity: Popularity::new(headers.len(), share * headers.len() as f64),
            included: vec![u32::MAX; headers.len()],
            headers,
            processes: vec![Vec::new(); spec.jobs as usize],
            turn: 0,
            made: Vec::new(),
            room,
        }
    }

    fn run(mut self) -> Result<Part<Job>, Unplanned> {
        // Directories on the way down, with the number of entries that were visited, and the objects to link.
        let mut path = vec![(0, 0, Vec::new())];
        self.compile_all(0, &mut path[0].2)?;
        while let Some((directory, seen, objects)) = path.last_mut() {
            let entries = &self.tree.directories[*directory].entries;
            let Some(entry) = entries.get(*seen) else {
                let (directory, _, objects) = path.pop().expect("it was there");
                match path.last_mut() {
                    Some((.., above)) if !objects.is_empty() => {
                        above.push(self.link(directory, &objects, 1.0)?);
                    }
                    Some(_) => {}
                    None => self.link_kernel(&objects)?,
                }
                continue;
            };
            *seen += 1;
            let _ = objects;
            if let layout::Entry::Directory(child) = *entry {
                let mut objects = Vec::new();
                self.compile_all(child as usize, &mut objects)?;
                path.push((child as usize, 0, objects));
            }
        }
        if self.spec.clean {
            self.clean()?;
        }
        Ok(Part::new(self.planner.into_files(), self.processes))
    }

    /// Plans the compilation of a directory's sources.
    fn compile_all(&mut self, directory: usize, objects: &mut Vec<u32>) -> Result<(), Unplanned> {
        let Sources { compiled, makefile } = std::mem::take(&mut self.sources[directory]);
        if compiled.is_empty() {
            return Ok(());
        }
        self.list(directory);
        if let Some(file) = makefile {
            self.read(file);
        }
        for source in compiled {
            self.read(source);
            self.include(source);
            let size = self.tree.files[source as usize].layout.size;
            let cpu = of_kib(self.spec.kib_cpu, size).saturating_add(self.spec.source_cpu);
            self.work(cpu);
            let object = (size as f64 * self.spec.object_share) as u64;
            objects.push(self.make(directory, object)?);
            self.make(directory, self.spec.depends.0)?;
            self.end_turn()?;
        }
        Ok(())
    }

    /// Plans reads of the headers that a source includes, each once.
    fn include(&mut self, source: u32) {
        for rank in 0..self.popularity.core {
            self.read(self.headers[rank]);
        }
        for _ in 0..self.popularity.others {
            let rank = self.popularity.draw(&mut self.random);
            let Some(last) = self.included.get_mut(rank) else {
                continue;
            };
            if std::mem::replace(last, source) != source {
                self.read(self.headers[rank]);
            }
        }
    }

    /// Plans a link of objects into one, in a directory. The result has `share` of the objects' size.
    fn link(&mut self, directory: usize, objects: &[u32], share: f64) -> Result<u32, Unplanned> {
        let sizes = objects.iter();
        let sizes = sizes.map(|object| self.planner.files[*object as usize].layout.size);
        let size = sizes.sum();
        self.work(of_kib(LINK_KIB, size));
        let linked = self.make(directory, (size as f64 * share) as u64)?;
        // The process that compiled the last source makes the link.
        self.turn += self.processes.len() - 1;
        self.end_turn()?;
        Ok(linked)
    }

    /// Plans the links of the kernel, after all processes are done.
    fn link_kernel(&mut self, objects: &[u32]) -> Result<(), Unplanned> {
        if objects.is_empty() {
            return Ok(());
        }
        if self.processes.len() > 1 {
            for process in &mut self.processes {
                process.push(Job::Meet);
            }
        }
        for _ in 0..IMAGES {
            for object in objects {
                self.planner.read(*object);
            }
            self.turn = 1;
            self.link(0, objects, IMAGE_SHARE)?;
        }
        Ok(())
    }

    /// Plans the clean-up: all directories are read, and the files that were made are deleted.
    fn clean(&mut self) -> Result<(), Unplanned> {
        self.turn = 0;
        for directory in 0..self.tree.directories.len() {
            self.list(directory);
        }
        for file in std::mem::take(&mut self.made) {
            self.planner.jobs.push(Job::Think(REMOVAL));
            self.planner.delete(file);
        }
        self.end_turn()
    }

    /// Plans the reading of a directory.
    fn list(&mut self, directory: usize) {
        let inode = self.tree.directories[directory].inode_block;
        self.planner.jobs.push(Job::Load(inode));
        let directory = &self.planner.directories[directory];
        let blocks = self.planner.fs.directory_blocks(directory);
        self.planner.jobs.extend(blocks.map(Job::Load));
    }

    /// Plans the reading of a file of the tree. The name and inode are looked up for the first reader only.
    fn read(&mut self, file: u32) {
        let known = self.known[file as usize].unwrap_or_else(|| {
            let found = &self.tree.files[file as usize];
            let new = self.planner.files.len() as u32;
            self.planner.files.push(PlannedFile {
                layout: found.layout.clone(),
                directory: found.directory as usize,
                hash: found.hash,
                before: found.layout.size,
            });
            self.planner.open(new);
            self.known[file as usize] = Some(new);
            new
        });
        self.planner.read(known);
    }

    /// Plans the creation of a file. A new process makes each file, and the number of this process decides where the
    /// file begins.
    fn make(&mut self, directory: usize, size: u64) -> Result<u32, LayoutError> {
        self.planner.fs.set_writer(self.random.bits());
        let hash = || self.random.bits();
        let made = self
            .planner
            .make(directory, NAME_BYTES, size.max(1), hash)?;
        self.planner.create(made);
        self.made.push(made);
        Ok(made)
    }

    /// Plans processor time, which is longer if there are fewer processors than processes.
    fn work(&mut self, cpu: Nanos) {
        let (jobs, processors) = (self.spec.jobs.into(), self.spec.processors.into());
        let shared = cpu.as_nanos().saturating_mul(u64::max(jobs, processors)) / processors;
        if shared > 0 {
            self.planner
                .jobs
                .push(Job::Think(Nanos::from_nanos(shared)));
        }
    }

    /// Gives the planned steps to the process that has its turn. The next process has the next turn.
    fn end_turn(&mut self) -> Result<(), Unplanned> {
        let turn = self.turn % self.processes.len();
        self.turn = turn + 1;
        let planned = self.planner.jobs.len() as u64;
        self.room = self.room.checked_sub(planned).ok_or(Unplanned::TooLong)?;
        self.processes[turn].append(&mut self.planner.jobs);
        Ok(())
    }
}

/// Files of a directory, in the order of a listing.
fn files_of(directory: &TreeDirectory) -> impl Iterator<Item = u32> + '_ {
    directory.entries.iter().filter_map(|entry| match entry {
        layout::Entry::File(file) => Some(*file),
        layout::Entry::Directory(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::BenchmarkSpec;
    use crate::workload::tests::{builder, steps};
    use crate::{File, HostBuilder, Step};

    /// A tree of 500 files in 20 directories, with 60 sources to compile.
    fn small() -> KernelCompileSpec {
        KernelCompileSpec {
            files: 500,
            directories: 20,
            sources: 60,
            headers: 100,
            includes: 30,
            ..KernelCompileSpec::default()
        }
    }

    fn built(spec: &KernelCompileSpec, seed: u64) -> HostBuilder {
        let mut builder = builder();
        let spec = BenchmarkSpec::KernelCompile(spec.clone());
        assert_eq!(spec.add(&mut builder, seed, 3), Ok(4));
        builder
    }

    /// The steps of each process, and the files.
    fn of(spec: &KernelCompileSpec) -> (Vec<Vec<Step>>, Vec<File>) {
        let mut builder = built(spec, 7);
        let all = steps(&mut builder).into_iter().map(|(program, steps)| {
            assert_eq!(program, 3);
            steps
        });
        (all.collect(), builder.files)
    }

    fn bytes(files: &[File], file: usize) -> u64 {
        files[file]
            .extents
            .iter()
            .map(|one| one.len.bytes(512))
            .sum()
    }

    #[test]
    fn sources_are_read_whole_with_their_headers_and_objects_are_written_in_order() {
        let spec = small();
        let (all, files) = of(&spec);
        assert_eq!(all.len(), 4);
        let there = files.iter().filter(|file| file.size > 0).count();
        let mut written = vec![0; files.len()];
        let mut read = vec![0_u32; files.len()];
        let (mut thinks, mut made) = (0, 0);
        for step in all.iter().flatten() {
            match *step {
                Step::Read { file, offset, len } => {
                    let at = file.0 as usize;
                    assert_eq!(offset, 0, "each is read by one call");
                    assert!(len <= bytes(&files, at));
                    assert!(files[at].size == 0 || files[at].size == len);
                    read[at] += 1;
                }
                Step::Write { file, offset, len } => {
                    let at = file.0 as usize;
                    assert_eq!(files[at].size, 0, "what was there is not written");
                    assert_eq!(offset, written[at]);
                    made += u32::from(offset == 0);
                    written[at] += len;
                }
                Step::Think(span) => thinks += u32::from(span >= Nanos::from_millis(90)),
                _ => {}
            }
        }
        assert_eq!(thinks, 60, "one for each source");
        // Objects and lists, a link in each directory with something below it, and three of the kernel.
        let links = made - 120 - IMAGES;
        assert!((1..20).contains(&links), "{links}");
        // All sources and headers, and a makefile in each directory that has sources.
        assert!((160 - 20..=160 + 20).contains(&there), "{there}");
        // The most popular headers are in every source, the others in fewer.
        let of_the_tree = read.iter().zip(&files).filter(|(_, file)| file.size > 0);
        let often: Vec<u32> = of_the_tree.map(|(often, _)| *often).collect();
        assert_eq!(often.iter().filter(|often| **often == 60).count(), 8);
        assert_eq!(often.iter().max(), Some(&60));
        let headers = often.iter().filter(|often| **often > 1).count();
        assert!((60..=100).contains(&headers), "{headers}");
        // 30 headers for each source, less headers that were drawn twice, plus the sources and makefiles.
        let reads: u32 = often.iter().sum();
        assert!((60 * 26..60 * 33).contains(&reads), "{reads}");
    }

    #[test]
    fn everybody_is_done_before_the_kernel_is_linked_and_one_cleans_up() {
        let (all, files) = of(&small());
        let meets = |steps: &[Step]| {
            let places = steps.iter().enumerate();
            let places = places.filter(|(_, step)| matches!(step, Step::Barrier(_)));
            places.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        for (number, steps) in all.iter().enumerate() {
            let meets = meets(steps);
            assert_eq!(meets.len(), 1);
            assert_eq!(number > 0, meets[0] + 1 == steps.len());
        }
        let made = |file: &&File| file.size == 0;
        let forgets = |step: &&Step| matches!(step, Step::Forget(_));
        let deleted = all.iter().flatten().filter(forgets).count();
        assert_eq!(deleted, files.iter().filter(made).count());
        let (left, _) = of(&KernelCompileSpec {
            clean: false,
            ..small()
        });
        assert_eq!(left.iter().flatten().filter(forgets).count(), 0);
        let (alone, _) = of(&KernelCompileSpec { jobs: 1, ..small() });
        assert_eq!(meets(&alone[0]), []);
    }

    #[test]
    fn work_takes_longer_where_processes_share_processors() {
        let worked = |jobs, processors| {
            let spec = KernelCompileSpec {
                jobs,
                processors,
                ..small()
            };
            let think = |step: &Step| match step {
                Step::Think(span) => span.as_nanos(),
                _ => 0,
            };
            of(&spec).0.iter().flatten().map(think).sum::<u64>()
        };
        let alone = worked(1, 1);
        // The clean-up and the rounding are not shared.
        assert!(worked(4, 2).abs_diff(2 * alone) < alone / 100);
        assert!(worked(2, 4).abs_diff(alone) < alone / 100);
    }

    #[test]
    fn headers_are_included_as_often_as_the_law_says() {
        let law = Popularity::new(1_500, 300.0);
        // c + c ln(1500 / c) = 300.
        assert_eq!((law.core, law.others), (75, 225));
        let mut random = Random::keyed(1, 1, 1);
        let draws: Vec<usize> = (0..20_000).map(|_| law.draw(&mut random)).collect();
        assert!(draws.iter().all(|rank| (75..1_500).contains(rank)));
        // Half of the draws are below the geometric mean of both ends, within five standard errors.
        let below = draws.iter().filter(|rank| **rank < 335).count();
        assert!(below.abs_diff(10_000) < 354, "{below}");
        let all = Popularity::new(100, 100.0);
        assert_eq!(all.core + all.others, 100);
        assert!((all.core..100).all(|_| all.draw(&mut random) == 99));
        for (headers, mean) in [(0, 0.0), (100, 0.0)] {
            let none = Popularity::new(headers, mean);
            assert_eq!((none.core, none.others), (0, 0));
        }
    }

    #[test]
    fn trees_without_sources_or_headers_are_compiled_too() {
        let only = |files, headers, includes| KernelCompileSpec {
            files,
            directories: 1,
            headers,
            includes,
            ..small()
        };
        // One file, which is a header: nothing is left to compile.
        let (all, _) = of(&only(1, 1, 1));
        let idle = |step: &Step| matches!(step, Step::ReadBlock(_));
        assert!(all.iter().flatten().all(idle));
        let (all, files) = of(&only(1, 0, 0));
        let writes = |step: &&Step| matches!(step, Step::Write { offset: 0, .. });
        // An object, its list, and the kernel three times.
        assert_eq!(all.iter().flatten().filter(writes).count(), 5);
        assert_eq!(files.iter().filter(|file| file.size > 0).count(), 1);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut KernelCompileSpec)| {
            let mut spec = small();
            change(&mut spec);
            let spec = BenchmarkSpec::KernelCompile(spec);
            spec.add(&mut builder(), 1, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.jobs = 0),
            "kernel-compile: jobs is 0; allowed is 1 to 4096"
        );
        assert_eq!(
            refused(|spec| spec.includes = 101),
            "kernel-compile: includes is 101; allowed is 0 to headers"
        );
        assert_eq!(
            refused(|spec| spec.object_share = f64::NAN),
            "kernel-compile: object_share is NaN; allowed is more than 0, at most 100"
        );
        assert_eq!(
            refused(|spec| spec.files = 0),
            "kernel-compile: a tree with files = 0: allowed are 1 to 10000000"
        );
        assert_eq!(
            refused(|spec| spec.partition = Bytes(8 << 20)),
            "kernel-compile: the file system has no free block"
        );
    }
}
