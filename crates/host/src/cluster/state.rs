//! The state of a cluster.

use super::busy::Busy;
use super::link::Links;
use super::spec::ClusterSpec;
use super::stripes::Stripes;
use crate::builder::{HostBuilder, HostError};
use crate::hosts::{AskerOf, Hosts, Placed};
use crate::outcome::{ProcessOutcome, ProgramOutcome, by_program};
use crate::returned::ReturnedCalls;
use crate::spec::{Behaviour, DiskSize, File, FileId, ProcessSpec, Step};
use headtime_sched::Class;
use headtime_units::{Extent, Nanos, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Client nodes, a network and data servers: a [`Source`](headtime_workload::Source) of requests. See the
/// [module](super) for the rules.
///
/// Invariants: `foreground` is at most `alive`, which is at most the number of `clients`; `free` has the indices of
/// `pieces` that are not in use; `now` never falls.
pub struct Cluster {
    pub(super) spec: ClusterSpec,
    pub(super) stripes: Stripes,
    /// By node.
    pub(super) nodes: Vec<Links>,
    pub(super) servers: Vec<Server>,
    /// The host of each server.
    pub(super) hosts: Hosts,
    pub(super) clients: Vec<Client>,
    pub(super) barriers: Vec<ClusterBarrier>,
    pub(super) files: Vec<Striped>,
    /// Index of the file that each name stands for.
    pub(super) names: Vec<u32>,
    /// Pieces of calls under way, by slot, and the free slots.
    pub(super) pieces: Vec<Piece>,
    pub(super) free: Vec<u32>,
    /// Events of the cluster itself, by time. Events of the same time come in the order in which they were set.
    pub(super) due: BinaryHeap<Reverse<(Time, u64, Event)>>,
    events: u64,
    pub(super) now: Time,
    /// Clients that run.
    pub(super) alive: u32,
    /// Running clients that are not background clients.
    pub(super) foreground: u32,
    /// By number of the program.
    pub(super) busy: Vec<Busy>,
    pub(super) epoch: Option<Nanos>,
    pub(super) returned: ReturnedCalls,
}

/// A data server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub links: Links,
    /// Threads without work, the one idle for longest in front.
    pub idle: VecDeque<u32>,
    /// The piece that each thread has in work.
    pub work: Vec<u32>,
    /// Pieces that wait for a thread.
    pub waiting: VecDeque<u32>,
}

/// A process on a node.
pub(super) struct Client {
    pub program: u16,
    pub class: Class,
    pub node: usize,
    pub behaviour: Box<dyn Behaviour>,
    pub background: bool,
    /// Steps since time last passed.
    pub steps: u32,
    /// Pieces of the present call that have not been answered.
    pub pending: u32,
    pub call: Call,
    /// Start of the present call.
    pub called: Time,
    /// Bytes of the present call.
    pub bytes: u64,
    pub outcome: ProcessOutcome,
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
    Sync,
    /// Deletion of a file. In results this does not count as a call.
    Forget,
}

/// A place where processes meet.
#[derive(Clone, Debug)]
pub(super) struct ClusterBarrier {
    pub members: u32,
    pub come: Vec<u32>,
}

/// A file as clients see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Striped {
    /// Part of the file on a server, with the same name on each server.
    pub part: FileId,
    pub initial_size: u64,
    pub size: u64,
    pub room: u64,
}

/// A part of a call that one thread of a server carries out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub client: u32,
    pub server: u16,
    /// Step of the server's thread.
    pub step: Step,
    pub bytes: u64,
    pub stage: Stage,
    /// True if a write's request contains the data.
    pub small: bool,
}

/// Message of a piece that is under way, or the last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The client asks.
    Ask,
    /// The server permits to send data.
    Grant,
    /// The client sends data to write.
    Data,
    /// The server answers, with data that were read.
    Answer,
}

/// An event of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A client goes on.
    Run(u32),
    /// The message of a piece comes to the receiver's link.
    Hop(u32),
    /// The receiver has the message of a piece.
    Arrived(u32),
    /// The server starts with a piece.
    Start(u32),
    /// A thread of a server is done with its piece.
    Back(u16, u32),
}

