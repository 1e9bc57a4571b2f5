//! Tasks in the background: what each of them is told, in whatever order they are served.

use headtime_disk::Model;
use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{self, Preseek, Profile, WriteBack};
use headtime_engine::{
    Approach, Arrival, Background, BackgroundLayer, Command, Config, Consumer, Demand, Engine,
    Finished, FreeblockOptions, Hits, Idle, Join, Lane, Member, OnWrite, Outcome, Seen, TaskError,
    TaskId, TaskSpec, Tasks, Work,
};
use headtime_sched::{Class, Flags, Op, Spec};
use headtime_sim::{Setup, run};
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};
use headtime_workload::{Pacing, ProcessSpec, Synthetic, SyntheticSpec, TimeDistribution};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// An Atlas 10K as the paper's host has it.
fn atlas() -> Profile {
    let shipped = profile::by_name("atlas10k").expect("shipped");
    let changed = shipped.with(|spec| {
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.overhead_sd = Nanos::from_micros(30);
        spec.queue.preseek = Preseek::AtMediaEnd;
        spec.queue.depth = 2;
        spec.bus.interface_sector = Nanos::from_nanos(6_400);
        spec.cache.write_back = WriteBack::Off;
    });
    changed.expect("it can be")
}

/// What one task has been told.
#[derive(Clone, Debug, Default)]
struct Told {
    spec: Option<TaskSpec>,
    /// First sectors of what it wants, in blocks in which all tasks are read.
    wanted: BTreeSet<u64>,
    /// How often each block was delivered.
    times: BTreeMap<u64, u32>,
    unreadable: BTreeSet<u64>,
    /// Blocks of its own size of which it was told.
    blocks: Vec<Extent>,
    /// When it wanted nothing more.
    done: Option<Time>,
    suspended: bool,
    first: Option<Time>,
}

/// All of them, and what is wrong.
#[derive(Debug, Default)]
struct Oracle {
    base: u64,
    told: BTreeMap<TaskId, Told>,
    /// Sectors that cannot be read, until they are written.
    bad: Vec<Range<u64>>,
    asked: u64,
}

impl Oracle {
    fn numbers(&self, extent: Extent) -> impl Iterator<Item = u64> + use<> {
        assert!(extent.start.get().is_multiple_of(self.base));
        (extent.start.get()..extent.end().get()).step_by(self.base as usize)
    }

    fn opened(&mut self, id: TaskId, spec: TaskSpec) {
        let mut wanted = BTreeSet::new();
        for range in spec.ranges.iter().filter(|_| spec.all) {
            wanted.extend(self.numbers(*range));
        }
        let told = Told {
            wanted,
            spec: Some(spec),
            ..Told::default()
        };
        assert!(self.told.insert(id, told).is_none());
    }

