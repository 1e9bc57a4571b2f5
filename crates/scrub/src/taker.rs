//! Taker of the data of a scrub: the seam between background reading, and hashes or an image.
//!
//! A taker is notified that a block was read, and that a block will be written. The taker says whether the data of a block count.

use super::image::Moment;
use super::progress::ScrubPlan;
use super::sink::{BlockRead, Sink, Task, Whole};
use headtime_units::Extent;
use std::collections::BTreeMap;

/// Taker of the data that a scrub reads.
#[derive(Debug)]
pub(super) struct Taker {
    pub sink: Sink,
    pub takes: Takes,
    /// Moment that the image is to have; `None` if hashes are made, each of any moment.
    pub moment: Option<Moment>,
    /// Number of blocks that were compared with their hashes.
    pub compared: u64,
    /// Blocks whose data the sink has and has not finished, with the id of the read.
    pub sinking: BTreeMap<u64, u64>,
    asked_syncs: u64,
}

/// State of the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The sink takes data.
    All,
    /// The sink takes data, and has not yet tried again to write the data of a failure.
    Tries,
    /// The sink has failed and takes nothing until it tries again.
    Nothing,
}

impl Taker {
    /// Taker for the hashes or the image of a plan.
    pub fn new(sink: Sink, plan: &ScrubPlan) -> Taker {
        let block = plan.block.bytes(plan.identity.sector_bytes);
        Taker {
            sink,
            takes: Takes::All,
            moment: plan.is_copy().then(|| Moment::to_come(block)),
            compared: 0,
            sinking: BTreeMap::new(),
            asked_syncs: 0,
        }
    }

    /// Returns true if the line of an image is drawn.
    pub fn is_drawn(&self) -> bool {
        self.moment.as_ref().is_some_and(Moment::is_drawn)
    }

    /// Returns true if more blocks may be read.
    pub fn has_room(&self) -> bool {
        !self.is_drawn() && self.sink.has_room()
    }

    /// Takes blocks that were read: their numbers and sectors. `data` are the data of all sectors of the read.
    pub fn was_read(
        &mut self,
        (extent, read): (Extent, u64),
        data: &[u8],
        blocks: impl Iterator<Item = (u64, Extent)>,
    ) {
        let wholes = blocks.map(|(number, extent)| Whole {
            number,
            read,
            extent,
            is_known: self.sink.watch().knows(number),
        });
        let wholes: Vec<Whole> = wholes.collect();
        let numbers = wholes.iter().map(|whole| (whole.number, read));
        self.sinking.extend(numbers);
        self.sink.data(extent, data, wholes);
    }

    /// Notes that blocks will be written. Returns true if the data of reads that are under way do not count.
    pub fn will_be_written(&self) -> bool {
        self.moment.is_some() && !self.is_drawn()
    }

    /// Returns true if the sink has data of this read of a block, and these data count.
    pub fn waits_for(&self, (number, read): BlockRead) -> bool {
        self.sinking.get(&number) == Some(&read)
    }

    /// Notes that a block is in the file, and whether the file is current for it.
    pub fn has_taken(&mut self, number: u64, compared: bool, is_current: bool) {
        self.sinking.remove(&number);
        self.compared += u64::from(compared);
        if is_current {
            self.sink.watch().learn(number);
        }
    }

    /// Asks the sink to make all results durable. Returns the number that the sink reports when they are.
    pub fn sync(&mut self) -> u64 {
        self.asked_syncs += 1;
        self.sink.send(Task::Sync(self.asked_syncs));
        self.asked_syncs
    }
}
