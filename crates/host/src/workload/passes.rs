//! Passes over files, the building blocks of file-system benchmarks.

use super::site::of_kib;
use crate::{BarrierId, Behaviour, FileId, Step};
use headtime_units::Nanos;
use headtime_workload::Random;
use std::sync::Arc;

/// One action of a process.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Pass(Pass),
    Sync(FileId),
    Forget(FileId),
    Meet(BarrierId),
}

/// Calls of one size over files of one size.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub files: Arc<[FileId]>,
    /// Bytes of each file.
    pub size: u64,
    /// Bytes of each call. The last call of a file is shorter if the file's size is not a multiple.
    pub call: u64,
    pub way: Way,
    /// True if each call reads its piece.
    pub reads: bool,
    /// Share of the calls that write the piece after reading it, 0 to 1. Calls that do not read always write.
    pub writes: f64,
    /// Processor time for each KiB.
    pub kib_cpu: Nanos,
}

/// Order in which a pass visits the pieces of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Every `step`-th piece from `first` on, up to the last.
    Every { first: u64, step: u64 },
    /// From the last to the first.
    Backwards,
    /// All pieces, in strides of this number of pieces. At the end, the next round begins one piece further on.
    Strides(u64),
    /// This number of pieces, each drawn independently.
    Random(u64),
    /// The first piece, as often as there are pieces.
    Same,
}

impl Way {
    pub const FORWARDS: Way = Way::Every { first: 0, step: 1 };
}

impl Pass {
    /// A pass that reads files from beginning to end, in the order of the list.
    pub fn reading(files: Arc<[FileId]>, size: u64, call: u64) -> Pass {
        Pass {
            files,
            size,
            call,
            way: Way::FORWARDS,
            reads: true,
            writes: 0.0,
            kib_cpu: Nanos::ZERO,
        }
    }

    /// Pieces of a file.
    fn each(&self) -> u64 {
        self.size.div_ceil(self.call)
    }

    /// Piece of call `number`. The previous call had the piece `last`.
    fn piece(&self, number: u64, last: u64, random: &mut Random) -> Option<u64> {
        let all = self.each() * self.files.len() as u64;
        let all_of_them = number < all;
        match self.way {
            Way::Every { first, step } => Some(first + number * step).filter(|piece| *piece < all),
            Way::Backwards => all_of_them.then(|| all - 1 - number),
            Way::Strides(_) if number == 0 => all_of_them.then_some(0),
            Way::Strides(step) => all_of_them.then(|| match last + step < all {
                true => last + step,
                false => last % step + 1,
            }),
            Way::Random(count) => (number < count && all > 0).then(|| random.below(all)),
            Way::Same => all_of_them.then_some(0),
        }
    }
}

/// Process of a benchmark: its passes over files, syncs and barriers, in their order.
pub(super) struct Passes {
    work: Arc<[Work]>,
    at: usize,
    random: Random,
    /// Calls of the pass so far, and the piece of the last call.
    calls: u64,
    piece: u64,
    /// Rest of the present call: a write, and processor time.
    write: Option<Step>,
    think: Nanos,
}

impl Passes {
    pub fn new(work: Arc<[Work]>, random: Random) -> Passes {
        Passes {
            work,
            at: 0,
            random,
            calls: 0,
            piece: 0,
            write: None,
            think: Nanos::ZERO,
        }
    }

    /// The next call of a pass, if there is one.
    fn call(&mut self, pass: &Pass) -> Option<Step> {
        let piece = pass.piece(self.calls, self.piece, &mut self.random)?;
        (self.calls, self.piece) = (self.calls + 1, piece);
        let file = pass.files[(piece / pass.each()) as usize];
        let offset = piece % pass.each() * pass.call;
        let len = pass.call.min(pass.size - offset);
        self.think = of_kib(pass.kib_cpu, len);
        let write = Step::Write { file, offset, len };
        let writes = pass.writes == 1.0 || self.random.chance(pass.writes);
        if !pass.reads {
            return Some(write);
        }
        self.write = writes.then_some(write);
        Some(Step::Read { file, offset, len })
    }
}