    /// A client's request is over, or one of a task.
    fn seen(&mut self, done: &Finished, is_client: bool) {
        let extent = done.request.extent;
        let (start, end) = (extent.start.get(), extent.end().get());
        if !done.request.op.changes() {
            return;
        }
        for told in self.told.values_mut() {
            let spec = told.spec.as_ref().expect("open");
            if !is_client && spec.work == Work::Write {
                continue;
            }
            let touched = (start / self.base * self.base..end).step_by(self.base as usize);
            for block in touched {
                let whole = start <= block && block + self.base <= end;
                let ours = |range: &Extent| range.start.get() <= block && block < range.end().get();
                let ours = spec.ranges.iter().any(ours);
                match spec.on_write {
                    OnWrite::Satisfied if whole && done.outcome == Outcome::Done => {
                        told.wanted.remove(&block);
                    }
                    OnWrite::Again if ours => {
                        told.wanted.insert(block);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Oracle {
    /// What a task asks for may be: it touches nothing that it need not.
    fn asked_for(&self, arrival: &Arrival) {
        if arrival.op.is_read() {
            return;
        }
        assert_eq!((arrival.op, arrival.flags), (Op::Write, Flags::FUA));
        let blocks: Vec<u64> = self.numbers(arrival.extent).collect();
        let wants = |told: &Told| blocks.iter().all(|block| told.wanted.contains(block));
        let works = |told: &Told| !told.suspended && told.spec().work == Work::Write;
        let mut told = self.told.values();
        assert!(told.any(|told| works(told) && wants(told)), "{arrival:?}");
    }
}

impl Told {
    fn spec(&self) -> &TaskSpec {
        self.spec.as_ref().expect("open")
    }
}

struct Listener(Rc<RefCell<Oracle>>);

impl Consumer for Listener {
    fn piece(&mut self, now: Time, task: TaskId, extent: Extent, data: Option<&[u8]>) {
        assert!(data.is_none(), "there are none in simulation");
        let mut oracle = self.0.borrow_mut();
        let numbers = oracle.numbers(extent);
        let told = oracle.told.get_mut(&task).expect("it was opened");
        assert!(!told.suspended, "{task:?} is suspended");
        told.first.get_or_insert(now);
        for block in numbers {
            assert!(
                told.wanted.remove(&block),
                "{task:?}: {block} was not wanted"
            );
            *told.times.entry(block).or_default() += 1;
        }
    }

    fn block(&mut self, _now: Time, task: TaskId, block: Extent) {
        let mut oracle = self.0.borrow_mut();
        let numbers = oracle.numbers(block);
        let told = oracle.told.get_mut(&task).expect("it was opened");
        assert!(numbers.into_iter().all(|one| !told.wanted.contains(&one)));
        told.blocks.push(block);
    }

    fn unreadable(&mut self, _now: Time, task: TaskId, extent: Extent) {
        let mut oracle = self.0.borrow_mut();
        let (start, end) = (extent.start.get(), extent.end().get());
        let is_bad = |bad: &Range<u64>| bad.start < end && start < bad.end;
        assert!(oracle.bad.iter().any(is_bad), "{extent} can be read");
        let told = oracle.told.get_mut(&task).expect("it was opened");
        assert!(told.wanted.remove(&start), "{start} was not wanted");
        told.unreadable.insert(start);
    }

    fn done(&mut self, now: Time, task: TaskId) {
        let mut oracle = self.0.borrow_mut();
        let told = oracle.told.get_mut(&task).expect("it was opened");
        assert!(told.wanted.is_empty(), "{task:?} wants {:?}", told.wanted);
        told.done = Some(now);
    }
}

type Job = Tasks<Arc<Model>, Listener>;

/// Has things happen to the tasks from time to time.
struct Driven<F> {
    tasks: Rc<RefCell<Job>>,
    oracle: Rc<RefCell<Oracle>>,
    drive: F,
}

impl<F: FnMut(Time, u64, &mut Job, &RefCell<Oracle>)> BackgroundLayer for Driven<F> {
    type Under = Rc<RefCell<Job>>;

    fn under(&self) -> &Self::Under {
        &self.tasks
    }

    fn under_mut(&mut self) -> &mut Self::Under {
        &mut self.tasks
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let asked = {
            let mut oracle = self.oracle.borrow_mut();
            oracle.asked += 1;
            oracle.asked
        };
        let mut tasks = self.tasks.borrow_mut();
        (self.drive)(now, asked, &mut tasks, &self.oracle);
        let asked = tasks.joins(now, engine, approach);
        if let Some((arrival, _, _)) = &asked {
            self.oracle.borrow().asked_for(arrival);
        }
        asked
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.oracle.borrow_mut().seen(done, true);
        self.tasks.borrow_mut().seen(now, done);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.oracle.borrow_mut().seen(done, false);
        self.tasks.borrow_mut().finished(now, done, data);
    }
}

/// A run of clients beside tasks.
struct Trial {
    seed: u64,
    scheduler: &'static str,
    /// Requests of all clients.
    count: u64,
    read_share: f64,
    think: Nanos,
    options: FreeblockOptions,
    profile: Profile,
    /// In which bytes of the disk clients read and write.
    range: (Bytes, Bytes),
    faults: Vec<(Time, Fault)>,
    timeout: Option<Nanos>,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            seed: 1,
            scheduler: "sptf-sw60",
            count: 8_000,
            read_share: 0.667,
            think: Nanos::ZERO,
            options: FreeblockOptions::default(),
            profile: atlas(),
            range: (Bytes(0), Bytes(32_000_000)),
            faults: Vec::new(),
            timeout: None,
        }
    }
}

/// What came of it.
struct Outcomes {
    oracle: Oracle,
    tasks: Rc<RefCell<Job>>,
    /// When the last client's request ended.
    end: Time,
}

impl Trial {
    /// Runs it. `drive` is called each time that the tasks are asked, the first time with 1.
    fn run(self, drive: impl FnMut(Time, u64, &mut Job, &RefCell<Oracle>) + 'static) -> Outcomes {
        let profile = self.profile;
        let model = Arc::new(Model::new(&profile));
        let spec: Spec = self.scheduler.parse().expect("registered");
        let built = spec.build(Some(Arc::clone(&model))).expect("built");
        let one = ProcessSpec {
            read_share: self.read_share,
            range: Some(self.range),
            pacing: Pacing::Closed {
                think: TimeDistribution::Constant(self.think),
                outstanding: 1,
            },
            ..ProcessSpec::default()
        };
        let workload = SyntheticSpec {
            count: Some(self.count),
            ..SyntheticSpec::alike(self.seed, 10, &one)
        };
        let capacity = profile.geometry.capacity;
        let mut source = Synthetic::new(&workload, capacity, 512).expect("in range");
        let bad = self.faults.iter().filter_map(|(_, fault)| match fault {
            Fault::Unreadable { extent, .. } => Some(extent.start.get()..extent.end().get()),
            _ => None,
        });
        let oracle = Rc::new(RefCell::new(Oracle {
            base: self.options.block.get(),
            bad: bad.collect(),
            ..Oracle::default()
        }));
        let told = Listener(Rc::clone(&oracle));
        let tasks = Tasks::none(model, capacity, self.options, told).expect("it turns");
        let tasks = Rc::new(RefCell::new(tasks));
        let mut end = Time::ZERO;
        let mut watch = |now: Time, _: Member, seen: Seen<'_>| {
            if let Seen::Command(Command::Finish(_)) = seen {
                end = now;
            }
        };
        let config = Config {
            depth: 2,
            merge: false,
            ..Config::default()
        };
        let mut setup = Setup::new(Drive::new(&profile, 1), config, built, &mut source);
        setup.audit = true;
        setup.timeout = self.timeout;
        setup.observer = Some(&mut watch);
        setup.stations[0].faults = self.faults;
        setup.stations[0].background = Some(Box::new(Driven {
            tasks: Rc::clone(&tasks),
            oracle: Rc::clone(&oracle),
            drive,
        }));
        run(setup).expect("runs");
        let oracle = oracle.take();
        Outcomes { oracle, tasks, end }
    }
}

/// A scan of sectors, as a scrub does it.
fn scan(priority: u8, from: u64, len: u64) -> TaskSpec {
    TaskSpec {
        priority,
        ranges: vec![Extent::at(from, len)],
        work: Work::Read,
        block: Sectors::new(8),
        all: true,
        on_write: OnWrite::Nothing,
        others_count: false,
    }
}

fn open(tasks: &mut Job, oracle: &RefCell<Oracle>, spec: TaskSpec) -> TaskId {
    let id = tasks.open(spec.clone()).expect("it fits");
    oracle.borrow_mut().opened(id, spec);
    id
}

fn eights() -> FreeblockOptions {
    FreeblockOptions {
        block: Sectors::new(8),
        ..FreeblockOptions::default()
    }
}

#[test]
fn each_task_is_told_of_each_of_its_blocks_once_and_of_written_ones_again() {
    let at = |seconds: u64| Time::ZERO + Nanos::from_secs(seconds);
    for seed in 1..=8 {
        let base = [1, 8, 8, 16][seed as usize % 4];
        let mut random = Pcg64::seed_from_u64(seed);
        let random_spec = move |random: &mut Pcg64| {
            let mut below = |most: u64| random.next_u64() % most;
            let ranges = (0..1 + below(3)).map(|_| {
                let start = below(16_000 / base) * base;
                Extent::at(start, (1 + below(2_000)) * base)
            });
            TaskSpec {
                ranges: ranges.collect(),
                priority: below(3) as u8,
                work: [Work::Read, Work::Read, Work::Write][below(3) as usize],
                block: Sectors::new(base * (1 + below(4))),
                all: below(5) > 0,
                on_write: [OnWrite::Nothing, OnWrite::Satisfied, OnWrite::Again][below(3) as usize],
                others_count: below(2) == 0,
            }
        };
        let bad = |start, len| Fault::Unreadable {
            extent: Extent::at(start, len),
            retries: 1,
        };
        let trial = Trial {
            seed,
            think: [Nanos::ZERO, Nanos::from_millis(60)][seed as usize % 2],
            options: FreeblockOptions {
                block: Sectors::new(base),
                picks: 1 + (seed as u32) % 2,
                idle: (seed % 3 == 0).then_some(Idle {
                    after: Nanos::from_millis(5),
                    piece: Sectors::new(64),
                }),
                ..FreeblockOptions::default()
            },
            faults: vec![
                (at(0), bad(2_000, 1)),
                (at(0), bad(7_777, 3)),
                (at(1), Fault::LoseNext),
                (at(2), Fault::Stall(Nanos::from_millis(900))),
                (at(3), Fault::LoseNext),
            ],
            timeout: Some(Nanos::from_millis(500)),
            ..Trial::default()
        };
        let mut last = Vec::new();
        let ended = trial.run(move |_, asked, tasks, oracle| {
            if asked == 1 {
                for _ in 0..3 {
                    let spec = random_spec(&mut random);
                    last.push(open(tasks, oracle, spec));
                }
            }
            if asked % 50 != 0 {
                return;
            }
            // Towards the end, all that is left goes on.
            if asked % 8_000 == 0 {
                for id in &last {
                    tasks.resume(*id);
                    let mut oracle = oracle.borrow_mut();
                    oracle.told.get_mut(id).expect("open").suspended = false;
                }
            }
            let which = last[random.next_u64() as usize % last.len()];
            match random.next_u64() % 400 {
                0..20 => {
                    tasks.suspend(which);
                    let mut oracle = oracle.borrow_mut();
                    oracle.told.get_mut(&which).expect("open").suspended = true;
                }
                20..45 => {
                    tasks.resume(which);
                    let mut oracle = oracle.borrow_mut();
                    oracle.told.get_mut(&which).expect("open").suspended = false;
                }
                45..55 => tasks.promote(
                    which,
                    Some(Demand {
                        class: Class::default(),
                        outstanding: 1 + (random.next_u64() % 3) as u32,
                        piece: Sectors::new(32),
                    }),
                ),
                55..75 => tasks.promote(which, None),
                75..77 if last.len() > 1 => {
                    let left = tasks.close(which).expect("open");
                    let told = oracle.borrow_mut().told.remove(&which).expect("open");
                    assert_eq!(left * base, told.wanted.len() as u64 * base);
                    assert_eq!(tasks.close(which), None);
                    last.retain(|id| *id != which);
                }
                77..80 => {
                    let spec = random_spec(&mut random);
                    last.push(open(tasks, oracle, spec));
                }
                _ => {}
            }
        });
        let tasks = ended.tasks.borrow();
        let mut delivered = 0;
        for (id, told) in &ended.oracle.told {
            let left = tasks.left(*id).expect("open");
            assert_eq!(left, told.wanted.len() as u64, "seed {seed} {id:?}");
            let spec = told.spec.as_ref().expect("open");
            delivered += told.times.len();
            if spec.on_write != OnWrite::Again {
                assert!(told.times.values().all(|times| *times == 1), "seed {seed}");
                let blocks = told.blocks.len();
                let different: BTreeSet<_> = told.blocks.iter().map(|one| one.start).collect();
                assert_eq!(blocks, different.len(), "seed {seed}");
            }
        }
        assert!(delivered > 100, "seed {seed}: {delivered}");
    }
}

#[test]
fn the_higher_priority_comes_first_and_what_is_read_for_it_counts_for_all() {
    for (one, other) in [(1, 0), (0, 1), (1, 1)] {
        let trial = Trial {
            options: eights(),
            count: 1_500,
            ..Trial::default()
        };
        let ended = trial.run(move |_, asked, tasks, oracle| {
            if asked == 1 {
                open(tasks, oracle, scan(one, 0, 48_000));
                open(tasks, oracle, scan(other, 16_000, 48_000));
            }
        });
        let read = |id: u32| ended.oracle.told[&TaskId(id)].times.len();
        let both: Vec<usize> = [0, 1]
            .map(|id| {
                let times = &ended.oracle.told[&TaskId(id)].times;
                times.range(16_000..48_000).count()
            })
            .into();
        assert_eq!(both[0], both[1], "what both want is read once for both");
        // Of what it alone wants.
        let own = |id: usize| (read(id as u32) - both[id]) as f64;
        let (first, second) = (own(0), own(1));
        match one.cmp(&other) {
            std::cmp::Ordering::Greater => assert!(first > 1.5 * second, "{first} {second}"),
            std::cmp::Ordering::Less => assert!(second > 1.5 * first, "{first} {second}"),
            std::cmp::Ordering::Equal => {
                assert!((first / second - 1.0).abs() < 0.2, "{first} {second}");
            }
        }
    }
}

#[test]
fn a_promoted_task_is_read_at_the_cost_of_others_and_no_longer_when_it_is_not() {
    let run = |from: u64, to: u64| {
        let trial = Trial {
            options: eights(),
            count: 4_000,
            ..Trial::default()
        };
        trial.run(move |_, asked, tasks, oracle| {
            if asked == 1 {
                open(tasks, oracle, scan(0, 0, 400_000));
            }
            let demand = Demand {
                class: Class::default(),
                outstanding: 2,
                piece: Sectors::new(128),
            };
            if asked == from {
                tasks.promote(TaskId(0), Some(demand));
            } else if asked == to {
                tasks.promote(TaskId(0), None);
            }
        })
    };
    let never = run(u64::MAX, u64::MAX);
    let always = run(2, u64::MAX);
    // Of some 20,000 times that the tasks are asked while clients are there.
    let awhile = run(2, 10_000);
    let read = |of: &Outcomes| of.oracle.told[&TaskId(0)].times.len();
    assert!(read(&always) > 3 * read(&never) / 2);
    assert!(5 * read(&awhile) > 6 * read(&never) && read(&awhile) < read(&always));
    assert!(always.end > awhile.end && awhile.end > never.end);
}

#[test]
fn a_task_that_waits_for_writes_reads_what_was_written() {
    let trial = Trial {
        options: eights(),
        count: 6_000,
        ..Trial::default()
    };
    let ended = trial.run(|_, asked, tasks, oracle| {
        if asked == 1 {
            let incremental = TaskSpec {
                all: false,
                on_write: OnWrite::Again,
                ..scan(0, 0, 60_000)
            };
            open(tasks, oracle, incremental);
        }
    });
    let told = &ended.oracle.told[&TaskId(0)];
    // A third of 6,000 requests of 8 sectors of 62,500: what was written is read, and nothing else.
    assert!(told.times.len() > 1_000, "{}", told.times.len());
    assert!(told.times.len() < 5_000, "{}", told.times.len());
    assert!(told.times.values().any(|times| *times > 1));
}

#[test]
fn a_task_that_writes_costs_clients_nothing_and_what_clients_write_satisfies_it() {
    let run = |work: Option<Work>| {
        let trial = Trial {
            options: eights(),
            count: 6_000,
            ..Trial::default()
        };
        trial.run(move |_, asked, tasks, oracle| {
            if let Some(work) = work.filter(|_| asked == 1) {
                let restore = TaskSpec {
                    work,
                    on_write: OnWrite::Satisfied,
                    ..scan(0, 0, 60_000)
                };
                open(tasks, oracle, restore);
            }
        })
    };
    let (alone, reads, writes) = (run(None), run(Some(Work::Read)), run(Some(Work::Write)));
    let told = |of: &Outcomes| of.oracle.told[&TaskId(0)].clone();
    let (read, written) = (told(&reads), told(&writes));
    // A track is reached for a write later than for a read, and what clients read does not count.
    let (reads, writes_count) = (read.times.len(), written.times.len());
    assert!(writes_count > reads / 2, "{writes_count} of {reads}");
    let by_clients = written.blocks.len() - writes_count;
    assert!(by_clients > 500, "{by_clients}");
    let seconds = |at: Time| (at - Time::ZERO).as_secs_f64();
    let loss = seconds(writes.end) / seconds(alone.end);
    assert!(loss < 1.01, "{loss}");
}

#[test]
fn where_writes_end_in_the_drives_buffer_they_wait_for_idle_time() {
    let run = |idle: Option<Idle>| {
        let trial = Trial {
            options: FreeblockOptions { idle, ..eights() },
            count: 2_000,
            think: Nanos::from_millis(200),
            profile: atlas()
                .with(|spec| spec.cache.write_back = WriteBack::Full)
                .expect("it can be"),
            ..Trial::default()
        };
        let ended = trial.run(|_, asked, tasks, oracle| {
            if asked == 1 {
                let restore = TaskSpec {
                    work: Work::Write,
                    ..scan(0, 0, 20_000)
                };
                open(tasks, oracle, restore);
            }
        });
        ended.oracle.told[&TaskId(0)].times.len()
    };
    let idle = Idle {
        after: Nanos::from_millis(5),
        piece: Sectors::new(64),
    };
    assert_eq!((run(None), run(Some(idle))), (0, 2_500));
}

#[test]
fn what_does_not_fit_the_disk_is_refused() {
    let profile = atlas();
    let capacity = profile.geometry.capacity;
    let model = Arc::new(Model::new(&profile));
    let told = Listener(Rc::default());
    let mut tasks = Tasks::none(model, capacity, eights(), told).expect("it turns");
    let mut open = |change: &dyn Fn(&mut TaskSpec)| {
        let mut spec = scan(0, 0, 80);
        change(&mut spec);
        tasks.open(spec)
    };
    let outside = Extent::at(0, capacity.get() + 8);
    let refused = open(&|spec| spec.ranges = vec![outside]);
    assert_eq!(refused, Err(TaskError::Outside(outside, capacity)));
    let far = Extent::at(u64::MAX - 7, 16);
    let refused = open(&|spec| spec.ranges = vec![far]);
    assert_eq!(refused, Err(TaskError::Outside(far, capacity)));
    for parts in [Extent::at(4, 8), Extent::at(0, 12)] {
        let refused = open(&|spec| spec.ranges = vec![parts]);
        assert_eq!(refused, Err(TaskError::Parts(parts, Sectors::new(8))));
    }
    for block in [0, 12] {
        let refused = open(&|spec| spec.block = Sectors::new(block));
        let expected = TaskError::Block(Sectors::new(block), Sectors::new(8));
        assert_eq!(refused, Err(expected));
    }
    // The last block of the disk is short.
    let last = capacity.get() / 8 * 8;
    let end = Extent::at(last, capacity.get() - last);
    assert!(open(&|spec| spec.ranges = vec![end, Extent::at(0, 0)]).is_ok());
    assert_eq!(tasks.left(TaskId(0)), Some(1));
    assert_eq!(tasks.left(TaskId(1)), None);
    assert_eq!(tasks.close(TaskId(0)), Some(1));
}

/// Clients of a drive that keeps a good deal of where they read: how long they take beside tasks, as a part of what they take alone,
/// and how many blocks the tasks have then.
fn beside_near(scheduler: &'static str, hits: Hits, specs: &[TaskSpec]) -> (f64, u64) {
    let [alone, beside] = [&[][..], specs].map(|specs| {
        let shipped = profile::by_name("exos-x18").expect("shipped");
        let trial = Trial {
            scheduler,
            count: 5_000,
            read_share: 1.0,
            options: FreeblockOptions { hits, ..eights() },
            profile: shipped
                .with(|spec| spec.cache.write_back = WriteBack::Off)
                .expect("it can be"),
            range: (Bytes(1 << 30), Bytes((1024 + 300) << 20)),
            ..Trial::default()
        };
        let specs = specs.to_vec();
        let ended = trial.run(move |_, asked, tasks, oracle| {
            if asked == 1 {
                for spec in &specs {
                    open(tasks, oracle, spec.clone());
                }
            }
        });
        let told = ended.oracle.told.values();
        let read = told.map(|told| {
            told.times
                .values()
                .map(|times| u64::from(*times))
                .sum::<u64>()
        });
        (ended.end.as_secs_f64(), read.sum())
    });
    (beside.0 / alone.0, beside.1)
}

/// What several scans pick is in one buffer. A task that writes takes as much of what the drive would keep as one that reads.
#[test]
fn clients_keep_the_hits_of_the_buffer_beside_tasks_of_several_ranks_and_such_that_write() {
    let reads = |priority| scan(priority, 1_000_000, 1_000_000);
    let writes = TaskSpec {
        work: Work::Write,
        ..scan(1, 6_000_000, 400_000)
    };
    for specs in [
        [scan(1, 4_000_000, 40_000), reads(0)],
        [writes.clone(), reads(0)],
    ] {
        let [guarded, spared] =
            [Hits::Guarded, Hits::Spared].map(|hits| beside_near("deadline", hits, &specs));
        assert!(guarded.0 < 1.02, "{guarded:?}");
        assert!(spared.0 > 1.04, "{spared:?}");
        assert!(spared.1 > 10 * guarded.1, "{spared:?} {guarded:?}");
    }
    let alone = beside_near("sptf", Hits::Guarded, &[writes]);
    assert!(alone.0 < 1.02 && alone.1 > 1_000, "{alone:?}");
}
