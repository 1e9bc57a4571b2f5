//! Output of a log, in pieces.

use super::{
    write_decision, write_end, write_event, write_gate_swap, write_header, write_member,
    write_setting, write_swap,
};
use crate::{Member, Seen};
use headtime_units::Time;

/// Destination of a log.
pub trait Sink {
    /// Takes a piece of the log, which is not empty. Leaves an empty string with room for the next piece.
    fn hand_on(&mut self, piece: &mut String);
}

impl<F: FnMut(&str) + ?Sized> Sink for &mut F {
    fn hand_on(&mut self, piece: &mut String) {
        self(piece);
        piece.clear();
    }
}

/// Writes the log of a run in pieces, and passes the pieces to a [`Sink`].
#[derive(Debug)]
pub struct Writer<S> {
    text: String,
    /// Bytes of the header that `text` still contains.
    header: usize,
    sink: S,
}

impl<S: Sink> Writer<S> {
    /// Size at which a piece goes to the sink.
    pub const PIECE_BYTES: usize = 1 << 16;

    /// Starts a log with these settings.
    pub fn new(settings: &[(String, String)], sink: S) -> Writer<S> {
        let mut text = Self::piece();
        write_header(&mut text);
        for (key, value) in settings {
            write_setting(&mut text, key, value);
        }
        Writer {
            header: text.len(),
            text,
            sink,
        }
    }

    /// Returns an empty piece with capacity for all text up to the next flush.
    pub fn piece() -> String {
        String::with_capacity(Self::PIECE_BYTES + 4096)
    }

    /// Writes an event, command or swap of a member's engine.
    #[inline]
    pub fn write(&mut self, now: Time, member: Member, seen: Seen<'_>) {
        let text = &mut self.text;
        write_member(text, member);
        match seen {
            Seen::Event(event) => write_event(text, now, event),
            Seen::Command(command) => write_decision(text, now, &command.into()),
            Seen::Swapped(lane, scheduler) => write_swap(text, now, lane, scheduler),
            Seen::GateSwapped(gate, schedulers) => write_gate_swap(text, now, gate, schedulers),
        }
    }

    /// Returns true if anything but the header waits for the sink.
    pub fn has_news(&self) -> bool {
        self.text.len() > self.header
    }

    /// Passes the text to the sink if it fills a piece.
    #[inline]
    pub fn flush_if_full(&mut self) {
        if self.text.len() >= Self::PIECE_BYTES {
            self.flush();
        }
    }

    /// Passes the text to the sink.
    pub fn flush(&mut self) {
        self.header = 0;
        if !self.text.is_empty() {
            self.sink.hand_on(&mut self.text);
        }
    }

    /// Marks the log as complete, and returns the sink, which has the whole log.
    pub fn finish(mut self) -> S {
        write_end(&mut self.text);
        self.flush();
        self.sink
    }
}
