//! The *line* of a copy: the moment whose disk contents the finished image has.
//!
//! A write to a block makes the block wanted again, and voids a read of the block that is under way. The line is drawn as soon as no block
//! is wanted. At this moment the image has each block as the disk has it, or a read of the block is under way. The engine makes all later
//! writes wait for these reads. Later writes are therefore not in the image. A block that is written after the line still becomes wanted,
//! and its mark is cleared in the file. If a read fails or the server is killed before all is durable, a new line is drawn later.
//!
//! Clients that write all the time would leave some block wanted at any time. The last blocks are therefore requested all at once, at
//! foreground priority. The line is drawn as soon as these reads are requested. The reads may end later.

use headtime_gaps::Demand;
use headtime_sched::Class;
use headtime_units::Sectors;

/// Most blocks that are requested at once at the end. A client's request then waits, once, for no more reads than this number of other
/// clients would cause.
const LAST_BLOCKS: u64 = 64;

/// Most bytes of these blocks, since all the data have to be in memory.
const LAST_BYTES: u64 = 16 << 20;

/// Line of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Blocks are wanted.
    Open,
    /// The last blocks are read at foreground priority.
    ClosesIn,
    /// The image will have the disk's contents of the moment at which the line was drawn.
    Drawn,
}

/// Moment whose disk contents an image is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub line: Line,
    /// Most blocks that are requested at once.
    last: u64,
    /// Number of times that a write made a block wanted again.
    pub again: u64,
}

impl Moment {
    /// Moment that is still to come, for blocks of `block` bytes.
    pub fn to_come(block: u64) -> Moment {
        Moment {
            line: Line::Open,
            last: LAST_BLOCKS.min(LAST_BYTES / block).max(1),
            again: 0,
        }
    }

    /// Returns true if the line is drawn.
    pub fn is_drawn(&self) -> bool {
        self.line == Line::Drawn
    }

    /// Returns true if so few blocks are `wanted` that they are read at foreground priority.
    pub fn is_closing(&self, wanted: u64) -> bool {
        !self.is_drawn() && wanted <= self.last
    }

    /// Starts or ends reads at foreground priority. Returns the new demand if it changes.
    pub fn close_in(&mut self, closes: bool) -> Option<Option<Demand>> {
        self.line = match (self.line, closes) {
            (Line::Open, true) => Line::ClosesIn,
            (Line::ClosesIn, false) => Line::Open,
            _ => return None,
        };
        Some(closes.then_some(Demand {
            class: Class::default(),
            outstanding: LAST_BLOCKS as u32,
            piece: Sectors::new(1),
        }))
    }
}