impl Behaviour for Passes {
    fn next(&mut self) -> Step {
        if let Some(write) = self.write.take() {
            return write;
        }
        if !self.think.is_zero() {
            return Step::Think(std::mem::replace(&mut self.think, Nanos::ZERO));
        }
        let work = Arc::clone(&self.work);
        while let Some(next) = work.get(self.at) {
            if let Work::Pass(pass) = next
                && let Some(step) = self.call(pass)
            {
                return step;
            }
            self.at += 1;
            self.calls = 0;
            match *next {
                Work::Pass(_) => {}
                Work::Sync(file) => return Step::Sync(file),
                Work::Forget(file) => return Step::Forget(file),
                Work::Meet(barrier) => return Step::Barrier(barrier),
            }
        }
        Step::Exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(way: Way) -> Pass {
        Pass {
            way,
            ..Pass::reading([FileId(3), FileId(4)].into(), 10, 4)
        }
    }

    fn steps(pass: Pass) -> Vec<Step> {
        let random = Random::keyed(1, 1, 1);
        let mut passes = Passes::new([Work::Pass(pass), Work::Sync(FileId(3))].into(), random);
        let next = || Some(passes.next()).filter(|step| *step != Step::Exit);
        std::iter::from_fn(next).collect()
    }

    /// File and offset of each call.
    fn places(way: Way) -> Vec<(u32, u64)> {
        let place = |step: Step| match step {
            Step::Read { file, offset, len } => {
                assert_eq!(len, if offset == 8 { 2 } else { 4 });
                Some((file.0, offset))
            }
            _ => None,
        };
        steps(pass(way)).into_iter().filter_map(place).collect()
    }

    #[test]
    fn pieces_come_in_the_order_of_the_way() {
        let forwards = [(3, 0), (3, 4), (3, 8), (4, 0), (4, 4), (4, 8)];
        assert_eq!(places(Way::FORWARDS), forwards);
        let backwards: Vec<_> = forwards.into_iter().rev().collect();
        assert_eq!(places(Way::Backwards), backwards);
        let second = Way::Every { first: 1, step: 4 };
        assert_eq!(places(second), [forwards[1], forwards[5]]);
        let strides = [0, 4, 1, 5, 2, 3].map(|piece: usize| forwards[piece]);
        assert_eq!(places(Way::Strides(4)), strides);
        assert_eq!(places(Way::Same), [forwards[0]; 6]);
        let random = places(Way::Random(600));
        assert_eq!(random.len(), 600);
        for place in forwards {
            let often = random.iter().filter(|drawn| **drawn == place).count();
            // Five standard errors.
            assert!(often.abs_diff(100) < 46, "{place:?}: {often}");
        }
    }

    #[test]
    fn a_call_reads_then_writes_then_works_and_the_next_thing_follows_the_last_call() {
        let both = Pass {
            size: 4096,
            call: 2048,
            writes: 1.0,
            kib_cpu: Nanos::from_micros(5),
            ..Pass::reading([FileId(3)].into(), 0, 1)
        };
        let (file, len) = (FileId(3), 2048);
        let read = |offset| Step::Read { file, offset, len };
        let write = |offset| Step::Write { file, offset, len };
        let think = Step::Think(Nanos::from_micros(10));
        let all = [read(0), write(0), think, read(2048), write(2048), think];
        assert_eq!(steps(both.clone())[..6], all);
        assert_eq!(steps(both.clone())[6..], [Step::Sync(file)]);
        let writing = Pass {
            reads: false,
            ..both
        };
        assert_eq!(steps(writing)[..2], [write(0), think]);
    }

    #[test]
    fn so_many_calls_write_as_the_share_says() {
        let some = Pass {
            writes: 0.1,
            ..pass(Way::Random(10_000))
        };
        let writes = |step: &&Step| matches!(step, Step::Write { .. });
        let count = steps(some).iter().filter(writes).count();
        assert!(count.abs_diff(1_000) < 150, "{count}");
    }

    #[test]
    fn a_pass_over_nothing_ends_at_once() {
        for way in [
            Way::FORWARDS,
            Way::Backwards,
            Way::Strides(3),
            Way::Random(9),
            Way::Same,
        ] {
            let empty = Pass {
                size: 0,
                ..pass(way)
            };
            assert_eq!(steps(empty), [Step::Sync(FileId(3))], "{way:?}");
        }
    }
}