impl Cluster {
    /// Puts a cluster together from the processes and files of `builder`, which was made for the
    /// [volume](ClusterSpec::volume) of the cluster. Each server has the properties of the builder's host, and a disk
    /// of the size `disk`. On each server, a file begins at the row of strips that contains the file's first sector.
    /// Pools of the builder are not used.
    ///
    /// # Errors
    ///
    /// If a number of `spec` is out of range, or a file does not have exactly one extent. Also as
    /// [`HostBuilder::build`].
    pub fn new(
        spec: ClusterSpec,
        disk: DiskSize,
        builder: HostBuilder,
        seed: u64,
    ) -> Result<Cluster, HostError> {
        spec.check()?;
        builder.check()?;
        let stripes = Stripes {
            servers: spec.servers.into(),
            strip: spec.strip.0,
        };
        let host = |number| host(number, &spec, stripes, disk, &builder, seed);
        let hosts = (0..spec.servers).map(host).collect::<Result<_, _>>()?;
        let server = Server::new(spec.threads.into());
        let HostBuilder {
            files,
            names,
            barriers,
            processes,
            classes,
            background,
            ..
        } = builder;
        let files = (0..).map(FileId).zip(&files).map(|(part, file)| Striped {
            part,
            initial_size: file.size,
            size: file.size,
            room: room(file, disk),
        });
        let mut ranks = BTreeMap::new();
        let specs = processes.into_iter().zip(classes).zip(background);
        let mut clients = Vec::new();
        for ((process, class), background) in specs {
            let rank = ranks.entry(process.program).or_insert(0_usize);
            let number = clients.len() as u32 + 1;
            let node = *rank % usize::from(spec.nodes);
            *rank += 1;
            clients.push(Client::new(number, process, class, background, node));
        }
        let programs = ranks
            .keys()
            .next_back()
            .map_or(0, |last| *last as usize + 1);
        let barriers = barriers.into_iter().map(|members| ClusterBarrier {
            members,
            come: Vec::with_capacity(members as usize),
        });
        let foreground = clients.iter().filter(|client| !client.background).count();
        let mut cluster = Cluster {
            stripes,
            nodes: vec![Links::default(); spec.nodes.into()],
            servers: vec![server; spec.servers.into()],
            hosts: Hosts(hosts),
            barriers: barriers.collect(),
            files: files.collect(),
            names,
            pieces: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            events: 0,
            now: Time::ZERO,
            alive: clients.len() as u32,
            foreground: foreground as u32,
            busy: vec![Busy::default(); programs],
            epoch: None,
            returned: ReturnedCalls::default(),
            clients,
            spec,
        };
        for client in 0..cluster.alive {
            let start = cluster.clients[client as usize].outcome.started;
            cluster.set(start, Event::Run(client));
        }
        Ok(cluster)
    }

    /// Adds to outcomes the time of each epoch in which a program had a call outstanding. Call this before the first
    /// poll. An epoch of zero time changes nothing.
    pub fn keep_epochs(&mut self, epoch: Nanos) {
        self.epoch = Some(epoch);
    }

    /// Results of the programs so far, in the order of their numbers.
    pub fn outcome(&self) -> Vec<ProgramOutcome> {
        let processes = self.clients.iter();
        let mut programs =
            by_program(processes.map(|client| (client.program.into(), client.outcome)));
        for program in &mut programs {
            let busy = &self.busy[program.program as usize];
            let (time, epochs) = busy.until(self.now, self.epoch);
            (program.io_time, program.io_epochs) = (Some(time), epochs);
        }
        programs
    }

    /// Sets an event.
    pub(super) fn set(&mut self, at: Time, event: Event) {
        self.events += 1;
        self.due.push(Reverse((at, self.events, event)));
    }
}

/// Bytes that a file has room for.
fn room(file: &File, disk: DiskSize) -> u64 {
    let sectors = file.extents.iter().map(|extent| extent.len.get());
    sectors.sum::<u64>() * u64::from(disk.sector_bytes)
}

/// The host of a server.
fn host(
    number: u16,
    spec: &ClusterSpec,
    stripes: Stripes,
    disk: DiskSize,
    all: &HostBuilder,
    seed: u64,
) -> Result<Placed, HostError> {
    let mut builder = HostBuilder::new(all.spec.clone(), disk)?;
    let sector_bytes = u64::from(disk.sector_bytes);
    let share = |bytes| stripes.share(bytes, number.into());
    for (index, file) in all.files.iter().enumerate() {
        let [extent] = file.extents[..] else {
            return Err(HostError::InPieces { file: index + 1 });
        };
        let begin = stripes.begin(extent.start.get() * sector_bytes);
        let len = share(room(file, disk));
        let extent = Extent::at(begin / sector_bytes, len / sector_bytes);
        builder.add_file(File {
            extents: [extent].into_iter().filter(|_| len > 0).collect(),
            size: share(file.size),
        })?;
    }
    let threads = u32::from(spec.threads);
    for _ in 0..threads {
        builder.add_process(ProcessSpec {
            program: 0,
            behaviour: Box::new(|| Step::Exit),
            served_by: None,
            start: Time::ZERO,
        });
    }
    let mut host = builder.build(seed)?;
    host.wait_for_steps();
    Ok(Placed {
        host,
        base: u64::from(number) * disk.capacity.get(),
        // The flusher has a number too.
        asker: AskerOf::Processes(u32::from(number) * (threads + 1)),
    })
}

impl Server {
    fn new(threads: u32) -> Server {
        Server {
            links: Links::default(),
            idle: (0..threads).collect(),
            work: vec![0; threads as usize],
            waiting: VecDeque::new(),
        }
    }
}

impl Client {
    fn new(number: u32, spec: ProcessSpec, class: Class, background: bool, node: usize) -> Client {
        Client {
            program: spec.program as u16,
            class,
            node,
            behaviour: spec.behaviour,
            background,
            steps: 0,
            pending: 0,
            call: Call::Read,
            called: spec.start,
            bytes: 0,
            outcome: ProcessOutcome {
                process: number,
                started: spec.start,
                ended: None,
                bytes_read: 0,
                bytes_written: 0,
                calls: 0,
            },
        }
    }
}
