//! Messages between nodes and servers, and the servers' work on them.

use super::link::Links;
use super::state::{Call, Cluster, Event, Piece, Stage};
use headtime_units::{Nanos, Time};

/// Bytes of a message without its data: BMI's header.
const HEADER: u64 = 24;

impl Piece {
    /// Bytes of the message that is under way.
    fn message(&self, call: Call) -> u64 {
        let has_data = match self.stage {
            Stage::Ask => call == Call::Write && self.small,
            Stage::Grant => false,
            Stage::Data => true,
            Stage::Answer => call == Call::Read,
        };
        match has_data {
            true => HEADER + self.bytes,
            false => HEADER,
        }
    }

    fn goes_to_server(&self) -> bool {
        matches!(self.stage, Stage::Ask | Stage::Data)
    }
}

impl Cluster {
    /// Sends the message of a piece.
    pub(super) fn send(&mut self, piece: u32, stage: Stage, now: Time) {
        self.pieces[piece as usize].stage = stage;
        let of = self.pieces[piece as usize];
        let (message, latency) = (self.spec.message, self.spec.latency);
        let (node, server, span) = self.path(&of);
        let link = match of.goes_to_server() {
            true => &mut node.up,
            false => &mut server.up,
        };
        let begin = link.take(now + message, span);
        self.set(begin + latency, Event::Hop(piece));
    }

    /// Takes the message of a piece to the receiver's link.
    pub(super) fn hop(&mut self, piece: u32, now: Time) {
        let of = self.pieces[piece as usize];
        let (node, server, span) = self.path(&of);
        let link = match of.goes_to_server() {
            true => &mut server.down,
            false => &mut node.down,
        };
        let end = link.take(now, span) + span;
        self.set(end + self.spec.message, Event::Arrived(piece));
    }

    /// The links of a piece's node and server, and the time of its message on each.
    fn path(&mut self, piece: &Piece) -> (&mut Links, &mut Links, Nanos) {
        let client = &self.clients[piece.client as usize];
        let span = self.spec.link.time(piece.message(client.call));
        let node = &mut self.nodes[client.node];
        (node, &mut self.servers[piece.server as usize].links, span)
    }

    /// The receiver has the message of a piece.
    pub(super) fn arrived(&mut self, piece: u32, now: Time) {
        let Piece {
            client,
            stage,
            small,
            ..
        } = self.pieces[piece as usize];
        let call = self.clients[client as usize].call;
        match stage {
            Stage::Ask if call == Call::Write && !small => self.send(piece, Stage::Grant, now),
            Stage::Ask | Stage::Data => self.set(now + self.spec.request, Event::Start(piece)),
            Stage::Grant => self.send(piece, Stage::Data, now),
            Stage::Answer => {
                self.free.push(piece);
                self.answered(client, now);
            }
        }
    }

    /// Gives a piece to an idle thread of its server. If no thread is idle, the piece waits.
    pub(super) fn start(&mut self, piece: u32, now: Time) {
        let of = self.pieces[piece as usize];
        let Cluster {
            clients,
            servers,
            hosts,
            ..
        } = self;
        let client = &clients[of.client as usize];
        let server = &mut servers[of.server as usize];
        match server.idle.pop_front() {
            Some(thread) => {
                server.work[thread as usize] = piece;
                let host = &mut hosts.0[of.server as usize].host;
                host.hand(thread, now, of.step, client.program, client.class);
            }
            None => server.waiting.push_back(piece),
        }
    }

    /// A thread of a server is done with its piece.
    pub(super) fn back(&mut self, server: u16, thread: u32, now: Time) {
        let this = &mut self.servers[server as usize];
        let piece = this.work[thread as usize];
        this.idle.push_back(thread);
        if let Some(next) = this.waiting.pop_front() {
            self.start(next, now);
        }
        self.send(piece, Stage::Answer, now);
    }
}
