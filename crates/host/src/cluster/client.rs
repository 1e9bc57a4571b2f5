//! Runs the processes on the nodes.

use super::state::{Call, Cluster, Event, Piece, Stage};
use super::stripes::Segment;
use crate::spec::{FileId, Step};
use headtime_sched::Op;
use headtime_units::Time;

/// Most steps that a process may take while no time passes. A program that takes more is an endless loop.
const STEPS_MAX: u32 = if cfg!(test) { 1 << 20 } else { 1 << 28 };

/// Most data of a message: a flow buffer.
const FLOW: u64 = 256 << 10;

/// Most data that a write's request may contain: 16 KiB with the header.
const INLINE_BYTES_MAX: u64 = (16 << 10) - 24;

impl Cluster {
    /// Lets a client run until it waits or ends.
    ///
    /// # Panics
    ///
    /// If the client reads or changes blocks of a disk, which it does not have, or takes steps without end.
    pub(super) fn run(&mut self, client: u32, now: Time) {
        self.clients[client as usize].steps = 0;
        loop {
            let this = &mut self.clients[client as usize];
            this.steps += 1;
            assert!(
                this.steps < STEPS_MAX,
                "process {} takes steps without end, and no time passes",
                this.outcome.process
            );
            let step = match this.background && self.foreground == 0 {
                true => Step::Exit,
                false => this.behaviour.next(),
            };
            let waits = match step {
                Step::Think(span) if span.is_zero() => false,
                Step::Think(span) => {
                    self.set(now.saturating_add(span), Event::Run(client));
                    true
                }
                Step::Ask(class) => {
                    this.class = class;
                    false
                }
                Step::Barrier(barrier) => {
                    self.meet(client, barrier.0, now);
                    true
                }
                Step::Exit => {
                    this.outcome.ended = Some(now);
                    self.foreground -= u32::from(!this.background);
                    self.alive -= 1;
                    if self.alive == 0 {
                        self.dismiss(now);
                    }
                    true
                }
                Step::Read { file, offset, len } => {
                    self.call(client, Call::Read, file, offset, len, now, |file, part| {
                        Step::Read {
                            file,
                            offset: part.offset,
                            len: part.len,
                        }
                    })
                }
                Step::Write { file, offset, len } => {
                    self.call(client, Call::Write, file, offset, len, now, |file, part| {
                        Step::Write {
                            file,
                            offset: part.offset,
                            len: part.len,
                        }
                    })
                }
                Step::Direct {
                    op,
                    file,
                    offset,
                    len,
                } => {
                    let call = match op {
                        Op::Read => Call::Read,
                        _ => Call::Write,
                    };
                    self.call(client, call, file, offset, len, now, |file, part| {
                        Step::Direct {
                            op,
                            file,
                            offset: part.offset,
                            len: part.len,
                        }
                    })
                }
                Step::Sync(file) => self.call_all(client, Call::Sync, file, now),
                Step::Forget(file) => self.call_all(client, Call::Forget, file, now),
                Step::ReadBlock(_) | Step::DirtyBlock(_) => {
                    panic!(
                        "process {} is a client and has no disk: {step:?}",
                        this.outcome.process
                    )
                }
            };
            if waits {
                return;
            }
        }
    }

    /// Makes a call over a range of a file. Returns false if the call returns at once, since the range is empty.
    #[expect(
        clippy::too_many_arguments,
        reason = "who, what, where, when, and how a server does it"
    )]
    fn call(
        &mut self,
        client: u32,
        call: Call,
        name: FileId,
        offset: u64,
        len: u64,
        now: Time,
        step: impl Fn(FileId, Segment) -> Step,
    ) -> bool {
        let file = &mut self.files[self.names[name.0 as usize] as usize];
        let room = match call {
            Call::Read => file.size,
            _ => file.room,
        };
        let end = offset.saturating_add(len).min(room).max(offset);
        if call == Call::Write && offset < end {
            file.size = file.size.max(end);
        }
        let part = file.part;
        self.begin(client, call, end - offset, now);
        let stripes = self.stripes;
        let small = stripes
            .segments(offset, end)
            .all(|segment| segment.len <= INLINE_BYTES_MAX);
        for segment in stripes.segments(offset, end) {
            let mut done = 0;
            while done < segment.len {
                let piece = Segment {
                    offset: segment.offset + done,
                    len: FLOW.min(segment.len - done),
                    ..segment
                };
                done += piece.len;
                self.ask(client, piece, step(part, piece), small, now);
            }
        }
        if offset == end {
            self.returns(client, now);
        }
        offset < end
    }

    /// Makes a call that concerns a whole file.
    fn call_all(&mut self, client: u32, call: Call, name: FileId, now: Time) -> bool {
        let file = &mut self.files[self.names[name.0 as usize] as usize];
        let part = file.part;
        let step = match call {
            Call::Forget => {
                file.size = file.initial_size;
                Step::Forget(part)
            }
            _ => Step::Sync(part),
        };
        self.begin(client, call, 0, now);
        for server in 0..self.stripes.servers {
            let segment = Segment {
                server,
                offset: 0,
                len: 0,
            };
            self.ask(client, segment, step, true, now);
        }
        true
    }

    fn begin(&mut self, client: u32, call: Call, bytes: u64, now: Time) {
        let this = &mut self.clients[client as usize];
        (this.call, this.called, this.bytes) = (call, now, bytes);
        self.busy[usize::from(this.program)].begin(now);
    }

    /// Asks a server for a piece of a client's call.
    fn ask(&mut self, client: u32, part: Segment, step: Step, small: bool, now: Time) {
        let piece = Piece {
            client,
            server: part.server as u16,
            step,
            bytes: part.len,
            stage: Stage::Ask,
            small,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.pieces[slot as usize] = piece;
                slot
            }
            None => {
                self.pieces.push(piece);
                self.pieces.len() as u32 - 1
            }
        };
        self.clients[client as usize].pending += 1;
        self.send(slot, Stage::Ask, now);
    }

    /// A piece of a client's call was answered.
    pub(super) fn answered(&mut self, client: u32, now: Time) {
        let this = &mut self.clients[client as usize];
        this.pending -= 1;
        if this.pending == 0 {
            self.returns(client, now);
            self.run(client, now);
        }
    }

    fn returns(&mut self, client: u32, now: Time) {
        let this = &mut self.clients[client as usize];
        self.busy[usize::from(this.program)].end(now, self.epoch);
        match this.call {
            Call::Read => this.outcome.bytes_read += this.bytes,
            Call::Write => this.outcome.bytes_written += this.bytes,
            Call::Sync | Call::Forget => {}
        }
        if this.call != Call::Forget {
            this.outcome.calls += 1;
            self.returned.push(this.called, now);
        }
    }

    fn meet(&mut self, client: u32, number: u32, now: Time) {
        let barrier = &mut self.barriers[number as usize];
        barrier.come.push(client);
        if (barrier.come.len() as u32) < barrier.members {
            return;
        }
        let rounds = barrier.members.next_power_of_two().trailing_zeros();
        let at = now + self.spec.barrier * u64::from(rounds);
        for nth in 0..barrier.members as usize {
            let client = self.barriers[number as usize].come[nth];
            self.set(at, Event::Run(client));
        }
        self.barriers[number as usize].come.clear();
    }

    /// Ends the servers' threads, when no client is left.
    fn dismiss(&mut self, now: Time) {
        for (server, placed) in self.servers.iter_mut().zip(&mut self.hosts.0) {
            while let Some(thread) = server.idle.pop_front() {
                let host = &mut placed.host;
                host.hand(thread, now, Step::Exit, 0, Default::default());
            }
        }
    }
}
